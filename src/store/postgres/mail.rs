//! The outbox and what is remembered of mailboxes, as SQL.

use std::collections::HashMap;

use tokio_postgres::Row;

use super::pool::{Line, Unit, Value};
use super::{Failure, code, get, number, parsed, perhaps_time, time};
use crate::domain::mail::{
    A_DAY, DueMail, LEASE, MailId, MailKind, MailOutcome, MailboxRecord, Turn, UNDELIVERABLE_FOR, WaitingMail,
};
use crate::domain::signup::SignUpId;
use crate::domain::time::Timestamp;

/// Puts a sign-up's mail into the outbox in place of one that waits there; one that is being sent at this moment leads
/// to the same page and serves for both. In its new place it has a new id, so that a late worker cannot settle it.
pub(super) async fn put(
    line: &Line,
    sign_up: i64,
    kind: MailKind,
    recipient: &str,
    now: Timestamp,
) -> Result<(), Failure> {
    let sql = concat!(
        "
        INSERT INTO outbox (sign_up_id, kind, recipient, created_at, send_after) VALUES ($1, $2, $3, $4, $4)
        ",
        replacing_waiting_mail!()
    );
    line.execute(sql, &[&sign_up, &kind.name(), &recipient, &now.as_millis()]).await.map(|_| ())
}

pub(super) struct List;

impl Unit for List {
    type Done = Vec<WaitingMail>;

    async fn apply(&self, line: &mut Line) -> Result<Vec<WaitingMail>, Failure> {
        let sql = "SELECT id, kind, created_at, send_after, attempts, last_error, given_up_at
                   FROM outbox ORDER BY id LIMIT 10000";
        let waiting = |row: &Row| {
            Ok(WaitingMail {
                id: MailId(get(row, 0)?),
                kind: parsed(row, 1, MailKind::from_name)?,
                created_at: time(row, 2)?,
                send_after: time(row, 3)?,
                attempts: attempts(row, 4)?,
                last_error: get(row, 5)?,
                given_up_at: perhaps_time(row, 6)?,
            })
        };
        line.rows(sql, &[]).await?.iter().map(waiting).collect()
    }
}

fn attempts(row: &Row, column: usize) -> Result<u32, Failure> {
    Ok(u32::try_from(number(row, column)?).unwrap_or(u32::MAX))
}

/// Takes mails that are due, for one worker alone. Two nodes never look at the same mail, nor decide about the same
/// mailbox, at the same time.
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

/// What is to be written for the mails that were looked at.
#[derive(Default)]
struct Decided {
    leased: Vec<DueMail>,
    pointless: Vec<i64>,
    /// Mailboxes that get another mail, and which.
    noted: Vec<(String, i64)>,
    /// Mailboxes that must wait, and until when.
    put_off: Vec<(String, i64)>,
}

/// How often a lease looks for more; each look settles what it finds.
const ROUNDS: usize = 32;

impl Unit for Lease {
    type Done = Vec<DueMail>;

    const SEVERAL: bool = true;

    async fn apply(&self, line: &mut Line) -> Result<Vec<DueMail>, Failure> {
        let mut leased = Vec::new();
        // Mails that may not go make way for others, so that nobody's flood holds up somebody else's mail.
        for _ in 0..ROUNDS {
            let candidates = self.candidates(line, self.most - leased.len()).await?;
            if candidates.is_empty() {
                break;
            }
            let decided = self.decide(line, candidates).await?;
            self.write(line, &decided).await?;
            leased.extend(decided.leased);
        }
        Ok(leased)
    }
}

impl Lease {
    async fn candidates(&self, line: &Line, most: usize) -> Result<Vec<Candidate>, Failure> {
        let sql = "
            SELECT o.id, o.sign_up_id, o.kind, o.recipient, nullif(s.partner, ''), s.updated_at, p.code, o.attempts,
                   coalesce(o.first_attempt_at, $1), p.mailbox,
                   (o.kind = 'confirm' AND (s.state <> 'pending' OR s.expires_at <= $1 OR p.state = 'member'))
                   OR coalesce(p.undeliverable_until > $1, FALSE)
                   OR EXISTS (SELECT FROM mailboxes m WHERE m.mailbox = p.mailbox AND m.suppressed_until > $1)
            FROM outbox o JOIN sign_ups s ON s.id = o.sign_up_id JOIN people p ON p.id = s.person_id
            WHERE o.given_up_at IS NULL AND o.send_after <= $1 AND o.leased_until <= $1
            ORDER BY o.send_after LIMIT $2 FOR UPDATE OF o SKIP LOCKED";
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        line.rows(sql, &[&self.now.as_millis(), &most]).await?.iter().map(candidate).collect()
    }

    /// What becomes of each: leased, put off or dropped.
    async fn decide(&self, line: &Line, candidates: Vec<Candidate>) -> Result<Decided, Failure> {
        let mut mailboxes = self.mailboxes(line, &candidates).await?;
        let mut decided = Decided::default();
        for Candidate { mut mail, mailbox, pointless } in candidates {
            if pointless {
                decided.pointless.push(mail.id.0);
                continue;
            }
            let record = mailboxes.entry(mailbox.clone()).or_default();
            match record.turn(mail.id, self.now) {
                Turn::Again => {}
                Turn::Next => {
                    record.sent.insert(0, self.now);
                    record.holder = Some(mail.id);
                    decided.noted.push((mailbox, mail.id.0));
                }
                Turn::NotBefore(allowed) => {
                    decided.put_off.push((mailbox, allowed.as_millis()));
                    continue;
                }
            }
            mail.attempts += 1;
            decided.leased.push(mail);
        }
        Ok(decided)
    }

    /// The mailboxes of these mails, held until the end of the transaction; always in the same order.
    async fn mailboxes(
        &self,
        line: &Line,
        candidates: &[Candidate],
    ) -> Result<HashMap<String, MailboxRecord>, Failure> {
        let names: Vec<_> = candidates.iter().map(|candidate| candidate.mailbox.as_str()).collect();
        let sql = "INSERT INTO mailboxes (mailbox) SELECT DISTINCT name FROM unnest($1::text[]) name ORDER BY name
                   ON CONFLICT DO NOTHING";
        line.execute(sql, &[&names]).await?;
        let sql = "SELECT mailbox, sent_1, sent_2, sent_3, sent_4, holder FROM mailboxes
                   WHERE mailbox = ANY ($1) ORDER BY mailbox FOR UPDATE";
        let remembered = |row: &Row| {
            let times = (1..=A_DAY).map(|column| perhaps_time(row, column)).collect::<Result<Vec<_>, _>>()?;
            let record = MailboxRecord {
                sent: times.into_iter().flatten().collect(),
                holder: get::<Option<i64>>(row, A_DAY + 1)?.map(MailId),
            };
            Ok((get(row, 0)?, record))
        };
        line.rows(sql, &[&names]).await?.iter().map(remembered).collect()
    }

    async fn write(&self, line: &Line, decided: &Decided) -> Result<(), Failure> {
        let now = self.now.as_millis();
        if !decided.pointless.is_empty() {
            line.execute("DELETE FROM outbox WHERE id = ANY ($1)", &[&decided.pointless]).await?;
        }
        let (mailboxes, holders) = columns(&decided.noted);
        if !mailboxes.is_empty() {
            let sql = "
                UPDATE mailboxes m SET sent_1 = $3, sent_2 = sent_1, sent_3 = sent_2, sent_4 = sent_3, holder = n.holder
                FROM unnest($1::text[], $2::bigint[]) AS n (mailbox, holder) WHERE m.mailbox = n.mailbox";
            line.execute(sql, &[&mailboxes, &holders, &now]).await?;
        }
        let (mailboxes, until) = columns(&decided.put_off);
        if !mailboxes.is_empty() {
            // All that waits for the mailbox, at once; what another node is looking at is left to it.
            let sql = "
                UPDATE outbox SET send_after = w.until
                FROM (SELECT o.id, u.until
                      FROM unnest($1::text[], $2::bigint[]) AS u (mailbox, until)
                      CROSS JOIN LATERAL (
                          SELECT id FROM people WHERE compared = u.mailbox AND mailbox = u.mailbox
                          UNION ALL SELECT id FROM people WHERE mailbox = u.mailbox AND mailbox <> compared) p
                      JOIN sign_ups s ON s.person_id = p.id AND s.state = 'pending'
                      JOIN outbox o ON o.sign_up_id = s.id
                      LEFT JOIN mailboxes m ON m.mailbox = u.mailbox
                      WHERE o.send_after < u.until AND o.leased_until <= $3 AND o.id IS DISTINCT FROM m.holder
                      FOR UPDATE OF o SKIP LOCKED) w
                WHERE outbox.id = w.id";
            line.execute(sql, &[&mailboxes, &until, &now]).await?;
        }
        if !decided.leased.is_empty() {
            let ids: Vec<_> = decided.leased.iter().map(|mail| mail.id.0).collect();
            let sql = "UPDATE outbox SET attempts = attempts + 1, first_attempt_at = coalesce(first_attempt_at, $2),
                           leased_until = $3, leased_by = $4 WHERE id = ANY ($1)";
            line.execute(sql, &[&ids, &now, &self.now.plus(LEASE).as_millis(), &self.worker]).await?;
        }
        Ok(())
    }
}

fn columns(pairs: &[(String, i64)]) -> (Vec<&str>, Vec<i64>) {
    pairs.iter().map(|(mailbox, number)| (mailbox.as_str(), *number)).unzip()
}

fn candidate(row: &Row) -> Result<Candidate, Failure> {
    let mail = DueMail {
        id: MailId(get(row, 0)?),
        sign_up: SignUpId(get(row, 1)?),
        kind: parsed(row, 2, MailKind::from_name)?,
        recipient: get(row, 3)?,
        partner: get(row, 4)?,
        asked_at: time(row, 5)?,
        code: code(row, 6)?,
        attempts: attempts(row, 7)?,
        first_attempt_at: time(row, 8)?,
    };
    Ok(Candidate { mail, mailbox: get(row, 9)?, pointless: get(row, 10)? })
}

/// Writes down what became of an attempt, unless another worker has taken the mail since.
pub(super) struct Settle {
    pub mail: MailId,
    pub attempt: u32,
    pub outcome: MailOutcome,
    pub now: Timestamp,
}

/// Who tried the mail last is this worker: nobody else has taken it since.
const SETTLE_SENT: &str = "DELETE FROM outbox WHERE id = $1 AND attempts = $2";

const SETTLE_REJECTED: &str = "
    WITH gone AS (
        DELETE FROM outbox WHERE id = $1 AND attempts = $2 RETURNING sign_up_id
    )
    UPDATE people p SET undeliverable_until = $3
    FROM gone JOIN sign_ups s ON s.id = gone.sign_up_id WHERE p.id = s.person_id";

/// If the mail may have gone (`$5`), its next attempt is another mail to the mailbox.
const SETTLE_NOT_SENT: &str = "
    WITH settled AS (
        UPDATE outbox SET send_after = coalesce($3, send_after), given_up_at = $4, last_error = $6, leased_until = 0,
            leased_by = NULL
        WHERE id = $1 AND attempts = $2 RETURNING id, sign_up_id
    )
    UPDATE mailboxes m SET holder = NULL
    FROM settled JOIN sign_ups s ON s.id = settled.sign_up_id JOIN people p ON p.id = s.person_id
    WHERE $5 AND m.mailbox = p.mailbox AND m.holder = settled.id";

impl Unit for Settle {
    type Done = ();

    async fn apply(&self, line: &mut Line) -> Result<(), Failure> {
        let (mail, attempt, now) = (self.mail.0, i64::from(self.attempt), self.now.as_millis());
        let not_sent = async |at: Option<i64>, given_up: Option<i64>, perhaps_sent: bool, cause: &str| {
            // PostgreSQL keeps no NUL in a text.
            let cause = cause.replace('\0', "");
            let values: [Value<'_>; 6] = [&mail, &attempt, &at, &given_up, &perhaps_sent, &cause];
            line.execute(SETTLE_NOT_SENT, &values).await
        };
        match &self.outcome {
            MailOutcome::Sent => line.execute(SETTLE_SENT, &[&mail, &attempt]).await?,
            MailOutcome::Rejected => {
                let until = self.now.plus(UNDELIVERABLE_FOR).as_millis();
                line.execute(SETTLE_REJECTED, &[&mail, &attempt, &until]).await?
            }
            MailOutcome::Retry { at, cause, perhaps_sent } => {
                not_sent(Some(at.as_millis()), None, *perhaps_sent, cause).await?
            }
            MailOutcome::GivenUp { cause } => not_sent(None, Some(now), true, cause).await?,
        };
        Ok(())
    }
}

/// Gives back what a worker had taken before it was ended.
pub(super) struct Release {
    pub worker: String,
}

impl Unit for Release {
    type Done = usize;

    async fn apply(&self, line: &mut Line) -> Result<usize, Failure> {
        let sql = "UPDATE outbox SET leased_until = 0, leased_by = NULL WHERE leased_by = $1";
        Ok(usize::try_from(line.execute(sql, &[&self.worker]).await?).unwrap_or(usize::MAX))
    }
}

/// Lets a mail be tried again at once, even one that was given up.
pub(super) struct Retry {
    pub mail: MailId,
    pub now: Timestamp,
}

impl Unit for Retry {
    type Done = bool;

    async fn apply(&self, line: &mut Line) -> Result<bool, Failure> {
        let sql = "UPDATE outbox SET send_after = $2, given_up_at = NULL,
                       first_attempt_at = CASE WHEN given_up_at IS NULL THEN first_attempt_at END
                   WHERE id = $1";
        Ok(line.execute(sql, &[&self.mail.0, &self.now.as_millis()]).await? == 1)
    }
}
