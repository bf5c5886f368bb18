//! One connection to PostgreSQL, with its prepared statements, and the [`Sql`] seam on it.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::BytesMut;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Statement};

use crate::reply::Reply;
use crate::store::sql::{Columns, Failure, ReadRow, Row, Sql, SqlReply, Value, expected, values};

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

pub(super) struct PgConnection {
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
pub(super) type Parameter<'a> = &'a (dyn ToSql + Sync);

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
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(key, statement.clone());
        Ok(statement)
    }

    /// The driver's own rows, for what is tuned by hand.
    pub(super) async fn query(
        &self,
        sql: &'static str,
        values: &[Parameter<'_>],
    ) -> Result<Vec<tokio_postgres::Row>, Failure> {
        let statement = self.prepared(sql).await?;
        Ok(self.client.query(&statement, values).await?)
    }

    /// Runs one statement after another under a lock, all sent at once: a transaction in one round trip. The second sees
    /// everything that was committed before the lock was given.
    pub(super) async fn locked(
        &self,
        (lock, keys): (&'static str, &[Parameter<'_>]),
        (sql, values): (&'static str, &[Parameter<'_>]),
    ) -> Result<Option<tokio_postgres::Row>, Failure> {
        let (lock, statement) = (self.prepared(lock).await?, self.prepared(sql).await?);
        // In this order on the wire, whoever is polled first later.
        let (begun, locked, done, committed) = tokio::join!(
            biased;
            self.client.batch_execute("BEGIN"),
            self.client.query(&lock, keys),
            self.client.query(&statement, values),
            self.client.batch_execute("COMMIT"),
        );
        begun?;
        locked?;
        let rows = done?;
        committed?;
        Ok(rows.into_iter().next())
    }
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
            // Any number, so long as it is the same on every node.
            self.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 1970102369))", &[&key]).await.map(|_| ())
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

impl Columns for tokio_postgres::Row {
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
