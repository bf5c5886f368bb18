//! The limiter inside one process: bounded, sharded, exact.
//!
//! A bucket keeps the times of the requests it admitted within the last minute. Past 1,000 a minute it keeps one time
//! per group of requests instead, the latest of the group, so that it never admits more than its limit and errs by less
//! than a thousandth of it.

use std::collections::VecDeque;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;

use super::{Bucket, Limiter, LimiterStatus, Scope, Subject, Verdict, WINDOW};
use crate::domain::time::Tick;
use crate::reply::Reply;

/// Microseconds fit in 32 bits for 71 minutes, and no two times of one bucket are two windows apart.
const SPAN: u64 = WINDOW.as_micros() as u64;

/// Past this limit a bucket counts in groups.
const MOST_STAMPS: u32 = 1000;

/// What one entry weighs beside its times: the bucket, the window's fields, the map's own share.
const ENTRY_BYTES: usize = 160;

const SHARDS: usize = 16;

/// How many entries a full table looks at to find one to drop. Each look is a few nanoseconds; a table of which a
/// newcomer finds this many in a row at their limit is under an attack that no budget of memory could count.
const LOOKED_AT: usize = 64;

#[derive(Debug)]
pub struct MemoryLimiter {
    /// Anyone on the internet can make entries here, so old ones make room.
    networks: BucketTable,
    /// Only issued keys make entries here: a flood of addresses must not touch a partner.
    keys: BucketTable,
}

impl MemoryLimiter {
    /// Memory for addresses at the most, when every entry holds as many times as its limit allows.
    pub const NETWORK_BYTES: usize = 32 << 20;
    /// The same for keys.
    pub const KEY_BYTES: usize = 32 << 20;

    /// A limiter whose entries weigh at most the figures above when an address is allowed `network_limit` a minute.
    /// Keys have figures of their own, so theirs are reckoned at the heaviest.
    pub fn new(network_limit: u32) -> Self {
        let entries = |bytes: usize, limit: u32| bytes / entry_bytes(limit);
        Self::with_entries(entries(Self::NETWORK_BYTES, network_limit), entries(Self::KEY_BYTES, MOST_STAMPS))
    }

    /// A limiter of that many entries, or a few more so that its shards are even.
    pub fn with_entries(networks: usize, keys: usize) -> Self {
        Self { networks: BucketTable::new(networks), keys: BucketTable::new(keys) }
    }

    /// The verdict on one request, known at once.
    pub(super) fn decide(&self, bucket: Bucket, limit: u32, now: Tick) -> Verdict {
        let table = match bucket.subject {
            Subject::Network(_) => &self.networks,
            Subject::Key(_) => &self.keys,
        };
        table.check(bucket, limit, now)
    }

    /// How many addresses it can count at once.
    pub fn network_entries(&self) -> usize {
        self.networks.shard_entries * SHARDS
    }
}

/// What an entry weighs when its limit is exhausted; a deque's buffer grows in powers of two.
fn entry_bytes(limit: u32) -> usize {
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

#[derive(Debug)]
struct BucketTable {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    shard_entries: usize,
}

impl BucketTable {
    fn new(entries: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            shard_entries: entries.div_ceil(SHARDS).max(1),
        }
    }

    fn check(&self, bucket: Bucket, limit: u32, now: Tick) -> Verdict {
        let bucket = Hashed { bucket, hash: self.hasher.hash_one(bucket) as u32 };
        let shard = shard_of(bucket.hash);
        // A panic while the lock was held could at worst have left one bucket half counted.
        let mut shard = self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner);
        shard.check(bucket, limit, now, self.shard_entries)
    }
}

/// By the upper bits: the place within the shard is found by the lower ones.
fn shard_of(hash: u32) -> usize {
    ((u64::from(hash) * SHARDS as u64) >> 32) as usize
}

/// A bucket and its hash, which is worked out once for the shard and the place in it. 32 bits fill a gap that would be
/// empty otherwise.
#[derive(Debug, Clone, Copy)]
struct Hashed {
    bucket: Bucket,
    hash: u32,
}

impl PartialEq for Hashed {
    fn eq(&self, other: &Self) -> bool {
        self.bucket == other.bucket
    }
}

impl Eq for Hashed {}

impl Hash for Hashed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.hash);
    }
}

/// Passes a hash on as it is, spread over 64 bits: a table looks at both ends of them.
#[derive(Debug, Default)]
struct Passed(u64);

impl Hasher for Passed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, hash: u32) {
        self.0 = (self.0 ^ u64::from(hash)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[derive(Debug, Default)]
struct Shard {
    windows: IndexMap<Hashed, Window, BuildHasherDefault<Passed>>,
    /// Where the next look for an entry to drop begins, so that looks spread over the whole shard.
    hand: usize,
}

impl Shard {
    fn check(&mut self, bucket: Hashed, limit: u32, now: Tick, entries: usize) -> Verdict {
        if let Some(window) = self.windows.get_mut(&bucket) {
            return window.check(limit, now);
        }
        self.drop_those_over(now);
        if self.windows.len() >= entries && !self.drop_least_used(now) {
            return Verdict { admitted: false, remaining: 0, reset: Duration::from_secs(1) };
        }
        let mut window = Window::new(limit);
        let verdict = window.check(limit, now);
        self.windows.insert(bucket, window);
        verdict
    }

    /// Each newcomer looks at two entries and drops those whose minute is over, so a quiet table shrinks again.
    fn drop_those_over(&mut self, now: Tick) {
        for _ in 0..2 {
            let Some(at) = self.next_place() else { return };
            if self.windows[at].is_over(now) {
                self.windows.swap_remove_index(at);
                // The last entry took its place; the next look begins with that one.
                self.hand = at;
            }
        }
        let (held, room) = (self.windows.len(), self.windows.capacity());
        if room > 1024 && held < room / 8 {
            self.windows.shrink_to(room / 2);
        }
    }

    /// Makes room in a full shard: the least used of those looked at goes, never one at its limit.
    fn drop_least_used(&mut self, now: Tick) -> bool {
        let mut least: Option<(u32, usize)> = None;
        for _ in 0..LOOKED_AT.min(self.windows.len()) {
            let Some(at) = self.next_place() else { return true };
            let window = &mut self.windows[at];
            window.forget_before(now);
            let used = window.count();
            if used < window.limit && least.is_none_or(|(fewest, _)| used < fewest) {
                least = Some((used, at));
            }
            if used == 0 {
                break;
            }
        }
        least.is_some_and(|(_, at)| self.windows.swap_remove_index(at).is_some())
    }

    fn next_place(&mut self) -> Option<usize> {
        let at = if self.hand < self.windows.len() { self.hand } else { 0 };
        self.hand = at + 1;
        (!self.windows.is_empty()).then_some(at)
    }
}

/// The admitted requests of one bucket within the last minute.
#[derive(Debug)]
struct Window {
    /// The low 32 bits of a time in microseconds for each group of requests, oldest first.
    stamps: VecDeque<u32>,
    /// The newest of them in full: when it is over, all are.
    newest: u64,
    /// How many requests the newest group holds; the others are full.
    in_newest: u32,
    limit: u32,
}

impl Window {
    fn new(limit: u32) -> Self {
        Self { stamps: VecDeque::new(), newest: 0, in_newest: 0, limit }
    }

    fn check(&mut self, limit: u32, now: Tick) -> Verdict {
        self.limit = limit;
        self.forget_before(now);
        let used = self.count();
        let admitted = used < limit;
        if admitted {
            self.admit(now);
        }
        let remaining = limit.saturating_sub(self.count());
        Verdict { admitted, remaining, reset: self.until_next(now) }
    }

    fn group(&self) -> u32 {
        // Without a division for nearly all.
        if self.limit <= MOST_STAMPS { 1 } else { self.limit.div_ceil(MOST_STAMPS) }
    }

    fn count(&self) -> u32 {
        match self.stamps.len() {
            0 => 0,
            groups => (groups as u32 - 1) * self.group() + self.in_newest,
        }
    }

    fn is_over(&self, now: Tick) -> bool {
        now.as_micros().saturating_sub(self.newest) > SPAN
    }

    fn forget_before(&mut self, now: Tick) {
        if self.is_over(now) {
            self.stamps.clear();
            return;
        }
        while let Some(oldest) = self.stamps.front() {
            // Strictly more than the span: times are cut to whole microseconds, and the promise holds for any 60 s.
            if self.age(*oldest, now) <= SPAN {
                break;
            }
            self.stamps.pop_front();
        }
    }

    fn admit(&mut self, now: Tick) {
        // Threads may come to the lock in another order than they read the clock; times here never run backwards.
        self.newest = self.newest.max(now.as_micros());
        let stamp = self.newest as u32;
        let group = self.group();
        match self.stamps.back_mut() {
            Some(newest) if self.in_newest < group => {
                *newest = stamp;
                self.in_newest += 1;
            }
            _ => {
                self.stamps.push_back(stamp);
                self.in_newest = 1;
            }
        }
    }

    fn until_next(&self, now: Tick) -> Duration {
        let oldest = self.stamps.front().map_or(0, |oldest| (SPAN + 1).saturating_sub(self.age(*oldest, now)));
        Duration::from_micros(oldest)
    }

    /// How long before `now` a stamp of this bucket was made.
    fn age(&self, stamp: u32, now: Tick) -> u64 {
        let before_newest = u64::from((self.newest as u32).wrapping_sub(stamp));
        now.as_micros().saturating_sub(self.newest) + before_newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::Class;
    use std::net::IpAddr;

    fn bucket(n: u32) -> Bucket {
        let address = IpAddr::from(n.to_be_bytes());
        Bucket { class: Class::Public, subject: Subject::Network(address.into()) }
    }

    fn shard(limiter: &MemoryLimiter, n: u32) -> usize {
        shard_of(limiter.networks.hasher.hash_one(bucket(n)) as u32)
    }

    #[test]
    fn a_full_table_drops_the_least_used_and_never_one_at_its_limit() {
        let limiter = MemoryLimiter::with_entries(SHARDS * 4, SHARDS);
        let at = |seconds: u64| Tick::from_micros(seconds * 1_000_000);
        let home = shard(&limiter, 0);
        let mut mates = (0..).filter(|n| shard(&limiter, *n) == home);
        let mut next = || mates.next().unwrap();
        let check = |n, seconds| limiter.networks.check(bucket(n), 3, at(seconds)).admitted;

        let exhausted = [next(), next()];
        let busy = next();
        let quiet = next();
        for n in exhausted {
            assert!(check(n, 1) && check(n, 1) && check(n, 1) && !check(n, 1));
        }
        assert!(check(busy, 1) && check(busy, 1) && check(quiet, 1));
        for _ in 0..1000 {
            assert!(check(next(), 2), "newcomers find room");
        }
        assert!(exhausted.iter().all(|n| !check(*n, 3)), "those at their limit were kept");
        // Now fill the shard with exhausted ones: a newcomer is refused rather than uncounted or let at another's place.
        let full: Vec<_> = (0..4).map(|_| next()).collect();
        for n in &full {
            while check(*n, 4) {}
        }
        assert!(!check(next(), 5));
        assert!(check(next(), 65), "and once their minute is over there is room again");
    }

    #[test]
    fn entries_whose_minute_is_over_go_by_themselves() {
        let limiter = MemoryLimiter::with_entries(1 << 16, SHARDS);
        for n in 0..20_000 {
            limiter.networks.check(bucket(n), 60, Tick::from_micros(u64::from(n)));
        }
        for n in 20_000..60_000 {
            limiter.networks.check(bucket(n), 60, Tick::from_micros(3 * SPAN));
        }
        let held: usize = limiter.networks.shards.iter().map(|shard| shard.lock().unwrap().windows.len()).sum();
        assert!((40_000..40_100).contains(&held), "{held}");
    }
}
