//! `/campaigns/<slug>`: a campaign, what a member presses there, and the way in for whoever is not signed in.

use std::sync::Arc;

use hyper::header::CONTENT_SECURITY_POLICY;
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
use crate::site::own_page::session::{Session, keep_apart, look_if_any, sign_in as sign_in_form, take_any};
use crate::site::view::{self, CampaignReader, CampaignView, JoinForm, MemberPart, Outcome, SignInView};
use crate::site::{PageResult, Visit, WITH_OUR_SCRIPT, field, join as join_page, said};

/// What a member presses to say that what they accepted did not work, or works now.
const TROUBLE: &str = "trouble";
const TROUBLE_OVER: &str = "trouble-over";

/// Why a press came to nothing, before anybody asked the campaign; `BadPress` has the campaign's own reasons.
const OLD_FORM: &str = "old-form";
const NOT_WHOLE: &str = "not-whole";
const NO_STATE: &str = "no-state";
const SIGNED_OUT: &str = "signed-out";
const LEFT: &str = "left";

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
fn done_note<'a>(
    words: &'a Words,
    word: &str,
    part: Option<&ParticipationEntry>,
    gets_offer: bool,
) -> Option<&'a Phrase> {
    let state = part.map(|part| part.state);
    let trouble = part.and_then(ParticipationEntry::acceptance).map(|acceptance| acceptance.trouble_at.is_some());
    let words = match (word, trouble) {
        (TROUBLE, Some(true)) => return Some(&words.handover.done_trouble),
        (TROUBLE_OVER, Some(false)) => return Some(&words.handover.done_trouble_over),
        _ => &words.campaign,
    };
    match (Press::from_name(word)?, state) {
        (Press::In, Some(ParticipationState::In)) if gets_offer => Some(&words.done_in_mailed),
        (Press::In, Some(ParticipationState::In)) => Some(&words.done_in),
        (Press::Out, None | Some(ParticipationState::Out)) => Some(&words.done_out),
        (Press::Accept, Some(ParticipationState::Accepted)) => Some(&words.done_accept),
        (Press::Pass, Some(ParticipationState::Passed)) => Some(&words.done_pass),
        (Press::Pass, None | Some(ParticipationState::Out)) => Some(&words.done_pass_nothing),
        _ => None,
    }
}

/// Why a press was refused, in the same way.
fn refused_note(visit: Visit<'_>, campaign: &CampaignRecord, word: &str, session: &Session) -> Option<String> {
    let (words, person, part) = (visit.words(), &session.file.person, session.part(campaign.slug()));
    Some(match word {
        OLD_FORM => words.campaign.refused_old_form.to_string(),
        NOT_WHOLE => words.mistake.not_whole.to_string(),
        NO_STATE => words.mistake.state.to_string(),
        TROUBLE if part.and_then(ParticipationEntry::acceptance).is_none() => {
            words.handover.refused_trouble.to_string()
        }
        LEFT if person.state != PersonState::Member => words.campaign.left.to_string(),
        _ => {
            let (why, state) = (BadPress::from_name(word)?, part.map(|part| part.state));
            let may_be = campaign.may_refuse(why, state, person.answers.us_state, visit.now.time);
            return may_be.then(|| view::refusal(words, campaign, why));
        }
    })
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = Found::at(visit).await?;
    let session = look_if_any(visit, request.headers()).await?;
    let visit = visit.who_chose(session.as_ref().and_then(|session| session.file.person.language));
    let (campaign, session) = (found.campaign(visit)?, session.as_ref());
    let done = said(&request, "done").zip(session);
    let done = done.and_then(|(word, session)| {
        done_note(visit.words(), word, session.part(&found.slug), session.gets_offer(visit))
    });
    let refused = said(&request, "refused").zip(session);
    let refused = refused.and_then(|(word, session)| Some((word, refused_note(visit, campaign, word, session)?)));
    // In another language, too, it is told.
    let path = refused.as_ref().map(|(word, _)| format!("{}?refused={word}", visit.path));
    let visit = Visit { path: path.as_deref().unwrap_or(visit.path), ..visit };
    let refused = refused.as_ref().map(|(_, why)| &**why);
    Ok(page(visit, campaign, session, done.map(Phrase::as_str), refused))
}

/// A member presses a button.
pub async fn press(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = Found::at(visit).await?;
    let place = format!("/campaigns/{}", found.slug);
    let signed_out = |visit: Visit<'_>| visit.redirect(&format!("{place}/sign-in?refused={SIGNED_OUT}"));
    let (visit, session, fields, is_its_own) = take_any(visit, request, signed_out).await?;
    let visit = visit.of_form(field(&fields, "lang").as_deref());
    let refuse = |why: &str| Ok(visit.redirect(&format!("{place}?refused={why}")));
    // From before they last signed in, perhaps: the page has a form that works.
    if !is_its_own {
        return refuse(OLD_FORM);
    }
    let typed = field(&fields, "usState").unwrap_or_default();
    let us_state = UsState::from_code(&typed);
    if us_state.is_none() && !typed.is_empty() {
        return refuse(NO_STATE);
    }
    let (app, nonce) = (visit.app(), &session.cookie.nonce);
    let is_on_own_page = field(&fields, "from").as_deref() == Some("me");
    let pressed_at = |done: &str| match is_on_own_page {
        true => visit.redirect(&format!("/me?done={done}&campaign={}#done", found.slug)),
        false => visit.redirect(&format!("{place}?done={done}")),
    };
    let name = field(&fields, "press").unwrap_or_default();
    if let TROUBLE | TROUBLE_OVER = &*name {
        let works = name == TROUBLE_OVER;
        return match visit.stored(app.campaigns.say_trouble(nonce, &found.slug, works, visit.now.time).await)? {
            true => Ok(pressed_at(&name)),
            false => refuse(TROUBLE),
        };
    }
    let Some(pressed) = Press::from_name(&name) else { return refuse(NOT_WHOLE) };
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
        Pressed::Refused(why) => refuse(why.name()),
        Pressed::Unknown => Ok(visit.outcome(StatusCode::NOT_FOUND, Outcome::NoCampaign)),
        Pressed::NotAMember => refuse(LEFT),
    }
}

/// The form to sign in with, which leads back; whoever is signed in is back at once.
pub async fn sign_in(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let found = Found::at(visit).await?;
    if look_if_any(visit, request.headers()).await?.is_some() {
        return Ok(visit.redirect(&format!("/campaigns/{}", found.slug)));
    }
    let (text, words) = (found.campaign(visit)?.draft.text(visit.reader.language), &visit.words().campaign);
    let note = match said(&request, "refused") {
        Some(SIGNED_OUT) => words.refused_signed_out.to_string(),
        _ => words.sign_in_note.put("title", text.map_or("", |text| &text.title)).plain(),
    };
    let view = SignInView { note: Some(&note), campaign: Some(&found.slug), ..SignInView::default() };
    Ok(sign_in_form(visit, request.headers(), StatusCode::OK, view))
}

/// The page to join on; whoever confirms is shown the campaign first.
pub async fn join(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    let found = Found::at(visit).await?;
    let category = found.campaign(visit)?.draft.category;
    let mut form = JoinForm { campaign: Some(found.slug), ..JoinForm::default() };
    if !visit.app().union.catalog.left_out().contains(&category) {
        form.answers.take(category.slug(), "true");
    }
    let code = visit.invited_by.map(|code| code.to_string()).unwrap_or_default();
    Ok(join_page::page(visit, StatusCode::OK, &code, &form).await)
}

fn page(
    visit: Visit<'_>,
    campaign: &CampaignRecord,
    session: Option<&Session>,
    done: Option<&str>,
    refused: Option<&str>,
) -> Answer {
    let token = session.map(|session| visit.app().own_pages.csrf_token(&session.cookie.nonce)).unwrap_or_default();
    let reader = match session {
        None => CampaignReader::Stranger,
        Some(session) if session.file.person.state != PersonState::Member => CampaignReader::Left,
        Some(session) => CampaignReader::Member(MemberPart::of(
            &token,
            session.part(campaign.slug()),
            session.file.person.answers.us_state,
            session.file.person.hears_of(),
        )),
    };
    let code = session.map(|session| session.file.person.code);
    let gets_offer = session.is_some_and(|session| session.gets_offer(visit));
    let view = CampaignView { campaign, reader, code, gets_offer, done, refused };
    let mut answer = visit.page(view::campaign(visit.frame(), &view));
    if session.is_some() {
        // The button that copies the link to share is the only thing here that is done by a script.
        answer.set(CONTENT_SECURITY_POLICY, WITH_OUR_SCRIPT);
        keep_apart(&mut answer);
    }
    answer
}
