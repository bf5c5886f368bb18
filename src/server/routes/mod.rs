//! The one table of routes: every path there is, what it takes, who may read its answers from a browser (CORS), and what
//! answers it.
//!
//! A route's place in the table is its place in the metrics, and its pattern is its name in the log: paths may carry tokens,
//! patterns do not. A page is a file in `site/`, a template and a line here.

/// A page of `site/` as a handler.
macro_rules! page {
    ($page:path) => {
        Handler::Page(|visit, request| Box::pin($page(visit, request)))
    };
}

mod operator;

use std::pin::Pin;
use std::sync::LazyLock;

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, HeaderValue,
};
use hyper::{Method, Request, StatusCode, Uri};

pub use self::operator::operator_roles;
pub(in crate::server) use self::operator::{is_operators, roles_of};
use super::catalog_snapshot::CatalogSnapshot;
use super::{Exchange, HttpService, mail_hooks, security_text};
use crate::domain::operator::Role;
use crate::http::request::body::SentBody;
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;
use crate::http::response::etag::Document;
use crate::operations::{ALL, Access, Entry, Method as OperationMethod, partner};
use crate::site::{self, EarlyEnd, Visit};

/// A method of the service's own as a handler.
macro_rules! own {
    ($method:path) => {
        Handler::Own(|exchange, request| Box::pin($method(exchange, request)))
    };
}
/// Every route; operations and the endpoint of MCP first, because they are asked for most.
pub(super) static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let mut routes = vec![post("/mcp", own!(HttpService::mcp)).keyed()];
    for operation in ALL.iter().chain(partner::ALL) {
        // One path may have several methods.
        match routes.iter_mut().find(|route| route.pattern == operation.spec.path) {
            Some(route) => route.add(operation),
            None => routes.push(Route::operation(operation)),
        }
    }
    routes
        .into_iter()
        .chain([
            get("/", own!(HttpService::front)).open(),
            get("/v1", own!(HttpService::front)).open(),
            get("/openapi.json", document(|snapshot| &snapshot.documents().openapi)).open(),
            get("/partner/openapi.json", document(|snapshot| &snapshot.documents().partner_openapi)).open(),
            get("/server.json", document(|snapshot| &snapshot.documents().registry_entry)).open(),
            get("/docs", document(|snapshot| &snapshot.documents().reference)),
            get("/docs.md", document(|snapshot| &snapshot.documents().reference_markdown)).open(),
            get("/docs.css", document(|snapshot| &snapshot.documents().reference_style)),
            get("/docs.js", document(|snapshot| &snapshot.documents().reference_script)),
            get("/llms.txt", document(|snapshot| &snapshot.documents().llms)).open(),
            get("/.well-known/api-catalog", document(|snapshot| &snapshot.documents().api_catalog)).open(),
            get("/.well-known/security.txt", own!(security_text::show)),
            get("/icon.svg", document(|snapshot| &snapshot.documents().icon_svg)).open(),
            get("/icon.png", document(|snapshot| &snapshot.documents().icon_png)).open(),
            get("/favicon.ico", document(|snapshot| &snapshot.documents().icon_ico)),
            get("/card.png", page!(site::card::show)),
            get("/logo", document(|snapshot| &snapshot.site.logo)),
            get("/heading.woff2", document(|snapshot| &snapshot.site.font)),
            get("/heading-licence.txt", document(|snapshot| &snapshot.site.font_licence)),
            get("/style.css", document(|snapshot| &snapshot.site.style)),
            get("/copy.js", document(|snapshot| &snapshot.site.copy_script)),
            get("/proof.js", document(|snapshot| &snapshot.site.proof_script)),
            get("/times.js", document(|snapshot| &snapshot.site.times_script)),
            get("/total.js", document(|snapshot| &snapshot.site.total_script)),
            get("/healthz", own!(HttpService::health)).always(),
            get("/readyz", own!(HttpService::ready)).always(),
            post("/hooks/mail/resend", own!(mail_hooks::resend)),
            post("/hooks/mail/postmark", own!(mail_hooks::postmark)),
            get("/join", page!(site::join::show)).posted(page!(site::join::send)),
            get("/join/sent/{form}", page!(site::join::sent)),
            get("/joinus{code}", page!(site::join::show)),
            get("/about", page!(site::policy::about)),
            get("/privacy", page!(site::policy::privacy)),
            get("/terms", page!(site::policy::terms)),
            get("/campaigns", page!(site::campaigns::list)),
            get("/campaigns.json", page!(site::campaigns::json)).open(),
            get("/campaigns/{slug}", page!(site::campaigns::show)).posted(page!(site::campaigns::press)),
            get("/campaigns/{slug}/sign-in", page!(site::campaigns::sign_in)),
            get("/campaigns/{slug}/join", page!(site::campaigns::join)),
            get("/unsubscribe/{token}", page!(site::campaigns::unsubscribe::ask))
                .posted(page!(site::campaigns::unsubscribe::switch_off)),
            get("/confirm/{token}", page!(site::confirm::show)).posted(page!(site::confirm::press)),
            get("/not-me/{token}", page!(site::decline::show)).posted(page!(site::decline::press)),
            get("/already-member/{token}", page!(site::decline::read)),
            get("/me", page!(site::own_page::show)),
            get("/me/export", page!(site::own_page::export)),
            get("/me/export.schema.json", document(|snapshot| &snapshot.site.export_schema)).open(),
            get("/me/enter/{token}", page!(site::sign_in::show_link)).posted(page!(site::sign_in::enter_by_link)),
            get("/me/leave", page!(site::own_page::ask_to_leave)).posted(page!(site::own_page::leave)),
            get("/me/erased", page!(site::own_page::erased)),
            get("/me/erase", page!(site::own_page::ask_to_erase)).posted(page!(site::own_page::erase)),
            // Whoever comes back to the address of a form finds the page that it is on.
            get("/me/sign-in", page!(site::sign_in::show)).posted(page!(site::sign_in::ask)),
            get("/me/code", page!(site::sign_in::show)).posted(page!(site::sign_in::enter_by_code)),
            get("/me/answers", page!(site::own_page::show)).posted(page!(site::own_page::change_answers)),
            get("/me/mail", page!(site::own_page::show)).posted(page!(site::own_page::choose_mail)),
            get("/me/mail-again", page!(site::own_page::show)).posted(page!(site::own_page::mail_again)),
            get("/me/language", page!(site::own_page::show)).posted(page!(site::own_page::choose_language)),
            get("/me/sign-out", page!(site::own_page::show)).posted(page!(site::own_page::sign_out)),
            get("/sandbox/joinus{code}", page!(site::sandbox::join)).of_sandbox(),
            get("/sandbox/confirm/{token}", page!(site::confirm::show))
                .posted(page!(site::confirm::press))
                .of_sandbox(),
            get("/sandbox/not-me/{token}", page!(site::decline::show)).posted(page!(site::decline::press)).of_sandbox(),
            get("/sandbox/already-member/{token}", page!(site::decline::read)).of_sandbox(),
            get("/sandbox/inbox/{token}", page!(site::sandbox::inbox)).of_sandbox(),
            get("/sandbox/inbox/{mail}/html", page!(site::sandbox::mail_html)).of_sandbox(),
            // Whatever else the real site has is not there.
            get("/sandbox/{page}", page!(site::sandbox::elsewhere)).of_sandbox(),
            get("/demonstration", page!(site::demonstration::pass)).posted(page!(site::demonstration::pass)),
            get("/dev/mailbox", page!(site::dev_mailbox::list)),
            get("/dev/mailbox/{name}", page!(site::dev_mailbox::show)),
            get("/dev/mailbox/{name}/html", page!(site::dev_mailbox::show_html)),
        ])
        .chain(operator::routes())
        .collect()
});

/// A path with what is known of it.
#[derive(Default)]
pub(super) struct Route {
    pattern: &'static str,
    /// What stands before and after the `{…}` of the pattern; none where it has none.
    around: Option<(&'static str, &'static str)>,
    get: Option<Handler>,
    post: Option<Handler>,
    delete: Option<Handler>,
    /// Whether pages of any site may read the answers. Agent actions are closed: keys do not belong in browsers.
    pub open: bool,
    /// Whether it is answered however many requests are in flight: a busy node is not a dead one.
    pub always: bool,
    /// Whether a body sent here is read by its handler; elsewhere a large one is refused.
    pub takes_body: bool,
    /// Whether a key may be sent here: the sandbox answers a test key.
    pub takes_key: bool,
    /// Whether it is a page of the sandbox.
    pub sandbox: bool,
    /// What an operator needs to see it, and to send its form.
    pub roles: Option<(Role, Role)>,
}

/// What answers a request.
#[derive(Clone, Copy)]
pub(super) enum Handler {
    Operation(&'static Entry),
    /// What was made beforehand.
    Document(fn(&CatalogSnapshot) -> &Document),
    /// A page for people.
    Page(PageHandler),
    /// What needs more of the service than a page does.
    Own(for<'a> fn(Exchange<'a>, Request<SentBody<'a>>) -> Answering<'a>),
}

pub(super) type PageHandler = for<'a> fn(Visit<'a>, Request<SentBody<'a>>) -> Answering<'a, EarlyEnd>;

/// In a box of its own: a request's future is moved several times before it runs, and was 6.6 KB with room for what every
/// route might need; it is 3.1 with operations alone.
pub(super) type Answering<'a, E = HttpError> = Pin<Box<dyn Future<Output = Result<Answer, E>> + Send + 'a>>;

fn get(pattern: &'static str, handler: Handler) -> Route {
    let around = pattern.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?.1)));
    Route { pattern, around, get: Some(handler), ..Route::default() }
}

fn post(pattern: &'static str, handler: Handler) -> Route {
    Route { get: None, post: Some(handler), takes_body: true, ..get(pattern, handler) }
}

fn document(document: fn(&CatalogSnapshot) -> &Document) -> Handler {
    Handler::Document(document)
}

impl Route {
    fn operation(operation: &'static Entry) -> Self {
        let open = operation.spec.access == Access::Public;
        let mut route = Self { get: None, open, ..get(operation.spec.path, Handler::Operation(operation)).keyed() };
        route.add(operation);
        route
    }

    /// One more operation at the same path, by another method.
    fn add(&mut self, operation: &'static Entry) {
        let handler = Some(Handler::Operation(operation));
        match operation.spec.method {
            OperationMethod::Get => self.get = handler,
            OperationMethod::Post => self.post = handler,
            OperationMethod::Delete => self.delete = handler,
        }
        self.takes_body |= operation.reads_input && operation.spec.method == OperationMethod::Post;
    }

    /// Who may call the operation that it is, if it is one.
    pub(super) fn access(&self) -> Option<Access> {
        match self.get.or(self.post).or(self.delete) {
            Some(Handler::Operation(operation)) => Some(operation.spec.access),
            _ => None,
        }
    }

    fn keyed(self) -> Self {
        Self { takes_key: true, ..self }
    }

    fn of_sandbox(self) -> Self {
        Self { sandbox: true, ..self }
    }

    fn posted(self, handler: Handler) -> Self {
        Self { post: Some(handler), ..self }
    }

    /// What is sent there may be a form with a file.
    fn with_file(self) -> Self {
        Self { takes_body: true, ..self }
    }

    /// Whether operators with these roles see it, and send its form.
    fn for_roles(self, see: Role, act: Role) -> Self {
        Self { roles: Some((see, act)), ..self }
    }

    fn open(self) -> Self {
        Self { open: true, ..self }
    }

    fn always(self) -> Self {
        Self { always: true, ..self }
    }

    /// How the log and the metrics call it.
    pub(super) fn name(&self) -> &'static str {
        self.pattern
    }

    pub(super) fn is_page(&self) -> bool {
        matches!(self.get, Some(Handler::Page(_)))
    }

    /// Whether its address is one that people type: a page, or the reference.
    fn is_read_by_people(&self) -> bool {
        self.is_page() || self.pattern == "/docs"
    }

    pub(super) fn handler(&self, method: &Method) -> Option<Handler> {
        match *method {
            Method::GET | Method::HEAD => self.get,
            Method::POST => self.post,
            Method::DELETE => self.delete,
            _ => None,
        }
    }

    pub(super) fn allow(&self) -> &'static str {
        match (self.get.is_some(), self.post.is_some(), self.delete.is_some()) {
            (true, false, false) => "GET, HEAD, OPTIONS",
            (true, true, false) => "GET, HEAD, POST, OPTIONS",
            (true, false, true) => "GET, HEAD, DELETE, OPTIONS",
            (true, true, true) => "GET, HEAD, POST, DELETE, OPTIONS",
            (false, _, true) => "POST, DELETE, OPTIONS",
            (false, _, false) => "POST, OPTIONS",
        }
    }

    /// The answer to `OPTIONS`: what may be sent here, and from which pages (CORS preflight). Never counted against a limit.
    pub(super) fn preflight(&self) -> Answer {
        let mut answer = Answer::empty(StatusCode::NO_CONTENT);
        answer.set(ALLOW, HeaderValue::from_static(self.allow()));
        if self.open {
            answer.set(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(self.allow()));
            answer.set(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("Authorization, X-Request-Id"));
            answer.set(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
        }
        answer
    }

    /// What stands at the `{…}` of the pattern; an empty text where it has none. None if the path is another's.
    fn matches<'p>(&self, path: &'p str) -> Option<&'p str> {
        match self.around {
            None => (self.pattern == path).then_some(""),
            Some((before, after)) => {
                let parameter = path.strip_prefix(before)?.strip_suffix(after)?;
                // `/joinus` alone is a link that lost its code; `/campaigns/` is one slash too many.
                let is_missing = parameter.is_empty() && before.ends_with('/');
                (!parameter.contains('/') && !is_missing).then_some(parameter)
            }
        }
    }
}

/// A route that was found, and what its pattern left open.
#[derive(Clone, Copy)]
pub(super) struct FoundRoute<'p> {
    pub route: &'static Route,
    /// Its place in the table.
    pub place: usize,
    pub parameter: &'p str,
}

pub(super) fn find(path: &str) -> Option<FoundRoute<'_>> {
    ROUTES.iter().enumerate().find_map(|(place, route)| {
        let parameter = route.matches(path)?;
        Some(FoundRoute { route, place, parameter })
    })
}

/// The address of the page that a path with slashes at its end or with capital letters means, as people type and paste them;
/// none if it means none. An operation has one spelling: its callers are programs.
pub(super) fn canonical(method: &Method, uri: &Uri) -> Option<HeaderValue> {
    if ![Method::GET, Method::HEAD].contains(method) {
        return None;
    }
    let path = uri.path().trim_end_matches('/').to_ascii_lowercase();
    find(&path).filter(|found| found.route.is_read_by_people())?;
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    HeaderValue::from_str(&[path, query].concat()).ok()
}

/// How what is no route is called.
pub(super) const NONE: &str = "(none)";

/// Every name there is, one for each route and the last for what is none.
pub(super) fn names() -> Vec<&'static str> {
    ROUTES.iter().map(Route::name).chain([NONE]).collect()
}

pub(super) fn open_to_all_origins(answer: &mut Answer) {
    answer.set(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    answer.set(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Retry-After, RateLimit, RateLimit-Policy, ETag, X-Request-Id"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_routes_and_their_names_keep_secrets() {
        for (path, name, parameter) in [
            ("/", "/", ""),
            ("/joinus0123456789ab", "/joinus{code}", "0123456789ab"),
            ("/joinus", "/joinus{code}", ""),
            ("/join/sent/abc", "/join/sent/{form}", "abc"),
            ("/confirm/abc", "/confirm/{token}", "abc"),
            ("/campaigns.json", "/campaigns.json", ""),
            ("/unsubscribe/abc", "/unsubscribe/{token}", "abc"),
            ("/campaigns/internet-2027", "/campaigns/{slug}", "internet-2027"),
            ("/campaigns/internet-2027/join", "/campaigns/{slug}/join", "internet-2027"),
            ("/not-me/abc", "/not-me/{token}", "abc"),
            ("/already-member/abc", "/already-member/{token}", "abc"),
            ("/me", "/me", ""),
            ("/me/enter/abc", "/me/enter/{token}", "abc"),
            ("/me/export.schema.json", "/me/export.schema.json", ""),
            ("/dev/mailbox/1-a", "/dev/mailbox/{name}", "1-a"),
            ("/dev/mailbox/1-a/html", "/dev/mailbox/{name}/html", "1-a"),
            ("/sandbox/joinus0123456789ab", "/sandbox/joinus{code}", "0123456789ab"),
            ("/sandbox/confirm/abc", "/sandbox/confirm/{token}", "abc"),
            ("/sandbox/inbox/abc", "/sandbox/inbox/{token}", "abc"),
            ("/sandbox/inbox/abc-1/html", "/sandbox/inbox/{mail}/html", "abc-1"),
            ("/sandbox/me", "/sandbox/{page}", "me"),
        ] {
            let found = find(path).unwrap();
            assert_eq!((found.route.name(), found.parameter), (name, parameter), "{path}");
            assert_eq!(names()[found.place], name);
        }
        for none in [
            "",
            "/me/",
            "/me/enter",
            "/me/x",
            "/joinus/x",
            "/confirm",
            "/confirm/a/b",
            "/not-me/a/b",
            "/dev",
            "/dev/mailbox/a/b/html",
        ] {
            assert!(find(none).is_none(), "{none}");
        }
        let names = names();
        let distinct: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
    }
}
