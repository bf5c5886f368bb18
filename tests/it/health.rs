//! One truth about health: whatever is wrong, `/readyz`, the metrics, the operator's page and `doctor` say so alike, and stop saying so.

use crate::operator_page::signed_in;
use crate::prelude::*;

/// Something that is wrong: the check that finds it, a part of what it says, and the word of `/readyz`, where that has one.
pub(crate) struct Fault {
    pub check: &'static str,
    pub says: &'static str,
    pub ready: Option<(&'static str, &'static str)>,
}

pub(crate) const MAIL_FAILS: Fault =
    Fault { check: "mail", says: "it cannot be sent", ready: Some(("mail", "failing")) };
pub(crate) const COUNTS_ALONE: Fault =
    Fault { check: "limits", says: "Redis is away", ready: Some(("limits", "local")) };
const PAUSED: Fault =
    Fault { check: "sign-ups", says: "they are paused: agents cannot", ready: Some(("signUps", "paused")) };
const HELD: Fault = Fault { check: "mail", says: "1 mail is held until you decide", ready: None };
const ENDPOINT: Fault = Fault { check: "webhooks", says: "endpoint 1 of Acme Assistant is disabled", ready: None };

/// Waits until all four say that it is there, or that it is not.
pub(crate) async fn agree(server: &Watched, page: &mut Browser<'_>, doctor: Command, fault: &Fault, is_there: bool) {
    let Fault { check, says, ready } = fault;
    if let Some((name, word)) = ready {
        let said = async || server.get("/readyz").await.good()[*name] == *word;
        until(&format!("/readyz on {check}: {is_there}"), async || said().await == is_there).await;
    }
    let counted = async || {
        let begins = format!("unionhall_findings{{check=\"{check}\",");
        server.figures().await.keys().any(|series| series.starts_with(&begins))
    };
    until(&format!("the metrics on {check}: {is_there}"), async || counted().await == is_there).await;
    let shown = async || page.get("/operator").await.text().contains(says) == is_there;
    until(&format!("the page on {check}: {is_there}"), shown).await;
    let found = Diagnosis::of(doctor);
    let is_found = found.lines.iter().any(|line| {
        line["check"] == *check && line["state"] != "ok" && line["message"].as_str().unwrap().contains(says)
    });
    assert_eq!(is_found, is_there, "doctor on {check}: {:#?}", found.lines);
}

/// `doctor` with the settings of that server.
pub(crate) fn doctor(server: &Server, variables: &[(&str, &str)]) -> Command {
    let mut command = server.command();
    command.env("UNIONHALL_LISTEN", server.address.to_string()).envs(variables.iter().copied());
    command
}

/// It said `failing` for as long as no mail went, and with an empty outbox none did.
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_server_that_is_away_is_told_alike_and_so_is_its_return_with_an_empty_outbox() {
    needs!(MailServer);
    let mut mail = Mailserver::start(&[]);
    let url = format!("smtp://127.0.0.1:{}", mail.port);
    let (server, key) = Watched::with_key(&["--mail", &url]);
    let mut page = signed_in(&server, "ana", 1).await;
    let doctor = || doctor(&server, &[("UNIONHALL_MAIL", &url)]);
    agree(&server, &mut page, doctor(), &MAIL_FAILS, false).await;
    mail.kill();
    server.post("/v1/invite", &key, sign_up("ben@example.com")).await.good();
    agree(&server, &mut page, doctor(), &MAIL_FAILS, true).await;
    assert_eq!(server.figures().await["unionhall_mail_failing"], 1.0);
    server.execute("DELETE FROM outbox");
    mail.start_again();
    agree(&server, &mut page, doctor(), &MAIL_FAILS, false).await;
    assert_eq!(server.figures().await["unionhall_mail_failing"], 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_held_mail_and_a_disabled_endpoint_are_told_alike() {
    let (server, key) = Watched::with_key(&["--key-mails-a-day", "1"]);
    let mut page = signed_in(&server, "ana", 1).await;
    let doctor = || doctor(&server, &[]);
    for fault in [&PAUSED, &HELD, &ENDPOINT] {
        agree(&server, &mut page, doctor(), fault, false).await;
    }
    for email in ["ben@example.com", "cem@example.com"] {
        server.post("/v1/invite", &key, sign_up(email)).await.good();
    }
    server.execute(
        "INSERT INTO webhook_endpoints (partner_id, url, created_at, failing_since, disabled_at, disabled_reason)
         VALUES (1, 'https://acme.example/hooks', 1, 1, 2, 'it answered 500')",
    );
    server.run(&["signups", "pause"]);
    for fault in [&PAUSED, &HELD, &ENDPOINT] {
        agree(&server, &mut page, doctor(), fault, true).await;
    }
    server.run(&["signups", "resume"]);
    server.run(&["mail", "release"]);
    server.run(&["webhooks", "remove", "1"]);
    for fault in [&PAUSED, &HELD, &ENDPOINT] {
        agree(&server, &mut page, doctor(), fault, false).await;
    }
}

mod once {
    use super::*;
    use crate::once::redis_server::Redis;
    use crate::records::SECRET;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_redis_that_is_away_and_back_is_told_alike() {
        needs!(RedisServer);
        let mut redis = Redis::start();
        let limits = redis.url();
        let home = Home::on_sqlite(tempfile::tempdir().unwrap());
        let flags = ["--limits", &limits, "--metrics-listen", "127.0.0.1:0"];
        let server = Watched::of(Server::start_in(home, &flags));
        let mut page = signed_in(&server, "ana", 1).await;
        let away = |is_away| Fault { says: if is_away { "Redis" } else { "Redis is away" }, ..COUNTS_ALONE };
        let doctor = || doctor(&server, &[("UNIONHALL_LIMITS", &limits)]);
        agree(&server, &mut page, doctor(), &away(false), false).await;
        redis.kill();
        agree(&server, &mut page, doctor(), &away(true), true).await;
        redis.start_again();
        agree(&server, &mut page, doctor(), &away(false), false).await;
    }

    /// Both nodes said for ten minutes that mail fails, and `doctor` said that all was well.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_restart_of_postgresql_is_the_stores_fault_alone_and_over_when_it_is() {
        needs!(PostgresPrograms);
        let mut cluster = Cluster::primary();
        cluster.ask("CREATE DATABASE hall ENCODING 'UTF8' TEMPLATE template0");
        let store = cluster.url("hall");
        let records = Records::Postgres { store: store.clone(), limits: "memory:".to_owned() };
        let flags = ["--metrics-listen", "127.0.0.1:0"];
        let server = Watched::of(Server::start_in(Home::sharing(&records), &flags));
        let key = server.key();
        let mut page = signed_in(&server, "ana", 1).await;
        let variables = [("UNIONHALL_STORE", store.as_str()), ("UNIONHALL_SECRET", SECRET)];
        let doctor = || doctor(&server, &variables);
        server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
        wait_for!(async || server.number("SELECT count(*) FROM outbox") == 0).await;

        cluster.kill();
        wait_for!(async || server.get("/readyz").await.status == 503).await;
        // The worker asks each second.
        wait_for!(async || server.log().contains("the outbox cannot be used")).await;
        let figures = server.figures().await;
        assert_eq!((figures["unionhall_ready"], figures["unionhall_mail_failing"]), (0.0, 0.0));
        assert_eq!(figures["unionhall_findings{check=\"records\",grade=\"fail\"}"], 2.0, "{figures:#?}");
        assert!(!figures.contains_key("unionhall_findings{check=\"mail\",grade=\"fail\"}"), "{figures:#?}");
        assert_eq!(page.get("/operator").await.status, 503);
        let found = Diagnosis::of(doctor());
        assert_eq!(found.of_check("records")[0]["state"], "fail", "{:#?}", found.lines);
        assert_eq!(found.of_check("service")[0]["state"], "fail", "{:#?}", found.lines);

        cluster.start_again();
        wait_for!(async || server.get("/readyz").await.status == 200).await;
        assert_eq!(server.get("/readyz").await.good()["mail"], "sent");
        agree(&server, &mut page, doctor(), &MAIL_FAILS, false).await;
        let records = Fault { check: "records", says: "the store", ready: None };
        agree(&server, &mut page, doctor(), &records, false).await;
        wait_for!(async || server.log().contains("the outbox can be used again")).await;
    }
}
