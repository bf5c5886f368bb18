//! Held mail: kept in the outbox until the operator decides, or until its partner is no longer suspended.

use crate::domain::mail::MailId;
use crate::domain::partner::name::PartnerId;
use crate::domain::sign_up::PENDING_FOR;
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Sql, Unit, Value, values};

/// How many mails one statement holds.
const HELD_AT_ONCE: usize = 16;

/// Holds mails until the operator decides. With `suspended`, skips mails whose partner's suspension was just lifted. Returns
/// whether any mail was held.
pub(crate) async fn hold(
    sql: &mut dyn Sql,
    mails: &[MailId],
    suspended: bool,
    now: Timestamp,
) -> Result<bool, Failure> {
    let hold = "UPDATE outbox SET held_at = $1, held_suspended = $2, leased_until = 0, leased_by = NULL
                WHERE id IN ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
                  AND (NOT $2 OR EXISTS (SELECT 1 FROM sign_ups s JOIN partners p ON p.id = s.partner_id
                                         WHERE s.id = outbox.sign_up_id AND p.suspended_at IS NOT NULL))";
    let mut held = 0;
    for mails in mails.chunks(HELD_AT_ONCE) {
        let mut values = [Value::Null; 2 + HELD_AT_ONCE];
        (values[0], values[1]) = (now.into(), suspended.into());
        for (value, mail) in values[2..].iter_mut().zip(mails) {
            *value = mail.0.into();
        }
        held += sql.execute(hold, &values).await?;
    }
    Ok(held > 0)
}

/// How many waiting mails one step of [`ReleaseSuspended`] looks at.
const RELEASED_AT_ONCE: u32 = 500;

/// Releases mail held because the partner was suspended: one batch, after the mail `after`. Returns the last mail it looked at
/// (none at the end) and how many it released.
pub struct ReleaseSuspended {
    pub partner: PartnerId,
    pub after: MailId,
    pub now: Timestamp,
}

impl Unit for ReleaseSuspended {
    type Done = (Option<MailId>, u64);
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let (partner, after, now) = (self.partner, self.after, self.now);
        let next = "SELECT max(id) FROM (SELECT id FROM outbox WHERE id > $1 ORDER BY id LIMIT $2) batch";
        let last: Option<Option<i64>> = sql.row(next, values![after.0, RELEASED_AT_ONCE], |row| row.get(0)).await?;
        let Some(last) = last.flatten() else { return Ok((None, 0)) };
        // A worker that read before the suspension was lifted may be about to hold one of these, so this waits for its outcome.
        let settled = "SELECT o.id FROM outbox o JOIN sign_ups s ON s.id = o.sign_up_id
                       WHERE o.id > $1 AND o.id <= $2 AND s.partner_id = $3 ORDER BY o.id FOR UPDATE OF o";
        sql.rows(settled, values![after.0, last, partner], |row| row.get::<i64>(0)).await?;
        let release = "UPDATE outbox SET held_at = NULL, held_suspended = FALSE, send_after = $4
                       WHERE held_at IS NOT NULL AND held_suspended AND id IN
                           (SELECT o.id FROM outbox o JOIN sign_ups s ON s.id = o.sign_up_id
                            WHERE o.id > $1 AND o.id <= $2 AND s.partner_id = $3)
                       RETURNING sign_up_id";
        let released: Vec<i64> = sql.rows(release, values![after.0, last, partner, now], |row| row.get(0)).await?;
        for sign_up in &released {
            let anew = "UPDATE sign_ups SET expires_at = $2 WHERE id = $1 AND state = 'pending' AND expires_at < $2";
            sql.execute(anew, values![*sign_up, now.plus(PENDING_FOR)]).await?;
        }
        Ok((Some(MailId(last)), released.len() as u64))
    }
}
