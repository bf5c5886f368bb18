//! The worker of a lease queue: it leases rows, keeps a bounded number of jobs in flight and writes down what became of each.
//!
//! Mail (`mail/worker.rs`) and webhooks (`partners/worker.rs`) are the two queues. A row is deleted only after its job is
//! done: a crash at any moment loses nothing and at worst repeats a job. Which rows are next, and how the places are shared
//! fairly, is each queue's own rule.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::{self, JoinSet};
use tokio::time::Instant;

use crate::clock::Clock;
use crate::domain::time::Timestamp;
use crate::store::{StoreError, StoreReply};

/// How long the worker waits when nobody wakes it: rows of other nodes, and rows whose time has come, are found then.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How often an outcome is written before the row is left to its lease, and the wait in between.
const SETTLE_ATTEMPTS: u32 = 4;
const SETTLE_RETRY_DELAY: Duration = Duration::from_millis(500);

pub trait LeaseQueue: Send + Sync + Sized + 'static {
    const MAX_IN_FLIGHT: usize;
    /// Whose share of the places a job takes.
    type Place: Send;
    /// A job that is done and written down.
    type Settled: Send + 'static;
    /// What was logged already: one cause is not a thousand lines.
    type Alarms: Default + Send;

    fn wake(&self) -> &Notify;

    /// How long after it was woken the worker begins.
    fn wake_delay() -> Duration {
        Duration::ZERO
    }

    /// Gives back what a worker of this name had leased when it was killed.
    fn release(&self) -> impl Future<Output = ()> + Send;

    /// Leases what is due and begins it, for as long as there is room. True if there may be more at once.
    fn lease(
        self: &Arc<Self>,
        in_flight: &mut InFlight<Self>,
        alarms: &mut Self::Alarms,
        now: Timestamp,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Counts an outcome and logs what concerns the operator.
    fn account(&self, alarms: &mut Self::Alarms, outcome: &Result<Self::Settled, StoreError>, now: Timestamp);
}

/// The jobs in flight, each with the place that it takes.
pub struct InFlight<Q: LeaseQueue> {
    jobs: JoinSet<Result<Q::Settled, StoreError>>,
    places: HashMap<task::Id, Q::Place>,
}

impl<Q: LeaseQueue> Default for InFlight<Q> {
    fn default() -> Self {
        Self { jobs: JoinSet::new(), places: HashMap::new() }
    }
}

impl<Q: LeaseQueue> InFlight<Q> {
    pub fn begin(
        &mut self,
        place: Q::Place,
        job: impl Future<Output = Result<Q::Settled, StoreError>> + Send + 'static,
    ) {
        self.places.insert(self.jobs.spawn(job).id(), place);
    }

    pub fn places(&self) -> impl Iterator<Item = &Q::Place> {
        self.places.values()
    }

    /// How many more may begin.
    pub fn room(&self) -> usize {
        Q::MAX_IN_FLIGHT.saturating_sub(self.jobs.len())
    }

    /// The next one that is done; none if none is in flight.
    async fn next(&mut self) -> Option<Result<Q::Settled, StoreError>> {
        let done = self.jobs.join_next_with_id().await?;
        self.places.remove(&done.as_ref().map_or_else(task::JoinError::id, |(id, _)| *id));
        // The panic is in the log; the lease ends by itself.
        let panicked = |_| Err(StoreError::Unavailable("a job of the queue panicked".to_owned()));
        Some(done.map_or_else(panicked, |(_, outcome)| outcome))
    }
}

/// Works until `stop` is true; what was begun is finished.
pub async fn run<Q: LeaseQueue>(queue: Arc<Q>, clock: Clock, mut stop: watch::Receiver<bool>) {
    queue.release().await;
    let (mut in_flight, mut alarms) = (InFlight::<Q>::default(), Q::Alarms::default());
    loop {
        let stopping = *stop.borrow();
        if stopping && in_flight.jobs.is_empty() {
            return;
        }
        let room = in_flight.room() > 0 && !stopping;
        if room {
            let now = clock.now().time;
            match queue.lease(&mut in_flight, &mut alarms, now).await {
                Ok(false) => {}
                Ok(true) => continue,
                Err(error) => queue.account(&mut alarms, &Err(error), now),
            }
        }
        let (mut next, mut is_woken) = (Instant::now() + POLL_INTERVAL, false);
        loop {
            tokio::select! {
                Some(done) = in_flight.next() => {
                    queue.account(&mut alarms, &done, clock.now().time);
                    break;
                }
                () = queue.wake().notified(), if room && !is_woken => {
                    (next, is_woken) = (next.min(Instant::now() + Q::wake_delay()), true);
                }
                () = tokio::time::sleep_until(next), if room => break,
                _ = stop.changed(), if !stopping => break,
            }
        }
    }
}

/// Leases once and waits for all of it, whatever becomes of one: the worker as a function, for tests. `alarms` is what it knows
/// of the steps before.
pub async fn step<Q: LeaseQueue>(
    queue: &Arc<Q>,
    alarms: &mut Q::Alarms,
    now: Timestamp,
) -> Result<Vec<Q::Settled>, StoreError> {
    let mut in_flight = InFlight::<Q>::default();
    queue.lease(&mut in_flight, alarms, now).await?;
    let mut settled = Vec::new();
    while let Some(done) = in_flight.next().await {
        queue.account(alarms, &done, now);
        settled.push(done);
    }
    settled.into_iter().collect()
}

/// Writes an outcome down. A job that is done and not written down is done again, so a store that is away for a moment
/// is waited for.
pub async fn settle<'a, T: Unpin>(write: impl Fn() -> StoreReply<'a, T>) -> Result<T, StoreError> {
    for _ in 1..SETTLE_ATTEMPTS {
        match write().await {
            Ok(written) => return Ok(written),
            Err(_) => tokio::time::sleep(SETTLE_RETRY_DELAY).await,
        }
    }
    write().await
}
