//! What the operator's page does with rewards as the commands do: an answer as a file, voids, the review, accounts, a year.

use crate::operator_page::{act, asked_of, audit, signed_in};
use crate::prelude::*;
use crate::reward_commands::{ANA, BOB, CAMPAIGN, done, join, listed, union_with_groups};

const HERE: &str = "/operator/rewards";
const SETTLE: &str = "/operator/rewards/settle";

/// A field of a form with a file, as a browser sends it.
fn part(name: &str, file: Option<&str>, content: &str) -> String {
    let file = file.map(|file| format!("; filename=\"{file}\"\r\nContent-Type: text/csv")).unwrap_or_default();
    format!("--X\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{content}\r\n")
}

/// Sends a body under that type.
async fn send_as(browser: &mut Browser<'_>, content_type: &str, body: String) -> Answer {
    let request = Request::post(SETTLE).header("sec-fetch-site", "same-origin").header("content-type", content_type);
    browser.send(request, body).await
}

async fn token(browser: &mut Browser<'_>) -> String {
    hidden(&page(&browser.get(HERE).await, 200, "Record what was paid"), "token")
}

/// Sends the parts of such a form, with the token of the page.
async fn upload(browser: &mut Browser<'_>, parts: &[String]) -> Answer {
    let token = part("token", None, &token(browser).await);
    let body = format!("{token}{}--X--\r\n", parts.concat());
    send_as(browser, "multipart/form-data; boundary=X", body).await
}

/// The value of a hidden field, as a browser reads it.
fn kept(answer: &Answer, name: &str) -> String {
    let value = hidden(&answer.text(), name);
    value.replace("&#34;", "\"").replace("&#60;", "<").replace("&#62;", ">").replace("&#38;", "&")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_recorded_from_a_file() {
    let server = union_with_groups().await;
    listed(&server);
    let mut ana = signed_in(&server, "ana", 1).await;
    assert_eq!(act(&mut ana, "/operator/rewards/batch", &[("sure", "yes")]).await.status.as_u16(), 303);
    let csv = act(&mut ana, "/operator/rewards/batches/1", &[("sure", "yes")]).await.text();
    let ids: Vec<_> = csv.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    let day = server.number("SELECT created_at / 86400000 FROM payout_batches") * 86_400_000;
    let day = unionhall::domain::time::Timestamp::from_millis(day).to_string()[..10].to_owned();
    // As a spreadsheet writes it, with a mark at its start and a column of its own; larger than any other form may be.
    let note = "\"a note, <b>of</b> ours\"".to_owned() + &"&".repeat(90_000);
    let file = format!(
        "\u{feff}external_id,status,reference,paid_at,reason,note\r\n{},paid,tx-1,{day},,x\r\n{},failed,,,no account,\"{}\"\r\n",
        ids[0],
        ids[1],
        note.replace('"', "\"\"")
    );
    let strange = Some("..\\..\\\u{202e}a;b\u{1b}[31m\u{fffd}%22.csv");
    let asked = upload(&mut ana, &[part("file", strange, &file), part("answer", None, "")]).await;
    let html = page(&asked, 200, "Record the provider");
    holds(&html, &["The answer has 2 payouts: 1 paid, 1 failed.", "enctype=\"multipart/form-data\""]);
    assert!(!html.contains("a;b") && !html.contains("<b>of"), "{html}");
    assert_eq!(server.number("SELECT count(*) FROM payouts WHERE state = 'out'"), 2, "asking records nothing");
    // The question sends it again, with the ends of lines as browsers write them.
    let again = [
        part("sure", None, "yes"),
        part("asked", None, &asked_of(&asked).unwrap()),
        part("answer", None, &kept(&asked, "answer").replace('\n', "\r\n")),
        part("paid-earlier", None, ""),
    ];
    for recorded in ["Recorded now: 2. Recorded before: 0.", "Recorded now: 0. Recorded before: 2."] {
        page(&upload(&mut ana, &again).await, 200, recorded);
    }
    assert_eq!(server.rows("SELECT state FROM payouts ORDER BY id").concat(), ["paid", "failed"]);
    assert!(audit(&server).contains(&(
        "ana (page)".to_owned(),
        "rewards batch settle".to_owned(),
        "1 paid, 1 failed".to_owned()
    )));
    // Every mistake with its line, as the command has them.
    let wrong = format!("external_id,status\n{},payed\n<script>,failed\n{},failed,x\n", ids[0], ids[1]);
    let told = page(&upload(&mut ana, &[part("file", Some("a.csv"), &wrong)]).await, 400, "Nothing was recorded");
    holds(
        &told,
        &[
            "line 2: status", "write paid or failed", "line 3: external_id", "no payout has it",
            "line 4: 3 fields; the first line has 2",
        ],
    );
    assert!(!told.contains("<script"), "{told}");
    std::fs::write(server.data().with_file_name("wrong.csv"), &wrong).unwrap();
    let command = server.try_run(&["rewards", "batch", "settle", "wrong.csv"]);
    let said = String::from_utf8(command.stderr).unwrap();
    holds(&said, &["line 2: status", "line 3: external_id", "line 4: 3 fields; the first line has 2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_with_a_file_that_is_not_as_it_should_be_changes_nothing() {
    let server = union_with_groups().await;
    listed(&server);
    let mut ana = signed_in(&server, "ana", 1).await;
    let csv = "external_id,status\nx,failed\n";
    let chosen = |content: &str| part("file", Some("a.csv"), content);
    for (parts, told) in [
        (vec![part("file", Some(""), ""), part("answer", None, " \r\n")], "Choose the provider's file"),
        (vec![chosen(csv), part("answer", None, csv)], "Send one of them."),
        (vec![chosen(csv), part("other", Some("b.csv"), csv)], "Choose one."),
        (vec![chosen("")], "line 1: the file is empty; the first line names the columns"),
        (vec![chosen("e\0x\0t\0")], "is not text in UTF-8: line 1 "),
        (vec![chosen(&"x".repeat((1 << 20) + 1))], "larger than 1 MiB"),
        (vec![chosen(&"x".repeat(5 << 20))], "larger than 1 MiB"),
        (vec![part("answer", None, csv); 40], "more than 32 parts"),
        (vec![part("file", Some(&"x".repeat(5000)), csv)], "a header that is too long"),
        // What stands between the parts, in the file itself.
        (vec![chosen("external_id,status\r\n--X\r\nx,failed\r\n\r\n")], "one of its parts has no name"),
    ] {
        page(&upload(&mut ana, &parts).await, 400, told);
    }
    let token = part("token", None, &token(&mut ana).await);
    let form = format!("{token}{}", chosen(csv));
    for (content_type, body) in [
        ("multipart/form-data", format!("{form}--X--\r\n")),
        ("multipart/form-data; boundary=Y", format!("{form}--X--\r\n")),
        ("multipart/form-data; boundary=X", form.clone()),
        ("multipart/form-data; boundary=X", String::new()),
    ] {
        page(&send_as(&mut ana, content_type, body).await, 400, "The form cannot be read, because it ");
    }
    // Of another session, of none, and from elsewhere.
    let foreign = format!("{}{}--X--\r\n", part("token", None, "x"), chosen(csv));
    let with_file = "multipart/form-data; boundary=X";
    page(&send_as(&mut ana, with_file, foreign).await, 400, "The form was of another session.");
    page(
        &send_as(&mut ana, with_file, format!("{}--X--\r\n", chosen(csv))).await,
        400,
        "The form was of another session.",
    );
    page(&send_as(&mut Browser::new(&server, 2), with_file, format!("{form}--X--\r\n")).await, 403, "Sign in");
    let request = Request::post(SETTLE).header("sec-fetch-site", "cross-site").header("content-type", with_file);
    page(&ana.send(request, format!("{form}--X--\r\n")).await, 403, "the form was not sent from this page");
    // No other form of the page takes one.
    let request = Request::post("/operator/rewards/batch")
        .header("sec-fetch-site", "same-origin")
        .header("content-type", with_file);
    page(&ana.send(request, format!("{token}--X--\r\n")).await, 400, "The form was of another session.");
    assert!(audit(&server).iter().all(|(_, command, _)| !command.starts_with("rewards batch")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_voided_in_the_words_of_the_command() {
    let server = union_with_groups().await;
    listed(&server);
    let mut ana = signed_in(&server, "ana", 1).await;
    let here = "/operator/rewards/void";
    holds(&page(&ana.get(HERE).await, 200, "Void a member"), &["href=\"/operator/rewards/void\""]);
    holds(&page(&ana.get(here).await, 200, "Void a member"), &["(internet-sample, active)</option>"]);
    // Every mistake at once, and what was typed again.
    let told = page(&act(&mut ana, here, &[]).await, 400, "Nothing was saved");
    holds(&told, &["Member: write their email", "Campaign: choose one", "Reason: write 1 to 200 characters"]);
    let typed = [("member", "3f7k"), ("campaign", CAMPAIGN), ("reason", "same as kim@x.example")];
    let told = page(&act(&mut ana, here, &typed).await, 400, "Member: nobody has that address, account or code.");
    holds(&told, &["Reason: write it without an @", "value=\"3f7k\"", "value=\"internet-sample\" selected"]);

    let voided = || server.number("SELECT count(*) FROM qualifications WHERE voided_at IS NOT NULL");
    let of = |member| [("member", member), ("campaign", CAMPAIGN), ("reason", "twins")];
    let sure = |member| [("member", member), ("campaign", CAMPAIGN), ("reason", "twins"), ("sure", "yes")];
    let asked = page(&act(&mut ana, here, &of("bob1@example.com")).await, 200, "Void this member?");
    holds(
        &asked,
        &[
            "bob1@example.com",
            "twins",
            "never will. This cannot be undone.",
            "its reward is reversed",
            "is deducted from what the referrer earns next. Nothing is collected.",
        ],
    );
    assert_eq!(voided(), 0, "asking voids nobody");
    let change = [&of("bob1@example.com")[..], &[("change", "yes")]].concat();
    let form = page(&act(&mut ana, here, &change).await, 200, "Who, where and why");
    holds(&form, &["value=\"bob1@example.com\"", "value=\"twins\""]);

    let never = "They no longer count in internet-sample, and never will.";
    let told = page(&act(&mut ana, here, &sure("bob1@example.com")).await, 200, never);
    holds(&told, &["Their group was not paid yet and is dissolved: its reward of $100 is reversed."]);
    let before = "They were voided in internet-sample before; nothing was changed.";
    page(&act(&mut ana, here, &sure(" BOB1@example.com ")).await, 200, before);
    assert_eq!(voided(), 1);
    // Ana herself, by her account: nobody referred her. And somebody whom nobody knows.
    let told = page(&act(&mut ana, here, &sure(ANA)).await, 400, "No member was voided: nobody is credited for them");
    assert!(!told.contains("ana@example.com"), "{told}");
    page(&act(&mut ana, here, &sure("kim@example.com")).await, 400, "No member was voided: nobody has that address.");
    // What is being paid is deducted, and the row of the file is named; word for word as the command prints it.
    done(&server, &["rewards", "batch", "new", "payouts.csv"]);
    let told = page(&act(&mut ana, here, &sure("ana1@example.com")).await, 200, never);
    let row =
        format!("Its payout {ANA}-1-1 is in batch 1 and not settled. If the file was not handed over yet, delete");
    holds(&told, &["its reward of $100 is deducted from what the referrer earns next. Nothing is collected.", &row]);
    let said = done(&server, &["rewards", "void", "ana6@example.com", "--campaign", CAMPAIGN, "--reason", "twins"]);
    assert!(said.lines().all(|line| told.contains(line)), "{said}\n{told}");
    // Somebody who was erased is known by their address still; their group is dissolved, so no referrer's account is named.
    done(&server, &["members", "erase", "ana7@example.com"]);
    page(&act(&mut ana, here, &sure("ana7@example.com")).await, 200, never);
    let acts = audit(&server);
    let acts: Vec<_> =
        acts.iter().filter(|(who, command, _)| who == "ana (page)" && command == "rewards void").collect();
    let about: Vec<_> = acts.iter().map(|(.., about)| about.as_str()).collect();
    let of_account = |account| format!("account {account} in {CAMPAIGN}");
    assert_eq!(about, [of_account(BOB), of_account(ANA), CAMPAIGN.to_owned()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_review_shows_what_the_command_prints_some_referrers_at_a_time() {
    let server = union_with_groups().await;
    let mut ana = signed_in(&server, "ana", 1).await;
    let here = "/operator/rewards/review";
    holds(&page(&ana.get(HERE).await, 200, "Rewards"), &["href=\"/operator/rewards/review\""]);
    listed(&server);
    server.execute("UPDATE people SET email = 'bob1@mailinator.com' WHERE email = 'bob1@example.com'");
    for (person, by) in [("ana", "bob5"), ("bob", "ana5")] {
        server.execute(&format!(
            "UPDATE people SET referrer_id = (SELECT id FROM people WHERE email = '{by}@example.com') WHERE email = '{person}@example.com'"
        ));
    }
    done(&server, &["members", "erase", "ana6@example.com"]);
    listed(&server);
    let reviews =
        || audit(&server).into_iter().filter(|(_, command, _)| command == "rewards review").collect::<Vec<_>>();
    let shown = page(&ana.get(here).await, 200, "Review");
    assert_eq!(reviews(), [("ana (page)".to_owned(), "rewards review".to_owned(), "2 referrers".to_owned())]);
    let said = done(&server, &["rewards", "review"]);
    for line in said.lines().filter(|line| !line.starts_with("    ")) {
        assert!(shown.contains(line.trim()), "{line} in {shown}");
    }
    holds(&said, &["burst: ", "disposable: ", "ring: "]);
    for row in said.lines().filter(|line| line.starts_with("    ") && line.contains('@')) {
        assert!(row.split_whitespace().all(|cell| cell == "-" || shown.contains(cell)), "{row} in {shown}");
    }
    // A button of each row leads to the form, filled in; no address of a page has theirs.
    holds(
        &shown,
        &[
            "name=\"member\" value=\"bob1@mailinator.com\"><input type=\"hidden\" name=\"campaign\" value=\"internet-sample\">",
        ],
    );
    assert!(shown.split("href=\"").skip(1).all(|link| !link.split('"').next().unwrap().contains('@')), "{shown}");
    let fill = [("fill", "yes"), ("member", "bob1@mailinator.com"), ("campaign", CAMPAIGN)];
    let form = page(&act(&mut ana, "/operator/rewards/void", &fill).await, 200, "Who, where and why");
    holds(&form, &["value=\"bob1@mailinator.com\"", "value=\"internet-sample\" selected"]);

    // More referrers than a page has: everybody who is there, and four more. The rings lead through two of them.
    let key = server.run(&["keys", "issue", "Fourth"]);
    for n in 1..=4 {
        join(&server, &key, &format!("eve{n}"), "").await;
    }
    server.execute(
        "INSERT INTO reward_groups (referrer_id, campaign_id, state, formed_at)
         SELECT id, 1, 'accrued', 1 FROM people WHERE account IS NULL",
    );
    let first = page(&ana.get(here).await, 200, "of 20 referrers, none of them paid yet: 4 referrers shown.");
    let next = first.split("href=\"/operator/rewards/review?after=").nth(1).unwrap().split('"').next().unwrap();
    let second = page(
        &ana.get(&format!("{here}?after={next}")).await,
        200,
        "of 3 referrers, none of them paid yet: nothing to report.",
    );
    assert!(!second.contains("?after="), "{second}");
    assert_eq!(reviews().iter().filter(|(who, ..)| who == "ana (page)").count(), 2, "the last page has no address");
    page(&ana.get(&format!("{here}?after=9223372036854775807")).await, 200, "No group is waiting to be paid.");
    for odd in ["x", "-5", "99999999999999999999", "%00"] {
        page(&ana.get(&format!("{here}?after={odd}")).await, 200, "of 20 referrers");
    }
    page(&Browser::new(&server, 2).get(here).await, 403, "Sign in");
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_listed_some_at_a_time() {
    let server = union_with_groups().await;
    let mut ana = signed_in(&server, "ana", 1).await;
    let here = "/operator/rewards/accounts";
    page(&ana.get(here).await, 200, "There are no accounts here.");
    let lists =
        || audit(&server).into_iter().filter(|(who, command, _)| who == "ana (page)" && command == "rewards list");
    assert_eq!(lists().count(), 0, "no address was shown");
    let (_, accounts) = listed(&server);
    let shown = page(&ana.get(here).await, 200, "Accounts");
    for (email, row) in &accounts {
        let due = unionhall::domain::figure::money(row["dueCents"].as_i64().unwrap());
        let (account, groups) = (row["account"].as_str().unwrap(), &row["groups"]);
        holds(
            &shown,
            &[
                &format!(
                    "{email}</th><td data-label=\"Account\">{account}</td><td class=\"number\" data-label=\"Groups\">{groups}</td>"
                ),
                &format!("<td class=\"number\" data-label=\"Due\">{due}</td>"),
            ],
        );
    }
    assert!(!shown.contains("?after="), "{shown}");
    assert_eq!(lists().map(|(.., about)| about).collect::<Vec<_>>(), ["2 accounts"]);
    // More than a page has, of people who were erased.
    for n in 10..60 {
        server.execute(&format!(
            "INSERT INTO reward_ledger (account, campaign_id, kind, amount_cents, at, who, why)
             VALUES ('account{n}', 1, 'accrual', 100, 1794743200000, 'rules', 'a test')"
        ));
    }
    let first = page(&ana.get(here).await, 200, "erased</th>");
    assert_eq!(first.matches("data-label=\"Account\"").count(), 50);
    let next = first.split("href=\"/operator/rewards/accounts").nth(1).unwrap().split('"').next().unwrap();
    let second = page(&ana.get(&format!("{here}{next}")).await, 200, "account59");
    assert!(second.matches("data-label=\"Account\"").count() == 2 && !second.contains("?after="), "{second}");
    for odd in ["%00", &"x".repeat(5000), "%ff", "%27"] {
        page(&ana.get(&format!("{here}?after={odd}")).await, 200, "Accounts");
    }
    page(&Browser::new(&server, 2).get(here).await, 403, "Sign in");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_year_is_added_up_and_what_a_spreadsheet_would_run_is_named() {
    let server = union_with_groups().await;
    listed(&server);
    let mut ana = signed_in(&server, "ana", 1).await;
    let here = "/operator/rewards/tax";
    for odd in ["", "1999", "x", "2026; DROP", "99999"] {
        page(&act(&mut ana, here, &[("year", odd)]).await, 400, "write a year from 2000 to 9998");
    }
    page(&act(&mut ana, here, &[("year", "2026")]).await, 200, "Nobody was paid in 2026.");
    done(&server, &["rewards", "batch", "new", "payouts.csv"]);
    server.execute("UPDATE payouts SET state = 'paid', paid_at = 1794895200000");
    server.execute("UPDATE people SET email = '=bob@example.com' WHERE email = 'bob@example.com'");
    let shown = page(&act(&mut ana, here, &[("year", " 2026 ")]).await, 200, "Download what was paid in 2026?");
    let withheld = format!(
        "Of that withheld from the rows, because a spreadsheet would run the address as a formula: 1 account, $100 ({BOB})."
    );
    holds(&shown, &["In 2026: $300 paid to 2 accounts.", &withheld]);
    assert!(!shown.contains("=bob@") && !shown.contains("ana@example.com"), "{shown}");
    assert!(audit(&server).iter().all(|(_, command, _)| command != "rewards tax"), "asking shows no address");
    let answer = act(&mut ana, here, &[("year", "2026"), ("sure", "yes")]).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "text/csv; charset=utf-8"));
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"paid-2026.csv\"");
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.text(), done(&server, &["rewards", "tax", "--year", "2026"]));
    let page_row = ("ana (page)".to_owned(), "rewards tax".to_owned(), "2026".to_owned());
    assert_eq!(audit(&server).iter().filter(|row| **row == page_row).count(), 1);
}
