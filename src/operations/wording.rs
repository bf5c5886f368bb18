//! Texts about the union, consent and errors that appear in more than one place: tools, their instructions, the OpenAPI
//! document and the reference all use these.

use crate::domain::catalog::Catalog;
use crate::domain::catalog::category::Category;
use crate::domain::union::Union;

/// The consent rule as a literal, so that both forms of it are one.
macro_rules! consent {
    ($what:literal) => {
        concat!(
            "Consent: call ",
            $what,
            " only for the user you are talking to, with that user's own email address, and only after they have \
             explicitly asked to join."
        )
    };
}

/// The consent rule, as each agent action states it.
pub const CONSENT_RULE: &str = consent!("this");

/// The consent rule for all agent actions, by their names; a test holds that it names them all.
pub const CONSENT_RULE_FOR_ALL: &str = consent!("signUpUser and createReferralLink");

/// What to do about an error of an agent action.
pub const ERRORS_OF_ACTIONS: &str = "An error has a `code`, and in `error` what to do: invalid_submission lists what to fix \
     (ask the user), rate_limited names the seconds to wait; on backend_not_configured or save_failed try again later; \
     agent_unauthorized is about the API key.";

/// What a campaign is, and where to see those that there are.
pub fn campaigns(union: &Union) -> String {
    format!(
        "A campaign is one negotiation over one category that members choose to take part in; joining the union changes none \
         of their contracts. See them at {}.",
        union.campaigns_page()
    )
}

pub fn what_it_is(union: &Union) -> String {
    format!(
        "Members of {} pool their demand as consumers, and an AI negotiates better prices and terms on their household \
         bills.",
        union.name
    )
}

/// Who answers for the union, and where people join and write to it.
pub fn who_runs_it(union: &Union) -> String {
    let Union { name, join_site, .. } = union;
    let reached = match union.contact_line() {
        Some(contact) => format!("it is reached at {contact}"),
        None => "its operator has published no contact".to_owned(),
    };
    format!(
        "{name} runs this service; {reached}. Its site is {join_site}; anyone can join by themselves at {}. What it keeps about \
         people and for how long is at {}, what joining means at {}.",
        union.join_page(),
        union.privacy_page(),
        union.terms_page()
    )
}

/// The same, and what a campaign is and where to see them.
pub fn who_runs_it_and_campaigns(union: &Union) -> String {
    let page = union.campaigns_page();
    format!("{} {} Programs read {page}.json.", who_runs_it(union), campaigns(union))
}

/// What the figures of savings are, and what they are not.
pub fn savings(catalog: &Catalog) -> String {
    let estimates = "Savings are the operator's estimates for a typical household, not promises.";
    let listed = |category| catalog.listed().iter().any(|(listed, _)| *listed == category);
    let parts_of = |whole| {
        let parts = catalog.listed().iter().filter(|(part, _)| part.part_of() == Some(whole));
        parts.map(|(part, _)| part.slug()).collect::<Vec<_>>().join(" and ")
    };
    let wholes = Category::ALL.iter().filter(|whole| listed(**whole));
    let overlaps: Vec<_> = wholes
        .map(|whole| (whole.slug(), parts_of(*whole)))
        .filter(|(_, parts)| !parts.is_empty())
        .map(|(whole, parts)| format!("{whole} with {parts}"))
        .collect();
    match overlaps.is_empty() {
        true => estimates.to_owned(),
        false => format!(
            "{estimates} Categories overlap ({}), so a sum over all of them is an upper bound.",
            overlaps.join(", ")
        ),
    }
}

/// What a model is told before it sees a tool: what this is, when to act and when not.
pub fn instructions(union: &Union) -> String {
    format!(
        "{what} {who} Use the read tools to describe the union truthfully; quote figures from their answers, never \
         from memory.\n\n\
         {CONSENT_RULE_FOR_ALL} If the user has not asked, tell them about the union and let them decide.\n\n\
         After signUpUser, tell the user to check their inbox and press the button in the mail: they are a member only \
         then. Give them their referral link from the answer.\n\n\
         The tools that act for a user need a partner's API key in the Authorization header; without one only the read tools \
         are listed, and whoever wants to join does so at the address above. An error of a tool is JSON: `error` says what to \
         change or how long to wait, `code` names the kind.",
        what = what_it_is(union),
        who = who_runs_it_and_campaigns(union),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnionSettings;

    #[test]
    fn a_union_says_what_it_has_told_of_itself_and_no_more() {
        let union = UnionSettings::sample();
        let message = who_runs_it(&union);
        for part in ["Consumer Union runs", "hello@union.example", "12 Mill Street", "https://union.example/join"] {
            assert!(message.contains(part), "{part} in {message}");
        }
        let silent = Union { contact_email: None, postal_address: None, ..union };
        assert!(who_runs_it(&silent).contains("has published no contact"));
    }

    #[test]
    fn overlaps_are_told_where_both_are_listed() {
        let message = savings(&Catalog::sample());
        let overlaps =
            "insurance with car_insurance and home_insurance, travel with hawaii_resort_stay and alaska_cruise";
        assert!(message.contains(overlaps), "{message}");
        let referral = "[referral]\nreward_per_group = 100\ngroup_size = 5\nmax_groups = 10";
        let apart = Catalog::parse(&format!("[savings]\ncar_insurance = 1\ntravel = 2\n{referral}")).unwrap();
        assert!(!savings(&apart).contains("overlap"));
    }
}
