//! An operation over REST: what dispatch needs from the request, and its outcome as an answer.

use std::cell::RefCell;
use std::fmt::{self, Write};

use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Request, StatusCode};

use super::Exchange;
use crate::domain::sign_up::Face;
use crate::error::Error;
use crate::http::request::authorization;
use crate::http::request::body::{self, SentBody};
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;
use crate::limiter::{Class, WINDOW};
use crate::operations::decode;
use crate::operations::dispatch::{Budget, Call};
use crate::operations::{Entry, Lifetime};

pub(super) async fn call(
    exchange: Exchange<'_>,
    operation: &'static Entry,
    request: Request<SentBody<'_>>,
) -> Result<Answer, HttpError> {
    let Exchange { service, faces, client, now, id, trace, .. } = exchange;
    let (head, body) = request.into_parts();
    let authorization = authorization::of(&head.headers);
    let call = Call { authorization, address: client, now, face: Face::Rest, client: None };
    let outcome = faces
        .dispatcher
        .dispatch(operation, call, trace, async || {
            check_content_type(&head.headers)?;
            if body::is_encoded(&head.headers) {
                return Err(Error::InvalidJson(decode::ENCODED.to_owned()).into());
            }
            body.read(body::LARGEST).await.map_err(|error| match error {
                // The contract has no 413 for the agent actions, and no 400 without a code.
                HttpError::TooLarge => Error::shapeless("The body is larger than 1 MiB.").into(),
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
                faces.tags[operation.position].attach(answer, &body, &head.headers)
            }
        },
        Err(error) => {
            if let Some(cause) = error.cause() {
                service.app.report_store(Some(id.as_str()), cause);
            }
            match error {
                HttpError::Operation(error) => {
                    HttpError::from(error.knowing(authorization::misplaced(&head.headers, head.uri.query())))
                }
                other => other,
            }
            .answer()
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
    let how = match &*kind {
        "application/x-www-form-urlencoded" => {
            "its Content-Type says that it is a form, as curl's -d does by itself; send the header Content-Type: \
             application/json (curl: -H 'Content-Type: application/json')"
        }
        "text/plain" => "its Content-Type says that it is plain text; send the header Content-Type: application/json",
        _ => "its Content-Type says that it is something else; send the header Content-Type: application/json",
    };
    Err(Error::InvalidJson(how.to_owned()).into())
}

const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// `RateLimit` and `RateLimit-Policy`, as the IETF's httpapi draft has them.
fn tell_budget(answer: &mut Answer, budget: Budget) {
    let Budget { class, limit, verdict } = budget;
    answer.set(RATELIMIT_POLICY, policy(class, limit));
    let mut left = ShortText::new();
    // Too long for the text only if a name grows; then the header is left out rather than cut.
    if write!(left, "\"{}\";r={};t={}", class.name(), verdict.remaining, verdict.reset_seconds()).is_ok()
        && let Ok(value) = HeaderValue::from_bytes(left.as_bytes())
    {
        answer.set(RATELIMIT, value);
    }
}

/// The policy of a budget. Each thread keeps the last one it told: nearly all callers share one, and making it anew would
/// cost every request two allocations.
fn policy(class: Class, limit: u32) -> HeaderValue {
    thread_local! {
        static LAST: RefCell<Option<(Class, u32, HeaderValue)>> = const { RefCell::new(None) };
    }
    LAST.with_borrow_mut(|last| match last {
        Some((of, at, value)) if (*of, *at) == (class, limit) => value.clone(),
        _ => {
            let text = format!("\"{}\";q={limit};w={}", class.name(), WINDOW.as_secs());
            let value = HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("\"\""));
            *last = Some((class, limit, value.clone()));
            value
        }
    })
}

/// A short text in place.
struct ShortText {
    bytes: [u8; 40],
    length: usize,
}

impl ShortText {
    fn new() -> Self {
        Self { bytes: [0; 40], length: 0 }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl fmt::Write for ShortText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
