//! `DELETE /partner/v1/webhooks/{id}`

use super::{EXAMPLE_ID, WebhookChanged, WebhookRequest, a_day, example_request};
use crate::domain::partner::change::ChangeKind;
use crate::operations::partner::not_done;
use crate::operations::prelude::*;

pub struct RemoveWebhook;

impl Operation for RemoveWebhook {
    const SPEC: Spec = Spec {
        id: "removeWebhook",
        method: Method::Delete,
        path: "/partner/v1/webhooks/{id}",
        access: Access::Partner,
        effects: Effects::Changes,
        answer: Lifetime::Live,
        title: "Remove a webhook endpoint",
    };

    type Input = WebhookRequest;
    type Output = WebhookChanged;

    fn description(_: &Union) -> String {
        format!(
            "Removes one of your endpoints, with everything that waits for it. `listEvents` still lists what happened. {} Your contact is \
             mailed.",
            a_day(ChangeKind::EndpointRemoved)
        )
    }

    async fn run(app: &App, caller: &Caller, input: WebhookRequest) -> Result<WebhookChanged, Error> {
        let id = input.id.0;
        app.self_service.remove_endpoint(caller.partner()?, id, caller.now).await.map_err(not_done::<Self>)?;
        Ok(WebhookChanged { ok: True, id })
    }

    fn example(_: &Catalog) -> Example<WebhookChanged> {
        Example { request: example_request(), answer: WebhookChanged { ok: True, id: EXAMPLE_ID } }
    }
}
