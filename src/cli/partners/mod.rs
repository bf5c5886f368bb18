//! `unionhall partners`

mod control;
pub(super) mod webhooks;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::json;

use super::audit::act;
use super::remedy::{self, flag};
use super::{Prepare, print_json, print_line, print_row, print_table, with_records};
use crate::clock::Clock;
use crate::config::StoreSettings;
use crate::domain::api_key::Mode;
use crate::domain::email::EmailAddress;
use crate::domain::partner::PartnerRecord;
use crate::domain::partner::name::folded;
use crate::domain::remedy::Remedy;
use crate::domain::text::did_you_mean;
use crate::keys::records::ListKeys;
use crate::operator::Operator;
use crate::partners::endpoints::ListEndpoints;
use crate::partners::records;
use crate::partners::records::SetContact;

#[derive(Subcommand)]
pub(in crate::cli) enum PartnersCommand {
    /// List all partners. `keys issue NAME` makes one.
    List(ListPartners),
    /// Show a partner: its contact, keys and webhook endpoints.
    Show(ShowPartner),
    /// Set the address that is mailed when a partner's webhook endpoint fails, or when one of its keys changes something.
    Contact(SetContactArgs),
    /// Stop a partner for now: within two seconds none of its keys works, and its mail and webhooks wait.
    ///
    /// Its requests get 401, and the message says why. Its unsent mail is held. Its webhooks get what happened meanwhile when the suspension
    /// is lifted; the suspension does not count among the five days after which a failing endpoint is disabled. Links that were
    /// mailed still work, and sign-ups expire as always.
    Suspend(NamedPartner),
    /// Lift a suspension: keys work again unless they expired or were revoked, and held mail and webhooks go.
    ///
    /// Each person whose mail was held has the whole week to confirm. Running it again is safe: it goes on where it was interrupted.
    Resume(NamedPartner),
    /// End all sign-ups of a partner that wait to be confirmed, over all its keys. Nobody is told.
    ///
    /// Links that were mailed then lead to the page of an expired sign-up, and mail that has not left is deleted. Who has confirmed
    /// stays a member. Suspend the partner first, or revoke its keys: one that works is refused. The service takes up to two seconds to
    /// notice; running this again ends what came meanwhile.
    Withdraw(control::WithdrawOfPartner),
    /// Give a partner a mail budget of its own: a number of mails a day, over all its keys, that reputation does not change.
    MailBudget(control::SetMailBudget),
}

#[derive(Args)]
pub(in crate::cli) struct ListPartners {
    /// As a JSON array, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    records: PartnerRecords,
}

#[derive(Args)]
pub(in crate::cli) struct ShowPartner {
    /// As a JSON object, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    partner: NamedPartner,
}

#[derive(Args)]
pub(in crate::cli) struct SetContactArgs {
    #[command(flatten)]
    partner: NamedPartner,
    /// The address to write to; `-` for none.
    #[arg(help_heading = None)]
    email: String,
}

#[derive(Args)]
pub(in crate::cli) struct NamedPartner {
    /// The partner's name, as `partners list` shows it.
    name: String,
    #[command(flatten)]
    records: PartnerRecords,
}

/// Which records a command about partners works on.
#[derive(Args)]
pub(in crate::cli) struct PartnerRecords {
    /// Work on the sandbox's records, which test keys open.
    #[arg(long)]
    test: bool,
    #[command(flatten)]
    store: StoreSettings,
}

impl PartnerRecords {
    fn mode(&self) -> Mode {
        Mode::of_flag(self.test)
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
        PartnersCommand::Suspend(task) => control::suspend(&task),
        PartnersCommand::Resume(task) => control::resume(&task),
        PartnersCommand::Withdraw(task) => control::withdraw(&task),
        PartnersCommand::MailBudget(task) => control::set_mail_budget(&task),
    }
}

fn as_json(partner: &PartnerRecord) -> serde_json::Value {
    json!({
        "id": partner.id.0,
        "name": partner.name,
        "contact": partner.contact.as_ref().map(EmailAddress::as_typed),
        "createdAt": partner.created_at.to_string(),
        "suspendedAt": partner.suspended_at,
        "mailsADay": partner.mails_a_day,
        "keys": partner.keys,
        "endpoints": partner.endpoints,
    })
}

fn list(task: &ListPartners) -> anyhow::Result<()> {
    let partners = task.records.with(async |operator| Ok(operator.ask(records::ListPartners).await?))?;
    if task.json {
        return print_json(&Vec::from_iter(partners.iter().map(as_json)));
    }
    let test = flag(task.records.mode());
    let none = format!("No partners yet. `unionhall keys issue NAME{test}` makes one and issues its first key.");
    let headings =
        "ID    STATE        KEYS  ENDPOINTS  MAILS A DAY  SINCE                 CONTACT                         NAME";
    print_table(&partners, &none, headings, |partner| {
        let contact = partner.contact.as_ref().map_or("-", EmailAddress::as_typed);
        let PartnerRecord { id, name, keys, endpoints, .. } = partner;
        let state = if partner.suspended_at.is_some() { "suspended" } else { "active" };
        let mails = partner.mails_a_day.map_or_else(|| "default".to_owned(), |mails| mails.to_string());
        let since = partner.created_at.to_string();
        format!("{id:<6}{state:<11}{keys:>6}{endpoints:>11}{mails:>13}  {since:<22}{contact:<32}{name}")
    })
}

fn show(task: &ShowPartner) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    let NamedPartner { name, records } = &task.partner;
    let (partner, keys, endpoints) = records.with(async |operator| {
        let partner = find(&operator, name).await?;
        let endpoints = operator.ask(ListEndpoints(Some(partner.id))).await?;
        Ok((partner, operator.ask(ListKeys).await?, endpoints))
    })?;
    let keys = keys.iter().filter(|(key, _)| key.partner.as_str() == partner.name);
    if task.json {
        let mut shown = as_json(&partner);
        shown["keyIds"] = keys.map(|(key, _)| key.id.as_str()).collect();
        shown["endpointIds"] = endpoints.iter().map(|listed| listed.endpoint.id.0).collect();
        return print_json(&shown);
    }
    print_line(&format!("{} (partner {}) since {}", partner.name, partner.id, partner.created_at))?;
    print_line(&match &partner.contact {
        Some(contact) => format!("Contact: {contact}", contact = contact.as_typed()),
        None => format!("Contact: none; `unionhall partners contact NAME EMAIL{}` sets one", flag(records.mode())),
    })?;
    if let Some(since) = partner.suspended_at {
        let resume = remedy::write(&Remedy::ResumePartner(partner.name.clone()), records.mode());
        print_line(&format!("Suspended since {since}; {resume}"))?;
    }
    if let Some(mails) = partner.mails_a_day {
        print_line(&format!("Mail budget of its own: {mails} a day"))?;
    }
    for (key, _) in keys {
        print_line(&format!("Key {}: {}", key.id, key.status(now).name()))?;
    }
    for listed in &endpoints {
        print_row(&format!("Webhook endpoint {}: {}", listed.endpoint.id, listed.endpoint.state()))?;
    }
    Ok(())
}

fn contact(task: &SetContactArgs) -> anyhow::Result<()> {
    let email = match task.email.as_str() {
        "-" => None,
        text => match EmailAddress::parse(text) {
            Ok(email) => Some(email),
            Err(problem) => bail!("the contact is not an email address: {problem}; write - for none"),
        },
    };
    let now = Clock::start().now().time;
    let about = if email.is_some() { "set for" } else { "taken from" };
    let NamedPartner { name, records } = &task.partner;
    let act = act("partners contact", format!("{about} {name}"), now);
    records.with(async |operator| {
        let partner = find(&operator, name).await?;
        Ok(operator.audited(act).run(SetContact { name: partner.name, contact: email.clone() }).await?)
    })?;
    print_line(&match &email {
        Some(_) => {
            format!("{name} will be emailed from now on when something of theirs fails, or is changed with their key.")
        }
        None => format!("{name} no longer has a contact."),
    })
}

/// The partner of that name; where there is none, the error names those that may be meant.
pub(super) async fn find(operator: &Operator, name: &str) -> anyhow::Result<PartnerRecord> {
    let mut partners = operator.ask(records::ListPartners).await?;
    if let Some(at) = partners.iter().position(|partner| partner.name == name) {
        return Ok(partners.swap_remove(at));
    }
    let near = did_you_mean(name, partners.iter().map(|partner| partner.name.as_str()), folded);
    let test = flag(operator.mode);
    bail!("there is no partner called {};{near} `unionhall partners list{test}` shows them", name.escape_debug())
}
