//! What can go wrong with an operation, free of any transport.
//!
//! Each kind has the contract's code, a message for the caller that says what to change, and at most a cause for the
//! operator. The message may speak of the caller's own input; the cause may not: it is logged.

use std::borrow::Cow;
use std::fmt::Display;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::api_key::{BadKey, KeyId};
use crate::domain::json::False;

/// The machine-readable codes of the contract.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Code {
    InvalidJson,
    InvalidSubmission,
    AgentUnauthorized,
    RateLimited,
    BackendNotConfigured,
    SaveFailed,
}

impl Code {
    /// As callers read it, and the operator in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidJson => "invalid_json",
            Self::InvalidSubmission => "invalid_submission",
            Self::AgentUnauthorized => "agent_unauthorized",
            Self::RateLimited => "rate_limited",
            Self::BackendNotConfigured => "backend_not_configured",
            Self::SaveFailed => "save_failed",
        }
    }
}

/// What a caller was refused with, for the log.
#[derive(Clone, PartialEq, Eq)]
pub struct RefusedCall {
    pub code: Code,
    /// The known fields that it was about.
    pub fields: Vec<String>,
}

/// An error that may be an operation's.
pub trait MaybeOperations {
    fn operations(&self) -> Option<&Error>;
}

impl MaybeOperations for Error {
    fn operations(&self) -> Option<&Error> {
        Some(self)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The body is not one complete JSON text; says how.
    InvalidJson(String),
    /// The JSON does not fit the schema; says where and what would.
    InvalidSubmission {
        what: String,
        /// The known fields that it is about, for the log: never a name that the caller made up.
        fields: Vec<String>,
    },
    AgentUnauthorized(KeyProblem),
    RateLimited {
        limit: u32,
        retry_after: u32,
    },
    /// Not now: what was asked for has a bound of its own; says which, and after how many seconds to try again.
    TooMany {
        what: String,
        retry_after: u32,
    },
    BackendNotConfigured,
    /// The store could not commit; the cause is for the operator.
    SaveFailed {
        cause: String,
    },
    /// The store's answer was lost: it was saved, or it was not. The cause is for the operator.
    OutcomeUnknown {
        cause: String,
    },
    /// The store could not be read; the cause is for the operator. Never answered with a made-up figure.
    Unavailable {
        cause: String,
    },
    /// There is nothing of the caller's by that name; says what would be.
    NotFound(&'static str),
}

/// Why a key opens nothing. Only a caller with the whole key learns whether it is revoked, expired, suspended or unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyProblem {
    Missing,
    /// It came by a way on which none is read.
    Misplaced(KeyPlace),
    /// The header is empty, or there are two.
    Unclear,
    /// The key stands alone, without its scheme.
    NoScheme,
    Basic,
    NotBearer,
    /// There is something around it.
    Quoted,
    /// An example was copied and not filled in.
    Placeholder,
    Malformed(BadKey),
    Unknown,
    Expired,
    /// It has expired since it was rotated to this one.
    Rotated(KeyId),
    Revoked,
    /// The key is good; the operator suspended its partner.
    Suspended,
}

/// Where a key was looked for in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    OtherHeader,
    Query,
}

impl Error {
    /// The same, where a key is missing, with the place where one was seen.
    #[must_use]
    pub fn knowing(self, seen: Option<KeyPlace>) -> Self {
        match (self, seen) {
            (Self::AgentUnauthorized(KeyProblem::Missing), Some(place)) => {
                Self::AgentUnauthorized(KeyProblem::Misplaced(place))
            }
            (error, _) => error,
        }
    }

    pub const fn code(&self) -> Option<Code> {
        match self {
            Self::InvalidJson(_) => Some(Code::InvalidJson),
            Self::InvalidSubmission { .. } => Some(Code::InvalidSubmission),
            Self::AgentUnauthorized(_) => Some(Code::AgentUnauthorized),
            Self::RateLimited { .. } | Self::TooMany { .. } => Some(Code::RateLimited),
            Self::BackendNotConfigured => Some(Code::BackendNotConfigured),
            Self::SaveFailed { .. } | Self::OutcomeUnknown { .. } => Some(Code::SaveFailed),
            Self::Unavailable { .. } | Self::NotFound(_) => None,
        }
    }

    /// A submission that breaks the schema in no field that can be named.
    pub fn shapeless(what: &str) -> Self {
        Self::InvalidSubmission { what: what.to_owned(), fields: Vec::new() }
    }

    /// A submission with a field that is wrong; says how.
    pub fn in_field(field: &str, how: impl Display) -> Self {
        Self::InvalidSubmission { what: format!("{field}: {how}"), fields: vec![field.to_owned()] }
    }

    /// The store could not be read, and why.
    pub fn unread(why: impl ToString) -> Self {
        Self::Unavailable { cause: why.to_string() }
    }

    /// The store could not commit, and why.
    pub fn unsaved(why: impl ToString) -> Self {
        Self::SaveFailed { cause: why.to_string() }
    }

    /// What the log says of it; none where the contract has no code.
    pub fn refusal(&self) -> Option<RefusedCall> {
        let fields = match self {
            Self::InvalidSubmission { fields, .. } => fields.clone(),
            _ => Vec::new(),
        };
        self.code().map(|code| RefusedCall { code, fields })
    }

    /// For the caller, a developer or a model: what is wrong and what would be right.
    pub fn message(&self) -> Cow<'static, str> {
        match self {
            Self::InvalidJson(how) => format!("What was sent is not valid JSON: {how}").into(),
            Self::InvalidSubmission { what, .. } | Self::TooMany { what, .. } => what.clone().into(),
            Self::AgentUnauthorized(problem) => problem.message(),
            Self::RateLimited { limit, retry_after } => {
                let seconds = if *retry_after == 1 { "second" } else { "seconds" };
                format!(
                    "Too many requests: the limit is {limit} a minute. Wait {retry_after} {seconds}, then try again."
                )
                .into()
            }
            Self::BackendNotConfigured => {
                "Sign-ups are turned off right now. Nothing was saved; try again later.".into()
            }
            Self::SaveFailed { .. } => {
                "The record could not be saved. Nothing was changed; try again in a minute.".into()
            }
            Self::OutcomeUnknown { .. } => {
                "The store's answer was lost: the record may or may not have been saved. Sending the same again is safe; \
                 try it in a minute."
                    .into()
            }
            Self::Unavailable { .. } => "The figure cannot be read right now. Try again in a few seconds.".into(),
            Self::NotFound(what) => (*what).into(),
        }
    }

    /// For the operator's log alone; none where there is nothing for them to do.
    pub fn cause(&self) -> Option<&str> {
        match self {
            Self::SaveFailed { cause } | Self::OutcomeUnknown { cause } | Self::Unavailable { cause } => {
                Some(cause.as_str()).filter(|cause| !cause.is_empty())
            }
            Self::InvalidJson(_)
            | Self::InvalidSubmission { .. }
            | Self::AgentUnauthorized(_)
            | Self::RateLimited { .. }
            | Self::TooMany { .. }
            | Self::BackendNotConfigured
            | Self::NotFound(_) => None,
        }
    }
}

impl KeyProblem {
    fn message(self) -> Cow<'static, str> {
        const SEND: &str = "Send \"Authorization: Bearer <API_KEY>\" with a partner key; the operator issues them.";
        let wrong = match self {
            Self::Expired => return "The API key has expired. Ask the operator for a new one.".into(),
            Self::Rotated(next) => {
                return format!(
                    "The API key was rotated to key {next} and no longer works. Use that one; if you do not have it, ask the operator."
                )
                .into();
            }
            Self::Revoked => return "The API key was revoked. Ask the operator for a new one.".into(),
            Self::Suspended => {
                return "This partner is suspended, so none of its keys works. Ask the operator of the union.".into();
            }
            Self::Malformed(why) => return format!("The API key cannot be right: {why}. {SEND}").into(),
            Self::Missing => "This operation needs an API key.",
            Self::Misplaced(KeyPlace::OtherHeader) => {
                "A key in X-API-Key or a header like it is not read; this operation needs one."
            }
            Self::Misplaced(KeyPlace::Query) => {
                "A key in the address is not read, and others on its way may have logged it; this operation needs one."
            }
            Self::Unclear => "The Authorization header is empty, or there are two of them.",
            Self::NoScheme => "The Authorization header holds a key without the word Bearer before it.",
            Self::Basic => "The Authorization header is Basic, a user name and a password; a bearer key is needed.",
            Self::NotBearer => "The Authorization header is not a bearer key.",
            Self::Quoted => "The API key has quotes or brackets around it; send it bare.",
            Self::Placeholder => "What stands after Bearer is an example's placeholder and not a key; put yours there.",
            Self::Unknown => "The API key is not one of this service.",
        };
        format!("{wrong} {SEND}").into()
    }
}

/// The body of every answer that is not a success.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorBody {
    /// Always false.
    pub ok: False,
    /// What went wrong and what would be right, for a person or a model to read.
    pub error: Cow<'static, str>,
    /// The kind of error, for a program to act on; absent where the contract names none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
}

impl From<&Error> for ErrorBody {
    fn from(error: &Error) -> Self {
        Self { ok: False, error: error.message(), code: error.code() }
    }
}
