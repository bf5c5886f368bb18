//! `unionhall doctor` finds what is planted, says how it is mended, and finds it well once that is done.

use crate::machines::run;
use crate::once::shared_limits::Redis;
use crate::prelude::*;
use crate::records::SECRET;

/// A service that was started once and stopped, and the settings that it is given.
struct Patient {
    home: Home,
    settings: BTreeMap<&'static str, String>,
}

impl Patient {
    fn new() -> Self {
        let (code, home) = Server::start().stop();
        assert_eq!(code, Some(0));
        Self { home, settings: [("UNIONHALL_LISTEN", "127.0.0.1:0".to_owned())].into() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.settings.insert(name, value.into());
    }

    fn forget(&mut self, name: &str) {
        self.settings.remove(name);
    }

    fn allow(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn command(&self) -> Command {
        let mut command = unionhall(self.home.path());
        command.envs(&self.settings);
        command
    }

    fn look(&self) -> Diagnosis {
        Diagnosis::of(self.command())
    }

    fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path("data/unionhall.db")).unwrap()
    }

    /// Plants a fault, which is found with its words and its mend, and mends it, after which all is as it was before.
    #[track_caller]
    fn suffers(&mut self, fault: Fault, plant: impl FnOnce(&mut Self), mend: impl FnOnce(&mut Self)) {
        let Fault { check, state, says, mends } = fault;
        let before = self.look();
        assert!(before.of_check(check).iter().all(|line| line["state"] == "ok"), "{:#?}", before.lines);
        plant(self);
        let found = self.look();
        let lines = found.of_check(check);
        let has = |part: &str, field: &serde_json::Value| field.as_str().is_some_and(|text| text.contains(part));
        assert!(
            lines.iter().any(|line| line["state"] == state && has(says, &line["message"]) && has(mends, &line["fix"])),
            "{state} {check}: {says}; {mends} is not told: {lines:#?}"
        );
        assert_eq!(found.output.status.code(), Some(i32::from(state == "fail")), "{:#?}", found.lines);
        mend(self);
        let after = self.look();
        assert!(after.of_check(check).iter().all(|line| line["state"] == "ok"), "{:#?}", after.lines);
        assert_eq!(after.output.status.code(), Some(0), "{:#?}", after.lines);
    }
}

/// How a fault is told: its check, its state, and parts of what is said and of the mend.
struct Fault {
    check: &'static str,
    state: &'static str,
    says: &'static str,
    mends: &'static str,
}

const fn warn(check: &'static str, says: &'static str, mends: &'static str) -> Fault {
    Fault { check, state: "warn", says, mends }
}

const fn fail(check: &'static str, says: &'static str, mends: &'static str) -> Fault {
    Fault { check, state: "fail", says, mends }
}

#[test]
fn faults_of_the_settings_are_found() {
    let mut patient = Patient::new();
    assert_eq!(patient.look().faults(), Vec::<&serde_json::Value>::new(), "it is well to begin with");
    patient.suffers(
        warn("variables", "UNIONHALL_MAIL_FORM is not a setting", "did you mean UNIONHALL_MAIL_FROM?"),
        |patient| patient.set("UNIONHALL_MAIL_FORM", "hello@union.example"),
        |patient| patient.forget("UNIONHALL_MAIL_FORM"),
    );
    patient.suffers(
        fail("settings", "cannot read the catalog nowhere.toml, which", "serve --help"),
        |patient| patient.set("UNIONHALL_CATALOG", "nowhere.toml"),
        |patient| patient.forget("UNIONHALL_CATALOG"),
    );
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(patient.path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(patient.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
    patient.set("UNIONHALL_TLS_CERT", "cert.pem");
    patient.set("UNIONHALL_TLS_KEY", "key.pem");
    let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIC\n-----END ENCRYPTED PRIVATE KEY-----\n";
    std::fs::write(patient.path("locked.pem"), encrypted).unwrap();
    patient.suffers(
        fail("settings", "the private key in locked.pem is encrypted", "openssl pkey -in locked.pem"),
        |patient| patient.set("UNIONHALL_TLS_KEY", "locked.pem"),
        |patient| patient.set("UNIONHALL_TLS_KEY", "key.pem"),
    );
    // A certificate with little time left, and one with none.
    for (days, fault) in
        [(5, warn("certificate", "in 4 days", "SIGHUP")), (-5, fail("certificate", "ended on", "SIGHUP"))]
    {
        let until = end_in_days(days);
        patient.suffers(
            fault,
            |patient| {
                std::fs::write(patient.path("cert.pem"), until.self_signed(&made.signing_key).unwrap().pem()).unwrap();
            },
            |patient| std::fs::write(patient.path("cert.pem"), made.cert.pem()).unwrap(),
        );
    }
}

/// What a certificate says that ends so many days from now.
fn end_in_days(days: i64) -> rcgen::CertificateParams {
    let now = std::fs::metadata("/proc/self").unwrap().modified().unwrap();
    let now = i64::try_from(now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()).unwrap();
    let mut until = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    until.not_after = rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs((now + days * 86_400) as u64);
    until
}

/// One fault hides no other: the parser of the command line would end at the first of these.
#[test]
fn all_settings_that_cannot_be_read_are_told_at_once() {
    let mut patient = Patient::new();
    for (name, value) in [
        ("UNIONHALL_LISTEN", "union.example"),
        ("UNIONHALL_TRUSTED_PROXIES", "everyone"),
        ("UNIONHALL_TLS_CERT", "cert.pem"),
        ("UNIONHALL_CATALOG", "nowhere.toml"),
        ("UNIONHALL_SECRET", "hunter2"),
        ("UNIONHALL_MAIL", "imap://u:hunter2@h"),
        ("UNIONHALL_LIMITS", "redis://:hunter2@"),
        ("UNIONHALL_STORE", "mysql://u:hunter2@h/d"),
        ("UNIONHALL_DISPOSABLE_DOMAINS", "nowhere.txt"),
        ("UNIONHALL_RESEND_WEBHOOK_SECRET", "hunter2"),
    ] {
        patient.set(name, value);
    }
    let found = patient.look();
    let told = String::from_utf8(found.output.stdout.clone()).unwrap();
    let faults = found.of_check("settings");
    assert_eq!(faults.len(), 10, "{faults:#?}");
    for part in [
        "UNIONHALL_LISTEN", "UNIONHALL_TRUSTED_PROXIES", "UNIONHALL_TLS_CERT", "nowhere.toml", "UNIONHALL_SECRET",
        "write mailbox:, smtp://", "UNIONHALL_LIMITS", "UNIONHALL_STORE", "nowhere.txt",
        "UNIONHALL_RESEND_WEBHOOK_SECRET",
    ] {
        assert!(faults.iter().any(|line| line.to_string().contains(part)), "{part}: {faults:#?}");
    }
    assert!(faults.iter().all(|line| line["state"] == "fail" && line["fix"].is_string()), "{faults:#?}");
    assert!(!told.contains("hunter2"), "{told}");
    assert_eq!(found.of_check("data folder")[0]["state"], "ok", "the rest is looked at all the same");
    assert_eq!(found.output.status.code(), Some(1));
    let end = String::from_utf8(found.output.stderr).unwrap();
    assert_eq!(end, format!("unionhall: 10 of {} checks failed\n", found.lines.len()));
    // What is wrong with the flags is told as for every command.
    let wrong = patient.command().args(["doctor", "--listen", "80a"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}

#[test]
fn faults_of_the_data_folder_are_found() {
    let mut patient = Patient::new();
    patient.suffers(
        warn("data folder", "is open to others", "chmod 700 data"),
        |patient| patient.allow("data", 0o755),
        |patient| patient.allow("data", 0o700),
    );
    patient.suffers(
        warn("files", "the secret, data/secret, is open to others", "chmod 600 data/secret"),
        |patient| patient.allow("data/secret", 0o644),
        |patient| patient.allow("data/secret", 0o600),
    );
    patient.suffers(
        warn("files", "the database, data/unionhall.db, is open to others", "chmod 600 data/unionhall.db"),
        |patient| patient.allow("data/unionhall.db", 0o640),
        |patient| patient.allow("data/unionhall.db", 0o600),
    );
    patient.suffers(
        warn("data folder", "data is not there", "the first start makes it"),
        |patient| std::fs::rename(patient.path("data"), patient.path("away")).unwrap(),
        |patient| std::fs::rename(patient.path("away"), patient.path("data")).unwrap(),
    );
}

#[test]
fn a_user_who_is_not_let_in_is_told_so_and_what_else_is_wrong() {
    let mut patient = Patient::new();
    patient.set("UNIONHALL_TRUSTED_PROXIES", "0.0.0.0/0");
    let is_root = rustix::process::geteuid().is_root();
    patient.allow("data", if is_root { 0o700 } else { 0 });
    let mut command = unprivileged(patient.home.path());
    command.envs(&patient.settings);
    let found = Diagnosis::of(command);
    assert_eq!(found.output.status.code(), Some(1));
    let [records] = found.of_check("records")[..] else { panic!("{:#?}", found.lines) };
    assert_eq!(records["state"], "fail");
    assert!(records["message"].as_str().unwrap().starts_with("permission denied: "), "{records}");
    assert!(records["fix"].is_string(), "{records}");
    assert!(found.of_check("data folder").iter().all(|line| line["state"] == "fail"), "{:#?}", found.lines);
    assert_eq!(found.of_check("proxies")[0]["state"], "fail");
    patient.allow("data", 0o700);
}

#[test]
fn faults_of_the_records_are_found() {
    let mut patient = Patient::new();
    let there = patient.path("data/unionhall.db");
    let version = |patient: &Patient, version: i64| {
        patient.database().pragma_update(None, "user_version", version).unwrap();
    };
    let known = unionhall::store::migration::MIGRATIONS.len() as i64;
    patient.suffers(
        warn("records", "of an older unionhall (schema 0", "brings it up to date"),
        |patient| version(patient, 0),
        |patient| version(patient, known),
    );
    let fingerprint = |patient: &Patient, change: &str| {
        let change = format!("UPDATE unionhall_schema SET fingerprint = {change} WHERE version = 1");
        patient.database().execute_batch(&change).unwrap();
    };
    patient.suffers(
        fail("records", "was made by another unreleased build", "run the build that made it"),
        |patient| fingerprint(patient, "fingerprint || 'x'"),
        |patient| fingerprint(patient, "rtrim(fingerprint, 'x')"),
    );
    patient.suffers(
        fail("records", "was written by a newer unionhall (schema 999", "run that version"),
        |patient| version(patient, 999),
        |patient| version(patient, known),
    );
    patient.suffers(
        fail(
            "secret",
            "the secret is not the one that the records in data/unionhall.db were made with",
            "UNIONHALL_SECRET",
        ),
        |patient| patient.set("UNIONHALL_SECRET", "another-installations-secret-of-some-length"),
        |patient| patient.forget("UNIONHALL_SECRET"),
    );
    patient.suffers(
        fail("secret", "belong to a secret that is not there: put it back into data/secret", "UNIONHALL_SECRET"),
        |patient| std::fs::rename(patient.path("data/secret"), patient.path("kept")).unwrap(),
        |patient| std::fs::rename(patient.path("kept"), patient.path("data/secret")).unwrap(),
    );
    assert!(unionhall(patient.home.path()).args(["keys", "issue", "Acme"]).output().unwrap().status.success());
    let write_keys = |patient: &Patient, hours: i64| {
        let moved = patient.database().execute("UPDATE api_keys SET created_at = created_at + ?1 * 3600000", [hours]);
        assert_eq!(moved.unwrap(), 1);
    };
    patient.suffers(
        warn("clock", "the latest record was written at", "NTP"),
        |patient| write_keys(patient, 24),
        |patient| write_keys(patient, -24),
    );
    // Only who asks for it waits for the whole file to be read.
    assert!(patient.look().lines.iter().all(|line| line["check"] != "integrity"));
    let thorough = |patient: &Patient| {
        let said = patient.command().args(["doctor", "--thorough"]).output().unwrap().stdout;
        let said = String::from_utf8(said).unwrap();
        said.lines().find(|line| line.contains("integrity: ")).unwrap_or_else(|| panic!("{said}")).to_owned()
    };
    assert_eq!(thorough(&patient), "ok   integrity: SQLite finds no fault with the file");
    // An index that nothing else of the doctor's reads.
    spoil(&there, "sign_ups_by_person");
    let told = thorough(&patient);
    assert!(told.starts_with("fail integrity: SQLite: "), "{told}");
}

/// Writes nonsense over the first page of a table or an index.
fn spoil(database: &Path, name: &str) {
    let connection = rusqlite::Connection::open(database).unwrap();
    let size: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?1 UNION ALL SELECT 1 WHERE ?1 = 'sqlite_schema'";
    let page: u32 = connection.query_row(root, [name], |row| row.get(0)).unwrap();
    drop(connection);
    let mut file = std::fs::OpenOptions::new().write(true).open(database).unwrap();
    // The first page begins with the file's own header.
    let header = if page == 1 { 100 } else { 0 };
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(u64::from((page - 1) * size + header))).unwrap();
    file.write_all(&[0x55; 64]).unwrap();
}

/// Before, the operator was to make sure that the database was running.
#[test]
fn a_damaged_database_is_told_from_one_that_is_away() {
    let mut patient = Patient::new();
    let (there, kept) = (patient.path("data/unionhall.db"), patient.path("kept"));
    std::fs::copy(&there, &kept).unwrap();
    for (check, page) in [("writes", "readiness"), ("records", "sqlite_schema")] {
        patient.suffers(
            fail(check, "malformed", "restore a backup"),
            |_| spoil(&there, page),
            |_| _ = std::fs::copy(&kept, &there).unwrap(),
        );
    }
}

/// The same where the records are in PostgreSQL.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_database_of_postgresql_is_told_from_a_server_that_is_away() {
    needs!(PostgresPrograms);
    let mut cluster = Cluster::primary();
    cluster.ask("CREATE DATABASE hall ENCODING 'UTF8' TEMPLATE template0");
    let store = cluster.url("hall");
    let records = Records::Postgres { store: store.clone(), limits: "memory:".to_owned() };
    drop(Server::start_in(Home::sharing(&records), &["--mail", "hold"]));
    let folder = tempfile::tempdir().unwrap();
    let look = || {
        let mut command = unionhall(folder.path());
        command.env("UNIONHALL_STORE", &store).env("UNIONHALL_SECRET", SECRET);
        Diagnosis::of(command)
    };
    assert_eq!(look().of_check("writes")[0]["state"], "ok");
    let file = "SELECT current_setting('data_directory') || '/' || pg_relation_filepath('readiness')";
    let file = crate::records::ask(&store, file).unwrap()[0][0].clone();
    cluster.stop();
    let away = look();
    let [records] = away.of_check("records")[..] else { panic!("{:#?}", away.lines) };
    assert_eq!(records["state"], "fail");
    holds(records["fix"].as_str().unwrap(), &["make sure that the database is running"]);
    let mut damaged = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    damaged.write_all(&[0x55; 64]).unwrap();
    drop(damaged);
    cluster.start_again();
    let found = look();
    let [writes] = found.of_check("writes")[..] else { panic!("{:#?}", found.lines) };
    assert_eq!(writes["state"], "fail");
    holds(writes["message"].as_str().unwrap(), &["invalid page"]);
    holds(writes["fix"].as_str().unwrap(), &["restore a backup", "`unionhall resume`"]);
}

#[test]
fn faults_of_other_servers_are_found() {
    needs!(RedisServer);
    let mut patient = Patient::new();
    let mut redis = Redis::start();
    patient.set("UNIONHALL_LIMITS", redis.url());
    assert_eq!(patient.look().of_check("limits")[0]["state"], "ok");
    redis.kill();
    let away = patient.look();
    let [limits] = away.of_check("limits")[..] else { panic!("{:#?}", away.lines) };
    assert_eq!((&limits["state"], away.output.status.code()), (&"fail".into(), Some(1)), "{limits}");
    assert!(limits["message"].as_str().unwrap().starts_with("Redis cannot be used: "), "{limits}");
    assert!(limits["fix"].as_str().unwrap().contains("UNIONHALL_LIMITS"), "{limits}");
    redis.start_again();
    patient.suffers(
        fail("limits", "Redis refuses us", "UNIONHALL_LIMITS"),
        |patient| patient.set("UNIONHALL_LIMITS", redis.url().replace("redis://", "redis://:hunter2@")),
        |patient| patient.set("UNIONHALL_LIMITS", redis.url()),
    );
    drop(redis);
    patient.forget("UNIONHALL_LIMITS");

    let mut mailserver = Mailserver::start(&["--user", "union", "--password", "right"]);
    let address = |password: &str| format!("smtp://union:{password}@127.0.0.1:{}?tls=none", mailserver.port);
    let (right, wrong) = (address("right"), address("hunter2"));
    patient.set("UNIONHALL_MAIL", &right);
    patient.suffers(
        fail("mail", "the mail server answered 535 5.7.8 to AUTH (127.0.0.1:", "UNIONHALL_MAIL"),
        |patient| patient.set("UNIONHALL_MAIL", &wrong),
        |patient| patient.set("UNIONHALL_MAIL", &right),
    );
    mailserver.kill();
    let away = patient.look();
    let told = away.of_check("mail")[0]["message"].as_str().unwrap();
    assert!(told.starts_with("the mail server could not be used: nobody listens there"), "{told}");
    mailserver.start_again();
    assert_eq!(patient.look().of_check("mail")[0]["state"], "ok");
    assert!(mailserver.arrived().is_empty(), "nothing was sent");
    let all = String::from_utf8(away.output.stdout.clone()).unwrap();
    assert!(!all.contains("hunter2") && !all.contains("right@"), "{all}");
}

#[test]
fn faults_of_a_public_address_are_found() {
    let mut patient = Patient::new();
    let terms = "[savings]\ninternet = 312\n[referral]\nreward_per_group = 100\ngroup_size = 5\nmax_groups = 10\ncounts_on = \"accepted\"\n";
    std::fs::write(patient.path("silent.toml"), terms).unwrap();
    let texts = ["run_by", "cost", "funding"].map(|name| format!("[union.{name}]\nen = \"x\"\nes = \"x\"\n")).concat();
    std::fs::write(patient.path("catalog.toml"), format!("{terms}{texts}")).unwrap();
    for (name, value) in [
        ("UNIONHALL_BASE_URL", "https://127.0.0.2"),
        ("UNIONHALL_JOIN_SITE", "https://192.0.2.1"),
        ("UNIONHALL_CATALOG", "catalog.toml"),
        ("UNIONHALL_CONTACT_EMAIL", "keys@union.example"),
        ("UNIONHALL_POSTAL_ADDRESS", "12 Mill Street"),
        ("UNIONHALL_TRUSTED_PROXIES", "127.0.0.1"),
        ("UNIONHALL_PAGES", "pages"),
    ] {
        patient.set(name, value);
    }
    for file in ["pages/about.md", "pages/privacy.es.md", "pages/terms.md", "some/about.md", "some/privacy.es.md"] {
        std::fs::create_dir_all(patient.path(file).parent().unwrap()).unwrap();
        std::fs::write(patient.path(file), "x").unwrap();
    }
    // Without a mail server there is one thing left to warn of, once there is a backup.
    let checks = |patient: &Patient| {
        patient.look().faults().iter().map(|line| line["check"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(checks(&patient), ["backup", "mail"]);
    run(patient.command().args(["backup", "night"]));
    assert_eq!(checks(&patient), ["mail"]);
    for (name, fault, bad) in [
        (
            "UNIONHALL_TRUSTED_PROXIES",
            fail("proxies", "0.0.0.0/0 is trusted", "UNIONHALL_TRUSTED_PROXIES"),
            Some("0.0.0.0/0"),
        ),
        (
            "UNIONHALL_TRUSTED_PROXIES",
            fail("proxies", "::/0 is trusted", "UNIONHALL_TRUSTED_PROXIES"),
            Some("10.0.0.1,::/0"),
        ),
        (
            "UNIONHALL_TRUSTED_PROXIES",
            warn("proxies", "neither a certificate here nor a proxy", "UNIONHALL_TLS_CERT"),
            None,
        ),
        ("UNIONHALL_CATALOG", warn("catalog", "the sample's, which are made up", "UNIONHALL_CATALOG"), None),
        (
            "UNIONHALL_CATALOG",
            warn("catalog", "people will ask who runs the union, what it costs and how it earns", "[union]"),
            Some("silent.toml"),
        ),
        ("UNIONHALL_CATALOG", warn("catalog", "no text of yours for run_by, cost, funding", "[union]"), None),
        ("UNIONHALL_PAGES", warn("pages", "no text of yours for about, privacy, terms", "UNIONHALL_PAGES"), None),
        ("UNIONHALL_PAGES", warn("pages", "no text of yours for terms,", "UNIONHALL_PAGES"), Some("some")),
        ("UNIONHALL_CONTACT_EMAIL", warn("contact", "nobody can write", "UNIONHALL_CONTACT_EMAIL"), None),
        ("UNIONHALL_POSTAL_ADDRESS", warn("postal address", "none is set", "UNIONHALL_POSTAL_ADDRESS"), None),
        ("UNIONHALL_JOIN_SITE", warn("encryption", "unencrypted", "UNIONHALL_JOIN_SITE"), Some("http://192.0.2.1")),
        // A name that never is anybody's (RFC 6761).
        (
            "UNIONHALL_BASE_URL",
            warn("host", "nowhere.invalid", "UNIONHALL_BASE_URL"),
            Some("https://nowhere.invalid:8443/a"),
        ),
    ] {
        let good = patient.settings[name].clone();
        let plant = |patient: &mut Patient| match bad {
            Some(bad) => patient.set(name, bad),
            None => patient.forget(name),
        };
        patient.suffers(fault, plant, |patient| patient.set(name, good));
    }
    for (mail, part) in
        [("mailbox:", "nobody's inbox"), ("hold", "nothing is sent from here"), ("none", "so are sign-ups")]
    {
        patient.set("UNIONHALL_MAIL", mail);
        let found = patient.look();
        let [line] = found.of_check("mail")[..] else { panic!("{:#?}", found.lines) };
        assert_eq!(line["state"], "warn", "{line}");
        assert!(line["message"].as_str().unwrap().contains(part) && line["fix"].is_string(), "{line}");
    }
}

#[test]
fn an_address_that_is_taken_is_told_by_whom() {
    let mut patient = Patient::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    // Another program, which answers as many do.
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = taken.accept() {
            let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nwelcome");
        }
    });
    patient.suffers(
        fail("listen", "is taken by another program", "UNIONHALL_LISTEN"),
        |patient| patient.set("UNIONHALL_LISTEN", &address),
        |patient| patient.set("UNIONHALL_LISTEN", "127.0.0.1:0"),
    );
    patient.set("UNIONHALL_METRICS_LISTEN", "127.0.0.1:0");
    patient.suffers(
        fail("metrics", "is taken by another program", "UNIONHALL_METRICS_LISTEN"),
        |patient| patient.set("UNIONHALL_METRICS_LISTEN", &address),
        |patient| patient.set("UNIONHALL_METRICS_LISTEN", "127.0.0.1:0"),
    );
    // The service itself, behind its certificate.
    super::https::certify(patient.home.path());
    let (cert, key) = (patient.path("cert.pem"), patient.path("key.pem"));
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let server = Server::start_with(&["--tls-cert", cert, "--tls-key", key]);
    patient.set("UNIONHALL_TLS_CERT", cert);
    patient.set("UNIONHALL_TLS_KEY", key);
    patient.set("UNIONHALL_LISTEN", server.address.to_string());
    let found = patient.look();
    assert_eq!(found.of_check("listen")[0]["message"], format!("the service runs on {}", server.address));
}

#[test]
fn nothing_is_made_before_the_first_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = unionhall(folder.path());
    command.env("UNIONHALL_LISTEN", "127.0.0.1:0");
    let found = Diagnosis::of(command);
    let faults: Vec<_> = found.faults().iter().map(|line| (&line["check"], &line["state"])).collect();
    let warn = serde_json::Value::from("warn");
    assert_eq!(faults, [(&"data folder".into(), &warn), (&"records".into(), &warn)]);
    assert_eq!(found.output.status.code(), Some(0));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made");
}
