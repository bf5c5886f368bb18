//! Retention: unconfirmed sign-ups expire, and the data of people who never joined, or left, is deleted in time.
//!
//! Expiry is final, so a clock that is wrong for a while must not decide it. At the start and after every jump, nothing expires
//! until the wall clock has agreed with the monotonic clock for a quarter of an hour.

use std::time::Duration;

use tokio::sync::watch;

use crate::clock::{Clock, Moment};
use crate::domain::api_key::Mode;
use crate::domain::mail::inbox::TEST_DATA_KEPT_FOR;
use crate::domain::person::RetentionTimes;
use crate::domain::secret::Secret;
use crate::domain::secret::mark::AddressMarker;
use crate::domain::time::{Tick, Timestamp};
use crate::log::Log;
use crate::mail::outbox::HealClock;
use crate::partners::event_log::ForgetEvents;
use crate::partners::idempotency::CloseSignUps;
use crate::people::forget::{ForgetMailboxes, ForgetPeople, ForgetSignUps, ListPeopleToForget, Retain};
use crate::people::test_data::{ForgetTestData, ForgottenTestData};
use crate::store::{Store, StoreError};

pub use crate::people::forget::MAILBOXES_KEPT_FOR;

/// How often sign-ups are checked; if there are more than one round takes, the next round follows immediately.
const EVERY: Duration = Duration::from_secs(60);

/// How often to look for sign-ups whose time is up for their partners, who are notified within a minute.
const CLOSING_INTERVAL: Duration = Duration::from_secs(10);

/// The pause in which others write: SQLite has one writer and does not take turns.
const BETWEEN_STEPS: Duration = Duration::from_millis(5);

/// How often the walk over people takes a step, and how long it rests at the end: two million people take two hours.
const WALK_STEP: Duration = Duration::from_secs(1);
const WALK_REST: Duration = Duration::from_secs(3600);

/// People who are forgotten in one commit.
const FORGOTTEN_AT_ONCE: usize = 50;

/// How far the wall clock may have moved against the monotonic clock: more than clocks are slewed by.
const SLEWED: Duration = Duration::from_secs(120);

/// How long a clock that jumped is watched before it is trusted.
const WATCHED_FOR: Duration = Duration::from_secs(15 * 60);

/// Runs until told to stop. Several nodes may run it on one store.
pub async fn run(
    store: Store,
    mode: Mode,
    secret: Secret,
    times: RetentionTimes,
    log: Log,
    clock: Clock,
    mut stop: watch::Receiver<bool>,
) {
    let mut watch = ClockWatch::new(clock.of_machine());
    let mut walk = Walk::new(&secret, times);
    // Mail may be waiting for a time that a wrong clock wrote before this start.
    let mut heal = true;
    let (mut next_closing, mut next_round, mut next_step) = (clock.now().tick, clock.now().tick, clock.now().tick);
    let mut test_data = (mode == Mode::Test).then(TestDataWalk::default);
    while !*stop.borrow() {
        let now = clock.now();
        if let Some(jump) = watch.look(clock.of_machine()) {
            let minutes = jump.as_secs() / 60;
            log.problem(
                None,
                &format!("the clock jumped by {minutes} minutes; nothing expires until it has kept still for 15"),
            );
            heal = true;
        }
        if heal {
            let healed = store.run(HealClock(now.time)).await;
            heal = healed.is_err();
            match healed {
                Ok(0) => {}
                Ok(healed) => {
                    log.note(&format!("{healed} mails waited for a time that a wrong clock had written; they go now"));
                }
                Err(error) => log.problem(None, &format!("mail may wait for a time that a wrong clock wrote: {error}")),
            }
        }
        // Also at the start: partners must be notified in time, and the status that they can query uses the same clock.
        if now.tick >= next_closing && !watch.has_jumped(now.tick) {
            let closed = store.run(CloseSignUps(now.time)).await.map(|closed| closed > 0);
            if has_more(&log, closed, "sign-ups whose time is up could not be closed") {
                tokio::time::sleep(BETWEEN_STEPS).await;
                continue;
            }
            next_closing = now.tick.plus(CLOSING_INTERVAL);
        }
        if watch.is_believed(now.tick) {
            if now.tick >= next_round {
                if clear_away(&store, times, &log, test_data.as_mut(), now.time).await {
                    tokio::time::sleep(BETWEEN_STEPS).await;
                    continue;
                }
                next_round = now.tick.plus(EVERY);
            }
            if now.tick >= next_step {
                next_step = match walk.step(&store, now.time).await {
                    Ok(true) => now.tick.plus(WALK_STEP),
                    Ok(false) => now.tick.plus(WALK_REST),
                    Err(error) => {
                        log.problem(None, &format!("people who are to be forgotten are still there: {error}"));
                        now.tick.plus(EVERY)
                    }
                };
            }
        }
        tokio::select! {
            () = tokio::time::sleep(WALK_STEP) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Clears away some of what has expired; true if there may be more. What fails is tried again in the next round.
async fn clear_away(
    store: &Store,
    times: RetentionTimes,
    log: &Log,
    test_data: Option<&mut TestDataWalk>,
    now: Timestamp,
) -> bool {
    let retained = store.run(Retain { times, now }).await.map(|done| !done.is_nothing());
    if has_more(log, retained, "expired sign-ups could not be cleared away") {
        return true;
    }
    let events = store.run(ForgetEvents(now)).await.map(|forgotten| forgotten > 0);
    if has_more(log, events, "old events of partners are still there") {
        return true;
    }
    match test_data {
        Some(walk) => has_more(log, walk.step(store, now).await, "old test data is still there"),
        None => false,
    }
}

/// Whether a step says that there may be more to do; logs its error.
fn has_more(log: &Log, step: Result<bool, StoreError>, problem: &str) -> bool {
    step.unwrap_or_else(|error| {
        log.problem(None, &format!("{problem}: {error}"));
        false
    })
}

/// Walks over the people of the sandbox, step by step, and deletes test data past its retention time.
#[derive(Default)]
pub struct TestDataWalk {
    /// The last person that was looked at.
    after: i64,
}

impl TestDataWalk {
    /// Takes the next step; false at the end, after which it starts over.
    pub async fn step(&mut self, store: &Store, now: Timestamp) -> Result<bool, StoreError> {
        let before = now.minus(TEST_DATA_KEPT_FOR);
        let ForgottenTestData { last, deleted } = store.run(ForgetTestData { after: self.after, before, now }).await?;
        self.after = last.unwrap_or(0);
        Ok(last.is_some() || deleted > 0)
    }
}

/// Walks over all people and mailboxes, step by step, and forgets those whose time is up.
pub struct Walk {
    marker: AddressMarker,
    times: RetentionTimes,
    /// The last person and the last mailbox that were looked at; none once all were.
    person: Option<i64>,
    mailbox: Option<String>,
}

impl Walk {
    pub fn new(secret: &Secret, times: RetentionTimes) -> Self {
        Self { marker: AddressMarker::new(secret), times, person: Some(0), mailbox: Some(String::new()) }
    }

    /// Takes the next step; false at the end, after which it starts over.
    pub async fn step(&mut self, store: &Store, now: Timestamp) -> Result<bool, StoreError> {
        if let Some(after) = self.person {
            self.person = self.look_at_people(store, after, now).await?;
        }
        if let Some(after) = self.mailbox.clone() {
            self.mailbox = store.run(ForgetMailboxes { after, times: self.times, now }).await?;
        }
        let more = self.person.is_some() || self.mailbox.is_some();
        if !more {
            (self.person, self.mailbox) = (Some(0), Some(String::new()));
        }
        Ok(more)
    }

    async fn look_at_people(&self, store: &Store, after: i64, now: Timestamp) -> Result<Option<i64>, StoreError> {
        let found = store.run(ListPeopleToForget { after, times: self.times, now }).await?;
        let marked: Vec<_> = found.forgettable.iter().map(|(id, email)| (*id, self.marker.marks(email))).collect();
        for some in marked.chunks(FORGOTTEN_AT_ONCE) {
            while store.run(ForgetPeople { people: some.to_vec(), times: self.times, now }).await?.unfinished > 0 {
                tokio::time::sleep(BETWEEN_STEPS).await;
            }
            tokio::time::sleep(BETWEEN_STEPS).await;
        }
        if let Some(last) = found.last.filter(|_| found.has_spent) {
            while store.run(ForgetSignUps { after, to: last, times: self.times, now }).await? > 0 {
                tokio::time::sleep(BETWEEN_STEPS).await;
            }
        }
        Ok(found.last)
    }
}

/// Whether the wall clock can be trusted, compared with the monotonic clock.
struct ClockWatch {
    last: Moment,
    /// When it was last seen to jump, or when watching began.
    since: Tick,
    jumps: u32,
}

impl ClockWatch {
    fn new(now: Moment) -> Self {
        Self { last: now, since: now.tick, jumps: 0 }
    }

    /// How far it jumped since the last look, if it did.
    fn look(&mut self, now: Moment) -> Option<Duration> {
        let passed = now.tick.since(self.last.tick);
        let expected = self.last.time.plus(passed);
        let jump = now.time.since(expected).max(expected.since(now.time));
        self.last = now;
        let jumped = jump > SLEWED;
        if jumped {
            (self.since, self.jumps) = (now.tick, self.jumps.saturating_add(1));
        }
        jumped.then_some(jump)
    }

    /// Whether it jumped and is not trusted yet.
    fn has_jumped(&self, now: Tick) -> bool {
        self.jumps > 0 && !self.is_believed(now)
    }

    fn is_believed(&self, now: Tick) -> bool {
        now.since(self.since) >= WATCHED_FOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 24 * 3600;

    /// The moment after `seconds`, on a clock that is `ahead` seconds fast.
    fn at(seconds: u64, ahead: u64) -> Moment {
        let time = Timestamp::from_millis(i64::try_from((1_800_000_000 + seconds + ahead) * 1000).unwrap());
        Moment { time, tick: Tick::from_micros(seconds * 1_000_000) }
    }

    #[test]
    fn a_clock_that_jumps_is_watched_before_it_is_believed() {
        let mut watch = ClockWatch::new(at(0, 0));
        let mut believed = |seconds, ahead| {
            let jumped = watch.look(at(seconds, ahead)).is_some();
            (jumped, watch.is_believed(at(seconds, ahead).tick))
        };
        assert_eq!(believed(60, 0), (false, false), "a start in the wrong minute decides nothing");
        assert_eq!(believed(15 * 60, 1), (false, true));
        assert_eq!(believed(16 * 60, 8 * DAY), (true, false), "eight days ahead");
        assert_eq!(believed(17 * 60, 0), (true, false), "and back");
        assert_eq!(believed(31 * 60, 0), (false, false));
        assert_eq!(believed(32 * 60, 0), (false, true));
        // A jump that lasts is the new time.
        assert_eq!(believed(33 * 60, DAY), (true, false));
        assert_eq!(believed(48 * 60, DAY), (false, true));
    }

    #[test]
    fn partners_are_told_of_closings_from_the_start_but_not_by_a_clock_that_jumped() {
        let mut watch = ClockWatch::new(at(0, 0));
        let mut closes = |seconds, ahead| {
            let now = at(seconds, ahead);
            watch.look(now);
            !watch.has_jumped(now.tick)
        };
        assert!(closes(0, 0) && closes(60, 0));
        assert!(!closes(61, DAY) && !closes(16 * 60, DAY));
        assert!(closes(16 * 60 + 1, DAY));
    }
}
