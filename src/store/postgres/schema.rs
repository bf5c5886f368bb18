//! Bringing the tables up to date: by one node at a time, and so that nodes of the version before go on.

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

/// Any number, but the same on every node: who holds this lock migrates.
const LOCK: &str = "SELECT pg_advisory_xact_lock(1970168929)";

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot use the database: {0}")]
    Store(#[from] StoreError),
    #[error(
        "the database was brought up to date by a newer unionhall (schema {found}, which serves {serves} and later; this \
         one knows {known}); run that version"
    )]
    Newer { found: i32, serves: i32, known: i32 },
    #[error("the database keeps its texts in {0}; make one with ENCODING 'UTF8'")]
    Encoding(String),
    #[error(
        "the database holds tables that are not ours; make one for unionhall alone, or set search_path to a schema of its own"
    )]
    Foreign,
    #[error("the records in it were moved to {place} on {}; use those", at.day())]
    Moved { place: String, at: Timestamp },
}

/// What the tables were found to be.
enum Found {
    UpToDate,
    Newer { found: i32, serves: i32 },
    Encoding(String),
    Foreign,
    Moved { place: String, at: Timestamp },
}

pub(super) async fn bring_up_to_date(pool: &Pool) -> Result<(), OpenError> {
    match pool.run(&BringUpToDate).await? {
        Found::UpToDate => Ok(()),
        Found::Newer { found, serves } => Err(OpenError::Newer { found, serves, known: known() }),
        Found::Encoding(encoding) => Err(OpenError::Encoding(encoding)),
        Found::Foreign => Err(OpenError::Foreign),
        Found::Moved { place, at } => Err(OpenError::Moved { place, at }),
    }
}

fn known() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}

struct BringUpToDate;

impl Unit for BringUpToDate {
    type Done = Found;

    const SEVERAL: bool = true;

    async fn apply(&self, line: &mut Line) -> Result<Found, Failure> {
        // A big table takes its time, and so may the node that holds the lock.
        line.client().batch_execute("SET LOCAL statement_timeout = 0").await?;
        line.client().batch_execute(LOCK).await?;
        let sql = "SELECT current_setting('server_encoding'), to_regclass('unionhall_schema') IS NOT NULL,
                          to_regclass('people') IS NOT NULL OR to_regclass('installation') IS NOT NULL,
                          to_regclass('moved') IS NOT NULL";
        let row = expected(line.row(sql, &[]).await?)?;
        let encoding: &str = get(&row, 0)?;
        if encoding != "UTF8" {
            return Ok(Found::Encoding(encoding.to_owned()));
        }
        match (get(&row, 1)?, get(&row, 2)?) {
            (true, _) if get(&row, 3)? => {
                let row = expected(line.row("SELECT place, at FROM moved LIMIT 1", &[]).await?)?;
                return Ok(Found::Moved { place: get(&row, 0)?, at: time(&row, 1)? });
            }
            (true, _) => {}
            (false, true) => return Ok(Found::Foreign),
            (false, false) => line.client().batch_execute(VERSIONS).await?,
        }
        let newest = "SELECT coalesce(max(version), 0), coalesce(max(serves), 0) FROM unionhall_schema";
        let row = expected(line.row(newest, &[]).await?)?;
        let (found, serves): (i32, i32) = (get(&row, 0)?, get(&row, 1)?);
        if serves > known() {
            return Ok(Found::Newer { found, serves });
        }
        for (version, migration) in (1..).zip(MIGRATIONS).skip(usize::try_from(found).unwrap_or(0)) {
            line.client().batch_execute(migration.sql).await?;
            let note = "INSERT INTO unionhall_schema (version, serves) VALUES ($1, $2)";
            line.execute(note, &[&version, &migration.serves]).await?;
        }
        Ok(Found::UpToDate)
    }
}

const VERSIONS: &str = "
    CREATE TABLE unionhall_schema (
        version INTEGER PRIMARY KEY,
        serves  INTEGER NOT NULL -- the oldest schema whose programs still work on this one
    )";
