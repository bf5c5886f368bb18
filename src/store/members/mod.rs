//! People and what becomes of their sign-ups: codes, confirming (double opt-in), declining; as SQL.

mod code;
pub(super) mod confirm;
mod decline;
mod leave;
pub mod own_page;
pub mod people;
pub mod retention;
pub mod sign_in;
mod withdraw;

use std::sync::LazyLock;

use self::code::{CreateCode, FindCode, IdempotentCode};
use self::decline::{ChooseSilence, Decline, TakeBack};
pub(super) use self::leave::{COUNT_MEMBERS, count_member, delete_activity, depart, people_of};
use self::leave::{Erase, Leave, Revive, Unsuppress};
use self::withdraw::Withdraw;
use super::report::NoteReport;
use super::sign_up::{ANSWER_OR_KEPT, answers, each_answer};
use super::sql::{Failure, Row, Sql, values};
use crate::domain::api_key::KeyId;
use crate::domain::email::EmailAddress;
use crate::domain::language::Language;
use crate::domain::mail::report::{MailReport, ReportOutcome};
use crate::domain::partner::idempotency::IdempotentRequest;
use crate::domain::partner::name::PartnerId;
use crate::domain::person::{AccountId, Erased, Leaving, Lifted, RewardsDue, Waiver};
use crate::domain::referral::ReferralCode;
use crate::domain::secret::mark::AddressMarks;
use crate::domain::sign_up::{
    Confirmation, DecidedHow, Declining, NamedPerson, NamedReferrer, NewMember, NewSignUp, PendingPlace, SeenPage,
    SignUpId, SignUpRecord, SignUpRef, SignUpState, SignedUp, Silence, SilenceChange,
};
use crate::domain::time::Timestamp;
use crate::domain::union::notice::Notice;

/// Joins the sign-up `s` that a person `p` joined by.
macro_rules! joined_by {
    () => {
        "LEFT JOIN sign_ups s ON s.id =
             (SELECT max(id) FROM sign_ups WHERE person_id = p.id AND state = 'confirmed' AND decided_at = p.joined_at)"
    };
}
pub(super) use joined_by;

/// The answers of a person `p` that count: what they changed after joining, else those of the sign-up `s` that they joined by.
macro_rules! answers_now {
    () => {
        "CASE WHEN p.answered_at >= p.joined_at THEN p.own_us_state ELSE s.us_state END AS us_state,
         coalesce(CASE WHEN p.answered_at >= p.joined_at THEN p.own_categories ELSE s.categories END, '') AS categories,
         coalesce(CASE WHEN p.answered_at >= p.joined_at THEN p.own_comments ELSE s.comments END, '') AS comments"
    };
}
pub(super) use answers_now;

/// A sign-up's state; a pending one past its time counts as expired.
macro_rules! state_at {
    ($now:literal) => {
        concat!("CASE WHEN s.state = 'pending' AND s.expires_at <= ", $now, " THEN 'expired' ELSE s.state END")
    };
}
use state_at;

/// Whether a sign-up `s` was declined, and that can be taken back: in its time, while its answers are there to be seen, and unless its
/// person is a member or has left since.
macro_rules! can_take_back {
    ($now:literal) => {
        concat!(
            "s.state = 'declined' AND s.expires_at > ",
            $now,
            " AND s.purged_at IS NULL AND NOT EXISTS (SELECT 1 FROM people who WHERE who.id = s.person_id
                AND (who.state = 'member' OR who.left_at >= s.decided_at))"
        )
    };
}
use can_take_back;

area! {
    /// People, their sign-ups and how many are members.
    MemberStore {
        /// How many members there are now; constant time at any size, never cached.
        own member_count() -> u64;

        /// Writes the sign-up, its person if new, its attribution and its mail. The same partner again while the person has
        /// not decided merges: what is sent replaces, what is left out stays.
        own sign_up(new: NewSignUp, now: Timestamp) -> SignedUp;

        /// The code kept for an address, if there is one; refused while sign-ups are paused.
        read referral_code(email: &EmailAddress) -> Option<ReferralCode> = FindCode { email_normalized: email.normalized() };

        /// The code of the person, who is remembered as `invited` if new.
        write create_referral_code(person: NamedPerson, now: Timestamp) -> ReferralCode = CreateCode { person, now };

        /// The same for a request with an idempotency key: keeps the answer, or returns the first one.
        write idempotent_referral_code(partner: PartnerId, request: IdempotentRequest, person: NamedPerson, now: Timestamp) -> SignedUp
            = IdempotentCode { partner, request, create: CreateCode { person, now } };

        /// A sign-up, as its person is shown it.
        read find_sign_up(sign_up: SignUpRef, now: Timestamp) -> Option<SignUpRecord> {
            |sql| {
                sql.row(&FIND_SIGN_UP, values![sign_up.id.0, *now, sign_up.created_at], record).await
            }
        };

        /// The person clicked: at most one member more, whatever is repeated and however much of it at once. If the answers that
        /// their page showed were replaced since, nothing is confirmed.
        own confirm(sign_up: SignUpRef, seen: SeenPage, now: Timestamp) -> Confirmation;

        /// The person said "this wasn't me": the sign-up is withdrawn, and nothing is silenced but what they ask for.
        write decline(sign_up: SignUpRef, how: DecidedHow, silence: Option<SilenceChange>, now: Timestamp) -> Declining
            = Decline { sign_up, how, silence, now };

        /// What whoever holds a mail's link wants not to be sent; false if there is no such sign-up.
        write choose_silence(sign_up: SignUpRef, silence: SilenceChange, now: Timestamp) -> bool
            = ChooseSilence { sign_up, silence, now };

        /// They take "this wasn't me" back: it is confirmed, and mail reaches them again.
        write take_back(sign_up: SignUpRef, seen: SeenPage, now: Timestamp) -> Confirmation = TakeBack { sign_up, seen, now };

        /// Ends pending sign-ups that were made with a key since that time, some after that place, and deletes their mail; the last
        /// place that was looked at, none at the end, and how many ended.
        write withdraw_sign_ups(key: KeyId, since: Timestamp, after: PendingPlace, now: Timestamp) -> (Option<PendingPlace>, u64)
            = Withdraw { key, since, after, now };

        /// Whether a code was ever given to anyone, whatever became of them.
        read is_code_known(code: ReferralCode) -> bool {
            |sql| {
                let known = sql.row("SELECT 1 FROM people WHERE code = $1", values![code], |_| Ok(())).await?;
                Ok(known.is_some())
            }
        };

        /// Ends the membership of whoever has that address, at once. `account` is what the audit log calls them, unless they
        /// have a name there.
        write leave(email: &EmailAddress, account: AccountId, now: Timestamp) -> Leaving
            = Leave { email_normalized: email.normalized(), account, now };

        /// Deletes what is kept of whoever has that address, but for a tombstone that knows it by its marks. Refused while
        /// rewards are due to them, unless somebody gives those up.
        write erase(email: &EmailAddress, marks: AddressMarks, account: AccountId, waiver: Option<Waiver>, now: Timestamp) -> Option<Result<Erased, RewardsDue>>
            = Erase { email_normalized: email.normalized(), marks, account, waiver, now };

        /// Names somebody again who was erased; false if nobody of that address was.
        write revive(email: &EmailAddress, marks: AddressMarks, now: Timestamp) -> bool
            = Revive { email: email.clone(), marks, now };

        /// Lets mail go to whoever has that normalized address, or its tombstone, whatever kept it from them.
        write unsuppress(email_normalized: String, account: AccountId) -> Option<Lifted>
            = Unsuppress { email_normalized, account };

        /// Keeps the words of a notice, once and for ever; all that are shown name campaign mail.
        write keep_notice(notice: Notice, now: Timestamp) -> () {
            |sql| {
                // SQLite's trigger against REPLACE refuses what ON CONFLICT would pass over.
                let keep = "INSERT INTO notices (hash, text, first_shown_at, names_campaign_mail)
                            SELECT $1, $2, CAST($3 AS BIGINT), TRUE WHERE NOT EXISTS (SELECT 1 FROM notices WHERE hash = $1)
                            ON CONFLICT DO NOTHING";
                sql.execute(keep, values![&*notice.hash, &*notice.words, *now]).await.map(|_| ())
            }
        };

        /// Writes down what a mail server or a mail service reports of a mail that left.
        write note_report(report: MailReport, now: Timestamp) -> ReportOutcome = NoteReport { report, now };
    }
}

/// What [`new_member`] reads, of a sign-up `s` and its person `p`.
static NEW_MEMBER: LazyLock<String> = LazyLock::new(|| {
    format!(
        "p.code, coalesce(p.language, s.language) AS language,
         (SELECT c.slug FROM campaigns c WHERE c.id = s.campaign_id) AS campaign, {}",
        each_answer(&format!("{ANSWER_OR_KEPT} AS {{}}"))
    )
});

fn new_member(row: &Row<'_>) -> Result<NewMember, Failure> {
    Ok(NewMember {
        code: row.get("code")?,
        language: row.get::<Option<&str>>("language")?.and_then(Language::from_code),
        answers: answers(row)?,
        campaign: row.get::<Option<&str>>("campaign")?.and_then(|slug| slug.parse().ok()),
    })
}

static FIND_SIGN_UP: LazyLock<String> = LazyLock::new(|| {
    let what = concat!(
        state_at!("$2"),
        " AS state, p.email, (SELECT named.name FROM partners named WHERE named.id = s.partner_id) AS partner,
          r.code AS referrer_code, r.email AS referrer_email, s.updated_at, p.state = 'member' AS is_member, ",
        can_take_back!("$2"),
        " AS can_take_back, ',' || p.unwanted_mail || ',' LIKE '%,already_member,%' AS wants_no_more,
          EXISTS (SELECT 1 FROM stopped_partners x WHERE x.mailbox = p.mailbox
                  AND coalesce(x.partner_id, 0) = coalesce(s.partner_id, 0)) AS is_stopped,
          (SELECT m.suppressed_until FROM mailboxes m WHERE m.mailbox = p.mailbox AND m.suppressed_until > $2) AS silent_until"
    );
    format!(
        "SELECT {what}, {} FROM sign_ups s JOIN people p ON p.id = s.person_id LEFT JOIN people r ON r.id = s.referrer_id
         WHERE s.id = $1 AND s.created_at = $3",
        *NEW_MEMBER
    )
});

fn record(row: &Row<'_>) -> Result<SignUpRecord, Failure> {
    let silent_until: Option<Timestamp> = row.get("silent_until")?;
    let NewMember { code, language, answers, campaign } = new_member(row)?;
    Ok(SignUpRecord {
        state: row.parsed("state", SignUpState::from_name)?,
        email: row.parsed("email", |text| EmailAddress::kept(text).ok())?,
        code,
        partner: row.get("partner")?,
        answers,
        referrer: match row.get("referrer_code")? {
            Some(code) => {
                let email = row.get::<Option<&str>>("referrer_email")?.and_then(|email| EmailAddress::kept(email).ok());
                Some(NamedReferrer { code, email })
            }
            None => None,
        },
        updated_at: row.get("updated_at")?,
        is_member: row.get("is_member")?,
        language,
        campaign,
        can_take_back: row.get("can_take_back")?,
        silence: Silence {
            again: row.get("wants_no_more")?,
            partner: row.get("is_stopped")?,
            mailbox: silent_until.is_some(),
        },
        silent_until,
    })
}

/// Whose mailbox a sign-up is about; that never changes. None where a link's sign-up is no more, whoever has its id now.
async fn mailbox_of(sql: &mut dyn Sql, sign_up: SignUpRef) -> Result<Option<String>, Failure> {
    let find = "SELECT mailbox FROM sign_ups s JOIN people p ON p.id = person_id WHERE s.id = $1 AND s.created_at = $2";
    sql.row(find, values![sign_up.id.0, sign_up.created_at], |row| row.get(0)).await
}

/// Decides a sign-up, once.
async fn decide(
    sql: &mut dyn Sql,
    sign_up: SignUpId,
    state: SignUpState,
    how: DecidedHow,
    now: Timestamp,
) -> Result<(), Failure> {
    let decide =
        "UPDATE sign_ups SET state = $2, decided_at = $3, decided_how = $4 WHERE id = $1 AND state = 'pending'";
    sql.execute(decide, values![sign_up.0, state.name(), now, how.name()]).await.map(|_| ())
}
