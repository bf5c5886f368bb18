//! Checks that are ready together go to Redis as one batch: one call of the script, one round trip. While a batch is on its way the
//! next ones gather, so that batches grow with the load and nobody waits for one to fill.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisError, Script};
use tokio::sync::{mpsc, oneshot};

use super::{Manner, TimeOf, Trouble};
use crate::domain::time::Tick;
use crate::limiter::{Verdict, WINDOW};

/// Checks of one call, at the most: Redis does nothing else meanwhile.
const MAX_BATCH: usize = 64;

/// Groups that a limit is counted in, at the most: below that each request has its own time.
const MOST_GROUPS: u32 = 1000;

/// What Redis is asked about one request.
#[derive(Debug)]
pub(super) struct BucketCheck {
    pub key: String,
    pub limit: u32,
    pub now: Tick,
}

/// A check, and who waits for its verdict.
#[derive(Debug)]
pub(super) struct WaitingCheck {
    pub check: BucketCheck,
    pub verdict: oneshot::Sender<Result<Verdict, Trouble>>,
}

/// The script on a connection.
pub(super) struct BatchRunner {
    pub connection: MultiplexedConnection,
    pub script: Arc<Script>,
    pub manner: Manner,
}

impl BatchRunner {
    /// Decides what comes, until nobody can ask any more.
    pub(super) async fn run(mut self, mut waiting: mpsc::Receiver<WaitingCheck>) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while waiting.recv_many(&mut batch, MAX_BATCH).await > 0 {
            // Whoever no longer waits was decided elsewhere, or has hung up.
            batch.retain(|waiting| !waiting.verdict.is_closed());
            if batch.is_empty() {
                continue;
            }
            let verdicts = self.decide(batch.iter().map(|waiting| &waiting.check)).await;
            for (place, WaitingCheck { verdict, .. }) in batch.drain(..).enumerate() {
                let found = match &verdicts {
                    Ok(verdicts) => verdicts.get(place).copied().ok_or_else(Trouble::nonsense),
                    Err(trouble) => Err(trouble.clone()),
                };
                let _hung_up_meanwhile = verdict.send(found);
            }
        }
    }

    /// One round trip; three where Redis has forgotten the script, as after a restart.
    pub(super) async fn decide(&mut self, checks: impl Iterator<Item = &BucketCheck>) -> Result<Vec<Verdict>, Trouble> {
        let mut call = self.script.prepare_invoke();
        call.arg(WINDOW.as_micros() as u64).arg(MOST_GROUPS);
        for check in checks {
            call.key(&check.key).arg(check.limit);
            match self.manner.time {
                TimeOf::Redis => call.arg(""),
                TimeOf::Caller => call.arg(check.now.as_micros()),
            };
        }
        let asked = call.invoke_async::<Vec<u64>>(&mut self.connection);
        match tokio::time::timeout(self.manner.timeout, asked).await {
            Ok(Ok(figures)) => Ok(figures.as_chunks().0.iter().map(verdict).collect()),
            Ok(Err(error)) => Err(Trouble::Failed(error)),
            Err(_) => Err(Trouble::Late(self.manner.timeout)),
        }
    }
}

fn verdict(&[admitted, remaining, reset]: &[u64; 3]) -> Verdict {
    Verdict {
        admitted: admitted != 0,
        remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
        reset: Duration::from_micros(reset),
    }
}

impl Trouble {
    fn nonsense() -> Self {
        Self::Failed(RedisError::from((
            redis::ErrorKind::UnexpectedReturnType,
            "it answered fewer checks than it was asked",
        )))
    }
}
