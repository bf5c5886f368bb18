//! The worker that empties the outbox, with leases, backoff and jitter.
//!
//! It takes mails under a lease, so that no other worker sends them too, and deletes one only after it has gone: a crash
//! at any moment loses nothing, and at worst sends one mail twice, under the same message id.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::Instant;

use super::compose::Composer;
use super::{MailNotifier, SendError, Transport};
use crate::clock::Clock;
use crate::domain::mail::budget::{FORM, MailBudget, day_of, source_name};
use crate::domain::mail::lane::Lane;
use crate::domain::mail::{DueMail, Leased, MAIL_LEASE, MailId, MailOutcome, after_failure};
use crate::domain::time::Timestamp;
use crate::log::Log;
use crate::store::{OutboxStore, StoreError};

/// Mails on their way at once.
const MAX_IN_FLIGHT: usize = 16;

/// How long the worker rests when nobody rings: mail of other nodes, and mail that waited for its time, is found then.
const REST: Duration = Duration::from_secs(1);

/// How often the same trouble is told again, and how many kinds of it within that time.
const TELL_AGAIN: Duration = Duration::from_secs(300);
const CAUSES: usize = 8;

#[derive(Debug)]
pub struct Outbox {
    pub store: Arc<dyn OutboxStore>,
    pub transport: Arc<dyn Transport>,
    pub composer: Composer,
    pub notifier: Arc<MailNotifier>,
    pub log: Log,
    /// The same after a restart: what this worker had leased when it was ended is its own again.
    pub name: String,
    /// How much mail each source may cause; none where it goes nowhere, and neither sources nor mailboxes need sparing.
    pub budget: Option<MailBudget>,
    /// How often a mail's lease is renewed while its server takes its time.
    pub renew_every: Duration,
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

/// What came of a mail; none if another worker has it.
type Settled = Result<Option<(MailId, MailOutcome)>, StoreError>;

/// The mails that are being sent, each with the lane that it takes a place of.
#[derive(Default)]
struct UnderWay {
    tasks: JoinSet<Settled>,
    lanes: HashMap<task::Id, Lane>,
    /// The sources whose budget the operator was told of, and the day.
    told_held: (i64, HashSet<String>),
}

impl UnderWay {
    fn begin(&mut self, lane: Lane, sending: impl Future<Output = Settled> + Send + 'static) {
        self.lanes.insert(self.tasks.spawn(sending).id(), lane);
    }

    /// The next one that is done; none if there is none.
    async fn next(&mut self) -> Option<Settled> {
        let done = self.tasks.join_next_with_id().await?;
        let id = done.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        self.lanes.remove(&id);
        let abandoned = |_| Err(StoreError::Unavailable("a mail was abandoned".to_owned()));
        Some(done.map_or_else(abandoned, |(_, settled)| settled))
    }
}

impl Outbox {
    /// Twice before a lease would end.
    pub const RENEW_EVERY: Duration = Duration::from_secs(MAIL_LEASE.as_secs() / 3);

    /// Takes what is due, a few at once, sends it and writes down what became of it.
    pub async fn step(&self, now: Timestamp) -> Result<OutboxStep, StoreError> {
        let mut under_way = UnderWay::default();
        self.begin(&mut under_way, now).await?;
        let mut step = OutboxStep::default();
        let mut failed = None;
        // All of them are waited for, whatever becomes of one.
        while let Some(done) = under_way.next().await {
            match self.account(done) {
                Ok(None) => {}
                Ok(Some(outcome)) => {
                    step.tried += 1;
                    match outcome {
                        MailOutcome::Sent => step.sent += 1,
                        MailOutcome::Rejected => step.rejected += 1,
                        MailOutcome::GivenUp { .. } => step.given_up += 1,
                        MailOutcome::Retry { cause, .. } => step.trouble = Some(cause),
                        MailOutcome::Wait { .. } => {}
                    }
                }
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(step), Err)
    }

    /// Sends what is due for as long as there is room; says whether there may be more.
    async fn begin(&self, under_way: &mut UnderWay, now: Timestamp) -> Result<bool, StoreError> {
        let since = Instant::now();
        let busy: Vec<_> = under_way.lanes.values().copied().collect();
        let most = MAX_IN_FLIGHT - busy.len();
        let Leased { mails, held, deferred } = match self.budget {
            Some(budget) => self.store.lease_mail(&self.name, most, busy, budget, now).await?,
            None => self.store.lease_unbraked_mail(&self.name, most, busy, now).await?,
        };
        self.tell_of_held(&mut under_way.told_held, held, now);
        let more = deferred || !mails.is_empty();
        for mail in mails {
            let (store, transport) = (Arc::clone(&self.store), Arc::clone(&self.transport));
            let (composed, renew_every) = (self.composer.compose(&mail), self.renew_every);
            under_way.begin(mail.lane, async move {
                let at = || now.plus(since.elapsed());
                let renew = || store.renew_mail(mail.id, mail.attempts, at().plus(MAIL_LEASE));
                // The store may have taken its time: a lease counts from when it was asked for.
                if since.elapsed() > renew_every && !renew().await? {
                    return Ok(None);
                }
                let sent = match composed {
                    Ok(outgoing) => {
                        let mut sending = pin!(transport.send(outgoing));
                        loop {
                            tokio::select! {
                                sent = &mut sending => break sent,
                                () = tokio::time::sleep(renew_every) => {
                                    // Once more before the lease ends; and what is being sent cannot be called back.
                                    let _try_again = renew().await;
                                }
                            }
                        }
                    }
                    Err(error) => Err(error),
                };
                let outcome = judge(&mail, sent, at());
                settle(&*store, &mail, &outcome, at()).await.map(|()| Some((mail.id, outcome)))
            });
        }
        Ok(more)
    }

    /// Counts what was held, and tells the operator once a day for each source.
    fn tell_of_held(&self, told: &mut (i64, HashSet<String>), held: BTreeMap<String, u64>, now: Timestamp) {
        let today = day_of(now);
        if told.0 != today {
            *told = (today, HashSet::new());
        }
        for (source, count) in held {
            self.notifier.held.fetch_add(count, Ordering::Relaxed);
            let choice = if source == FORM { "--form" } else { "--key ID" };
            if told.1.insert(source.clone()) {
                let whose = source_name(&source);
                self.log.problem(
                    None,
                    &format!(
                        "{whose} has had its mail of the day; what it asks for is held. `unionhall signups status` shows how \
                         much, `mail release {choice}` lets it go, `mail drop {choice}` deletes it"
                    ),
                );
            }
        }
    }

    /// Counts what became of a mail, and tells the operator what concerns them.
    fn account(&self, settled: Settled) -> Result<Option<MailOutcome>, StoreError> {
        let Some((id, outcome)) = settled? else { return Ok(None) };
        self.notifier.tried.store(true, Ordering::Relaxed);
        match &outcome {
            MailOutcome::Sent => {
                self.notifier.sent.fetch_add(1, Ordering::Relaxed);
            }
            MailOutcome::Wait { .. } => {}
            MailOutcome::Retry { .. } => {
                self.notifier.deferred.fetch_add(1, Ordering::Relaxed);
            }
            MailOutcome::Rejected => {
                self.notifier.rejected.fetch_add(1, Ordering::Relaxed);
                self.log
                    .note(&format!("mail {}: there is no such recipient; nothing more goes there for 30 days", id.0));
            }
            MailOutcome::GivenUp { cause, .. } => {
                self.notifier.given_up.fetch_add(1, Ordering::Relaxed);
                let retry = format!("`unionhall mail retry {}` tries again", id.0);
                self.log.problem(None, &format!("mail {} was given up after a day: {cause}; {retry}", id.0));
            }
        }
        Ok(Some(outcome))
    }

    /// Works until told to stop; what was begun is finished. Each mail has a place of its own, so that one whose server takes
    /// its time holds up no other.
    pub async fn run(self, clock: Clock, mut stop: watch::Receiver<bool>) {
        if let Err(error) = self.store.release_mail(&self.name).await {
            self.log.problem(None, &format!("mail taken before the last stop waits for its lease to end: {error}"));
        }
        let mut under_way = UnderWay::default();
        let mut condition = Condition::default();
        loop {
            let stopping = *stop.borrow();
            if stopping && under_way.tasks.is_empty() {
                return;
            }
            let room = under_way.tasks.len() < MAX_IN_FLIGHT && !stopping;
            if room {
                let now = clock.now().time;
                match self.begin(&mut under_way, now).await {
                    Ok(false) => {}
                    Ok(true) => continue,
                    Err(error) => condition.fails(&self, format!("the outbox cannot be used: {error}"), now),
                }
            }
            tokio::select! {
                Some(done) = under_way.next() => {
                    let now = clock.now().time;
                    match self.account(done) {
                        Ok(Some(MailOutcome::Retry { cause, .. })) => condition.fails(&self, cause, now),
                        Ok(Some(MailOutcome::Sent)) => condition.goes(&self),
                        Ok(_) => {}
                        Err(error) => condition.fails(&self, format!("the outbox cannot be used: {error}"), now),
                    }
                }
                () = self.notifier.wake.notified(), if room => {}
                () = tokio::time::sleep(REST), if room => {}
                _ = stop.changed(), if !stopping => {}
            }
        }
    }
}

/// Whether mail goes, and what the operator was told of it.
#[derive(Debug, Default)]
struct Condition {
    /// The last one went.
    went: bool,
    /// What was told in the last minutes, and when; a few causes at the most.
    told: Vec<(String, Timestamp)>,
}

impl Condition {
    fn goes(&mut self, outbox: &Outbox) {
        self.went = true;
        outbox.notifier.failing.store(false, Ordering::Relaxed);
        if !self.told.is_empty() {
            self.told.clear();
            outbox.log.note("mail goes again");
        }
    }

    fn fails(&mut self, outbox: &Outbox, cause: String, now: Timestamp) {
        // While every other mail goes, what does not is one recipient's affair, and `mail list` shows it.
        if std::mem::take(&mut self.went) {
            return;
        }
        outbox.notifier.failing.store(true, Ordering::Relaxed);
        self.told.retain(|(_, at)| now.since(*at) < TELL_AGAIN);
        if self.told.len() < CAUSES && self.told.iter().all(|(before, _)| *before != cause) {
            outbox.log.problem(None, &format!("mail does not go: {cause}; it is tried again until it does, for a day"));
            self.told.push((cause, now));
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
        match store.settle_mail(mail, outcome.clone(), now).await {
            Ok(()) => return Ok(()),
            Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
    store.settle_mail(mail, outcome.clone(), now).await
}

fn judge(mail: &DueMail, sent: Result<(), SendError>, now: Timestamp) -> MailOutcome {
    match sent {
        Ok(()) => MailOutcome::Sent,
        Err(SendError::Rejected) => MailOutcome::Rejected,
        Err(SendError::NotBefore(at)) => MailOutcome::Wait { at },
        Err(SendError::Later(cause)) => after_failure(mail, now, cause, false),
        Err(SendError::Unknown(cause)) => after_failure(mail, now, cause, true),
    }
}
