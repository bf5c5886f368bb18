//! A member's part in a campaign, and what they press; `record.rs` has what each press leads to.

use schemars::JsonSchema;
use serde::Serialize;

use super::CampaignSlug;
use super::acceptance::AcceptanceEntry;
use crate::domain::json::named_enum;
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;

named_enum! {
    pub enum ParticipationState {
        /// They are counted in the demand.
        In = "in",
        /// They were, and took it back.
        Out = "out",
        /// They accepted the offer.
        Accepted = "accepted",
        /// They turned it down, or withdrew after accepting.
        Passed = "passed",
    }
}

named_enum! {
    /// What a member presses.
    pub enum Press {
        In = "in",
        Out = "out",
        Accept = "accept",
        Pass = "pass",
    }
}

named_enum! {
    /// Why a press changes nothing.
    pub enum BadPress {
        /// Members are not counted any more: the offer is there, or it is over.
        CountingOver = "counting-over",
        /// There is no offer yet.
        NoOffer = "no-offer",
        /// The last day to accept is over.
        AcceptingOver = "accepting-over",
        /// The campaign is closed or cancelled.
        Over = "over",
        /// It is for some states, and they have named none.
        StateMissing = "state",
        /// It is for other states.
        OtherState = "other-state",
        /// The offer is for other states than theirs.
        OfferElsewhere = "offer-elsewhere",
        /// The offer is for new customers, and they did not say whether they are one.
        CustomerMissing = "customer",
        /// It is, and they are a customer already.
        AlreadyCustomer = "already-customer",
        /// What they were shown is not the offer any more.
        OfferChanged = "offer-changed",
    }
}

/// What a member says with a press.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PressAnswers {
    /// Theirs as it is kept, or as they name it now.
    pub us_state: Option<UsState>,
    /// Whether the supplier has them as a customer now. It is not kept.
    pub is_customer: Option<bool>,
    /// Whether they were shown the offer as it is, with what happens to their data.
    pub agrees: bool,
}

/// A member's part in one campaign, as it is kept.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParticipationEntry {
    pub campaign: CampaignSlug,
    /// `in`, `out`, `accepted` or `passed`.
    pub state: ParticipationState,
    /// When they last counted themselves in.
    pub in_at: Option<Timestamp>,
    /// When they last accepted the offer.
    pub accepted_at: Option<Timestamp>,
    pub changed_at: Timestamp,
    /// What they accepted there, the oldest first.
    pub acceptances: Vec<AcceptanceEntry>,
}

impl ParticipationEntry {
    /// What they accept now.
    pub fn acceptance(&self) -> Option<&AcceptanceEntry> {
        self.acceptances.last().filter(|last| last.ended_at.is_none())
    }
}
