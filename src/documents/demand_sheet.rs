//! The demand sheet for people: as Markdown for a supplier, and as plain text for the operator's terminal.

use crate::domain::campaign::demand::{COARSE, DemandCell, NAMED_FROM};
use crate::domain::catalog::category::Category;
use crate::domain::figure::{dollars, grouped};
use crate::operations::negotiator::get_demand_sheet::{DemandReport, NOT_COUNTED};

/// What every reader has to know about the figures.
const ABOUT_COUNTS: &str = "Counts are rounded down to a multiple of 5. A state or another bill is named from 20 members. Being in does not oblige anyone to buy.";
const ABOUT_SAVINGS: &str = "Savings are the union's estimate for a typical household.";
const ABOUT_SAMPLE: &str =
    "Savings are figures of the sample catalog, which are made up. Give your own catalog in UNIONHALL_CATALOG.";

/// A heading, and the rows below it: a name and a count.
type DemandTable = (&'static str, Vec<(String, String)>);

pub fn markdown(report: &DemandReport) -> String {
    let mut text = format!("# {}\n\n{}\n", escaped(&report.campaign.title), counted(report));
    for (heading, rows) in tables(report, &format!("fewer than {NAMED_FROM}")) {
        text.push_str(&format!("\n| {heading} | members |\n|---|---:|\n"));
        rows.iter().for_each(|(name, figure)| text.push_str(&format!("| {name} | {figure} |\n")));
    }
    text + &format!("\n{} {ABOUT_COUNTS} {}\n", savings(report), about_savings(report))
}

pub fn text(report: &DemandReport) -> String {
    let mut text = format!("{}: {}\n{}\n", report.campaign.slug, report.campaign.title, counted(report));
    for (heading, rows) in tables(report, &format!("<{NAMED_FROM}")) {
        text.push_str(&format!("\n{:>10}  {}\n", "MEMBERS", heading.to_uppercase()));
        rows.iter().for_each(|(name, figure)| text.push_str(&format!("{figure:>10}  {name}\n")));
    }
    text + &format!("\n{}\n{}\n{ABOUT_COUNTS}\n", savings(report), about_savings(report))
}

fn counted(report: &DemandReport) -> String {
    let places = match report.campaign.states.as_slice() {
        [] => "everywhere".to_owned(),
        states => format!("in {}", states.iter().map(|state| state.code()).collect::<Vec<_>>().join(", ")),
    };
    let what = format!("{}, {places}.", report.campaign.category.label());
    match (report.counted_at, &report.demand) {
        (Some(at), Some(demand)) => format!(
            "{what} Counted on {}: {} were in, {} had accepted.",
            at.day(),
            members(demand.members_in),
            members(demand.accepted)
        ),
        _ => format!("{what} {NOT_COUNTED}"),
    }
}

fn members(count: u64) -> String {
    if count == 0 { format!("fewer than {COARSE} members") } else { format!("at least {} members", grouped(count)) }
}

fn savings(report: &DemandReport) -> String {
    let estimate = &report.estimate;
    match (estimate.per_member, estimate.all_members) {
        (0, _) => "The catalog has no estimate of savings for this category.".to_owned(),
        (one, None | Some(0)) => format!("Estimated savings: {} a year for each member.", dollars(one)),
        (one, Some(all)) => {
            format!("Estimated savings: {} a year for each member, ${} for all.", dollars(one), grouped(all))
        }
    }
}

fn about_savings(report: &DemandReport) -> &'static str {
    if report.estimate.from_sample { ABOUT_SAMPLE } else { ABOUT_SAVINGS }
}

/// What there is to show, without tables that name nothing. `few` says how many the others are where that is not told.
fn tables(report: &DemandReport, few: &str) -> Vec<DemandTable> {
    let Some(demand) = &report.demand else { return Vec::new() };
    let bill = |slug: &str| Category::from_slug(slug).map_or(slug, |category| category.label()).to_owned();
    let has_other_states = demand.in_other_states > 0 || report.campaign.states.len() != demand.by_state.len();
    let others = |count| if count == 0 { few.to_owned() } else { grouped(count) };
    let other_states = has_other_states.then(|| ("other states".to_owned(), others(demand.in_other_states)));
    let other_bills = Some(("other bills".to_owned(), others(demand.in_other_categories)));
    let states: Vec<_> = rows(&demand.by_state, str::to_owned).chain(other_states).collect();
    let bills: Vec<_> = rows(&demand.by_category, bill).chain(other_bills).collect();
    let states = (!demand.by_state.is_empty()).then_some(("state", states));
    let bills = (!demand.by_category.is_empty()).then_some(("other bills they chose", bills));
    states.into_iter().chain(bills).collect()
}

fn rows(cells: &[DemandCell], name: impl Fn(&str) -> String) -> impl Iterator<Item = (String, String)> {
    cells.iter().map(move |cell| (name(&cell.name), grouped(cell.members)))
}

/// A title in one line of Markdown, whatever the operator wrote.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => safe.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' => safe.extend(['\\', c]),
            _ => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::catalog::Catalog;
    use crate::operations::Operation;
    use crate::operations::negotiator::get_demand_sheet::GetDemandSheet;

    #[test]
    fn a_sheet_says_what_was_counted_and_no_more() {
        let mut report = GetDemandSheet::example(&Catalog::sample()).answer;
        report.campaign.title = "Fast | <b>cheap</b>\n# now".to_owned();
        let sheet = markdown(&report);
        for part in [
            "# Fast \\| \\<b\\>cheap\\</b\\> \\# now\n\nHome Internet, in CA, OR. Counted on Feb 1, 2027: at least 1,230 members were in,",
            "| state | members |\n|---|---:|\n| CA | 980 |\n| OR | 245 |\n\n| other bills",
            "| Mobile Plan | 610 |\n| other bills | fewer than 20 |\n",
            "$240 a year for each member, $295,200 for all.",
        ] {
            assert!(sheet.contains(part), "{part}: {sheet}");
        }
        assert!(sheet.contains(ABOUT_SAVINGS) && !sheet.contains("sample"), "{sheet}");
        report.estimate.from_sample = true;
        for sheet in [markdown(&report), text(&report)] {
            assert!(sheet.contains(ABOUT_SAMPLE) && !sheet.contains("the union's estimate"), "{sheet}");
        }
        report.counted_at = None;
        report.demand = None;
        report.estimate.all_members = None;
        for sheet in [markdown(&report), text(&report)] {
            assert!(sheet.contains("Not counted yet: fewer than 5 members take part."), "{sheet}");
            assert!(!sheet.contains("for all") && !sheet.contains("other bills"), "{sheet}");
        }
    }
}
