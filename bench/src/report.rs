//! What was found, as tables: on the terminal, and in BENCHMARKS.md.

use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;

use crate::compare::{Measured, Waits};
use crate::goals::{Finding, GOALS, show};
use crate::statistics::Estimate;

/// One line of the table of ratios.
pub(crate) struct Row {
    section: &'static str,
    variant: String,
    against: String,
    a_second: f64,
    rate: Option<Estimate>,
    micros: f64,
    cost: Option<Estimate>,
    void: Option<String>,
}

#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
    waits: Vec<(String, Result<Waits, String>)>,
    findings: HashMap<&'static str, Finding>,
    instructions: Vec<(String, f64)>,
    notes: Vec<String>,
    times: Vec<(String, Duration, String)>,
    voids: Vec<String>,
}

impl Report {
    /// Adds a comparison: each variant beside `reference`.
    pub(crate) fn compared(&mut self, section: &'static str, all: &[Measured], reference: usize) {
        for measured in all {
            let other = &all[reference];
            let itself = std::ptr::eq(measured, other);
            let void = measured.void.clone().or_else(|| other.void.as_ref().map(|why| format!("its reference: {why}")));
            if let Some(why) = &measured.void {
                self.void(format!("{section}: {}: {why}", measured.name));
            }
            self.rows.push(Row {
                section,
                variant: measured.name.clone(),
                against: if itself { "—".to_owned() } else { other.name.clone() },
                a_second: measured.a_second(),
                rate: measured.rate_to(other).filter(|_| !itself),
                micros: measured.micros(),
                cost: measured.cost_to(other).filter(|_| !itself),
                void,
            });
        }
    }

    pub(crate) fn waited(&mut self, name: &str, waits: anyhow::Result<Waits>) {
        let waits = waits.map_err(|error| format!("{error:#}"));
        if let Err(why) = &waits {
            self.void(format!("{name} at a fixed rate: {why}"));
        }
        self.waits.push((name.to_owned(), waits));
    }

    pub(crate) fn found(&mut self, goal: &'static str, finding: Finding) {
        debug_assert!(GOALS.iter().any(|known| known.id == goal), "{goal}");
        self.findings.insert(goal, finding);
    }

    /// The ratio for a goal, or why there is none.
    pub(crate) fn found_ratio(&mut self, goal: &'static str, of: &[&Measured], ratio: Option<Estimate>) {
        let finding = match (of.iter().find_map(|measured| measured.void.clone()), ratio) {
            (Some(why), _) => Finding::Void(why),
            (None, Some(estimate)) => Finding::Measured(estimate),
            (None, None) => Finding::Void("no rounds".to_owned()),
        };
        self.found(goal, finding);
    }

    /// Nothing of a section was measured, for that reason.
    pub(crate) fn skipped(&mut self, section: &'static str, why: &str) {
        for goal in GOALS.iter().filter(|goal| goal.section == section) {
            self.findings.entry(goal.id).or_insert_with(|| Finding::Skipped(why.to_owned()));
        }
        self.note(format!("{section}: not measured: {why}"));
    }

    pub(crate) fn instructions(&mut self, what: &str, a_request: f64) {
        self.instructions.push((what.to_owned(), a_request));
    }

    /// How long a section took, and what for.
    pub(crate) fn took(&mut self, section: String, time: Duration, work: String) {
        self.times.push((section, time, work));
    }

    pub(crate) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    pub(crate) fn void(&mut self, why: String) {
        self.voids.push(why);
    }

    pub(crate) fn is_void(&self) -> bool {
        !self.voids.is_empty()
    }

    /// The tables, in Markdown: readable on a terminal too.
    pub(crate) fn tables(&self) -> String {
        let mut out = String::new();
        if !self.voids.is_empty() {
            out.push_str("## This run is void\n\n");
            self.voids.iter().for_each(|why| line(&mut out, format!("- {why}")));
            out.push('\n');
        }
        out.push_str("## Goals\n\n| | goal | measured | |\n|---|---|---|---|\n");
        for goal in GOALS {
            let (measured, verdict) = goal.verdict(self.findings.get(goal.id));
            line(&mut out, format!("| {} | {} | {measured} | {verdict} |", goal.what, goal.text()));
        }
        if !self.rows.is_empty() {
            out.push_str(
                "\n## Side by side\n\n| section | variant | beside | requests/s | ratio | CPU, µs a request | ratio |\n\
                 |---|---|---|---|---|---|---|\n",
            );
            for row in &self.rows {
                let Row { section, variant, against, a_second, micros, .. } = row;
                let show = |ratio: Option<Estimate>| ratio.map_or_else(|| "—".to_owned(), show);
                let (rate, cost) = match &row.void {
                    Some(_) => ("**void**".to_owned(), "**void**".to_owned()),
                    None => (show(row.rate), show(row.cost)),
                };
                let micros = if micros.is_nan() { "—".to_owned() } else { format!("{micros:.1}") };
                line(
                    &mut out,
                    format!("| {section} | {variant} | {against} | {a_second:.0} | {rate} | {micros} | {cost} |"),
                );
            }
        }
        if !self.waits.is_empty() {
            out.push_str("\n## Waiting, at a fixed rate\n\n| | requests/s | p50, µs | p99, µs |\n|---|---|---|---|\n");
            for (name, waits) in &self.waits {
                match waits {
                    Ok(Waits { a_second, median, p99 }) => {
                        line(&mut out, format!("| {name} | {a_second} | {median} | {p99} |"));
                    }
                    Err(_) => line(&mut out, format!("| {name} | | **void** | **void** |")),
                }
            }
        }
        if !self.instructions.is_empty() {
            out.push_str("\n## Instructions a request\n\n| | instructions | to bare hyper |\n|---|---|---|\n");
            let bare = self.instructions[0].1;
            for (what, count) in &self.instructions {
                line(&mut out, format!("| {what} | {count:.0} | {:.2} |", count / bare));
            }
        }
        if !self.notes.is_empty() {
            out.push_str("\n## Notes\n\n");
            self.notes.iter().for_each(|note| line(&mut out, format!("- {note}")));
        }
        if !self.times.is_empty() {
            out.push_str("\n## How long it took\n\n| section | seconds | for |\n|---|---|---|\n");
            for (section, time, work) in &self.times {
                line(&mut out, format!("| {section} | {} | {work} |", time.as_secs()));
            }
            let all: Duration = self.times.iter().map(|(_, time, _)| *time).sum();
            line(&mut out, format!("| all | {} | |", all.as_secs()));
        }
        out
    }
}

fn line(out: &mut String, text: String) {
    // Writing to a string cannot fail.
    let _infallible = writeln!(out, "{text}");
}

/// The whole of BENCHMARKS.md.
pub(crate) fn document(report: &Report, command: &str, machine: &[(&'static str, String)]) -> String {
    let mut out = String::from(
        "# Benchmarks\n\n\
         Written by the command below; do not edit. Only ratios between lines of one run mean anything: absolute figures are\n\
         this machine's. Every variant and its reference take turns in short slices, a ratio is taken within its round, and\n\
         what stands in brackets is its 95 % interval (bootstrap over the rounds). Load is 64 kept-alive connections from 16\n\
         addresses, without pipelining; CPU is user and system time of the server's threads. Limits and keys are in the path,\n\
         at a million a minute. Bare hyper answers the same body and as many bytes of headers. Sign-ups write their mail to\n\
         the outbox, from where nothing is sent meanwhile. Any answer but the right one and any row too few or too many voids a\n\
         run.\n\n",
    );
    line(&mut out, format!("```sh\n{command}\n```\n\n| machine | |\n|---|---|"));
    for (what, value) in machine {
        line(&mut out, format!("| {what} | {value} |"));
    }
    out.push('\n');
    out.push_str(&report.tables());
    out
}
