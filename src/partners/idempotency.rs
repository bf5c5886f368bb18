//! Requests with an idempotency key: the answer to the first request with a key, and the outcome of its sign-up.
//!
//! A row is written in the same transaction as what was requested. Its unique key makes a second request that comes at the same
//! time wait for the first, and then find its answer.

use crate::domain::partner::idempotency::{IdempotentRequest, KEPT_FOR, KEYS_COUNTED_FOR, MOST_KEYS, Replayed};
use crate::domain::partner::name::PartnerId;
use crate::domain::referral::ReferralCode;
use crate::domain::sign_up::{Refused, SignedUp};
use crate::domain::time::Timestamp;
use crate::domain::webhook::EventKind;
use crate::partners::event_log;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    SignUp,
    Link,
}

impl Asked {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SignUp => "sign_up",
            Self::Link => "link",
        }
    }
}

/// The answer to the first request with that key; none if this is the first. Refused if the first one asked for something else.
pub(crate) async fn find(
    sql: &mut dyn Sql,
    partner: PartnerId,
    asked: Asked,
    request: &IdempotentRequest,
) -> Result<Option<Result<SignedUp, Refused>>, Failure> {
    let find = "SELECT operation = $3 AND input = $4 AS is_same, link, joined_count, savings, attributed
                FROM idempotency_keys WHERE partner_id = $1 AND key = $2";
    let values = values![partner, request.key.as_str(), asked.name(), &request.input.newest];
    sql.row(find, values, first_answer).await
}

/// Reads the columns is_same (whether the input is), link, joined_count, savings and attributed.
pub(crate) fn first_answer(row: &Row<'_>) -> Result<Result<SignedUp, Refused>, Failure> {
    let link: String = row.get("link")?;
    match ReferralCode::from_pasted(&link) {
        Some(code) if row.get("is_same")? => Ok(Ok(SignedUp {
            code,
            joined_count: row.get("joined_count")?,
            attributed: row.get("attributed")?,
            replayed: Some(Replayed { link, savings: row.get("savings")? }),
        })),
        _ => Ok(Err(Refused::KeyReused)),
    }
}

pub(crate) async fn has_too_many(
    sql: &mut dyn Sql,
    partner: PartnerId,
    person: i64,
    now: Timestamp,
) -> Result<bool, Failure> {
    let used = "SELECT count(*) FROM (SELECT 1 FROM idempotency_keys
                                      WHERE person_id = $1 AND partner_id = $2 AND created_at > $3 LIMIT $4) used";
    let used = sql.value(used, values![person, partner, now.minus(KEYS_COUNTED_FOR), MOST_KEYS]).await?;
    Ok(used >= Some(MOST_KEYS))
}

/// At an address that may have any number of keys, ends a pending sign-up with [`MOST_KEYS`] of them, so that another begins:
/// one button still confirms at most that many.
pub(crate) async fn limit_keys_of_pending(
    sql: &mut dyn Sql,
    partner: PartnerId,
    person: i64,
    now: Timestamp,
) -> Result<(), Failure> {
    let end = "UPDATE sign_ups SET expires_at = $3 WHERE person_id = $1 AND partner_id = $2 AND state = 'pending' AND $4 <=
                   (SELECT count(*) FROM (SELECT 1 FROM idempotency_keys k WHERE k.sign_up_id = sign_ups.id LIMIT $4) used)";
    sql.execute(end, values![person, partner, now, MOST_KEYS]).await.map(|_| ())
}

/// What a request asked for and got, to be kept under its key.
pub(crate) struct FirstAnswer<'a> {
    pub partner: PartnerId,
    pub request: &'a IdempotentRequest,
    pub person: i64,
    /// None if only a link was requested.
    pub sign_up: Option<i64>,
    pub closes_at: Option<Timestamp>,
    pub given: &'a SignedUp,
}

/// Keeps the answer. [`Failure::Overtaken`] means that another request with the same key came at the same time.
pub(crate) async fn keep(sql: &mut dyn Sql, first: FirstAnswer<'_>, now: Timestamp) -> Result<(), Failure> {
    let FirstAnswer { partner, request, person, sign_up, closes_at, given } = first;
    let keep = "INSERT INTO idempotency_keys (partner_id, key, operation, input, person_id, sign_up_id, link, joined_count, savings,
                    attributed, created_at, closes_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (partner_id, key) DO NOTHING";
    let asked = if sign_up.is_some() { Asked::SignUp } else { Asked::Link };
    let link = given.code.link(&request.join_site);
    let kept = values![
        partner,
        request.key.as_str(),
        asked.name(),
        &request.input.newest,
        person,
        sign_up,
        &link,
        i64::try_from(given.joined_count).unwrap_or(i64::MAX),
        request.savings,
        given.attributed,
        now,
        closes_at,
    ];
    if sql.execute(keep, kept).await? == 1 { Ok(()) } else { Err(Failure::Overtaken) }
}

/// How many are closed, or deleted, in one commit.
const PURGE_BATCH: u32 = 200;

/// Closes a batch of sign-ups that were not confirmed in time; returns how many.
pub struct CloseSignUps(pub Timestamp);

impl Unit for CloseSignUps {
    type Done = u64;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        let now = self.0;
        // A node with an older version confirms without notifying the partner.
        let confirmed = "
            UPDATE idempotency_keys SET confirmed_at =
                (SELECT s.decided_at FROM sign_ups s WHERE s.id = idempotency_keys.sign_up_id)
            WHERE id IN
                (SELECT k.id FROM idempotency_keys k JOIN sign_ups s ON s.id = k.sign_up_id
                 WHERE k.closes_at IS NOT NULL AND k.closes_at <= $1 AND k.confirmed_at IS NULL AND k.closed_at IS NULL
                   AND s.state = 'confirmed' AND s.decided_at < k.closes_at
                 ORDER BY k.closes_at LIMIT $2 FOR UPDATE OF k SKIP LOCKED)
            RETURNING id, confirmed_at AS at";
        let close = "
            UPDATE idempotency_keys SET closed_at = $1 WHERE id IN
                (SELECT id FROM idempotency_keys
                 WHERE closes_at IS NOT NULL AND closes_at <= $1 AND confirmed_at IS NULL AND closed_at IS NULL
                 ORDER BY closes_at LIMIT $2 FOR UPDATE SKIP LOCKED)
            RETURNING id, closes_at AS at";
        let mut decided = 0;
        for (kind, decide) in [(EventKind::Confirmed, confirmed), (EventKind::Closed, close)] {
            let read = |row: &Row<'_>| Ok((row.get::<i64>("id")?, row.get::<Timestamp>("at")?));
            for (request, at) in sql.rows(decide, values![now, PURGE_BATCH], read).await? {
                event_log::record(sql, kind, request, at, now).await?;
                decided += 1;
            }
        }
        Ok(decided)
    }
}

/// Deletes what was kept long enough; returns how many rows.
pub(crate) async fn retain(sql: &mut dyn Sql, now: Timestamp) -> Result<u64, Failure> {
    // The oldest have the lowest ids.
    let forget = "
        DELETE FROM idempotency_keys WHERE id IN
            (SELECT id FROM (SELECT id, created_at FROM idempotency_keys ORDER BY id LIMIT $2) oldest WHERE created_at <= $1)";
    sql.execute(forget, values![now.minus(KEPT_FOR), PURGE_BATCH]).await
}

/// Removes what leads to a person who is being erased. The keyed hash of the request and its answer stay as long as they would
/// have anyway, so that a repeat does not reveal the erasure. At most `most` rows; returns how many.
pub(crate) async fn forget_person(sql: &mut dyn Sql, person: i64, most: u32) -> Result<u64, Failure> {
    let forget = "UPDATE idempotency_keys SET person_id = NULL, sign_up_id = NULL WHERE id IN
                      (SELECT id FROM idempotency_keys WHERE person_id = $1 LIMIT $2)";
    sql.execute(forget, values![person, most]).await
}
