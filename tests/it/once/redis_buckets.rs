//! What lies in Redis for a bucket, and the batches that ask for it.

use redis::FromRedisValue;
use redis::aio::MultiplexedConnection;

use super::redis_server::{Passage, Redis};
use super::shared_limits::{home, redis_url};
use crate::prelude::*;
use unionhall::limiter::LimiterStatus;

const ZERO: Tick = Tick::from_micros(0);

/// Every check so far was decided in Redis.
const ALL_SHARED: LimiterStatus = LimiterStatus { scope: Scope::Shared, fallbacks: 0 };

const HOME: &str = "v2:public:127.0.0.1";

/// A limiter once it counts in Redis, which alone decides: there is no room in memory. Time is what the test says.
async fn limiter(url: &str) -> RedisLimiter {
    let (target, manner) = (Target::parse(url).unwrap(), Manner { time: TimeOf::Caller, timeout: A_MINUTE });
    let limiter = RedisLimiter::connect(target, manner, MemoryLimiter::with_entries(0, 0), |_| {}).await.unwrap();
    until("the limiter counts in Redis", async || limiter.status().scope == Scope::Shared).await;
    limiter
}

/// A limiter with keys of its own in the Redis of the tests, and what an operator may do to these.
struct Bench {
    limiter: RedisLimiter,
    redis: MultiplexedConnection,
    prefix: String,
}

impl Bench {
    async fn new() -> Self {
        Self::prepared(async |_, _| {}).await
    }

    /// With what Redis holds before the limiter connects.
    async fn prepared(before: impl AsyncFnOnce(&mut MultiplexedConnection, &str)) -> Self {
        let url = redis_url();
        let (base, prefix) = url.split_once("?prefix=").unwrap();
        let mut redis = redis::Client::open(base).unwrap().get_multiplexed_async_connection().await.unwrap();
        before(&mut redis, prefix).await;
        Self { limiter: limiter(&url).await, redis, prefix: prefix.to_owned() }
    }

    async fn admits(&self, limit: u32, now: Tick) -> bool {
        self.limiter.check(home(), limit, now).await.admitted
    }

    /// A command on the key of `home`.
    async fn on_key<T: FromRedisValue>(&mut self, command: &str, arguments: &[&str]) -> T {
        let key = format!("{}{HOME}", self.prefix);
        redis::cmd(command).arg(key).arg(arguments).query_async(&mut self.redis).await.unwrap()
    }

    async fn time(&mut self) -> u64 {
        let (seconds, micros): (u64, u64) = redis::cmd("TIME").query_async(&mut self.redis).await.unwrap();
        seconds * 1000 + micros / 1000
    }
}

fn second(n: u64) -> Tick {
    Tick::from_micros(n * 1_000_000)
}

/// A large limit is no large key, and what is over is not kept.
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_small() {
    needs!(Redis);
    let mut bench = Bench::new().await;
    for _ in 0..5 {
        let verdicts = together((0..1000).map(|_| bench.limiter.check(home(), 1_000_000, ZERO))).await;
        assert!(verdicts.iter().all(|verdict| verdict.admitted));
    }
    // A limit that is lowered counts what was admitted before.
    assert!(!bench.admits(5000, ZERO).await);
    assert_eq!(bench.limiter.check(home(), 5002, ZERO).await.remaining, 1);
    // Five full groups of a thousand, and the head with the newest.
    assert_eq!(bench.on_key::<usize>("STRLEN", &[]).await, 5 * 8 + 40);

    let mut bench = Bench::new().await;
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
}

/// A key outlives its window by one to sixteen seconds; the expiry is not written with each request.
#[tokio::test(flavor = "multi_thread")]
async fn keys_expire_soon_after_their_window() {
    needs!(Redis);
    const KEPT: u64 = 76_000;
    let mut bench = Bench::new().await;
    let admits_and_renews = async |bench: &mut Bench, now| {
        let before = bench.time().await;
        assert!(bench.admits(60, now).await);
        let left: u64 = bench.on_key("PTTL", &[]).await;
        let passed = bench.time().await - before + 1;
        assert!((KEPT.saturating_sub(passed)..=KEPT).contains(&left), "{left} ms, and {passed} have passed");
    };
    admits_and_renews(&mut bench, second(0)).await;
    let _set: bool = bench.on_key("PEXPIRE", &["3600000"]).await;
    assert!(bench.admits(60, second(15)).await);
    assert!(bench.on_key::<u64>("PTTL", &[]).await > KEPT, "within a quarter of the window it stays as it is");
    admits_and_renews(&mut bench, second(16)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_redis_evicted_or_that_is_not_ours_begins_anew() {
    needs!(Redis);
    let mut bench = Bench::new().await;
    for command in [("DEL", &[][..]), ("SET", &["short"]), ("SET", &[""])] {
        assert!(bench.admits(1, ZERO).await && !bench.admits(1, ZERO).await, "{command:?}");
        let _done: redis::Value = bench.on_key(command.0, command.1).await;
    }
    assert!(bench.admits(1, ZERO).await);
    assert_eq!(bench.limiter.status(), ALL_SHARED);
}

/// Nodes of before and after an upgrade count side by side: neither meets the other's keys, which no command of its own can read.
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_the_form_before_are_left_alone() {
    needs!(Redis);
    let list = async |redis: &mut MultiplexedConnection, key: String| {
        redis::cmd("RPUSH").arg(key).arg("1763400000000000:0:60").exec_async(redis).await.unwrap();
    };
    let mut bench = Bench::prepared(async |redis, prefix| {
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
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_redis_forgot_is_told_it_again() {
    needs!(RedisServer);
    let redis = Redis::start();
    let limiter = limiter(&redis.url()).await;
    let mut operator = redis::Client::open(redis.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    for limit in [30, 60] {
        redis::cmd("SCRIPT").arg("FLUSH").exec_async(&mut operator).await.unwrap();
        let verdicts = together((0..50).map(|_| limiter.check(home(), limit, ZERO))).await;
        assert_eq!(verdicts.iter().filter(|verdict| verdict.admitted).count(), 30);
    }
    assert_eq!(limiter.status(), ALL_SHARED);
}

/// What waits while Redis is busy goes to it in few calls.
#[tokio::test(flavor = "multi_thread")]
async fn checks_that_are_ready_together_share_a_round_trip() {
    needs!(RedisServer);
    let redis = Redis::start();
    let limiter = limiter(&redis.url()).await;
    redis.link.set(Passage::AnswersWait);
    let all_ask = together((0..1000).map(|_| limiter.check(home(), 700, ZERO)));
    // Polled after them, so all of them wait by then.
    let (verdicts, ()) = tokio::join!(all_ask, async { redis.link.set(Passage::Open) });
    assert_eq!(verdicts.iter().filter(|verdict| verdict.admitted).count(), 700);
    assert_eq!(limiter.status(), ALL_SHARED);
    let ours = |batch: &&Vec<String>| batch.iter().any(|key| key.ends_with(HOME));
    let calls = redis.link.asked().iter().filter(ours).count();
    // Four of at most 256, and perhaps one that went first.
    assert!((4..=5).contains(&calls), "{calls}");
}
