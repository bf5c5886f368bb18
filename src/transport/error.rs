//! Errors as HTTP answers: the one place where a kind of error meets a status.

use std::borrow::Cow;

use hyper::StatusCode;
use hyper::header::{ALLOW, CONNECTION, HeaderValue, RETRY_AFTER};

use super::answer::Answer;
use crate::error::{Error, ErrorBody};
use crate::operations::constant::False;

/// What can go wrong with a request: an operation's error, or one that only HTTP knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpError {
    Operation(Error),
    NotFound(String),
    MethodNotAllowed {
        allow: &'static str,
    },
    TooLarge,
    Timeout,
    /// The body broke off, or its framing is wrong.
    Broken,
    Busy,
    /// A part that requests need cannot be used; the log says which and why.
    NotReady,
    /// A mistake of ours.
    Internal,
}

impl From<Error> for HttpError {
    fn from(error: Error) -> Self {
        Self::Operation(error)
    }
}

pub const fn status(error: &Error) -> StatusCode {
    match error {
        Error::InvalidJson(_) | Error::InvalidSubmission(_) => StatusCode::BAD_REQUEST,
        Error::AgentUnauthorized(_) => StatusCode::UNAUTHORIZED,
        Error::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
        Error::BackendNotConfigured | Error::SaveFailed { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        Error::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// How long a caller is asked to wait when nobody can know, in seconds.
const SOON: u32 = 5;

impl HttpError {
    pub fn answer(&self) -> Answer {
        let (status, message): (_, Cow<'static, str>) = match self {
            Self::Operation(error) => return operation(error),
            Self::NotFound(message) => (StatusCode::NOT_FOUND, message.clone().into()),
            Self::MethodNotAllowed { allow } => {
                (StatusCode::METHOD_NOT_ALLOWED, format!("This path does not take this method; use {allow}.").into())
            }
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "The body is larger than 1 MiB.".into()),
            Self::Timeout => {
                (StatusCode::REQUEST_TIMEOUT, "The body did not arrive in time. Send the request again.".into())
            }
            Self::Broken => {
                (StatusCode::BAD_REQUEST, "The body broke off before its end. Send the request again.".into())
            }
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, "The service is busy. Try again in a few seconds.".into()),
            Self::NotReady => {
                (StatusCode::SERVICE_UNAVAILABLE, "The store cannot be used right now; see the log.".into())
            }
            Self::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "Something went wrong on our side; it was logged. Try again later.".into(),
            ),
        };
        let mut answer = Answer::json(status, body(&ErrorBody { ok: False, error: message, code: None }));
        match self {
            Self::MethodNotAllowed { allow } => answer.set(ALLOW, HeaderValue::from_static(allow)),
            Self::Busy | Self::NotReady => answer.set(RETRY_AFTER, HeaderValue::from(SOON)),
            // What is left of the body is not worth reading.
            Self::Timeout | Self::Broken | Self::TooLarge => answer.set(CONNECTION, HeaderValue::from_static("close")),
            Self::Operation(_) | Self::NotFound(_) | Self::Internal => {}
        }
        answer
    }

    /// What the operator's log should say of it, if anything.
    pub fn cause(&self) -> Option<&str> {
        match self {
            Self::Operation(error) => error.cause(),
            _ => None,
        }
    }
}

fn operation(error: &Error) -> Answer {
    let mut answer = Answer::json(status(error), body(&ErrorBody::from(error)));
    match error {
        Error::RateLimited { retry_after, .. } => answer.set(RETRY_AFTER, HeaderValue::from(*retry_after)),
        Error::Unavailable { .. } => answer.set(RETRY_AFTER, HeaderValue::from(SOON)),
        Error::AgentUnauthorized(_) => {
            answer.set(hyper::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        Error::InvalidJson(_)
        | Error::InvalidSubmission(_)
        | Error::BackendNotConfigured
        | Error::SaveFailed { .. } => {}
    }
    answer
}

fn body(body: &ErrorBody) -> Vec<u8> {
    // Two texts and a constant always have a JSON form.
    serde_json::to_vec(body).unwrap_or_default()
}
