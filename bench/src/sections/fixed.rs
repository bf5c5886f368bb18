//! The two fixed listings beside bare hyper, without the access log and with it: throughput, CPU time a request and
//! latency of static GETs.

use super::{READS_A_SECOND, both, ratios};
use crate::compare::Variant;
use crate::lab::Lab;
use crate::people::FEW;
use crate::targets::listings;

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    let installation = lab.installation(FEW)?;
    let (plain, logged) = both(&installation)?;
    let bare = lab.bare(&plain)?;
    let mut variants = [
        Variant::new("bare hyper, the listings", &bare, listings(&bare)),
        Variant::new("the listings, log off", &plain, listings(&plain)),
        Variant::new("the listings, log on", &logged, listings(&logged)),
    ];
    let all = lab.compare(&mut variants);
    lab.report.compared("static", &all, 0);
    ratios(lab, &all, ["static.cpu", "static.cpu.logged", "static.rate", "static.rate.logged"]);
    lab.waits(&mut variants, READS_A_SECOND);
    lab.check_log("static", &logged)
}
