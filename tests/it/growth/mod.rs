//! What somebody has stored makes nothing slower: twenty thousand rows of every kind behind one person, one partner, one mailbox
//! and one campaign. What is held to a bound is work, not time, whether a request, a page, a mailed link, a command or a worker
//! causes it: on SQLite the steps that each statement takes, on PostgreSQL the rows that are read without an index.

mod crowd;
#[cfg(debug_assertions)]
mod plans;

use self::crowd::ROWS;
use crate::campaign_pages;
use crate::operator_page;
use crate::operator_sign_in;
use crate::prelude::*;
use crate::records::ask;

const FLAGS: &[&str] = &[
    "--public-per-minute", "1000000", "--key-per-minute", "1000000", "--log", "off", "--trusted-proxies",
    "127.0.0.0/8", "--campaign-mails-an-hour", "1000", "--postal-address", "1 Main St, Springfield",
];

/// Steps of SQLite's machine that one run of a statement may take. A look at every row of a table takes three for each at least.
const MOST_STEPS: u64 = 40_000;

/// Statements that may take more, by a part of them: why, and how much more. Each reads up to a bound of its own.
const MORE: &[(&str, &str, u64)] = &[
    ("AS mails, min(created_at) AS oldest", "10,000 mails of a kind are counted", 4),
    ("count(s.id) AS held", "10,000 held mails are counted by source", 8),
    ("FROM outbox o ORDER BY o.id LIMIT", "`mail list` shows 10,000", 4),
    ("SELECT state, count(*) AS members FROM", "10,000 members of a campaign are counted", 6),
    ("FROM (SELECT status FROM acceptances", "10,000 orders of a campaign are counted", 4),
    ("SELECT count(*) FROM (SELECT 1 FROM acceptances a", "10,000 acceptances of a campaign are counted", 6),
    ("(SELECT 1 FROM acceptances WHERE campaign_id", "10,000 acceptances of a campaign are counted", 4),
    ("looked_at, count(p.id) AS referred", "`rewards list` looks at 100,000 members who are on hold", 60),
    (
        "FROM sign_ups WHERE key_id = api_keys.id AND state",
        "what was declined of a key in the last weeks is counted", 4,
    ),
    ("WITH mine AS MATERIALIZED", "1,000 addresses of one mailbox are put in order", 4),
    ("AS signed_up, looked_at, members FROM", "1,000 people whom somebody referred are counted", 2),
    ("AS number_of, (SELECT count(*) FROM (SELECT 1 FROM reward_groups", "a page of accounts with what each earned", 3),
    (
        "(SELECT DISTINCT g.referrer_id FROM reward_groups g WHERE",
        "a page of groups to review passes over those that were paid",
        3,
    ),
    ("p.id > ?1 AND p.erased_at IS NULL", "the export reads everybody, a page after the other", 8),
    ("AS waiting_cents FROM", "the payouts of a batch that is open are summed, for whoever looks at the rewards", 20),
    ("leased_by = ?1", "once, when a worker stops", 20),
];

/// What the statements of a server and of its commands take.
struct Work {
    records: Records,
    file: PathBuf,
}

impl Work {
    fn of(home: &Home) -> Self {
        Self { records: home.records().clone(), file: home.path().join("steps") }
    }

    /// Forgets what was counted so far.
    fn begin(&self) {
        match &self.records {
            Records::Sqlite { .. } => std::fs::write(&self.file, "").unwrap(),
            Records::Postgres { store, .. } => drop(ask(store, "SELECT pg_stat_reset()").unwrap()),
        }
    }

    /// The most that a run of each statement took, on SQLite.
    fn steps(&self) -> BTreeMap<String, u64> {
        let mut counted = BTreeMap::new();
        for line in std::fs::read_to_string(&self.file).unwrap().lines() {
            let (steps, statement) = line.split_once('\t').unwrap();
            let most: &mut u64 = counted.entry(statement.to_owned()).or_default();
            *most = (*most).max(steps.parse().unwrap());
        }
        counted
    }

    /// What took more than it may; once the server has stopped, for PostgreSQL is told late.
    fn excess(&self) -> Vec<String> {
        match &self.records {
            Records::Sqlite { .. } => {
                let more =
                    |statement: &str| MORE.iter().find(|(part, ..)| statement.contains(part)).map_or(1, |more| more.2);
                let excess =
                    self.steps().into_iter().filter(|(statement, steps)| *steps > MOST_STEPS * more(statement));
                excess.map(|(statement, steps)| format!("{steps} steps: {statement}")).collect()
            }
            Records::Postgres { store, .. } => {
                // Signing in here ages every request, by a statement of the tests. A worker that stops looks for its leases, once.
                let read = format!(
                    "SELECT relname, seq_tup_read, seq_scan FROM pg_stat_user_tables
                     WHERE seq_tup_read >= {ROWS} AND relname <> 'sign_ins' AND NOT (relname = 'outbox' AND seq_scan = 1)
                     ORDER BY relname"
                );
                let tables = ask(store, &read).unwrap();
                let told = |row: Vec<String>| format!("{}: {} rows in {} scans", row[0], row[1], row[2]);
                tables.into_iter().map(told).collect()
            }
        }
    }
}

/// A server of which all work is counted.
fn start(home: Home) -> Server {
    let mut command = unionhall(home.path());
    command.envs(home.records().settings()).env("UNIONHALL_TEST_STEPS", home.path().join("steps"));
    Server::start_as(command, home, FLAGS)
}

/// Makes the union that [`crowd::fill`] fills.
async fn found(server: &Server) -> String {
    let key = server.key();
    server.post("/v1/invite", &key, sign_up("ana@gmail.com")).await.good();
    server.confirm(1).await;
    campaign_pages::open(server, "gathers", "").await;
    campaign_pages::open(server, "runs", "").await;
    campaign_pages::publish(server, "runs", campaign_pages::OFFER).await;
    server.execute(&format!(
        "UPDATE campaigns SET state = 'active', active_at = {}, reward_cents = 10000, group_size = 5, max_groups = 20, hold_days = 30
         WHERE slug = 'runs'",
        server.number("SELECT max(created_at) FROM people")
    ));
    key
}

/// Everything that people, partners, operators and workers do, once; `turn` tells the names of one drive from those of another.
async fn drive(server: &Server, key: &str, turn: u8) {
    let work = Work { records: server.records().clone(), file: server.data().parent().unwrap().join("steps") };
    partners(server, key, turn).await;
    people(server, key, turn).await;
    operators(server, turn).await;
    commands(server, &work.file);
    if let Records::Sqlite { .. } = server.records() {
        // Each worker has looked for something to do.
        for part in [
            "FROM regroupings", "FROM requalifications", "FROM campaign_mailings", "DELETE FROM campaign_mails",
            "ORDER BY o.send_after LIMIT", "FROM webhook_endpoints e", "FROM member_changes",
        ] {
            until(part, async || work.steps().keys().any(|one| one.contains(part))).await;
        }
    }
}

async fn partners(server: &Server, key: &str, turn: u8) {
    let bearer = format!("Bearer {key}");
    for n in 0..3 {
        let name = format!("turn{turn}-{n}");
        let request = Request::post("/v1/invite").header("authorization", &bearer).header("idempotency-key", &name);
        let body = json!({ "email": format!("{name}@example.com"), "refCode": "100000000001" }).to_string();
        assert_eq!(server.send(request, body).await.status, 200);
    }
    server.post("/v1/referral-link", key, json!({ "email": "ana@gmail.com" }).to_string()).await.good();
    for path in [
        "/v1/stats", "/partner/v1/sign-ups", "/partner/v1/sign-ups?since=2100-01-01T00:00:00Z",
        "/partner/v1/sign-ups?limit=1", "/partner/v1/sign-ups/old-7", "/partner/v1/events", "/partner/v1/usage",
        "/partner/v1/keys", "/partner/v1/webhooks", "/partner/v1/webhooks/1", "/partner/v1/webhooks/2",
    ] {
        let answer = server.send(Request::get(path).header("authorization", &bearer), "").await;
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
    }
}

async fn people(server: &Server, key: &str, turn: u8) {
    for path in
        ["/", "/join", "/joinus100000000001", "/campaigns", "/campaigns.json", "/campaigns/gathers", "/campaigns/runs"]
    {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    let newest = async |name: &str| {
        let body = json!({ "email": name, "refCode": "100000000001" });
        server.post("/v1/invite", key, body.to_string()).await.good();
        server.number("SELECT max(id) FROM sign_ups")
    };
    let (confirmed, declined) =
        (newest(&format!("ana+new{turn}@gmail.com")).await, newest(&format!("not{turn}@example.com")).await);
    assert_eq!(server.get(&server.confirm_path(confirmed)).await.status, 200);
    assert_eq!(server.confirm(confirmed).await.status, 200);
    server.decline(declined).await;
    let mut ana = Browser::member(server, turn, "ana@gmail.com").await;
    let page = ana.get("/me").await;
    assert!(String::from_utf8_lossy(&page.body).contains("1,000+"), "{page:?}");
    for path in ["/me/leave", "/me/erase", "/campaigns/gathers"] {
        assert_eq!(ana.get(path).await.status, 200, "{path}");
    }
    ana.act("/campaigns/gathers", &[("press", "in")]).await;
    ana.change_answers(&[("usState", "NY")]).await;
    ana.act("/me/mail", &[]).await;
}

async fn operators(server: &Server, turn: u8) {
    let mut operator = operator_page::signed_in(server, &format!("kim{turn}"), 40 + turn).await;
    for path in [
        "/operator", "/operator/mail", "/operator/audit", "/operator/audit?what=nothing", "/operator/people",
        "/operator/partners", "/operator/partners/1", "/operator/campaigns", "/operator/campaigns/gathers",
        "/operator/campaigns/runs", "/operator/rewards", "/operator/mail/outbox", "/operator/mail/outbox?after=7",
        "/operator/mail/previews/confirm.en", "/operator/backup", "/operator/partners/1/webhooks",
        "/operator/partners/1/settings", "/operator/partners/test-keys",
    ] {
        let answer = operator.get(path).await;
        assert!([200, 404].contains(&answer.status.as_u16()), "{path}: {answer:?}");
    }
    let mut asking = operator_page::signed_in(server, &format!("lee{turn}"), 60 + turn).await;
    let (phone, codes) = operator_sign_in::set_up(&mut asking).await;
    let link = operator_page::path_of(&server.run(&["operator", "link", &format!("lee{turn}")]));
    asking.post(&link, &[]).await;
    operator_sign_in::types(&mut asking, &phone.code()).await;
    operator_sign_in::types(&mut asking, &codes[0]).await;
    operator_page::act(&mut asking, "/operator/account", &[("act", "new-codes"), ("code", &codes[1])]).await;
    operator_page::act(&mut asking, "/operator/account", &[("act", "sign-out-everywhere")]).await;
    asking.post("/operator/sign-in", &[("email", "nobody@union.example")]).await;
    for who in ["ana@gmail.com", "r7@example.com", "100000000001", "aaaaaaaaaaaaaaaa"] {
        assert_eq!(operator_page::act(&mut operator, "/operator/people", &[("text", who)]).await.status, 200);
    }
    for path in ["/operator/people/export", "/operator/people/unsuppress", "/operator/people/retry"] {
        let fields = [("email", "r7@example.com"), ("sure", "yes")];
        assert_eq!(operator_page::act(&mut operator, path, &fields).await.status, 200, "{path}");
    }
}

fn commands(server: &Server, steps: &Path) {
    command(server, steps, &["partners", "show", "Acme Assistant"]);
    for line in [
        "keys list", "partners list", "members count", "members show ana@gmail.com", "members find r7@",
        "signups status", "mail list", "campaigns list", "campaigns show gathers", "campaigns demand gathers",
        "campaigns demand gathers --history", "campaigns demand gathers --markdown", "campaigns rounds gathers",
        "rewards list", "rewards review", "stats", "audit", "operator list", "doctor",
    ] {
        command(server, steps, &line.split(' ').collect::<Vec<_>>());
    }
}

fn command(server: &Server, steps: &Path, arguments: &[&str]) {
    let output = server.command().args(arguments).env("UNIONHALL_TEST_STEPS", steps).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    // What `doctor` finds fault with is no fault of this test's.
    assert!(output.status.success() || arguments == ["doctor"], "{arguments:?}: {told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_request_sets_off_does_not_grow_with_what_is_stored() {
    let server = start(Home::new());
    let key = found(&server).await;
    let home = server.stop().1;
    let server = start(home);
    crowd::fill(&server);
    let mut home = server.stop().1;
    let work = Work::of(&home);
    // PostgreSQL plans for the values, and for any values: both are looked at. It knows the tables as autovacuum would.
    let plans: &[&str] = match &work.records {
        Records::Sqlite { .. } => &[""],
        Records::Postgres { .. } => &["force_custom_plan", "force_generic_plan"],
    };
    let mut excess = Vec::new();
    for (turn, plan) in (1..).zip(plans) {
        if let Records::Postgres { store, .. } = &work.records {
            let name = store.rsplit('/').next().unwrap();
            ask(store, &format!("ALTER DATABASE {name} SET plan_cache_mode = {plan}")).unwrap();
            ask(store, "ANALYZE").unwrap();
        }
        work.begin();
        let server = start(home);
        drive(&server, &key, turn).await;
        if usize::from(turn) == plans.len() {
            // Both are done in steps.
            command(&server, &work.file, &["members", "export"]);
            command(&server, &work.file, &["members", "erase", "ana@gmail.com", "--waive-rewards"]);
        }
        home = server.stop().1;
        excess.extend(work.excess().into_iter().map(|found| format!("{plan} {found}")));
    }
    assert!(excess.is_empty(), "{ROWS} rows of each kind:\n{}", excess.join("\n"));
}
