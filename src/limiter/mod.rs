//! Rate limits (throttling). A rate limit is an exact sliding window: no span of 60 seconds admits more than N requests of
//! one bucket. A request past its rate limit is refused and does not count.
//!
//! A rate limiter knows buckets and figures. It must never know what a request is, which operation it was for, or where
//! the figures come from.

pub mod memory;
pub mod redis;
mod table;
pub mod wide;
mod window;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use crate::domain::api_key::KeyId;
pub use crate::domain::health::Scope;
use crate::domain::time::Tick;
use crate::reply::Reply;

/// The span every limit counts over.
pub const WINDOW: Duration = Duration::from_secs(60);

/// What is counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    pub class: Class,
    pub subject: Subject,
}

/// In as few bytes as tell buckets apart: what is derived would hash forty, and hashing is most of a check.
impl Hash for Bucket {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let class = self.class as u8 * 2;
        match &self.subject {
            Subject::Network(Network(network)) => {
                state.write_u8(class);
                state.write(network);
            }
            Subject::Key(key) => {
                state.write_u8(class + 1);
                state.write(key.as_str().as_bytes());
            }
        }
    }
}

/// Which of a subject's budgets a request draws on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Reading public data: one budget for all such operations, over every transport.
    Public,
    /// Acting for a user.
    Action,
    /// Sending the form on the join page.
    Form,
    /// Speaking MCP without calling a tool.
    Protocol,
    /// Opening and pressing what a mailed link leads to.
    Link,
    /// A partner's questions about its own affairs.
    Partner,
}

impl Class {
    pub const ALL: [Self; 6] = [Self::Public, Self::Action, Self::Form, Self::Protocol, Self::Link, Self::Partner];

    /// How the budget is called in the `RateLimit` headers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Action => "action",
            Self::Form => "form",
            Self::Protocol => "protocol",
            Self::Link => "link",
            Self::Partner => "partner",
        }
    }
}

/// Whose budget it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    Network(Network),
    Key(KeyId),
}

/// An address as limits see it: one IPv4 address, or the /64 that one IPv6 customer is given.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network([u8; 16]); // bytes, not a number: a number's alignment would double the size of an entry

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) => Self(v4.to_ipv6_mapped().octets()),
            IpAddr::V6(v6) => Self((u128::from(v6) & !u128::from(u64::MAX)).to_be_bytes()),
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Network {
    /// The IPv6 network of `bits` that this one lies in; none for IPv4.
    pub fn within(self, bits: u32) -> Option<Self> {
        let address = Ipv6Addr::from(self.0);
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        address.to_ipv4_mapped().is_none().then(|| Self((u128::from(address) & mask).to_be_bytes()))
    }

    /// What one organization is given: a /48 of IPv6, a /24 of IPv4.
    pub fn site(self) -> Self {
        self.wider(48, 15)
    }

    pub fn octets(&self) -> &[u8; 16] {
        &self.0
    }

    /// A network so wide that there are few of them: a /16 of IPv4, a /32 of IPv6.
    fn region(self) -> Self {
        self.wider(32, 14)
    }

    /// The IPv6 network of `bits`, or the IPv4 network of what stands before the octet `end`.
    fn wider(self, bits: u32, end: usize) -> Self {
        self.within(bits).unwrap_or_else(|| {
            let mut octets = self.0;
            octets[end..].fill(0);
            Self(octets)
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        IpAddr::from(Ipv6Addr::from(self.0)).to_canonical().fmt(f)
    }
}

/// What the limiter says of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    pub admitted: bool,
    /// How many more would be admitted right now.
    pub remaining: u32,
    /// When admitted: how long until the oldest counted request leaves the window. When refused: until the next would be
    /// admitted.
    pub reset: Duration,
}

impl Verdict {
    /// Not now, for want of room.
    const LATER: Self = Self { admitted: false, remaining: 0, reset: Duration::from_secs(1) };

    /// What two counts that both admit a request say together: the smaller remainder, and how long that stays as it is.
    fn and(self, other: Self) -> Self {
        match self.remaining.cmp(&other.remaining) {
            Ordering::Less => self,
            Ordering::Greater => other,
            Ordering::Equal => Self { reset: self.reset.max(other.reset), ..self },
        }
    }

    /// The reset in whole seconds, rounded up: 1 to 60, as `Retry-After` says it.
    pub fn reset_seconds(&self) -> u32 {
        let up = self.reset.as_secs() + u64::from(self.reset.subsec_nanos() > 0);
        u32::try_from(up.clamp(1, WINDOW.as_secs())).unwrap_or(60)
    }
}

/// Counts requests against limits. Every backend passes the same suite.
pub trait Limiter: Send + Sync {
    /// Admits the request of `bucket` at `now`, and counts it, unless `limit` were admitted within the window before.
    fn check(&self, bucket: Bucket, limit: u32, now: Tick) -> Reply<'_, Verdict>;

    /// Where the counting happens right now.
    fn status(&self) -> LimiterStatus;
}

/// How a limiter is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimiterStatus {
    pub scope: Scope,
    /// Requests that this node decided alone because what the nodes share was late or away.
    pub fallbacks: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_customer_share_a_network() {
        let network = |text: &str| Network::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::9"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
        assert_eq!(network("::ffff:192.0.2.7"), network("192.0.2.7"));
        assert_ne!(network("192.0.2.7"), network("192.0.2.8"));
        assert_eq!(network("2001:db8:1:2ff::1").within(56), network("2001:db8:1:200::").within(56));
        assert_ne!(network("2001:db8:1:2ff::1").within(56), network("2001:db8:1:300::").within(56));
        assert_eq!(network("2001:db8:1:2::1").within(48), network("2001:db8:1:ffff::").within(48));
        assert_eq!(network("192.0.2.7").within(48), None);
        assert_eq!(network("192.0.2.7").region(), network("192.0.9.9").region());
        assert_ne!(network("192.0.2.7").region(), network("192.1.2.7").region());
        assert_eq!(network("2001:db8:1::").region(), network("2001:db8:2::").region());
    }

    #[test]
    fn of_two_counts_the_scarcer_is_told() {
        let verdict = |remaining, reset| Verdict { admitted: true, remaining, reset: Duration::from_secs(reset) };
        for (one, other, both) in [((3, 9), (2, 5), (2, 5)), ((2, 9), (3, 50), (2, 9)), ((2, 5), (2, 9), (2, 9))] {
            let [one, other, both] = [one, other, both].map(|(remaining, reset)| verdict(remaining, reset));
            assert_eq!((one.and(other), other.and(one)), (both, both));
        }
    }

    #[test]
    fn seconds_round_up_and_stay_in_bounds() {
        let seconds =
            |millis| Verdict { admitted: false, remaining: 0, reset: Duration::from_millis(millis) }.reset_seconds();
        assert_eq!([0, 1, 1000, 1001, 59_001, 60_000, 70_000].map(seconds), [1, 1, 1, 2, 60, 60, 60]);
    }
}
