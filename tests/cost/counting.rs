//! An engine that counts how often it is asked.

use std::sync::atomic::{AtomicUsize, Ordering};

use unionhall::store::sql::{How, Job, JobReply};
use unionhall::store::sqlite::SqliteStore;
use unionhall::store::{Engine, StoreFigures, StoreReply};

pub(crate) struct Counting {
    store: SqliteStore,
    pub calls: AtomicUsize,
}

impl Counting {
    pub(crate) fn new(store: SqliteStore) -> Self {
        Self { store, calls: AtomicUsize::new(0) }
    }

    fn counted(&self) -> &SqliteStore {
        self.calls.fetch_add(1, Ordering::Relaxed);
        &self.store
    }
}

/// Everything counts and is passed on.
impl Engine for Counting {
    fn run(&self, how: How, job: Box<dyn Job>) -> JobReply<'_> {
        self.counted().run(how, job)
    }

    fn member_count(&self) -> StoreReply<'_, u64> {
        self.counted().member_count()
    }

    fn database_bytes(&self) -> StoreReply<'_, u64> {
        self.counted().database_bytes()
    }

    fn check(&self, for_room: bool) -> StoreReply<'_, ()> {
        self.counted().check(for_room)
    }

    fn figures(&self) -> StoreFigures {
        self.counted().figures()
    }

    fn close(&self) -> StoreReply<'_, ()> {
        self.counted().close()
    }
}
