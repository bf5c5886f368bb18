//! kill -9 at each step of a rotation, plain, after a leak and of a lost secret: said again it goes on and ends right, and what was out
//! in the world before is dead or alive as the table of SECURITY.md says.

use std::os::unix::process::ExitStatusExt;

use super::before::{Before, after_a_loss, in_the_table};
use super::*;

/// More than any of the commands has.
const MOST_STEPS: usize = 40;

/// What kills a process at one of its steps.
fn killer(folder: &Path) -> PathBuf {
    let (source, built) = ("tests/it/once/rotation/kill.c", folder.join("kill.so"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let done = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&built).arg(source).status().unwrap();
    assert!(done.success());
    built
}

impl Rotated {
    /// The nodes beside the first, of the same records and with the same file: on PostgreSQL one.
    fn nodes(&self) -> Vec<Server> {
        match self.server.records() {
            Records::Sqlite { .. } => Vec::new(),
            records @ Records::Postgres { .. } => vec![Self::serve(Home::sharing(records), &self.file)],
        }
    }

    fn rotations(&self) -> i64 {
        self.server.number("SELECT count(*) FROM secret_generations")
    }

    /// Rotates once for each step that such a command has, and is killed before that step; then says it again. Returns how many steps
    /// there were; the last rotation was not killed.
    async fn kill_at_each_step(&self, arguments: &[&str]) -> usize {
        let killer = killer(self.file.parent().unwrap());
        for step in 1..=MOST_STEPS {
            let (before, acts) = (self.ring().generations().count(), self.rotations());
            let output = self.command(arguments).env("LD_PRELOAD", &killer).env("KILL_AT", step.to_string()).output();
            let output = output.unwrap();
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            let is_killed = !output.status.success();
            if is_killed {
                assert_eq!(output.status.signal(), Some(9), "{step}: {said}");
                // What is left of it can be served, and status says how it is.
                if self.ring().generations().count() == before {
                    self.done(arguments, &["of the secret begins at", "stay valid"]);
                }
            }
            let ring = self.ring();
            assert_eq!((ring.generations().count(), self.rotations()), (before + 1, acts + 1), "{step}");
            self.done(&["status"], &["it makes everything new"]);
            let known = "SELECT fingerprint FROM secret_generations ORDER BY number DESC LIMIT 1";
            assert_eq!(self.server.rows(known)[0][0], ring.newest().fingerprint(), "{step}");
            let audited = self.server.number("SELECT count(*) FROM audit WHERE command = 'secret rotate'");
            assert_eq!(audited, acts + 1, "{step}");
            assert_eq!(self.left_behind(), Vec::<String>::new(), "{step}");
            let begins_at = ring.newest().begins_at.unwrap();
            wait_for!(async || Clock::start().now().time >= begins_at).await;
            if !is_killed {
                return step - 1;
            }
        }
        panic!("{MOST_STEPS} steps, and it still goes on");
    }

    /// What lies beside the file of the secret, and may hold another.
    fn left_behind(&self) -> Vec<String> {
        let name = self.file.file_name().unwrap().to_str().unwrap().to_owned();
        let entries = std::fs::read_dir(self.file.parent().unwrap()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|other| other.starts_with(&name) && *other != name && !other.ends_with(".lock")).collect()
    }

    /// Ends a node as a failing machine would, and starts another in its place.
    fn killed_and_started(self) -> Self {
        let Self { server, file, key } = self;
        server.signal("KILL");
        Self { server: Self::serve(server.into_home(), &file), file, key }
    }
}

async fn a_rotation_is_killed(home: Home, leaked: bool) {
    let union = Rotated::start(home);
    let (before, nodes) = (Before::of(&union).await, union.nodes());
    let arguments: &[&str] = if leaked { &["rotate", "--leaked", "--in", "0s"] } else { &["rotate", "--in", "0s"] };
    let steps = union.kill_at_each_step(arguments).await;
    assert!(steps >= 6, "its file twice, each put on the disk, and what it prints: {steps}");
    let generation = union.ring().newest().number;
    for node in nodes.iter().chain([&union.server]) {
        let says = format!("generation {generation} of the secret makes everything new");
        wait_for!(async || node.log().contains(&says)).await;
    }
    // What the rotations set off is done by nodes that were killed meanwhile.
    let union = if leaked { union.killed_and_started() } else { union };
    for (turn, node) in nodes.iter().chain([&union.server]).enumerate() {
        let alive = before.alive(&union, node, turn).await;
        assert_eq!(alive, in_the_table(leaked), "{leaked} {turn}");
    }
    before.are_recognized(&union, true).await;
    wait_for!(async || union.server.number("SELECT count(*) FROM secret_generations WHERE NOT done") == 0).await;
    let mailed = union.server.number("SELECT count(*) FROM outbox");
    let pending =
        union.server.number("SELECT count(*) FROM sign_ups WHERE state = 'pending' AND mailed_at IS NOT NULL");
    assert_eq!(mailed, if leaked { pending } else { 0 }, "each once, whatever was killed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_killed_at_each_step_goes_on_and_what_was_mailed_works() {
    needs!(Postgres, Redis);
    let [one, two] = homes();
    tokio::join!(a_rotation_is_killed(one, false), a_rotation_is_killed(two, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_after_a_leak_killed_at_each_step_goes_on_and_what_leaked_is_dead() {
    needs!(Postgres, Redis);
    let [one, two] = homes();
    tokio::join!(a_rotation_is_killed(one, true), a_rotation_is_killed(two, true));
}

/// Nodes that cannot write the file that they read are given one from elsewhere: killed at each step, and put in its place each time.
async fn a_rotation_to_another_place_is_killed(home: Home) {
    let union = Rotated::start(home);
    let (folder, killer) = (union.file.parent().unwrap().to_owned(), killer(union.file.parent().unwrap()));
    let to = folder.join("handed-out");
    let arguments = ["rotate", "--in", "0s", "--to", to.to_str().unwrap()];
    let mut kills = 0;
    loop {
        kills += 1;
        assert!(kills < MOST_STEPS);
        let (before, acts) = (union.ring().generations().count(), union.rotations());
        let mut command = union.command(&arguments);
        let killed = command.env("LD_PRELOAD", &killer).env("KILL_AT", kills.to_string()).output().unwrap();
        let said = String::from_utf8_lossy(&[killed.stdout, killed.stderr].concat()).into_owned();
        if !killed.status.success() {
            assert_eq!(killed.status.signal(), Some(9), "{kills}: {said}");
        }
        // Said again, also where it had done all but say so.
        union.done(&arguments, &["of the secret begins at", "put ", "handed-out in the place of the secret file"]);
        union.refused(&["rotate", "--leaked", "--in", "0s", "--to", to.to_str().unwrap()], &["generation"]);
        assert_eq!((union.ring().generations().count(), union.rotations()), (before, acts + 1), "{kills}");
        let written = Keyring::parse(&std::fs::read_to_string(&to).unwrap()).unwrap();
        assert_eq!(written.generations().count(), before + 1, "{kills}");
        std::fs::rename(&to, &union.file).unwrap();
        let mut left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.retain(|name| name.to_str().unwrap().starts_with("handed-out"));
        assert_eq!(left, ["handed-out.lock"], "{kills}");
        let begins_at = written.newest().begins_at.unwrap();
        wait_for!(async || Clock::start().now().time >= begins_at).await;
        union.done(&["status"], &["it makes everything new"]);
        if killed.status.success() {
            break;
        }
    }
    assert!(kills > 6, "its file twice, each put on the disk, and what it prints: {kills}");
    union.until_used(union.ring().newest().number).await;
    // A file that is in its place is no rotation that goes on.
    std::fs::copy(&union.file, &to).unwrap();
    union.refused(&arguments, &["handed-out already exists; give a new name with --to"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_to_another_place_killed_at_each_step_goes_on() {
    needs!(Postgres, Redis);
    let [one, two] = homes();
    tokio::join!(a_rotation_to_another_place_is_killed(one), a_rotation_to_another_place_is_killed(two));
}

/// The end of a generation that nothing needs, killed at each step.
async fn a_retirement_is_killed(home: Home) {
    let union = Rotated::start(home);
    let killer = killer(union.file.parent().unwrap());
    union.rotated_long_ago().await;
    let whole = std::fs::read(&union.file).unwrap();
    let mut kills = 0;
    loop {
        kills += 1;
        assert!(kills < MOST_STEPS);
        std::fs::write(&union.file, &whole).unwrap();
        let mut command = union.command(&["retire", "1"]);
        let killed = command.env("LD_PRELOAD", &killer).env("KILL_AT", kills.to_string()).output().unwrap();
        let left = union.ring().generations().count();
        union.done(&["retire", "1"], &[if left == 2 { "Generation 1 is gone from" } else { "was retired before" }]);
        assert_eq!(union.ring().generations().map(|generation| generation.number).collect::<Vec<_>>(), [2], "{kills}");
        assert_eq!(union.left_behind(), Vec::<String>::new());
        assert!(!std::fs::read_to_string(&union.file).unwrap().contains(TEXT), "{kills}");
        assert!(union.server.number("SELECT count(*) FROM audit WHERE command = 'secret retire'") > 0, "{kills}");
        if killed.status.success() {
            break;
        }
        assert_eq!(killed.status.signal(), Some(9), "{kills}: {}", String::from_utf8_lossy(&killed.stderr));
    }
    assert!(kills > 3, "its file, put on the disk, and what it prints: {kills}");
    union.refused(&["retire", "3"], &["there is no generation 3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retirement_killed_at_each_step_is_said_again() {
    needs!(Postgres, Redis);
    let [one, two] = homes();
    tokio::join!(a_retirement_is_killed(one), a_retirement_is_killed(two));
}

/// What replaces a lost secret, killed at each step: the file is lost anew each time. Nodes are started on what is there at the end.
async fn a_loss_is_killed(home: Home) {
    let union = Rotated::start(home);
    let before = Before::of(&union).await;
    let Rotated { server, file, key } = union;
    let (home, killer) = (server.stopped(), killer(file.parent().unwrap()));
    let replace = || {
        let mut command = unionhall(home.path());
        command.envs(home.records().settings()).env("UNIONHALL_SECRET", "");
        command.args(["secret", "replace", "--lost", "--secret-file"]).arg(&file);
        command
    };
    let mut kills = 0;
    let generation = loop {
        kills += 1;
        assert!(kills < MOST_STEPS);
        std::fs::remove_file(&file).unwrap();
        let killed = replace().env("LD_PRELOAD", &killer).env("KILL_AT", kills.to_string()).output().unwrap();
        if !killed.status.success() {
            assert_eq!(killed.status.signal(), Some(9), "{kills}: {}", String::from_utf8_lossy(&killed.stderr));
        }
        // Said again, also where it had done all but say so.
        let again = replace().output().unwrap();
        let said = String::from_utf8([again.stdout, again.stderr].concat()).unwrap();
        assert!(again.status.success(), "{kills}: {said}");
        holds(
            &said,
            &["The records have a new secret", "rotate the secret and enable them: 1.", "give the file to every node"],
        );
        let ring = Keyring::parse(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let known = home
            .records()
            .rows("SELECT number, fingerprint, secret_fingerprint FROM secret_generations CROSS JOIN installation");
        let (number, print) = (ring.newest().number, ring.newest().fingerprint());
        assert_eq!(known, [[number.to_string(), print.clone(), print]], "{kills}");
        let disabled = "SELECT count(*) FROM webhook_endpoints WHERE rotate_by <= (SELECT max(at) FROM audit)";
        assert_eq!(home.records().number(disabled), 1, "{kills}");
        let audited = "SELECT count(DISTINCT about) FROM audit WHERE command = 'secret replace'";
        assert_eq!(home.records().number(audited) + 1, i64::from(number), "{kills}");
        if killed.status.success() {
            break number;
        }
    };
    assert!(kills > 4, "its file, put on the disk, and what it prints: {kills}");
    let union = Rotated { server: Rotated::serve(home, &file), file, key };
    assert_eq!(union.left_behind(), Vec::<String>::new());
    for (turn, node) in union.nodes().iter().chain([&union.server]).enumerate() {
        assert_eq!(before.alive(&union, node, turn).await, after_a_loss(), "{turn}");
    }
    before.are_recognized(&union, false).await;
    union.refused(&["replace"], &["--lost"]);
    union.done(&["rotate", "--in", "1h"], &[&format!("Generation {} of the secret begins at", generation + 1)]);
    union.done(&["rotate"], &["was made before, and has not begun. Nothing was changed"]);
    assert_eq!(union.ring().generations().count(), 2);
    union.refused(&["replace", "--lost"], &["so it is not lost"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_secret_replaced_and_killed_at_each_step_is_replaced_once_and_all_that_it_made_is_dead() {
    needs!(Postgres, Redis);
    let [one, two] = homes();
    tokio::join!(a_loss_is_killed(one), a_loss_is_killed(two));
}
