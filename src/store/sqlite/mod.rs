//! The store in one file, for one machine: SQLite with a write-ahead log.
//!
//! Readers answer inline on the thread that asks, each on a connection of its own: a cached statement takes a few
//! microseconds, less than handing it to another thread would. Writes go to one thread that commits many at once.

mod count;
mod keys;
mod mail;
mod moving;
mod people;
mod reader;
mod schema;
mod sign_ups;
mod writer;

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use self::count::Counter;
use self::reader::Readers;
use self::writer::Writer;
use super::{Answer, Claim, Store, StoreError, Tidied, WRITE_BATCH};
use crate::domain::api_key::{KeyId, KeyRecord};
use crate::domain::email::EmailAddress;
use crate::domain::mail::{DueMail, MailId, MailOutcome, WaitingMail};
use crate::domain::referral::ReferralCode;
use crate::domain::signup::{Confirmation, Declining, NamedPerson, NewSignUp, SignUpId, SignUpRecord, SignedUp};
use crate::domain::time::Timestamp;
use crate::reply::Reply;

pub use self::moving::{SqliteSource, SqliteTarget};
pub use self::schema::OpenError;

#[derive(Debug)]
pub struct SqliteStore {
    readers: Readers,
    writer: Writer,
    counter: Counter,
    path: PathBuf,
    /// The file that was opened, whatever stands at its path later.
    file: (u64, u64),
}

impl SqliteStore {
    /// Opens the file, makes it if it is not there, and brings its schema up to date.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_with_batch(path, WRITE_BATCH)
    }

    /// The same with another number of units to a commit; 1 is the yardstick that batches are measured against.
    pub fn open_with_batch(path: &Path, batch: usize) -> Result<Self, OpenError> {
        let connection = schema::open(path)?;
        let readers = Readers::open(path)?;
        let writer = Writer::start(connection, batch).map_err(OpenError::System)?;
        let file = identity(path).map_err(OpenError::System)?;
        Ok(Self { readers, writer, counter: Counter::default(), path: path.to_owned(), file })
    }
}

/// What tells a file from another one of the same name.
fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(path)?;
    Ok((file.dev(), file.ino()))
}

/// The settings every connection runs with.
fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    // FULL syncs the log at each commit: an answered sign-up survives a power cut. A small page cache without memory
    // mapping was faster at two million people than a large one, and keeps the process small.
    connection.execute_batch(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         PRAGMA cache_size = -8192;
         PRAGMA mmap_size = 0;
         PRAGMA wal_autocheckpoint = 1000;
         PRAGMA temp_store = MEMORY;",
    )?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// Why a query or a unit of work did not succeed, before it is told to the outside.
#[derive(Debug)]
enum Failure {
    /// The rules of the house say no; SQLite is well.
    Refused(StoreError),
    Sqlite(rusqlite::Error),
}

impl Failure {
    fn is_busy(&self) -> bool {
        matches!(self, Self::Sqlite(error) if is_busy(error))
    }
}

/// Whether another connection or process stands in the way.
fn is_busy(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked))
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(error) => error,
            // SQLite's messages name tables and columns, never values.
            Failure::Sqlite(error) => Self::Unavailable(format!("SQLite: {error}")),
        }
    }
}

impl Store for SqliteStore {
    fn member_count(&self) -> Answer<'_, u64> {
        self.counter.read(&self.readers)
    }

    fn sign_up(&self, new: NewSignUp, now: Timestamp) -> Answer<'_, SignedUp> {
        self.writer.write(sign_ups::SignUp { new, now })
    }

    fn referral_code(&self, email: &EmailAddress) -> Answer<'_, Option<ReferralCode>> {
        let compared = email.compared();
        self.readers.read(move |connection| people::find_code(connection, &compared))
    }

    fn create_referral_code(&self, person: NamedPerson, now: Timestamp) -> Answer<'_, ReferralCode> {
        self.writer.write(people::CreateReferralCode { person, now })
    }

    fn confirm(&self, sign_up: SignUpId, seen: Option<Timestamp>, now: Timestamp) -> Answer<'_, Confirmation> {
        self.writer.write(sign_ups::Confirm { sign_up, seen, now })
    }

    fn find_sign_up(&self, sign_up: SignUpId, now: Timestamp) -> Answer<'_, Option<SignUpRecord>> {
        self.readers.read(move |connection| sign_ups::find(connection, sign_up, now))
    }

    fn decline(&self, sign_up: SignUpId, now: Timestamp) -> Answer<'_, Declining> {
        self.writer.write(sign_ups::Decline { sign_up, now })
    }

    fn lease_mail(&self, worker: &str, most: usize, now: Timestamp) -> Answer<'_, Vec<DueMail>> {
        self.writer.write(mail::Lease { worker: worker.to_owned(), most, now })
    }

    fn settle_mail(&self, mail: MailId, attempt: u32, outcome: MailOutcome, now: Timestamp) -> Answer<'_, ()> {
        self.writer.write(mail::Settle { mail, attempt, outcome, now })
    }

    fn release_mail(&self, worker: &str) -> Answer<'_, usize> {
        self.writer.write(mail::Release { worker: worker.to_owned() })
    }

    fn list_mail(&self) -> Answer<'_, Vec<WaitingMail>> {
        self.readers.read(mail::list)
    }

    fn retry_mail(&self, mail: MailId, now: Timestamp) -> Answer<'_, bool> {
        self.writer.write(mail::Retry { mail, now })
    }

    fn tidy(&self, now: Timestamp) -> Answer<'_, Tidied> {
        self.writer.write(sign_ups::Tidy { now })
    }

    fn find_key(&self, id: KeyId) -> Answer<'_, Option<KeyRecord>> {
        self.readers.read(move |connection| keys::find(connection, id))
    }

    fn list_keys(&self) -> Answer<'_, Vec<(KeyRecord, u64)>> {
        self.readers.read(keys::list)
    }

    fn issue_key(&self, key: KeyRecord) -> Answer<'_, ()> {
        self.writer.write(keys::Issue(key))
    }

    fn revoke_key(&self, id: KeyId, now: Timestamp) -> Answer<'_, Option<KeyRecord>> {
        self.writer.write(keys::Revoke { id, now })
    }

    fn rotate_key(&self, old: KeyId, end: Timestamp, successor: KeyRecord) -> Answer<'_, bool> {
        self.writer.write(keys::Rotate { old, end, successor })
    }

    fn touch_key(&self, id: KeyId, now: Timestamp) -> Answer<'_, ()> {
        self.writer.write(keys::Touch { id, now })
    }

    fn pause_sign_ups(&self, paused: bool) -> Answer<'_, bool> {
        self.writer.write(people::Pause(paused))
    }

    fn claim_secret(&self, fingerprint: String) -> Answer<'_, Claim> {
        self.writer.write(keys::ClaimSecret(fingerprint))
    }

    fn check(&self) -> Answer<'_, ()> {
        // Files that were deleted under a running process still take writes, and lose them.
        match identity(&self.path) {
            Ok(now) if now == self.file => self.writer.write(keys::Check),
            _ => Reply::now(Err(StoreError::Unavailable("SQLite: the database file was moved or deleted".to_owned()))),
        }
    }

    fn close(&self) -> Answer<'_, ()> {
        self.writer.close()
    }
}

/// A column that holds a value of the domain; one that does not was written by other hands, and is named.
fn parsed<T>(row: &rusqlite::Row<'_>, column: usize, parse: impl Fn(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str().ok().and_then(parse);
    text.ok_or_else(|| {
        let name = row.as_ref().column_name(column).unwrap_or("?").to_owned();
        rusqlite::Error::InvalidColumnType(column, name, rusqlite::types::Type::Text)
    })
}
