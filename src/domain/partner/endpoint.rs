//! Where a partner receives webhooks (an endpoint), and what is on its way there.

use crate::domain::json::json_text;
use crate::domain::partner::idempotency::IdempotencyKey;
use crate::domain::partner::name::PartnerId;
use crate::domain::time::Timestamp;
use crate::domain::webhook::EventKind;
use crate::domain::webhook::signature::{SecretOf, SecretsOf};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointId(pub i64);

json_text!(EndpointId, |id: &EndpointId| *id);

impl std::fmt::Display for EndpointId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an endpoint's id: those are numbers")]
pub struct NotAnEndpointId;

impl std::str::FromStr for EndpointId {
    type Err = NotAnEndpointId;

    fn from_str(text: &str) -> Result<Self, NotAnEndpointId> {
        text.parse().map(Self).map_err(|_| NotAnEndpointId)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAdded {
    #[error("there is no partner of that name")]
    NoPartner,
    #[error("the partner has {ENDPOINTS_OF_ONE} endpoints, as many as it may")]
    Full,
    #[error("that is endpoint {0} of the partner already: everything would be told there twice")]
    Known(EndpointId),
}

/// Endpoints of one partner at the most: every event goes to each of them.
pub const ENDPOINTS_OF_ONE: u32 = 10;

/// Messages that are on their way to one endpoint at once, on a node.
pub const DELIVERIES_AT_ONCE: usize = 8;

#[derive(Clone, PartialEq, Eq)]
pub struct EndpointRecord {
    pub id: EndpointId,
    pub partner_id: PartnerId,
    pub partner: String,
    pub url: String,
    /// Of its secret.
    pub generation: u32,
    /// Of the secret before it; 0 if there was none.
    pub old_generation: u32,
    /// Which generation of the installation's secret it derives from, and the one before it.
    pub made_with: u32,
    pub old_made_with: u32,
    /// Until when its partner has to rotate its secret, because the installation's leaked or is lost.
    pub rotate_by: Option<Timestamp>,
    /// When the secret before it began to end.
    pub rotated_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub delivered_at: Option<Timestamp>,
    /// The first failure since the last success.
    pub failing_since: Option<Timestamp>,
    pub last_error: Option<String>,
    pub disabled_at: Option<Timestamp>,
    pub disabled_why: Option<String>,
    /// Since when its partner is suspended: nothing is sent there until that is lifted.
    pub suspended_at: Option<Timestamp>,
}

impl EndpointRecord {
    pub fn secrets(&self) -> SecretsOf {
        let newest = SecretOf { made_with: self.made_with, generation: self.generation };
        let old = Some(self.old_generation).filter(|old| *old > 0);
        let old = old.map(|generation| SecretOf { made_with: self.old_made_with, generation });
        SecretsOf { endpoint: self.id.0, newest, old }
    }
}

impl std::fmt::Debug for EndpointRecord {
    /// Without its address, which may hold a token of the partner's.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EndpointRecord({} of {})", self.id, self.partner)
    }
}

impl EndpointRecord {
    pub fn state(&self) -> String {
        if let (None, Some(at)) = (self.disabled_at, self.suspended_at) {
            return format!("waiting: the partner is suspended since {at}");
        }
        match (self.disabled_at, self.failing_since, self.delivered_at) {
            (Some(at), _, _) => format!("disabled since {at}: {}", self.disabled_why.as_deref().unwrap_or("it failed")),
            (None, Some(since), _) => {
                format!("failing since {since}: {}", self.last_error.as_deref().unwrap_or("it failed"))
            }
            (None, None, Some(at)) => format!("ok, at {at}"),
            (None, None, None) => "nothing was sent yet".to_owned(),
        }
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct ListedEndpoint {
    pub endpoint: EndpointRecord,
    pub waiting: u64,
    /// What was tried until its last attempt.
    pub given_up: u64,
}

/// A message for an endpoint, taken by a worker.
#[derive(Clone, PartialEq, Eq)]
pub struct DueDelivery {
    pub id: i64,
    /// The event that it is about: its message's id is made from it.
    pub event: i64,
    pub kind: EventKind,
    pub at: Timestamp,
    pub key: IdempotencyKey,
    /// This one included.
    pub attempts: u32,
}

#[derive(Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    Retry {
        at: Timestamp,
        cause: String,
    },
    /// There was no attempt: other names' look-ups had all places. It does not count.
    Postponed {
        at: Timestamp,
    },
    GivenUp {
        cause: String,
    },
    /// The endpoint says that it is no more (410).
    Gone {
        cause: String,
    },
}
