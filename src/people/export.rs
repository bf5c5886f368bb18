//! Everything that is stored about a person as JSON: for the person to take along, and for `members show --json`. Its fields are
//! its published schema.
//!
//! Every column about a person is in here, or in a list of reasons why it is not: `tests/it/export.rs` walks the tables.

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::answers::Answers;
use crate::domain::campaign::participation::ParticipationEntry;
use crate::domain::language::Language;
use crate::domain::person::{
    AccountId, NO_TIME, PersonDetails, PersonState, Referrals, RequestEntry, SignInEntry, SignUpEntry, StoppedPartner,
    source_in_json,
};
use crate::domain::referral::ReferralCode;
use crate::domain::reward::ledger::{RewardHistory, RewardStanding};
use crate::domain::time::Timestamp;
use crate::domain::union::Union;

/// The published schema of an export.
pub fn schema() -> serde_json::Value {
    schemars::generate::SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<MemberExport<'_>>()
        .into()
}

/// Where the schema of an export is published, on the site that people join on.
const SCHEMA_PATH: &str = "/me/export.schema.json";

/// Everything that the union keeps of a person, at the moment of the export. Times are of UTC. What is null is not kept.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "Member export")]
pub struct MemberExport<'a> {
    /// Where this schema is published.
    #[serde(rename = "$schema")]
    schema: String,
    /// The union's name.
    union: &'a str,
    exported_at: Timestamp,
    /// Where their referral link leads; the code at its end is theirs for good.
    referral_link: String,
    #[serde(flatten)]
    person: PersonDocument<'a>,
}

/// What is kept of a person.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PersonDocument<'a> {
    /// As first typed.
    email: &'a str,
    /// `member`, or `left` once they left.
    state: PersonState,
    first_known_at: Timestamp,
    joined_at: Option<Timestamp>,
    left_at: Option<Timestamp>,
    /// The language that they chose for pages and mail.
    language: Option<Language>,
    answers: ExportedAnswers<'a>,
    /// The code of whoever is credited for them.
    referred_by: Option<ReferralCode>,
    /// Whether nobody is credited for them, because their mailbox had been a member's before.
    uncredited: bool,
    referrals: Referrals,
    /// Oldest first, those that others made included.
    sign_ups: &'a [SignUpEntry],
    /// Their part in each campaign.
    campaigns: &'a [ParticipationEntry],
    /// What they earned by those whom they referred. Amounts are in cents of US dollars where they say so.
    rewards: &'a RewardStanding,
    reward_history: &'a RewardHistory,
    mail: ExportedMail<'a>,
    /// Requests to sign in within the last day.
    sign_ins: &'a [SignInEntry],
    /// Requests about them with an idempotency key, of the last 30 days.
    requests: &'a [RequestEntry],
    /// Codes that were typed wrong today.
    wrong_codes_today: u64,
    /// The name that stands for them in the log of the operator's acts and in the ledger of rewards, if they have one.
    account: Option<&'a str>,
}

/// What they said when they joined, or on their own page since.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ExportedAnswers<'a> {
    #[serde(flatten)]
    answers: &'a Answers,
    /// When they changed them on their own page.
    changed_at: Option<Timestamp>,
}

/// What is known of their mailbox.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ExportedMail<'a> {
    /// The last mails that went there, newest first, and who asked for them.
    sent: Vec<ExportedSent<'a>>,
    /// Until when no mail goes there, because somebody there asked for silence.
    suppressed_until: Option<Timestamp>,
    /// When its owner called our mail unwanted.
    complained_at: Option<Timestamp>,
    /// Until when nothing goes there, because a mail server said that there is no such address.
    undeliverable_until: Option<Timestamp>,
    /// How often mail came back for the moment.
    soft_bounces: u64,
    /// Other addresses that share the mailbox, counted up to 1,000.
    shared_with: u64,
    /// The kinds that they want none of.
    unwanted_kinds: Vec<&'a str>,
    /// Partners whose mail is not sent there, because somebody there asked for it.
    stopped_partners: &'a [StoppedPartner],
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ExportedSent<'a> {
    at: Timestamp,
    #[serde(serialize_with = "source_in_json")]
    asked_for_by: &'a str,
}

impl<'a> MemberExport<'a> {
    pub fn of(file: &'a PersonDetails, union: &'a Union, now: Timestamp) -> Self {
        Self {
            schema: format!("{}{SCHEMA_PATH}", union.join_site),
            union: &union.name,
            exported_at: now,
            referral_link: file.person.code.link(&union.join_site),
            person: PersonDocument::of(file),
        }
    }
}

impl<'a> PersonDocument<'a> {
    pub fn of(file: &'a PersonDetails) -> Self {
        let (person, mailbox) = (&file.person, &file.mailbox);
        Self {
            email: &person.email,
            state: person.state,
            first_known_at: person.created_at,
            joined_at: person.joined_at.filter(|time| *time != NO_TIME),
            left_at: person.left_at,
            language: person.language,
            answers: ExportedAnswers { answers: &person.answers, changed_at: person.answered_at },
            referred_by: person.referrer,
            uncredited: person.uncredited,
            referrals: file.referrals,
            sign_ups: &file.sign_ups,
            campaigns: &file.participations,
            rewards: &file.rewards,
            reward_history: &file.reward_history,
            mail: ExportedMail {
                sent: mailbox
                    .record
                    .sent
                    .iter()
                    .map(|(at, source)| ExportedSent { at: *at, asked_for_by: source })
                    .collect(),
                suppressed_until: mailbox.suppressed_until,
                complained_at: mailbox.complained_at,
                undeliverable_until: person.undeliverable_until,
                soft_bounces: person.soft_bounces,
                shared_with: mailbox.shared_with,
                unwanted_kinds: person.mail_choices.unwanted().collect(),
                stopped_partners: &mailbox.stopped,
            },
            sign_ins: &file.sign_ins,
            requests: &file.requests,
            wrong_codes_today: file.wrong_codes,
            account: person.account.as_ref().map(AccountId::as_str),
        }
    }
}
