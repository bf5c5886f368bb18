//! `/unsubscribe/<token>`: switches off a kind of mail about campaigns, by a button or with one click (RFC 8058).

use hyper::{Request, StatusCode};

use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::limiter::Class;
use crate::site::view::{self, Outcome};
use crate::site::{LINKS_A_MINUTE, ONE_CLICK, PRESS_BYTES, PageResult, Visit, field};

/// Asks, or says that it is off already. Opening it changes nothing: mail scanners do.
pub async fn ask(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    let visit = visit.of_own_page();
    let kind = visit.app().own_pages.unsubscribe_kind(visit.parameter).ok_or_else(|| unknown(visit))?;
    visit.spend(Class::Link, LINKS_A_MINUTE).await?;
    let is_off = visit.stored(visit.app().own_pages.is_unsubscribed(visit.parameter).await)?;
    Ok(visit.page(view::unsubscribe(visit.frame(), kind, is_off)))
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
    // Mail programs take no redirect for an answer (RFC 8058).
    Ok(match field(&fields, ONE_CLICK) {
        Some(_) => visit.page(view::unsubscribe(visit.frame(), kind, true)),
        None => visit.redirect(visit.path),
    })
}

fn unknown(visit: Visit<'_>) -> Answer {
    visit.outcome(StatusCode::NOT_FOUND, Outcome::Unknown)
}
