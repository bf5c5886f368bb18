//! The ledger of rewards, and what one person sees of theirs.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::campaign::CampaignSlug;
use super::super::json::named_enum;
use super::super::time::Timestamp;
use super::payout::PayoutState;
use crate::domain::campaign::acceptance::Ended;

named_enum! {
    pub enum LedgerKind {
        Accrual = "accrual",
        Reversal = "reversal",
        Payout = "payout",
        PayoutFailed = "payout_failed",
    }
}

/// A line of the ledger.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LedgerEntry {
    pub at: Timestamp,
    /// `accrual`, `reversal`, `payout` or `payout_failed`.
    pub kind: LedgerKind,
    /// What it added to the balance, in cents.
    pub amount_cents: i64,
    /// None: of all campaigns.
    pub campaign: Option<CampaignSlug>,
    pub why: String,
}

/// All that is kept of a person's rewards besides where they stand.
#[derive(Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RewardHistory {
    /// What they earned and were paid, oldest first.
    pub ledger: Vec<LedgerEntry>,
    /// Oldest first.
    pub payouts: Vec<PayoutEntry>,
    /// In which campaigns they count for whoever referred them.
    pub counted_in: Vec<CountedEntry>,
}

/// What they were paid for one campaign.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PayoutEntry {
    /// The union's name for it.
    pub external_id: String,
    pub campaign: CampaignSlug,
    pub amount_cents: i64,
    pub groups: u32,
    /// `out` (being paid), `paid`, `failed`, or `netted`: all of it made up for what was paid too much before.
    pub state: PayoutState,
    /// The payment provider's name for it.
    pub reference: Option<String>,
    pub paid_at: Option<Timestamp>,
    /// Why it failed.
    pub reason: Option<String>,
    /// When the union learned what became of it.
    pub settled_at: Option<Timestamp>,
}

/// That somebody counts for whoever referred them, or no longer does.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CountedEntry {
    pub campaign: CampaignSlug,
    pub counted_at: Option<Timestamp>,
    /// When the union took them out.
    pub voided_at: Option<Timestamp>,
    /// The day on which they ceased to count after their group was paid, or while it was.
    pub ended_on: Option<Timestamp>,
    /// Why: `passed`, `left`, `erased`, `offer` (it ended), `rejected` or `cancelled` (their order).
    pub ended_why: Option<Ended>,
}

/// What a person earned by those whom they referred.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RewardStanding {
    /// What is to be paid, in cents; less than nothing where too much was paid.
    pub due_cents: i64,
    /// What is being paid, in cents.
    pub out_cents: i64,
    /// What was paid, in cents.
    pub paid_cents: i64,
    /// Groups, over all campaigns, that count toward the most that one person is rewarded for.
    pub rewarded_groups: u32,
    /// Their rewards, in cents.
    pub rewarded_cents: i64,
    pub campaigns: Vec<CampaignStanding>,
}

/// The same in one campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CampaignStanding {
    pub campaign: CampaignSlug,
    /// Members in a group.
    pub group_size: u32,
    /// For each group, in cents.
    pub reward_cents: i64,
    /// Groups that one person is rewarded for at the most, over all campaigns.
    pub max_groups: u32,
    /// Members they referred who take part and whose hold is not over.
    pub on_hold: u32,
    /// When the first of those holds is over.
    pub on_hold_until: Option<Timestamp>,
    /// Members who count and wait for a group.
    pub waiting: u32,
    /// Groups that were rewarded.
    pub groups: u32,
    /// Whether another group would earn nothing: they have the most that one person can earn.
    pub has_the_most: bool,
    /// Full groups that earn nothing: the referrer has as many as may be rewarded. 2,001 stands for more than 2,000.
    pub capped: u32,
}

impl CampaignStanding {
    /// Whether there are more capped groups than anybody counts.
    pub fn has_uncounted_capped(&self) -> bool {
        self.capped > RewardStanding::MOST_COUNTED
    }

    /// How many of the next group take part already, those on hold with them.
    pub fn in_deal(&self) -> u32 {
        (self.waiting % self.group_size.max(1) + self.on_hold).min(self.group_size)
    }
}

impl RewardStanding {
    /// Groups, and people who wait for one, that are counted for one person.
    pub const MOST_COUNTED: u32 = 2000;

    /// Members whose part in campaigns is looked at for `on_hold`: the newest.
    pub const MOST_LOOKED_AT: u32 = 200;
}
