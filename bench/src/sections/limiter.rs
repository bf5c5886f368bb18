//! The rate limiter in memory beside governor, without a server around it (a microbenchmark): time a check, and memory
//! a key.

use std::process::Command;

use crate::goals::Finding;
use crate::lab::Lab;
use crate::limiter::{Both, HOT, KEYS};
use crate::server::output;
use crate::statistics::{Estimate, median, paired};

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    let mut both = Both::new();
    for (goal, what, below) in [("limiter.uniform", "1 M keys", KEYS), ("limiter.hot", "few keys", HOT)] {
        let rounds: Option<Vec<_>> = (0..lab.plan.rounds).map(|_| both.round(below)).collect();
        let Some(rounds) = rounds else {
            lab.report.found(goal, Finding::Void("a request was refused".to_owned()));
            lab.report.void(format!("limiter, {what}: a request was refused"));
            continue;
        };
        let ratios: Vec<f64> = rounds.iter().map(|(ours, theirs)| ours / theirs).collect();
        let (ours, theirs): (Vec<_>, Vec<_>) = rounds.into_iter().unzip();
        lab.report.note(format!(
            "limiter, {what}: {:.0} ns a check, governor {:.0} ns, each with the reading of its clock",
            median(ours),
            median(theirs)
        ));
        let estimate = paired(&ratios).unwrap_or(Estimate { value: f64::NAN, low: f64::NAN, high: f64::NAN });
        lab.report.found(goal, Finding::Measured(estimate));
        lab.progress.step();
    }
    drop(both);
    let bytes: f64 = output(Command::new(std::env::current_exe()?).arg("limiter-memory"))?.parse()?;
    lab.report.found("limiter.bytes", Finding::of(bytes));
    Ok(())
}
