//! The demand sheet for people: as Markdown for a supplier, and as plain text for the operator's terminal.

use crate::domain::campaign::LastDay;
use crate::domain::campaign::demand::{COARSE, DemandCell, NAMED_FROM};
use crate::domain::catalog::category::Category;
use crate::domain::figure::{dollars, grouped};
use crate::domain::time::Timestamp;
use crate::domain::union::service::ServiceFacts;
use crate::operations::negotiator::demand_report::{DemandReport, NOT_COUNTED};

/// What every reader has to know about the figures.
const ABOUT_COUNTS: &str = "Counts are rounded down to a multiple of 5. A state or another bill is named from 20 members. Being in does not oblige anyone to buy.";
const ABOUT_SAVINGS: &str = "Savings are the union's estimate for a typical household.";
const ABOUT_SAMPLE: &str =
    "Savings are figures of the sample catalog, which are made up. Give your own catalog in UNIONHALL_CATALOG.";

/// A heading, and the rows below it: a name and a count.
type DemandTable = (&'static str, Vec<(String, String)>);

/// What is sent to a supplier: who asks, for what, until when, and the counts. Of the mandate it has nothing but the day.
pub fn markdown(
    report: &DemandReport,
    service: &ServiceFacts,
    benchmark: Option<&str>,
    reply_by: Option<LastDay>,
) -> String {
    let campaign = &report.campaign;
    let from = match &service.contact_email {
        Some(contact) => format!("{}, {}", escaped(&service.name), escaped(contact)),
        None => escaped(&service.name),
    };
    let mut asked = vec![
        ("From", from),
        ("What we ask for", format!("one price for all members who are in: {}", what(report))),
        ("About it", escaped(&campaign.summary)),
        ("Public page", service.campaign_page(&campaign.slug)),
    ];
    let day = |day: LastDay| Timestamp::from_millis(day.number() * 86_400_000).day();
    asked.extend(benchmark.map(|benchmark| ("What is typical", escaped(benchmark))));
    asked.extend(reply_by.map(|until| ("Please reply by", day(until))));
    let mut text = format!("# {}\n\n", escaped(&campaign.title));
    asked.iter().for_each(|(what, said)| text.push_str(&format!("- **{what}:** {said}\n")));
    text.push_str(&format!("\n## Who is in\n\n{}\n", counted(report)));
    for (heading, rows) in tables(report, &format!("fewer than {NAMED_FROM}")) {
        text.push_str(&format!("\n| {heading} | members |\n|---|---:|\n"));
        rows.iter().for_each(|(name, figure)| text.push_str(&format!("| {name} | {figure} |\n")));
    }
    text + &match report.estimate.from_sample {
        // No supplier is told what is made up.
        true => format!("\n{ABOUT_COUNTS}\n"),
        false => format!("\n{} {ABOUT_COUNTS} {ABOUT_SAVINGS}\n", savings(report)),
    }
}

pub fn text(report: &DemandReport) -> String {
    let mut text =
        format!("{}: {}\n{}. {}\n", report.campaign.slug, report.campaign.title, what(report), counted(report));
    for (heading, rows) in tables(report, &format!("<{NAMED_FROM}")) {
        text.push_str(&format!("\n{:>10}  {}\n", "MEMBERS", heading.to_uppercase()));
        rows.iter().for_each(|(name, figure)| text.push_str(&format!("{figure:>10}  {name}\n")));
    }
    text + &format!("\n{}\n{}\n{ABOUT_COUNTS}\n", savings(report), about_savings(report))
}

fn counted(report: &DemandReport) -> String {
    match (report.counted_at, &report.demand) {
        (Some(at), Some(demand)) => format!(
            "Counted on {}: {} were in, {} had accepted.",
            at.day(),
            members(demand.members_in),
            members(demand.accepted)
        ),
        _ => report.not_counted.unwrap_or(NOT_COUNTED).to_owned(),
    }
}

/// What is negotiated, and where.
fn what(report: &DemandReport) -> String {
    let places = match report.campaign.states.as_slice() {
        [] => "everywhere".to_owned(),
        states => format!("in {}", states.iter().map(|state| state.code()).collect::<Vec<_>>().join(", ")),
    };
    format!("{}, {places}", report.campaign.category.label())
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
    let other_states = has_other_states.then(|| ("elsewhere".to_owned(), others(demand.in_other_states)));
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
    use crate::operations::negotiator::demand_report::BEING_COUNTED;

    #[test]
    fn a_sheet_says_what_was_counted_and_no_more() {
        let mut report = DemandReport::example();
        report.campaign.title = "Fast | <b>cheap</b>\n# now".to_owned();
        let service = ServiceFacts {
            name: "Example | Union".to_owned(),
            base_url: "https://api.union.example".to_owned(),
            join_site: "https://union.example".to_owned(),
            contact_email: Some("hello@union.example".to_owned()),
        };
        let markdown = |report: &DemandReport| {
            super::markdown(report, &service, Some("$68 a month (survey_1)"), Some("2027-02-28".parse().unwrap()))
        };
        let sheet = markdown(&report);
        for part in [
            "# Fast \\| \\<b\\>cheap\\</b\\> \\# now\n\n- **From:** Example \\| Union, hello@union.example\n",
            "- **What we ask for:** one price for all members who are in: Home Internet, in CA, OR\n",
            "- **Public page:** https://union.example/campaigns/internet-2027\n- **What is typical:** $68 a month (survey\\_1)\n\
             - **Please reply by:** Feb 28, 2027\n",
            "\n## Who is in\n\nCounted on Feb 1, 2027: at least 1,230 members were in,",
            "| state | members |\n|---|---:|\n| CA | 980 |\n| OR | 245 |\n\n| other bills",
            "| Mobile Plan | 610 |\n| other bills | fewer than 20 |\n",
            "$240 a year for each member, $295,200 for all.",
        ] {
            assert!(sheet.contains(part), "{part}: {sheet}");
        }
        assert!(sheet.contains(ABOUT_SAVINGS) && !sheet.contains("sample"), "{sheet}");
        report.estimate.from_sample = true;
        let (sheet, for_operator) = (markdown(&report), text(&report));
        assert!(!sheet.contains("saving") && !sheet.contains("Savings"), "{sheet}");
        assert!(
            for_operator.contains(ABOUT_SAMPLE) && !for_operator.contains("the union's estimate"),
            "{for_operator}"
        );
        report.counted_at = None;
        report.demand = None;
        report.estimate.all_members = None;
        for sheet in [markdown(&report), text(&report)] {
            assert!(sheet.contains("Not counted yet: fewer than 5 members take part."), "{sheet}");
            assert!(!sheet.contains("for all.") && !sheet.contains("other bills"), "{sheet}");
        }
        let unnamed = ServiceFacts { contact_email: None, ..service.clone() };
        let sheet = super::markdown(&report, &unnamed, None, None);
        assert!(
            sheet.contains("- **From:** Example \\| Union\n")
                && !sheet.contains("reply by")
                && !sheet.contains("typical"),
            "{sheet}"
        );
        report.not_counted = Some(BEING_COUNTED);
        assert!(text(&report).contains("Home Internet, in CA, OR. Members are being counted: "), "{}", text(&report));
    }
}
