//! Rewards: who counts for whom, groups, and the money that is earned by them.

pub mod ledger;
pub mod payout;
pub mod report;
pub mod review;
pub mod settlement;

use serde::Serialize;

use super::campaign::CampaignState;
use super::campaign::acceptance::OrderStatus;
use super::catalog::{CountsOn, ReferralTerms};
use super::json::named_enum;
use super::person::{AccountId, PersonState};
use super::time::{DAY, Timestamp};

named_enum! {
    pub enum GroupState {
        /// Its reward was earned; its payout says whether it is paid.
        Accrued = "accrued",
        /// Worth nothing: the referrer has as many groups as may be rewarded.
        Capped = "capped",
        /// Somebody in it was voided before it was paid; the others count again.
        Dissolved = "dissolved",
        /// Somebody in it was voided after it was paid; the others count again.
        Reversed = "reversed",
        /// The referrer gave its reward up.
        Waived = "waived",
        /// The referrer was erased.
        Settled = "settled",
    }
}

/// A member's part in a campaign and their referrer's membership: what decides whether the one counts for the other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Referred {
    /// When they last accepted the offer.
    pub accepted_at: Timestamp,
    pub campaign: CampaignState,
    pub active_at: Timestamp,
    pub hold_days: u32,
    pub counts_on: CountsOn,
    /// What the supplier said last, and of when it says so if the hold begins by that.
    pub status: Option<OrderStatus>,
    pub hold_from: Option<Timestamp>,
    /// When the campaign was closed or cancelled.
    pub closed_at: Option<Timestamp>,
    pub person: MemberSpan,
    pub referrer: MemberSpan,
}

/// Whether somebody is a member, and since when; or until when they were.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MemberSpan {
    pub state: PersonState,
    pub joined_at: Option<Timestamp>,
    pub left_at: Option<Timestamp>,
}

impl MemberSpan {
    /// Whether they were a member then. The millisecond in which they left counts, because readers earlier in it saw a member.
    /// Somebody who left and came back counts from when they came back.
    fn was_member(&self, at: Timestamp) -> bool {
        let has_joined = self.joined_at.is_some_and(|joined_at| joined_at <= at);
        has_joined && (self.state == PersonState::Member || self.left_at.is_some_and(|left_at| left_at >= at))
    }
}

impl Referred {
    /// When the hold is over: so many days after they began to take part.
    pub fn hold_ends_at(&self) -> Timestamp {
        let accepted_at = self.accepted_at.max(self.active_at);
        let switched_at = self.hold_from.filter(|_| self.counts_on == CountsOn::Switched);
        switched_at.map_or(accepted_at, |at| accepted_at.max(at)).plus(DAY * self.hold_days)
    }

    /// Whether what the supplier says lets them count.
    fn may_count(&self) -> bool {
        match self.counts_on {
            CountsOn::Switched => self.status == Some(OrderStatus::Switched),
            CountsOn::Accepted => !matches!(self.status, Some(OrderStatus::Rejected | OrderStatus::Cancelled)),
        }
    }

    /// The moment from which they count for their referrer: all that is asked for was true then, and they still take part. None where that
    /// has not come, or never will as things are.
    pub fn qualified_at(&self, now: Timestamp) -> Option<Timestamp> {
        // A closed campaign goes on counting, a cancelled one does not.
        let until =
            self.closed_at.filter(|_| self.campaign == CampaignState::Cancelled).map_or(now, |end| end.min(now));
        // Whoever left and came back counts by what they accepted since.
        let takes_part = self.person.state == PersonState::Member && self.person.joined_at? <= self.accepted_at;
        let at = self.hold_ends_at().max(self.referrer.joined_at?);
        (at <= until && takes_part && self.may_count() && self.referrer.was_member(at)).then_some(at)
    }
}

impl ReferralTerms {
    pub fn reward_cents(&self) -> i64 {
        i64::from(self.reward_per_group) * 100
    }

    /// Whether another group may be rewarded, where so many are and add up to so much, over all campaigns.
    pub fn may_reward(&self, groups: u32, cents: i64) -> bool {
        groups < self.max_groups && cents + self.reward_cents() <= self.reward_cents() * i64::from(self.max_groups)
    }
}

/// What one account was rewarded and paid.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RewardAccount {
    pub account: AccountId,
    /// None once they are erased.
    pub email: Option<String>,
    pub groups: u32,
    pub capped: u32,
    pub earned_cents: i64,
    pub due_cents: i64,
    pub out_cents: i64,
    pub paid_cents: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(day: i64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + day * 24 * 3_600_000)
    }

    const MEMBER: MemberSpan = MemberSpan { state: PersonState::Member, joined_at: Some(at(0)), left_at: None };

    const REFERRED: Referred = Referred {
        accepted_at: at(5),
        campaign: CampaignState::Active,
        active_at: at(10),
        hold_days: 30,
        counts_on: CountsOn::Accepted,
        status: None,
        hold_from: None,
        closed_at: None,
        person: MEMBER,
        referrer: MEMBER,
    };

    #[test]
    fn a_member_counts_once_the_hold_is_over() {
        assert_eq!(REFERRED.qualified_at(at(40)), Some(at(40)), "from when it became active");
        assert_eq!(REFERRED.qualified_at(at(39)), None);
        let late = Referred { accepted_at: at(20), ..REFERRED };
        assert_eq!(
            (late.qualified_at(at(49)), late.qualified_at(at(60))),
            (None, Some(at(50))),
            "or when they accepted"
        );
        assert_eq!(Referred { hold_days: 0, ..REFERRED }.qualified_at(at(10)), Some(at(10)));
    }

    #[test]
    fn a_closed_campaign_goes_on_and_a_cancelled_one_does_not() {
        let closed = Referred { campaign: CampaignState::Closed, closed_at: Some(at(30)), ..REFERRED };
        assert_eq!(closed.qualified_at(at(50)), Some(at(40)));
        let cancelled = Referred { campaign: CampaignState::Cancelled, ..closed };
        assert_eq!(cancelled.qualified_at(at(50)), None);
        let later = Referred { closed_at: Some(at(41)), ..cancelled };
        assert_eq!(later.qualified_at(at(50)), Some(at(40)), "who counted before it was cancelled counts");
    }

    #[test]
    fn the_referrer_is_a_member_at_that_moment() {
        let left = |day| MemberSpan { state: PersonState::Left, left_at: Some(at(day)), ..MEMBER };
        let by = |referrer| Referred { referrer, ..REFERRED }.qualified_at(at(60));
        assert_eq!((by(left(39)), by(left(40)), by(left(41))), (None, Some(at(40)), Some(at(40))));
        let back = MemberSpan { joined_at: Some(at(45)), left_at: Some(at(39)), ..MEMBER };
        assert_eq!(by(back), Some(at(45)), "who comes back earns from then on");
        assert_eq!(by(MemberSpan { joined_at: None, state: PersonState::Invited, ..MEMBER }), None);
    }

    #[test]
    fn somebody_who_left_counts_by_what_they_accept_after_they_come_back() {
        let left = MemberSpan { state: PersonState::Left, left_at: Some(at(50)), ..MEMBER };
        assert_eq!(Referred { person: left, ..REFERRED }.qualified_at(at(60)), None, "however long they took part");
        let back = MemberSpan { joined_at: Some(at(45)), left_at: Some(at(39)), ..MEMBER };
        assert_eq!(Referred { person: back, ..REFERRED }.qualified_at(at(80)), None);
        let again = Referred { person: back, accepted_at: at(45), ..REFERRED };
        assert_eq!((again.qualified_at(at(74)), again.qualified_at(at(80))), (None, Some(at(75))));
    }

    #[test]
    fn where_switching_counts_the_supplier_says_who_did_and_since_when() {
        let switched = |status, day| {
            let hold_from = Some(at(day));
            Referred { counts_on: CountsOn::Switched, status, hold_from, ..REFERRED }.qualified_at(at(60))
        };
        let all = OrderStatus::ALL.map(Some).into_iter().chain([None]);
        let counting: Vec<_> = all.clone().filter(|status| switched(*status, 20).is_some()).collect();
        assert_eq!(counting, [Some(OrderStatus::Switched)]);
        let days = [20, 3, 31].map(|day| switched(Some(OrderStatus::Switched), day));
        assert_eq!(days, [Some(at(50)), Some(at(40)), None], "by their date, never before it became active");
        // Where accepting counts, a supplier can only end it, and its date moves nothing.
        let accepted = |status| Referred { status, hold_from: Some(at(20)), ..REFERRED }.qualified_at(at(60));
        let counting: Vec<_> = all.filter(|status| accepted(*status) == Some(at(40))).collect();
        assert_eq!(counting, [Some(OrderStatus::Ordered), Some(OrderStatus::Switched), None]);
    }

    #[test]
    fn no_more_than_the_most_is_rewarded() {
        let counts_on = CountsOn::Switched;
        let terms = ReferralTerms { reward_per_group: 100, group_size: 5, max_groups: 2, hold_days: 30, counts_on };
        assert!(terms.may_reward(0, 0) && terms.may_reward(1, 10_000) && !terms.may_reward(2, 20_000));
        assert!(!terms.may_reward(1, 15_000), "another campaign paid more for one");
    }
}
