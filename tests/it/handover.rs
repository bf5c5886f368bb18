//! After yes: what stands above the button, the files for the supplier and its answer, and what pages and commands say of it.

use std::os::unix::fs::PermissionsExt;

use crate::campaign_commands::POSTAL;
use crate::operator_page::{act, asked_of, signed_in};
use crate::own_page::{Browser, join};
use crate::prelude::*;
use crate::reward_commands::{CAMPAIGN, accepting_catalog, done, refused, write};

const MEMBERS: u8 = 27;

/// A campaign with its offer published.
fn offered(server: &Server, handover: &str) {
    write(server, "campaign.toml", &server.run(&["campaigns", "sample"]));
    write(server, "bid.toml", &server.run(&["campaigns", "sample", "--bid"]));
    let offer = server.run(&["campaigns", "sample", "--offer"]);
    write(server, "offer.toml", &offer.replace("handover = \"code\"", &format!("handover = \"{handover}\"")));
    done(server, &["campaigns", "new", "campaign.toml"]);
    done(server, &["campaigns", "open", CAMPAIGN, POSTAL]);
    done(server, &["campaigns", "bid", CAMPAIGN, "bid.toml"]);
    done(server, &["campaigns", "offer", CAMPAIGN, "--bid", "1", "offer.toml"]);
}

fn file(server: &Server, name: &str) -> String {
    let path = server.data().with_file_name(name);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::read_to_string(path).unwrap()
}

fn reference_of(server: &Server, member: u8) -> String {
    let find = format!(
        "SELECT a.reference FROM acceptances a JOIN people p ON p.id = a.person_id WHERE p.email = 'm{member}@example.com'"
    );
    server.rows(&find)[0][0].to_uppercase()
}

/// What a page says, without its markup.
async fn said(browser: &mut Browser<'_>, path: &str) -> String {
    browser.get(path).await.text().replace("&#39;", "'").replace("&#x27;", "'")
}

async fn published(server: &Server) {
    wait_for!(async || server.get(&format!("/campaigns/{CAMPAIGN}")).await.text().contains("Offer published")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_deal_from_yes_to_its_result() {
    let (server, key) = Server::with_key(&["--key-per-minute", "1000", "--mail", "hold"]);
    offered(&server, "code");
    published(&server).await;
    let path = format!("/campaigns/{CAMPAIGN}");
    let mut members = Vec::new();
    for n in 1..=MEMBERS {
        let email = format!("m{n}@example.com");
        join(&server, &key, &email, None).await;
        let mut browser = Browser::member(&server, n, &email).await;
        if n == 1 {
            let page = said(&mut browser, &path).await;
            assert!(page.contains("Example Fiber gets the code, not your name or address"), "{page}");
            assert!(said(&mut browser, &format!("{path}?lang=es")).await.contains("no tu nombre ni tu dirección"));
            said(&mut browser, &format!("{path}?lang=en")).await;
            // Whoever was shown something else agreed to that.
            let (token, other) = (browser.token().await, "0".repeat(20));
            let fields = [("token", token.as_str()), ("press", "accept"), ("offer", &other), ("usState", "CA")];
            page_says(&browser.submit(&path, &fields).await, 200, "The offer has changed");
        }
        let pressed = browser.act(&path, &[("press", "accept"), ("usState", "CA")]).await;
        assert_eq!(pressed.header("location"), format!("{path}?done=accept"), "{pressed:?}");
        members.push(browser);
    }
    let code = reference_of(&server, 1);
    assert!(said(&mut members[0], &path).await.contains(&code), "the code is on the page");
    assert!(said(&mut members[0], "/me").await.contains(&code));
    assert_eq!(server.number("SELECT count(*) FROM outbox WHERE kind = 'receipt'"), i64::from(MEMBERS));
    let told = server.rows("SELECT DISTINCT n.text FROM acceptances a JOIN notices n ON n.hash = a.notice");
    assert!(told.len() == 1 && told[0][0].contains("You get a code to order with"), "{told:?}");
    let export: Value = serde_json::from_slice(&members[0].get("/me/export").await.body).unwrap();
    assert_eq!(export["campaigns"][0]["acceptances"][0]["reference"], *code, "{export}");

    // Handed over, once; and again on demand.
    let handed = done(&server, &["campaigns", "handover", CAMPAIGN, "one.csv"]);
    assert!(handed.contains("Batch 1 of") && handed.contains("27 accepted, 0 withdrawn"), "{handed}");
    let one = file(&server, "one.csv");
    let rows: Vec<_> = one.lines().skip(1).collect();
    assert_eq!((one.lines().next(), rows.len()), (Some("reference,status"), usize::from(MEMBERS)));
    assert!(rows.is_sorted() && rows.contains(&format!("{code},accepted").as_str()), "{one}");
    let again = done(&server, &["campaigns", "handover", CAMPAIGN, "two.csv"]);
    assert!(again.contains("Nobody accepted or withdrew since batch 1"), "{again}");
    done(&server, &["campaigns", "handover", CAMPAIGN, "again.csv", "--batch", "1"]);
    assert_eq!(file(&server, "again.csv"), one);
    let there = refused(&server, &["campaigns", "handover", CAMPAIGN, "one.csv"]);
    assert!(there.contains("already exists"), "{there}");
    assert!(refused(&server, &["campaigns", "handover", CAMPAIGN, "x.csv", "--batch", "7"]).contains("has no batch 7"));

    // One withdraws after that.
    let last = reference_of(&server, MEMBERS);
    let withdrawing = said(&mut members[26], &path).await;
    assert!(withdrawing.contains("if Example Fiber has it already, we tell them"), "{withdrawing}");
    members[26].act(&path, &[("press", "pass")]).await;
    done(&server, &["campaigns", "handover", CAMPAIGN, "two.csv"]);
    assert_eq!(file(&server, "two.csv"), format!("reference,status\n{last},withdrawn\n"));

    // What the supplier says.
    write(&server, "catalog.toml", &accepting_catalog());
    done(&server, &["campaigns", "activate", CAMPAIGN, "--catalog", "catalog.toml"]);
    let today = Clock::start().now().time.to_string()[..10].to_owned();
    let wrong =
        format!("reference,status,date\nABC,switched,{today}\n{code},swiched,2020-01-01\n{code},ordered,2020-01-01\n");
    write(&server, "wrong.csv", &wrong);
    let mistakes = refused(&server, &["campaigns", "handover", "settle", "wrong.csv"]);
    for part in ["nothing was recorded", "line 2: reference \"ABC\"", "line 3: status \"swiched\"", "line 4: reference"]
    {
        assert!(mistakes.contains(part), "{part} in {mistakes}");
    }
    let mut answer = "reference,status,date\n".to_owned();
    for n in 1..=14 {
        let status = match n {
            13 => "rejected",
            14 => "cancelled",
            _ => "switched",
        };
        answer += &format!("{},{status},{today}\n", reference_of(&server, n));
    }
    write(&server, "answer.csv", &answer);
    let settled = done(&server, &["campaigns", "handover", "settle", "answer.csv"]);
    assert!(settled.contains("Recorded: 14 lines."), "{settled}");
    let settled = done(&server, &["campaigns", "handover", "settle", "answer.csv"]);
    assert!(
        settled.contains("Recorded: 0 lines.") && settled.contains("outdone by a later date: 14 lines"),
        "{settled}"
    );
    for (member, words) in [
        (1, "says that your deal began on"),
        (13, "says that it turned down your order"),
        (14, "says that you canceled"),
    ] {
        let browser = &mut members[member - 1];
        assert!(said(browser, &path).await.contains(words) && said(browser, "/me").await.contains(words));
    }
    page_says(&members[0].act(&path, &[("press", "trouble")]).await, 303, "");
    assert!(said(&mut members[0], &path).await.contains("you told us that it didn't work"));
    page_says(&members[26].acted(&path, &[("press", "trouble")]).await, 200, "no order in this campaign");
    let shown = done(&server, &["campaigns", "show", CAMPAIGN]);
    for part in [
        "26 accepted", "Switched, says the supplier: 12", "Rejected, says the supplier: 1",
        "it didn't work, the member said",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }

    // And what came of it.
    let closed = done(&server, &["campaigns", "close", CAMPAIGN]);
    for part in ["At least 25 members accepted the offer", "At least 10 members have switched, Example Fiber says"] {
        assert!(closed.contains(part), "{part} in {closed}");
    }
    wait_for!(async || server.get(&path).await.text().contains("At least 10 members have switched")).await;
    let joining = server.get("/join").await.text();
    assert!(joining.contains("At least 10 members have switched"), "{joining}");
    let spanish = server.get(&format!("{path}?lang=es")).await.text();
    assert!(
        spanish.contains("Al menos 25 miembros aceptaron") && spanish.contains("Al menos 10 miembros se cambiaron"),
        "{spanish}"
    );
    let listed = server.get("/campaigns.json").await.good()["campaigns"][0]["result"].clone();
    assert_eq!((&listed["accepted"], &listed["switched"]), (&json!(25), &json!(10)), "{listed}");
}

#[track_caller]
fn page_says(answer: &Answer, status: u16, words: &str) {
    let text = answer.text().replace("&#39;", "'");
    assert!(answer.status == status && text.contains(words), "{status} {words}: {answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_go_only_where_members_agreed_to_that() {
    let (server, key) = Server::with_key(&["--key-per-minute", "1000", "--mail", "hold"]);
    offered(&server, "address");
    published(&server).await;
    let path = format!("/campaigns/{CAMPAIGN}");
    let mut people = Vec::new();
    for (n, email) in (1..).zip(["m1@example.com", "=m2@example.com", "m3@example.com", "m4@example.com"]) {
        join(&server, &key, email, None).await;
        people.push(Browser::member(&server, n, email).await);
    }
    let page = said(&mut people[0], &path).await;
    for part in
        ["We send your email address and state to Example Fiber", "Accept and send my email address", "pays the union"]
    {
        assert!(page.contains(part), "{part} in {page}");
    }
    for browser in &mut people {
        browser.act(&path, &[("press", "accept"), ("usState", "CA")]).await;
    }
    people[3].act("/me/erase", &[]).await;
    let output = server.try_run(&["campaigns", "handover", CAMPAIGN, "one.csv"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && told.contains("Withheld from the file, because a spreadsheet would run"),
        "{told}"
    );
    let withheld = server
        .rows("SELECT a.reference FROM acceptances a JOIN people p ON p.id = a.person_id WHERE p.email LIKE '=%'");
    let withheld = &withheld[0][0].to_uppercase();
    assert!(told.contains(withheld) && !told.contains('@'), "{told}");
    assert!(done(&server, &["members", "find", withheld]).contains("=m2@example.com"));
    let one = file(&server, "one.csv");
    assert!(one.starts_with("reference,status,email,state\n") && one.lines().count() == 3, "{one}");
    assert!(one.contains(&format!("{},accepted,m1@example.com,CA", reference_of(&server, 1))), "{one}");
    // Whoever is erased is a reference without a person.
    let third = reference_of(&server, 3);
    let days = |days: i64| Clock::start().now().time.minus(Duration::from_secs(86_400 * days.unsigned_abs()));
    server.execute(&format!("UPDATE acceptances SET made_at = {0}, accepted_at = {0}", days(10).as_millis()));
    people[2].act("/me/erase", &[]).await;
    done(&server, &["campaigns", "handover", CAMPAIGN, "two.csv"]);
    let two = file(&server, "two.csv");
    assert!(two.contains(&format!("{third},withdrawn")) && !two.contains('@'), "{two}");
    done(&server, &["campaigns", "handover", CAMPAIGN, "again.csv", "--batch", "1"]);
    assert!(!file(&server, "again.csv").contains("m3@"));
    // What the supplier says of a day before the erasure is taken.
    let date = &days(5).to_string()[..10];
    write(&server, "answer.csv", &format!("reference,status,date\n{third},switched,{date}\n"));
    assert!(done(&server, &["campaigns", "handover", "settle", "answer.csv"]).contains("Recorded: 1 line."));
    assert_eq!(
        server.rows(&format!("SELECT ended_why FROM acceptances WHERE reference = '{}'", third.to_lowercase())),
        [["erased"]]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_is_withdrawn_with_its_reason_and_improved() {
    let (server, key) = Server::with_key(&["--key-per-minute", "1000", "--mail", "hold"]);
    offered(&server, "code");
    published(&server).await;
    let path = format!("/campaigns/{CAMPAIGN}");
    join(&server, &key, "m1@example.com", None).await;
    let mut ana = Browser::member(&server, 1, "m1@example.com").await;
    ana.act(&path, &[("press", "accept"), ("usState", "CA")]).await;
    done(&server, &["campaigns", "handover", CAMPAIGN, "one.csv"]);
    let first = reference_of(&server, 1);

    // Cheaper in the same words: who accepted has accepted this one too.
    let bid = server.run(&["campaigns", "sample", "--bid"]);
    let cheaper = bid.replace("cents = 4800", "cents = 4700");
    assert_ne!(cheaper, bid);
    write(&server, "cheaper.toml", &cheaper);
    done(&server, &["campaigns", "bid", CAMPAIGN, "cheaper.toml"]);
    let improved = done(&server, &["campaigns", "offer", CAMPAIGN, "--bid", "2", "offer.toml"]);
    assert!(improved.contains("acceptances stand"), "{improved}");
    // Whoever was not mailed about the first is mailed about this one.
    let goes_on = "SELECT count(*) FROM campaign_mailings WHERE kind = 'campaign_offer' AND finished_at IS NULL";
    assert_eq!(server.number(goes_on), 1);
    wait_for!(async || said(&mut ana, &path).await.contains("$47")).await;
    assert!(said(&mut ana, &path).await.contains(&first));

    // Dearer again: asked anew.
    done(&server, &["campaigns", "bid", CAMPAIGN, "bid.toml"]);
    let worse = done(&server, &["campaigns", "offer", CAMPAIGN, "--bid", "3", "offer.toml"]);
    assert!(worse.contains("its price is higher in some month") && worse.contains("asked anew"), "{worse}");
    wait_for!(async || said(&mut ana, &path).await.contains("and with it your acceptance")).await;
    assert_eq!(server.rows("SELECT state FROM participations"), [["in"]]);
    ana.act(&path, &[("press", "accept")]).await;
    assert_eq!(reference_of(&server, 1), first, "the supplier was not told meanwhile");

    let reasons = ["--reason-en", "They cannot deliver.", "--reason-es", "No pueden entregar."];
    let withdrawn = done(&server, &[&["campaigns", "withdraw-offer", CAMPAIGN][..], &reasons].concat());
    assert!(
        withdrawn.contains("is withdrawn") && withdrawn.contains("mails those who are in or accepted"),
        "{withdrawn}"
    );
    wait_for!(async || said(&mut ana, &path).await.contains("They cannot deliver.")).await;
    assert!(said(&mut ana, &format!("{path}?lang=es")).await.contains("No pueden entregar."));
    said(&mut ana, &format!("{path}?lang=en")).await;
    done(&server, &["campaigns", "handover", CAMPAIGN, "two.csv"]);
    assert_eq!(file(&server, "two.csv"), format!("reference,status\n{first},withdrawn\n"));
    let twice = refused(&server, &[&["campaigns", "withdraw-offer", CAMPAIGN][..], &reasons].concat());
    assert!(twice.contains("only an offer that is published"), "{twice}");

    // Another offer, and another code.
    done(&server, &["campaigns", "offer", CAMPAIGN, "--bid", "3", "offer.toml"]);
    published(&server).await;
    ana.act(&path, &[("press", "accept")]).await;
    done(&server, &["campaigns", "handover", CAMPAIGN, "three.csv"]);
    let three = file(&server, "three.csv");
    assert!(three.lines().count() == 2 && !three.contains(&first), "{three}");
    let part = said(&mut ana, &path).await;
    assert!(part.contains("You accepted the offer.") && !part.contains("and with it your acceptance"), "{part}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deal_that_never_starts_is_taken_back_from_the_supplier() {
    let (server, key) = Server::with_key(&["--key-per-minute", "1000", "--mail", "hold"]);
    offered(&server, "address");
    published(&server).await;
    let path = format!("/campaigns/{CAMPAIGN}");
    join(&server, &key, "m1@example.com", None).await;
    let mut member = Browser::member(&server, 1, "m1@example.com").await;
    member.act(&path, &[("press", "accept"), ("usState", "CA")]).await;
    done(&server, &["campaigns", "handover", CAMPAIGN, "one.csv"]);
    let reference = reference_of(&server, 1);
    let cancelled = done(&server, &["campaigns", "cancel", CAMPAIGN]);
    assert!(cancelled.contains("acceptances end") && cancelled.contains("Tell the supplier"), "{cancelled}");
    wait_for!(async || said(&mut member, &path).await.contains("You were in this campaign.")).await;
    let page = said(&mut member, &path).await;
    assert!(page.contains("and with it your acceptance") && !page.contains("You accepted the offer."), "{page}");
    done(&server, &["campaigns", "handover", CAMPAIGN, "two.csv"]);
    assert_eq!(file(&server, "two.csv"), format!("reference,status\n{reference},withdrawn\n"));
    let again = done(&server, &["campaigns", "handover", CAMPAIGN, "again.csv", "--batch", "1"]);
    assert!(again.contains("No file was written."), "nobody's address is given out anymore: {again}");
}

/// A form that is sent with what it asks for, once somebody is sure of it.
async fn sure(browser: &mut Browser<'_>, path: &str, fields: &[(&str, &str)]) -> Answer {
    act(browser, path, &[fields, &[("sure", "yes")]].concat()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_names_what_its_file_lacks() {
    let (server, key) = Server::with_key(&["--key-per-minute", "1000", "--mail", "hold"]);
    offered(&server, "address");
    published(&server).await;
    let path = format!("/campaigns/{CAMPAIGN}");
    let mut people = Vec::new();
    for (n, email) in (1..).zip(["m1@example.com", "=m2@example.com", "m3@example.com"]) {
        join(&server, &key, email, None).await;
        people.push(Browser::member(&server, n, email).await);
    }
    let mut ana = signed_in(&server, "ana", 9).await;
    let here = format!("/operator/campaigns/{CAMPAIGN}/handover");
    page_says(&sure(&mut ana, &here, &[]).await, 400, "Nobody has accepted an offer that is handed over.");
    for browser in &mut people {
        browser.act(&path, &[("press", "accept"), ("usState", "CA")]).await;
    }
    // An address that is withheld is named before the file is handed out, so nobody is forgotten.
    let withheld = server
        .rows("SELECT a.reference FROM acceptances a JOIN people p ON p.id = a.person_id WHERE p.email LIKE '=%'");
    let withheld = &withheld[0][0].to_uppercase();
    let asked = sure(&mut ana, &here, &[]).await;
    page_says(&asked, 200, "2 accepted, 0 withdrawn");
    assert!(!asked.text().contains("This changed meanwhile"), "{asked:?}");
    page_says(&asked, 200, &format!("1 row ({withheld}). Tell the supplier by hand."));
    assert_eq!(server.number("SELECT count(*) FROM handover_batches WHERE written_at IS NOT NULL"), 0);
    // Whoever went away comes back to it.
    page_says(&act(&mut ana, &here, &[]).await, 200, "File 1 was made and never handed out. It comes first.");
    page_says(&sure(&mut ana, &here, &[]).await, 200, withheld);
    let csv = sure(&mut ana, &here, &[("batch", "1")]).await;
    assert_eq!(csv.header("content-disposition"), format!("attachment; filename=\"{CAMPAIGN}-1.csv\""));
    assert_eq!(csv.text().lines().count(), 3, "{csv:?}");
    assert!(csv.text().contains("m1@example.com,CA") && !csv.text().contains(withheld));
    page_says(&sure(&mut ana, &here, &[]).await, 400, "Nobody accepted or withdrew since file 1.");
    for number in ["0", "2", "x", "-1", "99999999999999999999"] {
        page_says(&act(&mut ana, &here, &[("batch", number)]).await, 400, "There is no file of that number");
    }
    // Once all of them are gone there is nothing to write again, here and there.
    for browser in &mut people {
        browser.act(&path, &[("press", "pass")]).await;
    }
    let gone = act(&mut ana, &here, &[("batch", "1")]).await;
    page_says(&gone, 200, "Nobody of file 1 can be in it now.");
    let said = done(&server, &["campaigns", "handover", CAMPAIGN, "none.csv", "--batch", "1"]);
    assert!(said.contains("No file was written.") && !said.contains("Give the file"), "{said}");
    assert!(!server.data().with_file_name("none.csv").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_person_makes_a_file_and_another_hands_it_over() {
    let (server, key) = Server::with_key(&["--key-per-minute", "1000", "--mail", "hold", "--two-people"]);
    offered(&server, "code");
    let (mut ana, mut ben) = (signed_in(&server, "ana", 9).await, signed_in(&server, "ben", 10).await);
    let publish = [("step", "offer"), ("draft", "1")];
    page_says(&sure(&mut ana, &format!("/operator/campaigns/{CAMPAIGN}"), &publish).await, 200, "is published");
    published(&server).await;
    join(&server, &key, "m1@example.com", None).await;
    let mut member = Browser::member(&server, 1, "m1@example.com").await;
    member.act(&format!("/campaigns/{CAMPAIGN}"), &[("press", "accept"), ("usState", "CA")]).await;
    let here = format!("/operator/campaigns/{CAMPAIGN}/handover");
    page_says(&act(&mut ana, &here, &[]).await, 200, "whoever makes it does not download its file");
    for _ in 0..2 {
        page_says(&sure(&mut ana, &here, &[]).await, 200, "Another operator has to download its file.");
    }
    assert_eq!(server.number("SELECT count(*) FROM handover_batches WHERE closed_at IS NOT NULL"), 0);
    let csv = sure(&mut ben, &here, &[]).await;
    assert!(csv.header("content-disposition").contains("-1.csv"), "{csv:?}");
    // The same of a command.
    member.act(&format!("/campaigns/{CAMPAIGN}"), &[("press", "pass")]).await;
    for _ in 0..2 {
        let said = done(&server, &["campaigns", "handover", CAMPAIGN, "two.csv"]);
        assert!(said.contains("is made, by you. No file was written: another person has to write it"), "{said}");
        assert!(!server.data().with_file_name("two.csv").exists());
    }
    let csv = sure(&mut ana, &here, &[]).await;
    assert!(csv.text().contains(",withdrawn"), "{csv:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_on_the_page_is_looked_through() {
    let (server, key) = Server::with_key(&["--key-per-minute", "1000", "--mail", "hold"]);
    offered(&server, "code");
    published(&server).await;
    join(&server, &key, "m1@example.com", None).await;
    let mut member = Browser::member(&server, 1, "m1@example.com").await;
    let path = format!("/campaigns/{CAMPAIGN}");
    member.act(&path, &[("press", "accept"), ("usState", "CA")]).await;
    let mut ana = signed_in(&server, "ana", 9).await;
    // However long a file of nonsense is, the page about it is not.
    let here = format!("/operator/campaigns/{CAMPAIGN}/settle");
    let nonsense = format!("reference,status,date\n{}", ",,\n".repeat(20_000));
    let told = act(&mut ana, &here, &[("answer", &nonsense)]).await;
    page_says(&told, 400, "because of more than 1,000 mistakes. These are 1,000 of them:");
    assert!(told.text().contains("line 2: reference") && told.body.len() < 200_000, "{}", told.body.len());
    write(&server, "nonsense.csv", &nonsense);
    let told = refused(&server, &["campaigns", "handover", "settle", "nonsense.csv"]);
    assert!(told.contains("has more than 1,000 mistakes; these are 1,000 of them:"), "{told}");
    assert!(told.lines().count() < 1010, "{told}");
    // Orders of another campaign are recorded there, and that is said.
    let other = server.run(&["campaigns", "sample"]).replace("internet-sample", "other");
    write(&server, "other.toml", &other);
    done(&server, &["campaigns", "new", "other.toml"]);
    let today = Clock::start().now().time.to_string()[..10].to_owned();
    let answer = format!("reference,status,date\n{},ordered,{today}\n", reference_of(&server, 1));
    let asked = act(&mut ana, "/operator/campaigns/other/settle", &[("answer", &answer)]).await;
    page_says(&asked, 200, "The answer has 1 line: 1 ordered.");
    page_says(&asked, 200, &format!("Of another campaign, {CAMPAIGN}: 1 line."));
    let asked = act(&mut ana, &here, &[("answer", &answer)]).await;
    assert!(!asked.text().contains("another campaign"), "{asked:?}");
    assert!(asked_of(&asked).is_some());
    page_says(&sure(&mut ana, &here, &[("answer", &answer)]).await, 200, "Recorded: 1 line.");
    // Who says that it did not work, where the supplier has said nothing.
    server.execute("UPDATE acceptances SET trouble_at = 1794743200000, status = NULL");
    let shown = done(&server, &["campaigns", "show", CAMPAIGN]);
    assert!(shown.contains(": the supplier says nothing yet; it didn't work, the member said at"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_is_improved_from_the_terms_that_it_has() {
    let (server, _) = Server::with_key(&["--mail", "hold"]);
    offered(&server, "address");
    let mut ana = signed_in(&server, "ana", 9).await;
    let form = ana.get(&format!("/operator/campaigns/{CAMPAIGN}/offer?bid=1")).await.text();
    for part in [
        "value=\"help@fiber.example\"", "value=\"address\" selected", "with your code.",
        "Contrata en el sitio web de Example Fiber",
    ] {
        assert!(form.contains(part), "{part} in {form}");
    }
}
