//! Checkpoints: writing the write-ahead log (WAL) back into the database, on a thread beside the writer.
//!
//! A checkpoint writes every page that changed since the last one, once. With two million people nearly every sign-up changes
//! pages of its own, so a rare checkpoint writes far fewer pages than a frequent one. The writer would stand still for a rare one;
//! therefore a thread does most of it while the writer goes on, and the writer does the little that is left. After that the log
//! begins anew.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::hooks::Wal;
use rusqlite::{Connection, OpenFlags};

/// Pages of the log from which on the thread writes them back, and after how many more it does so again.
const BESIDE_FROM: i32 = 3000;
const BESIDE_AGAIN: i32 = 1000;

/// Pages from which on the writer writes back what is left, if that is little: 16 MB of log, and more while a reader holds on to it.
const OWN_FROM: i32 = 4000;
const OWN_MOST: i32 = 1500;

/// Pages from which on the writer writes back whatever is left.
const OWN_ALL_FROM: i32 = 64_000;

/// The thread that writes the log back beside the writer. It ends when nobody is left who could wake it.
pub(super) struct CheckpointThread(JoinHandle<()>);

impl CheckpointThread {
    /// Takes the place of SQLite's own checkpoints of every thousand pages, on the connection of the writer of this file.
    pub(super) fn start(writer: &mut Connection, file: &Path) -> std::io::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // Now, while the file is known to be at its path; nothing of it is read yet.
        let beside = Connection::open_with_flags(file, flags).map_err(std::io::Error::other)?;
        let (wake, woken) = sync_channel(1);
        let written_back = Arc::default();
        let mut watch = LogWatch { wake, written_back: Arc::clone(&written_back), last: 0, wake_at: BESIDE_FROM };
        let hook = move |log: &mut Wal, pages: i32| {
            watch.after_commit(log, pages);
            // An error here would be the commit's, which stands.
            Ok(())
        };
        writer.wal_hook(Some(hook)).map_err(std::io::Error::other)?;
        let thread = std::thread::Builder::new().name("sqlite-checkpoints".to_owned());
        thread.spawn(move || run(&beside, &woken, &written_back)).map(Self)
    }

    /// Ends the thread, and leaves the writer's connection without checkpoints.
    pub(super) fn end(self, writer: &mut Connection) {
        // Without the hook nobody is left who could wake it.
        let _unhooked = writer.wal_hook(None::<fn(&mut Wal, i32) -> rusqlite::Result<()>>);
        let _ended = self.0.join();
    }
}

/// Looks at the log after each commit.
struct LogWatch {
    wake: SyncSender<()>,
    /// Pages of this log that the thread has written back.
    written_back: Arc<AtomicI32>,
    last: i32,
    /// Pages at which the thread is woken next.
    wake_at: i32,
}

impl LogWatch {
    fn after_commit(&mut self, log: &mut Wal, pages: i32) {
        if pages < self.last {
            // It began anew.
            self.written_back.store(0, Ordering::Relaxed);
            self.wake_at = BESIDE_FROM;
        }
        self.last = pages;
        if pages >= self.wake_at {
            // Full if it was woken already, and gone if it could not go on: the writer does it all then, at its last limit.
            let _woken_already = self.wake.try_send(());
            self.wake_at = pages + BESIDE_AGAIN;
        }
        // After a long reader there may be much: the thread does that, while commits go on.
        let left = pages - self.written_back.load(Ordering::Relaxed);
        if pages >= OWN_ALL_FROM || (pages >= OWN_FROM && left <= OWN_MOST) {
            // Busy while the thread is at it, and tried again at the next commit; on a full disk the commits tell.
            let _next_time = log.checkpoint();
        }
    }
}

fn run(connection: &Connection, woken: &Receiver<()>, written_back: &AtomicI32) {
    while woken.recv().is_ok() {
        // Without waiting for anybody. What could not be written back now is the next time's.
        if let Ok(pages) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get("checkpointed")) {
            written_back.store(pages, Ordering::Relaxed);
        }
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
        let largest = notes.write(20_000);
        assert!((BESIDE_FROM..OWN_FROM * 3).contains(&largest), "{largest} pages");
        notes.thread.end(&mut notes.connection);
        let kept: i64 = notes.connection.query_row("SELECT count(*) FROM notes", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, 400);
    }

    #[test]
    fn the_thread_writes_back_what_the_writer_did_not() {
        let notes = Notes::new();
        // Past the first limit, and not past the second.
        notes.write(BESIDE_FROM + 200);
        let Notes { folder, mut connection, thread } = notes;
        // It does what it was woken for before it ends.
        thread.end(&mut connection);
        let database = std::fs::metadata(folder.path().join("notes.db")).unwrap().len() / PAGE;
        assert!(database >= u64::try_from(BESIDE_FROM).unwrap() - 100, "{database} pages");
    }

    #[test]
    fn after_a_long_reader_the_log_begins_anew() {
        let notes = Notes::new();
        let reader = Connection::open(notes.folder.path().join("notes.db")).unwrap();
        reader.execute_batch("BEGIN").unwrap();
        let seen: i64 = reader.query_row("SELECT count(*) FROM notes", [], |row| row.get(0)).unwrap();
        let held = notes.write(OWN_FROM * 2);
        assert!(seen == 0 && held >= OWN_FROM * 2, "nothing of it may go while somebody reads what was before: {held}");
        reader.execute_batch("COMMIT").unwrap();
        // The file keeps its size while the log begins anew in it, so it has to stop growing.
        let grown = notes.write(OWN_FROM * 4);
        assert!(grown < held + OWN_FROM * 3, "{held} pages, then {grown}");
    }
}
