//! Rewards: who counts for whom, groups, the ledger and payouts; as SQL.
//!
//! Whatever forms groups or moves money holds the lock `LOCK` until it is over, so that a referrer's groups are counted right. Those
//! who leave or withdraw do not wait for it: they only note whom they counted for.

mod group;
mod payout;
mod place;
mod qualify;
mod report;
mod settle;
mod standing;

pub use self::group::Voided;
use self::group::{VoidPerson, form_groups, form_groups_of};
pub use self::payout::{BatchRecord, BatchStep, NextBatch, PayoutPage, WhichBatch};
use self::payout::{BeginBatch, FillBatch, find_batch, find_payouts, next_batch, payouts_of, payouts_out};
pub(super) use self::place::{terms, terms_columns};
pub(super) use self::qualify::qualify_before_change;
use self::qualify::{check_due, check_joined, check_referred};
use self::report::{add_campaign, on_the_way, reviewed};
use self::settle::SettlePayouts;
pub use self::settle::SettledPayouts;
use self::standing::{accounts, history_of, ledger_of, taxed};
pub(super) use self::standing::{forget_referrer, standing_of, waive};
use super::sql::{Failure, Sql, values};
use crate::domain::campaign::CampaignSlug;
use crate::domain::person::AccountId;
use crate::domain::reward::RewardAccount;
use crate::domain::reward::ledger::{LedgerEntry, LedgerKind, RewardHistory};
use crate::domain::reward::payout::PayoutRecord;
use crate::domain::reward::report::{CampaignRewards, OnTheWay};
use crate::domain::reward::review::ReviewedReferrer;
use crate::domain::reward::settlement::Settlement;
use crate::domain::time::Timestamp;

/// What everybody holds who forms groups or moves money.
const LOCK: &str = "rewards";

/// Who the ledger says wrote what follows from the rules by itself.
const BY_RULE: &str = "rules";

/// After everybody whom somebody referred.
const ALL_CHECKED: i64 = i64::MAX;

area! {
    /// Groups of referred members, the ledger of their rewards, and payouts.
    RewardStore {
        /// Takes rewards a step further: checks some people whose hold is over, or forms some groups once nobody is left to be checked.
        /// Says whether there may be more to do. `account` is for a referrer who has none yet.
        transact step_rewards(account: AccountId, now: Timestamp) -> bool {
            |sql| {
                sql.lock(LOCK).await?;
                Ok(check_joined(sql, *now).await? || check_due(sql, *now).await? || form_groups(sql, account, *now).await?)
            }
        };

        /// The same for one referrer: checks some of those whom they referred, after that one, or forms some of their groups once
        /// everybody was checked (`after` is `ALL_CHECKED`). Says where the next step begins; none where nothing is left.
        transact step_referrer(person: i64, after: i64, account: AccountId, now: Timestamp) -> Option<i64> {
            |sql| {
                sql.lock(LOCK).await?;
                if *after != ALL_CHECKED {
                    return Ok(Some(check_referred(sql, *person, *after, *now).await?.unwrap_or(ALL_CHECKED)));
                }
                Ok(form_groups_of(sql, *person, account, *now).await?.then_some(ALL_CHECKED))
            }
        };

        /// Takes somebody out of what their referrer earns in a campaign, for ever.
        write void_person(email_normalized: String, campaign: CampaignSlug, reason: String, who: String, now: Timestamp) -> Voided
            = VoidPerson { email_normalized, campaign, reason, who, now };

        /// The lines of an account, oldest first.
        scan ledger_of(account: AccountId) -> Vec<LedgerEntry> {
            |sql| ledger_of(sql, account).await
        };

        /// All that is kept of a person's rewards besides where they stand.
        scan reward_history(person: i64, account: Option<AccountId>) -> RewardHistory {
            |sql| history_of(sql, *person, account.as_ref()).await
        };

        /// The accounts after that one, in their order.
        scan reward_accounts(after: String, most: u32) -> Vec<RewardAccount> {
            |sql| accounts(sql, after, *most).await
        };

        /// The accounts after that one that were paid something between two times, with what that was in cents.
        scan paid_between(since: Timestamp, until: Timestamp, after: String, most: u32) -> Vec<RewardAccount> {
            |sql| taxed(sql, *since, *until, after, *most).await
        };

        scan find_batch(which: WhichBatch) -> Option<BatchRecord> {
            |sql| find_batch(sql, *which).await
        };

        /// Referred members who take part and are in no group yet; of so many at the most.
        scan on_the_way(most: u32) -> OnTheWay {
            |sql| on_the_way(sql, *most).await
        };

        /// Adds some more of a campaign's groups and lines to what was added up so far; repeat it until it is whole.
        scan campaign_rewards(campaign: CampaignSlug, so_far: CampaignRewards) -> CampaignRewards {
            |sql| add_campaign(sql, campaign, *so_far).await
        };

        /// The referrers after that person who have groups that are not paid, in the order of their ids.
        scan reviewed_referrers(after: i64) -> Vec<ReviewedReferrer> {
            |sql| reviewed(sql, *after).await
        };

        /// What `begin_batch` would begin or go on with.
        scan next_batch() -> NextBatch {
            |sql| next_batch(sql).await
        };

        /// Begins a batch if something is due, or goes on with one whose file was never written; none if nothing is due.
        write begin_batch(who: String, now: Timestamp) -> Option<i64> = BeginBatch { who, now };

        /// Puts what some referrers are due into a batch.
        write fill_batch(batch: i64, who: String, now: Timestamp) -> BatchStep = FillBatch { batch, who, now };

        /// The file of a batch is written from now on: nothing is taken out of it any more.
        transact close_batch(batch: i64, now: Timestamp) -> () {
            |sql| {
                sql.lock(LOCK).await?;
                let close = "UPDATE payout_batches SET closed_at = coalesce(closed_at, $2) WHERE id = $1";
                sql.execute(close, values![*batch, *now]).await.map(|_| ())
            }
        };

        /// Notes that the file of a batch was written.
        write note_written(batch: i64, now: Timestamp) -> () {
            |sql| {
                let note = "UPDATE payout_batches SET written_at = coalesce(written_at, $2) WHERE id = $1";
                sql.execute(note, values![*batch, *now]).await.map(|_| ())
            }
        };

        /// The payouts of a batch after that id, in their order, without those that were netted.
        scan payouts_of(batch: i64, after: i64) -> PayoutPage {
            |sql| payouts_of(sql, *batch, *after).await
        };

        /// The payouts of these external ids, as far as there are any.
        scan find_payouts(external_ids: Vec<String>) -> Vec<PayoutRecord> {
            |sql| find_payouts(sql, external_ids).await
        };

        /// Payouts to an account that are not settled, and whose file may be out; the newest of more than anybody has.
        scan payouts_out(account: AccountId) -> Vec<PayoutRecord> {
            |sql| payouts_out(sql, account).await
        };

        /// Books what became of some payouts.
        write settle(settlements: Vec<Settlement>, who: String, now: Timestamp) -> SettledPayouts = SettlePayouts { settlements, who, now };
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
