//! Snapshots of the file, for backups: taken beside the running service, examined, and made fit to serve again.
//!
//! Taken with `VACUUM INTO` and not with SQLite's copying of pages (its backup API). Either reads one moment of the
//! write-ahead log and holds up no writer; with 3 million people (1.5 GB) the one took 11 s and the other 5, and the log grew
//! by what was written meanwhile. But pages still hold what was deleted from them, and an address that was erased must not
//! live on in every later backup.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::transfer::{place, refuse_leftovers, refused};
use super::{SqliteOpenError, schema, statement};
use crate::store::StoreError;
use crate::store::migration::{MIGRATIONS, Prepare};
use crate::store::sql::{Failure, Job, Unit, result_of};

/// Little, whatever the size of the records: four times as much made the examination a fifth faster.
const CACHE: &str = "PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY";

/// Leaves out what monitoring and the backups themselves write: two copies of the same records are the same file, bytes that are
/// free included.
const STEADY: &str = "PRAGMA secure_delete = ON;
                      UPDATE readiness SET checked_at = 0, probe = NULL;
                      UPDATE installation SET backed_up_at = NULL;
                      PRAGMA wal_checkpoint(TRUNCATE)";

/// Records in a file of their own that no service uses.
pub struct SqliteSnapshot {
    connection: Connection,
    file: PathBuf,
}

/// What was found in a snapshot.
#[derive(Clone, PartialEq, Eq)]
pub struct Examined {
    pub schema: usize,
    pub members: u64,
    /// Whose records they are; nobody's if no service was ever started on them.
    pub secret_fingerprint: Option<String>,
}

impl SqliteSnapshot {
    /// Writes what the database holds at one moment into a file that is there and empty. Of an older schema, too: before an
    /// upgrade is the time for a backup.
    pub fn take(database: &Path, file: &Path) -> Result<Self, SqliteOpenError> {
        let source = connect(database)?;
        let failed = |cause| SqliteOpenError::Open { path: database.to_owned(), cause };
        let name = file.to_str().ok_or_else(|| {
            SqliteOpenError::System(std::io::Error::other(format!("the name {} is no text", file.display())))
        })?;
        source.execute("VACUUM INTO ?1", [name]).map_err(failed)?;
        let taken = Self::open(file)?;
        taken.connection.execute_batch(STEADY).map_err(failed)?;
        Ok(taken)
    }

    /// One that was taken before.
    pub fn open(file: &Path) -> Result<Self, SqliteOpenError> {
        Ok(Self { connection: connect(file)?, file: file.to_owned() })
    }

    /// Refuses a place where records are already, or what is left of some.
    pub fn check_vacant(database: &Path) -> Result<(), SqliteOpenError> {
        match std::fs::symlink_metadata(database) {
            Ok(there) if !is_empty_file(&there) => Err(SqliteOpenError::Taken { path: database.to_owned() }),
            Err(error) if error.kind() != ErrorKind::NotFound => Err(SqliteOpenError::System(error)),
            _ => refuse_leftovers(database),
        }
    }

    /// Reads all of it: whether the file is sound, whether every row that another refers to is there, and whether there are as
    /// many members as are counted.
    pub fn examine(&self) -> Result<Examined, StoreError> {
        Ok(self.look()?)
    }

    fn look(&self) -> Result<Examined, Failure> {
        let found: String = self.connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if found != "ok" {
            return Err(refused(&format!("the file is damaged: {found}")));
        }
        if self.connection.prepare("SELECT 1 FROM pragma_foreign_key_check LIMIT 1")?.exists([])? {
            return Err(refused("some rows refer to others that are not there"));
        }
        let figures = "SELECT member_count, (SELECT count(*) FROM people WHERE state = 'member'), secret_fingerprint
                       FROM installation WHERE id = 1";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get(2)?));
        let (counted, members, secret_fingerprint) = self.connection.query_row(figures, [], read)?;
        if counted != members {
            return Err(refused(&format!("{counted} members are counted, and {members} are there")));
        }
        let schema = schema::version(&self.connection)?;
        Ok(Examined { schema, members: members.unsigned_abs(), secret_fingerprint })
    }

    /// Makes the records fit to be served again after a gap in which nobody knows what happened: brings the schema up to
    /// date, moves every id ahead, takes back what workers had leased and holds the mail that waited, for it may have gone
    /// since. Says how many mails that are. Who does so is written down with it.
    pub fn resume<U: Unit>(&mut self, resume: U, id_gap: i64) -> Result<U::Done, StoreError> {
        let opened = schema::open(&self.file, Prepare::Upgrade, MIGRATIONS);
        self.connection = opened.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        // Whatever fails, the copy goes, and with it what was begun.
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(Failure::from)?;
        self.raise_ids(id_gap)?;
        let mut job = <dyn Job>::of(resume);
        let applied = statement::apply(&mut *job, &mut self.connection);
        let applied = applied.and_then(|()| Ok(self.connection.execute_batch("COMMIT")?));
        result_of(applied.map(|()| job).map_err(StoreError::from))
    }

    fn raise_ids(&self, gap: i64) -> Result<(), Failure> {
        let begin = "INSERT INTO sqlite_sequence (name, seq)
                     SELECT name, 0 FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'
                     AND name NOT IN (SELECT name FROM sqlite_sequence)";
        self.connection.execute(begin, [])?;
        self.connection.execute("UPDATE sqlite_sequence SET seq = seq + ?1", [gap])?;
        Ok(())
    }

    /// Lets go of the file, with nothing left beside it.
    pub fn close(self) -> Result<(), StoreError> {
        let close = || {
            self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
            self.connection.close().map_err(|(_, error)| Failure::from(error))
        };
        Ok(close()?)
    }

    /// Puts the file where the service looks for it. It is whole and on the disk by then, and nothing else is overwritten.
    pub fn put_in_place(self, database: &Path) -> Result<(), StoreError> {
        let file = self.file.clone();
        self.close()?;
        // An empty file is what a service leaves that was ended before its first step.
        if std::fs::symlink_metadata(database).is_ok_and(|there| is_empty_file(&there)) {
            std::fs::remove_file(database).map_err(|error| refused(&format!("{}: {error}", database.display())))?;
        }
        Ok(place(&file, database)?)
    }
}

fn is_empty_file(there: &Metadata) -> bool {
    there.is_file() && there.len() == 0
}

/// A connection to records of ours, of any schema that we know, which changes nothing about them.
fn connect(path: &Path) -> Result<Connection, SqliteOpenError> {
    let failed = |cause| SqliteOpenError::Open { path: path.to_owned(), cause };
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    connection.busy_timeout(schema::WRITE_BUSY_TIMEOUT).map_err(failed)?;
    connection.execute_batch(CACHE).map_err(failed)?;
    schema::check_known(&connection, path, MIGRATIONS)?;
    Ok(connection)
}
