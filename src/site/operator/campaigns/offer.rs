//! Publishing an offer: a form that makes one of a bid, and the question that shows everything that members will read of it.

use hyper::{Request, StatusCode};
use serde_json::json;

use super::asked_step::{AskedStep, FIGURES, OUTSIDE, SentStep, take};
use super::{HERE, missing, slug_of};
use crate::campaigns::TakenStep;
use crate::campaigns::bids::ListBids;
use crate::campaigns::operator_step::{STANDS, ends};
use crate::campaigns::records::FindCampaign;
use crate::domain::campaign::acceptance::Handover;
use crate::domain::campaign::bid::RecordedBid;
use crate::domain::campaign::offer::{Offer, OfferTerms, Proposal, Publication, Unsigned};
use crate::domain::campaign::record::{CampaignDetails, CampaignRecord};
use crate::domain::campaign::wording::{BidWords, OfferView};
use crate::domain::campaign::{BadFile, CampaignState, CampaignStep};
use crate::domain::language::Language;
use crate::domain::time::Timestamp;
use crate::http::request::body::SentBody;
use crate::site::operator::form::{Form, FormField, FormPage, FormPart, Input, Reads, Typed};
use crate::site::operator::question::AskedReason;
use crate::site::operator::session::OperatorVisit;
use crate::site::view::operator::title;
use crate::site::{PageResult, Visit, field, field_is};

const SIGNED: &str = "The history keeps it under your name.";

/// The question about an offer: all that members will read, and what has to be signed.
pub(super) fn asked(
    campaign: &CampaignRecord,
    bids: &[RecordedBid],
    proposal: Proposal,
    now: Timestamp,
) -> Result<AskedStep, BadFile> {
    let offer = Offer::of(&campaign.draft, bids, &proposal, now)?;
    let Unsigned { outside, figures } = offer.unsigned(&campaign.draft);
    let replaced = campaign.offer.as_ref().filter(|_| campaign.state == CampaignState::Offered);
    let says = match replaced.map(|replaced| offer.worse_than(replaced)).as_deref() {
        None => "Members accept or pass. Until the deal starts, you can replace it or withdraw it.".to_owned(),
        Some([]) => STANDS.to_owned(),
        Some(worse) => ends(worse),
    };
    let reasons = [
        AskedReason {
            name: OUTSIDE,
            heading: "It is outside the mandate:",
            label: "Why publish it all the same?",
            hint: SIGNED,
            points: outside,
        },
        AskedReason {
            name: FIGURES,
            heading: "Its texts have figures that are none of the offer's numbers:",
            label: "Why are these figures right?",
            hint: SIGNED,
            points: figures,
        },
    ];
    Ok(AskedStep {
        facts: facts(&offer),
        taken: TakenStep::Offer(Box::new(Publication { proposal, outside_mandate: None, figures_checked: None })),
        command: "campaigns offer",
        title: format!("Publish this offer of {}?", campaign.slug()),
        says: vec![says],
        reasons: reasons.into_iter().filter(|reason| !reason.points.is_empty()).collect(),
        button: "Publish it",
    })
}

/// Everything that members will read, in each language.
fn facts(offer: &Offer) -> Vec<(String, Vec<(String, String)>)> {
    let days = (Some(offer.terms.decide_by), offer.terms.open_until);
    let of = |language: Language| {
        let facts = OfferView::of(offer, language, days, true).listed(language);
        let mut facts: Vec<_> = facts.into_iter().map(|fact| (fact.label.to_string(), fact.value)).collect();
        let told = offer.consent(language).map(|notice| notice.words.to_string());
        facts.extend(told.map(|told| (language.words().handover.above_button.to_string(), told)));
        (language.words().site.language.to_string(), facts)
    };
    Language::ALL.map(of).into()
}

fn offer_form(typed: Typed) -> Form {
    let handover = Input::Choice(vec![
        ("code".to_owned(), "A code of each member who accepts, and nothing else".to_owned()),
        ("address".to_owned(), "The email address and state of each member who accepts".to_owned()),
    ]);
    let days = vec![
        FormField::day("decide_by", "Members decide by").hint("The last day, everywhere in the US."),
        FormField::day("open_until", "Open to others until (optional)")
            .hint("Who comes later may accept until then, once the deal runs."),
        FormField::line("complaints", "Complaints go to")
            .wide()
            .hint("An email address, or a page that begins with https://"),
        FormField::new("handover", "What the supplier gets", handover, Reads::Text)
            .wide()
            .hint("Each member reads it above the button, and it is kept with what they accept."),
    ];
    let mut parts = vec![FormPart::new("", "The offer", "", days)];
    for language in Language::ALL {
        let (code, name) = (language.code(), language.words().site.language.to_string());
        let fields = vec![
            FormField::lines(format!("text.{code}.how"), "How a member gets it (optional)", 3).of(name.clone()),
            FormField::lines(format!("text.{code}.details"), "Details (optional)", 3).of(name.clone()),
        ];
        let hint = "Prices, fees and savings are shown from the bid. Leave them out here.";
        parts.push(FormPart::new("", name, hint, fields));
    }
    let step = vec![
        FormField::line("note", "Note (optional)")
            .wide()
            .reads(Reads::Nothing)
            .hint("For the history; only operators read it."),
        FormField::check("no-mail", "Mail nobody about this step (it was taken before, and lost by a restore)")
            .reads(Reads::Nothing),
    ];
    parts.push(FormPart::new("", "The step", "", step));
    Form::new(parts, typed, "")
}

/// Terms as they are typed.
fn typed(terms: &OfferTerms) -> Typed {
    let mut typed = Typed::default();
    typed.set("decide_by", terms.decide_by.to_string());
    typed.set("open_until", terms.open_until.map_or_else(String::new, |day| day.to_string()));
    typed.set("complaints", terms.complaints.as_str());
    typed.set("handover", terms.handover.map_or("", Handover::name));
    for (language, text) in &terms.texts {
        for (name, text) in [("how", &text.how), ("details", &text.details)] {
            typed.set(format!("text.{}.{name}", language.code()), text.as_deref().unwrap_or_default());
        }
    }
    typed
}

/// The form, for the bid that its address names.
pub async fn show_form(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let query = request.uri().query().unwrap_or_default();
    let number = field(query.as_bytes(), "bid").unwrap_or_default();
    let (file, bids) = read(&found).await?;
    // One that takes the place of another begins with its terms: acceptances stand only where the texts are the same.
    let terms = file.campaign.offer.as_ref().map(|offer| &offer.terms);
    form_page(&found, &file, &bids, &number, &offer_form(terms.map_or_else(Typed::default, typed)))
}

/// What was typed: shown again with what is wrong with it, or asked about, or published.
pub async fn publish(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let (file, bids) = read(&found).await?;
    let number = field(&fields, "bid").unwrap_or_default();
    let mut form = offer_form(Typed::of(&fields));
    if field_is(&fields, "change", "yes") {
        return form_page(&found, &file, &bids, &number, &form);
    }
    let mut sent = form.sent();
    sent.insert("bid".to_owned(), number.parse::<u32>().map_or_else(|_| json!(number), |number| json!(number)));
    let proposal = Proposal::sent(&sent);
    let mut asked = match proposal.and_then(|proposal| asked(&file.campaign, &bids, proposal, visit.now.time)) {
        Ok(asked) => asked,
        Err(bad) => {
            form.mark(bad);
            return form_page(&found, &file, &bids, &number, &form);
        }
    };
    if found.access.two_people {
        asked.title = format!("Keep this offer of {} as a draft?", file.campaign.slug());
        asked.says.push(
            "Another person publishes the draft. If another person's draft says the same, this publishes it."
                .to_owned(),
        );
        asked.button = "Keep it as a draft";
    }
    let action = format!("/operator/campaigns/{}/offer", file.campaign.slug());
    let again: Vec<_> = [("bid", number.as_str())].into_iter().chain(form.again()).collect();
    take(&found, &file, asked, SentStep { action: &action, again: &again, can_change: true, fields: &fields }).await
}

async fn read(found: &OperatorVisit<'_>) -> PageResult<(CampaignDetails, Vec<RecordedBid>)> {
    let slug = slug_of(found)?;
    let file = found.stored(found.operator().ask(FindCampaign(slug.clone())).await)?.ok_or_else(|| missing(found))?;
    if let Err(bad) = file.campaign.state.after(CampaignStep::Offer) {
        return Err(found.refuse(&format!("{slug}: {bad}.")).into());
    }
    Ok((file, found.stored(found.operator().ask(ListBids(slug)).await)?))
}

fn form_page(
    found: &OperatorVisit<'_>,
    file: &CampaignDetails,
    bids: &[RecordedBid],
    number: &str,
    form: &Form,
) -> PageResult {
    let campaign = &file.campaign;
    let named = bids.iter().find(|bid| bid.number.to_string() == number);
    let Some((RecordedBid { number, bid, .. }, (words, _))) =
        named.and_then(|bid| Some((bid, BidWords::of(&bid.bid, &campaign.draft)?)))
    else {
        let says = ["There is no bid of that number.".to_owned()];
        return Ok(found.message(StatusCode::NOT_FOUND, "No such bid", &says));
    };
    let number = number.to_string();
    let says = [format!(
        "Bid {number} of {}: {}, typical {}; saves {}. It is valid until {}.",
        bid.supplier, words.all_in, words.typical, words.saving, bid.valid_until
    )];
    let here = format!("/operator/campaigns/{}", campaign.slug());
    let page = FormPage {
        frame: found.frame(),
        title: "Make an offer of this bid",
        back: (&here, title(campaign)),
        says: &says,
        form,
        action: &format!("{here}/offer"),
        hidden: &[("bid", &number)],
        button: "Go on…",
    };
    Ok(page.answer(found))
}
