//! Addresses that act by themselves in the sandbox, so that a partner sees every outcome without a person: `confirm@simulator.test`
//! and its like. Among live records they mean nothing: no mail server answers for a name below `.test`.

use std::time::Duration;

use super::email::EmailAddress;

const HOST: &str = "simulator.test";

/// How long the slow one takes to confirm.
pub const SLOW_FOR: Duration = Duration::from_secs(60);

/// When whoever met the simulated limit may come again, in seconds.
pub const LIMITED_FOR: u32 = 30;

/// What an address does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Simulated {
    /// Presses the button of its mail at once.
    Confirm,
    /// Says "this wasn't me".
    Decline,
    /// Does not exist, says its mail server.
    Bounce,
    /// Confirms after [`SLOW_FOR`].
    Slow,
    /// The operation answers that there were too many requests.
    Limit,
    /// The operation answers that nothing could be saved.
    Fail,
}

impl Simulated {
    /// What an address does, if it is one of these; a tag after a plus makes as many of each as one likes.
    pub fn of(email: &EmailAddress) -> Option<Self> {
        if !email.domain().eq_ignore_ascii_case(HOST) {
            return None;
        }
        let name = email.local_part().split('+').next().unwrap_or_default();
        Some(match name.to_ascii_lowercase().as_str() {
            "confirm" => Self::Confirm,
            "decline" => Self::Decline,
            "bounce" => Self::Bounce,
            "slow" => Self::Slow,
            "limit" => Self::Limit,
            "fail" => Self::Fail,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_act_by_their_name_whatever_their_tag_and_case() {
        let of = |text: &str| Simulated::of(&EmailAddress::parse(text).unwrap());
        for (text, acts) in [
            ("confirm@simulator.test", Simulated::Confirm),
            ("Confirm+17@Simulator.TEST", Simulated::Confirm),
            ("confirm+a+b@simulator.test", Simulated::Confirm),
            ("decline@simulator.test", Simulated::Decline),
            ("bounce@simulator.test", Simulated::Bounce),
            ("slow+x@simulator.test", Simulated::Slow),
            ("LIMIT@simulator.test", Simulated::Limit),
            ("fail@simulator.test", Simulated::Fail),
        ] {
            assert_eq!(of(text), Some(acts), "{text}");
        }
        for other in [
            "ana@simulator.test",
            "confirms@simulator.test",
            "con.firm@simulator.test",
            "+confirm@simulator.test",
            "confirm@simulator.test.example",
            "confirm@a.simulator.test",
            "confirm@example.com",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
