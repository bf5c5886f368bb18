//! Steps of a campaign: opening, negotiating, becoming active, closing, cancelling.

use anyhow::bail;

use super::{ActivateCampaign, NoteArgs, OpenCampaign, StepArgs, find};
use crate::campaigns::TakenStep;
use crate::campaigns::operator_step::{RefusedStep, StepNote};
use crate::cli::audit::act;
use crate::cli::{print_line, with_live_records};
use crate::clock::Clock;
use crate::config::StoreSettings;
use crate::domain::campaign::{CampaignSlug, CampaignStep};

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
    take_noted(&task.slug, taken, command, &task.note, &task.store)
}

/// The same; where there is no such campaign, the error names those that may be meant.
pub(super) fn take_noted(
    slug: &CampaignSlug,
    taken: &TakenStep,
    command: &'static str,
    note: &NoteArgs,
    store: &StoreSettings,
) -> anyhow::Result<()> {
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
    done.words(mails, now).iter().try_for_each(|line| print_line(line))
}
