//! Codes, links and attribution, through the API.

use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn first_requests_at_once_yield_one_code() {
    let server = std::sync::Arc::new(Server::start());
    let key = server.key();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..24 {
        let (server, key) = (std::sync::Arc::clone(&server), key.clone());
        tasks.spawn(async move {
            let path = if n % 2 == 0 { "/v1/referral-link" } else { "/v1/invite" };
            let spelled = if n % 3 == 0 { "Ana@Example.com" } else { "ana@example.com" };
            server.post(path, &key, sign_up(spelled)).await.good()["inviteLink"].as_str().unwrap().to_owned()
        });
    }
    let links: HashSet<_> = tasks.join_all().await.into_iter().collect();
    assert_eq!(links.len(), 1, "{links:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_survives_a_restart() {
    let (server, key) = Server::with_key(&["--join-site", "https://union.example"]);
    let made = server.post("/v1/referral-link", &key, sign_up("ana@example.com")).await.good();
    let home = server.stopped();
    let server = Server::start_in(home, &["--join-site", "https://union.example"]);
    let kept = server.post("/v1/referral-link", &key, sign_up("ana@example.com")).await.good();
    assert_eq!(made, kept);
    let new = server.post("/v1/referral-link", &key, sign_up("ben@example.com")).await.good();
    assert_ne!(new["code"], made["code"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_are_read_however_they_are_pasted_and_only_anothers_attributes() {
    let (server, key) = Server::with_key(&[]);
    let made = server.post("/v1/referral-link", &key, sign_up("ana@gmail.com")).await.good();
    let (code, link) = (made["code"].as_str().unwrap(), made["inviteLink"].as_str().unwrap());
    let attributed = async |email: &str, pasted: &str| {
        let body = json!({ "email": email, "refCode": pasted }).to_string();
        server.post("/v1/invite", &key, body).await.good()["refAttributed"] == true
    };
    let upper = format!("  {}\n", code.to_uppercase());
    let with_nul = format!("{}\0{}", &code[..4], &code[4..]);
    for pasted in [code, link, &upper, &format!("{link}?utm_source=mail"), &with_nul] {
        assert!(attributed("ben@example.com", pasted).await, "{pasted:?}");
    }
    for pasted in ["", "nonsense", "zzzzzzzzzzzz", &code[1..], &"x".repeat(100_000)] {
        assert!(!attributed("ben@example.com", pasted).await, "{}", &pasted[..pasted.len().min(20)]);
    }
    for own in ["ana@gmail.com", "ANA+bills@gmail.com", "a.na@googlemail.com"] {
        assert!(!attributed(own, code).await, "{own}");
    }
}

/// Whatever the address's state, the caller sees the same bytes.
#[tokio::test(flavor = "multi_thread")]
async fn answers_tell_nothing_about_membership() {
    let (server, key) = Server::with_key(&["--mail", "hold"]);
    let body = json!({ "email": "ana@example.com", "categories": { "travel": true } }).to_string();
    let fresh = server.post("/v1/invite", &key, body.clone()).await;
    let pending = server.post("/v1/invite", &key, body.clone()).await;
    assert_eq!(fresh.body, pending.body);
    assert_eq!(server.confirm(server.number("SELECT id FROM sign_ups")).await.status, 200);
    let member = server.post("/v1/invite", &key, body).await;
    let counted =
        |answer: &[u8]| String::from_utf8(answer.to_vec()).unwrap().replace("\"joinedCount\":1", "\"joinedCount\":0");
    assert_eq!(counted(&member.body), counted(&fresh.body));
    let names: Vec<_> = fresh.headers.keys().collect();
    assert_eq!(names, member.headers.keys().collect::<Vec<_>>());
    let kinds = server.rows("SELECT kind FROM outbox ORDER BY id");
    assert_eq!(kinds, [["already_member"]], "the confirmed one waits no longer, the member is told");
}
