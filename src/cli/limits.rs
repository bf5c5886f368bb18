//! Which limiter there is, and who hears of its changes.

use std::sync::Arc;

use anyhow::anyhow;

use crate::config::LimitsAddress;
use crate::limiter::Limiter;
use crate::limiter::memory::MemoryLimiter;
use crate::limiter::redis::{Change, Manner, RedisLimiter};
use crate::log::Log;

/// Makes the limiter, connected where it can be. A Redis that is away keeps nothing from starting; one that turns us away
/// does, because that is a mistake in the settings.
pub(super) async fn make_limiter(
    limits: LimitsAddress,
    public_per_minute: u32,
    log: &Log,
) -> anyhow::Result<Arc<dyn Limiter>> {
    let local = MemoryLimiter::new(public_per_minute);
    let target = match limits {
        LimitsAddress::Memory => return Ok(Arc::new(local)),
        LimitsAddress::Redis(target) => *target,
    };
    let log = log.clone();
    let tell = move |change| match change {
        Change::Alone(cause) => log.problem(
            None,
            &format!(
                "the limits are not shared: {cause}; this node counts alone until Redis is back, which is told here"
            ),
        ),
        Change::Shared => log.note("the limits are shared again"),
    };
    let limiter = RedisLimiter::connect(target, Manner::default(), local, tell).await.map_err(|refused| {
        anyhow!(
            "Redis turns us away: {refused}; mend the address in --limits or UNIONHALL_LIMITS, or what it may do there"
        )
    })?;
    Ok(Arc::new(limiter))
}
