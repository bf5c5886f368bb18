//! The connection pool: connections are made when needed, to whichever host takes writes (failover), and given to one unit
//! of work at a time.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use deadpool::managed::{self, Metrics, Object, PoolError, QueueMode, RecycleError, RecycleResult};
use deadpool::{Runtime, Status};
use tokio::time::Instant;
use tokio_postgres::error::SqlState;

use super::address::{Address, place, quoted};
use super::connection::{ExpectedIdentity, Parameter, PgConnection, database_identity, is_broken, is_of_class};
use crate::reply::BoxFuture;
use crate::store::StoreError;
use crate::store::queue::PoolFigures;
use crate::store::sql::{Failure, Job, describe};
use crate::supervise;

/// The most connections of a node for sign-ups, and as many for confirmations: whatever holds up one purpose leaves the others
/// alone. Batches share one; the others are for the units that a batch left undone.
pub(super) const BATCH_CONNECTIONS: usize = 4;

/// The most connections for everything else but the member count, which has one.
pub(super) const OTHER_CONNECTIONS: usize = 4;

/// How long a unit of work may take once it has a connection.
const UNIT_TIMEOUT: Duration = Duration::from_secs(5);

/// And how long it may wait for one.
const WAIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The server's own time-out for a statement, which comes first: then the connection is still of use.
const STATEMENT_TIMEOUT: &str = "4000";

/// And for a lock, much shorter: one that is not given is somebody's mistake, and whoever waits for it holds up others.
const LOCK_TIMEOUT: &str = "300";

/// How often rows that are held are asked for, each time for as long.
pub const LOCK_TRIES: usize = 4;

/// The same at a start: half a minute.
const START_TRIES: usize = 100;

/// How long cancelling a statement that nobody waits for any more may take.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// How often a unit is tried that met a deadlock, or found that another changed what it had read.
const TRIES: usize = 8;

/// How often a connection is asked whether it still leads to the same tables.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// What a connection of the pool is used for: a job of the store, or what only this engine does.
pub(super) trait Work: Send {
    type Done: Send;

    /// How long it may take.
    const TIMEOUT: Duration = UNIT_TIMEOUT;

    /// Whether it is made of several statements that must be done or undone together.
    fn is_transaction(&self) -> bool {
        false
    }

    fn apply(&mut self, connection: &mut PgConnection) -> impl Future<Output = Result<Self::Done, Failure>> + Send;
}

impl Work for Box<dyn Job + '_> {
    type Done = ();

    fn is_transaction(&self) -> bool {
        (**self).is_transaction()
    }

    async fn apply(&mut self, connection: &mut PgConnection) -> Result<(), Failure> {
        (**self).apply(connection).await
    }
}

/// Work that is a function of a connection, for what is rarely done.
struct Question<F>(F);

impl<T, F> Work for Question<F>
where
    T: Send,
    F: for<'c> FnMut(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Failure>> + Send,
{
    type Done = T;

    async fn apply(&mut self, connection: &mut PgConnection) -> Result<T, Failure> {
        (self.0)(connection).await
    }
}

/// Asks a question on a connection of its own, made as the service makes its own.
pub(super) async fn ask_once<T, F>(address: Address, ask: F) -> Result<T, StoreError>
where
    T: Send,
    F: for<'c> FnMut(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Failure>> + Send,
{
    let pool = Pool::new(address, 1, ExpectedIdentity::default())?;
    let answer = pool.ask(ask).await;
    pool.close();
    answer
}

#[derive(Clone)]
pub(super) struct Pool(managed::Pool<Connector>);

impl Pool {
    /// `expected` is what every connection has to lead to, once that is known.
    pub(super) fn new(address: Address, connections: usize, expected: ExpectedIdentity) -> Result<Self, StoreError> {
        Self::with_plans(address, connections, expected, "auto")
    }

    /// For statements over a list. Each is planned once: for a short list PostgreSQL would rather plan it anew at each use, which
    /// takes several times as long as the work.
    pub(super) fn for_batches(address: Address, expected: ExpectedIdentity) -> Result<Self, StoreError> {
        Self::with_plans(address, BATCH_CONNECTIONS, expected, "force_generic_plan")
    }

    fn with_plans(
        address: Address,
        connections: usize,
        expected: ExpectedIdentity,
        plans: &'static str,
    ) -> Result<Self, StoreError> {
        let connector = Connector { address, plans, good: AtomicUsize::new(0), expected };
        let pool = managed::Pool::builder(connector)
            .max_size(connections)
            .wait_timeout(Some(WAIT_TIMEOUT))
            .queue_mode(QueueMode::Lifo) // the one used last is the one most likely to be well
            .runtime(Runtime::Tokio1)
            .build();
        pool.map(Self).map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    /// Runs a unit of work on a connection of its own.
    pub(super) async fn run<W: Work>(&self, work: &mut W) -> Result<W::Done, StoreError> {
        self.attempt(work).await.map_err(StoreError::from)
    }

    /// Asks a question, or does a single statement, on a connection of the pool.
    pub(super) async fn ask<T, F>(&self, ask: F) -> Result<T, StoreError>
    where
        T: Send,
        F: for<'c> FnMut(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Failure>> + Send,
    {
        self.run(&mut Question(ask)).await
    }

    /// The same for a change: somebody waits for it, so rows that are locked are asked for a few times more. Others who wait for a
    /// connection wait no longer for it than they would for a slow disk.
    pub(super) async fn run_patiently<W: Work>(&self, work: &mut W) -> Result<W::Done, StoreError> {
        self.attempt_for_locked(work, LOCK_TRIES).await.map_err(StoreError::from)
    }

    /// The same for a question that may change something at a start: other nodes may start at the same moment, and it waits for them.
    pub(super) async fn ask_at_start<T, F>(&self, ask: F) -> Result<T, StoreError>
    where
        T: Send,
        F: for<'c> FnMut(&'c mut PgConnection) -> BoxFuture<'c, Result<T, Failure>> + Send,
    {
        self.attempt_for_locked(&mut Question(ask), START_TRIES).await.map_err(StoreError::from)
    }

    /// The same, so often, with what went wrong in the database's own words.
    pub(super) async fn attempt_for_locked<W: Work>(&self, work: &mut W, tries: usize) -> Result<W::Done, Failure> {
        for _ in 1..tries {
            match self.attempt(work).await {
                Err(failure) if is_locked(&failure) => {}
                done => return done,
            }
        }
        self.attempt(work).await
    }

    /// Runs a unit of work, with what went wrong in the database's own words.
    pub(super) async fn attempt<W: Work>(&self, work: &mut W) -> Result<W::Done, Failure> {
        let mut tried = 0;
        loop {
            let mut connection = self.get().await?;
            tried += 1;
            connection.in_use = true;
            match tokio::time::timeout(W::TIMEOUT, perform(work, &mut connection)).await {
                Ok(Err(failure)) if is_passing(&failure) && tried < TRIES => {}
                Ok(Err(failure)) => {
                    if is_of_connection(&failure) {
                        drop(Object::take(connection));
                    }
                    return Err(failure);
                }
                Ok(done) => return done,
                Err(_) => {
                    // Whatever it still does there, nobody is to wait behind it, neither here nor for its locks.
                    self.cancel(&Object::take(connection));
                    return Err(Failure::Lost("PostgreSQL: no answer in time".to_owned()));
                }
            }
        }
    }

    pub(super) async fn get(&self) -> Result<Object<Connector>, Failure> {
        self.0.get().await.map_err(|error| {
            Failure::Away(match error {
                PoolError::Backend(failure) => return failure,
                PoolError::Timeout(_) => "PostgreSQL: every connection is busy".to_owned(),
                PoolError::Closed => "PostgreSQL: the store is closed".to_owned(),
                other => format!("PostgreSQL: {other}"),
            })
        })
    }

    /// Asks the server to end what a connection is doing: it may hold locks, or wait for a standby that is gone, long
    /// after the connection is closed.
    fn cancel(&self, connection: &PgConnection) {
        let (token, tls) = (connection.client.cancel_token(), self.0.manager().address.tls.clone());
        supervise::spawn(async move {
            // One that does not hear it, or is gone, has ended it already or will.
            let _either_way = tokio::time::timeout(CANCEL_TIMEOUT, token.cancel_query(tls)).await;
        });
    }

    pub(super) fn figures(&self, name: &'static str) -> PoolFigures {
        let Status { max_size, size, available, waiting } = self.0.status();
        let busy = size.saturating_sub(available);
        PoolFigures { name, busy, idle: available, most: max_size, waiting: Some(waiting) }
    }

    /// From now on every connection has to lead to this database.
    pub(super) fn expect(&self, identity: String) {
        let _set_before = self.0.manager().expected.set(identity);
    }

    pub(super) fn close(&self) {
        self.0.close();
    }
}

/// Does the work, in a transaction if it needs one.
async fn perform<W: Work>(work: &mut W, connection: &mut PgConnection) -> Result<W::Done, Failure> {
    if !work.is_transaction() {
        let done = work.apply(connection).await;
        connection.in_use = false;
        // What is one statement, or brings its own transaction, may have been committed all the same.
        return done.map_err(lost);
    }
    connection.client.batch_execute("BEGIN").await?;
    let done = work.apply(connection).await;
    let ended = connection.client.batch_execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).await;
    connection.in_use = ended.is_err();
    // What the work met says more than what became of the transaction after it.
    let done = done?;
    ended.map_err(|error| lost(error.into()))?;
    Ok(done)
}

/// A failure that leaves open whether a commit was done.
fn lost(failure: Failure) -> Failure {
    match failure {
        Failure::Postgres(ref error) if is_broken(error) => Failure::Lost(failure.to_string()),
        known => known,
    }
}

/// Whether trying again at once may succeed: nothing was done.
fn is_passing(failure: &Failure) -> bool {
    let passing = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
    matches!(failure, Failure::Overtaken) || state(failure).is_some_and(|state| passing.contains(state))
}

/// PostgreSQL's code for what went wrong, if it gave one.
fn state(failure: &Failure) -> Option<&SqlState> {
    match failure {
        Failure::Postgres(error) => error.code(),
        _ => None,
    }
}

/// Whether it is what was asked that was refused, and not the database that is unwell: others would not meet it.
pub(super) fn is_of_the_unit(failure: &Failure) -> bool {
    match failure {
        Failure::Unusable(_) | Failure::Overtaken => true,
        Failure::Postgres(error) => is_locked(failure) || is_of_class(error, &["22", "23", "54"]),
        Failure::Away(_) | Failure::Restored | Failure::Lost(_) | Failure::Sqlite(_) => false,
    }
}

/// Whether somebody else holds what it needed, and did not give it up in time.
pub(super) fn is_locked(failure: &Failure) -> bool {
    state(failure) == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// Whether the connection is to be thrown away: it is broken, leads to a host that no longer takes writes, or lost the statements
/// that were prepared on it.
fn is_of_connection(failure: &Failure) -> bool {
    let useless =
        [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::FEATURE_NOT_SUPPORTED];
    match failure {
        Failure::Postgres(error) => {
            is_broken(error)
                || is_of_class(error, &["25P"])
                || error.code().is_some_and(|state| useless.contains(state))
        }
        Failure::Away(_) | Failure::Restored | Failure::Lost(_) => true,
        Failure::Unusable(_) | Failure::Overtaken | Failure::Sqlite(_) => false,
    }
}

/// Makes connections.
pub(super) struct Connector {
    address: Address,
    /// When a statement is planned: `plan_cache_mode`.
    plans: &'static str,
    /// Which host took writes the last time: it is asked first.
    good: AtomicUsize,
    expected: ExpectedIdentity,
}

impl managed::Manager for Connector {
    type Type = PgConnection;
    type Error = Failure;

    /// Asks one host after the other, each for as long as it is given.
    async fn create(&self) -> Result<PgConnection, Failure> {
        let Address { hosts, connect_timeout, .. } = &self.address;
        let first = self.good.load(Ordering::Relaxed);
        let (mut refused, mut is_restored) = (Vec::new(), false);
        for index in (0..hosts.len()).map(|n| (first + n) % hosts.len()) {
            match tokio::time::timeout(*connect_timeout, self.connect(index)).await {
                Ok(Ok(connection)) => {
                    self.good.store(index, Ordering::Relaxed);
                    return Ok(connection);
                }
                Ok(Err(why)) => {
                    is_restored |= matches!(why, Failure::Restored);
                    refused.push(format!("{}: {why}", place(&hosts[index])));
                }
                Err(_) => refused.push(format!("{}: no answer in time", place(&hosts[index]))),
            }
        }
        Err(match is_restored {
            true => Failure::Restored,
            false => Failure::Away(format!("PostgreSQL: no host takes writes ({})", refused.join("; "))),
        })
    }

    async fn recycle(&self, connection: &mut PgConnection, _: &Metrics) -> RecycleResult<Failure> {
        // One whose user went away half-way is closed: the next would wait behind what it still does.
        if connection.client.is_closed() || connection.in_use {
            return Err(RecycleError::message("not usable"));
        }
        // Tables that are restored under a running service, by their names, leave its connections as they are.
        match self.expected.get() {
            Some(expected) if connection.checked_at.elapsed() >= CHECK_EVERY => {
                let asked = tokio::time::timeout(CANCEL_TIMEOUT, connection.identity()).await;
                let Ok(Ok(identity)) = asked else { return Err(RecycleError::message("not usable")) };
                connection.checked_at = Instant::now();
                if identity == *expected { Ok(()) } else { Err(Failure::Restored.into()) }
            }
            _ => Ok(()),
        }
    }
}

/// What every connection runs with. A statement that takes this long is stuck; a lock that is not given is somebody's
/// mistake. A commit that is acknowledged must be on the disk, even where the server's own default is laxer; a stricter
/// one, such as waiting for a standby to apply it, stays. Every statement finds its rows by an index; the planner, whose
/// figures lag behind a union that grows fast, is not to think that reading a whole small table will do.
const SET_UP: &str = concat!(
    "
    SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false),
           set_config('idle_in_transaction_session_timeout', '10000', false),
           set_config('default_transaction_isolation', 'read committed', false),
           set_config('search_path', coalesce($3, current_setting('search_path')), false),
           set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false),
           set_config('plan_cache_mode', $4, false),
           CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END,
           current_setting('transaction_read_only') = 'on' AS read_only, ",
    database_identity!(),
    " AS identity"
);

impl Connector {
    async fn connect(&self, index: usize) -> Result<PgConnection, Failure> {
        let failed = |error: tokio_postgres::Error| Failure::Away(describe(&error));
        let connected = self.address.hosts[index].connect(self.address.tls.clone()).await;
        let (client, connection) = connected.map_err(failed)?;
        // When it breaks, whoever waits for an answer on it is told.
        let task = tokio::spawn(async move {
            let _told_elsewhere = connection.await;
        });
        let connection = PgConnection::new(client, task);
        let schema = self.address.schema.as_deref().map(quoted);
        let values: [Parameter<'_>; 4] = [&STATEMENT_TIMEOUT, &LOCK_TIMEOUT, &schema, &self.plans];
        let row = connection.client.query_one(SET_UP, &values).await.map_err(failed)?;
        let read_only: bool = row.try_get("read_only").map_err(failed)?;
        let identity: String = row.try_get("identity").map_err(failed)?;
        match self.expected.get() {
            _ if read_only => Err(Failure::Away("it is read-only, a standby perhaps".to_owned())),
            Some(expected) if *expected != identity => Err(Failure::Restored),
            _ => Ok(connection),
        }
    }
}
