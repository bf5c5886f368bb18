//! `POST /partner/v1/webhooks/{id}/recover`

use super::{EXAMPLE_ID, a_day};
use crate::domain::partner::change::ChangeKind;
use crate::domain::partner::endpoint::EndpointId;
use crate::domain::time::Timestamp;
use crate::operations::partner::not_done;
use crate::operations::partner::page::{EndpointParameter, Since};
use crate::operations::prelude::*;
use crate::partners::self_service::MAX_RECOVERED;

/// What an endpoint is to be told again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RecoverRequest {
    /// The endpoint's `id`.
    pub id: EndpointParameter,
    /// From when on: a date, or an exact time of RFC 3339.
    pub since: Since,
}

impl ObjectInput for RecoverRequest {
    const MAY_BE_EMPTY: bool = true;
}

/// What is sent again.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveredWebhook {
    /// Always true.
    pub ok: True,
    /// The endpoint's.
    pub id: EndpointId,
    /// How many events are sent again.
    pub resent: u64,
    /// Only there where there may be more: ask again with this as `since`. A few are then sent once more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub next_since: Option<Timestamp>,
}

pub struct RecoverWebhook;

impl Operation for RecoverWebhook {
    const SPEC: Spec = Spec {
        id: "recoverWebhook",
        method: Method::Post,
        path: "/partner/v1/webhooks/{id}/recover",
        access: Access::Partner,
        effects: Effects::Changes,
        answer: Lifetime::Live,
        title: "Enable a webhook endpoint and resend what it missed",
    };

    type Input = RecoverRequest;
    type Output = RecoveredWebhook;

    fn description(_: &Union) -> String {
        format!(
            "Enables an endpoint, and sends it every event since a time again, each with the same `webhook-id` as before. Events are kept \
             for 30 days. One request resends at most {MAX_RECOVERED} of them and says where to go on.\n\n{} This counts together with \
             `enableWebhook`. Your contact is mailed.",
            a_day(ChangeKind::EndpointEnabled)
        )
    }

    async fn run(app: &App, caller: &Caller, input: RecoverRequest) -> Result<RecoveredWebhook, Error> {
        let id = input.id.0;
        let done = app.self_service.recover_endpoint(caller.partner()?, id, input.since.0, caller.now).await;
        let done = done.map_err(not_done::<Self>)?;
        Ok(RecoveredWebhook { ok: True, id, resent: done.queued, next_since: done.next_since })
    }

    fn example(_: &Catalog) -> Example<RecoveredWebhook> {
        Example {
            request: Some(json!({ "id": EXAMPLE_ID, "since": "2026-11-16T09:00:00Z" })),
            answer: RecoveredWebhook { ok: True, id: EXAMPLE_ID, resent: 12, next_since: None },
        }
    }
}
