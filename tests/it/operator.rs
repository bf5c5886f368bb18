//! The operator's guide: every command with a `$` on its pages is run on a union that has seen some life, and answers as it says.

use crate::prelude::*;

/// In the order in which their commands are run.
const PAGES: [&str; 5] = [
    include_str!("../../docs/daily.md"),
    include_str!("../../docs/restore.md"),
    include_str!("../../docs/monitoring.md"),
    include_str!("../../docs/sandbox.md"),
    include_str!("../../docs/data-requests.md"),
];

/// What stands on the page for what differs each time: the key that leaked, and the request that was refused.
const KEY: &str = "q7m2xk4d";
const REQUEST: &str = "cv08xz7c0000000m";

/// A union with two partners and a form, a member who brought others, and one who gets no mail.
async fn union_with_a_past(server: &Server) -> (String, String) {
    let (acme, zenith) = (server.run(&["keys", "issue", "Acme"]), server.run(&["keys", "issue", "Zenith"]));
    let person = |n: u32, code: &str| {
        json!({ "email": format!("p{n}@example.com"), "usState": if n < 8 { "CA" } else { "NY" },
                "categories": { "internet": true }, "refCode": code })
        .to_string()
    };
    let first = server.post("/v1/invite", &acme, person(1, "")).await.good();
    let code = first["inviteLink"].as_str().unwrap().rsplit_once("joinus").unwrap().1.to_owned();
    for n in 2..=6 {
        server.post("/v1/invite", &acme, person(n, &code)).await.good();
    }
    for n in 7..=9 {
        server.post("/v1/invite", &zenith, person(n, "")).await.good();
    }
    server.post("/v1/invite", &zenith, sign_up("gus@example.com")).await.good();
    // Each has had its mail before somebody presses a button.
    let mailed = async || server.number("SELECT count(*) FROM outbox") == 0;
    wait_for!(mailed).await;
    for id in 1..=8 {
        assert_eq!(server.confirm(id).await.status, 200);
    }
    server.decline(10).await;
    server.post("/v1/invite", &zenith, sign_up("gus@example.com")).await.good();
    let refused = Request::post("/v1/invite").header("authorization", format!("Bearer {acme}"));
    let refused = server.send(refused.header("content-type", "application/json"), sign_up("kim at example")).await;
    assert_eq!(refused.status, 400);
    wait_for!(mailed).await;
    (zenith[3..11].to_owned(), refused.header("x-request-id").to_owned())
}

/// The commands of the page, each with what it is to answer.
pub(crate) fn transcripts(page: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match (line, line.strip_prefix("$ ")) {
            ("```console", _) => inside = true,
            ("```", _) => inside = false,
            (_, Some(command)) if inside => found.push((command.to_owned(), String::new())),
            _ if inside => {
                let (command, answer) = found.last_mut().expect("a command comes first");
                let goes_on = answer.is_empty() && command.ends_with('\\');
                let text = if goes_on { command } else { answer };
                text.push_str(if goes_on { "\n" } else { "" });
                text.push_str(line);
                text.push_str(if goes_on { "" } else { "\n" });
            }
            _ => {}
        }
    }
    found
}

/// Without what differs each time: times, days, codes, ids, sizes; white space counts as one.
pub(crate) fn steady(text: &str) -> Vec<String> {
    let word = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        // Some have no digit; and few words have none of these four letters.
        let base32 = |c: char| c.is_ascii_digit() || (c.is_ascii_lowercase() && !"ilou".contains(c));
        let digits = bare.chars().filter(char::is_ascii_digit).count();
        let stands_for = match bare.len() {
            // A figure of a line of the log.
            _ if word.starts_with(':') && digits == bare.len() => "N",
            _ if bare.len() == 20 && bare.ends_with('Z') && bare.starts_with("20") => "TIME",
            10 if bare.matches('-').count() == 2 && digits == 8 => "DAY",
            8 | 12 | 16 | 26 if bare.chars().all(base32) => "ID",
            _ => return word.to_owned(),
        };
        word.replace(bare, stands_for)
    };
    // A number that each step of the schema changes.
    let line = |line: &str| {
        let line = line.split_once("schema ").map_or(line.to_owned(), |(before, after)| {
            format!("{before}schema N{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
        });
        line.split([' ', ',', '"']).filter(|part| !part.is_empty()).map(word).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).filter(|line| !line.is_empty()).collect()
}

/// What a shell makes of a command there. The service's journal is its standard error here; who may not become another user
/// stays who they are.
pub(crate) fn answer(server: &Server, command: &str) -> String {
    let prelude = "
        set -o pipefail
        unionhall() { \"$UNIONHALL\" \"$@\"; }
        hall() { unionhall \"$@\"; }
        journalctl() { cat stderr; }
        sudo() {
            if [ \"$1\" = -u ]; then shift 2; else \"$@\"; return; fi
            shift
            if [ \"$(id -u)\" = 0 ]; then setpriv --reuid 65534 --regid 65534 --clear-groups \"$UNIONHALL\" \"$@\"; else \"$UNIONHALL\" \"$@\"; fi
        }
        owner() { if [ \"$(id -u)\" = 0 ]; then echo 65534; else id -u; fi; }
        exec 2>&1";
    let command = command.replace("-o unionhall", "-o \"$(owner)\"");
    let mut shell = server.command_of("bash");
    shell.env("UNIONHALL", env!("CARGO_BIN_EXE_unionhall")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    shell.stdin.take().unwrap().write_all(format!("{prelude}\n{command}\n").as_bytes()).unwrap();
    String::from_utf8(shell.wait_with_output().unwrap().stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_question_of_the_guide_has_its_command_and_its_answer() {
    let server = Server::start_with(&["--key-per-minute", "1000"]);
    let (key, request) = union_with_a_past(&server).await;
    let on_sqlite = server.records().limits() == "memory";
    let all: Vec<_> = PAGES.iter().flat_map(|page| transcripts(page)).collect();
    assert!(all.len() >= 20 && PAGES.iter().all(|page| !transcripts(page).is_empty()), "{}", all.len());
    // Whoever runs the tests signs in the audit log.
    let me = answer(&server, "id -un").trim().to_owned();
    let mut wrong = String::new();
    for (command, expected) in all {
        // Backups of PostgreSQL are its own affair: the page says so.
        if !on_sqlite && ["backup", "restore", "hall/"].iter().any(|word| command.contains(word)) {
            continue;
        }
        let answered = answer(&server, &command.replace(KEY, &key).replace(REQUEST, &request));
        let answered = answered.replace(&format!(" {me} "), " root ");
        if steady(&answered) != steady(&expected) {
            wrong.push_str(&format!("$ {command}\n{answered}\n--- the page says\n{expected}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_are_told_apart_from_what_is_none_and_nobody_is_guessed() {
    let server = Server::start_with(&["--mail", "hold"]);
    for (arguments, says) in [
        (&["members", "show", "kim"][..], "the address has no @"),
        (&["members", "show", "kim@example.com"], "nobody has that address"),
        (&["members", "leave", "kim@example.com"], "nobody has that address"),
        (&["members", "erase", "kim@example.com"], "nobody has that address"),
        (&["members", "unsuppress", "kim@example.com"], "nobody has that address"),
        (&["members", "erase", "-"], "nothing on standard input"),
        (&["members", "find", "--key", "q7m2xk4d"], "there is no key"),
        (&["stats", "--by", "state", "--since", "2026-01-01"], "goes with days and partners"),
        (&["stats", "--category", "internet"], "--category goes with --by state"),
        (&["stats", "--by", "state", "--category", "rent"], "there is no such category"),
        (&["stats", "--by", "category", "--state", "Calif"], "two letters of a state"),
        (&["audit", "--since", "yesterday"], "is not a date"),
    ] {
        let refused = server.try_run(arguments);
        let told = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && told.contains(says), "{arguments:?}: {told}");
        assert_eq!(told.trim_end().lines().count(), 1, "{arguments:?}: {told}");
        assert!(refused.stdout.is_empty());
    }
    assert_eq!(server.run(&["members", "count"]), "0");
    // Who looked for somebody is in the log, and nothing else.
    let rows: Vec<_> = server.run(&["audit"]).lines().skip(1).map(|row| row[38..].trim().to_owned()).collect();
    assert_eq!(rows, ["members show          nobody"]);
}

/// Who was erased and signs up again goes through the same source as everybody, and keeps their code.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_was_erased_signs_up_again_with_the_same_code() {
    let (server, key) = Server::with_key(&["--mail", "hold"]);
    let link = async || server.post("/v1/invite", &key, sign_up("ana@example.com")).await.good()["inviteLink"].clone();
    let before = link().await;
    assert_eq!(server.confirm(1).await.status, 200);
    server.run(&["members", "erase", "ana@example.com"]);
    assert_eq!(server.get("/v1/stats").await.good()["memberCount"], 0);
    for table in ["people", "sign_ups", "outbox", "mailboxes", "audit", "member_changes"] {
        let rows = format!("{:?}", server.rows(&format!("SELECT * FROM {table}")));
        assert!(!rows.contains("ana@"), "{table}: {rows}");
    }
    assert!(server.run(&["members", "show", "ana@example.com"]).starts_with("Erased on"));
    assert_eq!(server.post("/v1/referral-link", &key, sign_up("ana@example.com")).await.good()["inviteLink"], before);
    assert_eq!(link().await, before);
    holds(&server.run(&["members", "show", "ana@example.com"]), &["suppressed until", "its mail"]);
    server.run(&["members", "unsuppress", "ana@example.com"]);
    assert!(server.run(&["members", "show", "ana@example.com"]).contains("nothing keeps mail from this address"));
    let audit = server.run(&["audit", "--json"]);
    let commands: Vec<_> = audit
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|entry| (entry["command"].as_str().unwrap().to_owned(), entry["about"].as_str().unwrap().to_owned()))
        .collect();
    let (looks, commands): (Vec<_>, Vec<_>) = commands.into_iter().partition(|(command, _)| command == "members show");
    let names: Vec<_> = commands.iter().map(|(command, _)| command.as_str()).collect();
    assert_eq!(names, ["keys issue", "members erase", "members unsuppress"]);
    assert_eq!(looks.len(), 3, "{looks:?}");
    assert!(commands[1].1.starts_with("account ") && commands[1].1 != commands[2].1, "a new name: {commands:?}");
    let erasures = std::fs::read_to_string(server.data().join("erasures")).unwrap();
    assert!(erasures.lines().count() == 1 && !erasures.contains('@'), "{erasures}");
}

/// The log is append-only, whoever writes to it.
#[test]
fn no_row_of_the_audit_log_is_changed_or_deleted() {
    let server = Server::start_with(&["--mail", "hold"]);
    server.key();
    for change in ["UPDATE audit SET who = 'nobody'", "DELETE FROM audit"] {
        let refused = server.records().try_rows(change).unwrap_err().to_string();
        assert!(refused.contains("append-only") || refused.contains("db error"), "{change}: {refused}");
    }
    assert_eq!(server.number("SELECT count(*) FROM audit"), 1);
    // Who reads it by another folder reads nothing.
    let elsewhere = tempfile::tempdir().unwrap();
    let refused = unionhall(elsewhere.path()).arg("audit").output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no records"));
}

/// Nothing here depends on the store, or only SQLite has it.
mod once {
    use super::*;

    /// What a stranger writes in a comment reaches the operator's terminal.
    #[tokio::test(flavor = "multi_thread")]
    async fn what_strangers_wrote_moves_no_cursor_and_forges_no_line() {
        let server = Server::start();
        let written = "a\u{1b}[2J\u{7}b\u{9b}31m\u{202e}c\nState: member since 2020";
        let body = serde_json::json!({ "email": "ana@example.com", "otherComments": written });
        server.post("/v1/invite", &server.key(), body.to_string()).await.good();
        server.confirm(1).await;
        for flags in [&[][..], &["--json"]] {
            let shown = server.run(&[&["members", "show", "ana@example.com"], flags].concat());
            let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!shown.contains(bad), "{shown:?}");
            assert!(!shown.lines().any(|line| line.starts_with("State: member since 2020")), "{shown}");
            if flags.is_empty() {
                assert!(shown.contains("a\\u001b[2J\\u0007b\\u009b31m\\u202ec\\u000aState"), "{shown}");
            } else {
                let json: serde_json::Value = serde_json::from_str(&shown).unwrap();
                assert_eq!(json["answers"]["comments"], written, "nothing is lost");
            }
        }
    }

    /// A hundred of a hundred addresses were still in the file after their owners had been erased.
    #[tokio::test(flavor = "multi_thread")]
    async fn whoever_is_erased_leaves_no_bytes() {
        let (server, key) = Server::with_key(&["--key-per-minute", "1000", "--mail", "hold"]);
        let (address, comment) =
            (|n: u32| format!("leaves-no-byte-{n}@example.com"), |n: u32| format!("says nothing of {n}."));
        for n in 0..40 {
            let body = serde_json::json!({ "email": address(n), "otherComments": comment(n).repeat(20) });
            server.post("/v1/invite", &key, body.to_string()).await.good();
            server.confirm(server.number("SELECT max(id) FROM sign_ups")).await;
        }
        for n in 0..40 {
            server.run(&["members", "erase", &address(n)]);
        }
        let home = server.stopped();
        let mut left = Vec::new();
        for entry in std::fs::read_dir(home.path().join("data")).unwrap() {
            let path = entry.unwrap().path();
            let Ok(bytes) = std::fs::read(&path) else { continue };
            for text in ["leaves-no-byte-", "says nothing of "] {
                let found = bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count();
                if found > 0 {
                    left.push(format!("{}: {text} {found} times", path.display()));
                }
            }
        }
        assert!(left.is_empty(), "{left:#?}");
    }
}

#[test]
fn the_audit_log_is_shown_from_its_end_and_whole_where_one_asks() {
    let server = Server::start();
    let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500)";
    let add = "INSERT INTO audit (at, who, command, about)";
    server.execute(&format!("{add} {numbers} SELECT i * 1000, 'kim', 'keys issue', 'key ' || i FROM n"));
    let show = |arguments: &[&str]| {
        let output = server.try_run(&[&["audit"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        let [lines, aside] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        let rows: Vec<_> = lines.lines().skip(1).map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
        (rows.len(), rows.first().cloned().unwrap_or_default(), rows.last().cloned().unwrap_or_default(), aside)
    };
    let shown = |count: usize, first: u32, last: u32| (count, first.to_string(), last.to_string());
    let (count, first, last, aside) = show(&[]);
    assert_eq!((count, first, last), shown(100, 2401, 2500));
    assert!(aside.contains("These are the last 100. `--all` shows the whole log"), "{aside}");
    for (arguments, expected) in [
        (&["--all"][..], shown(2500, 1, 2500)),
        (&["--since", "1970-01-01T00:00:10Z"], shown(2491, 10, 2500)),
        (&["--since", "1970-01-01T00:00:10Z", "--until", "1970-01-01T00:00:20Z"], shown(10, 10, 19)),
        (&["--all", "--about", "key 7"], shown(111, 7, 799)),
        (&["--until", "1970-01-01T00:01:00Z"], shown(59, 1, 59)),
        (&["--about", "key 23", "--by", "kim"], shown(100, 2300, 2399)),
        (&["--about", "KEY 249"], shown(11, 249, 2499)),
    ] {
        let (count, first, last, aside) = show(arguments);
        assert_eq!((count, first, last), expected, "{arguments:?}");
        assert_eq!(aside.is_empty(), count != 100, "{arguments:?}: {aside}");
    }
    let both = server.try_run(&["audit", "--all", "--since", "2027-01-01"]);
    assert!(!both.status.success());
}
