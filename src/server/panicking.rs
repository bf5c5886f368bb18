//! Panics while a request is answered.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

#[derive(Debug)]
pub(super) struct Panicked;

/// A panic is a mistake of ours; it costs its own request, and no other.
pub(super) async fn unless_it_panics<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Result<T, Panicked> {
    std::future::poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[test]
    fn a_panic_becomes_an_answer() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            assert!(unless_it_panics(pin!(async { panic!("on purpose") })).await.is_err());
            assert_eq!(unless_it_panics(pin!(async { 5 })).await.unwrap(), 5);
        });
    }
}
