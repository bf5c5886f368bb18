//! HTTP: from a request to an answer, in one pass.
//!
//! Everything that every answer needs (the request's id, CORS, cache and security headers, the log line) is done here in
//! one function and not in a tower of layers: each layer would cost about as much as all of it together. This room must
//! never decide what an operation may do, and never reach past `operations` into a particular store or limiter.

mod accept;
pub mod answer;
mod body;
pub mod client;
pub mod descriptor;
pub mod dev_mailbox;
mod docs;
pub mod error;
mod fixed;
mod host;
mod join_form;
pub mod mcp;
pub mod metrics;
pub mod openapi;
mod pages;
mod pulse;
mod rarely;
pub mod request_id;
mod rest;
mod route;
pub mod server;
pub mod tls;
pub mod view;

use std::future::Future;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{
    CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};

use self::accept::prefers_html;
use self::answer::Answer;
use self::client::TrustedProxies;
use self::dev_mailbox::DevMailbox;
use self::error::HttpError;
use self::fixed::{Document, Tag};
use self::pages::Visit;
use self::request_id::{RequestId, RequestIds};
use self::route::Route;
use self::view::{Outcome, Union};
use crate::app::{App, Readiness};
use crate::clock::{Clock, Moment};
use crate::domain::api_key::KeyId;
use crate::log::RequestLine;
use crate::loopback::is_loopback;
use crate::metrics::Requests;
use crate::operations::ALL;

/// Requests that may be under way at once; past it callers are asked to come back.
const IN_FLIGHT: usize = 8192;

/// The service's face to HTTP.
#[derive(Debug)]
pub struct Edge {
    app: Arc<App>,
    clock: Clock,
    proxies: TrustedProxies,
    ids: RequestIds,
    openapi: Document,
    descriptor: Document,
    registry_entry: Document,
    docs: Document,
    style: Document,
    copy_script: Document,
    /// One for each operation.
    tags: Vec<Tag>,
    union: Union,
    /// Where our own forms are sent from.
    origins: Vec<String>,
    mcp: mcp::Server,
    /// Whose pages may speak MCP besides our own.
    mcp_origins: Vec<String>,
    /// Only on a development server.
    mailbox: Option<DevMailbox>,
    /// Whether callers come over HTTPS, as far as the base address says.
    secure: bool,
    in_flight: AtomicUsize,
    connections: AtomicUsize,
    /// Only where somebody reads the metrics.
    requests: Option<Requests>,
}

/// The status in the log of a request whose caller went away before the answer; its work may have been done.
const HUNG_UP: u16 = 499;

/// What a request leaves behind, in the log and in the metrics, written when it is over, however it ends.
struct LogEntry<'a> {
    edge: &'a Edge,
    now: Moment,
    method: &'static str,
    route: Option<Route<'a>>,
    status: u16,
    id: &'a RequestId,
    key: Option<KeyId>,
}

impl Drop for LogEntry<'_> {
    fn drop(&mut self) {
        let (log, requests) = (&self.edge.app.log, &self.edge.requests);
        if !log.requests() && requests.is_none() {
            return;
        }
        let took = self.edge.clock.tick().as_micros().saturating_sub(self.now.tick.as_micros());
        let took = Duration::from_micros(took);
        if let Some(requests) = requests {
            requests.count(route::place(self.route), self.status, took);
        }
        log.request(&RequestLine {
            at: self.now.time,
            method: self.method,
            route: self.route.map_or(route::NONE, |route| route.name()),
            status: self.status,
            took,
            request_id: self.id.as_str(),
            key: self.key,
        });
    }
}

impl Edge {
    pub fn new(
        app: Arc<App>,
        clock: Clock,
        proxies: TrustedProxies,
        ids: RequestIds,
        mailbox: Option<DevMailbox>,
        mcp_origins: Vec<String>,
        metrics: bool,
    ) -> Arc<Self> {
        let facts = openapi::Facts::of(&app);
        let described = openapi::document(&facts);
        Arc::new(Self {
            openapi: Document::new("application/json", described.to_string()),
            descriptor: Document::new("application/json", descriptor::of(&app)),
            registry_entry: Document::new("application/json", descriptor::registry_entry(&app)),
            docs: Document::new("text/html; charset=utf-8", docs::page(&facts, &described)),
            style: Document::new("text/css; charset=utf-8", docs::STYLE),
            copy_script: Document::new("text/javascript; charset=utf-8", docs::COPY_SCRIPT),
            mcp: mcp::Server::new(Arc::clone(&app)),
            mcp_origins,
            tags: ALL.iter().map(|_| Tag::default()).collect(),
            union: Union {
                name: app.name.clone(),
                contact_email: app.contact_email.clone(),
                postal: app.postal.clone(),
            },
            origins: [&app.base_url, &app.join_site].map(|url| host::origin(url)).into(),
            // Beside anything but this machine's own address it would show strangers' mail to strangers.
            mailbox: mailbox.filter(|_| Self::is_local(&app)),
            secure: app.base_url.starts_with("https://"),
            in_flight: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            requests: metrics.then(|| Requests::new(route::names())),
            app,
            clock,
            proxies,
            ids,
        })
    }

    /// Whether both addresses are this machine's own: a development server.
    pub fn is_local(app: &App) -> bool {
        [&app.base_url, &app.join_site].into_iter().all(|url| is_loopback(host::of_url(url)))
    }

    /// Answers one request. Never fails and never panics.
    pub async fn answer(self: &Arc<Self>, request: Request<Incoming>, peer: IpAddr) -> Response<Full<Bytes>> {
        let now = self.clock.now();
        let id = self.ids.of(request.headers());
        let method = request.method().clone();
        // A reference count, so that the path outlives the request that is taken apart.
        let uri = request.uri().clone();
        let route = Route::find(uri.path());
        // Only where nothing may be found; operations are read by programs.
        let wants_page = matches!(route, None | Some(Route::Page(_))) && prefers_html(request.headers());
        let mut entry = LogEntry {
            edge: self,
            now,
            method: request_id::plain_method(&method),
            route,
            status: HUNG_UP,
            id: &id,
            key: None,
        };

        let mut answer = match self.enter(route) {
            Ok(_place) => {
                let routed = pin!(self.route(route, request, peer, now, &id, &mut entry.key));
                match unless_it_panics(routed).await {
                    Ok(Ok(answer)) => answer,
                    Ok(Err(HttpError::NotFound(_))) if wants_page => {
                        Answer::html(StatusCode::NOT_FOUND, view::outcome(&self.union, Outcome::NotFound))
                    }
                    Ok(Err(error)) => error.answer(),
                    Err(Panicked) => HttpError::Internal.answer(),
                }
            }
            Err(busy) => busy.answer(),
        };

        answer.set(request_id::NAME, id.header());
        self.guard(&mut answer);
        if route.is_some_and(|route| route.is_open()) {
            route::open_to_all_origins(&mut answer);
        }
        entry.status = answer.status().as_u16();
        answer.into_response()
    }

    /// What is not an operation waits in a box of its own: a request's future is moved several times before it runs, and
    /// was 6.6 KB with room for all of these; it is 3.1 now.
    async fn route(
        self: &Arc<Self>,
        route: Option<Route<'_>>,
        request: Request<Incoming>,
        peer: IpAddr,
        now: Moment,
        id: &RequestId,
        key: &mut Option<KeyId>,
    ) -> Result<Answer, HttpError> {
        let Some(route) = route else { return Err(HttpError::NotFound(route::not_found(request.uri().path()))) };
        if *request.method() == Method::OPTIONS {
            return Ok(route.preflight());
        }
        if !route.takes(request.method()) {
            return Err(HttpError::MethodNotAllowed { allow: route.allow() });
        }
        if !route.reads_body() && declared_length(&request) > body::LARGEST {
            // Swallowed first: a sender who reads nothing before it has sent everything would see a broken pipe instead.
            Box::pin(body::read(request.into_body())).await?;
            return Err(HttpError::TooLarge);
        }
        match route {
            Route::Operation(operation) => rest::call(self, operation, request, peer, now, id, key).await,
            Route::Descriptor => {
                let front = request.uri().path() == "/" && prefers_html(request.headers());
                let mut answer = if front {
                    let visit = Visit { edge: self, peer, now, id };
                    Box::pin(visit.join_page(StatusCode::OK, None, &view::JoinForm::default())).await
                } else {
                    self.descriptor.answer(request.headers())
                };
                answer.set(VARY, HeaderValue::from_static("Accept"));
                Ok(answer)
            }
            Route::Mcp => Ok(Box::pin(mcp::http::answer(self, request, peer, now, key)).await),
            Route::Page(page) => Box::pin(Visit { edge: self, peer, now, id }.answer(page, request)).await,
            Route::OpenApi => Ok(self.openapi.answer(request.headers())),
            Route::RegistryEntry => Ok(self.registry_entry.answer(request.headers())),
            Route::Docs => Ok(self.docs.answer(request.headers())),
            Route::Style => Ok(self.style.answer(request.headers())),
            Route::CopyScript => Ok(self.copy_script.answer(request.headers())),
            Route::Health => Ok(Answer::json(StatusCode::OK, &b"{\"ok\":true}"[..])),
            Route::Ready => Box::pin(self.ready(id)).await,
        }
    }

    /// Whether the parts that requests need can be used. Says which one cannot.
    async fn ready(&self, id: &RequestId) -> Result<Answer, HttpError> {
        match self.app.readiness().await {
            Ok(Readiness { mail, limits }) => {
                let body = serde_json::json!({ "ok": true, "store": "usable", "limits": limits, "mail": mail });
                Ok(Answer::json(StatusCode::OK, body.to_string()))
            }
            Err(cause) => {
                self.app.report_store(Some(id.as_str()), &cause);
                Err(HttpError::NotReady)
            }
        }
    }

    /// What keeps a browser from doing more with an answer than showing it.
    fn guard(&self, answer: &mut Answer) {
        const POLICY: HeaderValue = HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        );
        answer.set(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        answer.set_default(CONTENT_SECURITY_POLICY, POLICY);
        answer.set(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
        if self.secure {
            answer.set(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
        }
    }

    /// A place among the requests in flight. Health is told however many there are: a busy node is not a dead one.
    fn enter(&self, route: Option<Route<'_>>) -> Result<Place<'_>, HttpError> {
        let (place, before) = Place::take(&self.in_flight);
        let exempt = matches!(route, Some(Route::Health | Route::Ready));
        if before < IN_FLIGHT || exempt { Ok(place) } else { Err(HttpError::Busy) }
    }
}

/// A request's place among those in flight, given back when it is answered or its caller hangs up; a connection's
/// among those open.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    /// One more, with how many there were before.
    fn take(count: &'a AtomicUsize) -> (Self, usize) {
        let before = count.fetch_add(1, Ordering::Relaxed);
        (Self(count), before)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn declared_length(request: &Request<Incoming>) -> u64 {
    let length = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    length.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[derive(Debug)]
struct Panicked;

/// A panic is a mistake of ours; it costs its own request and no other.
async fn unless_it_panics<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Result<T, Panicked> {
    std::future::poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_answer_in_json() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            assert!(unless_it_panics(pin!(async { panic!("on purpose") })).await.is_err());
            assert_eq!(unless_it_panics(pin!(async { 5 })).await.unwrap(), 5);
        });
        let answer = HttpError::Internal.answer();
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let response = answer.into_response();
        assert_eq!(response.headers()["content-type"], "application/json");
    }
}
