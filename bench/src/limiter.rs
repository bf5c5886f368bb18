//! The limiter in memory beside governor: both are asked from one thread, in turns, on the same buckets.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use unionhall::clock::Clock;
use unionhall::limiter::memory::MemoryLimiter;
use unionhall::limiter::{Bucket, Class, Limiter, Subject};
use unionhall::reply::Reply;

pub(crate) const KEYS: u32 = 1_000_000;

/// Keys that are asked for over and over.
pub(crate) const HOT: u32 = 100;

/// As many as a bucket counts one by one; enough that no hot key is refused within a run: refusing costs less.
const LIMIT: u32 = 1000;

/// Checks a round over all keys, and over the hot ones: all rounds together stay well below what those are allowed.
const CHECKS: u32 = 40_000;
const HOT_CHECKS: u32 = 5_000;

pub(crate) fn bucket(n: u32) -> Bucket {
    let address = IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n));
    Bucket { class: Class::Public, subject: Subject::Network(address.into()) }
}

/// Both limiters, each with every key in it.
pub(crate) struct Both {
    ours: MemoryLimiter,
    clock: Clock,
    theirs: DefaultKeyedRateLimiter<Bucket>,
    random: u32,
}

impl Both {
    pub(crate) fn new() -> Self {
        let limit = NonZeroU32::new(LIMIT).unwrap_or(NonZeroU32::MIN);
        let mut both = Self {
            ours: MemoryLimiter::with_entries(KEYS as usize * 2, 16),
            clock: Clock::start(),
            theirs: RateLimiter::keyed(Quota::per_minute(limit)),
            random: 1,
        };
        for n in 0..KEYS {
            both.ask_ours(n);
            both.ask_theirs(n);
        }
        both
    }

    /// One check, with the reading of the clock that governor does inside.
    pub(crate) fn ask_ours(&mut self, n: u32) -> bool {
        match self.ours.check(bucket(n), LIMIT, self.clock.tick()) {
            Reply::Now(verdict) => verdict.is_some_and(|verdict| verdict.admitted),
            Reply::Later(_) | Reply::Mapped(..) => false,
        }
    }

    pub(crate) fn ask_theirs(&mut self, n: u32) -> bool {
        self.theirs.check_key(&bucket(n)).is_ok()
    }

    pub(crate) fn any(&mut self, below: u32) -> u32 {
        // A Lehmer step: spread well enough that no cache can guess the next.
        self.random = self.random.wrapping_mul(0x915f_77f5).wrapping_add(0x3c6e_f35f);
        ((u64::from(self.random) * u64::from(below)) >> 32) as u32
    }

    /// Nanoseconds a check, ours and theirs, in one round each; none if a request was refused.
    pub(crate) fn round(&mut self, below: u32) -> Option<(f64, f64)> {
        let checks = if below == HOT { HOT_CHECKS } else { CHECKS };
        let time = |both: &mut Self, ask: fn(&mut Self, u32) -> bool| {
            let begun = Instant::now();
            let mut admitted = 0;
            for _ in 0..checks {
                let n = both.any(below);
                admitted += u32::from(black_box(ask(both, n)));
            }
            (admitted == checks).then(|| begun.elapsed().as_secs_f64() * 1e9 / f64::from(checks))
        };
        Some((time(self, Self::ask_ours)?, time(self, Self::ask_theirs)?))
    }
}

/// What a key weighs that made 60 requests, in bytes; run in a process of its own, so that nothing else is weighed.
pub(crate) fn bytes_a_key() -> anyhow::Result<f64> {
    let me = std::process::id();
    let limiter = MemoryLimiter::with_entries(KEYS as usize * 2, 16);
    let clock = Clock::start();
    let before = crate::server::resident(me)?;
    for n in 0..KEYS {
        for _ in 0..60 {
            black_box(limiter.check(bucket(n), 60, clock.tick()));
        }
    }
    // The tables grew by doubling; the allocator gives back what they left behind after a while of ordinary use.
    let settled = Instant::now() + Duration::from_secs(2);
    while Instant::now() < settled {
        black_box(vec![0_u8; 100]);
        std::thread::sleep(Duration::from_millis(1));
    }
    let after = crate::server::resident(me)?;
    Ok((after - before) as f64 / f64::from(KEYS))
}
