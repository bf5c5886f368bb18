//! How far a long command is.

use std::io::{IsTerminal, Write};

/// One line that is written over on a terminal, a line for each part elsewhere.
pub(super) struct Bar {
    terminal: bool,
    last: Option<(&'static str, &'static str)>,
}

impl Bar {
    pub(super) fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), last: None }
    }

    /// The same where a command is often run by another: nothing elsewhere.
    pub(super) fn on_terminal() -> Option<Self> {
        Some(Self::new()).filter(|bar| bar.terminal)
    }

    pub(super) fn show(&mut self, verb: &'static str, what: &'static str, done: u64, all: u64) {
        const WIDTH: usize = 30;
        if self.terminal {
            let full = "#".repeat(usize::try_from(WIDTH as u64 * done.min(all) / all.max(1)).unwrap_or(0));
            eprint!("\r{verb:<10}{what:<14}[{full:<WIDTH$}] {done} of {all}  ");
            // A terminal that cannot be written to has no use for a bar.
            let _gone = std::io::stderr().flush();
        } else if self.last != Some((verb, what)) {
            eprintln!("{verb} {what}, {all} rows");
        }
        self.last = Some((verb, what));
    }

    pub(super) fn end(&self) {
        if self.terminal && self.last.is_some() {
            eprintln!();
        }
    }
}
