//! Mail about campaigns, through a real server: what it carries, what a crash makes of a mailing, and who does not wait for it.

use crate::prelude::*;

const DEFINITION: &str = "slug = \"internet-2099\"\ncategory = \"internet\"\ngather_until = 2099-12-31\n\
    [text.en]\ntitle = \"Home internet\"\nsummary = \"Less.\"\n[text.es]\ntitle = \"Internet\"\nsummary = \"Menos.\"\n";

fn flags(mail: &Mailserver, an_hour: &str) -> Vec<String> {
    let url = format!("smtp://127.0.0.1:{}?tls=none", mail.port);
    let postal = ["--postal-address", "12 Mill Street"];
    [&["--mail", &url, "--campaign-mails-an-hour", an_hour], &postal[..]]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

fn start(mail: &Mailserver, an_hour: &str) -> Server {
    let flags = flags(mail, an_hour);
    Server::start_with(&flags.iter().map(String::as_str).collect::<Vec<_>>())
}

fn open_campaign(server: &Server) {
    server.execute(&format!(
        "INSERT INTO campaigns (id, slug, definition, state, gather_until, created_at)
         VALUES (1, 'internet-2099', '{DEFINITION}', 'gathering', 47481, 0)"
    ));
    server.execute(
        "INSERT INTO campaign_history (campaign_id, at, who, from_state, to_state, note) VALUES (1, 0, 'op', 'draft', 'gathering', '')",
    );
    server.execute("INSERT INTO campaign_mailings (campaign_id, kind, started_at) VALUES (1, 'campaign_opened', 0)");
}

/// Members who ticked home internet and want its mail.
fn add_members(server: &Server, count: usize) {
    let rows: Vec<_> = (0..count)
        .map(|n| {
            format!(
                "('m{n}@example.com', 'm{n}@example.com', 'm{n}@example.com', '{n:012}', 'member', 0, 0, 0, 'internet', 'campaign_opened')"
            )
        })
        .collect();
    server.execute(&format!(
        "INSERT INTO people (email, email_normalized, mailbox, code, state, created_at, joined_at, answered_at, own_categories, wanted_mail)
         VALUES {}",
        rows.join(", ")
    ));
}

fn about_campaigns(mail: &Mailserver) -> Vec<Value> {
    let is_about = |mail: &Value| mail["content"].as_str().unwrap().contains("/unsubscribe/");
    mail.arrived().into_iter().filter(is_about).collect()
}

fn header(mail: &Value, name: &str) -> String {
    let message = MessageParser::default().parse(mail["content"].as_str().unwrap().as_bytes()).unwrap();
    message.header_raw(name).unwrap_or_default().split_whitespace().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_told_of_a_campaign_and_can_switch_that_off() {
    needs!(MailServer);
    let mail = Mailserver::start(&[]);
    let server = start(&mail, "500");
    let key = server.key();
    for (n, (email, bills)) in
        [("ana@example.com", json!({ "internet": true })), ("ben@example.com", json!({}))].iter().enumerate()
    {
        let body = json!({ "email": email, "categories": bills });
        server.post("/v1/invite", &key, body.to_string()).await.good();
        server.confirm(n as i64 + 1).await;
    }
    let spent = || server.number("SELECT coalesce(sum(mailed), 0) FROM source_days");
    wait_for!(async || server.number("SELECT count(*) FROM outbox") == 0).await;
    let before = spent();
    open_campaign(&server);
    wait_for!(async || !about_campaigns(&mail).is_empty()).await;
    let told = about_campaigns(&mail);
    assert_eq!((told.len(), &told[0]["to"]), (1, &json!(["ana@example.com"])), "the other bill is not ticked");
    holds(&header(&told[0], "List-Unsubscribe"), &["/unsubscribe/"]);
    assert_eq!(header(&told[0], "List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
    assert!(header(&told[0], "Feedback-ID").starts_with("campaign_opened:internet-2099:"));
    wait_for!(async || server.number("SELECT count(*) FROM outbox") == 0).await;
    assert_eq!(server.number("SELECT count(*) FROM campaign_mailings WHERE queued = 1 AND finished_at > 0"), 1);
    assert_eq!(spent(), before, "it spends nobody's budget");
}

/// Whatever a crash comes between, everybody is mailed, and twice only who was being mailed then, with the same mail.
#[tokio::test(flavor = "multi_thread")]
async fn a_mailing_that_is_killed_goes_on_and_forgets_nobody() {
    needs!(MailServer);
    let members = 60;
    let mail = Mailserver::start(&[]);
    let mut server = start(&mail, "100000");
    add_members(&server, members);
    open_campaign(&server);
    let mut kills = 0;
    for at_least in [0, 1, 13, 40] {
        wait_for!(async || about_campaigns(&mail).len() >= at_least).await;
        server.signal("KILL");
        kills += 1;
        let home = server.into_home();
        let flags = flags(&mail, "100000");
        server = Server::start_in(home, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let recipients = || {
        let mut by_recipient = BTreeMap::<String, Vec<String>>::new();
        for mail in about_campaigns(&mail) {
            by_recipient.entry(mail["to"].to_string()).or_default().push(header(&mail, "Message-ID"));
        }
        by_recipient
    };
    wait_for!(async || recipients().len() == members).await;
    wait_for!(async || server.number("SELECT count(*) FROM outbox") == 0).await;
    let recipients = recipients();
    let twice = recipients.values().map(|ids| ids.len() - 1).sum::<usize>();
    assert!(twice <= kills * 4, "{twice} after {kills}");
    for ids in recipients.values() {
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 1, "the same mail");
    }
    let queued = server.number("SELECT queued FROM campaign_mailings WHERE finished_at IS NOT NULL");
    assert_eq!(queued, members as i64);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_signs_up_does_not_wait_for_a_mailing() {
    needs!(MailServer);
    let members = 150;
    let mail = Mailserver::start(&["--hold", "m"]);
    let server = start(&mail, "1000000");
    let key = server.key();
    add_members(&server, members);
    open_campaign(&server);
    // All places that mail about campaigns may have are taken, and much more waits.
    let waiting = async || server.number("SELECT count(*) FROM outbox WHERE leased_until = 0") > 100;
    wait_for!(waiting).await;
    wait_for!(async || server.number("SELECT count(*) FROM outbox WHERE leased_until > 0") >= 4).await;
    server.post("/v1/invite", &key, crate::server::sign_up("new@example.com")).await.good();
    let is_new = |mail: &Value| mail["to"] == json!(["new@example.com"]);
    wait_for!(async || mail.arrived().iter().any(is_new)).await;
    assert!(about_campaigns(&mail).is_empty(), "it went while none of the others was answered");
    mail.let_go();
    wait_for!(async || about_campaigns(&mail).len() == members).await;
}
