//! What becomes of acceptances in a demonstration: suppliers are told, say who switched, and rewards are paid.

use anyhow::{Context, ensure};

use super::people::{CIRCLES, LIVELY, chance};
use super::story::{ANA, Story};
use crate::domain::campaign::LastDay;
use crate::domain::campaign::handover::SupplierAnswer;
use crate::domain::catalog::category::Category;
use crate::domain::figure::counted;
use crate::domain::reward::settlement::read_answer;
use crate::domain::time::Timestamp;
use crate::people::erasures::ErasureLog;
use crate::rewards::PaidWithin;

impl Story<'_> {
    /// Tells the supplier who accepted, in a file.
    pub(super) async fn hand_over(&self, slug: &str, now: Timestamp) -> anyhow::Result<()> {
        let operator = self.by_ana("campaigns handover", slug.to_owned(), now);
        let campaigns = operator.campaigns();
        let batch = campaigns.make_handover(&slug.parse()?, ANA, now).await?.context("nobody is to be handed over")?;
        campaigns.close_handover(&batch, ANA, now).await?;
        let written = campaigns.write_handover(&batch, &mut Vec::new()).await??;
        let what = format!("{slug}, batch {}: {}", batch.number, written.words());
        self.by_ana("campaigns handover", what, now).campaigns().note_handover(&batch, now).await?;
        Ok(())
    }

    /// The supplier says what became of the orders; members ordered with their codes.
    pub(super) async fn settle(
        &self,
        slug: &str,
        says: fn(usize) -> Option<(&'static str, i64)>,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        let log = ErasureLog::beside(&self.settings.store.data);
        let people = self.parts.operator.people(&self.parts.secret, log);
        let mut answer = "reference,status,date\n".to_owned();
        for (one, person) in self.people.iter().enumerate().filter(|(_, person)| person.session.is_some()) {
            let Some((status, day)) = says(one) else { continue };
            let found = people.find(&person.email, now).await?.context("a member is not found")?;
            let part = found.participations.iter().find(|part| part.campaign.as_str() == slug);
            let Some(acceptance) = part.and_then(|part| part.acceptance()) else { continue };
            // Who accepted after the last file is not known to the supplier yet.
            if acceptance.handed_over_at.is_some() {
                let on = LastDay::of(acceptance.accepted_at).max(LastDay::of(self.at(day, 0)));
                answer += &format!("{},{status},{on}\n", acceptance.reference);
            }
        }
        let lines = counted(answer.lines().skip(1).count() as u64, "line");
        let campaigns = self.by_ana("campaigns handover settle", lines, now).campaigns();
        let orders = campaigns.check_orders(SupplierAnswer::read(&answer), now).await?;
        ensure!(orders.mistakes.is_empty(), "what a supplier says is wrong: {:?}", orders.mistakes);
        campaigns.settle_orders(&orders, now).await?;
        Ok(())
    }

    pub(super) async fn make_batch(&self, now: Timestamp) -> anyhow::Result<()> {
        let rewards = self.by_ana("rewards batch new", String::new(), now).rewards();
        let batch = rewards.make_batch(ANA, now).await?.context("no reward is due")?;
        rewards.close_batch(batch, ANA, now).await?;
        let written = rewards.write_file(batch, &mut Vec::new(), None).await??;
        let what = format!("batch {batch}, {}", written.words());
        self.by_ana("rewards batch new", what, now).rewards().note_written(batch, now).await?;
        Ok(())
    }

    /// The provider paid everything that was in the file.
    pub(super) async fn settle_batch(&self, now: Timestamp) -> anyhow::Result<()> {
        let (rewards, mut file) = (self.parts.operator.rewards(), Vec::new());
        let (batch, _) = rewards.open_batches().await?;
        let batch = batch.first().context("no payout waits to be settled")?.id;
        rewards.write_file(batch, &mut file, None).await??;
        let file = String::from_utf8(file)?;
        let mut answer = "external_id,status,reference,paid_at\n".to_owned();
        for (nth, id) in file.lines().skip(1).filter_map(|line| line.split(',').next()).enumerate() {
            answer += &format!("{id},paid,tx-{},{}\n", 1001 + nth, self.day_named(-59));
        }
        let within = PaidWithin { now, may_be_earlier: false, allow: "" };
        let checked = rewards.check_answer(read_answer(&answer), within).await?;
        ensure!(checked.mistakes.is_empty(), "what the provider says is wrong: {:?}", checked.mistakes);
        let rewards = self.by_ana("rewards batch settle", checked.outcomes(), now).rewards();
        rewards.settle(&checked.settlements, ANA, now).await?;
        Ok(())
    }
}

/// What the supplier of the first campaign says first: of most that they switched, of a whole circle only that they ordered.
pub(super) fn first_mobile_answer(one: usize) -> Option<(&'static str, i64)> {
    let [first, second, ..] = &CIRCLES;
    Some(match chance(one, "switch", 100) {
        _ if one == LIVELY || first.people.contains(&one) && one + 1 < first.people.end => ("switched", -96),
        _ if second.people.contains(&one) => ("ordered", -97),
        _ if first.people.contains(&one) => ("rejected", -95),
        ..66 => ("switched", -97),
        66..80 => ("ordered", -97),
        80..92 => ("rejected", -96),
        _ => ("cancelled", -94),
    })
}

/// Then of the circle in the second file.
pub(super) fn second_mobile_answer(one: usize) -> Option<(&'static str, i64)> {
    CIRCLES[2].people.contains(&one).then_some(("switched", -60))
}

/// At last of the circle that had only ordered.
pub(super) fn third_mobile_answer(one: usize) -> Option<(&'static str, i64)> {
    let people = &CIRCLES[1].people;
    match one {
        _ if !people.contains(&one) || one + 1 == people.end => None,
        _ if one + 2 == people.end => Some(("cancelled", -53)),
        _ => Some(("switched", -52)),
    }
}

pub(super) fn groceries_answer(one: usize) -> Option<(&'static str, i64)> {
    let is_known = one == LIVELY
        || CIRCLES.iter().any(|circle| circle.people.contains(&one) && circle.bill == Category::Groceries);
    match chance(one, "order at the warehouse", 100) {
        _ if is_known && one.is_multiple_of(2) => Some(("switched", -24)),
        _ if is_known => Some(("switched", -21)),
        ..60 => Some(("switched", -23)),
        60..80 => Some(("ordered", -22)),
        80..90 => Some(("rejected", -21)),
        _ => None,
    }
}
