//! `/me/sign-in`, `/me/code`, `/me/enter/<token>`: the way into one's own page, by mail.

use hyper::{HeaderMap, Request, StatusCode};

use super::cookie::SiteCookie;
use super::join::FORMS_A_MINUTE;
use super::join_form::email_mistake;
use super::own_page::session::look_if_any;
use super::view::{self, Outcome, SignInView};
use super::{FORM_BYTES, LINKS_A_MINUTE, PageResult, Visit, field};
use crate::domain::campaign::CampaignSlug;
use crate::domain::email::EmailAddress;
use crate::domain::language::Phrase;
use crate::domain::sign_in::{SESSION_FOR, SIGN_IN_FOR, SignInCode};
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::limiter::Class;
use crate::mail::Delivery;
use crate::people::own_page::Entered;

/// Somebody typed their address. What is answered, and when, does not tell whether it is a member's.
pub async fn ask(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let visit = visit.of_own_page();
    let (head, body) = request.into_parts();
    visit.require_own(&head)?;
    visit.spend(Class::Form, FORMS_A_MINUTE).await?;
    let fields = body.read(FORM_BYTES).await?;
    let (frame, words) = (visit.frame(), visit.words());
    let typed = field(&fields, "email").unwrap_or_default().trim().to_owned();
    let campaign = campaign_of(&fields);
    let email = match EmailAddress::parse_any_length(&typed) {
        Ok(email) => email,
        Err(why) => {
            let why = if typed.is_empty() {
                words.sign_in.email_empty.to_string()
            } else {
                email_mistake(words, why, &typed)
            };
            let view = SignInView { email: &typed, error: Some(&why), campaign: campaign.as_ref(), note: None };
            return Ok(Answer::html(StatusCode::BAD_REQUEST, view::sign_in(frame, view)));
        }
    };
    if matches!(visit.app().mail, Delivery::Off) {
        return Ok(visit.outcome(StatusCode::SERVICE_UNAVAILABLE, Outcome::NoMail));
    }
    let secure = visit.site.secure;
    let browser = SiteCookie::Asked.read(&head.headers, secure);
    let back = campaign.clone();
    let asked = visit.app().own_pages.ask(&email, browser, campaign, visit.lane(), visit.now.time).await;
    let nonce = visit.stored(asked)?;
    let mut answer = visit.page(view::sign_in_sent(frame, &typed, back.as_ref(), None));
    SiteCookie::Asked.set(&mut answer, secure, nonce.as_str(), SIGN_IN_FOR);
    Ok(answer)
}

/// The campaign that they get back to.
fn campaign_of(fields: &[u8]) -> Option<CampaignSlug> {
    field(fields, "campaign").and_then(|slug| slug.parse().ok())
}

/// Somebody typed a code.
pub async fn enter_by_code(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let visit = visit.of_own_page();
    let (head, body) = request.into_parts();
    visit.require_own(&head)?;
    visit.spend(Class::Link, LINKS_A_MINUTE).await?;
    let fields = body.read(FORM_BYTES).await?;
    let (frame, words) = (visit.frame(), &visit.words().mistake);
    let typed = field(&fields, "email").unwrap_or_default().trim().to_owned();
    let campaign = campaign_of(&fields);
    let again = |why: &Phrase| {
        let sent = view::sign_in_sent(frame, &typed, campaign.as_ref(), Some(why.as_str()));
        Answer::html(StatusCode::BAD_REQUEST, sent)
    };
    let Ok(email) = EmailAddress::parse_any_length(&typed) else { return Ok(visit.redirect("/me")) };
    let Some(code) = SignInCode::from_typed(&field(&fields, "code").unwrap_or_default()) else {
        return Ok(again(&words.code_form));
    };
    let browser = SiteCookie::Asked.read(&head.headers, visit.site.secure);
    let entered = visit.stored(visit.app().own_pages.enter_by_code(&email, browser, code, visit.now.time).await)?;
    Ok(entered.map_or_else(|| again(&words.code_wrong), |entered| signed_in(visit, &entered)))
}

/// A mailed link: whom it signs in, and a button.
pub async fn show_link(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let visit = visit.of_own_page();
    check_link(visit).await?;
    let email = visit.stored(visit.app().own_pages.find_link(visit.parameter, visit.now.time).await)?;
    let Some(email) = email else { return used(visit, request.headers()).await };
    let path = format!("/me/enter/{}", visit.parameter);
    Ok(visit.page(view::enter(visit.frame(), &email.masked(), &path)))
}

/// The button was pressed, on our own page: a page elsewhere must not sign its reader in as somebody else (login CSRF).
pub async fn enter_by_link(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let visit = visit.of_own_page();
    let (head, _) = request.into_parts();
    visit.require_own(&head)?;
    check_link(visit).await?;
    let entered = visit.stored(visit.app().own_pages.enter_by_link(visit.parameter, visit.now.time).await)?;
    match entered {
        Some(entered) => Ok(signed_in(visit, &entered)),
        None => used(visit, &head.headers).await,
    }
}

/// It works no more; another leads to where this one did. Whoever is signed in is led there at once.
async fn used(visit: Visit<'_>, headers: &HeaderMap) -> PageResult {
    let campaign = visit.app().own_pages.campaign_of_link(visit.parameter).await.ok().flatten();
    if look_if_any(visit, headers).await?.is_some() {
        return Ok(visit.redirect(&place(campaign.as_ref())));
    }
    let again = campaign.map(|slug| format!("/campaigns/{slug}/sign-in"));
    Ok(visit.outcome(StatusCode::GONE, Outcome::LinkUsed { again: again.as_deref().unwrap_or("/me") }))
}

/// Where a sign-in leads to: the campaign that they came from, or their own page.
fn place(campaign: Option<&CampaignSlug>) -> String {
    campaign.map_or_else(|| "/me".to_owned(), |slug| format!("/campaigns/{slug}"))
}

async fn check_link(visit: Visit<'_>) -> PageResult<()> {
    if !visit.app().own_pages.is_link(visit.parameter) {
        return Err(visit.outcome(StatusCode::NOT_FOUND, Outcome::LinkUsed { again: "/me" }).into());
    }
    visit.spend(Class::Link, LINKS_A_MINUTE).await
}

fn signed_in(visit: Visit<'_>, entered: &Entered) -> Answer {
    let mut answer = visit.redirect(&place(entered.campaign.as_ref()));
    SiteCookie::Session.set(&mut answer, visit.site.secure, &entered.cookie, SESSION_FOR);
    SiteCookie::Asked.clear(&mut answer, visit.site.secure);
    answer
}
