//! `GET /partner/v1/webhooks/{id}`

use super::{Webhook, WebhookRequest, example_request};
use crate::operations::partner::not_done;
use crate::operations::prelude::*;

/// The endpoint that was asked about.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookAnswer {
    /// Always true.
    pub ok: True,
    #[serde(flatten)]
    pub webhook: Webhook,
}

pub struct GetWebhook;

impl Operation for GetWebhook {
    const SPEC: Spec = Spec {
        id: "getWebhook",
        method: Method::Get,
        path: "/partner/v1/webhooks/{id}",
        access: Access::Partner,
        effects: Effects::None,
        answer: Lifetime::Live,
        title: "See how a webhook endpoint does",
    };

    type Input = WebhookRequest;
    type Output = WebhookAnswer;

    fn description(_: &Union) -> String {
        "Returns one of your webhook endpoints: whether it works, since when it fails and why, and how much waits for it. An id that is \
         not one of yours is 404."
            .to_owned()
    }

    async fn run(app: &App, caller: &Caller, input: WebhookRequest) -> Result<WebhookAnswer, Error> {
        let found = app.self_service.endpoint(caller.partner()?, input.id.0).await.map_err(not_done::<Self>)?;
        Ok(WebhookAnswer { ok: True, webhook: Webhook::of(found) })
    }

    fn example(_: &Catalog) -> Example<WebhookAnswer> {
        Example { request: example_request(), answer: WebhookAnswer { ok: True, webhook: Webhook::example() } }
    }
}
