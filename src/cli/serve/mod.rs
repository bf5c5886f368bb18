//! `unionhall serve`: one step after the other, from the settings to the last write.

mod greeting;
pub(super) mod limits;
mod mail;
pub(super) mod notify;
mod operator_page;
mod process;
mod sandbox;
mod warnings;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::greeting::Greeter;
use self::limits::make_limiter;
use self::mail::Post;
pub(super) use self::operator_page::OfOtherCommands;
use self::sandbox::{SandboxRuntime, SharedParts};
use super::demo::folder;
use super::secret::watch::SecretWatch;
use super::secret::{self, Claimed};
use super::{AlreadyPrinted, block_on, open_store, print_aside, print_line};
use crate::app::{App, Parts};
use crate::cli::files::is_there;
use crate::cli::remedy;
use crate::clock::Clock;
use crate::config::{Keyring, LimitsAddress, MailTransport, NotifyTarget, Records, ServeSettings, StoreSettings};
use crate::demonstration::FindDemonstration;
use crate::domain::api_key::Mode;
use crate::domain::campaign::mailing::MailingPace;
use crate::domain::email::disposable::DisposableDomains;
use crate::domain::secret::token::TokenMaker;
use crate::domain::union::service::ServiceFacts;
use crate::figures::worker;
use crate::http::connection::tls::Tls;
use crate::http::request::client_address::TrustedProxies;
use crate::http::request::id::RequestIds;
use crate::installation::KeepServiceFacts;
use crate::log::{Format, Log, Severity, json_event};
use crate::mail::Delivery;
use crate::mail::report::MailHooks;
use crate::operator::Operator;
use crate::operator::findings::TrialSettings;
use crate::operator::notify::Notifier;
use crate::partners::worker::{WebhookNotifier, WebhookWorker};
use crate::people::erasures::ErasureLog;
use crate::people::retention;
use crate::server::{FindsSandbox, HttpService, HttpSettings, NodeResources, listener, metrics_listener};
use crate::store::migration::Prepare;
use crate::store::postgres::{PostgresOpenError, PostgresStore};
use crate::supervise::spawn_vital;
use crate::{campaigns, random, rewards, supervise};

/// How long the end waits for mail on its way, beside the last requests. What takes longer is sent again after the next
/// start.
const LAST_MESSAGES_TIMEOUT: Duration = Duration::from_millis(7500);

/// And for the last writes. With the log after it, the end stays below ten seconds.
const LAST_WRITES_TIMEOUT: Duration = Duration::from_secs(1);

/// And, before them, for the sandbox: nobody's sign-up is lost there.
const LAST_TEST_TIMEOUT: Duration = Duration::from_millis(500);

/// And for the counts of requests.
const LAST_COUNTS_TIMEOUT: Duration = Duration::from_millis(200);

/// And, last, for threads that nobody waits for any more.
const LAST_THREADS_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) fn run(settings: &ServeSettings, others: OfOtherCommands) -> anyhow::Result<()> {
    folder::refuse(&settings.store.data)?;
    run_beside(settings, others, None, Box::pin(std::future::pending()))
}

/// What else the process does until it ends.
pub(super) type Beside<'a> = Pin<Box<dyn Future<Output = anyhow::Result<Infallible>> + 'a>>;

/// Serves with `beside` at its side; `text` is what a demonstration says once it is ready, in place of the greeting.
pub(super) fn run_beside(
    settings: &ServeSettings,
    others: OfOtherCommands,
    text: Option<String>,
    beside: Beside<'_>,
) -> anyhow::Result<()> {
    let clock = Clock::start();
    let log = process::start_log(settings, clock)?;
    process::report_panics(&log);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = block_on(&runtime, async {
        tokio::select! {
            done = serve(settings, others, text, clock, &log) => done,
            failed = beside => failed.map(|never| match never {}),
        }
    });
    log.close();
    // A name that is being looked up for a webhook holds a thread for as long as its name servers are silent.
    runtime.shutdown_timeout(LAST_THREADS_TIMEOUT);
    match done {
        // Not by the log, which may be off: why it ended is said at any level.
        Err(error) if log.format() == Format::Json => {
            let text = format!("{error:#}{}", remedy::end(&*error));
            print_aside(&json_event(clock.now().time, Severity::Error, None, &text));
            Err(AlreadyPrinted.into())
        }
        done => done,
    }
}

async fn serve(
    settings: &ServeSettings,
    others: OfOtherCommands,
    text: Option<String>,
    clock: Clock,
    log: &Log,
) -> anyhow::Result<()> {
    let checked = Checked::read(settings)?;
    let backups = (others.backups)(settings)?.map(Arc::new);
    let listeners = Listeners::open(settings, checked.tls.is_some())?;
    let union = Arc::new(settings.union.facts(settings.union.base_url(listeners.listening, listeners.scheme))?);
    let branding = Arc::new(settings.union.branding()?);
    let trial = TrialSettings {
        mail_goes_to_a_folder: matches!(checked.mail, MailTransport::Mailbox),
        silent_pages: branding.texts.silent(),
    };
    if settings.existing {
        require_records(&settings.store).await?;
    }
    let store = open_store(&settings.store, Prepare::Upgrade, settings.write_batch.get()).await?;
    if store.run(FindDemonstration).await?.is_some() != settings.union.is_demonstration {
        store.close().await?;
        bail!("these records are a demonstration's, which only `unionhall demo` serves: nobody in them is real");
    }
    let operator = Operator::new(store.clone(), Mode::Live);
    let Claimed { secret, ring, origin } = secret::claim(&settings.store, checked.secret, &operator).await?;
    let facts = ServiceFacts::of(&union);
    let keep = KeepServiceFacts { facts: facts.clone(), two_people: settings.operator.two_people };
    let kept = operator.run_unaudited(keep).await;
    let facts_before = kept.context("the service's name and addresses could not be kept")?;
    process::raise_file_limit(log);
    let limiter = make_limiter(checked.limits, union.public_per_minute, log).await?;
    let post = Post::open(settings, &checked.mail, &union.sender)?;
    let webhooks = Arc::<WebhookNotifier>::default();
    let mailbox_key = TokenMaker::new(&secret).mailbox_key();
    let app = App::new(Parts {
        union: Arc::clone(&union),
        secret: secret.clone(),
        store: store.clone(),
        limiter: Arc::clone(&limiter),
        log: log.clone(),
        mail: post.delivery.clone(),
        webhooks: Arc::clone(&webhooks),
        outbound: settings.outbound.client(&union.base_url),
        budget: settings.budget.budget(),
        disposable: checked.disposable.clone(),
        erasures: ErasureLog::beside(&settings.store.data),
        retention: settings.retention.times(),
    });
    // Before the workers begin: the start would wait for their first writes.
    app.membership.keep_notice(clock.now().time).await.context("the notice of consent could not be kept")?;
    let (stop_work, work_stops) = watch::channel(false);
    let (mails, catalog) = watch::channel(union.catalog.clone());
    let composer = post.composer(&secret, &union, &catalog);
    let start = |composer| post.start(&store, composer, clock, log, work_stops.clone());
    let worker = composer.clone().and_then(start);
    let webhook_worker = WebhookWorker {
        store: store.clone(),
        client: settings.outbound.client(&union.base_url),
        secret: secret.clone(),
        notifier: Arc::clone(&webhooks),
        contact: composer.clone().and_then(|composer| post.contact_mail(composer)),
        log: log.clone(),
        mode: Mode::Live,
        name: post.worker_name()?,
    };
    let webhook_task = spawn_vital("the webhooks", webhook_worker.run(clock, work_stops.clone()));
    let core = Arc::clone(app.core());
    spawn_vital("the counts of requests", process::write_uses(Arc::clone(&core), clock, work_stops.clone()));
    let (records, logger, stops) = (&store, log, &work_stops);
    let file = SecretWatch::file(&settings.store, &settings.secret);
    let watch = SecretWatch { file, ring, secret: secret.clone(), operator: operator.clone(), log: logger.clone() };
    spawn_vital("the watch over the secret", watch.run(clock, stops.clone()));
    let times = settings.retention.times();
    let retention_task =
        retention::run(records.clone(), Mode::Live, secret.clone(), times, logger.clone(), clock, stops.clone());
    spawn_vital("retention", retention_task);
    spawn_vital("the roll-up of figures", worker::run(records.clone(), logger.clone(), clock, stops.clone()));
    spawn_vital("the campaigns", campaigns::worker::run(records.clone(), logger.clone(), clock, stops.clone()));
    spawn_vital("the rewards", rewards::worker::run(records.clone(), logger.clone(), clock, stops.clone()));
    // Where no mail can be sent, or it could not say where the union is, none is queued.
    let is_off = matches!(post.delivery, Delivery::Off) || union.postal_address.is_none();
    let pace = MailingPace { an_hour: if is_off { 0 } else { settings.mail.campaign_mails_an_hour } };
    let mailings = campaigns::mailing_worker::run(records.clone(), pace, logger.clone(), clock, stops.clone());
    spawn_vital("the mailings", mailings);
    let notifier = match checked.notify {
        Some(target) => {
            let channel = notify::channel(target, settings, &union, &checked.mail, composer)?;
            Some(Notifier::new(operator.clone(), channel, secret.clone(), Arc::clone(&union), remedy::write))
        }
        None => None,
    };
    let sandbox = SandboxRuntime::new(
        settings,
        SharedParts {
            union: &union,
            catalog: &catalog,
            secret: &secret,
            limiter: &limiter,
            disposable: &checked.disposable,
            log,
            clock,
            stop: &work_stops,
        },
    )?;
    // What was begun there goes on, whether anybody asks for it or not. Nobody waits for it, and what is wrong is in the log.
    supervise::spawn({
        let sandbox = Arc::clone(&sandbox);
        async move { sandbox.find().await }
    });
    let reload_failed = Arc::<AtomicBool>::default();
    let service = HttpService::new(
        app,
        clock,
        RequestIds::new(random::bytes()?),
        HttpSettings {
            proxies: TrustedProxies::new(settings.trusted_proxies.clone()),
            branding,
            mcp_origins: settings.mcp_origins.clone(),
            mailbox: post.folder.clone().map(|folder| (folder, mailbox_key.clone())),
            mail_hooks: checked.mail_hooks,
            metrics: listeners.metrics.is_some().then(|| NodeResources {
                folder: settings.store.disk_folder(),
                tls: checked.tls.clone(),
                backup_every: settings.backup.backup_every,
                reload_failed: Arc::clone(&reload_failed),
            }),
            sandbox: Some(Arc::clone(&sandbox) as _),
            operator: operator_page::make(
                settings,
                others.look,
                operator,
                operator_page::Shared {
                    secret: &secret,
                    union: &union,
                    catalog: &catalog,
                    mail: &checked.mail,
                    trial: &trial,
                    transport: post.transport(),
                    sandbox: Arc::clone(&sandbox) as _,
                    backups,
                },
            )?,
            in_flight: settings.in_flight,
        },
    );
    if let Some(metrics) = listeners.metrics {
        log.note(&format!("metrics are at http://{}/metrics", metrics.local_addr()?));
        supervise::spawn(metrics_listener::serve(metrics, Arc::clone(&service)));
    }
    if let Some(notifier) = notifier {
        let telling = notify::run(notifier, Arc::clone(&service), clock, log.clone(), work_stops.clone());
        spawn_vital("the notifications", telling);
    }
    let signal = process::stop_signal()?;
    process::reload_on_hangup(process::Reloaded {
        tls: checked.tls.clone(),
        union: settings.union.clone(),
        service: Arc::clone(&service),
        mails,
        failed: reload_failed,
        log: log.clone(),
    })?;
    match text {
        Some(text) => print_line(text.trim_end())?,
        None => greeting::greet(
            &Greeter::new(settings, log, clock),
            settings,
            &checked.mail,
            &format!("{}://{}", listeners.scheme, listeners.listening),
            &mailbox_key,
            origin,
        )?,
    }
    process::notify_ready(log);
    // After what may refuse to start, and after the version: whoever is refused reads why, and nothing else.
    warnings::tell(settings, &trial, &union, log);
    warnings::tell_changed(&facts, facts_before.as_ref(), log);
    // The worker hears of it at once: it finishes what it has begun while the last requests are answered.
    let stop = async {
        tokio::select! {
            () = signal => {}
            what = supervise::wait() => {
                let ends = "ended because of a bug in the program; the process exits, to be restarted";
                log.problem(None, &format!("{what} {ends}"));
            }
        }
        let _nobody_left = stop_work.send(true);
    };
    tokio::join!(
        listener::serve(listeners.listener, service, checked.tls, stop),
        last_messages(worker, webhook_task, work_stops, log)
    );
    let _in_time_or_not = tokio::time::timeout(LAST_TEST_TIMEOUT, sandbox.close()).await;
    let _in_time_or_not = tokio::time::timeout(LAST_COUNTS_TIMEOUT, core.write_uses(true, clock.now().time)).await;
    let closed = tokio::time::timeout(LAST_WRITES_TIMEOUT, store.close()).await;
    if let Some(what) = supervise::ended() {
        bail!("{what} ended because of a bug in the program; the log says where");
    }
    closed.context("the store was not done with its last writes in time")?.context("the store did not close cleanly")
}

/// Fails where a start would make new records.
async fn require_records(settings: &StoreSettings) -> anyhow::Result<()> {
    let records = settings.records()?;
    let are_there = match &records {
        // A first start that was ended early leaves an empty file.
        Records::Sqlite(file) => is_there(file)? && std::fs::metadata(file)?.len() > 0,
        Records::Postgres(address) => {
            let opened = PostgresStore::open((**address).clone(), Prepare::Expect, 1).await;
            // What else is wrong is told where the records are opened.
            !matches!(opened, Err(PostgresOpenError::Missing))
        }
    };
    match are_there {
        true => Ok(()),
        false => bail!(
            "there are no records at {records}, and --existing (UNIONHALL_EXISTING) says that there are some: see that the disk is mounted and \
             that this is their place. A start without --existing makes new, empty records"
        ),
    }
}

/// What can be wrong with the settings is told before anything is made.
struct Checked {
    secret: Option<Keyring>,
    mail: MailTransport,
    limits: LimitsAddress,
    disposable: DisposableDomains,
    mail_hooks: MailHooks,
    notify: Option<NotifyTarget>,
    tls: Option<Arc<Tls>>,
}

impl Checked {
    fn read(settings: &ServeSettings) -> anyhow::Result<Self> {
        settings.union.figures.read()?;
        Ok(Self {
            secret: settings.secret.given()?,
            mail: settings.mail.transport()?,
            limits: settings.limits.address()?,
            disposable: settings.mail.disposable.read()?,
            mail_hooks: settings.mail_hooks.hooks()?,
            notify: settings.notify.target()?,
            tls: read_tls(settings)?.map(Arc::new),
        })
    }
}

pub(super) fn read_tls(settings: &ServeSettings) -> anyhow::Result<Option<Tls>> {
    match (&settings.tls_cert, &settings.tls_key) {
        (Some(certificate), Some(key)) => Ok(Some(Tls::read(certificate.clone(), key.clone())?)),
        _ => Ok(None),
    }
}

/// The listeners, and what callers find behind them.
struct Listeners {
    listener: TcpListener,
    listening: SocketAddr,
    scheme: &'static str,
    metrics: Option<TcpListener>,
}

impl Listeners {
    fn open(settings: &ServeSettings, tls: bool) -> anyhow::Result<Self> {
        let listener = listen(settings.union.listen, "--listen")?;
        let metrics = match settings.metrics_listen {
            Some(address) => Some(listen(address, "--metrics-listen")?),
            None => None,
        };
        let scheme = if tls { "https" } else { "http" };
        Ok(Self { listening: listener.local_addr()?, listener, scheme, metrics })
    }
}

/// Listens on an address that was given with `flag`.
fn listen(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    bind(address).and_then(|socket| socket.listen(listener::BACKLOG)).map_err(|error| unusable(address, flag, &error))
}

/// An address that is ours from now on, though nobody is let in yet.
pub(super) fn bind(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // As the runtime's own way to listen does it: a port that was ours a moment ago is ours again.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

pub(super) fn unusable(address: SocketAddr, flag: &str, error: &std::io::Error) -> anyhow::Error {
    use std::io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    match error.kind() {
        AddrInUse => anyhow!("{address} is taken by another program; choose another address with {flag}"),
        AddrNotAvailable => anyhow!("{} is not an address of this machine; choose another with {flag}", address.ip()),
        PermissionDenied => anyhow!("port {} needs more rights; choose one above 1023 with {flag}", address.port()),
        _ => anyhow!("cannot listen on {address}: {error}"),
    }
}

/// Once told to stop, waits for the mail and the webhooks on their way.
async fn last_messages(
    mail: Option<JoinHandle<()>>,
    webhooks: JoinHandle<()>,
    mut stopping: watch::Receiver<bool>,
    log: &Log,
) {
    // Fails only when the sender is gone, which is later.
    let _told = stopping.wait_for(|stop| *stop).await;
    let in_time = async |task: Option<JoinHandle<()>>, what: &str| {
        if let Some(task) = task
            && tokio::time::timeout(LAST_MESSAGES_TIMEOUT, task).await.is_err()
        {
            log.warning(&format!("{what} still on the way at the end; it may be sent again after the next start"));
        }
    };
    tokio::join!(in_time(mail, "some mail was"), in_time(Some(webhooks), "a webhook was"));
}
