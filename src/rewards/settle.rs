//! The outcome of payouts: paid, failed, or taken back before their file was written.

use crate::domain::reward::GroupState;
use crate::domain::reward::ledger::LedgerKind;
use crate::domain::reward::payout::PayoutState;
use crate::domain::reward::settlement::Settlement;
use crate::domain::time::Timestamp;
use crate::rewards::ledger::{LOCK, balance, book, note_change};
use crate::rewards::place::{count_rewarded, move_up, set_state};
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Books the outcome of some payouts.
pub struct SettlePayouts {
    pub settlements: Vec<Settlement>,
    pub who: String,
    pub now: Timestamp,
}

/// The result of settling payouts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SettledPayouts {
    /// Payouts not booked this way before.
    pub booked: u64,
    /// Of those, the ones that failed and are due again, perhaps in part.
    pub due_again: u64,
    /// Failed payouts of erased people: no batch pays them.
    pub of_erased: u64,
    /// Failed payouts that are not due: their groups were voided, or the money covered an overpayment.
    pub not_due: u64,
}

impl std::ops::AddAssign for SettledPayouts {
    fn add_assign(&mut self, other: Self) {
        self.booked += other.booked;
        self.due_again += other.due_again;
        self.of_erased += other.of_erased;
        self.not_due += other.not_due;
    }
}

impl Unit for SettlePayouts {
    type Done = SettledPayouts;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<SettledPayouts, Failure> {
        sql.lock(LOCK).await?;
        let mut settled = SettledPayouts::default();
        for settlement in &self.settlements {
            settled += self.book_one(sql, settlement).await?;
        }
        Ok(settled)
    }
}

impl SettlePayouts {
    async fn book_one(&self, sql: &mut dyn Sql, settlement: &Settlement) -> Result<SettledPayouts, Failure> {
        let mut settled = SettledPayouts::default();
        let find = "SELECT id, external_id, account, campaign_id, amount_cents, state FROM payouts WHERE external_id = $1 FOR UPDATE";
        let read = |row: &Row<'_>| Ok((booked(row)?, row.parsed("state", PayoutState::from_name)?));
        let found = sql.row(find, values![&settlement.external_id], read).await?;
        let Some((payout, state)) = found else { return Ok(settled) };
        // Erasing a person locks their row.
        let person = "SELECT id FROM people WHERE account = $1 FOR UPDATE";
        let person = sql.value::<i64>(person, values![&payout.account]).await?;
        if !state.may_become(settlement.state()) {
            return Ok(settled);
        }
        settled.booked = 1;
        let settle = "UPDATE payouts SET state = $2, reference = coalesce($3, reference), paid_at = coalesce($4, paid_at), reason = $5, settled_at = $6
                      WHERE id = $1";
        let (reference, reason) = (settlement.reference.as_deref(), settlement.reason.as_deref());
        let values = values![payout.id, settlement.state().name(), reference, settlement.paid_at, reason, self.now];
        sql.execute(settle, values).await?;
        note_change(sql, &payout.account).await?;
        if settlement.state() == PayoutState::Failed {
            payout.book_failure(sql, &self.who, self.now).await?;
            let Some(person) = person else { return Ok(SettledPayouts { of_erased: 1, ..settled }) };
            free_places(sql, person, &payout.account, self.now).await?;
            let is_due = balance(sql, &payout.account).await? > 0;
            (settled.due_again, settled.not_due) = (is_due.into(), (!is_due).into());
        }
        Ok(settled)
    }
}

/// A payout that may turn out to have failed.
struct BookedPayout {
    id: i64,
    external_id: String,
    account: String,
    campaign: i64,
    cents: i64,
}

fn booked(row: &Row<'_>) -> Result<BookedPayout, Failure> {
    Ok(BookedPayout {
        id: row.get("id")?,
        external_id: row.get("external_id")?,
        account: row.get("account")?,
        campaign: row.get("campaign_id")?,
        cents: row.get("amount_cents")?,
    })
}

impl BookedPayout {
    /// The money is due again, and the next batch gets its groups.
    async fn book_failure(&self, sql: &mut dyn Sql, who: &str, now: Timestamp) -> Result<(), Failure> {
        let why = format!("payout {} failed", self.external_id);
        let added = (LedgerKind::PayoutFailed, self.cents);
        book(sql, &self.account, Some(self.campaign), added, (who, &why), now).await?;
        note_ended(sql, self.id).await?;
        let open = "UPDATE reward_groups SET payout_id = NULL WHERE payout_id = $1 AND state <> 'reversed'";
        sql.execute(open, values![self.id]).await?;
        let rest = "UPDATE referrers SET rest_due = TRUE WHERE person_id = (SELECT id FROM people WHERE account = $1)";
        sql.execute(rest, values![&self.account]).await.map(|_| ())
    }
}

/// A payout failed, so its groups are due again: whoever ended while they were being paid is looked at again.
async fn note_ended(sql: &mut dyn Sql, payout: i64) -> Result<(), Failure> {
    let note = "INSERT INTO disqualifications (campaign_id, person_id, why)
                SELECT q.campaign_id, q.person_id, q.ended_why FROM reward_groups g JOIN qualifications q ON q.group_id = g.id
                WHERE g.payout_id = $1 AND g.state <> 'reversed' AND q.ended_on IS NOT NULL ORDER BY q.id
                ON CONFLICT (campaign_id, person_id) DO NOTHING";
    sql.execute(note, values![payout]).await.map(|_| ())
}

/// Reversed groups whose payout failed were never paid, so their places go to other groups.
async fn free_places(sql: &mut dyn Sql, person: i64, account: &str, now: Timestamp) -> Result<(), Failure> {
    let unpaid = "SELECT g.id, c.reward_cents FROM reward_groups g JOIN campaigns c ON c.id = g.campaign_id
                      JOIN payouts o ON o.id = g.payout_id
                  WHERE g.referrer_id = $1 AND g.state = 'reversed' AND o.state = 'failed' ORDER BY g.id";
    let read = |row: &Row<'_>| Ok((row.get::<i64>("id")?, row.get::<i64>("reward_cents")?));
    for (group, cents) in sql.rows(unpaid, values![person], read).await? {
        set_state(sql, group, GroupState::Dissolved).await?;
        sql.execute("UPDATE reward_groups SET payout_id = NULL WHERE id = $1", values![group]).await?;
        count_rewarded(sql, person, -1, -cents).await?;
    }
    move_up(sql, person, account, now).await
}

/// Takes one account's payouts out of a batch whose file is not yet written: the money is due again.
pub(crate) async fn recall(sql: &mut dyn Sql, account: &str, who: &str, now: Timestamp) -> Result<(), Failure> {
    let unwritten = "SELECT o.id, o.external_id, o.account, o.campaign_id, o.amount_cents FROM payouts o JOIN payout_batches b ON b.id = o.batch_id
                     WHERE o.account = $1 AND o.state = 'out' AND b.closed_at IS NULL AND b.written_at IS NULL ORDER BY o.id";
    for payout in sql.rows(unwritten, values![account], booked).await? {
        let fail =
            "UPDATE payouts SET state = 'failed', reason = 'its file was not written', settled_at = $2 WHERE id = $1";
        sql.execute(fail, values![payout.id, now]).await?;
        payout.book_failure(sql, who, now).await?;
    }
    Ok(())
}
