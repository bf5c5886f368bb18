//! Signing in to a member's own page: requests, links and codes, and the resulting sessions.

use crate::campaigns::records::seen_campaign;
use crate::domain::campaign::CampaignSlug;
use crate::domain::email::EmailAddress;
use crate::domain::mail::MailKind;
use crate::domain::mail::budget::day_of;
use crate::domain::mail::lane::Lane;
use crate::domain::mail::policy::Priority;
use crate::domain::secret::session::Nonce;
use crate::domain::sign_in::{REMEMBERED_FOR, SIGN_IN_FOR, SignInId, SignInRef, TRIES, WRONG_CODES_A_DAY, may_mail};
use crate::domain::sign_up::SignUpRef;
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Row, Sql, Unit, expected, values};

/// The person that a link would sign in, while it works.
pub struct FindSignIn(pub SignInRef, pub Timestamp);

impl Unit for FindSignIn {
    type Done = Option<EmailAddress>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self(sign_in, now) = self;
        let find = "SELECT p.email FROM sign_ins i JOIN people p ON p.id = i.person_id
                    WHERE i.id = $1 AND i.created_at = $3 AND i.mailed AND i.used_at IS NULL AND i.expires_at > $2 AND p.state IN ('member', 'left')";
        sql.row(find, values![sign_in.id.0, *now, sign_in.created_at], |row| {
            row.parsed(0, |text| EmailAddress::kept(text).ok())
        })
        .await
    }
}

/// The campaign that a request leads back to, for as long as the request is remembered.
pub struct FindCampaignOfSignIn(pub SignInRef);

impl Unit for FindCampaignOfSignIn {
    type Done = Option<CampaignSlug>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let find = "SELECT c.slug FROM sign_ins i JOIN campaigns c ON c.id = i.campaign_id WHERE i.id = $1 AND i.created_at = $2";
        sql.row(find, values![self.0.id.0, self.0.created_at], |row| row.parsed(0, |slug| slug.parse().ok())).await
    }
}

/// A code is about to be compared. Counts the attempt on each open request that this browser made for the address, and returns
/// the requests whose code may be right.
pub struct TryCode(pub String, pub Timestamp);

impl Unit for TryCode {
    type Done = Vec<SignInRef>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<SignInRef>, Failure> {
        let Self(browser, now) = self;
        let count = "UPDATE sign_ins SET tries = tries + 1
                     WHERE browser = $1 AND used_at IS NULL AND expires_at > $2 AND tries < $3
                     RETURNING id, created_at, CASE WHEN mailed THEN person_id END AS person";
        let open = |row: &Row<'_>| {
            let sign_in = SignInRef { id: SignInId(row.get("id")?), created_at: row.get("created_at")? };
            Ok((sign_in, row.get::<Option<i64>>("person")?))
        };
        let mut open = sql.rows(count, values![browser, *now, TRIES], open).await?;
        open.sort_unstable_by_key(|(sign_in, _)| sign_in.id);
        // Counted as wrong until it proves right; for no person, if no one can sign in.
        let person = open.iter().find_map(|(_, person)| *person);
        let wrong = "UPDATE people SET wrong_codes_day = $2,
                         wrong_codes = CASE WHEN wrong_codes_day = $2 THEN wrong_codes ELSE 0 END + 1
                     WHERE id = $1 AND (wrong_codes_day <> $2 OR wrong_codes < $3)";
        let may = sql.execute(wrong, values![person, day_of(*now), WRONG_CODES_A_DAY]).await? == 1;
        let mailed = open.iter().filter(|(_, person)| may && person.is_some());
        Ok(mailed.map(|(sign_in, _)| *sign_in).collect())
    }
}

/// Signs in the person who confirmed a sign-up, with their existing session or else with this one. None if the sign-up does not
/// make them a member.
pub struct EnterByJoining(pub SignUpRef, pub Nonce);

impl Unit for EnterByJoining {
    type Done = Option<Nonce>;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Option<Nonce>, Failure> {
        let Self(sign_up, session) = self;
        let enter = "UPDATE people SET session = coalesce(session, $3)
                     WHERE state = 'member' AND id =
                         (SELECT person_id FROM sign_ups WHERE id = $1 AND created_at = $2 AND state = 'confirmed')
                     RETURNING session";
        let values = values![sign_up.id.0, sign_up.created_at, session.as_str()];
        sql.row(enter, values, |row| row.parsed(0, Nonce::read)).await
    }
}

/// A person who signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedIn {
    pub session: Nonce,
    /// The campaign that they came from.
    pub campaign: Option<CampaignSlug>,
}

/// A person typed an address in a browser. A member, or a person who left, is mailed a link and a code, unless their mailbox has
/// reached its limit. A person who has not confirmed yet gets the confirmation mail again.
pub struct AskSignIn {
    pub email_normalized: String,
    pub mailbox: String,
    pub browser: String,
    /// The one that they want to return to.
    pub campaign: Option<CampaignSlug>,
    pub lane: Lane,
    pub now: Timestamp,
}

/// A person who may be mailed.
#[derive(Default)]
struct SignInTarget {
    /// None if no one may be mailed.
    id: Option<i64>,
    email: String,
    /// A member, or a person who left and is still on record.
    may_sign_in: bool,
}

/// Runs the same statements for every address, because the response time reveals their number.
impl Unit for AskSignIn {
    type Done = ();
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        // Everything about the mailbox waits meanwhile, even if no one has the mailbox.
        sql.lock(&self.mailbox).await?;
        let asked = self.find(sql).await?;
        let has_room = self.has_room(sql).await?;
        let person = asked.id.filter(|_| asked.may_sign_in && has_room);
        let id = self.note(sql, person).await?;
        let mail = "INSERT INTO outbox (sign_in_id, kind, recipient, created_at, send_after, lane)
                    SELECT i.id, $2, $3, $4, $4, $5 FROM sign_ins i WHERE i.id = $1 AND i.mailed";
        // The mail goes to the address they joined with, not to the one typed just now.
        let values = values![id, MailKind::SignIn.name(), &asked.email, self.now, self.lane.number()];
        sql.execute(mail, values).await?;
        self.remind(sql, asked.id.filter(|_| !asked.may_sign_in), &asked.email).await
    }
}

impl AskSignIn {
    /// The person who has the address and may be mailed at all.
    async fn find(&self, sql: &mut dyn Sql) -> Result<SignInTarget, Failure> {
        let find = "SELECT p.id, p.email, p.state IN ('member', 'left') AS may_sign_in FROM people p
                    WHERE p.email_normalized = $1 AND coalesce(p.undeliverable_until <= $2, TRUE) AND NOT EXISTS
                        (SELECT 1 FROM mailboxes m WHERE m.mailbox = p.mailbox
                         AND (m.suppressed_until > $2 OR m.complained_at IS NOT NULL))";
        let asked = |row: &Row<'_>| {
            Ok(SignInTarget { id: row.get("id")?, email: row.get("email")?, may_sign_in: row.get("may_sign_in")? })
        };
        Ok(sql.row(find, values![&self.email_normalized, self.now], asked).await?.unwrap_or_default())
    }

    /// Stores the request, without a person if no one can sign in with it, so that it is soon deleted.
    async fn note(&self, sql: &mut dyn Sql, person: Option<i64>) -> Result<i64, Failure> {
        let note = concat!(
            "INSERT INTO sign_ins (person_id, browser, mailed, mailbox, created_at, expires_at, campaign_id)
             VALUES ($1, $2, $3, $4, $5, $6, ",
            seen_campaign!("$7"),
            ") RETURNING id"
        );
        let (mailbox, expires_at) = (person.map(|_| &self.mailbox), self.now.plus(SIGN_IN_FOR));
        let campaign = self.campaign.as_ref().map(CampaignSlug::as_str);
        let values = values![person, &self.browser, person.is_some(), mailbox, self.now, expires_at, campaign];
        expected(sql.insert(note, values).await?)
    }

    /// Whether the mailbox may get another mail, counting all its addresses.
    async fn has_room(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let sent =
            "SELECT created_at FROM sign_ins WHERE mailbox = $1 AND created_at > $2 ORDER BY created_at DESC LIMIT 20";
        let since = self.now.minus(REMEMBERED_FOR);
        let sent: Vec<Timestamp> = sql.rows(sent, values![&self.mailbox, since], |row| row.get(0)).await?;
        Ok(may_mail(&sent, self.now))
    }

    /// Sends the mail of the newest pending sign-up again, under the caps for such mail. Not if it is waiting or was never sent:
    /// mail that the operator held or dropped stays so.
    async fn remind(&self, sql: &mut dyn Sql, person: Option<i64>, email: &str) -> Result<(), Failure> {
        let remind = "
            INSERT INTO outbox (sign_up_id, kind, recipient, created_at, send_after, lane, priority)
            SELECT s.id, $3, $4, $2, $2, $5, $6 FROM sign_ups s WHERE s.id =
                (SELECT id FROM sign_ups
                 WHERE person_id = $1 AND state = 'pending' AND expires_at > $2 AND mailed_at IS NOT NULL
                 ORDER BY updated_at DESC, id DESC LIMIT 1)
            ON CONFLICT (sign_up_id) DO NOTHING";
        let (kind, lane) = (MailKind::Confirm.name(), self.lane.number());
        sql.execute(remind, values![person, self.now, kind, email, lane, Priority::Reminder.number()]).await.map(|_| ())
    }
}

/// Uses a request once: signs the person in, with their existing session or else with this one. None if it cannot be used.
pub struct UseSignIn {
    pub sign_in: SignInRef,
    pub by_code: bool,
    pub session: Nonce,
    pub now: Timestamp,
}

impl Unit for UseSignIn {
    type Done = Option<SignedIn>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Option<SignedIn>, Failure> {
        let once = "UPDATE sign_ins SET used_at = $2
                    WHERE id = $1 AND created_at = $3 AND mailed AND used_at IS NULL AND expires_at > $2 AND EXISTS
                        (SELECT 1 FROM people p WHERE p.id = sign_ins.person_id AND p.state IN ('member', 'left'))
                    RETURNING person_id, (SELECT c.slug FROM campaigns c WHERE c.id = sign_ins.campaign_id) AS slug";
        let values = values![self.sign_in.id.0, self.now, self.sign_in.created_at];
        let read = |row: &Row<'_>| {
            let campaign = row.get::<Option<&str>>("slug")?.and_then(|slug| slug.parse().ok());
            Ok((row.get::<i64>("person_id")?, campaign))
        };
        let Some((person, campaign)) = sql.row(once, values, read).await? else { return Ok(None) };
        let enter = "UPDATE people SET session = coalesce(session, $2),
                         wrong_codes = CASE WHEN $3 AND wrong_codes > 0 THEN wrong_codes - 1 ELSE wrong_codes END
                     WHERE id = $1 AND state IN ('member', 'left') RETURNING session";
        let values = values![person, self.session.as_str(), self.by_code];
        let session = sql.row(enter, values, |row| row.parsed(0, Nonce::read)).await?;
        Ok(session.map(|session| SignedIn { session, campaign }))
    }
}
