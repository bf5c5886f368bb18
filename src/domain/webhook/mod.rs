//! The rules of webhooks: what is sent to a partner, when it is tried again, and when that ends.
//!
//! A body says only which request it is about and what became of it, and nothing about the person: a stray one reveals nothing.

pub mod signature;
pub mod url;

use std::time::Duration;

use serde::Serialize;

use super::api_key::Mode;
use super::backoff::backoff_with_jitter;
use super::json::named_enum;
use super::time::Timestamp;

/// What a delivery calls itself.
pub const USER_AGENT: &str = "unionhall-webhooks/1";

const HOUR: u64 = 3600;

/// How long after the attempt before it each attempt is made: the first at once, the others with growing waits (backoff).
pub const RETRIES: [Duration; 10] = [
    Duration::ZERO,
    Duration::from_secs(5),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * HOUR),
    Duration::from_secs(5 * HOUR),
    Duration::from_secs(10 * HOUR),
    Duration::from_secs(14 * HOUR),
    Duration::from_secs(20 * HOUR),
    Duration::from_secs(24 * HOUR),
];

/// The longest that an endpoint can ask us to wait (Retry-After): events must not grow old because of one answer.
pub const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(24 * HOUR);

/// An endpoint that has only failed for so long is disabled.
pub const DISABLED_AFTER: Duration = Duration::from_secs(5 * 24 * HOUR);

/// How long the secret before a rotation signs beside the new one.
pub const OLD_SECRET_SIGNS_FOR: Duration = Duration::from_secs(24 * HOUR);

named_enum! {
    /// What a partner is notified of.
    pub enum EventKind {
        /// The button of the sign-up was pressed.
        Confirmed = "sign_up.confirmed",
        /// Its seven days are over, and it was not.
        Closed = "sign_up.closed",
        /// Nothing happened: somebody tries the endpoint out.
        Ping = "ping",
    }
}

impl EventKind {
    /// What a partner's API document calls a message of this kind, and what it says.
    pub const fn message(self) -> (&'static str, &'static str) {
        match self {
            Self::Confirmed => ("receiveSignUpConfirmed", "A person pressed the button of a sign-up"),
            Self::Closed => ("receiveSignUpClosed", "Seven days have passed without that"),
            Self::Ping => ("receivePing", "Somebody tries the endpoint out"),
        }
    }

    /// Those that are about a sign-up and stand in the list of events.
    pub fn listed() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|kind| *kind != Self::Ping)
    }
}

#[derive(Serialize)]
struct EventBody<'a> {
    #[serde(rename = "type")]
    kind: EventKind,
    timestamp: Timestamp,
    mode: Mode,
    data: EventData<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventData<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
}

/// What is sent about something that happened at a time: the same bytes at every attempt.
pub fn body(kind: EventKind, at: Timestamp, mode: Mode, idempotency_key: Option<&str>) -> String {
    let body = EventBody { kind, timestamp: at, mode, data: EventData { idempotency_key } };
    serde_json::to_string(&body).expect("texts are JSON")
}

/// When a delivery that failed is tried again; none once every attempt was made. An endpoint that asks for a longer wait
/// gets it. `seed` (its row's id, say) is for jitter.
pub fn next_attempt(attempts_made: u32, now: Timestamp, retry_after: Option<Duration>, seed: u64) -> Option<Timestamp> {
    let wait = RETRIES.get(usize::try_from(attempts_made).ok()?)?;
    let jitter = |wait: Duration| backoff_with_jitter(wait, seed, attempts_made);
    let asked = retry_after.unwrap_or_default().min(LONGEST_ASKED_WAIT);
    Some(now.plus(jitter(*wait).max(jitter(asked).min(LONGEST_ASKED_WAIT))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn a_body_is_thin_and_always_the_same() {
        let time: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        assert_eq!(
            body(EventKind::Confirmed, time, Mode::Live, Some("order \"17\"")),
            r#"{"type":"sign_up.confirmed","timestamp":"2026-11-16T10:00:00Z","mode":"live","data":{"idempotencyKey":"order \"17\""}}"#
        );
        assert_eq!(
            body(EventKind::Ping, time.plus(Duration::from_millis(999)), Mode::Test, None),
            r#"{"type":"ping","timestamp":"2026-11-16T10:00:00Z","mode":"test","data":{}}"#
        );
    }

    #[test]
    fn ten_attempts_are_made_each_a_little_late_and_never_early() {
        let now = at(1_000_000);
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            for (made, wait) in (0..).zip(RETRIES) {
                let next = next_attempt(made, now, None, seed).unwrap();
                assert!(next >= now.plus(wait) && next <= now.plus(wait + wait / 5), "{made}: {next}");
                assert_eq!(next_attempt(made, now, None, seed), Some(next), "the same for the same seed");
            }
            seen.insert(next_attempt(9, now, None, seed));
            assert_eq!(next_attempt(10, now, Some(Duration::ZERO), seed), None);
            assert_eq!(next_attempt(u32::MAX, now, None, seed), None);
        }
        assert!(seen.len() > 50, "spread");
        let waits: Duration = RETRIES.iter().sum();
        assert!(waits + waits / 5 < DISABLED_AFTER, "an endpoint is not given up before what it is told");
    }

    #[test]
    fn a_longer_wait_that_was_asked_for_is_kept_up_to_a_day() {
        let now = at(0);
        for seed in 0..200 {
            let next = |made, asked| next_attempt(made, now, Some(Duration::from_secs(asked)), seed).unwrap();
            assert!((at(60)..=at(72)).contains(&next(1, 60)), "later than the 5 seconds planned");
            assert_eq!(next(2, 60), next_attempt(2, now, None, seed).unwrap(), "sooner than the 5 minutes planned");
            assert_eq!(next(1, 24 * HOUR), at(86_400));
            assert_eq!(next(1, u64::MAX), at(86_400));
        }
    }
}
