//! People who counted for their referrer and do no longer: they passed, left, were erased, or their offer or order ended.
//!
//! That is only noted when it happens (`campaigns/qualify.rs`). Here it takes effect: an unpaid group opens; a paid one stays, and shows it.

use crate::campaigns::qualify::recheck;
use crate::campaigns::records::{terms, terms_columns};
use crate::domain::catalog::ReferralTerms;
use crate::domain::reward::GroupState;
use crate::domain::time::Timestamp;
use crate::rewards::ledger::{BY_RULE, LOCK};
use crate::rewards::open::{Opening, open_group};
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Notes that one step works off.
const ENDED_AT_ONCE: u32 = 20;

/// Works off some notes; returns whether there may be more.
pub struct EndNoted(pub Timestamp);

impl Unit for EndNoted {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        sql.lock(LOCK).await?;
        Ok(end_noted(sql, ENDED_AT_ONCE, self.0).await? == ENDED_AT_ONCE)
    }
}

/// Somebody who is noted to count no longer.
struct Noted {
    id: i64,
    campaign: i64,
    person: i64,
    why: String,
}

/// A note `d`, as [`noted`] reads it.
macro_rules! notes {
    ($which:literal) => {
        concat!("SELECT d.id, d.campaign_id, d.person_id, d.why FROM disqualifications d ", $which)
    };
}

fn noted(row: &Row<'_>) -> Result<Noted, Failure> {
    Ok(Noted {
        id: row.get("id")?,
        campaign: row.get("campaign_id")?,
        person: row.get("person_id")?,
        why: row.get("why")?,
    })
}

/// Works off the oldest notes, at most that many; returns how many.
pub(crate) async fn end_noted(sql: &mut dyn Sql, most: u32, now: Timestamp) -> Result<u32, Failure> {
    let oldest = sql.rows(notes!("ORDER BY d.id LIMIT $1"), values![most], noted).await?;
    for note in &oldest {
        note.end(sql, now).await?;
    }
    Ok(oldest.len() as u32)
}

/// Works off a note about somebody whom that person referred; returns whether there was one.
pub(crate) async fn end_noted_of(sql: &mut dyn Sql, referrer: i64, now: Timestamp) -> Result<bool, Failure> {
    let next = notes!(
        "WHERE (SELECT q.referrer_id FROM qualifications q WHERE q.campaign_id = d.campaign_id AND q.person_id = d.person_id) = $1
         ORDER BY d.id LIMIT 1"
    );
    let Some(note) = sql.row(next, values![referrer], noted).await? else { return Ok(false) };
    note.end(sql, now).await?;
    Ok(true)
}

/// A group that somebody counts in.
struct TheirGroup {
    id: i64,
    state: GroupState,
    /// The file that pays it is or may be out.
    is_out: bool,
}

/// How somebody counts who is noted to do no longer.
struct Counting {
    qualification: i64,
    group: Option<TheirGroup>,
    slug: String,
    terms: Option<ReferralTerms>,
}

fn counting(row: &Row<'_>) -> Result<Counting, Failure> {
    let group = match row.get::<Option<i64>>("group_id")? {
        Some(id) => {
            let state = row.parsed("group_state", GroupState::from_name)?;
            Some(TheirGroup { id, state, is_out: row.get("is_out")? })
        }
        None => None,
    };
    Ok(Counting { qualification: row.get("id")?, group, slug: row.get("slug")?, terms: terms(row)? })
}

impl Noted {
    /// Takes them out of what their referrer earns. They may count anew by a new acceptance and hold, unless they were paid for.
    async fn end(&self, sql: &mut dyn Sql, now: Timestamp) -> Result<(), Failure> {
        sql.execute("DELETE FROM disqualifications WHERE id = $1", values![self.id]).await?;
        let find = concat!(
            "SELECT q.id, q.group_id, g.state AS group_state, c.slug, ",
            terms_columns!(),
            ", EXISTS (SELECT 1 FROM payouts o JOIN payout_batches b ON b.id = o.batch_id
                       WHERE o.id = g.payout_id AND (b.closed_at IS NOT NULL OR b.written_at IS NOT NULL)) AS is_out
             FROM qualifications q JOIN campaigns c ON c.id = q.campaign_id LEFT JOIN reward_groups g ON g.id = q.group_id
             WHERE q.campaign_id = $1 AND q.person_id = $2 AND q.voided_at IS NULL AND q.qualified_at IS NOT NULL"
        );
        let found = sql.row(find, values![self.campaign, self.person], counting).await?;
        let Some(Counting { qualification, group, slug, terms }) = found else { return Ok(()) };
        // A group that was given up, or whose referrer was erased, keeps its place: who is in it counts for no other.
        let stays =
            |group: &TheirGroup| group.is_out || !matches!(group.state, GroupState::Accrued | GroupState::Capped);
        // Only the day: a moment would lead to whoever left then.
        let day = now.start_of_day();
        if group.as_ref().is_some_and(stays) {
            let keep = "UPDATE qualifications SET ended_on = $2, ended_why = $3 WHERE id = $1 AND ended_on IS NULL";
            return sql.execute(keep, values![qualification, day, &self.why]).await.map(|_| ());
        }
        sql.execute("DELETE FROM qualifications WHERE id = $1", values![qualification]).await?;
        recheck(sql, self.campaign, self.person).await?;
        if let (Some(group), Some(terms)) = (group, terms) {
            let why = format!("a group of {} in {slug}: a member of it no longer counts", terms.group_size);
            let opening = Opening { campaign: self.campaign, terms, who: BY_RULE, why: &why, at: day };
            open_group(sql, group.id, opening).await?;
        }
        Ok(())
    }
}
