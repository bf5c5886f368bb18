//! `unionhall serve`

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::limits::make_limiter;
use super::{files, open_store, random, say};
use crate::app::{self, App, Parts};
use crate::clock::Clock;
use crate::config::{self, Mail, Records, ServeSettings, StoreSettings, UnionSettings};
use crate::domain::base32;
use crate::domain::secret::Secret;
use crate::limiter::Limiter;
use crate::log::{Format, Log};
use crate::mail::compose::Composer;
use crate::mail::mailbox::MailboxFolder;
use crate::mail::outbox::Outbox;
use crate::mail::{Desk, Transport};
use crate::store::{Claim, Store};
use crate::tidy;
use crate::transport::client::TrustedProxies;
use crate::transport::dev_mailbox::DevMailbox;
use crate::transport::request_id::RequestIds;
use crate::transport::tls::Tls;
use crate::transport::{Edge, metrics, server};

pub(super) fn run(settings: &ServeSettings) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(settings))
}

async fn serve(settings: &ServeSettings) -> anyhow::Result<()> {
    let union = &settings.union;
    // Told before anything is made.
    union.catalog()?;
    let given = settings.secret.given()?;
    let mail = settings.mail.way()?;
    let limits = settings.limits.place()?;
    let tls = match (&settings.tls_cert, &settings.tls_key) {
        (Some(certificate), Some(key)) => Some(Arc::new(Tls::read(certificate.clone(), key.clone())?)),
        _ => None,
    };
    let listener = listen(union.listen, "--listen").await?;
    let metrics_listener = match settings.metrics_listen {
        Some(address) => Some(listen(address, "--metrics-listen").await?),
        None => None,
    };
    let listening = listener.local_addr()?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let base_url = union.base_url(listening, scheme);
    let join_site = union.join_site.clone().unwrap_or_else(|| base_url.clone());
    let sender = settings.mail.sender(&union.name, &join_site)?;
    let store = open_store(&settings.store, true).await?;
    let claimed = claim_secret(&settings.store, given, &*store).await?;
    let clock = Clock::start();
    let format = if std::io::stderr().is_terminal() { Format::Human } else { Format::Json };
    let log = Log::start(settings.log, format, clock, std::io::stderr())?;
    report_panics(&log);
    raise_file_limit(&log);
    let limiter = make_limiter(limits, union.public_per_minute, &log).await?;

    let folder = MailboxFolder::new(settings.store.data.join("mailbox"));
    let transport: Option<Arc<dyn Transport>> = match &mail {
        Mail::Mailbox => Some(Arc::new(folder.clone())),
        Mail::Smtp(smtp) => Some(Arc::new(smtp.clone())),
        Mail::Hold | Mail::None => None,
    };
    // Two workers of one name would take each other's mail.
    let (_sole_sender, node) = match &transport {
        Some(_) => {
            // Nothing else has made it where the records are elsewhere.
            files::make_private_folder(&settings.store.data)?;
            let lock = files::lock_alone(&settings.store.data.join("sending"))?;
            (Some(lock), files::node_name(&settings.store.data)?)
        }
        None => (None, String::new()),
    };
    let desk = Arc::new(Desk::default());
    let union_mail = match (&mail, &transport) {
        (Mail::None, _) => app::Mail::Off,
        (_, None) => app::Mail::Held,
        (_, Some(_)) => app::Mail::Sent(Arc::clone(&desk)),
    };
    let app = make_app(union, base_url, claimed.secret, Arc::clone(&store), limiter, log.clone(), union_mail)?;
    let join_site = app.join_site.clone();
    let (stop_work, work_stops) = watch::channel(false);
    let mut stopping = work_stops.clone();
    tokio::spawn(tidy::run(Arc::clone(&store), log.clone(), clock, work_stops.clone()));
    let worker = transport.map(|transport| {
        let contact: Vec<_> =
            [&union.contact_email, &union.postal_address].into_iter().filter_map(|line| line.as_deref()).collect();
        let outbox = Outbox {
            store: Arc::clone(&store),
            transport,
            composer: Composer {
                union: union.name.clone(),
                from: sender,
                join_site,
                contact: (!contact.is_empty()).then(|| contact.join(" · ")),
                tokens: app.tokens.clone(),
            },
            desk,
            log: log.clone(),
            name: node,
        };
        tokio::spawn(outbox.run(clock, work_stops))
    });
    let proxies = TrustedProxies::new(settings.trusted_proxies.clone());
    let mailbox = matches!(mail, Mail::Mailbox).then(|| DevMailbox(folder));
    if mailbox.is_some() && !Edge::is_local(&app) {
        let warning = "mail goes into the folder `mailbox` and to nobody's inbox, though the base address is public: set \
                       UNIONHALL_MAIL to an smtp:// address";
        eprintln!("unionhall: WARNING: {warning}");
        log.problem(None, warning);
    }
    let ids = RequestIds::new(random()?);
    let origins = settings.mcp_origins.clone();
    let edge = Edge::new(app, clock, proxies, ids, mailbox, origins, metrics_listener.is_some());
    if let Some(listener) = metrics_listener {
        log.note(&format!("metrics are at http://{}/metrics", listener.local_addr()?));
        tokio::spawn(metrics::serve(listener, Arc::clone(&edge)));
    }
    let signal = stop_signal()?;
    // The worker hears of it at once: it finishes what it has begun while the last requests are answered.
    let stop = async move {
        signal.await;
        let _nobody_left = stop_work.send(true);
    };
    reload_on_hangup(tls.clone(), log.clone())?;
    greet(settings, &mail, &format!("{scheme}://{listening}"), &claimed.place)?;
    let last_mail = async {
        // Fails only when the sender is gone, which is later.
        let _told = stopping.wait_for(|stop| *stop).await;
        if let Some(worker) = worker
            && tokio::time::timeout(LAST_MAIL, worker).await.is_err()
        {
            log.problem(None, "some mail was still on its way at the end; it may be sent again after the next start");
        }
    };
    tokio::join!(server::serve(listener, edge, tls, stop), last_mail);
    let closed = tokio::time::timeout(LAST_WRITES, store.close()).await;
    log.close();
    closed.context("the store was not done with its last writes in time")?.context("the store did not close cleanly")
}

/// The app of these settings; `unionhall mcp` makes the same.
pub(super) fn make_app(
    union: &UnionSettings,
    base_url: String,
    secret: Secret,
    store: Arc<dyn Store>,
    limiter: Arc<dyn Limiter>,
    log: Log,
    mail: app::Mail,
) -> anyhow::Result<Arc<App>> {
    Ok(App::new(Parts {
        name: union.name.clone(),
        join_site: union.join_site.clone().unwrap_or_else(|| base_url.clone()),
        base_url,
        contact_email: union.contact_email.clone(),
        postal: union.postal_address.clone(),
        catalog: union.catalog()?,
        secret,
        store,
        limiter,
        log,
        public_per_minute: union.public_per_minute,
        key_per_minute: union.key_per_minute,
        mail,
    }))
}

/// How long the end waits for mail on its way, beside the last requests. What takes longer is sent again after the next
/// start.
const LAST_MAIL: Duration = Duration::from_millis(7500);

/// And for the last writes. With the log after it, the end stays below ten seconds.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// Listens on an address that was given with `flag`.
async fn listen(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    use std::io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        AddrInUse => anyhow!("{address} is taken by another program; choose another address with {flag}"),
        AddrNotAvailable => anyhow!("{} is no address of this machine; choose another with {flag}", address.ip()),
        PermissionDenied => anyhow!("port {} needs more rights; choose one above 1023 with {flag}", address.port()),
        _ => anyhow!("cannot listen on {address}: {error}"),
    })
}

/// Says where it listens; the first time, what to do next.
fn greet(settings: &ServeSettings, mail: &Mail, address: &str, place: &Place) -> anyhow::Result<()> {
    say(&format!("unionhall listens on {address}"))?;
    let keep = match place {
        Place::Known => return Ok(()),
        Place::Made => "; the file `secret` there makes the referral links: back it up",
        Place::Given => "; the secret you gave makes the referral links: keep it",
    };
    let program = std::env::args().next().unwrap_or_else(|| "unionhall".to_owned());
    let (data, flags) = (settings.store.data.display(), settings.store.as_flags());
    let kept = match settings.store.records()? {
        Records::Sqlite(_) => format!("{data}/"),
        records @ Records::Postgres(_) => records.to_string(),
    };
    let mail = match mail {
        Mail::Mailbox => format!(
            "Mail: nobody is written to. Each message lands in {data}/mailbox/; open {address}/dev/mailbox and click."
        ),
        Mail::Smtp(_) => "Mail: confirmation mails leave through the mail server you gave.".to_owned(),
        Mail::Hold => {
            "Mail: confirmation mails wait in the outbox; nothing is sent from here (--mail hold).".to_owned()
        }
        Mail::None => "Mail: off, and so are sign-ups (--mail none).".to_owned(),
    };
    say(&format!(
        "
This is its first start. What it keeps is in {kept}{keep}.

1. Read something that needs no key:
     curl {address}/v1/negotiate-categories
2. Issue a key to a partner, from another terminal in this folder:
     KEY=$({program} keys issue \"Acme Assistant\"{flags})
3. Sign a user up with it:
     curl {address}/v1/invite -H \"Authorization: Bearer $KEY\" -H \"Content-Type: application/json\" \\
       -d '{{\"email\": \"ana@example.com\", \"categories\": {{\"internet\": true}}}}'

{mail}
Reference: {address}/docs   Settings: {program} serve --help   The savings shown are samples until you give a --catalog.
"
    ))
}

/// The installation's secret, and where it came from.
pub(super) struct Claimed {
    pub secret: Secret,
    place: Place,
}

enum Place {
    /// The records were made with it before.
    Known,
    /// It was made just now.
    Made,
    /// It was given, and the records are new.
    Given,
}

/// The installation's secret: the one given, the one kept in the data folder, or a new one on the first start.
pub(super) async fn claim_secret(
    settings: &StoreSettings,
    given: Option<Secret>,
    store: &dyn Store,
) -> anyhow::Result<Claimed> {
    let kept = settings.data.join("secret");
    let records = settings.records()?;
    if given.is_none() && matches!(records, Records::Postgres(_)) {
        bail!(
            "with PostgreSQL every node is given the same secret: set UNIONHALL_SECRET_FILE to a file that holds it, 32 \
             characters or more (`openssl rand -base64 33` makes one; records that were moved keep the one they had)"
        );
    }
    let (secret, made) = match given {
        Some(secret) => (secret, false),
        None if kept.exists() => (config::read_secret(&kept)?, false),
        None => {
            let text = String::from_utf8_lossy(&base32::encode::<52>(&random::<33>()?)).into_owned();
            files::write_private_file(&kept, &format!("{text}\n"))?;
            (Secret::new(&text)?, true)
        }
    };
    match store.claim_secret(secret.fingerprint()).await? {
        Claim::First if made => Ok(Claimed { secret, place: Place::Made }),
        Claim::First => Ok(Claimed { secret, place: Place::Given }),
        Claim::Same => Ok(Claimed { secret, place: Place::Known }),
        Claim::Another if made => {
            std::fs::remove_file(&kept)?;
            bail!(
                "the records in {records} belong to a secret that is not there: put it back into {}, or give it with \
                 UNIONHALL_SECRET",
                kept.display()
            );
        }
        Claim::Another => bail!(
            "the secret is not the one that the records in {records} were made with: referral links would change. Give \
             that installation's secret, or other records"
        ),
    }
}

fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// SIGHUP reads the certificate and its key again, as after a renewal. Without one there is nothing to read, and a
/// supervisor's "reload" ends nothing.
fn reload_on_hangup(tls: Option<Arc<Tls>>, log: Log) -> anyhow::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            match tls.as_ref().map(|tls| tls.reload()) {
                None => log.note("there is no certificate to read again"),
                Some(Ok(())) => log.note("the certificate was read again"),
                Some(Err(error)) => log.problem(None, &format!("the certificate in use stays: {error}")),
            }
        }
    });
    Ok(())
}

/// Each connection is an open file, and the usual soft limit is far below what we serve.
fn raise_file_limit(log: &Log) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    // The connections, and some for the database and its readers.
    let needed = server::CONNECTIONS as u64 + 256;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|soft| soft < needed) {
        limit.current = Some(limit.maximum.map_or(needed, |hard| hard.min(needed)));
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            log.problem(None, &format!("the limit on open files stays low: {error}"));
        }
    }
}

/// A panic is logged by its place alone: its message might repeat what a caller sent.
fn report_panics(log: &Log) {
    let log = log.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        log.problem(None, &format!("a mistake in the program at {place}"));
    }));
}
