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

#[derive(Debug)]
pub(super) struct Window {
    /// The low 32 bits of a time in microseconds for each group of requests, oldest first.
    stamps: VecDeque<u32>,
    /// The newest of them in full: when it is over, all are.
    newest: u64,
    /// How many requests the newest group holds; the others are full.
    in_newest: u32,
    pub(super) limit: u32,
}

impl Window {
    pub(super) fn new(limit: u32) -> Self {
        Self { stamps: VecDeque::new(), newest: 0, in_newest: 0, limit }
    }

    pub(super) fn check(&mut self, limit: u32, now: Tick) -> Verdict {
        self.limit = limit;
        self.forget_before(now);
        let used = self.count();
        let admitted = used < limit;
        if admitted {
            self.admit(now);
        }
        let remaining = limit.saturating_sub(self.count());
        Verdict { admitted, remaining, reset: self.until_next(now) }
    }

    fn group(&self) -> u32 {
        // Without a division for nearly all.
        if self.limit <= MOST_STAMPS { 1 } else { self.limit.div_ceil(MOST_STAMPS) }
    }

    pub(super) fn count(&self) -> u32 {
        match self.stamps.len() {
            0 => 0,
            groups => (groups as u32 - 1) * self.group() + self.in_newest,
        }
    }

    pub(super) fn is_over(&self, now: Tick) -> bool {
        now.as_micros().saturating_sub(self.newest) > SPAN
    }

    pub(super) fn forget_before(&mut self, now: Tick) {
        if self.is_over(now) {
            self.stamps.clear();
            return;
        }
        while let Some(oldest) = self.stamps.front() {
            // Strictly more than the span: times are cut to whole microseconds, and the promise holds for any 60 s.
            if self.age(*oldest, now) <= SPAN {
                break;
            }
            self.stamps.pop_front();
        }
    }

    fn admit(&mut self, now: Tick) {
        // Threads may come to the lock in another order than they read the clock; times here never run backwards.
        self.newest = self.newest.max(now.as_micros());
        let stamp = self.newest as u32;
        let group = self.group();
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

    pub(super) fn until_next(&self, now: Tick) -> Duration {
        let oldest = self.stamps.front().map_or(0, |oldest| (SPAN + 1).saturating_sub(self.age(*oldest, now)));
        Duration::from_micros(oldest)
    }

    /// How long before `now` a stamp of this bucket was made.
    fn age(&self, stamp: u32, now: Tick) -> u64 {
        let before_newest = u64::from((self.newest as u32).wrapping_sub(stamp));
        now.as_micros().saturating_sub(self.newest) + before_newest
    }
}
