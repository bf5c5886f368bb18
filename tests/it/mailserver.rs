//! The mail server that the tests send through, and what else of `tests/mail` they run.

use crate::machines::{KeptPort, tools};
use crate::prelude::*;

pub(crate) struct Mailserver {
    process: Child,
    pub port: u16,
    arguments: Vec<String>,
    folder: tempfile::TempDir,
    /// Holds the port while the process is ended.
    kept: Option<KeptPort>,
}

impl Mailserver {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let arguments: Vec<_> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let (process, port) = launch(folder.path(), 0, &arguments);
        Self { process, port, arguments, folder, kept: None }
    }

    /// Ended as by a crash: connections break.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        // Nobody listens, and nobody else gets the port.
        self.kept = Some(KeptPort::bind(self.port).unwrap());
    }

    pub(crate) fn start_again(&mut self) {
        self.process = launch(self.folder.path(), self.port, &self.arguments).0;
        self.kept = None;
    }

    /// Answers those whom it held.
    pub(crate) fn let_go(&self) {
        std::fs::write(self.folder.path().join("let-go"), "").unwrap();
    }

    pub(crate) fn arrived(&self) -> Vec<Value> {
        let mut files: Vec<_> =
            std::fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|end| end == "json"));
        files.sort();
        files.iter().map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()).collect()
    }

    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Value> {
        wait_for!(async || self.arrived().len() >= count).await;
        self.arrived()
    }
}

impl Drop for Mailserver {
    fn drop(&mut self) {
        // It may have been killed already.
        let _gone = self.process.kill();
        let _waited = self.process.wait();
    }
}

/// The Python that has what the programs of `tests/mail` need.
pub(crate) fn venv() -> PathBuf {
    tools().join("mail/venv/bin/python")
}

pub(crate) fn python(program: &str) -> Command {
    let mut command = Command::new(venv());
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mail").join(program));
    command
}

fn launch(folder: &Path, port: u16, arguments: &[String]) -> (Child, u16) {
    let mut process = python("server.py")
        .arg(folder)
        .args(["--port", &port.to_string()])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (process, line.trim().parse().expect("the mail server says its port"))
}
