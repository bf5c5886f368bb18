//! Figures for the operator, rolled up in the background: at most a minute old, no matter how much there is to count.

use std::time::Duration;

use tokio::sync::watch;

use crate::clock::Clock;
use crate::figures::AreFiguresBehind;
use crate::figures::rollup::RollUp;
use crate::log::Log;
use crate::store::{Store, StoreError};

/// How often the figures are updated. If one step cannot take everything, the next one follows at once.
const EVERY: Duration = Duration::from_secs(20);

/// Lets others write between two steps: SQLite has one writer, and no queue for it.
const BETWEEN_STEPS: Duration = Duration::from_millis(5);

/// Runs until stopped. Several nodes can run it on one store.
pub async fn run(store: Store, log: Log, clock: Clock, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        match store.run(RollUp { now: clock.now().time }).await {
            Ok(true) => {
                tokio::time::sleep(BETWEEN_STEPS).await;
                continue;
            }
            Ok(false) => {}
            Err(error) => log.problem(None, &format!("figures are not up to date: {error}")),
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Catches up when no service may be doing it. If a service is running, there is nothing to write.
pub async fn catch_up(store: &Store, clock: Clock) -> Result<(), StoreError> {
    let now = clock.now().time;
    if store.run(AreFiguresBehind(now)).await? {
        while store.run(RollUp { now }).await? {
            tokio::time::sleep(BETWEEN_STEPS).await;
        }
    }
    Ok(())
}
