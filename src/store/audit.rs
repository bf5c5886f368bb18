//! The audit log: who changed what with which command, appended in the same transaction as the change.
//!
//! Every change that runs on a store made with [`Store::audited`](super::Store::audited) is audited: what operators, partners
//! (with their key at `/partner/v1`), negotiators, and members on their own page do. The steps of workers are not audited,
//! because they follow from rules. What people do with a form or a mailed link (signing up, confirming, declining) is not audited
//! either: the sign-up's own row keeps that evidence: when, through which channel, which words were shown, and which button was
//! pressed.
//!
//! Rows are never changed or deleted: the schema refuses it. People appear by their account, never by an address.

use std::any::Any;
use std::sync::Arc;

use super::sql::{Failure, How, Job, ReadRow, Row, Sql, SqlReply, Unit, Value, expected, values};
use crate::domain::time::{DAY, Timestamp};
use crate::reply::Reply;

/// What was done after a place and before `until`, oldest first.
pub struct ListAuditAfter {
    pub after: AuditPlace,
    pub until: Timestamp,
    pub most: u32,
}

impl Unit for ListAuditAfter {
    type Done = Vec<AuditEntry>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<AuditEntry>, Failure> {
        let list = "SELECT id, at, who, command, about FROM audit
                    WHERE (at, id) > ($1, $2) AND at < $3 ORDER BY at, id LIMIT $4";
        sql.rows(list, values![self.after.at, self.after.id, self.until, self.most], entry).await
    }
}

/// What was done from `since` on and before a place, newest first.
pub struct ListAuditBefore {
    pub since: Timestamp,
    pub before: AuditPlace,
    pub most: u32,
}

impl Unit for ListAuditBefore {
    type Done = Vec<AuditEntry>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<AuditEntry>, Failure> {
        let list = "SELECT id, at, who, command, about FROM audit
                    WHERE at >= $1 AND (at, id) < ($2, $3) ORDER BY at DESC, id DESC LIMIT $4";
        sql.rows(list, values![self.since, self.before.at, self.before.id, self.most], entry).await
    }
}

/// Records an act that changes no row of ours but is worth knowing.
pub struct AppendAudit(pub Act);

impl Unit for AppendAudit {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        append(sql, &self.0, &self.0.about).await
    }
}

/// Something that an actor does with a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    pub who: String,
    pub command: &'static str,
    /// A key, a mail or a figure; for a person, the unit of work names their account.
    pub about: String,
    pub at: Timestamp,
    /// The row of `partner_changes` that asked for it, if a partner does it.
    pub change: Option<i64>,
}

/// A place in the log, in the order of time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AuditPlace {
    pub at: Timestamp,
    pub id: i64,
}

impl AuditPlace {
    /// Before everything that was done at that time, and after all that was done before it.
    pub const fn start_of(at: Timestamp) -> Self {
        Self { at, id: 0 }
    }
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

impl AuditEntry {
    pub fn place(&self) -> AuditPlace {
        AuditPlace { at: self.at, id: self.id }
    }
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

/// The actor in the audit log for what a member does on their own page.
pub const BY_THEMSELVES: &str = "the member";

/// The most rows of one kind per day about one member's own acts: the log only grows, and a member could fill the disk with it.
const BY_ONE_A_DAY: i64 = 20;

pub(crate) async fn append(sql: &mut dyn Sql, act: &Act, about: &str) -> Result<(), Failure> {
    if act.who == BY_THEMSELVES {
        let latest = "SELECT count(*) FROM (SELECT 1 FROM audit WHERE about = $1 AND at > $2 AND command = $4 LIMIT $3) AS latest";
        let values = values![about, act.at.minus(DAY), BY_ONE_A_DAY, act.command];
        if expected(sql.row(latest, values, |row| row.get::<i64>(0)).await?)? >= BY_ONE_A_DAY {
            return Ok(());
        }
    }
    let append = "INSERT INTO audit (at, who, command, about) VALUES ($1, $2, $3, $4)";
    sql.execute(append, values![act.at, &act.who, act.command, about]).await.map(|_| ())
}

/// A change that is recorded as an act, together with its effect.
pub(super) struct AuditedJob {
    pub job: Box<dyn Job>,
    pub act: Arc<Act>,
}

impl Job for AuditedJob {
    fn is_transaction(&self) -> bool {
        true
    }

    fn apply<'a>(&'a mut self, sql: &'a mut dyn Sql) -> Reply<'a, Result<(), Failure>> {
        Reply::later(async move {
            let mut watched = Watched { sql, changed: false, about: None };
            self.job.apply(&mut watched).await?;
            let Watched { sql, changed, about } = watched;
            if changed {
                let about = about.as_deref().unwrap_or(&self.act.about);
                append(sql, &self.act, about).await?;
                if let Some(change) = self.act.change {
                    note_done(sql, change, about, self.act.at).await?;
                }
            }
            Ok(())
        })
    }

    fn done(&mut self) -> &mut dyn Any {
        self.job.done()
    }
}

/// A connection that notices whether a unit of work changes anything, and which person or thing it is about.
struct Watched<'s> {
    sql: &'s mut dyn Sql,
    changed: bool,
    about: Option<String>,
}

/// Whether a statement only reads.
fn is_question(sql: &str) -> bool {
    let words = sql.trim_start();
    words.starts_with("SELECT") || words.starts_with("WITH")
}

impl Sql for Watched<'_> {
    fn never_waits(&self) -> bool {
        self.sql.never_waits()
    }

    fn each_row<'a>(&'a mut self, sql: &'static str, values: &'a [Value<'_>], read: ReadRow<'a>) -> SqlReply<'a, ()> {
        Reply::later(async move {
            let mut any = false;
            let mut watched = |row: &Row<'_>| {
                any = true;
                read(row)
            };
            self.sql.each_row(sql, values, &mut watched).await?;
            self.changed |= any && !is_question(sql);
            Ok(())
        })
    }

    fn insert<'a>(&'a mut self, sql: &'static str, values: &'a [Value<'_>]) -> SqlReply<'a, Option<i64>> {
        Reply::later(async move {
            let id = self.sql.insert(sql, values).await?;
            self.changed |= id.is_some();
            Ok(id)
        })
    }

    fn execute<'a>(&'a mut self, sql: &'static str, values: &'a [Value<'_>]) -> SqlReply<'a, u64> {
        Reply::later(async move {
            let rows = self.sql.execute(sql, values).await?;
            self.changed |= rows > 0;
            Ok(rows)
        })
    }

    fn lock<'a>(&'a mut self, key: &'a str) -> SqlReply<'a, ()> {
        self.sql.lock(key)
    }

    fn try_lock<'a>(&'a mut self, key: &'a str) -> SqlReply<'a, bool> {
        self.sql.try_lock(key)
    }

    fn about(&mut self, what: &str) {
        self.about = Some(what.to_owned());
    }
}

/// Notes that the requested change was made, in this transaction.
pub(crate) async fn note_done(sql: &mut dyn Sql, change: i64, about: &str, now: Timestamp) -> Result<(), Failure> {
    let done = "UPDATE partner_changes SET done_at = $2, about = $3 WHERE id = $1";
    sql.execute(done, values![change, now, about]).await.map(|_| ())
}
