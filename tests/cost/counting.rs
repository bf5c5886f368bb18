//! A store that counts how often it is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use unionhall::domain::sign_up::{Confirmation, NewSignUp, SeenPage, SignUpRef, SignedUp};
use unionhall::domain::time::Timestamp;
use unionhall::store::sql::{Job, JobReply};
use unionhall::store::sqlite::SqliteStore;
use unionhall::store::{Act, Engine, Store, StoreFigures, StoreReply};

#[derive(Debug)]
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
    fn read_job(&self, job: Box<dyn Job>) -> JobReply<'_> {
        self.counted().read_job(job)
    }

    fn write_job(&self, job: Box<dyn Job>) -> JobReply<'_> {
        self.counted().write_job(job)
    }

    fn member_count(&self) -> StoreReply<'_, u64> {
        Engine::member_count(self.counted())
    }

    fn sign_up(&self, new: NewSignUp, now: Timestamp) -> StoreReply<'_, SignedUp> {
        Engine::sign_up(self.counted(), new, now)
    }

    fn confirm(&self, sign_up: SignUpRef, seen: SeenPage, now: Timestamp) -> StoreReply<'_, Confirmation> {
        Engine::confirm(self.counted(), sign_up, seen, now)
    }

    fn database_bytes(&self) -> StoreReply<'_, u64> {
        Engine::database_bytes(self.counted())
    }

    fn check(&self, for_room: bool) -> StoreReply<'_, ()> {
        Engine::check(self.counted(), for_room)
    }

    fn figures(&self) -> StoreReply<'_, StoreFigures> {
        Engine::figures(self.counted())
    }

    fn close(&self) -> StoreReply<'_, ()> {
        Engine::close(self.counted())
    }

    fn audited(self: Arc<Self>, _: Act) -> Arc<dyn Store> {
        self
    }
}
