//! `/`, `/join` and `/joinus<code>`: the page to join on, and the form that is sent from it.

use hyper::header::CONTENT_SECURITY_POLICY;
use hyper::{Request, StatusCode};

use super::join_form::{SentForm, Turn};
use super::own_page::session::look_if_any;
use super::view::{self, Frame, InvitedBy, JoinForm, Outcome, ShownAgain};
use super::{FORM_BYTES, PageResult, Visit, WITH_OUR_SCRIPT};
use crate::domain::person::PersonState;
use crate::domain::referral::ReferralCode;
use crate::domain::sign_up::Channel;
use crate::error::Error;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::limiter::Class;
use crate::mail::Delivery;
use crate::membership::SignUpContext;
use crate::membership::form_throttle::{FormGate, Passage};

/// Forms sent a minute from one address: far more than a family, far fewer than a script.
pub(super) const FORMS_A_MINUTE: u32 = 10;

/// A code that is nobody's does no harm: it is told, and the sign-up is not attributed.
pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    // Where it cannot be told, they are shown what everybody is.
    let session = look_if_any(visit, request.headers()).await.ok().flatten();
    if let Some(session) = session.filter(|session| session.file.person.state == PersonState::Member) {
        let visit = visit.who_chose(session.file.person.language);
        let campaigns = visit.public_campaigns().await;
        return Ok(visit.page(view::greeting(visit.frame(), campaigns.listed())));
    }
    let handed_on = visit.invited_by;
    let code = match (visit.path.starts_with("/joinus"), &handed_on) {
        // The whole link is read: a chat may have put something behind the code. Where `/joinus` is all there is, it was lost.
        (true, _) => visit.path,
        (false, Some(code)) => code.as_str(),
        (false, None) => "",
    };
    Ok(page(visit, StatusCode::OK, code, &JoinForm::default()).await)
}

pub async fn send(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (head, body) = request.into_parts();
    if !visit.is_own(&head) {
        return Ok(visit.outcome(StatusCode::FORBIDDEN, Outcome::WrongOrigin));
    }
    visit.spend(Class::Form, FORMS_A_MINUTE).await?;
    let body = body.read(FORM_BYTES).await?;
    let sent = SentForm::read(&body);
    let visit = visit.of_form(sent.language.as_deref());
    // Whoever has sent it sees it again as it was, and nothing is done.
    if sent.changes {
        return Ok(turn(visit, &sent, Turn::Again(Some(ShownAgain::Changes))).await);
    }
    let Ok(application) = sent.check(visit.words()) else { return Ok(turn(visit, &sent, Turn::Again(None)).await) };
    // Only a program fills in what people cannot see; it is told what it hopes to hear.
    if !sent.website.is_empty() {
        return Ok(turn(visit, &sent, Turn::Taken(false)).await);
    }
    let (budget, network) = (&visit.app().form_throttle, visit.network());
    let passage = budget.passage(sent.question.as_deref(), &sent.answer, network.octets(), visit.now).await;
    let passage = passage.unwrap_or_else(|error| {
        visit.report(&error.to_string());
        Passage::Free
    });
    if passage == Passage::Ask {
        return Ok(turn(visit, &sent, Turn::Again(Some(ShownAgain::Asks))).await);
    }
    let proven = passage == Passage::Proven;
    let language = Some(visit.reader.language);
    let context =
        SignUpContext { channel: Channel::Form, client: None, lane: visit.lane(), proven, language, request: None };
    match visit.app().membership.sign_up(&application, None, context, visit.now.time).await {
        Ok(_) => {
            if let Some(slug) = &sent.campaign {
                // Without it they join all the same, and find the campaign on their page.
                let remembered = visit.app().campaigns.remember(&application.email, slug).await;
                remembered.unwrap_or_else(|error| visit.report(&error.to_string()));
            }
            Ok(turn(visit, &sent, Turn::Taken(passage == Passage::MayWait)).await)
        }
        Err(Error::BackendNotConfigured) => {
            Ok(visit.outcome(StatusCode::INTERNAL_SERVER_ERROR, Outcome::SignUpsOff).by_pause())
        }
        Err(error) => {
            let mut form = sent.form();
            let words = &visit.words().mistake;
            let why = if matches!(error, Error::OutcomeUnknown { .. }) { &words.unsure } else { &words.not_sent };
            form.general_error = Some(why.to_string());
            visit.report(error.cause().unwrap_or("a sign-up by form failed"));
            Ok(page(visit, StatusCode::INTERNAL_SERVER_ERROR, &sent.ref_code, &form).await)
        }
    }
}

/// To the page after the form, which can be loaded again. Its address is the same length whatever the state of who was signed up,
/// and holds what was sent where only we can read it: no address is in a log or in another site's sight. What is too long for
/// an address is shown at once.
async fn turn(visit: Visit<'_>, sent: &SentForm, turn: Turn) -> Answer {
    match sent.seal(&visit.app().sent_forms, &turn, visit.now.time) {
        Some(sealed) => visit.redirect(&format!("/join/sent/{sealed}")),
        None if sent.changes => after(visit, StatusCode::OK, sent, turn).await,
        None => after(visit, StatusCode::BAD_REQUEST, sent, turn).await,
    }
}

/// The page after the form: check your inbox, or the form again.
pub async fn sent(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    let form = SentForm::unseal(&visit.app().sent_forms, visit.parameter, visit.now.time);
    let Some((form, turn)) = form else { return Ok(visit.redirect("/join")) };
    let visit = visit.of_form(form.language.as_deref());
    Ok(after(visit, StatusCode::OK, &form, turn).await)
}

async fn after(visit: Visit<'_>, status_again: StatusCode, sent: &SentForm, turn: Turn) -> Answer {
    let form = match (turn, sent.check(visit.words())) {
        (Turn::Taken(may_wait), _) => {
            let frame = Frame { invited_by: ReferralCode::from_pasted(&sent.ref_code), ..visit.frame() };
            return visit.page(view::check_inbox(frame, sent.email(), &sent.fields(), may_wait));
        }
        (Turn::Again(None), Err(mistaken)) => *mistaken,
        (Turn::Again(again), _) => JoinForm { again, ..sent.form() },
        (Turn::Answers { .. }, _) => return visit.redirect("/me"),
    };
    page(visit, status_again, &sent.ref_code, &form).await
}

/// The page with a form as it was filled in; `code` is whatever came as the code of whoever referred the reader.
pub(super) async fn page(visit: Visit<'_>, status: StatusCode, code: &str, form: &JoinForm) -> Answer {
    let pasted = ReferralCode::from_pasted(code);
    let invited_by = match &pasted {
        _ if code.is_empty() => InvitedBy::Nobody,
        None => InvitedBy::Unknown,
        Some(known) => match visit.app().membership.is_code_known(*known).await {
            Ok(false) => InvitedBy::Unknown,
            Ok(true) => InvitedBy::Code(known.as_str()),
            // Whoever invited them may not be forgotten because the store is away.
            Err(error) => {
                visit.report(&error.to_string());
                InvitedBy::Code(known.as_str())
            }
        },
    };
    let count = visit.member_count().await;
    let gate = match &visit.app().mail {
        Delivery::Off => FormGate::Shut,
        Delivery::Held | Delivery::Sent(_) => visit.app().form_throttle.gate(visit.now).await.unwrap_or_else(|error| {
            visit.report(&error.to_string());
            FormGate::Open
        }),
    };
    // What failed for another reason is shown again with what was typed: a pause that is over may be remembered for a moment.
    let gate = if gate == FormGate::Shut && form.general_error.is_some() { FormGate::Open } else { gate };
    // In another language, neither what was sent nor whoever invited them nor the campaign is forgotten.
    let path = match (&form.campaign, invited_by) {
        _ if ["/join/sent/", "/confirm/"].iter().any(|sent| visit.path.starts_with(sent)) => visit.path.to_owned(),
        (Some(slug), _) => format!("/campaigns/{slug}/join"),
        (None, InvitedBy::Code(code)) => format!("/joinus{code}"),
        (None, InvitedBy::Nobody | InvitedBy::Unknown) => visit.path.to_owned(),
    };
    let known = pasted.filter(|_| matches!(invited_by, InvitedBy::Code(_)));
    let frame = Frame { path: &path, invited_by: known, ..visit.frame() };
    let campaigns = visit.public_campaigns().await;
    let mut answer = Answer::html(status, view::join(frame, count, invited_by, &gate, form, campaigns.listed()));
    if gate != FormGate::Shut {
        // The one that adds up what is ticked, and the one that answers the question.
        answer.set(CONTENT_SECURITY_POLICY, WITH_OUR_SCRIPT);
    }
    answer
}
