//! The demand sheet: what the negotiator takes to the table, so coarse that it reveals no one's state or bills.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::participation::ParticipationState;
use crate::domain::catalog::category::{Category, CategorySet};
use crate::domain::figure::grouped;
use crate::domain::us_state::UsState;

/// Counts are shown in steps of this many people, and a sheet follows another once the parts of so many differ.
pub const COARSE: u64 = 5;

/// A state or another bill is named from this many members: a few accounts of somebody's own and one real member are no cell.
pub const NAMED_FROM: u64 = 20;

/// A count as it is shown: rounded down, so that a single person hardly ever changes it.
pub const fn coarse(count: u64) -> u64 {
    count - count % COARSE
}

/// Of members whose count is not taken yet, for the operator.
pub const BEING_COUNTED: &str = "being counted";

/// A count of a sheet, for the operator.
pub fn count_words(members: Option<u64>) -> String {
    match members {
        None => BEING_COUNTED.to_owned(),
        Some(0) => format!("<{COARSE}"),
        Some(members) => grouped(members),
    }
}

/// What was counted of a campaign. Every count is rounded down to a multiple of five, and a cell is named from twenty members.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DemandSheet {
    /// Members who are in, those who accepted included.
    #[serde(rename = "in")]
    pub members_in: u64,
    /// Members who accepted the offer.
    pub accepted: u64,
    /// By the state that they live in: its two-letter code. Only states with at least twenty members.
    pub by_state: Vec<DemandCell>,
    /// All other members together, those who named no state included; 0 for fewer than twenty. The smallest states of `byState` are
    /// counted here where the others are fewer than twenty, so that `in` less `byState` tells of no small state.
    pub in_other_states: u64,
    /// By the other bills they chose: the category's slug. Only bills with at least twenty members. A member with several is counted
    /// at each.
    pub by_category: Vec<DemandCell>,
    /// Ticks of all other bills together; 0 for fewer than twenty.
    pub in_other_categories: u64,
}

impl DemandSheet {
    /// The one that was stored. Earlier versions named cells from five members.
    pub fn kept(text: &str, states: &[UsState]) -> Option<Self> {
        serde_json::from_str(text).ok().map(|sheet: Self| sheet.shown(states))
    }

    /// As a campaign for these states, or for all of them, may show it.
    fn shown(self, states: &[UsState]) -> Self {
        let (mut by_state, mut other_states) = named(self.by_state, self.in_other_states);
        // Whoever knows the total and the named states knows how many the others are. Where every state that may be in is named,
        // there are no others but those who moved away since.
        let has_others =
            states.is_empty() || !states.iter().all(|state| by_state.iter().any(|cell| cell.name == state.code()));
        while has_others
            && other_states < NAMED_FROM
            && let Some(smallest) = by_state.pop()
        {
            other_states += smallest.members;
        }
        // There is no total of ticks to take the named bills from.
        let (by_category, other_categories) = named(self.by_category, self.in_other_categories);
        Self {
            members_in: coarse(self.members_in),
            accepted: coarse(self.accepted),
            by_state: rounded(by_state),
            in_other_states: from_twenty(other_states),
            by_category: rounded(by_category),
            in_other_categories: from_twenty(other_categories),
        }
    }
}

/// The cells that may be named, the largest first, and how many people the others have together with the rest.
fn named(mut cells: Vec<DemandCell>, rest: u64) -> (Vec<DemandCell>, u64) {
    // By what is shown: the exact order would tell more.
    let shown = |cell: &DemandCell| Reverse(coarse(cell.members));
    cells.sort_by(|one, other| shown(one).cmp(&shown(other)).then_with(|| one.name.cmp(&other.name)));
    let few = cells.split_off(cells.partition_point(|cell| cell.members >= NAMED_FROM));
    (cells, few.into_iter().map(|cell| cell.members).sum::<u64>() + rest)
}

fn rounded(mut cells: Vec<DemandCell>) -> Vec<DemandCell> {
    cells.iter_mut().for_each(|cell| cell.members = coarse(cell.members));
    cells
}

const fn from_twenty(count: u64) -> u64 {
    if count < NAMED_FROM { 0 } else { coarse(count) }
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
    /// Members who named no state.
    stateless: u64,
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
        match member.us_state {
            Some(us_state) => *self.by_state.entry(us_state.code()).or_default() += 1,
            None => self.stateless += 1,
        }
        for category in member.categories.iter().filter(|category| *category != own) {
            *self.by_category.entry(category.slug()).or_default() += 1;
        }
    }

    /// What may be shown of it, for a campaign for these states or for all.
    pub fn sheet(&self, states: &[UsState]) -> DemandSheet {
        let cells = |counts: &BTreeMap<&'static str, u64>| {
            let cell =
                |(name, members): (&&'static str, &u64)| DemandCell { name: (*name).to_owned(), members: *members };
            counts.iter().map(cell).collect()
        };
        let exact = DemandSheet {
            members_in: self.members_in,
            accepted: self.accepted,
            by_state: cells(&self.by_state),
            in_other_states: self.stateless,
            by_category: cells(&self.by_category),
            in_other_categories: 0,
        };
        exact.shown(states)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(name: &str, members: u64) -> DemandCell {
        DemandCell { name: name.to_owned(), members }
    }

    #[test]
    fn counts_are_rounded_down_and_small_cells_merged() {
        assert_eq!([0, 4, 5, 9, 10, 1234].map(coarse), [0, 0, 5, 5, 10, 1230]);
        let mut count = DemandCount::default();
        let mut add = |times: usize, us_state, categories: &str, state| {
            let categories = CategorySet::from_slugs(categories);
            (0..times).for_each(|_| count.add(CountedMember { state, us_state, categories }, Category::Internet));
        };
        add(32, Some(UsState::CA), "internet,mobile_bills", ParticipationState::In);
        add(4, Some(UsState::NY), "", ParticipationState::In);
        add(21, Some(UsState::OR), "mortgage", ParticipationState::Accepted);
        add(15, Some(UsState::TX), "groceries", ParticipationState::Accepted);
        add(34, Some(UsState::WA), "", ParticipationState::In);
        add(2, None, "", ParticipationState::In);
        add(50, Some(UsState::NV), "internet", ParticipationState::Passed);
        let expected = DemandSheet {
            members_in: 105,
            accepted: 35,
            by_state: vec![cell("CA", 30), cell("WA", 30), cell("OR", 20)],
            in_other_states: 20,
            by_category: vec![cell("mobile_bills", 30), cell("mortgage", 20)],
            in_other_categories: 0,
        };
        assert_eq!(count.sheet(&[]), expected);
        let text = serde_json::to_string(&expected).unwrap();
        assert!(text.starts_with(r#"{"in":105,"accepted":35,"byState":[{"name":"CA","members":30}"#), "{text}");
        assert_eq!(DemandSheet::kept(&text, &[]).unwrap(), expected, "what may be shown stays as it is");
    }

    #[test]
    fn what_the_named_states_leave_of_the_total_is_nobody_or_twenty() {
        let shown = |counts: &[(&str, u64)], stateless, states: &[UsState]| {
            let by_state: Vec<_> = counts.iter().map(|(name, members)| cell(name, *members)).collect();
            let members_in = by_state.iter().map(|cell| cell.members).sum::<u64>() + stateless;
            let sheet = DemandSheet { members_in, by_state, in_other_states: stateless, ..DemandSheet::default() };
            let shown = sheet.shown(states);
            let cells: Vec<_> = shown.by_state.into_iter().map(|cell| (cell.name, cell.members)).collect();
            (cells, shown.in_other_states)
        };
        let named =
            |cells: &[(&str, u64)]| -> Vec<_> { cells.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect() };
        let (everywhere, two) = (&[][..], &[UsState::CA, UsState::WY][..]);
        assert_eq!(shown(&[("CA", 100), ("OR", 40), ("WY", 5)], 0, everywhere), (named(&[("CA", 100)]), 45));
        assert_eq!(shown(&[("CA", 100), ("OR", 40), ("WY", 19)], 0, everywhere), (named(&[("CA", 100)]), 55));
        assert_eq!(
            shown(&[("CA", 100), ("OR", 40), ("WY", 19)], 1, everywhere),
            (named(&[("CA", 100), ("OR", 40)]), 20)
        );
        // Whether somebody else is there at all is no more to be seen.
        for others in [0, 1, 19] {
            assert!(shown(&[("CA", 100), ("WY", others)], 0, everywhere).0.is_empty());
            assert!(shown(&[("CA", 100), ("WY", others)], 0, two).0.is_empty());
        }
        assert_eq!(shown(&[("CA", 100), ("WY", 20)], 0, two), (named(&[("CA", 100), ("WY", 20)]), 0));
        assert_eq!(shown(&[("CA", 100), ("WY", 20), ("OR", 1)], 0, two), (named(&[("CA", 100), ("WY", 20)]), 0));
        assert_eq!(shown(&[("CA", 9), ("WY", 9)], 0, everywhere), (Vec::new(), 0));
    }
}
