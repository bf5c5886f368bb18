//! The rewards worker: checks people whose hold is over and forms groups, in bounded steps. Several nodes can run it on one store.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::domain::time::Timestamp;
use crate::log::Log;
use crate::rewards::group::StepRewards;
use crate::rewards::new_account;
use crate::store::{Store, StoreError};
use crate::supervise::{pause_after_step, pause_long_after_step};

/// How often it looks for something to do.
const EVERY: Duration = Duration::from_secs(30);

/// Runs until stopped.
pub async fn run(store: Store, log: Log, clock: Clock, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        let now = || clock.now().time;
        if let Err(error) = steps(&store, now, || !*stop.borrow(), pause_long_after_step).await {
            log.problem(None, &format!("rewards are not up to date: {error}"));
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Does everything that is due now, for a caller that waits for it.
pub async fn work(store: &Store, now: impl Fn() -> Timestamp) -> Result<(), StoreError> {
    steps(store, now, || true, pause_after_step).await
}

async fn steps<P: Future<Output = ()>>(
    store: &Store,
    now: impl Fn() -> Timestamp,
    goes_on: impl Fn() -> bool,
    pause: impl Fn(Instant) -> P,
) -> Result<(), StoreError> {
    let mut begun = Instant::now();
    while goes_on() && store.run(StepRewards(new_account()?, now())).await? {
        pause(begun).await;
        begun = Instant::now();
    }
    Ok(())
}
