//! A sharded table of buckets with bounded memory.

use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;

use super::window::Window;
use super::{Bucket, Verdict};
use crate::domain::time::Tick;

const SHARDS: usize = 16;

/// How many entries a full table looks at to find one to drop. Each look is a few nanoseconds; a table of which a
/// newcomer finds this many in a row at their limit is under an attack that no budget of memory could count.
const LOOKED_AT: usize = 64;

pub(super) struct BucketTable {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    shard_entries: usize,
}

impl BucketTable {
    pub(super) fn new(entries: usize) -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            shard_entries: entries.div_ceil(SHARDS),
        }
    }

    /// How many buckets fit: a few more than were asked for, so that the shards are even.
    pub(super) fn entries(&self) -> usize {
        self.shard_entries * SHARDS
    }

    /// Counts the request; none if there is no room for its bucket.
    pub(super) fn check(&self, bucket: Bucket, limit: u32, now: Tick) -> Option<Verdict> {
        self.reserve(bucket, limit, now).map(Reservation::keep)
    }

    /// The same, until the reservation is dropped.
    pub(super) fn reserve(&self, bucket: Bucket, limit: u32, now: Tick) -> Option<Reservation<'_>> {
        let counted = |hashed, shard: &mut Shard| {
            let window = shard.window(hashed, limit, now, self.shard_entries)?;
            Some((window.check(limit, now), window.latest()))
        };
        let (verdict, then) = self.with_shard(bucket, counted)?;
        Some(Reservation { verdict, counted: verdict.admitted.then_some((self, bucket, then)) })
    }

    /// How long until the bucket would admit a request again; none if it would now. Counts nothing.
    pub(super) fn exhausted(&self, bucket: Bucket, limit: u32, now: Tick) -> Option<Duration> {
        self.with_shard(bucket, |bucket, shard| shard.windows.get_mut(&bucket)?.wait(limit, now))
    }

    fn take_back(&self, bucket: Bucket, then: Tick) {
        self.with_shard(bucket, |bucket, shard| {
            if let Some(window) = shard.windows.get_mut(&bucket) {
                window.take_back(then);
            }
        });
    }

    fn with_shard<T>(&self, bucket: Bucket, look: impl FnOnce(Hashed, &mut Shard) -> T) -> T {
        let bucket = Hashed { bucket, hash: self.hasher.hash_one(bucket) as u32 };
        // A panic while the lock was held could at worst have left one bucket half counted.
        let mut shard = self.shards[shard_of(bucket.hash)].lock().unwrap_or_else(PoisonError::into_inner);
        look(bucket, &mut shard)
    }
}

/// A request that counts for as long as this is not dropped; for good once it is kept.
pub(super) struct Reservation<'a> {
    pub(super) verdict: Verdict,
    /// Where and when, if it was admitted.
    counted: Option<(&'a BucketTable, Bucket, Tick)>,
}

impl Reservation<'_> {
    pub(super) fn keep(mut self) -> Verdict {
        self.counted = None;
        self.verdict
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if let Some((table, bucket, then)) = self.counted {
            table.take_back(bucket, then);
        }
    }
}

/// By the upper bits: the place within the shard is found by the lower ones.
fn shard_of(hash: u32) -> usize {
    ((u64::from(hash) * SHARDS as u64) >> 32) as usize
}

/// A bucket and its hash, which is worked out once for the shard and the place in it. 32 bits fill a gap that would be
/// empty otherwise.
#[derive(Clone, Copy)]
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
#[derive(Default)]
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

#[derive(Default)]
struct Shard {
    windows: IndexMap<Hashed, Window, BuildHasherDefault<Passed>>,
    /// Where the next look for an entry to drop begins, so that looks spread over the whole shard.
    hand: usize,
}

impl Shard {
    /// The window of a bucket, a new one if need be; none if there is no room.
    fn window(&mut self, bucket: Hashed, limit: u32, now: Tick, entries: usize) -> Option<&mut Window> {
        let place = match self.windows.get_index_of(&bucket) {
            Some(place) => place,
            None => {
                self.drop_those_over(now);
                if self.windows.len() >= entries && !self.drop_least_used(now) {
                    return None;
                }
                self.windows.insert_full(bucket, Window::new(limit)).0
            }
        };
        Some(&mut self.windows[place])
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
            // None is used less that still counts. To stop here also keeps those at their limit from gathering side by side,
            // where a newcomer would meet nobody else.
            if used <= 1 && used < window.limit {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::{Class, Subject};
    use std::net::IpAddr;

    fn bucket(n: u32) -> Bucket {
        let address = IpAddr::from(n.to_be_bytes());
        Bucket { class: Class::Public, subject: Subject::Network(address.into()) }
    }

    fn shard(table: &BucketTable, n: u32) -> usize {
        shard_of(table.hasher.hash_one(bucket(n)) as u32)
    }

    #[test]
    fn a_full_table_drops_the_least_used_and_never_one_at_its_limit() {
        let table = BucketTable::new(SHARDS * 4);
        let at = |seconds: u64| Tick::from_micros(seconds * 1_000_000);
        let home = shard(&table, 0);
        let mut mates = (0..).filter(|n| shard(&table, *n) == home);
        let mut next = || mates.next().unwrap();
        let check = |n, seconds| table.check(bucket(n), 3, at(seconds)).is_some_and(|verdict| verdict.admitted);

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
        // Now fill the shard with exhausted ones: there is no room for a newcomer, rather than another's place.
        let full: Vec<_> = (0..4).map(|_| next()).collect();
        for n in &full {
            while check(*n, 4) {}
        }
        assert!(!check(next(), 5));
        assert!(check(next(), 65), "and once their minute is over there is room again");
    }

    #[test]
    fn entries_whose_minute_is_over_go_by_themselves() {
        let table = BucketTable::new(1 << 16);
        for n in 0..20_000 {
            table.check(bucket(n), 60, Tick::from_micros(u64::from(n)));
        }
        for n in 20_000..60_000 {
            table.check(bucket(n), 60, Tick::from_micros(3 * 60_000_000));
        }
        let held: usize = table.shards.iter().map(|shard| shard.lock().unwrap().windows.len()).sum();
        assert!((40_000..40_100).contains(&held), "{held}");
    }
}
