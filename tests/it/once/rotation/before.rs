//! What is out in the world before a rotation: links, codes, cookies, forms, cursors and keys, and how each is seen to work.

use unionhall::domain::campaign::CampaignMail;
use unionhall::domain::mail::PersonRef;
use unionhall::domain::secret::KeyPurpose;
use unionhall::domain::secret::proof::{ENTROPY, ProofCheck, ProofMaker};
use unionhall::domain::webhook::signature::WebhookSecret;

use super::*;
use crate::operator_page;
use crate::operator_sign_in::{self, Phone};
use crate::own_page::newest_request;
use crate::partners::ask;

const SECURITY: &str = include_str!("../../../../SECURITY.md");

/// Each thing as the table of SECURITY.md calls it, so that each of its rows has one.
pub(super) const OLD: &[&str] = &[
    "referral codes", "ids of events", "the sandbox's own secret", "hashes of idempotent requests",
    "cursors of events", "secrets of webhook endpoints", "links to confirm", "and to sign in", "sign-in codes",
    "links to decline", "to unsubscribe", "return paths of bounces", "`session cookie`", "`session form`",
    "`sign-in browser`", "`operator cookie`", "`operator form`", "the API key", "questions of a throttled form",
    "forms on their way", "second factors",
];

/// Recognized by the marks of addresses, which [`Before::are_recognized`] proves.
const MARKS: &str = "marks of erased addresses";

/// The rows of the table, without its heading.
fn table() -> Vec<Vec<&'static str>> {
    let rows = SECURITY.split("| purpose | what it makes |").nth(1).unwrap().lines().skip(2);
    rows.take_while(|line| line.starts_with('|')).map(|line| line.split('|').map(str::trim).collect()).collect()
}

/// What works after a rotation, by the table.
pub(super) fn in_the_table(leaked: bool) -> BTreeSet<&'static str> {
    let is_alive = |name: &&&str| {
        let rows: Vec<_> =
            table().into_iter().filter(|row| row[1].contains(**name) || row[2].contains(**name)).collect();
        let [row] = &rows[..] else { panic!("{name} is in {} rows", rows.len()) };
        !leaked || row[4] != "dead"
    };
    OLD.iter().filter(is_alive).copied().collect()
}

/// And once a lost secret was replaced.
pub(super) fn after_a_loss() -> BTreeSet<&'static str> {
    BTreeSet::from(["referral codes", "the API key"])
}

#[test]
fn the_table_has_a_row_for_each_purpose_and_each_row_is_proved() {
    let (rows, leaked) = (table(), in_the_table(true));
    for purpose in KeyPurpose::ALL {
        let label = format!("`{}`", purpose.label());
        assert!(rows.iter().any(|row| row[1].contains(&label)), "{label}");
    }
    for row in &rows {
        assert!(OLD.iter().chain([&MARKS]).any(|name| row[1].contains(name) || row[2].contains(name)), "{row:?}");
    }
    assert!(leaked.contains("links to decline") && !leaked.contains("links to confirm"), "{leaked:?}");
    assert_eq!(in_the_table(false), OLD.iter().copied().collect());
}

pub(super) struct Before {
    confirm: String,
    decline: String,
    sign_in: String,
    unsubscribe: Vec<String>,
    bounces: Vec<String>,
    /// Those of a browser that asked, the address, and the code that was mailed; one for each node.
    codes: Vec<(BTreeMap<String, String>, String)>,
    session: BTreeMap<String, String>,
    session_token: String,
    operator: BTreeMap<String, String>,
    operator_token: String,
    key_of_page: String,
    events: Value,
    /// The answer to a request that may be repeated.
    repeated: Value,
    question: String,
    sent_form: String,
    inbox: String,
    ana: String,
    zoe: String,
    phone: Phone,
}

impl Before {
    pub(super) async fn of(union: &Rotated) -> Self {
        let server = &union.server;
        for member in ["ana", "ben", "cleo", "dora", "zoe"] {
            union.join(&format!("{member}@example.com")).await;
        }
        let (ana, zoe) = (union.code("ana@example.com").await, union.code("zoe@example.com").await);
        union.erase("zoe@example.com");
        let repeated = union.repeatable("dan@example.com").await;
        let dan = union.link("confirm", Purpose::Confirm, server.number("SELECT max(id) FROM sign_ups"));
        assert_eq!(server.submit(Request::post(dan), "").await.status, 200);
        let events = union.events(server, "").await.good();
        assert_eq!(events["events"].as_array().unwrap().len(), 1);
        server.execute(
            "INSERT INTO webhook_endpoints (partner_id, url, created_at)
             SELECT id, 'https://acme.example/hook', 0 FROM partners WHERE name = 'Acme Assistant'",
        );
        let waits = union.sign_up("eva@example.com").await;
        let (session, session_token) = union.sign_in(1, "ana@example.com").await;
        let sign_in = union.asked(2, "ben@example.com").await.2;
        let mut codes = Vec::new();
        for (n, email) in [(3, "cleo@example.com"), (4, "dora@example.com")] {
            let (cookies, code, _) = union.asked(n, email).await;
            codes.push((cookies, code));
        }
        let mut operator = operator_page::signed_in(server, "olga", 5).await;
        let overview = page(&operator.get("/operator").await, 200, "Overview");
        let phone = operator_sign_in::set_up(&mut operator_page::signed_in(server, "otto", 7).await).await.0;
        let list = page(&operator.get("/operator/partners").await, 200, "Acme Assistant");
        let fields = [("name", "Page"), ("form", &*hidden(&list, "form"))];
        let issued = page(&operator_page::act(&mut operator, "/operator/partners/issue", &fields).await, 200, "uh_");
        let key_of_page = issued.split("<code>uh_").nth(1).unwrap().split('<').next().unwrap();
        let form = form(&[("email", "form@example.com"), ("language", "en")]);
        let sent = Request::post("/join").header("sec-fetch-site", "same-origin");
        let sent = server.send_from(Ipv4Addr::new(127, 0, 7, 6), sent, form).await;
        assert_eq!(sent.status, 303, "{sent:?}");
        let mut test_key = server.command();
        test_key.env("UNIONHALL_SECRET", "").env("UNIONHALL_SECRET_FILE", &union.file);
        let made = test_key.args(["keys", "issue", "Acme Assistant", "--test"]).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let secret = union.ring().secret(Clock::start().now().time);
        let inbox = format!("/sandbox/inbox/{}", TokenMaker::new(&secret.of_sandbox()).inbox_token("Acme Assistant"));
        wait_for!(async || server.get(&inbox).await.status == 200).await;
        let people = server.rows("SELECT id, created_at FROM people WHERE email = 'ana@example.com'");
        let created_at = Timestamp::from_millis(people[0][1].parse().unwrap());
        let person = PersonRef { id: people[0][0].parse().unwrap(), created_at };
        let tokens = TokenMaker::new(&secret);
        let link_for = |kind| format!("/unsubscribe/{}", tokens.person_token(Purpose::Unsubscribe(kind), person));
        // As if its mail had left, and that of the form, too.
        server.execute("UPDATE sign_ups SET mailed_at = created_at WHERE state = 'pending'");
        server.execute("DELETE FROM outbox");
        Self {
            confirm: union.link("confirm", Purpose::Confirm, waits),
            decline: union.link("not-me", Purpose::Decline, waits),
            sign_in,
            unsubscribe: CampaignMail::ALL.map(link_for).to_vec(),
            bounces: vec![
                union.link("b", Purpose::Bounce, waits).replace("/b/", "b-"),
                format!("b-{}", tokens.person_token(Purpose::BounceOfPerson, person)),
            ],
            codes,
            session,
            session_token,
            operator: operator.cookies.clone(),
            operator_token: hidden(&overview, "token"),
            key_of_page: format!("uh_{key_of_page}"),
            events,
            repeated,
            question: ProofMaker::new(&secret).ask(&[7; ENTROPY], Clock::start().now().time),
            sent_form: sent.header("location").to_owned(),
            inbox,
            ana,
            zoe,
            phone,
        }
    }

    /// What of it works at a node. Nothing is used up but a code: each node has its own.
    pub(super) async fn alive(&self, union: &Rotated, node: &Server, turn: usize) -> BTreeSet<&'static str> {
        let opens = async |path: &str| {
            let status = node.get(path).await.status.as_u16();
            assert!([200, 303, 404, 503].contains(&status), "{path}: {status}");
            status == 200
        };
        let all_open = async |paths: &[String]| {
            let opened = together(paths.iter().map(|path| opens(path))).await;
            assert!(opened.iter().all(|one| *one == opened[0]), "{opened:?}");
            opened[0]
        };
        let heard = |address: &String| {
            let address = format!("{address}@bounces.union.example");
            let said = union.feedback(&address);
            assert_ne!(
                said.contains("Nothing was changed"),
                said.contains("no such recipient") || said.contains("known")
            );
            !said.contains("Nothing was changed")
        };
        let mut browser = Browser::new(node, 10);
        browser.cookies = self.session.clone();
        let is_signed_in = browser.is_signed_in().await;
        let chosen = [("token", self.session_token.as_str()), ("language", "en")];
        let session_form = browser.post("/me/language", &chosen).await.header("location") == "/me?done=language";
        let (cookies, code) = &self.codes[turn];
        browser.cookies = cookies.clone();
        let has_code = browser.post("/me/code", &[("code", code)]).await.header("location") == "/me";
        browser.cookies = self.operator.clone();
        let is_operator = browser.get("/operator").await.text().contains("Signed in as");
        let pressed = [("token", self.operator_token.as_str()), ("sign-ups", "pause")];
        let operator_form = browser.post("/operator/sign-ups", &pressed).await.text().contains("Pause sign-ups?");
        let link = operator_page::path_of(&node.run(&["operator", "link", "otto"]));
        let mut otto = Browser::new(node, 11);
        leads(&otto.post(&link, &[]).await, "/operator");
        node.execute("UPDATE operators SET factor_step = 0");
        let second_factor = operator_sign_in::types(&mut otto, &self.phone.code()).await.status == 303;
        let after = format!("?after={}", self.events["cursor"].as_str().unwrap());
        let secret = union.ring().secret(Clock::start().now().time);
        let of_form = ProofMaker::new(&secret).check(&self.question, "", Clock::start().now().time);
        let issued = node.post("/v1/referral-link", &self.key_of_page, sign_up("x@example.com")).await;
        let seen = [
            ("referral codes", union.code("ana@example.com").await == self.ana),
            ("ids of events", union.events(node, "").await.good()["events"][0]["id"] == self.events["events"][0]["id"]),
            ("the sandbox's own secret", opens(&self.inbox).await),
            (
                "hashes of idempotent requests",
                union.repeat(node, "dan@example.com").await == Some(self.repeated.clone()),
            ),
            ("cursors of events", union.events(node, &after).await.status == 200),
            ("secrets of webhook endpoints", WebhookSecret::derive(&secret, 1, 1, 1).is_some()),
            ("links to confirm", opens(&self.confirm).await),
            ("and to sign in", opens(&self.sign_in).await),
            ("sign-in codes", has_code),
            ("links to decline", opens(&self.decline).await),
            ("to unsubscribe", all_open(&self.unsubscribe).await),
            ("return paths of bounces", self.bounces.iter().all(heard)),
            ("`session cookie`", is_signed_in),
            ("`session form`", session_form),
            ("`sign-in browser`", has_code),
            ("`operator cookie`", is_operator),
            ("`operator form`", operator_form),
            ("the API key", issued.status == 200),
            ("questions of a throttled form", of_form == ProofCheck::Not),
            ("forms on their way", opens(&self.sent_form).await),
            ("second factors", second_factor),
        ];
        assert_eq!(seen.map(|(name, _)| name), OLD);
        seen.into_iter().filter(|(_, is_alive)| *is_alive).map(|(name, _)| name).collect()
    }

    /// Whether somebody who was erased is recognized when they come again, and then credits nobody and has the same code.
    pub(super) async fn are_recognized(&self, union: &Rotated, recognized: bool) {
        let ana = "(SELECT id FROM people WHERE email = 'ana@example.com')";
        let credited = || union.server.number(&format!("SELECT count(*) FROM people WHERE referrer_id = {ana}"));
        assert_eq!(credited(), 0);
        let body = json!({ "email": "zoe@example.com", "refCode": self.ana });
        union.server.post("/v1/invite", &union.key, body.to_string()).await.good();
        union.enter(union.server.number("SELECT max(id) FROM sign_ups")).await;
        assert_eq!(credited(), i64::from(!recognized));
        assert_eq!(union.code("zoe@example.com").await == self.zoe, recognized);
        let left = union.server.number("SELECT count(*) FROM people WHERE email_normalized LIKE 'erased:%'");
        assert_eq!(left, i64::from(!recognized), "their tombstone is taken");
    }
}

impl Rotated {
    async fn events(&self, node: &Server, query: &str) -> Answer {
        ask(node, &self.key, &format!("/partner/v1/events{query}")).await
    }

    /// Asks to sign in, in a browser: its cookies, and the code and the link that are mailed.
    async fn asked(&self, n: u8, email: &str) -> (BTreeMap<String, String>, String, String) {
        let mut browser = Browser::new(&self.server, n);
        page(&browser.submit("/me/sign-in", &[("email", email)]).await, 200, "Check your inbox");
        let request = newest_request(&self.server);
        let tokens = TokenMaker::new(&self.ring().secret(Clock::start().now().time));
        let (code, link) = (tokens.sign_in_code(request).to_string(), tokens.sign_in_token(request));
        (browser.cookies, code, format!("/me/enter/{link}"))
    }

    /// Signs somebody in: the cookies of their browser, and the token of its forms.
    async fn sign_in(&self, n: u8, email: &str) -> (BTreeMap<String, String>, String) {
        let link = self.asked(n, email).await.2;
        let mut browser = Browser::new(&self.server, n);
        leads(&browser.post(&link, &[]).await, "/me");
        let token = browser.token().await;
        (browser.cookies, token)
    }

    /// What is said of a mail that came back to its return path.
    fn feedback(&self, address: &str) -> String {
        let report = "From: MAILER-DAEMON@mx.example.net\nSubject: Undelivered\nMIME-Version: 1.0\n\
                      Content-Type: multipart/report; report-type=delivery-status; boundary=\"b\"\n\n--b\n\
                      Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example.net\n\n\
                      Final-Recipient: rfc822; x@example.com\nAction: failed\nStatus: 5.1.1\n\n--b--\n";
        let mut command = self.server.command();
        command.env("UNIONHALL_SECRET", "").args(["mail", "feedback", "--recipient", address, "--secret-file"]);
        let mut process = command
            .arg(&self.file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        process.stdin.take().unwrap().write_all(report.as_bytes()).unwrap();
        let done = process.wait_with_output().unwrap();
        String::from_utf8([done.stdout, done.stderr].concat()).unwrap()
    }
}
