//! A partner's events: the same as its webhooks tell, page by page, and waiting for the next one.

use super::webhooks::{Receiver, add, listed};
use super::{ask, invite};
use crate::prelude::*;

async fn confirmed(server: &Server, key: &str, name: &str) {
    invite(server, key, name, &format!("{name}@example.com")).await.good();
    server.confirm(server.number("SELECT max(id) FROM sign_ups")).await;
}

async fn events(server: &Server, key: &str, query: &str) -> Value {
    ask(server, key, &format!("/partner/v1/events?{query}")).await.good()
}

fn cursor(page: &Value) -> &str {
    page["cursor"].as_str().unwrap()
}

fn keys(page: &Value) -> Vec<&str> {
    let events = page["events"].as_array().unwrap();
    events.iter().map(|event| event["data"]["idempotencyKey"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_those_of_the_webhooks_page_by_page() {
    let ((server, key), receiver) = (Server::with_key(&[]), Receiver::start().await);
    confirmed(&server, &key, "early").await;
    for path in ["/ok", "/later", "/gone"] {
        add(&server, &receiver, path);
    }
    confirmed(&server, &key, "one").await;
    wait_for!(async || {
        listed(&server).iter().all(|one| one["deliveredAt"].is_string() || one["lastError"].is_string())
    })
    .await;
    let page = events(&server, &key, "").await;
    assert_eq!((keys(&page), &page["hasMore"]), (vec!["early", "one"], &false.into()));
    assert_eq!(page["events"][0]["deliveries"], json!([]), "there was no endpoint");
    let message = &receiver.at("/ok")[0];
    let mut event = page["events"][1].clone();
    assert_eq!(event["id"], message.headers["webhook-id"]);
    let deliveries = event["deliveries"].take();
    let event = event.as_object_mut().unwrap();
    event.remove("deliveries");
    event.remove("id");
    assert_eq!(Value::from(event.clone()), serde_json::from_str::<Value>(&message.body).unwrap());
    assert_eq!((&event["type"], &event["mode"]), (&json!("sign_up.confirmed"), &json!("live")));
    let [ok, later, gone] = [0, 1, 2].map(|n| &deliveries[n]);
    assert_eq!((&ok["endpoint"], &ok["lastStatus"]), (&json!("1"), &json!(200)));
    assert!(ok["deliveredAt"].is_string() && ok["lastAttemptAt"].is_string() && ok["nextAttemptAt"].is_null());
    assert_eq!((&later["lastStatus"], &later["deliveredAt"]), (&json!(429), &Value::Null));
    assert!(later["nextAttemptAt"].is_string());
    assert_eq!((&gone["lastStatus"], &gone["nextAttemptAt"]), (&json!(410), &Value::Null), "it is disabled");
    let refused = server.try_run(&["webhooks", "resend", "3", "one"]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("endpoint 3 is disabled") && told.contains("webhooks recover 3"), "{told}");

    confirmed(&server, &key, "two").await;
    let first = events(&server, &key, "limit=2").await;
    assert_eq!((keys(&first), &first["hasMore"]), (vec!["early", "one"], &true.into()));
    let rest = events(&server, &key, &format!("limit=2&after={}", cursor(&first))).await;
    assert_eq!((keys(&rest), &rest["hasMore"]), (vec!["two"], &false.into()));
    let end = events(&server, &key, &format!("after={}", cursor(&rest))).await;
    assert_eq!((keys(&end).len(), cursor(&end)), (0, cursor(&rest)), "the cursor is always there");

    let other = server.run(&["keys", "issue", "Zoe"]);
    assert!(keys(&events(&server, &other, "").await).is_empty());
    let refused = async |key: &str, query: &str| {
        ask(&server, key, &format!("/partner/v1/events?{query}")).await.refused(400, "invalid_submission")
    };
    for (key, after) in [(&other, cursor(&rest)), (&key, "nonsense")] {
        let told = refused(key, &format!("after={after}")).await;
        assert!(
            told.starts_with("after: this is not a cursor of your events") && told.contains("without it"),
            "{told}"
        );
    }
    let told = refused(&key, "wait=31&limit=101").await;
    assert!(told.contains("wait: write a whole number of seconds from 0 to 30") && told.contains("limit: "), "{told}");
    server.execute("DELETE FROM partner_events WHERE position <= 3");
    server.execute("UPDATE partners SET events_deleted = 3 WHERE name = 'Acme Assistant'");
    let told = refused(&key, &format!("after={}", cursor(&first))).await;
    assert!(told.contains("older than 30 days and were deleted; begin again without it"), "{told}");
    assert_eq!(keys(&events(&server, &key, &format!("after={}", cursor(&rest))).await).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_waits_for_the_next_event() {
    let server = Arc::new(Watched::start(&[], &[]));
    let key = server.key();
    invite(&server, &key, "one", "one@example.com").await.good();
    let wait = |seconds: u32| {
        let (server, key) = (Arc::clone(&server), key.clone());
        tokio::spawn(async move { events(&server, &key, &format!("wait={seconds}")).await })
    };
    // Whoever comes third is answered at once, and asks again.
    let asked_again = Arc::new(AtomicU32::new(0));
    let waits = || {
        let (server, key, asked_again) = (Arc::clone(&server), key.clone(), Arc::clone(&asked_again));
        tokio::spawn(async move {
            loop {
                let page = events(&server, &key, "wait=30").await;
                if !keys(&page).is_empty() {
                    return page;
                }
                asked_again.fetch_add(1, Ordering::SeqCst);
                // Below the limit of a minute.
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        })
    };
    let waiting = [waits(), waits()];
    wait_for!(async || {
        // Both of them come before, if they are not there yet.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = asked_again.load(Ordering::SeqCst);
        assert!(keys(&wait(6).await.unwrap()).is_empty());
        // Neither made way for it, nor did it outlast them: it did not wait.
        asked_again.load(Ordering::SeqCst) == before
    })
    .await;
    server.confirm(1).await;
    for waiting in waiting {
        let page = in_time("the event", waiting).await.unwrap();
        assert_eq!(keys(&page), ["one"]);
    }
    let page = wait(30).await.unwrap();
    assert_eq!(keys(&page), ["one"], "what is there is not waited for");
    let spent =
        async || server.figures().await[r#"unionhall_request_duration_seconds_sum{route="/partner/v1/events"}"#];
    let (begun, before) = (tokio::time::Instant::now(), spent().await);
    let empty = events(&server, &key, &format!("wait=4&after={}", cursor(&page))).await;
    assert_eq!((keys(&empty).len(), &empty["hasMore"], cursor(&empty)), (0, &false.into(), cursor(&page)));
    assert!(begun.elapsed() >= Duration::from_secs(4), "it waited");
    assert!(spent().await - before < 4.0, "and that is no latency");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_every_wait() {
    let (server, key) = Server::with_key(&[]);
    let mut connection = server.connect(std::net::Ipv4Addr::LOCALHOST).await;
    let request = Request::get("/partner/v1/events?wait=30").header("authorization", format!("Bearer {key}"));
    let waiting = tokio::spawn(async move { connection.send(request, "").await });
    // It is there once its key was used.
    let used = "SELECT count(*) FROM api_keys WHERE last_used_at IS NOT NULL";
    wait_for!(async || server.number(used) == 1).await;
    let stopped = tokio::task::spawn_blocking(move || server.stop());
    // A connection that is not answered by then is cut off.
    let page = in_time("the answer at the end", waiting).await.unwrap().good();
    assert!(keys(&page).is_empty() && !cursor(&page).is_empty());
    assert_eq!(stopped.await.unwrap().0, Some(0));
}

/// Before, nothing was closed for a quarter of an hour after a start.
#[tokio::test(flavor = "multi_thread")]
async fn a_sign_up_is_closed_in_time_after_a_start_too() {
    let (server, key) = Server::with_key(&[]);
    invite(&server, &key, "one", "one@example.com").await.good();
    invite(&server, &key, "two", "two@example.com").await.good();
    server.execute("UPDATE idempotency_keys SET closes_at = created_at WHERE key = 'one'");
    let server = Server::start_in(server.stop().1, &[]);
    let page = events(&server, &key, "wait=30").await;
    assert_eq!((keys(&page), &page["events"][0]["type"]), (vec!["one"], &json!("sign_up.closed")));
    // And while it runs.
    server.execute("UPDATE idempotency_keys SET closes_at = created_at WHERE key = 'two'");
    let page = events(&server, &key, &format!("wait=30&after={}", cursor(&page))).await;
    assert_eq!(keys(&page), ["two"]);
    // A late button changes nothing.
    server.confirm(1).await;
    assert_eq!(ask(&server, &key, "/partner/v1/sign-ups/one").await.good()["status"], "closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_hears_of_other_nodes() {
    needs!(Postgres, Redis);
    let one = Server::start_in(Home::on_postgres(tempfile::tempdir().unwrap()), &["--base-url", "https://u.example"]);
    let two = Server::start_in(Home::sharing(one.records()), &["--base-url", "https://u.example"]);
    let key = one.key();
    invite(&one, &key, "one", "one@example.com").await.good();
    let waits = |mut connection: Connection, key: &str| {
        let request = Request::get("/partner/v1/events?wait=30").header("authorization", format!("Bearer {key}"));
        tokio::spawn(async move { connection.send(request, "").await })
    };
    let here = std::net::Ipv4Addr::LOCALHOST;
    // Another, who came before and hears nothing, waits for longer.
    let other = waits(one.connect(here).await, &one.run(&["keys", "issue", "Zoe"]));
    let used =
        "SELECT count(*) FROM api_keys WHERE last_used_at IS NOT NULL AND id <> (SELECT min(key_id) FROM sign_ups)";
    wait_for!(async || one.number(used) == 1).await;
    let waiting = waits(one.connect(here).await, &key);
    two.confirm(1).await;
    let page = in_time("the event", waiting).await.unwrap().good();
    assert_eq!(keys(&page), ["one"]);
    assert!(!other.is_finished());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_keys_events_are_those_of_the_sandbox() {
    let server = Server::start();
    let (live, test) = (server.key(), server.run(&["keys", "issue", "Acme Assistant", "--test"]));
    wait_for!(async || ask(&server, &test, "/partner/v1/events").await.status == 200).await;
    invite(&server, &test, "one", "confirm@simulator.test").await.good();
    let page = events(&server, &test, "wait=30").await;
    assert_eq!((keys(&page), &page["events"][0]["mode"]), (vec!["one"], &json!("test")));
    assert!(keys(&events(&server, &live, "").await).is_empty());
    let path = format!("/partner/v1/events?after={}", cursor(&page));
    ask(&server, &live, &path).await.refused(400, "invalid_submission");
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_ups_are_listed_by_status_and_from_any_offset_on() {
    let (server, key) = Server::with_key(&[]);
    for name in ["a", "b", "c", "d"] {
        invite(&server, &key, name, &format!("{name}@example.com")).await.good();
    }
    server.confirm(2).await;
    server.confirm(4).await;
    server.execute("UPDATE idempotency_keys SET closes_at = created_at WHERE key = 'c'");
    let list = async |query: &str| {
        let page = ask(&server, &key, &format!("/partner/v1/sign-ups?{query}")).await.good();
        let listed = page["signUps"].as_array().unwrap().iter();
        let listed: Vec<_> = listed.map(|one| one["idempotencyKey"].as_str().unwrap().to_owned()).collect();
        (listed.concat(), page["nextCursor"].as_str().map(str::to_owned))
    };
    for (status, expected) in [("pending", "a"), ("confirmed", "bd"), ("closed", "c")] {
        assert_eq!(list(&format!("status={status}")).await, (expected.to_owned(), None));
    }
    let (first, next) = list("status=confirmed&limit=1").await;
    assert_eq!(first, "b");
    assert_eq!(list(&format!("status=confirmed&limit=1&cursor={}", next.unwrap())).await, ("d".to_owned(), None));
    let told = ask(&server, &key, "/partner/v1/sign-ups?status=declined").await.refused(400, "invalid_submission");
    assert!(told.contains("status: write pending, confirmed or closed"), "{told}");

    server.execute("UPDATE idempotency_keys SET created_at = 1790000000000 WHERE key <> 'd'");
    server.execute("UPDATE idempotency_keys SET created_at = 1790000000001 WHERE key = 'd'");
    // The same moment each time, and a plus that nobody escaped.
    for since in ["2026-09-21T14:13:20.001Z", "2026-09-21T16:13:20.001%2B02:00", "2026-09-21T16:13:20.001+02:00"] {
        assert_eq!(list(&format!("since={since}")).await.0, "d", "{since}");
    }
    assert_eq!(list("since=2026-09-21T10:13:20-04:00").await.0, "abcd");
    // However few have a status, a page looks at a thousand.
    server.execute(
        "INSERT INTO idempotency_keys (partner_id, key, operation, input, link, created_at, closes_at)
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
         SELECT 1, 'n' || i, 'sign_up', 'x', 'x', 1780000000000 + i, 4000000000000 FROM n",
    );
    let (none, next) = list("status=confirmed").await;
    assert_eq!((&*none, next.as_deref()), ("", Some("n1000")));
    assert_eq!(list("status=confirmed&cursor=n1000").await, ("bd".to_owned(), None));
}
