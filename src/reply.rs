//! A future that may be ready already.
//!
//! The traits of this crate are used as `dyn`, and an `async fn` behind `dyn` costs an allocation a call. The backends
//! that matter most, SQLite's readers and the limiter in memory, know their answer at once; those that wait for a network
//! pay for a box they would not notice.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future of `T` that is either ready or boxed; or a boxed future of `M`, and how to make a `T` of it.
pub enum Reply<'a, T, M = Infallible> {
    /// `None` once it has been taken.
    Now(Option<T>),
    Later(BoxFuture<'a, T>),
    /// Code that awaits is compiled once for each `M`, and not for each `T`.
    Mapped(BoxFuture<'a, M>, fn(M) -> T),
}

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl<'a, T, M> Reply<'a, T, M> {
    pub fn now(answer: T) -> Self {
        Self::Now(Some(answer))
    }

    pub fn later(answer: impl Future<Output = T> + Send + 'a) -> Self {
        Self::Later(Box::pin(answer))
    }
}

impl<'a, M> Reply<'a, M> {
    /// The same answer as another type, without another allocation.
    pub fn map<T>(self, map: fn(M) -> T) -> Reply<'a, T, M> {
        match self {
            Self::Now(answer) => Reply::Now(answer.map(map)),
            Self::Later(future) => Reply::Mapped(future, map),
            Self::Mapped(never, _) => Reply::Later(Box::pin(async { match never.await {} })),
        }
    }
}

impl<T: Unpin, M> Future for Reply<'_, T, M> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match &mut *self {
            // Panics if it is polled again, like an `async` block. Staying pending would hang the caller.
            Self::Now(answer) => Poll::Ready(answer.take().expect("`Reply` polled after completion")),
            Self::Later(future) => future.as_mut().poll(context),
            Self::Mapped(future, map) => future.as_mut().poll(context).map(*map),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_given_once_and_asking_again_does_not_hang() {
        let mapped = |reply: Reply<'static, u8>| reply.map(u32::from);
        for mut reply in
            [Reply::now(5), Reply::later(async { 5 }), mapped(Reply::now(5)), mapped(Reply::later(async { 5 }))]
        {
            let mut poll = || Pin::new(&mut reply).poll(&mut Context::from_waker(std::task::Waker::noop()));
            assert_eq!(poll(), Poll::Ready(5));
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(poll)).is_err());
        }
    }
}
