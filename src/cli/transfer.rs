//! `unionhall move`

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use super::audit::act;
use super::terminal::progress::Bar;
use super::{block_on, demo, files, one_thread, open_records, print_line};
use crate::clock::Clock;
use crate::config::Records;
use crate::private_files::folder_of;
use crate::store::audit::AppendAudit;
use crate::store::migration::Prepare;
use crate::store::postgres::PostgresTransfer;
use crate::store::sqlite::SqliteTransfer;
use crate::store::transfer::{self, MoveError, Phase, Progress, Sum, Transfer};
use crate::store::{StoreError, WRITE_BATCH};

#[derive(Args)]
pub(super) struct MoveSettings {
    /// Where the records are: `sqlite:` for the file in the data folder, `sqlite:FILE` or `postgres://…`.
    #[arg(
        long,
        env = "UNIONHALL_MOVE_FROM",
        value_name = "STORE",
        required_unless_present = "from_file",
        hide_env_values = true
    )]
    from: Option<String>,

    /// A file that holds the above, for a password that should be nowhere else.
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    from_file: Option<PathBuf>,

    /// Where they go: a database that is new or empty.
    #[arg(
        long,
        env = "UNIONHALL_MOVE_TO",
        value_name = "STORE",
        required_unless_present = "to_file",
        hide_env_values = true
    )]
    to: Option<String>,

    /// A file that holds the above.
    #[arg(long, value_name = "FILE", conflicts_with = "to")]
    to_file: Option<PathBuf>,

    /// The data folder that `sqlite:` stands for.
    #[arg(long, env = "UNIONHALL_DATA", value_name = "FOLDER", default_value = "data")]
    data: PathBuf,
}

pub(super) fn run(settings: &MoveSettings) -> anyhow::Result<()> {
    let from = records(settings.from.as_deref(), settings.from_file.as_deref(), &settings.data).context("--from")?;
    let to = records(settings.to.as_deref(), settings.to_file.as_deref(), &settings.data).context("--to")?;
    block_on(&one_thread()?, carry(&from, &to, settings))
}

fn records(given: Option<&str>, file: Option<&Path>, data: &Path) -> anyhow::Result<Records> {
    let text = match (given, file) {
        (Some(text), _) => text.to_owned(),
        (None, Some(path)) => {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?
        }
        (None, None) => bail!("a store is missing"),
    };
    Records::parse(&text, data)
}

async fn carry(from: &Records, to: &Records, settings: &MoveSettings) -> anyhow::Result<()> {
    for records in [from, to] {
        if let Records::Sqlite(file) = records {
            demo::folder::refuse(folder_of(file))?;
        }
    }
    if from.to_string() == to.to_string() {
        bail!("the records are in {from} already: --from and --to are the same");
    }
    let mut source = open_source(from).await?;
    let mut target = open_target(to).await?;
    let mut bar = Bar::new(|rows| rows.to_string());
    let copied = transfer::copy(&mut *source, &mut *target, &mut |progress| show(&mut bar, progress)).await;
    let sums = match copied {
        // Perhaps an earlier run came this far and no further.
        Err(MoveError::NotEmpty(found)) => {
            let same = transfer::is_copied(&mut *source, &mut *target, &mut |progress| show(&mut bar, progress)).await;
            bar.end();
            same?.ok_or(MoveError::NotEmpty(found)).with_context(|| to.to_string())?
        }
        copied => {
            bar.end();
            copied.with_context(|| format!("the records stay in {from} and were not moved to {to}"))?
        }
    };
    let retired = source.retire(&to.to_string(), Clock::start().now().time).await;
    retired.map_err(StoreError::from).with_context(|| {
        format!(
            "the copy in {to} is whole, but {from} still takes changes: start neither, and run the same command again"
        )
    })?;
    // They hold what was compared.
    drop((source, target));
    let now = Clock::start().now().time;
    let store = open_records(to, &settings.data, Prepare::Expect, WRITE_BATCH).await?;
    store.run(AppendAudit(act("move", format!("from {from} to {to}"), now))).await?;
    store.close().await?;
    report(from, to, &sums, settings)
}

async fn open_source(records: &Records) -> anyhow::Result<Box<dyn Transfer>> {
    Ok(match records {
        Records::Sqlite(file) if !file.exists() => {
            bail!("there are no records at {records}; give their data folder with --data, or the file in --from")
        }
        Records::Sqlite(file) => Box::new(SqliteTransfer::open_source(file)?),
        Records::Postgres(address) => Box::new(
            PostgresTransfer::open((**address).clone(), Prepare::Expect).await.with_context(|| records.to_string())?,
        ),
    })
}

async fn open_target(records: &Records) -> anyhow::Result<Box<dyn Transfer>> {
    Ok(match records {
        // One that is there is looked at as it is: if it is not this very copy, it is refused.
        Records::Sqlite(file) if file.exists() => Box::new(SqliteTransfer::open_target(file, file)?),
        Records::Sqlite(file) => {
            let unfinished = file.with_extension("moving");
            for leftover in [unfinished.clone(), file.with_extension("moving-wal"), file.with_extension("moving-shm")] {
                match std::fs::remove_file(&leftover) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(error).with_context(|| format!("cannot remove {}", leftover.display()));
                    }
                    _ => {}
                }
            }
            files::make_database_file(&unfinished)?;
            Box::new(SqliteTransfer::open_target(&unfinished, file)?)
        }
        Records::Postgres(address) => Box::new(
            PostgresTransfer::open((**address).clone(), Prepare::Make).await.with_context(|| records.to_string())?,
        ),
    })
}

fn report(from: &Records, to: &Records, sums: &[Sum], settings: &MoveSettings) -> anyhow::Result<()> {
    print_line("TABLE                 ROWS  CHECKSUM, the same in both")?;
    for Sum { table, rows, checksum } in sums {
        let start: String = checksum[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        print_line(&format!("{table:<14}{rows:>12}  {start}"))?;
    }
    let secret = settings.data.join("secret");
    let keep = match (from, to) {
        (Records::Sqlite(_), Records::Postgres(_)) if secret.exists() => {
            format!("\nStart every node with UNIONHALL_SECRET_FILE={}: the links are made with it.", secret.display())
        }
        _ => "\nStart the service with the secret it had: the links are made with it.".to_owned(),
    };
    print_line(&format!(
        "\nThe records are now in {to}. Nothing in {from} can be changed anymore: keep it as a backup.{keep}"
    ))
}

fn show(bar: &mut Bar, progress: Progress) {
    let verb = match progress.phase {
        Phase::Copying => "copying",
        Phase::Comparing => "comparing",
    };
    bar.begin(format!("{verb} {}, {} rows", progress.table, progress.all));
    bar.show(progress.done, progress.all);
}
