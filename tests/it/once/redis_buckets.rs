//! What lies in Redis for a bucket, and the batches that ask for it.

use std::time::Duration;

use redis::FromRedisValue;
use redis::aio::MultiplexedConnection;
use tokio::time::Instant;

use super::shared_limits::{Redis, SOON, home, limiter, redis_url};
use crate::server::{block_on, together};
use unionhall::domain::time::Tick;
use unionhall::limiter::memory::MemoryLimiter;
use unionhall::limiter::redis::{Manner, RedisLimiter, Target, TimeOf};
use unionhall::limiter::{Limiter, LimiterStatus, Scope};

const ZERO: Tick = Tick::from_micros(0);

/// Every check so far was decided in Redis.
const ALL_SHARED: LimiterStatus = LimiterStatus { scope: Scope::Shared, fallbacks: 0 };

/// A limiter with keys of its own in the Redis of the tests, and what an operator may do to these.
struct Bench {
    limiter: RedisLimiter,
    redis: MultiplexedConnection,
    prefix: String,
}

impl Bench {
    async fn new(time: TimeOf) -> Self {
        Self::prepared(time, async |_, _| {}).await
    }

    /// With what Redis holds before the limiter connects.
    async fn prepared(time: TimeOf, before: impl AsyncFnOnce(&mut MultiplexedConnection, &str)) -> Self {
        let url = redis_url();
        let (base, prefix) = url.split_once("?prefix=").unwrap();
        let mut redis = redis::Client::open(base).unwrap().get_multiplexed_async_connection().await.unwrap();
        before(&mut redis, prefix).await;
        let manner = Manner { time, timeout: SOON };
        let limiter = RedisLimiter::connect(Target::parse(&url).unwrap(), manner, MemoryLimiter::new(60), |_| {});
        Self { limiter: limiter.await.unwrap(), redis, prefix: prefix.to_owned() }
    }

    async fn admits(&self, limit: u32, now: Tick) -> bool {
        self.limiter.check(home(), limit, now).await.admitted
    }

    /// A command on the key of `home`.
    async fn on_key<T: FromRedisValue>(&mut self, command: &str, arguments: &[&str]) -> T {
        let key = format!("{}v2:public:127.0.0.1", self.prefix);
        redis::cmd(command).arg(key).arg(arguments).query_async(&mut self.redis).await.unwrap()
    }
}

fn second(n: u64) -> Tick {
    Tick::from_micros(n * 1_000_000)
}

/// A large limit is no large key, and what is over is not kept.
#[test]
fn keys_are_small() {
    block_on(async {
        let mut bench = Bench::new(TimeOf::Redis).await;
        for _ in 0..5000 {
            assert!(bench.admits(1_000_000, ZERO).await);
        }
        // A limit that is lowered counts what was admitted before.
        assert!(!bench.admits(5000, ZERO).await);
        assert_eq!(bench.limiter.check(home(), 5002, ZERO).await.remaining, 1);
        // Five full groups of a thousand, and the head with the newest.
        assert_eq!(bench.on_key::<usize>("STRLEN", &[]).await, 5 * 8 + 40);

        let mut bench = Bench::new(TimeOf::Caller).await;
        let mut longest = 0;
        for n in 0..600 {
            assert!(bench.admits(61, second(n)).await);
            longest = longest.max(bench.on_key::<usize>("STRLEN", &[]).await);
        }
        assert!((60 * 8 + 40..=2 * 61 * 8 + 40).contains(&longest), "{longest}");
        // After a minute of silence nothing of it is left.
        assert!(bench.admits(61, second(700)).await);
        assert_eq!(bench.on_key::<usize>("STRLEN", &[]).await, 40);
        assert_eq!(bench.limiter.status(), ALL_SHARED);
    });
}

/// A key outlives its window by one to sixteen seconds; the expiry is not written with each request.
#[test]
fn keys_expire_soon_after_their_window() {
    block_on(async {
        let mut bench = Bench::new(TimeOf::Caller).await;
        assert!(bench.admits(60, second(0)).await);
        let left: u64 = bench.on_key("PTTL", &[]).await;
        assert!((50_000..=76_000).contains(&left), "{left}");
        // As if most of that had passed.
        let _set: bool = bench.on_key("PEXPIRE", &["40000"]).await;
        assert!(bench.admits(60, second(15)).await);
        let left: u64 = bench.on_key("PTTL", &[]).await;
        assert!(left <= 40_000, "{left}");
        assert!(bench.admits(60, second(16)).await);
        let left: u64 = bench.on_key("PTTL", &[]).await;
        assert!((50_000..=76_000).contains(&left), "{left}");
    });
}

#[test]
fn a_key_that_redis_evicted_or_that_is_not_ours_begins_anew() {
    block_on(async {
        let mut bench = Bench::new(TimeOf::Redis).await;
        for command in [("DEL", &[][..]), ("SET", &["short"]), ("SET", &[""])] {
            assert!(bench.admits(1, ZERO).await && !bench.admits(1, ZERO).await, "{command:?}");
            let _done: redis::Value = bench.on_key(command.0, command.1).await;
        }
        assert!(bench.admits(1, ZERO).await);
        assert_eq!(bench.limiter.status(), ALL_SHARED);
    });
}

/// Nodes of before and after an upgrade count side by side: neither meets the other's keys, which no command of its own can read.
#[test]
fn keys_of_the_form_before_are_left_alone() {
    block_on(async {
        let list = async |redis: &mut MultiplexedConnection, key: String| {
            redis::cmd("RPUSH").arg(key).arg("1763400000000000:0:60").exec_async(redis).await.unwrap();
        };
        let mut bench = Bench::prepared(TimeOf::Redis, async |redis, prefix| {
            list(redis, format!("{prefix}probe")).await;
            list(redis, format!("{prefix}public:127.0.0.1")).await;
        })
        .await;
        assert!(bench.admits(2, ZERO).await && bench.admits(2, ZERO).await && !bench.admits(2, ZERO).await);
        assert_eq!(bench.limiter.status(), ALL_SHARED);
        for name in ["probe", "public:127.0.0.1"] {
            let key = format!("{}{name}", bench.prefix);
            let groups: Vec<String> =
                redis::cmd("LRANGE").arg(key).arg(0).arg(-1).query_async(&mut bench.redis).await.unwrap();
            assert_eq!(groups, ["1763400000000000:0:60"], "{name}");
        }
    });
}

#[test]
fn a_script_that_redis_forgot_is_told_it_again() {
    block_on(async {
        let redis = Redis::start();
        let limiter = limiter(&redis, SOON).await;
        let mut operator = redis::Client::open(redis.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
        for limit in [30, 60] {
            redis::cmd("SCRIPT").arg("FLUSH").exec_async(&mut operator).await.unwrap();
            let verdicts = together((0..50).map(|_| limiter.check(home(), limit, ZERO))).await;
            assert_eq!(verdicts.iter().filter(|verdict| verdict.admitted).count(), 30);
        }
        assert_eq!(limiter.status(), ALL_SHARED);
    });
}

/// What waits while Redis is busy goes to it in few calls.
#[test]
fn checks_that_are_ready_together_share_a_round_trip() {
    block_on(async {
        let redis = Redis::start();
        let limiter = limiter(&redis, SOON).await;
        let mut operator = redis::Client::open(redis.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
        redis::cmd("CONFIG").arg("RESETSTAT").exec_async(&mut operator).await.unwrap();
        redis.signal("STOP");
        let all_ask = together((0..1000).map(|_| limiter.check(home(), 700, ZERO)));
        // Polled after them, so all of them wait by then.
        let (verdicts, ()) = tokio::join!(all_ask, async { redis.signal("CONT") });
        assert_eq!(verdicts.iter().filter(|verdict| verdict.admitted).count(), 700);
        assert_eq!(limiter.status(), ALL_SHARED);
        let told: String = redis::cmd("INFO").arg("commandstats").query_async(&mut operator).await.unwrap();
        let calls = told.split_once("cmdstat_evalsha:calls=").unwrap().1;
        let calls: u32 = calls[..calls.find(',').unwrap()].parse().unwrap();
        // One that went first, four for the rest; and each second there is a beat.
        assert!((4..=30).contains(&calls), "{calls}");
    });
}

/// The time of a check runs from when it was asked, not from when its batch could go.
#[test]
fn a_check_behind_a_late_batch_waits_no_longer_than_another() {
    block_on(async {
        const TIMEOUT: Duration = Duration::from_secs(2);
        let redis = Redis::start();
        let limiter = limiter(&redis, TIMEOUT).await;
        redis.signal("STOP");
        let check = async |after| {
            tokio::time::sleep(after).await;
            let asked = Instant::now();
            assert!(limiter.check(home(), 5, ZERO).await.admitted);
            asked.elapsed()
        };
        let (first, behind) = tokio::join!(check(Duration::ZERO), check(TIMEOUT / 2));
        for waited in [first, behind] {
            assert!((TIMEOUT * 9 / 10..TIMEOUT * 5 / 4).contains(&waited), "{waited:?}");
        }
        assert_eq!(limiter.status().fallbacks, 2);
    });
}
