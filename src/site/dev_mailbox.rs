//! `/dev/mailbox`: mail as a development server keeps it, read back for its pages; nothing at all anywhere else.
//!
//! A proxy on this machine that adds no header looks like this machine's own browser, so that alone opens nothing: the start
//! prints a link with a key, which leaves a cookie.

use hyper::header::{CONTENT_SECURITY_POLICY, COOKIE, HeaderValue, LOCATION, SET_COOKIE};
use hyper::{HeaderMap, Request, StatusCode};
use subtle::ConstantTimeEq;

use super::view;
use super::{PageResult, Visit};
use crate::http::request::body::SentBody;
use crate::http::request::host;
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;
use crate::loopback::is_loopback;
use crate::mail::ReadableMail;
use crate::mail::mailbox::MailboxFolder;

pub async fn list(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    if let Some(opened) = unlock(visit, &request) {
        return Ok(opened);
    }
    let entries = mailbox(visit, &request)?.list().map_err(|error| {
        let cause = format!("the mailbox folder cannot be read: {error}");
        visit.app().log.problem(Some(visit.id.as_str()), &cause);
        HttpError::Internal
    })?;
    Ok(visit.page(view::mailbox(visit.frame(), &entries)))
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let mail = mailbox(visit, &request)?.folder.read(visit.parameter).ok_or_else(nothing)?;
    let html_path = format!("/dev/mailbox/{}/html", visit.parameter);
    Ok(visit.page(view::opened_mail(visit.frame(), &mail, &html_path)))
}

pub async fn show_html(visit: Visit<'_>, request: Request<SentBody<'_>>) -> PageResult {
    let mail = mailbox(visit, &request)?.folder.read(visit.parameter).ok_or_else(nothing)?;
    Ok(html_part(mail.html))
}

/// The HTML part of a mail, as a mail program would show it: it loads nothing, sends nothing and runs nothing.
pub(super) fn html_part(html: String) -> Answer {
    let mut answer = Answer::html(StatusCode::OK, html);
    // Mail programs know only styles in the text itself.
    answer.set(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    );
    answer
}

pub(super) fn nothing() -> HttpError {
    HttpError::NotFound("There is nothing at this path.".to_owned())
}

fn mailbox<'a>(visit: Visit<'a>, request: &Request<SentBody<'_>>) -> Result<&'a DevMailbox, HttpError> {
    let mailbox = here(visit, request).ok_or_else(nothing)?;
    let cookies = request.headers().get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut keys = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().strip_prefix("mailbox="));
    match keys.any(|key| mailbox.opens(key)) {
        true => Ok(mailbox),
        false => Err(HttpError::NotFound("Open the mailbox by the link that `unionhall serve` printed.".to_owned())),
    }
}

/// The link that the start printed: it leaves a cookie, and the key out of the address.
fn unlock(visit: Visit<'_>, request: &Request<SentBody<'_>>) -> Option<Answer> {
    let mailbox = here(visit, request)?;
    let query = form_urlencoded::parse(request.uri().query()?.as_bytes());
    let (_, key) = query.into_iter().find(|(name, key)| name == "key" && mailbox.opens(key))?;
    let mut answer = Answer::empty(StatusCode::SEE_OTHER);
    answer.set(LOCATION, HeaderValue::from_static("/dev/mailbox"));
    let cookie = format!("mailbox={key}; Path=/dev/mailbox; HttpOnly; SameSite=Strict");
    answer.set(SET_COOKIE, HeaderValue::from_str(&cookie).ok()?);
    Some(answer)
}

fn here<'a>(visit: Visit<'a>, request: &Request<SentBody<'_>>) -> Option<&'a DevMailbox> {
    let here = is_local(visit, host::of(request.uri(), request.headers()), request.headers());
    visit.site.mailbox.as_ref().filter(|_| here)
}

/// Whether a request comes straight from this machine's own browser: the connection and the name it asked for are
/// loopback, and no proxy is between.
fn is_local(visit: Visit<'_>, host: &str, headers: &HeaderMap) -> bool {
    let proxied = ["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"];
    let direct = !proxied.iter().any(|name| headers.contains_key(*name));
    direct && visit.peer.to_canonical().is_loopback() && is_loopback(host)
}

/// The folder that mail is written to, read back.
pub struct DevMailbox {
    pub folder: MailboxFolder,
    pub key: String,
}

impl DevMailbox {
    fn opens(&self, key: &str) -> bool {
        bool::from(self.key.as_bytes().ct_eq(key.as_bytes()))
    }

    fn list(&self) -> std::io::Result<Vec<(String, ReadableMail)>> {
        let entries = self.folder.names()?.into_iter();
        Ok(entries.filter_map(|name| self.folder.read(&name).map(|mail| (name, mail))).collect())
    }
}
