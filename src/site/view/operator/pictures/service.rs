//! Pictures of what the service does: partners, mail, campaigns and rewards.

use super::{CHART_ROWS, DataTable, Picture, PictureContent, row, share};
use crate::domain::campaign::CampaignState;
use crate::domain::campaign::demand::{BEING_COUNTED, count_words};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::figure::{capped, counted, grouped, money};
use crate::domain::language::Language;
use crate::domain::mail::MOST_COUNTED;
use crate::domain::mail::budget::source_name;
use crate::domain::time::Timestamp;
use crate::operator::Funnel;
use crate::operator::overview::{MONTH, Overview};
use crate::site::view::operator::charts::{BarItem, Tone, bars, steps};

pub(super) fn partners(overview: &Overview) -> Picture {
    let sources = &overview.sources;
    let partners = sources.iter().filter(|(source, _)| !source.is_empty()).count() as u64;
    let of_form = sources.iter().find(|(source, _)| source.is_empty()).map_or(0, |(_, funnel)| funnel.signed_up);
    let all: u64 = sources.iter().map(|(_, funnel)| funnel.signed_up).sum();
    let summary = format!(
        "In the last {MONTH} days {} and the join form brought {}, {} of them the form. Of the mails to confirm that went out, so many said yes (confirmed) or no (declined).",
        counted(partners, "partner"),
        counted(all, "sign-up"),
        grouped(of_form)
    );
    let shown = if sources.is_empty() {
        PictureContent::Nothing {
            hint: "No partner was active in that time. This issues a key to one:",
            command: Some("unionhall keys issue NAME"),
        }
    } else {
        let rate = |part, funnel: &Funnel| share(part, funnel.mailed).unwrap_or_else(|| "–".to_owned());
        let items = sources.iter().take(CHART_ROWS).map(|(source, funnel)| {
            let value = match funnel.mailed {
                0 => "no mail went out".to_owned(),
                _ => {
                    format!("{} yes, {} no", rate(funnel.confirmed, funnel), rate(funnel.declined, funnel))
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
        PictureContent::Chart(bars(items.collect(), 1000), vec![DataTable::new(columns, rows)])
    };
    Picture { id: "partners", title: "Partners and the join form", summary, shown }
}

pub(super) fn mail(overview: &Overview) -> Picture {
    let mail = &overview.mail;
    let oldest = mail.oldest.map(|at| format!(", the oldest for {}", duration(overview.read_at.since(at).as_secs())));
    let (mut bounced, mut complained) = (0, 0);
    for sender in &overview.senders {
        bounced += sender.reputation.bounced;
        complained += sender.reputation.complained;
    }
    let summary = format!(
        "{} waiting{}; {} held and {} failed for good. In the last 7 days {} bounced and {} complained.",
        mails(mail.waiting),
        oldest.unwrap_or_default(),
        capped(mail.held, MOST_COUNTED),
        capped(mail.given_up, MOST_COUNTED),
        grouped(bounced),
        grouped(complained),
    );
    let states = [
        ("Waiting", mail.waiting, MOST_COUNTED, Tone::Plain),
        ("Held until you decide", mail.held, MOST_COUNTED, Tone::Warning),
        ("Failed for good", mail.given_up, MOST_COUNTED, Tone::Warning),
        ("Bounced (7 days)", bounced, u32::MAX, Tone::Warning),
        ("Complaints (7 days)", complained, u32::MAX, Tone::Warning),
    ];
    let most = states.iter().map(|(_, count, ..)| *count).max().unwrap_or(0);
    let item =
        |(label, count, most, tone): (&str, u64, u32, Tone)| BarItem::one(label, capped(count, most), count, tone);
    let totals = states.iter().map(|(label, count, most, _)| row(*label, [capped(*count, *most)]));
    let senders = overview.senders.iter().map(|sender| {
        let reputation = &sender.reputation;
        let figures = [reputation.asked, reputation.bounced, reputation.complained, reputation.declined, sender.held];
        row(source_name(&sender.source), figures.map(grouped))
    });
    let columns = ["Last 7 days", "Mailed", "Bounced", "Complained", "Declined", "Held now"];
    let mut tables = vec![DataTable::new(["Mail", "Count"], totals), DataTable::new(columns, senders)];
    // Of a source there is nothing before the first mail.
    tables.retain(|table| !table.rows.is_empty());
    Picture {
        id: "mail",
        title: "Mail",
        summary,
        shown: PictureContent::Chart(bars(states.map(item).into(), most), tables),
    }
}

fn mails(count: u64) -> String {
    if count == 1 { "1 mail is".to_owned() } else { format!("{} mails are", capped(count, MOST_COUNTED)) }
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => counted(seconds, "second"),
        60..3600 => counted(seconds / 60, "minute"),
        3600..172_800 => counted(seconds / 3600, "hour"),
        _ => counted(seconds / 86_400, "day"),
    }
}

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

/// Members who accepted, as the last sheet has it.
pub(in crate::site) fn accepted(campaign: &CampaignRecord) -> String {
    count_words(campaign.counted_accepted())
}

/// What happens next: by a date, or by a button.
pub(in crate::site) fn next(campaign: &CampaignRecord, now: Timestamp) -> String {
    let step = match campaign.state {
        CampaignState::Draft => "open it",
        CampaignState::Negotiating => "publish an offer",
        CampaignState::Offered => "accepting has ended; activate it once the deal has started, or cancel it",
        CampaignState::Active => "accepting has ended; close it at the end of the deal",
        CampaignState::Gathering | CampaignState::Closed | CampaignState::Cancelled => "nothing",
    };
    campaign.next_date(now).map_or_else(|| step.to_owned(), |date| date.to_string())
}

pub(super) fn campaigns(overview: &Overview) -> Picture {
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
        PictureContent::Nothing {
            hint: "A campaign asks members whether they are in, and negotiates one price for all of them. This makes a sample:",
            command: Some("unionhall campaigns sample | unionhall campaigns new -"),
        }
    } else {
        let items = campaigns.iter().take(CHART_ROWS).map(|campaign| {
            let taken = STEPS.iter().position(|state| *state == campaign.state).map(|place| place as u64 + 1);
            let value = match campaign.state {
                CampaignState::Draft | CampaignState::Cancelled => campaign.state.name().to_owned(),
                state => match campaign.counted_in() {
                    None => format!("{} · {BEING_COUNTED}", state.name()),
                    counted => format!("{} · {} in", state.name(), count_words(counted)),
                },
            };
            (title(campaign).to_owned(), value, taken)
        });
        let rows = campaigns.iter().map(|campaign| {
            let (state, next) = (campaign.state.name().to_owned(), next(campaign, overview.read_at));
            row(title(campaign), [state, count_words(campaign.counted_in()), accepted(campaign), next])
        });
        let table = DataTable::new(["Campaign", "State", "In", "Accepted", "Next"], rows);
        PictureContent::Chart(steps(items.collect(), STEPS.len() as u64), vec![table])
    };
    Picture { id: "campaigns", title: "Campaigns", summary, shown }
}

pub(in crate::site::view::operator) fn rewards(overview: &Overview) -> Picture {
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
        PictureContent::Nothing {
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
        let item = |(label, cents, tone): (&str, i64, Tone)| BarItem::one(label, money(cents), length(cents), tone);
        let money_rows = sums.iter().map(|(label, cents, _)| row(*label, [money(*cents)]));
        let people = [("On hold", on_the_way.on_hold), ("Waiting for a full group", on_the_way.waiting)];
        let people = people.map(|(label, count)| row(label, [format!("{at_least}{}", grouped(count))]));
        let tables = vec![
            DataTable::new(["Rewards", "Amount"], money_rows),
            DataTable::new(["Referred members", "Count"], people),
        ];
        PictureContent::Chart(bars(sums.map(item).into(), most), tables)
    };
    Picture { id: "rewards", title: "Rewards", summary, shown }
}
