//! People as the operator asks about them: one with everything, some that are looked for, all of them page by page; as SQL.

use super::leave::people_of;
use super::state_at;
use crate::domain::api_key::KeyId;
use crate::domain::catalog::category::CategorySet;
use crate::domain::language::Language;
use crate::domain::mail::budget::day_of;
use crate::domain::person::{
    AccountId, KeptEvidence, MailboxStanding, PersonFile, PersonRecord, PersonState, Referrals, RequestEntry,
    SignInEntry, SignUpEntry, StoppedPartner, UnwantedMail,
};
use crate::domain::sign_up::{Channel, SignUpId, SignUpState};
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;
use crate::store::lease::{mailbox_columns, mailbox_record};
use crate::store::outbox::waiting;
use crate::store::sql::{Failure, Row, Sql, values};

/// A person, as [`person`] reads them: with the sign-up by which they joined, while they are a member.
macro_rules! people {
    ($($which:expr),*) => {
        concat!(
            "SELECT p.id, p.email, p.state, p.code, p.account, p.created_at, p.joined_at, p.left_at, p.erased_at,
                    (SELECT r.code FROM people r WHERE r.id = p.referrer_id),
                    coalesce((SELECT f.members FROM referrers f WHERE f.person_id = p.id), 0),
                    p.undeliverable_until, p.soft_bounces,
                    CASE WHEN p.answered_at >= p.joined_at THEN p.own_us_state ELSE s.us_state END,
                    coalesce(CASE WHEN p.answered_at >= p.joined_at THEN p.own_categories ELSE s.categories END, ''), s.partner,
                    coalesce(CASE WHEN p.answered_at >= p.joined_at THEN p.own_comments ELSE s.comments END, ''), p.answered_at, p.unwanted_mail,
                    p.uncredited, p.language
             FROM people p LEFT JOIN sign_ups s ON s.id =
                 (SELECT max(id) FROM sign_ups WHERE person_id = p.id AND state = 'confirmed' AND decided_at = p.joined_at)
             WHERE ",
            $($which,)*
            ""
        )
    };
}

/// A sign-up, as [`entry`] reads it at the time `$2`.
macro_rules! entries {
    ($($which:expr),*) => {
        concat!(
            "SELECT s.id, p.email, s.partner, s.key_id, ",
            state_at!("$2"),
            ", s.us_state, s.categories, coalesce(s.comments, ''), (SELECT r.code FROM people r WHERE r.id = s.referrer_id),
               s.disposable, s.created_at, s.updated_at, s.expires_at, s.decided_at,
               o.id, o.kind, o.created_at, o.send_after, o.attempts, o.last_error, o.given_up_at, o.held_at,
               s.channel, s.client, s.notice, (SELECT n.words FROM notices n WHERE n.hash = s.notice), s.mailed_at, s.decided_how, s.language
             FROM sign_ups s JOIN people p ON p.id = s.person_id LEFT JOIN outbox o ON o.sign_up_id = s.id
             WHERE ",
            $($which,)*
            ""
        )
    };
}

area! {
    /// People as the operator asks about them.
    PeopleStore {
        /// Everything that is kept of the person of that address (the form in which addresses are compared).
        read find_person(email_normalized: String, now: Timestamp) -> Option<PersonFile> {
            |sql| {
                let find = "SELECT id FROM people WHERE email_normalized = $1";
                let person: Option<i64> = sql.row(find, values![email_normalized], |row| row.get(0)).await?;
                match person {
                    Some(person) => file_of(sql, person, *now).await,
                    None => Ok(None),
                }
            }
        };

        /// Those whose address begins with a text, or whose code or account it is; in the order of their addresses.
        read find_people(text: String, most: u32) -> Vec<PersonRecord> {
            |sql| {
                let exact = people!("(p.code = $1 OR p.account = $1) AND p.erased_at IS NULL ORDER BY p.id LIMIT $2");
                let mut found = sql.rows(exact, values![text, *most], person).await?;
                // What comes before the last character of all.
                let end = format!("{text}\u{10ffff}");
                let begins = people!("p.email_normalized >= $1 AND p.email_normalized < $2 AND p.erased_at IS NULL
                                      ORDER BY p.email_normalized LIMIT $3");
                found.extend(sql.rows(begins, values![text, &end, *most], person).await?);
                Ok(found)
            }
        };

        /// Who comes after that id, in the order of ids; those in one state, or all.
        read people_after(id: i64, state: Option<PersonState>, most: u32) -> Vec<PersonRecord> {
            |sql| {
                let after = people!("p.id > $1 AND p.erased_at IS NULL AND ($2 = '' OR p.state = $2) ORDER BY p.id LIMIT $3");
                sql.rows(after, values![*id, state.map_or("", PersonState::name), *most], person).await
            }
        };

        /// The sign-ups that were made with a key, newest first, before that id.
        read sign_ups_of_key(key: KeyId, before: SignUpId, now: Timestamp, most: u32) -> Vec<SignUpEntry> {
            |sql| {
                let of_key = entries!("s.key_id = $1 AND s.id < $3 ORDER BY s.id DESC LIMIT $4");
                sql.rows(of_key, values![key.as_str(), *now, before.0, *most], entry).await
            }
        };
    }
}

/// Everything that is kept of a person.
pub(super) async fn file_of(sql: &mut impl Sql, id: i64, now: Timestamp) -> Result<Option<PersonFile>, Failure> {
    let Some(person) = sql.row(people!("p.id = $1"), values![id], person).await? else { return Ok(None) };
    let more = "SELECT mailbox, CASE WHEN wrong_codes_day = $2 THEN wrong_codes ELSE 0 END FROM people WHERE id = $1";
    let more = sql.row(more, values![id, day_of(now)], |row| Ok((row.get::<String>(0)?, row.get(1)?))).await?;
    let (mailbox, wrong_codes) = more.unwrap_or_default();
    let mailbox = standing(sql, &mailbox).await?;
    let sign_ups = sql.rows(entries!("s.person_id = $1 ORDER BY s.id"), values![id, now], entry).await?;
    // Those who are credited may have signed up long ago.
    let referrals = "SELECT (SELECT count(*) FROM (SELECT person_id FROM sign_ups WHERE referrer_id = $1
                                                   UNION SELECT id FROM people WHERE referrer_id = $1) referred),
                            (SELECT count(*) FROM people p WHERE p.referrer_id = $1 AND p.state = 'member')";
    let read = |row: &Row<'_>| Ok(Referrals { signed_up: row.get(0)?, members: row.get(1)? });
    let referrals = sql.row(referrals, values![id], read).await?.unwrap_or_default();
    let sign_ins = "SELECT created_at, mailed, tries, used_at FROM sign_ins WHERE person_id = $1 ORDER BY id";
    let read = |row: &Row<'_>| {
        Ok(SignInEntry { asked_at: row.get(0)?, mailed: row.get(1)?, tries: row.get(2)?, used_at: row.get(3)? })
    };
    let sign_ins = sql.rows(sign_ins, values![id], read).await?;
    let requests =
        "SELECT partner, key, created_at, confirmed_at FROM idempotency_keys WHERE person_id = $1 ORDER BY id";
    let read = |row: &Row<'_>| {
        Ok(RequestEntry { partner: row.get(0)?, name: row.get(1)?, asked_at: row.get(2)?, confirmed_at: row.get(3)? })
    };
    let requests = sql.rows(requests, values![id], read).await?;
    Ok(Some(PersonFile { person, mailbox, sign_ups, referrals, sign_ins, requests, wrong_codes }))
}

fn person(row: &Row<'_>) -> Result<PersonRecord, Failure> {
    Ok(PersonRecord {
        id: row.get(0)?,
        email: row.get(1)?,
        state: row.parsed(2, PersonState::from_name)?,
        code: row.get(3)?,
        account: row.get::<Option<&str>>(4)?.map(AccountId::kept),
        created_at: row.get(5)?,
        joined_at: row.get(6)?,
        left_at: row.get(7)?,
        erased_at: row.get(8)?,
        referrer: row.get(9)?,
        referred: row.get(10)?,
        undeliverable_until: row.get(11)?,
        soft_bounces: row.get(12)?,
        us_state: row.get::<Option<&str>>(13)?.and_then(UsState::from_code),
        categories: CategorySet::from_slugs(row.get(14)?),
        source: row.get(15)?,
        comments: row.get(16)?,
        answered_at: row.get(17)?,
        unwanted_mail: UnwantedMail::from_names(row.get(18)?),
        uncredited: row.get(19)?,
        language: row.get::<Option<&str>>(20)?.and_then(Language::from_code),
    })
}

fn entry(row: &Row<'_>) -> Result<SignUpEntry, Failure> {
    let mail = row.get::<Option<i64>>(14)?.map(|_| waiting(row, 14)).transpose()?;
    Ok(SignUpEntry {
        id: SignUpId(row.get(0)?),
        email: row.get(1)?,
        source: row.get(2)?,
        key: row.get(3)?,
        state: row.parsed(4, SignUpState::from_name)?,
        us_state: row.get::<Option<&str>>(5)?.and_then(UsState::from_code),
        categories: CategorySet::from_slugs(row.get(6)?),
        comments: row.get(7)?,
        referrer: row.get(8)?,
        disposable: row.get(9)?,
        created_at: row.get(10)?,
        updated_at: row.get(11)?,
        expires_at: row.get(12)?,
        decided_at: row.get(13)?,
        mail,
        evidence: KeptEvidence {
            channel: row.get::<Option<&str>>(22)?.and_then(Channel::from_name),
            client: row.get(23)?,
            notice: row.get(24)?,
            notice_words: row.get(25)?,
            mailed_at: row.get(26)?,
            decided_how: row.get(27)?,
            language: row.get::<Option<&str>>(28)?.and_then(Language::from_code),
        },
    })
}

async fn standing(sql: &mut impl Sql, mailbox: &str) -> Result<MailboxStanding, Failure> {
    let look = concat!(
        "SELECT ",
        mailbox_columns!(),
        ", nullif(suppressed_until, 0), complained_at FROM mailboxes WHERE mailbox = $1"
    );
    let read = |row: &Row<'_>| {
        let record = mailbox_record(row)?;
        let (suppressed_until, complained_at) = (row.get(9)?, row.get(10)?);
        Ok(MailboxStanding { record, suppressed_until, complained_at, ..MailboxStanding::default() })
    };
    let found = sql.row(look, values![mailbox], read).await?.unwrap_or_default();
    let stopped = "SELECT partner, stopped_at FROM stopped_partners WHERE mailbox = $1 ORDER BY partner";
    let read = |row: &Row<'_>| Ok(StoppedPartner { partner: row.get(0)?, stopped_at: row.get(1)? });
    let stopped = sql.rows(stopped, values![mailbox], read).await?;
    Ok(MailboxStanding { stopped, shared_with: people_of(sql, mailbox).await?.0.saturating_sub(1), ..found })
}
