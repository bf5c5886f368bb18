//! Handing over: batches of those who accepted and of those who do no longer, their files, and what the supplier answers.

use std::collections::BTreeMap;
use std::io::Write;

use tokio::time::Instant;

use super::admin::CampaignAdmin;
use super::worker::end_acceptances;
use crate::campaigns::acceptances::report;
use crate::campaigns::qualify::disqualify;
use crate::campaigns::states::hold_alone;
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::acceptance::Ended;
use crate::domain::campaign::acceptance::{Handover, OrderStatus, Reference, SupplierReport};
use crate::domain::campaign::demand::COARSE;
use crate::domain::campaign::handover::{Difference, HandoverBatch, HandoverRow, OrderCounts, SupplierAnswer};
use crate::domain::catalog::CountsOn;
use crate::domain::csv::{WOULD_RUN, WithheldRows, add_mistake};
use crate::domain::figure::{counted, grouped};
use crate::domain::time::Timestamp;
use crate::installation::NeedsAnother;
use crate::membership::records::{answer_now, joined_by};
use crate::store::StoreError;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};
use crate::supervise::pause_after_step;

/// Acceptances that one step puts into a batch.
const FILLED_AT_ONCE: u32 = 200;

/// Rows of a batch that are read at once.
const PAGE: u32 = 500;

/// Lines of a supplier's answer that one step books.
const SETTLED_AT_ONCE: usize = 100;

/// A batch `b` of a campaign `c`, as [`batch`] reads it.
macro_rules! batches {
    ($which:literal) => {
        concat!(
            "SELECT b.id, c.slug, b.number, b.filled_at, b.written_at,
                    coalesce((SELECT a.handover FROM acceptances a WHERE a.batch_id = b.id ORDER BY a.reference LIMIT 1) = 'address', FALSE)
                        AS gives_addresses
             FROM handover_batches b JOIN campaigns c ON c.id = b.campaign_id WHERE ",
            $which
        )
    };
}

fn batch(row: &Row<'_>) -> Result<HandoverBatch, Failure> {
    Ok(HandoverBatch {
        id: row.get("id")?,
        campaign: row.parsed("slug", |slug| slug.parse().ok())?,
        number: row.get("number")?,
        is_whole: row.get::<Option<Timestamp>>("filled_at")?.is_some(),
        is_written: row.get::<Option<Timestamp>>("written_at")?.is_some(),
        gives_addresses: row.get("gives_addresses")?,
    })
}

/// The batch of a campaign with that number, or its last one.
pub struct FindHandover(pub CampaignSlug, pub Option<u32>);

impl Unit for FindHandover {
    type Done = Option<HandoverBatch>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        match self.1 {
            Some(number) => {
                sql.row(batches!("c.slug = $1 AND b.number = $2"), values![self.0.as_str(), number], batch).await
            }
            None => {
                let last = batches!("c.slug = $1 ORDER BY b.number DESC LIMIT 1");
                sql.row(last, values![self.0.as_str()], batch).await
            }
        }
    }
}

/// Acceptances `a` of a campaign that no batch has: they stand, and the offer is still offered.
macro_rules! to_hand_over {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM acceptances a JOIN campaigns c ON c.id = a.campaign_id
              WHERE a.campaign_id = $1 AND a.ended_at IS NULL AND a.batch_id IS NULL AND a.offer_number >= c.offer_number
                AND c.state IN ('offered', 'active', 'closed') ORDER BY a.id LIMIT $2"
        )
    };
}

/// And those that ended after the supplier was told of them, and of whose end it was not told.
macro_rules! to_withdraw {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM acceptances a WHERE a.campaign_id = $1 AND a.ended_at IS NOT NULL AND a.batch_id IS NOT NULL
                AND a.withdrawn_batch_id IS NULL ORDER BY a.id LIMIT $2"
        )
    };
}

/// Begins a batch if somebody accepted or withdrew since the last one, or goes on with the one whose file was never written.
pub struct BeginHandover {
    pub slug: CampaignSlug,
    pub who: String,
    pub now: Timestamp,
}

impl Unit for BeginHandover {
    type Done = Option<i64>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Option<i64>, Failure> {
        let Some(campaign) = hold_alone(sql, &self.slug).await? else { return Ok(None) };
        let id = campaign.id.0;
        let unwritten =
            "SELECT id FROM handover_batches WHERE campaign_id = $1 AND written_at IS NULL ORDER BY number LIMIT 1";
        if let Some(batch) = sql.value(unwritten, values![id]).await? {
            return Ok(Some(batch));
        }
        let accepted = sql.exists(to_hand_over!("1"), values![id, 1u32]).await?;
        if !accepted && !sql.exists(to_withdraw!("1"), values![id, 1u32]).await? {
            return Ok(None);
        }
        let last = "SELECT coalesce(max(number), 0) FROM handover_batches WHERE campaign_id = $1";
        let number = sql.value::<i64>(last, values![id]).await?.unwrap_or(0) + 1;
        let add =
            "INSERT INTO handover_batches (campaign_id, number, created_at, who) VALUES ($1, $2, $3, $4) RETURNING id";
        sql.about(&format!("{}, batch {number} begun", self.slug));
        sql.insert(add, values![id, number, self.now, &self.who]).await
    }
}

/// Puts some acceptances into a batch. True once everybody was looked at.
pub struct FillHandover(pub CampaignSlug, pub i64, pub Timestamp);

impl Unit for FillHandover {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(slug, batch, now) = self;
        // A member who withdraws waits, or was before.
        let Some(campaign) = hold_alone(sql, slug).await? else { return Ok(true) };
        if !sql.exists("SELECT 1 FROM handover_batches WHERE id = $1 AND filled_at IS NULL", values![*batch]).await? {
            return Ok(true);
        }
        let values = values![campaign.id.0, FILLED_AT_ONCE];
        let accepted: Vec<i64> = sql.rows(to_hand_over!("a.id"), values, |row| row.get(0)).await?;
        let withdrawn: Vec<i64> = sql.rows(to_withdraw!("a.id"), values, |row| row.get(0)).await?;
        for id in &accepted {
            sql.execute("UPDATE acceptances SET batch_id = $2 WHERE id = $1", values![*id, *batch]).await?;
        }
        for id in &withdrawn {
            sql.execute("UPDATE acceptances SET withdrawn_batch_id = $2 WHERE id = $1", values![*id, *batch]).await?;
        }
        let is_full = accepted.len().max(withdrawn.len()) < FILLED_AT_ONCE as usize;
        if is_full {
            sql.execute("UPDATE handover_batches SET filled_at = $2 WHERE id = $1", values![*batch, *now]).await?;
        }
        Ok(is_full)
    }
}

/// From now on nobody is taken out of a batch anymore.
pub struct CloseHandover(pub CampaignSlug, pub i64, pub Timestamp);

impl Unit for CloseHandover {
    type Done = ();
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let Self(slug, batch, now) = self;
        hold_alone(sql, slug).await?;
        let close =
            "UPDATE handover_batches SET closed_at = coalesce(closed_at, $2) WHERE id = $1 AND filled_at IS NOT NULL";
        sql.execute(close, values![*batch, *now]).await.map(|_| ())
    }
}

/// The file of a batch is written.
struct NoteWritten(i64, Timestamp);

impl Unit for NoteWritten {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        sql.execute("UPDATE handover_batches SET written_at = $2 WHERE id = $1", values![self.0, self.1])
            .await
            .map(|_| ())
    }
}

/// The rows of a batch after a reference, in their order.
struct ListHandover(i64, String);

impl Unit for ListHandover {
    type Done = Vec<HandoverRow>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let page = concat!(
            "SELECT a.reference, a.accepts, a.ended_at IS NOT NULL OR a.offer_number < c.offer_number AS has_ended, a.handover, p.email, ",
            answer_now!("us_state"),
            " FROM (SELECT * FROM (SELECT reference, TRUE AS accepts, ended_at, handover, person_id, campaign_id, offer_number FROM acceptances
                                   WHERE batch_id = $1 AND reference > $2 ORDER BY reference LIMIT $3) accepted
                    UNION ALL
                    SELECT * FROM (SELECT reference, FALSE AS accepts, ended_at, handover, person_id, campaign_id, offer_number FROM acceptances
                                   WHERE withdrawn_batch_id = $1 AND reference > $2 ORDER BY reference LIMIT $3) withdrawn
                    ORDER BY reference LIMIT $3) a
              JOIN campaigns c ON c.id = a.campaign_id
              LEFT JOIN people p ON p.id = a.person_id AND p.erased_at IS NULL ",
            joined_by!(),
            " ORDER BY a.reference"
        );
        let read = |row: &Row<'_>| {
            let accepts = row.get("accepts")?;
            let ended_since = accepts && row.get("has_ended")?;
            let is_sent = accepts && row.parsed("handover", Handover::from_name)? == Handover::Address;
            let email = row.get::<Option<String>>("email")?.filter(|_| is_sent && !ended_since);
            let state = row.get::<Option<String>>("us_state")?.unwrap_or_default();
            let reference = row.parsed("reference", Reference::parse)?;
            Ok(HandoverRow { reference, accepts, ended_since, address: email.map(|email| (email, state)) })
        };
        sql.rows(page, values![self.0, &self.1, PAGE], read).await
    }
}

/// How many rows the file of a batch has, counted no further than that.
pub struct CountHandover(pub i64, pub u32);

impl Unit for CountHandover {
    type Done = u64;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        let rows = "SELECT (SELECT count(*) FROM (SELECT 1 FROM acceptances WHERE batch_id = $1 LIMIT $2) accepted)
                         + (SELECT count(*) FROM (SELECT 1 FROM acceptances WHERE withdrawn_batch_id = $1 LIMIT $2) withdrawn)";
        Ok(sql.value(rows, values![self.0, self.1]).await?.unwrap_or(0))
    }
}

/// What a batch's file holds.
#[derive(Default)]
pub struct WrittenHandover {
    pub accepted: u64,
    pub withdrawn: u64,
    pub withheld: WithheldRows,
    /// Rows that are left out: those members withdrew since, or their offer ended.
    pub ended: u64,
}

impl WrittenHandover {
    pub const fn rows(&self) -> u64 {
        self.accepted + self.withdrawn
    }

    pub fn words(&self) -> String {
        format!("{} accepted, {} withdrawn", grouped(self.accepted), grouped(self.withdrawn))
    }

    /// What it lacks.
    pub fn lacks(&self) -> Vec<String> {
        let mut lacks = Vec::new();
        if !self.withheld.is_empty() {
            lacks.push(format!(
                "Withheld from the file, {WOULD_RUN} the address as a formula: {} ({}). Tell the supplier by hand.",
                counted(self.withheld.rows, "row"),
                self.withheld.ids()
            ));
        }
        if self.ended > 0 {
            lacks.push(format!(
                "Left out, because they withdrew or the offer ended since: {}. A later file has them as withdrawn.",
                counted(self.ended, "member")
            ));
        }
        lacks
    }
}

/// What the supplier's answer did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SettledOrders {
    /// New, or a later word than before.
    pub booked: u64,
    /// Said before, or outdone by a later word.
    pub unchanged: u64,
}

impl SettledOrders {
    pub fn words(&self) -> Vec<String> {
        let mut lines = vec![format!("Recorded: {}.", counted(self.booked, "line"))];
        if self.unchanged > 0 {
            lines.push(format!("Recorded before, or outdone by a later date: {}.", counted(self.unchanged, "line")));
        }
        lines
    }
}

/// The campaigns of some references, and since when each is there; none where it is not ours.
struct FindAcceptances(Vec<Reference>);

impl Unit for FindAcceptances {
    type Done = Vec<Option<(CampaignSlug, Timestamp)>>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let find = "SELECT c.slug, a.made_at FROM acceptances a JOIN campaigns c ON c.id = a.campaign_id WHERE a.reference = $1";
        let read = |row: &Row<'_>| Ok((row.parsed("slug", |slug| slug.parse().ok())?, row.get("made_at")?));
        let mut found = Vec::with_capacity(self.0.len());
        for reference in &self.0 {
            found.push(sql.row(find, values![reference.as_str()], read).await?);
        }
        Ok(found)
    }
}

/// What a supplier says, checked against the acceptances that it names.
#[derive(Default)]
pub struct CheckedOrders {
    /// Why it cannot be booked, each with its line.
    pub mistakes: Vec<(usize, String)>,
    pub lines: u64,
    by_campaign: BTreeMap<CampaignSlug, Vec<(Reference, SupplierReport)>>,
}

impl CheckedOrders {
    /// "1 ordered, 3 switched".
    pub fn outcomes(&self) -> String {
        let count = |status| {
            let reports = self.by_campaign.values().flatten();
            reports.filter(|(_, report)| report.status == status).count() as u64
        };
        let all = OrderStatus::ALL.into_iter().map(|status| (count(status), status.name()));
        let some = all.filter(|(count, _)| *count > 0).map(|(count, name)| format!("{} {name}", grouped(count)));
        some.collect::<Vec<_>>().join(", ")
    }

    /// The lines that are about other campaigns than that.
    pub fn elsewhere(&self, slug: &CampaignSlug) -> impl Iterator<Item = (&CampaignSlug, usize)> {
        self.by_campaign.iter().filter(move |(of, _)| *of != slug).map(|(of, reports)| (of, reports.len()))
    }
}

/// Books what the supplier says of some orders of one campaign.
pub struct SettleOrders {
    pub slug: CampaignSlug,
    pub reports: Vec<(Reference, SupplierReport)>,
    pub now: Timestamp,
}

impl Unit for SettleOrders {
    type Done = SettledOrders;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<SettledOrders, Failure> {
        let mut settled = SettledOrders::default();
        // Nobody presses, leaves or is handed over meanwhile, and no file of payouts is closed.
        let Some(campaign) = hold_alone(sql, &self.slug).await? else { return Ok(settled) };
        sql.about(self.slug.as_str());
        let (mut switched, mut changes) = (0, 0);
        for (reference, report) in &self.reports {
            let Some(change) = self.book(sql, campaign.id.0, *reference, *report).await? else {
                settled.unchanged += 1;
                continue;
            };
            settled.booked += 1;
            (switched, changes) = (switched + change, changes + change.abs());
        }
        if changes > 0 {
            // Published only after changes of some people, and rounded down: no two figures are a person apart.
            let count = "UPDATE campaigns SET switched = switched + $2,
                             switched_shown = CASE WHEN switched_changes + $3 >= $5 THEN (switched + $2) - (switched + $2) % $5 ELSE switched_shown END,
                             switched_as_of = CASE WHEN switched_changes + $3 >= $5 THEN $4 ELSE switched_as_of END,
                             switched_changes = CASE WHEN switched_changes + $3 >= $5 THEN 0 ELSE switched_changes + $3 END
                         WHERE id = $1";
            sql.execute(count, values![campaign.id.0, switched, changes, self.now, COARSE as i64]).await?;
        }
        Ok(settled)
    }
}

impl SettleOrders {
    /// By how much more have switched since; none if nothing new is said.
    async fn book(
        &self,
        sql: &mut dyn Sql,
        campaign: i64,
        reference: Reference,
        new: SupplierReport,
    ) -> Result<Option<i64>, Failure> {
        let find = "SELECT a.id, a.person_id, a.ended_at, a.status, a.status_on, c.counts_on FROM acceptances a
                        JOIN campaigns c ON c.id = a.campaign_id
                    WHERE a.reference = $1 AND a.campaign_id = $2";
        let read = |row: &Row<'_>| {
            let person = row.get::<Option<i64>>("person_id")?;
            let stands = row.get::<Option<Timestamp>>("ended_at")?.is_none();
            let counts_switches = row.get::<Option<&str>>("counts_on")? == Some(CountsOn::Switched.name());
            Ok((row.get::<i64>("id")?, person.filter(|_| stands), report(row)?, counts_switches))
        };
        let found = sql.row(find, values![reference.as_str(), campaign], read).await?;
        let Some((id, person, before, counts_switches)) = found.filter(|(_, _, before, _)| new.replaces(*before))
        else {
            return Ok(None);
        };
        let is_switched =
            |report: Option<SupplierReport>| report.is_some_and(|report| report.status == OrderStatus::Switched);
        let (now, status) = (self.now, new.status);
        if let Some(person) = person {
            // From when they count, and whether they do: looked at anew. Locked as a press locks it.
            let hold = "UPDATE participations SET hold_checked = FALSE, hold_from = $3 WHERE campaign_id = $1 AND person_id = $2";
            let begins = (status == OrderStatus::Switched && counts_switches).then(|| new.begins_at());
            sql.execute(hold, values![campaign, person, begins]).await?;
            let why = match status {
                OrderStatus::Rejected => Some(Ended::Rejected),
                OrderStatus::Cancelled => Some(Ended::Cancelled),
                // What was said to have switched has not, or not yet.
                OrderStatus::Ordered if counts_switches && is_switched(before) => Some(Ended::Cancelled),
                OrderStatus::Ordered | OrderStatus::Switched => None,
            };
            if let Some(why) = why {
                disqualify(sql, campaign, person, why).await?;
            }
        }
        let book = "UPDATE acceptances SET status = $2, status_on = $3, settled_at = $4 WHERE id = $1";
        sql.execute(book, values![id, status.name(), new.on.number(), now]).await?;
        Ok(Some(i64::from(is_switched(Some(new))) - i64::from(is_switched(before))))
    }
}

/// How many orders of a campaign stand how, and those of which member and supplier say different things.
pub struct FindOrders(pub CampaignSlug);

impl Unit for FindOrders {
    type Done = (OrderCounts, Vec<Difference>);
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let mut counts = OrderCounts::default();
        let find = "SELECT id FROM campaigns WHERE slug = $1";
        let Some(campaign) = sql.value::<i64>(find, values![self.0.as_str()]).await? else {
            return Ok((counts, Vec::new()));
        };
        let most = OrderCounts::MOST;
        let by_status = "SELECT status, count(*) AS orders FROM
                             (SELECT status FROM acceptances WHERE campaign_id = $1 AND status IS NOT NULL LIMIT $2) counted GROUP BY status";
        let read = |row: &Row<'_>| {
            let figure = match row.parsed("status", OrderStatus::from_name)? {
                OrderStatus::Ordered => &mut counts.ordered,
                OrderStatus::Switched => &mut counts.switched,
                OrderStatus::Rejected => &mut counts.rejected,
                OrderStatus::Cancelled => &mut counts.cancelled,
            };
            *figure = row.get("orders")?;
            Ok(())
        };
        sql.rows(by_status, values![campaign, most], read).await?;
        let accepting = "SELECT count(*) FROM (SELECT 1 FROM acceptances a JOIN campaigns c ON c.id = a.campaign_id
                         WHERE a.campaign_id = $1 AND a.ended_at IS NULL AND a.offer_number >= c.offer_number LIMIT $2) counted";
        counts.accepting = sql.value(accepting, values![campaign, most]).await?.unwrap_or(0);
        let waiting = concat!("SELECT count(*) FROM (", to_hand_over!("1"), ") counted");
        counts.waiting = sql.value(waiting, values![campaign, most]).await?.unwrap_or(0);
        let withdrawn = concat!("SELECT count(*) FROM (", to_withdraw!("1"), ") counted");
        counts.to_withdraw = sql.value(withdrawn, values![campaign, most]).await?.unwrap_or(0);
        let trouble = "SELECT count(*) FROM (SELECT 1 FROM acceptances WHERE campaign_id = $1 AND trouble_at IS NOT NULL LIMIT $2) counted";
        counts.in_trouble = sql.value(trouble, values![campaign, most]).await?.unwrap_or(0);
        let differing = "SELECT reference, status, status_on, trouble_at FROM acceptances
                         WHERE campaign_id = $1 AND trouble_at IS NOT NULL ORDER BY id LIMIT $2";
        let read = |row: &Row<'_>| {
            let reference = row.parsed("reference", Reference::parse)?;
            Ok(Difference { reference, report: report(row)?, trouble_at: row.get("trouble_at")? })
        };
        let differing = sql.rows(differing, values![campaign, Difference::MOST], read).await?;
        Ok((counts, differing))
    }
}

impl CampaignAdmin {
    /// Makes a batch of who accepted, and who does no longer, since the last one; or goes on with one whose file was never written. None if
    /// there is nothing to tell. If killed between steps, the next request continues.
    pub async fn make_handover(
        &self,
        slug: &CampaignSlug,
        who: &str,
        now: Timestamp,
    ) -> Result<Option<HandoverBatch>, StoreError> {
        let quiet = self.store.unaudited();
        end_acceptances(&quiet, &|| now).await?;
        let begin = BeginHandover { slug: slug.clone(), who: who.to_owned(), now };
        let Some(batch) = self.store.run(begin).await? else { return Ok(None) };
        let mut begun = Instant::now();
        while !quiet.run(FillHandover(slug.clone(), batch, now)).await? {
            pause_after_step(begun).await;
            begun = Instant::now();
        }
        let found = quiet.ask(FindHandover(slug.clone(), None)).await?;
        Ok(found.filter(|found| found.id == batch))
    }

    /// Writing the batch's file begins. False where one person makes a batch and another has to release it.
    pub async fn close_handover(&self, batch: &HandoverBatch, who: &str, now: Timestamp) -> Result<bool, StoreError> {
        let quiet = self.store.unaudited();
        let maker = "SELECT who FROM handover_batches WHERE id = $1 AND closed_at IS NULL AND written_at IS NULL";
        if quiet.ask(NeedsAnother { maker, batch: batch.id, who: who.to_owned() }).await? {
            return Ok(false);
        }
        quiet.run(CloseHandover(batch.campaign.clone(), batch.id, now)).await?;
        Ok(true)
    }

    /// The batch's file is written.
    pub async fn note_handover(&self, batch: &HandoverBatch, now: Timestamp) -> Result<(), StoreError> {
        self.store.run(NoteWritten(batch.id, now)).await
    }

    /// Writes the file of a batch.
    pub async fn write_handover(
        &self,
        batch: &HandoverBatch,
        out: &mut impl Write,
    ) -> Result<std::io::Result<WrittenHandover>, StoreError> {
        let (mut written, mut after) = (WrittenHandover::default(), String::new());
        if let Err(error) = out.write_all(batch.header().as_bytes()) {
            return Ok(Err(error));
        }
        loop {
            let page = self.store.ask(ListHandover(batch.id, after.clone())).await?;
            let Some(last) = page.last() else { return Ok(out.flush().map(|()| written)) };
            last.reference.as_str().clone_into(&mut after);
            for row in &page {
                if row.ended_since {
                    written.ended += 1;
                    continue;
                }
                let Some(line) = batch.line(row) else {
                    written.withheld.add(&row.reference.to_string());
                    continue;
                };
                if let Err(error) = out.write_all(line.as_bytes()) {
                    return Ok(Err(error));
                }
                *(if row.accepts { &mut written.accepted } else { &mut written.withdrawn }) += 1;
            }
        }
    }

    /// Checks what a supplier says against the acceptances that it names; books nothing.
    pub async fn check_orders(&self, answer: SupplierAnswer, now: Timestamp) -> Result<CheckedOrders, StoreError> {
        let SupplierAnswer { lines, mistakes } = answer;
        let mut checked = CheckedOrders { mistakes, lines: lines.len() as u64, ..CheckedOrders::default() };
        for some in lines.chunks(SETTLED_AT_ONCE) {
            let references = some.iter().map(|(_, reference, _)| *reference).collect();
            let found = self.store.ask(FindAcceptances(references)).await?;
            for ((line, reference, report), found) in some.iter().zip(found) {
                let wrong = match &found {
                    None => Some(format!("reference {reference} is not ours; use the files that were handed over")),
                    Some((_, made_at)) => {
                        report.wrong_day(*made_at, now).map(|wrong| format!("reference {reference}: {wrong}"))
                    }
                };
                wrong.into_iter().for_each(|wrong| add_mistake(&mut checked.mistakes, *line, wrong));
                if let Some((campaign, _)) = found {
                    checked.by_campaign.entry(campaign).or_default().push((*reference, *report));
                }
            }
        }
        checked.mistakes.sort_by_key(|(line, _)| *line);
        Ok(checked)
    }

    /// Books what a supplier says. If killed midway, give the same file again.
    pub async fn settle_orders(&self, orders: &CheckedOrders, now: Timestamp) -> Result<SettledOrders, StoreError> {
        let mut settled = SettledOrders::default();
        for (slug, reports) in &orders.by_campaign {
            for some in reports.chunks(SETTLED_AT_ONCE) {
                let begun = Instant::now();
                let store = if settled.booked == 0 { &self.store } else { &self.store.unaudited() };
                let done = store.run(SettleOrders { slug: slug.clone(), reports: some.to_vec(), now }).await?;
                settled.booked += done.booked;
                settled.unchanged += done.unchanged;
                pause_after_step(begun).await;
            }
        }
        Ok(settled)
    }
}
