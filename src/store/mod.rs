//! What the union remembers, behind one trait.
//!
//! A method is a whole unit of work: it commits everything it did or nothing, and no transaction crosses the trait. The
//! time is passed in. A store must never know about requests, limits or mail transports, and must never put an address,
//! a key or a token into an error.

pub mod moving;
pub mod postgres;
pub mod sqlite;

use std::fmt;

use crate::domain::api_key::{KeyId, KeyRecord};
use crate::domain::email::EmailAddress;
use crate::domain::mail::{DueMail, MailId, MailOutcome, WaitingMail};
use crate::domain::referral::ReferralCode;
use crate::domain::signup::{Confirmation, Declining, NamedPerson, NewSignUp, SignUpId, SignUpRecord, SignedUp};
use crate::domain::time::Timestamp;
use crate::reply::Reply;

/// Units of work that share a commit at the most: past this a bigger batch gains little and its first unit waits longer.
pub const WRITE_BATCH: usize = 256;

/// Every backend passes the same suite: `tests/it/once/store_suite.rs`.
pub trait Store: Send + Sync + fmt::Debug {
    /// How many members there are now; constant time at any size, never cached.
    fn member_count(&self) -> Answer<'_, u64>;

    /// Writes the sign-up, its person if new, its attribution and its mail. The same partner again while the person has
    /// not decided replaces the answers of that sign-up.
    fn sign_up(&self, new: NewSignUp, now: Timestamp) -> Answer<'_, SignedUp>;

    /// The code kept for an address, if there is one; refused while sign-ups are paused.
    fn referral_code(&self, email: &EmailAddress) -> Answer<'_, Option<ReferralCode>>;

    /// The code of the person, who is remembered as `invited` if new.
    fn create_referral_code(&self, person: NamedPerson, now: Timestamp) -> Answer<'_, ReferralCode>;

    /// The person clicked: at most one member more, whatever is repeated and however much of it at once. `seen` is when the
    /// answers they were shown had been given; if those were replaced since, nothing is confirmed.
    fn confirm(&self, sign_up: SignUpId, seen: Option<Timestamp>, now: Timestamp) -> Answer<'_, Confirmation>;

    /// A sign-up, as its person is shown it.
    fn find_sign_up(&self, sign_up: SignUpId, now: Timestamp) -> Answer<'_, Option<SignUpRecord>>;

    /// The person said "this wasn't me": the sign-up is withdrawn and their mailbox left in peace for a while.
    fn decline(&self, sign_up: SignUpId, now: Timestamp) -> Answer<'_, Declining>;

    /// Takes up to `most` mails that are due and may go, for `worker` alone until the lease ends. Drops those that have
    /// become pointless and puts off those that would be too many for their mailbox.
    fn lease_mail(&self, worker: &str, most: usize, now: Timestamp) -> Answer<'_, Vec<DueMail>>;

    /// Writes down what became of an attempt; without effect if the mail was leased again since.
    fn settle_mail(&self, mail: MailId, attempt: u32, outcome: MailOutcome, now: Timestamp) -> Answer<'_, ()>;

    /// Gives back what `worker` had leased when it was ended; says how many.
    fn release_mail(&self, worker: &str) -> Answer<'_, usize>;

    /// The outbox, oldest first, without addresses.
    fn list_mail(&self) -> Answer<'_, Vec<WaitingMail>>;

    /// Lets a mail be tried at once; false if there is none.
    fn retry_mail(&self, mail: MailId, now: Timestamp) -> Answer<'_, bool>;

    /// Lets sign-ups expire and deletes the answers of those that came to nothing, some at a time; says how many.
    fn tidy(&self, now: Timestamp) -> Answer<'_, Tidied>;

    fn find_key(&self, id: KeyId) -> Answer<'_, Option<KeyRecord>>;

    /// All keys, oldest first, each with how many of its sign-ups were declined.
    fn list_keys(&self) -> Answer<'_, Vec<(KeyRecord, u64)>>;

    fn issue_key(&self, key: KeyRecord) -> Answer<'_, ()>;

    /// Ends a key now. `None` if there is no such key; one revoked before keeps its time.
    fn revoke_key(&self, id: KeyId, now: Timestamp) -> Answer<'_, Option<KeyRecord>>;

    /// Adds `successor` and lets `old` end at `end`, or when it would have ended before. False, and nothing done, if
    /// there is no such key or it is revoked.
    fn rotate_key(&self, old: KeyId, end: Timestamp, successor: KeyRecord) -> Answer<'_, bool>;

    /// Remembers that a key was used. Never moves backwards.
    fn touch_key(&self, id: KeyId, now: Timestamp) -> Answer<'_, ()>;

    /// Switches the agent actions off or on for every node. Says whether that changed anything.
    fn pause_sign_ups(&self, paused: bool) -> Answer<'_, bool>;

    /// Ties the records to the installation's secret, on the first call; says later whether it is the same.
    fn claim_secret(&self, fingerprint: String) -> Answer<'_, Claim>;

    /// Whether a write would be kept right now: it makes one that changes nothing.
    fn check(&self) -> Answer<'_, ()>;

    /// Finishes what was begun and lets go of the files or connections. What is asked later fails.
    fn close(&self) -> Answer<'_, ()>;
}

/// Whose records these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Nobody's until now.
    First,
    /// This secret's.
    Same,
    Another,
}

/// What one round of tidying did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tidied {
    pub expired: usize,
    pub purged: usize,
}

pub type Answer<'a, T> = Reply<'a, Result<T, StoreError>>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The operator paused sign-ups; nothing was written.
    #[error("sign-ups are paused")]
    Paused,
    /// The code offered for a new person is another's: offer the next.
    #[error("the referral code is taken")]
    CodeTaken,
    /// The store could not be read, or could not commit; nothing was written. The cause is for the operator.
    #[error("{0}")]
    Unavailable(String),
}
