//! Sign-ups and what becomes of them, as SQL.

use super::people::refuse_if;
use super::pool::{Line, Unit};
use super::{Failure, code, expected, get, mail, number, parsed, time};
use crate::domain::category::CategorySet;
use crate::domain::email::EmailAddress;
use crate::domain::mail::MailKind;
use crate::domain::referral::ReferralCode;
use crate::domain::signup::{
    ANSWERS_KEPT_FOR, CONSENT_VERSION, Confirmation, Declining, NewSignUp, PENDING_FOR, SUPPRESSED_FOR, SignUpId,
    SignUpRecord, SignUpState, SignedUp,
};
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;
use crate::store::{StoreError, Tidied};

pub(super) struct Find {
    pub sign_up: SignUpId,
    pub now: Timestamp,
}

impl Unit for Find {
    type Done = Option<SignUpRecord>;

    async fn apply(&self, line: &mut Line) -> Result<Option<SignUpRecord>, Failure> {
        let sql = "
            SELECT CASE WHEN s.state = 'pending' AND expires_at <= $2 THEN 'expired' ELSE s.state END, email, code,
                   nullif(partner, ''), us_state, categories, coalesce(comments, '') <> '', updated_at
            FROM sign_ups s JOIN people p ON p.id = person_id WHERE s.id = $1";
        let row = line.row(sql, &[&self.sign_up.0, &self.now.as_millis()]).await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(SignUpRecord {
            state: parsed(&row, 0, SignUpState::from_name)?,
            email: parsed(&row, 1, |text| EmailAddress::parse(text).ok())?,
            code: code(&row, 2)?,
            partner: get(&row, 3)?,
            us_state: get::<Option<&str>>(&row, 4)?.and_then(UsState::from_code),
            categories: CategorySet::from_slugs(get(&row, 5)?),
            has_comments: get(&row, 6)?,
            updated_at: time(&row, 7)?,
        }))
    }
}

/// One sign-up in a transaction of its own, step by step: for what a batch cannot decide in one look.
pub(super) struct SignUpAlone {
    pub new: NewSignUp,
    pub now: Timestamp,
}

struct Person {
    id: i64,
    code: ReferralCode,
    mailbox: String,
    is_member: bool,
}

impl Unit for SignUpAlone {
    type Done = SignedUp;

    const SEVERAL: bool = true;

    async fn apply(&self, line: &mut Line) -> Result<SignedUp, Failure> {
        let sql = "SELECT signups_paused, member_count FROM installation WHERE id = 1";
        let house = expected(line.row(sql, &[]).await?)?;
        refuse_if(get(&house, 0)?)?;
        let person = self.find_or_add(line).await?;
        let referrer = match self.new.ref_code {
            Some(code) => {
                let sql = "SELECT id FROM people WHERE code = $1 AND mailbox <> $2";
                let row = line.row(sql, &[&code.as_str(), &person.mailbox]).await?;
                row.map(|row| get::<i64>(&row, 0)).transpose()?
            }
            None => None,
        };
        let sign_up = self.write(line, person.id, referrer).await?;
        let kind = if person.is_member { MailKind::AlreadyMember } else { MailKind::Confirm };
        mail::put(line, sign_up, kind, self.new.person.email.as_typed(), self.now).await?;
        Ok(SignedUp { code: person.code, joined_count: number(&house, 1)?, attributed: referrer.is_some() })
    }
}

impl SignUpAlone {
    async fn find_or_add(&self, line: &Line) -> Result<Person, Failure> {
        let named = &self.new.person;
        let (compared, mailbox) = (named.email.compared(), named.email.mailbox());
        let sql = "SELECT id, code, mailbox, state = 'member' FROM people WHERE compared = $1";
        if let Some(row) = line.row(sql, &[&compared]).await? {
            let (id, is_member) = (get(&row, 0)?, get(&row, 3)?);
            return Ok(Person { id, code: code(&row, 1)?, mailbox: get(&row, 2)?, is_member });
        }
        if line.row("SELECT 1 FROM people WHERE code = $1", &[&named.code.as_str()]).await?.is_some() {
            return Err(Failure::Refused(StoreError::CodeTaken));
        }
        let sql = "INSERT INTO people (email, compared, mailbox, code, state, created_at)
                   VALUES ($1, $2, $3, $4, 'invited', $5) ON CONFLICT DO NOTHING RETURNING id";
        let values: [super::pool::Value<'_>; 5] =
            [&named.email.as_typed(), &compared, &mailbox, &named.code.as_str(), &self.now.as_millis()];
        let row = line.row(sql, &values).await?.ok_or(Failure::Overtaken)?;
        Ok(Person { id: get(&row, 0)?, code: named.code, mailbox, is_member: false })
    }

    /// Replaces the answers of this partner's pending sign-up, or adds one.
    async fn write(&self, line: &Line, person: i64, referrer: Option<i64>) -> Result<i64, Failure> {
        let Self { new, now } = self;
        let partner = new.partner.as_ref().map_or("", |partner| partner.name.as_str());
        let sql = "UPDATE sign_ups SET state = 'expired', decided_at = $3
                   WHERE person_id = $1 AND partner = $2 AND state = 'pending' AND expires_at <= $3";
        line.execute(sql, &[&person, &partner, &now.as_millis()]).await?;
        let sql = concat!(
            "
            INSERT INTO sign_ups (person_id, key_id, partner, state, us_state, categories, comments, referrer_id,
                                  consent_version, created_at, updated_at, expires_at)
            VALUES ($1, $2, $3, 'pending', $4, $5, $6, $7, $8, $9, $9, $10)
            ",
            replacing_answers!(),
            " RETURNING id"
        );
        let row = line
            .row(
                sql,
                &[
                    &person,
                    &new.partner.as_ref().map(|partner| partner.key.as_str()),
                    &partner,
                    &new.us_state.map(|state| state.code()),
                    &new.categories.to_string(),
                    &new.comments.as_ref().map(|comments| comments.as_str()),
                    &referrer,
                    &i64::from(CONSENT_VERSION),
                    &now.as_millis(),
                    &now.plus(PENDING_FOR).as_millis(),
                ],
            )
            .await?;
        get(&expected(row)?, 0)
    }
}

/// Serializes what is decided about one mailbox: whether somebody of it joined before cannot be told by locking rows.
const LOCK_MAILBOX: &str = "
    SELECT pg_advisory_xact_lock(hashtextextended(p.mailbox, 1970102369))
    FROM sign_ups s JOIN people p ON p.id = s.person_id WHERE s.id = $1";

pub(super) struct Confirm {
    pub sign_up: SignUpId,
    pub seen: Option<Timestamp>,
    pub now: Timestamp,
}

/// The counter comes last, because every confirmation of the union waits for its row: it asks for what the others did, or
/// PostgreSQL would leave what nobody asks for to the end, and hold that row while it waits for a mail's.
const CONFIRM: &str = "
    WITH found AS (
        SELECT state, updated_at, expires_at FROM sign_ups WHERE id = $1
    ), decided AS (
        UPDATE sign_ups SET state = CASE WHEN expires_at <= $3 THEN 'expired' ELSE 'confirmed' END, decided_at = $3
        WHERE id = $1 AND state = 'pending' AND (expires_at <= $3 OR updated_at = coalesce($2, updated_at))
        RETURNING id, person_id, referrer_id, state
    ), confirmed AS (
        SELECT * FROM decided WHERE state = 'confirmed'
    ), forgotten AS (
        DELETE FROM outbox o USING confirmed c WHERE o.sign_up_id = c.id RETURNING o.id
    ), joined AS (
        UPDATE people p SET
            state = 'member',
            referrer_id = CASE
                WHEN p.joined_at IS NOT NULL THEN p.referrer_id
                WHEN EXISTS (SELECT FROM people twin WHERE twin.compared = p.mailbox AND twin.mailbox = p.mailbox
                             AND twin.id <> p.id AND twin.joined_at IS NOT NULL) THEN NULL
                WHEN EXISTS (SELECT FROM people twin WHERE twin.mailbox = p.mailbox AND twin.mailbox <> twin.compared
                             AND twin.id <> p.id AND twin.joined_at IS NOT NULL) THEN NULL
                ELSE c.referrer_id END,
            joined_at = $3
        FROM confirmed c WHERE p.id = c.person_id AND p.state <> 'member'
        RETURNING p.id
    ), counted AS (
        UPDATE installation SET member_count = member_count + 1
        WHERE id = 1 AND EXISTS (SELECT FROM joined) AND (SELECT count(*) FROM forgotten) >= 0
        RETURNING id
    )
    SELECT state, (SELECT state FROM decided), EXISTS (SELECT FROM counted),
           expires_at > $3 AND updated_at <> coalesce($2, updated_at)
    FROM found";

impl Unit for Confirm {
    type Done = Confirmation;

    async fn apply(&self, line: &mut Line) -> Result<Confirmation, Failure> {
        let seen = self.seen.map(Timestamp::as_millis);
        let values: [super::pool::Value<'_>; 3] = [&self.sign_up.0, &seen, &self.now.as_millis()];
        let row = line.locked(LOCK_MAILBOX, &self.sign_up.0, CONFIRM, &values).await?;
        let Some(row) = row else { return Ok(Confirmation::Unknown) };
        let decided = get::<Option<&str>>(&row, 1)?.map(|_| parsed(&row, 1, SignUpState::from_name)).transpose()?;
        Ok(match decided {
            Some(SignUpState::Confirmed) if get(&row, 2)? => Confirmation::Joined,
            Some(SignUpState::Confirmed) => Confirmation::AlreadyMember,
            // For good, even on a node whose clock is behind.
            Some(_) => Confirmation::Expired,
            None => match parsed(&row, 0, SignUpState::from_name)? {
                SignUpState::Confirmed => Confirmation::AlreadyMember,
                SignUpState::Declined => Confirmation::Declined,
                SignUpState::Expired => Confirmation::Expired,
                SignUpState::Pending if get(&row, 3)? => Confirmation::Changed,
                SignUpState::Pending => return Err(Failure::Overtaken),
            },
        })
    }
}

pub(super) struct Decline {
    pub sign_up: SignUpId,
    pub now: Timestamp,
}

impl Unit for Decline {
    type Done = Declining;

    async fn apply(&self, line: &mut Line) -> Result<Declining, Failure> {
        let sql = "
            WITH found AS (
                SELECT s.state, s.expires_at <= $2 AS late, p.mailbox
                FROM sign_ups s JOIN people p ON p.id = s.person_id WHERE s.id = $1
            ), declined AS (
                UPDATE sign_ups SET state = 'declined', decided_at = $2
                WHERE id = $1 AND state = 'pending' AND expires_at > $2 RETURNING id
            ), forgotten AS (
                DELETE FROM outbox o USING declined d WHERE o.sign_up_id = d.id
            ), suppressed AS (
                INSERT INTO mailboxes (mailbox, suppressed_until) SELECT mailbox, $3 FROM found
                ON CONFLICT (mailbox) DO UPDATE SET suppressed_until = excluded.suppressed_until
            )
            SELECT state, late, EXISTS (SELECT FROM declined) FROM found";
        let until = self.now.plus(SUPPRESSED_FOR).as_millis();
        let row = line.row(sql, &[&self.sign_up.0, &self.now.as_millis(), &until]).await?;
        let Some(row) = row else { return Ok(Declining::Unknown) };
        Ok(match (parsed(&row, 0, SignUpState::from_name)?, get(&row, 1)?, get(&row, 2)?) {
            (_, _, true) | (SignUpState::Declined, ..) => Declining::Declined,
            (SignUpState::Confirmed, ..) => Declining::Confirmed,
            (SignUpState::Expired, ..) | (SignUpState::Pending, true, _) => Declining::Expired,
            (SignUpState::Pending, false, false) => return Err(Failure::Overtaken),
        })
    }
}

/// Lets pending sign-ups expire and deletes the answers of those that came to nothing, a bounded number at a time.
pub(super) struct Tidy {
    pub now: Timestamp,
}

/// Few enough that a round is over before anybody waits for one of its rows.
const TIDIED_AT_ONCE: i64 = 200;

impl Unit for Tidy {
    type Done = Tidied;

    const SEVERAL: bool = true;

    async fn apply(&self, line: &mut Line) -> Result<Tidied, Failure> {
        // Every node tidies: each takes what no other holds.
        let expire = "
            WITH expired AS (
                UPDATE sign_ups SET state = 'expired', decided_at = $1 WHERE id IN
                    (SELECT id FROM sign_ups WHERE state = 'pending' AND expires_at <= $1
                     ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)
                RETURNING id
            ), forgotten AS (
                DELETE FROM outbox o USING expired e WHERE o.sign_up_id = e.id
            )
            SELECT count(*) FROM expired";
        let purge = "
            UPDATE sign_ups SET us_state = NULL, categories = '', comments = NULL, purged_at = $1 WHERE id IN
                (SELECT id FROM sign_ups WHERE state IN ('expired', 'declined') AND purged_at IS NULL AND updated_at <= $2
                 ORDER BY updated_at LIMIT $3 FOR UPDATE SKIP LOCKED)";
        let now = self.now.as_millis();
        let expired = number(&expected(line.row(expire, &[&now, &TIDIED_AT_ONCE]).await?)?, 0)?;
        let old = self.now.minus(ANSWERS_KEPT_FOR).as_millis();
        let purged = line.execute(purge, &[&now, &old, &TIDIED_AT_ONCE]).await?;
        let small = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        Ok(Tidied { expired: small(expired), purged: small(purged) })
    }
}
