//! `POST /partner/v1/webhooks/{id}/enable`

use super::{EXAMPLE_ID, WebhookChanged, WebhookRequest, a_day, example_request};
use crate::domain::partner::change::ChangeKind;
use crate::operations::partner::not_done;
use crate::operations::prelude::*;

pub struct EnableWebhook;

impl Operation for EnableWebhook {
    const SPEC: Spec = Spec {
        id: "enableWebhook",
        method: Method::Post,
        path: "/partner/v1/webhooks/{id}/enable",
        access: Access::Partner,
        effects: Effects::Changes,
        answer: Lifetime::Live,
        title: "Enable a webhook endpoint",
    };

    type Input = WebhookRequest;
    type Output = WebhookChanged;

    fn description(_: &Union) -> String {
        format!(
            "Enables an endpoint that was disabled: what still waits for it, and what happens from now on, is sent there. What happened \
             while it was disabled is not: read it with `listEvents`, or use `recoverWebhook`. {} This counts together with \
             `recoverWebhook`. Your contact is mailed.",
            a_day(ChangeKind::EndpointEnabled)
        )
    }

    async fn run(app: &App, caller: &Caller, input: WebhookRequest) -> Result<WebhookChanged, Error> {
        let id = input.id.0;
        app.self_service.enable_endpoint(caller.partner()?, id, caller.now).await.map_err(not_done::<Self>)?;
        Ok(WebhookChanged { ok: True, id })
    }

    fn example(_: &Catalog) -> Example<WebhookChanged> {
        Example { request: example_request(), answer: WebhookChanged { ok: True, id: EXAMPLE_ID } }
    }
}
