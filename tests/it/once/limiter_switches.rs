//! The two counts of a node that shares its limits: Redis' and its own. What they admit together while Redis comes and goes.
//!
//! Time is what the test says. Nothing here depends on when Redis is late: on a busy machine it is late more often.

use std::fmt::Debug;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::redis_server::{Link, Passage, Redis};
use super::shared_limits::{home, own_prefix};
use crate::prelude::*;
use unionhall::limiter::Verdict;

const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;

fn at(micros: u64) -> Tick {
    Tick::from_micros(micros)
}

/// A node on a Redis that others use too, with a link of its own to it.
struct Node {
    link: Link,
    limiter: RedisLimiter,
    changes: Arc<AtomicU32>,
    admitted: Vec<u64>,
    /// Those that Redis may count later than they were: it was asked, and did not answer in time.
    late: Vec<u64>,
}

impl Node {
    async fn new(redis: &Redis, prefix: &str, timeout: Duration) -> Self {
        let link = redis.another_link();
        let target = Target::parse(&format!("{}?prefix={prefix}", link.url())).unwrap();
        let manner = Manner { time: TimeOf::Caller, timeout };
        let changes = Arc::new(AtomicU32::new(0));
        let told = Arc::clone(&changes);
        let tell = move |_| {
            told.fetch_add(1, Ordering::SeqCst);
        };
        let limiter = RedisLimiter::connect(target, manner, MemoryLimiter::new(60), tell).await.unwrap();
        let node = Self { link, limiter, changes, admitted: Vec::new(), late: Vec::new() };
        node.counts(Scope::Shared).await;
        node
    }

    async fn counts(&self, scope: Scope) {
        let what = format!("the limits are {}", scope.name());
        until(&what, async || self.limiter.status().scope == scope).await;
    }

    async fn check(&self, limit: u32, now: u64) -> Verdict {
        self.limiter.check(home(), limit, at(now)).await
    }

    fn recent(&self, now: u64) -> usize {
        self.admitted.iter().filter(|then| now - **then <= MINUTE).count()
    }

    /// So many checks at once; gives how many of them it admitted alone. Held to the limit by the times of those before.
    async fn check_together(&mut self, count: usize, limit: usize, now: u64, is_only_one: bool) -> usize {
        let before = self.recent(now);
        let state = || (self.limiter.status().scope, self.changes.load(Ordering::SeqCst));
        let was = state();
        let alone = self.limiter.status().fallbacks;
        let verdicts = together((0..count).map(|_| self.check(limit as u32, now))).await;
        let alone = (self.limiter.status().fallbacks - alone) as usize;
        let now_is = state();
        let admitted = verdicts.iter().filter(|verdict| verdict.admitted).count();
        assert!(before + admitted <= limit, "{before} and {admitted} within a minute, and the limit is {limit}");
        let perhaps = self.late.iter().filter(|then| now - **then > MINUTE).count();
        if is_only_one {
            // What Redis counts is counted here too, so nothing is refused that has room here; unless Redis came to it late.
            let least = count.min((limit - before).saturating_sub(perhaps));
            assert!(admitted >= least, "{admitted} of {count} after {before}, {perhaps} late ones before that");
        }
        for (place, verdict) in verdicts.iter().filter(|verdict| verdict.admitted).enumerate() {
            let left = limit - before - place - 1;
            let told = verdict.remaining as usize;
            assert!(told <= left, "{told} told, and {left} left");
            assert!(!is_only_one || told + perhaps >= left, "{told} told, and {left} left");
        }
        self.admitted.extend(std::iter::repeat_n(now, admitted));
        let alone = alone.min(admitted);
        // Unless it had no connection all the time.
        if was.0 == Scope::Shared || was != now_is {
            self.late.extend(std::iter::repeat_n(now, alone));
        }
        alone
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// So much later, so many checks at once, by a node.
    Checks {
        pause: u64,
        count: usize,
        node: usize,
    },
    Set(usize, Passage),
    /// Redis has lost what it counted: it was restarted, or emptied, or needed the room.
    Forget,
    /// The link of a node is opened, and it counts in Redis again.
    Return(usize),
}

#[derive(Debug, Clone)]
struct Plan {
    nodes: usize,
    limit: usize,
    steps: Vec<Step>,
}

fn long_plans(nodes: usize) -> impl Strategy<Value = Plan> {
    plans(
        nodes,
        prop_oneof![3 => Just(0), 3 => 0..5 * SECOND, 2 => 0..MINUTE, 1 => Just(MINUTE), 1 => Just(MINUTE + 1)],
    )
}

fn short_plans(nodes: usize) -> impl Strategy<Value = Plan> {
    plans(nodes, 0..MINUTE / 80)
}

fn plans(nodes: usize, pause: impl Strategy<Value = u64>) -> impl Strategy<Value = Plan> {
    let checks = (pause, prop_oneof![4 => Just(1_usize), 1 => 2..20_usize], 0..nodes)
        .prop_map(|(pause, count, node)| Step::Checks { pause, count, node });
    let passages = vec![Passage::Open, Passage::AnswersWait, Passage::QuestionsWait, Passage::Closed];
    let set = (0..nodes, prop::sample::select(passages)).prop_map(|(node, passage)| Step::Set(node, passage));
    let step = prop_oneof![16 => checks, 3 => set, 1 => Just(Step::Forget), 1 => (0..nodes).prop_map(Step::Return)];
    (1..20_usize, prop::collection::vec(step, 20..80)).prop_map(move |(limit, steps)| Plan { nodes, limit, steps })
}

/// Carries a plan out and holds each node to the limit, and all of them to theirs.
async fn carry_out(redis: &Redis, plan: &Plan) {
    let mut operator = redis::Client::open(redis.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let (prefix, limit) = (own_prefix(), plan.limit);
    let mut nodes = Vec::new();
    for _ in 0..plan.nodes {
        nodes.push(Node::new(redis, &prefix, Duration::from_millis(10)).await);
    }
    let (mut now, mut alone, mut has_forgotten) = (MINUTE, Vec::new(), false);
    for step in &plan.steps {
        match *step {
            Step::Checks { pause, count, node } => {
                now += pause;
                let by_itself = nodes[node].check_together(count, limit, now, plan.nodes == 1).await;
                alone.extend(std::iter::repeat_n(now, by_itself));
                let all: usize = nodes.iter().map(|node| node.recent(now)).sum();
                let recently_alone = alone.iter().filter(|then| now - **then <= MINUTE).count();
                // A check that comes to Redis when it is more than a minute old is a clock that was set back, and it begins anew.
                // Its own clock, which it goes by but for such tests, has no such checks.
                let mut late = nodes.iter().flat_map(|node| &node.late);
                has_forgotten |= late.any(|then| now - then > MINUTE);
                assert!(has_forgotten || all <= limit + recently_alone, "{all} by all, {recently_alone} of them alone");
            }
            Step::Set(node, passage) => nodes[node].link.set(passage),
            Step::Forget => {
                has_forgotten = true;
                let key = format!("{prefix}v2:public:127.0.0.1");
                redis::cmd("DEL").arg(key).exec_async(&mut operator).await.unwrap();
            }
            Step::Return(node) => {
                nodes[node].link.set(Passage::Open);
                nodes[node].counts(Scope::Shared).await;
            }
        }
    }
}

/// Many plans, some at a time; those that fail are shown.
fn carry_out_many(cases: usize, strategy: impl Strategy<Value = Plan>) {
    let mut runner = TestRunner::default();
    let plans: Vec<_> = (0..cases).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect();
    let redis = &Redis::start();
    for some in plans.chunks(8) {
        std::thread::scope(|scope| {
            for plan in some {
                scope.spawn(move || {
                    let _shown = ShownOnPanic(plan);
                    block_on(carry_out(redis, plan));
                });
            }
        });
    }
}

struct ShownOnPanic<T: Debug>(T);

impl<T: Debug> Drop for ShownOnPanic<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("it was {:?}", self.0);
        }
    }
}

#[test]
fn one_node_holds_a_limit_whatever_redis_does() {
    needs!(RedisServer);
    carry_out_many(64, long_plans(1));
}

#[test]
fn of_three_nodes_each_holds_a_limit_whatever_redis_does() {
    needs!(RedisServer);
    carry_out_many(16, long_plans(3));
    carry_out_many(16, short_plans(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_is_what_the_scarcer_count_has_left() {
    needs!(RedisServer);
    let redis = Redis::start();
    let prefix = own_prefix();
    let (one, other) = (Node::new(&redis, &prefix, A_MINUTE).await, Node::new(&redis, &prefix, A_MINUTE).await);
    let told = |verdict: Verdict| (verdict.admitted, verdict.remaining, verdict.reset.as_micros() as u64);
    one.link.set(Passage::Closed);
    one.counts(Scope::Local).await;
    for n in 0..4 {
        assert_eq!(told(one.check(10, n * SECOND).await), (true, 9 - n as u32, MINUTE + 1 - n * SECOND));
    }
    one.link.set(Passage::Open);
    one.counts(Scope::Shared).await;
    // Redis knows nothing of these four.
    assert_eq!(told(other.check(10, 5 * SECOND).await), (true, 9, MINUTE + 1));
    assert_eq!(told(one.check(10, 6 * SECOND).await), (true, 5, MINUTE + 1 - 6 * SECOND));
    for n in 0..5 {
        assert!(other.check(10, (7 + n) * SECOND).await.admitted);
    }
    // Now it knows of more than this node: of seven, of which the oldest is six seconds old.
    assert_eq!(told(one.check(10, 12 * SECOND).await), (true, 2, MINUTE + 1 - 7 * SECOND));
    for left in [1, 0] {
        assert_eq!(one.check(10, 12 * SECOND).await.remaining, left);
    }
    // Refused by Redis, until its oldest is over; this node's own would have room.
    assert_eq!(told(one.check(10, 12 * SECOND).await), (false, 0, MINUTE + 1 - 7 * SECOND));
    assert_eq!(one.limiter.status().fallbacks, 4);
}

/// Only what is admitted has a place in a node's own count: neither what Redis refuses nor what nobody waits for any more.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_admitted_gives_its_place_back() {
    needs!(RedisServer);
    let redis = Redis::start();
    let prefix = own_prefix();
    let (one, other) = (Node::new(&redis, &prefix, A_MINUTE).await, Node::new(&redis, &prefix, A_MINUTE).await);
    for _ in 0..3 {
        assert!(other.check(3, 0).await.admitted);
    }
    for _ in 0..5 {
        assert!(!one.check(3, 0).await.admitted);
    }
    one.link.set(Passage::AnswersWait);
    let mut left = Box::pin(one.check(6, 0));
    let is_pending = std::future::poll_fn(|context| std::task::Poll::Ready(left.as_mut().poll(context).is_pending()));
    assert!(is_pending.await);
    drop(left);
    one.link.set(Passage::Closed);
    one.counts(Scope::Local).await;
    for left in [2, 1, 0] {
        let verdict = one.check(3, 0).await;
        assert_eq!((verdict.admitted, verdict.remaining), (true, left));
    }
    assert!(!one.check(3, 0).await.admitted);
}
