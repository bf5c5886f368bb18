//! Demand sheets: when one is due, whom it counts, in batches, and what is kept.
//!
//! One is due once a day and after each step that asks for it (`campaigns.count_due`), and is taken if enough people's parts differ from
//! what the last one counted.

use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::demand::{COARSE, CountedMember, DemandSheet};
use crate::domain::campaign::draft::CampaignDraft;
use crate::domain::campaign::participation::ParticipationState;
use crate::domain::campaign::record::{CampaignId, TakenSheet};
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

/// A column of a campaign's last sheet.
macro_rules! last_sheet {
    ($column:literal, $campaign:literal) => {
        concat!(
            "(SELECT last.",
            $column,
            " FROM demand_sheets last WHERE last.campaign_id = ",
            $campaign,
            " ORDER BY last.taken_at DESC, last.id DESC LIMIT 1)"
        )
    };
}
pub(crate) use last_sheet;

/// How the last sheet counted a participation that is about to change. What changed since that sheet has it already.
macro_rules! counted {
    () => {
        concat!(
            "CASE WHEN participations.changed_at > coalesce(",
            $crate::campaigns::sheet::last_sheet!("taken_at", "participations.campaign_id"),
            ", -1) THEN participations.counted
             WHEN participations.state IN ('in', 'accepted') THEN participations.state END"
        )
    };
}
pub(crate) use counted;

/// Whether the members of a campaign `c` are about to be counted: a step asked for it, or five are in and there is no sheet yet.
macro_rules! is_counting {
    () => {
        "(c.count_due IS NOT NULL OR c.state <> 'cancelled' AND NOT EXISTS (SELECT 1 FROM demand_sheets s WHERE s.campaign_id = c.id)
          AND 5 = (SELECT count(*) FROM (SELECT 1 FROM participations p
                   WHERE p.campaign_id = c.id AND p.state IN ('in', 'accepted') LIMIT 5) few))"
    };
}
pub(crate) use is_counting;

const _: () = assert!(COARSE == 5, "as it stands above");

/// Participations `p` of a campaign that differ from what its last sheet counted: in, accepted, or neither. Out and in again is no
/// difference. An answer that changes is none either, so it makes no sheet by itself.
macro_rules! differing {
    ($campaign:literal) => {
        concat!(
            "participations p WHERE p.campaign_id = ",
            $campaign,
            " AND p.changed_at > coalesce(",
            $crate::campaigns::sheet::last_sheet!("taken_at", $campaign),
            ", -1) AND p.counted IS DISTINCT FROM CASE WHEN p.state IN ('in', 'accepted') THEN p.state END"
        )
    };
}

/// A campaign whose members are to be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueSheet {
    pub campaign: CampaignId,
    /// The step that asks for it; none for the day's sheet.
    pub step: Option<i64>,
    /// The id of the sheet before it.
    pub last: Option<i64>,
    /// Whether enough people's parts differ from that sheet.
    pub is_enough: bool,
}

/// The campaigns for which a step asks, and those that have no sheet yet today and in which enough people's parts differ.
pub struct ListDueSheets(pub Timestamp);

impl Unit for ListDueSheets {
    type Done = Vec<DueSheet>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<DueSheet>, Failure> {
        let due = concat!(
            "SELECT c.id, c.count_due, ",
            last_sheet!("id", "c.id"),
            " AS last_id, $2 = (SELECT count(*) FROM (SELECT 1 FROM ",
            differing!("c.id"),
            " AND p.changed_at <= coalesce(c.closed_at, p.changed_at) LIMIT $2) differing) AS is_enough
             FROM campaigns c
             WHERE c.state IN ('gathering', 'negotiating', 'offered', 'active', 'closed')
               AND (c.count_due IS NOT NULL OR $1 > coalesce(",
            last_sheet!("day", "c.id"),
            ", -1)) ORDER BY c.id"
        );
        let read = |row: &Row<'_>| {
            Ok(DueSheet {
                campaign: CampaignId(row.get("id")?),
                step: row.get("count_due")?,
                last: row.get("last_id")?,
                is_enough: row.get("is_enough")?,
            })
        };
        let mut due = sql.rows(due, values![day_of(self.0), COARSE as i64], read).await?;
        due.retain(|due| due.is_enough || due.step.is_some());
        Ok(due)
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

/// Keeps a sheet. False if another one was kept since it was due, or a step was taken while it was counted: then it is old already.
pub struct KeepSheet {
    pub due: DueSheet,
    pub sheet: DemandSheet,
    /// When counting ended.
    pub now: Timestamp,
}

impl Unit for KeepSheet {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let DueSheet { campaign: CampaignId(id), step, last, .. } = self.due;
        // Two sheets of two nodes could be one person apart.
        sql.lock(&format!("sheet {id}")).await?;
        // A step waits. Locked for a change where there is one, because two that share a lock cannot both make it a stronger one.
        let (to_look, to_change) = (
            concat!("SELECT c.count_due, ", last_sheet!("id", "$1"), " FROM campaigns c WHERE c.id = $1 FOR SHARE"),
            concat!("SELECT c.count_due, ", last_sheet!("id", "$1"), " FROM campaigns c WHERE c.id = $1 FOR UPDATE"),
        );
        let held = if step.is_some() { to_change } else { to_look };
        let is_due = sql.row(held, values![id], |row| Ok((row.get(0)?, row.get(1)?))).await? == Some((step, last));
        if !is_due {
            return Ok(false);
        }
        let keep = "INSERT INTO demand_sheets (campaign_id, day, taken_at, sheet) VALUES ($1, $2, $3, $4) RETURNING id";
        // The sheet holds only names and numbers, so it always converts to JSON.
        let sheet = serde_json::to_string(&self.sheet).unwrap_or_default();
        sql.insert(keep, values![id, day_of(self.now), self.now, &sheet]).await?;
        end_count(sql, &self.due).await?;
        Ok(true)
    }
}

/// Ends what a step asked for where too few people's parts differ for another sheet.
pub struct EndCount(pub DueSheet);

impl Unit for EndCount {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        end_count(sql, &self.0).await
    }
}

async fn end_count(sql: &mut dyn Sql, due: &DueSheet) -> Result<(), Failure> {
    let Some(step) = due.step else { return Ok(()) };
    let end = "UPDATE campaigns SET count_due = NULL WHERE id = $1 AND count_due = $2";
    sql.execute(end, values![due.campaign.0, step]).await.map(|_| ())
}

/// The sheets of a campaign that were kept, the newest first.
pub struct ListSheets(pub CampaignSlug);

impl ListSheets {
    /// The most that are listed.
    pub const MOST: u32 = 1000;
}

impl Unit for ListSheets {
    type Done = Vec<TakenSheet>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<TakenSheet>, Failure> {
        let definition = "SELECT definition FROM campaigns WHERE slug = $1";
        let slug = self.0.as_str();
        let read = |row: &Row<'_>| row.parsed("definition", CampaignDraft::kept);
        let Some(draft) = sql.row(definition, values![slug], read).await? else { return Ok(Vec::new()) };
        let sheets =
            "SELECT taken_at, sheet FROM demand_sheets WHERE campaign_id = (SELECT id FROM campaigns WHERE slug = $1)
                      ORDER BY taken_at DESC, id DESC LIMIT $2";
        let read = |row: &Row<'_>| {
            let demand = row.parsed("sheet", |text| DemandSheet::kept(text, &draft.states))?;
            Ok(TakenSheet { counted_at: row.get("taken_at")?, demand })
        };
        sql.rows(sheets, values![slug, Self::MOST], read).await
    }
}
