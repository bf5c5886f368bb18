//! `unionhall signups`

use clap::{Args, Subcommand};
use serde_json::json;

use super::audit::act;
use super::{print_line, with_live_records};
use crate::clock::Clock;
use crate::config::{MailBudgetSettings, StoreSettings};
use crate::domain::mail::budget::{FORM, MailBudget, SourceStatus, source_name};

#[derive(Debug, Subcommand)]
pub(super) enum SignupsCommand {
    /// Switch the agent actions off: they answer `backend_not_configured` until sign-ups are resumed.
    Pause(StoreSettings),
    /// Switch the agent actions on again.
    Resume(StoreSettings),
    /// Show whether sign-ups are taken, and for each source how much mail it caused, may cause and has held.
    Status(ShowStatus),
}

#[derive(Debug, Args)]
pub(super) struct ShowStatus {
    /// As a JSON object, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    budget: MailBudgetSettings,
    #[command(flatten)]
    store: StoreSettings,
}

pub(super) fn run(command: SignupsCommand) -> anyhow::Result<()> {
    let (settings, pause) = match command {
        SignupsCommand::Pause(settings) => (settings, true),
        SignupsCommand::Resume(settings) => (settings, false),
        SignupsCommand::Status(task) => return status(&task),
    };
    let now = Clock::start().now().time;
    let act = act(if pause { "signups pause" } else { "signups resume" }, String::new(), now);
    let changed =
        with_live_records(&settings, async |operator| Ok(operator.audited(act).pause_sign_ups(pause).await?))?;
    print_line(match (pause, changed) {
        (true, true) => "Sign-ups are paused. `unionhall signups resume` switches them on again.",
        (true, false) => "Sign-ups were paused already.",
        (false, true) => "Sign-ups are on again.",
        (false, false) => "Sign-ups were on already.",
    })
}

fn status(task: &ShowStatus) -> anyhow::Result<()> {
    let (now, budget) = (Clock::start().now().time, task.budget.budget());
    let (paused, mut sources) = with_live_records(&task.store, async |operator| {
        Ok((operator.are_sign_ups_paused().await?, operator.source_statuses(now).await?))
    })?;
    if !sources.iter().any(|source| source.source == FORM) {
        sources.insert(0, SourceStatus { source: FORM.to_owned(), reputation: Default::default(), held: 0 });
    }
    if task.json {
        let sources: Vec<_> = sources.iter().map(|source| as_json(source, &budget)).collect();
        return print_line(&serde_json::to_string_pretty(&json!({ "paused": paused, "sources": sources }))?);
    }
    print_line(if paused { "Sign-ups are paused." } else { "Sign-ups are taken." })?;
    print_line("")?;
    print_line(&format!(
        "{:<8}{:>8}{:>8}{:>8}{:>12}{:>11}{:>10}  SOURCE",
        "STATE", "TODAY", "MAY", "HELD", "CONFIRMED", "UNWANTED", "MAILED"
    ))?;
    for source in &sources {
        let SourceStatus { reputation, held, .. } = source;
        let may = budget.quota(&source.source, reputation).map_or_else(|| "-".to_owned(), |quota| quota.to_string());
        print_line(&format!(
            "{:<8}{:>8}{may:>8}{held:>8}{:>12}{:>11}{:>10}  {}",
            state(source, &budget),
            reputation.mailed_today,
            reputation.confirmed,
            reputation.unwanted,
            reputation.mailed_before + reputation.mailed_today,
            source_name(&source.source),
        ))?;
    }
    print_line("")?;
    print_line("TODAY and MAY are mails of this day (UTC); the last three columns are of the last seven.")
}

fn state(source: &SourceStatus, budget: &MailBudget) -> &'static str {
    if budget.holds(&source.source, &source.reputation) { "throttled" } else { "open" }
}

fn as_json(source: &SourceStatus, budget: &MailBudget) -> serde_json::Value {
    let reputation = &source.reputation;
    json!({
        "source": if source.source == FORM { "form" } else { "partner" },
        "partner": Some(&source.source).filter(|source| *source != FORM),
        "state": state(source, budget),
        "mailedToday": reputation.mailed_today,
        "mailBudgetToday": budget.quota(&source.source, reputation),
        "held": source.held,
        "mailed7d": reputation.mailed_before + reputation.mailed_today,
        "confirmed7d": reputation.confirmed,
        "unwanted7d": reputation.unwanted,
    })
}
