//! The store in one file, for one machine: SQLite with a write-ahead log.
//!
//! Readers answer inline on the thread that asks, each on a connection of its own: a cached statement takes a few
//! microseconds, less than handing it to another thread would. Writes go to one thread that commits many at once.

mod backup;
mod checkpoint;
mod count;
#[cfg(debug_assertions)]
mod plan;
mod quick_check;
mod reader;
mod schema;
mod statement;
mod transfer;
mod writer;

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use self::count::SqliteCounter;
use self::reader::Readers;
use self::writer::Writer;
use super::migration::{MIGRATIONS, Migration, Prepare};
use super::sql::{How, Job, JobReply, result_of};
use super::{Engine, StoreError, StoreReply, WRITE_BATCH};
use crate::reply::Reply;

pub use self::backup::{Examined, SqliteSnapshot};
pub use self::quick_check::quick_check;
pub use self::schema::SqliteOpenError;
pub use self::transfer::SqliteTransfer;
use crate::store::check::{CHECK, Check};
use crate::store::queue::StoreFigures;

pub struct SqliteStore {
    readers: Readers,
    writer: Writer,
    counter: SqliteCounter,
    file: OpenedFile,
}

impl SqliteStore {
    /// Opens the file, makes it if it is not there, and brings its schema up to date.
    pub fn open(path: &Path) -> Result<Self, SqliteOpenError> {
        Self::open_with(path, Prepare::Upgrade, WRITE_BATCH, MIGRATIONS)
    }

    /// The same with less done to the schema, another number of units to a commit (1 is the yardstick that batches are
    /// measured against), or with the steps of a release to come.
    pub fn open_with(
        path: &Path,
        prepare: Prepare,
        batch: usize,
        migrations: &[Migration],
    ) -> Result<Self, SqliteOpenError> {
        let connection = schema::open(path, prepare, migrations)?;
        let readers = Readers::open(path)?;
        let file = OpenedFile::at(path).map_err(SqliteOpenError::System)?;
        let writer = Writer::start(connection, file.clone(), batch).map_err(SqliteOpenError::System)?;
        Ok(Self { readers, writer, counter: SqliteCounter::default(), file })
    }
}

/// The database, or a file that SQLite keeps beside it.
fn beside(database: &Path, end: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(end);
    path.into()
}

/// The file that was opened, whatever stands at its path later.
#[derive(Debug, Clone)]
struct OpenedFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl OpenedFile {
    fn at(path: &Path) -> std::io::Result<Self> {
        let (device, inode) = identity(path)?;
        Ok(Self { path: path.to_owned(), device, inode })
    }

    /// A look at the folder, which is a microsecond.
    fn is_in_place(&self) -> Result<(), StoreError> {
        match identity(&self.path) {
            Ok(found) if found == (self.device, self.inode) => Ok(()),
            _ => Err(StoreError::Unavailable("SQLite: the database file was moved or deleted".to_owned())),
        }
    }
}

/// What tells a file from another one of the same name.
fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(path)?;
    Ok((file.dev(), file.ino()))
}

/// 32 pages, more than a sign-up writes, and other bytes each time: SQLite writes no page that stays the same.
const CHECK_FOR_ROOM: Check = Check {
    take_room: &[],
    change: "UPDATE readiness SET checked_at = checked_at + 1, probe = randomblob(131072) WHERE id = 1",
};

/// The settings every connection runs with.
fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    // FULL syncs the log at each commit: an answered sign-up survives a power cut. A small page cache without memory
    // mapping was faster at two million people than a large one, and keeps the process small.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         PRAGMA recursive_triggers = ON;
         PRAGMA cache_size = -8192;
         PRAGMA mmap_size = 0;
         PRAGMA wal_autocheckpoint = 1000;
         PRAGMA temp_store = MEMORY;",
    )?;
    connection.set_prepared_statement_cache_capacity(64);
    // The planner never looks at the values (query planner stability guarantee). Otherwise a value for a LIMIT, or beside a partial
    // index, throws the cached statement away: preparing it again costs more than running it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Whether another connection or process stands in the way.
fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}

impl Engine for SqliteStore {
    fn run(&self, how: How, job: Box<dyn Job>) -> JobReply<'_> {
        match how {
            How::Read => self.readers.run(job),
            How::Scan => self.readers.run_apart(job),
            How::Write | How::Transaction => self.writer.write(job),
        }
    }

    fn member_count(&self) -> StoreReply<'_, u64> {
        self.counter.read(&self.readers)
    }

    /// With its log, which may be the larger of the two for a while.
    fn database_bytes(&self) -> StoreReply<'_, u64> {
        let size = |end| std::fs::metadata(beside(&self.file.path, end)).map_or(0, |file| file.len());
        Reply::now(Ok(size("") + size("-wal")))
    }

    fn check(&self, for_room: bool) -> StoreReply<'_, ()> {
        match self.file.is_in_place() {
            Ok(()) => self.writer.write(<dyn Job>::of(if for_room { CHECK_FOR_ROOM } else { CHECK })).map(result_of),
            Err(moved) => Reply::now(Err(moved)),
        }
    }

    fn figures(&self) -> StoreFigures {
        StoreFigures { writer: self.writer.figures(), pools: vec![self.readers.figures()] }
    }

    fn close(&self) -> StoreReply<'_, ()> {
        self.writer.close()
    }
}
