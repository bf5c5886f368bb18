//! Writes: one thread, many units of work to a commit (group commit).
//!
//! Units that arrive while the disk is busy with the last commit share the next one, so a hundred sign-ups at once cost
//! one sync and not a hundred. Each unit is data that can be applied again: a refused or failed one leaves no trace and
//! does not touch its neighbours. Nobody is answered before the commit.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::checkpoint::CheckpointThread;
use super::{OpenedFile, statement};
use crate::reply::Reply;
use crate::store::queue::{BatchCounts, Queue, Queued, Waiter, WriterFigures};
use crate::store::sql::{Failure, Job, JobReply, describe_sqlite};
use crate::store::{StoreError, StoreReply};
use crate::supervise;

/// How long the end waits for the log to be written back, which only spares the next start some work.
const TIDY_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) struct Writer {
    queue: Queue<WaitingJob>,
    /// The thread, and what it tells when all that waited is committed.
    thread: Mutex<Option<(JoinHandle<()>, oneshot::Receiver<()>)>>,
}

impl Writer {
    /// `most` is how many units a commit may have.
    pub(super) fn start(mut connection: Connection, file: OpenedFile, most: usize) -> std::io::Result<Self> {
        let checkpoints = CheckpointThread::start(&mut connection, &file.path)?;
        let (queue, inbox) = Queue::new();
        let batches = Arc::clone(&queue.batches);
        let (commit_done, committed) = oneshot::channel();
        let thread = std::thread::Builder::new().name("sqlite-writer".to_owned());
        let thread = thread.spawn(move || {
            let _vital = supervise::vital("the writer of the database");
            run(&mut connection, inbox, &file, most, &batches, &checkpoints);
            let _nobody_waits = commit_done.send(());
            checkpoints.end(&mut connection);
            // Only tidiness: what is in the log is safe there, and the next start reads it. So it waits for nobody, and the first
            // step, which does most of it, keeps no other process from writing.
            let _tidy = connection.busy_timeout(Duration::ZERO);
            let _tidy = connection.execute_batch("PRAGMA wal_checkpoint(PASSIVE)");
            let _tidy = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
        })?;
        Ok(Self { queue, thread: Mutex::new(Some((thread, committed))) })
    }

    pub(super) fn write(&self, job: Box<dyn Job>) -> JobReply<'_> {
        self.queue.ask(|waiter| WaitingJob { job, outcome: None, waiter })
    }

    pub(super) fn figures(&self) -> WriterFigures {
        self.queue.figures()
    }

    /// Commits what waits and ends the thread, which writes the log back into the database if there is time for it.
    pub(super) fn close(&self) -> StoreReply<'_, ()> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        Reply::later(async move {
            let Some((thread, committed)) = thread else { return Ok(()) };
            self.queue.close().await?;
            committed.await.map_err(|_| StoreError::Unavailable("SQLite: the writer ended early".to_owned()))?;
            let tidied = tokio::task::spawn_blocking(move || thread.join());
            let _in_time_or_not = tokio::time::timeout(TIDY_TIMEOUT, tidied).await;
            Ok(())
        })
    }
}

fn run(
    connection: &mut Connection,
    mut inbox: mpsc::Receiver<Queued<WaitingJob>>,
    file: &OpenedFile,
    most: usize,
    batches: &BatchCounts,
    checkpoints: &CheckpointThread,
) {
    let mut batch: Vec<WaitingJob> = Vec::with_capacity(most);
    let mut open = true;
    while open {
        let mut next = inbox.try_recv().ok().or_else(|| {
            checkpoints.idle();
            inbox.blocking_recv()
        });
        while let Some(Queued::Job(job)) = next {
            batch.push(job);
            next = if batch.len() < most { inbox.try_recv().ok() } else { None };
        }
        // Waiting for a job gave none, or the queue was closed.
        open = next.is_none() && !batch.is_empty();
        if !batch.is_empty() {
            batches.count(batch.len());
            commit(connection, file, &mut batch);
        }
    }
}

/// Commits the batch in one transaction or, when that fails as a whole, each job in one of its own; answers them all. Files
/// that were deleted or replaced under a running process still take writes, and lose them: nobody is told that such a one
/// was kept.
fn commit(connection: &mut Connection, file: &OpenedFile, batch: &mut Vec<WaitingJob>) {
    if let Err(moved) = file.is_in_place() {
        batch.drain(..).for_each(|job| job.answer(Err(moved.clone())));
        return;
    }
    let kept = || file.is_in_place().map_err(|moved| StoreError::Unknown(moved.to_string()));
    let tried = match try_commit(connection, batch, Isolation::None) {
        // Something was written that must not stand: all again, this time so that it can be undone alone.
        Ok(false) => try_commit(connection, batch, Isolation::Savepoints),
        tried => tried,
    };
    match tried {
        Ok(_) => {
            let kept = kept();
            batch.drain(..).for_each(|job| job.answer(kept.clone()));
        }
        // A database that another process keeps locked will not open for the single ones either: each would wait out
        // the whole time-out again.
        Err(error) if batch.len() == 1 || super::is_busy(&error) => {
            batch.drain(..).for_each(|job| job.answer(Err(failed(&error))));
        }
        Err(_) => {
            for mut job in batch.drain(..) {
                match try_commit(connection, std::slice::from_mut(&mut job), Isolation::Savepoints) {
                    Ok(_) => job.answer(kept()),
                    Err(error) => job.answer(Err(failed(&error))),
                }
            }
        }
    }
}

/// A disk that fails while it is asked to keep something may have kept it.
fn failed(error: &rusqlite::Error) -> StoreError {
    let told = describe_sqlite(error);
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::SystemIoFailure) => StoreError::Unknown(told),
        Some(rusqlite::ErrorCode::DiskFull) => StoreError::Full(told),
        Some(rusqlite::ErrorCode::DatabaseCorrupt) => StoreError::Damaged(told),
        _ => StoreError::Unavailable(told),
    }
}

/// How the units of a transaction are kept apart. A savepoint makes SQLite copy every page that its unit touches, and
/// nearly no unit ever has to be undone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Isolation {
    None,
    Savepoints,
}

/// Whether the batch was committed. Without savepoints it is not where a unit failed after it had written.
fn try_commit(connection: &mut Connection, batch: &mut [WaitingJob], isolation: Isolation) -> rusqlite::Result<bool> {
    let tried = attempt(connection, batch, isolation);
    if !matches!(tried, Ok(true)) && !connection.is_autocommit() {
        run_sql(connection, "ROLLBACK")?;
    }
    tried
}

fn run_sql(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql).and_then(|mut statement| statement.execute([])).map(|_| ())
}

fn attempt(connection: &mut Connection, batch: &mut [WaitingJob], isolation: Isolation) -> rusqlite::Result<bool> {
    run_sql(connection, "BEGIN IMMEDIATE")?;
    for job in batch {
        if isolation == Isolation::None {
            let before = connection.total_changes();
            match job.apply(connection) {
                Ok(()) => {}
                // It did nothing, and the database is well.
                Err(Failure::Unusable(_) | Failure::Overtaken) if connection.total_changes() == before => {}
                // It wrote what may not stand, or SQLite met an error, and the transaction may be gone with it.
                Err(_) => return Ok(false),
            }
            continue;
        }
        run_sql(connection, "SAVEPOINT unit")?;
        if job.apply(connection).is_err() {
            // Some errors, a full disk among them, may roll the whole transaction back: then the savepoint is gone,
            // this fails, and each job gets a transaction of its own.
            run_sql(connection, "ROLLBACK TO unit")?;
        }
        run_sql(connection, "RELEASE unit")?;
    }
    run_sql(connection, "COMMIT").map(|()| true)
}

/// A unit of work, its outcome so far and the caller who waits for it.
struct WaitingJob {
    job: Box<dyn Job>,
    outcome: Option<Result<(), Failure>>,
    waiter: Waiter<Box<dyn Job>>,
}

impl WaitingJob {
    fn apply(&mut self, connection: &mut Connection) -> &Result<(), Failure> {
        self.outcome.insert(statement::apply(&mut *self.job, connection))
    }

    /// Tells the caller, once the transaction is committed or lost.
    fn answer(self, committed: Result<(), StoreError>) {
        let answer = match (committed, self.outcome) {
            // What the unit itself met says more than what became of the transaction after it.
            (Ok(()), Some(outcome)) => outcome.map(|()| self.job).map_err(StoreError::from),
            (Err(_), Some(Err(failure))) => Err(failure.into()),
            (Err(error), _) => Err(error),
            (Ok(()), None) => Err(StoreError::Unavailable("SQLite: the unit was not run".to_owned())),
        };
        // The caller may have gone; the work stands.
        let _gone = self.waiter.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sql::{How, JobDone, Sql, Unit, result_of, values};

    /// Writes one row of the given size; `Err` where a rule refuses it after it was written.
    struct Note {
        size: usize,
        refused: bool,
    }

    impl Unit for Note {
        type Done = u64;
        const HOW: How = How::Write;

        async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
            let written =
                sql.execute("INSERT INTO notes (text) VALUES (zeroblob($1))", values![self.size as i64]).await?;
            if self.refused { Err(Failure::Overtaken) } else { Ok(written) }
        }
    }

    fn notes(most_pages: i64) -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("notes.db")).unwrap();
        super::super::set_up(&connection).unwrap();
        connection.execute_batch("CREATE TABLE notes (id INTEGER PRIMARY KEY, text BLOB)").unwrap();
        connection.pragma_update(None, "max_page_count", most_pages).unwrap();
        (folder, connection)
    }

    fn opened(folder: &tempfile::TempDir) -> OpenedFile {
        OpenedFile::at(&folder.path().join("notes.db")).unwrap()
    }

    #[test]
    fn what_a_replaced_file_takes_is_not_acknowledged() {
        let (folder, mut connection) = notes(1000);
        let (path, file) = (folder.path().join("notes.db"), opened(&folder));
        std::fs::rename(&path, folder.path().join("elsewhere.db")).unwrap();
        for replaced in [false, true] {
            if replaced {
                std::fs::write(&path, "").unwrap();
            }
            let (mut batch, answers) = queue(&[(10, false)]);
            commit(&mut connection, &file, &mut batch);
            for answer in answers {
                let told = taken(answer).unwrap_err();
                assert!(matches!(told, StoreError::Unavailable(_)) && told.to_string().contains("moved"), "{told}");
            }
        }
        assert_eq!(kept(&connection), 0, "nothing was written where it would be lost");
    }

    fn taken(mut answer: oneshot::Receiver<JobDone>) -> Result<u64, StoreError> {
        result_of(answer.try_recv().unwrap())
    }

    fn queue(sizes: &[(usize, bool)]) -> (Vec<WaitingJob>, Vec<oneshot::Receiver<JobDone>>) {
        let queued = sizes.iter().map(|&(size, refused)| {
            let (waiter, answer) = oneshot::channel();
            (WaitingJob { job: <dyn Job>::of(Note { size, refused }), outcome: None, waiter }, answer)
        });
        queued.unzip()
    }

    fn kept(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM notes", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_refused_unit_leaves_no_trace_and_its_neighbours_stand() {
        let (folder, mut connection) = notes(1000);
        let (mut batch, answers) = queue(&[(10, false), (10, true), (10, false)]);
        commit(&mut connection, &opened(&folder), &mut batch);
        let answers: Vec<_> = answers.into_iter().map(|answer| taken(answer).is_ok()).collect();
        assert_eq!(answers, [true, false, true]);
        assert_eq!(kept(&connection), 2);
    }

    #[test]
    fn a_unit_that_fills_the_disk_fails_alone() {
        let (folder, mut connection) = notes(20);
        let (mut batch, answers) = queue(&[(100, false), (1_000_000, false), (100, false), (100, false)]);
        commit(&mut connection, &opened(&folder), &mut batch);
        let answers: Vec<_> = answers.into_iter().map(taken).collect();
        assert!(answers[1].as_ref().is_err_and(|error| error.to_string().contains("full")), "{answers:?}");
        assert!([0, 2, 3].iter().all(|i| answers[*i].is_ok()), "{answers:?}");
        assert_eq!(kept(&connection), 3, "every answered unit is there, and nothing else");
        assert!(connection.is_autocommit());
    }

    #[test]
    fn waiting_units_share_commits_and_close_finishes_them() {
        let (folder, connection) = notes(100_000);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let writer = Writer::start(connection, opened(&folder), 256).unwrap();
        let other = Connection::open(folder.path().join("notes.db")).unwrap();
        // While this lock is held nothing can be committed, so all of these wait together.
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let answers: Vec<_> =
            (0..100).map(|_| writer.write(<dyn Job>::of(Note { size: 10, refused: false }))).collect();
        other.execute_batch("COMMIT").unwrap();
        runtime.block_on(async {
            writer.close().await.unwrap();
            for answer in answers {
                answer.await.unwrap();
            }
            assert!(writer.write(<dyn Job>::of(Note { size: 1, refused: false })).await.is_err(), "closed");
        });
        assert_eq!(kept(&other), 100);
    }
}
