//! What partners change themselves over the API, and how often in a day.

use std::time::Duration;

use super::name::PartnerId;
use crate::domain::api_key::{KeyId, KeyStatus};
use crate::domain::json::named_enum;
use crate::domain::time::{DAY, Timestamp};

/// The span that the limits below count over.
pub const LIMITS_COUNT_OVER: Duration = DAY;

/// How long a change is kept: longer than its mail is tried.
pub const CHANGES_KEPT_FOR: Duration = DAY.saturating_mul(4);

named_enum! {
    /// A kind of change.
    pub enum ChangeKind {
        EndpointAdded = "endpoint added",
        EndpointRemoved = "endpoint removed",
        EndpointTested = "endpoint tested",
        EndpointEnabled = "endpoint enabled",
        SecretRotated = "secret rotated",
        EventResent = "event resent",
        KeyRotated = "key rotated",
        KeyRevoked = "key revoked",
    }
}

impl ChangeKind {
    /// Whether it changes which keys work: who holds one that should not must not go unnoticed.
    pub const fn is_about_a_key(self) -> bool {
        matches!(self, Self::KeyRotated | Self::KeyRevoked)
    }

    /// How often a partner may ask for it in [`LIMITS_COUNT_OVER`], over all its keys. A rotation that is refused does not count;
    /// everything else does, whatever came of it.
    pub const fn max_a_day(self) -> u32 {
        match self {
            Self::EndpointAdded | Self::EndpointEnabled | Self::SecretRotated => 20,
            Self::EndpointTested => 100,
            Self::EventResent => 200,
            Self::KeyRotated => 10,
            // What there is was added before.
            Self::EndpointRemoved => 50,
            // Each key can be revoked once. A holder of one of a partner's keys must not keep the partner from revoking another.
            Self::KeyRevoked => u32::MAX,
        }
    }
}

/// What came of asking for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimedChange {
    /// It may be made; the row that counts it.
    Counted(i64),
    /// The day has had as many as it may; when the next one is.
    Full(Timestamp),
    /// The key that was presented no longer works.
    Over(KeyStatus),
}

/// A change that a partner's contact is to be mailed about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeChange {
    pub id: i64,
    pub partner_id: PartnerId,
    pub partner: String,
    pub contact: String,
    /// The key that was presented.
    pub key: KeyId,
    pub kind: ChangeKind,
    /// As the audit log has it.
    pub about: String,
    pub at: Timestamp,
}
