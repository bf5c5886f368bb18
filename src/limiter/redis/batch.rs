//! Checks that are ready together go to Redis as one batch: one call of the script, one round trip. While a batch is on its way
//! the next one gathers. So batches grow with the load, and no check waits for one to fill.
//!
//! A batch has until its oldest check has waited for the time-out. Those behind it were asked later, so none of them waits
//! longer than that, whatever goes before it.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, RedisError, RedisWrite, Script, ServerErrorKind};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::{Manner, TimeOf, Trouble};
use crate::domain::time::Tick;
use crate::limiter::{Bucket, Subject, Verdict, WINDOW};

/// Checks of one batch, at the most: Redis does nothing else for about 3 µs each.
const MAX_BATCH: usize = 256;

/// Groups that a limit is counted in, at the most: below that each request has its own time.
const MOST_GROUPS: u32 = 1000;

/// How keys are told from those of another form: the first was a list and had no such mark. A script that met one would fail.
const FORM: &str = "v2:";

/// What Redis is asked about one request.
#[derive(Clone, Copy)]
pub(super) struct LimitCheck {
    /// None for the bucket that connections are tried out with.
    pub(super) bucket: Option<Bucket>,
    pub(super) limit: u32,
    pub(super) now: Tick,
}

/// A check, since when it waits, and for whom.
pub(super) struct WaitingCheck {
    pub(super) check: LimitCheck,
    pub(super) since: Instant,
    pub(super) verdict: oneshot::Sender<Result<Verdict, Trouble>>,
}

/// Asks Redis over one connection.
pub(super) struct BatchRunner {
    pub(super) connection: MultiplexedConnection,
    pub(super) script: Arc<Script>,
    /// What our keys begin with.
    pub(super) prefix: String,
    pub(super) manner: Manner,
}

impl BatchRunner {
    /// Decides what comes, until nobody can ask any more.
    pub(super) async fn run(mut self, mut waiting: mpsc::Receiver<WaitingCheck>) {
        let mut batch = Vec::new();
        while waiting.recv_many(&mut batch, MAX_BATCH).await > 0 {
            // Whoever no longer waits has hung up.
            batch.retain(|waiting| !waiting.verdict.is_closed());
            let Some(oldest) = batch.first() else { continue };
            let since = oldest.since;
            let verdicts = self.decide(batch.iter().map(|waiting| &waiting.check), since).await;
            for (place, WaitingCheck { verdict, .. }) in batch.drain(..).enumerate() {
                let found = match &verdicts {
                    Ok(verdicts) => verdicts.get(place).copied().ok_or_else(Trouble::unanswered),
                    Err(trouble) => Err(trouble.clone()),
                };
                let _hung_up_meanwhile = verdict.send(found);
            }
        }
    }

    /// The verdicts in the order of the checks. One round trip; three where Redis has forgotten the script, as after a restart.
    pub(super) async fn decide<'a>(
        &mut self,
        checks: impl ExactSizeIterator<Item = &'a LimitCheck> + Clone,
        since: Instant,
    ) -> Result<Vec<Verdict>, Trouble> {
        let late = Trouble::Late(self.manner.timeout);
        if since + self.manner.timeout <= Instant::now() {
            // Nobody would hear the answer, and Redis would count the checks when it comes to them.
            return Err(late);
        }
        let call = self.call(checks);
        let asked = async {
            match call.query_async::<Vec<u8>>(&mut self.connection).await {
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                    self.script.load_async(&mut self.connection).await?;
                    call.query_async(&mut self.connection).await
                }
                answered => answered,
            }
        };
        match tokio::time::timeout_at(since + self.manner.timeout, asked).await {
            Ok(Ok(answer)) => Ok(answer.as_chunks().0.iter().map(verdict).collect()),
            Ok(Err(error)) => Err(Trouble::Failed(error)),
            Err(_) => Err(late),
        }
    }

    /// Written straight into the command: the driver's own way has two allocations for each key and each argument.
    fn call<'a>(&self, checks: impl ExactSizeIterator<Item = &'a LimitCheck> + Clone) -> Cmd {
        let mut call = Cmd::new();
        call.arg("EVALSHA").arg(self.script.get_hash()).arg(checks.len());
        for check in checks.clone() {
            self.write_key(&mut call, check.bucket);
        }
        call.arg(WINDOW.as_micros() as u64).arg(MOST_GROUPS);
        for check in checks.clone() {
            call.arg(check.limit);
        }
        if self.manner.time == TimeOf::Caller {
            for check in checks {
                call.arg(check.now.as_micros());
            }
        }
        call
    }

    /// Short, and legible to an operator who looks into Redis. An id of a key has neither dots nor colons.
    fn write_key(&self, call: &mut Cmd, bucket: Option<Bucket>) {
        let prefix = &self.prefix;
        match bucket {
            Some(Bucket { class, subject: Subject::Network(network) }) => {
                call.write_arg_fmt(format_args!("{prefix}{FORM}{}:{network}", class.name()));
            }
            Some(Bucket { class, subject: Subject::Key(id) }) => {
                call.write_arg_fmt(format_args!("{prefix}{FORM}{}:{id}", class.name()));
            }
            None => call.write_arg_fmt(format_args!("{prefix}{FORM}probe")),
        }
    }
}

/// Reads what the script says of one check.
fn verdict(&[admitted, r0, r1, r2, r3, u0, u1, u2, u3]: &[u8; 9]) -> Verdict {
    Verdict {
        admitted: admitted != 0,
        remaining: u32::from_le_bytes([r0, r1, r2, r3]),
        reset: Duration::from_micros(u32::from_le_bytes([u0, u1, u2, u3]).into()),
    }
}

impl Trouble {
    fn unanswered() -> Self {
        Self::Failed(RedisError::from((ErrorKind::UnexpectedReturnType, "it answered fewer checks than it was asked")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    const HOUR: Duration = Duration::from_secs(3600);

    /// A connection to a Redis that takes the greeting and answers no check.
    async fn silent() -> MultiplexedConnection {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut bytes).await {
                let said = String::from_utf8_lossy(&bytes[..count]);
                if !said.contains("EVALSHA") {
                    stream.write_all("+OK\r\n".repeat(said.matches('*').count()).as_bytes()).await.unwrap();
                }
            }
        });
        redis::Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap()
    }

    /// The time of a check runs from when it was asked, not from when its batch could go: behind a late batch it waits no longer
    /// than another.
    #[tokio::test]
    async fn a_check_that_has_waited_for_the_time_out_is_late_at_once() {
        let script = Arc::new(Script::new("return ''"));
        let manner = Manner { time: TimeOf::Redis, timeout: HOUR };
        let runner = BatchRunner { connection: silent().await, script, prefix: String::new(), manner };
        let (checks, waiting) = mpsc::channel(2);
        tokio::spawn(runner.run(waiting));
        let (verdict, decided) = oneshot::channel();
        let check = LimitCheck { bucket: None, limit: 1, now: Tick::from_micros(0) };
        let since = Instant::now().checked_sub(HOUR).unwrap();
        checks.send(WaitingCheck { check, since, verdict }).await.unwrap();
        let decided = tokio::time::timeout(WINDOW, decided).await.expect("a verdict within a minute");
        assert!(matches!(decided, Ok(Err(Trouble::Late(HOUR)))));
    }
}
