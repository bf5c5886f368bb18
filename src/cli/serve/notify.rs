//! Tells the operator what needs attention, where `--notify` says so.

use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::config::{MailTransport, NotifyTarget, ServeSettings};
use crate::domain::time::Timestamp;
use crate::domain::union::Union;
use crate::log::Log;
use crate::mail::Transport;
use crate::mail::compose::Composer;
use crate::mail::mailbox::MailboxFolder;
use crate::operator::notify::{Notifier, NotifyChannel};
use crate::server::HttpService;

/// How often it looks.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// How often it is logged that something could not be told.
const ALARM_INTERVAL: Duration = Duration::from_secs(300);

/// `composer` is none where no mail leaves from here.
pub(in crate::cli) fn channel(
    target: NotifyTarget,
    settings: &ServeSettings,
    union: &Union,
    mail: &MailTransport,
    composer: Option<Composer>,
) -> anyhow::Result<NotifyChannel> {
    let transport: Arc<dyn Transport> = match (&target, mail) {
        (NotifyTarget::Url(url), _) => {
            return Ok(NotifyChannel::Webhook { url: url.clone(), client: settings.outbound.client(&union.base_url) });
        }
        (NotifyTarget::Address(_), MailTransport::Smtp(smtp)) => Arc::clone(smtp) as _,
        (NotifyTarget::Address(_), MailTransport::Mailbox) => {
            Arc::new(MailboxFolder::new(settings.store.data.join("mailbox")))
        }
        (NotifyTarget::Address(_), MailTransport::Hold | MailTransport::None) => no_mail()?,
    };
    let Some(composer) = composer else { no_mail()? };
    Ok(NotifyChannel::Mail { to: target.to_string(), composer, transport })
}

fn no_mail<T>() -> anyhow::Result<T> {
    bail!("--notify names an email address, and no mail leaves from here (--mail); name a web address")
}

pub(super) async fn run(
    mut notifier: Notifier,
    service: Arc<HttpService>,
    clock: Clock,
    log: Log,
    mut stop: watch::Receiver<bool>,
) {
    let mut logged_at: Option<Timestamp> = None;
    while !*stop.borrow() {
        let now = clock.now();
        if let Some(found) = service.find_problems(now).await
            && let Err(cause) = notifier.round(&found, now.time).await
            && logged_at.is_none_or(|at| now.time.since(at) >= ALARM_INTERVAL)
        {
            logged_at = Some(now.time);
            log.problem(
                None,
                &format!("what needs attention could not be told (--notify): {cause}; it is tried again"),
            );
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_INTERVAL) => {}
            _ = stop.changed() => {}
        }
    }
}
