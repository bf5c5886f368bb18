//! `POST /partner/v1/webhooks`

use super::{EXAMPLE_ID, a_day};
use crate::domain::partner::change::ChangeKind;
use crate::domain::partner::endpoint::{ENDPOINTS_OF_ONE, EndpointId};
use crate::domain::webhook::url::EndpointUrl;
use crate::operations::partner::not_done;
use crate::operations::prelude::*;

/// Where messages are to go.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AddWebhookRequest {
    /// An `https` address whose host is on the public internet.
    #[schemars(length(min = 1, max = 2000), extend("format" = "uri"))]
    pub url: String,
}

impl ObjectInput for AddWebhookRequest {
    const MAY_BE_EMPTY: bool = true;
}

/// The endpoint, and its secret.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddedWebhook {
    /// Always true.
    pub ok: True,
    pub id: EndpointId,
    /// As it is written in our records.
    pub url: String,
    /// What messages are signed with. It is told only now.
    pub secret: String,
}

pub struct AddWebhook;

impl Operation for AddWebhook {
    const SPEC: Spec = Spec {
        id: "addWebhook",
        method: Method::Post,
        path: "/partner/v1/webhooks",
        access: Access::Partner,
        effects: Effects::Changes,
        answer: Lifetime::Live,
        title: "Add a webhook endpoint",
    };

    type Input = AddWebhookRequest;
    type Output = AddedWebhook;

    fn description(_: &Union) -> String {
        format!(
            "Adds an endpoint: from now on it is told what happens to every sign-up that you sent with an `Idempotency-Key`. Store the \
             `secret`, which is told only now; if the answer is lost, `rotateWebhookSecret` gives the endpoint another.\n\n\
             The address is checked now and at every delivery: `https`, and every address of the host on the public internet. \
             Its port is one of {}. You may have {ENDPOINTS_OF_ONE} endpoints. {} Your contact is mailed.",
            EndpointUrl::common_ports(),
            a_day(ChangeKind::EndpointAdded)
        )
    }

    async fn run(app: &App, caller: &Caller, input: AddWebhookRequest) -> Result<AddedWebhook, Error> {
        let added = app.self_service.add_endpoint(caller.partner()?, &input.url, caller.now).await;
        let (id, url, secret) = added.map_err(not_done::<Self>)?;
        Ok(AddedWebhook { ok: True, id, url: url.as_str().to_owned(), secret: secret.reveal() })
    }

    fn example(_: &Catalog) -> Example<AddedWebhook> {
        let url = "https://acme.example/hooks/union";
        Example {
            request: Some(json!({ "url": url })),
            answer: AddedWebhook {
                ok: True,
                id: EXAMPLE_ID,
                url: url.to_owned(),
                secret: "whsec_YSBzYW1wbGUsIGFuZCBub2JvZHkncyBzZWNyZXQh".to_owned(),
            },
        }
    }
}
