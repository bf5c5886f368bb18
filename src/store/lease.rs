//! Which mail goes next: shared out between the lanes of its sources, and between those who write to one mailbox; as SQL.

use super::sql::{Failure, Row, Sql, Unit, values};
use crate::domain::lane::Lane;
use crate::domain::mail::{A_DAY, APART, DueMail, LEASE, MailId, MailKind, MailboxRecord, Turn, WAITING_FOR_A_MAILBOX};
use crate::domain::sign_up::SignUpId;
use crate::domain::time::Timestamp;

/// Takes mails that are due, for one worker alone. Two nodes never look at the same mail, nor decide about the same
/// mailbox, at the same time.
pub(super) struct Lease {
    pub worker: String,
    pub most: usize,
    pub busy: Vec<Lane>,
    pub now: Timestamp,
}

/// A mail that is due, and what decides whether it may go.
struct Candidate {
    mail: DueMail,
    mailbox: String,
    /// Who asked for it: a partner's name, empty for the form.
    door: String,
    /// Whom it passes: see the schema.
    pass: i64,
    /// Its key was revoked.
    disowned: bool,
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
        let mut leased: Vec<DueMail> = Vec::new();
        let of_a_lane = (self.most + self.busy.len()).div_ceil(2);
        // Mails that may not go make way for others, so that nobody's flood holds up somebody else's mail.
        for round in 0..ROUNDS {
            let candidates = match round {
                0 => self.first_of_each_lane(sql).await?,
                // No more than can be taken: what is only looked at is kept from other nodes.
                _ => self.oldest(sql, self.most - leased.len()).await?,
            };
            let mut idle = round > 0;
            for candidate in candidates {
                let lane = candidate.mail.lane;
                let on_their_way = leased.iter().map(|mail| mail.lane).chain(self.busy.iter().copied());
                if leased.len() < self.most && on_their_way.filter(|busy| *busy == lane).count() < of_a_lane {
                    leased.extend(self.consider(sql, candidate).await?);
                    idle = false;
                }
            }
            if idle || leased.len() >= self.most {
                break;
            }
        }
        Ok(leased)
    }
}

/// The people of the mailbox `$1`.
macro_rules! of_the_mailbox {
    () => {
        "(SELECT id FROM people WHERE compared = $1 AND mailbox = $1
          UNION ALL SELECT id FROM people WHERE mailbox = $1 AND mailbox <> compared)"
    };
}

/// A mail that is due, as [`candidate`] reads it. What has expired is left to retention, which decides so for good.
macro_rules! due {
    ($($which:expr),*) => {
        concat!(
            "SELECT o.id, o.sign_up_id, o.kind, o.recipient, s.partner, s.updated_at, p.code, o.attempts,
                    coalesce(o.first_attempt_at, $1), o.lane, p.mailbox, o.pass,
                    EXISTS (SELECT 1 FROM api_keys k WHERE k.id = s.key_id AND k.revoked_at IS NOT NULL),
                    (o.kind = 'confirm' AND (s.state <> 'pending' OR p.state = 'member'))
                    OR coalesce(p.undeliverable_until > $1, FALSE)
                    OR EXISTS (SELECT 1 FROM mailboxes m WHERE m.mailbox = p.mailbox AND m.suppressed_until > $1)
             FROM outbox o JOIN sign_ups s ON s.id = o.sign_up_id JOIN people p ON p.id = s.person_id
             WHERE ",
            $($which,)*
            " FOR UPDATE OF o SKIP LOCKED"
        )
    };
}

/// Whether a mail `o` of the sign-up `s` may be taken: it is nobody else's, and nobody waits for another's decision about it.
macro_rules! is_due {
    () => {
        "o.given_up_at IS NULL AND o.held_at IS NULL AND o.send_after <= $1
         AND (o.leased_until <= $1 OR o.leased_until > $2) AND (o.kind <> 'confirm' OR s.expires_at > $1)"
    };
}

impl Lease {
    /// No lease lasts for long; one that seems to was written by a wrong clock.
    fn never(&self) -> Timestamp {
        self.now.plus(LEASE * 20)
    }

    /// One of each source, however much of another waits; where there are too many sources, another one first each time.
    async fn first_of_each_lane(&self, sql: &mut impl Sql) -> Result<Vec<Candidate>, Failure> {
        let firsts = concat!(
            "WITH RECURSIVE lanes (n) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT n + 1 FROM lanes WHERE n + 1 < $3),
             firsts AS (
                 SELECT (SELECT o.id FROM outbox o JOIN sign_ups s ON s.id = o.sign_up_id
                         WHERE o.lane = n AND ",
            is_due!(),
            " ORDER BY o.send_after LIMIT 1) AS id FROM lanes
             ) ",
            // Once more of the row as it is when it is locked: another node may have taken it since.
            due!("o.id IN (SELECT id FROM firsts) AND ", is_due!(), " ORDER BY (o.lane + $4) % $3 LIMIT $5")
        );
        let lanes = i64::from(Lane::COUNT);
        let values = values![self.now, self.never(), lanes, self.now.as_millis().rem_euclid(lanes), places(self.most)];
        sql.rows(firsts, values, candidate).await
    }

    async fn oldest(&self, sql: &mut impl Sql, most: usize) -> Result<Vec<Candidate>, Failure> {
        let oldest = due!(is_due!(), " ORDER BY o.send_after LIMIT $3");
        sql.rows(oldest, values![self.now, self.never(), places(most)], candidate).await
    }

    /// Leases a mail, defers it or drops it.
    async fn consider(&self, sql: &mut impl Sql, candidate: Candidate) -> Result<Option<DueMail>, Failure> {
        let Candidate { mut mail, mailbox, door, pass, disowned, pointless } = candidate;
        if pointless {
            sql.execute("DELETE FROM outbox WHERE id = $1", values![mail.id.0]).await?;
            return Ok(None);
        }
        if disowned && pass == 0 {
            let hold = "UPDATE outbox SET held_at = $2, leased_until = 0, leased_by = NULL WHERE id = $1";
            sql.execute(hold, values![mail.id.0, self.now]).await?;
            return Ok(None);
        }
        // Another node decides about this mailbox now, and a flood to it may take it a while: nobody waits for that.
        if !sql.try_lock(&mailbox).await? {
            return Ok(None);
        }
        let passes = pass >= 2;
        let record = hold_mailbox(sql, &mailbox).await?;
        if !passes && !self.is_first(sql, &mailbox, &record, mail.id).await? {
            return Ok(None);
        }
        match record.turn(mail.id, &door, self.now) {
            Turn::Again => {}
            Turn::NotBefore(allowed) if !passes => {
                self.defer(sql, &mailbox, &door, allowed).await?;
                return Ok(None);
            }
            Turn::Next | Turn::NotBefore(_) => {
                let note = "UPDATE mailboxes SET sent_1 = $2, sent_2 = sent_1, sent_3 = sent_2, sent_4 = sent_3,
                                door_1 = $4, door_2 = door_1, door_3 = door_2, door_4 = door_3, holder = $3
                            WHERE mailbox = $1";
                sql.execute(note, values![&mailbox, self.now, mail.id.0, &door]).await?;
            }
        }
        mail.attempts += 1;
        let lease = "UPDATE outbox SET attempts = $2, first_attempt_at = $3, leased_until = $4, leased_by = $5
                     WHERE id = $1";
        let until = self.now.plus(LEASE);
        sql.execute(lease, values![mail.id.0, mail.attempts, mail.first_attempt_at, until, &self.worker]).await?;
        Ok(Some(mail))
    }

    /// Whether a mail is the first that its mailbox should get of those that wait for it: one for a door that it has heard
    /// least of, to the mailbox's plain name before its tagged ones, the newest. The others wait, and only a few of them: what
    /// a stranger asks for in thirty spellings does not delay the owner's own.
    async fn is_first(
        &self,
        sql: &mut impl Sql,
        mailbox: &str,
        record: &MailboxRecord,
        mail: MailId,
    ) -> Result<bool, Failure> {
        let waiting = concat!(
            "SELECT o.id, s.partner, p.compared = p.mailbox, o.created_at, o.send_after <= $2
             FROM outbox o JOIN sign_ups s ON s.id = o.sign_up_id JOIN people p ON p.id = s.person_id
             WHERE o.given_up_at IS NULL AND o.held_at IS NULL AND s.state = 'pending' AND p.id IN ",
            of_the_mailbox!()
        );
        let rival = |row: &Row<'_>| {
            let door: String = row.get(1)?;
            let rank = (record.sent_for(&door), !row.get::<bool>(2)?, std::cmp::Reverse(row.get::<Timestamp>(3)?));
            Ok((rank, std::cmp::Reverse(row.get::<i64>(0)?), row.get::<bool>(4)?))
        };
        let mut waiting = sql.rows(waiting, values![mailbox, self.now], rival).await?;
        waiting.sort_unstable();
        for (_, id, _) in waiting.split_off(WAITING_FOR_A_MAILBOX.min(waiting.len())) {
            // What another node is looking at is left to it: it may be waiting for this mailbox.
            let drop = "DELETE FROM outbox WHERE id IN
                            (SELECT id FROM outbox WHERE id = $1 AND leased_until <= $2 FOR UPDATE SKIP LOCKED)";
            sql.execute(drop, values![id.0, self.now]).await?;
        }
        // Nothing goes before what may be on its way.
        let holder = waiting.iter().find(|(_, id, _)| record.holder == Some(MailId(id.0)));
        let first = holder.or_else(|| waiting.iter().find(|(_, _, is_due)| *is_due));
        let is_first = first.is_none_or(|(_, id, _)| id.0 == mail.0);
        if !is_first && waiting.iter().any(|(_, id, _)| id.0 == mail.0) {
            let later = "UPDATE outbox SET send_after = $2 WHERE id = $1";
            sql.execute(later, values![mail.0, self.now.plus(APART)]).await?;
        }
        Ok(is_first)
    }

    /// All that waits for the mailbox through that door, at once; what another node is looking at is left to it.
    async fn defer(&self, sql: &mut impl Sql, mailbox: &str, door: &str, until: Timestamp) -> Result<(), Failure> {
        let defer = concat!(
            "UPDATE outbox SET send_after = $2 WHERE id IN
                (SELECT o.id FROM outbox o JOIN sign_ups s ON s.id = o.sign_up_id
                 WHERE o.send_after < $2 AND o.leased_until <= $3 AND s.partner = $4 AND o.pass < 2
                   AND o.id IS DISTINCT FROM (SELECT holder FROM mailboxes WHERE mailbox = $1)
                   AND s.state = 'pending' AND s.person_id IN ",
            of_the_mailbox!(),
            " FOR UPDATE OF o SKIP LOCKED)"
        );
        sql.execute(defer, values![mailbox, until, self.now, door]).await.map(|_| ())
    }
}

fn candidate(row: &Row<'_>) -> Result<Candidate, Failure> {
    let mail = DueMail {
        id: MailId(row.get(0)?),
        sign_up: SignUpId(row.get(1)?),
        kind: row.parsed(2, MailKind::from_name)?,
        recipient: row.get(3)?,
        partner: Some(row.get::<String>(4)?).filter(|partner| !partner.is_empty()),
        asked_at: row.get(5)?,
        code: row.get(6)?,
        attempts: row.get(7)?,
        first_attempt_at: row.get(8)?,
        lane: Lane::from_number(row.get(9)?),
    };
    let (mailbox, door) = (row.get(10)?, row.get(4)?);
    Ok(Candidate { mail, mailbox, door, pass: row.get(11)?, disowned: row.get(12)?, pointless: row.get(13)? })
}

/// What is remembered of a mailbox, held until the unit is over.
async fn hold_mailbox(sql: &mut impl Sql, mailbox: &str) -> Result<MailboxRecord, Failure> {
    sql.execute("INSERT INTO mailboxes (mailbox) VALUES ($1) ON CONFLICT DO NOTHING", values![mailbox]).await?;
    let hold =
        "SELECT sent_1, sent_2, sent_3, sent_4, coalesce(door_1, ''), coalesce(door_2, ''), coalesce(door_3, ''),
                       coalesce(door_4, ''), holder FROM mailboxes WHERE mailbox = $1 FOR UPDATE";
    let record = |row: &Row<'_>| {
        let mut sent = Vec::with_capacity(A_DAY);
        for column in 0..A_DAY {
            if let Some(time) = row.get::<Option<Timestamp>>(column)? {
                sent.push((time, row.get(column + A_DAY)?));
            }
        }
        Ok(MailboxRecord { sent, holder: row.get::<Option<i64>>(A_DAY * 2)?.map(MailId) })
    };
    Ok(sql.row(hold, values![mailbox], record).await?.unwrap_or_default())
}

fn places(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}
