//! What the bench started ends with it, even if it is killed: servers and databases are in one process group, and a shell that
//! waits until the bench is gone ends them all.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// The shell. Its standard input is a pipe that nobody writes to, and that the system closes when the bench is gone.
struct Reaper(Child);

static REAPER: OnceLock<Reaper> = OnceLock::new();

impl Reaper {
    fn start() -> std::io::Result<Self> {
        // SIGINT ends PostgreSQL at once and cleanly. Zero is the shell's own group, with the shell in it.
        let mut shell = Command::new("sh");
        shell.args(["-c", "cat; kill -INT 0"]).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(Self)
    }

    fn bind<'a>(&self, command: &'a mut Command) -> anyhow::Result<&'a mut Command> {
        Ok(command.process_group(i32::try_from(self.0.id())?))
    }
}

/// What this command starts ends with the bench.
pub(crate) fn bind(command: &mut Command) -> anyhow::Result<&mut Command> {
    let reaper = match REAPER.get() {
        Some(reaper) => reaper,
        None => {
            let started = Reaper::start()?;
            REAPER.get_or_init(|| started)
        }
    };
    reaper.bind(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_bound_ends_when_the_pipe_closes() {
        let mut reaper = Reaper::start().unwrap();
        let mut bound = reaper.bind(Command::new("sleep").arg("60")).unwrap().spawn().unwrap();
        assert!(bound.try_wait().unwrap().is_none());
        drop(reaper.0.stdin.take());
        assert!(!reaper.0.wait().unwrap().success(), "it ends with its group");
        assert!(!bound.wait().unwrap().success(), "ended before its minute was over");
    }
}
