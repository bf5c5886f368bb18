//! The campaign worker: acts by date and takes demand sheets, in bounded steps. Several nodes can run it on one store.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::campaigns::records::ListCampaigns;
use crate::campaigns::sheet::{CountPart, KeepSheet, ListDueSheets};
use crate::campaigns::states::StepByDate;
use crate::clock::Clock;
use crate::domain::campaign::CampaignSlug;
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
    take_due_sheets(store, None, now).await
}

/// Takes every due sheet, or only that of one campaign.
pub async fn take_due_sheets(
    store: &Store,
    only: Option<&CampaignSlug>,
    now: impl Fn() -> Timestamp,
) -> Result<(), StoreError> {
    let due = store.run(ListDueSheets(now())).await?;
    if due.is_empty() {
        return Ok(());
    }
    let campaigns = store.run(ListCampaigns).await?;
    let wanted = campaigns.iter().filter(|campaign| only.is_none_or(|slug| campaign.slug() == slug));
    for campaign in wanted.filter(|campaign| due.contains(&campaign.id)) {
        let begun_at = now();
        let sheet = count(store, campaign).await?.sheet(&campaign.draft.states);
        // The time counting ends: a change made meanwhile may be in this sheet, and does not count toward the next one.
        store.run(KeepSheet { campaign: campaign.id, sheet, begun_at, now: now() }).await?;
    }
    Ok(())
}

/// Counts the participants in batches.
async fn count(store: &Store, campaign: &CampaignRecord) -> Result<DemandCount, StoreError> {
    let (mut count, mut after) = (DemandCount::default(), 0);
    loop {
        let begun = Instant::now();
        let part = store.run(CountPart(campaign.id, after)).await?;
        part.members.iter().for_each(|member| count.add(*member, campaign.draft.category));
        let Some(last) = part.last else { return Ok(count) };
        after = last;
        pause_after_step(begun).await;
    }
}
