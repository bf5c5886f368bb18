//! Paying: a batch takes what is due, its file goes to the payment provider, and the provider's answer is booked.
//!
//! A payout leaves the balance when it enters a batch, so that nothing is in two batches; a failed payout is added back.

use std::collections::BTreeMap;

use crate::domain::person::AccountId;
use crate::domain::reward::ledger::LedgerKind;
use crate::domain::reward::payout::{PayoutGeneration, PayoutRecord, PayoutState, external_id};
use crate::domain::time::Timestamp;
use crate::rewards::ended::end_noted;
use crate::rewards::ledger::{LOCK, balance, book};
use crate::store::sql::{Failure, How, Row, Sql, Unit, expected, values};

/// Referrers whose rewards one step puts into a batch.
const FILL_BATCH: u32 = 50;

/// Payouts per page.
const PAGE: u32 = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchRecord {
    pub id: i64,
    pub created_at: Timestamp,
    /// Who made it.
    pub who: String,
    /// Whether its file was ever written.
    pub is_written: bool,
    pub payouts: u64,
    pub cents: i64,
    /// Unsettled payouts.
    pub out: u64,
    pub out_cents: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WhichBatch {
    Numbered(i64),
    Last,
    /// The first batch after that number with unsettled payouts.
    OutAfter(i64),
    NewestOut,
}

/// What `rewards batch new` would use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextBatch {
    /// A batch whose file was never written.
    Unwritten(i64),
    /// A new batch, because something is due.
    New,
    NothingDue,
}

/// Some payouts of a batch, and the id to continue after.
#[derive(Default)]
pub struct PayoutPage {
    pub payouts: Vec<PayoutRecord>,
    /// None on the last page.
    pub next: Option<i64>,
}

/// A payout, as [`payout`] reads it.
macro_rules! payouts {
    ($which:literal) => {
        concat!(
            "SELECT o.id, o.batch_id, o.external_id, o.account, o.amount_cents, o.group_count, o.state, o.paid_at, o.reference, o.reason,
                    c.slug, p.email, b.created_at
             FROM payouts o JOIN payout_batches b ON b.id = o.batch_id JOIN campaigns c ON c.id = o.campaign_id LEFT JOIN people p ON p.account = o.account WHERE ",
            $which
        )
    };
}

fn payout(row: &Row<'_>) -> Result<PayoutRecord, Failure> {
    Ok(PayoutRecord {
        id: row.get("id")?,
        batch: row.get("batch_id")?,
        batch_at: row.get("created_at")?,
        external_id: row.get("external_id")?,
        email: row.get("email")?,
        amount_cents: row.get("amount_cents")?,
        campaign: row.parsed("slug", |slug| slug.parse().ok())?,
        groups: row.get("group_count")?,
        state: row.parsed("state", PayoutState::from_name)?,
        paid_at: row.get("paid_at")?,
        reference: row.get("reference")?,
        reason: row.get("reason")?,
    })
}

/// A batch, as [`batch`] reads it.
macro_rules! batches {
    ($which:literal) => {
        concat!(
            "SELECT b.id, b.created_at, b.who, b.written_at, count(o.id) AS payouts, CAST(coalesce(sum(o.amount_cents), 0) AS BIGINT) AS cents,
                    CAST(coalesce(sum(CASE WHEN o.state = 'out' THEN 1 ELSE 0 END), 0) AS BIGINT) AS waiting,
                    CAST(coalesce(sum(CASE WHEN o.state = 'out' THEN o.amount_cents ELSE 0 END), 0) AS BIGINT) AS waiting_cents
             FROM (SELECT id, created_at, who, written_at FROM payout_batches ",
            $which,
            ") b LEFT JOIN payouts o ON o.batch_id = b.id AND o.state <> 'netted'
             GROUP BY b.id, b.created_at, b.who, b.written_at"
        )
    };
}

fn batch(row: &Row<'_>) -> Result<BatchRecord, Failure> {
    Ok(BatchRecord {
        id: row.get("id")?,
        created_at: row.get("created_at")?,
        who: row.get("who")?,
        is_written: row.get::<Option<Timestamp>>("written_at")?.is_some(),
        payouts: row.get("payouts")?,
        cents: row.get("cents")?,
        out: row.get("waiting")?,
        out_cents: row.get("waiting_cents")?,
    })
}

pub struct FindBatch(pub WhichBatch);

impl Unit for FindBatch {
    type Done = Option<BatchRecord>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        match self.0 {
            WhichBatch::Numbered(id) => sql.row(batches!("WHERE id = $1"), values![id], batch).await,
            WhichBatch::Last => {
                sql.row(batches!("WHERE id = (SELECT max(id) FROM payout_batches)"), values![], batch).await
            }
            WhichBatch::OutAfter(id) => {
                let next =
                    batches!("WHERE id = (SELECT min(batch_id) FROM payouts WHERE state = 'out' AND batch_id > $1)");
                sql.row(next, values![id], batch).await
            }
            WhichBatch::NewestOut => {
                let newest = batches!("WHERE id = (SELECT max(batch_id) FROM payouts WHERE state = 'out')");
                sql.row(newest, values![], batch).await
            }
        }
    }
}

/// The payouts of a batch after that id, in order, without netted ones.
pub struct ListPayouts(pub i64, pub i64);

impl Unit for ListPayouts {
    type Done = PayoutPage;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<PayoutPage, Failure> {
        let page = payouts!("o.batch_id = $1 AND o.id > $2 AND o.state <> 'netted' ORDER BY o.id LIMIT $3");
        let payouts = sql.rows(page, values![self.0, self.1, PAGE], payout).await?;
        let next = payouts.last().filter(|_| payouts.len() == PAGE as usize).map(|last| last.id);
        Ok(PayoutPage { payouts, next })
    }
}

/// Unsettled payouts to an account whose file may be out. If there are too many (no one has that many), the newest.
pub struct ListPayoutsOut(pub AccountId);

impl Unit for ListPayoutsOut {
    type Done = Vec<PayoutRecord>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let out = payouts!(
            "o.account = $1 AND o.state = 'out' AND (b.closed_at IS NOT NULL OR b.written_at IS NOT NULL)
             ORDER BY o.id DESC LIMIT $2"
        );
        sql.rows(out, values![self.0.as_str(), PAGE], payout).await
    }
}

/// The payouts with these external ids, where they exist.
pub struct FindPayouts(pub Vec<String>);

impl Unit for FindPayouts {
    type Done = Vec<PayoutRecord>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let mut found = Vec::with_capacity(self.0.len());
        for id in &self.0 {
            found.extend(sql.row(payouts!("o.external_id = $1 AND o.state <> 'netted'"), values![id], payout).await?);
        }
        Ok(found)
    }
}

/// What the ids of new payouts carry; none if the records were never restored.
pub struct FindGeneration;

impl Unit for FindGeneration {
    type Done = Option<PayoutGeneration>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let kept: Option<String> =
            expected(sql.value("SELECT payout_generation FROM installation WHERE id = 1", values![]).await?)?;
        Ok(kept.map(PayoutGeneration::kept))
    }
}

async fn next_batch(sql: &mut dyn Sql) -> Result<NextBatch, Failure> {
    let unwritten = "SELECT id FROM payout_batches b WHERE written_at IS NULL
                     AND (filled_at IS NULL OR EXISTS (SELECT 1 FROM payouts o WHERE o.batch_id = b.id AND o.state = 'out' LIMIT 1 OFFSET 0))
                     ORDER BY id LIMIT 1";
    if let Some(batch) = sql.value(unwritten, values![]).await? {
        return Ok(NextBatch::Unwritten(batch));
    }
    // Some referrers have unpaid groups but owe more than those are worth.
    let mut after = 0;
    loop {
        let due = next_due(sql, after, FILL_BATCH).await?;
        let Some(last) = due.last() else { return Ok(NextBatch::NothingDue) };
        after = last.person;
        if due.iter().any(|referrer| referrer.account.is_some() && referrer.due_cents > 0) {
            return Ok(NextBatch::New);
        }
    }
}

/// Begins a batch if something is due, or continues one whose file was never written; none if nothing is due.
pub struct BeginBatch {
    pub who: String,
    pub now: Timestamp,
}

impl Unit for BeginBatch {
    type Done = Option<i64>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Option<i64>, Failure> {
        sql.lock(LOCK).await?;
        match next_batch(sql).await? {
            NextBatch::Unwritten(batch) => return Ok(Some(batch)),
            NextBatch::NothingDue => return Ok(None),
            NextBatch::New => {}
        }
        let add = "INSERT INTO payout_batches (created_at, who) VALUES ($1, $2) RETURNING id";
        let batch = sql.insert(add, values![self.now, &self.who]).await?;
        if let Some(batch) = batch {
            sql.about(&format!("batch {batch} begun"));
        }
        Ok(batch)
    }
}

/// A person who may be paid.
struct DueReferrer {
    person: i64,
    /// None if they were erased.
    account: Option<String>,
    due_cents: i64,
}

/// The next referrers after the given one with unpaid groups or a failed payout.
async fn next_due(sql: &mut dyn Sql, after: i64, most: u32) -> Result<Vec<DueReferrer>, Failure> {
    let next = "
        SELECT p.id, p.account,
               (SELECT CAST(coalesce(sum(l.amount_cents), 0) AS BIGINT) FROM reward_ledger l WHERE l.account = p.account) AS due
        FROM
            (SELECT referrer_id FROM (SELECT DISTINCT referrer_id FROM reward_groups
                                      WHERE state = 'accrued' AND payout_id IS NULL AND referrer_id > $1
                                      ORDER BY referrer_id LIMIT $2) earned
             UNION SELECT person_id FROM (SELECT person_id FROM referrers WHERE rest_due AND person_id > $1
                                          ORDER BY person_id LIMIT $2) failed
             ORDER BY 1 LIMIT $2) due
            JOIN people p ON p.id = due.referrer_id ORDER BY p.id";
    let read = |row: &Row<'_>| {
        Ok(DueReferrer { person: row.get("id")?, account: row.get("account")?, due_cents: row.get("due")? })
    };
    sql.rows(next, values![after, most], read).await
}

/// Puts what some referrers are due into a batch, once nobody waits to be taken out of a group. True once everyone was looked at.
pub struct FillBatch {
    pub batch: i64,
    pub who: String,
    pub now: Timestamp,
}

impl Unit for FillBatch {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        sql.lock(LOCK).await?;
        if end_noted(sql, FILL_BATCH, self.now).await? > 0 {
            return Ok(false);
        }
        let open = "SELECT after_id FROM payout_batches WHERE id = $1 AND filled_at IS NULL FOR UPDATE";
        let Some(after) = sql.value(open, values![self.batch]).await? else { return Ok(true) };
        let due = next_due(sql, after, FILL_BATCH).await?;
        for DueReferrer { person, account, .. } in &due {
            if let Some(account) = account {
                self.pay(sql, *person, account).await?;
            }
        }
        let is_full = due.is_empty();
        let (last, filled_at) = (due.last().map_or(after, |last| last.person), is_full.then_some(self.now));
        let note = "UPDATE payout_batches SET after_id = $2, filled_at = $3 WHERE id = $1";
        sql.execute(note, values![self.batch, last, filled_at]).await?;
        Ok(is_full)
    }
}

impl FillBatch {
    /// Puts what one referrer is due into the batch, one payout per campaign. Subtracts earlier overpayments from the first ones; if
    /// nothing is left, nothing is paid. An amount due beyond their groups comes from a payout that failed after one of its groups was
    /// reversed, when other groups had been netted against that group.
    async fn pay(&self, sql: &mut dyn Sql, person: i64, account: &str) -> Result<(), Failure> {
        // A person being erased either gives up their rewards or is paid first.
        let hold = "SELECT 1 FROM people WHERE id = $1 AND account = $2 FOR UPDATE";
        if !sql.exists(hold, values![person, account]).await? {
            return Ok(());
        }
        let groups = "
            SELECT g.campaign_id, count(*) AS number_of, CAST(sum(c.reward_cents) AS BIGINT) AS cents
            FROM reward_groups g JOIN campaigns c ON c.id = g.campaign_id
            WHERE g.referrer_id = $1 AND g.state = 'accrued' AND g.payout_id IS NULL GROUP BY g.campaign_id ORDER BY g.campaign_id";
        let read = |row: &Row<'_>| {
            Ok((row.get::<i64>("campaign_id")?, row.get::<u32>("number_of")?, row.get::<i64>("cents")?))
        };
        let groups = sql.rows(groups, values![person], read).await?;
        sql.execute("UPDATE referrers SET rest_due = FALSE WHERE person_id = $1 AND rest_due", values![person]).await?;
        let earned: i64 = groups.iter().map(|(_, _, cents)| cents).sum();
        let due = balance(sql, account).await?;
        if due <= 0 {
            return Ok(());
        }
        let mut owed = earned - due;
        for (campaign, count, cents) in groups {
            let amount = (cents - owed).clamp(0, cents);
            owed -= cents - amount;
            self.pay_campaign(sql, (person, account), campaign, count, amount).await?;
        }
        if owed < 0 {
            let failed =
                "SELECT campaign_id FROM payouts WHERE account = $1 AND state = 'failed' ORDER BY id DESC LIMIT 1";
            let campaign = sql.value(failed, values![account]).await?.ok_or(Failure::Overtaken)?;
            self.pay_campaign(sql, (person, account), campaign, 0, -owed).await?;
        }
        Ok(())
    }

    async fn pay_campaign(
        &self,
        sql: &mut dyn Sql,
        (person, account): (i64, &str),
        campaign: i64,
        groups: u32,
        cents: i64,
    ) -> Result<(), Failure> {
        let before = "SELECT count(*) FROM payouts WHERE account = $1 AND campaign_id = $2";
        let before: i64 = sql.value(before, values![account, campaign]).await?.unwrap_or(0);
        let generation = FindGeneration.apply(sql).await?;
        let external_id = external_id(account, campaign, generation.as_ref(), before + 1);
        let state = if cents > 0 { PayoutState::Out } else { PayoutState::Netted };
        let add = "INSERT INTO payouts (batch_id, external_id, account, campaign_id, amount_cents, group_count, state)
                   VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id";
        let values = values![self.batch, &external_id, account, campaign, cents, groups, state.name()];
        let payout = sql.insert(add, values).await?.ok_or(Failure::Overtaken)?;
        let take = "UPDATE reward_groups SET payout_id = $3
                    WHERE referrer_id = $1 AND campaign_id = $2 AND state = 'accrued' AND payout_id IS NULL";
        sql.execute(take, values![person, campaign, payout]).await?;
        if cents > 0 {
            let why = format!("payout {external_id}");
            book(sql, account, Some(campaign), (LedgerKind::Payout, -cents), (&self.who, &why), self.now).await?;
        }
        Ok(())
    }
}

/// What is being paid and was paid to an account, in cents.
pub(crate) async fn paid_of(sql: &mut dyn Sql, account: &str) -> Result<(i64, i64), Failure> {
    let sums =
        "SELECT state, CAST(sum(amount_cents) AS BIGINT) AS cents FROM payouts WHERE account = $1 GROUP BY state";
    let read = |row: &Row<'_>| Ok((row.get::<String>("state")?, row.get::<i64>("cents")?));
    let sums: BTreeMap<String, i64> = sql.rows(sums, values![account], read).await?.into_iter().collect();
    let of = |state: PayoutState| sums.get(state.name()).copied().unwrap_or(0);
    Ok((of(PayoutState::Out), of(PayoutState::Paid)))
}

/// What [`BeginBatch`] would begin or continue.
pub struct FindNextBatch;

impl Unit for FindNextBatch {
    type Done = NextBatch;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<NextBatch, Failure> {
        next_batch(sql).await
    }
}

/// Writing the file of a batch begins: from now on nothing is taken out of the batch. False, and nothing is done, while somebody waits to be
/// taken out of a group in one of its campaigns.
pub struct CloseBatch(pub i64, pub Timestamp);

impl Unit for CloseBatch {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(batch, now) = self;
        sql.lock(LOCK).await?;
        // Passing, leaving and what a supplier says hold the campaign for share until they commit.
        let campaigns = "SELECT id FROM campaigns WHERE id IN (SELECT campaign_id FROM payouts WHERE batch_id = $1)
                         ORDER BY id FOR UPDATE";
        for campaign in sql.rows(campaigns, values![*batch], |row| row.get::<i64>(0)).await? {
            let waits = "SELECT 1 FROM disqualifications WHERE campaign_id = $1 LIMIT 1";
            if sql.exists(waits, values![campaign]).await? {
                return Ok(false);
            }
        }
        let close = "UPDATE payout_batches SET closed_at = coalesce(closed_at, $2) WHERE id = $1";
        sql.execute(close, values![*batch, *now]).await?;
        Ok(true)
    }
}

pub struct NoteWritten(pub i64, pub Timestamp);

impl Unit for NoteWritten {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let Self(batch, now) = self;
        let note = "UPDATE payout_batches SET written_at = coalesce(written_at, $2) WHERE id = $1";
        sql.execute(note, values![*batch, *now]).await.map(|_| ())
    }
}
