//! `unionhall stats`

use std::collections::BTreeMap;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};

use super::{print_json, print_line, with_live_records};
use crate::clock::Clock;
use crate::config::StoreSettings;
use crate::domain::catalog::category::Category;
use crate::domain::mail::budget::{day_of, source_name};
use crate::domain::referral::ReferralCode;
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;
use crate::figures::{ListDemand, ListSourceDays, ListSources, ListTopReferrers};
use crate::operator::Funnel;
use crate::operator::demand::{DemandRow, SMALLEST, by_category, by_state};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// How many signed up, joined and left on each day (UTC).
    Day,
    /// What came of the sign-ups of each partner, and of the form.
    Partner,
    /// How many members live in each state.
    State,
    /// How many members want each category.
    Category,
    /// Who brought the most members, by referral code.
    Referrer,
}

#[derive(Args)]
pub(super) struct ShowStats {
    /// What the figures are broken down by [default: all together].
    #[arg(long, value_enum)]
    by: Option<By>,
    /// From that day on (2027-01-31): for days, partners and the whole [default for days: the last 30].
    #[arg(long, value_name = "DATE")]
    since: Option<Timestamp>,
    /// Only members who named this category when they joined, or on their own page since: with `--by state`.
    #[arg(long, value_name = "CATEGORY", value_parser = category)]
    category: Option<Category>,
    /// Only members who live there: with `--by category`.
    #[arg(long, value_name = "STATE", value_parser = us_state)]
    state: Option<UsState>,
    /// As a JSON document, for programs.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreSettings,
}

fn category(text: &str) -> Result<Category, String> {
    Category::from_slug(text).ok_or_else(|| format!("there is no such category; write one of {}", Category::slugs()))
}

fn us_state(text: &str) -> Result<UsState, String> {
    let wrong = || "write the two letters of a state, such as CA".to_owned();
    UsState::from_code(&text.to_ascii_uppercase()).ok_or_else(wrong)
}

/// The days that are shown unless others are asked for.
const DAYS: i64 = 30;

/// Referrers that are listed.
const TOP: u32 = 20;

pub(super) fn run(task: &ShowStats) -> anyhow::Result<()> {
    let by_day = matches!(task.by, None | Some(By::Day | By::Partner));
    if task.since.is_some() && !by_day {
        bail!("--since goes with days and partners; states, categories and referrers are of those who are members now");
    }
    if task.category.is_some() && task.by != Some(By::State) {
        bail!("--category goes with --by state");
    }
    if task.state.is_some() && task.by != Some(By::Category) {
        bail!("--state goes with --by category");
    }
    let clock = Clock::start();
    let today = day_of(clock.now().time);
    with_live_records(&task.store, async |operator| {
        operator.catch_up_figures(clock).await?;
        let since = task.since.map(day_of);
        match task.by {
            None => whole(task, operator.member_count().await?, &operator.ask(ListSources(since.unwrap_or(0))).await?),
            Some(By::Day) => {
                let since = since.unwrap_or(today - DAYS + 1);
                let mut days: BTreeMap<i64, Funnel> = BTreeMap::new();
                for source in operator.ask(ListSourceDays(since)).await? {
                    *days.entry(source.day).or_default() += source.funnel;
                }
                by_days(task, &days)
            }
            Some(By::Partner) => by_partner(task, operator.ask(ListSources(since.unwrap_or(0))).await?),
            Some(By::State) => {
                cells(task, "STATE", "state", &by_state(&operator.ask(ListDemand).await?, task.category))
            }
            Some(By::Category) => {
                cells(task, "CATEGORY", "category", &by_category(&operator.ask(ListDemand).await?, task.state))
            }
            Some(By::Referrer) => {
                let top = operator.ask(ListTopReferrers(TOP)).await?;
                let row = |(code, members): &(ReferralCode, u64)| {
                    let name = code.to_string();
                    DemandRow { code: name.clone(), name, members: Some(*members) }
                };
                cells(task, "REFERRER", "referrer", &Vec::from_iter(top.iter().map(row)))
            }
        }
    })
}

/// What a funnel is of, and its figures.
#[derive(Serialize)]
struct FunnelRow {
    #[serde(flatten)]
    key: Value,
    #[serde(flatten)]
    funnel: Funnel,
}

const FUNNEL: &str = "SIGNED UP    MAILED CONFIRMED  DECLINED    LAPSED      LEFT";

fn funnel_line(funnel: &Funnel) -> String {
    let Funnel { signed_up, mailed, confirmed, declined, lapsed, left } = funnel;
    format!("{signed_up:>9}{mailed:>10}{confirmed:>10}{declined:>10}{lapsed:>10}{left:>10}")
}

fn whole(task: &ShowStats, members: u64, sources: &[(String, Funnel)]) -> anyhow::Result<()> {
    let mut all = Funnel::default();
    sources.iter().for_each(|(_, funnel)| all += *funnel);
    if task.json {
        return print_json(&json!({ "members": members, "since": task.since, "funnel": all }));
    }
    let since = task.since.map_or_else(|| "Since the beginning:".to_owned(), |time| format!("Since {}:", time.day()));
    print_line(&format!("{members} members now. {since}\n\n{FUNNEL}\n{}", funnel_line(&all)))
}

/// A day as it is written: 2027-01-31.
fn written(day: i64) -> String {
    Timestamp::from_millis(day * 86_400_000).to_string()[..10].to_owned()
}

fn by_days(task: &ShowStats, days: &BTreeMap<i64, Funnel>) -> anyhow::Result<()> {
    if task.json {
        let row = |(day, funnel): (&i64, &Funnel)| FunnelRow { key: json!({ "day": written(*day) }), funnel: *funnel };
        return print_json(&Vec::from_iter(days.iter().map(row)));
    }
    print_line(&format!("{:<12}{FUNNEL}", "DAY (UTC)"))?;
    for (day, funnel) in days {
        print_line(&format!("{:<12}{}", written(*day), funnel_line(funnel)))?;
    }
    if days.is_empty() { print_line("Nobody signed up in that time.") } else { Ok(()) }
}

fn by_partner(task: &ShowStats, mut sources: Vec<(String, Funnel)>) -> anyhow::Result<()> {
    // The best first.
    sources.sort_by(|(one, a), (other, b)| (b.confirmed, b.signed_up, one).cmp(&(a.confirmed, a.signed_up, other)));
    if task.json {
        let row = |(source, funnel): &(String, Funnel)| {
            let partner = Some(source).filter(|source| !source.is_empty());
            let kind = if partner.is_some() { "partner" } else { "form" };
            FunnelRow { key: json!({ "source": kind, "partner": partner }), funnel: *funnel }
        };
        return print_json(&Vec::from_iter(sources.iter().map(row)));
    }
    print_line(&format!("{FUNNEL}  PARTNER"))?;
    for (source, funnel) in &sources {
        print_line(&format!("{}  {}", funnel_line(funnel), source_name(source)))?;
    }
    if sources.is_empty() { print_line("Nobody signed up in that time.") } else { Ok(()) }
}

fn cells(task: &ShowStats, heading: &str, key: &str, rows: &[DemandRow]) -> anyhow::Result<()> {
    if task.json {
        let row = |DemandRow { code, members, .. }: &DemandRow| json!({ key: code, "members": members });
        return print_json(&Vec::from_iter(rows.iter().map(row)));
    }
    print_line(&format!("{:>10}  {heading}", "MEMBERS"))?;
    for DemandRow { name, members, .. } in rows {
        let members = members.map_or_else(|| format!("<{SMALLEST}"), |members| members.to_string());
        print_line(&format!("{members:>10}  {name}"))?;
    }
    if rows.is_empty() { print_line("There are none yet.") } else { Ok(()) }
}
