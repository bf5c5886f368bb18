//! Size on disk (binary size) and in memory (resident set size, RSS), and how long a start takes (startup time).

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::compare::Variant;
use crate::goals::Finding;
use crate::lab::Lab;
use crate::load::{Load, Pace, Request, ask};
use crate::people;
use crate::people::short;
use crate::server::{Installation, Manner};
use crate::statistics::median;
use crate::targets::{CATEGORIES, PROGRAM, STATS, calling, inviting, linking, reading, target};

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    const MB: f64 = 1e6;
    let binary = std::fs::metadata(&lab.binary)?.len() as f64;
    lab.report.found("binary", Finding::of(binary / MB));
    let folder = lab.binary.parent().and_then(Path::parent).context("the binary is in the target folder")?;
    let release = match std::fs::metadata(folder.join("release/unionhall")) {
        Ok(file) => Finding::of(file.len() as f64 / MB),
        Err(_) => Finding::Skipped("there is no target/release/unionhall".to_owned()),
    };
    lab.report.found("binary.release", release);

    let installation = lab.installation(0)?;
    let time = start(lab, &installation)?;
    lab.report.found("start.empty", Finding::of(time));
    let server = installation.serve(Manner::default())?;
    ask(server.address, &Request::get(STATS))?;
    std::thread::sleep(Duration::from_secs(1));
    lab.report.found("resident.idle", Finding::of(server.resident()? as f64 / MB));
    let requests = if lab.plan.quick { 50_000 } else { 1_000_000 };
    let mut mixed = target(&server, vec![Request::get(CATEGORIES), Request::get(STATS), Request::get(PROGRAM)]);
    mixed.requests = mixed.requests.iter().chain(&*calling(&server, false).requests).cloned().collect();
    let mut load = Load::connect(&mixed, 64)?;
    let outcome = load.run(Pace::Count(requests))?;
    if outcome.errors > 0 {
        lab.report.void(format!("footprint: {} errors", outcome.errors));
    }
    drop(load);
    std::thread::sleep(Duration::from_secs(1));
    lab.report.found("resident.used", Finding::of(server.resident()? as f64 / MB));
    server.stop()?;
    lab.progress.step();

    let most = lab.most();
    lab.progress.begin(&format!("starting with {} people", short(most)));
    let installation = lab.installation(most)?;
    let time = start(lab, &installation)?;
    lab.report.found("start", Finding::of(time));
    lab.progress.step();

    let before = people::rows(&installation.data.join("unionhall.db"))?;
    let server = installation.serve(Manner::default())?;
    let mut uses = [
        Variant::new("invite", &server, inviting(&server, &installation, "p")).signing_up(),
        Variant::new("link", &server, linking(&server, &installation, most)),
        Variant::new("stats", &server, reading(&server, STATS)),
    ];
    let used = lab.compare(&mut uses);
    for measured in &used {
        if let Some(why) = &measured.void {
            lab.report.void(format!("footprint: {}: {why}", measured.name));
        }
    }
    std::thread::sleep(Duration::from_secs(1));
    lab.report.found("resident.people", Finding::of(server.resident()? as f64 / MB));
    let after = people::rows(&installation.data.join("unionhall.db"))?;
    lab.check_rows("footprint", before, after, &[&server]);
    Ok(())
}

/// How long a start takes until the first answer, in milliseconds.
fn start(lab: &Lab, installation: &Installation) -> anyhow::Result<f64> {
    let starts = if lab.plan.quick { 5 } else { 21 };
    let mut times = Vec::new();
    for _ in 0..starts {
        let begun = Instant::now();
        let server = installation.serve(Manner::default())?;
        ask(server.address, &Request::get(STATS))?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        server.stop()?;
    }
    Ok(median(times))
}
