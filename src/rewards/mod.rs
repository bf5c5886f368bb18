//! Rewards for referring members: the worker that forms groups, and what the operator does with money.
//!
//! The store of rewards is private to this layer: no rule about a group or a payout can be rebuilt elsewhere. It must never know
//! HTTP, MCP or a command line.

pub mod worker;

use std::sync::Arc;

use tokio::time::Instant;

use crate::domain::campaign::CampaignSlug;
use crate::domain::email::EmailAddress;
use crate::domain::reward::RewardAccount;
use crate::domain::reward::payout::{PayoutRecord, PayoutState, Settlement};
use crate::domain::reward::report::{CampaignRewards, OnTheWay};
use crate::domain::reward::review::ReviewedReferrer;
use crate::domain::secret::mark::AddressMarker;
use crate::domain::time::Timestamp;
pub use crate::store::rewards::{BatchRecord, PayoutPage, Voided};
use crate::store::{RewardStore, StoreError, StoreReply};
use crate::supervise::pause_after_step;

/// Rows of a list that are read at once.
const PAGE: u32 = 500;

/// Payouts that are settled at once.
const SETTLED_AT_ONCE: usize = 100;

/// What the operator does with rewards.
#[derive(Debug)]
pub struct RewardAdmin {
    store: Arc<dyn RewardStore>,
    /// The same store, where changes are written to the audit log.
    audited: Arc<dyn RewardStore>,
}

/// What became of a provider's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSettled {
    /// How many payouts were booked by it, and how many had been before.
    Done { booked: u64, before: u64 },
    /// Nothing was booked; the places in what was given that cannot be, and why.
    Refused(Vec<(usize, String)>),
}

impl RewardAdmin {
    pub fn new(store: Arc<dyn RewardStore>) -> Self {
        Self { audited: Arc::clone(&store), store }
    }

    /// The same; of what is done in steps the log has one row.
    pub fn audited(store: Arc<dyn RewardStore>, audited: Arc<dyn RewardStore>) -> Self {
        Self { store, audited }
    }

    /// Does what the service does every half minute; a command may come before it, or without it.
    pub async fn catch_up(&self, now: Timestamp) -> Result<(), StoreError> {
        worker::work(&*self.store, || now).await
    }

    /// Takes somebody out of what their referrer earns in a campaign; someone who was erased is known by their mark.
    pub async fn void(
        &self,
        email: &EmailAddress,
        marker: &AddressMarker,
        campaign: &CampaignSlug,
        (reason, who): (&str, &str),
        now: Timestamp,
    ) -> Result<Voided, StoreError> {
        let void =
            |address| self.audited.void_person(address, campaign.clone(), reason.to_owned(), who.to_owned(), now);
        match void(email.normalized()).await? {
            Voided::UnknownPerson => void(marker.tombstone(email)).await,
            voided => Ok(voided),
        }
    }

    /// A page of accounts after that one, in their order.
    pub fn accounts(&self, after: &str) -> StoreReply<'_, Vec<RewardAccount>> {
        self.store.reward_accounts(after.to_owned(), PAGE)
    }

    /// A page of accounts after that one that were paid something between two times; `paid_cents` is what that was.
    pub fn paid_between(&self, since: Timestamp, until: Timestamp, after: &str) -> StoreReply<'_, Vec<RewardAccount>> {
        self.store.paid_between(since, until, after.to_owned(), PAGE)
    }

    /// Referred members who take part and are in no group yet.
    pub fn on_the_way(&self) -> StoreReply<'_, OnTheWay> {
        self.store.on_the_way()
    }

    /// Groups and money of a campaign.
    pub async fn campaign(&self, slug: &CampaignSlug) -> Result<CampaignRewards, StoreError> {
        let mut all = CampaignRewards::default();
        while !all.is_whole {
            all = self.store.campaign_rewards(slug.clone(), all).await?;
        }
        Ok(all)
    }

    /// A page of referrers after that person who have groups that are not paid.
    pub fn reviewed(&self, after: i64) -> StoreReply<'_, Vec<ReviewedReferrer>> {
        self.store.reviewed_referrers(after)
    }

    pub fn find_batch(&self, batch: i64) -> StoreReply<'_, Option<BatchRecord>> {
        self.store.find_batch(batch)
    }

    /// The last batches, newest first.
    pub fn batches(&self, most: u32) -> StoreReply<'_, Vec<BatchRecord>> {
        self.store.payout_batches(most)
    }

    /// A batch of all that is due, or the one whose file was never written; none if nothing is due. Killed between any two steps, it
    /// goes on when it is asked for again.
    pub async fn make_batch(&self, who: &str, now: Timestamp) -> Result<Option<i64>, StoreError> {
        let Some(batch) = self.store.begin_batch(who.to_owned(), now).await? else { return Ok(None) };
        let mut begun = Instant::now();
        while !self.store.fill_batch(batch, who.to_owned(), now).await?.is_full {
            pause_after_step(begun).await;
            begun = Instant::now();
        }
        Ok(Some(batch))
    }

    /// A batch's file is written from now on.
    pub fn close_batch(&self, batch: i64, now: Timestamp) -> StoreReply<'_, ()> {
        self.store.close_batch(batch, now)
    }

    /// A page of a batch's payouts after that id.
    pub fn payouts_of(&self, batch: i64, after: i64) -> StoreReply<'_, PayoutPage> {
        self.store.payouts_of(batch, after)
    }

    /// The batch's file is there now.
    pub fn note_written(&self, batch: i64, now: Timestamp) -> StoreReply<'_, ()> {
        self.audited.note_written(batch, now)
    }

    /// Books a provider's answer, if all of it can be. Killed in between, it goes on when it is given the same file again.
    pub async fn settle(
        &self,
        settlements: Vec<Settlement>,
        who: &str,
        now: Timestamp,
    ) -> Result<FileSettled, StoreError> {
        let (mut mistakes, mut place) = (Vec::new(), 0..);
        for some in settlements.chunks(SETTLED_AT_ONCE) {
            let ids = some.iter().map(|settlement| settlement.external_id.clone()).collect();
            let found = self.store.find_payouts(ids).await?;
            let refused = |(settlement, place)| Some((place, refusal(settlement, &found)?));
            mistakes.extend(some.iter().zip(&mut place).filter_map(refused));
        }
        if !mistakes.is_empty() {
            return Ok(FileSettled::Refused(mistakes));
        }
        let (total, mut booked) = (settlements.len() as u64, 0);
        for some in settlements.chunks(SETTLED_AT_ONCE) {
            let begun = Instant::now();
            let store = if booked == 0 { &self.audited } else { &self.store };
            booked += store.settle(some.to_vec(), who.to_owned(), now).await?;
            pause_after_step(begun).await;
        }
        Ok(FileSettled::Done { booked, before: total - booked })
    }
}

/// Why a line of the provider's file cannot be booked; none where it can, or was before.
fn refusal(settlement: &Settlement, found: &[PayoutRecord]) -> Option<String> {
    let id = &settlement.external_id;
    let Some(payout) = found.iter().find(|payout| payout.external_id == *id) else {
        return Some(format!("external_id {id}: no payout has it; use the file that `rewards batch new` wrote"));
    };
    let (before, after) = (payout.state, settlement.state());
    if before == after || before.may_become(after) {
        return None;
    }
    let why = if before == PayoutState::Failed { ", and is due again under another id" } else { "" };
    Some(format!("external_id {id}: the file says {}, but it was settled as {}{why}", after.name(), before.name()))
}
