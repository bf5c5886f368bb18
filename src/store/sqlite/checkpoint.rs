//! Checkpoints: writing the write-ahead log (WAL) back into the database, on a thread beside the writer.
//!
//! A checkpoint writes every page that changed since the last one, once, and its sync holds up those of the commits meanwhile. A
//! writer that never rests has its checkpoints rarely, which writes far fewer pages: many sign-ups change the same ones. One that
//! rests between commits has small ones while it does, which nobody waits for. The thread does most of each while the writer
//! goes on, and the writer does the little that is left. After that the log begins anew.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::hooks::Wal;
use rusqlite::{Connection, OpenFlags};

/// Pages of the log that are written back when the writer has nothing to do.
const IDLE_FROM: i32 = 500;

/// Pages of the log from which on they are written back in any case, and after how many more again: 32 MB, and more while a reader
/// holds on to them.
const BUSY_FROM: i32 = 8000;
const BUSY_AGAIN: i32 = 1000;

/// What the writer writes back itself at the most, so that the log begins anew: what came while the thread was at it.
const OWN_MOST: i32 = 1500;

/// Pages from which on the writer writes back whatever is left.
const OWN_ALL_FROM: i32 = 64_000;

/// The thread that writes the log back beside the writer. It ends when nobody is left who could wake it.
pub(super) struct CheckpointThread {
    thread: JoinHandle<()>,
    wake: SyncSender<()>,
    log: Arc<LogPages>,
}

/// How far the log is, in pages.
#[derive(Default)]
struct LogPages {
    written: AtomicI32,
    written_back: AtomicI32,
    /// Where it was when the thread was last woken.
    woken_at: AtomicI32,
}

impl LogPages {
    fn since(&self, place: &AtomicI32) -> i32 {
        self.written.load(Ordering::Relaxed) - place.load(Ordering::Relaxed)
    }

    fn wake(&self, wake: &SyncSender<()>) {
        self.woken_at.store(self.written.load(Ordering::Relaxed), Ordering::Relaxed);
        // Full if it was woken already, and gone if it could not go on: the writer does it all then, at its last limit.
        let _woken_already = wake.try_send(());
    }

    fn after_commit(&self, log: &mut Wal, pages: i32, wake: &SyncSender<()>) {
        if pages < self.written.swap(pages, Ordering::Relaxed) {
            // It began anew.
            self.written_back.store(0, Ordering::Relaxed);
            self.woken_at.store(0, Ordering::Relaxed);
        }
        if pages < BUSY_FROM {
            return;
        }
        // After a long reader there may be much: the thread does that, while commits go on.
        if self.since(&self.written_back) <= OWN_MOST || pages >= OWN_ALL_FROM {
            // Busy while the thread is at it, and tried again at the next commit; on a full disk the commits tell.
            let _next_time = log.checkpoint();
        } else if self.since(&self.woken_at) >= BUSY_AGAIN {
            self.wake(wake);
        }
    }

    /// On the thread.
    fn write_back(&self, connection: &Connection) -> rusqlite::Result<()> {
        // Without waiting for anybody. What could not be written back now is the next time's.
        let back: i32 = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get("checkpointed"))?;
        // If that was all, the next commit begins the log anew, or has.
        let known = if back < self.written.load(Ordering::Relaxed) { back } else { 0 };
        self.written_back.store(known, Ordering::Relaxed);
        Ok(())
    }
}

impl CheckpointThread {
    /// Takes the place of SQLite's own checkpoints of every thousand pages, on the connection of the writer of this file.
    pub(super) fn start(writer: &mut Connection, file: &Path) -> std::io::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // Now, while the file is known to be at its path; nothing of it is read yet.
        let beside = Connection::open_with_flags(file, flags).map_err(std::io::Error::other)?;
        let (wake, woken) = sync_channel(1);
        let log = Arc::<LogPages>::default();
        let hook = {
            let (log, wake) = (Arc::clone(&log), wake.clone());
            move |wal: &mut Wal, pages: i32| {
                log.after_commit(wal, pages, &wake);
                // An error here would be the commit's, which stands.
                Ok(())
            }
        };
        writer.wal_hook(Some(hook)).map_err(std::io::Error::other)?;
        let thread = std::thread::Builder::new().name("sqlite-checkpoints".to_owned());
        let own = Arc::clone(&log);
        let thread = thread.spawn(move || {
            while woken.recv().is_ok() {
                let _next_time = own.write_back(&beside);
            }
        })?;
        Ok(Self { thread, wake, log })
    }

    /// The writer has nothing to do now.
    pub(super) fn idle(&self) {
        if self.log.since(&self.log.woken_at) >= IDLE_FROM {
            self.log.wake(&self.wake);
        }
    }

    /// Ends the thread, and leaves the writer's connection without checkpoints.
    pub(super) fn end(self, writer: &mut Connection) {
        // Without the hook and this nobody is left who could wake it.
        let _unhooked = writer.wal_hook(None::<fn(&mut Wal, i32) -> rusqlite::Result<()>>);
        drop(self.wake);
        let _ended = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    struct Notes {
        folder: tempfile::TempDir,
        connection: Connection,
        thread: CheckpointThread,
    }

    impl Notes {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("notes.db");
            let mut connection = Connection::open(&path).unwrap();
            super::super::set_up(&connection).unwrap();
            connection.execute_batch("CREATE TABLE notes (id INTEGER PRIMARY KEY, text BLOB)").unwrap();
            let thread = CheckpointThread::start(&mut connection, &path).unwrap();
            Self { folder, connection, thread }
        }

        fn pages(&self, file: &str) -> i32 {
            let bytes = std::fs::metadata(self.folder.path().join(file)).unwrap().len();
            i32::try_from(bytes / PAGE).unwrap()
        }

        /// Writes so many pages, in commits of fifty; the largest that the log has been, in pages.
        fn write(&self, pages: i32) -> i32 {
            let commits = (0..pages / 50).map(|_| {
                self.connection
                    .execute("INSERT INTO notes (text) VALUES (randomblob(?1))", [50 * PAGE as i64])
                    .unwrap();
                self.pages("notes.db-wal")
            });
            commits.max().unwrap()
        }
    }

    #[test]
    fn the_log_stays_small_and_everything_is_kept() {
        let mut notes = Notes::new();
        let largest = notes.write(BUSY_FROM * 5 / 2);
        assert!((BUSY_FROM..BUSY_FROM * 2).contains(&largest), "{largest} pages");
        notes.thread.end(&mut notes.connection);
        let kept: i32 = notes.connection.query_row("SELECT count(*) FROM notes", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, BUSY_FROM * 5 / 2 / 50);
    }

    #[test]
    fn a_writer_that_never_rests_wakes_the_thread() {
        let written_back = written_back(BUSY_FROM + 200, false);
        assert!(written_back >= BUSY_FROM / 10 * 9, "{written_back} pages");
    }

    #[test]
    fn a_writer_that_rests_has_small_checkpoints() {
        let few = written_back(IDLE_FROM / 2, true);
        assert!(few < 50, "{few} pages were not worth a sync");
        let enough = written_back(IDLE_FROM + 50, true);
        assert!(enough >= IDLE_FROM, "{enough} pages");
        let busy = written_back(IDLE_FROM + 50, false);
        assert!(busy < 50, "{busy} pages");
    }

    /// The pages of the database after so many were written and the thread did what it was woken for.
    fn written_back(pages: i32, then_idle: bool) -> i32 {
        let notes = Notes::new();
        notes.write(pages);
        if then_idle {
            notes.thread.idle();
        }
        let Notes { folder, mut connection, thread } = notes;
        thread.end(&mut connection);
        let bytes = std::fs::metadata(folder.path().join("notes.db")).unwrap().len();
        i32::try_from(bytes / PAGE).unwrap()
    }

    #[test]
    fn after_a_long_reader_the_log_begins_anew() {
        let notes = Notes::new();
        let reader = Connection::open(notes.folder.path().join("notes.db")).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        let seen: i64 = reader.query_row("SELECT count(*) FROM notes", [], |row| row.get(0)).unwrap();
        let held = notes.write(BUSY_FROM + 2000);
        assert!(
            seen == 0 && held >= BUSY_FROM + 2000,
            "nothing of it may go while somebody reads what was before: {held}"
        );
        reader.execute_batch("COMMIT").unwrap();
        // The file keeps its size while the log begins anew in it, so it has to stop growing.
        let grown = notes.write(BUSY_FROM * 3);
        assert!(grown < held + BUSY_FROM * 2, "{held} pages, then {grown}");
    }
}
