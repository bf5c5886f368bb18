//! `unionhall audit`, and how every other command that changes something signs.

use clap::Args;
use serde_json::json;

use super::{Prepare, print_aside, print_line, print_row, with_records};
use crate::config::StoreSettings;
use crate::domain::api_key::Mode;
use crate::domain::time::Timestamp;
use crate::operator::{Act, AuditEntry, AuditPlace, ListAuditAfter, ListAuditBefore, Operator};

#[derive(Args)]
pub(super) struct ShowAudit {
    /// Everything that was done from that day (2027-01-31) or moment (2027-01-31T18:00:00Z) on, not only the last 100 rows.
    #[arg(long, value_name = "DATE")]
    since: Option<Timestamp>,
    /// Only what was done before that day or moment: `--since 2027-01-01 --until 2027-02-01` is January (UTC).
    #[arg(long, value_name = "DATE")]
    until: Option<Timestamp>,
    /// The whole log, however long it is, not only the last 100 rows.
    #[arg(long, conflicts_with = "since")]
    all: bool,
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

/// Where one person makes a batch and another has to release it (`--two-people`).
pub(super) const NEEDS_ANOTHER: &str =
    "No file was written: another person has to write it, with the same command or on the operator's page.";

/// Users of people have greater numbers on Debian. Who runs as root or as the service got there with sudo, which named them.
const LAST_SYSTEM_USER: u32 = 999;

/// The operator as the system knows them, also after `sudo`.
fn who() -> String {
    // Names of users hold nothing else; what does was set by hand.
    let is_name = |name: &String| {
        (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-$".contains(c))
    };
    let user = rustix::process::getuid().as_raw();
    let sudo = std::env::var("SUDO_USER").ok().filter(|_| user <= LAST_SYSTEM_USER).filter(is_name);
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

/// Rows that are shown where none of `--since` and `--all` asks for more.
const LAST: usize = 100;

/// Rows that are read at a time: the log grows for ever.
const PAGE: u32 = 1000;

pub(super) fn run(task: &ShowAudit) -> anyhow::Result<()> {
    let until = task.until.unwrap_or(Timestamp::from_millis(i64::MAX));
    with_records(&task.store, Mode::of_flag(task.test), Prepare::Expect, async |operator| {
        let printed = match (task.since, task.all) {
            (None, false) => task.print_last(&operator, until).await?,
            (since, _) => task.print_all(&operator, since.unwrap_or(Timestamp::from_millis(0)), until).await?,
        };
        match printed == 0 && !task.json {
            true if task.by.is_some() || task.about.is_some() => print_line("Nothing in the log matches."),
            true => print_line("Nothing was changed with a command in that time."),
            false => Ok(()),
        }
    })
}

impl ShowAudit {
    fn asks_for(&self, entry: &AuditEntry) -> bool {
        let contains = |text: &String| entry.about.to_lowercase().contains(&text.to_lowercase());
        self.by.as_ref().is_none_or(|who| entry.who == *who) && self.about.as_ref().is_none_or(contains)
    }

    /// Prints the last ones before `until`, oldest first; says how many.
    async fn print_last(&self, operator: &Operator, until: Timestamp) -> anyhow::Result<usize> {
        let (mut last, mut before) = (Vec::new(), AuditPlace::start_of(until));
        while last.len() <= LAST {
            let entries =
                operator.ask(ListAuditBefore { since: Timestamp::from_millis(0), before, most: PAGE }).await?;
            let Some(end) = entries.last() else { break };
            before = end.place();
            last.extend(entries.into_iter().filter(|entry| self.asks_for(entry)));
        }
        let has_more = last.len() > LAST;
        last.truncate(LAST);
        for (place, entry) in last.iter().rev().enumerate() {
            self.print(place, entry)?;
        }
        if has_more {
            print_aside(&format!(
                "These are the last {LAST}. `--all` shows the whole log, `--since DATE` a part of it."
            ));
        }
        Ok(last.len())
    }

    /// Prints everything from `since` on and before `until`; says how many.
    async fn print_all(&self, operator: &Operator, since: Timestamp, until: Timestamp) -> anyhow::Result<usize> {
        let (mut printed, mut after) = (0, AuditPlace::start_of(since));
        loop {
            let entries = operator.ask(ListAuditAfter { after, until, most: PAGE }).await?;
            let Some(end) = entries.last() else { return Ok(printed) };
            after = end.place();
            for entry in entries.iter().filter(|entry| self.asks_for(entry)) {
                self.print(printed, entry)?;
                printed += 1;
            }
        }
    }

    /// Prints a row, below the headings where it is the first.
    fn print(&self, place: usize, entry: &AuditEntry) -> anyhow::Result<()> {
        if place == 0 && !self.json {
            print_line(&format!("{:<22}{:<16}{:<22}ABOUT", "WHEN", "WHO", "COMMAND"))?;
        }
        let (at, who, command, about) = (entry.at.to_string(), &entry.who, &entry.command, &entry.about);
        print_row(&match self.json {
            true => json!({ "at": at, "who": who, "command": command, "about": about }).to_string(),
            false => format!("{at:<22}{who:<15} {command:<21} {about}"),
        })
    }
}
