//! Deletes test data: people with all their records, and records that only their time identifies. Nothing stays behind.

use crate::domain::campaign::acceptance::Ended;
use crate::domain::mail::budget::day_of;
use crate::domain::time::Timestamp;
use crate::membership::count::{count_member, people_of};
use crate::partners::idempotency;
use crate::people::leave::{delete_activity, depart};
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// How many people a step looks at, and how many rows of each other kind it deletes.
const DELETE_BATCH: u32 = 100;

/// Deletes what is older than `before`, completely and without a trace, in small steps: the next people after an id, and at the
/// end everything else. Never runs on live records.
pub struct ForgetTestData {
    pub after: i64,
    pub before: Timestamp,
    pub now: Timestamp,
}

/// What a step did.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ForgottenTestData {
    /// The last person that was looked at; none after the last one who is old enough.
    pub last: Option<i64>,
    /// Rows of any kind.
    pub deleted: u64,
}

/// Whether person `p` has nothing younger than `$2`.
macro_rules! is_over {
    () => {
        "p.created_at < $2 AND coalesce(p.joined_at, 0) < $2
         AND NOT EXISTS (SELECT 1 FROM sign_ups s WHERE s.person_id = p.id AND s.updated_at >= $2)"
    };
}

impl Unit for ForgetTestData {
    type Done = ForgottenTestData;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<ForgottenTestData, Failure> {
        let look = concat!(
            "SELECT p.id, p.mailbox, p.created_at < $2 AS is_old, ",
            is_over!(),
            " AS is_over FROM people p WHERE p.id > $1 ORDER BY p.id LIMIT $3"
        );
        let person = |row: &Row<'_>| {
            let (is_over, is_old) = (row.get::<bool>("is_over")?, row.get::<bool>("is_old")?);
            Ok((row.get::<i64>("id")?, row.get::<String>("mailbox")?, is_over, is_old))
        };
        let people = sql.rows(look, values![self.after, self.before, DELETE_BATCH], person).await?;
        // Ids grow with time: after people who are all too young, no one is old enough.
        let Some((last, ..)) = people.last().filter(|_| people.iter().any(|(.., is_old)| *is_old)) else {
            return Ok(ForgottenTestData { last: None, deleted: self.forget_by_time(sql).await? });
        };
        let mut deleted = self.forget_sign_ups(sql, *last).await?;
        for (id, mailbox, ..) in people.iter().filter(|(_, _, is_over, _)| *is_over) {
            // Another unit is deciding about the mailbox, and so about the person; a later walk tries again.
            if sql.try_lock(mailbox).await? {
                deleted += self.forget_person(sql, *id, mailbox).await?;
            }
        }
        Ok(ForgottenTestData { last: Some(*last), deleted })
    }
}

impl ForgetTestData {
    /// Deletes a person in any state, with everything that names them; 0 if something has happened to them since.
    async fn forget_person(&self, sql: &mut dyn Sql, id: i64, mailbox: &str) -> Result<u64, Failure> {
        let still = concat!("SELECT 1 FROM people p WHERE p.id = $1 AND ", is_over!(), " FOR UPDATE");
        if !sql.exists(still, values![id, self.before]).await? {
            return Ok(0);
        }
        // Now, while their answers can still be taken out of the figures.
        let was_member = depart(sql, id, Ended::Erased, self.now).await?;
        // The simulator's addresses can have any number of keys, and deleting the person would change them all at once.
        let keys = idempotency::forget_person(sql, id, DELETE_BATCH).await?;
        if keys == u64::from(DELETE_BATCH) || !delete_activity(sql, id).await?.is_whole {
            // The next walk continues.
            if was_member {
                count_member(sql, mailbox, -1).await?;
            }
            return Ok(1);
        }
        for unname in [
            "UPDATE sign_ups SET referrer_id = NULL WHERE referrer_id = $1",
            "UPDATE people SET referrer_id = NULL WHERE referrer_id = $1",
            "UPDATE member_changes SET referrer_id = NULL WHERE referrer_id = $1",
            "UPDATE rollup SET referred_members = referred_members - coalesce((SELECT members FROM referrers WHERE person_id = $1), 0)",
            "DELETE FROM referrers WHERE person_id = $1",
            "DELETE FROM requalifications WHERE person_id = $1",
            "DELETE FROM people WHERE id = $1",
        ] {
            sql.execute(unname, values![id]).await?;
        }
        if people_of(sql, mailbox).await?.0 == 0 {
            sql.execute("DELETE FROM stopped_partners WHERE mailbox = $1", values![mailbox]).await?;
            sql.execute("DELETE FROM mailboxes WHERE mailbox = $1", values![mailbox]).await?;
        }
        if was_member {
            count_member(sql, mailbox, -1).await?;
        }
        Ok(1)
    }

    /// Deletes old sign-ups of people who are still in use.
    async fn forget_sign_ups(&self, sql: &mut dyn Sql, to: i64) -> Result<u64, Failure> {
        let old = "SELECT id FROM sign_ups WHERE person_id > $1 AND person_id <= $2 AND updated_at < $3 AND state <> 'pending'
                   ORDER BY person_id, id LIMIT $4 FOR UPDATE SKIP LOCKED";
        let ids: Vec<i64> = sql.rows(old, values![self.after, to, self.before, DELETE_BATCH], |row| row.get(0)).await?;
        for id in &ids {
            sql.execute("DELETE FROM outbox WHERE sign_up_id = $1", values![*id]).await?;
            sql.execute("DELETE FROM sign_ups WHERE id = $1", values![*id]).await?;
        }
        Ok(ids.len() as u64)
    }

    /// Deletes records that belong to no particular person. A request's pending notifications go with it.
    async fn forget_by_time(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        let mut deleted = 0;
        for forget in [
            // The oldest have the lowest ids.
            "DELETE FROM inbox WHERE id IN
                 (SELECT id FROM (SELECT id, received_at FROM inbox ORDER BY id LIMIT $2) oldest WHERE received_at < $1)",
            "DELETE FROM idempotency_keys WHERE id IN
                 (SELECT id FROM (SELECT id, created_at FROM idempotency_keys ORDER BY id LIMIT $2) oldest WHERE created_at < $1)",
        ] {
            deleted += sql.execute(forget, values![self.before, DELETE_BATCH]).await?;
        }
        let days =
            "DELETE FROM source_days WHERE id IN (SELECT id FROM source_days WHERE day < $1 ORDER BY day LIMIT $2)";
        Ok(deleted + sql.execute(days, values![day_of(self.before), DELETE_BATCH]).await?)
    }
}
