//! `unionhall mail`

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::json;

use super::{say, with_store};
use crate::clock::Clock;
use crate::config::StoreSettings;
use crate::domain::mail::{MailId, WaitingMail};
use crate::store::migration::Prepare;

#[derive(Debug, Subcommand)]
pub(super) enum MailCommand {
    /// List the mail that waits, without addresses: how often it was tried, and why it did not go.
    List(ListMail),
    /// Try a mail again, even one that was given up; not more often than its mailbox may get mail.
    Retry(RetryMail),
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
        let next = mail.given_up_at.map_or_else(|| mail.send_after.to_string(), |_| "given up".to_owned());
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
    })
}

fn retry(task: &RetryMail) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    if !with_store(&task.store, Prepare::Expect, async |store| Ok(store.retry_mail(MailId(task.id), now).await?))? {
        bail!("there is no mail {} in the outbox; `unionhall mail list` shows what waits", task.id);
    }
    say(&format!("Mail {} is tried again as soon as its mailbox may get one.", task.id))
}
