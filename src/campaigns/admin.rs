//! What the operator and the negotiator do with campaigns.

use std::time::Duration;

use tokio::time::Instant;

use super::worker::{count_after_step, end_acceptances};
use super::{Edited, Made, Stepped, TakenStep};
use crate::campaigns::operator_step::{DoneStep, RefusedStep, StepNote};
use crate::campaigns::records::{FindCampaign, ListCampaigns};
use crate::campaigns::states::{EditCampaign, MakeCampaign, StepByDate, StepCampaign};
use crate::clock::Clock;
use crate::domain::campaign::draft::CampaignDraft;
use crate::domain::campaign::record::{CampaignDetails, CampaignRecord};
use crate::domain::campaign::{CampaignSlug, CampaignStep};
use crate::domain::time::Timestamp;
use crate::store::{Store, StoreError, StoreReply};

/// How long a step waits for the count of members that it asks for. What takes longer the worker finishes.
const COUNT_WAIT: Duration = Duration::from_secs(10);

pub struct CampaignAdmin {
    /// If it is audited, the steps that follow from an act still run unaudited.
    pub(super) store: Store,
    count_wait: Duration,
}

impl CampaignAdmin {
    pub fn new(store: Store) -> Self {
        Self { store, count_wait: COUNT_WAIT }
    }

    /// The same, with a step that waits so long for its count.
    #[must_use]
    pub fn counting_for(self, count_wait: Duration) -> Self {
        Self { count_wait, ..self }
    }

    /// All campaigns as they are now, in the order they were made.
    pub async fn list(&self, now: Timestamp) -> Result<Vec<CampaignRecord>, StoreError> {
        let campaigns = self.store.ask(ListCampaigns).await?;
        Ok(campaigns.into_iter().map(|campaign| campaign.as_of(now)).collect())
    }

    /// One campaign, after the steps by date: a command may run before the service has taken them, or without it.
    pub async fn find(&self, slug: &CampaignSlug, now: Timestamp) -> Result<Option<CampaignDetails>, StoreError> {
        while self.store.unaudited().run(StepByDate(now)).await? > 0 {}
        self.store.ask(FindCampaign(slug.clone())).await
    }

    /// Makes a draft from the operator's file, which was parsed before.
    pub fn make(&self, draft: CampaignDraft, file: String, who: &str, now: Timestamp) -> StoreReply<'_, Made> {
        self.store.run(MakeCampaign { draft, definition: file, who: who.to_owned(), now })
    }

    /// Replaces what the operator wrote about the campaign with the slug in the file.
    pub fn edit(&self, draft: CampaignDraft, file: String, who: &str, now: Timestamp) -> StoreReply<'_, Edited> {
        self.store.run(EditCampaign { draft, definition: file, who: who.to_owned(), now })
    }

    /// Takes a step, if the campaign's state allows it now, and counts its members, if that is soon done.
    pub async fn take_step(
        &self,
        slug: &CampaignSlug,
        taken: TakenStep,
        note: StepNote<'_>,
        now: Timestamp,
    ) -> Result<Result<DoneStep, RefusedStep>, StoreError> {
        let unknown = || Ok(Err(RefusedStep::Unknown(slug.clone())));
        let Some(before) = self.find(slug, now).await? else { return unknown() };
        let (before, step) = (before.campaign, taken.step());
        if let Err(bad) = before.state.after(step) {
            return Ok(Err(RefusedStep::Bad(slug.clone(), bad)));
        }
        let until = before.draft.gather_until;
        if step == CampaignStep::Open && until.is_over(now) {
            return Ok(Err(RefusedStep::GatheringOver(slug.clone(), until)));
        }
        if step == CampaignStep::Open
            && let Some(missing) = before.draft.missing_review()
        {
            return Ok(Err(RefusedStep::NotReviewed(slug.clone(), missing)));
        }
        let (who, note) = (note.who.to_owned(), (note.note.to_owned(), note.mails));
        match self.store.run(StepCampaign { slug: slug.clone(), step: taken, who, note, now }).await? {
            Stepped::Done(_) => {}
            Stepped::Refused(bad) => return Ok(Err(RefusedStep::Bad(slug.clone(), bad))),
            Stepped::NotPublished(why) => return Ok(Err(RefusedStep::NotPublished(slug.clone(), why))),
            Stepped::OfferAsText => return Ok(Err(RefusedStep::OfferAsText(slug.clone()))),
            Stepped::TooFewAccepted { needs, accepted } => {
                return Ok(Err(RefusedStep::TooFewAccepted { slug: slug.clone(), needs, accepted }));
            }
            Stepped::Drafted(draft) => {
                return Ok(Ok(DoneStep { after: before.clone(), before, draft: Some(draft) }));
            }
            Stepped::OwnDraft(draft) => return Ok(Err(RefusedStep::OwnDraft(slug.clone(), draft))),
            Stepped::DraftsFull => return Ok(Err(RefusedStep::DraftsFull(slug.clone()))),
            Stepped::Unknown => return unknown(),
        }
        let clock = Clock::start();
        let time = || now.plus(Duration::from_micros(clock.tick().as_micros()));
        let until = Instant::now() + self.count_wait;
        // What is not done by then the worker does.
        let _ended_or_not =
            tokio::time::timeout(self.count_wait, end_acceptances(&self.store.unaudited(), &time)).await;
        // The step was taken. Where its count fails, what follows says that the worker counts.
        let _counted_or_not = count_after_step(&self.store.unaudited(), &before, until, time).await;
        match self.find(slug, now).await? {
            Some(after) => Ok(Ok(DoneStep { before, after: after.campaign, draft: None })),
            None => unknown(),
        }
    }

    /// The campaign with its last sheet. Counts nothing.
    pub async fn demand(&self, slug: &CampaignSlug, now: Timestamp) -> Result<Option<CampaignRecord>, StoreError> {
        let found = self.store.ask(FindCampaign(slug.clone())).await?;
        Ok(found.map(|details| details.campaign.as_of(now)))
    }
}
