//! People, their sign-ups and the states both go through.
//!
//! A person is `invited` until a sign-up of theirs is confirmed, then a `member`, and `left` once they leave. Every
//! sign-up is a record of its own: what a person confirms is the sign-up they were mailed about, so nobody else's
//! submission can change a member's answers.

use std::time::Duration;

use super::api_key::{KeyId, PartnerName};
use super::category::CategorySet;
use super::email::EmailAddress;
use super::referral::ReferralCode;
use super::text::Comments;
use super::us_state::UsState;

/// How long a person has to confirm.
pub const PENDING_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// Which wording of the consent text a sign-up was made under; it goes up whenever that text changes.
pub const CONSENT_VERSION: u32 = 1;

/// Someone as an agent action names them: their address and the code that is theirs unless the store kept another.
#[derive(Debug, Clone)]
pub struct NamedPerson {
    pub email: EmailAddress,
    pub code: ReferralCode,
}

/// What a sign-up brings.
#[derive(Debug, Clone)]
pub struct NewSignUp {
    pub person: NamedPerson,
    pub us_state: Option<UsState>,
    pub categories: CategorySet,
    pub comments: Option<Comments>,
    pub ref_code: Option<ReferralCode>,
    pub partner: Partner,
}

/// The partner a sign-up came through, and the key it used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partner {
    pub key: KeyId,
    pub name: PartnerName,
}

/// What a caller may know of a finished sign-up: the same whatever the person's state was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedUp {
    pub code: ReferralCode,
    pub joined_count: u64,
    pub attributed: bool,
}

/// Names one sign-up inside the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SignUpId(pub i64);

/// What came of a person's click on their confirmation link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// They are a member from now on; counted once.
    Joined,
    /// This sign-up was confirmed before, or they were a member already.
    AlreadyMember,
    Expired,
    Declined,
    Unknown,
}
