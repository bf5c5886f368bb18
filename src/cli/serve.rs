//! `unionhall serve`

use std::io::IsTerminal;
use std::sync::Arc;

use anyhow::{Context, bail};
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
use crate::transport::{Edge, server};

pub(super) fn run(settings: &ServeSettings) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(settings))
}

async fn serve(settings: &ServeSettings) -> anyhow::Result<()> {
    let union = &settings.union;
    let catalog = union.catalog()?;
    let given = settings.given_secret()?;
    let listener = TcpListener::bind(union.listen).await.with_context(|| {
        format!("cannot listen on {}; another service may be using it: choose another with --listen", union.listen)
    })?;
    let listening = listener.local_addr()?;
    let store = open_store(&settings.store, true)?;
    let secret = claim_secret(settings, given, &*store).await?;
    let base_url = union.base_url(listening);
    let format = if std::io::stderr().is_terminal() { Format::Human } else { Format::Json };
    let log = Log::start(settings.log, format, std::io::stderr())?;
    report_panics(&log);

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
    say(&format!("unionhall listens on http://{listening}"))?;
    server::serve(listener, edge, stop).await;
    let closed = store.close().await;
    log.close();
    closed.context("the store did not close cleanly")
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

/// A panic is logged by its place alone: its message might repeat what a caller sent.
fn report_panics(log: &Log) {
    let log = log.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        log.problem(None, &format!("a mistake in the program at {place}; the request was answered with 500"));
    }));
}
