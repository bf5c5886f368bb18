//! `GET /partner/v1/keys`

use schemars::{Schema, SchemaGenerator};

use super::{EXAMPLE_KEY, EXAMPLE_SUCCESSOR};
use crate::domain::api_key::{KeyId, KeyRecord, KeyStatus};
use crate::domain::json::open_enumeration;
use crate::domain::time::Timestamp;
use crate::operations::partner::{NoInput, example_time, not_done};
use crate::operations::prelude::*;
use crate::partners::self_service::MAX_LISTED_KEYS;

/// Whether a key works.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum KeyState {
    Valid,
    Expired,
    Revoked,
}

impl KeyState {
    fn open_schema(generator: &mut SchemaGenerator) -> Schema {
        let closed = Self::json_schema(generator).to_value();
        open_enumeration(generator, "KeyState", &closed["enum"])
    }
}

/// One of the partner's keys, without its secret.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedKey {
    /// The part of the key between its underscores.
    pub id: String,
    /// Whether it works. More may come.
    #[schemars(schema_with = "KeyState::open_schema")]
    pub state: KeyState,
    /// Whether it is the key of this request.
    pub presented: bool,
    #[schemars(extend("format" = "date-time"))]
    pub created_at: Timestamp,
    /// From when on it no longer works; left out where it works until it is revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<Timestamp>,
    /// When it was last used, to a minute or so; left out where it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_used_at: Option<Timestamp>,
    /// Only there if it was revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub revoked_at: Option<Timestamp>,
    /// The id of the key that it was rotated to; only there if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
}

impl ListedKey {
    fn of(key: KeyRecord, presented: KeyId, now: Timestamp) -> Self {
        Self {
            id: key.id.to_string(),
            state: match key.status(now) {
                KeyStatus::Valid | KeyStatus::Suspended => KeyState::Valid,
                KeyStatus::Expired => KeyState::Expired,
                KeyStatus::Revoked => KeyState::Revoked,
            },
            presented: key.id == presented,
            created_at: key.created_at,
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
            revoked_at: key.revoked_at,
            replaced_by: key.replaced_by.map(|id| id.to_string()),
        }
    }
}

/// The partner's keys, newest first.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyList {
    /// Always true.
    pub ok: True,
    pub keys: Vec<ListedKey>,
}

pub struct ListOwnKeys;

impl Operation for ListOwnKeys {
    const SPEC: Spec = Spec {
        id: "listKeys",
        method: Method::Get,
        path: "/partner/v1/keys",
        access: Access::Partner,
        effects: Effects::None,
        answer: Lifetime::Live,
        title: "List your API keys",
    };

    type Input = NoInput;
    type Output = KeyList;

    fn description(_: &Union) -> String {
        format!(
            "Lists your newest {MAX_LISTED_KEYS} keys by their public ids, those that were revoked or have expired too. A key itself is told \
             only when it is issued. If there is one that you do not know, ask the operator to revoke it. A test key lists test keys."
        )
    }

    async fn run(app: &App, caller: &Caller, _: NoInput) -> Result<KeyList, Error> {
        let partner = caller.partner()?;
        let keys = app.self_service.keys(partner).await.map_err(not_done::<Self>)?;
        let listed = |key| ListedKey::of(key, partner.key, caller.now);
        Ok(KeyList { ok: True, keys: keys.into_iter().map(listed).collect() })
    }

    fn example(_: &Catalog) -> Example<KeyList> {
        let key = |id: &str, created_at: &str| ListedKey {
            id: id.to_owned(),
            state: KeyState::Valid,
            presented: false,
            created_at: example_time(created_at),
            expires_at: None,
            last_used_at: Some(example_time("2026-11-16T10:04:00Z")),
            revoked_at: None,
            replaced_by: None,
        };
        let successor = ListedKey { presented: true, ..key(EXAMPLE_SUCCESSOR, "2026-11-16T09:00:00Z") };
        let old = ListedKey {
            expires_at: Some(example_time("2026-11-17T09:00:00Z")),
            replaced_by: Some(EXAMPLE_SUCCESSOR.to_owned()),
            ..key(EXAMPLE_KEY, "2026-02-01T12:00:00Z")
        };
        Example { request: None, answer: KeyList { ok: True, keys: vec![successor, old] } }
    }
}
