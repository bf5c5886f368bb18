//! Waits before a retry: exponential backoff, and jitter.

use std::time::Duration;

/// The wait after so many attempts: `first`, doubled each time, up to `max`.
pub fn exponential_backoff(attempts: u32, first: Duration, max: Duration) -> Duration {
    let factor = 2_u32.saturating_pow(attempts.saturating_sub(1));
    first.checked_mul(factor).unwrap_or(max).min(max)
}

/// A wait made longer by up to a fifth, so that a crowd of failures does not come back at once. The same `seed` (the row's
/// id) and attempt give the same wait.
pub fn backoff_with_jitter(wait: Duration, seed: u64, attempts: u32) -> Duration {
    let mixed = seed.wrapping_add(u64::from(attempts)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    wait + wait * u32::try_from(mixed).unwrap_or(0) / (5 * 256)
}
