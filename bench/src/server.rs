//! The servers under measurement, as processes of their own.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::reaper;

/// The longest key limit that the product takes; the limiter stays in the path.
const MOST_PER_MINUTE: &str = "1000000";

/// Keys that the agent actions are spread over: one alone would reach its limit.
const KEYS: usize = 8;

/// A running server. Dropping it ends the process.
pub(crate) struct Server {
    process: Child,
    pub address: SocketAddr,
    /// Sign-ups that were answered with success; the records must show as many.
    pub signed_up: Cell<u64>,
    /// Where its log goes, if it keeps one.
    pub log: Option<PathBuf>,
}

impl Server {
    /// Starts a command that says `… listens on http://ADDRESS` first.
    pub(crate) fn start(command: &mut Command, log: Option<PathBuf>) -> anyhow::Result<Self> {
        let (stderr, complaints) = match &log {
            Some(path) => (Stdio::from(File::create(path)?), None),
            None => {
                let file = tempfile::NamedTempFile::new()?;
                (Stdio::from(file.reopen()?), Some(file))
            }
        };
        let mut process = reaper::bind(command)?.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn()?;
        let stdout = process.stdout.take().context("a pipe was asked for")?;
        let mut lines = BufReader::new(stdout).lines();
        let address = lines.find_map(|line| line.ok()?.split("://").nth(1)?.split([' ', '"']).next()?.parse().ok());
        let Some(address) = address else {
            let status = process.wait()?;
            let said = complaints.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default());
            bail!("the server did not start ({status}): {}", said.unwrap_or_default().trim());
        };
        // Whatever else it prints goes nowhere, but its pipe stays open.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { process, address, signed_up: Cell::new(0), log })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Time that its threads have spent on a processor, user and system, to the nanosecond.
    pub(crate) fn processor_time(&self) -> anyhow::Result<Duration> {
        processor_time(self.id())
    }

    /// Resident memory, in bytes.
    pub(crate) fn resident(&self) -> anyhow::Result<u64> {
        resident(self.id())
    }

    /// Asks it to end as an operator would, and waits until it has.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        signal(self.id(), "TERM")?;
        let patience = Instant::now() + Duration::from_secs(15);
        while self.process.try_wait()?.is_none() {
            if Instant::now() > patience {
                bail!("the server did not stop in time");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.process.kill();
        let _waited = self.process.wait();
    }
}

pub(crate) fn signal(process: u32, name: &str) -> anyhow::Result<()> {
    Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status()?;
    Ok(())
}

pub(crate) fn processor_time(process: u32) -> anyhow::Result<Duration> {
    let mut nanos = 0;
    for task in std::fs::read_dir(format!("/proc/{process}/task"))? {
        // A thread may end while we look.
        let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else { continue };
        nanos += text.split_whitespace().next().and_then(|time| time.parse::<u64>().ok()).unwrap_or(0);
    }
    if nanos == 0 {
        bail!("the kernel does not tell the processor time of process {process}");
    }
    Ok(Duration::from_nanos(nanos))
}

pub(crate) fn resident(process: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
}

/// An installation of the product: its binary, its data folder, and how it is started.
#[derive(Debug, Clone)]
pub(crate) struct Installation {
    pub binary: PathBuf,
    pub data: PathBuf,
    /// More variables: another store, another limiter.
    pub variables: Vec<(String, String)>,
    /// Keys at a million a minute.
    pub keys: Vec<String>,
}

/// How one server of an installation differs from another.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Manner {
    /// With one line in the log for each request.
    pub logged: bool,
    /// One transaction for each write.
    pub one_by_one: bool,
    /// Behind a proxy, whose word on the callers' addresses is taken.
    pub proxied: bool,
}

impl Installation {
    /// An installation in that folder, which may hold records already; issues its keys.
    pub(crate) fn make(binary: &Path, data: &Path, variables: Vec<(String, String)>) -> anyhow::Result<Self> {
        let mut made = Self { binary: binary.to_owned(), data: data.to_owned(), variables, keys: Vec::new() };
        for n in 1..=KEYS {
            let name = format!("Bench {n}");
            let issue = ["keys", "issue", &name, "--per-minute", MOST_PER_MINUTE];
            // A release to compare with may make records unasked, and not know the word for it.
            let key = output(made.command().args(issue)).or_else(|_| output(made.command().args(issue).arg("--new")));
            made.keys.push(key?);
        }
        Ok(made)
    }

    pub(crate) fn command(&self) -> Command {
        self.command_under(&[])
    }

    /// The binary, run by another program if one is given.
    pub(crate) fn command_under(&self, program: &[&str]) -> Command {
        let mut command = match program {
            [] => Command::new(&self.binary),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.binary);
                command
            }
        };
        command.env_clear().env("UNIONHALL_DATA", &self.data).envs(self.variables.iter().map(|(k, v)| (k, v)));
        command
    }

    pub(crate) fn serve(&self, manner: Manner) -> anyhow::Result<Server> {
        self.serve_under(&[], manner)
    }

    pub(crate) fn serve_under(&self, program: &[&str], manner: Manner) -> anyhow::Result<Server> {
        let mut command = self.command_under(program);
        // Mail stays in the outbox: it is written with each sign-up, and sending it is not what is measured.
        command.args(["serve", "--listen", "127.0.0.1:0", "--mail", "hold", "--metrics-listen", "127.0.0.1:0"]);
        command.args(["--public-per-minute", MOST_PER_MINUTE, "--key-per-minute", MOST_PER_MINUTE]);
        if manner.one_by_one {
            command.args(["--write-batch", "1"]);
        }
        if manner.proxied {
            command.args(["--trusted-proxies", "127.0.0.0/8"]);
        }
        let log = manner.logged.then(|| self.data.join("log"));
        Server::start(command.args(["--log", if manner.logged { "requests" } else { "off" }]), log)
    }
}

/// Runs a command that must succeed; gives its standard output.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    if !done.status.success() {
        bail!("{name} failed: {}", String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(String::from_utf8(done.stdout)?.trim().to_owned())
}
