//! `/me`: what a member sees of themselves, and what they change there: answers, mail, sessions, leaving, being erased.
//!
//! Every form is sent from our own page and carries the session's token (CSRF); without a session nothing is shown.

use hyper::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue};
use hyper::{HeaderMap, Request, StatusCode};

use super::cookie::SiteCookie;
use super::join_form::SentForm;
use super::view::{self, Outcome, OwnView, RefusedAnswers};
use super::{FORM_BYTES, LINKS_A_MINUTE, PageResult, Visit, WITH_OUR_SCRIPT, field};
use crate::domain::email::EmailAddress;
use crate::domain::language::words::OwnWords;
use crate::domain::language::{Language, Phrase};
use crate::domain::person::{Answers, PersonFile, PersonState, UnwantedMail};
use crate::domain::secret::session::SessionCookie;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::limiter::Class;
use crate::mail::Delivery;
use crate::membership::export::MemberExport;
use crate::membership::form_throttle::FormGate;
use crate::membership::people::NotErased;

/// Somebody who is signed in, and all that is kept of them.
struct Session {
    cookie: SessionCookie,
    file: PersonFile,
    email: EmailAddress,
}

/// What a page says after a form was taken, by the word in its address.
fn done<'a>(words: &'a OwnWords, query: &str, has_left: bool) -> Option<&'a Phrase> {
    let word = query.split('&').find_map(|part| part.strip_prefix("done="))?;
    match word {
        "answers" => Some(&words.answers_saved),
        "mail" => Some(&words.mail_saved),
        "mail-again" => Some(&words.mail_again_done),
        "language" => Some(&words.language_saved),
        // A word that anybody can write is believed as far as it can be true.
        "left" if has_left => Some(&words.left_done),
        _ => None,
    }
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, (head, _)) = (visit.of_own_page(), request.into_parts());
    let session = look(visit, &head.headers).await?.ok_or_else(|| sign_in(visit, StatusCode::OK, None))?;
    let visit = visit.who_chose(session.file.person.language);
    let has_left = session.file.person.state == PersonState::Left;
    let done = done(&visit.words().own, head.uri.query().unwrap_or_default(), has_left);
    Ok(own_page(visit, StatusCode::OK, &session, done.map(Phrase::as_str), None).await)
}

pub async fn change_answers(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, fields) = take(visit, request).await?;
    let (sent, words) = (SentForm::read(&fields), visit.words());
    let us_state = match sent.us_state {
        Some(_) => sent.us_state(words),
        None => Err(words.mistake.not_whole.to_string()),
    };
    let answers = match (us_state, sent.comments(words)) {
        (Ok(us_state), Ok(comments)) => {
            Answers { us_state, categories: sent.chosen, comments: comments.as_str().to_owned() }
        }
        (us_state, comments) => {
            let (categories, comments_typed) = (sent.chosen, sent.typed_comments().to_owned());
            let us_state_typed = us_state.clone().unwrap_or_default();
            let typed = Answers { us_state: us_state_typed, categories, comments: comments_typed };
            let (state_error, comments_error) = (us_state.err(), comments.err());
            let refused = RefusedAnswers {
                answers: &typed,
                state_error: state_error.as_deref(),
                comments_error: comments_error.as_deref(),
            };
            return Ok(own_page(visit, StatusCode::BAD_REQUEST, &session, None, Some(refused)).await);
        }
    };
    let changed = visit.app().own_pages.change_answers(&session.cookie.nonce, answers, visit.now.time).await;
    // Who has left meanwhile reads so on their page.
    Ok(visit.redirect(if visit.stored(changed)? { "/me?done=answers" } else { "/me" }))
}

pub async fn choose_mail(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, fields) = take(visit, request).await?;
    let unwanted = UnwantedMail { already_member: field(&fields, "alreadyMember").as_deref() != Some("true") };
    let chosen = visit.stored(visit.app().own_pages.choose_mail(&session.cookie.nonce, unwanted).await)?;
    Ok(if chosen { visit.redirect("/me?done=mail") } else { not_signed_in(visit) })
}

pub async fn choose_language(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, fields) = take(visit, request).await?;
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
    let (visit, session, _) = take(visit, request).await?;
    visit.stored(visit.app().own_pages.unsuppress(&session.email, visit.now.time).await)?;
    Ok(visit.redirect("/me?done=mail-again"))
}

pub async fn sign_out(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, fields) = take(visit, request).await?;
    let words = &visit.words().sign_in;
    let mut note = &words.signed_out;
    if field(&fields, "everywhere").as_deref() == Some("true") {
        visit.stored(visit.app().own_pages.sign_out_everywhere(&session.cookie.nonce).await)?;
        note = &words.signed_out_everywhere;
    } else {
        visit.stored(visit.app().own_pages.sign_out(&session.cookie).await)?;
    }
    let mut answer = sign_in(visit, StatusCode::OK, Some(note));
    SiteCookie::Session.clear(&mut answer, visit.site.secure);
    Ok(answer)
}

/// Asks whether they want to leave.
pub async fn ask_to_leave(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let visit = visit.of_own_page();
    Ok(match look(visit, request.headers()).await? {
        Some(session) if session.file.person.state == PersonState::Member => {
            require_mailed(visit, StatusCode::OK, &session)?;
            let (visit, own_pages) = (visit.who_chose(session.file.person.language), &visit.app().own_pages);
            let token = own_pages.csrf_token(&session.cookie.nonce);
            visit.page(view::leave(visit.frame(), &token, own_pages.times))
        }
        Some(_) => visit.redirect("/me"),
        None => sign_in(visit, StatusCode::OK, None),
    })
}

pub async fn leave(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, _) = take(visit, request).await?;
    require_mailed(visit, StatusCode::FORBIDDEN, &session)?;
    visit.stored(visit.app().own_pages.leave(&session.email, visit.now.time).await)?;
    Ok(visit.redirect("/me?done=left"))
}

/// Asks whether everything is to be erased.
pub async fn ask_to_erase(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let visit = visit.of_own_page();
    let session = look(visit, request.headers()).await?.ok_or_else(|| sign_in(visit, StatusCode::OK, None))?;
    require_mailed(visit, StatusCode::OK, &session)?;
    let token = visit.app().own_pages.csrf_token(&session.cookie.nonce);
    let is_member = session.file.person.state == PersonState::Member;
    let visit = visit.who_chose(session.file.person.language);
    Ok(visit.page(view::erase(visit.frame(), &token, is_member)))
}

pub async fn erase(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, _) = take(visit, request).await?;
    require_mailed(visit, StatusCode::FORBIDDEN, &session)?;
    Ok(match visit.app().own_pages.erase(&session.email, visit.now.time).await {
        Ok(Some(erased)) => {
            // By another address, so that whoever loads it again does not send the form again.
            let shown = if erased.mailbox_is_shared { "/me/erased?shared" } else { "/me/erased" };
            let mut answer = visit.redirect(shown);
            SiteCookie::Session.clear(&mut answer, visit.site.secure);
            answer
        }
        Ok(None) => not_signed_in(visit),
        Err(NotErased::Store(error)) => visit.problem(error),
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

/// Everything that is kept of them, as a file.
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
    done: Option<&str>,
    refused: Option<RefusedAnswers<'_>>,
) -> Answer {
    let own_pages = &visit.app().own_pages;
    let token = own_pages.csrf_token(&session.cookie.nonce);
    let (file, times, now) = (&session.file, own_pages.times, visit.now.time);
    // Whoever left is not led to a form that is shut.
    let sign_ups_paused = file.person.state == PersonState::Left
        && (matches!(visit.app().mail, Delivery::Off)
            || matches!(visit.app().form_throttle.gate(visit.now).await, Ok(FormGate::Shut)));
    let view = OwnView { file, token: &token, done, refused, times, sign_ups_paused, now };
    let mut answer = Answer::html(status, view::own_page(visit.frame(), &view));
    // The button that copies the link is the only thing here that is done by a script.
    answer.set(CONTENT_SECURITY_POLICY, WITH_OUR_SCRIPT);
    keep_apart(&mut answer);
    answer
}

fn sign_in(visit: Visit<'_>, status: StatusCode, note: Option<&Phrase>) -> Answer {
    sign_in_as(visit, status, "", note)
}

fn sign_in_as(visit: Visit<'_>, status: StatusCode, email: &str, note: Option<&Phrase>) -> Answer {
    let mut answer = Answer::html(status, view::sign_in(visit.frame(), email, None, note.map(Phrase::as_str)));
    keep_apart(&mut answer);
    answer
}

/// What a session that came of joining cannot do asks for a mailed sign-in.
fn require_mailed(visit: Visit<'_>, status: StatusCode, session: &Session) -> PageResult<()> {
    if session.cookie.by.may_export_leave_and_erase() {
        return Ok(());
    }
    let visit = visit.who_chose(session.file.person.language);
    let why = &visit.words().sign_in.needs_mail;
    Err(sign_in_as(visit, status, &session.file.person.email, Some(why)).into())
}

/// A form came from somebody whose session is over.
fn not_signed_in(visit: Visit<'_>) -> Answer {
    sign_in(visit, StatusCode::FORBIDDEN, Some(&visit.words().sign_in.not_signed_in))
}

/// No window of another site holds on to it, and none shows it within its own.
fn keep_apart(answer: &mut Answer) {
    for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
        answer.set(HeaderName::from_static(name), HeaderValue::from_static("same-origin"));
    }
}

/// Who is signed in, if anybody is; or why nobody can be told.
async fn look(visit: Visit<'_>, headers: &HeaderMap) -> PageResult<Option<Session>> {
    visit.spend(Class::Link, LINKS_A_MINUTE).await?;
    let cookie = SiteCookie::Session.read(headers, visit.site.secure);
    let cookie = cookie.and_then(|cookie| visit.app().own_pages.session(cookie, visit.now.time));
    let Some(cookie) = cookie else { return Ok(None) };
    let found = visit.stored(visit.app().own_pages.find(&cookie, visit.now.time).await)?;
    Ok(found.and_then(|file| {
        let email = EmailAddress::kept(&file.person.email).ok()?;
        Some(Session { cookie, file, email })
    }))
}

/// A form that was sent: whose it is, in whose language they are answered, and what it says; or what to answer instead.
async fn take<'a>(visit: Visit<'a>, request: Request<SentBody<'_>>) -> PageResult<(Visit<'a>, Session, Vec<u8>)> {
    let (visit, (head, body)) = (visit.of_own_page(), request.into_parts());
    visit.require_own(&head)?;
    let session = look(visit, &head.headers).await?.ok_or_else(|| not_signed_in(visit))?;
    let fields = body.read(FORM_BYTES).await?.to_vec();
    if !visit.app().own_pages.is_csrf_token(&session.cookie.nonce, &field(&fields, "token").unwrap_or_default()) {
        return Err(visit.outcome(StatusCode::FORBIDDEN, Outcome::WrongOrigin).into());
    }
    Ok((visit.who_chose(session.file.person.language), session, fields))
}
