//! The outbox (transactional: written with the sign-up it is about) and what is remembered of mailboxes, as SQL.

use super::sql::{Failure, Row, Sql, Unit, values};
use crate::domain::mail::{
    A_DAY, DueMail, LEASE, LONGEST_WAIT, MailId, MailKind, MailOutcome, MailboxRecord, Turn, UNDELIVERABLE_FOR,
    WaitingMail,
};
use crate::domain::sign_up::SignUpId;
use crate::domain::time::Timestamp;

area! {
    /// Mail that waits to be sent.
    OutboxStore {
        /// Takes up to `most` mails that are due and may go, for `worker` alone until the lease ends. Drops those that have
        /// become pointless and defers those that would be too many for their mailbox.
        write lease_mail(worker: &str, most: usize, now: Timestamp) -> Vec<DueMail>
            = Lease { worker: worker.to_owned(), most, now };

        /// Keeps a mail for the worker that has it, until then; false if another has taken it since.
        write renew_mail(mail: MailId, attempt: u32, until: Timestamp) -> bool {
            |sql| {
                let renew = "UPDATE outbox SET leased_until = $3 WHERE id = $1 AND attempts = $2 AND leased_by IS NOT NULL";
                Ok(sql.execute(renew, values![mail.0, *attempt, *until]).await? == 1)
            }
        };

        /// Writes down what became of an attempt; without effect if the mail was leased again since.
        write settle_mail(mail: MailId, attempt: u32, outcome: MailOutcome, now: Timestamp) -> ()
            = Settle { mail, attempt, outcome, now };

        /// Gives back what `worker` had leased when it was ended; says how many.
        write release_mail(worker: &str) -> u64 = Release { worker: worker.to_owned() };

        /// Lets mail go that waits for a time which only a wrong clock can have written; says how much.
        write heal_clock(now: Timestamp) -> u64 {
            |sql| {
                let heal = "UPDATE outbox SET send_after = $1 WHERE given_up_at IS NULL AND send_after > $2";
                sql.execute(heal, values![*now, now.plus(LONGEST_WAIT)]).await
            }
        };

        /// The outbox, oldest first, without addresses.
        read list_mail() -> Vec<WaitingMail> {
            |sql| {
                let list = "SELECT id, kind, created_at, send_after, attempts, last_error, given_up_at
                            FROM outbox ORDER BY id LIMIT 10000";
                sql.rows(list, values![], waiting).await
            }
        };

        /// Lets a mail be tried at once, even one that was given up; false if there is none.
        write retry_mail(mail: MailId, now: Timestamp) -> bool {
            |sql| {
                let retry = "UPDATE outbox SET send_after = $2, given_up_at = NULL,
                                 first_attempt_at = CASE WHEN given_up_at IS NULL THEN first_attempt_at END
                             WHERE id = $1";
                Ok(sql.execute(retry, values![mail.0, *now]).await? == 1)
            }
        };
    }
}

fn waiting(row: &Row<'_>) -> Result<WaitingMail, Failure> {
    Ok(WaitingMail {
        id: MailId(row.get(0)?),
        kind: row.parsed(1, MailKind::from_name)?,
        created_at: row.get(2)?,
        send_after: row.get(3)?,
        attempts: row.get(4)?,
        last_error: row.get(5)?,
        given_up_at: row.get(6)?,
    })
}

/// Takes away the mail that waits for a sign-up, for a newer one to take its place; one that is being sent at this moment
/// leads to the same page and serves for both.
pub(super) async fn replace(sql: &mut impl Sql, sign_up: i64, now: Timestamp) -> Result<(), Failure> {
    let waiting = "DELETE FROM outbox WHERE sign_up_id = $1 AND leased_until <= $2";
    sql.execute(waiting, values![sign_up, now]).await.map(|_| ())
}

/// Puts a sign-up's mail into the outbox, unless one is there.
pub(super) async fn put(
    sql: &mut impl Sql,
    sign_up: i64,
    kind: MailKind,
    recipient: &str,
    now: Timestamp,
) -> Result<(), Failure> {
    let put = "INSERT INTO outbox (sign_up_id, kind, recipient, created_at, send_after) VALUES ($1, $2, $3, $4, $4)
               ON CONFLICT (sign_up_id) DO NOTHING";
    sql.execute(put, values![sign_up, kind.name(), recipient, now]).await.map(|_| ())
}

/// Takes a sign-up's mail out of the outbox.
pub(super) async fn forget(sql: &mut impl Sql, sign_up: SignUpId) -> Result<(), Failure> {
    sql.execute("DELETE FROM outbox WHERE sign_up_id = $1", values![sign_up.0]).await.map(|_| ())
}

/// No mail to the mailbox until then.
pub(super) async fn suppress(sql: &mut impl Sql, mailbox: &str, until: Timestamp) -> Result<(), Failure> {
    let suppress = "INSERT INTO mailboxes (mailbox, suppressed_until) VALUES ($1, $2)
                    ON CONFLICT (mailbox) DO UPDATE SET suppressed_until = excluded.suppressed_until";
    sql.execute(suppress, values![mailbox, until]).await.map(|_| ())
}

/// Takes mails that are due, for one worker alone. Two nodes never look at the same mail, nor decide about the same
/// mailbox, at the same time.
struct Lease {
    worker: String,
    most: usize,
    now: Timestamp,
}

/// A mail that is due, and what decides whether it may go.
struct Candidate {
    mail: DueMail,
    mailbox: String,
    /// The person or the mailbox can no longer use it.
    pointless: bool,
}

/// How often a lease looks for more; each look settles what it finds, and the worker soon asks again. Few enough that even a
/// distant PostgreSQL has time for all of it.
const ROUNDS: usize = 8;

impl Unit for Lease {
    type Done = Vec<DueMail>;

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<Vec<DueMail>, Failure> {
        let mut leased = Vec::new();
        // Mails that may not go make way for others, so that nobody's flood holds up somebody else's mail.
        for _ in 0..ROUNDS {
            let mut candidates = self.candidates(sql, self.most - leased.len()).await?;
            if candidates.is_empty() {
                break;
            }
            // In one order on every node: two of them wait for a mailbox one after the other and not each for the other.
            candidates.sort_by(|one, other| one.mailbox.cmp(&other.mailbox));
            for candidate in candidates {
                leased.extend(self.consider(sql, candidate).await?);
            }
        }
        Ok(leased)
    }
}

impl Lease {
    async fn candidates(&self, sql: &mut impl Sql, most: usize) -> Result<Vec<Candidate>, Failure> {
        let due = "
            SELECT o.id, o.sign_up_id, o.kind, o.recipient, nullif(s.partner, ''), s.updated_at, p.code, o.attempts,
                   coalesce(o.first_attempt_at, $1), p.mailbox,
                   (o.kind = 'confirm' AND (s.state <> 'pending' OR p.state = 'member'))
                   OR coalesce(p.undeliverable_until > $1, FALSE)
                   OR EXISTS (SELECT 1 FROM mailboxes m WHERE m.mailbox = p.mailbox AND m.suppressed_until > $1)
            FROM outbox o JOIN sign_ups s ON s.id = o.sign_up_id JOIN people p ON p.id = s.person_id
            WHERE o.given_up_at IS NULL AND o.send_after <= $1 AND (o.leased_until <= $1 OR o.leased_until > $3)
              AND (o.kind <> 'confirm' OR s.expires_at > $1)
            ORDER BY o.send_after LIMIT $2 FOR UPDATE OF o SKIP LOCKED";
        // No lease lasts for long; one that seems to was written by a wrong clock. What has expired is left to retention,
        // which decides so for good.
        let never = self.now.plus(LEASE * 20);
        sql.rows(due, values![self.now, i64::try_from(most).unwrap_or(i64::MAX), never], candidate).await
    }

    /// Leases a mail, defers it or drops it.
    async fn consider(&self, sql: &mut impl Sql, candidate: Candidate) -> Result<Option<DueMail>, Failure> {
        let Candidate { mut mail, mailbox, pointless } = candidate;
        if pointless {
            sql.execute("DELETE FROM outbox WHERE id = $1", values![mail.id.0]).await?;
            return Ok(None);
        }
        match hold_mailbox(sql, &mailbox).await?.turn(mail.id, self.now) {
            Turn::Again => {}
            Turn::Next => {
                let note = "UPDATE mailboxes SET sent_1 = $2, sent_2 = sent_1, sent_3 = sent_2, sent_4 = sent_3,
                                holder = $3 WHERE mailbox = $1";
                sql.execute(note, values![&mailbox, self.now, mail.id.0]).await?;
            }
            Turn::NotBefore(allowed) => {
                self.defer(sql, &mailbox, allowed).await?;
                return Ok(None);
            }
        }
        mail.attempts += 1;
        let lease = "UPDATE outbox SET attempts = $2, first_attempt_at = $3, leased_until = $4, leased_by = $5
                     WHERE id = $1";
        let until = self.now.plus(LEASE);
        sql.execute(lease, values![mail.id.0, mail.attempts, mail.first_attempt_at, until, &self.worker]).await?;
        Ok(Some(mail))
    }

    /// All that waits for the mailbox, at once; what another node is looking at is left to it.
    async fn defer(&self, sql: &mut impl Sql, mailbox: &str, until: Timestamp) -> Result<(), Failure> {
        let defer = "
            UPDATE outbox SET send_after = $2 WHERE id IN
                (SELECT o.id FROM outbox o JOIN sign_ups s ON s.id = o.sign_up_id
                 WHERE o.send_after < $2 AND o.leased_until <= $3
                   AND o.id IS DISTINCT FROM (SELECT holder FROM mailboxes WHERE mailbox = $1)
                   AND s.state = 'pending' AND s.person_id IN
                       (SELECT id FROM people WHERE compared = $1 AND mailbox = $1
                        UNION ALL SELECT id FROM people WHERE mailbox = $1 AND mailbox <> compared)
                 FOR UPDATE OF o SKIP LOCKED)";
        sql.execute(defer, values![mailbox, until, self.now]).await.map(|_| ())
    }
}

fn candidate(row: &Row<'_>) -> Result<Candidate, Failure> {
    let mail = DueMail {
        id: MailId(row.get(0)?),
        sign_up: SignUpId(row.get(1)?),
        kind: row.parsed(2, MailKind::from_name)?,
        recipient: row.get(3)?,
        partner: row.get(4)?,
        asked_at: row.get(5)?,
        code: row.get(6)?,
        attempts: row.get(7)?,
        first_attempt_at: row.get(8)?,
    };
    Ok(Candidate { mail, mailbox: row.get(9)?, pointless: row.get(10)? })
}

/// What is remembered of a mailbox, held until the unit is over.
async fn hold_mailbox(sql: &mut impl Sql, mailbox: &str) -> Result<MailboxRecord, Failure> {
    sql.execute("INSERT INTO mailboxes (mailbox) VALUES ($1) ON CONFLICT DO NOTHING", values![mailbox]).await?;
    let hold = "SELECT sent_1, sent_2, sent_3, sent_4, holder FROM mailboxes WHERE mailbox = $1 FOR UPDATE";
    let record = |row: &Row<'_>| {
        let times = (0..A_DAY).map(|column| row.get(column)).collect::<Result<Vec<Option<_>>, _>>()?;
        Ok(MailboxRecord {
            sent: times.into_iter().flatten().collect(),
            holder: row.get::<Option<i64>>(A_DAY)?.map(MailId),
        })
    };
    Ok(sql.row(hold, values![mailbox], record).await?.unwrap_or_default())
}

/// Writes down what became of an attempt, unless another worker has taken the mail since: who tried it last is told by the
/// number of attempts.
struct Settle {
    mail: MailId,
    attempt: u32,
    outcome: MailOutcome,
    now: Timestamp,
}

impl Unit for Settle {
    type Done = ();

    fn is_transaction(&self) -> bool {
        self.outcome != MailOutcome::Sent
    }

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<(), Failure> {
        match &self.outcome {
            MailOutcome::Sent => {
                let delete = "DELETE FROM outbox WHERE id = $1 AND attempts = $2";
                sql.execute(delete, values![self.mail.0, self.attempt]).await.map(|_| ())
            }
            MailOutcome::Rejected => {
                let delete = "DELETE FROM outbox WHERE id = $1 AND attempts = $2 RETURNING sign_up_id";
                let about: Option<i64> = sql.row(delete, values![self.mail.0, self.attempt], |row| row.get(0)).await?;
                let reject = "UPDATE people SET undeliverable_until = $2
                              WHERE id = (SELECT person_id FROM sign_ups WHERE id = $1)";
                let until = self.now.plus(UNDELIVERABLE_FOR);
                if about.is_some() {
                    sql.execute(reject, values![about, until]).await?;
                }
                Ok(())
            }
            MailOutcome::Retry { at, cause, perhaps_sent } => {
                self.give_mailbox_back(sql, *perhaps_sent).await?;
                self.keep(sql, Some(*at), None, cause).await
            }
            MailOutcome::GivenUp { cause, perhaps_sent } => {
                self.give_mailbox_back(sql, *perhaps_sent).await?;
                self.keep(sql, None, Some(self.now), cause).await
            }
        }
    }
}

impl Settle {
    async fn keep(
        &self,
        sql: &mut impl Sql,
        at: Option<Timestamp>,
        given_up_at: Option<Timestamp>,
        cause: &str,
    ) -> Result<(), Failure> {
        let keep = "
            UPDATE outbox SET send_after = coalesce($3, send_after), given_up_at = $4, last_error = $5, leased_until = 0,
                leased_by = NULL
            WHERE id = $1 AND attempts = $2";
        // No text of ours holds a NUL: PostgreSQL could not keep it.
        let cause = cause.replace('\0', "");
        sql.execute(keep, values![self.mail.0, self.attempt, at, given_up_at, &cause]).await.map(|_| ())
    }

    /// The next attempt is another mail to the mailbox if this one may have gone. If it cannot have, nothing was spent.
    async fn give_mailbox_back(&self, sql: &mut impl Sql, perhaps_sent: bool) -> Result<(), Failure> {
        macro_rules! give_back {
            ($set:literal) => {
                concat!(
                    "UPDATE mailboxes SET ",
                    $set,
                    " WHERE holder = $1 AND mailbox =
                        (SELECT p.mailbox FROM people p JOIN sign_ups s ON s.person_id = p.id
                         JOIN outbox o ON o.sign_up_id = s.id WHERE o.id = $1 AND o.attempts = $2)"
                )
            };
        }
        let give_back = match perhaps_sent {
            true => give_back!("holder = NULL"),
            false => {
                give_back!("holder = NULL, sent_1 = sent_2, sent_2 = sent_3, sent_3 = sent_4, sent_4 = NULL")
            }
        };
        sql.execute(give_back, values![self.mail.0, self.attempt]).await.map(|_| ())
    }
}

/// Gives back what a worker had taken before it was ended.
struct Release {
    worker: String,
}

impl Unit for Release {
    type Done = u64;

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<u64, Failure> {
        let release = "UPDATE outbox SET leased_until = 0, leased_by = NULL WHERE leased_by = $1";
        sql.execute(release, values![&self.worker]).await
    }
}
