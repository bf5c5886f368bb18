//! Nested rate limits: whole IPv6 sites beside the /64s in them.
//!
//! A /48 has 65,536 networks of /64, and would have as many limits. So the wider networks have limits too, a few times that
//! of a /64. A site of many honest people does not reach them; a script does. This node counts them alone and may be off by
//! the requests in flight: only the limit of the /64 is exact.

use super::memory::entry_bytes;
use super::table::BucketTable;
use super::window::MOST_STAMPS;
use super::{Bucket, Class, Subject, Verdict};
use crate::domain::time::Tick;

/// The wider networks by the bits that are theirs, and how many times the budget of a /64 each has.
const LEVELS: [(u32, u32); 2] = [(56, 4), (48, 16)];

pub struct WideBudgets(Vec<BucketTable>);

impl Default for WideBudgets {
    fn default() -> Self {
        let tables = LEVELS.len() * Class::ALL.len();
        let entries = Self::BYTES / tables / entry_bytes(MOST_STAMPS);
        Self((0..tables).map(|_| BucketTable::new(entries)).collect())
    }
}

impl WideBudgets {
    /// Memory for wider networks at the most; past it the least used make room.
    pub const BYTES: usize = 32 << 20;

    /// The refusal of a request whose wider network has spent its budget.
    pub fn refusal(&self, bucket: Bucket, limit: u32, now: Tick) -> Option<Verdict> {
        let waits = self.levels(bucket, limit).filter_map(|(table, wide, limit)| table.exhausted(wide, limit, now));
        waits.max().map(|reset| Verdict { admitted: false, remaining: 0, reset })
    }

    /// Counts a request that was admitted.
    pub fn count(&self, bucket: Bucket, limit: u32, now: Tick) {
        // Where there is no room every network is at its limit, and the next of them is refused by its own /64.
        for (table, wide, limit) in self.levels(bucket, limit) {
            let _no_room = table.check(wide, limit, now);
        }
    }

    fn levels(&self, bucket: Bucket, limit: u32) -> impl Iterator<Item = (&BucketTable, Bucket, u32)> {
        LEVELS.iter().enumerate().filter_map(move |(level, (bits, times))| {
            let Subject::Network(network) = bucket.subject else { return None };
            let wide = Bucket { subject: Subject::Network(network.within(*bits)?), ..bucket };
            let table = &self.0[level * Class::ALL.len() + bucket.class as usize];
            Some((table, wide, limit.saturating_mul(*times)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    fn bucket(site: u128, network: u128) -> Bucket {
        let address = Ipv6Addr::from((0x2001_0db8 << 96) | (site << 80) | (network << 64));
        Bucket { class: Class::Form, subject: Subject::Network(std::net::IpAddr::from(address).into()) }
    }

    #[test]
    fn a_site_has_sixteen_budgets_and_its_neighbours_their_own() {
        let (wide, now) = (WideBudgets::default(), Tick::from_micros(1_000_000));
        let ask = |bucket: Bucket, now| {
            let admitted = wide.refusal(bucket, 10, now).is_none();
            if admitted {
                wide.count(bucket, 10, now);
            }
            admitted
        };
        let of_one_56 = (0..256).filter(|n| ask(bucket(1, *n), now)).count();
        assert_eq!(of_one_56, 40, "four budgets of ten");
        let of_the_48 = (0..65_536).filter(|n| ask(bucket(1, *n), now)).count();
        assert_eq!(of_one_56 + of_the_48, 160, "sixteen");
        assert!(ask(bucket(2, 0), now));
        let refused = wide.refusal(bucket(1, 9), 10, now).unwrap();
        assert_eq!((refused.admitted, refused.reset_seconds()), (false, 60));
        assert!(ask(bucket(1, 0), Tick::from_micros(62_000_000)), "a minute later");
        let v4 = Bucket { subject: Subject::Network(std::net::IpAddr::from([192, 0, 2, 1]).into()), ..bucket(1, 0) };
        assert!((0..10_000).all(|_| ask(v4, now)), "an IPv4 address has no wider network here");
    }
}
