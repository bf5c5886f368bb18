//! Where the sandbox's records are: a file or a schema next to the live ones.

use anyhow::Context;

use crate::config::{Records, sandbox_file};
use crate::store::postgres::{self, SandboxPlace};

/// Where the sandbox's records are, or would be.
#[derive(Clone)]
pub(super) struct SandboxRecords {
    pub records: Records,
    pub are_there: bool,
}

/// Looks for the sandbox's records next to these; creates nothing.
pub(super) async fn find_sandbox(live: &Records) -> anyhow::Result<SandboxRecords> {
    Ok(match live {
        Records::Sqlite(file) => {
            let file = sandbox_file(file);
            let there = file.try_exists().with_context(|| format!("cannot look for {}", file.display()))?;
            SandboxRecords { records: Records::Sqlite(file), are_there: there }
        }
        Records::Postgres(address) => {
            let SandboxPlace { address, is_there } = postgres::find_sandbox(address).await?;
            SandboxRecords { records: Records::Postgres(Box::new(address)), are_there: is_there }
        }
    })
}

/// The sandbox's records; makes a place for them if there is none.
pub(super) async fn make_sandbox(live: &Records) -> anyhow::Result<Records> {
    Ok(match live {
        Records::Sqlite(file) => Records::Sqlite(sandbox_file(file)),
        Records::Postgres(address) => Records::Postgres(Box::new(postgres::make_sandbox(address).await?)),
    })
}
