//! The demand sheet: what the negotiator takes to the table, so coarse that it reveals no one's state or bills.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::participation::ParticipationState;
use crate::domain::catalog::category::{Category, CategorySet};
use crate::domain::figure::grouped;
use crate::domain::us_state::UsState;

/// Counts are shown in steps of this many people, and a sheet follows another once so many have changed.
pub const COARSE: u64 = 5;

/// A count as it is shown: rounded down, so that a single person hardly ever changes it.
pub const fn coarse(count: u64) -> u64 {
    count - count % COARSE
}

/// A count of a sheet, for the operator.
pub fn count_words(members: u64) -> String {
    if members == 0 { format!("<{COARSE}") } else { grouped(members) }
}

/// What was counted of a campaign. Every count is rounded down to a multiple of five, and cells below five are merged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DemandSheet {
    /// Members who are in, those who accepted included.
    #[serde(rename = "in")]
    pub members_in: u64,
    /// Members who accepted the offer.
    pub accepted: u64,
    /// By the state that they live in: its two-letter code. Those who named none are left out.
    pub by_state: Vec<DemandCell>,
    /// Members of all states with fewer than five, together.
    pub in_other_states: u64,
    /// By the other bills they chose: the category's slug. A member with several is counted at each.
    pub by_category: Vec<DemandCell>,
    /// Ticks of all other bills with fewer than five, together.
    pub in_other_categories: u64,
}

/// A cell of a sheet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DemandCell {
    pub name: String,
    pub members: u64,
}

/// A member of a campaign, as far as a sheet counts them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CountedMember {
    pub state: ParticipationState,
    pub us_state: Option<UsState>,
    pub categories: CategorySet,
}

/// Exact counts, while they are made; they are never shown.
#[derive(Default)]
pub struct DemandCount {
    members_in: u64,
    accepted: u64,
    by_state: BTreeMap<&'static str, u64>,
    by_category: BTreeMap<&'static str, u64>,
}

impl DemandCount {
    pub fn add(&mut self, member: CountedMember, own: Category) {
        match member.state {
            ParticipationState::In => {}
            ParticipationState::Accepted => self.accepted += 1,
            ParticipationState::Out | ParticipationState::Passed => return,
        }
        self.members_in += 1;
        if let Some(us_state) = member.us_state {
            *self.by_state.entry(us_state.code()).or_default() += 1;
        }
        for category in member.categories.iter().filter(|category| *category != own) {
            *self.by_category.entry(category.slug()).or_default() += 1;
        }
    }

    pub fn sheet(&self) -> DemandSheet {
        let (by_state, other_states) = cells(&self.by_state);
        let (by_category, other_categories) = cells(&self.by_category);
        DemandSheet {
            members_in: coarse(self.members_in),
            accepted: coarse(self.accepted),
            by_state,
            in_other_states: coarse(other_states),
            by_category,
            in_other_categories: coarse(other_categories),
        }
    }
}

/// The cells that may be named, the largest first, and how many people the others have together.
fn cells(counts: &BTreeMap<&'static str, u64>) -> (Vec<DemandCell>, u64) {
    let (large, small): (Vec<_>, Vec<_>) = counts.iter().partition(|(_, count)| **count >= COARSE);
    let mut named: Vec<_> = large
        .into_iter()
        .map(|(name, count)| DemandCell { name: (*name).to_owned(), members: coarse(*count) })
        .collect();
    // By what is shown: the exact order would tell more.
    named.sort_by(|one, other| other.members.cmp(&one.members).then_with(|| one.name.cmp(&other.name)));
    (named, small.into_iter().map(|(_, count)| count).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_rounded_down_and_small_cells_merged() {
        assert_eq!([0, 4, 5, 9, 10, 1234].map(coarse), [0, 0, 5, 5, 10, 1230]);
        let mut count = DemandCount::default();
        let mut add = |times: usize, us_state, categories: &str, state| {
            let categories = CategorySet::from_slugs(categories);
            (0..times).for_each(|_| count.add(CountedMember { state, us_state, categories }, Category::Internet));
        };
        add(12, Some(UsState::CA), "internet,mobile_bills", ParticipationState::In);
        add(4, Some(UsState::NY), "", ParticipationState::In);
        add(5, Some(UsState::OR), "mortgage", ParticipationState::Accepted);
        add(3, Some(UsState::TX), "", ParticipationState::Accepted);
        add(14, Some(UsState::WA), "", ParticipationState::In);
        add(2, None, "", ParticipationState::In);
        add(50, Some(UsState::NV), "internet", ParticipationState::Passed);
        let cell = |name: &str, members| DemandCell { name: name.to_owned(), members };
        let expected = DemandSheet {
            members_in: 40,
            accepted: 5,
            by_state: vec![cell("CA", 10), cell("WA", 10), cell("OR", 5)],
            in_other_states: 5,
            by_category: vec![cell("mobile_bills", 10), cell("mortgage", 5)],
            in_other_categories: 0,
        };
        assert_eq!(count.sheet(), expected);
        let text = serde_json::to_string(&expected).unwrap();
        assert!(text.starts_with(r#"{"in":40,"accepted":5,"byState":[{"name":"CA","members":10}"#), "{text}");
        assert_eq!(serde_json::from_str::<DemandSheet>(&text).unwrap(), expected);
    }
}
