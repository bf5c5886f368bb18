//! The API keys of partners, as SQL.

use super::partners;
use super::sql::{Failure, Row, Sql, values};
use crate::domain::api_key::{IssuedKey, KeyId, KeyRecord};
use crate::domain::partner::name::{PartnerId, PartnerName};
use crate::domain::time::Timestamp;

/// What [`record`] reads.
macro_rules! columns {
    () => {
        "id, partner_id, (SELECT p.name FROM partners p WHERE p.id = partner_id) AS partner, hash, per_minute, created_at,
         expires_at, last_used_at, revoked_at, (SELECT p.suspended_at FROM partners p WHERE p.id = partner_id) AS suspended_at"
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
                    ", signed_up + coalesce(s.recent, 0) AS signed_up, confirmed + coalesce(m.recent, 0) AS confirmed,
                       declined + (SELECT count(*) FROM sign_ups WHERE key_id = api_keys.id AND state = 'declined') AS declined
                     FROM api_keys
                     LEFT JOIN (SELECT key_id, count(*) AS recent FROM sign_ups
                                WHERE id > (SELECT sign_up_id FROM rollup) GROUP BY key_id) s ON s.key_id = api_keys.id
                     LEFT JOIN (SELECT key_id, count(*) AS recent FROM member_changes WHERE change = 1 GROUP BY key_id) m
                         ON m.key_id = api_keys.id
                     ORDER BY api_keys.created_at, api_keys.id"
                );
                let figures = |row: &Row<'_>| {
                    let (signed_up, confirmed) = (row.get("signed_up")?, row.get("confirmed")?);
                    Ok::<_, Failure>(KeyFigures { signed_up, confirmed, declined: row.get("declined")? })
                };
                sql.rows(list, values![], |row| Ok((record(row)?, figures(row)?))).await
            }
        };

        /// The newest keys of a partner, with the sign-ups and members of each as the last roll-up counted them.
        read keys_of_partner(partner: PartnerId, most: u32) -> Vec<(KeyRecord, KeyFigures)> {
            |sql| {
                let list = concat!(
                    "SELECT ",
                    columns!(),
                    ", signed_up, confirmed FROM api_keys WHERE partner_id = $1 ORDER BY created_at DESC, id LIMIT $2"
                );
                let figures = |row: &Row<'_>| {
                    Ok::<_, Failure>(KeyFigures { signed_up: row.get("signed_up")?, confirmed: row.get("confirmed")?, ..KeyFigures::default() })
                };
                sql.rows(list, values![*partner, *most], |row| Ok((record(row)?, figures(row)?))).await
            }
        };

        /// Adds a key, and its partner where it has no record yet.
        transact issue_key(key: IssuedKey) -> () {
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
        transact rotate_key(old: KeyId, end: Timestamp, successor: IssuedKey) -> bool {
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
        id: row.parsed("id", |text| text.parse().ok())?,
        partner_id: row.get("partner_id")?,
        partner: row.parsed("partner", PartnerName::kept)?,
        hash: row.get("hash")?,
        per_minute: row.get("per_minute")?,
        created_at: row.get("created_at")?,
        expires_at: row.get("expires_at")?,
        last_used_at: row.get("last_used_at")?,
        revoked_at: row.get("revoked_at")?,
        suspended_at: row.get("suspended_at")?,
    })
}

async fn insert(sql: &mut dyn Sql, key: &IssuedKey) -> Result<(), Failure> {
    let IssuedKey { id, partner, hash, per_minute, created_at, expires_at } = key;
    let partner = partners::find_or_add(sql, partner.as_str(), *created_at).await?;
    let insert = "INSERT INTO api_keys (id, partner_id, hash, per_minute, created_at, expires_at)
                  VALUES ($1, $2, $3, $4, $5, $6)";
    let values = values![id.as_str(), partner, hash, *per_minute, *created_at, *expires_at];
    sql.execute(insert, values).await.map(|_| ())
}
