//! How often backups are made, which monitoring, `doctor` and the operator's page expect, and whom the page's own are encrypted for.

use std::time::Duration;

use clap::Args;

use crate::domain::time::parse_span;

/// How old the last backup may be, and who can open what the page makes.
#[derive(Clone, Args)]
#[command(next_help_heading = "Backups")]
pub struct BackupInterval {
    /// How often your backups are made, with any tool: 15m, 1h, 1d.
    ///
    /// This setting starts no backup. `unionhall doctor`, the operator's page and the alert warn when the last backup is older than
    /// twice that. The metrics have it as `unionhall_backup_interval_seconds`.
    #[arg(long, env = "UNIONHALL_BACKUP_EVERY", value_name = "TIME", default_value = "1d", value_parser = interval)]
    pub backup_every: Duration,

    /// Whom the backups that the operator's page makes are encrypted for, age1…, with commas between them [default: nobody].
    ///
    /// `unionhall backup` reads the same variable. `age-keygen -o identity.txt`, on another machine, makes an identity and prints its
    /// recipient. The identity alone opens the file: keep it elsewhere.
    #[arg(long, env = "UNIONHALL_BACKUP_RECIPIENT", value_name = "RECIPIENT", value_delimiter = ',')]
    pub backup_recipient: Vec<String>,
}

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(31 * 86_400);

/// Reads a time between two backups, as operators write it.
pub fn interval(text: &str) -> Result<Duration, String> {
    let wrong = || format!("\"{text}\" is not a time between backups; write one from 1s to 31d: 15m, 1h, 1d");
    parse_span(text).filter(|length| (SHORTEST..=LONGEST).contains(length)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_in_minutes_hours_and_days() {
        let minutes = |text: &str| interval(text).map(|length| length.as_secs() / 60);
        assert_eq!((minutes("1m"), minutes("15m"), minutes("1h"), minutes("31d")), (Ok(1), Ok(15), Ok(60), Ok(44_640)));
        for wrong in ["", "15", "999ms", "0m", "-15m", "32d", "often", "1y", "99999999999999d"] {
            assert!(minutes(wrong).unwrap_err().contains("15m"), "{wrong}");
        }
    }
}
