//! `GET /partner/v1/inbox`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::page::{MailParameter, PageSize};
use crate::app::App;
use crate::domain::catalog::Catalog;
use crate::domain::json::True;
use crate::domain::union::Union;
use crate::error::Error;
use crate::operations::{Access, Caller, Effects, Example, Input, Lifetime, Method, Operation, Spec, decode};
use crate::sandbox::ReceivedMail;

/// Which mails are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct InboxRequest {
    /// The `nextCursor` of the page before.
    #[serde(default, deserialize_with = "decode::present")]
    #[schemars(with = "MailParameter")]
    pub cursor: Option<MailParameter>,
    /// How many a page holds at the most.
    #[serde(default, deserialize_with = "decode::present")]
    #[schemars(with = "PageSize")]
    pub limit: Option<PageSize>,
}

impl Input for InboxRequest {
    const EXPECTED: bool = true;

    fn decode(body: &[u8]) -> Result<Self, Error> {
        decode::json(body)
    }
}

/// Mail of the sandbox, newest first.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InboxListing {
    /// Always true.
    pub ok: True,
    /// Where people look at the same in a browser. Whoever has the address sees it: share it with your team alone.
    #[schemars(extend("format" = "uri"))]
    pub page: String,
    pub mails: Vec<SandboxMail>,
    /// What to send as `cursor` for the next page; left out on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub next_cursor: Option<String>,
}

/// A mail that would have been sent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxMail {
    pub id: String,
    pub to: String,
    pub from: String,
    pub subject: String,
    /// The part in plain text.
    pub text: String,
    /// The same for mail programs that show HTML.
    pub html: String,
    #[schemars(extend("format" = "date-time"))]
    pub received_at: String,
    /// The page with the button to press, where the mail has one. A POST there presses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "uri"))]
    pub confirm_link: Option<String>,
    /// The page that says "this wasn't me".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "uri"))]
    pub decline_link: Option<String>,
}

impl From<ReceivedMail> for SandboxMail {
    fn from(mail: ReceivedMail) -> Self {
        let ReceivedMail { id, to, from, subject, text, html, received_at, confirm_link, decline_link } = mail;
        let (id, received_at) = (id.to_string(), received_at.to_string());
        Self { id, to, from, subject, text, html, received_at, confirm_link, decline_link }
    }
}

#[derive(Debug)]
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
        let listed = listed.map_err(|error| Error::Unavailable { cause: error.to_string() })?;
        Ok(InboxListing {
            ok: True,
            page: inbox.page(partner.name.as_str()),
            mails: listed.mails.into_iter().map(Into::into).collect(),
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
                mails: vec![SandboxMail {
                    id: "17".to_owned(),
                    to: "ana@example.com".to_owned(),
                    from: "hello@union.example".to_owned(),
                    subject: "Confirm your sign-up with Consumer Union".to_owned(),
                    text: "…".to_owned(),
                    html: "…".to_owned(),
                    received_at: "2026-11-16T10:00:01Z".to_owned(),
                    confirm_link: Some(format!("{site}/confirm/00000000000021ge0qm286b9ptcfmn5ekp11bk5")),
                    decline_link: Some(format!("{site}/not-me/000000000000212drq9gmw3zv5x1n8ptkc0a7yh")),
                }],
                next_cursor: Some("17".to_owned()),
            },
        }
    }
}
