//! A provider's answer, checked against the payouts it is about.

use super::SettledPayouts;
use crate::domain::csv::add_mistake;
use crate::domain::figure::{counted, money};
use crate::domain::reward::payout::{PayoutGeneration, PayoutRecord, PayoutState};
use crate::domain::reward::settlement::{AnswerLine, Settlement};
use crate::domain::text::quote;
use crate::domain::time::{DAY, Timestamp};

/// A provider's answer after the check. Positions are lines of its file.
#[derive(Default, PartialEq, Eq)]
pub struct CheckedAnswer {
    /// Why the answer cannot be booked.
    pub mistakes: Vec<(usize, String)>,
    /// Lines that differ from what was booked before. What was booked stays.
    pub differing: Vec<(usize, String)>,
    /// The external ids of payouts that were booked as paid and that this answer reports as failed.
    pub came_back: Vec<String>,
    pub settlements: Vec<Settlement>,
}

#[derive(Clone, Copy)]
pub struct PaidWithin {
    pub now: Timestamp,
    /// Allows dates before the batch was made: after a restore, or after a wrong booking, the payout goes into another batch.
    pub may_be_earlier: bool,
    /// How the operator allows them, as a request.
    pub allow: &'static str,
}

impl PaidWithin {
    /// What is wrong with a payout's date. Allows one extra day on both sides, because a provider may write its own day.
    fn mistake(self, paid_at: Timestamp, payout: &PayoutRecord) -> Option<String> {
        if paid_at >= self.now.start_of_day().plus(DAY * 2) {
            return Some(format!("paid_at {paid_at} is later than tomorrow; write when it was paid"));
        }
        let PayoutRecord { batch, batch_at, .. } = payout;
        (paid_at < batch_at.start_of_day().minus(DAY) && !self.may_be_earlier).then(|| {
            format!(
                "paid_at {paid_at} is before batch {batch} was made, {batch_at}; write when it was paid, or {} if it was paid from \
                 another file",
                self.allow
            )
        })
    }
}

impl CheckedAnswer {
    /// Checks one line; `payout` is the payout it names. A payout from before the records were restored (`generation`) may share its id
    /// with one that is not in them, so its amount has to be told.
    pub fn add(
        &mut self,
        line: AnswerLine,
        payout: Option<&PayoutRecord>,
        generation: Option<&PayoutGeneration>,
        within: PaidWithin,
    ) {
        let AnswerLine { line, external_id: id, amount_cents, settlement } = line;
        let mut wrong = |what: String| add_mistake(&mut self.mistakes, line, format!("external_id {id}: {what}"));
        let Some(payout) = payout else {
            return wrong("no payout has it; use the file that was written for its batch".to_owned());
        };
        match amount_cents {
            Some(cents) if cents != payout.amount_cents => wrong(format!(
                "the file says {}, but the payout is {}; clear the difference with the provider",
                money(cents),
                money(payout.amount_cents)
            )),
            None if generation.is_some_and(|generation| !generation.has_made(&id)) => wrong(
                "amount_cents is missing; the payout is from before the records were restored, and another one may have had its \
                 id: write the amount that the provider was told"
                    .to_owned(),
            ),
            _ => {}
        }
        let Some(settlement) = settlement else { return };
        let (before, after) = (payout.state, settlement.state());
        if before == after {
            self.differing
                .extend(difference(&settlement, payout).map(|what| (line, format!("external_id {id}: {what}"))));
        } else if before.may_become(after) {
            if let Some(mistake) = settlement.paid_at.and_then(|paid_at| within.mistake(paid_at, payout)) {
                wrong(mistake);
            }
            if before == PayoutState::Paid {
                self.came_back.push(id);
            }
        } else {
            let why = if before == PayoutState::Failed { ", and is due again under another id" } else { "" };
            wrong(format!("the file says {}, but it was settled as {}{why}", after.name(), before.name()));
        }
        self.settlements.push(settlement);
    }

    /// "4 paid, 1 failed".
    pub fn outcomes(&self) -> String {
        let paid = self.settlements.iter().filter(|settlement| settlement.is_paid).count();
        format!("{paid} paid, {} failed", self.settlements.len() - paid)
    }

    /// What the answer called `name` contained, and what was done with it.
    pub fn words(&self, name: &str, settled: &SettledPayouts) -> Vec<String> {
        let all = self.settlements.len() as u64;
        let mut lines = vec![
            format!("{name} has {}: {}.", counted(all, "payout"), self.outcomes()),
            format!("Recorded now: {}. Recorded before: {}.", settled.booked, all.saturating_sub(settled.booked)),
        ];
        let back = &self.came_back;
        if !back.is_empty() {
            let were = if back.len() == 1 { "One of them was" } else { "These were" };
            lines.push(format!("{were} recorded as paid before: {}.", back.join(", ")));
        }
        let became = [
            (
                settled.due_again,
                "failed and is due again, or what is left of it: the next batch has it under another external_id.",
            ),
            (
                settled.not_due,
                "failed and is not due: what it paid for was voided, or made up for what was paid too much.",
            ),
            (settled.of_erased, "failed of a member who was erased: no batch pays it again."),
        ];
        lines.extend(became.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
        if !self.differing.is_empty() {
            lines.push("Recorded before in other words, and left as it was:".to_owned());
            lines.extend(numbered(&self.differing).iter().map(|line| format!("  {line}")));
        }
        lines
    }
}

pub fn numbered(lines: &[(usize, String)]) -> Vec<String> {
    lines.iter().map(|(line, what)| format!("line {line}: {what}")).collect()
}

fn difference(settlement: &Settlement, payout: &PayoutRecord) -> Option<String> {
    let mut differing = Vec::new();
    if let (Some(at), Some(booked)) = (settlement.paid_at, payout.paid_at)
        && settlement.is_paid
        && at != booked
    {
        differing.push(format!("paid_at {booked}, not {at}"));
    }
    for (name, told, booked) in
        [("reference", &settlement.reference, &payout.reference), ("reason", &settlement.reason, &payout.reason)]
    {
        if let Some(told) = told.as_ref().filter(|told| Some(*told) != booked.as_ref()) {
            differing.push(format!("{name} {}, not {}", quote(booked.as_deref().unwrap_or_default()), quote(told)));
        }
    }
    (!differing.is_empty()).then(|| format!("recorded with {}", differing.join(", ")))
}
