//! `GET /partner/v1/sign-ups/{idempotencyKey}`

use schemars::{Schema, SchemaGenerator};

use super::example_time;
use super::page::KeyParameter;
use crate::domain::json::open_enumeration;
use crate::domain::partner::{CLOSES_AFTER, NamedSignUp, SignUpStatus};
use crate::domain::time::Timestamp;
use crate::operations::prelude::*;

/// Which sign-up is asked about.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct StatusRequest {
    /// The `Idempotency-Key` that the sign-up was sent with, percent-encoded where a path needs it.
    pub idempotency_key: KeyParameter,
}

impl ObjectInput for StatusRequest {}

/// A sign-up that the partner sent with an idempotency key.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusOfSignUp {
    /// The key that it was sent with.
    pub idempotency_key: String,
    /// `confirmed` once the person pressed the button of this sign-up; `closed` seven days after it was taken, whatever else
    /// became of it; `pending` until then. More may come: treat what you do not know as `pending`.
    #[schemars(schema_with = "statuses")]
    pub status: SignUpStatus,
    /// When it was taken.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: Timestamp,
    /// When it closes, or closed, unless it is confirmed before.
    #[schemars(extend("format" = "date-time"))]
    pub closes_at: Timestamp,
    /// When the button was pressed; only there if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub confirmed_at: Option<Timestamp>,
}

fn statuses(generator: &mut SchemaGenerator) -> Schema {
    open_enumeration(generator, "SignUpStatus", &json!(SignUpStatus::ALL.map(SignUpStatus::name)))
}

impl StatusOfSignUp {
    pub(super) fn of(named: &NamedSignUp, now: Timestamp) -> Self {
        Self {
            idempotency_key: named.key.as_str().to_owned(),
            status: named.status(now),
            created_at: named.created_at,
            closes_at: named.closes_at,
            confirmed_at: named.confirmed_at,
        }
    }

    pub(super) fn example() -> Self {
        Self {
            idempotency_key: "sign-up-1042".to_owned(),
            status: SignUpStatus::Confirmed,
            created_at: example_time("2026-11-16T10:00:00Z"),
            closes_at: example_time("2026-11-23T10:00:00Z"),
            confirmed_at: Some(example_time("2026-11-16T10:04:31Z")),
        }
    }
}

/// The sign-up that was asked about.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusAnswer {
    /// Always true.
    pub ok: True,
    #[serde(flatten)]
    pub sign_up: StatusOfSignUp,
}

pub struct GetSignUpStatus;

impl Operation for GetSignUpStatus {
    const SPEC: Spec = Spec {
        id: "getSignUpStatus",
        method: Method::Get,
        path: "/partner/v1/sign-ups/{idempotencyKey}",
        access: Access::Partner,
        effects: Effects::None,
        answer: Lifetime::Live,
        title: "See what came of a sign-up",
    };

    type Input = StatusRequest;
    type Output = StatusAnswer;

    fn description(_: &Union) -> String {
        format!(
            "Returns what came of a sign-up that was sent with an `Idempotency-Key`. It is `confirmed` only if the person pressed \
             the button of this very sign-up. Everything else is `pending` for {} days and `closed` from then on: declined, lapsed, \
             undeliverable and already a member all look the same, so that nothing is told about an address that you did not \
             cause. Keys of one sign-up that was sent more than once each have their own {0} days.\n\n\
             A webhook (`sign_up.confirmed`, `sign_up.closed`) spares you the asking. A key is known for 30 days; one that is not \
             yours, or was sent without signing anybody up, is 404.",
            CLOSES_AFTER.as_secs() / (24 * 3600)
        )
    }

    async fn run(app: &App, caller: &Caller, input: StatusRequest) -> Result<StatusAnswer, Error> {
        let partner = caller.partner()?;
        let found = app.partners.status(partner.id, input.idempotency_key.0).await.map_err(Error::unread)?;
        let unknown = "No sign-up of yours has this Idempotency-Key, or it was sent more than 30 days ago.";
        let named = found.ok_or(Error::NotFound(unknown))?;
        Ok(StatusAnswer { ok: True, sign_up: StatusOfSignUp::of(&named, caller.now) })
    }

    fn example(_: &Catalog) -> Example<StatusAnswer> {
        Example {
            request: Some(json!({ "idempotencyKey": "sign-up-1042" })),
            answer: StatusAnswer { ok: True, sign_up: StatusOfSignUp::example() },
        }
    }
}
