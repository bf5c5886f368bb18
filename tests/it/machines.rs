//! The other machines of an installation, as processes: a proxy in front, PostgreSQL as a primary and its standby. They are
//! set up with the files in `deploy/`, and end with the value that stands for them, also when a test fails.

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};

use crate::prelude::*;
use crate::records::ask;
use tokio_rustls::rustls::crypto::ring;

pub(crate) fn shipped(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `deploy/hall` for a service that runs as the user of the tests.
pub(crate) fn hall() -> String {
    let (script, user) = (shipped("hall"), "user=unionhall\n");
    assert!(script.contains(user));
    script.replace(user, "user=$(id -un)\n")
}

/// Where Debian keeps servers, which is not on everybody's path.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let places = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let is_program = |path: &PathBuf| path.metadata().is_ok_and(|file| file.permissions().mode() & 0o111 != 0);
    std::env::split_paths(&places).map(|place| place.join(name)).find(is_program)
}

pub(crate) fn program(name: &str) -> PathBuf {
    find_program(name).unwrap_or_else(|| panic!("{name} is not installed; ./test.sh installs it"))
}

/// A port that the system gave us, for a server that must be told one. As long as this lives it is given to nobody else, be the server
/// there or not: the socket is bound and does not listen, so whoever asks for just this port may share it (`SO_REUSEADDR`, which
/// every server here sets).
pub(crate) struct KeptPort {
    _socket: TcpSocket,
    pub number: u16,
}

impl KeptPort {
    pub(crate) fn new() -> Self {
        Self::bind(0).unwrap()
    }

    /// That one, if nobody has it.
    pub(crate) fn bind(number: u16) -> std::io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((Ipv4Addr::LOCALHOST, number).into())?;
        Ok(Self { number: socket.local_addr()?.port(), _socket: socket })
    }
}

pub(crate) fn within_a_minute(mut condition: impl FnMut() -> bool) -> bool {
    for _ in 0..1200 {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    condition()
}

/// A process that is ended when it goes out of sight.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it and waits until it can be used.
    pub(crate) fn start(command: &mut Command, log: PathBuf, mut usable: impl FnMut() -> bool) -> Self {
        let said = std::fs::File::create(&log).unwrap();
        command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said);
        let mut process = Self { child: command.spawn().unwrap(), log };
        let come_up = within_a_minute(|| {
            if let Some(status) = process.child.try_wait().unwrap() {
                panic!("{command:?} ended with {status}: {}", process.log());
            }
            usable()
        });
        assert!(come_up, "{command:?} has not come up in a minute: {}", process.log());
        process
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends it by a signal that it heeds, and waits until it has.
    pub(crate) fn end(&mut self, signal: &str) {
        run(Command::new("kill").args([&format!("-{signal}"), &self.child.id().to_string()]));
        let ended = within_a_minute(|| self.child.try_wait().unwrap().is_some());
        assert!(ended, "it has not ended a minute after SIG{signal}: {}", self.log());
    }

    /// Ends it and everything that it started, without warning, as a power cut would.
    pub(crate) fn kill(&mut self) {
        let mut all = vec![self.child.id()];
        all.extend(children(self.child.id()));
        // Some may have ended by themselves in the meantime.
        let _status =
            Command::new("kill").arg("-KILL").args(all.iter().map(ToString::to_string)).stderr(Stdio::null()).status();
        let _waited = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

fn children(parent: u32) -> Vec<u32> {
    let processes =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let child = |id: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // After the name, which may hold anything: the state, then the parent.
        let after = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        after == Some(parent)
    };
    processes.filter(child).collect()
}

/// A PostgreSQL of a test's own, that waits for its disk as a real one does.
pub(crate) struct Cluster {
    postmaster: Process,
    _kept: KeptPort,
    pub port: u16,
    folder: tempfile::TempDir,
}

/// The name by which the primary knows its standby.
const STANDBY: &str = "standby";

impl Cluster {
    pub(crate) fn primary() -> Self {
        Self::primary_in(folder_for_postgres())
    }

    /// The same in a folder of the test's own, below which `data` may lead elsewhere.
    pub(crate) fn primary_in(folder: tempfile::TempDir) -> Self {
        let data = folder.path().join("data");
        run(postgres_program("initdb").args(["-U", "postgres", "--auth=trust", "--encoding=UTF8", "-D"]).arg(&data));
        let file = |name: &str| data.join(name);
        certify(&["localhost"], &file("server.crt"), &file("server.key"));
        let ours = shipped("postgresql/unionhall.conf").replace("/etc/postgresql/tls/", "");
        std::fs::write(file("unionhall.conf"), ours).unwrap();
        let all = std::fs::read_to_string(file("postgresql.conf")).unwrap();
        let here = "include 'unionhall.conf'\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\n";
        std::fs::write(file("postgresql.conf"), all + here).unwrap();
        give_to_postgres(&["server.crt", "server.key", "unionhall.conf"].map(file));
        Self::start(folder)
    }

    /// Another that follows this one. From now on, what is committed here is on both disks before it is answered.
    pub(crate) fn standby(&self) -> Self {
        let folder = folder_for_postgres();
        let from = format!("host=127.0.0.1 port={} user=postgres application_name={STANDBY}", self.port);
        let copy = ["--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf", "-d", &from, "-D"];
        run(postgres_program("pg_basebackup").args(copy).arg(folder.path().join("data")));
        let standby = Self::start(folder);
        // Each by itself: neither may be part of a transaction.
        self.ask(&format!("ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'"));
        self.ask("SELECT pg_reload_conf()");
        let follows = format!("SELECT sync_state FROM pg_stat_replication WHERE application_name = '{STANDBY}'");
        let is_followed = within_a_minute(|| self.ask(&follows) == [["sync"]]);
        assert!(is_followed, "the standby has not followed in a minute: {}", standby.postmaster.log());
        standby
    }

    fn start(folder: tempfile::TempDir) -> Self {
        let kept = KeptPort::new();
        Self { postmaster: Self::launch(folder.path(), kept.number), port: kept.number, _kept: kept, folder }
    }

    fn launch(folder: &Path, port: u16) -> Process {
        let mut command = postgres_program("postgres");
        command.arg("-D").arg(folder.join("data")).args(["-p", &port.to_string()]);
        let usable = || ask(&url(port, "postgres"), "SELECT 1").is_ok();
        Process::start(&mut command, folder.join("log"), usable)
    }

    /// Starts it where it was, after it was ended.
    pub(crate) fn start_again(&mut self) {
        self.postmaster = Self::launch(self.folder.path(), self.port);
    }

    pub(crate) fn url(&self, database: &str) -> String {
        url(self.port, database)
    }

    #[track_caller]
    pub(crate) fn ask(&self, sql: &str) -> Vec<Vec<String>> {
        ask(&self.url("postgres"), sql).unwrap()
    }

    pub(crate) fn kill(&mut self) {
        self.postmaster.kill();
    }

    /// Ends it as an operator does who does not wait for anybody's session (a fast shutdown).
    pub(crate) fn stop(&mut self) {
        self.postmaster.end("INT");
    }

    pub(crate) fn promote(&self) {
        assert_eq!(self.ask("SELECT pg_promote()"), [["t"]]);
    }

    /// What it would find wrong with a pg_hba.conf.
    pub(crate) fn faults_in_hba(&self, text: &str) -> Vec<Vec<String>> {
        let [file] = &self.ask("SHOW hba_file")[..] else { panic!("there is one") };
        std::fs::write(&file[0], text).unwrap();
        self.ask("SELECT line_number, error FROM pg_hba_file_rules WHERE error IS NOT NULL")
    }
}

fn url(port: u16, database: &str) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/{database}")
}

/// The names of the shipped files: where people join, and where the API is.
pub(crate) const NAMES: [&str; 2] = ["union.example", "api.union.example"];

/// Writes a new certificate for these names and its key, readable to nobody else; gives the certificate.
pub(crate) fn certify(names: &[&str], certificate: &Path, key: &Path) -> CertificateDer<'static> {
    use std::os::unix::fs::PermissionsExt;
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    std::fs::write(certificate, made.cert.pem()).unwrap();
    std::fs::write(key, made.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).unwrap();
    made.cert.der().clone()
}

#[track_caller]
pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn am_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn as_root(name: &str) -> Command {
    if am_root() {
        return Command::new(name);
    }
    let mut command = Command::new("sudo");
    command.args(["-n", name]);
    command
}

/// The newest version of PostgreSQL that is installed.
pub(crate) fn newest_postgres() -> Option<u32> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    versions.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok()).max()
}

/// A program of the newest PostgreSQL, which refuses to run as root.
pub(crate) fn postgres_program(name: &str) -> Command {
    let newest = newest_postgres().expect("PostgreSQL is installed; ./test.sh installs it");
    let program = format!("/usr/lib/postgresql/{newest}/bin/{name}");
    if !am_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--", &program]).current_dir("/");
    command
}

/// A folder that PostgreSQL's programs may write to.
pub(crate) fn folder_for_postgres() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    give_to_postgres(&[folder.path().to_owned()]);
    folder
}

pub(crate) fn give_to_postgres(paths: &[PathBuf]) {
    if am_root() {
        run(Command::new("chown").arg("postgres:").args(paths));
    }
}

/// A real proxy, set up with the file we ship but for nodes, ports and the certificate.
pub(crate) struct Proxy {
    process: Process,
    address: SocketAddr,
    redirect: u16,
    _kept: [KeptPort; 2],
    trusted: CertificateDer<'static>,
    folder: tempfile::TempDir,
}

impl Proxy {
    pub(crate) fn nginx(nodes: &[&Server]) -> Self {
        Self::start(|folder, https, http| {
            write_site(folder, nodes, https, http);
            std::fs::write(folder.join("nginx.conf"), shell(folder, https)).unwrap();
            let command = || {
                let mut command = Command::new(program("nginx"));
                command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
                command
            };
            let checked = command().arg("-t").output().unwrap();
            let said = String::from_utf8_lossy(&checked.stderr);
            assert!(checked.status.success() && !said.contains("[warn]"), "{said}");
            command()
        })
    }

    pub(crate) fn caddy(nodes: &[&Server]) -> Self {
        Self::start(|folder, https, http| {
            let file = folder.join("Caddyfile");
            std::fs::write(&file, caddyfile(nodes, https, http)).unwrap();
            let mut command = caddy(folder);
            command.args(["run", "--adapter", "caddyfile", "--config"]).arg(file).current_dir(folder);
            command
        })
    }

    /// Starts what the ports and a folder with a certificate for [`NAMES`] are made into.
    fn start(prepare: impl FnOnce(&Path, u16, u16) -> Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let trusted = certify(&NAMES, &folder.path().join("fullchain.pem"), &folder.path().join("privkey.pem"));
        let kept = [KeptPort::new(), KeptPort::new()];
        let [port, redirect] = [kept[0].number, kept[1].number];
        let mut command = prepare(folder.path(), port, redirect);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let usable = || std::net::TcpStream::connect(address).is_ok();
        let process = Process::start(&mut command, folder.path().join("log"), usable);
        Self { process, address, redirect, trusted, folder, _kept: kept }
    }

    /// Changes nginx's nodes, as an operator does who edits the file and reloads; waits until nobody asks the old ones any more.
    pub(crate) fn point_at(&self, nodes: &[&Server]) {
        write_site(self.folder.path(), nodes, self.address.port(), self.redirect);
        let before = children(self.process.child.id());
        run(Command::new("kill").args(["-HUP", &self.process.child.id().to_string()]));
        let reloaded = within_a_minute(|| {
            let now = children(self.process.child.id());
            !now.is_empty() && !now.iter().any(|worker| before.contains(worker))
        });
        assert!(reloaded, "nginx has not reloaded in a minute: {}", self.process.log());
    }

    /// What it has written so far: nginx's access log and error log, and what it prints, which is all that Caddy writes.
    pub(crate) fn logs(&self) -> [String; 3] {
        ["unionhall.log", "error.log", "log"]
            .map(|name| std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default())
    }

    /// A connection from that address, as a caller of the API would make it: encrypted.
    pub(crate) async fn connect(&self, from: Ipv4Addr) -> Connection {
        self.connect_to(NAMES[1], from).await
    }

    /// A connection to the name, which leads here.
    pub(crate) async fn connect_to(&self, name: &str, from: Ipv4Addr) -> Connection {
        let mut roots = RootCertStore::empty();
        roots.add(self.trusted.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let stream = dial(from, self.address).await;
        let server = ServerName::try_from(name.to_owned()).unwrap();
        Connection::over(TlsConnector::from(Arc::new(config)).connect(server, stream).await.unwrap(), name).await
    }

    /// A connection without encryption, for whoever typed no `https://`.
    pub(crate) async fn connect_plainly(&self, name: &str) -> Connection {
        let stream = dial(Ipv4Addr::LOCALHOST, (Ipv4Addr::LOCALHOST, self.redirect).into()).await;
        Connection::over(stream, name).await
    }
}

async fn dial(from: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

/// Where `./test.sh` puts what it installs for the tests alone.
pub(crate) fn tools() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from).join("tools")
}

pub(crate) fn fetched_path(package: &str, program: &str) -> PathBuf {
    tools().join(format!("{package}/usr/bin/{program}"))
}

pub(crate) fn fetched(package: &str, program: &str) -> Command {
    let path = fetched_path(package, program);
    assert!(path.exists(), "{program} is not there; ./test.sh fetches it");
    Command::new(path)
}

/// Caddy, which keeps what it stores in the folder.
pub(crate) fn caddy(folder: &Path) -> Command {
    let mut command = fetched("caddy", "caddy");
    command.env("HOME", folder).env("XDG_DATA_HOME", folder);
    command
}

/// The shipped file with the nodes, the ports and the certificate of a test. It logs each request, so that a token would be seen.
fn caddyfile(nodes: &[&Server], https: u16, http: u16) -> String {
    let nodes: Vec<_> = nodes.iter().map(|node| node.address.to_string()).collect();
    let here = format!("\tadmin off\n\tdebug\n\thttp_port {http}\n\thttps_port {https}\n");
    let changes = [
        ("10.0.0.11:8080 10.0.0.12:8080 10.0.0.13:8080", nodes.join(" ")),
        ("\n{\n", format!("\n{{\n{here}")),
        (".example {\n", ".example {\n\tbind 127.0.0.1\n\ttls fullchain.pem privkey.pem\n".to_owned()),
    ];
    replaced(shipped("Caddyfile"), &changes)
}

/// A shipped text with what differs here.
pub(crate) fn replaced(text: String, changes: &[(&str, String)]) -> String {
    changes.iter().fold(text, |text, (shipped, here)| {
        assert!(text.contains(shipped), "{shipped} is in the file");
        text.replace(shipped, here)
    })
}

fn write_site(folder: &Path, nodes: &[&Server], https: u16, http: u16) {
    let nodes: Vec<_> = nodes.iter().map(|node| node.address).collect();
    std::fs::write(folder.join("unionhall.conf"), adapted(&nodes, https, http, folder)).unwrap();
}

/// The shipped file with the nodes and the ports of a test. Nothing else differs.
fn adapted(nodes: &[SocketAddr], https: u16, http: u16, folder: &Path) -> String {
    let text = shipped("nginx.conf");
    let mut left = nodes.iter();
    let lines = text.lines().filter_map(|line| match line.trim().split_once("10.0.0.") {
        // As many nodes as there are.
        Some(("server ", rest)) => {
            left.next().map(|node| format!("    server {node} {}", rest.split_once(' ').unwrap().1))
        }
        _ if line.trim().starts_with("listen [::]:") => None,
        _ => Some(line.to_owned()),
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    assert_eq!(left.next(), None, "the file has room for each node");
    let changes = [
        ("listen 443 ", format!("listen 127.0.0.1:{https} ")),
        ("listen 80;", format!("listen 127.0.0.1:{http};")),
        ("/etc/letsencrypt/live/union.example", folder.to_str().unwrap().to_owned()),
        ("/var/log/nginx", folder.to_str().unwrap().to_owned()),
    ];
    replaced(text, &changes)
}

/// What Debian's own nginx.conf is around the shipped file, for a process that lives in one folder.
fn shell(folder: &Path, https: u16) -> String {
    // The workers must be let into the folder of the test.
    let user = if am_root() { "user root;\n" } else { "" };
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("    {name}_temp_path {}/{name};\n", folder.display()))
        .concat();
    // A name that the shipped file does not serve gets no page of it.
    let other = format!("    server {{ listen 127.0.0.1:{https} ssl default_server; ssl_reject_handshake on; }}\n");
    format!(
        "{user}daemon off;\nworker_processes 1;\npid {0}/pid;\nerror_log {0}/error.log;\n\
         events {{ worker_connections 512; }}\nhttp {{\n    access_log off;\n{temporary}{other}    include {0}/unionhall.conf;\n}}\n",
        folder.display()
    )
}
