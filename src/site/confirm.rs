//! `/confirm/<token>`: what is being confirmed with one button (double opt-in), and the person's own link once they are in.

use std::sync::Arc;

use hyper::header::CONTENT_SECURITY_POLICY;
use hyper::{Request, StatusCode};

use super::view::{self, Outcome};
use super::{PRESS_BYTES, Visit, WITH_OUR_SCRIPT};
use crate::domain::secret::token::Purpose;
use crate::domain::sign_up::{Confirmation, SeenPage, SignUpState};
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;
use crate::membership::LinkedSignUp;

pub async fn show(visit: Visit<'_>, _: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    match visit.refuse_link(Purpose::Confirm).await {
        Some(refused) => Ok(refused),
        None => Ok(page(visit, Shown::AsAsked).await),
    }
}

/// The person pressed the button.
pub async fn press(visit: Visit<'_>, request: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    if let Some(refused) = visit.refuse_link(Purpose::Confirm).await {
        return Ok(refused);
    }
    let body = request.into_body().read(PRESS_BYTES).await?;
    let sent = |wanted: &str| form_urlencoded::parse(&body).find(|(name, _)| name == wanted).map(|(_, text)| text);
    // Other words than those that are shown now: whoever pressed the button has not read these.
    let (notice, current) = (sent("notice"), &visit.app().union.notice.hash);
    if notice.as_ref().is_some_and(|notice| **notice != **current) {
        return Ok(page(visit, Shown::Changed).await);
    }
    let seen = SeenPage {
        answers: sent("seen").and_then(|text| text.parse().ok()).map(Timestamp::from_millis),
        notice: notice.map(|_| Arc::clone(current)),
    };
    Ok(match visit.app().membership.confirm(visit.parameter, seen, visit.now.time).await {
        Ok(Confirmation::Joined) => page(visit, Shown::Joined).await,
        Ok(Confirmation::Changed) => page(visit, Shown::Changed).await,
        // Told as they would be to somebody who only looks.
        Ok(Confirmation::AlreadyMember | Confirmation::Expired | Confirmation::Declined | Confirmation::Unknown) => {
            page(visit, Shown::AsAsked).await
        }
        Err(error) => visit.problem(error),
    })
}

/// Why the page is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    AsAsked,
    /// It is not what the person saw before they pressed.
    Changed,
    /// They are a member since this very moment.
    Joined,
}

async fn page(visit: Visit<'_>, shown: Shown) -> Answer {
    let found = match visit.app().membership.find(Purpose::Confirm, visit.parameter, visit.now.time).await {
        Ok(Some(found)) => found,
        Ok(None) => return visit.unknown(),
        Err(error) => return visit.problem(error),
    };
    match found.record.state {
        SignUpState::Confirmed => share(visit, &found, shown == Shown::Joined).await,
        SignUpState::Expired => visit.outcome(StatusCode::GONE, Outcome::Expired),
        SignUpState::Declined => visit.outcome(StatusCode::GONE, Outcome::WasDeclined),
        SignUpState::Pending => ask(visit, &found, shown == Shown::Changed),
    }
}

/// What is being confirmed, and one button.
fn ask(visit: Visit<'_>, found: &LinkedSignUp, changed: bool) -> Answer {
    let (union, record) = (&visit.app().union, &found.record);
    let listed = union.catalog.listed().iter().filter(|(category, _)| record.categories.contains(*category));
    let chosen: Vec<_> = listed.map(|(category, savings)| (category.label(), *savings)).collect();
    visit.page(view::confirm(
        union,
        &view::ConfirmView {
            masked_address: &record.email.masked(),
            partner: record.partner.as_deref(),
            us_state: record.us_state.map(UsState::name),
            categories: &chosen,
            total: union.catalog.savings_of(record.categories),
            comments: &record.comments,
            referrer: record.referrer.as_ref().map(|code| code.as_str()),
            seen: record.updated_at.as_millis(),
            changed,
            confirm_path: &format!("/confirm/{}", visit.parameter),
            decline_path: &format!("/not-me/{}", visit.app().membership.decline_token(found)),
        },
    ))
}

/// The person's own link to share, once they are in.
async fn share(visit: Visit<'_>, found: &LinkedSignUp, first_time: bool) -> Answer {
    let union = &visit.app().union;
    let link = found.record.code.link(&union.join_site);
    let count = visit.member_count().await;
    let mut answer = visit.page(view::share(union, first_time, &link, count));
    // The button that copies the link is the only thing here that is done by a script.
    answer.set(CONTENT_SECURITY_POLICY, WITH_OUR_SCRIPT);
    answer
}
