//! People, their codes and how many are members, as SQL.

use rusqlite::{Connection, OptionalExtension, params};

use super::Failure;
use super::writer::Unit;
use crate::domain::referral::ReferralCode;
use crate::domain::signup::NamedPerson;
use crate::domain::time::Timestamp;
use crate::store::StoreError;

pub(super) fn member_count(connection: &Connection) -> Result<u64, Failure> {
    let mut statement = connection.prepare_cached("SELECT member_count FROM installation WHERE id = 1")?;
    let count: i64 = statement.query_row([], |row| row.get(0))?;
    // The column is checked never to be negative.
    Ok(count.unsigned_abs())
}

pub(super) fn find_code(connection: &Connection, compared: &str) -> Result<Option<ReferralCode>, Failure> {
    refuse_if_paused(connection)?;
    let mut statement = connection.prepare_cached("SELECT code FROM people WHERE compared = ?1")?;
    Ok(statement.query_row([compared], |row| code(row, 0)).optional()?)
}

pub(super) struct Pause(pub bool);

impl Unit for Pause {
    type Done = bool;

    fn apply(&self, connection: &Connection) -> Result<bool, Failure> {
        let changed = connection
            .execute("UPDATE installation SET signups_paused = ?1 WHERE signups_paused <> ?1", params![self.0])?;
        Ok(changed == 1)
    }
}

pub(super) struct CreateReferralCode {
    pub person: NamedPerson,
    pub now: Timestamp,
}

impl Unit for CreateReferralCode {
    type Done = ReferralCode;

    fn apply(&self, connection: &Connection) -> Result<ReferralCode, Failure> {
        refuse_if_paused(connection)?;
        Ok(find_or_add(connection, &self.person, self.now)?.code)
    }
}

pub(super) struct Person {
    pub id: i64,
    pub code: ReferralCode,
    pub mailbox: String,
    pub is_member: bool,
    /// Added just now: there can be nothing of theirs yet.
    pub is_new: bool,
}

/// The person of that address. A new one takes the code offered, unless it is somebody else's.
pub(super) fn find_or_add(connection: &Connection, named: &NamedPerson, now: Timestamp) -> Result<Person, Failure> {
    let compared = named.email.compared();
    let found = connection
        .prepare_cached("SELECT id, code, mailbox, state = 'member' FROM people WHERE compared = ?1")?
        .query_row([&compared], |row| {
            Ok(Person {
                id: row.get(0)?,
                code: code(row, 1)?,
                mailbox: row.get(2)?,
                is_member: row.get(3)?,
                is_new: false,
            })
        })
        .optional()?;
    if let Some(person) = found {
        return Ok(person);
    }
    let mailbox = named.email.mailbox();
    let added = connection
        .prepare_cached(
            "INSERT INTO people (email, compared, mailbox, code, state, created_at)
             VALUES (?1, ?2, ?3, ?4, 'invited', ?5) ON CONFLICT (code) DO NOTHING",
        )?
        .execute(params![named.email.as_typed(), compared, mailbox, named.code.as_str(), now.as_millis()])?;
    if added == 0 {
        return Err(Failure::Refused(StoreError::CodeTaken));
    }
    Ok(Person { id: connection.last_insert_rowid(), code: named.code, mailbox, is_member: false, is_new: true })
}

/// Who the code names, if that is another mailbox than the one signing up.
pub(super) fn find_referrer(
    connection: &Connection,
    code: ReferralCode,
    mailbox: &str,
) -> Result<Option<i64>, Failure> {
    let mut statement = connection.prepare_cached("SELECT id FROM people WHERE code = ?1 AND mailbox <> ?2")?;
    Ok(statement.query_row([code.as_str(), mailbox], |row| row.get(0)).optional()?)
}

/// Refuses what is refused while sign-ups are paused; else says how many members there are, which stands beside it.
pub(super) fn refuse_if_paused(connection: &Connection) -> Result<u64, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT signups_paused, member_count FROM installation WHERE id = 1")?;
    let (paused, members): (bool, i64) = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // The column is checked never to be negative.
    if paused { Err(Failure::Refused(StoreError::Paused)) } else { Ok(members.unsigned_abs()) }
}

pub(super) fn code(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<ReferralCode> {
    super::parsed(row, column, ReferralCode::from_canonical)
}
