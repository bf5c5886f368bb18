//! The ledger of rewards, and what one person sees of theirs.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::campaign::CampaignSlug;
use super::super::json::named_enum;
use super::super::time::Timestamp;

named_enum! {
    pub enum LedgerKind {
        Accrual = "accrual",
        Reversal = "reversal",
        Payout = "payout",
        PayoutFailed = "payout_failed",
    }
}

/// A line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
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
    /// Members they referred who take part and whose hold is not over.
    pub on_hold: u32,
    /// When the first of those holds is over.
    pub on_hold_until: Option<Timestamp>,
    /// Members who count and wait for a group.
    pub waiting: u32,
    /// Groups that were rewarded.
    pub groups: u32,
    /// Full groups that earn nothing: the referrer has as many as may be rewarded.
    pub capped: u32,
}

impl CampaignStanding {
    /// How many members are missing for the next group.
    pub fn missing(&self) -> u32 {
        self.group_size - self.waiting % self.group_size.max(1)
    }
}

impl RewardStanding {
    /// Members whose part in campaigns is looked at for `on_hold`: the newest.
    pub const MOST_LOOKED_AT: u32 = 200;
}
