//! Rewards: who counts for whom, groups, the ledger and payouts; as SQL.
//!
//! Whatever forms groups or moves money holds the lock `LOCK` until it is over, so that a referrer's groups are counted right. Those
//! who leave or withdraw do not wait for it: they only note whom they counted for.

pub mod group;
pub mod payout;
pub mod place;
pub mod qualify;
pub mod report;
pub mod settle;
pub mod standing;

pub use self::group::Voided;
use self::group::{form_groups, form_groups_of};
pub use self::payout::{BatchRecord, BatchStep, NextBatch, PayoutPage, WhichBatch};
use self::payout::{find_batch, find_payouts, next_batch, payouts_of, payouts_out};
pub(super) use self::place::{terms, terms_columns};
pub(super) use self::qualify::qualify_before_change;
use self::qualify::{check_due, check_joined, check_referred};
use self::report::{add_campaign, on_the_way, reviewed};
pub use self::settle::SettledPayouts;
use self::standing::{accounts, history_of, ledger_of, taxed};
pub(super) use self::standing::{forget_referrer, standing_of, waive};
use super::sql::{Failure, How, Sql, Unit, values};
use crate::domain::campaign::CampaignSlug;
use crate::domain::person::AccountId;
use crate::domain::reward::RewardAccount;
use crate::domain::reward::ledger::{LedgerEntry, LedgerKind, RewardHistory};
use crate::domain::reward::payout::PayoutRecord;
use crate::domain::reward::report::{CampaignRewards, OnTheWay};
use crate::domain::reward::review::ReviewedReferrer;
use crate::domain::time::Timestamp;

/// What everybody holds who forms groups or moves money.
const LOCK: &str = "rewards";

/// Who the ledger says wrote what follows from the rules by itself.
const BY_RULE: &str = "rules";

/// After everybody whom somebody referred.
const ALL_CHECKED: i64 = i64::MAX;

/// Takes rewards a step further: checks some people whose hold is over, or forms some groups once nobody is left to be checked.
/// Says whether there may be more to do. `account` is for a referrer who has none yet.
#[derive(Debug)]
pub struct StepRewards(pub AccountId, pub Timestamp);

impl Unit for StepRewards {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(account, now) = self;
        sql.lock(LOCK).await?;
        Ok(check_joined(sql, *now).await? || check_due(sql, *now).await? || form_groups(sql, account, *now).await?)
    }
}

/// The same for one referrer: checks some of those whom they referred, after that one, or forms some of their groups once
/// everybody was checked (`after` is `ALL_CHECKED`). Says where the next step begins; none where nothing is left.
#[derive(Debug)]
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
        if self.after != ALL_CHECKED {
            return Ok(Some(check_referred(sql, self.person, self.after, self.now).await?.unwrap_or(ALL_CHECKED)));
        }
        Ok(form_groups_of(sql, self.person, &self.account, self.now).await?.then_some(ALL_CHECKED))
    }
}

/// The lines of an account, oldest first.
#[derive(Debug)]
pub struct ListLedger(pub AccountId);

impl Unit for ListLedger {
    type Done = Vec<LedgerEntry>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<LedgerEntry>, Failure> {
        ledger_of(sql, &self.0).await
    }
}

/// All that is kept of a person's rewards besides where they stand.
#[derive(Debug)]
pub struct FindRewardHistory(pub i64, pub Option<AccountId>);

impl Unit for FindRewardHistory {
    type Done = RewardHistory;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<RewardHistory, Failure> {
        let Self(person, account) = self;
        history_of(sql, *person, account.as_ref()).await
    }
}

/// The accounts after that one, in their order.
#[derive(Debug)]
pub struct ListRewardAccounts(pub String, pub u32);

impl Unit for ListRewardAccounts {
    type Done = Vec<RewardAccount>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self(after, most) = self;
        accounts(sql, after, *most).await
    }
}

/// The accounts after that one that were paid something between two times, with what that was in cents.
#[derive(Debug)]
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
        taxed(sql, self.since, self.until, &self.after, self.most).await
    }
}

#[derive(Debug)]
pub struct FindBatch(pub WhichBatch);

impl Unit for FindBatch {
    type Done = Option<BatchRecord>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        find_batch(sql, self.0).await
    }
}

/// Referred members who take part and are in no group yet; of so many at the most.
#[derive(Debug)]
pub struct FindOnTheWay(pub u32);

impl Unit for FindOnTheWay {
    type Done = OnTheWay;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<OnTheWay, Failure> {
        on_the_way(sql, self.0).await
    }
}

/// Adds some more of a campaign's groups and lines to what was added up so far; repeat it until it is whole.
#[derive(Debug)]
pub struct AddUpCampaign(pub CampaignSlug, pub CampaignRewards);

impl Unit for AddUpCampaign {
    type Done = CampaignRewards;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<CampaignRewards, Failure> {
        let Self(campaign, so_far) = self;
        add_campaign(sql, campaign, *so_far).await
    }
}

/// The referrers after that person who have groups that are not paid, in the order of their ids.
#[derive(Debug)]
pub struct ListReviewedReferrers(pub i64);

impl Unit for ListReviewedReferrers {
    type Done = Vec<ReviewedReferrer>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        reviewed(sql, self.0).await
    }
}

/// What `begin_batch` would begin or go on with.
#[derive(Debug)]
pub struct FindNextBatch;

impl Unit for FindNextBatch {
    type Done = NextBatch;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<NextBatch, Failure> {
        next_batch(sql).await
    }
}

/// The file of a batch is written from now on: nothing is taken out of it any more.
#[derive(Debug)]
pub struct CloseBatch(pub i64, pub Timestamp);

impl Unit for CloseBatch {
    type Done = ();
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let Self(batch, now) = self;
        sql.lock(LOCK).await?;
        let close = "UPDATE payout_batches SET closed_at = coalesce(closed_at, $2) WHERE id = $1";
        sql.execute(close, values![*batch, *now]).await.map(|_| ())
    }
}

/// Notes that the file of a batch was written.
#[derive(Debug)]
pub struct NoteWritten(pub i64, pub Timestamp);

impl Unit for NoteWritten {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let Self(batch, now) = self;
        let note = "UPDATE payout_batches SET written_at = coalesce(written_at, $2) WHERE id = $1";
        sql.execute(note, values![*batch, *now]).await.map(|_| ())
    }
}

/// The payouts of a batch after that id, in their order, without those that were netted.
#[derive(Debug)]
pub struct ListPayouts(pub i64, pub i64);

impl Unit for ListPayouts {
    type Done = PayoutPage;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<PayoutPage, Failure> {
        let Self(batch, after) = self;
        payouts_of(sql, *batch, *after).await
    }
}

/// The payouts of these external ids, as far as there are any.
#[derive(Debug)]
pub struct FindPayouts(pub Vec<String>);

impl Unit for FindPayouts {
    type Done = Vec<PayoutRecord>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        find_payouts(sql, &self.0).await
    }
}

/// Payouts to an account that are not settled, and whose file may be out; the newest of more than anybody has.
#[derive(Debug)]
pub struct ListPayoutsOut(pub AccountId);

impl Unit for ListPayoutsOut {
    type Done = Vec<PayoutRecord>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        payouts_out(sql, &self.0).await
    }
}

/// Adds a line to the ledger.
async fn book(
    sql: &mut dyn Sql,
    account: &str,
    campaign: Option<i64>,
    (kind, cents): (LedgerKind, i64),
    (who, why): (&str, &str),
    now: Timestamp,
) -> Result<(), Failure> {
    let add = "INSERT INTO reward_ledger (account, campaign_id, kind, amount_cents, at, who, why) VALUES ($1, $2, $3, $4, $5, $6, $7)";
    sql.execute(add, values![account, campaign, kind.name(), cents, now, who, why]).await?;
    note_change(sql, account).await
}

/// What an account is due or paid changed, or whose it is: the next roll-up adds it up again. A row of its own, so that nobody waits.
async fn note_change(sql: &mut dyn Sql, account: &str) -> Result<(), Failure> {
    sql.execute("INSERT INTO account_changes (account) VALUES ($1)", values![account]).await.map(|_| ())
}

/// What an account is due, in cents.
async fn balance(sql: &mut dyn Sql, account: &str) -> Result<i64, Failure> {
    let sum = "SELECT CAST(coalesce(sum(amount_cents), 0) AS BIGINT) FROM reward_ledger WHERE account = $1";
    Ok(sql.row(sum, values![account], |row| row.get(0)).await?.unwrap_or(0))
}
