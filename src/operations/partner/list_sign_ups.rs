//! `GET /partner/v1/sign-ups`

use super::get_sign_up_status::StatusOfSignUp;
use super::page::{KeyParameter, PageSize, Since, StatusParameter};
use crate::domain::time::Timestamp;
use crate::operations::decode;
use crate::operations::prelude::*;

/// Which sign-ups are listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct StatusListRequest {
    /// Only those that were taken from this moment on: `2026-11-16` (of UTC), or a time of RFC 3339 with any offset, such as
    /// `2026-11-16T10:00:00Z` or `2026-11-16T11:00:00+01:00`.
    #[serde(default, deserialize_with = "decode::present")]
    pub since: Option<Since>,
    /// Only those that have this status now.
    #[serde(default, deserialize_with = "decode::present")]
    #[schemars(with = "StatusParameter")]
    pub status: Option<StatusParameter>,
    /// The `nextCursor` of the page before.
    #[serde(default, deserialize_with = "decode::present")]
    pub cursor: Option<KeyParameter>,
    /// How many a page holds at the most.
    #[serde(default, deserialize_with = "decode::present")]
    pub limit: Option<PageSize>,
}

impl ObjectInput for StatusListRequest {}

/// Some of the partner's sign-ups, oldest first.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusList {
    /// Always true.
    pub ok: True,
    pub sign_ups: Vec<StatusOfSignUp>,
    /// What to send as `cursor` for the next page; left out on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

pub struct ListSignUps;

impl Operation for ListSignUps {
    const SPEC: Spec = Spec {
        id: "listSignUps",
        method: Method::Get,
        path: "/partner/v1/sign-ups",
        access: Access::Partner,
        effects: Effects::None,
        answer: Lifetime::Live,
        title: "List your sign-ups and what came of them",
    };

    type Input = StatusListRequest;
    type Output = StatusList;

    fn description(_: &Union) -> String {
        "Lists the sign-ups that you sent with an `Idempotency-Key` within the last 30 days, by when they were sent, oldest first, \
         each with what came of it. Page by page: send the `nextCursor` of one as `cursor` for the next, until there is none. With \
         `status` a page may hold fewer than `limit`, even none, and be followed by more.\n\n\
         `since` is about when a sign-up was sent. To learn what happened since you last looked, use `listEvents`."
            .to_owned()
    }

    async fn run(app: &App, caller: &Caller, input: StatusListRequest) -> Result<StatusList, Error> {
        let partner = caller.partner()?;
        let since = input.since.map_or(Timestamp::from_millis(0), |since| since.0);
        let most = input.limit.map_or(PageSize::DEFAULT, |limit| limit.0);
        let (cursor, status) = (input.cursor.map(|cursor| cursor.0), input.status.map(|status| (status.0, caller.now)));
        let page = app.partners.statuses(partner.id, cursor, since, status, most).await.map_err(Error::unread)?;
        let unknown = "it is not one of this list, or is too old; begin again without it.";
        let page = page.ok_or_else(|| Error::in_field("cursor", unknown))?;
        Ok(StatusList {
            ok: True,
            next_cursor: page.next.map(|last| last.as_str().to_owned()),
            sign_ups: page.sign_ups.iter().map(|named| StatusOfSignUp::of(named, caller.now)).collect(),
        })
    }

    fn example(_: &Catalog) -> Example<StatusList> {
        Example {
            request: Some(json!({ "since": "2026-11-16", "limit": 50 })),
            answer: StatusList {
                ok: True,
                sign_ups: vec![StatusOfSignUp::example()],
                next_cursor: Some("sign-up-1042".to_owned()),
            },
        }
    }
}
