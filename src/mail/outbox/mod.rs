//! The outbox (transactional: a mail is written along with its sign-up) and the mailbox records.

pub mod candidate;
pub mod hold;
pub mod lease;
pub mod mailbox;
pub mod settle;

use crate::domain::mail::lane::Lane;
use crate::domain::mail::{HeldMail, LONGEST_WAIT, MailId, MailKind, WaitingMail};
use crate::domain::sign_up::{PENDING_FOR, SignUpId};
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Row, Sql, Unit, Value, values};

/// A statement about each held mail `o` of a sign-up `s`, either of the key `$1` or of the partner `$1`, where -1 means the
/// form and 0 means everyone. If the key is revoked or its partner is suspended, the statement also covers mail that no worker
/// has looked at since. It covers mail held because a partner is suspended only when the key is given.
macro_rules! of_held {
    ($which:expr, $act:literal, $column:literal) => {
        match $which {
            HeldMail::OfKey(_) => concat!(
                $act,
                " IN (SELECT ",
                $column,
                " FROM outbox o CROSS JOIN sign_ups s
                  WHERE s.id = o.sign_up_id AND s.key_id = $1 AND o.leased_by IS NULL AND (o.held_at IS NOT NULL OR (o.priority = 0 AND EXISTS
                      (SELECT 1 FROM api_keys k JOIN partners p ON p.id = k.partner_id
                       WHERE k.id = $1 AND (k.revoked_at IS NOT NULL OR p.suspended_at IS NOT NULL)))))"
            ),
            HeldMail::All | HeldMail::OfPartner(_) | HeldMail::OfTheForm => concat!(
                $act,
                " IN (SELECT ",
                $column,
                " FROM outbox o JOIN sign_ups s ON s.id = o.sign_up_id
                  WHERE o.held_at IS NOT NULL AND NOT o.held_suspended AND o.leased_by IS NULL
                    AND (CAST($1 AS BIGINT) = 0 OR coalesce(s.partner_id, -1) = $1))"
            ),
        }
    };
}

/// A mail `o` that failed, would wait past `$1`, and is not being tried at `$2`. Campaign mail keeps its own schedule.
macro_rules! is_waiting_after_failure {
    () => {
        "o.campaign_mail_id IS NULL AND o.given_up_at IS NULL AND o.held_at IS NULL AND o.last_error IS NOT NULL AND o.send_after > $1 AND o.leased_until <= $2"
    };
}

/// How many mails one step wakes, and how many one step of `mail retry` looks at.
const WAKE_BATCH: u32 = 500;
const RETRY_BATCH: u32 = 500;

/// What a step of `mail retry` did.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RetriedMail {
    pub count: u64,
    /// The mail to continue after; none if there are no more.
    pub next: Option<MailId>,
}

/// The columns of a waiting mail `o`, as [`waiting`] reads them.
macro_rules! waiting_columns {
    () => {
        "o.id AS mail_id, o.kind, o.created_at AS queued_at, o.send_after, o.attempts, o.last_error, o.given_up_at, o.held_at"
    };
}
pub(crate) use waiting_columns;

/// Extends a mail's lease for the worker that has it; false if another worker has taken the mail since.
pub struct RenewMail {
    pub mail: MailId,
    pub attempt: u32,
    pub until: Timestamp,
}

impl Unit for RenewMail {
    type Done = bool;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let renew = "UPDATE outbox SET leased_until = $3 WHERE id = $1 AND attempts = $2 AND leased_by IS NOT NULL";
        Ok(sql.execute(renew, values![self.mail.0, self.attempt, self.until]).await? == 1)
    }
}

/// Makes mail due that waits for a time only a wrong clock can have written; returns how many.
pub struct HealClock(pub Timestamp);

impl Unit for HealClock {
    type Done = u64;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        // Each statement uses one index. Held mail waits for no particular time.
        let heal = "UPDATE outbox /*+ INDEXED BY outbox_due */ SET send_after = $1
                    WHERE campaign_mail_id IS NULL AND given_up_at IS NULL AND held_at IS NULL AND send_after > $2";
        let of_campaigns = "UPDATE outbox SET send_after = $1
                            WHERE campaign_mail_id IS NOT NULL AND given_up_at IS NULL AND send_after > $2";
        let values = values![self.0, self.0.plus(LONGEST_WAIT)];
        Ok(sql.execute(heal, values).await? + sql.execute(of_campaigns, values).await?)
    }
}

/// The outbox, oldest first, without addresses.
pub struct ListMail;

impl Unit for ListMail {
    type Done = Vec<WaitingMail>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<WaitingMail>, Failure> {
        let list = concat!("SELECT ", waiting_columns!(), " FROM outbox o ORDER BY o.id LIMIT 10000");
        sql.rows(list, values![], waiting).await
    }
}

/// Some of the outbox after a mail, oldest first, without addresses.
pub struct ListMailAfter(pub MailId, pub u32);

impl Unit for ListMailAfter {
    type Done = Vec<WaitingMail>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<WaitingMail>, Failure> {
        let list = concat!("SELECT ", waiting_columns!(), " FROM outbox o WHERE o.id > $1 ORDER BY o.id LIMIT $2");
        sql.rows(list, values![self.0.0, self.1], waiting).await
    }
}

/// Makes a mail due now, even one that was given up or whose mailbox has had its share; false if there is no such mail.
pub struct RetryMail(pub MailId, pub Timestamp);

impl Unit for RetryMail {
    type Done = bool;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(mail, now) = self;
        let retry = "UPDATE outbox SET send_after = $2, given_up_at = NULL, held_at = NULL, held_suspended = FALSE, priority = 2,
                         first_attempt_at = CASE WHEN given_up_at IS NULL THEN first_attempt_at END
                     WHERE id = $1";
        Ok(sql.execute(retry, values![mail.0, *now]).await? == 1)
    }
}

/// Makes failed mail that would wait past `from` due within a minute, one batch at a time. Returns where to continue; none if
/// that was all.
pub struct WakeMail(pub Timestamp, pub Timestamp);

impl Unit for WakeMail {
    type Done = Option<Timestamp>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self(from, now) = self;
        let next = concat!(
            "SELECT o.send_after FROM outbox o /*+ INDEXED BY outbox_failed */ WHERE ",
            is_waiting_after_failure!(),
            " ORDER BY o.send_after LIMIT $3"
        );
        let next: Vec<Timestamp> = sql.rows(next, values![*from, *now, WAKE_BATCH], |row| row.get(0)).await?;
        let Some(end) = next.last().copied() else { return Ok(None) };
        let wake = concat!(
            "UPDATE outbox SET send_after = $2 + (id % 60) * 1000 WHERE id IN (SELECT o.id FROM outbox o /*+ INDEXED BY outbox_failed */ WHERE ",
            is_waiting_after_failure!(),
            " AND o.send_after <= $3)"
        );
        sql.execute(wake, values![*from, *now, end]).await?;
        Ok((next.len() as u64 == u64::from(WAKE_BATCH)).then_some(end))
    }
}

/// Makes the next mail that waits after a failure due now, if another one waits too: a single failure may be its recipient's fault.
/// Returns whether any mail of people failed and has not gone yet.
pub struct ProbeMail {
    /// Also if no other one waits: the server was away.
    pub even_alone: bool,
    pub now: Timestamp,
}

impl Unit for ProbeMail {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self { even_alone, now } = self;
        let next = concat!(
            "SELECT o.id FROM outbox o /*+ INDEXED BY outbox_failed */ WHERE ",
            is_waiting_after_failure!(),
            " ORDER BY o.send_after LIMIT 2"
        );
        let next: Vec<i64> = sql.rows(next, values![*now, *now], |row| row.get(0)).await?;
        if let Some(first) = next.first()
            && (*even_alone || next.len() > 1)
        {
            sql.execute("UPDATE outbox SET send_after = $2 WHERE id = $1", values![*first, *now]).await?;
        }
        let failed = "SELECT 1 FROM outbox o /*+ INDEXED BY outbox_failed */
                      WHERE o.campaign_mail_id IS NULL AND o.given_up_at IS NULL AND o.held_at IS NULL AND o.last_error IS NOT NULL
                          AND o.send_after > $1 ORDER BY o.send_after LIMIT 1";
        sql.row(failed, values![Timestamp::from_millis(0)], |_| Ok(())).await.map(|found| found.is_some())
    }
}

/// Makes mail that failed or was given up due within a minute: one batch, after the mail `after`. With `domain`, only mail to
/// that domain. Leaves held mail and the mail of a suspended partner alone.
pub struct RetryFailed {
    pub after: MailId,
    pub domain: Option<String>,
    pub now: Timestamp,
}

impl Unit for RetryFailed {
    type Done = RetriedMail;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<RetriedMail, Failure> {
        let Self { after, domain, now } = self;
        let window = "SELECT max(w.id), count(*) FROM (SELECT id FROM outbox WHERE id > $1 ORDER BY id LIMIT $2) w";
        let read = |row: &Row<'_>| Ok((row.get::<Option<i64>>(0)?, row.get::<u64>(1)?));
        let Some((Some(end), looked_at)) = sql.row(window, values![after.0, RETRY_BATCH], read).await? else {
            return Ok(RetriedMail { count: 0, next: None });
        };
        // Domains ignore case, and `_` is the only LIKE wildcard that a domain can contain.
        let to = domain.as_ref().map(|domain| format!("%@{}", domain.to_ascii_lowercase().replace('_', "\\_")));
        let retry = "
            UPDATE outbox SET send_after = $3 + (id % 60) * 1000, given_up_at = NULL,
                first_attempt_at = CASE WHEN given_up_at IS NULL THEN first_attempt_at END
            WHERE id > $1 AND id <= $2 AND held_at IS NULL AND leased_until <= $3
              AND (given_up_at IS NOT NULL OR last_error IS NOT NULL)
              AND NOT EXISTS (SELECT 1 FROM sign_ups s JOIN partners p ON p.id = s.partner_id
                              WHERE s.id = outbox.sign_up_id AND p.suspended_at IS NOT NULL)
              AND (CAST($4 AS TEXT) IS NULL OR lower(recipient) LIKE $4 ESCAPE '\\')";
        let count = sql.execute(retry, values![after.0, end, *now, to.as_deref()]).await?;
        Ok(RetriedMail { count, next: (looked_at == u64::from(RETRY_BATCH)).then_some(MailId(end)) })
    }
}

/// Releases held mail, each with the full time to confirm; returns how many.
pub struct ReleaseHeld(pub HeldMail, pub Timestamp);

impl Unit for ReleaseHeld {
    type Done = u64;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        let Self(which, now) = self;
        let anew =
            of_held!(which, "UPDATE sign_ups SET expires_at = $2 WHERE state = 'pending' AND id", "o.sign_up_id");
        sql.execute(anew, values![of(which), now.plus(PENDING_FOR)]).await?;
        let release = of_held!(
            which,
            "UPDATE outbox SET held_at = NULL, held_suspended = FALSE, priority = 1, send_after = $2 WHERE id",
            "o.id"
        );
        sql.execute(release, values![of(which), *now]).await
    }
}

/// Deletes held mail and ends its sign-ups: nothing else mails those people. Returns how many mails.
pub struct DropHeld(pub HeldMail, pub Timestamp);

impl Unit for DropHeld {
    type Done = u64;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        let Self(which, now) = self;
        let end = of_held!(
            which,
            "UPDATE sign_ups SET state = 'expired', decided_at = $2 WHERE state = 'pending' AND id",
            "o.sign_up_id"
        );
        sql.execute(end, values![of(which), *now]).await?;
        let drop = of_held!(which, "DELETE FROM outbox WHERE id", "o.id");
        sql.execute(drop, values![of(which)]).await
    }
}

/// `$1` of [`of_held!`].
fn of(which: &HeldMail) -> Value<'_> {
    match which {
        HeldMail::All => Value::Number(0),
        HeldMail::OfKey(key) => key.as_str().into(),
        HeldMail::OfPartner(partner) => (*partner).into(),
        HeldMail::OfTheForm => Value::Number(-1),
    }
}

pub(crate) fn waiting(row: &Row<'_>) -> Result<WaitingMail, Failure> {
    Ok(WaitingMail {
        id: MailId(row.get("mail_id")?),
        kind: row.parsed("kind", MailKind::from_name)?,
        created_at: row.get("queued_at")?,
        send_after: row.get("send_after")?,
        attempts: row.get("attempts")?,
        last_error: row.get("last_error")?,
        given_up_at: row.get("given_up_at")?,
        held_at: row.get("held_at")?,
    })
}

/// Deletes the mail that waits for a sign-up, so that a newer one can take its place. A mail that is being sent right now leads
/// to the same page and serves for both.
pub(crate) async fn replace(sql: &mut dyn Sql, sign_up: i64, now: Timestamp) -> Result<(), Failure> {
    let waiting = "DELETE FROM outbox WHERE sign_up_id = $1 AND leased_until <= $2";
    sql.execute(waiting, values![sign_up, now]).await.map(|_| ())
}

/// Puts a sign-up's mail into the outbox, unless one is there.
pub(crate) async fn put(
    sql: &mut dyn Sql,
    sign_up: i64,
    kind: MailKind,
    recipient: &str,
    (lane, proven): (Lane, bool),
    now: Timestamp,
) -> Result<(), Failure> {
    let put = "INSERT INTO outbox (sign_up_id, kind, recipient, created_at, send_after, lane, priority)
               VALUES ($1, $2, $3, $4, $4, $5, $6) ON CONFLICT (sign_up_id) DO NOTHING";
    let values = values![sign_up, kind.name(), recipient, now, lane.number(), i64::from(proven)];
    sql.execute(put, values).await.map(|_| ())
}

/// Deletes a sign-up's mail from the outbox.
pub(crate) async fn forget(sql: &mut dyn Sql, sign_up: SignUpId) -> Result<(), Failure> {
    sql.execute("DELETE FROM outbox WHERE sign_up_id = $1", values![sign_up.0]).await.map(|_| ())
}

/// Stops mail to the mailbox until then.
pub(crate) async fn suppress(sql: &mut dyn Sql, mailbox: &str, until: Timestamp) -> Result<(), Failure> {
    let suppress = "INSERT INTO mailboxes (mailbox, suppressed_until) VALUES ($1, $2)
                    ON CONFLICT (mailbox) DO UPDATE SET suppressed_until = excluded.suppressed_until";
    sql.execute(suppress, values![mailbox, until]).await.map(|_| ())
}

/// Resumes mail to the mailbox; returns whether it was stopped. The record still shows that a silence was lifted, which differs
/// from never having had one: what an erased person there was promised does not come back with the next sign-up.
pub(crate) async fn lift_silence(sql: &mut dyn Sql, mailbox: &str) -> Result<bool, Failure> {
    let lift = "UPDATE mailboxes SET suppressed_until = 0 WHERE mailbox = $1 AND suppressed_until > 0";
    Ok(sql.execute(lift, values![mailbox]).await? > 0)
}

/// Gives back what `worker` had leased when it was stopped; returns how many.
pub struct Release {
    pub worker: String,
}

impl Unit for Release {
    type Done = u64;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        let release = "UPDATE outbox SET leased_until = 0, leased_by = NULL WHERE leased_by = $1";
        sql.execute(release, values![&self.worker]).await
    }
}
