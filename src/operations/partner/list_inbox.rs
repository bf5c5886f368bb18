//! `GET /partner/v1/inbox`

use super::example_time;
use super::page::{MailParameter, PageSize};
use crate::operations::decode;
use crate::operations::prelude::*;
use crate::sandbox::ReceivedMail;

/// Which mails are listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct InboxRequest {
    /// The `nextCursor` of the page before.
    #[serde(default, deserialize_with = "decode::present")]
    pub cursor: Option<MailParameter>,
    /// How many a page holds at the most.
    #[serde(default, deserialize_with = "decode::present")]
    pub limit: Option<PageSize>,
}

impl ObjectInput for InboxRequest {}

/// Mail of the sandbox, newest first.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InboxListing {
    /// Always true.
    pub ok: True,
    /// Where people look at the same in a browser. Whoever has the address sees it: share it with your team alone.
    #[schemars(extend("format" = "uri"))]
    pub page: String,
    pub mails: Vec<ReceivedMail>,
    /// What to send as `cursor` for the next page; left out on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

pub struct ListInbox;

impl Operation for ListInbox {
    const SPEC: Spec = Spec {
        id: "listInbox",
        method: Method::Get,
        path: "/partner/v1/inbox",
        access: Access::Partner,
        effects: Effects::None,
        answer: Lifetime::Live,
        title: "Read the sandbox's mail",
    };

    type Input = InboxRequest;
    type Output = InboxListing;

    fn description(_: &Union) -> String {
        "Lists the mail that your sign-ups in the sandbox caused, newest first: no mail of the sandbox ever leaves. Only for test \
         keys; a live key gets 404, for live mail goes to people. The last 1,000 mails of the last 30 days are kept."
            .to_owned()
    }

    async fn run(app: &App, caller: &Caller, input: InboxRequest) -> Result<InboxListing, Error> {
        let partner = caller.partner()?;
        let live = "There is an inbox for test keys alone (uh_test_…): mail of a live key goes to people. Ask the operator for a test key.";
        let inbox = app.inbox.as_ref().ok_or(Error::NotFound(live))?;
        let most = input.limit.map_or(PageSize::DEFAULT, |limit| limit.0);
        let listed = inbox.list(partner.id, input.cursor.map(|cursor| cursor.0), most).await;
        let listed = listed.map_err(Error::unread)?;
        Ok(InboxListing {
            ok: True,
            page: inbox.page(partner.name.as_str()),
            mails: listed.mails,
            next_cursor: listed.next.map(|id| id.to_string()),
        })
    }

    fn example(_: &Catalog) -> Example<InboxListing> {
        let site = "https://union.example/sandbox";
        Example {
            request: Some(json!({ "limit": 1 })),
            answer: InboxListing {
                ok: True,
                page: format!("{site}/inbox/4e8rz0v6hncp7kq2m9x4tbwd3c"),
                mails: vec![ReceivedMail {
                    id: 17,
                    to: "ana@example.com".to_owned(),
                    from: "hello@union.example".to_owned(),
                    subject: "Confirm your sign-up with Consumer Union".to_owned(),
                    text: "…".to_owned(),
                    html: "…".to_owned(),
                    received_at: example_time("2026-11-16T10:00:01Z"),
                    confirm_link: Some(format!("{site}/confirm/00000000000021ge0qm286b9ptcfmn5ekp11bk5")),
                    decline_link: Some(format!("{site}/not-me/000000000000212drq9gmw3zv5x1n8ptkc0a7yh")),
                }],
                next_cursor: Some("17".to_owned()),
            },
        }
    }
}
