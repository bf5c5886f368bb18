//! Sign-ups and what becomes of them, as SQL.

use rusqlite::{Connection, OptionalExtension, params};

use super::people::{Person, code, find_or_add, find_referrer, refuse_if_paused};
use super::writer::Unit;
use super::{Failure, mail, parsed};
use crate::domain::category::CategorySet;
use crate::domain::email::EmailAddress;
use crate::domain::mail::MailKind;
use crate::domain::signup::{
    ANSWERS_KEPT_FOR, CONSENT_VERSION, Confirmation, Declining, NewSignUp, PENDING_FOR, SUPPRESSED_FOR, SignUpId,
    SignUpRecord, SignUpState, SignedUp,
};
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;
use crate::store::Tidied;

pub(super) fn find(connection: &Connection, id: SignUpId, now: Timestamp) -> Result<Option<SignUpRecord>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT CASE WHEN s.state = 'pending' AND expires_at <= ?2 THEN 'expired' ELSE s.state END, email, code,
                nullif(partner, ''), us_state, categories, coalesce(comments, '') <> '', updated_at
         FROM sign_ups s JOIN people p ON p.id = person_id WHERE s.id = ?1",
    )?;
    let record = statement.query_row([id.0, now.as_millis()], |row| {
        Ok(SignUpRecord {
            state: parsed(row, 0, SignUpState::from_name)?,
            email: parsed(row, 1, |text| EmailAddress::parse(text).ok())?,
            code: code(row, 2)?,
            partner: row.get(3)?,
            us_state: row.get::<_, Option<String>>(4)?.and_then(|code| UsState::from_code(&code)),
            categories: CategorySet::from_slugs(row.get_ref(5)?.as_str()?),
            has_comments: row.get(6)?,
            updated_at: Timestamp::from_millis(row.get(7)?),
        })
    });
    Ok(record.optional()?)
}

pub(super) struct SignUp {
    pub new: NewSignUp,
    pub now: Timestamp,
}

impl Unit for SignUp {
    type Done = SignedUp;

    fn apply(&self, connection: &Connection) -> Result<SignedUp, Failure> {
        let joined_count = refuse_if_paused(connection)?;
        let person = find_or_add(connection, &self.new.person, self.now)?;
        let referrer = match self.new.ref_code {
            Some(code) => find_referrer(connection, code, &person.mailbox)?,
            None => None,
        };
        let sign_up = self.write(connection, &person, referrer)?;
        let kind = if person.is_member { MailKind::AlreadyMember } else { MailKind::Confirm };
        if !person.is_new {
            mail::make_way(connection, sign_up, self.now)?;
        }
        mail::put(connection, sign_up, kind, self.new.person.email.as_typed(), self.now)?;
        Ok(SignedUp { code: person.code, joined_count, attributed: referrer.is_some() })
    }
}

impl SignUp {
    /// Replaces the answers of this partner's pending sign-up, or adds one.
    fn write(&self, connection: &Connection, person: &Person, referrer: Option<i64>) -> Result<i64, Failure> {
        let Self { new, now } = self;
        let partner = new.partner.as_ref().map_or("", |partner| partner.name.as_str());
        if !person.is_new {
            connection
                .prepare_cached(
                    "UPDATE sign_ups SET state = 'expired', decided_at = ?3
                     WHERE person_id = ?1 AND partner = ?2 AND state = 'pending' AND expires_at <= ?3",
                )?
                .execute(params![person.id, partner, now.as_millis()])?;
        }
        let mut statement = connection.prepare_cached(
            "INSERT INTO sign_ups (person_id, key_id, partner, state, us_state, categories, comments, referrer_id,
                                   consent_version, created_at, updated_at, expires_at)
             VALUES (?1, ?2, ?3, 'pending', ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10)
             ON CONFLICT (person_id, partner) WHERE state = 'pending' DO UPDATE
             SET key_id = excluded.key_id, us_state = excluded.us_state, categories = excluded.categories,
                 comments = excluded.comments, referrer_id = excluded.referrer_id,
                 consent_version = excluded.consent_version, updated_at = excluded.updated_at,
                 expires_at = excluded.expires_at
             RETURNING id",
        )?;
        let id = statement.query_row(
            params![
                person.id,
                new.partner.as_ref().map(|partner| partner.key.as_str()),
                partner,
                new.us_state.map(|state| state.code()),
                new.categories.to_string(),
                new.comments.as_ref().map(|comments| comments.as_str()),
                referrer,
                CONSENT_VERSION,
                now.as_millis(),
                now.plus(PENDING_FOR).as_millis(),
            ],
            |row| row.get(0),
        )?;
        Ok(id)
    }
}

pub(super) struct Confirm {
    pub sign_up: SignUpId,
    pub seen: Option<Timestamp>,
    pub now: Timestamp,
}

impl Unit for Confirm {
    type Done = Confirmation;

    fn apply(&self, connection: &Connection) -> Result<Confirmation, Failure> {
        let Some(record) = find(connection, self.sign_up, self.now)? else { return Ok(Confirmation::Unknown) };
        match record.state {
            SignUpState::Pending if self.seen.is_some_and(|seen| seen != record.updated_at) => {
                return Ok(Confirmation::Changed);
            }
            SignUpState::Pending => {}
            SignUpState::Confirmed => return Ok(Confirmation::AlreadyMember),
            SignUpState::Declined => return Ok(Confirmation::Declined),
            SignUpState::Expired => {
                // For good, even on a node whose clock is behind.
                decide(connection, self.sign_up, SignUpState::Expired, self.now)?;
                return Ok(Confirmation::Expired);
            }
        }
        let (person, referrer) = connection
            .prepare_cached("SELECT person_id, referrer_id FROM sign_ups WHERE id = ?1")?
            .query_row([self.sign_up.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        decide(connection, self.sign_up, SignUpState::Confirmed, self.now)?;
        mail::forget(connection, self.sign_up)?;
        if self.join(connection, person, referrer)? {
            connection
                .prepare_cached("UPDATE installation SET member_count = member_count + 1 WHERE id = 1")?
                .execute([])?;
            Ok(Confirmation::Joined)
        } else {
            Ok(Confirmation::AlreadyMember)
        }
    }
}

impl Confirm {
    /// Makes the person a member, unless they are one. The referrer is credited when they never were a member and no
    /// other address of their mailbox ever joined.
    fn join(&self, connection: &Connection, person: i64, referrer: Option<i64>) -> Result<bool, Failure> {
        let changed = connection
            .prepare_cached(
                "UPDATE people SET
                     state = 'member',
                     referrer_id = CASE
                         WHEN joined_at IS NOT NULL THEN referrer_id
                         WHEN EXISTS (SELECT 1 FROM people twin
                                      WHERE twin.compared = people.mailbox AND twin.mailbox = people.mailbox
                                      AND twin.id <> people.id AND twin.joined_at IS NOT NULL) THEN NULL
                         WHEN EXISTS (SELECT 1 FROM people twin
                                      WHERE twin.mailbox = people.mailbox AND twin.mailbox <> twin.compared
                                      AND twin.id <> people.id AND twin.joined_at IS NOT NULL) THEN NULL
                         ELSE ?2 END,
                     joined_at = ?3
                 WHERE id = ?1 AND state <> 'member'",
            )?
            .execute(params![person, referrer, self.now.as_millis()])?;
        Ok(changed == 1)
    }
}

pub(super) struct Decline {
    pub sign_up: SignUpId,
    pub now: Timestamp,
}

impl Unit for Decline {
    type Done = Declining;

    fn apply(&self, connection: &Connection) -> Result<Declining, Failure> {
        let Some(record) = find(connection, self.sign_up, self.now)? else { return Ok(Declining::Unknown) };
        let declining = match record.state {
            SignUpState::Confirmed => Declining::Confirmed,
            SignUpState::Expired => Declining::Expired,
            SignUpState::Declined => Declining::Declined,
            SignUpState::Pending => {
                decide(connection, self.sign_up, SignUpState::Declined, self.now)?;
                mail::forget(connection, self.sign_up)?;
                Declining::Declined
            }
        };
        mail::suppress(connection, &record.email.mailbox(), self.now.plus(SUPPRESSED_FOR))?;
        Ok(declining)
    }
}

/// Lets pending sign-ups expire and deletes the answers of those that came to nothing, a bounded number at a time.
pub(super) struct Tidy {
    pub now: Timestamp,
}

/// Few enough that sign-ups which share the commit do not notice.
const TIDIED_AT_ONCE: u32 = 200;

impl Unit for Tidy {
    type Done = Tidied;

    fn apply(&self, connection: &Connection) -> Result<Tidied, Failure> {
        let now = self.now.as_millis();
        connection
            .prepare_cached(
                "DELETE FROM outbox WHERE sign_up_id IN
                     (SELECT id FROM sign_ups WHERE state = 'pending' AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
            )?
            .execute(params![now, TIDIED_AT_ONCE])?;
        let expired = connection
            .prepare_cached(
                "UPDATE sign_ups SET state = 'expired', decided_at = ?1 WHERE id IN
                     (SELECT id FROM sign_ups WHERE state = 'pending' AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2)",
            )?
            .execute(params![now, TIDIED_AT_ONCE])?;
        let purged = connection
            .prepare_cached(
                "UPDATE sign_ups SET us_state = NULL, categories = '', comments = NULL, purged_at = ?1 WHERE id IN
                     (SELECT id FROM sign_ups
                      WHERE state IN ('expired', 'declined') AND purged_at IS NULL AND updated_at <= ?2
                      ORDER BY updated_at LIMIT ?3)",
            )?
            .execute(params![now, self.now.minus(ANSWERS_KEPT_FOR).as_millis(), TIDIED_AT_ONCE])?;
        Ok(Tidied { expired, purged })
    }
}

/// Decides a sign-up, once.
fn decide(connection: &Connection, sign_up: SignUpId, state: SignUpState, now: Timestamp) -> Result<(), Failure> {
    connection
        .prepare_cached("UPDATE sign_ups SET state = ?2, decided_at = ?3 WHERE id = ?1 AND state = 'pending'")?
        .execute(params![sign_up.0, state.name(), now.as_millis()])?;
    Ok(())
}
