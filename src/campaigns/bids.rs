//! What suppliers said: bids of a campaign, kept for good.

use crate::campaigns::negotiation::{NextHour, wait};
use crate::campaigns::records::hold;
use crate::domain::campaign::bid::{Bid, RecordedBid, mark_superseded};
use crate::domain::campaign::{BadFile, CampaignSlug, CampaignState};
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Sql, Unit, values};

/// The outcome of recording a bid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BidAdded {
    /// Its number.
    Done(u32),
    Unknown,
    /// Nothing is negotiated in this state.
    NotNow(CampaignState),
    /// The maximum is reached.
    Full,
    /// It is no answer to what the campaign asks for.
    Refused(BadFile),
}

/// Records a bid, of an operator or of a negotiator.
pub struct AddBid {
    pub slug: CampaignSlug,
    pub bid: Bid,
    pub who: String,
    pub now: Timestamp,
}

impl Unit for AddBid {
    type Done = BidAdded;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<BidAdded, Failure> {
        // One at a time, so that each gets a number of its own.
        sql.lock(&format!("negotiation of {}", self.slug)).await?;
        let Some(campaign) = hold(sql, &self.slug).await? else { return Ok(BidAdded::Unknown) };
        if !campaign.state.takes_bids() {
            return Ok(BidAdded::NotNow(campaign.state));
        }
        if let Err(refused) = self.bid.check(&campaign.draft, self.now) {
            return Ok(BidAdded::Refused(refused));
        }
        let last = "SELECT coalesce(max(number), 0) FROM campaign_bids WHERE campaign_id = $1";
        let number = sql.value::<u32>(last, values![campaign.id.0]).await?.unwrap_or(0) + 1;
        if number > Bid::MOST {
            return Ok(BidAdded::Full);
        }
        let add = "INSERT INTO campaign_bids (campaign_id, number, at, who, bid) VALUES ($1, $2, $3, $4, $5)";
        sql.execute(add, values![campaign.id.0, number, self.now, &self.who, &self.bid.written()]).await?;
        Ok(BidAdded::Done(number))
    }
}

/// The same of a negotiator, who may record so many in an hour.
pub struct AddBidFromSeat(pub AddBid);

impl Unit for AddBidFromSeat {
    type Done = Result<BidAdded, NextHour>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let AddBid { slug, now, .. } = &self.0;
        sql.lock(&format!("negotiation of {slug}")).await?;
        let nth = "SELECT b.at FROM campaign_bids b JOIN campaigns c ON c.id = b.campaign_id
                   WHERE c.slug = $1 ORDER BY b.number DESC LIMIT 1 OFFSET $2";
        match wait(sql, nth, values![slug.as_str(), Bid::AN_HOUR - 1], *now).await? {
            Some(wait) => Ok(Err(wait)),
            None => self.0.apply(sql).await.map(Ok),
        }
    }
}

/// The bids of a campaign, in the order of their numbers.
pub struct ListBids(pub CampaignSlug);

impl Unit for ListBids {
    type Done = Vec<RecordedBid>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<RecordedBid>, Failure> {
        bids_of(sql, &self.0).await
    }
}

pub(crate) async fn bids_of(sql: &mut dyn Sql, slug: &CampaignSlug) -> Result<Vec<RecordedBid>, Failure> {
    let list = "SELECT b.number, b.at, b.who, b.bid
                FROM campaign_bids b JOIN campaigns c ON c.id = b.campaign_id WHERE c.slug = $1 ORDER BY b.number";
    let mut bids = sql
        .rows(list, values![slug.as_str()], |row| {
            Ok(RecordedBid {
                number: row.get("number")?,
                at: row.get("at")?,
                who: row.get("who")?,
                bid: row.parsed("bid", Bid::kept)?,
                is_superseded: false,
            })
        })
        .await?;
    mark_superseded(&mut bids);
    Ok(bids)
}
