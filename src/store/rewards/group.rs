//! Groups of referred members: forming them, which of them are rewarded, and what a void makes of them; as SQL.

use super::qualify::note_regrouping;
use super::{BY_RULE, LOCK, book};
use crate::domain::campaign::CampaignSlug;
use crate::domain::catalog::ReferralTerms;
use crate::domain::person::AccountId;
use crate::domain::reward::GroupState;
use crate::domain::reward::ledger::LedgerKind;
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, Row, Sql, Unit, values};

/// Groups that one step forms at the most.
const FORMED_AT_ONCE: u32 = 20;

/// What became of a void.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Voided {
    /// Of their group: none where they were in none. `reversed_cents` is what the referrer loses by it.
    Done {
        group: Option<GroupState>,
        reversed_cents: i64,
    },
    /// They were before.
    Already,
    UnknownPerson,
    UnknownCampaign,
    /// Nobody is credited for them.
    NotReferred,
}

/// Columns of a campaign's terms, as [`terms`] reads them.
macro_rules! terms_columns {
    () => {
        "c.reward_cents, c.group_size, c.max_groups, c.hold_days"
    };
}
pub(in crate::store) use terms_columns;

pub(in crate::store) fn terms(row: &Row<'_>) -> Result<Option<ReferralTerms>, Failure> {
    let Some(cents) = row.get::<Option<i64>>("reward_cents")? else { return Ok(None) };
    Ok(Some(ReferralTerms {
        reward_per_group: u32::try_from(cents / 100).unwrap_or(u32::MAX),
        group_size: row.get("group_size")?,
        max_groups: row.get("max_groups")?,
        hold_days: row.get("hold_days")?,
    }))
}

/// A referrer in one campaign.
struct Referrer<'a> {
    person: i64,
    campaign: i64,
    slug: &'a str,
    terms: ReferralTerms,
}

/// Those of a referrer who wait for a group in a campaign, in the order in which groups are formed.
macro_rules! waiting {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM qualifications WHERE referrer_id = $1 AND campaign_id = $2 AND group_id IS NULL AND voided_at IS NULL
             AND qualified_at IS NOT NULL ORDER BY qualified_at, person_id LIMIT $3"
        )
    };
}

/// Forms some groups of one referrer; says whether there was anything to do. Over all campaigns the group that was full first comes
/// first: which of them are rewarded does not depend on when this is done.
pub(super) async fn form_groups(sql: &mut dyn Sql, account: &AccountId, now: Timestamp) -> Result<bool, Failure> {
    let next = "SELECT referrer_id FROM regroupings ORDER BY id LIMIT 1";
    let Some(person) = sql.row(next, values![], |row| row.get::<i64>(0)).await? else { return Ok(false) };
    let noted = concat!(
        "SELECT g.id, g.campaign_id, c.slug, ",
        terms_columns!(),
        " FROM regroupings g JOIN campaigns c ON c.id = g.campaign_id WHERE g.referrer_id = $1 ORDER BY g.campaign_id FOR UPDATE OF g"
    );
    let read = |row: &Row<'_>| {
        Ok((row.get::<i64>("id")?, row.get::<i64>("campaign_id")?, row.get::<String>("slug")?, terms(row)?))
    };
    let noted = sql.rows(noted, values![person], read).await?;
    let of = noted.iter().filter_map(|(_, campaign, slug, terms)| {
        Some(Referrer { person, campaign: *campaign, slug, terms: (*terms)? })
    });
    let of: Vec<_> = of.collect();
    // Whoever is erased holds their row: they earn before that or not at all.
    let there = "SELECT 1 FROM people WHERE id = $1 AND erased_at IS NULL FOR UPDATE";
    let is_there = sql.row(there, values![person], |_| Ok(())).await?.is_some();
    for _ in 0..FORMED_AT_ONCE {
        let next = if is_there { first_full(sql, &of).await? } else { None };
        let Some(next) = next else {
            // One by one: who is noted meanwhile is looked at in the next step.
            for (id, ..) in &noted {
                sql.execute("DELETE FROM regroupings WHERE id = $1", values![*id]).await?;
            }
            break;
        };
        form_group(sql, next, account, now).await?;
    }
    Ok(true)
}

/// In which of these campaigns a group was full first; none where no group is.
async fn first_full<'a>(sql: &mut dyn Sql, of: &'a [Referrer<'a>]) -> Result<Option<&'a Referrer<'a>>, Failure> {
    let mut first: Option<(Timestamp, &Referrer<'_>)> = None;
    for referrer in of {
        let Referrer { person, campaign, terms, .. } = referrer;
        let full = concat!(
            "SELECT count(*) AS number_of, max(qualified_at) AS full_at FROM (",
            waiting!("qualified_at"),
            ") waiting"
        );
        let read = |row: &Row<'_>| Ok((row.get::<u32>("number_of")?, row.get::<Option<Timestamp>>("full_at")?));
        let found = sql.row(full, values![*person, *campaign, terms.group_size], read).await?;
        if let Some((count, Some(full_at))) = found
            && count == terms.group_size
            && first.is_none_or(|(at, _)| full_at < at)
        {
            first = Some((full_at, referrer));
        }
    }
    Ok(first.map(|(_, referrer)| referrer))
}

/// Forms a group of those who wait longest.
async fn form_group(
    sql: &mut dyn Sql,
    referrer: &Referrer<'_>,
    account: &AccountId,
    now: Timestamp,
) -> Result<(), Failure> {
    let Referrer { person, campaign, terms, .. } = referrer;
    let add =
        "INSERT INTO reward_groups (referrer_id, campaign_id, state, formed_at) VALUES ($1, $2, $3, $4) RETURNING id";
    let values = values![*person, *campaign, GroupState::Capped.name(), now.start_of_day()];
    let group = sql.insert(add, values).await?.ok_or(Failure::Overtaken)?;
    let fill = concat!("UPDATE qualifications SET group_id = $4 WHERE id IN (", waiting!("id"), ")");
    sql.execute(fill, values![*person, *campaign, terms.group_size, group]).await?;
    reward(sql, group, referrer, account, now).await.map(|_| ())
}

/// Rewards a group that is worth nothing so far, if its referrer may be rewarded for another one; says whether it did.
async fn reward(
    sql: &mut dyn Sql,
    group: i64,
    referrer: &Referrer<'_>,
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
    let account: Option<String> = sql.row(name, values![referrer.person, account.as_str()], |row| row.get(0)).await?;
    let account = account.ok_or(Failure::Overtaken)?;
    let why = format!("a group of {} in {}", referrer.terms.group_size, referrer.slug);
    let earned = (LedgerKind::Accrual, referrer.terms.reward_cents());
    book(sql, &account, Some(referrer.campaign), earned, (BY_RULE, &why), now).await?;
    Ok(true)
}

/// The groups that a referrer is rewarded for over all campaigns, and their sum.
async fn rewarded(sql: &mut dyn Sql, person: i64) -> Result<(u32, i64), Failure> {
    let count = "SELECT rewarded_groups, rewarded_cents FROM referrers WHERE person_id = $1";
    let read = |row: &Row<'_>| Ok((row.get("rewarded_groups")?, row.get("rewarded_cents")?));
    Ok(sql.row(count, values![person], read).await?.unwrap_or_default())
}

async fn count_rewarded(sql: &mut dyn Sql, person: i64, groups: i64, cents: i64) -> Result<(), Failure> {
    let count = "INSERT INTO referrers (person_id, rewarded_groups, rewarded_cents) VALUES ($1, $2, $3)
                 ON CONFLICT (person_id) DO UPDATE SET rewarded_groups = referrers.rewarded_groups + excluded.rewarded_groups,
                     rewarded_cents = referrers.rewarded_cents + excluded.rewarded_cents";
    sql.execute(count, values![person, groups, cents]).await.map(|_| ())
}

async fn set_state(sql: &mut dyn Sql, group: i64, state: GroupState) -> Result<(), Failure> {
    sql.execute("UPDATE reward_groups SET state = $2 WHERE id = $1", values![group, state.name()]).await.map(|_| ())
}

pub(super) struct VoidPerson {
    pub email_normalized: String,
    pub campaign: CampaignSlug,
    pub reason: String,
    pub who: String,
    pub now: Timestamp,
}

/// What is known of somebody who is to be voided.
struct VoidedPerson {
    person: i64,
    referrer: Option<i64>,
    /// Their row of `qualifications`, its group and whether they were voided before.
    qualification: Option<(i64, Option<i64>, bool)>,
}

impl Unit for VoidPerson {
    type Done = Voided;

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Voided, Failure> {
        sql.lock(LOCK).await?;
        let campaign = concat!("SELECT c.id, ", terms_columns!(), " FROM campaigns c WHERE c.slug = $1");
        let read = |row: &Row<'_>| Ok((row.get::<i64>("id")?, terms(row)?));
        let found = sql.row(campaign, values![self.campaign.as_str()], read).await?;
        let Some((campaign, terms)) = found else { return Ok(Voided::UnknownCampaign) };
        let Some(known) = self.find(sql, campaign).await? else { return Ok(Voided::UnknownPerson) };
        let group = match known.qualification {
            Some((_, _, true)) => return Ok(Voided::Already),
            Some((id, group, false)) => {
                let void = "UPDATE qualifications SET voided_at = $2, void_reason = $3, group_id = NULL WHERE id = $1";
                sql.execute(void, values![id, self.now.start_of_day(), &self.reason]).await?;
                group
            }
            None if known.referrer.is_none() => return Ok(Voided::NotReferred),
            None => {
                let void = "INSERT INTO qualifications (campaign_id, person_id, referrer_id, voided_at, void_reason)
                            VALUES ($1, $2, $3, $4, $5)";
                let values = values![campaign, known.person, known.referrer, self.now.start_of_day(), &self.reason];
                sql.execute(void, values).await?;
                None
            }
        };
        let (Some(group), Some(terms)) = (group, terms) else {
            return Ok(Voided::Done { group: None, reversed_cents: 0 });
        };
        self.open_group(sql, group, campaign, terms).await
    }
}

impl VoidPerson {
    async fn find(&self, sql: &mut dyn Sql, campaign: i64) -> Result<Option<VoidedPerson>, Failure> {
        let find = "SELECT p.id AS person, p.referrer_id, q.id, q.group_id, q.voided_at
                    FROM people p LEFT JOIN qualifications q ON q.person_id = p.id AND q.campaign_id = $2
                    WHERE p.email_normalized = $1";
        let read = |row: &Row<'_>| {
            let qualification = match row.get::<Option<i64>>("id")? {
                Some(id) => Some((id, row.get("group_id")?, row.get::<Option<Timestamp>>("voided_at")?.is_some())),
                None => None,
            };
            Ok(VoidedPerson { person: row.get("person")?, referrer: row.get("referrer_id")?, qualification })
        };
        sql.row(find, values![&self.email_normalized, campaign], read).await
    }

    /// Lets the others of a group count again; what it earned is reversed, and where it was not paid its place goes to another.
    async fn open_group(
        &self,
        sql: &mut dyn Sql,
        group: i64,
        campaign: i64,
        terms: ReferralTerms,
    ) -> Result<Voided, Failure> {
        let find = "SELECT g.referrer_id, g.state, g.payout_id, p.account FROM reward_groups g JOIN people p ON p.id = g.referrer_id
                    WHERE g.id = $1 FOR UPDATE OF p";
        let read = |row: &Row<'_>| {
            let is_paid = row.get::<Option<i64>>("payout_id")?.is_some();
            let state = row.parsed("state", GroupState::from_name)?;
            Ok((row.get::<i64>("referrer_id")?, state, is_paid, row.get::<Option<String>>("account")?))
        };
        let (person, before, is_paid, account) =
            sql.row(find, values![group], read).await?.ok_or(Failure::Overtaken)?;
        let after = match before {
            GroupState::Accrued if is_paid => GroupState::Reversed,
            GroupState::Accrued | GroupState::Capped => GroupState::Dissolved,
            // Nobody earns by it any more.
            other => return Ok(Voided::Done { group: Some(other), reversed_cents: 0 }),
        };
        if let Some(account) = &account {
            sql.about(&format!("{account} in {}", self.campaign));
        }
        set_state(sql, group, after).await?;
        sql.execute("UPDATE qualifications SET group_id = NULL WHERE group_id = $1", values![group]).await?;
        let mut reversed_cents = 0;
        if let (GroupState::Accrued, Some(account)) = (before, &account) {
            reversed_cents = terms.reward_cents();
            let reversal = (LedgerKind::Reversal, -reversed_cents);
            book(sql, account, Some(campaign), reversal, (&self.who, &self.reason), self.now).await?;
            if after == GroupState::Dissolved {
                count_rewarded(sql, person, -1, -reversed_cents).await?;
                move_up(sql, person, account, self.now).await?;
            }
        }
        note_regrouping(sql, person, campaign).await?;
        Ok(Voided::Done { group: Some(after), reversed_cents })
    }
}

/// Rewards the capped groups of a referrer for whom there is room now, oldest first.
async fn move_up(sql: &mut dyn Sql, person: i64, account: &str, now: Timestamp) -> Result<(), Failure> {
    let account = AccountId::kept(account);
    loop {
        let (groups, cents) = rewarded(sql, person).await?;
        // The oldest of each campaign whose terms leave room.
        let next = concat!(
            "SELECT g.id, c.id AS campaign, c.slug, ",
            terms_columns!(),
            " FROM campaigns c JOIN reward_groups g ON g.id =
                  (SELECT min(x.id) FROM reward_groups x WHERE x.referrer_id = $1 AND x.campaign_id = c.id AND x.state = 'capped')
              WHERE c.hold_days IS NOT NULL AND c.max_groups > $2 AND $3 + c.reward_cents <= c.reward_cents * c.max_groups
              ORDER BY g.id LIMIT 1"
        );
        let read = |row: &Row<'_>| {
            Ok((row.get::<i64>("id")?, row.get::<i64>("campaign")?, row.get::<String>("slug")?, terms(row)?))
        };
        let found = sql.row(next, values![person, groups, cents], read).await?;
        let Some((group, campaign, slug, Some(terms))) = found else { return Ok(()) };
        let referrer = Referrer { person, campaign, slug: &slug, terms };
        if !reward(sql, group, &referrer, &account, now).await? {
            return Ok(());
        }
    }
}
