//! `POST /v1/invite`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::domain::constant::True;
use super::create_referral_link::EXAMPLE_CODE;
use super::{Access, Caller, Effects, Example, Input, Lifetime, Method, Operation, Spec, decode};
use crate::app::App;
use crate::domain::catalog::Catalog;
use crate::domain::catalog::category::CategorySet;
use crate::domain::email::EmailAddress;
use crate::domain::referral::RefCode;
use crate::domain::text::Comments;
use crate::domain::us_state::UsState;
use crate::error::Error;
use crate::membership::Application;

/// A user who wants to join, and what they care about.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InviteRequest {
    /// The user's own e-mail address; the confirmation mail goes there.
    pub email: EmailAddress,
    /// The state the user lives in: the 50 US states and DC, by two-letter code.
    #[serde(default, deserialize_with = "decode::present")]
    #[schemars(with = "UsState")]
    pub us_state: Option<UsState>,
    /// True for each category the user cares about; leave the others out.
    #[serde(default, deserialize_with = "decode::present")]
    #[schemars(with = "CategorySet")]
    pub categories: Option<CategorySet>,
    /// Anything else the user wants the union to know, in their words.
    #[serde(default, deserialize_with = "decode::present")]
    #[schemars(with = "Comments")]
    pub other_comments: Option<Comments>,
    /// The referral code of whoever referred the user: the part after `/joinus` in that person's link. The whole link
    /// works too. A code nobody has is ignored.
    #[serde(default, deserialize_with = "decode::present")]
    #[schemars(with = "RefCode")]
    pub ref_code: Option<RefCode>,
}

impl Input for InviteRequest {
    const EXPECTED: bool = true;

    fn decode(body: &[u8]) -> Result<Self, Error> {
        decode::json(body)
    }
}

/// The sign-up is saved, and its confirmation mail is on the way.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InviteResponse {
    /// Always true.
    pub ok: True,
    /// The user's personal referral link. Share it with the user.
    #[schemars(extend("format" = "uri"))]
    pub invite_link: String,
    /// How many people have joined the union right now. This user is counted once they have confirmed.
    pub joined_count: u64,
    /// What the chosen categories are estimated to save in a year, in US dollars.
    #[schemars(with = "f64")]
    pub selected_savings_total: u32,
    /// Whether the sign-up is credited to the person whose `refCode` was given.
    pub ref_attributed: bool,
}

#[derive(Debug)]
pub struct SignUpUser;

impl Operation for SignUpUser {
    const SPEC: Spec = Spec {
        id: "signUpUser",
        method: Method::Post,
        path: "/v1/invite",
        access: Access::Agent,
        effects: Effects::AddsAndMails,
        answer: Lifetime::Live,
        title: "Sign a user up",
        description: concat!(
            "Signs the user up and e-mails them a confirmation link; the sign-up counts only after they click it. ",
            "Tell the user to check their inbox, and give them their personal referral link from the answer. Signing \
             the same user up again is safe: it updates their answers and returns the same link. ",
            consent!("this")
        ),
    };

    type Input = InviteRequest;
    type Output = InviteResponse;

    async fn run(app: &App, caller: &Caller, input: InviteRequest) -> Result<InviteResponse, Error> {
        let application = Application {
            email: input.email,
            us_state: input.us_state,
            categories: input.categories,
            comments: input.other_comments,
            ref_code: input.ref_code.and_then(|code| code.0),
        };
        let done = app.membership.sign_up(&application, Some(caller.partner()?), caller.now).await?;
        Ok(InviteResponse {
            ok: True,
            invite_link: done.code.link(&app.union.join_site),
            joined_count: done.joined_count,
            selected_savings_total: app.union.catalog.savings_of(input.categories.unwrap_or_default()),
            ref_attributed: done.attributed,
        })
    }

    fn example(catalog: &Catalog) -> Example<InviteResponse> {
        let chosen = catalog.listed().first().map(|(category, savings)| (category.slug(), *savings));
        let (slug, savings) = chosen.unwrap_or(("internet", 0));
        Example {
            request: Some(json!({
                "email": "ana@example.com",
                "usState": "CA",
                "categories": { slug: true },
                "otherComments": "My plan ends in March.",
                "refCode": "7kq2m9x4tbwd"
            })),
            answer: InviteResponse {
                ok: True,
                invite_link: format!("https://union.example/joinus{EXAMPLE_CODE}"),
                joined_count: 12_408,
                selected_savings_total: savings,
                ref_attributed: true,
            },
        }
    }
}
