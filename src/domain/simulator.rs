//! Addresses such as `confirm@simulator.test` that act by themselves in the sandbox, so that a partner sees every outcome without
//! a person. Live keys and the form refuse them: no mail server answers for a name below `.test`.

use std::time::Duration;

use super::email::EmailAddress;
use super::json::named_enum;
use super::partner::CLOSES_AFTER;

const HOST: &str = "simulator.test";

/// How long the slow one takes to confirm.
pub const SLOW_FOR: Duration = Duration::from_secs(60);

/// How long it takes the sign-up of `close@` to close, where others take a week.
pub const SIMULATED_CLOSES_AFTER: Duration = Duration::from_secs(60);

/// How long the simulated limit asks callers to wait, in seconds.
pub const LIMITED_FOR: u32 = 30;

named_enum! {
    /// What an address does, by the name before the @.
    pub enum Simulated {
        /// Presses the button of its mail at once.
        Confirm = "confirm",
        /// Says "this wasn't me".
        Decline = "decline",
        /// Does not exist, says its mail server.
        Bounce = "bounce",
        /// Confirms after [`SLOW_FOR`].
        Slow = "slow",
        /// Never confirms, and its sign-up closes after [`SIMULATED_CLOSES_AFTER`].
        Close = "close",
        /// The operation answers that there were too many requests.
        Limit = "limit",
        /// The operation answers that nothing could be saved.
        Fail = "fail",
    }
}

impl Simulated {
    /// What an address does, if it is one of these; a tag after a plus makes as many of each as one likes.
    pub fn of(email: &EmailAddress) -> Option<Self> {
        if !is_simulators(email) {
            return None;
        }
        let name = email.local_part().split('+').next().unwrap_or_default();
        Self::from_name(&name.to_ascii_lowercase())
    }
}

/// Whether an address is the simulator's, be there one of that name or not.
pub fn is_simulators(email: &EmailAddress) -> bool {
    email.domain() == HOST
}

/// Whether it is one in the sandbox, where no cap and no silence holds for it.
pub fn is_free(email: &EmailAddress) -> bool {
    email.scope().is_some() && is_simulators(email)
}

/// How long until an unconfirmed sign-up is closed for its partner.
pub fn closes_after(email: &EmailAddress) -> Duration {
    match Simulated::of(email).filter(|_| is_free(email)) {
        Some(Simulated::Close) => SIMULATED_CLOSES_AFTER,
        _ => CLOSES_AFTER,
    }
}

#[cfg(test)]
mod tests {
    use super::super::partner::name::PartnerId;
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
            ("close+week@simulator.test", Simulated::Close),
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
    #[test]
    fn the_simulators_addresses_are_free_in_the_sandbox_alone() {
        let live = |text: &str| EmailAddress::parse(text).unwrap();
        let test = |text: &str| live(text).in_sandbox_of(PartnerId(1));
        for (text, is_the_simulators) in
            [("ana@Simulator.test", true), ("close+1@simulator.test", true), ("close@simulator.test.example", false)]
        {
            assert_eq!((is_simulators(&live(text)), is_free(&live(text))), (is_the_simulators, false), "{text}");
            assert_eq!(
                (is_simulators(&test(text)), is_free(&test(text))),
                (is_the_simulators, is_the_simulators),
                "{text}"
            );
        }
        assert_eq!(closes_after(&test("close+1@simulator.test")), SIMULATED_CLOSES_AFTER);
        for week in [live("close@simulator.test"), test("slow@simulator.test"), test("close@example.com")] {
            assert_eq!(closes_after(&week), CLOSES_AFTER);
        }
    }
}
