//! A sign-up as its person sees it, and what the other files read about people and sign-ups.

use std::sync::LazyLock;

use crate::domain::email::EmailAddress;
use crate::domain::language::Language;
use crate::domain::referral::ReferralCode;
use crate::domain::sign_up::{
    DecidedHow, NamedReferrer, NewMember, SignUpId, SignUpRecord, SignUpRef, SignUpState, Silence,
};
use crate::domain::time::Timestamp;
use crate::domain::union::notice::Notice;
use crate::membership::sign_up::{ANSWER_OR_KEPT, answers, each_answer};
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Joins the sign-up `s` that person `p` joined the union with.
macro_rules! joined_by {
    () => {
        "LEFT JOIN sign_ups s ON s.id =
             (SELECT max(id) FROM sign_ups WHERE person_id = p.id AND state = 'confirmed' AND decided_at = p.joined_at)"
    };
}
pub(crate) use joined_by;

/// The current answer of person `p` to one question: as they changed it after joining, else as in `s`, the sign-up that they
/// joined with. For [`each_answer`], or with the name of a column.
macro_rules! answer_now {
    ($name:literal) => {
        concat!("CASE WHEN p.answered_at >= p.joined_at THEN p.own_", $name, " ELSE s.", $name, " END AS ", $name)
    };
}
pub(crate) use answer_now;

/// A sign-up's state; a pending one past its time counts as expired.
macro_rules! state_at {
    ($now:literal) => {
        concat!("CASE WHEN s.state = 'pending' AND s.expires_at <= ", $now, " THEN 'expired' ELSE s.state END")
    };
}
pub(crate) use state_at;

/// Whether sign-up `s` was declined and that can be taken back: it has not expired, its answers still exist, and its person is
/// not a member and has not left since.
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
pub(crate) use can_take_back;

/// A sign-up, as its person sees it.
pub struct FindSignUp(pub SignUpRef, pub Timestamp);

impl Unit for FindSignUp {
    type Done = Option<SignUpRecord>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self(sign_up, now) = self;
        sql.row(&FIND_SIGN_UP, values![sign_up.id.0, *now, sign_up.created_at], record).await
    }
}

/// Whether a code was ever given to anyone, whatever happened to them later.
pub struct IsCodeKnown(pub ReferralCode);

impl Unit for IsCodeKnown {
    type Done = bool;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let known = sql.row("SELECT 1 FROM people WHERE code = $1", values![&self.0], |_| Ok(())).await?;
        Ok(known.is_some())
    }
}

/// Stores the text of a notice, once and forever; every notice that is shown names campaign mail.
pub struct KeepNotice(pub Notice, pub Timestamp);

impl Unit for KeepNotice {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let Self(notice, now) = self;
        // SQLite's trigger against REPLACE refuses rows that ON CONFLICT would skip.
        let keep = "INSERT INTO notices (hash, text, first_shown_at, names_campaign_mail)
                    SELECT $1, $2, CAST($3 AS BIGINT), TRUE WHERE NOT EXISTS (SELECT 1 FROM notices WHERE hash = $1)
                    ON CONFLICT DO NOTHING";
        sql.execute(keep, values![&*notice.hash, &*notice.words, *now]).await.map(|_| ())
    }
}

/// What [`new_member`] reads about sign-up `s` and its person `p`.
pub(crate) static NEW_MEMBER: LazyLock<String> = LazyLock::new(|| {
    format!(
        "p.code, coalesce(p.language, s.language) AS language,
         (SELECT c.slug FROM campaigns c WHERE c.id = s.campaign_id) AS campaign, {}",
        each_answer(&format!("{ANSWER_OR_KEPT} AS {{}}"))
    )
});

pub(crate) fn new_member(row: &Row<'_>) -> Result<NewMember, Failure> {
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
        " AS state, p.email, CASE WHEN s.state = 'confirmed' AND s.decided_at = p.joined_at AND p.state = 'member' THEN p.joined_at END AS joined_at,
          (SELECT named.name FROM partners named WHERE named.id = s.partner_id) AS partner,
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
    let referrer_email = row.get::<Option<&str>>("referrer_email")?.and_then(|email| EmailAddress::kept(email).ok());
    let NewMember { code, language, answers, campaign } = new_member(row)?;
    Ok(SignUpRecord {
        state: row.parsed("state", SignUpState::from_name)?,
        email: row.parsed("email", |text| EmailAddress::kept(text).ok())?,
        code,
        partner: row.get("partner")?,
        answers,
        referrer: row.get::<Option<_>>("referrer_code")?.map(|code| NamedReferrer { code, email: referrer_email }),
        updated_at: row.get("updated_at")?,
        is_member: row.get("is_member")?,
        joined_at: row.get("joined_at")?,
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

/// The mailbox of a sign-up, which never changes. None if the link's sign-up no longer exists, even if another one has its id
/// now.
pub(crate) async fn mailbox_of(sql: &mut dyn Sql, sign_up: SignUpRef) -> Result<Option<String>, Failure> {
    let find = "SELECT mailbox FROM sign_ups s JOIN people p ON p.id = person_id WHERE s.id = $1 AND s.created_at = $2";
    sql.row(find, values![sign_up.id.0, sign_up.created_at], |row| row.get(0)).await
}

/// Decides a sign-up, once.
pub(crate) async fn decide(
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
