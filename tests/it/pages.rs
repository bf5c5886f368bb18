//! The pages that people see, and what their buttons do.

use crate::mail::link;
use crate::prelude::*;

/// Waits for the newest message in the development mailbox to be the `count`-th.
pub(crate) async fn letter(server: &Server, count: usize) -> String {
    let folder = server.data().join("mailbox");
    let letters = || {
        let mut files: Vec<_> =
            std::fs::read_dir(&folder).into_iter().flatten().map(|file| file.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|end| end == "eml"));
        files.sort();
        files
    };
    wait_for!(async || letters().len() >= count).await;
    std::fs::read_to_string(&letters()[count - 1]).unwrap()
}

async fn members(server: &Server) -> u64 {
    server.get("/v1/stats").await.good()["memberCount"].as_u64().unwrap()
}

#[track_caller]
pub(crate) fn page(answer: &Answer, status: u16, part: &str) -> String {
    // Titles and values are escaped, other sentences are not.
    let text = answer.text().replace("&#39;", "'");
    assert_eq!(answer.status.as_u16(), status, "{text}");
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(answer.header("cache-control"), "no-store");
    assert!(text.contains(part), "no {part} in {text}");
    text
}

/// What a hidden field of the page's first form holds that has it.
#[track_caller]
pub(crate) fn hidden(html: &str, name: &str) -> String {
    html.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap().split('"').next().unwrap().to_owned()
}

#[track_caller]
pub(crate) fn leads(answer: &Answer, to: &str) {
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, to), "{answer:?}");
}

async fn post(server: &Server, path: &str) -> Answer {
    server.submit(Request::post(path), "").await
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_changes_nothing_and_the_button_confirms_once() {
    let server = Arc::new(Server::start());
    let key = server.key();
    let body = json!({
        "email": "ana.maria@example.com", "usState": "CA", "categories": { "internet": true, "travel": true },
        "otherComments": "my own words",
    });
    let invite = server.post("/v1/invite", &key, body.to_string()).await.good()["inviteLink"].clone();
    let mail = letter(&server, 1).await;
    let (confirm, decline) = (link(&mail, "/confirm/"), link(&mail, "/not-me/"));
    // A scanner opens everything, twice, and asks for heads too.
    for _ in 0..2 {
        for path in [&confirm, &decline] {
            assert_eq!(server.get(path).await.status, 200);
            assert_eq!(server.send(Request::head(path), "").await.status, 200);
        }
    }
    assert_eq!(members(&server).await, 0);
    let shown = page(&server.get(&confirm).await, 200, "a•••@e•••.com");
    holds(&shown, &["Acme Assistant", "California", "Home Internet", "$300", "Travel", "$350", "$650"]);
    assert!(!shown.contains("ana.maria") && shown.contains("my own words"));
    let form = shown.split("<form").nth(1).unwrap();
    assert!(form.starts_with(&format!(" method=\"post\" action=\"{confirm}\"")) || form.contains(&confirm), "{form}");

    let mut clicks = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let (server, confirm) = (Arc::clone(&server), confirm.clone());
        clicks.spawn(async move { server.send(Request::post(confirm), "").await });
    }
    let clicks = clicks.join_all().await;
    let link = invite.as_str().unwrap();
    let welcome = format!("{confirm}?done=welcome");
    assert!(clicks.iter().all(|click| [&welcome, &confirm].iter().any(|to| click.header("location") == **to)));
    let welcomed = clicks.iter().filter(|click| click.header("location") == welcome).count();
    assert_eq!((welcomed, members(&server).await), (1, 1));
    let shown = page(&server.get(&welcome).await, 200, link);
    assert!(shown.contains("Welcome to the union") && !shown.contains("already confirmed"), "as often as it is loaded");
    page(&server.get(&confirm).await, 200, "already confirmed");
    page(&post(&server, &confirm).await, 200, link);
    page(&post(&server, &decline).await, 200, "was confirmed");
    assert_eq!(members(&server).await, 1);
}

/// Somebody replaces the answers between the page and the button: the person is shown the new ones first.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_confirmed_is_what_was_shown() {
    let (server, key) = Server::with_key(&[]);
    let body = |slug: &str| json!({ "email": "ana@example.com", "categories": { slug: true } }).to_string();
    server.post("/v1/invite", &key, body("travel")).await.good();
    let confirm = link(&letter(&server, 1).await, "/confirm/");
    let seen = |html: &str| hidden(html, "seen");
    let first = seen(&page(&server.get(&confirm).await, 200, "Travel"));
    // At another moment, to the millisecond.
    server.execute("UPDATE sign_ups SET updated_at = updated_at - 1");
    let press = async |seen: &str| server.submit(Request::post(&confirm), form(&[("seen", seen)])).await;
    let again = page(&press(&first).await, 200, "has changed since you opened it");
    assert_eq!(members(&server).await, 0);
    page(&press(&seen(&again)).await, 200, "Welcome");
    assert_eq!(members(&server).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn this_was_not_me_withdraws_and_is_counted_against_the_partner() {
    let (server, key) = Server::with_key(&[]);
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    let mail = letter(&server, 1).await;
    let (confirm, decline) = (link(&mail, "/confirm/"), link(&mail, "/not-me/"));
    page(&server.get(&decline).await, 200, "a•••@e•••.com");
    // The way mail programs do it, with one click and no page (RFC 8058).
    let one_click = Request::post(&decline).header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(server.send(one_click, "List-Unsubscribe=One-Click").await.status, 200);
    page(&post(&server, &confirm).await, 410, "withdrawn");
    page(&server.get(&confirm).await, 410, "withdrawn");
    assert_eq!(members(&server).await, 0);
    let keys = server.json(&["keys", "list", "--json"]);
    assert_eq!(keys[0]["declined"], 1);
    // Signing up again is answered as ever, and nothing is sent; another's mail shows that the worker has looked.
    server.post("/v1/invite", &key, sign_up("ana+again@example.com")).await.good();
    server.post("/v1/invite", &key, sign_up("ben@example.com")).await.good();
    assert!(letter(&server, 2).await.contains("To: ben@example.com"));
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_lead_nowhere_say_so_kindly() {
    let (server, key) = Server::with_key(&[]);
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    let mail = letter(&server, 1).await;
    let (confirm, decline) = (link(&mail, "/confirm/"), link(&mail, "/not-me/"));
    for bad in ["/confirm/x", "/not-me/x", &confirm.replace("/confirm/", "/not-me/"), &confirm[..confirm.len() - 1]] {
        for answer in [server.get(bad).await, server.send(Request::post(bad), "").await] {
            page(&answer, 404, "/join");
        }
    }
    server.execute("UPDATE sign_ups SET expires_at = 0");
    page(&server.get(&confirm).await, 410, "link has expired");
    page(&post(&server, &confirm).await, 410, "link has expired");
    page(&post(&server, &decline).await, 200, "");
    assert_eq!(members(&server).await, 0);
    let lost = Request::get("/somewhere").header("accept", "text/html,*/*;q=0.8");
    page(&server.send(lost, "").await, 404, "/join");
}

pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_joins_by_the_same_double_opt_in() {
    let (server, key) = Server::with_key(&[]);
    let code = server.post("/v1/referral-link", &key, sign_up("ben@example.com")).await.good()["code"].clone();
    let code = code.as_str().unwrap();
    for path in ["/join", &format!("/joinus{code}"), "/joinusnobodyscode", "/joinus"] {
        let shown = page(&server.get(path).await, 200, "<form");
        assert_eq!(shown.contains(&format!("value=\"{code}\"")), path.contains(code));
    }
    let front = page(&server.send(Request::get("/").header("accept", "text/html"), "").await, 200, "<form");
    assert!(
        front.contains("yearly figures are made up") && !front.contains("<dd>$300</dd>"),
        "no figure of the sample stands for itself"
    );
    server.get("/").await.good();

    let request = || {
        let request = Request::post("/join").header("content-type", "application/x-www-form-urlencoded");
        request.header("sec-fetch-site", "same-origin")
    };
    let send = async |fields: &[(&str, &str)]| server.submit(request(), form(fields)).await;
    let wrong = send(&[
        ("email", "ana"),
        ("usState", "XX"),
        ("travel", "true"),
        ("otherComments", "<b>hey</b>"),
        ("refCode", code),
    ])
    .await;
    let shown = page(&wrong, 200, "That address looks incomplete");
    holds(
        &shown,
        &["value=\"ana\"", "&#60;b&#62;hey&#60;/b&#62;", &format!("value=\"{code}\""), "Choose a state from the list"],
    );
    let long = "é".repeat(1001);
    page(
        &send(&[("email", "ana@example.com"), ("otherComments", &long)]).await,
        200,
        "Shorten this to 1000 characters",
    );

    let right =
        [("email", " ana@example.com "), ("usState", "CA"), ("travel", "true"), ("refCode", code), ("website", "")];
    page(&send(&right).await, 200, "ana@example.com");
    let mail = letter(&server, 1).await;
    assert!(!mail.contains("Acme"), "no partner asked");
    page(&post(&server, &link(&mail, "/confirm/")).await, 200, "Welcome");
    assert_eq!(members(&server).await, 1);
    let kept = "SELECT partner_id, us_state, code FROM sign_ups JOIN people ON people.id = sign_ups.referrer_id";
    assert_eq!(server.rows(kept), [["NULL", "CA", code]]);
    // A program that fills in everything is told what it hopes to hear, and nothing happens.
    page(&send(&[("email", "bot@example.com"), ("website", "http://spam.example")]).await, 200, "bot@example.com");
    assert_eq!(server.number("SELECT count(*) FROM people WHERE email LIKE 'bot%'"), 0);
    server.run(&["signups", "pause"]);
    page(&server.send(request(), form(&[("email", "cleo@example.com")])).await, 500, "paused");
    for _ in 0..10 {
        server.send(request(), "").await;
    }
    let over = server.send(request(), form(&right)).await;
    page(&over, 429, "second");
    assert!((1..=60).contains(&over.header("retry-after").parse::<u32>().unwrap()));
    server.get("/v1/stats").await.good();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_who_signs_up_again_is_told_that_they_are_in() {
    let (server, key) = Server::with_key(&[]);
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    let confirm = link(&letter(&server, 1).await, "/confirm/");
    post(&server, &confirm).await;
    // The ten minutes between two mails have passed.
    server.execute("UPDATE mailboxes SET sent_1 = 0");
    let other = server.run(&["keys", "issue", "Other Assistant"]);
    let again = server.post("/v1/invite", &other, sign_up("ana@example.com")).await.good();
    let mail = letter(&server, 2).await;
    let message = mail_parser::MessageParser::default().parse(mail.as_bytes()).unwrap();
    let text = message.body_text(0).unwrap();
    assert!(text.contains("already") && text.contains("Other Assistant"), "{text}");
    assert!(text.contains(again["inviteLink"].as_str().unwrap()) && !text.contains("/confirm/"), "{text}");
    assert_eq!(members(&server).await, 1);
    let spanish = page(&server.get(&link(&mail, "/already-member/")).await, 200, "<html lang=\"es\">");
    assert!(spanish.contains("Ya eres miembro") && spanish.contains("/joinus") && !spanish.contains("Anular"));
    assert_eq!(server.get("/already-member/x").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_stay_up_and_make_no_figure_up_when_the_store_is_away() {
    let (server, key) = Server::with_key(&[]);
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    let confirm = link(&letter(&server, 1).await, "/confirm/");
    server.execute("ALTER TABLE installation RENAME TO away; ALTER TABLE sign_ups RENAME TO gone");
    page(&server.get("/join").await, 200, "<form");
    page(&server.get(&confirm).await, 503, "not your fault");
    page(&server.send(Request::post(&confirm), "").await, 503, "not your fault");
    let failed = server.send(Request::post("/join"), form(&[("email", "ben@example.com")])).await;
    page(&failed, 500, "value=\"ben@example.com\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_sign_ups_are_paused_there_is_no_form_to_fill_in() {
    let (server, key) = Server::with_key(&[]);
    let code = server.post("/v1/referral-link", &key, sign_up("ben@example.com")).await.good()["code"].clone();
    let form = async |path: &str| {
        let shown = server.get(path).await.text();
        (shown.contains("<form"), shown.contains("Sign-ups are paused"), shown.contains("your invitation link"))
    };
    let until = async |paused: bool| {
        wait_for!(async || form("/join").await == (!paused, paused, false)).await;
        let word = if paused { "paused" } else { "taken" };
        wait_for!(async || server.get("/readyz").await.good()["signUps"] == word).await;
    };
    until(false).await;
    server.run(&["signups", "pause"]);
    until(true).await;
    assert_eq!(form(&format!("/joinus{}", code.as_str().unwrap())).await, (false, true, true));
    // Whoever had it open already is told the same, and nothing is kept.
    let request = Request::post("/join").header("content-type", "application/x-www-form-urlencoded");
    let sent = server.send(request, "email=ana@example.com").await;
    assert_eq!(sent.status, 500);
    assert!(sent.text().contains("Sign-ups are paused"));
    assert_eq!(server.number("SELECT count(*) FROM sign_ups"), 0);
    server.run(&["signups", "resume"]);
    until(false).await;
}

mod once {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn forms_from_other_sites_are_refused() {
        let server = Server::start_with(&[
            "--base-url", "https://api.union.example", "--join-site", "https://union.example/go", "--mail", "hold",
        ]);
        let send = async |header: &str, value: &str| {
            let request = Request::post("/join").header(header, value);
            server.send(request, form(&[("email", "ana@example.com")])).await.status.as_u16()
        };
        for (header, value) in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("origin", "https://evil.example"),
            ("origin", "null"),
        ] {
            assert_eq!(send(header, value).await, 403, "{header}: {value}");
        }
        for (header, value) in [
            // The very host that the form was sent to, under whichever name.
            ("origin", "http://UNIONHALL.test"),
            ("sec-fetch-site", "same-origin"),
            ("origin", "https://union.example"),
            ("origin", "https://api.union.example"),
            ("x-none", "1"),
        ] {
            assert_eq!(send(header, value).await, 303, "{header}: {value}");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_development_mailbox_is_shown_on_this_machine_alone() {
        let (server, key) = Server::with_key(&[]);
        server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
        letter(&server, 1).await;
        let local = |path: &str| Request::get(path).header("host", "localhost:1");
        let ask = async |server: &Server, request: hyper::http::request::Builder| {
            use http_body_util::{BodyExt, Full};
            let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream)).await.unwrap();
            tokio::spawn(connection);
            let answer = sender.send_request(request.body(Full::<bytes::Bytes>::default()).unwrap()).await.unwrap();
            let (head, body) = answer.into_parts();
            Answer { status: head.status, headers: head.headers, body: body.collect().await.unwrap().to_bytes() }
        };
        // A proxy on this machine that adds nothing looks the same; only who has the link comes in.
        page(&ask(&server, local("/dev/mailbox").header("accept", "text/html")).await, 404, "");
        assert_eq!(ask(&server, local("/dev/mailbox?key=0000000000000000")).await.status, 404);
        let key = TokenMaker::new(&server.records().secret()).mailbox_key();
        let opened = ask(&server, local(&format!("/dev/mailbox?key={key}"))).await;
        leads(&opened, "/dev/mailbox");
        let cookie = opened.header("set-cookie").split(';').next().unwrap().to_owned();
        assert!(
            opened.header("set-cookie").contains("HttpOnly") && opened.header("set-cookie").contains("SameSite=Strict")
        );
        let local = |path: &str| local(path).header("cookie", &cookie);
        let list = page(&ask(&server, local("/dev/mailbox")).await, 200, "ana@example.com");
        let name = list.split("/dev/mailbox/").nth(1).unwrap().split('"').next().unwrap();
        page(&ask(&server, local(&format!("/dev/mailbox/{name}"))).await, 200, "/confirm/");
        let html = ask(&server, local(&format!("/dev/mailbox/{name}/html"))).await;
        page(&html, 200, "/confirm/");
        assert!(html.header("content-security-policy").contains("default-src 'none'"));
        for odd in ["../secret", "..%2fsecret", "nothing"] {
            assert_eq!(ask(&server, local(&format!("/dev/mailbox/{odd}"))).await.status, 404);
        }
        for request in [
            Request::get("/dev/mailbox").header("host", "union.example").header("cookie", &cookie),
            local("/dev/mailbox").header("x-forwarded-for", "127.0.0.1"),
            local("/dev/mailbox").header("via", "1.1 proxy"),
        ] {
            assert_eq!(ask(&server, request).await.status, 404);
        }
        let public = Server::start_with(&["--base-url", "https://api.union.example"]);
        assert_eq!(ask(&public, local("/dev/mailbox")).await.status, 404);
        // A loud warning.
        wait_for!(async || public.log().contains("set UNIONHALL_MAIL")).await;
        let held = Server::start_with(&["--mail", "hold"]);
        assert_eq!(ask(&held, local("/dev/mailbox")).await.status, 404);
    }
}
