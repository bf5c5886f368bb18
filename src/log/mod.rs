//! The log: one line per request, one line per problem, on standard error.
//!
//! A line is formatted into a thread-local buffer and appended to a buffer that a background thread writes out. When the
//! reader of the log is slow the buffer fills up, and lines are dropped and counted. A request never waits for its log
//! line. This module must never get an address, a key or a token to print.

mod line;
mod refusals;

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

pub use self::line::{RequestLine, Severity, json_event};
use self::refusals::Refusals;
use crate::clock::Clock;
use crate::domain::api_key::Mode;
use crate::domain::remedy::{Remedy, WriteRemedy};

const WAITING: usize = 1 << 20;

/// How long the first waiting line waits for others: a wake-up and a write for each line would cost a request more than
/// the rest of its line, and nobody reads a log by the hundredth of a second.
const GATHERING: Duration = Duration::from_millis(10);

/// How long a log that could not be written is left alone.
const WRITE_AGAIN: Duration = Duration::from_secs(1);

/// How long the end of the process waits for the last lines to be read.
const LAST_LINES: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Level {
    /// Nothing at all.
    Off,
    /// What the operator should fix or know of.
    Errors,
    /// That, and one line for each request.
    Requests,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For a person at a terminal.
    Text,
    /// One JSON object a line, for a program.
    Json,
}

/// A handle on the log; clones share it. Its lines are about the records of that mode.
#[derive(Clone)]
pub struct Log(Arc<LogWriter>, Mode);

struct LogWriter {
    level: Level,
    format: Format,
    state: Mutex<State>,
    refusals: Mutex<Refusals>,
    wake: Condvar,
    clock: Clock,
    write_remedy: WriteRemedy,
    /// Hung up by the writing thread when it ends.
    ended: Mutex<Option<mpsc::Receiver<()>>>,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// Lines dropped and not told of yet.
    dropped: u64,
    dropped_in_all: u64,
    closed: bool,
}

impl Log {
    pub fn start(
        level: Level,
        format: Format,
        clock: Clock,
        write_remedy: WriteRemedy,
        mut out: impl Write + Send + 'static,
    ) -> std::io::Result<Self> {
        let (alive, ended) = mpsc::channel();
        let writer = LogWriter {
            level,
            format,
            state: Mutex::default(),
            refusals: Mutex::default(),
            wake: Condvar::new(),
            clock,
            write_remedy,
            ended: Mutex::new(Some(ended)),
        };
        let log = Self(Arc::new(writer), Mode::Live);
        let writer = log.clone();
        std::thread::Builder::new().name("log".to_owned()).spawn(move || {
            writer.write_out(&mut out);
            drop(alive);
        })?;
        Ok(log)
    }

    /// The same log for lines about the sandbox.
    #[must_use]
    pub fn of_sandbox(&self) -> Self {
        Self(Arc::clone(&self.0), Mode::Test)
    }

    pub fn requests(&self) -> bool {
        self.0.level >= Level::Requests
    }

    /// A refusal is told at every level that tells anything: somebody will ask why.
    pub fn request(&self, line: &RequestLine<'_>) {
        let least = if line.refusal.is_some() { Level::Errors } else { Level::Requests };
        if self.0.level < least {
            return;
        }
        // A failure of ours is always told.
        if self.0.level == Level::Errors && line.status < 500 {
            let told = self.0.refusals.lock().unwrap_or_else(PoisonError::into_inner).tell(line.at);
            match told {
                Some(0) => {}
                Some(untold) => {
                    self.note(&format!("{untold} refusals before this were not logged, for there were too many"));
                }
                None => return,
            }
        }
        self.append(|out| match self.0.format {
            Format::Text => line::text(out, line),
            Format::Json => line::json(out, line),
        });
    }

    /// Something that failed. `text` may hold no address, key or token.
    pub fn problem(&self, request_id: Option<&str>, text: &str) {
        self.event(Severity::Error, request_id, text);
    }

    /// The same, with what the operator can do about it.
    pub fn problem_with(&self, request_id: Option<&str>, text: &str, remedy: Option<Remedy>) {
        let remedy = remedy.map_or_else(String::new, |remedy| format!("; {}", (self.0.write_remedy)(&remedy, self.1)));
        self.problem(request_id, &format!("{text}{remedy}"));
    }

    /// Something that works and should be otherwise.
    pub fn warning(&self, text: &str) {
        self.event(Severity::Warn, None, text);
    }

    /// Something the operator asked for has been done. Said at every level but `off`.
    pub fn note(&self, text: &str) {
        self.event(Severity::Info, None, text);
    }

    /// A problem as this log writes it, for whoever cannot wait for its thread.
    pub fn error_line(&self, text: &str) -> String {
        let mut line = String::new();
        // Writing to a string does not fail.
        let _infallible = self.write_event(&mut line, Severity::Error, None, text);
        line
    }

    fn event(&self, severity: Severity, request_id: Option<&str>, text: &str) {
        if self.0.level < Level::Errors {
            return;
        }
        let part = if self.1 == Mode::Test { "in the sandbox: " } else { "" };
        let text = [part, text].concat();
        self.append(|out| self.write_event(out, severity, request_id, &text));
    }

    fn write_event(&self, out: &mut String, severity: Severity, id: Option<&str>, text: &str) -> fmt::Result {
        let at = self.0.clock.now().time;
        match self.0.format {
            Format::Text => line::text_event(out, at, severity, id, text),
            Format::Json => writeln!(out, "{}", json_event(at, severity, id, text)),
        }
    }

    pub fn format(&self) -> Format {
        self.0.format
    }

    pub fn lines_dropped(&self) -> u64 {
        self.state().dropped_in_all
    }

    /// Writes out what waits and ends the thread; for the end of the process.
    pub fn close(&self) {
        self.state().closed = true;
        self.0.wake.notify_one();
        let ended = self.0.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended {
            // Either way it is over: a reader who is stuck must not keep the process from ending.
            let _either_way = ended.recv_timeout(LAST_LINES);
        }
    }

    fn append(&self, format: impl FnOnce(&mut String) -> fmt::Result) {
        thread_local! {
            static LINE: RefCell<String> = const { RefCell::new(String::new()) };
        }
        LINE.with_borrow_mut(|line| {
            line.clear();
            // Writing to a string cannot fail.
            let _infallible = format(line);
            let mut state = self.state();
            if state.waiting.len() + line.len() > WAITING {
                state.dropped += 1;
                state.dropped_in_all += 1;
                return;
            }
            let before = state.waiting.len();
            state.waiting.extend_from_slice(line.as_bytes());
            let after = state.waiting.len();
            drop(state);
            // The first line begins the gathering, and a half full buffer ends it.
            if before == 0 || (before < WAITING / 2 && after >= WAITING / 2) {
                self.0.wake.notify_one();
            }
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_out(&self, out: &mut dyn Write) {
        let mut taken = Vec::new();
        loop {
            let mut state = self.state();
            while state.waiting.is_empty() && state.dropped == 0 && !state.closed {
                state = self.0.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let room = |state: &mut State| !state.closed && state.waiting.len() < WAITING / 2;
            let gathered = self.0.wake.wait_timeout_while(state, GATHERING, room);
            (state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
            let closed = state.closed;
            std::mem::swap(&mut state.waiting, &mut taken);
            let dropped = std::mem::take(&mut state.dropped);
            drop(state);
            if dropped > 0 {
                let text = format!("{dropped} lines of the log could not be written and were dropped");
                taken.extend_from_slice(self.error_line(&text).as_bytes());
            }
            // A log that cannot be written, on a full disk perhaps, says so once it can: the lines are counted as dropped.
            if out.write_all(&taken).and_then(|()| out.flush()).is_err() {
                let lost = taken.iter().filter(|byte| **byte == b'\n').count() as u64 - u64::from(dropped > 0);
                let mut state = self.state();
                state.dropped += dropped + lost;
                state.dropped_in_all += lost;
                if !closed {
                    // Not again before there is something new to write, or a while has passed.
                    drop(self.0.wake.wait_timeout(state, WRITE_AGAIN).unwrap_or_else(PoisonError::into_inner));
                }
            }
            taken.clear();
            if closed && self.state().waiting.is_empty() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;

    /// A reader that takes nothing until it is let.
    struct Slow {
        go: mpsc::Receiver<()>,
        got: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.go.recv().ok();
            self.got.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn start(level: Level, format: Format, out: impl Write + Send + 'static) -> Log {
        Log::start(level, format, Clock::start(), |_, _| String::new(), out).unwrap()
    }

    fn line(request_id: &str) -> RequestLine<'_> {
        RequestLine {
            at: Timestamp::from_millis(0),
            method: "GET",
            route: "/v1/stats",
            status: 200,
            took: Duration::from_micros(1234),
            request_id,
            key: None,
            refusal: None,
            is_fault: true,
        }
    }

    #[test]
    fn a_slow_reader_costs_lines_and_never_a_wait() {
        let (let_go, go) = mpsc::channel();
        let got = Arc::new(Mutex::new(Vec::new()));
        let log = start(Level::Requests, Format::Json, Slow { go, got: Arc::clone(&got) });
        for _ in 0..50_000 {
            log.request(&line("abc"));
        }
        assert!(log.state().waiting.len() <= WAITING);
        drop(let_go);
        log.close();
        let text = String::from_utf8(got.lock().unwrap().clone()).unwrap();
        let (notes, lines): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.contains("dropped"));
        let dropped: usize = notes
            .iter()
            .map(|note| {
                serde_json::from_str::<serde_json::Value>(note).unwrap()["message"].as_str().unwrap().to_owned()
            })
            .map(|message| message.split(' ').next().unwrap().parse::<usize>().unwrap())
            .sum();
        assert!(dropped > 0);
        assert_eq!(dropped as u64, log.lines_dropped());
        assert_eq!(lines.len() + dropped, 50_000);
    }

    #[test]
    fn a_reader_who_is_stuck_does_not_keep_the_process() {
        let (_never, go) = mpsc::channel();
        let log = start(Level::Requests, Format::Json, Slow { go, got: Arc::default() });
        log.request(&line("abc"));
        log.close();
    }

    #[test]
    fn lines_are_json_or_readable_and_the_level_holds() {
        let logged = |level, format| {
            let (let_go, go) = mpsc::channel();
            drop(let_go);
            let got = Arc::new(Mutex::new(Vec::new()));
            let log = start(level, format, Slow { go, got: Arc::clone(&got) });
            log.request(&line("abc"));
            log.problem(Some("abc"), "the \"disk\" is full");
            let fields = ["email".to_owned(), "categories.?".to_owned()];
            let refusal = Some(("invalid_submission", &fields[..]));
            log.request(&RequestLine { status: 400, refusal, ..line("def") });
            log.close();
            String::from_utf8(got.lock().unwrap().clone()).unwrap()
        };
        let json = logged(Level::Requests, Format::Json);
        let lines: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&lines[0]["duration_us"], &lines[0]["level"]), (&1234.into(), &"info".into()));
        assert_eq!(lines[1]["message"], "the \"disk\" is full");
        assert_eq!(lines[2]["error"], "invalid_submission");
        assert_eq!(lines[2]["fields"], serde_json::json!(["email", "categories.?"]));
        let human = logged(Level::Requests, Format::Text);
        assert!(human.starts_with("1970-01-01T00:00:00Z 200 GET /v1/stats 1.2 ms abc\n20"), "{human}");
        assert!(human.contains("Z ERROR (abc): the \"disk\" is full\n"), "{human}");
        assert!(human.ends_with(" 400 GET /v1/stats 1.2 ms def invalid_submission email categories.?\n"), "{human}");
        assert_eq!(logged(Level::Errors, Format::Json).lines().count(), 2, "the problem and the refusal");
        assert_eq!(logged(Level::Off, Format::Json), "");
    }

    #[test]
    fn lines_that_a_full_disk_did_not_take_are_counted() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let log = start(Level::Requests, Format::Json, full);
        for n in 0..100 {
            log.request(&line(&n.to_string()));
        }
        log.close();
        assert_eq!(log.lines_dropped(), 100);
    }
}
