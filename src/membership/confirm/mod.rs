//! Confirming (double opt-in): one rule for one sign-up and for many that share a commit.
//!
//! `ConfirmSql::look` reads the sign-up, `judge` decides it, and the steps write the result. Each statement works on a list
//! called `job`: either one row, whose values are the parameters, for both engines; or many rows, whose columns are arrays, for
//! batches on PostgreSQL (`batch.rs`).

pub mod batch;

use std::sync::LazyLock;

use crate::domain::language::Language;
use crate::domain::mail::budget::day_of;
use crate::domain::partner::name::PartnerId;
use crate::domain::sign_up::{Confirmation, DecidedHow, NewMember, SeenPage, SignUpId, SignUpRef, SignUpState};
use crate::domain::time::Timestamp;
use crate::domain::webhook::EventKind;
use crate::mail::sources;
use crate::membership::count::count_member;
use crate::membership::records::{NEW_MEMBER, mailbox_of, new_member};
use crate::membership::sign_up::{ANSWER_OR_KEPT, each_answer};
use crate::partners::event_log::record_events;
use crate::store::sql::{Failure, How, Row, Sql, Unit, Value};

/// The person who is credited when `p` of `people` joins. No one new if `p` was a member before or another address of the mailbox
/// ever joined; otherwise the person named in the confirmed sign-up, unless that person has left.
const CREDITED: &str = "
    CASE WHEN p.joined_at IS NOT NULL THEN p.referrer_id
         WHEN p.uncredited THEN NULL
         WHEN EXISTS (SELECT 1 FROM people twin WHERE twin.email_normalized = p.mailbox AND twin.mailbox = p.mailbox
                      AND twin.id <> p.id AND twin.joined_at IS NOT NULL) THEN NULL
         WHEN EXISTS (SELECT 1 FROM people twin WHERE twin.mailbox = p.mailbox AND twin.mailbox <> twin.email_normalized
                      AND twin.id <> p.id AND twin.state IN ('member', 'left')) THEN NULL
         ELSE (SELECT named.id FROM people named WHERE named.id = job.referrer_id AND named.state <> 'left'
               AND named.erased_at IS NULL) END";

type JobColumn = (&'static str, &'static str);

/// The columns to look up, as in `Confirm::asked`.
const ASKED: [JobColumn; 2] = [("id", "BIGINT"), ("created_at", "BIGINT")];

/// The columns to write, as in [`Confirming::values`].
const CONFIRMING: [JobColumn; 12] = [
    ("id", "BIGINT"),
    ("now", "BIGINT"),
    ("how", "TEXT"),
    ("notice", "TEXT"),
    ("language", "TEXT"),
    ("person_id", "BIGINT"),
    ("mailbox", "TEXT"),
    ("referrer_id", "BIGINT"),
    ("partner_id", "BIGINT"),
    ("disposable", "BOOLEAN"),
    ("joins", "BOOLEAN"),
    ("day", "BIGINT"),
];

/// The statements of a confirmation, in order; only the member count comes after them.
pub(crate) struct ConfirmSql {
    pub look: String,
    pub steps: [ConfirmStep; 8],
}

pub(crate) struct ConfirmStep {
    pub sql: String,
    /// The columns of [`CONFIRMING`] that it uses; most statements need a few.
    columns: Vec<usize>,
}

impl ConfirmStep {
    fn over(list: fn(&[JobColumn]) -> String, sql: &str) -> Self {
        let columns: Vec<_> = (0..CONFIRMING.len()).filter(|column| sql.contains(CONFIRMING[*column].0)).collect();
        let named: Vec<_> = columns.iter().map(|column| CONFIRMING[*column]).collect();
        Self { sql: format!("WITH job AS ({}) {sql}", list(&named)), columns }
    }

    /// Picks its parameters from `all`.
    pub(crate) fn parameters<T: Copy>(&self, all: &[T; CONFIRMING.len()]) -> Vec<T> {
        self.columns.iter().map(|column| all[*column]).collect()
    }
}

/// One sign-up, on either engine.
static ONE: LazyLock<ConfirmSql> = LazyLock::new(|| {
    ConfirmSql::over(|columns| {
        let values = (1..).zip(columns).map(|(number, (name, kind))| format!("CAST(${number} AS {kind}) AS {name}"));
        format!("SELECT {}", values.collect::<Vec<_>>().join(", "))
    })
});

/// Many sign-ups, on PostgreSQL only. No two share a mailbox, because a statement sees the tables as they were before it.
pub(crate) static MANY: LazyLock<ConfirmSql> = LazyLock::new(|| {
    ConfirmSql::over(|columns| {
        let arrays = (1..).zip(columns).map(|(number, (_, kind))| format!("CAST(${number} AS {kind}[])"));
        let names = columns.iter().map(|(name, _)| *name);
        let [arrays, names] = [arrays.collect::<Vec<_>>().join(", "), names.collect::<Vec<_>>().join(", ")];
        format!("SELECT * FROM unnest({arrays}) AS listed ({names})")
    })
});

impl ConfirmSql {
    fn over(list: fn(&[JobColumn]) -> String) -> Self {
        let asked = list(&ASKED);
        let keep_answers = each_answer(&format!("{{}} = {ANSWER_OR_KEPT}"));
        // Joined by `=`, because SQLite does not use the partial index with `(sign_up_id, …) IN`.
        let requests = "job JOIN idempotency_keys k ON k.sign_up_id = job.id AND k.confirmed_at = job.now";
        let kind = format!("'{}'", EventKind::Confirmed.name());
        let [record, queue] = record_events(&kind, "k.confirmed_at", "k.confirmed_at", requests);
        let steps = [
            // A returning person joins with the answers they were shown: their new ones, and the stored ones.
            format!(
                "UPDATE sign_ups AS s SET state = 'confirmed', decided_at = job.now, decided_how = job.how,
                     notice = coalesce(job.notice, s.notice), {keep_answers}
                 FROM job WHERE s.id = job.id"
            ),
            "DELETE FROM outbox WHERE sign_up_id IN (SELECT id FROM job)".to_owned(),
            // Confirms every idempotency key of the sign-up that is not closed, and notifies its partner.
            "UPDATE idempotency_keys AS k SET confirmed_at = job.now FROM job
             WHERE k.sign_up_id = job.id AND k.confirmed_at IS NULL AND k.closed_at IS NULL AND k.closes_at > job.now"
                .to_owned(),
            record,
            queue,
            format!(
                "UPDATE people AS p SET state = 'member', referrer_id = {CREDITED}, joined_at = job.now, {},
                     answered_at = NULL, language = coalesce(job.language, p.language)
                 FROM job WHERE p.id = job.person_id AND job.joins",
                each_answer("own_{} = NULL")
            ),
            // A person who presses the button in their own mail does not consider it unwanted. What they asked for with "this
            // wasn't me" stays, as promised.
            "UPDATE mailboxes SET complained_at = NULL
             WHERE complained_at IS NOT NULL AND mailbox IN (SELECT mailbox FROM job)"
                .to_owned(),
            // A source gets credit only for new members with addresses that are not disposable. Every node uses this order.
            "INSERT INTO source_days (partner_id, day, confirmed, sign_ups_confirmed)
             SELECT partner_id, day, sum(CASE WHEN joins AND NOT disposable THEN 1 ELSE 0 END), count(*)
             FROM job WHERE TRUE GROUP BY partner_id, day ORDER BY coalesce(partner_id, 0), day
             ON CONFLICT (coalesce(partner_id, 0), day) DO UPDATE SET confirmed = source_days.confirmed + excluded.confirmed,
                 sign_ups_confirmed = source_days.sign_ups_confirmed + excluded.sign_ups_confirmed"
                .to_owned(),
        ];
        Self {
            // In the order in which batches of sign-ups lock them.
            look: format!(
                "WITH job AS ({asked})
                 SELECT s.id, s.created_at, s.state, s.updated_at, s.expires_at, s.person_id, s.referrer_id, s.partner_id, s.disposable,
                     p.mailbox, p.state = 'member' AS is_member, {}
                 FROM job JOIN sign_ups s ON s.id = job.id AND s.created_at = job.created_at JOIN people p ON p.id = s.person_id
                 ORDER BY p.email_normalized FOR UPDATE OF s",
                *NEW_MEMBER
            ),
            steps: steps.map(|step| ConfirmStep::over(list, &step)),
        }
    }
}

/// The person pressed the button of their sign-up. This adds one member at most, even with repeats and concurrent presses. If the
/// answers that the page showed have been replaced since, nothing is confirmed.
#[derive(Clone)]
pub struct Confirm {
    pub sign_up: SignUpRef,
    pub seen: SeenPage,
    pub now: Timestamp,
}

impl Confirm {
    pub(crate) fn asked(&self) -> [Value<'_>; ASKED.len()] {
        [self.sign_up.id.0.into(), self.sign_up.created_at.into()]
    }
}

/// What a confirmation depends on. The mailbox and the sign-up's row are locked.
pub(crate) struct Undecided {
    pub sign_up: SignUpRef,
    pub mailbox: String,
    state: SignUpState,
    updated_at: Timestamp,
    expires_at: Timestamp,
    person: i64,
    is_member: bool,
    referrer: Option<i64>,
    source: Option<PartnerId>,
    disposable: bool,
    new_member: NewMember,
}

impl Undecided {
    pub(crate) fn read(row: &Row<'_>) -> Result<Self, Failure> {
        Ok(Self {
            sign_up: SignUpRef { id: SignUpId(row.get("id")?), created_at: row.get("created_at")? },
            mailbox: row.get("mailbox")?,
            state: row.parsed("state", SignUpState::from_name)?,
            updated_at: row.get("updated_at")?,
            expires_at: row.get("expires_at")?,
            person: row.get("person_id")?,
            is_member: row.get("is_member")?,
            referrer: row.get("referrer_id")?,
            source: row.get("partner_id")?,
            disposable: row.get("disposable")?,
            new_member: new_member(row)?,
        })
    }
}

pub(crate) struct Confirming<'a> {
    request: &'a Confirm,
    found: &'a Undecided,
    how: DecidedHow,
}

/// The confirmation to write, or the answer that the person gets instead.
pub(crate) fn judge<'a>(
    request: &'a Confirm,
    found: &'a Undecided,
    how: DecidedHow,
) -> Result<Confirming<'a>, Confirmation> {
    match found.state {
        SignUpState::Declined if how == DecidedHow::TakenBack => {}
        SignUpState::Confirmed => return Err(Confirmation::AlreadyMember),
        SignUpState::Declined => return Err(Confirmation::Declined),
        SignUpState::Expired => return Err(Confirmation::Expired),
        // Retention expires it for good once it trusts the clock.
        SignUpState::Pending if found.expires_at <= request.now => return Err(Confirmation::Expired),
        SignUpState::Pending if request.seen.answers.is_some_and(|seen| seen != found.updated_at) => {
            return Err(Confirmation::Changed);
        }
        SignUpState::Pending => {}
    }
    Ok(Confirming { request, found, how })
}

impl Confirming<'_> {
    pub(crate) fn joins(&self) -> bool {
        !self.found.is_member
    }

    pub(crate) fn answer(&self) -> Confirmation {
        if !self.joins() {
            return Confirmation::AlreadyMember;
        }
        let member = self.found.new_member.clone();
        Confirmation::Joined(NewMember { language: self.request.seen.language.or(member.language), ..member })
    }

    pub(crate) fn values(&self) -> [Value<'_>; CONFIRMING.len()] {
        let Self { request, found, how } = self;
        [
            request.sign_up.id.0.into(),
            request.now.into(),
            how.name().into(),
            request.seen.notice.as_deref().into(),
            request.seen.language.map(Language::code).into(),
            found.person.into(),
            (&found.mailbox).into(),
            // No one is credited for a disposable address.
            found.referrer.filter(|_| !found.disposable).into(),
            found.source.into(),
            found.disposable.into(),
            self.joins().into(),
            day_of(request.now).into(),
        ]
    }
}

/// The decline of a sign-up that is confirmed after all.
pub(crate) struct Declined {
    pub source: Option<PartnerId>,
    pub at: Timestamp,
}

impl Unit for Confirm {
    type Done = Confirmation;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Confirmation, Failure> {
        self.confirm(None, sql).await
    }
}

impl Confirm {
    /// `declined` is the decline that this takes back, if any.
    pub(crate) async fn confirm(&self, declined: Option<Declined>, sql: &mut dyn Sql) -> Result<Confirmation, Failure> {
        let Some(mailbox) = mailbox_of(sql, self.sign_up).await? else { return Ok(Confirmation::Unknown) };
        // Row locks cannot show whether another person of the mailbox joined before: their row may not exist yet.
        sql.lock(&mailbox).await?;
        let Some(found) = sql.row(&ONE.look, &self.asked(), Undecided::read).await? else {
            return Ok(Confirmation::Unknown);
        };
        let how = if declined.is_some() { DecidedHow::TakenBack } else { DecidedHow::Button };
        let confirming = match judge(self, &found, how) {
            Ok(confirming) => confirming,
            Err(answer) => return Ok(answer),
        };
        let values = confirming.values();
        let [steps @ .., days_of_sources] = &ONE.steps;
        for step in steps {
            sql.execute(&step.sql, &step.parameters(&values)).await?;
        }
        // Before today's, because the days of a source are locked in order.
        if let Some(Declined { source, at }) = declined
            && confirming.joins()
        {
            sources::uncount_declined(sql, source, at).await?;
        }
        sql.execute(&days_of_sources.sql, &days_of_sources.parameters(&values)).await?;
        if confirming.joins() {
            count_member(sql, &mailbox, 1).await?;
        }
        Ok(confirming.answer())
    }
}
