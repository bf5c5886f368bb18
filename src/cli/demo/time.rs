//! How time passes in a demonstration: by hours, and everything that is due in one is done before the next begins.

use std::convert::Infallible;
use std::time::Duration;

use super::parts::ServiceParts;
use crate::clock::{self, Clock};
use crate::demonstration::{DemonstrationTime, FindDemonstration, NoteTime};

const HOUR: Duration = Duration::from_secs(3600);

/// How often the records are asked whether more time is wanted.
const EVERY: Duration = Duration::from_millis(100);

/// Lets the time pass that is asked for, on the page or by `demo advance`, for as long as the process runs.
pub(super) async fn pass(parts: &mut ServiceParts, clock: Clock) -> anyhow::Result<Infallible> {
    loop {
        match parts.store.run(FindDemonstration).await? {
            Some(time) if time.is_passing() => pass_one_hour(parts, time, clock).await?,
            _ => tokio::time::sleep(EVERY).await,
        }
    }
}

async fn pass_one_hour(parts: &mut ServiceParts, time: DemonstrationTime, clock: Clock) -> anyhow::Result<()> {
    let ahead = (time.ahead + HOUR).min(time.until);
    clock::move_ahead(ahead);
    parts.work(clock.now().time).await?;
    // Only now: whoever waits for the time finds everything done that was due in it.
    Ok(parts.store.run(NoteTime(ahead)).await?)
}
