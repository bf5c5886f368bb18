//! Which database this is (identity), so that one that was restored from a dump is not served as if nothing had happened.
//!
//! A dump carries the note of where it was made, and the place where it is restored is another: another cluster, another
//! database or another table. A standby that was promoted is the same as its primary, and starts without a word. What was
//! recovered to a point in time is the same too: nothing in it can tell, and the operator runs `unionhall resume` by hand.

use std::time::Duration;

use super::connection::PgConnection;
use super::pool::{Pool, Work};
use super::schema::PostgresOpenError;
use crate::store::migration::Prepare;
use crate::store::sql::{Failure, Sql, Unit, expected, values};

/// Holds the database against the note in it; the first start makes the note.
pub(super) async fn check(pool: &Pool, prepare: Prepare) -> Result<(), PostgresOpenError> {
    if prepare != Prepare::Upgrade {
        // A command that may be the first to act on the records; others only look, or repair them.
        let is_restored = prepare == Prepare::Make && pool.ask(|connection| Box::pin(is_restored(connection))).await?;
        return if is_restored { Err(PostgresOpenError::Restored) } else { Ok(()) };
    }
    let claimed = pool.ask_at_start(|connection| Box::pin(claim(connection))).await?;
    pool.expect(claimed.ok_or(PostgresOpenError::Restored)?);
    Ok(())
}

/// The identity, if it is the one that was noted.
async fn claim(connection: &mut PgConnection) -> Result<Option<String>, Failure> {
    let claim = "UPDATE unionhall_schema SET identity = $1 WHERE version = 1 AND identity IS NULL";
    let (here, sql) = (connection.identity().await?, connection as &mut dyn Sql);
    sql.execute(claim, values![&here]).await?;
    let noted = "SELECT identity FROM unionhall_schema WHERE version = 1";
    let noted: String = expected(sql.row(noted, values![], |row| row.get(0)).await?)?;
    Ok((noted == here).then_some(here))
}

/// Whether the records are known to have been made in another database, and were not resumed here.
pub(super) async fn is_restored(connection: &mut PgConnection) -> Result<bool, Failure> {
    let here = connection.identity().await?;
    let sql: &mut dyn Sql = connection;
    let tables = "SELECT 1 FROM pg_catalog.pg_attribute
                  WHERE attrelid = to_regclass('unionhall_schema') AND attname = 'identity'";
    if sql.row(tables, values![], |_| Ok(())).await?.is_none() {
        return Ok(false);
    }
    let noted = "SELECT 1 FROM unionhall_schema WHERE version = 1 AND identity <> $1";
    Ok(sql.row(noted, values![&here], |_| Ok(())).await?.is_some())
}

/// Makes restored records fit to be served again, and notes where they are.
pub(super) struct PgResume<'a, U> {
    pub resume: &'a U,
    /// How far ids jump.
    pub id_gap: i64,
}

impl<U: Unit> Work for PgResume<'_, U> {
    type Done = U::Done;

    // Everybody who is signed in is one row.
    const TIMEOUT: Duration = Duration::from_secs(1800);

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply(&mut self, connection: &mut PgConnection) -> Result<U::Done, Failure> {
        connection.client.batch_execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '30s'").await?;
        let raise = "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, coalesce(last_value, 0) + $1)
                     FROM pg_catalog.pg_sequences WHERE schemaname = current_schema()";
        let sql: &mut dyn Sql = connection;
        sql.rows(raise, values![self.id_gap], |_| Ok(())).await?;
        let done = self.resume.apply(sql).await?;
        note(connection).await?;
        Ok(done)
    }
}

/// Notes where the records are, and changes nothing else.
pub(super) async fn note(connection: &mut PgConnection) -> Result<(), Failure> {
    let (here, sql) = (connection.identity().await?, connection as &mut dyn Sql);
    sql.execute("UPDATE unionhall_schema SET identity = $1 WHERE version = 1", values![&here]).await.map(|_| ())
}
