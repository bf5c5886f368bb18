//! `unionhall backup --to FOLDER --every TIME`: copies beside a running service, and what may become of them.

use std::cell::RefCell;

use age::secrecy::ExposeSecret;
use rusqlite::Connection;

use super::full_disk::SmallDisk;
use crate::prelude::*;

const FLAGS: &[&str] = &["--store", "sqlite:", "--mail", "hold", "--key-per-minute", "1000000"];

/// One that runs, with what it prints in a file; ended without warning when it goes out of sight.
struct Copier {
    process: Child,
    log: PathBuf,
}

impl Copier {
    /// Every second, into the folder `copies` beside the data folder.
    fn start(server: &Server, more: &[&str]) -> Self {
        let folder = server.data().parent().unwrap().to_owned();
        let _there = std::fs::create_dir(folder.join("copies"));
        let log = folder.join("copier.log");
        let file = std::fs::File::create(&log).unwrap();
        let mut command = server.command();
        command.args(["backup", "--to", "copies", "--every", "1s"]).args(more);
        let process = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        Self { process, log }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    async fn wait_for(&mut self, text: &str, times: usize) {
        wait_for!(async || {
            assert_eq!(self.process.try_wait().unwrap(), None, "{}", self.said());
            self.said().matches(text).count() >= times
        })
        .await;
    }

    fn stop(mut self) -> Option<i32> {
        let sent = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status().unwrap();
        assert!(sent.success());
        self.process.wait().unwrap().code()
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _waited = self.process.wait();
    }
}

fn copies(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|end| end == "backup"));
    found.sort();
    found
}

fn made_at(copy: &Path) -> i64 {
    let bytes = std::fs::read(copy).unwrap();
    let line = bytes.split(|byte| *byte == b'\n').nth(1).unwrap();
    str::from_utf8(line).unwrap().split(' ').nth(1).unwrap().parse().unwrap()
}

/// The service and what copies it are killed in the middle of writes. Whatever was acknowledged before the last copy was begun is in
/// it, and the copy can be served.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_crash_the_last_copy_has_all_that_was_acknowledged_before_it() {
    let (server, key) = Server::with_key(FLAGS);
    let (clock, acknowledged) = (Clock::start(), RefCell::new(Vec::new()));
    let load = async |lane: usize| -> ! {
        for n in 0.. {
            let address = format!("l{lane}n{n}@example.com");
            server.post("/v1/invite", &key, sign_up(&address)).await.good();
            // So many only: one address may open 300 mailed links a minute.
            let state = if n < 40 { "member" } else { "invited" };
            if state == "member" {
                let find = "SELECT s.id FROM sign_ups s JOIN people p ON p.id = person_id WHERE email";
                assert_eq!(server.confirm(server.number(&format!("{find} = '{address}'"))).await.status, 200);
            }
            acknowledged.borrow_mut().push((clock.now().time.as_millis(), (address, state)));
        }
        unreachable!("there is always a next one")
    };
    let mut copier = Copier::start(&server, &["--keep", "2"]);
    let crash = async {
        copier.wait_for("holds the records of", 4).await;
        server.signal("KILL");
        copier.process.kill().unwrap();
    };
    tokio::select! {
        never = async { tokio::join!(load(0), load(1), load(2)) } => never.0,
        () = crash => {}
    }
    let old = server.into_home();
    let left = copies(&old.path().join("copies"));
    assert!((2..=3).contains(&left.len()), "two are kept, and perhaps one that was about to go: {left:?}");
    let last = left.last().unwrap();
    let home = Home::new();
    let mut restore = unionhall(home.path());
    let restored = restore.arg("restore").arg(last).output().unwrap();
    assert!(restored.status.success(), "{restored:?}");
    let database = Connection::open(home.path().join("data/unionhall.db")).unwrap();
    let is_there = |(address, state): &(String, &str)| {
        let sql = "SELECT count(*) = 1 FROM people WHERE email = ?1 AND state = ?2";
        database.query_row(sql, [address, *state], |row| row.get::<_, bool>(0)).unwrap()
    };
    let (acknowledged, begun) = (acknowledged.into_inner(), made_at(last));
    let expected: Vec<_> = acknowledged.iter().filter(|(at, _)| *at < begun).map(|(_, person)| person).collect();
    assert!(
        !expected.is_empty() && expected.len() < acknowledged.len(),
        "{} of {}",
        expected.len(),
        acknowledged.len()
    );
    assert_eq!(
        expected.into_iter().filter(|person| !is_there(person)).collect::<Vec<_>>(),
        Vec::<&(String, &str)>::new()
    );
    let members: i64 =
        database.query_row("SELECT count(*) FROM people WHERE state = 'member'", [], |row| row.get(0)).unwrap();
    drop(database);
    let again = Server::start_in(home, FLAGS);
    assert_eq!(again.get("/v1/stats").await.good()["memberCount"], members);
    again.post("/v1/invite", &key, sign_up("new@example.com")).await.good();
}

/// What monitoring writes is no change: the last copy stays, and its age is that of the last look.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_copied_where_nothing_has_changed() {
    let (server, key) = Server::with_key(FLAGS);
    server.get("/readyz").await.good();
    let mut copier = Copier::start(&server, &[]);
    copier.wait_for("Nothing has changed since", 1).await;
    let folder = server.data().parent().unwrap().join("copies");
    let (known, noted) = (copies(&folder), server.number("SELECT backed_up_at FROM installation"));
    let checked = || server.number("SELECT checked_at FROM readiness");
    let before = checked();
    server.get("/readyz").await.good();
    wait_for!(async || {
        server.get("/readyz").await.good();
        checked() > before
    })
    .await;
    let times = copier.said().matches("Nothing has changed since").count();
    copier.wait_for("Nothing has changed since", times + 2).await;
    assert_eq!(copies(&folder), known);
    assert!(server.number("SELECT backed_up_at FROM installation") > noted, "it was looked at since");
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    wait_for!(async || copies(&folder).len() > known.len()).await;
    let audited = server.run(&["audit"]).lines().filter(|line| line.contains("every 1s to copies")).count();
    assert_eq!(audited, 1, "once, however many copies there are");
    assert_eq!(copier.stop(), Some(0));
    assert_eq!(copies(&folder).len(), std::fs::read_dir(&folder).unwrap().count(), "nothing unfinished is left");
}

/// Nothing can be read of an encrypted copy, and it is known all the same whether it has everything.
#[tokio::test(flavor = "multi_thread")]
async fn encrypted_copies_are_made_only_where_something_has_changed() {
    let (server, key) = Server::with_key(FLAGS);
    let (identity, folder) = (age::x25519::Identity::generate(), server.data().parent().unwrap().to_owned());
    let recipient = identity.to_public().to_string();
    let mut copier = Copier::start(&server, &["--recipient", &recipient]);
    copier.wait_for("Nothing has changed since", 2).await;
    holds(&copier.said(), &["The installation's secret is in it. It is encrypted for 1 recipient"]);
    let known = copies(&folder.join("copies"));
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    wait_for!(async || copies(&folder.join("copies")).len() > known.len()).await;
    assert_eq!(copier.stop(), Some(0));
    for copy in copies(&folder.join("copies")) {
        assert!(std::fs::read(copy).unwrap().starts_with(b"age-encryption.org/v1\n"));
    }
    for place in [server.data(), folder.join("copies")] {
        let names = std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<_> = names.filter(|name| name.contains("records") || name.contains("unfinished")).collect();
        assert_eq!(left, Vec::<String>::new());
    }
    std::fs::write(folder.join("identity"), identity.to_string().expose_secret()).unwrap();
    let last = copies(&folder.join("copies")).pop().unwrap();
    let mut restore = unionhall(&folder);
    let restored = restore.args(["restore", "--identity", "identity", "--data", "new"]).arg(last).output().unwrap();
    assert!(restored.status.success(), "{restored:?}");
    let database = Connection::open(folder.join("new/unionhall.db")).unwrap();
    let people: i64 = database.query_row("SELECT count(*) FROM people", [], |row| row.get(0)).unwrap();
    assert_eq!(people, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_fails_ends_nothing() {
    let (server, key) = Server::with_key(FLAGS);
    let mut copier = Copier::start(&server, &[]);
    copier.wait_for("Nothing has changed since", 1).await;
    let (secret, aside) = (server.data().join("secret"), server.data().join("aside"));
    std::fs::rename(&secret, &aside).unwrap();
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    copier.wait_for("the secret that the records were made with is not in", 2).await;
    assert!(copier.said().contains("; the next try is in 1s"), "{}", copier.said());
    let copied = copier.said().matches("holds the records of").count();
    std::fs::rename(&aside, &secret).unwrap();
    copier.wait_for("holds the records of", copied + 1).await;
    assert_eq!(copier.stop(), Some(0));
}

/// The disk is full of copies. Whoever keeps fewer, as the refusal advises, gets the room of the others.
#[tokio::test(flavor = "multi_thread")]
async fn keeping_fewer_makes_room_for_the_next() {
    let (disk, server) = (SmallDisk::new(32), Server::start_with(FLAGS));
    std::os::unix::fs::symlink(disk.path(), server.data().parent().unwrap().join("copies")).unwrap();
    let old = [1, 2].map(|day| disk.path().join(format!("unionhall-2026-01-0{day}T000000.000Z.backup")));
    for copy in &old {
        std::fs::write(copy, vec![0; 31 << 19]).unwrap();
    }
    let keep_both = ["backup", "--to", "copies", "--every", "1h", "--keep", "2"];
    let refused = server.command().args(keep_both).output().unwrap();
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && told.contains("keep fewer with --keep or --keep-gb"), "{told}");
    assert_eq!(copies(disk.path()), old);

    let mut copier = Copier::start(&server, &["--keep", "1"]);
    copier.wait_for("; 1 file kept.", 1).await;
    let left = copies(disk.path());
    assert!(left.len() == 1 && !old.contains(&left[0]), "{left:?}");
    assert_eq!(copier.stop(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_begin_says_why() {
    let server = Server::start_with(FLAGS);
    let folder = server.data().parent().unwrap().to_owned();
    let refusal = |arguments: &[&str]| {
        let output = server.command().arg("backup").args(arguments).stdin(Stdio::null()).output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (arguments, why) in [
        (&["--to", "copies"][..], "--every <TIME>"),
        (&["--done", "--every", "1h"], "cannot be used with"),
        (&["file", "--keep", "3"], "cannot be used with"),
        (&["--keep-gb", "3"], "--to <FOLDER>"),
        (&["file", "--to", "copies", "--every", "1h"], "cannot be used with"),
        (&["--to", "copies", "--every", "often"], "write one from 1s to 31d: 15m, 1h, 1d"),
        (&["--to", "copies", "--every", "1h", "--keep", "0"], "write a whole number from 1 to 100000"),
        (&["--to", "copies", "--every", "1h"], "copies is not a folder; make it first: `install -d -m 0700 copies`"),
        (&["--to", ".", "--every", "1h", "--store", "postgres://u@127.0.0.1:1/d"], "its own tools back them up"),
    ] {
        let told = refusal(arguments);
        assert!(told.contains(why), "{arguments:?}: {told}");
    }
    // One that was killed in the middle of its work left something, which is of no use.
    std::fs::create_dir(folder.join("copies")).unwrap();
    std::fs::write(folder.join("copies/unfinished-records"), "half").unwrap();
    let mut copier = Copier::start(&server, &[]);
    copier.wait_for("Nothing has changed since", 1).await;
    holds(&refusal(&["--to", "copies", "--every", "1h"]), &["another backup is running in copies"]);
}
