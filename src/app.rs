//! The parts of the service put together: what operations, pages and MCP share.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use crate::campaigns::Campaigns;
use crate::campaigns::negotiator::{Negotiator, SEAT};
use crate::demonstration::DemonstrationCalendar;
use crate::domain::api_key::{KeyId, Mode};
use crate::domain::catalog::Catalog;
use crate::domain::email::disposable::DisposableDomains;
use crate::domain::health::{Health, NotReady};
use crate::domain::mail::budget::MailBudget;
use crate::domain::person::RetentionTimes;
use crate::domain::secret::seal::Sealer;
use crate::domain::secret::{KeyPurpose, Secret};
use crate::domain::time::{Tick, Timestamp};
use crate::domain::union::Union;
use crate::figures::ListSourceTotals;
pub use crate::figures::SourceTotals;
use crate::installation::{AreSignUpsPaused, FindLastBackup};
pub use crate::keys::Refusal;
use crate::keys::{Holder, KeyUse, Keys};
use crate::limiter::wide::WideBudgets;
use crate::limiter::{Bucket, Class, Limiter, LimiterStatus, Verdict};
use crate::log::Log;
use crate::mail::Delivery;
use crate::mail::sources::FindMailFigures;
pub use crate::mail::sources::MailFigures;
use crate::membership::Membership;
use crate::membership::form_throttle::FormThrottle;
use crate::outbound::GuardedClient;
use crate::partners::Partners;
use crate::partners::events::Events;
use crate::partners::self_service::SelfService;
use crate::partners::worker::WebhookNotifier;
use crate::people::erasures::ErasureLog;
use crate::people::own_page::OwnPages;
use crate::sandbox::Inbox;
pub use crate::store::{BATCH_ENDS, StoreFigures};
use crate::store::{Store, StoreError};
use crate::supervise;

/// How long the store may take to show that it takes writes.
const READINESS_TIMEOUT: Duration = Duration::from_secs(2);

/// How long what it showed is believed: asking costs a write, and anyone may ask.
const READINESS_BELIEVED_FOR: Duration = Duration::from_secs(1);

/// The same of the room on its disk, which costs as much as a sign-up.
const ROOM_BELIEVED_FOR: Duration = Duration::from_secs(10);

/// How long the store may take to say what monitoring asks.
const FIGURES_TIMEOUT: Duration = Duration::from_secs(1);

/// What an [`App`] is made of.
pub struct Parts {
    pub union: Arc<Union>,
    pub secret: Secret,
    pub store: Store,
    pub limiter: Arc<dyn Limiter>,
    pub log: Log,
    pub mail: Delivery,
    pub webhooks: Arc<WebhookNotifier>,
    /// What reaches the endpoints that partners name.
    pub outbound: GuardedClient,
    pub budget: MailBudget,
    pub disposable: DisposableDomains,
    pub erasures: ErasureLog,
    pub retention: RetentionTimes,
}

/// What monitoring reads of the records.
pub struct RecordFigures {
    pub members: u64,
    pub mail: MailFigures,
    /// The form, then the partners in the order in which they came.
    pub sources: Vec<SourceTotals>,
    pub last_backup: Option<Timestamp>,
    /// How large the database is, if it could say so in time.
    pub bytes: Option<u64>,
}

/// The parts, and the facts about the union as one reading of its catalog has them. Another reading is another of these
/// with the same parts.
pub struct App {
    pub union: Arc<Union>,
    core: Arc<Core>,
}

impl Deref for App {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

pub struct Core {
    pub membership: Membership,
    pub partners: Partners,
    pub events: Events,
    pub self_service: SelfService,
    pub own_pages: OwnPages,
    pub campaigns: Campaigns,
    secret: Secret,
    /// What `unionhall negotiator` works with.
    pub negotiator: Negotiator,
    pub demonstration: DemonstrationCalendar,
    pub form_throttle: FormThrottle,
    /// Seals forms that were sent, for the page after them.
    pub sent_forms: Sealer,
    pub log: Log,
    pub mail: Delivery,
    pub webhooks: Arc<WebhookNotifier>,
    /// The inboxes of partners, where this is the sandbox.
    pub inbox: Option<Inbox>,
    keys: Keys,
    store: Store,
    erasures: ErasureLog,
    checked: Mutex<LastCheck>,
    limiter: Arc<dyn Limiter>,
    wide: WideBudgets,
    /// Refusals by class, and failures of the store.
    rate_limited: [AtomicU64; Class::ALL.len()],
    store_errors: AtomicU64,
}

#[derive(Default)]
struct LastCheck {
    /// When it was asked whether it takes writes.
    at: Option<Tick>,
    /// And for the room that a sign-up needs.
    for_room_at: Option<Tick>,
    /// If it does, whether sign-ups are paused.
    paused: Option<bool>,
}

impl App {
    /// Each capability has the store for its own; operations and pages get none.
    pub fn new(parts: Parts) -> Arc<Self> {
        Self::put_together(parts, None, SEAT)
    }

    /// The same for `unionhall negotiator`: its notes are kept under the name of that seat.
    pub fn for_seat(parts: Parts, seat: &str) -> Arc<Self> {
        Self::put_together(parts, None, seat)
    }

    /// The same on the sandbox's records: test keys open it, and its mail arrives in those inboxes.
    pub fn sandbox(parts: Parts, inbox: Inbox) -> Arc<Self> {
        Self::put_together(parts, Some(inbox), SEAT)
    }

    fn put_together(parts: Parts, inbox: Option<Inbox>, seat: &str) -> Arc<Self> {
        let mode = if inbox.is_some() { Mode::Test } else { Mode::Live };
        let Parts { union, secret, store, limiter, log, mail, webhooks, .. } = parts;
        let Parts { outbound, budget, disposable, erasures, retention, .. } = parts;
        let notices = union.notices.clone();
        let core = Core {
            membership: Membership::new(
                store.clone(),
                &secret,
                mail.clone(),
                Arc::clone(&webhooks),
                disposable,
                notices,
            ),
            events: Events::new(store.clone(), &secret, Arc::clone(&webhooks), mode),
            self_service: SelfService::new(store.clone(), &secret, outbound, Arc::clone(&webhooks), mode),
            webhooks,
            partners: Partners::new(store.clone()),
            own_pages: OwnPages::new(store.clone(), &secret, erasures.clone(), retention),
            campaigns: Campaigns::new(store.clone()),
            negotiator: Negotiator::new(store.clone(), seat.to_owned()),
            secret: secret.clone(),
            demonstration: DemonstrationCalendar::new(store.clone()),
            form_throttle: FormThrottle::new(store.clone(), budget, &secret),
            sent_forms: Sealer::new(&secret, KeyPurpose::SentForm),
            keys: Keys::new(store.clone(), mode),
            store,
            erasures,
            checked: Mutex::default(),
            limiter,
            wide: WideBudgets::default(),
            log,
            mail,
            inbox,
            rate_limited: Default::default(),
            store_errors: AtomicU64::new(0),
        };
        Arc::new(Self { union, core: Arc::new(core) })
    }

    pub fn with_catalog(&self, catalog: Catalog) -> Arc<Self> {
        let union = Union { catalog, ..Union::clone(&self.union) };
        Arc::new(Self { union: Arc::new(union), core: Arc::clone(&self.core) })
    }

    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The holder of the key in an `Authorization` header's value. That it was used is written down behind the request's
    /// back.
    pub async fn authenticate(&self, authorization: Option<&[u8]>, now: Timestamp) -> Result<Holder, Refusal> {
        let holder = self.keys.authenticate(authorization, now).await?;
        if let Some(used) = holder.touch {
            let (core, id) = (Arc::clone(&self.core), holder.record.id);
            supervise::spawn(async move { core.write_use(id, used, now).await });
        }
        Ok(holder)
    }
}

impl Core {
    /// Whether a key opens these records, or why not; the caller counts the request.
    pub async fn recognize(&self, authorization: Option<&[u8]>, now: Timestamp) -> Result<(), Refusal> {
        self.keys.recognize(authorization, now).await.map(|_| ())
    }

    /// Writes down how often idle keys were used; with `all`, every key.
    pub async fn write_uses(&self, all: bool, now: Timestamp) {
        for (id, used, last_at) in self.keys.take_uses(all, now) {
            self.write_use(id, used, last_at).await;
        }
    }

    async fn write_use(&self, id: KeyId, used: KeyUse, now: Timestamp) {
        if let Err(error) = self.keys.touch(id, used, now).await {
            self.report_store(None, &format!("the use of key {id} was not recorded: {error}"));
        }
    }

    /// Whether nothing here is real.
    pub fn is_sandbox(&self) -> bool {
        self.inbox.is_some()
    }

    /// Draws on a budget; every limited request comes through here.
    pub async fn spend(&self, bucket: Bucket, limit: u32, now: Tick) -> Verdict {
        let verdict = match self.wide.refusal(bucket, limit, now) {
            Some(refused) => refused,
            None => self.limiter.check(bucket, limit, now).await,
        };
        if verdict.admitted {
            self.wide.count(bucket, limit, now);
        } else {
            self.rate_limited[bucket.class as usize].fetch_add(1, Ordering::Relaxed);
        }
        verdict
    }

    pub fn rate_limited(&self, class: Class) -> u64 {
        self.rate_limited[class as usize].load(Ordering::Relaxed)
    }

    pub fn limiter_status(&self) -> LimiterStatus {
        self.limiter.status()
    }

    /// Lets a later restore know that a key was revoked. The sandbox is in no backup.
    pub async fn note_revoked(&self, key: KeyId, at: Timestamp) {
        if !self.is_sandbox()
            && let Err(error) = self.erasures.note_revoked(key, at).await
        {
            self.log.problem(None, &error.to_string());
        }
    }

    /// The store failed a request; `cause` is for the operator.
    pub fn report_store(&self, request_id: Option<&str>, cause: &str) {
        self.store_errors.fetch_add(1, Ordering::Relaxed);
        self.log.problem(request_id, cause);
    }

    pub fn store_errors(&self) -> u64 {
        self.store_errors.load(Ordering::Relaxed)
    }

    /// What monitoring reads of the records; none while the store cannot say.
    pub async fn record_figures(&self) -> Option<RecordFigures> {
        // One after the other: monitoring takes one connection to the database and not all.
        let asked = async {
            Ok::<_, StoreError>(RecordFigures {
                members: self.membership.count().await?,
                mail: self.store.run(FindMailFigures).await?,
                sources: self.store.run(ListSourceTotals).await?,
                last_backup: self.store.run(FindLastBackup).await?,
                bytes: None,
            })
        };
        let asked = tokio::time::timeout(FIGURES_TIMEOUT, asked).await.ok()?;
        let figures = asked.map_err(|error| self.report_store(None, &error.to_string())).ok()?;
        // A look at every file of the database, which may take its time.
        let bytes = tokio::time::timeout(FIGURES_TIMEOUT, self.store.database_bytes()).await;
        Some(RecordFigures { bytes: bytes.ok().and_then(Result::ok), ..figures })
    }

    /// And of this node's part in them, which it knows by itself.
    pub fn store_figures(&self) -> StoreFigures {
        self.store.figures()
    }

    /// How this node is. Mail may fail and limits be counted alone: it is ready all the same, because sign-ups are taken and their mail
    /// waits.
    pub async fn health(&self, request_id: Option<&str>, now: Tick) -> Health {
        let are_sign_ups_paused = self.ask_store(request_id, now).await;
        let not_ready = match are_sign_ups_paused {
            _ if supervise::ended().is_some() => Some(NotReady::Ending),
            _ if self.secret.generations().is_replaced() => Some(NotReady::Secret),
            None => Some(NotReady::Store),
            Some(_) => None,
        };
        Health { not_ready, are_sign_ups_paused, mail: self.mail.state(), limits: self.limiter.status().scope }
    }

    /// Whether sign-ups are paused; none while the store cannot be used. Requests within a second of each other get the same answer,
    /// and while the store is asked all of them wait for that one. Why it cannot be used is for the operator, who reads it once.
    async fn ask_store(&self, request_id: Option<&str>, now: Tick) -> Option<bool> {
        let mut checked = self.checked.lock().await;
        let is_recent = |at: Option<Tick>, within| at.is_some_and(|at| now.since(at) < within);
        if !is_recent(checked.at, READINESS_BELIEVED_FOR) {
            // After a failure at once, so that its end is seen.
            let for_room = checked.paused.is_none() || !is_recent(checked.for_room_at, ROOM_BELIEVED_FOR);
            let asked = tokio::time::timeout(READINESS_TIMEOUT, async {
                self.store.check(for_room).await?;
                self.store.run(AreSignUpsPaused).await
            });
            let asked = asked.await;
            let late = |_| Err(StoreError::Unavailable("the store does not take writes".to_owned()));
            let asked = asked.unwrap_or_else(late);
            if let Err(error) = &asked {
                self.store_errors.fetch_add(1, Ordering::Relaxed);
                self.log.problem_with(request_id, &error.to_string(), error.remedy());
            }
            let for_room_at = if for_room { Some(now) } else { checked.for_room_at };
            *checked = LastCheck { at: Some(now), for_room_at, paused: asked.ok() };
        }
        checked.paused
    }
}
