//! Limits that several nodes share through Redis, and what happens while it is slow or away.
//!
//! On a busy machine Redis may be late at any time, and a node then decides alone, as it should. So nothing here says how often
//! that happens. One node never passes a limit for it; of several, each request that was decided alone may be one too many.

use std::io::Read;

pub(crate) use super::redis_server::Redis;
use super::redis_server::{Passage, RedisProcess};
use crate::limits::Tally;
use crate::prelude::*;
use unionhall::limiter::redis::Change;
use unionhall::limiter::{Bucket, Class, Subject};

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

const LATE: Passage = Passage::Late(Duration::from_millis(60));

/// The Redis of the tests, with a prefix that no other test has.
pub(crate) fn redis_url() -> String {
    let base = std::env::var("UNIONHALL_TEST_REDIS")
        .expect("UNIONHALL_TEST_REDIS names no Redis: run ./test.sh, which starts one for the tests");
    format!("{base}?prefix={}", own_prefix())
}

/// What no other test's keys begin with.
pub(super) fn own_prefix() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Ids of processes come again; the same id at the same time does not.
    let started = std::fs::metadata("/proc/self").unwrap().modified().unwrap();
    let started = started.duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
    format!("test-{}-{started}-{}:", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(super) fn home() -> Bucket {
    Bucket { class: Class::Public, subject: Subject::Network(IpAddr::from(HERE).into()) }
}

async fn limits(server: &Server) -> String {
    server.get("/readyz").await.good()["limits"].as_str().unwrap().to_owned()
}

async fn counts(server: &Server, scope: Scope) {
    let what = format!("/readyz shows that limits are {}", scope.name());
    until(&what, async || limits(server).await == scope.name()).await;
}

/// A server whose limits are in that Redis, once they are.
async fn sharing(url: &str, flags: &[&str]) -> Watched {
    let server = Watched::start(&[("UNIONHALL_LIMITS", url)], flags);
    counts(&server, Scope::Shared).await;
    server
}

/// So many nodes on the same records, with their limits in that Redis.
async fn sharing_records(nodes: usize, url: &str) -> Vec<Watched> {
    let mut servers = vec![sharing(url, &[]).await];
    let records = servers[0].data().display().to_string();
    for _ in 1..nodes {
        servers.push(sharing(url, &["--data", &records, "--mail", "hold"]).await);
    }
    servers
}

/// How many requests it has decided alone so far.
async fn fallbacks(server: &Watched) -> usize {
    server.figures().await["unionhall_limits_fallbacks_total"] as usize
}

async fn all_fallbacks(servers: &[Watched]) -> usize {
    let mut all = 0;
    for server in servers {
        all += fallbacks(server).await;
    }
    all
}

async fn act(server: &Server, key: &str) -> Answer {
    server.post("/v1/referral-link", key, sign_up("ana@example.com")).await
}

async fn read(connection: &mut Connection) -> Answer {
    connection.send(Request::get("/v1/stats"), "").await
}

fn is_admitted(answer: &Answer) -> bool {
    match answer.status.as_u16() {
        200 => true,
        429 => false,
        other => panic!("{other}: {answer:?}"),
    }
}

/// Asks the nodes in turns until each refuses one after the other; notes what each answered, and all of them.
async fn in_turns_until_refused(own: &mut [Tally], all: &mut Tally, mut ask: impl AsyncFnMut(usize) -> Answer) {
    let (nodes, mut refused) = (own.len(), 0);
    for turn in 0..10_000 {
        let node = turn % nodes;
        let answer = all.note(own[node].note(ask(node), is_admitted), is_admitted).await;
        refused = if is_admitted(&answer) { 0 } else { refused + 1 };
        if refused == nodes {
            return;
        }
    }
    panic!("none of 10,000 requests was refused by every node");
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
    let what = if last == Told::Lost { "the log tells of the loss" } else { "the log tells of the return" };
    until(what, async || changes().last() == Some(&(last == Told::Lost))).await;
    for (turn, lost) in changes().into_iter().enumerate() {
        assert_eq!(lost, turn % 2 == 0, "{}", server.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_hold_one_limit() {
    needs!(Redis);
    let nodes = sharing_records(2, &redis_url()).await;
    let key = nodes[0].key();
    let mut connections = [nodes[0].connect(HERE).await, nodes[1].connect(HERE).await];
    let tallies = |limit| ([Tally::of(limit), Tally::of(limit)], Tally::of(limit));
    let mut late = all_fallbacks(&nodes).await;
    for (limit, actions) in [(60, false), (30, true)] {
        let (mut own, mut all) = tallies(limit);
        in_turns_until_refused(&mut own, &mut all, async |node| {
            if actions { act(&nodes[node], &key).await } else { read(&mut connections[node]).await }
        })
        .await;
        let alone = all_fallbacks(&nodes).await - late;
        late += alone;
        let most = all.most_in_a_minute();
        assert!(most <= limit + alone, "{most} across both, {alone} decided alone");
        assert!(all.fewest_at_a_refusal().unwrap() >= limit, "{all:?}");
        assert!(own.iter().all(|own| own.most_in_a_minute() <= limit), "{own:?}");
    }
    for node in &nodes {
        let over = node.get("/v1/stats").await;
        if over.status == 429 {
            let wait: u32 = over.header("retry-after").parse().unwrap();
            assert!((1..=60).contains(&wait), "{wait}");
        }
        let other = node.send_from(Ipv4Addr::new(127, 0, 0, 2), Request::get("/v1/stats"), "").await;
        assert_eq!(other.status, 200, "another address is not touched");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_mcp_server_draws_on_the_same_budget() {
    needs!(RedisServer);
    let redis = Redis::start();
    for _ in 0..10 {
        let prefix = own_prefix();
        let url = format!("{}?prefix={prefix}", redis.url());
        let server = sharing(&url, &["--public-per-minute", "1"]).await;
        let began = Instant::now();
        call_tool(&server, &["--limits", &url, "--public-per-minute", "1"]);
        // One that found Redis late at its start counted alone: it says nothing of a shared budget.
        let key = format!("{prefix}v2:public:127.0.0.1");
        if !redis.link.asked().concat().contains(&key) {
            continue;
        }
        let mut operator = redis::Client::open(redis.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
        until("Redis has counted the call", async || {
            redis::cmd("EXISTS").arg(&key).query_async(&mut operator).await.unwrap()
        })
        .await;
        let status = server.get("/v1/stats").await.status;
        // And so does a server that found it late now, or came when the minute was over.
        if fallbacks(&server).await == 0 && began.elapsed() < A_MINUTE {
            assert_eq!(status, 429);
            return;
        }
    }
    panic!("Redis was late ten times");
}

/// Calls a tool of a local MCP server on the records of another.
fn call_tool(server: &Server, flags: &[&str]) {
    let mut process = unionhall(server.data().parent().unwrap())
        .arg("mcp")
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let call = tool_call("getMemberStats", json!({}));
    writeln!(process.stdin.take().unwrap(), "{call}").unwrap();
    let output = process.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["result"]["structuredContent"]["ok"], true, "{answer}");
}

/// Nodes that disagree on the time by hours, forwards and backwards, still count together.
#[tokio::test(flavor = "multi_thread")]
async fn clocks_of_nodes_do_not_matter() {
    needs!(Redis);
    let (url, mut nodes, mut tally) = (redis_url(), Vec::new(), Tally::of(3));
    for _ in 0..3 {
        nodes.push(limiter(&url, A_MINUTE).await);
    }
    let mut hours = [5, 0, 900, 10, 1000, 0].into_iter().cycle();
    // Once by each, and then until each refuses.
    for turn in 0..100 {
        let now = Tick::from_micros(hours.next().unwrap() * 3_600_000_000);
        tally.note(nodes[turn % 3].check(home(), 3, now), |verdict| verdict.admitted).await;
        tally.holds();
    }
    assert!(tally.fewest_at_a_refusal().is_some(), "some are refused");
    assert!(nodes.iter().all(|node| node.status().scope == Scope::Shared && node.status().fallbacks == 0));
}

async fn limiter(url: &str, timeout: Duration) -> RedisLimiter {
    let (target, manner) = (Target::parse(url).unwrap(), Manner { timeout, ..Manner::default() });
    let limiter = RedisLimiter::connect(target, manner, MemoryLimiter::new(60), |_| {}).await.unwrap();
    until("the limiter counts in Redis", async || limiter.status().scope == Scope::Shared).await;
    limiter
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_late_for_some_calls_lets_nobody_past_a_limit_that_is_spent() {
    needs!(RedisServer);
    let redis = Redis::start();
    let server = sharing(&redis.url(), &[]).await;
    let (key, mut tally) = (server.key(), Tally::of(30));
    tally.ask_until_refused(async |_| act(&server, &key).await).await;
    for passage in [LATE, Passage::Open] {
        redis.link.set(passage);
        for _ in 0..9 {
            tally.ask(act(&server, &key)).await;
        }
    }
    // Nor past one that is spent while it is late.
    let (other, mut tally) = (server.run(&["keys", "issue", "Other"]), Tally::of(30));
    redis.link.set(LATE);
    tally.ask_until_refused(async |_| act(&server, &other).await).await;
    redis.link.set(Passage::Open);
    counts(&server, Scope::Shared).await;
    tally.ask_until_refused(async |_| act(&server, &other).await).await;
}

/// Every place of the limit is taken under another state of Redis: there, late, away, back and empty.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_holds_through_every_switch_of_a_node() {
    needs!(RedisServer);
    let mut redis = Redis::start();
    let server = sharing(&redis.url(), &[]).await;
    let (key, mut tally) = (server.key(), Tally::of(30));
    let spend = async |tally: &mut Tally, actions: usize| {
        for _ in 0..actions {
            tally.ask(act(&server, &key)).await;
        }
    };
    spend(&mut tally, 7).await;
    redis.link.set(LATE);
    spend(&mut tally, 7).await;
    redis.kill();
    counts(&server, Scope::Local).await;
    spend(&mut tally, 7).await;
    redis.start_again();
    counts(&server, Scope::Shared).await;
    spend(&mut tally, 7).await;
    tally.ask_until_refused(async |_| act(&server, &key).await).await;
}

/// Each node holds the limit by itself, so three pass it three times at the most.
#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_pass_a_limit_at_most_once_each() {
    needs!(RedisServer);
    let mut redis = Redis::start();
    let nodes = sharing_records(3, &redis.url()).await;
    let key = nodes[0].key();
    let (mut own, mut all) = ([(); 3].map(|()| Tally::of(30)), Tally::of(30));
    let ask = async |node: usize| act(&nodes[node], &key).await;
    let before = all_fallbacks(&nodes).await;
    redis.link.set(LATE);
    in_turns_until_refused(&mut own, &mut all, ask).await;
    let alone = all_fallbacks(&nodes).await - before;
    let bounded = |own: &[Tally], all: &Tally| {
        assert!(own.iter().all(|own| own.most_in_a_minute() <= 30), "{own:?}");
        assert!(all.most_in_a_minute() <= 90, "{all:?}");
    };
    bounded(&own, &all);
    assert!(all.most_in_a_minute() <= 30 + alone, "{all:?}, {alone} decided alone");

    redis.kill();
    for node in &nodes {
        counts(node, Scope::Local).await;
    }
    // From now on each refuses by its own count alone, and so each admits all of its limit.
    own.iter_mut().for_each(Tally::forget_refusals);
    in_turns_until_refused(&mut own, &mut all, ask).await;
    own.iter().for_each(Tally::holds);
    bounded(&own, &all);

    redis.start_again();
    for node in &nodes {
        counts(node, Scope::Shared).await;
    }
    in_turns_until_refused(&mut own, &mut all, ask).await;
    bounded(&own, &all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_killed_costs_no_request_and_is_found_again() {
    needs!(RedisServer);
    let mut redis = Redis::start();
    let server = Arc::new(sharing(&redis.url(), &["--public-per-minute", "100"]).await);
    let is_shared = async || server.figures().await["unionhall_limits_shared"];
    until("the metrics show a shared limit", async || is_shared().await == 1.0).await;
    let (mut here, mut tally) = (server.connect(HERE).await, Tally::of(100));
    for _ in 0..40 {
        tally.ask(read(&mut here)).await;
    }
    // Other addresses keep calling throughout, and are answered.
    let over = Arc::new(AtomicU32::new(0));
    let mut load = tokio::task::JoinSet::new();
    for client in 0..4 {
        let (server, over) = (Arc::clone(&server), Arc::clone(&over));
        load.spawn(async move {
            let mut connection = server.connect(Ipv4Addr::new(127, 0, 7, client + 1)).await;
            while over.load(Ordering::Relaxed) == 0 {
                is_admitted(&read(&mut connection).await);
            }
        });
    }
    redis.kill();
    counts(&server, Scope::Local).await;
    for _ in 0..40 {
        tally.ask(read(&mut here)).await;
    }
    assert_eq!(is_shared().await, 0.0);
    told_once(&server, Told::Lost).await;
    redis.start_again();
    counts(&server, Scope::Shared).await;
    over.store(1, Ordering::Relaxed);
    load.join_all().await;

    tally.ask_until_refused(async |_| read(&mut here).await).await;
    until("the metrics show a shared limit", async || is_shared().await == 1.0).await;
    told_once(&server, Told::Back).await;
}

/// Three late answers in a row, and nobody waits for a fourth.
#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_stands_still_is_waited_for_three_times() {
    needs!(RedisServer);
    let redis = Redis::start();
    let server = sharing(&redis.url(), &["--public-per-minute", "1000"]).await;
    let mut connection = server.connect(HERE).await;
    let ours = |key: &&String| key.ends_with("v2:public:127.0.0.1");
    let asked = || redis.link.asked().concat().iter().filter(ours).count();
    assert!(is_admitted(&read(&mut connection).await));
    let (before, alone) = (asked(), fallbacks(&server).await);
    redis.signal("STOP");
    for _ in 0..50 {
        assert!(is_admitted(&read(&mut connection).await));
    }
    assert_eq!(fallbacks(&server).await - alone, 50);
    let waited = asked() - before;
    assert!(waited <= 3, "{waited} of 50");
    counts(&server, Scope::Local).await;
    told_once(&server, Told::Lost).await;
    assert!(server.log().contains("it does not answer within 50 ms"), "{}", server.log());

    redis.signal("CONT");
    counts(&server, Scope::Shared).await;
    assert!(is_admitted(&read(&mut connection).await));
    told_once(&server, Told::Back).await;
}

/// However many ask at once, few wait for Redis, and the node's own count is exact.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_before_a_silent_redis_is_let_through() {
    needs!(RedisServer);
    let redis = Redis::start();
    let limiter = Arc::new(limiter(&redis.url(), Duration::from_millis(50)).await);
    redis.link.set(Passage::AnswersWait);
    let mut crowd = tokio::task::JoinSet::new();
    for _ in 0..5000 {
        let limiter = Arc::clone(&limiter);
        crowd.spawn(async move { limiter.check(home(), 4000, Tick::from_micros(0)).await.admitted });
    }
    let verdicts = in_time("a verdict for each", crowd.join_all()).await;
    assert_eq!(verdicts.into_iter().filter(|admitted| *admitted).count(), 4000);
    assert!(limiter.status().fallbacks >= 4000);
    let ours = |key: &&String| key.ends_with("v2:public:127.0.0.1");
    let waited = redis.link.asked().concat().iter().filter(ours).count();
    // The queue, a batch before it, and those that take the places of the first two batches.
    assert!(waited <= 1024 + 3 * 256, "{waited}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_redis_is_noticed_though_nobody_calls() {
    needs!(RedisServer);
    let mut redis = Redis::start();
    let changes = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&changes);
    let tell = move |change| heard.lock().unwrap().push(change);
    // Not the time-out of the service: one late beat would be told, too.
    let (target, manner) = (Target::parse(&redis.url()).unwrap(), Manner { timeout: A_MINUTE, ..Manner::default() });
    let limiter = RedisLimiter::connect(target, manner, MemoryLimiter::new(60), tell).await.unwrap();
    let last = || changes.lock().unwrap().last().cloned();
    // It may have had to try twice at the start.
    until("it counts in Redis", async || {
        limiter.status().scope == Scope::Shared && last().is_none_or(|last| last == Change::Shared)
    })
    .await;
    changes.lock().unwrap().clear();
    redis.kill();
    until("the loss is told", async || matches!(last(), Some(Change::Disconnected(_)))).await;
    assert_eq!(limiter.status().scope, Scope::Local);
    redis.start_again();
    until("the return is told", async || last() == Some(Change::Shared)).await;
    assert_eq!(limiter.status().scope, Scope::Shared);
    assert!(matches!(&changes.lock().unwrap()[..], [Change::Disconnected(_), Change::Shared]));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_it_starts_and_says_so() {
    needs!(RedisServer);
    let mut redis = Redis::start();
    redis.kill();
    let server = Watched::start(&[], &["--limits", &redis.url(), "--public-per-minute", "5"]);
    assert_eq!(limits(&server).await, "local");
    let (mut connection, mut tally) = (server.connect(HERE).await, Tally::of(5));
    tally.ask_until_refused(async |_| read(&mut connection).await).await;
    told_once(&server, Told::Lost).await;
    redis.start_again();
    counts(&server, Scope::Shared).await;
    tally.ask_until_refused(async |_| read(&mut connection).await).await;
}

/// What a start that is refused says, without the password.
fn refusal(flags: &[&str]) -> String {
    // A Redis that is late at the start refuses nobody, and is asked again.
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let mut command = unionhall(folder.path());
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(flags).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let has_started = !line.is_empty();
        if has_started {
            process.kill().unwrap();
        }
        let mut told = String::new();
        process.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        let status = process.wait().unwrap();
        assert!(!told.contains("hunter2"), "{told}");
        if !has_started {
            assert!(!status.success());
            return told;
        }
    }
    panic!("it started ten times with {flags:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_operator_can_mend_is_told_at_the_start() {
    needs!(RedisServer);
    let redis = Redis::start_with(&["--requirepass", "open sesame"]);
    let right = redis.url().replace("redis://", "redis://:open%20sesame@");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("limits"), format!("{right}\n")).unwrap();
    let file = folder.path().join("limits").display().to_string();
    let server = Server::start_with(&["--limits-file", &file]);
    counts(&server, Scope::Shared).await;

    let wrong = redis.url().replace("redis://", "redis://:hunter2@");
    for url in [&wrong, &redis.url(), &format!("{right}/99")] {
        holds(&refusal(&["--limits", url]), &["\"message\":\"Redis refuses us: ", "--limits"]);
    }
    assert!(refusal(&["--limits", "memcached://:hunter2@host"]).contains("write memory:, redis://"));
    assert!(refusal(&["--limits", "redis://:hunter2@host/first"]).contains("number of a database cannot be read"));
    assert!(refusal(&["--limits-file", "nowhere"]).contains("cannot read where requests are counted from nowhere"));
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_is_reached_over_tls() {
    needs!(RedisServer);
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
    counts(&server, Scope::Shared).await;
    let mut connection = server.connect(HERE).await;
    Tally::of(5).ask_until_refused(async |_| read(&mut connection).await).await;

    let stranger = Server::start_with_env(&[("UNIONHALL_LIMITS", &url)], &[]);
    assert_eq!(limits(&stranger).await, "local", "a certificate that nobody vouches for is not trusted");
}
