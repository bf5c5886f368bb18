//! Which mail goes next: shared out between the lanes of its sources, and between those who write to one mailbox; as SQL.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::sources::{self, SourceEvent, source_name};
use super::sql::{Failure, Row, Sql, Unit, values};
use crate::domain::api_key::PartnerId;
use crate::domain::language::Language;
use crate::domain::mail::budget::{MailBudget, Reputation};
use crate::domain::mail::lane::Lane;
use crate::domain::mail::{
    DueMail, Leased, MAIL_LEASE, MAX_MAILS_PER_DAY, MAX_WAITING_PER_MAILBOX, MIN_MAIL_GAP, MailAbout, MailId, MailKind,
    MailboxRecord, Turn,
};
use crate::domain::sign_in::SignInId;
use crate::domain::sign_up::SignUpId;
use crate::domain::time::Timestamp;

/// Takes mails that are due, for one worker alone. Two nodes never look at the same mail, nor decide about the same
/// mailbox, at the same time.
pub(super) struct Lease {
    pub worker: String,
    pub most: usize,
    pub busy: Vec<Lane>,
    /// None where neither sources nor mailboxes are spared.
    pub budget: Option<MailBudget>,
    pub now: Timestamp,
}

/// A mail that is due, and what decides whether it may go.
struct Candidate {
    mail: DueMail,
    mailbox: String,
    /// Who asked for it: a partner's name, empty for the form.
    source: String,
    /// Whom it passes: see the schema.
    pass: i64,
    /// Its key was revoked.
    key_revoked: bool,
    /// The person or the mailbox can no longer use it.
    pointless: bool,
}

/// What a mail passes that was asked for on the way to one's own page: its source neither holds it nor is judged by it, for it did
/// not ask.
pub(super) const REMINDER: i64 = -1;

/// How often a lease looks for more; each look settles what it finds, and the worker soon asks again. Few enough that even a
/// distant PostgreSQL has time for all of it.
const ROUNDS: usize = 8;

impl Unit for Lease {
    type Done = Leased;

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<Leased, Failure> {
        let mut leased: Vec<DueMail> = Vec::new();
        let (mut sources, mut deferred) = (BTreeMap::new(), false);
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
                    match self.consider(sql, &mut sources, candidate).await? {
                        Considered::Leased(mail) => leased.push(mail),
                        Considered::Deferred => deferred = true,
                        Considered::Left => {}
                    }
                    idle = false;
                }
            }
            if idle || leased.len() >= self.most {
                break;
            }
        }
        let mut held = BTreeMap::new();
        // Always in the order of their ids, so that two nodes never wait for each other.
        for (partner, today) in sources {
            if today.mailed > 0 {
                sources::count(sql, partner, SourceEvent::Mailed(today.mailed), self.now).await?;
            }
            if today.held > 0 {
                held.insert(today.name, today.held);
            }
        }
        Ok(Leased { mails: leased, held, deferred })
    }
}

/// What became of a mail that was looked at.
enum Considered {
    Leased(DueMail),
    /// Dropped, held or put off.
    Deferred,
    /// Another node decides about it.
    Left,
}

/// A source's reputation, and what this lease adds to it. Nodes that lease at once may pass a budget together, by what they take
/// at once at the most.
struct SourceToday {
    name: String,
    reputation: Reputation,
    mailed: u32,
    held: u64,
}

/// A mail that is due, as [`candidate`] reads it. What has expired is left to retention, which decides so for good.
macro_rules! due {
    ($($which:expr),*) => {
        concat!(
            "SELECT o.id, o.sign_up_id, o.kind, o.recipient, s.partner_id,
                    (SELECT named.name FROM partners named WHERE named.id = s.partner_id) AS partner,
                    coalesce(s.updated_at, i.created_at) AS asked_at, p.code, o.attempts,
                    coalesce(o.first_attempt_at, $1) AS first_attempt_at, o.lane, p.mailbox, o.priority,
                    EXISTS (SELECT 1 FROM api_keys k WHERE k.id = s.key_id AND k.revoked_at IS NOT NULL) AS key_revoked,
                    coalesce(s.state <> 'pending', FALSE) OR (o.kind = 'confirm' AND p.state = 'member')
                    OR (o.kind = 'sign_in' AND (p.state <> 'member' OR i.used_at IS NOT NULL OR i.expires_at <= $1))
                    OR (o.kind = 'already_member' AND ',' || p.unwanted_mail || ',' LIKE '%,already_member,%')
                    OR EXISTS (SELECT 1 FROM stopped_partners x WHERE x.mailbox = p.mailbox AND s.id IS NOT NULL
                               AND coalesce(x.partner_id, 0) = coalesce(s.partner_id, 0))
                    OR coalesce(p.undeliverable_until > $1, FALSE)
                    OR EXISTS (SELECT 1 FROM mailboxes m WHERE m.mailbox = p.mailbox AND (m.suppressed_until > $1 OR m.complained_at IS NOT NULL))
                        AS pointless,
                    o.sign_in_id, coalesce(p.language, CASE WHEN o.kind = 'confirm' THEN s.language END) AS language
             FROM outbox o LEFT JOIN sign_ups s ON s.id = o.sign_up_id LEFT JOIN sign_ins i ON i.id = o.sign_in_id
             JOIN people p ON p.id = coalesce(s.person_id, i.person_id)
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
        self.now.plus(MAIL_LEASE * 20)
    }

    /// One of each source, however much of another waits; where there are too many sources, another one first each time.
    async fn first_of_each_lane(&self, sql: &mut impl Sql) -> Result<Vec<Candidate>, Failure> {
        let firsts = concat!(
            "WITH RECURSIVE lanes (n) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT n + 1 FROM lanes WHERE n + 1 < $3),
             firsts AS (
                 SELECT (SELECT o.id FROM outbox o LEFT JOIN sign_ups s ON s.id = o.sign_up_id
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
    async fn consider(
        &self,
        sql: &mut impl Sql,
        sources: &mut BTreeMap<Option<PartnerId>, SourceToday>,
        candidate: Candidate,
    ) -> Result<Considered, Failure> {
        let Candidate { mut mail, mailbox, source, pass, key_revoked, pointless } = candidate;
        if pointless {
            sql.execute("DELETE FROM outbox WHERE id = $1", values![mail.id.0]).await?;
            return Ok(Considered::Deferred);
        }
        // It was counted when it was asked for, and nobody's source is judged by it.
        if mail.kind == MailKind::SignIn {
            self.take(sql, &mut mail).await?;
            return Ok(Considered::Leased(mail));
        }
        let today = match sources.entry(mail.partner_id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let reputation = sources::conduct_of(sql, mail.partner_id, self.now).await?;
                new.insert(SourceToday { name: source.clone(), reputation, mailed: 0, held: 0 })
            }
        };
        let first_time = mail.attempts == 0;
        let throttled = first_time && self.budget.is_some_and(|budget| budget.holds(&source, &today.reputation));
        if (key_revoked && pass <= 0 && self.budget.is_some()) || (throttled && pass == 0) {
            today.held += u64::from(throttled);
            let hold = "UPDATE outbox SET held_at = $2, leased_until = 0, leased_by = NULL WHERE id = $1";
            sql.execute(hold, values![mail.id.0, self.now]).await?;
            return Ok(Considered::Deferred);
        }
        // Another node decides about this mailbox now, and a flood to it may take it a while: nobody waits for that.
        if !sql.try_lock(&mailbox).await? {
            return Ok(Considered::Left);
        }
        let passes = pass >= 2 || self.budget.is_none();
        let record = hold_mailbox(sql, &mailbox).await?;
        let waiting = if passes { Vec::new() } else { self.waiting_for(sql, &mailbox, &record).await? };
        // Nothing goes before what may be on its way.
        let holder = waiting.iter().find(|rival| record.holder == Some(rival.mail));
        let first = holder.or_else(|| waiting.iter().find(|rival| rival.is_due));
        if first.is_some_and(|rival| rival.mail != mail.id) {
            return put_off(sql, mail.id, self.now.plus(MIN_MAIL_GAP), self.now).await;
        }
        match record.turn(mail.id, &source, self.now) {
            Turn::Again => {}
            Turn::NotBefore(allowed) if !passes => {
                let considered = put_off(sql, mail.id, allowed, self.now).await?;
                // All else that waits for the mailbox through that source, at once.
                for rival in waiting.iter().filter(|rival| rival.source == source && record.holder != Some(rival.mail))
                {
                    put_off(sql, rival.mail, allowed, self.now).await?;
                }
                return Ok(considered);
            }
            Turn::Next | Turn::NotBefore(_) => {
                let note = "UPDATE mailboxes SET sent_1 = $2, sent_2 = sent_1, sent_3 = sent_2, sent_4 = sent_3,
                                source_1 = $4, source_2 = source_1, source_3 = source_2, source_4 = source_3, last_mail_id = $3
                            WHERE mailbox = $1";
                sql.execute(note, values![&mailbox, self.now, mail.id.0, mail.partner_id]).await?;
            }
        }
        self.take(sql, &mut mail).await?;
        if first_time && !mail.is_reminder {
            today.mailed += 1;
            today.reputation.mailed_today += 1;
        }
        Ok(Considered::Leased(mail))
    }

    /// The mail is this worker's from now on.
    async fn take(&self, sql: &mut impl Sql, mail: &mut DueMail) -> Result<(), Failure> {
        mail.attempts += 1;
        let lease = "UPDATE outbox SET attempts = $2, first_attempt_at = $3, leased_until = $4, leased_by = $5
                     WHERE id = $1";
        let until = self.now.plus(MAIL_LEASE);
        let values = values![mail.id.0, mail.attempts, mail.first_attempt_at, until, &self.worker];
        sql.execute(lease, values).await.map(|_| ())
    }

    /// The mails that wait for a mailbox, in the order in which it should get them: one for a source that it has heard least of,
    /// to the mailbox's plain name before its tagged ones, the newest. Only a few of them wait: what a stranger asks for in
    /// thirty spellings does not delay the owner's own.
    ///
    /// Few rows, and each found by its key however PostgreSQL guesses: a plan that was made while the tables were empty joined
    /// them from the wrong end, and took 180 ms a mail where a thousand waited.
    async fn waiting_for(
        &self,
        sql: &mut impl Sql,
        mailbox: &str,
        record: &MailboxRecord,
    ) -> Result<Vec<Rival>, Failure> {
        let waiting = "
            WITH mine AS MATERIALIZED (
                SELECT id, 1 AS plain FROM people WHERE email_normalized = $1 AND mailbox = $1
                UNION ALL SELECT id, 0 FROM people WHERE mailbox = $1 AND mailbox <> email_normalized
            )
            SELECT (SELECT o.id FROM outbox o WHERE o.sign_up_id = s.id AND o.given_up_at IS NULL AND o.held_at IS NULL) AS mail,
                   coalesce((SELECT named.name FROM partners named WHERE named.id = s.partner_id), '') AS source,
                   m.plain = 1 AS is_plain, (SELECT o.created_at FROM outbox o WHERE o.sign_up_id = s.id) AS created_at,
                   (SELECT o.send_after <= $2 FROM outbox o WHERE o.sign_up_id = s.id) AS is_due
            FROM mine m JOIN sign_ups s ON s.person_id = m.id WHERE s.state = 'pending'";
        let rival = |row: &Row<'_>| {
            let Some(mail) = row.get::<Option<i64>>("mail")? else { return Ok(None) };
            let source: String = row.get("source")?;
            let (is_plain, created_at) = (row.get::<bool>("is_plain")?, row.get::<Timestamp>("created_at")?);
            let rank = (record.sent_for(&source), !is_plain, Reverse(created_at), Reverse(mail));
            Ok(Some((rank, Rival { mail: MailId(mail), source, is_due: row.get("is_due")? })))
        };
        let waiting = sql.rows(waiting, values![mailbox, self.now], rival).await?;
        let mut waiting: Vec<_> = waiting.into_iter().flatten().collect();
        waiting.sort_unstable_by_key(|(rank, _)| *rank);
        for (_, rival) in waiting.split_off(MAX_WAITING_PER_MAILBOX.min(waiting.len())) {
            // What another node is looking at is left to it: it may be waiting for this mailbox.
            let drop = "DELETE FROM outbox WHERE id IN
                            (SELECT id FROM outbox WHERE id = $1 AND leased_until <= $2 FOR UPDATE SKIP LOCKED)";
            sql.execute(drop, values![rival.mail.0, self.now]).await?;
        }
        Ok(waiting.into_iter().map(|(_, rival)| rival).collect())
    }
}

/// A mail that waits for the same mailbox.
struct Rival {
    mail: MailId,
    source: String,
    is_due: bool,
}

/// Lets a mail wait; what another node is looking at is left to it.
async fn put_off(sql: &mut impl Sql, mail: MailId, until: Timestamp, now: Timestamp) -> Result<Considered, Failure> {
    let put_off = "UPDATE outbox SET send_after = $2 WHERE id IN
                       (SELECT id FROM outbox WHERE id = $1 AND send_after < $2 AND leased_until <= $3 AND priority < 2
                        FOR UPDATE SKIP LOCKED)";
    let changed = sql.execute(put_off, values![mail.0, until, now]).await?;
    Ok(if changed > 0 { Considered::Deferred } else { Considered::Left })
}

fn candidate(row: &Row<'_>) -> Result<Candidate, Failure> {
    let mail = DueMail {
        id: MailId(row.get("id")?),
        about: match row.get("sign_in_id")? {
            Some(sign_in) => MailAbout::SignIn(SignInId(sign_in)),
            None => MailAbout::SignUp(SignUpId(row.get("sign_up_id")?)),
        },
        kind: row.parsed("kind", MailKind::from_name)?,
        recipient: row.get("recipient")?,
        partner_id: row.get("partner_id")?,
        partner: row.get("partner")?,
        asked_at: row.get("asked_at")?,
        code: row.get("code")?,
        attempts: row.get("attempts")?,
        first_attempt_at: row.get("first_attempt_at")?,
        lane: Lane::from_number(row.get("lane")?),
        language: row.get::<Option<&str>>("language")?.and_then(Language::from_code),
        is_reminder: row.get::<i64>("priority")? == REMINDER,
    };
    Ok(Candidate {
        source: mail.source().to_owned(),
        mail,
        mailbox: row.get("mailbox")?,
        pass: row.get("priority")?,
        key_revoked: row.get("key_revoked")?,
        pointless: row.get("pointless")?,
    })
}

/// What is remembered of a mailbox, as [`mailbox_record`] reads it.
macro_rules! mailbox_columns {
    () => {
        concat!(
            "sent_1, sent_2, sent_3, sent_4, last_mail_id, ",
            source_name!("source_1"),
            " AS source_name_1, ",
            source_name!("source_2"),
            " AS source_name_2, ",
            source_name!("source_3"),
            " AS source_name_3, ",
            source_name!("source_4"),
            " AS source_name_4"
        )
    };
}
pub(super) use mailbox_columns;

pub(super) fn mailbox_record(row: &Row<'_>) -> Result<MailboxRecord, Failure> {
    let mut sent = Vec::with_capacity(MAX_MAILS_PER_DAY);
    for (time, source) in [
        ("sent_1", "source_name_1"),
        ("sent_2", "source_name_2"),
        ("sent_3", "source_name_3"),
        ("sent_4", "source_name_4"),
    ] {
        if let Some(time) = row.get::<Option<Timestamp>>(time)? {
            sent.push((time, row.get(source)?));
        }
    }
    Ok(MailboxRecord { sent, holder: row.get::<Option<i64>>("last_mail_id")?.map(MailId) })
}

/// What is remembered of a mailbox, held until the unit is over.
async fn hold_mailbox(sql: &mut impl Sql, mailbox: &str) -> Result<MailboxRecord, Failure> {
    sql.execute("INSERT INTO mailboxes (mailbox) VALUES ($1) ON CONFLICT DO NOTHING", values![mailbox]).await?;
    let hold = concat!("SELECT ", mailbox_columns!(), " FROM mailboxes WHERE mailbox = $1 FOR UPDATE");
    Ok(sql.row(hold, values![mailbox], mailbox_record).await?.unwrap_or_default())
}

fn places(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}
