//! How each source behaves, counted by day, and what may be used only once.
//!
//! All requests that come through a source share its row for the day, so a unit changes that row late, right before the count of members.

use std::collections::BTreeMap;

use crate::domain::mail::MOST_COUNTED;
use crate::domain::mail::budget::{DAYS, MailBudget, PROOFS_OF_A_SITE, Reputation, SourceStatus, day_of};
use crate::domain::partner::name::PartnerId;
use crate::domain::secret::proof::Proof;
use crate::domain::time::{DAY, Timestamp};
use crate::installation::is_paused;
use crate::store::sql::{Failure, How, Row, Sql, Unit, expected, values};

/// Adds `$3` to a column of the source `$1` on the day `$2`.
macro_rules! count_source_event {
    ($column:literal) => {
        concat!(
            "INSERT INTO source_days (partner_id, day, ",
            $column,
            ") VALUES ($1, $2, $3) ON CONFLICT (coalesce(partner_id, 0), day) DO UPDATE SET ",
            $column,
            " = source_days.",
            $column,
            " + excluded.",
            $column
        )
    };
}

/// The name of a source as operators see it, from the column with its partner's id. Empty for the form.
macro_rules! source_name {
    ($partner_id:literal) => {
        concat!("coalesce((SELECT named.name FROM partners named WHERE named.id = ", $partner_id, "), '')")
    };
}
pub(crate) use source_name;

/// What a source did in the last days up to `$1`, as [`reputation`] reads it.
macro_rules! reputation_columns {
    () => {
        "CAST(coalesce(sum(CASE WHEN day = $1 THEN mailed ELSE 0 END), 0) AS BIGINT) AS mailed_today,
         CAST(coalesce(sum(confirmations_sent), 0) AS BIGINT) AS asked,
         CAST(coalesce(sum(CASE WHEN day < $1 THEN confirmations_sent - sent_late ELSE 0 END), 0) AS BIGINT) AS asked_before,
         CAST(coalesce(sum(CASE WHEN day = $1 THEN proofs_of_work ELSE 0 END), 0) AS BIGINT) AS proven_today,
         CAST(coalesce(sum(CASE WHEN day < $1 THEN confirmed ELSE 0 END), 0) AS BIGINT) AS confirmed_before,
         CAST(coalesce(sum(confirmed), 0) AS BIGINT) AS confirmed_in_all,
         CAST(coalesce(sum(declined), 0) AS BIGINT) AS declined, CAST(coalesce(sum(bounced), 0) AS BIGINT) AS bounced,
         CAST(coalesce(sum(complained), 0) AS BIGINT) AS complained"
    };
}

/// Counts mails in index order, and says when the oldest of those was requested.
macro_rules! counted_mail {
    ($which:literal) => {
        concat!(
            "SELECT count(*) AS mails, min(created_at) AS oldest FROM (SELECT created_at FROM outbox ",
            $which,
            " LIMIT $1) counted"
        )
    };
}

/// What the form did in the last days, and whether sign-ups are paused. Mail the form requested that no worker has looked at
/// yet counts as mailed.
pub struct FindFormReputation(pub Timestamp);

impl Unit for FindFormReputation {
    type Done = (Reputation, bool);
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let paused = is_paused(sql).await?;
        let mut reputation = reputation_of(sql, None, self.0).await?;
        // A bounded count is enough: when this much waits, the form is throttled.
        let waiting = "
            SELECT count(*) FROM (
                SELECT s.partner_id FROM outbox o /*+ INDEXED BY outbox_due */ JOIN sign_ups s ON s.id = o.sign_up_id
                WHERE o.campaign_mail_id IS NULL AND o.given_up_at IS NULL AND o.held_at IS NULL AND o.send_after <= $1
                    AND o.attempts = 0 AND o.priority = 0
                ORDER BY o.send_after LIMIT 2000) w
            WHERE w.partner_id IS NULL";
        let waiting: Option<u64> = sql.row(waiting, values![self.0], |row| row.get(0)).await?;
        reputation.mailed_today += waiting.unwrap_or(0);
        Ok((reputation, paused))
    }
}

/// Every source that was active in the last days, has held mail, or has its own budget.
pub struct ListSourceStatuses(pub Timestamp);

impl Unit for ListSourceStatuses {
    type Done = Vec<SourceStatus>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let days = concat!(
            "SELECT ",
            source_name!("partner_id"),
            " AS source, ",
            reputation_columns!(),
            " FROM source_days WHERE day > $2 AND day <= $1 GROUP BY partner_id"
        );
        let today = day_of(self.0);
        let source = |row: &Row<'_>| Ok((row.get::<String>("source")?, reputation(row)?));
        let days = sql.rows(days, values![today, today - DAYS], source).await?;
        let held = concat!(
            "SELECT ",
            source_name!("s.partner_id"),
            " AS source, count(s.id) AS held, count(*) AS looked_at
             FROM (SELECT sign_up_id FROM outbox WHERE held_at IS NOT NULL ORDER BY held_at LIMIT $1) o
                 LEFT JOIN sign_ups s ON s.id = o.sign_up_id GROUP BY s.partner_id"
        );
        let mut looked_at = 0;
        let of_source = |row: &Row<'_>| {
            looked_at += row.get::<u64>("looked_at")?;
            Ok((row.get::<String>("source")?, row.get::<u64>("held")?))
        };
        let held = sql.rows(held, values![MOST_COUNTED], of_source).await?;
        let held_in_part = looked_at >= MOST_COUNTED.into();
        let controlled = "SELECT name, mails_a_day, suspended_at IS NOT NULL AS is_suspended FROM partners
                          WHERE mails_a_day IS NOT NULL OR suspended_at IS NOT NULL";
        let control =
            |row: &Row<'_>| Ok((row.get::<String>("name")?, row.get("mails_a_day")?, row.get("is_suspended")?));
        let controlled = sql.rows(controlled, values![], control).await?;
        let new = |source: &String| SourceStatus { source: source.clone(), ..SourceStatus::default() };
        let mut sources: BTreeMap<String, SourceStatus> = BTreeMap::new();
        for (source, reputation) in days {
            sources.entry(source).or_insert_with_key(new).reputation = reputation;
        }
        for (source, held) in held.into_iter().filter(|(_, held)| *held > 0) {
            sources.entry(source).or_insert_with_key(new).held = held;
        }
        for (source, fixed, is_suspended) in controlled {
            let status = sources.entry(source).or_insert_with_key(new);
            (status.fixed, status.is_suspended) = (fixed, is_suspended);
        }
        Ok(sources.into_values().map(|status| SourceStatus { held_in_part, ..status }).collect())
    }
}

/// The mail figures for monitoring. A count of [`MOST_COUNTED`] means that many or more.
pub struct FindMailFigures;

impl Unit for FindMailFigures {
    type Done = MailFigures;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<MailFigures, Failure> {
        let mut counts = [(0, None); 4];
        for (count, which) in counts.iter_mut().zip([
            counted_mail!("/*+ INDEXED BY outbox_due */ WHERE campaign_mail_id IS NULL AND given_up_at IS NULL AND held_at IS NULL ORDER BY send_after"),
            counted_mail!("WHERE campaign_mail_id IS NOT NULL AND given_up_at IS NULL AND held_at IS NULL ORDER BY send_after"),
            counted_mail!("WHERE held_at IS NOT NULL ORDER BY held_at"),
            counted_mail!("WHERE given_up_at IS NOT NULL AND held_at IS NULL ORDER BY given_up_at"),
        ]) {
            let read = |row: &Row<'_>| Ok((row.get::<u64>("mails")?, row.get::<Option<Timestamp>>("oldest")?));
            *count = expected(sql.row(which, values![MOST_COUNTED], read).await?)?;
        }
        let [of_people, about_campaigns, held, given_up] = counts;
        Ok(MailFigures {
            waiting: (of_people.0 + about_campaigns.0).min(MOST_COUNTED.into()),
            about_campaigns: about_campaigns.0,
            held: held.0,
            given_up: given_up.0,
            oldest: of_people.1.into_iter().chain(about_campaigns.1).min(),
        })
    }
}

/// Spends a site's proof of work, which lets a form's mail bypass the budget.
pub struct SpendProof {
    pub proof: Proof,
    pub site: String,
    pub budget: MailBudget,
    pub now: Timestamp,
}

impl Unit for SpendProof {
    type Done = SpentProof;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<SpentProof, Failure> {
        let Self { proof, site, budget, now } = self;
        let reputation = reputation_of(sql, None, *now).await?;
        // One row per proof of the site, ordered by name.
        let spent = format!("proofs of {site} on {} ", day_of(*now));
        let of_site = "SELECT count(*) FROM used_once WHERE name > $1 AND name < $2";
        let end = format!("{spent}~");
        let of_site: Option<u64> = sql.row(of_site, values![&spent, &end], |row| row.get(0)).await?;
        if !budget.takes_proofs(&reputation) || of_site.unwrap_or(0) >= PROOFS_OF_A_SITE {
            return Ok(SpentProof::TooMany);
        }
        if !use_once(sql, &format!("proof {}", proof.name), proof.ends_at).await? {
            return Ok(SpentProof::Used);
        }
        // Remembered for at least the day it counts on.
        use_once(sql, &format!("{spent}{}", proof.name), now.plus(DAY)).await?;
        sql.execute(count_source_event!("proofs_of_work"), values![None::<PartnerId>, day_of(*now), 1_i64]).await?;
        Ok(SpentProof::Good)
    }
}

/// The mail figures for monitoring, over all nodes. Each kind is counted up to [`MOST_COUNTED`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MailFigures {
    pub waiting: u64,
    /// How many of these are about campaigns.
    pub about_campaigns: u64,
    pub held: u64,
    /// Mail that failed for good and waits only for the operator.
    pub given_up: u64,
    /// When the oldest of the waiting mails that were counted was requested.
    pub oldest: Option<Timestamp>,
}

/// What came of spending a proof of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpentProof {
    Good,
    /// It was used before.
    Used,
    /// The day's limit is reached.
    TooMany,
}

/// What a source did in the last days.
pub(crate) async fn reputation_of(
    sql: &mut dyn Sql,
    source: Option<PartnerId>,
    now: Timestamp,
) -> Result<Reputation, Failure> {
    let days = concat!(
        "SELECT ",
        reputation_columns!(),
        " FROM source_days WHERE coalesce(partner_id, 0) = coalesce(CAST($3 AS BIGINT), 0) AND day > $2 AND day <= $1"
    );
    let today = day_of(now);
    Ok(sql.row(days, values![today, today - DAYS, source], reputation).await?.unwrap_or_default())
}

fn reputation(row: &Row<'_>) -> Result<Reputation, Failure> {
    Ok(Reputation {
        mailed_today: row.get("mailed_today")?,
        asked: row.get("asked")?,
        asked_before: row.get("asked_before")?,
        proven_today: row.get("proven_today")?,
        confirmed_before: row.get("confirmed_before")?,
        confirmed: row.get("confirmed_in_all")?,
        declined: row.get("declined")?,
        bounced: row.get("bounced")?,
        complained: row.get("complained")?,
    })
}

/// What is counted for a source; confirmations are counted where they are written (`members/confirm.rs`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceEvent {
    Mailed(u32),
    Asked,
    /// Of those asked, long after the first attempt.
    AskedLate,
    Declined,
    Lapsed(u32),
    Bounced,
    SoftBounced,
    Complained,
}

pub(crate) async fn count(
    sql: &mut dyn Sql,
    source: Option<PartnerId>,
    what: SourceEvent,
    now: Timestamp,
) -> Result<(), Failure> {
    let (count, times) = match what {
        SourceEvent::Mailed(times) => (count_source_event!("mailed"), times),
        SourceEvent::Asked => (count_source_event!("confirmations_sent"), 1),
        SourceEvent::AskedLate => (count_source_event!("sent_late"), 1),
        SourceEvent::Declined => (count_source_event!("declined"), 1),
        SourceEvent::Lapsed(times) => (count_source_event!("expired"), times),
        SourceEvent::Bounced => (count_source_event!("bounced"), 1),
        SourceEvent::SoftBounced => (count_source_event!("soft_bounced"), 1),
        SourceEvent::Complained => (count_source_event!("complained"), 1),
    };
    sql.execute(count, values![source, day_of(now), times]).await.map(|_| ())
}

/// Withdraws a decline that was counted on that day.
pub(crate) async fn uncount_declined(
    sql: &mut dyn Sql,
    source: Option<PartnerId>,
    at: Timestamp,
) -> Result<(), Failure> {
    let uncount = "UPDATE source_days SET declined = declined - 1, declines_withdrawn = declines_withdrawn + 1
                   WHERE coalesce(partner_id, 0) = coalesce(CAST($1 AS BIGINT), 0) AND day = $2 AND declined > 0";
    sql.execute(uncount, values![source, day_of(at)]).await.map(|_| ())
}

/// Uses a name; true if this is the first time.
pub(crate) async fn use_once(sql: &mut dyn Sql, name: &str, ends_at: Timestamp) -> Result<bool, Failure> {
    let first = "INSERT INTO used_once (name, ends_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    Ok(sql.execute(first, values![name, ends_at]).await? == 1)
}
