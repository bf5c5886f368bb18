//! Demand sheets: when one is due, whom it counts, in batches, and what is kept.

use crate::domain::campaign::demand::{COARSE, CountedMember, DemandSheet};
use crate::domain::campaign::participation::ParticipationState;
use crate::domain::campaign::record::CampaignId;
use crate::domain::catalog::category::CategorySet;
use crate::domain::mail::budget::day_of;
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;
use crate::membership::records::{answer_now, joined_by};
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Participants that one step counts.
const COUNT_BATCH: u32 = 500;

/// Some participants of a campaign.
#[derive(Default)]
pub struct CountedPart {
    pub members: Vec<CountedMember>,
    /// The last person looked at; none at the end.
    pub last: Option<i64>,
}

/// Participations `p` of a campaign that differ from what its last sheet counted: in, accepted, or neither. Out and in again is no
/// difference. An answer that changes is none either, so it makes no sheet by itself.
macro_rules! differing {
    ($campaign:literal) => {
        concat!(
            "participations p WHERE p.campaign_id = ",
            $campaign,
            " AND p.changed_at > coalesce((SELECT max(d.taken_at) FROM demand_sheets d WHERE d.campaign_id = ",
            $campaign,
            "), -1) AND p.counted IS DISTINCT FROM CASE WHEN p.state IN ('in', 'accepted') THEN p.state END"
        )
    };
}

/// The campaigns in which enough people's parts differ for another sheet, and that have no sheet yet today.
pub struct ListDueSheets(pub Timestamp);

impl Unit for ListDueSheets {
    type Done = Vec<CampaignId>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<CampaignId>, Failure> {
        let due = concat!(
            "SELECT c.id FROM campaigns c
             WHERE c.state IN ('gathering', 'negotiating', 'offered', 'active', 'closed')
               AND NOT EXISTS (SELECT 1 FROM demand_sheets d WHERE d.campaign_id = c.id AND d.day >= $1)
               AND $2 = (SELECT count(*) FROM (SELECT 1 FROM ",
            differing!("c.id"),
            " AND p.changed_at <= coalesce(c.closed_at, p.changed_at) LIMIT $2) differing)
             ORDER BY c.id"
        );
        let most = COARSE as i64;
        sql.rows(due, values![day_of(self.0), most], |row| row.get(0).map(CampaignId)).await
    }
}

/// Whether another sheet will be taken for what differs since the last one.
pub(crate) async fn is_uncounted(sql: &mut dyn Sql, campaign: CampaignId) -> Result<bool, Failure> {
    let differing = concat!(
        "SELECT count(*) FROM (SELECT 1 FROM ",
        differing!("$1"),
        " AND p.changed_at <= coalesce((SELECT c.closed_at FROM campaigns c WHERE c.id = $1), p.changed_at) LIMIT $2) differing"
    );
    let most = COARSE as i64;
    Ok(sql.row(differing, values![campaign.0, most], |row| row.get(0)).await? == Some(most))
}

/// The next participants of a campaign, after the given person.
pub struct CountPart(pub CampaignId, pub i64);

impl Unit for CountPart {
    type Done = CountedPart;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<CountedPart, Failure> {
        // Pick the batch before looking up people; otherwise PostgreSQL goes through all people up to the batch, every time.
        let some = concat!(
            "SELECT part.person_id, part.state, ",
            answer_now!("us_state"),
            ", ",
            answer_now!("categories"),
            " FROM (SELECT person_id, state FROM participations WHERE campaign_id = $1 AND person_id > $2
                    ORDER BY person_id LIMIT $3) part
              JOIN people p ON p.id = part.person_id ",
            joined_by!(),
            " ORDER BY part.person_id"
        );
        let mut last = None;
        let read = |row: &Row<'_>| {
            last = Some(row.get("person_id")?);
            // A person who left while the campaign was running is no longer in it.
            Ok(CountedMember {
                state: row.parsed("state", ParticipationState::from_name)?,
                us_state: row.get::<Option<&str>>("us_state")?.and_then(UsState::from_code),
                categories: row.get::<Option<&str>>("categories")?.map(CategorySet::from_slugs).unwrap_or_default(),
            })
        };
        let members = sql.rows(some, values![self.0.0, self.1, COUNT_BATCH], read).await?;
        Ok(CountedPart { members, last })
    }
}

/// Keeps the day's sheet, whose count began at `begun_at`. False if there already is one.
pub struct KeepSheet {
    pub campaign: CampaignId,
    pub sheet: DemandSheet,
    /// When counting began. `now` is when it ended.
    pub begun_at: Timestamp,
    pub now: Timestamp,
}

impl Unit for KeepSheet {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        // Another node may have counted the same at midnight and kept it as the previous day's sheet.
        sql.lock(&format!("sheet {}", self.campaign.0)).await?;
        let since = "SELECT 1 FROM demand_sheets WHERE campaign_id = $1 AND taken_at >= $2";
        if sql.exists(since, values![self.campaign.0, self.begun_at]).await? {
            return Ok(false);
        }
        let keep = "INSERT INTO demand_sheets (campaign_id, day, taken_at, sheet) VALUES ($1, $2, $3, $4)
                    ON CONFLICT DO NOTHING RETURNING id";
        // The sheet holds only names and numbers, so it always converts to JSON.
        let sheet = serde_json::to_string(&self.sheet).unwrap_or_default();
        Ok(sql.insert(keep, values![self.campaign.0, day_of(self.now), self.now, &sheet]).await?.is_some())
    }
}
