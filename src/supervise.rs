//! Tasks that the service cannot do without: one that ends by a mistake of ours ends the process, for its supervisor to start
//! it anew, instead of leaving half of it running.
//!
//! A task says that it is vital for as long as it holds a guard. Only a panic counts: a task that is done, or is dropped with
//! its runtime, ends in peace. And how background work gives way to requests.

use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// What ended first, and who is told.
static ENDED: OnceLock<&str> = OnceLock::new();
static FAILED: Notify = Notify::const_new();

/// Held by a vital task while it runs.
#[must_use]
pub struct Vital(&'static str);

/// Says that the process cannot do without the task that holds this; `what` is for the operator.
pub const fn vital(what: &'static str) -> Vital {
    Vital(what)
}

/// Spawns a task that the process cannot do without.
pub fn spawn_vital<T: Send + 'static>(
    what: &'static str,
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    spawn(async move {
        let _vital = vital(what);
        work.await
    })
}

/// Spawns a task that is not spawned for each request or connection. In a box: tokio's code for a task is compiled twice for each
/// type of future.
pub fn spawn<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    let boxed: Pin<Box<dyn Future<Output = T> + Send>> = Box::pin(work);
    tokio::spawn(boxed)
}

impl Drop for Vital {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _not_the_first = ENDED.set(self.0);
            FAILED.notify_waiters();
        }
    }
}

/// What ended by a mistake of ours, if anything has.
pub fn ended() -> Option<&'static str> {
    ENDED.get().copied()
}

/// Waits until something has.
pub async fn wait() -> &'static str {
    loop {
        let notified = FAILED.notified();
        if let Some(what) = ended() {
            return what;
        }
        notified.await;
    }
}

/// Between two steps of background work others get their turn: the work takes a fifth of the time at the most, and SQLite's one writer,
/// which serves who comes first, is free for the rest of it.
pub async fn pause_after_step(begun: Instant) {
    pause(begun, 4).await;
}

/// The same for work that nobody waits for: it takes a twentieth of the time at the most.
pub async fn pause_long_after_step(begun: Instant) {
    pause(begun, 19).await;
}

async fn pause(begun: Instant, times: u32) {
    const SHORTEST: Duration = Duration::from_millis(5);
    tokio::time::sleep(SHORTEST.max(begun.elapsed() * times)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vital_task_that_panics_is_told_of_and_others_are_not() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        runtime.block_on(async {
            let task = |name, fails: bool| {
                spawn_vital(name, async move {
                    tokio::task::yield_now().await;
                    assert!(!fails, "on purpose");
                })
            };
            task("one that is done", false).await.unwrap();
            let dropped = tokio::spawn(async {
                let _vital = vital("one that is dropped");
                std::future::pending::<()>().await;
            });
            dropped.abort();
            assert!(dropped.await.unwrap_err().is_cancelled());
            assert_eq!(ended(), None);
            let waiting = tokio::spawn(wait());
            assert!(task("the outbox", true).await.is_err());
            assert_eq!(waiting.await.unwrap(), "the outbox");
            assert_eq!((ended(), wait().await), (Some("the outbox"), "the outbox"));
        });
    }
}
