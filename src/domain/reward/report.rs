//! Figures of rewards for the operator: what is on the way, and what one campaign earned.

use super::GroupState;
use super::ledger::LedgerKind;

/// Referred members who take part and are in no group yet.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct OnTheWay {
    /// Their hold is not over.
    pub on_hold: u64,
    /// They count, and wait for a full group.
    pub waiting: u64,
    /// Whether everybody was looked at; otherwise there may be more.
    pub is_whole: bool,
}

impl OnTheWay {
    /// People whom a command looks at.
    pub const MOST: u32 = 100_000;

    /// And a page that is asked for again and again.
    pub const MOST_FOR_PAGE: u32 = 5000;
}

/// Groups of a campaign, and its lines of the ledger; added up in steps.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct CampaignRewards {
    /// Groups that were rewarded, also those of referrers who were erased since.
    pub groups: u64,
    pub capped: u64,
    pub dissolved: u64,
    pub reversed: u64,
    pub waived: u64,
    pub accrued_cents: i64,
    /// Zero or less.
    pub reversed_cents: i64,
    /// What was put into batches, without payouts that failed.
    pub paid_out_cents: i64,
    /// What was added up so far.
    pub last_group: i64,
    pub last_line: i64,
    pub is_whole: bool,
}

impl CampaignRewards {
    pub fn add_groups(&mut self, state: GroupState, count: u64) {
        *match state {
            GroupState::Accrued | GroupState::Settled => &mut self.groups,
            GroupState::Capped => &mut self.capped,
            GroupState::Dissolved => &mut self.dissolved,
            GroupState::Reversed => &mut self.reversed,
            GroupState::Waived => &mut self.waived,
        } += count;
    }

    pub fn add_lines(&mut self, kind: LedgerKind, cents: i64) {
        match kind {
            LedgerKind::Accrual => self.accrued_cents += cents,
            LedgerKind::Reversal => self.reversed_cents += cents,
            LedgerKind::Payout | LedgerKind::PayoutFailed => self.paid_out_cents -= cents,
        }
    }
}

/// The sums of all accounts, as they are kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RewardTotals {
    pub accounts: u64,
    pub due_cents: i64,
    /// Of that, what is due to people who were erased and cannot be paid.
    pub erased_cents: i64,
    pub out_cents: i64,
    pub paid_cents: i64,
    pub negative_accounts: u64,
    pub negative_cents: i64,
}
