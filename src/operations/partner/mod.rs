//! The partner API, `/partner/v1`: a separate table of operations beside the contract's, built from the same parts.

pub mod get_sign_up_status;
pub mod get_usage;
pub mod keys;
pub mod list_events;
pub mod list_inbox;
pub mod list_sign_ups;
pub mod page;
pub mod webhooks;

use self::keys::{list_keys, revoke_key, rotate_key};
use self::webhooks::{
    add_webhook, enable_webhook, get_webhook, list_webhooks, recover_webhook, remove_webhook, resend_webhook_event,
    rotate_webhook_secret, test_webhook,
};
use super::{Entry, Input, Operation, decode};
use crate::domain::api_key::KeyStatus;
use crate::domain::json::inline_schema;
use crate::domain::time::Timestamp;
use crate::error::{Error, KeyProblem};
use crate::partners::self_service::NotDone;

operations! {
    /// Every one of them, in the order of the documents.
    get_sign_up_status::GetSignUpStatus,
    list_sign_ups::ListSignUps,
    list_events::ListEvents,
    list_webhooks::ListWebhooks,
    add_webhook::AddWebhook,
    get_webhook::GetWebhook,
    remove_webhook::RemoveWebhook,
    test_webhook::TestWebhook,
    rotate_webhook_secret::RotateWebhookSecret,
    enable_webhook::EnableWebhook,
    recover_webhook::RecoverWebhook,
    resend_webhook_event::ResendWebhookEvent,
    list_keys::ListOwnKeys,
    rotate_key::RotateOwnKey,
    revoke_key::RevokeOwnKey,
    get_usage::GetUsage,
    list_inbox::ListInbox,
}

/// The input of an operation that takes none, and refuses what is sent anyway: the caller meant something by it.
pub struct NoInput;

inline_schema!(NoInput, schemars::json_schema!({ "type": "object", "additionalProperties": false }));

impl Input for NoInput {
    const EXPECTED: bool = false;
    const REFUSED: bool = true;

    fn decode(body: &[u8]) -> Result<Self, Error> {
        decode::nothing(body, "This operation takes no input.").map(|()| Self)
    }
}

/// A time of the examples.
fn example_time(text: &str) -> Timestamp {
    text.parse().unwrap_or(Timestamp::from_millis(0))
}

/// Why something was not done, as an error of that operation.
fn not_done<O: Operation>(problem: NotDone) -> Error {
    match problem {
        NotDone::NotFound(what) => Error::NotFound(what),
        NotDone::Refused("", what) => Error::shapeless(&format!("{what}.")),
        NotDone::Refused(field, what) => Error::in_field(field, format!("{what}.")),
        NotDone::KeyOver(KeyStatus::Expired) => Error::AgentUnauthorized(KeyProblem::Expired),
        NotDone::KeyOver(KeyStatus::Suspended) => Error::AgentUnauthorized(KeyProblem::Suspended),
        NotDone::KeyOver(KeyStatus::Revoked | KeyStatus::Valid) => Error::AgentUnauthorized(KeyProblem::Revoked),
        NotDone::Later(what, retry_after) => Error::TooMany { what, retry_after },
        NotDone::Failed(cause) if O::SPEC.effects.writes() => Error::SaveFailed { cause },
        NotDone::Failed(cause) => Error::Unavailable { cause },
        NotDone::Unknown(cause) => Error::OutcomeUnknown { cause },
    }
}
