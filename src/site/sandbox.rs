//! The sandbox's own pages: a partner's inbox, and a word to whoever looks for a page that it does not have. What its mail leads
//! to, confirming and declining, are the real pages on its records.

use hyper::{Request, StatusCode};

use super::dev_mailbox::{html_part, nothing};
use super::view::{self, Outcome};
use super::{LINKS_A_MINUTE, PageResult, Visit};
use crate::domain::partner::name::PartnerId;
use crate::http::request::body::SentBody;
use crate::limiter::Class;
use crate::sandbox::{Inbox, MOST_LISTED};

/// Where its pages are, beside the real ones.
pub(super) const PREFIX: &str = "/sandbox";

/// Links of the real pages, which lead a tester nowhere but to a word about the sandbox.
const REAL: [&str; 6] = ["/join", "/me", "/campaigns", "/about", "/privacy", "/terms"];

/// Has the links of a page stay in the sandbox. Nothing that a caller wrote can look like one: quotes in it are escaped.
pub(super) fn keep_inside(html: &str) -> String {
    REAL.iter().fold(html.to_owned(), |html, path| {
        html.replace(&format!("href=\"{path}\""), &format!("href=\"{PREFIX}{path}\""))
    })
}

/// What a referral link of the sandbox leads to: it has no form.
pub async fn join(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    Ok(visit.outcome(StatusCode::OK, Outcome::NotInSandbox))
}

/// Any other page of the real ones, by its name in the sandbox.
pub async fn elsewhere(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    Ok(visit.outcome(StatusCode::NOT_FOUND, Outcome::NotInSandbox))
}

/// A partner's inbox, by the token that is theirs.
pub async fn inbox(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    let token = visit.parameter;
    let (inbox, (partner, name)) = open(visit, token).await?;
    let listed = visit.stored(inbox.list(partner, None, MOST_LISTED).await)?;
    Ok(visit.page(view::inbox(visit.frame(), &name, MOST_LISTED, &listed.mails, token)))
}

/// The HTML part of one of its mails: `<token>-<id>`.
pub async fn mail_html(visit: Visit<'_>, _: Request<SentBody<'_>>) -> PageResult {
    let (token, id) = visit.parameter.rsplit_once('-').ok_or_else(nothing)?;
    let id = id.parse().map_err(|_| nothing())?;
    let (inbox, (partner, _)) = open(visit, token).await?;
    let mail = visit.stored(inbox.find(partner, id).await)?;
    Ok(html_part(mail.ok_or_else(nothing)?.html))
}

/// The inbox that a token opens, and whose it is; or a page that says why not.
async fn open<'a>(visit: Visit<'a>, token: &str) -> PageResult<(&'a Inbox, (PartnerId, String))> {
    let inbox = visit.app().inbox.as_ref().ok_or_else(nothing)?;
    visit.spend(Class::Link, LINKS_A_MINUTE).await?;
    let partner = visit.stored(inbox.partner_of(token, visit.now.time).await)?;
    Ok((inbox, partner.ok_or_else(nothing)?))
}
