//! Bringing the tables up to date (migrations): by one node at a time, and so that nodes of the version before go on.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::connection::PgConnection;
use super::pool::{LOCK_TRIES, Pool, Work};
use crate::domain::time::Timestamp;
use crate::store::StoreError;
use crate::store::migration::{Migration, Prepare, fingerprint};
use crate::store::sql::{Failure, Sql, expected, values};

/// Who holds this lock migrates: any number, but the same on every node. It is waited for while another node does so. The
/// tables' own are not waited for long: everyone who comes later would stand in line behind.
const LOCK: &str = "
    SET LOCAL statement_timeout = 0;
    SET LOCAL lock_timeout = '120s';
    SELECT pg_advisory_xact_lock(1970168929);
    SET LOCAL lock_timeout = '5s'";

#[derive(Debug, thiserror::Error)]
pub enum PostgresOpenError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "the database was brought up to date by a newer unionhall (schema {found}, which serves {serves} and later; this \
         one knows {known}); run that version"
    )]
    Newer { found: i64, serves: i64, known: i64 },
    #[error(
        "its tables are of an older unionhall (schema {found}, this one knows {known}); use the unionhall that serves them, \
         or start a node of this version, which brings them up to date"
    )]
    Older { found: i64, known: i64 },
    #[error(
        "its tables were made by another unreleased build (schema {found}, this one has {known}); run the build that made them, \
         or give an empty database"
    )]
    OtherBuild { found: String, known: String },
    #[error("there are no records in it; is this the right database? The first start of the service makes its tables")]
    Missing,
    #[error("the database keeps its texts in {0}; make one with ENCODING 'UTF8'")]
    Encoding(String),
    #[error(
        "the database holds tables that are not ours; make one for unionhall alone, or set search_path to a schema of its own"
    )]
    Foreign,
    #[error("the records in it were moved to {place} on {}; use those", at.day())]
    Moved { place: String, at: Timestamp },
    #[error(
        "these records were restored from a copy: what happened since it was made is not in them, and the mail in it may have gone"
    )]
    Restored,
    #[error("the role may not make tables in it; make it the database's owner: ALTER DATABASE … OWNER TO …")]
    Forbidden,
    #[error("other sessions hold its tables; end them, or try again when they are done (pg_stat_activity shows them)")]
    Held,
}

/// What the tables are.
pub(super) struct FoundSchema {
    pub version: i64,
    pub serves: i64,
}

/// Makes sure that the tables are there and of our time; makes or changes them if that is meant. What is found may be newer, and
/// still serve this program.
pub(super) async fn prepare(
    pool: &Pool,
    prepare: Prepare,
    migrations: &'static [Migration],
) -> Result<FoundSchema, PostgresOpenError> {
    let known = migrations.len() as i64;
    // Without a lock: at nearly every start there is nothing to do.
    let mut looked = pool.ask(|connection| Box::pin(look(connection, migrations))).await?;
    let migrate = match &looked {
        Ok(found) => found.version < known && matches!(prepare, Prepare::Upgrade | Prepare::Resume),
        Err(PostgresOpenError::Missing) => matches!(prepare, Prepare::Make | Prepare::Upgrade),
        Err(_) => false,
    };
    if migrate {
        // A dump, a vacuum or another node's start may hold a table for longer than anybody is to stand in line behind this.
        looked =
            pool.attempt_for_locked(&mut Migrate(migrations), LOCK_TRIES).await.map_err(|failure| match &failure {
                Failure::Postgres(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                    PostgresOpenError::Forbidden
                }
                Failure::Postgres(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                    PostgresOpenError::Held
                }
                _ => PostgresOpenError::Store(failure.into()),
            })?;
    }
    match looked? {
        FoundSchema { version, serves } if serves > known => {
            Err(PostgresOpenError::Newer { found: version, serves, known })
        }
        FoundSchema { version, .. } if version < known => Err(PostgresOpenError::Older { found: version, known }),
        found => Ok(found),
    }
}

async fn look(sql: &mut dyn Sql, migrations: &[Migration]) -> Result<Result<FoundSchema, PostgresOpenError>, Failure> {
    // Not by to_regclass: that may remember from before the lock that there was nothing.
    let tables = "
        WITH tables AS (
            SELECT relname FROM pg_catalog.pg_class WHERE relkind IN ('r', 'p', 'v') AND pg_table_is_visible(oid)
        )
        SELECT current_setting('server_encoding') AS encoding, 'unionhall_schema' IN (TABLE tables) AS is_ours,
               'people' IN (TABLE tables) OR 'installation' IN (TABLE tables) AS has_ours, 'moved' IN (TABLE tables) AS is_moved,
               2 = (SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
                    WHERE c.relname = 'unionhall_schema' AND pg_table_is_visible(c.oid)
                      AND a.attname IN ('fingerprint', 'identity'))
                   AS has_fingerprints";
    let tables = sql.row(tables, values![], |row| {
        let (ours, others, moved) = (row.get("is_ours")?, row.get("has_ours")?, row.get("is_moved")?);
        Ok((row.get("encoding")?, ours, others, moved, row.get::<bool>("has_fingerprints")?))
    });
    let (encoding, ours, others, moved, has_fingerprints) = expected(tables.await?)?;
    if encoding != "UTF8" {
        return Ok(Err(PostgresOpenError::Encoding(encoding)));
    }
    match (ours, others) {
        (false, false) => return Ok(Err(PostgresOpenError::Missing)),
        (false, true) => return Ok(Err(PostgresOpenError::Foreign)),
        (true, _) => {}
    }
    if moved {
        let place = sql.row("SELECT place, at FROM moved LIMIT 1", values![], |row| {
            Ok(PostgresOpenError::Moved { place: row.get("place")?, at: row.get("at")? })
        });
        return Ok(Err(expected(place.await?)?));
    }
    let taken = match has_fingerprints {
        true => {
            let taken = "SELECT fingerprint FROM unionhall_schema ORDER BY version";
            sql.rows(taken, values![], |row| row.get::<String>(0)).await?
        }
        false => vec!["without a fingerprint".to_owned()],
    };
    for (found, migration) in taken.into_iter().zip(migrations) {
        let known = fingerprint(migration.postgres);
        if found != known {
            return Ok(Err(PostgresOpenError::OtherBuild { found, known }));
        }
    }
    let newest =
        "SELECT coalesce(max(version), 0) AS version, coalesce(max(serves), 0) AS serves FROM unionhall_schema";
    let found =
        sql.row(newest, values![], |row| Ok(FoundSchema { version: row.get("version")?, serves: row.get("serves")? }));
    Ok(Ok(expected(found.await?)?))
}

struct Migrate(&'static [Migration]);

impl Work for Migrate {
    type Done = Result<FoundSchema, PostgresOpenError>;

    // A big table takes its time.
    const TIMEOUT: Duration = Duration::from_secs(1800);

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply(&mut self, connection: &mut PgConnection) -> Result<Self::Done, Failure> {
        connection.client.batch_execute(LOCK).await?;
        let found = match look(connection, self.0).await? {
            Ok(found) => found.version,
            Err(PostgresOpenError::Missing) => {
                connection.client.batch_execute(VERSIONS).await?;
                0
            }
            Err(fault) => return Ok(Err(fault)),
        };
        for (version, migration) in (1_i32..).zip(self.0).skip(usize::try_from(found).unwrap_or(0)) {
            connection.client.batch_execute(migration.postgres).await?;
            let note = "INSERT INTO unionhall_schema (version, serves, fingerprint) VALUES ($1, $2, $3)";
            connection.query(note, &[&version, &migration.serves, &fingerprint(migration.postgres)]).await?;
        }
        look(connection, self.0).await
    }
}

const VERSIONS: &str = "
    CREATE TABLE unionhall_schema (
        version     INTEGER PRIMARY KEY,
        serves      INTEGER NOT NULL, -- the oldest schema whose programs still work on this one
        fingerprint TEXT COLLATE \"C\" NOT NULL,
        identity    TEXT COLLATE \"C\" -- of the database that this was written in: a dump is restored into another
    )";
