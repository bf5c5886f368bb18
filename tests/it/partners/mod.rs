//! What partners gain beside the contract: safe retries, what came of a sign-up, webhooks.

use crate::prelude::*;

mod controls;
mod events;
mod once;
mod self_service;
pub(crate) mod webhooks;

pub(crate) async fn invite(server: &Server, key: &str, name: &str, email: &str) -> Answer {
    send(server, key, "/v1/invite", name, sign_up(email)).await
}

async fn send(server: &Server, key: &str, path: &str, name: &str, body: String) -> Answer {
    let request = Request::post(path).header("authorization", format!("Bearer {key}"));
    server.send(request.header("content-type", "application/json").header("idempotency-key", name), body).await
}

pub(crate) async fn ask(server: &Server, key: &str, path: &str) -> Answer {
    server.send(Request::get(path).header("authorization", format!("Bearer {key}")), "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_is_answered_byte_for_byte_and_mails_nobody() {
    let (server, key) = Server::with_key(&[]);
    let body = |email: &str| json!({ "email": email, "categories": { "internet": true } }).to_string();
    let first = send(&server, &key, "/v1/invite", "order-1", body("ana@example.com")).await;
    first.good();
    assert_eq!(first.header("idempotency-replayed"), "");
    // Somebody joins, so that the figure in the answer would be another today.
    server.confirm(server.number("SELECT id FROM sign_ups")).await;
    let mails = || server.number("SELECT count(*) FROM sign_ups WHERE mailed_at IS NOT NULL");
    let before = mails();
    for name in ["order-1", "\"order-1\"", "  order-1"] {
        let again = send(&server, &key, "/v1/invite", name, body("ana@example.com")).await;
        assert_eq!((again.status, &again.body), (first.status, &first.body), "{name}");
        assert_eq!(again.header("idempotency-replayed"), "true");
    }
    assert_eq!((mails(), server.number("SELECT count(*) FROM outbox")), (before, 0));
    let plain = server.post("/v1/invite", &key, body("ana@example.com")).await;
    assert_ne!(plain.body, first.body, "without a name it is asked anew");

    for other in
        [body("ben@example.com"), json!({ "email": "ana@example.com" }).to_string(), sign_up("Ana@example.com")]
    {
        let refused = send(&server, &key, "/v1/invite", "order-1", other).await.refused(400, "invalid_submission");
        assert!(refused.starts_with("Idempotency-Key: it was used before with another input. "), "{refused}");
    }
    let refused = send(&server, &key, "/v1/referral-link", "order-1", sign_up("ana@example.com")).await;
    refused.refused(400, "invalid_submission");
    let link = send(&server, &key, "/v1/referral-link", "link-1", sign_up("ana@example.com")).await;
    let again = send(&server, &key, "/v1/referral-link", "link-1", sign_up("ana@example.com")).await;
    assert_eq!((link.good(), &link.body), (again.good(), &again.body));
    assert_eq!(again.header("idempotency-replayed"), "true");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_name_is_told_with_every_other_mistake_and_counts() {
    let (server, key) = Server::with_key(&[]);
    for bad in ["two words", "\"open", "", "é", &"k".repeat(256)] {
        let request = Request::post("/v1/invite").header("authorization", format!("Bearer {key}"));
        let request =
            request.header("idempotency-key", hyper::header::HeaderValue::from_bytes(bad.as_bytes()).unwrap());
        let told =
            server.send(request, r#"{"email": "nobody", "usState": null}"#).await.refused(400, "invalid_submission");
        holds(&told, &["Idempotency-Key: send it once", "email: the address has no @", "usState: null"]);
    }
    let request = Request::post("/v1/invite").header("authorization", format!("Bearer {key}"));
    let twice = request.header("idempotency-key", "a").header("idempotency-key", "a");
    server.send(twice, sign_up("ana@example.com")).await.refused(400, "invalid_submission");
    let broken = Request::post("/v1/invite").header("authorization", format!("Bearer {key}"));
    server.send(broken.header("idempotency-key", "a b"), "{").await.refused(400, "invalid_json");
    assert_eq!(server.number("SELECT count(*) FROM idempotency_keys"), 0, "errors are not kept");
    assert_eq!(server.number("SELECT count(*) FROM people"), 0);
    // Repeats draw on the limit like anything else.
    invite(&server, &key, "k", "ana@example.com").await.good();
    let left = |answer: &Answer| {
        answer.header("ratelimit").split(";r=").nth(1).unwrap().split(';').next().unwrap().parse::<u32>().unwrap()
    };
    let one = invite(&server, &key, "k", "ana@example.com").await;
    let two = invite(&server, &key, "k", "ana@example.com").await;
    assert_eq!(left(&one), left(&two) + 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_repeats_at_once_are_one_sign_up_one_mail_one_answer() {
    let server = Arc::new(Server::start());
    let key = server.run(&["keys", "issue", "Acme Assistant", "--per-minute", "1000"]);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let (server, key) = (Arc::clone(&server), key.clone());
        tasks.spawn(async move { invite(&server, &key, "order-1", "ana@example.com").await });
    }
    let answers = tasks.join_all().await;
    let body = &answers[0].body;
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.body == *body), "{answers:?}");
    let firsts = answers.iter().filter(|answer| answer.header("idempotency-replayed").is_empty()).count();
    assert_eq!(firsts, 1);
    assert_eq!(server.number("SELECT count(*) FROM sign_ups"), 1);
    let folder = server.data().join("mailbox");
    crate::server::wait_for!(async || { server.number("SELECT count(*) FROM outbox") == 0 }).await;
    let mails = std::fs::read_dir(folder)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|kind| kind == "eml"));
    assert_eq!(mails.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_outlives_a_crash_and_the_key_it_was_sent_with() {
    let (server, key) = Server::with_key(&[]);
    let first = invite(&server, &key, "order-1", "ana@example.com").await;
    server.signal("KILL");
    let site = format!("http://{}", server.address);
    let server = Server::start_in(server.into_home(), &["--join-site", "https://elsewhere.example"]);
    let again = invite(&server, &key, "order-1", "ana@example.com").await;
    assert_eq!((again.status, &again.body), (first.status, &first.body), "{site} and not elsewhere");

    let id = key.split('_').nth(1).unwrap();
    let successor = server.run(&["keys", "rotate", id, "--grace", "0s"]);
    let again = invite(&server, &successor, "order-1", "ana@example.com").await;
    assert_eq!((again.body, again.headers.contains_key("idempotency-replayed")), (first.body.clone(), true));
    let other = server.run(&["keys", "issue", "Zoe"]);
    let theirs = invite(&server, &other, "order-1", "ana@example.com").await;
    assert!(!theirs.headers.contains_key("idempotency-replayed"), "another partner's names are its own");
    ask(&server, &successor, "/partner/v1/sign-ups/order-1").await.good();
    assert_eq!(server.number("SELECT count(*) FROM sign_ups"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_share_the_names() {
    needs!(Postgres, Redis);
    let one = Server::start_in(Home::on_postgres(tempfile::tempdir().unwrap()), &["--base-url", "https://u.example"]);
    let two = Server::start_in(Home::sharing(one.records()), &["--base-url", "https://u.example"]);
    let key = one.run(&["keys", "issue", "Acme Assistant", "--per-minute", "1000"]);
    let nodes = [Arc::new(one), Arc::new(two)];
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..64 {
        let (server, key) = (Arc::clone(&nodes[n % 2]), key.clone());
        tasks.spawn(async move { invite(&server, &key, "order-1", "ana@example.com").await });
    }
    let answers = tasks.join_all().await;
    let body = &answers[0].body;
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.body == *body), "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| answer.header("idempotency-replayed").is_empty()).count(), 1);
    assert_eq!(nodes[0].number("SELECT count(*) FROM sign_ups"), 1);
}

/// Whatever an address is, a partner learns the same of it until the seventh day, and after it.
#[tokio::test(flavor = "multi_thread")]
async fn statuses_tell_nothing_about_an_address_that_the_partner_did_not_cause() {
    let (server, key) = Server::with_key(&[]);
    let id = |email: &str| {
        server.number(&format!(
            "SELECT max(s.id) FROM sign_ups s JOIN people p ON p.id = s.person_id WHERE p.email = '{email}'"
        ))
    };
    // A member by another source, one who declines, one whom no mail reaches, one who leaves, one who is erased.
    server.post("/v1/invite", &key, sign_up("member@example.com")).await.good();
    server.confirm(id("member@example.com")).await;
    server.execute("INSERT INTO people (email, email_normalized, mailbox, code, state, created_at, undeliverable_until) VALUES ('gone@example.com', 'gone@example.com', 'gone@example.com', '0123456789ab', 'invited', 0, 4000000000000)");
    let kinds = ["new", "member", "declined", "gone", "erased"];
    for kind in kinds {
        invite(&server, &key, kind, &format!("{kind}@example.com")).await.good();
    }
    server.decline(id("declined@example.com")).await;
    server.run(&["members", "erase", "erased@example.com"]);
    server.execute("UPDATE idempotency_keys SET created_at = 1790000000000, closes_at = created_at + 604800000");
    let at = |created: &str| {
        server
            .execute(&format!("UPDATE idempotency_keys SET created_at = {created}, closes_at = {created} + 604800000"));
    };
    let now = "(SELECT max(created_at) FROM sign_ups)";
    for (created, status) in [(format!("{now} - 604700000"), "pending"), (format!("{now} - 604800000"), "closed")] {
        at(&created);
        let mut told = Vec::new();
        for kind in kinds {
            let answer = ask(&server, &key, &format!("/partner/v1/sign-ups/{kind}")).await;
            assert_eq!(answer.good()["status"], status, "{kind}");
            told.push(answer.text().replace(&format!("\"{kind}\""), "\"key\""));
        }
        assert!(told.iter().all(|one| *one == told[0]), "{told:#?}");
    }
    // Only a button that is pressed in time changes it.
    at(&format!("{now} - 604700000"));
    server.confirm(id("new@example.com")).await;
    let answer = ask(&server, &key, "/partner/v1/sign-ups/new").await.good();
    assert_eq!(answer["status"], "confirmed");
    assert!(answer["confirmedAt"].as_str().unwrap().starts_with("20"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partner_sees_its_own_page_by_page_and_nobody_elses() {
    let server = Server::start();
    let (key, other) = (server.key(), server.run(&["keys", "issue", "Zoe"]));
    for n in 0..5 {
        invite(&server, &key, &format!("a/b?{n}"), &format!("p{n}@example.com")).await.good();
    }
    send(&server, &key, "/v1/referral-link", "link", sign_up("p0@example.com")).await.good();
    server.post("/v1/invite", &key, sign_up("nameless@example.com")).await.good();
    let escaped = "/partner/v1/sign-ups/a%2Fb%3F3";
    assert_eq!(ask(&server, &key, escaped).await.good()["idempotencyKey"], "a/b?3");
    for (who, path) in [(&other, escaped), (&key, "/partner/v1/sign-ups/link"), (&key, "/partner/v1/sign-ups/none")] {
        let told = ask(&server, who, path).await.refused(404, serde_json::Value::Null);
        assert!(told.starts_with("No sign-up of yours has this Idempotency-Key"), "{told}");
    }
    let (mut seen, mut query) = (Vec::new(), "limit=2".to_owned());
    loop {
        let page = ask(&server, &key, &format!("/partner/v1/sign-ups?{query}")).await.good();
        let page_of = page["signUps"].as_array().unwrap();
        seen.extend(page_of.iter().map(|one| one["idempotencyKey"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        assert_eq!(page_of.len(), 2);
        query = format!(
            "limit=2&cursor={}",
            percent_encoding::utf8_percent_encode(cursor, percent_encoding::NON_ALPHANUMERIC)
        );
    }
    assert_eq!(seen, ["a/b?0", "a/b?1", "a/b?2", "a/b?3", "a/b?4"]);
    let none = ask(&server, &key, "/partner/v1/sign-ups?since=2100-01-01").await.good();
    assert_eq!(none, json!({ "ok": true, "signUps": [] }));
    assert_eq!(ask(&server, &other, "/partner/v1/sign-ups").await.good()["signUps"], json!([]));
    let said = ask(&server, &key, "/partner/v1/sign-ups?cursor=none").await.refused(400, "invalid_submission");
    assert!(said.contains("begin again without it"), "{said}");
    let told =
        ask(&server, &key, "/partner/v1/sign-ups?limit=0&since=now&page=2").await.refused(400, "invalid_submission");
    holds(
        &told,
        &["3 mistakes", "limit: a page holds 1 to 100", "since: \"now\" is not a date", "page: unknown field"],
    );
    ask(&server, "nonsense", "/partner/v1/sign-ups").await.refused(401, "agent_unauthorized");
    let answer = ask(&server, &key, escaped).await;
    assert!(answer.header("ratelimit-policy").starts_with("\"partner\";q=60;w=60"), "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_person_reads_what_the_partner_may_learn() {
    let (server, key) = Server::with_key(&[]);
    invite(&server, &key, "one", "ana@example.com").await.good();
    let told = "If you confirm, we may tell Acme Assistant that you did, and nothing else about it.";
    let page = server.get(&server.confirm_path(1)).await;
    assert!(page.text().contains(told));
    let folder = server.data().join("mailbox");
    crate::server::wait_for!(async || { server.number("SELECT count(*) FROM outbox") == 0 }).await;
    let mails: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    let read = |mail: &Vec<u8>| {
        let message = mail_parser::MessageParser::default().parse(mail).unwrap();
        message.body_text(0).unwrap_or_default().replace('\n', " ")
    };
    assert!(mails.iter().any(|mail| read(mail).contains(told)), "{:?}", mails.iter().map(read).collect::<Vec<_>>());
}
