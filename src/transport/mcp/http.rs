//! The protocol over HTTP: `POST /mcp`, one message, one answer.

use std::net::IpAddr;

use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue, ORIGIN, RETRY_AFTER};
use hyper::{HeaderMap, Request, StatusCode};

use super::envelope::Fault;
use super::{Context, Headers, Reply};
use crate::clock::Moment;
use crate::domain::api_key::KeyId;
use crate::loopback::is_loopback;
use crate::transport::answer::Answer;
use crate::transport::error::HttpError;
use crate::transport::{Edge, body};

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

pub(in crate::transport) async fn answer(
    edge: &Edge,
    request: Request<Incoming>,
    peer: IpAddr,
    now: Moment,
    key: &mut Option<KeyId>,
) -> Answer {
    let (head, body) = request.into_parts();
    if !edge.admits(&head.headers) {
        return from(Fault::origin().reply(None));
    }
    let text = match body::read(body).await {
        Ok(text) => text,
        Err(HttpError::TooLarge) => return from(Fault::too_large().reply(None)),
        Err(HttpError::Timeout) => return HttpError::Timeout.answer(),
        Err(_) => return from(Fault::broken().reply(None)),
    };
    let header = |name: HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let context = Context {
        authorization: head.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes),
        address: edge.proxies.client(peer, &head.headers),
        now,
        headers: Some(Headers { version: header(VERSION), method: header(METHOD), name: header(NAME) }),
    };
    from(edge.mcp.answer(&text, context, key).await)
}

fn from(reply: Reply) -> Answer {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    let mut answer = match reply.body {
        Some(body) => Answer::json(status, body),
        None => Answer::empty(status),
    };
    if let Some(seconds) = reply.retry_after {
        answer.set(RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

impl Edge {
    /// Programs send no `Origin`; browsers send that of the page, and only our own and the operator's may speak here: a
    /// page elsewhere must not reach a server on its reader's machine.
    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(ORIGIN) else { return true };
        let Ok(origin) = origin.to_str() else { return false };
        let own = self.origins.iter().chain(&self.mcp_origins).any(|known| known == origin);
        // On a development server this machine has several names.
        let here = || {
            let (scheme, name) = origin.split_once("://").unwrap_or_default();
            Edge::is_local(&self.app) && scheme.starts_with("http") && is_loopback(name)
        };
        own || here()
    }
}
