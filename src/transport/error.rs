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

/// An error in words, for the OpenAPI document and the reference alike.
#[derive(Debug, Clone, Copy)]
pub struct Described {
    /// Its code, or a word for it where the contract has none.
    pub name: &'static str,
    pub meaning: &'static str,
    /// What to do.
    pub mend: &'static str,
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
        let mut answer = Answer::json(self.status(), body(&self.body()));
        match self {
            Self::Operation(error) => tell_more(&mut answer, error),
            Self::MethodNotAllowed { allow } => answer.set(ALLOW, HeaderValue::from_static(allow)),
            Self::Busy | Self::NotReady => answer.set(RETRY_AFTER, HeaderValue::from(SOON)),
            // What is left of the body is not worth reading.
            Self::Timeout | Self::Broken | Self::TooLarge => answer.set(CONNECTION, HeaderValue::from_static("close")),
            Self::NotFound(_) | Self::Internal => {}
        }
        answer
    }

    pub const fn status(&self) -> StatusCode {
        match self {
            Self::Operation(error) => status(error),
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
            Self::Busy | Self::NotReady => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub fn body(&self) -> ErrorBody {
        let error: Cow<'static, str> = match self {
            Self::Operation(error) => return error.into(),
            Self::NotFound(message) => message.clone().into(),
            Self::MethodNotAllowed { allow } => format!("This path does not take this method; use {allow}.").into(),
            Self::TooLarge => "The body is larger than 1 MiB.".into(),
            Self::Timeout => "The body did not arrive in time. Send the request again.".into(),
            Self::Broken => "The body broke off before its end. Send the request again.".into(),
            Self::Busy => "The service is busy. Try again in a few seconds.".into(),
            Self::NotReady => "The store cannot be used right now; see the log.".into(),
            Self::Internal => "Something went wrong on our side; it was logged. Try again later.".into(),
        };
        ErrorBody { ok: False, error, code: None }
    }

    /// What the documents say of it.
    pub const fn describe(&self) -> Described {
        let (name, meaning, mend) = match self {
            Self::Operation(error) => match error {
                Error::InvalidJson(_) => (
                    "invalid_json",
                    "the body is not one complete JSON text.",
                    "Mend the body; the message says where it breaks.",
                ),
                Error::InvalidSubmission(_) => (
                    "invalid_submission",
                    "the body does not fit the schema.",
                    "Mend the field that the message names.",
                ),
                Error::AgentUnauthorized(_) => (
                    "agent_unauthorized",
                    "the API key is missing or not valid.",
                    "Send a valid key; ask the operator for one.",
                ),
                Error::RateLimited { .. } => {
                    ("rate_limited", "too many requests.", "Wait as many seconds as Retry-After says, then go on.")
                }
                Error::BackendNotConfigured => (
                    "backend_not_configured",
                    "sign-ups are switched off.",
                    "Tell the user to try later; the public data stays up.",
                ),
                Error::SaveFailed { .. } => (
                    "save_failed",
                    "the record could not be saved; nothing was changed.",
                    "Send the same request again in a minute.",
                ),
                Error::Unavailable { .. } => {
                    ("away", "the figure cannot be read right now.", "Wait as many seconds as Retry-After says.")
                }
            },
            Self::NotFound(_) => ("not_found", "there is nothing at this path.", "The message names the likely one."),
            Self::MethodNotAllowed { .. } => {
                ("method", "the path does not take this method.", "The Allow header lists those it takes.")
            }
            Self::TooLarge => ("too_large", "the body is larger than 1 MiB.", "Send less."),
            Self::Timeout => ("timeout", "the body did not arrive in time.", "Send the request again."),
            Self::Broken => ("broken", "the body broke off before its end.", "Send the request again."),
            Self::Busy => ("busy", "the service is busy.", "Wait as many seconds as Retry-After says."),
            Self::NotReady => ("not_ready", "the store cannot be used.", "The operator's log says why."),
            Self::Internal => ("internal", "something went wrong on our side.", "Try again later."),
        };
        Described { name, meaning, mend }
    }

    /// What the operator's log should say of it, if anything.
    pub fn cause(&self) -> Option<&str> {
        match self {
            Self::Operation(error) => error.cause(),
            _ => None,
        }
    }
}

/// The headers that go with an operation's error.
fn tell_more(answer: &mut Answer, error: &Error) {
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
}

fn body(body: &ErrorBody) -> Vec<u8> {
    // Two texts and a constant always have a JSON form.
    serde_json::to_vec(body).unwrap_or_default()
}
