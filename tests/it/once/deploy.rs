//! The files in `deploy/`, held to the programs they are for.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use hyper::Request;
use serde_json::Value;

use crate::machines::{
    Cluster, NAMES, Process, Proxy, caddy, folder_for_postgres, free_port, postgres_program, program, run, shipped,
};
use crate::records::{Home, Records};
use crate::server::{Answer, Server, block_on, settings, sign_up, unionhall, wait_until};

use super::source::{Tree, read_tree, tree};

pub(super) const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

#[track_caller]
fn succeeds(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

/// Settings that a file names and no command has.
fn unknown_settings(files: &Tree, known: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    for (path, text) in files {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let unknown = words.filter(|word| word.starts_with("UNIONHALL_") && !known.contains(*word));
        faults.extend(unknown.map(|word| format!("{path} names {word}")));
    }
    faults
}

#[test]
fn every_setting_that_is_named_exists() {
    let planted = tree(&[("deploy/a.env", "UNIONHALL_DATA=/x\n#UNIONHALL_DATE=1")]);
    assert_eq!(unknown_settings(&planted, &settings()), ["deploy/a.env names UNIONHALL_DATE"]);
    assert_eq!(unknown_settings(&read_tree("deploy"), &settings()), Vec::<String>::new());
}

#[test]
fn a_node_starts_with_the_sample_of_its_environment() {
    block_on(async {
        let text = shipped("unionhall.env");
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut variables: Vec<_> = lines
            .map(|line| line.split_once('=').unwrap())
            .map(|(name, value)| (name, value.trim_matches('"')))
            .collect();
        let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("catalog.sample.toml");
        for (name, value) in &mut variables {
            match *name {
                "UNIONHALL_LISTEN" | "UNIONHALL_METRICS_LISTEN" => *value = "127.0.0.1:0",
                "UNIONHALL_CATALOG" => *value = sample.to_str().unwrap(),
                _ => {}
            }
        }
        let server = Server::start_with_env(&variables, &["--mail", "hold"]);
        let document: Value = serde_json::from_slice(&server.get("/openapi.json").await.body).unwrap();
        assert_eq!(document["servers"][0]["url"], "https://api.union.example");
    });
}

#[test]
fn systemd_accepts_the_unit_and_finds_it_well_guarded() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("unionhall.service");
    let text = shipped("unionhall.service");
    let (there, here) = ("/usr/local/bin/unionhall", env!("CARGO_BIN_EXE_unionhall"));
    assert!(text.contains(there));
    std::fs::write(&unit, text.replace(there, here)).unwrap();
    let analyze = || Command::new(program("systemd-analyze"));
    let verified = analyze().args(["verify", "--man=no", "--recursive-errors=no"]).arg(&unit).output().unwrap();
    assert_eq!(succeeds(&verified), "", "not a word of complaint");
    // Tenths of a point; a unit without any of it has 96.
    let judged = analyze().args(["security", "--offline=true", "--threshold=15", "--no-pager"]).arg(&unit).output();
    succeeds(&judged.unwrap());
}

/// What a proxy answers by itself has the API's own form.
async fn speaks_as_the_api_does(proxy: fn(&[&Server]) -> Proxy) {
    let node = Server::start_with(&["--trusted-proxies", "127.0.0.1"]);
    let key = node.key();
    let front = proxy(&[&node]);
    let hardened = |answer: &Answer| assert_eq!(answer.header("strict-transport-security"), "max-age=31536000");
    let mut connection = front.connect(HERE).await;
    let mut send = async |request: hyper::http::request::Builder, body: String| {
        let request = request.header("authorization", format!("Bearer {key}"));
        connection.send(request, body).await
    };
    let kept = send(Request::get("/v1/stats"), String::new()).await;
    kept.good();
    hardened(&kept);
    send(Request::post("/v1/invite"), sign_up("ana@example.com")).await.good();
    send(Request::post("/v1/invite"), "{".into()).await.refused(400, "invalid_json");
    for path in ["/metrics", "/readyz"] {
        send(Request::get(path), String::new()).await.refused(404, Value::Null);
    }
    send(Request::get("/healthz"), String::new()).await.good();
    let large = || "x".repeat((1 << 20) + 1);
    let refuse = async |path: &str| {
        // A proxy ends a connection whose body it did not read.
        front.connect(HERE).await.send(Request::post(path), large()).await
    };
    refuse("/v1/invite").await.refused(400, "invalid_submission");
    refuse("/mcp").await.refused(413, Value::Null);
    // The node gets the next request all the same: it is not to blame.
    let asked = Instant::now();
    send(Request::get("/healthz"), String::new()).await.good();
    assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());

    let (code, _home) = node.stop();
    assert_eq!(code, Some(0));
    let away = front.connect(HERE).await.send(Request::get("/v1/negotiate-categories"), "").await;
    away.refused(503, Value::Null);
    assert_eq!(away.header("retry-after"), "2");
    hardened(&away);
}

#[test]
fn nginx_speaks_as_the_api_does() {
    block_on(speaks_as_the_api_does(Proxy::nginx));
}

#[test]
fn caddy_speaks_as_the_api_does() {
    block_on(speaks_as_the_api_does(Proxy::caddy));
}

/// Whoever read the log pressed the button of a sign-in link before its owner.
#[test]
fn no_token_stands_in_nginxs_log() {
    block_on(async {
        let node = Server::start_with(&["--trusted-proxies", "127.0.0.1"]);
        let front = Proxy::nginx(&[&node]);
        let paths = [
            "/confirm/SECRET",
            "/not-me/SECRET",
            "/me/enter/SECRET",
            "/sandbox/confirm/SECRET",
            "/sandbox/not-me/SECRET",
            "/sandbox/inbox/SECRET",
            "/%63onfirm/SECRET",
            "//confirm//SECRET",
            "/me/./enter/SECRET?x=SECRET",
            "/dev/mailbox?key=SECRET",
        ];
        for path in paths {
            front.connect(HERE).await.send(Request::get(path), "").await;
            front.connect(HERE).await.send(Request::post(path), "").await;
        }
        wait_until(Duration::from_secs(5), async || front.logs()[0].lines().count() >= 2 * paths.len()).await;
        let [log, ..] = front.logs();
        assert!(!log.contains("SECRET") && log.contains("/me/enter/-") && log.contains("/sandbox/inbox/-"), "{log}");
        // With every node away, each request is an error that nginx writes down with its whole path.
        drop(node);
        for path in paths.iter().filter(|path| !path.contains('?')).chain(&["/v1/stats"]) {
            assert_eq!(front.connect(HERE).await.send(Request::get(*path), "").await.status, 503, "{path}");
        }
        wait_until(Duration::from_secs(5), async || front.logs()[1].contains("/v1/stats")).await;
        let [_, log, _] = front.logs();
        assert!(!log.contains("SECRET"), "{log}");
    });
}

#[test]
fn caddy_accepts_its_file() {
    let home = tempfile::tempdir().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/Caddyfile");
    let ask =
        |task: &str| caddy(home.path()).args([task, "--adapter", "caddyfile", "--config"]).arg(&file).output().unwrap();
    let said = succeeds(&ask("validate"));
    assert!(said.contains("Valid configuration") && !said.contains("\"warn\""), "{said}");
    // It gets certificates by itself for the names of its sites on port 443, unless told otherwise.
    let adapted: Value = serde_json::from_slice(&ask("adapt").stdout).unwrap();
    let server = &adapted["apps"]["http"]["servers"]["srv0"];
    assert_eq!(server["listen"], serde_json::json!([":443"]));
    assert_eq!(server["routes"][0]["match"][0]["host"], serde_json::json!(NAMES));
    assert_eq!((&server["automatic_https"], &adapted["apps"]["tls"]), (&Value::Null, &Value::Null));
}

#[test]
fn redis_starts_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redis.conf");
    let text = shipped("redis.conf");
    let password = text.lines().find_map(|line| line.strip_prefix("requirepass ")).unwrap().to_owned();
    let port = free_port();
    let here = text.replace("bind 127.0.0.1 10.0.0.30", "bind 127.0.0.1").replace("port 6379", &format!("port {port}"));
    assert_ne!(here, text);
    std::fs::write(&file, here).unwrap();
    let tell = |words: &[&str]| {
        let mut command = Command::new(program("redis-cli"));
        command.env("REDISCLI_AUTH", &password).args(["-p", &port.to_string()]).args(words);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let mut command = Command::new(program("redis-server"));
    command.arg(&file).current_dir(folder.path());
    let _redis = Process::start(&mut command, folder.path().join("log"), || tell(&["ping"]).trim() == "PONG");
    assert_eq!(tell(&["config", "get", "save"]).trim(), "save", "nothing goes to disk");
    assert_eq!(tell(&["config", "get", "maxmemory-policy"]).lines().last(), Some("noeviction"));
}

/// The settings are proved by the failover test, which runs on them; here is who may come in.
#[test]
fn postgresql_understands_who_may_come_in() {
    let cluster = Cluster::primary();
    let hba = shipped("postgresql/pg_hba.conf");
    assert_eq!(cluster.faults_in_hba(&hba), Vec::<Vec<String>>::new());
    assert_eq!(cluster.faults_in_hba("hostssl unionhall unionhall 10.0.0.0/24 nonsense").len(), 1, "it would tell");
    assert_eq!(cluster.ask("SHOW synchronous_commit"), [["on"]]);
}

#[test]
fn the_readmes_draining_drains() {
    let readme = shipped("README.md");
    // The two commands around a restart, on the file they are for.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("unionhall.conf");
    std::fs::write(&file, shipped("nginx.conf")).unwrap();
    let edits =
        readme.lines().filter_map(|line| line.strip_prefix("sudo sed -i '")?.split_once('\'')).map(|line| line.0);
    let edits: Vec<_> = edits.collect();
    assert_eq!(edits.len(), 2);
    run(Command::new("sed").args(["-i", edits[0]]).arg(&file));
    let drained = std::fs::read_to_string(&file).unwrap();
    assert!(drained.contains("server 10.0.0.11:8080 max_fails=2 fail_timeout=5s down;"), "{drained}");
    run(Command::new("sed").args(["-i", edits[1]]).arg(&file));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), shipped("nginx.conf"));
}

/// Somebody signs up, a backup is made beside the running node, and another node is started on what was restored from it.
async fn survives(home: Home, restore: impl FnOnce(&Records, &Path) -> Home) {
    let flags = ["--mail", "hold", "--join-site", "https://union.example"];
    let node = Server::start_in(home, &flags);
    let key = node.key();
    let made = node.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    node.confirm(node.number("SELECT id FROM sign_ups")).await;
    let restored = restore(node.records(), &node.data());
    node.post("/v1/invite", &key, sign_up("after-the-backup@example.com")).await.good();
    drop(node);
    let node = Server::start_in(restored, &flags);
    assert_eq!(node.get("/v1/stats").await.good()["memberCount"], 1);
    assert_eq!(node.number("SELECT count(*) FROM people"), 1);
    let again = node.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    assert_eq!(again["inviteLink"], made["inviteLink"]);
}

#[test]
fn a_backup_of_sqlite_is_restored() {
    block_on(survives(Home::new(), |_, data| {
        let home = Home::new();
        let there = home.path().join("data");
        std::fs::create_dir(&there).unwrap();
        let copy = there.join("unionhall.db");
        let database = rusqlite::Connection::open(data.join("unionhall.db")).unwrap();
        database.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
        std::fs::copy(data.join("secret"), there.join("secret")).unwrap();
        home
    }));
}

#[test]
fn a_backup_of_postgresql_is_restored() {
    let on_postgres = || Home::on_postgres(tempfile::tempdir().unwrap());
    block_on(survives(on_postgres(), |records, _| {
        let url = |records: &Records| match records {
            Records::Postgres { store, .. } => store.clone(),
            Records::Sqlite { .. } => panic!("these are elsewhere"),
        };
        let home = on_postgres();
        home.prepare_empty();
        let folder = folder_for_postgres();
        let file = folder.path().join("dump");
        run(postgres_program("pg_dump").args(["-Fc", "-d", &url(records), "-f"]).arg(&file));
        let restore = ["--no-owner", "--exit-on-error", "-d", &url(home.records())];
        run(postgres_program("pg_restore").args(restore).arg(&file));
        run(unionhall(home.path()).envs(home.records().settings()).arg("resume"));
        home
    }));
}
