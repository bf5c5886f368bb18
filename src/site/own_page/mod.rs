//! `/me`: what a member sees of themselves, and what they change there: campaigns, answers, mail, sessions, leaving, being erased.
//!
//! Every form is sent from our own page and carries the session's token (CSRF); without a session nothing is shown.

pub(super) mod session;

use hyper::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HeaderValue};
use hyper::{HeaderMap, Request, StatusCode};

use self::session::{Session, keep_apart, look, require_mailed, sign_in, take};
use super::cookie::SiteCookie;
use super::join_form::SentForm;
use super::view::{self, JoinForm, MemberPart, Outcome, OwnView};
use super::{PageResult, Visit, WITH_OUR_SCRIPT, field, field_is};
use crate::domain::campaign::CampaignMail;
use crate::domain::campaign::participation::Press;
use crate::domain::language::words::OwnWords;
use crate::domain::language::{Language, Phrase};
use crate::domain::mail::MailKind;
use crate::domain::person::{PersonState, RewardsDue};
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::mail::Delivery;
use crate::membership::form_throttle::FormGate;
use crate::people::NotErased;
use crate::people::export::MemberExport;

/// Campaigns on the page at the most; all of them have a page of their own.
const MOST_CAMPAIGNS: usize = 20;

/// What a page says after a form was taken, by the word in its address.
fn done<'a>(words: &'a OwnWords, query: &str, has_left: bool) -> Option<&'a Phrase> {
    match done_word(query)? {
        "answers" => Some(&words.answers_saved),
        "mail" => Some(&words.mail_saved),
        "mail-again" => Some(&words.mail_again_done),
        "language" => Some(&words.language_saved),
        // A word that anybody can write is believed as far as it can be true.
        "left" if has_left => Some(&words.left_done),
        _ => None,
    }
}

/// The word in the address of a page that a form led to.
pub(super) fn done_word(query: &str) -> Option<&str> {
    query.split('&').find_map(|part| part.strip_prefix("done="))
}

/// What was pressed on the page, and of which campaign.
fn pressed(query: &str) -> Option<(Press, &str)> {
    let press = Press::from_name(done_word(query)?)?;
    Some((press, query.split('&').find_map(|part| part.strip_prefix("campaign="))?))
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session) = require_session(visit, request.headers()).await?;
    let query = request.uri().query().unwrap_or_default();
    Ok(own_page(visit, StatusCode::OK, &session, query, None).await)
}

pub async fn change_answers(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, fields) = take(visit, request, not_signed_in).await?;
    let mut sent = SentForm::read(&fields);
    sent.answers.require_whole(visit.words());
    let answers = match sent.answers.check(visit.words()) {
        Ok(answers) => answers,
        Err(answers) => {
            let refused = JoinForm { answers: *answers, ..sent.form() };
            return Ok(own_page(visit, StatusCode::BAD_REQUEST, &session, "", Some(&refused)).await);
        }
    };
    let changed = visit.app().own_pages.change_answers(&session.cookie.nonce, answers, visit.now.time).await;
    // Who has left meanwhile reads so on their page.
    Ok(visit.redirect(if visit.stored(changed)? { "/me?done=answers" } else { "/me" }))
}

pub async fn choose_mail(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, fields) = take(visit, request, not_signed_in).await?;
    let is = |name, value| field_is(&fields, name, value);
    let mut chosen = vec![(MailKind::AlreadyMember, is("alreadyMember", "true"))];
    // A box that is not ticked is not sent: only a form that shows these says something of them.
    if is("campaigns", "shown") {
        chosen.extend(CampaignMail::ALL.map(|mail| (mail.into(), is(mail.name(), "true"))));
    }
    let chosen = visit.stored(visit.app().own_pages.choose_mail(&session.cookie.nonce, &chosen).await)?;
    Ok(if chosen { visit.redirect("/me?done=mail") } else { not_signed_in(visit) })
}

pub async fn choose_language(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, fields) = take(visit, request, not_signed_in).await?;
    let chosen = field(&fields, "language").and_then(|code| Language::from_code(&code));
    let Some(language) = chosen else { return Ok(visit.redirect("/me")) };
    if !visit.stored(visit.app().own_pages.choose_language(&session.cookie.nonce, language).await)? {
        return Ok(not_signed_in(visit));
    }
    let mut answer = visit.redirect("/me?done=language");
    // What was chosen in this browser before would come first.
    SiteCookie::Language.clear(&mut answer, visit.site.secure);
    Ok(answer)
}

/// Whatever keeps mail from them is lifted.
pub async fn mail_again(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, _) = take(visit, request, not_signed_in).await?;
    visit.stored(visit.app().own_pages.unsuppress(&session.email, visit.now.time).await)?;
    Ok(visit.redirect("/me?done=mail-again"))
}

pub async fn sign_out(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, fields) = take(visit, request, not_signed_in).await?;
    let words = &visit.words().sign_in;
    let mut note = &words.signed_out;
    if field_is(&fields, "everywhere", "true") {
        visit.stored(visit.app().own_pages.sign_out_everywhere(&session.cookie.nonce).await)?;
        note = &words.signed_out_everywhere;
    } else {
        visit.stored(visit.app().own_pages.sign_out(&session.cookie).await)?;
    }
    let mut answer = sign_in(visit, StatusCode::OK, Some(note));
    SiteCookie::Session.clear(&mut answer, visit.site.secure);
    Ok(answer)
}

pub async fn ask_to_leave(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session) = require_session(visit, request.headers()).await?;
    if session.file.person.state != PersonState::Member {
        return Ok(visit.redirect("/me"));
    }
    require_mailed(visit, StatusCode::OK, &session)?;
    let own_pages = &visit.app().own_pages;
    let token = own_pages.csrf_token(&session.cookie.nonce);
    let public = visit.public_campaigns().await;
    Ok(visit.page(view::leave(visit.frame(), &token, &session.file, own_pages.times, |slug| public.find(slug))))
}

pub async fn leave(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, _) = take(visit, request, not_signed_in).await?;
    require_mailed(visit, StatusCode::FORBIDDEN, &session)?;
    visit.stored(visit.app().own_pages.leave(&session.email, visit.now.time).await)?;
    Ok(visit.redirect("/me?done=left"))
}

pub async fn ask_to_erase(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session) = require_session(visit, request.headers()).await?;
    require_mailed(visit, StatusCode::OK, &session)?;
    let token = visit.app().own_pages.csrf_token(&session.cookie.nonce);
    let public = visit.public_campaigns().await;
    Ok(visit.page(view::erase(visit.frame(), &token, &session.file, false, |slug| public.find(slug))))
}

pub async fn erase(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, mut session, fields) = take(visit, request, not_signed_in).await?;
    require_mailed(visit, StatusCode::FORBIDDEN, &session)?;
    // The amount that they read is given up, and no more.
    let waives = field_is(&fields, "waiveRewards", "true");
    let read = field(&fields, "dueCents").filter(|_| waives).and_then(|cents| cents.parse().ok()).unwrap_or(0);
    let (own_pages, person) = (&visit.app().own_pages, session.file.person.id);
    Ok(match own_pages.erase(&session.email, person, read, visit.now.time).await {
        Ok(Some(erased)) => {
            // By another address, so that whoever loads it again does not send the form again.
            let shown = if erased.mailbox_is_shared { "/me/erased?shared" } else { "/me/erased" };
            let mut answer = visit.redirect(shown);
            SiteCookie::Session.clear(&mut answer, visit.site.secure);
            answer
        }
        Ok(None) => not_signed_in(visit),
        Err(NotErased::Store(error)) => visit.problem(error),
        Err(NotErased::RewardsDue(RewardsDue { cents })) => {
            session.file.rewards.due_cents = cents;
            let token = own_pages.csrf_token(&session.cookie.nonce);
            let public = visit.public_campaigns().await;
            let page = view::erase(visit.frame(), &token, &session.file, true, |slug| public.find(slug));
            let mut answer = Answer::html(StatusCode::BAD_REQUEST, page);
            keep_apart(&mut answer);
            answer
        }
        Err(error @ NotErased::Log(_)) => {
            visit.report(&error.to_string());
            visit.outcome(StatusCode::SERVICE_UNAVAILABLE, Outcome::Problem)
        }
    })
}

/// What whoever was erased is told; it says nothing of anybody.
pub async fn erased(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    Ok(visit.page(view::erased(visit.frame(), request.uri().query().is_some_and(|query| query.starts_with("shared")))))
}

pub async fn export(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let visit = visit.of_own_page();
    // A download that begins or not would tell another site whether its visitor is signed in.
    let led_here = request.headers().get("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none");
    let session = look(visit, request.headers()).await?.filter(|_| !led_here);
    let session = session.ok_or_else(|| sign_in(visit, StatusCode::FORBIDDEN, None))?;
    require_mailed(visit, StatusCode::FORBIDDEN, &session)?;
    let file = visit.stored(visit.app().own_pages.fill(session.file, visit.now.time).await)?;
    let document = MemberExport::of(&file, &visit.app().union, visit.now.time);
    let mut answer = Answer::json(StatusCode::OK, serde_json::to_vec_pretty(&document).unwrap_or_default());
    answer.set(CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"member-export.json\""));
    keep_apart(&mut answer);
    Ok(answer)
}

async fn own_page(
    visit: Visit<'_>,
    status: StatusCode,
    session: &Session,
    query: &str,
    refused: Option<&JoinForm>,
) -> Answer {
    let own_pages = &visit.app().own_pages;
    let token = own_pages.csrf_token(&session.cookie.nonce);
    let (file, times) = (&session.file, own_pages.times);
    // Whoever left is not led to a form that is shut.
    let sign_ups_paused = file.person.state == PersonState::Left
        && (matches!(visit.app().mail, Delivery::Off)
            || matches!(visit.app().form_throttle.gate(visit.now).await, Ok(FormGate::Shut)));
    let public = visit.public_campaigns().await;
    let standings = file.rewards.campaigns.iter();
    let rewarded: Vec<_> = standings.filter_map(|standing| public.find(&standing.campaign)).collect();
    let person = &file.person;
    let for_them = public.for_member(person.answers.us_state, person.answers.chosen(), &file.participations);
    let hears_of = person.hears_of();
    let part = |part| MemberPart::of(&token, part, person.answers.us_state, hears_of);
    let campaigns: Vec<_> =
        for_them.into_iter().take(MOST_CAMPAIGNS).map(|(campaign, entry)| (campaign, part(entry))).collect();
    let (campaigns, rewarded, token) = (&campaigns[..], &rewarded[..], &token[..]);
    let done = done(&visit.words().own, query, person.state == PersonState::Left).map(Phrase::as_str);
    let pressed = pressed(query);
    let view = OwnView { file, token, campaigns, rewarded, done, pressed, refused, times, sign_ups_paused };
    let mut answer = Answer::html(status, view::own_page(visit.frame(), &view));
    // The button that copies the link is the only thing here that is done by a script.
    answer.set(CONTENT_SECURITY_POLICY, WITH_OUR_SCRIPT);
    keep_apart(&mut answer);
    answer
}

/// Who is signed in, in whose language they are answered; or the form to sign in with.
async fn require_session<'a>(visit: Visit<'a>, headers: &HeaderMap) -> PageResult<(Visit<'a>, Session)> {
    let visit = visit.of_own_page();
    let session = look(visit, headers).await?.ok_or_else(|| sign_in(visit, StatusCode::OK, None))?;
    Ok((visit.who_chose(session.file.person.language), session))
}

fn not_signed_in(visit: Visit<'_>) -> Answer {
    sign_in(visit, StatusCode::FORBIDDEN, Some(&visit.words().sign_in.not_signed_in))
}
