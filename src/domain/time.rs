//! Points in time as the records keep them: milliseconds since 1970, UTC.

use std::time::Duration;

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, Time};

use super::json::json_text;

/// A day, as periods and bounds count it.
pub const DAY: Duration = Duration::from_secs(24 * 3600);

/// A point in time. Always passed in; only `clock.rs` asks what time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

json_text!(Timestamp, |time: &Timestamp| *time);

/// A point on a monotonic clock, in microseconds since some start: it never steps back, so limits count by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(u64);

impl Tick {
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The point `span` later.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }

    /// How long after `earlier` this is; nothing when it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Timestamp {
    const DAY: i64 = 86_400_000;

    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The time `span` later; the end of time when that cannot be said.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// The time `span` earlier; the beginning of time when that cannot be said.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; nothing when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// When its day, of UTC, began.
    #[must_use]
    pub const fn start_of_day(self) -> Self {
        Self(self.0 - self.0.rem_euclid(Self::DAY))
    }

    /// When the next hour begins.
    #[must_use]
    pub const fn end_of_hour(self) -> Self {
        const HOUR: i64 = 3_600_000;
        Self((self.0 - self.0.rem_euclid(HOUR)).saturating_add(HOUR))
    }

    /// When the next day begins.
    #[must_use]
    pub const fn end_of_day(self) -> Self {
        Self(self.start_of_day().0.saturating_add(Self::DAY))
    }

    /// The day as Americans write it: Nov 14, 2026.
    pub fn day(self) -> String {
        self.printable().strftime("%b %-d, %Y").to_string()
    }

    /// The nearest time that has a date with a year of four digits. Times before 1970 do not occur in the records.
    fn printable(self) -> DateTime {
        EPOCH.checked_add(SignedDuration::from_millis(self.0.max(0))).unwrap_or(DateTime::MAX)
    }
}

/// Dates are of UTC throughout, so they need no zone.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

impl std::fmt::Display for Timestamp {
    /// RFC 3339 in UTC, to the second.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.printable().strftime("%Y-%m-%dT%H:%M:%SZ").fmt(f)
    }
}

/// A span as people write it, days of 24 hours included: 30m, 24h, 7d.
pub fn parse_span(text: &str) -> Option<Duration> {
    let span = text.parse::<jiff::Span>().ok()?;
    span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok()?.try_into().ok()
}

/// The same to be read: 15m, 24h.
pub fn show_span(span: Duration) -> String {
    format!("{:#}", SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX))
}

#[derive(Debug, thiserror::Error)]
#[error(
    "\"{0}\" is not a date: write 2027-01-31, or an exact time such as 2027-01-31T18:00:00Z or 2027-01-31T19:00:00+01:00"
)]
pub struct NotADate(String);

impl std::str::FromStr for Timestamp {
    type Err = NotADate;

    /// A date (its first second, UTC) or a full RFC 3339 time with any offset.
    fn from_str(text: &str) -> Result<Self, NotADate> {
        let refuse = || NotADate(text.to_owned());
        let millis = match text.len() {
            10 => {
                let date = text.parse::<Date>().map_err(|_| refuse())?;
                i64::try_from(date.to_datetime(Time::midnight()).duration_since(EPOCH).as_millis())
                    .map_err(|_| refuse())?
            }
            // A time without an offset is refused: its zone is unknown.
            _ => text.parse::<jiff::Timestamp>().map_err(|_| refuse())?.as_millisecond(),
        };
        if millis < 0 { Err(refuse()) } else { Ok(Self(millis)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_read_and_print() {
        let date: Timestamp = "2027-01-31".parse().unwrap();
        assert_eq!(date.to_string(), "2027-01-31T00:00:00Z");
        assert_eq!(date.day(), "Jan 31, 2027");
        let time: Timestamp = "2027-01-31T18:30:05Z".parse().unwrap();
        assert_eq!(time.since(date), Duration::from_secs(18 * 3600 + 30 * 60 + 5));
        assert_eq!(date.since(time), Duration::ZERO);
        for same in ["2027-01-31T20:30:05+02:00", "2027-01-31T14:30:05.000-04:00", "2027-02-01T00:00:05+05:30"] {
            assert_eq!(same.parse::<Timestamp>().unwrap(), time, "{same}");
        }
        for bad in [
            "",
            "Z",
            "2027-01-31T18:30:05",
            "2027-01-31T18:30:05+25:61",
            "1970-01-01T00:30:00+01:00",
            "tomorrow",
            "2027-13-01",
            "2027-1-1",
            "1969-12-31",
        ] {
            assert!(bad.parse::<Timestamp>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_ends_of_time_print_without_a_panic() {
        assert_eq!(Timestamp::from_millis(i64::MAX).to_string(), "9999-12-31T23:59:59Z");
        assert_eq!(Timestamp::from_millis(i64::MIN).to_string(), "1970-01-01T00:00:00Z");
        let day = Timestamp::from_millis(2 * 86_400_000);
        assert_eq!((day.start_of_day(), day.end_of_day()), (day, Timestamp::from_millis(3 * 86_400_000)));
        assert_eq!(Timestamp::from_millis(3 * 86_400_000 - 1).start_of_day(), day);
        assert_eq!(day.end_of_hour(), day.plus(Duration::from_secs(3600)));
        assert_eq!(Timestamp::from_millis(1).plus(Duration::MAX), Timestamp::from_millis(i64::MAX));
    }
}
