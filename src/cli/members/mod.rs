//! `unionhall members`

mod export;
mod show;

use std::io::BufRead;

use anyhow::{Context, anyhow, bail};
use clap::{ArgGroup, Args, Subcommand};
use serde_json::json;

use super::audit::act;
use super::{keys, partners, print_aside, print_line, print_lines, print_table, remedy, secret, with_live_records};
use crate::clock::Clock;
use crate::config::{SecretSettings, StoreSettings};
use crate::domain::api_key::KeyId;
use crate::domain::email::EmailAddress;
use crate::domain::figure::money;
use crate::domain::mail::budget::source_name;
use crate::domain::person::Waiver;
use crate::domain::sign_up::{SignUpId, SignUpsOf};
use crate::domain::time::Timestamp;
use crate::operator::{Operator, person};
use crate::people::erasures::ErasureLog;
use crate::people::records::ListSignUpsOf;
use crate::people::{NotErased, People, records};

#[derive(Subcommand)]
pub(super) enum MembersCommand {
    /// Print how many members there are now.
    Count(CountMembers),
    /// Show everything that is kept about a person: state, sign-ups, sent and waiting mail, what keeps mail from them, and rewards.
    Show(ShowPerson),
    /// Find people by the beginning of their address, by their code or account; or all that a key, a partner or the form signed up.
    Find(FindPeople),
    /// Write people to standard output, as CSV or JSON Lines, however many there are.
    Export(export::ExportPeople),
    /// End a membership at once, because the person asks for it. They keep their code, in case they come back.
    Leave(NamedMember),
    /// Delete what is kept about a person. It cannot be undone.
    ///
    /// The address is not kept. A keyed hash of it is, so that the referral code stays theirs and nothing is earned twice if they
    /// come back. Whether they were a member and who is credited for them is kept, too. No mail goes there for 30 days.
    ///
    /// Refused while rewards are due to them: pay those first with `rewards batch new`, or give --waive-rewards. What is being paid already
    /// goes on. The ledger of rewards stays, under a random account that no longer leads to them.
    Erase(EraseMember),
    /// Let mail go to a person again, whatever keeps it: "this wasn't me", an erasure, a complaint, or an address that seemed not to exist.
    Unsuppress(NamedPerson),
}

#[derive(Args)]
pub(super) struct CountMembers {
    /// As a JSON object, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct ShowPerson {
    /// As a JSON object, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    person: NamedPerson,
}

#[derive(Args)]
#[command(group(ArgGroup::new("whom").args(["text", "key", "partner", "form"]).required(true)))]
pub(super) struct FindPeople {
    /// The beginning of an address, a referral code or its link, or an account of the audit log; `-` to read it on standard
    /// input.
    text: Option<String>,
    /// All that were signed up with this key, newest first: after a leak.
    #[arg(long, value_name = "ID")]
    key: Option<KeyId>,
    /// All that this partner signed up, with any of its keys, newest first.
    #[arg(long, value_name = "NAME")]
    partner: Option<String>,
    /// All that signed up by the form, newest first.
    #[arg(long)]
    form: bool,
    /// As JSON Lines, an object a line, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct NamedMember {
    /// The person's address; `-` to read it on standard input, so that it is not in the shell's history.
    email: String,
    #[command(flatten)]
    store: StoreSettings,
}

/// A person of the installation whose secret is known.
#[derive(Args)]
pub(super) struct NamedPerson {
    /// The person's address; `-` to read it on standard input, so that it is not in the shell's history.
    email: String,
    #[command(flatten)]
    secret: SecretSettings,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct EraseMember {
    /// Give up the rewards that are due to them, because they say so. Without it, a person with rewards due is not erased.
    #[arg(long)]
    waive_rewards: bool,
    #[command(flatten)]
    person: NamedPerson,
}

pub(super) fn run(command: MembersCommand) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    match command {
        MembersCommand::Count(task) => count(&task),
        MembersCommand::Show(task) => show::run(&task, now),
        MembersCommand::Find(task) => find(&task, now),
        MembersCommand::Export(task) => export::run(&task, now),
        MembersCommand::Leave(task) => leave(&task, now),
        MembersCommand::Erase(task) => erase(&task, now),
        MembersCommand::Unsuppress(task) => unsuppress(&task, now),
    }
}

/// What was given, or the first line of standard input.
fn given(argument: &str, what: &str) -> anyhow::Result<String> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut line = String::new();
    // Longer than any address, and no more.
    std::io::Read::take(std::io::stdin().lock(), 4096).read_line(&mut line).context("cannot read standard input")?;
    match line.trim() {
        "" => bail!("there is nothing on standard input; write {what} there, on a line of its own"),
        line => Ok(line.to_owned()),
    }
}

pub(super) fn address(argument: &str) -> anyhow::Result<EmailAddress> {
    // As it is kept: what was taken in once is found, whatever is refused today.
    Ok(EmailAddress::kept(given(argument, "the address")?.trim())?)
}

pub(super) fn no_such_person() -> anyhow::Error {
    anyhow!("nobody has that address; `unionhall members find` looks for its beginning")
}

impl NamedPerson {
    /// The people of the records, with the installation's secret.
    async fn people(&self, operator: &Operator) -> anyhow::Result<People> {
        let secret = secret::claim(&self.store, self.secret.given()?, operator).await?.secret;
        Ok(operator.people(&secret, ErasureLog::beside(&self.store.data)))
    }
}

fn count(task: &CountMembers) -> anyhow::Result<()> {
    let members = with_live_records(&task.store, async |operator| Ok(operator.member_count().await?))?;
    print_line(&if task.json { json!({ "members": members }).to_string() } else { members.to_string() })
}

/// People that are listed at the most.
const LISTED: u32 = 50;

/// Sign-ups that are read at a time.
const PAGE: u32 = 1000;

fn find(task: &FindPeople, now: Timestamp) -> anyhow::Result<()> {
    if task.text.is_none() {
        return find_signed_up(task, now);
    }
    let text = given(task.text.as_deref().unwrap_or_default(), "what is to be found")?.trim().to_lowercase();
    if text.is_empty() {
        bail!("say what the address begins with; `unionhall members export` writes everyone");
    }
    // A link is as good as its code.
    let text = match crate::domain::referral::ReferralCode::from_pasted(&text) {
        Some(code) => code.to_string(),
        None => text,
    };
    let found = with_live_records(&task.store, async |operator| {
        let found = operator.ask(records::FindPeople(text, LISTED)).await?;
        operator.note(act("members find", counted_people(found.len()), now)).await?;
        Ok(found)
    })?;
    if task.json {
        return found.iter().try_for_each(|person| print_line(&export::as_json(person).to_string()));
    }
    let headings = "STATE    CODE          SINCE                 JOINED THROUGH    ADDRESS";
    print_table(&found, "Nobody matches that.", headings, |person| {
        let since = person.joined_at.unwrap_or(person.created_at).to_string();
        let source = person.source.as_deref().map_or("-", source_name);
        let (state, code, email) = (person.state.name(), person.code.as_str(), &person.email);
        format!("{state:<9}{code:<14}{since:<22}{source:<18}{email}")
    })?;
    if found.len() >= LISTED as usize {
        print_aside(&format!("There may be more: these are the first {LISTED}."));
    }
    Ok(())
}

fn counted_people(people: usize) -> String {
    if people == 1 { "1 person".to_owned() } else { format!("{people} people") }
}

fn find_signed_up(task: &FindPeople, now: Timestamp) -> anyhow::Result<()> {
    let listed = with_live_records(&task.store, async |operator| {
        let whose = match (task.key, &task.partner) {
            (Some(key), _) => SignUpsOf::Key(keys::find(&operator, key).await?.id),
            (None, Some(name)) => SignUpsOf::Partner(partners::find(&operator, name).await?.id),
            (None, None) => SignUpsOf::Form,
        };
        let about = match (task.key, &task.partner) {
            (Some(key), _) => format!("key {key}"),
            (None, partner) => partner.clone().unwrap_or_else(|| "the form".to_owned()),
        };
        // Before the first line, as for an export.
        operator.note(act("members find", about, now)).await?;
        let (mut before, mut listed) = (SignUpId(i64::MAX), 0);
        loop {
            let page = operator.ask(ListSignUpsOf { whose, before, now, most: PAGE }).await?;
            let Some(last) = page.last() else { return Ok(listed) };
            before = last.id;
            if listed == 0 && !task.json {
                print_line("SIGNED UP             STATE      MAIL          ADDRESS")?;
            }
            listed += page.len();
            for sign_up in &page {
                let (at, state) = (sign_up.created_at.to_string(), sign_up.state.name());
                let mail = match &sign_up.mail {
                    None => "-",
                    Some(mail) if mail.given_up_at.is_some() => "given up",
                    Some(mail) if mail.held_at.is_some() => "held",
                    Some(_) => "waits",
                };
                print_line(&match task.json {
                    true => show::sign_up_json(sign_up).to_string(),
                    false => format!("{at:<22}{state:<11}{mail:<14}{}", sign_up.email),
                })?;
            }
        }
    })?;
    match listed == 0 && !task.json {
        true => print_line(match (task.key, &task.partner) {
            (Some(_), _) => "Nobody was signed up with this key.",
            (None, Some(_)) => "Nobody was signed up by this partner.",
            (None, None) => "Nobody has signed up by the form.",
        }),
        false => Ok(()),
    }
}

fn leave(task: &NamedMember, now: Timestamp) -> anyhow::Result<()> {
    let email = address(&task.email)?;
    let left = with_live_records(&task.store, async |operator| {
        Ok(operator.audited(act("members leave", String::new(), now)).leave(&email, now).await?)
    })?;
    print_lines(&person::left(&left).ok_or_else(no_such_person)?)
}

fn erase(task: &EraseMember, now: Timestamp) -> anyhow::Result<()> {
    let email = address(&task.person.email)?;
    let erased = with_live_records(&task.person.store, async |operator| {
        // A group that is full and not formed yet would be lost with them.
        operator.rewards().catch_up(now).await?;
        let command = if task.waive_rewards { "members erase --waive-rewards" } else { "members erase" };
        let act = act(command, String::new(), now);
        let (who, operator) = (act.who.clone(), operator.audited(act));
        let people = task.person.people(&operator).await?;
        let waiver = task.waive_rewards.then(|| Waiver::of_all(&who));
        operator.erase_person(&people, &email, waiver, now).await.map_err(|error| match error {
            NotErased::RewardsDue(due) => anyhow!(
                "nothing was erased: {} of rewards are due to them; pay them first with `unionhall rewards batch new FILE`, or give \
                 --waive-rewards if they give them up",
                money(due.cents)
            ),
            other => other.into(),
        })
    })?;
    print_lines(&erased.ok_or_else(no_such_person)?.lines(remedy::write))
}

fn unsuppress(task: &NamedPerson, now: Timestamp) -> anyhow::Result<()> {
    let email = address(&task.email)?;
    let lifted = with_live_records(&task.store, async |operator| {
        let operator = operator.audited(act("members unsuppress", String::new(), now));
        Ok(task.people(&operator).await?.unsuppress(&email).await?)
    })?;
    print_lines(&person::lifted(lifted.ok_or_else(no_such_person)?))
}
