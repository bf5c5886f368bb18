//! A demonstration that runs, for the tests of it; and its history: something of everything is in it, and its figures agree wherever they are
//! read.

use crate::prelude::*;

/// A demonstration that runs.
pub(super) struct Demo {
    process: Child,
    /// What it has printed once it was ready.
    pub(super) printed: String,
    pub(super) folder: tempfile::TempDir,
}

impl Demo {
    /// In a folder called `tour`, on any port.
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut demo = unionhall(folder.path());
        // None of it is read; nobody listens there.
        demo.env("UNIONHALL_MAIL", "smtp://127.0.0.1:1").args(["demo", "--listen", "127.0.0.1:0", "--data", "tour"]);
        let mut process = demo.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut printed = String::new();
        for line in lines {
            printed += &format!("{line}\n");
            if line.starts_with("Ctrl-C") {
                break;
            }
        }
        let said = BufReader::new(process.stderr.as_mut().unwrap()).lines().next();
        assert!(printed.contains("Ctrl-C"), "{printed}{said:?}");
        assert!(said.unwrap().unwrap().starts_with("unionhall: UNIONHALL_MAIL is ignored"));
        Self { process, printed, folder }
    }

    /// What stands beside a name in what it printed.
    pub(super) fn link(&self, name: &str) -> &str {
        let beside = self.printed.lines().find_map(|line| line.trim().strip_prefix(name));
        beside.unwrap_or_else(|| panic!("{name} in {}", self.printed)).trim()
    }

    pub(super) fn address(&self) -> &str {
        self.link("Join page").strip_prefix("http://").unwrap().strip_suffix("/join").unwrap()
    }

    /// What a shell in the folder above its own makes of a command.
    pub(super) fn answer(&self, command: &str) -> String {
        let mut shell = Command::new("bash");
        shell.env("UNIONHALL", env!("CARGO_BIN_EXE_unionhall")).current_dir(self.folder.path());
        let prelude = "set -o pipefail; unionhall() { \"$UNIONHALL\" \"$@\"; }; exec 2>&1";
        let output = shell.args(["-c", &format!("{prelude}\n{command}\n")]).stdin(Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// The first document that a command prints.
    pub(super) fn json(&self, command: &str) -> Value {
        let answer = self.answer(&format!("unionhall {command} --json --data tour"));
        let first = serde_json::Deserializer::from_str(&answer).into_iter().next();
        first.and_then(Result::ok).unwrap_or_else(|| panic!("{command}: {answer}"))
    }

    pub(super) fn status(&self, url: &str) -> String {
        self.answer(&format!("curl -s -L -b '' -o page -w '%{{http_code}}' '{url}'"))
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Its folder is removed with what it writes at its end.
        let _ended = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ended = self.process.wait();
    }
}

fn rows(demo: &Demo, command: &str) -> Vec<Value> {
    demo.json(command).as_array().unwrap().clone()
}

fn campaigns(demo: &Demo) -> Vec<Value> {
    let slugs = rows(demo, "campaigns list");
    slugs.iter().map(|listed| demo.json(&format!("campaigns show {}", text(&listed["slug"])))).collect()
}

/// The totals, and each account.
fn rewards(demo: &Demo) -> (Value, Vec<Value>) {
    let lines = demo.answer("unionhall rewards list --json --data tour");
    let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    (lines.next().unwrap()["totals"].clone(), lines.collect())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn money_of(account: &Value) -> (String, [i64; 3]) {
    let cents = |name: &str| account[name].as_i64().unwrap();
    (text(&account["email"]).to_owned(), [cents("earnedCents"), cents("dueCents"), cents("paidCents")])
}

fn sum(rows: &[Value], field: &str) -> i64 {
    rows.iter().map(|row| row[field].as_i64().unwrap()).sum()
}

/// What is counted for each source, campaign, account and entry of the ledger adds up to what is said of all.
fn figures_add_up(demo: &Demo) {
    let stats = demo.json("stats");
    let funnel = |name: &str| stats["funnel"][name].as_i64().unwrap();
    assert_eq!(stats["members"], funnel("confirmed") - funnel("left"));
    let sources = rows(demo, "stats --by partner");
    for count in ["signedUp", "mailed", "confirmed", "declined", "lapsed", "left"] {
        assert_eq!(sum(&sources, count), funnel(count), "{count}");
    }
    for campaign in campaigns(demo).iter().filter(|campaign| campaign["state"] != "draft") {
        let (count, exact) = (campaign["in"].as_i64().unwrap(), &campaign["exactCounts"]);
        let exact = exact["in"].as_i64().unwrap() + exact["accepted"].as_i64().unwrap();
        assert!(count % 5 == 0 && (exact - count).abs() < 10, "{campaign}");
    }
    let (totals, accounts) = rewards(demo);
    for field in ["groups", "dueCents", "paidCents"] {
        assert_eq!(totals[field], sum(&accounts, field), "{field}");
    }
    let of_campaigns: Vec<_> =
        campaigns(demo).iter().map(|campaign| campaign["rewards"].clone()).filter(Value::is_object).collect();
    assert_eq!(sum(&of_campaigns, "accruedCents"), sum(&accounts, "earnedCents"));
    assert_eq!(sum(&of_campaigns, "groups"), sum(&accounts, "groups"));
    for account in &accounts {
        let (email, [earned, due, paid]) = money_of(account);
        let person = demo.json(&format!("members show {email}"));
        let ledger = person["rewardHistory"]["ledger"].as_array().unwrap();
        let of_kind = |kind: &str| ledger.iter().filter(|row| row["kind"] == kind).cloned().collect::<Vec<_>>();
        assert_eq!(sum(&of_kind("accrual"), "amountCents"), earned, "{email}");
        assert_eq!(sum(&of_kind("payout"), "amountCents"), -paid, "{email}");
        assert_eq!(sum(ledger, "amountCents"), due, "{email}");
    }
}

/// Something of everything, with sums that are right. That it is the same each day, docs/tour.md shows.
pub(super) fn is_alive(demo: &Demo) {
    figures_add_up(demo);
    let (totals, _) = rewards(demo);
    assert!(["onHold", "dueCents", "paidCents"].iter().all(|name| totals[*name].as_i64().unwrap() > 0), "{totals}");
    let states = demo.answer("unionhall stats --by state --data tour");
    let few = states.lines().find_map(|line| line.strip_suffix(" more, fewer than 5 each")?.split_whitespace().last());
    assert!(rows(demo, "stats --by state").len() + few.unwrap().parse::<usize>().unwrap() > 20, "{states}");

    // What the operator attends to, and what the negotiator met.
    assert_eq!(rows(demo, "mail list").len(), 2, "held, because a key was revoked");
    let endpoints = demo.answer("unionhall webhooks list --data tour");
    assert!(endpoints.contains("/acme: ok") && endpoints.contains("/broken: failing"), "{endpoints}");
    let review = demo.answer("unionhall rewards review --data tour");
    assert!(review.contains("accepted the offer within an hour"), "{review}");
    let drafts = demo.json("campaigns drafts home-internet");
    assert_eq!((&drafts[0]["answer"]["is_published"], &drafts[1]["answer"]), (&json!(false), &Value::Null), "{drafts}");
    let bids = demo.answer("unionhall campaigns bids home-internet --data tour");
    for part in ["within the mandate", "outside:", "fee \"access fee", "Ignore your other instructions", "superseded"] {
        assert!(bids.contains(part), "{part}: {bids}");
    }
    let orders = demo.json("campaigns show warehouse-groceries")["orders"].clone();
    for count in ["waiting", "ordered", "switched", "rejected", "inTrouble"] {
        assert!(orders[count].as_i64().unwrap() > 0, "{count}: {orders}");
    }
}
