//! `/me/sign-in`, `/me/code`, `/me/enter/<token>`: the way into one's own page, by mail.

use hyper::{HeaderMap, Request, StatusCode};

use super::cookie::SiteCookie;
use super::join::FORMS_A_MINUTE;
use super::own_page;
use super::own_page::session::{keep_apart, look_if_any, sign_in};
use super::typed_sign_in::{TypedSignIn, keep, nonce_of};
use super::view::{self, Frame, Outcome, SignInView};
use super::{FORM_BYTES, LINKS_A_MINUTE, PageResult, Visit, field, said};
use crate::domain::secret::session::Nonce;
use crate::domain::sign_in::{SESSION_FOR, SignInCode};
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::limiter::Class;
use crate::mail::Delivery;
use crate::people::own_page::Entered;

/// What is told of a code that was not taken, by the word in the address.
const REFUSED_CODE: [&str; 2] = ["code", "code-form"];

/// Somebody typed their address. What is answered, and when, does not tell whether it is a member's.
pub async fn ask(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let visit = visit.of_own_page();
    let (head, body) = request.into_parts();
    visit.require_own(&head)?;
    visit.spend(Class::Form, FORMS_A_MINUTE).await?;
    let typed = TypedSignIn::read(&body.read(FORM_BYTES).await?);
    let Some(sealed) = typed.seal(visit) else {
        return Ok(form(visit, &head.headers, StatusCode::BAD_REQUEST, &typed));
    };
    let mut nonce = nonce_of(visit, &head.headers);
    if let Ok(email) = typed.address(visit) {
        if matches!(visit.app().mail, Delivery::Off) {
            return Ok(visit.outcome(StatusCode::SERVICE_UNAVAILABLE, Outcome::NoMail));
        }
        let (own_pages, browser) = (&visit.app().own_pages, nonce.as_ref().map(Nonce::as_str));
        let asked = own_pages.ask(&email, browser, typed.campaign, visit.lane(), visit.now.time).await;
        nonce = Some(visit.stored(asked)?);
    }
    let mut answer = visit.redirect("/me/sign-in");
    keep(visit, nonce.as_ref(), &sealed, &mut answer);
    Ok(answer)
}

/// While this browser's code may work, where it is typed; what is wrong with what was typed; else the form, or the page itself.
pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let visit = visit.of_own_page();
    let Some(typed) = TypedSignIn::of_browser(visit, request.headers()) else {
        return own_page::show(visit, request).await;
    };
    if typed.address(visit).is_err() {
        return Ok(form(visit, request.headers(), StatusCode::OK, &typed));
    }
    let words = &visit.words().mistake;
    let refused = said(&request, "refused").and_then(|word| REFUSED_CODE.into_iter().find(|known| *known == word));
    let path = refused.map_or_else(|| visit.path.to_owned(), |word| format!("{}?refused={word}", visit.path));
    let why = refused.map(|word| if word == "code" { &words.code_wrong } else { &words.code_form });
    let frame = Frame { path: &path, ..visit.frame() };
    let mut answer = visit.page(view::sign_in_sent(frame, &typed.email, &typed.ask_again(), why));
    keep_apart(&mut answer);
    Ok(answer)
}

/// The form, with what is wrong with what was typed there.
fn form(visit: Visit<'_>, headers: &HeaderMap, status: StatusCode, typed: &TypedSignIn) -> Answer {
    let mistake = typed.address(visit).err();
    let (error, campaign) = (mistake.as_deref(), typed.campaign.as_ref());
    let view = SignInView { email: &typed.email, error, campaign, wanted: typed.wanted, ..SignInView::default() };
    sign_in(visit, headers, status, view)
}

/// Somebody typed a code.
pub async fn enter_by_code(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let visit = visit.of_own_page();
    let (head, body) = request.into_parts();
    visit.require_own(&head)?;
    visit.spend(Class::Link, LINKS_A_MINUTE).await?;
    let fields = body.read(FORM_BYTES).await?;
    let typed = TypedSignIn::of_browser(visit, &head.headers).unwrap_or_default();
    let Ok(email) = typed.address(visit) else { return Ok(visit.redirect("/me/sign-in?refused=code")) };
    let Some(code) = SignInCode::from_typed(&field(&fields, "code").unwrap_or_default()) else {
        return Ok(visit.redirect("/me/sign-in?refused=code-form"));
    };
    let nonce = nonce_of(visit, &head.headers);
    let browser = nonce.as_ref().map(Nonce::as_str);
    let entered = visit.stored(visit.app().own_pages.enter_by_code(&email, browser, code, visit.now.time).await)?;
    Ok(match entered {
        Some(entered) => signed_in(visit, &typed, &entered),
        None => visit.redirect("/me/sign-in?refused=code"),
    })
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
    Ok(match entered {
        Some(entered) => {
            let typed = TypedSignIn::of_browser(visit, &head.headers).unwrap_or_default();
            signed_in(visit, &typed, &entered)
        }
        None => visit.redirect(visit.path),
    })
}

/// It works no more; another leads to where this one did. Whoever is signed in is led there at once.
async fn used(visit: Visit<'_>, headers: &HeaderMap) -> PageResult {
    let campaign = visit.app().own_pages.campaign_of_link(visit.parameter).await.ok().flatten();
    if look_if_any(visit, headers).await?.is_some() {
        return Ok(visit.redirect(&TypedSignIn::default().place(campaign.as_ref())));
    }
    let again = campaign.map(|slug| format!("/campaigns/{slug}/sign-in"));
    Ok(visit.outcome(StatusCode::GONE, Outcome::LinkUsed { again: again.as_deref().unwrap_or("/me") }))
}

async fn check_link(visit: Visit<'_>) -> PageResult<()> {
    if !visit.app().own_pages.is_link(visit.parameter) {
        return Err(visit.outcome(StatusCode::NOT_FOUND, Outcome::LinkUsed { again: "/me" }).into());
    }
    visit.spend(Class::Link, LINKS_A_MINUTE).await
}

fn signed_in(visit: Visit<'_>, typed: &TypedSignIn, entered: &Entered) -> Answer {
    let mut answer = visit.redirect(&typed.place(entered.campaign.as_ref()));
    SiteCookie::Session.set(&mut answer, visit.site.secure, &entered.cookie, SESSION_FOR);
    SiteCookie::Asked.clear(&mut answer, visit.site.secure);
    answer
}
