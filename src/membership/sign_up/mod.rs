//! One sign-up with its person, its attribution and its mail, step by step.
//!
//! The hot path of the service. SQLite runs this unit as it is, many per commit. On PostgreSQL one statement for a whole batch
//! does what nearly every sign-up needs (`batch.rs`), and this unit handles those that it leaves undone.

pub mod batch;

use std::sync::LazyLock;

use crate::domain::answers::Answers;
use crate::domain::email::scope::SandboxScope;
use crate::domain::language::Language;
use crate::domain::mail::MailKind;
use crate::domain::partner::name::PartnerId;
use crate::domain::referral::ReferralCode;
use crate::domain::sign_up::{
    CONSENT_VERSION, NamedPerson, NewSignUp, PENDING_FOR, POSTS_PENDING, Refused, SignUpId, SignedUp,
};
use crate::domain::simulator::{closes_after, is_free};
use crate::domain::time::Timestamp;
use crate::mail::sources::SourceEvent;
use crate::mail::{outbox, sources};
use crate::membership::count;
use crate::partners::idempotency;
use crate::partners::idempotency::{Asked, FirstAnswer};
use crate::store::sql::{Failure, How, Row, Sql, Unit, Value, expected, values};

/// The columns of a sign-up other than its answers, in the order in which both statements write them.
pub(crate) const COLUMNS: &str =
    "person_id, key_id, partner_id, state, referrer_id, consent_version, created_at, updated_at,
                                  expires_at, slot, disposable, channel, client, notice, language";

pub(crate) static ANSWERS: LazyLock<String> = LazyLock::new(|| Answers::NAMES.join(", "));

/// Repeats a piece of SQL for each answer, with the column name in place of `{}`.
pub(crate) fn each_answer(sql: &str) -> String {
    let pieces: Vec<_> = Answers::NAMES.iter().map(|name| sql.replace("{}", name)).collect();
    pieces.join(", ")
}

/// An answer of sign-up `s`. If a person who left comes back without one, their stored answer. For [`each_answer`].
pub(crate) const ANSWER_OR_KEPT: &str = "coalesce(nullif(s.{}, ''),
    (SELECT CASE WHEN back.answered_at >= back.joined_at THEN back.own_{} ELSE old.{} END
     FROM people back LEFT JOIN sign_ups old ON old.id =
         (SELECT max(id) FROM sign_ups WHERE person_id = back.id AND state = 'confirmed' AND decided_at = back.joined_at)
     WHERE back.id = s.person_id AND back.state = 'left'), s.{})";

/// Merges a partner's pending sign-up that is sent again: sent values replace, omitted ones stay, and only another attribution
/// replaces an attribution. A form post never changes another one.
pub(crate) static MERGE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "ON CONFLICT (person_id, coalesce(partner_id, 0), slot) WHERE state = 'pending' DO UPDATE
         SET key_id = excluded.key_id, {answers},
             referrer_id = coalesce(excluded.referrer_id, sign_ups.referrer_id),
             consent_version = excluded.consent_version, updated_at = excluded.updated_at,
             expires_at = excluded.expires_at, disposable = excluded.disposable, channel = excluded.channel,
             client = excluded.client, notice = excluded.notice,
             language = coalesce(excluded.language, sign_ups.language)
         WHERE sign_ups.slot = 0",
        answers = each_answer("{} = coalesce(excluded.{}, sign_ups.{})"),
    )
});

/// Whether an erased member had this mailbox, found by its tombstone.
macro_rules! was_member_there {
    ($tombstone:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM people gone WHERE gone.mailbox = ",
            $tombstone,
            " AND gone.mailbox <> gone.email_normalized AND gone.state IN ('member', 'left'))"
        )
    };
}
pub(crate) use was_member_there;

/// An existing silence ends no sooner, and a lifted one (0) stays lifted.
macro_rules! no_sooner {
    () => {
        "ON CONFLICT (mailbox) DO UPDATE SET suppressed_until = excluded.suppressed_until
         WHERE coalesce(mailboxes.suppressed_until < excluded.suppressed_until AND mailboxes.suppressed_until <> 0, TRUE)"
    };
}
pub(crate) use no_sooner;

pub(crate) fn answers(row: &Row<'_>) -> Result<Answers, Failure> {
    Answers::from_texts(|name| row.get(name))
}

/// How many values a sign-up is written with: those of [`COLUMNS`], then its answers.
const VALUES: usize = 13 + Answers::NAMES.len();

static INSERT: LazyLock<String> = LazyLock::new(|| {
    let answers: Vec<_> = (14..=VALUES).map(|number| format!("${number}")).collect();
    format!(
        "INSERT INTO sign_ups ({COLUMNS}, {}) VALUES ($1, $2, $3, 'pending', $4, $5, $6, $6, $7, $8, $9, $10, $11, $12, $13, {})",
        *ANSWERS,
        answers.join(", ")
    )
});
// A person who was just added cannot have a sign-up yet.
static ADD: LazyLock<String> = LazyLock::new(|| format!("{} RETURNING id", *INSERT));
static ADD_OR_MERGE: LazyLock<String> = LazyLock::new(|| format!("{} {} RETURNING id", *INSERT, *MERGE));

/// Writes the sign-up, its person if new, its attribution and its mail. If the same partner sends it again before the person has
/// decided, the two merge: sent values replace, omitted ones stay.
pub struct SignUp {
    pub new: NewSignUp,
    pub now: Timestamp,
}

impl Unit for SignUp {
    type Done = Result<SignedUp, Refused>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let installation = "SELECT signups_paused, member_count FROM installation WHERE id = 1";
        let installation =
            sql.row(installation, values![], |row| Ok((row.get("signups_paused")?, row.get("member_count")?))).await?;
        let (paused, mut joined_count) = expected(installation)?;
        let (email, now) = (&self.new.person.email, self.now);
        if let Some(SandboxScope(partner)) = email.scope() {
            joined_count = count::members(sql, partner).await?;
        }
        let named = self.new.request.as_ref().zip(self.partner());
        if let Some((request, partner)) = named
            && let Some(first) = idempotency::find(sql, partner, Asked::SignUp, request).await?
        {
            return Ok(first);
        }
        if paused {
            return Ok(Err(Refused::Paused));
        }
        let Some(person) = find_or_add(sql, &self.new.person, self.now).await? else {
            return Ok(Err(Refused::CodeTaken));
        };
        match named.filter(|_| !person.is_new) {
            Some((_, partner)) if is_free(email) => {
                idempotency::limit_keys_of_pending(sql, partner, person.id, now).await?;
            }
            Some((_, partner)) if idempotency::has_too_many(sql, partner, person.id, now).await? => {
                return Ok(Err(Refused::TooManyKeys));
            }
            _ => {}
        }
        // For known people too, so that a new person does not cost more.
        keep_silent(sql, &person.mailbox, &self.new.person, self.now).await?;
        let referrer = match &self.new.ref_code {
            Some(code) => {
                // An erased person with the same mailbox does not count as another person either.
                let other = "SELECT id, mailbox FROM people WHERE code = $1 AND mailbox <> $2 AND mailbox <> $3";
                let tombstone = self.new.person.tombstone.as_str();
                let theirs =
                    |row: &Row<'_>| Ok((row.get::<i64>("id")?, SandboxScope::of_compared(row.get::<&str>("mailbox")?)));
                let found = sql.row(other, values![code, &person.mailbox, tombstone], theirs).await?;
                // People in another partner's sandbox are unknown in this one.
                found.filter(|(_, scope)| *scope == email.scope()).map(|(id, _)| id)
            }
            None => None,
        };
        let sign_up = self.write(sql, &person, referrer).await?;
        // The simulator's addresses confirm every time they are asked.
        let kind = if person.is_member && !is_free(email) { MailKind::AlreadyMember } else { MailKind::Confirm };
        if !person.is_new {
            outbox::replace(sql, sign_up, self.now).await?;
        }
        let (typed, way) = (self.new.person.email.as_typed(), (self.new.lane, self.new.proven));
        outbox::put(sql, sign_up, kind, typed, way, self.now).await?;
        let given = SignedUp { code: person.code, joined_count, attributed: referrer.is_some(), replayed: None };
        if let Some((request, partner)) = named {
            let (sign_up, closes_at) = (Some(sign_up), Some(now.plus(closes_after(email))));
            let first = FirstAnswer { partner, request, person: person.id, sign_up, closes_at, given: &given };
            idempotency::keep(sql, first, self.now).await?;
        }
        Ok(Ok(given))
    }
}

impl SignUp {
    fn partner(&self) -> Option<PartnerId> {
        self.new.partner.as_ref().map(|partner| partner.id)
    }

    /// Merges into this partner's pending sign-up, or adds one; a form post always adds one.
    async fn write(&self, sql: &mut dyn Sql, person: &Person, referrer: Option<i64>) -> Result<i64, Failure> {
        let Self { new, now } = self;
        let partner = self.partner();
        if !person.is_new {
            let expire = "UPDATE sign_ups SET state = 'expired', decided_at = $3
                          WHERE person_id = $1 AND coalesce(partner_id, 0) = coalesce(CAST($2 AS BIGINT), 0)
                            AND state = 'pending' AND expires_at <= $3";
            let lapsed = sql.execute(expire, values![person.id, partner, *now]).await?;
            if lapsed > 0 {
                sources::count(sql, partner, SourceEvent::Lapsed(lapsed as u32), *now).await?;
                let forget = "DELETE FROM outbox WHERE sign_up_id IN
                                  (SELECT id FROM sign_ups WHERE person_id = $1 AND state = 'expired' AND decided_at = $2)";
                sql.execute(forget, values![person.id, *now]).await?;
            }
        }
        let slot = match (&new.partner, person.is_new) {
            (Some(_), _) => 0,
            (None, true) => 1,
            (None, false) => free_slot(sql, person.id, *now).await?,
        };
        let answers = new.answers.texts();
        let mut written = [Value::Null; VALUES];
        let (first, rest) = written.split_at_mut(13);
        first.copy_from_slice(values![
            person.id,
            new.partner.as_ref().map(|partner| partner.key.as_str()),
            partner,
            referrer,
            CONSENT_VERSION,
            *now,
            now.plus(PENDING_FOR),
            slot,
            new.disposable,
            new.evidence.channel.name(),
            new.evidence.client.as_ref().map(|client| client.as_str()),
            &*new.evidence.notice,
            new.language.map(Language::code),
        ]);
        for (value, answer) in rest.iter_mut().zip(&answers) {
            *value = answer.as_deref().into();
        }
        let id: Option<i64> = match person.is_new {
            true => sql.insert(&ADD, &written).await?,
            false => sql.row(&ADD_OR_MERGE, &written, |row| row.get(0)).await?,
        };
        // None if another node just took the slot.
        id.ok_or(Failure::Overtaken)
    }
}

/// The slot for a form post. If all are taken, the oldest post whose mail has not been sent gives up its slot, so that people who
/// have a link keep it. If there is none, the oldest post does.
async fn free_slot(sql: &mut dyn Sql, person: i64, now: Timestamp) -> Result<i64, Failure> {
    let taken =
        "SELECT s.id, s.slot, EXISTS (SELECT 1 FROM outbox o WHERE o.sign_up_id = s.id AND o.attempts = 0) AS waits
                 FROM sign_ups s WHERE s.person_id = $1 AND s.partner_id IS NULL AND s.state = 'pending'
                 ORDER BY waits DESC, s.id";
    let post = |row: &Row<'_>| Ok((row.get::<i64>("id")?, row.get::<i64>("slot")?));
    let taken = sql.rows(taken, values![person], post).await?;
    if let Some(free) = (1..=POSTS_PENDING as i64).find(|slot| taken.iter().all(|(_, by)| by != slot)) {
        return Ok(free);
    }
    let Some((id, slot)) = taken.into_iter().next() else { return Err(Failure::Overtaken) };
    outbox::forget(sql, SignUpId(id)).await?;
    // A post that was never mailed concerned only its sender: a stranger's thousand posts leave nothing behind.
    let unheard = "DELETE FROM sign_ups WHERE id = $1 AND state = 'pending' AND mailed_at IS NULL";
    if sql.execute(unheard, values![id]).await? == 0 {
        let give_way = "UPDATE sign_ups SET state = 'expired', decided_at = $2 WHERE id = $1 AND state = 'pending'";
        sql.execute(give_way, values![id, now]).await?;
    }
    Ok(slot)
}

struct Person {
    id: i64,
    code: ReferralCode,
    mailbox: String,
    is_member: bool,
    /// Just added, so there cannot be any records of theirs yet.
    is_new: bool,
}

/// The person with that address. A new person gets the offered code; none if another person has it.
async fn find_or_add(sql: &mut dyn Sql, named: &NamedPerson, now: Timestamp) -> Result<Option<Person>, Failure> {
    let (email_normalized, mailbox) = (named.email.normalized(), named.email.mailbox());
    let find = "SELECT id, code, mailbox, state = 'member' AS is_member FROM people WHERE email_normalized = $1";
    let known = |row: &Row<'_>| {
        Ok(Person {
            id: row.get("id")?,
            code: row.get("code")?,
            mailbox: row.get("mailbox")?,
            is_member: row.get("is_member")?,
            is_new: false,
        })
    };
    if let Some(person) = sql.row(find, values![&email_normalized], known).await? {
        return Ok(Some(person));
    }
    let add = concat!(
        "INSERT INTO people (email, email_normalized, mailbox, code, state, created_at, uncredited)
         VALUES ($1, $2, $3, $4, 'invited', $5, ",
        was_member_there!("$6"),
        ") ON CONFLICT DO NOTHING RETURNING id"
    );
    let person =
        values![named.email.as_typed(), &email_normalized, &mailbox, &named.code, now, named.tombstone.as_str()];
    match sql.insert(add, person).await? {
        Some(id) => Ok(Some(Person { id, code: named.code, mailbox, is_member: false, is_new: true })),
        None => code_taken(sql, &named.code, &email_normalized).await.map(|_| None),
    }
}

/// A person with this mailbox was erased earlier and was promised that no mail goes there, under any spelling.
async fn keep_silent(sql: &mut dyn Sql, mailbox: &str, named: &NamedPerson, now: Timestamp) -> Result<(), Failure> {
    let keep = concat!(
        "INSERT INTO mailboxes (mailbox, suppressed_until)
         SELECT $1, gone.suppressed_until FROM mailboxes gone WHERE gone.mailbox = $2 AND gone.suppressed_until > $3 ",
        no_sooner!()
    );
    sql.execute(keep, values![mailbox, named.tombstone.as_str(), now]).await.map(|_| ())
}

/// Says why a person was not added: another person has the code, or another node just added the same person.
pub(crate) async fn code_taken(
    sql: &mut dyn Sql,
    code: &ReferralCode,
    email_normalized: &str,
) -> Result<Refused, Failure> {
    let others = "SELECT 1 FROM people WHERE code = $1 AND email_normalized <> $2";
    let taken = sql.row(others, values![code, email_normalized], |_| Ok(())).await?.is_some();
    if taken { Ok(Refused::CodeTaken) } else { Err(Failure::Overtaken) }
}
