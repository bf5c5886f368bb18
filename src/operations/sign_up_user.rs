//! `POST /v1/invite`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::constant::True;
use super::create_referral_link::EXAMPLE_CODE;
use super::free_code::with_free_code;
use super::{Access, Caller, Example, Input, Lifetime, Method, Operation, Spec, decode};
use crate::app::App;
use crate::domain::catalog::Catalog;
use crate::domain::category::CategorySet;
use crate::domain::email::EmailAddress;
use crate::domain::referral::RefCode;
use crate::domain::signup::{NewSignUp, Partner, SignedUp};
use crate::domain::text::Comments;
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;
use crate::error::Error;

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
    #[serde(default)]
    pub categories: CategorySet,
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
        let partner = caller.partner()?.clone();
        let done = sign_up(app, &input, Some(partner), caller.now).await?;
        Ok(InviteResponse {
            ok: True,
            invite_link: done.code.link(&app.join_site),
            joined_count: done.joined_count,
            selected_savings_total: app.catalog.savings_of(input.categories),
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

/// Signs somebody up, for a partner or by their own hand on the join page.
pub async fn sign_up(
    app: &App,
    request: &InviteRequest,
    partner: Option<Partner>,
    now: Timestamp,
) -> Result<SignedUp, Error> {
    let unit = |person| {
        let new = NewSignUp {
            person,
            us_state: request.us_state,
            categories: request.categories,
            comments: request.other_comments.clone(),
            ref_code: request.ref_code.and_then(|code| code.0),
            partner: partner.clone(),
        };
        app.store.sign_up(new, now)
    };
    let done = with_free_code(app, &request.email, unit).await?;
    app.mail_waits();
    Ok(done)
}
