//! Who counts for their referrer: people whose hold is over are checked once, and again when they or their referrer join.

use crate::domain::campaign::CampaignState;
use crate::domain::campaign::acceptance::{Ended, OrderStatus};
use crate::domain::catalog::CountsOn;
use crate::domain::person::PersonState;
use crate::domain::reward::{MemberSpan, Referred};
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, Row, Sql, values};

/// Participations that one step checks.
const CHECK_BATCH: u32 = 50;

/// Referred people whose participations one step checks after their referrer joined.
const PEOPLE_BATCH: u32 = 50;

/// A person who takes part in a campaign that became active, as [`referral_candidate`] reads them. People who already have a row in
/// `qualifications` are left out: a second row would be refused.
macro_rules! candidates {
    ($which:literal) => {
        concat!(
            "SELECT part.id, part.campaign_id, part.person_id, part.accepted_at, c.state AS campaign, c.active_at, c.hold_days,
                    c.closed_at, coalesce(c.counts_on, 'accepted') AS counts_on, part.hold_from, a.status, p.state, p.joined_at, p.left_at, p.referrer_id,
                    r.state AS r_state, r.joined_at AS r_joined_at, r.left_at AS r_left_at, r.erased_at AS r_erased_at
             FROM participations part JOIN campaigns c ON c.id = part.campaign_id JOIN people p ON p.id = part.person_id
                 LEFT JOIN people r ON r.id = p.referrer_id
                 LEFT JOIN acceptances a ON a.campaign_id = part.campaign_id AND a.person_id = part.person_id AND a.ended_at IS NULL
             WHERE part.state = 'accepted' AND part.accepted_at IS NOT NULL AND c.hold_days IS NOT NULL
               AND NOT EXISTS (SELECT 1 FROM qualifications q WHERE q.campaign_id = part.campaign_id AND q.person_id = part.person_id)
               AND ",
            $which
        )
    };
}

/// Whether what a supplier says lets somebody count, by what counts in the campaign.
macro_rules! takes_part {
    ($counts_on:literal, $status:literal) => {
        concat!(
            "CASE WHEN ",
            $counts_on,
            " = 'switched' THEN coalesce(",
            $status,
            ", '') = 'switched' ELSE coalesce(",
            $status,
            ", '') NOT IN ('rejected', 'cancelled') END"
        )
    };
}
pub(crate) use takes_part;

/// Notes where a person `$1` counts, and why they do no longer (`$2`).
macro_rules! note_counted {
    () => {
        "INSERT INTO disqualifications (campaign_id, person_id, why)
         SELECT campaign_id, person_id, CAST($2 AS TEXT) FROM qualifications
         WHERE person_id = $1 AND qualified_at IS NOT NULL AND voided_at IS NULL AND ended_on IS NULL"
    };
}

struct ReferralCandidate {
    campaign: i64,
    person: i64,
    /// None if no referrer is credited for them.
    referred: Option<(i64, Referred)>,
}

fn referral_candidate(row: &Row<'_>) -> Result<ReferralCandidate, Failure> {
    let referrer: Option<i64> = row.get("referrer_id")?;
    let is_erased = row.get::<Option<Timestamp>>("r_erased_at")?.is_some();
    let span = |state, joined_at, left_at| {
        Ok::<_, Failure>(MemberSpan {
            state: row.parsed(state, PersonState::from_name)?,
            joined_at: row.get(joined_at)?,
            left_at: row.get(left_at)?,
        })
    };
    let status: Option<String> = row.get("status")?;
    let referred = match referrer.filter(|_| !is_erased) {
        Some(referrer) => Some((
            referrer,
            Referred {
                accepted_at: row.get("accepted_at")?,
                campaign: row.parsed("campaign", CampaignState::from_name)?,
                active_at: row.get("active_at")?,
                hold_days: row.get("hold_days")?,
                closed_at: row.get("closed_at")?,
                counts_on: row.parsed("counts_on", CountsOn::from_name)?,
                status: status.and_then(|status| OrderStatus::from_name(&status)),
                hold_from: row.get("hold_from")?,
                person: span("state", "joined_at", "left_at")?,
                referrer: span("r_state", "r_joined_at", "r_left_at")?,
            },
        )),
        None => None,
    };
    Ok(ReferralCandidate { campaign: row.get("campaign_id")?, person: row.get("person_id")?, referred })
}

/// Records who counts for whom from now on.
async fn qualify(sql: &mut dyn Sql, candidates: &[ReferralCandidate], now: Timestamp) -> Result<(), Failure> {
    let mut referrers = Vec::new();
    for ReferralCandidate { campaign, person, referred } in candidates {
        let Some((referrer, facts)) = referred else { continue };
        let Some(at) = facts.qualified_at(now) else { continue };
        let add =
            "INSERT INTO qualifications (campaign_id, person_id, referrer_id, qualified_at) VALUES ($1, $2, $3, $4)
                   ON CONFLICT (campaign_id, person_id) DO NOTHING";
        sql.execute(add, values![*campaign, *person, *referrer, at]).await?;
        referrers.push((*referrer, *campaign));
    }
    // In a fixed order, so that two writers of the same rows never deadlock.
    referrers.sort_unstable();
    referrers.dedup();
    for (referrer, campaign) in referrers {
        note_regrouping(sql, referrer, campaign).await?;
    }
    Ok(())
}

/// Notes that a group may be formed. Locks the row, so the code that forms groups either has not looked yet or looks again afterwards.
pub(crate) async fn note_regrouping(sql: &mut dyn Sql, referrer: i64, campaign: i64) -> Result<(), Failure> {
    let note = "INSERT INTO regroupings (referrer_id, campaign_id) VALUES ($1, $2)
                ON CONFLICT (referrer_id, campaign_id) DO UPDATE SET campaign_id = excluded.campaign_id";
    sql.execute(note, values![referrer, campaign]).await.map(|_| ())
}

/// Checks some participations of one campaign whose hold is over; returns whether there were any.
pub(crate) async fn check_due(sql: &mut dyn Sql, now: Timestamp) -> Result<bool, Failure> {
    let campaign = "
        SELECT c.id, x.until - c.hold_days * 86400000 AS taken_part_by
        FROM campaigns c JOIN (SELECT id, CASE WHEN state = 'cancelled' AND closed_at < $1 THEN closed_at ELSE $1 END AS until
                               FROM campaigns WHERE hold_days IS NOT NULL) x ON x.id = c.id
        WHERE c.active_at + c.hold_days * 86400000 <= x.until
          AND EXISTS (SELECT 1 FROM participations part WHERE part.campaign_id = c.id AND part.state = 'accepted'
                      AND NOT part.hold_checked AND coalesce(part.hold_from, part.accepted_at) <= x.until - c.hold_days * 86400000)
        ORDER BY c.id LIMIT 1";
    let read = |row: &Row<'_>| Ok((row.get::<i64>("id")?, row.get::<i64>("taken_part_by")?));
    let Some((campaign, taken_part_by)) = sql.row(campaign, values![now], read).await? else { return Ok(false) };
    // When a person leaves or passes, that code locks their participation, and looks afterwards whether they count.
    let some = "SELECT id FROM participations WHERE campaign_id = $1 AND state = 'accepted' AND NOT hold_checked
                AND coalesce(hold_from, accepted_at) <= $2 ORDER BY coalesce(hold_from, accepted_at), id LIMIT $3 FOR UPDATE SKIP LOCKED";
    let some: Vec<i64> = sql.rows(some, values![campaign, taken_part_by, CHECK_BATCH], |row| row.get(0)).await?;
    let mut found = Vec::with_capacity(some.len());
    for participation in &some {
        let look = candidates!("part.id = $1");
        found.extend(sql.row(look, values![*participation], referral_candidate).await?);
        // A supplier's date from before they accepted again says nothing of this hold: it is over later.
        let checked = "UPDATE participations SET hold_checked = coalesce(hold_from >= accepted_at, TRUE),
                           hold_from = CASE WHEN hold_from >= accepted_at THEN hold_from END WHERE id = $1";
        sql.execute(checked, values![*participation]).await?;
    }
    qualify(sql, &found, now).await?;
    Ok(!some.is_empty())
}

/// Checks some of the people whom a person referred who joined; returns whether there were any.
pub(crate) async fn check_joined(sql: &mut dyn Sql, now: Timestamp) -> Result<bool, Failure> {
    let joined = "SELECT person_id, after_id FROM requalifications ORDER BY person_id LIMIT 1 FOR UPDATE";
    let read = |row: &Row<'_>| Ok((row.get::<i64>("person_id")?, row.get::<i64>("after_id")?));
    let Some((person, after)) = sql.row(joined, values![], read).await? else { return Ok(false) };
    match check_referred(sql, person, after, now).await? {
        Some(last) => {
            let go_on = "UPDATE requalifications SET after_id = $2 WHERE person_id = $1";
            sql.execute(go_on, values![person, last]).await?;
        }
        None => {
            sql.execute("DELETE FROM requalifications WHERE person_id = $1", values![person]).await?;
        }
    }
    Ok(true)
}

/// Checks some of the people one person referred, starting after the given id; returns the id to continue after.
pub(crate) async fn check_referred(
    sql: &mut dyn Sql,
    referrer: i64,
    after: i64,
    now: Timestamp,
) -> Result<Option<i64>, Failure> {
    let next = "SELECT id FROM people WHERE referrer_id = $1 AND id > $2 ORDER BY id LIMIT $3";
    let next: Vec<i64> = sql.rows(next, values![referrer, after, PEOPLE_BATCH], |row| row.get(0)).await?;
    let mut found = Vec::new();
    for referred in &next {
        lock_participations(sql, *referred).await?;
        found.extend(sql.rows(candidates!("part.person_id = $1"), values![*referred], referral_candidate).await?);
    }
    qualify(sql, &found, now).await?;
    if after == 0 {
        // People who counted before, and wait for a group since their referrer was erased.
        let waiting = "SELECT c.id FROM campaigns c WHERE c.hold_days IS NOT NULL AND EXISTS
                           (SELECT 1 FROM qualifications q WHERE q.referrer_id = $1 AND q.campaign_id = c.id AND q.group_id IS NULL
                            AND q.voided_at IS NULL AND q.qualified_at IS NOT NULL) ORDER BY c.id";
        let waiting: Vec<i64> = sql.rows(waiting, values![referrer], |row| row.get(0)).await?;
        for campaign in waiting {
            note_regrouping(sql, referrer, campaign).await?;
        }
    }
    Ok(next.last().copied().filter(|_| next.len() == PEOPLE_BATCH as usize))
}

/// Notes that somebody no longer counts in a campaign, if they did; the worker takes them out of their referrer's groups. Their participation
/// is locked, and the campaign for share: while a note waits, no file pays for that campaign.
pub(crate) async fn disqualify(sql: &mut dyn Sql, campaign: i64, person: i64, why: Ended) -> Result<(), Failure> {
    let note = concat!(note_counted!(), " AND campaign_id = $3 ON CONFLICT (campaign_id, person_id) DO NOTHING");
    sql.execute(note, values![person, why.name(), campaign]).await.map(|_| ())
}

/// The same in every campaign, for somebody who leaves or is erased. Their row is locked.
pub(crate) async fn disqualify_everywhere(sql: &mut dyn Sql, person: i64, why: Ended) -> Result<(), Failure> {
    let campaigns = "SELECT id FROM campaigns WHERE id IN (SELECT campaign_id FROM participations WHERE person_id = $1)
                     ORDER BY id FOR SHARE";
    sql.rows(campaigns, values![person], |_| Ok(())).await?;
    lock_participations(sql, person).await?;
    let note = concat!(note_counted!(), " ORDER BY campaign_id ON CONFLICT (campaign_id, person_id) DO NOTHING");
    sql.execute(note, values![person, why.name()]).await.map(|_| ())
}

/// Somebody's hold is looked at again: what they counted by is gone, and they may take part anew.
pub(crate) async fn recheck(sql: &mut dyn Sql, campaign: i64, person: i64) -> Result<(), Failure> {
    let again =
        "UPDATE participations SET hold_checked = FALSE WHERE campaign_id = $1 AND person_id = $2 AND hold_checked";
    sql.execute(again, values![campaign, person]).await.map(|_| ())
}

/// So that what is read afterwards stays true until the unit ends. A person has at most one row per campaign.
async fn lock_participations(sql: &mut dyn Sql, person: i64) -> Result<(), Failure> {
    let lock = "SELECT id FROM participations WHERE person_id = $1 ORDER BY id FOR UPDATE";
    sql.rows(lock, values![person], |_| Ok(())).await.map(|_| ())
}
