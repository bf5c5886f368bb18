//! Partners as records: who they are, and what they may learn of the sign-ups they asked for.

pub mod change;
pub mod endpoint;
pub mod event;
pub mod idempotency;
pub mod name;

use std::time::Duration;

use self::idempotency::IdempotencyKey;
use self::name::PartnerId;
use super::email::EmailAddress;
use super::json::named_enum;
use super::time::Timestamp;

/// A partner, as the operator knows it.
#[derive(Clone, PartialEq, Eq)]
pub struct PartnerRecord {
    pub id: PartnerId,
    pub name: String,
    /// Who is written to when something of theirs fails.
    pub contact: Option<EmailAddress>,
    pub created_at: Timestamp,
    /// Since when none of its keys works and nothing of its mail and webhooks goes.
    pub suspended_at: Option<Timestamp>,
    /// The mails a day that it may cause, in place of the general rule.
    pub mails_a_day: Option<u32>,
    pub keys: u64,
    pub endpoints: u64,
}

/// The largest mail budget that a partner may have of its own.
pub const MAX_MAILS_A_DAY: u32 = 1_000_000;

/// How long a sign-up can become `confirmed` for the partner that asked for it; from then on it is `closed` for good.
pub const CLOSES_AFTER: Duration = super::sign_up::PENDING_FOR;

named_enum! {
    /// What a partner may know of a sign-up: whether the person pressed its button, and nothing about their address that the
    /// partner did not cause. Declined, lapsed, undeliverable and "a member already" all look the same.
    pub enum SignUpStatus {
        Pending = "pending",
        Confirmed = "confirmed",
        Closed = "closed",
    }
}

/// A sign-up with an idempotency key, as its partner may know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSignUp {
    /// Its place among all of them: what a cursor stands for.
    pub id: i64,
    pub key: IdempotencyKey,
    pub created_at: Timestamp,
    pub closes_at: Timestamp,
    pub confirmed_at: Option<Timestamp>,
}

impl NamedSignUp {
    pub fn status(&self, now: Timestamp) -> SignUpStatus {
        match self.confirmed_at {
            Some(_) => SignUpStatus::Confirmed,
            None if now >= self.closes_at => SignUpStatus::Closed,
            None => SignUpStatus::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_up_closes_to_the_millisecond_and_stays_confirmed() {
        let at = Timestamp::from_millis;
        let key = IdempotencyKey::parse("order-17").unwrap();
        let mut named = NamedSignUp { id: 1, key, created_at: at(0), closes_at: at(1000), confirmed_at: None };
        assert_eq!(named.status(at(999)), SignUpStatus::Pending);
        assert_eq!(named.status(at(1000)), SignUpStatus::Closed);
        named.confirmed_at = Some(at(500));
        assert_eq!(named.status(at(5000)), SignUpStatus::Confirmed);
    }
}
