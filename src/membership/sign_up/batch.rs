//! The single statement that signs up a whole batch (`batch.rs` gathers it).

use std::sync::LazyLock;

use crate::domain::answers::Answers;
use crate::domain::language::Language;
use crate::domain::partner::idempotency::{KEYS_COUNTED_FOR, MOST_KEYS};
use crate::domain::sign_up::{CONSENT_VERSION, ClientName, NewSignUp, PENDING_FOR, POSTS_PENDING, Refused, SignedUp};
use crate::membership::sign_up::{ANSWERS, COLUMNS, MERGE, SignUp, each_answer, no_sooner, was_member_there};
use crate::partners::idempotency::first_answer;
use crate::store::postgres::batch::{BatchOutcome, Batched, Keyed};
use crate::store::postgres::connection::{Parameter, PgConnection, PgRow};
use crate::store::sql::{Failure, Row, Value, values};

/// Does what nearly every sign-up needs, for the whole batch. A sign-up is done completely or not at all: it stops if its person
/// is neither known nor added, or if its partner has used enough keys for that person. A known person costs as much as a new one,
/// so that timing reveals nothing: an insert is tried for both, and both rows are locked the way the foreign key of a new sign-up
/// locks them. Newer mail replaces mail that waits; mail that is being sent stays. The replacement has a new id, so that a late
/// worker cannot settle it.
static SIGN_UP: LazyLock<String> = LazyLock::new(|| {
    let arrays: Vec<_> = (FIRST_ANSWER..).zip(Answers::NAMES).map(|(number, _)| format!("${number}::text[]")).collect();
    STATEMENT
        .replace("{arrays}", &arrays.join(", "))
        .replace("{columns}", COLUMNS)
        .replace("{answers}", &ANSWERS)
        .replace("{each_answer}", &each_answer("j.{}"))
        .replace("{merge}", &MERGE)
        .replace("{keys}", &MOST_KEYS.to_string())
        .replace("{counted}", &KEYS_COUNTED_FOR.as_millis().to_string())
});

/// The parameter number of the first answer.
const FIRST_ANSWER: usize = 4 + ASKED;

const STATEMENT: &str = concat!(
    "
    WITH asked AS (
        SELECT * FROM unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::text[],
                             $11::bigint[], $12::bigint[], $13::boolean[], $14::boolean[], $15::text[], $16::text[],
                             $17::text[], $18::text[], $19::text[], $20::text[], $21::text[], $22::text[], $23::bigint[],
                             {arrays}) WITH ORDINALITY
        AS asked (email, email_normalized, mailbox, code, key_id, partner_id, ref_code, now, lane, proven, disposable,
                  tombstone, channel, client, notice, language, name, input, join_site, savings, {answers}, n)
    ), named AS (
        SELECT a.n, k.operation = 'sign_up' AND k.input = a.input AS is_same, k.link, k.joined_count, k.savings, k.attributed
        FROM asked a JOIN idempotency_keys k ON k.partner_id = a.partner_id AND k.key = a.name
    ), job AS (
        SELECT * FROM asked WHERE n NOT IN (SELECT n FROM named)
    ), setup AS (
        SELECT signups_paused AS paused, member_count FROM installation WHERE id = 1
    ), known AS (
        SELECT j.n, p.id, p.code, p.mailbox, p.state = 'member' AS is_member,
               CASE WHEN j.partner_id IS NOT NULL THEN 0 ELSE
                   (SELECT min(free) FROM generate_series(1::bigint, $3::bigint) free WHERE NOT EXISTS
                       (SELECT FROM sign_ups s WHERE s.person_id = p.id AND coalesce(s.partner_id, 0) = 0 AND s.slot = free
                        AND s.state = 'pending')) END AS slot
        FROM job j JOIN people p ON p.email_normalized = j.email_normalized
        WHERE NOT (SELECT paused FROM setup)
          AND NOT EXISTS (SELECT FROM sign_ups s WHERE s.person_id = p.id AND coalesce(s.partner_id, 0) = coalesce(j.partner_id, 0)
                          AND s.state = 'pending' AND s.expires_at <= j.now)
          AND (j.name IS NULL OR {keys} > (SELECT count(*) FROM (SELECT FROM idempotency_keys k WHERE k.person_id = p.id
                          AND k.partner_id = j.partner_id AND k.created_at > j.now - {counted} LIMIT {keys}) used))
        FOR KEY SHARE OF p
    ), added AS (
        INSERT INTO people (email, email_normalized, mailbox, code, state, created_at, uncredited)
        SELECT email, email_normalized, mailbox, code, 'invited', now, ",
    was_member_there!("job.tombstone"),
    " FROM job
        WHERE NOT (SELECT paused FROM setup)
        ON CONFLICT DO NOTHING
        RETURNING id, email_normalized, code, mailbox
    ), silenced AS (
        INSERT INTO mailboxes (mailbox, suppressed_until)
        SELECT DISTINCT ON (j.mailbox) j.mailbox, gone.suppressed_until
        FROM job j JOIN mailboxes gone ON gone.mailbox = j.tombstone
        WHERE gone.suppressed_until > j.now AND NOT (SELECT paused FROM setup) ORDER BY j.mailbox
        ",
    no_sooner!(),
    "
    ), person AS (
        SELECT n, id, code, mailbox, is_member, slot FROM known
        UNION ALL
        SELECT j.n, a.id, a.code, a.mailbox, FALSE, CASE WHEN j.partner_id IS NOT NULL THEN 0 ELSE 1 END
        FROM added a JOIN job j USING (email_normalized)
    ), referral AS (
        SELECT p.n, r.id AS referrer_id
        FROM person p JOIN job j USING (n) JOIN people r ON r.code = j.ref_code AND r.mailbox <> p.mailbox
             AND r.mailbox <> j.tombstone
    ), signed AS (
        INSERT INTO sign_ups ({columns}, {answers})
        SELECT p.id, j.key_id, j.partner_id, 'pending', referrer_id, $1, j.now, j.now, j.now + $2, p.slot, j.disposable,
               j.channel, j.client, j.notice, j.language, {each_answer}
        FROM person p JOIN job j USING (n) LEFT JOIN referral USING (n) WHERE p.slot IS NOT NULL
        {merge}
        RETURNING id, person_id
    ), mailed AS (
        INSERT INTO outbox (sign_up_id, kind, recipient, created_at, send_after, lane, priority)
        SELECT s.id, CASE WHEN p.is_member THEN 'already_member' ELSE 'confirm' END, j.email, j.now, j.now, j.lane,
               j.proven::int
        FROM signed s JOIN person p ON p.id = s.person_id JOIN job j USING (n)
        ON CONFLICT (sign_up_id) DO UPDATE
        SET id = excluded.id, kind = excluded.kind, recipient = excluded.recipient, created_at = excluded.created_at,
            send_after = excluded.send_after, attempts = 0, first_attempt_at = NULL, leased_by = NULL, last_error = NULL,
            given_up_at = NULL, lane = excluded.lane, priority = excluded.priority, held_at = NULL
        WHERE outbox.leased_until <= excluded.created_at
    ), kept AS (
        INSERT INTO idempotency_keys (partner_id, key, operation, input, person_id, sign_up_id, link, joined_count, savings,
                                      attributed, created_at, closes_at)
        SELECT j.partner_id, j.name, 'sign_up', j.input, p.id, s.id, j.join_site || '/joinus' || p.code,
               (SELECT member_count FROM setup), j.savings, referrer_id IS NOT NULL, j.now, j.now + $2
        FROM job j JOIN person p USING (n) JOIN signed s ON s.person_id = p.id LEFT JOIN referral USING (n)
        WHERE j.name IS NOT NULL
    )
    SELECT k.n IS NOT NULL AS was_answered, h.paused, s.id IS NOT NULL AS is_done, h.member_count, p.code,
           referrer_id IS NOT NULL AS has_referrer, k.is_same, k.link, k.joined_count, k.savings, k.attributed
    FROM asked j CROSS JOIN setup h LEFT JOIN person p USING (n) LEFT JOIN referral USING (n)
    LEFT JOIN signed s ON s.person_id = p.id LEFT JOIN named k USING (n)
    ORDER BY j.n"
);

impl Batched for SignUp {
    /// The form in which addresses are compared, and the mailbox.
    type Key = (String, String);

    const POOL: &'static str = "sign_ups";
    const TASK: &'static str = "the sign-ups";
    const LOCK_TRIES: usize = 1;
    const ALONE_AS_BATCH: bool = false;

    fn key(&self) -> Self::Key {
        let email = &self.new.person.email;
        (email.normalized(), email.mailbox())
    }

    async fn together(
        jobs: &[Keyed<Self>],
        connection: &mut PgConnection,
    ) -> Result<Vec<BatchOutcome<Self::Done>>, Failure> {
        // The statement does not handle sandboxes.
        if jobs.iter().any(|job| job.unit.new.person.email.scope().is_some()) {
            return Ok(jobs.iter().map(|_| BatchOutcome::Alone).collect());
        }
        // It sees the tables as they were before it, so it would add the same person twice.
        let of_one_person = || jobs.chunk_by(|a, b| a.key == b.key);
        let firsts: Vec<_> = of_one_person().filter_map(<[Keyed<Self>]>::first).collect();
        let rows = sign_up(&firsts, connection).await?;
        let mut outcomes = Vec::with_capacity(jobs.len());
        for (of_one, row) in of_one_person().zip(&rows) {
            outcomes.push(done(&Row(row))?);
            outcomes.extend(of_one.iter().skip(1).map(|_| BatchOutcome::Again));
        }
        Ok(outcomes)
    }
}

async fn sign_up(jobs: &[&Keyed<SignUp>], connection: &PgConnection) -> Result<Vec<PgRow>, Failure> {
    let asked = columns(jobs.iter().copied().map(asked));
    let texts: Vec<_> = jobs.iter().map(|job| job.unit.new.answers.texts()).collect();
    let answers = columns(texts.iter().map(|texts| texts.each_ref().map(|text| text.as_deref().into())));
    let pending_for = i64::try_from(PENDING_FOR.as_millis()).unwrap_or(i64::MAX);
    let fixed = values![CONSENT_VERSION, pending_for, POSTS_PENDING as i64];
    let fixed = fixed.iter().map(|value| value as Parameter<'_>);
    let listed = asked.iter().chain(&answers).map(|column| column as Parameter<'_>);
    connection.query(&SIGN_UP, &fixed.chain(listed).collect::<Vec<_>>()).await
}

/// How many columns of `asked` come before the answers.
const ASKED: usize = 20;

/// The columns of `asked` before the answers.
fn asked(job: &Keyed<SignUp>) -> [Value<'_>; ASKED] {
    let SignUp { new, now } = &job.unit;
    let NewSignUp { person, partner, request, evidence, .. } = new;
    let (partner, request) = (partner.as_ref(), request.as_ref());
    [
        person.email.as_typed().into(),
        (&job.key.0).into(),
        (&job.key.1).into(),
        (&person.code).into(),
        partner.map(|partner| partner.key.as_str()).into(),
        partner.map(|partner| partner.id).into(),
        new.ref_code.as_ref().into(),
        (*now).into(),
        new.lane.number().into(),
        new.proven.into(),
        new.disposable.into(),
        person.tombstone.as_str().into(),
        evidence.channel.name().into(),
        evidence.client.as_ref().map(ClientName::as_str).into(),
        (&*evidence.notice).into(),
        new.language.map(Language::code).into(),
        request.map(|request| request.key.as_str()).into(),
        request.map(|request| request.input.newest.as_str()).into(),
        request.map(|request| &*request.join_site).into(),
        request.map(|request| request.savings).into(),
    ]
}

/// The values of a list, column by column.
pub(crate) fn columns<'a, const N: usize>(rows: impl Iterator<Item = [Value<'a>; N]>) -> [Vec<Value<'a>>; N] {
    let mut columns = [(); N].map(|()| Vec::new());
    for row in rows {
        columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }
    columns
}

fn done(row: &Row<'_>) -> Result<BatchOutcome<Result<SignedUp, Refused>>, Failure> {
    // A repeat gets the first answer, even while sign-ups are paused.
    if row.get("was_answered")? {
        return first_answer(row).map(BatchOutcome::Done);
    }
    if row.get("paused")? {
        return Ok(BatchOutcome::Done(Err(Refused::Paused)));
    }
    // A code was taken, a pending sign-up had expired, or another node was faster.
    if !row.get("is_done")? {
        return Ok(BatchOutcome::Alone);
    }
    let (joined_count, code, attributed) = (row.get("member_count")?, row.get("code")?, row.get("has_referrer")?);
    Ok(BatchOutcome::Done(Ok(SignedUp { joined_count, code, attributed, replayed: None })))
}
