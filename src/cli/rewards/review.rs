//! `unionhall rewards review`

use super::{ReviewGroups, with_rewards};
use crate::cli::audit::act;
use crate::cli::terminal::time_or_dash;
use crate::cli::{print_line, print_lines};
use crate::domain::figure::{counted, money};
use crate::domain::reward::Disqualified;
use crate::domain::reward::review::{Pattern, PatternKind, ReviewedMember, ReviewedReferrer};
use crate::rewards::RewardAdmin;
use crate::rewards::report::ListReviewedReferrers;

pub(super) fn run(task: &ReviewGroups) -> anyhow::Result<()> {
    let disposable = task.disposable.read()?;
    with_rewards(&task.store, async |operator, now| {
        let (rewards, mut groups, mut referrers, mut shown) = (operator.rewards(), 0, 0, 0);
        each(&rewards, |referrer| {
            groups += u64::from(referrer.groups);
            referrers += u64::from(referrer.groups > 0);
            shown += u64::from(!referrer.patterns(&disposable).is_empty());
            Ok(())
        })
        .await?;
        if shown > 0 {
            // Like `rewards tax`.
            operator.note(act("rewards review", counted(shown, "referrer"), now)).await?;
            each(&rewards, |referrer| {
                let patterns = referrer.patterns(&disposable);
                if patterns.is_empty() { Ok(()) } else { print_lines(&lines(referrer, &patterns)) }
            })
            .await?;
        }
        let all = format!("{} of {}", counted(groups, "group"), counted(referrers, "referrer"));
        print_line(&match (referrers, shown) {
            (0, 0) => "No group is waiting to be paid.".to_owned(),
            (0, _) => format!("No group is waiting to be paid: {} shown.", counted(shown, "referrer")),
            (_, 0) => format!("Looked at {all}, none of them paid yet: nothing to report."),
            (_, _) => format!("Looked at {all}, none of them paid yet: {} shown.", counted(shown, "referrer")),
        })
    })
}

/// Each referrer with something to review, page by page: there may be many.
async fn each(
    rewards: &RewardAdmin,
    mut visit: impl FnMut(&ReviewedReferrer) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut after = 0;
    loop {
        let page = rewards.ask(ListReviewedReferrers(after)).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.person;
        page.iter().try_for_each(&mut visit)?;
    }
}

/// One referrer with what stands out.
fn lines(referrer: &ReviewedReferrer, patterns: &[Pattern<'_>]) -> Vec<String> {
    let unpaid = match referrer.groups {
        0 => "no group waits to be paid".to_owned(),
        groups => format!("{} not paid yet, {}", counted(groups.into(), "group"), money(referrer.cents)),
    };
    let mut lines = vec![format!("{}: {unpaid}", shown(referrer.email.as_deref()))];
    if referrer.members.len() >= ReviewedReferrer::MOST_MEMBERS as usize {
        lines.push(format!("  only the first {} members were looked at", ReviewedReferrer::MOST_MEMBERS));
    }
    for Pattern { kind, members } in patterns {
        lines.push(format!("  {}", words(kind, referrer)));
        lines.extend(members.iter().map(|member| row(member)));
        lines.extend(void_command(members));
    }
    lines.push(String::new());
    lines
}

fn words(kind: &PatternKind, referrer: &ReviewedReferrer) -> String {
    match kind {
        PatternKind::Burst(people) => format!("burst: {people} members joined within an hour"),
        PatternKind::Together(people) => format!("together: {people} members accepted the offer within an hour"),
        PatternKind::Ended(people) => {
            let people = counted(*people as u64, "member");
            format!("ended: {people} no longer counted, after the file of their group's payout")
        }
        PatternKind::Disposable => "disposable: addresses at domains of disposable mailboxes".to_owned(),
        PatternKind::Cluster { partner, people, of } => {
            format!("partner: {people} of {of} members joined through {partner}")
        }
        PatternKind::Erased(people) => {
            format!(
                "erased: {} erased since, so when and how they joined is not known",
                counted(*people as u64, "member")
            )
        }
        PatternKind::Ring(steps) => {
            let ring: Vec<_> = referrer.referred_by.iter().take(*steps).map(|by| shown(by.email.as_deref())).collect();
            format!("ring: referred by {}", ring.join(", referred by "))
        }
    }
}

fn shown(email: Option<&str>) -> &str {
    email.unwrap_or("someone who was erased")
}

fn row(member: &ReviewedMember) -> String {
    let joined = time_or_dash(member.joined_at);
    let ReviewedMember { campaign, group, .. } = member;
    let batch = member.batch.map(|batch| format!(", in batch {batch}")).unwrap_or_default();
    let partner = member.partner.as_deref().unwrap_or("-");
    let ended = member.ended.map(|(on, why)| format!(", {} {}", why_ended(why), on.day())).unwrap_or_default();
    format!(
        "    {:<32}  {joined:<20}  {partner:<16}  {campaign} group {group}{batch}{ended}",
        shown(member.person.email.as_deref())
    )
}

fn why_ended(why: Disqualified) -> &'static str {
    match why {
        Disqualified::Passed => "passed",
        Disqualified::Left => "left",
        Disqualified::Erased => "erased",
        Disqualified::Offer => "the offer ended",
        Disqualified::Rejected => "order rejected",
        Disqualified::Cancelled => "order cancelled",
    }
}

/// The command that would take one of them out; none where nobody can be named.
fn void_command(members: &[&ReviewedMember]) -> Option<String> {
    let first = members.iter().find(|member| member.person.email.is_some())?;
    let campaign = match members.iter().all(|member| member.campaign == first.campaign) {
        true => first.campaign.as_str(),
        false => "SLUG",
    };
    Some(format!("    to void one of them: unionhall rewards void ADDRESS --campaign {campaign} --reason TEXT"))
}
