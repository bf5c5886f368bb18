//! The pages for the worst days: every command of their lists is run as it stands on a machine that has such a day.

use crate::machines::{hall, newest_postgres};
use crate::prelude::*;
use crate::records::postgres;

const SECRET_PAGE: &str = include_str!("../../../docs/secret.md");
const RESTORE_PAGE: &str = include_str!("../../../docs/restore.md");

/// A step of a numbered list, as a page has it: what it says, and the commands below that.
struct Step {
    says: String,
    blocks: Vec<String>,
}

/// The numbered list below a heading.
fn steps(page: &str, heading: &str) -> Vec<Step> {
    let section = page.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no {heading}"));
    let section = section.split("\n## ").next().unwrap();
    let (mut steps, mut is_command) = (Vec::<Step>::new(), false);
    for line in section.lines() {
        let number = format!("{}. ", steps.len() + 1);
        match (line.strip_prefix(&number), line.strip_prefix("   ")) {
            (Some(says), _) => steps.push(Step { says: says.to_owned(), blocks: Vec::new() }),
            (None, Some("```sh")) => {
                is_command = true;
                steps.last_mut().unwrap().blocks.push(String::new());
            }
            (None, Some("```")) => is_command = false,
            (None, Some(command)) if is_command => {
                let block = steps.last_mut().unwrap().blocks.last_mut().unwrap();
                block.push_str(command);
                block.push('\n');
            }
            _ => assert!(!is_command || line.is_empty(), "{line}"),
        }
    }
    assert!(steps.len() >= 6 && !is_command, "{heading}: {} steps", steps.len());
    steps
}

/// A machine with the files of deploy/: its folders lie in that of the test. On PostgreSQL there is a second one.
struct Machine {
    server: Option<Server>,
    home: Option<Home>,
    folder: PathBuf,
    other: Option<Box<Self>>,
    /// What stands on a page for what each has of its own.
    named: Vec<(&'static str, String)>,
}

impl Machine {
    fn start(home: Home) -> Self {
        let mut machine = Self::with(home);
        let folder = &machine.folder;
        std::fs::write(folder.join("etc/credentials/secret"), format!("{}\n", "s".repeat(40))).unwrap();
        if let Records::Sqlite { data } = machine.records() {
            // Where the first start makes it.
            std::fs::create_dir(&data).unwrap();
            std::fs::rename(folder.join("etc/credentials/secret"), data.join("secret")).unwrap();
        }
        machine.start_service();
        if matches!(machine.records(), Records::Postgres { .. }) {
            let mut other = Self::with(Home::sharing(&machine.records()));
            let secret = "etc/credentials/secret";
            std::fs::copy(machine.folder.join(secret), other.folder.join(secret)).unwrap();
            other.start_service();
            machine.other = Some(Box::new(other));
        }
        machine
    }

    fn with(home: Home) -> Self {
        let folder = home.path().to_owned();
        for made in ["etc/credentials", "backups/recent", "bin"] {
            std::fs::create_dir_all(folder.join(made)).unwrap();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_unionhall"), folder.join("bin/unionhall")).unwrap();
        let mut settings = vec![("UNIONHALL_MAIL", "hold".to_owned())];
        settings.push(("UNIONHALL_DATA", folder.join("data").display().to_string()));
        if let Records::Postgres { store, limits } = home.records() {
            settings.push(("UNIONHALL_STORE", store.clone()));
            settings.push(("UNIONHALL_LIMITS", limits.clone()));
            settings.push(("UNIONHALL_SECRET_FILE", folder.join("etc/credentials/secret").display().to_string()));
        }
        let lines = settings.iter().map(|(name, value)| format!("{name}='{value}'\n"));
        std::fs::write(folder.join("etc/unionhall.env"), lines.collect::<String>()).unwrap();
        Self { server: None, home: Some(home), folder, other: None, named: Vec::new() }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("the service runs")
    }

    fn records(&self) -> Records {
        match (&self.server, &self.home) {
            (Some(server), _) => server.records().clone(),
            (None, home) => home.as_ref().unwrap().records().clone(),
        }
    }

    fn start_service(&mut self) {
        let home = self.home.take().expect("it does not run");
        let text = std::fs::read_to_string(self.folder.join("etc/unionhall.env")).unwrap();
        let settings = text.lines().map(|line| line.split_once('=').unwrap());
        let mut command = unionhall(home.path());
        command.envs(settings.map(|(name, value)| (name, value.trim_matches('\''))));
        self.server = Some(Server::start_as(command, home, &["--log", "requests"]));
        if let Some(other) = &mut self.other {
            other.start_service();
        }
    }

    fn stop_service(&mut self) {
        self.home = Some(self.server.take().expect("it runs").stopped());
        if let Some(other) = &mut self.other {
            other.stop_service();
        }
    }

    /// `hall` with the service's own settings, and what stands in for the rest of the machine.
    fn shell(&self) -> String {
        let program = self.folder.join("bin/hall");
        std::fs::write(&program, self.here(&hall())).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let stubs = r#"
            set -euo pipefail
            sudo() { if [ "$1" = -u ]; then shift 2; fi; "$@"; }
            systemctl() { [ "$*" = "start unionhall-backup.service" ] && hall backup --secret-only-encrypted "$BACKUPS/now.backup" >made; }
            journalctl() { if [ "$2" = unionhall-backup ]; then cat made; else cat stderr; fi; }
            ssh() { shift; bash -c "sudo() { \"\$@\"; }; ${*//$HERE/$THERE}"; }"#;
        let there = self.other.as_ref().map_or(&self.folder, |other| &other.folder);
        format!(
            "HERE={} THERE={} BACKUPS={}\n{stubs}\n",
            self.folder.display(),
            there.display(),
            self.folder.join("backups").display(),
        )
    }

    /// What a page says, with the places of this machine.
    fn here(&self, text: &str) -> String {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let mut text =
            text.replace("-o unionhall", &format!("-o {user}")).replace("-g unionhall", &format!("-g {group}"));
        for (there, here) in
            [("/var/lib/unionhall", "data"), ("/etc/unionhall", "etc"), ("/var/backups/unionhall", "backups")]
        {
            text = text.replace(there, self.folder.join(here).to_str().unwrap());
        }
        self.named.iter().fold(text, |text, (named, here)| text.replace(named, here))
    }

    /// What a block of commands says.
    fn run(&mut self, block: &str) -> String {
        let services: Vec<_> = block.lines().filter_map(|line| line.strip_prefix("sudo systemctl ")).collect();
        if let [one] = &services[..]
            && !one.contains("&&")
        {
            assert_eq!(block.lines().count(), 1, "{block}");
            match one.split_once(' ').unwrap() {
                ("stop", units) if units.starts_with("unionhall") => self.stop_service(),
                ("start", units) if units.starts_with("unionhall") => self.start_service(),
                _ => panic!("{block}"),
            }
            return String::new();
        }
        let programs = format!("/usr/lib/postgresql/{}/bin", newest_postgres().unwrap());
        let path = format!("{}:{programs}:/usr/bin:/bin", self.folder.join("bin").display());
        let mut shell = Command::new("bash");
        shell.env_clear().env("PATH", path).current_dir(&self.folder);
        let output =
            shell.args(["-c", &format!("{}{}", self.shell(), self.here(block))]).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{block}\n{said}");
        said
    }

    /// Does what a page says, step by step; what the commands said. `between` is called after each step.
    async fn follow(&mut self, page: &str, heading: &str, between: impl AsyncFn(&Self, usize)) -> String {
        let is_sqlite = matches!(self.records(), Records::Sqlite { .. });
        let (mut said, mut commands) = (String::new(), 0);
        for (n, step) in steps(page, heading).iter().enumerate() {
            let is_for = |engine: &str| step.says.starts_with(engine);
            if is_for("With PostgreSQL,") && is_sqlite || is_for("On SQLite,") && !is_sqlite {
                continue;
            }
            for block in &step.blocks {
                said.push_str(&self.run(block));
                commands += 1;
            }
            between(self, n + 1).await;
        }
        assert!(commands >= 5, "{heading}: {commands}");
        said
    }

    fn ring(&self) -> Keyring {
        let file = match self.records() {
            Records::Sqlite { data } => data.join("secret"),
            Records::Postgres { .. } => self.folder.join("etc/credentials/secret"),
        };
        Keyring::parse(&std::fs::read_to_string(file).unwrap()).unwrap()
    }

    async fn sign_up(&self, key: &str, email: &str) -> i64 {
        self.server().post("/v1/invite", key, sign_up(email)).await.good();
        self.server().number("SELECT max(id) FROM sign_ups")
    }

    /// A link of a mail, as it is made now.
    fn link(&self, page: &str, purpose: Purpose, sign_up: i64) -> String {
        let created = self.server().number(&format!("SELECT created_at FROM sign_ups WHERE id = {sign_up}"));
        let id = unionhall::domain::sign_up::SignUpId(sign_up);
        let about = SignUpRef { id, created_at: Timestamp::from_millis(created) };
        format!("/{page}/{}", TokenMaker::new(&self.ring().secret(Clock::start().now().time)).token(purpose, about))
    }

    async fn join(&self, key: &str, email: &str) {
        let confirm = self.link("confirm", Purpose::Confirm, self.sign_up(key, email).await);
        assert_eq!(self.server().submit(Request::post(confirm), "").await.status, 200);
    }

    /// What each node answers to a link.
    async fn opens(&self, link: &str) -> Vec<u16> {
        let nodes = [Some(self), self.other.as_deref()].into_iter().flatten();
        together(nodes.map(async |node| node.server().get(link).await.status.as_u16())).await
    }

    fn nodes(&self) -> usize {
        1 + usize::from(self.other.is_some())
    }
}

fn machines() -> [Machine; 2] {
    [Home::on_sqlite(tempfile::tempdir().unwrap()), Home::on_postgres(tempfile::tempdir().unwrap())].map(Machine::start)
}

async fn the_secret_leaked(mut machine: Machine) {
    let key = machine.run("hall keys issue 'Acme Assistant' 2>/dev/null").trim().to_owned();
    machine.server().execute(
        "INSERT INTO webhook_endpoints (partner_id, url, created_at)
         SELECT id, 'https://acme.example/hook', 0 FROM partners WHERE name = 'Acme Assistant'",
    );
    machine.join(&key, "ana@example.com").await;
    let waits = machine.sign_up(&key, "ben@example.com").await;
    let links = [("confirm", Purpose::Confirm), ("not-me", Purpose::Decline)];
    let [confirm, decline] = links.map(|(page, purpose)| machine.link(page, purpose, waits));
    // Nobody waits a quarter of an hour here.
    machine.named = vec![("rotate --leaked", "rotate --leaked --in 6s".to_owned())];
    let is_used = async |machine: &Machine, step: usize| {
        let used = "generation 2 of the secret makes everything new from now on";
        let nodes = [Some(machine), machine.other.as_deref()];
        for node in nodes.into_iter().flatten().filter(|_| step == 2 || machine.other.is_none() && step == 1) {
            wait_for!(async || node.server().log().contains(used)).await;
        }
    };
    let said = machine.follow(SECRET_PAGE, "The secret leaked", is_used).await;
    let told = [
        "Generation 2 of the secret begins at",
        "API keys do not derive from the secret, and stay valid",
        "generation 2 of the secret makes everything new from now on",
        "https://acme.example/hook",
        "leaked; ",
        "stop mail until",
    ];
    holds(&said, &told);
    assert_eq!(said.contains("now.backup holds the records of"), machine.other.is_none(), "{said}");
    assert_eq!(
        (machine.opens(&confirm).await, machine.opens(&decline).await),
        (vec![404; machine.nodes()], vec![200; machine.nodes()])
    );
    let newer = machine.link("confirm", Purpose::Confirm, waits);
    assert_eq!(machine.opens(&newer).await, vec![200; machine.nodes()]);
    machine.join(&key, "cleo@example.com").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_a_leaked_secret_leads_to_a_new_one() {
    needs!(Postgres, Redis, PostgresPrograms);
    let [sqlite, postgres] = machines();
    tokio::join!(the_secret_leaked(sqlite), the_secret_leaked(postgres));
}

/// Where PostgreSQL is asked as its own user on the machine of the primary.
fn as_postgres(machine: &Machine) -> Vec<(&'static str, String)> {
    let Records::Postgres { store, .. } = machine.records() else { return Vec::new() };
    let name = store.rsplit_once('/').unwrap().1.split('?').next().unwrap().to_owned();
    vec![
        ("psql -d postgres", format!("psql -d {}", postgres("postgres"))),
        ("psql -d unionhall", format!("psql -d {}", postgres(&name))),
        ("-h 10.0.0.20 -U unionhall -d unionhall", format!("-d {}", postgres(&name))),
        ("DATABASE unionhall RENAME TO unionhall_old", format!("DATABASE {name} RENAME TO {name}_old")),
        ("DATABASE unionhall OWNER unionhall", format!("DATABASE {name}")),
    ]
}

async fn the_secret_is_lost(mut machine: Machine) {
    let key = machine.run("hall keys issue 'Acme Assistant' 2>/dev/null").trim().to_owned();
    machine.run("hall keys issue 'Acme Assistant' --test");
    machine.join(&key, "ana@example.com").await;
    let waits = machine.sign_up(&key, "ben@example.com").await;
    let decline = machine.link("not-me", Purpose::Decline, waits);
    machine.named = as_postgres(&machine);
    for node in [Some(&machine), machine.other.as_deref()].into_iter().flatten() {
        for place in ["data/secret", "etc/credentials/secret"] {
            // It is at one of them.
            let _none = std::fs::remove_file(node.folder.join(place));
        }
    }
    let said = machine.follow(SECRET_PAGE, "The secret is lost", async |_, _| {}).await;
    holds(&said, &["The records have a new secret", "not even those that stop mail", "uh_"]);
    assert!(!said.contains("fail "), "{said}");
    assert_eq!(machine.opens(&decline).await, vec![404; machine.nodes()]);
    assert_eq!(machine.opens(&machine.link("confirm", Purpose::Confirm, waits)).await, vec![200; machine.nodes()]);
    machine.join(&key, "cleo@example.com").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_a_lost_secret_leads_to_a_new_one() {
    needs!(Postgres, Redis, PostgresPrograms);
    let [sqlite, postgres] = machines();
    tokio::join!(the_secret_is_lost(sqlite), the_secret_is_lost(postgres));
}

async fn data_is_lost(mut machine: Machine) {
    let key = machine.run("hall keys issue 'Acme Assistant' 2>/dev/null").trim().to_owned();
    let leaky = machine.run("hall keys issue Leaky 2>/dev/null").trim()[3..11].to_owned();
    for email in ["ana@example.com", "zoe@example.com"] {
        machine.join(&key, email).await;
    }
    machine.server().execute("UPDATE people SET created_at = created_at - 7200000 WHERE email LIKE 'zoe%'");
    let folder = machine.folder.clone();
    let is_sqlite = machine.other.is_none();
    match is_sqlite {
        true => drop(machine.run("hall backup --secret-only-encrypted \"$BACKUPS/night.backup\"")),
        false => {
            let Records::Postgres { store, .. } = machine.records() else { unreachable!() };
            drop(machine.run(&format!("pg_dump -Fc -f night.dump '{store}'")));
        }
    }
    machine.run("hall members erase zoe@example.com");
    machine.run(&format!("hall keys revoke {leaky}"));
    let late = machine.sign_up(&key, "late@example.com").await;
    let late = machine.link("confirm", Purpose::Confirm, late);
    machine.named = as_postgres(&machine);
    let log = |folder: &Path| folder.join("data/erasures").display().to_string();
    let places = [
        ("/backup/unionhall-DATE.dump", folder.join("night.dump").display().to_string()),
        ("FILE.backup", "night.backup".to_owned()),
        (" --erasures /safe/place/erasures-node1", format!(" --erasures {}", log(&folder))),
        // Nobody was erased through the other node.
        (" --erasures /safe/place/erasures-node2", String::new()),
    ];
    machine.named.extend(places);
    let heading = if is_sqlite { "On one machine, with SQLite" } else { "With PostgreSQL" };
    let said = machine.follow(RESTORE_PAGE, heading, async |_, _| {}).await;
    let revoked = format!("These were revoked since, and were revoked again:\n    {leaky} of Leaky\n");
    holds(&said, &["1 person was erased since, and was erased again", &revoked]);
    assert!(!said.contains("fail "), "{said}");
    assert_eq!(machine.opens(&late).await, vec![404; machine.nodes()]);
    assert_eq!(machine.server().number("SELECT count(*) FROM people WHERE email LIKE 'zoe%'"), 0);
    assert_eq!(machine.server().number("SELECT count(*) FROM people WHERE state = 'member'"), 1);
    machine.join(&key, "cleo@example.com").await;
    if !is_sqlite {
        let old = &machine.named.iter().find(|(named, _)| named.contains("RENAME")).unwrap().1;
        let drop = format!("DROP DATABASE {} WITH (FORCE)", old.rsplit(' ').next().unwrap());
        crate::records::ask(&postgres("postgres"), &drop).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_a_restore_leads_to_records_that_are_served_again() {
    needs!(Postgres, Redis, PostgresPrograms);
    let [sqlite, postgres] = machines();
    tokio::join!(data_is_lost(sqlite), data_is_lost(postgres));
}
