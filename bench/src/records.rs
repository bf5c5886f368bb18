//! The records of a server under measurement, in either engine: what the bench writes into them and counts in them, in SQL that
//! both understand.

use std::path::PathBuf;

use anyhow::Context;
use rusqlite::Connection;

use crate::server::Installation;
use crate::services::Postgres;

/// Where the records are.
pub(crate) enum Records<'a> {
    Sqlite(PathBuf),
    /// A database of that name.
    Postgres(&'a Postgres, &'static str),
}

impl Records<'_> {
    /// Runs statements, as one transaction.
    pub(crate) fn write(&self, statements: &str) -> anyhow::Result<()> {
        let whole = format!("BEGIN; {statements}; COMMIT");
        match self {
            Self::Sqlite(file) => Connection::open(file)?.execute_batch(&whole)?,
            Self::Postgres(postgres, database) => drop(postgres.query(database, &whole)?),
        }
        Ok(())
    }

    /// The number that a query gives.
    pub(crate) fn number(&self, query: &str) -> anyhow::Result<u64> {
        let numbers = self.numbers(query)?;
        Ok(numbers.first().with_context(|| format!("no number: {query}"))?.unsigned_abs())
    }

    /// The same of each row.
    pub(crate) fn numbers(&self, query: &str) -> anyhow::Result<Vec<i64>> {
        match self {
            Self::Sqlite(file) => {
                let connection = Connection::open(file)?;
                let mut statement = connection.prepare(query)?;
                let rows = statement.query_map([], |row| row.get(0))?;
                Ok(rows.collect::<Result<_, _>>()?)
            }
            Self::Postgres(postgres, database) => {
                Ok(postgres.query(database, query)?.lines().map(str::parse).collect::<Result<_, _>>()?)
            }
        }
    }

    /// How much of the disk they take.
    pub(crate) fn bytes(&self) -> anyhow::Result<u64> {
        match self {
            Self::Sqlite(file) => Ok(std::fs::metadata(file)?.len()),
            Self::Postgres(..) => self.number("SELECT pg_database_size(current_database())"),
        }
    }

    /// After much was written: statistics, and nothing that a checkpoint still has to do.
    pub(crate) fn settle(&self) -> anyhow::Result<()> {
        match self {
            Self::Sqlite(file) => {
                let connection = Connection::open(file)?;
                connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
                std::fs::File::open(file)?.sync_all()?;
            }
            Self::Postgres(postgres, database) => drop(postgres.query(database, "VACUUM ANALYZE; CHECKPOINT")?),
        }
        Ok(())
    }
}

/// Records of so many people, and how they are served.
pub(crate) struct Place<'a> {
    pub people: u64,
    pub installation: Installation,
    pub records: Records<'a>,
}
