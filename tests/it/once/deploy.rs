//! The files in `deploy/`, held to the programs they are for.

use std::net::TcpStream;

use crate::machines::{KeptPort, NAMES, Process, caddy, certify, hall, postgres_program, program, run, shipped};
use crate::prelude::*;
use crate::server::settings;

use super::https::connect;
use super::source::{Tree, read_tree, tree};

pub(super) const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

#[track_caller]
fn succeeds(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

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

/// The folders of an installation, inside a folder of the test, and a shell in which its commands run there.
struct Installation {
    home: Home,
    /// The settings as systemd reads them.
    variables: Vec<(String, String)>,
}

impl Installation {
    /// With the sample of its settings, and these lines besides.
    fn new(home: Home, sample: &str, more: &str) -> Self {
        let credentials = home.path().join("etc/credentials");
        std::fs::create_dir_all(&credentials).unwrap();
        std::fs::create_dir(home.path().join("backups")).unwrap();
        let catalog = Path::new(env!("CARGO_MANIFEST_DIR")).join("catalog.sample.toml");
        std::fs::copy(catalog, home.path().join("etc/catalog.toml")).unwrap();
        for (variable, text) in [("UNIONHALL_MAIL", "hold".to_owned())].into_iter().chain(home.records().settings()) {
            let name = variable.strip_prefix("UNIONHALL_").unwrap().to_lowercase();
            let file = credentials.join(name);
            std::fs::write(&file, format!("{text}\n")).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let mut installed = Self { home, variables: Vec::new() };
        let text = installed.here(&shipped(sample)).replace("10.0.0.11:", "127.0.0.1:").replace(":9090", ":0") + more;
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let variable = |line: &str| {
            let (name, value) = line.split_once('=').unwrap();
            (name.to_owned(), value.trim_matches(['"', '\'']).to_owned())
        };
        installed.variables = lines.map(variable).collect();
        std::fs::write(installed.home.path().join("etc/unionhall.env"), text).unwrap();
        // A shell reads the same.
        let read = installed.shell(&installed.here("set -a; . /etc/unionhall/unionhall.env; env"));
        let read = String::from_utf8(read.stdout).unwrap();
        for (name, value) in &installed.variables {
            assert!(read.lines().any(|line| line == format!("{name}={value}")), "{name}={value} in {read}");
        }
        installed
    }

    /// A text of ours with the places of this installation, where nobody has to be root.
    fn here(&self, text: &str) -> String {
        let folder = self.home.path().to_str().unwrap();
        let places = [
            ("/etc/unionhall", format!("{folder}/etc")),
            ("/var/lib/unionhall", format!("{folder}/data")),
            ("/var/backups/unionhall", format!("{folder}/backups")),
            ("/usr/local/bin/unionhall", env!("CARGO_BIN_EXE_unionhall").to_owned()),
            ("-o unionhall ", String::new()),
        ];
        places.iter().fold(text.to_owned(), |text, (there, here)| text.replace(there, here))
    }

    fn shell(&self, script: &str) -> Output {
        let programs = Path::new(env!("CARGO_BIN_EXE_unionhall")).parent().unwrap().to_str().unwrap();
        let sudo = "sudo() { if [ \"$1\" = -u ]; then shift 2; fi; \"$@\"; }";
        let mut shell = Command::new("sh");
        shell.env_clear().env("PATH", format!("{programs}:/usr/bin:/bin")).current_dir("/");
        shell.args(["-c", &format!("{sudo}\n{script}")]).output().unwrap()
    }

    fn run_hall(&self, command: &str) -> Output {
        let script = self.home.path().join("hall");
        std::fs::write(&script, self.here(&hall())).unwrap();
        self.shell(&format!("sh {} {command}", script.display()))
    }

    /// What `hall` answers.
    fn hall(&self, command: &str) -> String {
        let output = self.run_hall(command);
        succeeds(&output);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Starts the service as systemd does; gives it back with what does not go into it.
    fn start(&self) -> Server {
        let mut command = unionhall(self.home.path());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        Server::start_as(command, Home::sharing(self.home.records()), &[])
    }
}

#[test]
fn the_readme_names_every_file() {
    let readme = shipped("README.md");
    let files = read_tree("deploy").into_keys().map(|path| path.strip_prefix("deploy/").unwrap().to_owned());
    let missing: Vec<_> = files.filter(|file| file != "README.md" && !readme.contains(&format!("]({file})"))).collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_nodes_run_with_the_sample_of_their_settings_and_hall_finds_their_records() {
    needs!(Postgres, Redis);
    let home = Home::on_postgres(tempfile::tempdir().unwrap());
    home.prepare();
    let installed = Installation::new(home, "unionhall.env", "UNIONHALL_FORM_MAILS_A_DAY=4321\n");
    let server = installed.start();
    let document: Value = serde_json::from_slice(&server.get("/openapi.json").await.body).unwrap();
    assert_eq!(document["servers"][0]["url"], "https://api.union.example");
    let key = installed.hall("keys issue 'Acme Assistant'");
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    holds(&installed.hall("signups status --json"), &["4321"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_machine_runs_as_the_readme_says() {
    let installed = Installation::new(Home::new(), "one-machine.env", "UNIONHALL_FORM_MAILS_A_DAY=4321\n");
    let readme = shipped("README.md");
    // certbot calls its hook when there is a certificate, and again after each renewal.
    let hook = readme.lines().find_map(|line| line.strip_prefix("  'cd ")?.strip_suffix('\''));
    let hook = installed.here(&format!("cd {}", hook.unwrap()));
    let lineage = tempfile::tempdir().unwrap();
    let certify = |systemctl: &str| {
        let file = |name: &str| lineage.path().join(name);
        let trusted = certify(&["localhost"], &file("fullchain.pem"), &file("privkey.pem"));
        let lineage = lineage.path().display();
        succeeds(&installed.shell(&format!("systemctl() {{ {systemctl}; }}\nRENEWED_LINEAGE={lineage}\n{hook}")));
        trusted
    };
    let old = certify("true");
    let server = installed.start();
    connect(&server, &old, b"http/1.1").await.unwrap();
    let new = certify(&format!("test \"$*\" = 'try-reload-or-restart unionhall' && kill -HUP {}", server.id()));
    let renewed = async || connect(&server, &new, b"http/1.1").await.is_ok();
    wait_for!(renewed).await;

    installed.hall("keys issue 'Acme Assistant'");
    holds(&installed.hall("signups status --json"), &["4321"]);
    let found = String::from_utf8(installed.run_hall("doctor").stdout).unwrap();
    holds(&found, &["ok   certificate: ", "ok   files: ", "ok   records: ", "ok   secret: "]);
    // The nightly backup.
    let old = installed.home.path().join("backups/2026-01-01-030000.backup");
    let due = installed.home.path().join("backups/30.backup");
    // What is in a folder of its own is somebody else's to delete.
    let apart = installed.home.path().join("backups/apart");
    std::fs::create_dir(&apart).unwrap();
    let (apart, month) = (apart.join("2026-01-01-030000.backup"), installed.home.path().join("backups/29.backup"));
    for (days, file) in [("40", &old), ("40", &apart), ("30", &due), ("29", &month)] {
        let touch = Command::new("touch").args(["-d", &format!("{days} days ago")]).arg(file).output();
        succeeds(&touch.unwrap());
    }
    let unit = installed.here(&shipped("unionhall-backup.service"));
    let commands: Vec<_> =
        unit.lines().filter_map(|line| Some(line.strip_prefix("ExecStart")?.split_once('=')?.1)).collect();
    assert_eq!(commands.len(), 2);
    for command in commands {
        // As systemd reads it: its own signs stand twice, and it knows no patterns.
        let command = command.replace("$$", "$").replace("%%", "%");
        succeeds(&installed.shell(&installed.here(&format!("set -fa; . /etc/unionhall/unionhall.env; {command}"))));
    }
    assert_eq!([&old, &due, &month, &apart].map(|file| file.exists()), [false, false, true, true]);
    let backups = || {
        let files = std::fs::read_dir(old.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.is_file() && *path != month).collect::<Vec<_>>()
    };
    let made = backups();
    assert_eq!(made.len(), 1, "the new one besides");
    let secret = std::fs::read_to_string(installed.home.path().join("data/secret")).unwrap();
    let contains = |file: &Path, text: &str| {
        let bytes = std::fs::read(file).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    assert!(contains(&made[0], "unionhall backup 1") && !contains(&made[0], secret.trim()), "no secret in the clear");
    // And the copies, until they are stopped.
    let unit = installed.here(&shipped("unionhall-copies.service"));
    let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let copies = installed.here("/var/backups/unionhall/recent");
    let until_there = format!("until ls {copies}/*.backup; do sleep 0.1; done; kill $!; wait $!");
    let identity = age::x25519::Identity::generate();
    let recipient = identity.to_public();
    let settings = format!("set -a; . /etc/unionhall/unionhall.env; UNIONHALL_BACKUP_RECIPIENT={recipient}");
    let script = format!("mkdir {copies}; {settings}; {command} & {until_there}");
    succeeds(&installed.shell(&installed.here(&script)));
    let copy = std::fs::read_dir(copies).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    assert!(!contains(&copy, secret.trim()), "it is encrypted");
    std::fs::write(&copy, age::decrypt(&identity, &std::fs::read(&copy).unwrap()).unwrap()).unwrap();
    assert!(contains(&copy, secret.trim()), "and has the secret");
}

#[test]
fn systemd_accepts_the_units_and_finds_the_service_well_guarded() {
    needs!(SystemdAnalyze);
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        std::fs::write(
            folder.path().join(name),
            text.replace("/usr/local/bin/unionhall", env!("CARGO_BIN_EXE_unionhall")),
        )
        .unwrap();
    };
    let units = ["unionhall.service", "unionhall-backup.service", "unionhall-backup.timer", "unionhall-copies.service"];
    for unit in units {
        put(unit, &shipped(unit));
    }
    let analyze = |arguments: &[&str], units: &[&str]| {
        let mut command = Command::new(program("systemd-analyze"));
        command.args(arguments).args(units.iter().map(|unit| folder.path().join(unit))).output().unwrap()
    };
    let verify = || analyze(&["verify", "--man=no", "--recursive-errors=no"], &units);
    // Tenths of a point; a unit without any of it has 96.
    let judge =
        |threshold: &str| analyze(&["security", "--offline=true", threshold, "--no-pager"], &["unionhall.service"]);
    assert_eq!(succeeds(&verify()), "", "not a word of complaint");
    succeeds(&judge("--threshold=15"));
    std::fs::create_dir(folder.path().join("unionhall.service.d")).unwrap();
    put("unionhall.service.d/port-443.conf", "[Service]\nAmbientCapability=CAP_NET_BIND_SERVICE\n");
    let said = verify();
    assert!(String::from_utf8_lossy(&said.stderr).contains("port-443.conf"), "it is read: {said:?}");
    put("unionhall.service.d/port-443.conf", &shipped("port-443.conf"));
    assert_eq!(succeeds(&verify()), "", "not a word of complaint");
    succeeds(&judge("--threshold=20"));
    let texts = units.map(shipped);
    let users: Vec<_> = texts.iter().flat_map(|text| text.lines()).filter(|line| line.starts_with("User=")).collect();
    assert_eq!(users, ["User=unionhall"; 3], "the user that the README makes");
}

/// What port-443.conf leaves the service is enough for the port, and without it the port is refused. Only root can show it.
#[test]
fn a_privileged_port_needs_the_one_capability() {
    let privileged = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
    let kept = (600..privileged.trim().parse().unwrap()).find_map(|port| KeptPort::bind(port).ok());
    let Some(kept) = kept.filter(|_| rustix::process::geteuid().is_root()) else { return };
    let port = kept.number;
    let folder = tempfile::tempdir().unwrap();
    // For the copy of the program that it makes.
    let _command = unprivileged(folder.path());
    let serve = |capability: &str| {
        let mut command = Command::new("setpriv");
        let only = format!("-all{capability}");
        for set in ["--inh-caps", "--ambient-caps", "--bounding-set"] {
            command.args([set, &only]);
        }
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"])
            .arg(folder.path().join("unionhall"));
        command.env_clear().current_dir(folder.path()).args([
            "serve",
            "--listen",
            &format!("{HERE}:{port}"),
            "--mail",
            "hold",
        ]);
        command
    };
    let refused = serve("").output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("needs more rights"), "{refused:?}");
    let given = shipped("port-443.conf");
    let given = given.lines().find_map(|line| line.strip_prefix("AmbientCapabilities=CAP_")).unwrap().to_lowercase();
    let reached = || TcpStream::connect((HERE, port)).is_ok();
    Process::start(&mut serve(&format!(",+{given}")), folder.path().join("log"), reached);
}

/// What a proxy answers by itself has the API's own form.
async fn speaks_as_the_api_does(proxy: fn(&[&Server]) -> Proxy) {
    let header = ["--operator-header", "X-Operator", "--operator-header-from", "127.0.0.1"];
    let own = ["--base-url", "https://unionhall.test", "--join-site", "https://unionhall.test", "--mail", "hold"];
    let node = Server::start_with(&[&["--trusted-proxies", "127.0.0.1"], &header[..], &own].concat());
    let key = node.key();
    let front = proxy(&[&node]);
    // Nobody names themselves as an operator through it, though the node would believe the proxy.
    node.run(&["operator", "add", "ana"]);
    let named = || Request::get("/operator").header("x-operator", "ana");
    wait_for!(async || node.send(named(), "").await.status == 200).await;
    assert_eq!(front.connect(HERE).await.send(named(), "").await.status, 403);
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
    in_time("an answer", send(Request::get("/healthz"), String::new())).await.good();

    let (code, _home) = node.stop();
    assert_eq!(code, Some(0));
    let away = front.connect(HERE).await.send(Request::get("/v1/negotiate-categories"), "").await;
    away.refused(503, Value::Null);
    assert_eq!(away.header("retry-after"), "2");
    hardened(&away);
}

#[test]
fn nginx_speaks_as_the_api_does() {
    needs!(Nginx);
    block_on(speaks_as_the_api_does(Proxy::nginx));
}

#[test]
fn caddy_speaks_as_the_api_does() {
    needs!(Caddy);
    block_on(speaks_as_the_api_does(Proxy::caddy));
}

/// What stands in a path and may be read in a log: it opens nothing.
const NO_SECRETS: [&str; 8] = ["code", "slug", "partner", "number", "name", "page", "id", "idempotencyKey"];

/// Whoever read the log pressed the button of a sign-in link before its owner.
#[tokio::test(flavor = "multi_thread")]
async fn no_token_stands_in_nginxs_log() {
    needs!(Nginx);
    let node = Watched::start(&[], &["--trusted-proxies", "127.0.0.1"]);
    let front = Proxy::nginx(&[&node]);
    let figures = node.figures().await;
    let routes = figures.keys().filter_map(|series| series.split("requests_total{route=\"").nth(1)?.split('"').next());
    let holds_a_secret = |route: &&str| {
        let name = route.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("page", |(name, _)| name);
        !NO_SECRETS.contains(&name)
    };
    // As the route has it, and as somebody may type it.
    let mut paths: BTreeSet<String> = routes
        .filter(holds_a_secret)
        .map(|route| [route.split('{').next().unwrap(), "SECRET", route.split('}').nth(1).unwrap()].concat())
        .flat_map(|path| {
            let (first, rest) = path.split_at(2);
            let encoded = format!("/%{:02x}{rest}", first.as_bytes()[1]);
            let capitals = path.replace("SECRET", "").to_uppercase() + "SECRET";
            [encoded, capitals, path.replace('/', "//"), path.replacen('/', "/./", 1), format!("{path}?x=SECRET"), path]
        })
        .collect();
    assert!(paths.contains("/unsubscribe/SECRET") && paths.contains("/sandbox/inbox/SECRET/html"), "{paths:?}");
    paths.insert("/dev/mailbox?key=SECRET".to_owned());
    for path in &paths {
        front.connect(HERE).await.send(Request::get(path), "").await;
        front.connect(HERE).await.send(Request::post(path), "").await;
    }
    wait_for!(async || front.logs()[0].lines().count() >= 2 * paths.len()).await;
    let told = |log: &str| log.lines().filter(|line| line.contains("SECRET")).map(str::to_owned).collect::<Vec<_>>();
    let [log, ..] = front.logs();
    assert_eq!(told(&log), Vec::<String>::new());
    assert!(log.contains("/me/enter/-") && log.contains("/sandbox/inbox/-"), "{log}");
    // With every node away, each request is an error that nginx writes down with its whole path.
    drop(node);
    for path in paths.iter().map(String::as_str).filter(|path| !path.contains('?')).chain(["/v1/stats"]) {
        assert_eq!(front.connect(HERE).await.send(Request::get(path), "").await.status, 503, "{path}");
    }
    wait_for!(async || front.logs()[1].contains("/v1/stats")).await;
    let [_, log, _] = front.logs();
    assert_eq!(told(&log), Vec::<String>::new());
}

#[test]
fn caddy_accepts_its_file() {
    needs!(Caddy);
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
    needs!(RedisServer);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redis.conf");
    let text = shipped("redis.conf");
    let password = text.lines().find_map(|line| line.strip_prefix("requirepass ")).unwrap().to_owned();
    let kept = KeptPort::new();
    let port = kept.number;
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
    needs!(PostgresPrograms);
    let cluster = Cluster::primary();
    let hba = shipped("postgresql/pg_hba.conf");
    assert_eq!(cluster.faults_in_hba(&hba), Vec::<Vec<String>>::new());
    assert_eq!(cluster.faults_in_hba("hostssl unionhall unionhall 10.0.0.0/24 nonsense").len(), 1, "it would tell");
    assert_eq!(cluster.ask("SHOW synchronous_commit"), [["on"]]);
}

#[test]
fn draining_before_an_upgrade_drains() {
    let page = &read_tree("docs/upgrades.md")["docs/upgrades.md"];
    // The two commands around a restart, on the file they are for.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("unionhall.conf");
    std::fs::write(&file, shipped("nginx.conf")).unwrap();
    let edits = page.lines().filter_map(|line| line.strip_prefix("sudo sed -i '")?.split_once('\'')).map(|line| line.0);
    let edits: Vec<_> = edits.collect();
    assert_eq!(edits.len(), 2);
    run(Command::new("sed").args(["-i", edits[0]]).arg(&file));
    holds(&std::fs::read_to_string(&file).unwrap(), &["server 10.0.0.11:8080 max_fails=2 fail_timeout=5s down;"]);
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
    needs!(Postgres, Redis);
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
