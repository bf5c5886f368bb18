//! What happened in the union of a demonstration before it is shown.

use std::sync::Arc;

use super::parts::ServiceParts;
use super::printed::Told;
use crate::config::ServeSettings;
use crate::domain::time::Timestamp;
use crate::mail::mailbox::MailboxFolder;
use crate::mail::{OutgoingMail, SendError, Transport};
use crate::reply::Reply;

/// The way of mail while the history is told.
pub(super) struct Post(MailboxFolder);

impl Post {
    pub(super) fn new(mailbox: MailboxFolder) -> Arc<Self> {
        Arc::new(Self(mailbox))
    }
}

impl Transport for Post {
    fn send(&self, mail: OutgoingMail) -> Reply<'_, Result<(), SendError>> {
        self.0.send(mail)
    }
}

pub(super) async fn tell(
    parts: &mut ServiceParts,
    _settings: &ServeSettings,
    _receiver: &str,
    now: Timestamp,
) -> anyhow::Result<Told> {
    parts.work(now).await?;
    let _ = (&parts.operator, &parts.app, &parts.secret, &parts.union);
    Ok(Told {
        member: String::new(),
        operator: String::new(),
        partner: String::new(),
        live_key: String::new(),
        test_key: String::new(),
        negotiated: String::new(),
    })
}
