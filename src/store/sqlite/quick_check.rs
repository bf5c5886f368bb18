//! SQLite's own examination of the whole file, for an operator who doubts it.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::store::StoreError;
use crate::store::sql::Failure;

/// Reads every page. What is wrong is told as SQLite tells it, the first of it: pages and tables, no values.
pub fn quick_check(path: &Path) -> Result<(), StoreError> {
    match examine(path).map_err(Failure::from)?.as_str() {
        "ok" => Ok(()),
        wrong => Err(StoreError::Damaged(format!("SQLite: {}", wrong.replace('\n', " ")))),
    }
}

fn examine(path: &Path) -> rusqlite::Result<String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
}
