//! An answer that may be there already.
//!
//! The traits of this crate are used as `dyn`, and an `async fn` behind `dyn` costs an allocation a call. The backends
//! that matter most, SQLite's readers and the limiter in memory, know their answer at once; those that wait for a network
//! pay for a box they would not notice.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future of `T` that is either ready or boxed.
pub enum Reply<'a, T> {
    /// `None` once it has been taken.
    Now(Option<T>),
    Later(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
}

impl<'a, T> Reply<'a, T> {
    pub fn now(answer: T) -> Self {
        Self::Now(Some(answer))
    }

    pub fn later(answer: impl Future<Output = T> + Send + 'a) -> Self {
        Self::Later(Box::pin(answer))
    }
}

impl<T: Unpin> Future for Reply<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match &mut *self {
            // A future polled after it was ready never is again: awaiting cannot do this.
            Self::Now(answer) => answer.take().map_or(Poll::Pending, Poll::Ready),
            Self::Later(future) => future.as_mut().poll(context),
        }
    }
}

impl<T> fmt::Debug for Reply<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Now(_) => "Reply::Now",
            Self::Later(_) => "Reply::Later",
        })
    }
}
