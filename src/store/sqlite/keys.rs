//! Partner keys and the secret's fingerprint, as SQL.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::writer::Unit;
use super::{Failure, parsed};
use crate::domain::api_key::{KeyHash, KeyId, KeyRecord};
use crate::domain::time::Timestamp;
use crate::store::Claim;

pub(super) fn find(connection: &Connection, id: KeyId) -> Result<Option<KeyRecord>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT id, partner, hash, per_minute, created_at, expires_at, last_used_at, revoked_at
         FROM api_keys WHERE id = ?1",
    )?;
    Ok(statement.query_row([id.as_str()], record).optional()?)
}

pub(super) fn list(connection: &Connection) -> Result<Vec<(KeyRecord, u64)>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT id, partner, hash, per_minute, created_at, expires_at, last_used_at, revoked_at,
                (SELECT count(*) FROM sign_ups WHERE key_id = api_keys.id AND state = 'declined')
         FROM api_keys ORDER BY created_at, id",
    )?;
    let rows = statement.query_map([], |row| Ok((record(row)?, row.get::<_, i64>(8)?.unsigned_abs())))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) struct Issue(pub KeyRecord);

impl Unit for Issue {
    type Done = ();

    fn apply(&self, connection: &Connection) -> Result<(), Failure> {
        insert(connection, &self.0)
    }
}

pub(super) struct Revoke {
    pub id: KeyId,
    pub now: Timestamp,
}

impl Unit for Revoke {
    type Done = Option<KeyRecord>;

    fn apply(&self, connection: &Connection) -> Result<Option<KeyRecord>, Failure> {
        connection
            .prepare_cached("UPDATE api_keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL")?
            .execute(params![self.id.as_str(), self.now.as_millis()])?;
        find(connection, self.id)
    }
}

pub(super) struct Rotate {
    pub old: KeyId,
    pub end: Timestamp,
    pub successor: KeyRecord,
}

impl Unit for Rotate {
    type Done = bool;

    fn apply(&self, connection: &Connection) -> Result<bool, Failure> {
        let changed = connection
            .prepare_cached(
                "UPDATE api_keys SET expires_at = min(coalesce(expires_at, ?2), ?2)
                 WHERE id = ?1 AND revoked_at IS NULL",
            )?
            .execute(params![self.old.as_str(), self.end.as_millis()])?;
        if changed == 1 {
            insert(connection, &self.successor)?;
        }
        Ok(changed == 1)
    }
}

pub(super) struct Touch {
    pub id: KeyId,
    pub now: Timestamp,
}

impl Unit for Touch {
    type Done = ();

    fn apply(&self, connection: &Connection) -> Result<(), Failure> {
        connection
            .prepare_cached("UPDATE api_keys SET last_used_at = max(coalesce(last_used_at, ?2), ?2) WHERE id = ?1")?
            .execute(params![self.id.as_str(), self.now.as_millis()])?;
        Ok(())
    }
}

pub(super) struct ClaimSecret(pub String);

impl Unit for ClaimSecret {
    type Done = Claim;

    fn apply(&self, connection: &Connection) -> Result<Claim, Failure> {
        let sql = "UPDATE installation SET secret_fingerprint = ?1 WHERE secret_fingerprint IS NULL";
        if connection.execute(sql, [&self.0])? == 1 {
            return Ok(Claim::First);
        }
        let same = "SELECT secret_fingerprint = ?1 FROM installation WHERE id = 1";
        Ok(if connection.query_row(same, [&self.0], |row| row.get(0))? { Claim::Same } else { Claim::Another })
    }
}

/// Changes nothing, but goes the way of every write.
pub(super) struct Check;

impl Unit for Check {
    type Done = ();

    fn apply(&self, connection: &Connection) -> Result<(), Failure> {
        connection.execute("UPDATE installation SET id = id WHERE id = 1", [])?;
        Ok(())
    }
}

fn insert(connection: &Connection, key: &KeyRecord) -> Result<(), Failure> {
    connection.execute(
        "INSERT INTO api_keys (id, partner, hash, per_minute, created_at, expires_at, last_used_at, revoked_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            key.id.as_str(),
            key.partner.as_str(),
            key.hash.0,
            key.per_minute,
            key.created_at.as_millis(),
            key.expires_at.map(Timestamp::as_millis),
            key.last_used_at.map(Timestamp::as_millis),
            key.revoked_at.map(Timestamp::as_millis),
        ],
    )?;
    Ok(())
}

fn record(row: &Row<'_>) -> rusqlite::Result<KeyRecord> {
    let time = |column| row.get::<_, Option<i64>>(column).map(|millis| millis.map(Timestamp::from_millis));
    Ok(KeyRecord {
        id: parsed(row, 0, |text| text.parse().ok())?,
        partner: parsed(row, 1, |text| text.parse().ok())?,
        hash: KeyHash(row.get(2)?),
        per_minute: row.get(3)?,
        created_at: Timestamp::from_millis(row.get(4)?),
        expires_at: time(5)?,
        last_used_at: time(6)?,
        revoked_at: time(7)?,
    })
}
