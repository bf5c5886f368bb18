//! Which groups are rewarded: each takes one of a referrer's places, which are counted across all campaigns.

use crate::campaigns::records::{terms, terms_columns};
use crate::domain::catalog::ReferralTerms;
use crate::domain::person::AccountId;
use crate::domain::reward::GroupState;
use crate::domain::reward::ledger::LedgerKind;
use crate::domain::time::Timestamp;
use crate::rewards::ledger::{BY_RULE, book};
use crate::store::sql::{Failure, Row, Sql, values};

/// A referrer in one campaign.
pub(crate) struct Referrer {
    pub person: i64,
    pub campaign: i64,
    pub slug: String,
    pub terms: ReferralTerms,
}

/// Reads the columns campaign and slug and those of [`terms`]; none if the campaign has no terms.
pub(crate) fn referrer(row: &Row<'_>, person: i64) -> Result<Option<Referrer>, Failure> {
    let Some(terms) = terms(row)? else { return Ok(None) };
    Ok(Some(Referrer { person, campaign: row.get("campaign")?, slug: row.get("slug")?, terms }))
}

/// Rewards a group that has no reward yet, if its referrer's limit allows another; returns whether it did.
pub(crate) async fn reward(
    sql: &mut dyn Sql,
    group: i64,
    referrer: &Referrer,
    account: &AccountId,
    now: Timestamp,
) -> Result<bool, Failure> {
    let (groups, cents) = rewarded(sql, referrer.person).await?;
    if !referrer.terms.may_reward(groups, cents) {
        return Ok(false);
    }
    set_state(sql, group, GroupState::Accrued).await?;
    count_rewarded(sql, referrer.person, 1, referrer.terms.reward_cents()).await?;
    let name = "UPDATE people SET account = coalesce(account, $2) WHERE id = $1 RETURNING account";
    let account = sql.value(name, values![referrer.person, account.as_str()]).await?;
    let account: String = account.ok_or(Failure::Overtaken)?;
    let why = format!("a group of {} in {}", referrer.terms.group_size, referrer.slug);
    let earned = (LedgerKind::Accrual, referrer.terms.reward_cents());
    // Only the day: once the referrer is erased, an exact time would link the people who count to the account.
    let day = now.start_of_day();
    book(sql, &account, Some(referrer.campaign), earned, (BY_RULE, &why), day).await?;
    let owed = "SELECT owed_cents FROM referrers WHERE person_id = $1 AND owed_cents > 0";
    if let Some(cents) = sql.value::<i64>(owed, values![referrer.person]).await? {
        sql.execute("UPDATE referrers SET owed_cents = 0 WHERE person_id = $1", values![referrer.person]).await?;
        let why = "paid too much before they were erased";
        book(sql, &account, None, (LedgerKind::Reversal, -cents), (BY_RULE, why), day).await?;
    }
    Ok(true)
}

/// How many groups a referrer is rewarded for across all campaigns, and their sum.
pub(crate) async fn rewarded(sql: &mut dyn Sql, person: i64) -> Result<(u32, i64), Failure> {
    let count = "SELECT rewarded_groups, rewarded_cents FROM referrers WHERE person_id = $1";
    let read = |row: &Row<'_>| Ok((row.get("rewarded_groups")?, row.get("rewarded_cents")?));
    Ok(sql.row(count, values![person], read).await?.unwrap_or_default())
}

pub(crate) async fn count_rewarded(sql: &mut dyn Sql, person: i64, groups: i64, cents: i64) -> Result<(), Failure> {
    let count = "INSERT INTO referrers (person_id, rewarded_groups, rewarded_cents) VALUES ($1, $2, $3)
                 ON CONFLICT (person_id) DO UPDATE SET rewarded_groups = referrers.rewarded_groups + excluded.rewarded_groups,
                     rewarded_cents = referrers.rewarded_cents + excluded.rewarded_cents";
    sql.execute(count, values![person, groups, cents]).await.map(|_| ())
}

pub(crate) async fn set_state(sql: &mut dyn Sql, group: i64, state: GroupState) -> Result<(), Failure> {
    sql.execute("UPDATE reward_groups SET state = $2 WHERE id = $1", values![group, state.name()]).await.map(|_| ())
}

/// Rewards a referrer's capped groups that now have room, oldest first.
pub(crate) async fn move_up(sql: &mut dyn Sql, person: i64, account: &str, now: Timestamp) -> Result<(), Failure> {
    let account = AccountId::kept(account);
    loop {
        let (groups, cents) = rewarded(sql, person).await?;
        // The oldest group of each campaign whose terms leave room.
        let next = concat!(
            "SELECT * FROM
                 (SELECT (SELECT min(g.id) FROM reward_groups g
                          WHERE g.referrer_id = $1 AND g.campaign_id = c.id AND g.state = 'capped') AS id,
                      c.id AS campaign, c.slug, ",
            terms_columns!(),
            "     FROM campaigns c
                  WHERE c.hold_days IS NOT NULL AND c.max_groups > $2 AND $3 + c.reward_cents <= c.reward_cents * c.max_groups) oldest
             WHERE id IS NOT NULL ORDER BY id LIMIT 1"
        );
        let read = |row: &Row<'_>| Ok((row.get::<i64>("id")?, referrer(row, person)?));
        let found = sql.row(next, values![person, groups, cents], read).await?;
        let Some((group, Some(referrer))) = found else { return Ok(()) };
        if !reward(sql, group, &referrer, &account, now).await? {
            return Ok(());
        }
    }
}
