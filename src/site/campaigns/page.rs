//! `/campaigns/<slug>`: a campaign, what a member presses there, and the way in for whoever is not signed in.

use std::sync::Arc;

use hyper::{Request, StatusCode};

use crate::campaigns::Pressed;
use crate::campaigns::public::PublicCampaigns;
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::participation::{BadPress, ParticipationEntry, ParticipationState, Press, PressAnswers};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::language::{Phrase, Words};
use crate::domain::person::PersonState;
use crate::domain::us_state::UsState;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::site::own_page::done_word;
use crate::site::own_page::session::{Session, keep_apart, look_if_any, sign_in_for, take_any};
use crate::site::view::{self, CampaignReader, CampaignView, JoinForm, MemberPart, Outcome};
use crate::site::{PageResult, Visit, field, join as join_page};

/// What a member presses to say that what they accepted did not work, or works now.
const TROUBLE: &str = "trouble";
const TROUBLE_OVER: &str = "trouble-over";

/// The campaign of an address, among those that everybody may see.
struct Found {
    campaigns: Arc<PublicCampaigns>,
    slug: CampaignSlug,
}

impl Found {
    async fn at(visit: Visit<'_>) -> PageResult<Self> {
        let unknown = || visit.outcome(StatusCode::NOT_FOUND, Outcome::NoCampaign);
        let slug: CampaignSlug = visit.parameter.parse().map_err(|_| unknown())?;
        let campaigns = visit.stored(visit.app().campaigns.public(visit.now).await)?;
        if campaigns.find(&slug).is_none() {
            return Err(unknown().into());
        }
        Ok(Self { campaigns, slug })
    }

    fn campaign(&self, visit: Visit<'_>) -> PageResult<&CampaignRecord> {
        let found = self.campaigns.find(&self.slug);
        found.ok_or_else(|| visit.outcome(StatusCode::NOT_FOUND, Outcome::NoCampaign).into())
    }
}

/// What a page says after a press, by the word in its address; a word that anybody can write is believed as far as it is true.
fn done<'a>(words: &'a Words, query: &str, part: Option<&ParticipationEntry>) -> Option<&'a Phrase> {
    let (word, state) = (done_word(query)?, part.map(|part| part.state));
    let trouble = part.and_then(ParticipationEntry::acceptance).map(|acceptance| acceptance.trouble_at.is_some());
    let words = match (word, trouble) {
        (TROUBLE, Some(true)) => return Some(&words.handover.done_trouble),
        (TROUBLE_OVER, Some(false)) => return Some(&words.handover.done_trouble_over),
        _ => &words.campaign,
    };
    match (Press::from_name(word)?, state) {
        (Press::In, Some(ParticipationState::In)) => Some(&words.done_in),
        (Press::Out, None | Some(ParticipationState::Out)) => Some(&words.done_out),
        (Press::Accept, Some(ParticipationState::Accepted)) => Some(&words.done_accept),
        (Press::Pass, Some(ParticipationState::Passed)) => Some(&words.done_pass),
        (Press::Pass, None | Some(ParticipationState::Out)) => Some(&words.done_pass_nothing),
        _ => None,
    }
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = Found::at(visit).await?;
    let session = look_if_any(visit, request.headers()).await?;
    let visit = visit.who_chose(session.as_ref().and_then(|session| session.file.person.language));
    let part = session.as_ref().and_then(|session| part_of(session, &found.slug));
    let done = session.as_ref().and_then(|_| {
        let query = request.uri().query().unwrap_or_default();
        done(visit.words(), query, part)
    });
    let notes = Notes { done: done.map(Phrase::as_str), refused: None };
    Ok(page(visit, StatusCode::OK, found.campaign(visit)?, session.as_ref(), notes))
}

/// A member presses a button.
pub async fn press(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = Found::at(visit).await?;
    let signed_out = |visit: Visit<'_>| {
        let note = &visit.words().campaign.refused_signed_out;
        sign_in_for(visit, StatusCode::FORBIDDEN, &found.slug, note.as_str())
    };
    let (visit, session, fields, is_its_own) = take_any(visit, request, signed_out).await?;
    let visit = visit.of_form(field(&fields, "lang").as_deref());
    let (campaign, words) = (found.campaign(visit)?, visit.words());
    let refuse = |status, why: &str| {
        let notes = Notes { done: None, refused: Some(why) };
        Ok(page(visit, status, campaign, Some(&session), notes))
    };
    // From before they last signed in, perhaps: the page below has a form that works.
    if !is_its_own {
        return refuse(StatusCode::FORBIDDEN, words.campaign.refused_old_form.as_str());
    }
    let typed = field(&fields, "usState").unwrap_or_default();
    let us_state = UsState::from_code(&typed);
    if us_state.is_none() && !typed.is_empty() {
        return refuse(StatusCode::BAD_REQUEST, words.mistake.state.as_str());
    }
    let (app, nonce) = (visit.app(), &session.cookie.nonce);
    let is_on_own_page = field(&fields, "from").as_deref() == Some("me");
    let pressed_at = |done: &str| match is_on_own_page {
        true => visit.redirect(&format!("/me?done={done}&campaign={}#done", found.slug)),
        false => visit.redirect(&format!("/campaigns/{}?done={done}", found.slug)),
    };
    let name = field(&fields, "press").unwrap_or_default();
    if let TROUBLE | TROUBLE_OVER = &*name {
        let works = name == TROUBLE_OVER;
        return match visit.stored(app.campaigns.say_trouble(nonce, &found.slug, works, visit.now.time).await)? {
            true => Ok(pressed_at(&name)),
            false => refuse(StatusCode::CONFLICT, words.handover.refused_trouble.as_str()),
        };
    }
    let Some(pressed) = Press::from_name(&name) else {
        return refuse(StatusCode::BAD_REQUEST, words.mistake.not_whole.as_str());
    };
    // "yes" is told why, and kept nowhere.
    let is_customer = match field(&fields, "customer").as_deref() {
        Some("yes") => Some(true),
        Some("no") => Some(false),
        _ => None,
    };
    let said = PressAnswers { us_state, is_customer, agrees: false };
    let agreed = (field(&fields, "offer").unwrap_or_default(), visit.reader.language);
    match visit.stored(app.campaigns.press(nonce, &found.slug, pressed, said, agreed, visit.now.time).await)? {
        Pressed::Done(_) => Ok(pressed_at(pressed.name())),
        Pressed::Refused(why) => {
            let status = match why {
                BadPress::StateMissing
                | BadPress::OtherState
                | BadPress::OfferElsewhere
                | BadPress::CustomerMissing
                | BadPress::AlreadyCustomer => StatusCode::BAD_REQUEST,
                BadPress::CountingOver
                | BadPress::NoOffer
                | BadPress::AcceptingOver
                | BadPress::Over
                | BadPress::OfferChanged => StatusCode::CONFLICT,
            };
            let chosen = session.file.person.answers.us_state.or(us_state);
            refuse(status, &view::refusal(words, campaign, why, chosen))
        }
        Pressed::Unknown => Ok(visit.outcome(StatusCode::NOT_FOUND, Outcome::NoCampaign)),
        Pressed::NotAMember => refuse(StatusCode::FORBIDDEN, words.campaign.left.as_str()),
    }
}

/// The form to sign in with, which leads back; whoever is signed in is back at once.
pub async fn sign_in(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = Found::at(visit).await?;
    if look_if_any(visit, request.headers()).await?.is_some() {
        return Ok(visit.redirect(&format!("/campaigns/{}", found.slug)));
    }
    let text = found.campaign(visit)?.draft.text(visit.reader.language);
    let note = visit.words().campaign.sign_in_note.put("title", text.map_or("", |text| &text.title)).plain();
    Ok(sign_in_for(visit, StatusCode::OK, &found.slug, &note))
}

/// The page to join on; whoever confirms is shown the campaign first.
pub async fn join(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    let found = Found::at(visit).await?;
    let form = JoinForm { campaign: Some(found.slug), ..JoinForm::default() };
    let code = visit.invited_by.map(|code| code.to_string()).unwrap_or_default();
    Ok(join_page::page(visit, StatusCode::OK, &code, &form).await)
}

/// What a page says on top.
#[derive(Clone, Copy)]
struct Notes<'a> {
    done: Option<&'a str>,
    refused: Option<&'a str>,
}

fn page(
    visit: Visit<'_>,
    status: StatusCode,
    campaign: &CampaignRecord,
    session: Option<&Session>,
    notes: Notes<'_>,
) -> Answer {
    let token = session.map(|session| visit.app().own_pages.csrf_token(&session.cookie.nonce)).unwrap_or_default();
    let reader = match session {
        None => CampaignReader::Stranger,
        Some(session) if session.file.person.state != PersonState::Member => CampaignReader::Left,
        Some(session) => CampaignReader::Member(MemberPart::of(
            &token,
            part_of(session, campaign.slug()),
            session.file.person.answers.us_state,
            session.file.person.hears_of(),
        )),
    };
    let Notes { done, refused } = notes;
    let view = CampaignView { campaign, reader, done, refused };
    let mut answer = visit.show(status, view::campaign(visit.frame(), &view));
    if session.is_some() {
        keep_apart(&mut answer);
    }
    answer
}

fn part_of<'a>(session: &'a Session, slug: &CampaignSlug) -> Option<&'a ParticipationEntry> {
    session.file.participations.iter().find(|part| part.campaign == *slug)
}
