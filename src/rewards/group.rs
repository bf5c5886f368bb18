//! Groups of referred members: forming them, which ones are rewarded, and what a void changes.

use crate::campaigns::qualify::{check_due, check_joined, check_referred};
use crate::campaigns::records::{terms, terms_columns};
use crate::domain::campaign::CampaignSlug;
use crate::domain::person::AccountId;
use crate::domain::reward::GroupState;
use crate::domain::time::Timestamp;
use crate::rewards::ended::{end_noted, end_noted_of};
use crate::rewards::ledger::LOCK;
use crate::rewards::open::{OpenedGroup, Opening, open_group};
use crate::rewards::place::{Referrer, referrer, reward};
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// The most groups that one step forms.
const FORMED_AT_ONCE: u32 = 20;

/// The outcome of a void.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Voided {
    /// `group` is the new state of their group, if they were in one. `reversed_cents` is what the referrer loses; `payout` is the external
    /// id of the unsettled payout for the group.
    Done {
        group: Option<GroupState>,
        reversed_cents: i64,
        payout: Option<String>,
    },
    /// They were voided before.
    Already,
    UnknownPerson,
    UnknownCampaign,
    /// No referrer is credited for them.
    NotReferred,
    /// They never took part in the campaign.
    NotInCampaign,
}

/// A referrer's members who wait for a group in a campaign, in the order groups are formed.
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

/// Forms some groups of the referrer who was noted first; returns whether there was anything to do.
pub(crate) async fn form_groups(sql: &mut dyn Sql, account: &AccountId, now: Timestamp) -> Result<bool, Failure> {
    let next = "SELECT referrer_id FROM regroupings ORDER BY id LIMIT 1";
    match sql.value(next, values![]).await? {
        Some(person) => form_groups_of(sql, person, account, now).await,
        None => Ok(false),
    }
}

/// Forms some groups of one referrer; returns whether there was anything to do. Across all campaigns, the group that was full first goes
/// first, so which groups are rewarded does not depend on when this runs.
pub(crate) async fn form_groups_of(
    sql: &mut dyn Sql,
    person: i64,
    account: &AccountId,
    now: Timestamp,
) -> Result<bool, Failure> {
    let noted = concat!(
        "SELECT g.id, g.campaign_id AS campaign, c.slug, ",
        terms_columns!(),
        " FROM regroupings g JOIN campaigns c ON c.id = g.campaign_id WHERE g.referrer_id = $1 ORDER BY g.campaign_id FOR UPDATE OF g"
    );
    let read = |row: &Row<'_>| Ok((row.get::<i64>("id")?, referrer(row, person)?));
    let (notes, of): (Vec<_>, Vec<_>) = sql.rows(noted, values![person], read).await?.into_iter().unzip();
    if notes.is_empty() {
        return Ok(false);
    }
    let of: Vec<_> = of.into_iter().flatten().collect();
    // Erasing a person locks their row: they earn before it, or not at all.
    let there = "SELECT 1 FROM people WHERE id = $1 AND erased_at IS NULL FOR UPDATE";
    let is_there = sql.exists(there, values![person]).await?;
    for _ in 0..FORMED_AT_ONCE {
        let next = if is_there { first_full(sql, &of).await? } else { None };
        let Some(next) = next else {
            // One by one, so that a note added meanwhile waits for the next step.
            for note in notes {
                sql.execute("DELETE FROM regroupings WHERE id = $1", values![note]).await?;
            }
            break;
        };
        form_group(sql, next, account, now).await?;
    }
    Ok(true)
}

/// The campaign in which a group was full first; none if no group is full.
async fn first_full<'a>(sql: &mut dyn Sql, of: &'a [Referrer]) -> Result<Option<&'a Referrer>, Failure> {
    let mut first: Option<(Timestamp, &Referrer)> = None;
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

/// Forms a group of those who have waited longest.
async fn form_group(
    sql: &mut dyn Sql,
    referrer: &Referrer,
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

/// Removes a person from what their referrer earns in a campaign, permanently.
pub struct VoidPerson {
    pub email_normalized: String,
    pub campaign: CampaignSlug,
    pub reason: String,
    pub who: String,
    pub now: Timestamp,
}

/// What is known about the person to void.
struct VoidedPerson {
    person: i64,
    account: Option<String>,
    referrer: Option<i64>,
    /// Their row in `qualifications`, its group, and whether they were voided before.
    qualification: Option<(i64, Option<i64>, bool)>,
    takes_part: bool,
}

impl Unit for VoidPerson {
    type Done = Voided;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Voided, Failure> {
        sql.lock(LOCK).await?;
        let campaign = concat!("SELECT c.id, ", terms_columns!(), " FROM campaigns c WHERE c.slug = $1");
        let read = |row: &Row<'_>| Ok((row.get::<i64>("id")?, terms(row)?));
        let found = sql.row(campaign, values![self.campaign.as_str()], read).await?;
        let Some((campaign, terms)) = found else { return Ok(Voided::UnknownCampaign) };
        let Some(known) = self.find(sql, campaign).await? else { return Ok(Voided::UnknownPerson) };
        if let Some(account) = &known.account {
            sql.about(&format!("account {account} in {}", self.campaign));
        }
        let group = match known.qualification {
            Some((_, _, true)) => return Ok(Voided::Already),
            Some((id, group, false)) => {
                let void = "UPDATE qualifications SET voided_at = $2, group_id = NULL WHERE id = $1";
                sql.execute(void, values![id, self.now.start_of_day()]).await?;
                group
            }
            None if known.referrer.is_none() => return Ok(Voided::NotReferred),
            None if !known.takes_part => return Ok(Voided::NotInCampaign),
            None => {
                let void = "INSERT INTO qualifications (campaign_id, person_id, referrer_id, voided_at) VALUES ($1, $2, $3, $4)
                            ON CONFLICT (campaign_id, person_id) DO NOTHING";
                let values = values![campaign, known.person, known.referrer, self.now.start_of_day()];
                // The person may be leaving right now and may have been counted first.
                if sql.execute(void, values).await? == 0 {
                    return Err(Failure::Overtaken);
                }
                None
            }
        };
        let (Some(group), Some(terms)) = (group, terms) else {
            return Ok(Voided::Done { group: None, reversed_cents: 0, payout: None });
        };
        let (who, why) = (&self.who, &self.reason);
        let opened = open_group(sql, group, Opening { campaign, terms, who, why, at: self.now }).await?;
        if let Some(account) = &opened.account {
            sql.about(&format!("account {account} in {}", self.campaign));
        }
        let OpenedGroup { state, reversed_cents, payout, .. } = opened;
        Ok(Voided::Done { group: Some(state), reversed_cents, payout })
    }
}

impl VoidPerson {
    async fn find(&self, sql: &mut dyn Sql, campaign: i64) -> Result<Option<VoidedPerson>, Failure> {
        let find = "SELECT p.id AS person, p.account, p.referrer_id, q.id, q.group_id, q.voided_at,
                        EXISTS (SELECT 1 FROM participations part WHERE part.campaign_id = $2 AND part.person_id = p.id) AS takes_part
                    FROM people p LEFT JOIN qualifications q ON q.person_id = p.id AND q.campaign_id = $2
                    WHERE p.email_normalized = $1";
        let read = |row: &Row<'_>| {
            let qualification = match row.get::<Option<i64>>("id")? {
                Some(id) => Some((id, row.get("group_id")?, row.get::<Option<Timestamp>>("voided_at")?.is_some())),
                None => None,
            };
            Ok(VoidedPerson {
                person: row.get("person")?,
                account: row.get("account")?,
                referrer: row.get("referrer_id")?,
                qualification,
                takes_part: row.get("takes_part")?,
            })
        };
        sql.row(find, values![&self.email_normalized, campaign], read).await
    }
}

/// Marks that everyone a person referred has been checked.
const ALL_CHECKED: i64 = i64::MAX;

/// Advances rewards: takes out somebody who no longer counts, then checks some people whose hold is over and, once all are checked, forms
/// some groups. Returns whether there may be more to do. `account` is for a referrer who has none yet.
pub struct StepRewards(pub AccountId, pub Timestamp);

impl Unit for StepRewards {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(account, now) = self;
        sql.lock(LOCK).await?;
        Ok(end_noted(sql, 1, *now).await? > 0
            || check_joined(sql, *now).await?
            || check_due(sql, *now).await?
            || form_groups(sql, account, *now).await?)
    }
}

/// The same for one referrer: takes out one of the people they referred, checks some of them, after the given id, or forms some of their groups once all are
/// checked (`after` is `ALL_CHECKED`). Returns where the next step begins; none if nothing is left.
pub struct StepReferrer {
    pub person: i64,
    pub after: i64,
    pub account: AccountId,
    pub now: Timestamp,
}

impl Unit for StepReferrer {
    type Done = Option<i64>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Option<i64>, Failure> {
        sql.lock(LOCK).await?;
        if end_noted_of(sql, self.person, self.now).await? {
            return Ok(Some(self.after));
        }
        if self.after != ALL_CHECKED {
            return Ok(Some(check_referred(sql, self.person, self.after, self.now).await?.unwrap_or(ALL_CHECKED)));
        }
        Ok(form_groups_of(sql, self.person, &self.account, self.now).await?.then_some(ALL_CHECKED))
    }
}
