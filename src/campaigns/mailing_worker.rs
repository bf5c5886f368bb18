//! The mailing worker: advances mailings in bounded steps, at the pace the operator set. Its position is in the store, so it continues
//! after a crash, and several nodes can work on one store.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::campaigns::mailing::{ForgetMails, StepMailing};
use crate::campaigns::records::AreMailingsOpen;
use crate::clock::Clock;
use crate::domain::campaign::mailing::MailingPace;
use crate::domain::time::Timestamp;
use crate::log::Log;
use crate::store::{Store, StoreError};
use crate::supervise::pause_after_step;

/// How often it looks for something to mail or delete. Shorter than the gap that the pace tolerates, so that no allowance is lost.
const EVERY: Duration = Duration::from_secs(2);
const DELETES_EVERY: u32 = 30;

pub async fn run(store: Store, pace: MailingPace, log: Log, clock: Clock, mut stop: watch::Receiver<bool>) {
    let mut round = 0_u32;
    while !*stop.borrow() {
        if let Err(error) = work(&store, pace, round.is_multiple_of(DELETES_EVERY), &log, || clock.now().time).await {
            log.problem(None, &format!("mail about campaigns is not queued: {error}"));
        }
        round = round.wrapping_add(1);
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Does all that the pace allows now; returns how many mails were queued.
pub async fn work(
    store: &Store,
    pace: MailingPace,
    deletes: bool,
    log: &Log,
    now: impl Fn() -> Timestamp,
) -> Result<u32, StoreError> {
    let mut queued = 0;
    if pace.an_hour > 0 && store.run(AreMailingsOpen).await? {
        loop {
            let begun = Instant::now();
            let step = store.run(StepMailing { pace, now: now() }).await?;
            queued += step.queued;
            if let Some((slug, kind)) = step.ended_early {
                log.problem(
                    None,
                    &format!(
                        "the mailing {} of {slug} ended before everybody was mailed: its time is over; raise UNIONHALL_CAMPAIGN_MAILS_AN_HOUR, \
                         or leave more time",
                        kind.name()
                    ),
                );
            }
            if !step.more {
                break;
            }
            pause_after_step(begun).await;
        }
    }
    let mut begun = Instant::now();
    while deletes && store.run(ForgetMails(now())).await? > 0 {
        pause_after_step(begun).await;
        begun = Instant::now();
    }
    Ok(queued)
}
