//! Reads the mail that is due, along with the facts that decide whether it may go; `lease.rs` decides.
//!
//! Two choices stay in SQL, so that a lease reads and locks few rows however many wait: the first mail of each lane, and
//! locking no more rows than the lease can take.

use crate::domain::language::Language;
use crate::domain::mail::choices::KeptChoices;
use crate::domain::mail::lane::Lane;
use crate::domain::mail::policy::{MailFacts, Priority};
use crate::domain::mail::{DueMail, MAIL_LEASE, MailAbout, MailId, MailKind};
use crate::domain::person::PersonState;
use crate::domain::sign_in::{SignInId, SignInRef};
use crate::domain::sign_up::{SignUpId, SignUpRef, SignUpState};
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, Row, Sql, values};

/// A due mail, and the facts that decide whether it may go.
pub(crate) struct Candidate {
    pub mail: DueMail,
    pub mailbox: String,
    /// Who asked for it: a partner's name, empty for the form.
    pub source: String,
    pub facts: MailFacts,
}

/// A due mail, as [`candidate`] reads it. Expired mail is left to retention, which settles it for good.
macro_rules! due {
    ($hint:literal, $($which:expr),*) => {
        concat!(
            "SELECT o.id, o.sign_up_id, o.sign_in_id, o.kind, o.recipient, o.attempts, o.lane, o.priority, s.partner_id,
                    (SELECT named.name FROM partners named WHERE named.id = s.partner_id) AS partner,
                    coalesce(s.updated_at, i.created_at) AS asked_at,
                    coalesce(s.created_at, i.created_at) AS about_created_at, coalesce(o.first_attempt_at, $1) AS first_attempt_at,
                    EXISTS (SELECT 1 FROM api_keys k WHERE k.id = s.key_id AND k.revoked_at IS NOT NULL) AS key_revoked,
                    (SELECT named.suspended_at IS NOT NULL FROM partners named WHERE named.id = s.partner_id) AS partner_suspended,
                    (SELECT named.mails_a_day FROM partners named WHERE named.id = s.partner_id) AS fixed_quota,
                    s.state AS sign_up_state, p.state AS person_state, i.expires_at AS sign_in_expires_at,
                    i.used_at IS NOT NULL AS sign_in_used, p.code, p.mailbox, p.unwanted_mail, p.undeliverable_until,
                    EXISTS (SELECT 1 FROM stopped_partners x WHERE x.mailbox = p.mailbox AND s.id IS NOT NULL
                            AND coalesce(x.partner_id, 0) = coalesce(s.partner_id, 0)) AS source_stopped,
                    (SELECT m.suppressed_until FROM mailboxes m WHERE m.mailbox = p.mailbox) AS suppressed_until,
                    EXISTS (SELECT 1 FROM mailboxes m WHERE m.mailbox = p.mailbox AND m.complained_at IS NOT NULL) AS complained,
                    coalesce(p.language, CASE WHEN o.kind = 'confirm' THEN s.language END) AS language
             FROM outbox o ", $hint, " LEFT JOIN sign_ups s ON s.id = o.sign_up_id LEFT JOIN sign_ins i ON i.id = o.sign_in_id
             JOIN people p ON p.id = coalesce(s.person_id, i.person_id)
             WHERE ",
            $($which,)*
            " FOR UPDATE OF o SKIP LOCKED"
        )
    };
}

/// Whether a mail `o` of the sign-up `s` can be taken: it is due, no worker has it, and it does not wait for a decision.
macro_rules! is_due {
    () => {
        "o.campaign_mail_id IS NULL AND o.given_up_at IS NULL AND o.held_at IS NULL AND o.send_after <= $1
         AND (o.leased_until <= $1 OR o.leased_until > $2) AND (o.kind <> 'confirm' OR s.expires_at > $1)"
    };
}

/// The oldest of lane `n` that is due.
macro_rules! first_of_lane {
    ($which:literal) => {
        concat!(
            "(SELECT o.id FROM outbox o LEFT JOIN sign_ups s ON s.id = o.sign_up_id WHERE o.lane = n AND ",
            $which,
            is_due!(),
            " ORDER BY o.send_after LIMIT 1)"
        )
    };
}

/// No lease is this long. One that seems to be was written by a wrong clock.
pub(crate) fn never(now: Timestamp) -> Timestamp {
    now.plus(MAIL_LEASE * 20)
}

/// One mail per lane, no matter how many wait in other lanes. If there are more lanes than room, a different lane comes first
/// each time. In each lane, mail with a raised [`Priority`] goes first, so a flood in the lane does not delay it.
pub(crate) async fn first_of_each_lane(
    sql: &mut dyn Sql,
    most: usize,
    now: Timestamp,
) -> Result<Vec<Candidate>, Failure> {
    let firsts = concat!(
        "WITH RECURSIVE lanes (n) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT n + 1 FROM lanes WHERE n + 1 < $3),
         firsts AS (SELECT coalesce(",
        first_of_lane!("o.priority >= 1 AND "),
        ", ",
        first_of_lane!(""),
        ") AS id FROM lanes) ",
        // Checked again on the locked row: another node may have taken the mail in the meantime.
        due!("", "o.id IN (SELECT id FROM firsts) AND ", is_due!(), " ORDER BY (o.lane + $4) % $3 LIMIT $5")
    );
    let lanes = i64::from(Lane::COUNT);
    let values = values![now, never(now), lanes, now.as_millis().rem_euclid(lanes), places(most)];
    sql.rows(firsts, values, candidate).await
}

pub(crate) async fn oldest(sql: &mut dyn Sql, most: usize, now: Timestamp) -> Result<Vec<Candidate>, Failure> {
    let oldest = due!("/*+ INDEXED BY outbox_due */", is_due!(), " ORDER BY o.send_after LIMIT $3");
    sql.rows(oldest, values![now, never(now), places(most)], candidate).await
}

fn candidate(row: &Row<'_>) -> Result<Candidate, Failure> {
    let (kind, attempts) = (row.parsed("kind", MailKind::from_name)?, row.get("attempts")?);
    let priority = Priority::from_number(row.get("priority")?);
    let facts = MailFacts {
        kind,
        priority,
        attempts,
        key_revoked: row.get("key_revoked")?,
        partner_suspended: row.get("partner_suspended")?,
        fixed_quota: row.get("fixed_quota")?,
        sign_up: row.get::<Option<&str>>("sign_up_state")?.and_then(SignUpState::from_name),
        person: row.parsed("person_state", PersonState::from_name)?,
        sign_in_expires_at: row.get("sign_in_expires_at")?,
        sign_in_used: row.get("sign_in_used")?,
        // None of these is about a campaign.
        choices: KeptChoices { unwanted: row.get("unwanted_mail")?, wanted: String::new() }.read(false),
        source_stopped: row.get("source_stopped")?,
        undeliverable_until: row.get("undeliverable_until")?,
        suppressed_until: row.get("suppressed_until")?,
        complained: row.get("complained")?,
    };
    let created_at = row.get("about_created_at")?;
    let mail = DueMail {
        id: MailId(row.get("id")?),
        about: match row.get("sign_in_id")? {
            Some(id) => MailAbout::SignIn(SignInRef { id: SignInId(id), created_at }),
            None => MailAbout::SignUp(SignUpRef { id: SignUpId(row.get("sign_up_id")?), created_at }),
        },
        kind,
        recipient: row.get("recipient")?,
        partner_id: row.get("partner_id")?,
        partner: row.get("partner")?,
        asked_at: row.get("asked_at")?,
        code: row.get("code")?,
        attempts,
        first_attempt_at: row.get("first_attempt_at")?,
        lane: Lane::from_number(row.get("lane")?),
        language: row.get::<Option<&str>>("language")?.and_then(Language::from_code),
        is_reminder: priority == Priority::Reminder,
    };
    let source = mail.source().to_owned();
    Ok(Candidate { mail, mailbox: row.get("mailbox")?, source, facts })
}

fn places(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}
