//! `GET /metrics`, on a listener of its own: figures are for the operator's monitoring and not for callers.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::listener::REFUSED_PAUSE;
use super::{FoundProblems, HttpService, NodeResources, process_figures, routes};
use crate::app::{BATCH_ENDS, Core, MailFigures, RecordFigures, SourceTotals, StoreFigures};
use crate::domain::health::{Health, MailState, Scope};
use crate::domain::mail::budget::FORM;
use crate::domain::time::{Tick, Timestamp};
use crate::limiter::Class;
use crate::mail::Delivery;
use crate::metrics::{Exposition, Kind, Requests};

/// Readers at once; the next ones wait in the kernel's queue.
const READERS: usize = 8;

/// How long one reader may take, from its connection to its end.
const READER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the store may take to show that it keeps writes, for whoever waits behind others who ask too.
const READY_TIMEOUT: Duration = Duration::from_millis(2500);

/// And how long the look at everything may take; later, nothing is written of it.
const FINDINGS_TIMEOUT: Duration = Duration::from_secs(4);

/// What is counted where somebody reads the metrics.
pub(super) struct WatchedRequests {
    pub requests: Requests,
    /// Refused because the operator paused sign-ups.
    pub paused: AtomicU64,
    resources: NodeResources,
}

impl WatchedRequests {
    pub(super) fn new(resources: NodeResources) -> Self {
        Self { requests: Requests::new(routes::names()), paused: AtomicU64::new(0), resources }
    }
}

/// Serves for as long as the process runs: the end of it is watched too.
pub async fn serve(listener: TcpListener, service: Arc<HttpService>) {
    let places = Arc::new(Semaphore::new(READERS));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                service.app.log.problem(None, &format!("a reader of the metrics could not be taken in: {error}"));
                tokio::time::sleep(REFUSED_PAUSE).await;
                continue;
            }
        };
        let service = Arc::clone(&service);
        tokio::spawn(async move {
            let page = service_fn(|request| {
                let service = &service;
                async move { Ok::<_, Infallible>(answer(service, &request).await) }
            });
            let reading = http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), page);
            // How a connection ends is its peer's affair.
            let _peers_affair = tokio::time::timeout(READER_TIMEOUT, reading).await;
            drop(place);
        });
    }
}

async fn answer(service: &HttpService, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let plain = |status, text: String| {
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(Exposition::CONTENT_TYPE));
        response
    };
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "There is only /metrics here.\n".to_owned());
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "Use GET.\n".to_owned());
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    plain(StatusCode::OK, page(service).await)
}

/// A store that hangs or is away leaves its figures out, after a moment: the rest is told all the same.
async fn page(service: &HttpService) -> String {
    let (app, now, mut page) = (&service.app, service.clock.now(), Exposition::default());
    let found = tokio::time::timeout(FINDINGS_TIMEOUT, service.find_problems(now));
    let (records, health, found) = tokio::join!(app.record_figures(), health(app, now.tick), found);
    page.begin("build_info", Kind::Gauge, "The program that runs.");
    let (version, revision) = (env!("CARGO_PKG_VERSION"), env!("UNIONHALL_REVISION"));
    page.line("", &[("version", version), ("revision", revision)], 1);
    let is_ready = u8::from(health.is_some_and(|health| health.not_ready.is_none()));
    page.gauge("ready", "1 while the store keeps writes, as /readyz says.", is_ready);
    if let Some(paused) = health.and_then(|health| health.are_sign_ups_paused) {
        page.gauge("sign_ups_paused", "1 while the operator takes no sign-ups.", u8::from(paused));
    }
    if let Ok(Some(found)) = found {
        write_findings(&found, &mut page);
    }
    if let Some(watched) = &service.watched {
        watched.requests.write(&mut page);
        let help = "Requests refused with a 5xx because the operator paused sign-ups; in requests_total, too.";
        let paused = watched.paused.load(Ordering::Relaxed);
        page.counter("requests_paused_total", help, paused);
        watched.resources.write(&mut page);
    }
    let in_flight = service.in_flight.load(Ordering::Relaxed);
    page.gauge("requests_in_flight", "Requests under way.", in_flight);
    let connections = service.connections.load(Ordering::Relaxed);
    page.gauge("connections", "Open connections.", connections);
    write_limits(app, &mut page);
    page.gauge("store_up", "1 while the store answers what is asked here.", u8::from(records.is_some()));
    page.counter("store_errors_total", "Times that the store failed a request.", app.store_errors());
    write_store(&app.store_figures(), &mut page);
    write_mail(app, &mut page);
    write_webhooks(app, &mut page);
    if let Some(RecordFigures { members, mail, sources, last_backup, bytes }) = records {
        page.gauge("members", "Members of the union, over all nodes.", members);
        if let Some(bytes) = bytes {
            page.gauge("database_bytes", "Size of the database.", bytes);
        }
        let help = "When the last backup was made that unionhall knows of, in seconds since 1970; 0: none.";
        let last_backup = last_backup.map_or(0, |at| at.as_millis() / 1000);
        page.gauge("last_backup_timestamp_seconds", help, last_backup);
        write_sources(sources, &mut page);
        write_outbox(&mail, now.time, &mut page);
    }
    let dropped = app.log.lines_dropped();
    page.counter("log_lines_dropped_total", "Lines that the log's reader was too slow for.", dropped);
    process_figures::write(service.started, &mut page);
    page.into_text()
}

/// Sources with series of their own, the form and the first partners; those that came later are one together. None ever changes
/// its place: a counter would fall.
const SOURCES: usize = 201;

fn write_sources(mut sources: Vec<SourceTotals>, page: &mut Exposition) {
    let others = sources.split_off(SOURCES.min(sources.len()));
    if !others.is_empty() {
        let mut together = SourceTotals { source: "(others)".to_owned(), ..SourceTotals::default() };
        others.iter().for_each(|other| together += other);
        sources.push(together);
    }
    let partner = |totals: &'_ SourceTotals| match totals.source.as_str() {
        FORM => "(form)".to_owned(),
        partner => partner.to_owned(),
    };
    let mut series = |name, help, figure: fn(&SourceTotals) -> u64| {
        page.begin(name, Kind::Counter, help);
        page.series("partner", sources.iter().map(|totals| (partner(totals), figure(totals))));
    };
    series("sign_ups_total", "Sign-ups, by the partner that made them, over all nodes.", |totals| totals.signed_up);
    series("confirmations_total", "People who became members, by partner.", |totals| totals.confirmed);
    series("declines_total", "Sign-ups that people declined, by partner.", |totals| totals.declined);
    let help = "What mail servers and services reported of mail, by kind and by the partner that asked for it.";
    page.begin("mail_reports_total", Kind::Counter, help);
    for totals in &sources {
        for (kind, count) in [
            ("hard_bounce", totals.hard_bounces),
            ("soft_bounce", totals.soft_bounces),
            ("complaint", totals.complaints),
        ] {
            page.line("", &[("kind", kind), ("partner", &partner(totals))], count);
        }
    }
}

async fn health(app: &Core, now: Tick) -> Option<Health> {
    tokio::time::timeout(READY_TIMEOUT, app.health(None, now)).await.ok()
}

/// What the operator's page shows under "Needs attention", counted by check and grade.
fn write_findings(found: &FoundProblems, page: &mut Exposition) {
    let mut counts: BTreeMap<_, u64> = BTreeMap::new();
    for finding in &*found.findings {
        *counts.entry((finding.check, finding.grade.name())).or_default() += 1;
    }
    page.begin("findings", Kind::Gauge, "What needs attention, as the operator's page shows it.");
    for ((check, grade), count) in counts {
        page.line("", &[("check", check), ("grade", grade)], count);
    }
}

fn write_limits(app: &Core, page: &mut Exposition) {
    page.begin("rate_limited_total", Kind::Counter, "Requests and tool calls refused by a limit, by its class.");
    page.series("class", Class::ALL.map(|class| (class.name(), app.rate_limited(class))));
    let limits = app.limiter_status();
    let shared = u8::from(limits.scope == Scope::Shared);
    page.gauge("limits_shared", "1 while limits are counted with the other nodes.", shared);
    let help = "Requests decided by this node alone because Redis was late or away.";
    page.counter("limits_fallbacks_total", help, limits.fallbacks);
}

/// How this node writes, and its connections to the database.
fn write_store(store: &StoreFigures, page: &mut Exposition) {
    let StoreFigures { writer, pools } = store;
    page.gauge("writer_queue", "Writes that wait for the next commit.", writer.waiting);
    page.begin("writer_batch_size", Kind::Histogram, "Writes that shared a commit.");
    page.histogram(&[], BATCH_ENDS.iter().map(|end| *end as f64), &writer.batches, writer.jobs);
    page.begin("pool_connections", Kind::Gauge, "Connections to the database, by what they are for.");
    for pool in pools {
        page.line("", &[("pool", pool.name), ("state", "busy")], pool.busy);
        page.line("", &[("pool", pool.name), ("state", "idle")], pool.idle);
    }
    page.begin("pool_connections_max", Kind::Gauge, "Connections to the database that there may be.");
    page.series("pool", pools.iter().map(|pool| (pool.name, pool.most)));
    page.begin("pool_waiting", Kind::Gauge, "Units of work that wait for a connection to the database.");
    page.series("pool", pools.iter().filter_map(|pool| Some((pool.name, pool.waiting?))));
}

/// What this node sends.
fn write_webhooks(app: &Core, page: &mut Exposition) {
    let help = "Attempts to tell a partner's endpoint, by what became of them.";
    page.begin("webhook_attempts_total", Kind::Counter, help);
    page.series("outcome", app.webhooks.counts());
}

fn write_mail(app: &Core, page: &mut Exposition) {
    let Delivery::Sent(mail) = &app.mail else { return };
    page.begin("mail_total", Kind::Counter, "Mail that left the outbox, by how.");
    page.series("outcome", mail.counts());
    page.counter("mail_deferred_total", "Times that a mail did not go and was put off.", mail.deferred());
    page.counter("mail_held_total", "Mail that was held because its source had its share of the day.", mail.held());
    let failing = u8::from(app.mail.state() == MailState::Failing);
    page.gauge("mail_failing", "1 while mail does not go and is tried again.", failing);
}

/// What is in the outbox of all nodes.
fn write_outbox(figures: &MailFigures, now: Timestamp, page: &mut Exposition) {
    page.gauge("outbox_waiting", "Mail that waits to be sent, over all nodes; counted up to 10,000.", figures.waiting);
    let help = "How much of the mail that waits is about campaigns; counted up to 10,000.";
    page.gauge("outbox_waiting_about_campaigns", help, figures.about_campaigns);
    let age = figures.oldest.map_or(0, |oldest| now.since(oldest).as_secs());
    page.gauge(
        "outbox_oldest_seconds",
        "How long the oldest mail that waits has waited, of those that were counted.",
        age,
    );
    page.gauge("outbox_held", "Mail that is held until the operator decides; counted up to 10,000.", figures.held);
}
