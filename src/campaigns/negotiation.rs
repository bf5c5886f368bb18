//! The negotiator's notes: rounds with suppliers, and offers to publish.

use crate::campaigns::records::hold;
use crate::domain::campaign::record::{NegotiationRound, OfferDraft};
use crate::domain::campaign::{CampaignSlug, CampaignState};
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Sql, Unit, values};

/// The outcome of adding a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    /// How many notes there are now.
    Done(u64),
    Unknown,
    /// Nothing is negotiated in this state.
    NotNow(CampaignState),
    /// The maximum is reached.
    Full,
}

/// Adds a negotiation round, which is kept forever.
pub struct AddRound {
    pub slug: CampaignSlug,
    pub round: NegotiationRound,
}

impl Unit for AddRound {
    type Done = Noted;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Noted, Failure> {
        let count = "SELECT count(*) FROM campaign_rounds WHERE campaign_id = $1";
        let (campaign, noted) = match room(sql, &self.slug, count, NegotiationRound::MOST).await? {
            Ok(room) => room,
            Err(refused) => return Ok(refused),
        };
        let add = "INSERT INTO campaign_rounds (campaign_id, at, client, supplier, asked, answered) VALUES ($1, $2, $3, $4, $5, $6)";
        let NegotiationRound { at, client, supplier, asked, answered } = &self.round;
        sql.execute(add, values![campaign, *at, client, supplier, asked, answered]).await?;
        Ok(Noted::Done(noted + 1))
    }
}

/// Adds an offer that a negotiator proposes.
pub struct AddOfferDraft {
    pub slug: CampaignSlug,
    pub client: String,
    pub file: String,
    pub now: Timestamp,
}

impl Unit for AddOfferDraft {
    type Done = Noted;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Noted, Failure> {
        let count = "SELECT count(*) FROM campaign_offer_drafts WHERE campaign_id = $1";
        let (campaign, noted) = match room(sql, &self.slug, count, OfferDraft::MOST).await? {
            Ok(room) => room,
            Err(refused) => return Ok(refused),
        };
        let add = "INSERT INTO campaign_offer_drafts (campaign_id, at, client, offer) VALUES ($1, $2, $3, $4)";
        sql.execute(add, values![campaign, self.now, &self.client, &self.file]).await?;
        Ok(Noted::Done(noted + 1))
    }
}

/// The campaign's id and how many notes it has, or why it accepts no more.
async fn room(
    sql: &mut dyn Sql,
    slug: &CampaignSlug,
    count: &'static str,
    most: u32,
) -> Result<Result<(i64, u64), Noted>, Failure> {
    // One at a time, so that the count is right.
    sql.lock(&format!("negotiation of {slug}")).await?;
    let Some(campaign) = hold(sql, slug).await? else { return Ok(Err(Noted::Unknown)) };
    // Negotiations run while members are being asked, and again if an offer has to be remade.
    if !campaign.state.gathers() {
        return Ok(Err(Noted::NotNow(campaign.state)));
    }
    let noted: u64 = sql.value(count, values![campaign.id.0]).await?.unwrap_or(0);
    Ok(if noted >= u64::from(most) { Err(Noted::Full) } else { Ok((campaign.id.0, noted)) })
}
