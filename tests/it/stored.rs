//! What a sign-up leaves in the database, and what happens when the database fails.

use crate::prelude::*;

fn counts(server: &Server) -> [i64; 3] {
    ["people", "sign_ups", "outbox"].map(|table| server.number(&format!("SELECT count(*) FROM {table}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_up_leaves_a_person_a_record_and_a_mail() {
    let (server, key) = Server::with_key(&["--mail", "hold"]);
    let code = server.post("/v1/referral-link", &key, sign_up("ben@example.com")).await.good()["code"].clone();
    let body = json!({
        "email": "Ana+Bills@Example.com", "usState": "CA", "categories": { "travel": true, "internet": true },
        "otherComments": "Up\0 in March", "refCode": code,
    });
    server.post("/v1/invite", &key, body.to_string()).await.good();
    let people = server.rows("SELECT email, email_normalized, mailbox, state, id FROM people ORDER BY id");
    let [ben, ana] = &people[..] else { panic!("{people:?}") };
    assert_eq!(ana[..4], ["Ana+Bills@Example.com", "ana+bills@example.com", "ana@example.com", "invited"]);
    let sql = "SELECT person_id, referrer_id, key_id, (SELECT name FROM partners WHERE id = partner_id), state, us_state, categories, comments
               FROM sign_ups";
    let answers = ["Acme Assistant", "pending", "CA", "internet,travel", "Up in March"];
    assert_eq!(server.rows(sql), [[&[ana[4].as_str(), &ben[4], &key[3..11]], &answers[..]].concat()]);
    let mail = server.rows("SELECT kind, recipient FROM outbox");
    assert_eq!(mail, [["confirm", "Ana+Bills@Example.com"]]);
}

/// Again while pending: what is sent replaces, what is left out stays; and the answer tells of its own request alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_merges_into_the_pending_sign_up() {
    let (server, key) = Server::with_key(&["--mail", "hold", "--key-per-minute", "1000"]);
    let code = async |email: &str| {
        server.post("/v1/referral-link", &key, sign_up(email)).await.good()["code"].as_str().unwrap().to_owned()
    };
    let (ben, cleo, own) =
        (code("ben@example.com").await, code("cleo@example.com").await, code("ana@example.com").await);
    let send = async |mut fields: Value| {
        fields["email"] = json!("ana@example.com");
        let answer = server.post("/v1/invite", &key, fields.to_string()).await.good();
        let sql = "SELECT us_state, categories, comments, (SELECT p.code FROM people p WHERE p.id = s.referrer_id)
                   FROM sign_ups s";
        let rows = server.rows(sql);
        assert_eq!(rows.len(), 1, "one sign-up, whatever is repeated");
        (rows[0].join("|"), answer["selectedSavingsTotal"] == 0, answer["refAttributed"].as_bool().unwrap())
    };
    let kept = |state: &str, categories: &str, comments: &str, referrer: &str| {
        format!("{state}|{categories}|{comments}|{referrer}")
    };
    let first =
        json!({ "usState": "CA", "categories": { "travel": true }, "otherComments": "in March", "refCode": ben });
    assert_eq!(send(first).await, (kept("CA", "travel", "in March", &ben), false, true));
    assert_eq!(send(json!({})).await, (kept("CA", "travel", "in March", &ben), true, false));
    for nobodys in ["000000000000", "nonsense", "", &own] {
        assert_eq!(send(json!({ "refCode": nobodys })).await, (kept("CA", "travel", "in March", &ben), true, false));
    }
    let other = json!({ "categories": { "internet": true }, "refCode": cleo });
    assert_eq!(send(other).await, (kept("CA", "internet", "in March", &cleo), false, true));
    assert_eq!(send(json!({ "categories": {} })).await, (kept("CA", "", "in March", &cleo), true, false));
    assert_eq!(send(json!({ "otherComments": "" })).await, (kept("CA", "", "", &cleo), true, false));
    assert_eq!(send(json!({ "usState": "NY" })).await, (kept("NY", "", "", &cleo), true, false));
    assert_eq!(server.number("SELECT count(*) FROM outbox"), 1);
}

/// Another process keeps the database locked for longer than a write waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_commit_is_save_failed_and_nothing_is_half_written() {
    let (server, key) = Server::with_key(&["--mail", "hold"]);
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    let before = counts(&server);
    let held = server.hold();
    let (one, two, stats) = tokio::join!(
        server.post("/v1/invite", &key, sign_up("ben@example.com")),
        server.post("/v1/referral-link", &key, sign_up("cleo@example.com")),
        server.get("/v1/stats"),
    );
    one.refused(500, "save_failed");
    two.refused(500, "save_failed");
    stats.good();
    drop(held);
    assert_eq!(counts(&server), before);
    server.post("/v1/invite", &key, sign_up("ben@example.com")).await.good();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_is_told_and_no_figure_made_up() {
    let (server, key) = Server::with_key(&[]);
    server.execute("ALTER TABLE installation RENAME TO away; ALTER TABLE api_keys RENAME TO keys_away");
    let stats = server.get("/v1/stats").await;
    stats.refused(503, Value::Null);
    assert!((1..=60).contains(&stats.header("retry-after").parse::<u32>().unwrap()));
    assert_eq!(stats.header("access-control-allow-origin"), "*");
    for path in ["/v1/invite", "/v1/referral-link"] {
        server.post(path, &key, sign_up("ana@example.com")).await.refused(500, "save_failed");
    }
    server.get("/v1/negotiate-categories").await.good();
    server.get("/v1/referral-program").await.good();
    server.execute("ALTER TABLE away RENAME TO installation; ALTER TABLE keys_away RENAME TO api_keys");
    server.get("/v1/stats").await.good();
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
}

/// The process is ended without warning in the middle of a burst: what was answered is there.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_survives_a_kill() {
    let (server, key) = Server::with_key(&["--key-per-minute", "1000000", "--mail", "hold"]);
    let answered = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..8 {
        let (key, answered) = (key.clone(), std::sync::Arc::clone(&answered));
        let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        clients.spawn(async move {
            for i in 0.. {
                let email = format!("u{client}-{i}@example.com");
                let request = hyper::Request::post("/v1/invite")
                    .header("host", "test")
                    .header("authorization", format!("Bearer {key}"))
                    .body(http_body_util::Full::new(bytes::Bytes::from(sign_up(&email))))
                    .unwrap();
                match sender.send_request(request).await {
                    Ok(response) if response.status() == 200 => answered.lock().unwrap().push(email),
                    _ => return,
                }
            }
        });
    }
    crate::server::wait_for!(async || answered.lock().unwrap().len() >= 200).await;
    server.signal("KILL");
    clients.join_all().await;
    assert!(server.records().are_sound());
    let whole = "SELECT email_normalized FROM people JOIN sign_ups ON person_id = people.id
                 JOIN outbox ON sign_up_id = sign_ups.id";
    let mut kept = HashMap::<_, u32>::new();
    for row in server.rows(whole) {
        *kept.entry(row[0].clone()).or_default() += 1;
    }
    for email in answered.lock().unwrap().iter() {
        assert_eq!(kept.get(email), Some(&1), "{email}");
    }
}

/// Credit is for people: the first address of a mailbox that ever joins may bring it, and only if it was referred.
#[tokio::test(flavor = "multi_thread")]
async fn two_addresses_of_one_mailbox_never_both_earn_credit() {
    let (server, key) = Server::with_key(&[]);
    let code = server.post("/v1/referral-link", &key, sign_up("ana@example.com")).await.good()["code"].clone();
    let join = async |email: &str, refer: bool| {
        let body = if refer { json!({ "email": email, "refCode": code }) } else { json!({ "email": email }) };
        assert_eq!(server.post("/v1/invite", &key, body.to_string()).await.good()["refAttributed"], refer);
        let newest = server.number("SELECT max(id) FROM sign_ups");
        assert_eq!(server.confirm(newest).await.status, 200);
        server.number(&format!("SELECT count(referrer_id) FROM people WHERE email_normalized = '{email}'")) == 1
    };
    assert!(join("ben@example.com", true).await);
    assert!(!join("ben+two@example.com", true).await, "his mailbox has earned it already");
    assert!(!join("cleo@example.com", false).await);
    assert!(!join("cleo+two@example.com", true).await, "she was in before she was referred");
    assert!(join("dora@example.com", true).await);
    assert!(!join("eve@any.mailinator.com", true).await, "an address that is thrown away earns nobody anything");
    assert!(join("fay@proton.me", true).await);
    assert!(!join("f.a.y+two@pm.me", true).await, "her provider's other name for the same mailbox");
}

mod once {
    use super::*;

    /// All of 50 sign-ups were acknowledged, and none was there afterwards.
    #[tokio::test(flavor = "multi_thread")]
    async fn nothing_is_acknowledged_that_a_removed_or_replaced_file_takes() {
        let (server, key) = Server::with_key(&["--mail", "hold", "--key-per-minute", "1000"]);
        server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
        let (file, kept) = (server.data().join("unionhall.db"), server.data().join("kept.db"));
        std::fs::rename(&file, &kept).unwrap();
        for replaced in [false, true] {
            if replaced {
                std::fs::copy(&kept, &file).unwrap();
            }
            for n in 0..10 {
                let answer = server.post("/v1/invite", &key, sign_up(&format!("p{n}@example.com"))).await;
                holds(&answer.refused(500, "save_failed"), &["Nothing was changed"]);
            }
            let ready = async || server.get("/readyz").await.status == 503;
            crate::server::wait_for!(ready).await;
        }
        wait_for!(async || server.log().contains("the database file was moved or deleted")).await;
        // Back in its place it is the same file.
        std::fs::rename(&kept, &file).unwrap();
        server.post("/v1/invite", &key, sign_up("ben@example.com")).await.good();
        assert_eq!(server.number("SELECT count(*) FROM people"), 2);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn keys_and_secrets_are_nowhere_on_disk() {
        let (server, key) = Server::with_key(&[]);
        server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
        let secret = &key[12..44];
        for file in std::fs::read_dir(server.data()).unwrap() {
            // The folder of the mailbox is there once a mail has left.
            let path = file.unwrap().path();
            let bytes = if path.is_file() { std::fs::read(path).unwrap() } else { continue };
            assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
        }
        use std::os::unix::fs::PermissionsExt;
        for name in ["secret", "unionhall.db", "unionhall.db-wal"] {
            let mode = std::fs::metadata(server.data().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
}
