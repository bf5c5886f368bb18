//! The schema changes under existing records: a step keeps every row, a step that breaks references changes nothing, commands
//! never migrate, and records of another build are refused. Records of each released schema are brought up to date; the step
//! after today's is synthetic.

use crate::campaign_pages::OLD_OFFER;
use crate::prelude::*;
use rusqlite::Connection;
use unionhall::campaigns::drafts::ListOfferDrafts;
use unionhall::campaigns::records::FindCampaign;
use unionhall::campaigns::rounds::ListRounds;
use unionhall::campaigns::states::StepCampaign;
use unionhall::campaigns::{Stepped, TakenStep};
use unionhall::domain::campaign::offer::{Deal, Proposal};
use unionhall::domain::campaign::{CampaignSlug, CampaignState, CampaignStep};
use unionhall::domain::catalog::{CountsOn, ReferralTerms};
use unionhall::installation::{Claim, ClaimSecret, HeldSecret, PauseSignUps};
use unionhall::mail::sources::{FindMailFigures, MailFigures};
use unionhall::partners::endpoints::ListEndpoints;
use unionhall::rewards::payout::FindGeneration;
use unionhall::store::migration::Migration;
use unionhall::store::sqlite::SqliteStore;

/// Rows that refer to each other, in SQL for both engines.
const FILL: &str = "
    INSERT INTO partners (id, name, created_at) VALUES (1, 'Acme', 1);
    INSERT INTO people (id, email, email_normalized, mailbox, code, state, created_at, joined_at) VALUES
        (1, 'Ana@example.com', 'ana@example.com', 'ana@example.com', '0123456789ab', 'member', 1, 2),
        (2, 'gus@example.com', 'gus@example.com', 'gus@example.com', '0123456789cd', 'invited', 1, NULL);
    UPDATE people SET referrer_id = 1 WHERE id = 2;
    UPDATE installation SET member_count = 1";

const TODAY: i64 = MIGRATIONS.len() as i64;

/// The step after the ones there are: a column more, and a table that is made anew.
const NEXT: Migration = Migration {
    sqlite: "ALTER TABLE people ADD COLUMN pronoun TEXT NOT NULL DEFAULT 'they';
             CREATE TABLE partners_again (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, contact TEXT,
                 created_at INTEGER NOT NULL) STRICT;
             INSERT INTO partners_again SELECT id, name, contact, created_at FROM partners;
             DROP TABLE partners;
             ALTER TABLE partners_again RENAME TO partners",
    postgres: "ALTER TABLE people ADD COLUMN pronoun TEXT NOT NULL DEFAULT 'they'",
    serves: 1,
    rebuilds: true,
};

/// The steps there are, and one more.
fn and(step: Migration) -> &'static [Migration] {
    let all: Vec<_> = MIGRATIONS.iter().copied().chain([step]).collect();
    all.leak()
}

/// The steps there are, the first with another text: what an earlier build of the same version made.
fn of_another_build() -> &'static [Migration] {
    let [first, rest @ ..] = MIGRATIONS else { panic!("no steps") };
    let sqlite: &'static str = format!("{}; CREATE TABLE dropped (id INTEGER)", first.sqlite).leak();
    let postgres: &'static str = format!("{}; CREATE TABLE dropped (id INTEGER)", first.postgres).leak();
    let all: Vec<_> = [Migration { sqlite, postgres, ..*first }].into_iter().chain(rest.iter().copied()).collect();
    all.leak()
}

/// Filled records of today's schema, in a folder of their own.
fn records() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unionhall.db");
    block_on(async { OpenStore::new(SqliteStore::open(&path).unwrap()).close().await.unwrap() });
    Connection::open(&path).unwrap().execute_batch(FILL).unwrap();
    (folder, path)
}

const ROWS: &str =
    "SELECT id || ' ' || email || ' ' || code || ' ' || coalesce(CAST(referrer_id AS TEXT), '-') FROM people
                    UNION ALL SELECT id || ' ' || name FROM partners ORDER BY 1";

fn rows(path: &Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare(ROWS).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn schema_version(path: &Path) -> i64 {
    Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

/// The engine works on the records that it was given.
async fn works(store: &Store) {
    assert_eq!(store.member_count().await, Ok(1));
    assert_eq!(store.run(ClaimSecret(HeldSecret::only("a fingerprint".to_owned()))).await, Ok(Claim::First));
    assert_eq!(store.run(PauseSignUps(true)).await, Ok(true));
    store.check(true).await.unwrap();
    store.close().await.unwrap();
}

#[test]
fn a_step_keeps_every_row_on_sqlite() {
    let (_folder, path) = records();
    let before = rows(&path);
    let next = and(NEXT);
    let told = SqliteStore::open_with(&path, Prepare::Expect, 256, next).err().unwrap().to_string();
    assert!(
        told.contains(&format!("older unionhall (schema {TODAY}")) && told.contains("use the unionhall that serves it"),
        "{told}"
    );
    assert_eq!((schema_version(&path), rows(&path)), (TODAY, before.clone()), "a command changes nothing");
    block_on(async {
        works(&OpenStore::new(SqliteStore::open_with(&path, Prepare::Upgrade, 256, next).unwrap())).await;
        OpenStore::new(SqliteStore::open_with(&path, Prepare::Expect, 256, next).unwrap()).close().await.unwrap();
    });
    assert_eq!((schema_version(&path), rows(&path)), (TODAY + 1, before));
    let connection = Connection::open(&path).unwrap();
    let added = "SELECT count(*) FROM people WHERE pronoun = 'they'";
    assert_eq!(connection.query_row(added, [], |row| row.get::<_, i64>(0)).unwrap(), 2);
    holds(&SqliteStore::open(&path).err().unwrap().to_string(), &["newer unionhall"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_keeps_every_row_on_postgres_and_nodes_before_it_go_on() {
    needs!(Postgres);
    let database = Database::make().await;
    let client = database.client().await;
    let older = OpenStore::new(PostgresStore::open(database.address(), Prepare::Upgrade, 256).await.unwrap());
    client.batch_execute(FILL).await.unwrap();
    let rows =
        async || -> Vec<String> { client.query(ROWS, &[]).await.unwrap().iter().map(|row| row.get(0)).collect() };
    let (before, next) = (rows().await, and(NEXT));
    let refused =
        PostgresStore::open_with(database.address(), Prepare::Expect, 256, next).await.err().unwrap().to_string();
    assert!(
        refused.contains(&format!("schema {TODAY}")) && refused.contains("use the unionhall that serves them"),
        "{refused}"
    );
    let newer =
        OpenStore::new(PostgresStore::open_with(database.address(), Prepare::Upgrade, 256, next).await.unwrap());
    assert_eq!(rows().await, before);
    let version = client.query_one("SELECT max(version) FROM unionhall_schema", &[]).await.unwrap();
    assert_eq!(i64::from(version.get::<_, i32>(0)), TODAY + 1);
    assert_eq!(older.member_count().await, Ok(1));
    older.check(true).await.unwrap();
    let again = OpenStore::new(PostgresStore::open(database.address(), Prepare::Expect, 256).await.unwrap());
    works(&newer).await;
    for store in [older, again] {
        store.close().await.unwrap();
    }
    drop(client);
}

/// Mail in every state that an outbox of 1.0.0 has, to be counted by the step that came after it, and a member's part of a campaign.
const ROWS_OF_1_0_0: &str = "
    INSERT INTO campaigns (id, slug, definition, state, gather_until, created_at)
        VALUES (1, 'internet-2027', 'x', 'gathering', 1, 1);
    INSERT INTO participations (campaign_id, person_id, state, in_at, changed_at) VALUES (1, 1, 'in', 2, 2);
    INSERT INTO campaigns (id, slug, definition, state, gather_until, created_at, closed_at) VALUES
        (2, 'closed-2027', 'x', 'closed', 1, 1, 5), (3, 'counted-2027', 'x', 'closed', 1, 1, 5);
    INSERT INTO demand_sheets (campaign_id, day, taken_at, sheet) VALUES (2, 0, 4, 'x'), (3, 0, 6, 'x');
    INSERT INTO sign_ups (id, person_id, state, consent_version, created_at, updated_at, expires_at) VALUES
        (1, 1, 'confirmed', 1, 1, 1, 9), (2, 2, 'pending', 1, 1, 1, 9);
    INSERT INTO sign_ins (id, person_id, browser, mailed, created_at, expires_at) VALUES
        (1, 1, 'b', MAILED, 1, 9), (2, 1, 'b', MAILED, 1, 9);
    INSERT INTO outbox (sign_up_id, kind, recipient, created_at, send_after, held_at, given_up_at) VALUES
        (1, 'already_member', 'ana@example.com', 3, 3, NULL, 4), (2, 'confirm', 'gus@example.com', 2, 2, 2, NULL);
    INSERT INTO outbox (sign_in_id, kind, recipient, created_at, send_after, given_up_at) VALUES
        (1, 'sign_in', 'ana@example.com', 5, 5, 6), (2, 'sign_in', 'ana@example.com', 7, 7, NULL)";

/// A campaign of 1.0.0 whose offer is published, and one with a draft of an offer and the round behind it.
fn deals_of_1_0_0() -> String {
    let definition = |slug: &str| {
        format!(
            "slug = \"{slug}\"\ncategory = \"internet\"\ngather_until = 2026-01-31\n[text.en]\ntitle = \"T\"\nsummary = \"S\"\n\
             [text.es]\ntitle = \"T\"\nsummary = \"S\"\n"
        )
    };
    let [offered, asked] = ["offered-2026", "asked-2026"].map(definition);
    format!(
        "INSERT INTO campaigns (id, slug, definition, state, gather_until, created_at, offer, decide_by) VALUES
             (11, 'offered-2026', '{offered}', 'offered', 20484, 1, '{OLD_OFFER}', 47190),
             (12, 'asked-2026', '{asked}', 'negotiating', 20484, 1, NULL, NULL);
         INSERT INTO campaign_offer_drafts (campaign_id, at, client, offer) VALUES (12, 2, 'Desk', '{OLD_OFFER}');
         INSERT INTO campaign_rounds (campaign_id, at, client, supplier, asked, answered) VALUES (12, 2, 'Desk', 'Fiber', 'less', 'no')"
    )
}

/// It runs to its end; what was only a draft is kept, and not published anymore.
async fn ends_the_deals_of_1_0_0(store: &Store) {
    let now = Timestamp::from_millis(1_794_656_800_000);
    let slug = |text: &str| text.parse::<CampaignSlug>().unwrap();
    let found = async |of| store.run(FindCampaign(slug(of))).await.unwrap().unwrap().campaign;
    let offer = found("offered-2026").await.offer.unwrap();
    assert!(matches!(offer.deal, Deal::AsText(_)));
    assert_eq!((offer.supplier(), offer.saving()), ("Example Fiber", 240));
    let terms = ReferralTerms {
        reward_per_group: 100,
        group_size: 5,
        max_groups: 10,
        hold_days: 30,
        counts_on: CountsOn::Accepted,
    };
    for step in [TakenStep::Activate(terms), TakenStep::Plain(CampaignStep::Close)] {
        let step =
            StepCampaign { slug: slug("offered-2026"), step, who: "op".to_owned(), note: (String::new(), true), now };
        assert!(matches!(store.run(step).await.unwrap(), Stepped::Done(_)));
    }
    assert_eq!(found("offered-2026").await.state, CampaignState::Closed);
    let draft = store.run(ListOfferDrafts(slug("asked-2026"))).await.unwrap().pop().unwrap();
    assert_eq!((draft.file.as_str(), draft.seat.as_str()), (OLD_OFFER, ""));
    let refused = Proposal::parse(&draft.file).unwrap_err().0;
    assert!(refused.iter().any(|why| why.starts_with("annual_saving: it comes from the bid")), "{refused:?}");
    let round = store.run(ListRounds(slug("asked-2026"))).await.unwrap().pop().unwrap();
    assert_eq!((round.supplier.as_str(), round.answered.as_str()), ("Fiber", "no"));
}

/// What 1.0.0 closed and did not count since.
const COUNTS_DUE: &str = "SELECT slug || ' ' || count_due FROM campaigns WHERE count_due IS NOT NULL AND id < 10";

async fn counts_mail_of_1_0_0(store: &Store) {
    let MailFigures { waiting, held, given_up, oldest, .. } = store.run(FindMailFigures).await.unwrap();
    assert_eq!((waiting, held, given_up, oldest), (1, 1, 2, Some(Timestamp::from_millis(7))));
}

/// What the audit log of 1.0.0 tells, and whether its records were restored: then an id of a payout may have been given out twice.
const ACTS_OF_1_0_0: [(&str, &str, bool); 4] = [
    ("partners resume", "Acme", false),
    ("resume", "treated as complete", false),
    ("resume", "records of 2026-11-16T01:54:22Z", true),
    ("restore", "a backup of 2026-11-16T01:54:22Z", true),
];

fn tell(command: &str, about: &str) -> String {
    format!(
        "INSERT INTO audit (at, who, command, about) VALUES (1, 'op', '{command}', '{about}');
         INSERT INTO webhook_endpoints (partner_id, url, generation, rotated_at, created_at) VALUES (1, 'https://x', 3, 2, 1)"
    )
}

async fn knows_what_came_before(store: &Store, is_restored: bool) {
    let generation = store.run(FindGeneration).await.unwrap();
    assert_eq!(generation.map(|generation| generation.as_str().to_owned()), is_restored.then(|| "0".to_owned()));
    let endpoints = store.run(ListEndpoints(None)).await.unwrap();
    assert_eq!((endpoints[0].endpoint.generation, endpoints[0].endpoint.old_generation), (3, 2));
}

#[test]
fn a_restore_by_1_0_0_is_known_on_sqlite() {
    for (command, about, is_restored) in ACTS_OF_1_0_0 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("unionhall.db");
        let released = OpenStore::new(SqliteStore::open_with(&path, Prepare::Upgrade, 256, &MIGRATIONS[..1]).unwrap());
        block_on(async { released.close().await.unwrap() });
        Connection::open(&path).unwrap().execute_batch(&format!("{FILL}; {}", tell(command, about))).unwrap();
        block_on(async {
            let store = OpenStore::new(SqliteStore::open(&path).unwrap());
            knows_what_came_before(&store, is_restored).await;
            store.close().await.unwrap();
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_by_1_0_0_is_known_on_postgres() {
    needs!(Postgres);
    for (command, about, is_restored) in ACTS_OF_1_0_0 {
        let database = Database::make().await;
        let open = async |migrations| {
            let opened = PostgresStore::open_with(database.address(), Prepare::Upgrade, 256, migrations).await;
            OpenStore::new(opened.unwrap())
        };
        open(&MIGRATIONS[..1]).await.close().await.unwrap();
        let client = database.client().await;
        client.batch_execute(&format!("{FILL}; {}", tell(command, about))).await.unwrap();
        let store = open(MIGRATIONS).await;
        knows_what_came_before(&store, is_restored).await;
        store.close().await.unwrap();
        drop(client);
    }
}

#[test]
fn records_of_1_0_0_are_brought_up_to_date_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unionhall.db");
    let released = OpenStore::new(SqliteStore::open_with(&path, Prepare::Upgrade, 256, &MIGRATIONS[..1]).unwrap());
    block_on(async { released.close().await.unwrap() });
    Connection::open(&path)
        .unwrap()
        .execute_batch(&format!("{FILL}; {}; {}", ROWS_OF_1_0_0.replace("MAILED", "1"), deals_of_1_0_0()))
        .unwrap();
    let before = rows(&path);
    block_on(async {
        let store = OpenStore::new(SqliteStore::open(&path).unwrap());
        counts_mail_of_1_0_0(&store).await;
        ends_the_deals_of_1_0_0(&store).await;
        works(&store).await;
    });
    assert_eq!((schema_version(&path), rows(&path)), (TODAY, before));
    let part = "SELECT state || in_at || changed_at || coalesce(counted, '-') FROM participations";
    let part: String = Connection::open(&path).unwrap().query_row(part, [], |row| row.get(0)).unwrap();
    assert_eq!(part, "in22-");
    let due: String = Connection::open(&path).unwrap().query_row(COUNTS_DUE, [], |row| row.get(0)).unwrap();
    assert_eq!(due, "closed-2027 0");
}

/// A node of 1.0.0 goes on beside the new one.
#[tokio::test(flavor = "multi_thread")]
async fn records_of_1_0_0_are_brought_up_to_date_on_postgres() {
    needs!(Postgres);
    let database = Database::make().await;
    let released = OpenStore::new(
        PostgresStore::open_with(database.address(), Prepare::Upgrade, 256, &MIGRATIONS[..1]).await.unwrap(),
    );
    let client = database.client().await;
    let filled = format!("{FILL}; {}; {}", ROWS_OF_1_0_0.replace("MAILED", "TRUE"), deals_of_1_0_0());
    client.batch_execute(&filled).await.unwrap();
    let store = OpenStore::new(PostgresStore::open(database.address(), Prepare::Upgrade, 256).await.unwrap());
    counts_mail_of_1_0_0(&store).await;
    counts_mail_of_1_0_0(&released).await;
    released.check(true).await.unwrap();
    released.close().await.unwrap();
    ends_the_deals_of_1_0_0(&store).await;
    works(&store).await;
    let version = client.query_one("SELECT max(version) FROM unionhall_schema", &[]).await.unwrap();
    assert_eq!(i64::from(version.get::<_, i32>(0)), TODAY);
    let part = "SELECT state || in_at || changed_at || coalesce(counted, '-') FROM participations";
    assert_eq!(client.query_one(part, &[]).await.unwrap().get::<_, String>(0), "in22-");
    assert_eq!(client.query_one(COUNTS_DUE, &[]).await.unwrap().get::<_, String>(0), "closed-2027 0");
    drop(client);
}

#[test]
fn a_step_that_breaks_references_is_refused() {
    let (_folder, path) = records();
    let before = rows(&path);
    let breaking = Migration { sqlite: "DELETE FROM people WHERE id = 1", ..NEXT };
    let told = SqliteStore::open_with(&path, Prepare::Upgrade, 256, and(breaking)).err().unwrap().to_string();
    assert!(told.contains("was left as it was"), "{told}");
    assert_eq!((schema_version(&path), rows(&path)), (TODAY, before));
}

const FAILING: Migration = {
    const STEP: &str = "CREATE TABLE planned (id INTEGER);\nCREATE TABEL wrong (\n    id INTEGER\n)";
    Migration { sqlite: STEP, postgres: STEP, ..NEXT }
};

/// What the log of `serve` says is one line, and no text of the step.
fn says_why_in_a_line(error: anyhow::Error) {
    let said = format!("{error:#}");
    assert!(said.lines().count() == 1 && !said.contains("planned") && said.contains("TABEL"), "{said}");
    assert_eq!(said.matches("syntax error").count(), 1, "{said}");
}

#[test]
fn a_step_that_fails_says_why_in_a_line_on_sqlite() {
    let (_folder, path) = records();
    let before = rows(&path);
    says_why_in_a_line(SqliteStore::open_with(&path, Prepare::Upgrade, 256, and(FAILING)).err().unwrap().into());
    assert_eq!((schema_version(&path), rows(&path)), (TODAY, before));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_fails_says_why_in_a_line_on_postgres() {
    needs!(Postgres);
    let database = Database::make().await;
    let opened = PostgresStore::open_with(database.address(), Prepare::Upgrade, 256, and(FAILING)).await;
    says_why_in_a_line(opened.err().unwrap().into());
}

#[test]
fn records_of_another_build_are_refused_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unionhall.db");
    let made = OpenStore::new(SqliteStore::open_with(&path, Prepare::Upgrade, 256, of_another_build()).unwrap());
    block_on(async { made.close().await.unwrap() });
    let refused = || SqliteStore::open(&path).err().unwrap().to_string();
    assert!(refused().contains("was made by another unreleased build (schema "), "{}", refused());
    assert!(refused().ends_with("run the build that made it, or start with an empty data folder"), "{}", refused());
    // Builds before there were fingerprints.
    Connection::open(&path).unwrap().execute_batch("DROP TABLE unionhall_schema; PRAGMA user_version = 9").unwrap();
    assert!(refused().contains("another unreleased build (schema 9 without a fingerprint"), "{}", refused());
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_another_build_are_refused_on_postgres() {
    needs!(Postgres);
    let database = Database::make().await;
    let open = async |migrations| {
        PostgresStore::open_with(database.address(), Prepare::Upgrade, 256, migrations).await.map(OpenStore::new)
    };
    open(of_another_build()).await.unwrap().close().await.unwrap();
    holds(&open(MIGRATIONS).await.err().unwrap().to_string(), &["were made by another unreleased build (schema "]);
    let client = database.client().await;
    client.batch_execute("ALTER TABLE unionhall_schema DROP COLUMN fingerprint").await.unwrap();
    holds(&open(MIGRATIONS).await.err().unwrap().to_string(), &["without a fingerprint", "give an empty database"]);
    drop(client);
}

/// Links and message ids are made from ids: SQLite gives the highest out again unless told otherwise.
#[test]
fn the_id_of_a_person_is_never_given_to_another() {
    let (_folder, path) = records();
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("DELETE FROM people WHERE id = 2").unwrap();
    let add = "INSERT INTO people (email, email_normalized, mailbox, code, state, created_at)
               VALUES ('x@example.com', 'x@example.com', 'x@example.com', '0123456789ef', 'invited', 0) RETURNING id";
    assert_eq!(connection.query_row(add, [], |row| row.get::<_, i64>(0)).unwrap(), 3);
}

/// Its triggers would go with a table that is made anew.
#[test]
fn records_that_were_moved_away_stay_as_they_were_left() {
    let (_folder, path) = records();
    let moved = "CREATE TABLE moved (place TEXT NOT NULL, at INTEGER NOT NULL) STRICT;
                 INSERT INTO moved VALUES ('the database hall at a:5432', 1794743200000)";
    Connection::open(&path).unwrap().execute_batch(moved).unwrap();
    for prepare in [Prepare::Expect, Prepare::Upgrade] {
        let told = SqliteStore::open_with(&path, prepare, 256, and(NEXT)).err().unwrap().to_string();
        assert!(told.contains("were moved to the database hall at a:5432"), "{told}");
    }
    assert_eq!(schema_version(&path), TODAY);
}

/// Processes that start at once: one takes the step, all find it taken.
#[test]
fn steps_are_taken_once_however_many_start() {
    let (_folder, path) = records();
    let next = and(NEXT);
    let starts: Vec<_> = (0..4)
        .map(|_| {
            let path = path.clone();
            let open = move || SqliteStore::open_with(&path, Prepare::Upgrade, 256, next).map(|_| ());
            std::thread::spawn(move || open().map_err(|error| error.to_string()))
        })
        .collect();
    for start in starts {
        start.join().unwrap().unwrap();
    }
    assert_eq!(schema_version(&path), TODAY + 1);
}

/// The same of nodes on records of the released schema.
#[tokio::test(flavor = "multi_thread")]
async fn steps_are_taken_once_however_many_nodes_start() {
    needs!(Postgres);
    let database = Database::make().await;
    let open = |migrations| PostgresStore::open_with(database.address(), Prepare::Upgrade, 256, migrations);
    OpenStore::new(open(&MIGRATIONS[..1]).await.unwrap()).close().await.unwrap();
    let client = database.client().await;
    client.batch_execute(FILL).await.unwrap();
    let mut nodes = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let open = open(MIGRATIONS);
        nodes.spawn(async move { OpenStore::new(open.await.unwrap()) });
    }
    for node in nodes.join_all().await {
        assert_eq!(node.member_count().await, Ok(1));
        node.close().await.unwrap();
    }
    let version = client.query_one("SELECT max(version) FROM unionhall_schema", &[]).await.unwrap();
    assert_eq!(i64::from(version.get::<_, i32>(0)), TODAY);
    drop(client);
}

#[test]
fn a_command_says_which_version_to_use_and_changes_nothing() {
    let (folder, path) = records();
    // Older than every step there is.
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 0).unwrap();
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
    ] {
        let (done, printed) = run(command);
        assert!(!done && printed.contains("use the unionhall that serves it"), "{command:?}: {printed}");
        assert_eq!(printed.lines().count(), 1, "{printed}");
    }
    assert_eq!(schema_version(&path), 0);
}
