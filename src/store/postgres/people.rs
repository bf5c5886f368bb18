//! People, their codes and whether more may come, as SQL.

use super::pool::{Line, Unit};
use super::{Failure, code, expected, get};
use crate::domain::referral::ReferralCode;
use crate::domain::signup::NamedPerson;
use crate::domain::time::Timestamp;
use crate::store::StoreError;

pub(super) struct FindCode {
    pub compared: String,
}

impl Unit for FindCode {
    type Done = Option<ReferralCode>;

    async fn apply(&self, line: &mut Line) -> Result<Option<ReferralCode>, Failure> {
        let sql = "SELECT signups_paused, (SELECT code FROM people WHERE compared = $1) FROM installation WHERE id = 1";
        let row = expected(line.row(sql, &[&self.compared]).await?)?;
        refuse_if(get(&row, 0)?)?;
        get::<Option<&str>>(&row, 1)?.map(|_| code(&row, 1)).transpose()
    }
}

pub(super) fn refuse_if(paused: bool) -> Result<(), Failure> {
    if paused { Err(Failure::Refused(StoreError::Paused)) } else { Ok(()) }
}

pub(super) struct Pause(pub bool);

impl Unit for Pause {
    type Done = bool;

    async fn apply(&self, line: &mut Line) -> Result<bool, Failure> {
        let sql = "UPDATE installation SET signups_paused = $1 WHERE signups_paused <> $1";
        Ok(line.execute(sql, &[&self.0]).await? == 1)
    }
}

pub(super) struct CreateReferralCode {
    pub person: NamedPerson,
    pub now: Timestamp,
}

impl Unit for CreateReferralCode {
    type Done = ReferralCode;

    async fn apply(&self, line: &mut Line) -> Result<ReferralCode, Failure> {
        let sql = "
            WITH house AS (
                SELECT signups_paused AS paused FROM installation WHERE id = 1
            ), known AS (
                SELECT code FROM people WHERE compared = $2
            ), taken AS (
                SELECT FROM people WHERE code = $4 AND compared <> $2
            ), added AS (
                INSERT INTO people (email, compared, mailbox, code, state, created_at)
                SELECT $1, $2, $3, $4, 'invited', $5 FROM house
                WHERE NOT paused AND NOT EXISTS (SELECT FROM known) AND NOT EXISTS (SELECT FROM taken)
                ON CONFLICT DO NOTHING
                RETURNING code
            )
            SELECT paused, coalesce((SELECT code FROM known), (SELECT code FROM added)), EXISTS (SELECT FROM taken)
            FROM house";
        let NamedPerson { email, code: offered } = &self.person;
        let (compared, mailbox) = (email.compared(), email.mailbox());
        let values: [super::pool::Value<'_>; 5] =
            [&email.as_typed(), &compared, &mailbox, &offered.as_str(), &self.now.as_millis()];
        let row = expected(line.row(sql, &values).await?)?;
        refuse_if(get(&row, 0)?)?;
        match (get::<Option<&str>>(&row, 1)?, get(&row, 2)?) {
            (Some(_), _) => code(&row, 1),
            (None, true) => Err(Failure::Refused(StoreError::CodeTaken)),
            // Another node added the person, or one with that code, at this moment.
            (None, false) => Err(Failure::Overtaken),
        }
    }
}
