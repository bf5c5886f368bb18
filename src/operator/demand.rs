//! Members by state and by category, as shown to operators: rows about few people are added up.

use std::collections::BTreeMap;

use super::Demand;
use crate::domain::catalog::category::Category;
use crate::domain::us_state::UsState;

/// A smaller figure could identify a person, so such rows are added up.
pub const SMALLEST: u64 = 5;

/// The code of the row that adds up the small ones.
pub const OTHERS: &str = "others";

/// A row of members by state or by category.
#[derive(Clone, PartialEq, Eq)]
pub struct DemandRow {
    /// The code for programs: a state's code, a category's slug, '' for no state, or [`OTHERS`].
    pub code: String,
    pub name: String,
    /// None if there are too few to show.
    pub members: Option<u64>,
}

/// Members by the state they live in, for one category or all.
pub fn by_state(demand: &[Demand], category: Option<Category>) -> Vec<DemandRow> {
    let wanted = category.map_or("", Category::slug);
    let of_category = demand.iter().filter(|cell| cell.category == wanted);
    let name =
        |code: &str| UsState::from_code(code).map_or_else(|| "not said".to_owned(), |state| state.name().to_owned());
    merged(of_category.map(|cell| (cell.us_state.clone(), name(&cell.us_state), cell.members)).collect())
}

/// Members by the categories they chose, for one state or all.
pub fn by_category(demand: &[Demand], state: Option<UsState>) -> Vec<DemandRow> {
    let lives = |cell: &&Demand| state.is_none_or(|state| state.code() == cell.us_state);
    let mut categories: BTreeMap<&str, u64> = BTreeMap::new();
    for cell in demand.iter().filter(|cell| !cell.category.is_empty()).filter(lives) {
        *categories.entry(&cell.category).or_default() += cell.members;
    }
    merged(categories.into_iter().map(|(slug, members)| (slug.to_owned(), slug.to_owned(), members)).collect())
}

/// Largest first. Rows too small to show become one row together, without a figure if their sum is too small as well.
fn merged(mut rows: Vec<(String, String, u64)>) -> Vec<DemandRow> {
    rows.sort_by(|one, other| (other.2, &one.0).cmp(&(one.2, &other.0)));
    let (shown, few): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, _, members)| *members >= SMALLEST);
    let row = |(code, name, members)| DemandRow { code, name, members: Some(members) };
    let mut rows: Vec<_> = shown.into_iter().map(row).collect();
    if !few.is_empty() {
        let together: u64 = few.iter().map(|(_, _, members)| members).sum();
        let name = format!("{} more, fewer than {SMALLEST} each", few.len());
        let members = Some(together).filter(|sum| *sum >= SMALLEST);
        rows.push(DemandRow { code: OTHERS.to_owned(), name, members });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_about_few_people_are_one_row_together() {
        let row = |name: &str, members| (name.to_owned(), name.to_owned(), members);
        let rows = |rows: Vec<DemandRow>| rows.into_iter().map(|row| (row.code, row.members)).collect::<Vec<_>>();
        let found = rows(merged(vec![row("AZ", 4), row("CA", 5), row("NY", 9), row("TX", 3)]));
        let expected = [("NY", Some(9)), ("CA", Some(5)), (OTHERS, Some(7))];
        assert_eq!(found, expected.map(|(code, members)| (code.to_owned(), members)));
        assert_eq!(rows(merged(vec![row("AZ", 4)])), [(OTHERS.to_owned(), None)], "nor can one be told from the sum");
        assert!(merged(Vec::new()).is_empty());
    }
}
