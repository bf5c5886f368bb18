//! `unionhall members export`: people page by page, in constant memory however many there are.

use std::io::{BufWriter, Write};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::cli::audit::act;
use crate::cli::terminal::progress::Bar;
use crate::cli::{print_aside, with_live_records};
use crate::config::StoreSettings;
use crate::domain::csv::{self, WOULD_RUN, WithheldRows};
use crate::domain::person::{NO_TIME, PersonRecord, PersonState};
use crate::domain::time::Timestamp;
use crate::people::records::ListPeopleAfter;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// With a line of headings, for a spreadsheet. Withholds a person of whom a spreadsheet would run a cell as a formula, and names
    /// them by their code on standard error.
    Csv,
    /// JSON Lines, an object a line.
    Jsonl,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    Member,
    Invited,
    Left,
    All,
}

#[derive(Args)]
pub(in crate::cli) struct ExportPeople {
    #[arg(long, value_enum, default_value = "csv")]
    format: ExportFormat,
    /// Whom to write.
    #[arg(long, value_enum, default_value = "member")]
    state: Which,
    #[command(flatten)]
    store: StoreSettings,
}

/// People that are read at a time.
const PAGE: u32 = 1000;

/// A column: its name, and what it holds of a person.
type ExportColumn = (&'static str, fn(&PersonRecord) -> Option<String>);

const COLUMNS: &[ExportColumn] = &[
    ("email", |person| Some(person.email.clone())),
    ("state", |person| Some(person.state.name().to_owned())),
    ("code", |person| Some(person.code.to_string())),
    ("createdAt", |person| known(Some(person.created_at))),
    ("joinedAt", |person| known(person.joined_at)),
    ("leftAt", |person| person.left_at.map(|time| time.to_string())),
    ("partner", |person| person.source.clone().filter(|source| !source.is_empty())),
    ("usState", |person| person.answers.us_state.map(|state| state.code().to_owned())),
    ("categories", |person| Some(person.answers.chosen().to_string())),
    ("referredBy", |person| person.referrer.map(|code| code.to_string())),
    ("membersReferred", |person| Some(person.referred.to_string())),
];

/// A time that was not deleted.
fn known(time: Option<Timestamp>) -> Option<String> {
    time.filter(|time| *time != NO_TIME).map(|time| time.to_string())
}

/// The same as an object; lists and figures are what they are.
pub(super) fn as_json(person: &PersonRecord) -> Value {
    let field = |(name, text): &ExportColumn| {
        let value = match *name {
            "categories" => person.answers.chosen().iter().map(|category| category.slug()).collect::<Vec<_>>().into(),
            "membersReferred" => person.referred.into(),
            _ => json!(text(person)),
        };
        ((*name).to_owned(), value)
    };
    Value::Object(COLUMNS.iter().map(field).collect())
}

pub(super) fn run(task: &ExportPeople, now: Timestamp) -> anyhow::Result<()> {
    let state = match task.state {
        Which::Member => Some(PersonState::Member),
        Which::Invited => Some(PersonState::Invited),
        Which::Left => Some(PersonState::Left),
        Which::All => None,
    };
    let written = with_live_records(&task.store, async |operator| {
        // Before the first line: whoever takes everybody's address along is written down, even if they stop half-way.
        let what = state.map_or("everybody", PersonState::name).to_owned();
        operator.note(act("members export", what, now)).await?;
        let all = operator.member_count().await?;
        let mut bar = Bar::on_terminal(|people| people.to_string()).filter(|_| state == Some(PersonState::Member));
        let mut out = BufWriter::new(std::io::stdout().lock());
        if task.format == ExportFormat::Csv {
            let names: Vec<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
            write!(out, "{}\r\n", names.join(","))?;
        }
        let (mut last, mut done, mut withheld) = (0, 0, WithheldRows::default());
        loop {
            let page = operator.ask(ListPeopleAfter { id: last, state, most: PAGE }).await?;
            let Some(end) = page.last() else { break };
            last = end.id;
            done += page.len() as u64;
            for person in &page {
                match task.format {
                    ExportFormat::Csv => match csv_line(person) {
                        Some(line) => write!(out, "{line}\r\n")?,
                        None => withheld.add(person.code.as_str()),
                    },
                    ExportFormat::Jsonl => writeln!(out, "{}", as_json(person))?,
                }
            }
            if let Some(bar) = &mut bar {
                bar.begin("writing members");
                bar.show(done, all);
            }
        }
        out.flush()?;
        drop(bar);
        Ok((done, withheld))
    });
    let is_gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    match written {
        Ok((people, withheld)) => {
            print_aside(&format!("{} people were written.", people - withheld.rows));
            if !withheld.is_empty() {
                print_aside(&format!(
                    "Withheld, {WOULD_RUN} a cell as a formula: {} ({}). `unionhall members find CODE` shows whose code it is; \
                     `--format jsonl` withholds nobody.",
                    if withheld.rows == 1 { "1 person".to_owned() } else { format!("{} people", withheld.rows) },
                    withheld.ids()
                ));
            }
        }
        // A reader who has gone, such as `head`, is no error.
        Err(error) if error.downcast_ref().is_some_and(is_gone) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// None if it is withheld.
fn csv_line(person: &PersonRecord) -> Option<String> {
    let cells: Vec<_> = COLUMNS.iter().map(|(_, cell)| cell(person).unwrap_or_default()).collect();
    csv::row(&cells.iter().map(String::as_str).collect::<Vec<_>>())
}
