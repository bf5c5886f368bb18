//! What a negotiator can do with campaigns: read them and their counts, and note rounds, bids and proposals.
//!
//! Nothing here reads a person or publishes anything. The audit log records each note, and what was read, under the name of the seat.

use std::time::Duration;

use super::Noted;
use super::admin::CampaignAdmin;
use crate::campaigns::bids::{AddBid, AddBidFromSeat, BidAdded, ListBids};
use crate::campaigns::drafts::{AddOfferDraft, ListOfferDrafts};
use crate::campaigns::negotiation::{ListMessages, NextHour};
use crate::campaigns::pause::ListPauses;
use crate::campaigns::rounds::{AddRound, ListRounds};
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::bid::RecordedBid;
use crate::domain::campaign::record::{CampaignRecord, NegotiationRound, OfferDraft, OperatorMessage, Pause};
use crate::domain::text::quote;
use crate::domain::time::Timestamp;
use crate::store::audit::{Act, append};
use crate::store::sql::{Failure, How, Sql, Unit, values};
use crate::store::{Store, StoreError};

/// The name of a seat that was given none.
pub const SEAT: &str = "the negotiator";

pub struct Negotiator {
    store: Store,
    /// Under which everything is noted.
    pub seat: String,
}

/// Everything about a negotiation, oldest first.
pub struct NegotiationNotes {
    pub bids: Vec<RecordedBid>,
    pub rounds: Vec<NegotiationRound>,
    pub drafts: Vec<OfferDraft>,
    pub messages: Vec<OperatorMessage>,
}

impl Negotiator {
    pub fn new(store: Store, seat: String) -> Self {
        Self { store, seat }
    }

    /// All pauses there are now.
    pub async fn pauses(&self) -> Result<Vec<Pause>, StoreError> {
        self.store.ask(ListPauses).await
    }

    /// Notes in the audit log that campaigns were listed, or one was read.
    pub async fn note_read(&self, slug: Option<&CampaignSlug>, client: &str, now: Timestamp) -> Result<(), StoreError> {
        let command = if slug.is_some() { "negotiator read" } else { "negotiator list" };
        self.store.run(NoteRead(self.act(command, slug, client, now))).await
    }

    pub async fn list(&self, now: Timestamp) -> Result<Vec<CampaignRecord>, StoreError> {
        CampaignAdmin::new(self.store.clone()).list(now).await
    }

    /// A campaign with its last count.
    pub async fn campaign(&self, slug: &CampaignSlug, now: Timestamp) -> Result<Option<CampaignRecord>, StoreError> {
        CampaignAdmin::new(self.store.clone()).demand(slug, now).await
    }

    pub async fn bids(&self, slug: &CampaignSlug) -> Result<Vec<RecordedBid>, StoreError> {
        self.store.ask(ListBids(slug.clone())).await
    }

    pub async fn notes(&self, slug: &CampaignSlug) -> Result<NegotiationNotes, StoreError> {
        Ok(NegotiationNotes {
            bids: self.bids(slug).await?,
            rounds: self.store.ask(ListRounds(slug.clone())).await?,
            drafts: self.store.ask(ListOfferDrafts(slug.clone())).await?,
            messages: self.store.ask(ListMessages(slug.clone())).await?,
        })
    }

    pub async fn record_round(&self, round: AddRound) -> Result<Noted, StoreError> {
        let client = round.client.as_deref().unwrap_or_default();
        let act = self.act("negotiator round", Some(&round.slug), client, round.now);
        self.store.audited(act).run(round).await
    }

    pub async fn record_bid(&self, bid: AddBid, client: &str) -> Result<Result<BidAdded, NextHour>, StoreError> {
        let act = self.act("negotiator bid", Some(&bid.slug), client, bid.now);
        self.store.audited(act).run(AddBidFromSeat(bid)).await
    }

    pub async fn propose(&self, draft: AddOfferDraft) -> Result<Noted, StoreError> {
        let act = self.act("negotiator draft", Some(&draft.slug), &draft.client, draft.now);
        self.store.audited(act).run(draft).await
    }

    fn act(&self, command: &'static str, slug: Option<&CampaignSlug>, client: &str, at: Timestamp) -> Act {
        let client = format!("client {} (self-asserted)", quote(client));
        let about = slug.map_or_else(|| client.clone(), |slug| format!("{slug}, {client}"));
        Act { who: self.seat.clone(), command, about, at, change: None }
    }
}

/// What was read again within this time is not noted again: the log only grows.
const READ_AGAIN: Duration = Duration::from_secs(60);

struct NoteRead(Act);

impl Unit for NoteRead {
    type Done = ();
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let Act { who, command, about, at, .. } = &self.0;
        let last = "SELECT 1 FROM audit WHERE about = $1 AND at > $2 AND command = $3 AND who = $4 LIMIT 1";
        if sql.exists(last, values![about, at.minus(READ_AGAIN), *command, who]).await? {
            return Ok(());
        }
        append(sql, &self.0, about).await
    }
}
