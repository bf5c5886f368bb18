//! What partners may know and are told: their records, what came of the sign-ups they named, and webhooks.
//!
//! The stores of partners and of webhooks are private to this layer. It must never tell a partner anything about an address that
//! the partner did not cause.

pub mod webhooks;
pub mod worker;

use std::sync::Arc;

use tokio::time::Instant;

use crate::domain::email::EmailAddress;
use crate::domain::mail::MailId;
use crate::domain::partner::idempotency::IdempotencyKey;
use crate::domain::partner::name::PartnerId;
use crate::domain::partner::{NamedSignUp, PartnerRecord};
use crate::domain::time::Timestamp;
pub use crate::store::StoreError;
use crate::store::{PartnerStore, StoreReply};

#[derive(Debug)]
pub struct Partners {
    store: Arc<dyn PartnerStore>,
}

/// Some of a partner's named sign-ups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusPage {
    pub sign_ups: Vec<NamedSignUp>,
    /// There are more after these.
    pub has_more: bool,
}

impl Partners {
    pub fn new(store: Arc<dyn PartnerStore>) -> Self {
        Self { store }
    }

    /// All partners, by name.
    pub fn list(&self) -> StoreReply<'_, Vec<PartnerRecord>> {
        self.store.list_partners()
    }

    /// Whom to write to about a partner from now on; false if there is no such partner.
    pub async fn set_contact(&self, name: &str, contact: Option<EmailAddress>) -> Result<bool, StoreError> {
        self.store.set_contact(name, contact).await
    }

    /// Stops a partner: its keys, its mail and its webhooks. False if it was suspended before.
    pub fn suspend(&self, partner: PartnerId, now: Timestamp) -> StoreReply<'_, bool> {
        self.store.suspend_partner(partner, now)
    }

    /// Lifts that; false if it was not suspended.
    pub fn resume(&self, partner: PartnerId, now: Timestamp) -> StoreReply<'_, bool> {
        self.store.resume_partner(partner, now)
    }

    /// Lets all mail go that was held because the partner was suspended; says how much. In steps, with pauses in which others write.
    pub async fn release_suspended(&self, partner: PartnerId, now: Timestamp) -> Result<u64, StoreError> {
        let (mut after, mut released, mut begun) = (MailId(0), 0, Instant::now());
        while let (Some(last), some) = self.store.release_suspended(partner, after, now).await? {
            (after, released) = (last, released + some);
            tokio::time::sleep(begun.elapsed()).await;
            begun = Instant::now();
        }
        Ok(released)
    }

    /// The mails a day that the partner may cause; none for the general rule.
    pub fn set_mails_a_day(&self, partner: PartnerId, mails: Option<u32>) -> StoreReply<'_, ()> {
        self.store.set_mails_a_day(partner, mails)
    }

    /// What came of a sign-up that the partner gave that name to; none where it gave it to none.
    pub async fn status(&self, partner: PartnerId, key: IdempotencyKey) -> Result<Option<NamedSignUp>, StoreError> {
        self.store.sign_up_status(partner, key).await
    }

    /// The partner's own, oldest first, from that time on and after that one; none where there is no such one to begin after.
    pub async fn statuses(
        &self,
        partner: PartnerId,
        after: Option<IdempotencyKey>,
        since: Timestamp,
        most: u32,
    ) -> Result<Option<StatusPage>, StoreError> {
        let after = match after {
            Some(key) => match self.store.sign_up_status(partner, key).await? {
                Some(last) => last.id,
                None => return Ok(None),
            },
            None => 0,
        };
        // One more tells whether there is more.
        let mut sign_ups = self.store.named_sign_ups(partner, after, since, most.saturating_add(1)).await?;
        let has_more = sign_ups.len() > most as usize;
        sign_ups.truncate(most as usize);
        Ok(Some(StatusPage { sign_ups, has_more }))
    }
}
