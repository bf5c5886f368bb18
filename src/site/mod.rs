//! The pages that people see, by visitor: joining, confirming, "this wasn't me", and the mailbox of a development server.
//!
//! A GET never changes anything: mail scanners open links, and some run scripts. Only a POST acts. A page reads what was
//! sent, asks `membership` and shows what came of it (`view/` only renders); it must never decide what becomes of a person.

pub mod confirm;
pub mod decline;
pub mod dev_mailbox;
pub mod join;
mod join_form;
pub mod view;

use std::net::IpAddr;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HeaderValue, RETRY_AFTER};

use self::dev_mailbox::DevMailbox;
use self::view::Outcome;
use crate::app::App;
use crate::clock::Moment;
use crate::domain::mail::lane::Lane;
use crate::domain::secret::token::Purpose;
use crate::http::request::host::Origins;
use crate::http::request::id::RequestId;
use crate::http::response::answer::Answer;
use crate::http::response::etag::Document;
use crate::limiter::{Bucket, Class, Network, Subject};
use crate::mail::mailbox::MailboxFolder;
use crate::membership::StoreError;

/// Mailed links opened or pressed a minute from one address: mail services press many, for the people they serve.
const LINKS_A_MINUTE: u32 = 300;

/// The policy of a page with a script of ours; the others have none.
const WITH_OUR_SCRIPT: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'",
);

/// What all pages share.
#[derive(Debug)]
pub struct Site {
    app: Arc<App>,
    origins: Origins,
    /// Only on a development server.
    mailbox: Option<DevMailbox>,
    /// The stylesheet of every page.
    pub style: Document,
    /// The scripts, which nothing depends on: one copies a link, one answers the form's question while its brake is on.
    pub copy_script: Document,
    pub proof_script: Document,
}

impl Site {
    pub fn new(app: Arc<App>, origins: Origins, mailbox: Option<(MailboxFolder, String)>) -> Self {
        Self {
            app,
            // Beside anything but this machine's own address it would show strangers' mail to strangers.
            mailbox: mailbox.filter(|_| origins.local).map(|(folder, key)| DevMailbox { folder, key }),
            origins,
            style: Document::new("text/css; charset=utf-8", include_str!("../../templates/style.css")),
            copy_script: Document::new("text/javascript; charset=utf-8", include_str!("../../templates/copy.js")),
            proof_script: Document::new("text/javascript; charset=utf-8", include_str!("../../templates/proof.js")),
        }
    }

    pub fn not_found(&self) -> Answer {
        self.outcome(StatusCode::NOT_FOUND, Outcome::NotFound)
    }

    fn outcome(&self, status: StatusCode, outcome: Outcome) -> Answer {
        Answer::html(status, view::outcome(&self.app.union, outcome))
    }
}

/// A page that was asked for.
#[derive(Debug, Clone, Copy)]
pub struct Visit<'a> {
    pub site: &'a Site,
    /// What stood at the `{…}` of the route's pattern.
    pub parameter: &'a str,
    /// Whose request it is, behind proxies or not.
    pub client: IpAddr,
    /// Who is at the other end of the connection.
    pub peer: IpAddr,
    pub now: Moment,
    pub id: &'a RequestId,
}

impl<'a> Visit<'a> {
    fn app(&self) -> &'a App {
        &self.site.app
    }

    fn page(&self, html: String) -> Answer {
        Answer::html(StatusCode::OK, html)
    }

    fn outcome(&self, status: StatusCode, outcome: Outcome) -> Answer {
        self.site.outcome(status, outcome)
    }

    /// Draws on the visitor's budget; a page that says when to come back once it is spent.
    async fn spend(&self, class: Class, a_minute: u32) -> Option<Answer> {
        let bucket = Bucket { class, subject: Subject::Network(self.client.into()) };
        let verdict = self.app().spend(bucket, a_minute, self.now.tick).await;
        if verdict.admitted {
            return None;
        }
        let retry_after = verdict.reset_seconds();
        let mut answer = self.outcome(StatusCode::TOO_MANY_REQUESTS, Outcome::TooMany { retry_after });
        answer.set(RETRY_AFTER, HeaderValue::from(retry_after));
        Some(answer)
    }

    /// The lane of mail that this visitor asks for: theirs, and their whole site's.
    fn lane(&self) -> Lane {
        Lane::of(self.network().octets())
    }

    /// The visitor's address, or of IPv6 the whole site around it.
    fn network(&self) -> Network {
        Network::from(self.client).site()
    }

    /// What keeps a mailed link's page from being shown at all: a token that is none of ours, which the store is not asked
    /// about, or a visitor who opens and presses far more of them than people do.
    async fn refuse_link(&self, purpose: Purpose) -> Option<Answer> {
        if !self.app().membership.is_link(purpose, self.parameter) {
            return Some(self.unknown());
        }
        self.spend(Class::Link, LINKS_A_MINUTE).await
    }

    /// The link is about no sign-up of ours.
    fn unknown(&self) -> Answer {
        self.outcome(StatusCode::NOT_FOUND, Outcome::Unknown)
    }

    /// The store could not do it.
    fn problem(&self, error: StoreError) -> Answer {
        self.report(&error.to_string());
        let outcome = if matches!(error, StoreError::Unknown(_)) { Outcome::Unsure } else { Outcome::Problem };
        self.outcome(StatusCode::SERVICE_UNAVAILABLE, outcome)
    }

    fn report(&self, cause: &str) {
        self.app().report_store(Some(self.id.as_str()), cause);
    }

    /// None when the figure cannot be read: a page leaves it out and stays up.
    async fn member_count(&self) -> Option<u64> {
        let counted = self.app().membership.count().await;
        counted.map_err(|error| self.report(&error.to_string())).ok()
    }
}
