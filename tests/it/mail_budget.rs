//! A source that causes too much mail is throttled: its mail is held, its callers are told the same, the operator is told, and a
//! person at the form can pass with a proof of work.

use crate::prelude::*;
use hyper::http::request::Builder;
use ring::digest;

/// Through a proxy of ours, from that address.
fn form_from(client: &str) -> Builder {
    Request::post("/join").header("x-forwarded-for", client).header("content-type", "application/x-www-form-urlencoded")
}

fn form() -> Builder {
    form_from("192.0.2.1")
}

fn start(mail: &str, flags: &[&str]) -> Server {
    Server::start_with(&[&["--mail", mail, "--trusted-proxies", "127.0.0.0/8"], flags].concat())
}

fn page(answer: &Answer) -> String {
    answer.text()
}

/// The question that a page's form asks, if it does.
fn question(page: &str) -> Option<String> {
    let (_, rest) = page.split_once(r#"name="question" value=""#)?;
    Some(rest.split('"').next().unwrap().to_owned())
}

fn answer_to(question: &str) -> u64 {
    let good = |n: &u64| {
        let hash = digest::digest(&digest::SHA256, format!("{question}:{n}").as_bytes());
        u32::from_be_bytes(hash.as_ref()[..4].try_into().unwrap()).leading_zeros() >= 18
    };
    (0..).find(good).unwrap()
}

/// Lets the form have its share of a day.
async fn budget(server: &Server) {
    let sent = server.submit(form(), "email=first@example.com").await;
    assert!(page(&sent).contains("Check your inbox"));
    wait_for!(async || question(&page(&server.get("/join").await)).is_some()).await;
}

/// 2,249 strangers were all mailed, and whoever came among them waited for a minute. That nothing before them in their lane is waited
/// for is a case of the store suite (`what_somebody_decided_about_goes_before_the_rest_of_its_lane`).
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_through_the_form_is_held_and_a_person_among_it_is_mailed() {
    needs!(MailServer);
    let mail = Mailserver::start(&[]);
    let server = start(&format!("smtp://127.0.0.1:{}?tls=none", mail.port), &[]);
    let flood = async |from: usize, to: usize| {
        let mut connections = Vec::new();
        for n in (from..to).step_by(75) {
            let mut connection = server.connect(std::net::Ipv4Addr::new(127, 0, 1, (n / 75) as u8)).await;
            connections.push(async move {
                for n in n..(n + 75).min(to) {
                    let client = format!("198.51.{}.{}", 100 + n / 2000, n / 9 % 250);
                    let email = format!("email=stranger{n}@example.com");
                    let status = connection.send(form_from(&client), email).await.status.as_u16();
                    assert_eq!(status, 303);
                }
            });
        }
        let mut tasks = tokio::task::JoinSet::new();
        connections.into_iter().for_each(|connection| drop(tasks.spawn(connection)));
        tasks.join_all().await;
    };
    flood(0, 1125).await;
    let asked = async || question(&page(&server.get("/join").await));
    wait_for!(async || asked().await.is_some()).await;
    let question = asked().await.unwrap();
    let body = format!("email=honest@example.com&question={question}&answer={}", answer_to(&question));
    tokio::join!(flood(1125, 2249), async {
        let taken = server.submit(form_from("203.0.113.9"), body).await;
        assert!(page(&taken).contains("Check your inbox"), "{}", page(&taken));
        let arrived = async || mail.arrived().iter().any(|mail| mail["to"] == json!(["honest@example.com"]));
        wait_for!(arrived).await;
    });
    // Nothing is under way any more.
    wait_for!(async || { server.number("SELECT count(*) FROM outbox WHERE held_at IS NULL") == 0 }).await;
    let arrived = mail.arrived().len();
    assert!(arrived < 100, "{arrived}");
    let log = server.log();
    assert_eq!(log.matches("the form has had its mail of the day").count(), 1, "{log}");
    let held = server.number("SELECT count(*) FROM outbox WHERE held_at IS NOT NULL");
    let status = server.json(&["signups", "status", "--json"]);
    assert_eq!((&status["paused"], &status["sources"][0]["state"]), (&json!(false), &json!("throttled")), "{status}");
    assert_eq!(status["sources"][0]["held"], json!(held));
    eprintln!("2,249 strangers: {arrived} mails, {held} held");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_answers_the_same_throttled_or_not() {
    let (server, key) = Server::with_key(&["--key-mails-a-day", "1", "--key-per-minute", "1000"]);
    let invite = async |email: &str| server.post("/v1/invite", &key, sign_up(email)).await;
    let free = invite("ana@example.com").await;
    wait_for!(async || server.number("SELECT count(*) FROM outbox") == 0).await;
    for n in 0..3 {
        invite(&format!("b{n}@example.com")).await.good();
    }
    wait_for!(async || server.number("SELECT count(held_at) FROM outbox") == 3).await;
    // Known or new, held or not: the same but for the person's own link.
    for email in ["ana@example.com", "b0@example.com", "new@example.com"] {
        let throttled = invite(email).await;
        let shape = |answer: &Answer| {
            let mut body = answer.good();
            body["inviteLink"] = json!("");
            let mut headers: Vec<_> = answer.headers.keys().map(ToString::to_string).collect();
            headers.sort_unstable();
            (serde_json::to_string(&body).unwrap(), headers)
        };
        assert_eq!(shape(&throttled), shape(&free), "{email}");
    }
    let again = invite("ana@example.com").await;
    assert_eq!(again.body, free.body, "byte for byte");

    let listed = server.json(&["keys", "list", "--json"]);
    assert_eq!((&listed[0]["partnerMailedToday"], &listed[0]["partnerMailBudgetToday"]), (&json!(1), &json!(1000)));
    holds(&server.run(&["keys", "list", "--key-mails-a-day", "1"]), &["MAIL TODAY", " 1/1 "]);
    let held = || server.number("SELECT count(held_at) FROM outbox");
    wait_for!(async || held() >= 4).await;
    holds(&server.run(&["mail", "release", "--key", listed[0]["id"].as_str().unwrap()]), &["mails are sent"]);
    wait_for!(async || held() == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_form_asks_for_a_proof_of_work_once_and_takes_people_without_scripts() {
    let server = start("mailbox:", &["--form-mails-a-day", "1"]);
    let plain = server.get("/join").await;
    assert!(question(&page(&plain)).is_none() && !page(&plain).contains("proof.js"));
    budget(&server).await;
    let asked = server.get("/join").await;
    assert!(asked.header("content-security-policy").contains("script-src 'self'"));
    let asked = page(&asked);
    assert!(asked.contains(r#"<script src="/proof.js" defer></script>"#) && asked.contains("<noscript>"));
    assert_eq!(server.get("/proof.js").await.status, 200);
    let people = || server.number("SELECT count(*) FROM people");
    let passes = |email: &str| {
        server.number(&format!(
            "SELECT coalesce(max(priority), -1) FROM outbox WHERE recipient = '{email}' AND held_at IS NOT NULL"
        ))
    };
    // A form that was opened before the budget came on, and answers that are none.
    let question = question(&asked).unwrap();
    let answer = answer_to(&question);
    let before = people();
    for bad in [
        String::new(),
        "&question=&answer=".to_owned(),
        format!("&question=1.a.b&answer={answer}"),
        format!("&question={question}&answer=0"),
        format!("&question={question}0&answer={answer}"),
    ] {
        let again = server.submit(form(), format!("email=ana@example.com&otherComments=kept{bad}")).await;
        let shown = page(&again);
        assert!(shown.contains("One more step") && shown.contains("ana@example.com") && shown.contains("kept"));
        assert!(self::question(&shown).is_some_and(|new| new != question), "a new question");
    }
    assert_eq!(people(), before, "nothing was taken yet, as it says");
    // Without scripts: taken, and told that it may wait.
    let taken =
        server.submit(form_from("192.0.2.2"), format!("email=ben@example.com&question={question}&answer=")).await;
    assert_eq!(taken.status, 200);
    assert!(page(&taken).contains("may wait until one of us has reviewed it"), "{}", page(&taken));
    wait_for!(async || passes("ben@example.com") == 0).await;
    // With a proof: mailed. The same proof again: asked anew.
    let body = |email: &str| format!("email={email}&question={question}&answer={answer}");
    let taken = server.submit(form_from("192.0.2.3"), body("cleo@example.com")).await;
    assert!(page(&taken).contains("Check your inbox"));
    wait_for!(async || { server.number("SELECT count(*) FROM outbox WHERE recipient = 'cleo@example.com'") == 0 })
        .await;
    let again = server.submit(form_from("192.0.2.3"), body("dora@example.com")).await;
    assert!(page(&again).contains("One more step"));
    // The operator lets the one without scripts go.
    assert_eq!(server.run(&["mail", "release", "--form"]), "1 mail is sent as soon as its mailbox may get one.");
    wait_for!(async || server.number("SELECT count(*) FROM outbox") == 0).await;
    let status = server.run(&["signups", "status", "--form-mails-a-day", "1"]);
    assert!(
        status.contains("Sign-ups are on.") && status.contains("throttled") && status.contains("the form"),
        "{status}"
    );
    server.run(&["signups", "pause"]);
    assert!(server.run(&["signups", "status"]).starts_with("Sign-ups are paused."));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_budget_nothing_is_asked_and_nothing_held() {
    let server = start("mailbox:", &["--form-mails-a-day", "0", "--key-mails-a-day", "0"]);
    for n in 0..8 {
        server.send(form(), format!("email=f{n}@example.com")).await;
    }
    wait_for!(async || server.number("SELECT count(*) FROM outbox") == 0).await;
    assert!(question(&page(&server.get("/join").await)).is_none());
    let status = server.json(&["signups", "status", "--json", "--form-mails-a-day", "0"]);
    assert_eq!(status["sources"][0]["mailBudgetToday"], Value::Null);
    assert_eq!(status["sources"][0]["mailedToday"], 8);
}
