//! Nobody learns who is known from how long an answer takes: by statistics over many requests that take turns.
//!
//! The figure is the chance that of two answers, one of each kind, the slower is of the first kind (the area under the ROC
//! curve): 0.5 is a coin, 1 tells them apart by one request.

use crate::prelude::*;
use std::time::Instant;

const SAMPLES: usize = 1500;

/// What may be told from one answer.
const MOST: f64 = 0.55;

/// How much better than a coin the times tell the two kinds apart, whichever is the slower.
fn told_apart(one: &[f64], other: &[f64]) -> f64 {
    let mut all: Vec<_> = one.iter().map(|time| (*time, true)).chain(other.iter().map(|time| (*time, false))).collect();
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let ranks: f64 = (1_u32..).zip(&all).filter(|(_, (_, first))| *first).map(|(rank, _)| f64::from(rank)).sum();
    let (n, m) = (one.len() as f64, other.len() as f64);
    let area = (ranks - n * (n + 1.0) / 2.0) / (n * m);
    area.max(1.0 - area)
}

#[expect(clippy::disallowed_methods, reason = "how long it takes is what is measured")]
async fn time(connection: &mut Connection, path: &str, key: &str, body: String, status: u16) -> f64 {
    let request = Request::post(path).header("authorization", format!("Bearer {key}"));
    let begun = Instant::now();
    let answer = connection.send(request.header("content-type", "application/json"), body).await;
    let took = begun.elapsed().as_secs_f64();
    assert_eq!(answer.status, status, "{answer:?}");
    took
}

/// Kinds of requests by turns; how well each later kind is told from the first.
async fn compare<const N: usize>(
    server: &Server,
    status: u16,
    request: impl Fn(usize, usize) -> (&'static str, String, String),
) -> [f64; N] {
    let mut connection = server.connect(Ipv4Addr::LOCALHOST).await;
    let mut times: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for n in 0..SAMPLES + 200 {
        // The order within a turn changes too, for what comes after what has its own cost.
        for kind in (0..N).map(|kind| (kind + n) % N) {
            let (path, key, body) = request(kind, n);
            let took = time(&mut connection, path, &key, body, status).await;
            // The first ones warm everything up.
            if n >= 200 {
                times[kind].push(took);
            }
        }
    }
    std::array::from_fn(|kind| told_apart(&times[0], &times[kind]))
}

fn server() -> (Server, String) {
    Server::with_key(&["--key-per-minute", "1000000", "--log", "off", "--mail", "hold"])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_referral_link_does_not_tell_who_is_known() {
    needs!(LongRun);
    let (server, key) = server();
    for n in 0..SAMPLES + 200 {
        server.post("/v1/referral-link", &key, sign_up(&format!("known{n}@example.com"))).await.good();
    }
    let [_, told] = compare::<2>(&server, 200, |kind, n| {
        let who = ["known", "new"][kind];
        ("/v1/referral-link", key.clone(), sign_up(&format!("{who}{n}@example.com")))
    })
    .await;
    eprintln!("known against unknown at /v1/referral-link: {told:.3}");
    assert!(told < MOST, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_up_does_not_tell_who_is_known() {
    needs!(LongRun);
    let (server, key) = server();
    for n in 0..SAMPLES + 200 {
        for who in ["pending", "member"] {
            server.post("/v1/invite", &key, sign_up(&format!("{who}{n}@example.com"))).await.good();
        }
    }
    server.execute(
        "UPDATE sign_ups SET state = 'confirmed' WHERE person_id IN (SELECT id FROM people WHERE email LIKE 'member%')",
    );
    server.execute("UPDATE people SET state = 'member', joined_at = 1 WHERE email LIKE 'member%'");
    server.execute("DELETE FROM outbox");
    let told = compare::<3>(&server, 200, |kind, n| {
        let who = ["new", "pending", "member"][kind];
        ("/v1/invite", key.clone(), sign_up(&format!("{who}{n}@example.com")))
    })
    .await;
    eprintln!("new against pending and member at /v1/invite: {:.3}, {:.3}", told[1], told[2]);
    assert!(told.iter().all(|told| *told < MOST), "{told:?}");
}

/// With an idempotency key, where more is kept: new against pending was told with 0.59 on SQLite.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is measured")]
async fn a_named_sign_up_does_not_tell_who_is_known() {
    needs!(LongRun);
    let (server, key) = server();
    for n in 0..EVEN_SAMPLES + 20 {
        server.post("/v1/invite", &key, sign_up(&format!("pending{n}@example.com"))).await.good();
    }
    let mut connection = server.connect(Ipv4Addr::LOCALHOST).await;
    let mut times: [Vec<f64>; 2] = Default::default();
    for n in 0..EVEN_SAMPLES + 20 {
        for kind in (0..2).map(|kind| (kind + n) % 2) {
            let who = ["new", "pending"][kind];
            let request = Request::post("/v1/invite")
                .header("authorization", format!("Bearer {key}"))
                .header("content-type", "application/json")
                .header("idempotency-key", format!("{who}-{n}"));
            let begun = Instant::now();
            let answer = connection.send(request, sign_up(&format!("{who}{n}@example.com"))).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            if n >= 20 {
                times[kind].push(begun.elapsed().as_secs_f64());
            }
        }
    }
    let told = told_apart(&times[0], &times[1]);
    eprintln!("new against pending with an idempotency key: {told:.3}");
    assert!(told < MOST, "{told}");
}

/// The next write, which may wait for what the mail worker writes: 0.57 to 0.59 after a mailbox that is silent.
#[tokio::test(flavor = "multi_thread")]
async fn the_write_after_a_sign_up_does_not_tell_whether_its_mailbox_is_silent() {
    needs!(LongRun);
    let (server, key) = Server::with_key(&["--key-per-minute", "1000000", "--log", "off"]);
    for n in 0..SAMPLES + 200 {
        server.post("/v1/invite", &key, sign_up(&format!("silent{n}@example.com"))).await.good();
    }
    server.execute("DELETE FROM outbox");
    server.execute(
        "INSERT INTO mailboxes (mailbox, suppressed_until) SELECT mailbox, 9000000000000 FROM people WHERE email LIKE 'silent%'
         ON CONFLICT (mailbox) DO UPDATE SET suppressed_until = excluded.suppressed_until",
    );
    let mut connection = server.connect(Ipv4Addr::LOCALHOST).await;
    let mut times: [Vec<f64>; 2] = Default::default();
    for n in 0..SAMPLES + 200 {
        for kind in (0..2).map(|kind| (kind + n) % 2) {
            let who = ["open", "silent"][kind];
            time(&mut connection, "/v1/invite", &key, sign_up(&format!("{who}{n}@example.com")), 200).await;
            let next = sign_up(&format!("next{kind}-{n}@example.com"));
            let took = time(&mut connection, "/v1/invite", &key, next, 200).await;
            if n >= 200 {
                times[kind].push(took);
            }
        }
    }
    let told = told_apart(&times[0], &times[1]);
    eprintln!("the write after an open against a silent mailbox: {told:.3}");
    assert!(told < MOST, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_key_does_not_tell_whether_its_id_is_known() {
    needs!(LongRun);
    let (server, _) = server();
    // A good checksum, and the secret of nobody.
    let forge = |id: &str| {
        let digits =
            id.bytes().map(|c| "0123456789abcdefghjkmnpqrstvwxyz".bytes().position(|d| d == c).unwrap() as u64);
        let number = digits.fold(0, |number, digit| number << 5 | digit).to_be_bytes();
        let mut random = [7; ApiKey::ENTROPY];
        random[..5].copy_from_slice(&number[3..]);
        ApiKey::from_random(&random).reveal().to_owned()
    };
    let issue = |n| server.run(&["keys", "issue", &format!("Partner {n}")])[3..11].to_owned();
    let known: Vec<_> = (0..50).map(issue).map(|id| forge(&id)).collect();
    let unknown: Vec<_> = (0..50).map(|n| forge(&format!("{n:08}"))).collect();
    let [_, told] = compare::<2>(&server, 401, |kind, n| {
        let keys = [&known, &unknown][kind];
        ("/v1/referral-link", keys[n % keys.len()].clone(), json!({}).to_string())
    })
    .await;
    eprintln!("known against unknown ids of keys: {told:.3}");
    assert!(told < MOST, "{told}");
}

/// Requests of each kind, where an answer waits for the next even moment; and what may be told then: with so few the figure is
/// off by 0.02, and there are six of them.
const EVEN_SAMPLES: usize = 500;
const MOST_OF_FEW: f64 = 0.56;

/// Whatever is done about it, what is answered leaves at the same time: for nobody, for those who are known and are no members,
/// for members, and for those whom no mail reaches.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is measured")]
async fn signing_in_does_not_tell_whose_address_it_is() {
    needs!(LongRun);
    const STATES: [&str; 7] = ["unknown", "invited", "pending", "member", "left", "erased", "silenced"];
    let flags = ["--key-per-minute", "1000000", "--log", "off", "--mail", "hold", "--trusted-proxies", "127.0.0.0/8"];
    let (server, key) = Server::with_key(&flags);
    let address = |kind: usize, n: usize| format!("{}{n}@example.com", STATES[kind]);
    for n in 0..EVEN_SAMPLES + 20 {
        server.post("/v1/referral-link", &key, sign_up(&address(1, n))).await.good();
        for kind in 2..STATES.len() {
            server.post("/v1/invite", &key, sign_up(&address(kind, n))).await.good();
        }
    }
    for sql in [
        "DELETE FROM outbox",
        "UPDATE sign_ups SET state = 'confirmed' WHERE person_id IN
                 (SELECT id FROM people WHERE email NOT LIKE 'invited%' AND email NOT LIKE 'pending%')",
        "UPDATE people SET state = 'member', joined_at = 1 WHERE email LIKE 'member%' OR email LIKE 'silenced%'",
        "UPDATE people SET state = 'left', joined_at = 1, left_at = 1 WHERE email LIKE 'left%' OR email LIKE 'erased%'",
        "UPDATE people SET email_normalized = 'erased:' || id, mailbox = 'erased:' || id, email = '', erased_at = 1
         WHERE email LIKE 'erased%'",
        "INSERT INTO mailboxes (mailbox, suppressed_until)
         SELECT mailbox, 9000000000000 FROM people WHERE email LIKE 'silenced%'",
    ] {
        server.execute(sql);
    }
    let mut connection = server.connect(Ipv4Addr::LOCALHOST).await;
    let mut times: [Vec<f64>; STATES.len()] = std::array::from_fn(|_| Vec::new());
    for n in 0..EVEN_SAMPLES + 20 {
        for kind in (0..STATES.len()).map(|kind| (kind + n) % STATES.len()) {
            let body = format!("email={}", address(kind, n).replace('@', "%40"));
            // Each from a network of its own, for one may send ten forms a minute.
            let client = format!("10.{}.{}.{}", kind + 1, n / 250, n % 250 + 1);
            let request = Request::post("/me/sign-in").header("x-forwarded-for", client);
            let begun = Instant::now();
            let answer = connection.send(request.header("origin", "http://unionhall.test"), body).await;
            let took = begun.elapsed().as_secs_f64();
            assert_eq!(answer.status, 303);
            if n >= 20 {
                times[kind].push(took);
            }
        }
    }
    let told: Vec<_> = times.iter().map(|kind| told_apart(&times[0], kind)).collect();
    let shown: Vec<_> = STATES.iter().zip(&told).map(|(state, told)| format!("{state} {told:.3}")).collect();
    eprintln!("unknown against each at /me/sign-in: {}", shown.join(", "));
    assert!(told.iter().all(|told| *told < MOST_OF_FEW), "{shown:?}");
    let told = asked_at_once(&server, &key).await;
    eprintln!("unknown against member, ten asking at once: {told:.3}");
    assert!(told < 0.7, "{told}");
}

/// The slowest of ten answers to the same question at once: what waits for what must not tell either.
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is measured")]
async fn asked_at_once(server: &Server, key: &str) -> f64 {
    const EACH: usize = 60;
    for n in 0..EACH {
        server.post("/v1/invite", key, sign_up(&format!("crowd{n}@example.com"))).await.good();
    }
    server.execute("UPDATE people SET state = 'member', joined_at = 1 WHERE email LIKE 'crowd%'");
    let mut connections = Vec::new();
    for _ in 0..10 {
        connections.push(server.connect(Ipv4Addr::LOCALHOST).await);
    }
    let mut times: [Vec<f64>; 2] = Default::default();
    for n in 0..2 * EACH {
        let (kind, n) = (n % 2, n / 2);
        let body = format!("email={}{n}%40example.com", ["nobody", "crowd"][kind]);
        let begun = Instant::now();
        let asks = (0..).zip(&mut connections).map(|(client, connection)| {
            let client = format!("10.{}.{n}.{}", 100 + kind, client + 1);
            let request = Request::post("/me/sign-in").header("x-forwarded-for", client);
            connection.send(request.header("origin", "http://unionhall.test"), body.clone())
        });
        for answer in together(asks).await {
            assert!([303, 503].contains(&answer.status.as_u16()), "{answer:?}");
        }
        times[kind].push(begun.elapsed().as_secs_f64());
    }
    told_apart(&times[0], &times[1])
}
