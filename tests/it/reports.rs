//! Mail that comes back: reports that a mail server pipes in, and those of mail services, each believed only with its proof.

use crate::prelude::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// Runs `mail feedback` on a report, as a mail server would; says how it ended and what it printed.
fn feedback(server: &Server, report: &str, more: &[&str]) -> (Option<i32>, String) {
    let mut command = server.command();
    command.args(["mail", "feedback"]).args(more);
    let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It may have ended before it read all.
    let _closed = process.stdin.take().unwrap().write_all(report.as_bytes());
    let done = process.wait_with_output().unwrap();
    (done.status.code(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).trim().to_owned())
}

/// A notification in the shape of RFC 3464, about a mail whose headers it returns.
fn notification(status: &str, returned: &str) -> String {
    format!(
        "From: MAILER-DAEMON@mx.example.net\nTo: bounces@union.example\nSubject: Undelivered\nMIME-Version: 1.0\n\
         Content-Type: multipart/report; report-type=delivery-status; boundary=\"b\"\n\n--b\nContent-Type: text/plain\n\n\
         Sorry.\n\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example.net\n\n\
         Final-Recipient: rfc822; x@example.com\nAction: failed\nStatus: {status}\n\n--b\n\
         Content-Type: text/rfc822-headers\n\n{returned}\n--b--\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_back_is_heard_by_its_return_path_or_its_headers() {
    needs!(MailServer);
    let mail = Mailserver::start(&[]);
    let url = format!("smtp://127.0.0.1:{}?tls=none", mail.port);
    let (server, key) = Server::with_key(&["--mail", &url, "--mail-bounces", "bounces.union.example"]);
    for email in ["ana@example.com", "ben@example.com", "cleo@example.com"] {
        server.post("/v1/invite", &key, sign_up(email)).await.good();
    }
    let arrived = mail.wait_for(3).await;
    let of = |email: &str| arrived.iter().find(|mail| mail["to"] == json!([email])).unwrap();
    let return_path = |email: &str| of(email)["from"].as_str().unwrap().to_owned();
    let headers = |email: &str| {
        let content = of(email)["content"].as_str().unwrap().replace("\r\n", "\n");
        content.split("\n\n").next().unwrap().to_owned()
    };
    assert!(return_path("ana@example.com").ends_with("@bounces.union.example"));
    assert_ne!(return_path("ana@example.com"), return_path("ben@example.com"), "each mail has its own");
    assert!(headers("ana@example.com").contains("From: \"Consumer Union\" <no-reply@"), "the sender stays");

    let ana = return_path("ana@example.com");
    let (code, said) = feedback(&server, &notification("5.1.1", "Subject: x"), &["--recipient", &ana]);
    assert_eq!((code, said.as_str()), (Some(0), "There is no such recipient; no mail goes there for 30 days."));
    let (_, said) = feedback(&server, &notification("5.1.1", "Subject: x"), &["--recipient", &ana]);
    assert_eq!(said, "This report was already known.");
    let (_, said) = feedback(&server, &notification("5.2.2", &headers("ben@example.com")), &[]);
    assert_eq!(said, "It was not delivered this time; that is counted.");
    let (_, said) = feedback(&server, &notification("5.2.2", &headers("ben@example.com")), &[]);
    assert_eq!(said, "This report was already known.", "the same report is one bounce");
    let complaint = notification("", &headers("cleo@example.com"))
        .replace("report-type=delivery-status", "report-type=feedback-report")
        .replace("message/delivery-status", "message/feedback-report\n\nFeedback-Type: abuse");
    let (_, said) = feedback(&server, &complaint, &[]);
    assert!(said.starts_with("The recipient reported it as spam"), "{said}");
    // What is no report of ours changes nothing, and is no failure: the mail server is done with it.
    let forged = return_path("ben@example.com").replacen("b-0", "b-1", 1);
    let endless = notification("5.1.1", &"x".repeat(3 << 20));
    for (report, more) in [
        ("", &[][..]),
        ("From: x\n\nout of office", &[]),
        (&notification("5.1.1", "Subject: x"), &[]),
        (&notification("5.1.1", "Subject: x"), &["--recipient", &forged]),
        (&endless, &[]),
    ] {
        let (code, said) = feedback(&server, report, more);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.starts_with("Nothing was changed: "), "{said}");
    }
    let kept = "SELECT count(undeliverable_until), sum(soft_bounces) FROM people";
    assert_eq!(server.rows(kept), [["1", "1"]]);
    assert_eq!(server.number("SELECT count(complained_at) FROM mailboxes"), 1);
    // The links that were mailed still work, and one of them lifts the silence.
    let confirm = crate::mail::link(of("cleo@example.com")["content"].as_str().unwrap(), "/confirm/");
    assert_eq!(server.submit(Request::post(&confirm), "").await.status, 200);
    assert_eq!(server.number("SELECT count(complained_at) FROM mailboxes"), 0);
    for secret in [&ana, "ana@example.com", "cleo@example.com"] {
        assert!(!server.log().contains(secret));
    }
}

#[test]
fn a_report_is_kept_by_the_mail_server_while_the_records_are_away() {
    let server = Server::start();
    let (code, said) = feedback(&server, "x", &["--store", "sqlite:/nowhere/none.db"]);
    assert_eq!(code, Some(75), "{said}");
}

const RESEND: [u8; 24] = [9; 24];
const POSTMARK: &str = "hook:correct horse battery";

fn with_hooks() -> Server {
    Server::start_with_env(
        &[
            ("UNIONHALL_RESEND_WEBHOOK_SECRET", &format!("whsec_{}", STANDARD.encode(RESEND))),
            ("UNIONHALL_POSTMARK_WEBHOOK_LOGIN", POSTMARK),
            ("UNIONHALL_MAIL", "hold"),
        ],
        &[],
    )
}

async fn resend(server: &Server, id: &str, seconds_ago: i64, body: &str, key: &[u8]) -> Answer {
    let now = Clock::start().now().time.as_millis() / 1000 - seconds_ago;
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), format!("{id}.{now}.{body}").as_bytes());
    let request = Request::post("/hooks/mail/resend")
        .header("svix-id", id)
        .header("svix-timestamp", now.to_string())
        .header("svix-signature", format!("v1,{}", STANDARD.encode(tag.as_ref())));
    server.send(request, body.to_owned()).await
}

async fn postmark(server: &Server, login: &str, body: &str) -> Answer {
    let request =
        Request::post("/hooks/mail/postmark").header("authorization", format!("Basic {}", STANDARD.encode(login)));
    server.send(request, body.to_owned()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_services_are_heard_with_their_proof_alone() {
    let server = with_hooks();
    let key = server.key();
    for email in ["ana@example.com", "ben@example.com", "cleo@example.com"] {
        server.post("/v1/invite", &key, sign_up(email)).await.good();
    }
    let noted = || {
        let people = "SELECT count(undeliverable_until), sum(soft_bounces) FROM people";
        let complaints = server.number("SELECT count(complained_at) FROM mailboxes");
        (server.rows(people).concat().join(" "), complaints)
    };
    let bounced = r#"{"type":"email.bounced","data":{"to":["ana@example.com"],"bounce":{"type":"Permanent"}}}"#;
    let soft = r#"{"type":"email.bounced","data":{"to":["ben@example.com"],"bounce":{"type":"Transient"}}}"#;
    let complaint = r#"{"RecordType":"SpamComplaint","Email":"cleo@example.com","ID":5}"#;

    for forged in [
        resend(&server, "msg_1", 0, bounced, &[8; 24]).await,
        resend(&server, "msg_1", 301, bounced, &RESEND).await,
        server.send(Request::post("/hooks/mail/resend"), bounced).await,
        postmark(&server, "hook:wrong horse battery", complaint).await,
        postmark(&server, "", complaint).await,
        server.send(Request::post("/hooks/mail/postmark"), complaint).await,
    ] {
        forged.refused(401, serde_json::Value::Null);
    }
    assert_eq!(noted(), ("0 0".to_owned(), 0));

    resend(&server, "msg_1", 0, bounced, &RESEND).await.good();
    for _replayed in 0..3 {
        resend(&server, "msg_2", 0, soft, &RESEND).await.good();
        postmark(&server, POSTMARK, complaint).await.good();
    }
    assert_eq!(noted(), ("1 1".to_owned(), 1), "each once");
    resend(&server, "msg_3", 0, soft, &RESEND).await.good();
    assert_eq!(noted(), ("1 2".to_owned(), 1));
    // About nobody we know, about nothing we want to know, and in no shape.
    resend(&server, "msg_4", 0, &bounced.replace("ana@", "nobody@"), &RESEND).await.good();
    resend(&server, "msg_5", 0, r#"{"type":"email.opened","data":{}}"#, &RESEND).await.good();
    resend(&server, "msg_6", 0, "{}", &RESEND).await.refused(400, serde_json::Value::Null);
    postmark(&server, POSTMARK, "[]").await.refused(400, serde_json::Value::Null);
    assert_eq!(noted(), ("1 2".to_owned(), 1));
    let told = async || server.log().contains("a report of resend was not understood");
    wait_for!(told).await;
    assert!(!server.log().contains("example.com"), "{}", server.log());
}

/// What a call's head says is judged before its body has come, and guessing has a budget: 700 guesses met no 429.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_judged_by_its_head_and_guessing_has_a_budget() {
    let server = with_hooks();
    for (more, status) in [
        ("Authorization: Basic eDp5\r\nContent-Length: 100", "401"),
        (&format!("Authorization: Basic {}\r\nContent-Length: 600000", STANDARD.encode(POSTMARK)), "413"),
    ] {
        let mut stream = server.dial(std::net::Ipv4Addr::LOCALHOST).await;
        // Whoever waits for leave to send the body is told at once that it is not wanted.
        let head = format!("POST /hooks/mail/postmark HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n{more}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        let read = stream.read_exact(&mut answer);
        // The body never comes.
        in_time("an answer to the head", read).await.unwrap();
        assert!(answer.ends_with(status.as_bytes()), "{}", String::from_utf8_lossy(&answer));
    }
    for n in 2..300 {
        postmark(&server, &format!("hook:guess number {n} of many"), "{}").await.refused(401, serde_json::Value::Null);
    }
    let refused = postmark(&server, POSTMARK, "{}").await;
    assert_eq!(refused.status, 429);
    assert!(!refused.header("retry-after").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_of_mail_are_in_the_metrics() {
    let (server, key) = Watched::with_key(&["--mail", "hold"]);
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    let figures = server.figures().await;
    for (series, figure) in [
        ("unionhall_outbox_waiting", 1.0),
        ("unionhall_outbox_waiting_about_campaigns", 0.0),
        ("unionhall_outbox_held", 0.0),
        ("unionhall_mail_reports_total{kind=\"hard_bounce\",partner=\"Acme Assistant\"}", 0.0),
        ("unionhall_mail_reports_total{kind=\"soft_bounce\",partner=\"Acme Assistant\"}", 0.0),
        ("unionhall_mail_reports_total{kind=\"complaint\",partner=\"Acme Assistant\"}", 0.0),
    ] {
        assert_eq!(figures.get(series), Some(&figure), "{series}");
    }
    assert!(figures["unionhall_outbox_oldest_seconds"] < 60.0);
}

mod once {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn the_hooks_of_mail_services_are_closed_until_a_secret_is_given() {
        let server = Server::start();
        for path in ["/hooks/mail/resend", "/hooks/mail/postmark"] {
            server.send(Request::post(path), "{}").await.refused(404, serde_json::Value::Null);
        }
        for (variable, wrong) in
            [("UNIONHALL_RESEND_WEBHOOK_SECRET", "hunter2"), ("UNIONHALL_POSTMARK_WEBHOOK_LOGIN", "hook:hunter2")]
        {
            let output =
                server.command().args(["serve", "--listen", "127.0.0.1:0"]).env(variable, wrong).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(!output.status.success() && said.contains(variable) && !said.contains("hunter2"), "{said}");
        }
    }
}
