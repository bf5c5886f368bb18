//! Webhooks as a lease queue: takes what is due, a few for each endpoint, and records the outcome.
//!
//! Delivery is at least once: a message whose answer was not recorded is sent again, with the same id. One endpoint has few of
//! the places, one that fails has a single place, and a partner always leaves some to the others, so that endpoints that hang do
//! not hold up the others.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::webhooks::{EndpointProblem, send, unanswered};
use crate::clock::Clock;
use crate::domain::api_key::Mode;
use crate::domain::partner::endpoint::{DELIVERIES_AT_ONCE, DeliveryOutcome, DueDelivery, EndpointId, EndpointRecord};
use crate::domain::remedy::Remedy;
use crate::domain::secret::Secret;
use crate::domain::time::{DAY, Timestamp};
use crate::domain::webhook;
use crate::domain::webhook::signature::message_id;
use crate::lease_queue::{self, InFlight, LeaseQueue, settle};
use crate::log::Log;
use crate::mail::compose::Composer;
use crate::mail::{OutgoingMail, SendError, Transport};
use crate::outbound::{GuardedClient, OutboundAnswer, fair_share};
use crate::partners::changes::{LeaseChanges, NoteMailed};
use crate::partners::deliveries::{LeaseDeliveries, ReleaseDeliveries, SettleDelivery};
use crate::partners::endpoints::{
    EmptyEndpoint, FindRemovedEndpoint, LeaseRotationMail, LeaseToNotify, ListDueEndpoints, NoteNotified,
    NoteRotationMailed, RemoveEndpoint,
};
use crate::store::sql::Unit;
use crate::store::{Store, StoreError};

/// Places for all endpoints of one partner, and for all endpoints that failed the last time, which have one each. Partners share
/// both: [`fair_share`].
const MAX_PER_PARTNER: usize = WebhookWorker::MAX_IN_FLIGHT / 4;
const MAX_FAILING: usize = WebhookWorker::MAX_IN_FLIGHT / 2;

/// After how long a message goes whose endpoint's name could not be looked up for other look-ups.
const POSTPONED_FOR: Duration = Duration::from_secs(5);

/// Longer than an attempt can take.
const DELIVERY_LEASE: Duration = Duration::from_secs(60);

/// How often to check whether a partner's contact needs a mail, how long after a failure that mail is tried again, and for how long.
const CONTACT_CHECK_INTERVAL: Duration = Duration::from_secs(60);
const CONTACT_RETRY_AFTER: Duration = Duration::from_secs(3600);
const CONTACT_RETRY_FOR: Duration = DAY.saturating_mul(3);

/// How many batches of mails about changes are sent per wake-up.
const MAX_MAILED_BATCHES: u32 = 10;

/// How many batches of removed endpoints' deliveries are deleted per minute, and the pause between two, in which others write.
const MAX_DELETED_BATCHES: u32 = 200;
const BETWEEN_BATCHES: Duration = Duration::from_millis(5);

/// Wakes the worker and the requests that wait for events when there may be something to deliver, and counts outcomes.
#[derive(Default)]
pub struct WebhookNotifier {
    wake: Notify,
    /// True once the process stops: no request may wait any longer.
    news: watch::Sender<bool>,
    /// There may be something to mail a partner's contact about.
    contact: Notify,
    delivered: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
}

impl WebhookNotifier {
    pub fn notify(&self) {
        self.wake.notify_one();
        self.news.send_modify(|_| ());
    }

    pub fn notify_contact(&self) {
        self.contact.notify_one();
    }

    /// Changes whenever there may be an event, and turns true when the process stops.
    pub fn news(&self) -> watch::Receiver<bool> {
        self.news.subscribe()
    }

    pub fn counts(&self) -> [(&'static str, u64); 3] {
        [("delivered", &self.delivered), ("failed", &self.failed), ("given_up", &self.given_up)]
            .map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed)))
    }
}

pub struct ContactMail {
    pub composer: Composer,
    pub transport: Arc<dyn Transport>,
}

pub struct WebhookWorker {
    pub store: Store,
    pub client: GuardedClient,
    pub secret: Secret,
    pub notifier: Arc<WebhookNotifier>,
    pub contact: Option<ContactMail>,
    pub log: Log,
    /// The mode of the records; messages include it.
    pub mode: Mode,
    /// Stays the same after a restart, so that the worker takes back what it had leased when it was stopped.
    pub name: String,
}

/// The outcome of a delivery, and whether it disabled the endpoint.
type SettledDelivery = (EndpointRecord, DeliveryOutcome, bool);

#[derive(Default)]
pub struct WebhookAlarms {
    failing: HashSet<EndpointId>,
    store_fails: bool,
}

pub struct TakenPlace {
    endpoint: EndpointId,
    partner: String,
    fails: bool,
}

fn room_for(in_flight: &InFlight<WebhookWorker>, endpoint: &EndpointRecord, fails: bool) -> usize {
    let count = |is_it: &dyn Fn(&TakenPlace) -> bool| in_flight.places().filter(|place| is_it(place)).count();
    let is_partners = |place: &TakenPlace| place.partner == endpoint.partner;
    let of_it = count(&|place| place.endpoint == endpoint.id);
    let of_partner = count(&is_partners);
    let most = if fails {
        let of_failing = count(&|place| place.fails);
        let of_partners_failing = count(&|place| place.fails && is_partners(place));
        fair_share(of_partners_failing, MAX_FAILING.saturating_sub(of_failing)).min(1)
    } else {
        DELIVERIES_AT_ONCE
    };
    // Takes half of its places at a time, because a lease costs a write.
    let free = most.saturating_sub(of_it);
    let worth = if of_it * 2 > most { 0 } else { free };
    worth.min(MAX_PER_PARTNER.saturating_sub(of_partner)).min(fair_share(of_partner, in_flight.room()))
}

impl LeaseQueue for WebhookWorker {
    const MAX_IN_FLIGHT: usize = 64;
    type Place = TakenPlace;
    type Settled = SettledDelivery;
    type Alarms = WebhookAlarms;

    fn wake(&self) -> &Notify {
        &self.notifier.wake
    }

    async fn release(&self) {
        if let Err(error) = self.store.run(ReleaseDeliveries { worker: self.name.to_owned() }).await {
            self.log
                .problem(None, &format!("webhooks taken before the last stop wait for their lease to end: {error}"));
        }
    }

    async fn lease(
        self: &Arc<Self>,
        in_flight: &mut InFlight<Self>,
        alarms: &mut WebhookAlarms,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let since = Instant::now();
        let mut due = self.store.run(ListDueEndpoints(now)).await?;
        // A different endpoint comes first each time: when there are too few places, none is always last.
        let first = usize::try_from(now.as_millis()).unwrap_or(0) % due.len().max(1);
        due.rotate_left(first);
        for (endpoint, fails) in due {
            let room = room_for(in_flight, &endpoint, fails);
            if room == 0 {
                continue;
            }
            let most = u32::try_from(room).unwrap_or(1);
            let (worker, until) = (self.name.clone(), now.plus(DELIVERY_LEASE));
            let lease = LeaseDeliveries { id: endpoint.id, worker, most, until, now };
            for delivery in self.store.run(lease).await? {
                let (worker, endpoint) = (Arc::clone(self), endpoint.clone());
                let place = TakenPlace { endpoint: endpoint.id, partner: endpoint.partner.clone(), fails };
                in_flight.begin(place, async move {
                    let at = || now.plus(since.elapsed());
                    let outcome = worker.deliver(&endpoint, &delivery, at()).await;
                    let status = outcome.as_ref().ok().map(|answer| u32::from(answer.status));
                    let outcome = judge(&delivery, outcome, at());
                    let (id, settled) = (endpoint.id, outcome.clone());
                    let write = SettleDelivery { id, delivery, outcome: settled, status, now: at() };
                    let disabled = settle(|| worker.store.run(write.clone())).await?;
                    Ok((endpoint, outcome, disabled))
                });
            }
        }
        alarms.store_fails = false;
        // An endpoint with more due gets it when one of its places is free.
        Ok(false)
    }

    fn account(&self, alarms: &mut WebhookAlarms, settled: &Result<SettledDelivery, StoreError>, _now: Timestamp) {
        match settled {
            Ok((endpoint, outcome, disabled)) => self.count(&mut alarms.failing, endpoint, outcome, *disabled),
            Err(error) => {
                if !std::mem::replace(&mut alarms.store_fails, true) {
                    let text = format!("webhooks wait, for their records cannot be used: {error}");
                    self.log.problem_with(None, &text, error.remedy());
                }
            }
        }
    }
}

impl WebhookWorker {
    /// Works until `stop` is true, then finishes what it began.
    pub async fn run(self, clock: Clock, mut stop: watch::Receiver<bool>) {
        let (worker, stopping) = (Arc::new(self), stop.clone());
        let delivers = lease_queue::run(Arc::clone(&worker), clock, stop.clone());
        let notifies_contacts = async {
            let mut due = tokio::time::interval(CONTACT_CHECK_INTERVAL);
            while !*stop.borrow() {
                tokio::select! {
                    _ = due.tick() => {
                        worker.notify_contacts(clock.now().time).await;
                        worker.ask_to_rotate(clock.now().time).await;
                        worker.delete_removed(clock.now().time).await;
                    }
                    () = worker.notifier.contact.notified() => {}
                    _ = stop.changed() => {}
                }
                worker.mail_changes(clock.now().time, &stop).await;
            }
        };
        let mut stopped = stopping;
        let ends_waits = async {
            // Fails only when the sender is gone, and then no request waits either.
            let _told = stopped.wait_for(|stop| *stop).await;
            worker.notifier.news.send_replace(true);
        };
        tokio::join!(delivers, notifies_contacts, ends_waits);
    }

    async fn deliver(
        &self,
        endpoint: &EndpointRecord,
        delivery: &DueDelivery,
        now: Timestamp,
    ) -> Result<OutboundAnswer, EndpointProblem> {
        let message = message_id(&self.secret, delivery.event, delivery.kind);
        let body = webhook::body(delivery.kind, delivery.at, self.mode, Some(delivery.key.as_str()));
        send(&self.client, &self.secret, endpoint, message, body, now).await
    }

    /// Counts the outcome of a message, and logs what concerns the operator.
    fn count(
        &self,
        failing: &mut HashSet<EndpointId>,
        EndpointRecord { id, partner, .. }: &EndpointRecord,
        outcome: &DeliveryOutcome,
        disabled: bool,
    ) {
        let (count, cause) = match outcome {
            DeliveryOutcome::Postponed { .. } => return,
            DeliveryOutcome::Delivered => (&self.notifier.delivered, None),
            DeliveryOutcome::Retry { cause, .. } | DeliveryOutcome::Gone { cause } => {
                (&self.notifier.failed, Some(cause))
            }
            DeliveryOutcome::GivenUp { cause } => (&self.notifier.given_up, Some(cause)),
        };
        count.fetch_add(1, Ordering::Relaxed);
        let Some(cause) = cause else {
            if failing.remove(id) {
                self.log.note(&format!("webhook endpoint {id} of {partner} takes messages again"));
            }
            return;
        };
        if disabled {
            let text = format!("webhook endpoint {id} of {partner} is disabled: {cause}");
            self.log.problem_with(None, &text, Some(Remedy::RecoverEndpoint(*id)));
        } else if failing.insert(*id) {
            self.log.note(&format!("webhook endpoint {id} of {partner} fails: {cause}; it is tried again"));
        }
    }

    /// Mails the contacts of partners whose endpoints were disabled.
    async fn notify_contacts(&self, now: Timestamp) {
        let Some(ContactMail { composer, transport }) = &self.contact else { return };
        let lease = LeaseToNotify { since: now.minus(CONTACT_RETRY_FOR), until: now.plus(CONTACT_RETRY_AFTER), now };
        // A store failure is reported where it first occurs, and this runs again in a minute.
        for (endpoint, contact) in self.store.run(lease).await.unwrap_or_default() {
            let mail = composer.endpoint_disabled(&endpoint, &contact, self.mode, now);
            if let Err(cause) = self.send_and_note(&**transport, mail, NoteNotified(endpoint.id, now)).await {
                let (id, partner) = (endpoint.id, &endpoint.partner);
                self.log.problem(
                    None,
                    &format!("the contact of {partner} was not told that webhook endpoint {id} is disabled: {cause}; it is tried again"),
                );
            }
        }
    }

    /// Sends a mail to a contact and writes down that it left; otherwise says why not.
    async fn send_and_note<U: Unit<Done = ()>>(
        &self,
        transport: &dyn Transport,
        mail: Result<OutgoingMail, SendError>,
        left: U,
    ) -> Result<(), String> {
        let sent = match mail {
            Ok(mail) => transport.send(mail).await,
            Err(error) => Err(error),
        };
        match sent {
            Ok(()) => self.store.run(left).await.map_err(|error| error.to_string()),
            Err(error) => Err(format!("{error:?}")),
        }
    }

    /// Asks the contacts of partners to rotate secrets that others know.
    async fn ask_to_rotate(&self, now: Timestamp) {
        let Some(ContactMail { composer, transport }) = &self.contact else { return };
        let lease = LeaseRotationMail { until: now.plus(CONTACT_RETRY_AFTER), now };
        // A store failure is reported where it first occurs, and this runs again in a minute.
        for (endpoint, contact) in self.store.run(lease).await.unwrap_or_default() {
            let mail = composer.secret_must_rotate(&endpoint, &contact, self.mode, now);
            if let Err(cause) = self.send_and_note(&**transport, mail, NoteRotationMailed(endpoint.id, now)).await {
                let EndpointRecord { id, partner, .. } = &endpoint;
                let text = format!(
                    "the contact of {partner} was not asked to rotate the secret of webhook endpoint {id}: {cause}; it is tried again"
                );
                self.log.problem(None, &text);
            }
        }
    }

    /// Mails the contacts of partners about changes made with their keys, until no changes are left or no mail goes.
    async fn mail_changes(&self, now: Timestamp, stop: &watch::Receiver<bool>) {
        let Some(contact) = &self.contact else { return };
        for _ in 0..MAX_MAILED_BATCHES {
            if !self.mail_some_changes(contact, now).await || *stop.borrow() {
                return;
            }
        }
        // There may be more: they go after a check for other work.
        self.notifier.notify_contact();
    }

    /// Mails about a batch of them, a few for each partner; returns whether it is worth going on.
    async fn mail_some_changes(&self, ContactMail { composer, transport }: &ContactMail, now: Timestamp) -> bool {
        let mut is_worth_more = false;
        let lease = LeaseChanges { since: now.minus(CONTACT_RETRY_FOR), until: now.plus(CONTACT_RETRY_AFTER), now };
        // A store failure is reported where it first occurs, and this runs again in a minute.
        for change in self.store.run(lease).await.unwrap_or_default() {
            let sent = match composer.partner_changed(&change, self.mode) {
                Ok(mail) => transport.send(mail).await,
                Err(error) => Err(error),
            };
            // One address that takes no mail says nothing about the others.
            is_worth_more |= matches!(sent, Ok(()) | Err(SendError::Rejected));
            let mailed = match sent {
                Ok(()) => self.store.run(NoteMailed(change.id, now)).await.map_err(|error| error.to_string()),
                Err(error) => Err(format!("{error:?}")),
            };
            if let Err(cause) = mailed {
                let what =
                    format!("the contact of {} was not mailed about a change ({})", change.partner, change.kind.name());
                self.log.problem(None, &format!("{what}: {cause}; it is tried again"));
            }
        }
        is_worth_more
    }

    /// Deletes some of what removed endpoints left behind.
    async fn delete_removed(&self, now: Timestamp) {
        for _ in 0..MAX_DELETED_BATCHES {
            let Ok(Some(id)) = self.store.run(FindRemovedEndpoint).await else { return };
            let deleted = match self.store.run(EmptyEndpoint(id, now)).await {
                Ok(0) => self.store.run(RemoveEndpoint(id)).await.map(|_| ()),
                emptied => emptied.map(|_| ()),
            };
            if let Err(error) = deleted {
                return self
                    .log
                    .problem(None, &format!("webhook endpoint {id} was removed and is still there: {error}"));
            }
            tokio::time::sleep(BETWEEN_BATCHES).await;
        }
    }
}

fn judge(delivery: &DueDelivery, sent: Result<OutboundAnswer, EndpointProblem>, now: Timestamp) -> DeliveryOutcome {
    let (cause, retry_after) = match sent {
        Ok(OutboundAnswer { status: 200..=299, .. }) => return DeliveryOutcome::Delivered,
        Ok(OutboundAnswer { status: 410, .. }) => {
            return DeliveryOutcome::Gone { cause: "it answered 410 Gone".to_owned() };
        }
        Ok(OutboundAnswer { status: status @ 300..=399, .. }) => {
            (format!("it answered {status}, and redirects are not followed"), None)
        }
        Ok(OutboundAnswer { status, retry_after }) => (format!("it answered {status}"), retry_after),
        Err(EndpointProblem::MustRotate) => {
            return DeliveryOutcome::Gone { cause: EndpointProblem::MustRotate.to_string() };
        }
        Err(problem) if problem.is_ours() => return DeliveryOutcome::Postponed { at: now.plus(POSTPONED_FOR) },
        // The partner reads it.
        Err(EndpointProblem::Unanswered(error)) => (unanswered(&error), None),
        Err(problem) => (problem.to_string(), None),
    };
    let seed = delivery.id.unsigned_abs();
    match webhook::next_attempt(delivery.attempts, now, retry_after, seed) {
        Some(at) => DeliveryOutcome::Retry { at, cause },
        None => DeliveryOutcome::GivenUp { cause },
    }
}
