//! Who is signed in to the operator's page, and what every page of it has at hand.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use hyper::header::{HeaderValue, LOCATION};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Request, StatusCode, Uri};

use super::file_form::{self, FILE_FORM_BYTES, TOO_LARGE};
use super::filter::offered;
use super::frame::{MessagePage, OperatorFrame, OperatorSection, render};
use crate::domain::api_key::Mode;
use crate::domain::language::Language;
use crate::domain::operator::{OPERATOR_SESSION_FOR, Role, Roles};
use crate::domain::remedy::Remedy;
use crate::domain::secret::operator::FormToken;
use crate::http::request::body::SentBody;
use crate::http::request::host;
use crate::http::request::identity_header::NamedInHeader;
use crate::http::request::multipart;
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;
use crate::membership::StoreError;
use crate::operator::access::{OperatorAccess, SignedInOperator};
use crate::operator::{AuditedOperator, Operator};
use crate::site::cookie::SiteCookie;
use crate::site::demonstration::Strip;
use crate::site::own_page::session::keep_apart;
use crate::site::{FORM_BYTES, PageResult, Visit, field};

/// Said before a batch is made, where one person makes it and another releases it.
pub(in crate::site) const NEEDS_TWO: &str = "Two people are needed: whoever makes it does not download its file.";

pub(in crate::site) struct OperatorVisit<'a> {
    pub visit: Visit<'a>,
    pub access: &'a OperatorAccess,
    pub who: SignedInOperator,
    token: String,
    section: OperatorSection,
}

/// The page's parts, where it is there at all; `server` asks whether it is before it calls a page.
pub(super) fn access(visit: Visit<'_>) -> PageResult<&Arc<OperatorAccess>> {
    let none = || HttpError::NotFound("There is nothing at this path.".to_owned());
    Ok(visit.site.operator.as_ref().ok_or_else(none)?)
}

/// What a page has around it for whoever is not signed in.
pub(super) fn outer_frame(visit: Visit<'_>) -> OperatorFrame<'_> {
    OperatorFrame {
        union: &visit.site.app.union,
        branding: &visit.site.branding,
        strip: Strip::of(&visit.site.app.union, Language::English.words(), visit.path, visit.now.time),
        section: OperatorSection::Overview,
        who: None,
        roles: Roles::default(),
        token: "",
        can_sign_out: false,
    }
}

/// How one signs in: by a link that is mailed, where this node sends mail, or by a command.
#[derive(Template)]
#[template(path = "operator/sign_in.html")]
pub(super) struct SignInPage<'a> {
    pub frame: OperatorFrame<'a>,
    pub says: &'a str,
    /// Whether a link can be mailed.
    pub can_mail: bool,
    pub typed: &'a str,
    pub problem: Option<&'a str>,
}

impl SignInPage<'_> {
    pub(super) fn answer(&self, status: StatusCode) -> Answer {
        answer(status, render(self))
    }
}

/// Asks for the code of the second factor.
#[derive(Template)]
#[template(path = "operator/second_factor.html")]
struct CodePage<'a> {
    frame: OperatorFrame<'a>,
    name: &'a str,
    problem: Option<&'a str>,
}

pub(super) fn sign_in_page<'a>(
    visit: Visit<'a>,
    access: &OperatorAccess,
    says: &'a str,
    (typed, problem): (&'a str, Option<&'a str>),
) -> SignInPage<'a> {
    SignInPage { frame: outer_frame(visit), says, can_mail: access.mails_links(), typed, problem }
}

/// A page for whoever is not signed in: what is the matter, and the command that helps.
pub(super) fn outside(visit: Visit<'_>, status: StatusCode, title: &str, says: &str, command: &str) -> Answer {
    let (says, command) = ([says.to_owned()], Some(command));
    let page = MessagePage { frame: outer_frame(visit), title, says: &says, command, back: None };
    answer(status, render(&page))
}

/// Refuses a request for another name than ours, where a proxy says whose it is: anybody may give this machine a name (DNS rebinding),
/// and the proxy would sign their page in. A session's cookie is kept from other names by the browser.
fn require_own_name(visit: Visit<'_>, host: &str) -> PageResult<()> {
    if visit.site.origins.are_at(host) {
        return Ok(());
    }
    let says = format!(
        "Nothing was shown or done: this page was asked for under another name, \"{host}\". Open it by the address below. If that is \
         what you did, the proxy that signs you in has to pass on the Host header, with the name in --base-url or --join-site."
    );
    let address = format!("{}/operator", visit.site.app.union.base_url);
    Err(outside(visit, StatusCode::MISDIRECTED_REQUEST, "Another name", &says, &address).into())
}

/// Refuses a form that was not sent from our own page.
pub(super) fn require_own(visit: Visit<'_>, head: &Parts) -> PageResult<()> {
    match visit.says_configured(head) {
        true => Ok(()),
        false => {
            let says =
                ["Nothing was done: the form was not sent from this page. Open it again and send it from there."
                    .to_owned()];
            let (frame, back) = (outer_frame(visit), Some(("/operator", "Open the overview")));
            let page = MessagePage { frame, title: "Nothing was done", says: &says, command: None, back };
            Err(answer(StatusCode::FORBIDDEN, render(&page)).into())
        }
    }
}

fn answer(status: StatusCode, html: String) -> Answer {
    let mut answer = Answer::html(status, html);
    keep_apart(&mut answer);
    answer
}

impl<'a> OperatorVisit<'a> {
    /// Who is signed in and may see this page; or the page that says how one signs in, or who may.
    pub(in crate::site) async fn look(
        visit: Visit<'a>,
        uri: &Uri,
        headers: &HeaderMap,
        section: OperatorSection,
    ) -> PageResult<Self> {
        let found = Self::find(visit, uri, headers, section).await?;
        let needed = visit.roles.map_or(Role::All, |(see, _)| see);
        found.require_role(needed)
    }

    /// Whoever waits for the code of a second factor, or has to set one up, comes no further; and each role as far as it goes.
    fn require_role(self, needed: Role) -> PageResult<Self> {
        if self.who.waits_for_code {
            return Err(self.ask_for_code(StatusCode::FORBIDDEN, None).into());
        }
        if self.lacks_factor() && self.section != OperatorSection::Account {
            return Err(self.redirect(OperatorSection::Account.path()).into());
        }
        if !self.who.roles.may(needed) {
            let has = self.who.roles.words();
            let says =
                [format!("Nothing was done. You have the role {has}, and this takes {}.", needed.needed_words())];
            let frame = OperatorFrame { section: OperatorSection::Overview, ..self.frame() };
            let (title, back) = ("Not for your role", Some(("/operator", "Open the overview")));
            let page = MessagePage { frame, title, says: &says, command: None, back };
            return Err(answer(StatusCode::FORBIDDEN, render(&page)).into());
        }
        Ok(self)
    }

    /// Whether they have to set up a second factor before anything else.
    pub(super) fn lacks_factor(&self) -> bool {
        self.access.require_second_factor && self.who.has_session() && !self.who.has_factor
    }

    pub(super) fn ask_for_code(&self, status: StatusCode, problem: Option<&str>) -> Answer {
        // They are not signed in yet, so there is no navigation. The form needs their token.
        let frame = OperatorFrame { token: &self.token, ..outer_frame(self.visit) };
        answer(status, render(&CodePage { frame, name: self.who.name.as_str(), problem }))
    }

    /// Who sent a form, whatever they may do, and what it says.
    pub(super) async fn take_of_anyone(
        visit: Visit<'a>,
        request: Request<SentBody<'_>>,
        section: OperatorSection,
    ) -> PageResult<(Self, Vec<u8>)> {
        let (head, body) = request.into_parts();
        require_own(visit, &head)?;
        let found = Self::find(visit, &head.uri, &head.headers, section).await?;
        let fields = body.read(FORM_BYTES).await?.to_vec();
        found.still_there(&head).await?.require_token(fields)
    }

    /// Who is signed in, also where the code of a second factor is missing.
    async fn find(visit: Visit<'a>, uri: &Uri, headers: &HeaderMap, section: OperatorSection) -> PageResult<Self> {
        let access = access(visit)?;
        // Whom the proxy names comes first: it may have signed somebody else in since.
        let header = visit.site.operator_header.as_ref();
        let named = header.map_or(NamedInHeader::Nobody, |header| header.named(visit.peer, headers));
        if named != NamedInHeader::Nobody {
            require_own_name(visit, host::of(uri, headers))?;
        }
        let groups = header.and_then(|header| header.groups(headers));
        let roles = groups.map(|groups| {
            let mapped = visit.site.operator_groups.iter().filter(|(group, _)| groups.contains(&group.as_str()));
            mapped.fold(Roles::default(), |roles, (_, role)| roles.with(*role))
        });
        let found = match (named, SiteCookie::Operator.read(headers, visit.site.secure)) {
            (NamedInHeader::One(name), _) => access.of_header(name, roles).await,
            (NamedInHeader::Nobody, Some(cookie)) => access.of_cookie(cookie, visit.now.time).await,
            // Whom the proxy means is not known, and a cookie does not tell: it may be another's.
            (NamedInHeader::Unclear, _) | (NamedInHeader::Nobody, None) => Ok(None),
        };
        match found {
            Ok(Some(who)) => Ok(Self { visit, access, token: access.form_token(&who, visit.now.time), who, section }),
            Ok(None) => {
                let (says, command) = match named {
                    NamedInHeader::One(_) if roles.is_some() => (
                        "You are signed in at the proxy, but none of the groups that it names has a role here. See which groups have one:",
                        "unionhall settings",
                    ),
                    NamedInHeader::One(_) => (
                        "You are signed in at the proxy, but nobody of that name was added here. An operator of this machine adds you:",
                        "unionhall operator add NAME",
                    ),
                    NamedInHeader::Unclear => (
                        "You are not signed in: the proxy names more than one person, or a name that cannot be read. See which header it has to send:",
                        "unionhall serve --help",
                    ),
                    NamedInHeader::Nobody => {
                        let says = "You are not signed in, or your session has ended.";
                        return Err(sign_in_page(visit, access, says, ("", None)).answer(StatusCode::FORBIDDEN).into());
                    }
                };
                Err(outside(visit, StatusCode::FORBIDDEN, "Sign in", says, command).into())
            }
            Err(error) => {
                visit.report(&error.to_string());
                let says = format!(
                    "The records cannot be read right now: {error}. Try again in a moment, or see what is wrong:"
                );
                Err(outside(visit, StatusCode::SERVICE_UNAVAILABLE, "Not now", &says, "unionhall doctor").into())
            }
        }
    }

    /// A form that was sent: whose it is, and what it says. Where its token is not theirs nothing may be done.
    pub(in crate::site) async fn take(
        visit: Visit<'a>,
        request: Request<SentBody<'_>>,
        section: OperatorSection,
    ) -> PageResult<(Self, Vec<u8>)> {
        let (found, head, body) = Self::sender(visit, request, section).await?;
        let fields = body.read(FORM_BYTES).await?.to_vec();
        found.still_there(&head).await?.may_act()?.require_token(fields)
    }

    /// The same visit, of who it is now: a body may take its time, and they may have been removed or signed out meanwhile.
    async fn still_there(self, head: &Parts) -> PageResult<Self> {
        Self::find(self.visit, &head.uri, &head.headers, self.section).await
    }

    fn may_act(self) -> PageResult<Self> {
        let needed = self.visit.roles.map_or(Role::All, |(_, act)| act);
        self.require_role(needed)
    }

    /// Who sent a form, from our own page, before anything of it is read.
    async fn sender<B>(
        visit: Visit<'a>,
        request: Request<B>,
        section: OperatorSection,
    ) -> PageResult<(Self, Parts, B)> {
        let (head, body) = request.into_parts();
        require_own(visit, &head)?;
        let found = Self::find(visit, &head.uri, &head.headers, section).await?;
        Ok((found.may_act()?, head, body))
    }

    /// The same of a form that may hold a file of up to [`LARGEST_FILE`], whose text is a field like the others. Its route takes a file.
    ///
    /// [`LARGEST_FILE`]: super::file_form::LARGEST_FILE
    pub(in crate::site) async fn take_with_file(
        visit: Visit<'a>,
        request: Request<SentBody<'_>>,
        section: OperatorSection,
    ) -> PageResult<(Self, Vec<u8>)> {
        let (found, head, body) = Self::sender(visit, request, section).await?;
        let sent = match body.read(FILE_FORM_BYTES).await {
            Err(HttpError::TooLarge) => return Err(found.refuse(TOO_LARGE).into()),
            sent => sent?,
        };
        let fields = match multipart::boundary(&head.headers) {
            None => Ok(sent.to_vec()),
            Some(Ok(boundary)) => file_form::fields(boundary, &sent),
            Some(Err(bad)) => Err(format!("The form cannot be read, because {}. Send it again.", bad.why())),
        };
        let fields = fields.map_err(|why| found.refuse(&why))?;
        found.still_there(&head).await?.may_act()?.require_token(fields)
    }

    /// The text of a file that was chosen, or what was pasted of it instead; `whose` it is.
    pub(in crate::site) fn file_or_pasted(&self, fields: &[u8], whose: &str) -> PageResult<String> {
        let pasted = field(fields, "answer").filter(|text| !text.trim().is_empty());
        let why = match (field(fields, "file"), pasted) {
            (Some(text), None) | (None, Some(text)) => return Ok(text),
            (Some(_), Some(_)) => "A file was chosen, and an answer pasted. Send one of them.".to_owned(),
            (None, None) => {
                format!("Choose {whose}, or paste what is in it: the file is empty, or there is none.")
            }
        };
        Err(self.refuse(&why).into())
    }

    fn require_token(self, fields: Vec<u8>) -> PageResult<(Self, Vec<u8>)> {
        let token = field(&fields, "token").unwrap_or_default();
        match self.access.read_form_token(&self.who, &token, self.visit.now.time) {
            FormToken::Good => Ok((self, fields)),
            FormToken::Expired => Err(self.ask_again(&fields).into()),
            FormToken::Foreign => {
                let says =
                    "The form was of another session. Go back to the page, load it again, and send it from there.";
                // Whatever page it was on, this leads to the overview.
                Err(Self { section: OperatorSection::Overview, ..self }.refuse(says).into())
            }
        }
    }

    /// A form that was open for too long, as it was sent, to be looked at and sent once more. Whatever they were sure of is asked again.
    fn ask_again(&self, fields: &[u8]) -> Answer {
        let sent = form_urlencoded::parse(fields).filter(|(name, _)| !["token", "sure"].contains(&name.as_ref()));
        let page = StaleFormPage {
            frame: self.frame(),
            hours: OPERATOR_SESSION_FOR.as_secs() / 3600,
            action: self.visit.path,
            fields: sent.collect(),
            back: self.section.path(),
        };
        answer(StatusCode::BAD_REQUEST, render(&page))
    }

    pub(in crate::site) fn frame(&self) -> OperatorFrame<'_> {
        let (who, can_sign_out) = (Some(self.who.name.as_str()), self.who.has_session());
        let (section, roles) = (self.section, self.who.roles);
        OperatorFrame { section, who, roles, token: &self.token, can_sign_out, ..outer_frame(self.visit) }
    }

    /// What may be done with the records, to look at them.
    pub(in crate::site) fn operator(&self) -> &'a Operator {
        &self.access.operator
    }

    /// The same to change them: the audit log has this act, by this operator. `about` never holds an address.
    pub(in crate::site) fn acting(&self, command: &'static str, about: impl Into<String>) -> AuditedOperator {
        self.operator().audited(self.who.act(command, about.into(), self.visit.now.time))
    }

    pub(in crate::site) fn page(&self, html: String) -> Answer {
        self.page_with(StatusCode::OK, html)
    }

    /// A page without what its reader's role may not do.
    pub(in crate::site) fn page_with(&self, status: StatusCode, html: String) -> Answer {
        let roles = self.who.roles;
        if roles.may(Role::All) {
            return answer(status, html);
        }
        let lacking = |path: &str, sent: bool| {
            let (see, act) = self.visit.site.operator_roles_of.and_then(|of| of(path))?;
            Some(if sent { act } else { see }).filter(|needed| !roles.may(*needed))
        };
        answer(status, offered(&html, lacking))
    }

    pub(in crate::site) fn redirect(&self, path: &str) -> Answer {
        let mut answer = answer(StatusCode::SEE_OTHER, String::new());
        answer.set(LOCATION, HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/operator")));
        answer
    }

    /// Says what was done, and leads back.
    pub(in crate::site) fn done(&self, title: &str, says: &[String]) -> Answer {
        self.message(StatusCode::OK, title, says)
    }

    /// The same, and leads to another page.
    pub(in crate::site) fn done_at(&self, to: &str, title: &str, says: &[String]) -> Answer {
        let back = Some((to, "Go back"));
        self.page(render(&MessagePage { frame: self.frame(), title, says, command: None, back }))
    }

    /// A sentence that ends with what the operator can do about it.
    pub(in crate::site) fn sentence(&self, mut text: String, remedy: Option<Remedy>) -> String {
        text.extend(remedy.map(|remedy| format!("; {}", (self.access.write_remedy)(&remedy, Mode::Live))));
        text + "."
    }

    /// Where one person makes a batch and another has to release it.
    pub(in crate::site) fn needs_another(&self, made: &str) -> Answer {
        let says = format!("{made}. Another operator has to download its file.");
        self.message(StatusCode::OK, "Another person is needed", &[says])
    }

    pub(in crate::site) fn refuse(&self, why: &str) -> Answer {
        self.message(StatusCode::BAD_REQUEST, "Nothing was done", &[why.to_owned()])
    }

    /// Says something, and leads back.
    pub(in crate::site) fn message(&self, status: StatusCode, title: &str, says: &[String]) -> Answer {
        let label = format!("Back to {}", self.section.name());
        let back = Some((self.section.path(), label.as_str()));
        answer(status, render(&MessagePage { frame: self.frame(), title, says, command: None, back }))
    }

    /// What came of work within three seconds. It goes on when nobody waits for it any more; what goes wrong is in the log.
    pub(in crate::site) async fn work<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Worked<T> {
        let app = Arc::clone(self.visit.app().core());
        let work =
            tokio::spawn(
                async move { work.await.inspect_err(|error| app.report_store(None, &format!("{what}: {error}"))) },
            );
        match tokio::time::timeout(WORK_WAITED_FOR, work).await {
            Ok(Ok(Ok(done))) => Worked::Done(done),
            Ok(Ok(Err(error))) => Worked::Failed(error.to_string()),
            Ok(Err(_panicked)) => Worked::Failed("it ended because of a bug in the program".to_owned()),
            Err(_late) => Worked::GoesOn,
        }
    }

    /// What the store did, or the page that says that it could not and why.
    pub(in crate::site) fn stored<T>(&self, done: Result<T, StoreError>) -> PageResult<T> {
        done.map_err(|error| {
            self.visit.report(&error.to_string());
            let title = if matches!(error, StoreError::Unknown(_)) { "Look again" } else { "Nothing was done" };
            let says = [format!("The records could not be used: {error}.")];
            self.message(StatusCode::SERVICE_UNAVAILABLE, title, &says).into()
        })
    }
}

/// How long a page waits for work that may take long.
const WORK_WAITED_FOR: Duration = Duration::from_secs(3);

pub(in crate::site) enum Worked<T> {
    Done(T),
    /// Why, without an address.
    Failed(String),
    GoesOn,
}

#[derive(Template)]
#[template(path = "operator/stale_form.html")]
struct StaleFormPage<'a> {
    frame: OperatorFrame<'a>,
    hours: u64,
    action: &'a str,
    /// As they were sent.
    fields: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    back: &'a str,
}
