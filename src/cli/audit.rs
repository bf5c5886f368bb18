//! `unionhall audit`, and how every other command that changes something signs.

use clap::Args;
use serde_json::json;

use super::{print_line, with_live_records};
use crate::config::StoreSettings;
use crate::domain::time::Timestamp;
use crate::operator::Act;

#[derive(Debug, Args)]
pub(super) struct ShowAudit {
    /// Only what was done from that day (2027-01-31) or moment (2027-01-31T18:00:00Z) on.
    #[arg(long, value_name = "DATE")]
    since: Option<Timestamp>,
    /// As JSON Lines, an object a line, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreSettings,
}

/// What somebody does at this moment with a command; `about` never holds an address.
pub(super) fn act(command: &'static str, about: String, now: Timestamp) -> Act {
    Act { who: who(), command, about, at: now }
}

/// The operator as the system knows them: whoever became root with sudo is still themselves.
fn who() -> String {
    // Names of users hold nothing else; what does was set by hand.
    let is_name = |name: &String| {
        (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-$".contains(c))
    };
    let user = rustix::process::getuid().as_raw();
    let sudo = std::env::var("SUDO_USER").ok().filter(|_| user == 0).filter(is_name);
    sudo.or_else(|| account_name(user).filter(is_name)).unwrap_or_else(|| format!("user {user}"))
}

/// What a user is called on this machine; a variable would say whatever its owner likes.
fn account_name(user: u32) -> Option<String> {
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut accounts = accounts.lines().map(|line| line.split(':'));
    accounts.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(user)).then(|| name.to_owned())
    })
}

/// Rows that are read at a time: the log grows for ever.
const PAGE: u32 = 1000;

pub(super) fn run(task: &ShowAudit) -> anyhow::Result<()> {
    let since = task.since.unwrap_or(Timestamp::from_millis(0));
    with_live_records(&task.store, async |operator| {
        let mut last = 0;
        loop {
            let entries = operator.audit_entries(since, last, PAGE).await?;
            let Some(end) = entries.last() else { break };
            if last == 0 && !task.json {
                print_line(&format!("{:<22}{:<16}{:<20}ABOUT", "WHEN", "WHO", "COMMAND"))?;
            }
            last = end.id;
            for entry in &entries {
                let (at, who, command, about) = (entry.at.to_string(), &entry.who, &entry.command, &entry.about);
                print_line(&match task.json {
                    true => json!({ "at": at, "who": who, "command": command, "about": about }).to_string(),
                    false => format!("{at:<22}{who:<16}{command:<20}{about}"),
                })?;
            }
        }
        match last == 0 && !task.json {
            true => print_line("Nothing was changed with a command in that time."),
            false => Ok(()),
        }
    })
}
