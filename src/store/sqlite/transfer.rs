//! Carrying all records away from SQLite, or to it (`unionhall move`).

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params_from_iter};

use super::{SqliteOpenError, beside, schema};
use crate::domain::time::Timestamp;
use crate::private_files::folder_of;
use crate::reply::Reply;
use crate::store::migration::{MIGRATIONS, Prepare};
use crate::store::sql::{Failure, SqlReply, Value};
use crate::store::transfer::{Cell, Cells, TABLES, Table, TableColumns, Transfer, cells};

/// A file whose records are carried away, or to: held by a transaction that lets nobody else write.
pub struct SqliteTransfer {
    /// None once it is finished.
    connection: Option<Connection>,
    /// A new file is written under another name until it is whole: that name, and where it will stand.
    placing: Option<(PathBuf, PathBuf)>,
}

impl SqliteTransfer {
    pub fn open_source(path: &Path) -> Result<Self, SqliteOpenError> {
        Self::hold(schema::open(path, Prepare::Expect, MIGRATIONS)?, path, "BEGIN IMMEDIATE", None)
    }

    /// `unfinished` is a file beside `path` that is there and empty.
    pub fn open_target(unfinished: &Path, path: &Path) -> Result<Self, SqliteOpenError> {
        if unfinished != path {
            refuse_leftovers(path)?;
        }
        let connection = schema::open(unfinished, Prepare::Make, MIGRATIONS)?;
        // A person may have been referred by one who came later; all of it is checked at the end.
        let placing = Some((unfinished.to_owned(), path.to_owned()));
        Self::hold(connection, unfinished, "PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE", placing)
    }

    fn hold(
        connection: Connection,
        path: &Path,
        sql: &str,
        placing: Option<(PathBuf, PathBuf)>,
    ) -> Result<Self, SqliteOpenError> {
        let held = connection.execute_batch(sql);
        held.map_err(|cause| SqliteOpenError::Open { path: path.to_owned(), cause })?;
        Ok(Self { connection: Some(connection), placing })
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
        let Some((unfinished, path)) = self.placing.take().filter(|(unfinished, path)| unfinished != path) else {
            return Ok(());
        };
        place(&unfinished, &path)
    }
}

/// Puts a database that is finished and closed where it will be used.
pub(super) fn place(unfinished: &Path, path: &Path) -> Result<(), Failure> {
    refuse_leftovers(path).map_err(|error| refused(&error.to_string()))?;
    // A link is made only where nothing is: what somebody put there meanwhile stays.
    let placed = std::fs::hard_link(unfinished, path)
        .and_then(|()| std::fs::remove_file(unfinished))
        .and_then(|()| std::fs::File::open(folder_of(path))?.sync_all());
    placed.map_err(|error| refused(&format!("{}: {error}", path.display())))
}

/// SQLite would take what another database of that name left behind for this one's.
pub(super) fn refuse_leftovers(path: &Path) -> Result<(), SqliteOpenError> {
    for end in ["-wal", "-shm", "-journal"] {
        let path = beside(path, end);
        if path.exists() {
            return Err(SqliteOpenError::Leftover { path });
        }
    }
    Ok(())
}

pub(super) fn refused(why: &str) -> Failure {
    Failure::Unusable(format!("SQLite: {why}"))
}

impl Transfer for SqliteTransfer {
    fn select<'a>(&'a mut self, sql: String, after: Option<&'a Cell>) -> SqlReply<'a, Vec<Cells>> {
        let select = || {
            let mut statement = self.connection()?.prepare_cached(&sql)?;
            let columns = statement.column_count();
            let mut rows = statement.query(params_from_iter(after.map(Value::from)))?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                all.push(cells(row, columns)?);
            }
            Ok(all)
        };
        Reply::now(select())
    }

    fn columns(&mut self, table: &'static Table) -> SqlReply<'_, Vec<String>> {
        let columns = || {
            let mut statement = self.connection()?.prepare("SELECT name FROM pragma_table_info(?1)")?;
            let names = statement.query_map([table.name], |row| row.get(0))?;
            Ok(names.collect::<Result<_, _>>()?)
        };
        Reply::now(columns())
    }

    /// SQLite writes it down (AUTOINCREMENT), even of a row that is gone.
    fn last_number(&mut self, table: &'static Table) -> SqlReply<'_, i64> {
        let sql = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = ?1), 0)";
        let last = || Ok(self.connection()?.query_row(sql, [table.name], |row| row.get(0))?);
        Reply::now(last())
    }

    fn retire<'a>(&'a mut self, place: &'a str, now: Timestamp) -> SqlReply<'a, ()> {
        let retire = || {
            let connection = self.connection()?;
            connection.execute_batch("CREATE TABLE moved (place TEXT NOT NULL, at INTEGER NOT NULL) STRICT")?;
            connection.execute("INSERT INTO moved (place, at) VALUES (?1, ?2)", (place, now.as_millis()))?;
            for Table { name, .. } in TABLES {
                for change in ["INSERT", "UPDATE", "DELETE"] {
                    connection.execute_batch(&format!(
                        "CREATE TRIGGER moved_{name}_{change} BEFORE {change} ON {name}
                         BEGIN SELECT RAISE(ABORT, 'these records were moved to another store'); END"
                    ))?;
                }
            }
            Ok(connection.execute_batch("COMMIT")?)
        };
        Reply::now(retire())
    }

    fn append<'a>(&'a mut self, table: &'a TableColumns, rows: &'a [Cells]) -> SqlReply<'a, ()> {
        let append = || {
            let TableColumns { table: Table { name, .. }, columns } = table;
            let places: Vec<_> = columns.split(',').map(|_| "?").collect();
            // In some tables there is a row already.
            let sql = format!("INSERT OR REPLACE INTO {name} ({columns}) VALUES ({})", places.join(", "));
            let mut statement = self.connection()?.prepare_cached(&sql)?;
            for row in rows {
                statement.execute(params_from_iter(row.iter().map(Value::from)))?;
            }
            Ok(())
        };
        Reply::now(append())
    }

    fn number_after(&mut self, table: &'static Table, last: i64) -> SqlReply<'_, ()> {
        let write = || {
            let connection = self.connection()?;
            connection.execute("DELETE FROM sqlite_sequence WHERE name = ?1", [table.name])?;
            connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (table.name, last))?;
            Ok(())
        };
        Reply::now(write())
    }

    fn finish(&mut self) -> SqlReply<'_, ()> {
        Reply::now(self.put_in_place())
    }
}
