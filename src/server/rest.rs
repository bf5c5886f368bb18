//! An operation over REST: what dispatch needs from the request, and its outcome as an answer.

use std::cell::RefCell;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Request, StatusCode};

use super::Exchange;
use crate::domain::partner::idempotency::{BadIdempotencyKey, IdempotencyKey};
use crate::domain::sign_up::Channel;
use crate::error::Error;
use crate::http::request::authorization::{self, KeySearch};
use crate::http::request::body::{self, SentBody};
use crate::http::response::answer::Answer;
use crate::http::response::error::HttpError;
use crate::limiter::{Class, WINDOW};
use crate::operations::decode;
use crate::operations::dispatch::{Budget, Call};
use crate::operations::{Entry, Lifetime, Method};

pub(super) async fn call(
    exchange: Exchange<'_>,
    operation: &'static Entry,
    parameter: &str,
    request: Request<SentBody<'_>>,
) -> Result<Answer, HttpError> {
    let Exchange { snapshot, client, now, id, trace, .. } = exchange;
    let (head, body) = request.into_parts();
    let authorization = authorization::of(&head.headers);
    let key = if operation.spec.method == Method::Post { idempotency_key(&head.headers) } else { None };
    let call = Call {
        authorization,
        address: client,
        now,
        channel: Channel::Rest,
        client: None,
        idempotency_key: key.as_ref(),
    };
    let outcome = snapshot
        .dispatcher
        .dispatch(operation, call, trace, async || {
            let path = operation.spec.path;
            if operation.spec.method != Method::Post {
                return parameters(path, parameter, head.uri.query()).map(Bytes::from);
            }
            if operation.takes_input {
                check_content_type(&head.headers)?;
            }
            if body::is_encoded(&head.headers) {
                return Err(Error::InvalidJson(decode::ENCODED.to_owned()).into());
            }
            let sent = body.read(body::LARGEST).await.map_err(|error| match error {
                // The contract has no 413 for the agent actions, and no 400 without a code.
                HttpError::TooLarge => Error::shapeless("The body is larger than 1 MiB.").into(),
                HttpError::Broken => Error::InvalidJson("it ended early; send it again".to_owned()).into(),
                other => other,
            })?;
            if path.contains('{') { with_parameter(path, parameter, sent) } else { Ok(sent) }
        })
        .await;
    let mut answer = match outcome.result {
        Ok(body) => match operation.spec.answer {
            Lifetime::Live | Lifetime::Awaited => Answer::json(StatusCode::OK, body),
            Lifetime::Fixed => {
                let answer = Answer::json(StatusCode::OK, body.clone());
                snapshot.tags[operation.position].attach(answer, &body, &head.headers)
            }
        },
        Err(error) => {
            if let Some(cause) = error.cause() {
                snapshot.app.report_store(Some(id.as_str()), cause);
            }
            let search = KeySearch { headers: &head.headers, query: head.uri.query() };
            match error {
                HttpError::Operation(error) => HttpError::from(error.knowing(search.misplaced())).answer(),
                other => other.answer(),
            }
        }
    };
    if let Some(budget) = outcome.budget {
        tell_budget(&mut answer, budget);
    }
    if outcome.replayed {
        answer.set(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(answer)
}

/// The idempotency key of a request; two headers count as none.
fn idempotency_key(headers: &HeaderMap) -> Option<Result<IdempotencyKey, BadIdempotencyKey>> {
    let mut sent = headers.get_all(IDEMPOTENCY_KEY).iter();
    match (sent.next(), sent.next()) {
        (None, _) => None,
        (Some(one), None) => Some(IdempotencyKey::from_header(one.as_bytes())),
        (Some(_), Some(_)) => Some(Err(BadIdempotencyKey)),
    }
}

/// What a path and a query say, as the object that an operation reads its input from; what is said twice stands there twice.
fn parameters(pattern: &str, parameter: &str, query: Option<&str>) -> Result<String, HttpError> {
    let mut fields: Vec<_> = path_field(pattern, parameter)?.into_iter().collect();
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    fields.extend(pairs.map(|(name, value)| format!("{}:{}", text(&name), text(&value))));
    Ok(format!("{{{}}}", fields.join(",")))
}

/// The field that stands in the path.
fn path_field(pattern: &str, parameter: &str) -> Result<Option<String>, HttpError> {
    let Some((_, name)) = pattern.split_once('{') else { return Ok(None) };
    let name = name.split_once('}').map_or(name, |(name, _)| name);
    let decoded = percent_encoding::percent_decode_str(parameter).decode_utf8();
    let decoded = decoded.map_err(|_| Error::shapeless("The path is not UTF-8."))?;
    Ok(Some(format!("{}:{}", text(name), text(&decoded))))
}

fn text(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// An object that was sent, with what stands in the path as its first field; nothing that was sent is an object without fields. What
/// is no object is left as it is, for whoever reads it to tell.
fn with_parameter(pattern: &str, parameter: &str, sent: Bytes) -> Result<Bytes, HttpError> {
    let field = path_field(pattern, parameter)?.unwrap_or_default();
    let Some(rest) = sent.trim_ascii().strip_prefix(b"{") else {
        return Ok(if sent.trim_ascii().is_empty() { format!("{{{field}}}").into() } else { sent });
    };
    let comma: &[u8] = if rest.trim_ascii_start().starts_with(b"}") { b"" } else { b"," };
    Ok([b"{", field.as_bytes(), comma, rest].concat().into())
}

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

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
    let left = budget_text(class, verdict.remaining, verdict.reset_seconds());
    if let Ok(value) = HeaderValue::from_bytes(left.as_bytes()) {
        answer.set(RATELIMIT, value);
    }
}

fn budget_text(class: Class, left: u32, seconds: u32) -> ShortText {
    let mut text = ShortText::new();
    text.push(b"\"").push(class.name().as_bytes()).push(b"\";r=").push_number(left);
    text.push(b";t=").push_number(seconds);
    text
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

/// A short text in place, without the machinery of formatting, which would cost a request more than finding its route. Room for a
/// name of a dozen letters and two numbers; a test holds the names to that.
struct ShortText {
    bytes: [u8; 40],
    length: usize,
}

impl ShortText {
    fn new() -> Self {
        Self { bytes: [0; 40], length: 0 }
    }

    fn push(&mut self, text: &[u8]) -> &mut Self {
        let end = self.length + text.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(text);
            self.length = end;
        }
        self
    }

    fn push_number(&mut self, mut number: u32) -> &mut Self {
        let mut digits = [0; 10];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return self.push(&digits[first..]);
            }
        }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_budget_has_room() {
        for class in Class::ALL {
            for number in [0, 9, 10, u32::MAX] {
                let text = budget_text(class, number, number);
                let expected = format!("\"{}\";r={number};t={number}", class.name());
                assert_eq!(std::str::from_utf8(text.as_bytes()), Ok(&*expected));
            }
        }
    }
}
