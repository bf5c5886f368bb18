//! The live count on SQLite beside bare hyper, without the access log and with it: throughput, CPU time a request and
//! latency of a GET that reads the records.

use super::{READS_A_SECOND, both, ratios};
use crate::compare::Variant;
use crate::lab::Lab;
use crate::people::FEW;
use crate::targets::{STATS, reading};

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    let installation = lab.installation(FEW)?;
    let (plain, logged) = both(&installation)?;
    let bare = lab.bare(&plain)?;
    let mut variants = [
        Variant::new("bare hyper, stats", &bare, reading(&bare, STATS)),
        Variant::new("stats, log off", &plain, reading(&plain, STATS)),
        Variant::new("stats, log on", &logged, reading(&logged, STATS)),
    ];
    let all = lab.compare(&mut variants);
    lab.report.compared("stats", &all, 0);
    ratios(lab, &all, ["stats.cpu", "stats.cpu.logged", "stats.rate", "stats.rate.logged"]);
    lab.waits(&mut variants, READS_A_SECOND);
    lab.check_log("stats", &logged)
}
