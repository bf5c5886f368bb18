//! The overview at a glance: a few figures with their trend, and what is due next.

use super::pictures::{compared, share, title};
use crate::domain::campaign::record::NextDate;
use crate::domain::figure::{capped, counted, grouped, money};
use crate::domain::mail::MOST_COUNTED;
use crate::domain::time::Timestamp;
use crate::operator::Funnel;
use crate::operator::findings::PAYOUTS_ARE_OLD;
use crate::operator::overview::{MONTH, Overview, WEEK};

/// Deadlines that are listed, the next ones.
const MOST_DEADLINES: usize = 8;

pub(super) struct KeyFigure {
    pub(super) label: &'static str,
    pub(super) value: String,
    /// What it was before, or more of it.
    pub(super) note: String,
    /// Where the whole of it is.
    pub(super) href: &'static str,
}

pub(super) fn key_figures(overview: &Overview) -> Vec<KeyFigure> {
    let [week, week_before] = overview.periods(WEEK);
    let [month, month_before] = overview.periods(MONTH);
    let (joined, left) = (week.confirmed, week.left);
    let confirmed = |funnel: Funnel| share(funnel.confirmed, funnel.signed_up);
    let before = confirmed(month_before).map_or_else(String::new, |share| format!("; {share} in the {MONTH} before"));
    let (rewards, mail) = (&overview.rewards, &overview.mail);
    let figure = |label, value, note, href| KeyFigure { label, value, note, href };
    vec![
        figure(
            "Members",
            grouped(overview.members),
            format!("{} joined and {} left in {WEEK} days", grouped(joined), grouped(left)),
            "#members",
        ),
        figure(
            "Sign-ups, 7 days",
            grouped(week.signed_up),
            match (week.signed_up, week_before.signed_up) {
                (_, 0) => format!("none in the {WEEK} before"),
                (now, before) => compared(now, before, WEEK),
            },
            "#funnel",
        ),
        figure(
            "Confirmed, 30 days",
            confirmed(month).unwrap_or_else(|| "–".to_owned()),
            format!("of {}{before}", counted(month.signed_up, "sign-up")),
            "#funnel",
        ),
        figure(
            "Mail waiting",
            capped(mail.waiting, MOST_COUNTED),
            format!("{} held", capped(mail.held, MOST_COUNTED)),
            "/operator/mail",
        ),
        figure(
            "Rewards due",
            money(rewards.due_cents),
            format!("{} being paid", money(rewards.out_cents)),
            "/operator/rewards",
        ),
    ]
}

pub(super) struct Deadline {
    /// When it ends.
    at: Timestamp,
    /// The day, as the filter of the page reads it.
    pub(super) day: String,
    pub(super) about: String,
    pub(super) what: &'static str,
    pub(super) href: String,
}

/// What is due next, the nearest first.
pub(super) fn deadlines(overview: &Overview) -> Vec<Deadline> {
    let campaigns = overview.campaigns.iter().filter_map(|campaign| {
        let (day, what) = match campaign.next_date(overview.read_at)? {
            NextDate::Negotiating(day) => (day, "members are asked until the end of this day"),
            NextDate::AcceptingEnds(day) => (day, "members can accept until the end of this day"),
        };
        Some(Deadline {
            at: day.ends_at(),
            day: day.to_string(),
            about: title(campaign).to_owned(),
            what,
            href: format!("/operator/campaigns/{}", campaign.slug()),
        })
    });
    let batches = overview.batches.iter().map(|batch| {
        let at = batch.created_at.plus(PAYOUTS_ARE_OLD);
        let what = if batch.is_written { "record what was paid" } else { "download its file" };
        Deadline {
            at,
            day: at.to_string().chars().take(10).collect(),
            about: format!("Batch {} of rewards", batch.id),
            what,
            href: if batch.is_written { "/operator/rewards#settle" } else { "/operator/rewards#batches" }.to_owned(),
        }
    });
    // What is overdue is a finding.
    let mut deadlines: Vec<_> = campaigns.chain(batches).filter(|due| due.at > overview.read_at).collect();
    deadlines.sort_by_key(|deadline| deadline.at);
    deadlines.truncate(MOST_DEADLINES);
    deadlines
}
