//! A bounded queue to one worker, with backpressure: a caller that finds it full is held back, and gives up after a while. Also
//! what monitoring reads about a store: how much is waiting, and how it is processed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::StoreError;
use crate::reply::Reply;

/// How many jobs may wait; past this, callers are held back.
const LENGTH: usize = 4096;

/// How long a caller is held back.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Queue<T> {
    jobs: mpsc::Sender<Queued<T>>,
    pub batches: Arc<BatchCounts>,
}

pub(super) enum Queued<T> {
    Job(T),
    /// Nothing is accepted after it.
    Close,
}

/// The channel for the answer to a job.
pub(super) type Waiter<A> = oneshot::Sender<Result<A, StoreError>>;

impl<T: Send> Queue<T> {
    pub(super) fn new() -> (Self, mpsc::Receiver<Queued<T>>) {
        let (queue, inbox) = mpsc::channel(LENGTH);
        (Self { jobs: queue, batches: Arc::default() }, inbox)
    }

    /// How much is waiting, and how it was taken.
    pub(super) fn figures(&self) -> WriterFigures {
        WriterFigures { waiting: self.jobs.max_capacity() - self.jobs.capacity(), ..self.batches.read() }
    }

    /// Queues a job. It is queued before the first poll, so it runs even if the caller drops the future.
    pub(super) fn ask<A: Send + 'static>(&self, job: impl FnOnce(Waiter<A>) -> T) -> Reply<'_, Result<A, StoreError>> {
        let (waiter, answer) = oneshot::channel();
        let held_back = match self.jobs.try_send(Queued::Job(job(waiter))) {
            Ok(()) => None,
            Err(TrySendError::Full(job)) => Some(job),
            Err(TrySendError::Closed(_)) => return Reply::now(Err(unavailable("the store is closed"))),
        };
        Reply::later(async move {
            if let Some(job) = held_back {
                match tokio::time::timeout(QUEUE_TIMEOUT, self.jobs.send(job)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return Err(unavailable("the store is closed")),
                    Err(_) => return Err(unavailable("too many writes are waiting")),
                }
            }
            // The worker took the job and is gone.
            answer.await.unwrap_or_else(|_| Err(StoreError::Unknown("the store ended early".to_owned())))
        })
    }

    /// The worker finishes the waiting jobs, and ends.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.jobs.send(Queued::Close).await.map_err(|_| unavailable("the worker ended early"))
    }
}

fn unavailable(why: &str) -> StoreError {
    StoreError::Unavailable(why.to_owned())
}

/// The upper bounds of the batch sizes that are counted separately; the last is the default maximum.
pub const BATCH_ENDS: [usize; 7] = [1, 2, 4, 8, 32, 128, super::WRITE_BATCH];

/// The sizes of the batches that the worker took: two additions per batch, which is a commit.
#[derive(Default)]
pub(super) struct BatchCounts {
    /// Not cumulative: each batch is in one of them.
    sizes: [AtomicU64; BATCH_ENDS.len() + 1],
    jobs: AtomicU64,
}

impl BatchCounts {
    pub(super) fn count(&self, jobs: usize) {
        let size = BATCH_ENDS.iter().position(|end| jobs <= *end).unwrap_or(BATCH_ENDS.len());
        self.sizes[size].fetch_add(1, Ordering::Relaxed);
        self.jobs.fetch_add(jobs as u64, Ordering::Relaxed);
    }

    fn read(&self) -> WriterFigures {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WriterFigures { waiting: 0, batches: self.sizes.each_ref().map(read), jobs: read(&self.jobs) }
    }
}

/// What monitoring reads about a store other than its contents. Reading it does not query the database.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StoreFigures {
    pub writer: WriterFigures,
    pub pools: Vec<PoolFigures>,
}

/// A writer that commits for many callers.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct WriterFigures {
    /// Jobs that wait for the next batch.
    pub waiting: usize,
    /// How many batches there were, by [`BATCH_ENDS`] and past them; not cumulative.
    pub batches: [u64; BATCH_ENDS.len() + 1],
    /// How many jobs they held in total.
    pub jobs: u64,
}

impl WriterFigures {
    /// The sum of two writers.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.waiting += other.waiting;
        self.jobs += other.jobs;
        self.batches.iter_mut().zip(other.batches).for_each(|(all, more)| *all += more);
        self
    }
}

/// Connections to the database for one purpose.
#[derive(Clone, PartialEq, Eq)]
pub struct PoolFigures {
    pub name: &'static str,
    pub busy: usize,
    pub idle: usize,
    /// The most connections.
    pub most: usize,
    /// How many callers wait for one; none if that is unknown.
    pub waiting: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_and_what_was_taken_is_counted() {
        let (queue, mut inbox) = Queue::<u8>::new();
        let asked: Vec<_> = (0..3).map(|n| queue.ask::<()>(|_| n)).collect();
        assert_eq!(queue.figures().waiting, 3);
        inbox.try_recv().ok().unwrap();
        assert_eq!(queue.figures().waiting, 2);
        drop(asked);
        for jobs in [1, 1, 2, 3, 256, 257] {
            queue.batches.count(jobs);
        }
        let WriterFigures { batches, jobs, .. } = queue.figures();
        assert_eq!((batches, jobs), ([2, 1, 1, 0, 0, 0, 1, 1], 520));
    }
}
