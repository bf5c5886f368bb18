//! An operation over REST: what dispatch needs from the request, and its outcome as an answer.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Request, StatusCode};

use super::answer::Answer;
use super::error::HttpError;
use super::request_id::RequestId;
use super::{Edge, body};
use crate::clock::Moment;
use crate::domain::api_key::KeyId;
use crate::error::Error;
use crate::limiter::WINDOW;
use crate::operations::dispatch::{Budget, Call, dispatch};
use crate::operations::{Entry, Lifetime};

pub(super) async fn call(
    edge: &Arc<Edge>,
    operation: &'static Entry,
    request: Request<Incoming>,
    peer: IpAddr,
    now: Moment,
    id: &RequestId,
    key: &mut Option<KeyId>,
) -> Result<Answer, HttpError> {
    let (head, body) = request.into_parts();
    let call = Call {
        authorization: head.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes),
        address: edge.proxies.client(peer, &head.headers),
        now,
    };
    let outcome = dispatch(&edge.app, operation, call, key, async || {
        check_content_type(&head.headers)?;
        body::read(body).await.map_err(|error| match error {
            // The contract has no 413 for the agent actions, and no 400 without a code.
            HttpError::TooLarge => Error::InvalidSubmission("The body is larger than 1 MiB.".to_owned()).into(),
            HttpError::Broken => Error::InvalidJson("it broke off before its end; send it again".to_owned()).into(),
            other => other,
        })
    })
    .await;
    let mut answer = match outcome.result {
        Ok(body) => match operation.spec.answer {
            Lifetime::Live => Answer::json(StatusCode::OK, body),
            Lifetime::Fixed => {
                let answer = Answer::json(StatusCode::OK, body.clone());
                edge.tags[operation.position].attach(answer, &body, &head.headers)
            }
        },
        Err(error) => {
            if let Some(cause) = error.cause() {
                edge.app.report_store(Some(id.as_str()), cause);
            }
            error.answer()
        }
    };
    if let Some(budget) = outcome.budget {
        tell_budget(&mut answer, budget);
    }
    Ok(answer)
}

/// A body that says it is something else than JSON is not read as JSON; one that says nothing is.
fn check_content_type(headers: &HeaderMap) -> Result<(), HttpError> {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let kind = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind == "application/json" || (kind.contains('/') && kind.ends_with("+json")) {
        return Ok(());
    }
    Err(Error::InvalidJson("its Content-Type says that it is something else; send application/json".to_owned()).into())
}

/// `RateLimit` and `RateLimit-Policy`, as the IETF's httpapi draft has them.
fn tell_budget(answer: &mut Answer, budget: Budget) {
    let Budget { class, limit, verdict } = budget;
    let (name, window) = (class.name(), WINDOW.as_secs());
    let policy = format!("\"{name}\";q={limit};w={window}");
    let left = format!("\"{name}\";r={};t={}", verdict.remaining, verdict.reset_seconds());
    for (header, text) in [("ratelimit-policy", policy), ("ratelimit", left)] {
        if let Ok(value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(text)) {
            answer.set(HeaderName::from_static(header), value);
        }
    }
}
