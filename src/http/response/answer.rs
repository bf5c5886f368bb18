//! A response: a status, a body and headers.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION};
use hyper::{Response, StatusCode};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

pub struct Answer(Response<Full<Bytes>>);

/// What tells a refusal that the operator wanted from a fault.
#[derive(Clone, Copy)]
struct ByPause;

impl Answer {
    /// JSON that is true only now; whoever knows better says so in `Cache-Control`.
    pub fn json(status: StatusCode, body: impl Into<Bytes>) -> Self {
        let mut answer = Self::empty(status);
        *answer.0.body_mut() = Full::new(body.into());
        answer.set(CONTENT_TYPE, JSON);
        answer.set(CACHE_CONTROL, NO_STORE);
        answer
    }

    /// A page for people: true only now.
    pub fn html(status: StatusCode, page: String) -> Self {
        let mut answer = Self::json(status, page);
        answer.set(CONTENT_TYPE, HTML);
        answer
    }

    pub fn empty(status: StatusCode) -> Self {
        let mut response = Response::new(Full::default());
        *response.status_mut() = status;
        response.headers_mut().reserve(16);
        Self(response)
    }

    /// What was asked for has another address, for good.
    pub fn moved(to: HeaderValue) -> Self {
        let mut answer = Self::empty(StatusCode::MOVED_PERMANENTLY);
        answer.set(LOCATION, to);
        answer
    }

    pub fn set_body(&mut self, body: impl Into<Bytes>) {
        *self.0.body_mut() = Full::new(body.into());
    }

    pub fn set(&mut self, name: HeaderName, value: HeaderValue) {
        self.0.headers_mut().insert(name, value);
    }

    /// Adds a header beside those of the same name.
    pub fn append(&mut self, name: HeaderName, value: HeaderValue) {
        self.0.headers_mut().append(name, value);
    }

    /// Sets a header that was not set before.
    pub fn set_default(&mut self, name: HeaderName, value: HeaderValue) {
        self.0.headers_mut().entry(name).or_insert(value);
    }

    pub fn is_html(&self) -> bool {
        self.0.headers().get(CONTENT_TYPE) == Some(&HTML)
    }

    /// Whether it is data for programs: no browser makes a page of it.
    pub fn is_json(&self) -> bool {
        self.0.headers().get(CONTENT_TYPE) == Some(&JSON)
    }

    /// Says of a refusal that it is no fault: the operator takes no sign-ups.
    pub fn by_pause(mut self) -> Self {
        self.0.extensions_mut().insert(ByPause);
        self
    }

    pub fn is_by_pause(&self) -> bool {
        self.0.extensions().get::<ByPause>().is_some()
    }

    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    pub fn into_response(self) -> Response<Full<Bytes>> {
        self.0
    }
}
