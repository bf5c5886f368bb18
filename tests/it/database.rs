//! A PostgreSQL database for one test, on the server that `./test.sh` starts for all of them.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::Client;
use unionhall::store::postgres::Address;

use crate::records::{self, postgres};

pub(crate) struct Database {
    name: String,
}

impl Database {
    /// A new one, empty.
    pub(crate) async fn make() -> Self {
        Self::make_with("ENCODING 'UTF8'").await
    }

    pub(crate) async fn make_with(options: &str) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let client = connect("postgres").await;
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await.unwrap();
        client.batch_execute(&format!("CREATE DATABASE {name} {options} TEMPLATE template0")).await.unwrap();
        Self { name }
    }

    pub(crate) fn url(&self) -> String {
        postgres(&self.name)
    }

    pub(crate) fn address(&self) -> Address {
        Address::parse(&self.url()).unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        connect(&self.name).await
    }

    pub(crate) async fn drop(self) {
        let client = connect("postgres").await;
        client.batch_execute(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name)).await.unwrap();
    }
}

async fn connect(database: &str) -> Client {
    records::connect(&postgres(database)).await.unwrap()
}
