//! The store for many nodes: PostgreSQL, with as many unionhall processes before it as one likes.
//!
//! A node keeps nothing of its own. Sign-ups that arrive together share a commit, and so do confirmations; requests for the
//! member count that arrive together are one read. What two nodes do at once meets in the database: by row locks, by unique
//! indexes, and by a lock on the mailbox where a decision rests on rows that are not there yet.

mod address;
mod batch;
mod batch_statement;
mod confirm;
mod connection;
mod count;
mod facts;
mod identity;
#[cfg(debug_assertions)]
mod plan;
mod pool;
mod sandbox;
mod schema;
mod tls;
mod transfer;

use std::sync::Arc;

use self::batch::Batcher;
use self::batch_statement::QueuedSignUp;
use self::connection::ExpectedIdentity;
use self::count::PostgresCounter;
use self::identity::{NoteIdentity, PgResume};
use self::pool::{Pool, Shares};
use super::audit::{Act, Audited};
use super::installation::{CHECK, Check};
use super::members::confirm::{Confirm, ConfirmRequest};
use super::migration::{MIGRATIONS, Migration, Prepare};
use super::resume::Resume;
use super::sql::{Failure, Job, JobReply, Sql, Unit, expected, values};
use super::{Engine, Store, StoreError, StoreFigures, StoreReply};
use crate::domain::sign_up::{Confirmation, NewSignUp, SeenPage, SignUpRef, SignedUp};
use crate::domain::time::Timestamp;
use crate::reply::Reply;

pub use self::address::{Address, BadAddress};
pub use self::facts::{PostgresFacts, learn};
pub use self::sandbox::{SandboxPlace, find_sandbox, make_sandbox};
pub use self::schema::PostgresOpenError;
pub use self::transfer::PostgresTransfer;

#[derive(Debug)]
pub struct PostgresStore {
    pool: Pool,
    sign_ups: Batcher<QueuedSignUp>,
    confirmations: Batcher<ConfirmRequest>,
    counter: PostgresCounter,
    /// Its sign-ups and confirmations are plain units, which also count for each partner.
    is_sandbox: bool,
}

/// Sorting more than its memory makes the server write a file of its own, some 300 kB beside the tables: a full disk refuses
/// that, while a change of one row still finds room in its page.
const CHECK_FOR_ROOM: Check = Check {
    take_room: &[
        "SET LOCAL temp_tablespaces = ''",
        "SET LOCAL work_mem = '64kB'",
        "SELECT count(*) FROM (SELECT n FROM generate_series(1, 2000) n ORDER BY repeat(md5(n::text), 4)) AS probe",
    ],
    ..CHECK
};

/// Of the whole database, as its server sees it.
struct DatabaseBytes;

impl Unit for DatabaseBytes {
    type Done = u64;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        expected(sql.row("SELECT pg_database_size(current_database())", values![], |row| row.get(0)).await?)
    }
}

impl PostgresStore {
    /// Connects, and does to the schema what is meant; several nodes may do so at once. `batch` is how many sign-ups, or
    /// confirmations, may share a commit.
    pub async fn open(address: Address, prepare: Prepare, batch: usize) -> Result<Self, PostgresOpenError> {
        Self::open_with(address, prepare, batch, MIGRATIONS).await
    }

    /// The same with the steps of a release to come.
    pub async fn open_with(
        address: Address,
        prepare: Prepare,
        batch: usize,
        migrations: &'static [Migration],
    ) -> Result<Self, PostgresOpenError> {
        let shares = Shares::of(&address);
        let expected = ExpectedIdentity::default();
        let pool = Pool::new(address.clone(), shares.rest, Arc::clone(&expected))?;
        schema::prepare(&pool, prepare, migrations).await?;
        let is_sandbox = address.schema.is_some();
        // Nobody is harmed where simulated people come back.
        if !is_sandbox {
            identity::check(&pool, prepare).await?;
        }
        let batch = if is_sandbox { 1 } else { batch };
        let batched = || Pool::for_batches(address.clone(), shares.batched, Arc::clone(&expected));
        Ok(Self {
            sign_ups: Batcher::start(batched()?, batch),
            confirmations: Batcher::start(batched()?, batch),
            counter: PostgresCounter::start(Pool::new(address.clone(), shares.count, Arc::clone(&expected))?),
            pool,
            is_sandbox,
        })
    }

    /// Makes records that were restored from a copy fit to be served again; says how many mails are held.
    pub async fn resume(&self, resume: &Resume) -> Result<u64, StoreError> {
        self.pool.run(&mut PgResume(resume)).await
    }

    /// Takes the records for complete, wherever they are now.
    pub async fn note_identity(&self) -> Result<(), StoreError> {
        self.pool.run(&mut NoteIdentity).await
    }
}

impl Engine for PostgresStore {
    fn read_job(&self, mut job: Box<dyn Job>) -> JobReply<'_> {
        Reply::later(async move {
            self.pool.run(&mut job).await.map_err(StoreError::of_a_read)?;
            Ok(job)
        })
    }

    fn write_job(&self, mut job: Box<dyn Job>) -> JobReply<'_> {
        Reply::later(async move {
            self.pool.run_patiently(&mut job).await?;
            Ok(job)
        })
    }

    fn member_count(&self) -> StoreReply<'_, u64> {
        self.counter.read()
    }

    fn sign_up(&self, new: NewSignUp, now: Timestamp) -> StoreReply<'_, SignedUp> {
        let job = QueuedSignUp::new(new, now);
        if job.is_of_sandbox() { self.sign_ups.ask_alone(job) } else { self.sign_ups.ask(job) }
    }

    fn confirm(&self, sign_up: SignUpRef, seen: SeenPage, now: Timestamp) -> StoreReply<'_, Confirmation> {
        let request = ConfirmRequest { sign_up, seen, now };
        if self.is_sandbox {
            return (self as &dyn Engine).write(Confirm { request, declined: None });
        }
        self.confirmations.ask(request)
    }

    fn database_bytes(&self) -> StoreReply<'_, u64> {
        (self as &dyn Engine).read(DatabaseBytes)
    }

    fn check(&self, for_room: bool) -> StoreReply<'_, ()> {
        (self as &dyn Engine).write(if for_room { CHECK_FOR_ROOM } else { CHECK })
    }

    fn figures(&self) -> StoreReply<'_, StoreFigures> {
        let ((writer, sign_ups), (of_confirmations, confirmations)) =
            (self.sign_ups.figures(), self.confirmations.figures());
        let writer = writer.and(&of_confirmations);
        let pools = vec![sign_ups, confirmations, self.counter.figures(), self.pool.figures("rest")];
        Reply::now(Ok(StoreFigures { writer, pools }))
    }

    fn close(&self) -> StoreReply<'_, ()> {
        Reply::later(async {
            let (sign_ups, confirmations) = tokio::join!(self.sign_ups.close(), self.confirmations.close());
            sign_ups.and(confirmations)?;
            self.pool.close();
            Ok(())
        })
    }

    fn audited(self: Arc<Self>, act: Act) -> Arc<dyn Store> {
        Arc::new(Audited { engine: self, act })
    }
}
