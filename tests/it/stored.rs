//! What a sign-up leaves in the database, and what happens when the database fails.

use serde_json::{Value, json};

use crate::server::{Server, block_on, sign_up};

fn counts(server: &Server) -> [i64; 3] {
    ["people", "sign_ups", "outbox"].map(|table| {
        server.database().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    })
}

#[test]
fn a_sign_up_leaves_a_person_a_record_and_a_mail() {
    block_on(async {
        let server = Server::start_with(&["--mail", "hold"]);
        let key = server.key();
        let code = server.post("/v1/referral-link", &key, sign_up("ben@example.com")).await.good()["code"].clone();
        let body = json!({
            "email": "Ana+Bills@Example.com", "usState": "CA", "categories": { "travel": true, "internet": true },
            "otherComments": "Up\0 in March", "refCode": code,
        });
        server.post("/v1/invite", &key, body.to_string()).await.good();
        let database = server.database();
        let person = database
            .query_row("SELECT email, compared, mailbox, state FROM people WHERE id = 2", [], |row| {
                Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, String>(3)?])
            })
            .unwrap();
        assert_eq!(person, ["Ana+Bills@Example.com", "ana+bills@example.com", "ana@example.com", "invited"]);
        let record = database
            .query_row(
                "SELECT partner, state, us_state, categories, comments, referrer_id, key_id FROM sign_ups",
                [],
                |row| {
                    Ok((
                        [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get::<_, String>(4)?],
                        row.get::<_, i64>(5)?,
                        row.get::<_, String>(6)?,
                    ))
                },
            )
            .unwrap();
        assert_eq!(record.0, ["Acme Assistant", "pending", "CA", "internet,travel", "Up in March"]);
        assert_eq!((record.1, record.2.as_str()), (1, &key[3..11]));
        let mail: (String, String) =
            database.query_row("SELECT kind, recipient FROM outbox", [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(mail, ("confirm".to_owned(), "Ana+Bills@Example.com".to_owned()));
    });
}

#[test]
fn keys_and_secrets_are_nowhere_on_disk() {
    block_on(async {
        let server = Server::start();
        let key = server.key();
        server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
        let secret = &key[12..44];
        for file in std::fs::read_dir(server.data()).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
        }
        use std::os::unix::fs::PermissionsExt;
        for name in ["secret", "unionhall.db", "unionhall.db-wal"] {
            let mode = std::fs::metadata(server.data().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    });
}

/// Another process keeps the database locked for longer than a write waits.
#[test]
fn a_store_that_cannot_commit_is_save_failed_and_nothing_is_half_written() {
    block_on(async {
        let server = Server::start_with(&["--mail", "hold"]);
        let key = server.key();
        server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
        let before = counts(&server);
        let other = server.database();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let (one, two, stats) = tokio::join!(
            server.post("/v1/invite", &key, sign_up("ben@example.com")),
            server.post("/v1/referral-link", &key, sign_up("cleo@example.com")),
            server.get("/v1/stats"),
        );
        one.refused(500, "save_failed");
        two.refused(500, "save_failed");
        stats.good();
        other.execute_batch("ROLLBACK").unwrap();
        assert_eq!(counts(&server), before);
        server.post("/v1/invite", &key, sign_up("ben@example.com")).await.good();
    });
}

#[test]
fn a_store_that_is_away_is_told_and_no_figure_made_up() {
    block_on(async {
        let server = Server::start();
        let key = server.key();
        server.database().execute_batch("ALTER TABLE installation RENAME TO away").unwrap();
        server.database().execute_batch("ALTER TABLE api_keys RENAME TO keys_away").unwrap();
        let stats = server.get("/v1/stats").await;
        stats.refused(503, Value::Null);
        assert!((1..=60).contains(&stats.header("retry-after").parse::<u32>().unwrap()));
        assert_eq!(stats.header("access-control-allow-origin"), "*");
        for path in ["/v1/invite", "/v1/referral-link"] {
            server.post(path, &key, sign_up("ana@example.com")).await.refused(500, "save_failed");
        }
        server.get("/v1/negotiate-categories").await.good();
        server.get("/v1/referral-program").await.good();
        server.database().execute_batch("ALTER TABLE away RENAME TO installation").unwrap();
        server.database().execute_batch("ALTER TABLE keys_away RENAME TO api_keys").unwrap();
        server.get("/v1/stats").await.good();
        server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    });
}

/// The process is ended without warning in the middle of a burst: what was answered is there.
#[test]
fn what_was_answered_survives_a_kill() {
    block_on(async {
        let server = Server::start_with(&["--key-per-minute", "1000000", "--mail", "hold"]);
        let key = server.key();
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
        while answered.lock().unwrap().len() < 200 {
            tokio::task::yield_now().await;
        }
        server.signal("KILL");
        clients.join_all().await;
        let database = server.database();
        let check: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        let sql =
            "SELECT count(*) FROM people JOIN sign_ups ON person_id = people.id JOIN outbox ON sign_up_id = sign_ups.id
                   WHERE compared = ?1";
        for email in answered.lock().unwrap().iter() {
            let rows: i64 = database.query_row(sql, [email], |row| row.get(0)).unwrap();
            assert_eq!(rows, 1, "{email}");
        }
    });
}

/// Credit is for people: the first address of a mailbox that ever joins may bring it, and only if it was referred.
#[test]
fn two_addresses_of_one_mailbox_never_both_earn_credit() {
    block_on(async {
        let server = Server::start();
        let key = server.key();
        let code = server.post("/v1/referral-link", &key, sign_up("ana@example.com")).await.good()["code"].clone();
        let store = unionhall::store::sqlite::SqliteStore::open(&server.data().join("unionhall.db")).unwrap();
        let join = async |email: &str, refer: bool| {
            let body = if refer { json!({ "email": email, "refCode": code }) } else { json!({ "email": email }) };
            assert_eq!(server.post("/v1/invite", &key, body.to_string()).await.good()["refAttributed"], refer);
            let (id, now): (i64, i64) = server
                .database()
                .query_row("SELECT id, created_at FROM sign_ups ORDER BY id DESC", [], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .unwrap();
            use unionhall::store::Store;
            let now = unionhall::domain::time::Timestamp::from_millis(now);
            store.confirm(unionhall::domain::signup::SignUpId(id), None, now).await.unwrap();
            let sql = "SELECT referrer_id IS NOT NULL FROM people WHERE compared = ?1";
            server.database().query_row(sql, [email], |row| row.get::<_, bool>(0)).unwrap()
        };
        assert!(join("ben@example.com", true).await);
        assert!(!join("ben+two@example.com", true).await, "his mailbox has earned it already");
        assert!(!join("cleo@example.com", false).await);
        assert!(!join("cleo+two@example.com", true).await, "she was in before she was referred");
        assert!(join("dora@example.com", true).await);
    });
}
