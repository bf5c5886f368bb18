//! The outbox as a lease queue: composes a mail, sends it under a lease that it renews, and judges the outcome.
//!
//! A mail is deleted only after it was sent: a crash at any moment loses nothing, and at worst sends one mail twice, with the
//! same message id.

use std::collections::{BTreeMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::domain::mail::budget::{FORM, MailBudget, day_of, source_name};
use crate::domain::mail::lane::Lane;
use crate::domain::mail::{DueMail, Leased, MAIL_LEASE, MailId, MailOutcome, after_failure};
use crate::domain::remedy::Remedy;
use crate::domain::time::Timestamp;
use crate::lease_queue::{InFlight, LeaseQueue, settle};
use crate::log::Log;
use crate::mail::compose::Composer;
use crate::mail::outbox::lease::Lease;
use crate::mail::outbox::settle::Settle;
use crate::mail::outbox::{ProbeMail, Release, RenewMail, WakeMail};
use crate::mail::{MailNotifier, SendError, Transport};
use crate::random;
use crate::store::{Store, StoreError, StoreReply};

/// How often the same cause is logged again, and how many causes are logged within that time.
const ALARM_INTERVAL: Duration = Duration::from_secs(300);
const MAX_CAUSES: usize = 8;

/// While mail fails, the server is logged in to this often, and after hours of failure this rarely. Once it lets us in, one waiting mail is
/// tried out of turn; where none waits, that was enough. So the end of an outage is noticed within that time, however long each mail would
/// otherwise wait.
const PROBE_INTERVAL: Duration = Duration::from_secs(20);
const MAX_PROBE_INTERVAL: Duration = Duration::from_secs(300);

/// How long logging in may take, for no mail is leased meanwhile.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Once mail goes again, the backlog of an outage is sent over [`DRAIN_TIME`]. An outage takes at least [`MIN_OUTAGE`] without a success,
/// and its end is acted on at most once per [`DRAIN_INTERVAL`]: when some mail goes and some is refused, each mail waits its own time.
const DRAIN_TIME: Duration = Duration::from_secs(60);
const MIN_OUTAGE: Duration = Duration::from_secs(120);
const DRAIN_INTERVAL: Duration = Duration::from_secs(600);

/// How many campaign mails are sent at once, out of [`LeaseQueue::MAX_IN_FLIGHT`].
const MAX_CAMPAIGN_IN_FLIGHT: usize = 4;

/// Leases up to that many campaign mails for the worker with that name.
pub type LeaseCampaignMail = fn(&Store, String, u32, Timestamp) -> StoreReply<'_, Leased>;

pub struct Outbox {
    pub store: Store,
    pub transport: Arc<dyn Transport>,
    pub composer: Composer,
    pub notifier: Arc<MailNotifier>,
    pub log: Log,
    /// Stays the same after a restart, so that the worker takes back what it had leased when it was stopped.
    pub name: String,
    /// How much mail each source may cause. None if mail goes nowhere, so that neither sources nor mailboxes need protection.
    pub budget: Option<MailBudget>,
    /// Leases campaign mail, which gets the places that no other mail needs.
    pub lease_campaign_mail: LeaseCampaignMail,
    /// How often a mail's lease is renewed while its server is slow.
    pub renew_every: Duration,
}

impl Outbox {
    /// A lease is renewed twice before it would end.
    pub const RENEW_EVERY: Duration = Duration::from_secs(MAIL_LEASE.as_secs() / 3);

    /// Sends a mail while renewing its lease; none if another worker has it.
    async fn send(
        &self,
        mail: DueMail,
        now: impl Fn() -> Timestamp,
        leased_at: Instant,
    ) -> Result<Option<(MailId, MailOutcome)>, StoreError> {
        let renew =
            || self.store.run(RenewMail { mail: mail.id, attempt: mail.attempts, until: now().plus(MAIL_LEASE) });
        // The store may have been slow, and a lease counts from when it was requested.
        if leased_at.elapsed() > self.renew_every && !renew().await? {
            return Ok(None);
        }
        let sent = match self.composer.compose(&mail) {
            Ok(outgoing) => {
                let mut sending = pin!(self.transport.send(outgoing));
                loop {
                    tokio::select! {
                        sent = &mut sending => break sent,
                        () = tokio::time::sleep(self.renew_every) => {
                            // If this fails, it is tried once more before the lease ends. A mail that is being sent cannot be called back.
                            let _try_again = renew().await;
                        }
                    }
                }
            }
            Err(error) => Err(error),
        };
        let outcome = judge(&mail, sent, now());
        let settled_at = now();
        settle(|| self.store.run(Settle { mail: mail.clone(), outcome: outcome.clone(), now: settled_at })).await?;
        Ok(Some((mail.id, outcome)))
    }

    /// Counts held mail, and logs it once a day for each source.
    fn log_held(&self, logged: &mut (i64, HashSet<String>), held: BTreeMap<String, u64>, now: Timestamp) {
        let today = day_of(now);
        if logged.0 != today {
            *logged = (today, HashSet::new());
        }
        for (source, count) in held {
            self.notifier.held.fetch_add(count, Ordering::Relaxed);
            if logged.1.insert(source.clone()) {
                let text = format!("{} has had its mail of the day; what it asks for is held", source_name(&source));
                self.log.problem_with(None, &text, Some(Remedy::DecideOnMailOfSource { is_form: source == FORM }));
            }
        }
    }
}

impl LeaseQueue for Outbox {
    const MAX_IN_FLIGHT: usize = 16;
    /// Each mail has its own place, so that a slow server holds up only its own mail. None for campaign mail, which has no lane.
    type Place = Option<Lane>;
    /// None if another worker has it.
    type Settled = Option<(MailId, MailOutcome)>;
    type Alarms = MailAlarms;

    fn wake(&self) -> &Notify {
        &self.notifier.wake
    }

    /// A random delay, so that a caller who writes right after a sign-up cannot tell from the worker's own writes whether the
    /// sign-up has mail.
    fn wake_delay() -> Duration {
        // Without randomness, mail still goes.
        let [millis] = random::bytes().unwrap_or_default();
        Duration::from_millis(20 + u64::from(millis))
    }

    async fn release(&self) {
        if let Err(error) = self.store.run(Release { worker: self.name.clone() }).await {
            self.log.problem(None, &format!("mail taken before the last stop waits for its lease to end: {error}"));
        }
    }

    async fn lease(
        self: &Arc<Self>,
        in_flight: &mut InFlight<Self>,
        alarms: &mut MailAlarms,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        // Links that it would mail are dead. What keeps this node from the newer ones is in the log.
        if self.composer.tokens.is_replaced() {
            return Ok(false);
        }
        let is_draining = alarms.wake_deferred(self, now).await?;
        let since = Instant::now();
        let busy = in_flight.places().flatten().copied().collect();
        let lease = Lease { worker: self.name.clone(), most: in_flight.room(), busy, budget: self.budget, now };
        let Leased { mut mails, held, mut deferred } = self.store.run(lease).await?;
        self.log_held(&mut alarms.logged_held, held, now);
        // Campaign mail gets the places that no other mail needs.
        let campaigns = MAX_CAMPAIGN_IN_FLIGHT.saturating_sub(in_flight.places().filter(|lane| lane.is_none()).count());
        if mails.is_empty() && !deferred && !is_draining && campaigns > 0 {
            let most = u32::try_from(campaigns.min(in_flight.room())).unwrap_or(0);
            Leased { mails, deferred, .. } =
                (self.lease_campaign_mail)(&self.store, self.name.clone(), most, now).await?;
        }
        if alarms.store_failed_at.take().is_some() {
            self.log.note("the outbox can be used again");
        }
        let more = is_draining || deferred || !mails.is_empty();
        for mail in mails {
            let outbox = Arc::clone(self);
            let place = mail.kind.campaign().is_none().then_some(mail.lane);
            in_flight.begin(place, async move { outbox.send(mail, || now.plus(since.elapsed()), since).await });
        }
        Ok(more)
    }

    fn account(&self, alarms: &mut MailAlarms, settled: &Result<Self::Settled, StoreError>, now: Timestamp) {
        let (id, outcome) = match settled {
            Ok(None) => return,
            Ok(Some(settled)) => settled,
            Err(error) => return alarms.store_fails(self, error, now),
        };
        self.notifier.tried.store(true, Ordering::Relaxed);
        let count = match outcome {
            MailOutcome::Wait { .. } => return,
            MailOutcome::Sent => {
                alarms.goes(self, now);
                &self.notifier.sent
            }
            MailOutcome::Retry { cause, .. } => {
                alarms.fails(self, cause.clone(), now);
                &self.notifier.deferred
            }
            MailOutcome::Rejected => {
                self.log.note(&format!("mail {}: there is no such recipient; no mail goes there for 30 days", id.0));
                &self.notifier.rejected
            }
            MailOutcome::GivenUp { cause, .. } => {
                let text = format!("mail {} was given up after a day: {cause}", id.0);
                self.log.problem_with(None, &text, Some(Remedy::RetryMail(*id)));
                &self.notifier.given_up
            }
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
pub struct MailAlarms {
    went: bool,
    /// The few causes that were logged in the last minutes, and when.
    logged: Vec<(String, Timestamp)>,
    /// The sources whose spent budget was logged, and the day.
    logged_held: (i64, HashSet<String>),
    /// When the backlog of an outage was woken. None since the start, because there may have been an outage before it.
    drained_at: Option<Timestamp>,
    /// Mail that waits past this time is woken next.
    drain_from: Option<Timestamp>,
    failing_since: Option<Timestamp>,
    probed_at: Option<Timestamp>,
    /// Whether the server did not let us in the last time.
    is_shut_out: bool,
    /// When it was last logged that the store failed, until it can be used again.
    store_failed_at: Option<Timestamp>,
}

impl MailAlarms {
    /// Once mail goes again, wakes a batch of the mail that waits after a failure; true if there may be more. Until then, wakes
    /// one mail now and then, to find out.
    async fn wake_deferred(&mut self, outbox: &Outbox, now: Timestamp) -> Result<bool, StoreError> {
        if let Some(from) = self.drain_from {
            self.drain_from = outbox.store.run(WakeMail(from, now)).await?;
        } else if let Some(failing_since) = self.failing_since {
            let interval = (now.since(failing_since) / 60).clamp(PROBE_INTERVAL, MAX_PROBE_INTERVAL);
            if self.probed_at.is_none_or(|at| now.since(at) >= interval) {
                self.probed_at = Some(now);
                let login = tokio::time::timeout(LOGIN_TIMEOUT, outbox.transport.try_out()).await;
                let is_in = matches!(login, Ok(Ok(())));
                let was_shut_out = std::mem::replace(&mut self.is_shut_out, !is_in);
                if is_in && !outbox.store.run(ProbeMail { even_alone: was_shut_out, now }).await? {
                    self.recovers(outbox, now);
                }
            }
        }
        Ok(self.drain_from.is_some())
    }

    fn goes(&mut self, outbox: &Outbox, now: Timestamp) {
        self.went = true;
        self.recovers(outbox, now);
    }

    fn recovers(&mut self, outbox: &Outbox, now: Timestamp) {
        let was_outage = self.failing_since.take().is_some_and(|since| now.since(since) >= MIN_OUTAGE);
        if self.drained_at.is_none_or(|at| was_outage && now.since(at) >= DRAIN_INTERVAL) {
            self.drained_at = Some(now);
            // Mail that is due sooner goes anyway.
            self.drain_from = Some(now.plus(DRAIN_TIME));
        }
        outbox.notifier.failing.store(false, Ordering::Relaxed);
        if !self.logged.is_empty() {
            self.logged.clear();
            outbox.log.note("mail goes again");
        }
    }

    /// That is the store's fault: it says nothing about mail.
    fn store_fails(&mut self, outbox: &Outbox, error: &StoreError, now: Timestamp) {
        if self.store_failed_at.is_none_or(|at| now.since(at) >= ALARM_INTERVAL) {
            self.store_failed_at = Some(now);
            outbox.log.problem_with(
                None,
                &format!("the outbox cannot be used, so mail waits: {error}"),
                error.remedy(),
            );
        }
    }

    fn fails(&mut self, outbox: &Outbox, cause: String, now: Timestamp) {
        // While all other mail goes, a failure concerns only that recipient, and `mail list` shows it.
        if std::mem::take(&mut self.went) {
            return;
        }
        outbox.notifier.failing.store(true, Ordering::Relaxed);
        self.drain_from = None;
        self.failing_since.get_or_insert(now);
        self.logged.retain(|(_, at)| now.since(*at) < ALARM_INTERVAL);
        if self.logged.len() < MAX_CAUSES && self.logged.iter().all(|(before, _)| *before != cause) {
            outbox.log.problem(None, &format!("mail does not go: {cause}; it is tried again until it does, for a day"));
            self.logged.push((cause, now));
        }
    }
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
