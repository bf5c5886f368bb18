//! `/operator/rewards/void`: takes a member out of what their referrer earns in a campaign. Addresses are sent by POST alone.

use hyper::Request;

use super::form::{Form, FormField, FormMistake, FormPage, FormPart, Input, Reads, Typed};
use super::frame::OperatorSection;
use super::people::address_of;
use super::question::Question;
use super::session::OperatorVisit;
use crate::campaigns::records::ListCampaigns;
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::{CampaignSlug, CampaignState};
use crate::domain::email::EmailAddress;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::operator::void::read_void_reason;
use crate::site::view::operator::title;
use crate::site::{PageResult, Visit, field_is};

const HERE: OperatorSection = OperatorSection::Rewards;

const ACTION: &str = "/operator/rewards/void";

/// A void that was typed without mistakes.
struct TypedVoid {
    email: EmailAddress,
    campaign: CampaignSlug,
    reason: String,
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = OperatorVisit::look(visit, request.uri(), request.headers(), HERE).await?;
    let campaigns = found.stored(found.operator().ask(ListCampaigns).await)?;
    Ok(form_page(&found, &form(campaigns, Typed::default())))
}

/// Shows the form filled in, asks, and voids once the operator is sure.
pub async fn send(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, fields) = OperatorVisit::take(visit, request, HERE).await?;
    let campaigns = found.stored(found.operator().ask(ListCampaigns).await)?;
    let mut form = form(campaigns, Typed::of(&fields));
    if field_is(&fields, "fill", "yes") || field_is(&fields, "change", "yes") {
        return Ok(form_page(&found, &form));
    }
    let typed = match read(&found, &form).await? {
        Ok(typed) => typed,
        Err(mistakes) => {
            form.mistakes = mistakes;
            return Ok(form_page(&found, &form));
        }
    };
    let TypedVoid { email, campaign, reason } = &typed;
    let facts = [("Member", form.typed.get("member").trim()), ("Campaign", campaign.as_str()), ("Reason", reason)];
    let facts = facts.map(|(name, fact)| (name.to_owned(), fact.to_owned()));
    let says = [
        format!("They no longer count in {campaign}, and never will. This cannot be undone."),
        "A group of theirs that is not paid yet is dissolved, and its reward is reversed. The others in it count for another group."
            .to_owned(),
        "If their group was paid or is being paid, its reward is deducted from what the referrer earns next. Nothing is collected."
            .to_owned(),
    ];
    let question = Question {
        title: "Void this member?",
        facts: &[(String::new(), facts.to_vec())],
        says: &says,
        can_change: true,
        action: ACTION,
        fields: &form.again(),
        button: "Void them",
        ..Question::default()
    };
    found.require_sure(&question, &fields)?;
    let now = visit.now.time;
    let act = found.who.act("rewards void", campaign.to_string(), now);
    let marker = found.access.marker();
    let outcome = found.stored(found.operator().void(act, (email, &marker), campaign, reason, now).await)?;
    Ok(match outcome.words() {
        Ok(lines) => found.done("Voided", &lines),
        Err(why) => found.refuse(&format!("No member was voided: {why}.")),
    })
}

fn form(mut campaigns: Vec<CampaignRecord>, typed: Typed) -> Form {
    campaigns.retain(|campaign| campaign.state != CampaignState::Draft);
    // Those with rewards first, the newest before the others.
    let has_rewards = |state| matches!(state, CampaignState::Active | CampaignState::Closed);
    campaigns.sort_by_key(|campaign| (!has_rewards(campaign.state), std::cmp::Reverse(campaign.id)));
    let choices = campaigns.iter().map(|campaign| {
        (campaign.slug().to_string(), format!("{} ({}, {})", title(campaign), campaign.slug(), campaign.state.name()))
    });
    let choices = std::iter::once((String::new(), "Choose one".to_owned())).chain(choices).collect();
    let fields = vec![
        FormField::line("member", "Member").hint("Their whole email address, or their account or referral code").wide(),
        FormField::new("campaign", "Campaign", Input::Choice(choices), Reads::Text).wide(),
        FormField::line("reason", "Reason")
            .hint("1 to 200 characters, without an address: it stays in the ledger forever")
            .wide(),
    ];
    Form::new(vec![FormPart::new("", "Who, where and why", "", fields)], typed, "")
}

/// What was typed; or everything that is wrong with it.
async fn read(found: &OperatorVisit<'_>, form: &Form) -> PageResult<Result<TypedVoid, Vec<FormMistake>>> {
    let mut mistakes = Vec::new();
    let mut wrong = |input: &str, text: String| mistakes.push(FormMistake { text, input: Some(input.to_owned()) });
    let member = form.typed.get("member").trim();
    let email = if member.is_empty() { None } else { address_of(found, member).await? };
    match (&email, member) {
        (None, "") => wrong("member", "Member: write their email address, account or referral code".to_owned()),
        (None, _) => {
            wrong("member", "Member: nobody has that address, account or code. Each has to be whole.".to_owned());
        }
        (Some(_), _) => {}
    }
    let campaign = form.typed.get("campaign").parse::<CampaignSlug>().ok();
    if campaign.is_none() {
        wrong("campaign", "Campaign: choose one".to_owned());
    }
    let reason = read_void_reason(form.typed.get("reason"));
    let reason = reason.map_err(|why| wrong("reason", format!("Reason: {why}"))).ok();
    Ok(match (email, campaign, reason) {
        (Some(email), Some(campaign), Some(reason)) => Ok(TypedVoid { email, campaign, reason }),
        _ => Err(mistakes),
    })
}

fn form_page(found: &OperatorVisit<'_>, form: &Form) -> Answer {
    let says = ["For fraud: two accounts of one person, or people who do not exist. A member who is not in a group yet will never be in one of that campaign.".to_owned()];
    FormPage {
        frame: found.frame(),
        title: "Void a member",
        back: (HERE.path(), HERE.name()),
        says: &says,
        form,
        action: ACTION,
        hidden: &[],
        button: "Check it…",
    }
    .answer(found)
}
