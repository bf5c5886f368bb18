//! Lengths and short numbers of charts: nothing divides by zero, and nothing overflows.

use crate::domain::figure::grouped;

/// How long a value is, where `most` is `length`; nothing where there is no most.
pub(super) fn part(value: u64, most: u64, length: u64) -> u64 {
    if most == 0 {
        return 0;
    }
    let part = u128::from(value.min(most)) * u128::from(length) / u128::from(most);
    u64::try_from(part).unwrap_or(length)
}

/// The next of 2, 4, 10, 20, 40, 100 …, so that a scale and its half are round.
pub(super) fn round_up(most: u64) -> u64 {
    let mut unit = 1_u64;
    loop {
        for times in [2, 4, 10] {
            match unit.checked_mul(times) {
                Some(round) if round >= most => return round,
                Some(_) => {}
                None => return u64::MAX,
            }
        }
        unit = unit.saturating_mul(10);
    }
}

/// A number in a few letters: 950, 1.2k, 35k, 4.1M.
pub(super) fn compact(number: u64) -> String {
    let mut unit = 1_u64;
    for letter in ["", "k", "M", "B", "T", "P"] {
        let next = unit.saturating_mul(1000);
        if number < next || letter == "P" {
            let whole = number / unit;
            let tenth = number % unit * 10 / unit;
            return match letter {
                "" => whole.to_string(),
                _ if whole < 10 && tenth > 0 => format!("{whole}.{tenth}{letter}"),
                _ => format!("{}{letter}", grouped(whole)),
            };
        }
        unit = next;
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let all = [0, 999, 1000, 1250, 9999, 12_345, 999_999, 2_000_000, 3_400_000_000, u64::MAX].map(compact);
        assert_eq!(all, ["0", "999", "1k", "1.2k", "9.9k", "12k", "999k", "2M", "3.4B", "18,446P"]);
        assert_eq!([0, 2, 3, 11, 41, u64::MAX].map(round_up), [2, 2, 4, 20, 100, u64::MAX]);
    }
}
