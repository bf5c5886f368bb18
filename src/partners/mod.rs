//! What partners may know: their records, the outcomes of the sign-ups they named, and webhooks.
//!
//! This module must never tell a partner anything about an address that the partner did not cause.

pub mod changes;
pub mod deliveries;
pub mod endpoints;
pub mod event_log;
pub mod events;
pub mod idempotency;
mod places;
pub mod records;
pub mod self_service;
pub mod webhooks;
pub mod worker;

use tokio::time::Instant;

use crate::domain::mail::MailId;
use crate::domain::partner::idempotency::IdempotencyKey;
use crate::domain::partner::name::PartnerId;
use crate::domain::partner::{NamedSignUp, SignUpStatus};
use crate::domain::time::Timestamp;
use crate::mail::outbox::hold::ReleaseSuspended;
use crate::partners::records::{FindStatus, ListStatuses};
pub use crate::store::StoreError;
use crate::store::{Store, StoreReply};

pub struct Partners {
    store: Store,
}

/// A page of a partner's named sign-ups.
#[derive(Clone, PartialEq, Eq)]
pub struct StatusPage {
    pub sign_ups: Vec<NamedSignUp>,
    /// The last one looked at; none if there are no more after it.
    pub next: Option<IdempotencyKey>,
}

/// How many sign-ups are looked at for a page of those with one status, however few have it.
const LOOKED_AT: u32 = 1000;

impl Partners {
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Releases all mail held because the partner was suspended; returns how many. Works in steps, with pauses in which others write.
    pub async fn release_suspended(&self, partner: PartnerId, now: Timestamp) -> Result<u64, StoreError> {
        let (mut after, mut released, mut begun) = (MailId(0), 0, Instant::now());
        while let (Some(last), some) = self.store.run(ReleaseSuspended { partner, after, now }).await? {
            (after, released) = (last, released + some);
            tokio::time::sleep(begun.elapsed()).await;
            begun = Instant::now();
        }
        Ok(released)
    }

    /// The partner's sign-up with that key, and its outcome; none if there is no such sign-up.
    pub fn status(&self, partner: PartnerId, key: IdempotencyKey) -> StoreReply<'_, Option<NamedSignUp>> {
        self.store.run(FindStatus { partner, key })
    }

    /// The partner's named sign-ups, oldest first, from `since` on and after `after`; none if there is no sign-up `after`. With
    /// `status`, only those that have this status at that moment.
    pub async fn statuses(
        &self,
        partner: PartnerId,
        after: Option<IdempotencyKey>,
        since: Timestamp,
        status: Option<(SignUpStatus, Timestamp)>,
        most: u32,
    ) -> Result<Option<StatusPage>, StoreError> {
        let after = match after {
            Some(key) => match self.store.run(FindStatus { partner, key }).await? {
                Some(last) => last.id,
                None => return Ok(None),
            },
            None => 0,
        };
        // One extra row shows whether there are more.
        let looked_at = if status.is_some() { LOOKED_AT } else { most };
        let mut looked =
            self.store.run(ListStatuses { partner, after, since, most: looked_at.saturating_add(1) }).await?;
        let mut has_more = looked.len() > looked_at as usize;
        looked.truncate(looked_at as usize);
        let (mut sign_ups, mut last) = (Vec::new(), None);
        for named in looked {
            if sign_ups.len() == most as usize {
                has_more = true;
                break;
            }
            last = Some(named.key.clone());
            if status.is_none_or(|(status, now)| named.status(now) == status) {
                sign_ups.push(named);
            }
        }
        Ok(Some(StatusPage { sign_ups, next: last.filter(|_| has_more) }))
    }
}
