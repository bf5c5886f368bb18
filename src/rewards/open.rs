//! Opening a group: its members count again one by one, and what it earned is reversed.

use crate::campaigns::qualify::{note_regrouping, recheck};
use crate::domain::catalog::ReferralTerms;
use crate::domain::reward::GroupState;
use crate::domain::reward::ledger::LedgerKind;
use crate::domain::time::Timestamp;
use crate::rewards::ledger::book;
use crate::rewards::place::{count_rewarded, move_up, set_state};
use crate::rewards::settle::recall;
use crate::store::sql::{Failure, Row, Sql, values};

/// Whose doing it is that a group opens, and why, as the ledger says it.
pub(crate) struct Opening<'a> {
    pub campaign: i64,
    pub terms: ReferralTerms,
    pub who: &'a str,
    pub why: &'a str,
    pub at: Timestamp,
}

pub(crate) struct OpenedGroup {
    pub state: GroupState,
    /// What the referrer loses.
    pub reversed_cents: i64,
    /// The external id of the unsettled payout for the group.
    pub payout: Option<String>,
    /// Whose group it was. None if it earned nothing anymore, and stays as it was.
    pub account: Option<String>,
}

/// Breaks up a group so that its other members count again. Reverses what it earned; if that was not paid, its place goes to another group.
pub(crate) async fn open_group(sql: &mut dyn Sql, group: i64, opening: Opening<'_>) -> Result<OpenedGroup, Failure> {
    let Opening { campaign, terms, who, why, at } = opening;
    // A payout whose file is not yet written has paid nothing.
    let account =
        "SELECT p.account FROM reward_groups g JOIN people p ON p.id = g.referrer_id WHERE g.id = $1 FOR UPDATE OF p";
    if let Some(account) = sql.value::<Option<String>>(account, values![group]).await?.flatten() {
        recall(sql, &account, who, at).await?;
    }
    let find = "SELECT g.referrer_id, g.state, g.payout_id, p.account FROM reward_groups g JOIN people p ON p.id = g.referrer_id
                WHERE g.id = $1";
    let read = |row: &Row<'_>| {
        let state = row.parsed("state", GroupState::from_name)?;
        let payout = row.get::<Option<i64>>("payout_id")?;
        Ok((row.get::<i64>("referrer_id")?, state, payout, row.get::<Option<String>>("account")?))
    };
    let (person, before, payout, account) = sql.row(find, values![group], read).await?.ok_or(Failure::Overtaken)?;
    let after = match before {
        GroupState::Accrued if payout.is_some() => GroupState::Reversed,
        GroupState::Accrued | GroupState::Capped => GroupState::Dissolved,
        // The group earns nothing anymore.
        other => return Ok(OpenedGroup { state: other, reversed_cents: 0, payout: None, account: None }),
    };
    set_state(sql, group, after).await?;
    // Whoever no longer counted when it was paid counts for nothing now, and may count anew.
    let ended = "DELETE FROM qualifications WHERE group_id = $1 AND ended_on IS NOT NULL RETURNING person_id";
    for ended in sql.rows(ended, values![group], |row| row.get::<i64>(0)).await? {
        recheck(sql, campaign, ended).await?;
    }
    sql.execute("UPDATE qualifications SET group_id = NULL WHERE group_id = $1", values![group]).await?;
    let mut reversed_cents = 0;
    if let (GroupState::Accrued, Some(account)) = (before, &account) {
        reversed_cents = terms.reward_cents();
        book(sql, account, Some(campaign), (LedgerKind::Reversal, -reversed_cents), (who, why), at).await?;
        if after == GroupState::Dissolved {
            count_rewarded(sql, person, -1, -reversed_cents).await?;
            move_up(sql, person, account, at).await?;
        }
    }
    note_regrouping(sql, person, campaign).await?;
    let out = "SELECT external_id FROM payouts WHERE id = $1 AND state = 'out'";
    let payout = sql.value(out, values![payout]).await?;
    Ok(OpenedGroup { state: after, reversed_cents, payout, account })
}
