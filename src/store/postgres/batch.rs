//! Group commit: jobs of one kind that arrive together share a transaction.
//!
//! Units of one kind that arrive while the database is busy with their last batch share the next one: one commit for up to 256 of
//! them, by one task on one connection; more tasks or connections were slower. Units that a batch leaves undone run one by one;
//! if the whole batch fails, all of its units do.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{mem, slice};

use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::connection::PgConnection;
use super::pool::{BATCH_CONNECTIONS, Pool, Work, is_locked, is_of_the_unit};
use crate::reply::{BoxFuture, Reply};
pub use crate::store::postgres::pool::LOCK_TRIES;
use crate::store::queue::{BatchCounts, PoolFigures, Queue, Queued, Waiter, WriterFigures};
use crate::store::sql::{Failure, How, Unit};
use crate::store::{StoreError, StoreReply};
use crate::supervise;

/// How long a caller waits for a job in total.
const JOB_TIMEOUT: Duration = Duration::from_secs(8);

/// The most jobs of one kind that run one by one at a time, including those beside the batches: a connection stays free for
/// batches.
const MAX_SINGLES: usize = BATCH_CONNECTIONS - 1 - MAX_BESIDE;
const MAX_BESIDE: usize = 1;

/// The most jobs that wait for one of those places.
const MAX_WAITING_BESIDE: usize = 16;

/// How long a key with locked rows is kept out of batches, where it would hold up everyone's jobs.
const LOCKED_FOR: Duration = Duration::from_secs(10);

/// If this many jobs of one batch find their rows locked, the problem is a table and not the jobs.
const MAX_HELD_IN_A_ROW: usize = 5;

/// The most keys that are kept out of batches.
const MAX_LOCKED: usize = 1024;

/// A unit that can run together with others of its kind, in one transaction on PostgreSQL.
pub trait Batched: Unit<Done: Unpin> {
    /// Identifies the rows that it needs. Batches are in the order of their keys, so that two nodes never wait for each other.
    type Key: Ord + Hash + Clone + Send + Sync;

    /// The name of its connections in metrics, and of its task for the operator.
    const POOL: &'static str;
    const TASK: &'static str;

    /// How many times to try for locked rows, beside the batches.
    const LOCK_TRIES: usize;

    /// Whether a single job runs as a batch of one; otherwise its unit runs in its own transaction.
    const ALONE_AS_BATCH: bool;

    fn key(&self) -> Self::Key;

    /// Runs the jobs in one transaction; returns their outcomes in the same order. At least one of them is not `Again`.
    fn together(
        jobs: &[Keyed<Self>],
        connection: &mut PgConnection,
    ) -> impl Future<Output = Result<Vec<BatchOutcome<Self::Done>>, Failure>> + Send
    where
        Self: Sized;
}

/// A unit with its key, which may take a moment to make.
pub struct Keyed<B: Batched> {
    pub key: B::Key,
    pub unit: B,
}

/// The outcome of a job in a batch.
pub enum BatchOutcome<T> {
    Done(T),
    /// The batch cannot decide it.
    Alone,
    /// It depends on what another job of this batch did: the next batch can decide it.
    Again,
}

struct Batch<B: Batched>(Vec<Keyed<B>>);

impl<B: Batched> Work for Batch<B> {
    type Done = Vec<BatchOutcome<B::Done>>;

    async fn apply(&mut self, connection: &mut PgConnection) -> Result<Self::Done, Failure> {
        B::together(&self.0, connection).await
    }
}

/// One job in its own transaction.
struct Single<'a, B: Batched>(&'a Keyed<B>);

impl<B: Batched> Work for Single<'_, B> {
    type Done = B::Done;

    fn is_transaction(&self) -> bool {
        !B::ALONE_AS_BATCH && B::HOW == How::Transaction
    }

    async fn apply(&mut self, connection: &mut PgConnection) -> Result<B::Done, Failure> {
        if !B::ALONE_AS_BATCH {
            return self.0.unit.apply(connection).await;
        }
        match B::together(slice::from_ref(self.0), connection).await?.pop() {
            Some(BatchOutcome::Done(done)) => Ok(done),
            _ => Err(Failure::Overtaken),
        }
    }
}

/// A job that waits for its batch, and the waiter for its answer.
struct QueuedJob<B: Batched> {
    job: Keyed<B>,
    waiter: Waiter<B::Done>,
}

impl<B: Batched> QueuedJob<B> {
    fn answer(self, done: Result<B::Done, StoreError>) {
        // The caller may be gone; the work is done.
        let _gone = self.waiter.send(done);
    }
}

pub struct Batcher<B: Batched> {
    /// None if each job gets its own transaction.
    queue: Option<Queue<QueuedJob<B>>>,
    task: Mutex<Option<JoinHandle<()>>>,
    pool: Pool,
}

impl<B: Batched> Batcher<B> {
    pub(super) fn start(pool: Pool, batch: usize) -> Self {
        if batch <= 1 {
            return Self { queue: None, task: Mutex::default(), pool };
        }
        let (queue, inbox) = Queue::new();
        let task = supervise::spawn({
            let (pool, batches) = (pool.clone(), Arc::clone(&queue.batches));
            async move {
                let _vital = supervise::vital(B::TASK);
                run(pool, inbox, batch, &batches).await;
            }
        });
        Self { queue: Some(queue), task: Mutex::new(Some(task)), pool }
    }

    /// Runs a unit together with others.
    pub(in crate::store) fn run(&self, unit: B) -> StoreReply<'_, B::Done> {
        let job = Keyed { key: unit.key(), unit };
        let Some(queue) = &self.queue else {
            return Reply::later(async move { self.pool.run_patiently(&mut Single(&job)).await });
        };
        let asked = queue.ask(|waiter| QueuedJob { job, waiter });
        Reply::later(async move {
            let late = |_| Err(StoreError::Unknown("PostgreSQL: no answer in time".to_owned()));
            tokio::time::timeout(JOB_TIMEOUT, asked).await.unwrap_or_else(late)
        })
    }
}

/// A batcher of any kind.
pub(super) trait AnyBatcher: Send + Sync {
    fn figures(&self) -> (WriterFigures, PoolFigures);

    /// Finishes the waiting jobs.
    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>>;
}

impl<B: Batched> AnyBatcher for Batcher<B> {
    fn figures(&self) -> (WriterFigures, PoolFigures) {
        (self.queue.as_ref().map(Queue::figures).unwrap_or_default(), self.pool.figures(B::POOL))
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (Some(task), Some(queue)) = (task, &self.queue) else { return Ok(()) };
            queue.close().await?;
            task.await.map_err(|_| StoreError::Unavailable(format!("PostgreSQL: {} ended early", B::TASK)))
        })
    }
}

async fn run<B: Batched>(
    pool: Pool,
    mut inbox: mpsc::Receiver<Queued<QueuedJob<B>>>,
    most: usize,
    batches: &BatchCounts,
) {
    let (mut messages, mut jobs) = (Vec::with_capacity(most), Vec::new());
    let mut alone = SingleRunner::new(pool.clone());
    let mut open = true;
    loop {
        // Jobs that come again do not wait for more; jobs that arrived meanwhile join them.
        if jobs.is_empty() && (!open || inbox.recv_many(&mut messages, most).await == 0) {
            break;
        }
        while open
            && jobs.len() + messages.len() < most
            && let Ok(message) = inbox.try_recv()
        {
            messages.push(message);
        }
        for message in messages.drain(..) {
            match message {
                Queued::Job(queued) if alone.is_apart(&queued.job.key) => alone.beside(queued),
                Queued::Job(queued) => jobs.push(queued),
                Queued::Close => open = false,
            }
        }
        if jobs.is_empty() {
            continue;
        }
        match commit(&pool, &mut alone, mem::take(&mut jobs), batches).await {
            Ok(again) => jobs = again,
            // If the database is unwell, it is not asked again for each batch that has gathered meanwhile.
            Err(error) => {
                while let Ok(message) = inbox.try_recv() {
                    match message {
                        Queued::Job(queued) => queued.answer(Err(error.clone())),
                        Queued::Close => open = false,
                    }
                }
            }
        }
    }
    alone.finish().await;
}

/// Runs and answers the jobs; returns those that come again. An error means that the database is unwell and no other job should
/// ask it now. The jobs that met the error already have their own answers.
async fn commit<B: Batched>(
    pool: &Pool,
    alone: &mut SingleRunner<B>,
    mut jobs: Vec<QueuedJob<B>>,
    batches: &BatchCounts,
) -> Result<Vec<QueuedJob<B>>, StoreError> {
    // Jobs of one key stay in the order of their arrival.
    jobs.sort_by(|a, b| a.job.key.cmp(&b.job.key));
    let (jobs, waiters): (Vec<_>, Vec<_>) = jobs.into_iter().map(|QueuedJob { job, waiter }| (job, waiter)).unzip();
    let mut batch = Batch(jobs);
    let done = pool.attempt(&mut batch).await;
    let Batch(jobs) = batch;
    let jobs = jobs.into_iter().zip(waiters).map(|(job, waiter)| QueuedJob { job, waiter });
    let (mut undone, mut again) = (Vec::new(), Vec::new());
    match done {
        Ok(done) => {
            batches.count(done.iter().filter(|done| !matches!(done, BatchOutcome::Again)).count());
            for (queued, done) in jobs.zip(done) {
                match done {
                    BatchOutcome::Done(done) => queued.answer(Ok(done)),
                    BatchOutcome::Alone => undone.push(queued),
                    BatchOutcome::Again => again.push(queued),
                }
            }
        }
        Err(failure) if is_of_the_unit(&failure) => undone.extend(jobs),
        // Retrying one by one would only keep everyone waiting; and after a lost connection it is unknown what was committed.
        Err(failure) => {
            let error = StoreError::from(failure);
            jobs.for_each(|queued| queued.answer(Err(error.clone())));
            return Err(error.of_a_read());
        }
    }
    if let Err(error) = alone.all(undone).await {
        again.into_iter().for_each(|queued| queued.answer(Err(error.clone())));
        return Err(error);
    }
    Ok(again)
}

/// Runs jobs one by one: those that a batch left undone and, beside the batches, those that are kept apart.
struct SingleRunner<B: Batched> {
    pool: Pool,
    /// Until when a key is kept out of batches.
    locked: HashMap<B::Key, Instant>,
    /// A job that returns its key found its rows locked on every try.
    beside: JoinSet<Option<B::Key>>,
    /// How many of those run at a time.
    places: Arc<Semaphore>,
}

impl<B: Batched> SingleRunner<B> {
    fn new(pool: Pool) -> Self {
        let places = Arc::new(Semaphore::new(MAX_BESIDE));
        Self { pool, locked: HashMap::new(), beside: JoinSet::new(), places }
    }

    fn is_apart(&mut self, key: &B::Key) -> bool {
        match self.locked.get(key) {
            Some(until) if *until > Instant::now() => true,
            Some(_) => {
                self.locked.remove(key);
                false
            }
            None => false,
        }
    }

    fn keep_apart(&mut self, key: B::Key) {
        if self.locked.len() >= MAX_LOCKED {
            self.locked.clear();
        }
        self.locked.insert(key, Instant::now() + LOCKED_FOR);
    }

    /// Runs a job beside the batches, which do not wait for it; the job waits for its turn.
    fn beside(&mut self, queued: QueuedJob<B>) {
        while let Some(ended) = self.beside.try_join_next() {
            if let Ok(Some(key)) = ended {
                self.keep_apart(key);
            }
        }
        if self.beside.len() >= MAX_WAITING_BESIDE {
            return queued.answer(Err(StoreError::Unavailable(
                "PostgreSQL: somebody holds rows that too many wait for".to_owned(),
            )));
        }
        let (pool, places) = (self.pool.clone(), Arc::clone(&self.places));
        self.beside.spawn(async move {
            let _place = places.acquire().await;
            match do_alone(pool, queued, B::LOCK_TRIES).await {
                SingleDone::Locked(queued, failure) => {
                    let key = queued.job.key.clone();
                    queued.answer(Err(failure.into()));
                    Some(key)
                }
                SingleDone::Well | SingleDone::Unwell => None,
            }
        });
    }

    /// Runs all jobs, unless the database is unwell; it also counts as unwell if one job after another finds its rows locked.
    async fn all(&mut self, jobs: Vec<QueuedJob<B>>) -> Result<(), StoreError> {
        let (mut under_way, mut held, mut well) = (JoinSet::new(), Vec::new(), Ok(()));
        let mut jobs = jobs.into_iter();
        loop {
            while well.is_ok()
                && under_way.len() < MAX_SINGLES
                && let Some(queued) = jobs.next()
            {
                under_way.spawn(do_alone(self.pool.clone(), queued, 1));
            }
            let Some(done) = under_way.join_next().await else { break };
            let is_unwell = matches!(done, Ok(SingleDone::Unwell));
            if let Ok(SingleDone::Locked(queued, failure)) = done {
                self.keep_apart(queued.job.key.clone());
                held.push((queued, failure));
            }
            if is_unwell || held.len() >= MAX_HELD_IN_A_ROW {
                well =
                    Err(StoreError::Unavailable("PostgreSQL: it is unwell, or somebody holds its tables".to_owned()));
            }
        }
        for (queued, failure) in held {
            if B::LOCK_TRIES > 1 && well.is_ok() {
                self.beside(queued);
            } else {
                queued.answer(Err(failure.into()));
            }
        }
        if let Err(error) = &well {
            jobs.for_each(|queued| queued.answer(Err(error.clone())));
        }
        well
    }

    async fn finish(mut self) {
        while self.beside.join_next().await.is_some() {}
    }
}

/// How a job that ran alone ended.
enum SingleDone<B: Batched> {
    /// It is answered.
    Well,
    /// It is answered, and the database is unwell.
    Unwell,
    /// Its rows are locked; the job is not answered yet.
    Locked(QueuedJob<B>, Failure),
}

async fn do_alone<B: Batched>(pool: Pool, queued: QueuedJob<B>, tries: usize) -> SingleDone<B> {
    let done = pool.attempt_for_locked(&mut Single(&queued.job), tries).await;
    let met = match done {
        Err(failure) if is_locked(&failure) => return SingleDone::Locked(queued, failure),
        Err(ref failure) if !is_of_the_unit(failure) => SingleDone::Unwell,
        _ => SingleDone::Well,
    };
    queued.answer(done.map_err(StoreError::from));
    met
}
