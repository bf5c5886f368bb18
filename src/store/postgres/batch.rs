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

use super::connection::PgConnection;
use super::pool::{Pool, SHARES, Work, is_locked, is_of_the_unit};
use crate::domain::sign_up::{CONSENT_VERSION, NewSignUp, PENDING_FOR, POSTS_PENDING, SignedUp};
use crate::domain::time::Timestamp;
use crate::reply::Reply;
use crate::store::queue::{BatchCounts, Queue, Queued, Waiter};
use crate::store::sign_up::{SignUp, kept_categories, merging_answers, sign_up_columns, was_member_there};
use crate::store::sql::{Failure, Row};
use crate::store::{PoolFigures, StoreError, StoreReply, WriterFigures};
use crate::supervise;

/// How long a sign-up is waited for in all.
const SIGN_UP_TIMEOUT: Duration = Duration::from_secs(8);

/// Sign-ups done one by one at a time, those beside the batches included: a connection stays free for batches.
const ALONE_AT_ONCE: usize = SHARES.sign_ups - 1 - BESIDE_AT_ONCE;
const BESIDE_AT_ONCE: usize = 1;

/// How long a person whose rows somebody held is kept out of batches: those they would hold up are everybody's.
const APART_FOR: Duration = Duration::from_secs(10);

/// So many people of one batch whose rows are held are not people's trouble any more, but a table's.
const HELD_IN_A_ROW: usize = 5;

/// People kept out of batches at the most.
const APART: usize = 1024;

#[derive(Debug)]
pub(super) struct Batcher {
    /// None where each sign-up is to have a transaction of its own.
    queue: Option<Queue<QueuedSignUp>>,
    task: Mutex<Option<JoinHandle<()>>>,
    pool: Pool,
}

struct QueuedSignUp {
    unit: SignUp,
    /// The form in which addresses are the same or not, and whose mailbox it is: both cost a moment to make.
    compared: String,
    mailbox: String,
    waiter: Waiter<SignedUp>,
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
        let Some(queue) = &self.queue else {
            return Reply::later(async move { self.pool.run(&unit).await });
        };
        let email = &unit.new.person.email;
        let (compared, mailbox) = (email.compared(), email.mailbox());
        let asked = queue.ask(|waiter| QueuedSignUp { unit, compared, mailbox, waiter });
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
    let mut alone = Alone::new(pool.clone());
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
            let (batch, later) = apart(jobs);
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
fn apart(jobs: Vec<QueuedSignUp>) -> (Vec<QueuedSignUp>, Vec<QueuedSignUp>) {
    let mut seen = HashSet::with_capacity(jobs.len());
    let (mut batch, later): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| seen.insert(job.compared.clone()));
    batch.sort_unstable_by(|a, b| a.compared.cmp(&b.compared));
    (batch, later)
}

/// Does and answers them all. An error says that the database is unwell: nobody else need ask it now. Those who met it were
/// told what it was for them.
async fn commit(pool: &Pool, alone: &mut Alone, jobs: Vec<QueuedSignUp>) -> Result<(), StoreError> {
    let batch = Batch(jobs);
    let done = pool.attempt(&batch).await;
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
struct Alone {
    pool: Pool,
    /// Until when somebody is kept out of batches.
    apart: HashMap<String, Instant>,
    beside: JoinSet<AloneDone>,
    /// How many of those are done at a time.
    places: Arc<Semaphore>,
}

/// What one of them met: that its rows were held by somebody, or that the database is unwell.
enum AloneDone {
    Well,
    Locked(String),
    Unwell,
}

impl Alone {
    fn new(pool: Pool) -> Self {
        let places = Arc::new(Semaphore::new(BESIDE_AT_ONCE));
        Self { pool, apart: HashMap::new(), beside: JoinSet::new(), places }
    }

    fn is_apart(&mut self, job: &QueuedSignUp) -> bool {
        match self.apart.get(&job.compared) {
            Some(until) if *until > Instant::now() => true,
            Some(_) => {
                self.apart.remove(&job.compared);
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
                && under_way.len() < ALONE_AT_ONCE
                && let Some(job) = jobs.next()
            {
                under_way.spawn(do_alone(self.pool.clone(), job));
            }
            let Some(done) = under_way.join_next().await else { break };
            held += usize::from(matches!(done, Ok(AloneDone::Locked(_))));
            if matches!(done, Ok(AloneDone::Unwell)) || held >= HELD_IN_A_ROW {
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

    fn note(&mut self, done: Result<AloneDone, JoinError>) {
        if let Ok(AloneDone::Locked(compared)) = done {
            if self.apart.len() >= APART {
                self.apart.clear();
            }
            self.apart.insert(compared, Instant::now() + APART_FOR);
        }
    }

    async fn finish(mut self) {
        while self.beside.join_next().await.is_some() {}
    }
}

async fn do_alone(pool: Pool, job: QueuedSignUp) -> AloneDone {
    let done = pool.attempt(&job.unit).await;
    let met = match &done {
        Err(failure) if is_locked(failure) => AloneDone::Locked(job.compared.clone()),
        Err(failure) if !is_of_the_unit(failure) => AloneDone::Unwell,
        _ => AloneDone::Well,
    };
    job.answer(done.map_err(StoreError::from));
    met
}

impl QueuedSignUp {
    fn answer(self, done: Result<SignedUp, StoreError>) {
        // The caller may have gone; the work stands.
        let _gone = self.waiter.send(done);
    }
}

/// What nearly every sign-up needs, for all of them at once. A sign-up is done whole or not at all: one whose person is
/// neither known nor added goes no further. Somebody who is known costs as much as somebody new, so that the time tells
/// nothing: both are put to the table, and both rows are held as the foreign key of a new sign-up holds them. Mail that
/// waits gives way to newer, mail that is on its way stays; in its new place it has a new id, so that a late worker cannot
/// settle it.
const SIGN_UP: &str = concat!(
    "
    WITH job AS (
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                             $8::text[], $9::text[], $10::text[], $11::bigint[], $14::bigint[], $16::boolean[],
                             $17::boolean[], $18::text[], $19::text[], $20::text[], $21::text[]) WITH ORDINALITY
        AS job (email, compared, mailbox, code, key_id, partner, us_state, categories, comments, ref_code, now, lane,
                proven, disposable, grave, face, client, notice, n)
    ), house AS (
        SELECT signups_paused AS paused, member_count FROM installation WHERE id = 1
    ), known AS (
        SELECT j.n, p.id, p.code, p.mailbox, p.state = 'member' AS is_member,
               CASE WHEN j.partner <> '' THEN 0 ELSE
                   (SELECT min(free) FROM generate_series(1::bigint, $15::bigint) free WHERE NOT EXISTS
                       (SELECT FROM sign_ups s WHERE s.person_id = p.id AND s.partner = '' AND s.slot = free
                        AND s.state = 'pending')) END AS slot
        FROM job j JOIN people p ON p.compared = j.compared
        WHERE NOT (SELECT paused FROM house)
          AND NOT EXISTS (SELECT FROM sign_ups s WHERE s.person_id = p.id AND s.partner = j.partner
                          AND s.state = 'pending' AND s.expires_at <= j.now)
        FOR KEY SHARE OF p
    ), added AS (
        INSERT INTO people (email, compared, mailbox, code, state, created_at, uncredited)
        SELECT email, compared, mailbox, code, 'invited', now, ",
    was_member_there!("job.grave"),
    " FROM job
        WHERE NOT (SELECT paused FROM house)
        ON CONFLICT DO NOTHING
        RETURNING id, compared, code, mailbox
    ), person AS (
        SELECT n, id, code, mailbox, is_member, slot FROM known
        UNION ALL
        SELECT j.n, a.id, a.code, a.mailbox, FALSE, CASE WHEN j.partner <> '' THEN 0 ELSE 1 END
        FROM added a JOIN job j USING (compared)
    ), referral AS (
        SELECT p.n, r.id AS referrer_id
        FROM person p JOIN job j USING (n) JOIN people r ON r.code = j.ref_code AND r.mailbox <> p.mailbox
    ), signed AS (
        INSERT INTO sign_ups (",
    sign_up_columns!(),
    ")
        SELECT p.id, j.key_id, j.partner, 'pending', j.us_state, j.categories, j.comments, referrer_id, $12, j.now, j.now,
               j.now + $13, p.slot, j.disposable, j.face, j.client, j.notice
        FROM person p JOIN job j USING (n) LEFT JOIN referral USING (n) WHERE p.slot IS NOT NULL
        ",
    merging_answers!(),
    "
        RETURNING id, person_id
    ), mailed AS (
        INSERT INTO outbox (sign_up_id, kind, recipient, created_at, send_after, lane, pass)
        SELECT s.id, CASE WHEN p.is_member THEN 'already_member' ELSE 'confirm' END, j.email, j.now, j.now, j.lane,
               j.proven::int
        FROM signed s JOIN person p ON p.id = s.person_id JOIN job j USING (n)
        ON CONFLICT (sign_up_id) DO UPDATE
        SET id = excluded.id, kind = excluded.kind, recipient = excluded.recipient, created_at = excluded.created_at,
            send_after = excluded.send_after, attempts = 0, first_attempt_at = NULL, leased_by = NULL, last_error = NULL,
            given_up_at = NULL, lane = excluded.lane, pass = excluded.pass, held_at = NULL
        WHERE outbox.leased_until <= excluded.created_at
    )
    SELECT h.paused, h.member_count, p.code, referrer_id IS NOT NULL, s.id IS NOT NULL
    FROM job j CROSS JOIN house h LEFT JOIN person p USING (n) LEFT JOIN referral USING (n)
    LEFT JOIN signed s ON s.person_id = p.id
    ORDER BY j.n"
);

struct Batch(Vec<QueuedSignUp>);

/// What came of each, in their order; none for one that was left undone.
type Done = Vec<Option<Result<SignedUp, StoreError>>>;

impl Work for Batch {
    type Done = Done;

    async fn apply(&self, connection: &mut PgConnection) -> Result<Done, Failure> {
        let jobs = &self.0;
        let texts = |text: for<'a> fn(&'a QueuedSignUp) -> &'a str| jobs.iter().map(text).collect::<Vec<_>>();
        let perhaps = |text: for<'a> fn(&'a QueuedSignUp) -> Option<&'a str>| jobs.iter().map(text).collect::<Vec<_>>();
        let categories: Vec<_> = jobs.iter().map(|job| kept_categories(job.unit.new.categories)).collect();
        let now: Vec<_> = jobs.iter().map(|job| job.unit.now.as_millis()).collect();
        let lanes: Vec<_> = jobs.iter().map(|job| job.unit.new.lane.number()).collect();
        let flags = |flag: fn(&NewSignUp) -> bool| jobs.iter().map(|job| flag(&job.unit.new)).collect::<Vec<_>>();
        let pending_for = i64::try_from(PENDING_FOR.as_millis()).unwrap_or(i64::MAX);
        let rows = connection
            .query(
                SIGN_UP,
                &[
                    &texts(|job| job.unit.new.person.email.as_typed()),
                    &texts(|job| &job.compared),
                    &texts(|job| &job.mailbox),
                    &texts(|job| job.unit.new.person.code.as_str()),
                    &perhaps(|job| job.unit.new.partner.as_ref().map(|partner| partner.key.as_str())),
                    &texts(|job| job.unit.new.partner.as_ref().map_or("", |partner| partner.name.as_str())),
                    &perhaps(|job| job.unit.new.us_state.map(|state| state.code())),
                    &categories,
                    &perhaps(|job| job.unit.new.comments.as_ref().map(|comments| comments.as_str())),
                    &perhaps(|job| job.unit.new.ref_code.as_ref().map(|code| code.as_str())),
                    &now,
                    &i64::from(CONSENT_VERSION),
                    &pending_for,
                    &lanes,
                    &(POSTS_PENDING as i64),
                    &flags(|new| new.proven),
                    &flags(|new| new.disposable),
                    &texts(|job| job.unit.new.person.grave.as_str()),
                    &texts(|job| job.unit.new.evidence.face.name()),
                    &perhaps(|job| job.unit.new.evidence.client.as_ref().map(|client| client.as_str())),
                    &texts(|job| &job.unit.new.evidence.notice),
                ],
            )
            .await?;
        rows.iter().map(|row| done(&Row(row))).collect()
    }
}

fn done(row: &Row<'_>) -> Result<Option<Result<SignedUp, StoreError>>, Failure> {
    if row.get(0)? {
        return Ok(Some(Err(StoreError::Paused)));
    }
    if !row.get(4)? {
        return Ok(None);
    }
    Ok(Some(Ok(SignedUp { joined_count: row.get(1)?, code: row.get(2)?, attributed: row.get(3)? })))
}
