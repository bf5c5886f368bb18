//! `POST /partner/v1/webhooks/{id}/test`

use super::{WebhookRequest, a_day, example_request};
use crate::domain::partner::change::ChangeKind;
use crate::operations::partner::not_done;
use crate::operations::prelude::*;
use crate::partners::self_service::Pinged;

/// What the endpoint said to a ping.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestedWebhook {
    /// Always true: the ping was sent, or we tried to.
    pub ok: True,
    /// Whether the endpoint answered with 2xx.
    pub delivered: bool,
    /// The status of its answer; only there if it gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why there was no answer; only there if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

pub struct TestWebhook;

impl Operation for TestWebhook {
    const SPEC: Spec = Spec {
        id: "testWebhook",
        method: Method::Post,
        path: "/partner/v1/webhooks/{id}/test",
        access: Access::Partner,
        effects: Effects::Changes,
        answer: Lifetime::Live,
        title: "Send a ping to a webhook endpoint",
    };

    type Input = WebhookRequest;
    type Output = TestedWebhook;

    fn description(_: &Union) -> String {
        format!(
            "Sends a `ping` to one of your endpoints, signed as every message is, and says what it answered. It waits for up to 15 seconds \
             for that, changes nothing about the endpoint, and works while it is disabled. {}",
            a_day(ChangeKind::EndpointTested)
        )
    }

    async fn run(app: &App, caller: &Caller, input: WebhookRequest) -> Result<TestedWebhook, Error> {
        let pinged = app.self_service.test_endpoint(caller.partner()?, input.id.0, caller.now).await;
        Ok(match pinged.map_err(not_done::<Self>)? {
            Pinged::Answered(status) => {
                let delivered = (200..300).contains(&status);
                TestedWebhook { ok: True, delivered, status: Some(status), problem: None }
            }
            Pinged::Failed(why) => TestedWebhook { ok: True, delivered: false, status: None, problem: Some(why) },
        })
    }

    fn example(_: &Catalog) -> Example<TestedWebhook> {
        let answer = TestedWebhook { ok: True, delivered: true, status: Some(204), problem: None };
        Example { request: example_request(), answer }
    }
}
