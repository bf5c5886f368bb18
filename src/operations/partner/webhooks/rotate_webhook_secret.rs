//! `POST /partner/v1/webhooks/{id}/rotate`

use super::{EXAMPLE_ID, a_day};
use crate::domain::partner::change::ChangeKind;
use crate::domain::partner::endpoint::EndpointId;
use crate::domain::time::Timestamp;
use crate::domain::webhook::OLD_SECRET_SIGNS_FOR;
use crate::operations::decode;
use crate::operations::partner::page::EndpointParameter;
use crate::operations::partner::{example_time, not_done};
use crate::operations::prelude::*;

/// Whose secret is rotated.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RotateSecretRequest {
    /// The endpoint's `id`.
    pub id: EndpointParameter,
    /// Even within 24 hours of the last rotation: the oldest of the three secrets then ends at once.
    #[serde(default, deserialize_with = "decode::present")]
    #[schemars(extend("default" = false))]
    pub now: Option<bool>,
}

impl ObjectInput for RotateSecretRequest {
    const MAY_BE_EMPTY: bool = true;
}

/// The next secret of an endpoint.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RotatedSecret {
    /// Always true.
    pub ok: True,
    /// The endpoint's.
    pub id: EndpointId,
    /// What messages are signed with from now on. It is told only now.
    pub secret: String,
    /// Until when the secret before it signs beside it.
    #[schemars(extend("format" = "date-time"))]
    pub old_secret_signs_until: Timestamp,
}

pub struct RotateWebhookSecret;

impl Operation for RotateWebhookSecret {
    const SPEC: Spec = Spec {
        id: "rotateWebhookSecret",
        method: Method::Post,
        path: "/partner/v1/webhooks/{id}/rotate",
        access: Access::Partner,
        effects: Effects::Changes,
        answer: Lifetime::Live,
        title: "Rotate the secret of a webhook endpoint",
    };

    type Input = RotateSecretRequest;
    type Output = RotatedSecret;

    fn description(_: &Union) -> String {
        format!(
            "Gives an endpoint the next secret. Both the old and the new one sign every message for {} hours, so that you can change it \
             without missing any. Within that time another rotation is refused with 400, unless `now` is true, and does not count. {} Your contact is mailed.",
            OLD_SECRET_SIGNS_FOR.as_secs() / 3600,
            a_day(ChangeKind::SecretRotated)
        )
    }

    async fn run(app: &App, caller: &Caller, input: RotateSecretRequest) -> Result<RotatedSecret, Error> {
        let (id, ends_oldest) = (input.id.0, input.now.unwrap_or(false));
        let rotated = app.self_service.rotate_secret(caller.partner()?, id, ends_oldest, caller.now).await;
        let secret = rotated.map_err(not_done::<Self>)?.reveal();
        Ok(RotatedSecret { ok: True, id, secret, old_secret_signs_until: caller.now.plus(OLD_SECRET_SIGNS_FOR) })
    }

    fn example(_: &Catalog) -> Example<RotatedSecret> {
        Example {
            request: Some(json!({ "id": EXAMPLE_ID, "now": true })),
            answer: RotatedSecret {
                ok: True,
                id: EXAMPLE_ID,
                secret: "whsec_YW5vdGhlciBzYW1wbGUsIG5vYm9keSdzIHNlY3JldCE=".to_owned(),
                old_secret_signs_until: example_time("2026-11-17T09:00:00Z"),
            },
        }
    }
}
