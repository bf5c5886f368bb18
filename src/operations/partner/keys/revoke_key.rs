//! `POST /partner/v1/keys/revoke`

use super::EXAMPLE_KEY;
use crate::domain::json::inline_schema;
use crate::domain::time::Timestamp;
use crate::operations::partner::{example_time, not_done};
use crate::operations::prelude::*;
use crate::operations::{Input, decode};

/// Nothing: a caller who names a key expects to revoke another one than that of the request.
pub struct RevokeKeyRequest;

inline_schema!(RevokeKeyRequest, schemars::json_schema!({ "type": "object", "additionalProperties": false }));

impl Input for RevokeKeyRequest {
    const EXPECTED: bool = false;
    const REFUSED: bool = true;

    fn decode(body: &[u8]) -> Result<Self, Error> {
        let refusal = "This operation takes no input; it ends the key that is presented.";
        decode::nothing(body, refusal).map(|()| Self)
    }
}

/// The key of the request, which no longer works.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RevokedKey")]
pub struct EndedKey {
    /// Always true.
    pub ok: True,
    pub id: String,
    #[schemars(extend("format" = "date-time"))]
    pub revoked_at: Timestamp,
    /// Whether no other key of yours works: then your webhooks wait until the operator issues you another.
    pub was_last: bool,
    /// The id of the key that it was rotated to, which goes on working; only there if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
}

pub struct RevokeOwnKey;

impl Operation for RevokeOwnKey {
    const SPEC: Spec = Spec {
        id: "revokeKey",
        method: Method::Post,
        path: "/partner/v1/keys/revoke",
        access: Access::Partner,
        effects: Effects::Changes,
        answer: Lifetime::Live,
        title: "Revoke the API key of this request",
    };

    type Input = RevokeKeyRequest;
    type Output = EndedKey;

    fn description(_: &Union) -> String {
        "Revokes the key that you send, and no other: within two seconds it no longer works, and that cannot be undone. Mail that it asked \
         for and that has not left is held. A key that it was rotated to goes on working. No limit of a day holds for this. \
         Send no input: what names anything is refused with 400.\n\n\
         While no key of yours works, your webhooks wait, and in the sandbox your inbox page is shut. Your contact is mailed."
            .to_owned()
    }

    async fn run(app: &App, caller: &Caller, _: RevokeKeyRequest) -> Result<EndedKey, Error> {
        let revoked = app.self_service.revoke_key(caller.partner()?, caller.now).await.map_err(not_done::<Self>)?;
        let revoked_at = revoked.key.revoked_at.unwrap_or(caller.now);
        app.note_revoked(revoked.key.id, revoked_at).await;
        Ok(EndedKey {
            ok: True,
            id: revoked.key.id.to_string(),
            revoked_at,
            was_last: revoked.was_last,
            replaced_by: revoked.key.replaced_by.map(|id| id.to_string()),
        })
    }

    fn example(_: &Catalog) -> Example<EndedKey> {
        Example {
            request: None,
            answer: EndedKey {
                ok: True,
                id: EXAMPLE_KEY.to_owned(),
                revoked_at: example_time("2026-11-16T10:00:00Z"),
                was_last: false,
                replaced_by: None,
            },
        }
    }
}
