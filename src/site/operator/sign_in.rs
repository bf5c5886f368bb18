//! `/operator/sign-in`, `/operator/enter/<token>`, `/operator/sign-out`: the way in, by a link that is mailed or that a command printed,
//! and the way out.

use askama::Template;
use hyper::{Request, StatusCode};

use super::frame::{MessagePage, OperatorFrame, OperatorSection, render};
use super::session::{OperatorVisit, access, outer_frame, outside, require_own, sign_in_page};
use crate::domain::email::EmailAddress;
use crate::domain::operator::{LinkState, OperatorLink};
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::limiter::Class;
use crate::membership::StoreError;
use crate::site::cookie::SiteCookie;
use crate::site::own_page::session::keep_apart;
use crate::site::{LINKS_A_MINUTE, PRESS_BYTES, PageResult, Visit, field};

#[derive(Template)]
#[template(path = "operator/enter.html")]
struct OperatorEnterPage<'a> {
    frame: OperatorFrame<'a>,
    name: &'a str,
    path: &'a str,
}

/// Mails a link to whoever typed their address, if it is an operator's. No limit is drawn on that others share: a mail goes to an operator
/// once in a while, whoever asks, and the link of the mail before it works for longer.
pub async fn ask(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let access = access(visit)?;
    let (head, body) = request.into_parts();
    require_own(visit, &head)?;
    let fields = body.read(PRESS_BYTES).await?;
    let typed = field(&fields, "email").unwrap_or_default().trim().to_owned();
    let again = |status, problem| Ok(sign_in_page(visit, access, "", (&typed, Some(problem))).answer(status));
    if !access.mails_links() {
        return again(StatusCode::SERVICE_UNAVAILABLE, "This service mails no links.");
    }
    let Ok(email) = EmailAddress::parse_any_length(&typed) else {
        return again(StatusCode::BAD_REQUEST, "Type your whole email address, such as ana@union.example.");
    };
    let asked = access.ask_for_link(&email, &visit.app().log, visit.now.time).await;
    asked.map_err(|error| not_now(visit, &error))?;
    let says = [
        "If an operator has this address, a link is on its way. It works for 15 minutes, once.".to_owned(),
        "A link is mailed at most every 5 minutes. If you asked for one just before, use that one.".to_owned(),
        "No mail? Make a link on the machine that runs the service:".to_owned(),
    ];
    let (frame, command, back) = (outer_frame(visit), Some("unionhall operator link NAME"), None);
    let page = MessagePage { frame, title: "Check your email", says: &says, command, back };
    let mut answer = Answer::html(StatusCode::OK, render(&page));
    keep_apart(&mut answer);
    Ok(answer)
}

/// A link: whom it signs in, and a button.
pub async fn show_link(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    let access = access(visit)?;
    let link = access.find_link(visit.parameter, visit.now.time).await.map_err(|error| not_now(visit, &error))?;
    match link {
        Some(OperatorLink { name, state: LinkState::Works }) => {
            let path = format!("/operator/enter/{}", visit.parameter);
            let page = OperatorEnterPage { frame: outer_frame(visit), name: name.as_str(), path: &path };
            let mut answer = Answer::html(StatusCode::OK, render(&page));
            keep_apart(&mut answer);
            Ok(answer)
        }
        other => over(visit, other.as_ref()).await,
    }
}

/// The button was pressed, on our own page: a page elsewhere must not sign its reader in as somebody else (login CSRF).
pub async fn enter(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let access = access(visit)?;
    let (head, _) = request.into_parts();
    require_own(visit, &head)?;
    let entered = access.enter(visit.parameter, visit.now.time).await.map_err(|error| not_now(visit, &error))?;
    match entered {
        Ok((cookie, lasts)) => {
            let mut answer = visit.redirect("/operator");
            SiteCookie::Operator.set(&mut answer, visit.site.secure, &cookie, lasts);
            Ok(answer)
        }
        Err(link) => over(visit, link.as_ref()).await,
    }
}

/// Only a link that does not work draws on what the network shares: others there cannot lock an operator out.
async fn over(visit: Visit<'_>, link: Option<&OperatorLink>) -> PageResult {
    visit.spend(Class::Link, LINKS_A_MINUTE).await?;
    let (status, title, says, name) = match link {
        Some(OperatorLink { name, state: LinkState::Expired }) => (
            StatusCode::GONE,
            "This link has expired",
            "A link works for 15 minutes. This command makes the next:",
            name.as_str(),
        ),
        Some(OperatorLink { name, .. }) => {
            (StatusCode::GONE, "This link was used", "A link works once. This command makes the next:", name.as_str())
        }
        None => (
            StatusCode::NOT_FOUND,
            "This link does not work",
            "A newer link was made since, or a part of it is missing. This command makes a new one:",
            "NAME",
        ),
    };
    let (says, command) = ([says.to_owned()], format!("unionhall operator link {name}"));
    let back = access(visit)?.mails_links().then_some(("/operator", "Sign in by email"));
    let page = MessagePage { frame: outer_frame(visit), title, says: &says, command: Some(&command), back };
    let mut answer = Answer::html(status, render(&page));
    keep_apart(&mut answer);
    Ok(answer)
}

fn not_now(visit: Visit<'_>, error: &StoreError) -> Answer {
    visit.report(&error.to_string());
    let says =
        format!("The records cannot be used right now: {error}. Try the link again in a moment, or see what is wrong:");
    outside(visit, StatusCode::SERVICE_UNAVAILABLE, "Not now", &says, "unionhall doctor")
}

pub async fn sign_out(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let (found, _) = OperatorVisit::take_of_anyone(visit, request, OperatorSection::Overview).await?;
    found.access.sign_out(&found.who).await.map_err(|error| not_now(visit, &error))?;
    let command = format!("unionhall operator link {}", found.who.name);
    let (title, says) = match found.who.has_session() {
        true => ("Signed out", "Copies of the cookie no longer work, either. This command makes the next link:"),
        false => (
            "Sign out at the proxy",
            "A proxy in front of this page signs you in. Without it, this command makes a link:",
        ),
    };
    let mut answer = outside(visit, StatusCode::OK, title, says, &command);
    SiteCookie::Operator.clear(&mut answer, visit.site.secure);
    Ok(answer)
}

/// Whoever comes back to the address of a form finds the overview.
pub async fn home(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    access(visit)?;
    Ok(visit.redirect("/operator"))
}
