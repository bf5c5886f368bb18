//! Connections: made when needed, to whichever host takes writes, and given to one unit of work at a time.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{self, Metrics, Object, PoolError, QueueMode, RecycleError, RecycleResult};
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::address::{Address, place};
use super::{Failure, describe};
use crate::store::StoreError;

/// Connections a node holds at the most. Sign-ups share one and counting another, so a node is rarely seen to use four.
const CONNECTIONS: usize = 10;

/// How long a unit of work may take once it has a connection, and how long it may wait for one.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same for the server itself, which gives up first: then the connection is still of use.
const STATEMENT_TIMEOUT: &str = "4000";

/// How long a statement that nobody waits for any more may take to be called off.
const CALLING_OFF: Duration = Duration::from_secs(2);

/// How often a unit is tried that met a deadlock, or found that another changed what it had read.
const TRIES: usize = 8;

/// A change to the records or a question to them, as data: running it again after it failed does the same.
pub(super) trait Unit: Send + Sync {
    type Done: Send;

    /// Whether it is made of several statements that must be done or undone together.
    const SEVERAL: bool = false;

    /// How long it may take.
    const PATIENCE: Duration = PATIENCE;

    fn apply(&self, line: &mut Line) -> impl Future<Output = Result<Self::Done, Failure>> + Send;
}

/// A parameter of a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

#[derive(Clone)]
pub(super) struct Pool(managed::Pool<Connector>);

impl Pool {
    pub(super) fn new(address: Address) -> Result<Self, StoreError> {
        let connector = Connector { address, good: AtomicUsize::new(0) };
        let pool = managed::Pool::builder(connector)
            .max_size(CONNECTIONS)
            .wait_timeout(Some(PATIENCE))
            .queue_mode(QueueMode::Lifo) // the one used last is the one most likely to be well
            .runtime(Runtime::Tokio1)
            .build();
        pool.map(Self).map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    /// Runs a unit of work on a connection of its own.
    pub(super) async fn run<U: Unit>(&self, unit: &U) -> Result<U::Done, StoreError> {
        self.attempt(unit).await.map_err(StoreError::from)
    }

    /// The same, with what went wrong in the database's own words.
    pub(super) async fn attempt<U: Unit>(&self, unit: &U) -> Result<U::Done, Failure> {
        let mut tried = 0;
        loop {
            let mut line = self.get().await?;
            tried += 1;
            line.in_use = true;
            match tokio::time::timeout(U::PATIENCE, perform(unit, &mut line)).await {
                Ok(Err(failure)) if failure.is_passing() && tried < TRIES => {}
                Ok(Err(failure)) => {
                    if failure.is_of_connection() {
                        drop(Object::take(line));
                    }
                    return Err(failure);
                }
                Ok(done) => return done,
                Err(_) => {
                    // Whatever it still does there, nobody is to wait behind it, neither here nor for its locks.
                    self.call_off(&Object::take(line));
                    return Err(Failure::Away("PostgreSQL: no answer in time".to_owned()));
                }
            }
        }
    }

    pub(super) async fn get(&self) -> Result<Object<Connector>, Failure> {
        self.0.get().await.map_err(|error| {
            Failure::Away(match error {
                PoolError::Backend(why) => why,
                PoolError::Timeout(_) => "PostgreSQL: every connection is busy".to_owned(),
                PoolError::Closed => "PostgreSQL: the store is closed".to_owned(),
                other => format!("PostgreSQL: {other}"),
            })
        })
    }

    /// Asks the server to end what a connection is doing: it may hold locks, or wait for a standby that is gone, long
    /// after the connection is closed.
    fn call_off(&self, line: &Line) {
        let (token, tls) = (line.client.cancel_token(), self.0.manager().address.tls.clone());
        tokio::spawn(async move {
            // One that does not hear it, or is gone, has ended it already or will.
            let _either_way = tokio::time::timeout(CALLING_OFF, token.cancel_query(tls)).await;
        });
    }

    pub(super) fn close(&self) {
        self.0.close();
    }
}

/// Applies a unit, in a transaction if it needs one.
async fn perform<U: Unit>(unit: &U, line: &mut Line) -> Result<U::Done, Failure> {
    if !U::SEVERAL {
        let done = unit.apply(line).await;
        line.in_use = false;
        return done;
    }
    line.client.batch_execute("BEGIN").await?;
    let done = unit.apply(line).await;
    let ended = line.client.batch_execute(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).await;
    line.in_use = ended.is_err();
    // What the unit met says more than what became of the transaction after it.
    let done = done?;
    ended?;
    Ok(done)
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({})", self.0.manager().address)
    }
}

/// Makes connections.
pub(super) struct Connector {
    address: Address,
    /// Which host took writes the last time: it is asked first.
    good: AtomicUsize,
}

impl managed::Manager for Connector {
    type Type = Line;
    type Error = String;

    /// Asks one host after the other, each for as long as it is given.
    async fn create(&self) -> Result<Line, String> {
        let Address { hosts, connect_timeout, .. } = &self.address;
        let first = self.good.load(Ordering::Relaxed);
        let mut refused = Vec::new();
        for index in (0..hosts.len()).map(|n| (first + n) % hosts.len()) {
            match tokio::time::timeout(*connect_timeout, self.connect(index)).await {
                Ok(Ok(line)) => {
                    self.good.store(index, Ordering::Relaxed);
                    return Ok(line);
                }
                Ok(Err(why)) => refused.push(format!("{}: {why}", place(&hosts[index]))),
                Err(_) => refused.push(format!("{}: no answer in time", place(&hosts[index]))),
            }
        }
        Err(format!("PostgreSQL: no host takes writes ({})", refused.join("; ")))
    }

    async fn recycle(&self, line: &mut Line, _: &Metrics) -> RecycleResult<String> {
        // One whose user went away half-way is closed: the next would wait behind what it still does.
        if line.client.is_closed() || line.in_use { Err(RecycleError::message("not usable")) } else { Ok(()) }
    }
}

/// What every connection runs with. A statement that takes this long is stuck; a lock that is not given is somebody's
/// mistake. A commit that is acknowledged must be on the disk, even where the server's own default is laxer; a stricter
/// one, such as waiting for a standby to apply it, stays. Every statement finds its rows by an index; the planner, whose
/// figures lag behind a union that grows fast, is not to think that reading a whole small table will do.
const SET_UP: &str = "
    SELECT set_config('statement_timeout', $1, false),
           set_config('idle_in_transaction_session_timeout', '10000', false),
           set_config('default_transaction_isolation', 'read committed', false),
           set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false),
           CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END,
           current_setting('transaction_read_only') = 'on' AS read_only";

impl Connector {
    async fn connect(&self, index: usize) -> Result<Line, String> {
        let connected = self.address.hosts[index].connect(self.address.tls.clone()).await;
        let (client, connection) = connected.map_err(|error| describe(&error))?;
        // When it breaks, whoever waits for an answer on it is told.
        let task = tokio::spawn(async move {
            let _told_elsewhere = connection.await;
        });
        let line = Line { client, task, statements: Mutex::default(), in_use: false };
        let row = line.client.query_one(SET_UP, &[&STATEMENT_TIMEOUT]).await.map_err(|error| describe(&error))?;
        let read_only: bool = row.try_get("read_only").map_err(|error| describe(&error))?;
        if read_only { Err("it is read-only, a standby perhaps".to_owned()) } else { Ok(line) }
    }
}

/// One connection, with the statements that were prepared on it.
pub(super) struct Line {
    client: Client,
    task: JoinHandle<()>,
    /// By the place of their text: every statement is a constant of the program.
    statements: Mutex<HashMap<(usize, usize), Statement>>,
    in_use: bool,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Line {
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    async fn prepared(&self, sql: &'static str) -> Result<Statement, Failure> {
        let key = (sql.as_ptr().addr(), sql.len());
        let known = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(key, statement.clone());
        Ok(statement)
    }

    pub(super) async fn rows(&self, sql: &'static str, values: &[Value<'_>]) -> Result<Vec<Row>, Failure> {
        let statement = self.prepared(sql).await?;
        Ok(self.client.query(&statement, values).await?)
    }

    pub(super) async fn row(&self, sql: &'static str, values: &[Value<'_>]) -> Result<Option<Row>, Failure> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// How many rows it changed.
    pub(super) async fn execute(&self, sql: &'static str, values: &[Value<'_>]) -> Result<u64, Failure> {
        let statement = self.prepared(sql).await?;
        Ok(self.client.execute(&statement, values).await?)
    }

    /// Runs one statement after another under a lock, all sent at once: a transaction in one round trip. The second sees
    /// everything that was committed before the lock was given.
    pub(super) async fn locked(
        &self,
        lock: &'static str,
        key: Value<'_>,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<Option<Row>, Failure> {
        let (lock, statement) = (self.prepared(lock).await?, self.prepared(sql).await?);
        let keys = [key];
        // In this order on the wire, whoever is polled first later.
        let (begun, locked, done, committed) = tokio::join!(
            biased;
            self.client.batch_execute("BEGIN"),
            self.client.query(&lock, &keys),
            self.client.query(&statement, values),
            self.client.batch_execute("COMMIT"),
        );
        begun?;
        locked?;
        let rows = done?;
        committed?;
        Ok(rows.into_iter().next())
    }
}
