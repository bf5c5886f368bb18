//! What a negotiator can do with campaigns: read them and their counts, and note rounds and proposals.
//!
//! Nothing here reads a person or publishes anything. The audit log records each note under the name of the seat.

use super::Noted;
use super::admin::CampaignAdmin;
use crate::campaigns::drafts::{AddOfferDraft, ListOfferDrafts};
use crate::campaigns::rounds::{AddRound, ListRounds};
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::record::{CampaignRecord, NegotiationRound, OfferDraft};
use crate::domain::time::Timestamp;
use crate::store::audit::Act;
use crate::store::{Store, StoreError};

/// The name of a seat that was given none.
pub const SEAT: &str = "the negotiator";

pub struct Negotiator {
    store: Store,
}

impl Negotiator {
    pub fn new(store: Store) -> Self {
        Self { store }
    }

    pub async fn list(&self, now: Timestamp) -> Result<Vec<CampaignRecord>, StoreError> {
        CampaignAdmin::new(self.store.clone()).list(now).await
    }

    /// The notes so far, oldest first.
    pub async fn notes(&self, slug: &CampaignSlug) -> Result<(Vec<NegotiationRound>, Vec<OfferDraft>), StoreError> {
        Ok((self.store.ask(ListRounds(slug.clone())).await?, self.store.ask(ListOfferDrafts(slug.clone())).await?))
    }

    /// A campaign with its last count.
    pub async fn demand(&self, slug: &CampaignSlug, now: Timestamp) -> Result<Option<CampaignRecord>, StoreError> {
        CampaignAdmin::new(self.store.clone()).demand(slug, now).await
    }

    pub async fn record_round(&self, round: AddRound) -> Result<Noted, StoreError> {
        let client = round.client.as_deref().unwrap_or_default();
        self.noting("negotiator round", &round.slug, client, round.now).run(round).await
    }

    pub async fn propose(&self, draft: AddOfferDraft) -> Result<Noted, StoreError> {
        self.noting("negotiator draft", &draft.slug, &draft.client, draft.now).run(draft).await
    }

    fn noting(&self, command: &'static str, slug: &CampaignSlug, client: &str, at: Timestamp) -> Store {
        let about = format!("{slug}, client \"{client}\" (self-asserted)");
        let act = Act { who: SEAT.to_owned(), command, about, at, change: None };
        self.store.audited(act)
    }
}
