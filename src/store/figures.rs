//! Figures for the operator: rolled up step by step from what happened, so that asking costs the same at any size; as SQL.

use std::collections::BTreeMap;
use std::time::Duration;

use super::sources::source_name;
use super::sql::{Failure, Row, Sql, Unit, values};
use crate::domain::catalog::category::CategorySet;
use crate::domain::mail::budget::day_of;
use crate::domain::partner::name::PartnerId;
use crate::domain::referral::ReferralCode;
use crate::domain::time::Timestamp;

/// Changes of members, and sign-ups, that one step takes: few enough that a sign-up which waits for it does not notice.
const FIGURES_BATCH: u32 = 500;

/// A sign-up is rolled up once it is this old: until then another node may still be writing one with a smaller id.
const SETTLED_AFTER: Duration = Duration::from_secs(60);

/// The day of a row's `created_at`.
macro_rules! day {
    () => {
        "created_at / 86400000"
    };
}

/// How far the sign-ups of some `source_days` got, as [`funnel`] reads it.
macro_rules! funnel_columns {
    () => {
        "CAST(sum(signed_up) AS BIGINT) AS signed_up, CAST(sum(confirmations_sent) AS BIGINT) AS confirmations_sent,
         CAST(sum(joined) AS BIGINT) AS joined, CAST(sum(declined) AS BIGINT) AS declined,
         CAST(sum(expired) AS BIGINT) AS expired, CAST(sum(departed) AS BIGINT) AS departed"
    };
}

/// What is not rolled up yet, as a part of `FROM`.
macro_rules! recent_sign_ups {
    () => {
        "sign_ups s WHERE s.id > (SELECT sign_up_id FROM rollup WHERE id = 1)"
    };
}

area! {
    /// Figures for the operator, and how they come about.
    FigureStore {
        /// Takes a part of what happened into the figures; says whether there may be more. Any node may do so at any time.
        write roll_up(now: Timestamp) -> bool = RollUp { now };

        /// Whether something that happened is not in the figures and should be.
        read are_figures_behind(now: Timestamp) -> bool {
            |sql| {
                let behind = concat!(
                    "SELECT EXISTS (SELECT 1 FROM member_changes) OR EXISTS (SELECT 1 FROM ",
                    recent_sign_ups!(),
                    " AND s.created_at < $1)"
                );
                let settled = now.minus(SETTLED_AFTER);
                Ok(sql.row(behind, values![settled], |row| row.get(0)).await?.unwrap_or(false))
            }
        };

        /// What each source did on each day since that one, in the order of days.
        read source_days_since(day: i64) -> Vec<SourceDay> {
            |sql| {
                let days = concat!("SELECT ", source_name!("partner_id"), " AS source, day, ", funnel_columns!(),
                                   " FROM source_days WHERE day >= $1 GROUP BY partner_id, day ORDER BY day, source");
                let mut days = sql.rows(days, values![*day], source_day).await?;
                let recent = concat!("SELECT ", source_name!("s.partner_id"), " AS source, s.", day!(), " AS day, count(*) AS signed_up FROM ",
                                     recent_sign_ups!(), " AND s.", day!(), " >= $1 GROUP BY s.partner_id, s.", day!(),
                                     " ORDER BY day, source");
                let signed_up = |row: &Row<'_>| {
                    let funnel = Funnel { signed_up: row.get("signed_up")?, ..Funnel::default() };
                    Ok(SourceDay { source: row.get("source")?, day: row.get("day")?, funnel })
                };
                days.extend(sql.rows(recent, values![*day], signed_up).await?);
                Ok(days)
            }
        };

        /// What each source did since that day, all days together.
        read sources_since(day: i64) -> Vec<(String, Funnel)> {
            |sql| {
                let sources = concat!("SELECT ", source_name!("partner_id"), " AS source, ", funnel_columns!(),
                                      " FROM source_days WHERE day >= $1 GROUP BY partner_id");
                let source = |row: &Row<'_>| Ok((row.get::<String>("source")?, funnel(row)?));
                let mut sources: BTreeMap<_, _> = sql.rows(sources, values![*day], source).await?.into_iter().collect();
                let recent = concat!("SELECT ", source_name!("s.partner_id"), " AS source, count(*) AS signed_up FROM ",
                                     recent_sign_ups!(), " AND s.", day!(), " >= $1 GROUP BY s.partner_id");
                let signed_up = |row: &Row<'_>| Ok((row.get::<String>("source")?, row.get::<u64>("signed_up")?));
                let recent = sql.rows(recent, values![*day], signed_up).await?;
                for (source, signed_up) in recent {
                    sources.entry(source).or_default().signed_up += signed_up;
                }
                Ok(sources.into_iter().collect())
            }
        };

        /// What came of the sign-ups and the mail of the form and of each partner since the beginning, in the order in which they
        /// came. No figure ever falls.
        read source_totals() -> Vec<SourceTotals> {
            |sql| {
                let totals = "
                    SELECT s.name AS source, d.* FROM
                        (SELECT CAST(0 AS BIGINT) AS id, '' AS name UNION ALL SELECT id, name FROM partners) s LEFT JOIN
                        (SELECT coalesce(partner_id, 0) AS id, CAST(sum(signed_up) AS BIGINT) AS signed_up,
                                CAST(sum(joined) AS BIGINT) AS joined,
                                CAST(sum(declined + declines_withdrawn) AS BIGINT) AS declined,
                                CAST(sum(bounced) AS BIGINT) AS bounced, CAST(sum(soft_bounced) AS BIGINT) AS soft_bounced,
                                CAST(sum(complained) AS BIGINT) AS complained
                         FROM source_days GROUP BY partner_id) d ON d.id = s.id
                    ORDER BY s.id";
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
                let mut totals = sql.rows(totals, values![], read).await?;
                let recent = concat!("SELECT ", source_name!("s.partner_id"), " AS source, count(*) AS signed_up FROM ",
                                     recent_sign_ups!(), " GROUP BY s.partner_id");
                let signed_up = |row: &Row<'_>| Ok((row.get::<String>("source")?, row.get::<u64>("signed_up")?));
                for (source, signed_up) in sql.rows(recent, values![], signed_up).await? {
                    totals.iter_mut().filter(|totals| totals.source == source).for_each(|totals| totals.signed_up += signed_up);
                }
                Ok(totals)
            }
        };

        /// How many members named each category when they joined, by state; the category '' counts them all.
        read demand() -> Vec<Demand> {
            |sql| {
                let demand = "SELECT category, us_state, members FROM demand WHERE members > 0 ORDER BY category, us_state";
                let read = |row: &Row<'_>| {
                    let (category, us_state) = (row.get("category")?, row.get("us_state")?);
                    Ok(Demand { category, us_state, members: row.get("members")? })
                };
                sql.rows(demand, values![], read).await
            }
        };

        /// Those who are credited for the most members.
        read top_referrers(most: u32) -> Vec<(ReferralCode, u64)> {
            |sql| {
                let top = "SELECT p.code, r.members FROM referrers r JOIN people p ON p.id = r.person_id
                           WHERE r.members > 0 ORDER BY r.members DESC, r.person_id LIMIT $1";
                sql.rows(top, values![*most], |row| Ok((row.get("code")?, row.get("members")?))).await
            }
        };
    }
}

/// How far sign-ups got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Funnel {
    pub signed_up: u64,
    /// Mails that left and ask to be confirmed.
    pub mailed: u64,
    /// People who became members.
    pub confirmed: u64,
    pub declined: u64,
    pub lapsed: u64,
    /// Members who left; they came through this source once.
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

/// What came of a source since the beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceTotals {
    pub source: String,
    pub signed_up: u64,
    pub confirmed: u64,
    /// Those that were taken back included.
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

/// What a source did on a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceDay {
    pub source: String,
    pub day: i64,
    pub funnel: Funnel,
}

/// A cell of what members want.
#[derive(Debug, Clone, PartialEq, Eq)]
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

fn source_day(row: &Row<'_>) -> Result<SourceDay, Failure> {
    Ok(SourceDay { source: row.get("source")?, day: row.get("day")?, funnel: funnel(row)? })
}

struct RollUp {
    now: Timestamp,
}

/// Somebody who joined or left.
struct MemberChange {
    change: i64,
    day: i64,
    source: Option<PartnerId>,
    key: Option<String>,
    us_state: String,
    categories: CategorySet,
    referrer: Option<i64>,
}

/// A sign-up that is to be counted.
struct NewRow {
    id: i64,
    created_at: Timestamp,
    source: Option<PartnerId>,
    key: Option<String>,
}

/// Additions to the figures, in an order in which two who add never wait for each other in a circle.
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

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        // Whoever else is at it does it for us.
        if !sql.try_lock("roll-up").await? {
            return Ok(false);
        }
        // Whoever deletes a sign-up counts it, unless this has: one waits for the other.
        sql.row("SELECT sign_up_id FROM rollup WHERE id = 1 FOR UPDATE", values![], |_| Ok(())).await?;
        let mut additions = Additions::default();
        let changes = take_changes(sql).await?;
        changes.iter().for_each(|change| additions.add_change(change));
        let (seen, last) = self.count_sign_ups(sql, &mut additions).await?;
        if let Some(last) = last {
            sql.execute("UPDATE rollup SET sign_up_id = $1 WHERE id = 1", values![last]).await?;
        }
        additions.write(sql).await?;
        Ok(changes.len() as u64 == u64::from(FIGURES_BATCH) || seen == u64::from(FIGURES_BATCH))
    }
}

impl RollUp {
    /// Adds the sign-ups that follow; says how many were looked at, and the last that was counted.
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
        // What a clock that was far ahead wrote is not waited for.
        let unsettled = self.now.minus(SETTLED_AFTER)..self.now.plus(10 * SETTLED_AFTER);
        for row in rows.into_iter().take_while(|row| !unsettled.contains(&row.created_at)) {
            last = Some(row.id);
            additions.sources.entry((row.source, day_of(row.created_at))).or_default()[0] += 1;
            if let Some(key) = row.key {
                additions.keys.entry(key).or_default()[0] += 1;
            }
        }
        // None of those that are not settled will be by the next look.
        Ok((if last.is_none() { 0 } else { seen }, last))
    }
}

/// By category and state.
pub(super) type DemandChanges = BTreeMap<(String, String), i64>;

/// What somebody wants, once more or once less.
pub(super) fn add_wishes(demand: &mut DemandChanges, us_state: &str, categories: CategorySet, change: i64) {
    for category in categories.iter().map(|category| category.slug()).chain([""]) {
        *demand.entry((category.to_owned(), us_state.to_owned())).or_default() += change;
    }
}

/// In the order of their names, so that two who add never wait for each other in a circle.
pub(super) async fn add_demand(sql: &mut dyn Sql, demand: &DemandChanges) -> Result<(), Failure> {
    for ((category, us_state), change) in demand {
        let add = "INSERT INTO demand (category, us_state, members) VALUES ($1, $2, $3)
                   ON CONFLICT (category, us_state) DO UPDATE SET members = demand.members + excluded.members";
        sql.execute(add, values![category, us_state, *change]).await?;
    }
    Ok(())
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

    async fn write(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        add_demand(sql, &self.demand).await?;
        for (person, change) in &self.referrers {
            let add = "INSERT INTO referrers (person_id, members) VALUES ($1, $2)
                       ON CONFLICT (person_id) DO UPDATE SET members = referrers.members + excluded.members";
            sql.execute(add, values![*person, *change]).await?;
        }
        for (key, [signed_up, confirmed]) in &self.keys {
            let add = "UPDATE api_keys SET signed_up = signed_up + $2, confirmed = confirmed + $3 WHERE id = $1";
            sql.execute(add, values![key, *signed_up, *confirmed]).await?;
        }
        // Last: others wait for these rows.
        for ((source, day), [signed_up, joined, departed]) in &self.sources {
            let add = "INSERT INTO source_days (partner_id, day, signed_up, joined, departed) VALUES ($1, $2, $3, $4, $5)
                       ON CONFLICT (coalesce(partner_id, 0), day) DO UPDATE SET signed_up = source_days.signed_up + excluded.signed_up,
                           joined = source_days.joined + excluded.joined, departed = source_days.departed + excluded.departed";
            sql.execute(add, values![*source, *day, *signed_up, *joined, *departed]).await?;
        }
        Ok(())
    }
}
