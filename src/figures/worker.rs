//! Figures for the operator, rolled up in the background: no more than a minute old, whatever there is to count.

use std::time::Duration;

use tokio::sync::watch;

use crate::clock::Clock;
use crate::figures::AreFiguresBehind;
use crate::figures::rollup::RollUp;
use crate::log::Log;
use crate::store::{Store, StoreError};

/// How often what happened is taken into the figures; what there is more of than one step takes is taken at once.
const EVERY: Duration = Duration::from_secs(20);

/// Between two steps others write: SQLite has one writer, and gives nobody their turn.
const BETWEEN_STEPS: Duration = Duration::from_millis(5);

/// Works until told to stop. Several nodes may do so on one store.
pub async fn run(store: Store, log: Log, clock: Clock, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        match store.run(RollUp { now: clock.now().time }).await {
            Ok(true) => {
                tokio::time::sleep(BETWEEN_STEPS).await;
                continue;
            }
            Ok(false) => {}
            Err(error) => log.problem(None, &format!("the figures of `unionhall stats` stand still: {error}")),
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Takes in what is there, where no service may be doing so. Where one is there is nothing to write.
pub async fn catch_up(store: &Store, clock: Clock) -> Result<(), StoreError> {
    let now = clock.now().time;
    if store.run(AreFiguresBehind(now)).await? {
        while store.run(RollUp { now }).await? {
            tokio::time::sleep(BETWEEN_STEPS).await;
        }
    }
    Ok(())
}
