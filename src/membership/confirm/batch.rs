//! Confirmations, many per transaction (`batch.rs` gathers them): two round trips for any number.
//!
//! This does what `mod.rs` does, for a list. Every node takes locks in the same order: mailboxes, sign-ups, the rows
//! that belong to them, the days of sources, and last the member count, which every confirmation of the union waits for.

use std::collections::{HashMap, HashSet};

use crate::domain::sign_up::{Confirmation, DecidedHow, SignUpId};
use crate::membership::confirm::{Confirm, Confirming, MANY, Undecided, judge};
use crate::membership::count::COUNT_MEMBERS;
use crate::membership::sign_up::batch::columns;
use crate::store::postgres::batch::{BatchOutcome, Batched, Keyed, LOCK_TRIES};
use crate::store::postgres::connection::{Parameter, PgConnection, PgStatement, lock_key};
use crate::store::sql::{Failure, Row};

/// Serializes the decisions about each mailbox: row locks cannot show whether another person of the mailbox joined before.
const LOCK_MAILBOXES: &str = concat!(
    "SELECT pg_advisory_xact_lock(locks.key) FROM (
         SELECT DISTINCT ",
    lock_key!("p.mailbox"),
    " AS key FROM unnest(CAST($1 AS BIGINT[]), CAST($2 AS BIGINT[])) AS job (id, created_at)
             JOIN sign_ups s ON s.id = job.id AND s.created_at = job.created_at JOIN people p ON p.id = s.person_id
         ORDER BY key) locks"
);

impl Batched for Confirm {
    type Key = SignUpId;

    const POOL: &'static str = "confirmations";
    const TASK: &'static str = "the confirmations";

    // A person pressed a button; the mail worker may hold their rows for a while.
    const LOCK_TRIES: usize = LOCK_TRIES;

    const ALONE_AS_BATCH: bool = true;

    fn key(&self) -> SignUpId {
        self.sign_up.id
    }

    async fn together(
        jobs: &[Keyed<Self>],
        connection: &mut PgConnection,
    ) -> Result<Vec<BatchOutcome<Confirmation>>, Failure> {
        let done = confirm(jobs, connection).await;
        if done.is_err() {
            connection.roll_back().await;
        }
        done
    }
}

async fn confirm(
    jobs: &[Keyed<Confirm>],
    connection: &PgConnection,
) -> Result<Vec<BatchOutcome<Confirmation>>, Failure> {
    let asked = columns(jobs.iter().map(|job| job.unit.asked()));
    let asked = asked.each_ref().map(|column| column as Parameter<'_>);
    let rows = connection.begin_locked((LOCK_MAILBOXES, &asked), (&MANY.look, &asked)).await?;
    let found = rows.iter().map(|row| Undecided::read(&Row(row)).map(|found| (found.sign_up, found)));
    let found = found.collect::<Result<HashMap<_, _>, _>>()?;
    let (mut confirming, mut mailboxes) = (Vec::with_capacity(jobs.len()), HashSet::with_capacity(jobs.len()));
    let outcomes = jobs.iter().map(|job| {
        let Some(found) = found.get(&job.unit.sign_up) else { return BatchOutcome::Done(Confirmation::Unknown) };
        match judge(&job.unit, found, DecidedHow::Button) {
            Err(answer) => BatchOutcome::Done(answer),
            // The outcome of a mailbox's first sign-up decides the next one.
            Ok(_) if !mailboxes.insert(&found.mailbox) => BatchOutcome::Again,
            Ok(one) => {
                let answer = one.answer();
                confirming.push(one);
                BatchOutcome::Done(answer)
            }
        }
    });
    let outcomes = outcomes.collect();
    write(&confirming, connection).await?;
    Ok(outcomes)
}

/// Writes the confirmations and commits.
async fn write(confirming: &[Confirming<'_>], connection: &PgConnection) -> Result<(), Failure> {
    if confirming.is_empty() {
        return connection.commit_after(&[]).await;
    }
    let values = columns(confirming.iter().map(Confirming::values));
    let values = values.each_ref().map(|column| column as Parameter<'_>);
    let steps: Vec<_> = MANY.steps.iter().map(|step| (step.sql.as_str(), step.parameters(&values))).collect();
    let joined = confirming.iter().filter(|one| one.joins()).count() as i64;
    let count: [Parameter<'_>; 1] = [&joined];
    let mut statements: Vec<PgStatement<'_>> = steps.iter().map(|(sql, values)| (*sql, &values[..])).collect();
    if joined > 0 {
        statements.push((COUNT_MEMBERS, &count));
    }
    connection.commit_after(&statements).await
}
