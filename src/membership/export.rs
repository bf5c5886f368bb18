//! Everything that is kept of a person, as the document that they take along: its fields are its published schema.
//!
//! A column about a person is in here, or in a list of reasons why it is not: `tests/it/export.rs` walks the tables.

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::catalog::category::CategorySet;
use crate::domain::mail::budget::source_name;
use crate::domain::mail::{MailKind, WaitingMail};
use crate::domain::person::{KeptEvidence, PersonFile, RequestEntry, SignInEntry, SignUpEntry, StoppedPartner};
use crate::domain::time::Timestamp;
use crate::domain::union::Union;
use crate::domain::us_state::UsState;

/// The published schema of an export.
pub fn schema() -> serde_json::Value {
    schemars::generate::SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<MemberExport>().into()
}

/// Where the schema of an export is found, on the site that people join on.
const SCHEMA_PATH: &str = "/me/export.schema.json";

/// Everything that the union keeps of a person, at the moment of the export. Times are of UTC. What is null is not kept.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "Member export")]
pub struct MemberExport {
    /// Where this schema is published.
    #[serde(rename = "$schema")]
    pub schema: String,
    /// The union's name.
    pub union: String,
    pub exported_at: String,
    /// As first typed.
    pub email: String,
    /// `member`, or `left` once they left.
    pub state: String,
    /// Where their referral link leads; the code at its end is theirs for good.
    pub referral_link: String,
    pub first_known_at: String,
    pub joined_at: Option<String>,
    pub left_at: Option<String>,
    /// The language that they chose for pages and mail.
    pub language: Option<String>,
    pub answers: ExportedAnswers,
    /// The code of whoever is credited for them.
    pub referred_by: Option<String>,
    /// Whether nobody is credited for them, because their mailbox had been a member's before.
    pub uncredited: bool,
    pub referrals: ExportedReferrals,
    /// Oldest first, those that others made included.
    pub sign_ups: Vec<ExportedSignUp>,
    pub mail: ExportedMail,
    /// Requests to sign in within the last day.
    pub sign_ins: Vec<ExportedSignIn>,
    /// Requests about them with an idempotency key, of the last 30 days.
    pub requests: Vec<ExportedRequest>,
    /// Codes that were typed wrong today.
    pub wrong_codes_today: u64,
    /// The name that stands for them in the log of the operator's acts, if they have one.
    pub account: Option<String>,
}

/// What they said when they joined, or on their own page since.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportedAnswers {
    pub us_state: Option<String>,
    pub categories: Vec<String>,
    pub comments: Option<String>,
    /// When they changed them on their own page.
    pub changed_at: Option<String>,
}

/// What came of their referral link.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportedReferrals {
    /// People who signed up with it and are still known.
    pub signed_up: u64,
    /// Those who are members, and whom they are credited for.
    pub members: u64,
}

/// A sign-up, with the evidence of consent.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportedSignUp {
    /// `pending`, `confirmed`, `expired` or `declined`.
    pub state: String,
    /// The partner whose assistant asked, or "the form".
    pub through: String,
    /// The id of the partner's key.
    pub key: Option<String>,
    /// `rest`, `mcp` or `form`.
    pub channel: Option<String>,
    /// What the assistant's program called itself. Nobody checked it.
    pub client_self_asserted: Option<String>,
    /// The notice in force when it was made; for one that was confirmed, the one that stood above the button.
    pub notice: Option<ExportedNotice>,
    pub us_state: Option<String>,
    pub categories: Vec<String>,
    pub comments: Option<String>,
    pub referred_by: Option<String>,
    /// Whether the address is of a kind that is thrown away.
    pub disposable_address: bool,
    pub created_at: String,
    pub updated_at: String,
    pub expires_at: String,
    /// When its mail last left.
    pub mailed_at: Option<String>,
    pub decided_at: Option<String>,
    /// `button` (of the page that the mailed link leads to), `one-click` (of the mail program), `leaving` or `taken-back` (of "this wasn't me").
    pub decided_how: Option<String>,
    /// The language of the page that the form was filled in on.
    pub language: Option<String>,
    /// Its mail, while that waits.
    pub waiting_mail: Option<ExportedWaitingMail>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportedNotice {
    pub hash: String,
    pub words: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportedWaitingMail {
    pub kind: String,
    pub created_at: String,
    pub send_after: String,
    pub attempts: u32,
    pub last_error: Option<String>,
    pub given_up_at: Option<String>,
    pub held_at: Option<String>,
}

/// What is known of their mailbox.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportedMail {
    /// The last mails that went there, newest first, and who asked for them.
    pub sent: Vec<ExportedSent>,
    /// Until when no mail goes there, because somebody there asked for silence.
    pub suppressed_until: Option<String>,
    /// When its owner called our mail unwanted.
    pub complained_at: Option<String>,
    /// Until when nothing goes there, because a mail server said that there is no such address.
    pub undeliverable_until: Option<String>,
    /// How often mail came back for the moment.
    pub soft_bounces: u64,
    /// Other addresses that share the mailbox.
    pub shared_with: u64,
    /// The kinds that they want none of.
    pub unwanted_kinds: Vec<String>,
    /// Partners whose mail is not sent there, because somebody there asked for it.
    pub stopped_partners: Vec<ExportedStop>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportedStop {
    pub partner: String,
    pub stopped_at: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportedSent {
    pub at: String,
    pub asked_for_by: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportedSignIn {
    pub asked_at: String,
    pub mailed: bool,
    /// Codes that were typed for it.
    pub tries: u32,
    pub used_at: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportedRequest {
    pub partner: String,
    /// As the partner chose it; nobody else has checked it.
    pub name: String,
    pub asked_at: String,
    /// When they pressed the button, as the partner can learn.
    pub confirmed_at: Option<String>,
}

impl MemberExport {
    pub fn of(file: &PersonFile, union: &Union, now: Timestamp) -> Self {
        let (person, mailbox) = (&file.person, &file.mailbox);
        Self {
            schema: format!("{}{SCHEMA_PATH}", union.join_site),
            union: union.name.clone(),
            exported_at: now.to_string(),
            email: person.email.clone(),
            state: person.state.name().to_owned(),
            referral_link: person.code.link(&union.join_site),
            first_known_at: person.created_at.to_string(),
            joined_at: text(person.joined_at),
            left_at: text(person.left_at),
            language: person.language.map(|language| language.code().to_owned()),
            answers: ExportedAnswers {
                us_state: code(person.us_state),
                categories: slugs(person.categories),
                comments: said(&person.comments),
                changed_at: text(person.answered_at),
            },
            referred_by: person.referrer.map(|code| code.to_string()),
            uncredited: person.uncredited,
            referrals: ExportedReferrals { signed_up: file.referrals.signed_up, members: file.referrals.members },
            sign_ups: file.sign_ups.iter().map(exported_sign_up).collect(),
            mail: ExportedMail {
                sent: mailbox.record.sent.iter().map(|(at, source)| sent(*at, source)).collect(),
                suppressed_until: text(mailbox.suppressed_until),
                complained_at: text(mailbox.complained_at),
                undeliverable_until: text(person.undeliverable_until),
                soft_bounces: person.soft_bounces,
                shared_with: mailbox.shared_with,
                unwanted_kinds: person.unwanted_mail.names().split(',').filter_map(said).collect(),
                stopped_partners: mailbox.stopped.iter().map(exported_stop).collect(),
            },
            sign_ins: file.sign_ins.iter().map(exported_sign_in).collect(),
            requests: file.requests.iter().map(exported_request).collect(),
            wrong_codes_today: file.wrong_codes,
            account: person.account.as_ref().map(|account| account.as_str().to_owned()),
        }
    }
}

fn exported_sign_up(sign_up: &SignUpEntry) -> ExportedSignUp {
    let KeptEvidence { channel, client, notice, notice_words, mailed_at, decided_how, language } =
        sign_up.evidence.clone();
    ExportedSignUp {
        state: sign_up.state.name().to_owned(),
        through: source_name(&sign_up.source).to_owned(),
        key: sign_up.key.clone(),
        channel: channel.map(|channel| channel.name().to_owned()),
        client_self_asserted: client,
        notice: notice.map(|hash| ExportedNotice { hash, words: notice_words }),
        us_state: code(sign_up.us_state),
        categories: slugs(sign_up.categories),
        comments: said(&sign_up.comments),
        referred_by: sign_up.referrer.map(|code| code.to_string()),
        disposable_address: sign_up.disposable,
        created_at: sign_up.created_at.to_string(),
        updated_at: sign_up.updated_at.to_string(),
        expires_at: sign_up.expires_at.to_string(),
        mailed_at: text(mailed_at),
        decided_at: text(sign_up.decided_at),
        decided_how,
        language: language.map(|language| language.code().to_owned()),
        waiting_mail: sign_up.mail.as_ref().map(exported_mail),
    }
}

fn exported_mail(mail: &WaitingMail) -> ExportedWaitingMail {
    ExportedWaitingMail {
        kind: MailKind::name(mail.kind).to_owned(),
        created_at: mail.created_at.to_string(),
        send_after: mail.send_after.to_string(),
        attempts: mail.attempts,
        last_error: mail.last_error.clone(),
        given_up_at: text(mail.given_up_at),
        held_at: text(mail.held_at),
    }
}

fn exported_sign_in(sign_in: &SignInEntry) -> ExportedSignIn {
    let SignInEntry { asked_at, mailed, tries, used_at } = *sign_in;
    ExportedSignIn { asked_at: asked_at.to_string(), mailed, tries, used_at: text(used_at) }
}

fn exported_request(request: &RequestEntry) -> ExportedRequest {
    let RequestEntry { partner, name, asked_at, confirmed_at } = request.clone();
    ExportedRequest { partner, name, asked_at: asked_at.to_string(), confirmed_at: text(confirmed_at) }
}

fn exported_stop(stopped: &StoppedPartner) -> ExportedStop {
    ExportedStop { partner: source_name(&stopped.partner).to_owned(), stopped_at: stopped.stopped_at.to_string() }
}

fn sent(at: Timestamp, source: &str) -> ExportedSent {
    ExportedSent { at: at.to_string(), asked_for_by: source_name(source).to_owned() }
}

fn text(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| time.to_string())
}

fn code(state: Option<UsState>) -> Option<String> {
    state.map(|state| state.code().to_owned())
}

fn slugs(categories: CategorySet) -> Vec<String> {
    categories.iter().map(|category| category.slug().to_owned()).collect()
}

fn said(words: &str) -> Option<String> {
    (!words.is_empty()).then(|| words.to_owned())
}
