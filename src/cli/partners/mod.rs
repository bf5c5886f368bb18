//! `unionhall partners`

pub(super) mod webhooks;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::json;

use super::audit::act;
use super::{Prepare, print_line, with_records};
use crate::clock::Clock;
use crate::config::StoreSettings;
use crate::domain::api_key::{KeyStatus, Mode};
use crate::domain::email::EmailAddress;
use crate::domain::partner::PartnerRecord;
use crate::operator::Operator;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum PartnersCommand {
    /// List all partners. `keys issue NAME` makes one.
    List(ListPartners),
    /// Show a partner: whom to write to, its keys and its webhook endpoints.
    Show(ShowPartner),
    /// Say whom to write to when something of a partner's fails, such as a webhook endpoint.
    Contact(SetContactArgs),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ListPartners {
    /// As a JSON array, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    records: PartnerRecords,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ShowPartner {
    /// The partner's name, as `partners list` shows it.
    name: String,
    /// As a JSON object, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    records: PartnerRecords,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SetContactArgs {
    /// The partner's name, as `partners list` shows it.
    name: String,
    /// The address to write to; `-` for none.
    email: String,
    #[command(flatten)]
    records: PartnerRecords,
}

/// Which records a command about partners works on.
#[derive(Debug, Args)]
pub(in crate::cli) struct PartnerRecords {
    /// Work on the sandbox's records, which test keys open.
    #[arg(long)]
    test: bool,
    #[command(flatten)]
    store: StoreSettings,
}

impl PartnerRecords {
    fn mode(&self) -> Mode {
        if self.test { Mode::Test } else { Mode::Live }
    }

    fn with<T>(&self, work: impl AsyncFnOnce(Operator) -> anyhow::Result<T>) -> anyhow::Result<T> {
        with_records(&self.store, self.mode(), Prepare::Expect, work)
    }
}

pub(in crate::cli) fn run(command: PartnersCommand) -> anyhow::Result<()> {
    match command {
        PartnersCommand::List(task) => list(&task),
        PartnersCommand::Show(task) => show(&task),
        PartnersCommand::Contact(task) => contact(&task),
    }
}

fn as_json(partner: &PartnerRecord) -> serde_json::Value {
    json!({
        "id": partner.id.0,
        "name": partner.name,
        "contact": partner.contact.as_ref().map(EmailAddress::as_typed),
        "createdAt": partner.created_at.to_string(),
        "keys": partner.keys,
        "endpoints": partner.endpoints,
    })
}

fn list(task: &ListPartners) -> anyhow::Result<()> {
    let partners = task.records.with(async |operator| Ok(operator.partners().list().await?))?;
    if task.json {
        let rows: Vec<_> = partners.iter().map(as_json).collect();
        return print_line(&serde_json::to_string_pretty(&rows)?);
    }
    if partners.is_empty() {
        return print_line("No partners yet. `unionhall keys issue NAME` makes one and issues its first key.");
    }
    print_line(&format!("{:<6}{:>6}{:>11}  {:<22}{:<32}NAME", "ID", "KEYS", "ENDPOINTS", "SINCE", "CONTACT"))?;
    for partner in &partners {
        let contact = partner.contact.as_ref().map_or("-", EmailAddress::as_typed);
        let PartnerRecord { id, name, keys, endpoints, created_at, .. } = partner;
        print_line(&format!("{id:<6}{keys:>6}{endpoints:>11}  {:<22}{contact:<32}{name}", created_at.to_string()))?;
    }
    Ok(())
}

fn show(task: &ShowPartner) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    let found = task.records.with(async |operator| {
        let partners = operator.partners().list().await?;
        let keys = operator.keys().list().await?;
        let endpoints = operator.list_endpoints().await?;
        Ok((partners.into_iter().find(|partner| partner.name == task.name), keys, endpoints))
    })?;
    let (Some(partner), keys, endpoints) = found else { return Err(unknown(&task.name)) };
    let keys = keys.iter().filter(|(key, _)| key.partner.as_str() == partner.name);
    let endpoints = endpoints.iter().filter(|listed| listed.endpoint.partner == partner.name);
    if task.json {
        let mut shown = as_json(&partner);
        shown["keyIds"] = keys.map(|(key, _)| key.id.as_str()).collect();
        shown["endpointIds"] = endpoints.map(|listed| listed.endpoint.id.0).collect();
        return print_line(&serde_json::to_string_pretty(&shown)?);
    }
    print_line(&format!("{} (partner {}) since {}", partner.name, partner.id, partner.created_at))?;
    print_line(&match &partner.contact {
        Some(contact) => format!("Contact: {contact}", contact = contact.as_typed()),
        None => "Contact: none; `unionhall partners contact NAME EMAIL` sets one".to_owned(),
    })?;
    for (key, _) in keys {
        let state = match key.status(now) {
            KeyStatus::Valid => "valid",
            KeyStatus::Expired => "expired",
            KeyStatus::Revoked => "revoked",
        };
        print_line(&format!("Key {}: {state}", key.id))?;
    }
    for listed in endpoints {
        print_line(&format!("Webhook endpoint {}: {}", listed.endpoint.id, webhooks::state(&listed.endpoint)))?;
    }
    Ok(())
}

fn contact(task: &SetContactArgs) -> anyhow::Result<()> {
    let email = match task.email.as_str() {
        "-" => None,
        text => match EmailAddress::parse(text) {
            Ok(email) => Some(email),
            Err(problem) => bail!("the contact is no e-mail address: {problem}; write - for none"),
        },
    };
    let now = Clock::start().now().time;
    let about = if email.is_some() { "set for" } else { "taken from" };
    let act = act("partners contact", format!("{about} {}", task.name), now);
    let found = task
        .records
        .with(async |operator| Ok(operator.audited(act).partners().set_contact(&task.name, email.clone()).await?))?;
    if !found {
        return Err(unknown(&task.name));
    }
    print_line(&match &email {
        Some(_) => format!("{} is written to from now on when something of theirs fails.", task.name),
        None => format!("{} has no contact any more.", task.name),
    })
}

fn unknown(name: &str) -> anyhow::Error {
    anyhow::anyhow!("there is no partner called {}; `unionhall partners list` shows them", name.escape_debug())
}
