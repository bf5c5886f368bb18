//! Ending the pending sign-ups of a key that leaked, or of a whole partner.
//!
//! No index leads from a key or a partner to its sign-ups, because every sign-up would pay for it. The expiry index holds the pending sign-ups
//! of all keys, a week of them, and each step walks part of it.

use tokio::time::Instant;

use crate::domain::api_key::KeyId;
use crate::domain::partner::name::PartnerId;
use crate::domain::sign_up::{DecidedHow, PendingPlace, SignUpId};
use crate::domain::time::Timestamp;
use crate::mail::sources;
use crate::mail::sources::SourceEvent;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};
use crate::store::{Store, StoreError};

/// How many pending sign-ups, of any key, a step looks at.
const LOOKED_AT: u32 = 500;

#[derive(Clone, Copy)]
pub enum WithdrawOf {
    Key(KeyId),
    Partner(PartnerId),
}

/// Ends pending sign-ups that were made with a key, or with any key of a partner, since a given time, one step after a given place, and deletes their mail.
/// Returns the last place it looked at (none at the end) and how many it ended.
pub struct Withdraw {
    pub of: WithdrawOf,
    /// Only sign-ups that were sent, or sent again, from then on.
    pub since: Timestamp,
    pub after: PendingPlace,
    pub now: Timestamp,
}

/// Pending sign-ups after the place `$1`, `$2` and up to `$3`, `$4` that were last sent with the key `$5` or by the partner `$6`, from
/// `$7` on, in the order in which batches lock them.
macro_rules! of_step {
    () => {
        "SELECT s.id FROM sign_ups s JOIN people p ON p.id = s.person_id
         WHERE s.state = 'pending' AND s.expires_at >= $1 AND (s.expires_at > $1 OR s.id > $2)
           AND s.expires_at <= $3 AND (s.expires_at < $3 OR s.id <= $4) AND (s.key_id = $5 OR s.partner_id = $6)
           AND s.updated_at >= $7
         ORDER BY p.email_normalized FOR UPDATE OF s"
    };
}

impl Unit for Withdraw {
    type Done = (Option<PendingPlace>, u64);
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let PendingPlace { expires_at, id } = self.after;
        let next = "SELECT id, expires_at FROM
                        (SELECT id, expires_at FROM sign_ups
                         WHERE state = 'pending' AND expires_at >= $1 AND (expires_at > $1 OR id > $2)
                         ORDER BY expires_at, id LIMIT $3) batch
                    ORDER BY expires_at DESC, id DESC LIMIT 1";
        let place =
            |row: &Row<'_>| Ok(PendingPlace { id: SignUpId(row.get("id")?), expires_at: row.get("expires_at")? });
        let Some(last) = sql.row(next, values![expires_at, id.0, LOOKED_AT], place).await? else {
            return Ok((None, 0));
        };
        let (key, partner) = match &self.of {
            WithdrawOf::Key(key) => (Some(key.as_str()), None),
            WithdrawOf::Partner(partner) => (None, Some(*partner)),
        };
        let since = self.since;
        let forget = concat!("DELETE FROM outbox WHERE sign_up_id IN (", of_step!(), ")");
        sql.execute(forget, values![expires_at, id.0, last.expires_at, last.id.0, key, partner, since]).await?;
        let end = concat!(
            "UPDATE sign_ups SET state = 'expired', decided_at = $8, decided_how = $9 WHERE id IN (",
            of_step!(),
            ") RETURNING partner_id"
        );
        let how = DecidedHow::Operator.name();
        let values = values![expires_at, id.0, last.expires_at, last.id.0, key, partner, since, self.now, how];
        let ended: Vec<Option<PartnerId>> = sql.rows(end, values, |row| row.get(0)).await?;
        if let Some(partner) = ended.first() {
            // Last, because others wait for this row.
            let times = u32::try_from(ended.len()).unwrap_or(u32::MAX);
            sources::count(sql, *partner, SourceEvent::Lapsed(times), self.now).await?;
        }
        Ok((Some(last), ended.len() as u64))
    }
}

/// Ends the pending sign-ups of a key or a partner that were sent since a given time, and returns how many. It works in steps: other writes
/// wait for each step and run in the pauses between them. After an interruption, the next call ends the rest. Only the first step
/// that changes something is audited, so that the log says it once.
pub async fn withdraw_sign_ups(
    store: &Store,
    of: WithdrawOf,
    since: Timestamp,
    now: Timestamp,
) -> Result<u64, StoreError> {
    let (mut place, mut ended) = (PendingPlace::START, 0);
    loop {
        let begun = Instant::now();
        let store = if ended == 0 { store } else { &store.unaudited() };
        let (Some(last), some) = store.run(Withdraw { of, since, after: place, now }).await? else { return Ok(ended) };
        (place, ended) = (last, ended + some);
        tokio::time::sleep(begun.elapsed()).await;
    }
}
