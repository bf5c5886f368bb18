//! The only place that asks what time it is. Everything else is told.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::domain::time::{Tick, Timestamp};

/// The time of one request: on the calendar for records, and on a clock that never steps for limits.
#[derive(Clone, Copy)]
pub struct Moment {
    pub time: Timestamp,
    pub tick: Tick,
}

#[derive(Clone, Copy)]
pub struct Clock(Instant);

/// By how many milliseconds the calendar of this process is ahead: of a demonstration's, and of no other.
static AHEAD: AtomicI64 = AtomicI64::new(0);

/// Sets the calendar of a demonstration; it never goes back.
pub fn move_ahead(by: Duration) {
    AHEAD.fetch_max(i64::try_from(by.as_millis()).unwrap_or(0), Ordering::Relaxed);
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the place")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    #[expect(clippy::disallowed_methods, reason = "this is the place")]
    pub fn now(&self) -> Moment {
        Moment { time: wall(SystemTime::now(), AHEAD.load(Ordering::Relaxed)), tick: self.tick() }
    }

    /// What the machine says: a demonstration's calendar that is moved is no clock that jumped.
    #[expect(clippy::disallowed_methods, reason = "this is the place")]
    pub fn of_machine(&self) -> Moment {
        Moment { time: wall(SystemTime::now(), 0), tick: self.tick() }
    }

    /// The clock that never steps, alone.
    pub fn tick(&self) -> Tick {
        Tick::from_micros(micros(self.0.elapsed()))
    }
}

fn wall(now: SystemTime, ahead: i64) -> Timestamp {
    // A machine whose clock stands before 1970 is read as 1970: the records stay in order.
    let millis = now.duration_since(UNIX_EPOCH).map_or(0, |span| span.as_millis());
    Timestamp::from_millis(i64::try_from(millis).unwrap_or(i64::MAX).saturating_add(ahead))
}

fn micros(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
