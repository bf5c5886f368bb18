//! The ledger of rewards: lines are added and never changed.
//!
//! Code that forms groups or moves money holds the lock `LOCK` until it is done, so that a referrer's groups are counted right. Leaving and
//! withdrawing do not wait for it: they only note for whom the person counted.

use crate::domain::reward::ledger::LedgerKind;
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, Sql, values};

/// The lock for forming groups and moving money.
pub(crate) const LOCK: &str = "rewards";

/// The author in the ledger for what follows from the rules.
pub(crate) const BY_RULE: &str = "rules";

/// Adds a line to the ledger.
pub(crate) async fn book(
    sql: &mut dyn Sql,
    account: &str,
    campaign: Option<i64>,
    (kind, cents): (LedgerKind, i64),
    (who, why): (&str, &str),
    now: Timestamp,
) -> Result<(), Failure> {
    let add = "INSERT INTO reward_ledger (account, campaign_id, kind, amount_cents, at, who, why) VALUES ($1, $2, $3, $4, $5, $6, $7)";
    sql.execute(add, values![account, campaign, kind.name(), cents, now, who, why]).await?;
    note_change(sql, account).await
}

/// Notes that an account's due or paid amount, or its owner, changed; the next roll-up recalculates it. Each change is its own row, so that
/// no writer waits.
pub(crate) async fn note_change(sql: &mut dyn Sql, account: &str) -> Result<(), Failure> {
    sql.execute("INSERT INTO account_changes (account) VALUES ($1)", values![account]).await.map(|_| ())
}

/// The amount due to an account, in cents.
pub(crate) async fn balance(sql: &mut dyn Sql, account: &str) -> Result<i64, Failure> {
    let sum = "SELECT CAST(coalesce(sum(amount_cents), 0) AS BIGINT) FROM reward_ledger WHERE account = $1";
    Ok(sql.value(sum, values![account]).await?.unwrap_or(0))
}
