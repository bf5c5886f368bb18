//! Reading campaigns: for lists, and one with everything about it.

use crate::domain::campaign::demand::DemandSheet;
use crate::domain::campaign::draft::CampaignDraft;
use crate::domain::campaign::offer::Offer;
use crate::domain::campaign::participation::ParticipationState;
use crate::domain::campaign::record::{
    CampaignDetails, CampaignId, CampaignRecord, HistoryEntry, MailingEntry, ParticipationCounts, SwitchedCount,
    Withdrawal,
};
use crate::domain::campaign::{CampaignMail, CampaignSlug, CampaignState};
use crate::domain::catalog::{CountsOn, ReferralTerms};
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Whether people ever saw a campaign `c`.
macro_rules! was_public {
    () => {
        "EXISTS (SELECT 1 FROM campaign_history h WHERE h.campaign_id = c.id AND h.to_state = 'gathering')"
    };
}
pub(crate) use was_public;

/// When a campaign `c` last came to a state from another.
macro_rules! began {
    ($state:literal) => {
        concat!(
            "(SELECT h.at FROM campaign_history h WHERE h.campaign_id = c.id AND h.to_state = '",
            $state,
            "' AND h.from_state <> h.to_state ORDER BY h.id DESC LIMIT 1)"
        )
    };
}
pub(crate) use began;

/// The id of the campaign with a slug, if people ever saw it.
macro_rules! seen_campaign {
    ($slug:literal) => {
        concat!(
            "(SELECT c.id FROM campaigns c WHERE c.slug = ",
            $slug,
            " AND ",
            $crate::campaigns::records::was_public!(),
            ")"
        )
    };
}
pub(crate) use seen_campaign;

/// A campaign with its last sheet, as [`campaign`] reads it.
macro_rules! campaigns {
    ($which:literal) => {
        concat!(
            "SELECT c.id, c.definition, c.state, c.offer, c.created_at, c.active_at, c.closed_at, c.withdrawn, c.switched_shown, c.switched_as_of, ",
            $crate::campaigns::records::terms_columns!(),
            ", ",
            $crate::campaigns::records::began!("gathering"),
            " AS opened_at, ",
            $crate::campaigns::records::began!("negotiating"),
            " AS negotiating_at, ",
            $crate::campaigns::records::began!("offered"),
            " AS offered_at, ",
            $crate::campaigns::sheet::last_sheet!("taken_at", "c.id"),
            " AS taken_at, ",
            $crate::campaigns::sheet::last_sheet!("sheet", "c.id"),
            " AS sheet, ",
            $crate::campaigns::sheet::is_counting!(),
            " AS is_counting FROM campaigns c ",
            $which
        )
    };
}
pub(crate) use campaigns;

/// A version that changes with nearly every change to what is shown. It can miss a change when two commit in a different order than they
/// began.
pub struct FindCampaignsVersion;

impl Unit for FindCampaignsVersion {
    type Done = [i64; 4];
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<[i64; 4], Failure> {
        // A count that ends without a sheet changes the third of these alone, and a supplier's answer the last.
        let version = "SELECT coalesce((SELECT max(id) FROM campaign_history), 0), coalesce((SELECT max(id) FROM demand_sheets), 0),
                              (SELECT count(*) FROM campaigns WHERE count_due IS NOT NULL),
                              coalesce((SELECT max(switched_as_of) FROM campaigns), 0)";
        let read = |row: &Row<'_>| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]);
        Ok(sql.row(version, values![], read).await?.unwrap_or_default())
    }
}

/// All campaigns, in the order they were made.
pub struct ListCampaigns;

impl Unit for ListCampaigns {
    type Done = Vec<CampaignRecord>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        sql.rows(campaigns!("ORDER BY c.id"), values![], campaign).await
    }
}

/// Everything about one campaign.
pub struct FindCampaign(pub CampaignSlug);

impl Unit for FindCampaign {
    type Done = Option<CampaignDetails>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Some(campaign) = find(sql, &self.0).await? else { return Ok(None) };
        let id = campaign.id.0;
        let history = "SELECT at, who, from_state, to_state, note FROM campaign_history WHERE campaign_id = $1 ORDER BY id LIMIT 1000";
        let read = |row: &Row<'_>| {
            Ok(HistoryEntry {
                at: row.get("at")?,
                who: row.get("who")?,
                from: CampaignState::from_name(row.get("from_state")?),
                to: row.parsed("to_state", CampaignState::from_name)?,
                note: row.get("note")?,
            })
        };
        let history = sql.rows(history, values![id], read).await?;
        let is_uncounted = campaign.state == CampaignState::Closed
            && (campaign.is_counting || crate::campaigns::sheet::is_uncounted(sql, campaign.id).await?);
        let mailings = "SELECT kind, queued, started_at, finished_at, ended_early FROM campaign_mailings WHERE campaign_id = $1 ORDER BY id";
        let read = |row: &Row<'_>| {
            let (kind, finished_at): (String, Option<Timestamp>) = (row.get("kind")?, row.get("finished_at")?);
            let waits_for_count = is_uncounted && finished_at.is_none() && kind == CampaignMail::Result.name();
            Ok(MailingEntry {
                kind,
                queued: row.get("queued")?,
                started_at: row.get("started_at")?,
                finished_at,
                ended_early: row.get("ended_early")?,
                waits_for_count,
            })
        };
        let mailings = sql.rows(mailings, values![id], read).await?;
        let notes = "SELECT (SELECT count(*) FROM campaign_rounds WHERE campaign_id = $1) AS rounds,
                            (SELECT count(*) FROM campaign_offer_drafts WHERE campaign_id = $1) AS drafts";
        let notes = sql.row(notes, values![id], |row| Ok((row.get("rounds")?, row.get("drafts")?))).await?;
        let (rounds, drafts) = notes.unwrap_or_default();
        let counts = counts_of(sql, id).await?;
        Ok(Some(CampaignDetails { campaign, history, mailings, counts, rounds, drafts }))
    }
}

/// Remembers that the newest form sign-up with that address began at a campaign's page.
pub struct RememberCampaign(pub String, pub CampaignSlug);

impl Unit for RememberCampaign {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let Self(email_normalized, slug) = self;
        let remember = concat!(
            "UPDATE sign_ups SET campaign_id = ",
            seen_campaign!("$2"),
            " WHERE id = (SELECT max(s.id) FROM sign_ups s JOIN people p ON p.id = s.person_id
                 WHERE p.email_normalized = $1 AND s.partner_id IS NULL AND s.state = 'pending')"
        );
        sql.execute(remember, values![email_normalized, slug.as_str()]).await.map(|_| ())
    }
}

/// Whether any mailing is unfinished.
pub struct AreMailingsOpen;

impl Unit for AreMailingsOpen {
    type Done = bool;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        sql.exists("SELECT 1 FROM campaign_mailings WHERE finished_at IS NULL LIMIT 1", values![]).await
    }
}

pub(crate) fn campaign(row: &Row<'_>) -> Result<CampaignRecord, Failure> {
    let offer = row.get::<Option<&str>>("offer")?.map(|_| row.parsed("offer", Offer::kept)).transpose()?;
    let draft = row.parsed("definition", CampaignDraft::kept)?;
    let sheet = match row.get::<Option<Timestamp>>("taken_at")? {
        Some(taken_at) => Some((taken_at, row.parsed("sheet", |text| DemandSheet::kept(text, &draft.states))?)),
        None => None,
    };
    Ok(CampaignRecord {
        id: CampaignId(row.get("id")?),
        state: row.parsed("state", CampaignState::from_name)?,
        draft,
        offer,
        withdrawn: row.get::<Option<&str>>("withdrawn")?.and_then(Withdrawal::kept),
        opened_at: row.get("opened_at")?,
        negotiating_at: row.get("negotiating_at")?,
        offered_at: row.get("offered_at")?,
        created_at: row.get("created_at")?,
        active_at: row.get("active_at")?,
        closed_at: row.get("closed_at")?,
        terms: terms(row)?,
        sheet,
        is_counting: row.get("is_counting")?,
        switched: match row.get::<Option<Timestamp>>("switched_as_of")? {
            Some(as_of) => Some(SwitchedCount { members: row.get("switched_shown")?, as_of }),
            None => None,
        },
    })
}

async fn counts_of(sql: &mut dyn Sql, campaign: i64) -> Result<ParticipationCounts, Failure> {
    let count = "SELECT state, count(*) AS members FROM
                     (SELECT state FROM participations WHERE campaign_id = $1 LIMIT $2) counted GROUP BY state";
    let mut counts = ParticipationCounts::default();
    let read = |row: &Row<'_>| {
        let figure = match row.parsed("state", ParticipationState::from_name)? {
            ParticipationState::In => &mut counts.members_in,
            ParticipationState::Out => &mut counts.out,
            ParticipationState::Accepted => &mut counts.accepted,
            ParticipationState::Passed => &mut counts.passed,
        };
        *figure = row.get("members")?;
        Ok(())
    };
    sql.rows(count, values![campaign, ParticipationCounts::MOST], read).await?;
    Ok(counts)
}

/// The campaign with a slug, locked against changes until the unit ends. Others can lock it the same way; a step of the campaign waits.
pub(crate) async fn hold(sql: &mut dyn Sql, slug: &CampaignSlug) -> Result<Option<CampaignRecord>, Failure> {
    match sql.exists("SELECT 1 FROM campaigns WHERE slug = $1 FOR SHARE", values![slug.as_str()]).await? {
        true => find(sql, slug).await,
        false => Ok(None),
    }
}

pub(crate) async fn find(sql: &mut dyn Sql, slug: &CampaignSlug) -> Result<Option<CampaignRecord>, Failure> {
    sql.row(campaigns!("WHERE c.slug = $1"), values![slug.as_str()], campaign).await
}

/// Columns of a campaign's terms, as [`terms`] reads them.
macro_rules! terms_columns {
    () => {
        "c.reward_cents, c.group_size, c.max_groups, c.hold_days, coalesce(c.counts_on, 'accepted') AS counts_on"
    };
}
pub(crate) use terms_columns;

pub(crate) fn terms(row: &Row<'_>) -> Result<Option<ReferralTerms>, Failure> {
    let Some(cents) = row.get::<Option<i64>>("reward_cents")? else { return Ok(None) };
    Ok(Some(ReferralTerms {
        reward_per_group: u32::try_from(cents / 100).unwrap_or(u32::MAX),
        group_size: row.get("group_size")?,
        max_groups: row.get("max_groups")?,
        hold_days: row.get("hold_days")?,
        counts_on: row.parsed("counts_on", CountsOn::from_name)?,
    }))
}
