//! The [`Sql`] seam on SQLite: cached statements on one connection, each answered at once.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{LazyLock, PoisonError, RwLock};

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection};

use crate::reply::Reply;
use crate::store::sql::{Columns, Failure, Job, ReadRow, Row, Sql, SqlReply, Value, at_once};

/// A connection while a unit of work is applied to it.
pub(super) struct SqliteSql<'c>(&'c mut Connection);

/// Applies a unit; it never waits, because nothing it asks does.
pub(super) fn apply(job: &mut dyn Job, connection: &mut Connection) -> Result<(), Failure> {
    at_once(pin!(job.apply(&mut SqliteSql(connection))))
}

impl SqliteSql<'_> {
    fn prepare(&mut self, sql: &str, values: &[Value<'_>]) -> Result<CachedStatement<'_>, Failure> {
        #[cfg(debug_assertions)]
        super::plan::check(self.0, sql)?;
        let mut statement = self.0.prepare_cached(sql)?;
        if statement.parameter_count() != values.len() {
            return Err(rusqlite::Error::InvalidParameterCount(values.len(), statement.parameter_count()).into());
        }
        for (index, value) in (1..).zip(values) {
            statement.raw_bind_parameter(index, value)?;
        }
        Ok(statement)
    }

    /// Reads until `read` wants no more.
    fn read(&mut self, sql: &'static str, values: &[Value<'_>], read: ReadRow<'_>) -> Result<(), Failure> {
        let sql = dialect(sql);
        let mut statement = self.prepare(sql, values)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if read(&Row(row))?.is_break() {
                break;
            }
        }
        drop(rows);
        #[cfg(debug_assertions)]
        super::plan::count(&statement, sql)?;
        Ok(())
    }

    fn add(&mut self, sql: &'static str, values: &[Value<'_>]) -> Result<Option<i64>, Failure> {
        let sql = dialect(sql);
        let added = self.run(sql.strip_suffix(" RETURNING id").unwrap_or(sql), values)?;
        Ok((added == 1).then(|| self.0.last_insert_rowid()))
    }

    fn run(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, Failure> {
        let mut statement = self.prepare(sql, values)?;
        let changed = statement.raw_execute()?;
        #[cfg(debug_assertions)]
        super::plan::count(&statement, sql)?;
        Ok(changed as u64)
    }
}

impl Sql for SqliteSql<'_> {
    fn never_waits(&self) -> bool {
        true
    }

    fn each_row<'a>(&'a mut self, sql: &'static str, values: &'a [Value<'_>], read: ReadRow<'a>) -> SqlReply<'a, ()> {
        Reply::now(self.read(sql, values, read))
    }

    fn insert<'a>(&'a mut self, sql: &'static str, values: &'a [Value<'_>]) -> SqlReply<'a, Option<i64>> {
        Reply::now(self.add(sql, values))
    }

    fn execute<'a>(&'a mut self, sql: &'static str, values: &'a [Value<'_>]) -> SqlReply<'a, u64> {
        Reply::now(self.run(dialect(sql), values))
    }

    /// There is one writer, and it holds the whole database.
    fn lock<'a>(&'a mut self, _: &'a str) -> SqlReply<'a, ()> {
        Reply::now(Ok(()))
    }

    fn try_lock<'a>(&'a mut self, _: &'a str) -> SqlReply<'a, bool> {
        Reply::now(Ok(true))
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

/// A comment `/*+ … */` is for SQLite alone: `INDEXED BY`, where it would choose an index that finds most of the table. It
/// numbers `$2` by its appearance and `?2` as it says. `FOR UPDATE [OF table] [SKIP LOCKED]` and `FOR SHARE` it neither
/// knows nor needs.
fn translate(sql: &str) -> String {
    let numbered = sql.replace('$', "?").replace(" FOR SHARE", "").replace("/*+ ", "").replace(" */", "");
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
    use crate::store::StoreError;
    use crate::store::sql::{How, Unit, result_of, values};

    #[test]
    fn statements_are_written_as_sqlite_takes_them() {
        for (sql, plain) in [
            ("SELECT $2, $1", "SELECT ?2, ?1"),
            ("SELECT 1 FOR UPDATE", "SELECT 1"),
            ("SELECT 1 FOR SHARE", "SELECT 1"),
            ("SELECT 1 FROM o /*+ INDEXED BY i */ WHERE a = $1", "SELECT 1 FROM o INDEXED BY i WHERE a = ?1"),
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
    fn a_cached_statement_is_prepared_once_whatever_its_values() {
        let connection = Connection::open_in_memory().unwrap();
        crate::store::sqlite::set_up(&connection).unwrap();
        connection.execute_batch("CREATE TABLE a (b TEXT); CREATE INDEX some ON a (b) WHERE b = 'x'").unwrap();
        for (b, most) in [("x", 1), ("y", 2), ("x", 3)] {
            let mut statement = connection.prepare_cached("SELECT b FROM a WHERE b = ?1 LIMIT ?2").unwrap();
            assert!(!statement.exists((b, most)).unwrap());
            assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
        }
    }

    #[test]
    fn values_stand_at_their_numbers_whatever_appears_first() {
        struct Ask;

        impl Unit for Ask {
            type Done = (Option<(i64, String, i64)>, String, String);
            const HOW: How = How::Write;

            async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
                let numbered = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
                let row = sql.row("SELECT $2, $1, $2", values!["one", 2_i64], numbered).await?;
                let missing = sql.execute("SELECT $1", values![]).await.unwrap_err();
                let foreign = sql.row("SELECT 'x' AS figure", values![], |row| row.get::<i64>(0)).await.unwrap_err();
                Ok((row, StoreError::from(missing).to_string(), StoreError::from(foreign).to_string()))
            }
        }

        let mut job = <dyn Job>::of(Ask);
        apply(&mut *job, &mut Connection::open_in_memory().unwrap()).unwrap();
        let (row, missing, foreign): <Ask as Unit>::Done = result_of(Ok(job)).unwrap();
        assert_eq!(row, Some((2, "one".to_owned(), 2)));
        assert!(missing.contains("Wrong number of parameters"), "a value that is missing is no NULL: {missing}");
        assert_eq!(foreign, "the column figure holds an unexpected value");
    }
}
