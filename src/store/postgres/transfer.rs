//! Carrying all records away from PostgreSQL, or to it (`unionhall move`).

use std::pin::pin;

use deadpool::managed::Object;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::error::SqlState;

use super::connection::{ExpectedIdentity, Parameter};
use super::identity::is_restored;
use super::pool::{Connector, Pool};
use super::schema;
use super::{Address, PostgresOpenError};
use crate::domain::time::Timestamp;
use crate::reply::Reply;
use crate::store::StoreError;
use crate::store::migration::{MIGRATIONS, Prepare};
use crate::store::sql::{Failure, SqlReply, Value};
use crate::store::transfer::{Cell, Cells, TABLES, Table, TableColumns, Transfer, cells};

/// A database whose records are carried away, or to: one transaction, in which nobody else can write.
pub struct PostgresTransfer {
    /// Its pool is gone, so it closes when this is dropped; what was not committed is rolled back.
    connection: Object<Connector>,
}

/// Reading goes on beside it. It must not end because a big table takes its time.
const HOLD: &str = "
    BEGIN;
    SET LOCAL statement_timeout = 0;
    SET LOCAL idle_in_transaction_session_timeout = 0;
    SET LOCAL lock_timeout = '30s'";

impl PostgresTransfer {
    /// Connects and waits until nobody writes.
    pub async fn open(address: Address, prepare: Prepare) -> Result<Self, PostgresOpenError> {
        let pool = Pool::new(address, 1, ExpectedIdentity::default())?;
        // A newer schema that still serves us may hold what we know nothing of, and would leave behind.
        let (found, known) = (schema::prepare(&pool, prepare, MIGRATIONS).await?, MIGRATIONS.len() as i64);
        if found.version > known {
            return Err(PostgresOpenError::Newer { found: found.version, serves: found.serves, known });
        }
        if prepare == Prepare::Expect && pool.ask(|connection| Box::pin(is_restored(connection))).await? {
            return Err(PostgresOpenError::Restored);
        }
        let connection = pool.get().await.map_err(StoreError::from)?;
        let tables: Vec<_> = TABLES.iter().map(|table| table.name).collect();
        let hold = format!("{HOLD}; LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE", tables.join(", "));
        connection.client.batch_execute(&hold).await.map_err(|error| match error.code() {
            Some(&SqlState::LOCK_NOT_AVAILABLE) => PostgresOpenError::Held,
            _ => PostgresOpenError::Store(Failure::from(error).into()),
        })?;
        Ok(Self { connection })
    }
}

/// A person may have been referred by one who came later, so this is checked once all are there.
const NO_REFERRERS: &str = "ALTER TABLE people DROP CONSTRAINT IF EXISTS people_referrer_id_fkey";
const REFERRERS: &str =
    "ALTER TABLE people ADD CONSTRAINT people_referrer_id_fkey FOREIGN KEY (referrer_id) REFERENCES people";

const MOVED: &str = "
    CREATE TABLE moved (place TEXT NOT NULL, at BIGINT NOT NULL);
    CREATE FUNCTION refuse_writes() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'these records were moved to another store'; END $$";

impl Transfer for PostgresTransfer {
    fn select<'a>(&'a mut self, sql: String, after: Option<&'a Cell>) -> SqlReply<'a, Vec<Cells>> {
        Reply::later(async move {
            let after = after.map(Value::from);
            let values: Vec<Parameter<'_>> = after.iter().map(|value| value as Parameter<'_>).collect();
            let rows = self.connection.client.query(&sql, &values).await?;
            rows.iter().map(|row| cells(row, row.len())).collect()
        })
    }

    fn columns(&mut self, table: &'static Table) -> SqlReply<'_, Vec<String>> {
        Reply::later(async move {
            let sql = "SELECT attname::text FROM pg_catalog.pg_attribute
                       WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum";
            let rows = self.connection.client.query(sql, &[&table.name]).await?;
            Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
        })
    }

    fn last_number(&mut self, table: &'static Table) -> SqlReply<'_, i64> {
        Reply::later(async move {
            let sql = format!(
                "SELECT greatest(CASE WHEN is_called THEN last_value ELSE 0 END, (SELECT max({}) FROM {})) FROM {}",
                table.key,
                table.name,
                sequence(table)
            );
            let row = self.connection.client.query_one(&sql, &[]).await?;
            Ok(row.try_get(0)?)
        })
    }

    fn append<'a>(&'a mut self, table: &'a TableColumns, rows: &'a [Cells]) -> SqlReply<'a, ()> {
        Reply::later(async move {
            let (client, TableColumns { table: Table { name, has_row, .. }, columns }) =
                (&self.connection.client, table);
            if *name == "people" {
                client.batch_execute(NO_REFERRERS).await?;
            }
            if *has_row {
                client.batch_execute(&format!("DELETE FROM {name}")).await?;
            }
            let types = client.prepare(&format!("SELECT {columns} FROM {name}")).await?;
            let types: Vec<_> = types.columns().iter().map(|column| column.type_().clone()).collect();
            let sink = client.copy_in(&format!("COPY {name} ({columns}) FROM STDIN BINARY")).await?;
            let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
            for row in rows {
                let values: Vec<_> = row.iter().map(Value::from).collect();
                writer.as_mut().write_raw(&values).await?;
            }
            writer.finish().await?;
            Ok(())
        })
    }

    fn number_after(&mut self, table: &'static Table, last: i64) -> SqlReply<'_, ()> {
        Reply::later(async move {
            // A sequence that gave nothing yet stands before its first number.
            let sql = "SELECT setval($1::text::regclass, greatest($2::bigint, 1), $2 > 0)";
            self.connection.client.execute(sql, &[&sequence(table), &last]).await?;
            Ok(())
        })
    }

    fn finish(&mut self) -> SqlReply<'_, ()> {
        Reply::later(async move {
            let client = &self.connection.client;
            client.batch_execute(NO_REFERRERS).await?;
            client.batch_execute(REFERRERS).await?;
            client.batch_execute("COMMIT").await?;
            // The planner has to know how much there is now. Not part of the move: without it the server does so itself, later.
            let _later = client.batch_execute("SET statement_timeout = 0; ANALYZE").await;
            Ok(())
        })
    }

    fn retire<'a>(&'a mut self, place: &'a str, now: Timestamp) -> SqlReply<'a, ()> {
        Reply::later(async move {
            let client = &self.connection.client;
            client.batch_execute(MOVED).await?;
            client.execute("INSERT INTO moved (place, at) VALUES ($1, $2)", &[&place, &now.as_millis()]).await?;
            for Table { name, .. } in TABLES {
                let refuse = format!(
                    "CREATE TRIGGER moved BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {name}
                     FOR EACH STATEMENT EXECUTE FUNCTION refuse_writes()"
                );
                client.batch_execute(&refuse).await?;
            }
            client.batch_execute("COMMIT").await?;
            Ok(())
        })
    }
}

/// The sequence that numbers a table's rows, as PostgreSQL calls it.
fn sequence(table: &Table) -> String {
    format!("{}_{}_seq", table.name, table.key)
}
