//! A few rows, read by one for all who wait (request coalescing).
//!
//! Anybody can ask for any sign-in link, and a link that works must not be refused because of others. So what strangers ask is bounded
//! here and not by a limit: however many ask, a process reads these few rows once at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use crate::store::sql::Unit;
use crate::store::{Store, StoreError};

pub(super) struct SharedRead<T> {
    /// How many have asked.
    asked: AtomicU64,
    last: Mutex<Read<T>>,
}

/// What the last read found.
struct Read<T> {
    /// How many had asked before it began: those it can answer.
    serves: u64,
    rows: Arc<[T]>,
}

impl<T> Default for SharedRead<T> {
    fn default() -> Self {
        Self { asked: AtomicU64::new(0), last: Mutex::new(Read { serves: 0, rows: Arc::new([]) }) }
    }
}

impl<T: Send + Unpin + 'static> SharedRead<T> {
    /// The rows as they were after the question.
    pub(super) async fn rows(&self, store: &Store, query: impl Unit<Done = Vec<T>>) -> Result<Arc<[T]>, StoreError> {
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst);
        let mut last = self.last.lock().await;
        if last.serves <= ticket {
            let serves = self.asked.load(Ordering::SeqCst);
            *last = Read { serves, rows: store.run(query).await?.into() };
        }
        Ok(Arc::clone(&last.rows))
    }
}
