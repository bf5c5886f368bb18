//! The URL of the database, read as libpq reads it.
//!
//! `tokio-postgres` knows most of it. What it leaves to us is here: several hosts that are each given their time, TLS up
//! to `verify-full` with certificates from files, and time-outs that are there without being asked for.

use std::fmt;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, SslNegotiation};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls::{self, BadOption, Files, Trust};
use crate::loopback::is_loopback;

/// How long one host may take until a connection to it can be used.
const POSTGRES_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How long sent bytes may stay unconfirmed before a connection counts as lost.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(5);

/// When a silent connection is asked whether it is still there, how often, and how many silences end it.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(5), 3);

/// What is wrong with a URL. It may hold a password, so no message repeats it.
#[derive(Debug, thiserror::Error)]
pub enum BadAddress {
    #[error(
        "the address of the PostgreSQL database is not understood ({0}); write postgres://USER:PASSWORD@HOST/DATABASE"
    )]
    Url(String),
    #[error(transparent)]
    Option(#[from] BadOption),
}

/// Where the database is and how it is reached.
#[derive(Clone)]
pub struct Address {
    /// One for each host, in the order given.
    pub(super) hosts: Vec<Config>,
    pub(super) connect_timeout: Duration,
    pub(super) tls: MakeRustlsConnect,
    /// The sandbox's schema; none for whichever the URL and the role lead to.
    pub(super) schema: Option<String>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl fmt::Display for Address {
    /// The database and its hosts, without user or password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = self.hosts.first().and_then(|host| host.get_dbname()).unwrap_or("postgres");
        let hosts: Vec<_> = self.hosts.iter().map(place).collect();
        if let Some(schema) = &self.schema {
            write!(f, "the schema {schema} of ")?;
        }
        write!(f, "the database {database} at {}", hosts.join(" or "))
    }
}

/// A host as it is named to the operator.
pub(super) fn place(host: &Config) -> String {
    let port = host.get_ports().first().copied().unwrap_or(5432);
    match (host.get_hosts().first(), host.get_hostaddrs().first()) {
        (Some(Host::Tcp(name)), _) => format!("{name}:{port}"),
        (Some(Host::Unix(path)), _) => path.display().to_string(),
        (None, Some(address)) => format!("{address}:{port}"),
        (None, None) => format!("port {port}"),
    }
}

/// The name of a schema as SQL takes it, whatever is in it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn leaves(config: &Config) -> bool {
    let names = config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(name) if !is_loopback(&bracketed(name))));
    names || config.get_hostaddrs().iter().any(|address| !address.is_loopback())
}

/// A host as a URL has it.
fn bracketed(name: &str) -> String {
    if name.contains(':') { format!("[{name}]") } else { name.to_owned() }
}

impl Address {
    /// Whether a host of it is another machine.
    pub fn leaves_this_machine(&self) -> bool {
        self.hosts.iter().any(leaves)
    }

    /// The same database, in that schema alone.
    pub(super) fn in_schema(&self, schema: String) -> Self {
        Self { schema: Some(schema), ..self.clone() }
    }

    pub fn parse(url: &str) -> Result<Self, BadAddress> {
        let (front, query) = url.trim().split_once('?').unwrap_or((url.trim(), ""));
        let mut ours = Ours::default();
        let theirs: Vec<_> = query.split('&').filter(|pair| !pair.is_empty() && !ours.takes(pair)).collect();
        let rest = if theirs.is_empty() { front.to_owned() } else { format!("{front}?{}", theirs.join("&")) };
        let config: Config = rest.parse().map_err(|error: tokio_postgres::Error| BadAddress::Url(reason(&error)))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(BadAddress::Url("it names no host".to_owned()));
        }
        let odd = |host: &Host| matches!(host, Host::Tcp(name) if name.contains(['@', '/', ' ', '#']));
        if config.get_hosts().iter().any(odd) {
            return Err(BadAddress::Url(
                "its host is none: in a password write @ as %40, / as %2F, # as %23".to_owned(),
            ));
        }
        let (mode, trust) = ours.ssl_mode()?;
        if ours.ssl_mode.is_none() && mode == SslMode::Prefer && config.get_password().is_some() && leaves(&config) {
            return Err(wrong(
                "sslmode",
                "a password would leave this machine, perhaps without TLS",
                "write sslmode=require, or better verify-full; if you mean it, sslmode=prefer or disable",
            ));
        }
        let direct = config.get_ssl_negotiation() == SslNegotiation::Direct;
        let tls = tls::connector(trust, &ours.files, direct)?;
        let seconds = number("connect_timeout", ours.connect_timeout.as_deref(), "write it in seconds")?;
        let connect_timeout =
            seconds.filter(|seconds| *seconds > 0).map_or(POSTGRES_CONNECT_TIMEOUT, Duration::from_secs);
        let millis = number("tcp_user_timeout", ours.tcp_user_timeout.as_deref(), "write it in milliseconds")?;
        let user_timeout = millis.map_or(TCP_USER_TIMEOUT, Duration::from_millis);
        ours.check_target()?;
        let hosts = (0..config.get_hosts().len().max(config.get_hostaddrs().len()))
            .map(|index| one_host(&config, index, mode, connect_timeout, user_timeout))
            .collect();
        Ok(Self { hosts, connect_timeout, tls, schema: None })
    }
}

/// The parts of the query that we read ourselves.
#[derive(Default)]
struct Ours {
    ssl_mode: Option<String>,
    files: Files,
    connect_timeout: Option<String>,
    tcp_user_timeout: Option<String>,
    target: Option<String>,
}

impl Ours {
    /// Keeps a `name=value` that is ours; says whether it was.
    fn takes(&mut self, pair: &str) -> bool {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let place = match name {
            "sslmode" => &mut self.ssl_mode,
            "sslrootcert" => &mut self.files.root,
            "sslcert" => &mut self.files.certificate,
            "sslkey" => &mut self.files.key,
            "connect_timeout" => &mut self.connect_timeout,
            "tcp_user_timeout" => &mut self.tcp_user_timeout,
            "target_session_attrs" => &mut self.target,
            _ => return false,
        };
        *place = Some(unescaped(value));
        true
    }

    /// What is asked of the driver, and what of the certificate.
    fn ssl_mode(&self) -> Result<(SslMode, Trust), BadAddress> {
        // libpq checks the chain whenever it is given somebody to trust, even with `require`.
        let unless_given = if self.files.root.is_some() { Trust::Chain } else { Trust::Anyone };
        Ok(match self.ssl_mode.as_deref() {
            Some("disable") => (SslMode::Disable, Trust::Anyone),
            None if self.files.root.as_deref() == Some("system") => (SslMode::Require, Trust::Name),
            // Where libpq would first try without TLS, we try with it: both reach the same servers.
            Some("allow" | "prefer") | None => (SslMode::Prefer, unless_given),
            Some("require") => (SslMode::Require, unless_given),
            Some("verify-ca") => (SslMode::Require, Trust::Chain),
            Some("verify-full") => (SslMode::Require, Trust::Name),
            Some(_) => {
                let known = "write disable, allow, prefer, require, verify-ca or verify-full";
                return Err(wrong("sslmode", "there is no such mode", known));
            }
        })
    }

    /// Every node writes, so whatever else is asked for, only a host that takes writes will do.
    fn check_target(&self) -> Result<(), BadAddress> {
        match self.target.as_deref() {
            None | Some("any" | "read-write" | "primary") => Ok(()),
            Some(_) => {
                let remedy = "leave it out, or write read-write: the first host that takes writes is used";
                Err(wrong("target_session_attrs", "the service has to write", remedy))
            }
        }
    }
}

fn wrong(option: &'static str, problem: &str, remedy: &'static str) -> BadAddress {
    BadOption { option, problem: problem.to_owned(), remedy }.into()
}

fn number(option: &'static str, text: Option<&str>, remedy: &'static str) -> Result<Option<u64>, BadAddress> {
    text.map(|text| text.parse().map_err(|_| wrong(option, "it is not a number", remedy))).transpose()
}

/// The text behind `%20` and its like. libpq leaves a plus as it is, and so do we.
fn unescaped(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn reason(error: &tokio_postgres::Error) -> String {
    use std::error::Error;
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// The driver gives all hosts one time-out and then only the time to connect; so each becomes an address of its own.
fn one_host(all: &Config, index: usize, mode: SslMode, connect_timeout: Duration, user_timeout: Duration) -> Config {
    let mut one = Config::new();
    match all.get_hosts().get(index) {
        Some(Host::Tcp(name)) => one.host(name),
        Some(Host::Unix(path)) => one.host_path(path),
        None => &mut one,
    };
    if let Some(address) = all.get_hostaddrs().get(index) {
        one.hostaddr(*address);
    }
    let ports = all.get_ports();
    one.port(ports.get(index).or(ports.first()).copied().unwrap_or(5432));
    if let Some(user) = all.get_user() {
        one.user(user);
    }
    if let Some(password) = all.get_password() {
        one.password(password);
    }
    if let Some(database) = all.get_dbname() {
        one.dbname(database);
    }
    if let Some(options) = all.get_options() {
        one.options(options);
    }
    let (idle, interval, retries) = KEEPALIVE;
    one.application_name(all.get_application_name().unwrap_or("unionhall"))
        .ssl_mode(mode)
        .ssl_negotiation(all.get_ssl_negotiation())
        .channel_binding(all.get_channel_binding())
        .connect_timeout(connect_timeout)
        .keepalives(all.get_keepalives())
        .keepalives_idle(idle)
        .keepalives_interval(all.get_keepalives_interval().unwrap_or(interval))
        .keepalives_retries(all.get_keepalives_retries().unwrap_or(retries));
    if !user_timeout.is_zero() {
        one.tcp_user_timeout(user_timeout);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_taken_one_by_one_and_no_password_is_shown() {
        let address = Address::parse(
            "postgres://union:hunter2@a:6001,b/hall?sslmode=prefer&target_session_attrs=read-write&connect_timeout=7&application_name=x",
        );
        let address = address.unwrap();
        assert_eq!(address.to_string(), "the database hall at a:6001 or b:5432");
        assert!(!format!("{address:?}").contains("hunter2"));
        assert_eq!(address.connect_timeout, Duration::from_secs(7));
        for host in &address.hosts {
            assert_eq!(host.get_password(), Some(&b"hunter2"[..]));
            assert_eq!(host.get_application_name(), Some("x"));
            assert_eq!(host.get_ssl_mode(), SslMode::Prefer);
            assert_eq!(host.get_tcp_user_timeout(), Some(&TCP_USER_TIMEOUT));
        }
        let one = Address::parse("postgresql://h/d?tcp_user_timeout=1500&sslmode=disable").unwrap();
        assert_eq!(one.hosts[0].get_tcp_user_timeout(), Some(&Duration::from_millis(1500)), "milliseconds, as libpq");
        assert_eq!((one.hosts[0].get_ssl_mode(), one.connect_timeout), (SslMode::Disable, POSTGRES_CONNECT_TIMEOUT));
    }

    #[test]
    fn the_names_of_files_are_taken_whole() {
        let mut ours = Ours::default();
        assert!(ours.takes("sslrootcert=/a=b%20c+d.pem"));
        assert_eq!(ours.files.root.as_deref(), Some("/a=b c+d.pem"));
    }

    #[test]
    fn mistakes_are_named_without_the_url() {
        for (url, message) in [
            ("postgres://u:hunter2@h/d?sslmode=on", "sslmode"),
            ("postgres://u:hunter2@h/d?sslmode=verify-full&sslrootcert=/nowhere.pem", "/nowhere.pem"),
            ("postgres://u:hunter2@h/d?sslmode=require&sslcert=/nowhere.pem", "sslkey"),
            ("postgres://u:hunter2@h/d?sslmode=require&sslrootcert=system", "verify-full"),
            ("postgres://u:hunter2@h/d", "would leave this machine"),
            ("postgres://u:hunter2@127.0.0.1,h/d", "would leave this machine"),
            ("postgres://u:hunter2@127.0.0.1/d?target_session_attrs=standby", "has to write"),
            ("postgres://u:hunter2@[::1]/d?connect_timeout=soon", "in seconds"),
            ("postgres://u:hunter2@localhost/d?tcp_user_timeout=soon", "in milliseconds"),
            ("postgres://u:hunter2@h:port/d", "port"),
            ("postgres://u:hunter2@/d?colour=red", "colour"),
            ("postgres:///d", "no host"),
            ("postgres://u:p@hunter2@h/d", "write @ as %40"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(message) && !error.contains("hunter2"), "{url}: {error}");
        }
    }
}
