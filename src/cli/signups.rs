//! `unionhall signups`

use std::time::Duration;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::json;

use super::audit::act;
use super::{change, keys, print_aside, print_json, print_line, with_live_records};
use crate::clock::Clock;
use crate::config::{MailBudgetSettings, StoreSettings};
use crate::domain::api_key::{KeyId, KeyStatus};
use crate::domain::mail::budget::{FORM, MailBudget, SourceStatus, source_name};
use crate::domain::time::Timestamp;
use crate::installation::{AreSignUpsPaused, PauseSignUps};
use crate::mail::sources::ListSourceStatuses;
use crate::operator::{WithdrawOf, partner};

#[derive(Subcommand)]
pub(super) enum SignupsCommand {
    /// Turn the agent actions off: they answer `backend_not_configured` until sign-ups are resumed.
    Pause(StoreSettings),
    /// Turn the agent actions on again.
    Resume(StoreSettings),
    /// End the sign-ups of a leaked key that wait to be confirmed. Nobody is told.
    ///
    /// Links that were mailed then lead to the page of an expired sign-up, and mail that has not left is deleted. Who has confirmed
    /// stays a member. Revoke the key first: one that works is refused. The service takes up to two seconds to notice the
    /// revocation; running this again ends what came meanwhile.
    Withdraw(WithdrawSignUps),
    /// Show whether sign-ups are taken, and for each source how much mail it caused, may cause and has held.
    Status(ShowStatus),
}

#[derive(Args)]
pub(super) struct ShowStatus {
    /// As a JSON object, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    budget: MailBudgetSettings,
    #[command(flatten)]
    store: StoreSettings,
}

#[derive(Args)]
pub(super) struct WithdrawSignUps {
    /// The key's id, as `keys list` shows it; the key itself will do.
    #[arg(long, value_name = "ID")]
    key: KeyId,
    /// Only what was signed up, or signed up again, from that day (2027-01-31) or moment (2027-01-31T18:00:00Z) on.
    #[arg(long, value_name = "DATE")]
    since: Option<Timestamp>,
    #[command(flatten)]
    store: StoreSettings,
}

pub(super) fn run(command: SignupsCommand) -> anyhow::Result<()> {
    let (settings, pause) = match command {
        SignupsCommand::Pause(settings) => (settings, true),
        SignupsCommand::Resume(settings) => (settings, false),
        SignupsCommand::Withdraw(task) => return withdraw(&task),
        SignupsCommand::Status(task) => return status(&task),
    };
    let now = Clock::start().now().time;
    let act = act(if pause { "signups pause" } else { "signups resume" }, String::new(), now);
    print_line(match (pause, change(&settings, act, PauseSignUps(pause))?) {
        (true, true) => "Sign-ups are paused. `unionhall signups resume` turns them on again.",
        (true, false) => "Sign-ups were already paused.",
        (false, true) => "Sign-ups are on again.",
        (false, false) => "Sign-ups were already on.",
    })
}

fn withdraw(task: &WithdrawSignUps) -> anyhow::Result<()> {
    let (now, key) = (Clock::start().now().time, task.key);
    let (since, about) = match task.since {
        Some(since) => (since, format!("key {key} since {since}")),
        None => (Timestamp::from_millis(0), format!("key {key}")),
    };
    let (ended, just_revoked) = with_live_records(&task.store, async |operator| {
        let found = keys::find(&operator, key).await?;
        if found.status(now) == KeyStatus::Valid {
            bail!(
                "key {key} still works and would sign up more people, so nothing was ended; first run `unionhall keys revoke {key}`"
            );
        }
        let ended = operator
            .audited(act("signups withdraw", about, now))
            .withdraw_sign_ups(WithdrawOf::Key(key), since, now)
            .await?;
        Ok((ended, found.revoked_at.is_some_and(|at| now.since(at) < JUST_REVOKED)))
    })?;
    print_line(&match ended {
        0 if task.since.is_some() => "No sign-up of this key since then waits to be confirmed.".to_owned(),
        0 => "No sign-up of this key waits to be confirmed.".to_owned(),
        _ => partner::withdrawn(ended),
    })?;
    if just_revoked {
        print_aside(
            "The key was revoked within the last minute. Run this again: the service may take two seconds to notice.",
        );
    }
    Ok(())
}

/// A key that was revoked this short a time ago may have signed people up since.
const JUST_REVOKED: Duration = Duration::from_secs(60);

fn status(task: &ShowStatus) -> anyhow::Result<()> {
    let (now, budget) = (Clock::start().now().time, task.budget.budget());
    let (paused, mut sources) = with_live_records(&task.store, async |operator| {
        Ok((operator.ask(AreSignUpsPaused).await?, operator.ask(ListSourceStatuses(now)).await?))
    })?;
    if !sources.iter().any(|source| source.source == FORM) {
        sources.insert(0, SourceStatus { source: FORM.to_owned(), ..SourceStatus::default() });
    }
    if task.json {
        let sources: Vec<_> = sources.iter().map(|source| as_json(source, &budget)).collect();
        return print_json(&json!({ "paused": paused, "sources": sources }));
    }
    print_line(if paused { "Sign-ups are paused." } else { "Sign-ups are on." })?;
    print_line("\nSTATE        TODAY     MAY    HELD    MAILED   CONFIRMED  DECLINED  BOUNCED  COMPLAINED  SOURCE")?;
    for source in &sources {
        let (reputation, held) = (&source.reputation, source.held_text());
        let may = quota(source, &budget).map_or_else(|| "-".to_owned(), |quota| quota.to_string());
        print_line(&format!(
            "{:<10}{:>8}{may:>8}{held:>8}{:>10}{:>12}{:>10}{:>9}{:>12}  {}",
            state(source, &budget),
            reputation.mailed_today,
            reputation.mailed_before + reputation.mailed_today,
            reputation.confirmed,
            reputation.declined,
            reputation.bounced,
            reputation.complained,
            source_name(&source.source),
        ))?;
    }
    print_line("\nTODAY and MAY are mails of this day (UTC); MAILED and the columns after it are of the last seven.")
}

fn state(source: &SourceStatus, budget: &MailBudget) -> &'static str {
    match source.is_suspended {
        true => "suspended",
        false if budget.holds(&source.source, source.fixed, &source.reputation) => "throttled",
        false => "open",
    }
}

fn quota(source: &SourceStatus, budget: &MailBudget) -> Option<u64> {
    budget.quota(&source.source, source.fixed, &source.reputation)
}

fn as_json(source: &SourceStatus, budget: &MailBudget) -> serde_json::Value {
    let reputation = &source.reputation;
    json!({
        "source": if source.source == FORM { "form" } else { "partner" },
        "partner": Some(&source.source).filter(|source| *source != FORM),
        "state": state(source, budget),
        "mailedToday": reputation.mailed_today,
        "mailBudgetToday": quota(source, budget),
        "mailBudgetIsFixed": source.fixed.is_some(),
        "held": source.held,
        "heldInPart": source.held_in_part,
        "mailed7d": reputation.mailed_before + reputation.mailed_today,
        "confirmed7d": reputation.confirmed,
        "unwanted7d": reputation.unwanted(),
        "declined7d": reputation.declined,
        "bounced7d": reputation.bounced,
        "complained7d": reputation.complained,
    })
}
