//! The servers and programs that some tests need beside the toolchain. `./test.sh` installs and starts them.

use crate::prelude::*;
use crate::{history, machines, mailserver};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needed {
    /// The PostgreSQL and the Redis that all tests share.
    Postgres,
    Redis,
    /// Programs, for servers of a test's own.
    PostgresPrograms,
    RedisServer,
    MailServer,
    Nginx,
    Caddy,
    Promtool,
    Faketime,
    SystemdAnalyze,
    /// As many as a flood of connections takes.
    OpenFiles,
    /// What all other tests ran on PostgreSQL, written down.
    Statements,
    /// The machine for itself, or minutes.
    LongRun,
}

/// Open files that a flood of connections takes, on either side.
const MANY_FILES: u64 = 20_000;

impl Needed {
    fn name(self) -> &'static str {
        match self {
            Self::Postgres => "a PostgreSQL of the tests",
            Self::Redis => "a Redis of the tests",
            Self::PostgresPrograms => "PostgreSQL's programs",
            Self::RedisServer => "redis-server",
            Self::MailServer => "the mail server of the tests",
            Self::Nginx => "nginx",
            Self::Caddy => "caddy",
            Self::Promtool => "promtool",
            Self::Faketime => "libfaketime",
            Self::SystemdAnalyze => "systemd-analyze",
            Self::OpenFiles => "20,000 open files (`ulimit -n`)",
            Self::Statements => "the statements of a whole run",
            Self::LongRun => "a long run (`--long`)",
        }
    }

    fn is_there(self) -> bool {
        match self {
            Self::Postgres => std::env::var_os("UNIONHALL_TEST_POSTGRES").is_some(),
            Self::Redis => std::env::var_os("UNIONHALL_TEST_REDIS").is_some(),
            Self::PostgresPrograms => machines::newest_postgres().is_some(),
            Self::RedisServer => machines::find_program("redis-server").is_some(),
            Self::MailServer => mailserver::venv().exists(),
            Self::Nginx => machines::find_program("nginx").is_some(),
            Self::Caddy => machines::fetched_path("caddy", "caddy").exists(),
            Self::Promtool => machines::fetched_path("prometheus", "promtool").exists(),
            Self::Faketime => history::libfaketime().is_some(),
            Self::SystemdAnalyze => machines::find_program("systemd-analyze").is_some(),
            Self::OpenFiles => may_open_many_files(),
            Self::Statements => std::env::var_os("UNIONHALL_TEST_STATEMENTS").is_some(),
            // The script runs such a test in a long run, or by its name.
            Self::LongRun => std::env::var_os("UNIONHALL_TEST_SERVERS").is_some(),
        }
    }
}

/// Raises this process's limit on open files as far as it may.
fn may_open_many_files() -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok()
        && maximum.is_none_or(|most| most >= MANY_FILES)
}

/// Whether this machine lacks what a test needs. Under `./test.sh` that fails the test; otherwise one sentence says what is needed and
/// how to get it, past the test harness, which shows only what failed tests print.
pub(crate) fn lacks(needed: Needed) -> bool {
    static SAID: AtomicU32 = AtomicU32::new(0);
    if needed.is_there() {
        return false;
    }
    let name = needed.name();
    assert!(
        std::env::var_os("UNIONHALL_TEST_SERVERS").is_none(),
        "{name} is missing; ./test.sh installs and starts it"
    );
    let bit = 1 << needed as u32;
    if SAID.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
        let _unseen = writeln!(
            std::io::stderr(),
            "Tests that need {name} are not run and count as passed; ./test.sh runs them, and installs and starts what they need."
        );
    }
    true
}

/// What a test needs beside the toolchain: it ends there without it.
macro_rules! needs {
    ($($needed:ident),+) => {
        $(if $crate::servers::lacks($crate::servers::Needed::$needed) {
            return;
        })+
    };
}
