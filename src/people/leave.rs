//! Leaving and being erased, and coming back after it.
//!
//! An erased person leaves a tombstone: their row without a name. It keeps their code from going to another person, keeps their
//! credits right, and shows that a person who joins again was a member before.

use std::sync::LazyLock;

use crate::campaigns::{participation, qualify};
use crate::domain::campaign::acceptance::Ended;
use crate::domain::person::{AccountId, Erased, Leaving, Lifted, PersonState, RewardsDue, Waiver};
use crate::domain::secret::mark::{AddressMarks, is_tombstone, tombstone};
use crate::domain::sign_up::{DecidedHow, SUPPRESSED_FOR};
use crate::domain::time::Timestamp;
use crate::mail::outbox;
use crate::membership::count::{count_member, people_of};
use crate::membership::sign_up::each_answer;
use crate::partners::idempotency;
use crate::rewards::standing;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Ends a membership. The person's row is locked; the caller changes the count, last.
pub(crate) async fn depart(sql: &mut dyn Sql, person: i64, why: Ended, now: Timestamp) -> Result<bool, Failure> {
    qualify::disqualify_everywhere(sql, person, why).await?;
    let leave = "UPDATE people SET state = 'left', left_at = $2 WHERE id = $1 AND state = 'member'";
    let was_member = sql.execute(leave, values![person, now]).await? == 1;
    if was_member {
        participation::end_participations(sql, person, why, now).await?;
    }
    Ok(was_member)
}

/// Tells the audit log which person a unit is about.
pub(crate) async fn name_account(sql: &mut dyn Sql, person: i64, account: &AccountId) -> Result<(), Failure> {
    let name = "UPDATE people SET account = coalesce(account, $2) WHERE id = $1 RETURNING account";
    let account: Option<String> = sql.value(name, values![person, account.as_str()]).await?;
    sql.about(&format!("account {}", account.unwrap_or_default()));
    Ok(())
}

/// Locks the mailbox of an address, so that decisions about one mailbox run one at a time; none if no one has the address.
pub(crate) async fn lock_mailbox_of(sql: &mut dyn Sql, email_normalized: &str) -> Result<Option<String>, Failure> {
    let mailbox = "SELECT mailbox FROM people WHERE email_normalized = $1";
    let mailbox: Option<String> = sql.value(mailbox, values![email_normalized]).await?;
    if let Some(mailbox) = &mailbox {
        sql.lock(mailbox).await?;
    }
    Ok(mailbox)
}

/// Ends the membership of the person with that address, immediately.
pub struct Leave {
    pub email_normalized: String,
    /// Their name in the audit log, if they have none yet.
    pub account: AccountId,
    pub now: Timestamp,
}

impl Unit for Leave {
    type Done = Leaving;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Leaving, Failure> {
        let Some(mailbox) = lock_mailbox_of(sql, &self.email_normalized).await? else { return Ok(Leaving::Unknown) };
        let find = "SELECT id, state FROM people WHERE email_normalized = $1 FOR UPDATE";
        let found = |row: &Row<'_>| Ok((row.get::<i64>("id")?, row.parsed("state", PersonState::from_name)?));
        let Some((person, state)) = sql.row(find, values![&self.email_normalized], found).await? else {
            return Ok(Leaving::Unknown);
        };
        if !depart(sql, person, Ended::Left, self.now).await? {
            return Ok(Leaving::NotAMember(state));
        }
        name_account(sql, person, &self.account).await?;
        // A person who leaves is asked nothing more; to come back, they sign up again.
        let mail = "DELETE FROM outbox WHERE sign_up_id IN
                        (SELECT id FROM sign_ups WHERE person_id = $1 AND state = 'pending')";
        sql.execute(mail, values![person]).await?;
        forget_sign_in_mail(sql, person).await?;
        forget_campaign_mail(sql, person).await?;
        let withdraw = "UPDATE sign_ups SET state = 'expired', decided_at = $2, decided_how = $3
                        WHERE person_id = $1 AND state = 'pending'";
        let withdrawn = sql.execute(withdraw, values![person, self.now, DecidedHow::Leaving.name()]).await?;
        count_member(sql, &mailbox, -1).await?;
        Ok(Leaving::Left { withdrawn })
    }
}

/// Deletes everything stored about the person with that address, except a tombstone that recognizes the address by its marks.
/// Refused while rewards are due to them, unless those are given up.
#[derive(Clone)]
pub struct Erase {
    pub email_normalized: String,
    pub marks: AddressMarks,
    pub account: AccountId,
    /// Gives up the rewards that are due.
    pub waiver: Option<Waiver>,
    pub now: Timestamp,
}

/// One step of an erasure: deletes everything if little is stored, else a part; `is_whole` says which. Repeat until it is true.
impl Unit for Erase {
    type Done = Option<Result<Erased, RewardsDue>>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Some(mailbox) = lock_mailbox_of(sql, &self.email_normalized).await? else { return Ok(None) };
        let find = "SELECT id, code FROM people WHERE email_normalized = $1 FOR UPDATE";
        let found =
            sql.row(find, values![&self.email_normalized], |row| Ok((row.get::<i64>("id")?, row.get("code")?))).await?;
        let Some((person, code)) = found else { return Ok(None) };
        let waived_cents = match standing::waive(sql, person, self.waiver.as_ref(), self.now).await? {
            Ok(cents) => cents,
            Err(cents) => return Ok(Some(Err(RewardsDue { cents }))),
        };
        name_account(sql, person, &self.account).await?;
        // Now, while their answers can still be taken out of the figures.
        let was_member = depart(sql, person, Ended::Erased, self.now).await?;
        // Retention does not do this: the answer to a repeat would show whether a forgotten person was a member or never joined.
        let keys = idempotency::forget_person(sql, person, ERASED_AT_ONCE).await?;
        let deleted = anonymize(sql, person, &mailbox, &self.marks, keys < u64::from(ERASED_AT_ONCE), self.now).await?;
        let DeletedActivity { sign_ups, mails, is_whole } = deleted;
        let erased = Erased { was_member, code, waived_cents, sign_ups, mails, mailbox_is_shared: false, is_whole };
        let mailbox_is_shared = is_whole && self.silence(sql, &mailbox).await?;
        if was_member {
            count_member(sql, &mailbox, -1).await?;
        }
        Ok(Some(Ok(Erased { mailbox_is_shared, ..erased })))
    }
}

impl Erase {
    /// No mail goes to the mailbox of someone who was erased, unless another member gets theirs there; returns whether one does.
    async fn silence(&self, sql: &mut dyn Sql, mailbox: &str) -> Result<bool, Failure> {
        let (others, is_shared) = people_of(sql, mailbox).await?;
        let until = self.now.end_of_day().plus(SUPPRESSED_FOR);
        if others == 0 {
            sql.execute("DELETE FROM mailboxes WHERE mailbox = $1", values![mailbox]).await?;
        } else if !is_shared {
            outbox::suppress(sql, mailbox, until).await?;
        }
        if !is_shared {
            outbox::suppress(sql, &tombstone(&self.marks.mailbox), until).await?;
        }
        Ok(is_shared)
    }
}

/// The most rows of one kind that a step deletes or changes: few enough not to delay a sign-up that shares the commit.
const ERASED_AT_ONCE: u32 = 200;

/// Deletes the queued mail of a person's sign-in requests, which are few; returns how much.
async fn forget_sign_in_mail(sql: &mut dyn Sql, person: i64) -> Result<u64, Failure> {
    let mail = "DELETE FROM outbox WHERE sign_in_id IN
                    (SELECT id FROM sign_ins WHERE person_id = $1 ORDER BY created_at LIMIT $2)";
    sql.execute(mail, values![person, ERASED_AT_ONCE]).await
}

/// Deletes a person's queued campaign mail, a few per campaign, and the record that it was queued; returns how much was queued.
async fn forget_campaign_mail(sql: &mut dyn Sql, person: i64) -> Result<u64, Failure> {
    let waiting = "DELETE FROM outbox WHERE campaign_mail_id IN (SELECT id FROM campaign_mails WHERE person_id = $1)";
    let waiting = sql.execute(waiting, values![person]).await?;
    sql.execute("DELETE FROM campaign_mails WHERE person_id = $1", values![person]).await?;
    Ok(waiting)
}

/// What was deleted with a person.
pub(crate) struct DeletedActivity {
    sign_ups: u64,
    mails: u64,
    /// Whether that was all.
    pub is_whole: bool,
}

/// The sign-ups of a person that one step handles.
macro_rules! some_sign_ups {
    ($columns:literal) => {
        concat!("(SELECT ", $columns, " FROM sign_ups WHERE person_id = $1 ORDER BY id LIMIT $2)")
    };
}

/// Deletes a person's sign-ups, sign-in requests and mail, in small steps.
pub(crate) async fn delete_activity(sql: &mut dyn Sql, person: i64) -> Result<DeletedActivity, Failure> {
    let values = values![person, ERASED_AT_ONCE];
    let mail = concat!("DELETE FROM outbox WHERE sign_up_id IN ", some_sign_ups!("id"));
    let mails = sql.execute(mail, values).await? + forget_sign_in_mail(sql, person).await?;
    let mails = mails + forget_campaign_mail(sql, person).await?;
    let sign_ins = "DELETE FROM sign_ins WHERE id IN
                        (SELECT id FROM sign_ins WHERE person_id = $1 ORDER BY created_at LIMIT $2)";
    let sign_ins = sql.execute(sign_ins, values).await?;
    let declined = concat!(
        "UPDATE api_keys SET declined = declined + (SELECT count(*) FROM ",
        some_sign_ups!("key_id, state"),
        " s WHERE s.key_id = api_keys.id AND s.state = 'declined') WHERE id IN (SELECT s.key_id FROM ",
        some_sign_ups!("key_id, state"),
        " s WHERE s.state = 'declined')"
    );
    sql.execute(declined, values).await?;
    let sign_ups = concat!("DELETE FROM sign_ups WHERE id IN ", some_sign_ups!("id"));
    let sign_ups = sql.execute(sign_ups, values).await?;
    Ok(DeletedActivity { sign_ups, mails, is_whole: sign_ups.max(sign_ins) < u64::from(ERASED_AT_ONCE) })
}

/// Replaces a person with a tombstone once all their related records are deleted (`rest_is_gone`: those that the caller deletes);
/// otherwise deletes some of them. Their row is locked, and they are no longer a member.
pub(crate) async fn anonymize(
    sql: &mut dyn Sql,
    person: i64,
    mailbox: &str,
    marks: &AddressMarks,
    rest_is_gone: bool,
    now: Timestamp,
) -> Result<DeletedActivity, Failure> {
    let deleted = delete_activity(sql, person).await?;
    let uncredited = uncredit_spellings(sql, person, mailbox).await?;
    if !(rest_is_gone && deleted.is_whole && uncredited < u64::from(ERASED_AT_ONCE)) {
        return Ok(DeletedActivity { is_whole: false, ..deleted });
    }
    // Now, while they still have an account.
    standing::forget_referrer(sql, person).await?;
    static ANONYMIZE: LazyLock<String> = LazyLock::new(|| {
        format!("UPDATE people SET email = '', email_normalized = $2, mailbox = $3, account = NULL, created_at = 0, left_at = NULL,
            joined_at = CASE WHEN joined_at IS NULL THEN NULL ELSE 0 END, undeliverable_until = NULL, soft_bounces = 0,
            erased_at = $4, session = NULL, wrong_codes = 0, wrong_codes_day = 0, {},
            answered_at = NULL, unwanted_mail = '', wanted_mail = '', language = NULL
        WHERE id = $1", each_answer("own_{} = NULL"))
    });
    let (address, tombstone) = (tombstone(&marks.address), tombstone(&marks.mailbox));
    // Only the day: a time in milliseconds would lead to the row of the audit log that says who was erased then.
    sql.execute(&ANONYMIZE, values![person, &address, &tombstone, now.start_of_day()]).await?;
    participation::forget_times(sql, person, now.start_of_day()).await?;
    // The partners that a mailbox has stopped are deleted with the last person who has the mailbox.
    let stops = "DELETE FROM stopped_partners WHERE mailbox = $1
                 AND NOT EXISTS (SELECT 1 FROM people WHERE email_normalized = $1 AND mailbox = $1)
                 AND NOT EXISTS (SELECT 1 FROM people WHERE mailbox = $1 AND mailbox <> email_normalized)";
    sql.execute(stops, values![mailbox]).await?;
    Ok(deleted)
}

/// No one gets credit for another spelling of a former member's mailbox, because soon nothing shows that there was a member.
/// Works in small steps; returns how many.
async fn uncredit_spellings(sql: &mut dyn Sql, person: i64, mailbox: &str) -> Result<u64, Failure> {
    let plain = "UPDATE people SET uncredited = TRUE WHERE email_normalized = $2 AND mailbox = $2 AND state = 'invited'
                 AND EXISTS (SELECT 1 FROM people gone WHERE gone.id = $1 AND gone.joined_at IS NOT NULL)";
    sql.execute(plain, values![person, mailbox]).await?;
    let tagged = "UPDATE people SET uncredited = TRUE WHERE id IN
                      (SELECT id FROM people
                       WHERE mailbox = $2 AND mailbox <> email_normalized AND state = 'invited' AND uncredited = FALSE LIMIT $3)
                  AND EXISTS (SELECT 1 FROM people gone WHERE gone.id = $1 AND gone.joined_at IS NOT NULL)";
    sql.execute(tagged, values![person, mailbox, ERASED_AT_ONCE]).await
}

/// Lets mail reach the person with that normalized address, or its tombstone, whatever blocked it.
pub struct Unsuppress {
    pub email_normalized: String,
    pub account: AccountId,
}

impl Unit for Unsuppress {
    type Done = Option<Lifted>;
    const HOW: How = How::Transaction;

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
        // A tombstone has no name in the audit log, and gets none.
        if lifted != Lifted::default() && !is_tombstone(&self.email_normalized) {
            let find = "SELECT id FROM people WHERE email_normalized = $1";
            if let Some(person) = sql.value(find, values![&self.email_normalized]).await? {
                name_account(sql, person, &self.account).await?;
            }
        }
        Ok(Some(lifted))
    }
}
