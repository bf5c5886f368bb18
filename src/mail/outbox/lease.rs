//! Leases mail: fetches what is due, asks `domain/mail/policy.rs` about each, and writes the outcome.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::domain::email::EmailAddress;
use crate::domain::mail::budget::{MailBudget, Reputation};
use crate::domain::mail::lane::Lane;
use crate::domain::mail::policy::{HoldReason, MailboxDecision, Priority, at_mailbox};
use crate::domain::mail::{DueMail, Leased, MAIL_LEASE, MailId, MailKind};
use crate::domain::partner::name::PartnerId;
use crate::domain::simulator::is_simulators;
use crate::domain::time::Timestamp;
use crate::mail::outbox::candidate::{Candidate, first_of_each_lane, oldest};
use crate::mail::outbox::hold::hold;
use crate::mail::outbox::mailbox::{hold_mailbox, waiting_for};
use crate::mail::sources;
use crate::mail::sources::SourceEvent;
use crate::store::sql::{Failure, How, Sql, Unit, values};

/// Leases due mail.
pub struct Lease {
    pub worker: String,
    pub most: usize,
    pub busy: Vec<Lane>,
    /// None in the sandbox: no source has a budget there, and the simulator's mailboxes have neither caps nor silence.
    pub budget: Option<MailBudget>,
    pub now: Timestamp,
}

/// How many times a lease looks for more. Each look settles what it finds, and the worker soon asks again. Few enough that even
/// a distant PostgreSQL has time for all of them.
const ROUNDS: usize = 8;

impl Unit for Lease {
    type Done = Leased;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Leased, Failure> {
        let mut leased: Vec<DueMail> = Vec::new();
        let (mut sources, mut deferred) = (BTreeMap::new(), false);
        let places = self.most + self.busy.len();
        // Mail that may not go makes room for other mail, so that one source's flood does not hold up another's mail.
        let mut by_lane = true;
        for _ in 0..ROUNDS {
            // Reads no more than it can take, because mail it only looks at is kept from other nodes.
            let (before, room) = (leased.len(), self.most - leased.len());
            let candidates = match by_lane {
                true => first_of_each_lane(sql, room, self.now).await?,
                false => oldest(sql, room, self.now).await?,
            };
            let mut idle = !by_lane;
            // As long as some lane has mail with a raised priority, each lane gets another turn.
            by_lane = false;
            // One statement holds all of a round's mail, so that a worker facing a flood soon gets to mail that may go.
            let (mut not_suspended, mut suspended) = (Vec::new(), Vec::new());
            for candidate in candidates {
                let in_flight = leased.iter().map(|mail| mail.lane).chain(self.busy.iter().copied());
                if leased.len() < self.most && candidate.mail.lane.has_place(in_flight, places) {
                    let (id, is_decided) = (candidate.mail.id, candidate.facts.priority >= Priority::Released);
                    match self.consider(sql, &mut sources, candidate).await? {
                        Considered::Leased(mail) => {
                            leased.push(mail);
                            by_lane |= is_decided;
                        }
                        Considered::Hold(HoldReason::PartnerSuspended) => suspended.push(id),
                        Considered::Hold(_) => not_suspended.push(id),
                        Considered::Deferred => deferred = true,
                        Considered::Left => {}
                    }
                    idle = false;
                }
            }
            deferred |= hold(sql, &not_suspended, false, self.now).await?;
            deferred |= hold(sql, &suspended, true, self.now).await?;
            // Mail that may go does not wait while more is held: the worker sends it first, and soon asks again.
            let only_settled = leased.len() == before && !leased.is_empty();
            if idle || only_settled || leased.len() >= self.most {
                break;
            }
        }
        let mut held = BTreeMap::new();
        // Always in id order, so that two nodes never wait for each other.
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

/// What the lease decided about a mail.
enum Considered {
    Leased(DueMail),
    /// To be held.
    Hold(HoldReason),
    /// Dropped or put off.
    Deferred,
    /// Left to another node, which is deciding about it.
    Left,
}

/// A source's reputation, and what this lease adds to it. Nodes that lease at the same time may together exceed a budget, at
/// most by what they lease at that time.
struct SourceToday {
    name: String,
    reputation: Reputation,
    mailed: u32,
    held: u64,
}

impl Lease {
    /// Leases a mail, defers it or drops it.
    async fn consider(
        &self,
        sql: &mut dyn Sql,
        sources: &mut BTreeMap<Option<PartnerId>, SourceToday>,
        candidate: Candidate,
    ) -> Result<Considered, Failure> {
        let Candidate { mut mail, mailbox, source, mut facts } = candidate;
        // Simulator addresses are for trying things out, as often as a test needs.
        let is_simulated = self.budget.is_none() && is_simulated(&mail.recipient);
        if is_simulated {
            facts.make_free();
        }
        if facts.is_pointless(self.now) {
            sql.execute("DELETE FROM outbox WHERE id = $1", values![mail.id.0]).await?;
            return Ok(Considered::Deferred);
        }
        // It was counted when it was requested, and no source is judged by it.
        if mail.kind == MailKind::SignIn {
            take(sql, &mut mail, &self.worker, self.now).await?;
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
            return Ok(Considered::Hold(reason));
        }
        // Another node is deciding about this mailbox, and a flood to it can take that node a while, so this lease does not wait.
        if !sql.try_lock(&mailbox).await? {
            return Ok(Considered::Left);
        }
        let bypasses_caps = facts.priority >= Priority::Forced || is_simulated;
        let record = hold_mailbox(sql, &mailbox).await?;
        let queue = if bypasses_caps { Vec::new() } else { waiting_for(sql, &mailbox, &record, self.now).await? };
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
        take(sql, &mut mail, &self.worker, self.now).await?;
        if facts.attempts == 0 {
            today.mailed += 1;
            today.reputation.mailed_today += 1;
        }
        Ok(Considered::Leased(mail))
    }
}

/// Leases the mail to this worker.
pub(crate) async fn take(sql: &mut dyn Sql, mail: &mut DueMail, worker: &str, now: Timestamp) -> Result<(), Failure> {
    mail.attempts += 1;
    let lease =
        "UPDATE outbox SET attempts = $2, first_attempt_at = $3, leased_until = $4, leased_by = $5 WHERE id = $1";
    let values = values![mail.id.0, mail.attempts, mail.first_attempt_at, now.plus(MAIL_LEASE), worker];
    sql.execute(lease, values).await.map(|_| ())
}

/// Defers a mail, unless another node is working on it.
async fn put_off(sql: &mut dyn Sql, mail: MailId, until: Timestamp, now: Timestamp) -> Result<Considered, Failure> {
    let put_off = "UPDATE outbox SET send_after = $2 WHERE id IN
                       (SELECT id FROM outbox WHERE id = $1 AND send_after < $2 AND leased_until <= $3 AND priority < 2
                        FOR UPDATE SKIP LOCKED)";
    let is_put_off = sql.execute(put_off, values![mail.0, until, now]).await? > 0;
    Ok(if is_put_off { Considered::Deferred } else { Considered::Left })
}

fn is_simulated(recipient: &str) -> bool {
    EmailAddress::parse(recipient).is_ok_and(|email| is_simulators(&email))
}
