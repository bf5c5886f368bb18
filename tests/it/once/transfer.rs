//! `unionhall move`: everything arrives, once, and nothing is taken in afterwards where nobody would look.

use rusqlite::Connection;

use crate::prelude::*;
use unionhall::store::transfer::TABLES;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    unionhall(folder).args(arguments).output().unwrap()
}

#[track_caller]
fn moves(folder: &Path, from: &str, to: &str) -> String {
    let output = run(folder, &["move", "--from", from, "--to", to]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refusal(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Every row of every table, as text.
fn everything(file: &Path) -> Vec<String> {
    let connection = Connection::open(file).unwrap();
    let mut rows = Vec::new();
    for table in TABLES {
        let quoted = "SELECT 'quote(' || name || ')' FROM pragma_table_info(?1)";
        let mut columns = connection.prepare(quoted).unwrap();
        let columns: Vec<String> =
            columns.query_map([table.name], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        let sql = format!("SELECT {} FROM {} ORDER BY 1", columns.join(" || ',' || "), table.name);
        let mut statement = connection.prepare(&sql).unwrap();
        rows.extend(statement.query_map([], |row| row.get(0)).unwrap().map(|row: Result<String, _>| row.unwrap()));
    }
    // What a copy knows and its source cannot.
    rows.retain(|row| !row.contains("'move','from "));
    rows
}

/// A server that has seen some life: keys, a member, a referred one, one who declined, mail that waits.
async fn lived_in() -> Server {
    let (server, key) = Server::with_key(&["--store", "sqlite:", "--mail", "hold"]);
    for n in 0..30 {
        let comments = "it's \u{1f600}\n\"quoted\"";
        let body =
            serde_json::json!({ "email": format!("user{n}@exämple.com"), "otherComments": comments, "usState": "CA" });
        server.post("/v1/invite", &key, body.to_string()).await.good();
    }
    server.run(&["keys", "revoke", &key[3..11]]);
    let connection = Connection::open(server.data().join("unionhall.db")).unwrap();
    connection
        .execute_batch(
            "UPDATE people SET state = 'member', joined_at = 5, referrer_id = 9 WHERE id <= 3;
             UPDATE installation SET member_count = 3, signups_paused = 1;
             INSERT INTO mailboxes (mailbox, sent_1, last_mail_id) VALUES ('ü@exämple.com', 5, 7), ('a@b.example', 6, 8);
             INSERT INTO campaigns (slug, definition, state, gather_until, created_at, reward_cents, group_size, max_groups, hold_days)
             VALUES ('one-2027', '', 'active', 1, 1, 10000, 5, 10, 30);
             INSERT INTO qualifications (campaign_id, person_id, referrer_id, qualified_at, group_id) VALUES (1, 1, 9, 5, 1);
             INSERT INTO reward_groups (referrer_id, campaign_id, state, formed_at, payout_id) VALUES (9, 1, 'accrued', 0, 1);
             INSERT INTO reward_ledger (id, account, campaign_id, kind, amount_cents, at, who, why)
             VALUES (3, 'account', 1, 'accrual', 10000, 7, 'rules', 'a group'), (8, 'account', 1, 'payout', -10000, 8, 'op', 'payout x');
             INSERT INTO payout_batches (created_at, who, filled_at) VALUES (7, 'op', 7);
             INSERT INTO payouts (batch_id, external_id, account, campaign_id, amount_cents, group_count, state)
             VALUES (1, 'x', 'account', 1, 10000, 1, 'out');
             INSERT INTO referrers (person_id, rewarded_groups, rewarded_cents, rest_due) VALUES (9, 1, 10000, 1);
             INSERT INTO regroupings (referrer_id, campaign_id) VALUES (9, 1);
             INSERT INTO requalifications (person_id) VALUES (4) ON CONFLICT DO NOTHING;
             DELETE FROM outbox WHERE id > 20",
        )
        .unwrap();
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn records_go_to_postgres_and_back_and_are_the_same() {
    needs!(Postgres);
    let server = lived_in().await;
    // The end writes down how often keys were used.
    let data = server.data();
    let (_, folder) = server.stop();
    let before = everything(&data.join("unionhall.db"));
    let database = Database::make().await;
    let told = moves(folder.path(), "sqlite:", &database.url());
    assert!(
        told.contains("people                  30  ") && told.contains("UNIONHALL_SECRET_FILE=data/secret"),
        "{told}"
    );
    let client = database.client().await;
    let row = client.query_one("SELECT nextval('outbox_id_seq'), nextval('people_id_seq')", &[]).await.unwrap();
    assert_eq!([row.get::<_, i64>(0), row.get(1)], [31, 31], "no number comes back, even of mail that has gone");

    holds(&moves(folder.path(), &database.url(), "sqlite:back.db"), &["Nothing in the database test_"]);
    assert_eq!(everything(&folder.path().join("back.db")), before);
    let back = Connection::open(folder.path().join("back.db")).unwrap();
    let next: i64 =
        back.query_row("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'", [], |row| row.get(0)).unwrap();
    assert_eq!(next, 31);
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(folder.path().join("back.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "addresses are in it");
    let keys = run(folder.path(), &["keys", "list", "--store", "sqlite:back.db"]);
    assert!(String::from_utf8_lossy(&keys.stdout).contains("revoked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_place_takes_nothing_any_more_even_from_a_running_service() {
    needs!(Postgres);
    let server = lived_in().await;
    let database = Database::make().await;
    let key = server.key();
    server.run(&["signups", "resume"]);
    let told = server.run(&["move", "--from", "sqlite:", "--to", &database.url()]);
    assert!(told.contains("The records are now in the database"), "{told}");
    server.post("/v1/invite", &key, sign_up("late@example.com")).await.refused(500, "save_failed");
    server.get("/v1/negotiate-categories").await.good();
    wait_for!(async || { server.log().contains("these records were moved to another store") }).await;

    let (_, folder) = server.stop();
    let told = refusal(&run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]));
    assert!(told.contains("data/unionhall.db were moved to the database test_"), "{told}");
    // And the other way.
    moves(folder.path(), &database.url(), "sqlite:back.db");
    let error = database.client().await.batch_execute("UPDATE people SET email = email").await.unwrap_err();
    assert!(error.as_db_error().unwrap().message().contains("moved to another store"));
    let secret = ["--secret-file", "data/secret", "--store", &database.url()];
    let told = refusal(&run(folder.path(), &[&["serve", "--listen", "127.0.0.1:0"], &secret[..]].concat()));
    assert!(told.contains("were moved to back.db"), "{told}");
}

/// Both claim the database and the secret at the same moment. One had died of a lock that the other held.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_at_once_after_a_move_all_come_up() {
    needs!(Postgres, Redis);
    let (server, key) = Server::with_key(&["--store", "sqlite:", "--mail", "hold"]);
    let before = server.post("/v1/referral-link", &key, sign_up("ana@example.com")).await.good();
    let home = server.stopped();
    let moved = Home::on_postgres(tempfile::tempdir().unwrap());
    moved.prepare_empty();
    let Records::Postgres { store, .. } = moved.records() else { unreachable!() };
    moves(home.path(), "sqlite:", store);
    let secret = home.path().join("data/secret");
    let start = || {
        let node = Home::sharing(moved.records());
        let mut command = unionhall(node.path());
        command.envs(moved.records().settings()).env("UNIONHALL_SECRET", "").env("UNIONHALL_SECRET_FILE", &secret);
        Server::start_as(command, node, &["--mail", "hold"])
    };
    let nodes: Vec<_> = std::thread::scope(|scope| {
        let starting = [(); 4].map(|()| scope.spawn(start));
        starting.into_iter().map(|node| node.join().unwrap()).collect()
    });
    for node in &nodes {
        let link = node.post("/v1/referral-link", &key, sign_up("ana@example.com")).await.good();
        assert_eq!(link["code"], before["code"]);
        // On a busy machine a Redis may be late for a moment, which is told and no fault of a start.
        let log = node.log();
        let complaints: Vec<_> = log.lines().filter(|line| !line.contains("the limits are ")).collect();
        assert!(complaints.is_empty(), "nobody has anything to complain of: {complaints:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_in_use_is_refused_and_nothing_changes() {
    needs!(Postgres);
    let server = lived_in().await;
    let (_, folder) = server.stop();
    let database = Database::make().await;
    let key = run(folder.path(), &["keys", "issue", "Other", "--new", "--store", &database.url()]);
    assert!(key.status.success());
    let before = everything(&folder.path().join("data/unionhall.db"));
    let told = refusal(&run(folder.path(), &["move", "--from", "sqlite:", "--to", &database.url()]));
    assert!(told.contains("the target is not empty: there are rows in partners"), "{told}");
    assert_eq!(everything(&folder.path().join("data/unionhall.db")), before);
    let told = refusal(&run(folder.path(), &["move", "--from", "sqlite:", "--to", "sqlite:data/unionhall.db"]));
    assert!(told.contains("are the same"), "{told}");
    let told = refusal(&run(folder.path(), &["move", "--from", "sqlite:none.db", "--to", &database.url()]));
    assert!(told.contains("there are no records at none.db"), "{told}");
    assert!(!folder.path().join("none.db").exists());
    let wrong = refusal(&run(folder.path(), &["move", "--from", "sqlite:", "--to", "mysql://u:hunter2@h/d"]));
    assert!(wrong.contains("--to: the store is not understood") && !wrong.contains("hunter2"), "{wrong}");
    run(folder.path(), &["serve", "--help"]);
}

/// Ended in the middle, by whatever it may be: the source still serves, and the next run does it all.
#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_was_interrupted_is_simply_run_again() {
    needs!(Postgres);
    let server = lived_in().await;
    Connection::open(server.data().join("unionhall.db"))
        .unwrap()
        .execute_batch(
            "WITH RECURSIVE n (i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
             INSERT INTO people (id, email, email_normalized, mailbox, code, state, created_at)
             SELECT i, i || '@x.example', i || '@x.example', i || '@x.example', printf('%012d', i), 'invited', 1 FROM n",
        )
        .unwrap();
    let (_, folder) = server.stop();
    let database = Database::make().await;
    for target in [database.url(), "sqlite:copy.db".to_owned()] {
        let mut process = interruptible(folder.path(), &target);
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        lines.find(|line| line.as_ref().unwrap().starts_with("copying people")).unwrap().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        assert!(!folder.path().join("copy.db").exists(), "half a copy is no copy");
    }
    let left = database.client().await.query_one("SELECT count(*) FROM people", &[]).await.unwrap();
    assert_eq!(left.get::<_, i64>(0), 0);
    moves(folder.path(), "sqlite:", "sqlite:copy.db");
    // Ended between the last two steps: the copy is whole, and the source does not know yet.
    Connection::open(folder.path().join("data/unionhall.db")).unwrap().execute_batch(&still_in_use()).unwrap();
    let unsaid = "DROP TRIGGER audit_refuse_delete; DELETE FROM audit WHERE command = 'move';
                  UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'audit';
                  CREATE TRIGGER audit_refuse_delete BEFORE DELETE ON audit
                  BEGIN SELECT RAISE(ABORT, 'the table audit is append-only'); END";
    Connection::open(folder.path().join("copy.db")).unwrap().execute_batch(unsaid).unwrap();
    holds(&moves(folder.path(), "sqlite:", "sqlite:copy.db"), &["The records are now in copy.db"]);
    moves(folder.path(), "sqlite:copy.db", &database.url());
    let there = database.client().await.query_one("SELECT count(*) FROM people", &[]).await.unwrap();
    assert_eq!(there.get::<_, i64>(0), 59_031);
}

fn interruptible(folder: &Path, target: &str) -> std::process::Child {
    let mut command: Command = unionhall(folder);
    command.args(["move", "--from", "sqlite:", "--to", target]).stderr(Stdio::piped()).stdout(Stdio::null());
    command.spawn().unwrap()
}

/// Takes back what retiring did.
fn still_in_use() -> String {
    let triggers = TABLES.iter().flat_map(|table| {
        ["INSERT", "UPDATE", "DELETE"].map(|change| format!("DROP TRIGGER moved_{}_{change};", table.name))
    });
    triggers.chain(["DROP TABLE moved;".to_owned()]).collect()
}

/// A table that a migration adds must be copied too; and both engines have the same columns, which `move` reads from them.
#[tokio::test(flavor = "multi_thread")]
async fn no_table_and_no_column_is_forgotten() {
    needs!(Postgres);
    let database = Database::make().await;
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path(), &["keys", "issue", "Acme", "--new"]).status.success());
    assert!(run(folder.path(), &["keys", "issue", "Acme", "--new", "--store", &database.url()]).status.success());
    let sqlite = Connection::open(folder.path().join("data/unionhall.db")).unwrap();
    let mut statement = sqlite
        .prepare(
            "SELECT t.name || '.' || c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
             WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND t.name <> 'unionhall_schema' ORDER BY 1",
        )
        .unwrap();
    let of_sqlite: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let tables: BTreeSet<_> = of_sqlite.iter().filter_map(|column| Some(column.split_once('.')?.0)).collect();
    assert_eq!(tables, TABLES.iter().map(|table| table.name).collect());
    let rows = database
        .client()
        .await
        .query(
            "SELECT (table_name || '.' || column_name) COLLATE \"C\" FROM information_schema.columns
             WHERE table_schema = 'public' AND table_name <> 'unionhall_schema' ORDER BY 1",
            &[],
        )
        .await
        .unwrap();
    let columns: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(columns, of_sqlite);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_carried_whole_is_not_carried_at_all() {
    let (_, folder) = lived_in().await.stop();
    let file = folder.path().join("data/unionhall.db");
    // The key of the last row of a page, in bytes that are no text.
    Connection::open(&file)
        .unwrap()
        .execute_batch(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1997)
             INSERT INTO mailboxes (mailbox) SELECT printf('%05d@x.example', i) FROM n;
             INSERT INTO mailboxes (mailbox) VALUES (CAST(x'e0ff' AS TEXT)), (CAST(x'f0ff' AS TEXT))",
        )
        .unwrap();
    let told = refusal(&run(folder.path(), &["move", "--from", "sqlite:", "--to", "sqlite:copy.db"]));
    assert!(told.contains("the source, at mailboxes") && told.contains("utf-8"), "{told}");
    assert!(!folder.path().join("copy.db").exists());
    Connection::open(&file).unwrap().execute_batch("DELETE FROM mailboxes").expect("still in use");
    // What an earlier database of that name left behind would be read into the copy.
    std::fs::write(folder.path().join("copy.db-wal"), "left behind").unwrap();
    let told = refusal(&run(folder.path(), &["move", "--from", "sqlite:", "--to", "sqlite:copy.db"]));
    assert!(told.contains("copy.db-wal is left of another database"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_our_tables_is_no_source_and_gets_none_by_looking() {
    needs!(Postgres);
    let database = Database::make().await;
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["keys", "list", "--store", &database.url()][..],
        &["signups", "pause", "--store", &database.url()],
        &["move", "--from", &database.url(), "--to", "sqlite:copy.db"],
    ] {
        holds(&refusal(&run(folder.path(), arguments)), &["there are no records in it; is this the right database?"]);
    }
    let client = database.client().await;
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(client.query_one(tables, &[]).await.unwrap().get::<_, i64>(0), 0);
    // A schema that is newer, though it serves us, may hold what we would leave behind.
    assert!(run(folder.path(), &["keys", "issue", "Acme", "--new", "--store", &database.url()]).status.success());
    client.batch_execute("INSERT INTO unionhall_schema VALUES (99, 1, 'x')").await.unwrap();
    let told = refusal(&run(folder.path(), &["move", "--from", &database.url(), "--to", "sqlite:copy.db"]));
    assert!(told.contains("by a newer unionhall (schema 99"), "{told}");
}
