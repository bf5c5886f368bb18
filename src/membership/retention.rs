//! Retention: sign-ups that nobody confirmed expire, and their answers are deleted in time.
//!
//! What expires does so for good, so a clock that is wrong for a while must not decide it: nothing expires until the clock
//! has agreed with the one that never steps for a quarter of an hour, at the start and after every jump.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::{Clock, Moment};
use crate::domain::time::Tick;
use crate::log::Log;
use crate::store::Store;
use crate::supervise;

/// How often sign-ups are looked at; what there is more of than one round takes is taken at once.
const EVERY: Duration = Duration::from_secs(60);

/// How far the clock may have moved against the one that never steps: what clocks are slewed by, and more.
const SLEWED: Duration = Duration::from_secs(120);

/// How long a clock that jumped is watched before it is believed.
const WATCHED_FOR: Duration = Duration::from_secs(15 * 60);

/// Works until told to stop. Several nodes may do so on one store.
pub async fn run(store: Arc<dyn Store>, log: Log, clock: Clock, mut stop: watch::Receiver<bool>) {
    let _vital = supervise::vital("retention");
    let mut watch = ClockWatch::new(clock.now());
    // Mail may wait for a time that a wrong clock wrote before this start.
    let mut heal = true;
    while !*stop.borrow() {
        let now = clock.now();
        if let Some(jump) = watch.look(now) {
            let minutes = jump.as_secs() / 60;
            log.problem(
                None,
                &format!("the clock jumped by {minutes} minutes; nothing expires until it has kept still for 15"),
            );
            heal = true;
        }
        if heal {
            match store.heal_clock(now.time).await {
                Ok(healed) => {
                    heal = false;
                    if healed > 0 {
                        log.note(&format!(
                            "{healed} mails waited for a time that a wrong clock had written; they go now"
                        ));
                    }
                }
                Err(error) => log.problem(None, &format!("mail may wait for a time that a wrong clock wrote: {error}")),
            }
        }
        if watch.is_believed(now.tick) {
            match store.retain(now.time).await {
                Ok(done) if done.expired + done.purged > 0 => continue,
                Ok(_) => {}
                Err(error) => log.problem(None, &format!("expired sign-ups could not be cleared away: {error}")),
            }
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Whether the clock on the wall can be believed, held against the one that never steps.
#[derive(Debug)]
struct ClockWatch {
    last: Moment,
    /// When it was last seen to jump, or begun to be watched.
    since: Tick,
}

impl ClockWatch {
    fn new(now: Moment) -> Self {
        Self { last: now, since: now.tick }
    }

    /// By how much it jumped since the last look, if it did.
    fn look(&mut self, now: Moment) -> Option<Duration> {
        let passed = now.tick.since(self.last.tick);
        let expected = self.last.time.plus(passed);
        let jump = now.time.since(expected).max(expected.since(now.time));
        self.last = now;
        let jumped = jump > SLEWED;
        if jumped {
            self.since = now.tick;
        }
        jumped.then_some(jump)
    }

    fn is_believed(&self, now: Tick) -> bool {
        now.since(self.since) >= WATCHED_FOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;

    const DAY: u64 = 24 * 3600;

    /// After so many seconds, on a clock that is so many seconds ahead.
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
}
