//! What every limiter must do, whatever it counts in.

use std::collections::VecDeque;
use std::net::Ipv6Addr;

use proptest::prelude::*;

use super::shared_limits::redis_url;
use crate::prelude::*;
use unionhall::domain::api_key::KeyId;
use unionhall::limiter::{Bucket, Class, LimiterStatus, Subject, Verdict};

macro_rules! suite {
    ($($case:ident)*) => {
        mod memory {
            $(#[test]
            fn $case() {
                super::block_on(super::$case(&|| std::sync::Arc::new(super::MemoryLimiter::new(60))));
            })*
        }

        mod redis {
            $(#[test]
            fn $case() {
                needs!(Redis);
                super::block_on(super::$case(&super::in_redis));
            })*
        }

        mod node {
            $(#[test]
            fn $case() {
                needs!(Redis);
                super::block_on(super::$case(&super::in_redis_and_memory));
            })*
        }
    };
}

suite! {
    any_sixty_seconds_admit_the_limit_and_no_more
    refused_requests_do_not_count
    waiting_as_told_is_enough
    buckets_do_not_touch_each_other
    large_limits_are_never_passed_and_nearly_reached
    many_at_once_are_counted_one_by_one
    a_crowd_is_decided_in_the_order_it_asked
    a_bucket_at_its_limit_stays_exact_while_the_limit_changes
}

type Make<'a> = &'a dyn Fn() -> Arc<dyn Limiter>;

/// A limiter with keys of its own in the Redis of the tests, which alone decides: there is no room in memory.
fn in_redis() -> Arc<dyn Limiter> {
    beside(MemoryLimiter::with_entries(0, 0))
}

/// The same as a node has it: both counts must admit a request, and none refuses more for that.
fn in_redis_and_memory() -> Arc<dyn Limiter> {
    beside(MemoryLimiter::new(60))
}

fn beside(local: MemoryLimiter) -> Arc<dyn Limiter> {
    let connected = async {
        let (target, manner) =
            (Target::parse(&redis_url()).unwrap(), Manner { time: TimeOf::Caller, timeout: A_MINUTE });
        let limiter = RedisLimiter::connect(target, manner, local, |_| {}).await.unwrap();
        until("the limiter counts in Redis", async || limiter.status().scope == Scope::Shared).await;
        limiter
    };
    let limiter = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(connected));
    Arc::new(NeverAlone(limiter))
}

/// A limiter that was never without Redis: a verdict of the node alone would prove nothing.
struct NeverAlone(RedisLimiter);

impl Limiter for NeverAlone {
    fn check(&self, bucket: Bucket, limit: u32, now: Tick) -> Reply<'_, Verdict> {
        Reply::later(async move {
            let verdict = self.0.check(bucket, limit, now).await;
            assert_eq!(self.status(), LimiterStatus { scope: Scope::Shared, fallbacks: 0 });
            verdict
        })
    }

    fn status(&self) -> LimiterStatus {
        self.0.status()
    }
}

const SECOND: u64 = 1_000_000;

fn at(micros: u64) -> Tick {
    Tick::from_micros(micros)
}

fn network(class: Class, address: impl Into<IpAddr>) -> Bucket {
    Bucket { class, subject: Subject::Network(address.into().into()) }
}

fn home() -> Bucket {
    network(Class::Public, Ipv4Addr::LOCALHOST)
}

fn key(n: u8) -> KeyId {
    ApiKey::from_random(&[n; ApiKey::ENTROPY]).id()
}

/// Against a plain model, for any schedule: admitted exactly when fewer than N were within the last 60 seconds.
async fn any_sixty_seconds_admit_the_limit_and_no_more(make: Make<'_>) {
    let schedule = (1..8_u32, prop::collection::vec(prop_oneof![0..3_u64, 0..40 * SECOND, Just(60 * SECOND)], 1..60));
    let runner = &mut proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(200)
    });
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        runner.run(&schedule, |(limit, pauses)| {
            let limiter = make();
            let mut admitted: VecDeque<u64> = VecDeque::new();
            // A server that has been up for long: times no longer fit in 32 bits.
            let mut now = (1_u64 << 32) - 30 * SECOND;
            for pause in pauses {
                now += pause;
                let recent = admitted.iter().filter(|then| now - **then <= 60 * SECOND).count();
                let expected = recent < limit as usize;
                let verdict = runtime.block_on(limiter.check(home(), limit, at(now)));
                prop_assert_eq!(verdict.admitted, expected);
                if expected {
                    admitted.push_back(now);
                }
                let left = limit as usize - recent - usize::from(expected);
                prop_assert_eq!(verdict.remaining as usize, left);
            }
            Ok(())
        })
    })
    .unwrap();
}

async fn refused_requests_do_not_count(make: Make<'_>) {
    let limiter = make();
    assert!(limiter.check(home(), 1, at(0)).await.admitted);
    for second in 1..=60 {
        assert!(!limiter.check(home(), 1, at(second * SECOND)).await.admitted, "{second}");
    }
    assert!(limiter.check(home(), 1, at(60 * SECOND + 1)).await.admitted);
}

async fn waiting_as_told_is_enough(make: Make<'_>) {
    let limiter = make();
    let mut now = 0;
    for step in 0..10 {
        assert!(limiter.check(home(), 3, at(now)).await.admitted, "{step}");
        now += 7 * SECOND / 2;
        let verdict = loop {
            let verdict = limiter.check(home(), 3, at(now)).await;
            if !verdict.admitted {
                break verdict;
            }
        };
        let seconds = u64::from(verdict.reset_seconds());
        assert!((1..=60).contains(&seconds));
        assert!(verdict.reset.as_micros() as u64 <= seconds * SECOND);
        now += seconds * SECOND;
    }
}

async fn buckets_do_not_touch_each_other(make: Make<'_>) {
    let limiter = make();
    let v6 = |text: &str| network(Class::Public, text.parse::<Ipv6Addr>().unwrap());
    let of_key = |class, n| Bucket { class, subject: Subject::Key(key(n)) };
    let buckets = [
        home(),
        network(Class::Public, Ipv4Addr::new(127, 0, 0, 2)),
        network(Class::Action, Ipv4Addr::LOCALHOST),
        v6("2001:db8:0:1::1"),
        v6("2001:db8:0:2::1"),
        of_key(Class::Public, 1),
        of_key(Class::Action, 1),
        of_key(Class::Action, 2),
    ];
    for bucket in buckets {
        assert!(limiter.check(bucket, 1, at(5)).await.admitted, "{bucket:?}");
    }
    for bucket in buckets {
        assert!(!limiter.check(bucket, 1, at(6)).await.admitted, "{bucket:?}");
    }
    assert!(!limiter.check(v6("2001:db8:0:1:ffff::2"), 1, at(7)).await.admitted, "the same /64");
    assert!(!limiter.check(v6("::ffff:127.0.0.1"), 1, at(7)).await.admitted, "the same IPv4 address");
}

async fn large_limits_are_never_passed_and_nearly_reached(make: Make<'_>) {
    const AT_ONCE: u32 = 100;
    for limit in [999, 1000, 1001, 25_000] {
        let limiter = make();
        let mut admitted = VecDeque::new();
        let mut now = 0;
        // Twice the limit, spread unevenly over three minutes.
        for _ in 0..limit * 6 / AT_ONCE {
            now += 180 * SECOND / u64::from(limit * 6) * u64::from(AT_ONCE);
            let verdicts = together((0..AT_ONCE).map(|_| limiter.check(home(), limit, at(now)))).await;
            admitted.extend(verdicts.iter().filter(|verdict| verdict.admitted).map(|_| now));
            while admitted.front().is_some_and(|then| now - then > 60 * SECOND) {
                admitted.pop_front();
            }
            assert!(admitted.len() <= limit as usize);
        }
        assert!(admitted.len() >= limit as usize - limit as usize / 500 - 101, "{limit}: {}", admitted.len());
    }
}

async fn many_at_once_are_counted_one_by_one(make: Make<'_>) {
    let limiter = make();
    let admitted = Arc::new(AtomicU32::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..32 {
        let (limiter, admitted) = (Arc::clone(&limiter), Arc::clone(&admitted));
        tasks.spawn(async move {
            for i in 0..50 {
                if limiter.check(home(), 100, at(task * 31 + i)).await.admitted {
                    admitted.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(admitted.load(Ordering::Relaxed), 100);
}

/// Checks that are ready together, of one bucket, of some and of as many as there are checks.
async fn a_crowd_is_decided_in_the_order_it_asked(make: Make<'_>) {
    const CROWD: u32 = 900;
    for buckets in [1, 30, CROWD] {
        let limiter = make();
        let bucket = |n: u32| network(Class::Public, Ipv4Addr::from(0x0a00_0000 + n % buckets));
        let limit = CROWD / buckets / 3 * 2 + 1;
        let verdicts = together((0..CROWD).map(|n| limiter.check(bucket(n), limit, at(n.into())))).await;
        for (n, verdict) in (0..CROWD).zip(verdicts) {
            let before = n / buckets;
            let told = (verdict.admitted, verdict.remaining);
            assert_eq!(told, (before < limit, limit.saturating_sub(before + 1)), "{n} of {buckets} buckets");
        }
    }
}

/// For half an hour, far longer than anything of the bucket is kept.
async fn a_bucket_at_its_limit_stays_exact_while_the_limit_changes(make: Make<'_>) {
    let limiter = make();
    let mut admitted: VecDeque<u64> = VecDeque::new();
    let mut now = 0;
    for i in 0..4000_u64 {
        // Nine in ten follow each other closely; the tenth comes after a pause.
        now += if i % 10 == 0 { 4 * SECOND } else { i * 7919 % 100_000 };
        let limit = [100, 100, 37, 100, 150, 60, 1000][i as usize / 100 % 7];
        while admitted.front().is_some_and(|then| now - then > 60 * SECOND) {
            admitted.pop_front();
        }
        let verdict = limiter.check(home(), limit, at(now)).await;
        assert_eq!(verdict.admitted, admitted.len() < limit as usize, "{i}");
        if verdict.admitted {
            admitted.push_back(now);
        }
        assert_eq!(verdict.remaining as usize, (limit as usize).saturating_sub(admitted.len()), "{i}");
        let reset = admitted.front().map_or(0, |oldest| 60 * SECOND + 1 - (now - oldest));
        assert_eq!(verdict.reset, Duration::from_micros(reset), "{i}");
    }
}

/// The memory limiter alone: a million addresses, some of them busy, within the stated size.
#[tokio::test(flavor = "multi_thread")]
async fn a_million_addresses_fit_the_stated_size() {
    // In a process of its own, whichever runner this is: other tests' memory is not what is measured.
    if std::env::var_os("UNIONHALL_TEST_ALONE").is_none() {
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        alone
            .args(["--exact", "once::limiter_suite::a_million_addresses_fit_the_stated_size"])
            .env("UNIONHALL_TEST_ALONE", "1");
        let output = alone.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let resident = || resident(std::process::id());
    let limiter = MemoryLimiter::new(60);
    let before = resident();
    for n in 0..1_000_000_u64 {
        let address = Ipv6Addr::from(u128::from(0x2001_0db8_0000_0000 + n) << 64);
        let times = if n % 25 == 0 { 60 } else { 1 };
        for _ in 0..times {
            assert!(limiter.check(network(Class::Public, address), 60, at(n)).await.admitted);
        }
    }
    let grown = resident().saturating_sub(before);
    assert!(grown <= MemoryLimiter::NETWORK_BYTES, "{} MiB", grown >> 20);
}
