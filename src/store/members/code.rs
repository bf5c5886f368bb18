//! Referral codes: found, or made for somebody new; as SQL.

use crate::domain::partner::idempotency::IdempotentRequest;
use crate::domain::partner::name::PartnerId;
use crate::domain::referral::ReferralCode;
use crate::domain::sign_up::{NamedPerson, SignedUp};
use crate::domain::simulator::is_free;
use crate::domain::time::Timestamp;
use crate::store::partners::idempotency::{self, Asked, FirstAnswer};
use crate::store::sign_up::{not_added, refuse_if, was_member_there};
use crate::store::sql::{Failure, Row, Sql, Unit, expected, values};

/// The code kept for an address; refused while sign-ups are paused.
pub(super) struct FindCode {
    pub email_normalized: String,
}

impl Unit for FindCode {
    type Done = Option<ReferralCode>;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let find = "SELECT signups_paused, (SELECT code FROM people WHERE email_normalized = $1) AS code FROM installation WHERE id = 1";
        let code = |row: &Row<'_>| {
            refuse_if(row.get("signups_paused")?)?;
            row.get("code")
        };
        expected(sql.row(find, values![&self.email_normalized], code).await?)
    }
}

/// The code of a person, who is remembered as `invited` if new.
pub(super) struct CreateCode {
    pub person: NamedPerson,
    pub now: Timestamp,
}

impl Unit for CreateCode {
    type Done = ReferralCode;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<ReferralCode, Failure> {
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
            return Ok(*code);
        }
        match (FindCode { email_normalized: email_normalized.clone() }).apply(sql).await? {
            Some(code) => Ok(code),
            None => Err(not_added(sql, code, &email_normalized).await?),
        }
    }
}

/// The code of a person, as the answer to a request that named itself.
pub(super) struct IdempotentCode {
    pub partner: PartnerId,
    pub request: IdempotentRequest,
    pub create: CreateCode,
}

impl Unit for IdempotentCode {
    type Done = SignedUp;

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply(&self, sql: &mut dyn Sql) -> Result<SignedUp, Failure> {
        let Self { partner, request, create } = self;
        if let Some(first) = idempotency::find(sql, *partner, Asked::Link, request).await? {
            return Ok(first);
        }
        let code = create.apply(sql).await?;
        let find = "SELECT id FROM people WHERE code = $1";
        let person: Option<i64> = sql.row(find, values![&code], |row| row.get(0)).await?;
        let person = person.ok_or(Failure::Overtaken)?;
        if !is_free(&create.person.email) {
            idempotency::refuse_too_many(sql, *partner, person, create.now).await?;
        }
        let given = SignedUp { code, joined_count: 0, attributed: false, replayed: None };
        let first = FirstAnswer { partner: *partner, request, person, sign_up: None, closes_at: None, given: &given };
        idempotency::keep(sql, first, create.now).await?;
        Ok(given)
    }
}
