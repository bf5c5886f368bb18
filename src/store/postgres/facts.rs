//! What an operator should know of the server, as it says itself.

use super::address::Address;
use super::connection::PgConnection;
use super::identity;
use super::pool::ask_once;
use crate::domain::time::Timestamp;
use crate::store::StoreError;
use crate::store::sql::{Failure, Sql, expected, values};

#[derive(Clone)]
pub struct PostgresFacts {
    /// As `version()` begins: PostgreSQL 17.2.
    pub version: String,
    /// Whether the connection has TLS.
    pub encrypted: bool,
    /// The server's clock.
    pub time: Timestamp,
    /// What a session has that sets nothing itself.
    pub synchronous_commit: String,
    pub fsync: bool,
    /// Whether the records were restored from a copy, and not resumed yet.
    pub is_restored: bool,
}

/// Asks on a connection of its own, made as the service makes its own.
pub async fn learn(address: Address) -> Result<PostgresFacts, StoreError> {
    ask_once(address, |connection| Box::pin(facts(connection))).await.map_err(StoreError::of_a_read)
}

async fn facts(connection: &mut PgConnection) -> Result<PostgresFacts, Failure> {
    let ask = "
        SELECT 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1) AS version,
               coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS encrypted,
               CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS time,
               (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit') AS synchronous_commit,
               current_setting('fsync') = 'on' AS fsync";
    let is_restored = identity::is_restored(connection).await?;
    let sql: &mut dyn Sql = connection;
    let facts = sql.row(ask, values![], |row| {
        Ok(PostgresFacts {
            version: row.get("version")?,
            encrypted: row.get("encrypted")?,
            time: row.get("time")?,
            synchronous_commit: row.get("synchronous_commit")?,
            fsync: row.get("fsync")?,
            is_restored,
        })
    });
    expected(facts.await?)
}
