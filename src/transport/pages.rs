//! The pages that people see: joining, confirming, "this wasn't me", and the mailbox of a development server.
//!
//! A GET never changes anything: mail scanners open links, and some run scripts. Only a POST acts.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue, ORIGIN, RETRY_AFTER};
use hyper::{HeaderMap, Method, Request, StatusCode};

use super::answer::Answer;
use super::error::HttpError;
use super::join_form::Sent;
use super::request_id::RequestId;
use super::view::{self, JoinForm, Outcome};
use super::{Edge, body, host};
use crate::clock::Moment;
use crate::domain::referral::ReferralCode;
use crate::domain::signup::{Confirmation, Declining, SignUpId, SignUpState};
use crate::domain::time::Timestamp;
use crate::domain::token::Purpose;
use crate::domain::us_state::UsState;
use crate::error::Error;
use crate::limiter::{Bucket, Class, Subject};
use crate::loopback::is_loopback;
use crate::operations::sign_up_user::sign_up;

/// Forms sent a minute from one address: far more than a family, far fewer than a script.
const FORMS_A_MINUTE: u32 = 10;

/// A page by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page<'p> {
    /// The page to join on, with the code of whoever referred the reader.
    Join(Option<&'p str>),
    Confirm(&'p str),
    NotMe(&'p str),
    Mailbox,
    Letter(&'p str),
    LetterHtml(&'p str),
}

impl<'p> Page<'p> {
    pub(super) fn find(path: &'p str) -> Option<Self> {
        match path {
            "/join" => Some(Self::Join(None)),
            "/dev/mailbox" => Some(Self::Mailbox),
            _ => {
                let after = |start: &str| path.strip_prefix(start).filter(|rest| !rest.contains('/'));
                let letter = |rest: &'p str| match rest.strip_suffix("/html") {
                    Some(name) => Self::LetterHtml(name),
                    None => Self::Letter(rest),
                };
                after("/joinus")
                    .map(|code| Self::Join(Some(code)))
                    .or_else(|| after("/confirm/").map(Self::Confirm))
                    .or_else(|| after("/not-me/").map(Self::NotMe))
                    .or_else(|| path.strip_prefix("/dev/mailbox/").map(letter))
            }
        }
    }

    /// How the log calls it: without the token or the code.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Join(None) => "/join",
            Self::Join(Some(_)) => "/joinus{code}",
            Self::Confirm(_) => "/confirm/{token}",
            Self::NotMe(_) => "/not-me/{token}",
            Self::Mailbox => "/dev/mailbox",
            Self::Letter(_) => "/dev/mailbox/{name}",
            Self::LetterHtml(_) => "/dev/mailbox/{name}/html",
        }
    }

    /// One of each.
    pub(super) const ALL: [Self; 7] = [
        Self::Join(None),
        Self::Join(Some("")),
        Self::Confirm(""),
        Self::NotMe(""),
        Self::Mailbox,
        Self::Letter(""),
        Self::LetterHtml(""),
    ];

    /// Its place among them.
    pub(super) const fn place(self) -> usize {
        match self {
            Self::Join(None) => 0,
            Self::Join(Some(_)) => 1,
            Self::Confirm(_) => 2,
            Self::NotMe(_) => 3,
            Self::Mailbox => 4,
            Self::Letter(_) => 5,
            Self::LetterHtml(_) => 6,
        }
    }

    pub(super) fn takes_post(self) -> bool {
        matches!(self, Self::Join(None) | Self::Confirm(_) | Self::NotMe(_))
    }
}

/// A page that was asked for.
pub(super) struct Visit<'a> {
    pub edge: &'a Arc<Edge>,
    pub peer: IpAddr,
    pub now: Moment,
    pub id: &'a RequestId,
}

impl Visit<'_> {
    pub(super) async fn answer(&self, page: Page<'_>, request: Request<Incoming>) -> Result<Answer, HttpError> {
        let posted = *request.method() == Method::POST;
        match page {
            Page::Join(None) if posted => self.join(request).await,
            Page::Join(code) => Ok(self.join_page(StatusCode::OK, code, &JoinForm::default()).await),
            Page::Confirm(token) if posted => {
                let body = body::read(request.into_body()).await?;
                let seen = form_urlencoded::parse(&body).find(|(name, _)| name == "seen");
                let seen = seen.and_then(|(_, text)| text.parse().ok()).map(Timestamp::from_millis);
                Ok(self.confirm(token, seen).await)
            }
            Page::Confirm(token) => Ok(self.confirm_page(token, false).await),
            Page::NotMe(token) => Ok(self.decline(token, posted).await),
            Page::Mailbox | Page::Letter(_) | Page::LetterHtml(_) => {
                self.mailbox(page, host::of(request.uri(), request.headers()), request.headers())
            }
        }
    }

    /// The page to join on. A code that is nobody's does no harm: the sign-up is then simply not attributed.
    pub(super) async fn join_page(&self, status: StatusCode, code: Option<&str>, form: &JoinForm) -> Answer {
        let code = code.and_then(ReferralCode::from_pasted);
        let app = &self.edge.app;
        let html = view::join(
            &self.edge.union,
            &app.catalog,
            self.member_count().await,
            code.as_ref().map(ReferralCode::as_str),
            form,
        );
        Answer::html(status, html)
    }

    /// None when the figure cannot be read: a page leaves it out and stays up.
    async fn member_count(&self) -> Option<u64> {
        match self.edge.app.store.member_count().await {
            Ok(count) => Some(count),
            Err(error) => {
                self.report(&error.to_string());
                None
            }
        }
    }

    async fn join(&self, request: Request<Incoming>) -> Result<Answer, HttpError> {
        let (head, body) = request.into_parts();
        if !self.is_own(&head.headers, host::of(&head.uri, &head.headers)) {
            return Ok(self.outcome(StatusCode::FORBIDDEN, Outcome::WrongOrigin));
        }
        let client = self.edge.proxies.client(self.peer, &head.headers);
        let bucket = Bucket { class: Class::Form, subject: Subject::Network(client.into()) };
        let verdict = self.edge.app.spend(bucket, FORMS_A_MINUTE, self.now.tick).await;
        if !verdict.admitted {
            let retry_after = verdict.reset_seconds();
            let mut answer = self.outcome(StatusCode::TOO_MANY_REQUESTS, Outcome::TooMany { retry_after });
            answer.set(RETRY_AFTER, HeaderValue::from(retry_after));
            return Ok(answer);
        }
        let body = body::read(body).await?;
        let sent = Sent::read(&body);
        let request = match sent.check() {
            Ok(request) => request,
            Err(form) => return Ok(self.join_page(StatusCode::BAD_REQUEST, Some(&sent.ref_code), &form).await),
        };
        let masked = request.email.masked();
        // Only a program fills in what people cannot see; it is told what it hopes to hear.
        if !sent.website.is_empty() {
            return Ok(self.page(view::check_inbox(&self.edge.union, &masked)));
        }
        match sign_up(&self.edge.app, &request, None, self.now.time).await {
            Ok(_) => Ok(self.page(view::check_inbox(&self.edge.union, &masked))),
            Err(Error::BackendNotConfigured) => {
                Ok(self.outcome(StatusCode::INTERNAL_SERVER_ERROR, Outcome::SignUpsOff))
            }
            Err(error) => {
                let mut form = sent.form();
                form.general_error = Some(error.message().into_owned());
                self.report(error.cause().unwrap_or("a sign-up by form failed"));
                Ok(self.join_page(StatusCode::INTERNAL_SERVER_ERROR, Some(&sent.ref_code), &form).await)
            }
        }
    }

    /// Whether a form was sent from our own page. Old browsers and programs say neither; they carry nobody's cookies,
    /// because there are none.
    fn is_own(&self, headers: &HeaderMap, host: &str) -> bool {
        if let Some(site) = headers.get(HeaderName::from_static("sec-fetch-site")) {
            return site == "same-origin" || site == "none";
        }
        let Some(origin) = headers.get(ORIGIN) else { return true };
        let origin = origin.to_str().unwrap_or_default();
        // Our own addresses, or the very host that the form was sent to, under whichever name.
        let here = origin.split("://").nth(1).is_some_and(|from| !from.is_empty() && from.eq_ignore_ascii_case(host));
        here || self.edge.origins.iter().any(|own| own.eq_ignore_ascii_case(origin))
    }

    /// The person pressed the button; `seen` tells which answers their page showed.
    async fn confirm(&self, token: &str, seen: Option<Timestamp>) -> Answer {
        let app = &self.edge.app;
        let Some(id) = app.tokens.read(Purpose::Confirm, token) else {
            return self.outcome(StatusCode::NOT_FOUND, Outcome::Unknown);
        };
        match app.store.confirm(id, seen, self.now.time).await {
            Ok(Confirmation::Joined) => self.share(id, true).await,
            Ok(Confirmation::AlreadyMember) => self.share(id, false).await,
            Ok(Confirmation::Changed) => self.confirm_page(token, true).await,
            // Told as they would be to somebody who only looks.
            Ok(Confirmation::Expired | Confirmation::Declined | Confirmation::Unknown) => {
                self.confirm_page(token, false).await
            }
            Err(error) => self.problem(&error.to_string()),
        }
    }

    /// What is being confirmed, and one button; `changed` if it is not what the person saw before.
    async fn confirm_page(&self, token: &str, changed: bool) -> Answer {
        let app = &self.edge.app;
        let Some(id) = app.tokens.read(Purpose::Confirm, token) else {
            return self.outcome(StatusCode::NOT_FOUND, Outcome::Unknown);
        };
        let record = match app.store.find_sign_up(id, self.now.time).await {
            Ok(Some(record)) => record,
            Ok(None) => return self.outcome(StatusCode::NOT_FOUND, Outcome::Unknown),
            Err(error) => return self.problem(&error.to_string()),
        };
        match record.state {
            SignUpState::Confirmed => self.share(id, false).await,
            SignUpState::Expired => self.outcome(StatusCode::GONE, Outcome::Expired),
            SignUpState::Declined => self.outcome(StatusCode::GONE, Outcome::WasDeclined),
            SignUpState::Pending => {
                let chosen: Vec<_> = app
                    .catalog
                    .listed()
                    .iter()
                    .filter(|(category, _)| record.categories.contains(*category))
                    .map(|(category, savings)| (category.label(), *savings))
                    .collect();
                self.page(view::confirm(
                    &self.edge.union,
                    &view::ConfirmView {
                        masked_address: &record.email.masked(),
                        partner: record.partner.as_deref(),
                        us_state: record.us_state.map(UsState::name),
                        categories: &chosen,
                        total: app.catalog.savings_of(record.categories),
                        has_comments: record.has_comments,
                        seen: record.updated_at.as_millis(),
                        changed,
                        confirm_path: &format!("/confirm/{token}"),
                        decline_path: &format!("/not-me/{}", app.tokens.token(Purpose::Decline, id)),
                    },
                ))
            }
        }
    }

    /// The person's own link to share, once they are in.
    async fn share(&self, id: SignUpId, first_time: bool) -> Answer {
        let app = &self.edge.app;
        match app.store.find_sign_up(id, self.now.time).await {
            Ok(Some(record)) => {
                let link = record.code.link(&app.join_site);
                let count = self.member_count().await;
                let mut answer = self.page(view::share(&self.edge.union, first_time, &link, &app.catalog, count));
                // The button that copies the link is the only thing here that is done by a script.
                answer.set(
                    hyper::header::CONTENT_SECURITY_POLICY,
                    HeaderValue::from_static(
                        "default-src 'none'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'self'; \
                         frame-ancestors 'none'",
                    ),
                );
                answer
            }
            Ok(None) => self.outcome(StatusCode::NOT_FOUND, Outcome::Unknown),
            Err(error) => self.problem(&error.to_string()),
        }
    }

    async fn decline(&self, token: &str, posted: bool) -> Answer {
        let app = &self.edge.app;
        let Some(id) = app.tokens.read(Purpose::Decline, token) else {
            return self.outcome(StatusCode::NOT_FOUND, Outcome::Unknown);
        };
        if posted {
            return match app.store.decline(id, self.now.time).await {
                Ok(Declining::Declined | Declining::Expired) => self.page(view::declined(&self.edge.union)),
                Ok(Declining::Confirmed) => self.outcome(StatusCode::OK, Outcome::AlreadyConfirmed),
                Ok(Declining::Unknown) => self.outcome(StatusCode::NOT_FOUND, Outcome::Unknown),
                Err(error) => self.problem(&error.to_string()),
            };
        }
        match app.store.find_sign_up(id, self.now.time).await {
            Ok(Some(record)) => self.page(view::decline(
                &self.edge.union,
                &record.email.masked(),
                record.partner.as_deref(),
                &format!("/not-me/{token}"),
            )),
            Ok(None) => self.outcome(StatusCode::NOT_FOUND, Outcome::Unknown),
            Err(error) => self.problem(&error.to_string()),
        }
    }

    /// Mail as a development server keeps it; nothing at all anywhere else.
    fn mailbox(&self, page: Page<'_>, host: &str, headers: &HeaderMap) -> Result<Answer, HttpError> {
        let nothing = || HttpError::NotFound("There is nothing at this path.".to_owned());
        let mailbox = self.edge.mailbox.as_ref().filter(|_| self.is_local(host, headers)).ok_or_else(nothing)?;
        match page {
            Page::Letter(name) => {
                let letter = mailbox.open(name).ok_or_else(nothing)?;
                Ok(self.page(view::letter(&self.edge.union, &letter.view(&format!("/dev/mailbox/{name}/html")))))
            }
            Page::LetterHtml(name) => {
                let mut answer = self.page(mailbox.open(name).ok_or_else(nothing)?.html);
                // Mail programs know only styles in the text itself.
                answer.set(
                    hyper::header::CONTENT_SECURITY_POLICY,
                    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; form-action 'none'"),
                );
                Ok(answer)
            }
            _ => {
                let letters = mailbox.list().map_err(|error| {
                    let cause = format!("the mailbox folder cannot be read: {error}");
                    self.edge.app.log.problem(Some(self.id.as_str()), &cause);
                    HttpError::Internal
                })?;
                Ok(self.page(view::mailbox(&self.edge.union, &letters)))
            }
        }
    }

    /// Whether a request comes straight from this machine's own browser: the connection and the name it asked for are
    /// loopback, and no proxy is between.
    fn is_local(&self, host: &str, headers: &HeaderMap) -> bool {
        let proxied = ["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via"];
        let direct = !proxied.iter().any(|name| headers.contains_key(*name));
        direct && self.peer.to_canonical().is_loopback() && is_loopback(host)
    }

    fn page(&self, html: String) -> Answer {
        Answer::html(StatusCode::OK, html)
    }

    pub(super) fn outcome(&self, status: StatusCode, outcome: Outcome) -> Answer {
        Answer::html(status, view::outcome(&self.edge.union, outcome))
    }

    /// The store could not do it.
    fn problem(&self, cause: &str) -> Answer {
        self.report(cause);
        self.outcome(StatusCode::SERVICE_UNAVAILABLE, Outcome::Problem)
    }

    fn report(&self, cause: &str) {
        self.edge.app.report_store(Some(self.id.as_str()), cause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_pages_and_their_names_keep_secrets() {
        for (path, page) in [
            ("/join", Page::Join(None)),
            ("/joinus0123456789ab", Page::Join(Some("0123456789ab"))),
            ("/joinus", Page::Join(Some(""))),
            ("/confirm/abc", Page::Confirm("abc")),
            ("/not-me/abc", Page::NotMe("abc")),
            ("/dev/mailbox", Page::Mailbox),
            ("/dev/mailbox/1-a", Page::Letter("1-a")),
            ("/dev/mailbox/1-a/html", Page::LetterHtml("1-a")),
        ] {
            assert_eq!(Page::find(path), Some(page), "{path}");
            assert!(!page.name().contains("abc") && !page.name().contains("0123"));
        }
        for none in ["/joinus/x", "/confirm", "/confirm/a/b", "/not-me/a/b", "/dev"] {
            assert_eq!(Page::find(none), None, "{none}");
        }
    }
}
