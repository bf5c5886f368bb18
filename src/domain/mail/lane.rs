//! The lanes that mail leaves by (stochastic fairness queueing).

/// One of the lanes that mail leaves by, so that a flood delays itself: each has its turn, and none all the places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane(u8);

impl Lane {
    pub const COUNT: u8 = 64;

    /// The lane of whatever comes from one source.
    pub fn of(source: &[u8]) -> Self {
        Self((crc32fast::hash(source) % u32::from(Self::COUNT)) as u8)
    }

    /// Whether one more of this lane may go: none has more than half of the places.
    pub fn has_place(self, in_flight: impl Iterator<Item = Self>, places: usize) -> bool {
        in_flight.filter(|lane| *lane == self).count() < places.div_ceil(2)
    }

    pub fn number(self) -> i64 {
        i64::from(self.0)
    }

    pub fn from_number(number: i64) -> Self {
        Self((number.rem_euclid(i64::from(Self::COUNT))) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_few_and_even() {
        let mut count = [0; Lane::COUNT as usize];
        (0..64_000_u32).for_each(|n| count[Lane::of(&n.to_be_bytes()).number() as usize] += 1);
        assert!(count.iter().all(|count| (800..1200).contains(count)), "{count:?}");
        assert_eq!(Lane::from_number(Lane::of(b"Acme").number()), Lane::of(b"Acme"));
    }
}
