//! `/not-me/<token>`: "this wasn't me", taking that back, what is not to be sent; and unsubscribing with one click (RFC 8058).

use std::sync::Arc;

use hyper::Request;

use super::view::{self, DeclineState, DeclineView, Welcome};
use super::{PRESS_BYTES, Visit, field};
use crate::domain::secret::token::Purpose;
use crate::domain::sign_up::{Confirmation, DecidedHow, Declining, SeenPage, SignUpState, Silence, SilenceChange};
use crate::domain::time::Timestamp;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;
use crate::membership::LinkedSignUp;

/// Asks whether the sign-up is to be withdrawn, or says what became of it.
pub async fn show(visit: Visit<'_>, _: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    match visit.refuse_link(Purpose::Decline).await {
        Some(refused) => Ok(refused),
        None => Ok(page(visit, false).await),
    }
}

pub async fn press(visit: Visit<'_>, request: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    if let Some(refused) = visit.refuse_link(Purpose::Decline).await {
        return Ok(refused);
    }
    let body = request.into_body().read(PRESS_BYTES).await?;
    let visit = visit.of_form(field(&body, "lang").as_deref());
    let is = |name: &str, value: &str| field(&body, name).as_deref() == Some(value);
    let wanted =
        Silence { again: is("again", "stop"), partner: is("partner", "stop"), mailbox: is("mailbox", "silence") };
    let shown = Silence {
        again: is("was-again", "stop"),
        partner: is("was-partner", "stop"),
        mailbox: is("was-mailbox", "silence"),
    };
    let silence = SilenceChange::between(shown, wanted);
    match field(&body, "do").as_deref() {
        Some("take-back") => {
            let seen = field(&body, "seen").and_then(|text| text.parse().ok()).map(Timestamp::from_millis);
            return Ok(take_back(visit, field(&body, "notice").as_deref(), seen).await);
        }
        Some("choose") => {
            return Ok(match visit.app().membership.choose_silence(visit.parameter, silence, visit.now.time).await {
                Ok(true) => page(visit, true).await,
                Ok(false) => visit.unknown(),
                Err(error) => visit.problem(error),
            });
        }
        _ => {}
    }
    let one_click = field(&body, "List-Unsubscribe").is_some();
    let how = if one_click { DecidedHow::OneClick } else { DecidedHow::Button };
    // Whoever posts without our form says nothing of mail.
    let silence = is("do", "withdraw").then_some(silence);
    Ok(match visit.app().membership.decline(visit.parameter, how, silence, visit.now.time).await {
        Ok(Declining::Declined | Declining::Expired | Declining::Confirmed) => page(visit, false).await,
        Ok(Declining::Unknown) => visit.unknown(),
        Err(error) => visit.problem(error),
    })
}

/// It was them after all. As for confirming, they must have seen the answers, and read the words that are shown now.
async fn take_back(visit: Visit<'_>, notice: Option<&str>, answers: Option<Timestamp>) -> Answer {
    let notice = notice.and_then(|hash| visit.app().union.notices.find(hash));
    let (Some(notice), Some(_)) = (notice, answers) else { return page(visit, false).await };
    let language = Some(visit.reader.language);
    let seen = SeenPage { answers, notice: Some(Arc::clone(&notice.hash)), language };
    let (membership, now) = (&visit.app().membership, visit.now.time);
    match membership.take_back(visit.parameter, seen, now).await {
        Ok(done @ (Confirmation::Joined | Confirmation::AlreadyMember)) => {
            match membership.find(Purpose::Decline, visit.parameter, now).await {
                Ok(Some(found)) => {
                    let joined = done == Confirmation::Joined;
                    let welcome = if joined { Welcome::FirstTime } else { Welcome::Member };
                    super::confirm::share(visit, &found, welcome).await
                }
                Ok(None) => visit.unknown(),
                Err(error) => visit.problem(error),
            }
        }
        // Told as they would be to somebody who only looks.
        Ok(Confirmation::Expired | Confirmation::Declined | Confirmation::Changed) => page(visit, false).await,
        Ok(Confirmation::Unknown) => visit.unknown(),
        Err(error) => visit.problem(error),
    }
}

async fn page(visit: Visit<'_>, saved: bool) -> Answer {
    let membership = &visit.app().membership;
    let found = match membership.find(Purpose::Decline, visit.parameter, visit.now.time).await {
        Ok(Some(found)) => found,
        Ok(None) => return visit.unknown(),
        Err(error) => return visit.problem(error),
    };
    let visit = visit.who_chose(found.record.language);
    let again_path = visit.place(format!("/confirm/{}", membership.confirm_token(&found)));
    visit.page(shown(visit, &found, &again_path, saved))
}

fn shown(visit: Visit<'_>, found: &LinkedSignUp, again_path: &str, saved: bool) -> String {
    let (record, masked) = (&found.record, found.record.email.masked());
    let facts = super::confirm::SignUpFacts::of(visit, found);
    let state = match record.state {
        SignUpState::Pending => DeclineState::Asks,
        SignUpState::Declined => DeclineState::Withdrawn,
        SignUpState::Confirmed => DeclineState::Confirmed,
        SignUpState::Expired => DeclineState::Lapsed,
    };
    view::decline(
        visit.frame(),
        &DeclineView {
            state,
            is_member: record.is_member,
            masked_address: &masked,
            facts: facts.view(again_path, visit.path),
            partner: record.partner.as_deref(),
            path: visit.path,
            again_path,
            can_take_back: record.can_take_back,
            no_again: record.silence.again,
            no_partner: record.silence.partner,
            silent_until: record.silent_until,
            saved,
        },
    )
}
