//! The operator's commands, beside a running server.

use crate::prelude::*;

fn listed(server: &Server) -> Vec<Value> {
    serde_json::from_str(&server.run(&["keys", "list", "--json"])).unwrap()
}

/// The list of processes shows flags to everybody.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_given_as_a_flag_does_not_stay_in_the_list_of_processes() {
    let secret = "hunter2".repeat(6);
    let server = Server::start_with(&["--secret", &secret, "--mail", "smtp://u:hunter2@127.0.0.1:1?tls=none"]);
    let shown = std::fs::read(format!("/proc/{}/cmdline", server.id())).unwrap();
    let shown = String::from_utf8(shown).unwrap().replace('\0', " ");
    assert!(shown.contains("serve --listen") && !shown.contains("hunter2"), "{shown}");
    wait_for!(async || server.log().contains("given as a flag")).await;
    assert!(!server.log().contains("hunter2"), "{}", server.log());
    let help = server.run(&["serve", "--help"]);
    assert!(help.contains("list of processes") || help.contains("list of\n"), "{help}");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_issued_listed_and_revoked_beside_the_running_server() {
    let server = Server::start_with(&["--key-per-minute", "1000"]);
    assert_eq!(listed(&server), Vec::<Value>::new());
    let issued = server.try_run(&["keys", "issue", "Acme", "--per-minute", "500", "--expires", "2999-01-31"]);
    let key = String::from_utf8(issued.stdout).unwrap();
    assert_eq!(key.lines().count(), 1, "the key alone on standard output");
    let (key, told) = (key.trim(), String::from_utf8(issued.stderr).unwrap());
    assert!(told.contains("Acme") && !told.contains(key), "{told}");
    let plain = server.run(&["keys", "issue", "Plain"]);

    let act = async |key: &str| server.post("/v1/referral-link", key, sign_up("ana@example.com")).await;
    act(key).await.good();
    act(&plain).await.good();
    wait_for!(async || listed(&server).iter().all(|key| key["lastUsedAt"].is_string())).await;

    let keys = listed(&server);
    let fields: Vec<_> = keys[0].as_object().unwrap().keys().map(String::as_str).collect();
    for field in ["id", "partner", "perMinute", "createdAt", "expiresAt", "lastUsedAt", "revokedAt"] {
        assert!(fields.contains(&field), "{field}");
    }
    let acme = keys.iter().find(|key| key["partner"] == "Acme").unwrap();
    assert_eq!((&acme["id"], &acme["perMinute"]), (&json!(key[3..11]), &json!(500)));
    assert_eq!((&acme["expiresAt"], &acme["revokedAt"]), (&json!("2999-01-31T00:00:00Z"), &Value::Null));
    let other = keys.iter().find(|key| key["partner"] == "Plain").unwrap();
    assert_eq!((&other["perMinute"], &other["expiresAt"]), (&json!(30), &Value::Null));
    let table = server.run(&["keys", "list"]);
    assert!(table.contains("Acme") && !table.contains(&key[12..]), "{table}");

    server.run(&["keys", "revoke", &key[3..11]]);
    wait_for!(async || act(key).await.status == 401).await;
    holds(&act(key).await.refused(401, "agent_unauthorized"), &["revoked"]);
    act(&plain).await.good();
    assert!(listed(&server).iter().any(|key| key["revokedAt"].is_string()));
    // The whole key names itself too; revoking twice is no error.
    assert!(server.run(&["keys", "revoke", key]).contains("already"));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_rotate_with_grace() {
    let server = Server::start();
    let old = server.run(&["keys", "issue", "Acme", "--per-minute", "7"]);
    let act = async |key: &str| server.post("/v1/referral-link", key, sign_up("ana@example.com")).await;
    let new = server.run(&["keys", "rotate", &old[3..11]]);
    act(&old).await.good();
    let done = act(&new).await;
    done.good();
    assert_eq!(done.header("ratelimit-policy"), "\"action\";q=7;w=60", "the successor has the same limit");
    let again = server.try_run(&["keys", "rotate", &old[3..11], "--expires", "2999-01-31"]);
    holds(&String::from_utf8(again.stderr).unwrap(), &["itself works until 2999-01-31"]);
    let last = server.run(&["keys", "rotate", &new[3..11], "--grace", "0s"]);
    wait_for!(async || act(&new).await.status == 401).await;
    holds(&act(&new).await.refused(401, "agent_unauthorized"), &[&format!("rotated to key {}", &last[3..11])]);
    act(&last).await.good();
    for id in ["00000000", &new[3..11]] {
        assert!(!server.try_run(&["keys", "rotate", id]).status.success(), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_sign_ups_answer_and_the_public_data_stays_up() {
    let (server, key) = Server::with_key(&[]);
    let both = async || {
        [
            server.post("/v1/invite", &key, sign_up("ana@example.com")).await,
            server.post("/v1/referral-link", &key, sign_up("ana@example.com")).await,
        ]
    };
    server.run(&["signups", "pause"]);
    wait_for!(async || both().await[0].status == 500).await;
    for answer in both().await {
        answer.refused(500, "backend_not_configured");
    }
    // Bad input is told before that, as always.
    server.post("/v1/invite", &key, "{").await.refused(400, "invalid_json");
    server.get("/v1/stats").await.good();
    assert!(server.run(&["signups", "pause"]).contains("already"));
    server.run(&["signups", "resume"]);
    wait_for!(async || both().await[1].status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outbox_is_listed_and_a_mail_is_tried_again() {
    let (server, key) = Server::with_key(&["--mail", "hold"]);
    assert_eq!(server.run(&["mail", "list"]), "The outbox is empty.");
    server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good();
    let listed = server.json(&["mail", "list", "--json"]);
    assert_eq!((&listed[0]["kind"], &listed[0]["attempts"]), (&json!("confirm"), &json!(0)));
    assert!(!listed.to_string().contains("ana@") && !server.run(&["mail", "list"]).contains("ana@"));
    server.run(&["mail", "retry", &listed[0]["id"].to_string()]);
    let told = server.try_run(&["mail", "retry", "99"]);
    assert!(String::from_utf8(told.stderr).unwrap().contains("there is no mail 99"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_mail_there_are_no_sign_ups() {
    let (server, key) = Server::with_key(&["--mail", "none"]);
    for path in ["/v1/invite", "/v1/referral-link"] {
        server.post(path, &key, sign_up("ana@example.com")).await.refused(500, "backend_not_configured");
        server.post(path, &key, "{}").await.refused(400, "invalid_submission");
        server.post(path, "wrong", "{}").await.refused(401, "agent_unauthorized");
    }
    server.get("/v1/stats").await.good();
    assert_eq!(server.number("SELECT count(*) FROM people"), 0);
}

/// Run with no settings but these.
fn alone(arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let output =
        crate::server::unionhall(folder.path()).args(arguments).envs(variables.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Every command that does something, with the words that lead to it.
fn leaves(command: &clap::Command, words: &str, found: &mut Vec<String>) {
    let words = format!("{words} {}", command.get_name());
    match command.has_subcommands() {
        true => command.get_subcommands().for_each(|command| leaves(command, &words, found)),
        false => found.push(words.trim().to_owned()),
    }
}

#[test]
fn a_backup_is_made_of_one_machine_and_postgres_is_left_to_its_own_tools() {
    let server = Server::start();
    let (made, file) = (server.try_run(&["backup", "all"]), server.data().with_file_name("all"));
    let told = String::from_utf8_lossy(&made.stderr);
    match server.records() {
        Records::Sqlite { .. } => assert!(made.status.success() && file.exists(), "{told}"),
        Records::Postgres { store, .. } => {
            assert!(!made.status.success() && !file.exists(), "{told}");
            // Where the address is in a file, the variable is empty.
            let folder = server.data().parent().unwrap().to_owned();
            std::fs::write(folder.join("store"), store).unwrap();
            let refused = unionhall(&folder).args(["backup", "all", "--store-file", "store"]).output().unwrap();
            holds(
                &String::from_utf8(refused.stderr).unwrap(),
                &["`pg_dump -Fc -f FILE \"$(cat store)\"`", "keep a copy of"],
            );
            for word in
                ["pg_dump -Fc -f FILE \"$UNIONHALL_STORE\"`", "pg_basebackup", "keep a copy of", "nothing was written"]
            {
                assert!(told.contains(word), "{told}");
            }
        }
    }
}

mod once {
    use super::*;
    use crate::records::Home;
    use crate::server::{settings, unionhall};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_key_used_often_is_not_written_often() {
        let (server, key) = Server::with_key(&["--public-per-minute", "100000"]);
        let mut connection = server.connect(std::net::Ipv4Addr::LOCALHOST).await;
        let read = || hyper::Request::get("/v1/stats").header("authorization", format!("Bearer {key}"));
        connection.send(read(), "").await.good();
        wait_for!(async || listed(&server)[0]["lastUsedAt"].is_string()).await;
        let watching = rusqlite::Connection::open(server.data().join("unionhall.db")).unwrap();
        let version = || -> i64 { watching.pragma_query_value(None, "data_version", |row| row.get(0)).unwrap() };
        let log = server.data().join("unionhall.db-wal");
        let (before, size) = (version(), std::fs::metadata(&log).unwrap().len());
        for _ in 0..500 {
            connection.send(read(), "").await.good();
        }
        assert_eq!((version(), std::fs::metadata(&log).unwrap().len()), (before, size));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_key_issued_before_the_first_start_is_told_of_and_works() {
        let home = Home::new();
        let refused = unionhall(home.path()).args(["keys", "issue", "Early"]).output().unwrap();
        holds(&String::from_utf8(refused.stderr).unwrap(), &["no records at data/unionhall.db", "--new"]);
        assert!(refused.stdout.is_empty() && !home.path().join("data").exists(), "nothing was made");
        let issued = unionhall(home.path()).args(["keys", "issue", "Early", "--new"]).output().unwrap();
        assert!(issued.status.success(), "{}", String::from_utf8_lossy(&issued.stderr));
        let server = Server::start_in(home, &[]);
        let key = String::from_utf8(issued.stdout).unwrap();
        server.post("/v1/referral-link", key.trim(), sign_up("ana@example.com")).await.good();
    }

    /// As with `unionhall doctor 2>&1 | head -1`: nothing panics, and the exit code says what it says to a reader who stays.
    #[test]
    fn a_reader_who_has_gone_is_no_error() {
        let (server, key) = Server::with_key(&[]);
        let fine = [
            "doctor --json --listen 127.0.0.1:0", "settings", "settings --json", "keys list", "keys issue Acme",
            "keys rotate KEY", "keys revoke KEY", "partners list", "webhooks list", "members export",
            "members find ana@example.com", "stats", "mail list", "signups status", "audit", "backup copy", "openapi",
            "completions bash", "manual", "serve --help", "--version", "",
        ];
        let failed =
            [("doctor --mail smtp://127.0.0.1:1", 1), ("catalog check nowhere.toml", 1), ("serve --nonsense", 2)];
        for (line, code) in fine.map(|line| (line, 0)).into_iter().chain(failed) {
            let line = line.replace("KEY", &key[3..11]);
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let (out, mut command) = (writer.try_clone().unwrap(), server.command());
            let status = command.args(line.split_whitespace()).stdout(out).stderr(writer).status().unwrap();
            assert_eq!(status.code(), Some(code), "{line}");
        }
    }

    #[test]
    fn settings_are_shown_with_their_origin_and_without_secrets() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mail"), "smtps://u:hunter2@mail.example.com\n").unwrap();
        let run = |more: &[&str]| {
            let mut command = unionhall(folder.path());
            command.args(["settings", "--trusted-proxies", "10.0.0.1,10.0.0.2", "--secret", &"hunter2".repeat(5)]);
            command.args(["--mail-file", "mail"]).env("UNIONHALL_LISTEN", "8081").env("UNIONHALL_LISTN", "1");
            command.env("UNIONHALL_LIMITS", "redis://u:hunter2@redis.example/0").env("UNIONHALL_NAME", "");
            command.env("UNIONHALL_STORE", "mysql://u:hunter2@db.example/hall");
            let output = command.args(more).output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(!said.contains("hunter2"), "{said}");
            said
        };
        let document: Value = serde_json::from_str(&run(&["--json"])).unwrap();
        let settings = document["settings"].as_array().unwrap();
        let setting = |flag: &str| settings.iter().find(|setting| setting["flag"] == flag).unwrap();
        let shown = |flag: &str| (setting(flag)["value"].clone(), setting(flag)["source"].as_str().unwrap());
        assert_eq!(shown("--listen"), (json!("127.0.0.1:8081"), "variable"));
        // What is in force though it was not given, and what it follows.
        for (flag, value, follows) in [
            ("--base-url", "http://127.0.0.1:8081", "UNIONHALL_LISTEN"),
            ("--join-site", "http://127.0.0.1:8081", "UNIONHALL_BASE_URL"),
            ("--mail-from", "Consumer Union <no-reply@localhost>", "UNIONHALL_JOIN_SITE"),
        ] {
            assert_eq!(shown(flag), (json!(value), "follows"));
            assert_eq!(setting(flag)["follows"], follows);
        }
        assert_eq!(shown("--name"), (json!("Consumer Union"), "default"));
        assert_eq!(shown("--trusted-proxies"), (json!("10.0.0.1,10.0.0.2"), "flag"));
        assert_eq!(shown("--secret"), (json!("set"), "flag"), "though it was moved to its variable");
        assert_eq!(shown("--mail"), (json!("mail.example.com:465, with TLS and a login"), "file"));
        assert_eq!(setting("--mail")["file"], "mail");
        assert_eq!(shown("--limits"), (json!("Redis at redis.example:6379, prefix unionhall:"), "variable"));
        assert_eq!(shown("--catalog"), (Value::Null, "default"));
        assert!(shown("--store").0.as_str().unwrap().starts_with("cannot be used: "));
        assert_eq!(document["warnings"][0]["fix"], "did you mean UNIONHALL_LISTEN?");
        // Every setting of `serve`, and no other; the files with another's value are shown with it.
        let line = unionhall::cli::command_line();
        let serve =
            line.find_subcommand("serve").unwrap().get_arguments().filter(|argument| argument.get_env().is_some());
        let flags: Vec<_> = serve.map(|argument| format!("--{}", argument.get_long().unwrap())).collect();
        let is_file =
            |flag: &String| flag.strip_suffix("-file").is_some_and(|flag| flags.iter().any(|known| known == flag));
        let expected: Vec<_> = flags.iter().filter(|flag| !is_file(flag)).collect();
        assert_eq!(settings.iter().map(|setting| setting["flag"].as_str().unwrap()).collect::<Vec<_>>(), expected);

        let table = run(&[]);
        let row = |flag: &str| table.lines().find(|line| line.starts_with(flag)).unwrap().split_whitespace();
        assert_eq!(row("SETTING ").collect::<Vec<_>>(), ["SETTING", "FROM", "VALUE"]);
        assert_eq!(row("--listen ").collect::<Vec<_>>(), ["--listen", "UNIONHALL_LISTEN", "127.0.0.1:8081"]);
        assert_eq!(row("--contact-email ").collect::<Vec<_>>(), ["--contact-email", "default", "not", "set"]);
        let catalog = ["--catalog", "default", "the", "built-in", "sample"];
        assert_eq!(row("--catalog ").collect::<Vec<_>>(), catalog, "what is served without one");
        let join_site = ["--join-site", "follows", "UNIONHALL_BASE_URL", "http://127.0.0.1:8081"];
        assert_eq!(row("--join-site ").collect::<Vec<_>>(), join_site);
        assert!(
            table.contains(
                "WARNING: UNIONHALL_LISTN is not a setting and has no effect; did you mean UNIONHALL_LISTEN?"
            )
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was made");
    }

    #[test]
    fn variables_set_to_nothing_count_as_not_set() {
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| {
            let empty = settings().into_iter().map(|name| (name, ""));
            unionhall(folder.path()).envs(empty).args(arguments).output().unwrap()
        };
        let document: Value = serde_json::from_slice(&run(&["openapi"]).stdout).unwrap();
        assert_eq!(document["info"]["title"], "Consumer Union API");
        // Serving comes as far as the one thing that is wrong: the settings were all read.
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let told = run(&["serve", "--listen", &taken.local_addr().unwrap().to_string()]).stderr;
        holds(&String::from_utf8(told).unwrap(), &["is taken by another program"]);
    }

    #[test]
    fn the_document_is_printed_without_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let output =
            unionhall(folder.path()).arg("openapi").env("UNIONHALL_BASE_URL", "https://api.union.example").output();
        let document: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        assert_eq!(document["servers"][0]["url"], "https://api.union.example");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made");
    }

    #[test]
    fn wrong_words_are_told_with_the_right_ones() {
        let folder = tempfile::tempdir().unwrap();
        let fails = |arguments: &[&str]| {
            let output = unionhall(folder.path()).args(arguments).output().unwrap();
            assert!(!output.status.success(), "{arguments:?}");
            String::from_utf8(output.stderr).unwrap()
        };
        for (arguments, part) in [
            (&["keys", "list"][..], "there are no records at data/unionhall.db"),
            (&["keys", "issue", "Acme", "--expires", "tomorrow"], "write 2027-01-31"),
            (&["keys", "issue", "Acme", "--expires", "2020-01-01"], "lies in the past"),
            (&["keys", "issue", " "], "1 to 100 characters"),
            (&["keys", "revoke", "nonsense!"], "not a key id"),
            (&["serve", "--trusted-proxies", "everyone"], "write 10.0.0.7 or 10.0.0.0/8"),
            (&["serve", "--base-url", "api.example.com"], "is not a web address"),
            (&["serve", "--catalog", "nowhere.toml"], "cannot read the catalog nowhere.toml"),
            (&["serve", "--secret", "short"], "at least 32 characters"),
            (&["serve", "--store", "mysql://u:hunter2@h/d"], "write `sqlite:`, `sqlite:FILE` or `postgres://"),
            (&["serve", "--store", "postgres://u:hunter2@h/d?sslmode=on"], "verify-ca or verify-full"),
            (&["serve", "--store", "postgres://u:hunter2@127.0.0.1:1/d"], "no host takes writes (127.0.0.1:1: error"),
            (&["serve", "--store-file", "nowhere"], "cannot read where the records are from nowhere"),
            (&["serve", "--mail", "imap://u:hunter2@h/d"], "write mailbox:, smtp://…"),
            (&["serve", "--mail", "smtp://u:hunter2@h:x"], "write smtp://USER:PASSWORD@HOST:587"),
            (&["serve", "--name", " "], "1 to 200 characters"),
            (&["serve", "--contact-email", "me"], "write an address such as"),
            (&["serve", "--public-per-minute", "0"], "write a whole number from 1 to 1000000, such as 60"),
        ] {
            let told = fails(arguments);
            assert!(told.contains(part), "{arguments:?}: {told}");
            assert!(!told.contains("panicked") && !told.contains("hunter2"), "{told}");
            assert_eq!(told.trim().lines().count(), 1, "{told}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made");
    }

    #[test]
    fn the_bare_command_is_its_own_manual() {
        let (code, help, error) = alone(&[], &[]);
        assert_eq!((code, error.as_str()), (Some(0), ""));
        holds(&help, &["Usage: unionhall", "serve", "keys", "signups", "catalog", "--version"]);
    }

    #[test]
    fn a_wrong_value_is_told_with_its_fix_and_its_variable() {
        let wrong = [("UNIONHALL_LISTEN", "union.example")];
        let (code, _, told) = alone(&["serve"], &wrong);
        assert_eq!(code, Some(2));
        assert!(told.contains("UNIONHALL_LISTEN") && told.contains("write a port (8080)"), "{told}");
        assert!(!told.contains("--listen") && told.lines().count() == 1, "{told}");
        let (_, _, told) = alone(&["serve", "--listen", "80a"], &wrong);
        assert!(told.contains("--listen") && !told.contains("UNIONHALL_LISTEN"), "{told}");
        let (_, _, told) = alone(&["signups", "status"], &[("UNIONHALL_FORM_MAILS_A_DAY", "many")]);
        assert!(told.contains("UNIONHALL_FORM_MAILS_A_DAY: write a whole number from 0 to"), "{told}");
    }

    /// Every flag of every command, fed what it cannot take. What a flag takes is said by us, and not by the parser of a number.
    #[test]
    fn no_flag_answers_in_words_of_the_program() {
        fn refusals(command: &clap::Command, found: &mut Vec<String>) {
            let flags = command.get_arguments().filter(|argument| argument.get_action().takes_values());
            for flag in flags.filter(|argument| !argument.is_hide_set()).filter_map(clap::Arg::get_long) {
                for wrong in ["~", "-1", "1.5", "0", "99999999999999999999", ""] {
                    let given = [command.get_name().to_owned(), format!("--{flag}={wrong}")];
                    let refused = command.clone().try_get_matches_from(given).err();
                    let refused = refused.filter(|error| error.kind() == clap::error::ErrorKind::ValueValidation);
                    found.extend(refused.map(|error| format!("{}: {error}", command.get_name())));
                }
            }
            command.get_subcommands().for_each(|command| refusals(command, found));
        }
        let mut found = Vec::new();
        refusals(&unionhall::cli::command_line(), &mut found);
        assert!(found.len() > 300, "{}", found.len());
        let of_the_program =
            ["digit found", "is not in ", "target type", "parse", "Invalid", "invalid input", "expected"];
        let is_told = ["write ", "give ", "ids have", "ids; `", "those are numbers"];
        found.retain(|told| {
            of_the_program.iter().any(|part| told.contains(part)) || !is_told.iter().any(|part| told.contains(part))
        });
        assert_eq!(found, Vec::<String>::new());
    }

    /// Wrong types in the files that operators write; each answer has the line, the field and what would be right.
    #[test]
    fn no_file_is_answered_in_words_of_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let name = file.to_str().unwrap();
        let terms = "[referral]\nreward_per_group = 100\ngroup_size = 5\nmax_groups = 10";
        let number = "line 2: internet takes a whole number, such as internet = 100";
        let toml = "line 2: this is not TOML; write a number as name = 100, a text as name = \"text\"";
        for (text, right) in [
            ("savings = 1", "line 1: savings is a table; write [savings] on a line of its own"),
            ("[savings]\ninternet = \"300\"", number),
            ("[savings]\ninternet = 1.5", number),
            ("[savings]\ninternet = true", number),
            ("[savings]\ninternet = 99999999999999999999", number),
            ("[savings]\ninternet 300", toml),
            ("[savings]\ninternet = $300", "line 2: this is not TOML; write a number as internet = 100"),
            ("[savings", "line 1: this is not TOML"),
            ("[savings]\ninternet = 1\ninternet = 2", "line 3: internet is there twice; keep one of them"),
            ("[savings]\ninternet = 1", "referral is missing; the sample shows how it is written"),
            (
                &format!("[savings]\ninternet = 1\n{terms}\nhold = 3"),
                "line 7: there is no field hold; there are reward_per_group, group_size,",
            ),
            (
                &format!("[savings]\ninternet = 1\n{terms}\ncounts_on = 3"),
                "line 7: counts_on takes a text in quotation marks, such as counts_on = \"text\"",
            ),
        ] {
            std::fs::write(&file, text).unwrap();
            let (_, _, told) = alone(&["catalog", "check", name], &[]);
            assert!(told.contains(right), "{text}: {told}");
        }
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        let not_a_text = "it is not a text; save it as UTF-8";
        for arguments in
            [&["catalog", "check", name][..], &["serve", "--theme", name], &["serve", "--secret-file", name]]
        {
            let (_, _, told) = alone(arguments, &[]);
            assert!(told.contains(not_a_text), "{arguments:?}: {told}");
        }
        std::fs::write(&file, "main = 5").unwrap();
        let (_, _, told) = alone(&["serve", "--theme", name], &[]);
        assert!(told.contains("line 1: main takes a text in quotation marks"), "{told}");
        std::fs::write(&file, "{\"supplier\": }").unwrap();
        let (_, _, told) = alone(&["campaigns", "new", name], &[]);
        assert!(told.contains("line 1, column 14: this is not JSON; write {\"supplier\""), "{told}");
    }

    /// What a container's health check runs, with each documented form of the address.
    #[test]
    fn health_asks_the_service_at_its_own_address() {
        let server = Server::start();
        let port = server.address.port();
        let health =
            |listen: &str, more: &[(&str, &str)]| alone(&["health"], &[&[("UNIONHALL_LISTEN", listen)], more].concat());
        for host in ["", "localhost:", ":", "*:", "0.0.0.0:", "127.0.0.1:"] {
            let (code, said, told) = health(&format!("{host}{port}"), &[]);
            assert_eq!((code, told.as_str()), (Some(0), ""), "{host}");
            assert!(said.starts_with("The service answers at "), "{said}");
        }
        let (code, _, told) = health(&port.to_string(), &[("UNIONHALL_TLS_CERT", "c"), ("UNIONHALL_TLS_KEY", "k")]);
        assert!(code == Some(1) && told.contains("the service does not answer at 127.0.0.1:"), "{told}");
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let strange = other.local_addr().unwrap().to_string();
        let answering = std::thread::spawn(move || {
            let (mut client, _) = other.accept().unwrap();
            // It may be asked before it has read: what it says stands.
            let _read = std::io::Read::read(&mut client, &mut [0; 256]);
            client.write_all(b"HTTP/1.1 503 Service Unavailable\r\n\r\n").unwrap();
        });
        let (code, _, told) = health(&strange, &[]);
        answering.join().unwrap();
        assert!(
            code == Some(1) && told.contains("answers /healthz with \"HTTP/1.1 503 Service Unavailable\""),
            "{told}"
        );
        drop(server);
        let (code, _, told) = health(&port.to_string(), &[]);
        assert!(code == Some(1) && told.contains("does not answer"), "{told}");
    }

    /// With TLS, and on all addresses of both protocols.
    #[test]
    fn health_asks_over_tls_and_over_ipv6() {
        let folder = tempfile::tempdir().unwrap();
        crate::once::https::certify(folder.path());
        for (listen, flags) in [
            ("127.0.0.1:0", &["--tls-cert", "cert.pem", "--tls-key", "key.pem"][..]),
            ("[::]:0", &[]),
            ("[::1]:0", &["--tls-cert", "cert.pem", "--tls-key", "key.pem"]),
        ] {
            if std::net::TcpListener::bind(listen).is_err() {
                continue;
            }
            let mut process = unionhall(folder.path());
            let mut process =
                process.args(["serve", "--listen", listen]).args(flags).stdout(Stdio::piped()).spawn().unwrap();
            let first = BufReader::new(process.stdout.take().unwrap()).lines().next().unwrap().unwrap();
            let address = first.split("://").nth(1).unwrap().split('"').next().unwrap();
            let asked = unionhall(folder.path()).args(["health", "--listen", address]).args(flags).output().unwrap();
            process.kill().unwrap();
            process.wait().unwrap();
            assert!(asked.status.success(), "{listen}: {asked:?}");
        }
    }

    #[test]
    fn a_catalog_is_checked_before_it_is_served() {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/catalog.sample.toml");
        let (code, said, _) = alone(&["catalog", "check", sample], &[]);
        assert_eq!(code, Some(0));
        holds(
            &said,
            &[
                "internet", "14 categories, $4,150 a year in all for the API.", "$3,400 on pages",
                "run_by, cost, funding", "The catalog is good.",
            ],
        );
        let folder = tempfile::tempdir().unwrap();
        let bad = folder.path().join("bad.toml");
        let terms = "[referral]\nreward_per_group = 100\ngroup_size = 5\nmax_groups = 10\n";
        std::fs::write(&bad, format!("[savings]\npets = 1\n{terms}")).unwrap();
        let (code, _, told) = alone(&["catalog", "check", bad.to_str().unwrap()], &[]);
        assert!(code == Some(1) && told.contains("has a mistake") && told.contains("pets"), "{told}");
        let (code, _, told) = alone(&["catalog", "check", "/nowhere.toml"], &[]);
        assert!(code == Some(1) && told.contains("cannot read the catalog /nowhere.toml"), "{told}");
    }

    #[test]
    fn shells_complete_every_command() {
        let mut commands = Vec::new();
        leaves(&unionhall::cli::command_line(), "", &mut commands);
        assert!(commands.len() > 10, "{commands:?}");
        for shell in ["bash", "zsh", "fish"] {
            let (code, script, _) =
                alone(&["completions", shell], &[("UNIONHALL_SECRET", "of-nobody-else-and-long-enough-too")]);
            assert_eq!(code, Some(0));
            for command in &commands {
                for word in command.split(' ') {
                    assert!(script.contains(word), "{shell} does not know {word} of {command}");
                }
            }
            assert!(script.contains("catalog") && !script.contains("of-nobody-else"), "no value of a variable");
        }
        let folder = tempfile::tempdir().unwrap();
        let (_, script, _) = alone(&["completions", "bash"], &[]);
        let file = folder.path().join("unionhall.bash");
        std::fs::write(&file, script).unwrap();
        let checked = std::process::Command::new("bash").arg("-n").arg(&file).output().unwrap();
        assert!(checked.status.success() && checked.stderr.is_empty(), "{checked:?}");
        // As the shell asks it: what may follow these words?
        let ask = "source \"$0\"; COMP_WORDS=(unionhall keys ''); COMP_CWORD=2; _unionhall unionhall '' keys; echo \"${COMPREPLY[*]}\"";
        let offered = std::process::Command::new("bash").args(["-c", ask]).arg(&file).output().unwrap();
        let offered = String::from_utf8(offered.stdout).unwrap();
        for word in ["issue", "list", "revoke", "rotate"] {
            assert!(offered.split_whitespace().any(|offer| offer == word), "{word} in {offered}");
        }
        let (code, _, told) = alone(&["completions", "tcsh"], &[]);
        assert!(code == Some(2) && told.contains("bash, fish, zsh"), "{told}");
    }

    #[test]
    fn the_manual_names_every_command_and_every_variable_and_can_be_set() {
        let (code, page, error) = alone(&["manual"], &[("UNIONHALL_SECRET", "of-nobody-else-and-long-enough-too")]);
        assert_eq!((code, error.as_str()), (Some(0), ""));
        let plain = page.replace("\\-", "-");
        let mut commands = Vec::new();
        leaves(&unionhall::cli::command_line(), "", &mut commands);
        for command in commands {
            assert!(plain.lines().any(|line| line == format!(".SS \"{command}\"")), "{command}");
        }
        for variable in crate::server::settings() {
            assert!(plain.contains(&format!("\\fB{variable}\\fR")), "{variable}");
        }
        assert!(!plain.contains("of-nobody-else") && page.is_ascii());
        for line in page.lines().filter(|line| line.starts_with('.')) {
            let request = line.split(' ').next().unwrap();
            let known = [
                ".TH", ".SH", ".SS", ".TP", ".IP", ".PP", ".RS", ".RE", ".br", ".nh", ".ad", ".nf", ".fi", ".ie", ".el",
            ];
            assert!(known.contains(&request), "{line}");
        }
        // Where there is a typesetter it has nothing to complain of.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("unionhall.1");
        std::fs::write(&file, &page).unwrap();
        if let Ok(set) =
            std::process::Command::new("groff").args(["-man", "-ww", "-Tascii", "-P-cbou"]).arg(&file).output()
        {
            assert!(set.status.success() && set.stderr.is_empty(), "{}", String::from_utf8_lossy(&set.stderr));
            assert!(String::from_utf8_lossy(&set.stdout).contains("UNIONHALL_CATALOG"));
        }
    }
}
