//! `--data`, `--store`: where the database is.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use super::{Concealed, given_or_in_file};
use crate::private_files::folder_of;
use crate::store::postgres;

/// Where the records are.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Data")]
pub struct StoreSettings {
    /// The folder for everything that the service stores on this machine: the database, the secret, mail written to files.
    ///
    /// The first start makes it. Only its owner can read it.
    #[arg(long, env = "UNIONHALL_DATA", value_name = "FOLDER", default_value = "data")]
    pub data: PathBuf,

    /// The database: `sqlite:` for a file in the data folder, `sqlite:FILE`, or PostgreSQL for many nodes.
    ///
    /// `postgres://USER:PASSWORD@HOST:5432/DATABASE`, as psql takes it, with several hosts if there are standbys:
    /// `postgres://…@a,b/hall?sslmode=verify-full&sslrootcert=ca.pem`. The host that takes writes is used. A password that
    /// leaves this machine needs an `sslmode`.
    // Read by us and not by the parser of the command line, which would repeat a wrong one with its password.
    #[arg(long, env = "UNIONHALL_STORE", value_name = "STORE", default_value = "sqlite:", hide_env_values = true)]
    pub store: Concealed,

    /// The file that holds the store, to keep a password out of flags and variables.
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

/// `sandbox.db` beside `unionhall.db`. Beside another name it is named after that: several may share a folder, and one may be
/// called `sandbox.db` itself.
pub fn sandbox_file(live: &Path) -> PathBuf {
    match live.file_stem().and_then(|stem| stem.to_str()) {
        None | Some("unionhall") => live.with_file_name("sandbox.db"),
        Some(stem) => live.with_file_name(format!("{stem}-sandbox.db")),
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
        let text = given_or_in_file(&self.store, self.store_file.as_deref(), "where the records are")?;
        Records::parse(&text, &self.data).with_context(|| match &self.store_file {
            Some(path) => path.display().to_string(),
            None => "--store or UNIONHALL_STORE".to_owned(),
        })
    }

    /// The folder whose disk the service needs room on.
    pub fn disk_folder(&self) -> PathBuf {
        match self.records() {
            Ok(Records::Sqlite(file)) => folder_of(&file).to_owned(),
            _ => self.data.clone(),
        }
    }

    /// These settings as flags for another command, as a shell takes them; nothing where they are the defaults.
    pub fn as_flags(&self) -> String {
        let mut flags = String::new();
        if self.data != Path::new("data") {
            flags.push_str(&format!(" --data {}", quoted(&self.data.to_string_lossy())));
        }
        match &self.store_file {
            Some(path) => flags.push_str(&format!(" --store-file {}", quoted(&path.to_string_lossy()))),
            None if self.store.reveal().starts_with("postgres") => flags.push_str(" --store \"$UNIONHALL_STORE\""),
            None if self.store.reveal() != "sqlite:" => {
                flags.push_str(&format!(" --store {}", quoted(self.store.reveal())));
            }
            None => {}
        }
        flags
    }
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_is_beside_the_live_records_and_never_the_same_file() {
        for (live, sandbox) in [
            ("data/unionhall.db", "data/sandbox.db"),
            ("/var/hall.db", "/var/hall-sandbox.db"),
            ("sandbox.db", "sandbox-sandbox.db"),
            ("hall", "hall-sandbox.db"),
        ] {
            assert_eq!(sandbox_file(Path::new(live)), Path::new(sandbox));
        }
    }

    #[test]
    fn stores_are_named_without_passwords_and_flags_can_be_pasted() {
        let settings = |data: &str, store: &str| StoreSettings {
            data: data.into(),
            store: store.to_owned().into(),
            store_file: None,
        };
        let place = |data, store| settings(data, store).records().unwrap().to_string();
        assert_eq!(place("data", "sqlite:"), "data/unionhall.db");
        assert_eq!(place("data", "sqlite:/a/b.db"), "/a/b.db");
        assert_eq!(
            place("data", "postgres://user:hunter2@host/hall?sslmode=require"),
            "the database hall at host:5432"
        );
        for bad in ["mysql://user:hunter2@host/db", "postgres://user:hunter2@host/db?sslmode=maybe"] {
            assert!(!format!("{:?}", settings("data", bad).records().unwrap_err()).contains("hunter2"));
        }
        let shown = format!("{:?}", settings("data", "postgres://user:hunter2@host/hall"));
        assert!(!shown.contains("hunter2"), "{shown}");
        let flags = settings("data", "postgres://user:hunter2@host/hall").as_flags();
        assert_eq!(flags, " --store \"$UNIONHALL_STORE\"");
        assert_eq!(settings("data", "sqlite:").as_flags(), "");
        assert_eq!(settings("my data", "sqlite:it's.db").as_flags(), r" --data 'my data' --store 'sqlite:it'\''s.db'");
    }
}
