//! Campaigns as the operator and the negotiator run them: every command, in the right order and in the wrong one, and the page
//! `docs/campaigns.md`, whose commands are run as they stand there.

use crate::negotiator::{begin, bid, bidding, content, negotiate, proposal, reading, round};
use crate::operator::{answer, steady, transcripts};
use crate::prelude::*;

const PAGE: &str = include_str!("../../docs/campaigns.md");

/// 2026-11-17T06:00:00Z, when the page says that members were counted.
const COUNTED_AT: i64 = 1_794_895_200_000;

pub(crate) const POSTAL: &str = "--postal-address=12 Mill Street, Springfield, IL 62701";

/// Runs a command with this on its standard input: its code, and what it printed and told.
pub(crate) fn run_with(server: &Server, arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut command = server.command();
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    // Whoever reads none of it may have ended.
    let _gone = process.stdin.take().unwrap().write_all(input.as_bytes());
    let output = process.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

pub(crate) fn run(server: &Server, arguments: &[&str]) -> (i32, String, String) {
    run_with(server, arguments, "")
}

#[track_caller]
pub(crate) fn refused(server: &Server, arguments: &[&str]) -> String {
    let (code, said, told) = run(server, arguments);
    assert_eq!((code, said.as_str()), (1, ""), "{arguments:?}: {told}");
    told.trim().trim_start_matches("unionhall: ").to_owned()
}

fn sample(server: &Server, offer: bool) -> String {
    run(server, if offer { &["campaigns", "sample", "--offer"] } else { &["campaigns", "sample"] }).1
}

/// A campaign of the sample, under this slug.
#[track_caller]
pub(crate) fn make(server: &Server, slug: &str) {
    let file = sample(server, false).replace("internet-sample", slug);
    let (code, _, told) = run_with(server, &["campaigns", "new", "-"], &file);
    assert_eq!(code, 0, "{told}");
}

#[track_caller]
pub(crate) fn done(server: &Server, arguments: &[&str]) -> String {
    let (code, said, told) = run(server, arguments);
    assert_eq!(code, 0, "{arguments:?}: {told}");
    said
}

pub(crate) fn shown(server: &Server, slug: &str) -> Value {
    serde_json::from_str(&done(server, &["campaigns", "show", slug, "--json"])).unwrap()
}

/// Members who are in: seven of California, who also want a better mobile plan, and five of Oregon.
async fn twelve_members(server: &Server) {
    let key = server.run(&["keys", "issue", "Acme"]);
    for n in 1..=12 {
        let (state, categories) = match n {
            1..=7 => ("CA", json!({ "internet": true, "mobile_bills": true })),
            _ => ("OR", json!({ "internet": true })),
        };
        let person = json!({ "email": format!("p{n}@example.com"), "usState": state, "categories": categories });
        server.post("/v1/invite", &key, person.to_string()).await.good();
        assert_eq!(server.confirm(n).await.status, 200);
    }
}

pub(crate) fn count_in(server: &Server, day: i64, sheet: &Value) {
    let day = day + Clock::start().now().time.as_millis() / 86_400_000;
    server.execute(&format!(
        "INSERT INTO demand_sheets (campaign_id, day, taken_at, sheet) SELECT id, {day}, {COUNTED_AT}, '{sheet}' FROM campaigns"
    ));
}

pub(crate) fn sheet(accepted: u64) -> Value {
    json!({
        "in": 10, "accepted": accepted, "byState": [], "inOtherStates": 0, "byCategory": [], "inOtherCategories": 0
    })
}

/// The sample's benchmark is of the day on which it was printed.
fn without_benchmark_day(text: &str) -> String {
    ["urban rate survey, ", "urbanas de la FCC, "].iter().fold(text.to_owned(), |text, source| {
        let (first, rest) = text.split_once(source).unwrap_or((&text, ""));
        let rest = rest.split(source).map(|part| part.split_once(')').map_or(part, |(_, rest)| rest));
        [first].into_iter().chain(rest).collect()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_of_the_page_answers_as_it_says() {
    let facts = ["--name", "Example Union", "--contact-email", "hello@union.example"];
    let server = Server::start_with(&[&["--key-per-minute", "1000"], &facts[..]].concat());
    twelve_members(&server).await;
    let me = answer(&server, "id -un").trim().to_owned();
    let mut wrong = String::new();
    for (command, expected) in transcripts(PAGE) {
        // What happens between two commands of the page.
        if command.ends_with("campaigns rounds internet-sample") {
            let rounds = [
                begin(),
                round("internet-sample", "$45 a month for at least 10 households", "$55, or $50 for 24 months"),
                round(
                    "internet-sample", "$48 a month for 12 months, no exit fee", "Agreed, if members decide by March",
                ),
                bidding("internet-sample", &bid()),
                proposal("internet-sample"),
            ];
            negotiate(&server, &rounds).iter().skip(1).for_each(|answer| assert!(content(answer)["ok"] == true));
        } else if command.contains("campaigns close") {
            server
                .execute("UPDATE participations SET state = 'accepted', accepted_at = changed_at WHERE person_id <= 6");
            count_in(&server, 1, &sheet(5));
        }
        let answered = answer(&server, &command).replace(&format!(" {me} "), " root ");
        let answered = answered.replace(&format!("http://{}", server.address), "https://union.example");
        // How far a mailing is depends on the moment.
        let lines = |text: &str| -> Vec<_> {
            let text = without_benchmark_day(text);
            steady(&text).into_iter().filter(|line| !line.starts_with("campaign_")).collect()
        };
        if lines(&answered) != lines(&expected) {
            wrong.push_str(&format!("$ {command}\n{answered}\n--- the page says\n{expected}\n"));
        }
        if command.contains("campaigns open") {
            server.execute(
                "INSERT INTO participations (campaign_id, person_id, state, in_at, changed_at)
                 SELECT c.id, p.id, 'in', 1794895100000, 1794895100000 FROM campaigns c, people p",
            );
            count_in(&server, 0, &sheet(0));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let told = server.run(&["members", "show", "p1@example.com"]);
    assert!(told.contains("\nCampaigns\n  internet-sample: accepted since 2026-11-17T05:58:20Z, in at "), "{told}");
    let member = server.json(&["members", "show", "p7@example.com", "--json"]);
    assert_eq!(
        (&member["campaigns"][0]["campaign"], &member["campaigns"][0]["state"]),
        (&json!("internet-sample"), &json!("in"))
    );
    let notes = server.rows("SELECT who, command, about FROM audit WHERE command LIKE 'negotiator %' ORDER BY id");
    let about = "internet-sample, client \"Desk Negotiator\" (self-asserted)";
    assert_eq!(
        notes,
        [
            ["the negotiator", "negotiator round", about],
            ["the negotiator", "negotiator round", about],
            ["the negotiator", "negotiator bid", about],
            ["the negotiator", "negotiator draft", about]
        ]
    );
    let steps = server.rows("SELECT command FROM audit WHERE command LIKE 'campaigns %' ORDER BY id").concat();
    let expected = ["new", "open", "say", "rounds redact", "offer", "activate", "close"];
    assert_eq!(steps, expected.map(|step| format!("campaigns {step}")));
}

#[test]
fn every_step_out_of_order_and_every_step_twice_is_refused_with_a_sentence() {
    let server = Server::start();
    let steps = ["open", "negotiate", "activate", "close", "cancel"];
    let offer = sample(&server, true);
    std::fs::write(server.data().with_file_name("offer.toml"), &offer).unwrap();
    let bid = run(&server, &["campaigns", "sample", "--bid"]).1;
    std::fs::write(server.data().with_file_name("bid.toml"), &bid).unwrap();
    let take = |step: &str, slug: &str| match step {
        "open" => run(&server, &["campaigns", "open", slug, POSTAL]),
        "offer" => {
            run(&server, &["campaigns", "bid", slug, "bid.toml"]);
            run(&server, &["campaigns", "offer", slug, "offer.toml", "--bid", "1"])
        }
        step => run(&server, &["campaigns", step, slug]),
    };
    // To each state, the way there, and what may be done from it.
    let ways: [(&str, &[&str], &[&str]); 7] = [
        ("draft", &[], &["open", "cancel"]),
        ("gathering", &["open"], &["negotiate", "offer", "cancel"]),
        ("negotiating", &["open", "negotiate"], &["offer", "cancel"]),
        ("offered", &["open", "offer"], &["offer", "activate", "cancel"]),
        ("active", &["open", "negotiate", "offer", "activate"], &["close", "cancel"]),
        ("closed", &["open", "offer", "activate", "close"], &[]),
        ("cancelled", &["cancel"], &[]),
    ];
    for (state, way, may) in ways {
        let slug = format!("one-{state}");
        make(&server, &slug);
        for step in way {
            assert_eq!(take(step, &slug).0, 0, "{step} of {slug}");
        }
        assert_eq!(shown(&server, &slug)["state"], state);
        for step in steps.into_iter().chain(["offer"]).filter(|step| !may.contains(step)) {
            let (code, said, told) = take(step, &slug);
            assert_eq!((code, said.as_str()), (1, ""), "{step} of {slug}");
            assert!(told.starts_with(&format!("unionhall: {slug}: the campaign is ")), "{told}");
            assert_eq!(told.trim().lines().count(), 1, "{told}");
        }
        let after = shown(&server, &slug);
        assert_eq!((after["state"].as_str(), after["history"].as_array().unwrap().len()), (Some(state), way.len() + 1));
    }
    let again = refused(&server, &["campaigns", "cancel", "one-cancelled"]);
    assert_eq!(again, "one-cancelled: the campaign is cancelled already");
    // Nobody gave the service a postal address, and what it mails about campaigns waits for one.
    let found = Diagnosis::of(server.command());
    let address = found.of_check("postal address")[0];
    assert_eq!(
        (&address["state"], &address["fix"]),
        (&json!("warn"), &json!("give it in UNIONHALL_POSTAL_ADDRESS and start the service again"))
    );
    let unknown = refused(&server, &["campaigns", "close", "one-activ"]);
    assert_eq!(
        unknown,
        "there is no campaign one-activ; did you mean one-active? `unionhall campaigns list` shows them"
    );
    let far = refused(&server, &["campaigns", "show", "zebra"]);
    assert_eq!(far, "there is no campaign zebra; `unionhall campaigns list` shows them");
    assert_eq!(run(&server, &["campaigns", "show", "No Slug"]).0, 2);

    let noted = done(&server, &["campaigns", "cancel", "one-draft", "--note", "nobody sells it"]);
    assert_eq!(noted, "The draft one-draft is cancelled; nobody ever saw it.\n");
    assert_eq!(shown(&server, "one-draft")["history"][1]["note"], "nobody sells it");
    let list = server.json(&["campaigns", "list", "--json"]);
    assert_eq!(list.as_array().unwrap().len(), 7);
    let offered = list.as_array().unwrap().iter().find(|row| row["slug"] == "one-offered").unwrap();
    let day = offer.lines().find_map(|line| line.strip_prefix("decide_by = ")).unwrap()[..10].to_owned();
    assert_eq!(offered["next"], format!("accepting ends after {day}"));
    holds(&done(&server, &["campaigns", "list"]), &[&format!("accepting ends after {day}")]);
}

#[test]
fn files_are_checked_as_a_whole_and_what_members_counted_on_stays() {
    let server = Server::start();
    let good = sample(&server, false);
    let bad = good.replace("category = ", "categry = ").replace("[text.es]", "[text.fr]");
    let (code, _, told) = run_with(&server, &["campaigns", "new", "-"], &bad);
    assert_eq!(code, 1);
    assert!(told.starts_with("unionhall: standard input has 4 mistakes:\n  category: it is missing"), "{told}");
    assert!(told.contains("\n  categry: there is no such field; did you mean category?\n"), "{told}");
    std::fs::write(server.data().with_file_name("long.toml"), "#".repeat(65_537)).unwrap();
    assert!(refused(&server, &["campaigns", "new", "long.toml"]).contains("long.toml is larger than 64 KiB"));
    assert!(refused(&server, &["campaigns", "new", "away.toml"]).starts_with("cannot read away.toml: "));

    make(&server, "internet-sample");
    let said = run_with(&server, &["campaigns", "new", "-"], &good).2;
    assert!(said.contains("there is already a campaign internet-sample; choose another slug"), "{said}");
    let edit = |text: &str| run_with(&server, &["campaigns", "edit", "internet-sample", "-"], text);
    let same = edit(&good);
    assert_eq!(same.1, "standard input says the same as internet-sample; nothing was changed.\n");
    let moved = good.replace("category = \"internet\"", "category = \"mobile_bills\"");
    assert_eq!(edit(&moved).1, "The draft internet-sample is changed.\n");
    let unset = refused(&server, &["campaigns", "open", "internet-sample"]);
    assert!(unset.starts_with("the postal address is unset, "), "{unset}");
    let past = "2020-01-31";
    let until = moved.lines().find(|line| line.starts_with("gather_until")).unwrap();
    let said = edit(&moved.replace(until, &format!("gather_until = {past}"))).2;
    assert!(said.contains("gather_until: 2020-01-31 is over; write a day that lies ahead"), "{said}");
    // It may be over by the time that the draft is opened.
    server.execute(
        "UPDATE campaigns SET definition = replace(definition, 'gather_until = ', 'gather_until = 2020-01-31 # ')",
    );
    let over = refused(&server, &["campaigns", "open", "internet-sample", POSTAL]);
    assert!(over.starts_with("gather_until of internet-sample is 2020-01-31, which is over; "), "{over}");
    assert_eq!(edit(&moved).0, 0);
    done(&server, &["campaigns", "open", "internet-sample", POSTAL]);

    let (_, _, told) = edit(&good.replace("internet-sample", "another-one"));
    assert!(told.contains("has 2 mistakes:\n  slug: it stays \"internet-sample\""), "{told}");
    assert!(told.contains("\n  category: it stays \"mobile_bills\" once members were asked\n"), "{told}");
    let better = moved.replace("Home internet: a sample", "A better title");
    assert_eq!(edit(&better).1, "internet-sample is changed. The pages show it within two seconds.\n");
    assert_eq!(shown(&server, "internet-sample")["title"], "A better title");

    let offer = sample(&server, true);
    let decide_by = offer.lines().find(|line| line.starts_with("decide_by")).unwrap();
    let bid = run(&server, &["campaigns", "sample", "--bid"]).1;
    assert_eq!(run_with(&server, &["campaigns", "bid", "internet-sample", "-"], &bid).0, 0);
    let publish = |text: &str| run_with(&server, &["campaigns", "offer", "internet-sample", "-", "--bid", "1"], text);
    let told = publish(&offer.replace(decide_by, &format!("decide_by = {past}"))).2;
    assert!(told.contains("the offer of internet-sample is not published: decide_by: 2020-01-31 is over; "), "{told}");
    assert_eq!(publish(&offer).0, 0);
    assert!(publish(&offer).2.contains("it is the offer that is published already"), "once");
    let shown = shown(&server, "internet-sample");
    assert_eq!((&shown["offer"]["annualSaving"], &shown["supplier"]), (&json!(240), &json!("Example Fiber")));
    // Only what changed something is in the audit log.
    let steps = server.rows("SELECT command FROM audit WHERE command LIKE 'campaigns %' ORDER BY id").concat();
    let expected = ["new", "edit", "edit", "open", "edit", "bid", "offer"];
    assert_eq!(steps, expected.map(|step| format!("campaigns {step}")));
}

#[test]
fn the_day_after_gather_until_it_is_negotiating_by_itself() {
    let server = Server::start();
    make(&server, "internet-sample");
    done(&server, &["campaigns", "open", "internet-sample", POSTAL]);
    server.execute(
        "UPDATE campaigns SET gather_until = 18000, definition = replace(definition, 'gather_until = 20', 'gather_until = 19')",
    );
    holds(&done(&server, &["campaigns", "list"]), &["`campaigns offer internet-sample FILE` publishes an offer"]);
    let history = &shown(&server, "internet-sample")["history"];
    assert_eq!((&history[2]["who"], &history[2]["to"]), (&json!("date"), &json!("negotiating")), "{history}");
}

/// A sheet of an earlier version may name a state of five, who may be four invented members and a real one.
#[tokio::test(flavor = "multi_thread")]
async fn no_face_names_a_state_of_few() {
    let server = Server::start();
    make(&server, "internet-sample");
    done(&server, &["campaigns", "open", "internet-sample", POSTAL]);
    let cell = |name: &str, members: u64| json!({ "name": name, "members": members });
    let old = json!({
        "in": 120, "accepted": 0, "byState": [cell("CA", 65), cell("OR", 40), cell("WY", 5)], "inOtherStates": 5,
        "byCategory": [cell("mobile_bills", 60), cell("mortgage", 5)], "inOtherCategories": 0
    });
    count_in(&server, 0, &old);
    let demand = |form: &[&str]| done(&server, &[&["campaigns", "demand", "internet-sample"], form].concat());
    let (text, markdown, json) = (demand(&[]), demand(&["--markdown"]), demand(&["--json"]));
    let asked = reading("internet-sample");
    let seat = negotiate(&server, &[begin(), asked]).remove(1).to_string();
    let mut ana = crate::operator_page::signed_in(&server, "ana", 1).await;
    let operator = ana.get("/operator/campaigns/internet-sample").await.text();
    let page = server.get("/campaigns/internet-sample").await.text();
    let file = server.get("/campaigns.json").await.text();
    for shown in [&text, &markdown, &json, &seat, &operator, &page, &file] {
        assert!(!shown.contains("WY") && !shown.to_lowercase().contains("mortgage"), "{shown}");
    }
    // With the smallest that may be named, and no figure where there is no other to hide among.
    let read: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&read["demand"]["byState"], &read["demand"]["inOtherStates"]), (&json!([cell("CA", 65)]), &json!(50)));
    let bills = (&read["demand"]["byCategory"], &read["demand"]["inOtherCategories"]);
    assert_eq!(bills, (&json!([cell("mobile_bills", 60)]), &json!(0)));
    holds(&text, &["\n        65  CA\n        50  elsewhere", "\n        60  Mobile Plan\n       <20  other bills\n"]);
    holds(&markdown, &["| elsewhere | 50 |\n", "| other bills | fewer than 20 |\n"]);
}

/// Members who are in, with no service that counts them.
fn uncounted(people: u32) -> (Home, impl Fn(&[&str]) -> String) {
    let server = Server::start();
    make(&server, "internet-sample");
    done(&server, &["campaigns", "open", "internet-sample", POSTAL]);
    let home = server.stopped();
    for n in 1..=people {
        home.records().execute(&format!(
            "INSERT INTO people (id, email, email_normalized, mailbox, code, state, created_at)
             VALUES ({n}, 'p{n}@example.com', 'p{n}@example.com', 'p{n}@example.com', 'code{n:08}', 'member', 1)"
        ));
    }
    home.records().execute(
        "INSERT INTO participations (campaign_id, person_id, state, in_at, changed_at)
         SELECT c.id, p.id, 'in', 2, 2 FROM campaigns c, people p",
    );
    let (folder, settings) = (home.path().to_owned(), home.records().settings());
    let run = move |arguments: &[&str]| {
        let mut command = unionhall(&folder);
        let output = command.envs(settings.clone()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    (home, run)
}

/// What is not counted is told as that, and only a step counts.
#[test]
fn reading_the_demand_counts_nothing_and_a_step_counts_at_once() {
    let (_home, run) = uncounted(12);
    let json = |arguments: &[&str]| -> Value { serde_json::from_str(&run(arguments)).unwrap() };
    for form in [&[][..], &["--markdown"], &["--history"]] {
        let shown = run(&[&["campaigns", "demand", "internet-sample"], form].concat());
        assert!(shown.contains("Members are being counted: ask again in a minute."), "{shown}");
        assert!(!shown.contains("fewer than 5") && !shown.contains("<5"), "{shown}");
    }
    let demand = json(&["campaigns", "demand", "internet-sample", "--json"]);
    assert!(demand.get("demand").is_none() && demand["campaign"]["in"].is_null(), "{demand}");
    assert_eq!(json(&["campaigns", "demand", "internet-sample", "--history", "--json"]), json!([]));
    assert!(
        run(&["campaigns", "list"]).contains("gathering    counting  internet-sample"),
        "{}",
        run(&["campaigns", "list"])
    );
    assert!(run(&["campaigns", "show", "internet-sample"]).contains("\n  published being counted\n"));

    run(&["campaigns", "negotiate", "internet-sample"]);
    let sheet = run(&["campaigns", "demand", "internet-sample"]);
    assert!(sheet.contains(": at least 10 members were in, fewer than 5 members had accepted."), "{sheet}");
    let kept = json(&["campaigns", "demand", "internet-sample", "--history", "--json"]);
    assert_eq!((kept.as_array().unwrap().len(), &kept[0]["demand"]["in"]), (1, &json!(10)));
    assert_eq!(json(&["campaigns", "list", "--json"])[0]["in"], 10);
}
