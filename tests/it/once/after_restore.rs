//! What left the house before a restore and is never given out again for something else: ids of payouts, secrets of webhooks.

use crate::machines::{postgres_program, run};
use crate::prelude::*;
use crate::reward_commands::{ANA, BOB, CAMPAIGN, FLAGS, days_ago, done, fill, refused, write};

/// A copy of a server's records, and how it comes back: in another place, as often as is asked for.
enum Copied {
    Sqlite { folder: tempfile::TempDir },
    Postgres { folder: tempfile::TempDir },
}

fn store(records: &Records) -> &str {
    let Records::Postgres { store, .. } = records else { panic!("these records are not in PostgreSQL") };
    store
}

impl Copied {
    fn of(server: &Server) -> Self {
        if let Records::Postgres { store, .. } = server.records() {
            let folder = folder_for_postgres();
            run(postgres_program("pg_dump").args(["-Fc", "-f"]).arg(folder.path().join("copy")).arg(store));
            return Self::Postgres { folder };
        }
        let folder = tempfile::tempdir().unwrap();
        server.run(&["backup", folder.path().join("copy").to_str().unwrap()]);
        Self::Sqlite { folder }
    }

    fn come_back(&self) -> Server {
        let command = |home: &Home, arguments: &[&str]| {
            let output = unionhall(home.path()).envs(home.records().settings()).args(arguments).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let home = match self {
            Self::Sqlite { folder } => {
                let home = Home::new();
                command(&home, &["restore", folder.path().join("copy").to_str().unwrap()]);
                home
            }
            Self::Postgres { folder } => {
                let home = Home::on_postgres(tempfile::tempdir().unwrap());
                home.prepare_empty();
                let into = ["--no-owner", "--exit-on-error", "-d", store(home.records())];
                run(postgres_program("pg_restore").args(into).arg(folder.path().join("copy")));
                command(&home, &["resume"]);
                home
            }
        };
        Server::start_in(home, FLAGS)
    }
}

/// The external id and the cents of a member's row in a batch's file.
fn row(server: &Server, file: &str, address: &str) -> (String, String) {
    let text = std::fs::read_to_string(server.data().with_file_name(file)).unwrap();
    let row = text.lines().find(|line| line.contains(address)).unwrap_or_else(|| panic!("{address} in {text}"));
    let cells: Vec<_> = row.split(',').collect();
    (cells[0].to_owned(), cells[2].to_owned())
}

async fn nothing_comes_again(server: Server) {
    let server = fill(server).await;
    let accept_of_anas = |server: &Server, at: i64| {
        server.execute(&format!(
            "UPDATE participations SET accepted_at = {at} WHERE person_id IN
                 (SELECT id FROM people WHERE email LIKE 'ana_@example.com' OR email LIKE 'ana1_@example.com')"
        ));
    };
    server.execute(
        "INSERT INTO webhook_endpoints (partner_id, url, created_at)
         SELECT id, 'https://acme.example/hook', 0 FROM partners WHERE name = 'Acme'",
    );
    // Bob's batch is in the copy, and Ana's is not.
    accept_of_anas(&server, days_ago(0));
    done(&server, &["rewards", "batch", "new", "bob.csv"]);
    assert_eq!(row(&server, "bob.csv", "bob@"), (format!("{BOB}-1-1"), "10000".to_owned()));
    accept_of_anas(&server, days_ago(40));
    let copied = Copied::of(&server);

    // After the copy: one of Ana's groups falls, and the other is paid.
    for friend in ["ana1@example.com", "ana2@example.com", "ana3@example.com"] {
        done(&server, &["rewards", "void", friend, "--campaign", CAMPAIGN, "--reason", "twins"]);
    }
    done(&server, &["rewards", "batch", "new", "ana.csv"]);
    assert_eq!(row(&server, "ana.csv", "ana@"), (format!("{ANA}-1-1"), "10000".to_owned()));
    let first_secret = server.run(&["webhooks", "rotate", "1"]);
    drop(server);

    let server = copied.come_back();
    done(&server, &["rewards", "batch", "new", "again.csv"]);
    let (id, cents) = row(&server, "again.csv", "ana@");
    assert_eq!(cents, "20000", "nobody knows that a part of it was paid");
    let today = Timestamp::from_millis(days_ago(0)).to_string()[..10].to_owned();
    let header = "external_id,status,paid_at";
    write(&server, "old.csv", &format!("{header}\n{ANA}-1-1,paid,{today}\n"));
    let old = refused(&server, &["rewards", "batch", "settle", "old.csv"]);
    assert!(old.contains(&format!("line 2: external_id {ANA}-1-1: no payout has it")), "{old}");
    let paid = "SELECT count(*) FROM payouts WHERE state = 'paid'";
    assert_eq!(server.number(paid), 0);

    // What was in the copy has its id, and has to be named with its amount.
    write(&server, "no-amount.csv", &format!("{header}\n{BOB}-1-1,paid,{today}\n{ANA}-1-1,paid,{today}\n"));
    let told = refused(&server, &["rewards", "batch", "settle", "no-amount.csv"]);
    holds(
        &told,
        &[
            "nothing was recorded: no-amount.csv has 2 mistakes:",
            &format!("line 2: external_id {BOB}-1-1: amount_cents is missing; "),
            &format!("line 3: external_id {ANA}-1-1: no payout has it"),
        ],
    );
    let header = format!("{header},amount_cents");
    write(&server, "other.csv", &format!("{header}\n{BOB}-1-1,failed,,20000\n{id},paid,{today},10000\n"));
    let told = refused(&server, &["rewards", "batch", "settle", "other.csv"]);
    holds(
        &told,
        &["line 2: ", "the file says $200, but the payout is $100", "line 3: ", "$100, but the payout is $200"],
    );
    assert_eq!(server.number(paid), 0);
    write(&server, "right.csv", &format!("{header}\n{BOB}-1-1,paid,{today},10000\n{id},paid,{today},\n"));
    let said = done(&server, &["rewards", "batch", "settle", "right.csv"]);
    assert!(said.contains("Recorded now: 2."), "{said}");

    // A secret that was given up stays given up, while what a partner has goes on for a day.
    let second_secret = server.run(&["webhooks", "rotate", "1"]);
    assert_ne!(second_secret, first_secret);
    drop(server);

    // The same copy comes back once more.
    let server = copied.come_back();
    done(&server, &["rewards", "batch", "new", "once-more.csv"]);
    assert_ne!(row(&server, "once-more.csv", "ana@").0, id);
    let third_secret = server.run(&["webhooks", "rotate", "1"]);
    assert!(third_secret != first_secret && third_secret != second_secret);
}

#[tokio::test(flavor = "multi_thread")]
async fn payout_ids_and_webhook_secrets_are_not_given_out_again_on_sqlite() {
    nothing_comes_again(Server::start_with(FLAGS)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payout_ids_and_webhook_secrets_are_not_given_out_again_on_postgres() {
    needs!(Postgres, Redis);
    nothing_comes_again(Server::start_in(Home::on_postgres(tempfile::tempdir().unwrap()), FLAGS)).await;
}
