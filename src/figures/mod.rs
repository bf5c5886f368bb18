//! Figures for the operator, rolled up step by step as things happen, so that reading them costs the same at any size.

pub mod accounts;
pub mod rollup;
pub mod worker;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::domain::referral::ReferralCode;
use crate::domain::time::Timestamp;
use crate::figures::rollup::{SETTLED_AFTER, recent_sign_ups};
use crate::mail::sources::source_name;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Sign-ups since the day `$1` that are not rolled up yet, as a part of `FROM`.
macro_rules! recent_since {
    () => {
        concat!(recent_sign_ups!(), " AND s.created_at / 86400000 >= $1")
    };
}

/// The columns of a funnel, summed up over some `source_days`, as [`funnel`] reads them.
macro_rules! funnel_columns {
    () => {
        "CAST(sum(signed_up) AS BIGINT) AS signed_up, CAST(sum(confirmations_sent) AS BIGINT) AS confirmations_sent,
         CAST(sum(joined) AS BIGINT) AS joined, CAST(sum(declined) AS BIGINT) AS declined,
         CAST(sum(expired) AS BIGINT) AS expired, CAST(sum(departed) AS BIGINT) AS departed"
    };
}

/// Whether the figures are missing something they should include.
pub struct AreFiguresBehind(pub Timestamp);

impl Unit for AreFiguresBehind {
    type Done = bool;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let behind = concat!(
            "SELECT EXISTS (SELECT 1 FROM member_changes) OR EXISTS (SELECT 1 FROM account_changes) OR EXISTS (SELECT 1 FROM ",
            recent_sign_ups!(),
            " AND s.created_at < $1)"
        );
        let settled = self.0.minus(SETTLED_AFTER);
        Ok(sql.value(behind, values![settled]).await?.unwrap_or(false))
    }
}

/// What each source did on each day since that day, oldest first.
pub struct ListSourceDays(pub i64);

impl Unit for ListSourceDays {
    type Done = Vec<SourceDay>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<SourceDay>, Failure> {
        let days = concat!(
            "SELECT ",
            source_name!("partner_id"),
            " AS source, day, ",
            funnel_columns!(),
            " FROM source_days WHERE day >= $1 GROUP BY partner_id, day ORDER BY day, source"
        );
        let of_day = |row: &Row<'_>, funnel| Ok(SourceDay { source: row.get("source")?, day: row.get("day")?, funnel });
        let mut days = sql.rows(days, values![self.0], |row| of_day(row, funnel(row)?)).await?;
        let recent = concat!(
            "SELECT ",
            source_name!("s.partner_id"),
            " AS source, s.created_at / 86400000 AS day, count(*) AS signed_up FROM ",
            recent_since!(),
            " GROUP BY s.partner_id, s.created_at / 86400000 ORDER BY day, source"
        );
        let signed_up = |row: &Row<'_>| of_day(row, Funnel { signed_up: row.get("signed_up")?, ..Funnel::default() });
        days.extend(sql.rows(recent, values![self.0], signed_up).await?);
        Ok(days)
    }
}

/// What all sources did on each day since that one, in the order of days. Days without anything are left out.
pub struct ListDays(pub i64);

impl Unit for ListDays {
    type Done = Vec<(i64, Funnel)>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let days = concat!("SELECT day, ", funnel_columns!(), " FROM source_days WHERE day >= $1 GROUP BY day");
        let read = |row: &Row<'_>| Ok((row.get::<i64>("day")?, funnel(row)?));
        let mut days: BTreeMap<_, _> = sql.rows(days, values![self.0], read).await?.into_iter().collect();
        let recent = concat!(
            "SELECT s.created_at / 86400000 AS day, count(*) AS signed_up FROM ",
            recent_since!(),
            " GROUP BY s.created_at / 86400000"
        );
        let read = |row: &Row<'_>| Ok((row.get::<i64>("day")?, row.get::<u64>("signed_up")?));
        for (day, signed_up) in sql.rows(recent, values![self.0], read).await? {
            days.entry(day).or_default().signed_up += signed_up;
        }
        Ok(days.into_iter().collect())
    }
}

/// What each source did since that day, all days together.
pub struct ListSources(pub i64);

impl Unit for ListSources {
    type Done = Vec<(String, Funnel)>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let sources = concat!(
            "SELECT ",
            source_name!("partner_id"),
            " AS source, ",
            funnel_columns!(),
            " FROM source_days WHERE day >= $1 GROUP BY partner_id"
        );
        let source = |row: &Row<'_>| Ok((row.get::<String>("source")?, funnel(row)?));
        let mut sources: BTreeMap<_, _> = sql.rows(sources, values![self.0], source).await?.into_iter().collect();
        let recent = concat!(
            "SELECT ",
            source_name!("s.partner_id"),
            " AS source, count(*) AS signed_up FROM ",
            recent_since!(),
            " GROUP BY s.partner_id"
        );
        let signed_up = |row: &Row<'_>| Ok((row.get::<String>("source")?, row.get::<u64>("signed_up")?));
        for (source, signed_up) in sql.rows(recent, values![self.0], signed_up).await? {
            sources.entry(source).or_default().signed_up += signed_up;
        }
        Ok(sources.into_iter().collect())
    }
}

/// The results of the sign-ups and mail of the form and of each partner since the beginning, in the order they were added. No figure ever
/// falls.
pub struct ListSourceTotals;

impl Unit for ListSourceTotals {
    type Done = Vec<SourceTotals>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        // In one statement: with two, a roll-up in between would drop some rows from both parts.
        let totals = concat!(
            "SELECT s.name AS source, d.* FROM
                (SELECT CAST(0 AS BIGINT) AS id, '' AS name UNION ALL SELECT id, name FROM partners) s LEFT JOIN
                (SELECT id, CAST(sum(signed_up) AS BIGINT) AS signed_up, CAST(sum(joined) AS BIGINT) AS joined,
                        CAST(sum(declined) AS BIGINT) AS declined, CAST(sum(bounced) AS BIGINT) AS bounced,
                        CAST(sum(soft_bounced) AS BIGINT) AS soft_bounced, CAST(sum(complained) AS BIGINT) AS complained
                 FROM (SELECT coalesce(partner_id, 0) AS id, signed_up, joined, declined + declines_withdrawn AS declined,
                              bounced, soft_bounced, complained FROM source_days
                       UNION ALL
                       SELECT coalesce(s.partner_id, 0), count(*), 0, 0, 0, 0, 0 FROM ",
            recent_sign_ups!(),
            " GROUP BY s.partner_id) counts
                 GROUP BY id) d ON d.id = s.id
            ORDER BY s.id"
        );
        let read = |row: &Row<'_>| {
            let figure = |name| Ok::<_, Failure>(row.get::<Option<u64>>(name)?.unwrap_or(0));
            Ok(SourceTotals {
                source: row.get("source")?,
                signed_up: figure("signed_up")?,
                confirmed: figure("joined")?,
                declined: figure("declined")?,
                hard_bounces: figure("bounced")?,
                soft_bounces: figure("soft_bounced")?,
                complaints: figure("complained")?,
            })
        };
        sql.rows(totals, values![], read).await
    }
}

/// How many members named each category when they joined, by state; the category '' counts them all.
pub struct ListDemand;

impl Unit for ListDemand {
    type Done = Vec<Demand>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<Demand>, Failure> {
        let demand = "SELECT category, us_state, members FROM demand WHERE members > 0 ORDER BY category, us_state";
        let read = |row: &Row<'_>| {
            let (category, us_state) = (row.get("category")?, row.get("us_state")?);
            Ok(Demand { category, us_state, members: row.get("members")? })
        };
        sql.rows(demand, values![], read).await
    }
}

/// How many members are credited to a referrer.
pub struct CountReferredMembers;

impl Unit for CountReferredMembers {
    type Done = u64;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        Ok(sql.value("SELECT referred_members FROM rollup WHERE id = 1", values![]).await?.unwrap_or(0))
    }
}

/// The referrers credited for the most members.
pub struct ListTopReferrers(pub u32);

impl Unit for ListTopReferrers {
    type Done = Vec<(ReferralCode, u64)>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        // In the order of `referrers_by_members`: when many are tied, no more rows than the limit are read.
        let top = "SELECT p.code, r.members FROM
                       (SELECT person_id, members FROM referrers WHERE members > 0 ORDER BY members DESC, person_id LIMIT $1) r
                       JOIN people p ON p.id = r.person_id
                   ORDER BY r.members DESC, r.person_id";
        sql.rows(top, values![self.0], |row| Ok((row.get("code")?, row.get("members")?))).await
    }
}

/// How far sign-ups got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Funnel {
    pub signed_up: u64,
    /// Confirmation mails that were sent.
    pub mailed: u64,
    /// People who became members.
    pub confirmed: u64,
    pub declined: u64,
    pub lapsed: u64,
    /// Members who left and had come through this source.
    pub left: u64,
}

impl std::ops::AddAssign for Funnel {
    fn add_assign(&mut self, other: Self) {
        self.signed_up += other.signed_up;
        self.mailed += other.mailed;
        self.confirmed += other.confirmed;
        self.declined += other.declined;
        self.lapsed += other.lapsed;
        self.left += other.left;
    }
}

/// The results of a source since the beginning.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SourceTotals {
    pub source: String,
    pub signed_up: u64,
    pub confirmed: u64,
    /// Includes declines that were taken back.
    pub declined: u64,
    pub hard_bounces: u64,
    pub soft_bounces: u64,
    pub complaints: u64,
}

impl std::ops::AddAssign<&Self> for SourceTotals {
    fn add_assign(&mut self, other: &Self) {
        self.signed_up += other.signed_up;
        self.confirmed += other.confirmed;
        self.declined += other.declined;
        self.hard_bounces += other.hard_bounces;
        self.soft_bounces += other.soft_bounces;
        self.complaints += other.complaints;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceDay {
    pub source: String,
    /// Since 1970.
    pub day: i64,
    pub funnel: Funnel,
}

/// How many members in one state want one category.
#[derive(Clone, PartialEq, Eq)]
pub struct Demand {
    pub category: String,
    pub us_state: String,
    pub members: u64,
}

fn funnel(row: &Row<'_>) -> Result<Funnel, Failure> {
    Ok(Funnel {
        signed_up: row.get("signed_up")?,
        mailed: row.get("confirmations_sent")?,
        confirmed: row.get("joined")?,
        declined: row.get("declined")?,
        lapsed: row.get("expired")?,
        left: row.get("departed")?,
    })
}
