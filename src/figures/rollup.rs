//! The roll-up: adds what happened since the last one to the figures, one step at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::catalog::category::CategorySet;
use crate::domain::mail::budget::day_of;
use crate::domain::partner::name::PartnerId;
use crate::domain::time::Timestamp;
use crate::figures::accounts::add_up_accounts;
use crate::membership::answers::{DemandChanges, add_demand, add_wishes};
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Member changes and sign-ups that one step takes: few enough that a sign-up waiting for it does not notice.
const FIGURES_BATCH: u32 = 500;

/// A sign-up is rolled up once it is this old: until then another node may still be writing one with a smaller id.
pub(crate) const SETTLED_AFTER: Duration = Duration::from_secs(60);

/// Sign-ups not rolled up yet, as a part of `FROM`.
macro_rules! recent_sign_ups {
    () => {
        "sign_ups s WHERE s.id > (SELECT sign_up_id FROM rollup WHERE id = 1)"
    };
}
pub(crate) use recent_sign_ups;

/// Adds a part of what happened to the figures; returns whether there may be more. Any node can run it at any time.
pub struct RollUp {
    pub now: Timestamp,
}

/// A member who joined or left.
struct MemberChange {
    change: i64,
    day: i64,
    source: Option<PartnerId>,
    key: Option<String>,
    us_state: String,
    categories: CategorySet,
    referrer: Option<i64>,
}

/// A sign-up to count.
struct NewRow {
    id: i64,
    created_at: Timestamp,
    source: Option<PartnerId>,
    key: Option<String>,
}

/// Additions to the figures, ordered so that two writers never deadlock.
#[derive(Default)]
struct Additions {
    /// By source and day: signed up, joined, departed.
    sources: BTreeMap<(Option<PartnerId>, i64), [i64; 3]>,
    /// By key: signed up, confirmed.
    keys: BTreeMap<String, [i64; 2]>,
    demand: DemandChanges,
    referrers: BTreeMap<i64, i64>,
}

impl Unit for RollUp {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        // Another node is already doing this.
        if !sql.try_lock("roll-up").await? {
            return Ok(false);
        }
        let mut additions = Additions::default();
        let changes = take_changes(sql).await?;
        changes.iter().for_each(|change| additions.add_change(change));
        additions.write_wishes(sql).await?;
        let has_more_accounts = add_up_accounts(sql).await?;
        // The code that deletes a sign-up counts it, unless this roll-up already has. One waits for the other, and from here on the wait is
        // short.
        sql.row("SELECT sign_up_id FROM rollup WHERE id = 1 FOR UPDATE", values![], |_| Ok(())).await?;
        let (seen, last) = self.count_sign_ups(sql, &mut additions).await?;
        if let Some(last) = last {
            sql.execute("UPDATE rollup SET sign_up_id = $1 WHERE id = 1", values![last]).await?;
        }
        additions.write_referred(sql).await?;
        additions.write_counts(sql).await?;
        let is_full = changes.len() as u64 == u64::from(FIGURES_BATCH) || seen == u64::from(FIGURES_BATCH);
        Ok(is_full || has_more_accounts)
    }
}

impl RollUp {
    /// Adds the next sign-ups; returns how many were looked at, and the last one counted.
    async fn count_sign_ups(
        &self,
        sql: &mut dyn Sql,
        additions: &mut Additions,
    ) -> Result<(u64, Option<i64>), Failure> {
        let next = concat!(
            "SELECT s.id, s.created_at, s.partner_id, s.key_id FROM ",
            recent_sign_ups!(),
            " ORDER BY s.id LIMIT $1"
        );
        let read = |row: &Row<'_>| {
            Ok(NewRow {
                id: row.get("id")?,
                created_at: row.get("created_at")?,
                source: row.get("partner_id")?,
                key: row.get("key_id")?,
            })
        };
        let rows = sql.rows(next, values![FIGURES_BATCH], read).await?;
        let seen = rows.len() as u64;
        let mut last = None;
        // Does not wait for rows written by a clock that was far ahead.
        let unsettled = self.now.minus(SETTLED_AFTER)..self.now.plus(10 * SETTLED_AFTER);
        for row in rows.into_iter().take_while(|row| !unsettled.contains(&row.created_at)) {
            last = Some(row.id);
            additions.sources.entry((row.source, day_of(row.created_at))).or_default()[0] += 1;
            if let Some(key) = row.key {
                additions.keys.entry(key).or_default()[0] += 1;
            }
        }
        // Nothing that is too recent now will be settled by an immediate next look.
        Ok((if last.is_none() { 0 } else { seen }, last))
    }
}

async fn take_changes(sql: &mut dyn Sql) -> Result<Vec<MemberChange>, Failure> {
    let take = "DELETE FROM member_changes WHERE id IN (SELECT id FROM member_changes ORDER BY id LIMIT $1)
                RETURNING change, at, partner_id, key_id, coalesce(us_state, '') AS us_state, categories, referrer_id";
    let read = |row: &Row<'_>| {
        Ok(MemberChange {
            change: row.get("change")?,
            day: day_of(row.get("at")?),
            source: row.get("partner_id")?,
            key: row.get("key_id")?,
            us_state: row.get("us_state")?,
            categories: CategorySet::from_slugs(row.get("categories")?),
            referrer: row.get("referrer_id")?,
        })
    };
    sql.rows(take, values![FIGURES_BATCH], read).await
}

impl Additions {
    fn add_change(&mut self, member: &MemberChange) {
        let joined = member.change > 0;
        let of_source = self.sources.entry((member.source, member.day)).or_default();
        of_source[if joined { 1 } else { 2 }] += 1;
        if let Some(key) = member.key.clone().filter(|_| joined) {
            self.keys.entry(key).or_default()[1] += 1;
        }
        add_wishes(&mut self.demand, &member.us_state, member.categories, member.change);
        if let Some(referrer) = member.referrer {
            *self.referrers.entry(referrer).or_default() += member.change;
        }
    }

    async fn write_wishes(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        add_demand(sql, &self.demand).await?;
        for (person, change) in &self.referrers {
            let add = "INSERT INTO referrers (person_id, members) VALUES ($1, $2)
                       ON CONFLICT (person_id) DO UPDATE SET members = referrers.members + excluded.members";
            sql.execute(add, values![*person, *change]).await?;
        }
        Ok(())
    }

    /// Writes to the row that the roll-up has locked.
    async fn write_referred(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let change: i64 = self.referrers.values().sum();
        if change != 0 {
            let add = "UPDATE rollup SET referred_members = referred_members + $1 WHERE id = 1";
            sql.execute(add, values![change]).await?;
        }
        Ok(())
    }

    async fn write_counts(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        for (key, [signed_up, confirmed]) in &self.keys {
            let add = "UPDATE api_keys SET signed_up = signed_up + $2, confirmed = confirmed + $3 WHERE id = $1";
            sql.execute(add, values![key, *signed_up, *confirmed]).await?;
        }
        // Last, because others wait for these rows.
        for ((source, day), [signed_up, joined, departed]) in &self.sources {
            let add = "INSERT INTO source_days (partner_id, day, signed_up, joined, departed) VALUES ($1, $2, $3, $4, $5)
                       ON CONFLICT (coalesce(partner_id, 0), day) DO UPDATE SET signed_up = source_days.signed_up + excluded.signed_up,
                           joined = source_days.joined + excluded.joined, departed = source_days.departed + excluded.departed";
            sql.execute(add, values![*source, *day, *signed_up, *joined, *departed]).await?;
        }
        Ok(())
    }
}
