//! Leaving and being erased, and coming back after it; as SQL.
//!
//! What stays of a person who was erased is a tombstone: their row without a name, so that the code is nobody else's, what
//! they are credited with stays right, and whoever joins again is known to have been a member.

use crate::domain::email::EmailAddress;
use crate::domain::person::{AccountId, Erased, Leaving, Lifted, PersonState};
use crate::domain::secret::mark::{AddressMarks, tombstone};
use crate::domain::sign_up::{DecidedHow, SUPPRESSED_FOR};
use crate::domain::time::Timestamp;
use crate::store::outbox;
use crate::store::partners::idempotency;
use crate::store::sql::{Failure, Row, Sql, Unit, values};

/// Ends a membership; the person's row is locked, and the count is the caller's to change, last.
pub(in crate::store) async fn depart(sql: &mut dyn Sql, person: i64, now: Timestamp) -> Result<bool, Failure> {
    let leave = "UPDATE people SET state = 'left', left_at = $2 WHERE id = $1 AND state = 'member'";
    Ok(sql.execute(leave, values![person, now]).await? == 1)
}

pub(in crate::store) async fn count_down(sql: &mut dyn Sql) -> Result<(), Failure> {
    // Last, because every confirmation of the union waits for this row.
    sql.execute("UPDATE installation SET member_count = member_count - 1 WHERE id = 1", values![]).await.map(|_| ())
}

/// Tells the audit log whom a unit is about.
async fn name_account(sql: &mut dyn Sql, person: i64, account: &AccountId) -> Result<(), Failure> {
    let name = "UPDATE people SET account = coalesce(account, $2) WHERE id = $1 RETURNING account";
    let account: Option<String> = sql.row(name, values![person, account.as_str()], |row| row.get(0)).await?;
    sql.about(account.as_deref().unwrap_or_default());
    Ok(())
}

/// Whose mailbox an address is, so that what is decided about one mailbox waits its turn; none if nobody has the address.
pub(super) async fn lock_mailbox_of(sql: &mut dyn Sql, email_normalized: &str) -> Result<Option<String>, Failure> {
    let mailbox = "SELECT mailbox FROM people WHERE email_normalized = $1";
    let mailbox: Option<String> = sql.row(mailbox, values![email_normalized], |row| row.get(0)).await?;
    if let Some(mailbox) = &mailbox {
        sql.lock(mailbox).await?;
    }
    Ok(mailbox)
}

pub(super) struct Leave {
    pub email_normalized: String,
    /// What the audit log calls them, if they have no name there yet.
    pub account: AccountId,
    pub now: Timestamp,
}

impl Unit for Leave {
    type Done = Leaving;

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Leaving, Failure> {
        if lock_mailbox_of(sql, &self.email_normalized).await?.is_none() {
            return Ok(Leaving::Unknown);
        }
        let find = "SELECT id, state FROM people WHERE email_normalized = $1 FOR UPDATE";
        let found = |row: &Row<'_>| Ok((row.get::<i64>("id")?, row.parsed("state", PersonState::from_name)?));
        let Some((person, state)) = sql.row(find, values![&self.email_normalized], found).await? else {
            return Ok(Leaving::Unknown);
        };
        if !depart(sql, person, self.now).await? {
            return Ok(Leaving::NotAMember(state));
        }
        name_account(sql, person, &self.account).await?;
        // Whoever leaves is asked nothing more; coming back is a new sign-up.
        forget_mail(sql, person).await?;
        let withdraw = "UPDATE sign_ups SET state = 'expired', decided_at = $2, decided_how = $3
                        WHERE person_id = $1 AND state = 'pending'";
        let withdrawn = sql.execute(withdraw, values![person, self.now, DecidedHow::Leaving.name()]).await?;
        count_down(sql).await?;
        Ok(Leaving::Left { withdrawn })
    }
}

pub(super) struct Erase {
    pub email_normalized: String,
    pub marks: AddressMarks,
    pub account: AccountId,
    pub now: Timestamp,
}

impl Unit for Erase {
    type Done = Option<Erased>;

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Option<Erased>, Failure> {
        let Some(mailbox) = lock_mailbox_of(sql, &self.email_normalized).await? else { return Ok(None) };
        let find = "SELECT id, code FROM people WHERE email_normalized = $1 FOR UPDATE";
        let found =
            sql.row(find, values![&self.email_normalized], |row| Ok((row.get::<i64>("id")?, row.get("code")?))).await?;
        let Some((person, code)) = found else { return Ok(None) };
        name_account(sql, person, &self.account).await?;
        // While their answers can still be taken out of the figures.
        let was_member = depart(sql, person, self.now).await?;
        // Not where retention forgets somebody: who never joined would be told from a member by what a repeat is answered.
        idempotency::forget_person(sql, person).await?;
        let Anonymized { sign_ups, mails } = anonymize(sql, person, &mailbox, &self.marks, self.now).await?;
        let (others, members) = people_of(sql, &mailbox).await?;
        // Whoever else gets mail there as a member is not silenced with them.
        let mailbox_is_shared = members > 0;
        let until = self.now.end_of_day().plus(SUPPRESSED_FOR);
        if others == 0 {
            sql.execute("DELETE FROM mailboxes WHERE mailbox = $1", values![&mailbox]).await?;
        } else if !mailbox_is_shared {
            outbox::suppress(sql, &mailbox, until).await?;
        }
        if !mailbox_is_shared {
            outbox::suppress(sql, &tombstone(&self.marks.mailbox), until).await?;
        }
        if was_member {
            count_down(sql).await?;
        }
        Ok(Some(Erased { was_member, code, sign_ups, mails, mailbox_is_shared }))
    }
}

/// Deletes the mail that waits for a person; says how much.
async fn forget_mail(sql: &mut dyn Sql, person: i64) -> Result<u64, Failure> {
    let sign_ups = "DELETE FROM outbox WHERE sign_up_id IN (SELECT id FROM sign_ups WHERE person_id = $1)";
    let sign_ins = "DELETE FROM outbox WHERE sign_in_id IN (SELECT id FROM sign_ins WHERE person_id = $1)";
    Ok(sql.execute(sign_ups, values![person]).await? + sql.execute(sign_ins, values![person]).await?)
}

/// What was deleted with a person.
pub(in crate::store) struct Anonymized {
    sign_ups: u64,
    mails: u64,
}

/// Deletes a person's sign-ups, requests to sign in and mail.
pub(in crate::store) async fn delete_activity(sql: &mut dyn Sql, person: i64) -> Result<Anonymized, Failure> {
    let mails = forget_mail(sql, person).await?;
    sql.execute("DELETE FROM sign_ins WHERE person_id = $1", values![person]).await?;
    let declined = "UPDATE api_keys SET declined = declined +
                        (SELECT count(*) FROM sign_ups s WHERE s.person_id = $1 AND s.key_id = api_keys.id AND s.state = 'declined')
                    WHERE id IN (SELECT s.key_id FROM sign_ups s WHERE s.person_id = $1 AND s.state = 'declined')";
    sql.execute(declined, values![person]).await?;
    let sign_ups = sql.execute("DELETE FROM sign_ups WHERE person_id = $1", values![person]).await?;
    Ok(Anonymized { sign_ups, mails })
}

/// Leaves a tombstone where a person was. Their row is locked, and they are no member any more.
pub(super) async fn anonymize(
    sql: &mut dyn Sql,
    person: i64,
    mailbox: &str,
    marks: &AddressMarks,
    now: Timestamp,
) -> Result<Anonymized, Failure> {
    let anonymized = delete_activity(sql, person).await?;
    let anonymize = "
        UPDATE people SET email = '', email_normalized = $2, mailbox = $3, account = NULL, created_at = 0, left_at = NULL,
            joined_at = CASE WHEN joined_at IS NULL THEN NULL ELSE 0 END, undeliverable_until = NULL, soft_bounces = 0,
            erased_at = $4, session = NULL, wrong_codes = 0, wrong_codes_day = 0, own_us_state = NULL,
            own_categories = NULL, own_comments = NULL, answered_at = NULL, unwanted_mail = '',
            language = NULL
        WHERE id = $1";
    let (address, tombstone) = (tombstone(&marks.address), tombstone(&marks.mailbox));
    // To the day alone: to the millisecond it would lead to the row of the audit log that says who was erased then.
    sql.execute(anonymize, values![person, &address, &tombstone, now.start_of_day()]).await?;
    // What a mailbox wants not to be sent goes with the last who has it.
    let stops = "DELETE FROM stopped_partners WHERE mailbox = $1
                 AND NOT EXISTS (SELECT 1 FROM people WHERE email_normalized = $1 AND mailbox = $1)
                 AND NOT EXISTS (SELECT 1 FROM people WHERE mailbox = $1 AND mailbox <> email_normalized)";
    sql.execute(stops, values![mailbox]).await?;
    // Nobody is credited for another spelling of the mailbox, now that it cannot be seen any more that one was a member.
    let plain = "UPDATE people SET uncredited = TRUE WHERE email_normalized = $2 AND mailbox = $2 AND joined_at IS NULL
                 AND EXISTS (SELECT 1 FROM people gone WHERE gone.id = $1 AND gone.joined_at IS NOT NULL)";
    let tagged =
        "UPDATE people SET uncredited = TRUE WHERE mailbox = $2 AND mailbox <> email_normalized AND joined_at IS NULL
                  AND EXISTS (SELECT 1 FROM people gone WHERE gone.id = $1 AND gone.joined_at IS NOT NULL)";
    sql.execute(plain, values![person, mailbox]).await?;
    sql.execute(tagged, values![person, mailbox]).await?;
    Ok(anonymized)
}

/// How many people get mail there, and how many of them are members.
pub(in crate::store) async fn people_of(sql: &mut dyn Sql, mailbox: &str) -> Result<(u64, u64), Failure> {
    // In the two ways for which there is an index each.
    let people = "
        SELECT count(*) AS people, CAST(coalesce(sum(CASE WHEN state = 'member' THEN 1 ELSE 0 END), 0) AS BIGINT) AS members FROM (
            SELECT state FROM people WHERE email_normalized = $1 AND mailbox = $1
            UNION ALL SELECT state FROM people WHERE mailbox = $1 AND mailbox <> email_normalized) here";
    let read = |row: &Row<'_>| Ok((row.get("people")?, row.get("members")?));
    Ok(sql.row(people, values![mailbox], read).await?.unwrap_or_default())
}

/// Somebody who was erased is named again: the tombstone becomes their row, with its code and what it remembers.
pub(super) struct Revive {
    pub email: EmailAddress,
    pub marks: AddressMarks,
    pub now: Timestamp,
}

impl Unit for Revive {
    type Done = bool;

    fn is_transaction(&self) -> bool {
        true
    }

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

/// Lets mail go to a person again, whatever kept it.
pub(super) struct Unsuppress {
    pub email_normalized: String,
    pub account: AccountId,
}

impl Unit for Unsuppress {
    type Done = Option<Lifted>;

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Option<Lifted>, Failure> {
        let Some(mailbox) = lock_mailbox_of(sql, &self.email_normalized).await? else { return Ok(None) };
        let suppression = outbox::lift_silence(sql, &mailbox).await?;
        let lift = "UPDATE mailboxes SET complained_at = NULL WHERE mailbox = $1 AND complained_at IS NOT NULL";
        let complaint = sql.execute(lift, values![&mailbox]).await? > 0;
        let lift = "UPDATE people SET undeliverable_until = NULL, soft_bounces = 0
                    WHERE email_normalized = $1 AND (undeliverable_until IS NOT NULL OR soft_bounces > 0)";
        let undeliverable = sql.execute(lift, values![&self.email_normalized]).await? > 0;
        let lift = "DELETE FROM stopped_partners WHERE mailbox = $1";
        let partners = sql.execute(lift, values![&mailbox]).await? > 0;
        let lifted = Lifted { suppression, complaint, undeliverable, partners };
        if lifted != Lifted::default() {
            let find = "SELECT id FROM people WHERE email_normalized = $1";
            if let Some(person) = sql.row(find, values![&self.email_normalized], |row| row.get(0)).await? {
                name_account(sql, person, &self.account).await?;
            }
        }
        Ok(Some(lifted))
    }
}
