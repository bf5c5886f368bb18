//! The rules of mail: how often a mailbox may be written to, and when a mail that failed is tried again.

pub mod budget;
pub mod choices;
pub mod inbox;
pub mod lane;
pub mod policy;
pub mod report;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use self::lane::Lane;
use crate::domain::api_key::KeyId;
use crate::domain::backoff::{backoff_with_jitter, exponential_backoff};
use crate::domain::campaign::CampaignMail;
use crate::domain::campaign::acceptance::Reference;
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::json::named_enum;
use crate::domain::language::{Language, Phrase};
use crate::domain::partner::name::PartnerId;
use crate::domain::referral::ReferralCode;
use crate::domain::sign_in::SignInRef;
use crate::domain::sign_up::SignUpRef;
use crate::domain::time::{DAY, Timestamp};

/// Between two mails to one mailbox, from any source.
pub const MIN_MAIL_GAP: Duration = Duration::from_secs(10 * 60);

/// Mails to one mailbox within 24 hours.
pub const MAX_MAILS_PER_DAY: usize = 4;

/// How long a worker has a mail to itself once it has taken it; a slow worker renews the lease.
pub const MAIL_LEASE: Duration = Duration::from_secs(30);

/// The waits before a mail that failed is tried again.
const FIRST_RETRY_AFTER: Duration = Duration::from_secs(2);
const MAX_RETRY_WAIT: Duration = Duration::from_secs(3600);

/// How long after the first attempt a mail is given up.
const GIVE_UP_AFTER: Duration = DAY;

/// The longest that a mail waits for its turn or for its next attempt: a day, and an hour with its spread.
pub const LONGEST_WAIT: Duration = Duration::from_secs(26 * 3600);

/// How far the clocks of two nodes may differ.
const SKEW: Duration = Duration::from_secs(120);

/// How long an address that a mail server rejected is not written to.
pub const UNDELIVERABLE_FOR: Duration = DAY.saturating_mul(30);

/// Mails that wait for one mailbox at the most; the others would wait for days.
pub const MAX_WAITING_PER_MAILBOX: usize = 4;

/// Mails of a kind that operators see counted, at the most: a page or a scrape costs the same however much waits.
pub const MOST_COUNTED: u32 = 10_000;

/// Names one waiting mail inside the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MailId(pub i64);

named_enum! {
    pub enum MailKind {
        /// "Please confirm."
        Confirm = "confirm",
        /// "You are already in."
        AlreadyMember = "already_member",
        /// The link and the code to one's own page.
        SignIn = "sign_in",
        /// A campaign opened for a bill that they ticked.
        CampaignOpened = "campaign_opened",
        /// An offer waits for those who are in.
        CampaignOffer = "campaign_offer",
        /// What came of it.
        CampaignResult = "campaign_result",
        /// What somebody accepted, at once.
        Receipt = "receipt",
    }
}

impl From<CampaignMail> for MailKind {
    fn from(mail: CampaignMail) -> Self {
        match mail {
            CampaignMail::Opened => Self::CampaignOpened,
            CampaignMail::Offer => Self::CampaignOffer,
            CampaignMail::Result => Self::CampaignResult,
        }
    }
}

impl MailKind {
    /// Which mail about a campaign it is, if it is one.
    pub fn campaign(self) -> Option<CampaignMail> {
        CampaignMail::ALL.into_iter().find(|mail| Self::from(*mail) == self)
    }

    /// What the mail is called in an inbox.
    pub fn subject(self, union: &str, language: Language) -> String {
        self.subject_words(language).put("union", union).plain()
    }

    /// The same with its holes: mail about a campaign names that as well.
    pub fn subject_words(self, language: Language) -> &'static Phrase {
        let words = &language.words().mail;
        match self {
            Self::Confirm => &words.confirm_subject,
            Self::AlreadyMember => &words.member_subject,
            Self::SignIn => &words.sign_in_subject,
            Self::CampaignOpened => &words.campaign_opened_subject,
            Self::CampaignOffer => &words.campaign_offer_subject,
            Self::CampaignResult => &words.campaign_result_subject,
            Self::Receipt => &words.receipt_subject,
        }
    }
}

/// Names a person in the links of a mail about a campaign: a database that gives ids out again makes no old link somebody else's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonRef {
    pub id: i64,
    pub created_at: Timestamp,
}

/// What a mail is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailAbout {
    SignUp(SignUpRef),
    SignIn(SignInRef),
    Campaign(CampaignNews),
    Receipt(Receipt),
}

/// A campaign as it is when the mail goes, and the recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignNews {
    pub mail: CampaignMail,
    pub campaign: Arc<CampaignRecord>,
    pub person: PersonRef,
}

/// What somebody accepted, as it is when the mail goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub campaign: Arc<CampaignRecord>,
    pub person: PersonRef,
    /// By which the supplier knows it.
    pub reference: Reference,
    pub accepted_at: Timestamp,
}

/// A mail that a worker has taken to send.
#[derive(Clone, PartialEq, Eq)]
pub struct DueMail {
    pub id: MailId,
    pub about: MailAbout,
    pub kind: MailKind,
    /// As typed.
    pub recipient: String,
    pub partner_id: Option<PartnerId>,
    /// Its name.
    pub partner: Option<String>,
    pub asked_at: Timestamp,
    pub code: ReferralCode,
    /// This one included.
    pub attempts: u32,
    pub first_attempt_at: Timestamp,
    pub lane: Lane,
    /// The person's, or else the form's.
    pub language: Option<Language>,
    /// It goes once more because somebody wanted to sign in: its source's budget counts it, its reputation does not.
    pub is_reminder: bool,
}

impl std::fmt::Debug for DueMail {
    /// Without the recipient: debug prints end up in logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DueMail({}, {}, attempt {})", self.id.0, self.kind.name(), self.attempts)
    }
}

impl DueMail {
    /// Whose source it came through.
    pub fn source(&self) -> &str {
        self.partner.as_deref().unwrap_or(budget::FORM)
    }
}

/// What a worker may send now, and the sources whose mail was held meanwhile.
#[derive(Debug, Default)]
pub struct Leased {
    pub mails: Vec<DueMail>,
    pub held: BTreeMap<String, u64>,
    /// Whether others that may not go made way: there may be more behind them.
    pub deferred: bool,
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailOutcome {
    Sent,
    /// Not now; the cause holds no address. `perhaps_sent` if it may have gone all the same.
    Retry {
        at: Timestamp,
        cause: String,
        perhaps_sent: bool,
    },
    /// Its transport wants it then, and nothing is wrong.
    Wait {
        at: Timestamp,
    },
    /// Not at all: it was tried for a day.
    GivenUp {
        cause: String,
        perhaps_sent: bool,
    },
    /// There is no such recipient.
    Rejected,
}

/// Which of the mail that is held a decision is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HeldMail {
    All,
    /// What was asked for with a key, looked at yet or not.
    OfKey(KeyId),
    /// What a partner asked for with any key, but for what waits until its suspension is lifted.
    OfPartner(PartnerId),
    OfTheForm,
}

/// A mail in the outbox, as the operator and its person see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingMail {
    /// A number inside the records, which the operator alone sees.
    #[serde(skip)]
    pub id: MailId,
    pub kind: MailKind,
    pub created_at: Timestamp,
    pub send_after: Timestamp,
    pub attempts: u32,
    pub last_error: Option<String>,
    pub given_up_at: Option<Timestamp>,
    /// Since when it waits for the operator's decision.
    pub held_at: Option<Timestamp>,
}

/// What is remembered of a mailbox.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct MailboxRecord {
    /// Its last mails, newest first, each with the source that asked for it.
    pub sent: Vec<(Timestamp, String)>,
    /// The mail that the newest of them stands for.
    pub holder: Option<MailId>,
}

impl MailboxRecord {
    /// How many of the last mails a source has asked for.
    pub fn sent_for(&self, source: &str) -> usize {
        self.sent.iter().filter(|(_, by)| by == source).count()
    }

    /// When the next mail that a source asks for may go. The day's last is kept for a source that has asked for none, so that
    /// no one can use up another person's mailbox.
    pub fn next_allowed(&self, source: &str, now: Timestamp) -> Timestamp {
        // What was written by a clock that was ahead says nothing about when mail went.
        let sent: Vec<_> = self.sent.iter().filter(|(time, _)| *time <= now.plus(SKEW)).collect();
        let after = |index: usize, span| sent.get(index).map(|(time, _)| time.plus(span));
        let is_known = sent.iter().any(|(time, by)| by == source && time.plus(DAY) > now);
        let a_day = if is_known { MAX_MAILS_PER_DAY - 1 } else { MAX_MAILS_PER_DAY };
        after(0, MIN_MAIL_GAP).max(after(a_day - 1, DAY)).unwrap_or(Timestamp::from_millis(i64::MIN))
    }
}

/// What to do after an attempt that failed for now. The wait doubles from two seconds to an hour, with jitter.
pub fn after_failure(mail: &DueMail, now: Timestamp, cause: String, perhaps_sent: bool) -> MailOutcome {
    if now.since(mail.first_attempt_at) >= GIVE_UP_AFTER {
        return MailOutcome::GivenUp { cause, perhaps_sent };
    }
    let wait = exponential_backoff(mail.attempts, FIRST_RETRY_AFTER, MAX_RETRY_WAIT);
    let at = now.plus(backoff_with_jitter(wait, mail.id.0.unsigned_abs(), mail.attempts));
    MailOutcome::Retry { at, cause, perhaps_sent }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::sign_up::SignUpId;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn record(sent: &[(i64, &str)]) -> MailboxRecord {
        MailboxRecord {
            sent: sent.iter().map(|(time, source)| (at(*time), (*source).to_owned())).collect(),
            holder: None,
        }
    }

    #[test]
    fn a_mailbox_gets_one_in_ten_minutes_and_four_a_day_the_last_by_another_source() {
        let next = |sent: &[(i64, &str)], source| record(sent).next_allowed(source, at(3600));
        assert!(next(&[], "").as_millis() < 0);
        assert_eq!(next(&[(100, "")], ""), at(700));
        assert_eq!(next(&[(3000, ""), (1000, "")], ""), at(3600));
        let three = [(3000, ""), (2000, ""), (1000, "")];
        assert_eq!(next(&three, ""), at(1000 + 86_400), "it has had its share");
        assert_eq!(next(&three, "Acme"), at(3600), "the last is kept for another");
        let four = [(3600, "Acme"), (3000, ""), (2000, ""), (100, "")];
        assert_eq!(next(&four, "Zoe"), at(100 + 86_400));
        assert_eq!(next(&four, "Acme"), at(2000 + 86_400));
        assert_eq!((record(&four).sent_for(""), record(&four).sent_for("Zoe")), (3, 0));
    }

    #[test]
    fn times_that_a_wrong_clock_wrote_hold_nothing_up() {
        let ahead = record(&[(8 * 86_400, ""), (100, "")]);
        assert_eq!(ahead.next_allowed("", at(200)), at(700));
        assert_eq!(ahead.next_allowed("", at(700)), at(700));
        let beside = record(&[(210, "")]);
        assert_eq!(beside.next_allowed("", at(200)), at(810), "another node's clock");
    }

    #[test]
    fn waits_double_up_to_an_hour_and_end_after_a_day() {
        let mail = |id, attempts| DueMail {
            id: MailId(id),
            about: MailAbout::SignUp(SignUpRef { id: SignUpId(1), created_at: at(0) }),
            kind: MailKind::Confirm,
            recipient: "ana@example.com".to_owned(),
            partner_id: None,
            partner: None,
            asked_at: at(0),
            code: ReferralCode::from_canonical("0123456789ab").unwrap(),
            attempts,
            first_attempt_at: at(0),
            lane: Lane::of(b"Acme"),
            language: None,
            is_reminder: false,
        };
        let wait = |id, attempts| match after_failure(&mail(id, attempts), at(0), String::new(), false) {
            MailOutcome::Retry { at, .. } => at.as_millis(),
            other => panic!("{other:?}"),
        };
        for id in 1..50 {
            for (attempts, seconds) in [(1, 2), (2, 4), (5, 32), (11, 2048), (12, 3600), (99, 3600)] {
                let waited = wait(id, attempts);
                assert!((seconds * 1000..=seconds * 1250).contains(&waited), "{attempts}: {waited}");
            }
        }
        assert_ne!(wait(1, 9), wait(2, 9), "spread");
        let late = after_failure(&mail(1, 9), at(86_400), "why".to_owned(), true);
        assert_eq!(late, MailOutcome::GivenUp { cause: "why".to_owned(), perhaps_sent: true });
        assert!(!format!("{:?}", mail(1, 1)).contains("ana"));
    }
}
