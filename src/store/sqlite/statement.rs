//! The [`Sql`] seam on SQLite: cached statements on one connection, each answered before it is polled again.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{LazyLock, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection};

use crate::store::StoreError;
use crate::store::sql::{Columns, Failure, Row, Sql, Unit, Value};

/// A connection while a unit of work is applied to it.
pub(super) struct SqliteSql<'c>(&'c mut Connection);

/// Applies a unit; it never waits, because nothing it asks does.
pub(super) fn apply<U: Unit>(unit: &U, connection: &mut Connection) -> Result<U::Done, Failure> {
    let mut sql = SqliteSql(connection);
    match pin!(unit.apply(&mut sql)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => Err(Failure::Refused(StoreError::Unavailable("SQLite: a unit of work waited".to_owned()))),
    }
}

impl SqliteSql<'_> {
    fn prepare(&mut self, sql: &str, values: &[Value<'_>]) -> Result<CachedStatement<'_>, Failure> {
        let mut statement = self.0.prepare_cached(sql)?;
        if statement.parameter_count() != values.len() {
            return Err(rusqlite::Error::InvalidParameterCount(values.len(), statement.parameter_count()).into());
        }
        for (index, value) in (1..).zip(values) {
            statement.raw_bind_parameter(index, value)?;
        }
        Ok(statement)
    }
}

/// Nothing here waits: each future is ready when it is first polled.
impl Sql for SqliteSql<'_> {
    async fn rows<T: Send>(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T, Failure> + Send,
    ) -> Result<Vec<T>, Failure> {
        let mut statement = self.prepare(dialect(sql), values)?;
        let (mut rows, mut all) = (statement.raw_query(), Vec::new());
        while let Some(row) = rows.next()? {
            all.push(read(&Row(row))?);
        }
        Ok(all)
    }

    async fn row<T: Send>(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T, Failure> + Send,
    ) -> Result<Option<T>, Failure> {
        let mut statement = self.prepare(dialect(sql), values)?;
        let mut rows = statement.raw_query();
        rows.next()?.map(|row| read(&Row(row))).transpose()
    }

    async fn insert(&mut self, sql: &'static str, values: &[Value<'_>]) -> Result<Option<i64>, Failure> {
        let sql = dialect(sql);
        let added = self.prepare(sql.strip_suffix(" RETURNING id").unwrap_or(sql), values)?.raw_execute()?;
        Ok((added == 1).then(|| self.0.last_insert_rowid()))
    }

    async fn execute(&mut self, sql: &'static str, values: &[Value<'_>]) -> Result<u64, Failure> {
        Ok(self.prepare(dialect(sql), values)?.raw_execute()? as u64)
    }

    /// There is one writer, and it holds the whole database.
    async fn lock(&mut self, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    async fn try_lock(&mut self, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }
}

/// The statement as SQLite takes it. Made once for each: every statement is a constant of the program, known by its place.
fn dialect(sql: &'static str) -> &'static str {
    static KNOWN: LazyLock<RwLock<HashMap<(usize, usize), &'static str>>> = LazyLock::new(RwLock::default);
    let key = (sql.as_ptr().addr(), sql.len());
    if let Some(known) = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return known;
    }
    let translated: &'static str = translate(sql).leak();
    KNOWN.write().unwrap_or_else(PoisonError::into_inner).insert(key, translated);
    translated
}

/// SQLite numbers `$2` by its appearance and `?2` as it says. `FOR UPDATE [OF table] [SKIP LOCKED]` it neither knows nor
/// needs.
fn translate(sql: &str) -> String {
    let numbered = sql.replace('$', "?");
    let Some((before, after)) = numbered.split_once(" FOR UPDATE") else { return numbered };
    let after = after.strip_prefix(" OF ").map_or(after, |rest| rest.trim_start_matches(char::is_alphanumeric));
    [before, after.strip_prefix(" SKIP LOCKED").unwrap_or(after)].concat()
}

impl Columns for rusqlite::Row<'_> {
    fn value(&self, column: usize) -> Result<Value<'_>, Failure> {
        Ok(match self.get_ref(column)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Number(number),
            ValueRef::Text(text) => {
                Value::Text(std::str::from_utf8(text).map_err(|error| rusqlite::Error::Utf8Error(column, error))?)
            }
            ValueRef::Blob(bytes) => Value::Bytes(bytes),
            // No column of ours is a real number.
            ValueRef::Real(_) => {
                let name = Columns::name(self, column).to_owned();
                return Err(rusqlite::Error::InvalidColumnType(column, name, rusqlite::types::Type::Real).into());
            }
        })
    }

    fn name(&self, column: usize) -> &str {
        self.as_ref().column_name(column).unwrap_or("?")
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.as_ref().column_index(name).ok()
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Flag(flag) => ValueRef::Integer((*flag).into()),
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sql::values;

    #[test]
    fn statements_are_written_as_sqlite_takes_them() {
        for (sql, plain) in [
            ("SELECT $2, $1", "SELECT ?2, ?1"),
            ("SELECT 1 FOR UPDATE", "SELECT 1"),
            ("SELECT o.id FROM o LIMIT $1 FOR UPDATE OF o SKIP LOCKED", "SELECT o.id FROM o LIMIT ?1"),
            (
                "DELETE FROM a WHERE id IN (SELECT 1 FOR UPDATE SKIP LOCKED) RETURNING id",
                "DELETE FROM a WHERE id IN (SELECT 1) RETURNING id",
            ),
        ] {
            assert_eq!(dialect(sql), plain);
            assert_eq!(dialect(sql).as_ptr(), dialect(sql).as_ptr(), "made once");
        }
    }

    #[test]
    fn values_stand_at_their_numbers_whatever_appears_first() {
        struct Ask;

        impl Unit for Ask {
            type Done = (Option<(i64, String, i64)>, String, String);

            async fn apply<S: Sql>(&self, sql: &mut S) -> Result<Self::Done, Failure> {
                let numbered = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
                let row = sql.row("SELECT $2, $1, $2", values!["one", 2_i64], numbered).await?;
                let missing = sql.execute("SELECT $1", values![]).await.unwrap_err();
                let foreign = sql.row("SELECT 'x' AS figure", values![], |row| row.get::<i64>(0)).await.unwrap_err();
                Ok((row, StoreError::from(missing).to_string(), StoreError::from(foreign).to_string()))
            }
        }

        let (row, missing, foreign) = apply(&Ask, &mut Connection::open_in_memory().unwrap()).unwrap();
        assert_eq!(row, Some((2, "one".to_owned(), 2)));
        assert!(missing.contains("Wrong number of parameters"), "a value that is missing is no NULL: {missing}");
        assert_eq!(foreign, "the column figure holds a value that is not ours");
    }
}
