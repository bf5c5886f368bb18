//! The same count as an MCP tool call beside REST, in both eras of MCP: the protocol's overhead in CPU time, and its
//! latency.

use anyhow::bail;

use super::READS_A_SECOND;
use crate::compare::Variant;
use crate::lab::Lab;
use crate::people::FEW;
use crate::server::Manner;
use crate::targets::{STATS, calling, reading};

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    let installation = lab.installation(FEW)?;
    let server = installation.serve(Manner::default())?;
    let mut variants = [
        Variant::new("REST stats", &server, reading(&server, STATS)),
        Variant::new("MCP getMemberStats, 2025-11-25", &server, calling(&server, false)),
        Variant::new("MCP getMemberStats, 2026-07-28", &server, calling(&server, true)),
    ];
    let all = lab.compare(&mut variants);
    lab.report.compared("mcp", &all, 0);
    let [rest, legacy, modern] = &all[..] else { bail!("three were compared") };
    let ratios = [legacy.cost_to(rest), modern.cost_to(rest)].into_iter().flatten();
    let dearer = ratios.max_by(|one, other| one.value.total_cmp(&other.value));
    lab.report.found_ratio("mcp.cpu", &[rest, legacy, modern], dearer);
    lab.waits(&mut variants, READS_A_SECOND);
    Ok(())
}
