//! Limits kept in Redis beside limits in memory (distributed rate limiting): what it costs to share them.

use anyhow::bail;

use super::READS_A_SECOND;
use crate::compare::Variant;
use crate::lab::Lab;
use crate::people::FEW;
use crate::server::{Installation, Manner, output};
use crate::services::Redis;
use crate::targets::{STATS, reading};

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    let Some(redis) = Redis::start()? else {
        lab.report.skipped("redis", "Redis is not installed");
        return Ok(());
    };
    let installation = lab.installation(FEW)?;
    let shared = Installation {
        variables: vec![("UNIONHALL_LIMITS".to_owned(), redis.address.clone())],
        ..installation.clone()
    };
    // A server that does not know the setting would ignore it, and measure the wrong limiter.
    let knows = output(installation.command().args(["serve", "--help"]))?.contains("UNIONHALL_LIMITS");
    let server = match shared.serve(Manner::default()) {
        Ok(server) if knows => server,
        Ok(_) => {
            lab.report.skipped("redis", "this server does not know UNIONHALL_LIMITS");
            return Ok(());
        }
        Err(error) => {
            lab.report.skipped("redis", "this server does not take it");
            lab.report.note(format!("Redis: {error:#}"));
            return Ok(());
        }
    };
    let own = installation.serve(Manner::default())?;
    let mut variants = [
        Variant::new("stats, limits in memory", &own, reading(&own, STATS)),
        Variant::new("stats, limits in Redis", &server, reading(&server, STATS)),
    ];
    let all = lab.compare(&mut variants);
    lab.report.compared("redis", &all, 0);
    let [memory, redis] = &all[..] else { bail!("two were compared") };
    lab.report.found_ratio("redis.rate", &[memory, redis], redis.rate_to(memory));
    lab.report.found_ratio("redis.cpu", &[memory, redis], redis.cost_to(memory));
    lab.waits(&mut variants, READS_A_SECOND);
    Ok(())
}
