//! What the operator can set: flags, then `UNIONHALL_*` variables, then defaults.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use ipnet::IpNet;
use lettre::Address;
use lettre::message::Mailbox;

use crate::domain::catalog::{self, Catalog};
use crate::domain::email::EmailAddress;
use crate::domain::secret::Secret;
use crate::limiter::redis::Target;
use crate::log::Level;
use crate::mail::smtp::Smtp;
use crate::store::postgres;
use crate::transport::client::parse_network;

/// Where the records are.
#[derive(Debug, Clone, Args)]
pub struct StoreSettings {
    /// The folder for everything the service keeps on this machine: the database, the secret, mail written to files.
    ///
    /// It is made, readable to its owner alone, when the service first starts.
    #[arg(long, env = "UNIONHALL_DATA", value_name = "FOLDER", default_value = "data")]
    pub data: PathBuf,

    /// The database: `sqlite:` for a file in the data folder, `sqlite:FILE`, or PostgreSQL for many nodes.
    ///
    /// `postgres://USER:PASSWORD@HOST:5432/DATABASE`, as psql takes it, with several hosts if there are standbys:
    /// `postgres://…@a,b/hall?sslmode=verify-full&sslrootcert=ca.pem`. Whichever host takes writes is used.
    // Read by us and not by the parser of the command line, which would repeat a wrong one with its password.
    #[arg(long, env = "UNIONHALL_STORE", value_name = "STORE", default_value = "sqlite:", hide_env_values = true)]
    pub store: String,

    /// A file that holds the above, for a password that should stand nowhere else.
    #[arg(long, env = "UNIONHALL_STORE_FILE", value_name = "FILE", conflicts_with = "store")]
    pub store_file: Option<PathBuf>,
}

/// Where the records are kept.
#[derive(Debug, Clone)]
pub enum Records {
    /// In this file.
    Sqlite(PathBuf),
    Postgres(Box<postgres::Address>),
}

impl Records {
    /// Reads `sqlite:`, `sqlite:FILE` or `postgres://…`. The address may hold a password, so no error repeats it.
    pub fn parse(text: &str, data: &Path) -> anyhow::Result<Self> {
        let text = text.trim();
        match text.strip_prefix("sqlite:") {
            Some("") => Ok(Self::Sqlite(data.join("unionhall.db"))),
            Some(file) => Ok(Self::Sqlite(PathBuf::from(file))),
            None if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
                Ok(Self::Postgres(Box::new(postgres::Address::parse(text)?)))
            }
            None => {
                bail!("the store is not understood; write `sqlite:`, `sqlite:FILE` or `postgres://USER@HOST/DATABASE`")
            }
        }
    }
}

impl fmt::Display for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => write!(f, "{}", file.display()),
            Self::Postgres(address) => write!(f, "{address}"),
        }
    }
}

impl StoreSettings {
    /// Where the records are kept, as it was set.
    pub fn records(&self) -> anyhow::Result<Records> {
        let Some(path) = &self.store_file else {
            return Records::parse(&self.store, &self.data).context("--store or UNIONHALL_STORE");
        };
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read where the records are from {}; mend --store-file", path.display()))?;
        Records::parse(&text, &self.data).with_context(|| path.display().to_string())
    }

    /// These settings as flags for another command, as a shell takes them; nothing where they are the defaults.
    pub fn as_flags(&self) -> String {
        let mut flags = String::new();
        if self.data != Path::new("data") {
            flags.push_str(&format!(" --data {}", quoted(&self.data.to_string_lossy())));
        }
        match &self.store_file {
            Some(path) => flags.push_str(&format!(" --store-file {}", quoted(&path.to_string_lossy()))),
            None if self.store.starts_with("postgres") => flags.push_str(" --store \"$UNIONHALL_STORE\""),
            None if self.store != "sqlite:" => flags.push_str(&format!(" --store {}", quoted(&self.store))),
            None => {}
        }
        flags
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// What the union says of itself; enough to print its documents.
#[derive(Debug, Clone, Args)]
pub struct UnionSettings {
    /// The union's name, in documents and mails.
    #[arg(long, env = "UNIONHALL_NAME", value_name = "NAME", default_value = "Consumer Union", value_parser = one_line)]
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

    /// Where letters reach the union; stands at the foot of its mails and pages.
    #[arg(long, env = "UNIONHALL_POSTAL_ADDRESS", value_name = "ADDRESS", value_parser = one_line)]
    pub postal_address: Option<String>,

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

/// What referral codes and mail tokens are made with.
#[derive(Debug, Clone, Args)]
pub struct SecretSettings {
    /// The installation's secret, 32 characters or more; referral codes come from it, so it must never change.
    ///
    /// Without one, a secret is made at the first start and kept in the data folder, in a file `secret` that only its
    /// owner can read. Another secret than the one the records were made with is refused.
    #[arg(long, env = "UNIONHALL_SECRET", value_name = "SECRET", hide_env_values = true)]
    pub secret: Option<String>,

    /// A file that holds the secret.
    #[arg(long, env = "UNIONHALL_SECRET_FILE", value_name = "FILE", conflicts_with = "secret")]
    pub secret_file: Option<PathBuf>,
}

impl SecretSettings {
    /// The secret that was given, if one was.
    pub fn given(&self) -> anyhow::Result<Option<Secret>> {
        if let Some(text) = &self.secret {
            return Ok(Some(Secret::new(text).context("UNIONHALL_SECRET")?));
        }
        let Some(path) = &self.secret_file else { return Ok(None) };
        read_secret(path).map(Some)
    }
}

/// What happens to mail.
#[derive(Debug, Clone, Args)]
pub struct MailSettings {
    /// How mail leaves.
    ///
    /// `mailbox:` writes each message into DATA/mailbox, for development; /dev/mailbox shows them on this machine alone.
    /// `smtp://USER:PASSWORD@HOST:587` sends with STARTTLS, `smtps://USER:PASSWORD@HOST:465` with TLS from the start,
    /// `smtp://HOST:25?tls=none` in the clear. `hold` keeps mail in the outbox for another node to send. `none` switches
    /// sign-ups off: agent actions then answer `backend_not_configured`.
    #[arg(long, env = "UNIONHALL_MAIL", value_name = "MAIL", default_value = "mailbox:", hide_env_values = true)]
    pub mail: String,

    /// A file that holds the above, for a password that should stand nowhere else.
    #[arg(long, env = "UNIONHALL_MAIL_FILE", value_name = "FILE", conflicts_with = "mail")]
    pub mail_file: Option<PathBuf>,

    /// Whom mail comes from: `Consumer Union <hello@union.example>` [default: no-reply at the host of the join site].
    #[arg(long, env = "UNIONHALL_MAIL_FROM", value_name = "SENDER")]
    pub mail_from: Option<Mailbox>,
}

/// How mail leaves.
#[derive(Debug, Clone)]
pub enum Mail {
    Mailbox,
    Smtp(Smtp),
    Hold,
    None,
}

impl MailSettings {
    /// How mail leaves, as it was set.
    pub fn way(&self) -> anyhow::Result<Mail> {
        let text = match &self.mail_file {
            None => self.mail.clone(),
            Some(path) => std::fs::read_to_string(path)
                .with_context(|| format!("cannot read how mail leaves from {}; mend --mail-file", path.display()))?,
        };
        match text.trim() {
            "mailbox:" => Ok(Mail::Mailbox),
            "hold" => Ok(Mail::Hold),
            "none" => Ok(Mail::None),
            url if url.starts_with("smtp") => Ok(Mail::Smtp(Smtp::new(url)?)),
            _ => {
                bail!("how mail leaves is not understood; write mailbox:, smtp://…, smtps://…, hold or none in --mail")
            }
        }
    }

    /// Whom mail comes from, for a union that is found at `join_site`.
    pub fn sender(&self, union: &str, join_site: &str) -> anyhow::Result<Mailbox> {
        if let Some(sender) = &self.mail_from {
            return Ok(sender.clone());
        }
        let uri: hyper::Uri = join_site.parse().context("the join site is no web address")?;
        let host = uri.host().unwrap_or("localhost");
        // An address of this machine is no domain; mail from there stays here.
        let domain = if host.parse::<std::net::IpAddr>().is_ok() || host.starts_with('[') { "localhost" } else { host };
        let address = Address::new("no-reply", domain).with_context(|| {
            format!("no sender can be made for {join_site}; give one with --mail-from or UNIONHALL_MAIL_FROM")
        })?;
        Ok(Mailbox::new(Some(union.to_owned()), address))
    }
}

/// Where requests are counted against their limits.
#[derive(Debug, Clone, Args)]
pub struct LimitSettings {
    /// Where requests are counted against their limits.
    ///
    /// `memory:` counts in this process. `redis://USER:PASSWORD@HOST:6379/0`, or `rediss://` for TLS, counts together
    /// with every other node that is given the same; Redis 5 or later, or Valkey. Several services can use one Redis,
    /// each with its own `?prefix=NAME:` at the end; without one it is `unionhall:`. While Redis cannot be reached, or
    /// answers later than 50 ms, each node counts alone; the log, /readyz and the metrics say so.
    // Read by us and not by the parser of the command line, which would repeat a wrong one with its password.
    #[arg(long, env = "UNIONHALL_LIMITS", value_name = "LIMITS", default_value = "memory:", hide_env_values = true)]
    pub limits: String,

    /// A file that holds the above, for a password that should stand nowhere else.
    #[arg(long, env = "UNIONHALL_LIMITS_FILE", value_name = "FILE", conflicts_with = "limits")]
    pub limits_file: Option<PathBuf>,
}

/// Where requests are counted.
#[derive(Debug, Clone)]
pub enum Limits {
    Memory,
    Redis(Box<Target>),
}

impl LimitSettings {
    pub fn place(&self) -> anyhow::Result<Limits> {
        let text = match &self.limits_file {
            None => self.limits.clone(),
            Some(path) => std::fs::read_to_string(path).with_context(|| {
                format!("cannot read where requests are counted from {}; mend --limits-file", path.display())
            })?,
        };
        match text.trim() {
            "memory:" => Ok(Limits::Memory),
            url if url.starts_with("redis") => {
                Target::parse(url).map(|target| Limits::Redis(Box::new(target))).context("--limits or UNIONHALL_LIMITS")
            }
            _ => bail!(
                "where requests are counted is not understood; write memory:, redis://… or rediss://… in --limits"
            ),
        }
    }
}

/// What serving needs besides.
#[derive(Debug, Clone, Args)]
pub struct ServeSettings {
    #[command(flatten)]
    pub store: StoreSettings,

    #[command(flatten)]
    pub union: UnionSettings,

    #[command(flatten)]
    pub secret: SecretSettings,

    #[command(flatten)]
    pub mail: MailSettings,

    #[command(flatten)]
    pub limits: LimitSettings,

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

    /// Web pages that may speak MCP to this server besides our own: origins, with commas between them. Programs need none.
    #[arg(long, env = "UNIONHALL_MCP_ORIGINS", value_name = "ORIGINS", value_delimiter = ',', value_parser = web_address)]
    pub mcp_origins: Vec<String>,

    /// What goes to the log on standard error. No level ever shows an e-mail address, a key or a token.
    #[arg(long, env = "UNIONHALL_LOG", value_name = "LEVEL", default_value = "requests")]
    pub log: Level,

    /// Where to answer `GET /metrics` in the text format of Prometheus, for nobody but your own monitoring [default: nowhere].
    #[arg(long, env = "UNIONHALL_METRICS_LISTEN", value_name = "ADDRESS:PORT")]
    pub metrics_listen: Option<SocketAddr>,
}

pub fn read_secret(path: &Path) -> anyhow::Result<Secret> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read the secret in {}", path.display()))?;
    Secret::new(&text).with_context(|| format!("{}", path.display()))
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

fn one_line(text: &str) -> Result<String, String> {
    let text = text.trim();
    let sane = !text.is_empty() && text.chars().count() <= 200 && !text.chars().any(char::is_control);
    if sane { Ok(text.to_owned()) } else { Err("write 1 to 200 characters on one line".to_owned()) }
}

fn contact(text: &str) -> Result<String, String> {
    let email = EmailAddress::parse(text).map_err(|_| "write an address such as keys@union.example".to_owned())?;
    Ok(email.as_typed().to_owned())
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
    fn stores_are_named_without_passwords_and_flags_can_be_pasted() {
        let settings =
            |data: &str, store: &str| StoreSettings { data: data.into(), store: store.to_owned(), store_file: None };
        let place = |data, store| settings(data, store).records().unwrap().to_string();
        assert_eq!(place("data", "sqlite:"), "data/unionhall.db");
        assert_eq!(place("data", "sqlite:/a/b.db"), "/a/b.db");
        assert_eq!(place("data", "postgres://user:hunter2@host/hall"), "the database hall at host:5432");
        for bad in ["mysql://user:hunter2@host/db", "postgres://user:hunter2@host/db?sslmode=maybe"] {
            assert!(!format!("{:?}", settings("data", bad).records().unwrap_err()).contains("hunter2"));
        }
        let flags = settings("data", "postgres://user:hunter2@host/hall").as_flags();
        assert_eq!(flags, " --store \"$UNIONHALL_STORE\"");
        assert_eq!(settings("data", "sqlite:").as_flags(), "");
        assert_eq!(settings("my data", "sqlite:it's.db").as_flags(), r" --data 'my data' --store 'sqlite:it'\''s.db'");
    }
}
