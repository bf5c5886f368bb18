//! What the operator writes: files of campaigns and offers, read, checked and taken over; and samples of both.

use std::time::Duration;

use anyhow::bail;

use super::{EditedCampaign, NewCampaign, PrintSample, PublishOffer, drafts, find, step};
use crate::campaigns::{Edited, Made, TakenStep};
use crate::cli::audit::act;
use crate::cli::{files, print_line, with_live_records};
use crate::clock::Clock;
use crate::domain::campaign::draft::CampaignDraft;
use crate::domain::campaign::offer::{Proposal, Publication};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::{BadFile, CampaignState};
use crate::domain::time::Timestamp;

/// Far more than the longest texts need.
const LARGEST_FILE_KIB: u64 = 64;

pub(super) fn read(file: &str) -> anyhow::Result<(String, &str)> {
    files::read_text(file, LARGEST_FILE_KIB)
}

pub(super) fn mistakes(name: &str, BadFile(mistakes): &BadFile) -> anyhow::Error {
    files::mistakes(name, mistakes)
}

pub(super) fn new(task: &NewCampaign) -> anyhow::Result<()> {
    let now = Clock::start().now().time;
    let (text, name) = read(&task.file)?;
    let draft = CampaignDraft::parse(&text).map_err(|bad| mistakes(name, &bad))?;
    draft.check_days(CampaignState::Draft, now).map_err(|bad| mistakes(name, &bad))?;
    let slug = draft.slug.clone();
    let act = act("campaigns new", slug.to_string(), now);
    let who = act.who.clone();
    let made = with_live_records(&task.store, async |operator| {
        Ok(operator.audited(act).campaigns().make(draft, text, &who, now).await?)
    })?;
    match made {
        Made::Done => print_line(&format!(
            "The draft {slug} is ready. Nobody sees it until `unionhall campaigns open {slug}`, which needs the service's postal address."
        )),
        Made::SlugTaken => bail!(
            "there is already a campaign {slug}; choose another slug, or change that one with `unionhall campaigns edit {slug} FILE`"
        ),
        Made::TooMany => bail!("there are {} campaigns already, which is the most", CampaignRecord::MOST),
    }
}

pub(super) fn edit(task: &EditedCampaign) -> anyhow::Result<()> {
    let (now, slug) = (Clock::start().now().time, &task.slug);
    let (text, name) = read(&task.new.file)?;
    let draft = CampaignDraft::parse(&text).map_err(|bad| mistakes(name, &bad))?;
    let act = act("campaigns edit", slug.to_string(), now);
    let who = act.who.clone();
    let (edited, is_public) = with_live_records(&task.new.store, async |operator| {
        let before = find(&operator, slug, now).await?.campaign;
        // Also what the store would refuse, so that a file with another slug is measured by the campaign that was named.
        let is_allowed = before.draft.edit_to(&draft, before.state);
        is_allowed.and_then(|()| draft.check_days(before.state, now)).map_err(|bad| mistakes(name, &bad))?;
        Ok((operator.audited(act).campaigns().edit(draft, text, &who, now).await?, before.was_public()))
    })?;
    match edited {
        Edited::Done if is_public => print_line(&format!("{slug} is changed. The pages show it within two seconds.")),
        Edited::Done => print_line(&format!("The draft {slug} is changed.")),
        Edited::Unchanged => print_line(&format!("{name} says the same as {slug}; nothing was changed.")),
        Edited::Refused(bad) => Err(mistakes(name, &bad)),
        Edited::Unknown => bail!("there is no campaign {slug} anymore"),
    }
}

pub(super) fn offer(task: &PublishOffer) -> anyhow::Result<()> {
    let (text, name) = match (&task.file, task.draft) {
        (Some(file), _) => read(file)?,
        (None, draft) => (drafts::waiting(&task.step, draft.unwrap_or_default())?, "the draft"),
    };
    let mut proposal = Proposal::parse(&text).map_err(|bad| mistakes(name, &bad))?;
    proposal.bid = task.bid.or(proposal.bid);
    let (outside_mandate, figures_checked) = (task.outside_mandate.clone(), task.figures_checked.clone());
    let publication = Publication { proposal, outside_mandate, figures_checked };
    step::take(&task.step, &TakenStep::Offer(Box::new(publication)), "campaigns offer")
}

/// The date in the samples, and the days from now on that stand there instead when one is printed.
const SAMPLE_DAYS: [(&str, u64); 5] =
    [("2027-01-31", 60), ("2027-03-15", 60), ("2027-03-31", 76), ("2027-03-25", 70), ("2026-11-01", 0)];

pub(super) fn sample(task: &PrintSample) -> anyhow::Result<()> {
    let text = match (task.offer, task.bid) {
        (true, _) => include_str!("offer.sample.toml"),
        (_, true) => include_str!("bid.sample.toml"),
        _ => include_str!("campaign.sample.toml"),
    };
    print_line(with_days(text, Clock::start().now().time).trim_end())
}

/// The sample with days that lie ahead.
fn with_days(sample: &str, now: Timestamp) -> String {
    SAMPLE_DAYS.iter().fold(sample.to_owned(), |text, (day, days)| {
        let ahead = now.plus(Duration::from_secs(days * 24 * 3600)).to_string();
        text.replace(day, &ahead[..day.len()])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::campaign::bid::{Bid, RecordedBid};

    #[test]
    fn the_samples_are_good_whenever_they_are_printed() {
        for now in ["2026-11-17", "2031-02-28T23:59:59Z"] {
            let now = now.parse().unwrap();
            let plain = |sample: &str| with_days(sample, now);
            let whole = |sample: &str| with_days(&sample.replace("\n# ", "\n"), now);
            let campaign = include_str!("campaign.sample.toml");
            let [draft, with_all] = [plain(campaign), whole(campaign)].map(|text| CampaignDraft::parse(&text).unwrap());
            assert_eq!(draft.check_days(CampaignState::Draft, now), Ok(()));
            assert_eq!((with_all.states.len(), with_all.reviewed.is_some(), with_all.household.units), (2, true, 2));
            let bid = include_str!("bid.sample.toml");
            let [bid, with_all] = [plain(bid), whole(bid)].map(|text| Bid::parse(&text).unwrap());
            assert_eq!(bid.check(&draft, now), Ok(()));
            assert!(with_all.new_customers_only && with_all.needs_members.is_some(), "what is left out, too");
            let bids = [RecordedBid { number: 1, at: now, who: "ada".to_owned(), bid, is_superseded: false }];
            let offer = include_str!("offer.sample.toml");
            for text in [plain(offer), whole(offer)] {
                let proposal = Proposal { bid: Some(1), ..Proposal::parse(&text).unwrap() };
                let publication = Publication { proposal, outside_mandate: None, figures_checked: None };
                let (published, signed) = publication.offer(&draft, &bids, now).unwrap();
                assert_eq!((published.saving(), signed.as_str()), (240, ""));
            }
        }
    }
}
