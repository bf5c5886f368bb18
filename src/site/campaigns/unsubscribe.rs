//! `/unsubscribe/<token>`: switches off a kind of mail about campaigns, by a button or with one click (RFC 8058).

use hyper::{Request, StatusCode};

use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::limiter::Class;
use crate::site::view::{self, Outcome};
use crate::site::{LINKS_A_MINUTE, PRESS_BYTES, PageResult, Visit, field};

/// Opening it changes nothing: mail scanners do.
pub async fn ask(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    let visit = visit.of_own_page();
    let kind = visit.app().own_pages.unsubscribe_kind(visit.parameter).ok_or_else(|| unknown(visit))?;
    visit.spend(Class::Link, LINKS_A_MINUTE).await?;
    Ok(visit.page(view::unsubscribe(visit.frame(), kind, false)))
}

/// From our page or from a mail program, which sends no origin of ours: the token is proof enough.
pub async fn switch_off(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let visit = visit.of_own_page();
    visit.app().own_pages.unsubscribe_kind(visit.parameter).ok_or_else(|| unknown(visit))?;
    visit.spend(Class::Link, LINKS_A_MINUTE).await?;
    let fields = request.into_body().read(PRESS_BYTES).await?;
    let visit = visit.of_form(field(&fields, "lang").as_deref());
    let switched = visit.stored(visit.app().own_pages.unsubscribe(visit.parameter).await)?;
    let kind = switched.ok_or_else(|| unknown(visit))?;
    Ok(visit.page(view::unsubscribe(visit.frame(), kind, true)))
}

fn unknown(visit: Visit<'_>) -> Answer {
    visit.outcome(StatusCode::NOT_FOUND, Outcome::Unknown)
}
