//! One connection to PostgreSQL, with its prepared statements, and the [`Sql`] seam on it.

use std::collections::HashMap;
use std::error::Error;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;

use bytes::BytesMut;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Statement};

use crate::reply::{BoxFuture, Reply};
use crate::store::sql::{Columns, Failure, ReadRow, Row, Sql, SqlReply, Value, describe, expected, values};

/// The cluster, the database and the table, as a text; part of what every new connection is asked.
macro_rules! database_identity {
    () => {
        "(SELECT concat_ws('.', (SELECT system_identifier FROM pg_catalog.pg_control_system()),
                           (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()),
                           to_regclass('installation')::oid))"
    };
}
pub(super) use database_identity;

/// What every connection of a node has to lead to, once the node knows: a database that is restored under a running service
/// takes the name of the one before.
pub(super) type ExpectedIdentity = Arc<OnceLock<String>>;

pub struct PgConnection {
    pub(super) client: Client,
    task: JoinHandle<()>,
    /// By the place of their text: every statement is a constant of the program.
    statements: Mutex<HashMap<(usize, usize), Statement>>,
    /// Somebody has begun what may not be over yet.
    pub(super) in_use: bool,
    /// When it was last asked which database it leads to.
    pub(super) checked_at: Instant,
}

impl Drop for PgConnection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A parameter, as the driver takes it.
pub type Parameter<'a> = &'a (dyn ToSql + Sync);

/// A row as the driver gives it.
pub type PgRow = tokio_postgres::Row;

/// A statement and its parameters.
pub type PgStatement<'a> = (&'static str, &'a [Parameter<'a>]);

/// The key of the advisory lock on a text. Any number will do, so long as it is the same on every node.
macro_rules! lock_key {
    ($text:literal) => {
        concat!("hashtextextended(", $text, ", 1970102369)")
    };
}
pub(crate) use lock_key;

impl PgConnection {
    /// `task` is what drives the connection.
    pub(super) fn new(client: Client, task: JoinHandle<()>) -> Self {
        Self { client, task, statements: Mutex::default(), in_use: false, checked_at: Instant::now() }
    }

    /// Which database it leads to.
    pub(super) async fn identity(&mut self) -> Result<String, Failure> {
        let here = concat!("SELECT ", database_identity!(), " AS identity");
        let sql: &mut dyn Sql = self;
        expected(sql.row(here, values![], |row| row.get("identity")).await?)
    }

    async fn prepared(&self, sql: &'static str) -> Result<Statement, Failure> {
        let key = (sql.as_ptr().addr(), sql.len());
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        #[cfg(debug_assertions)]
        super::plan::record(sql);
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(key, statement.clone());
        Ok(statement)
    }

    /// The driver's own rows, for what is tuned by hand.
    pub async fn query(&self, sql: &'static str, values: &[Parameter<'_>]) -> Result<Vec<PgRow>, Failure> {
        let statement = self.prepared(sql).await?;
        Ok(self.client.query(&statement, values).await?)
    }

    /// Begins a transaction, takes locks and asks a question under them, in one round trip (pipelining). The question sees
    /// everything that was committed before the locks were given.
    pub async fn begin_locked(&self, lock: PgStatement<'_>, question: PgStatement<'_>) -> Result<Vec<PgRow>, Failure> {
        let (lock, keys) = (self.prepared(lock.0).await?, lock.1);
        let (statement, values) = (self.prepared(question.0).await?, question.1);
        // In this order on the wire, whoever is polled first later.
        let (begun, locked, rows) = tokio::join!(
            biased;
            self.client.batch_execute("BEGIN"),
            self.client.execute(&lock, keys),
            self.client.query(&statement, values),
        );
        let done = begun.and(locked).and(rows);
        // Nothing was asked to be committed, so a connection that broke leaves no doubt.
        done.map_err(|error| match is_broken(&error) {
            true => Failure::Away(format!("PostgreSQL: {}", describe(&error))),
            false => error.into(),
        })
    }

    /// Runs statements one after the other and commits, in one round trip: whatever the last ones lock is held for no longer.
    pub async fn commit_after(&self, statements: &[PgStatement<'_>]) -> Result<(), Failure> {
        let mut prepared = Vec::with_capacity(statements.len());
        for (sql, values) in statements {
            prepared.push((self.prepared(sql).await?, *values));
        }
        let mut sent: Vec<BoxFuture<'_, Result<(), tokio_postgres::Error>>> = Vec::with_capacity(prepared.len() + 1);
        for (statement, values) in &prepared {
            sent.push(Box::pin(async move { self.client.execute(statement, values).await.map(|_| ()) }));
        }
        // After a statement that failed it ends the transaction, which is undone.
        sent.push(Box::pin(self.client.batch_execute("COMMIT")));
        // Each is sent when it is polled first, so in their order; the first that failed says why the others did.
        let (mut failed, mut is_commit_sent, last) = (None, false, sent.len() - 1);
        let mut answered = vec![false; sent.len()];
        poll_fn(|context| {
            for (place, (is_answered, sent)) in answered.iter_mut().zip(&mut sent).enumerate() {
                // One that could not be sent: without it nothing may be committed.
                if place == last && !is_commit_sent && failed.is_some() {
                    return Poll::Ready(());
                }
                is_commit_sent |= place == last;
                if !*is_answered && let Poll::Ready(done) = sent.as_mut().poll(context) {
                    *is_answered = true;
                    failed = failed.take().or(done.err());
                }
            }
            if answered.iter().all(|is_answered| *is_answered) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Ends a transaction that was begun. Where that fails the connection is closed, which ends it as well.
    pub async fn roll_back(&self) {
        if self.client.batch_execute("ROLLBACK").await.is_err() {
            self.task.abort();
        }
    }
}

/// Whether the connection broke, or the server went down under it.
pub(super) fn is_broken(error: &tokio_postgres::Error) -> bool {
    error.code().is_none() || is_of_class(error, &["57P", "08"])
}

/// Whether the server gave a code of one of these classes.
pub(super) fn is_of_class(error: &tokio_postgres::Error, classes: &[&str]) -> bool {
    error.code().is_some_and(|state| classes.iter().any(|class| state.code().starts_with(class)))
}

fn parameters<'a>(values: &'a [Value<'_>]) -> Vec<Parameter<'a>> {
    values.iter().map(|value| value as Parameter<'a>).collect()
}

impl Sql for PgConnection {
    fn never_waits(&self) -> bool {
        false
    }

    fn each_row<'a>(&'a mut self, sql: &'static str, values: &'a [Value<'_>], read: ReadRow<'a>) -> SqlReply<'a, ()> {
        Reply::later(async move {
            for row in &self.query(sql, &parameters(values)).await? {
                if read(&Row(row))?.is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn insert<'a>(&'a mut self, sql: &'static str, values: &'a [Value<'_>]) -> SqlReply<'a, Option<i64>> {
        Reply::later(async move {
            let rows = self.query(sql, &parameters(values)).await?;
            rows.first().map(|row| Row(row).get(0)).transpose()
        })
    }

    fn execute<'a>(&'a mut self, sql: &'static str, values: &'a [Value<'_>]) -> SqlReply<'a, u64> {
        Reply::later(async move {
            let statement = self.prepared(sql).await?;
            Ok(self.client.execute(&statement, &parameters(values)).await?)
        })
    }

    fn lock<'a>(&'a mut self, key: &'a str) -> SqlReply<'a, ()> {
        Reply::later(async move {
            self.query(concat!("SELECT pg_advisory_xact_lock(", lock_key!("$1"), ")"), &[&key]).await.map(|_| ())
        })
    }

    fn try_lock<'a>(&'a mut self, key: &'a str) -> SqlReply<'a, bool> {
        Reply::later(async move {
            let lock = "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 1970102370))";
            let rows = self.query(lock, &[&key]).await?;
            rows.first().map_or(Ok(false), |row| Ok(row.try_get(0)?))
        })
    }
}

impl Columns for PgRow {
    fn value(&self, column: usize) -> Result<Value<'_>, Failure> {
        Ok(self.try_get(column)?)
    }

    fn name(&self, column: usize) -> &str {
        self.columns().get(column).map_or("?", |column| column.name())
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.columns().iter().position(|column| column.name() == name)
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Flag(flag) => flag.to_sql(kind, out),
            Self::Number(number) if *kind == Type::BOOL => (*number != 0).to_sql(kind, out),
            Self::Number(number) => number.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [Type::BOOL, Type::INT8, Type::TEXT, Type::BYTEA].contains(kind)
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value<'a> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(match *kind {
            Type::BOOL => Self::Flag(bool::from_sql(kind, raw)?),
            Type::INT4 => Self::Number(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => Self::Number(i64::from_sql(kind, raw)?),
            Type::TEXT => Self::Text(<&str>::from_sql(kind, raw)?),
            _ => Self::Bytes(raw),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::INT4 || <Self as ToSql>::accepts(kind)
    }
}
