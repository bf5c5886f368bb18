//! `/not-me/<token>`: "this wasn't me", and unsubscribing with one click (RFC 8058).

use hyper::{Request, StatusCode};

use super::view::{self, Outcome};
use super::{PRESS_BYTES, Visit};
use crate::domain::secret::token::Purpose;
use crate::domain::sign_up::{DecidedHow, Declining};
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;

/// Asks whether the sign-up is to be withdrawn.
pub async fn show(visit: Visit<'_>, _: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    if let Some(refused) = visit.refuse_link(Purpose::Decline).await {
        return Ok(refused);
    }
    Ok(match visit.app().membership.find(Purpose::Decline, visit.parameter, visit.now.time).await {
        Ok(Some(found)) => visit.page(view::decline(
            &visit.app().union,
            &found.record.email.masked(),
            found.record.partner.as_deref(),
            &format!("/not-me/{}", visit.parameter),
        )),
        Ok(None) => visit.unknown(),
        Err(error) => visit.problem(error),
    })
}

pub async fn press(visit: Visit<'_>, request: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    if let Some(refused) = visit.refuse_link(Purpose::Decline).await {
        return Ok(refused);
    }
    let body = request.into_body().read(PRESS_BYTES).await?;
    let one_click = form_urlencoded::parse(&body).any(|(name, _)| name == "List-Unsubscribe");
    let how = if one_click { DecidedHow::OneClick } else { DecidedHow::Button };
    Ok(match visit.app().membership.decline(visit.parameter, how, visit.now.time).await {
        Ok(Declining::Declined | Declining::Expired) => visit.page(view::declined(&visit.app().union)),
        Ok(Declining::Confirmed) => visit.outcome(StatusCode::OK, Outcome::AlreadyConfirmed),
        Ok(Declining::Unknown) => visit.unknown(),
        Err(error) => visit.problem(error),
    })
}
