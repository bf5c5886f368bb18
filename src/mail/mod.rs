//! Mail: what it says, and how it gets to people.
//!
//! The outbox in the store is the only way in; a worker takes mails from it and hands them to a transport. This room must
//! never know HTTP or which operation asked, and never put an address or a token into an error or a log.

pub mod compose;
pub mod mailbox;
pub mod message;
pub mod outbox;
pub mod smtp;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;

use crate::reply::Reply;

/// A mail, ready to go.
#[derive(Debug)]
pub struct Letter {
    /// Stays the same however often the mail is sent; sorts by age.
    pub name: String,
    pub message: lettre::Message,
}

/// Why a mail did not go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendError {
    /// There is no such recipient; trying again is no use.
    Rejected,
    /// Anything else, the operator's own mistakes included: it is tried again. Holds no address.
    Later(String),
    /// It may have gone or not: it is tried again, but counts as sent towards what its mailbox is spared.
    Unknown(String),
}

/// A way for mail to leave. It must give up sooner than a lease ends.
pub trait Transport: Send + Sync + fmt::Debug {
    fn send(&self, letter: Letter) -> Reply<'_, Result<(), SendError>>;
}

/// What the rest of the house sees of the mail: a bell to ring when there is some, and whether it goes.
#[derive(Debug, Default)]
pub struct Desk {
    bell: Notify,
    failing: AtomicBool,
    sent: AtomicU64,
    rejected: AtomicU64,
    given_up: AtomicU64,
}

impl Desk {
    /// There is new mail in the outbox.
    pub fn ring(&self) {
        self.bell.notify_one();
    }

    pub fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// How much mail left the outbox since the start, by how.
    pub fn counts(&self) -> [(&'static str, u64); 3] {
        [("sent", &self.sent), ("rejected", &self.rejected), ("given_up", &self.given_up)]
            .map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed)))
    }
}
