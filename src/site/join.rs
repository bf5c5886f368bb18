//! `/`, `/join` and `/joinus<code>`: the page to join on, and the form that is sent from it.

use hyper::header::CONTENT_SECURITY_POLICY;
use hyper::{Request, StatusCode};

use super::join_form::SentForm;
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
        let form = JoinForm { again: Some(ShownAgain::Changes), ..sent.form() };
        return Ok(page(visit, StatusCode::OK, &sent.ref_code, &form).await);
    }
    let application = match sent.check(visit.words()) {
        Ok(application) => application,
        Err(form) => return Ok(page(visit, StatusCode::BAD_REQUEST, &sent.ref_code, &form).await),
    };
    // Only a program fills in what people cannot see; it is told what it hopes to hear.
    if !sent.website.is_empty() {
        return Ok(check_inbox(visit, &sent, false));
    }
    let (budget, network) = (&visit.app().form_throttle, visit.network());
    let passage = budget.passage(sent.question.as_deref(), &sent.answer, network.octets(), visit.now).await;
    let passage = passage.unwrap_or_else(|error| {
        visit.report(&error.to_string());
        Passage::Free
    });
    if passage == Passage::Ask {
        let form = JoinForm { again: Some(ShownAgain::Asks), ..sent.form() };
        return Ok(page(visit, StatusCode::BAD_REQUEST, &sent.ref_code, &form).await);
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
            Ok(check_inbox(visit, &sent, passage == Passage::MayWait))
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
/// and holds what was sent where only we can read it: no address is in a log or in another site's sight.
fn check_inbox(visit: Visit<'_>, sent: &SentForm, may_wait: bool) -> Answer {
    visit.redirect(&format!("/join/sent/{}", sent.seal(&visit.app().sent_forms, may_wait, visit.now.time)))
}

/// The page after the form: check your inbox.
pub async fn sent(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    let form = SentForm::unseal(&visit.app().sent_forms, visit.parameter, visit.now.time);
    let Some((form, may_wait)) = form else { return Ok(visit.redirect("/join")) };
    let visit = visit.of_form(form.language.as_deref());
    let frame = Frame { invited_by: ReferralCode::from_pasted(&form.ref_code), ..visit.frame() };
    Ok(visit.page(view::check_inbox(frame, form.email(), &form.fields(), may_wait)))
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
    // In another language, neither whoever invited them nor the campaign is forgotten.
    let path = match (&form.campaign, invited_by) {
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
