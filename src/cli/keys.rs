//! `unionhall keys`

use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::json;

use super::audit::act;
use super::remedy::{self, flag};
use super::terminal::time_or_dash;
use super::{
    Prepare, print_aside, print_json, print_line, print_lines, print_table, terminal, with_live_records, with_records,
};
use crate::clock::Clock;
use crate::config::{MailBudgetSettings, Records, StoreSettings, quoted, whole};
use crate::domain::api_key::{ApiKey, KeyId, KeyRecord, Mode, NotAKeyId};
use crate::domain::mail::budget::SourceStatus;
use crate::domain::partner::name::PartnerName;
use crate::domain::remedy::Remedy;
use crate::domain::time::{Timestamp, parse_span};
use crate::keys::records::FindKey;
use crate::keys::{KeyFigures, NewKey, records};
use crate::mail::sources::ListSourceStatuses;
use crate::operator::Operator;
use crate::operator::partner::{self, KeyPartner, NotRotated};
use crate::people::erasures::ErasureLog;
use crate::random;

#[derive(Subcommand)]
pub(super) enum KeysCommand {
    /// Issue a key to a partner. Only the key is printed to standard output, once: only its hash is stored.
    Issue(IssueKey),
    /// List all keys, without their secrets.
    List(ListKeys),
    /// Revoke a key right away.
    Revoke(RevokeKey),
    /// Issue a successor to a key, with the same partner and limit, and let the old one expire.
    Rotate(RotateKey),
}

#[derive(Args)]
pub(super) struct IssueKey {
    /// The partner's name. People read it in the mail that asks them to confirm.
    name: PartnerName,
    /// Agent actions a minute for this key [default: the server's UNIONHALL_KEY_PER_MINUTE].
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, 1_000_000))]
    per_minute: Option<u32>,
    /// The day (2027-01-31) or the moment (2027-01-31T18:00:00Z) from which the key no longer works.
    #[arg(long, value_name = "DATE")]
    expires: Option<Timestamp>,
    /// Make a new partner even if there is one whose name differs only in case or spaces.
    #[arg(long)]
    new_partner: bool,
    /// Make records where there are none: for a key that is issued before the service's first start.
    #[arg(long)]
    new: bool,
    /// A test key: the whole service on records of its own, where no one is real and no mail is sent. The first one makes them.
    #[arg(long)]
    test: bool,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct ListKeys {
    /// As a JSON array, for programs.
    #[arg(long)]
    json: bool,
    /// The test keys, and what came of them in the sandbox.
    #[arg(long)]
    test: bool,
    /// What keys without a figure of their own are shown with; the server reads the same setting.
    #[arg(long, env = "UNIONHALL_KEY_PER_MINUTE", value_name = "N", default_value_t = 30, value_parser = whole::<u32>(1, 1_000_000))]
    key_per_minute: u32,
    #[command(flatten)]
    budget: MailBudgetSettings,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct RevokeKey {
    /// The key's id, as `keys list` shows it; the key itself will do.
    id: NamedKey,
    /// It is a test key's.
    #[arg(long)]
    test: bool,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct RotateKey {
    /// The id of the key to replace; the key itself will do.
    id: NamedKey,
    /// It is a test key's.
    #[arg(long)]
    test: bool,
    /// How long the old key still works: 24h, 30m, 7d, 0s.
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = grace)]
    grace: Duration,
    /// The day or the moment from which the new key no longer works [default: as the old one].
    #[arg(long, value_name = "DATE")]
    expires: Option<Timestamp>,
    #[command(flatten)]
    store: StoreSettings,
}

/// A key as the operator names it.
#[derive(Clone, Copy)]
struct NamedKey {
    id: KeyId,
    /// Whether the whole key was given, and is a test key.
    is_test: bool,
}

impl std::str::FromStr for NamedKey {
    type Err = NotAKeyId;

    fn from_str(text: &str) -> Result<Self, NotAKeyId> {
        Ok(Self { id: text.parse()?, is_test: ApiKey::parse(text).is_ok_and(|key| key.mode() == Mode::Test) })
    }
}

impl NamedKey {
    fn mode(self, test: bool) -> Mode {
        Mode::of_flag(test || self.is_test)
    }
}

pub(super) fn run(command: KeysCommand) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    match command {
        KeysCommand::Issue(task) => issue(task, now),
        KeysCommand::List(task) => list(&task, now),
        KeysCommand::Revoke(task) => revoke(&task, now),
        KeysCommand::Rotate(task) => rotate(&task, now),
    }
}

fn grace(text: &str) -> Result<Duration, String> {
    parse_span(text).ok_or_else(|| "write a time such as 24h, 30m, 7d or 0s".to_owned())
}

fn issue(task: IssueKey, now: Timestamp) -> anyhow::Result<()> {
    if task.expires.is_some_and(|end| end <= now) {
        bail!("--expires lies in the past: the key would never work");
    }
    let mode = Mode::of_flag(task.test);
    let key = ApiKey::of_mode(mode, &random::bytes()?);
    let records = task.store.records()?;
    // Where there is a union there may be a sandbox.
    let prepare = if task.new || task.test { Prepare::Make } else { Prepare::Expect };
    if let Records::Sqlite(file) = &records
        && !task.new
        && matches!(file.try_exists(), Ok(false))
    {
        bail!(
            "there are no records at {records}, so no key was issued; give the service's data folder with --data or \
             UNIONHALL_DATA, or make new records there with --new"
        );
    }
    if task.test && !task.new {
        // The live ones are there, then.
        with_live_records(&task.store, async |_| Ok(()))?;
    }
    let partner = with_records(&task.store, mode, prepare, async |operator| {
        let partner = partner_of(&task, &operator).await?;
        let name = partner.as_str().to_owned();
        let new = NewKey { partner, per_minute: task.per_minute, expires_at: task.expires };
        let act = act("keys issue", format!("key {} for {name}", key.id()), now);
        operator.audited(act).keys().issue(&key, new, now).await?;
        Ok(name)
    })?;
    let kind = if task.test { "Test key" } else { "Key" };
    print_aside(&format!("{kind} {} for {partner}. It is shown only now; keep it safe:", key.id()));
    print_key(&key)
}

/// Shows a key, this once.
fn print_key(key: &ApiKey) -> anyhow::Result<()> {
    let unseen = || format!("key {} was issued and could not be shown; revoke it and issue another", key.id());
    print_line(key.reveal()).with_context(unseen)
}

/// The partner that a new key is for. A name that looks like another partner's is more often a slip than a second partner, so the
/// operator is asked which is meant.
async fn partner_of(task: &IssueKey, operator: &Operator) -> anyhow::Result<PartnerName> {
    let name = &task.name;
    let found = match operator.find_key_partner(name).await? {
        KeyPartner::Known(_) if task.new_partner => {
            bail!("there is a partner {} already, so no key was issued; leave out --new-partner", name.as_str())
        }
        KeyPartner::Known(exact) => exact,
        KeyPartner::New => return Ok(name.clone()),
        KeyPartner::Alike(_) if task.new_partner => return Ok(name.clone()),
        KeyPartner::Alike(mut alike) => match &alike[..] {
            [one] if is_meant(task, &one.name)? => alike.swap_remove(0),
            [_] => return Ok(name.clone()),
            several => {
                let names: Vec<_> = several.iter().map(|partner| partner.name.as_str()).collect();
                bail!(
                    "there are the partners {}, so no key was issued; write the name of the one that you mean, or make another \
                     with --new-partner",
                    names.join(", ")
                )
            }
        },
    };
    if found.suspended_at.is_some() {
        bail!(
            "{} is suspended, so no key was issued, for none would work; {}",
            found.name,
            remedy::write(&Remedy::ResumePartner(found.name.clone()), operator.mode)
        );
    }
    PartnerName::kept(&found.name).context("the partner has no name")
}

/// Whether the partner `alike` is meant and not a new one; refuses where nobody can be asked.
fn is_meant(task: &IssueKey, alike: &str) -> anyhow::Result<bool> {
    let name = task.name.as_str();
    let question =
        format!("There is a partner {alike}. Issue the key to it, or make a new partner {name}? [existing/new]");
    match terminal::ask(&question)?.as_deref() {
        Some("existing") => Ok(true),
        Some("new") => Ok(false),
        Some(_) => bail!("no key was issued: answer existing or new"),
        None => {
            let (alike_argument, name, test) = (quoted(alike), quoted(name), flag(Mode::of_flag(task.test)));
            bail!(
                "there is a partner {alike}, so no key was issued; `unionhall keys issue {alike_argument}{test}` issues one to it, \
                 `unionhall keys issue {name} --new-partner{test}` makes another partner"
            )
        }
    }
}

fn list(task: &ListKeys, now: Timestamp) -> anyhow::Result<()> {
    let (keys, sources) = with_records(&task.store, Mode::of_flag(task.test), Prepare::Expect, async |operator| {
        Ok((operator.ask(records::ListKeys).await?, operator.ask(ListSourceStatuses(now)).await?))
    })?;
    let budget = task.budget.budget();
    // The budget is the partner's, over all its keys.
    let mail = |key: &KeyRecord| {
        let source = sources.iter().find(|source| source.source == key.partner.as_str()).cloned().unwrap_or_default();
        let may = budget.quota(key.partner.as_str(), source.fixed, &source.reputation);
        (source, may)
    };
    if task.json {
        let row = |(key, figures): &(KeyRecord, KeyFigures)| as_json(key, figures, task.key_per_minute, mail(key));
        return print_json(&Vec::from_iter(keys.iter().map(row)));
    }
    let none = format!("No keys yet. `unionhall keys issue NAME{}` issues one.", flag(Mode::of_flag(task.test)));
    let headings = "ID        STATE        A MIN  SIGN-UPS  CONFIRMED  DECLINED   MAIL TODAY   HELD  \
                    CREATED               EXPIRES               LAST USED             PARTNER";
    print_table(&keys, &none, headings, |(key, KeyFigures { signed_up, confirmed, declined })| {
        let (id, state, partner) = (key.id.as_str(), key.status(now).name(), key.partner.as_str());
        let per_minute = key.per_minute.unwrap_or(task.key_per_minute);
        let (source, may) = mail(key);
        let (today, held) = (source.reputation.mailed_today, source.held_text());
        let today = may.map_or_else(|| today.to_string(), |may| format!("{today}/{may}"));
        let created = key.created_at.to_string();
        let [expires, used] = [key.expires_at, key.last_used_at].map(time_or_dash);
        format!(
            "{id:<10}{state:<11}{per_minute:>7}{signed_up:>10}{confirmed:>11}{declined:>10}{today:>13}{held:>7}  \
             {created:<22}{expires:<22}{used:<22}{partner}"
        )
    })
}

/// With the mail that the partner's keys caused, and how much they may today.
fn as_json(
    key: &KeyRecord,
    figures: &KeyFigures,
    default_per_minute: u32,
    (mail, may): (SourceStatus, Option<u64>),
) -> serde_json::Value {
    json!({
        "id": key.id.as_str(),
        "partner": key.partner.as_str(),
        "perMinute": key.per_minute.unwrap_or(default_per_minute),
        "perMinuteIsDefault": key.per_minute.is_none(),
        "createdAt": key.created_at,
        "expiresAt": key.expires_at,
        "lastUsedAt": key.last_used_at,
        "revokedAt": key.revoked_at,
        "partnerSuspendedAt": key.suspended_at,
        "signUps": figures.signed_up,
        "confirmed": figures.confirmed,
        "declined": figures.declined,
        "partnerMailedToday": mail.reputation.mailed_today,
        "partnerMailBudgetToday": may,
        "partnerHeld": mail.held,
    })
}

/// The key of that id.
pub(super) async fn find(operator: &Operator, id: KeyId) -> anyhow::Result<KeyRecord> {
    Ok(operator.ask(FindKey(id)).await?.ok_or(NotRotated::Unknown(id))?)
}

fn revoke(task: &RevokeKey, now: Timestamp) -> anyhow::Result<()> {
    let (id, mode) = (task.id.id, task.id.mode(task.test));
    let act = act("keys revoke", format!("key {id}"), now);
    let log = ErasureLog::beside(&task.store.data);
    let (revoked, noted) = with_records(&task.store, mode, Prepare::Expect, async |operator| {
        let revoked = operator.audited(act).run(records::RevokeKey(id, now)).await?.ok_or(NotRotated::Unknown(id))?;
        // The sandbox is in no backup.
        let noted = match mode {
            Mode::Live => log.note_revoked(id, revoked.key.revoked_at.unwrap_or(now)).await,
            Mode::Test => Ok(()),
        };
        Ok((revoked, noted))
    })?;
    print_lines(&partner::revoked(&revoked, mode, now))?;
    partner::after_revoking(&revoked.key, mode, remedy::write).iter().for_each(|line| print_aside(line));
    if let Err(error) = noted {
        print_aside(&format!("unionhall: {error}"));
    }
    Ok(())
}

fn rotate(task: &RotateKey, now: Timestamp) -> anyhow::Result<()> {
    let (id, mode) = (task.id.id, task.id.mode(task.test));
    let key = ApiKey::of_mode(mode, &random::bytes()?);
    let act = act("keys rotate", format!("key {id} by {}", key.id()), now);
    let rotated = with_records(&task.store, mode, Prepare::Expect, async |operator| {
        Ok(operator.audited(act).keys().rotate(id, &key, task.grace, task.expires, false, now).await?)
    })?;
    print_aside(&format!("Key {} replaces {id}, which works until {}.", key.id(), rotated.old_ends));
    if let Some(new_ends) = rotated.new_ends {
        print_aside(&format!("The new key itself works until {new_ends}; --expires gives another day."));
    }
    print_aside("It is shown only now; keep it safe:");
    print_key(&key)
}
