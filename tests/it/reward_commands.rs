//! Rewards as the operator runs them: looking, voiding, paying, settling, and the page `docs/rewards.md`, whose commands are run as they
//! stand there.

use crate::operator::{answer, steady, transcripts};
use crate::prelude::*;

const PAGE: &str = include_str!("../../docs/rewards.md");

pub(crate) const CAMPAIGN: &str = "internet-sample";

pub(crate) const ANA: &str = "3f7k9m2q4r6t8v0w";
pub(crate) const BOB: &str = "9m2q4r6t8v0w3f7k";

pub(crate) fn days_ago(days: i64) -> i64 {
    Clock::start().now().time.as_millis() - days * 86_400_000
}

fn run(server: &Server, arguments: &[&str]) -> (i32, String, String) {
    let output = server.try_run(arguments);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[track_caller]
pub(crate) fn refused(server: &Server, arguments: &[&str]) -> String {
    let (code, said, told) = run(server, arguments);
    assert_eq!((code, said.as_str()), (1, ""), "{arguments:?}: {told}");
    told.trim().trim_start_matches("unionhall: ").to_owned()
}

#[track_caller]
pub(crate) fn done(server: &Server, arguments: &[&str]) -> String {
    let (code, said, told) = run(server, arguments);
    assert_eq!(code, 0, "{arguments:?}: {told}");
    said
}

pub(crate) fn write(server: &Server, name: &str, text: &str) {
    std::fs::write(server.data().with_file_name(name), text).unwrap();
}

fn read(server: &Server, name: &str) -> String {
    std::fs::read_to_string(server.data().with_file_name(name)).unwrap()
}

/// The totals of `rewards list`, and its accounts by their address.
pub(crate) fn listed(server: &Server) -> (Value, HashMap<String, Value>) {
    let lines = done(server, &["rewards", "list", "--json"]);
    let mut rows = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let totals = rows.next().unwrap()["totals"].clone();
    let rows = rows.filter(|row| row["account"].is_string());
    (totals, rows.map(|row| (row["email"].as_str().unwrap_or("erased").to_owned(), row)).collect())
}

/// Somebody joins through a partner, perhaps by a link; their code.
pub(crate) async fn join(server: &Server, key: &str, name: &str, code: &str) -> String {
    let person = json!({ "email": format!("{name}@example.com"), "refCode": code });
    let invited = server.post("/v1/invite", key, person.to_string()).await.good();
    let id = server.number("SELECT max(id) FROM sign_ups");
    assert_eq!(server.confirm(id).await.status, 200);
    invited["inviteLink"].as_str().unwrap().rsplit_once("joinus").unwrap().1.to_owned()
}

/// Ana with twelve friends, the last of whom is on hold, and Bob with five; their campaign is active since 40 days. The first three
/// of Ana's joined within minutes, everybody else an hour and more apart.
pub(crate) async fn union_with_groups() -> Server {
    fill(Server::start_with(FLAGS)).await
}

pub(crate) const FLAGS: &[&str] = &["--key-per-minute", "1000", "--mail", "hold"];

/// The sample catalog, where whoever accepts an offer counts.
pub(crate) fn accepting_catalog() -> String {
    let sample = include_str!("../../catalog.sample.toml");
    let accepting = sample.replace("counts_on = \"switched\"", "counts_on = \"accepted\"");
    assert_ne!(accepting, sample);
    accepting
}

/// The same on an empty server, started with [`FLAGS`].
pub(crate) async fn fill(server: Server) -> Server {
    let keys = ["Acme", "Zenith", "Harbor"].map(|partner| server.run(&["keys", "issue", partner]));
    let ana = join(&server, &keys[0], "ana", "").await;
    let bob = join(&server, &keys[1], "bob", "").await;
    for n in 1..=12 {
        let by = usize::from(![1, 2, 3, 6, 8].contains(&n));
        join(&server, &keys[by], &format!("ana{n}"), &ana).await;
    }
    for n in 1..=5 {
        join(&server, &keys[n % 3], &format!("bob{n}"), &bob).await;
    }
    let offer = server.run(&["campaigns", "sample", "--offer"]);
    let file = server.run(&["campaigns", "sample"]);
    write(&server, "campaign.toml", &file);
    write(&server, "bid.toml", &server.run(&["campaigns", "sample", "--bid"]));
    write(&server, "offer.toml", &offer);
    done(&server, &["campaigns", "new", "campaign.toml"]);
    done(&server, &["campaigns", "open", CAMPAIGN, "--postal-address=12 Mill Street, Springfield, IL 62701"]);
    done(&server, &["campaigns", "bid", CAMPAIGN, "bid.toml"]);
    done(&server, &["campaigns", "offer", CAMPAIGN, "--bid", "1", "offer.toml"]);
    let (now, begun, joined) = (days_ago(0), days_ago(40), days_ago(60));
    server.execute(&format!(
        "INSERT INTO participations (campaign_id, person_id, state, accepted_at, changed_at)
         SELECT c.id, p.id, 'accepted', CASE p.email WHEN 'ana12@example.com' THEN {now} ELSE {begun} + p.id * 7200000 END, {begun}
         FROM campaigns c, people p WHERE p.referrer_id IS NOT NULL"
    ));
    let minutes = "CASE WHEN id BETWEEN 3 AND 5 THEN id * 5 ELSE id * 240 END";
    server.execute(&format!(
        "UPDATE people SET joined_at = {joined} + 60000 * ({minutes}),
            account = CASE email WHEN 'ana@example.com' THEN '{ANA}' WHEN 'bob@example.com' THEN '{BOB}' END"
    ));
    server.execute(
        "UPDATE sign_ups SET decided_at = (SELECT joined_at FROM people WHERE people.id = sign_ups.person_id)",
    );
    write(&server, "catalog.toml", &accepting_catalog());
    let said = done(&server, &["campaigns", "activate", CAMPAIGN, "--catalog", "catalog.toml"]);
    assert!(
        said.contains(
            "Referral terms, copied for good: $100 for each group of 5, once each took part for 30 days; at most 10 groups a person, \
             over all campaigns.\nThese terms are the sample catalog's, and made up."
        ),
        "{said}"
    );
    let again = refused(&server, &["campaigns", "activate", CAMPAIGN]);
    assert_eq!(again, "internet-sample: the campaign is active already");
    server.execute(&format!("UPDATE campaigns SET active_at = {begun}"));
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_page_answers_as_it_says() {
    let server = union_with_groups().await;
    write(
        &server,
        "answer.csv",
        &format!(
            "external_id,status,reference,paid_at,reason\n{ANA}-1-1,paid,tx-1029,2026-11-18,\n\
             {BOB}-1-1,failed,,,no account at this address\n"
        ),
    );
    write(
        &server,
        "wrong.csv",
        &format!(
            "external_id,status,reference,paid_at,reason\n{BOB}-1-1,paid,,2026-11-18,\n{BOB}-1-9,failed,,,\n\
             {ANA}-1-1,paid,,2026-11-18,\n"
        ),
    );
    let mut wrong = String::new();
    for (command, expected) in transcripts(PAGE) {
        // The page's batch is of its day, whenever this runs.
        server.execute("UPDATE payout_batches SET created_at = 1794895200000");
        let answered = answer(&server, &command);
        if steady(&answered) != steady(&expected) {
            wrong.push_str(&format!("$ {command}\n{answered}\n--- the page says\n{expected}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let audit = server.rows("SELECT command, about FROM audit WHERE command LIKE 'rewards %' ORDER BY id");
    let expected = [
        ["rewards list", "2 accounts"],
        ["rewards review", "1 referrer"],
        ["rewards void", &format!("account {ANA} in {CAMPAIGN}")],
        ["rewards batch new", "batch 1 begun"],
        ["rewards batch new", "batch 1, 2 payouts, $300"],
        ["rewards batch settle", "1 paid, 1 failed"],
        ["rewards tax", "2026"],
    ];
    assert_eq!(audit, expected);
    // What failed goes out under another id, and then Bob can be erased.
    done(&server, &["rewards", "batch", "new", "second.csv"]);
    let list = done(&server, &["rewards", "list"]);
    let open: Vec<_> = list.lines().rev().take(2).map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!(open[1].join(" "), "BATCH MADE FILE PAYOUTS AMOUNT");
    assert_eq!((open[0][0], &open[0][2..]), ("2", &["written", "1", "$100"][..]), "batch 1 is settled");
    let json = done(&server, &["rewards", "list", "--json"]);
    assert!(json.ends_with("\"isWritten\":true,\"out\":1,\"outCents\":10000}\n"), "{json}");
    assert_eq!(
        read(&server, "second.csv").lines().nth(1),
        Some(&*format!("{BOB}-1-2,bob@example.com,10000,USD,{CAMPAIGN},1"))
    );
    let (totals, accounts) = listed(&server);
    assert_eq!(
        (&totals["dueCents"], &totals["outCents"], &totals["paidCents"]),
        (&json!(0), &json!(10_000), &json!(20_000))
    );
    assert_eq!(accounts["ana@example.com"]["earnedCents"], 20_000, "voided, and made up for by who waited");
    let ana = done(&server, &["members", "show", "ana@example.com"]);
    assert!(
        ana.contains("\nRewards\n  internet-sample: 2 groups rewarded, 0 capped, 0 waiting for a full group, 1 on hold (the first until "),
        "{ana}"
    );
    assert!(ana.contains("\n  due $0, being paid $0, paid $200\n"), "{ana}");
    let campaign = done(&server, &["campaigns", "show", CAMPAIGN]);
    assert!(
        campaign.contains(
            "\n  3 groups rewarded, 0 capped, 1 dissolved\n  earned $400, reversed $100, paid or being paid $300\n"
        ),
        "{campaign}"
    );
    let campaign = server.json(&["campaigns", "show", CAMPAIGN, "--json"]);
    let rewards = &campaign["rewards"];
    assert_eq!(
        rewards["terms"],
        json!({ "rewardCents": 10_000, "groupSize": 5, "maxGroups": 10, "holdDays": 30, "countsOn": "accepted" })
    );
    assert_eq!((&rewards["groups"], &rewards["paidOutCents"]), (&json!(3), &json!(30_000)));
    // Ana gives up what failed.
    write(&server, "back.csv", &format!("external_id,status,reference,paid_at,reason\n{ANA}-1-1,failed,,,came back\n"));
    done(&server, &["rewards", "batch", "settle", "back.csv"]);
    let told = done(&server, &["members", "erase", "ana@example.com", "--waive-rewards"]);
    assert!(told.contains("\nGiven up: $200 of rewards.\n"), "{told}");
    holds(&done(&server, &["audit", "--about", "account"]), &["members erase --waive-rewards account "]);
    let told = done(&server, &["members", "erase", "bob@example.com"]);
    assert!(told.contains(&format!("\nBeing paid: $100 as {BOB}-1-2 in batch 2.\nIt is paid if ")), "{told}");
    assert_eq!(listed(&server).0["outCents"], 10_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_written_whole_and_over_nothing_else() {
    let server = union_with_groups().await;
    let new = |file: &str| ["rewards", "batch", "new", file].map(str::to_owned);
    let batch = |file: &str| done(&server, &new(file).each_ref().map(String::as_str));
    let not = |file: &str| refused(&server, &new(file).each_ref().map(String::as_str));
    // Nobody can write there: nothing is put into a batch.
    assert!(not("away/payouts.csv").starts_with("cannot write away/payouts.csv; "), "no such folder");
    write(&server, "notes.txt", "mine\n");
    assert_eq!(not("notes.txt"), "notes.txt already exists and is not the file of a batch; give another name");
    assert_eq!((read(&server, "notes.txt").as_str(), listed(&server).0["outCents"].clone()), ("mine\n", json!(0)));
    // Begun, and killed before its file was there.
    server.execute("INSERT INTO payout_batches (created_at, who) VALUES (1794895200000, 'op')");
    let unfinished = refused(&server, &["rewards", "batch", "new", "a.csv", "--batch", "1"]);
    assert!(
        unfinished.starts_with("batch 1 may not be complete yet, because its file was never written; "),
        "{unfinished}"
    );
    write(&server, "a.csv.part-4711-payouts", "");
    let said = batch("a.csv");
    assert!(
        said.starts_with("Batch 1, begun at 2026-11-17T06:00:00Z by another run, is in a.csv now: 2 payouts, $300.\n"),
        "{said}"
    );
    let mode = std::fs::metadata(server.data().with_file_name("a.csv")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let first = read(&server, "a.csv");
    // The same again, over itself and beside it.
    for file in ["a.csv", "b.csv"] {
        let said = batch(file);
        assert!(said.starts_with("Nothing new is due. What is not settled of batch 1 is in "), "{said}");
        assert_eq!(read(&server, file), first);
    }
    assert_eq!(server.number("SELECT count(*) FROM payouts"), 2, "nobody is in two");
    // Only what is not settled; another batch never goes over it.
    write(&server, "answer.csv", &format!("external_id,status,reference,paid_at,reason\n{BOB}-1-1,failed,,,x\n"));
    done(&server, &["rewards", "batch", "settle", "answer.csv"]);
    let other = not("a.csv");
    assert_eq!(other, "a.csv holds another batch and is not overwritten; give another name to write a new batch");
    std::os::unix::fs::symlink("nowhere", server.data().with_file_name("link.csv")).unwrap();
    assert_eq!(not("link.csv"), "link.csv is a link to a file that is not there; give another name");
    let begun = server.number("SELECT count(*) FROM payout_batches");
    assert_eq!((begun, &listed(&server).0["dueCents"]), (1, &json!(10_000)), "refused before anything is taken");
    // Begun, and killed before its file was there.
    server.execute("INSERT INTO payout_batches (created_at, who) VALUES (1794895200000, 'op')");
    let other = not("a.csv");
    assert_eq!(other, "a.csv holds another batch and is not overwritten; give another name to write batch 2");
    assert_eq!((read(&server, "a.csv"), &listed(&server).0["dueCents"]), (first, &json!(10_000)));
    let said = batch("c.csv");
    assert!(said.starts_with("Batch 2, begun at "), "{said}");
    assert!(said.contains(" is in c.csv now: 1 payout, $100.\n"), "{said}");
    assert!(not("a.csv").ends_with("; give another name to write batch 2"), "nothing new is due");
    let said = done(&server, &["rewards", "batch", "new", "a.csv", "--batch", "1"]);
    assert!(said.starts_with("What is not settled of batch 1 is in a.csv again: 1 payout, $200.\n"), "{said}");
    assert!(!read(&server, "a.csv").contains(BOB), "a provider that keeps no ids pays nobody twice");
    assert_eq!(
        refused(&server, &["rewards", "batch", "new", "d.csv", "--batch", "7"]),
        "there is no batch 7; the last one is 2"
    );
    // An erased member has no address to be paid at.
    done(&server, &["members", "erase", "ana@example.com"]);
    let said = done(&server, &["rewards", "batch", "new", "d.csv", "--batch", "1"]);
    assert!(said.starts_with("No payout of batch 1 is left to be paid. No file was written.\n"), "{said}");
    assert!(said.contains(&format!("Left out, because the member was erased: {ANA}-1-1.")), "{said}");
    let answer = format!(
        "external_id,status,reference,paid_at,reason\n{BOB}-1-2,paid,,2026-11-18,\n{ANA}-1-1,failed,,,erased\n"
    );
    write(&server, "answer.csv", &answer);
    done(&server, &["rewards", "batch", "settle", "answer.csv"]);
    assert_eq!(batch("d.csv"), "Nothing is left to pay, and no payout waits to be settled. No file was written.\n");
    assert!(!server.data().with_file_name("d.csv").exists());
    let (totals, accounts) = listed(&server);
    assert_eq!((&totals["dueToErasedCents"], &accounts["erased"]["dueCents"]), (&json!(20_000), &json!(20_000)));
    let told = done(&server, &["rewards", "list"]);
    assert!(told.contains("$200, of that $200 to accounts that were erased, which no batch pays\n"), "{told}");
    let left: Vec<_> = std::fs::read_dir(server.data().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains(".part-"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_providers_answer_is_booked_once_or_not_at_all() {
    let server = union_with_groups().await;
    done(&server, &["rewards", "batch", "new", "payouts.csv"]);
    let settle = |text: &str| {
        write(&server, "answer.csv", text);
        run(&server, &["rewards", "batch", "settle", "answer.csv"])
    };
    // Made at 2025-12-30T06:00:00Z.
    server.execute("UPDATE payout_batches SET created_at = 1767074400000");
    let header = "external_id,status,reference,paid_at,reason";
    let (code, _, told) =
        settle(&format!("{header}\n{ANA}-1-1,payed,,,\n\nnobody-1-1,paid,,2026-01-01,\n{BOB}-1-1,paid,,soon,\n"));
    assert_eq!(code, 1);
    let expected = [
        "unionhall: nothing was recorded: answer.csv has 3 mistakes:",
        "  line 2: status \"payed\"; ",
        "  line 4: external_id nobody-1-1: no payout has it; ",
        "  line 5: paid_at \"soon\"; ",
    ];
    let told: Vec<_> = told.lines().collect();
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for (line, beginning) in told.iter().zip(expected) {
        assert!(line.starts_with(beginning), "{line}");
    }
    // A day that cannot be, and an amount that is not the payout's.
    let bad = |rest: &str| settle(&format!("external_id,status,paid_at,amount_cents\n{BOB}-1-1,paid,{rest}\n")).2;
    assert!(
        bad("2025-12-28,").contains("paid_at 2025-12-28T12:00:00Z is before batch 1 was made, 2025-12-30T06:00:00Z; ")
    );
    assert!(
        bad("2925-12-31,10000").contains("paid_at 2925-12-31T12:00:00Z is later than tomorrow; write when it was paid")
    );
    assert!(bad("2025-12-31,9900").contains("the file says $99, but the payout is $100; clear the difference"));
    assert_eq!(server.number("SELECT count(*) FROM payouts WHERE state <> 'out'"), 0);
    std::fs::write(server.data().with_file_name("wide.csv"), b"\xff\xfee\0").unwrap();
    let wide = refused(&server, &["rewards", "batch", "settle", "wide.csv"]);
    assert!(wide.starts_with("wide.csv is text in UTF-16; save it in UTF-8"), "{wide}");

    let good = format!("{header}\n{ANA}-1-1,paid,,2025-12-31,\n{BOB}-1-1,paid,tx-1,2026-01-01,\n");
    let said = "answer.csv has 2 payouts: 2 paid, 0 failed.\n";
    assert_eq!(settle(&good).1, format!("{said}Recorded now: 2. Recorded before: 0.\n"));
    assert_eq!(settle(&good).1, format!("{said}Recorded now: 0. Recorded before: 2.\n"));
    let other = settle(&good.replace("tx-1", "tx-2").replace("2025-12-31", "2026-01-02")).1;
    let differing = format!(
        "Recorded before in other words, and left as it was:\n  line 2: external_id {ANA}-1-1: recorded with paid_at 2025-12-31T12:00:00Z, not \
         2026-01-02T12:00:00Z\n  line 3: external_id {BOB}-1-1: recorded with reference \"tx-1\", not \"tx-2\"\n"
    );
    assert!(other.ends_with(&differing), "{other}");
    assert_eq!(server.number("SELECT count(*) FROM audit WHERE command = 'rewards batch settle'"), 1);
    let year = |year: &str| run(&server, &["rewards", "tax", "--year", year]);
    let (_, rows, total) = year("2026");
    assert_eq!(rows, format!("account,email,paid_cents,currency\n{BOB},bob@example.com,10000,USD\n"));
    assert_eq!(
        (total.as_str(), year("2027").2.as_str()),
        ("2026: $100 paid to 1 account.\n", "2027: $0 paid to 0 accounts.\n")
    );
    for wrong in ["27", "abc", "-1"] {
        let (code, _, told) = year(wrong);
        assert!(code == 2 && told.contains("write a year from 2000 to 9998, such as 2027"), "{told}");
    }
    for wrong in ["x", "-1"] {
        let (code, _, told) = run(&server, &["rewards", "batch", "new", "x.csv", "--batch", wrong]);
        assert!(code == 2 && told.contains("write a batch's number, such as 3; "), "{told}");
    }
    // The money came back, and goes out again.
    let back = format!("{header}\n{BOB}-1-1,failed,,,came back\n");
    let said = settle(&back).1;
    assert!(
        said.ends_with(&format!(
            "Recorded now: 1. Recorded before: 0.\nOne of them was recorded as paid before: {BOB}-1-1.\n\
             1 failed and is due again, or what is left of it: the next batch has it under another external_id.\n"
        )),
        "{said}"
    );
    assert!(settle(&back).1.ends_with("Recorded now: 0. Recorded before: 1.\n"), "nothing more is due by it");
    assert_eq!(year("2026").2, "2026: $0 paid to 0 accounts.\n");
    assert_eq!(listed(&server).1["bob@example.com"]["dueCents"], 10_000);
    done(&server, &["rewards", "batch", "new", "second.csv"]);
    write(&server, "again.csv", &format!("external_id,status,paid_at\n{BOB}-1-2,paid,2026-01-01\n"));
    let arguments = ["rewards", "batch", "settle", "again.csv", "--paid-earlier"];
    assert!(refused(&server, &arguments[..4]).ends_with("give --paid-earlier if it was paid from another file"));
    done(&server, &arguments);
}

/// Bob was paid too much, and what he earns next makes up for just that.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_netted_in_full_is_in_no_file() {
    let server = union_with_groups().await;
    done(&server, &["rewards", "batch", "new", "payouts.csv"]);
    let paid = format!("external_id,status,paid_at\n{ANA}-1-1,paid,2026-11-18\n{BOB}-1-1,paid,2026-11-18\n");
    write(&server, "answer.csv", &paid);
    server.execute("UPDATE payout_batches SET created_at = 1794895200000");
    done(&server, &["rewards", "batch", "settle", "answer.csv"]);
    done(&server, &["rewards", "void", "bob1@example.com", "--campaign", CAMPAIGN, "--reason", "twins"]);
    assert_eq!(listed(&server).1["bob@example.com"]["dueCents"], -10_000);
    let key = server.run(&["keys", "issue", "Fourth"]);
    let code = &server.rows("SELECT code FROM people WHERE email = 'bob@example.com'")[0][0];
    join(&server, &key, "bob6", code).await;
    server.execute(&format!(
        "INSERT INTO participations (campaign_id, person_id, state, accepted_at, changed_at)
         SELECT 1, id, 'accepted', {begun}, {begun} FROM people WHERE email = 'bob6@example.com'",
        begun = days_ago(40)
    ));
    server.execute(&format!("UPDATE people SET joined_at = {} WHERE email = 'bob6@example.com'", days_ago(50)));
    let (totals, accounts) = listed(&server);
    let bob = &accounts["bob@example.com"];
    assert_eq!((&bob["groups"], &bob["dueCents"], &totals["dueCents"]), (&json!(1), &json!(0), &json!(0)));
    let said = done(&server, &["rewards", "batch", "new", "second.csv"]);
    assert_eq!(said, "Nothing is left to pay, and no payout waits to be settled. No file was written.\n");
    assert!(!server.data().with_file_name("second.csv").exists());
    assert_eq!(server.number("SELECT count(*) FROM payouts"), 2);
    assert_eq!(listed(&server).1["bob@example.com"]["dueCents"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_void_says_what_it_meant() {
    let server = union_with_groups().await;
    let void = |address: &str| {
        let arguments = ["rewards", "void", address, "--campaign", CAMPAIGN, "--reason", "twins"];
        run(&server, &arguments)
    };
    assert_eq!(
        void("kim@example.com").2,
        "unionhall: nobody has that address; `unionhall members find` looks for its beginning\n"
    );
    assert!(void("bob@example.com").2.starts_with("unionhall: nobody is credited for them, "));
    let shown =
        refused(&server, &["rewards", "void", "ana1@example.com", "--campaign", "internet-sampel", "--reason", "x"]);
    assert!(shown.contains("there is no campaign internet-sampel; did you mean internet-sample?"), "{shown}");
    let arguments =
        ["rewards", "void", "ana1@example.com", "--campaign", CAMPAIGN, "--reason", "same as kim@x.example"];
    let (code, _, told) = run(&server, &arguments);
    assert!(code == 2 && told.contains("write it without an @: it stays in the ledger forever"), "{told}");

    server.execute(
        "INSERT INTO campaigns (slug, definition, state, gather_until, created_at)
         SELECT 'other', replace(definition, 'internet-sample', 'other'), 'draft', gather_until, 0 FROM campaigns",
    );
    let told = refused(&server, &["rewards", "void", "ana12@example.com", "--campaign", "other", "--reason", "x"]);
    assert!(
        told.contains("they never took part in other, so they count for nobody there; nothing was changed"),
        "{told}"
    );

    let never = "They no longer count in internet-sample, and never will.\n";
    let nothing = format!("{never}They were in no group, so their referrer loses nothing.\n");
    assert_eq!(void("ana12@example.com").1, nothing, "on hold");
    assert_eq!(void("ana12@example.com").1, "They were voided in internet-sample before; nothing was changed.\n");
    assert_eq!(void("ana11@example.com").1, nothing, "waiting");
    done(&server, &["rewards", "batch", "new", "payouts.csv"]);
    let paid = void("bob1@example.com").1;
    assert!(
        paid.contains("its reward of $100 is deducted from what the referrer earns next. Nothing is collected."),
        "{paid}"
    );
    let row = format!(
        "\nIts payout {BOB}-1-1 is in batch 1 and not settled. If the file was not handed over yet, delete that row "
    );
    assert!(paid.contains(&row), "{paid}");
    let (totals, accounts) = listed(&server);
    assert_eq!((&totals["negativeAccounts"], &totals["negativeCents"]), (&json!(1), &json!(-10_000)));
    assert_eq!(accounts["bob@example.com"]["dueCents"], -10_000);
    let told = done(&server, &["rewards", "list"]);
    assert!(told.contains("Negative    1 account: $100 more was paid, or is being paid, than was earned; it is deducted from later rewards\n"), "{told}");
    let told = done(&server, &["members", "show", "bob@example.com"]);
    assert!(told.contains("\n  $100 more was paid, or is being paid, than was earned; it is deducted from later rewards; being paid $100, paid $0\n"), "{told}");
    // What fails of it was never earned.
    write(&server, "answer.csv", &format!("external_id,status\n{BOB}-1-1,failed\n"));
    let said = done(&server, &["rewards", "batch", "settle", "answer.csv"]);
    assert!(said.ends_with("Recorded before: 0.\n1 failed and is not due: what it paid for was voided, or made up for what was paid too much.\n"), "{said}");
    // Somebody erased is known by their address still, and the ledger keeps the reason.
    done(&server, &["members", "erase", "ana1@example.com"]);
    holds(&void("ana1@example.com").1, &["$100 is deducted from what the referrer earns next"]);
    assert_eq!(server.rows("SELECT DISTINCT why FROM reward_ledger WHERE kind = 'reversal'"), [["twins"]]);
    let audit = server.rows("SELECT about FROM audit WHERE command = 'rewards void' ORDER BY id").concat();
    assert_eq!(
        audit,
        [
            CAMPAIGN.to_owned(),
            CAMPAIGN.to_owned(),
            format!("account {BOB} in {CAMPAIGN}"),
            format!("account {ANA} in {CAMPAIGN}")
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_shows_the_rows_behind_each_pattern() {
    let server = union_with_groups().await;
    // Bob's members at a disposable domain and by one partner; Ana joined by a friend of her friend's.
    server.execute("UPDATE people SET email = 'bob1@mailinator.com' WHERE email = 'bob1@example.com'");
    server.execute(
        "UPDATE sign_ups SET (key_id, partner_id) =
                 (SELECT k.id, k.partner_id FROM api_keys k JOIN partners p ON p.id = k.partner_id WHERE p.name = 'Harbor')
             WHERE person_id = (SELECT id FROM people WHERE email = 'bob3@example.com')",
    );
    for (person, by) in [("ana", "bob5"), ("bob", "ana5")] {
        server.execute(&format!(
            "UPDATE people SET referrer_id = (SELECT id FROM people WHERE email = '{by}@example.com') WHERE email = '{person}@example.com'"
        ));
    }
    let said = done(&server, &["rewards", "review"]);
    let lines: Vec<_> = said.lines().collect();
    let under = |title: &str| -> Vec<_> {
        let rows = lines.iter().skip_while(|line| !line.contains(title)).skip(1);
        rows.take_while(|line| line.starts_with("    "))
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .collect()
    };
    let disposable = under("  disposable: addresses at domains of disposable mailboxes");
    assert_eq!((disposable[0][0], &disposable[0][3..]), ("bob1@mailinator.com", &[CAMPAIGN, "group", "1"][..]));
    assert_eq!(
        disposable[1].join(" "),
        format!("to void one of them: unionhall rewards void ADDRESS --campaign {CAMPAIGN} --reason TEXT")
    );
    let cluster = under("  partner: 3 of 5 members joined through Harbor");
    assert_eq!(
        cluster.iter().map(|row| row[0]).collect::<Vec<_>>(),
        ["bob2@example.com", "bob3@example.com", "bob5@example.com", "to"]
    );
    let ring = "  ring: referred by bob5@example.com, referred by bob@example.com, referred by ana5@example.com, referred by ana@example.com";
    assert_eq!(under(ring)[0][0], "ana5@example.com", "{said}");
    assert_eq!(under("  burst: 3 members joined within an hour").len(), 4);
    assert!(said.ends_with("Looked at 3 groups of 2 referrers, none of them paid yet: 2 referrers shown.\n"), "{said}");

    done(&server, &["rewards", "batch", "new", "payouts.csv"]);
    let audited = || server.number("SELECT count(*) FROM audit");
    // A batch that is not settled can still be held back.
    assert!(done(&server, &["rewards", "review"]).contains(&format!("{CAMPAIGN} group 1, in batch 1\n")));
    // Somebody who is erased does not hide a pattern.
    done(&server, &["members", "erase", "bob1@example.com"]);
    let text = done(&server, &["rewards", "review"]);
    assert!(text.contains("  erased: 1 member erased since, so when and how they joined is not known\n"), "{text}");
    let before = audited();
    server.execute("UPDATE payouts SET state = 'paid'");
    // Whoever is erased counts no longer, and that is shown where it is paid.
    let text = done(&server, &["rewards", "review"]);
    assert!(
        text.starts_with("bob@example.com: no group waits to be paid\n  ended: 1 member no longer counted,"),
        "{text}"
    );
    assert!(text.contains(&format!("{CAMPAIGN} group 1, in batch 1, erased ")), "{text}");
    assert!(text.ends_with("\nNo group is waiting to be paid: 1 referrer shown.\n"), "{text}");
    assert_eq!(audited(), before + 1);
    server.execute("UPDATE qualifications SET ended_on = NULL, ended_why = NULL");
    assert_eq!(done(&server, &["rewards", "review"]), "No group is waiting to be paid.\n");
    assert_eq!(audited(), before + 1, "no address was shown");
    server.execute("UPDATE payouts SET state = 'out'");
    // A batch that nobody settles.
    let doctor = || String::from_utf8(server.command().args(["doctor"]).output().unwrap().stdout).unwrap();
    assert!(!doctor().contains("payouts:"));
    server.execute(&format!("UPDATE payout_batches SET created_at = {}", days_ago(15)));
    assert!(doctor().contains("warn payouts: batch 1 was made at "), "{}", doctor());
    // However many were made and settled since.
    let now = days_ago(0);
    for _ in 0..25 {
        server.execute(&format!(
            "INSERT INTO payout_batches (created_at, who, filled_at, written_at) VALUES ({now}, 'op', 1, 1)"
        ));
    }
    assert!(doctor().contains("warn payouts: batch 1 was made at "), "{}", doctor());
    let fix = |told: &str| told.contains("record the provider's answer: `unionhall rewards batch settle FILE`");
    assert!(fix(&doctor()), "{}", doctor());
    server.execute("UPDATE payout_batches SET written_at = NULL WHERE id = 1");
    let told = doctor();
    assert!(told.contains("; its file was never written") && !fix(&told), "{told}");
    assert!(told.contains("finish a batch without a file: `unionhall rewards batch new FILE`"), "{told}");
    server.execute("UPDATE payout_batches SET written_at = 1 WHERE id = 1");
    let said = done(&server, &["rewards", "batch", "new", "again.csv"]);
    assert!(said.starts_with("Nothing new is due. What is not settled of batch 1 is in again.csv again: "), "{said}");
}

/// Addresses that a spreadsheet would run as formulas: valid, and in no file of rows and columns.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_a_spreadsheet_would_run_is_withheld_and_named() {
    let server = union_with_groups().await;
    let key = server.run(&["keys", "issue", "Fourth"]);
    let formula = "=cmd|x";
    let code = join(&server, &key, formula, "").await;
    server.execute(&format!(
        "UPDATE people SET email = '=bob@example.com', email_normalized = '=bob@example.com', mailbox = '=bob@example.com'
         WHERE account = '{BOB}'"
    ));
    let (code_of_export, rows, told) = run(&server, &["members", "export"]);
    assert_eq!(code_of_export, 0);
    assert!(!rows.contains(formula) && !rows.contains("=bob@") && rows.contains("\r\nana@example.com,"), "{rows}");
    let bobs = &server.rows(&format!("SELECT code FROM people WHERE account = '{BOB}'"))[0][0];
    assert_eq!(
        told,
        format!(
            "18 people were written.\nWithheld, because a spreadsheet would run a cell as a formula: 2 people ({bobs}, {code}). `unionhall members \
             find CODE` shows whose code it is; `--format jsonl` withholds nobody.\n"
        )
    );
    let all = done(&server, &["members", "export", "--format", "jsonl"]);
    assert!(
        all.lines().count() == 20 && all.contains("\"=cmd|x@example.com\"") && all.contains("\"=bob@example.com\""),
        "{all}"
    );

    let (status, said, told) = run(&server, &["rewards", "batch", "new", "payouts.csv"]);
    assert_eq!(status, 0, "{told}");
    assert!(said.starts_with("Batch 1 is in payouts.csv: 1 payout, $200.\n"), "{said}");
    assert_eq!(
        told,
        format!(
            "Withheld from the file, because a spreadsheet would run the address as a formula: 1 payout, $100 ({BOB}-1-1). Pay it by \
             hand, and settle it under its id, which begins with the account. Not settled in this batch: 2 payouts, $300.\n\
             `unionhall members find ACCOUNT` shows the address. `unionhall rewards batch settle FILE` records that it was paid, or that it failed.\n"
        )
    );
    assert_eq!(
        read(&server, "payouts.csv"),
        format!(
            "external_id,email,amount_cents,currency,campaign,groups\n{ANA}-1-1,ana@example.com,20000,USD,{CAMPAIGN},2\n"
        )
    );
    holds(&done(&server, &["members", "find", BOB]), &["=bob@example.com"]);
    // The rest is settled: there is nobody left for a file.
    write(&server, "answer.csv", &format!("external_id,status,paid_at\n{ANA}-1-1,paid,2026-11-18\n"));
    server.execute("UPDATE payout_batches SET created_at = 1794895200000");
    done(&server, &["rewards", "batch", "settle", "answer.csv"]);
    let (_, said, told) = run(&server, &["rewards", "batch", "new", "rest.csv"]);
    assert_eq!(said, "No payout of batch 1 can be in a file. No file was written.\n");
    assert!(
        told.contains(&format!("1 payout, $100 ({BOB}-1-1). "))
            && told.contains("Not settled in this batch: 1 payout, $100."),
        "{told}"
    );
    write(&server, "answer.csv", &format!("external_id,status,paid_at\n{BOB}-1-1,paid,2026-11-18\n"));
    holds(&done(&server, &["rewards", "batch", "settle", "answer.csv"]), &["Recorded now: 1."]);
    let (_, rows, told) = run(&server, &["rewards", "tax", "--year", "2026"]);
    assert_eq!(rows, format!("account,email,paid_cents,currency\n{ANA},ana@example.com,20000,USD\n"));
    assert_eq!(
        told,
        format!(
            "2026: $300 paid to 2 accounts.\nOf that withheld from the rows, because a spreadsheet would run the address as a formula: 1 account, $100 ({BOB}). \
             `unionhall members find ACCOUNT` shows the address.\n"
        )
    );
}
