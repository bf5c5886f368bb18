//! Instructions a request (the instruction count, Ir), which no neighbour on the machine can change: the difference
//! between a long and a short run under callgrind. The kernel's are not in it.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::lab::Lab;
use crate::load::{Load, Pace, Target};
use crate::people::FEW;
use crate::server::{Installation, Manner, Server, output};
use crate::targets::{CATEGORIES, PROGRAM, STATS, calling, inviting, linking, reading};

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    const SHORT: u64 = 100;
    const LONG: u64 = 600;
    if output(Command::new("valgrind").arg("--version")).is_err() {
        lab.report.skipped("instructions", "valgrind is not installed");
        return Ok(());
    }
    let installation = lab.installation(FEW)?;
    let plain = installation.serve(Manner::default())?;
    let answers = lab.bare(&plain)?;
    drop(answers);
    let file = lab.newest_folder().join("answers");
    plain.stop()?;
    type Make = fn(&Server, &Installation) -> Target;
    let scripts: [(&str, bool, Make); 8] = [
        ("bare hyper, categories", true, |server, _| reading(server, CATEGORIES)),
        ("categories", false, |server, _| reading(server, CATEGORIES)),
        ("referral program", false, |server, _| reading(server, PROGRAM)),
        ("stats", false, |server, _| reading(server, STATS)),
        ("invite", false, |server, installation| inviting(server, installation, "p")),
        ("referral link, known address", false, |server, installation| linking(server, installation, FEW)),
        ("MCP getMemberStats, 2025-11-25", false, |server, _| calling(server, false)),
        ("MCP getMemberStats, 2026-07-28", false, |server, _| calling(server, true)),
    ];
    // Each takes two starts under callgrind, seconds each.
    let most = if lab.plan.quick { 2 } else { scripts.len() };
    for (n, (name, is_bare, make)) in scripts.into_iter().take(most).enumerate() {
        lab.progress.begin(&format!("instructions of {name}"));
        let mut counts = Vec::new();
        for (length, requests) in [("s", SHORT), ("l", LONG)] {
            let out = lab.folder().join(format!("callgrind-{n}-{length}"));
            let flag = format!("--callgrind-out-file={}", out.display());
            let under = ["valgrind", "--tool=callgrind", flag.as_str()];
            let server = if is_bare {
                let mut command = Command::new(under[0]);
                command.args(&under[1..]).arg(std::env::current_exe()?).arg("bare").arg(&file);
                Server::start(&mut command, None)?
            } else {
                installation.serve_under(&under, Manner::default())?
            };
            let mut target = make(&server, &installation);
            // Numbers that the shorter run did not use.
            target.next = requests * 1_000_000;
            let outcome = Load::connect(&target, 1)?.run(Pace::Count(requests))?;
            if outcome.errors > 0 {
                lab.report.void(format!("instructions of {name}: {} errors", outcome.errors));
            }
            server.stop()?;
            counts.push(total(&out)?);
            lab.progress.step();
        }
        lab.report.instructions(name, (counts[1] - counts[0]) / (LONG - SHORT) as f64);
    }
    Ok(())
}

/// All instructions that a run under callgrind counted.
fn total(out: &Path) -> anyhow::Result<f64> {
    let text = std::fs::read_to_string(out)?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")));
    Ok(line.context("callgrind counted nothing")?.trim().parse()?)
}
