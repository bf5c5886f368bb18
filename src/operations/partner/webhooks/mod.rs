//! What a partner does with its own webhook endpoints.

pub mod add_webhook;
pub mod enable_webhook;
pub mod get_webhook;
pub mod list_webhooks;
pub mod recover_webhook;
pub mod remove_webhook;
pub mod resend_webhook_event;
pub mod rotate_webhook_secret;
pub mod test_webhook;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::example_time;
use super::page::EndpointParameter;
use crate::domain::json::{True, open_enumeration};
use crate::domain::partner::change::ChangeKind;
use crate::domain::partner::endpoint::{EndpointId, EndpointRecord, ListedEndpoint};
use crate::domain::time::Timestamp;
use crate::operations::ObjectInput;

/// Which endpoint is meant.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WebhookRequest {
    /// The endpoint's `id`.
    pub id: EndpointParameter,
}

impl ObjectInput for WebhookRequest {
    const MAY_BE_EMPTY: bool = true;
}

/// The id of the examples' endpoint.
const EXAMPLE_ID: EndpointId = EndpointId(7);

/// How an endpoint does.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum WebhookState {
    Active,
    Failing,
    Disabled,
}

impl WebhookState {
    fn open_schema(generator: &mut SchemaGenerator) -> Schema {
        let closed = Self::json_schema(generator).to_value();
        open_enumeration(generator, "WebhookState", &closed["enum"])
    }
}

/// A webhook endpoint. Its secret is told when it is added or rotated, and never again.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    pub id: EndpointId,
    /// Where messages go.
    pub url: String,
    /// `failing` since the last attempt failed, `disabled` when nothing is sent there any more, `active` otherwise. More may come.
    #[schemars(schema_with = "WebhookState::open_schema")]
    pub state: WebhookState,
    #[schemars(extend("format" = "date-time"))]
    pub created_at: Timestamp,
    /// When its secret was last rotated; only there if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub rotated_at: Option<Timestamp>,
    /// When the last delivery succeeded; only there if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub delivered_at: Option<Timestamp>,
    /// Since when every attempt failed; only there if the last one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub failing_since: Option<Timestamp>,
    /// Why the last attempt failed; only there if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Since when nothing is sent there; only there if it is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub disabled_at: Option<Timestamp>,
    /// Messages that wait to be sent, or sent again. At most 1,000 are counted.
    pub waiting: u64,
    /// Messages of the last 30 days whose last attempt failed. At most 1,000 are counted.
    pub given_up: u64,
}

impl Webhook {
    fn of(listed: ListedEndpoint) -> Self {
        let ListedEndpoint { endpoint, waiting, given_up } = listed;
        let EndpointRecord { id, url, created_at, rotated_at, delivered_at, failing_since, disabled_at, .. } = endpoint;
        Self {
            id,
            url,
            state: match (disabled_at, failing_since) {
                (Some(_), _) => WebhookState::Disabled,
                (None, Some(_)) => WebhookState::Failing,
                (None, None) => WebhookState::Active,
            },
            created_at,
            rotated_at,
            delivered_at,
            failing_since,
            last_error: endpoint.disabled_why.or(endpoint.last_error),
            disabled_at,
            waiting,
            given_up,
        }
    }

    fn example() -> Self {
        Self {
            id: EXAMPLE_ID,
            url: "https://acme.example/hooks/union".to_owned(),
            state: WebhookState::Active,
            created_at: example_time("2026-11-16T09:00:00Z"),
            rotated_at: None,
            delivered_at: Some(example_time("2026-11-16T10:04:32Z")),
            failing_since: None,
            last_error: None,
            disabled_at: None,
            waiting: 0,
            given_up: 0,
        }
    }
}

/// What was done, and to which endpoint.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookChanged {
    /// Always true.
    pub ok: True,
    /// The endpoint's.
    pub id: EndpointId,
}

/// A request about the examples' endpoint.
fn example_request() -> Option<serde_json::Value> {
    Some(json!({ "id": EXAMPLE_ID }))
}

/// How often a kind of change may be asked for, in words.
fn a_day(kind: ChangeKind) -> String {
    format!("You can ask for this {} times in 24 hours, over all your keys.", kind.max_a_day())
}
