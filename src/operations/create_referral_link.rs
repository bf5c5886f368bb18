//! `POST /v1/referral-link`

use super::prelude::*;
use crate::domain::email::EmailAddress;

/// The user whose link is wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferralLinkRequest {
    /// The user's own email address, exactly as they gave it.
    pub email: EmailAddress,
}

impl ObjectInput for ReferralLinkRequest {}

/// The user's personal referral link: always the same for the same address.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReferralLinkResponse {
    /// Always true.
    pub ok: True,
    /// The link to share.
    #[schemars(extend("format" = "uri"))]
    pub invite_link: String,
    /// The code in the link.
    pub code: String,
}

/// What the documents show as somebody's code.
pub(super) const EXAMPLE_CODE: &str = "4e8rz0v6hncp";

pub struct CreateReferralLink;

impl Operation for CreateReferralLink {
    const SPEC: Spec = Spec {
        id: "createReferralLink",
        method: Method::Post,
        path: "/v1/referral-link",
        access: Access::Agent,
        effects: Effects::Adds,
        answer: Lifetime::Live,
        title: "Get or create a user's referral link",
    };

    type Input = ReferralLinkRequest;
    type Output = ReferralLinkResponse;

    fn description(union: &Union) -> String {
        format!(
            "Returns a user's personal referral link: always the same for the same address. It sends no email and signs nobody up: \
             signUpUser does, and returns the link too. The consent rule of signUpUser holds: only for the user you are talking to, \
             with their own address, once they have joined or explicitly asked to join.\n\n\
             A referral is credited once that person has confirmed; getReferralProgram says what it earns. No tool counts referrals: \
             members see theirs at {}.",
            union.own_page()
        )
    }

    async fn run(app: &App, caller: &Caller, input: ReferralLinkRequest) -> Result<ReferralLinkResponse, Error> {
        let (partner, site) = (caller.partner()?, &app.union.join_site);
        let email = caller.address(app, input.email)?;
        let Some(key) = caller.idempotency_key() else {
            let code = app.membership.referral_code(&email, caller.now).await?;
            return Ok(ReferralLinkResponse { ok: True, invite_link: code.link(site), code: code.to_string() });
        };
        let done = app.membership.idempotent_referral_code(partner, key, &email, site, caller.now).await?;
        caller.note_replay(&done);
        let invite_link = done.replayed.map_or_else(|| done.code.link(site), |first| first.link);
        Ok(ReferralLinkResponse { ok: True, invite_link, code: done.code.to_string() })
    }

    fn example(_: &Catalog) -> Example<ReferralLinkResponse> {
        Example {
            request: Some(json!({ "email": "ana@example.com" })),
            answer: ReferralLinkResponse {
                ok: True,
                invite_link: format!("https://union.example/joinus{EXAMPLE_CODE}"),
                code: EXAMPLE_CODE.to_owned(),
            },
        }
    }
}
