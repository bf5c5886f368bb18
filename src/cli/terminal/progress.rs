//! How far a long command is.

use std::io::IsTerminal;

use super::print_partial;

/// One line that is written over on a terminal, a line for each stage elsewhere.
pub(in crate::cli) struct Bar {
    terminal: bool,
    is_quiet: bool,
    stage: String,
    /// How a figure is written.
    written: fn(u64) -> String,
}

impl Bar {
    pub(in crate::cli) fn new(written: fn(u64) -> String) -> Self {
        Self { terminal: std::io::stderr().is_terminal(), is_quiet: false, stage: String::new(), written }
    }

    /// Prints nothing: for work that goes on unwatched.
    pub(in crate::cli) fn quiet() -> Self {
        Self { terminal: false, is_quiet: true, stage: String::new(), written: |figure| figure.to_string() }
    }

    /// The same where a command is often run by another: nothing elsewhere.
    pub(in crate::cli) fn on_terminal(written: fn(u64) -> String) -> Option<Self> {
        Some(Self::new(written)).filter(|bar| bar.terminal)
    }

    /// Begins a stage; nothing happens if it is under way.
    pub(in crate::cli) fn begin(&mut self, stage: impl Into<String>) {
        let stage = stage.into();
        if self.is_quiet || stage == self.stage {
            return;
        }
        self.end();
        print_partial(&stage);
        if !self.terminal {
            print_partial("\n");
        }
        self.stage = stage;
    }

    pub(in crate::cli) fn show(&mut self, done: u64, all: u64) {
        const WIDTH: usize = 30;
        if self.terminal {
            let full = "#".repeat(usize::try_from(WIDTH as u64 * done.min(all) / all.max(1)).unwrap_or(0));
            let (stage, written) = (&self.stage, self.written);
            print_partial(&format!("\r{stage:<34}[{full:<WIDTH$}] {} of {}  ", written(done), written(all)));
        }
    }

    pub(in crate::cli) fn end(&mut self) {
        if self.terminal && !self.stage.is_empty() {
            print_partial("\n");
        }
        self.stage.clear();
    }
}

impl Drop for Bar {
    /// What went wrong is printed on a line of its own.
    fn drop(&mut self) {
        self.end();
    }
}
