//! Bringing the tables up to date: by one node at a time, and so that nodes of the version before go on.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::pool::{Line, Pool, Unit};
use super::{Failure, expected, get, time};
use crate::domain::time::Timestamp;
use crate::store::StoreError;

/// A step of the schema.
struct Migration {
    sql: &'static str,
    /// The oldest schema whose programs still work on this one. A migration that only adds leaves it as it was, and nodes
    /// are replaced one by one; one that takes away raises it, in a release after the last that used what it takes.
    serves: i32,
}

/// Each once, in order. Never changed once released.
const MIGRATIONS: &[Migration] =
    &[Migration { sql: include_str!("../../../migrations/postgres/0001_house.sql"), serves: 1 }];

/// Who holds this lock migrates: any number, but the same on every node. It is waited for while another node does so. The
/// tables' own are not waited for long: everyone who comes later would stand in line behind.
const LOCK: &str = "
    SET LOCAL statement_timeout = 0;
    SET LOCAL lock_timeout = '120s';
    SELECT pg_advisory_xact_lock(1970168929);
    SET LOCAL lock_timeout = '5s'";

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(
        "the database was brought up to date by a newer unionhall (schema {found}, which serves {serves} and later; this \
         one knows {known}); run that version"
    )]
    Newer { found: i32, serves: i32, known: i32 },
    #[error(
        "its tables are of an older unionhall (schema {found}, this one knows {known}); start a node of this version first"
    )]
    Older { found: i32, known: i32 },
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
    #[error("the role may not make tables in it; make it the database's owner: ALTER DATABASE … OWNER TO …")]
    Forbidden,
    #[error("other sessions hold its tables; end them, or try again when they are done (pg_stat_activity shows them)")]
    Held,
}

/// What the tables are.
struct Found {
    version: i32,
    serves: i32,
}

/// What is found instead of tables that can be used.
enum Fault {
    Encoding(String),
    Foreign,
    Missing,
    Moved { place: String, at: Timestamp },
}

/// Makes sure that the tables are there and of our time; makes or changes them if that is meant. Says whether the schema is
/// exactly the one this program knows.
pub(super) async fn prepare(pool: &Pool, make: bool) -> Result<Exactly, OpenError> {
    let known = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    let mut looked = pool.run(&Look).await?;
    let migrate = match &looked {
        Ok(found) => found.version < known,
        Err(Fault::Missing) => true,
        Err(_) => false,
    };
    if migrate && make {
        looked = pool.attempt(&Migrate).await.map_err(|failure| match &failure {
            Failure::Postgres(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => OpenError::Forbidden,
            Failure::Postgres(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => OpenError::Held,
            _ => OpenError::Store(failure.into()),
        })?;
    }
    match looked {
        Ok(Found { version, serves }) if serves > known => Err(OpenError::Newer { found: version, serves, known }),
        Ok(Found { version, .. }) if version < known => Err(OpenError::Older { found: version, known }),
        Ok(Found { version, serves }) => {
            Ok(if version == known { Exactly::This } else { Exactly::Newer { found: version, serves, known } })
        }
        Err(Fault::Encoding(encoding)) => Err(OpenError::Encoding(encoding)),
        Err(Fault::Foreign) => Err(OpenError::Foreign),
        Err(Fault::Missing) => Err(OpenError::Missing),
        Err(Fault::Moved { place, at }) => Err(OpenError::Moved { place, at }),
    }
}

/// Whether a schema that can be used is also the one that is known, column by column.
pub(super) enum Exactly {
    This,
    Newer { found: i32, serves: i32, known: i32 },
}

/// Looks without a lock: at nearly every start there is nothing to do.
struct Look;

impl Unit for Look {
    type Done = Result<Found, Fault>;

    async fn apply(&self, line: &mut Line) -> Result<Self::Done, Failure> {
        look(line).await
    }
}

async fn look(line: &Line) -> Result<Result<Found, Fault>, Failure> {
    // Not by to_regclass: that may remember from before the lock that there was nothing.
    let sql = "
        WITH tables AS (
            SELECT relname FROM pg_catalog.pg_class WHERE relkind IN ('r', 'p', 'v') AND pg_table_is_visible(oid)
        )
        SELECT current_setting('server_encoding'), 'unionhall_schema' IN (TABLE tables),
               'people' IN (TABLE tables) OR 'installation' IN (TABLE tables), 'moved' IN (TABLE tables)";
    let row = expected(line.row(sql, &[]).await?)?;
    let encoding: &str = get(&row, 0)?;
    if encoding != "UTF8" {
        return Ok(Err(Fault::Encoding(encoding.to_owned())));
    }
    match (get(&row, 1)?, get(&row, 2)?) {
        (false, false) => return Ok(Err(Fault::Missing)),
        (false, true) => return Ok(Err(Fault::Foreign)),
        (true, _) => {}
    }
    if get(&row, 3)? {
        let row = expected(line.row("SELECT place, at FROM moved LIMIT 1", &[]).await?)?;
        return Ok(Err(Fault::Moved { place: get(&row, 0)?, at: time(&row, 1)? }));
    }
    let newest = "SELECT coalesce(max(version), 0), coalesce(max(serves), 0) FROM unionhall_schema";
    let row = expected(line.row(newest, &[]).await?)?;
    Ok(Ok(Found { version: get(&row, 0)?, serves: get(&row, 1)? }))
}

struct Migrate;

impl Unit for Migrate {
    type Done = Result<Found, Fault>;

    const SEVERAL: bool = true;

    // A big table takes its time.
    const PATIENCE: Duration = Duration::from_secs(1800);

    async fn apply(&self, line: &mut Line) -> Result<Self::Done, Failure> {
        line.client().batch_execute(LOCK).await?;
        let found = match look(line).await? {
            Ok(found) => found.version,
            Err(Fault::Missing) => {
                line.client().batch_execute(VERSIONS).await?;
                0
            }
            Err(fault) => return Ok(Err(fault)),
        };
        for (version, migration) in (1..).zip(MIGRATIONS).skip(usize::try_from(found).unwrap_or(0)) {
            line.client().batch_execute(migration.sql).await?;
            let note = "INSERT INTO unionhall_schema (version, serves) VALUES ($1, $2)";
            line.execute(note, &[&version, &migration.serves]).await?;
        }
        look(line).await
    }
}

const VERSIONS: &str = "
    CREATE TABLE unionhall_schema (
        version INTEGER PRIMARY KEY,
        serves  INTEGER NOT NULL -- the oldest schema whose programs still work on this one
    )";
