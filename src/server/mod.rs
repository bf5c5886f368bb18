//! The HTTP server: from a request to an answer, in one pass, by the one table of routes.
//!
//! Everything that every answer needs (the request's id, CORS, cache and security headers, the log line) is done here in
//! one function and not in a tower of layers: each layer would cost about as much as all of it together. This layer must
//! never decide what an operation may do or what becomes of a person: it hands requests to those who know.

mod catalog_snapshot;
mod client_shares;
pub mod listener;
mod log_entry;
mod mail_hooks;
pub mod metrics_listener;
mod panicking;
mod process_figures;
mod rest;
mod route_request;
mod routes;
mod sandbox;
mod security_text;

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, EXPECT, HeaderName, HeaderValue, LINK, REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{HeaderMap, Request, Response, StatusCode, Version};

use self::catalog_snapshot::CatalogSnapshot;
use self::client_shares::{ClientShare, ClientShares, RequestPlace};
use self::log_entry::{HUNG_UP, LogEntry};
use self::metrics_listener::WatchedRequests;
use self::panicking::{Panicked, unless_it_panics};
pub use self::process_figures::NodeResources;
use self::route_request::route;
use self::routes::FoundRoute;
pub use self::routes::operator_roles;
use self::sandbox::SandboxRouter;
pub use self::sandbox::{FindsSandbox, NoSandbox};
use crate::app::{App, Core};
use crate::clock::{Clock, Moment};
use crate::domain::catalog::Catalog;
use crate::domain::health::sign_ups_word;
use crate::domain::time::Timestamp;
use crate::http::allowance::{Allowance, Slot};
use crate::http::connection::eviction::EvictionTable;
use crate::http::connection::idle_timeout::Activity;
use crate::http::request::accept::prefers_html;
use crate::http::request::body::{self, AwaitedBody, BodyQuota, SentBody};
use crate::http::request::client_address::TrustedProxies;
use crate::http::request::host;
use crate::http::request::id::{self, RequestId, RequestIds};
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;
use crate::mail::Delivery;
use crate::mail::mailbox::MailboxFolder;
use crate::mail::report::MailHooks;
use crate::operations::dispatch::CallTrace;
use crate::site::branding::Branding;
use crate::site::join;
pub use crate::site::{FoundProblems, OperatorParts};

/// Requests that may be under way at once; past it callers are asked to come back. No caller gets more than a share.
const IN_FLIGHT: NonZeroUsize = NonZeroUsize::new(8192).expect("a request is under way");

/// Bytes of bodies that may be held at once while they arrive, whoever sends them.
const BODY_BYTES: usize = 64 << 20;

/// What the operator sets of the HTTP side.
#[derive(Default)]
pub struct HttpSettings {
    pub proxies: TrustedProxies,
    /// What the site shows of the operator's own.
    pub branding: Arc<Branding>,
    /// Whose pages may speak MCP besides our own.
    pub mcp_origins: Vec<String>,
    /// The folder that a development server shows its mail from, and the key that opens its page.
    pub mailbox: Option<(MailboxFolder, String)>,
    /// The mail services that may report what became of mail.
    pub mail_hooks: MailHooks,
    /// What else the metrics tell of, where somebody reads them.
    pub metrics: Option<NodeResources>,
    /// Where test keys lead to, if anywhere.
    pub sandbox: Option<Arc<dyn FindsSandbox>>,
    /// The operator's page.
    pub operator: OperatorParts,
    /// Requests that may be under way at once, if not as many as usual.
    pub in_flight: Option<NonZeroUsize>,
}

/// The service's face to HTTP.
pub struct HttpService {
    app: Arc<Core>,
    /// Read once for each request, which keeps what it read to its end.
    snapshot: RwLock<Arc<CatalogSnapshot>>,
    sandbox: SandboxRouter,
    clock: Clock,
    proxies: TrustedProxies,
    ids: RequestIds,
    started: Timestamp,
    /// Whether callers come over HTTPS, as far as the base address says.
    secure: bool,
    mail_hooks: MailHooks,
    client_shares: Arc<ClientShares>,
    bodies: Allowance,
    in_flight: AtomicUsize,
    most_in_flight: NonZeroUsize,
    connections: AtomicUsize,
    /// Connections, and bodies that are waited for: the longest idle goes where they run short.
    open: EvictionTable<Activity>,
    awaited: EvictionTable<AwaitedBody>,
    watched: Option<WatchedRequests>,
}

/// One request while it is answered, beside the request itself.
pub(crate) struct Exchange<'a> {
    service: &'a HttpService,
    snapshot: &'a CatalogSnapshot,
    /// Who is at the other end of the connection.
    peer: IpAddr,
    /// Whose request it is, behind proxies or not.
    client: IpAddr,
    now: Moment,
    id: &'a RequestId,
    path: &'a str,
    trace: &'a mut CallTrace,
}

impl HttpService {
    pub fn new(app: Arc<App>, clock: Clock, ids: RequestIds, settings: HttpSettings) -> Arc<Self> {
        Arc::new(Self {
            app: Arc::clone(app.core()),
            started: clock.now().time,
            secure: app.union.base_url.starts_with("https://"),
            client_shares: Arc::default(),
            bodies: Allowance::new(BODY_BYTES),
            in_flight: AtomicUsize::new(0),
            most_in_flight: settings.in_flight.unwrap_or(IN_FLIGHT),
            connections: AtomicUsize::new(0),
            open: EvictionTable::default(),
            awaited: EvictionTable::default(),
            watched: settings.metrics.map(WatchedRequests::new),
            proxies: settings.proxies,
            mail_hooks: settings.mail_hooks,
            sandbox: SandboxRouter::new(settings.sandbox, settings.mcp_origins.clone()),
            snapshot: RwLock::new(Arc::new(CatalogSnapshot::new(
                app,
                settings.branding,
                settings.mcp_origins,
                settings.mailbox,
                OperatorParts { roles_of: Some(routes::roles_of), ..settings.operator },
            ))),
            clock,
            ids,
        })
    }

    /// Shows another catalog from the next request on, everywhere at once.
    pub fn show_catalog(&self, catalog: Catalog) {
        self.sandbox.show_catalog(&catalog);
        let snapshot = Arc::new(self.snapshot().with_catalog(catalog));
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    fn snapshot(&self) -> Arc<CatalogSnapshot> {
        Arc::clone(&self.snapshot.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers one request. Never fails and never panics.
    async fn answer(&self, request: Request<Incoming>, connection: &Connection) -> Response<Full<Bytes>> {
        let (now, snapshot) = (self.clock.now(), self.snapshot());
        let (head, body) = request.into_parts();
        let mut unread = Some(body);
        let id = self.ids.of(&head.headers);
        // A reference count, so that the path outlives the request that is taken apart.
        let (method, uri, version) = (head.method.clone(), head.uri.clone(), head.version);
        let found = routes::find(uri.path());
        // Only where nothing may be found; operations are read by programs.
        let wants_page = found.is_none_or(|found| found.route.is_page()) && prefers_html(&head.headers);
        let reader = wants_page.then(|| snapshot.site.reader(&uri, &head.headers, now.time));
        let awaits_go_ahead = head.headers.contains_key(EXPECT);
        let client = self.proxies.client(connection.peer, &head.headers);
        let forwarded;
        let share = match &connection.share {
            Some(share) => share,
            None => {
                forwarded = self.client_shares.find(client);
                &forwarded
            }
        };
        let in_sandbox = sandbox::is_asked_for(found, &head.headers);
        let mut entry = LogEntry {
            service: self,
            in_sandbox: false,
            now,
            method: id::plain_method(&method),
            found,
            status: HUNG_UP,
            by_pause: false,
            id: &id,
            trace: CallTrace::default(),
        };

        let entered = match host::is_clear(version, &head.headers) {
            true => self.enter(found, share, connection),
            false => Err(HttpError::Host),
        };
        let mut answer = match entered {
            Ok(_places) => {
                let [network, site] = share.bodies();
                let quota = BodyQuota {
                    bytes: [Some(&self.bodies), network, site],
                    awaited: &self.awaited,
                    in_flight: &self.in_flight,
                };
                let body = SentBody::new(&mut unread, quota);
                let (peer, trace) = (connection.peer, &mut entry.trace);
                let answered_there = &mut entry.in_sandbox;
                let path = uri.path();
                let answering = async {
                    let snapshot = match in_sandbox {
                        // In a box of its own: few come here, and everybody's future would have room for it.
                        true => &Box::pin(self.sandbox.answers(&snapshot, found, &head.headers, now)).await?,
                        false => &snapshot,
                    };
                    *answered_there = snapshot.app.is_sandbox();
                    let exchange = Exchange { service: self, snapshot, peer, client, now, id: &id, path, trace };
                    route(exchange, found, Request::from_parts(head, body)).await
                };
                match unless_it_panics(pin!(answering)).await {
                    Ok(Ok(answer)) => answer,
                    Ok(Err(error)) => match (error, reader) {
                        (HttpError::NotFound(_), Some(reader)) => snapshot.site.not_found(reader, now.time),
                        (error, _) => error.answer(),
                    },
                    Err(Panicked) => HttpError::Internal.answer(),
                }
            }
            Err(error) => error.answer(),
        };

        // A sender who reads nothing before it has sent everything would see a broken pipe, or have its next request lost.
        // It holds its own caller's place meanwhile, and nobody else's. HTTP/2 has a way to say that the rest is not wanted.
        if version < Version::HTTP_2
            && let Some(body) = unread.filter(|body| !body.is_end_stream())
        {
            let _its_own_place = share.begin_request();
            if awaits_go_ahead || connection.is_reserve || !body::swallow(body, &self.awaited).await {
                answer.set(CONNECTION, HeaderValue::from_static("close"));
            }
        }
        if connection.is_reserve && version < Version::HTTP_2 {
            answer.set(CONNECTION, HeaderValue::from_static("close"));
        }
        answer.set(id::NAME, id.header());
        self.guard(&mut answer);
        if found.is_some_and(|found| found.route.sandbox) {
            answer.set(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex"));
        }
        if found.is_some_and(|found| found.route.open) {
            routes::open_to_all_origins(&mut answer);
        }
        entry.status = answer.status().as_u16();
        entry.by_pause = answer.is_by_pause() && !matches!(self.app.mail, Delivery::Off);
        answer.into_response()
    }

    /// What keeps a browser from doing more with an answer than showing it.
    fn guard(&self, answer: &mut Answer) {
        const POLICY: HeaderValue = HeaderValue::from_static(
            "default-src 'none'; img-src 'self'; style-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        );
        answer.set(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // JSON that is never taken for anything else loads nothing, sends nobody anywhere, and is nothing in a frame.
        if !answer.is_json() {
            answer.set_default(CONTENT_SECURITY_POLICY, POLICY);
            answer.set(REFERRER_POLICY, HeaderValue::from_static("strict-origin"));
        }
        if self.secure {
            answer.set(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
        }
    }

    /// A place among its caller's requests and a slot among all. Health checks bypass the limit.
    fn enter<'a>(
        &'a self,
        found: Option<FoundRoute<'_>>,
        share: &'a ClientShare,
        connection: &Connection,
    ) -> Result<(Option<RequestPlace<'a>>, Slot<'a>), HttpError> {
        let (slot, before) = Slot::take(&self.in_flight);
        if found.is_some_and(|found| found.route.always) {
            return Ok((None, slot));
        }
        if connection.is_reserve || before >= self.most_in_flight.get() {
            return Err(HttpError::Busy);
        }
        share.begin_request().map(|place| (Some(place), slot)).ok_or(HttpError::Busy)
    }

    /// The descriptor; at `/`, to a browser, the page to join on.
    async fn front(exchange: Exchange<'_>, request: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
        let front = request.uri().path() == "/" && prefers_html(request.headers());
        let mut answer = if front {
            exchange.show_page(|visit, request| Box::pin(join::show(visit, request)), ("", None), request).await?
        } else {
            exchange.snapshot.documents().descriptor.answer(request.headers())
        };
        answer.set(VARY, HeaderValue::from_static("Accept"));
        if let Some(links) = &exchange.snapshot.documents().links {
            answer.set(LINK, links.clone());
        }
        Ok(answer)
    }

    async fn mcp(exchange: Exchange<'_>, request: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
        let Exchange { snapshot, client, now, id, trace, .. } = exchange;
        Ok(snapshot.mcp.answer(request, client, now, id, trace).await)
    }

    /// What is wrong, as the operator's page shows it; none where there is no such page.
    pub async fn find_problems(&self, now: Moment) -> Option<FoundProblems> {
        self.snapshot().site.find_problems(now).await
    }

    /// Is the process alive?
    async fn health(_: Exchange<'_>, _: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
        Ok(Answer::json(StatusCode::OK, &b"{\"ok\":true}"[..]))
    }

    /// Whether the parts that requests need can be used. Says which one cannot.
    async fn ready(exchange: Exchange<'_>, _: Request<SentBody<'_>>) -> Result<Answer, HttpError> {
        let Exchange { service, id, now, .. } = exchange;
        let health = service.app.health(Some(id.as_str()), now.tick).await;
        let (None, Some(are_paused)) = (health.not_ready, health.are_sign_ups_paused) else {
            return Err(HttpError::NotReady);
        };
        let revision = Some(env!("UNIONHALL_REVISION")).filter(|revision| !revision.is_empty());
        let body = serde_json::json!({
            "ok": true, "store": "usable", "limits": health.limits, "mail": health.mail, "signUps": sign_ups_word(are_paused),
            "version": env!("CARGO_PKG_VERSION"), "revision": revision,
        });
        Ok(Answer::json(StatusCode::OK, body.to_string()))
    }
}

/// A connection, as its requests need to know it.
struct Connection {
    peer: IpAddr,
    /// Whose it is; none for a trusted proxy, whose requests are their clients'.
    share: Option<ClientShare>,
    /// Whether it is one of the last: only health is told there.
    is_reserve: bool,
}

fn declared_length(headers: &HeaderMap) -> u64 {
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    length.and_then(|text| text.parse().ok()).unwrap_or(0)
}
