//! Who can use the operator's page, with their links and sessions.

use std::time::Duration;

use crate::domain::email::EmailAddress;
use crate::domain::operator::{
    AddedOperator, LINK_FOR, LinkState, MAILED_LINK_INTERVAL, MAX_OPERATORS, MAX_SESSIONS_PER_OPERATOR, MailedOperator,
    OPERATOR_SESSION_FOR, OperatorLink, OperatorName, OperatorRecord, Role, SECOND_FACTOR_WITHIN,
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

/// The role of an operator; none if nobody of that name was added.
pub struct FindRole(pub OperatorName);

impl Unit for FindRole {
    type Done = Option<Role>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        sql.row("SELECT role FROM operators WHERE name = $1", values![self.0.as_str()], role).await
    }
}

/// All operators, oldest first.
pub struct ListOperators(pub Timestamp);

impl Unit for ListOperators {
    type Done = Vec<OperatorRecord>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let list = "SELECT name, role, email, factor IS NOT NULL AS has_factor, created_at, signed_in_at,
                        (SELECT max(l.expires_at) FROM operator_links l
                         WHERE l.operator_id = operators.id AND l.used_at IS NULL AND l.expires_at > $1) AS link_until,
                        (SELECT count(*) FROM operator_sessions s WHERE s.operator_id = operators.id AND s.expires_at > $1) AS sessions
                    FROM operators ORDER BY id";
        sql.rows(list, values![self.0], record).await
    }
}

/// Whoever asks for a link types it, so that no two operators have the same.
async fn has_address(sql: &mut dyn Sql, email: Option<&EmailAddress>, except: &OperatorName) -> Result<bool, Failure> {
    let Some(email) = email else { return Ok(false) };
    let find = "SELECT 1 FROM operators WHERE email_normalized = $1 AND name <> $2";
    sql.exists(find, values![&email.normalized(), except.as_str()]).await
}

pub struct AddOperator {
    pub name: OperatorName,
    pub role: Role,
    pub email: Option<EmailAddress>,
    pub link: NewLink,
    pub now: Timestamp,
}

impl Unit for AddOperator {
    type Done = AddedOperator;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<AddedOperator, Failure> {
        let Self { name, role, email, link, now } = self;
        sql.lock("operators").await?;
        if sql.exists("SELECT 1 FROM operators WHERE name = $1", values![name.as_str()]).await? {
            return Ok(AddedOperator::Exists);
        }
        if has_address(sql, email.as_ref(), name).await? {
            return Ok(AddedOperator::AddressTaken);
        }
        let count: u32 = expected(sql.value("SELECT count(*) FROM operators", values![]).await?)?;
        if count >= MAX_OPERATORS {
            return Ok(AddedOperator::Full);
        }
        let add = "INSERT INTO operators (name, created_at, role, email, email_normalized) VALUES ($1, $2, $3, $4, $5) RETURNING id";
        let normalized = email.as_ref().map(EmailAddress::normalized);
        let typed = email.as_ref().map(EmailAddress::as_typed);
        let values = values![name.as_str(), *now, role.name(), typed, normalized.as_deref()];
        let id = expected(sql.insert(add, values).await?)?;
        link.add(sql, id).await?;
        Ok(AddedOperator::Added)
    }
}

/// What is said of an operator anew; what is left out stays.
pub struct ChangeOperator {
    pub name: OperatorName,
    pub role: Option<Role>,
    pub email: Option<EmailAddress>,
}

/// What came of changing an operator, or their second factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangedOperator {
    Done,
    Unknown,
    /// Another operator has that address.
    AddressTaken,
}

impl Unit for ChangeOperator {
    type Done = ChangedOperator;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<ChangedOperator, Failure> {
        let Self { name, role, email } = self;
        sql.lock("operators").await?;
        let find = "SELECT id FROM operators WHERE name = $1 FOR UPDATE";
        let Some(id) = sql.value::<i64>(find, values![name.as_str()]).await? else {
            return Ok(ChangedOperator::Unknown);
        };
        if has_address(sql, email.as_ref(), name).await? {
            return Ok(ChangedOperator::AddressTaken);
        }
        if let Some(role) = role {
            sql.execute("UPDATE operators SET role = $2 WHERE id = $1", values![id, role.name()]).await?;
        }
        if let Some(email) = email {
            // What was mailed to the address before opens nothing anymore, and nobody stays signed in by it.
            for open in [
                "DELETE FROM operator_sessions WHERE operator_id = $1",
                "DELETE FROM operator_links WHERE operator_id = $1",
            ] {
                sql.execute(open, values![id]).await?;
            }
            let change = "UPDATE operators SET email = $2, email_normalized = $3, mailed_at = NULL WHERE id = $1";
            sql.execute(change, values![id, email.as_typed(), &email.normalized()]).await?;
        }
        Ok(ChangedOperator::Done)
    }
}

/// A link to be kept: the hash of its token, and until when it works.
pub struct NewLink {
    pub hash: String,
    pub until: Timestamp,
}

impl NewLink {
    async fn add(&self, sql: &mut dyn Sql, operator: i64) -> Result<(), Failure> {
        // Those that ended are kept for an hour, so that a second use is told.
        let old = "DELETE FROM operator_links WHERE operator_id = $1 AND expires_at < $2";
        sql.execute(old, values![operator, self.until.minus(LINK_FOR + Duration::from_secs(3600))]).await?;
        let add = "INSERT INTO operator_links (operator_id, hash, expires_at) VALUES ($1, $2, $3)";
        sql.execute(add, values![operator, &self.hash, self.until]).await.map(|_| ())
    }
}

/// Gives an operator a new link; those before stop working. False if there is no such operator.
pub struct LinkOperator(pub OperatorName, pub NewLink);

impl Unit for LinkOperator {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(name, link) = self;
        let find = "SELECT id FROM operators WHERE name = $1 FOR UPDATE";
        let Some(id) = sql.value::<i64>(find, values![name.as_str()]).await? else { return Ok(false) };
        let end = "DELETE FROM operator_links WHERE operator_id = $1 AND used_at IS NULL";
        sql.execute(end, values![id]).await?;
        link.add(sql, id).await?;
        Ok(true)
    }
}

/// Everybody to whom a link may be mailed.
pub struct ListMailedOperators;

impl Unit for ListMailedOperators {
    type Done = Vec<MailedOperator>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let list = "SELECT name, email, mailed_at FROM operators WHERE email IS NOT NULL ORDER BY id";
        let read = |row: &Row<'_>| {
            let email = row.parsed("email", |text| EmailAddress::kept(text).ok())?;
            Ok(MailedOperator { name: name(row)?, email, mailed_at: row.get("mailed_at")? })
        };
        sql.rows(list, values![], read).await
    }
}

/// One more link, which is to be mailed. False if one was mailed a short while ago, to this address or by another node.
pub struct MailLink(pub MailedOperator, pub NewLink, pub Timestamp);

impl Unit for MailLink {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(operator, link, now) = self;
        let note = "UPDATE operators SET mailed_at = $3 WHERE name = $1 AND email = $2 AND (mailed_at IS NULL OR mailed_at <= $4 OR mailed_at > $3) RETURNING id";
        let values = values![operator.name.as_str(), operator.email.as_typed(), *now, now.minus(MAILED_LINK_INTERVAL)];
        let Some(id) = sql.value::<i64>(note, values).await? else { return Ok(false) };
        link.add(sql, id).await?;
        Ok(true)
    }
}

/// The mail with a link did not go: another may, unless there is no such mailbox.
pub struct ForgetMailedLink {
    pub name: OperatorName,
    pub hash: String,
    pub may_again: bool,
}

impl Unit for ForgetMailedLink {
    type Done = ();
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        sql.execute("DELETE FROM operator_links WHERE hash = $1", values![&self.hash]).await?;
        let forget = "UPDATE operators SET mailed_at = NULL WHERE name = $1 AND $2";
        sql.execute(forget, values![self.name.as_str(), self.may_again]).await.map(|_| ())
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
        for of_theirs in [
            "DELETE FROM operator_sessions WHERE operator_id = $1",
            "DELETE FROM operator_links WHERE operator_id = $1",
            "DELETE FROM operator_recovery_codes WHERE operator_id = $1",
        ] {
            sql.execute(of_theirs, values![id]).await?;
        }
        Ok(sql.execute("DELETE FROM operators WHERE id = $1", values![id]).await? == 1)
    }
}

/// The links of all operators, by the hashes of their tokens.
pub struct ListOperatorLinks(pub Timestamp);

impl Unit for ListOperatorLinks {
    type Done = Vec<(String, OperatorLink)>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let list = "SELECT o.name, l.hash, l.used_at IS NOT NULL AS used, l.expires_at > $1 AS lasts
                    FROM operators o JOIN operator_links l ON l.operator_id = o.id ORDER BY l.id";
        let link = |row: &Row<'_>| {
            let state = match (row.get("used")?, row.get("lasts")?) {
                (true, _) => LinkState::Used,
                (false, true) => LinkState::Works,
                (false, false) => LinkState::Expired,
            };
            Ok((row.get("hash")?, OperatorLink { name: name(row)?, state }))
        };
        sql.rows(list, values![self.0], link).await
    }
}

/// Uses a link once, for a session with that hash. None if the link does not work.
pub struct UseOperatorLink {
    pub link_hash: String,
    pub session_hash: String,
    pub now: Timestamp,
}

/// A session that a link began.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum BegunSession {
    SignedIn,
    /// It waits for the code of the second factor.
    Waits,
}

impl Unit for UseOperatorLink {
    type Done = Option<BegunSession>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let take = "UPDATE operator_links SET used_at = $2
                    WHERE hash = $1 AND used_at IS NULL AND expires_at > $2 RETURNING operator_id";
        let Some(id) = sql.value::<i64>(take, values![&self.link_hash, self.now]).await? else { return Ok(None) };
        let begun = "SELECT factor IS NOT NULL FROM operators WHERE id = $1 FOR UPDATE";
        let Some(waits) = sql.value::<bool>(begun, values![id]).await? else { return Ok(None) };
        let lasts = if waits { SECOND_FACTOR_WITHIN } else { OPERATOR_SESSION_FOR };
        let add =
            "INSERT INTO operator_sessions (operator_id, hash, expires_at, waits_for_code) VALUES ($1, $2, $3, $4)";
        sql.execute(add, values![id, &self.session_hash, self.now.plus(lasts), waits]).await?;
        if waits {
            sql.about("waits for the second factor");
        } else {
            note_sign_in(sql, id, self.now).await?;
        }
        forget_old(sql, id, self.now).await?;
        Ok(Some(if waits { BegunSession::Waits } else { BegunSession::SignedIn }))
    }
}

pub(super) async fn note_sign_in(sql: &mut dyn Sql, operator: i64, now: Timestamp) -> Result<(), Failure> {
    sql.execute("UPDATE operators SET signed_in_at = $2 WHERE id = $1", values![operator, now]).await.map(|_| ())
}

pub struct FindOperatorSession(pub String, pub Timestamp);

/// Whose a session is.
pub struct FoundSession {
    pub name: OperatorName,
    pub role: Role,
    pub has_factor: bool,
    pub waits_for_code: bool,
}

impl Unit for FindOperatorSession {
    type Done = Option<FoundSession>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self(hash, now) = self;
        let find = "SELECT o.name, o.role, o.factor IS NOT NULL AS has_factor, s.waits_for_code
                    FROM operator_sessions s JOIN operators o ON o.id = s.operator_id WHERE s.hash = $1 AND s.expires_at > $2";
        let read = |row: &Row<'_>| {
            Ok(FoundSession {
                name: name(row)?,
                role: role(row)?,
                has_factor: row.get("has_factor")?,
                waits_for_code: row.get("waits_for_code")?,
            })
        };
        sql.row(find, values![hash, *now], read).await
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

pub struct EndSessionsOf(pub OperatorName);

impl Unit for EndSessionsOf {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let end = "DELETE FROM operator_sessions WHERE operator_id = (SELECT id FROM operators WHERE name = $1)";
        sql.execute(end, values![self.0.as_str()]).await.map(|_| ())
    }
}

/// Deletes all expired sessions, and one operator's oldest sessions beyond the maximum. Those that wait for a code end none that is signed in.
pub(super) async fn forget_old(sql: &mut dyn Sql, operator: i64, now: Timestamp) -> Result<(), Failure> {
    sql.execute("DELETE FROM operator_sessions WHERE expires_at <= $1", values![now]).await?;
    let oldest = "DELETE FROM operator_sessions WHERE operator_id = $1 AND waits_for_code = $3 AND id NOT IN
                      (SELECT id FROM operator_sessions WHERE operator_id = $1 AND waits_for_code = $3 ORDER BY id DESC LIMIT $2)";
    for waits in [false, true] {
        sql.execute(oldest, values![operator, MAX_SESSIONS_PER_OPERATOR, waits]).await?;
    }
    Ok(())
}

fn name(row: &Row<'_>) -> Result<OperatorName, Failure> {
    row.parsed("name", |text| text.parse().ok())
}

fn role(row: &Row<'_>) -> Result<Role, Failure> {
    row.parsed("role", Role::from_name)
}

fn record(row: &Row<'_>) -> Result<OperatorRecord, Failure> {
    Ok(OperatorRecord {
        name: name(row)?,
        role: role(row)?,
        email: row.get("email")?,
        second_factor: row.get("has_factor")?,
        created_at: row.get("created_at")?,
        signed_in_at: row.get("signed_in_at")?,
        link_until: row.get("link_until")?,
        sessions: row.get("sessions")?,
    })
}
