//! What the operator and the negotiator do with campaigns.

use std::sync::Arc;
use std::time::Duration;

use super::worker::take_due_sheets;
use super::{Edited, Made, Noted, Stepped, TakenStep};
use crate::clock::Clock;
use crate::domain::campaign::draft::CampaignDraft;
use crate::domain::campaign::offer::Offer;
use crate::domain::campaign::record::{CampaignFile, CampaignRecord, NegotiationRound, OfferDraft};
use crate::domain::campaign::{BadFile, CampaignSlug};
use crate::domain::time::Timestamp;
use crate::store::{CampaignStore, StoreError, StoreReply};

#[derive(Debug)]
pub struct CampaignAdmin {
    store: Arc<dyn CampaignStore>,
    /// The same store, where changes are written to the audit log.
    audited: Arc<dyn CampaignStore>,
}

impl CampaignAdmin {
    pub fn new(store: Arc<dyn CampaignStore>) -> Self {
        Self { audited: Arc::clone(&store), store }
    }

    /// The same; the log has what the operator does, and not what a date does meanwhile.
    pub fn audited(store: Arc<dyn CampaignStore>, audited: Arc<dyn CampaignStore>) -> Self {
        Self { store, audited }
    }

    /// All of them, in the order in which they were made; days that are over have acted before.
    pub async fn list(&self, now: Timestamp) -> Result<Vec<CampaignRecord>, StoreError> {
        self.act_by_date(now).await?;
        self.store.list_campaigns().await
    }

    pub async fn find(&self, slug: &CampaignSlug, now: Timestamp) -> Result<Option<CampaignFile>, StoreError> {
        self.act_by_date(now).await?;
        self.store.find_campaign(slug.clone()).await
    }

    /// The same without acting, for a page: the service acts every minute.
    pub fn look(&self, slug: &CampaignSlug) -> StoreReply<'_, Option<CampaignFile>> {
        self.store.find_campaign(slug.clone())
    }

    /// All of them, likewise.
    pub fn look_at_all(&self) -> StoreReply<'_, Vec<CampaignRecord>> {
        self.store.list_campaigns()
    }

    /// The service does so every minute; a command may come before it, or without it.
    pub async fn act_by_date(&self, now: Timestamp) -> Result<u64, StoreError> {
        let mut steps = 0;
        while self.store.step_by_date(now).await? > 0 {
            steps += 1;
        }
        Ok(steps)
    }

    /// Whether a mailing is not finished.
    pub fn are_mailings_open(&self) -> StoreReply<'_, bool> {
        self.store.are_mailings_open()
    }

    /// Makes a draft of the operator's file, which was read before.
    pub fn make(&self, draft: CampaignDraft, file: String, who: &str, now: Timestamp) -> StoreReply<'_, Made> {
        self.audited.make_campaign(draft, file, who.to_owned(), now)
    }

    /// Replaces what the operator wrote about the campaign of the file's slug.
    pub fn edit(&self, draft: CampaignDraft, file: String, who: &str, now: Timestamp) -> StoreReply<'_, Edited> {
        self.audited.edit_campaign(draft, file, who.to_owned(), now)
    }

    /// A step, with a note, and whether those whom it concerns are mailed.
    pub fn step(
        &self,
        slug: &CampaignSlug,
        step: TakenStep,
        who: &str,
        (note, mails): (&str, bool),
        now: Timestamp,
    ) -> StoreReply<'_, Stepped> {
        self.audited.step_campaign(slug.clone(), step, who.to_owned(), (note.to_owned(), mails), now)
    }

    /// The campaign with its last sheet. One that is due is taken first: the service may be down, or a moment from doing so.
    pub async fn demand(&self, slug: &CampaignSlug, now: Timestamp) -> Result<Option<CampaignRecord>, StoreError> {
        let clock = Clock::start();
        let time = || now.plus(Duration::from_micros(clock.tick().as_micros()));
        take_due_sheets(&*self.store, Some(slug), time).await?;
        Ok(self.find(slug, now).await?.map(|file| file.campaign))
    }

    pub fn rounds(&self, slug: &CampaignSlug) -> StoreReply<'_, Vec<NegotiationRound>> {
        self.store.rounds_of(slug.clone())
    }

    pub fn offer_drafts(&self, slug: &CampaignSlug) -> StoreReply<'_, Vec<OfferDraft>> {
        self.store.offer_drafts_of(slug.clone())
    }

    pub fn record_round(&self, slug: &CampaignSlug, round: NegotiationRound) -> StoreReply<'_, Noted> {
        self.store.record_round(slug.clone(), round)
    }

    /// Keeps an offer that a negotiator proposes, as a file that `campaigns offer` takes.
    pub async fn propose(
        &self,
        slug: &CampaignSlug,
        client: &str,
        file: &str,
        now: Timestamp,
    ) -> Result<Result<Noted, BadFile>, StoreError> {
        if let Err(refused) = Offer::parse(file) {
            return Ok(Err(refused));
        }
        self.store.propose_offer(slug.clone(), client.to_owned(), file.to_owned(), now).await.map(Ok)
    }
}
