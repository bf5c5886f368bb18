//! Mail that arrives: through a real server, over real connections, and what happens when it does not.

use crate::mailserver::python;
use crate::prelude::*;

/// A certificate for localhost that trusts itself; the folder holds `cert.pem` and `key.pem`.
fn certify() -> (tempfile::TempDir, String, String) {
    let folder = tempfile::tempdir().unwrap();
    crate::once::https::certify(folder.path());
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    (folder, cert, key)
}

/// The path of the first link in a message's text that leads to such a page.
pub(crate) fn link(content: &str, page: &str) -> String {
    let message = MessageParser::default().parse(content.as_bytes()).unwrap();
    let text = message.body_text(0).unwrap().into_owned();
    let start = text.find(page).unwrap_or_else(|| panic!("no {page} in {text}"));
    text[start..].split_whitespace().next().unwrap().trim_end_matches('.').to_owned()
}

fn outbox(server: &Server) -> Vec<Value> {
    serde_json::from_str(&server.run(&["mail", "list", "--json"])).unwrap()
}

async fn members(server: &Server) -> u64 {
    server.get("/v1/stats").await.good()["memberCount"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_goes_encrypted_and_authenticated_and_its_link_confirms() {
    needs!(MailServer);
    let (_folder, cert, key) = certify();
    for (tls, scheme) in [("implicit", "smtps"), ("starttls", "smtp")] {
        let mail = Mailserver::start(&[
            "--tls", tls, "--cert", &cert, "--key", &key, "--user", "union", "--password", "p@ss/word",
        ]);
        let url = format!(
            "{scheme}://union:p%40ss%2Fword@localhost:{}{}",
            mail.port,
            if tls == "starttls" { "?tls=required" } else { "" }
        );
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mail-url"), format!("{url}\n")).unwrap();
        // The server's own trust store, as an operator with a private authority would set it.
        let server = Server::start_with_env(
            &[("SSL_CERT_FILE", &cert), ("UNIONHALL_MAIL_FILE", folder.path().join("mail-url").to_str().unwrap())],
            &["--contact-email", "help@union.example", "--mail-from", "The Union <hello@union.example>"],
        );
        let partner = server.key();
        let body = json!({ "email": "Ana.Maria@Example.com", "otherComments": "CALLERS-OWN-WORDS", "usState": "CA" });
        server.post("/v1/invite", &partner, body.to_string()).await.good();
        let arrived = mail.wait_for(1).await;
        let message = &arrived[0];
        assert_eq!(message["encrypted"], true);
        assert_eq!((&message["user"], &message["from"]), (&json!("union"), &json!("hello@union.example")));
        assert_eq!(message["to"], json!(["Ana.Maria@Example.com"]));
        let content = message["content"].as_str().unwrap();
        assert!(!content.contains("CALLERS-OWN-WORDS"));

        let parsed = MessageParser::default().parse(content.as_bytes()).unwrap();
        let header = |name: &str| parsed.header_raw(name).unwrap_or_default().trim().to_owned();
        assert_eq!(header("To"), "Ana.Maria@Example.com", "the bare address");
        assert!(header("From").contains("hello@union.example"));
        assert_eq!(header("Auto-Submitted"), "auto-generated");
        assert!(header("Feedback-ID").starts_with("confirm:lane"), "{}", header("Feedback-ID"));
        assert_eq!(header("List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
        assert!(header("List-Unsubscribe").contains("/not-me/"));
        assert!(header("Message-ID").ends_with("@union.example>"), "{}", header("Message-ID"));
        assert!(!header("Date").is_empty());
        assert_eq!((parsed.text_body_count(), parsed.html_body_count()), (1, 1));
        let text = parsed.body_text(0).unwrap();
        for part in ["Acme Assistant", "Consumer Union", "help@union.example", "/joinus", "/confirm/", "/not-me/"] {
            assert!(text.contains(part), "{part} in {text}");
            assert!(parsed.body_html(0).unwrap().contains(part), "{part}");
        }

        let confirm = link(content, "/confirm/");
        assert_eq!(members(&server).await, 0);
        assert_eq!(server.submit(Request::post(&confirm), "").await.status, 200);
        assert_eq!(members(&server).await, 1);
        assert_eq!(outbox(&server), Vec::<Value>::new());
        // It has arrived a moment before the worker knows.
        let knows = async || server.get("/readyz").await.good()["mail"] == "sent";
        wait_for!(knows).await;
    }
}

/// The mail server goes away in the middle of a burst and comes back: everything arrives, nothing twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_server_that_was_away_gets_everything() {
    needs!(MailServer);
    let mut mail = Mailserver::start(&[]);
    let url = format!("smtp://127.0.0.1:{}", mail.port);
    let (server, key) = Server::with_key(&["--mail", &url, "--key-per-minute", "1000"]);
    for n in 0..200 {
        server.post("/v1/invite", &key, sign_up(&format!("user{n}@example.com"))).await.good();
        if n == 60 {
            mail.kill();
        }
    }
    wait_for!(async || outbox(&server).iter().any(|mail| mail["lastError"].is_string())).await;
    let told = async || server.log().contains("mail does not go");
    wait_for!(told).await;
    assert_eq!(server.get("/readyz").await.good()["mail"], "failing");
    mail.start_again();
    // Ten minutes later, as the records have it: waits have grown, and what was being sent may have gone.
    server.execute("UPDATE mailboxes SET sent_1 = 0; UPDATE outbox SET send_after = 0");
    let arrived = mail.wait_for(200).await;
    let mut counts: HashMap<String, usize> = HashMap::new();
    for message in &arrived {
        *counts.entry(message["to"][0].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!(counts.len(), 200);
    // The one that was on its way when the server died may have been taken without our hearing of it.
    assert!(arrived.len() <= 216, "{}", arrived.len());
    wait_for!(async || outbox(&server).is_empty()).await;
    assert!(!server.log().contains("@example.com"), "no address in the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_rejected_recipient_ends_a_mail() {
    needs!(MailServer);
    let mail = Mailserver::start(&[]);
    let (server, key) = Server::with_key(&["--mail", &format!("smtp://127.0.0.1:{}", mail.port)]);
    server.post("/v1/invite", &key, sign_up("nobody@example.com")).await.good();
    wait_for!(async || server.log().contains("no such recipient")).await;
    assert_eq!(outbox(&server), Vec::<Value>::new());
    // The same person again: the answer is the same, but nothing is sent.
    server.post("/v1/invite", &key, sign_up("nobody@example.com")).await.good();
    server.post("/v1/invite", &key, sign_up("later@example.com")).await.good();
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    mail.wait_for(1).await;
    wait_for!(async || outbox(&server).iter().any(|mail| mail["lastError"].is_string())).await;
    let waiting = outbox(&server);
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert_eq!(waiting[0]["lastError"], "the mail server answered 451 4.7.1 to RCPT TO");
    assert!(!server.log().contains("@example.com"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_who_is_thought_about_for_long_holds_up_nobody() {
    needs!(MailServer);
    let mail = Mailserver::start(&[]);
    let server = Server::start_with(&["--mail", &format!("smtp://127.0.0.1:{}", mail.port)]);
    // The first four are of one partner, whose others go all the same; a whole flood of them is of another.
    let (few, flood) = (server.key(), server.run(&["keys", "issue", "Flood"]));
    for n in 0..16 {
        let key = if n < 4 { &few } else { &flood };
        server.post("/v1/invite", key, sign_up(&format!("slow{n}@example.com"))).await.good();
    }
    for n in 0..20 {
        server.post("/v1/invite", &few, sign_up(&format!("quick{n}@example.com"))).await.good();
    }
    // None of the slow ones is answered yet.
    wait_for!(async || mail.arrived().len() == 20).await;
    assert!(mail.arrived().iter().all(|mail| mail["to"][0].as_str().unwrap().starts_with("quick")));
    assert!(outbox(&server).iter().all(|mail| mail["lastError"].is_null()), "nor was any given up");
}

/// Fifty mails of fifty went after the key that asked for them had been revoked.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_revoked_key_asked_for_is_held_until_the_operator_decides() {
    needs!(MailServer);
    let mut mail = Mailserver::start(&[]);
    mail.kill();
    let (server, key) = Server::with_key(&["--mail", &format!("smtp://127.0.0.1:{}", mail.port)]);
    let id = &key[3..11];
    for n in 0..4 {
        server.post("/v1/invite", &key, sign_up(&format!("user{n}@example.com"))).await.good();
    }
    server.run(&["keys", "revoke", id]);
    mail.start_again();
    server.execute("UPDATE outbox SET send_after = 0");
    let held = async || outbox(&server).iter().filter(|mail| mail["heldAt"].is_string()).count() == 4;
    wait_for!(held).await;
    assert!(server.run(&["mail", "list"]).contains("held"));
    assert_eq!(server.run(&["mail", "release", "--form"]), "No such mail is held.");
    assert_eq!(
        server.run(&["mail", "release", "--key", id]),
        "4 mails are sent, each as soon as its mailbox may get one."
    );
    mail.wait_for(4).await;
    assert_eq!(server.run(&["mail", "drop"]), "No such mail is held.");
}

/// Wrong passwords and refused relays are the operator's to mend: the mail waits.
#[tokio::test(flavor = "multi_thread")]
async fn the_operators_own_mistakes_are_told_and_cost_no_mail() {
    needs!(MailServer);
    let (_folder, cert, key) = certify();
    for (flags, login, told) in [
        (&["--user", "union", "--password", "right"][..], "union:wrong@", "535"),
        (&["--refuse-relay"], "", "554 5.7.1"),
        (&["--refuse-sender"], "", "550 5.1.0"),
    ] {
        let mut all = vec!["--tls", "implicit", "--cert", &cert, "--key", &key];
        all.extend(flags);
        let mail = Mailserver::start(&all);
        let url = format!("smtps://{login}localhost:{}", mail.port);
        let server = Server::start_with_env(&[("SSL_CERT_FILE", &cert)], &["--mail", &url]);
        let partner = server.key();
        server.post("/v1/invite", &partner, sign_up("ana@example.com")).await.good();
        wait_for!(async || { outbox(&server).first().is_some_and(|mail| mail["lastError"].is_string()) }).await;
        let error = outbox(&server)[0]["lastError"].as_str().unwrap().to_owned();
        assert!(error.contains(told), "{error}");
        assert!(server.log().contains(told) && !server.log().contains("wrong"), "{}", server.log());
        assert_eq!(server.get("/readyz").await.good()["mail"], "failing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_other_scripts_arrive_or_wait_with_the_reason() {
    needs!(MailServer);
    let mail = Mailserver::start(&[]);
    let (server, key) = Server::with_key(&["--mail", &format!("smtp://127.0.0.1:{}", mail.port)]);
    for email in ["jürgen@example.com", "ana@bücher.example", &format!("{}@example.com", "x".repeat(64))] {
        server.post("/v1/invite", &key, sign_up(email)).await.good();
    }
    let arrived = mail.wait_for(3).await;
    let mut to: Vec<_> = arrived.iter().map(|message| message["to"][0].as_str().unwrap()).collect();
    to.sort_unstable();
    assert_eq!(&to[..2], ["ana@xn--bcher-kva.example", "jürgen@example.com"]);

    let plain = Mailserver::start(&["--no-utf8"]);
    let (server, key) = Server::with_key(&["--mail", &format!("smtp://127.0.0.1:{}", plain.port)]);
    server.post("/v1/invite", &key, sign_up("jürgen@example.com")).await.good();
    wait_for!(async || { outbox(&server).first().is_some_and(|mail| mail["lastError"].is_string()) }).await;
    holds(outbox(&server)[0]["lastError"].as_str().unwrap(), &["SMTPUTF8"]);
}

/// The process is ended without warning while the worker is at work: every acknowledged sign-up has its mail in the end,
/// and nobody got more than one twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_loses_no_mail() {
    needs!(MailServer);
    // Some have gone, and some are on their way.
    let mail = Mailserver::start(&["--hold", "user1"]);
    let url = format!("smtp://127.0.0.1:{}", mail.port);
    let flags = ["--mail", &url, "--key-per-minute", "100000"];
    let (server, key) = Server::with_key(&flags);
    let mut acknowledged = Vec::new();
    let mut connection = server.connect(std::net::Ipv4Addr::LOCALHOST).await;
    for n in 0..60 {
        let email = format!("user{n}@example.com");
        let request = Request::post("/v1/invite").header("authorization", format!("Bearer {key}"));
        connection.send(request, sign_up(&email)).await.good();
        acknowledged.push(email);
    }
    wait_for!(async || !mail.arrived().is_empty()).await;
    wait_for!(async || outbox(&server).iter().any(|mail| mail["attempts"] == 1)).await;
    server.signal("KILL");
    let home = server.into_home();
    // Half a minute goes by: on PostgreSQL another process takes over what this one had leased only then.
    home.records().execute("UPDATE outbox SET leased_until = 0");
    let server = Server::start_in(home, &flags);
    mail.let_go();
    wait_for!(async || outbox(&server).is_empty()).await;
    let mut counts: HashMap<String, usize> = HashMap::new();
    for message in mail.arrived() {
        *counts.entry(message["to"][0].as_str().unwrap().to_owned()).or_default() += 1;
    }
    for email in &acknowledged {
        let count = counts.get(email).copied().unwrap_or(0);
        assert!((1..=2).contains(&count), "{email} got {count}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_waits_for_the_mail_on_its_way() {
    needs!(MailServer);
    let mail = Mailserver::start(&["--hold", "user"]);
    let (server, key) =
        Server::with_key(&["--mail", &format!("smtp://127.0.0.1:{}", mail.port), "--key-per-minute", "1000"]);
    for n in 0..40 {
        server.post("/v1/invite", &key, sign_up(&format!("user{n}@example.com"))).await.good();
    }
    // The worker is at work; whatever it has begun is finished, though nothing was answered before the end began.
    wait_for!(async || outbox(&server).iter().any(|mail| mail["attempts"] == 1)).await;
    let address = server.address;
    let stopped = tokio::task::spawn_blocking(move || server.stop());
    wait_for!(async || tokio::net::TcpStream::connect(address).await.is_err()).await;
    // An end that waits for nothing is over by now; this one waits for up to 7.5 s.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert!(mail.arrived().is_empty() && !stopped.is_finished());
    mail.let_go();
    let (code, home) = in_time("the server's end", stopped).await.unwrap();
    assert_eq!(code, Some(0));
    assert!(!mail.arrived().is_empty());
    let count = |sql| usize::try_from(home.records().number(sql)).unwrap();
    assert_eq!(count("SELECT count(*) FROM outbox WHERE leased_until > 0"), 0, "nothing was cut off");
    assert_eq!(mail.arrived().len() + count("SELECT count(*) FROM outbox"), 40);
}

/// Twenty sign-ups for one mailbox, in every spelling and by every source: one mail in ten minutes.
#[tokio::test(flavor = "multi_thread")]
async fn a_mailbox_is_not_flooded() {
    needs!(MailServer);
    let mail = Mailserver::start(&[]);
    let server = Server::start_with(&["--mail", &format!("smtp://127.0.0.1:{}", mail.port)]);
    let (key, other) = (server.key(), server.run(&["keys", "issue", "Other"]));
    let mut bodies = std::collections::HashSet::new();
    for n in 0..20 {
        let email = [
            "ana.b@gmail.com", "anab+x@gmail.com", "a.nab@googlemail.com", "ANA.B@gmail.com", "anab@ｇmail.com",
            "anab@gmａil.com",
        ][n % 6];
        let key = if n % 2 == 0 { &key } else { &other };
        let answer = server.post("/v1/invite", key, sign_up(email)).await;
        answer.good();
        let names: Vec<_> = answer.headers.keys().map(ToString::to_string).collect();
        bodies.insert((answer.body.len(), names.join(",")));
    }
    assert_eq!(bodies.len(), 1, "the answers do not differ");
    server.post("/v1/invite", &key, sign_up("ben@example.com")).await.good();
    let arrived = mail.wait_for(2).await;
    // Every mail that is due has been looked at once Ben's has come; the others wait for their time.
    wait_for!(async || outbox(&server).iter().all(|mail| mail["attempts"] == 0)).await;
    assert_eq!(arrived.len(), 2, "one for Ana and one for Ben");
    assert!(!outbox(&server).is_empty());
}

mod once {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn others_read_the_mail_as_it_is_meant() {
        needs!(MailServer);
        let server = Server::start_with_env(&[("UNIONHALL_MAIL", "mailbox:")], &[]);
        let key = server.run(&["keys", "issue", "Zoë's \"Helper\", Ltd."]);
        for email in ["ana@example.com", "o'neil+x@example.com", &format!("{}@sub.example.com", "x".repeat(60))] {
            server.post("/v1/invite", &key, sign_up(email)).await.good();
        }
        let form = Request::post("/join").header("content-type", "application/x-www-form-urlencoded");
        assert_eq!(server.submit(form, "email=kim%40example.com&consent=yes").await.status, 200);
        let folder = server.data().join("mailbox");
        let all = async || std::fs::read_dir(&folder).is_ok_and(|files| files.count() == 8);
        wait_for!(all).await;
        let lint = python("lint.py").arg(&folder).output().unwrap();
        let said = String::from_utf8_lossy(&lint.stdout).into_owned();
        assert!(lint.status.success() && said.contains("4 messages, 0 faults"), "{said}");
        // And it can find some.
        let mail = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
        let mail = mail.filter(|path| path.extension().is_some_and(|ending| ending == "eml")).min().unwrap();
        let broken = std::fs::read_to_string(&mail).unwrap().replace("Auto-Submitted: ", "Date: tomorrow\r\nX-Auto: ");
        std::fs::write(&mail, broken).unwrap();
        assert!(!python("lint.py").arg(&folder).output().unwrap().status.success());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn two_senders_for_one_data_folder_are_one_too_many() {
        let server = Server::start();
        let second = server.try_run(&["serve", "--listen", "127.0.0.1:0"]);
        let told = String::from_utf8(second.stderr).unwrap();
        assert!(told.contains("sends the mail of this data folder already") && told.contains("--mail hold"), "{told}");
        assert_eq!(second.status.code(), Some(1));
        server.get("/v1/stats").await.good();
    }
}

/// Nine of ten never left, and were counted as mailed; one was refused, and "a mail was sent".
#[tokio::test(flavor = "multi_thread")]
async fn only_mail_that_left_is_counted_and_shown_as_mailed() {
    needs!(MailServer);
    let mut mail = Mailserver::start(&[]);
    let url = format!("smtp://127.0.0.1:{}", mail.port);
    let (server, key) = Server::with_key(&["--mail", &url]);
    for email in ["ana@example.com", "nobody@example.com"] {
        server.post("/v1/invite", &key, sign_up(email)).await.good();
    }
    wait_for!(async || outbox(&server).is_empty()).await;
    mail.kill();
    for n in 0..8 {
        server.post("/v1/invite", &key, sign_up(&format!("p{n}@example.com"))).await.good();
    }
    wait_for!(async || outbox(&server).iter().filter(|mail| mail["lastError"].is_string()).count() == 8).await;
    let status = server.json(&["signups", "status", "--json"]);
    let of_partner = status["sources"].as_array().unwrap().iter().find(|source| source["source"] == "partner").unwrap();
    assert_eq!((&of_partner["mailed7d"], &of_partner["mailedToday"]), (&json!(1), &json!(10)), "{status}");
    let table = server.run(&["signups", "status"]);
    let row: Vec<_> = table.lines().find(|line| line.ends_with("Acme Assistant")).unwrap().split_whitespace().collect();
    assert_eq!((row[1], row[4]), ("10", "1"), "{table}");

    const HANDED: &str = "a mail was handed to the mail server";
    const NONE: &str = "no mail of a sign-up has left";
    let shown = |email: &str| server.run(&["members", "show", email]);
    assert_eq!(shown("ana@example.com").matches(HANDED).count(), 1);
    let refused = shown("nobody@example.com");
    assert!(!refused.contains(HANDED) && refused.contains(NONE), "{refused}");
    let waiting = shown("p3@example.com");
    assert!(!waiting.contains(HANDED) && waiting.contains(NONE), "{waiting}");
    // What the limits of a mailbox no longer need is forgotten; the sign-up still knows.
    server.execute("DELETE FROM mailboxes");
    let ana = shown("ana@example.com");
    assert!(ana.contains(HANDED) && !ana.contains(NONE), "{ana}");
}
