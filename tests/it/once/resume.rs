//! `unionhall resume`: records that PostgreSQL's own tools restored, from the refusal to serve them to what came back.

use crate::machines::{postgres_program, run};
use crate::prelude::*;

const FLAGS: &[&str] = &["--mail", "hold", "--log", "errors"];

fn store(records: &Records) -> &str {
    let Records::Postgres { store, .. } = records else { panic!("these records are not in PostgreSQL") };
    store
}

/// As `deploy/README.md` leads.
fn dump(records: &Records, file: &Path) {
    run(postgres_program("pg_dump").args(["-Fc", "-f"]).arg(file).arg(store(records)));
}

fn restore(records: &Records, file: &Path) {
    run(postgres_program("pg_restore").args(["--no-owner", "--exit-on-error", "-d", store(records)]).arg(file));
}

/// What a command says of records that no service uses, whether it succeeded first.
fn command(home: &Home, arguments: &[&str]) -> (bool, String) {
    let output = unionhall(home.path()).envs(home.records().settings()).args(arguments).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

async fn join(server: &Server, key: &str, email: &str) {
    server.post("/v1/invite", key, sign_up(email)).await.good();
    let newest = server.number("SELECT max(id) FROM sign_ups");
    assert_eq!(server.confirm(newest).await.status, 200);
}

/// A dump, a night of changes, a restore: before, the records were served without a word, and a stranger's link was the next
/// person's.
#[tokio::test(flavor = "multi_thread")]
async fn restored_records_are_served_only_once_they_are_resumed() {
    needs!(Postgres, Redis);
    let folder = folder_for_postgres();
    let file = folder.path().join("dump");
    let server = Server::start_in(Home::on_postgres(tempfile::tempdir().unwrap()), FLAGS);
    let (key, leaked) = (server.key(), server.run(&["keys", "issue", "Leaky"]));
    let endpoint = "INSERT INTO webhook_endpoints (partner_id, url, created_at)
                    SELECT id, 'https://acme.example/hook', 0 FROM partners WHERE name = 'Acme Assistant'";
    server.execute(endpoint);
    for email in ["ana@example.com", "zoe@example.com", "back@example.com"] {
        join(&server, &key, email).await;
    }
    server.post("/v1/invite", &key, sign_up("waits@example.com")).await.good();
    // Erased before the dump, and there again by themselves: nobody can tell from the log.
    server.run(&["members", "erase", "back@example.com"]);
    server.execute("UPDATE mailboxes SET suppressed_until = 0");
    join(&server, &key, "back@example.com").await;
    // Zoe was there long before.
    server.execute("UPDATE people SET created_at = created_at - 7200000 WHERE email LIKE 'zoe%'");
    let ana = Browser::member(&server, 1, "ana@example.com").await;
    let session = ana.cookies["union"].clone();
    dump(server.records(), &file);
    // The night.
    server.run(&["keys", "revoke", &leaked[3..11]]);
    server.run(&["members", "erase", "zoe@example.com"]);
    server.post("/v1/invite", &key, sign_up("stranger@example.com")).await.good();
    let strangers = server.confirm_path(server.number("SELECT max(id) FROM sign_ups"));
    let waits =
        server.confirm_path(server.number("SELECT id FROM sign_ups WHERE state = 'pending' ORDER BY id LIMIT 1"));
    let erasures = server.data().join("erasures");
    let restored = Home::on_postgres(tempfile::tempdir().unwrap());
    restored.prepare_empty();
    restore(restored.records(), &file);

    let (served, why) = command(&restored, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(!served && why.contains("restored from a copy") && why.contains("`unionhall resume`"), "{why}");
    let (_, doctor) = command(&restored, &["doctor"]);
    assert!(doctor.contains("`unionhall resume`"), "{doctor}");
    // A command that writes meanwhile changes nothing about who came back.
    assert!(command(&restored, &["keys", "issue", "Leaky"]).0);
    let (first, why) = command(&restored, &["mcp"]);
    assert!(!first && why.contains("`unionhall resume`"), "{why}");
    let (resumed, said) = command(&restored, &["resume", "--erasures", erasures.to_str().unwrap()]);
    assert!(resumed, "{said}");
    holds(
        &said,
        &[
            "can be served again: 2 members.",
            &format!("These were revoked since, and were revoked again:\n    {} of Leaky\n", &leaked[3..11]),
            "of Acme Assistant: secret of 1970-01-01T00:00:00Z",
            "1 mail that was waiting then is held",
            "1 person was erased since, and was erased again.",
            "members erase",
            "back@example.com",
            "Next: unionhall serve",
        ],
    );
    let (again, said) = command(&restored, &["resume"]);
    assert!(again && said.contains("Nobody in these records was erased since"), "{said}");

    let after = Server::start_in(restored, FLAGS);
    after.post("/v1/invite", &key, sign_up("victim@example.com")).await.good();
    assert_eq!(after.get(&strangers).await.status, 404);
    assert_eq!(after.get(&waits).await.status, 200, "links of before lead where they led");
    let newest = after.number("SELECT max(id) FROM sign_ups");
    assert!(newest > 1_000_000 && strangers != after.confirm_path(newest), "{newest}");
    let mut copied = Browser::new(&after, 2);
    copied.cookies.insert("union".to_owned(), session);
    let page = copied.get("/me").await.text();
    assert!(page.contains("Send me the email"), "nobody is signed in");
    assert_eq!(after.number("SELECT count(*) FROM people WHERE email LIKE 'zoe%'"), 0);
    after.post("/v1/invite", &leaked, sign_up("leaked@example.com")).await.refused(401, "agent_unauthorized");
    holds(&after.run(&["audit"]), &["resume"]);
}

/// A database that takes the name of the one before under a running service, and one that was moved as a whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_node_refuses_what_was_restored_under_it() {
    needs!(Postgres, Redis);
    let folder = folder_for_postgres();
    let file = folder.path().join("dump");
    let server = Server::start_in(Home::on_postgres(tempfile::tempdir().unwrap()), FLAGS);
    let key = server.key();
    join(&server, &key, "ana@example.com").await;
    dump(server.records(), &file);
    let (_, name) = store(server.records()).rsplit_once('/').unwrap();
    let name = name.split('?').next().unwrap();
    let admin = crate::records::postgres("postgres");
    crate::records::ask(&admin, &format!("DROP DATABASE {name} WITH (FORCE)")).unwrap();
    crate::records::ask(&admin, &format!("CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")).unwrap();
    restore(server.records(), &file);
    let refused = server.post("/v1/invite", &key, sign_up("ben@example.com")).await;
    assert_eq!(refused.status, 500);
    assert_eq!(server.number("SELECT count(*) FROM people"), 1, "nothing is written to it");
    wait_for!(async || server.get("/readyz").await.status == 503).await;
    wait_for!(async || server.log().contains("run `unionhall resume`")).await;

    holds(&server.run(&["resume", "--complete"]), &["no sign-up, person, key or mail was changed"]);
    let (_, home) = server.stop();
    let server = Server::start_in(home, FLAGS);
    server.post("/v1/invite", &key, sign_up("ben@example.com")).await.good();
    assert_eq!(server.number("SELECT max(id) FROM sign_ups"), 2, "it goes on where it was");
    // Tables that are replaced under it leave its connections open.
    let clean = ["--clean", "--if-exists", "--no-owner", "--exit-on-error", "-d", store(server.records())];
    run(postgres_program("pg_restore").args(clean).arg(&file));
    // What a connection leads to is believed for a second.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(server.post("/v1/invite", &key, sign_up("cleo@example.com")).await.status, 500);
    assert_eq!(server.number("SELECT count(*) FROM people"), 1, "nothing was written to it");
}
