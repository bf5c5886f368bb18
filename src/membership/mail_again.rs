//! Mails pending sign-ups their links again after the secret leaked, because the links that they have no longer work.

use crate::domain::mail::MailKind;
use crate::domain::mail::lane::Lane;
use crate::domain::mail::policy::Priority;
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// How many sign-ups one step looks at.
const BATCH: u32 = 500;

/// Between two of these mails, in milliseconds: four a second.
const PACE_MILLIS: i64 = 250;

/// The sign-up after which a step goes on: in the order in which they lapse.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct PendingPlace {
    expires_at: i64,
    id: i64,
}

/// Queues the mail of some pending sign-ups again, unless it waits anyway. Returns where to go on; none at the end.
pub struct MailPendingAgain {
    pub after: PendingPlace,
    /// Whose mail left before then.
    pub mailed_before: Timestamp,
    /// How many steps were done before, and when the first mail goes.
    pub step: u32,
    pub first_at: Timestamp,
    pub now: Timestamp,
}

impl Unit for MailPendingAgain {
    type Done = (Option<PendingPlace>, u64);
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let PendingPlace { expires_at, id } = self.after;
        let last = "SELECT expires_at, id FROM
                        (SELECT expires_at, id FROM sign_ups
                         WHERE state = 'pending' AND expires_at >= $1 AND (expires_at > $1 OR id > $2)
                         ORDER BY expires_at, id LIMIT $3) page
                    ORDER BY expires_at DESC, id DESC LIMIT 1";
        let place = |row: &Row<'_>| Ok(PendingPlace { expires_at: row.get("expires_at")?, id: row.get("id")? });
        let Some(last) = sql.row(last, values![expires_at, id, BATCH], place).await? else { return Ok((None, 0)) };
        let queue = "INSERT INTO outbox (sign_up_id, kind, recipient, created_at, send_after, lane, priority)
                     SELECT s.id, $5, p.email, $6, $7 + $8 * s.place, $9, $10 FROM
                         (SELECT id, person_id, mailed_at, row_number() OVER (ORDER BY expires_at, id) AS place FROM sign_ups
                          WHERE state = 'pending' AND expires_at >= $1 AND (expires_at > $1 OR id > $2)
                          ORDER BY expires_at, id LIMIT $3) s JOIN people p ON p.id = s.person_id
                     WHERE s.mailed_at < $4
                     ON CONFLICT (sign_up_id) DO NOTHING";
        let first_at = self.first_at.as_millis() + i64::from(self.step) * i64::from(BATCH) * PACE_MILLIS;
        let (kind, lane, priority) =
            (MailKind::Confirm.name(), Lane::of(b"rotation of the secret").number(), Priority::Reminder.number());
        let values =
            values![expires_at, id, BATCH, self.mailed_before, kind, self.now, first_at, PACE_MILLIS, lane, priority];
        Ok((Some(last), sql.execute(queue, values).await?))
    }
}
