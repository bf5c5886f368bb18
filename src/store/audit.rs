//! The audit log: who changed what with which command, appended in the very transaction that changed it; as SQL.
//!
//! Rows are never changed or deleted: the schema refuses it. People appear by their account, never by an address.

use std::sync::Arc;

use super::sql::{Failure, Row, Sql, Unit, Value, values};
use super::{Engine, Store, StoreFigures, StoreReply};
use crate::domain::sign_up::{Confirmation, NewSignUp, SeenPage, SignUpId, SignedUp};
use crate::domain::time::Timestamp;

area! {
    /// Who did what.
    AuditStore {
        /// What was done at that time or later, oldest first, after that id.
        read audit_entries(since: Timestamp, after: i64, most: u32) -> Vec<AuditEntry> {
            |sql| {
                let list = "SELECT id, at, who, command, about FROM audit WHERE id > $2 AND at >= $1 ORDER BY id LIMIT $3";
                sql.rows(list, values![*since, *after, *most], entry).await
            }
        };

        /// Writes down what changes no row of ours, and is worth knowing all the same.
        write append_audit(act: Act) -> () {
            |sql| append(sql, act, &act.about).await
        };
    }
}

/// Something that somebody does with a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    pub who: String,
    pub command: &'static str,
    /// A key, a mail, a figure; where it is a person, the unit of work says so by their account.
    pub about: String,
    pub at: Timestamp,
}

/// A row of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub id: i64,
    pub at: Timestamp,
    pub who: String,
    pub command: String,
    pub about: String,
}

fn entry(row: &Row<'_>) -> Result<AuditEntry, Failure> {
    Ok(AuditEntry {
        id: row.get("id")?,
        at: row.get("at")?,
        who: row.get("who")?,
        command: row.get("command")?,
        about: row.get("about")?,
    })
}

async fn append(sql: &mut impl Sql, act: &Act, about: &str) -> Result<(), Failure> {
    let append = "INSERT INTO audit (at, who, command, about) VALUES ($1, $2, $3, $4)";
    sql.execute(append, values![act.at, &act.who, act.command, about]).await.map(|_| ())
}

/// A store of which every change is written down as one act.
#[derive(Debug)]
pub(super) struct Audited<E> {
    pub engine: Arc<E>,
    pub act: Act,
}

impl<E: Engine + 'static> Engine for Audited<E> {
    fn read<U: Unit>(&self, unit: U) -> StoreReply<'_, U::Done> {
        self.engine.read(unit)
    }

    fn write<U: Unit>(&self, unit: U) -> StoreReply<'_, U::Done> {
        self.engine.write(AuditedUnit { unit, act: self.act.clone() })
    }

    fn member_count(&self) -> StoreReply<'_, u64> {
        self.engine.member_count()
    }

    fn sign_up(&self, new: NewSignUp, now: Timestamp) -> StoreReply<'_, SignedUp> {
        self.engine.sign_up(new, now)
    }

    fn confirm(&self, sign_up: SignUpId, seen: SeenPage, now: Timestamp) -> StoreReply<'_, Confirmation> {
        self.engine.confirm(sign_up, seen, now)
    }

    fn check(&self) -> StoreReply<'_, ()> {
        self.engine.check()
    }

    fn close(&self) -> StoreReply<'_, ()> {
        self.engine.close()
    }

    fn figures(&self) -> StoreReply<'_, StoreFigures> {
        self.engine.figures()
    }

    fn audited(self: Arc<Self>, act: Act) -> Arc<dyn Store> {
        Arc::clone(&self.engine).audited(act)
    }
}

struct AuditedUnit<U> {
    unit: U,
    act: Act,
}

impl<U: Unit> Unit for AuditedUnit<U> {
    type Done = U::Done;

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<U::Done, Failure> {
        let mut watched = Watched { sql, changed: false, account: None };
        let done = self.unit.apply(&mut watched).await?;
        let Watched { changed, account, .. } = watched;
        if changed {
            let about = account.map_or_else(|| self.act.about.clone(), |account| format!("account {account}"));
            append(sql, &self.act, &about).await?;
        }
        Ok(done)
    }
}

/// A connection that notices whether a unit of work changes anything, and whom it is about.
struct Watched<'s, S> {
    sql: &'s mut S,
    changed: bool,
    account: Option<String>,
}

/// Whether a statement only asks.
fn is_question(sql: &str) -> bool {
    let words = sql.trim_start();
    words.starts_with("SELECT") || words.starts_with("WITH")
}

impl<S: Sql> Sql for Watched<'_, S> {
    async fn rows<T: Send>(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T, Failure> + Send,
    ) -> Result<Vec<T>, Failure> {
        let rows = self.sql.rows(sql, values, read).await?;
        self.changed |= !is_question(sql) && !rows.is_empty();
        Ok(rows)
    }

    async fn row<T: Send>(
        &mut self,
        sql: &'static str,
        values: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T, Failure> + Send,
    ) -> Result<Option<T>, Failure> {
        let row = self.sql.row(sql, values, read).await?;
        self.changed |= !is_question(sql) && row.is_some();
        Ok(row)
    }

    async fn insert(&mut self, sql: &'static str, values: &[Value<'_>]) -> Result<Option<i64>, Failure> {
        let id = self.sql.insert(sql, values).await?;
        self.changed |= id.is_some();
        Ok(id)
    }

    async fn execute(&mut self, sql: &'static str, values: &[Value<'_>]) -> Result<u64, Failure> {
        let rows = self.sql.execute(sql, values).await?;
        self.changed |= rows > 0;
        Ok(rows)
    }

    async fn lock(&mut self, key: &str) -> Result<(), Failure> {
        self.sql.lock(key).await
    }

    async fn try_lock(&mut self, key: &str) -> Result<bool, Failure> {
        self.sql.try_lock(key).await
    }

    fn about(&mut self, account: &str) {
        self.account = Some(account.to_owned());
    }
}
