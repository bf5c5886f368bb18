//! What the operator can set: flags, then `UNIONHALL_*` variables, then defaults.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use ipnet::IpNet;

use crate::domain::catalog::{self, Catalog};
use crate::domain::email::EmailAddress;
use crate::domain::secret::Secret;
use crate::log::Level;
use crate::transport::client::parse_network;

/// Where the records are.
#[derive(Debug, Clone, Args)]
pub struct StoreSettings {
    /// The folder for everything the service keeps: the database and the secret.
    ///
    /// It is made, readable to its owner alone, when the service first starts.
    #[arg(long, env = "UNIONHALL_DATA", value_name = "FOLDER", default_value = "data")]
    pub data: PathBuf,

    /// The database: `sqlite:` for a file in the data folder, or `sqlite:FILE`.
    #[arg(long, env = "UNIONHALL_STORE", value_name = "STORE", default_value = "sqlite:")]
    pub store: StoreAddress,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// `None`: `unionhall.db` in the data folder.
    Sqlite(Option<PathBuf>),
}

impl std::str::FromStr for StoreAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("sqlite:") {
            Some("") => Ok(Self::Sqlite(None)),
            Some(file) => Ok(Self::Sqlite(Some(PathBuf::from(file)))),
            // The address may hold a password, so it is not repeated.
            None => Err("a store is `sqlite:` or `sqlite:FILE`".to_owned()),
        }
    }
}

impl StoreSettings {
    pub fn database(&self) -> PathBuf {
        let StoreAddress::Sqlite(file) = &self.store;
        file.clone().unwrap_or_else(|| self.data.join("unionhall.db"))
    }
}

/// What the union says of itself; enough to print its documents.
#[derive(Debug, Clone, Args)]
pub struct UnionSettings {
    /// The union's name, in documents and mails.
    #[arg(long, env = "UNIONHALL_NAME", value_name = "NAME", default_value = "Consumer Union")]
    pub name: String,

    /// The address to listen on. Port 0 takes any free port.
    #[arg(long, env = "UNIONHALL_LISTEN", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// Where callers reach this API, as every document says it [default: http://LISTEN, https:// with a certificate].
    #[arg(long, env = "UNIONHALL_BASE_URL", value_name = "URL", value_parser = web_address)]
    pub base_url: Option<String>,

    /// Where people join: the site that referral links lead to [default: BASE_URL].
    #[arg(long, env = "UNIONHALL_JOIN_SITE", value_name = "URL", value_parser = web_address)]
    pub join_site: Option<String>,

    /// Whom partners write to for a key; shown in the documents.
    #[arg(long, env = "UNIONHALL_CONTACT_EMAIL", value_name = "EMAIL", value_parser = contact)]
    pub contact_email: Option<String>,

    /// The catalog: a TOML file with the savings of each category and the referral terms.
    ///
    /// Without one a built-in sample is served, whose figures are made up. `catalog.sample.toml` shows the form.
    #[arg(long, env = "UNIONHALL_CATALOG", value_name = "FILE")]
    pub catalog: Option<PathBuf>,

    /// Requests a minute to public data, for each address, or for each key that is sent.
    #[arg(long, env = "UNIONHALL_PUBLIC_PER_MINUTE", value_name = "N", default_value_t = 60, value_parser = per_minute())]
    pub public_per_minute: u32,

    /// Agent actions a minute for keys that were issued without a figure of their own.
    #[arg(long, env = "UNIONHALL_KEY_PER_MINUTE", value_name = "N", default_value_t = 30, value_parser = per_minute())]
    pub key_per_minute: u32,
}

impl UnionSettings {
    pub fn base_url(&self, listening: SocketAddr, scheme: &str) -> String {
        self.base_url.clone().unwrap_or_else(|| format!("{scheme}://{listening}"))
    }

    pub fn catalog(&self) -> anyhow::Result<Catalog> {
        let Some(path) = &self.catalog else { return Ok(Catalog::parse(catalog::SAMPLE)?) };
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read the catalog {}", path.display()))?;
        Catalog::parse(&text).with_context(|| format!("the catalog {} has a mistake", path.display()))
    }
}

/// What serving needs besides.
#[derive(Debug, Clone, Args)]
pub struct ServeSettings {
    #[command(flatten)]
    pub store: StoreSettings,

    #[command(flatten)]
    pub union: UnionSettings,

    /// What happens to mail: `hold` keeps it in the outbox; `none` switches sign-ups off, and agent actions then answer
    /// `backend_not_configured`.
    #[arg(long, env = "UNIONHALL_MAIL", value_name = "MAIL", default_value = "hold")]
    pub mail: Mail,

    /// The installation's secret, 32 characters or more; referral codes come from it, so it must never change.
    ///
    /// Without one, a secret is made at the first start and kept in the data folder, in a file `secret` that only its
    /// owner can read. Another secret than the one the records were made with is refused.
    #[arg(long, env = "UNIONHALL_SECRET", value_name = "SECRET", hide_env_values = true)]
    pub secret: Option<String>,

    /// A file that holds the secret.
    #[arg(long, env = "UNIONHALL_SECRET_FILE", value_name = "FILE", conflicts_with = "secret")]
    pub secret_file: Option<PathBuf>,

    /// The certificate to serve HTTPS with, in PEM, the server's own first. Read again on SIGHUP, with its key.
    #[arg(long, env = "UNIONHALL_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The certificate's private key, in PEM.
    #[arg(long, env = "UNIONHALL_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Proxies whose X-Forwarded-For is believed: addresses or networks, with commas between them.
    ///
    /// The client is the right-most hop that is none of these. From anyone else the header is ignored.
    #[arg(
        long,
        env = "UNIONHALL_TRUSTED_PROXIES",
        value_name = "NETWORKS",
        value_delimiter = ',',
        value_parser = parse_network
    )]
    pub trusted_proxies: Vec<IpNet>,

    /// What goes to the log on standard error. No level ever shows an e-mail address, a key or a token.
    #[arg(long, env = "UNIONHALL_LOG", value_name = "LEVEL", default_value = "requests")]
    pub log: Level,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mail {
    /// Mail waits in the outbox.
    Hold,
    /// No mail and no sign-ups.
    None,
}

impl ServeSettings {
    /// The secret that was given, if one was.
    pub fn given_secret(&self) -> anyhow::Result<Option<Secret>> {
        if let Some(text) = &self.secret {
            return Ok(Some(Secret::new(text).context("UNIONHALL_SECRET")?));
        }
        let Some(path) = &self.secret_file else { return Ok(None) };
        read_secret(path).map(Some)
    }
}

pub fn read_secret(path: &Path) -> anyhow::Result<Secret> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read the secret in {}", path.display()))?;
    Secret::new(&text).with_context(|| format!("{}", path.display()))
}

/// Makes a folder that only its owner can look into, if it is not there.
pub fn make_private_folder(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("cannot make the data folder {}; give another with --data", path.display()))
}

/// Writes a file that only its owner can read, whole or not at all. Fails if it is there.
pub fn write_private_file(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let write = || {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

fn per_minute() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=1_000_000)
}

fn web_address(text: &str) -> Result<String, String> {
    let bare = text.trim_end_matches('/');
    let uri: hyper::Uri = bare.parse().map_err(|_| wrong_address(text))?;
    let web = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty());
    if web && uri.query().is_none() && !bare.contains('#') { Ok(bare.to_owned()) } else { Err(wrong_address(text)) }
}

fn wrong_address(text: &str) -> String {
    format!("\"{text}\" is not a web address; write https://api.example.com, with a path if there is one")
}

fn contact(text: &str) -> Result<String, String> {
    EmailAddress::parse(text).map(|email| email.as_typed().to_owned()).map_err(|why| why.to_string())
}

/// Makes the database's file, empty, if it is not there: SQLite would let others read it.
pub fn make_database_file(path: &Path) -> anyhow::Result<()> {
    if path.is_dir() {
        bail!("{} is a folder; the database is a file", path.display());
    }
    if path.exists() { Ok(()) } else { write_private_file(path, "") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_addresses_lose_their_last_slash_and_nothing_else() {
        assert_eq!(web_address("https://api.example.com/").as_deref(), Ok("https://api.example.com"));
        assert_eq!(web_address("http://[::1]:8080/union").as_deref(), Ok("http://[::1]:8080/union"));
        for bad in ["", "api.example.com", "ftp://example.com", "https://", "https://e.com/?a=b", "https://e.com/#x"] {
            assert!(web_address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn stores_are_sqlite_and_passwords_are_not_repeated() {
        assert_eq!("sqlite:".parse(), Ok(StoreAddress::Sqlite(None)));
        assert_eq!("sqlite:/a/b.db".parse(), Ok(StoreAddress::Sqlite(Some("/a/b.db".into()))));
        let error = "mysql://user:hunter2@host/db".parse::<StoreAddress>().unwrap_err();
        assert!(!error.contains("hunter2"));
    }
}
