//! What a person earned: for their own page and for the operator, and what erasing them changes.

use std::collections::BTreeMap;

use crate::campaigns::qualify::takes_part;
use crate::campaigns::records::{terms, terms_columns};
use crate::domain::campaign::acceptance::Ended;
use crate::domain::person::{AccountId, Waiver};
use crate::domain::reward::RewardAccount;
use crate::domain::reward::ledger::{
    CampaignStanding, CountedEntry, LedgerEntry, LedgerKind, PayoutEntry, RewardHistory, RewardStanding,
};
use crate::domain::reward::payout::PayoutState;
use crate::domain::time::Timestamp;
use crate::rewards::ledger::{balance, book, note_change};
use crate::rewards::payout::paid_of;
use crate::rewards::place::rewarded;
use crate::rewards::settle::recall;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// The most lines read of one account.
const MOST_LINES: u32 = 5000;

/// What a person earned by referring others.
pub(crate) async fn standing_of(
    sql: &mut dyn Sql,
    person: i64,
    account: Option<&AccountId>,
) -> Result<RewardStanding, Failure> {
    let mut standing = RewardStanding::default();
    if let Some(account) = account {
        let unwritten = unwritten(sql, account.as_str()).await?;
        standing.due_cents = balance(sql, account.as_str()).await? + unwritten;
        (standing.out_cents, standing.paid_cents) = paid_of(sql, account.as_str()).await?;
        standing.out_cents -= unwritten;
    }
    let rewarded = rewarded(sql, person).await?;
    (standing.rewarded_groups, standing.rewarded_cents) = rewarded;
    let mut campaigns = BTreeMap::new();
    // Each campaign on its own: one may have more capped groups than we count. Reading one extra shows that there are more.
    let most = RewardStanding::MOST_COUNTED + 1;
    let groups = "
        SELECT c.id, (SELECT count(*) FROM (SELECT 1 FROM reward_groups g WHERE g.referrer_id = $1 AND g.campaign_id = c.id
                                            AND g.state = 'accrued' LIMIT $2) counted) AS rewarded,
               (SELECT count(*) FROM (SELECT 1 FROM reward_groups g WHERE g.referrer_id = $1 AND g.campaign_id = c.id
                                      AND g.state = 'capped' LIMIT $2) counted) AS capped
        FROM campaigns c WHERE c.hold_days IS NOT NULL";
    let read = |row: &Row<'_>| Ok((row.get::<i64>("id")?, row.get::<u32>("rewarded")?, row.get::<u32>("capped")?));
    for (campaign, groups, capped) in sql.rows(groups, values![person, most], read).await? {
        if groups + capped > 0 {
            campaigns.insert(campaign, Counts { groups, capped, ..Counts::default() });
        }
    }
    let waiting = "SELECT campaign_id, count(*) AS number_of FROM
                       (SELECT campaign_id FROM qualifications WHERE referrer_id = $1 AND group_id IS NULL AND voided_at IS NULL
                        AND qualified_at IS NOT NULL ORDER BY campaign_id, qualified_at LIMIT $2) counted GROUP BY campaign_id";
    let read = |row: &Row<'_>| Ok((row.get::<i64>("campaign_id")?, row.get("number_of")?));
    for (campaign, count) in sql.rows(waiting, values![person, most], read).await? {
        campaigns.entry(campaign).or_default().waiting = count;
    }
    // A range instead of `=`, in the order of `people_by_referrer`: if a person referred a large part of all people, PostgreSQL would
    // otherwise scan everyone to find the newest.
    let on_hold = concat!(
        "SELECT id, count(*) AS number_of, min(CASE WHEN since > active_at THEN since ELSE active_at END + hold_days * 86400000) AS first_until
         FROM (SELECT c.id, c.active_at, c.hold_days,
                   CASE WHEN c.counts_on = 'switched' AND part.hold_from > part.accepted_at THEN part.hold_from ELSE part.accepted_at END AS since
               FROM (SELECT id, joined_at FROM people WHERE referrer_id >= $1 AND referrer_id <= $1 AND state = 'member'
                     ORDER BY referrer_id DESC, id DESC LIMIT $2) p
                   JOIN participations part ON part.person_id = p.id AND part.state = 'accepted' AND part.accepted_at >= p.joined_at
                       AND NOT part.hold_checked
                   JOIN campaigns c ON c.id = part.campaign_id AND c.hold_days IS NOT NULL AND c.state IN ('active', 'closed')
                   LEFT JOIN acceptances a ON a.campaign_id = c.id AND a.person_id = p.id AND a.ended_at IS NULL
               WHERE ",
        takes_part!("c.counts_on", "a.status"),
        "        AND NOT EXISTS (SELECT 1 FROM qualifications q WHERE q.campaign_id = c.id AND q.person_id = p.id)) on_hold
         GROUP BY id"
    );
    let read = |row: &Row<'_>| Ok((row.get::<i64>("id")?, row.get("number_of")?, row.get("first_until")?));
    for (campaign, count, until) in sql.rows(on_hold, values![person, RewardStanding::MOST_LOOKED_AT], read).await? {
        let counts = campaigns.entry(campaign).or_default();
        (counts.on_hold, counts.on_hold_until) = (count, until);
    }
    for (campaign, counts) in campaigns {
        standing.campaigns.extend(counts.read(sql, campaign, rewarded).await?);
    }
    Ok(standing)
}

#[derive(Default)]
struct Counts {
    groups: u32,
    capped: u32,
    waiting: u32,
    on_hold: u32,
    on_hold_until: Option<Timestamp>,
}

impl Counts {
    /// `rewarded` is how many groups are rewarded across all campaigns, and their sum.
    async fn read(
        self,
        sql: &mut dyn Sql,
        campaign: i64,
        rewarded: (u32, i64),
    ) -> Result<Option<CampaignStanding>, Failure> {
        let find = concat!("SELECT c.slug, ", terms_columns!(), " FROM campaigns c WHERE c.id = $1");
        let read = |row: &Row<'_>| {
            let Some(terms) = terms(row)? else { return Ok(None) };
            Ok(Some(CampaignStanding {
                campaign: row.parsed("slug", |slug| slug.parse().ok())?,
                group_size: terms.group_size,
                reward_cents: terms.reward_cents(),
                max_groups: terms.max_groups,
                has_the_most: !terms.may_reward(rewarded.0, rewarded.1),
                on_hold: self.on_hold,
                on_hold_until: self.on_hold_until,
                waiting: self.waiting,
                groups: self.groups,
                capped: self.capped,
            }))
        };
        Ok(sql.row(find, values![campaign], read).await?.flatten())
    }
}

async fn ledger_of(sql: &mut dyn Sql, account: &AccountId) -> Result<Vec<LedgerEntry>, Failure> {
    let lines = "SELECT l.at, l.kind, l.amount_cents, c.slug, l.why FROM reward_ledger l LEFT JOIN campaigns c ON c.id = l.campaign_id
                 WHERE l.account = $1 ORDER BY l.id LIMIT $2";
    let read = |row: &Row<'_>| {
        let slug = row.get::<Option<&str>>("slug")?;
        Ok(LedgerEntry {
            at: row.get("at")?,
            kind: row.parsed("kind", LedgerKind::from_name)?,
            amount_cents: row.get("amount_cents")?,
            campaign: slug.map(|_| row.parsed("slug", |slug| slug.parse().ok())).transpose()?,
            why: row.get("why")?,
        })
    };
    sql.rows(lines, values![account.as_str(), MOST_LINES], read).await
}

/// Everything else kept about a person's rewards.
pub struct FindRewardHistory(pub i64, pub Option<AccountId>);

impl Unit for FindRewardHistory {
    type Done = RewardHistory;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<RewardHistory, Failure> {
        let account = self.1.as_ref();
        let mut history = RewardHistory::default();
        if let Some(account) = account {
            history.ledger = ledger_of(sql, account).await?;
            let payouts = "
                SELECT o.external_id, c.slug, o.amount_cents, o.group_count, o.state, o.reference, o.paid_at, o.reason, o.settled_at
                FROM payouts o JOIN campaigns c ON c.id = o.campaign_id WHERE o.account = $1 ORDER BY o.id LIMIT $2";
            let read = |row: &Row<'_>| {
                Ok(PayoutEntry {
                    external_id: row.get("external_id")?,
                    campaign: row.parsed("slug", |slug| slug.parse().ok())?,
                    amount_cents: row.get("amount_cents")?,
                    groups: row.get("group_count")?,
                    state: row.parsed("state", PayoutState::from_name)?,
                    reference: row.get("reference")?,
                    paid_at: row.get("paid_at")?,
                    reason: row.get("reason")?,
                    settled_at: row.get("settled_at")?,
                })
            };
            history.payouts = sql.rows(payouts, values![account.as_str(), MOST_LINES], read).await?;
        }
        let counted =
            "SELECT c.slug, q.qualified_at, q.voided_at, q.ended_on, q.ended_why FROM qualifications q JOIN campaigns c ON c.id = q.campaign_id
                       WHERE q.person_id = $1 ORDER BY q.id LIMIT $2";
        let read = |row: &Row<'_>| {
            Ok(CountedEntry {
                campaign: row.parsed("slug", |slug| slug.parse().ok())?,
                counted_at: row.get("qualified_at")?,
                voided_at: row.get("voided_at")?,
                ended_on: row.get("ended_on")?,
                ended_why: row.get::<Option<&str>>("ended_why")?.and_then(Ended::from_name),
            })
        };
        history.counted_in = sql.rows(counted, values![self.0, MOST_LINES], read).await?;
        Ok(history)
    }
}

/// An account with its sums; the column `paid` is what counts as paid.
fn account(row: &Row<'_>) -> Result<RewardAccount, Failure> {
    Ok(RewardAccount {
        account: AccountId::kept(row.get("account")?),
        email: row.get("email")?,
        groups: row.get("number_of")?,
        capped: row.get("capped")?,
        earned_cents: row.get("earned")?,
        due_cents: row.get("due")?,
        out_cents: row.get("waiting")?,
        paid_cents: row.get("paid")?,
    })
}

/// Columns of an account `a.account`, as [`account`] reads them.
macro_rules! account_columns {
    () => {
        "p.email,
         (SELECT count(*) FROM (SELECT 1 FROM reward_groups g WHERE g.referrer_id = p.id AND g.state = 'accrued' LIMIT 2000) x) AS number_of,
         (SELECT count(*) FROM (SELECT 1 FROM reward_groups g WHERE g.referrer_id = p.id AND g.state = 'capped' LIMIT 2000) x) AS capped,
         (SELECT CAST(coalesce(sum(l.amount_cents), 0) AS BIGINT) FROM reward_ledger l
          WHERE l.account = a.account AND l.kind IN ('accrual', 'reversal')) AS earned,
         (SELECT CAST(coalesce(sum(l.amount_cents), 0) AS BIGINT) FROM reward_ledger l WHERE l.account = a.account) AS due,
         (SELECT CAST(coalesce(sum(o.amount_cents), 0) AS BIGINT) FROM payouts o WHERE o.account = a.account AND o.state = 'out') AS waiting"
    };
}

/// The accounts after that one, in order.
pub struct ListRewardAccounts(pub String, pub u32);

impl Unit for ListRewardAccounts {
    type Done = Vec<RewardAccount>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let list = concat!(
            "SELECT a.account, ",
            account_columns!(),
            ", (SELECT CAST(coalesce(sum(o.amount_cents), 0) AS BIGINT) FROM payouts o WHERE o.account = a.account AND o.state = 'paid') AS paid
             FROM (SELECT DISTINCT account FROM reward_ledger WHERE account > $1 ORDER BY account LIMIT $2) a
                 LEFT JOIN people p ON p.account = a.account ORDER BY a.account"
        );
        sql.rows(list, values![&self.0, self.1], account).await
    }
}

/// The accounts after that one that were paid between two times, with the amount in cents.
pub struct ListPaidBetween {
    pub since: Timestamp,
    pub until: Timestamp,
    pub after: String,
    pub most: u32,
}

impl Unit for ListPaidBetween {
    type Done = Vec<RewardAccount>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let list = concat!(
            "SELECT a.account, a.paid, ",
            account_columns!(),
            " FROM (SELECT o.account, CAST(sum(o.amount_cents) AS BIGINT) AS paid FROM payouts o
                    WHERE o.state = 'paid' AND o.paid_at >= $1 AND o.paid_at < $2 AND o.account > $3
                    GROUP BY o.account ORDER BY o.account LIMIT $4) a
                 LEFT JOIN people p ON p.account = a.account ORDER BY a.account"
        );
        sql.rows(list, values![self.since, self.until, &self.after, self.most], account).await
    }
}

/// A referrer gives up what they are due; returns the amount in cents. If they do not waive it, or knew of less, the amount due is the
/// error. Their row is locked.
pub(crate) async fn waive(
    sql: &mut dyn Sql,
    person: i64,
    waiver: Option<&Waiver>,
    now: Timestamp,
) -> Result<Result<i64, i64>, Failure> {
    let Some(account) = account_of(sql, person).await? else { return Ok(Ok(0)) };
    let due = balance(sql, &account).await? + unwritten(sql, &account).await?;
    if due <= 0 {
        return Ok(Ok(0));
    }
    let Some(waiver) = waiver.filter(|waiver| due <= waiver.most_cents) else { return Ok(Err(due)) };
    recall(sql, &account, &waiver.by, now).await?;
    book(sql, &account, None, (LedgerKind::Reversal, -due), (&waiver.by, "waived"), now).await?;
    let waive =
        "UPDATE reward_groups SET state = 'waived' WHERE referrer_id = $1 AND state = 'accrued' AND payout_id IS NULL";
    sql.execute(waive, values![person]).await?;
    Ok(Ok(due))
}

async fn account_of(sql: &mut dyn Sql, person: i64) -> Result<Option<String>, Failure> {
    Ok(sql.value("SELECT account FROM people WHERE id = $1", values![person]).await?.flatten())
}

/// What is in a batch whose file is not yet written, and so is not being paid, in cents.
async fn unwritten(sql: &mut dyn Sql, account: &str) -> Result<i64, Failure> {
    let sum = "SELECT CAST(coalesce(sum(o.amount_cents), 0) AS BIGINT) FROM payouts o JOIN payout_batches b ON b.id = o.batch_id
               WHERE o.account = $1 AND o.state = 'out' AND b.closed_at IS NULL AND b.written_at IS NULL";
    Ok(sql.value(sum, values![account]).await?.unwrap_or(0))
}

/// Called when a person is erased: nothing links them to the ledger anymore, neither a payout nor an exact time (groups and voids keep only
/// their day). Groups that count toward the maximum stay. That the person counted for a referrer stays too, without the time.
pub(crate) async fn forget_referrer(sql: &mut dyn Sql, person: i64) -> Result<(), Failure> {
    // An overpayment is subtracted from what they earn if they come back.
    if let Some(account) = account_of(sql, person).await? {
        let owed = balance(sql, &account).await?.min(0).abs();
        let keep = "UPDATE referrers SET owed_cents = owed_cents + $2 WHERE person_id = $1";
        sql.execute(keep, values![person, owed]).await?;
        note_change(sql, &account).await?;
    }
    let cut =
        "UPDATE reward_groups SET payout_id = NULL, state = CASE state WHEN 'accrued' THEN 'settled' ELSE state END
               WHERE referrer_id = $1 AND state <> 'capped'";
    sql.execute(cut, values![person]).await?;
    sql.execute("UPDATE referrers SET rest_due = FALSE WHERE person_id = $1 AND rest_due", values![person]).await?;
    let own = "UPDATE qualifications SET qualified_at = qualified_at - qualified_at % 86400000 WHERE person_id = $1";
    sql.execute(own, values![person]).await.map(|_| ())
}
