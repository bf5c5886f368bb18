//! What the operator sees of rewards besides single accounts: what is on the way, one campaign's figures, and who is in unpaid groups.

use crate::campaigns::qualify::takes_part;
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::acceptance::Ended;
use crate::domain::reward::GroupState;
use crate::domain::reward::ledger::LedgerKind;
use crate::domain::reward::report::{CampaignRewards, OnTheWay};
use crate::domain::reward::review::{MOST_STEPS, ReviewedMember, ReviewedPerson, ReviewedReferrer};
use crate::domain::time::Timestamp;
use crate::mail::sources::source_name;
use crate::membership::records::joined_by;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Referrers on a page of the review.
pub const REVIEWED_AT_ONCE: u32 = 20;

/// Rows that one step adds up.
const ADDED_AT_ONCE: u32 = 10_000;

/// Counts referred members who take part and are in no group yet, up to a maximum.
pub struct FindOnTheWay(pub u32);

impl Unit for FindOnTheWay {
    type Done = OnTheWay;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<OnTheWay, Failure> {
        let most = self.0;
        let waiting = "SELECT count(*) FROM (SELECT 1 FROM qualifications WHERE group_id IS NULL AND voided_at IS NULL
                       AND qualified_at IS NOT NULL AND referrer_id IS NOT NULL LIMIT $1) counted";
        let waiting = sql.value(waiting, values![most]).await?.unwrap_or(0);
        // What the supplier says is looked up for each: PostgreSQL would read all acceptances to join them.
        let on_hold = concat!(
            "SELECT count(*) AS looked_at, count(p.id) AS referred FROM
                 (SELECT part.campaign_id, part.person_id, part.accepted_at, c.counts_on,
                      (SELECT a.status FROM acceptances a
                       WHERE a.campaign_id = part.campaign_id AND a.person_id = part.person_id AND a.ended_at IS NULL LIMIT 1 OFFSET 0) AS status
                  FROM campaigns c JOIN participations part ON part.campaign_id = c.id
                  WHERE c.hold_days IS NOT NULL AND c.state IN ('active', 'closed') AND part.state = 'accepted' AND NOT part.hold_checked
                    AND part.accepted_at IS NOT NULL LIMIT $1) part
                 LEFT JOIN people p ON p.id = part.person_id AND p.referrer_id IS NOT NULL AND p.state = 'member'
                     AND p.joined_at <= part.accepted_at AND ",
            takes_part!("part.counts_on", "part.status"),
            "        AND NOT EXISTS (SELECT 1 FROM qualifications q WHERE q.campaign_id = part.campaign_id AND q.person_id = p.id)"
        );
        let read = |row: &Row<'_>| Ok((row.get::<u64>("looked_at")?, row.get::<u64>("referred")?));
        let (looked_at, on_hold) = sql.row(on_hold, values![most], read).await?.unwrap_or_default();
        let is_whole = looked_at.max(waiting) < u64::from(most);
        Ok(OnTheWay { on_hold, waiting, is_whole })
    }
}

/// Adds up more of a campaign's groups and lines, on top of the sums so far. Repeat until it is whole.
pub struct AddUpCampaign(pub CampaignSlug, pub CampaignRewards);

impl Unit for AddUpCampaign {
    type Done = CampaignRewards;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<CampaignRewards, Failure> {
        let Self(campaign, so_far) = self;
        let mut so_far = *so_far;
        let find = "SELECT id FROM campaigns WHERE slug = $1";
        let campaign = sql.value::<i64>(find, values![campaign.as_str()]).await?;
        let groups = "SELECT state, count(*) AS number_of, max(id) AS last FROM
                          (SELECT id, state FROM reward_groups WHERE campaign_id = $1 AND id > $2 ORDER BY id LIMIT $3) added GROUP BY state";
        let read = |row: &Row<'_>| {
            Ok((row.parsed("state", GroupState::from_name)?, row.get::<u64>("number_of")?, row.get::<i64>("last")?))
        };
        let groups = sql.rows(groups, values![campaign, so_far.last_group, ADDED_AT_ONCE], read).await?;
        let lines = "SELECT kind, count(*) AS number_of, max(id) AS last, CAST(sum(amount_cents) AS BIGINT) AS cents FROM
                         (SELECT id, kind, amount_cents FROM reward_ledger WHERE campaign_id = $1 AND id > $2 ORDER BY id LIMIT $3) added
                     GROUP BY kind";
        let read = |row: &Row<'_>| {
            let kind = row.parsed("kind", LedgerKind::from_name)?;
            Ok((kind, row.get::<u64>("number_of")?, row.get::<i64>("last")?, row.get::<i64>("cents")?))
        };
        let lines = sql.rows(lines, values![campaign, so_far.last_line, ADDED_AT_ONCE], read).await?;
        let (of_groups, of_lines): (u64, u64) =
            (groups.iter().map(|(_, count, _)| count).sum(), lines.iter().map(|(_, count, ..)| count).sum());
        so_far.is_whole = of_groups.max(of_lines) < u64::from(ADDED_AT_ONCE);
        for (state, count, last) in groups {
            so_far.add_groups(state, count);
            so_far.last_group = so_far.last_group.max(last);
        }
        for (kind, _, last, cents) in lines {
            so_far.add_lines(kind, cents);
            so_far.last_line = so_far.last_line.max(last);
        }
        Ok(so_far)
    }
}

/// Unpaid groups `g`: in no payout, or in one that is not settled. The offset has the same reason as in `people/forget.rs`.
macro_rules! not_paid {
    () => {
        "g.state = 'accrued' AND (g.payout_id IS NULL OR EXISTS (SELECT 1 FROM payouts o WHERE o.id = g.payout_id AND o.state = 'out' LIMIT 1 OFFSET 0))"
    };
}

/// Members of a referrer's groups, as [`member`] reads them.
macro_rules! members {
    () => {
        concat!(
            "SELECT p.id, CASE WHEN p.erased_at IS NULL THEN p.email END AS email,
                    CASE WHEN p.erased_at IS NULL THEN p.joined_at END AS joined_at, part.accepted_at, q.ended_on, q.ended_why, ",
            source_name!("s.partner_id"),
            " AS source, c.slug,
                    (SELECT count(*) FROM reward_groups earlier
                     WHERE earlier.referrer_id = g.referrer_id AND earlier.campaign_id = g.campaign_id AND earlier.id <= g.id) AS group_number,
                    (SELECT o.batch_id FROM payouts o WHERE o.id = g.payout_id) AS batch
             FROM reward_groups g JOIN campaigns c ON c.id = g.campaign_id JOIN qualifications q ON q.group_id = g.id
                 JOIN people p ON p.id = q.person_id
                 LEFT JOIN participations part ON part.campaign_id = q.campaign_id AND part.person_id = q.person_id ",
            joined_by!(),
            " WHERE g.referrer_id = $1"
        )
    };
}

/// The referrers after that person who have unpaid groups, or paid ones with somebody who no longer counts, in the order of their ids.
pub struct ListReviewedReferrers(pub i64);

impl Unit for ListReviewedReferrers {
    type Done = Vec<ReviewedReferrer>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let next = concat!(
            "SELECT p.id, CASE WHEN p.erased_at IS NULL THEN p.email END AS email,
                 (SELECT count(*) FROM reward_groups g WHERE g.referrer_id = p.id AND ",
            not_paid!(),
            "    ) AS number_of,
                 (SELECT CAST(coalesce(sum(c.reward_cents), 0) AS BIGINT) FROM reward_groups g JOIN campaigns c ON c.id = g.campaign_id
                  WHERE g.referrer_id = p.id AND ",
            not_paid!(),
            "    ) AS cents
             FROM (SELECT referrer_id FROM
                       (SELECT DISTINCT g.referrer_id FROM reward_groups g WHERE g.referrer_id > $1 AND ",
            not_paid!(),
            "           ORDER BY g.referrer_id LIMIT $2) unpaid
                   UNION SELECT referrer_id FROM
                       (SELECT DISTINCT q.referrer_id FROM qualifications q
                        WHERE q.referrer_id > $1 AND q.ended_on IS NOT NULL AND q.voided_at IS NULL ORDER BY q.referrer_id LIMIT $2) ended
                   ORDER BY 1 LIMIT $2) due
                 JOIN people p ON p.id = due.referrer_id
             ORDER BY p.id"
        );
        let partners = sql.value("SELECT count(*) FROM partners", values![]).await?.unwrap_or(0);
        let read = |row: &Row<'_>| {
            Ok(ReviewedReferrer {
                person: row.get("id")?,
                email: row.get("email")?,
                groups: row.get("number_of")?,
                cents: row.get("cents")?,
                members: Vec::new(),
                ended: Vec::new(),
                partners,
                referred_by: Vec::new(),
            })
        };
        let mut referrers = sql.rows(next, values![self.0, REVIEWED_AT_ONCE], read).await?;
        for referrer in &mut referrers {
            let most = values![referrer.person, ReviewedReferrer::MOST_MEMBERS];
            let unpaid = concat!(members!(), " AND ", not_paid!(), " ORDER BY g.id, p.id LIMIT $2");
            referrer.members = sql.rows(unpaid, most, member).await?;
            let ended =
                concat!(members!(), " AND q.referrer_id = $1 AND q.ended_on IS NOT NULL ORDER BY g.id, p.id LIMIT $2");
            referrer.ended = sql.rows(ended, most, member).await?;
            referrer.referred_by = referred_by(sql, referrer.person).await?;
        }
        Ok(referrers)
    }
}

/// A person `p` by id and address.
fn person(row: &Row<'_>) -> Result<ReviewedPerson, Failure> {
    Ok(ReviewedPerson { id: row.get("id")?, email: row.get("email")? })
}

fn member(row: &Row<'_>) -> Result<ReviewedMember, Failure> {
    let ended = match row.get::<Option<Timestamp>>("ended_on")? {
        Some(on) => Some((on, row.parsed("ended_why", Ended::from_name)?)),
        None => None,
    };
    Ok(ReviewedMember {
        person: person(row)?,
        joined_at: row.get::<Option<Timestamp>>("joined_at")?,
        partner: Some(row.get::<String>("source")?).filter(|source| !source.is_empty()),
        accepted_at: row.get("accepted_at")?,
        ended,
        campaign: row.parsed("slug", |slug| slug.parse().ok())?,
        group: row.get("group_number")?,
        batch: row.get("batch")?,
    })
}

async fn referred_by(sql: &mut dyn Sql, referrer: i64) -> Result<Vec<ReviewedPerson>, Failure> {
    let next = "SELECT r.id, CASE WHEN r.erased_at IS NULL THEN r.email END AS email
                FROM people p JOIN people r ON r.id = p.referrer_id WHERE p.id = $1";
    let (mut chain, mut last) = (Vec::new(), referrer);
    while chain.len() < MOST_STEPS {
        let Some(by) = sql.row(next, values![last], person).await? else { break };
        last = by.id;
        chain.push(by);
        if last == referrer {
            break;
        }
    }
    Ok(chain)
}
