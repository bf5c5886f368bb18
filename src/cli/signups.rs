//! `unionhall signups`

use clap::{Args, Subcommand};
use serde_json::json;

use super::audit::act;
use super::{say, with_live_records};
use crate::clock::Clock;
use crate::config::{BrakeSettings, StoreSettings};
use crate::domain::mail::brake::{Brake, DoorStanding, FORM, door_name};

#[derive(Debug, Subcommand)]
pub(super) enum SignupsCommand {
    /// Switch the agent actions off: they answer `backend_not_configured` until sign-ups are resumed.
    Pause(StoreSettings),
    /// Switch the agent actions on again.
    Resume(StoreSettings),
    /// Show whether sign-ups are taken, and for each door how much mail it caused, may cause and has held.
    Status(ShowStatus),
}

#[derive(Debug, Args)]
pub(super) struct ShowStatus {
    /// As a JSON object, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    brake: BrakeSettings,
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
    say(match (pause, changed) {
        (true, true) => "Sign-ups are paused. `unionhall signups resume` switches them on again.",
        (true, false) => "Sign-ups were paused already.",
        (false, true) => "Sign-ups are on again.",
        (false, false) => "Sign-ups were on already.",
    })
}

fn status(task: &ShowStatus) -> anyhow::Result<()> {
    let (now, brake) = (Clock::start().now().time, task.brake.brake());
    let (paused, mut doors) = with_live_records(&task.store, async |operator| {
        Ok((operator.are_sign_ups_paused().await?, operator.door_standings(now).await?))
    })?;
    if !doors.iter().any(|door| door.door == FORM) {
        doors.insert(0, DoorStanding { door: FORM.to_owned(), conduct: Default::default(), held: 0 });
    }
    if task.json {
        let doors: Vec<_> = doors.iter().map(|door| as_json(door, &brake)).collect();
        return say(&serde_json::to_string_pretty(&json!({ "paused": paused, "doors": doors }))?);
    }
    say(if paused { "Sign-ups are paused." } else { "Sign-ups are taken." })?;
    say("")?;
    say(&format!(
        "{:<8}{:>8}{:>8}{:>8}{:>12}{:>11}{:>10}  DOOR",
        "STATE", "TODAY", "MAY", "HELD", "CONFIRMED", "UNWANTED", "MAILED"
    ))?;
    for door in &doors {
        let DoorStanding { conduct, held, .. } = door;
        let may = brake.budget(&door.door, conduct).map_or_else(|| "-".to_owned(), |budget| budget.to_string());
        say(&format!(
            "{:<8}{:>8}{may:>8}{held:>8}{:>12}{:>11}{:>10}  {}",
            state(door, &brake),
            conduct.mailed_today,
            conduct.confirmed,
            conduct.unwanted,
            conduct.mailed_before + conduct.mailed_today,
            door_name(&door.door),
        ))?;
    }
    say("")?;
    say("TODAY and MAY are mails of this day (UTC); the last three columns are of the last seven.")
}

fn state(door: &DoorStanding, brake: &Brake) -> &'static str {
    if brake.holds(&door.door, &door.conduct) { "braked" } else { "open" }
}

fn as_json(door: &DoorStanding, brake: &Brake) -> serde_json::Value {
    let conduct = &door.conduct;
    json!({
        "door": if door.door == FORM { "form" } else { "partner" },
        "partner": Some(&door.door).filter(|door| *door != FORM),
        "state": state(door, brake),
        "mailedToday": conduct.mailed_today,
        "mayMailToday": brake.budget(&door.door, conduct),
        "held": door.held,
        "mailed7d": conduct.mailed_before + conduct.mailed_today,
        "confirmed7d": conduct.confirmed,
        "unwanted7d": conduct.unwanted,
    })
}
