//! Where a server of the tests keeps its records, and a way to look into them that is the same for every store.
//!
//! `UNIONHALL_TEST_BACKEND` chooses: `sqlite` (with limits in memory) is what a newcomer gets; with `postgres` each folder
//! has a database of its own on the server that tests/servers.sh started, and a prefix of its own in its Redis.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::mpsc;
use std::thread::JoinHandle;

use crate::prelude::*;
use tokio_postgres::error::SqlState;
use tokio_postgres::{NoTls, SimpleQueryMessage};

pub(crate) const SECRET: &str = "the-secret-of-the-tests-and-of-nobody-else";

/// A folder for one server, and where its records are. A database that was made for it goes when the folder does.
pub(crate) struct Home {
    folder: tempfile::TempDir,
    records: Records,
    database: Option<String>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        match std::env::var("UNIONHALL_TEST_BACKEND").as_deref() {
            Err(_) | Ok("" | "sqlite") => Self::on_sqlite(folder),
            Ok("postgres") => Self::on_postgres(folder),
            Ok(other) => panic!("UNIONHALL_TEST_BACKEND is {other:?}; write sqlite or postgres"),
        }
    }

    /// On SQLite, whatever the backend of this run.
    pub(crate) fn on_sqlite(folder: tempfile::TempDir) -> Self {
        Self { records: Records::Sqlite { data: folder.path().join("data") }, folder, database: None }
    }

    /// On PostgreSQL and Redis, whatever the backend of this run.
    pub(crate) fn on_postgres(folder: tempfile::TempDir) -> Self {
        // Called after the folder, which is nobody else's. Folders may differ in case alone, which these names may not.
        let random = folder.path().file_name().unwrap().as_encoded_bytes();
        let name = random.iter().fold("test_".to_owned(), |name, byte| format!("{name}{byte:02x}"));
        let limits = format!("{}/?prefix={name}:", redis());
        Self { records: Records::Postgres { store: postgres(&name), limits }, folder, database: Some(name) }
    }

    /// For another node on somebody's records.
    pub(crate) fn sharing(records: &Records) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), records: records.clone(), database: None }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn records(&self) -> &Records {
        &self.records
    }

    /// Makes what must be there before a server can start.
    pub(crate) fn prepare(&self) {
        if let Some(name) = &self.database {
            clone_template(name);
        }
    }

    /// The same without tables, for a restore.
    pub(crate) fn prepare_empty(&self) {
        if let Some(name) = &self.database {
            ask(&postgres("postgres"), &format!("CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")).unwrap();
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(name) = &self.database {
            // The whole cluster goes at the end in any case.
            let _gone = ask(&postgres("postgres"), &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        }
    }
}

#[derive(Clone)]
pub(crate) enum Records {
    Sqlite { data: PathBuf },
    Postgres { store: String, limits: String },
}

impl Records {
    /// Who counts against the limits, as `/readyz` says it.
    pub(crate) fn limits(&self) -> &'static str {
        match self {
            Self::Sqlite { .. } => "memory",
            Self::Postgres { .. } => "shared",
        }
    }

    /// What a server or a command needs in its environment to find them.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Sqlite { .. } => Vec::new(),
            Self::Postgres { store, limits } => vec![
                ("UNIONHALL_STORE", store.clone()),
                ("UNIONHALL_LIMITS", limits.clone()),
                ("UNIONHALL_SECRET", SECRET.to_owned()),
            ],
        }
    }

    pub(crate) fn secret(&self) -> Secret {
        let text = match self {
            Self::Sqlite { data } => std::fs::read_to_string(data.join("secret")).unwrap(),
            Self::Postgres { .. } => SECRET.to_owned(),
        };
        Keyring::parse(&text).unwrap().secret(Clock::start().now().time)
    }

    /// The rows of a query that both stores understand, as text. What is not there reads as `NULL`; a truth reads
    /// differently in each, so ask for a number.
    #[track_caller]
    pub(crate) fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        self.try_rows(sql).unwrap()
    }

    /// The same where the store may be away.
    pub(crate) fn try_rows(&self, sql: &str) -> Result<Vec<Vec<String>>, Box<dyn std::error::Error + Send + Sync>> {
        match self {
            Self::Sqlite { data } => Ok(sqlite_rows(&data.join("unionhall.db"), sql)?),
            Self::Postgres { store, .. } => Ok(ask(store, sql)?),
        }
    }

    #[track_caller]
    pub(crate) fn number(&self, sql: &str) -> i64 {
        let rows = self.rows(sql);
        assert_eq!(rows.len(), 1, "{sql}: {rows:?}");
        rows[0][0].parse().unwrap_or_else(|_| panic!("{sql}: {rows:?}"))
    }

    #[track_caller]
    pub(crate) fn execute(&self, sql: &str) {
        match self {
            Self::Sqlite { data } => {
                rusqlite::Connection::open(data.join("unionhall.db")).unwrap().execute_batch(sql).unwrap();
            }
            Self::Postgres { store, .. } => {
                ask(store, sql).unwrap();
            }
        }
    }

    /// Keeps everybody else from writing, as another process could, until what it gives is dropped. Reading goes on.
    pub(crate) fn hold(&self) -> Held {
        let (told, held) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let hold: Box<dyn FnOnce() + Send> = match self {
            Self::Sqlite { data } => {
                let database = rusqlite::Connection::open(data.join("unionhall.db")).unwrap();
                Box::new(move || {
                    database.execute_batch("BEGIN IMMEDIATE").unwrap();
                    told.send(()).unwrap();
                    released.recv().unwrap_err();
                    database.execute_batch("ROLLBACK").unwrap();
                })
            }
            Self::Postgres { store, .. } => {
                let url = store.clone();
                Box::new(move || {
                    alone(async {
                        let client = connect(&url).await.unwrap();
                        let lock = "BEGIN; LOCK TABLE installation, api_keys, people, sign_ups, outbox, mailboxes, \
                                    readiness IN EXCLUSIVE MODE";
                        client.batch_execute(lock).await.unwrap();
                        told.send(()).unwrap();
                        released.recv().unwrap_err();
                        client.batch_execute("ROLLBACK").await.unwrap();
                    });
                })
            }
        };
        let holder = std::thread::spawn(hold);
        held.recv().expect("the records are held");
        Held { release: Some(release), holder: Some(holder) }
    }

    /// Whether a server that has stopped left nothing open: SQLite's log is folded in, PostgreSQL knows of no session.
    pub(crate) fn are_let_go(&self) -> bool {
        match self {
            Self::Sqlite { data } => !data.join("unionhall.db-wal").exists(),
            Self::Postgres { .. } => {
                let others = "SELECT count(*) FROM pg_stat_activity
                              WHERE datname = current_database() AND pid <> pg_backend_pid()";
                self.number(others) == 0
            }
        }
    }

    /// Whether the store's own examination finds fault with its files, where it has one to make.
    pub(crate) fn are_sound(&self) -> bool {
        match self {
            Self::Sqlite { .. } => self.rows("PRAGMA integrity_check") == [["ok"]],
            // It recovers from its own log before it lets anybody in.
            Self::Postgres { .. } => self.number("SELECT count(*) FROM installation") == 1,
        }
    }
}

pub(crate) fn sqlite_rows(file: &Path, sql: &str) -> rusqlite::Result<Vec<Vec<String>>> {
    let database = rusqlite::Connection::open(file)?;
    let mut statement = database.prepare(sql)?;
    let columns = statement.column_count();
    let row = |row: &rusqlite::Row<'_>| (0..columns).map(|n| Ok(as_text(row.get(n)?))).collect();
    statement.query_map([], row)?.collect()
}

/// Dropping it lets the others write again, at once.
pub(crate) struct Held {
    release: Option<mpsc::Sender<()>>,
    holder: Option<JoinHandle<()>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.release.take());
        let _ended = self.holder.take().map(JoinHandle::join);
    }
}

/// A database on the PostgreSQL that all tests share.
pub(crate) fn postgres(database: &str) -> String {
    format!("{}/{database}", started("UNIONHALL_TEST_POSTGRES"))
}

/// The same database, which is given a minute to take a connection: the machine may be busy.
pub(crate) fn patient(store: &str) -> String {
    format!("{store}?connect_timeout=60")
}

pub(crate) fn redis() -> String {
    started("UNIONHALL_TEST_REDIS")
}

fn started(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set; ./test.sh starts the servers it names"))
}

pub(crate) fn create_database(url: &str, name: &str) {
    ask(url, &format!("CREATE DATABASE {name}")).unwrap();
}

/// Makes a database with the current schema on the PostgreSQL that all tests share, unless it is there from the start before.
/// A clone takes a fraction of what migrating takes; whichever test comes first makes the template.
pub(crate) fn clone_template(name: &str) {
    let template = template_name();
    let clone = || ask(&postgres("postgres"), &format!("CREATE DATABASE {name} TEMPLATE {template}"));
    let cloned = match clone() {
        Err(error) if error.code() == Some(&SqlState::INVALID_CATALOG_NAME) => {
            make_template(&template);
            clone()
        }
        cloned => cloned,
    };
    if let Err(error) = cloned {
        assert_eq!(error.code(), Some(&SqlState::DUPLICATE_DATABASE), "the database was not made: {error}");
    }
}

/// The template is named after its schema: a server that outlives a change of the schema gets another.
fn template_name() -> String {
    let mut hasher = DefaultHasher::new();
    MIGRATIONS.iter().for_each(|migration| migration.postgres.hash(&mut hasher));
    format!("template_{:016x}", hasher.finish())
}

/// Migrates an empty database, which gets the template's name only once it is done. Other tests wait for the lock meanwhile.
fn make_template(template: &str) {
    let making = format!("{template}_new");
    let make = async {
        let client = connect(&postgres("postgres")).await.unwrap();
        client.batch_execute("SELECT pg_advisory_lock(hashtext('template'))").await.unwrap();
        let found = client.query_opt("SELECT FROM pg_database WHERE datname = $1", &[&template]).await.unwrap();
        if found.is_none() {
            client.batch_execute(&format!("DROP DATABASE IF EXISTS {making} WITH (FORCE)")).await.unwrap();
            client
                .batch_execute(&format!("CREATE DATABASE {making} ENCODING 'UTF8' TEMPLATE template0"))
                .await
                .unwrap();
            let address = Address::parse(&patient(&postgres(&making))).unwrap();
            OpenStore::new(PostgresStore::open(address, Prepare::Make, 1).await.unwrap()).close().await.unwrap();
            client.batch_execute(&format!("ALTER DATABASE {making} RENAME TO {template}")).await.unwrap();
        }
    };
    std::thread::scope(|scope| scope.spawn(|| alone(make)).join().unwrap());
}

/// What PostgreSQL answers, as text; asked on a connection of its own.
pub(crate) fn ask(url: &str, sql: &str) -> Result<Vec<Vec<String>>, tokio_postgres::Error> {
    let asked = std::thread::scope(|scope| {
        let ask = scope.spawn(|| alone(async { connect(url).await?.simple_query(sql).await }));
        ask.join().unwrap()
    });
    let rows = asked?.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|n| row.get(n).unwrap_or("NULL").to_owned()).collect()),
        _ => None,
    });
    Ok(rows.collect())
}

pub(crate) async fn connect(url: &str) -> Result<tokio_postgres::Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// On a runtime of its own: tests ask in the middle of theirs. Only from a thread that has none.
fn alone<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn as_text(value: rusqlite::types::Value) -> String {
    use rusqlite::types::Value;
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text,
        Value::Blob(bytes) => format!("{bytes:02x?}"),
    }
}
