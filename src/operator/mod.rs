//! What the operator's commands and page can do with the records. Each use case is in the layer that owns it.
//!
//! A command gets an [`Operator`] and never the store, so a command cannot rebuild a rule about a person, a key or a mail.
//! This layer must never print, and must never know a command line or a backend.

pub mod access;
pub mod accounts;
pub mod demand;
pub mod findings;
pub mod lost_secret;
pub mod mail;
pub mod notify;
pub mod overview;
pub mod partner;
pub mod person;
pub mod resume;
pub mod review;
pub mod running;
pub mod second_factor;
pub mod service;
mod shared_read;
pub mod tax;
pub mod void;

use std::ops::Deref;
use std::sync::Arc;

use crate::campaigns::admin::CampaignAdmin;
use crate::clock::Clock;
use crate::domain::api_key::{KeyId, KeyStatus, Mode};
use crate::domain::email::EmailAddress;
use crate::domain::partner::name::PartnerId;
use crate::domain::person::Leaving;
use crate::domain::secret::Secret;
use crate::domain::secret::mark::AddressMarker;
use crate::domain::sign_up::SignUpsOf;
use crate::domain::time::Timestamp;
use crate::figures::worker;
pub use crate::figures::{Demand, Funnel, SourceDay};
pub use crate::installation::Claim;
use crate::keys::Keys;
use crate::keys::records::ListKeysOf;
use crate::membership::withdraw;
use crate::outbound::GuardedClient;
use crate::partners::Partners;
use crate::partners::webhooks::Webhooks;
use crate::people;
use crate::people::People;
use crate::people::erasures::ErasureLog;
use crate::rewards::RewardAdmin;
use crate::store::audit::AppendAudit;
pub use crate::store::audit::{Act, AuditEntry, AuditPlace, ListAuditAfter, ListAuditBefore};
use crate::store::sql::Unit;
use crate::store::{Store, StoreError, StoreReply};

/// The records as commands see them.
#[derive(Clone)]
pub struct Operator {
    store: Store,
    pub mode: Mode,
}

/// The records, with an act that the audit log records with each change.
pub struct AuditedOperator(Operator);

impl Deref for AuditedOperator {
    type Target = Operator;

    fn deref(&self) -> &Operator {
        &self.0
    }
}

impl AuditedOperator {
    /// Runs a unit that changes the records.
    pub fn run<U: Unit>(&self, unit: U) -> StoreReply<'_, U::Done> {
        self.0.store.run(unit)
    }
}

impl Operator {
    pub fn new(store: Store, mode: Mode) -> Self {
        Self { store, mode }
    }

    /// The same, with every change written to the audit log as this act, together with the change.
    pub fn audited(&self, act: Act) -> AuditedOperator {
        AuditedOperator(Self { store: self.store.audited(act), mode: self.mode })
    }

    /// Runs a query that changes nothing.
    pub fn ask<Q: Unit>(&self, query: Q) -> StoreReply<'_, Q::Done> {
        self.store.ask(query)
    }

    /// Runs a unit whose change the audit log need not show, because no one decided on it.
    pub fn run_unaudited<U: Unit>(&self, unit: U) -> StoreReply<'_, U::Done> {
        self.store.run(unit)
    }

    /// Writes an act to the audit log that changes no record.
    pub fn note(&self, act: Act) -> StoreReply<'_, ()> {
        self.store.run(AppendAudit(act))
    }

    pub fn keys(&self) -> Keys {
        Keys::new(self.store.clone(), self.mode)
    }

    pub fn partners(&self) -> Partners {
        Partners::new(self.store.clone())
    }

    pub fn webhooks(&self, secret: Secret, client: Arc<GuardedClient>) -> Webhooks {
        Webhooks::new(self.store.clone(), secret, client, self.mode)
    }

    pub fn campaigns(&self) -> CampaignAdmin {
        CampaignAdmin::new(self.store.clone())
    }

    pub fn rewards(&self) -> RewardAdmin {
        RewardAdmin::new(self.store.clone())
    }

    pub fn people(&self, secret: &Secret, erasures: ErasureLog) -> People {
        People::new(self.store.clone(), AddressMarker::new(secret), erasures)
    }

    pub async fn leave(&self, email: &EmailAddress, now: Timestamp) -> Result<Leaving, StoreError> {
        people::leave(&self.store, email, now).await
    }

    pub fn member_count(&self) -> StoreReply<'_, u64> {
        self.store.member_count()
    }

    /// Ends the pending sign-ups made with a key since that time; returns how many. An audit log records it once.
    pub async fn withdraw_sign_ups(&self, key: KeyId, since: Timestamp, now: Timestamp) -> Result<u64, StoreError> {
        withdraw::withdraw_sign_ups(&self.store, SignUpsOf::Key(key), since, now).await
    }

    /// The same of a whole partner, over all its keys; none if one of them works and would sign up more people.
    pub async fn withdraw_sign_ups_of_partner(
        &self,
        partner: PartnerId,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Option<u64>, StoreError> {
        let keys = self.ask(ListKeysOf(partner, u32::MAX)).await?;
        if keys.iter().any(|(key, _)| key.status(now) == KeyStatus::Valid) {
            return Ok(None);
        }
        withdraw::withdraw_sign_ups(&self.store, SignUpsOf::Partner(partner), since, now).await.map(Some)
    }

    /// Brings the figures up to date when no service may be doing it.
    pub async fn catch_up_figures(&self, clock: Clock) -> Result<(), StoreError> {
        worker::catch_up(&self.store, clock).await
    }

    /// Whether a write would be kept right now.
    pub fn check(&self) -> StoreReply<'_, ()> {
        self.store.check(true)
    }

    pub fn close(&self) -> StoreReply<'_, ()> {
        self.store.close()
    }
}
