//! Sign-ups, many to a statement (group commit).
//!
//! Sign-ups that arrive while the database is busy with the last statement share the next one: one round trip and one
//! commit for up to 256 of them, by one task on one connection; more of either were slower. The statement does what
//! nearly every sign-up needs. Those it leaves undone, because a code was taken, a pending sign-up had expired or another
//! node was faster, are done one by one; all of them are if the statement fails as a whole.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use super::connection::PgConnection;
use super::pool::{Pool, Work, is_of_the_unit};
use crate::domain::sign_up::{CONSENT_VERSION, NewSignUp, PENDING_FOR, SignedUp};
use crate::domain::time::Timestamp;
use crate::reply::Reply;
use crate::store::queue::{Queue, Queued, Waiter};
use crate::store::sign_up::{SignUp, kept_categories, merging_answers, sign_up_columns};
use crate::store::sql::{Failure, Row};
use crate::store::{StoreError, StoreReply};

/// How long a sign-up is waited for in all.
const SIGN_UP_TIMEOUT: Duration = Duration::from_secs(8);

/// Sign-ups done one by one at a time: some connections stay free for others.
const ALONE_AT_ONCE: usize = 6;

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
        let task = tokio::spawn(run(pool.clone(), inbox, batch));
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
            let late = |_| Err(StoreError::Unavailable("PostgreSQL: no answer in time".to_owned()));
            tokio::time::timeout(SIGN_UP_TIMEOUT, asked).await.unwrap_or_else(late)
        })
    }

    /// Finishes what waits.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(task), Some(queue)) = (task, &self.queue) else { return Ok(()) };
        queue.close().await?;
        task.await.map_err(|_| StoreError::Unavailable("PostgreSQL: the sign-ups ended early".to_owned()))
    }
}

async fn run(pool: Pool, mut inbox: mpsc::Receiver<Queued<QueuedSignUp>>, most: usize) {
    let mut messages = Vec::with_capacity(most);
    let mut open = true;
    while open && inbox.recv_many(&mut messages, most).await > 0 {
        let mut jobs = Vec::with_capacity(messages.len());
        for message in messages.drain(..) {
            match message {
                Queued::Job(job) => jobs.push(job),
                Queued::Close => open = false,
            }
        }
        while !jobs.is_empty() {
            let (batch, later) = apart(jobs);
            jobs = later;
            if let Err(error) = commit(&pool, batch).await {
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
}

/// Splits off those that a statement must not hold together: it sees the tables as they were before it, so it would add
/// the same person twice. In an order that every node keeps, so that two of them never wait for each other.
fn apart(jobs: Vec<QueuedSignUp>) -> (Vec<QueuedSignUp>, Vec<QueuedSignUp>) {
    let mut seen = HashSet::with_capacity(jobs.len());
    let (mut batch, later): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| seen.insert(job.compared.clone()));
    batch.sort_unstable_by(|a, b| a.compared.cmp(&b.compared));
    (batch, later)
}

/// Does and answers them all. An error says that the database is unwell, and was told to those who met it.
async fn commit(pool: &Pool, jobs: Vec<QueuedSignUp>) -> Result<(), StoreError> {
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
            return Err(error);
        }
    };
    one_by_one(pool, undone).await
}

async fn one_by_one(pool: &Pool, jobs: Vec<QueuedSignUp>) -> Result<(), StoreError> {
    let mut under_way = JoinSet::new();
    let mut unwell: Result<(), StoreError> = Ok(());
    for job in jobs {
        if under_way.len() == ALONE_AT_ONCE {
            unwell = under_way.join_next().await.and_then(Result::ok).unwrap_or(Ok(()));
        }
        if let Err(error) = &unwell {
            job.answer(Err(error.clone()));
            continue;
        }
        let pool = pool.clone();
        under_way.spawn(async move {
            let done = pool.attempt(&job.unit).await;
            let of_the_unit = done.as_ref().err().is_none_or(is_of_the_unit);
            let done = done.map_err(StoreError::from);
            let unwell = if of_the_unit { Ok(()) } else { done.clone().map(|_| ()) };
            job.answer(done);
            unwell
        });
    }
    let rest = under_way.join_all().await;
    rest.into_iter().fold(unwell, Result::and)
}

impl QueuedSignUp {
    fn answer(self, done: Result<SignedUp, StoreError>) {
        // The caller may have gone; the work stands.
        let _gone = self.waiter.send(done);
    }
}

/// What mail that waits becomes when there is newer; mail that is on its way stays. In its new place it has a new id, so
/// that a late worker cannot settle it.
macro_rules! replacing_waiting_mail {
    () => {
        "ON CONFLICT (sign_up_id) DO UPDATE
         SET id = excluded.id, kind = excluded.kind, recipient = excluded.recipient, created_at = excluded.created_at,
             send_after = excluded.send_after, attempts = 0, first_attempt_at = NULL, leased_by = NULL,
             last_error = NULL, given_up_at = NULL
         WHERE outbox.leased_until <= excluded.created_at"
    };
}

/// What nearly every sign-up needs, for all of them at once. A sign-up is done whole or not at all: one whose person is
/// neither known nor added goes no further.
const SIGN_UP: &str = concat!(
    "
    WITH job AS (
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                             $8::text[], $9::text[], $10::text[], $11::bigint[]) WITH ORDINALITY
        AS job (email, compared, mailbox, code, key_id, partner, us_state, categories, comments, ref_code, now, n)
    ), house AS (
        SELECT signups_paused AS paused, member_count FROM installation WHERE id = 1
    ), known AS (
        SELECT j.n, p.id, p.code, p.mailbox, p.state = 'member' AS is_member
        FROM job j JOIN people p ON p.compared = j.compared
        WHERE NOT (SELECT paused FROM house)
          AND NOT EXISTS (SELECT FROM sign_ups s WHERE s.person_id = p.id AND s.partner = j.partner
                          AND s.state = 'pending' AND s.expires_at <= j.now)
    ), added AS (
        INSERT INTO people (email, compared, mailbox, code, state, created_at)
        SELECT email, compared, mailbox, code, 'invited', now FROM job j
        WHERE NOT (SELECT paused FROM house)
          AND NOT EXISTS (SELECT FROM people p WHERE p.compared = j.compared)
          AND NOT EXISTS (SELECT FROM people p WHERE p.code = j.code)
        ON CONFLICT DO NOTHING
        RETURNING id, compared, code, mailbox
    ), person AS (
        SELECT n, id, code, mailbox, is_member FROM known
        UNION ALL
        SELECT j.n, a.id, a.code, a.mailbox, FALSE FROM added a JOIN job j USING (compared)
    ), referral AS (
        SELECT p.n, r.id AS referrer_id
        FROM person p JOIN job j USING (n) JOIN people r ON r.code = j.ref_code AND r.mailbox <> p.mailbox
    ), signed AS (
        INSERT INTO sign_ups (",
    sign_up_columns!(),
    ")
        SELECT p.id, j.key_id, j.partner, 'pending', j.us_state, j.categories, j.comments, referrer_id, $12, j.now, j.now,
               j.now + $13
        FROM person p JOIN job j USING (n) LEFT JOIN referral USING (n)
        ",
    merging_answers!(),
    "
        RETURNING id, person_id
    ), mailed AS (
        INSERT INTO outbox (sign_up_id, kind, recipient, created_at, send_after)
        SELECT s.id, CASE WHEN p.is_member THEN 'already_member' ELSE 'confirm' END, j.email, j.now, j.now
        FROM signed s JOIN person p ON p.id = s.person_id JOIN job j USING (n)
        ",
    replacing_waiting_mail!(),
    "
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
