//! Steps of a campaign: opening, negotiating, becoming active, closing, cancelling.

use anyhow::bail;

use super::{ActivateCampaign, OpenCampaign, StepArgs, WithdrawOffer, find};
use crate::campaigns::TakenStep;
use crate::campaigns::operator_step::{RefusedStep, StepNote};
use crate::cli::audit::act;
use crate::cli::{print_line, print_lines, remedy, service, with_live_records};
use crate::clock::Clock;
use crate::domain::campaign::CampaignStep;
use crate::domain::language::Language;

pub(super) fn open(task: &OpenCampaign) -> anyhow::Result<()> {
    if task.postal.postal_address.is_none() {
        bail!(
            "the postal address is unset, and mail about a campaign must name one; give the service's own with --postal-address or \
             UNIONHALL_POSTAL_ADDRESS"
        );
    }
    take(&task.step, &TakenStep::Plain(CampaignStep::Open), "campaigns open")?;
    let facts = with_live_records(&task.step.store, async |operator| service::facts(&task.service, &operator).await)?;
    print_line(&format!("Its page: {}", facts.campaign_page(task.step.slug.as_str())))
}

pub(super) fn withdraw_offer(task: &WithdrawOffer) -> anyhow::Result<()> {
    let reasons = [(Language::English, &task.reason_en), (Language::Spanish, &task.reason_es)];
    let reasons = reasons.map(|(language, reason)| (language, reason.clone())).into();
    take(&task.step, &TakenStep::WithdrawOffer(reasons), "campaigns withdraw-offer")
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

/// Takes a step and says what it means; where there is no such campaign, the error names those that may be meant.
pub(super) fn take(task: &StepArgs, taken: &TakenStep, command: &'static str) -> anyhow::Result<()> {
    let StepArgs { slug, note, store } = task;
    let now = Clock::start().now().time;
    let act = act(command, slug.to_string(), now);
    let who = act.who.clone();
    let mails = !note.no_mail;
    let done = with_live_records(store, async |operator| {
        let said = StepNote { who: &who, note: &note.note, mails };
        match operator.audited(act).campaigns().take_step(slug, taken.clone(), said, now).await? {
            Ok(done) => Ok(done),
            Err(RefusedStep::Unknown(_)) => {
                find(&operator, slug, now).await?;
                bail!("there is no campaign {slug} anymore")
            }
            Err(refused) => Err(refused.into()),
        }
    })?;
    print_lines(&done.words(mails, now, remedy::write))
}
