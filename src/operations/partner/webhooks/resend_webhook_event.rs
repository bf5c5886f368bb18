//! `POST /partner/v1/webhooks/{id}/resend`

use super::{EXAMPLE_ID, WebhookChanged, a_day};
use crate::domain::partner::change::ChangeKind;
use crate::operations::partner::not_done;
use crate::operations::partner::page::{EndpointParameter, KeyParameter};
use crate::operations::prelude::*;

/// Which event an endpoint is to be told again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ResendRequest {
    /// The endpoint's `id`.
    pub id: EndpointParameter,
    /// The `Idempotency-Key` that the sign-up was sent with.
    pub idempotency_key: KeyParameter,
}

impl ObjectInput for ResendRequest {
    const MAY_BE_EMPTY: bool = true;
}

pub struct ResendWebhookEvent;

impl Operation for ResendWebhookEvent {
    const SPEC: Spec = Spec {
        id: "resendWebhookEvent",
        method: Method::Post,
        path: "/partner/v1/webhooks/{id}/resend",
        access: Access::Partner,
        effects: Effects::Changes,
        answer: Lifetime::Live,
        title: "Resend one event to a webhook endpoint",
    };

    type Input = ResendRequest;
    type Output = WebhookChanged;

    fn description(_: &Union) -> String {
        format!(
            "Sends the event of one sign-up to an endpoint again, with the same `webhook-id` as before. A sign-up without a result is 404, \
             and an endpoint that is disabled is refused with 400. {}",
            a_day(ChangeKind::EventResent)
        )
    }

    async fn run(app: &App, caller: &Caller, input: ResendRequest) -> Result<WebhookChanged, Error> {
        let (id, key) = (input.id.0, input.idempotency_key.0);
        app.self_service.resend_event(caller.partner()?, id, key, caller.now).await.map_err(not_done::<Self>)?;
        Ok(WebhookChanged { ok: True, id })
    }

    fn example(_: &Catalog) -> Example<WebhookChanged> {
        Example {
            request: Some(json!({ "id": EXAMPLE_ID, "idempotencyKey": "sign-up-1042" })),
            answer: WebhookChanged { ok: True, id: EXAMPLE_ID },
        }
    }
}
