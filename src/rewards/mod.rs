//! Rewards for members who refer others: the worker that forms groups, and what the operator does with money.
//!
//! It must never know HTTP, MCP or a command line.

mod answer;
pub mod ended;
pub mod file;
pub mod group;
pub mod ledger;
mod open;
pub mod payout;
pub mod place;
pub mod report;
pub mod settle;
pub mod standing;
pub mod worker;

use tokio::time::Instant;

pub use self::answer::{CheckedAnswer, PaidWithin, numbered};
use crate::domain::campaign::CampaignSlug;
use crate::domain::email::EmailAddress;
use crate::domain::person::AccountId;
use crate::domain::reward::report::CampaignRewards;
use crate::domain::reward::settlement::{ProviderAnswer, Settlement};
use crate::domain::secret::mark::AddressMarker;
use crate::domain::time::Timestamp;
use crate::installation::NeedsAnother;
use crate::membership::tombstones;
use crate::random;
use crate::rewards::ended::EndNoted;
pub use crate::rewards::group::Voided;
use crate::rewards::group::{StepReferrer, VoidPerson};
pub use crate::rewards::payout::{BatchRecord, NextBatch, PayoutPage, WhichBatch};
use crate::rewards::payout::{BeginBatch, CloseBatch, FillBatch, FindBatch, FindGeneration, FindPayouts, NoteWritten};
use crate::rewards::report::AddUpCampaign;
use crate::rewards::settle::SettlePayouts;
pub use crate::rewards::settle::SettledPayouts;
use crate::store::sql::Unit;
use crate::store::{Store, StoreError, StoreReply};
use crate::supervise::pause_after_step;

/// Rows of a list read at once.
pub const PAGE: u32 = 500;

/// The most unsettled batches shown to the operator.
const MOST_OPEN_BATCHES: usize = 20;

/// How often a batch is looked at for people who no longer count, before its file is written.
const MOST_LOOKS: usize = 50;

/// Payouts settled at once.
const SETTLED_AT_ONCE: usize = 100;

/// What the operator does with rewards.
pub struct RewardAdmin {
    /// If it is audited, the steps that follow from an act still run unaudited.
    store: Store,
}

impl RewardAdmin {
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    /// Runs a query that changes nothing.
    pub fn ask<Q: Unit>(&self, query: Q) -> StoreReply<'_, Q::Done> {
        self.store.ask(query)
    }

    /// Does what the service does every half minute: a command may run before the service does, or without it.
    pub async fn catch_up(&self, now: Timestamp) -> Result<(), StoreError> {
        worker::work(&self.store.unaudited(), || now).await
    }

    /// Removes a person from what their referrer earns in a campaign. An erased person is found by their mark.
    pub async fn void(
        &self,
        email: &EmailAddress,
        marker: &AddressMarker,
        campaign: &CampaignSlug,
        (reason, who): (&str, &str),
        now: Timestamp,
    ) -> Result<Voided, StoreError> {
        let void = |email_normalized| {
            let (campaign, reason, who) = (campaign.clone(), reason.to_owned(), who.to_owned());
            self.store.run(VoidPerson { email_normalized, campaign, reason, who, now })
        };
        match void(email.normalized()).await? {
            Voided::UnknownPerson => {
                tombstones::remark(&self.store, marker, email).await?;
                void(marker.tombstone(email)).await
            }
            voided => Ok(voided),
        }
    }

    /// Groups and money of a campaign.
    pub async fn campaign(&self, slug: &CampaignSlug) -> Result<CampaignRewards, StoreError> {
        let mut all = CampaignRewards::default();
        while !all.is_whole {
            all = self.ask(AddUpCampaign(slug.clone(), all)).await?;
        }
        Ok(all)
    }

    /// The oldest batches with unsettled payouts, and whether there are more.
    pub async fn open_batches(&self) -> Result<(Vec<BatchRecord>, bool), StoreError> {
        let (mut found, mut after) = (Vec::new(), 0);
        while let Some(batch) = self.ask(FindBatch(WhichBatch::OutAfter(after))).await? {
            if found.len() == MOST_OPEN_BATCHES {
                return Ok((found, true));
            }
            after = batch.id;
            found.push(batch);
        }
        Ok((found, false))
    }

    /// The batch that contains a payout; none if there is no such payout.
    pub async fn batch_of(&self, external_id: &str) -> Result<Option<i64>, StoreError> {
        let found = self.ask(FindPayouts(vec![external_id.to_owned()])).await?;
        Ok(found.first().map(|payout| payout.batch))
    }

    /// Makes a batch of everything due, or continues the one whose file was never written; none if nothing is due. If killed between steps,
    /// the next request continues. The audit log records the start, so that every batch has a row there.
    pub async fn make_batch(&self, who: &str, now: Timestamp) -> Result<Option<i64>, StoreError> {
        self.end_noted(now).await?;
        let Some(batch) = self.store.run(BeginBatch { who: who.to_owned(), now }).await? else { return Ok(None) };
        let mut begun = Instant::now();
        while !self.store.unaudited().run(FillBatch { batch, who: who.to_owned(), now }).await? {
            pause_after_step(begun).await;
            begun = Instant::now();
        }
        Ok(Some(batch))
    }

    /// Writing the batch's file begins, once whoever ceased to count was taken out of it. False where one person makes a batch and another
    /// has to release it.
    pub async fn close_batch(&self, batch: i64, who: &str, now: Timestamp) -> Result<bool, StoreError> {
        let maker = "SELECT who FROM payout_batches WHERE id = $1 AND closed_at IS NULL AND written_at IS NULL";
        if self.ask(NeedsAnother { maker, batch, who: who.to_owned() }).await? {
            return Ok(false);
        }
        for _ in 0..MOST_LOOKS {
            if self.store.unaudited().run(CloseBatch(batch, now)).await? {
                return Ok(true);
            }
            self.end_noted(now).await?;
        }
        Err(StoreError::Unavailable(format!(
            "members of groups in batch {batch} went on passing or leaving while it was looked at; nothing was written, try again"
        )))
    }

    /// Takes whoever no longer counts out of the groups, in steps.
    async fn end_noted(&self, now: Timestamp) -> Result<(), StoreError> {
        let mut begun = Instant::now();
        while self.store.unaudited().run(EndNoted(now)).await? {
            pause_after_step(begun).await;
            begun = Instant::now();
        }
        Ok(())
    }

    /// The batch's file is written.
    pub fn note_written(&self, batch: i64, now: Timestamp) -> StoreReply<'_, ()> {
        self.store.run(NoteWritten(batch, now))
    }

    /// Checks a provider's answer against its payouts; books nothing.
    pub async fn check_answer(&self, answer: ProviderAnswer, within: PaidWithin) -> Result<CheckedAnswer, StoreError> {
        let mut checked = CheckedAnswer { mistakes: answer.mistakes, ..CheckedAnswer::default() };
        let generation = self.ask(FindGeneration).await?;
        let mut lines = answer.lines.into_iter();
        loop {
            let some: Vec<_> = lines.by_ref().take(SETTLED_AT_ONCE).collect();
            if some.is_empty() {
                break;
            }
            let ids = some.iter().map(|line| line.external_id.clone()).collect();
            let found = self.ask(FindPayouts(ids)).await?;
            for line in some {
                let payout = found.iter().find(|payout| payout.external_id == line.external_id);
                checked.add(line, payout, generation.as_ref(), within);
            }
        }
        checked.mistakes.sort_by_key(|(line, _)| *line);
        Ok(checked)
    }

    /// Books the outcome of payouts. If killed midway, run it again with the same input to continue.
    pub async fn settle(
        &self,
        settlements: &[Settlement],
        who: &str,
        now: Timestamp,
    ) -> Result<SettledPayouts, StoreError> {
        let mut settled = SettledPayouts::default();
        for some in settlements.chunks(SETTLED_AT_ONCE) {
            let begun = Instant::now();
            let store = if settled.booked == 0 { &self.store } else { &self.store.unaudited() };
            settled += store.run(SettlePayouts { settlements: some.to_vec(), who: who.to_owned(), now }).await?;
            pause_after_step(begun).await;
        }
        Ok(settled)
    }
}

/// A new account: the name the audit log and the ledger use for a person who has none there yet.
pub fn new_account() -> Result<AccountId, StoreError> {
    Ok(AccountId::from_random(&random::bytes()?))
}

/// Forms the groups of one referrer that are full by now: the worker may be behind, and the amount due has to be known. Works in steps,
/// with pauses so that other writers get a turn.
pub async fn form_groups(store: &Store, person: i64, now: Timestamp) -> Result<(), StoreError> {
    let mut begun = Instant::now();
    let mut after = 0;
    while let Some(next) = store.run(StepReferrer { person, after, account: new_account()?, now }).await? {
        after = next;
        tokio::time::sleep(begun.elapsed()).await;
        begun = Instant::now();
    }
    Ok(())
}
