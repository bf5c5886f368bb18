//! `/dev/mailbox`: mail as a development server keeps it, read back for its pages; nothing at all anywhere else.

use hyper::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use hyper::{HeaderMap, Request};

use super::Visit;
use super::view::{self, MailboxEntry};
use crate::http::request::body::SentBody;
use crate::http::request::host;
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;
use crate::loopback::is_loopback;
use crate::mail::ReadableMail;
use crate::mail::mailbox::MailboxFolder;

pub async fn list(visit: Visit<'_>, request: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    let entries = mailbox(visit, &request)?.list().map_err(|error| {
        let cause = format!("the mailbox folder cannot be read: {error}");
        visit.app().log.problem(Some(visit.id.as_str()), &cause);
        HttpError::Internal
    })?;
    Ok(visit.page(view::mailbox(&visit.app().union, &entries)))
}

pub async fn show(visit: Visit<'_>, request: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    let mail = mailbox(visit, &request)?.open(visit.parameter).ok_or_else(nothing)?;
    let html_path = format!("/dev/mailbox/{}/html", visit.parameter);
    Ok(visit.page(view::opened_mail(&visit.app().union, &mail, &html_path)))
}

pub async fn show_html(visit: Visit<'_>, request: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
    let mail = mailbox(visit, &request)?.open(visit.parameter).ok_or_else(nothing)?;
    let mut answer = visit.page(mail.html);
    // Mail programs know only styles in the text itself.
    answer.set(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; form-action 'none'"),
    );
    Ok(answer)
}

fn nothing() -> HttpError {
    HttpError::NotFound("There is nothing at this path.".to_owned())
}

fn mailbox<'a>(visit: Visit<'a>, request: &Request<SentBody<'_>>) -> Result<&'a DevMailbox, HttpError> {
    let here = is_local(visit, host::of(request.uri(), request.headers()), request.headers());
    visit.site.mailbox.as_ref().filter(|_| here).ok_or_else(nothing)
}

/// Whether a request comes straight from this machine's own browser: the connection and the name it asked for are
/// loopback, and no proxy is between.
fn is_local(visit: Visit<'_>, host: &str, headers: &HeaderMap) -> bool {
    let proxied = ["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"];
    let direct = !proxied.iter().any(|name| headers.contains_key(*name));
    direct && visit.peer.to_canonical().is_loopback() && is_loopback(host)
}

/// The folder that mail is written to, read back.
#[derive(Debug)]
pub struct DevMailbox(pub MailboxFolder);

impl DevMailbox {
    fn open(&self, name: &str) -> Option<ReadableMail> {
        self.0.read(name)
    }

    fn list(&self) -> std::io::Result<Vec<MailboxEntry>> {
        let entries = self.0.names()?.into_iter().filter_map(|name| {
            let ReadableMail { to, subject, date, .. } = self.open(&name)?;
            Some(MailboxEntry { name, to, subject, date })
        });
        Ok(entries.collect())
    }
}
