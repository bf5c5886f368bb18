//! An acceptance: what a member agreed to, the reference by which the supplier knows it, and what the supplier says became of it.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::LastDay;
use crate::domain::base32;
use crate::domain::json::{json_text, named_enum};
use crate::domain::time::{DAY, Timestamp};

named_enum! {
    /// What the supplier gets of those who accept.
    pub enum Handover {
        /// A code that they order with.
        Code = "code",
        /// Their address and state too, so that the supplier can write to them.
        Address = "address",
    }
}

named_enum! {
    /// Why somebody no longer takes part in a deal, nor counts in it for their referrer.
    pub enum Ended {
        /// They withdrew.
        Passed = "passed",
        /// They left the union.
        Left = "left",
        /// They were erased.
        Erased = "erased",
        /// The offer was withdrawn, or another took its place that is worse in something.
        Offer = "offer",
        /// The supplier turned down their order: the acceptance stands, and counts for nobody.
        Rejected = "rejected",
        /// So it does where they took it back.
        Cancelled = "cancelled",
    }
}

named_enum! {
    /// What the supplier says of an order, from the weakest word to the strongest on one day.
    pub enum OrderStatus {
        Ordered = "ordered",
        /// The new contract began.
        Switched = "switched",
        Rejected = "rejected",
        /// The member took it back.
        Cancelled = "cancelled",
    }
}

/// What the supplier says, and of which day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SupplierReport {
    pub status: OrderStatus,
    pub on: LastDay,
}

impl SupplierReport {
    fn order(self) -> (LastDay, usize) {
        (self.on, OrderStatus::ALL.into_iter().position(|status| status == self.status).unwrap_or(0))
    }

    /// Whether it takes the place of what was said before: a later day does, and on one day the stronger word.
    pub fn replaces(self, before: Option<Self>) -> bool {
        before.is_none_or(|before| before.order() < self.order())
    }

    /// What is wrong with its day, for an acceptance of that time.
    pub fn wrong_day(self, made_at: Timestamp, now: Timestamp) -> Option<String> {
        let Self { on, .. } = self;
        if on > LastDay::of(now.plus(DAY)) {
            return Some(format!("date {on} is later than tomorrow; write the day on which it happened"));
        }
        // A day ends when it has ended everywhere in the US.
        on.is_over(made_at)
            .then(|| format!("date {on} is before the member accepted, {made_at}; write the day on which it happened"))
    }

    /// From when a hold runs that begins with it: noon, which is the same day everywhere in the US.
    pub fn begins_at(self) -> Timestamp {
        Timestamp::from_millis(self.on.number() * DAY.as_millis() as i64).plus(DAY / 2)
    }
}

/// Ten characters, the last of which checks the others: a mistyped character, or two that changed places, make no other reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reference([u8; Self::LENGTH]);

json_text!(Reference, |reference: &Reference| *reference);

impl Reference {
    pub const LENGTH: usize = 10;

    /// Bytes of randomness.
    pub const ENTROPY: usize = 6;

    pub fn from_random(bytes: &[u8; Self::ENTROPY]) -> Self {
        let mut text = base32::encode::<{ Self::LENGTH }>(bytes);
        // A letter first: a spreadsheet makes a number of 0012345E67.
        text[0] = base32::character(10 + base32::value(text[0]).unwrap_or(0) % 22);
        text[Self::LENGTH - 1] = check(&text[..Self::LENGTH - 1]);
        Self(text)
    }

    /// Reads what somebody typed: in any case, with spaces and hyphens, and with the look-alikes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut folded = Vec::with_capacity(Self::LENGTH);
        for byte in text.bytes().filter(|byte| !matches!(byte, b' ' | b'-')) {
            if folded.len() == Self::LENGTH {
                return None;
            }
            folded.push(base32::fold(byte)?);
        }
        let text: [u8; Self::LENGTH] = folded.try_into().ok()?;
        (check(&text[..Self::LENGTH - 1]) == text[Self::LENGTH - 1]).then_some(Self(text))
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_str().to_ascii_uppercase())
    }
}

/// A polynomial over the field of 32 elements: any one wrong character, and any two that changed places, give another one.
fn check(text: &[u8]) -> u8 {
    let mut sum = 0;
    for character in text {
        sum ^= base32::value(*character).unwrap_or(0);
        sum = if sum & 16 == 0 { sum << 1 } else { (sum << 1) ^ 0b10_0101 };
    }
    base32::character(sum)
}

/// An acceptance as its member sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcceptanceEntry {
    /// By which the supplier knows it: the code to order with.
    pub reference: Reference,
    /// `code`, or `address`: what they agreed that the supplier gets.
    pub handover: Handover,
    /// The sentence above the button.
    pub told: Option<String>,
    pub made_at: Timestamp,
    /// When they last agreed to it.
    pub accepted_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// `passed`, `left` or `offer`.
    pub ended_why: Option<Ended>,
    /// When the file was made in which the supplier was given it.
    pub handed_over_at: Option<Timestamp>,
    /// And the one that said that it ended.
    pub withdrawn_at: Option<Timestamp>,
    /// What the supplier says became of it.
    pub report: Option<SupplierReport>,
    pub reported_at: Option<Timestamp>,
    /// When they said that it did not work.
    pub trouble_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(n: u8) -> Reference {
        Reference::from_random(&[n, n.wrapping_mul(7), 3, n.wrapping_mul(31), 250, n])
    }

    #[test]
    fn a_reference_is_read_as_it_was_typed_and_no_slip_makes_another() {
        for n in 0..50 {
            let one = reference(n);
            let text = one.to_string();
            assert_eq!(Reference::parse(&text), Some(one));
            assert!(text.starts_with(|first: char| first.is_ascii_alphabetic()), "{text}");
            let typed = format!(" {}-{} ", text[..5].to_lowercase().replace('0', "o").replace('1', "l"), &text[5..]);
            assert_eq!(Reference::parse(&typed), Some(one), "{typed}");
            let bytes = one.as_str().as_bytes();
            for place in 0..Reference::LENGTH {
                for other in b"0123456789abcdefghjkmnpqrstvwxyz".iter().filter(|other| **other != bytes[place]) {
                    let mut slip = one;
                    slip.0[place] = *other;
                    assert_eq!(Reference::parse(slip.as_str()), None);
                }
                for with in (0..Reference::LENGTH).filter(|with| bytes[*with] != bytes[place]) {
                    let mut slip = one;
                    slip.0.swap(place, with);
                    assert_eq!(Reference::parse(slip.as_str()), None, "{one} and {slip}");
                }
            }
        }
        for bad in ["", "0", "00000000000", "123456789u", "é"] {
            assert_eq!(Reference::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_later_day_and_on_one_day_the_stronger_word_counts() {
        let report = |status, on: &str| SupplierReport { status, on: on.parse().unwrap() };
        let switched = report(OrderStatus::Switched, "2027-01-12");
        assert!(switched.replaces(None) && !switched.replaces(Some(switched)), "a repeat changes nothing");
        assert!(switched.replaces(Some(report(OrderStatus::Cancelled, "2027-01-11"))));
        assert!(switched.replaces(Some(report(OrderStatus::Ordered, "2027-01-12"))));
        for stronger in [OrderStatus::Rejected, OrderStatus::Cancelled] {
            assert!(!switched.replaces(Some(report(stronger, "2027-01-12"))));
        }
    }

    #[test]
    fn a_day_lies_between_the_acceptance_and_tomorrow() {
        let wrong = |on: &str, made: &str| {
            let report = SupplierReport { status: OrderStatus::Ordered, on: on.parse().unwrap() };
            report.wrong_day(made.parse().unwrap(), "2027-01-20T12:00:00Z".parse().unwrap())
        };
        let made = "2027-01-10T09:00:00Z";
        assert_eq!(wrong("2027-01-09", made), None, "in Hawaii it was still the day before");
        assert!(wrong("2027-01-08", made).unwrap().contains("before the member accepted"));
        assert_eq!(wrong("2027-01-21", made), None);
        assert!(wrong("2027-01-22", made).unwrap().contains("later than tomorrow"));
    }
}
