//! The pages that people see, by visitor: joining, confirming, "this wasn't me", a member's own, campaigns, the pages of trust, the
//! sandbox's, and the mailbox of a development server.
//!
//! A GET never changes anything: mail scanners open links, and some run scripts. Only a POST acts. A page reads what was
//! sent, asks `membership` and shows what came of it (`view/` only renders); it must never decide what becomes of a person.

pub mod branding;
pub mod campaigns;
pub mod card;
pub mod confirm;
mod cookie;
pub mod decline;
pub mod demonstration;
pub mod dev_mailbox;
pub mod invitation;
pub mod join;
mod join_form;
pub mod operator;
pub mod own_page;
pub mod own_text;
pub mod policy;
pub mod reader;
pub mod sandbox;
pub mod sign_in;
mod typed_sign_in;
pub mod view;

use std::net::IpAddr;
use std::sync::Arc;

use hyper::header::{HeaderName, HeaderValue, LOCATION, ORIGIN, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Request, StatusCode, Uri};

use self::branding::Branding;
use self::card::Cards;
use self::cookie::SiteCookie;
use self::dev_mailbox::DevMailbox;
use self::reader::Reader;
pub use self::view::Home;
use self::view::{Frame, Outcome};
use crate::app::App;
use crate::campaigns::public::PublicCampaigns;
use crate::clock::Moment;
use crate::domain::language::{Language, Words};
use crate::domain::mail::lane::Lane;
use crate::domain::operator::Role;
use crate::domain::referral::ReferralCode;
use crate::domain::secret::token::Purpose;
use crate::domain::time::Timestamp;
use crate::http::request::host::{self, Origins};
use crate::http::request::id::RequestId;
use crate::http::request::identity_header::IdentityHeader;
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;
use crate::http::response::etag::Document;
use crate::limiter::{Bucket, Class, Network, Subject};
use crate::mail::mailbox::MailboxFolder;
use crate::membership::{LinkedSignUp, StoreError};
use crate::operator::access::OperatorAccess;
pub use crate::operator::running::FoundProblems;
use crate::people::export;

/// Mailed links opened or pressed a minute from one address: mail services press many, for the people they serve.
const LINKS_A_MINUTE: u32 = 300;

/// The largest form: every field as long as it may be, each character written as three times three.
const FORM_BYTES: u64 = 64 << 10;

/// The stylesheet, before the union's own colours.
const STYLE: &str = include_str!("../../templates/style.css");

/// What a button sends: a few small fields.
const PRESS_BYTES: u64 = 4 << 10;

/// What a mail program's own button sends (RFC 8058).
const ONE_CLICK: &str = "List-Unsubscribe";

/// The policy of a page with a script of ours; the others have none.
const WITH_OUR_SCRIPT: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; img-src 'self'; style-src 'self'; font-src 'self'; script-src 'self'; base-uri 'none'; form-action 'self'; \
     frame-ancestors 'none'",
);

/// What all pages share.
pub struct Site {
    app: Arc<App>,
    branding: Arc<Branding>,
    origins: Origins,
    /// Whether people come over HTTPS, as far as the join site's address says.
    pub secure: bool,
    /// Only on a development server.
    mailbox: Option<DevMailbox>,
    /// The stylesheet of every page.
    pub style: Document,
    /// The typeface of headings, and its licence.
    pub font: Document,
    pub font_licence: Document,
    /// The scripts, which nothing depends on: one copies a link, one answers the form's question while it is throttled, one writes
    /// times in the reader's zone, one adds up what is checked.
    pub copy_script: Document,
    pub proof_script: Document,
    pub times_script: Document,
    pub total_script: Document,
    /// What the union shows as its own mark, if that is not ours.
    pub logo: Document,
    cards: Cards,
    /// What a member's export looks like.
    pub export_schema: Document,
    /// The operator's page; not in the sandbox.
    operator: Option<Arc<OperatorAccess>>,
    operator_header: Option<IdentityHeader>,
    operator_groups: Vec<(String, Role)>,
    operator_roles_of: Option<FindRoles>,
    pub operator_style: Document,
}

/// What an operator needs to see the page of a path, and to send its form; none where it is not the operator's.
pub type FindRoles = fn(&str) -> Option<(Role, Role)>;

/// The operator's page, as the start makes it.
#[derive(Clone, Default)]
pub struct OperatorParts {
    pub access: Option<Arc<OperatorAccess>>,
    /// In which a proxy names who is signed in.
    pub header: Option<IdentityHeader>,
    /// What each group that the proxy names may do.
    pub groups: Vec<(String, Role)>,
    /// The service sets it.
    pub roles_of: Option<FindRoles>,
}

impl Site {
    pub fn new(
        app: Arc<App>,
        branding: Arc<Branding>,
        origins: Origins,
        mailbox: Option<(MailboxFolder, String)>,
        operator: OperatorParts,
    ) -> Self {
        Self {
            operator_roles_of: operator.roles_of,
            operator: operator.access,
            operator_header: operator.header,
            operator_groups: operator.groups,
            operator_style: Document::new(
                "text/css; charset=utf-8",
                concat!(
                    include_str!("../../templates/operator/style.css"),
                    include_str!("../../templates/operator/charts.css")
                ),
            ),
            secure: app.union.join_site.starts_with("https://"),
            // Beside anything but this machine's own address it would show strangers' mail to strangers.
            mailbox: mailbox.filter(|_| origins.local).map(|(folder, key)| DevMailbox { folder, key }),
            origins,
            style: Document::new(
                "text/css; charset=utf-8",
                [branding::compact(STYLE), branding::css(app.union.colors)].concat(),
            ),
            font: Document::new("font/woff2", &include_bytes!("../../templates/font/heading.woff2")[..]),
            font_licence: Document::new("text/plain; charset=utf-8", include_str!("../../templates/font/OFL.txt")),
            copy_script: Document::new("text/javascript; charset=utf-8", include_str!("../../templates/copy.js")),
            proof_script: Document::new("text/javascript; charset=utf-8", include_str!("../../templates/proof.js")),
            times_script: Document::new("text/javascript; charset=utf-8", include_str!("../../templates/times.js")),
            total_script: Document::new("text/javascript; charset=utf-8", include_str!("../../templates/total.js")),
            logo: match &branding.logo {
                Some(logo) => Document::new(logo.content_type, logo.bytes.clone()),
                None => Document::new("image/svg+xml", include_str!("../../templates/icon.svg")),
            },
            cards: Cards::new(&branding, &app.union.name),
            export_schema: Document::new("application/schema+json", export::schema().to_string()),
            app,
            branding,
        }
    }

    /// Whether the operator's page is there: somebody was added.
    pub async fn has_operators(&self, now: Moment) -> bool {
        match &self.operator {
            Some(access) => access.is_on(now.tick).await,
            None => false,
        }
    }

    /// What is wrong, as the operator's page shows it; none in the sandbox.
    pub async fn find_problems(&self, now: Moment) -> Option<FoundProblems> {
        Some(operator::overview::look(self.operator.as_ref()?, &self.app, now).await)
    }

    /// Who asks for a page.
    pub fn reader(&self, uri: &Uri, headers: &HeaderMap, now: Timestamp) -> Reader {
        let cookie = SiteCookie::Session.read(headers, self.secure);
        let mut reader = Reader::of(uri, headers, self.secure);
        reader.signed_in = cookie.is_some_and(|cookie| self.app.own_pages.session(cookie, now).is_some());
        reader
    }

    pub fn not_found(&self, reader: Reader, now: Timestamp) -> Answer {
        let frame = Frame::new(&self.app.union, reader.language, "/join", now).branded(&self.branding);
        let frame = Frame { signed_in: reader.signed_in, ..frame };
        Answer::html(StatusCode::NOT_FOUND, view::outcome(frame, Outcome::NotFound, Home::Join))
    }
}

/// What a handler of a page gives, or what ends it early: `?` on either answers the visitor.
pub type PageResult<T = Answer> = Result<T, EarlyEnd>;

pub enum EarlyEnd {
    /// Another page.
    Page(Box<Answer>),
    Http(HttpError),
}

impl From<Answer> for EarlyEnd {
    fn from(page: Answer) -> Self {
        Self::Page(Box::new(page))
    }
}

impl From<HttpError> for EarlyEnd {
    fn from(error: HttpError) -> Self {
        Self::Http(error)
    }
}

impl EarlyEnd {
    pub fn into_answer(self) -> Result<Answer, HttpError> {
        match self {
            Self::Page(page) => Ok(*page),
            Self::Http(error) => Err(error),
        }
    }
}

/// A page that was asked for.
#[derive(Clone, Copy)]
pub struct Visit<'a> {
    pub site: &'a Site,
    /// Where the page is.
    pub path: &'a str,
    pub reader: Reader,
    /// Whose invitation brought them, as the address has it.
    pub invited_by: Option<ReferralCode>,
    /// What stood at the `{…}` of the route's pattern.
    pub parameter: &'a str,
    /// What an operator needs to have this page, and to send its form; nobody's, where it is no operator's.
    pub roles: Option<(Role, Role)>,
    /// Whose request it is, behind proxies or not.
    pub client: IpAddr,
    /// Who is at the other end of the connection.
    pub peer: IpAddr,
    pub now: Moment,
    pub id: &'a RequestId,
    /// Where it leads back to if it does not work.
    pub home: Home,
}

impl<'a> Visit<'a> {
    fn app(&self) -> &'a App {
        &self.site.app
    }

    fn page(&self, html: String) -> Answer {
        self.show(StatusCode::OK, html)
    }

    fn show(&self, status: StatusCode, html: String) -> Answer {
        Answer::html(status, if self.app().is_sandbox() { sandbox::keep_inside(&html) } else { html })
    }

    /// The path of a page of ours: the sandbox's are beside the real ones.
    fn place(&self, path: String) -> String {
        if self.app().is_sandbox() { format!("{}{path}", sandbox::PREFIX) } else { path }
    }

    /// What its page has around it.
    fn frame(&self) -> Frame<'a> {
        let invited_by = self.invited_by.filter(|_| !self.app().is_sandbox());
        let frame = Frame::new(&self.site.app.union, self.reader.language, self.path, self.now.time);
        Frame { invited_by, signed_in: self.reader.signed_in, ..frame.branded(&self.site.branding) }
    }

    /// The texts of its reader's language.
    fn words(&self) -> &'static Words {
        self.reader.language.words()
    }

    fn outcome(&self, status: StatusCode, outcome: Outcome<'_>) -> Answer {
        self.show(status, view::outcome(self.frame(), outcome, self.home))
    }

    /// The same visit, of a reader who chose a language before.
    fn who_chose(self, kept: Option<Language>) -> Self {
        Self { reader: self.reader.who_chose(kept), ..self }
    }

    /// The same visit, of a reader whose form was in a language.
    fn of_form(self, code: Option<&str>) -> Self {
        Self { reader: self.reader.of_form(code), ..self }
    }

    /// The same visit, as one of a member's own page.
    fn of_own_page(self) -> Self {
        Self { home: Home::Own, ..self }
    }

    /// To another page of ours, by GET.
    fn redirect(&self, path: &str) -> Answer {
        let mut answer = Answer::html(StatusCode::SEE_OTHER, String::new());
        let handed_on = self.invited_by.filter(|_| !self.app().is_sandbox());
        let handed_on = handed_on.map(|code| invitation::hand_on_to(path, code));
        // Of our own words and of slugs: always a header.
        let place = HeaderValue::from_str(handed_on.as_deref().unwrap_or(path));
        answer.set(LOCATION, place.unwrap_or(HeaderValue::from_static("/me")));
        answer
    }

    /// Whether a form was sent from our own page (CSRF). Old browsers and programs say neither; what carries a cookie asks for
    /// more.
    fn is_own(&self, head: &Parts) -> bool {
        if let Some(site) = head.headers.get(HeaderName::from_static("sec-fetch-site")) {
            return site == "same-origin" || site == "none";
        }
        let Some(origin) = head.headers.get(ORIGIN) else { return true };
        let origin = origin.to_str().unwrap_or_default();
        // Our own addresses, or the very host that the form was sent to, under whichever name.
        let host = host::of(&head.uri, &head.headers);
        let here = origin.split("://").nth(1).is_some_and(|from| !from.is_empty() && from.eq_ignore_ascii_case(host));
        here || self.site.origins.contain(origin)
    }

    /// The same of what signs somebody in or carries their cookie: silence is not enough, and where we are reached over HTTPS
    /// neither is a page of this host that is not.
    fn says_own(&self, head: &Parts) -> bool {
        let origin = head.headers.get(ORIGIN).map(HeaderValue::as_bytes);
        let speaks = origin.is_some() || head.headers.contains_key("sec-fetch-site");
        let plain = self.site.secure && origin.is_some_and(|origin| origin.starts_with(b"http://"));
        speaks && !plain && self.is_own(head)
    }

    /// The same of the operator's page: the name that a request asks for is not enough, for anybody may give this machine a name.
    fn says_configured(&self, head: &Parts) -> bool {
        let origin = head.headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
        let is_ours = origin.is_none_or(|origin| self.site.origins.local || self.site.origins.contain(origin));
        is_ours && self.says_own(head)
    }

    /// Refuses a form that was not sent from our own page, where it signs somebody in or carries their cookie.
    fn require_own(&self, head: &Parts) -> PageResult<()> {
        match self.says_own(head) {
            true => Ok(()),
            false => Err(self.outcome(StatusCode::FORBIDDEN, Outcome::WrongOrigin).into()),
        }
    }

    /// Draws on the visitor's budget; a page that says when to come back once it is spent.
    async fn spend(&self, class: Class, a_minute: u32) -> PageResult<()> {
        let bucket = Bucket { class, subject: Subject::Network(self.client.into()) };
        let verdict = self.app().spend(bucket, a_minute, self.now.tick).await;
        if verdict.admitted {
            return Ok(());
        }
        let retry_after = verdict.reset_seconds();
        let mut answer = self.outcome(StatusCode::TOO_MANY_REQUESTS, Outcome::TooMany { retry_after });
        answer.set(RETRY_AFTER, HeaderValue::from(retry_after));
        Err(answer.into())
    }

    /// The lane of mail that this visitor asks for: theirs, and their whole site's.
    fn lane(&self) -> Lane {
        Lane::of(self.network().octets())
    }

    /// The visitor's address, or of IPv6 the whole site around it.
    fn network(&self) -> Network {
        Network::from(self.client).site()
    }

    /// Refuses a token that is none of ours, which the store is not asked about, and a visitor who opens and presses far more
    /// links than people do.
    async fn check_link(&self, purpose: Purpose) -> PageResult<()> {
        if !self.app().membership.is_link(purpose, self.parameter) {
            return Err(self.unknown().into());
        }
        self.spend(Class::Link, LINKS_A_MINUTE).await
    }

    /// The sign-up that the link is about.
    async fn find_sign_up(&self, purpose: Purpose) -> PageResult<LinkedSignUp> {
        let found = self.stored(self.app().membership.find(purpose, self.parameter, self.now.time).await)?;
        found.ok_or_else(|| self.unknown().into())
    }

    /// The link is about no sign-up of ours.
    fn unknown(&self) -> Answer {
        self.outcome(StatusCode::NOT_FOUND, Outcome::Unknown)
    }

    /// What the store did, or the page that says that it could not.
    fn stored<T>(&self, done: Result<T, StoreError>) -> PageResult<T> {
        done.map_err(|error| self.problem(error).into())
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

    /// The campaigns that everybody may see; none when they cannot be read: a page about something else leaves them out.
    async fn public_campaigns(&self) -> Arc<PublicCampaigns> {
        let found = self.app().campaigns.public(self.now).await;
        found.inspect_err(|error| self.report(&error.to_string())).unwrap_or_default()
    }

    /// None when the figure cannot be read: a page leaves it out and stays up. None in the sandbox: each partner has its own there.
    async fn member_count(&self) -> Option<u64> {
        if self.app().is_sandbox() {
            return None;
        }
        let counted = self.app().membership.count().await;
        counted.map_err(|error| self.report(&error.to_string())).ok()
    }
}

/// What an address says by a name, in one of our own words.
fn said<'r, B>(request: &'r Request<B>, name: &str) -> Option<&'r str> {
    word(request.uri().query()?, name)
}

fn word<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

/// Whether a field of a form was sent with this very value.
fn field_is(fields: &[u8], name: &str, value: &str) -> bool {
    field(fields, name).as_deref() == Some(value)
}

/// A field of a form, if it was sent.
fn field(fields: &[u8], wanted: &str) -> Option<String> {
    let found = form_urlencoded::parse(fields).find(|(name, _)| name == wanted);
    found.map(|(_, value)| value.into_owned())
}
