//! `unionhall audit`, and how every other command that changes something signs.

use clap::Args;
use serde_json::json;

use super::{Prepare, print_line, with_records};
use crate::config::StoreSettings;
use crate::domain::api_key::Mode;
use crate::domain::time::Timestamp;
use crate::operator::{Act, AuditEntry};

#[derive(Debug, Args)]
pub(super) struct ShowAudit {
    /// Only what was done from that day (2027-01-31) or moment (2027-01-31T18:00:00Z) on.
    #[arg(long, value_name = "DATE")]
    since: Option<Timestamp>,
    /// Only what was done before that day or moment: `--since 2027-01-01 --until 2027-02-01` is January (UTC).
    #[arg(long, value_name = "DATE")]
    until: Option<Timestamp>,
    /// Only what this user did: the whole name, as the column WHO shows it. `the member`: what members did on their own page.
    #[arg(long, value_name = "WHO")]
    by: Option<String>,
    /// Only where the column ABOUT contains this text, such as a key's id, an account or a partner's name; in any case of letters.
    #[arg(long, value_name = "TEXT")]
    about: Option<String>,
    /// What commands changed in the sandbox, whose log is its own.
    #[arg(long)]
    test: bool,
    /// As JSON Lines, an object a line, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreSettings,
}

/// What somebody does at this moment with a command; `about` never holds an address.
pub(super) fn act(command: &'static str, about: String, now: Timestamp) -> Act {
    Act { who: who(), command, about, at: now, change: None }
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
    let until = task.until.unwrap_or(Timestamp::from_millis(i64::MAX));
    let about = task.about.as_ref().map(|text| text.to_lowercase());
    let is_asked_for = |entry: &AuditEntry| {
        task.by.as_ref().is_none_or(|who| entry.who == *who)
            && about.as_ref().is_none_or(|text| entry.about.to_lowercase().contains(text))
    };
    with_records(&task.store, Mode::of_flag(task.test), Prepare::Expect, async |operator| {
        let (mut last, mut listed) = (0, 0);
        loop {
            let entries = operator.audit_entries(since, until, last, PAGE).await?;
            let Some(end) = entries.last() else { break };
            last = end.id;
            for entry in entries.iter().filter(|entry| is_asked_for(entry)) {
                if listed == 0 && !task.json {
                    print_line(&format!("{:<22}{:<16}{:<22}ABOUT", "WHEN", "WHO", "COMMAND"))?;
                }
                listed += 1;
                let (at, who, command, about) = (entry.at.to_string(), &entry.who, &entry.command, &entry.about);
                print_line(&match task.json {
                    true => json!({ "at": at, "who": who, "command": command, "about": about }).to_string(),
                    false => format!("{at:<22}{who:<15} {command:<21} {about}"),
                })?;
            }
        }
        match listed == 0 && !task.json {
            true if task.by.is_some() || task.about.is_some() => print_line("Nothing in the log matches."),
            true => print_line("Nothing was changed with a command in that time."),
            false => Ok(()),
        }
    })
}
