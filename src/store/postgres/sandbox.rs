//! The sandbox's records beside the live ones: a schema of its own in the same database, named after theirs.

use tokio_postgres::error::SqlState;

use super::address::{Address, quoted};
use super::connection::PgConnection;
use super::pool::ask_once;
use crate::store::StoreError;
use crate::store::sql::{Failure, Row, Sql, values};

/// What its name ends in.
const ENDING: &str = "_sandbox";

/// PostgreSQL cuts longer names, and might then find the live records under the sandbox's.
const LONGEST_NAME: usize = 63;

/// Where the sandbox's records are, or would be.
pub struct SandboxPlace {
    pub address: Address,
    pub is_there: bool,
}

/// Looks where the sandbox of a database's records is; changes nothing.
pub async fn find_sandbox(live: &Address) -> Result<SandboxPlace, StoreError> {
    let found = ask_once(live.clone(), |connection| Box::pin(find(connection))).await;
    let no_place = || StoreError::Unavailable("PostgreSQL: no schema of search_path is there".to_owned());
    let (schema, is_there) = found.map_err(StoreError::of_a_read)?.ok_or_else(no_place)?;
    if schema.len() > LONGEST_NAME {
        let most = LONGEST_NAME - ENDING.len();
        return Err(StoreError::Unavailable(format!(
            "PostgreSQL: the name of the schema is too long for a sandbox beside it; it may have {most} bytes"
        )));
    }
    Ok(SandboxPlace { address: live.in_schema(schema), is_there })
}

/// The same, and makes the schema where there is none; its tables are made by whoever opens it.
pub async fn make_sandbox(live: &Address) -> Result<Address, StoreError> {
    let SandboxPlace { address, is_there } = find_sandbox(live).await?;
    if !is_there {
        let schema = address.schema.clone().unwrap_or_default();
        ask_once(live.clone(), |connection| Box::pin(make(connection, schema.clone()))).await?;
    }
    Ok(address)
}

/// The schema's name, and whether it exists.
async fn find(sql: &mut dyn Sql) -> Result<Option<(String, bool)>, Failure> {
    let find = "SELECT current_schema()::text || $1, EXISTS
                    (SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname::text = current_schema()::text || $1)";
    let place = |row: &Row<'_>| Ok((row.get::<Option<String>>(0)?, row.get(1)?));
    let found = sql.row(find, values![ENDING], place).await?;
    Ok(found.and_then(|(schema, is_there)| Some((schema?, is_there))))
}

async fn make(connection: &mut PgConnection, schema: String) -> Result<(), Failure> {
    let make = format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(&schema));
    connection.client.batch_execute(&make).await.map_err(|error| match error.code() {
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Failure::Unusable(
            "PostgreSQL: the role may not make a schema for the sandbox; GRANT CREATE ON DATABASE … TO …".to_owned(),
        ),
        _ => error.into(),
    })
}
