//! Which limiter there is, and who hears of its changes.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::{anyhow, bail};

use crate::config::LimitsAddress;
use crate::limiter::Limiter;
use crate::limiter::memory::MemoryLimiter;
use crate::limiter::redis::{Change, Manner, RedisLimiter, Target};
use crate::log::Log;

/// How often a Redis that is away is tried out, and the pause after each.
const TRIES: usize = 3;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// Makes the limiter, connected where it can be. A Redis that is away keeps nothing from starting; one that turns us away
/// does, because that is a mistake in the settings.
pub(in crate::cli) async fn make_limiter(
    limits: LimitsAddress,
    public_per_minute: u32,
    log: &Log,
) -> anyhow::Result<Arc<dyn Limiter>> {
    let target = match limits {
        LimitsAddress::Memory => return Ok(Arc::new(MemoryLimiter::new(public_per_minute))),
        LimitsAddress::Redis(target) => *target,
    };
    let log = log.clone();
    let limiter = connect(target, public_per_minute, move |change| match change {
        Change::Disconnected(cause) => log.warning(&format!(
            "the limits are not shared: {cause}; this node counts alone until Redis is back, which is logged here"
        )),
        Change::Shared => log.note("the limits are shared again"),
    });
    Ok(Arc::new(limiter.await?))
}

async fn connect(
    target: Target,
    public_per_minute: u32,
    tell: impl Fn(Change) + Send + Sync + 'static,
) -> anyhow::Result<RedisLimiter> {
    let local = MemoryLimiter::new(public_per_minute);
    RedisLimiter::connect(target, Manner::default(), local, tell).await.map_err(|refused| {
        anyhow!(
            "Redis refuses us: {refused}; correct the address in --limits or UNIONHALL_LIMITS, or the permissions of its user"
        )
    })
}

/// Whether Redis can be used as the service would use it, tried out on a bucket that is nobody's. One late answer is no
/// fault: the service would try again, too.
pub(in crate::cli) async fn try_redis(target: &Target, public_per_minute: u32) -> anyhow::Result<()> {
    let mut cause = String::new();
    for _ in 0..TRIES {
        let (sender, receiver) = mpsc::channel();
        // Nobody listens any more once the answer is there.
        let tell = move |change| drop(sender.send(change));
        let limiter = connect(target.clone(), public_per_minute, tell).await?;
        let first = receiver.try_recv();
        drop(limiter);
        match first {
            Ok(Change::Disconnected(why)) => cause = why,
            _ => return Ok(()),
        }
        tokio::time::sleep(BETWEEN_TRIES).await;
    }
    bail!(
        "Redis cannot be used: {cause}; start it, or correct the address in --limits or UNIONHALL_LIMITS: until then each node \
         counts alone"
    )
}
