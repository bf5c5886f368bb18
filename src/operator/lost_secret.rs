//! Ties the records to another secret, because theirs is lost.

use crate::installation::KnownGeneration;
use crate::partners::endpoints::AskToRotate;
use crate::store::sql::{Failure, How, Sql, Unit, values};

/// Their newest generation is this one from now on. Returns how many webhook endpoints are disabled by that: their secrets derived from
/// what is lost.
pub struct ReplaceSecret(pub KnownGeneration);

impl Unit for ReplaceSecret {
    type Done = u64;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        let KnownGeneration { number, fingerprint, begins_at, leaked, is_done } = &self.0;
        sql.execute("DELETE FROM secret_generations", values![]).await?;
        sql.execute("UPDATE installation SET secret_fingerprint = $1", values![fingerprint]).await?;
        let add = "INSERT INTO secret_generations (number, fingerprint, begins_at, after_leak, done) VALUES ($1, $2, $3, $4, $5)";
        sql.execute(add, values![*number, fingerprint, *begins_at, *leaked, *is_done]).await?;
        AskToRotate { before: *number, by: *begins_at }.apply(sql).await
    }
}
