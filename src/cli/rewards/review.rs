//! `unionhall rewards review`

use super::{ReviewGroups, with_rewards};
use crate::cli::audit::act;
use crate::cli::terminal::time_or_dash;
use crate::cli::{print_line, print_lines};
use crate::domain::figure::counted;
use crate::domain::reward::review::{Pattern, ReviewedMember, ReviewedReferrer};
use crate::operator::review::{LookedAt, cut, ended, heading, shown, words};
use crate::rewards::RewardAdmin;
use crate::rewards::report::ListReviewedReferrers;

pub(super) fn run(task: &ReviewGroups) -> anyhow::Result<()> {
    let disposable = task.disposable.read()?;
    with_rewards(&task.store, async |operator, now| {
        let (rewards, mut looked_at) = (operator.rewards(), LookedAt::default());
        each(&rewards, |referrer| {
            looked_at.groups += u64::from(referrer.groups);
            looked_at.referrers += u64::from(referrer.groups > 0);
            looked_at.shown += u64::from(!referrer.patterns(&disposable).is_empty());
            Ok(())
        })
        .await?;
        if looked_at.shown > 0 {
            // Like `rewards tax`.
            operator.note(act("rewards review", counted(looked_at.shown, "referrer"), now)).await?;
            each(&rewards, |referrer| {
                let patterns = referrer.patterns(&disposable);
                if patterns.is_empty() { Ok(()) } else { print_lines(&lines(referrer, &patterns)) }
            })
            .await?;
        }
        print_line(&looked_at.words())
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
    let mut lines = vec![heading(referrer)];
    lines.extend(cut(referrer).map(|cut| format!("  {cut}")));
    for Pattern { kind, members } in patterns {
        lines.push(format!("  {}", words(kind, referrer)));
        lines.extend(members.iter().map(|member| row(member)));
        lines.extend(void_command(members));
    }
    lines.push(String::new());
    lines
}

fn row(member: &ReviewedMember) -> String {
    let joined = time_or_dash(member.joined_at);
    let ReviewedMember { campaign, group, .. } = member;
    let batch = member.batch.map(|batch| format!(", in batch {batch}")).unwrap_or_default();
    let partner = member.partner.as_deref().unwrap_or("-");
    let ended = ended(member).map(|ended| format!(", {ended}")).unwrap_or_default();
    format!(
        "    {:<32}  {joined:<20}  {partner:<16}  {campaign} group {group}{batch}{ended}",
        shown(member.person.email.as_deref())
    )
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
