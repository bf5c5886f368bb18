//! A disk without room, on a small one of the test's own: the service says so, and goes on by itself once there is room.

use crate::machines::{as_root, give_to_postgres, run};
use crate::operator_page::signed_in;
use crate::prelude::*;
use crate::records::SECRET;

/// A file system in memory that has so much room and no more.
pub(super) struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    pub(super) fn new(megabytes: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m,mode=0700");
        run(as_root("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()));
        Self { folder }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    fn fill(&self) {
        let mut ballast = std::fs::File::create(self.ballast()).unwrap();
        for size in [1 << 20, 1 << 12] {
            while ballast.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What still uses it ends with the test.
        let _gone = as_root("umount").arg("--lazy").arg(self.path()).status();
    }
}

/// Signs people up until the disk is full and past it.
async fn is_seen(server: &Watched, disk: &SmallDisk, doctor: impl Fn() -> Command) {
    let key = server.key();
    server.post("/v1/invite", &key, sign_up("before@example.com")).await.good();
    server.get("/readyz").await.good();
    assert_eq!(server.figures().await["unionhall_ready"], 1.0);
    let mut page = signed_in(server, "ana", 1).await;

    disk.fill();
    let mut refused = None;
    for n in 0..2000 {
        let answer = server.post("/v1/invite", &key, sign_up(&format!("p{n}@example.com"))).await;
        if answer.status != 200 {
            refused = Some(answer.refused(500, "save_failed"));
            break;
        }
    }
    assert!(refused.is_some(), "the disk has room after all");
    // Room that was found is believed for ten seconds.
    wait_for!(async || server.get("/readyz").await.status == 503).await;
    wait_for!(async || server.figures().await["unionhall_ready"] == 0.0).await;
    for _ in 0..3 {
        assert_eq!(server.get("/readyz").await.status, 503, "and it stays so");
        assert_eq!(server.post("/v1/invite", &key, sign_up("later@example.com")).await.status, 500);
    }
    const FULL: &str = "the store takes no writes, or its disk is full: sign-ups fail";
    wait_for!(async || server.figures().await.contains_key("unionhall_findings{check=\"records\",grade=\"fail\"}"))
        .await;
    assert!(page.get("/operator").await.text().contains(FULL));
    let mut doctor_here = doctor();
    doctor_here.env("UNIONHALL_LISTEN", server.address.to_string());
    assert_eq!(Diagnosis::of(doctor_here).of_check("service")[0]["state"], "fail");
    let found = Diagnosis::of(doctor());
    let writes = found.of_check("writes")[0];
    assert_eq!(writes["state"], "fail", "{:#?}", found.lines);
    holds(writes["fix"].as_str().unwrap(), &["make room"]);

    disk.make_room();
    wait_for!(async || server.get("/readyz").await.status == 200).await;
    server.post("/v1/invite", &key, sign_up("later@example.com")).await.good();
    assert_eq!(server.figures().await["unionhall_ready"], 1.0);
    assert_eq!(Diagnosis::of(doctor()).of_check("writes")[0]["state"], "ok");
}

const FLAGS: [&str; 6] = ["--mail", "hold", "--key-per-minute", "10000", "--metrics-listen", "127.0.0.1:0"];

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_seen_on_sqlite() {
    let (disk, home) = (SmallDisk::new(4), Home::new());
    std::os::unix::fs::symlink(disk.path(), home.path().join("data")).unwrap();
    let server = Watched::of(Server::start_in(home, &FLAGS));
    let folder = server.data().parent().unwrap().to_owned();
    is_seen(&server, &disk, || unionhall(&folder)).await;
}

/// A change of one row finds room in its page long after no table can grow.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_seen_on_postgresql() {
    needs!(PostgresPrograms);
    let (disk, folder) = (SmallDisk::new(160), folder_for_postgres());
    let data = disk.path().join("cluster");
    std::fs::create_dir(&data).unwrap();
    give_to_postgres(&[disk.path().to_owned(), data.clone()]);
    std::os::unix::fs::symlink(&data, folder.path().join("data")).unwrap();
    let cluster = Cluster::primary_in(folder);
    cluster.ask("CREATE DATABASE hall ENCODING 'UTF8' TEMPLATE template0");
    let store = cluster.url("hall");
    let records = Records::Postgres { store: store.clone(), limits: "memory:".to_owned() };
    let server = Watched::of(Server::start_in(Home::sharing(&records), &FLAGS));
    let elsewhere = tempfile::tempdir().unwrap();
    let doctor = || {
        let mut command = unionhall(elsewhere.path());
        command.env("UNIONHALL_STORE", &store).env("UNIONHALL_SECRET", SECRET);
        command
    };
    is_seen(&server, &disk, doctor).await;
    drop(server);
    drop(cluster);
}
