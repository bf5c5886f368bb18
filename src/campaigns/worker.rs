//! The campaign worker: acts by date and takes demand sheets, in bounded steps. Several nodes can run it on one store. A command that took
//! a step counts at once, in the same steps.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::campaigns::acceptances::EndAcceptances;
use crate::campaigns::records::ListCampaigns;
use crate::campaigns::sheet::{CountPart, DueSheet, EndCount, KeepSheet, ListDueSheets};
use crate::campaigns::states::StepByDate;
use crate::clock::Clock;
use crate::domain::campaign::demand::DemandCount;
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::time::Timestamp;
use crate::log::Log;
use crate::store::{Store, StoreError};
use crate::supervise::pause_after_step;

/// How often it looks for something to do.
const EVERY: Duration = Duration::from_secs(30);

/// Runs until stopped.
pub async fn run(store: Store, log: Log, clock: Clock, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        if let Err(error) = work(&store, || clock.now().time).await {
            log.problem(None, &format!("campaigns are not up to date: {error}"));
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Does everything that is due now.
pub async fn work(store: &Store, now: impl Fn() -> Timestamp) -> Result<(), StoreError> {
    while store.run(StepByDate(now())).await? > 0 {}
    end_acceptances(store, &now).await?;
    let due = store.run(ListDueSheets(now())).await?;
    if due.is_empty() {
        return Ok(());
    }
    let campaigns = store.run(ListCampaigns).await?;
    for due in due {
        if let Some(campaign) = campaigns.iter().find(|campaign| campaign.id == due.campaign) {
            take_sheet(store, campaign, due, None, &now).await?;
        }
    }
    Ok(())
}

/// Ends the acceptances of offers that have ended.
pub async fn end_acceptances(store: &Store, now: &impl Fn() -> Timestamp) -> Result<(), StoreError> {
    let mut begun = Instant::now();
    while store.run(EndAcceptances(now())).await? {
        pause_after_step(begun).await;
        begun = Instant::now();
    }
    Ok(())
}

/// Counts what a step of the campaign asked for, if it asked, until that moment. What is not done by then the worker does.
pub async fn count_after_step(
    store: &Store,
    campaign: &CampaignRecord,
    until: Instant,
    now: impl Fn() -> Timestamp,
) -> Result<(), StoreError> {
    let due = store.run(ListDueSheets(now())).await?;
    match due.into_iter().find(|due| due.campaign == campaign.id && due.step.is_some()) {
        Some(due) => take_sheet(store, campaign, due, Some(until), &now).await,
        None => Ok(()),
    }
}

async fn take_sheet(
    store: &Store,
    campaign: &CampaignRecord,
    due: DueSheet,
    until: Option<Instant>,
    now: &impl Fn() -> Timestamp,
) -> Result<(), StoreError> {
    if !due.is_enough {
        return store.run(EndCount(due)).await;
    }
    if let Some(count) = count(store, campaign, until).await? {
        let sheet = count.sheet(&campaign.draft.states);
        // The time counting ends: a change made meanwhile may be in this sheet, and does not count toward the next one.
        store.run(KeepSheet { due, sheet, now: now() }).await?;
    }
    Ok(())
}

/// Counts the participants in batches. None if that is not done by then.
async fn count(
    store: &Store,
    campaign: &CampaignRecord,
    until: Option<Instant>,
) -> Result<Option<DemandCount>, StoreError> {
    let (mut count, mut after) = (DemandCount::default(), 0);
    while until.is_none_or(|until| Instant::now() < until) {
        let begun = Instant::now();
        let part = store.run(CountPart(campaign.id, after)).await?;
        part.members.iter().for_each(|member| count.add(*member, campaign.draft.category));
        let Some(last) = part.last else { return Ok(Some(count)) };
        after = last;
        pause_after_step(begun).await;
    }
    Ok(None)
}
