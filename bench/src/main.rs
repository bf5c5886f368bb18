//! Measures unionhall on this machine: beside bare hyper, against its goals, at several sizes.
//!
//! `cargo run --profile dist -p bench -- --help` is the manual. Nothing here is part of the product.

mod bare;
mod compare;
mod goals;
mod lab;
mod limiter;
mod load;
mod machine;
mod people;
mod progress;
mod reaper;
mod records;
mod report;
mod sections;
mod server;
mod services;
mod statistics;
mod targets;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Parser, Subcommand, ValueEnum};

use crate::compare::Plan;
use crate::lab::Lab;
use crate::progress::Progress;

/// The product's own allocator, so that bare hyper is measured with the same.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures unionhall beside a bare hyper server, against its goals.
///
/// Builds the server with the `dist` profile, starts it beside bare hyper on this machine's loopback addresses, drives both in slices that
/// take turns, and prints ratios with 95 % intervals against every goal. Only ratios within one run mean anything; run it on
/// a machine that does nothing else. A run with errors or with wrong numbers of rows is void, says so and ends with 1.
///
/// A whole run writes BENCHMARKS.md; a quick or partial one writes nothing unless --write is
/// given. Records of up to two million people are made once and kept under target/bench (about 2 GB).
#[derive(Debug, Parser)]
#[command(name = "bench", max_term_width = 100)]
struct Settings {
    #[command(subcommand)]
    inner: Option<Inner>,

    /// Few short rounds, and at most 100 k people: to see whether everything works, not for figures.
    #[arg(long)]
    quick: bool,

    /// How long a slice of a full run lasts, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, conflicts_with = "quick")]
    slice: u64,

    /// Only this section; may be repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<Section>,

    /// Only this build beside another one of the product, request by request: what a change made slower. Writes nothing.
    #[arg(long, value_name = "BINARY", conflicts_with_all = ["only", "write"])]
    against: Option<PathBuf>,

    /// Measure this binary of the product instead of building one; its tables must be those of this checkout.
    #[arg(long, value_name = "BINARY", conflicts_with = "write")]
    server: Option<PathBuf>,

    /// Print what each statement took PostgreSQL while sign-ups and confirmations were measured (pg_stat_statements). To find causes, not
    /// for figures.
    #[arg(long, conflicts_with_all = ["against", "write"])]
    statements: bool,

    /// Write BENCHMARKS.md even from a quick or partial run.
    #[arg(long)]
    write: bool,
}

/// What the bench runs itself as.
#[derive(Debug, Subcommand)]
enum Inner {
    /// Bare hyper, answering what the file says.
    #[command(hide = true)]
    Bare { answers: PathBuf },
    /// Weighs the limiter's keys.
    #[command(hide = true)]
    LimiterMemory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// The two fixed listings beside bare hyper, log off and on.
    Static,
    /// The live count beside bare hyper, log off and on, on SQLite.
    Stats,
    /// The same count over MCP beside REST.
    Mcp,
    /// Sign-ups on SQLite: in batches beside one transaction each; and referral links.
    Invite,
    /// Every operation at 2 M people beside 10 k.
    Sizes,
    /// Sign-ups beside a campaign's mailing and count, at 2 M people.
    Campaigns,
    /// Sign-ups while half a million participants are checked and groups are formed, at 2 M people.
    Rewards,
    /// What members, partners and operators do besides, and workers and commands, at 2 M people beside 10 k.
    Growth,
    /// Reads, sign-ups and confirmations on PostgreSQL, where it is installed; confirmations with a standby too.
    Postgres,
    /// Limits kept in Redis, where it is installed.
    Redis,
    /// Three nodes beside one, on one PostgreSQL and one Redis, where they are installed; confirmations from three nodes.
    Nodes,
    /// The limiter in memory beside governor.
    Limiter,
    /// Binary, memory, start.
    Footprint,
    /// Instructions a request under callgrind, where valgrind is installed.
    Instructions,
}

impl Section {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Steps of progress: slices, mostly.
    fn steps(self, plan: Plan) -> usize {
        let rounds = plan.rounds;
        match self {
            Self::Static | Self::Stats | Self::Mcp => 6 * rounds,
            Self::Invite => 7 * rounds,
            Self::Sizes => 10 * rounds,
            Self::Postgres => 14 * rounds,
            Self::Redis => 4 * rounds,
            Self::Nodes => 11 * rounds.div_ceil(2),
            Self::Campaigns | Self::Rewards => 2 * rounds,
            Self::Growth => 21 * rounds,
            Self::Footprint => 3 * rounds,
            Self::Limiter | Self::Instructions => rounds,
        }
    }

    /// What its time is spent on.
    fn work(self, plan: Plan) -> String {
        let slices = format!("{} slices of {} s", self.steps(plan), plan.slice.as_secs_f64());
        match self {
            Self::Postgres | Self::Growth | Self::Nodes => format!("making records in PostgreSQL; {slices}"),
            Self::Instructions => "runs under callgrind".to_owned(),
            Self::Limiter => "rounds of a million checks".to_owned(),
            _ => slices,
        }
    }

    fn run(self, lab: &mut Lab) -> anyhow::Result<()> {
        match self {
            Self::Static => sections::fixed::run(lab),
            Self::Stats => sections::stats::run(lab),
            Self::Mcp => sections::mcp::run(lab),
            Self::Invite => sections::invite::run(lab),
            Self::Sizes => sections::sizes::run(lab),
            Self::Campaigns => sections::campaigns::run(lab),
            Self::Rewards => sections::rewards::run(lab),
            Self::Growth => sections::growth::run(lab),
            Self::Postgres => sections::postgres::run(lab),
            Self::Redis => sections::redis::run(lab),
            Self::Nodes => sections::nodes::run(lab),
            Self::Limiter => sections::limiter::run(lab),
            Self::Footprint => sections::footprint::run(lab),
            Self::Instructions => sections::instructions::run(lab),
        }
    }
}

fn main() -> ExitCode {
    // As the product does, so that bare hyper and the limiter's keys are weighed and measured with the same pages.
    #[cfg(target_os = "linux")]
    let _none_to_give = rustix::thread::disable_transparent_huge_pages(true);
    let settings = Settings::parse();
    let done = match &settings.inner {
        Some(Inner::Bare { answers }) => bare::run(answers).map(|()| true),
        Some(Inner::LimiterMemory) => limiter::bytes_a_key().map(|bytes| {
            println!("{bytes}");
            true
        }),
        None => measure(&settings),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs what was asked for; false if the run is void.
fn measure(settings: &Settings) -> anyhow::Result<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the bench has a folder above it")?;
    let binary = match &settings.server {
        Some(binary) => binary.canonicalize().with_context(|| format!("there is no {}", binary.display()))?,
        None => build(root)?,
    };
    let own = std::env::current_exe()?;
    let kept = own.parent().and_then(Path::parent).context("the bench is in the target folder")?.join("bench");
    let full = Plan { slice: Duration::from_secs(settings.slice.clamp(1, 60)), ..Plan::FULL };
    let plan = Plan { statements: settings.statements, ..if settings.quick { Plan::QUICK } else { full } };
    if let Some(other) = &settings.against {
        let other = other.canonicalize().with_context(|| format!("there is no {}", other.display()))?;
        // Nine loads on two builds.
        let mut lab = Lab::new(plan, Progress::new(plan.rounds * 18), binary, kept)?;
        sections::against::run(&mut lab, other)?;
        println!("{}", lab.report.tables());
        return Ok(!lab.report.is_void());
    }
    let whole = settings.only.is_empty();
    let sections: Vec<_> =
        Section::value_variants().iter().copied().filter(|one| whole || settings.only.contains(one)).collect();
    let steps = sections.iter().map(|section| section.steps(plan)).sum();
    let mut lab = Lab::new(plan, Progress::new(steps), binary, kept)?;
    let begun = Instant::now();
    for section in sections {
        lab.progress.begin(&section.name());
        let begun = Instant::now();
        if let Err(error) = section.run(&mut lab) {
            lab.report.void(format!("{}: {error:#}", section.name()));
            lab.progress.say(&format!("{}: {error:#}", section.name()));
        }
        lab.report.took(section.name(), begun.elapsed(), section.work(plan));
    }
    let machine = machine::describe(lab.folder());
    let Lab { report, progress, .. } = lab;
    drop(progress);
    println!("{}", report.tables());
    if settings.quick {
        println!(
            "A quick run shows that everything works, and no more: its rounds are few and short, and there are 100 k people \
             where a goal says 2 M."
        );
    }
    println!("It took {} seconds.", begun.elapsed().as_secs());
    if (whole && !settings.quick && settings.server.is_none() && !settings.statements) || settings.write {
        write(root, settings, &report, &machine)?;
    }
    Ok(!report.is_void())
}

fn write(
    root: &Path,
    settings: &Settings,
    report: &report::Report,
    machine: &[(&'static str, String)],
) -> anyhow::Result<()> {
    let mut command = "cargo run --profile dist -p bench".to_owned();
    if settings.quick || settings.slice != 2 || !settings.only.is_empty() {
        command.push_str(" --");
        command.push_str(if settings.quick { " --quick" } else { "" });
        if settings.slice != 2 {
            command.push_str(&format!(" --slice {}", settings.slice));
        }
        settings.only.iter().for_each(|section| command.push_str(&format!(" --only {}", section.name())));
        command.push_str(" --write");
    }
    std::fs::write(root.join("BENCHMARKS.md"), report::document(report, &command, machine))?;
    Ok(())
}

/// Builds the product as it is deployed; where its binary is.
fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args([
            "build",
            "--profile",
            "dist",
            "--locked",
            "--bin",
            "unionhall",
            "--message-format=json-render-diagnostics",
        ])
        .current_dir(root)
        .stderr(std::process::Stdio::inherit())
        .output()?;
    if !built.status.success() {
        bail!("the server does not build");
    }
    let messages = String::from_utf8(built.stdout)?;
    let executable =
        messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()).find_map(|message| {
            let is_ours = message["target"]["name"] == "unionhall";
            message["executable"].as_str().filter(|_| is_ours).map(PathBuf::from)
        });
    executable.context("cargo did not say where the binary is")
}
