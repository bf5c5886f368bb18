//! The outbox and what is remembered of mailboxes, as SQL.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::people::code;
use super::writer::Unit;
use super::{Failure, parsed};
use crate::domain::mail::{
    A_DAY, DueMail, LEASE, MailId, MailKind, MailOutcome, UNDELIVERABLE_FOR, WaitingMail, next_allowed,
};
use crate::domain::signup::SignUpId;
use crate::domain::time::Timestamp;

/// Puts a sign-up's mail into the outbox in place of one that waits there; one that is being sent at this moment leads
/// to the same page and is left to its worker.
pub(super) fn put(
    connection: &Connection,
    sign_up: i64,
    kind: MailKind,
    recipient: &str,
    now: Timestamp,
) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "INSERT INTO outbox (sign_up_id, kind, recipient, created_at, send_after) VALUES (?1, ?2, ?3, ?4, ?4)
             ON CONFLICT (sign_up_id) DO UPDATE
             SET kind = excluded.kind, recipient = excluded.recipient, created_at = excluded.created_at,
                 send_after = excluded.send_after, given_up_at = NULL,
                 first_attempt_at = CASE WHEN given_up_at IS NULL THEN first_attempt_at END",
        )?
        .execute(params![sign_up, kind.name(), recipient, now.as_millis()])?;
    Ok(())
}

/// Takes a sign-up's mail out of the outbox.
pub(super) fn forget(connection: &Connection, sign_up: SignUpId) -> Result<(), Failure> {
    connection.prepare_cached("DELETE FROM outbox WHERE sign_up_id = ?1")?.execute([sign_up.0])?;
    Ok(())
}

/// No mail to the mailbox until then.
pub(super) fn suppress(connection: &Connection, mailbox: &str, until: Timestamp) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "INSERT INTO mailboxes (mailbox, suppressed_until) VALUES (?1, ?2)
             ON CONFLICT (mailbox) DO UPDATE SET suppressed_until = excluded.suppressed_until",
        )?
        .execute(params![mailbox, until.as_millis()])?;
    Ok(())
}

pub(super) fn list(connection: &Connection) -> Result<Vec<WaitingMail>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT id, kind, created_at, send_after, attempts, last_error, given_up_at FROM outbox ORDER BY id LIMIT 10000",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(WaitingMail {
            id: MailId(row.get(0)?),
            kind: parsed(row, 1, MailKind::from_name)?,
            created_at: Timestamp::from_millis(row.get(2)?),
            send_after: Timestamp::from_millis(row.get(3)?),
            attempts: row.get(4)?,
            last_error: row.get(5)?,
            given_up_at: row.get::<_, Option<i64>>(6)?.map(Timestamp::from_millis),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Takes mails that are due, for one worker alone.
pub(super) struct Lease {
    pub worker: String,
    pub most: usize,
    pub now: Timestamp,
}

/// A mail that is due, and what decides whether it may go.
struct Candidate {
    mail: DueMail,
    mailbox: String,
    /// The person or the mailbox can no longer use it.
    pointless: bool,
}

impl Unit for Lease {
    type Done = Vec<DueMail>;

    fn apply(&self, connection: &Connection) -> Result<Vec<DueMail>, Failure> {
        let mut leased = Vec::new();
        for candidate in self.candidates(connection)? {
            let Candidate { mut mail, mailbox, pointless } = candidate;
            if pointless {
                connection.prepare_cached("DELETE FROM outbox WHERE id = ?1")?.execute([mail.id.0])?;
                continue;
            }
            // A mail that was tried before has its place among the mailbox's four already.
            if mail.attempts == 0 {
                let sent = sent(connection, &mailbox)?;
                let allowed = next_allowed(&sent);
                if allowed > self.now {
                    connection
                        .prepare_cached("UPDATE outbox SET send_after = ?2 WHERE id = ?1")?
                        .execute([mail.id.0, allowed.as_millis()])?;
                    continue;
                }
                note_sent(connection, &mailbox, self.now)?;
            }
            mail.attempts += 1;
            connection
                .prepare_cached(
                    "UPDATE outbox SET attempts = ?2, first_attempt_at = ?3, leased_until = ?4, leased_by = ?5 WHERE id = ?1",
                )?
                .execute(params![
                    mail.id.0,
                    mail.attempts,
                    mail.first_attempt_at.as_millis(),
                    self.now.plus(LEASE).as_millis(),
                    self.worker
                ])?;
            leased.push(mail);
        }
        Ok(leased)
    }
}

impl Lease {
    fn candidates(&self, connection: &Connection) -> Result<Vec<Candidate>, Failure> {
        let mut statement = connection.prepare_cached(
            "SELECT o.id, o.sign_up_id, o.kind, o.recipient, nullif(s.partner, ''), s.updated_at, p.code, o.attempts,
                    coalesce(o.first_attempt_at, ?1), p.mailbox,
                    (o.kind = 'confirm' AND (s.state <> 'pending' OR s.expires_at <= ?1 OR p.state = 'member'))
                    OR coalesce(p.undeliverable_until > ?1, FALSE)
                    OR EXISTS (SELECT 1 FROM mailboxes m WHERE m.mailbox = p.mailbox AND m.suppressed_until > ?1)
             FROM outbox o JOIN sign_ups s ON s.id = o.sign_up_id JOIN people p ON p.id = s.person_id
             WHERE o.given_up_at IS NULL AND o.send_after <= ?1 AND o.leased_until <= ?1
             ORDER BY o.send_after LIMIT ?2",
        )?;
        let rows = statement.query_map(params![self.now.as_millis(), self.most as i64], candidate)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    let mail = DueMail {
        id: MailId(row.get(0)?),
        sign_up: SignUpId(row.get(1)?),
        kind: parsed(row, 2, MailKind::from_name)?,
        recipient: row.get(3)?,
        partner: row.get(4)?,
        asked_at: Timestamp::from_millis(row.get(5)?),
        code: code(row, 6)?,
        attempts: row.get(7)?,
        first_attempt_at: Timestamp::from_millis(row.get(8)?),
    };
    Ok(Candidate { mail, mailbox: row.get(9)?, pointless: row.get(10)? })
}

/// The mailbox's last mails, newest first.
fn sent(connection: &Connection, mailbox: &str) -> Result<Vec<Timestamp>, Failure> {
    let times = connection
        .prepare_cached("SELECT sent_1, sent_2, sent_3, sent_4 FROM mailboxes WHERE mailbox = ?1")?
        .query_row([mailbox], |row| {
            (0..A_DAY).map(|column| row.get::<_, Option<i64>>(column)).collect::<Result<Vec<_>, _>>()
        })
        .optional()?;
    Ok(times.into_iter().flatten().flatten().map(Timestamp::from_millis).collect())
}

fn note_sent(connection: &Connection, mailbox: &str, now: Timestamp) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "INSERT INTO mailboxes (mailbox, sent_1) VALUES (?1, ?2)
             ON CONFLICT (mailbox) DO UPDATE SET sent_1 = ?2, sent_2 = sent_1, sent_3 = sent_2, sent_4 = sent_3",
        )?
        .execute(params![mailbox, now.as_millis()])?;
    Ok(())
}

/// Writes down what became of an attempt, unless another worker has taken the mail since.
pub(super) struct Settle {
    pub mail: MailId,
    pub attempt: u32,
    pub outcome: MailOutcome,
    pub now: Timestamp,
}

impl Unit for Settle {
    type Done = ();

    fn apply(&self, connection: &Connection) -> Result<(), Failure> {
        let Self { mail, attempt, .. } = self;
        let delete = "DELETE FROM outbox WHERE id = ?1 AND attempts = ?2";
        match &self.outcome {
            MailOutcome::Sent => {
                connection.prepare_cached(delete)?.execute(params![mail.0, attempt])?;
            }
            MailOutcome::Rejected => {
                connection
                    .prepare_cached(
                        "UPDATE people SET undeliverable_until = ?3 WHERE id =
                             (SELECT person_id FROM sign_ups JOIN outbox ON sign_up_id = sign_ups.id
                              WHERE outbox.id = ?1 AND attempts = ?2)",
                    )?
                    .execute(params![mail.0, attempt, self.now.plus(UNDELIVERABLE_FOR).as_millis()])?;
                connection.prepare_cached(delete)?.execute(params![mail.0, attempt])?;
            }
            MailOutcome::Retry { at, cause } => {
                connection
                    .prepare_cached(
                        "UPDATE outbox SET send_after = ?3, last_error = ?4, leased_until = 0, leased_by = NULL
                         WHERE id = ?1 AND attempts = ?2",
                    )?
                    .execute(params![mail.0, attempt, at.as_millis(), cause])?;
            }
            MailOutcome::GivenUp { cause } => {
                connection
                    .prepare_cached(
                        "UPDATE outbox SET given_up_at = ?3, last_error = ?4, leased_until = 0, leased_by = NULL
                         WHERE id = ?1 AND attempts = ?2",
                    )?
                    .execute(params![mail.0, attempt, self.now.as_millis(), cause])?;
            }
        }
        Ok(())
    }
}

/// Gives back what a worker had taken before it was ended.
pub(super) struct Release {
    pub worker: String,
}

impl Unit for Release {
    type Done = usize;

    fn apply(&self, connection: &Connection) -> Result<usize, Failure> {
        let mut statement =
            connection.prepare_cached("UPDATE outbox SET leased_until = 0, leased_by = NULL WHERE leased_by = ?1")?;
        Ok(statement.execute([&self.worker])?)
    }
}

/// Lets a mail be tried again at once, even one that was given up.
pub(super) struct Retry {
    pub mail: MailId,
    pub now: Timestamp,
}

impl Unit for Retry {
    type Done = bool;

    fn apply(&self, connection: &Connection) -> Result<bool, Failure> {
        let changed = connection
            .prepare_cached(
                "UPDATE outbox SET send_after = ?2, given_up_at = NULL,
                     first_attempt_at = CASE WHEN given_up_at IS NULL THEN first_attempt_at END
                 WHERE id = ?1",
            )?
            .execute([self.mail.0, self.now.as_millis()])?;
        Ok(changed == 1)
    }
}
