//! A PostgreSQL database for one test, on the server that `./test.sh` starts for all of them.

use crate::prelude::*;
use tokio_postgres::Client;

use crate::records::{self, clone_template, patient, postgres};

pub(crate) struct Database {
    name: String,
}

impl Database {
    /// A new one, empty: for a test that is about making the tables.
    pub(crate) async fn make() -> Self {
        Self::make_with("ENCODING 'UTF8'").await
    }

    pub(crate) async fn make_with(options: &str) -> Self {
        let name = Self::new_name().await;
        let create = format!("CREATE DATABASE {name} {options} TEMPLATE template0");
        connect("postgres").await.batch_execute(&create).await.unwrap();
        Self { name }
    }

    /// A new one with the current schema, and no rows but the schema's own.
    pub(crate) async fn migrated() -> Self {
        let name = Self::new_name().await;
        clone_template(&name);
        Self { name }
    }

    /// A test that was killed may have had the same process id and left its database behind.
    async fn new_name() -> String {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        connect("postgres").await.batch_execute(&drop).await.unwrap();
        name
    }

    pub(crate) fn url(&self) -> String {
        postgres(&self.name)
    }

    pub(crate) fn address(&self) -> Address {
        Address::parse(&patient(&self.url())).unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        connect(&self.name).await
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The whole cluster goes at the end in any case.
        let _gone = records::ask(&postgres("postgres"), &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
    }
}

async fn connect(database: &str) -> Client {
    records::connect(&postgres(database)).await.unwrap()
}
