//! The rate limiter inside one process: exact, sharded, with bounded memory.

use std::sync::{Mutex, PoisonError};

use super::table::{BucketTable, Reservation};
use super::window::{MOST_STAMPS, Window};
use super::{Bucket, Class, Limiter, LimiterStatus, Scope, Subject, Verdict};
use crate::domain::time::Tick;
use crate::reply::Reply;

/// What one entry weighs beside its times: the bucket, the window's fields, the map's own share.
const ENTRY_BYTES: usize = 160;

/// The part of a class's entries that is for wide networks, while the others are full.
const REGIONS: usize = 8;

/// How many times an address's budget the newcomers share for whom there is no room at all.
const SHARED: u32 = 16;

pub struct MemoryLimiter {
    /// Anyone on the internet can make entries here, so old ones make room; a table for each class, so that a flood of one
    /// kind leaves the others alone.
    networks: Box<[NetworkTables]>,
    /// Only issued keys make entries here: a flood of addresses must not touch a partner.
    keys: BucketTable,
}

/// The addresses of one class. A newcomer who finds the table full of such as are at their limit is counted with the wide
/// network it comes from, and with all others like it where that has no room or nothing left.
struct NetworkTables {
    own: BucketTable,
    regions: BucketTable,
    shared: Mutex<Window>,
}

impl NetworkTables {
    fn new(entries: usize) -> Self {
        Self {
            own: BucketTable::new(entries - entries / REGIONS),
            regions: BucketTable::new(entries / REGIONS),
            shared: Mutex::new(Window::new(0)),
        }
    }

    fn check(&self, bucket: Bucket, limit: u32, now: Tick) -> Verdict {
        if let Some(verdict) = self.own.check(bucket, limit, now) {
            return verdict;
        }
        let region = match bucket.subject {
            Subject::Network(network) => Bucket { subject: Subject::Network(network.region()), ..bucket },
            Subject::Key(_) => bucket,
        };
        self.regions.check(region, limit, now).filter(|verdict| verdict.admitted).unwrap_or_else(|| {
            let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.check(limit.saturating_mul(SHARED), now)
        })
    }
}

impl MemoryLimiter {
    /// Memory for addresses at the most, when every entry holds as many times as its limit allows: most of it for public
    /// data, an eighth for each other class that counts addresses.
    pub const NETWORK_BYTES: usize = 40 << 20;
    /// The same for keys.
    pub const KEY_BYTES: usize = 32 << 20;

    /// A limiter whose entries weigh at most the figures above when an address is allowed `network_limit` a minute.
    /// Keys have figures of their own, so theirs are reckoned at the heaviest.
    pub fn new(network_limit: u32) -> Self {
        let entries = |bytes: usize, limit: u32| bytes / entry_bytes(limit);
        let eighth = Self::NETWORK_BYTES / 8;
        let networks = |class: Class| match class {
            Class::Public => entries(eighth * 5, network_limit),
            // Counted by key alone.
            Class::Action | Class::Partner => 1,
            // A dozen a minute; the others a few hundred.
            Class::Form => entries(eighth, 12),
            Class::Protocol | Class::Link => entries(eighth, OTHERS),
        };
        Self {
            networks: Class::ALL.into_iter().map(|class| NetworkTables::new(networks(class))).collect(),
            keys: BucketTable::new(entries(Self::KEY_BYTES, MOST_STAMPS)),
        }
    }

    /// A limiter of that many entries in each table, or a few more so that its shards are even. Without any, addresses are
    /// counted together, and nothing is remembered of what another count admits.
    pub fn with_entries(networks: usize, keys: usize) -> Self {
        let tables = Class::ALL.into_iter().map(|_| NetworkTables::new(networks));
        Self { networks: tables.collect(), keys: BucketTable::new(keys) }
    }

    /// The verdict on one request, known at once.
    pub(super) fn decide(&self, bucket: Bucket, limit: u32, now: Tick) -> Verdict {
        match bucket.subject {
            Subject::Network(_) => self.networks[bucket.class as usize].check(bucket, limit, now),
            // More keys at their limit within a minute than there is room for are no operator's.
            Subject::Key(_) => self.keys.check(bucket, limit, now).unwrap_or(Verdict::LATER),
        }
    }

    /// Counts a request that another count is asked about, too; none if there is no room for its bucket. Whoever finds no room
    /// here is not counted with others, for the other count knows them.
    pub(super) fn reserve(&self, bucket: Bucket, limit: u32, now: Tick) -> Option<Reservation<'_>> {
        match bucket.subject {
            Subject::Network(_) => self.networks[bucket.class as usize].own.reserve(bucket, limit, now),
            Subject::Key(_) => self.keys.reserve(bucket, limit, now),
        }
    }

    /// How many addresses of a class it can count at once.
    pub fn network_entries(&self, class: Class) -> usize {
        self.networks[class as usize].own.entries()
    }
}

/// What the classes beside public data and forms allow an address at the most.
const OTHERS: u32 = 600;

/// What an entry weighs when its limit is exhausted; a deque's buffer grows in powers of two.
pub(super) fn entry_bytes(limit: u32) -> usize {
    ENTRY_BYTES + (limit.min(MOST_STAMPS) as usize).next_power_of_two() * size_of::<u32>()
}

impl Limiter for MemoryLimiter {
    fn check(&self, bucket: Bucket, limit: u32, now: Tick) -> Reply<'_, Verdict> {
        Reply::now(self.decide(bucket, limit, now))
    }

    fn status(&self) -> LimiterStatus {
        LimiterStatus { scope: Scope::Memory, fallbacks: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn bucket(n: u32) -> Bucket {
        let address = IpAddr::from(n.to_be_bytes());
        Bucket { class: Class::Public, subject: Subject::Network(address.into()) }
    }

    #[test]
    fn a_crowd_past_the_tables_size_is_admitted_while_nobody_is_exhausted() {
        let limiter = MemoryLimiter::new(60);
        for class in [Class::Public, Class::Form, Class::Protocol, Class::Link] {
            let crowd = u32::try_from(limiter.network_entries(class)).unwrap() * 5;
            let refused = (0..crowd).filter(|n| {
                let now = Tick::from_micros(u64::from(*n));
                !limiter.decide(Bucket { class, ..bucket(*n) }, 10, now).admitted
            });
            assert_eq!(refused.count(), 0, "{class:?}");
        }
    }

    #[test]
    fn a_table_full_of_exhausted_ones_counts_newcomers_by_region_and_then_together() {
        let limiter = MemoryLimiter::with_entries(16, 16);
        let now = Tick::from_micros(1_000_000);
        let ask = |n: u32, class| limiter.decide(Bucket { class, ..bucket(n) }, 3, now).admitted;
        // Each from a region of its own, until both tables and what is shared are full.
        let region = |n: u32| n << 16;
        let admitted = (1..2000).map(|n| (0..5).filter(|_| ask(region(n), Class::Public)).count()).sum::<usize>();
        let tables = &limiter.networks[Class::Public as usize];
        let most = (tables.own.entries() + tables.regions.entries()) * 3 + 3 * SHARED as usize;
        assert!(admitted <= most && admitted > most * 3 / 4, "{admitted} of {most}");
        assert!(!ask(region(3000), Class::Public), "what is shared is spent too");
        assert!(ask(region(3000), Class::Form), "and no other class has noticed");
    }
}
