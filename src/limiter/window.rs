//! The sliding window of one bucket: the requests admitted in the last minute.
//!
//! A bucket stores the times of the requests it admitted. Past 1,000 a minute it stores one time per group of requests, the
//! latest of the group. So it never admits more than its limit, and errs by less than a thousandth of it.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Verdict, WINDOW};
use crate::domain::time::Tick;

/// Microseconds fit in 32 bits for 71 minutes, and no two times of one bucket are two windows apart.
pub(super) const SPAN: u64 = WINDOW.as_micros() as u64;

/// Past this limit a bucket counts in groups.
pub(super) const MOST_STAMPS: u32 = 1000;

pub(super) struct Window {
    /// The low 32 bits of a time in microseconds for each group of requests, oldest first.
    stamps: VecDeque<u32>,
    /// The latest time that anybody asked at, in full. Threads may come to the lock in another order than they read the clock;
    /// times here never run backwards, so that what one of them forgot is no room for one that comes after it.
    latest: u64,
    /// How many requests the newest group holds; the others are full.
    in_newest: u32,
    /// Whose groups these are.
    pub(super) limit: u32,
}

impl Window {
    pub(super) fn new(limit: u32) -> Self {
        Self { stamps: VecDeque::new(), latest: 0, in_newest: 0, limit }
    }

    pub(super) fn check(&mut self, limit: u32, now: Tick) -> Verdict {
        self.forget_before(now);
        self.group_by(limit);
        let admitted = self.count() < limit;
        if admitted {
            self.admit();
        }
        Verdict { admitted, remaining: limit.saturating_sub(self.count()), reset: self.until_next() }
    }

    /// How long until a request would be admitted again; none if it would now. Counts nothing.
    pub(super) fn wait(&mut self, limit: u32, now: Tick) -> Option<Duration> {
        self.forget_before(now);
        self.group_by(limit);
        (self.count() >= limit).then(|| self.until_next())
    }

    /// When the last check was counted, by which it can be taken back.
    pub(super) fn latest(&self) -> Tick {
        Tick::from_micros(self.latest)
    }

    /// Takes back a request that was counted then; nothing if it no longer is.
    pub(super) fn take_back(&mut self, then: Tick) {
        let (group, age) = (group_of(self.limit), self.latest.saturating_sub(then.as_micros()));
        // The first group that is as late holds it, or one that is as good.
        let place = self.stamps.partition_point(|stamp| self.age(*stamp) > age);
        let Some(stamp) = self.stamps.get(place) else { return };
        if age > SPAN || (group == 1 && self.age(*stamp) != age) {
            return;
        }
        // A request of the next group moves up in its place; of that group only the latest time is known.
        for next in place + 1..self.stamps.len() {
            self.stamps[next - 1] = self.stamps[next];
        }
        self.in_newest -= 1;
        if self.in_newest == 0 {
            self.stamps.pop_back();
            self.in_newest = group;
        }
    }

    pub(super) fn count(&self) -> u32 {
        match self.stamps.len() {
            0 => 0,
            groups => (groups as u32 - 1) * group_of(self.limit) + self.in_newest,
        }
    }

    pub(super) fn is_over(&self, now: Tick) -> bool {
        self.stamps.is_empty() || now.as_micros().saturating_sub(self.latest) > SPAN
    }

    pub(super) fn forget_before(&mut self, now: Tick) {
        let now = now.as_micros();
        if now.saturating_sub(self.latest) > SPAN {
            self.stamps.clear();
        }
        self.latest = self.latest.max(now);
        while let Some(oldest) = self.stamps.front() {
            // Strictly more than the span: times are cut to whole microseconds, and the promise holds for any 60 s.
            if self.age(*oldest) <= SPAN {
                break;
            }
            self.stamps.pop_front();
        }
    }

    /// Counts in the groups of this limit from now on. Another limit may have larger or smaller ones; as many requests count as
    /// before, and none of them less long.
    fn group_by(&mut self, limit: u32) {
        let (before, group) = (group_of(self.limit), group_of(limit));
        if before != group {
            let used = self.count();
            let groups = used.div_ceil(group);
            if groups > MOST_STAMPS {
                // More than the limit, so that none is admitted: they stay as they are until fewer are left.
                return;
            }
            let last_of = |place: u32| (place + 1).saturating_mul(group).min(used) - 1;
            self.stamps = (0..groups).map(|place| self.stamps[(last_of(place) / before) as usize]).collect();
            self.in_newest = used - groups.saturating_sub(1) * group;
        }
        self.limit = limit;
    }

    fn admit(&mut self) {
        let stamp = self.latest as u32;
        let group = group_of(self.limit);
        match self.stamps.back_mut() {
            Some(newest) if self.in_newest < group => {
                *newest = stamp;
                self.in_newest += 1;
            }
            _ => {
                self.stamps.push_back(stamp);
                self.in_newest = 1;
            }
        }
    }

    fn until_next(&self) -> Duration {
        let oldest = self.stamps.front().map_or(0, |oldest| (SPAN + 1).saturating_sub(self.age(*oldest)));
        Duration::from_micros(oldest)
    }

    /// How long before the latest time a stamp of this bucket was made.
    fn age(&self, stamp: u32) -> u64 {
        u64::from((self.latest as u32).wrapping_sub(stamp))
    }
}

/// How many requests of a limit share a time.
fn group_of(limit: u32) -> u32 {
    // Without a division for nearly all.
    if limit <= MOST_STAMPS { 1 } else { limit.div_ceil(MOST_STAMPS) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(micros: u64) -> Tick {
        Tick::from_micros(micros)
    }

    #[derive(Debug, Clone)]
    enum Step {
        /// So many checks under one limit, at one time so much later.
        Checks(u64, u32, usize),
        /// The request that was admitted so many before the last is taken back.
        TakeBack(usize),
    }

    fn steps(limits: &'static [u32], most: usize) -> impl Strategy<Value = Vec<Step>> {
        let pause = prop_oneof![0..3_u64, 0..SPAN / 2, Just(SPAN), Just(SPAN + 1)];
        let checks = (pause, prop::sample::select(limits), 1..most).prop_map(|(p, l, n)| Step::Checks(p, l, n));
        prop::collection::vec(prop_oneof![3 => checks, 1 => (0..most).prop_map(Step::TakeBack)], 1..40)
    }

    /// Runs the steps beside a list of times; `held` is asked after each check with the limit, the verdict, how many counted before
    /// it by the list, and how many count after it by the window.
    fn beside_a_list(steps: Vec<Step>, mut held: impl FnMut(u32, Verdict, u32, u32)) {
        let (mut window, mut now, mut times) = (Window::new(1), (1 << 32) - SPAN, Vec::new());
        for step in steps {
            match step {
                Step::Checks(pause, limit, count) => {
                    now += pause;
                    times.retain(|then| now - then <= SPAN);
                    for _ in 0..count {
                        let before = times.len() as u32;
                        let verdict = window.check(limit, at(now));
                        times.extend(verdict.admitted.then_some(now));
                        held(limit, verdict, before, window.count());
                    }
                }
                Step::TakeBack(back) if back < times.len() => {
                    let then = times.remove(times.len() - 1 - back);
                    window.take_back(at(then));
                    assert!(window.count() as usize >= times.len());
                }
                Step::TakeBack(_) => {}
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

        #[test]
        fn one_by_one_it_is_exact_whatever_is_taken_back(steps in steps(&[1, 5, 30, 1000], 40)) {
            beside_a_list(steps, |limit, verdict, before, after| {
                assert_eq!(verdict.admitted, before < limit);
                assert_eq!(after, before + u32::from(verdict.admitted));
                assert_eq!(verdict.remaining, limit.saturating_sub(after));
            });
        }

        /// Limits on both sides of what is counted one by one, and of each other's groups.
        #[test]
        fn in_groups_none_counts_less_long_than_a_minute(steps in steps(&[3, 700, 1500, 4100, 25_000], 3000)) {
            beside_a_list(steps, |limit, verdict, before, after| {
                assert!(!verdict.admitted || before < limit);
                assert!(after >= before + u32::from(verdict.admitted), "{after} of {before}");
            });
        }
    }

    #[test]
    fn a_changed_limit_counts_what_was_admitted() {
        let mut window = Window::new(1);
        for n in 0..5000 {
            assert!(window.check(1_000_000, at(n)).admitted);
        }
        assert_eq!(window.wait(5000, at(5000)), Some(Duration::from_micros(SPAN + 1 - 5000 + 999)));
        assert_eq!(window.check(5002, at(5000)).remaining, 1);
        assert_eq!(window.check(900, at(5000)).remaining, 0);
        // What is left is the last thousand, which shared a time, one more, and four in a group of six with two of the thousand.
        assert_eq!(window.check(900, at(SPAN + 4500)).remaining, 0);
        assert_eq!(window.check(1200, at(SPAN + 4500)).remaining, 1200 - 1005 - 1);
        assert_eq!(window.check(900, at(2 * SPAN + 4501)).remaining, 899);
    }

    /// A thread that read the clock early and comes late finds no room that another one's later time made.
    #[test]
    fn times_never_run_backwards() {
        let mut window = Window::new(1);
        assert!(window.check(1, at(0)).admitted);
        assert_eq!(window.wait(1, at(SPAN + 10)), None);
        assert!(window.check(1, at(SPAN - 10)).admitted);
        assert!(!window.check(1, at(2 * SPAN - 5)).admitted, "it counts from when it was admitted");
        assert!(window.check(1, at(2 * SPAN + 11)).admitted);
    }
}
