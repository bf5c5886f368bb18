//! Partner keys and the secret's fingerprint, as SQL.

use tokio_postgres::Row;

use super::pool::{Line, Unit};
use super::{Failure, expected, get, number, parsed, perhaps_time, time};
use crate::domain::api_key::{KeyHash, KeyId, KeyRecord};
use crate::domain::time::Timestamp;
use crate::store::{Claim, StoreError};

const FIND: &str = "
    SELECT id, partner, hash, per_minute, created_at, expires_at, last_used_at, revoked_at FROM api_keys WHERE id = $1";

pub(super) struct Find {
    pub id: KeyId,
}

impl Unit for Find {
    type Done = Option<KeyRecord>;

    async fn apply(&self, line: &mut Line) -> Result<Option<KeyRecord>, Failure> {
        line.row(FIND, &[&self.id.as_str()]).await?.map(|row| record(&row)).transpose()
    }
}

pub(super) struct List;

impl Unit for List {
    type Done = Vec<(KeyRecord, u64)>;

    async fn apply(&self, line: &mut Line) -> Result<Self::Done, Failure> {
        let sql = "
            SELECT id, partner, hash, per_minute, created_at, expires_at, last_used_at, revoked_at,
                   (SELECT count(*) FROM sign_ups WHERE key_id = api_keys.id AND state = 'declined')
            FROM api_keys ORDER BY created_at, id";
        line.rows(sql, &[]).await?.iter().map(|row| Ok((record(row)?, number(row, 8)?))).collect()
    }
}

const INSERT: &str = "
    INSERT INTO api_keys (id, partner, hash, per_minute, created_at, expires_at, last_used_at, revoked_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

async fn insert(line: &Line, key: &KeyRecord) -> Result<(), Failure> {
    let millis = |time: Option<Timestamp>| time.map(Timestamp::as_millis);
    line.execute(
        INSERT,
        &[
            &key.id.as_str(),
            &key.partner.as_str(),
            &&key.hash.0[..],
            &key.per_minute.map(i64::from),
            &key.created_at.as_millis(),
            &millis(key.expires_at),
            &millis(key.last_used_at),
            &millis(key.revoked_at),
        ],
    )
    .await?;
    Ok(())
}

pub(super) struct Issue(pub KeyRecord);

impl Unit for Issue {
    type Done = ();

    async fn apply(&self, line: &mut Line) -> Result<(), Failure> {
        insert(line, &self.0).await
    }
}

pub(super) struct Revoke {
    pub id: KeyId,
    pub now: Timestamp,
}

impl Unit for Revoke {
    type Done = Option<KeyRecord>;

    async fn apply(&self, line: &mut Line) -> Result<Option<KeyRecord>, Failure> {
        let sql = "UPDATE api_keys SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1
                   RETURNING id, partner, hash, per_minute, created_at, expires_at, last_used_at, revoked_at";
        let row = line.row(sql, &[&self.id.as_str(), &self.now.as_millis()]).await?;
        row.map(|row| record(&row)).transpose()
    }
}

pub(super) struct Rotate {
    pub old: KeyId,
    pub end: Timestamp,
    pub successor: KeyRecord,
}

impl Unit for Rotate {
    type Done = bool;

    const SEVERAL: bool = true;

    async fn apply(&self, line: &mut Line) -> Result<bool, Failure> {
        let sql = "UPDATE api_keys SET expires_at = least(coalesce(expires_at, $2), $2)
                   WHERE id = $1 AND revoked_at IS NULL";
        let found = line.execute(sql, &[&self.old.as_str(), &self.end.as_millis()]).await? == 1;
        if found {
            insert(line, &self.successor).await?;
        }
        Ok(found)
    }
}

pub(super) struct Touch {
    pub id: KeyId,
    pub now: Timestamp,
}

impl Unit for Touch {
    type Done = ();

    async fn apply(&self, line: &mut Line) -> Result<(), Failure> {
        let sql = "UPDATE api_keys SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)";
        line.execute(sql, &[&self.id.as_str(), &self.now.as_millis()]).await.map(|_| ())
    }
}

pub(super) struct ClaimSecret(pub String);

impl Unit for ClaimSecret {
    type Done = Claim;

    async fn apply(&self, line: &mut Line) -> Result<Claim, Failure> {
        let sql = "
            WITH claimed AS (
                UPDATE installation SET secret_fingerprint = $1 WHERE secret_fingerprint IS NULL RETURNING id
            )
            SELECT EXISTS (SELECT 1 FROM claimed), secret_fingerprint = $1 FROM installation WHERE id = 1";
        let row = expected(line.row(sql, &[&self.0]).await?)?;
        match (get(&row, 0)?, get(&row, 1)?) {
            (true, _) => Ok(Claim::First),
            (false, Some(true)) => Ok(Claim::Same),
            (false, Some(false)) => Ok(Claim::Another),
            // Another node claimed it at this moment.
            (false, None) => Err(Failure::Overtaken),
        }
    }
}

/// Changes nothing, but goes the way of every write.
pub(super) struct Check;

impl Unit for Check {
    type Done = ();

    async fn apply(&self, line: &mut Line) -> Result<(), Failure> {
        match line.execute("UPDATE installation SET id = id WHERE id = 1", &[]).await? {
            1 => Ok(()),
            _ => Err(Failure::Refused(StoreError::Unavailable("PostgreSQL: the tables are empty".to_owned()))),
        }
    }
}

fn record(row: &Row) -> Result<KeyRecord, Failure> {
    Ok(KeyRecord {
        id: parsed(row, 0, |text| text.parse().ok())?,
        partner: parsed(row, 1, |text| text.parse().ok())?,
        hash: KeyHash(get::<&[u8]>(row, 2)?.try_into().map_err(|_| {
            Failure::Refused(StoreError::Unavailable("PostgreSQL: the column hash holds no hash of ours".to_owned()))
        })?),
        per_minute: get::<Option<i64>>(row, 3)?.map(|figure| u32::try_from(figure).unwrap_or(u32::MAX)),
        created_at: time(row, 4)?,
        expires_at: perhaps_time(row, 5)?,
        last_used_at: perhaps_time(row, 6)?,
        revoked_at: perhaps_time(row, 7)?,
    })
}
