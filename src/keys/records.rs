//! The API keys of partners.

use crate::domain::api_key::{IssuedKey, KeyId, KeyRecord, MAX_ENDING_KEYS};
use crate::domain::mail::budget::day_of;
use crate::domain::partner::name::{PartnerId, PartnerName};
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Row, Sql, Unit, expected, values};

/// The columns that [`record`] reads.
macro_rules! columns {
    () => {
        "id, partner_id, (SELECT p.name FROM partners p WHERE p.id = partner_id) AS partner, hash, per_minute, created_at,
         expires_at, last_used_at, revoked_at, replaced_by, (SELECT p.suspended_at FROM partners p WHERE p.id = partner_id) AS suspended_at"
    };
}

pub struct FindKey(pub KeyId);

impl Unit for FindKey {
    type Done = Option<KeyRecord>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        find(sql, self.0).await
    }
}

/// All keys, oldest first, each with the outcomes of its sign-ups.
pub struct ListKeys;

impl Unit for ListKeys {
    type Done = Vec<(KeyRecord, KeyFigures)>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        // Sign-ups that are not rolled up yet are counted directly: at most a minute's worth.
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
        let read = |row: &Row<'_>| Ok((record(row)?, KeyFigures { declined: row.get("declined")?, ..figures(row)? }));
        sql.rows(list, values![], read).await
    }
}

/// The newest keys of a partner, with the sign-ups and members of each as the last roll-up counted them.
pub struct ListKeysOf(pub PartnerId, pub u32);

impl Unit for ListKeysOf {
    type Done = Vec<(KeyRecord, KeyFigures)>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self(partner, most) = self;
        let list = concat!(
            "SELECT ",
            columns!(),
            ", signed_up, confirmed FROM api_keys WHERE partner_id = $1 ORDER BY created_at DESC, id DESC LIMIT $2"
        );
        sql.rows(list, values![*partner, *most], |row| Ok((record(row)?, figures(row)?))).await
    }
}

/// The newest keys of all partners, with the same figures.
pub struct ListNewestKeys(pub u32);

impl Unit for ListNewestKeys {
    type Done = Vec<(KeyRecord, KeyFigures)>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let list = concat!(
            "SELECT ",
            columns!(),
            ", signed_up, confirmed FROM api_keys ORDER BY created_at DESC, id DESC LIMIT $1"
        );
        sql.rows(list, values![self.0], |row| Ok((record(row)?, figures(row)?))).await
    }
}

/// Adds a key, and its partner if that has no record yet.
pub struct IssueKey(pub IssuedKey);

impl Unit for IssueKey {
    type Done = ();
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        insert(sql, &self.0).await
    }
}

/// Ends a key now. `None` if there is no such key. A key that was already revoked keeps its time, and nothing changes.
pub struct RevokeKey(pub KeyId, pub Timestamp);

impl Unit for RevokeKey {
    type Done = Option<RevokedKey>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self(id, now) = self;
        let revoke =
            concat!("UPDATE api_keys SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL RETURNING ", columns!());
        let key = match sql.row(revoke, values![id.as_str(), *now], record).await? {
            None => find(sql, *id).await?,
            revoked => revoked,
        };
        let Some(key) = key else { return Ok(None) };
        let others = "SELECT EXISTS (SELECT 1 FROM api_keys WHERE partner_id = $1 AND revoked_at IS NULL
                                     AND (expires_at IS NULL OR expires_at > $2))";
        let others: bool = expected(sql.value(others, values![key.partner_id, *now]).await?)?;
        Ok(Some(RevokedKey { key, was_last: !others }))
    }
}

/// Adds `successor` and ends `old` at `end`, or when it would have ended before. With `by_partner`, only if it was not rotated
/// before and few of its partner's keys are ending.
pub struct RotateKey {
    pub old: KeyId,
    pub end: Timestamp,
    pub successor: IssuedKey,
    pub by_partner: bool,
}

impl Unit for RotateKey {
    type Done = RotatedKey;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<RotatedKey, Failure> {
        let find = "SELECT partner_id FROM api_keys WHERE id = $1 AND revoked_at IS NULL";
        let Some(partner) = sql.value(find, values![self.old.as_str()]).await? else { return Ok(RotatedKey::Over) };
        if self.by_partner {
            sql.lock(&format!("keys of partner {partner}")).await?;
            if let Some(by) = replaced_by(sql, self.old).await? {
                return Ok(RotatedKey::Replaced(by));
            }
            if ending_keys(sql, partner, self.successor.created_at).await? >= MAX_ENDING_KEYS {
                return Ok(RotatedKey::TooMany);
            }
        }
        let until =
            "UPDATE api_keys SET replaced_by = $3, expires_at = CASE WHEN expires_at < $2 THEN expires_at ELSE $2 END
                     WHERE id = $1 AND revoked_at IS NULL";
        if sql.execute(until, values![self.old.as_str(), self.end, self.successor.id.as_str()]).await? == 0 {
            return Ok(RotatedKey::Over);
        }
        insert(sql, &self.successor).await?;
        Ok(RotatedKey::Done)
    }
}

/// Records that a key was used, and how often since that was last written. The time never moves backwards.
pub struct TouchKey {
    pub id: KeyId,
    pub used: KeyUse,
    pub now: Timestamp,
}

impl Unit for TouchKey {
    type Done = ();
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let touch = "UPDATE api_keys SET last_used_at = $2
                     WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)";
        sql.execute(touch, values![self.id.as_str(), self.now]).await?;
        let count = "INSERT INTO source_days (partner_id, day, requests, sign_ups_sent)
                     SELECT partner_id, $2, $3, $4 FROM api_keys WHERE id = $1
                     ON CONFLICT (coalesce(partner_id, 0), day) DO UPDATE SET requests = source_days.requests + excluded.requests,
                         sign_ups_sent = source_days.sign_ups_sent + excluded.sign_ups_sent";
        if self.used != KeyUse::default() {
            let KeyUse { requests, sign_ups } = self.used;
            sql.execute(count, values![self.id.as_str(), day_of(self.now), requests, sign_ups]).await?;
        }
        Ok(())
    }
}

pub(crate) async fn find(sql: &mut dyn Sql, id: KeyId) -> Result<Option<KeyRecord>, Failure> {
    let find = concat!("SELECT ", columns!(), " FROM api_keys WHERE id = $1");
    sql.row(find, values![id.as_str()], record).await
}

/// The key that this one was rotated to.
async fn replaced_by(sql: &mut dyn Sql, id: KeyId) -> Result<Option<KeyId>, Failure> {
    let find = "SELECT replaced_by FROM api_keys WHERE id = $1";
    let read = |row: &Row<'_>| Ok(row.get::<Option<&str>>(0)?.and_then(|text| text.parse().ok()));
    Ok(sql.row(find, values![id.as_str()], read).await?.flatten())
}

/// How many rotated keys of a partner still work, counted up to the bound.
async fn ending_keys(sql: &mut dyn Sql, partner: PartnerId, now: Timestamp) -> Result<u32, Failure> {
    let count = "SELECT count(*) FROM (SELECT 1 FROM api_keys WHERE partner_id = $1 AND replaced_by IS NOT NULL AND revoked_at IS NULL
                                       AND expires_at > $2 LIMIT $3) ending";
    expected(sql.value(count, values![partner, now, MAX_ENDING_KEYS]).await?)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotatedKey {
    Done,
    /// The key is revoked or does not exist.
    Over,
    Replaced(KeyId),
    TooMany,
}

/// A key that was ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedKey {
    pub key: KeyRecord,
    /// No other key of its partner works.
    pub was_last: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyUse {
    pub requests: u32,
    /// Of these, sign-ups that were accepted.
    pub sign_ups: u32,
}

/// The outcomes of a key's sign-ups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyFigures {
    pub signed_up: u64,
    /// People who became members.
    pub confirmed: u64,
    pub declined: u64,
}

/// What every list of keys shows; those declined are counted apart.
fn figures(row: &Row<'_>) -> Result<KeyFigures, Failure> {
    Ok(KeyFigures { signed_up: row.get("signed_up")?, confirmed: row.get("confirmed")?, declined: 0 })
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
        replaced_by: row.get::<Option<&str>>("replaced_by")?.and_then(|text| text.parse().ok()),
        suspended_at: row.get("suspended_at")?,
    })
}

async fn insert(sql: &mut dyn Sql, key: &IssuedKey) -> Result<(), Failure> {
    let IssuedKey { id, partner, hash, per_minute, created_at, expires_at } = key;
    let partner = find_or_add(sql, partner.as_str(), *created_at).await?;
    let insert = "INSERT INTO api_keys (id, partner_id, hash, per_minute, created_at, expires_at)
                  VALUES ($1, $2, $3, $4, $5, $6)";
    let values = values![id.as_str(), partner, hash, *per_minute, *created_at, *expires_at];
    sql.execute(insert, values).await.map(|_| ())
}

/// The partner with that name; adds its record if there is none.
pub(crate) async fn find_or_add(sql: &mut dyn Sql, name: &str, now: Timestamp) -> Result<PartnerId, Failure> {
    let add = "INSERT INTO partners (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    sql.execute(add, values![name, now]).await?;
    expected(sql.value("SELECT id FROM partners WHERE name = $1", values![name]).await?)
}
