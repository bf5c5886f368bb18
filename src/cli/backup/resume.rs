//! `unionhall resume`: records that PostgreSQL's own tools restored, made fit to be served again.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;

use super::erased::ErasureLogs;
use super::gap::Gap;
use crate::cli::audit::act;
use crate::cli::{block_on, one_thread, print_line, secret};
use crate::clock::Clock;
use crate::config::{Records, SecretSettings, StoreSettings};
use crate::domain::api_key::Mode;
use crate::domain::reward::payout::PayoutGeneration;
use crate::domain::time::Timestamp;
use crate::installation::FindLatestRecord;
use crate::operator::Operator;
use crate::operator::resume::Resume;
use crate::random;
use crate::store::migration::Prepare;
use crate::store::postgres::PostgresStore;
use crate::store::{Store, WRITE_BATCH};

#[derive(Args)]
pub(in crate::cli) struct ResumeSettings {
    /// A log of erasures: the file `erasures` in the data folder of a node. Give it for each node.
    ///
    /// The one in the data folder of --data, if it is there, is read in any case.
    #[arg(long, value_name = "FILE")]
    erasures: Vec<PathBuf>,

    /// Treat the records as complete, and change nothing: for a planned move of a database that was stopped first, such as by
    /// pg_upgrade.
    #[arg(long, conflicts_with = "erasures")]
    complete: bool,

    #[command(flatten)]
    store: StoreSettings,

    #[command(flatten)]
    secret: SecretSettings,
}

pub(in crate::cli) fn run(task: &ResumeSettings) -> anyhow::Result<()> {
    let Records::Postgres(address) = task.store.records()? else {
        bail!(
            "the records are in a data folder, where `unionhall restore` does all of this; this command is for PostgreSQL: give \
             --store. Nothing was changed"
        );
    };
    block_on(&one_thread()?, async {
        let store = PostgresStore::open((*address).clone(), Prepare::Resume, WRITE_BATCH).await;
        let store = Arc::new(store.with_context(|| address.to_string())?);
        let operator = Operator::new(Store::new(store.clone()), Mode::Live);
        let done = resume(task, &store, &operator, Clock::start().now().time).await;
        operator.close().await?;
        done
    })
}

async fn resume(
    task: &ResumeSettings,
    store: &PostgresStore,
    operator: &Operator,
    now: Timestamp,
) -> anyhow::Result<()> {
    let flags = task.store.as_flags();
    if task.complete {
        operator.note(act("resume", "treated as complete".to_owned(), now)).await?;
        store.note_identity().await?;
        print_line("The records are treated as complete: no sign-up, person, key or mail was changed.")?;
        return print_line(&format!("\nNext: unionhall serve{flags}"));
    }
    let secret = secret::known(&task.store, Mode::Live, task.secret.given()?, operator).await?;
    let logs = ErasureLogs::find(&task.store.data, &task.erasures)?;
    let taken_at = operator.ask(FindLatestRecord).await?.unwrap_or(now).min(now);
    let again = logs.repeat(operator, Some(&secret), None, taken_at, "resume", now).await?;
    logs.keep()?;
    let act = act("resume", format!("records of {taken_at}"), now);
    let resume = Resume { taken_at, generation: PayoutGeneration::from_random(&random::bytes()?), act };
    let held = store.resume(&resume, resume.id_gap()).await?;
    let gap = Gap::look(operator, taken_at, held, again.keys.clone(), Some(&secret), now).await?;
    let members = operator.member_count().await?;
    let members = if members == 1 { "1 member".to_owned() } else { format!("{members} members") };
    print_line(&format!("The records, whose newest is of {taken_at}, can be served again: {members}."))?;
    gap.report(&flags)?;
    print_line("")?;
    if !logs.were_found() {
        print_line(&format!(
            "NO LOG OF ERASURES WAS FOUND in {}: people who were erased since are in these records again, and no one can tell who. \
             If no node ever had this file, nobody was erased and no key revoked. If you can get a node's `erasures`, run this again with --erasures FILE.",
            logs.here.path().display()
        ))?;
    } else {
        let none = "Nobody in these records was erased since, as far as the logs of erasures know. Every node has a log of its own: \
                    run this again with --erasures FILE for one that was not read.";
        again.report(none, &flags)?;
    }
    print_line(&format!("\nNext: unionhall serve{flags}"))
}
