//! A step of a campaign: asked about with everything that it means, and taken once the operator is sure.

use std::collections::BTreeMap;

use hyper::Request;

use super::asked_step::{AskedStep, SentStep, reason_field, take};
use super::{HERE, missing, offer, slug_of};
use crate::campaigns::TakenStep;
use crate::campaigns::bids::ListBids;
use crate::campaigns::drafts::ListOfferDrafts;
use crate::campaigns::operator_step::terms_words;
use crate::campaigns::records::FindCampaign;
use crate::domain::campaign::offer::Proposal;
use crate::domain::campaign::record::CampaignDetails;
use crate::domain::campaign::{BadFile, CampaignSlug, CampaignState, CampaignStep};
use crate::domain::language::Language;
use crate::http::request::body::SentBody;
use crate::site::operator::question::AskedReason;
use crate::site::operator::session::OperatorVisit;
use crate::site::{PageResult, Visit, field, field_is};

/// The steps that a button asks for; an offer is published from its draft or its bid.
const BUTTON_STEPS: [(CampaignStep, &str, &str); 6] = [
    (CampaignStep::Open, "open", "Open it to members…"),
    (CampaignStep::Negotiate, "negotiate", "Begin to negotiate…"),
    (CampaignStep::WithdrawOffer, "withdraw-offer", "Withdraw the offer…"),
    (CampaignStep::Activate, "activate", "The deal has started…"),
    (CampaignStep::Close, "close", "The deal has ended…"),
    (CampaignStep::Cancel, "cancel", "Cancel the campaign…"),
];

/// What a form can send, what its button says, and whether that ends the campaign; and what is in the way of the others.
pub(super) fn steps(file: &CampaignDetails) -> (Vec<(&'static str, &'static str, bool)>, Vec<String>) {
    let CampaignDetails { campaign, counts, .. } = file;
    let mut in_the_way = Vec::new();
    let needs_review = campaign.draft.category.is_regulated() && campaign.draft.reviewed.is_none();
    if campaign.state == CampaignState::Draft && needs_review {
        in_the_way.push(format!(
            "It cannot be opened without its review: the law rules bills such as {}, and nobody has signed that they looked. Change it, and \
             fill in the review.",
            campaign.draft.category.label()
        ));
    }
    let needs = campaign.offer.as_ref().and_then(|offer| offer.bid()).and_then(|bid| bid.needs_members);
    let is_waiting = campaign.state == CampaignState::Offered && needs.is_some();
    // Where not all of them are counted, the step itself tells.
    let too_few = is_waiting && counts.is_whole() && needs.is_some_and(|needs| counts.accepted < needs.into());
    in_the_way.extend(needs.filter(|_| is_waiting).map(|needs| {
        let [needs, accepted] = [needs.into(), counts.accepted].map(crate::domain::figure::grouped);
        format!("The deal can start once {needs} members have accepted. {accepted} have.")
    }));
    let is_possible = |step: &CampaignStep| match step {
        CampaignStep::Open if needs_review => false,
        CampaignStep::Activate if too_few => false,
        step => campaign.state.after(*step).is_ok(),
    };
    let possible = BUTTON_STEPS.iter().filter(|(step, ..)| is_possible(step));
    (
        possible
            .map(|(step, name, label)| {
                (*name, *label, matches!(step, CampaignStep::Cancel | CampaignStep::WithdrawOffer))
            })
            .collect(),
        in_the_way,
    )
}

pub async fn step(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let slug = slug_of(&found)?;
    let [step, draft, note] = ["step", "draft", "note"].map(|name| field(&fields, name).unwrap_or_default());
    let file = found.stored(found.operator().ask(FindCampaign(slug.clone())).await)?.ok_or_else(|| missing(&found))?;
    let asked = match step.as_str() {
        "offer" => of_draft(&found, &slug, &file, &draft).await?,
        _ => plain_step(&found, &slug, &step)?,
    };
    let no_mail = if field_is(&fields, "no-mail", "yes") { "yes" } else { "" };
    let again = [("step", step.as_str()), ("draft", &draft), ("note", &note), ("no-mail", no_mail)];
    let action = format!("/operator/campaigns/{slug}");
    take(&found, &file, asked, SentStep { action: &action, again: &again, can_change: false, fields: &fields }).await
}

/// The draft of that number, to be published as it is.
async fn of_draft(
    found: &OperatorVisit<'_>,
    slug: &CampaignSlug,
    file: &CampaignDetails,
    draft: &str,
) -> PageResult<AskedStep> {
    let drafts = found.stored(found.operator().ask(ListOfferDrafts(slug.clone())).await)?;
    let number = draft.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let Some(draft) = number.and_then(|at| drafts.get(at)) else {
        return Err(found.refuse(&format!("{slug} has no such draft of an offer.")).into());
    };
    if let Some(answer) = &draft.answer {
        return Err(found.refuse(&format!("Draft {} was {}.", draft.number, answer.words())).into());
    }
    let bids = found.stored(found.operator().ask(ListBids(slug.clone())).await)?;
    let proposal = Proposal::parse(&draft.file);
    let asked = proposal.and_then(|proposal| offer::asked(&file.campaign, &bids, proposal, found.visit.now.time));
    Ok(asked.map_err(|BadFile(mistakes)| {
        found.refuse(&format!("The draft cannot be published: {}.", mistakes.join("; ")))
    })?)
}

fn plain_step(found: &OperatorVisit<'_>, slug: &CampaignSlug, step: &str) -> PageResult<AskedStep> {
    let union = &found.visit.app().union;
    let plain = |step, command, title: &str, says: &[&str], button| AskedStep {
        taken: TakenStep::Plain(step),
        command,
        title: format!("{title} {slug}?"),
        facts: Vec::new(),
        says: says.iter().map(|&line| line.to_owned()).collect(),
        reasons: Vec::new(),
        button,
    };
    Ok(match step {
        "open" if union.postal_address.is_none() => {
            let why = "The postal address is unset, and mail about a campaign must name one. Set UNIONHALL_POSTAL_ADDRESS for the service.";
            return Err(found.refuse(why).into());
        }
        "open" => plain(
            CampaignStep::Open,
            "campaigns open",
            "Open",
            &["Everybody sees it, and members are asked whether they are in."],
            "Open it",
        ),
        "negotiate" => plain(
            CampaignStep::Negotiate,
            "campaigns negotiate",
            "Begin to negotiate",
            &["It no longer waits for its day. Members can still count themselves in or out."],
            "Begin to negotiate",
        ),
        "activate" => {
            let terms = union.catalog.referral;
            let mut says = vec![
                "The deal has started: members who accepted take part from now on.".to_owned(),
                format!("These referral terms are copied for good: {}.", terms_words(&terms)),
            ];
            if union.catalog.is_sample() {
                says.push("They are the sample catalog's, and made up. They cannot be changed later.".to_owned());
            }
            let (title, button) = (format!("Has the deal of {slug} started?"), "It has started");
            let plain = plain(CampaignStep::Activate, "campaigns activate", "", &[], button);
            AskedStep { taken: TakenStep::Activate(terms), title, says, ..plain }
        }
        "withdraw-offer" => {
            let says = [
                "Members stay in, and their acceptances end. They read the reason on its page, and it is mailed to those who are in or accepted.",
            ];
            let reasons = Language::ALL.map(|language| AskedReason {
                name: reason_field(language),
                heading: "",
                label: match language {
                    Language::English => "Why, in English",
                    Language::Spanish => "Why, in Spanish",
                },
                hint: "Members read it.",
                points: Vec::new(),
            });
            let plain = plain(
                CampaignStep::WithdrawOffer,
                "campaigns withdraw-offer",
                "Withdraw the offer of",
                &says,
                "Withdraw it",
            );
            AskedStep { taken: TakenStep::WithdrawOffer(BTreeMap::new()), reasons: reasons.into(), ..plain }
        }
        "close" => plain(
            CampaignStep::Close,
            "campaigns close",
            "Close",
            &["The deal has ended: nobody can accept anymore, and its page shows the result. This cannot be undone."],
            "Close the campaign",
        ),
        "cancel" => plain(
            CampaignStep::Cancel,
            "campaigns cancel",
            "Cancel",
            &[
                "Nobody can take part anymore. This cannot be undone.",
                "If the deal has not started, acceptances end. Then hand over, so that the supplier knows.",
            ],
            "Cancel the campaign",
        ),
        _ => return Err(found.refuse("The form names no step of a campaign.").into()),
    })
}
