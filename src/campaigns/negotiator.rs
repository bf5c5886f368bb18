//! What a negotiator may do with campaigns: read them and what was counted, and note rounds and proposals.
//!
//! Nothing here reads a person or publishes anything. Each note is in the audit log, under the name that the client gives itself.

use super::Noted;
use super::admin::CampaignAdmin;
use crate::campaigns::negotiation::AddRound;
use crate::campaigns::records::{ListOfferDrafts, ListRounds};
use crate::domain::campaign::record::{CampaignRecord, NegotiationRound, OfferDraft};
use crate::domain::campaign::{BadFile, CampaignSlug};
use crate::domain::time::Timestamp;
use crate::store::audit::Act;
use crate::store::{Store, StoreError};

/// Who the audit log says made a note: which program it was is its own claim.
const WHO: &str = "the negotiator";

#[derive(Debug)]
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

    /// What was noted so far, the oldest first.
    pub async fn notes(&self, slug: &CampaignSlug) -> Result<(Vec<NegotiationRound>, Vec<OfferDraft>), StoreError> {
        let admin = CampaignAdmin::new(self.store.clone());
        Ok((admin.ask(ListRounds(slug.clone())).await?, admin.ask(ListOfferDrafts(slug.clone())).await?))
    }

    /// A campaign with what was counted last.
    pub async fn demand(&self, slug: &CampaignSlug, now: Timestamp) -> Result<Option<CampaignRecord>, StoreError> {
        CampaignAdmin::new(self.store.clone()).demand(slug, now).await
    }

    pub async fn record_round(&self, slug: &CampaignSlug, round: NegotiationRound) -> Result<Noted, StoreError> {
        let store = self.noting("negotiator round", slug, &round.client, round.at);
        store.run(AddRound { slug: slug.clone(), round }).await
    }

    /// Keeps a proposal, as a file that `campaigns offer` takes.
    pub async fn propose(
        &self,
        slug: &CampaignSlug,
        client: &str,
        file: &str,
        now: Timestamp,
    ) -> Result<Result<Noted, BadFile>, StoreError> {
        CampaignAdmin::new(self.noting("negotiator draft", slug, client, now)).propose(slug, client, file, now).await
    }

    fn noting(&self, command: &'static str, slug: &CampaignSlug, client: &str, at: Timestamp) -> Store {
        let about = format!("{slug}, client \"{client}\" (self-asserted)");
        let act = Act { who: WHO.to_owned(), command, about, at, change: None };
        self.store.audited(act)
    }
}
