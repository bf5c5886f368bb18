//! An engine for units of work: connections, transactions, retries, and the audit row beside a change.
//!
//! A unit (`sql.rs`) is data with its SQL, written once for both engines, in the capability that owns the rule. It commits
//! everything it did or nothing. The caller passes in the time. The store must never know about people, campaigns, rewards,
//! requests, limits or mail transports, and must never put an address, a key or a token into an error.

pub mod audit;
mod check;
pub mod migration;
#[cfg(debug_assertions)]
pub mod plan;
pub mod postgres;
mod queue;
pub mod sql;
pub mod sqlite;
pub mod transfer;

use std::sync::Arc;

use crate::reply::Reply;

pub use self::audit::Act;
use self::audit::AuditedJob;
pub use self::queue::{BATCH_ENDS, PoolFigures, StoreFigures, WriterFigures};
use self::sql::{How, Job, JobDone, JobReply, Unit, result_of};
use crate::domain::remedy::Remedy;
use crate::random::NoRandom;
use crate::store::postgres::PostgresStore;
use crate::store::postgres::batch::Batcher;
pub use crate::store::postgres::batch::{BatchOutcome, Batched};

/// The most units of work that share a commit: past this a bigger batch gains little and its first unit waits longer.
pub const WRITE_BATCH: usize = 256;

/// Where units of work run. Every engine passes the same suite: `tests/it/once/store_suite/`.
pub trait Engine: Send + Sync {
    fn run(&self, how: How, job: Box<dyn Job>) -> JobReply<'_>;

    /// Tuned by hand, because every page shows it.
    fn member_count(&self) -> StoreReply<'_, u64>;

    fn database_bytes(&self) -> StoreReply<'_, u64>;

    fn check(&self, for_room: bool) -> StoreReply<'_, ()>;

    fn figures(&self) -> StoreFigures;

    fn close(&self) -> StoreReply<'_, ()>;

    /// The engine that shares commits among units of a kind, if this is it.
    fn postgres(&self) -> Option<&PostgresStore> {
        None
    }
}

/// The records, through an engine. Cloning it is cheap.
#[derive(Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
    /// The act that changes are recorded as.
    act: Option<Arc<Act>>,
}

impl Store {
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self { engine, act: None }
    }

    /// The same store, but every change is recorded in the audit log as this act, together with the change.
    pub fn audited(&self, act: Act) -> Self {
        Self { engine: Arc::clone(&self.engine), act: Some(Arc::new(act)) }
    }

    /// The same store without an act, for steps that follow from a recorded one.
    pub fn unaudited(&self) -> Self {
        Self { engine: Arc::clone(&self.engine), act: None }
    }

    /// Runs the unit completely or not at all. This part is compiled for each unit, so keep it this small.
    pub fn run<U: Unit>(&self, unit: U) -> StoreReply<'_, U::Done> {
        self.run_job(U::HOW, <dyn Job>::of(unit)).map(result_of)
    }

    /// Runs a query that changes nothing; the compiler refuses a unit that could.
    pub fn ask<Q: Unit>(&self, query: Q) -> StoreReply<'_, Q::Done> {
        const { assert!(Q::HOW.only_reads(), "a question changes nothing") };
        self.run(query)
    }

    fn run_job(&self, how: How, job: Box<dyn Job>) -> JobReply<'_> {
        match &self.act {
            Some(act) if !how.only_reads() => {
                self.engine.run(How::Transaction, Box::new(AuditedJob { job, act: Arc::clone(act) }))
            }
            _ => self.engine.run(how, job),
        }
    }

    /// Runs units of this kind together, if the engine can. Call it once for each kind, at wiring. These units are not audited.
    pub fn batches<B: Batched>(&self) -> Batches<B> {
        Batches { store: self.unaudited(), together: self.engine.postgres().and_then(PostgresStore::batcher) }
    }

    /// How many members there are now; constant time at any size, never cached.
    pub fn member_count(&self) -> StoreReply<'_, u64> {
        self.engine.member_count()
    }

    /// How large the database is, in bytes.
    pub fn database_bytes(&self) -> StoreReply<'_, u64> {
        self.engine.database_bytes()
    }

    /// Whether writes work right now: makes one, to a row of its own that nothing else waits for. `for_room` makes it as large as
    /// a sign-up.
    pub fn check(&self, for_room: bool) -> StoreReply<'_, ()> {
        self.engine.check(for_room)
    }

    /// What monitoring reads about this node's part of the store; returns at once, whatever the database does.
    pub fn figures(&self) -> StoreFigures {
        self.engine.figures()
    }

    /// Finishes running work and closes the files or connections. Later calls fail.
    pub fn close(&self) -> StoreReply<'_, ()> {
        self.engine.close()
    }
}

/// Runs units of one kind together if the engine can.
pub struct Batches<B: Batched> {
    store: Store,
    together: Option<Arc<Batcher<B>>>,
}

impl<B: Batched> Batches<B> {
    pub fn run(&self, unit: B) -> StoreReply<'_, B::Done> {
        match &self.together {
            Some(together) => together.run(unit),
            None => self.store.run(unit),
        }
    }
}

pub type StoreReply<'a, T> = Reply<'a, Result<T, StoreError>, JobDone>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store could not be read, or could not commit; nothing was written. The cause is for the operator.
    #[error("{0}")]
    Unavailable(String),
    /// The same, because the database is damaged.
    #[error("{0}")]
    Damaged(String),
    /// The same, because its disk is full.
    #[error("{0}")]
    Full(String),
    /// The store was asked to commit and its answer was lost: the unit is done completely or not at all, and it is unknown which.
    #[error("{0}; whether it was done is not known")]
    Unknown(String),
    /// This node refuses the database; nothing was written.
    #[error("PostgreSQL: the database was restored from a copy since this node started")]
    Restored,
}

impl From<NoRandom> for StoreError {
    fn from(none: NoRandom) -> Self {
        Self::Unavailable(none.to_string())
    }
}

impl StoreError {
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Damaged(_) => Some(Remedy::RestoreBackup),
            Self::Full(_) => Some(Remedy::MakeRoom),
            Self::Restored => Some(Remedy::ResumeRecords),
            Self::Unavailable(_) | Self::Unknown(_) => None,
        }
    }

    /// The same, for a query that changes nothing.
    fn of_a_read(self) -> Self {
        match self {
            Self::Unknown(cause) => Self::Unavailable(cause),
            known => known,
        }
    }
}
