//! Everything that is kept of a person, as the operator sees it, and what the operator can do about them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::answers::Answers;
use super::campaign::CampaignMail;
use super::campaign::participation::ParticipationEntry;
use super::catalog::category::CategorySet;
use super::json::named_enum;
use super::language::Language;
use super::mail::budget::source_name;
use super::mail::choices::MailChoices;
use super::mail::{MailKind, MailboxRecord, WaitingMail};
use super::referral::ReferralCode;
use super::reward::ledger::{RewardHistory, RewardStanding};
use super::sign_up::{Channel, SignUpId, SignUpState};
use super::time::{DAY, Timestamp};

named_enum! {
    pub enum PersonState {
        /// Known by a sign-up or a referral link, and not a member yet.
        Invited = "invited",
        Member = "member",
        Left = "left",
    }
}

/// Names a person where no address may stand: in the audit log. Random, and cut off when they are erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AccountId(String);

impl AccountId {
    /// Bytes of randomness that one is made of.
    pub const ENTROPY: usize = 10;

    pub fn from_random(bytes: &[u8; Self::ENTROPY]) -> Self {
        Self(super::base32::text::<16>(bytes))
    }

    pub fn kept(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What stands where a time was, once somebody is erased.
pub const NO_TIME: Timestamp = Timestamp::from_millis(0);

/// A person, without what hangs on them.
#[derive(Clone, PartialEq, Eq)]
pub struct PersonRecord {
    pub id: i64,
    /// As first typed; empty once erased.
    pub email: String,
    pub state: PersonState,
    pub code: ReferralCode,
    pub account: Option<AccountId>,
    pub created_at: Timestamp,
    pub joined_at: Option<Timestamp>,
    pub left_at: Option<Timestamp>,
    pub erased_at: Option<Timestamp>,
    /// The code of the member who is credited for them.
    pub referrer: Option<ReferralCode>,
    /// Members that they are credited for; at most a minute old.
    pub referred: u64,
    /// A mail server said that there is no such mailbox.
    pub undeliverable_until: Option<Timestamp>,
    pub soft_bounces: u64,
    pub answers: Answers,
    pub answered_at: Option<Timestamp>,
    pub mail_choices: MailChoices,
    pub language: Option<Language>,
    /// No one is credited for them: a member with their mailbox was erased.
    pub uncredited: bool,
    /// The source that they joined through; none before they did.
    pub source: Option<String>,
}

/// A person with what is kept of them; the three lists are filled page by page ([`ActivityPage`]).
#[derive(Clone, PartialEq, Eq)]
pub struct PersonDetails {
    pub person: PersonRecord,
    pub mailbox: MailboxStanding,
    /// Oldest first.
    pub sign_ups: Vec<SignUpEntry>,
    pub referrals: Referrals,
    pub participations: Vec<ParticipationEntry>,
    pub rewards: RewardStanding,
    /// Filled with the lists.
    pub reward_history: RewardHistory,
    /// Requests to sign in within the last day, oldest first.
    pub sign_ins: Vec<SignInEntry>,
    pub requests: Vec<RequestEntry>,
    pub wrong_codes: u64,
}

impl PersonRecord {
    /// The bills that they are mailed about when a campaign opens.
    pub fn hears_of(&self) -> CategorySet {
        if self.mail_choices.wants(MailKind::CampaignOpened) { self.answers.chosen() } else { CategorySet::default() }
    }
}

impl PersonDetails {
    /// Whether mail of a kind about campaigns goes to them.
    pub fn is_mailed(&self, kind: CampaignMail, now: Timestamp) -> bool {
        let stopped_until = [self.person.undeliverable_until, self.mailbox.suppressed_until];
        self.person.mail_choices.wants(kind.into())
            && self.mailbox.complained_at.is_none()
            && stopped_until.into_iter().flatten().all(|until| until <= now)
    }

    /// Sign-ups that a member's page knows of, the newest; the export has all of them.
    pub const LAST_SIGN_UPS: u32 = 30;
}

/// What came of a person's referral link.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Referrals {
    /// People who signed up with it and are still known, counted up to 1,000.
    pub signed_up: u64,
    /// Those who are members, and whom they are credited for; at most a minute old where they are 1,000 or more.
    pub members: u64,
}

impl Referrals {
    /// How far `signed_up` is counted.
    pub const MOST_COUNTED: u32 = 1000;
}

/// Some of what hangs on a person, in an order of its own, and where the rest begins.
#[derive(Default)]
pub struct ActivityPage {
    pub sign_ups: Vec<SignUpEntry>,
    pub sign_ins: Vec<SignInEntry>,
    pub requests: Vec<RequestEntry>,
    pub next: Option<ActivityPlace>,
}

/// A place among what hangs on a person: after these ids.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ActivityPlace {
    pub sign_up: i64,
    pub sign_in: i64,
    /// A request by its partner, its time and its id.
    pub request: (i64, i64, i64),
}

/// A request to sign in.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignInEntry {
    pub asked_at: Timestamp,
    pub mailed: bool,
    /// Codes that were typed for it.
    pub tries: u32,
    pub used_at: Option<Timestamp>,
}

/// A request about them with an idempotency key.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestEntry {
    pub partner: String,
    /// As the partner chose it; nobody else has checked it.
    pub name: String,
    pub asked_at: Timestamp,
    /// When they pressed the button, as the partner can learn.
    pub confirmed_at: Option<Timestamp>,
}

/// How long what is known of people is kept (retention).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionTimes {
    /// People who never confirmed, and sign-ups that came to nothing.
    pub unconfirmed: Duration,
    /// The answers of sign-ups that came to nothing.
    pub answers: Duration,
    /// People who left; then they are as if erased.
    pub left: Duration,
    /// That somebody calls our mail unwanted.
    pub complaints: Duration,
}

impl RetentionTimes {
    pub const DEFAULT: Self = Self {
        unconfirmed: DAY.saturating_mul(90),
        answers: DAY.saturating_mul(30),
        left: DAY.saturating_mul(365),
        complaints: DAY.saturating_mul(365),
    };
}

/// A mailbox, which several addresses may share, and what keeps mail from it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct MailboxStanding {
    pub record: MailboxRecord,
    /// Whether the newest of its mails has not left yet.
    pub is_on_its_way: bool,
    pub suppressed_until: Option<Timestamp>,
    pub complained_at: Option<Timestamp>,
    /// Partners whose mail is not sent there, by name.
    pub stopped: Vec<StoppedPartner>,
    /// Other people whose mail arrives there, counted up to 1,000.
    pub shared_with: u64,
}

/// A partner whose mail a mailbox wants none of.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoppedPartner {
    #[serde(serialize_with = "source_in_json")]
    pub partner: String,
    pub stopped_at: Timestamp,
}

/// A sign-up, with the evidence of consent and its mail, as far as that waits.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignUpEntry {
    #[serde(skip)]
    pub id: SignUpId,
    #[serde(skip)]
    pub email: String,
    /// The partner whose assistant asked, or "the form".
    #[serde(rename = "through", serialize_with = "source_in_json")]
    pub source: String,
    /// The id of the partner's key.
    pub key: Option<String>,
    /// `pending`, `confirmed`, `expired` or `declined`. A pending one past its time counts as expired.
    pub state: SignUpState,
    #[serde(flatten)]
    pub answers: Answers,
    #[serde(rename = "referredBy")]
    pub referrer: Option<ReferralCode>,
    /// Whether the address is of a kind that is thrown away.
    #[serde(rename = "disposableAddress")]
    pub disposable: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub expires_at: Timestamp,
    pub decided_at: Option<Timestamp>,
    /// Its mail, while that waits.
    #[serde(rename = "waitingMail")]
    pub mail: Option<WaitingMail>,
    #[serde(flatten)]
    pub evidence: KeptEvidence,
}

/// What is kept to prove how a person came to be asked and what they said; older sign-ups have less of it.
#[derive(Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeptEvidence {
    /// `rest`, `mcp` or `form`.
    pub channel: Option<Channel>,
    /// What the assistant's program called itself. Nobody checked it.
    #[serde(rename = "clientSelfAsserted")]
    pub client: Option<String>,
    /// The notice in force when it was made; for one that was confirmed, the one that stood above the button.
    pub notice: Option<KeptNotice>,
    /// When its mail last left.
    pub mailed_at: Option<Timestamp>,
    /// `button` (of the page that the mailed link leads to), `one-click` (of the mail program), `leaving` or `taken-back` (of "this wasn't me").
    pub decided_how: Option<String>,
    /// The language of the page that the form was filled in on.
    pub language: Option<Language>,
}

/// A notice that a person was shown.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeptNotice {
    pub hash: String,
    pub words: Option<String>,
}

/// The name of a source in JSON: a partner's, or "the form".
pub fn source_in_json<S: Serializer>(source: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(source_name(source))
}

/// What became of somebody who was to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// They are no member any more; so many sign-ups that waited for them lapsed.
    Left {
        withdrawn: u64,
    },
    NotAMember(PersonState),
    Unknown,
}

/// Rewards that are due are given up.
#[derive(Clone, PartialEq, Eq)]
pub struct Waiver {
    pub by: String,
    /// The most that they knew of, in cents: what is due beyond that is not given up.
    pub most_cents: i64,
}

impl Waiver {
    pub fn of_all(by: &str) -> Self {
        Self { by: by.to_owned(), most_cents: i64::MAX }
    }
}

/// Somebody is not erased: they have rewards that are to be paid, or given up, first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewardsDue {
    pub cents: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Erased {
    pub was_member: bool,
    pub code: ReferralCode,
    pub waived_cents: i64,
    pub sign_ups: u64,
    pub mails: u64,
    /// Others get mail there, so what is known of the mailbox stays.
    pub mailbox_is_shared: bool,
    /// False where so much was kept of them that it is deleted in several steps, and this was one of them.
    pub is_whole: bool,
}

impl Erased {
    #[must_use]
    pub fn after(self, before: Option<Self>) -> Self {
        let Some(before) = before else { return self };
        Self {
            was_member: before.was_member || self.was_member,
            waived_cents: before.waived_cents + self.waived_cents,
            sign_ups: before.sign_ups + self.sign_ups,
            mails: before.mails + self.mails,
            ..self
        }
    }
}

/// What kept mail from a person and no longer does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lifted {
    pub suppression: bool,
    pub complaint: bool,
    pub undeliverable: bool,
    pub partners: bool,
}
