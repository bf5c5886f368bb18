//! `POST /partner/v1/keys/rotate`

use std::time::Duration;

use schemars::json_schema;
use serde::Deserializer;
use serde::de::Error as _;

use super::{EXAMPLE_KEY, EXAMPLE_SUCCESSOR};
use crate::domain::api_key::MAX_ENDING_KEYS;
use crate::domain::json::inline_schema;
use crate::domain::partner::change::ChangeKind;
use crate::domain::time::Timestamp;
use crate::operations::decode;
use crate::operations::partner::{example_time, not_done};
use crate::operations::prelude::*;

/// For how many hours the old key still works.
#[derive(Clone, Copy)]
pub struct GraceHours(u32);

impl GraceHours {
    const DEFAULT: Self = Self(24);
    const MAX: u32 = 168;
}

impl<'de> Deserialize<'de> for GraceHours {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The same message for what is not a number at all.
        match i64::deserialize(deserializer).ok().and_then(|hours| u32::try_from(hours).ok()) {
            Some(hours @ 0..=Self::MAX) => Ok(Self(hours)),
            _ => Err(D::Error::custom(format!("write a whole number of hours from 0 to {}", Self::MAX))),
        }
    }
}

inline_schema!(
    GraceHours,
    json_schema!({ "type": "integer", "minimum": 0, "maximum": GraceHours::MAX, "default": 24 })
);

/// How the key of the request is rotated.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RotateKeyRequest {
    /// For how many hours the old key still works.
    #[serde(default, deserialize_with = "decode::present")]
    pub grace_hours: Option<GraceHours>,
}

impl ObjectInput for RotateKeyRequest {
    const MAY_BE_EMPTY: bool = true;
}

/// The successor of the key of the request.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RotatedKey")]
pub struct NextKey {
    /// Always true.
    pub ok: True,
    /// The new key's.
    pub id: String,
    /// The new key. It is told only now.
    pub key: String,
    /// From when on the new key no longer works, as the old one would have; left out where it works until it is revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<Timestamp>,
    /// The id of the key of the request.
    pub old_id: String,
    /// Until when that key still works.
    #[schemars(extend("format" = "date-time"))]
    pub old_works_until: Timestamp,
}

pub struct RotateOwnKey;

impl Operation for RotateOwnKey {
    const SPEC: Spec = Spec {
        id: "rotateKey",
        method: Method::Post,
        path: "/partner/v1/keys/rotate",
        access: Access::Partner,
        effects: Effects::Changes,
        answer: Lifetime::Live,
        title: "Rotate the API key of this request",
    };

    type Input = RotateKeyRequest;
    type Output = NextKey;

    fn description(_: &Union) -> String {
        format!(
            "Issues a successor to the key that you send, with the same rate limit and the same expiry, and lets the old key expire after \
             `graceHours`. No other key changes. Store the new key before you go on: it is told only now, and a key is rotated once. If \
             the answer is lost, the old key works until its time is over; ask the operator for another.\n\n\
             If a key has leaked, rotate it and then send `revokeKey` with the old one. If you are told that your key was rotated \
             before and you do not know by whom, somebody else has it: ask the operator to revoke the successor.\n\n\
             You can do this {} times in 24 hours, and while fewer than {MAX_ENDING_KEYS} of your rotated keys still work. What is \
             refused does not count. Your contact is mailed.",
            ChangeKind::KeyRotated.max_a_day()
        )
    }

    async fn run(app: &App, caller: &Caller, input: RotateKeyRequest) -> Result<NextKey, Error> {
        let partner = caller.partner()?;
        let GraceHours(hours) = input.grace_hours.unwrap_or(GraceHours::DEFAULT);
        let grace = Duration::from_secs(u64::from(hours) * 3600);
        let (key, rotated) = app.self_service.rotate_key(partner, grace, caller.now).await.map_err(not_done::<Self>)?;
        Ok(NextKey {
            ok: True,
            id: key.id().to_string(),
            key: key.reveal().to_owned(),
            expires_at: rotated.new_ends,
            old_id: partner.key.to_string(),
            old_works_until: rotated.old_ends,
        })
    }

    fn example(_: &Catalog) -> Example<NextKey> {
        Example {
            request: Some(json!({ "graceHours": 24 })),
            answer: NextKey {
                ok: True,
                id: EXAMPLE_SUCCESSOR.to_owned(),
                key: format!("uh_{EXAMPLE_SUCCESSOR}_…"),
                expires_at: None,
                old_id: EXAMPLE_KEY.to_owned(),
                old_works_until: example_time("2026-11-17T09:00:00Z"),
            },
        }
    }
}
