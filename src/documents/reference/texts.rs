//! The reference's own texts, Markdown files under `templates/docs`, and the facts filled into them. A figure is defined only
//! in its constant, never in a text.

use std::time::Duration;

use super::{Section, operation, prose};
use crate::documents::API_VERSION;
use crate::domain::language::Language;
use crate::domain::mail::{MAX_MAILS_PER_DAY, MIN_MAIL_GAP, MailKind, budget};
use crate::domain::partner::endpoint::{DELIVERIES_AT_ONCE, ENDPOINTS_OF_ONE};
use crate::domain::partner::event::{EVENTS_KEPT_FOR, MAX_WAITING};
use crate::domain::partner::idempotency::REUSED_KEY;
use crate::domain::sign_up::{PENDING_FOR, SUPPRESSED_FOR};
use crate::domain::union::Union;
use crate::domain::webhook::USER_AGENT;
use crate::domain::webhook::url::EndpointUrl;
use crate::http::request::body;
use crate::operations::partner::page::PageSize;
use crate::operations::wording::CONSENT_RULE_FOR_ALL;
use crate::operations::{ALL, Access, LARGEST_MESSAGE};

macro_rules! texts {
    ($group:literal: $($id:literal),*) => {
        [$(($group, $id, include_str!(concat!("../../../templates/docs/", $id, ".md")))),*]
    };
}

/// A group, an id and a text that begins with its title.
type OurText = (&'static str, &'static str, &'static str);

const BEGIN: [OurText; 6] = texts!["Begin": "start", "authentication", "consent", "limits", "retries", "errors"];
const ASSISTANTS: [OurText; 1] = texts!["Assistants": "mcp"];
const PARTNERS: [OurText; 6] =
    texts!["Partner API": "partner-api", "sign-up-status", "events", "webhooks", "self-service", "sandbox"];
const MORE: [OurText; 3] = texts!["The API itself": "versioning", "changelog", "security"];

/// What `{{name}}` stands for in a text.
pub(super) struct Facts(Vec<(&'static str, String)>);

pub(super) fn facts(union: &Union) -> Facts {
    let days = |span: Duration| (span.as_secs() / (24 * 3600)).to_string();
    let listed = |access: Access| {
        let names = ALL.iter().filter(|op| op.spec.access == access).map(|op| format!("[`{0}`](#{0})", op.spec.id));
        names.collect::<Vec<_>>().join(", ")
    };
    let contact = match &union.contact_email {
        Some(email) => format!("Ask for one at <{email}>."),
        None => "The operator issues them on request.".to_owned(),
    };
    let report = match &union.contact_email {
        Some(email) => format!("Write to <{email}>"),
        None => "Write to the operator".to_owned(),
    };
    let subject = MailKind::Confirm.subject(&union.name, Language::English);
    let sender = union.sender.to_string();
    let json = |text: &str| serde_json::Value::from(text).to_string();
    Facts(vec![
        ("base_url", union.base_url.clone()),
        ("join_site", union.join_site.clone()),
        ("join_page", union.join_page()),
        ("contact", contact),
        ("report", report),
        ("consent", CONSENT_RULE_FOR_ALL.to_owned()),
        ("version", API_VERSION.to_owned()),
        ("public_per_minute", union.public_per_minute.to_string()),
        ("key_per_minute", union.key_per_minute.to_string()),
        ("public", Access::Public.class().name().to_owned()),
        ("action", Access::Agent.class().name().to_owned()),
        ("public_left", union.public_per_minute.saturating_sub(1).to_string()),
        ("pending_days", days(PENDING_FOR)),
        ("silence_days", days(SUPPRESSED_FOR)),
        ("event_days", days(EVENTS_KEPT_FOR)),
        ("max_waiting", MAX_WAITING.to_string()),
        ("page_default", PageSize::DEFAULT.to_string()),
        ("page_most", PageSize::MOST.to_string()),
        ("endpoints", ENDPOINTS_OF_ONE.to_string()),
        ("in_flight", DELIVERIES_AT_ONCE.to_string()),
        ("ports", EndpointUrl::common_ports()),
        ("user_agent", USER_AGENT.to_owned()),
        ("reused_key", REUSED_KEY.to_owned()),
        ("largest_body", format!("{} MiB", body::LARGEST >> 20)),
        ("largest_message", format!("{} KiB", LARGEST_MESSAGE >> 10)),
        ("apart_minutes", (MIN_MAIL_GAP.as_secs() / 60).to_string()),
        ("mails_a_day", MAX_MAILS_PER_DAY.to_string()),
        ("subject", prose::escaped(&subject)),
        ("json_subject", json(&subject)),
        ("sender", prose::escaped(&sender)),
        ("json_sender", json(&sender)),
        ("days_before", (budget::DAYS - 1).to_string()),
        ("enough", budget::ENOUGH.to_string()),
        ("one_in", budget::ONE_IN.to_string()),
        ("few_unwanted", budget::FEW_UNWANTED.to_string()),
        ("earned", budget::EARNED.to_string()),
        ("most_times", budget::MOST_TIMES.to_string()),
        ("left_one_in", budget::LEFT_ONE_IN.to_string()),
        ("read_tools", listed(Access::Public)),
        ("agent_tools", listed(Access::Agent)),
        ("errors", operation::all_errors(union)),
    ])
}

pub(super) fn before_operations(facts: &Facts) -> Vec<Section> {
    BEGIN.iter().map(|text| facts.section(text)).collect()
}

pub(super) fn after_operations(facts: &Facts) -> Vec<Section> {
    [&ASSISTANTS[..], &PARTNERS, &MORE].concat().iter().map(|text| facts.section(text)).collect()
}

impl Facts {
    fn section(&self, (group, id, text): &OurText) -> Section {
        let filled = self
            .0
            .iter()
            .fold((*text).to_owned(), |text, (name, fact)| text.replace(&["{{", name, "}}"].concat(), fact));
        let (title, body) = filled.split_once('\n').unwrap_or((&filled, ""));
        Section {
            id,
            group,
            title: title.trim_start_matches("# ").to_owned(),
            endpoint: None,
            body: body.trim().to_owned(),
            beside: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnionSettings;

    #[test]
    fn every_text_has_a_title_and_every_fact_is_known_and_used() {
        let facts = facts(&UnionSettings::sample());
        let texts = [&BEGIN[..], &ASSISTANTS, &PARTNERS, &MORE].concat();
        for text in &texts {
            let section = facts.section(text);
            assert!(text.2.starts_with("# ") && !section.title.is_empty(), "{}", section.id);
            assert!(!section.body.contains("{{"), "{}: {}", section.id, section.body);
        }
        for (name, _) in &facts.0 {
            let wanted = ["{{", name, "}}"].concat();
            assert!(texts.iter().any(|text| text.2.contains(&wanted)), "nobody says {name}");
        }
    }
}
