//! Carrying all records away from PostgreSQL, or to it (`unionhall move`).

use std::fmt;
use std::pin::pin;

use deadpool::managed::Object;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::error::SqlState;

use super::connection::{ExpectedIdentity, Parameter};
use super::identity::LookForCopy;
use super::pool::{Connector, Pool};
use super::schema::{self, Exactly};
use super::{Address, PostgresOpenError};
use crate::domain::time::Timestamp;
use crate::reply::Reply;
use crate::store::migration::{MIGRATIONS, Prepare};
use crate::store::sql::{Failure, Value};
use crate::store::transfer::{
    Cell, Cells, TABLES, Table, TableColumns, TransferRows, TransferSource, TransferTarget, cells,
};
use crate::store::{StoreError, StoreReply};

/// A database whose records are carried away, or to: one transaction, in which nobody else can write.
pub struct PostgresTransfer {
    /// Its pool is gone, so it closes when this is dropped; what was not committed is rolled back.
    connection: Object<Connector>,
}

impl fmt::Debug for PostgresTransfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgresTransfer")
    }
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
        if let Exactly::Newer { found, serves, known } = schema::prepare(&pool, prepare, MIGRATIONS).await? {
            return Err(PostgresOpenError::Newer { found, serves, known });
        }
        if prepare == Prepare::Expect && pool.run(&mut LookForCopy).await? {
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

    async fn write(&self, TableColumns { table, columns }: &TableColumns, rows: &[Cells]) -> Result<(), Failure> {
        let client = &self.connection.client;
        if table.has_row {
            client.batch_execute(&format!("DELETE FROM {}", table.name)).await?;
        }
        let types = client.prepare(&format!("SELECT {columns} FROM {}", table.name)).await?;
        let types: Vec<_> = types.columns().iter().map(|column| column.type_().clone()).collect();
        let sink = client.copy_in(&format!("COPY {} ({columns}) FROM STDIN BINARY", table.name)).await?;
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &types));
        for row in rows {
            let values: Vec<_> = row.iter().map(Value::from).collect();
            writer.as_mut().write_raw(&values).await?;
        }
        writer.finish().await?;
        Ok(())
    }

    async fn make_valid(&mut self) -> Result<(), Failure> {
        let client = &self.connection.client;
        client.batch_execute(NO_REFERRERS).await?;
        client.batch_execute(REFERRERS).await?;
        client.batch_execute("COMMIT").await?;
        // The planner has to know how much there is now. Not part of the move: without it the server does so itself, later.
        let _later = client.batch_execute("SET statement_timeout = 0; ANALYZE").await;
        Ok(())
    }

    async fn refuse_writes(&mut self, place: &str, now: Timestamp) -> Result<(), Failure> {
        let client = &self.connection.client;
        client.batch_execute(MOVED).await?;
        client.execute("INSERT INTO moved (place, at) VALUES ($1, $2)", &[&place, &now.as_millis()]).await?;
        for table in TABLES {
            let name = table.name;
            client
                .batch_execute(&format!(
                    "CREATE TRIGGER moved BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {name}
                     FOR EACH STATEMENT EXECUTE FUNCTION refuse_writes()"
                ))
                .await?;
        }
        client.batch_execute("COMMIT").await?;
        Ok(())
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

impl TransferRows for PostgresTransfer {
    fn select<'a>(&'a mut self, sql: String, after: Option<&'a Cell>) -> StoreReply<'a, Vec<Cells>> {
        Reply::later(async move {
            let after = after.map(Value::from);
            let values: Vec<Parameter<'_>> = after.iter().map(|value| value as Parameter<'_>).collect();
            let rows = self.connection.client.query(&sql, &values).await.map_err(Failure::from)?;
            Ok(rows.iter().map(|row| cells(row, row.len())).collect::<Result<_, _>>()?)
        })
    }

    fn columns(&mut self, table: &'static Table) -> StoreReply<'_, Vec<String>> {
        Reply::later(async move {
            let sql = "SELECT attname::text FROM pg_catalog.pg_attribute
                       WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum";
            let rows = self.connection.client.query(sql, &[&table.name]).await.map_err(Failure::from)?;
            Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().map_err(Failure::from)?)
        })
    }

    fn last_number(&mut self, table: &'static Table) -> StoreReply<'_, i64> {
        Reply::later(async move {
            let sql = format!(
                "SELECT greatest(CASE WHEN is_called THEN last_value ELSE 0 END, (SELECT max({}) FROM {})) FROM {}",
                table.key,
                table.name,
                sequence(table)
            );
            let row = self.connection.client.query_one(&sql, &[]).await.map_err(Failure::from)?;
            Ok(row.try_get(0).map_err(Failure::from)?)
        })
    }
}

/// The sequence that numbers a table's rows, as PostgreSQL calls it.
fn sequence(table: &Table) -> String {
    format!("{}_{}_seq", table.name, table.key)
}

impl TransferSource for PostgresTransfer {
    fn retire<'a>(&'a mut self, place: &'a str, now: Timestamp) -> StoreReply<'a, ()> {
        Reply::later(async move { self.refuse_writes(place, now).await.map_err(StoreError::from) })
    }
}

impl TransferTarget for PostgresTransfer {
    fn append<'a>(&'a mut self, table: &'a TableColumns, rows: &'a [Cells]) -> StoreReply<'a, ()> {
        Reply::later(async move {
            if table.table.name == "people" {
                self.connection.client.batch_execute(NO_REFERRERS).await.map_err(Failure::from)?;
            }
            self.write(table, rows).await.map_err(StoreError::from)
        })
    }

    fn number_after(&mut self, table: &'static Table, last: i64) -> StoreReply<'_, ()> {
        Reply::later(async move {
            // A sequence that gave nothing yet stands before its first number.
            let sql = "SELECT setval($1::text::regclass, greatest($2::bigint, 1), $2 > 0)";
            let done = self.connection.client.execute(sql, &[&sequence(table), &last]).await;
            done.map(|_| ()).map_err(|error| Failure::from(error).into())
        })
    }

    fn finish(&mut self) -> StoreReply<'_, ()> {
        Reply::later(async move { self.make_valid().await.map_err(StoreError::from) })
    }
}
