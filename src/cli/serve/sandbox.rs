//! The sandbox: the service once more, on records of its own, for test keys.
//!
//! It is there once a test key was issued, and is opened when the service starts or when somebody asks for it. What is wrong
//! with it is logged and never stands in the live service's way: its tasks are not vital, and the end of the process does not
//! wait long for them.

use std::sync::{Arc, Mutex, PoisonError};

use lettre::message::Mailbox;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::process;
use crate::app::{App, Parts};
use crate::cli::sandbox_records::{SandboxRecords, find_sandbox, make_sandbox};
use crate::cli::{open_records, remedy};
use crate::clock::Clock;
use crate::config::{Records, ServeSettings};
use crate::domain::api_key::Mode;
use crate::domain::base32;
use crate::domain::catalog::Catalog;
use crate::domain::email::disposable::DisposableDomains;
use crate::domain::mail::budget::MailBudget;
use crate::domain::secret::Secret;
use crate::domain::secret::token::TokenMaker;
use crate::domain::union::Union;
use crate::domain::union::notice::Notices;
use crate::figures::worker;
use crate::installation::{Claim, ClaimSecret, HeldSecret};
use crate::limiter::Limiter;
use crate::log::Log;
use crate::mail::compose::Composer;
use crate::mail::worker::Outbox;
use crate::mail::{Delivery, MailNotifier};
use crate::membership::Membership;
use crate::operator::Operator;
use crate::operator::service::{NoTestRecords, OpensTestRecords};
use crate::partners::worker::{ContactMail, WebhookNotifier, WebhookWorker};
use crate::people::erasures::ErasureLog;
use crate::people::retention;
use crate::reply::Reply;
use crate::sandbox::Inbox;
use crate::sandbox::transport::InboxTransport;
use crate::server::{FindsSandbox, NoSandbox};
use crate::store::Store;
use crate::store::migration::Prepare;
use crate::{campaigns, lease_queue, random, supervise};

/// What the sandbox is made of, and what became of it.
pub(super) struct SandboxRuntime {
    live: Records,
    settings: ServeSettings,
    /// The sandbox's own.
    secret: Secret,
    union: Arc<Union>,
    /// As it was last read.
    catalog: watch::Receiver<Catalog>,
    limiter: Arc<dyn Limiter>,
    disposable: DisposableDomains,
    log: Log,
    clock: Clock,
    stop: watch::Receiver<bool>,
    opened: tokio::sync::Mutex<Option<OpenedSandbox>>,
    /// The last problem that was logged.
    last_logged: Mutex<Option<String>>,
}

struct OpenedSandbox {
    app: Arc<App>,
    store: Store,
    /// Of its mail and of its webhooks.
    workers: [JoinHandle<()>; 2],
}

/// What the live service shares with it.
pub(super) struct SharedParts<'a> {
    pub union: &'a Union,
    pub catalog: &'a watch::Receiver<Catalog>,
    pub secret: &'a Secret,
    pub limiter: &'a Arc<dyn Limiter>,
    pub disposable: &'a DisposableDomains,
    pub log: &'a Log,
    pub clock: Clock,
    pub stop: &'a watch::Receiver<bool>,
}

impl SandboxRuntime {
    pub(super) fn new(settings: &ServeSettings, shared: SharedParts<'_>) -> anyhow::Result<Arc<Self>> {
        let SharedParts { union, catalog, secret, limiter, disposable, log, clock, stop } = shared;
        let join_site = format!("{}/sandbox", union.join_site);
        Ok(Arc::new(Self {
            live: settings.store.records()?,
            settings: settings.clone(),
            secret: secret.of_sandbox(),
            union: Arc::new(Union { notices: Notices::of(&union.name, &join_site), join_site, ..union.clone() }),
            catalog: catalog.clone(),
            limiter: Arc::clone(limiter),
            disposable: disposable.clone(),
            log: log.clone(),
            clock,
            stop: stop.clone(),
            opened: tokio::sync::Mutex::default(),
            last_logged: Mutex::default(),
        }))
    }

    /// Waits for its last mail and closes its records; the end of the process is near.
    pub(super) async fn close(&self) {
        if let Some(OpenedSandbox { app, store, workers }) = self.opened.lock().await.take() {
            for worker in workers {
                // Whatever it had begun is begun again after the next start.
                let _either_way = worker.await;
            }
            app.write_uses(true, self.clock.now().time).await;
            if let Err(error) = store.close().await {
                self.log.problem(None, &format!("the sandbox did not close cleanly: {error}"));
            }
        }
    }

    /// Opens it unless it is open. Where there are no records, `makes` makes them.
    async fn find_or_open(&self, makes: bool) -> Result<Option<(Arc<App>, Store)>, NoSandbox> {
        let mut opened = self.opened.lock().await;
        if let Some(OpenedSandbox { app, store, .. }) = &*opened {
            return Ok(Some((Arc::clone(app), store.clone())));
        }
        match self.open(makes).await {
            Ok(Some(sandbox)) => {
                self.last_logged.lock().unwrap_or_else(PoisonError::into_inner).take();
                self.log.note("the sandbox is open: test keys work");
                let OpenedSandbox { app, store, .. } = opened.insert(sandbox);
                Ok(Some((Arc::clone(app), store.clone())))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.tell(&format!("{error:#}{}", remedy::end(&*error)));
                Err(NoSandbox)
            }
        }
    }

    /// Tells the operator, once for each trouble.
    fn tell(&self, trouble: &str) {
        let mut last_logged = self.last_logged.lock().unwrap_or_else(PoisonError::into_inner);
        if last_logged.as_deref() != Some(trouble) {
            *last_logged = Some(trouble.to_owned());
            self.log.problem(None, &format!("the sandbox cannot be opened, so test keys do not work: {trouble}"));
        }
    }

    async fn open(&self, makes: bool) -> anyhow::Result<Option<OpenedSandbox>> {
        let records = match find_sandbox(&self.live).await? {
            SandboxRecords { records, are_there: true } => records,
            _ if makes => make_sandbox(&self.live).await?,
            _ => return Ok(None),
        };
        let (data, batch) = (self.settings.store.data.clone(), self.settings.write_batch.get());
        // SQLite opens on the thread that asks, and may have its tables to bring up to date: no request waits behind that.
        let runtime = tokio::runtime::Handle::current();
        let opening = move || runtime.block_on(open_records(&records, &data, Prepare::Upgrade, batch));
        let store = tokio::task::spawn_blocking(opening).await??;
        if store.run(ClaimSecret(HeldSecret::of_sandbox(&self.secret))).await? == Claim::Another {
            store.close().await?;
            anyhow::bail!("its records were made with another secret; delete them, and issue test keys anew");
        }
        let notifier = Arc::new(MailNotifier::default());
        let inbox = Inbox::new(store.clone(), &self.secret, self.union.join_site.clone());
        let webhooks = Arc::<WebhookNotifier>::default();
        let parts = self.parts(&store, Delivery::Sent(Arc::clone(&notifier)), Arc::clone(&webhooks));
        let app = App::sandbox(parts, inbox);
        app.membership.keep_notice(self.clock.now().time).await?;
        let outbox = self.outbox(&store, notifier, Arc::clone(&webhooks))?;
        let webhook_worker = WebhookWorker {
            store: store.clone(),
            client: self.settings.outbound.client(&self.union.base_url),
            secret: self.secret.clone(),
            notifier: webhooks,
            // Into the partner's inbox, as all mail of the sandbox.
            contact: Some(ContactMail { composer: outbox.composer.clone(), transport: Arc::clone(&outbox.transport) }),
            log: self.log.of_sandbox(),
            mode: Mode::Test,
            name: outbox.name.clone(),
        };
        let workers = [
            supervise::spawn(lease_queue::run(Arc::new(outbox), self.clock, self.stop.clone())),
            supervise::spawn(webhook_worker.run(self.clock, self.stop.clone())),
        ];
        supervise::spawn(retention::run(
            store.clone(),
            Mode::Test,
            self.secret.clone(),
            self.settings.retention.times(),
            self.log.of_sandbox(),
            self.clock,
            self.stop.clone(),
        ));
        supervise::spawn(worker::run(store.clone(), self.log.of_sandbox(), self.clock, self.stop.clone()));
        supervise::spawn(process::write_uses(Arc::clone(app.core()), self.clock, self.stop.clone()));
        Ok(Some(OpenedSandbox { app, store, workers }))
    }

    fn parts(&self, store: &Store, mail: Delivery, webhooks: Arc<WebhookNotifier>) -> Parts {
        Parts {
            union: Arc::clone(&self.union),
            secret: self.secret.clone(),
            store: store.clone(),
            limiter: Arc::clone(&self.limiter),
            log: self.log.of_sandbox(),
            mail,
            webhooks,
            outbound: self.settings.outbound.client(&self.union.base_url),
            // It has no form, and no pages of members.
            budget: MailBudget::NONE,
            disposable: self.disposable.clone(),
            erasures: ErasureLog::beside(&self.settings.store.data.join("sandbox")),
            retention: self.settings.retention.times(),
        }
    }

    fn outbox(
        &self,
        store: &Store,
        notifier: Arc<MailNotifier>,
        webhooks: Arc<WebhookNotifier>,
    ) -> anyhow::Result<Outbox> {
        let (disposable, notices) = (self.disposable.clone(), self.union.notices.clone());
        let membership = Membership::new(store.clone(), &self.secret, Delivery::Held, webhooks, disposable, notices);
        let sender = &self.union.sender;
        Ok(Outbox {
            lease_campaign_mail: campaigns::outbox::lease,
            store: store.clone(),
            transport: Arc::new(InboxTransport::new(store.clone(), membership, &self.secret, self.clock)),
            composer: Composer {
                union: Arc::clone(&self.union),
                catalog: self.catalog.clone(),
                from: Mailbox::new(sender.name.clone(), sender.address.parse()?),
                bounces: None,
                tokens: TokenMaker::new(&self.secret),
            },
            notifier,
            log: self.log.of_sandbox(),
            budget: None,
            // Of this process alone: another may work on the same records, whatever becomes of the live mail.
            name: format!("sandbox-{}", String::from_utf8_lossy(&base32::encode::<8>(&random::bytes::<5>()?))),
            renew_every: Outbox::RENEW_EVERY,
        })
    }
}

impl FindsSandbox for SandboxRuntime {
    fn find(&self) -> Reply<'_, Result<Option<Arc<App>>, NoSandbox>> {
        Reply::later(async { Ok(self.find_or_open(false).await?.map(|(app, _)| app)) })
    }
}

impl OpensTestRecords for SandboxRuntime {
    fn open(&self, makes: bool) -> Reply<'_, Result<Option<Operator>, NoTestRecords>> {
        Reply::later(async move {
            let opened = self.find_or_open(makes).await.map_err(|NoSandbox| NoTestRecords)?;
            Ok(opened.map(|(_, store)| Operator::new(store, Mode::Test)))
        })
    }
}
