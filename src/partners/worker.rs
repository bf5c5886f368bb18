//! The worker that tells partners: takes what is due, a few for each endpoint, and writes down what became of it.
//!
//! Delivery is at least once: what was answered and not written down goes again, under the same id. One endpoint has few places
//! of all, and one that fails a single one, so that whoever hangs holds up nobody else.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::{self, JoinSet};
use tokio::time::Instant;

use super::webhooks::{EndpointProblem, send};
use crate::clock::Clock;
use crate::domain::partner::endpoint::{DeliveryOutcome, DueDelivery, EndpointId, EndpointRecord};
use crate::domain::secret::Secret;
use crate::domain::time::Timestamp;
use crate::domain::webhook;
use crate::domain::webhook::signature::message_id;
use crate::log::Log;
use crate::mail::Transport;
use crate::mail::compose::Composer;
use crate::outbound::{GuardedClient, OutboundAnswer};
use crate::store::{StoreError, WebhookStore};

/// Messages on their way at once.
const MAX_IN_FLIGHT: usize = 64;

/// Of these to one endpoint, to all endpoints of one partner, and to all that failed the last time, of which each has one.
const MAX_PER_ENDPOINT: usize = 8;
const MAX_PER_PARTNER: usize = MAX_IN_FLIGHT / 4;
const MAX_FAILING: usize = MAX_IN_FLIGHT / 2;

/// Longer than an attempt can take.
const DELIVERY_LEASE: Duration = Duration::from_secs(60);

/// How often it is looked whether another node, or a command, has something to tell.
const REST: Duration = Duration::from_secs(1);

/// How often a partner's contact is tried to be written to, and for how long.
const TELL_EVERY: Duration = Duration::from_secs(60);
const TELL_AGAIN: Duration = Duration::from_secs(3600);
const TELL_FOR: Duration = Duration::from_secs(3 * 24 * 3600);

/// What the rest of the house sees of the worker: it is woken when there is something to tell, and counts.
#[derive(Debug, Default)]
pub struct WebhookNotifier {
    wake: Notify,
    delivered: AtomicU64,
    failed: AtomicU64,
    given_up: AtomicU64,
}

impl WebhookNotifier {
    /// There may be something new to tell.
    pub fn notify(&self) {
        self.wake.notify_one();
    }

    /// Attempts since the start, by what became of them.
    pub fn counts(&self) -> [(&'static str, u64); 3] {
        [("delivered", &self.delivered), ("failed", &self.failed), ("given_up", &self.given_up)]
            .map(|(outcome, count)| (outcome, count.load(Ordering::Relaxed)))
    }
}

/// How a partner's contact is written to.
#[derive(Debug)]
pub struct ContactMail {
    pub composer: Composer,
    pub transport: Arc<dyn Transport>,
}

#[derive(Debug)]
pub struct WebhookWorker {
    pub store: Arc<dyn WebhookStore>,
    pub client: GuardedClient,
    pub secret: Secret,
    pub notifier: Arc<WebhookNotifier>,
    /// None where no mail leaves.
    pub contact: Option<ContactMail>,
    pub log: Log,
    /// The same after a restart: what this worker had leased when it was ended is its own again.
    pub name: String,
}

/// What became of one, and whether its endpoint was disabled for it.
type SettledDelivery = Result<(EndpointRecord, DeliveryOutcome, bool), StoreError>;

/// The messages that are on their way, each with the endpoint that it takes a place of.
#[derive(Debug, Default)]
struct OnTheirWay {
    tasks: JoinSet<SettledDelivery>,
    places: HashMap<task::Id, TakenPlace>,
    /// Endpoints whose failing the operator was told of.
    told: HashSet<EndpointId>,
}

/// Whose place a message takes.
#[derive(Debug)]
struct TakenPlace {
    endpoint: EndpointId,
    partner: String,
    fails: bool,
}

impl OnTheirWay {
    /// How many more an endpoint may have.
    fn room_for(&self, EndpointRecord { id, partner, .. }: &EndpointRecord, fails: bool) -> usize {
        let count = |is_it: &dyn Fn(&TakenPlace) -> bool| self.places.values().filter(|place| is_it(place)).count();
        let of_it = count(&|place| place.endpoint == *id);
        let of_partner = count(&|place| place.partner == *partner);
        let of_failing = count(&|place| place.fails);
        let most = if fails { usize::from(of_failing < MAX_FAILING) } else { MAX_PER_ENDPOINT };
        // Half of its places at a time: a lease costs a write.
        let free = most.saturating_sub(of_it);
        let worth = if of_it * 2 > most { 0 } else { free };
        worth.min(MAX_PER_PARTNER.saturating_sub(of_partner)).min(MAX_IN_FLIGHT - self.tasks.len())
    }
}

impl WebhookWorker {
    /// Works until told to stop; what was begun is finished.
    pub async fn run(self, clock: Clock, mut stop: watch::Receiver<bool>) {
        let worker = Arc::new(self);
        if let Err(error) = worker.store.release_deliveries(&worker.name).await {
            worker
                .log
                .problem(None, &format!("webhooks taken before the last stop wait for their lease to end: {error}"));
        }
        let mut way = OnTheirWay::default();
        let (mut trouble, mut next_telling) = (None, clock.now().tick);
        loop {
            let stopping = *stop.borrow();
            if stopping && way.tasks.is_empty() {
                return;
            }
            let room = way.tasks.len() < MAX_IN_FLIGHT && !stopping;
            let now = clock.now();
            if room {
                let begun = worker.begin(&mut way, now.time).await;
                worker.note_trouble(&mut trouble, begun.err());
            }
            if !stopping && now.tick >= next_telling {
                next_telling = now.tick.plus(TELL_EVERY);
                worker.tell_contacts(now.time).await;
            }
            tokio::select! {
                Some(done) = way.tasks.join_next_with_id() => {
                    let id = done.as_ref().map_or_else(|error| error.id(), |(id, _)| *id);
                    way.places.remove(&id);
                    match done {
                        Ok((_, Ok(settled))) => worker.account(&mut way.told, settled),
                        Ok((_, Err(error))) => worker.note_trouble(&mut trouble, Some(error)),
                        // A mistake of ours was told of where it happened; the lease ends by itself.
                        Err(_) => {}
                    }
                }
                () = worker.notifier.wake.notified(), if room => {}
                () = tokio::time::sleep(REST), if !stopping => {}
                _ = stop.changed(), if !stopping => {}
            }
        }
    }

    /// Tells the operator once that the store cannot be used, until it can.
    fn note_trouble(&self, before: &mut Option<String>, error: Option<StoreError>) {
        let now = error.map(|error| error.to_string());
        if let Some(cause) = now.as_ref().filter(|_| before.is_none()) {
            self.log.problem(None, &format!("webhooks wait, for their records cannot be used: {cause}"));
        }
        *before = now;
    }

    /// Begins what is due for as long as there is room.
    async fn begin(self: &Arc<Self>, way: &mut OnTheirWay, now: Timestamp) -> Result<(), StoreError> {
        let since = Instant::now();
        for (endpoint, fails) in self.store.due_endpoints(now).await? {
            let room = way.room_for(&endpoint, fails);
            if room == 0 {
                continue;
            }
            let most = u32::try_from(room).unwrap_or(1);
            let due = self.store.lease_deliveries(endpoint.id, &self.name, most, now.plus(DELIVERY_LEASE), now).await?;
            for delivery in due {
                let (worker, endpoint) = (Arc::clone(self), endpoint.clone());
                let (id, partner) = (endpoint.id, endpoint.partner.clone());
                let task = way.tasks.spawn(async move {
                    let at = || now.plus(since.elapsed());
                    let outcome = worker.deliver(&endpoint, &delivery, at()).await;
                    let outcome = judge(&delivery, outcome, at());
                    let disabled = settle(&*worker.store, id, &delivery, &outcome, at()).await?;
                    Ok((endpoint, outcome, disabled))
                });
                way.places.insert(task.id(), TakenPlace { endpoint: id, partner, fails });
            }
        }
        Ok(())
    }

    async fn deliver(
        &self,
        endpoint: &EndpointRecord,
        delivery: &DueDelivery,
        now: Timestamp,
    ) -> Result<OutboundAnswer, EndpointProblem> {
        let message = message_id(&self.secret, delivery.about, delivery.kind);
        let body = webhook::body(delivery.kind, delivery.at, Some(delivery.key.as_str()));
        send(&self.client, &self.secret, endpoint, message, body, now).await
    }

    /// Counts what became of a message, and tells the operator what concerns them.
    fn account(&self, told: &mut HashSet<EndpointId>, settled: (EndpointRecord, DeliveryOutcome, bool)) {
        let (EndpointRecord { id, partner, .. }, outcome, disabled) = settled;
        let (count, cause) = match &outcome {
            DeliveryOutcome::Delivered => (&self.notifier.delivered, None),
            DeliveryOutcome::Retry { cause, .. } | DeliveryOutcome::Gone { cause } => {
                (&self.notifier.failed, Some(cause))
            }
            DeliveryOutcome::GivenUp { cause } => (&self.notifier.given_up, Some(cause)),
        };
        count.fetch_add(1, Ordering::Relaxed);
        let Some(cause) = cause else {
            if told.remove(&id) {
                self.log.note(&format!("webhook endpoint {id} of {partner} takes messages again"));
            }
            return;
        };
        if disabled {
            self.log.problem(
                None,
                &format!(
                    "webhook endpoint {id} of {partner} is disabled: {cause}; `unionhall webhooks recover {id} --since DATE` enables it \
                     and tells it what it missed"
                ),
            );
        } else if told.insert(id) {
            self.log.note(&format!("webhook endpoint {id} of {partner} fails: {cause}; it is tried again"));
        }
    }

    /// Writes to the contacts of partners whose endpoints were disabled.
    async fn tell_contacts(&self, now: Timestamp) {
        let Some(ContactMail { composer, transport }) = &self.contact else { return };
        let leased = self.store.lease_to_tell(now.minus(TELL_FOR), now.plus(TELL_AGAIN), now).await;
        // The records were told of where they failed first; there is another minute.
        for (endpoint, contact) in leased.unwrap_or_default() {
            let sent = match composer.endpoint_disabled(&endpoint, &contact, now) {
                Ok(mail) => transport.send(mail).await,
                Err(error) => Err(error),
            };
            let told = match sent {
                Ok(()) => self.store.note_told(endpoint.id, now).await.map_err(|error| error.to_string()),
                Err(error) => Err(format!("{error:?}")),
            };
            if let Err(cause) = told {
                let (id, partner) = (endpoint.id, &endpoint.partner);
                self.log.problem(
                    None,
                    &format!("the contact of {partner} was not told that webhook endpoint {id} is disabled: {cause}; it is tried again"),
                );
            }
        }
    }
}

fn judge(delivery: &DueDelivery, sent: Result<OutboundAnswer, EndpointProblem>, now: Timestamp) -> DeliveryOutcome {
    let (cause, retry_after) = match sent {
        Ok(OutboundAnswer { status: 200..=299, .. }) => return DeliveryOutcome::Delivered,
        Ok(OutboundAnswer { status: 410, .. }) => {
            return DeliveryOutcome::Gone { cause: "it answered 410: it is no more".to_owned() };
        }
        Ok(OutboundAnswer { status: status @ 300..=399, .. }) => {
            (format!("it answered {status}, and redirects are not followed"), None)
        }
        Ok(OutboundAnswer { status, retry_after }) => (format!("it answered {status}"), retry_after),
        Err(problem) => (problem.to_string(), None),
    };
    let seed = delivery.id.unsigned_abs();
    match webhook::next_attempt(delivery.attempts, now, retry_after, seed) {
        Some(at) => DeliveryOutcome::Retry { at, cause },
        None => DeliveryOutcome::GivenUp { cause },
    }
}

/// What is not written down goes again, so a store that is away for a moment is waited for.
async fn settle(
    store: &dyn WebhookStore,
    id: EndpointId,
    delivery: &DueDelivery,
    outcome: &DeliveryOutcome,
    now: Timestamp,
) -> Result<bool, StoreError> {
    const TRIES: u32 = 4;
    for _ in 1..TRIES {
        match store.settle_delivery(id, delivery, outcome.clone(), now).await {
            Ok(disabled) => return Ok(disabled),
            Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
    store.settle_delivery(id, delivery, outcome.clone(), now).await
}
