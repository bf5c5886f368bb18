//! `POST /v1/invite`

use std::time::Duration;

use super::create_referral_link::EXAMPLE_CODE;
use super::decode;
use super::prelude::*;
use super::wording::{CONSENT_RULE, not_real};
use crate::domain::answers::Answers;
use crate::domain::catalog::category::CategorySet;
use crate::domain::email::EmailAddress;
use crate::domain::language::Language;
use crate::domain::mail::lane::Lane;
use crate::domain::mail::{MAX_MAILS_PER_DAY, MIN_MAIL_GAP, MailKind};
use crate::domain::referral::RefCode;
use crate::domain::sign_up::{PENDING_FOR, SignedUp};
use crate::domain::text::Comments;
use crate::domain::us_state::UsState;
use crate::membership::{Application, SignUpContext};

/// A user who wants to join, and what they care about.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InviteRequest {
    /// The user's own email address, exactly as they gave it. Never guess, complete or correct it: if it looks mistyped, ask.
    pub email: EmailAddress,
    /// The state the user lives in, or DC. Leave it out for Puerto Rico, other territories and countries: people there may join too.
    #[serde(default, deserialize_with = "decode::present")]
    pub us_state: Option<UsState>,
    /// True for each one the user cares about; leave out the others. Sent again it replaces the whole choice; {} clears it.
    #[serde(default, deserialize_with = "decode::present")]
    pub categories: Option<CategorySet>,
    /// What else the user wants the union to know, in their words. Sent again, this replaces the old text; "" clears it.
    #[serde(default, deserialize_with = "decode::present")]
    pub other_comments: Option<Comments>,
    /// The code of whoever referred the user, or their whole link.
    #[serde(default, deserialize_with = "decode::present")]
    pub ref_code: Option<RefCode>,
}

impl ObjectInput for InviteRequest {}

/// The sign-up is saved. The answer is the same whether its email goes or not, and for members too.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InviteResponse {
    /// Always true.
    pub ok: True,
    /// The user's personal referral link.
    #[schemars(extend("format" = "uri"))]
    pub invite_link: String,
    /// How many people have joined right now. This user counts once they confirm.
    pub joined_count: u64,
    /// Estimated yearly savings in US dollars of the categories in this request: a plain sum, in which categories may overlap.
    #[schemars(with = "f64")]
    pub selected_savings_total: u32,
    /// Whether this request's `refCode` is somebody's, who is credited once the user confirms (not if the user was a member before, or that
    /// person left). If you sent a code and this is false, tell the user: it is nobody's, or their own.
    pub ref_attributed: bool,
}

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
    };

    type Input = InviteRequest;
    type Output = InviteResponse;

    fn description(union: &Union) -> String {
        let (minutes, days) = (MIN_MAIL_GAP.as_secs() / 60, |span: Duration| span.as_secs() / (24 * 3600));
        format!(
            "{not_real}Emails the user a confirmation link, good for {pending} days; they are a member once they press its button. \
             {CONSENT_RULE} Somebody else's word for it is no consent: offer {join_page}, or the user's own referral link to pass \
             on. First ask what they want to tell: one call should do.\n\n\
             Then give the user their referral link, and tell them to check their inbox and spam for \"{subject}\" from {sender}; a \
             member gets \"{already}\" instead. Email is in English unless they chose Spanish on the site; this one links to both. \
             It may be delayed, or not go where email bounced or was declined: the response does not show it. \
             No tool tells whether they confirmed: ask them.\n\n\
             Calling again restarts the {pending} days and emails the link again, at most once in {minutes} minutes and \
             {MAX_MAILS_PER_DAY} times a day: past that the response is the same and no email goes. Until they confirm, fields sent \
             replace old ones, others stay. For a member nothing changes here, but at {own_page}.",
            not_real = not_real(union),
            pending = days(PENDING_FOR),
            join_page = union.join_page(),
            own_page = union.own_page(),
            subject = MailKind::Confirm.subject(&union.name, Language::English),
            already = MailKind::AlreadyMember.subject(&union.name, Language::English),
            sender = union.sender,
        )
    }

    async fn run(app: &App, caller: &Caller, input: InviteRequest) -> Result<InviteResponse, Error> {
        let application = Application {
            email: caller.address(app, input.email)?,
            answers: Answers { us_state: input.us_state, categories: input.categories, comments: input.other_comments },
            ref_code: input.ref_code.and_then(|code| code.0),
        };
        let partner = caller.partner()?;
        let lane = Lane::of(partner.name.as_str().as_bytes());
        let (site, savings) =
            (&app.union.join_site, app.union.catalog.savings_of(input.categories.unwrap_or_default()));
        let request =
            caller.idempotency_key().map(|key| app.membership.idempotent_sign_up(key, &application, site, savings));
        let context = SignUpContext {
            channel: caller.channel,
            client: caller.client.clone(),
            lane,
            proven: false,
            language: None,
            request,
        };
        let done = app.membership.sign_up(&application, Some(partner), context, caller.now).await?;
        caller.note_replay(&done);
        let SignedUp { code, joined_count, attributed, replayed } = done;
        let (invite_link, savings) = match replayed {
            Some(first) => (first.link, first.savings),
            None => (code.link(site), savings),
        };
        Ok(InviteResponse {
            ok: True,
            invite_link,
            joined_count,
            selected_savings_total: savings,
            ref_attributed: attributed,
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
