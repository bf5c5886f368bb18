//! Who can use the operator's page, with their links and sessions.

use crate::domain::operator::{
    AddedOperator, LinkState, MAX_OPERATORS, MAX_SESSIONS_PER_OPERATOR, OperatorLink, OperatorName, OperatorRecord,
};
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Row, Sql, Unit, expected, values};

pub struct AreThereOperators;

impl Unit for AreThereOperators {
    type Done = bool;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        sql.exists("SELECT 1 FROM operators LIMIT 1", values![]).await
    }
}

pub struct HasOperator(pub OperatorName);

impl Unit for HasOperator {
    type Done = bool;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        exists(sql, &self.0).await
    }
}

/// All operators, oldest first.
pub struct ListOperators(pub Timestamp);

impl Unit for ListOperators {
    type Done = Vec<OperatorRecord>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let list = "SELECT name, created_at, signed_in_at,
                        CASE WHEN link_hash IS NOT NULL AND link_used_at IS NULL AND link_expires_at > $1
                             THEN link_expires_at END AS link_until,
                        (SELECT count(*) FROM operator_sessions s WHERE s.operator_id = operators.id AND s.expires_at > $1) AS sessions
                    FROM operators ORDER BY id";
        sql.rows(list, values![self.0], record).await
    }
}

pub struct AddOperator {
    pub name: OperatorName,
    pub link_hash: String,
    pub link_until: Timestamp,
    pub now: Timestamp,
}

impl Unit for AddOperator {
    type Done = AddedOperator;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<AddedOperator, Failure> {
        sql.lock("operators").await?;
        if exists(sql, &self.name).await? {
            return Ok(AddedOperator::Exists);
        }
        let count: u32 = expected(sql.value("SELECT count(*) FROM operators", values![]).await?)?;
        if count >= MAX_OPERATORS {
            return Ok(AddedOperator::Full);
        }
        let add = "INSERT INTO operators (name, created_at, link_hash, link_expires_at) VALUES ($1, $2, $3, $4)";
        sql.execute(add, values![self.name.as_str(), self.now, &self.link_hash, self.link_until]).await?;
        Ok(AddedOperator::Added)
    }
}

/// Gives an operator a new link; the previous one stops working. False if there is no such operator.
pub struct LinkOperator {
    pub name: OperatorName,
    pub link_hash: String,
    pub link_until: Timestamp,
}

impl Unit for LinkOperator {
    type Done = bool;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let link = "UPDATE operators SET link_hash = $2, link_expires_at = $3, link_used_at = NULL WHERE name = $1";
        Ok(sql.execute(link, values![self.name.as_str(), &self.link_hash, self.link_until]).await? == 1)
    }
}

/// Removes an operator with their link and sessions. False if no operator has that name.
pub struct RemoveOperator(pub OperatorName);

impl Unit for RemoveOperator {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        // Lock the row first: an operator signing in at this moment waits for it, and then is no longer found.
        let find = "SELECT id FROM operators WHERE name = $1 FOR UPDATE";
        let Some(id) = sql.value::<i64>(find, values![self.0.as_str()]).await? else { return Ok(false) };
        sql.execute("DELETE FROM operator_sessions WHERE operator_id = $1", values![id]).await?;
        Ok(sql.execute("DELETE FROM operators WHERE id = $1", values![id]).await? == 1)
    }
}

/// The newest link of each operator, by the hash of its token.
pub struct ListOperatorLinks(pub Timestamp);

impl Unit for ListOperatorLinks {
    type Done = Vec<(String, OperatorLink)>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let list = "SELECT name, link_hash, link_used_at IS NOT NULL AS used, link_expires_at > $1 AS lasts
                    FROM operators WHERE link_hash IS NOT NULL ORDER BY id";
        let link = |row: &Row<'_>| {
            let state = match (row.get("used")?, row.get("lasts")?) {
                (true, _) => LinkState::Used,
                (false, true) => LinkState::Works,
                (false, false) => LinkState::Expired,
            };
            Ok((row.get("link_hash")?, OperatorLink { name: name(row)?, state }))
        };
        sql.rows(list, values![self.0], link).await
    }
}

/// Uses a link once, for a session with that hash. False if the link does not work.
pub struct UseOperatorLink {
    pub link_hash: String,
    pub session_hash: String,
    pub until: Timestamp,
    pub now: Timestamp,
}

impl Unit for UseOperatorLink {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let take = "UPDATE operators SET link_used_at = $2, signed_in_at = $2
                    WHERE link_hash = $1 AND link_used_at IS NULL AND link_expires_at > $2 RETURNING id";
        let Some(id) = sql.value(take, values![&self.link_hash, self.now]).await? else { return Ok(false) };
        let add = "INSERT INTO operator_sessions (operator_id, hash, expires_at) VALUES ($1, $2, $3)";
        sql.execute(add, values![id, &self.session_hash, self.until]).await?;
        forget_old(sql, id, self.now).await?;
        Ok(true)
    }
}

pub struct FindOperatorSession(pub String, pub Timestamp);

impl Unit for FindOperatorSession {
    type Done = Option<OperatorName>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self(hash, now) = self;
        let find = "SELECT o.name FROM operator_sessions s JOIN operators o ON o.id = s.operator_id
                    WHERE s.hash = $1 AND s.expires_at > $2";
        sql.row(find, values![hash, *now], name).await
    }
}

pub struct EndOperatorSession(pub String);

impl Unit for EndOperatorSession {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        sql.execute("DELETE FROM operator_sessions WHERE hash = $1", values![&self.0]).await.map(|_| ())
    }
}

async fn exists(sql: &mut dyn Sql, name: &OperatorName) -> Result<bool, Failure> {
    sql.exists("SELECT 1 FROM operators WHERE name = $1", values![name.as_str()]).await
}

/// Deletes all expired sessions, and one operator's oldest sessions beyond the maximum.
async fn forget_old(sql: &mut dyn Sql, operator: i64, now: Timestamp) -> Result<(), Failure> {
    sql.execute("DELETE FROM operator_sessions WHERE expires_at <= $1", values![now]).await?;
    let oldest = "DELETE FROM operator_sessions WHERE operator_id = $1 AND id NOT IN
                      (SELECT id FROM operator_sessions WHERE operator_id = $1 ORDER BY id DESC LIMIT $2)";
    sql.execute(oldest, values![operator, MAX_SESSIONS_PER_OPERATOR]).await.map(|_| ())
}

fn name(row: &Row<'_>) -> Result<OperatorName, Failure> {
    row.parsed("name", |text| text.parse().ok())
}

fn record(row: &Row<'_>) -> Result<OperatorRecord, Failure> {
    Ok(OperatorRecord {
        name: name(row)?,
        created_at: row.get("created_at")?,
        signed_in_at: row.get("signed_in_at")?,
        link_until: row.get("link_until")?,
        sessions: row.get("sessions")?,
    })
}
