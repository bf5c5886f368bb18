//! Rounds with suppliers: recorded, blanked where a text should not have been recorded, and pruned.

use crate::campaigns::negotiation::{Noted, open, wait};
use crate::campaigns::records::find;
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::record::{NegotiationRound, Redaction};
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Records a round.
pub struct AddRound {
    pub slug: CampaignSlug,
    /// What the negotiator calls itself; none: an operator records it.
    pub client: Option<String>,
    /// The name of the seat, or the operator.
    pub who: String,
    pub supplier: String,
    pub asked: String,
    pub answered: String,
    pub now: Timestamp,
}

impl Unit for AddRound {
    type Done = Noted;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Noted, Failure> {
        let campaign = match open(sql, &self.slug).await? {
            Ok(campaign) => campaign,
            Err(refused) => return Ok(refused),
        };
        let count = "SELECT count(*) FROM campaign_rounds WHERE campaign_id = $1";
        if sql.value::<u32>(count, values![campaign]).await?.unwrap_or(0) >= NegotiationRound::MOST {
            return Ok(Noted::Full);
        }
        if self.client.is_some() {
            let nth = "SELECT at FROM campaign_rounds WHERE campaign_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2";
            if let Some(wait) = wait(sql, nth, values![campaign, NegotiationRound::AN_HOUR - 1], self.now).await? {
                return Ok(Noted::Later(wait));
            }
        }
        let last = "SELECT coalesce(max(number), 0) FROM campaign_rounds WHERE campaign_id = $1";
        let number = sql.value::<u32>(last, values![campaign]).await?.unwrap_or(0) + 1;
        let Self { client, who, supplier, asked, answered, now, .. } = self;
        let add = "INSERT INTO campaign_rounds (campaign_id, number, at, client, seat, supplier, asked, answered)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let client = client.as_deref().unwrap_or_default();
        sql.execute(add, values![campaign, number, *now, client, who, supplier, asked, answered]).await?;
        Ok(Noted::Done(number))
    }
}

/// The rounds of a campaign, oldest first.
pub struct ListRounds(pub CampaignSlug);

impl Unit for ListRounds {
    type Done = Vec<NegotiationRound>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let rounds = "SELECT r.number, r.at, r.client, r.seat, r.supplier, r.asked, r.answered, r.redacted_at, r.redacted_by, r.redacted_why
                      FROM campaign_rounds r JOIN campaigns c ON c.id = r.campaign_id WHERE c.slug = $1 ORDER BY r.id";
        let read = |row: &Row<'_>| {
            let redacted = match row.get("redacted_at")? {
                Some(at) => Some(Redaction { at, who: row.get("redacted_by")?, why: row.get("redacted_why")? }),
                None => None,
            };
            Ok(NegotiationRound {
                number: row.get("number")?,
                at: row.get("at")?,
                client: row.get::<Option<String>>("client")?.filter(|client| !client.is_empty()),
                who: row.get("seat")?,
                supplier: row.get("supplier")?,
                asked: row.get("asked")?,
                answered: row.get("answered")?,
                redacted,
            })
        };
        sql.rows(rounds, values![self.0.as_str()], read).await
    }
}

/// Blanks the texts of a round. When, by whom and why stays.
pub struct RedactRound {
    pub slug: CampaignSlug,
    pub number: u32,
    pub reason: String,
    pub who: String,
    pub now: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redacted {
    Done,
    /// Its texts were blanked before.
    Already(Timestamp),
    NoSuchRound,
    Unknown,
}

impl Unit for RedactRound {
    type Done = Redacted;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Redacted, Failure> {
        let Some(campaign) = find(sql, &self.slug).await? else { return Ok(Redacted::Unknown) };
        let round = "SELECT id, redacted_at FROM campaign_rounds WHERE campaign_id = $1 AND number = $2 FOR UPDATE";
        let read = |row: &Row<'_>| Ok((row.get::<i64>("id")?, row.get("redacted_at")?));
        let id = match sql.row(round, values![campaign.id.0, self.number], read).await? {
            None => return Ok(Redacted::NoSuchRound),
            Some((_, Some(at))) => return Ok(Redacted::Already(at)),
            Some((id, None)) => id,
        };
        let blank =
            "UPDATE campaign_rounds SET supplier = '', asked = '', answered = '', redacted_at = $2, redacted_by = $3,
                     redacted_why = $4 WHERE id = $1";
        sql.execute(blank, values![id, self.now, &self.who, &self.reason]).await?;
        Ok(Redacted::Done)
    }
}

/// Deletes all but the last rounds.
pub struct PruneRounds {
    pub slug: CampaignSlug,
    /// So many stay; at least one, which has the last number.
    pub keep: u32,
}

impl Unit for PruneRounds {
    /// How many were deleted; none: there is no such campaign.
    type Done = Option<u64>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Option<u64>, Failure> {
        sql.lock(&format!("negotiation of {}", self.slug)).await?;
        let Some(campaign) = find(sql, &self.slug).await? else { return Ok(None) };
        let prune = "DELETE FROM campaign_rounds WHERE campaign_id = $1 AND id <=
                     (SELECT id FROM campaign_rounds WHERE campaign_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)";
        sql.execute(prune, values![campaign.id.0, self.keep.max(1)]).await.map(Some)
    }
}
