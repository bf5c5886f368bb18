//! Carrying all records away from SQLite, or to it (`unionhall move`).

use std::path::{Path, PathBuf};

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::{SqliteOpenError, schema};
use crate::domain::time::Timestamp;
use crate::reply::Reply;
use crate::store::migration::{MIGRATIONS, Prepare};
use crate::store::sql::Failure;
use crate::store::transfer::{Cell, Cells, TABLES, Table, TransferRows, TransferSource, TransferTarget};
use crate::store::{StoreError, StoreReply};

/// A file whose records are carried away: held by a transaction that lets nobody else write.
#[derive(Debug)]
pub struct SqliteSource(Connection);

impl SqliteSource {
    pub fn open(path: &Path) -> Result<Self, SqliteOpenError> {
        let connection = schema::open(path, Prepare::Expect, MIGRATIONS)?;
        let held = connection.execute_batch("BEGIN IMMEDIATE");
        held.map_err(|source| SqliteOpenError::Open { path: path.to_owned(), source })?;
        Ok(Self(connection))
    }
}

impl TransferRows for SqliteSource {
    fn rows<'a>(
        &'a mut self,
        table: &'static Table,
        after: Option<&'a Cell>,
        most: usize,
    ) -> StoreReply<'a, Vec<Cells>> {
        answer(rows(&self.0, table, after, most))
    }

    fn count(&mut self, table: &'static Table) -> StoreReply<'_, u64> {
        answer(count(&self.0, table))
    }

    fn last_number(&mut self, table: &'static Table) -> StoreReply<'_, i64> {
        answer(last_number(&self.0, table))
    }
}

impl TransferSource for SqliteSource {
    fn retire<'a>(&'a mut self, place: &'a str, now: Timestamp) -> StoreReply<'a, ()> {
        let retire = || {
            self.0.execute_batch("CREATE TABLE moved (place TEXT NOT NULL, at INTEGER NOT NULL) STRICT")?;
            self.0.execute("INSERT INTO moved (place, at) VALUES (?1, ?2)", (place, now.as_millis()))?;
            for table in TABLES {
                for change in ["INSERT", "UPDATE", "DELETE"] {
                    let name = table.name;
                    self.0.execute_batch(&format!(
                        "CREATE TRIGGER moved_{name}_{change} BEFORE {change} ON {name}
                         BEGIN SELECT RAISE(ABORT, 'these records were moved to another store'); END"
                    ))?;
                }
            }
            self.0.execute_batch("COMMIT")
        };
        answer(retire().map_err(Failure::from))
    }
}

/// A new file, written under another name until it is whole.
#[derive(Debug)]
pub struct SqliteTarget {
    /// None once it is finished.
    connection: Option<Connection>,
    unfinished: PathBuf,
    path: PathBuf,
}

impl SqliteTarget {
    /// `unfinished` is a file beside `path` that is there and empty.
    pub fn open(unfinished: &Path, path: &Path) -> Result<Self, SqliteOpenError> {
        if unfinished != path {
            refuse_leftovers(path)?;
        }
        let connection = schema::open(unfinished, Prepare::Make, MIGRATIONS)?;
        let failed = |source| SqliteOpenError::Open { path: unfinished.to_owned(), source };
        // A person may have been referred by one who came later; all of it is checked at the end.
        connection.execute_batch("PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE").map_err(failed)?;
        Ok(Self { connection: Some(connection), unfinished: unfinished.to_owned(), path: path.to_owned() })
    }

    fn connection(&self) -> Result<&Connection, Failure> {
        self.connection.as_ref().ok_or_else(|| refused("the copy is finished"))
    }

    fn put_in_place(&mut self) -> Result<(), Failure> {
        let connection = self.connection.take().ok_or_else(|| refused("the copy is finished"))?;
        let broken: i64 =
            connection.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))?;
        if broken > 0 {
            return Err(refused("some rows refer to others that are not there"));
        }
        connection.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")?;
        // The last connection takes the log with it.
        connection.close().map_err(|(_, error)| error)?;
        if self.unfinished == self.path {
            return Ok(());
        }
        refuse_leftovers(&self.path).map_err(|error| refused(&error.to_string()))?;
        // A link is made only where nothing is: what somebody put there meanwhile stays.
        let placed = std::fs::hard_link(&self.unfinished, &self.path)
            .and_then(|()| std::fs::remove_file(&self.unfinished))
            .and_then(|()| std::fs::File::open(folder_of(&self.path))?.sync_all());
        placed.map_err(|error| refused(&format!("{}: {error}", self.path.display())))
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// SQLite would take what another database of that name left behind for this one's.
fn refuse_leftovers(path: &Path) -> Result<(), SqliteOpenError> {
    for end in ["-wal", "-shm", "-journal"] {
        let mut leftover = path.as_os_str().to_owned();
        leftover.push(end);
        if Path::new(&leftover).exists() {
            return Err(SqliteOpenError::Leftover { path: leftover.into() });
        }
    }
    Ok(())
}

fn refused(why: &str) -> Failure {
    Failure::Refused(StoreError::Unavailable(format!("SQLite: {why}")))
}

impl TransferRows for SqliteTarget {
    fn rows<'a>(
        &'a mut self,
        table: &'static Table,
        after: Option<&'a Cell>,
        most: usize,
    ) -> StoreReply<'a, Vec<Cells>> {
        answer(self.connection().and_then(|connection| rows(connection, table, after, most)))
    }

    fn count(&mut self, table: &'static Table) -> StoreReply<'_, u64> {
        answer(self.connection().and_then(|connection| count(connection, table)))
    }

    fn last_number(&mut self, table: &'static Table) -> StoreReply<'_, i64> {
        answer(self.connection().and_then(|connection| last_number(connection, table)))
    }
}

impl TransferTarget for SqliteTarget {
    fn append<'a>(&'a mut self, table: &'static Table, rows: &'a [Cells]) -> StoreReply<'a, ()> {
        let append = || {
            let connection = self.connection()?;
            let places: Vec<_> = (1..=table.columns.len()).map(|n| format!("?{n}")).collect();
            // Of the installation there is a row already.
            let sql = format!(
                "INSERT OR REPLACE INTO {} ({}) VALUES ({})",
                table.name,
                table.columns.join(", "),
                places.join(", ")
            );
            let mut statement = connection.prepare_cached(&sql)?;
            for row in rows {
                statement.execute(params_from_iter(row))?;
            }
            Ok(())
        };
        answer(append())
    }

    fn number_after(&mut self, table: &'static Table, last: i64) -> StoreReply<'_, ()> {
        let write = || {
            let connection = self.connection()?;
            connection.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table.name])?;
            connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (table.name, last))?;
            Ok(())
        };
        answer(write())
    }

    fn finish(&mut self) -> StoreReply<'_, ()> {
        answer(self.put_in_place())
    }
}

fn answer<'a, T>(done: Result<T, Failure>) -> StoreReply<'a, T> {
    Reply::now(done.map_err(StoreError::from))
}

fn count(connection: &Connection, table: &Table) -> Result<u64, Failure> {
    let count: i64 = connection.query_row(&format!("SELECT count(*) FROM {}", table.name), [], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

/// SQLite writes it down (AUTOINCREMENT), even of a row that is gone.
fn last_number(connection: &Connection, table: &Table) -> Result<i64, Failure> {
    let sql = format!(
        "SELECT max(coalesce((SELECT max({}) FROM {}), 0), coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?1), 0))",
        table.key(),
        table.name
    );
    Ok(connection.query_row(&sql, [table.name], |row| row.get(0))?)
}

fn rows(connection: &Connection, table: &Table, after: Option<&Cell>, most: usize) -> Result<Vec<Cells>, Failure> {
    let (columns, name, key) = (table.columns.join(", "), table.name, table.key());
    let sql = match after {
        None => format!("SELECT {columns} FROM {name} ORDER BY {key} LIMIT {most}"),
        Some(_) => format!("SELECT {columns} FROM {name} WHERE {key} > ?1 ORDER BY {key} LIMIT {most}"),
    };
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(after), |row| {
        (0..table.columns.len())
            .map(|column| {
                Ok(match row.get_ref(column)? {
                    ValueRef::Null => Cell::Null,
                    ValueRef::Integer(number) => Cell::Number(number),
                    // A text that is none would come out as another, and be another row's key.
                    ValueRef::Text(text) => match std::str::from_utf8(text) {
                        Ok(text) => Cell::Text(text.to_owned()),
                        Err(error) => return Err(rusqlite::Error::Utf8Error(column, error)),
                    },
                    ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
                    // No column of ours is a real number.
                    ValueRef::Real(_) => {
                        return Err(rusqlite::Error::InvalidColumnType(
                            column,
                            table.columns[column].to_owned(),
                            rusqlite::types::Type::Real,
                        ));
                    }
                })
            })
            .collect()
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Number(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
