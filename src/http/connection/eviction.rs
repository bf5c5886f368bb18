//! Eviction: where places run short, whoever has been idle longest gives one up. It serves operators under attack from many
//! addresses, each of which keeps to its share.
//!
//! By the CLOCK algorithm: a hand goes around the places and passes over whoever was of use since it came by last. Being of use
//! costs nothing here; only coming, going and evicting take the lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whoever has a place.
pub trait Occupant {
    /// How often it was of use so far; none while it is, and must stay.
    fn uses(&self) -> Option<u32>;

    /// Asks it to go. Its place is free once it has.
    fn evict(&self);
}

pub struct EvictionTable<O>(Mutex<Slots<O>>);

struct Slots<O> {
    slots: Vec<Option<Occupied<O>>>,
    free: Vec<usize>,
    hand: usize,
}

struct Occupied<O> {
    occupant: Arc<O>,
    /// Its uses when the hand came by last; none since it came.
    seen: Option<u32>,
    /// It was asked to go.
    is_leaving: bool,
}

impl<O> Default for EvictionTable<O> {
    fn default() -> Self {
        Self(Mutex::new(Slots { slots: Vec::new(), free: Vec::new(), hand: 0 }))
    }
}

impl<O: Occupant> EvictionTable<O> {
    /// One more; where there are `most` already, another is asked to go.
    pub fn take_or_evict(&self, occupant: Arc<O>, most: usize) -> HeldPlace<'_, O> {
        let mut table = self.table();
        if table.slots.len() - table.free.len() >= most {
            table.evict();
        }
        let entry = Some(Occupied { occupant, seen: None, is_leaving: false });
        let index = match table.free.pop() {
            Some(index) => index,
            None => {
                table.slots.push(None);
                table.slots.len() - 1
            }
        };
        table.slots[index] = entry;
        HeldPlace { places: self, index }
    }

    fn table(&self) -> MutexGuard<'_, Slots<O>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O: Occupant> Slots<O> {
    /// Asks the first to go who was of no use since the hand came by last; nobody if all are of use.
    fn evict(&mut self) {
        for _ in 0..self.slots.len() * 2 {
            self.hand = (self.hand + 1) % self.slots.len();
            let Some(entry) = self.slots[self.hand].as_mut().filter(|entry| !entry.is_leaving) else { continue };
            let uses = entry.occupant.uses();
            if uses.is_some() && uses == entry.seen {
                entry.is_leaving = true;
                entry.occupant.evict();
                return;
            }
            entry.seen = uses;
        }
    }
}

/// A place, given back when it is dropped.
pub struct HeldPlace<'a, O: Occupant> {
    places: &'a EvictionTable<O>,
    index: usize,
}

impl<O: Occupant> Drop for HeldPlace<'_, O> {
    fn drop(&mut self) {
        let mut table = self.places.table();
        table.slots[self.index] = None;
        table.free.push(self.index);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use super::*;

    #[derive(Default)]
    struct Caller {
        uses: AtomicU32,
        is_busy: AtomicBool,
        is_evicted: AtomicBool,
    }

    impl Occupant for Caller {
        fn uses(&self) -> Option<u32> {
            (!self.is_busy.load(Ordering::Relaxed)).then(|| self.uses.load(Ordering::Relaxed))
        }

        fn evict(&self) {
            assert!(!self.is_evicted.swap(true, Ordering::Relaxed), "once");
        }
    }

    fn callers(count: usize) -> Vec<Arc<Caller>> {
        (0..count).map(|_| Arc::default()).collect()
    }

    fn evicted(callers: &[Arc<Caller>]) -> Vec<usize> {
        let is_evicted = |n: &usize| callers[*n].is_evicted.load(Ordering::Relaxed);
        (0..callers.len()).filter(is_evicted).collect()
    }

    #[test]
    fn the_longest_idle_goes_and_who_is_of_use_stays() {
        let (places, all) = (EvictionTable::default(), callers(8));
        all[1].is_busy.store(true, Ordering::Relaxed);
        let held: Vec<_> = all.iter().map(|caller| places.take_or_evict(Arc::clone(caller), 8)).collect();
        assert!(evicted(&all).is_empty());
        let newcomers = callers(5);
        let mut more = Vec::new();
        for newcomer in &newcomers {
            // Whoever makes requests all the time is never the one.
            all[5].uses.fetch_add(1, Ordering::Relaxed);
            more.push(places.take_or_evict(Arc::clone(newcomer), 8));
        }
        assert_eq!(evicted(&all).len(), 5);
        assert!(evicted(&all).iter().all(|n| ![1, 5].contains(n)), "{:?}", evicted(&all));
        assert!(evicted(&newcomers).is_empty(), "nor whoever came just now");
        drop((held, more));
        let table = places.table();
        assert_eq!((table.free.len(), table.slots.iter().flatten().count()), (13, 0));
    }

    #[test]
    fn nobody_goes_while_all_are_of_use() {
        let (places, all) = (EvictionTable::default(), callers(4));
        all.iter().for_each(|caller| caller.is_busy.store(true, Ordering::Relaxed));
        let _held: Vec<_> = all.iter().map(|caller| places.take_or_evict(Arc::clone(caller), 2)).collect();
        assert!(evicted(&all).is_empty());
    }
}
