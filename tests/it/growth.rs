//! What somebody has stored makes nothing slower: a hundred thousand rows behind one person, one partner and one mailbox.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use hyper::Request;
use serde_json::json;

use crate::own_page::Browser;
use crate::records::Home;
use crate::server::{Server, block_on, sign_up};

const ROWS: u32 = 100_000;
const FLAGS: &[&str] = &[
    "--public-per-minute",
    "1000000",
    "--key-per-minute",
    "1000000",
    "--log",
    "off",
    "--mail",
    "hold",
    "--trusted-proxies",
    "127.0.0.0/8",
];

/// A server with a member, Ana, and a partner with a key. Where it is crowded, Ana referred a hundred thousand members and as many
/// sign-ups name her, a hundred thousand sign-ups and idempotency keys are hers, and as many people share her mailbox.
struct Place {
    server: Server,
    key: String,
    code: String,
}

impl Place {
    async fn new(is_crowded: bool) -> Self {
        let server = Server::start_with(FLAGS);
        let key = server.key();
        let signed =
            server.post("/v1/referral-link", &key, json!({ "email": "ana@gmail.com" }).to_string()).await.good();
        let code = signed["code"].as_str().unwrap().to_owned();
        server.post("/v1/invite", &key, sign_up("ana@gmail.com")).await.good();
        server.confirm(1).await;
        if is_crowded {
            crowd(&server);
        }
        Self { server, key, code }
    }

    /// Signs somebody up whom Ana referred, at her own mailbox; the id of the sign-up.
    async fn invite(&self, name: &str) -> i64 {
        let body = json!({ "email": format!("ana+{name}@gmail.com"), "refCode": self.code });
        self.server.post("/v1/invite", &self.key, body.to_string()).await.good();
        self.server.number("SELECT max(id) FROM sign_ups")
    }

    /// How long each sign-up takes for as long as something goes on, in seconds.
    #[expect(clippy::disallowed_methods, reason = "how long it takes is what is measured")]
    async fn sign_ups_while(&self, mut goes_on: impl FnMut(usize) -> bool) -> Vec<f64> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let mut times = Vec::new();
        while goes_on(times.len()) {
            let email = format!("beside{}@example.com", NUMBER.fetch_add(1, Ordering::Relaxed));
            let start = Instant::now();
            self.server.post("/v1/invite", &self.key, sign_up(&email)).await.good();
            times.push(start.elapsed().as_secs_f64());
        }
        times
    }

    /// How long the middle one takes beside a command of the operator's.
    async fn sign_ups_beside(&self, command: &[&str]) -> f64 {
        let mut running =
            (!command.is_empty()).then(|| self.server.command().args(command).stdout(Stdio::null()).spawn().unwrap());
        let took = self.sign_ups_while(|n| {
            let is_running = running.as_mut().is_some_and(|process| process.try_wait().unwrap().is_none());
            n < 50 || (is_running && n < 300)
        });
        let took = took.await;
        // What is not done by then would be done the next time.
        if let Some(mut process) = running {
            let _ended_by_itself = process.kill();
            process.wait().unwrap();
        }
        median(took)
    }

    /// How long each of forty takes beside eight connections that ask for Ana's page and the partner's list, one request after the
    /// other.
    async fn sign_ups_beside_callers(&self, cookies: &BTreeMap<String, String>) -> Vec<f64> {
        let cookies: Vec<_> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let (cookies, over) = (cookies.join("; "), AtomicBool::new(false));
        let call = async |caller: usize| {
            let mut connection = self.server.connect(Ipv4Addr::LOCALHOST).await;
            let mut n = 0;
            while !over.load(Ordering::Relaxed) {
                n += 1;
                let request = match caller % 2 {
                    // Each from an address of its own, which has its own budget.
                    0 => Request::get("/me")
                        .header("cookie", &cookies)
                        .header("x-forwarded-for", format!("10.{caller}.{}.{}", n / 200, n % 200)),
                    _ => Request::get("/partner/v1/sign-ups?since=2100-01-01T00:00:00Z")
                        .header("authorization", format!("Bearer {}", self.key)),
                };
                assert_eq!(connection.send(request, "").await.status, 200);
            }
        };
        let calls: Vec<_> = (0..8).map(|caller| Box::pin(call(caller))).collect();
        let mut calls = Box::pin(crate::connections::all(calls));
        let sign_ups = async {
            let took = self.sign_ups_while(|n| n < 40).await;
            over.store(true, Ordering::Relaxed);
            took
        };
        tokio::join!(sign_ups, &mut calls).0
    }

    async fn list(&self, query: &str) {
        let list = Request::get(format!("/partner/v1/sign-ups{query}"))
            .header("authorization", format!("Bearer {}", self.key));
        assert_eq!(self.server.send(list, "").await.status, 200);
    }
}

fn crowd(server: &Server) {
    let now = server.number("SELECT max(created_at) FROM people");
    let numbers = format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})");
    let days = |n: i64| now - n * 24 * 3_600_000;
    for rows in [
        format!(
            "INSERT INTO people (email, email_normalized, mailbox, code, state, created_at, joined_at, referrer_id)
             {numbers} SELECT 'r' || i || '@example.com', 'r' || i || '@example.com', 'r' || i || '@example.com',
                 CAST(100000000000 + i AS TEXT), 'member', {now}, {now}, 1 FROM n"
        ),
        format!(
            "INSERT INTO sign_ups (person_id, referrer_id, state, consent_version, created_at, updated_at, expires_at, decided_at)
             SELECT id, 1, 'confirmed', 1, {now}, {now}, {now}, {now} FROM people WHERE referrer_id = 1"
        ),
        format!(
            "INSERT INTO people (email, email_normalized, mailbox, code, state, created_at)
             {numbers} SELECT 'ana+' || i || '@gmail.com', 'ana+' || i || '@gmail.com', 'ana@gmail.com',
                 CAST(200000000000 + i AS TEXT), 'invited', {now} FROM n"
        ),
        format!(
            "INSERT INTO sign_ups (person_id, state, consent_version, created_at, updated_at, expires_at, decided_at)
             {numbers} SELECT 1, 'expired', 1, {now}, {now}, {now}, {now} FROM n"
        ),
        format!(
            "INSERT INTO idempotency_keys (partner_id, key, operation, input, person_id, link, created_at, closes_at, closed_at)
             {numbers} SELECT 1, 'old-' || i, 'sign_up', 'x', 1, 'x', {}, {}, {} FROM n",
            days(20),
            days(13),
            days(13)
        ),
        format!("INSERT INTO referrers (person_id, members) VALUES (1, {ROWS})"),
        "UPDATE rollup SET sign_up_id = (SELECT max(id) FROM sign_ups)".to_owned(),
        "ANALYZE".to_owned(),
    ] {
        server.execute(&rows);
    }
}

/// How many times as long something takes in the crowded place: the medians of turns that alternate.
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is measured")]
async fn ratio(crowded: &Place, empty: &Place, turns: usize, mut act: impl AsyncFnMut(&Place, usize)) -> f64 {
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..turns {
        for (place, times) in [crowded, empty].into_iter().zip(&mut times) {
            let start = Instant::now();
            act(place, turn).await;
            times.push(start.elapsed().as_secs_f64());
        }
    }
    let [here, there] = times.map(median);
    here / there
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

#[test]
fn what_one_request_sets_off_does_not_grow_with_what_is_stored() {
    block_on(async {
        let (crowded, empty) = (Place::new(true).await, Place::new(false).await);
        let mut slow = Vec::new();
        let mut judge = |what: &str, ratio: f64| {
            eprintln!("{what}: {ratio:.2}");
            if ratio > 3.0 {
                slow.push(format!("{what}: {ratio:.1} times as long"));
            }
        };

        let (mut ana, mut other) = (Browser::new(&crowded.server, 1), Browser::new(&empty.server, 2));
        ana.sign_in("ana@gmail.com").await;
        other.sign_in("ana@gmail.com").await;
        let text = String::from_utf8_lossy(&ana.get("/me").await.body).into_owned();
        assert!(text.contains("1,000+") && text.contains("100,000"), "{text}");
        let own_page = ratio(&crowded, &empty, 31, async |place, _| {
            let browser = if std::ptr::eq(place, &raw const crowded) { &mut ana } else { &mut other };
            assert_eq!(browser.get("/me").await.status, 200);
        });
        judge("/me", own_page.await);

        for query in ["", "?since=2100-01-01T00:00:00Z", "?limit=1"] {
            let list = ratio(&crowded, &empty, 31, async |place, _| place.list(query).await).await;
            judge(&format!("a partner's list {query}"), list);
        }

        let mut sign_ups = [Vec::new(), Vec::new()];
        for n in 0..22 {
            sign_ups[0].push(crowded.invite(&format!("new{n}")).await);
            sign_ups[1].push(empty.invite(&format!("new{n}")).await);
        }
        let of = |place: &Place, turn: usize| sign_ups[usize::from(!std::ptr::eq(place, &raw const crowded))][turn];
        let confirm = ratio(&crowded, &empty, 11, async |place, turn| {
            assert_eq!(place.server.confirm(of(place, turn)).await.status, 200);
        });
        judge("confirming", confirm.await);
        let decline = ratio(&crowded, &empty, 11, async |place, turn| place.server.decline(of(place, turn + 11)).await);
        judge("declining", decline.await);
        let sign_in = ratio(&crowded, &empty, 11, async |place, turn| {
            let mut browser = Browser::new(&place.server, 10 + u8::try_from(turn).unwrap());
            assert_eq!(browser.post("/me/sign-in", &[("email", "ana@gmail.com")]).await.status, 200);
        });
        judge("asking to sign in", sign_in.await);

        let mut busy = [Vec::new(), Vec::new()];
        for _turn in 0..5 {
            busy[0].extend(crowded.sign_ups_beside_callers(&ana.cookies).await);
            busy[1].extend(empty.sign_ups_beside_callers(&other.cookies).await);
        }
        let [here, there] = busy.map(median);
        // Twice as long at the most, where the others may take three times.
        judge("sign-ups beside eight busy connections", here / there * 1.5);
        let quiet = empty.sign_ups_beside(&[]).await;
        for command in [&["members", "export"][..], &["members", "erase", "ana@gmail.com"]] {
            judge(&format!("sign-ups beside {}", command[1]), crowded.sign_ups_beside(command).await / quiet);
        }
        let [crowded, empty] = [crowded, empty].map(|place| place.server.stop().1);
        judge("the start", starts(crowded).await / starts(empty).await);
        assert!(slow.is_empty(), "{slow:#?}");
    });
}

/// How long a server takes from its start to its first answer about its records, in seconds: the middle one of three.
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is measured")]
async fn starts(mut home: Home) -> f64 {
    let mut times = Vec::new();
    for _ in 0..3 {
        let start = Instant::now();
        let server = Server::start_in(home, FLAGS);
        server.get("/v1/stats").await.good();
        times.push(start.elapsed().as_secs_f64());
        home = server.stop().1;
    }
    median(times)
}
