//! What partners learn of their sign-ups, as a list of events in one order, and the cursors that mark a place in it.

use std::time::Duration;

use ring::hmac;
use schemars::JsonSchema;
use serde::Serialize;

use super::endpoint::EndpointId;
use super::idempotency::IdempotencyKey;
use super::name::PartnerId;
use crate::domain::base32;
use crate::domain::secret::{KeyPurpose, Secret};
use crate::domain::time::{DAY, Timestamp};
use crate::domain::webhook::EventKind;

/// How long an event is kept after it happened.
pub const EVENTS_KEPT_FOR: Duration = DAY.saturating_mul(30);

/// Requests of one partner that wait for an event at once on a node; the next is answered without waiting.
pub const MAX_WAITING: u32 = 2;

/// An event, and what is known of its deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerEvent {
    /// Names it inside the store; the id of its message is made from it.
    pub id: i64,
    /// Its place in the partner's list, from 1 on.
    pub position: i64,
    pub kind: EventKind,
    pub key: IdempotencyKey,
    pub at: Timestamp,
    pub deliveries: Vec<EventDelivery>,
}

/// The delivery of an event to one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventDelivery {
    /// The id of the endpoint.
    pub endpoint: EndpointId,
    /// When the last attempt ended; left out before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_attempt_at: Option<Timestamp>,
    /// The HTTP status that the endpoint answered to it; left out where it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_status: Option<u32>,
    /// When the endpoint took it; left out until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub delivered_at: Option<Timestamp>,
    /// When it is tried next; left out once it was delivered or given up, and while the endpoint is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub next_attempt_at: Option<Timestamp>,
}

/// Why a list cannot begin after a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadCursor {
    #[error(
        "this is not a cursor of your events; send the `cursor` of the answer before, or begin again without it: you then get every \
         event of the last {} days",
        days()
    )]
    Unknown,
    #[error(
        "events after this cursor are older than {0} days and were deleted; begin again without it: you then get every event of the \
         last {0} days, and miss the deleted ones",
        days()
    )]
    TooOld,
}

const fn days() -> u64 {
    EVENTS_KEPT_FOR.as_secs() / (24 * 3600)
}

/// Makes and reads cursors. They are signed, so that one of another partner, or of the sandbox, is not taken for a place in
/// this list.
#[derive(Clone)]
pub struct EventCursors(Secret);

impl EventCursors {
    const SIGNATURE: usize = 8;

    pub fn new(secret: &Secret) -> Self {
        Self(secret.clone())
    }

    pub fn write(&self, partner: PartnerId, position: i64) -> String {
        let mut bytes = [0; 8 + Self::SIGNATURE];
        bytes[..8].copy_from_slice(&position.to_be_bytes());
        let generations = self.0.generations();
        bytes[8..].copy_from_slice(&signature(generations.newest(KeyPurpose::EventCursor), partner, position));
        base32::text::<26>(&bytes)
    }

    pub fn read(&self, partner: PartnerId, cursor: &str) -> Result<i64, BadCursor> {
        let bytes: [u8; 8 + Self::SIGNATURE] = base32::decode(cursor.as_bytes()).ok_or(BadCursor::Unknown)?;
        let (position, signature) = bytes.split_at(8);
        let position = i64::from_be_bytes(position.try_into().map_err(|_| BadCursor::Unknown)?);
        let is_of = |key| *signature == self::signature(key, partner, position);
        let is_ours = self.0.generations().reading(KeyPurpose::EventCursor).any(is_of);
        if is_ours { Ok(position) } else { Err(BadCursor::Unknown) }
    }
}

/// Nothing is protected by it, so a short one will do.
fn signature(key: &hmac::Key, partner: PartnerId, position: i64) -> [u8; EventCursors::SIGNATURE] {
    let signed = [partner.0.to_be_bytes(), position.to_be_bytes()].concat();
    let signature = hmac::sign(key, &signed);
    std::array::from_fn(|n| signature.as_ref()[n])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_of_one_partner_and_one_installation() {
        let cursors = |letter: &str| EventCursors::new(&Secret::new(&letter.repeat(32)).unwrap());
        let (ours, acme) = (cursors("s"), PartnerId(1));
        for position in [0, 1, 77, i64::MAX] {
            let cursor = ours.write(acme, position);
            assert_eq!(ours.read(acme, &cursor), Ok(position));
            assert_eq!(ours.read(PartnerId(2), &cursor), Err(BadCursor::Unknown));
            assert_eq!(cursors("t").read(acme, &cursor), Err(BadCursor::Unknown));
        }
        for bad in ["", "1", "nonsense", &ours.write(acme, 1).to_uppercase(), &"z".repeat(26), &"0".repeat(26)] {
            assert_eq!(ours.read(acme, bad), Err(BadCursor::Unknown), "{bad}");
        }
    }
}
