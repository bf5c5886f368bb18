//! The service's parts without HTTP: what a demonstration's history is made with, and what its time passes in.

use std::sync::Arc;

use anyhow::bail;
use lettre::message::Mailbox;
use tokio::sync::watch;

use crate::app::{App, Parts};
use crate::cli::{open_store, secret};
use crate::config::ServeSettings;
use crate::domain::api_key::Mode;
use crate::domain::campaign::mailing::MailingPace;
use crate::domain::catalog::Catalog;
use crate::domain::email::disposable::DisposableDomains;
use crate::domain::person::RetentionTimes;
use crate::domain::secret::Secret;
use crate::domain::secret::token::TokenMaker;
use crate::domain::time::Timestamp;
use crate::domain::union::Union;
use crate::domain::union::service::ServiceFacts;
use crate::figures::rollup::RollUp;
use crate::installation::KeepServiceFacts;
use crate::limiter::memory::MemoryLimiter;
use crate::log::Log;
use crate::mail::compose::Composer;
use crate::mail::worker::{MailAlarms, Outbox};
use crate::mail::{Delivery, MailNotifier, Transport};
use crate::operator::Operator;
use crate::partners::event_log::ForgetEvents;
use crate::partners::idempotency::CloseSignUps;
use crate::partners::worker::{ContactMail, WebhookAlarms, WebhookNotifier, WebhookWorker};
use crate::people::erasures::ErasureLog;
use crate::people::forget::Retain;
use crate::people::retention::Walk;
use crate::store::migration::Prepare;
use crate::store::{Store, WRITE_BATCH};
use crate::{campaigns, lease_queue, rewards};

/// What one round may lease at the most before the rest is left to the next: nothing here comes close.
const MOST_LEASES: usize = 10_000;

/// The union of a demonstration and all that works in it.
pub(super) struct ServiceParts {
    pub store: Store,
    pub operator: Operator,
    pub app: Arc<App>,
    pub secret: Secret,
    pub union: Arc<Union>,
    outbox: Arc<Outbox>,
    webhooks: Arc<WebhookWorker>,
    alarms: (MailAlarms, WebhookAlarms),
    walk: Walk,
    times: RetentionTimes,
    pace: MailingPace,
    log: Log,
    /// Mails read the catalog here for as long as it is kept.
    _catalog: watch::Sender<Catalog>,
}

impl ServiceParts {
    /// The parts of a service that has these settings, on its records; its mail goes that way.
    pub(super) async fn open(
        settings: &ServeSettings,
        transport: Arc<dyn Transport>,
        log: &Log,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let union = Arc::new(settings.union.facts(settings.union.base_url(settings.union.listen, "http"))?);
        let store = open_store(&settings.store, Prepare::Upgrade, WRITE_BATCH).await?;
        let operator = Operator::new(store.clone(), Mode::Live);
        let secret = secret::claim(&settings.store, None, &operator).await?.secret;
        store.run(KeepServiceFacts { facts: ServiceFacts::of(&union), two_people: false }).await?;
        let (webhooks, notifier) = (Arc::<WebhookNotifier>::default(), Arc::<MailNotifier>::default());
        let (catalog, catalogs) = watch::channel(union.catalog.clone());
        let from = Mailbox::new(union.sender.name.clone(), union.sender.address.parse()?);
        let (tokens, facts) = (TokenMaker::new(&secret), Arc::clone(&union));
        let composer = Composer { union: facts, catalog: catalogs, from, bounces: None, tokens };
        let name = format!("demonstration-{}", std::process::id());
        let app = App::new(Parts {
            union: Arc::clone(&union),
            secret: secret.clone(),
            store: store.clone(),
            limiter: Arc::new(MemoryLimiter::new(union.public_per_minute)),
            log: log.clone(),
            mail: Delivery::Sent(Arc::clone(&notifier)),
            webhooks: Arc::clone(&webhooks),
            outbound: settings.outbound.client(&union.base_url),
            budget: settings.budget.budget(),
            disposable: DisposableDomains::default(),
            erasures: ErasureLog::beside(&settings.store.data),
            retention: settings.retention.times(),
        });
        app.membership.keep_notice(now).await?;
        let webhooks = Arc::new(WebhookWorker {
            store: store.clone(),
            client: settings.outbound.client(&union.base_url),
            secret: secret.clone(),
            notifier: webhooks,
            contact: Some(ContactMail { composer: composer.clone(), transport: Arc::clone(&transport) }),
            log: log.clone(),
            mode: Mode::Live,
            name: name.clone(),
        });
        let outbox = Arc::new(Outbox {
            lease_campaign_mail: campaigns::outbox::lease,
            store: store.clone(),
            transport,
            composer,
            notifier,
            log: log.clone(),
            budget: Some(settings.budget.budget()),
            name,
            renew_every: Outbox::RENEW_EVERY,
        });
        let times = settings.retention.times();
        Ok(Self {
            walk: Walk::new(&secret, times),
            pace: MailingPace { an_hour: settings.mail.campaign_mails_an_hour },
            alarms: Default::default(),
            log: log.clone(),
            _catalog: catalog,
            store,
            operator,
            app,
            secret,
            union,
            outbox,
            webhooks,
            times,
        })
    }

    /// Does everything that is due then, as the workers of a running service do by and by.
    pub(super) async fn work(&mut self, now: Timestamp) -> anyhow::Result<()> {
        let store = &self.store;
        while store.run(CloseSignUps(now)).await? > 0 {}
        campaigns::worker::work(store, || now).await?;
        rewards::worker::work(store, || now).await?;
        campaigns::mailing_worker::work(store, self.pace, true, &self.log, || now).await?;
        self.deliver(now).await?;
        let store = &self.store;
        while !store.run(Retain { times: self.times, now }).await?.is_nothing() {}
        while store.run(ForgetEvents(now)).await? > 0 {}
        while self.walk.step(store, now).await? {}
        while store.run(RollUp { now }).await? {}
        Ok(())
    }

    /// Sends the mail and the webhooks that are due.
    pub(super) async fn deliver(&mut self, now: Timestamp) -> anyhow::Result<()> {
        for _ in 0..MOST_LEASES {
            let mails = lease_queue::step(&self.outbox, &mut self.alarms.0, now).await?;
            let webhooks = lease_queue::step(&self.webhooks, &mut self.alarms.1, now).await?;
            if mails.is_empty() && webhooks.is_empty() {
                return Ok(());
            }
        }
        bail!("more mail and webhooks are due than a demonstration can have")
    }

    pub(super) async fn close(self) -> anyhow::Result<()> {
        Ok(self.store.close().await?)
    }
}
