//! Files that are not finished yet. They go when the work ends, by SIGTERM or Ctrl-C too.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::print_aside;

pub(super) struct Unfinished {
    paths: Arc<[PathBuf; 2]>,
    is_idle: Arc<AtomicBool>,
}

impl Unfinished {
    /// For a process that does more than this, and handles its signals itself.
    pub(super) fn unwatched(paths: [PathBuf; 2]) -> Self {
        // Left by one that was killed.
        remove(&paths);
        Self { paths: Arc::new(paths), is_idle: Arc::default() }
    }

    /// `status` is how the process ends when it is stopped.
    pub(super) fn new(paths: [PathBuf; 2], status: i32) -> anyhow::Result<Self> {
        let unfinished = Self::unwatched(paths);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = {
            let _entered = runtime.enter();
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
        };
        let (doomed, idle) = (Arc::clone(&unfinished.paths), Arc::clone(&unfinished.is_idle));
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let (mut terminate, mut interrupt) = signals;
            runtime.block_on(async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            });
            if !idle.load(Ordering::Acquire) {
                print_aside("\nunionhall: stopped before it was finished; nothing is kept");
            }
            remove(&*doomed);
            // The work goes on meanwhile, and may have been about to open what is gone.
            for _ in 0..3 {
                std::thread::sleep(std::time::Duration::from_millis(1));
                remove(&*doomed);
            }
            std::process::exit(status);
        })?;
        Ok(unfinished)
    }

    pub(super) fn paths(&self) -> [&Path; 2] {
        [&self.paths[0], &self.paths[1]]
    }

    /// Removes what the last piece of work left, and sleeps until the next: to be stopped meanwhile interrupts nothing.
    pub(super) fn rest(&self, time: std::time::Duration) {
        remove(&*self.paths);
        self.is_idle.store(true, Ordering::Release);
        std::thread::sleep(time);
        self.is_idle.store(false, Ordering::Release);
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        remove(&*self.paths);
    }
}

fn remove(paths: &[PathBuf]) {
    for path in paths {
        for end in ["", "-wal", "-shm", "-journal"] {
            let mut name = path.as_os_str().to_owned();
            name.push(end);
            // Finished, or never made.
            let _gone = std::fs::remove_file(name);
        }
    }
}
