//! Finds referral codes, and makes them for new people.

use crate::domain::email::EmailAddress;
use crate::domain::partner::idempotency::IdempotentRequest;
use crate::domain::partner::name::PartnerId;
use crate::domain::referral::ReferralCode;
use crate::domain::secret::mark::{AddressMarks, tombstone};
use crate::domain::sign_up::{NamedPerson, Refused, SignedUp};
use crate::domain::simulator::is_free;
use crate::domain::time::Timestamp;
use crate::mail::outbox;
use crate::membership::sign_up::{code_taken, was_member_there};
use crate::partners::idempotency;
use crate::partners::idempotency::{Asked, FirstAnswer};
use crate::store::sql::{Failure, How, Row, Sql, Unit, expected, values};

/// The code stored for an address, if there is one; refused while sign-ups are paused.
pub struct FindCode {
    pub email_normalized: String,
}

impl Unit for FindCode {
    type Done = Result<Option<ReferralCode>, Refused>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let find = "SELECT signups_paused, (SELECT code FROM people WHERE email_normalized = $1) AS code FROM installation WHERE id = 1";
        let code =
            |row: &Row<'_>| Ok(if row.get("signups_paused")? { Err(Refused::Paused) } else { Ok(row.get("code")?) });
        expected(sql.row(find, values![&self.email_normalized], code).await?)
    }
}

/// The person's code. A new person is stored as `invited`.
pub struct CreateCode {
    pub person: NamedPerson,
    pub now: Timestamp,
}

impl Unit for CreateCode {
    type Done = Result<ReferralCode, Refused>;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let NamedPerson { email, code, tombstone } = &self.person;
        let (email_normalized, mailbox) = (email.normalized(), email.mailbox());
        let add = concat!(
            "INSERT INTO people (email, email_normalized, mailbox, code, state, created_at, uncredited)
             SELECT $1, $2, $3, $4, 'invited', $5, ",
            was_member_there!("$6"),
            " FROM installation
             WHERE id = 1 AND NOT signups_paused
               AND NOT EXISTS (SELECT 1 FROM people WHERE email_normalized = $2)
               AND NOT EXISTS (SELECT 1 FROM people WHERE code = $4)
             ON CONFLICT DO NOTHING RETURNING id"
        );
        let values = values![email.as_typed(), &email_normalized, &mailbox, code, self.now, tombstone.as_str()];
        if sql.insert(add, values).await?.is_some() {
            return Ok(Ok(*code));
        }
        match (FindCode { email_normalized: email_normalized.clone() }).apply(sql).await? {
            Err(refused) => Ok(Err(refused)),
            Ok(Some(code)) => Ok(Ok(code)),
            Ok(None) => code_taken(sql, code, &email_normalized).await.map(Err),
        }
    }
}

/// The same for a request with an idempotency key: stores the answer, or returns the first one.
pub struct IdempotentCode {
    pub partner: PartnerId,
    pub request: IdempotentRequest,
    pub create: CreateCode,
}

impl Unit for IdempotentCode {
    type Done = Result<SignedUp, Refused>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self { partner, request, create } = self;
        if let Some(first) = idempotency::find(sql, *partner, Asked::Link, request).await? {
            return Ok(first);
        }
        let code = match create.apply(sql).await? {
            Ok(code) => code,
            Err(refused) => return Ok(Err(refused)),
        };
        let find = "SELECT id FROM people WHERE code = $1";
        let person: Option<i64> = sql.row(find, values![&code], |row| row.get(0)).await?;
        let person = person.ok_or(Failure::Overtaken)?;
        if !is_free(&create.person.email) && idempotency::has_too_many(sql, *partner, person, create.now).await? {
            return Ok(Err(Refused::TooManyKeys));
        }
        let given = SignedUp { code, joined_count: 0, attributed: false, replayed: None };
        let first = FirstAnswer { partner: *partner, request, person, sign_up: None, closes_at: None, given: &given };
        idempotency::keep(sql, first, create.now).await?;
        Ok(Ok(given))
    }
}

/// Gives an erased person their name back; false if no one with that address was erased.
pub struct Revive {
    pub email: EmailAddress,
    pub marks: AddressMarks,
    pub now: Timestamp,
}

impl Unit for Revive {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let (email_normalized, mailbox) = (self.email.normalized(), self.email.mailbox());
        let revive =
            "UPDATE people SET email = $2, email_normalized = $3, mailbox = $4, created_at = $5, erased_at = NULL
                      WHERE email_normalized = $1";
        let address = tombstone(&self.marks.address);
        let person = values![&address, self.email.as_typed(), &email_normalized, &mailbox, self.now];
        if sql.execute(revive, person).await? == 0 {
            return Ok(false);
        }
        let tombstone = tombstone(&self.marks.mailbox);
        let until = "DELETE FROM mailboxes WHERE mailbox = $1 RETURNING suppressed_until";
        let until: Option<Option<Timestamp>> = sql.row(until, values![&tombstone], |row| row.get(0)).await?;
        if let Some(until) = until.flatten() {
            outbox::suppress(sql, &mailbox, until).await?;
        }
        Ok(true)
    }
}
