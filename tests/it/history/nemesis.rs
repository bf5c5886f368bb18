//! The service with everything it stands on, and what befalls it: processes that die or stand still, a disk that is full, a
//! database and a Redis that go away, a clock that is moved.
//!
//! On SQLite there is one node; on PostgreSQL there are two, on a cluster and a Redis of their own. The disk is full in that
//! no file of the node may grow (RLIMIT_FSIZE), which asks for no rights and no mount. The clock is moved by libfaketime, for
//! the nodes alone; the clock that never steps is left alone, as it is by an operator who sets the time.

use super::Goal;
use super::client::World;
use super::plan::{Fault, Trouble};
use crate::machines::run;
use crate::once::shared_limits::Redis;
use crate::prelude::*;
use crate::records::create_database;

/// Everybody may do as much as they like: limits are not what is looked at here.
const FLAGS: [&str; 10] = [
    "--mail", "hold", "--key-per-minute", "1000000", "--public-per-minute", "1000000", "--form-mails-a-day", "0",
    "--show-members-from", "1",
];

/// Where the clock may be moved to: never as far as a week, after which sign-ups expire.
const CLOCKS: [&str; 6] = ["-1h", "+1h", "-3d", "+5d", "-90", "+90"];

pub(super) struct Deployment {
    nodes: Vec<Option<Server>>,
    /// What a node that is down left behind.
    homes: Vec<Option<Home>>,
    below: Option<Below>,
    clock: tempfile::TempDir,
}

/// The files of the records, with what was in them.
pub(super) struct Disk([(PathBuf, Vec<u8>); 2]);

/// What nodes on PostgreSQL stand on.
struct Below {
    cluster: Cluster,
    redis: Redis,
}

impl Deployment {
    /// On the backend of this run.
    pub(super) fn start() -> Self {
        let home = Home::new();
        match home.records() {
            Records::Sqlite { .. } => Self::of(None, vec![home]),
            Records::Postgres { .. } => Self::on_postgres(),
        }
    }

    /// On a cluster of its own.
    fn on_postgres() -> Self {
        let (cluster, redis) = (Cluster::primary(), Redis::start());
        create_database(&cluster.url("postgres"), "hall");
        let records = Records::Postgres { store: cluster.url("hall"), limits: redis.url() };
        Self::of(Some(Below { cluster, redis }), vec![Home::sharing(&records), Home::sharing(&records)])
    }

    fn of(below: Option<Below>, homes: Vec<Home>) -> Self {
        let clock = tempfile::tempdir().unwrap();
        set_clock(clock.path(), "+0");
        let nodes = homes.iter().map(|_| None).collect();
        let mut deployment = Self { nodes, homes: homes.into_iter().map(Some).collect(), below, clock };
        (0..deployment.nodes.len()).for_each(|node| deployment.start_node(node));
        deployment
    }

    pub(super) fn kinds(&self) -> &'static [Fault] {
        match self.below {
            None => &[Fault::NodeKilled, Fault::NodeFrozen, Fault::DiskFull, Fault::ClockMoved],
            Some(_) => &[
                Fault::NodeKilled,
                Fault::NodeFrozen,
                Fault::ClockMoved,
                Fault::PostgresKilled,
                Fault::PostgresStopped,
                Fault::RedisKilled,
            ],
        }
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Server> {
        self.nodes.iter().flatten()
    }

    fn start_node(&mut self, node: usize) {
        let home = self.homes[node].take().unwrap();
        // A node that may not write past the limit is told so by the call, not by a signal.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_unionhall")]);
        command.env_clear().current_dir(home.path()).envs(home.records().settings());
        command
            .env("LD_PRELOAD", libfaketime().expect("./test.sh installs libfaketime"))
            .env("FAKETIME_TIMESTAMP_FILE", self.clock.path().join("clock"));
        command.envs([("FAKETIME_NO_CACHE", "1"), ("DONT_FAKE_MONOTONIC", "1"), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")]);
        self.nodes[node] = Some(Server::start_as(command, home, &FLAGS));
    }

    fn end_node(&mut self, node: usize, signal: &str) {
        let Some(server) = self.nodes[node].take() else { return };
        let id = server.id();
        self.homes[node] = Some(match signal {
            "KILL" => {
                server.signal("KILL");
                server.into_home()
            }
            _ => server.stop().1,
        });
        // What libfaketime leaves behind of a process that could not tidy up.
        for name in [format!("faketime_shm_{id}"), format!("sem.faketime_sem_{id}")] {
            let _gone = std::fs::remove_file(Path::new("/dev/shm").join(name));
        }
    }

    /// Everybody finishes what they have begun and starts again, so that nothing is under way any more.
    pub(super) fn restart(&mut self) {
        for node in 0..self.nodes.len() {
            self.end_node(node, "TERM");
            self.start_node(node);
        }
    }

    /// Kills the only node and gives what is on its disk then; the node starts again.
    pub(super) fn copy_disk(&mut self, world: &World) -> Disk {
        let data = self.nodes[0].as_ref().unwrap().data();
        self.end_node(0, "KILL");
        let disk = Disk(["unionhall.db", "unionhall.db-wal"].map(|name| {
            let path = data.join(name);
            let bytes = std::fs::read(&path).unwrap_or_default();
            (path, bytes)
        }));
        self.start_node(0);
        self.publish(world);
        disk
    }

    /// Kills the only node, and its disk forgets whatever was written since the copy was made. No service survives that: it is
    /// how the checker is shown to find what is lost.
    pub(super) fn forget_since(&mut self, disk: &Disk, world: &World) {
        self.end_node(0, "KILL");
        for (path, bytes) in &disk.0 {
            std::fs::write(path, bytes).unwrap();
        }
        self.start_node(0);
        self.publish(world);
    }

    fn publish(&self, world: &World) {
        *world.nodes.lock().unwrap() = self.nodes.iter().map(|node| Some(node.as_ref()?.address)).collect();
    }

    fn begin(&mut self, fault: Fault, choice: u64) {
        let node = usize::try_from(choice % self.nodes.len() as u64).unwrap();
        let below = self.below.as_mut();
        match fault {
            Fault::NodeKilled => self.end_node(node, "KILL"),
            Fault::NodeFrozen => self.signal(node, "STOP"),
            Fault::DiskFull => self.limit_files(node, choice),
            Fault::ClockMoved => {
                let to = CLOCKS[usize::try_from(choice % CLOCKS.len() as u64).unwrap()];
                set_clock(self.clock.path(), to);
            }
            Fault::PostgresKilled => below.unwrap().cluster.kill(),
            Fault::PostgresStopped => below.unwrap().cluster.stop(),
            Fault::RedisKilled => below.unwrap().redis.kill(),
        }
    }

    fn mend(&mut self, fault: Fault, choice: u64) {
        let node = usize::try_from(choice % self.nodes.len() as u64).unwrap();
        let below = self.below.as_mut();
        match fault {
            Fault::NodeKilled => self.start_node(node),
            Fault::NodeFrozen => self.signal(node, "CONT"),
            Fault::DiskFull => self.prlimit(node, "unlimited"),
            Fault::ClockMoved => set_clock(self.clock.path(), "+0"),
            Fault::PostgresKilled | Fault::PostgresStopped => below.unwrap().cluster.start_again(),
            Fault::RedisKilled => below.unwrap().redis.start_again(),
        }
    }

    /// One that was killed in the same trouble hears nothing.
    fn signal(&self, node: usize, name: &str) {
        if let Some(server) = &self.nodes[node] {
            server.signal(name);
        }
    }

    /// Some are at their limit at once, some after a few more pages.
    fn limit_files(&self, node: usize, choice: u64) {
        let Some(server) = &self.nodes[node] else { return };
        let log = std::fs::metadata(server.data().join("unionhall.db-wal")).map_or(0, |file| file.len());
        self.prlimit(node, &(log + choice % 5_000).to_string());
    }

    fn prlimit(&self, node: usize, bytes: &str) {
        if let Some(server) = &self.nodes[node] {
            run(Command::new("prlimit").args(["--pid", &server.id().to_string(), &format!("--fsize={bytes}:")]));
        }
    }

    /// Injects the faults until the run has reached its goal and each kind of fault has occurred; counts them by kind.
    pub(super) fn trouble(
        &mut self,
        world: &World,
        troubles: impl Iterator<Item = Trouble>,
        at_least: usize,
        goal: Goal,
    ) -> BTreeMap<Fault, usize> {
        let mut counts = BTreeMap::new();
        let lasts = u64::try_from(goal.lasts.as_micros()).unwrap();
        let tell = |what: &str, fault: Fault| {
            println!("{:8.3} s: {fault:?} {what}", Duration::from_micros(world.time()).as_secs_f64());
        };
        for (turn, trouble) in troubles.enumerate() {
            std::thread::sleep(trouble.calm);
            if world.time() >= lasts && turn >= at_least && world.acknowledged() >= goal.acknowledged {
                break;
            }
            for fault in &trouble.faults {
                self.begin(*fault, trouble.choice);
                tell("has begun", *fault);
                *counts.entry(*fault).or_default() += 1;
                self.publish(world);
            }
            std::thread::sleep(trouble.lasts);
            let mut faults = trouble.faults;
            // No node starts without its database.
            faults.sort_by_key(|fault| !matches!(fault, Fault::PostgresKilled | Fault::PostgresStopped));
            for fault in &faults {
                self.mend(*fault, trouble.choice);
                tell("is mended", *fault);
                self.publish(world);
            }
        }
        world.over.store(true, Ordering::SeqCst);
        counts
    }

    /// A command of the operator's, as `unionhall` is run for it.
    pub(super) fn folder(&self) -> PathBuf {
        self.nodes().next().unwrap().data().parent().unwrap().to_owned()
    }

    pub(super) fn issue(&self, partner: &str) -> String {
        let mut command = unionhall(&self.folder());
        let records = self.nodes().next().unwrap().records();
        let output = command.envs(records.settings()).args(["keys", "issue", partner, "--new"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Deployment {
    fn drop(&mut self) {
        (0..self.nodes.len()).for_each(|node| self.end_node(node, "KILL"));
    }
}

/// Read by the nodes whenever they ask for the time, so it is put there whole.
fn set_clock(folder: &Path, to: &str) {
    std::fs::write(folder.join("new"), to).unwrap();
    std::fs::rename(folder.join("new"), folder.join("clock")).unwrap();
}

/// Where Debian keeps it, on whatever machine.
pub(crate) fn libfaketime() -> Option<PathBuf> {
    let places = std::fs::read_dir("/usr/lib").ok()?.map(|entry| entry.unwrap().path());
    places.map(|place| place.join("faketime/libfaketimeMT.so.1")).find(|path| path.exists())
}
