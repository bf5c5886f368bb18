//! People, their sign-ups and the states both go through.
//!
//! A person is `invited` until a sign-up of theirs is confirmed, then a `member`, and `left` once they leave. Every
//! sign-up is a record of its own: what a person confirms is the sign-up they were mailed about, so no one else's
//! submission can change a member's answers.

use crate::domain::time::DAY;
use std::sync::Arc;
use std::time::Duration;

use super::answers::Answers;
use super::api_key::KeyId;
use super::campaign::CampaignSlug;
use super::email::EmailAddress;
use super::json::named_enum;
use super::language::Language;
use super::mail::lane::Lane;
use super::partner::idempotency::{IdempotentRequest, Replayed};
use super::partner::name::{PartnerId, PartnerName};
use super::referral::ReferralCode;
use super::secret::mark::MailboxTombstone;
use super::time::Timestamp;

/// How long a person has to confirm.
pub const PENDING_FOR: Duration = DAY.saturating_mul(7);

/// How long a mailbox gets no mail after its owner asked for silence.
pub const SUPPRESSED_FOR: Duration = DAY.saturating_mul(30);

/// Which wording of the consent text a sign-up was made under; it goes up whenever that text changes.
pub const CONSENT_VERSION: u32 = 1;

/// Someone as an agent action names them: their address and the code that is theirs unless the store kept another.
#[derive(Clone)]
pub struct NamedPerson {
    pub email: EmailAddress,
    pub code: ReferralCode,
    /// By which somebody of the mailbox who was erased is known.
    pub tombstone: MailboxTombstone,
}

#[derive(Clone)]
pub struct NewSignUp {
    pub person: NamedPerson,
    pub answers: Answers,
    pub ref_code: Option<ReferralCode>,
    /// None when the person filled in the form themselves.
    pub partner: Option<Partner>,
    pub lane: Lane,
    /// It came with a proof of work: its mail passes the budget.
    pub proven: bool,
    /// The address is of a kind that is thrown away: no one is credited for it.
    pub disposable: bool,
    /// Of the page that the form was filled in on; none where a partner asked.
    pub language: Option<Language>,
    /// The name that its partner gave the request.
    pub request: Option<IdempotentRequest>,
    pub evidence: Evidence,
}

named_enum! {
    pub enum Channel {
        Rest = "rest",
        Mcp = "mcp",
        Form = "form",
    }
}

/// What a program calls itself, unchecked.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientName(Arc<str>);

impl ClientName {
    /// In characters; what is longer is cut.
    const LONGEST: usize = 100;

    /// None where nothing is left of it but white space and what cannot be seen.
    pub fn new(text: &str) -> Option<Self> {
        let seen = text.chars().filter(|c| !c.is_control() && !super::text::is_hidden(*c)).take(Self::LONGEST);
        let name: String = seen.collect();
        let name = name.trim();
        (!name.is_empty()).then(|| Self(name.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, PartialEq, Eq)]
pub struct Evidence {
    pub channel: Channel,
    /// Only where MCP named one.
    pub client: Option<ClientName>,
    /// The hash of the notice that was shown.
    pub notice: Arc<str>,
}

named_enum! {
    pub enum DecidedHow {
        /// With the button that the mailed link leads to.
        Button = "button",
        /// With the mail program's own button (RFC 8058).
        OneClick = "one-click",
        /// By leaving: pending sign-ups were withdrawn.
        Leaving = "leaving",
        /// By taking "this wasn't me" back.
        TakenBack = "taken-back",
        /// By the operator, who ended what a leaked key had signed up.
        Operator = "operator",
    }
}

/// What a page showed its reader before they pressed its button.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SeenPage {
    /// When the answers on it had been given; none where the page did not say.
    pub answers: Option<Timestamp>,
    pub notice: Option<Arc<str>>,
    pub language: Option<Language>,
}

/// Mail that the holder of a mail's link does not want.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Silence {
    /// That somebody signed a member up again.
    pub again: bool,
    /// Whatever the partner of that sign-up asks for.
    pub partner: bool,
    /// Anything at all, for a while.
    pub mailbox: bool,
}

/// What a reader changes about it: a box that their page showed ticked and that no longer is gets lifted. What the page did not
/// show stays.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct SilenceChange {
    pub add: Silence,
    pub lift: Silence,
}

impl SilenceChange {
    pub fn between(shown: Silence, wanted: Silence) -> Self {
        let lifted = |shown: bool, wanted: bool| shown && !wanted;
        let lift = Silence {
            again: lifted(shown.again, wanted.again),
            partner: lifted(shown.partner, wanted.partner),
            mailbox: lifted(shown.mailbox, wanted.mailbox),
        };
        Self { add: wanted, lift }
    }
}

/// Posts of the form that may wait for one person. They may be from different people, so none changes another.
pub const POSTS_PENDING: usize = 3;

#[derive(Clone, PartialEq, Eq)]
pub struct Partner {
    pub key: KeyId,
    pub id: PartnerId,
    pub name: PartnerName,
}

/// Why somebody was not signed up, or got no code; nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    Paused,
    /// The code offered for a new person is another's: offer the next.
    CodeTaken,
    KeyReused,
    /// The partner has used as many idempotency keys for the address as it may.
    TooManyKeys,
}

/// What a caller may know of a finished sign-up: the same whatever the person's state was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedUp {
    pub code: ReferralCode,
    pub joined_count: u64,
    pub attributed: bool,
    /// It was done before, under the same name: all of this is what was answered then.
    pub replayed: Option<Replayed>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SignUpId(pub i64);

/// One sign-up as its mail names it: with the time, for a restored database gives ids out again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SignUpRef {
    pub id: SignUpId,
    pub created_at: Timestamp,
}

/// What came of a person's click on their confirmation link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmation {
    /// They are a member from now on; counted once.
    Joined(NewMember),
    /// This sign-up was confirmed before, or they were a member already.
    AlreadyMember,
    Expired,
    Declined,
    Unknown,
    /// The answers were replaced after the person saw them; nothing was confirmed.
    Changed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMember {
    pub code: ReferralCode,
    /// Theirs, or else the form's.
    pub language: Option<Language>,
    /// As they count now: those that they sent, and those that were kept of them.
    pub answers: Answers,
    pub campaign: Option<CampaignSlug>,
}

/// What came of a person's "this wasn't me".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declining {
    Declined,
    /// They confirmed it before; membership is never ended this way.
    Confirmed,
    Expired,
    Unknown,
}

named_enum! {
    pub enum SignUpState {
        Pending = "pending",
        Confirmed = "confirmed",
        Expired = "expired",
        Declined = "declined",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignUpRecord {
    /// A pending one past its time counts as expired.
    pub state: SignUpState,
    pub email: EmailAddress,
    pub code: ReferralCode,
    pub partner: Option<String>,
    pub answers: Answers,
    /// The person who is credited if this is confirmed.
    pub referrer: Option<NamedReferrer>,
    pub updated_at: Timestamp,
    pub is_member: bool,
    /// When it made its person a member, if they are one by it.
    pub joined_at: Option<Timestamp>,
    /// The person's, or else the form's.
    pub language: Option<Language>,
    pub campaign: Option<CampaignSlug>,
    /// Whether it was declined, and that can still be taken back.
    pub can_take_back: bool,
    pub silence: Silence,
    /// Until when nothing is sent to the mailbox.
    pub silent_until: Option<Timestamp>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SignUpsOf {
    Key(KeyId),
    Partner(PartnerId),
    Form,
}

impl SignUpsOf {
    /// The key or the partner, as the columns of a sign-up name them; the form's are 0's.
    pub fn columns(&self) -> (Option<&str>, Option<PartnerId>) {
        match self {
            Self::Key(key) => (Some(key.as_str()), None),
            Self::Partner(partner) => (None, Some(*partner)),
            Self::Form => (None, Some(PartnerId(0))),
        }
    }
}

/// A place among the pending sign-ups, in the order in which they expire.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PendingPlace {
    pub expires_at: Timestamp,
    pub id: SignUpId,
}

impl PendingPlace {
    pub const START: Self = Self { expires_at: Timestamp::from_millis(0), id: SignUpId(0) };
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedReferrer {
    pub code: ReferralCode,
    /// None once they were erased.
    pub email: Option<EmailAddress>,
}
