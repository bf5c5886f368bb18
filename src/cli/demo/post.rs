//! The way of mail while a demonstration's history is told, and how its people read it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::people::{NO_MAILBOX, Person};
use crate::domain::mail::MailKind;
use crate::domain::time::{DAY, Timestamp};
use crate::mail::mailbox::MailboxFolder;
use crate::mail::{OutgoingMail, SendError, Transport};
use crate::reply::Reply;

/// Mail of the last days is still in the mailbox; people deleted what came before.
const KEPT_FOR: Duration = DAY.saturating_mul(10);

pub(super) struct Post {
    mailbox: MailboxFolder,
    kept_since: Timestamp,
    /// The last mail to each address that asks for a decision.
    letters: Mutex<HashMap<String, String>>,
}

impl Post {
    pub(super) fn new(mailbox: MailboxFolder, now: Timestamp) -> Arc<Self> {
        Arc::new(Self { mailbox, kept_since: now.minus(KEPT_FOR), letters: Mutex::default() })
    }

    /// The token of a link in the mail that somebody got: the rest of the address after that path. None if no mail came.
    pub(super) fn token(&self, person: &Person, path: &str) -> Option<String> {
        let letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        let text = letters.get(&person.email.normalized())?;
        let (_, after) = text.split_once(path)?;
        after.split_whitespace().next().map(str::to_owned)
    }
}

impl Transport for Post {
    fn send(&self, mail: OutgoingMail) -> Reply<'_, Result<(), SendError>> {
        if mail.readable.to.ends_with(NO_MAILBOX) {
            return Reply::now(Err(SendError::Rejected));
        }
        let Some(due) = &mail.due else { return self.mailbox.send(mail) };
        if due.kind == MailKind::Confirm {
            let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
            letters.insert(mail.readable.to.to_lowercase(), mail.readable.text.clone());
        }
        if due.first_attempt_at < self.kept_since {
            return Reply::now(Ok(()));
        }
        self.mailbox.send(mail)
    }
}
