//! `--limits`: where rate limits are counted, in memory or in Redis.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use super::{Concealed, given_or_in_file};
use crate::limiter::redis::Target;

/// Where requests are counted against their limits.
#[derive(Clone, Args)]
#[command(next_help_heading = "Rate limits")]
pub struct LimitSettings {
    /// Where requests are counted against their limits.
    ///
    /// `memory:` counts in this process. `redis://USER:PASSWORD@HOST:6379/0`, or `rediss://` for TLS, counts together
    /// with every other node that is given the same; Redis 5 or later, or Valkey. Several services can use one Redis,
    /// each with its own `?prefix=NAME:` at the end; without one it is `unionhall:`. While Redis cannot be reached, or
    /// answers later than 50 ms, each node counts alone; the log, /readyz and the metrics say so.
    // Read by us and not by the parser of the command line, which would repeat a wrong one with its password.
    #[arg(long, env = "UNIONHALL_LIMITS", value_name = "LIMITS", default_value = "memory:", hide_env_values = true)]
    pub limits: Concealed,

    /// The file that holds it, to keep a password out of flags and variables.
    #[arg(long, env = "UNIONHALL_LIMITS_FILE", value_name = "FILE", conflicts_with = "limits")]
    pub limits_file: Option<PathBuf>,
}

/// Where requests are counted.
#[derive(Clone)]
pub enum LimitsAddress {
    Memory,
    Redis(Box<Target>),
}

impl LimitSettings {
    pub fn address(&self) -> anyhow::Result<LimitsAddress> {
        let text = given_or_in_file(&self.limits, self.limits_file.as_deref(), "where requests are counted")?;
        match text.as_str() {
            "memory:" => Ok(LimitsAddress::Memory),
            url if url.starts_with("redis") => Target::parse(url)
                .map(|target| LimitsAddress::Redis(Box::new(target)))
                .context("--limits or UNIONHALL_LIMITS"),
            _ => bail!(
                "where requests are counted is not understood; write memory:, redis://… or rediss://… in --limits"
            ),
        }
    }
}
