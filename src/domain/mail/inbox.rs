//! Mail of the sandbox: it goes nowhere but into the inbox of the partner whose sign-up it is about.

use std::time::Duration;

use crate::domain::partner::name::PartnerId;
use crate::domain::time::{DAY, Timestamp};

/// Mails that a partner's inbox holds; the oldest make way.
pub const INBOX_HOLDS: u32 = 1000;

/// How long test data is kept, mail among it.
pub const TEST_DATA_KEPT_FOR: Duration = DAY.saturating_mul(30);

/// A mail that arrives.
#[derive(Clone, PartialEq, Eq)]
pub struct ArrivingMail {
    /// Whose sign-up it is about; none for the form.
    pub partner: Option<PartnerId>,
    /// The same however often the mail is sent: it arrives once.
    pub name: String,
    pub to: String,
    pub from: String,
    pub subject: String,
    pub text: String,
    pub html: String,
}

/// One that is there.
#[derive(Clone, PartialEq, Eq)]
pub struct InboxMail {
    /// Newer ones have higher ones.
    pub id: i64,
    pub to: String,
    pub from: String,
    pub subject: String,
    pub text: String,
    pub html: String,
    pub received_at: Timestamp,
}

impl std::fmt::Debug for InboxMail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "InboxMail({})", self.id)
    }
}
