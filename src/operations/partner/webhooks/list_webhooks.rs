//! `GET /partner/v1/webhooks`

use super::Webhook;
use crate::domain::partner::endpoint::ENDPOINTS_OF_ONE;
use crate::operations::partner::{NoInput, not_done};
use crate::operations::prelude::*;

/// The partner's endpoints, oldest first.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookList {
    /// Always true.
    pub ok: True,
    pub webhooks: Vec<Webhook>,
    /// How many you may have.
    pub max: u32,
}

pub struct ListWebhooks;

impl Operation for ListWebhooks {
    const SPEC: Spec = Spec {
        id: "listWebhooks",
        method: Method::Get,
        path: "/partner/v1/webhooks",
        access: Access::Partner,
        effects: Effects::None,
        answer: Lifetime::Live,
        title: "List your webhook endpoints",
    };

    type Input = NoInput;
    type Output = WebhookList;

    fn description(_: &Union) -> String {
        format!(
            "Lists your webhook endpoints, and whether they work. You may have {ENDPOINTS_OF_ONE}. A test key lists those of the \
             sandbox, which are apart from the live ones."
        )
    }

    async fn run(app: &App, caller: &Caller, _: NoInput) -> Result<WebhookList, Error> {
        let listed = app.self_service.endpoints(caller.partner()?).await.map_err(not_done::<Self>)?;
        Ok(WebhookList { ok: True, webhooks: listed.into_iter().map(Webhook::of).collect(), max: ENDPOINTS_OF_ONE })
    }

    fn example(_: &Catalog) -> Example<WebhookList> {
        let answer = WebhookList { ok: True, webhooks: vec![Webhook::example()], max: ENDPOINTS_OF_ONE };
        Example { request: None, answer }
    }
}
