//! `unionhall mail`

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::json;

use super::{say, with_store};
use crate::clock::Clock;
use crate::config::StoreSettings;
use crate::domain::api_key::KeyId;
use crate::domain::mail::{HeldMail, MailId, WaitingMail};
use crate::store::migration::Prepare;

#[derive(Debug, Subcommand)]
pub(super) enum MailCommand {
    /// List the mail that waits, without addresses: how often it was tried, and why it did not go.
    List(ListMail),
    /// Try a mail again at once, even one that was given up, is held, or whose mailbox has had its share.
    Retry(RetryMail),
    /// Let mail go that is held, such as what a key asked for before it was revoked. Each person has the whole week to confirm.
    Release(HeldChoice),
    /// Delete mail that is held. Nobody is told; the sign-ups lapse.
    Drop(HeldChoice),
}

#[derive(Debug, Args)]
pub(super) struct HeldChoice {
    /// Only what was asked for with this key.
    #[arg(long, value_name = "ID", conflicts_with = "form")]
    key: Option<KeyId>,
    /// Only what was asked for by the form.
    #[arg(long)]
    form: bool,
    #[command(flatten)]
    store: StoreSettings,
}

impl HeldChoice {
    fn which(&self) -> HeldMail {
        match (self.key, self.form) {
            (Some(key), _) => HeldMail::OfKey(key),
            (None, true) => HeldMail::OfTheForm,
            (None, false) => HeldMail::All,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ListMail {
    /// As a JSON array, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Debug, Args)]
pub(super) struct RetryMail {
    /// The mail's number, as `mail list` shows it.
    id: i64,
    #[command(flatten)]
    store: StoreSettings,
}

pub(super) fn run(command: MailCommand) -> anyhow::Result<()> {
    match command {
        MailCommand::List(task) => list(&task),
        MailCommand::Retry(task) => retry(&task),
        MailCommand::Release(task) => release(&task),
        MailCommand::Drop(task) => drop_held(&task),
    }
}

fn list(task: &ListMail) -> anyhow::Result<()> {
    let mails = with_store(&task.store, Prepare::Expect, async |store| Ok(store.list_mail().await?))?;
    if task.json {
        let rows: Vec<_> = mails.iter().map(as_json).collect();
        return say(&serde_json::to_string_pretty(&rows)?);
    }
    if mails.is_empty() {
        return say("The outbox is empty.");
    }
    say(&format!("{:<8}{:<16}{:<22}{:<22}{:>6}  LAST ERROR", "ID", "KIND", "ASKED FOR", "NEXT TRY", "TRIES"))?;
    for mail in &mails {
        let next = match (mail.given_up_at, mail.held_at) {
            (Some(_), _) => "given up".to_owned(),
            (None, Some(_)) => "held".to_owned(),
            (None, None) => mail.send_after.to_string(),
        };
        say(&format!(
            "{:<8}{:<16}{:<22}{next:<22}{:>6}  {}",
            mail.id.0,
            mail.kind.name(),
            mail.created_at.to_string(),
            mail.attempts,
            mail.last_error.as_deref().unwrap_or("-"),
        ))?;
    }
    Ok(())
}

fn as_json(mail: &WaitingMail) -> serde_json::Value {
    json!({
        "id": mail.id.0,
        "kind": mail.kind.name(),
        "createdAt": mail.created_at.to_string(),
        "sendAfter": mail.send_after.to_string(),
        "attempts": mail.attempts,
        "lastError": mail.last_error,
        "givenUpAt": mail.given_up_at.map(|time| time.to_string()),
        "heldAt": mail.held_at.map(|time| time.to_string()),
    })
}

fn retry(task: &RetryMail) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    if !with_store(&task.store, Prepare::Expect, async |store| Ok(store.retry_mail(MailId(task.id), now).await?))? {
        bail!("there is no mail {} in the outbox; `unionhall mail list` shows what waits", task.id);
    }
    say(&format!("Mail {} is tried again now.", task.id))
}

fn release(task: &HeldChoice) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    let which = task.which();
    let count = with_store(&task.store, Prepare::Expect, async |store| Ok(store.release_held(which, now).await?))?;
    say(&match count {
        0 => "No such mail is held.".to_owned(),
        1 => "1 mail goes as soon as its mailbox may get one.".to_owned(),
        _ => format!("{count} mails go, each as soon as its mailbox may get one."),
    })
}

fn drop_held(task: &HeldChoice) -> anyhow::Result<()> {
    let which = task.which();
    let count = with_store(&task.store, Prepare::Expect, async |store| Ok(store.drop_held(which).await?))?;
    say(&match count {
        0 => "No such mail is held.".to_owned(),
        1 => "1 mail was deleted.".to_owned(),
        _ => format!("{count} mails were deleted."),
    })
}
