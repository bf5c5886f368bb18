//! The interface between units of work and the engines: SQL that both understand, written once.
//!
//! A [`Unit`] is written for PostgreSQL with many nodes: it locks rows with `FOR UPDATE` where another node may have read them
//! too. SQLite has one writer, omits those words, and answers every query before it is polled again. Both understand `$1`,
//! `RETURNING`, `ON CONFLICT`, `CASE`, `IS DISTINCT FROM` and `CAST`; no statement may add rows in a `WITH`, which SQLite does
//! not support.

use std::any::Any;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use tokio_postgres::error::SqlState;

use super::StoreError;
use crate::domain::api_key::KeyHash;
use crate::domain::partner::name::PartnerId;
use crate::domain::referral::ReferralCode;
use crate::domain::remedy::Remedy;
use crate::domain::time::Timestamp;
use crate::reply::Reply;

/// A change to the records or a query, as data: applying it again after a rollback does the same.
pub trait Unit: Send + Sync + 'static {
    type Done: Send + 'static;

    const HOW: How;

    fn apply(&self, sql: &mut dyn Sql) -> impl Future<Output = Result<Self::Done, Failure>> + Send;
}

/// How a unit reaches the database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// It changes nothing and reads a few rows, and may run beside a write.
    Read,
    /// The same for many rows: it must not hold up a thread that answers requests.
    Scan,
    /// It changes something, with at most one statement.
    Write,
    /// It changes something, with several statements that commit or roll back together.
    Transaction,
}

impl How {
    pub const fn only_reads(self) -> bool {
        matches!(self, Self::Read | Self::Scan)
    }
}

/// A [`Unit`] without its type, and its result once it was applied. Everything around a unit (queue, transaction, retry,
/// time-out, audit log) uses this type, and so is compiled once.
pub trait Job: Send {
    fn is_transaction(&self) -> bool;

    fn apply<'a>(&'a mut self, sql: &'a mut dyn Sql) -> Reply<'a, Result<(), Failure>>;

    /// An `Option` of the unit's `Done`.
    fn done(&mut self) -> &mut dyn Any;
}

/// A job that has run, for its result.
pub type JobDone = Result<Box<dyn Job>, StoreError>;

pub type JobReply<'a> = Reply<'a, JobDone>;

struct Pending<U: Unit> {
    unit: U,
    done: Option<U::Done>,
}

impl dyn Job {
    pub fn of(unit: impl Unit) -> Box<Self> {
        Box::new(Pending { unit, done: None })
    }
}

/// The result of a job that was made from a unit with this `Done`.
pub fn result_of<T: 'static>(job: JobDone) -> Result<T, StoreError> {
    let done = job?.done().downcast_mut::<Option<T>>().and_then(Option::take);
    done.ok_or_else(|| StoreError::Unavailable("the unit of work was not run".to_owned()))
}

impl<U: Unit> Job for Pending<U> {
    fn is_transaction(&self) -> bool {
        U::HOW == How::Transaction
    }

    fn apply<'a>(&'a mut self, sql: &'a mut dyn Sql) -> Reply<'a, Result<(), Failure>> {
        let never_waits = sql.never_waits();
        let Self { unit, done } = self;
        let applied = async move {
            *done = Some(unit.apply(sql).await?);
            Ok(())
        };
        if never_waits { Reply::now(at_once(pin!(applied))) } else { Reply::later(applied) }
    }

    fn done(&mut self) -> &mut dyn Any {
        &mut self.done
    }
}

/// The result of a future that never waits.
pub fn at_once(applied: Pin<&mut dyn Future<Output = Result<(), Failure>>>) -> Result<(), Failure> {
    match applied.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => Err(Failure::Unusable("SQLite: a unit of work waited".to_owned())),
    }
}

/// What a unit of work needs from a connection. Every statement is a constant of the program, so that each engine prepares it
/// once.
pub trait Sql: Send {
    /// Whether every answer is ready immediately, as with SQLite: then nothing needs to be kept while it is awaited.
    fn never_waits(&self) -> bool;

    /// Reads the rows of a query, or those that `RETURNING` gives, until `read` stops.
    fn each_row<'a>(&'a mut self, sql: &'static str, values: &'a [Value<'_>], read: ReadRow<'a>) -> SqlReply<'a, ()>;

    /// Adds a row with a statement that ends in `RETURNING id`. Returns its id, or none if `ON CONFLICT DO NOTHING` skipped it.
    /// SQLite knows the id without that clause, which would make it keep a table for the answer.
    fn insert<'a>(&'a mut self, sql: &'static str, values: &'a [Value<'_>]) -> SqlReply<'a, Option<i64>>;

    /// Runs a statement and returns how many rows it changed.
    fn execute<'a>(&'a mut self, sql: &'static str, values: &'a [Value<'_>]) -> SqlReply<'a, u64>;

    /// Makes every other unit that locks the same key wait until this one ends (an advisory lock). For a decision that depends on
    /// rows that may not exist yet.
    fn lock<'a>(&'a mut self, key: &'a str) -> SqlReply<'a, ()>;

    /// The same without waiting, and only among units that lock this way: false if another unit has the key.
    fn try_lock<'a>(&'a mut self, key: &'a str) -> SqlReply<'a, bool>;

    /// Tells the audit log, if there is an entry (`audit.rs`), what the unit turns out to be about; people by their account.
    fn about(&mut self, _what: &str) {}
}

pub type SqlReply<'a, T> = Reply<'a, Result<T, Failure>>;

/// Takes a row, and says whether to go on.
pub type ReadRow<'a> = &'a mut (dyn FnMut(&Row<'_>) -> Result<ControlFlow<()>, Failure> + Send);

impl dyn Sql + '_ {
    /// The rows of a query, or those that `RETURNING` gives.
    pub async fn rows<T: Send>(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T, Failure> + Send,
    ) -> Result<Vec<T>, Failure> {
        let mut rows = Vec::new();
        let mut read = |row: &Row<'_>| {
            rows.push(read(row)?);
            Ok(ControlFlow::Continue(()))
        };
        self.each_row(sql, values, &mut read).await?;
        Ok(rows)
    }

    /// The first row, if there is one.
    pub async fn row<T: Send>(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T, Failure> + Send,
    ) -> Result<Option<T>, Failure> {
        let mut first = None;
        let mut read = |row: &Row<'_>| {
            first = Some(read(row)?);
            Ok(ControlFlow::Break(()))
        };
        self.each_row(sql, values, &mut read).await?;
        Ok(first)
    }

    /// The first column of the first row.
    pub async fn value<T: for<'v> FromValue<'v> + Send>(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<T>, Failure> {
        self.row(sql, values, |row| row.get(0)).await
    }

    /// Whether the query has any row.
    pub async fn exists(&mut self, sql: &'static str, values: &[Value<'_>]) -> Result<bool, Failure> {
        Ok(self.row(sql, values, |_| Ok(())).await?.is_some())
    }
}

/// A parameter of a statement, or the value of a column.
#[derive(Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Null,
    Flag(bool),
    Number(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// Without the value: it may be an address.
impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Value")
    }
}

macro_rules! value_from {
    ($($kind:ty: $value:ident => $made:expr;)*) => {
        $(impl<'a> From<$kind> for Value<'a> {
            fn from($value: $kind) -> Self {
                $made
            }
        })*
    };
}

value_from! {
    bool: flag => Self::Flag(flag);
    i64: number => Self::Number(number);
    u32: number => Self::Number(number.into());
    PartnerId: id => Self::Number(id.0);
    Timestamp: time => Self::Number(time.as_millis());
    &'a str: text => Self::Text(text);
    &'a String: text => Self::Text(text);
    &'a ReferralCode: code => Self::Text(code.as_str());
    &'a KeyHash: hash => Self::Bytes(&hash.0);
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The values of a statement, in the order of their numbers.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::store::sql::Value::from($value)),*] };
}
pub(crate) use values;

/// A type that a column can be read as.
pub trait FromValue<'v>: Sized {
    /// None if the value is of another type.
    fn from_value(value: Value<'v>) -> Option<Self>;
}

macro_rules! from_value {
    ($($kind:ty: $($value:pat => $made:expr),*;)*) => {
        $(impl<'v> FromValue<'v> for $kind {
            fn from_value(value: Value<'v>) -> Option<Self> {
                match value {
                    $($value => $made,)*
                    _ => None,
                }
            }
        })*
    };
}

from_value! {
    i64: Value::Number(number) => Some(number);
    // Numbers that are never negative.
    u64: Value::Number(number) => Some(number.unsigned_abs());
    u32: Value::Number(number) => Some(u32::try_from(number).unwrap_or(u32::MAX));
    // A flag is 0 or 1 if the engine has no type for it; null is not true.
    bool: Value::Flag(flag) => Some(flag), Value::Number(number) => Some(number != 0), Value::Null => Some(false);
    PartnerId: Value::Number(id) => Some(Self(id));
    Timestamp: Value::Number(millis) => Some(Self::from_millis(millis));
    &'v str: Value::Text(text) => Some(text);
    String: Value::Text(text) => Some(text.to_owned());
    ReferralCode: Value::Text(text) => Self::from_canonical(text);
    KeyHash: Value::Bytes(bytes) => bytes.try_into().map(Self).ok();
}

impl<'v, T: FromValue<'v>> FromValue<'v> for Option<T> {
    fn from_value(value: Value<'v>) -> Option<Self> {
        if value == Value::Null { Some(None) } else { T::from_value(value).map(Some) }
    }
}

/// What an engine gives for a row.
pub trait Columns {
    fn value(&self, column: usize) -> Result<Value<'_>, Failure>;

    fn name(&self, column: usize) -> &str;

    fn index(&self, name: &str) -> Option<usize>;
}

/// A column of a row: by name, or by position if there is only one.
pub trait Column: Copy {
    fn index(self, row: &dyn Columns) -> Result<usize, Failure>;
}

impl Column for usize {
    fn index(self, _row: &dyn Columns) -> Result<usize, Failure> {
        Ok(self)
    }
}

impl Column for &str {
    fn index(self, row: &dyn Columns) -> Result<usize, Failure> {
        let missing = || Failure::Unusable(format!("the statement selects no column {self}"));
        row.index(self).ok_or_else(missing)
    }
}

/// One row of an answer. If a column does not hold what it should, something else wrote it, and the error names the column.
pub struct Row<'r>(pub &'r dyn Columns);

impl Row<'_> {
    fn foreign(&self, column: usize) -> Failure {
        let name = self.0.name(column);
        Failure::Unusable(format!("the column {name} holds an unexpected value"))
    }

    /// The value of the column, as the requested type.
    pub fn get<'v, T: FromValue<'v>>(&'v self, column: impl Column) -> Result<T, Failure> {
        let column = column.index(self.0)?;
        T::from_value(self.0.value(column)?).ok_or_else(|| self.foreign(column))
    }

    /// A value of the domain.
    pub fn parsed<T>(&self, column: impl Column, parse: impl Fn(&str) -> Option<T>) -> Result<T, Failure> {
        let column = column.index(self.0)?;
        parse(self.get(column)?).ok_or_else(|| self.foreign(column))
    }
}

/// Why a unit of work failed, before callers outside see it.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The records are not as the unit expects them, or the unit is wrong; the database is well.
    #[error("{0}")]
    Unusable(String),
    /// Another unit changed what this one was about to change: look again.
    #[error("others kept changing the same rows")]
    Overtaken,
    /// There is no connection: nothing was sent.
    #[error("{0}")]
    Away(String),
    #[error("{}", StoreError::Restored)]
    Restored,
    /// It was sent, and no answer came.
    #[error("{0}")]
    Lost(String),
    #[error("{}", describe_sqlite(.0))]
    Sqlite(#[from] rusqlite::Error),
    #[error("PostgreSQL: {}", describe(.0))]
    Postgres(#[from] tokio_postgres::Error),
}

impl Failure {
    /// What helps where the database itself says what is wrong with it.
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Sqlite(error) => remedy_of_sqlite(error),
            Self::Postgres(error) if error.code() == Some(&SqlState::DISK_FULL) => Some(Remedy::MakeRoom),
            Self::Postgres(error) => {
                let damaged = [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED];
                damaged.contains(error.code()?).then_some(Remedy::RestoreBackup)
            }
            _ => None,
        }
    }
}

/// The same of an error of SQLite.
pub(super) fn remedy_of_sqlite(error: &rusqlite::Error) -> Option<Remedy> {
    match error.sqlite_error_code()? {
        rusqlite::ErrorCode::DiskFull => Some(Remedy::MakeRoom),
        rusqlite::ErrorCode::DatabaseCorrupt => Some(Remedy::RestoreBackup),
        _ => None,
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Lost(why) => Self::Unknown(why),
            Failure::Restored => Self::Restored,
            known => match known.remedy() {
                Some(Remedy::RestoreBackup) => Self::Damaged(known.to_string()),
                Some(Remedy::MakeRoom) => Self::Full(known.to_string()),
                _ => Self::Unavailable(known.to_string()),
            },
        }
    }
}

/// SQLite's own messages name tables and columns, never values. The statement is left out, which may be a whole step of the schema.
pub fn describe_sqlite(error: &rusqlite::Error) -> String {
    match (error.sqlite_error_code(), error) {
        (_, rusqlite::Error::SqlInputError { msg, .. }) => format!("SQLite: {msg}"),
        (Some(rusqlite::ErrorCode::ReadOnly), _) => {
            "SQLite: the database is read-only; let this user write the file, those beside it (-wal, -shm) and its folder, \
             and see that the file system is not mounted read-only"
                .to_owned()
        }
        _ => format!("SQLite: {error}"),
    }
}

/// PostgreSQL's error without values: the server's details repeat them, and they may be addresses.
pub fn describe(error: &tokio_postgres::Error) -> String {
    use std::error::Error;
    match (error.as_db_error(), error.source()) {
        // Class 22 (data exceptions) quotes the sent values in the message itself.
        (Some(told), _) if told.code().code().starts_with("22") => {
            format!("the data was refused ({})", told.code().code())
        }
        (Some(told), _) => format!("{} ({})", told.message(), told.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

/// The row that a query always returns.
pub fn expected<T>(row: Option<T>) -> Result<T, Failure> {
    row.ok_or_else(|| Failure::Unusable("a row of the installation is missing".to_owned()))
}
