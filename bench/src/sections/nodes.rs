//! Three nodes on one PostgreSQL and one Redis of this machine, at a fixed rate (horizontal scaling): what a request costs the nodes,
//! the database and Redis together, and that limits are exact over all nodes. Beside one node that has a third of the load,
//! as where nodes are added because there is more to do; and beside one that has all of it, whose requests share more. And
//! confirmations from three nodes at once, which all add to one count of members: in batches beside one transaction each.
//!
//! The nodes of a turn are started for it: idle ones would ask the database now and then, and their share would be in every figure.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, bail};

use super::postgres;
use super::{READS_A_SECOND, WRITES_A_SECOND};
use crate::compare::{Measured, Sample};
use crate::lab::Lab;
use crate::load::{CONNECTIONS, Load, Pace, Target};
use crate::people::FEW;
use crate::records::Records;
use crate::server::{Installation, Manner, Server, output, processor_time};
use crate::services::{Postgres, Redis};
use crate::targets::{STATS, inviting, linking, reading};

/// So many nodes, and their part of a load.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Layout {
    nodes: u32,
    one_in: u32,
}

const ALONE: Layout = Layout { nodes: 1, one_in: 1 };
const THREE: Layout = Layout { nodes: 3, one_in: 1 };
const ONE_OF_THREE: Layout = Layout { nodes: 1, one_in: 3 };

/// The workers of a node look for work when it starts.
const STARTED_AFTER: Duration = Duration::from_secs(1);

/// Before a load counts: each node has its connections to the database, and these their prepared statements.
const WARM_UP: Duration = Duration::from_millis(300);

/// The limit that is tried, and how many requests try it: over all nodes, at once.
const A_MINUTE: u64 = 100;
const TRIES: u64 = 300;

type Make = fn(&Server, &Installation) -> Target;

/// What is asked for, its goals, and how often in a second.
const LOADS: [(&str, [&str; 2], u32, Make); 3] = [
    ("stats", ["nodes.stats.added", "nodes.stats"], READS_A_SECOND, |server, _| reading(server, STATS)),
    ("invite", ["nodes.invite.added", "nodes.invite"], WRITES_A_SECOND, |server, installation| {
        inviting(server, installation, "p")
    }),
    ("referral link", ["nodes.link.added", "nodes.link"], WRITES_A_SECOND, |server, installation| {
        linking(server, installation, FEW)
    }),
];

pub(crate) fn run(lab: &mut Lab) -> anyhow::Result<()> {
    let (Some(database), Some(redis)) = (Postgres::start(lab.plan)?, Redis::start()?) else {
        lab.report.skipped("nodes", "PostgreSQL or Redis is not installed");
        return Ok(());
    };
    let mut installation = postgres::installation(lab, &database, "nodes", FEW)?;
    let limits = ("UNIONHALL_LIMITS".to_owned(), redis.address.clone());
    installation.variables.push(limits.clone());
    let records = Records::Postgres(&database, "nodes");
    let count =
        "SELECT (SELECT count(*) FROM people) + (SELECT count(*) FROM sign_ups) + (SELECT count(*) FROM outbox)";
    let before = records.number(count)?;
    lab.progress.begin("one node and three");
    let mut samples: HashMap<(usize, Layout), Vec<Sample>> = HashMap::new();
    let (mut signed_up, mut next) = (0, 0);
    for _ in 0..lab.plan.rounds.div_ceil(2) {
        for layout in [ALONE, THREE, ONE_OF_THREE] {
            let servers = start(lab, &installation, layout.nodes, Manner::default())?;
            for (n, (name, _, a_second, make)) in LOADS.into_iter().enumerate() {
                let mut target = make(&servers[0], &installation);
                target.addresses = servers.iter().map(|server| server.address).collect();
                target.next = next;
                let a_second = a_second / layout.one_in;
                let mut load = Load::connect(&target, CONNECTIONS / layout.one_in as usize)?;
                let warm = load.run(Pace::Open { a_second, lasting: WARM_UP })?;
                let used = used(&servers, &database, &redis)?;
                let outcome = load.run(Pace::Open { a_second, lasting: lab.plan.slice })?;
                let used = spent(&used, &self::used(&servers, &database, &redis)?);
                if let Some(error) = warm.first_error.or(outcome.first_error) {
                    bail!("{name} on {} nodes: {error}", layout.nodes);
                }
                if name == "invite" {
                    signed_up += warm.answered + outcome.answered;
                    next = load.next;
                }
                let sample = Sample::of(outcome.answered, outcome.elapsed, Some(used))?;
                samples.entry((n, layout)).or_default().push(sample);
                lab.progress.step();
            }
            servers.into_iter().try_for_each(Server::stop)?;
        }
    }
    for (n, (name, goals, ..)) in LOADS.into_iter().enumerate() {
        let mut measured =
            |layout, what| Measured::of(format!("{name}, {what}"), samples.remove(&(n, layout)).unwrap_or_default());
        let three = measured(THREE, "3 nodes");
        let others =
            [measured(ONE_OF_THREE, "1 node, a third of the load"), measured(ALONE, "1 node, all of the load")];
        for (goal, other) in goals.into_iter().zip(&others) {
            lab.report.found_ratio(goal, &[other, &three], three.cost_to(other));
        }
        let [third, all] = others;
        lab.report.compared("nodes, their database and Redis", &[third, three, all], 0);
    }
    let added = records.number(count)? - before;
    let what = format!("nodes: {signed_up} sign-ups answered, {added} rows of people, sign-ups and mail");
    if added == 3 * signed_up {
        lab.report.note(what);
    } else {
        lab.report.void(what);
    }
    limit(lab, &installation)?;
    let place = format!("{} nodes", THREE.nodes);
    postgres::confirm(lab, &database, "nodes", &place, "nodes.confirm", |lab, mut installation, manner| {
        installation.variables.push(limits.clone());
        start(lab, &installation, THREE.nodes, manner)
    })
}

/// So many nodes, each with a folder of its own, once they have done what a start brings with it.
fn start(lab: &mut Lab, installation: &Installation, nodes: u32, manner: Manner) -> anyhow::Result<Vec<Server>> {
    let node = |_| Installation { data: lab.new_folder()?, ..installation.clone() }.serve(manner);
    let servers = (0..nodes).map(node).collect::<anyhow::Result<_>>()?;
    std::thread::sleep(STARTED_AFTER);
    Ok(servers)
}

/// More requests with one key than it has in a minute, over three nodes at once: exactly its limit is admitted.
fn limit(lab: &mut Lab, installation: &Installation) -> anyhow::Result<()> {
    let issue = ["keys", "issue", "Bench limited", "--per-minute", &A_MINUTE.to_string()];
    let key = output(installation.command().args(issue))?;
    let limited = Installation { keys: vec![key], ..installation.clone() };
    let servers = start(lab, installation, THREE.nodes, Manner::default())?;
    let mut target = linking(&servers[0], &limited, FEW);
    target.addresses = servers.iter().map(|server| server.address).collect();
    let outcome = Load::connect(&target, CONNECTIONS)?.run(Pace::Count(TRIES))?;
    let refused = outcome.first_error.context("nothing was refused")?;
    let what = format!(
        "nodes: {} of {TRIES} requests admitted by three nodes, of a key with {A_MINUTE} a minute",
        outcome.answered
    );
    if outcome.answered == A_MINUTE && refused.starts_with("HTTP/1.1 429 ") {
        lab.report.note(what);
    } else {
        lab.report.void(format!("{what}; the first refusal: {}", refused.lines().next().unwrap_or_default()));
    }
    servers.into_iter().try_for_each(Server::stop)
}

/// Processor time by process.
type Used = HashMap<u32, Duration>;

fn used(servers: &[Server], database: &Postgres, redis: &Redis) -> anyhow::Result<Used> {
    let processes = servers.iter().map(Server::id).chain(database.processes()?).chain([redis.process()]);
    // A process of the database may end while we look.
    Ok(processes.filter_map(|process| Some((process, processor_time(process).ok()?))).collect())
}

/// What was used since, by whoever is still there.
fn spent(before: &Used, after: &Used) -> Duration {
    after.iter().map(|(process, time)| time.saturating_sub(before.get(process).copied().unwrap_or_default())).sum()
}
