//! Leases mail: fetches what is due, asks `domain/mail/policy.rs` about each, and writes the outcome.
//!
//! Two choices stay in SQL, so that a lease reads and locks few rows however many wait: the oldest of each lane, and that no
//! more are locked than can be taken.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::hold::hold;
use crate::domain::email::EmailAddress;
use crate::domain::language::Language;
use crate::domain::mail::budget::{MailBudget, Reputation};
use crate::domain::mail::lane::Lane;
use crate::domain::mail::policy::{
    HoldReason, MailFacts, MailboxCandidate, MailboxDecision, Priority, at_mailbox, mailbox_queue,
};
use crate::domain::mail::{DueMail, Leased, MAIL_LEASE, MAX_MAILS_PER_DAY, MailAbout, MailId, MailKind, MailboxRecord};
use crate::domain::partner::name::PartnerId;
use crate::domain::person::{PersonState, UnwantedMail};
use crate::domain::sign_in::{SignInId, SignInRef};
use crate::domain::sign_up::{SignUpId, SignUpRef, SignUpState};
use crate::domain::simulator::Simulated;
use crate::domain::time::Timestamp;
use crate::store::sources::{self, SourceEvent, source_name};
use crate::store::sql::{Failure, Row, Sql, Unit, values};

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
    facts: MailFacts,
}

/// How often a lease looks for more; each look settles what it finds, and the worker soon asks again. Few enough that even a
/// distant PostgreSQL has time for all of it.
const ROUNDS: usize = 8;

impl Unit for Lease {
    type Done = Leased;

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Leased, Failure> {
        let mut leased: Vec<DueMail> = Vec::new();
        let (mut sources, mut deferred) = (BTreeMap::new(), false);
        let places = self.most + self.busy.len();
        // Mails that may not go make way for others, so that nobody's flood holds up somebody else's mail.
        for round in 0..ROUNDS {
            let candidates = match round {
                0 => self.first_of_each_lane(sql).await?,
                // No more than can be taken: what is only looked at is kept from other nodes.
                _ => self.oldest(sql, self.most - leased.len()).await?,
            };
            let mut idle = round > 0;
            for candidate in candidates {
                let in_flight = leased.iter().map(|mail| mail.lane).chain(self.busy.iter().copied());
                if leased.len() < self.most && candidate.mail.lane.has_place(in_flight, places) {
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
            "SELECT o.id, o.sign_up_id, o.sign_in_id, o.kind, o.recipient, o.attempts, o.lane, o.priority, s.partner_id,
                    (SELECT named.name FROM partners named WHERE named.id = s.partner_id) AS partner,
                    coalesce(s.updated_at, i.created_at) AS asked_at,
                    coalesce(s.created_at, i.created_at) AS about_created_at, coalesce(o.first_attempt_at, $1) AS first_attempt_at,
                    EXISTS (SELECT 1 FROM api_keys k WHERE k.id = s.key_id AND k.revoked_at IS NOT NULL) AS key_revoked,
                    (SELECT named.suspended_at IS NOT NULL FROM partners named WHERE named.id = s.partner_id) AS partner_suspended,
                    (SELECT named.mails_a_day FROM partners named WHERE named.id = s.partner_id) AS fixed_quota,
                    s.state AS sign_up_state, p.state AS person_state, i.expires_at AS sign_in_expires_at,
                    i.used_at IS NOT NULL AS sign_in_used, p.code, p.mailbox, p.unwanted_mail, p.undeliverable_until,
                    EXISTS (SELECT 1 FROM stopped_partners x WHERE x.mailbox = p.mailbox AND s.id IS NOT NULL
                            AND coalesce(x.partner_id, 0) = coalesce(s.partner_id, 0)) AS source_stopped,
                    (SELECT m.suppressed_until FROM mailboxes m WHERE m.mailbox = p.mailbox) AS suppressed_until,
                    EXISTS (SELECT 1 FROM mailboxes m WHERE m.mailbox = p.mailbox AND m.complained_at IS NOT NULL) AS complained,
                    coalesce(p.language, CASE WHEN o.kind = 'confirm' THEN s.language END) AS language
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
    async fn first_of_each_lane(&self, sql: &mut dyn Sql) -> Result<Vec<Candidate>, Failure> {
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

    async fn oldest(&self, sql: &mut dyn Sql, most: usize) -> Result<Vec<Candidate>, Failure> {
        let oldest = due!(is_due!(), " ORDER BY o.send_after LIMIT $3");
        sql.rows(oldest, values![self.now, self.never(), places(most)], candidate).await
    }

    /// Leases a mail, defers it or drops it.
    async fn consider(
        &self,
        sql: &mut dyn Sql,
        sources: &mut BTreeMap<Option<PartnerId>, SourceToday>,
        candidate: Candidate,
    ) -> Result<Considered, Failure> {
        let Candidate { mut mail, mailbox, source, mut facts } = candidate;
        // Every partner of the sandbox has the same ones to try things out with: no one silences them for the others.
        if self.budget.is_none() && is_simulated(&mail.recipient) {
            facts.lift_silence();
        }
        if facts.is_pointless(self.now) {
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
                let reputation = sources::reputation_of(sql, mail.partner_id, self.now).await?;
                new.insert(SourceToday { name: source.clone(), reputation, mailed: 0, held: 0 })
            }
        };
        if let Some(reason) = facts.hold(&source, self.budget, &today.reputation) {
            today.held += u64::from(reason == HoldReason::OverBudget);
            return hold(sql, mail.id, reason == HoldReason::PartnerSuspended, self.now).await.map(considered);
        }
        // Another node decides about this mailbox now, and a flood to it may take it a while: nobody waits for that.
        if !sql.try_lock(&mailbox).await? {
            return Ok(Considered::Left);
        }
        let bypasses_caps = facts.priority >= Priority::Forced || self.budget.is_none();
        let record = hold_mailbox(sql, &mailbox).await?;
        let queue = if bypasses_caps { Vec::new() } else { self.waiting_for(sql, &mailbox, &record).await? };
        match at_mailbox((mail.id, &source), &record, &queue, bypasses_caps, self.now) {
            MailboxDecision::Defer { until, others } => {
                let considered = put_off(sql, mail.id, until, self.now).await?;
                for other in others {
                    put_off(sql, other, until, self.now).await?;
                }
                return Ok(considered);
            }
            MailboxDecision::Send { is_another: true } => {
                let note = "UPDATE mailboxes SET sent_1 = $2, sent_2 = sent_1, sent_3 = sent_2, sent_4 = sent_3,
                                source_1 = $4, source_2 = source_1, source_3 = source_2, source_4 = source_3, last_mail_id = $3
                            WHERE mailbox = $1";
                sql.execute(note, values![&mailbox, self.now, mail.id.0, mail.partner_id]).await?;
            }
            MailboxDecision::Send { is_another: false } => {}
        }
        self.take(sql, &mut mail).await?;
        if facts.attempts == 0 {
            today.mailed += 1;
            today.reputation.mailed_today += 1;
        }
        Ok(Considered::Leased(mail))
    }

    /// The mail is this worker's from now on.
    async fn take(&self, sql: &mut dyn Sql, mail: &mut DueMail) -> Result<(), Failure> {
        mail.attempts += 1;
        let lease = "UPDATE outbox SET attempts = $2, first_attempt_at = $3, leased_until = $4, leased_by = $5
                     WHERE id = $1";
        let until = self.now.plus(MAIL_LEASE);
        let values = values![mail.id.0, mail.attempts, mail.first_attempt_at, until, &self.worker];
        sql.execute(lease, values).await.map(|_| ())
    }

    /// The mails that wait for a mailbox, in order; drops those that are too many.
    ///
    /// Few rows, and each found by its key however PostgreSQL guesses: a plan that was made while the tables were empty joined
    /// them from the wrong end, and took 180 ms a mail where a thousand waited.
    async fn waiting_for(
        &self,
        sql: &mut dyn Sql,
        mailbox: &str,
        record: &MailboxRecord,
    ) -> Result<Vec<MailboxCandidate>, Failure> {
        let waiting = "
            WITH mine AS MATERIALIZED (
                SELECT id, 1 AS plain FROM people WHERE email_normalized = $1 AND mailbox = $1
                UNION ALL SELECT id, 0 FROM people WHERE mailbox = $1 AND mailbox <> email_normalized
            )
            SELECT (SELECT o.id FROM outbox o WHERE o.sign_up_id = s.id AND o.given_up_at IS NULL AND o.held_at IS NULL) AS mail,
                   coalesce((SELECT named.name FROM partners named WHERE named.id = s.partner_id), '') AS source,
                   m.plain = 1 AS to_plain_name, (SELECT o.created_at FROM outbox o WHERE o.sign_up_id = s.id) AS created_at,
                   (SELECT o.send_after <= $2 FROM outbox o WHERE o.sign_up_id = s.id) AS is_due
            FROM mine m JOIN sign_ups s ON s.person_id = m.id WHERE s.state = 'pending'";
        let read = |row: &Row<'_>| {
            let Some(mail) = row.get::<Option<i64>>("mail")? else { return Ok(None) };
            Ok(Some(MailboxCandidate {
                mail: MailId(mail),
                source: row.get("source")?,
                to_plain_name: row.get("to_plain_name")?,
                created_at: row.get("created_at")?,
                is_due: row.get("is_due")?,
            }))
        };
        let waiting = sql.rows(waiting, values![mailbox, self.now], read).await?;
        let (queue, too_many) = mailbox_queue(record, waiting.into_iter().flatten().collect());
        for dropped in too_many {
            // What another node is looking at is left to it: it may be waiting for this mailbox.
            let drop = "DELETE FROM outbox WHERE id IN
                            (SELECT id FROM outbox WHERE id = $1 AND leased_until <= $2 FOR UPDATE SKIP LOCKED)";
            sql.execute(drop, values![dropped.mail.0, self.now]).await?;
        }
        Ok(queue)
    }
}

/// Lets a mail wait; what another node is looking at is left to it.
async fn put_off(sql: &mut dyn Sql, mail: MailId, until: Timestamp, now: Timestamp) -> Result<Considered, Failure> {
    let put_off = "UPDATE outbox SET send_after = $2 WHERE id IN
                       (SELECT id FROM outbox WHERE id = $1 AND send_after < $2 AND leased_until <= $3 AND priority < 2
                        FOR UPDATE SKIP LOCKED)";
    Ok(considered(sql.execute(put_off, values![mail.0, until, now]).await? > 0))
}

fn considered(deferred: bool) -> Considered {
    if deferred { Considered::Deferred } else { Considered::Left }
}

/// Whether an address acts by itself in the sandbox.
fn is_simulated(recipient: &str) -> bool {
    EmailAddress::parse(recipient).is_ok_and(|email| Simulated::of(&email).is_some())
}

fn candidate(row: &Row<'_>) -> Result<Candidate, Failure> {
    let (kind, attempts) = (row.parsed("kind", MailKind::from_name)?, row.get("attempts")?);
    let priority = Priority::from_number(row.get("priority")?);
    let facts = MailFacts {
        kind,
        priority,
        attempts,
        key_revoked: row.get("key_revoked")?,
        partner_suspended: row.get("partner_suspended")?,
        fixed_quota: row.get("fixed_quota")?,
        sign_up: row.get::<Option<&str>>("sign_up_state")?.and_then(SignUpState::from_name),
        person: row.parsed("person_state", PersonState::from_name)?,
        sign_in_expires_at: row.get("sign_in_expires_at")?,
        sign_in_used: row.get("sign_in_used")?,
        unwanted: UnwantedMail::from_names(row.get("unwanted_mail")?),
        source_stopped: row.get("source_stopped")?,
        undeliverable_until: row.get("undeliverable_until")?,
        suppressed_until: row.get("suppressed_until")?,
        complained: row.get("complained")?,
    };
    let created_at = row.get("about_created_at")?;
    let mail = DueMail {
        id: MailId(row.get("id")?),
        about: match row.get("sign_in_id")? {
            Some(id) => MailAbout::SignIn(SignInRef { id: SignInId(id), created_at }),
            None => MailAbout::SignUp(SignUpRef { id: SignUpId(row.get("sign_up_id")?), created_at }),
        },
        kind,
        recipient: row.get("recipient")?,
        partner_id: row.get("partner_id")?,
        partner: row.get("partner")?,
        asked_at: row.get("asked_at")?,
        code: row.get("code")?,
        attempts,
        first_attempt_at: row.get("first_attempt_at")?,
        lane: Lane::from_number(row.get("lane")?),
        language: row.get::<Option<&str>>("language")?.and_then(Language::from_code),
        is_reminder: priority == Priority::Reminder,
    };
    let source = mail.source().to_owned();
    Ok(Candidate { mail, mailbox: row.get("mailbox")?, source, facts })
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
pub(in crate::store) use mailbox_columns;

pub(in crate::store) fn mailbox_record(row: &Row<'_>) -> Result<MailboxRecord, Failure> {
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
async fn hold_mailbox(sql: &mut dyn Sql, mailbox: &str) -> Result<MailboxRecord, Failure> {
    sql.execute("INSERT INTO mailboxes (mailbox) VALUES ($1) ON CONFLICT DO NOTHING", values![mailbox]).await?;
    let hold = concat!("SELECT ", mailbox_columns!(), " FROM mailboxes WHERE mailbox = $1 FOR UPDATE");
    Ok(sql.row(hold, values![mailbox], mailbox_record).await?.unwrap_or_default())
}

fn places(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}
