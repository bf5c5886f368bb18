//! What the operator's page does with rewards as the commands do: an answer as a file.

use crate::operator_page::{act, asked_of, audit, signed_in};
use crate::prelude::*;
use crate::reward_commands::{listed, union_with_groups};

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
