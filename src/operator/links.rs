//! The links that sign operators in, read by one for all who wait (request coalescing).
//!
//! Anybody can ask for any link, and a link that works must not be refused because of others. So what strangers ask is bounded here
//! and not by a limit: however many ask, a process reads these few rows once at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use super::accounts::ListOperatorLinks;
use crate::domain::operator::OperatorLink;
use crate::domain::time::Timestamp;
use crate::store::{Store, StoreError};

#[derive(Default)]
pub(super) struct SharedLinks {
    /// How many have asked.
    asked: AtomicU64,
    last: Mutex<Read>,
}

/// What the last read found.
#[derive(Default)]
struct Read {
    /// How many had asked before it began: those it can answer.
    serves: u64,
    links: Arc<[(String, OperatorLink)]>,
}

impl SharedLinks {
    /// The link with that hash, as it was after the question.
    pub(super) async fn find(
        &self,
        store: &Store,
        hash: &str,
        now: Timestamp,
    ) -> Result<Option<OperatorLink>, StoreError> {
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst);
        let mut last = self.last.lock().await;
        if last.serves <= ticket {
            let serves = self.asked.load(Ordering::SeqCst);
            *last = Read { serves, links: store.run(ListOperatorLinks(now)).await?.into() };
        }
        let links = Arc::clone(&last.links);
        drop(last);
        Ok(links.iter().find(|(kept, _)| kept == hash).map(|(_, link)| link.clone()))
    }
}
