//! The outbox and what is remembered of mailboxes, as SQL.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::people::code;
use super::writer::Unit;
use super::{Failure, parsed};
use crate::domain::mail::{
    A_DAY, DueMail, LEASE, MailId, MailKind, MailOutcome, MailboxRecord, Turn, UNDELIVERABLE_FOR, WaitingMail,
};
use crate::domain::signup::SignUpId;
use crate::domain::time::Timestamp;

/// Takes away the mail that waits for a sign-up, for a newer one to take its place; one that is being sent at this moment
/// leads to the same page and serves for both.
pub(super) fn make_way(connection: &Connection, sign_up: i64, now: Timestamp) -> Result<(), Failure> {
    connection
        .prepare_cached("DELETE FROM outbox WHERE sign_up_id = ?1 AND leased_until <= ?2")?
        .execute([sign_up, now.as_millis()])?;
    Ok(())
}

/// Puts a sign-up's mail into the outbox, unless one is there.
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
             ON CONFLICT (sign_up_id) DO NOTHING",
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
        // Mails that may not go make way for others, so that nobody's flood holds up somebody else's mail.
        for _ in 0..ROUNDS {
            let candidates = self.candidates(connection, self.most - leased.len())?;
            if candidates.is_empty() {
                break;
            }
            for candidate in candidates {
                leased.extend(self.consider(connection, candidate)?);
            }
        }
        Ok(leased)
    }
}

/// How often a lease looks for more; each look settles what it finds.
const ROUNDS: usize = 32;

impl Lease {
    /// Leases a mail, puts it off or drops it.
    fn consider(&self, connection: &Connection, candidate: Candidate) -> Result<Option<DueMail>, Failure> {
        let Candidate { mut mail, mailbox, pointless } = candidate;
        if pointless {
            connection.prepare_cached("DELETE FROM outbox WHERE id = ?1")?.execute([mail.id.0])?;
            return Ok(None);
        }
        let record = find_mailbox(connection, &mailbox)?;
        match record.turn(mail.id, self.now) {
            Turn::Again => {}
            Turn::Next => note_sent(connection, &mailbox, mail.id, self.now)?,
            Turn::NotBefore(allowed) => {
                self.put_off(connection, &mailbox, allowed)?;
                return Ok(None);
            }
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
        Ok(Some(mail))
    }

    /// All that waits for the mailbox, at once.
    fn put_off(&self, connection: &Connection, mailbox: &str, until: Timestamp) -> Result<(), Failure> {
        connection
            .prepare_cached(
                "UPDATE outbox SET send_after = ?2
                 WHERE send_after < ?2 AND leased_until <= ?3
                   AND id IS NOT (SELECT holder FROM mailboxes WHERE mailbox = ?1)
                   AND sign_up_id IN (SELECT id FROM sign_ups WHERE state = 'pending' AND person_id IN
                                          (SELECT id FROM people WHERE compared = ?1 AND mailbox = ?1
                                           UNION ALL SELECT id FROM people WHERE mailbox = ?1 AND mailbox <> compared))",
            )?
            .execute(params![mailbox, until.as_millis(), self.now.as_millis()])?;
        Ok(())
    }

    fn candidates(&self, connection: &Connection, most: usize) -> Result<Vec<Candidate>, Failure> {
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
        let rows = statement.query_map(params![self.now.as_millis(), most as i64], candidate)?;
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

fn find_mailbox(connection: &Connection, mailbox: &str) -> Result<MailboxRecord, Failure> {
    let found = connection
        .prepare_cached("SELECT sent_1, sent_2, sent_3, sent_4, holder FROM mailboxes WHERE mailbox = ?1")?
        .query_row([mailbox], |row| {
            let times = (0..A_DAY).map(|column| row.get::<_, Option<i64>>(column)).collect::<Result<Vec<_>, _>>()?;
            let sent = times.into_iter().flatten().map(Timestamp::from_millis).collect();
            Ok(MailboxRecord { sent, holder: row.get::<_, Option<i64>>(A_DAY)?.map(MailId) })
        })
        .optional()?;
    Ok(found.unwrap_or_default())
}

fn note_sent(connection: &Connection, mailbox: &str, mail: MailId, now: Timestamp) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "INSERT INTO mailboxes (mailbox, sent_1, holder) VALUES (?1, ?2, ?3)
             ON CONFLICT (mailbox) DO UPDATE
             SET sent_1 = ?2, sent_2 = sent_1, sent_3 = sent_2, sent_4 = sent_3, holder = ?3",
        )?
        .execute(params![mailbox, now.as_millis(), mail.0])?;
    Ok(())
}

/// No text of ours holds a NUL: other stores could not keep it.
fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}

/// The mail may have gone: its next attempt is another mail to the mailbox.
fn let_go(connection: &Connection, mail: MailId, attempt: u32) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "UPDATE mailboxes SET holder = NULL WHERE holder = ?1 AND mailbox =
                 (SELECT mailbox FROM people p JOIN sign_ups s ON s.person_id = p.id JOIN outbox o ON o.sign_up_id = s.id
                  WHERE o.id = ?1 AND o.attempts = ?2)",
        )?
        .execute(params![mail.0, attempt])?;
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
            MailOutcome::Retry { at, cause, perhaps_sent } => {
                if *perhaps_sent {
                    let_go(connection, *mail, *attempt)?;
                }
                connection
                    .prepare_cached(
                        "UPDATE outbox SET send_after = ?3, last_error = ?4, leased_until = 0, leased_by = NULL
                         WHERE id = ?1 AND attempts = ?2",
                    )?
                    .execute(params![mail.0, attempt, at.as_millis(), without_nul(cause)])?;
            }
            MailOutcome::GivenUp { cause } => {
                let_go(connection, *mail, *attempt)?;
                connection
                    .prepare_cached(
                        "UPDATE outbox SET given_up_at = ?3, last_error = ?4, leased_until = 0, leased_by = NULL
                         WHERE id = ?1 AND attempts = ?2",
                    )?
                    .execute(params![mail.0, attempt, self.now.as_millis(), without_nul(cause)])?;
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
