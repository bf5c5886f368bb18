//! What the operator asks costs the same at two million people.

use crate::prelude::*;
use rusqlite::Connection;

const PEOPLE: u64 = 2_000_000;

/// People over a year, four in five of them members, through twenty partners, from every second state and with two wishes each.
const FILL: &str = "
    PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; PRAGMA cache_size = -500000; PRAGMA foreign_keys = OFF; BEGIN;
    UPDATE sign_ups SET created_at = 1759999999999;
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000)
    INSERT INTO people (id, email, email_normalized, mailbox, code, state, created_at, joined_at, referrer_id)
    SELECT i + 1, 'm' || i || '@example.org', 'm' || i || '@example.org', 'm' || i || '@example.org', printf('%012d', i),
           CASE WHEN i % 5 = 0 THEN 'invited' ELSE 'member' END, 1760000000000 + i * 15000,
           CASE WHEN i % 5 = 0 THEN NULL ELSE 1760000000000 + i * 15000 END, CASE WHEN i % 7 = 0 THEN 2 + i % 1000 END
    FROM n;
    INSERT INTO partners (id, name, created_at) SELECT 100 + i, 'Partner ' || i, 0 FROM
        (WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19) SELECT i FROM n);
    INSERT INTO api_keys (id, partner_id, hash, created_at) SELECT printf('key%05d', id), id, x'00', 0 FROM partners WHERE id >= 100;
    INSERT INTO sign_ups (person_id, key_id, partner_id, state, us_state, categories, consent_version, created_at, updated_at, expires_at,
                          decided_at)
    SELECT id, printf('key%05d', 100 + id % 20), 100 + id % 20, CASE state WHEN 'member' THEN 'confirmed' ELSE 'expired' END,
           CASE id % 3 WHEN 0 THEN 'CA' WHEN 1 THEN 'NY' END, 'internet,travel', 1, created_at, created_at, created_at,
           coalesce(joined_at, created_at)
    FROM people WHERE id > 1;
    INSERT INTO member_changes (at, change, partner_id, key_id, us_state, categories, referrer_id)
    SELECT p.joined_at, 1, s.partner_id, s.key_id, s.us_state, s.categories, p.referrer_id
    FROM people p JOIN sign_ups s ON s.person_id = p.id WHERE p.id > 1 AND p.state = 'member';
    UPDATE installation SET member_count = (SELECT count(*) FROM people WHERE state = 'member');
    COMMIT; PRAGMA journal_mode = WAL";

/// The processor's time that a command takes, in seconds.
fn processor_time(server: &Server, arguments: &[&str]) -> f64 {
    let script = "TIMEFORMAT='%U %S'; time \"$@\" > out.json";
    let binary = env!("CARGO_BIN_EXE_unionhall");
    let run = server.command_of("bash").args(["-c", script, "bash", binary]).args(arguments).output().unwrap();
    let told = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.success(), "{told}");
    told.split_whitespace().map(|part| part.parse::<f64>().unwrap()).sum()
}

#[test]
fn figures_and_export_at_two_million_people() {
    needs!(LongRun);
    let (server, key) = Server::with_key(&["--store", "sqlite:", "--mail", "hold"]);
    block_on(server.post("/v1/invite", &key, sign_up("first@example.com"))).good();
    let (_, home) = server.stop();
    Connection::open(home.path().join("data/unionhall.db")).unwrap().execute_batch(FILL).unwrap();
    let server = Server::start_in(home, &["--store", "sqlite:", "--mail", "hold"]);
    println!("first roll-up: {:.1} s of CPU", processor_time(&server, &["stats", "--json"]));
    for by in ["day", "partner", "state", "category", "referrer"] {
        let took = processor_time(&server, &["stats", "--by", by, "--json"]);
        println!("stats --by {by}: {took:.2} s of CPU");
        assert!(took < 1.0, "stats --by {by} took {took:.2} s");
    }
    let stats = server.json(&["stats", "--json"]);
    assert_eq!(stats["members"], PEOPLE / 5 * 4);
    assert_eq!(stats["funnel"]["confirmed"], PEOPLE / 5 * 4);
    assert_eq!(stats["funnel"]["signedUp"], PEOPLE + 1);
    let demand = server.json(&["stats", "--by", "state", "--category", "internet", "--json"]);
    let all: u64 = demand.as_array().unwrap().iter().map(|cell| cell["members"].as_u64().unwrap()).sum();
    assert_eq!(all, PEOPLE / 5 * 4);

    for format in ["csv", "jsonl"] {
        let lines = Command::new("wc").arg("-l").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = lines;
        let mut export = server
            .command()
            .args(["members", "export", "--state", "all", "--format", format])
            .stdout(lines.stdin.take().unwrap())
            .spawn()
            .unwrap();
        let mut most = 0;
        while export.try_wait().unwrap().is_none() {
            most = most.max(crate::server::resident(export.id()));
            std::thread::sleep(Duration::from_millis(20));
        }
        let counted = String::from_utf8(lines.wait_with_output().unwrap().stdout).unwrap();
        println!("export as {format}: {} MB resident at the most", most >> 20);
        assert_eq!(counted.trim().parse::<u64>().unwrap(), PEOPLE + 1 + u64::from(format == "csv"));
        assert!(most < 100 << 20, "{} MB", most >> 20);
    }
}
