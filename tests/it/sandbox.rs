//! Test keys: the whole service on records of its own, where nobody is real; and that the real ones never notice.

use crate::prelude::*;
use proptest::prelude::*;
use unionhall::domain::api_key::Mode;

use crate::partners::ask;
use crate::records;
use crate::records::SECRET;

mod each_partner;
mod simulator;

/// A server, and its sandbox as only a test sees it.
impl Server {
    fn test_key(&self) -> String {
        self.run(&["keys", "issue", "Acme Assistant", "--test"])
    }

    #[track_caller]
    fn sandbox_rows(&self, sql: &str) -> Vec<Vec<String>> {
        match self.records() {
            Records::Sqlite { data } => records::sqlite_rows(&data.join("sandbox.db"), sql).unwrap(),
            Records::Postgres { store, .. } => {
                records::ask(&format!("{store}?options=-c%20search_path%3Dpublic_sandbox"), sql).unwrap()
            }
        }
    }

    /// Changes the sandbox's records behind the service's back.
    #[track_caller]
    fn change_sandbox(&self, sql: &str) {
        match self.records() {
            Records::Sqlite { data } => {
                rusqlite::Connection::open(data.join("sandbox.db")).unwrap().execute_batch(sql).unwrap();
            }
            Records::Postgres { .. } => drop(self.sandbox_rows(sql)),
        }
    }

    #[track_caller]
    fn sandbox_number(&self, sql: &str) -> i64 {
        self.sandbox_rows(sql)[0][0].parse().unwrap()
    }

    fn has_sandbox(&self) -> bool {
        match self.records() {
            Records::Sqlite { data } => data.join("sandbox.db").exists(),
            Records::Postgres { .. } => {
                self.number("SELECT count(*) FROM pg_namespace WHERE nspname = 'public_sandbox'") == 1
            }
        }
    }

    fn inbox_path(&self, partner: &str) -> String {
        let tokens = TokenMaker::new(&self.records().secret().of_sandbox());
        format!("/sandbox/inbox/{}", tokens.inbox_token(partner))
    }

    async fn count_of(&self, key: &str) -> u64 {
        let request = Request::get("/v1/stats").header("authorization", format!("Bearer {key}"));
        self.send(request, "").await.good()["memberCount"].as_u64().unwrap()
    }

    async fn invite(&self, key: &str, email: &str) -> Answer {
        self.post("/v1/invite", key, sign_up(email)).await
    }

    /// What a partner is told of the sign-up that it gave that name to.
    async fn status_of(&self, key: &str, name: &str) -> Value {
        ask(self, key, &format!("/partner/v1/sign-ups/{name}")).await.good()["status"].clone()
    }

    /// The state of the latest sign-up of an address in the sandbox.
    fn test_state(&self, email: &str) -> String {
        let states = self.sandbox_rows(&format!(
            "SELECT s.state FROM sign_ups s JOIN people p ON p.id = s.person_id WHERE p.email = '{email}' ORDER BY s.id DESC"
        ));
        states.first().map(|row| row[0].clone()).unwrap_or_default()
    }

    async fn wait_for_state(&self, email: &str, state: &str) {
        wait_for!(async || self.test_state(email) == state).await;
    }

    /// The link of a sandbox's mail to an address, as a path.
    fn mailed_link(&self, email: &str, page: &str) -> String {
        let text =
            &self.sandbox_rows(&format!("SELECT text FROM inbox WHERE recipient = '{email}' ORDER BY id DESC"))[0][0];
        let link = text.split_whitespace().find(|word| word.contains(&format!("/sandbox/{page}/"))).unwrap();
        format!("/{}", link.splitn(4, '/').nth(3).unwrap())
    }
}

fn with_test_key() -> (Server, String) {
    let server = Server::start();
    let test = server.test_key();
    (server, test)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_key_walks_the_whole_way_and_the_union_never_notices() {
    let server = Watched::start(&[], &[]);
    let (live, test) = (server.key(), server.test_key());
    assert!(test.starts_with("uh_test_"));
    let figures = server.figures().await;
    let invited = server.invite(&test, "confirm@simulator.test").await.good();
    let link = invited["inviteLink"].as_str().unwrap();
    assert!(link.contains("/sandbox/joinus"), "{link}");
    server.wait_for_state("confirm@simulator.test", "confirmed").await;
    assert_eq!(server.count_of(&test).await, 1);
    assert_eq!(server.count_of(&live).await, 0);
    assert_eq!(server.get("/v1/stats").await.good()["memberCount"], 0);
    // Whoever was referred by a tester is, in the sandbox; the whole link will do.
    let referred = json!({ "email": "kim@example.com", "refCode": link, "categories": { "internet": true } });
    let referred = server.post("/v1/invite", &test, referred.to_string()).await.good();
    assert_eq!((&referred["refAttributed"], &referred["joinedCount"]), (&json!(true), &json!(1)));
    wait_for!(async || server.sandbox_number("SELECT count(*) FROM inbox") == 2).await;
    let inbox = page(&server.get(&server.inbox_path("Acme Assistant")).await, 200, "Sandbox: nothing here is real");
    holds(
        &inbox,
        &["kim@example.com", "confirm@simulator.test", "/sandbox/confirm/", "/sandbox/not-me/", "for Acme Assistant"],
    );
    assert!(inbox.find("kim@example.com") < inbox.find("confirm@simulator.test"), "newest first");
    // The person's part: the page of the mail, and the form on it.
    let confirm = server.mailed_link("kim@example.com", "confirm");
    let told = page(&server.get(&confirm).await, 200, "Sandbox: nothing here is real");
    assert!(told.contains(&format!("method=\"post\" action=\"{confirm}\"")), "{told}");
    let press = Request::post(&confirm).header("sec-fetch-site", "same-origin");
    let pressed = server.send(press, "").await;
    leads(&pressed, &format!("{confirm}?done=welcome"));
    page(&server.get(pressed.header("location")).await, 200, "Sandbox: nothing here is real");
    assert!(pressed.headers.get("set-cookie").is_none(), "nobody is signed in by it");
    assert_eq!(server.count_of(&test).await, 2);
    let decline = server.mailed_link("kim@example.com", "not-me");
    page(&server.get(&decline).await, 200, "Sandbox: nothing here is real");
    // What the one world made means nothing to the other.
    for path in [&confirm, &decline] {
        let live_path = path.replacen("/sandbox", "", 1);
        assert_eq!(server.get(&live_path).await.status, 404);
    }
    server.invite(&live, "kim@example.com").await.good();
    let token = server.confirm_path(server.number("SELECT max(id) FROM sign_ups"));
    assert_eq!(server.get(&format!("/sandbox{token}")).await.status, 404);
    assert_eq!(server.get(&token).await.status, 200);

    assert_eq!(server.number("SELECT count(*) FROM people"), 1);
    assert_eq!(server.number("SELECT count(*) FROM inbox"), 0);
    assert_eq!(server.number("SELECT member_count FROM installation"), 0);
    let mail = std::fs::read_dir(server.data().join("mailbox")).map_or(0, |files| files.count());
    wait_for!(async || server.number("SELECT count(*) FROM outbox") == 0).await;
    assert!(mail <= 2, "one mail of the live sign-up");
    let after = server.figures().await;
    let requests = |figures: &BTreeMap<String, f64>| {
        let of_sandbox = |name: &str| name.contains("requests_total") && name.contains("/sandbox");
        figures.iter().filter(|(name, _)| of_sandbox(name)).map(|(_, count)| count).sum::<f64>()
    };
    assert_eq!((requests(&after), after["unionhall_members"]), (0.0, figures["unionhall_members"]));
    assert_eq!(after["unionhall_requests_total{route=\"/v1/invite\",status=\"200\"}"], 1.0, "the live one");
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_the_simulator_act_by_themselves() {
    let (server, test) = with_test_key();
    for (email, state) in [
        ("confirm@simulator.test", "confirmed"),
        ("confirm+17@simulator.test", "confirmed"),
        ("decline@simulator.test", "declined"),
        ("decline+b@simulator.test", "declined"),
    ] {
        for round in 1..=3 {
            server.invite(&test, email).await.good();
            let all = format!(
                "SELECT count(*) FROM sign_ups s JOIN people p ON p.id = s.person_id
                 WHERE p.email = '{email}' AND s.state = '{state}'"
            );
            wait_for!(async || server.sandbox_number(&all) == round).await;
        }
        assert_eq!(server.sandbox_number(&format!("SELECT count(*) FROM inbox WHERE recipient = '{email}'")), 3);
    }
    assert_eq!(server.count_of(&test).await, 2);

    for _ in 0..2 {
        server.invite(&test, "bounce@simulator.test").await.good();
        wait_for!(async || server.sandbox_number("SELECT count(*) FROM outbox") == 0).await;
    }
    assert_eq!(server.test_state("bounce@simulator.test"), "pending");
    assert_eq!(server.sandbox_number("SELECT count(*) FROM inbox WHERE recipient LIKE 'bounce%'"), 0);
    assert_eq!(server.sandbox_number("SELECT sum(bounced) FROM source_days"), 2, "each time, for whoever asks");

    for path in ["/v1/invite", "/v1/referral-link"] {
        let limited = server.post(path, &test, sign_up("limit@simulator.test")).await;
        assert!(limited.refused(429, "rate_limited").contains("30 a minute"));
        assert_eq!(limited.header("retry-after"), "30");
        server.post(path, &test, sign_up("Fail+x@Simulator.test")).await.refused(500, "save_failed");
    }
    assert_eq!(
        server.sandbox_number(
            "SELECT count(*) FROM people WHERE lower(email) LIKE 'limit%' OR lower(email) LIKE 'fail%'"
        ),
        0
    );
    assert!(!server.log().contains("\"level\":\"error\""), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_slow_one_confirms_after_a_minute_whatever_is_restarted_meanwhile() {
    let (server, test) = with_test_key();
    server.invite(&test, "slow@simulator.test").await.good();
    let waits = "SELECT send_after - first_attempt_at FROM outbox WHERE attempts = 1 AND leased_by IS NULL";
    wait_for!(async || server.sandbox_rows(waits) == [["60000"]]).await;
    assert_eq!(server.sandbox_number("SELECT count(*) FROM inbox"), 1, "it has its mail meanwhile");
    assert_eq!(server.test_state("slow@simulator.test"), "pending");
    let home = server.stopped();
    let server = Server::start_in(home, &[]);
    assert_eq!(server.count_of(&test).await, 0);
    // A minute goes by.
    server.change_sandbox("UPDATE outbox SET first_attempt_at = first_attempt_at - 60000, send_after = 0");
    server.wait_for_state("slow@simulator.test", "confirmed").await;
    assert_eq!((server.count_of(&test).await, server.sandbox_number("SELECT count(*) FROM inbox")), (1, 1));
    assert!(!server.log().contains("mail does not go"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_acts_in_the_sandbox_with_a_test_key() {
    let (server, test) = with_test_key();
    let call = async |key: &str, name: &str, arguments: Value| {
        let message = tool_call(name, arguments);
        server.post("/mcp", key, message.to_string()).await.json_rpc()["result"].clone()
    };
    let signed_up = call(&test, "signUpUser", json!({ "email": "confirm@simulator.test" })).await;
    assert!(signed_up["structuredContent"]["inviteLink"].as_str().unwrap().contains("/sandbox/joinus"), "{signed_up}");
    server.wait_for_state("confirm@simulator.test", "confirmed").await;
    let live = server.key();
    for (key, count) in [(&test, 1), (&live, 0)] {
        assert_eq!(call(key, "getMemberStats", json!({})).await["structuredContent"]["memberCount"], count);
    }
    let failed = call(&test, "signUpUser", json!({ "email": "fail@simulator.test" })).await;
    assert_eq!(failed["isError"], true, "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_service_learns_of_the_first_test_key_and_nobody_else_makes_a_sandbox() {
    let server = Watched::start(&[], &["--mail", "none"]);
    let nobodys = ApiKey::of_mode(Mode::Test, &[7; ApiKey::ENTROPY]);
    for key in [nobodys.reveal(), "uh_test_", "uh_test_0123"] {
        server.invite(key, "ana@example.com").await.refused(401, "agent_unauthorized");
        assert_eq!(server.count_of(key).await, 0);
    }
    for path in ["/sandbox/joinus0123456789ab", "/sandbox/confirm/abc", "/sandbox/inbox/abc", "/sandbox/me"] {
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
    let refused = server.try_run(&["keys", "list", "--test"]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("keys issue NAME --test"));
    assert!(!server.has_sandbox());

    let test = server.test_key();
    let known = async || server.invite(&test, "confirm@simulator.test").await.status == 200;
    wait_for!(known).await;
    server.wait_for_state("confirm@simulator.test", "confirmed").await;
    assert_eq!(server.get("/sandbox/confirm/abc").await.status, 404);
    // Whoever has no test key sees nothing of the sandbox, and is counted like anybody else.
    assert_eq!(server.count_of(&test).await, 1);
    let refused = async || {
        let is_one = |name: &str| ["requests_total", "/v1/invite", "401"].iter().all(|part| name.contains(part));
        server.figures().await.iter().filter(|(name, _)| is_one(name)).map(|(_, count)| *count).sum::<f64>()
    };
    let before = refused().await;
    for no_key in ["uh_test_", "uh_test_junk", &test[..test.len() - 1], nobodys.reveal()] {
        assert_eq!(server.count_of(no_key).await, 0, "{no_key}");
        server.invite(no_key, "ana@example.com").await.refused(401, "agent_unauthorized");
    }
    assert_eq!(refused().await - before, 4.0, "what is refused is counted");
    // Live mail is off, and stays so.
    let live = server.key();
    server.invite(&live, "ana@example.com").await.refused(500, "backend_not_configured");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_cannot_be_opened_is_no_trouble_of_the_unions() {
    let server = Server::start();
    let (live, test) = (server.key(), server.test_key());
    server.invite(&test, "confirm@simulator.test").await.good();
    let (_, home) = server.stop();
    match home.records() {
        Records::Sqlite { data } => {
            for end in ["-wal", "-shm"] {
                let _perhaps = std::fs::remove_file(data.join(format!("sandbox.db{end}")));
            }
            std::fs::write(data.join("sandbox.db"), "no database at all ".repeat(100)).unwrap();
        }
        Records::Postgres { store, .. } => {
            records::ask(store, "DROP TABLE public_sandbox.unionhall_schema").unwrap();
        }
    }
    let server = Server::start_in(home, &[]);
    for _ in 0..3 {
        server.invite(&test, "confirm@simulator.test").await.refused(500, "save_failed");
        let stats = Request::get("/v1/stats").header("authorization", format!("Bearer {test}"));
        server.send(stats, "").await.refused(503, Value::Null);
        assert_eq!(server.post("/mcp", &test, "{}").await.status, 503);
        assert_eq!(server.get("/sandbox/confirm/abc").await.status, 503);
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    server.invite(&live, "ana@example.com").await.good();
    assert_eq!(server.count_of(&live).await, 0);
    server.get("/readyz").await.good();
    assert_eq!(server.log().matches("the sandbox cannot be opened").count(), 1, "{}", server.log());
    let doctor = server.try_run(&["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(said.lines().any(|line| line.starts_with("warn") && line.contains("sandbox")), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandboxs_pages_say_what_they_are_and_lead_to_no_real_form() {
    let (server, test) = with_test_key();
    let link = server.invite(&test, "kim@example.com").await.good()["inviteLink"].as_str().unwrap().to_owned();
    let joinus = format!("/{}", link.splitn(4, '/').nth(3).unwrap());
    wait_for!(async || server.sandbox_number("SELECT count(*) FROM inbox") == 1).await;
    let (confirm, decline) =
        (server.mailed_link("kim@example.com", "confirm"), server.mailed_link("kim@example.com", "not-me"));
    let inbox = server.inbox_path("Acme Assistant");
    let mail = server.sandbox_number("SELECT id FROM inbox");
    page(&server.submit(Request::post(&decline), "do=withdraw").await, 200, "Sandbox");
    for (path, status) in [
        (joinus.as_str(), 200),
        (inbox.as_str(), 200),
        (decline.as_str(), 200),
        (confirm.as_str(), 410),
        ("/sandbox/join", 404),
        ("/sandbox/me", 404),
        ("/sandbox/confirm/abc", 404),
    ] {
        for (language, banner) in [("en", "Sandbox: nothing here is real"), ("es", "aquí nada es real")] {
            let answer = server.get(&format!("{path}?lang={language}")).await;
            assert_eq!(answer.header("x-robots-tag"), "noindex", "{path}");
            let html = page(&answer, status, banner);
            assert!(!html.contains("action=\"/join\""), "{path}");
            for real in ["/join", "/me", "/about", "/privacy", "/terms", "/confirm/", "/not-me/"] {
                assert!(!html.contains(&format!("href=\"{real}")), "{path} leads to {real}");
                assert!(!html.contains(&format!("action=\"{real}")), "{path} sends to {real}");
            }
        }
    }
    // It was declined, and can be taken back where it was.
    let html = page(&server.get(&confirm).await, 410, "Sandbox");
    assert!(html.contains(&format!("href=\"{decline}\"")), "{html}");
    let html = server.get(&format!("{inbox}-{mail}/html")).await;
    assert!(html.header("content-security-policy").starts_with("default-src 'none'"));
    assert!(String::from_utf8_lossy(&html.body).contains("/sandbox/confirm/"));
    for (path, status) in [
        (format!("{inbox}-{}/html", mail + 1), 404),
        (format!("{inbox}-x/html"), 404),
        (format!("{inbox}/html"), 404),
        (inbox.replace(&inbox[inbox.len() - 3..], "000"), 404),
        (server.inbox_path("Nobody"), 404),
    ] {
        assert_eq!(server.get(&path).await.status.as_u16(), status, "{path}");
    }
    assert!(!page(&server.get("/join").await, 200, "Sign me up").contains("Sandbox"));
    assert_eq!(server.get("/join").await.header("x-robots-tag"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn test_keys_are_kept_apart_from_real_ones() {
    let server = Server::start();
    let (live, test) = (server.key(), server.test_key());
    let ids = |flags: &[&str]| {
        let listed = server.json(&[&["keys", "list", "--json"], flags].concat());
        listed.as_array().unwrap().iter().map(|key| key["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let id = |key: &str| ApiKey::parse(key).unwrap().id().to_string();
    assert_eq!((ids(&[]), ids(&["--test"])), (vec![id(&live)], vec![id(&test)]));
    let not_there = server.try_run(&["keys", "revoke", &id(&test)]);
    assert!(!not_there.status.success(), "it is no live key");
    let next = server.run(&["keys", "rotate", &id(&test), "--test", "--grace", "0s"]);
    assert!(next.starts_with("uh_test_"));
    let works = async |key: &str| server.invite(key, "kim@example.com").await.status == 200;
    wait_for!(async || works(&next).await && !works(&test).await).await;
    // The key itself says which it is.
    server.run(&["keys", "revoke", &next]);
    wait_for!(async || !works(&next).await).await;
    assert!(works(&live).await);
    let refused = server.try_run(&["mcp", "--key", &next]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("sandbox"));
}

#[test]
fn no_sandbox_is_made_where_there_are_no_records() {
    let folder = tempfile::tempdir().unwrap();
    let run = |flags: &[&str]| {
        let mut command = crate::server::unionhall(folder.path());
        command.args(["keys", "issue", "Acme", "--test"]).args(flags).output().unwrap()
    };
    let refused = run(&[]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("--new"));
    assert!(!folder.path().join("data").exists());
    assert!(run(&["--new"]).status.success());
    let files: Vec<_> =
        std::fs::read_dir(folder.path().join("data")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert!(
        files.iter().any(|name| name == "sandbox.db") && !files.iter().any(|name| name == "unionhall.db"),
        "{files:?}"
    );
}

/// Something that a partner or a person does.
#[derive(Debug, Clone, Copy)]
enum Deed {
    SignUp(usize),
    Refer(usize, usize),
    Link(usize),
    Confirm(usize),
    Decline(usize),
}

const ADDRESSES: [&str; 5] = [
    "ana@example.com", "Ana+tag@example.com", "confirm@simulator.test", "decline@simulator.test", "slow@simulator.test",
];

fn deeds() -> impl Strategy<Value = Vec<(bool, Deed)>> {
    let who = 0..ADDRESSES.len();
    let deed = prop_oneof![
        3 => who.clone().prop_map(Deed::SignUp),
        1 => (who.clone(), who.clone()).prop_map(|(one, other)| Deed::Refer(one, other)),
        1 => who.clone().prop_map(Deed::Link),
        2 => who.clone().prop_map(Deed::Confirm),
        1 => who.prop_map(Deed::Decline),
    ];
    prop::collection::vec((any::<bool>(), deed), 30..60)
}

/// The simulator's are refused among live records.
fn address(who: usize, in_sandbox: bool) -> String {
    if in_sandbox { ADDRESSES[who].to_owned() } else { ADDRESSES[who].replace("simulator.test", "example.com") }
}

impl Server {
    async fn code_of(&self, key: &str, email: &str) -> String {
        let link = self.post("/v1/referral-link", key, sign_up(email)).await.good();
        link["code"].as_str().unwrap().to_owned()
    }

    async fn perform(&self, deed: Deed, key: &str, in_sandbox: bool) {
        let latest = |what: &str, who: usize| {
            let sql = format!(
                "SELECT coalesce(max(s.{what}), 0) FROM sign_ups s JOIN people p ON p.id = s.person_id WHERE p.email = '{}'",
                address(who, in_sandbox)
            );
            if in_sandbox { self.sandbox_number(&sql) } else { self.number(&sql) }
        };
        let secret = self.records().secret();
        let tokens = TokenMaker::new(&if in_sandbox { secret.of_sandbox() } else { secret });
        let press = async |purpose, page: &str, who: usize| {
            use unionhall::domain::sign_up::{SignUpId, SignUpRef};
            use unionhall::domain::time::Timestamp;
            let prefix = if in_sandbox { "/sandbox" } else { "" };
            let created_at = Timestamp::from_millis(latest("created_at", who));
            let sign_up = SignUpRef { id: SignUpId(latest("id", who)), created_at };
            let path = format!("{prefix}/{page}/{}", tokens.token(purpose, sign_up));
            assert!(self.send(Request::post(path), "").await.status != 500);
        };
        match deed {
            Deed::SignUp(who) => drop(self.invite(key, &address(who, in_sandbox)).await.good()),
            Deed::Refer(who, by) => {
                let code = self.code_of(key, &address(by, in_sandbox)).await;
                let body = json!({ "email": address(who, in_sandbox), "refCode": code });
                self.post("/v1/invite", key, body.to_string()).await.good();
            }
            Deed::Link(who) => drop(self.code_of(key, &address(who, in_sandbox)).await),
            Deed::Confirm(who) => press(unionhall::domain::secret::token::Purpose::Confirm, "confirm", who).await,
            Deed::Decline(who) => press(unionhall::domain::secret::token::Purpose::Decline, "not-me", who).await,
        }
    }
}

/// Everything that the live half of these deeds leaves behind; with the sandbox's half between them or without it.
async fn left_behind(deeds: &[(bool, Deed)], with_sandbox: bool) -> (Vec<Vec<Vec<String>>>, BTreeMap<String, f64>) {
    // The same secret, so that codes can be compared; and mail stays where it can be seen.
    let flags = ["--mail", "hold", "--key-per-minute", "1000000"];
    let server = Watched::start(&[("UNIONHALL_SECRET", SECRET)], &flags);
    if let Records::Sqlite { data } = server.records() {
        std::fs::write(data.join("secret"), SECRET).unwrap();
    }
    let (live, test) = (server.key(), server.test_key());
    for (in_sandbox, deed) in deeds {
        if !in_sandbox {
            server.perform(*deed, &live, false).await;
        } else if with_sandbox {
            server.perform(*deed, &test, true).await;
        }
    }
    let rows = [
        "SELECT email, mailbox, code, state, referrer_id, undeliverable_until, unwanted_mail FROM people ORDER BY id",
        "SELECT id, person_id, partner_id, state, referrer_id, slot, decided_how FROM sign_ups ORDER BY id",
        "SELECT sign_up_id, kind, recipient, attempts, lane, priority, held_at FROM outbox ORDER BY sign_up_id",
        "SELECT mailbox, suppressed_until, complained_at FROM mailboxes ORDER BY mailbox",
        "SELECT partner_id, mailed, confirmations_sent, confirmed, declined, bounced, complained FROM source_days ORDER BY partner_id",
        "SELECT member_count FROM installation",
        "SELECT count(*) FROM inbox",
        "SELECT count(*) FROM api_keys",
    ];
    let rows = rows.iter().map(|sql| server.rows(sql)).collect();
    let mut figures = server.figures().await;
    let kept = ["requests_total", "members", "store_errors", "rate_limited", "mail", "outbox"];
    figures.retain(|name, _| kept.iter().any(|kept| name.contains(kept)) && !name.contains("seconds"));
    if with_sandbox {
        // The codes of the two are each other's strangers, and what happened there did happen.
        let theirs = server.sandbox_rows("SELECT code FROM people");
        let ours = server.rows("SELECT code FROM people");
        assert!(theirs.iter().all(|code| !ours.contains(code)));
        let members = server.sandbox_number("SELECT count(*) FROM people WHERE state = 'member'");
        assert_eq!(server.count_of(&test).await, members as u64);
    }
    (rows, figures)
}

#[test]
fn whatever_happens_in_the_sandbox_the_live_records_are_the_same() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for round in 0..3 {
        let deeds = deeds().new_tree(&mut runner).unwrap().current();
        let (alone, beside) = block_on(async { (left_behind(&deeds, false).await, left_behind(&deeds, true).await) });
        assert!(alone.0[1].len() > 2 && alone.0[5] != [["0"]], "round {round} has something to compare: {alone:?}");
        assert_eq!(alone, beside, "round {round}: {deeds:?}");
    }
}

mod once {
    use super::*;
    use crate::records::{Home, connect};

    /// With the sandbox's keys locked, made-up test keys were 500 after 4 s, and in no metric.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_key_that_cannot_be_looked_up_is_refused_like_an_unknown_one() {
        needs!(Postgres, Redis);
        let home = Home::on_postgres(tempfile::tempdir().unwrap());
        let server = Server::start_in(home, &["--log", "errors"]);
        let test = server.test_key();
        server.invite(&test, "confirm@simulator.test").await.good();
        let Records::Postgres { store, .. } = server.records() else { panic!("these are elsewhere") };
        let holder = connect(store).await.unwrap();
        holder.batch_execute("BEGIN; LOCK TABLE public_sandbox.api_keys IN ACCESS EXCLUSIVE MODE").await.unwrap();
        for n in 0..6 {
            let made_up = ApiKey::of_mode(Mode::Test, &[n; ApiKey::ENTROPY]);
            let asked = server.invite(made_up.reveal(), "ana@example.com");
            // The table is locked until after the last of them.
            let refused = in_time("an answer", asked).await;
            refused.refused(401, "agent_unauthorized");
        }
        holder.batch_execute("ROLLBACK").await.unwrap();
        server.invite(&test, "confirm+2@simulator.test").await.good();
    }
}
