//! `unionhall serve`

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::{open_store, random, say};
use crate::app::{App, Parts};
use crate::clock::Clock;
use crate::config::{self, Mail, ServeSettings};
use crate::domain::base32;
use crate::domain::secret::Secret;
use crate::limiter::memory::MemoryLimiter;
use crate::log::{Format, Log};
use crate::store::Store;
use crate::transport::client::TrustedProxies;
use crate::transport::request_id::RequestIds;
use crate::transport::tls::Tls;
use crate::transport::{Edge, server};

pub(super) fn run(settings: &ServeSettings) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(settings))
}

async fn serve(settings: &ServeSettings) -> anyhow::Result<()> {
    let union = &settings.union;
    let catalog = union.catalog()?;
    let given = settings.given_secret()?;
    let tls = match (&settings.tls_cert, &settings.tls_key) {
        (Some(certificate), Some(key)) => Some(Arc::new(Tls::read(certificate.clone(), key.clone())?)),
        _ => None,
    };
    let listener = listen(union.listen).await?;
    let listening = listener.local_addr()?;
    let first = !settings.store.database().exists();
    let store = open_store(&settings.store, true)?;
    let secret = claim_secret(settings, given, &*store).await?;
    let format = if std::io::stderr().is_terminal() { Format::Human } else { Format::Json };
    let log = Log::start(settings.log, format, std::io::stderr())?;
    report_panics(&log);
    raise_file_limit(&log);

    let scheme = if tls.is_some() { "https" } else { "http" };
    let base_url = union.base_url(listening, scheme);
    let app = App::new(Parts {
        name: union.name.clone(),
        join_site: union.join_site.clone().unwrap_or_else(|| base_url.clone()),
        base_url,
        contact_email: union.contact_email.clone(),
        catalog,
        secret,
        store: Arc::clone(&store),
        limiter: Arc::new(MemoryLimiter::new(union.public_per_minute)),
        log: log.clone(),
        public_per_minute: union.public_per_minute,
        key_per_minute: union.key_per_minute,
        takes_sign_ups: settings.mail != Mail::None,
    });
    let proxies = TrustedProxies::new(settings.trusted_proxies.clone());
    let edge = Edge::new(app, Clock::start(), proxies, RequestIds::new(random()?));
    let stop = stop_signal()?;
    if let Some(tls) = &tls {
        reload_on_hangup(Arc::clone(tls), log.clone())?;
    }
    greet(settings, &format!("{scheme}://{listening}"), first)?;
    server::serve(listener, edge, tls, stop).await;
    let closed = store.close().await;
    log.close();
    closed.context("the store did not close cleanly")
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    use std::io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        AddrInUse => anyhow!("{address} is taken by another program; choose another address with --listen"),
        AddrNotAvailable => anyhow!("{} is no address of this machine; choose another with --listen", address.ip()),
        PermissionDenied => anyhow!("port {} needs more rights; choose one above 1023 with --listen", address.port()),
        _ => anyhow!("cannot listen on {address}: {error}"),
    })
}

/// Says where it listens; the first time, what to do next.
fn greet(settings: &ServeSettings, address: &str, first: bool) -> anyhow::Result<()> {
    say(&format!("unionhall listens on {address}"))?;
    if !first {
        return Ok(());
    }
    let program = std::env::args().next().unwrap_or_else(|| "unionhall".to_owned());
    let data = settings.store.data.display();
    let with_data = if settings.store.data == Path::new("data") { String::new() } else { format!(" --data {data}") };
    let mail = match settings.mail {
        Mail::Hold => "Mail: confirmation mails wait in the outbox, in the database; nothing is sent.",
        Mail::None => "Mail: off, and so are sign-ups (--mail none).",
    };
    say(&format!(
        "
This is its first start. Everything it keeps is in {data}/; the file `secret` there makes the referral links: back it up.

1. Read something that needs no key:
     curl {address}/v1/negotiate-categories
2. Issue a key to a partner, from another terminal in this folder:
     KEY=$({program} keys issue \"Acme Assistant\"{with_data})
3. Sign a user up with it:
     curl {address}/v1/invite -H \"Authorization: Bearer $KEY\" -H \"Content-Type: application/json\" \\
       -d '{{\"email\": \"ana@example.com\", \"categories\": {{\"internet\": true}}}}'

{mail}
Reference: {address}/docs   Settings: {program} serve --help   The savings shown are samples until you give a --catalog.
"
    ))
}

/// The installation's secret: the one given, the one kept in the data folder, or a new one on the first start.
async fn claim_secret(settings: &ServeSettings, given: Option<Secret>, store: &dyn Store) -> anyhow::Result<Secret> {
    let kept = settings.store.data.join("secret");
    let mut made = false;
    let secret = match given {
        Some(secret) => secret,
        None if kept.exists() => config::read_secret(&kept)?,
        None => {
            let text = String::from_utf8_lossy(&base32::encode::<52>(&random::<33>()?)).into_owned();
            config::write_private_file(&kept, &format!("{text}\n"))?;
            made = true;
            Secret::new(&text)?
        }
    };
    if store.claim_secret(secret.fingerprint()).await? {
        return Ok(secret);
    }
    if made {
        std::fs::remove_file(&kept)?;
        bail!(
            "the records in {} belong to a secret that is not there: put it back into {}, or give it with UNIONHALL_SECRET",
            settings.store.database().display(),
            kept.display()
        );
    }
    bail!(
        "the secret is not the one that the records in {} were made with: referral links would change. Give that \
         installation's secret, or another data folder",
        settings.store.database().display()
    )
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

/// SIGHUP reads the certificate and its key again, as after a renewal.
fn reload_on_hangup(tls: Arc<Tls>, log: Log) -> anyhow::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            match tls.reload() {
                Ok(()) => log.note("the certificate was read again"),
                Err(error) => log.problem(None, &format!("the certificate in use stays: {error}")),
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
        log.problem(None, &format!("a mistake in the program at {place}; the request was answered with 500"));
    }));
}
