//! The member count, read live by one for all who wait (request coalescing).
//!
//! A read takes longer than all the rest of such a request: SQLite takes a lock for it and gives it back. So a request
//! lets the others that are ready come first, and takes the answer of a read that began after it had arrived, if there was
//! one; otherwise it reads. What it gets is never older than its question.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use super::reader::Readers;
use crate::reply::Reply;
use crate::store::StoreReply;
use crate::store::sql::Failure;

#[derive(Default)]
pub(super) struct SqliteCounter {
    /// How many have asked.
    asked: AtomicU64,
    last: Mutex<Read>,
}

/// What the last read found.
#[derive(Default, Clone, Copy)]
struct Read {
    /// How many had asked before it began: those it can answer.
    serves: u64,
    count: u64,
}

impl SqliteCounter {
    pub(super) fn read<'a>(&'a self, readers: &'a Readers) -> StoreReply<'a, u64> {
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst);
        Reply::later(async move {
            tokio::task::yield_now().await;
            let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.serves > ticket {
                return Ok(last.count);
            }
            let serves = self.asked.load(Ordering::SeqCst);
            let count = readers.read(member_count).await?;
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.serves < serves {
                *last = Read { serves, count };
            }
            Ok(count)
        })
    }
}

/// By hand and not by the seam: it is asked more often than everything else together.
fn member_count(connection: &mut Connection) -> Result<u64, Failure> {
    let mut statement = connection.prepare_cached("SELECT member_count FROM installation WHERE id = 1")?;
    let count: i64 = statement.query_row([], |row| row.get(0))?;
    // The column is checked never to be negative.
    Ok(count.unsigned_abs())
}
