//! Reads, inline on the thread that asks (a pool of read-only connections).

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::schema::SqliteOpenError;
use super::{is_busy, statement};
use crate::reply::Reply;
use crate::store::StoreError;
use crate::store::queue::PoolFigures;
use crate::store::sql::{Failure, Job, JobReply};

/// How long a read that found the database busy waits for it, off the runtime's threads.
const READ_BUSY_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct Readers(Arc<Connections>);

struct Connections {
    /// One for each thread that asks, and one to spare: they fail at once when the database is busy.
    quick: Vec<ReaderConnection>,
    /// Waits when the database is busy; used on the blocking pool alone.
    patient: ReaderConnection,
}

/// A connection that is opened when it is first needed: each reads the whole schema, which a start need not wait for.
struct ReaderConnection {
    path: Arc<Path>,
    busy_timeout: Duration,
    connection: Mutex<Option<Connection>>,
}

impl Readers {
    pub(super) fn run(&self, job: Box<dyn Job>) -> JobReply<'_> {
        // It goes back to the caller with its result.
        let mut job = Some(job);
        self.read(move |connection| {
            if let Some(job) = &mut job {
                statement::apply(&mut **job, connection)?;
            }
            job.take().ok_or(Failure::Overtaken)
        })
    }

    /// The same on the blocking pool, one after the other: for jobs that read more than a few rows.
    pub(super) fn run_apart(&self, mut job: Box<dyn Job>) -> JobReply<'_> {
        let connections = Arc::clone(&self.0);
        apart(move || {
            connections.patient.run(|connection| statement::apply(&mut *job, connection))?;
            Ok(job)
        })
    }

    pub(super) fn open(path: &Path) -> Result<Self, SqliteOpenError> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let path: Arc<Path> = path.into();
        let reader =
            |busy_timeout| ReaderConnection { path: Arc::clone(&path), busy_timeout, connection: Mutex::default() };
        let connections = Connections {
            quick: (0..=threads).map(|_| reader(Duration::ZERO)).collect(),
            patient: reader(READ_BUSY_TIMEOUT),
        };
        // What is wrong with the file is told now.
        let first = open(&path, READ_BUSY_TIMEOUT).map_err(|source| SqliteOpenError::opening(&path, source))?;
        *connections.patient.lock() = Some(first);
        Ok(Self(Arc::new(connections)))
    }

    /// Who waits is not counted: a query takes microseconds, and counting would be part of each.
    pub(super) fn figures(&self) -> PoolFigures {
        let readers = self.0.quick.iter().chain([&self.0.patient]);
        let (most, busy) = (self.0.quick.len() + 1, readers.filter(|one| one.connection.try_lock().is_err()).count());
        PoolFigures { name: "readers", busy, idle: most - busy, most, waiting: None }
    }

    /// Answers at once. In WAL mode a reader meets a lock only while the log is recovered or reset, for a moment; then
    /// the query is asked again where waiting holds up nobody else.
    pub(super) fn read<T, Q>(&self, mut query: Q) -> Reply<'_, Result<T, StoreError>>
    where
        T: Send + 'static,
        Q: FnMut(&mut Connection) -> Result<T, Failure> + Send + 'static,
    {
        let first = self.0.with_quick(&mut query);
        match first {
            Err(Failure::Sqlite(error)) if is_busy(&error) => {
                let connections = Arc::clone(&self.0);
                apart(move || connections.patient.run(&mut query))
            }
            answer => Reply::now(answer.map_err(StoreError::from)),
        }
    }
}

/// Reads on the blocking pool.
fn apart<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Reply<'static, Result<T, StoreError>> {
    let read = tokio::task::spawn_blocking(read);
    Reply::later(async move {
        match read.await {
            Ok(answer) => answer.map_err(StoreError::from),
            Err(_) => Err(StoreError::Unavailable("SQLite: the read was abandoned".to_owned())),
        }
    })
}

impl Connections {
    fn with_quick<T>(&self, query: impl FnMut(&mut Connection) -> Result<T, Failure>) -> Result<T, Failure> {
        let home = home();
        let reader = |i: usize| &self.quick[(home + i) % self.quick.len()];
        let free = (0..self.quick.len()).find_map(|i| Some((reader(i), reader(i).connection.try_lock().ok()?)));
        match free {
            Some((reader, mut guard)) => reader.run_in(&mut guard, query),
            // More threads than connections are asking: a query takes microseconds, so this is no wait to speak of.
            None => reader(0).run(query),
        }
    }
}

impl ReaderConnection {
    fn run<T>(&self, query: impl FnMut(&mut Connection) -> Result<T, Failure>) -> Result<T, Failure> {
        self.run_in(&mut self.lock(), query)
    }

    fn run_in<T>(
        &self,
        connection: &mut Option<Connection>,
        mut query: impl FnMut(&mut Connection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match connection {
            Some(connection) => query(connection),
            None => query(connection.insert(open(&self.path, self.busy_timeout)?)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Connection>> {
        // A read changes nothing, so a panic during one leaves nothing half done.
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where this thread begins to look for a free connection: each thread somewhere else.
fn home() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static HOME: usize = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    HOME.with(|home| *home)
}

fn open(path: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    super::set_up(&connection)?;
    // Enough for the inner pages of every tree at two million people; the leaves are the system's to keep. There are
    // several readers, and each with a cache like the writer's would make the process large.
    connection.pragma_update(None, "cache_size", -2048)?;
    connection.pragma_update(None, "query_only", true)?;
    connection.busy_timeout(busy_timeout)?;
    Ok(connection)
}
