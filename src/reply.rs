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
            // Polled again it panics, as every `async` block does: a future that never woke again would hang its caller.
            Self::Now(answer) => Poll::Ready(answer.take().expect("`Reply` polled after completion")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_given_once_and_asking_again_does_not_hang() {
        for mut reply in [Reply::now(5), Reply::later(async { 5 })] {
            let mut poll = || Pin::new(&mut reply).poll(&mut Context::from_waker(std::task::Waker::noop()));
            assert_eq!(poll(), Poll::Ready(5));
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(poll)).is_err());
        }
    }
}
