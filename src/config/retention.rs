//! Retention: how long personal data is kept.

use std::time::Duration;

use clap::Args;

use crate::domain::person::RetentionTimes;

/// How long what is known of people is kept.
#[derive(Clone, Args)]
#[command(next_help_heading = "Retention")]
pub struct RetentionSettings {
    /// How long people who never confirmed are kept, and unconfirmed sign-ups. Then their address is deleted. A keyed hash and the
    /// referral code stay, so that the code stays theirs.
    #[arg(long, env = "UNIONHALL_KEEP_UNCONFIRMED", value_name = "SPAN", default_value = "90d", value_parser = span)]
    keep_unconfirmed: Duration,

    /// How long the answers of a sign-up that was not confirmed are kept.
    #[arg(long, env = "UNIONHALL_KEEP_ANSWERS", value_name = "SPAN", default_value = "30d", value_parser = span)]
    keep_answers: Duration,

    /// How long people who left are kept; then they are erased as if they had asked for it.
    #[arg(long, env = "UNIONHALL_KEEP_LEFT", value_name = "SPAN", default_value = "365d", value_parser = span)]
    keep_left: Duration,

    /// How long a complaint about our mail is kept; until then no mail goes to that mailbox.
    #[arg(long, env = "UNIONHALL_KEEP_COMPLAINTS", value_name = "SPAN", default_value = "365d", value_parser = span)]
    keep_complaints: Duration,
}

impl RetentionSettings {
    pub fn times(&self) -> RetentionTimes {
        RetentionTimes {
            unconfirmed: self.keep_unconfirmed,
            answers: self.keep_answers,
            left: self.keep_left,
            complaints: self.keep_complaints,
        }
    }
}

/// Longer than anybody means, and short enough to be reckoned with.
const LONGEST: u64 = 100 * 365;

/// Reads a span of days, as operators write it: `90d`, `12w`.
fn span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("\"{text}\" is not a time span; write whole days or weeks, from 1d to {LONGEST}d: 90d, 12w");
    let text = text.trim();
    let unit = if text.ends_with('w') { 7 } else { 1 };
    let number = text.strip_suffix(['d', 'w']).ok_or_else(wrong)?;
    let days = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(wrong)?;
    if !(1..=LONGEST).contains(&days) {
        return Err(wrong());
    }
    Ok(Duration::from_secs(days * 24 * 3600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_in_days_and_weeks() {
        let days = |text: &str| span(text).map(|span| span.as_secs() / (24 * 3600));
        assert_eq!((days("90d"), days(" 2w "), days("1d")), (Ok(90), Ok(14), Ok(1)));
        for wrong in ["", "d", "90", "0d", "-1d", "1.5d", "90 days", "36501d", "99999999999999999999d"] {
            assert!(days(wrong).unwrap_err().contains("90d"), "{wrong}");
        }
    }

    #[test]
    fn what_the_manual_says_is_what_the_program_keeps() {
        #[derive(clap::Parser)]
        struct Bare {
            #[command(flatten)]
            retention: RetentionSettings,
        }
        let bare = <Bare as clap::Parser>::try_parse_from(["bare"]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(bare.retention.times(), RetentionTimes::DEFAULT);
    }
}
