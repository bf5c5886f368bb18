//! The sandbox is each partner's own: two of them try the same things out, and neither can learn or change anything of the other's.

use super::*;
use crate::partners::invite;

const KIM: &str = "kim@example.com";

/// A server with the test keys of two partners, and those of nobody else.
fn two_partners() -> (Server, [String; 2]) {
    let server = Server::start_with(&["--public-per-minute", "10000"]);
    let keys = ["Acme Assistant", "Zoe"].map(|name| server.run(&["keys", "issue", name, "--test"]));
    (server, keys)
}

async fn inbox(server: &Server, key: &str) -> Vec<Value> {
    ask(server, key, "/partner/v1/inbox").await.good()["mails"].as_array().unwrap().clone()
}

/// Waits until the inbox has so many.
async fn mailed(server: &Server, key: &str, count: usize) -> Vec<Value> {
    wait_for!(async || inbox(server, key).await.len() == count).await;
    inbox(server, key).await
}

/// The same once the time has passed that caps of mailboxes make mail wait for.
async fn mailed_at_last(server: &Server, key: &str, count: usize) -> Vec<Value> {
    let arrived = async || {
        // Each time: the worker may be deciding to wait at this moment.
        server.change_sandbox("UPDATE mailboxes SET sent_1 = 0");
        server.change_sandbox("UPDATE outbox SET send_after = 0 WHERE leased_by IS NULL");
        inbox(server, key).await.len() == count
    };
    wait_for!(arrived).await;
    inbox(server, key).await
}

fn path_of(link: &Value) -> String {
    format!("/{}", link.as_str().unwrap().splitn(4, '/').nth(3).unwrap())
}

async fn press(server: &Server, link: &Value, form: &str) {
    page(&server.submit(Request::post(path_of(link)), form.to_owned()).await, 200, "Sandbox");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_address_of_two_partners_is_two_people() {
    let (server, [acme, zoe]) = two_partners();
    let ours = invite(&server, &acme, "order-1", KIM).await.good();
    let theirs = invite(&server, &zoe, "order-1", KIM).await;
    assert_eq!(theirs.header("idempotency-replayed"), "", "the same name is another request");
    let theirs = theirs.good();
    assert_ne!(ours["inviteLink"], theirs["inviteLink"]);
    let [our_mail, their_mail] =
        [&mailed(&server, &acme, 1).await[0], &mailed(&server, &zoe, 1).await[0]].map(Value::clone);
    assert!(our_mail["text"].as_str().unwrap().contains("Acme Assistant"));
    for mail in [&our_mail, &their_mail] {
        assert_eq!(mail["to"], KIM, "as it was typed");
    }
    // One joins, and the other partner sees nothing of it.
    press(&server, &our_mail["confirmLink"], "").await;
    assert_eq!((server.count_of(&acme).await, server.count_of(&zoe).await), (1, 0));
    assert_eq!(server.status_of(&acme, "order-1").await, "confirmed");
    assert_eq!(server.status_of(&zoe, "order-1").await, "pending");
    let again = server.post("/v1/invite", &zoe, json!({ "email": KIM, "usState": "CA" }).to_string()).await.good();
    assert_eq!((&again["joinedCount"], &again["inviteLink"]), (&json!(0), &theirs["inviteLink"]));
    assert_eq!(server.invite(&acme, "ben@example.com").await.good()["joinedCount"], 1);
    let merged = "SELECT count(*) FROM sign_ups s JOIN people p ON p.id = s.person_id
                  WHERE p.email = 'kim@example.com' AND s.state = 'pending' AND s.us_state = 'CA'";
    assert_eq!(server.sandbox_number(merged), 1, "the other's pending one, and no more");
    // Nor of what the person wants not to be sent.
    press(&server, &our_mail["declineLink"], "do=choose&mailbox=silence&partner=stop").await;
    let mails = mailed_at_last(&server, &zoe, 2).await;
    press(&server, &mails[0]["confirmLink"], "").await;
    assert_eq!((server.count_of(&acme).await, server.count_of(&zoe).await), (1, 1));
    let silent =
        "SELECT mailbox, suppressed_until IS NOT NULL FROM mailboxes WHERE mailbox LIKE '%:kim@example.com' ORDER BY 1";
    let silent: Vec<_> =
        server.sandbox_rows(silent).into_iter().map(|row| ["1", "t", "true"].contains(&&*row[1])).collect();
    assert_eq!(silent, [true, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_referral_code_is_known_to_its_own_partner_alone() {
    let (server, [acme, zoe]) = two_partners();
    let code = server.code_of(&acme, KIM).await;
    assert_ne!(code, server.code_of(&zoe, KIM).await);
    for (key, attributed) in [(&acme, true), (&zoe, false)] {
        let body = json!({ "email": "ben@example.com", "refCode": code }).to_string();
        assert_eq!(server.post("/v1/invite", key, body).await.good()["refAttributed"], attributed);
    }
    let referrers =
        "SELECT count(*) FROM sign_ups s JOIN people r ON r.id = s.referrer_id JOIN people p ON p.id = s.person_id
                         WHERE p.mailbox LIKE '2:%' OR r.mailbox NOT LIKE '1:%'";
    assert_eq!(server.sandbox_number(referrers), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partner_learns_and_changes_nothing_of_anothers_sandbox() {
    let (server, [acme, zoe]) = two_partners();
    invite(&server, &acme, "order-1", "confirm@simulator.test").await.good();
    wait_for!(async || server.status_of(&acme, "order-1").await == "confirmed").await;
    let mail = mailed(&server, &acme, 1).await[0].clone();
    // Names, events and counts.
    assert_eq!(ask(&server, &zoe, "/partner/v1/sign-ups/order-1").await.status, 404);
    let events = ask(&server, &acme, "/partner/v1/events").await.good();
    assert_eq!(events["events"].as_array().unwrap().len(), 1);
    assert_eq!(ask(&server, &zoe, "/partner/v1/events").await.good()["events"], json!([]));
    let cursor = events["cursor"].as_str().unwrap();
    let path = format!("/partner/v1/events?after={cursor}");
    ask(&server, &zoe, &path).await.refused(400, "invalid_submission");
    assert_eq!(ask(&server, &zoe, "/partner/v1/sign-ups").await.good()["signUps"], json!([]));
    assert_eq!(server.count_of(&zoe).await, 0);
    assert_eq!(server.invite(&zoe, KIM).await.good()["joinedCount"], 0);
    // The inbox: neither by a mail's id nor with one's own page.
    mailed(&server, &zoe, 1).await;
    let id = mail["id"].as_str().map(str::to_owned).unwrap_or_else(|| mail["id"].to_string());
    let (ours, theirs) = (server.inbox_path("Acme Assistant"), server.inbox_path("Zoe"));
    assert_eq!(server.get(&format!("{ours}-{id}/html")).await.status, 200);
    assert_eq!(server.get(&format!("{theirs}-{id}/html")).await.status, 404);
    let seen = page(&server.get(&theirs).await, 200, "Sandbox");
    assert!(!seen.contains("confirm@simulator.test") && !seen.contains("Acme"), "{seen}");
    for path in ["/partner/v1/inbox?before=999999", "/partner/v1/inbox?limit=100"] {
        let read = ask(&server, &zoe, path).await;
        assert!(!String::from_utf8_lossy(&read.body).contains("simulator.test"), "{path}");
    }
    // A link is good for its own sign-up and its own purpose.
    let token = path_of(&mail["confirmLink"]).rsplit('/').next().unwrap().to_owned();
    for path in [format!("/sandbox/not-me/{token}"), format!("/sandbox/inbox/{token}"), format!("/confirm/{token}")] {
        assert_eq!(server.get(&path).await.status, 404, "{path}");
    }
}

/// The confirmed person's page tells how many have joined: of a sandbox that would be everybody's count.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_the_sandbox_show_no_count_of_all() {
    let server = Server::start_with(&["--show-members-from", "1"]);
    let (live, test) = (server.key(), server.test_key());
    let zoe = server.run(&["keys", "issue", "Zoe", "--test"]);
    server.invite(&zoe, "confirm@simulator.test").await.good();
    server.wait_for_state("confirm@simulator.test", "confirmed").await;
    for key in [&live, &test] {
        server.invite(key, KIM).await.good();
    }
    let mail = mailed(&server, &test, 1).await[0].clone();
    let real = page(&server.confirm(1).await, 200, "1 member");
    let link = &mail["confirmLink"];
    let simulated = page(&server.submit(Request::post(path_of(link)), "").await, 200, "Sandbox");
    assert!(real.contains("the union has"), "{real}");
    assert!(!simulated.contains("the union has") && !simulated.contains("2 members"), "{simulated}");
}

/// The same as live: caps, "already a member", merging.
#[tokio::test(flavor = "multi_thread")]
async fn ordinary_addresses_meet_what_they_would_among_live_records() {
    let server = Server::start_with(&["--public-per-minute", "10000"]);
    let (live, test) = (server.key(), server.test_key());
    let due = "SELECT count(*) FROM outbox WHERE send_after <= created_at";
    for key in [&live, &test] {
        server.invite(key, KIM).await.good();
    }
    let mails = mailed(&server, &test, 1).await;
    wait_for!(async || server.number("SELECT count(*) FROM outbox") == 0).await;
    for key in [&live, &test] {
        server.invite(key, "kim+b@example.com").await.good();
    }
    wait_for!(async || server.number(due) + server.sandbox_number(due) == 0).await;
    let wait = "SELECT (send_after - created_at) / 60000 FROM outbox";
    assert_eq!(server.rows(wait), [["9"]], "ten minutes after the last one");
    assert_eq!(server.sandbox_rows(wait), server.rows(wait));
    assert_eq!(inbox(&server, &test).await.len(), 1);

    press(&server, &mails[0]["confirmLink"], "").await;
    server.confirm(1).await;
    for key in [&live, &test] {
        server.invite(key, KIM).await.good();
    }
    let kinds = "SELECT kind FROM outbox WHERE recipient = 'kim@example.com'";
    assert_eq!(
        (server.rows(kinds), server.sandbox_rows(kinds)),
        (vec![vec!["already_member".to_owned()]], server.rows(kinds))
    );
    server.change_sandbox("DELETE FROM outbox WHERE recipient = 'kim+b@example.com'");
    let mails = mailed_at_last(&server, &test, 2).await;
    assert!(mails[0]["subject"].as_str().unwrap().contains("already"), "{}", mails[0]["subject"]);
    assert_eq!(mails[0]["confirmLink"], Value::Null, "it has no button to confirm by");
}

/// A key that no longer works is told so in the words of a live one.
#[tokio::test(flavor = "multi_thread")]
async fn refused_test_keys_are_told_what_live_ones_are() {
    let server = Server::start();
    server.test_key();
    let told = async |key: &str| {
        let call = tool_call("signUpUser", json!({ "email": KIM }));
        let answers = [
            server.invite(key, KIM).await,
            server.post("/v1/referral-link", key, sign_up(KIM)).await,
            ask(&server, key, "/partner/v1/sign-ups").await,
            ask(&server, key, "/partner/v1/events").await,
            server.post("/mcp", key, call.to_string()).await,
        ];
        answers.map(|answer| (answer.status, String::from_utf8_lossy(&answer.body).into_owned()))
    };
    let id = |key: &str| ApiKey::parse(key).unwrap().id().to_string();
    for (partner, word) in [("Revoked", "revoked"), ("Rotated", "rotated to key ID"), ("Suspended", "suspended")] {
        let keys = [&[][..], &["--test"]].map(|flag| {
            let key = server.run(&[&["keys", "issue", partner], flag].concat());
            let end: &[&str] = match partner {
                "Revoked" => &["keys", "revoke", &id(&key)],
                "Rotated" => &["keys", "rotate", &id(&key), "--grace", "0s"],
                _ => &["partners", "suspend", partner],
            };
            let printed = server.run(&[end, flag].concat());
            // The successor's id, where there is one.
            (key, ApiKey::parse(&printed).map_or("no id".to_owned(), |key| key.id().to_string()))
        });
        let told_by_name = async |(key, successor): &(String, String)| {
            told(key).await.map(|(status, body)| (status, body.replace(successor, "ID")))
        };
        let [live, test] = [told_by_name(&keys[0]).await, told_by_name(&keys[1]).await];
        assert_eq!(live, test, "{partner}");
        assert!(live[0].0 == 401 && live.iter().all(|(_, body)| body.contains(word)), "{partner}: {live:?}");
        // Public data needs no key, and shows nobody's sandbox.
        assert_eq!(server.count_of(&keys[1].0).await, 0);
    }
    let stats = tool_call("getMemberStats", json!({}));
    let revoked = server.run(&["keys", "issue", "Gone", "--test"]);
    server.run(&["keys", "revoke", &id(&revoked), "--test"]);
    let refused = server.post("/mcp", &revoked, stats.to_string()).await.json_rpc()["result"].clone();
    assert!(refused["isError"] == true && refused.to_string().contains("revoked"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_commands_say_of_the_sandbox_works_on_the_sandbox() {
    let (server, test) = with_test_key();
    let said = |arguments: &[&str]| {
        let output = server.try_run(arguments);
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        let hints: Vec<_> = text.split('`').skip(1).step_by(2).filter(|hint| hint.starts_with("unionhall ")).collect();
        assert!(!hints.is_empty(), "{arguments:?} names no command: {text}");
        assert!(hints.iter().all(|hint| hint.contains(" --test")), "{arguments:?}: {text}");
    };
    let base = format!("http://{}", server.address);
    let add = ["webhooks", "add", "Acme Assistant", "http://127.0.0.1:1/hook", "--base-url", &base, "--test"];
    said(&["webhooks", "list", "--test"]);
    said(&add);
    for command in ["test", "rotate", "remove"] {
        said(&["webhooks", command, "99", "--test"]);
        said(&["webhooks", command, "first", "--test"]);
    }
    said(&["webhooks", "resend", "99", "order-1", "--test"]);
    said(&["webhooks", "recover", "99", "--since", "2026-01-01", "--test"]);
    said(&["webhooks", "add", "Nobody", "http://127.0.0.1:1/hook", "--base-url", &base, "--test"]);
    for n in 2..=10 {
        let url = format!("http://127.0.0.1:1/{n}");
        server.run(&["webhooks", "add", "Acme Assistant", &url, "--base-url", &base, "--test"]);
    }
    said(&["webhooks", "add", "Acme Assistant", "http://127.0.0.1:1/11", "--base-url", &base, "--test"]);
    server.change_sandbox("UPDATE webhook_endpoints SET disabled_at = 1, disabled_reason = 'gone' WHERE id = 1");
    said(&["webhooks", "resend", "1", "order-1", "--test"]);

    said(&["partners", "show", "Acme Assistant", "--test"]);
    said(&["partners", "show", "Nobody", "--test"]);
    said(&["keys", "issue", "acme assistant", "--test"]);
    said(&["keys", "revoke", "00000000", "--test"]);
    said(&["keys", "revoke", "nonsense", "--test"]);
    said(&["keys", "rotate", "00000000", "--test"]);
    // The key itself says which it is.
    said(&["keys", "revoke", ApiKey::of_mode(Mode::Test, &[7; ApiKey::ENTROPY]).reveal()]);
    said(&["partners", "suspend", "Acme Assistant", "--test"]);
    said(&["partners", "show", "Acme Assistant", "--test"]);
    said(&["keys", "issue", "Acme Assistant", "--test"]);
    said(&["keys", "rotate", &ApiKey::parse(&test).unwrap().id().to_string(), "--test"]);
    let live = server.try_run(&["webhooks", "list"]);
    assert!(!String::from_utf8_lossy(&live.stdout).contains("--test"));
}

#[test]
fn the_audit_log_of_the_sandbox_can_be_read_and_is_its_own() {
    let server = Server::start();
    let refused = server.try_run(&["audit", "--test"]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("keys issue NAME --test"));
    let (live, test) = (server.key(), server.test_key());
    server.run(&["partners", "suspend", "Acme Assistant", "--test"]);
    let id = |key: &str| ApiKey::parse(key).unwrap().id().to_string();
    let (ours, theirs) = (server.run(&["audit"]), server.run(&["audit", "--test"]));
    assert!(ours.contains(&id(&live)) && !ours.contains(&id(&test)) && !ours.contains("suspend"), "{ours}");
    assert!(
        theirs.contains(&id(&test)) && theirs.contains("partners suspend") && !theirs.contains(&id(&live)),
        "{theirs}"
    );
    assert_eq!(server.run(&["audit", "--test", "--json", "--about", &id(&test)]).lines().count(), 1);
}
