//! Places for look-ups of names, which callers share.
//!
//! The system's resolver takes a thread for each look-up and keeps it while a name's servers are silent, also after its asker gave
//! up. So a look-up keeps its place until its thread is free, and callers with silent names leave places to the others.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

/// Names that are looked up at once. The records of SQLite need threads, too.
const MAX_LOOKUPS: usize = 32;

/// How many more places a caller may take who holds some: each only while it holds less than half as many as are free. So one caller
/// gets a third of all places, many get less each, and a caller who holds none gets one while any is free.
pub fn fair_share(held: usize, free: usize) -> usize {
    free.saturating_sub(held * 2).div_ceil(3)
}

/// How many places each caller holds; only those who hold one.
#[derive(Clone)]
pub(super) struct Lookups(Arc<watch::Sender<HashMap<String, usize>>>);

/// A place, held until it is dropped.
pub struct LookupPlace {
    lookups: Lookups,
    caller: String,
}

impl Lookups {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::default()))
    }

    /// Waits for a place that the caller may take.
    pub(super) async fn place(&self, caller: &str) -> LookupPlace {
        // From before the first attempt, so that it misses no place that is given back.
        let mut given_back = self.0.subscribe();
        loop {
            if let Some(place) = self.take(caller) {
                return place;
            }
            // Fails only without a sender, and this is one.
            let _changed = given_back.changed().await;
        }
    }

    fn take(&self, caller: &str) -> Option<LookupPlace> {
        let mut may = false;
        self.0.send_if_modified(|held| {
            let free = MAX_LOOKUPS.saturating_sub(held.values().sum());
            may = fair_share(held.get(caller).copied().unwrap_or(0), free) > 0;
            if may {
                *held.entry(caller.to_owned()).or_default() += 1;
            }
            // Others wait for a place that is given back.
            false
        });
        may.then(|| LookupPlace { lookups: self.clone(), caller: caller.to_owned() })
    }
}

impl Drop for LookupPlace {
    fn drop(&mut self) {
        self.lookups.0.send_modify(|held| {
            if let Some(count) = held.get_mut(&self.caller) {
                *count -= 1;
                if *count == 0 {
                    held.remove(&self.caller);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_what_can_be_taken_one_by_one() {
        for places in 0..70 {
            for held in 0..70 {
                let (mut more, mut free) = (0, places);
                while (held + more) * 2 < free {
                    (more, free) = (more + 1, free - 1);
                }
                assert_eq!(fair_share(held, places), more, "{held} held and {places} free");
            }
        }
    }

    #[test]
    fn whoever_takes_much_leaves_some() {
        let lookups = Lookups::new();
        let all_of = |caller: &str| Vec::from_iter(std::iter::from_fn(|| lookups.take(caller)));
        let greedy: Vec<_> = (0..4).map(|n| all_of(&format!("greedy {n}"))).collect();
        assert_eq!(greedy.iter().map(Vec::len).collect::<Vec<_>>(), [11, 7, 5, 3]);
        // More of them get less each; one who has none still gets a place.
        let more: Vec<_> = (0..4).map(|n| all_of(&format!("more {n}"))).collect();
        assert_eq!(more.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1, 1]);
        assert!(lookups.take("greedy 0").is_none());
        drop((greedy, more));
        assert!(lookups.0.borrow().is_empty());
        assert_eq!(all_of("greedy 0").len(), 11);
    }

    #[tokio::test]
    async fn whoever_waits_gets_the_place_that_is_given_back() {
        let lookups = Lookups::new();
        let mut held = Vec::from_iter(std::iter::from_fn(|| lookups.take("one")));
        let (waiting, _) = tokio::join!(lookups.place("one"), async { drop(held.pop()) });
        assert!(lookups.take("one").is_none());
        drop(waiting);
        assert!(lookups.take("one").is_some());
    }
}
