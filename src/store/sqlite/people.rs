//! People, their sign-ups and the mail that goes with them, as SQL.

use rusqlite::{Connection, OptionalExtension, params};

use super::Failure;
use super::writer::Unit;
use crate::domain::referral::ReferralCode;
use crate::domain::signup::{CONSENT_VERSION, Confirmation, NamedPerson, NewSignUp, PENDING_FOR, SignUpId, SignedUp};
use crate::domain::time::Timestamp;
use crate::store::StoreError;

pub(super) fn member_count(connection: &Connection) -> Result<u64, Failure> {
    let mut statement = connection.prepare_cached("SELECT member_count FROM installation WHERE id = 1")?;
    let count: i64 = statement.query_row([], |row| row.get(0))?;
    // The column is checked never to be negative.
    Ok(count.unsigned_abs())
}

pub(super) fn find_code(connection: &Connection, compared: &str) -> Result<Option<ReferralCode>, Failure> {
    refuse_if_paused(connection)?;
    let mut statement = connection.prepare_cached("SELECT code FROM people WHERE compared = ?1")?;
    Ok(statement.query_row([compared], |row| code(row, 0)).optional()?)
}

pub(super) struct Pause(pub bool);

impl Unit for Pause {
    type Done = bool;

    fn apply(&self, connection: &Connection) -> Result<bool, Failure> {
        let changed = connection
            .execute("UPDATE installation SET signups_paused = ?1 WHERE signups_paused <> ?1", params![self.0])?;
        Ok(changed == 1)
    }
}

pub(super) struct CreateReferralCode {
    pub person: NamedPerson,
    pub now: Timestamp,
}

impl Unit for CreateReferralCode {
    type Done = ReferralCode;

    fn apply(&self, connection: &Connection) -> Result<ReferralCode, Failure> {
        refuse_if_paused(connection)?;
        Ok(find_or_add(connection, &self.person, self.now)?.code)
    }
}

pub(super) struct SignUp {
    pub new: NewSignUp,
    pub now: Timestamp,
}

impl Unit for SignUp {
    type Done = SignedUp;

    fn apply(&self, connection: &Connection) -> Result<SignedUp, Failure> {
        refuse_if_paused(connection)?;
        let person = find_or_add(connection, &self.new.person, self.now)?;
        let referrer = match self.new.ref_code {
            Some(code) => find_referrer(connection, code, &person.mailbox)?,
            None => None,
        };
        let sign_up = self.write(connection, person.id, referrer)?;
        let kind = if person.is_member { "already_member" } else { "confirm" };
        connection
            .prepare_cached(
                "INSERT INTO outbox (sign_up_id, kind, recipient, created_at) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (sign_up_id) DO UPDATE
                 SET kind = excluded.kind, recipient = excluded.recipient, created_at = excluded.created_at",
            )?
            .execute(params![sign_up, kind, self.new.person.email.as_typed(), self.now.as_millis()])?;
        Ok(SignedUp { code: person.code, joined_count: member_count(connection)?, attributed: referrer.is_some() })
    }
}

impl SignUp {
    /// Replaces the answers of this partner's pending sign-up, or adds one.
    fn write(&self, connection: &Connection, person: i64, referrer: Option<i64>) -> Result<i64, Failure> {
        let Self { new, now } = self;
        connection
            .prepare_cached(
                "UPDATE sign_ups SET state = 'expired', decided_at = ?3
                 WHERE person_id = ?1 AND partner = ?2 AND state = 'pending' AND expires_at <= ?3",
            )?
            .execute(params![person, new.partner.name.as_str(), now.as_millis()])?;
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
                person,
                new.partner.key.as_str(),
                new.partner.name.as_str(),
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
    pub now: Timestamp,
}

impl Unit for Confirm {
    type Done = Confirmation;

    fn apply(&self, connection: &Connection) -> Result<Confirmation, Failure> {
        let found = connection
            .prepare_cached("SELECT state, expires_at, person_id, referrer_id FROM sign_ups WHERE id = ?1")?
            .query_row([self.sign_up.0], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?, row.get(3)?))
            })
            .optional()?;
        let Some((state, expires_at, person, referrer)) = found else { return Ok(Confirmation::Unknown) };
        match state.as_str() {
            "pending" if self.now.as_millis() < expires_at => {}
            "pending" => {
                self.decide(connection, "expired")?;
                return Ok(Confirmation::Expired);
            }
            "confirmed" => return Ok(Confirmation::AlreadyMember),
            "declined" => return Ok(Confirmation::Declined),
            _ => return Ok(Confirmation::Expired),
        }
        self.decide(connection, "confirmed")?;
        connection.prepare_cached("DELETE FROM outbox WHERE sign_up_id = ?1")?.execute([self.sign_up.0])?;
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
    fn decide(&self, connection: &Connection, state: &str) -> Result<(), Failure> {
        connection
            .prepare_cached("UPDATE sign_ups SET state = ?2, decided_at = ?3 WHERE id = ?1")?
            .execute(params![self.sign_up.0, state, self.now.as_millis()])?;
        Ok(())
    }

    /// Makes the person a member, unless they are one. The referrer is credited when they never were a member and no
    /// other address of their mailbox has earned credit.
    fn join(&self, connection: &Connection, person: i64, referrer: Option<i64>) -> Result<bool, Failure> {
        let changed = connection
            .prepare_cached(
                "UPDATE people SET
                     state = 'member',
                     referrer_id = CASE
                         WHEN joined_at IS NOT NULL THEN referrer_id
                         WHEN EXISTS (SELECT 1 FROM people twin WHERE twin.mailbox = people.mailbox
                                      AND twin.id <> people.id AND twin.referrer_id IS NOT NULL) THEN NULL
                         ELSE ?2 END,
                     joined_at = ?3
                 WHERE id = ?1 AND state <> 'member'",
            )?
            .execute(params![person, referrer, self.now.as_millis()])?;
        Ok(changed == 1)
    }
}

struct Person {
    id: i64,
    code: ReferralCode,
    mailbox: String,
    is_member: bool,
}

/// The person of that address. A new one takes the code offered, unless it is somebody else's.
fn find_or_add(connection: &Connection, named: &NamedPerson, now: Timestamp) -> Result<Person, Failure> {
    let compared = named.email.compared();
    let found = connection
        .prepare_cached("SELECT id, code, mailbox, state = 'member' FROM people WHERE compared = ?1")?
        .query_row([&compared], |row| {
            Ok(Person { id: row.get(0)?, code: code(row, 1)?, mailbox: row.get(2)?, is_member: row.get(3)? })
        })
        .optional()?;
    if let Some(person) = found {
        return Ok(person);
    }
    let taken = connection.prepare_cached("SELECT 1 FROM people WHERE code = ?1")?.exists([named.code.as_str()])?;
    if taken {
        return Err(Failure::Refused(StoreError::CodeTaken));
    }
    let mailbox = named.email.mailbox();
    connection
        .prepare_cached(
            "INSERT INTO people (email, compared, mailbox, code, state, created_at)
             VALUES (?1, ?2, ?3, ?4, 'invited', ?5)",
        )?
        .execute(params![named.email.as_typed(), compared, mailbox, named.code.as_str(), now.as_millis()])?;
    Ok(Person { id: connection.last_insert_rowid(), code: named.code, mailbox, is_member: false })
}

/// Who the code names, if that is another mailbox than the one signing up.
fn find_referrer(connection: &Connection, code: ReferralCode, mailbox: &str) -> Result<Option<i64>, Failure> {
    let mut statement = connection.prepare_cached("SELECT id FROM people WHERE code = ?1 AND mailbox <> ?2")?;
    Ok(statement.query_row([code.as_str(), mailbox], |row| row.get(0)).optional()?)
}

fn refuse_if_paused(connection: &Connection) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached("SELECT signups_paused FROM installation WHERE id = 1")?;
    let paused: bool = statement.query_row([], |row| row.get(0))?;
    if paused { Err(Failure::Refused(StoreError::Paused)) } else { Ok(()) }
}

fn code(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<ReferralCode> {
    super::parsed(row, column, ReferralCode::from_canonical)
}
