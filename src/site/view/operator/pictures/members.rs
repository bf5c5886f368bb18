//! Pictures of members: where they live, what they want, and who referred them.

use super::{CHART_ROWS, DataTable, Picture, PictureContent, row, share};
use crate::domain::catalog::Catalog;
use crate::domain::catalog::category::Category;
use crate::domain::figure::{counted, grouped};
use crate::operator::demand::{DemandRow, OTHERS, SMALLEST};
use crate::operator::overview::Overview;
use crate::site::view::operator::charts::{BarItem, Chart, Tone, bars};
use crate::site::view::operator::tiles::tiles;

/// A count of members; of few only that they are few.
fn count_words(members: Option<u64>) -> String {
    members.map_or_else(|| format!("<{SMALLEST}"), grouped)
}

pub(super) fn states(overview: &Overview) -> Picture {
    let rows = &overview.by_state;
    let named: Vec<_> = rows.iter().filter(|row| !row.code.is_empty() && row.code != OTHERS).collect();
    let mut summary = match named.first() {
        Some(first) => {
            let most = format!(
                "Most members live in {}: {} of {}.",
                first.name,
                count_words(first.members),
                grouped(overview.members)
            );
            match named.len() {
                1 => most,
                count => format!("{most} {count} states and territories have {SMALLEST} members or more."),
            }
        }
        None => format!("No state has {SMALLEST} members or more yet."),
    };
    if let Some(others) = rows.iter().find(|row| row.code == OTHERS) {
        summary.push_str(&format!(" Not on the map: {}, {} together.", others.name, count_words(others.members)));
    }
    let shown = if rows.is_empty() {
        PictureContent::Nothing { hint: "Once there are members, this is a map of where they live.", command: None }
    } else {
        let of = |code: &str| rows.iter().find(|row| row.code == code).and_then(|row| row.members);
        let table = rows.iter().map(|cell| row(cell.name.clone(), [count_words(cell.members)]));
        PictureContent::Chart(Chart::Tiles(tiles(of)), vec![DataTable::new(["State", "Members"], table)])
    };
    Picture { id: "states", title: "Where members live", summary, shown }
}

pub(super) fn demand(overview: &Overview, catalog: &Catalog) -> Picture {
    let saving =
        |slug: &str| catalog.listed().iter().find(|(category, _)| category.slug() == slug).map(|(_, dollars)| *dollars);
    let label = |row: &DemandRow| {
        Category::from_slug(&row.code).map_or_else(|| row.name.clone(), |category| category.label().to_owned())
    };
    let mut rows: Vec<_> = overview
        .by_category
        .iter()
        .map(|row| {
            let each = saving(&row.code);
            let all = each.zip(row.members).map(|(each, members)| u64::from(each).saturating_mul(members));
            (label(row), row.members, each, all)
        })
        .collect();
    rows.sort_by_key(|(_, members, _, all)| std::cmp::Reverse((*all, *members)));
    let dollars = |amount: u64| format!("${}", grouped(amount));
    let summary = match rows.first() {
        Some((label, Some(members), Some(each), Some(all))) => format!(
            "The largest is {label}: {} × {} a year is {} a year, by the catalog's estimate. A member may choose several.",
            counted(*members, "member"),
            dollars((*each).into()),
            dollars(*all)
        ),
        Some(_) => format!("No bill was chosen by {SMALLEST} members or more yet."),
        None => "No member has chosen a bill yet.".to_owned(),
    };
    let shown = if rows.is_empty() {
        PictureContent::Nothing { hint: "Members choose bills when they join, and on their own page.", command: None }
    } else {
        let most = rows.iter().filter_map(|(.., all)| *all).max().unwrap_or(0);
        let items = rows.iter().take(CHART_ROWS).map(|(label, members, _, all)| {
            let value = match all {
                Some(all) => format!("{} · {}", count_words(*members), dollars(*all)),
                None => count_words(*members),
            };
            BarItem::one(label, value, all.unwrap_or(0), Tone::Plain)
        });
        let table = rows.iter().map(|(label, members, each, all)| {
            let each = each.map_or_else(|| "–".to_owned(), |each| dollars(each.into()));
            row(label.clone(), [count_words(*members), each, all.map_or_else(|| "–".to_owned(), dollars)])
        });
        let table = DataTable::new(["Bill", "Members", "Saving each, a year", "Saving of all, a year"], table);
        PictureContent::Chart(bars(items.collect(), most), vec![table])
    };
    Picture { id: "demand", title: "What members want", summary, shown }
}

pub(super) fn referrals(overview: &Overview) -> Picture {
    let Overview { referred, members, top_referrers, .. } = overview;
    let of_all = share(*referred, *members).map(|share| format!(", {share} of all")).unwrap_or_default();
    let summary = match referred {
        0 => "No member was referred by another yet.".to_owned(),
        1 => format!("1 member was referred by another{of_all}. Below: the referral links that brought the most."),
        _ => format!(
            "{} members were referred by another{of_all}. Below: the referral links that brought the most.",
            grouped(*referred)
        ),
    };
    let shown = if top_referrers.is_empty() {
        PictureContent::Nothing { hint: "Every member has a referral link on their own page, /me.", command: None }
    } else {
        let most = top_referrers.iter().map(|(_, members)| *members).max().unwrap_or(0);
        let items = top_referrers
            .iter()
            .take(CHART_ROWS)
            .map(|(code, members)| BarItem::one(code.as_str(), counted(*members, "member"), *members, Tone::Plain));
        let rows = top_referrers.iter().map(|(code, members)| row(code.to_string(), [grouped(*members)]));
        PictureContent::Chart(bars(items.collect(), most), vec![DataTable::new(["Referral code", "Members"], rows)])
    };
    Picture { id: "referrals", title: "Referrals", summary, shown }
}
