//! What the operator does to a partner and its keys: suspending it, its mail budget, ending what a leaked key signed up, and finding it.

use super::webhooks::{Receiver, add, listed};
use super::{ask, invite};
use crate::prelude::*;

fn keys(server: &Server) -> Vec<Value> {
    serde_json::from_str(&server.run(&["keys", "list", "--json"])).unwrap()
}

#[track_caller]
fn refusal(server: &Server, arguments: &[&str]) -> String {
    let refused = server.try_run(arguments);
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{arguments:?}");
    String::from_utf8(refused.stderr).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_partner_is_refused_and_its_webhooks_wait_until_that_is_lifted() {
    let (server, receiver) = (Server::start_with(&["--key-per-minute", "100000"]), Receiver::start().await);
    let (key, zoe) = (server.key(), server.run(&["keys", "issue", "Zoe"]));
    let test = server.run(&["keys", "issue", "Acme Assistant", "--test"]);
    add(&server, &receiver, "/ok");
    invite(&server, &key, "one", "ana@example.com").await.good();
    let act = async |key: &str| server.post("/v1/referral-link", key, sign_up("ben@example.com")).await;
    wait_for!(async || act(&test).await.status == 200).await;

    let told = server.run(&["partners", "suspend", "Acme Assistant"]);
    assert!(told.contains("partners resume 'Acme Assistant'"), "{told}");
    wait_for!(async || act(&key).await.status == 401).await;
    for refused in [act(&key).await, ask(&server, &key, "/partner/v1/sign-ups").await] {
        holds(&refused.refused(401, "agent_unauthorized"), &["suspended"]);
    }
    act(&zoe).await.good();
    act(&test).await.good();
    server.get("/v1/stats").await.good();

    holds(&server.run(&["keys", "list"]), &[&format!("{}  suspended ", &key[3..11])]);
    assert!(keys(&server)[0]["partnerSuspendedAt"].is_string() && keys(&server)[1]["partnerSuspendedAt"].is_null());
    let shown = server.json(&["partners", "list", "--json"]);
    assert!(shown[0]["suspendedAt"].is_string() && shown[1]["suspendedAt"].is_null(), "{shown}");
    assert!(server.run(&["partners", "list"]).contains("suspended"));
    assert!(server.run(&["partners", "show", "Acme Assistant"]).contains("Suspended since"));
    assert!(server.run(&["partners", "suspend", "Acme Assistant"]).contains("already"));
    for arguments in [&["keys", "issue", "Acme Assistant"][..], &["keys", "rotate", &key[3..11]]] {
        holds(&refusal(&server, arguments), &["suspended", "partners resume"]);
    }
    // A link that was mailed works; what came of it waits.
    assert_eq!(server.confirm(1).await.status, 200);
    assert_eq!(listed(&server)[0]["waiting"], 1);
    assert!(server.run(&["webhooks", "list"]).contains("waiting: the partner is suspended"));
    assert!(receiver.at("/ok").is_empty());
    holds(&server.run(&["partners", "resume", "Acme Assistant"]), &["no longer suspended"]);
    receiver.wait_for("/ok", 1).await;
    wait_for!(async || act(&key).await.status == 200).await;
    assert!(server.run(&["partners", "resume", "Acme Assistant"]).contains("was not suspended"));
    // The sandbox is suspended by itself.
    server.run(&["partners", "suspend", "Acme Assistant", "--test"]);
    wait_for!(async || act(&test).await.status == 401).await;
    act(&key).await.good();
    let acts = server.rows("SELECT command, about FROM audit WHERE command LIKE 'partners %' ORDER BY id");
    let name = "Acme Assistant".to_owned();
    assert_eq!(acts, [["partners suspend".to_owned(), name.clone()], ["partners resume".to_owned(), name]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partners_own_budget_is_used_and_shown() {
    let (server, key) = Server::with_key(&["--key-mails-a-day", "1000"]);
    server.run(&["partners", "mail-budget", "Acme Assistant", "1"]);
    for n in 0..3 {
        server.post("/v1/invite", &key, sign_up(&format!("p{n}@example.com"))).await.good();
    }
    wait_for!(async || server.number("SELECT count(held_at) FROM outbox") == 2).await;
    assert_eq!((&keys(&server)[0]["partnerMailBudgetToday"], &keys(&server)[0]["partnerHeld"]), (&json!(1), &json!(2)));
    let status = || serde_json::from_str::<Value>(&server.run(&["signups", "status", "--json"])).unwrap();
    let acme = &status()["sources"][1];
    assert_eq!(
        (&acme["mailBudgetToday"], &acme["mailBudgetIsFixed"], &acme["state"]),
        (&json!(1), &json!(true), &json!("throttled"))
    );
    assert!(server.run(&["partners", "show", "Acme Assistant"]).contains("budget of its own: 1 a day"));
    server.run(&["partners", "mail-budget", "Acme Assistant", "default"]);
    assert_eq!(keys(&server)[0]["partnerMailBudgetToday"], 1000);

    server.execute("UPDATE source_days SET declined = 3, bounced = 2, complained = 1");
    let acme = &status()["sources"][1];
    let of = |field: &str| acme[field].as_u64().unwrap();
    assert_eq!([of("declined7d"), of("bounced7d"), of("complained7d"), of("unwanted7d")], [3, 2, 1, 6]);
    let table = server.run(&["signups", "status"]);
    let row: Vec<_> = table.lines().find(|line| line.ends_with("Acme Assistant")).unwrap().split_whitespace().collect();
    assert_eq!(row[5..9], ["0", "3", "2", "1"], "{table}");
    for bad in ["0", "-1", "1000001", "many"] {
        let told = refusal(&server, &["partners", "mail-budget", "Acme Assistant", "--", bad]);
        assert!(told.contains("from 1 to 1000000, or default"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_leaked_key_signed_up_is_ended_and_its_links_with_it() {
    let server = Server::start_with(&["--mail", "hold"]);
    let (leaked, good) = (server.key(), server.key());
    for (key, email) in [(&leaked, "ana"), (&leaked, "ben"), (&leaked, "cem"), (&good, "dan")] {
        server.post("/v1/invite", key, sign_up(&format!("{email}@example.com"))).await.good();
    }
    assert_eq!(server.confirm(1).await.status, 200);
    let id = &leaked[3..11];
    holds(&refusal(&server, &["signups", "withdraw", "--key", id]), &["still works", &format!("keys revoke {id}")]);
    let revoked = server.try_run(&["keys", "revoke", id]);
    holds(&String::from_utf8(revoked.stderr).unwrap(), &[&format!("signups withdraw --key {id}")]);
    let withdraw = |more: &[&str]| server.run(&[&["signups", "withdraw", "--key", id], more].concat());
    assert!(withdraw(&["--since", "2999-01-01"]).starts_with("No sign-up"));
    assert!(withdraw(&[]).starts_with("2 sign-ups were ended"));
    assert!(withdraw(&[]).starts_with("No sign-up"));

    let states = server.rows("SELECT state FROM sign_ups ORDER BY id").concat();
    assert_eq!(states, ["confirmed", "expired", "expired", "pending"]);
    assert_eq!(server.number("SELECT count(*) FROM outbox WHERE sign_up_id IN (2, 3)"), 0);
    holds(&server.get(&server.confirm_path(2)).await.text(), &["That link has expired"]);
    server.confirm(2).await;
    assert_eq!(server.get("/v1/stats").await.good()["memberCount"], 1);
    assert_eq!(server.number("SELECT sum(expired) FROM source_days"), 2);
    let acts = server.rows("SELECT about FROM audit WHERE command = 'signups withdraw'");
    assert_eq!(acts, [[format!("key {id}")]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_whole_partner_signed_up_is_ended_over_all_its_keys() {
    let server = Server::start_with(&["--mail", "hold"]);
    let (one, other, zoe) = (server.key(), server.key(), server.run(&["keys", "issue", "Zoe"]));
    for (key, email) in [(&one, "ana"), (&other, "ben"), (&zoe, "cem"), (&one, "dan")] {
        server.post("/v1/invite", key, sign_up(&format!("{email}@example.com"))).await.good();
    }
    let form = hyper::Request::post("/join").header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(server.submit(form, "email=eve@example.com").await.status, 200);
    assert_eq!(server.confirm(1).await.status, 200);
    let withdraw = ["partners", "withdraw", "Acme Assistant"];
    holds(&refusal(&server, &withdraw), &["still works", "partners suspend 'Acme Assistant'"]);
    server.run(&["keys", "revoke", &one[3..11]]);
    holds(&refusal(&server, &withdraw), &["still works"]);
    server.run(&["partners", "suspend", "Acme Assistant"]);
    assert!(server.run(&[&withdraw[..], &["--since", "2999-01-01"]].concat()).starts_with("No sign-up"));
    assert!(server.run(&withdraw).starts_with("2 sign-ups were ended"));
    assert!(server.run(&withdraw).starts_with("No sign-up"));
    holds(&refusal(&server, &["partners", "withdraw", "Nobody"]), &["Nobody"]);

    let states = server.rows("SELECT state FROM sign_ups ORDER BY id").concat();
    assert_eq!(states, ["confirmed", "expired", "pending", "expired", "pending"]);
    assert_eq!(server.number("SELECT count(*) FROM outbox WHERE sign_up_id IN (2, 4)"), 0);
    let acts = server.rows("SELECT about FROM audit WHERE command = 'partners withdraw'");
    assert_eq!(acts, [["Acme Assistant"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sign_ups_and_acts_are_found_by_whose_they_are() {
    let server = Server::start_with(&["--mail", "hold"]);
    let (key, zoe) = (server.key(), server.run(&["keys", "issue", "Zoe"]));
    for (key, email) in [(&key, "ana"), (&zoe, "ben"), (&key, "cem")] {
        server.post("/v1/invite", key, sign_up(&format!("{email}@example.com"))).await.good();
    }
    let form = hyper::Request::post("/join").header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(server.submit(form, "email=dan@example.com").await.status, 200);
    let found = |flags: &[&str]| {
        let lines = server.run(&[&["members", "find", "--json"], flags].concat());
        let email = |line: &str| serde_json::from_str::<Value>(line).unwrap()["email"].as_str().unwrap().to_owned();
        lines.lines().map(email).collect::<Vec<_>>()
    };
    assert_eq!(found(&["--partner", "Acme Assistant"]), ["cem@example.com", "ana@example.com"]);
    assert_eq!(found(&["--partner", "Zoe"]), ["ben@example.com"]);
    assert_eq!(found(&["--form"]), ["dan@example.com"]);
    assert_eq!(found(&["--key", &zoe[3..11]]), ["ben@example.com"]);
    let told = refusal(&server, &["members", "find", "--partner", "acme"]);
    assert!(told.contains("did you mean Acme Assistant?") && told.contains("partners list"), "{told}");
    holds(&refusal(&server, &["partners", "suspend", "Acne Assistant"]), &["did you mean Acme Assistant?"]);
    assert!(!refusal(&server, &["members", "find", "--partner", "Nobody"]).contains("did you mean"));
    for both in [&["ana", "--form"][..], &["--form", "--partner", "Zoe"], &["--key", "q7m2xk4d", "--form"], &[]] {
        refusal(&server, &[&["members", "find"], both].concat());
    }

    let audit = |flags: &[&str]| {
        let lines = server.run(&[&["audit", "--json"], flags].concat());
        let acts = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        // The looks from above are there, too.
        let acts = acts.filter(|act| act["command"] != "members find");
        acts.map(|act| act["about"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(audit(&[]).len(), 2);
    let of_zoe = [format!("key {} for Zoe", &zoe[3..11])];
    assert_eq!(audit(&["--about", "zOE"]), of_zoe);
    assert_eq!(audit(&["--about", &zoe[3..11]]), of_zoe);
    let who = server.rows("SELECT who FROM audit")[0][0].clone();
    assert_eq!(audit(&["--by", &who, "--about", "Zoe"]), of_zoe);
    assert!(audit(&["--by", &who[1..]]).is_empty(), "the whole name");
    assert!(audit(&["--until", "2020-01-01"]).is_empty() && audit(&["--since", "2999-01-01"]).is_empty());
    assert_eq!(audit(&["--since", "2020-01-01", "--until", "2999-01-01"]).len(), 2);
    assert_eq!(server.run(&["audit", "--about", "nobody"]), "Nothing in the log matches.");
}

#[test]
fn a_name_that_looks_like_another_partners_is_asked_about() {
    let server = Server::start_with(&["--mail", "hold"]);
    server.key();
    for alike in ["acme assistant", "AcmeAssistant"] {
        let told = refusal(&server, &["keys", "issue", alike]);
        for command in ["keys issue 'Acme Assistant'`", "--new-partner`"] {
            assert!(told.contains(command), "{told}");
        }
    }
    assert_eq!(server.number("SELECT count(*) FROM partners"), 1);
    server.run(&["keys", "issue", "acme assistant", "--new-partner"]);
    server.run(&["keys", "issue", "acme assistant"]);
    assert!(
        refusal(&server, &["keys", "issue", "acme assistant", "--new-partner"]).contains("leave out --new-partner")
    );
    let partners = server.rows("SELECT name FROM partners ORDER BY id").concat();
    assert_eq!(partners, ["Acme Assistant", "acme assistant"]);
    for reserved in ["The Form", "(others)"] {
        assert!(refusal(&server, &["keys", "issue", reserved]).contains("give the partner another name"));
    }
}
