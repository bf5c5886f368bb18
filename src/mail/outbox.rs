//! The worker that empties the outbox, with leases, backoff and jitter.
//!
//! It takes mails under a lease, so that no other worker sends them too, and deletes one only after it has gone: a crash
//! at any moment loses nothing, and at worst sends one mail twice, under the same message id.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::compose::Composer;
use super::{MailNotifier, SendError, Transport};
use crate::clock::Clock;
use crate::domain::mail::{DueMail, MailOutcome, after_failure};
use crate::domain::time::Timestamp;
use crate::log::Log;
use crate::store::{OutboxStore, StoreError};
use crate::supervise;

/// Mails on their way at once.
const AT_ONCE: usize = 8;

/// How long the worker rests when nobody rings: mail of other nodes, and mail that waited for its time, is found then.
const REST: Duration = Duration::from_secs(1);

/// How often the same trouble is told again.
const TELL_AGAIN: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub struct Outbox {
    pub store: Arc<dyn OutboxStore>,
    pub transport: Arc<dyn Transport>,
    pub composer: Composer,
    pub notifier: Arc<MailNotifier>,
    pub log: Log,
    /// The same after a restart: what this worker had leased when it was ended is its own again.
    pub name: String,
}

/// What one step did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct OutboxStep {
    pub sent: usize,
    pub rejected: usize,
    pub given_up: usize,
    /// Why some could not go now.
    pub trouble: Option<String>,
    /// How many were tried in all; none means that nothing is due.
    pub tried: usize,
}

impl Outbox {
    /// Takes what is due, a few at once, sends it and writes down what became of it.
    pub async fn step(&self, now: Timestamp) -> Result<OutboxStep, StoreError> {
        let due = self.store.lease_mail(&self.name, AT_ONCE, now).await?;
        let mut sending = JoinSet::new();
        for mail in due {
            let (store, transport) = (Arc::clone(&self.store), Arc::clone(&self.transport));
            let composed = self.composer.compose(&mail);
            sending.spawn(async move {
                let sent = match composed {
                    Ok(outgoing) => transport.send(outgoing).await,
                    Err(error) => Err(error),
                };
                let outcome = judge(&mail, sent, now);
                settle(&*store, &mail, &outcome, now).await.map(|()| (mail.id, outcome))
            });
        }
        let mut step = OutboxStep::default();
        let mut failed = None;
        // All of them are waited for, whatever becomes of one.
        while let Some(done) = sending.join_next().await {
            let settled = done.unwrap_or_else(|_| Err(StoreError::Unavailable("a mail was abandoned".to_owned())));
            let (id, outcome) = match settled {
                Ok(settled) => settled,
                Err(error) => {
                    failed = Some(error);
                    continue;
                }
            };
            step.tried += 1;
            match outcome {
                MailOutcome::Sent => step.sent += 1,
                MailOutcome::Retry { cause, .. } => step.trouble = Some(cause),
                MailOutcome::Rejected => {
                    step.rejected += 1;
                    self.log.note(&format!(
                        "mail {}: there is no such recipient; nothing more goes there for 30 days",
                        id.0
                    ));
                }
                MailOutcome::GivenUp { cause } => {
                    step.given_up += 1;
                    let retry = format!("`unionhall mail retry {}` tries again", id.0);
                    self.log.problem(None, &format!("mail {} was given up after a day: {cause}; {retry}", id.0));
                }
            }
        }
        for (count, more) in [
            (&self.notifier.sent, step.sent),
            (&self.notifier.rejected, step.rejected),
            (&self.notifier.given_up, step.given_up),
        ] {
            count.fetch_add(more as u64, Ordering::Relaxed);
        }
        failed.map_or(Ok(step), Err)
    }

    /// Works until told to stop; a step once begun is finished.
    pub async fn run(self, clock: Clock, mut stop: watch::Receiver<bool>) {
        let _vital = supervise::vital("the outbox");
        if let Err(error) = self.store.release_mail(&self.name).await {
            self.log.problem(None, &format!("mail taken before the last stop waits for its lease to end: {error}"));
        }
        let mut told: Option<(String, Timestamp)> = None;
        while !*stop.borrow() {
            let now = clock.now().time;
            let trouble = match self.step(now).await {
                // Some goes: what does not is one recipient's affair, and `mail list` shows it.
                Ok(step) if step.tried > 0 && (step.trouble.is_none() || step.sent > 0) => {
                    if told.take().is_some() {
                        self.log.note("mail goes again");
                    }
                    self.notifier.failing.store(false, Ordering::Relaxed);
                    continue;
                }
                Ok(step) => step.trouble,
                Err(error) => Some(format!("the outbox cannot be used: {error}")),
            };
            if let Some(cause) = trouble {
                self.notifier.failing.store(true, Ordering::Relaxed);
                let news = told.as_ref().is_none_or(|(before, at)| *before != cause || now.since(*at) >= TELL_AGAIN);
                if news {
                    self.log.problem(
                        None,
                        &format!("mail does not go: {cause}; it is tried again until it does, for a day"),
                    );
                    told = Some((cause, now));
                }
            }
            tokio::select! {
                () = self.notifier.wake.notified() => {}
                () = tokio::time::sleep(REST) => {}
                _ = stop.changed() => {}
            }
        }
    }
}

/// A mail that has gone and is not written down as gone goes again, so a store that is away for a moment is waited for.
async fn settle(
    store: &dyn OutboxStore,
    mail: &DueMail,
    outcome: &MailOutcome,
    now: Timestamp,
) -> Result<(), StoreError> {
    const TRIES: u32 = 4;
    for _ in 1..TRIES {
        match store.settle_mail(mail.id, mail.attempts, outcome.clone(), now).await {
            Ok(()) => return Ok(()),
            Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
    store.settle_mail(mail.id, mail.attempts, outcome.clone(), now).await
}

fn judge(mail: &DueMail, sent: Result<(), SendError>, now: Timestamp) -> MailOutcome {
    match sent {
        Ok(()) => MailOutcome::Sent,
        Err(SendError::Rejected) => MailOutcome::Rejected,
        Err(SendError::Later(cause)) => after_failure(mail, now, cause, false),
        Err(SendError::Unknown(cause)) => after_failure(mail, now, cause, true),
    }
}
