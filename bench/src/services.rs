//! PostgreSQL and Redis of the bench's own, where they are installed: on free ports, with their data in a folder that
//! goes away.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::compare::Plan;
use crate::reaper;
use crate::server::{output, signal};

const PATIENCE: Duration = Duration::from_secs(30);

/// A running service; dropping it ends it.
struct Service {
    process: Child,
    /// What it is told to end by.
    signal: &'static str,
    _folder: tempfile::TempDir,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _told = signal(self.process.id(), self.signal);
        let patience = Instant::now() + Duration::from_secs(10);
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _gone = self.process.kill();
        let _waited = self.process.wait();
    }
}

pub(crate) struct Postgres {
    service: Service,
    programs: Programs,
    port: u16,
    /// Whether it says what each statement took.
    statements: bool,
}

/// Milliseconds, calls and microseconds a call, from the dearest statement on.
const STATEMENTS: &str = "
    SELECT round(total_exec_time), calls, round(1000 * total_exec_time / calls), d.datname, left(regexp_replace(query, '\\s+', ' ', 'g'), 160)
    FROM pg_stat_statements JOIN pg_database d ON d.oid = dbid WHERE total_exec_time > 5 ORDER BY total_exec_time DESC";

/// The name by which a primary knows its standby.
const STANDBY: &str = "standby";

impl Postgres {
    /// Starts one; `None` where it is not installed.
    pub(crate) fn start(plan: Plan) -> anyhow::Result<Option<Self>> {
        let Some(programs) = Programs::find()? else { return Ok(None) };
        let folder = programs.new_folder()?;
        let make = ["--auth=trust", "--username=bench", "--encoding=UTF8", "--no-sync", "-D", "data"];
        output(programs.run("initdb", folder.path()).args(make))?;
        Self::serve(programs, folder, plan.statements).map(Some)
    }

    /// Another that follows this one. From now on, what is committed here is on both disks before it is answered.
    pub(crate) fn standby(&self) -> anyhow::Result<Self> {
        let folder = self.programs.new_folder()?;
        let from = format!("host=127.0.0.1 port={} user=bench application_name={STANDBY}", self.port);
        let copy = ["--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf", "-D", "data", "-d", &from];
        output(self.programs.run("pg_basebackup", folder.path()).args(copy))?;
        let standby = Self::serve(self.programs.clone(), folder, self.statements)?;
        let follow = format!("ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'; SELECT pg_reload_conf()");
        self.query("postgres", &follow)?;
        let state = format!("SELECT sync_state FROM pg_stat_replication WHERE application_name = '{STANDBY}'");
        wait_until("PostgreSQL's standby", || self.query("postgres", &state).is_ok_and(|state| state == "sync"))?;
        Ok(standby)
    }

    /// Serves the data in that folder.
    fn serve(programs: Programs, folder: tempfile::TempDir, statements: bool) -> anyhow::Result<Self> {
        let port = free_port()?;
        let counted = ["-c", "shared_preload_libraries=pg_stat_statements", "-c", "pg_stat_statements.track=all"];
        let process = reaper::bind(&mut programs.run("postgres", folder.path()))?
            .args(["-D", "data", "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"])
            .args([
                "-c",
                &format!("port={port}"),
                "-c",
                &format!("unix_socket_directories={}", folder.path().display()),
            ])
            .args(counted.iter().filter(|_| statements))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // SIGINT ends it at once and cleanly.
        let postgres =
            Self { service: Service { process, signal: "INT", _folder: folder }, programs, port, statements };
        wait_until("PostgreSQL", || postgres.query("postgres", "SELECT 1").is_ok())?;
        Ok(postgres)
    }

    /// Its own process and those that serve its connections.
    pub(crate) fn processes(&self) -> anyhow::Result<Vec<u32>> {
        let own = self.service.process.id();
        let children = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children"))?;
        let children = children.split_whitespace().map(str::parse).collect::<Result<Vec<_>, _>>()?;
        Ok([&[own], &children[..]].concat())
    }

    /// Does that work and, if asked to, prints what each statement took meanwhile.
    pub(crate) fn observed<T>(&self, what: &str, work: impl FnOnce() -> T) -> anyhow::Result<T> {
        if !self.statements {
            return Ok(work());
        }
        self.query("postgres", "CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT pg_stat_statements_reset()")?;
        let done = work();
        eprintln!("{what}: ms|calls|us a call|database|statement\n{}", self.query("postgres", STATEMENTS)?);
        Ok(done)
    }

    /// Makes a database and gives its address.
    pub(crate) fn database(&self, name: &str) -> anyhow::Result<String> {
        self.query("postgres", &format!("CREATE DATABASE {name}"))?;
        Ok(format!("postgres://bench@127.0.0.1:{}/{name}", self.port))
    }

    /// Runs SQL on a database; what it says, bare.
    pub(crate) fn query(&self, database: &str, sql: &str) -> anyhow::Result<String> {
        use std::io::Write;
        let mut psql = Command::new(self.programs.folder.join("psql"))
            .args(["-h", "127.0.0.1", "-U", "bench", "-d", database, "-p", &self.port.to_string()])
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        psql.stdin.take().context("a pipe was asked for")?.write_all(sql.as_bytes())?;
        let done = psql.wait_with_output()?;
        if !done.status.success() {
            bail!("psql: {}", String::from_utf8_lossy(&done.stderr).trim());
        }
        Ok(String::from_utf8(done.stdout)?.trim().to_owned())
    }
}

/// PostgreSQL's programs, and the user and group they run as if not as we do.
#[derive(Clone)]
struct Programs {
    folder: PathBuf,
    user: Option<(u32, u32)>,
}

impl Programs {
    /// Those of the newest PostgreSQL of this machine, or of the one on the path.
    fn find() -> anyhow::Result<Option<Self>> {
        let whole = |folder: &PathBuf| ["initdb", "postgres", "psql"].iter().all(|name| folder.join(name).exists());
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let newest = versions.map(|version| version.path().join("bin")).filter(whole).max();
        let path = || std::env::split_paths(&std::env::var_os("PATH")?).find(whole);
        let Some(folder) = newest.or_else(path) else { return Ok(None) };
        Ok(Some(Self { folder, user: unprivileged()? }))
    }

    /// A folder that they may write to.
    fn new_folder(&self) -> anyhow::Result<tempfile::TempDir> {
        let folder = tempfile::tempdir()?;
        if let Some((user, group)) = self.user {
            std::os::unix::fs::chown(folder.path(), Some(user), Some(group))?;
        }
        Ok(folder)
    }

    fn run(&self, program: &str, folder: &Path) -> Command {
        let mut command = Command::new(self.folder.join(program));
        command.current_dir(folder);
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

/// PostgreSQL refuses to run as root; then it runs as a user who owns nothing.
fn unprivileged() -> anyhow::Result<Option<(u32, u32)>> {
    if output(Command::new("id").arg("-u"))? != "0" {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd")?;
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let user = ["postgres", "nobody"].into_iter().find_map(|name| {
        let fields = fields.clone().find(|fields| fields.first() == Some(&name))?;
        Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?))
    });
    user.map(Some).context("there is no user to run PostgreSQL as")
}

pub(crate) struct Redis {
    service: Service,
    pub address: String,
}

impl Redis {
    pub(crate) fn process(&self) -> u32 {
        self.service.process.id()
    }

    /// Starts one; `None` where it is not installed.
    pub(crate) fn start() -> anyhow::Result<Option<Self>> {
        let installed = std::env::var_os("PATH")
            .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join("redis-server").exists()));
        if !installed {
            return Ok(None);
        }
        let folder = tempfile::tempdir()?;
        let port = free_port()?;
        let process = reaper::bind(&mut Command::new("redis-server"))?
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let redis = Self {
            service: Service { process, signal: "TERM", _folder: folder },
            address: format!("redis://127.0.0.1:{port}"),
        };
        wait_until("Redis", || std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())?;
        Ok(Some(redis))
    }
}

fn wait_until(what: &str, ready: impl Fn() -> bool) -> anyhow::Result<()> {
    let patience = Instant::now() + PATIENCE;
    while !ready() {
        if Instant::now() > patience {
            bail!("{what} did not start in time");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Copies a database. The copy is on the disk before anyone measures: its first checkpoint would wait for all of it.
pub(crate) fn copy_records(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    std::fs::File::open(to)?.sync_all()?;
    Ok(())
}
