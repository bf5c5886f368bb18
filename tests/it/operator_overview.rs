//! What the operator's page shows and does beside access: figures, campaigns and rewards. They are those of the commands.

use crate::operator_page::{CHANGED, act, asked_form, audit, press, signed_in};
use crate::prelude::*;
use crate::reward_commands::{CAMPAIGN, done, listed, union_with_groups};
use unionhall::domain::figure::{counted, grouped, money};

/// Sends a form of a page that is there.
async fn send(browser: &mut Browser<'_>, from: &str, to: &str, fields: &[(&str, &str)]) -> Answer {
    page(&browser.get(from).await, 200, "</html>");
    act(browser, to, fields).await
}

/// The rows of the tables of a picture: each cell's text.
fn rows(html: &str, picture: &str) -> Vec<Vec<String>> {
    let part = html.split(&format!("<h2 id=\"{picture}\">")).nth(1).unwrap().split("</section>").next().unwrap();
    let rows = part.split("<tr>").skip(1).map(|row| {
        let row = row.split("</tr>").next().unwrap();
        let cells = row.split("<t").skip(1).filter_map(|cell| cell.split_once('>'));
        cells.map(|(_, text)| text.split("</t").next().unwrap().to_owned()).collect()
    });
    rows.collect()
}

fn stats(server: &Server, by: &[&str]) -> Value {
    serde_json::from_str(&done(server, &[&["stats", "--json"], by].concat())).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_are_those_of_the_commands() {
    let server = union_with_groups().await;
    // Both bring the figures up to date, as the service does three times a minute.
    let (totals, _) = listed(&server);
    let all = stats(&server, &[]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let html = page(&ana.get("/operator").await, 200, "Overview");
    let figure = |value: &Value| grouped(value.as_u64().unwrap());

    let members = all["members"].as_u64().unwrap();
    assert!(html.contains(&format!("{} now.", counted(members, "member"))), "{html}");
    let funnel = rows(&html, "funnel");
    // Stages, and other outcomes below a head of their own.
    for (row, name) in [(1, "signedUp"), (2, "mailed"), (3, "confirmed"), (5, "declined"), (6, "lapsed"), (7, "left")] {
        assert_eq!(funnel[row][1], figure(&all["funnel"][name]), "{name}");
    }
    let states = stats(&server, &["--by", "state"]);
    assert_eq!(rows(&html, "states").len(), states.as_array().unwrap().len() + 1);
    let partners = stats(&server, &["--by", "partner"]);
    let shown = rows(&html, "partners");
    for partner in partners.as_array().unwrap() {
        let name = partner["partner"].as_str().unwrap_or("the form");
        let row = shown.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{name} in {shown:?}"));
        let expected = [&partner["signedUp"], &partner["mailed"], &partner["confirmed"]].map(figure);
        assert_eq!(row[1..4], expected, "{name}");
    }
    let referrers = stats(&server, &["--by", "referrer"]);
    let expected: Vec<_> = referrers.as_array().unwrap().iter().map(|row| figure(&row["members"])).collect();
    let shown: Vec<_> = rows(&html, "referrals")[1..].iter().map(|row| row[1].clone()).collect();
    assert_eq!(shown, expected);
    assert!(html.contains("17 members were referred by another"), "{html}");

    let cents = |name: &str| money(totals[name].as_i64().unwrap());
    let rewards = rows(&html, "rewards");
    let expected = [("Due", cents("dueCents")), ("Being paid", cents("outCents")), ("Paid", cents("paidCents"))];
    for (row, (name, amount)) in rewards[1..4].iter().zip(expected) {
        assert_eq!(*row, [name, &amount]);
    }
    assert_eq!(totals["dueCents"], 30_000, "three groups of five");
    assert_eq!(rewards[5][1], figure(&totals["onHold"]));
    assert_eq!(rewards[6][1], figure(&totals["waiting"]));
    assert!(rows(&html, "campaigns")[1][1] == "active", "{html}");
}

/// The findings of the overview: each message, and where its link leads if it has one.
fn findings(html: &str) -> Vec<(&str, Option<&str>)> {
    let list = html.split("<ul class=\"findings\">").nth(1).unwrap().split("</ul>").next().unwrap();
    let parts = list.split("<li ").skip(1);
    parts
        .map(|part| (part, part.split("<p class=\"fix\"><a href=\"").nth(1).and_then(|link| link.split('"').next())))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finding_leads_to_where_the_page_fixes_it() {
    let own = ["--base-url", "https://unionhall.test", "--join-site", "https://unionhall.test", "--mail", "hold"];
    let postal = ["--postal-address", "12 Mill Street, Springfield, IL 62701"];
    let server = Server::start_with(&[&own[..], &postal].concat());
    std::fs::write(server.data().with_file_name("campaign.toml"), server.run(&["campaigns", "sample"])).unwrap();
    done(&server, &["campaigns", "new", "campaign.toml"]);
    done(&server, &["campaigns", "open", CAMPAIGN, "--postal-address", "12 Mill Street, Springfield, IL 62701"]);
    server.post("/v1/invite", &server.key(), sign_up("held@example.com")).await.good();
    done(&server, &["signups", "pause"]);
    for change in [
        "UPDATE outbox SET held_at = 1",
        "INSERT INTO campaign_offer_drafts (campaign_id, at, client, offer) VALUES (1, 2, 'x', 'supplier = 1')",
        "INSERT INTO payout_batches (created_at, who, filled_at, written_at) VALUES (1, 'op', 1, 1), (1, 'op', 1, NULL)",
        "INSERT INTO payouts (batch_id, external_id, account, campaign_id, amount_cents, group_count, state)
         VALUES (1, 'a', 'a', 1, 100, 1, 'out'), (2, 'b', 'b', 1, 100, 1, 'out')",
    ] {
        server.execute(change);
    }
    let mut ana = signed_in(&server, "ana", 1).await;
    let html = page(&ana.get("/operator").await, 200, "Needs attention");
    let found = findings(&html);
    let links: Vec<_> = found.iter().filter_map(|(_, link)| *link).collect();
    let draft = format!("/operator/campaigns/{CAMPAIGN}#drafts");
    let expected = [
        "/operator#sign-ups", "/operator/mail", "/operator/backup", "/operator/rewards#settle",
        "/operator/rewards#batches", &draft,
    ];
    assert_eq!(links, expected, "{html}");
    for link in links {
        let (path, part) = link.split_once('#').unwrap_or((link, "main"));
        page(&ana.get(path).await, 200, &format!(" id=\"{part}\""));
    }
    // The others say what to do on the machine; and times read as people write them.
    let (settings, _) = found.iter().find(|(_, link)| link.is_none()).unwrap();
    assert!(settings.contains("<p class=\"fix\">") && settings.contains("UNIONHALL_"), "{settings}");
    assert!(
        html.contains("batch 1 was made at <time datetime=\"1970-01-01T00:00:00Z\">Jan 1, 1970, 12:00 AM UTC</time>")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_goes_from_step_to_step_on_the_page() {
    let server = Server::start_with(&["--postal-address", "12 Mill Street, Springfield, IL 62701", "--mail", "hold"]);
    let file = server.run(&["campaigns", "sample"]);
    std::fs::write(server.data().with_file_name("campaign.toml"), file).unwrap();
    done(&server, &["campaigns", "new", "campaign.toml"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let here = format!("/operator/campaigns/{CAMPAIGN}");
    assert!(page(&ana.get("/operator/campaigns").await, 200, "Campaigns").contains(&format!("href=\"{here}\"")));
    // Each step is asked about first, and done once.
    let mut step = async |step: &str, more: &[(&str, &str)]| {
        let fields = [&[("step", step)], more].concat();
        let asked = page(&send(&mut ana, &here, &here, &fields).await, 200, "name=\"sure\" value=\"yes\"");
        assert_eq!(
            server.number("SELECT count(*) FROM campaign_history") as usize,
            audit_of_steps(&server) + 1,
            "{asked}"
        );
        let sure = [&fields[..], &[("sure", "yes")]].concat();
        let done = page(&send(&mut ana, &here, &here, &sure).await, 200, "Done");
        page(&send(&mut ana, &here, &here, &sure).await, 400, "Nothing was done");
        done
    };
    assert!(step("open", &[("note", "by <b>vote</b>")]).await.contains("is gathering: members are asked until"));
    assert!(step("negotiate", &[]).await.contains("is negotiating."));
    std::fs::write(server.data().with_file_name("bid.toml"), server.run(&["campaigns", "sample", "--bid"])).unwrap();
    done(&server, &["campaigns", "bid", CAMPAIGN, "bid.toml"]);
    let offer = format!("bid = 1\n{}", server.run(&["campaigns", "sample", "--offer"])).replace('\'', "''");
    let hostile = "<script>alert(1)</script>";
    server.execute(&format!(
        "INSERT INTO campaign_rounds (campaign_id, at, client, supplier, asked, answered) VALUES (1, 1, '{hostile}', '{hostile}', '{hostile}', '{hostile}')"
    ));
    server.execute(&format!(
        "INSERT INTO campaign_offer_drafts (campaign_id, at, client, offer) VALUES (1, 2, '{hostile}', '{offer}'), (1, 3, 'old', 'supplier = 1')"
    ));
    let drafts = page(&ana.get(&here).await, 200, "Draft 1");
    assert!(!drafts.contains("<script") && !drafts.contains("<b>vote"), "{drafts}");
    assert!(drafts.contains("after 1 round.") && drafts.contains("Publish draft 1…"), "{drafts}");
    assert!(!drafts.contains("Publish draft 2…") && drafts.contains("It cannot be published as it is:"), "{drafts}");
    for wrong in ["2", "3", "0", "-1", "x", ""] {
        let fields = [("step", "offer"), ("draft", wrong), ("sure", "yes")];
        page(&send(&mut ana, &here, &here, &fields).await, 400, "Nothing was done");
    }
    let mut step = async |step: &str, more: &[(&str, &str)]| {
        let fields = [&[("step", step), ("sure", "yes")], more].concat();
        page(&send(&mut ana, &here, &here, &fields).await, 200, "Done")
    };
    holds(&step("offer", &[("draft", "1")]).await, &["is published: members accept or pass until the end of"]);
    assert!(step("activate", &[]).await.contains("Referral terms, copied for good: $100 for each group of 5"));
    assert!(step("close", &[("no-mail", "yes")]).await.contains("Nobody is mailed about it."));
    // In the wrong order nothing is done; nor without the form's token.
    for wrong in ["open", "negotiate", "activate", "cancel", "offer", "", "draft"] {
        page(&send(&mut ana, &here, &here, &[("step", wrong), ("sure", "yes")]).await, 400, "Nothing was done");
    }
    let note = "x\ny".to_owned();
    page(&send(&mut ana, &here, &here, &[("step", "close"), ("note", &note)]).await, 400, "at most 500 characters");
    page(&ana.post(&here, &[("step", "close"), ("sure", "yes")]).await, 400, "");
    for nowhere in ["/operator/campaigns/no-such", "/operator/campaigns/UPPER"] {
        page(&ana.get(nowhere).await, 404, "No such campaign");
    }
    let taken: Vec<_> = audit(&server).into_iter().filter(|(who, ..)| who == "ana (page)").collect();
    let commands: Vec<_> = taken.iter().map(|(_, command, _)| command.as_str()).collect();
    let steps = ["campaigns open", "campaigns negotiate", "campaigns offer", "campaigns activate", "campaigns close"];
    assert_eq!(commands, [&["page sign-in"], &steps[..]].concat());
    let history = server.rows("SELECT who, to_state, note FROM campaign_history WHERE who = 'ana (page)' ORDER BY id");
    assert_eq!(history[0], ["ana (page)", "gathering", "by <b>vote</b>"]);
    assert_eq!(history.len(), 5);
    assert_eq!(
        server.number("SELECT count(*) FROM campaign_mailings WHERE kind = 'campaign_result' AND finished_at IS NULL"),
        0
    );
}

fn audit_of_steps(server: &Server) -> usize {
    audit(server).iter().filter(|(who, command, _)| who == "ana (page)" && command.starts_with("campaigns ")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_made_downloaded_and_settled_on_the_page() {
    let server = union_with_groups().await;
    listed(&server);
    stats(&server, &[]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let here = "/operator/rewards";
    page(&ana.get(here).await, 200, "$300 is due, $0 is being paid, and $0 was paid.");
    page(&send(&mut ana, here, "/operator/rewards/batch", &[]).await, 200, "Make a batch of what is due?");
    assert_eq!(server.number("SELECT count(*) FROM payout_batches"), 0, "asking makes none");
    let sure = [("sure", "yes")];
    // Twice: the second finds the batch whose file was never written.
    for _ in 0..2 {
        leads(&send(&mut ana, here, "/operator/rewards/batch", &sure).await, here);
    }
    assert_eq!(server.number("SELECT count(*) FROM payout_batches"), 1);
    page(&ana.get(here).await, 200, "never written");

    let file = "/operator/rewards/batches/1";
    let told = page(&send(&mut ana, here, file, &[]).await, 200, "Download the file of batch 1?");
    assert!(told.contains("nothing is taken out of the batch anymore"), "{told}");
    assert_eq!(server.number("SELECT count(*) FROM payout_batches WHERE closed_at IS NOT NULL"), 0);
    let answer = send(&mut ana, here, file, &sure).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "text/csv; charset=utf-8"));
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"payouts-1.csv\"");
    assert_eq!(answer.header("cache-control"), "no-store");
    let csv = answer.text();
    done(&server, &["rewards", "batch", "new", "again.csv"]);
    assert_eq!(csv, std::fs::read_to_string(server.data().with_file_name("again.csv")).unwrap());
    page(&send(&mut ana, here, "/operator/rewards/batch", &sure).await, 200, "Nothing is due");
    for nowhere in ["0", "-1", "2", "x", "99999999999999999999"] {
        page(&send(&mut ana, here, &format!("{here}/batches/{nowhere}"), &sure).await, 404, "No such batch");
    }
    // What the provider answered: all mistakes at once, then once and again.
    let ids: Vec<_> = csv.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    let header = "external_id,status,reference,paid_at,reason";
    let day = &server.rows("SELECT CAST(created_at / 86400000 AS TEXT) FROM payout_batches")[0][0];
    let day = unionhall::domain::time::Timestamp::from_millis(day.parse::<i64>().unwrap() * 86_400_000).to_string();
    let day = &day[..10];
    let settle = "/operator/rewards/settle";
    let wrong = format!("{header}\n{},payed,,,\n<script>,paid,,{day},\n", ids[0]);
    let refused = page(&send(&mut ana, here, settle, &[("answer", &wrong)]).await, 400, "Nothing was recorded");
    assert!(refused.contains("line 2: status") && refused.contains("line 3: external_id"), "{refused}");
    assert!(!refused.contains("<script"), "{refused}");
    let good = format!("{header}\n{},paid,tx-1,{day},\n{},failed,,,no account\n", ids[0], ids[1]);
    page(&send(&mut ana, here, settle, &[("answer", &good)]).await, 200, "1 paid, 1 failed");
    assert_eq!(server.number("SELECT count(*) FROM payouts WHERE state = 'out'"), 2, "asking records nothing");
    for recorded in ["Recorded now: 2. Recorded before: 0.", "Recorded now: 0. Recorded before: 2."] {
        page(&send(&mut ana, here, settle, &[("answer", &good), sure[0]]).await, 200, recorded);
    }
    page(&send(&mut ana, here, settle, &[]).await, 400, "the file is empty");
    page(&send(&mut ana, here, file, &sure).await, 400, "Every payout of batch 1 is settled.");
    for path in ["/operator/rewards/batch", file, settle] {
        let refused = ana.post(path, &[("answer", good.as_str()), sure[0]]).await;
        assert!(refused.status.is_client_error(), "{path} without the form's token");
        assert_eq!(ana.get(path).await.status, 200, "whoever comes back to {path} finds the page");
    }
    let acts: Vec<_> = audit(&server).into_iter().filter(|(who, ..)| who == "ana (page)").collect();
    let acts: Vec<_> = acts.iter().map(|(_, command, about)| (command.as_str(), about.as_str())).collect();
    let expected = [
        ("rewards batch new", "batch 1 begun"),
        ("rewards batch new", "batch 1, 2 payouts, $300"),
        ("rewards batch settle", "1 paid, 1 failed"),
    ];
    for act in expected {
        assert!(acts.contains(&act), "{act:?} in {acts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_was_asked_about_in_another_state_is_asked_about_again() {
    let address = "--postal-address=12 Mill Street, Springfield, IL 62701";
    let server = Server::start_with(&[address, "--mail", "hold"]);
    let file = server.run(&["campaigns", "sample"]);
    std::fs::write(server.data().with_file_name("campaign.toml"), file).unwrap();
    done(&server, &["campaigns", "new", "campaign.toml"]);
    let mut ana = signed_in(&server, "ana", 1).await;
    let here = format!("/operator/campaigns/{CAMPAIGN}");
    let stale = asked_form(&mut ana, &here, &[("step", "cancel")]).await;
    // Without what was asked about, or with what is not, nothing is done.
    for forged in ["", "x"] {
        let fields = [("step", "cancel"), ("sure", "yes"), ("asked", forged)];
        page(&act(&mut ana, &here, &fields).await, 200, CHANGED);
    }
    done(&server, &["campaigns", "open", CAMPAIGN, address]);
    let state = || server.rows("SELECT state FROM campaigns")[0][0].clone();
    holds(&page(&press(&mut ana, &here, &stale).await, 200, CHANGED), &["It is gathering now.", "are mailed"]);
    assert_eq!(state(), "gathering");
    let asked = asked_form(&mut ana, &here, &[("step", "cancel")]).await;
    page(&press(&mut ana, &here, &asked).await, 200, "Done");
    assert_eq!(state(), "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_paid_meanwhile_is_not_recorded_as_failed_unasked() {
    let server = union_with_groups().await;
    listed(&server);
    let mut ana = signed_in(&server, "ana", 1).await;
    let made = act(&mut ana, "/operator/rewards/batch", &[("sure", "yes")]).await;
    assert_eq!(made.status.as_u16(), 303);
    // The file is handed out once for what was read, and asked about again after.
    let file = "/operator/rewards/batches/1";
    let asked = asked_form(&mut ana, file, &[]).await;
    let written = press(&mut ana, file, &asked).await;
    assert_eq!(written.header("content-type"), "text/csv; charset=utf-8");
    holds(&page(&press(&mut ana, file, &asked).await, 200, CHANGED), &["The file was written before."]);

    let csv = written.text();
    let id = csv.lines().nth(1).unwrap().split(',').next().unwrap();
    let day = unionhall::domain::time::Timestamp::from_millis(
        server.number("SELECT created_at / 86400000 FROM payout_batches") * 86_400_000,
    );
    let header = "external_id,status,reference,paid_at,reason";
    let paid = format!("{header}\r\n{id},paid,tx-1,{},\r\n", &day.to_string()[..10]);
    let failed = format!("{header}\r\n{id},failed,,,no account\r\n");
    let settle = "/operator/rewards/settle";
    let stale = asked_form(&mut ana, settle, &[("answer", &failed)]).await;
    page(&act(&mut ana, settle, &[("answer", &paid), ("sure", "yes")]).await, 200, "Recorded now: 1.");
    let told = page(&press(&mut ana, settle, &stale).await, 200, CHANGED);
    assert!(told.contains(&format!("Recorded as paid before, and failed now: {id}.")), "{told}");
    assert_eq!(server.number("SELECT count(*) FROM payouts WHERE state = 'failed'"), 0);
    // Whoever has read that may be sure of it. A browser writes the ends of lines its own way.
    let plain = failed.replace("\r\n", "\n");
    let asked = asked_form(&mut ana, settle, &[("answer", &plain)]).await;
    let asked = [("answer", failed.clone()), asked[1].clone(), asked[2].clone()];
    page(&press(&mut ana, settle, &asked).await, 200, "Recorded now: 1.");
    assert_eq!(server.number("SELECT count(*) FROM payouts WHERE state = 'failed'"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_file_withholds_is_told_before_it_is_downloaded() {
    let server = union_with_groups().await;
    listed(&server);
    server.execute("UPDATE people SET email = '+bob@example.com' WHERE email = 'bob@example.com'");
    let mut ana = signed_in(&server, "ana", 1).await;
    assert_eq!(act(&mut ana, "/operator/rewards/batch", &[("sure", "yes")]).await.status.as_u16(), 303);
    let file = "/operator/rewards/batches/1";
    let shown = page(&act(&mut ana, file, &[]).await, 200, "Download the file of batch 1?");
    let bobs = &server.rows("SELECT external_id FROM payouts ORDER BY amount_cents")[0][0];
    holds(
        &shown,
        &[
            "The file has 1 payout, $200, each with the member",
            &format!("would run the address as a formula: 1 payout, $100 ({bobs})."),
            "Not settled in this batch: 2 payouts, $300.",
            "unionhall members find ACCOUNT",
        ],
    );
    assert!(!shown.contains("+bob@"), "{shown}");
    let asked = asked_form(&mut ana, file, &[]).await;
    let csv = press(&mut ana, file, &asked).await.text();
    assert!(csv.lines().count() == 2 && csv.contains("ana@example.com") && !csv.contains("+bob@"), "{csv}");
}
