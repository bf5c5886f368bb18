//! Servers beside each other, in slices that take turns.
//!
//! On a shared machine only ratios within one run mean anything, and only between moments close together: each round gives
//! every variant one slice, the reference first, and a ratio is taken within its round.

use std::time::Duration;

use anyhow::bail;

use crate::load::{CONNECTIONS, Load, Outcome, Pace, Target};
use crate::progress::Progress;
use crate::server::Server;
use crate::statistics::{Estimate, median, paired, quantile};

/// How long and how often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub slice: Duration,
    pub rounds: usize,
    pub quick: bool,
    /// Whether PostgreSQL is to say what each statement took.
    pub statements: bool,
}

impl Plan {
    pub(crate) const FULL: Self = Self { slice: Duration::from_secs(2), rounds: 12, quick: false, statements: false };
    pub(crate) const QUICK: Self =
        Self { slice: Duration::from_millis(300), rounds: 3, quick: true, statements: false };
}

/// What takes turns with others: one line of a comparison.
pub(crate) trait Turn {
    fn name(&self) -> &str;

    /// One slice of the plan. An error makes the line void.
    fn take(&mut self, plan: Plan) -> anyhow::Result<Sample>;
}

/// Load on a server that is one line of a comparison.
pub(crate) struct Variant<'a> {
    pub name: String,
    /// More than one are nodes that share the load.
    servers: &'a [Server],
    pub target: Target,
    /// Every answer is one more sign-up in the records.
    pub signs_up: bool,
}

impl<'a> Variant<'a> {
    pub(crate) fn new(name: impl Into<String>, server: &'a Server, target: Target) -> Self {
        Self { name: name.into(), servers: std::slice::from_ref(server), target, signs_up: false }
    }

    pub(crate) fn of_nodes(name: impl Into<String>, servers: &'a [Server], target: Target) -> Self {
        let addresses = servers.iter().map(|server| server.address).collect();
        Self { name: name.into(), servers, target: Target { addresses, ..target }, signs_up: false }
    }

    pub(crate) fn signing_up(mut self) -> Self {
        self.signs_up = true;
        self
    }

    /// One stretch of load: what came of it, and the processor time that the server took for it.
    fn drive(&mut self, pace: Pace) -> anyhow::Result<(Outcome, Duration)> {
        let mut load = Load::connect(&self.target, CONNECTIONS)?;
        // Each connection has been served once before it counts.
        let warm = load.run(Pace::Count(CONNECTIONS as u64))?;
        let processor_time = || self.servers.iter().map(Server::processor_time).sum::<anyhow::Result<Duration>>();
        let before = processor_time()?;
        let mut outcome = load.run(pace)?;
        let used = processor_time()?.saturating_sub(before);
        self.target.next = load.next;
        outcome.errors += warm.errors;
        outcome.first_error = outcome.first_error.or(warm.first_error);
        if let (true, Some(server)) = (self.signs_up, self.servers.first()) {
            server.signed_up.set(server.signed_up.get() + warm.answered + outcome.answered);
        }
        Ok((outcome, used))
    }
}

impl Turn for Variant<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn take(&mut self, plan: Plan) -> anyhow::Result<Sample> {
        let most = self.target.a_turn(plan.rounds);
        let (outcome, used) = self.drive(Pace::Closed { lasting: plan.slice, most })?;
        if outcome.errors > 0 {
            bail!(errors(&outcome));
        }
        Sample::of(outcome.answered, outcome.elapsed, Some(used))
    }
}

/// Work that is not asked for by requests: what a worker or a command does in one turn.
pub(crate) struct Job<'a> {
    pub name: String,
    pub work: Box<dyn FnMut() -> anyhow::Result<Sample> + 'a>,
}

impl Turn for Job<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn take(&mut self, _plan: Plan) -> anyhow::Result<Sample> {
        (self.work)()
    }
}

/// What one slice showed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    a_second: f64,
    /// Processor time of the server for one request, in microseconds; no number where nobody counted it.
    micros: f64,
}

impl Sample {
    /// So many in so long, and the processor time that they took.
    pub(crate) fn of(done: u64, elapsed: Duration, used: Option<Duration>) -> anyhow::Result<Self> {
        if done == 0 || elapsed.is_zero() {
            bail!("nothing was done");
        }
        let micros = used.map_or(f64::NAN, |used| used.as_secs_f64() * 1e6 / done as f64);
        Ok(Self { a_second: done as f64 / elapsed.as_secs_f64(), micros })
    }
}

/// What all rounds showed of one variant.
pub(crate) struct Measured {
    pub name: String,
    samples: Vec<Sample>,
    pub void: Option<String>,
}

impl Measured {
    /// What somebody else measured, round by round.
    pub(crate) fn of(name: String, samples: Vec<Sample>) -> Self {
        Self { name, samples, void: None }
    }

    pub(crate) fn a_second(&self) -> f64 {
        median(self.samples.iter().map(|sample| sample.a_second).collect())
    }

    pub(crate) fn micros(&self) -> f64 {
        median(self.samples.iter().map(|sample| sample.micros).collect())
    }

    pub(crate) fn rate_to(&self, reference: &Self) -> Option<Estimate> {
        self.ratio(reference, |sample| sample.a_second)
    }

    pub(crate) fn cost_to(&self, reference: &Self) -> Option<Estimate> {
        self.ratio(reference, |sample| sample.micros)
    }

    /// How much longer a request takes when as many as can be are under way.
    pub(crate) fn cost_at_rate(&self, reference: &Self) -> Option<Estimate> {
        self.ratio(reference, |sample| 1.0 / sample.a_second)
    }

    fn ratio(&self, reference: &Self, figure: impl Fn(&Sample) -> f64) -> Option<Estimate> {
        let pairs = self.samples.iter().zip(&reference.samples);
        paired(&pairs.map(|(own, other)| figure(own) / figure(other)).collect::<Vec<_>>())
    }
}

/// Runs all rounds, each line as fast as it can. One that fails is void and left out of the rounds that follow.
pub(crate) fn compare(turns: &mut [impl Turn], plan: Plan, progress: &mut Progress) -> Vec<Measured> {
    let mut all: Vec<Measured> =
        turns.iter().map(|turn| Measured { name: turn.name().to_owned(), samples: Vec::new(), void: None }).collect();
    for _ in 0..plan.rounds {
        for (turn, measured) in turns.iter_mut().zip(&mut all) {
            if measured.void.is_none() {
                match turn.take(plan) {
                    Ok(sample) => measured.samples.push(sample),
                    Err(error) => measured.void = Some(format!("{error:#}")),
                }
            }
            progress.step();
        }
    }
    all
}

fn errors(outcome: &Outcome) -> String {
    let first = outcome.first_error.clone().unwrap_or_default();
    let head: Vec<_> = first.lines().next().into_iter().chain(first.lines().last()).collect();
    format!("{} answers were not as expected, the first: {}", outcome.errors, head.join(" "))
}

/// Waiting times at a fixed rate, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waits {
    pub a_second: u32,
    pub median: u32,
    pub p99: u32,
}

/// Runs all rounds at a fixed rate, the variants taking turns.
pub(crate) fn waits(
    variants: &mut [Variant<'_>],
    a_second: u32,
    plan: Plan,
    progress: &mut Progress,
) -> Vec<anyhow::Result<Waits>> {
    let mut all: Vec<anyhow::Result<Vec<u32>>> = variants.iter().map(|_| Ok(Vec::new())).collect();
    for _ in 0..plan.rounds {
        for (variant, seen) in variants.iter_mut().zip(&mut all) {
            if let Ok(latencies) = seen {
                match variant.drive(Pace::Open { a_second, lasting: plan.slice }) {
                    Ok((outcome, _)) if outcome.errors > 0 => *seen = Err(anyhow::anyhow!(errors(&outcome))),
                    Ok((outcome, _)) => latencies.extend(outcome.latencies),
                    Err(error) => *seen = Err(error),
                }
            }
            progress.step();
        }
    }
    let of = |mut latencies: Vec<u32>| {
        latencies.sort_unstable();
        Waits { a_second, median: quantile(&latencies, 0.5), p99: quantile(&latencies, 0.99) }
    };
    all.into_iter().map(|seen| seen.map(of)).collect()
}
