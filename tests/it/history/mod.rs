//! A history checker: clients sign people up, confirm, decline and ask while keys are revoked, sign-ups are paused and the
//! service is killed, frozen, starved and lied to about the time. Afterwards every acknowledged fact is held against the
//! records, the mail and the counts.
//!
//! A short run belongs to the suite. A long one is asked for by variables, and says how to replay it:
//!
//! ```sh
//! UNIONHALL_HISTORY_SECONDS=600 UNIONHALL_HISTORY_SEED=7 ./test.sh history::what_was
//! ```

mod check;
mod client;
mod events;
mod nemesis;
mod plan;
mod sabotage;
mod snapshot;
mod wire;

use self::check::{Violation, check};
use self::client::{Client, World, partner_name};
use self::events::{Event, Outcome};
use self::nemesis::Deployment;
pub(crate) use self::nemesis::libfaketime;
use self::plan::{Fault, PARTNERS, Steps};
use self::snapshot::Snapshot;
use crate::prelude::*;

const CLIENTS: u64 = 6;

pub(crate) fn number_from(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable}: {text:?}")))
}

/// When a run is over: at the earliest after so long, and once so much was acknowledged, however slow the machine is.
#[derive(Clone, Copy)]
struct Goal {
    lasts: Duration,
    acknowledged: usize,
}

/// What the clients did, while the service still runs.
struct Acted {
    deployment: Deployment,
    world: Arc<World>,
    faults: BTreeMap<Fault, usize>,
}

/// A run that is over: what was heard, and what is there.
struct Run {
    deployment: Deployment,
    history: Vec<Event>,
    records: Snapshot,
    faults: BTreeMap<Fault, usize>,
}

/// Clients and faults until the goal is reached, and the records once all is quiet again.
async fn live(deployment: Deployment, seed: u64, goal: Goal, clients: u64, kinds: &'static [Fault]) -> Run {
    act(deployment, seed, goal, clients, kinds).await.settle().await
}

/// Runs clients and faults until the goal is reached and every client has its last answer.
async fn act(mut deployment: Deployment, seed: u64, goal: Goal, clients: u64, kinds: &'static [Fault]) -> Acted {
    let lasting = (0..PARTNERS).map(|partner| deployment.issue(&partner_name(partner))).collect();
    let records = deployment.nodes().next().unwrap().records().clone();
    let nodes = deployment.nodes().map(|node| Some(node.address)).collect();
    let world = Arc::new(World::new(records, deployment.folder(), lasting, nodes));
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(Client::new(Arc::clone(&world), 0).run(plan::operator(seed)));
    for client in 1..=clients {
        let number = usize::try_from(client).unwrap();
        tasks.spawn(Client::new(Arc::clone(&world), number).run(Steps::of_client(seed, client)));
    }
    let befallen = Arc::clone(&world);
    let nemesis = tokio::task::spawn_blocking(move || {
        let faults = deployment.trouble(&befallen, plan::troubles(seed, kinds), kinds.len(), goal);
        (deployment, faults)
    });
    let (deployment, faults) = nemesis.await.unwrap();
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    Acted { deployment, world, faults }
}

impl Acted {
    /// Restarts the service and reads its records.
    async fn settle(mut self) -> Run {
        tokio::task::block_in_place(|| self.deployment.restart());
        let node = self.deployment.nodes().next().unwrap();
        let stats = node.get("/v1/stats").await.good()["memberCount"].as_u64().unwrap();
        assert!(self.world.records.are_sound());
        let history = std::mem::take(&mut *self.world.history.lock().unwrap());
        let records = Snapshot::read(&self.world.records, stats);
        Run { deployment: self.deployment, history, records, faults: self.faults }
    }
}

/// How many there were of each outcome, for a reader.
fn figures(history: &[Event], faults: &BTreeMap<Fault, usize>, violations: &[Violation]) -> String {
    let mut outcomes = [BTreeMap::new(), BTreeMap::new(), BTreeMap::new()];
    for event in history {
        let (kind, why) = match &event.outcome {
            Outcome::Acknowledged(_) => (0, String::new()),
            Outcome::Refused(why) => (1, format!("{why:?}")),
            Outcome::Unknown(why) => (2, why.clone()),
        };
        *outcomes[kind].entry(why.chars().take(70).collect::<String>()).or_insert(0_usize) += 1;
    }
    let [acknowledged, refused, unknown] = outcomes.each_ref().map(|reasons| reasons.values().sum::<usize>());
    let [_, reasons, causes] = outcomes;
    format!(
        "{} operations invoked: {acknowledged} acknowledged, {refused} refused {reasons:?}, {unknown} unknown {causes:?}; \
         faults: {faults:?}; violations: {}",
        history.len(),
        violations.len()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_there_whatever_befalls_the_service() {
    needs!(Faketime);
    let seconds = number_from("UNIONHALL_HISTORY_SECONDS", 8);
    let seed = number_from("UNIONHALL_HISTORY_SEED", 4);
    println!(
        "replay with UNIONHALL_HISTORY_SEED={seed} UNIONHALL_HISTORY_SECONDS={seconds} ./test.sh history::what_was"
    );
    let deployment = Deployment::start();
    let kinds = deployment.kinds();
    let goal = Goal { lasts: Duration::from_secs(seconds), acknowledged: 50 };
    let run = live(deployment, seed, goal, CLIENTS, kinds).await;
    let violations = check(&run.history, &run.records);
    println!("seed {seed}, {seconds} s: {}", figures(&run.history, &run.faults, &violations));
    assert!(violations.is_empty(), "seed {seed}: {violations:#?}");
    assert!(kinds.iter().all(|kind| run.faults.contains_key(kind)), "each kind befell it: {:?}", run.faults);
    let acknowledged = run.history.iter().filter(|event| event.acknowledged().is_some()).count();
    assert!(acknowledged >= 50, "there was something to look at: {acknowledged} of {}", run.history.len());
}
