//! Retention: the data of people who never joined, or left, is deleted in time, in small steps.
//!
//! Records with an expiry time of their own are found by an index. People to forget are found by walking over all people, some
//! hundred per step: an index would cost every sign-up, and a walk over two million takes an hour or two and disturbs nothing.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use crate::domain::email::EmailAddress;
use crate::domain::partner::name::PartnerId;
use crate::domain::person::RetentionTimes;
use crate::domain::secret::mark::AddressMarks;
use crate::domain::sign_in::REMEMBERED_FOR;
use crate::domain::time::{DAY, Timestamp};
use crate::mail::sources;
use crate::mail::sources::SourceEvent;
use crate::membership::sign_up::each_answer;
use crate::partners::idempotency;
use crate::people::leave::anonymize;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Small enough not to delay sign-ups that share the commit or wait for one of the rows.
const PURGE_BATCH: u32 = 200;

/// How many people, or mailboxes, a step of a walk looks at.
const LOOKED_AT: u32 = 500;

/// How long a mailbox is remembered after its last mail; longer than any cap counts back, and than a silence lasts.
pub const MAILBOXES_KEPT_FOR: Duration = DAY.saturating_mul(30);

/// Whether person `p` should be forgotten: they never confirmed and nothing was heard from them since `$2`, or they left before
/// `$3`; and neither a sign-up nor a reward is pending for them. An offset keeps PostgreSQL from reading the whole table once for
/// all people (a hashed subplan) instead of looking for each.
macro_rules! is_forgettable {
    () => {
        "p.erased_at IS NULL
         AND ((p.state = 'invited' AND p.created_at < $2
               AND NOT EXISTS (SELECT 1 FROM sign_ups s WHERE s.person_id = p.id AND s.updated_at >= $2 LIMIT 1 OFFSET 0))
              OR (p.state = 'left' AND coalesce(p.left_at, p.joined_at, 0) < $3))
         AND NOT EXISTS (SELECT 1 FROM sign_ups s WHERE s.person_id = p.id AND s.state = 'pending' LIMIT 1 OFFSET 0)
         AND coalesce((SELECT sum(l.amount_cents) FROM reward_ledger l WHERE l.account = p.account), 0) <= 0
         AND NOT EXISTS (SELECT 1 FROM payouts o WHERE o.account = p.account AND o.state = 'out' LIMIT 1 OFFSET 0)"
    };
}

/// Whether sign-up `s` came to nothing before `$3` and is in the figures.
macro_rules! is_spent {
    () => {
        "s.state IN ('expired', 'declined') AND s.updated_at < $3 AND s.id <= (SELECT sign_up_id FROM rollup WHERE id = 1)
         AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.sign_up_id = s.id)"
    };
}

/// Looks at the next people after an id.
pub struct ListPeopleToForget {
    pub after: i64,
    pub times: RetentionTimes,
    pub now: Timestamp,
}

impl Unit for ListPeopleToForget {
    type Done = PeopleLookedAt;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<PeopleLookedAt, Failure> {
        let Self { after, times, now } = self;
        let look = concat!(
            "SELECT p.id, p.mailbox, CASE WHEN ",
            is_forgettable!(),
            " THEN p.email ELSE '' END AS email
             FROM people p WHERE p.id > $1 ORDER BY p.id LIMIT $4"
        );
        let (unconfirmed, left) = (now.minus(times.unconfirmed), now.minus(times.left));
        let person = |row: &Row<'_>| {
            let email = EmailAddress::kept(row.get("email")?).ok();
            let mailbox: &str = row.get("mailbox")?;
            Ok((row.get::<i64>("id")?, email.map(|email| email.with_scope_of(mailbox))))
        };
        let people = sql.rows(look, values![*after, unconfirmed, left, LOOKED_AT], person).await?;
        let Some((last, _)) = people.last() else { return Ok(PeopleLookedAt::default()) };
        let spent = concat!(
            "SELECT EXISTS (SELECT 1 FROM sign_ups s WHERE s.person_id > $1 AND s.person_id <= $2 AND ",
            is_spent!(),
            ")"
        );
        let has_spent = sql.value(spent, values![*after, *last, unconfirmed]).await?;
        let last = Some(*last);
        let named = people.into_iter().filter_map(|(id, email)| Some((id, email?)));
        Ok(PeopleLookedAt { last, forgettable: named.collect(), has_spent: has_spent.unwrap_or(false) })
    }
}

/// Deletes the sign-ups of people between two ids that came to nothing long ago; returns how many.
pub struct ForgetSignUps {
    pub after: i64,
    pub to: i64,
    pub times: RetentionTimes,
    pub now: Timestamp,
}

impl Unit for ForgetSignUps {
    type Done = u64;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        let forget = concat!(
            "DELETE FROM sign_ups WHERE id IN
                 (SELECT s.id FROM sign_ups s WHERE s.person_id > $1 AND s.person_id <= $2 AND ",
            is_spent!(),
            " ORDER BY s.id LIMIT $4 FOR UPDATE SKIP LOCKED)
             RETURNING CASE WHEN state = 'declined' THEN key_id END"
        );
        let values = values![self.after, self.to, self.now.minus(self.times.unconfirmed), PURGE_BATCH];
        let declined: Vec<Option<String>> = sql.rows(forget, values, |row| row.get(0)).await?;
        let mut keys = BTreeMap::<_, i64>::new();
        declined.iter().flatten().for_each(|key| *keys.entry(key).or_default() += 1);
        for (key, times) in keys {
            let add = "UPDATE api_keys SET declined = declined + $2 WHERE id = $1";
            sql.execute(add, values![key, times]).await?;
        }
        Ok(declined.len() as u64)
    }
}

/// Deletes unneeded records of the next mailboxes after a name. Returns the last one it looked at, none at the end.
pub struct ForgetMailboxes {
    pub after: String,
    pub times: RetentionTimes,
    pub now: Timestamp,
}

impl Unit for ForgetMailboxes {
    type Done = Option<String>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Option<String>, Failure> {
        let next =
            "SELECT max(mailbox) FROM (SELECT mailbox FROM mailboxes WHERE mailbox > $1 ORDER BY mailbox LIMIT $2) m";
        let last: Option<Option<String>> = sql.value(next, values![&self.after, LOOKED_AT]).await?;
        let Some(last) = last.flatten() else { return Ok(None) };
        let forget = "
            DELETE FROM mailboxes WHERE mailbox IN
                (SELECT mailbox FROM mailboxes WHERE mailbox > $1 AND mailbox <= $2
                 AND coalesce(sent_1 < $3, TRUE) AND coalesce(suppressed_until < $4, TRUE) AND coalesce(complained_at < $5, TRUE)
                 ORDER BY mailbox FOR UPDATE SKIP LOCKED)";
        let (unused, complained) = (self.now.minus(MAILBOXES_KEPT_FOR), self.now.minus(self.times.complaints));
        sql.execute(forget, values![&self.after, &last, unused, self.now, complained]).await?;
        Ok(Some(last))
    }
}

/// What one round of retention did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retained {
    pub expired: u64,
    /// Sign-ups whose answers were deleted.
    pub purged: u64,
    /// Sign-in requests that were deleted.
    pub sign_ins: u64,
    /// Requests with an idempotency key that were deleted.
    pub named: u64,
}

impl Retained {
    pub fn is_nothing(&self) -> bool {
        self.expired + self.purged + self.sign_ins + self.named == 0
    }
}

/// Some people, in the order of their ids.
#[derive(Default)]
pub struct PeopleLookedAt {
    /// The last of them; none if there are no more.
    pub last: Option<i64>,
    pub forgettable: Vec<(i64, EmailAddress)>,
    /// Whether some of their sign-ups came to nothing long ago.
    pub has_spent: bool,
}

/// Expires sign-ups and deletes the answers of those that came to nothing, in small steps; returns how many. Every node does
/// this, and each takes rows that no other node holds.
pub struct Retain {
    pub times: RetentionTimes,
    pub now: Timestamp,
}

static PURGE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE sign_ups SET {}, purged_at = $1 WHERE id IN
             (SELECT id FROM sign_ups
              WHERE state IN ('expired', 'declined') AND purged_at IS NULL AND updated_at <= $2
              ORDER BY updated_at LIMIT $3 FOR UPDATE SKIP LOCKED)",
        each_answer("{} = NULL")
    )
});

impl Unit for Retain {
    type Done = Retained;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Retained, Failure> {
        let now = self.now;
        // Mail for a sign-up past its time is pointless, no matter which node expires the sign-up.
        let forget = "
            DELETE FROM outbox WHERE sign_up_id IN
                (SELECT id FROM sign_ups WHERE state = 'pending' AND expires_at <= $1
                 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
        sql.execute(forget, values![now, PURGE_BATCH]).await?;
        let expire = "
            UPDATE sign_ups SET state = 'expired', decided_at = $1 WHERE id IN
                (SELECT id FROM sign_ups WHERE state = 'pending' AND expires_at <= $1
                 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING partner_id";
        let lapsed: Vec<Option<PartnerId>> = sql.rows(expire, values![now, PURGE_BATCH], |row| row.get(0)).await?;
        let expired = lapsed.len() as u64;
        let purged = sql.execute(&PURGE, values![now, now.minus(self.times.answers), PURGE_BATCH]).await?;
        let forget = "DELETE FROM used_once WHERE name IN
                          (SELECT name FROM used_once WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2
                           FOR UPDATE SKIP LOCKED)";
        sql.execute(forget, values![now, PURGE_BATCH]).await?;
        let forget = "DELETE FROM stopped_partners WHERE id IN
                          (SELECT id FROM stopped_partners WHERE stopped_at <= $1 ORDER BY stopped_at LIMIT $2
                           FOR UPDATE SKIP LOCKED)";
        sql.execute(forget, values![now.minus(self.times.complaints), PURGE_BATCH]).await?;
        let sign_ins = forget_sign_ins(sql, now).await?;
        let named = idempotency::retain(sql, now).await?;
        // Last, and in the order of their ids, because others wait for these rows.
        let mut sources = BTreeMap::new();
        lapsed.into_iter().for_each(|source| *sources.entry(source).or_insert(0) += 1);
        for (source, times) in sources {
            sources::count(sql, source, SourceEvent::Lapsed(times), now).await?;
        }
        Ok(Retained { expired, purged, sign_ins, named })
    }
}

/// Deletes members' requests a day after they end, because the caps count them, and requests without a person as soon as they
/// end.
async fn forget_sign_ins(sql: &mut dyn Sql, now: Timestamp) -> Result<u64, Failure> {
    let mail = "DELETE FROM outbox WHERE sign_in_id IN
                    (SELECT id FROM sign_ins WHERE person_id IS NOT NULL AND expires_at <= $1
                     ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    let members = "DELETE FROM sign_ins WHERE id IN
                       (SELECT id FROM sign_ins WHERE person_id IS NOT NULL AND expires_at <= $1
                        ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    let nobodys = "DELETE FROM sign_ins WHERE id IN
                       (SELECT id FROM sign_ins WHERE person_id IS NULL AND expires_at <= $1
                        ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    let day_ago = now.minus(REMEMBERED_FOR);
    sql.execute(mail, values![day_ago, PURGE_BATCH]).await?;
    let members = sql.execute(members, values![day_ago, PURGE_BATCH]).await?;
    Ok(members + sql.execute(nobodys, values![now, PURGE_BATCH]).await?)
}

/// Replaces these people with tombstones, unless something has happened to them since.
pub struct ForgetPeople {
    pub people: Vec<(i64, AddressMarks)>,
    pub times: RetentionTimes,
    pub now: Timestamp,
}

/// What happened to the people to forget.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ForgottenPeople {
    pub forgotten: u64,
    /// People with so many records that they need another step.
    pub unfinished: u64,
}

impl Unit for ForgetPeople {
    type Done = ForgottenPeople;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<ForgottenPeople, Failure> {
        let mut done = ForgottenPeople::default();
        let (unconfirmed, left) = (self.now.minus(self.times.unconfirmed), self.now.minus(self.times.left));
        for (id, marks) in &self.people {
            let mailbox = "SELECT mailbox FROM people WHERE id = $1";
            let Some(mailbox) = sql.value::<String>(mailbox, values![*id]).await? else { continue };
            // Another unit is deciding about the mailbox, and so about the person; a later walk tries again.
            if !sql.try_lock(&mailbox).await? {
                continue;
            }
            // Locked first, so that the next query sees what others have booked for them until then.
            sql.row("SELECT 1 FROM people WHERE id = $1 FOR UPDATE", values![*id], |_| Ok(())).await?;
            let still = concat!("SELECT 1 FROM people p WHERE p.id = $1 AND ", is_forgettable!(), " FOR UPDATE");
            if sql.exists(still, values![*id, unconfirmed, left]).await? {
                match anonymize(sql, *id, &mailbox, marks, true, self.now).await?.is_whole {
                    true => done.forgotten += 1,
                    false => done.unfinished += 1,
                }
            }
        }
        Ok(done)
    }
}
