//! What a negotiator can do with campaigns: read them and their counts, and note rounds and proposals.
//!
//! Nothing here reads a person or publishes anything. The audit log records each note under the name the client gives itself.

use super::Noted;
use super::admin::CampaignAdmin;
use crate::campaigns::negotiation::{AddOfferDraft, AddRound};
use crate::campaigns::records::{ListOfferDrafts, ListRounds};
use crate::domain::campaign::offer::Proposal;
use crate::domain::campaign::record::{CampaignRecord, NegotiationRound, OfferDraft};
use crate::domain::campaign::{BadFile, CampaignSlug};
use crate::domain::time::Timestamp;
use crate::store::audit::Act;
use crate::store::{Store, StoreError};

/// The author of notes in the audit log. The program's own name is only its claim.
const WHO: &str = "the negotiator";

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

    pub async fn record_round(&self, slug: &CampaignSlug, round: NegotiationRound) -> Result<Noted, StoreError> {
        let store = self.noting("negotiator round", slug, &round.client, round.at);
        store.run(AddRound { slug: slug.clone(), round }).await
    }

    /// Keeps a proposal, as a file that `campaigns offer` accepts.
    pub async fn propose(
        &self,
        slug: &CampaignSlug,
        client: &str,
        file: &str,
        now: Timestamp,
    ) -> Result<Result<Noted, BadFile>, StoreError> {
        if let Err(refused) = Proposal::parse(file) {
            return Ok(Err(refused));
        }
        let draft = AddOfferDraft { slug: slug.clone(), client: client.to_owned(), file: file.to_owned(), now };
        self.noting("negotiator draft", slug, client, now).run(draft).await.map(Ok)
    }

    fn noting(&self, command: &'static str, slug: &CampaignSlug, client: &str, at: Timestamp) -> Store {
        let about = format!("{slug}, client \"{client}\" (self-asserted)");
        let act = Act { who: WHO.to_owned(), command, about, at, change: None };
        self.store.audited(act)
    }
}
