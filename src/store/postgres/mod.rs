//! The store for many nodes: PostgreSQL, with as many unionhall processes before it as one likes.
//!
//! A node keeps nothing of its own. Sign-ups that arrive together share a commit, and so do confirmations; requests for the
//! member count that arrive together are one read. What two nodes do at once meets in the database: by row locks, by unique
//! indexes, and by a lock on the mailbox where a decision rests on rows that are not there yet.

mod address;
pub mod batch;
pub mod connection;
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

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::batch::{AnyBatcher, Batched, Batcher};
use self::connection::ExpectedIdentity;
use self::count::PostgresCounter;
use self::identity::PgResume;
use self::pool::{OTHER_CONNECTIONS, Pool};
use super::migration::{MIGRATIONS, Migration, Prepare};
use super::sql::{Failure, How, Job, JobReply, Sql, Unit, expected, result_of, values};
use super::{Engine, StoreError, StoreReply};
use crate::reply::Reply;

pub use self::address::{Address, BadAddress};
pub use self::facts::{PostgresFacts, learn};
pub use self::sandbox::{SandboxPlace, find_sandbox, make_sandbox};
pub use self::schema::PostgresOpenError;
pub use self::transfer::PostgresTransfer;
use crate::store::check::{CHECK, Check};
use crate::store::queue::{StoreFigures, WriterFigures};

pub struct PostgresStore {
    address: Address,
    expected: ExpectedIdentity,
    pool: Pool,
    /// Units of a kind that may share a commit.
    batch: usize,
    batchers: Mutex<Vec<Arc<dyn AnyBatcher>>>,
    counter: PostgresCounter,
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
    const HOW: How = How::Read;

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
        let expected = ExpectedIdentity::default();
        let pool = Pool::new(address.clone(), OTHER_CONNECTIONS, Arc::clone(&expected))?;
        schema::prepare(&pool, prepare, migrations).await?;
        // Nobody is harmed where simulated people come back.
        if address.schema.is_none() {
            identity::check(&pool, prepare).await?;
        }
        let counter = PostgresCounter::start(Pool::new(address.clone(), 1, Arc::clone(&expected))?);
        Ok(Self { address, expected, pool, batch, batchers: Mutex::default(), counter })
    }

    /// Starts what does units of this kind together. None for the sandbox, whose units also count for each partner: they come one by
    /// one, on the connections of all the rest.
    pub(super) fn batcher<B: Batched>(&self) -> Option<Arc<Batcher<B>>> {
        if self.address.schema.is_some() {
            return None;
        }
        // A pool is refused only without a runtime, and it has one.
        let pool = Pool::for_batches(self.address.clone(), Arc::clone(&self.expected)).ok()?;
        let batcher = Arc::new(Batcher::start(pool, self.batch));
        self.batchers().push(Arc::clone(&batcher) as _);
        Some(batcher)
    }

    fn batchers(&self) -> MutexGuard<'_, Vec<Arc<dyn AnyBatcher>>> {
        self.batchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes records that were restored from a copy fit to be served again, as this unit does; ids jump by so many.
    pub async fn resume<U: Unit>(&self, resume: &U, id_gap: i64) -> Result<U::Done, StoreError> {
        self.pool.run(&mut PgResume { resume, id_gap }).await
    }

    /// Takes the records for complete, wherever they are now.
    pub async fn note_identity(&self) -> Result<(), StoreError> {
        self.pool.ask(|connection| Box::pin(identity::note(connection))).await
    }
}

impl Engine for PostgresStore {
    fn run(&self, how: How, mut job: Box<dyn Job>) -> JobReply<'_> {
        Reply::later(async move {
            match how {
                How::Read | How::Scan => self.pool.run(&mut job).await.map_err(StoreError::of_a_read)?,
                How::Write | How::Transaction => self.pool.run_patiently(&mut job).await?,
            }
            Ok(job)
        })
    }

    fn member_count(&self) -> StoreReply<'_, u64> {
        self.counter.read()
    }

    fn database_bytes(&self) -> StoreReply<'_, u64> {
        self.run(How::Read, <dyn Job>::of(DatabaseBytes)).map(result_of)
    }

    fn check(&self, for_room: bool) -> StoreReply<'_, ()> {
        self.run(How::Transaction, <dyn Job>::of(if for_room { CHECK_FOR_ROOM } else { CHECK })).map(result_of)
    }

    fn figures(&self) -> StoreFigures {
        let (mut writer, mut pools) = (WriterFigures::default(), Vec::new());
        for batcher in self.batchers().iter() {
            let (of_batches, pool) = batcher.figures();
            writer = writer.and(&of_batches);
            pools.push(pool);
        }
        pools.extend([self.counter.figures(), self.pool.figures("rest")]);
        StoreFigures { writer, pools }
    }

    fn close(&self) -> StoreReply<'_, ()> {
        Reply::later(async {
            let batchers = self.batchers().clone();
            let mut closed = Ok(());
            for batcher in batchers {
                closed = closed.and(batcher.close().await);
            }
            closed?;
            self.pool.close();
            Ok(())
        })
    }

    fn postgres(&self) -> Option<&PostgresStore> {
        Some(self)
    }
}
