//! Pauses: what the negotiator must leave alone until a person resumes it.

use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::record::Pause;
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Pauses the negotiation of one campaign, or of all of them.
pub struct PauseNegotiation {
    pub slug: Option<CampaignSlug>,
    pub reason: String,
    pub who: String,
    pub now: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Paused {
    Done,
    Already(Pause),
    Unknown,
}

impl Unit for PauseNegotiation {
    type Done = Paused;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Paused, Failure> {
        sql.lock(PAUSES).await?;
        let campaign = match campaign_of(sql, self.slug.as_ref()).await? {
            Some(campaign) => campaign,
            None => return Ok(Paused::Unknown),
        };
        let paused = pauses(sql).await?.into_iter().find(|pause| pause.slug == self.slug);
        if let Some(pause) = paused {
            return Ok(Paused::Already(pause));
        }
        let add = "INSERT INTO negotiation_pauses (campaign_id, at, who, reason) VALUES ($1, $2, $3, $4)";
        sql.execute(add, values![campaign, self.now, &self.who, &self.reason]).await?;
        Ok(Paused::Done)
    }
}

/// Ends the pause of one campaign, or the one of all of them. Each stands for itself.
pub struct ResumeNegotiation(pub Option<CampaignSlug>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resumed {
    Done,
    NotPaused,
    Unknown,
}

impl Unit for ResumeNegotiation {
    type Done = Resumed;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Resumed, Failure> {
        sql.lock(PAUSES).await?;
        let campaign = match campaign_of(sql, self.0.as_ref()).await? {
            Some(campaign) => campaign,
            None => return Ok(Resumed::Unknown),
        };
        let end = "DELETE FROM negotiation_pauses WHERE coalesce(campaign_id, 0) = coalesce(CAST($1 AS BIGINT), 0)";
        let ended = sql.execute(end, values![campaign]).await?;
        Ok(if ended > 0 { Resumed::Done } else { Resumed::NotPaused })
    }
}

/// All pauses, oldest first.
pub struct ListPauses;

impl Unit for ListPauses {
    type Done = Vec<Pause>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<Pause>, Failure> {
        pauses(sql).await
    }
}

const PAUSES: &str = "pauses of the negotiator";

async fn pauses(sql: &mut dyn Sql) -> Result<Vec<Pause>, Failure> {
    let list = "SELECT c.slug, p.at, p.who, p.reason
                FROM negotiation_pauses p LEFT JOIN campaigns c ON c.id = p.campaign_id ORDER BY p.id";
    let read = |row: &Row<'_>| {
        let slug = match row.get::<Option<&str>>("slug")? {
            Some(_) => Some(row.parsed("slug", |slug| slug.parse().ok())?),
            None => None,
        };
        Ok(Pause { slug, at: row.get("at")?, who: row.get("who")?, reason: row.get("reason")? })
    };
    sql.rows(list, values![], read).await
}

/// The id of the campaign, `Some(None)` for all of them. None: there is no such campaign.
async fn campaign_of(sql: &mut dyn Sql, slug: Option<&CampaignSlug>) -> Result<Option<Option<i64>>, Failure> {
    match slug {
        None => Ok(Some(None)),
        Some(slug) => {
            let id = sql.value::<i64>("SELECT id FROM campaigns WHERE slug = $1", values![slug.as_str()]).await?;
            Ok(id.map(Some))
        }
    }
}
