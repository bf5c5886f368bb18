//! What a section works with: installations with so many people, bare hyper beside them, measuring, and the checks that
//! void a run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use crate::bare;
use crate::compare::{Measured, Plan, Turn, Variant, Waits, compare, waits};
use crate::load::{Request, ask};
use crate::people::{self, MANY};
use crate::progress::Progress;
use crate::report::Report;
use crate::server::{Installation, Manner, Server};
use crate::services::copy_records;
use crate::targets::{CATEGORIES, PROGRAM, STATS};

/// Everything a section needs.
pub(crate) struct Lab {
    pub plan: Plan,
    pub progress: Progress,
    pub report: Report,
    /// The product, built with the `dist` profile.
    pub binary: PathBuf,
    /// Kept between runs.
    kept: PathBuf,
    /// Gone after this one.
    folder: tempfile::TempDir,
    made: u32,
}

impl Lab {
    pub(crate) fn new(plan: Plan, progress: Progress, binary: PathBuf, kept: PathBuf) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&kept)?;
        let folder = tempfile::tempdir_in(&kept)?;
        Ok(Self { plan, progress, report: Report::default(), binary, kept, folder, made: 0 })
    }

    /// How many people the large records have.
    pub(crate) fn most(&self) -> u64 {
        if self.plan.quick { 100_000 } else { MANY }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn new_folder(&mut self) -> anyhow::Result<PathBuf> {
        self.made += 1;
        let folder = self.newest_folder();
        std::fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// The folder that was made last.
    pub(crate) fn newest_folder(&self) -> PathBuf {
        self.folder.path().join(self.made.to_string())
    }

    /// Installations are of this build from now on.
    pub(crate) fn use_binary(&mut self, binary: PathBuf) {
        self.binary = binary;
        // What was made by another build has its tables. There may be none yet.
        let _none = std::fs::remove_file(self.folder.path().join("empty.db"));
    }

    /// An installation on SQLite with so many people, its keys issued.
    pub(crate) fn installation(&mut self, people: u64) -> anyhow::Result<Installation> {
        let empty = self.folder.path().join("empty.db");
        if !empty.exists() {
            let folder = self.new_folder()?;
            let made =
                Installation { binary: self.binary.clone(), data: folder, variables: Vec::new(), keys: Vec::new() };
            // Making the tables is the product's own business; it does so before it serves.
            made.serve(Manner::default())?.stop()?;
            let database = made.data.join("unionhall.db");
            // The secret's owner is whoever starts first, and that is not the server that was just stopped.
            rusqlite::Connection::open(&database)?
                .execute_batch("UPDATE installation SET secret_fingerprint = NULL; PRAGMA wal_checkpoint(TRUNCATE)")?;
            std::fs::copy(database, &empty)?;
        }
        let folder = self.new_folder()?;
        let records = if people == 0 { empty } else { people::file(&self.kept, &empty, people)? };
        copy_records(&records, &folder.join("unionhall.db"))?;
        Installation::make(&self.binary, &folder, Vec::new())
    }

    /// The limit, answering with the bytes that this server answers with.
    pub(crate) fn bare(&mut self, like: &Server) -> anyhow::Result<Server> {
        let mut lines = String::new();
        for path in [CATEGORIES, PROGRAM, STATS] {
            let answer = ask(like.address, &Request::get(path))?;
            let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head and a body")?;
            // What a bare answer has besides: status, content-type, content-length, date, and the padding's own name.
            let bare = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-padding: \r\ncontent-length: {}\r\n\
                 date: Thu, 01 Jan 1970 00:00:00 GMT",
                body.len()
            );
            lines.push_str(&bare::line(path, head.len().saturating_sub(bare.len()), body));
        }
        self.bare_with(&lines)
    }

    /// Bare hyper with these answers.
    pub(crate) fn bare_with(&mut self, lines: &str) -> anyhow::Result<Server> {
        let file = self.new_folder()?.join("answers");
        std::fs::write(&file, lines)?;
        Server::start(Command::new(std::env::current_exe()?).arg("bare").arg(file), None)
    }

    pub(crate) fn compare(&mut self, turns: &mut [impl Turn]) -> Vec<Measured> {
        compare(turns, self.plan, &mut self.progress)
    }

    /// The same in other rounds than the plan's.
    pub(crate) fn compare_in(&mut self, rounds: usize, turns: &mut [impl Turn]) -> Vec<Measured> {
        compare(turns, Plan { rounds, ..self.plan }, &mut self.progress)
    }

    pub(crate) fn waits(&mut self, variants: &mut [Variant<'_>], a_second: u32) -> Vec<Option<Waits>> {
        let names: Vec<_> = variants.iter().map(|variant| variant.name.clone()).collect();
        let all = waits(variants, a_second, self.plan, &mut self.progress);
        let known = all.iter().map(|waits| waits.as_ref().ok().copied()).collect();
        names.iter().zip(all).for_each(|(name, waits)| self.report.waited(name, waits));
        known
    }

    /// Voids the run unless the records hold exactly the sign-ups that were answered with success.
    pub(crate) fn check_rows(&mut self, what: &str, before: [u64; 3], after: [u64; 3], servers: &[&Server]) {
        let signed_up: u64 = servers.iter().map(|server| server.signed_up.get()).sum();
        let expected = before.map(|rows| rows + signed_up);
        if after == expected {
            self.report
                .note(format!("{what}: {signed_up} sign-ups answered, as many rows of people, sign-ups and mail"));
        } else {
            self.report.void(format!(
                "{what}: the records hold {after:?} rows of people, sign-ups and mail, and should hold {expected:?}"
            ));
        }
    }

    /// A log that dropped lines cost less than one that did not.
    pub(crate) fn check_log(&mut self, what: &str, server: &Server) -> anyhow::Result<()> {
        let Some(path) = &server.log else { return Ok(()) };
        std::thread::sleep(Duration::from_millis(200));
        let text = std::fs::read(path)?;
        let lines = memchr::memchr_iter(b'\n', &text).count();
        let dropped: u64 = memchr::memmem::find_iter(&text, b"\"dropped\":")
            .filter_map(|at| {
                let digits: Vec<u8> = text[at + 10..].iter().copied().take_while(u8::is_ascii_digit).collect();
                String::from_utf8(digits).ok()?.parse::<u64>().ok()
            })
            .sum();
        self.report.note(format!("{what}: {lines} lines written to the log, {dropped} dropped"));
        Ok(())
    }
}
