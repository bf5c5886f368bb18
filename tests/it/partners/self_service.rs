//! What partners do themselves over the API: their webhook endpoints, their keys, their figures by day.

use hyper::Method;

use super::webhooks::{Receiver, confirmed, is_signed, listed};
use super::{ask, invite};
use crate::prelude::*;

const HOOKS: &str = "/partner/v1/webhooks";

async fn act(server: &Server, key: &str, method: Method, path: &str, body: &Value) -> Answer {
    let request = Request::builder().method(method).uri(path).header("authorization", format!("Bearer {key}"));
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.send(request.header("content-type", "application/json"), body).await
}

async fn post(server: &Server, key: &str, path: &str, body: Value) -> Answer {
    act(server, key, Method::POST, path, &body).await
}

async fn add(server: &Server, key: &str, url: &str) -> Answer {
    post(server, key, HOOKS, json!({ "url": url })).await
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// What a partner is refused with names nothing of the operator's.
#[track_caller]
fn refused(answer: &Answer, status: u16, code: impl Into<Value>) -> String {
    let told = answer.refused(status, code);
    for word in ["unionhall", "UNIONHALL", "--"] {
        assert!(!told.contains(word), "{told}");
    }
    told
}

/// The mails about changes that left, as JSON.
fn mails(server: &Server) -> Vec<Value> {
    let files = std::fs::read_dir(server.data().join("mailbox")).into_iter().flatten().map(|file| file.unwrap().path());
    let changes = files.filter(|path| {
        path.to_string_lossy().contains("change-") && path.extension().is_some_and(|kind| kind == "json")
    });
    changes.map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partner_keeps_its_own_endpoints() {
    let (server, receiver) = (Server::start(), Receiver::start().await);
    let (key, zoe) = (server.key(), server.run(&["keys", "issue", "Zoe"]));
    server.run(&["partners", "contact", "Acme Assistant", "ops@acme.example"]);
    assert_eq!(ask(&server, &key, HOOKS).await.good(), json!({ "ok": true, "webhooks": [], "max": 10 }));
    let added = add(&server, &key, &receiver.url("/ok")).await;
    assert_eq!(added.header("cache-control"), "no-store");
    let added = added.good();
    let (id, first) = (text(&added["id"]).to_owned(), text(&added["secret"]).to_owned());
    let said = refused(&add(&server, &key, &receiver.url("/ok")).await, 400, "invalid_submission");
    assert!(said.contains(&format!("your endpoint {id} already")), "{said}");
    let told = refused(&post(&server, &key, HOOKS, json!({ "uri": 5, "now": 1 })).await, 400, "invalid_submission");
    assert!(told.starts_with("3 mistakes: (1) url: it is missing"), "{told}");
    // Another's is as unknown as one that never was, whatever is asked of it.
    let at = |id: &str, action: &str| format!("{HOOKS}/{id}{action}");
    for (action, body) in [
        ("/test", Value::Null),
        ("/rotate", Value::Null),
        ("/enable", Value::Null),
        ("/recover", json!({ "since": "2026-01-01" })),
        ("/resend", json!({ "idempotencyKey": "one" })),
    ] {
        let theirs = post(&server, &zoe, &at(&id, action), body.clone()).await;
        let nobodys = post(&server, &zoe, &at("999", action), body).await;
        assert_eq!(refused(&theirs, 404, Value::Null), refused(&nobodys, 404, Value::Null), "{action}");
    }
    for method in [Method::GET, Method::DELETE] {
        for nobodys in [&id, "999", "0", "-1", "x", "99999999999999999999"] {
            let answer = act(&server, &zoe, method.clone(), &at(nobodys, ""), &Value::Null).await;
            assert!(refused(&answer, 404, Value::Null).starts_with("You have no webhook endpoint"), "{nobodys}");
        }
    }
    assert_eq!(server.number("SELECT count(*) FROM partner_changes WHERE partner_id = 2"), 0);

    let pinged = post(&server, &key, &at(&id, "/test"), Value::Null).await.good();
    assert_eq!(pinged, json!({ "ok": true, "delivered": true, "status": 200 }));
    assert!(is_signed(&receiver.at("/ok")[0], &first));
    let rotated = post(&server, &key, &at(&id, "/rotate"), Value::Null).await;
    assert_eq!(rotated.header("cache-control"), "no-store");
    let second = text(&rotated.good()["secret"]).to_owned();
    let again = refused(&post(&server, &key, &at(&id, "/rotate"), json!({})).await, 400, "invalid_submission");
    assert!(again.starts_with("now: the secret was rotated at "), "{again}");
    confirmed(&server, &key, "one").await;
    receiver.wait_for("/ok", 2).await;
    let message = &receiver.at("/ok")[1];
    assert!(is_signed(message, &first) && is_signed(message, &second) && first != second);
    let third = post(&server, &key, &at(&id, "/rotate"), json!({ "now": true })).await.good();
    assert_ne!(text(&third["secret"]), second);
    // Once more: one event, and all since a time.
    let unknown = post(&server, &key, &at(&id, "/resend"), json!({ "idempotencyKey": "none" })).await;
    refused(&unknown, 404, Value::Null);
    post(&server, &key, &at(&id, "/resend"), json!({ "idempotencyKey": "one" })).await.good();
    receiver.wait_for("/ok", 3).await;
    let done = post(&server, &key, &at(&id, "/recover"), json!({ "since": "2026-01-01" })).await.good();
    assert_eq!(done, json!({ "ok": true, "id": id, "resent": 1 }));
    receiver.wait_for("/ok", 4).await;
    let ids: Vec<_> = receiver.at("/ok")[1..].iter().map(|one| one.headers["webhook-id"].clone()).collect();
    assert_eq!(ids, vec![ids[0].clone(); 3]);
    // The receiver has a message before it is written down that it does.
    wait_for!(async || ask(&server, &key, &at(&id, "")).await.good()["waiting"] == 0).await;
    let shown = ask(&server, &key, &at(&id, "")).await.good();
    assert_eq!(shown["state"], "active");
    assert!(shown["deliveredAt"].is_string() && shown.get("secret").is_none());
    act(&server, &key, Method::DELETE, &at(&id, ""), &Value::Null).await.good();
    for method in [Method::GET, Method::DELETE] {
        refused(&act(&server, &key, method, &at(&id, ""), &Value::Null).await, 404, Value::Null);
    }
    assert!(listed(&server).is_empty());
    assert_eq!(server.number("SELECT count(*) FROM webhook_deliveries"), 0);
    assert_eq!(act(&server, &key, Method::PUT, &at(&id, ""), &Value::Null).await.status, 405);
    // The operator reads who did it, and the contact what.
    let who = format!("partner Acme Assistant, key {}", &key[3..11]);
    let acts = server.rows(&format!("SELECT command FROM audit WHERE who = '{who}' ORDER BY id")).concat();
    let expected = ["add", "rotate", "rotate", "resend", "recover", "remove"].map(|act| format!("webhooks {act}"));
    assert_eq!(acts, expected);
    wait_for!(async || mails(&server).len() == 5).await;
    for mail in mails(&server) {
        let body = text(&mail["text"]);
        assert_eq!(text(&mail["to"]), "ops@acme.example");
        assert!(body.contains(&format!("With the key: {}", &key[3..11])) && !body.contains(&key), "{body}");
        assert!(body.contains("If it was not, somebody else has this key"), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_inside_are_refused_as_those_that_are_nowhere() {
    let (server, key) = Server::with_key(&["--base-url", "https://union.example"]);
    let mut told = std::collections::BTreeSet::new();
    for host in ["10.0.0.1", "[::1]", "localhost", "169.254.169.254", "[fd00::1]", "nothing.invalid"] {
        let answer = add(&server, &key, &format!("https://{host}/hook?token=secret")).await;
        let message = refused(&answer, 400, "invalid_submission");
        assert!(message.starts_with("url: ") && !message.contains("token"), "{message}");
        told.insert(message.replace(host, "HOST"));
    }
    assert_eq!(told.len(), 1, "{told:?}");
    for (url, part) in [
        ("http://127.0.0.1:9/", "https://"),
        ("http://partner.example/", "https://"),
        ("https://user:word@partner.example/", "user"),
        ("https://[::ffff:10.0.0.1]/", "IPv4"),
        ("", "web address"),
    ] {
        let message = refused(&add(&server, &key, url).await, 400, "invalid_submission");
        assert!(message.contains(part), "{url}: {message}");
    }
    assert!(listed(&server).is_empty());
}

/// Partners could have the server dial any service of anybody.
#[tokio::test(flavor = "multi_thread")]
async fn partners_add_endpoints_at_common_ports_alone() {
    let allow = ["--outbound-allow", "127.0.0.0/8"];
    let (server, key) = Server::with_key(&[&["--base-url", "https://union.example"][..], &allow].concat());
    for port in [1, 22, 25, 81, 444, 5432, 6379, 8080, 65535] {
        for host in ["127.0.0.1", "nothing.invalid"] {
            let told = refused(
                &add(&server, &key, &format!("https://{host}:{port}/hook?token=1")).await,
                400,
                "invalid_submission",
            );
            assert_eq!(
                told,
                format!(
                    "url: you cannot use port {port}; use one of 443, 80, 8443, or ask the operator to add the endpoint."
                )
            );
        }
    }
    assert_eq!(server.number("SELECT count(*) FROM partner_changes"), 0, "none of it counts");
    for port in ["", ":80", ":8443"] {
        add(&server, &key, &format!("https://127.0.0.1{port}/")).await.good();
    }
    // The operator may, and what was added stays.
    let operator = [&["webhooks", "add", "Acme Assistant", "https://127.0.0.1:5432/"][..], &allow].concat();
    server.run(&operator);
    let id = listed(&server)[3]["id"].to_string();
    let tested = post(&server, &key, &format!("{HOOKS}/{id}/test"), Value::Null).await.good();
    assert!(tested["problem"].as_str().unwrap().starts_with("127.0.0.1:5432 could not be connected to"), "{tested}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_key_changes_the_sandbox_alone() {
    let (server, receiver) = (Server::start(), Receiver::start().await);
    let (key, test) = (server.key(), server.run(&["keys", "issue", "Acme Assistant", "--test"]));
    server.run(&["partners", "contact", "Acme Assistant", "ops@acme.example", "--test"]);
    wait_for!(async || ask(&server, &test, HOOKS).await.status == 200).await;
    let live = add(&server, &key, &receiver.url("/live")).await.good();
    let path = format!("{HOOKS}/{}", text(&live["id"]));
    assert_eq!(ask(&server, &test, HOOKS).await.good()["webhooks"], json!([]));
    refused(&ask(&server, &test, &path).await, 404, Value::Null);
    for action in ["/test", "/rotate", "/enable"] {
        refused(&post(&server, &test, &format!("{path}{action}"), Value::Null).await, 404, Value::Null);
    }
    refused(&act(&server, &test, Method::DELETE, &path, &Value::Null).await, 404, Value::Null);
    // The same number names another one there.
    let there = add(&server, &test, &receiver.url("/test")).await.good();
    assert_eq!(there["id"], live["id"]);
    assert_ne!(there["secret"], live["secret"]);
    post(&server, &test, &format!("{path}/test"), Value::Null).await.good();
    assert_eq!((receiver.at("/test").len(), receiver.at("/live").len()), (1, 0));
    assert!(receiver.at("/test")[0].body.contains("\"mode\":\"test\""));
    act(&server, &test, Method::DELETE, &path, &Value::Null).await.good();
    assert_eq!(listed(&server).len(), 1);

    let next = post(&server, &test, "/partner/v1/keys/rotate", Value::Null).await.good();
    assert!(text(&next["key"]).starts_with("uh_test_"));
    let ids =
        |answer: Value| answer["keys"].as_array().unwrap().iter().map(|key| key["id"].clone()).collect::<Vec<_>>();
    let live_keys = ids(ask(&server, &key, "/partner/v1/keys").await.good());
    assert_eq!(live_keys, [json!(&key[3..11])]);
    let test_keys = ids(ask(&server, &test, "/partner/v1/keys").await.good());
    assert_eq!(test_keys, [next["id"].clone(), json!(&test[8..16])]);
    // Its mail lands in its inbox.
    let inbox = async || ask(&server, &test, "/partner/v1/inbox").await.good()["mails"].clone();
    wait_for!(async || inbox().await.as_array().unwrap().len() == 3).await;
    let newest = inbox().await[0].clone();
    assert!(text(&newest["subject"]).ends_with("[test] an API key was rotated"), "{newest}");
    assert!(mails(&server).is_empty(), "nobody is known among the live ones");
    assert_eq!(server.number("SELECT count(*) FROM audit WHERE who LIKE 'partner %'"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_rotated_once_and_ends_itself() {
    let server = Server::start();
    let key = server.run(&["keys", "issue", "Acme Assistant", "--per-minute", "7", "--expires", "2099-01-01"]);
    server.run(&["partners", "contact", "Acme Assistant", "ops@acme.example"]);
    let other = server.key();
    let rotate = async |key: &str, body: Value| post(&server, key, "/partner/v1/keys/rotate", body).await;
    for bad in [json!(169), json!(-1), json!("1"), json!(1.5), json!([])] {
        let told = refused(&rotate(&key, json!({ "graceHours": bad })).await, 400, "invalid_submission");
        assert_eq!(told, "graceHours: write a whole number of hours from 0 to 168.", "{bad}");
    }
    refused(&rotate(&key, json!([])).await, 400, "invalid_submission");
    refused(&rotate(&key, json!({ "id": "x" })).await, 400, "invalid_submission");
    // Two at once: one of them is told that it was too late.
    let both = together((0..2).map(|_| rotate(&key, Value::Null))).await;
    let (good, late): (Vec<_>, Vec<_>) = both.iter().partition(|answer| answer.status == 200);
    assert_eq!((good.len(), late.len()), (1, 1));
    assert_eq!(good[0].header("cache-control"), "no-store");
    let next = good[0].good();
    holds(&refused(late[0], 400, "invalid_submission"), &[&format!("rotated to key {}", text(&next["id"]))]);
    assert_eq!((text(&next["oldId"]), text(&next["expiresAt"])), (&key[3..11], "2099-01-01T00:00:00Z"));
    let next = text(&next["key"]).to_owned();
    let limit = server.post("/v1/referral-link", &next, sign_up("ana@example.com")).await;
    assert!(limit.header("ratelimit-policy").contains("q=7;"), "{}", limit.header("ratelimit-policy"));
    // Whoever has the old one can do no more with it than its holder: it ends, and makes no other.
    ask(&server, &key, HOOKS).await.good();
    refused(&rotate(&key, json!({ "graceHours": 168 })).await, 400, "invalid_submission");
    let keys = ask(&server, &next, "/partner/v1/keys").await.good();
    let old = keys["keys"].as_array().unwrap().iter().find(|one| one["id"] == key[3..11]).unwrap();
    assert_eq!((&old["replacedBy"], &old["presented"]), (&json!(&next[3..11]), &json!(false)));
    assert!(!keys.to_string().contains(&next[12..30]) && keys["keys"].as_array().unwrap().len() == 3);
    // It ends itself and no other, within two seconds.
    let revoke = async |key: &str| post(&server, key, "/partner/v1/keys/revoke", Value::Null).await;
    let revoked = revoke(&key).await.good();
    assert_eq!((&revoked["id"], &revoked["wasLast"]), (&json!(&key[3..11]), &json!(false)));
    assert_eq!(revoked["replacedBy"], json!(&next[3..11]));
    wait_for!(async || ask(&server, &key, HOOKS).await.status == 401).await;
    for works in [&next, &other] {
        ask(&server, works, HOOKS).await.good();
    }
    wait_for!(async || mails(&server).len() == 2).await;
    let told = mails(&server).iter().map(|mail| text(&mail["text"]).to_owned()).collect::<Vec<_>>().concat();
    for part in [format!("key {} by {}", &key[3..11], &next[3..11]), "have both keys revoked".to_owned()] {
        assert!(told.contains(&part), "{part} in {told}");
    }
    assert!(!told.contains(&next) && !server.log().contains(&next));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partner_without_a_key_that_works_gets_no_webhooks() {
    let ((server, key), receiver) = (Server::with_key(&[]), Receiver::start().await);
    add(&server, &key, &receiver.url("/ok")).await.good();
    invite(&server, &key, "one", "ana@example.com").await.good();
    // The old one has expired, and is not one that works: the successor is the last.
    let next = post(&server, &key, "/partner/v1/keys/rotate", json!({ "graceHours": 0 })).await.good();
    let next = text(&next["key"]).to_owned();
    wait_for!(async || ask(&server, &key, HOOKS).await.status == 401).await;
    let told = ask(&server, &key, HOOKS).await.refused(401, "agent_unauthorized");
    assert!(told.starts_with(&format!("The API key was rotated to key {}", &next[3..11])), "{told}");
    let told = server.run(&["keys", "revoke", &next[3..11]]);
    assert!(told.contains("No key of Acme Assistant works any more: its webhooks wait"), "{told}");
    assert_eq!(server.confirm(1).await.status, 200);
    wait_for!(async || listed(&server)[0]["waiting"] == 1).await;
    assert!(receiver.at("/ok").is_empty());
    let third = server.key();
    receiver.wait_for("/ok", 1).await;
    let last = post(&server, &third, "/partner/v1/keys/revoke", Value::Null).await.good();
    assert_eq!(last["wasLast"], true);
    assert!(last.get("replacedBy").is_none());
    // In the sandbox its inbox page is shut.
    let test = server.run(&["keys", "issue", "Acme Assistant", "--test"]);
    wait_for!(async || ask(&server, &test, "/partner/v1/inbox").await.status == 200).await;
    let page = ask(&server, &test, "/partner/v1/inbox").await.good()["page"].clone();
    let path = format!("/sandbox/{}", text(&page).split("/sandbox/").nth(1).unwrap());
    assert_eq!(server.get(&path).await.status, 200);
    holds(&server.run(&["keys", "revoke", &test]), &["its inbox page is shut"]);
    assert_eq!(server.get(&path).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_have_a_bound_for_a_day() {
    let server = Server::start();
    let (key, second) = (server.key(), server.key());
    let zoe = server.run(&["keys", "issue", "Zoe"]);
    let id = text(&add(&server, &key, "http://127.0.0.1:9/").await.good()["id"]).to_owned();
    let path = format!("{HOOKS}/{id}/rotate");
    for _ in 0..20 {
        post(&server, &key, &path, json!({ "now": true })).await.good();
    }
    for key in [&key, &second] {
        let answer = post(&server, key, &path, json!({ "now": true })).await;
        let told = refused(&answer, 429, "rate_limited");
        assert!(told.starts_with("This can be asked for 20 times in 24 hours"), "{told}");
        let seconds: u32 = answer.header("retry-after").parse().unwrap();
        assert!((86_000..=86_400).contains(&seconds), "{seconds}");
    }
    add(&server, &zoe, "http://127.0.0.1:9/").await.good();
    assert_eq!(server.number("SELECT count(*) FROM audit WHERE command = 'webhooks rotate'"), 20);
    server.execute("UPDATE partner_changes SET at = at - 86400000");
    post(&server, &key, &path, json!({ "now": true })).await.good();
    assert!(mails(&server).is_empty(), "there is no contact");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_can_always_be_revoked_and_is_once() {
    let server = Server::start();
    let (key, other) = (server.key(), server.key());
    server.run(&["partners", "contact", "Acme Assistant", "ops@acme.example"]);
    let audited = || server.number("SELECT count(*) FROM audit WHERE command = 'keys revoke'");
    let revoke = async |body: Value| post(&server, &key, "/partner/v1/keys/revoke", body).await;
    // Whoever names a key means that one, and it would not be the one that ends.
    for named in [json!({ "id": &other[3..11] }), json!([]), json!("x"), json!(5)] {
        let told = refused(&revoke(named).await, 400, "invalid_submission");
        assert_eq!(told, "This operation takes no input; it ends the key that is presented.");
    }
    let request = Request::builder().method(Method::POST).uri("/partner/v1/keys/revoke");
    let request = request.header("authorization", format!("Bearer {key}"));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    refused(&server.send(request, format!("key={other}")).await, 400, "invalid_submission");
    for path in ["/partner/v1/keys?id=x", "/partner/v1/webhooks?limit=5"] {
        let told = refused(&ask(&server, &key, path).await, 400, "invalid_submission");
        assert_eq!(told, "This operation takes no input.");
    }
    assert_eq!(audited(), 0);
    // Somebody else asked for it many times.
    let now = server.number("SELECT max(created_at) FROM api_keys");
    for n in 0..60 {
        server.execute(&format!(
            "INSERT INTO partner_changes (partner_id, key_id, kind, at) VALUES (1, 'x', 'key revoked', {now} + {n})"
        ));
    }
    ask(&server, &key, HOOKS).await.good();
    let first = revoke(json!({})).await.good();
    // What was read of the key a moment ago may still be believed, and no change is.
    let added = add(&server, &key, "http://127.0.0.1:9/").await;
    refused(&added, 401, "agent_unauthorized");
    let again = revoke(Value::Null).await;
    if again.status == 200 {
        assert_eq!(again.good(), first);
    }
    assert!(server.run(&["keys", "revoke", &key[3..11]]).contains("revoked"));
    assert_eq!(audited(), 1);
    wait_for!(async || mails(&server).len() == 1).await;
    post(&server, &other, "/partner/v1/keys/revoke", Value::Null).await.good();
    wait_for!(async || mails(&server).len() == 2).await;
    assert_eq!((audited(), listed(&server).len()), (2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_rotations_do_not_use_up_the_day() {
    let server = Server::start();
    let (key, other) = (server.key(), server.key());
    let rotate = async |key: &str| post(&server, key, "/partner/v1/keys/rotate", Value::Null).await;
    let all = together((0..12).map(|_| rotate(&key))).await;
    assert_eq!(all.iter().filter(|answer| answer.status == 200).count(), 1);
    for _ in 0..12 {
        refused(&rotate(&key).await, 400, "invalid_submission");
    }
    rotate(&other).await.good();

    let id = text(&add(&server, &key, "http://127.0.0.1:9/").await.good()["id"]).to_owned();
    let path = format!("{HOOKS}/{id}/rotate");
    for n in 0..25 {
        let answer = post(&server, &key, &path, json!({})).await;
        if n == 0 {
            answer.good()
        } else {
            refused(&answer, 400, "invalid_submission").into()
        };
    }
    post(&server, &key, &path, json!({ "now": true })).await.good();
    assert_eq!(server.number("SELECT count(*) FROM partner_changes WHERE done_at IS NULL"), 0);
    assert_eq!(server.number("SELECT count(*) FROM partner_changes"), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_add_the_last_endpoint_at_once_are_one() {
    let (server, key) = Server::with_key(&[]);
    for n in 1..10 {
        add(&server, &key, &format!("http://127.0.0.1:9/{n}")).await.good();
    }
    let urls = ["http://127.0.0.1:9/a", "http://127.0.0.1:9/b"];
    let both = together(urls.iter().map(|url| add(&server, &key, url))).await;
    let (good, full): (Vec<_>, Vec<_>) = both.iter().partition(|answer| answer.status == 200);
    assert_eq!((good.len(), full.len()), (1, 1), "{both:?}");
    holds(&refused(full[0], 400, "invalid_submission"), &["you have 10 endpoints, as many as you may"]);
    assert_eq!(server.number("SELECT count(*) FROM webhook_endpoints"), 10);
    let operator = server
        .try_run(&["webhooks", "add", "Acme Assistant", "http://127.0.0.1:9/c", "--base-url", "http://127.0.0.1"]);
    assert!(String::from_utf8_lossy(&operator.stderr).contains("10 endpoints"));
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_counts_what_was_sent_and_confirmed_and_tells_no_decline() {
    let server = Server::start_with(&["--mail", "hold"]);
    let (key, zoe) = (server.key(), server.run(&["keys", "issue", "Zoe"]));
    for name in ["ana", "ben", "cem"] {
        server.post("/v1/invite", &key, sign_up(&format!("{name}@example.com"))).await.good();
    }
    assert_eq!(server.confirm(1).await.status, 200);
    server.decline(2).await;
    // A repeat is a new row for somebody who declined, and none for somebody who waits: both count alike.
    for name in ["ben", "cem"] {
        server.post("/v1/invite", &key, sign_up(&format!("{name}@example.com"))).await.good();
    }
    server.post("/v1/invite", &key, sign_up("nobody")).await.refused(400, "invalid_submission");
    server.get("/v1/stats").await.good();
    ask(&server, &zoe, HOOKS).await.good();
    // What was counted is written down at the end.
    let server = Server::start_in(server.stop().1, &["--mail", "hold"]);
    let usage = async |key: &str, query: &str| ask(&server, key, &format!("/partner/v1/usage?{query}")).await;
    let all = usage(&key, "").await.good()["days"].as_array().unwrap().clone();
    assert_eq!(all.len(), 30);
    let sum = |field: &str| all.iter().map(|day| day[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!([sum("signUps"), sum("confirmations")], [5, 1]);
    // The first request after the start is counted on the way.
    assert!((6..=7).contains(&sum("requests")), "{all:?}");
    assert!(!all[29].as_object().unwrap().keys().any(|name| name.contains("decl")), "{}", all[29]);
    let theirs = usage(&zoe, "").await.good()["days"].as_array().unwrap().clone();
    assert_eq!(theirs.iter().map(|day| day["signUps"].as_u64().unwrap()).sum::<u64>(), 0);

    let one = usage(&key, "since=2026-01-31&until=2026-01-31").await.good();
    assert_eq!(one["days"], json!([{ "day": "2026-01-31", "requests": 0, "signUps": 0, "confirmations": 0 }]));
    assert_eq!(usage(&key, "since=2026-01-01&until=2026-04-02").await.good()["days"].as_array().unwrap().len(), 92);
    let told = refused(&usage(&key, "since=2026-01-01&until=2026-04-03").await, 400, "invalid_submission");
    assert_eq!(told, "since: these are 93 days; ask for 92 at the most.");
    refused(&usage(&key, "since=2026-02-01&until=2026-01-01").await, 400, "invalid_submission");
    let both = refused(&usage(&key, "since=yesterday&until=2026-13-01&x=1").await, 400, "invalid_submission");
    assert!(both.starts_with("3 mistakes: "), "{both}");
}
