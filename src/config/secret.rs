//! `--secret`: the installation's secret, if the operator sets it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use super::keyring::Keyring;
use super::{Concealed, read_text};

/// What referral codes and mail tokens are made with.
#[derive(Clone, Args)]
#[command(next_help_heading = "The secret")]
pub struct SecretSettings {
    /// The installation's secret, 32 characters or more; `unionhall secret rotate` changes it.
    ///
    /// Without one, a secret is made at the first start and kept in the data folder, in a file `secret` that only its
    /// owner can read. The service refuses a secret that the records were not made with.
    #[arg(long, env = "UNIONHALL_SECRET", value_name = "SECRET", hide_env_values = true)]
    pub secret: Option<Concealed>,

    /// A file that holds the secret.
    #[arg(long, env = "UNIONHALL_SECRET_FILE", value_name = "FILE", conflicts_with = "secret")]
    pub secret_file: Option<PathBuf>,
}

impl SecretSettings {
    /// The secret that was given, if one was.
    pub fn given(&self) -> anyhow::Result<Option<Keyring>> {
        if let Some(text) = &self.secret {
            return Keyring::parse(text.reveal()).context("UNIONHALL_SECRET").map(Some);
        }
        self.secret_file.as_deref().map(read_secret).transpose()
    }
}

pub fn read_secret(path: &Path) -> anyhow::Result<Keyring> {
    let text = read_text(path).with_context(|| format!("cannot read the secret in {}", path.display()))?;
    Keyring::parse(&text).with_context(|| format!("{}", path.display()))
}
