//! Opening the file: is it ours, is it of our time, and what must be done to bring it there (migrations).

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};
use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;

use crate::domain::remedy::Remedy;
use crate::domain::time::Timestamp;
use crate::private_files::folder_of;
use crate::store::migration::{Migration, Prepare, fingerprint};
use crate::store::sql::{describe_sqlite, remedy_of_sqlite};

/// "unha" in ASCII: marks the file as ours for `file(1)` and for us.
const APPLICATION_ID: i64 = 0x756e_6861;

/// How long another process, such as a command of the operator's, may keep a write waiting.
pub(super) const WRITE_BUSY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum SqliteOpenError {
    /// Its cause is no source: the text of a step would be told with it.
    #[error("cannot open the database {}: {}", path.display(), describe_sqlite(cause))]
    Open { path: PathBuf, cause: rusqlite::Error },
    #[error(
        "permission denied: this user may not read {}; run as the user that the service runs as, or give the file to this \
         one with chown", path.display()
    )]
    Denied { path: PathBuf },
    #[error(
        "{} is read-only to this user, and the database is written there; let this user write it, with chown or chmod u+w, \
         and see that its file system is not mounted read-only", path.display()
    )]
    ReadOnly { path: PathBuf },
    #[error(
        "{} is not a unionhall database; give another data folder or file, or restore a backup if it was one", path.display()
    )]
    Foreign { path: PathBuf },
    #[error(
        "the database {} was written by a newer unionhall (schema {found}, this one knows {known}); \
         run that version or restore a backup", path.display()
    )]
    Newer { path: PathBuf, found: usize, known: usize },
    #[error(
        "the database {} is of an older unionhall (schema {found}, this one knows {known}); use the unionhall that serves \
         it, or start this version's service, which brings it up to date", path.display()
    )]
    Older { path: PathBuf, found: usize, known: usize },
    #[error("the database {} was left as it was: step {step} of its schema leaves rows that refer to nothing", path.display())]
    Broken { path: PathBuf, step: usize },
    #[error(
        "the database {} was made by another unreleased build (schema {found}, this one has {known}); run the build that made \
         it, or start with an empty data folder", path.display()
    )]
    OtherBuild { path: PathBuf, found: String, known: String },
    #[error("the records in {} were moved to {place} on {}; use those", path.display(), at.day())]
    Moved { path: PathBuf, place: String, at: Timestamp },
    #[error("there are records at {} already; move them away, or give another data folder in UNIONHALL_DATA", path.display())]
    Taken { path: PathBuf },
    #[error("{} is left of another database; it would be taken for this one's: move it away first", path.display())]
    Leftover { path: PathBuf },
    #[error("the system refuses what the database needs: {0}")]
    System(std::io::Error),
}

impl SqliteOpenError {
    /// SQLite's own words for a file or a folder that is not this user's do not say so.
    pub(super) fn opening(path: &Path, cause: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
        let refused = matches!(cause.sqlite_error_code(), Some(CannotOpen | PermissionDenied | ReadOnly));
        let why = if refused { refusal(path) } else { None };
        why.unwrap_or_else(|| Self::Open { path: path.to_owned(), cause })
    }

    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Open { cause, .. } => remedy_of_sqlite(cause),
            _ => None,
        }
    }
}

/// What the system does not let this user do to the database, the log beside it, or the folder it needs that in.
fn refusal(path: &Path) -> Option<SqliteOpenError> {
    let may = |path: &Path, access| rustix::fs::accessat(CWD, path, access, AtFlags::EACCESS);
    for end in ["", "-wal", "-shm"] {
        let path = super::beside(path, end);
        match (may(&path, Access::READ_OK), may(&path, Access::WRITE_OK)) {
            (Err(Errno::ACCESS), _) => return Some(SqliteOpenError::Denied { path }),
            (Ok(()), Err(_)) => return Some(SqliteOpenError::ReadOnly { path }),
            _ => {}
        }
    }
    let folder = folder_of(path);
    let writable = may(folder, Access::WRITE_OK | Access::EXEC_OK);
    writable.is_err().then(|| SqliteOpenError::ReadOnly { path: folder.to_owned() })
}

/// The connection that writes, its schema as this program knows it.
pub(super) fn open(path: &Path, prepare: Prepare, migrations: &[Migration]) -> Result<Connection, SqliteOpenError> {
    let failed = |source| SqliteOpenError::opening(path, source);
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(WRITE_BUSY_TIMEOUT).map_err(failed)?;
    check_ours(&connection, path)?;
    // SQLite opens what it may not write all the same. A command may only want to read; whoever writes is told then.
    if prepare != Prepare::Expect && connection.is_readonly("main").map_err(failed)? {
        return Err(refusal(path).unwrap_or_else(|| SqliteOpenError::ReadOnly { path: path.to_owned() }));
    }
    // Several that start at once all want the write-ahead log, and SQLite lets none of them wait for that.
    let mut patience = 100;
    while let Err(error) = super::set_up(&connection) {
        patience -= 1;
        if patience == 0 || !super::is_busy(&error) {
            return Err(failed(error));
        }
        std::thread::sleep(WRITE_BUSY_TIMEOUT / 100);
    }
    // What is deleted is overwritten: who was erased leaves no bytes in the file.
    connection.pragma_update(None, "secure_delete", true).map_err(failed)?;
    // Before anything is changed: a table that is made anew would no longer refuse writes.
    refuse_moved(&connection, path)?;
    migrate(&mut connection, path, prepare, migrations)?;
    Ok(connection)
}

fn refuse_moved(connection: &Connection, path: &Path) -> Result<(), SqliteOpenError> {
    let failed = |source| SqliteOpenError::opening(path, source);
    if !has_table(connection, "moved").map_err(failed)? {
        return Ok(());
    }
    let read = |row: &rusqlite::Row<'_>| {
        Ok(SqliteOpenError::Moved {
            path: path.to_owned(),
            place: row.get(0)?,
            at: Timestamp::from_millis(row.get(1)?),
        })
    };
    Err(connection.query_row("SELECT place, at FROM moved LIMIT 1", [], read).map_err(failed)?)
}

fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    connection.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1")?.exists([name])
}

/// Refuses what is not ours, what is empty, what is newer or of another build, and what was moved away.
pub(super) fn check_known(
    connection: &Connection,
    path: &Path,
    migrations: &[Migration],
) -> Result<(), SqliteOpenError> {
    let failed = |cause| SqliteOpenError::Open { path: path.to_owned(), cause };
    check_ours(connection, path)?;
    let (found, known) = (version(connection).map_err(failed)?, migrations.len());
    check_build(connection, path, found, migrations)?;
    match found {
        0 => return Err(SqliteOpenError::Foreign { path: path.to_owned() }),
        _ if found > known => return Err(SqliteOpenError::Newer { path: path.to_owned(), found, known }),
        _ => {}
    }
    refuse_moved(connection, path)
}

/// The last step of the schema that was taken.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<usize> {
    number(connection, "user_version").map(|found| usize::try_from(found).unwrap_or(usize::MAX))
}

fn number(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}

/// Refuses a database that is somebody else's before a byte of it is changed.
fn check_ours(connection: &Connection, path: &Path) -> Result<(), SqliteOpenError> {
    let foreign = || SqliteOpenError::Foreign { path: path.to_owned() };
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => foreign(),
        _ => SqliteOpenError::opening(path, source),
    };
    // In one statement: another process may be making the tables at this moment.
    let both = "SELECT (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)";
    let (id, tables): (i64, i64) =
        connection.query_row(both, [], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
    if id == APPLICATION_ID || (id == 0 && tables == 0) { Ok(()) } else { Err(foreign()) }
}

/// The steps that were taken, with the fingerprint of each.
const VERSIONS: &str = "
    CREATE TABLE IF NOT EXISTS unionhall_schema (
        version     INTEGER PRIMARY KEY,
        fingerprint TEXT    NOT NULL
    ) STRICT";

/// Refuses records whose steps have our numbers and another text.
fn check_build(
    connection: &Connection,
    path: &Path,
    found: usize,
    migrations: &[Migration],
) -> Result<(), SqliteOpenError> {
    let failed = |cause| SqliteOpenError::Open { path: path.to_owned(), cause };
    let noted = has_table(connection, "unionhall_schema").map_err(failed)?;
    for (step, migration) in (1..=found).zip(migrations) {
        let taken = "SELECT fingerprint FROM unionhall_schema WHERE version = ?1";
        let taken = || connection.query_row(taken, [step as i64], |row| row.get::<_, String>(0)).optional();
        let taken = if noted { taken().map_err(failed)? } else { None };
        let known = fingerprint(migration.sqlite);
        if taken.as_ref() != Some(&known) {
            let found = taken.unwrap_or_else(|| format!("{found} without a fingerprint"));
            return Err(SqliteOpenError::OtherBuild { path: path.to_owned(), found, known });
        }
    }
    Ok(())
}

/// Two processes may start at once: the second waits for the first's transaction and finds nothing left to do.
fn migrate(
    connection: &mut Connection,
    path: &Path,
    prepare: Prepare,
    migrations: &[Migration],
) -> Result<(), SqliteOpenError> {
    let failed = |cause| SqliteOpenError::Open { path: path.to_owned(), cause };
    let known = migrations.len();
    let version = |connection: &Connection| version(connection).map_err(failed);
    let check = |found: usize| match found {
        _ if found > known => Err(SqliteOpenError::Newer { path: path.to_owned(), found, known }),
        _ if found == known || prepare == Prepare::Upgrade => Ok(()),
        // An empty file is new.
        0 if prepare == Prepare::Make => Ok(()),
        _ => Err(SqliteOpenError::Older { path: path.to_owned(), found, known }),
    };
    let found = version(connection)?;
    check_build(connection, path, found, migrations)?;
    check(found)?;
    if found == known {
        return Ok(());
    }
    // Foreign keys cannot be switched inside a transaction.
    let rebuilds = migrations[found..].iter().any(|step| step.rebuilds);
    connection.pragma_update(None, "foreign_keys", !rebuilds).map_err(failed)?;
    // By hand: a connection that is dropped with its transaction open undoes it.
    connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
    let found = version(connection)?;
    check(found)?;
    connection.execute_batch(VERSIONS).map_err(failed)?;
    for (step, migration) in (1..).zip(migrations).skip(found) {
        connection.execute_batch(migration.sqlite).map_err(failed)?;
        let note = "INSERT INTO unionhall_schema (version, fingerprint) VALUES (?1, ?2)";
        connection.execute(note, (step as i64, fingerprint(migration.sqlite))).map_err(failed)?;
        let mut broken = connection.prepare("SELECT 1 FROM pragma_foreign_key_check LIMIT 1").map_err(failed)?;
        if migration.rebuilds && broken.exists([]).map_err(failed)? {
            return Err(SqliteOpenError::Broken { path: path.to_owned(), step });
        }
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    connection.pragma_update(None, "user_version", known as i64).map_err(failed)?;
    connection.execute_batch("COMMIT").map_err(failed)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::migration::MIGRATIONS;

    fn open(path: &Path) -> Result<Connection, SqliteOpenError> {
        super::open(path, Prepare::Upgrade, MIGRATIONS)
    }

    #[test]
    fn a_new_file_is_made_and_an_old_one_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("unionhall.db");
        for _ in 0..2 {
            let connection = open(&path).unwrap();
            assert_eq!(number(&connection, "user_version").unwrap(), MIGRATIONS.len() as i64);
            let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
            assert_eq!(mode, "wal");
            assert_eq!(number(&connection, "synchronous").unwrap(), 2, "FULL");
        }
    }

    #[test]
    fn a_database_of_another_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("theirs.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
        assert!(matches!(open(&path), Err(SqliteOpenError::Foreign { .. })));
        std::fs::write(folder.path().join("text.db"), "not a database at all, but a text".repeat(100)).unwrap();
        assert!(matches!(open(&folder.path().join("text.db")), Err(SqliteOpenError::Foreign { .. })));
    }
}
