//! A bounded queue to one worker, with backpressure: whoever finds it full is held back, and gives up after a while.

use std::fmt;
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use super::{StoreError, StoreReply};
use crate::reply::Reply;

/// What may wait; more come from callers who are held back.
const LENGTH: usize = 4096;

/// How long a caller is held back.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Queue<T>(mpsc::Sender<Queued<T>>);

pub(super) enum Queued<T> {
    Job(T),
    /// Nothing more is taken after it.
    Close,
}

/// Who waits for the answer to a job.
pub(super) type Waiter<A> = oneshot::Sender<Result<A, StoreError>>;

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queue")
    }
}

impl<T: Send> Queue<T> {
    pub(super) fn new() -> (Self, mpsc::Receiver<Queued<T>>) {
        let (queue, inbox) = mpsc::channel(LENGTH);
        (Self(queue), inbox)
    }

    /// Hands a job over. It is queued before the first poll: a caller who drops the future has still asked.
    pub(super) fn ask<A: Send + 'static>(&self, job: impl FnOnce(Waiter<A>) -> T) -> StoreReply<'_, A> {
        let (waiter, answer) = oneshot::channel();
        let held_back = match self.0.try_send(Queued::Job(job(waiter))) {
            Ok(()) => None,
            Err(TrySendError::Full(job)) => Some(job),
            Err(TrySendError::Closed(_)) => return Reply::now(Err(unavailable("the store is closed"))),
        };
        Reply::later(async move {
            if let Some(job) = held_back {
                match tokio::time::timeout(QUEUE_TIMEOUT, self.0.send(job)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return Err(unavailable("the store is closed")),
                    Err(_) => return Err(unavailable("too many writes are waiting")),
                }
            }
            // It was taken, and whoever took it is gone.
            answer.await.unwrap_or_else(|_| Err(StoreError::Unknown("the store ended early".to_owned())))
        })
    }

    /// The worker finishes what waits, and ends.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        self.0.send(Queued::Close).await.map_err(|_| unavailable("the worker ended early"))
    }
}

fn unavailable(why: &str) -> StoreError {
    StoreError::Unavailable(why.to_owned())
}
