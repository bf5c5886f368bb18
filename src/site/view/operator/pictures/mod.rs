//! The pictures of the overview: what each shows, in one sentence, as a chart and as a table.

mod members;
mod service;

use self::members::{demand, referrals, states};
pub(super) use self::service::rewards;
pub(in crate::site) use self::service::{accepted, next, title};
use self::service::{campaigns, mail, partners};
use super::charts::{BarItem, Chart, Tone, bars, lines};
use crate::domain::catalog::Catalog;
use crate::domain::figure::{counted, grouped};
use crate::domain::time::Timestamp;
use crate::operator::Funnel;
use crate::operator::overview::{DayFigures, MONTH, Overview};

/// Rows of a chart; a table has more.
const CHART_ROWS: usize = 8;

/// Rows of a table: far more than anybody reads.
const TABLE_ROWS: usize = 60;

/// Days that are points of their own; of more each week is one.
const DAILY: usize = 35;

pub(super) struct Picture {
    /// Of the section, for links.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// The figures in a sentence or two.
    pub(super) summary: String,
    pub(super) shown: PictureContent,
}

pub(super) enum PictureContent {
    Chart(Chart, Vec<DataTable>),
    /// There is nothing to show: what to do about it, and a command for it.
    Nothing {
        hint: &'static str,
        command: Option<&'static str>,
    },
}

pub(super) struct DataTable {
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<DataRow>,
    pub(super) more: Option<String>,
}

/// A row: what it is about, then its figures.
pub(super) struct DataRow {
    pub(super) head: String,
    pub(super) cells: Vec<String>,
}

impl DataTable {
    fn new<const N: usize>(columns: [&'static str; N], rows: impl IntoIterator<Item = DataRow>) -> Self {
        let mut rows: Vec<_> = rows.into_iter().collect();
        let left = rows.len().saturating_sub(TABLE_ROWS) as u64;
        rows.truncate(TABLE_ROWS);
        Self { columns: columns.into(), rows, more: (left > 0).then(|| format!("And {} more.", grouped(left))) }
    }
}

fn row<const N: usize>(head: impl Into<String>, cells: [String; N]) -> DataRow {
    DataRow { head: head.into(), cells: cells.into() }
}

/// All of them, in the order in which they are shown.
pub(super) fn pictures(overview: &Overview, catalog: &Catalog) -> Vec<Picture> {
    vec![
        members(overview),
        funnel(overview),
        states(overview),
        demand(overview, catalog),
        referrals(overview),
        partners(overview),
        mail(overview),
        campaigns(overview),
        rewards(overview),
    ]
}

fn members(overview: &Overview) -> Picture {
    let [month, before] = overview.periods(MONTH);
    let all = counted(overview.members, "member");
    let joined = grouped(month.confirmed);
    let mut summary = format!("{all} now. {joined} joined in the last {MONTH} days");
    // Of a union that is younger there is nothing to compare with.
    if overview.days.len() >= 2 * MONTH && before.confirmed > 0 {
        summary.push_str(&format!(", {}", compared(month.confirmed, before.confirmed, MONTH)));
    }
    summary.push_str(&format!("; {} left the union.", grouped(month.left)));
    let points = points(&overview.days);
    let shown = if overview.days.iter().all(|day| day.members == 0) {
        PictureContent::Nothing {
            hint: "Nobody has joined yet. Link to the page /join from where people see it, or give a partner a key:",
            command: Some("unionhall keys issue NAME"),
        }
    } else {
        let chart = lines(&points.iter().map(|point| (point.until.clone(), point.members)).collect::<Vec<_>>());
        let rows = points.iter().rev().map(|point| {
            row(point.until.clone(), [point.members, point.funnel.confirmed, point.funnel.left].map(grouped))
        });
        let head = if overview.days.len() > DAILY { "Week until" } else { "Day (UTC)" };
        PictureContent::Chart(chart, vec![DataTable::new([head, "Members", "Joined", "Left"], rows)])
    };
    Picture { id: "members", title: "Members over time", summary, shown }
}

/// "12% more than in the 30 before".
pub(super) fn compared(now: u64, before: u64, days: usize) -> String {
    let change = i128::from(now) - i128::from(before);
    let percent = change.unsigned_abs() * 100 / u128::from(before.max(1));
    match change {
        0 => format!("as many as in the {days} before"),
        _ if percent == 0 => format!("about as many as in the {days} before"),
        1.. => format!("{percent}% more than in the {days} before"),
        _ => format!("{percent}% fewer than in the {days} before"),
    }
}

/// A day or a week of the line of members.
struct Point {
    until: String,
    members: u64,
    funnel: Funnel,
}

fn points(days: &[DayFigures]) -> Vec<Point> {
    let length = if days.len() > DAILY { 7 } else { 1 };
    let point = |days: &[DayFigures]| {
        let mut funnel = Funnel::default();
        days.iter().for_each(|day| funnel += day.funnel);
        let last = days.last();
        let until = last.map(|day| Timestamp::from_millis(day.day * 86_400_000).day()).unwrap_or_default();
        Point { until, members: last.map_or(0, |day| day.members), funnel }
    };
    // Whole weeks up to today; what is left over at the beginning is a shorter one.
    let mut points: Vec<_> = days.rchunks(length).map(point).collect();
    points.reverse();
    points
}

fn funnel(overview: &Overview) -> Picture {
    let [month, _] = overview.periods(MONTH);
    let Funnel { signed_up, mailed, confirmed, declined, lapsed, left } = month;
    let summary = format!(
        "In the last {MONTH} days there were {}. {} to confirm went out, and {} became members{}. {} declined, and {} let their link lapse.",
        counted(signed_up, "sign-up"),
        counted(mailed, "mail"),
        grouped(confirmed),
        share(confirmed, signed_up).map(|share| format!(": {share} of the sign-ups")).unwrap_or_default(),
        grouped(declined),
        grouped(lapsed),
    );
    let stages = [("1. Signed up", signed_up), ("2. Confirmation mail sent", mailed), ("3. Became members", confirmed)];
    let outcomes = [("Declined", declined), ("Let the link lapse", lapsed), ("Left the union", left)];
    let most = stages.iter().chain(&outcomes).map(|(_, count)| *count).max().unwrap_or(0);
    let shown = if most == 0 {
        PictureContent::Nothing {
            hint: "Nobody signed up in that time. If they should have, this says what is wrong:",
            command: Some("unionhall doctor"),
        }
    } else {
        let value = |count| match share(count, signed_up) {
            Some(share) => format!("{} · {share}", grouped(count)),
            None => grouped(count),
        };
        let item = |tone| move |(label, count): (&str, u64)| BarItem::one(label, value(count), count, tone);
        let mut items: Vec<_> = stages.into_iter().map(item(Tone::Plain)).collect();
        items.push(BarItem::heading("Other outcomes"));
        items.extend(outcomes.into_iter().map(item(Tone::Warning)));
        let cells = |count| [grouped(count), share(count, signed_up).unwrap_or_default()];
        let rows =
            |part: [(&'static str, u64); 3]| part.into_iter().map(move |(label, count)| row(label, cells(count)));
        let stages = DataTable::new(["Stage, last 30 days", "People", "Of the sign-ups"], rows(stages));
        let outcomes = DataTable::new(["Other outcomes", "People", "Of the sign-ups"], rows(outcomes));
        PictureContent::Chart(bars(items, most), vec![stages, outcomes])
    };
    Picture { id: "funnel", title: "From sign-up to member", summary, shown }
}

/// A share of something, in percent; none of nothing.
pub(super) fn share(part: u64, whole: u64) -> Option<String> {
    let percent = (u128::from(part) * 100 + u128::from(whole) / 2).checked_div(u128::from(whole))?;
    Some(match percent {
        0 if part > 0 => "<1%".to_owned(),
        percent => format!("{percent}%"),
    })
}
