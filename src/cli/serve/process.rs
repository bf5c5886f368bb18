//! The process and its operating system: the log on standard error, signals, open files, panics.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::app::Core;
use crate::cli::remedy;
use crate::clock::Clock;
use crate::config::{ServeSettings, UnionSettings};
use crate::domain::catalog::Catalog;
use crate::http::connection::tls::Tls;
use crate::log::{Format, Log};
use crate::server::{HttpService, listener};
use crate::supervise;

pub(super) fn start_log(settings: &ServeSettings, clock: Clock) -> std::io::Result<Log> {
    let usual = if std::io::stderr().is_terminal() { Format::Text } else { Format::Json };
    Log::start(settings.log, settings.log_format.unwrap_or(usual), clock, remedy::write, std::io::stderr())
}

/// How often it is looked for counts of requests that nobody else writes down.
const USES_INTERVAL: Duration = Duration::from_secs(20);

/// Writes down how often keys were used, once nobody uses them any more: whoever does writes it down by the way.
pub(super) async fn write_uses(app: Arc<Core>, clock: Clock, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        app.write_uses(false, clock.now().time).await;
        tokio::select! {
            () = tokio::time::sleep(USES_INTERVAL) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Tells systemd that the service is ready, if it asked (sd_notify).
pub(super) fn notify_ready(log: &Log) {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&socket),
    };
    let sent = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address));
    if let Err(error) = sent {
        log.warning(&format!("systemd was not told that the service is ready: {error}"));
    }
}

/// SIGTERM or Ctrl-C.
pub(super) fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// What SIGHUP reads again; what has a mistake leaves what was read before in use.
pub(super) struct Reloaded {
    pub tls: Option<Arc<Tls>>,
    pub union: UnionSettings,
    pub service: Arc<HttpService>,
    /// For mails, which are written outside the service.
    pub mails: watch::Sender<Catalog>,
    /// Whether something had a mistake the last time.
    pub failed: Arc<AtomicBool>,
    pub log: Log,
}

/// SIGHUP reads the certificate with its key again, as after a renewal, and the catalog. Without either there is nothing to
/// read, and a supervisor's "reload" ends nothing.
pub(super) fn reload_on_hangup(reloaded: Reloaded) -> anyhow::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    let reloaded = Arc::new(reloaded);
    supervise::spawn(async move {
        while hangup.recv().await.is_some() {
            let reloaded = Arc::clone(&reloaded);
            // Files may be slow, and the documents take a moment to make: no request waits behind that.
            if tokio::task::spawn_blocking(move || reloaded.read_again()).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

impl Reloaded {
    fn read_again(&self) {
        let Self { tls, union, service, mails, failed, log } = self;
        let mut fails = false;
        match tls.as_ref().map(|tls| tls.reload()) {
            None if union.figures.catalog.is_none() => {
                log.note("there is neither a certificate nor a catalog to read again");
            }
            None => {}
            Some(Ok(())) => log.note("the certificate was read again"),
            Some(Err(error)) => {
                fails = true;
                log.problem(None, &format!("the certificate in use stays: {error}"));
            }
        }
        if union.figures.catalog.is_some() {
            match union.figures.read() {
                Ok(catalog) => {
                    mails.send_replace(catalog.clone());
                    service.show_catalog(catalog);
                    log.note("the catalog was read again");
                }
                Err(error) => {
                    fails = true;
                    log.problem(None, &format!("the catalog in use stays: {error:#}"));
                }
            }
        }
        failed.store(fails, Ordering::Relaxed);
    }
}

/// Each connection is an open file, and the usual soft limit is far below what we serve.
pub(super) fn raise_file_limit(log: &Log) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    // The connections, and some for the database and its readers.
    let needed = listener::CONNECTIONS as u64 + 256;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|soft| soft < needed) {
        limit.current = Some(limit.maximum.map_or(needed, |hard| hard.min(needed)));
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            log.warning(&format!("the limit on open files stays low: {error}"));
        }
    }
}

/// A panic is logged by its place alone: its message might repeat what a caller sent.
pub(super) fn report_panics(log: &Log) {
    let log = log.clone();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        // Straight to where the log goes: the process may end before its thread gets to it. At every level, for it is ours.
        let line = log.error_line(&format!("a bug in the program at {place}"));
        let _gone = std::io::stderr().write_all(line.as_bytes());
    }));
}
