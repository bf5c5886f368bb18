//! The pictures of the overview: what each shows, in one sentence, as a chart and as a table.

use super::charts::{BarItem, Chart, Tone, bars, lines, steps, tiles};
use crate::domain::campaign::CampaignState;
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::catalog::Catalog;
use crate::domain::catalog::category::Category;
use crate::domain::figure::{counted, grouped, money};
use crate::domain::language::Language;
use crate::domain::mail::budget::source_name;
use crate::domain::time::Timestamp;
use crate::operator::Funnel;
use crate::operator::demand::{DemandRow, OTHERS, SMALLEST};
use crate::operator::overview::{DayFigures, MONTH, Overview};

/// Rows of a chart; a table has more.
const CHART_ROWS: usize = 8;

/// Rows of a table: far more than anybody reads.
const TABLE_ROWS: usize = 60;

/// Days that are points of their own; of more each week is one.
const DAILY: usize = 35;

/// One picture.
#[derive(Debug)]
pub(super) struct Picture {
    /// Of the section, for links.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// The figures in a sentence or two.
    pub(super) summary: String,
    pub(super) shown: Shown,
}

#[derive(Debug)]
pub(super) enum Shown {
    Chart(Chart, Vec<DataTable>),
    /// There is nothing to show: what to do about it, and a command for it.
    Nothing {
        hint: &'static str,
        command: Option<&'static str>,
    },
}

/// The figures of a picture.
#[derive(Debug)]
pub(super) struct DataTable {
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<DataRow>,
    /// Rows that are left out.
    pub(super) more: Option<String>,
}

/// A row: what it is about, then its figures.
#[derive(Debug)]
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
    let [month, before] = overview.months();
    let all = counted(overview.members, "member");
    let joined = grouped(month.confirmed);
    let mut summary = format!("{all} now. {joined} joined in the last {MONTH} days");
    // Of a union that is younger there is nothing to compare with.
    if overview.days.len() >= 2 * MONTH && before.confirmed > 0 {
        summary.push_str(&format!(", {}", compared(month.confirmed, before.confirmed)));
    }
    summary.push_str(&format!("; {} left.", grouped(month.left)));
    let points = points(&overview.days);
    let shown = if overview.days.iter().all(|day| day.members == 0) {
        Shown::Nothing {
            hint: "Nobody has joined yet. Link to the page /join from where people see it, or give a partner a key:",
            command: Some("unionhall keys issue --partner NAME"),
        }
    } else {
        let chart = lines(&points.iter().map(|point| (point.until.clone(), point.members)).collect::<Vec<_>>());
        let rows = points.iter().rev().map(|point| {
            row(point.until.clone(), [point.members, point.funnel.confirmed, point.funnel.left].map(grouped))
        });
        let head = if overview.days.len() > DAILY { "Week until" } else { "Day (UTC)" };
        Shown::Chart(chart, vec![DataTable::new([head, "Members", "Joined", "Left"], rows)])
    };
    Picture { id: "members", title: "Members over time", summary, shown }
}

/// "12% more than in the 30 before".
fn compared(now: u64, before: u64) -> String {
    let change = i128::from(now) - i128::from(before);
    let percent = change.unsigned_abs() * 100 / u128::from(before.max(1));
    match change {
        0 => format!("as many as in the {MONTH} before"),
        _ if percent == 0 => format!("about as many as in the {MONTH} before"),
        1.. => format!("{percent}% more than in the {MONTH} before"),
        _ => format!("{percent}% fewer than in the {MONTH} before"),
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
    let [month, _] = overview.months();
    let Funnel { signed_up, mailed, confirmed, declined, lapsed, left } = month;
    let summary = format!(
        "In the last {MONTH} days there were {}. {} to confirm left, and {} became members{}. {} declined, and {} let their link lapse.",
        counted(signed_up, "sign-up"),
        counted(mailed, "mail"),
        grouped(confirmed),
        share(confirmed, signed_up).map(|share| format!(": {share} of the sign-ups")).unwrap_or_default(),
        grouped(declined),
        grouped(lapsed),
    );
    let steps = [
        ("Signed up", signed_up, Tone::Plain),
        ("Confirmation mail sent", mailed, Tone::Plain),
        ("Became members", confirmed, Tone::Plain),
        ("Declined", declined, Tone::Warning),
        ("Let the link lapse", lapsed, Tone::Warning),
    ];
    let most = steps.iter().map(|(_, count, _)| *count).max().unwrap_or(0);
    let shown = if most == 0 {
        Shown::Nothing {
            hint: "Nobody signed up in that time. If they should have, this says what is wrong:",
            command: Some("unionhall doctor"),
        }
    } else {
        let value = |count| match share(count, signed_up) {
            Some(share) => format!("{} · {share}", grouped(count)),
            None => grouped(count),
        };
        let item = |(label, count, tone): (&str, u64, Tone)| BarItem {
            label: label.to_owned(),
            value: value(count),
            parts: vec![(count, tone)],
        };
        let rows = steps.iter().map(|(label, count, _)| (*label, *count)).chain([("Left the union", left)]);
        let rows = rows.map(|(label, count)| row(label, [grouped(count), share(count, signed_up).unwrap_or_default()]));
        let table = DataTable::new(["Last 30 days", "People", "Of the sign-ups"], rows);
        Shown::Chart(bars(steps.map(item).into(), most), vec![table])
    };
    Picture { id: "funnel", title: "From sign-up to member", summary, shown }
}

/// A share of something, in percent; none of nothing.
fn share(part: u64, whole: u64) -> Option<String> {
    let percent = (u128::from(part) * 100 + u128::from(whole) / 2).checked_div(u128::from(whole))?;
    Some(match percent {
        0 if part > 0 => "<1%".to_owned(),
        percent => format!("{percent}%"),
    })
}

/// A count of members, where they are not too few to tell.
fn told(members: Option<u64>) -> String {
    members.map_or_else(|| format!("<{SMALLEST}"), grouped)
}

fn states(overview: &Overview) -> Picture {
    let rows = &overview.by_state;
    let named: Vec<_> = rows.iter().filter(|row| !row.code.is_empty() && row.code != OTHERS).collect();
    let mut summary = match named.first() {
        Some(first) => {
            let most = format!(
                "Most members live in {}: {} of {}.",
                first.name,
                told(first.members),
                grouped(overview.members)
            );
            match named.len() {
                1 => most,
                count => format!("{most} {count} states have {SMALLEST} members or more."),
            }
        }
        None => format!("No state has {SMALLEST} members or more yet."),
    };
    if let Some(others) = rows.iter().find(|row| row.code == OTHERS) {
        summary.push_str(&format!(" Not on the map: {}, {} together.", others.name, told(others.members)));
    }
    let shown = if rows.is_empty() {
        Shown::Nothing { hint: "Once there are members, this is a map of where they live.", command: None }
    } else {
        let of = |code: &str| rows.iter().find(|row| row.code == code).and_then(|row| row.members);
        let table = rows.iter().map(|cell| row(cell.name.clone(), [told(cell.members)]));
        Shown::Chart(tiles(of), vec![DataTable::new(["State", "Members"], table)])
    };
    Picture { id: "states", title: "Where members live", summary, shown }
}

fn demand(overview: &Overview, catalog: &Catalog) -> Picture {
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
        Shown::Nothing { hint: "Members choose bills when they join, and on their own page.", command: None }
    } else {
        let most = rows.iter().filter_map(|(.., all)| *all).max().unwrap_or(0);
        let items = rows.iter().take(CHART_ROWS).map(|(label, members, _, all)| {
            let value = match all {
                Some(all) => format!("{} · {}", told(*members), dollars(*all)),
                None => told(*members),
            };
            BarItem { label: label.clone(), value, parts: vec![(all.unwrap_or(0), Tone::Plain)] }
        });
        let table = rows.iter().map(|(label, members, each, all)| {
            let each = each.map_or_else(|| "–".to_owned(), |each| dollars(each.into()));
            row(label.clone(), [told(*members), each, all.map_or_else(|| "–".to_owned(), dollars)])
        });
        let table = DataTable::new(["Bill", "Members", "Saving each, a year", "Saving of all, a year"], table);
        Shown::Chart(bars(items.collect(), most), vec![table])
    };
    Picture { id: "demand", title: "What members want", summary, shown }
}

fn referrals(overview: &Overview) -> Picture {
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
        Shown::Nothing { hint: "Every member has a referral link on their own page, /me.", command: None }
    } else {
        let most = top_referrers.iter().map(|(_, members)| *members).max().unwrap_or(0);
        let items = top_referrers.iter().take(CHART_ROWS).map(|(code, members)| BarItem {
            label: code.to_string(),
            value: counted(*members, "member"),
            parts: vec![(*members, Tone::Plain)],
        });
        let rows = top_referrers.iter().map(|(code, members)| row(code.to_string(), [grouped(*members)]));
        Shown::Chart(bars(items.collect(), most), vec![DataTable::new(["Referral code", "Members"], rows)])
    };
    Picture { id: "referrals", title: "Referrals", summary, shown }
}

fn partners(overview: &Overview) -> Picture {
    let sources = &overview.sources;
    let partners = sources.iter().filter(|(source, _)| !source.is_empty()).count() as u64;
    let of_form = sources.iter().find(|(source, _)| source.is_empty()).map_or(0, |(_, funnel)| funnel.signed_up);
    let all: u64 = sources.iter().map(|(_, funnel)| funnel.signed_up).sum();
    let summary = format!(
        "In the last {MONTH} days {} and the form brought {}, {} of them the form. Shares are of the mails to confirm that left.",
        counted(partners, "partner"),
        counted(all, "sign-up"),
        grouped(of_form)
    );
    let shown = if sources.is_empty() {
        Shown::Nothing {
            hint: "No partner was active in that time. This issues a key to one:",
            command: Some("unionhall keys issue --partner NAME"),
        }
    } else {
        let rate = |part, funnel: &Funnel| share(part, funnel.mailed).unwrap_or_else(|| "–".to_owned());
        let items = sources.iter().take(CHART_ROWS).map(|(source, funnel)| {
            let value = match funnel.mailed {
                0 => "no mail left".to_owned(),
                _ => {
                    format!("{} confirmed, {} declined", rate(funnel.confirmed, funnel), rate(funnel.declined, funnel))
                }
            };
            let percent = |part: u64| u128::from(part) * 1000 / u128::from(funnel.mailed.max(1));
            let part = |part, tone| (u64::try_from(percent(part)).unwrap_or(u64::MAX), tone);
            let parts = vec![part(funnel.confirmed, Tone::Plain), part(funnel.declined, Tone::Warning)];
            BarItem { label: source_name(source).to_owned(), value, parts }
        });
        let rows = sources.iter().map(|(source, funnel)| {
            let Funnel { signed_up, mailed, confirmed, declined, .. } = *funnel;
            let [signed_up, mailed, joined] = [signed_up, mailed, confirmed].map(grouped);
            row(source_name(source), [signed_up, mailed, joined, rate(confirmed, funnel), rate(declined, funnel)])
        });
        let columns = ["Last 30 days", "Sign-ups", "Mails", "Members", "Confirmed", "Declined"];
        Shown::Chart(bars(items.collect(), 1000), vec![DataTable::new(columns, rows)])
    };
    Picture { id: "partners", title: "Partners and the form", summary, shown }
}

fn mail(overview: &Overview) -> Picture {
    let mail = &overview.mail;
    let oldest = mail.oldest.map(|at| format!(", the oldest for {}", duration(overview.read_at.since(at).as_secs())));
    let (mut bounced, mut complained) = (0, 0);
    for sender in &overview.senders {
        bounced += sender.reputation.bounced;
        complained += sender.reputation.complained;
    }
    let summary = format!(
        "{} waiting{}; {} held and {} failed for good. In the last 7 days {} came back and {} complained.",
        mails(mail.waiting),
        oldest.unwrap_or_default(),
        grouped(mail.held),
        grouped(mail.given_up),
        grouped(bounced),
        grouped(complained),
    );
    let states = [
        ("Waiting", mail.waiting, Tone::Plain),
        ("Held until you decide", mail.held, Tone::Warning),
        ("Failed for good", mail.given_up, Tone::Warning),
        ("Came back (7 days)", bounced, Tone::Warning),
        ("Complaints (7 days)", complained, Tone::Warning),
    ];
    let most = states.iter().map(|(_, count, _)| *count).max().unwrap_or(0);
    let item = |(label, count, tone): (&str, u64, Tone)| BarItem {
        label: label.to_owned(),
        value: grouped(count),
        parts: vec![(count, tone)],
    };
    let totals = states.iter().map(|(label, count, _)| row(*label, [grouped(*count)]));
    let senders = overview.senders.iter().map(|sender| {
        let reputation = &sender.reputation;
        let mailed = reputation.mailed_today + reputation.mailed_before;
        let figures = [mailed, reputation.bounced, reputation.complained, reputation.declined, sender.held];
        row(source_name(&sender.source), figures.map(grouped))
    });
    let columns = ["Last 7 days", "Mails", "Came back", "Complained", "Declined", "Held now"];
    let tables = vec![DataTable::new(["Mail", "Count"], totals), DataTable::new(columns, senders)];
    Picture { id: "mail", title: "Mail", summary, shown: Shown::Chart(bars(states.map(item).into(), most), tables) }
}

fn mails(count: u64) -> String {
    if count == 1 { "1 mail is".to_owned() } else { format!("{} mails are", grouped(count)) }
}

/// Some time, in its largest unit.
fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => counted(seconds, "second"),
        60..3600 => counted(seconds / 60, "minute"),
        3600..172_800 => counted(seconds / 3600, "hour"),
        _ => counted(seconds / 86_400, "day"),
    }
}

/// The steps that a campaign takes.
const STEPS: [CampaignState; 6] = [
    CampaignState::Draft,
    CampaignState::Gathering,
    CampaignState::Negotiating,
    CampaignState::Offered,
    CampaignState::Active,
    CampaignState::Closed,
];

/// The title that operators read.
pub(in crate::site) fn title(campaign: &CampaignRecord) -> &str {
    campaign.draft.text(Language::English).map_or(campaign.slug().as_str(), |text| &text.title)
}

/// A count of a sheet, which is rounded.
pub(in crate::site) fn coarse(members: u64) -> String {
    if members == 0 { "<5".to_owned() } else { grouped(members) }
}

fn campaigns(overview: &Overview) -> Picture {
    let campaigns = &overview.campaigns;
    let by_state = CampaignState::ALL.iter().filter_map(|state| {
        let count = campaigns.iter().filter(|campaign| campaign.state == *state).count();
        (count > 0).then(|| format!("{count} {}", state.name()))
    });
    let summary = match campaigns.len() {
        0 => "There is no campaign yet.".to_owned(),
        count => format!("{}: {}.", counted(count as u64, "campaign"), by_state.collect::<Vec<_>>().join(", ")),
    };
    let shown = if campaigns.is_empty() {
        Shown::Nothing {
            hint: "A campaign asks members whether they are in, and negotiates one price for all of them. This makes a sample:",
            command: Some("unionhall campaigns sample | unionhall campaigns new -"),
        }
    } else {
        let items = campaigns.iter().take(CHART_ROWS).map(|campaign| {
            let taken = STEPS.iter().position(|state| *state == campaign.state).map(|place| place as u64 + 1);
            let value = match campaign.state {
                CampaignState::Draft | CampaignState::Cancelled => campaign.state.name().to_owned(),
                state => format!("{} · {} in", state.name(), coarse(campaign.counted_in())),
            };
            (title(campaign).to_owned(), value, taken)
        });
        let rows = campaigns.iter().map(|campaign| {
            let accepted = campaign.sheet.as_ref().map_or(0, |(_, sheet)| sheet.accepted);
            let next = campaign.next_words(overview.read_at);
            let cells = [campaign.state.name().to_owned(), coarse(campaign.counted_in()), coarse(accepted), next];
            row(title(campaign), cells)
        });
        let table = DataTable::new(["Campaign", "State", "In", "Accepted", "Next"], rows);
        Shown::Chart(steps(items.collect(), STEPS.len() as u64), vec![table])
    };
    Picture { id: "campaigns", title: "Campaigns", summary, shown }
}

fn rewards(overview: &Overview) -> Picture {
    let (totals, on_the_way) = (&overview.rewards, &overview.on_the_way);
    let at_least = if on_the_way.is_whole { "" } else { "at least " };
    let mut summary = format!(
        "{} is due, {} is being paid, and {} was paid. Of referred members {at_least}{} on hold and {at_least}{} for a full group.",
        money(totals.due_cents),
        money(totals.out_cents),
        money(totals.paid_cents),
        if on_the_way.on_hold == 1 { "1 is".to_owned() } else { format!("{} are", grouped(on_the_way.on_hold)) },
        if on_the_way.waiting == 1 { "1 waits".to_owned() } else { format!("{} wait", grouped(on_the_way.waiting)) },
    );
    if totals.erased_cents > 0 {
        summary.push_str(&format!(
            " {} is due to accounts that were erased, which no batch pays.",
            money(totals.erased_cents)
        ));
    }
    if totals.negative_accounts > 0 {
        let owes = if totals.negative_accounts == 1 { "owes" } else { "owe" };
        let accounts = counted(totals.negative_accounts, "account");
        summary.push_str(&format!(" {accounts} {owes} {}.", money(-totals.negative_cents)));
    }
    let shown = if totals.accounts == 0 && on_the_way.on_hold + on_the_way.waiting == 0 {
        Shown::Nothing {
            hint: "Nobody has earned a reward yet. Members earn them by those whom they referred, once a campaign is active.",
            command: None,
        }
    } else {
        let sums = [
            ("Due", totals.due_cents, Tone::Warning),
            ("Being paid", totals.out_cents, Tone::Plain),
            ("Paid", totals.paid_cents, Tone::Plain),
        ];
        let length = |cents: i64| u64::try_from(cents).unwrap_or(0);
        let most = sums.iter().map(|(_, cents, _)| length(*cents)).max().unwrap_or(0);
        let item = |(label, cents, tone): (&str, i64, Tone)| BarItem {
            label: label.to_owned(),
            value: money(cents),
            parts: vec![(length(cents), tone)],
        };
        let money_rows = sums.iter().map(|(label, cents, _)| row(*label, [money(*cents)]));
        let people = [("On hold", on_the_way.on_hold), ("Waiting for a full group", on_the_way.waiting)];
        let people = people.map(|(label, count)| row(label, [format!("{at_least}{}", grouped(count))]));
        let tables = vec![
            DataTable::new(["Rewards", "Amount"], money_rows),
            DataTable::new(["Referred members", "Count"], people),
        ];
        Shown::Chart(bars(sums.map(item).into(), most), tables)
    };
    Picture { id: "rewards", title: "Rewards", summary, shown }
}
