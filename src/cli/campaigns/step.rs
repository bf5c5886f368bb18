//! Steps of a campaign: opening, negotiating, becoming active, closing, cancelling.

use anyhow::{anyhow, bail};

use super::{ActivateCampaign, OpenCampaign, StepArgs, find};
use crate::campaigns::{Stepped, TakenStep};
use crate::cli::audit::act;
use crate::cli::{print_line, with_live_records};
use crate::clock::Clock;
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::{BadStep, CampaignSlug, CampaignState, CampaignStep};
use crate::domain::catalog::ReferralTerms;
use crate::domain::figure::{dollars, grouped};
use crate::domain::time::Timestamp;

pub(super) fn open(task: &OpenCampaign) -> anyhow::Result<()> {
    if task.postal.postal_address.is_none() {
        bail!(
            "the postal address is unset, and mail about a campaign must name one; give the service's own with --postal-address or \
             UNIONHALL_POSTAL_ADDRESS"
        );
    }
    take(&task.step, &TakenStep::Plain(CampaignStep::Open), "campaigns open")
}

pub(super) fn activate(task: &ActivateCampaign) -> anyhow::Result<()> {
    let catalog = task.catalog.read()?;
    take(&task.step, &TakenStep::Activate(catalog.referral), "campaigns activate")?;
    if catalog.is_sample() {
        print_line(
            "These terms are the sample catalog's, and made up. They cannot be changed: name your own with --catalog next time.",
        )?;
    }
    Ok(())
}

/// Takes a step and says what it means.
pub(super) fn take(task: &StepArgs, taken: &TakenStep, command: &'static str) -> anyhow::Result<()> {
    let (now, slug, step) = (Clock::start().now().time, &task.slug, taken.step());
    let act = act(command, slug.to_string(), now);
    let who = act.who.clone();
    let (before, after) = with_live_records(&task.store, async |operator| {
        let before = find(&operator, slug, now).await?.campaign;
        before.state.after(step).map_err(|bad| refusal(slug, bad))?;
        let until = before.draft.gather_until;
        if step == CampaignStep::Open && until.is_over(now) {
            bail!(
                "gather_until of {slug} is {until}, which is over; name a later day with `unionhall campaigns edit {slug} FILE`"
            );
        }
        done(
            slug,
            operator
                .audited(act)
                .campaigns()
                .step(slug, taken.clone(), &who, (&task.note.note, !task.note.no_mail), now)
                .await?,
        )?;
        Ok((before, find(&operator, slug, now).await?.campaign))
    })?;
    words(&before, &after, now).iter().try_for_each(|line| print_line(line))
}

pub(super) fn done(slug: &CampaignSlug, stepped: Stepped) -> anyhow::Result<CampaignState> {
    match stepped {
        Stepped::Done(state) => Ok(state),
        Stepped::Refused(bad) => Err(refusal(slug, bad)),
        Stepped::Unknown => Err(anyhow!("there is no campaign {slug} anymore")),
    }
}

pub(super) fn refusal(slug: &CampaignSlug, bad: BadStep) -> anyhow::Error {
    anyhow!("{slug}: {bad}")
}

/// What referring the members of a campaign earns.
pub(super) fn terms_words(terms: &ReferralTerms) -> String {
    let ReferralTerms { reward_per_group, group_size, max_groups, hold_days } = *terms;
    let days = if hold_days == 1 { "1 day".to_owned() } else { format!("{hold_days} days") };
    format!(
        "{} for each group of {group_size}, once each took part for {days}; at most {max_groups} groups a person, over all campaigns",
        dollars(reward_per_group)
    )
}

/// What a step means, and what comes next.
fn words(before: &CampaignRecord, after: &CampaignRecord, now: Timestamp) -> Vec<String> {
    let slug = after.slug();
    match after.state {
        CampaignState::Gathering => vec![
            format!(
                "{slug} is gathering: members are asked until the end of {}; then it becomes negotiating by itself.",
                after.draft.gather_until
            ),
            "The service mails the members it fits, if they want such mail.".to_owned(),
        ],
        CampaignState::Negotiating => vec![
            format!("{slug} is negotiating. Members can still count themselves in or out."),
            format!("Once a supplier agrees: `unionhall campaigns offer {slug} FILE`."),
        ],
        CampaignState::Active => {
            let mut lines = vec![
                format!("{slug} is active: the deal has started, and members who accepted take part from now on."),
                match after.last_day_to_accept().filter(|day| !day.is_over(now)) {
                    Some(day) => format!("Members can accept until the end of {day}."),
                    None => "Nobody can accept it anymore.".to_owned(),
                },
            ];
            lines.extend(after.terms.map(|terms| format!("Referral terms, copied for good: {}.", terms_words(&terms))));
            lines
        }
        CampaignState::Closed => {
            let (members, dollars) = after.result().unwrap_or_default();
            let reached = match members {
                0 => "fewer than 5 members had accepted at the last count".to_owned(),
                _ => format!(
                    "at least {} members had accepted at the last count, and save ${} a year",
                    grouped(members),
                    grouped(dollars)
                ),
            };
            vec![
                format!("{slug} is closed. Its page shows the result: {reached}."),
                "The service mails those who were in or accepted, if they want such mail.".to_owned(),
            ]
        }
        CampaignState::Cancelled if before.was_public => vec![
            format!("{slug} is cancelled: nobody can take part anymore."),
            "The service mails those who were in or accepted, if they want such mail.".to_owned(),
        ],
        CampaignState::Cancelled => vec![format!("The draft {slug} is cancelled; nobody ever saw it.")],
        CampaignState::Draft | CampaignState::Offered => vec![format!("{slug} is {}.", after.state.name())],
    }
}
