//! What is measured, one file a section.
//!
//! Rates and processor time are taken in a closed loop, where a connection's next request waits for its answer; waiting
//! times (latency) at a fixed rate, as an open loop.

pub(crate) mod against;
pub(crate) mod campaigns;
pub(crate) mod fixed;
pub(crate) mod footprint;
pub(crate) mod growth;
pub(crate) mod instructions;
pub(crate) mod invite;
pub(crate) mod limiter;
pub(crate) mod mcp;
pub(crate) mod nodes;
pub(crate) mod postgres;
pub(crate) mod redis;
pub(crate) mod rewards;
pub(crate) mod sizes;
pub(crate) mod stats;

use crate::compare::Measured;
use crate::lab::Lab;
use crate::server::{Installation, Manner, Server};

/// The fixed rates: well below what either server can do on two cores, so that what is seen is waiting and not overload.
const READS_A_SECOND: u32 = 4000;
const WRITES_A_SECOND: u32 = 1000;

/// A server without the access log and one with it, on the same records.
fn both(installation: &Installation) -> anyhow::Result<(Server, Server)> {
    let plain = installation.serve(Manner::default())?;
    let logged = installation.serve(Manner { logged: true, ..Manner::default() })?;
    Ok((plain, logged))
}

/// The four goals of reads: processor time and rate, log off and on, beside the first variant.
fn ratios(lab: &mut Lab, all: &[Measured], goals: [&'static str; 4]) {
    let [bare, plain, logged] = all else { return };
    let of = [plain, logged, plain, logged];
    for (n, (goal, one)) in goals.into_iter().zip(of).enumerate() {
        let ratio = if n < 2 { one.cost_to(bare) } else { one.rate_to(bare) };
        lab.report.found_ratio(goal, &[bare, one], ratio);
    }
}
