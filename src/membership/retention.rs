//! Retention: sign-ups that nobody confirmed expire, and their answers are deleted in time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::Clock;
use crate::log::Log;
use crate::store::MemberStore;

/// How often sign-ups are looked at; what there is more of than one round takes is taken at once.
const EVERY: Duration = Duration::from_secs(60);

/// Works until told to stop. Several nodes may do so on one store.
pub async fn run(store: Arc<dyn MemberStore>, log: Log, clock: Clock, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        match store.retain(clock.now().time).await {
            Ok(done) if done.expired + done.purged > 0 => continue,
            Ok(_) => {}
            Err(error) => log.problem(None, &format!("expired sign-ups could not be cleared away: {error}")),
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            _ = stop.changed() => {}
        }
    }
}
