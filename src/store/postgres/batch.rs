//! Sign-ups, many to a statement (group commit).
//!
//! Sign-ups that arrive while the database is busy with the last statement share the next one: one round trip and one
//! commit for up to 256 of them, by one task on one connection; more of either were slower. The statement does what
//! nearly every sign-up needs. Those it leaves undone, because a code was taken, a pending sign-up had expired or another
//! node was faster, are done one by one; all of them are if the statement fails as a whole.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::Instant;

use super::batch_statement::{Batch, QueuedSignUp};
use super::pool::{HotUnit, Pool, SHARES, is_locked, is_of_the_unit};
use crate::domain::sign_up::{NewSignUp, SignedUp};
use crate::domain::time::Timestamp;
use crate::reply::Reply;
use crate::store::queue::{BatchCounts, Queue, Queued};
use crate::store::sign_up::SignUp;
use crate::store::{PoolFigures, StoreError, StoreReply, WriterFigures};
use crate::supervise;

/// How long a sign-up is waited for in all.
const SIGN_UP_TIMEOUT: Duration = Duration::from_secs(8);

/// Sign-ups done one by one at a time, those beside the batches included: a connection stays free for batches.
const MAX_SINGLES: usize = SHARES.sign_ups - 1 - MAX_BESIDE;
const MAX_BESIDE: usize = 1;

/// How long a person whose rows somebody held is kept out of batches: those they would hold up are everybody's.
const LOCKED_FOR: Duration = Duration::from_secs(10);

/// So many people of one batch whose rows are held are not people's trouble any more, but a table's.
const MAX_HELD_IN_A_ROW: usize = 5;

/// People kept out of batches at the most.
const MAX_LOCKED: usize = 1024;

#[derive(Debug)]
pub(super) struct Batcher {
    /// None where each sign-up is to have a transaction of its own.
    queue: Option<Queue<QueuedSignUp>>,
    task: Mutex<Option<JoinHandle<()>>>,
    pool: Pool,
}

impl Batcher {
    pub(super) fn start(pool: Pool, batch: usize) -> Self {
        if batch <= 1 {
            return Self { queue: None, task: Mutex::default(), pool };
        }
        let (queue, inbox) = Queue::new();
        let task = tokio::spawn({
            let (pool, batches) = (pool.clone(), Arc::clone(&queue.batches));
            async move {
                let _vital = supervise::vital("the sign-ups");
                run(pool, inbox, batch, &batches).await;
            }
        });
        Self { queue: Some(queue), task: Mutex::new(Some(task)), pool }
    }

    pub(super) fn sign_up(&self, new: NewSignUp, now: Timestamp) -> StoreReply<'_, SignedUp> {
        let unit = SignUp { new, now };
        // The statement knows no sandbox.
        let Some(queue) = self.queue.as_ref().filter(|_| unit.new.person.email.scope().is_none()) else {
            return Reply::later(async move { self.pool.run_patiently(&mut HotUnit(&unit)).await });
        };
        let email = &unit.new.person.email;
        let (email_normalized, mailbox) = (email.normalized(), email.mailbox());
        let asked = queue.ask(|waiter| QueuedSignUp { unit, email_normalized, mailbox, waiter });
        Reply::later(async move {
            let late = |_| Err(StoreError::Unknown("PostgreSQL: no answer in time".to_owned()));
            tokio::time::timeout(SIGN_UP_TIMEOUT, asked).await.unwrap_or_else(late)
        })
    }

    pub(super) fn figures(&self) -> (WriterFigures, PoolFigures) {
        (self.queue.as_ref().map(Queue::figures).unwrap_or_default(), self.pool.figures("sign_ups"))
    }

    /// Finishes what waits.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(task), Some(queue)) = (task, &self.queue) else { return Ok(()) };
        queue.close().await?;
        task.await.map_err(|_| StoreError::Unavailable("PostgreSQL: the sign-ups ended early".to_owned()))
    }
}

async fn run(pool: Pool, mut inbox: mpsc::Receiver<Queued<QueuedSignUp>>, most: usize, batches: &BatchCounts) {
    let mut messages = Vec::with_capacity(most);
    let mut alone = SingleRunner::new(pool.clone());
    let mut open = true;
    while open && inbox.recv_many(&mut messages, most).await > 0 {
        let mut jobs = Vec::with_capacity(messages.len());
        for message in messages.drain(..) {
            match message {
                Queued::Job(job) if alone.is_apart(&job) => alone.beside(job),
                Queued::Job(job) => jobs.push(job),
                Queued::Close => open = false,
            }
        }
        while !jobs.is_empty() {
            let (batch, later) = split_duplicates(jobs);
            jobs = later;
            batches.count(batch.len());
            if let Err(error) = commit(&pool, &mut alone, batch).await {
                // A database that is unwell is not asked again for each batch that has gathered meanwhile.
                jobs.drain(..).for_each(|job| job.answer(Err(error.clone())));
                while let Ok(message) = inbox.try_recv() {
                    match message {
                        Queued::Job(job) => job.answer(Err(error.clone())),
                        Queued::Close => open = false,
                    }
                }
            }
        }
    }
    alone.finish().await;
}

/// Splits off those that a statement must not hold together: it sees the tables as they were before it, so it would add
/// the same person twice. In an order that every node keeps, so that two of them never wait for each other.
fn split_duplicates(jobs: Vec<QueuedSignUp>) -> (Vec<QueuedSignUp>, Vec<QueuedSignUp>) {
    let mut seen = HashSet::with_capacity(jobs.len());
    let (mut batch, later): (Vec<_>, Vec<_>) =
        jobs.into_iter().partition(|job| seen.insert(job.email_normalized.clone()));
    batch.sort_unstable_by(|a, b| a.email_normalized.cmp(&b.email_normalized));
    (batch, later)
}

/// Does and answers them all. An error says that the database is unwell: nobody else need ask it now. Those who met it were
/// told what it was for them.
async fn commit(pool: &Pool, alone: &mut SingleRunner, jobs: Vec<QueuedSignUp>) -> Result<(), StoreError> {
    let mut batch = Batch(jobs);
    let done = pool.attempt(&mut batch).await;
    let Batch(jobs) = batch;
    let undone = match done {
        Ok(done) => {
            let mut undone = Vec::new();
            for (job, done) in jobs.into_iter().zip(done) {
                match done {
                    Some(done) => job.answer(done),
                    None => undone.push(job),
                }
            }
            undone
        }
        Err(failure) if is_of_the_unit(&failure) => jobs,
        // Asking again one by one would only keep everyone waiting; and after a lost connection nobody knows what was
        // committed.
        Err(failure) => {
            let error = StoreError::from(failure);
            jobs.into_iter().for_each(|job| job.answer(Err(error.clone())));
            return Err(error.of_a_read());
        }
    };
    alone.all(undone).await
}

/// Sign-ups done one by one: those that a batch left undone, and beside the batches those of people who are kept apart.
struct SingleRunner {
    pool: Pool,
    /// Until when somebody is kept out of batches.
    locked: HashMap<String, Instant>,
    beside: JoinSet<SingleDone>,
    /// How many of those are done at a time.
    places: Arc<Semaphore>,
}

/// What one of them met: that its rows were held by somebody, or that the database is unwell.
enum SingleDone {
    Well,
    Locked(String),
    Unwell,
}

impl SingleRunner {
    fn new(pool: Pool) -> Self {
        let places = Arc::new(Semaphore::new(MAX_BESIDE));
        Self { pool, locked: HashMap::new(), beside: JoinSet::new(), places }
    }

    fn is_apart(&mut self, job: &QueuedSignUp) -> bool {
        match self.locked.get(&job.email_normalized) {
            Some(until) if *until > Instant::now() => true,
            Some(_) => {
                self.locked.remove(&job.email_normalized);
                false
            }
            None => false,
        }
    }

    /// Does one beside the batches, which do not wait for it; it waits for its turn.
    fn beside(&mut self, job: QueuedSignUp) {
        while let Some(done) = self.beside.try_join_next() {
            self.note(done);
        }
        let (pool, places) = (self.pool.clone(), Arc::clone(&self.places));
        self.beside.spawn(async move {
            let _place = places.acquire().await;
            do_alone(pool, job).await
        });
    }

    /// Does them all, unless the database is unwell: it is, too, when one after the other finds its rows held.
    async fn all(&mut self, jobs: Vec<QueuedSignUp>) -> Result<(), StoreError> {
        let (mut under_way, mut held, mut well) = (JoinSet::new(), 0, Ok(()));
        let mut jobs = jobs.into_iter();
        loop {
            while well.is_ok()
                && under_way.len() < MAX_SINGLES
                && let Some(job) = jobs.next()
            {
                under_way.spawn(do_alone(self.pool.clone(), job));
            }
            let Some(done) = under_way.join_next().await else { break };
            held += usize::from(matches!(done, Ok(SingleDone::Locked(_))));
            if matches!(done, Ok(SingleDone::Unwell)) || held >= MAX_HELD_IN_A_ROW {
                well =
                    Err(StoreError::Unavailable("PostgreSQL: it is unwell, or somebody holds its tables".to_owned()));
            }
            self.note(done);
        }
        if let Err(error) = &well {
            jobs.for_each(|job| job.answer(Err(error.clone())));
        }
        well
    }

    fn note(&mut self, done: Result<SingleDone, JoinError>) {
        if let Ok(SingleDone::Locked(email_normalized)) = done {
            if self.locked.len() >= MAX_LOCKED {
                self.locked.clear();
            }
            self.locked.insert(email_normalized, Instant::now() + LOCKED_FOR);
        }
    }

    async fn finish(mut self) {
        while self.beside.join_next().await.is_some() {}
    }
}

async fn do_alone(pool: Pool, job: QueuedSignUp) -> SingleDone {
    let done = pool.attempt(&mut HotUnit(&job.unit)).await;
    let met = match &done {
        Err(failure) if is_locked(failure) => SingleDone::Locked(job.email_normalized.clone()),
        Err(failure) if !is_of_the_unit(failure) => SingleDone::Unwell,
        _ => SingleDone::Well,
    };
    job.answer(done.map_err(StoreError::from));
    met
}
