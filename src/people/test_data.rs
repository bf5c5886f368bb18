//! Deleting test data: people with all that is theirs, and what is only remembered by its time. Nothing stays where they were.

use crate::domain::mail::budget::day_of;
use crate::domain::time::Timestamp;
use crate::membership::count::{count_member, people_of};
use crate::partners::idempotency;
use crate::people::leave::{delete_activity, depart};
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// People that a step looks at, and rows of each other kind that it deletes.
const DELETE_BATCH: u32 = 100;

/// Deletes what is older than that, for real and without a trace, a little at a time: of the next people after that
/// id, and at the end of all else. Live records are never asked this.
#[derive(Debug)]
pub struct ForgetTestData {
    pub after: i64,
    pub before: Timestamp,
    pub now: Timestamp,
}

/// What a step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForgottenTestData {
    /// The last person that was looked at; none once all who are old enough were.
    pub last: Option<i64>,
    /// Rows of any kind.
    pub deleted: u64,
}

/// Whether nothing of a person `p` is younger than `$2`.
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
        // Ids grow with time: behind people who are all too young there is nobody else.
        let Some((last, ..)) = people.last().filter(|_| people.iter().any(|(.., is_old)| *is_old)) else {
            return Ok(ForgottenTestData { last: None, deleted: self.forget_by_time(sql).await? });
        };
        let mut deleted = self.forget_sign_ups(sql, *last).await?;
        for (id, mailbox, ..) in people.iter().filter(|(_, _, is_over, _)| *is_over) {
            // Whoever decides about the mailbox now decides about the person, too; another walk comes.
            if sql.try_lock(mailbox).await? {
                deleted += self.forget_person(sql, *id, mailbox).await?;
            }
        }
        Ok(ForgottenTestData { last: Some(*last), deleted })
    }
}

impl ForgetTestData {
    /// A person, whatever they are, with everything that names them; 0 if something happened to them since.
    async fn forget_person(&self, sql: &mut dyn Sql, id: i64, mailbox: &str) -> Result<u64, Failure> {
        let still = concat!("SELECT 1 FROM people p WHERE p.id = $1 AND ", is_over!(), " FOR UPDATE");
        if sql.row(still, values![id, self.before], |_| Ok(())).await?.is_none() {
            return Ok(0);
        }
        // While their answers can still be taken out of the figures.
        let was_member = depart(sql, id, self.now).await?;
        // Of the simulator's addresses there is no end of keys: deleting the person would change them all at once.
        let keys = idempotency::forget_person(sql, id, DELETE_BATCH).await?;
        if keys == u64::from(DELETE_BATCH) || !delete_activity(sql, id).await?.is_whole {
            // The next walk goes on.
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

    /// Old sign-ups of people who are still asked for.
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

    /// What is nobody's in particular. What is to be told of a request goes with it.
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
