//! The figures for the operator's monitoring, read as a monitoring system reads them.

use std::ops::Deref;

use crate::prelude::*;
use tokio::sync::OnceCell;

/// A server whose metrics can be read.
pub(crate) struct Watched {
    server: Server,
    metrics: OnceCell<SocketAddr>,
}

impl Deref for Watched {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Watched {
    pub(crate) fn start(variables: &[(&str, &str)], flags: &[&str]) -> Self {
        let variables = [variables, &[("UNIONHALL_METRICS_LISTEN", "127.0.0.1:0")]].concat();
        Self::of(Server::start_with_env(&variables, flags))
    }

    pub(crate) fn with_key(flags: &[&str]) -> (Self, String) {
        let server = Self::start(&[], flags);
        let key = server.key();
        (server, key)
    }

    /// One that was started with a listener for its metrics.
    pub(crate) fn of(server: Server) -> Self {
        Self { server, metrics: OnceCell::new() }
    }

    /// Where its metrics are, as its log says.
    async fn metrics(&self) -> SocketAddr {
        let told = |log: &str| log.split("metrics are at http://").nth(1)?.split("/metrics").next()?.parse().ok();
        let read = async {
            wait_for!(async || told(&self.log()).is_some()).await;
            told(&self.log()).unwrap()
        };
        *self.metrics.get_or_init(|| read).await
    }

    /// Every series with its figure; stops the test where the page is not what Prometheus takes.
    pub(crate) async fn figures(&self) -> BTreeMap<String, f64> {
        read(&self.page().await)
    }

    pub(crate) async fn page(&self) -> String {
        let answer = ask(self.metrics().await, "GET /metrics").await;
        let (head, page) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        assert!(head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"), "{head}");
        page.to_owned()
    }
}

/// Sends a bare request and gives everything that comes back.
async fn ask(address: SocketAddr, line: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Reads a page by the rules of the format: each name is described once, before its series, which stand together; no
/// series comes twice; histograms add up.
fn read(page: &str) -> BTreeMap<String, f64> {
    assert!(page.ends_with('\n'));
    let (mut figures, mut described, mut current) = (BTreeMap::new(), BTreeSet::new(), (String::new(), String::new()));
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(described.insert(name.to_owned()) && !text.is_empty(), "{line}");
            let kind = lines.next().and_then(|next| next.strip_prefix(&format!("# TYPE {name} "))).unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            current = (name.to_owned(), kind.to_owned());
            continue;
        }
        let (series, figure) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        let suffix = name.strip_prefix(&current.0).unwrap_or_else(|| panic!("{line} belongs to no description"));
        let suffixes: &[_] = if current.1 == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(suffixes.contains(&suffix), "{line}");
        if let Some(labels) = series.strip_prefix(name).filter(|labels| !labels.is_empty()) {
            let labels = labels.strip_prefix('{').and_then(|labels| labels.strip_suffix("\"}")).unwrap();
            for label in labels.split("\",") {
                let (name, value) = label.split_once("=\"").unwrap();
                assert!(name.bytes().all(|byte| byte.is_ascii_lowercase()), "{line}");
                assert!(!value.contains(['"', '\\', '\n']), "{line}");
            }
        }
        assert!(figures.insert(series.to_owned(), figure.parse::<f64>().unwrap()).is_none(), "{series} comes twice");
    }
    for (series, count) in &figures {
        let labelled = series.strip_suffix('}').and_then(|series| series.split_once("_count{"));
        let bare = series.strip_suffix("_count").map(|name| (name, ""));
        if let Some((name, labels)) = labelled.or(bare) {
            let comma = if labels.is_empty() { "" } else { "," };
            let buckets: Vec<_> = page
                .lines()
                .filter(|line| line.starts_with(&format!("{name}_bucket{{{labels}{comma}le=")))
                .map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap())
                .collect();
            assert!(buckets.len() > 1 && buckets.is_sorted() && buckets.last() == Some(count), "{series}: {buckets:?}");
        }
    }
    figures
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_is_counted() {
    let server = Watched::start(&[], &["--public-per-minute", "3"]);
    let first = server.figures().await;
    let build = format!("unionhall_build_info{{version=\"{}\",revision=", env!("CARGO_PKG_VERSION"));
    assert!(first.iter().any(|(series, figure)| series.starts_with(&build) && *figure == 1.0), "{first:?}");
    for series in [
        "unionhall_requests_total{route=\"/v1/invite\",status=\"500\"}",
        "unionhall_request_duration_seconds_count{route=\"/v1/invite\"}",
        "unionhall_sign_ups_total{partner=\"(form)\"}",
        "unionhall_mail_reports_total{kind=\"complaint\",partner=\"(form)\"}",
        "unionhall_requests_paused_total",
        "unionhall_last_backup_timestamp_seconds",
    ] {
        assert_eq!(first.get(series), Some(&0.0), "{series} is there before its first event: {first:#?}");
    }

    let key = server.key();
    let mut open = server.connect(Ipv4Addr::LOCALHOST).await;
    for _ in 0..5 {
        open.send(Request::get("/v1/stats"), "").await;
    }
    server.get("/v1/nothing").await.refused(404, serde_json::Value::Null);
    server.get("/confirm/a-token-that-is-nobodys").await;
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    server.post("/v1/invite", "wrong", "").await.refused(401, "agent_unauthorized");
    wait_for!(async || { server.figures().await["unionhall_mail_total{outcome=\"sent\"}"] == 1.0 }).await;

    let figures = server.figures().await;
    for (series, figure) in [
        ("unionhall_requests_total{route=\"/v1/stats\",status=\"200\"}", 3.0),
        ("unionhall_requests_total{route=\"/v1/stats\",status=\"429\"}", 2.0),
        ("unionhall_requests_total{route=\"/v1/invite\",status=\"200\"}", 1.0),
        ("unionhall_requests_total{route=\"/v1/invite\",status=\"401\"}", 1.0),
        ("unionhall_requests_total{route=\"(none)\",status=\"404\"}", 1.0),
        ("unionhall_requests_total{route=\"/confirm/{token}\",status=\"404\"}", 1.0),
        ("unionhall_request_duration_seconds_count{route=\"/v1/stats\"}", 5.0),
        ("unionhall_rate_limited_total{class=\"public\"}", 2.0),
        ("unionhall_rate_limited_total{class=\"action\"}", 0.0),
        ("unionhall_requests_in_flight", 0.0),
        ("unionhall_limits_shared", if server.records().limits() == "shared" { 1.0 } else { 0.0 }),
        ("unionhall_limits_fallbacks_total", 0.0),
        ("unionhall_store_errors_total", 0.0),
        ("unionhall_mail_failing", 0.0),
        ("unionhall_mail_deferred_total", 0.0),
        ("unionhall_ready", 1.0),
        ("unionhall_sign_ups_paused", 0.0),
        ("unionhall_store_up", 1.0),
        ("unionhall_members", 0.0),
        ("unionhall_writer_queue", 0.0),
        ("unionhall_log_lines_dropped_total", 0.0),
    ] {
        assert_eq!(figures.get(series), Some(&figure), "{series}: {figures:#?}");
    }
    assert!(figures["unionhall_connections"] >= 1.0, "one is open");
    let took = figures["unionhall_request_duration_seconds_sum{route=\"/v1/stats\"}"];
    assert!(took > 0.0 && took < 60.0, "{took}");
    assert!(figures["unionhall_writer_batch_size_count"] >= 1.0, "the sign-up was committed");
    for (figure, least, most) in [
        ("process_resident_memory_bytes", 1e6, 1e10),
        ("process_open_fds", 5.0, figures["process_max_fds"]),
        ("process_cpu_seconds_total", 0.0, 600.0),
        ("process_start_time_seconds", 1.7e9, 1e11),
        ("unionhall_disk_free_bytes", 1.0, figures["unionhall_disk_size_bytes"]),
        ("unionhall_database_bytes", 1e5, 1e9),
    ] {
        assert!((least..most).contains(&figures[figure]), "{figure}: {}", figures[figure]);
    }
    assert!(!figures.keys().any(|series| series.contains("nobodys") || series.contains("nothing")));
}

#[tokio::test(flavor = "multi_thread")]
async fn members_and_the_last_backup_are_told() {
    let (server, key) = Watched::with_key(&["--mail", "hold", "--backup-every", "15m"]);
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    let figures = server.figures().await;
    assert_eq!((figures["unionhall_members"], figures["unionhall_outbox_waiting"]), (0.0, 1.0), "not yet");
    server.confirm(server.number("SELECT id FROM sign_ups")).await;
    assert_eq!(server.figures().await["unionhall_members"], 1.0);

    let told = server.run(&["backup", "--done"]);
    assert!(told.starts_with("Recorded: a backup was made at 20"), "{told}");
    let figures = server.figures().await;
    assert!(figures["unionhall_last_backup_timestamp_seconds"] > 1.7e9);
    assert_eq!(figures["unionhall_backup_interval_seconds"], 900.0);
    assert!(server.run(&["audit"]).contains("made with other tools"));
}

/// What the operator wants is no fault.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_told_from_faults() {
    let (server, key) = Watched::with_key(&["--mail", "hold"]);
    server.run(&["signups", "pause"]);
    wait_for!(async || { server.post("/v1/invite", &key, sign_up("ana@example.com")).await.status == 500 }).await;
    let form = Request::post("/join").header("content-type", "application/x-www-form-urlencoded");
    let form = server.send(form.header("sec-fetch-site", "same-origin"), "email=ben%40example.com").await;
    assert_eq!(form.status, 500);
    let figures = server.figures().await;
    let of_route = |route: &str| figures[&format!("unionhall_requests_total{{route=\"{route}\",status=\"500\"}}")];
    let all = of_route("/v1/invite") + of_route("/join");
    assert_eq!((all, figures["unionhall_requests_paused_total"]), (2.0, 2.0), "{figures:#?}");
    assert_eq!(figures["unionhall_sign_ups_paused"], 1.0);
}

/// Monitoring takes a counter that falls for a restart, and sees a burst.
#[tokio::test(flavor = "multi_thread")]
async fn no_counter_ever_falls() {
    let (server, key) = Watched::with_key(&["--mail", "hold"]);
    let mut highest = BTreeMap::<String, f64>::new();
    let mut look = async |what: &str| {
        let figures = server.figures().await;
        for (series, before) in &highest {
            let now = figures.get(series).copied().unwrap_or(-1.0);
            assert!(now >= *before, "{what}: {series} fell from {before} to {now}");
        }
        highest = figures.into_iter().filter(|(series, _)| series.contains("_total")).collect();
    };
    for name in ["ana", "ben", "cleo"] {
        server.post("/v1/invite", &key, sign_up(&format!("{name}@example.com"))).await.good();
        look(name).await;
    }
    server.confirm(1).await;
    look("confirmed").await;
    // Within the minute, before the sign-up is rolled up.
    for name in ["ana", "ben"] {
        server.run(&["members", "erase", &format!("{name}@example.com")]);
        look("erased").await;
    }
    server.decline(3).await;
    look("declined").await;
    server.confirm(3).await;
    look("taken back").await;
    let count = server.figures().await["unionhall_sign_ups_total{partner=\"Acme Assistant\"}"];
    assert_eq!(count, 3.0);
    let listed = server.json(&["keys", "list", "--json"]);
    assert_eq!(listed[0]["signUps"], 3);
}

/// A store that keeps no writes, and one that answers nothing: the page is there all the same, in time.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_hangs_or_is_away_keeps_no_reader_waiting() {
    let server = Watched::start(&[], &[]);
    assert_eq!(server.figures().await["unionhall_ready"], 1.0);
    let held = server.hold();
    // What was shown is believed for a second.
    wait_for!(async || server.figures().await["unionhall_ready"] == 0.0).await;
    // The store is held all the while.
    let figures = in_time("the page", server.figures()).await;
    assert_eq!((figures["unionhall_ready"], figures["unionhall_store_up"]), (0.0, 1.0), "reading goes on");
    assert!(!figures.contains_key("unionhall_sign_ups_paused"), "nobody knows");
    drop(held);
    wait_for!(async || server.figures().await["unionhall_ready"] == 1.0).await;

    server.execute("DROP TABLE installation");
    assert_eq!(server.get("/v1/stats").await.status, 503);
    let figures = server.figures().await;
    assert!(figures["unionhall_store_errors_total"] >= 1.0);
    assert_eq!(figures["unionhall_store_up"], 0.0);
    for unknown in ["unionhall_members", "unionhall_outbox_waiting", "unionhall_mail_reports_total"] {
        assert!(!figures.keys().any(|series| series.starts_with(unknown)), "{unknown}: {figures:#?}");
    }
    for known in ["unionhall_writer_queue", "unionhall_connections", "process_open_fds"] {
        assert!(figures.contains_key(known), "{known}");
    }
}

mod once {
    use super::*;
    use crate::records::Home;

    #[tokio::test(flavor = "multi_thread")]
    async fn there_is_nothing_else_there_and_nothing_of_it_elsewhere() {
        let server = Watched::start(&[], &[]);
        let metrics = server.metrics().await;
        assert!(ask(metrics, "GET /v1/stats").await.starts_with("HTTP/1.1 404 "));
        assert!(ask(metrics, "POST /metrics").await.starts_with("HTTP/1.1 405 "));
        let head = ask(metrics, "HEAD /metrics").await;
        assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
        assert_eq!(server.get("/metrics").await.status, 404, "callers do not see it");
        // Readers who never ask keep others waiting no longer than their patience.
        let mut silent = Vec::new();
        for _ in 0..20 {
            silent.push(TcpStream::connect(metrics).await.unwrap());
        }
        drop(silent.split_off(8));
        server.figures().await;
    }

    #[test]
    fn an_address_that_is_taken_is_told() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = taken.local_addr().unwrap().to_string();
        let folder = tempfile::tempdir().unwrap();
        let output = unionhall(folder.path())
            .args(["serve", "--listen", "127.0.0.1:0", "--metrics-listen", &address])
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(told.contains("is taken by another program; choose another address with --metrics-listen"), "{told}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn writes_that_wait_are_counted_and_then_how_they_shared_a_commit() {
        let (server, key) = Watched::with_key(&["--mail", "hold", "--key-per-minute", "1000"]);
        let before = server.figures().await;
        let held = server.hold();
        let mut posts = tokio::task::JoinSet::new();
        // The writer may take the first ones together, and gives up what it cannot write: those that come meanwhile wait.
        let mut numbers = 0..;
        wait_for!(async || {
            for n in numbers.by_ref().take(20) {
                let mut connection = server.connect(Ipv4Addr::LOCALHOST).await;
                let post = Request::post("/v1/invite").header("authorization", format!("Bearer {key}"));
                posts.spawn(async move { connection.send(post, sign_up(&format!("p{n}@example.com"))).await });
            }
            server.figures().await["unionhall_writer_queue"] >= 10.0
        })
        .await;
        drop(held);
        let written = posts.join_all().await.iter().filter(|answer| answer.status == 200).count();
        let after = server.figures().await;
        let grown = |series: &str| after[series] - before[series];
        assert!(grown("unionhall_writer_batch_size_sum") >= written.max(10) as f64, "{after:#?}");
        let small = grown("unionhall_writer_batch_size_bucket{le=\"8\"}");
        assert!(grown("unionhall_writer_batch_size_count") > small, "one was larger: {after:#?}");
        assert_eq!(after["unionhall_writer_queue"], 0.0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn connections_to_the_database_are_counted_by_what_they_are_for() {
        needs!(Postgres, Redis);
        let flags = ["--metrics-listen", "127.0.0.1:0"];
        let sqlite = Watched::of(Server::start_in(Home::new(), &flags));
        let postgres = Watched::of(Server::start_in(Home::on_postgres(tempfile::tempdir().unwrap()), &flags));
        for (server, pools) in
            [(&sqlite, &["readers"][..]), (&postgres, &["sign_ups", "confirmations", "count", "rest"])]
        {
            server.get("/v1/stats").await.good();
            let figures = server.figures().await;
            let figure = |name: &str, labels: &str| figures.get(&format!("unionhall_{name}{{{labels}}}")).copied();
            for pool in pools {
                let of = |state: &str| figure("pool_connections", &format!("pool=\"{pool}\",state=\"{state}\""));
                let open = of("busy").unwrap() + of("idle").unwrap();
                let most = figure("pool_connections_max", &format!("pool=\"{pool}\"")).unwrap();
                assert!(open <= most && most >= 1.0, "{pool}: {open} of {most}");
                assert!(open >= 1.0 || ["sign_ups", "confirmations"].contains(pool), "{pool} was used");
                let waiting = figure("pool_waiting", &format!("pool=\"{pool}\""));
                assert_eq!(waiting, (*pool != "readers").then_some(0.0));
            }
            let all = figures.keys().filter(|series| series.starts_with("unionhall_pool_connections_max")).count();
            assert_eq!(all, pools.len());
        }
    }
}
