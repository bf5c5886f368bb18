//! Checkpoints: writing the write-ahead log (WAL) back into the database, on a thread beside the writer.
//!
//! A checkpoint writes every page that changed since the last one, once. With two million people nearly every sign-up changes
//! pages of its own, so a rare checkpoint writes far fewer pages than a frequent one. The writer would stand still for a rare one;
//! therefore a thread does most of it while the writer goes on, and the writer does the little that is left. After that the log
//! begins anew.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::hooks::Wal;
use rusqlite::{Connection, OpenFlags};

/// Pages of the log from which on the thread writes them back.
const BESIDE_FROM: i32 = 3000;

/// Pages from which on the writer writes back what is left: 16 MB of log, and a little more while a reader holds on to it.
const OWN_FROM: i32 = 4000;

/// The thread that writes the log back beside the writer. It ends when the hook is gone that [`start`] left on the writer's connection.
pub(super) struct CheckpointThread(JoinHandle<()>);

impl CheckpointThread {
    /// Takes the place of SQLite's own checkpoints of every thousand pages, on the connection of the writer of this file.
    pub(super) fn start(writer: &mut Connection, file: &Path) -> std::io::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // Now, while the file is known to be at its path; nothing of it is read yet.
        let beside = Connection::open_with_flags(file, flags).map_err(std::io::Error::other)?;
        let (wake, woken) = sync_channel(1);
        let mut asked = false;
        let hook = move |log: &mut Wal, pages: i32| {
            watch(log, pages, &wake, &mut asked);
            // An error here would be the commit's, which stands.
            Ok(())
        };
        writer.wal_hook(Some(hook)).map_err(std::io::Error::other)?;
        let thread = std::thread::Builder::new().name("sqlite-checkpoints".to_owned());
        thread.spawn(move || run(&beside, &woken)).map(Self)
    }

    /// Ends the thread, and leaves the writer's connection without checkpoints.
    pub(super) fn end(self, writer: &mut Connection) {
        // Without the hook nobody is left who could wake it.
        let _unhooked = writer.wal_hook(None::<fn(&mut Wal, i32) -> rusqlite::Result<()>>);
        let _ended = self.0.join();
    }
}

/// After each commit: wakes the thread once, as the log grows past the first limit; past the second the writer writes back what is left.
fn watch(log: &mut Wal, pages: i32, wake: &SyncSender<()>, asked: &mut bool) {
    if pages < BESIDE_FROM {
        *asked = false;
    } else if !*asked {
        // Full if it was woken already, and gone if it could not go on: the writer does it all then.
        let _woken_already = wake.try_send(());
        *asked = true;
    }
    if pages >= OWN_FROM {
        // Busy while the thread is at it, and tried again at the next commit; on a full disk the commits tell.
        let _next_time = log.checkpoint();
    }
}

fn run(connection: &Connection, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        // Without waiting for anybody. What could not be written back, the writer tries at its own limit.
        let _rest_is_the_writers = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    /// Writes so many pages, in commits of fifty; the largest that the log has been, in pages.
    fn write(connection: &Connection, log: &Path, pages: u64) -> u64 {
        let commits = (0..pages / 50).map(|_| {
            connection.execute("INSERT INTO notes (text) VALUES (randomblob(?1))", [50 * PAGE as i64]).unwrap();
            std::fs::metadata(log).unwrap().len() / PAGE
        });
        commits.max().unwrap()
    }

    #[test]
    fn the_log_stays_small_and_is_written_back_with_the_thread_and_without_it() {
        for without in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let (path, log) = (folder.path().join("notes.db"), folder.path().join("notes.db-wal"));
            let mut connection = Connection::open(&path).unwrap();
            super::super::set_up(&connection).unwrap();
            connection.execute_batch("CREATE TABLE notes (id INTEGER PRIMARY KEY, text BLOB)").unwrap();
            let thread = CheckpointThread::start(&mut connection, &path).unwrap();
            if without {
                let (wake, _nobody) = sync_channel(1);
                let hook = move |log: &mut Wal, pages: i32| {
                    watch(log, pages, &wake, &mut true);
                    Ok(())
                };
                connection.wal_hook(Some(hook)).unwrap();
            }
            let largest = write(&connection, &log, 20_000);
            let most = u64::try_from(OWN_FROM).unwrap();
            assert!((most..most * 2).contains(&largest), "without the thread: {without}; {largest} pages");
            thread.end(&mut connection);
            let kept: i64 = connection.query_row("SELECT count(*) FROM notes", [], |row| row.get(0)).unwrap();
            assert_eq!(kept, 400);
        }
    }

    #[test]
    fn the_thread_writes_back_what_the_writer_did_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.db");
        let mut connection = Connection::open(&path).unwrap();
        super::super::set_up(&connection).unwrap();
        connection.execute_batch("CREATE TABLE notes (id INTEGER PRIMARY KEY, text BLOB)").unwrap();
        let thread = CheckpointThread::start(&mut connection, &path).unwrap();
        // Past the first limit, and not past the second.
        let pages = u64::try_from(BESIDE_FROM + 200).unwrap();
        write(&connection, &folder.path().join("notes.db-wal"), pages);
        // It does what it was woken for before it ends.
        thread.end(&mut connection);
        let database = std::fs::metadata(&path).unwrap().len() / PAGE;
        assert!(database >= u64::try_from(BESIDE_FROM).unwrap() - 100, "{database} pages");
    }
}
