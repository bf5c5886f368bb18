//! Errors as HTTP responses: the only place that maps a kind of error to a status.

use std::borrow::Cow;

use hyper::StatusCode;
use hyper::header::{ALLOW, CONNECTION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};

use super::answer::Answer;
use crate::domain::api_key::BadKey;
use crate::domain::json::False;
use crate::error::{Error, ErrorBody, KeyProblem, MaybeOperations};

/// What can go wrong with a request: an operation's error, or one that only HTTP knows.
#[derive(Clone, PartialEq, Eq)]
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
    /// There is no `Host`, or there are several.
    Host,
    /// A mail service's report that does not prove whose it is.
    Unproved,
    /// A mail service's report that is not in the shape it documents.
    Report,
    Busy,
    /// A part that requests need cannot be used; the log says which and why.
    NotReady,
    /// A mistake of ours.
    Internal,
}

impl MaybeOperations for HttpError {
    fn operations(&self) -> Option<&Error> {
        match self {
            Self::Operation(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Error> for HttpError {
    fn from(error: Error) -> Self {
        Self::Operation(error)
    }
}

/// What is known of a kind of error before one is met.
struct KindFacts {
    met_by: MetBy,
    status: StatusCode,
    text: ErrorText,
}

macro_rules! kinds {
    ($($kind:ident $met_by:ident $status:ident $name:literal $meaning:literal $fix:literal)*) => {
        /// One of each error.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ErrorKind { $($kind),* }

        impl ErrorKind {
            /// In the order in which the documents list them.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            const fn facts(self) -> KindFacts {
                match self {
                    $(Self::$kind => KindFacts {
                        met_by: MetBy::$met_by,
                        status: StatusCode::$status,
                        text: ErrorText { name: $name, meaning: $meaning, fix: $fix },
                    },)*
                }
            }
        }
    };
}

// Each kind: who meets it, its status, its code or a word for it, what it means, what to do.
kinds! {
    InvalidJson Actions BAD_REQUEST "invalid_json"
        "the body is not one complete JSON text." "Fix the body; `error` says where it breaks."
    InvalidSubmission Actions BAD_REQUEST "invalid_submission"
        "the body does not fit the schema." "Fix what `error` lists: every mistake, with its path."
    AgentUnauthorized Actions UNAUTHORIZED "agent_unauthorized"
        "the API key is missing or not valid." "Send a valid key; ask the operator for one."
    RateLimited All TOO_MANY_REQUESTS "rate_limited"
        "too many requests." "Wait as many seconds as Retry-After says, then go on."
    BackendNotConfigured Actions INTERNAL_SERVER_ERROR "backend_not_configured"
        "sign-ups are turned off." "Tell the user to try later; the public data stays available."
    SaveFailed Actions INTERNAL_SERVER_ERROR "save_failed"
        "the record could not be saved, or the store's answer was lost; `error` says which."
        "Send the same request again in a minute: that is safe in either case."
    Busy All SERVICE_UNAVAILABLE "busy"
        "the service is busy." "Wait as many seconds as Retry-After says."
    Unavailable LiveReads SERVICE_UNAVAILABLE "away"
        "the figure cannot be read right now." "Wait as many seconds as Retry-After says."
    Timeout Actions REQUEST_TIMEOUT "timeout"
        "the body did not arrive in time." "Send the request again."
    TooLarge Others PAYLOAD_TOO_LARGE "too_large"
        "the body is larger than 1 MiB." "Send less."
    Broken Others BAD_REQUEST "broken"
        "the body ended early." "Send the request again."
    Host Others BAD_REQUEST "host"
        "the request names no host, or several." "Send one Host header."
    Unproved Others UNAUTHORIZED "unproved"
        "a mail service's report does not prove whose it is."
        "Sign it with the secret that the operator was given, now."
    Report Others BAD_REQUEST "report"
        "a mail service's report is not understood." "Send it as the service documents it."
    NotFound Others NOT_FOUND "not_found"
        "there is nothing at this path." "GET / lists the operations."
    MethodNotAllowed Others METHOD_NOT_ALLOWED "method"
        "the path does not allow this method." "The Allow header lists the allowed ones."
    NotReady Others SERVICE_UNAVAILABLE "not_ready"
        "the store cannot be used." "The operator's log says why."
    Internal Others INTERNAL_SERVER_ERROR "internal"
        "something went wrong on our side." "Try again later."
}

/// An error in words, for the OpenAPI document and the reference alike.
#[derive(Clone, Copy)]
pub struct ErrorText {
    /// Its code, or a word for it where the contract has none.
    pub name: &'static str,
    pub meaning: &'static str,
    /// What to do.
    pub fix: &'static str,
}

/// Who may meet an error.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MetBy {
    /// Callers of every operation.
    All,
    /// Callers of operations that read the store for their answer.
    LiveReads,
    /// Callers of agent actions.
    Actions,
    /// Whoever asks for something that is no operation, or makes us fail.
    Others,
}

impl ErrorKind {
    pub const fn met_by(self) -> MetBy {
        self.facts().met_by
    }

    /// What the documents say of it.
    pub const fn text(self) -> ErrorText {
        self.facts().text
    }

    /// One of the kind, as a caller could meet it; `limit` is the figure of the limit that it would be about.
    pub fn example(self, limit: u32) -> HttpError {
        match self {
            Self::InvalidJson => Error::InvalidJson("EOF while parsing a string at line 1 column 24".to_owned()).into(),
            Self::InvalidSubmission => {
                let what = "email: the address has no @; an address looks like ana@example.com.";
                Error::shapeless(what).into()
            }
            Self::AgentUnauthorized => Error::AgentUnauthorized(KeyProblem::Malformed(BadKey::Checksum)).into(),
            Self::RateLimited => Error::RateLimited { limit, retry_after: 17 }.into(),
            Self::BackendNotConfigured => Error::BackendNotConfigured.into(),
            Self::SaveFailed => Error::SaveFailed { cause: String::new() }.into(),
            Self::Unavailable => Error::Unavailable { cause: String::new() }.into(),
            Self::Busy => HttpError::Busy,
            Self::Timeout => HttpError::Timeout,
            Self::TooLarge => HttpError::TooLarge,
            Self::Broken => HttpError::Broken,
            Self::Host => HttpError::Host,
            Self::Unproved => HttpError::Unproved,
            Self::Report => HttpError::Report,
            Self::NotFound => HttpError::NotFound("There is nothing at this path.".to_owned()),
            Self::MethodNotAllowed => HttpError::MethodNotAllowed { allow: "GET, HEAD, OPTIONS" },
            Self::NotReady => HttpError::NotReady,
            Self::Internal => HttpError::Internal,
        }
    }
}

/// How long a caller is asked to wait when nobody can know, in seconds.
const SOON: u32 = 5;

impl HttpError {
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Operation(error) => match error {
                Error::InvalidJson(_) => ErrorKind::InvalidJson,
                Error::InvalidSubmission { .. } => ErrorKind::InvalidSubmission,
                Error::AgentUnauthorized(_) => ErrorKind::AgentUnauthorized,
                Error::RateLimited { .. } | Error::TooMany { .. } => ErrorKind::RateLimited,
                Error::BackendNotConfigured => ErrorKind::BackendNotConfigured,
                Error::SaveFailed { .. } | Error::OutcomeUnknown { .. } => ErrorKind::SaveFailed,
                Error::Unavailable { .. } => ErrorKind::Unavailable,
                Error::NotFound(_) => ErrorKind::NotFound,
            },
            Self::NotFound(_) => ErrorKind::NotFound,
            Self::MethodNotAllowed { .. } => ErrorKind::MethodNotAllowed,
            Self::TooLarge => ErrorKind::TooLarge,
            Self::Timeout => ErrorKind::Timeout,
            Self::Broken => ErrorKind::Broken,
            Self::Host => ErrorKind::Host,
            Self::Unproved => ErrorKind::Unproved,
            Self::Report => ErrorKind::Report,
            Self::Busy => ErrorKind::Busy,
            Self::NotReady => ErrorKind::NotReady,
            Self::Internal => ErrorKind::Internal,
        }
    }

    pub const fn status(&self) -> StatusCode {
        self.kind().facts().status
    }

    pub fn answer(&self) -> Answer {
        // Two texts and a constant always have a JSON form.
        let mut answer = Answer::json(self.status(), serde_json::to_vec(&self.body()).unwrap_or_default());
        match self {
            Self::Operation(Error::RateLimited { retry_after, .. } | Error::TooMany { retry_after, .. }) => {
                answer.set(RETRY_AFTER, HeaderValue::from(*retry_after));
            }
            Self::Operation(Error::AgentUnauthorized(_)) => {
                answer.set(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::Operation(Error::BackendNotConfigured) => answer = answer.by_pause(),
            Self::MethodNotAllowed { allow } => answer.set(ALLOW, HeaderValue::from_static(allow)),
            Self::Operation(Error::Unavailable { .. }) | Self::Busy | Self::NotReady => {
                answer.set(RETRY_AFTER, HeaderValue::from(SOON));
            }
            // What is left of the body is not worth reading.
            Self::Timeout | Self::Broken | Self::Host | Self::TooLarge => {
                answer.set(CONNECTION, HeaderValue::from_static("close"));
            }
            Self::Operation(
                Error::InvalidJson(_)
                | Error::InvalidSubmission { .. }
                | Error::SaveFailed { .. }
                | Error::OutcomeUnknown { .. }
                | Error::NotFound(_),
            )
            | Self::NotFound(_)
            | Self::Unproved
            | Self::Report
            | Self::Internal => {}
        }
        answer
    }

    pub fn body(&self) -> ErrorBody {
        let error: Cow<'static, str> = match self {
            Self::Operation(error) => return error.into(),
            Self::NotFound(message) => message.clone().into(),
            Self::MethodNotAllowed { allow } => format!("This path does not allow this method; use {allow}.").into(),
            Self::TooLarge => "The body is larger than 1 MiB.".into(),
            Self::Timeout => "The body did not arrive in time. Send the request again.".into(),
            Self::Broken => "The body ended early. Send the request again.".into(),
            Self::Host => "A request names one host in one Host header; this one has none, or several.".into(),
            Self::Unproved => {
                "This report does not prove whose it is: its signature, password or time is wrong.".into()
            }
            Self::Report => "This report is not in the shape that the mail service documents.".into(),
            Self::Busy => "The service is busy. Try again in a few seconds.".into(),
            Self::NotReady => "The store cannot be used right now; see the log.".into(),
            Self::Internal => "Something went wrong on our side; it was logged. Try again later.".into(),
        };
        ErrorBody { ok: False, error, code: None }
    }

    /// What the operator's log should say of it, if anything.
    pub fn cause(&self) -> Option<&str> {
        match self {
            Self::Operation(error) => error.cause(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_of_its_own_kind_and_has_a_name_of_its_own() {
        let mut names = std::collections::HashSet::new();
        for kind in ErrorKind::ALL {
            let example = kind.example(60);
            assert_eq!(example.kind(), *kind);
            assert!(names.insert(kind.text().name), "{kind:?}");
            // Where the contract has a code, the documents call the error by it.
            if let Some(code) = example.body().code {
                assert_eq!(serde_json::to_value(code).unwrap(), kind.text().name);
            }
        }
        assert_eq!(HttpError::Internal.answer().into_response().headers()["content-type"], "application/json");
    }
}
