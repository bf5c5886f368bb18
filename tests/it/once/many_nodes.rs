//! Past one machine: several nodes on one PostgreSQL and one Redis, and what is left when some of it dies.

use crate::machines::within_a_minute;
use crate::mail::link;
use crate::prelude::*;
use crate::records::{create_database, redis};

fn nodes(count: usize, flags: &[&str]) -> Vec<Server> {
    let first = Server::start_in(Home::on_postgres(tempfile::tempdir().unwrap()), flags);
    let records = first.records().clone();
    let others = (1..count).map(|_| Server::start_in(Home::sharing(&records), flags));
    std::iter::once(first).chain(others.collect::<Vec<_>>()).collect()
}

async fn invite(connection: &mut Connection, key: &str, email: &str) -> u16 {
    let request = Request::post("/v1/invite").header("authorization", format!("Bearer {key}"));
    connection.send(request, sign_up(email)).await.status.as_u16()
}

fn tally(texts: impl IntoIterator<Item = String>) -> HashMap<String, usize> {
    texts.into_iter().fold(HashMap::new(), |mut counts, text| {
        *counts.entry(text).or_default() += 1;
        counts
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_limits_hold_across_nodes_behind_nginx() {
    needs!(Postgres, Redis, Nginx);
    // The proxy calls from 127.0.0.1; callers have other addresses.
    let nodes = nodes(2, &["--trusted-proxies", "127.0.0.1", "--log", "requests"]);
    let front = Proxy::nginx(&nodes.iter().collect::<Vec<_>>());
    let key = nodes[0].key();
    let read = async |from: u8, claimed: u8| {
        let request = Request::get("/v1/stats").header("x-forwarded-for", format!("203.0.113.{claimed}"));
        front.connect(Ipv4Addr::new(127, 0, 0, from)).await.send(request, "").await.status.as_u16()
    };
    let mut statuses = Vec::new();
    for n in 0..61 {
        // Who claims to be another each time is still one caller.
        statuses.push(read(2, n).await);
    }
    assert_eq!((&statuses[..60], statuses[60]), (&[200; 60][..], 429));
    assert_eq!(read(3, 0).await, 200, "another caller is not touched");

    let mut connection = front.connect(Ipv4Addr::new(127, 0, 0, 4)).await;
    let mut statuses = Vec::new();
    for n in 0..31 {
        statuses.push(invite(&mut connection, &key, &format!("ana{n}@example.com")).await);
    }
    assert_eq!((&statuses[..30], statuses[30]), (&[200; 30][..], 429));
    for node in &nodes {
        let answered = || node.log().matches("\"route\":\"/v1/").count();
        wait_for!(async || answered() >= 30).await;
    }
}

/// Eight callers sign people up through the proxy, and one of two nodes is ended without warning in the middle. Whoever gets
/// no good answer asks again, as a caller would.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_under_load_loses_nothing() {
    needs!(MailServer, Postgres, Redis);
    const CALLERS: u8 = 8;
    const EACH: usize = 30;
    let mail = Mailserver::start(&[]);
    let smtp = format!("smtp://127.0.0.1:{}", mail.port);
    let flags = ["--mail", &smtp, "--trusted-proxies", "127.0.0.1", "--key-per-minute", "100000"];
    let nodes = nodes(2, &flags);
    let front = Arc::new(Proxy::nginx(&nodes.iter().collect::<Vec<_>>()));
    let key = nodes[0].key();
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let (front, key, acknowledged) = (Arc::clone(&front), key.clone(), Arc::clone(&acknowledged));
        callers.spawn(async move {
            let mut connection = front.connect(Ipv4Addr::new(127, 0, 1, caller + 1)).await;
            for n in 0..EACH {
                let email = format!("user{caller}-{n}@example.com");
                let patient = async {
                    while invite(&mut connection, &key, &email).await != 200 {
                        tokio::task::yield_now().await;
                    }
                };
                in_time("the other node to answer", patient).await;
                acknowledged.lock().unwrap().push(email);
            }
        });
    }
    wait_for!(async || acknowledged.lock().unwrap().len() >= 60).await;
    nodes[1].signal("KILL");
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    let acknowledged = acknowledged.lock().unwrap().clone();
    assert_eq!(acknowledged.len(), usize::from(CALLERS) * EACH);
    // What the dead node had taken to send is another's after half a minute, which goes by.
    nodes[0].execute("UPDATE outbox SET leased_until = 0");
    let arrived = || tally(mail.arrived().iter().map(|message| message["to"][0].as_str().unwrap().to_owned()));
    wait_for!(async || { arrived().len() >= acknowledged.len() }).await;
    let counts = arrived();
    for email in &acknowledged {
        let count = counts.get(email).copied().unwrap_or(0);
        assert!((1..=2).contains(&count), "{email} got {count}");
    }
    let mut connection = front.connect(Ipv4Addr::new(127, 0, 0, 9)).await;
    for message in mail.arrived() {
        let confirm = link(message["content"].as_str().unwrap(), "/confirm/");
        assert_eq!(connection.send(Request::post(&confirm), "").await.status, 303);
    }
    let members = i64::try_from(acknowledged.len()).unwrap();
    assert_eq!(nodes[0].get("/v1/stats").await.good()["memberCount"], members);
    assert_eq!(nodes[0].number("SELECT count(*) FROM people WHERE state = 'member'"), members);
}

/// Every node is replaced in turn, as docs/upgrades.md says, while callers ask without a break: nobody notices.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_replaced_one_by_one_and_no_request_fails() {
    needs!(Postgres, Redis, Nginx);
    let flags = ["--mail", "hold", "--trusted-proxies", "127.0.0.1", "--key-per-minute", "100000"];
    let mut nodes = nodes(2, &flags);
    let records = nodes[0].records().clone();
    let front = Arc::new(Proxy::nginx(&[&nodes[0], &nodes[1]]));
    let key = nodes[0].key();
    let (asked, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..4 {
        let (front, key) = (Arc::clone(&front), key.clone());
        let (asked, over) = (Arc::clone(&asked), Arc::clone(&over));
        callers.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let email = format!("user{caller}-{}@example.com", asked.fetch_add(1, Ordering::Relaxed));
                let mut connection = front.connect(Ipv4Addr::new(127, 0, 1, caller + 1)).await;
                assert_eq!(invite(&mut connection, &key, &email).await, 200);
            }
        });
    }
    // What the first home owns stays until the end.
    let mut homes = Vec::new();
    for _ in 0..2 {
        let enough = asked.load(Ordering::Relaxed) + 50;
        wait_for!(async || asked.load(Ordering::Relaxed) >= enough).await;
        let old = nodes.remove(0);
        front.point_at(&[&nodes[0]]);
        let (code, home) = old.stop();
        assert_eq!(code, Some(0));
        homes.push(home);
        nodes.push(Server::start_in(Home::sharing(&records), &flags));
        front.point_at(&[&nodes[0], &nodes[1]]);
    }
    over.store(true, Ordering::Relaxed);
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    let kept = nodes[0].number("SELECT count(*) FROM sign_ups");
    assert_eq!(kept, i64::try_from(asked.load(Ordering::Relaxed)).unwrap());
}

#[expect(clippy::disallowed_methods, reason = "how long it takes is what is measured")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// What the callers saw of a failover.
#[derive(Default)]
struct Seen {
    acknowledged: Vec<String>,
    /// By caller.
    failed: [usize; 8],
    /// Answers that need no database.
    read: usize,
}

/// Eight callers sign people up while the primary is ended without warning and its synchronous standby takes its place.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_survives_the_primary() {
    needs!(PostgresPrograms);
    let mut primary = Cluster::primary();
    create_database(&primary.url("postgres"), "hall");
    let standby = primary.standby();
    let records = Records::Postgres {
        store: format!(
            "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/hall?target_session_attrs=read-write",
            primary.port, standby.port
        ),
        limits: format!("{}/?prefix=failover{}:", redis(), primary.port),
    };
    let flags = ["--mail", "hold", "--key-per-minute", "1000000", "--public-per-minute", "1000000"];
    let server = Arc::new(Server::start_in(Home::sharing(&records), &flags));
    let key = server.key();
    let (seen, over) = (Arc::new(Mutex::new(Seen::default())), Arc::new(AtomicBool::new(false)));
    let mut callers = tokio::task::JoinSet::new();
    for caller in 0..8_usize {
        let (server, key) = (Arc::clone(&server), key.clone());
        let (seen, over) = (Arc::clone(&seen), Arc::clone(&over));
        callers.spawn(async move {
            let mut connection = server.connect(Ipv4Addr::LOCALHOST).await;
            let mut n = 0;
            while !over.load(Ordering::Relaxed) {
                let email = format!("user{caller}-{n}@example.com");
                let request = Request::post("/v1/invite").header("authorization", format!("Bearer {key}"));
                let answer = in_time("an answer", connection.send(request, sign_up(&email))).await;
                if answer.status != 200 {
                    answer.refused(500, "save_failed");
                    // Asked again for the same person, a little later: it may or may not have been kept.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                let mut seen = seen.lock().unwrap();
                if answer.status == 200 {
                    seen.acknowledged.push(email);
                    n += 1;
                } else {
                    seen.failed[caller] += 1;
                }
            }
        });
    }
    let (reader, done, read) = (Arc::clone(&server), Arc::clone(&over), Arc::clone(&seen));
    callers.spawn(async move {
        let mut connection = reader.connect(Ipv4Addr::LOCALHOST).await;
        while !done.load(Ordering::Relaxed) {
            let asked = connection.send(Request::get("/v1/negotiate-categories"), "");
            assert_eq!(in_time("what needs no database", asked).await.status, 200);
            read.lock().unwrap().read += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });

    let acknowledged = || seen.lock().unwrap().acknowledged.len();
    wait_for!(async || acknowledged() >= 100).await;
    primary.kill();
    let killed = now();
    // Every caller has met it: nobody hangs. And what needs no database goes on without one.
    let read = seen.lock().unwrap().read;
    wait_for!(async || seen.lock().unwrap().failed.iter().all(|failed| *failed > 0)).await;
    wait_for!(async || seen.lock().unwrap().read > read + 8).await;
    let before = acknowledged();
    let promoting = now();
    standby.promote();
    wait_for!(async || acknowledged() > before).await;
    println!(
        "recovered {:.1} s after the standby was promoted, {:.1} s after the primary was killed",
        promoting.elapsed().as_secs_f64(),
        killed.elapsed().as_secs_f64()
    );
    wait_for!(async || acknowledged() >= before + 100).await;
    over.store(true, Ordering::Relaxed);
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let whole = "SELECT email_normalized FROM people JOIN sign_ups ON person_id = people.id
                 JOIN outbox ON sign_up_id = sign_ups.id";
    let kept = tally(server.rows(whole).into_iter().map(|mut row| row.remove(0)));
    for email in &seen.acknowledged {
        assert_eq!(kept.get(email), Some(&1), "{email}");
    }
    assert!(kept.values().all(|count| *count == 1), "nobody twice");
    server.get("/v1/stats").await.good();
    assert_eq!(server.get("/readyz").await.good()["store"], "usable");
    let another = Server::start_in(Home::sharing(&records), &flags);
    assert_eq!(another.get("/readyz").await.good()["store"], "usable", "a promoted standby is the same database");
    println!(
        "{} sign-ups were acknowledged, {} refused, none lost",
        seen.acknowledged.len(),
        seen.failed.iter().sum::<usize>()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_at_once_on_an_empty_database_all_come_up() {
    needs!(Postgres, Redis);
    let home = Home::on_postgres(tempfile::tempdir().unwrap());
    home.prepare_empty();
    let nodes: Vec<_> = std::thread::scope(|scope| {
        let start = || Server::start_in(Home::sharing(home.records()), &[]);
        let starting: Vec<_> = (0..5).map(|_| scope.spawn(start)).collect();
        starting.into_iter().map(|node| node.join().unwrap()).collect()
    });
    assert_eq!(home.records().number("SELECT count(*) FROM installation"), 1);
    let key = nodes[0].key();
    let mut links = Vec::new();
    for node in &nodes {
        let made = node.post("/v1/referral-link", &key, sign_up("ana@example.com")).await.good();
        links.push(made["code"].to_string());
        assert_eq!(node.log(), "", "nobody has anything to complain of");
    }
    assert_eq!(tally(links).len(), 1, "the same code from every node");
    assert_eq!(home.records().number("SELECT count(*) FROM people"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_operator_changes_reaches_every_node() {
    needs!(Postgres, Redis);
    let nodes = nodes(2, &["--key-per-minute", "100000"]);
    let (key, other) = (nodes[0].key(), nodes[1].run(&["keys", "issue", "Other"]));
    let ask = async |node: &Server, key: &str| node.post("/v1/invite", key, sign_up("ana@example.com")).await;
    let everywhere = async |key: &str, status: u16| {
        wait_for!(async || {
            for node in &nodes {
                if ask(node, key).await.status != status {
                    return false;
                }
            }
            true
        })
        .await;
    };
    // Both nodes have seen both keys, so that both have something to forget.
    everywhere(&key, 200).await;
    everywhere(&other, 200).await;
    nodes[0].run(&["keys", "revoke", &key[3..11]]);
    everywhere(&key, 401).await;
    everywhere(&other, 200).await;
    nodes[0].run(&["signups", "pause"]);
    everywhere(&other, 500).await;
    for node in &nodes {
        ask(node, &other).await.refused(500, "backend_not_configured");
    }
    nodes[1].run(&["signups", "resume"]);
    everywhere(&other, 200).await;
}

/// What a node says that should not start; it is ended if it does.
fn refusal(command: &mut Command) -> String {
    let mut process = command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    if within_a_minute(|| process.try_wait().unwrap().is_some()) {
        let output = process.wait_with_output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), told.trim().lines().count()), (Some(1), 1), "{told}");
        return told;
    }
    process.kill().unwrap();
    process.wait().unwrap();
    panic!("it was not refused in a minute");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_with_another_secret_or_none_refuses_to_start() {
    needs!(Postgres, Redis);
    let node = &nodes(1, &[])[0];
    let folder = tempfile::tempdir().unwrap();
    let other = "another-installations-secret-of-some-length";
    let settings = || {
        let mut command = unionhall(folder.path());
        command.envs(node.records().settings());
        command
    };
    let told = refusal(settings().env("UNIONHALL_SECRET", other));
    assert!(told.contains("secret is not the one that the records"), "{told}");
    assert!(!told.contains(other), "{told}");
    holds(&refusal(settings().env_remove("UNIONHALL_SECRET")), &["UNIONHALL_SECRET"]);
    assert!(!folder.path().join("data/secret").exists(), "no secret is made up");
    let kept: Value = node.get("/v1/stats").await.good();
    assert_eq!(kept["memberCount"], 0, "the right one goes on");
}
