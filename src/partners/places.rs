//! Bounded places for waiting requests: a few for each partner, and a limit for all of them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::domain::partner::name::PartnerId;

pub(super) struct PartnerPlaces {
    max_each: u32,
    max_in_all: u32,
    /// Only partners that hold a place.
    taken: Mutex<HashMap<PartnerId, u32>>,
}

/// A place, held until it is dropped.
pub(super) struct PlaceOfPartner<'a> {
    places: &'a PartnerPlaces,
    partner: PartnerId,
}

impl PartnerPlaces {
    pub(super) fn new(max_each: u32, max_in_all: u32) -> Self {
        Self { max_each, max_in_all, taken: Mutex::default() }
    }

    /// None if the partner, or all partners together, hold as many as they may.
    pub(super) fn take(&self, partner: PartnerId) -> Option<PlaceOfPartner<'_>> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let in_all: u32 = taken.values().sum();
        let of_partner = taken.get(&partner).copied().unwrap_or(0);
        (of_partner < self.max_each && in_all < self.max_in_all).then(|| {
            taken.insert(partner, of_partner + 1);
            PlaceOfPartner { places: self, partner }
        })
    }
}

impl Drop for PlaceOfPartner<'_> {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.partner) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.partner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_few_for_each_and_for_all_and_come_back() {
        let places = PartnerPlaces::new(2, 3);
        let (acme, zoe) = (PartnerId(1), PartnerId(2));
        let first = places.take(acme).unwrap();
        let _second = places.take(acme).unwrap();
        assert!(places.take(acme).is_none());
        let _third = places.take(zoe).unwrap();
        assert!(places.take(zoe).is_none(), "all are taken");
        drop(first);
        assert!(places.take(acme).is_some() && places.take(zoe).is_some());
        assert_eq!(places.taken.lock().unwrap().len(), 2);
    }
}
