//! The rate limiter that nodes share: one exact sliding window per bucket, in Redis.
//!
//! Each check is one atomic step on one key. Checks that are ready together are one script in one round trip (`batch.rs`). It
//! uses the clock of Redis, so that nodes with different clocks agree. Redis must never take the service down: if it is late,
//! full or down, a limiter in this process's memory decides, at once or after [`REDIS_CHECK_TIMEOUT`].
//!
//! That limiter counts all the time. A request takes a place there first, and gives it back when Redis refuses it or its caller
//! leaves; without a place Redis is not asked, so that of a crowd in flight Redis counts no more than this node can admit. While
//! memory has room for the bucket, no 60 seconds of this node's clock admit more than the limit through this node, whatever Redis
//! answers. All nodes together admit the limit, one more for each request that one of them decided alone or that Redis lost, and
//! never more than the limit times their number.
//!
//! Nothing counts twice, even if the answer is late. Redis is stricter than memory only by what it cannot know: it counts checks
//! that it left unread while it stood still as if they had been made when it went on, and those whose caller left meanwhile.
//!
//! A Redis key is the prefix, the version of its form, the class and the address or the id of a partner's key. It expires
//! within 76 seconds of its last request, and never while an admitted one still counts. It holds the groups of the window, a
//! thousand while the limit stays, and of those that are over at most as many, or 32. A group is 8 bytes: its latest time and
//! how many requests it has, so that a changed limit still counts what was admitted. If the clock of Redis is set back by more
//! than a minute, the buckets start again. Clusters are not supported: a batch has keys of many slots.
//!
//! This module must never know who is notified of a switch, and never put the address of Redis into an error: it may hold a
//! password.

mod batch;
mod target;

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use redis::{AsyncConnectionConfig, ErrorKind, RedisError, Script, ServerErrorKind};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use self::batch::{BatchRunner, LimitCheck, WaitingCheck};
pub use self::target::{BadTarget, Target};
use super::memory::MemoryLimiter;
use super::table::Reservation;
use super::{Bucket, Class, Limiter, LimiterStatus, Scope, Subject, Verdict};
use crate::domain::time::Tick;
use crate::reply::Reply;

/// What a slow Redis may cost one request.
pub const REDIS_CHECK_TIMEOUT: Duration = Duration::from_millis(50);

/// So many answers in a row that come too late, and Redis is no longer asked until a probe finds it well.
const LATE_IN_A_ROW: u32 = 3;

/// Checks that may wait for Redis at once, besides the batch that is on its way. The next are decided here, so whoever fills it
/// delays nobody.
const MAX_WAITING: usize = 1024;

/// How long a new connection may take, with its TLS and its password.
const REDIS_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How often a connection is tried out while it works, so that its loss is noticed though nobody calls.
const BEAT: Duration = Duration::from_secs(1);

/// The pause before Redis is tried again, at first and at the most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// After so many good beats the pauses begin anew: a Redis that comes and goes fills no log.
const STEADY: u32 = 10;

/// What a connection is tried out with. The limit is far above what all nodes' beats can use, so that each of them writes.
const PROBE: LimitCheck = LimitCheck { bucket: None, limit: 1_000_000, now: Tick::from_micros(0) };

/// Whose time the windows are in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TimeOf {
    /// Redis' own, whatever tick is given.
    Redis,
    /// The caller's ticks: for those who choose the time.
    Caller,
}

/// How a [`RedisLimiter`] goes about it.
#[derive(Clone, Copy)]
pub struct Manner {
    pub time: TimeOf,
    /// How long one check may take.
    pub timeout: Duration,
}

impl Default for Manner {
    fn default() -> Self {
        Self { time: TimeOf::Redis, timeout: REDIS_CHECK_TIMEOUT }
    }
}

/// What is told when the counting moves.
#[derive(Clone, PartialEq, Eq)]
pub enum Change {
    /// This node counts alone from now on; why.
    Disconnected(String),
    /// It counts with the others again.
    Shared,
}

/// Redis is there and turns us away; waiting would not fix that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

pub struct RedisLimiter {
    shared: Arc<Shared>,
    keeper: AbortHandle,
}

impl RedisLimiter {
    /// Connects, or begins on `local` if Redis cannot be reached; `tell` hears of that and of every later change, once.
    pub async fn connect(
        target: Target,
        manner: Manner,
        local: MemoryLimiter,
        tell: impl Fn(Change) + Send + Sync + 'static,
    ) -> Result<Self, Refused> {
        let shared = Arc::new(Shared {
            target,
            manner,
            script: Arc::new(Script::new(include_str!("window.lua"))),
            connection: RwLock::default(),
            lost: Notify::new(),
            local,
            fallbacks: AtomicU64::new(0),
            tell: Box::new(tell),
        });
        match shared.open().await {
            Ok(connection) => *shared.connection.write().unwrap_or_else(PoisonError::into_inner) = Some(connection),
            Err(Trouble::Failed(error)) if is_refusal(&error) => return Err(Refused(error.to_string())),
            Err(trouble) => (shared.tell)(Change::Disconnected(trouble.to_string())),
        }
        let keeper = tokio::spawn(Arc::clone(&shared).keep()).abort_handle();
        Ok(Self { shared, keeper })
    }
}

impl Drop for RedisLimiter {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Limiter for RedisLimiter {
    fn check(&self, bucket: Bucket, limit: u32, now: Tick) -> Reply<'_, Verdict> {
        let shared = &*self.shared;
        let Some(connection) = shared.connection() else { return Reply::now(shared.alone(None, bucket, limit, now)) };
        let own = shared.local.reserve(bucket, limit, now);
        if let Some(refused) = own.as_ref().filter(|own| !own.verdict.admitted) {
            return Reply::now(refused.verdict);
        }
        Reply::later(async move {
            match shared.ask(&connection, LimitCheck { bucket: Some(bucket), limit, now }).await {
                Some(verdict) if verdict.admitted => own.map_or(verdict, |own| verdict.and(own.keep())),
                Some(refused) => refused,
                None => shared.alone(own, bucket, limit, now),
            }
        })
    }

    fn status(&self) -> LimiterStatus {
        let scope = if self.shared.connection().is_some() { Scope::Shared } else { Scope::Local };
        LimiterStatus { scope, fallbacks: self.shared.fallbacks.load(Ordering::Relaxed) }
    }
}

struct Shared {
    target: Target,
    manner: Manner,
    script: Arc<Script>,
    /// None while this node counts alone.
    connection: RwLock<Option<Arc<RedisConnection>>>,
    /// Rung when the connection is lost.
    lost: Notify,
    local: MemoryLimiter,
    /// Requests decided here.
    fallbacks: AtomicU64,
    tell: Box<dyn Fn(Change) + Send + Sync>,
}

/// A connection that worked when it was last used.
struct RedisConnection {
    /// To its [`BatchRunner`], which ends with the connection.
    checks: mpsc::Sender<WaitingCheck>,
    late_in_a_row: AtomicU32,
}

/// Why Redis did not answer a question.
#[derive(Clone)]
enum Trouble {
    Late(Duration),
    Failed(RedisError),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(timeout) => write!(f, "it does not answer within {} ms", timeout.as_millis()),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl Trouble {
    fn runner_gone() -> Self {
        Self::Failed(RedisError::from((ErrorKind::Client, "the task that asks it has failed")))
    }
}

impl Shared {
    fn connection(&self) -> Option<Arc<RedisConnection>> {
        self.connection.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The verdict of this node's own count, in which the request may have its place already.
    fn alone(&self, own: Option<Reservation<'_>>, bucket: Bucket, limit: u32, now: Tick) -> Verdict {
        self.fallbacks.fetch_add(1, Ordering::Relaxed);
        own.map_or_else(|| self.local.decide(bucket, limit, now), Reservation::keep)
    }

    /// What Redis says, unless it says nothing, or nothing in time.
    async fn ask(&self, connection: &Arc<RedisConnection>, check: LimitCheck) -> Option<Verdict> {
        let (verdict, decided) = oneshot::channel();
        let waiting = WaitingCheck { check, since: Instant::now(), verdict };
        if let Err(TrySendError::Full(_)) = connection.checks.try_send(waiting) {
            return None;
        }
        // The runner answers in time. It is gone only if it failed.
        match decided.await.unwrap_or_else(|_| Err(Trouble::runner_gone())) {
            Ok(verdict) => {
                // Written only when there is something to forget: many threads read it.
                if connection.late_in_a_row.load(Ordering::Relaxed) != 0 {
                    connection.late_in_a_row.store(0, Ordering::Relaxed);
                }
                Some(verdict)
            }
            Err(trouble) => {
                let late = matches!(trouble, Trouble::Late(_));
                if !late || connection.late_in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= LATE_IN_A_ROW {
                    self.lose(connection, &trouble);
                }
                None
            }
        }
    }

    /// Counts alone from now on. Without effect where another request on the same connection came first.
    fn lose(&self, connection: &Arc<RedisConnection>, trouble: &Trouble) {
        let mut current = self.connection.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            *current = None;
            drop(current);
            (self.tell)(Change::Disconnected(trouble.to_string()));
            self.lost.notify_one();
        }
    }

    /// A new connection, tried out with what it is for: a Redis that answers and cannot write is of no use.
    async fn open(&self) -> Result<Arc<RedisConnection>, Trouble> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(REDIS_CONNECT_TIMEOUT))
            // Each question has its own time-out.
            .set_response_timeout(None);
        // The driver's limit is on each step of connecting; ours is on all of them.
        let connecting = self.target.client.get_multiplexed_async_connection_with_config(&config);
        let late = |_| Trouble::Late(REDIS_CONNECT_TIMEOUT);
        let connected = tokio::time::timeout(REDIS_CONNECT_TIMEOUT, connecting).await.map_err(late)?;
        let mut connection = connected.map_err(Trouble::Failed)?;
        let loading = self.script.load_async(&mut connection);
        let loaded = tokio::time::timeout(REDIS_CONNECT_TIMEOUT, loading).await.map_err(late)?;
        loaded.map_err(Trouble::Failed)?;
        let (script, prefix) = (Arc::clone(&self.script), self.target.prefix.clone());
        let mut runner = BatchRunner { connection, script, prefix, manner: self.manner };
        // Two keys: one of a cluster, even one that has them all, would refuse the first batch of many.
        let other = Bucket { class: Class::Public, subject: Subject::Network(IpAddr::from([0, 0, 0, 0]).into()) };
        runner.decide([PROBE, LimitCheck { bucket: Some(other), ..PROBE }].iter(), Instant::now()).await?;
        let (checks, waiting) = mpsc::channel(MAX_WAITING);
        tokio::spawn(runner.run(waiting));
        Ok(Arc::new(RedisConnection { checks, late_in_a_row: AtomicU32::new(0) }))
    }

    /// Tries the connection out while there is one, and looks for a new one while there is none.
    async fn keep(self: Arc<Self>) {
        let (mut pause, mut beats) = (PAUSES.0, 0);
        loop {
            if let Some(connection) = self.connection() {
                tokio::select! {
                    () = self.lost.notified() => continue,
                    () = tokio::time::sleep(BEAT) => {}
                }
                if self.ask(&connection, PROBE).await.is_some() {
                    beats += 1;
                }
                if beats >= STEADY {
                    pause = PAUSES.0;
                }
            } else {
                beats = 0;
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
                // What is wrong was told when the connection was lost.
                if let Ok(connection) = self.open().await {
                    *self.connection.write().unwrap_or_else(PoisonError::into_inner) = Some(connection);
                    (self.tell)(Change::Shared);
                }
            }
        }
    }
}

/// Whether Redis turned us away for a reason that only the operator can fix: a wrong password, or none where one is
/// needed, a command that is not allowed, a database that is not there; or that it is one of a cluster, of which we would
/// reach a part of the keys.
fn is_refusal(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::AuthenticationFailed
        | ErrorKind::InvalidClientConfig
        | ErrorKind::RESP3NotSupported
        | ErrorKind::Server(ServerErrorKind::NoPerm | ServerErrorKind::Moved | ServerErrorKind::CrossSlot) => true,
        ErrorKind::Server(ServerErrorKind::ResponseError) => {
            // The driver has one kind for everything that Redis calls ERR; most of those pass.
            error.detail().is_some_and(|detail| detail.contains("DB index"))
        }
        _ => matches!(error.code(), Some("NOAUTH" | "WRONGPASS")),
    }
}
