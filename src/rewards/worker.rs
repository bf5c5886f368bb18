//! The worker of rewards: checks whose hold is over and forms groups, in bounded steps. Several nodes may do so on one store.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::domain::time::Timestamp;
use crate::log::Log;
use crate::membership::people::new_account;
use crate::store::{RewardStore, StoreError};
use crate::supervise::{pause_after_step, pause_long_after_step};

/// How often it looks for something to do.
const EVERY: Duration = Duration::from_secs(30);

/// Works until told to stop.
pub async fn run(store: Arc<dyn RewardStore>, log: Log, clock: Clock, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        if let Err(error) = work_in_background(&*store, clock, &stop).await {
            log.problem(None, &format!("rewards are not up to date: {error}"));
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Everything that is to be done now, in no hurry.
async fn work_in_background(
    store: &dyn RewardStore,
    clock: Clock,
    stop: &watch::Receiver<bool>,
) -> Result<(), StoreError> {
    let mut begun = Instant::now();
    while !*stop.borrow() && store.step_rewards(new_account()?, clock.now().time).await? {
        pause_long_after_step(begun).await;
        begun = Instant::now();
    }
    Ok(())
}

/// Everything that is to be done now, for somebody who waits for it.
pub async fn work(store: &dyn RewardStore, now: impl Fn() -> Timestamp) -> Result<(), StoreError> {
    let mut begun = Instant::now();
    while store.step_rewards(new_account()?, now()).await? {
        pause_after_step(begun).await;
        begun = Instant::now();
    }
    Ok(())
}
