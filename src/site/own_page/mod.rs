//! `/me`: what a member sees of themselves, and what they change there: campaigns, answers, mail, sessions, leaving, being erased.
//!
//! Every form is sent from our own page and carries the session's token (CSRF); without a session nothing is shown.

pub(super) mod session;

use hyper::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HeaderValue};
use hyper::{Request, StatusCode};

use self::session::{Session, keep_apart, look, require_mailed, sign_in, take};
use super::cookie::SiteCookie;
use super::join_form::{SentForm, Turn};
use super::view::{self, JoinForm, MemberPart, Outcome, OwnView, SignInView};
use super::{PageResult, Visit, WITH_OUR_SCRIPT, field, field_is, said, word};
use crate::domain::answers::Answers;
use crate::domain::campaign::CampaignMail;
use crate::domain::campaign::participation::Press;
use crate::domain::language::words::OwnWords;
use crate::domain::language::{Language, Phrase, Words};
use crate::domain::mail::MailKind;
use crate::domain::person::PersonState;
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
    match word(query, "done")? {
        "answers" => Some(&words.answers_saved),
        "mail" => Some(&words.mail_saved),
        "mail-again" => Some(&words.mail_again_done),
        "language" => Some(&words.language_saved),
        // A word that anybody can write is believed as far as it can be true.
        "left" if has_left => Some(&words.left_done),
        _ => None,
    }
}

/// The same on the form to sign in with.
fn signed_out_note<'a>(words: &'a Words, request: &Request<SentBody<'_>>) -> Option<&'a Phrase> {
    match (said(request, "done"), said(request, "refused")) {
        (Some("signed-out"), _) => Some(&words.sign_in.signed_out),
        (Some("signed-out-everywhere"), _) => Some(&words.sign_in.signed_out_everywhere),
        (_, Some("signed-out")) => Some(&words.sign_in.not_signed_in),
        (_, Some("code")) => Some(&words.mistake.code_wrong),
        _ => None,
    }
}

/// What was pressed on the page, and of which campaign.
fn pressed(query: &str) -> Option<(Press, &str)> {
    Some((Press::from_name(word(query, "done")?)?, word(query, "campaign")?))
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session) = require_session(visit, &request).await?;
    let query = request.uri().query().unwrap_or_default();
    let refused = word(query, "again").and_then(|sealed| {
        let again = format!("/me?again={sealed}");
        Some((refused_answers(visit, &session, sealed)?, again))
    });
    let Some((refused, path)) = refused else {
        return Ok(own_page(visit, StatusCode::OK, &session, query, None).await);
    };
    Ok(own_page(Visit { path: &path, ..visit }, StatusCode::OK, &session, "", Some(&refused)).await)
}

/// Answers as they were sent and not taken, with what is wrong with them; none where nothing is, or another session sent them.
fn refused_answers(visit: Visit<'_>, session: &Session, sealed: &str) -> Option<JoinForm> {
    let (sent, turn) = SentForm::unseal(&visit.app().sent_forms, sealed, visit.now.time)?;
    let Turn::Answers { token } = turn else { return None };
    let is_theirs = visit.app().own_pages.is_csrf_token(&session.cookie.nonce, &token);
    Some(*own_answers(visit, sent).err()?).filter(|_| is_theirs)
}

fn own_answers(visit: Visit<'_>, mut sent: SentForm) -> Result<Answers, Box<JoinForm>> {
    sent.answers.require_whole(visit.words());
    sent.answers.check(visit.words()).map_err(|answers| Box::new(JoinForm { answers: *answers, ..sent.form() }))
}

pub async fn change_answers(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, fields) = take(visit, request, not_signed_in).await?;
    let answers = match own_answers(visit, SentForm::read(&fields)) {
        Ok(answers) => answers,
        Err(refused) => {
            let turn = Turn::Answers { token: visit.app().own_pages.csrf_token(&session.cookie.nonce) };
            let sealed = SentForm::read(&fields).seal(&visit.app().sent_forms, &turn, visit.now.time);
            return Ok(match sealed {
                Some(sealed) => visit.redirect(&format!("/me?again={sealed}")),
                None => own_page(visit, StatusCode::BAD_REQUEST, &session, "", Some(&refused)).await,
            });
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
    let done = if field_is(&fields, "everywhere", "true") {
        visit.stored(visit.app().own_pages.sign_out_everywhere(&session.cookie.nonce).await)?;
        "/me?done=signed-out-everywhere"
    } else {
        visit.stored(visit.app().own_pages.sign_out(&session.cookie).await)?;
        "/me?done=signed-out"
    };
    let mut answer = visit.redirect(done);
    SiteCookie::Session.clear(&mut answer, visit.site.secure);
    Ok(answer)
}

pub async fn ask_to_leave(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session) = require_session(visit, &request).await?;
    if session.file.person.state != PersonState::Member {
        return Ok(visit.redirect("/me"));
    }
    require_mailed(visit, request.headers(), StatusCode::OK, &session, "leave")?;
    let own_pages = &visit.app().own_pages;
    let token = own_pages.csrf_token(&session.cookie.nonce);
    let public = visit.public_campaigns().await;
    Ok(visit.page(view::leave(visit.frame(), &token, &session.file, own_pages.times, |slug| public.find(slug))))
}

pub async fn leave(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, _) = take(visit, request, not_signed_in).await?;
    if !session.cookie.by.may_export_leave_and_erase() {
        return Ok(visit.redirect("/me/leave"));
    }
    visit.stored(visit.app().own_pages.leave(&session.email, visit.now.time).await)?;
    Ok(visit.redirect("/me?done=left"))
}

pub async fn ask_to_erase(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session) = require_session(visit, &request).await?;
    require_mailed(visit, request.headers(), StatusCode::OK, &session, "erase")?;
    let token = visit.app().own_pages.csrf_token(&session.cookie.nonce);
    let refused = said(&request, "refused") == Some("rewards") && session.file.rewards.due_cents > 0;
    let public = visit.public_campaigns().await;
    let page = view::erase(visit.frame(), &token, &session.file, refused, |slug| public.find(slug));
    let mut answer = visit.page(page);
    keep_apart(&mut answer);
    Ok(answer)
}

pub async fn erase(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (visit, session, fields) = take(visit, request, not_signed_in).await?;
    if !session.cookie.by.may_export_leave_and_erase() {
        return Ok(visit.redirect("/me/erase"));
    }
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
        Err(NotErased::RewardsDue(_)) => visit.redirect("/me/erase?refused=rewards"),
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
    let (headers, refused) = (request.headers(), StatusCode::FORBIDDEN);
    let session = session.ok_or_else(|| sign_in(visit, headers, refused, SignInView::default()))?;
    require_mailed(visit, headers, refused, &session, "data")?;
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
    let gets_offer = session.gets_offer(visit);
    let view = OwnView { file, token, campaigns, rewarded, done, gets_offer, pressed, refused, times, sign_ups_paused };
    let mut answer = Answer::html(status, view::own_page(visit.frame(), &view));
    // The button that copies the link is the only thing here that is done by a script.
    answer.set(CONTENT_SECURITY_POLICY, WITH_OUR_SCRIPT);
    keep_apart(&mut answer);
    answer
}

/// Who is signed in, in whose language they are answered; or the form to sign in with.
async fn require_session<'a>(visit: Visit<'a>, request: &Request<SentBody<'_>>) -> PageResult<(Visit<'a>, Session)> {
    let visit = visit.of_own_page();
    let Some(session) = look(visit, request.headers()).await? else {
        let note = signed_out_note(visit.words(), request).map(Phrase::as_str);
        let view = SignInView { note, ..SignInView::default() };
        return Err(sign_in(visit, request.headers(), StatusCode::OK, view).into());
    };
    Ok((visit.who_chose(session.file.person.language), session))
}

fn not_signed_in(visit: Visit<'_>) -> Answer {
    visit.redirect("/me?refused=signed-out")
}
