//! How many refusals are logged where requests are not: a flood of them would fill the disk (48 MB in 6 s).

use crate::domain::time::Timestamp;

/// Told in a second: what comes after them says nothing that they do not.
const REFUSALS_A_SECOND: u32 = 50;

/// What is told of refusals in a second.
#[derive(Default)]
pub(super) struct Refusals {
    second: i64,
    told: u32,
    /// Not told since they were last told of.
    untold: u64,
}

impl Refusals {
    /// How many were not told before this one, which is to be told; none if it is not to be.
    pub(super) fn tell(&mut self, at: Timestamp) -> Option<u64> {
        let second = at.as_millis() / 1000;
        if second != self.second {
            (self.second, self.told) = (second, 0);
        }
        if self.told >= REFUSALS_A_SECOND {
            self.untold += 1;
            return None;
        }
        self.told += 1;
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_counted() {
        let (mut refusals, at) = (Refusals::default(), Timestamp::from_millis);
        let told = (0..100_000).filter(|n| refusals.tell(at(5000 + n % 1000)).is_some()).count();
        assert_eq!(told, 50);
        assert_eq!(refusals.tell(at(6000)), Some(99_950), "with how many there were");
        assert_eq!(refusals.tell(at(6001)), Some(0));
    }
}
