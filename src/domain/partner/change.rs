//! What partners change themselves over the API, and how often in a day.

use std::time::Duration;

use super::name::PartnerId;
use crate::domain::api_key::KeyId;
use crate::domain::json::named_enum;
use crate::domain::time::Timestamp;

/// The span that the limits below count over.
pub const LIMITS_COUNT_OVER: Duration = Duration::from_secs(24 * 3600);

/// How long a change is kept: longer than its mail is tried.
pub const CHANGES_KEPT_FOR: Duration = Duration::from_secs(4 * 24 * 3600);

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
    /// How often a partner may ask for it in [`LIMITS_COUNT_OVER`], over all its keys and whatever came of it.
    pub const fn max_a_day(self) -> u32 {
        match self {
            Self::EndpointAdded | Self::EndpointEnabled | Self::SecretRotated => 20,
            Self::EndpointTested => 100,
            Self::EventResent => 200,
            Self::KeyRotated => 10,
            // What there is was added before.
            Self::EndpointRemoved | Self::KeyRevoked => 50,
        }
    }
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
