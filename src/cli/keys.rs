//! `unionhall keys`

use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::json;

use super::{random, say, with_store};
use crate::clock::Clock;
use crate::config::{Records, StoreSettings};
use crate::domain::api_key::{ApiKey, KeyId, KeyRecord, PartnerName, Standing};
use crate::domain::time::Timestamp;

#[derive(Debug, Subcommand)]
pub(super) enum Task {
    /// Issue a key to a partner. The key alone goes to standard output, once: only its hash is kept.
    Issue(Issue),
    /// List all keys, without their secrets.
    List(List),
    /// End a key at once.
    Revoke(Revoke),
    /// Issue a successor to a key, with the same partner and limit, and let the old one run out.
    Rotate(Rotate),
}

#[derive(Debug, Args)]
pub(super) struct Issue {
    /// The partner's name. People read it in the mail that asks them to confirm.
    name: PartnerName,
    /// Agent actions a minute for this key [default: the server's UNIONHALL_KEY_PER_MINUTE].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    per_minute: Option<u32>,
    /// The day (2027-01-31) or the moment (2027-01-31T18:00:00Z) from which the key no longer works.
    #[arg(long, value_name = "DATE")]
    expires: Option<Timestamp>,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// As a JSON array, for programs.
    #[arg(long)]
    json: bool,
    /// What keys without a figure of their own are shown with; the server reads the same setting.
    #[arg(long, env = "UNIONHALL_KEY_PER_MINUTE", value_name = "N", default_value_t = 30)]
    key_per_minute: u32,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Debug, Args)]
pub(super) struct Revoke {
    /// The key's id, as `keys list` shows it.
    id: KeyId,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Debug, Args)]
pub(super) struct Rotate {
    /// The id of the key to replace.
    id: KeyId,
    /// How long the old key still works: 24h, 30m, 7d, 0s.
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = humantime::parse_duration)]
    grace: Duration,
    /// The day or the moment from which the new key no longer works [default: as the old one].
    #[arg(long, value_name = "DATE")]
    expires: Option<Timestamp>,
    #[command(flatten)]
    store: StoreSettings,
}

pub(super) fn run(task: Task) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    match task {
        Task::Issue(task) => issue(task, now),
        Task::List(task) => list(&task, now),
        Task::Revoke(task) => revoke(&task, now),
        Task::Rotate(task) => rotate(&task, now),
    }
}

fn issue(task: Issue, now: Timestamp) -> anyhow::Result<()> {
    if task.expires.is_some_and(|end| end <= now) {
        bail!("--expires lies in the past: the key would never work");
    }
    let key = new_key()?;
    let record = record(&key, task.name, task.per_minute, task.expires, now);
    let partner = record.partner.as_str().to_owned();
    let records = task.store.records()?;
    let new = matches!(&records, Records::Sqlite(file) if !file.exists());
    with_store(&task.store, true, async |store| Ok(store.issue_key(record).await?))?;
    if new {
        eprintln!("There were no records yet; they were made at {records}.");
    }
    eprintln!("Key {} for {partner}. It is shown only now; keep it safe:", key.id());
    say(key.reveal())
}

fn list(task: &List, now: Timestamp) -> anyhow::Result<()> {
    let keys = with_store(&task.store, false, async |store| Ok(store.list_keys().await?))?;
    if task.json {
        let rows: Vec<_> = keys.iter().map(|(key, declined)| as_json(key, *declined, task.key_per_minute)).collect();
        return say(&serde_json::to_string_pretty(&rows)?);
    }
    if keys.is_empty() {
        return say("No keys yet. `unionhall keys issue NAME` issues one.");
    }
    say(&format!(
        "{:<10}{:<9}{:>7}{:>10}  {:<22}{:<22}{:<22}PARTNER",
        "ID", "STATE", "A MIN", "DECLINED", "CREATED", "EXPIRES", "LAST USED"
    ))?;
    for (key, declined) in &keys {
        let state = match key.standing(now) {
            Standing::Valid => "valid",
            Standing::Expired => "expired",
            Standing::Revoked => "revoked",
        };
        let time = |time: Option<Timestamp>| time.map_or_else(|| "-".to_owned(), |time| time.to_string());
        say(&format!(
            "{:<10}{state:<9}{:>7}{declined:>10}  {:<22}{:<22}{:<22}{}",
            key.id.as_str(),
            key.per_minute.unwrap_or(task.key_per_minute),
            key.created_at.to_string(),
            time(key.expires_at),
            time(key.last_used_at),
            key.partner.as_str(),
        ))?;
    }
    Ok(())
}

fn as_json(key: &KeyRecord, declined: u64, default_per_minute: u32) -> serde_json::Value {
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
    json!({
        "id": key.id.as_str(),
        "partner": key.partner.as_str(),
        "perMinute": key.per_minute.unwrap_or(default_per_minute),
        "perMinuteIsDefault": key.per_minute.is_none(),
        "createdAt": key.created_at.to_string(),
        "expiresAt": time(key.expires_at),
        "lastUsedAt": time(key.last_used_at),
        "revokedAt": time(key.revoked_at),
        "declined": declined,
    })
}

fn revoke(task: &Revoke, now: Timestamp) -> anyhow::Result<()> {
    let found = with_store(&task.store, false, async |store| Ok(store.revoke_key(task.id, now).await?))?;
    let key = found.with_context(|| no_such_key(task.id))?;
    let at = key.revoked_at.unwrap_or(now);
    let before = if at < now { format!(" already, at {at}") } else { String::new() };
    say(&format!("Key {} of {} is revoked{before}.", key.id, key.partner.as_str()))
}

fn rotate(task: &Rotate, now: Timestamp) -> anyhow::Result<()> {
    let key = new_key()?;
    let end = now.plus(task.grace);
    let (old_ends, new_ends) = with_store(&task.store, false, async |store| {
        let old = store.find_key(task.id).await?.with_context(|| no_such_key(task.id))?;
        if old.standing(now) != Standing::Valid {
            bail!("key {} no longer works, so there is nothing to rotate; issue a new key", task.id);
        }
        let new_ends = task.expires.or(old.expires_at);
        let successor = record(&key, old.partner, old.per_minute, new_ends, now);
        if !store.rotate_key(task.id, end, successor).await? {
            bail!("key {} was revoked meanwhile; issue a new key", task.id);
        }
        Ok((old.expires_at.map_or(end, |before| before.min(end)), new_ends))
    })?;
    eprintln!("Key {} replaces {}, which works until {old_ends}.", key.id(), task.id);
    if let Some(new_ends) = new_ends {
        eprintln!("The new key itself works until {new_ends}; --expires gives another day.");
    }
    eprintln!("It is shown only now; keep it safe:");
    say(key.reveal())
}

fn new_key() -> anyhow::Result<ApiKey> {
    Ok(ApiKey::from_random(&random()?))
}

fn record(
    key: &ApiKey,
    partner: PartnerName,
    per_minute: Option<u32>,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> KeyRecord {
    KeyRecord {
        id: key.id(),
        partner,
        hash: key.hash(),
        per_minute,
        created_at: now,
        expires_at,
        last_used_at: None,
        revoked_at: None,
    }
}

fn no_such_key(id: KeyId) -> String {
    format!("there is no key {id}; `unionhall keys list` shows them")
}
