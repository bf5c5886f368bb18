//! Limits that several nodes share through Redis, and what happens while it is slow or away.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hyper::Request;
use serde_json::{Value, json};

use crate::metrics::Watched;
use crate::server::{Connection, Server, block_on, sign_up, unionhall, wait_until};
use unionhall::domain::time::Tick;
use unionhall::limiter::memory::MemoryLimiter;
use unionhall::limiter::redis::{Change, Manner, RedisLimiter, Target};
use unionhall::limiter::{Bucket, Class, Limiter, Scope, Subject};

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// How long anything that must come may take on a busy machine.
pub(super) const SOON: Duration = Duration::from_secs(20);

pub(crate) use super::redis_server::Redis;
use super::redis_server::{Passage, RedisProcess};

/// The Redis of the tests, with a prefix that no other test has.
pub(crate) fn redis_url() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let base = std::env::var("UNIONHALL_TEST_REDIS")
        .expect("UNIONHALL_TEST_REDIS names no Redis: run ./test.sh, which starts one for the tests");
    // Ids of processes come again; the same id at the same time does not.
    let started = std::fs::metadata("/proc/self").unwrap().modified().unwrap();
    let started = started.duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
    format!("{base}?prefix=test-{}-{started}-{}:", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(super) fn home() -> Bucket {
    Bucket { class: Class::Public, subject: Subject::Network(IpAddr::from(HERE).into()) }
}

async fn limits(server: &Server) -> String {
    server.get("/readyz").await.good()["limits"].as_str().unwrap().to_owned()
}

/// A server whose limits are in that Redis, once they are.
async fn sharing(url: &str, flags: &[&str]) -> Watched {
    let server = Watched::start(&[("UNIONHALL_LIMITS", url)], flags);
    wait_until(SOON, async || limits(&server).await == "shared").await;
    server
}

/// How many requests it has decided alone so far. On a busy machine Redis may be late, rightly, and one more is admitted
/// for each time.
async fn fallbacks(server: &Watched) -> usize {
    server.figures().await["unionhall_limits_fallbacks_total"] as usize
}

/// The statuses of so many reads, counted: admitted, refused.
async fn reads(connection: &mut Connection, times: usize) -> (usize, usize) {
    let (mut admitted, mut refused) = (0, 0);
    for _ in 0..times {
        match connection.send(Request::get("/v1/stats"), "").await.status.as_u16() {
            200 => admitted += 1,
            429 => refused += 1,
            other => panic!("{other}"),
        }
    }
    (admitted, refused)
}

#[derive(PartialEq)]
enum Told {
    Lost,
    Back,
}

/// The log tells of each loss once and of each return once, by turns, and lastly of this.
async fn told_once(server: &Server, last: Told) {
    let changes = || -> Vec<bool> {
        let log = server.log();
        let lost = |line: &str| line.contains("the limits are not shared: ");
        log.lines().filter(|line| lost(line) || line.contains("the limits are shared again")).map(lost).collect()
    };
    wait_until(SOON, async || changes().last() == Some(&(last == Told::Lost))).await;
    for (turn, lost) in changes().into_iter().enumerate() {
        assert_eq!(lost, turn % 2 == 0, "{}", server.log());
    }
}

#[test]
fn two_nodes_hold_one_limit() {
    block_on(async {
        let url = redis_url();
        let one = sharing(&url, &[]).await;
        let records = one.data().display().to_string();
        let two = sharing(&url, &["--data", &records, "--mail", "hold"]).await;
        let nodes: [&Server; 2] = [&one, &two];
        let mut connections = [one.connect(HERE).await, two.connect(HERE).await];
        let mut admitted = 0;
        for turn in 0..80 {
            admitted += reads(&mut connections[turn % 2], 1).await.0;
        }
        let late = fallbacks(&one).await + fallbacks(&two).await;
        assert!((60..=60 + late).contains(&admitted), "{admitted} across both, {late} late");
        for node in nodes {
            let over = node.get("/v1/stats").await;
            over.refused(429, "rate_limited");
            let wait: u32 = over.header("retry-after").parse().unwrap();
            assert!((1..=60).contains(&wait), "{wait}");
            let other = node.send_from(Ipv4Addr::new(127, 0, 0, 2), Request::get("/v1/stats"), "").await;
            assert_eq!(other.status, 200, "another address is not touched");
        }

        let key = one.key();
        let mut acted = 0;
        for i in 0..40 {
            let answer = nodes[i % 2].post("/v1/referral-link", &key, sign_up("ana@example.com")).await;
            acted += usize::from(answer.status == 200);
        }
        let late = fallbacks(&one).await + fallbacks(&two).await - late;
        assert!((30..=30 + late).contains(&acted), "{acted} across both, {late} late");
    });
}

#[test]
fn a_local_mcp_server_draws_on_the_same_budget() {
    block_on(async {
        let url = redis_url();
        let server = sharing(&url, &["--public-per-minute", "1"]).await;
        let mut process = unionhall(server.data().parent().unwrap())
            .args(["mcp", "--limits", &url, "--public-per-minute", "1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let params = json!({ "name": "getMemberStats", "arguments": {} });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        writeln!(process.stdin.take().unwrap(), "{call}").unwrap();
        let output = process.wait_with_output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["result"]["structuredContent"]["ok"], true, "{answer}");
        assert!(server.get("/v1/stats").await.status == 429 || fallbacks(&server).await > 0);
    });
}

/// Nodes that disagree on the time by hours, forwards and backwards, still count together.
#[test]
fn clocks_of_nodes_do_not_matter() {
    block_on(async {
        let url = redis_url();
        let hours = |n: u64| Tick::from_micros(n * 3_600_000_000);
        let manner = Manner { timeout: SOON, ..Manner::default() };
        let mut nodes = Vec::new();
        for _ in 0..3 {
            let target = Target::parse(&url).unwrap();
            nodes.push(RedisLimiter::connect(target, manner, MemoryLimiter::new(60), |_| {}).await.unwrap());
        }
        for (node, tick) in [(0, hours(5)), (1, hours(0)), (2, hours(900))] {
            assert!(nodes[node].check(home(), 3, tick).await.admitted);
        }
        for (node, tick) in [(0, hours(10)), (1, hours(1000)), (2, hours(0))] {
            assert!(!nodes[node].check(home(), 3, tick).await.admitted);
        }
        assert!(nodes.iter().all(|node| node.status().scope == Scope::Shared && node.status().fallbacks == 0));
    });
}

#[test]
fn a_redis_that_is_killed_costs_no_request_and_is_found_again() {
    block_on(async {
        let mut redis = Redis::start();
        let server = Arc::new(sharing(&redis.url(), &["--public-per-minute", "100"]).await);
        assert_eq!(server.figures().await["unionhall_limits_shared"], 1.0);
        let mut here = server.connect(HERE).await;
        let admitted = reads(&mut here, 130).await.0;
        let late = fallbacks(&server).await;
        assert!((100..=100 + late).contains(&admitted), "{admitted}, {late} late");

        // Other addresses keep calling throughout; `reads` stops the test at anything but 200 and 429.
        let over = Arc::new(AtomicU32::new(0));
        let mut load = tokio::task::JoinSet::new();
        for client in 0..4 {
            let (server, over) = (Arc::clone(&server), Arc::clone(&over));
            load.spawn(async move {
                let mut connection = server.connect(Ipv4Addr::new(127, 0, 7, client + 1)).await;
                while over.load(Ordering::Relaxed) == 0 {
                    reads(&mut connection, 20).await;
                }
            });
        }
        redis.kill();
        wait_until(SOON, async || limits(&server).await == "local").await;
        let admitted = reads(&mut here, 130).await.0;
        let own = 100_usize.saturating_sub(late)..=100;
        assert!(own.contains(&admitted), "{admitted} by this node's own count, {late} before");
        assert_eq!(server.figures().await["unionhall_limits_shared"], 0.0);
        told_once(&server, Told::Lost).await;
        redis.start_again();
        wait_until(SOON, async || limits(&server).await == "shared").await;
        over.store(1, Ordering::Relaxed);
        load.join_all().await;

        let before = fallbacks(&server).await;
        let admitted = reads(&mut here, 130).await.0;
        let late = fallbacks(&server).await - before;
        // What came late is counted by Redis too, and this node's own count is used up.
        let anew = 100_usize.saturating_sub(late)..=100;
        assert!(anew.contains(&admitted), "the new Redis begins anew: {admitted}, {late} late");
        wait_until(SOON, async || server.figures().await["unionhall_limits_shared"] == 1.0).await;
        told_once(&server, Told::Back).await;
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is measured")]
fn a_redis_that_stands_still_costs_fifty_milliseconds_and_then_nothing() {
    block_on(async {
        let redis = Redis::start();
        let server = sharing(&redis.url(), &["--public-per-minute", "1000"]).await;
        let mut connection = server.connect(HERE).await;
        reads(&mut connection, 10).await;
        redis.signal("STOP");
        let mut times = Vec::new();
        for _ in 0..50 {
            let start = Instant::now();
            assert_eq!(reads(&mut connection, 1).await, (1, 0));
            times.push(start.elapsed());
        }
        // Three at the most wait for Redis; the rest is this machine's own hesitation.
        let waited = times.iter().filter(|time| **time >= Duration::from_millis(50)).count();
        let slow = times.iter().filter(|time| **time >= Duration::from_millis(200)).count();
        assert!(waited <= 6 && slow <= 1, "{times:?}");
        wait_until(SOON, async || limits(&server).await == "local").await;
        told_once(&server, Told::Lost).await;
        assert!(server.log().contains("it does not answer within 50 ms"), "{}", server.log());

        redis.signal("CONT");
        wait_until(SOON, async || limits(&server).await == "shared").await;
        assert_eq!(reads(&mut connection, 5).await, (5, 0));
        told_once(&server, Told::Back).await;
    });
}

/// A limiter on a Redis of the test's own, once it counts there.
pub(super) async fn limiter(redis: &Redis, timeout: Duration) -> RedisLimiter {
    let (target, manner) = (Target::parse(&redis.url()).unwrap(), Manner { timeout, ..Manner::default() });
    let limiter = RedisLimiter::connect(target, manner, MemoryLimiter::new(60), |_| {}).await.unwrap();
    wait_until(SOON, async || limiter.status().scope == Scope::Shared).await;
    limiter
}

/// However many ask at once, none waits longer than it should, and the node's own count is exact.
#[test]
fn a_crowd_before_a_silent_redis_is_let_through_at_once() {
    block_on(async {
        let redis = Redis::start();
        let limiter = Arc::new(limiter(&redis, Duration::from_millis(50)).await);
        let before = limiter.status().fallbacks;
        redis.signal("STOP");
        let mut crowd = tokio::task::JoinSet::new();
        for _ in 0..5000 {
            let limiter = Arc::clone(&limiter);
            crowd.spawn(async move { limiter.check(home(), 70, Tick::from_micros(0)).await.admitted });
        }
        let verdicts = tokio::time::timeout(Duration::from_secs(5), crowd.join_all()).await.expect("at once");
        assert_eq!(verdicts.into_iter().filter(|admitted| *admitted).count(), 70);
        assert_eq!(limiter.status().fallbacks - before, 5000);
    });
}

#[test]
fn a_lost_redis_is_noticed_though_nobody_calls() {
    block_on(async {
        let mut redis = Redis::start();
        let changes = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&changes);
        let tell = move |change| heard.lock().unwrap().push(change);
        let target = Target::parse(&redis.url()).unwrap();
        let limiter = RedisLimiter::connect(target, Manner::default(), MemoryLimiter::new(60), tell).await.unwrap();
        wait_until(SOON, async || limiter.status().scope == Scope::Shared).await;
        changes.lock().unwrap().clear();
        redis.kill();
        wait_until(SOON, async || limiter.status().scope == Scope::Local).await;
        redis.start_again();
        wait_until(SOON, async || limiter.status().scope == Scope::Shared).await;
        assert!(matches!(&changes.lock().unwrap()[..], [Change::Disconnected(_), Change::Shared]));
    });
}

#[test]
fn without_redis_it_starts_and_says_so() {
    block_on(async {
        let mut redis = Redis::start();
        redis.kill();
        let server = Watched::start(&[], &["--limits", &redis.url(), "--public-per-minute", "5"]);
        assert_eq!(limits(&server).await, "local");
        let mut connection = server.connect(HERE).await;
        assert_eq!(reads(&mut connection, 7).await, (5, 2));
        told_once(&server, Told::Lost).await;
        redis.start_again();
        wait_until(SOON, async || limits(&server).await == "shared").await;
        let before = fallbacks(&server).await;
        let admitted = reads(&mut connection, 7).await.0;
        let late = fallbacks(&server).await - before;
        assert!((5_usize.saturating_sub(late)..=5).contains(&admitted), "{admitted}, {late} late");
    });
}

/// What a start that is refused says, without the password.
fn refusal(flags: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = unionhall(folder.path()).args(["serve", "--listen", "127.0.0.1:0"]).args(flags).output().unwrap();
    assert!(!output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!told.contains("hunter2"), "{told}");
    told
}

#[test]
fn what_only_the_operator_can_mend_is_told_at_the_start() {
    block_on(async {
        let redis = Redis::start_with(&["--requirepass", "open sesame"]);
        let right = redis.url().replace("redis://", "redis://:open%20sesame@");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("limits"), format!("{right}\n")).unwrap();
        let file = folder.path().join("limits").display().to_string();
        let server = Server::start_with(&["--limits-file", &file]);
        wait_until(SOON, async || limits(&server).await == "shared").await;

        let wrong = redis.url().replace("redis://", "redis://:hunter2@");
        for url in [&wrong, &redis.url(), &format!("{right}/99")] {
            let told = refusal(&["--limits", url]);
            assert!(told.contains("\"message\":\"Redis refuses us: ") && told.contains("--limits"), "{told}");
        }
        assert!(refusal(&["--limits", "memcached://:hunter2@host"]).contains("write memory:, redis://"));
        assert!(refusal(&["--limits", "redis://:hunter2@host/first"]).contains("Invalid database number"));
        assert!(refusal(&["--limits-file", "nowhere"]).contains("cannot read where requests are counted from nowhere"));
    });
}

#[test]
fn redis_is_reached_over_tls() {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(path("cert"), certified.cert.pem()).unwrap();
        std::fs::write(path("key"), certified.signing_key.serialize_pem()).unwrap();
        let (cert, key) = (path("cert"), path("key"));
        let (_redis, port) = RedisProcess::on_some_port(folder.path(), |port| {
            let port = port.to_string();
            let (files, callers) = (["--tls-cert-file", &cert, "--tls-key-file", &key], ["--tls-auth-clients", "no"]);
            [&["--port", "0", "--tls-port", &port][..], &files, &callers].concat().into_iter().map(str::to_owned).collect()
        });
        let url = format!("rediss://localhost:{port}");
        let trusted = [("UNIONHALL_LIMITS", url.as_str()), ("SSL_CERT_FILE", &cert)];
        let server = Watched::start(&trusted, &["--public-per-minute", "5"]);
        wait_until(SOON, async || limits(&server).await == "shared").await;
        let admitted = reads(&mut server.connect(HERE).await, 20).await.0;
        let late = fallbacks(&server).await;
        assert!((5..=5 + late).contains(&admitted), "{admitted}, {late} late");

        let stranger = Server::start_with_env(&[("UNIONHALL_LIMITS", &url)], &[]);
        assert_eq!(limits(&stranger).await, "local", "a certificate that nobody vouches for is not trusted");
    });
}

/// A Redis that is late for eight calls, after a limit is spent.
#[test]
fn a_late_redis_lets_nobody_past_the_limit() {
    block_on(async {
        let redis = Redis::start();
        let server = sharing(&redis.url(), &[]).await;
        let key = server.key();
        let mut admitted = 0;
        for i in 0..60 {
            match i {
                31 => redis.link.set(Passage::Late(Duration::from_millis(60))),
                40 => redis.link.set(Passage::Open),
                _ => {}
            }
            let answer = server.post("/v1/referral-link", &key, sign_up("ana@example.com")).await;
            admitted += usize::from(answer.status == 200);
        }
        assert_eq!(admitted, 30);
    });
}
