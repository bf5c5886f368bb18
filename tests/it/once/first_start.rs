//! The newcomer's first minute, and every way a start can fail: what is printed, word for word.

use crate::prelude::*;
use crate::server::give_away;

/// What a person at a terminal reads: elsewhere everything is JSON.
const TEXT: (&str, &str) = ("UNIONHALL_LOG_FORMAT", "text");

/// Runs `serve` until it stops printing its greeting, then ends it.
fn greeting(folder: &Path) -> String {
    greeting_with(folder, &[])
}

fn greeting_with(folder: &Path, flags: &[&str]) -> String {
    let mut process = unionhall(folder)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(flags)
        .envs([TEXT])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    let address = first.rsplit(' ').next().unwrap().trim_start_matches("http://").to_owned();
    std::process::Command::new("kill").arg(process.id().to_string()).status().unwrap();
    assert!(process.wait().unwrap().success());
    let text: Vec<_> = std::iter::once(first).chain(lines).collect();
    let program = env!("CARGO_BIN_EXE_unionhall");
    let text = text.join("\n").replace(&address, "HOST:PORT").replace(program, "unionhall");
    let text = text.replacen(env!("CARGO_PKG_VERSION"), "VERSION", 1);
    // The key is another for every secret.
    match text.split_once("?key=") {
        Some((before, rest)) => format!("{before}?key=KEY{}", &rest[16..]),
        None => text,
    }
}

#[test]
fn the_first_start_says_what_to_do_next_and_later_ones_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let expected = r#"unionhall VERSION listens on http://HOST:PORT

This is the first start. Its data is in data/; the file `secret` there makes the referral links: back it up.

1. Read something that needs no key:
     curl http://HOST:PORT/v1/negotiate-categories
2. Issue a key to a partner, from another terminal in this folder:
     KEY=$(unionhall keys issue "Acme Assistant")
3. Sign a user up with it:
     curl http://HOST:PORT/v1/invite -H "Authorization: Bearer $KEY" -H "Content-Type: application/json" \
       -d '{"email": "ana@example.com", "categories": {"internet": true}}'
4. Make a sample campaign, a draft that nobody sees until you open it:
     unionhall campaigns sample | unionhall campaigns new -

Mail: nothing is sent. Each message is written to data/mailbox/; open this and click:
     http://HOST:PORT/dev/mailbox?key=KEY
Reference: http://HOST:PORT/docs   Settings: unionhall serve --help
Catalog: the savings shown are samples until you give a --catalog.
Contact: pages and documents show none until you give a --contact-email.
"#;
    assert_eq!(greeting(folder.path()), expected);
    let later = "unionhall VERSION listens on http://HOST:PORT\nMail: http://HOST:PORT/dev/mailbox?key=KEY";
    assert_eq!(greeting(folder.path()), later);

    use std::os::unix::fs::PermissionsExt;
    let mode = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("data"), mode("data/secret"), mode("data/unionhall.db")), (0o700, 0o600, 0o600));
}

/// Behind a proxy nobody reaches the address it listens on, and who gave a catalog shows no samples.
#[test]
fn the_first_start_names_the_address_that_people_use() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = concat!(env!("CARGO_MANIFEST_DIR"), "/catalog.sample.toml");
    let text = greeting_with(folder.path(), &["--base-url", "https://union.example", "--catalog", catalog]);
    assert!(text.starts_with("unionhall VERSION listens on http://HOST:PORT\n"), "{text}");
    assert!(text.contains("curl https://union.example/v1/negotiate-categories\n"), "{text}");
    assert!(text.contains("curl https://union.example/v1/invite -H"), "{text}");
    assert!(
        text.contains("\nReference: https://union.example/docs   Settings: unionhall serve --help\nContact:"),
        "{text}"
    );
}

/// What the greeting tells the newcomer to type works as it stands, in a folder with an odd name too.
#[test]
fn the_printed_commands_work() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = unionhall(folder.path())
        .args(["serve", "--listen", "127.0.0.1:0", "--data", "my data", "--store", "sqlite:it's here.db"])
        .envs([TEXT, ("UNIONHALL_LOG", "off")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let text: Vec<_> = lines.take_while(|line| !line.starts_with("Mail:")).collect();
    let script: String =
        text.iter().filter_map(|line| line.strip_prefix("     ")).fold(String::new(), |all, line| all + line + "\n");
    // curl may not be here: a function that notes what it was given stands in, and the key is a real one.
    let script = format!("curl() {{ printf '%s|' \"$@\"; echo; }}\n{script}");
    let output = std::process::Command::new("sh").current_dir(folder.path()).args(["-euc", &script]).output().unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(output.status.success(), "{script}\n{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("/v1/negotiate-categories|\n"), "{said}");
    assert!(said.contains("|-H|Authorization: Bearer uh_"), "{said}");
    assert!(said.contains("|-d|{\"email\": \"ana@example.com\", \"categories\": {\"internet\": true}}|"), "{said}");
    assert!(said.contains("The draft internet-sample is ready."), "{said}");
    assert!(folder.path().join("it's here.db").exists() && !folder.path().join("my data/unionhall.db").exists());
}

/// The one sentence with which `serve` refuses to start.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let mut command = unionhall(folder);
    let output = command.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments).envs([TEXT]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told.trim().lines().count(), 1, "{told}");
    told.trim().to_owned()
}

#[test]
fn each_way_to_fail_is_one_sentence_with_its_mend() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap();
    let output = unionhall(at).args(["serve", "--listen", &port.to_string()]).envs([TEXT]).output().unwrap();
    assert_eq!(
        String::from_utf8(output.stderr).unwrap().trim(),
        format!("unionhall: {port} is taken by another program; choose another address with --listen")
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(!at.join("data").exists(), "nothing was made");

    std::fs::write(at.join("file"), "").unwrap();
    assert_eq!(
        refusal(at, &["--data", "file/data"]),
        "unionhall: cannot make the data folder file/data; give another with --data: Not a directory (os error 20)"
    );

    greeting(at);
    let database = || rusqlite::Connection::open(at.join("data/unionhall.db")).unwrap();
    database().pragma_update(None, "user_version", 999).unwrap();
    assert_eq!(
        refusal(at, &[]),
        format!(
            "unionhall: the database data/unionhall.db was written by a newer unionhall (schema 999, this one knows {}); run \
             that version or restore a backup",
            unionhall::store::migration::MIGRATIONS.len()
        )
    );
    database().pragma_update(None, "user_version", unionhall::store::migration::MIGRATIONS.len() as i64).unwrap();

    let other = "another-installations-secret-of-some-length";
    assert_eq!(
        refusal(at, &["--secret", other]),
        "unionhall: the secret is not the one that the records in data/unionhall.db were made with: referral links would \
         change. Give that installation's secret, or other records"
    );
    std::fs::rename(at.join("data/secret"), at.join("kept")).unwrap();
    assert_eq!(
        refusal(at, &[]),
        "unionhall: the records in data/unionhall.db belong to a secret that is not there: put it back into data/secret, or \
         give it with UNIONHALL_SECRET. If no copy of it is left: `unionhall secret replace --lost`, whose --help says what that costs"
    );
    assert!(!at.join("data/secret").exists(), "no wrong secret is left behind");
    std::fs::rename(at.join("kept"), at.join("data/secret")).unwrap();

    std::fs::write(
        at.join("catalog.toml"),
        "[savings]\npets = 5\n[referral]\nreward_per_group=1\ngroup_size=1\nmax_groups=1",
    )
    .unwrap();
    let told = refusal(at, &["--catalog", "catalog.toml"]);
    assert!(
        told.starts_with(
            "unionhall: the catalog catalog.toml has a mistake: [savings]: \"pets\" is not a category; use one of"
        ),
        "{told}"
    );
    std::fs::write(at.join("pem"), "nothing").unwrap();
    assert_eq!(
        refusal(at, &["--tls-cert", "pem", "--tls-key", "pem"]),
        "unionhall: there is no certificate in pem; it should hold PEM, the server's own certificate first"
    );
    assert_eq!(
        refusal(at, &["--catalog", "nowhere.toml"]),
        "unionhall: cannot read the catalog nowhere.toml, which --catalog or UNIONHALL_CATALOG names: No such file or \
         directory (os error 2)"
    );
    assert!(
        greeting(at).starts_with("unionhall VERSION listens on http://HOST:PORT\n"),
        "and with all mended it starts"
    );
}

#[test]
fn a_private_key_that_cannot_be_used_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(at.join("cert.pem"), made.cert.pem()).unwrap();
    let told = |key: &str| {
        std::fs::write(at.join("key.pem"), key).unwrap();
        refusal(at, &["--tls-cert", "cert.pem", "--tls-key", "key.pem"])
    };
    for encrypted in [
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIC\n-----END ENCRYPTED PRIVATE KEY-----\n",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nMIIC\n-----END RSA PRIVATE KEY-----\n",
    ] {
        assert_eq!(
            told(encrypted),
            "unionhall: the private key in key.pem is encrypted, and nobody types its passphrase when the service starts; \
             write one that is not, readable to this user alone: (umask 077; openssl pkey -in key.pem -out plain.pem)"
        );
    }
    for none in ["", "nothing", &made.cert.pem()] {
        assert_eq!(
            told(none),
            "unionhall: there is no private key in key.pem; it should hold PEM with a line BEGIN PRIVATE KEY"
        );
    }
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    holds(&told(&other.signing_key.serialize_pem()), &["the certificate and the key do not go together"]);
}

/// Permissions hold the user that this runs as, whoever runs the tests.
#[test]
fn what_this_user_may_not_read_or_write_is_told_as_that() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    greeting(at);
    let (data, database) = (at.join("data"), at.join("data/unionhall.db"));
    let allow = |path: &Path, mode: u32| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let told = |arguments: &[&str]| {
        let output = unprivileged(at).args(arguments).envs([TEXT]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(told.trim().lines().count(), 1, "{told}");
        assert!(!told.contains("no records"), "{told}");
        told.trim().to_owned()
    };
    let (serve, pause) = (&["serve", "--listen", "127.0.0.1:0"][..], &["signups", "pause"][..]);
    // Another's folder; for whoever is not root, one's own that is shut.
    let root = rustix::process::geteuid().is_root();
    allow(&data, if root { 0o700 } else { 0 });
    for arguments in [serve, pause, &["signups", "status"]] {
        let (told, denied) =
            (told(arguments), "unionhall: permission denied: this user may not look for data/unionhall.db; ");
        assert!(told.starts_with(denied), "{arguments:?}: {told}");
        let mend =
            if root { "data belongs to user 0: run this as that user, with sudo -u '#0'" } else { "chmod u+rwx" };
        assert!(told.ends_with(mend), "{told}");
    }
    // Another's file in a folder of one's own.
    allow(&data, 0o755);
    allow(&database, if root { 0o600 } else { 0 });
    for arguments in [serve, pause] {
        let told = told(arguments);
        assert!(
            told.starts_with("unionhall: permission denied: this user may not read data/unionhall.db; run as"),
            "{told}"
        );
    }
    // One's own that may only be read: the file, then the folder.
    give_away(&data);
    allow(&database, 0o400);
    for arguments in [serve, pause] {
        holds(&told(arguments), &["read-only", "let this user write"]);
    }
    assert!(told(serve).starts_with("unionhall: data/unionhall.db is read-only to this user"));
    allow(&database, 0o600);
    // What was left beside it would do, and is read-only as the file was.
    for left in ["data/unionhall.db-wal", "data/unionhall.db-shm"] {
        let _none = std::fs::remove_file(at.join(left));
    }
    allow(&data, 0o500);
    for arguments in [serve, pause] {
        let told = told(arguments);
        assert!(told.starts_with("unionhall: data is read-only to this user"), "{told}");
    }

    allow(&data, 0o700);
    let mended = unprivileged(at).args(pause).output().unwrap();
    assert!(mended.status.success(), "{mended:?}");
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let sealed = folder.path().join("sealed");
    std::fs::create_dir(&sealed).unwrap();
    std::fs::set_permissions(&sealed, std::fs::Permissions::from_mode(0o500)).unwrap();
    // Root may write anywhere; everybody else is told. /proc takes no files from root either.
    let data = if std::fs::write(sealed.join("probe"), "").is_ok() { "/proc/data" } else { "sealed/data" };
    let told = refusal(folder.path(), &["--data", data]);
    assert!(
        told.starts_with(&format!("unionhall: cannot make the data folder {data}; give another with --data: ")),
        "{told}"
    );
}

#[test]
fn help_is_a_manual() {
    let folder = tempfile::tempdir().unwrap();
    let help = |arguments: &[&str]| {
        let output = unionhall(folder.path()).args(arguments).arg("--help").output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let serve = help(&["serve"]);
    let line = unionhall::cli::command_line();
    let settings = line.find_subcommand("serve").unwrap().get_arguments();
    for setting in settings.filter_map(|argument| argument.get_env()?.to_str()) {
        assert!(setting.starts_with("UNIONHALL_"), "{setting}");
        let shown = |end| serve.contains(&format!("[env: {setting}{end}"));
        assert!(shown("=") || shown("]"), "{setting}");
    }
    holds(&serve, &["Consumer Union", "127.0.0.1:8080", "[default: 60]", "[default: 30]", "http://LISTEN"]);
    let mut commands = vec![vec![]];
    for command in line.get_subcommands() {
        commands.push(vec![command.get_name()]);
        commands.extend(command.get_subcommands().map(|task| vec![command.get_name(), task.get_name()]));
    }
    assert!(commands.len() > 15, "{commands:?}");
    for command in &commands {
        let text = help(command);
        assert!(text.contains("Usage: unionhall"), "{text}");
        // Every flag and every command has its description below it or beside it.
        let mut lines = text.lines().skip_while(|line| !line.ends_with(':')).peekable();
        while let Some(line) = lines.next() {
            let flag = line.trim_start().starts_with("--") || line.trim_start().starts_with("-h");
            let beside = line.trim_start().split("  ").count() > 1;
            let below = lines.peek().is_some_and(|next| next.starts_with("          ") && !next.trim().is_empty());
            assert!(!flag || beside || below, "{line}\n{text}");
        }
    }
}

/// A disk that is not mounted: before, the service began a new, empty union and was well.
#[test]
fn an_empty_folder_is_no_new_union_where_one_exists() {
    needs!(Postgres, Redis);
    let folder = || tempfile::tempdir().unwrap();
    for home in [Home::on_sqlite(folder()), Home::on_postgres(folder())] {
        if home.records().limits() == "shared" {
            home.prepare_empty();
        }
        let mut command = unionhall(home.path());
        command.envs(home.records().settings()).env("UNIONHALL_EXISTING", "true");
        let refused = command.args(["serve", "--listen", "127.0.0.1:0"]).output().unwrap();
        let why = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success(), "{why}");
        holds(&why, &["there are no records at", "--existing", "is mounted"]);
        assert_eq!(why.trim().lines().count(), 1, "{why}");
        assert!(!home.path().join("data/unionhall.db").exists());
    }
    let home = Server::start().stopped();
    assert!(Server::start_in(home, &["--existing"]).log().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn systemd_is_told_when_the_service_is_ready() {
    let home = Home::new();
    let path = home.path().join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(A_MINUTE)).unwrap();
    let mut command = unionhall(home.path());
    command.envs(home.records().settings()).env("NOTIFY_SOCKET", &path);
    let _server = Server::start_as(command, home, &[]);
    let mut told = [0; 64];
    let length = socket.recv(&mut told).unwrap();
    assert_eq!(&told[..length], b"READY=1");
}
