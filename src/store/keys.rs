//! The API keys of partners, as SQL.

use super::sql::{Failure, Row, Sql, Unit, values};
use crate::domain::api_key::{KeyId, KeyRecord};
use crate::domain::time::Timestamp;

area! {
    /// The API keys of partners.
    KeyStore {
        read find_key(id: KeyId) -> Option<KeyRecord> = FindKey { id };

        /// All keys, oldest first, each with how many of its sign-ups were declined.
        read list_keys() -> Vec<(KeyRecord, u64)> = AllKeys;

        write issue_key(key: KeyRecord) -> () = Issue(key);

        /// Ends a key now. `None` if there is no such key; one revoked before keeps its time.
        write revoke_key(id: KeyId, now: Timestamp) -> Option<KeyRecord> = Revoke { id, now };

        /// Adds `successor` and lets `old` end at `end`, or when it would have ended before. False, and nothing done, if
        /// there is no such key or it is revoked.
        write rotate_key(old: KeyId, end: Timestamp, successor: KeyRecord) -> bool = Rotate { old, end, successor };

        /// Remembers that a key was used. Never moves backwards.
        write touch_key(id: KeyId, now: Timestamp) -> () = Touch { id, now };
    }
}

/// The columns of `api_keys`, in the order in which [`record`] reads and [`insert`] writes them.
macro_rules! columns {
    () => {
        "id, partner, hash, per_minute, created_at, expires_at, last_used_at, revoked_at"
    };
}

fn record(row: &Row<'_>) -> Result<KeyRecord, Failure> {
    Ok(KeyRecord {
        id: row.parsed(0, |text| text.parse().ok())?,
        partner: row.parsed(1, |text| text.parse().ok())?,
        hash: row.hash(2)?,
        per_minute: row.perhaps_number(3)?.map(|figure| u32::try_from(figure).unwrap_or(u32::MAX)),
        created_at: row.time(4)?,
        expires_at: row.perhaps_time(5)?,
        last_used_at: row.perhaps_time(6)?,
        revoked_at: row.perhaps_time(7)?,
    })
}

async fn insert(sql: &mut impl Sql, key: &KeyRecord) -> Result<(), Failure> {
    sql.execute(
        concat!("INSERT INTO api_keys (", columns!(), ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"),
        values![
            key.id.as_str(),
            key.partner.as_str(),
            &key.hash,
            key.per_minute,
            key.created_at,
            key.expires_at,
            key.last_used_at,
            key.revoked_at,
        ],
    )
    .await?;
    Ok(())
}

struct FindKey {
    id: KeyId,
}

impl Unit for FindKey {
    type Done = Option<KeyRecord>;

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<Self::Done, Failure> {
        sql.row(concat!("SELECT ", columns!(), " FROM api_keys WHERE id = $1"), values![self.id.as_str()], record).await
    }
}

struct AllKeys;

impl Unit for AllKeys {
    type Done = Vec<(KeyRecord, u64)>;

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<Self::Done, Failure> {
        let list = concat!(
            "SELECT ",
            columns!(),
            ", (SELECT count(*) FROM sign_ups WHERE key_id = api_keys.id AND state = 'declined')
             FROM api_keys ORDER BY created_at, id"
        );
        sql.rows(list, values![], |row| Ok((record(row)?, row.count(8)?))).await
    }
}

struct Issue(KeyRecord);

impl Unit for Issue {
    type Done = ();

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<(), Failure> {
        insert(sql, &self.0).await
    }
}

struct Revoke {
    id: KeyId,
    now: Timestamp,
}

impl Unit for Revoke {
    type Done = Option<KeyRecord>;

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<Self::Done, Failure> {
        let revoke =
            concat!("UPDATE api_keys SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 RETURNING ", columns!());
        sql.row(revoke, values![self.id.as_str(), self.now], record).await
    }
}

struct Rotate {
    old: KeyId,
    end: Timestamp,
    successor: KeyRecord,
}

impl Unit for Rotate {
    type Done = bool;

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<bool, Failure> {
        let end = "UPDATE api_keys SET expires_at = CASE WHEN expires_at < $2 THEN expires_at ELSE $2 END
                   WHERE id = $1 AND revoked_at IS NULL";
        let found = sql.execute(end, values![self.old.as_str(), self.end]).await? == 1;
        if found {
            insert(sql, &self.successor).await?;
        }
        Ok(found)
    }
}

struct Touch {
    id: KeyId,
    now: Timestamp,
}

impl Unit for Touch {
    type Done = ();

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<(), Failure> {
        let touch =
            "UPDATE api_keys SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)";
        sql.execute(touch, values![self.id.as_str(), self.now]).await.map(|_| ())
    }
}
