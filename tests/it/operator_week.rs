//! What an operator does in a week, on the page alone: keys of every kind, partners, people who write, mail that is late, a backup.

use crate::operator_page::{CHANGED, act, asked_form, audit, key_on, press, signed_in};
use crate::own_page::join;
use crate::prelude::*;
use unionhall::domain::language::Language;
use unionhall::domain::mail::MailKind;

const ISSUE: &str = "/operator/partners/issue";

/// What an operator did, without the way in.
fn done_by(server: &Server, who: &str) -> Vec<(String, String)> {
    let rows = audit(server).into_iter().filter(|(by, command, _)| by == who && command != "page sign-in");
    rows.map(|(_, command, about)| (command, about)).collect()
}

fn done(server: &Server) -> Vec<(String, String)> {
    done_by(server, "ana (page)")
}

fn row(command: &str, about: &str) -> (String, String) {
    (command.to_owned(), about.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_issued_with_its_own_limit_and_day_and_all_mistakes_are_shown_at_once() {
    let server = Server::start();
    let mut ana = signed_in(&server, "ana", 1).await;
    let html = page(&ana.get(&format!("{ISSUE}?name=%3Cb%3EAcme")).await, 200, "Issue a key");
    holds(&html, &["value=\"&#60;b&#62;Acme\"", "href=\"/operator/partners\""]);
    let form = ("form", &*hidden(&html, "form"));
    let wrong = [form, ("name", "the form"), ("per-minute", "<0>"), ("expires", "2020-01-01"), ("test", "yes")];
    let html = page(&act(&mut ana, ISSUE, &wrong).await, 400, "Nothing was saved");
    let kept = ["value=\"the form\"", "value=\"&#60;0&#62;\"", "2020-01-01", "name=\"test\" value=\"yes\" checked"];
    holds(&html, &kept);
    holds(&html, &["The partner's name:", "a number from 1 to 1,000,000", "such as 2027-12-31"]);
    assert_eq!(hidden(&html, "form"), form.1, "it is the same form");
    assert_eq!(server.number("SELECT count(*) FROM api_keys"), 0);
    for bad in ["0", "1000001", "-1", "1.5", "99999999999999999999"] {
        page(&act(&mut ana, ISSUE, &[form, ("name", "Acme"), ("per-minute", bad)]).await, 400, "Nothing was saved");
    }

    let right = [form, ("name", "Acme"), ("per-minute", "1,000"), ("expires", "2099-12-31")];
    let html = page(&act(&mut ana, ISSUE, &right).await, 200, "1,000 agent actions a minute");
    let key = key_on(&html);
    holds(&html, &["It works until <time datetime=\"2099-12-31T00:00:00Z\">Dec 31, 2099, 12:00 AM UTC</time>"]);
    server.post("/v1/invite", &key, sign_up("a@example.com")).await.good();
    let kept = server.rows("SELECT per_minute, expires_at FROM api_keys");
    assert_eq!(kept, [["1000", "4102358400000"]]);
    page(&act(&mut ana, ISSUE, &right).await, 400, "was sent before");
    assert_eq!(done(&server), [row("keys issue", &format!("key {} for Acme", &key[3..11]))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn test_keys_are_issued_shown_rotated_and_revoked() {
    let server = Server::start_with(&["--key-per-minute", "100000"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let works = async |key: &str| server.post("/v1/invite", key, sign_up("a@example.com")).await.status == 200;
    page(&ana.get("/operator/partners/test-keys").await, 200, "None yet");
    let no_form = [("name", "Acme"), ("test", "yes")];
    page(&act(&mut ana, ISSUE, &no_form).await, 400, "A part of the form is missing");
    assert!(!server.data().join("sandbox.db").exists());
    page(
        &act(&mut ana, "/operator/partners/revoke", &[("key", "00000000"), ("test", "yes")]).await,
        400,
        "no test keys",
    );
    let html = page(&ana.get(&format!("{ISSUE}?test=yes")).await, 200, "name=\"test\" value=\"yes\" checked");
    let fields = [("form", &*hidden(&html, "form")), ("name", "Acme"), ("test", "yes")];
    let key = key_on(&page(&act(&mut ana, ISSUE, &fields).await, 200, "Test key "));
    assert!(key.starts_with("uh_test_"), "{}", &key[..8]);
    wait_for!(async || works(&key).await).await;
    page(&act(&mut ana, ISSUE, &fields).await, 400, "was sent before");
    assert_eq!(server.number("SELECT count(*) FROM api_keys"), 0, "nothing of it is among the live records");
    let id = &key[8..16];
    let html = page(&ana.get("/operator/partners/test-keys").await, 200, "Acme");
    assert!(html.contains(id) && !html.contains(&key));

    let test = ("test", "yes");
    page(&act(&mut ana, "/operator/partners/rotate", &[("key", id)]).await, 400, "There is no key");
    let html = page(&act(&mut ana, "/operator/partners/rotate", &[("key", id), test]).await, 200, "Rotate key");
    let fields = [("form", &*hidden(&html, "form")), ("key", id), test, ("grace", "0s"), ("sure", "yes")];
    let successor = key_on(&page(&act(&mut ana, "/operator/partners/rotate", &fields).await, 200, "replaces"));
    wait_for!(async || works(&successor).await && !works(&key).await).await;
    page(&act(&mut ana, "/operator/partners/rotate", &fields).await, 400, "was sent before");

    let next = &successor[8..16];
    let html = page(&act(&mut ana, "/operator/partners/revoke", &[("key", next), test]).await, 200, "Revoke test key");
    assert_eq!(hidden(&html, "test"), "yes");
    let fields = [("key", next), test, ("sure", "yes")];
    page(&act(&mut ana, "/operator/partners/revoke", &fields).await, 200, "is revoked.");
    wait_for!(async || !works(&successor).await).await;
    // In the audit log that the page shows, and in the sandbox's own.
    let expected = [
        row("keys issue --test", &format!("key {id} for Acme")),
        row("keys rotate --test", &format!("key {id} by {next}")),
        row("keys revoke --test", &format!("key {next}")),
    ];
    assert_eq!(done(&server), expected);
    let listed = server.run(&["keys", "list", "--test"]);
    assert!(listed.contains("revoked") && listed.contains(id), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partners_contact_and_mail_budget_are_set_and_only_what_was_changed() {
    let (server, _) = Server::with_key(&[]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let path = format!("/operator/partners/{}/settings", server.number("SELECT id FROM partners"));
    page(&ana.get(&path).await, 200, "Contact and mail budget");
    let wrong = [("contact", "nobody"), ("mails", "1000001"), ("was-contact", ""), ("was-mails", "")];
    let html = page(&act(&mut ana, &path, &wrong).await, 400, "Nothing was saved");
    holds(&html, &["Contact: ", "Mails a day: ", "value=\"nobody\"", "value=\"1000001\""]);
    assert_eq!(done(&server), []);
    let contact = |server: &Server| server.rows("SELECT contact, mails_a_day FROM partners")[0].join(" ");

    let set = [("contact", "dev@acme.example"), ("mails", "2,000"), ("was-contact", ""), ("was-mails", "")];
    page(&act(&mut ana, &path, &set).await, 200, "may cause 2000 mails a day");
    assert_eq!(contact(&server), "dev@acme.example 2000");
    // From a page that is older than that: what it did not change stays.
    let stale = [("contact", ""), ("mails", "5"), ("was-contact", ""), ("was-mails", "")];
    page(&act(&mut ana, &path, &stale).await, 200, "may cause 5 mails a day");
    assert_eq!(contact(&server), "dev@acme.example 5");
    let html = page(&ana.get(&path).await, 200, "dev@acme.example");
    assert_eq!(
        (hidden(&html, "was-contact"), hidden(&html, "was-mails")),
        ("dev@acme.example".to_owned(), "5".to_owned())
    );
    let same =
        [("contact", "dev@acme.example"), ("mails", "5"), ("was-contact", "dev@acme.example"), ("was-mails", "5")];
    page(&act(&mut ana, &path, &same).await, 200, "Nothing was changed");
    page(&act(&mut ana, &path, &[]).await, 200, "Nothing was changed");
    let none = [("contact", ""), ("mails", ""), ("was-contact", "dev@acme.example"), ("was-mails", "5")];
    page(&act(&mut ana, &path, &none).await, 200, "no longer has a contact");
    page(&act(&mut ana, "/operator/partners/99/settings", &none).await, 404, "There is no such partner");
    let name = "Acme Assistant";
    let expected = [
        row("partners contact", &format!("set for {name}")),
        row("partners mail-budget", &format!("{name}: 2000")),
        row("partners mail-budget", &format!("{name}: 5")),
        row("partners contact", &format!("taken from {name}")),
        row("partners mail-budget", &format!("{name}: default")),
    ];
    assert_eq!(done(&server), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_suspended_partner_signed_up_is_cancelled() {
    let (server, key) = Server::with_key(&["--mail", "hold"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    for n in 0..3 {
        server.post("/v1/invite", &key, sign_up(&format!("user{n}@example.com"))).await.good();
    }
    server.run(&["keys", "issue", "Other"]);
    assert_eq!(server.confirm(1).await.status, 200);
    let id = server.number("SELECT id FROM partners WHERE name = 'Acme Assistant'").to_string();
    let path = "/operator/partners/withdraw";
    page(&act(&mut ana, path, &[("partner", &id)]).await, 400, "Suspend it first");
    server.run(&["partners", "suspend", "Acme Assistant"]);
    page(&ana.get(&format!("/operator/partners/{id}")).await, 200, "Cancel all unconfirmed sign-ups…");
    page(&act(&mut ana, path, &[("partner", &id)]).await, 200, "Cancel all unconfirmed sign-ups of Acme Assistant?");
    assert_eq!(server.number("SELECT count(*) FROM sign_ups WHERE state = 'pending'"), 2, "only asked so far");
    let sure = [("partner", &*id), ("sure", "yes")];
    page(&act(&mut ana, path, &sure).await, 200, "2 sign-ups were ended");
    page(&act(&mut ana, path, &sure).await, 200, "No sign-up of it waits");
    let states = server.rows("SELECT state, count(*) FROM sign_ups GROUP BY state ORDER BY state");
    assert_eq!(states, [["confirmed", "1"], ["expired", "2"]]);
    assert_eq!(server.number("SELECT count(*) FROM outbox"), 0);
    assert_eq!(done(&server), [row("partners withdraw", "Acme Assistant")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_writes_to_the_union_gets_their_data_leaves_and_gets_mail_again() {
    let (server, key) = crate::own_page::start();
    join(&server, &key, "Cleo@Example.com", None).await;
    server.post("/v1/invite", &key, sign_up("dan@example.com")).await.good();
    let mut ana = signed_in(&server, "ana", 1).await;
    let (email, nobody) = (("email", "cleo@example.com"), ("email", "nobody@example.com"));
    let html =
        page(&act(&mut ana, "/operator/people", &[("text", "cleo@example.com")]).await, 200, "Download their data");
    assert!(html.contains("End this membership…") && !html.contains("Try their mail again"), "{html}");

    // The file is what they would download themselves.
    let file = act(&mut ana, "/operator/people/export", &[email]).await;
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"member-export.json\"");
    assert_eq!(file.header("cache-control"), "no-store");
    let mut theirs = Browser::new(&server, 9);
    theirs.sign_in("cleo@example.com").await;
    let [mut file, mut own] =
        [file, theirs.get("/me/export").await].map(|answer| serde_json::from_slice::<Value>(&answer.body).unwrap());
    for document in [&mut file, &mut own] {
        // The one was made before they signed in, the other after.
        for field in ["exportedAt", "signIns"] {
            document.as_object_mut().unwrap().remove(field).unwrap();
        }
        document["mail"].as_object_mut().unwrap().remove("sent").unwrap();
    }
    assert_eq!(file, own);

    let states = || server.rows("SELECT email, state FROM people ORDER BY email").concat().join(" ");
    let before = states();
    page(&act(&mut ana, "/operator/people/leave", &[email]).await, 200, "End this membership?");
    page(&act(&mut ana, "/operator/people/unsuppress", &[email]).await, 200, "only if the person asks");
    assert_eq!(states(), before, "only asked so far");
    for path in ["export", "leave", "unsuppress", "retry"] {
        let path = format!("/operator/people/{path}");
        for fields in [&[nobody, ("sure", "yes")][..], &[("email", "x"), ("sure", "yes")], &[]] {
            page(&act(&mut ana, &path, fields).await, 400, "Nobody has that address");
        }
    }
    let sure = [email, ("sure", "yes")];
    page(&act(&mut ana, "/operator/people/leave", &sure).await, 200, "They are no longer a member");
    page(&act(&mut ana, "/operator/people/leave", &sure).await, 200, "They are not a member (left)");
    assert_eq!(server.number("SELECT member_count FROM installation"), 0);

    server.execute("UPDATE people SET undeliverable_until = 99999999999999 WHERE email = 'Cleo@Example.com'");
    page(&act(&mut ana, "/operator/people/unsuppress", &sure).await, 200, "Mail to it had bounced; that is cleared.");
    page(&act(&mut ana, "/operator/people/unsuppress", &sure).await, 200, "Nothing kept mail from that address.");

    server.execute("UPDATE outbox SET given_up_at = 1, last_error = 'away'");
    let html =
        page(&act(&mut ana, "/operator/people", &[("text", "dan@example.com")]).await, 200, "Try their mail again");
    assert!(html.contains("dan@example.com") && !html.contains("End this membership"), "{html}");
    page(&act(&mut ana, "/operator/people/retry", &[("email", "dan@example.com")]).await, 200, "1 mail is due again");
    wait_for!(async || server.number("SELECT count(*) FROM outbox WHERE given_up_at IS NOT NULL") == 0).await;
    let all = audit(&server);
    let acts: BTreeSet<_> = all.iter().map(|(_, command, _)| command.as_str()).collect();
    for command in ["members export", "members leave", "members unsuppress", "mail retry"] {
        assert!(acts.contains(command), "{command}: {acts:?}");
    }
    assert!(!format!("{all:?}{}", server.log()).to_lowercase().contains("example.com"));
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_that_waits_is_listed_some_at_a_time_and_tried_again() {
    let (server, key) = Server::with_key(&["--mail", "hold", "--key-per-minute", "100000"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let path = "/operator/mail/outbox";
    page(&ana.get(path).await, 200, "None.");
    for n in 0..60 {
        let domain = if n % 2 == 0 { "even.example" } else { "odd.example" };
        server.post("/v1/invite", &key, sign_up(&format!("user{n}@{domain}"))).await.good();
    }
    server.execute("UPDATE outbox SET given_up_at = 1, last_error = '<b>away</b>'");
    let html = page(&ana.get(path).await, 200, "given up at");
    assert!(!html.contains(".example<") && !html.contains("<b>away") && html.contains("&#60;b&#62;away"), "{html}");
    assert_eq!(html.matches("<tr><th scope=\"row\">Mail").count(), 50);
    let next = html.split("href=\"/operator/mail/outbox?after=").nth(1).unwrap().split('"').next().unwrap();
    let html = page(&ana.get(&format!("{path}?after={next}")).await, 200, "given up at");
    assert_eq!(html.matches("<tr><th scope=\"row\">Mail").count(), 10);
    assert!(!html.contains("?after="));
    for odd in ["x", "-1", "99999999999999999999999", "%00"] {
        page(&ana.get(&format!("{path}?after={odd}")).await, 200, "Mail that waits");
    }
    let given_up = || server.number("SELECT count(*) FROM outbox WHERE given_up_at IS NOT NULL");
    let id = server.number("SELECT min(id) FROM outbox").to_string();
    page(&act(&mut ana, path, &[("mail", &id)]).await, 200, "is tried again now");
    assert_eq!(given_up(), 59);
    page(&act(&mut ana, path, &[("mail", "999999")]).await, 200, "no longer in the outbox");
    for (fields, why) in [([("mail", "x")], "names no mail"), ([("domain", "no domain")], "cannot be read")] {
        page(&act(&mut ana, path, &fields).await, 400, why);
    }
    page(&act(&mut ana, path, &[("domain", "ODD.example")]).await, 200, "30 mails are due again");
    assert_eq!(given_up(), 29);
    page(&act(&mut ana, path, &[]).await, 400, "neither a mail nor a domain");
    page(&act(&mut ana, path, &[("domain", " ")]).await, 200, "60 mails are due again");
    assert_eq!(given_up(), 0);
    let expected = [format!("mail {id}"), "mail to ODD.example".to_owned(), "all that failed".to_owned()]
        .map(|about| row("mail retry", &about));
    assert_eq!(done(&server), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_mail_takes_the_way_of_all_mail_and_says_what_was_answered() {
    needs!(MailServer);
    let mut mail = Mailserver::start(&["--user", "union", "--password", "secret"]);
    let address = |password: &str| format!("smtp://union:{password}@localhost:{}?tls=none", mail.port);
    let server = Server::start_with(&["--mail", &address("secret"), "--mail-from", "union@union.example"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let path = "/operator/mail/test";
    let html = page(&ana.get(path).await, 200, "Send a test mail");
    assert!(html.contains("localhost:") && !html.contains("secret"), "{html}");
    let html = page(&act(&mut ana, path, &[("to", "x@y<b>")]).await, 400, "To: ");
    assert!(html.contains("x@y&#60;b&#62;"));
    page(&act(&mut ana, path, &[]).await, 400, "To: ");
    page(&act(&mut ana, path, &[("to", "Me@Union.example")]).await, 200, "It was accepted. Mail goes to localhost:");
    let arrived = mail.wait_for(1).await;
    assert_eq!(arrived[0]["to"], json!(["Me@Union.example"]));
    let content = arrived[0]["content"].as_str().unwrap();
    let parsed = MessageParser::default().parse(content.as_bytes()).unwrap();
    assert!(parsed.subject().unwrap().ends_with(": a test mail"), "{:?}", parsed.subject());
    assert!(parsed.body_text(0).unwrap().contains("There is nothing to do."));

    mail.kill();
    page(&act(&mut ana, path, &[("to", "me@union.example")]).await, 200, "the mail server could not be used");
    mail.start_again();
    // A few an hour, and then no more: what was no mail did not count.
    for _ in 0..3 {
        page(&act(&mut ana, path, &[("to", "me@union.example")]).await, 200, "It was accepted");
    }
    let refused = page(&act(&mut ana, path, &[("to", "me@union.example")]).await, 400, "at most 5 times an hour");
    assert!(refused.contains("and 20 for all"));
    assert_eq!(mail.arrived().len(), 4);
    assert_eq!(done(&server), vec![row("mail test", ""); 5]);
    assert!(!format!("{:?}{}", audit(&server), server.log()).to_lowercase().contains("union.example"));
    // Another operator has a share of their own.
    let mut ben = signed_in(&server, "ben", 2).await;
    page(&act(&mut ben, path, &[("to", "me@union.example")]).await, 200, "It was accepted");
    assert_eq!(done_by(&server, "ben (page)"), [row("mail test", "")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_sends_no_mail_says_so() {
    let server = Server::start_with(&["--mail", "hold"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let html = page(&act(&mut ana, "/operator/mail/test", &[("to", "me@union.example")]).await, 200, "was not sent");
    assert!(html.contains("this node sends no mail"), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_mail_is_shown_in_each_language_and_no_link_in_it_works() {
    let (server, key) = Server::with_key(&[]);
    // A sign-up that real links would lead to.
    server.post("/v1/invite", &key, sign_up("a@example.com")).await.good();
    let mut ana = signed_in(&server, "ana", 1).await;
    let list = page(&ana.get("/operator/mail/previews").await, 200, "Previews of mail");
    let mut texts = BTreeSet::new();
    for kind in MailKind::ALL {
        for language in Language::ALL {
            let path = format!("/operator/mail/previews/{}.{}", kind.name(), language.code());
            assert!(list.contains(&format!("href=\"{path}\"")), "{path}");
            let shown = ana.get(&path).await;
            let html = page(&shown, 200, "Its links lead nowhere");
            holds(&html, &["<iframe class=\"mail\" title=\"The mail as HTML\" sandbox src=", &format!("{path}/html")]);
            assert!(shown.header("content-security-policy").contains("frame-src 'self'"));
            let text = html.split("tabindex=\"0\">").nth(1).unwrap().split("</pre>").next().unwrap().to_owned();
            assert!(texts.insert(text.clone()), "{path} reads as another");
            let part = ana.get(&format!("{path}/html")).await;
            let policy = part.header("content-security-policy");
            assert!(policy.starts_with("sandbox; default-src 'none'; ") && !policy.contains("script"), "{policy}");
            let part = page(&part, 200, "</html>");
            // All links lead to a name that cannot exist, or write a mail to share the invitation with.
            let links: Vec<_> = part.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
            assert!(!links.is_empty(), "{path}");
            for link in &links {
                assert!(link.starts_with("https://preview.invalid/") || link.starts_with("mailto:?"), "{path}: {link}");
            }
            let in_text = text.split("https://").skip(1).all(|link| link.starts_with("preview.invalid/"));
            assert!(in_text && !text.contains("http://"), "{text}");
            // Nor does what stands behind the name, at the real one.
            for link in links.iter().filter_map(|link| link.strip_prefix("https://preview.invalid")) {
                let link = link.split(['?', '#']).next().unwrap();
                let has_token = ["/confirm/", "/not-me/", "/unsubscribe/", "/me/enter/", "/already-member/"];
                if has_token.iter().any(|page| link.starts_with(page)) {
                    let answer = server.get(link).await;
                    assert!([404, 410].contains(&answer.status.as_u16()), "{link}: {}", answer.status);
                }
            }
        }
    }
    for none in ["x", "confirm", "confirm.xx", "nothing.en", ".", "confirm.en.x", "%00.en"] {
        assert_eq!(ana.get(&format!("/operator/mail/previews/{none}")).await.status, 404, "{none}");
        assert_eq!(ana.get(&format!("/operator/mail/previews/{none}/html")).await.status, 404, "{none}");
    }
    assert_eq!(done(&server), [], "looking changes nothing");
}

/// Every new form: without a session, with another's token, half filled in, by another method.
#[tokio::test(flavor = "multi_thread")]
async fn a_forged_form_does_nothing() {
    let (server, key) = Server::with_key(&["--mail", "hold"]);
    server.post("/v1/invite", &key, sign_up("a@example.com")).await.good();
    server.execute("UPDATE outbox SET given_up_at = 1");
    let mut ana = signed_in(&server, "ana", 1).await;
    let (mut ben, mut stranger) = (signed_in(&server, "ben", 2).await, Browser::new(&server, 3));
    let bens = hidden(&page(&ben.get("/operator").await, 200, "Overview"), "token");
    let email = ("email", "a@example.com");
    let forms: [(&str, &[(&str, &str)]); 12] = [
        (ISSUE, &[("name", "New"), ("form", "00000000000000000000000000"), ("test", "yes")]),
        ("/operator/partners/withdraw", &[("partner", "1"), ("sure", "yes")]),
        ("/operator/partners/1/settings", &[("contact", "x@example.com"), ("mails", "1")]),
        ("/operator/partners/1/webhooks", &[("endpoint", "1"), ("act", "enable")]),
        ("/operator/people/export", &[email]),
        ("/operator/people/leave", &[email, ("sure", "yes")]),
        ("/operator/people/unsuppress", &[email, ("sure", "yes")]),
        ("/operator/people/retry", &[email]),
        ("/operator/mail/outbox", &[("mail", "1")]),
        ("/operator/mail/outbox", &[]),
        ("/operator/mail/test", &[("to", "x@example.com")]),
        ("/operator/backup", &[]),
    ];
    let rows = || {
        let rows = [
            "SELECT count(*) FROM audit",
            "SELECT count(*) FROM api_keys",
            "SELECT count(*) FROM outbox WHERE given_up_at IS NULL",
            "SELECT count(*) FROM partners WHERE contact IS NOT NULL OR mails_a_day IS NOT NULL",
        ];
        rows.map(|sql| server.number(sql))
    };
    let before = rows();
    for (path, fields) in forms {
        for token in [&bens[..], "", "x", &"0".repeat(5000)] {
            let sent = ana.post(path, &[&[("token", token)], fields].concat()).await;
            page(&sent, 400, "The form was of another session");
        }
        page(&ana.post(path, fields).await, 400, "The form was of another session");
        page(&stranger.post(path, fields).await, 403, "You are not signed in");
        page(&stranger.get(path).await, 403, "You are not signed in");
        let cross = Request::post(path).header("sec-fetch-site", "cross-site");
        page(&ana.send(cross, form(fields)).await, 403, "not sent from this page");
        for method in ["PUT", "DELETE", "PATCH"] {
            let request = Request::builder().method(method).uri(path).header("sec-fetch-site", "same-origin");
            assert_eq!(ana.send(request, form(fields)).await.status, 405, "{method} {path}");
        }
        assert_eq!(ana.get(path).await.status, 200, "{path}: coming back to its address shows a page");
        assert_eq!(rows(), before, "{path}");
    }
    assert!(!server.data().join("backups").exists());
}

/// A question that was asked is no longer the one that is answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_one_person_does_not_end_anothers_membership() {
    let (server, key) = crate::own_page::start();
    for email in ["cleo@example.com", "dan@example.com"] {
        join(&server, &key, email, None).await;
    }
    let mut ana = signed_in(&server, "ana", 1).await;
    let mut asked = asked_form(&mut ana, "/operator/people/leave", &[("email", "cleo@example.com")]).await;
    asked[0].1 = "dan@example.com".to_owned();
    page(&press(&mut ana, "/operator/people/leave", &asked).await, 200, CHANGED);
    assert_eq!(server.number("SELECT member_count FROM installation"), 2);
}

mod once {
    use super::*;

    const BACKUP: &str = "/operator/backup";

    fn files(server: &Server) -> Vec<PathBuf> {
        let folder = server.data().join("backups");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .map_or_else(|_| Vec::new(), |entries| entries.map(|entry| entry.unwrap().path()).collect());
        files.sort();
        files
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_backup_is_made_on_the_server_and_opens() {
        let identity = age::x25519::Identity::generate();
        let recipient = identity.to_public().to_string();
        let (server, key) =
            Server::with_key(&["--backup-recipient", &recipient, "--base-url", "https://union.example"]);
        server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
        let mut ana = signed_in(&server, "ana", 1).await;
        let html = page(&ana.get(BACKUP).await, 200, "No backup was ever recorded");
        assert!(html.contains("encrypted for 1 recipient"), "{html}");
        page(&ana.get("/operator").await, 200, "no backup was ever recorded");
        let html = page(&act(&mut ana, BACKUP, &[]).await, 200, "The backup is made");
        assert!(html.contains("It is encrypted for 1 recipient"), "{html}");
        // The finding ends, and the file is its owner's alone.
        assert!(!ana.get("/operator").await.text().contains("no backup was ever recorded"));
        page(&ana.get(BACKUP).await, 200, "The last recorded backup was made at");
        let [file] = &files(&server)[..] else { panic!("{:?}", files(&server)) };
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(file), mode(file.parent().unwrap())), (0o600, 0o700));
        let bytes = std::fs::read(file).unwrap();
        assert!(bytes.starts_with(b"age-encryption.org/v1"));
        assert_eq!(done(&server), [row("backup", file.to_str().unwrap())]);
        // It is whole: it restores, with the secret.
        let folder = tempfile::tempdir().unwrap();
        let kept = folder.path().join("identity");
        std::fs::write(&kept, age::secrecy::ExposeSecret::expose_secret(&identity.to_string())).unwrap();
        let data = folder.path().join("data");
        let mut restore = unionhall(folder.path());
        restore.args(["restore", file.to_str().unwrap(), "--identity", kept.to_str().unwrap(), "--data"]).arg(&data);
        let output = restore.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(data.join("secret").exists() && data.join("unionhall.db").exists());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn few_backups_are_kept_one_is_made_at_a_time_and_without_encryption_none_has_the_secret() {
        let server = Server::start();
        let mut ana = signed_in(&server, "ana", 1).await;
        page(&ana.get(BACKUP).await, 200, "It is not encrypted, and the installation's secret is not in it.");
        let mut newest = PathBuf::new();
        for _ in 0..7 {
            page(&act(&mut ana, BACKUP, &[]).await, 200, "The backup is made");
            let last = files(&server).pop().unwrap();
            assert!(last > newest, "{last:?}");
            newest = last;
        }
        assert_eq!(files(&server).len(), 5);
        let secret = std::fs::read_to_string(server.data().join("secret")).unwrap();
        let bytes = std::fs::read(&newest).unwrap();
        assert!(!bytes.windows(secret.trim().len()).any(|window| window == secret.trim().as_bytes()));
        // Another process makes one there.
        let folder = std::fs::File::open(server.data().join("backups")).unwrap();
        folder.lock().unwrap();
        page(&act(&mut ana, BACKUP, &[]).await, 200, "another backup is running");
        folder.unlock().unwrap();
        assert_eq!(done(&server).len(), 7);
        // What one that was killed left is gone with the next.
        let left = server.data().join("backups/unfinished-records");
        std::fs::write(&left, "x").unwrap();
        page(&act(&mut ana, BACKUP, &[]).await, 200, "The backup is made");
        assert!(!left.exists());
    }

    #[test]
    fn a_recipient_that_is_none_is_refused_at_the_start() {
        let home = tempfile::tempdir().unwrap();
        let output =
            unionhall(home.path()).args(["serve", "--listen", "127.0.0.1:0", "--backup-recipient", "age1x"]).output();
        let output = output.unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains("recipient 1 is not understood"), "{told}");
        assert!(!home.path().join("data").exists(), "nothing was made");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn postgres_is_left_to_its_own_tools() {
        needs!(Postgres);
        let server = Server::start_in(Home::on_postgres(tempfile::tempdir().unwrap()), &[]);
        let mut ana = signed_in(&server, "ana", 1).await;
        let html = page(&ana.get(BACKUP).await, 200, "whose own tools back them up");
        holds(&html, &["pg_dump", "unionhall backup --done"]);
        page(&act(&mut ana, BACKUP, &[]).await, 400, "The records are in PostgreSQL");
    }
}
