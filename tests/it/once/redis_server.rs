//! A Redis of a test's own, and the link to it, which a test can make late, hold or close.
//!
//! Redis listens on a socket in a folder of the test's own. The service reaches it over TCP, through the link, which has its
//! port for as long as the test runs, also while nothing listens there: nobody else can be given it meanwhile.

use std::os::unix::net::UnixStream as BlockingUnixStream;
use std::sync::mpsc as blocking;

use crate::prelude::*;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::{mpsc, watch};

const STEP: Duration = Duration::from_millis(10);

/// A Redis to be killed, paused and started again. Dropping it ends the process.
pub(crate) struct Redis {
    process: RedisProcess,
    folder: tempfile::TempDir,
    flags: Vec<String>,
    pub(super) link: Link,
}

impl Redis {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(super) fn start_with(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let flags: Vec<_> = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let process = RedisProcess::on_socket(folder.path(), &flags);
        let link = Link::to(socket_in(folder.path()));
        Self { process, folder, flags, link }
    }

    pub(crate) fn url(&self) -> String {
        self.link.url()
    }

    /// For a node that is to lose it alone.
    pub(super) fn another_link(&self) -> Link {
        Link::to(socket_in(self.folder.path()))
    }

    pub(super) fn signal(&self, name: &str) {
        let id = self.process.0.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap().success());
    }

    /// From now on nobody listens at its address.
    pub(crate) fn kill(&mut self) {
        self.link.set(Passage::Closed);
        self.process.0.kill().unwrap();
        self.process.0.wait().unwrap();
    }

    /// Another one, empty, at the same address.
    pub(crate) fn start_again(&mut self) {
        self.process = RedisProcess::on_socket(self.folder.path(), &self.flags);
        self.link.set(Passage::Open);
    }
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("redis.sock")
}

/// Dropping it ends the process.
pub(super) struct RedisProcess(Child);

impl RedisProcess {
    fn on_socket(folder: &Path, flags: &[String]) -> Self {
        let socket = socket_in(folder);
        let mut process = Self::launch(folder, &["--port", "0", "--unixsocket", socket.to_str().unwrap()], flags);
        let up = |process: &mut Self| {
            assert!(process.0.try_wait().unwrap().is_none(), "redis-server has ended: {}", log_in(folder));
            BlockingUnixStream::connect(&socket).is_ok()
        };
        blocking_wait(&format!("that redis-server listens on {}", socket.display()), || up(&mut process));
        process
    }

    /// One that listens on a port itself, for what no link can carry. Only Redis can tell whether a port is free: it tries
    /// one after another.
    pub(super) fn on_some_port(folder: &Path, flags: impl Fn(u16) -> Vec<String>) -> (Self, u16) {
        let first = std::process::id().wrapping_mul(61);
        for n in 0..100 {
            let port = 20_000 + u16::try_from((first.wrapping_add(n * 7)) % 10_000).unwrap();
            let mut process = Self::launch(folder, &["--bind", "127.0.0.1"], &flags(port));
            let mut ended = false;
            blocking_wait("that redis-server is ready, or finds its port taken", || {
                ended = process.0.try_wait().unwrap().is_some();
                ended || log_in(folder).contains("Ready to accept connections")
            });
            if !ended {
                return (process, port);
            }
        }
        panic!("none of a hundred ports: {}", log_in(folder));
    }

    fn launch(folder: &Path, where_to_listen: &[&str], flags: &[String]) -> Self {
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let mut command = Command::new("redis-server");
        command.args(["--save", "", "--appendonly", "no"]).args(where_to_listen).args(flags).current_dir(folder);
        let process = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn();
        Self(process.expect("redis-server is not installed: ./test.sh installs it"))
    }
}

impl Drop for RedisProcess {
    fn drop(&mut self) {
        // It may have been ended already.
        let _gone = self.0.kill();
        let _waited = self.0.wait();
    }
}

fn log_in(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap()
}

fn blocking_wait(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..A_MINUTE.as_millis() / STEP.as_millis() {
        if condition() {
            return;
        }
        std::thread::sleep(STEP);
    }
    panic!("waited for a minute: {what}");
}

/// How a link passes on what is said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Passage {
    Open,
    /// Every answer comes so much later.
    Late(Duration),
    /// Redis is asked, and its answers wait until the passage changes.
    AnswersWait,
    /// What Redis is asked waits until the passage changes.
    QuestionsWait,
    Closed,
}

/// A proxy in front of a Redis, in a thread of its own. It ends when it is dropped.
pub(super) struct Link {
    port: u16,
    passage: watch::Sender<Passage>,
    asked: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Link {
    /// To the Redis at that socket.
    pub(super) fn to(upstream: PathBuf) -> Self {
        let (passage, changes) = watch::channel(Passage::Open);
        let asked = Arc::default();
        let (ready, listening) = blocking::channel();
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let reserved = reserve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
                let address = reserved.local_addr().unwrap();
                let first = listen(address);
                ready.send(address.port()).unwrap();
                pass_on(first, address, &upstream, changes, &noted).await;
                drop(reserved);
            });
        });
        Self { port: listening.recv().unwrap(), passage, asked }
    }

    pub(super) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(super) fn set(&self, passage: Passage) {
        self.passage.send_replace(passage);
    }

    /// The keys of each batch of checks that went through so far.
    pub(super) fn asked(&self) -> Vec<Vec<String>> {
        self.asked.lock().unwrap().clone()
    }
}

/// A port for several sockets of ours. While one of them is bound, nobody else can have it; without a listener connections to
/// it are refused.
fn reserve(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseport(true).unwrap();
    socket.bind(address).unwrap();
    socket
}

fn listen(address: SocketAddr) -> TcpListener {
    reserve(address).listen(1024).unwrap()
}

async fn pass_on(
    first: TcpListener,
    address: SocketAddr,
    upstream: &Path,
    mut passage: watch::Receiver<Passage>,
    asked: &Arc<Mutex<Vec<Vec<String>>>>,
) {
    let (mut first, mut closing) = (Some(first), passage.clone());
    while passage.wait_for(|passage| *passage != Passage::Closed).await.is_ok() {
        let listener = first.take().unwrap_or_else(|| listen(address));
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                closed = closing.wait_for(|passage| *passage == Passage::Closed) => {
                    if closed.is_err() {
                        return;
                    }
                    break;
                }
                accepted = listener.accept() => {
                    let (upstream, passage, asked) = (upstream.to_owned(), passage.clone(), Arc::clone(asked));
                    connections.spawn(carry(accepted.unwrap().0, upstream, passage, asked));
                }
            }
        }
    }
}

async fn carry(
    client: TcpStream,
    upstream: PathBuf,
    passage: watch::Receiver<Passage>,
    asked: Arc<Mutex<Vec<Vec<String>>>>,
) {
    // Closed at once where there is no Redis.
    let Ok(redis) = UnixStream::connect(upstream).await else { return };
    client.set_nodelay(true).unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_redis, mut to_redis) = redis.into_split();
    let (answers, mut due) = mpsc::unbounded_channel();
    let mut holds_questions = passage.clone();
    let questions = async {
        let (mut bytes, mut unread) = (vec![0; 1 << 16], Vec::new());
        while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
            unread.extend_from_slice(&bytes[..count]);
            asked.lock().unwrap().extend(batches(&mut unread));
            let may_pass = holds_questions.wait_for(|passage| *passage != Passage::QuestionsWait).await.is_ok();
            if !may_pass || to_redis.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    };
    let mut holds_answers = passage.clone();
    let take_answers = async move {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(count @ 1..) = from_redis.read(&mut bytes).await {
            let later = match *passage.borrow() {
                Passage::Late(later) => later,
                _ => Duration::ZERO,
            };
            let _closing = answers.send((Instant::now() + later, bytes[..count].to_vec()));
        }
    };
    let give_answers = async {
        while let Some((due, bytes)) = due.recv().await {
            tokio::time::sleep_until(due).await;
            let may_pass = holds_answers.wait_for(|passage| *passage != Passage::AnswersWait).await.is_ok();
            if !may_pass || to_client.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = questions => {}
        ((), ()) = async { tokio::join!(take_answers, give_answers) } => {}
    }
}

/// Takes the whole commands from the front of what was sent: the keys of each that checks limits.
fn batches(unread: &mut Vec<u8>) -> Vec<Vec<String>> {
    let mut batches = Vec::new();
    while let Some((words, length)) = command(unread) {
        unread.drain(..length);
        if words[0] == "EVALSHA" {
            let keys: usize = words[2].parse().unwrap();
            batches.push(words[3..3 + keys].to_vec());
        }
    }
    batches
}

/// The words of the first command and how many bytes it has; none while it is not whole.
fn command(bytes: &[u8]) -> Option<(Vec<String>, usize)> {
    // "*3\r\n" and "$5\r\n" say how many words come, and how many bytes.
    let number = |at: usize, mark: u8| {
        let line = &bytes[at..][..bytes[at..].windows(2).position(|end| end == b"\r\n")?];
        assert_eq!(line[0], mark, "a command of the driver's");
        let number: usize = std::str::from_utf8(&line[1..]).unwrap().parse().unwrap();
        Some((number, at + line.len() + 2))
    };
    let (count, mut at) = number(0, b'*')?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, start) = number(at, b'$')?;
        words.push(String::from_utf8_lossy(bytes.get(start..start + length)?).into_owned());
        at = start + length + 2;
    }
    (at <= bytes.len()).then_some((words, at))
}
