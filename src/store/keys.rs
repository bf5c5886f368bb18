//! The API keys of partners, as SQL.

use super::partners;
use super::sql::{Failure, Row, Sql, values};
use crate::domain::api_key::{KeyId, KeyRecord, PartnerName};
use crate::domain::time::Timestamp;

/// The columns of `api_keys`, in the order in which [`record`] reads and [`insert`] writes them.
macro_rules! columns {
    () => {
        "id, partner, hash, per_minute, created_at, expires_at, last_used_at, revoked_at"
    };
}

area! {
    /// The API keys of partners.
    KeyStore {
        read find_key(id: KeyId) -> Option<KeyRecord> {
            |sql| {
                let find = concat!("SELECT ", columns!(), " FROM api_keys WHERE id = $1");
                sql.row(find, values![id.as_str()], record).await
            }
        };

        /// All keys, oldest first, each with what came of its sign-ups.
        read list_keys() -> Vec<(KeyRecord, KeyFigures)> {
            |sql| {
                // What is not rolled up yet is counted beside: no more than a minute's.
                let list = concat!(
                    "SELECT ",
                    columns!(),
                    ", signed_up + coalesce(s.recent, 0), confirmed + coalesce(m.recent, 0),
                       declined + (SELECT count(*) FROM sign_ups WHERE key_id = api_keys.id AND state = 'declined')
                     FROM api_keys
                     LEFT JOIN (SELECT key_id, count(*) AS recent FROM sign_ups
                                WHERE id > (SELECT sign_up_id FROM rollup) GROUP BY key_id) s ON s.key_id = api_keys.id
                     LEFT JOIN (SELECT key_id, count(*) AS recent FROM member_changes WHERE change = 1 GROUP BY key_id) m
                         ON m.key_id = api_keys.id
                     ORDER BY api_keys.created_at, api_keys.id"
                );
                let figures = |row: &Row<'_>| {
                    Ok::<_, Failure>(KeyFigures { signed_up: row.get(8)?, confirmed: row.get(9)?, declined: row.get(10)? })
                };
                sql.rows(list, values![], |row| Ok((record(row)?, figures(row)?))).await
            }
        };

        /// Adds a key, and its partner where it has no record yet.
        transact issue_key(key: KeyRecord) -> () {
            |sql| insert(sql, key).await
        };

        /// Ends a key now. `None` if there is no such key; one revoked before keeps its time.
        write revoke_key(id: KeyId, now: Timestamp) -> Option<KeyRecord> {
            |sql| {
                let revoke = concat!(
                    "UPDATE api_keys SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 RETURNING ",
                    columns!()
                );
                sql.row(revoke, values![id.as_str(), *now], record).await
            }
        };

        /// Adds `successor` and lets `old` end at `end`, or when it would have ended before. False, and nothing done, if
        /// there is no such key or it is revoked.
        transact rotate_key(old: KeyId, end: Timestamp, successor: KeyRecord) -> bool {
            |sql| {
                let until = "UPDATE api_keys SET expires_at = CASE WHEN expires_at < $2 THEN expires_at ELSE $2 END
                             WHERE id = $1 AND revoked_at IS NULL";
                let found = sql.execute(until, values![old.as_str(), *end]).await? == 1;
                if found {
                    insert(sql, successor).await?;
                }
                Ok(found)
            }
        };

        /// Remembers that a key was used. Never moves backwards.
        write touch_key(id: KeyId, now: Timestamp) -> () {
            |sql| {
                let touch = "UPDATE api_keys SET last_used_at = $2
                             WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)";
                sql.execute(touch, values![id.as_str(), *now]).await.map(|_| ())
            }
        };
    }
}

/// What came of a key's sign-ups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyFigures {
    pub signed_up: u64,
    /// People who became members.
    pub confirmed: u64,
    pub declined: u64,
}

fn record(row: &Row<'_>) -> Result<KeyRecord, Failure> {
    Ok(KeyRecord {
        id: row.parsed(0, |text| text.parse().ok())?,
        partner: row.parsed(1, PartnerName::kept)?,
        hash: row.get(2)?,
        per_minute: row.get(3)?,
        created_at: row.get(4)?,
        expires_at: row.get(5)?,
        last_used_at: row.get(6)?,
        revoked_at: row.get(7)?,
    })
}

async fn insert(sql: &mut dyn Sql, key: &KeyRecord) -> Result<(), Failure> {
    partners::find_or_add(sql, key.partner.as_str(), key.created_at).await?;
    let insert = concat!("INSERT INTO api_keys (", columns!(), ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8)");
    let KeyRecord { id, partner, hash, per_minute, .. } = key;
    let (created, ends, used, revoked) = (key.created_at, key.expires_at, key.last_used_at, key.revoked_at);
    let values = values![id.as_str(), partner.as_str(), hash, *per_minute, created, ends, used, revoked];
    sql.execute(insert, values).await.map(|_| ())
}
