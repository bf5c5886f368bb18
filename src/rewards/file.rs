//! The file of a batch of payouts, which a command writes and a page offers for download.

use std::io::Write;
use std::time::Duration;

use tokio::time::Instant;

use super::RewardAdmin;
use crate::domain::csv::{WOULD_RUN, WithheldRows};
use crate::domain::figure::{counted, money};
use crate::domain::reward::payout::{PayoutRecord, PayoutState};
use crate::domain::time::Timestamp;
use crate::rewards::ended::EndNoted;
use crate::rewards::payout::{BeginBatch, FillBatch, ListPayouts};
use crate::store::StoreError;
use crate::supervise::pause_after_step;

/// What a batch's file holds.
#[derive(Default)]
pub struct WrittenRows {
    pub rows: u64,
    pub cents: i64,
    /// The ids of payouts to erased members: without an address they cannot be paid.
    pub left_out: Vec<String>,
    pub withheld: WithheldRows,
    withheld_cents: i64,
    /// What is not settled, in the file or not.
    out: u64,
    out_cents: i64,
    /// Whether the requested id belongs to a payout of this batch.
    pub has_asked_for: bool,
}

impl WrittenRows {
    /// "5 payouts, $500".
    pub fn words(&self) -> String {
        format!("{}, {}", counted(self.rows, "payout"), money(self.cents))
    }

    /// What was withheld, if anything, and how it is paid all the same.
    pub fn withheld_words(&self) -> Option<String> {
        (!self.withheld.is_empty()).then(|| {
            format!(
                "Withheld from the file, {WOULD_RUN} the address as a formula: {}, {} ({}). Pay it by hand, and settle it under its id, \
                 which begins with the account. Not settled in this batch: {}, {}.",
                counted(self.withheld.rows, "payout"),
                money(self.withheld_cents),
                self.withheld.ids(),
                counted(self.out, "payout"),
                money(self.out_cents)
            )
        })
    }

    /// Which payouts were left out, if any.
    pub fn left_out_words(&self) -> Option<String> {
        let ids = &self.left_out;
        (!ids.is_empty()).then(|| {
            format!(
                "Left out, because the member was erased: {}. If it was not paid from an earlier file, settle it as failed.",
                ids.join(", ")
            )
        })
    }
}

/// The outcome of making a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MadeBatch {
    NothingDue,
    /// Time ran out before everyone was looked at. The next request continues.
    Unfinished(i64),
    Whole(i64),
}

impl RewardAdmin {
    /// Like [`Self::make_batch`], with a time limit.
    pub async fn make_batch_within(&self, most: Duration, who: &str, now: Timestamp) -> Result<MadeBatch, StoreError> {
        let first = Instant::now();
        let mut begun = first;
        // What is left is done by the steps below.
        while begun.duration_since(first) <= most && self.store.unaudited().run(EndNoted(now)).await? {
            pause_after_step(begun).await;
            begun = Instant::now();
        }
        let Some(batch) = self.store.run(BeginBatch { who: who.to_owned(), now }).await? else {
            return Ok(MadeBatch::NothingDue);
        };
        while !self.store.run(FillBatch { batch, who: who.to_owned(), now }).await? {
            if begun.duration_since(first) > most {
                return Ok(MadeBatch::Unfinished(batch));
            }
            pause_after_step(begun).await;
            begun = Instant::now();
        }
        Ok(MadeBatch::Whole(batch))
    }

    /// Writes the payouts that are not settled. A provider that keeps no ids would pay settled ones twice. Sets `has_asked_for` if
    /// `external_id` belongs to the batch.
    pub async fn write_file(
        &self,
        batch: i64,
        out: &mut impl Write,
        external_id: Option<&str>,
    ) -> Result<std::io::Result<WrittenRows>, StoreError> {
        let (mut written, mut after) = (WrittenRows::default(), 0);
        if let Err(error) = out.write_all(PayoutRecord::HEADER.as_bytes()) {
            return Ok(Err(error));
        }
        loop {
            let page = self.ask(ListPayouts(batch, after)).await?;
            for payout in &page.payouts {
                written.has_asked_for |= external_id == Some(&payout.external_id);
                if payout.state != PayoutState::Out {
                    continue;
                }
                let cents = payout.amount_cents;
                (written.out, written.out_cents) = (written.out + 1, written.out_cents + cents);
                let Some(email) = &payout.email else {
                    written.left_out.push(payout.external_id.clone());
                    continue;
                };
                let Some(line) = payout.line(email) else {
                    written.withheld.add(&payout.external_id);
                    written.withheld_cents += cents;
                    continue;
                };
                if let Err(error) = out.write_all(line.as_bytes()) {
                    return Ok(Err(error));
                }
                (written.rows, written.cents) = (written.rows + 1, written.cents + cents);
            }
            match page.next {
                Some(next) => after = next,
                None => break,
            }
        }
        Ok(out.flush().map(|()| written))
    }
}
