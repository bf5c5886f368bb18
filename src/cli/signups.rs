//! `unionhall signups`

use clap::Subcommand;

use super::{say, with_store};
use crate::config::StoreSettings;
use crate::store::migration::Prepare;

#[derive(Debug, Subcommand)]
pub(super) enum SignupsCommand {
    /// Switch the agent actions off: they answer `backend_not_configured` until sign-ups are resumed.
    Pause(StoreSettings),
    /// Switch the agent actions on again.
    Resume(StoreSettings),
}

pub(super) fn run(command: SignupsCommand) -> anyhow::Result<()> {
    let (settings, pause) = match command {
        SignupsCommand::Pause(settings) => (settings, true),
        SignupsCommand::Resume(settings) => (settings, false),
    };
    let changed = with_store(&settings, Prepare::Expect, async |store| Ok(store.pause_sign_ups(pause).await?))?;
    say(match (pause, changed) {
        (true, true) => "Sign-ups are paused. `unionhall signups resume` switches them on again.",
        (true, false) => "Sign-ups were paused already.",
        (false, true) => "Sign-ups are on again.",
        (false, false) => "Sign-ups were on already.",
    })
}
