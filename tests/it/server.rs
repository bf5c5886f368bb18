//! The real server as a process, and a plain HTTP client to talk to it.

use crate::prelude::*;
use hyper::client::conn::http1;
use hyper::{HeaderMap, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite};
use unionhall::domain::sign_up::SignUpId;

use crate::records::Held;

/// A running server. Dropping it ends the process.
pub(crate) struct Server {
    process: Child,
    pub address: SocketAddr,
    home: Home,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(flags: &[&str]) -> Self {
        Self::start_in(Home::new(), flags)
    }

    /// The same, and the key of a partner of it.
    pub(crate) fn with_key(flags: &[&str]) -> (Self, String) {
        let server = Self::start_with(flags);
        let key = server.key();
        (server, key)
    }

    pub(crate) fn start_with_env(variables: &[(&str, &str)], flags: &[&str]) -> Self {
        Self::launch(Home::new(), variables, flags)
    }

    /// Starts it where another has been, on the same records.
    pub(crate) fn start_in(home: Home, flags: &[&str]) -> Self {
        Self::launch(home, &[], flags)
    }

    fn launch(home: Home, variables: &[(&str, &str)], flags: &[&str]) -> Self {
        let mut command = unionhall(home.path());
        command.envs(home.records().settings()).envs(variables.iter().copied());
        Self::start_as(command, home, flags)
    }

    /// Starts it by a command of one's own, which becomes the server with the arguments that it is given.
    pub(crate) fn start_as(mut command: Command, home: Home, flags: &[&str]) -> Self {
        home.prepare();
        let mut process = command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("UNIONHALL_LOG", "errors")
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(home.path().join("stderr")).unwrap())
            .spawn()
            .unwrap();
        let mut printed = std::fs::File::create(home.path().join("stdout")).unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(move |line| {
            let line = line.unwrap();
            writeln!(printed, "{line}").unwrap();
            line
        });
        let address = lines.find_map(|line| line.split("://").nth(1)?.split([' ', '"']).next()?.parse().ok());
        let Some(address) = address else {
            panic!("the server did not start: {}", std::fs::read_to_string(home.path().join("stderr")).unwrap());
        };
        // Whatever else it prints is read, too.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address, home }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.home.path().join("stderr")).unwrap()
    }

    pub(crate) fn data(&self) -> std::path::PathBuf {
        self.home.path().join("data")
    }

    pub(crate) fn records(&self) -> &Records {
        self.home.records()
    }

    #[track_caller]
    pub(crate) fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        self.records().rows(sql)
    }

    #[track_caller]
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.records().number(sql)
    }

    #[track_caller]
    pub(crate) fn execute(&self, sql: &str) {
        self.records().execute(sql);
    }

    pub(crate) fn hold(&self) -> Held {
        self.records().hold()
    }

    /// Where a sign-up's mail leads to.
    pub(crate) fn confirm_path(&self, sign_up: i64) -> String {
        format!("/confirm/{}", self.token(Purpose::Confirm, sign_up))
    }

    /// The token of a mail's link. A sign-up that is no more has none; a made-up one stands for it.
    fn token(&self, purpose: Purpose, sign_up: i64) -> String {
        let created_at =
            self.number(&format!("SELECT coalesce(max(created_at), 0) FROM sign_ups WHERE id = {sign_up}"));
        let sign_up = SignUpRef { id: SignUpId(sign_up), created_at: Timestamp::from_millis(created_at) };
        TokenMaker::new(&self.records().secret()).token(purpose, sign_up)
    }

    pub(crate) async fn confirm(&self, sign_up: i64) -> Answer {
        self.submit(Request::post(self.confirm_path(sign_up)), "").await
    }

    /// Where "this wasn't me" in its mail leads to.
    pub(crate) fn decline_path(&self, sign_up: i64) -> String {
        format!("/not-me/{}", self.token(Purpose::Decline, sign_up))
    }

    /// Says "this wasn't me", and asks to be left in peace.
    pub(crate) async fn decline(&self, sign_up: i64) {
        let path = self.decline_path(sign_up);
        assert_eq!(self.submit(Request::post(path), "do=withdraw&mailbox=silence").await.status, 200);
    }

    /// The binary with the settings of this server's records, for a command of the operator's.
    pub(crate) fn command(&self) -> Command {
        let mut command = unionhall(self.home.path());
        command.envs(self.records().settings());
        command
    }

    /// Another program, in the same place with the same settings.
    pub(crate) fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.home.path()).envs(self.records().settings());
        command
    }

    /// Runs a command of the operator's on this server's data and expects it to succeed; gives its standard output.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// What such a command prints with `--json`.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(arguments)).unwrap()
    }

    pub(crate) fn try_run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    pub(crate) fn key(&self) -> String {
        self.run(&["keys", "issue", "Acme Assistant"])
    }

    pub(crate) fn signal(&self, name: &str) {
        let done = Command::new("kill").args([&format!("-{name}"), &self.id().to_string()]).status().unwrap();
        assert!(done.success());
    }

    /// Stops it as an operator would; gives back its exit code and its home.
    pub(crate) fn stop(mut self) -> (Option<i32>, Home) {
        self.signal("TERM");
        let status = self.process.wait().unwrap();
        (status.code(), self.into_home())
    }

    /// The same where it has to end well.
    pub(crate) fn stopped(self) -> Home {
        let (code, home) = self.stop();
        assert_eq!(code, Some(0));
        home
    }

    /// What it leaves behind; the process is ended if it still runs.
    pub(crate) fn into_home(mut self) -> Home {
        std::mem::replace(&mut self.home, Home::new())
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path), "").await
    }

    pub(crate) async fn post(&self, path: &str, key: &str, body: impl Into<Bytes>) -> Answer {
        let request = Request::post(path).header("authorization", format!("Bearer {key}"));
        self.send(request.header("content-type", "application/json"), body).await
    }

    pub(crate) async fn send(&self, request: hyper::http::request::Builder, body: impl Into<Bytes>) -> Answer {
        self.send_from(Ipv4Addr::LOCALHOST, request, body).await
    }

    /// Sends a form, and goes where the answer leads, as a browser does.
    pub(crate) async fn submit(&self, request: hyper::http::request::Builder, body: impl Into<Bytes>) -> Answer {
        let answer = self.send(request, body).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{answer:?}");
        self.get(answer.header("location")).await
    }

    /// Sends from another loopback address: to the server, another client.
    pub(crate) async fn send_from(
        &self,
        from: Ipv4Addr,
        request: hyper::http::request::Builder,
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut connection = self.connect(from).await;
        connection.send(request, body).await
    }

    pub(crate) async fn connect(&self, from: Ipv4Addr) -> Connection {
        Connection::over(self.dial(from).await, "unionhall.test").await
    }

    pub(crate) async fn dial(&self, from: Ipv4Addr) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        socket.connect(self.address).await.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been stopped already.
        let _gone = self.process.kill();
        let _waited = self.process.wait();
        if std::thread::panicking() {
            eprintln!(
                "the server's log:\n{}",
                std::fs::read_to_string(self.home.path().join("stderr")).unwrap_or_default()
            );
        }
    }
}

/// The memory of a process; nothing if it has ended and nobody has waited for it yet.
pub(crate) fn resident(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10)
}

/// One kept-alive connection, and the host that it asks for.
pub(crate) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    host: String,
}

impl Connection {
    pub(crate) async fn over(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, host: &str) -> Self {
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { sender, host: host.to_owned() }
    }

    pub(crate) async fn send(&mut self, request: hyper::http::request::Builder, body: impl Into<Bytes>) -> Answer {
        let request = request.header("host", &self.host).body(Full::new(body.into())).unwrap();
        let what = format!("an answer to {} {}", request.method(), request.uri());
        let answered = async {
            self.sender.ready().await.unwrap();
            let response = self.sender.send_request(request).await.unwrap();
            let (head, body) = response.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            Answer { status: head.status, headers: head.headers, body }
        };
        in_time(&what, answered).await
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.headers["content-type"], "application/json", "{self:?}");
        let json: Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(json["ok"], self.status == StatusCode::OK, "{json}");
        json
    }

    /// An answer of MCP, which has no `ok`.
    pub(crate) fn json_rpc(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    #[track_caller]
    pub(crate) fn good(&self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{self:?}");
        self.json()
    }

    /// The message of an error that has this status and code.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: impl Into<Value>) -> String {
        let (json, code) = (self.json(), code.into());
        assert_eq!((self.status.as_u16(), &json["code"]), (status, &code), "{json}");
        let fields: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let expected: &[_] = if code.is_null() { &["ok", "error"] } else { &["ok", "error", "code"] };
        assert_eq!(fields, expected);
        json["error"].as_str().unwrap().to_owned()
    }
}

/// The binary, with no settings but the data folder inside `folder`.
pub(crate) fn unionhall(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_unionhall"));
    command.env_clear().current_dir(folder).stdin(Stdio::null());
    command
}

/// The same as a user whom permissions hold: root, as whom the tests may run, is let in everywhere. The folder becomes that
/// user's, what is in it stays whose it was.
pub(crate) fn unprivileged(folder: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return unionhall(folder);
    }
    use std::os::unix::process::CommandExt;
    std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
    // That user may not be let into the folder of the sources.
    let (built, program) = (env!("CARGO_BIN_EXE_unionhall"), folder.join("unionhall"));
    if !program.exists() && std::fs::hard_link(built, &program).is_err() {
        std::fs::copy(built, &program).unwrap();
    }
    let mut command = Command::new(program);
    command.env_clear().current_dir(folder).stdin(Stdio::null()).uid(NOBODY).gid(NOBODY);
    command
}

/// Gives a folder and what is in it to the user of [`unprivileged`].
pub(crate) fn give_away(folder: &Path) {
    if rustix::process::geteuid().is_root() {
        let done = Command::new("chown").args(["-R", &NOBODY.to_string()]).arg(folder).status().unwrap();
        assert!(done.success());
    }
}

const NOBODY: u32 = 65534;

/// Holds a text to all of these parts.
#[track_caller]
pub(crate) fn holds(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "no {part} in {text}"));
}

/// An address that is nobody's.
pub(crate) fn sign_up(email: &str) -> String {
    serde_json::json!({ "email": email }).to_string()
}

/// A call of a tool, as MCP has it.
pub(crate) fn tool_call(name: &str, arguments: Value) -> Value {
    serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": name, "arguments": arguments } })
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(future)
}

/// All of them at once.
pub(crate) async fn together<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut open: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, done) in open.iter_mut().filter(|(_, done)| done.is_none()) {
            if let std::task::Poll::Ready(output) = future.as_mut().poll(context) {
                *done = Some(output);
            }
        }
        if open.iter().all(|(_, done)| done.is_some()) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    open.into_iter().filter_map(|(_, done)| done).collect()
}

/// Longer than anything takes on a machine that is busy with other things: what is not there by then never comes.
pub(crate) const A_MINUTE: Duration = Duration::from_secs(60);

/// Waits for a condition, and says which one and where if it does not come.
macro_rules! wait_for {
    ($condition:expr) => {
        $crate::server::until(concat!(file!(), ":", line!(), ": ", stringify!($condition)), $condition)
    };
}
pub(crate) use wait_for;

/// See [`wait_for`].
pub(crate) fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    in_time(what, async move {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
}

/// What a future gives, which must be done within a minute; `what` is said if it is not.
pub(crate) fn in_time<T>(what: &str, future: impl Future<Output = T>) -> impl Future<Output = T> {
    let future = Box::pin(future);
    async move { tokio::time::timeout(A_MINUTE, future).await.unwrap_or_else(|_| panic!("waited for a minute for {what}")) }
}

/// Every setting of every command, as its variable is called.
pub(crate) fn settings() -> std::collections::BTreeSet<String> {
    let names = unionhall::cli::variables();
    assert!(names.len() > 20, "{names:?}");
    names
}
