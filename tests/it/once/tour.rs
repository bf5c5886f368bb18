//! docs/tour.md and what `unionhall demo` prints: every command typed, every link opened.

use super::demonstration::{Demo, is_alive};
use crate::operator::{steady, transcripts};
use crate::prelude::*;
use crate::records::sqlite_rows;

const TOUR: &str = include_str!("../../../docs/tour.md");
const THERE: &str = "127.0.0.1:8080";

struct Figures {
    states: BTreeMap<String, String>,
    due: i64,
    groups: i64,
    on_hold: i64,
    lapsed: i64,
    /// Sign-ups whose answers retention deleted.
    deleted: i64,
}

/// What is counted in one place and shown in several; they must agree.
fn figures(demo: &Demo) -> Figures {
    let (stats, totals) = (demo.json("stats"), demo.json("rewards list")["totals"].clone());
    let public: Value = serde_json::from_str(&demo.answer(&format!("curl -s {}/v1/stats", demo.address()))).unwrap();
    assert_eq!(public["memberCount"], stats["members"]);
    let shown: Value =
        serde_json::from_str(&demo.answer(&format!("curl -s {}/campaigns.json", demo.address()))).unwrap();
    let mut states = BTreeMap::new();
    let mut due = 0;
    for campaign in demo.json("campaigns list").as_array().unwrap() {
        let slug = campaign["slug"].as_str().unwrap().to_owned();
        let ledger = &demo.json(&format!("campaigns show {slug}"))["rewards"];
        let cents = |name: &str| ledger[name].as_i64().unwrap_or(0);
        due += cents("accruedCents") - cents("reversedCents") - cents("paidOutCents");
        if let Some(shown) = shown["campaigns"].as_array().unwrap().iter().find(|shown| shown["slug"] == slug) {
            assert_eq!((&shown["in"], &shown["state"]), (&campaign["in"], &campaign["state"]), "{slug}");
        }
        states.insert(slug, campaign["state"].as_str().unwrap().to_owned());
    }
    assert_eq!(totals["dueCents"], due, "the ledger of all campaigns, and what is due");
    Figures {
        states,
        due,
        groups: totals["groups"].as_i64().unwrap(),
        on_hold: totals["onHold"].as_i64().unwrap(),
        lapsed: stats["funnel"]["lapsed"].as_i64().unwrap(),
        deleted: {
            let deleted = "SELECT count(*) FROM sign_ups WHERE purged_at IS NOT NULL";
            sqlite_rows(&demo.folder.path().join("tour/unionhall.db"), deleted).unwrap()[0][0].parse().unwrap()
        },
    }
}

/// A hold ends and a group is rewarded, a campaign moves on by its date, links lapse.
fn a_month_later(before: &Figures, after: &Figures) {
    let all: BTreeSet<_> = before.states.values().map(String::as_str).collect();
    assert_eq!(all.len(), 7, "one in each state: {all:?}");
    assert!(before.on_hold > 0 && after.on_hold == 0 && after.groups > before.groups);
    assert_eq!(after.due - before.due, (after.groups - before.groups) * 10_000);
    let of = |figures: &Figures| figures.states["car-insurance"].clone();
    assert_eq!((of(before).as_str(), of(after).as_str()), ("gathering", "negotiating"));
    assert!(after.lapsed > before.lapsed && after.deleted > before.deleted);
}

/// Who was signed up by the pasted line presses the button in their mail, and their partner is told.
fn a_confirmation_reaches_the_receiver(demo: &Demo) {
    let mail = "for n in $(seq 200); do mail=$(grep -l new@example.com tour/mailbox/*.json) && break; sleep 0.1; done; cat $mail";
    let mail = demo.answer(mail);
    let mail: Value = serde_json::from_str(&mail).unwrap();
    let link = mail["text"].as_str().unwrap().split_whitespace().find(|word| word.contains("/confirm/")).unwrap();
    assert_eq!(demo.answer(&format!("curl -s -o page -w '%{{http_code}}' -X POST '{link}'")), "303");
    let receiver = demo.link("Webhooks");
    let waits = format!(
        "for n in $(seq 200); do curl -s {receiver} | grep -q conversation- && echo THERE && break; sleep 0.1; done"
    );
    assert_eq!(demo.answer(&waits), "THERE\n");
}

/// What is a demonstration's never becomes a real union's, and the other way round.
fn is_kept_apart(demo: &Demo) {
    let refused = |command: &str, says: &str| {
        let answered = demo.answer(&format!("{command} && echo DONE"));
        assert!(answered.contains(says) && !answered.contains("DONE"), "{command}: {answered}");
    };
    let only = "is a demonstration's folder, which only `unionhall demo` serves";
    for command in
        ["serve --data tour --listen 127.0.0.1:0", "backup backup.file --data tour", "restore backup.file --data tour"]
    {
        refused(&format!("unionhall {command}"), only);
    }
    refused("unionhall move --from sqlite:tour/unionhall.db --to sqlite:moved.db", only);
    refused("UNIONHALL_STORE=postgres://nobody@127.0.0.1:1/x unionhall stats --data tour", "its records are in it");
    // Its records know it too, wherever they are.
    let copied = "mkdir other && cp tour/unionhall.db tour/secret other/";
    refused(
        &format!("{copied} && unionhall serve --data other --listen 127.0.0.1:0"),
        "these records are a demonstration's",
    );
    refused("unionhall demo --data other", "is not empty and no demonstration's folder");
    refused("unionhall demo advance 1d --data other", "the calendar of a real union cannot be moved");
    refused("unionhall demo --data tour", "a demonstration runs in tour already");
    refused("unionhall demo --listen 0.0.0.0:0", "a demonstration is for this machine alone");
    refused("unionhall demo advance 2y --data tour", "write a time such as 1h, 10d or 30d");
    assert_eq!(demo.answer("ls other"), "secret\nunionhall.db\n", "nothing was written there");
    // What a partner names elsewhere is not reached.
    let key = demo.printed.split("Bearer ").nth(1).unwrap().split('"').next().unwrap();
    let add = format!(
        "curl -s http://{}/partner/v1/webhooks -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{{\"url\": \"https://example.com/\"}}'",
        demo.address()
    );
    assert!(demo.answer(&add).contains("not on this machine"), "{}", demo.answer(&add));
}

#[test]
fn every_command_and_every_link_of_the_tour_and_of_what_is_printed() {
    let demo = Demo::start();
    let here = |text: &str| text.replace(THERE, demo.address());
    // Before a month has passed: two of them sign in, and work for minutes.
    for name in ["Join page", "Campaigns", "A member's page", "Operator's page", "All mail", "Webhooks"] {
        assert_eq!(demo.status(demo.link(name)), "200", "{name}");
    }
    is_alive(&demo);
    let before = figures(&demo);
    let receiver = demo.link("Webhooks").trim_start_matches("http://").trim_end_matches('/');
    let mut page = TOUR.to_owned();
    for (command, expected) in transcripts(TOUR) {
        let answered = demo
            .answer(&here(&command))
            .replace(demo.address(), THERE)
            .replace(receiver, "127.0.0.1:8081")
            .replace(env!("CARGO_BIN_EXE_unionhall"), "unionhall");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            page = page.replacen(
                &format!("$ {command}\n{expected}"),
                &format!("$ {command}\n{}\n", answered.trim_end()),
                1,
            );
        } else {
            assert_eq!(steady(&answered), steady(&expected), "{command}\n{answered}");
        }
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/tour.md"), page).unwrap();
    }
    a_month_later(&before, &figures(&demo));
    let links = TOUR.split('<').filter_map(|rest| rest.split_once('>')).filter(|(link, _)| link.starts_with("http"));
    for (link, _) in links {
        assert_eq!(demo.status(&here(link)), "200", "{link}");
        let says = "grep -c 'Nobody here is real' page || true";
        assert!(link.ends_with(".json") || demo.answer(says) != "0\n", "{link} says what it is");
    }

    // Lines to paste, each with what follows a backslash.
    let pasted = demo.printed.replace("\\\n", "");
    for line in pasted.lines().filter(|line| line.starts_with("  curl ")) {
        let answered: Value = serde_json::from_str(&demo.answer(&format!("{line} 2>/dev/null"))).unwrap();
        assert_eq!(answered["ok"], true, "{line}: {answered}");
    }
    a_confirmation_reaches_the_receiver(&demo);
    for line in pasted.lines().map(str::trim).filter(|line| line.starts_with(env!("CARGO_BIN_EXE_unionhall"))) {
        let answered = demo.answer(line);
        assert!(!answered.contains("unionhall:") && !answered.is_empty(), "{line}: {answered}");
    }
    let configuration = pasted.lines().find_map(|line| serde_json::from_str::<Value>(line).ok()).unwrap();
    let negotiator = &configuration["mcpServers"]["negotiator"];
    let arguments: Vec<_> = negotiator["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let command = format!("echo '{list}' | {} {}", negotiator["command"].as_str().unwrap(), arguments.join(" "));
    assert!(demo.answer(&command).contains("proposeOffer"), "{command}");
    is_kept_apart(&demo);
}
