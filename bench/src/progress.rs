//! How far it is: a bar on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::time::Instant;

pub(crate) struct Progress {
    terminal: bool,
    begun: Instant,
    steps: usize,
    done: usize,
    what: String,
}

const WIDTH: usize = 30;

impl Progress {
    pub(crate) fn new(steps: usize) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self { terminal, begun: Instant::now(), steps, done: 0, what: String::new() }
    }

    /// A new part of the work begins.
    pub(crate) fn begin(&mut self, what: &str) {
        self.what = what.to_owned();
        if self.terminal {
            self.draw();
        } else {
            eprintln!("[{:>4} s] {what}", self.begun.elapsed().as_secs());
        }
    }

    pub(crate) fn step(&mut self) {
        self.done += 1;
        self.steps = self.steps.max(self.done);
        self.draw();
    }

    /// Something to know, above the bar.
    pub(crate) fn say(&self, line: &str) {
        self.wipe();
        eprintln!("{line}");
        self.draw();
    }

    fn draw(&self) {
        if !self.terminal {
            return;
        }
        let filled = WIDTH * self.done / self.steps.max(1);
        let bar = format!("{}{}", "#".repeat(filled), "-".repeat(WIDTH - filled));
        eprint!("\r\x1b[2K[{bar}] {}/{}  {}  {} s", self.done, self.steps, self.what, self.begun.elapsed().as_secs());
        let _shown = std::io::stderr().flush();
    }

    fn wipe(&self) {
        if self.terminal {
            eprint!("\r\x1b[2K");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.wipe();
    }
}
