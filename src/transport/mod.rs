//! HTTP: from a request to an answer, in one pass.
//!
//! Everything that every answer needs (the request's id, CORS, cache and security headers, the log line) is done here in
//! one function and not in a tower of layers: each layer would cost about as much as all of it together. This room must
//! never decide what an operation may do, and never reach past `operations` into a particular store or limiter.

pub mod answer;
mod body;
pub mod client;
pub mod descriptor;
mod docs;
pub mod error;
mod fixed;
pub mod openapi;
mod pulse;
pub mod request_id;
mod rest;
mod route;
pub mod server;
pub mod tls;
pub mod view;

use std::future::Future;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{
    CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, VARY,
};
use hyper::{Method, Request, Response, StatusCode};

use self::answer::Answer;
use self::client::TrustedProxies;
use self::error::HttpError;
use self::fixed::{Document, Tag};
use self::request_id::{RequestId, RequestIds};
use self::route::Route;
use crate::app::App;
use crate::clock::{Clock, Moment};
use crate::domain::api_key::KeyId;
use crate::log::RequestLine;
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
    docs: Document,
    style: Document,
    /// One for each operation.
    tags: Vec<Tag>,
    /// Whether callers come over HTTPS, as far as the base address says.
    secure: bool,
    in_flight: AtomicUsize,
}

/// What is found out about a request while it is answered, for its log line.
#[derive(Debug, Default)]
struct Notes {
    key: Option<KeyId>,
}

impl Edge {
    pub fn new(app: Arc<App>, clock: Clock, proxies: TrustedProxies, ids: RequestIds) -> Arc<Self> {
        let facts = openapi::Facts::of(&app);
        let described = openapi::document(&facts);
        Arc::new(Self {
            openapi: Document::new("application/json", described.to_string()),
            descriptor: Document::new("application/json", descriptor::of(&app)),
            docs: Document::new("text/html; charset=utf-8", docs::page(&facts, &described)),
            style: Document::new("text/css; charset=utf-8", docs::STYLE),
            tags: ALL.iter().map(|_| Tag::default()).collect(),
            secure: app.base_url.starts_with("https://"),
            in_flight: AtomicUsize::new(0),
            app,
            clock,
            proxies,
            ids,
        })
    }

    /// Answers one request. Never fails and never panics.
    pub async fn answer(self: &Arc<Self>, request: Request<Incoming>, peer: IpAddr) -> Response<Full<Bytes>> {
        let now = self.clock.now();
        let id = self.ids.of(request.headers());
        let method = request.method().clone();
        let route = Route::find(request.uri().path());
        let mut notes = Notes::default();

        let mut answer = match self.enter(route) {
            Ok(_place) => match unless_it_panics(self.route(route, request, peer, now, &id, &mut notes)).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(error)) => error.answer(),
                Err(Panicked) => HttpError::Internal.answer(),
            },
            Err(busy) => busy.answer(),
        };

        answer.set(HeaderName::from_static("x-request-id"), id.header());
        self.guard(&mut answer);
        if route.is_some_and(|route| route.is_open()) {
            route::open_to_all_origins(&mut answer);
        }
        if self.app.log.requests() {
            let took = self.clock.now().tick.as_micros().saturating_sub(now.tick.as_micros());
            self.app.log.request(&RequestLine {
                at: now.time,
                method: request_id::plain_method(&method),
                route: route.map_or("(none)", |route| route.name()),
                status: answer.status().as_u16(),
                took: Duration::from_micros(took),
                request_id: id.as_str(),
                key: notes.key,
            });
        }
        answer.into_response()
    }

    async fn route(
        self: &Arc<Self>,
        route: Option<Route>,
        request: Request<Incoming>,
        peer: IpAddr,
        now: Moment,
        id: &RequestId,
        notes: &mut Notes,
    ) -> Result<Answer, HttpError> {
        let Some(route) = route else { return Err(HttpError::NotFound(route::not_found(request.uri().path()))) };
        if *request.method() == Method::OPTIONS {
            return Ok(route.preflight());
        }
        if !route.takes(request.method()) {
            return Err(HttpError::MethodNotAllowed { allow: route.allow() });
        }
        if !route.reads_body() && declared_length(&request) > body::LARGEST {
            return Err(HttpError::TooLarge);
        }
        match route {
            Route::Operation(operation) => rest::call(self, operation, request, peer, now, id, notes).await,
            Route::Descriptor => {
                let mut answer = self.descriptor.answer(request.headers());
                answer.set(VARY, HeaderValue::from_static("Accept"));
                Ok(answer)
            }
            Route::OpenApi => Ok(self.openapi.answer(request.headers())),
            Route::Docs => Ok(self.docs.answer(request.headers())),
            Route::Style => Ok(self.style.answer(request.headers())),
            Route::Health => Ok(Answer::json(StatusCode::OK, &b"{\"ok\":true}"[..])),
            Route::Ready => self.ready(id).await,
        }
    }

    /// Whether the parts that requests need can be used. Says which one cannot.
    async fn ready(&self, id: &RequestId) -> Result<Answer, HttpError> {
        match self.app.readiness().await {
            Ok(mail) => {
                let body = serde_json::json!({ "ok": true, "store": "usable", "mail": mail });
                Ok(Answer::json(StatusCode::OK, body.to_string()))
            }
            Err(cause) => {
                self.app.log.problem(Some(id.as_str()), &cause);
                Err(HttpError::NotReady)
            }
        }
    }

    /// What keeps a browser from doing more with an answer than showing it.
    fn guard(&self, answer: &mut Answer) {
        const POLICY: HeaderValue = HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        );
        answer.set(HeaderName::from_static("x-content-type-options"), HeaderValue::from_static("nosniff"));
        answer.set(CONTENT_SECURITY_POLICY, POLICY);
        answer.set(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
        if self.secure {
            answer.set(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
        }
    }

    /// A place among the requests in flight. Health is told however many there are: a busy node is not a dead one.
    fn enter(&self, route: Option<Route>) -> Result<Place<'_>, HttpError> {
        let place = Place(&self.in_flight);
        let before = self.in_flight.fetch_add(1, Ordering::Relaxed);
        let exempt = matches!(route, Some(Route::Health | Route::Ready));
        if before < IN_FLIGHT || exempt { Ok(place) } else { Err(HttpError::Busy) }
    }
}

/// A request's place among those in flight, given back when it is answered or its caller hangs up.
struct Place<'a>(&'a AtomicUsize);

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
async fn unless_it_panics<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut future = pin!(future);
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
            assert!(unless_it_panics(async { panic!("on purpose") }).await.is_err());
            assert_eq!(unless_it_panics(async { 5 }).await.unwrap(), 5);
        });
        let answer = HttpError::Internal.answer();
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let response = answer.into_response();
        assert_eq!(response.headers()["content-type"], "application/json");
    }
}
