//! The partners of a demonstration: their keys and endpoints, and the people whom they sign up.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;

use anyhow::{Context, anyhow};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::receiver::BROKEN;
use super::story::{ANA, Story};
use crate::cli::open_records;
use crate::cli::sandbox_records::make_sandbox;
use crate::clock::Moment;
use crate::config::StoreSettings;
use crate::domain::api_key::{ApiKey, Mode};
use crate::domain::email::EmailAddress;
use crate::domain::partner::idempotency::IdempotencyKey;
use crate::domain::referral::ReferralCode;
use crate::domain::sign_up::Channel;
use crate::domain::time::Timestamp;
use crate::domain::webhook::url::EndpointUrl;
use crate::keys::NewKey;
use crate::keys::records::RevokeKey;
use crate::operations::dispatch::Call;
use crate::operations::{self, Entry};
use crate::operator::Operator;
use crate::partners::records::SetContact;
use crate::random;
use crate::store::WRITE_BATCH;
use crate::store::audit::Act;
use crate::store::migration::Prepare;

/// Each with its contact.
pub(super) const PARTNERS: [(&str, &str); 3] = [
    ("Acme Assistant", "integrations@acme.example.com"),
    ("Zenith Chat", "api@zenith.example.net"),
    ("Harbor Bank", "partnerships@harbor.example.org"),
];
const ACME: usize = 0;
const HARBOR: usize = 2;

/// The days on which each begins, counted from today; and on which the last one names an endpoint that never answers.
const BEGIN: [i64; 3] = [-150, -140, -120];
const HARBOR_ADDS: i64 = -4;

/// How the assistant that speaks MCP calls itself.
const ASSISTANT: &str = "Acme Assistant 4.2";

/// A caller on this machine.
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

impl Story<'_> {
    /// What happens between the union and its partners on a day.
    pub(super) async fn partners_on(&mut self, day: i64, receiver: &str) -> anyhow::Result<()> {
        let now = self.at(day, 9 * 60);
        for (place, (name, contact)) in PARTNERS.into_iter().enumerate().filter(|(place, _)| BEGIN[*place] == day) {
            let key = issue(&self.parts.operator, Mode::Live, name, now).await?;
            self.keys.push(key);
            let set = SetContact { name: name.to_owned(), contact: Some(EmailAddress::parse(contact)?) };
            self.by_ana("partners contact", format!("set for {name}"), now).run(set).await?;
            if place == ACME {
                self.add_endpoint(name, &format!("{receiver}/acme"), now).await?;
            }
        }
        if day == HARBOR_ADDS {
            self.add_endpoint(PARTNERS[HARBOR].0, &format!("{receiver}{BROKEN}"), now).await?;
        }
        Ok(())
    }

    async fn add_endpoint(&self, name: &str, url: &str, now: Timestamp) -> anyhow::Result<()> {
        let operator = self.by_ana("webhooks add", name.to_owned(), now);
        let webhooks = operator
            .webhooks(self.parts.secret.clone(), self.settings.outbound.client(&self.parts.union.base_url).into());
        webhooks.add(name, &EndpointUrl::parse(url)?, now).await?;
        Ok(())
    }

    /// A partner's program calls the API, as the reference tells it to.
    pub(super) async fn sign_up_by(&self, partner: usize, one: usize, now: Timestamp) -> anyhow::Result<ReferralCode> {
        let person = &self.people[one];
        let bills: Map<_, _> =
            person.answers.chosen().iter().map(|bill| (bill.slug().to_owned(), true.into())).collect();
        let mut sent = json!({ "email": person.email.as_typed(), "categories": bills });
        let invited_by = person.invited_by.and_then(|by| self.people[by].code);
        let said = [
            ("usState", person.answers.us_state.map(|state| state.code().to_owned())),
            ("otherComments", person.answers.comments.as_ref().map(|comments| comments.as_str().to_owned())),
            ("refCode", invited_by.map(|code| code.to_string())),
        ];
        for (field, text) in said {
            if let Some(text) = text {
                sent[field] = text.into();
            }
        }
        let key = self.keys.get(partner).context("the partner has no key yet")?;
        let authorization = format!("Bearer {}", key.reveal());
        // Half of what the first one sends comes from its assistant, which names no requests.
        let by_assistant = partner == ACME && one.is_multiple_of(2);
        let request = IdempotencyKey::parse(&format!("{}-{one:04}", ["conversation", "chat", "customer"][partner]));
        let call = Call {
            authorization: Some(authorization.as_bytes()),
            channel: if by_assistant { Channel::Mcp } else { Channel::Rest },
            client: by_assistant.then_some(ASSISTANT),
            idempotency_key: (!by_assistant).then_some(&request),
            ..self.call(now)
        };
        let answer = self.dispatch(operations::ALL, "signUpUser", call, &sent).await?;
        let link = answer["inviteLink"].as_str().context("no link was answered")?;
        ReferralCode::from_pasted(link).context("the link that was answered has no code")
    }

    /// A call without a key.
    pub(super) fn call(&self, now: Timestamp) -> Call<'static> {
        let now = Moment { time: now, tick: self.clock.tick() };
        Call { authorization: None, address: HERE, now, channel: Channel::Mcp, client: None, idempotency_key: None }
    }

    pub(super) async fn dispatch(
        &self,
        table: &'static [Entry],
        operation: &str,
        call: Call<'_>,
        sent: &Value,
    ) -> anyhow::Result<Value> {
        let entry = table.iter().find(|entry| entry.spec.id == operation).context("there is no such operation")?;
        let body = Bytes::from(sent.to_string());
        let answer = self.dispatcher.call(entry, call, body).await;
        let answer = answer.map_err(|refused| anyhow!("{operation}: {refused:?}"))?;
        Ok(serde_json::from_slice(&answer)?)
    }

    /// A key of the last partner came into the wrong hands: whom it signs up gets no mail until the operator decides.
    pub(super) async fn lose_a_key(&mut self, people: Range<usize>, now: Timestamp) -> anyhow::Result<()> {
        let leaked = issue(&self.parts.operator, Mode::Live, PARTNERS[HARBOR].0, now).await?;
        let id = leaked.id();
        let kept = std::mem::replace(&mut self.keys[HARBOR], leaked);
        for one in people {
            self.people[one].code = Some(self.sign_up_by(HARBOR, one, now).await?);
        }
        self.keys[HARBOR] = kept;
        self.by_ana("keys revoke", format!("key {id}"), now).run(RevokeKey(id, now)).await?;
        Ok(())
    }
}

async fn issue(operator: &Operator, mode: Mode, partner: &str, now: Timestamp) -> anyhow::Result<ApiKey> {
    let key = ApiKey::of_mode(mode, &random::bytes()?);
    let new = NewKey { partner: partner.parse()?, per_minute: None, expires_at: None };
    let about = format!("key {} for {partner}", key.id());
    let act = Act { who: ANA.to_owned(), command: "keys issue", about, at: now, change: None };
    operator.audited(act).keys().issue(&key, new, now).await?;
    Ok(key)
}

/// The first partner's key to the sandbox, whose records it makes.
pub(super) async fn issue_test_key(settings: &StoreSettings, now: Timestamp) -> anyhow::Result<ApiKey> {
    let records = make_sandbox(&settings.records()?).await?;
    let store = open_records(&records, &settings.data, Prepare::Make, WRITE_BATCH).await?;
    let key = issue(&Operator::new(store.clone(), Mode::Test), Mode::Test, PARTNERS[ACME].0, now).await?;
    store.close().await?;
    Ok(key)
}
