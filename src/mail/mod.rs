//! Mail: what it says, and how it gets to people.
//!
//! The outbox is the only way in; a worker takes mails from it and hands them to a transport. It must never know HTTP or which operation asked, and never put an address or a token into an error or a log.

mod campaign;
pub mod compose;
mod letter;
pub mod mailbox;
mod message;
mod operator;
pub mod outbox;
mod partner;
pub mod preview;
pub mod report;
pub mod smtp;
mod smtp_address;
mod smtp_error;
pub mod sources;
pub mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::domain::health::MailState;
use crate::domain::mail::DueMail;
use crate::domain::partner::name::PartnerId;
use crate::domain::time::Timestamp;
use crate::reply::Reply;

/// A mail, ready to go.
pub struct OutgoingMail {
    /// Stays the same however often the mail is sent; sorts by age.
    pub name: String,
    pub message: lettre::Message,
    pub readable: ReadableMail,
    /// Whose inbox it is put into in the sandbox.
    pub inbox: Option<PartnerId>,
    /// What it was made of, if it comes from the outbox.
    pub due: Option<DueMail>,
}

/// The same mail field by field, as a development server shows it.
#[derive(Clone, Serialize, Deserialize)]
pub struct ReadableMail {
    pub to: String,
    pub from: String,
    pub subject: String,
    pub date: String,
    pub text: String,
    pub html: String,
}

/// Why a mail did not go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendError {
    /// There is no such recipient; trying again is no use.
    Rejected,
    /// Anything else, the operator's own mistakes included: it has not gone, and is tried again. Holds no address.
    Later(String),
    /// Nothing is wrong, and it is wanted then.
    NotBefore(Timestamp),
    /// It may have gone or not: it is tried again, but counts as sent towards what its mailbox is spared.
    Unknown(String),
}

/// A way for mail to leave. It may take long: the worker renews the lease meanwhile.
pub trait Transport: Send + Sync {
    fn send(&self, mail: OutgoingMail) -> Reply<'_, Result<(), SendError>>;

    /// Whether a mail could go now, found out without one; otherwise why not. A folder is found out by the next mail.
    fn try_out(&self) -> Reply<'_, Result<(), String>> {
        Reply::now(Ok(()))
    }
}

/// What happens to mail here.
#[derive(Clone)]
pub enum Delivery {
    /// None can be sent, so no one could ever confirm: no sign-ups.
    Off,
    /// It waits in the outbox for another node.
    Held,
    /// A worker of this process sends it.
    Sent(Arc<MailNotifier>),
}

impl Delivery {
    /// There is new mail in the outbox.
    pub fn notify(&self) {
        if let Self::Sent(notifier) = self {
            notifier.notify();
        }
    }

    pub fn state(&self) -> MailState {
        match self {
            Self::Off => MailState::Off,
            Self::Held => MailState::Held,
            Self::Sent(notifier) if notifier.failing.load(Ordering::Relaxed) => MailState::Failing,
            Self::Sent(notifier) if !notifier.tried.load(Ordering::Relaxed) => MailState::Untried,
            Self::Sent(_) => MailState::Sent,
        }
    }
}

/// What the rest of the service sees of the worker: it is woken when there is mail, and says whether mail goes.
#[derive(Default)]
pub struct MailNotifier {
    wake: Notify,
    /// Whether a mail was given to the transport since the start.
    tried: AtomicBool,
    failing: AtomicBool,
    sent: AtomicU64,
    rejected: AtomicU64,
    given_up: AtomicU64,
    deferred: AtomicU64,
    held: AtomicU64,
}

impl MailNotifier {
    /// There is new mail in the outbox.
    pub fn notify(&self) {
        self.wake.notify_one();
    }

    /// How much mail the budgets of sources have held since the start.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// How often a mail did not go and was put off, since the start.
    pub fn deferred(&self) -> u64 {
        self.deferred.load(Ordering::Relaxed)
    }

    /// How much mail left the outbox since the start, by how.
    pub fn counts(&self) -> [(&'static str, u64); 3] {
        [("sent", &self.sent), ("rejected", &self.rejected), ("given_up", &self.given_up)]
            .map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed)))
    }
}
