//! Schemas change under records that are there: a filled database of each released schema becomes one of the newest, row by
//! row; what would break it leaves it as it was; and a command never changes the schema under a running server.

use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;
use rusqlite::types::Value;
use unionhall::domain::email::EmailAddress;
use unionhall::domain::mail::budget::MailBudget;
use unionhall::domain::referral::CodeMaker;
use unionhall::domain::secret::Secret;
use unionhall::domain::sign_up::{Confirmation, NamedPerson, SeenPage, SignUpId};
use unionhall::domain::time::Timestamp;
use unionhall::store::figures::Funnel;
use unionhall::store::migration::{MIGRATIONS, Migration, Prepare};
use unionhall::store::postgres::PostgresStore;
use unionhall::store::sqlite::SqliteStore;
use unionhall::store::transfer::{TABLES, Table};
use unionhall::store::{Claim, InstallationStore, MemberStore, Store};

use crate::database::Database;
use crate::server::block_on;

/// What the fixtures' records were made with.
const SECRET: &str = "the secret of the first schema's fixture";

/// A while after they were made.
const NOW: Timestamp = Timestamp::from_millis(1_794_743_200_000);

/// Records of the first schema, in a folder of their own.
fn first_schema() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unionhall.db");
    std::fs::write(&path, include_bytes!("../fixtures/schema-1.db")).unwrap();
    (folder, path)
}

/// Tables that came after the fixtures' schemas.
const LATER: &[&str] = &[
    "readiness",
    "source_days",
    "used_once",
    "audit",
    "demand",
    "referrers",
    "rollup",
    "member_changes",
    "notices",
    "sign_ins",
    "stopped_partners",
    "partners",
    "idempotency_keys",
    "webhook_endpoints",
    "webhook_deliveries",
    "inbox",
];

/// Columns that came after them.
const LATER_COLUMNS: &[&str] = &[
    "slot",
    "lane",
    "pass",
    "held_at",
    "source_1",
    "source_2",
    "source_3",
    "source_4",
    "soft_bounces",
    "disposable",
    "complained_at",
    "account",
    "left_at",
    "erased_at",
    "signed_up",
    "confirmed",
    "declined",
    "session",
    "wrong_codes",
    "wrong_codes_day",
    "own_us_state",
    "own_categories",
    "own_comments",
    "answered_at",
    "unwanted_mail",
    "uncredited",
    "language",
    "channel",
    "client",
    "notice",
    "mailed_at",
    "decided_how",
    "sign_in_id",
];

/// The columns that the fixtures have.
fn columns(table: &Table) -> Vec<&'static str> {
    table.columns.split(',').map(str::trim).filter(|column| !LATER_COLUMNS.contains(column)).collect()
}

/// Every row of every table that the fixtures have, as text, in the order of their keys.
fn rows(path: &Path) -> Vec<(&'static str, Vec<Vec<String>>)> {
    let connection = Connection::open(path).unwrap();
    let table = |table: &Table| {
        let columns = columns(table);
        let sql = format!("SELECT {} FROM {} ORDER BY {}", columns.join(", "), table.name, table.key());
        let mut statement = connection.prepare(&sql).unwrap();
        let cell = |row: &rusqlite::Row<'_>, column: usize| match row.get::<_, Value>(column).unwrap() {
            Value::Null => "-".to_owned(),
            Value::Integer(number) => number.to_string(),
            Value::Real(number) => number.to_string(),
            Value::Text(text) => text,
            Value::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        let all = statement.query_map([], |row| Ok((0..columns.len()).map(|column| cell(row, column)).collect()));
        (table.name, all.unwrap().map(Result::unwrap).collect())
    };
    TABLES.iter().filter(|table| !LATER.contains(&table.name)).map(table).collect()
}

fn schema_version(path: &Path) -> i64 {
    Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// What a union can do with records that were made by an older program.
async fn is_of_use(store: &dyn Store) {
    let secret = Secret::new(SECRET).unwrap();
    assert_eq!(store.claim_secret(secret.fingerprint()).await, Ok(Claim::Same));
    assert_eq!(store.member_count().await, Ok(3));
    let keys = store.list_keys().await.unwrap();
    let partners: Vec<_> = keys.iter().map(|(key, figures)| (key.partner.as_str(), figures.declined)).collect();
    assert_eq!(partners, [("Acme Assistant", 0), ("Zoë's Helper", 1), ("Gone", 0)]);
    // What happened before there were figures is in them.
    while store.roll_up(NOW).await.unwrap() {}
    let mut before = Funnel::default();
    store.sources_since(0).await.unwrap().iter().for_each(|(_, funnel)| before += *funnel);
    assert_eq!((before.signed_up, before.confirmed), (12, 3), "{before:?}");
    let email = |text: &str| EmailAddress::parse(text).unwrap();
    let codes = CodeMaker::new(&secret);
    for known in ["ana@example.com", "gus@exämple.com", "f.a.y@googlemail.com"] {
        let kept = store.referral_code(&email(known)).await.unwrap().unwrap();
        assert_eq!(kept, codes.code(&email(known), 0), "{known} keeps their code");
    }
    let new = email("new@example.com");
    let person = NamedPerson { code: codes.code(&new, 0), tombstone: super::tombstone(&new), email: new };
    store.create_referral_code(person, NOW).await.unwrap();
    assert_eq!(store.confirm(SignUpId(1), SeenPage::default(), NOW).await, Ok(Confirmation::AlreadyMember));
    assert_eq!(store.confirm(SignUpId(4), SeenPage::default(), NOW).await, Ok(Confirmation::Declined));
    assert_eq!(store.confirm(SignUpId(5), SeenPage::default(), NOW).await, Ok(Confirmation::Joined));
    assert_eq!(store.member_count().await, Ok(4));
    let due = store.lease_mail("w", 100, Vec::new(), MailBudget::NONE, NOW).await.unwrap().mails;
    assert_eq!(due.iter().map(|mail| mail.recipient.as_str()).collect::<Vec<_>>(), ["ivy@example.com"]);
    store.close().await.unwrap();
}

#[test]
fn records_of_older_schemas_are_brought_up_to_date_on_sqlite() {
    let fixtures = [
        &include_bytes!("../fixtures/schema-1.db")[..],
        include_bytes!("../fixtures/schema-2.db"),
        include_bytes!("../fixtures/schema-3.db"),
        include_bytes!("../fixtures/schema-4.db"),
        include_bytes!("../fixtures/schema-5.db"),
        include_bytes!("../fixtures/schema-6.db"),
        include_bytes!("../fixtures/schema-7.db"),
        include_bytes!("../fixtures/schema-8.db"),
    ];
    for (schema, fixture) in (1..).zip(fixtures) {
        let (_folder, path) = first_schema();
        std::fs::write(&path, fixture).unwrap();
        brought_up_to_date(&path, schema);
    }
}

fn brought_up_to_date(path: &Path, schema: i64) {
    let before = rows(path);
    assert!(before.iter().all(|(table, rows)| !rows.is_empty() || panic!("{table} is empty")), "the fixture is filled");
    assert_eq!(schema_version(path), schema);
    block_on(async {
        let store = SqliteStore::open(path).unwrap();
        assert_eq!(rows(path), before, "every row as it was");
        is_of_use(&store).await;
    });
    assert_eq!(schema_version(path), MIGRATIONS.len() as i64);
    let connection = Connection::open(path).unwrap();
    let broken: i64 =
        connection.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0)).unwrap();
    assert_eq!(broken, 0);
}

#[test]
fn the_id_of_a_person_is_never_given_to_another() {
    let (_folder, path) = first_schema();
    block_on(async { SqliteStore::open(&path).unwrap().close().await.unwrap() });
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM people WHERE id = 10").unwrap();
    let add = "INSERT INTO people (email, email_normalized, mailbox, code, state, created_at)
               VALUES ('x@example.com', 'x@example.com', 'x@example.com', '0123456789ab', 'invited', 0) RETURNING id";
    assert_eq!(connection.query_row(add, [], |row| row.get::<_, i64>(0)).unwrap(), 11);
}

/// Its second schema differs from the first in its number alone; the third has a table more.
#[test]
fn records_of_older_schemas_are_brought_up_to_date_on_postgres() {
    let third = format!(
        "INSERT INTO unionhall_schema VALUES (2, 1), (3, 1); {}",
        include_str!("../../../migrations/postgres/0003_readiness.sql")
    );
    let fourth = format!(
        "{third}; INSERT INTO unionhall_schema VALUES (4, 4); {}",
        include_str!("../../../migrations/postgres/0004_fair_mail.sql")
    );
    let fifth = format!(
        "{fourth}; INSERT INTO unionhall_schema VALUES (5, 4); {}",
        include_str!("../../../migrations/postgres/0005_good_name.sql")
    );
    let sixth = format!(
        "{fifth}; INSERT INTO unionhall_schema VALUES (6, 4); {}",
        include_str!("../../../migrations/postgres/0006_operators_day.sql")
    );
    for later in ["", "INSERT INTO unionhall_schema VALUES (2, 1)", &third, &fourth, &fifth, &sixth] {
        brought_up_to_date_on_postgres(later);
    }
}

fn brought_up_to_date_on_postgres(later: &str) {
    block_on(async {
        let database = Database::make().await;
        let client = database.client().await;
        client.batch_execute(include_str!("../fixtures/schema-1.sql")).await.unwrap();
        client.batch_execute("SET search_path = public").await.unwrap();
        client.batch_execute(later).await.unwrap();
        let all = async || {
            let mut tables = Vec::new();
            for table in TABLES.iter().filter(|table| !LATER.contains(&table.name)) {
                let columns = columns(table).join(", ");
                let sql = format!("SELECT ROW({columns})::text FROM {} ORDER BY {}", table.name, table.key());
                let rows = client.query(&sql, &[]).await.unwrap();
                tables.push(rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>());
            }
            tables
        };
        let before = all().await;
        let refused = PostgresStore::open(database.address(), Prepare::Expect, 256).await.unwrap_err().to_string();
        assert!(refused.contains("schema ") && refused.contains("use the unionhall that serves them"), "{refused}");
        let store = PostgresStore::open(database.address(), Prepare::Upgrade, 256).await.unwrap();
        assert_eq!(all().await, before, "every row as it was");
        let version = client.query_one("SELECT max(version) FROM unionhall_schema", &[]).await.unwrap();
        assert_eq!(version.get::<_, i32>(0), i32::try_from(MIGRATIONS.len()).unwrap());
        is_of_use(&store).await;
        drop(client);
        database.drop().await;
    });
}

/// The steps there are, and one more.
fn and(step: Migration) -> &'static [Migration] {
    let all: Vec<_> = MIGRATIONS.iter().copied().chain([step]).collect();
    all.leak()
}

const REBUILD: Migration = Migration {
    sqlite: "CREATE TABLE api_keys_again (id TEXT PRIMARY KEY, partner TEXT NOT NULL, hash BLOB NOT NULL, per_minute INTEGER,
                 created_at INTEGER NOT NULL, expires_at INTEGER, last_used_at INTEGER, revoked_at INTEGER,
                 signed_up INTEGER NOT NULL DEFAULT 0, confirmed INTEGER NOT NULL DEFAULT 0,
                 declined INTEGER NOT NULL DEFAULT 0) STRICT;
             INSERT INTO api_keys_again SELECT * FROM api_keys;
             DROP TABLE api_keys;
             ALTER TABLE api_keys_again RENAME TO api_keys",
    postgres: "ALTER TABLE api_keys ADD COLUMN note TEXT",
    serves: 1,
    rebuilds: true,
    refolds: false,
};

#[test]
fn a_step_may_make_a_table_anew_and_one_that_breaks_references_is_refused() {
    let (_folder, path) = first_schema();
    let before = rows(&path);
    let breaking = Migration { sqlite: "DELETE FROM people WHERE id = 1", ..REBUILD };
    let refused = SqliteStore::open_with(&path, Prepare::Upgrade, 256, and(breaking)).unwrap_err().to_string();
    assert!(refused.contains("was left as it was"), "{refused}");
    assert_eq!((schema_version(&path), rows(&path)), (1, before.clone()), "not even the steps before it were kept");

    block_on(async {
        let store = SqliteStore::open_with(&path, Prepare::Upgrade, 256, and(REBUILD)).unwrap();
        assert_eq!(rows(&path), before);
        is_of_use(&store).await;
    });
    assert_eq!(schema_version(&path), MIGRATIONS.len() as i64 + 1);
    let newer = SqliteStore::open(&path).unwrap_err().to_string();
    assert!(newer.contains("newer unionhall"), "{newer}");
}

/// Its triggers would go with a table that is made anew.
#[test]
fn records_that_were_moved_away_stay_as_they_were_left() {
    let (_folder, path) = first_schema();
    let moved = "CREATE TABLE moved (place TEXT NOT NULL, at INTEGER NOT NULL) STRICT;
                 INSERT INTO moved VALUES ('the database hall at a:5432', 1794743200000)";
    Connection::open(&path).unwrap().execute_batch(moved).unwrap();
    for prepare in [Prepare::Expect, Prepare::Upgrade] {
        let refused = SqliteStore::open_with(&path, prepare, 256, MIGRATIONS).unwrap_err().to_string();
        assert!(refused.contains("were moved to the database hall at a:5432"), "{refused}");
    }
    assert_eq!(schema_version(&path), 1);
}

/// Two processes that start at once: one does the steps, both find them done.
#[test]
fn steps_are_done_once_however_many_start() {
    let (_folder, path) = first_schema();
    let starts: Vec<_> = (0..4)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || SqliteStore::open(&path).map(|_| ()).map_err(|error| error.to_string()))
        })
        .collect();
    for start in starts {
        start.join().unwrap().unwrap();
    }
    assert_eq!(schema_version(&path), MIGRATIONS.len() as i64);
}

#[test]
fn nodes_of_the_version_before_go_on_beside_a_newer_schema_on_postgres() {
    block_on(async {
        let database = Database::make().await;
        let older = PostgresStore::open(database.address(), Prepare::Upgrade, 256).await.unwrap();
        let newer = PostgresStore::open_with(database.address(), Prepare::Upgrade, 256, and(REBUILD)).await.unwrap();
        assert_eq!(older.member_count().await, Ok(0));
        let again = PostgresStore::open(database.address(), Prepare::Expect, 256).await.unwrap();
        for store in [older, newer, again] {
            store.check().await.unwrap();
            store.close().await.unwrap();
        }
        database.drop().await;
    });
}

#[test]
fn a_command_says_which_version_to_use_and_changes_nothing() {
    let (folder, path) = first_schema();
    let run = |arguments: &[&str]| {
        let program = Command::new(env!("CARGO_BIN_EXE_unionhall"))
            .args(arguments)
            .args(["--data", folder.path().to_str().unwrap()])
            .env_clear()
            .output()
            .unwrap();
        (program.status.success(), String::from_utf8(program.stderr).unwrap())
    };
    for command in [
        &["keys", "list"][..],
        &["keys", "issue", "Acme"],
        &["keys", "revoke", "armm0xyd"],
        &["mail", "list"],
        &["signups", "pause"],
        &["mcp"],
    ] {
        let (done, said) = run(command);
        assert!(!done && said.contains("use the unionhall that serves it"), "{command:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    assert_eq!(schema_version(&path), 1);
}

/// A proton.me address and its spellings, as they were told apart before.
const UNFOLDED: &str = "
    INSERT INTO people (id, email, email_normalized, mailbox, code, state, created_at) VALUES
        (9001, 'K.im@pm.me', 'k.im@pm.me', 'k.im@pm.me', 'zzzzzzzzzz01', 'invited', 0),
        (9002, 'kim@proton.me', 'kim@proton.me', 'kim@proton.me', 'zzzzzzzzzz02', 'invited', 0),
        (9003, 'k.im@example.com', 'k.im@example.com', 'k.im@example.com', 'zzzzzzzzzz03', 'invited', 0);
    INSERT INTO mailboxes (mailbox, sent_1, sent_2, holder, suppressed_until) VALUES
        ('k.im@pm.me', 500, 100, 7, 900), ('kim@proton.me', 300, NULL, 8, NULL), ('k.im@example.com', 400, 200, 9, 800)";

/// The mailboxes after it: each person's, and what is remembered of each.
const FOLDED: [&str; 3] = ["9001 kim@proton.me", "9002 kim@proton.me", "9003 k.im@example.com"];
const REMEMBERED: [&str; 2] = ["k.im@example.com 400 200 - - 9 800", "kim@proton.me 500 300 100 - 7 900"];

#[test]
fn spellings_that_a_step_makes_one_mailbox_are_put_together() {
    let (_folder, path) = first_schema();
    Connection::open(&path).unwrap().execute_batch(UNFOLDED).unwrap();
    block_on(async { SqliteStore::open(&path).unwrap().close().await.unwrap() });
    let connection = Connection::open(&path).unwrap();
    let texts = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(texts("SELECT id || ' ' || mailbox FROM people WHERE id > 9000 ORDER BY id"), FOLDED);
    assert_eq!(texts(KEPT_OF_MAILBOXES), REMEMBERED);

    block_on(async {
        let database = Database::make().await;
        let client = database.client().await;
        client.batch_execute(include_str!("../fixtures/schema-1.sql")).await.unwrap();
        client.batch_execute("SET search_path = public").await.unwrap();
        client.batch_execute(UNFOLDED).await.unwrap();
        let store = PostgresStore::open(database.address(), Prepare::Upgrade, 256).await.unwrap();
        let texts = async |sql: &str| -> Vec<String> {
            client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
        };
        assert_eq!(texts("SELECT id || ' ' || mailbox FROM people WHERE id > 9000 ORDER BY id").await, FOLDED);
        assert_eq!(texts(KEPT_OF_MAILBOXES).await, REMEMBERED);
        store.close().await.unwrap();
        drop(client);
        database.drop().await;
    });
}

const KEPT_OF_MAILBOXES: &str = "
    SELECT mailbox || ' ' || sent_1 || ' ' || sent_2 || ' ' || coalesce(CAST(sent_3 AS TEXT), '-') || ' '
           || coalesce(CAST(sent_4 AS TEXT), '-') || ' ' || holder || ' ' || suppressed_until
    FROM mailboxes WHERE mailbox LIKE 'k%im@%' ORDER BY mailbox";
