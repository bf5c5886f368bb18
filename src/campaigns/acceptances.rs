//! What members agreed to when they accepted an offer: kept with the sentence that stood above the button, ended when they withdraw, leave or
//! are erased, or when the offer ends.

use crate::campaigns::qualify::disqualify;
use crate::campaigns::sheet::counted;
use crate::domain::campaign::acceptance::{AcceptanceEntry, Ended, Handover, OrderStatus, Reference, SupplierReport};
use crate::domain::campaign::record::CampaignId;
use crate::domain::campaign::{CampaignSlug, LastDay};
use crate::domain::language::Language;
use crate::domain::secret::session::Nonce;
use crate::domain::time::Timestamp;
use crate::domain::union::notice::Notice;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Acceptances that one step ends.
const ENDED_AT_ONCE: u32 = 100;

/// Entries of one person, at the most.
const MOST_SHOWN: u32 = 100;

/// What somebody agrees to who accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreed {
    /// [`Offer::mark`](crate::domain::campaign::offer::Offer::mark) of what they were shown.
    pub mark: String,
    /// In which they read it.
    pub language: Language,
    /// For the supplier, where they have none that still stands.
    pub reference: Reference,
}

/// An acceptance that is written.
pub(crate) struct NewAcceptance<'a> {
    pub campaign: i64,
    pub person: i64,
    pub handover: Handover,
    pub told: &'a Notice,
    pub reference: Reference,
    pub now: Timestamp,
}

impl NewAcceptance<'_> {
    /// Whoever withdrew, and accepts again before the supplier was told, keeps the reference. True if it is another one.
    pub(crate) async fn keep(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self { campaign, person, handover, told, reference, now } = self;
        // SQLite's trigger against REPLACE refuses rows that ON CONFLICT would skip.
        let tell = "INSERT INTO notices (hash, text, first_shown_at, names_campaign_mail)
                    SELECT $1, $2, CAST($3 AS BIGINT), FALSE WHERE NOT EXISTS (SELECT 1 FROM notices WHERE hash = $1)
                    ON CONFLICT DO NOTHING";
        sql.execute(tell, values![&*told.hash, &*told.words, *now]).await?;
        let again = "UPDATE acceptances SET ended_at = NULL, ended_why = NULL, accepted_at = $5, notice = $4, trouble_at = NULL,
                         offer_number = (SELECT c.offer_number FROM campaigns c WHERE c.id = $1)
                     WHERE id = (SELECT max(id) FROM acceptances WHERE campaign_id = $1 AND person_id = $2)
                       AND ended_at IS NOT NULL AND withdrawn_batch_id IS NULL AND status IS NULL AND handover = $3";
        if sql.execute(again, values![*campaign, *person, handover.name(), &*told.hash, *now]).await? == 1 {
            return Ok(false);
        }
        let add = "INSERT INTO acceptances (campaign_id, person_id, reference, notice, handover, offer_number, made_at, accepted_at)
                   SELECT c.id, CAST($2 AS BIGINT), $3, $4, $5, c.offer_number, CAST($6 AS BIGINT), CAST($6 AS BIGINT) FROM campaigns c
                   WHERE c.id = $1";
        let values = values![*campaign, *person, reference.as_str(), &*told.hash, handover.name(), *now];
        sql.execute(add, values).await.map(|_| true)
    }
}

/// Ends a person's acceptances: in one campaign, or in all. The supplier is told by the next file, if it was told of them.
pub(crate) async fn end(
    sql: &mut dyn Sql,
    person: i64,
    campaign: Option<i64>,
    why: Ended,
    now: Timestamp,
) -> Result<(), Failure> {
    let end = "UPDATE acceptances SET ended_at = $3, ended_why = $4,
                   batch_id = CASE WHEN EXISTS (SELECT 1 FROM handover_batches b WHERE b.id = batch_id AND b.closed_at IS NOT NULL)
                              THEN batch_id END
               WHERE person_id = $1 AND ended_at IS NULL AND campaign_id = coalesce($2, campaign_id)";
    sql.execute(end, values![person, campaign, now, why.name()]).await.map(|_| ())
}

/// When a person is erased, what the supplier knows stays without them, and of its times the day: what the supplier says is checked by it.
pub(crate) async fn forget(sql: &mut dyn Sql, person: i64, day: Timestamp) -> Result<(), Failure> {
    let forget =
        "UPDATE acceptances SET person_id = NULL, made_at = made_at - made_at % 86400000, accepted_at = accepted_at - accepted_at % 86400000,
                      trouble_at = NULL, ended_at = $2, ended_why = coalesce(ended_why, 'erased')
                  WHERE person_id = $1";
    sql.execute(forget, values![person, day]).await.map(|_| ())
}

/// Whether acceptances of a campaign wait to be ended, because their offer is not offered any more.
pub(crate) async fn are_ending(sql: &mut dyn Sql, campaign: i64) -> Result<bool, Failure> {
    let outdated = "SELECT 1 FROM campaigns c WHERE c.id = $1 AND EXISTS
                        (SELECT 1 FROM acceptances a WHERE a.campaign_id = c.id AND a.offer_number < c.offer_number AND a.ended_at IS NULL
                         LIMIT 1 OFFSET 0)";
    sql.exists(outdated, values![campaign]).await
}

/// Ends some acceptances of an offer that is not offered any more; returns whether there were any.
pub struct EndAcceptances(pub Timestamp);

impl Unit for EndAcceptances {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let next = "SELECT c.id, c.slug FROM campaigns c WHERE c.offer_number > 0 AND EXISTS
                        (SELECT 1 FROM acceptances a WHERE a.campaign_id = c.id AND a.offer_number < c.offer_number AND a.ended_at IS NULL
                         LIMIT 1 OFFSET 0)
                    ORDER BY c.id LIMIT 1";
        let read = |row: &Row<'_>| Ok((CampaignId(row.get(0)?), row.parsed(1, |slug| slug.parse().ok())?));
        let next: Option<(CampaignId, CampaignSlug)> = sql.row(next, values![], read).await?;
        let Some((campaign, slug)) = next else { return Ok(false) };
        // A press of one of these members waits, and a batch of the supplier's file too.
        sql.exists("SELECT 1 FROM campaigns WHERE slug = $1 FOR UPDATE", values![slug.as_str()]).await?;
        let some = "SELECT a.person_id FROM acceptances a JOIN campaigns c ON c.id = a.campaign_id
                    WHERE a.campaign_id = $1 AND a.offer_number < c.offer_number AND a.ended_at IS NULL
                    ORDER BY a.offer_number, a.id LIMIT $2";
        let some: Vec<i64> = sql.rows(some, values![campaign.0, ENDED_AT_ONCE], |row| row.get(0)).await?;
        for person in &some {
            end_of_offer(sql, campaign.0, *person, self.0).await?;
        }
        Ok(!some.is_empty())
    }
}

/// Ends the acceptance of one person whose offer has ended. They are in again, and are asked about the next.
async fn end_of_offer(sql: &mut dyn Sql, campaign: i64, person: i64, now: Timestamp) -> Result<(), Failure> {
    let back = concat!(
        "UPDATE participations SET state = 'in', in_at = coalesce(in_at, $3), changed_at = $3, counted = ",
        counted!(),
        " WHERE campaign_id = $1 AND person_id = $2 AND state = 'accepted'"
    );
    sql.execute(back, values![campaign, person, now]).await?;
    disqualify(sql, campaign, person, Ended::Offer).await?;
    end(sql, person, Some(campaign), Ended::Offer, now).await
}

/// The same before a member presses a button, where the worker has not come to them yet.
pub(crate) async fn end_outdated(sql: &mut dyn Sql, campaign: i64, person: i64, now: Timestamp) -> Result<(), Failure> {
    let outdated = "SELECT 1 FROM acceptances a JOIN campaigns c ON c.id = a.campaign_id
                    WHERE a.campaign_id = $1 AND a.person_id = $2 AND a.ended_at IS NULL AND a.offer_number < c.offer_number";
    match sql.exists(outdated, values![campaign, person]).await? {
        true => end_of_offer(sql, campaign, person, now).await,
        false => Ok(()),
    }
}

/// A member says that what they accepted did not work, or that it works now. False if they accepted nothing there.
pub struct SayTrouble {
    pub session: Nonce,
    pub slug: CampaignSlug,
    pub works: bool,
    pub now: Timestamp,
}

impl Unit for SayTrouble {
    type Done = bool;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let say = "UPDATE acceptances SET trouble_at = CASE WHEN $3 THEN NULL ELSE coalesce(trouble_at, CAST($4 AS BIGINT)) END
                   WHERE ended_at IS NULL AND campaign_id = (SELECT c.id FROM campaigns c WHERE c.slug = $2)
                     AND person_id = (SELECT p.id FROM people p WHERE p.session = $1 AND p.state = 'member')";
        let Self { session, slug, works, now } = self;
        Ok(sql.execute(say, values![session.as_str(), slug.as_str(), *works, *now]).await? == 1)
    }
}

/// A column `status` and `status_on` of an acceptance.
pub(crate) fn report(row: &Row<'_>) -> Result<Option<SupplierReport>, Failure> {
    let Some(status) = row.get::<Option<&str>>("status")? else { return Ok(None) };
    let status = OrderStatus::from_name(status);
    let on = LastDay::of(Timestamp::from_millis(row.get::<i64>("status_on")?.saturating_mul(86_400_000)));
    Ok(status.map(|status| SupplierReport { status, on }))
}

/// A person's acceptances in all campaigns, the oldest first, each with its campaign.
pub(crate) async fn acceptances_of(
    sql: &mut dyn Sql,
    person: i64,
) -> Result<Vec<(CampaignSlug, AcceptanceEntry)>, Failure> {
    let list = "SELECT c.slug, a.reference, a.handover, (SELECT n.text FROM notices n WHERE n.hash = a.notice) AS told, a.made_at,
                    a.accepted_at, CASE WHEN a.offer_number < c.offer_number THEN coalesce(a.ended_at, a.accepted_at) ELSE a.ended_at END AS ended_at,
                    CASE WHEN a.offer_number < c.offer_number THEN coalesce(a.ended_why, 'offer') ELSE a.ended_why END AS ended_why,
                    (SELECT b.closed_at FROM handover_batches b WHERE b.id = a.batch_id) AS handed_over_at,
                    (SELECT b.closed_at FROM handover_batches b WHERE b.id = a.withdrawn_batch_id) AS withdrawn_at,
                    a.status, a.status_on, a.settled_at, a.trouble_at
                FROM acceptances a JOIN campaigns c ON c.id = a.campaign_id WHERE a.person_id = $1 ORDER BY a.id DESC LIMIT $2";
    let read = |row: &Row<'_>| {
        let campaign = row.parsed("slug", |slug| slug.parse().ok())?;
        let entry = AcceptanceEntry {
            reference: row.parsed("reference", Reference::parse)?,
            handover: row.parsed("handover", Handover::from_name)?,
            told: row.get("told")?,
            made_at: row.get("made_at")?,
            accepted_at: row.get("accepted_at")?,
            ended_at: row.get("ended_at")?,
            ended_why: row.get::<Option<&str>>("ended_why")?.and_then(Ended::from_name),
            handed_over_at: row.get("handed_over_at")?,
            withdrawn_at: row.get("withdrawn_at")?,
            report: report(row)?,
            reported_at: row.get("settled_at")?,
            trouble_at: row.get("trouble_at")?,
        };
        Ok((campaign, entry))
    };
    let mut found = sql.rows(list, values![person, MOST_SHOWN], read).await?;
    found.reverse();
    Ok(found)
}
