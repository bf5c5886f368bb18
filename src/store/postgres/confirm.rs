//! Confirming on PostgreSQL, tuned by hand: a transaction in one round trip (pipelining).
//!
//! As a unit of nine statements it took 1.7 times the processor time of a node (`bench --against`), for what every member does
//! once; on SQLite a statement more is nothing, and the unit of `members.rs` stays. The suite holds both to the same.

use std::sync::LazyLock;

use super::connection::{Parameter, PgConnection};
use super::pool::Work;
use crate::domain::language::Language;
use crate::domain::mail::budget::day_of;
use crate::domain::sign_up::{Confirmation, DecidedHow, SeenPage, SignUpRef, SignUpState};
use crate::domain::time::Timestamp;
use crate::store::members::credited;
use crate::store::sign_up::{ANSWER_OR_KEPT, each_answer};
use crate::store::sql::{Failure, Row};

/// Serializes what is decided about one mailbox: whether somebody of it joined before cannot be told by locking rows.
const LOCK_MAILBOX: &str = "
    SELECT pg_advisory_xact_lock(hashtextextended(p.mailbox, 1970102369))
    FROM sign_ups s JOIN people p ON p.id = s.person_id WHERE s.id = $1 AND s.created_at = $2";

/// The counter comes last, because every confirmation of the union waits for its row: it asks for what the others did, or
/// PostgreSQL would leave what nobody asks for to the end, and hold that row while it waits for a mail's.
static CONFIRM: LazyLock<String> =
    LazyLock::new(|| [BEGIN, &each_answer(&format!("{{}} = {ANSWER_OR_KEPT}")), END].concat());

const BEGIN: &str = "
    WITH found AS (
        SELECT state, updated_at, expires_at FROM sign_ups WHERE id = $1 AND created_at = $8
    ), confirmed AS (
        UPDATE sign_ups s SET state = 'confirmed', decided_at = $3, decided_how = $5, notice = coalesce($6, notice), ";

const END: &str = concat!(
    "
        WHERE id = $1 AND created_at = $8 AND state = 'pending' AND expires_at > $3 AND updated_at = coalesce($2, updated_at)
        RETURNING id, person_id, CASE WHEN disposable THEN NULL ELSE referrer_id END AS referrer_id, partner_id, disposable
    ), forgotten AS (
        DELETE FROM outbox o USING confirmed c WHERE o.sign_up_id = c.id RETURNING o.id
    ), named AS (
        UPDATE idempotency_keys k SET confirmed_at = $3 FROM confirmed c
        WHERE k.sign_up_id = c.id AND k.confirmed_at IS NULL AND k.closed_at IS NULL AND k.closes_at > $3
        RETURNING k.key, k.partner_id
    ), recorded AS (
        INSERT INTO partner_events (partner_id, idempotency_key, kind, at)
        SELECT n.partner_id, n.key, 'sign_up.confirmed', $3 FROM named n
        RETURNING id, partner_id
    ), notified AS (
        INSERT INTO webhook_deliveries (endpoint_id, event_id, send_after)
        SELECT e.id, r.id, $3
        FROM recorded r JOIN webhook_endpoints e ON e.partner_id = r.partner_id AND e.disabled_at IS NULL
        RETURNING id
    ), joined AS (
        UPDATE people p SET
            state = 'member',
            referrer_id = ",
    credited!("p", "c.referrer_id"),
    ",
            joined_at = $3, own_us_state = NULL, own_categories = NULL, own_comments = NULL, answered_at = NULL,
            language = coalesce($7, p.language)
        FROM confirmed c WHERE p.id = c.person_id AND p.state <> 'member'
        RETURNING p.id
    ), lifted AS (
        UPDATE mailboxes m SET complained_at = NULL
        FROM confirmed c JOIN people p ON p.id = c.person_id
        WHERE m.mailbox = p.mailbox AND m.complained_at IS NOT NULL
          AND (SELECT count(*) FROM forgotten) + (SELECT count(*) FROM notified) >= 0
        RETURNING m.mailbox
    ), praised AS (
        INSERT INTO source_days (partner_id, day, confirmed, sign_ups_confirmed)
        SELECT partner_id, $4, CASE WHEN NOT disposable AND EXISTS (SELECT FROM joined) THEN 1 ELSE 0 END, 1 FROM confirmed
        WHERE (SELECT count(*) FROM joined) + (SELECT count(*) FROM lifted) >= 0
        ON CONFLICT (coalesce(partner_id, 0), day) DO UPDATE SET confirmed = source_days.confirmed + excluded.confirmed,
            sign_ups_confirmed = source_days.sign_ups_confirmed + 1
        RETURNING id
    ), counted AS (
        UPDATE installation SET member_count = member_count + 1
        WHERE id = 1 AND EXISTS (SELECT FROM joined) AND (SELECT count(*) FROM praised) + (SELECT count(*) FROM lifted) >= 0
        RETURNING id
    )
    SELECT state, EXISTS (SELECT FROM confirmed) AS is_confirmed, EXISTS (SELECT FROM counted) AS is_counted,
           expires_at <= $3 AS has_expired, updated_at <> coalesce($2, updated_at) AS has_changed
    FROM found"
);

pub(super) struct PgConfirm {
    pub sign_up: SignUpRef,
    pub seen: SeenPage,
    pub now: Timestamp,
}

impl Work for PgConfirm {
    type Done = Confirmation;

    async fn apply(&mut self, connection: &mut PgConnection) -> Result<Confirmation, Failure> {
        let seen = self.seen.answers.map(Timestamp::as_millis);
        let (how, notice) = (DecidedHow::Button.name(), self.seen.notice.as_deref());
        let (now, today) = (self.now.as_millis(), day_of(self.now));
        let language = self.seen.language.map(Language::code);
        let (id, created_at) = (self.sign_up.id.0, self.sign_up.created_at.as_millis());
        let values: [Parameter<'_>; 8] = [&id, &seen, &now, &today, &how, &notice, &language, &created_at];
        let row = connection.locked((LOCK_MAILBOX, &[&id, &created_at]), (&CONFIRM, &values)).await?;
        let Some(row) = row else { return Ok(Confirmation::Unknown) };
        let row = Row(&row);
        Ok(match row.parsed("state", SignUpState::from_name)? {
            _ if row.get::<bool>("is_counted")? => Confirmation::Joined,
            _ if row.get::<bool>("is_confirmed")? => Confirmation::AlreadyMember,
            SignUpState::Confirmed => Confirmation::AlreadyMember,
            SignUpState::Declined => Confirmation::Declined,
            SignUpState::Expired => Confirmation::Expired,
            // Retention decides so for good, once it believes the clock.
            SignUpState::Pending if row.get::<bool>("has_expired")? => Confirmation::Expired,
            SignUpState::Pending if row.get::<bool>("has_changed")? => Confirmation::Changed,
            SignUpState::Pending => return Err(Failure::Overtaken),
        })
    }
}
