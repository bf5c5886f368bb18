//! The installation's secret: rotated, leaked, lost, and interrupted on the way.

mod before;
mod killed;

use crate::prelude::*;
use unionhall::domain::referral::CodeMaker;
use unionhall::domain::secret::SAYS_NO_FOR;

const FLAGS: &[&str] =
    &["--mail", "hold", "--log", "requests", "--key-per-minute", "100000", "--public-per-minute", "100000"];
const TEXT: &str = "the-secret-of-the-tests-and-of-nobody-else";

/// A service whose secret is in a file that commands may write.
struct Rotated {
    server: Server,
    file: PathBuf,
    key: String,
}

impl Rotated {
    fn start(home: Home) -> Self {
        let file = home.path().join("secret-file");
        std::fs::write(&file, TEXT).unwrap();
        let server = Self::serve(home, &file);
        let key = server.key();
        Self { server, file, key }
    }

    fn serve(home: Home, file: &Path) -> Server {
        let flags = [FLAGS, &["--secret-file", file.to_str().unwrap()]].concat();
        let mut command = unionhall(home.path());
        command.envs(home.records().settings()).env("UNIONHALL_SECRET", "");
        Server::start_as(command, home, &flags)
    }

    /// A command of `unionhall secret`.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.server.command();
        command.env("UNIONHALL_SECRET", "").arg("secret").args(arguments).arg("--secret-file").arg(&self.file);
        command
    }

    /// The same, and what it says.
    fn secret(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.command(arguments).output().unwrap();
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    }

    #[track_caller]
    fn done(&self, arguments: &[&str], says: &[&str]) {
        let (done, said) = self.secret(arguments);
        assert!(done, "{said}");
        holds(&said, says);
    }

    #[track_caller]
    fn refused(&self, arguments: &[&str], says: &[&str]) {
        let (done, said) = self.secret(arguments);
        assert!(!done, "{said}");
        holds(&said, says);
    }

    async fn until_used(&self, generation: u32) {
        let says = format!("generation {generation} of the secret makes everything new");
        wait_for!(async || self.server.log().contains(&says)).await;
    }

    fn ring(&self) -> Keyring {
        Keyring::parse(&std::fs::read_to_string(&self.file).unwrap()).unwrap()
    }

    /// The path of a mailed link, as the generation that is in use now makes it.
    fn link(&self, page: &str, purpose: Purpose, sign_up: i64) -> String {
        let created = self.server.number(&format!("SELECT created_at FROM sign_ups WHERE id = {sign_up}"));
        let id = unionhall::domain::sign_up::SignUpId(sign_up);
        let sign_up = SignUpRef { id, created_at: Timestamp::from_millis(created) };
        format!("/{page}/{}", TokenMaker::new(&self.ring().secret(Clock::start().now().time)).token(purpose, sign_up))
    }

    async fn sign_up(&self, email: &str) -> i64 {
        self.server.post("/v1/invite", &self.key, sign_up(email)).await.good();
        self.server.number("SELECT max(id) FROM sign_ups")
    }

    async fn join(&self, email: &str) {
        let id = self.sign_up(email).await;
        self.enter(id).await;
    }

    async fn enter(&self, sign_up: i64) {
        let confirm = self.link("confirm", Purpose::Confirm, sign_up);
        assert_eq!(self.server.submit(Request::post(confirm), "").await.status, 200);
    }

    async fn opens(&self, path: &str) -> u16 {
        self.server.get(path).await.status.as_u16()
    }

    async fn code(&self, email: &str) -> String {
        let answer = self.server.post("/v1/referral-link", &self.key, json!({ "email": email }).to_string()).await;
        answer.good()["code"].as_str().unwrap().to_owned()
    }

    /// The idempotent request of a partner, and its answer.
    async fn repeatable(&self, email: &str) -> Value {
        self.repeat(&self.server, email).await.unwrap()
    }

    /// The same at a node; nothing if it is refused.
    async fn repeat(&self, node: &Server, email: &str) -> Option<Value> {
        let request = Request::post("/v1/invite").header("authorization", format!("Bearer {}", self.key));
        let request = request.header("content-type", "application/json").header("idempotency-key", "order-17");
        let answer = node.send(request, sign_up(email)).await;
        (answer.status == 200).then(|| answer.good())
    }

    fn erase(&self, email: &str) {
        let file = self.file.to_str().unwrap();
        let mut command = self.server.command();
        command.env("UNIONHALL_SECRET", "").args(["members", "erase", email, "--secret-file", file]);
        assert!(command.output().unwrap().status.success());
        self.server.execute("UPDATE mailboxes SET suppressed_until = 0");
    }
}

impl Rotated {
    /// Rotates, and moves the time at which the new generation began so far back that nobody can say no by an old link any more.
    async fn rotated_long_ago(&self) {
        self.done(&["rotate", "--in", "0s"], &["Generation 2"]);
        self.until_used(2).await;
        let (whole, begins_at) =
            (std::fs::read_to_string(&self.file).unwrap(), self.ring().newest().begins_at.unwrap());
        let long_ago = begins_at.minus(SAYS_NO_FOR + Duration::from_secs(60));
        std::fs::write(&self.file, whole.replace(&begins_at.to_string(), &long_ago.to_string())).unwrap();
        assert_eq!(self.ring().newest().begins_at, Some(long_ago));
    }

    /// What doctor says of the secret.
    fn doctor(&self) -> Vec<Value> {
        let mut command = self.server.command();
        command.env("UNIONHALL_SECRET", "").env("UNIONHALL_SECRET_FILE", &self.file);
        Diagnosis::of(command).of_check("secret").into_iter().cloned().collect()
    }
}

fn homes() -> [Home; 2] {
    let folder = || tempfile::tempdir().unwrap();
    let sqlite = Home::on_sqlite(folder());
    [sqlite, Home::on_postgres(folder())]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_changes_no_code_and_ends_nothing_that_still_runs() {
    needs!(Postgres, Redis);
    for home in homes() {
        let union = Rotated::start(home);
        let server = &union.server;
        union.join("ana@example.com").await;
        union.join("zoe@example.com").await;
        let zoe = union.code("zoe@example.com").await;
        union.erase("zoe@example.com");
        let waits = union.sign_up("ben@example.com").await;
        let confirm = union.link("confirm", Purpose::Confirm, waits);
        let decline = union.link("not-me", Purpose::Decline, union.sign_up("cleo@example.com").await);
        let mut browser = Browser::new(server, 1);
        let entered = server.number("SELECT count(*) FROM people WHERE state = 'member'");
        let first = union.repeatable("dan@example.com").await;

        union.done(&["rotate", "--in", "0s"], &["Generation 2 of the secret begins at", "API keys"]);
        union.until_used(2).await;
        let codes = CodeMaker::new(&Secret::new(TEXT).unwrap());
        let eva = EmailAddress::parse("eva@example.com").unwrap();
        assert_eq!(union.code("eva@example.com").await, codes.code(&eva, 0).to_string(), "codes never change");
        assert_eq!(union.repeatable("dan@example.com").await, first, "a repeat is known");
        assert_eq!((union.opens(&confirm).await, union.opens(&decline).await), (200, 200));
        assert_eq!(server.submit(Request::post(&confirm), "").await.status, 200);
        assert_eq!(server.number("SELECT count(*) FROM people WHERE state = 'member'"), entered + 1);
        let newer = union.link("confirm", Purpose::Confirm, union.sign_up("fay@example.com").await);
        assert_eq!(union.opens(&newer).await, 200);
        assert!(!browser.is_signed_in().await);

        // Who was erased before is recognized: the same code, and a tombstone of the newest generation after another erasure.
        union.join("zoe@example.com").await;
        assert_eq!(union.code("zoe@example.com").await, zoe);
        union.erase("zoe@example.com");
        assert_eq!(server.number("SELECT count(*) FROM people WHERE email_normalized LIKE 'erased:~002~%'"), 1);
        assert_eq!(server.number("SELECT count(*) FROM people WHERE email_normalized LIKE 'erased:%'"), 1);
        // Another spelling of an erased member's mailbox refers nobody.
        union.join("zoe+x@example.com").await;
        assert_eq!(server.number("SELECT count(*) FROM people WHERE email LIKE 'zoe+x%' AND uncredited"), 1);

        union.done(&["status"], &["NEEDED BECAUSE", "stop mail until", "it makes everything new"]);
        assert!(!union.secret(&["status"]).1.contains("everything new from"));
        union.refused(&["retire", "1"], &["generation 1 is still needed", "Nothing was changed"]);
        union.refused(&["retire", "2"], &["it makes everything new"]);
        union.refused(&["retire", "7"], &["there is no generation 7"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_leaked_secret_made_is_dead_but_for_saying_no() {
    needs!(Postgres, Redis);
    for home in homes() {
        let union = Rotated::start(home);
        let server = &union.server;
        let endpoint = "INSERT INTO webhook_endpoints (partner_id, url, created_at)
                        SELECT id, 'https://acme.example/hook', 0 FROM partners WHERE name = 'Acme Assistant'";
        server.execute(endpoint);
        union.join("ana@example.com").await;
        union.join("zoe@example.com").await;
        let zoe = union.code("zoe@example.com").await;
        union.erase("zoe@example.com");
        let waits = union.sign_up("ben@example.com").await;
        let (confirm, decline) =
            (union.link("confirm", Purpose::Confirm, waits), union.link("not-me", Purpose::Decline, waits));
        // As if its mail had left.
        server.execute("UPDATE sign_ups SET mailed_at = created_at WHERE state = 'pending'");
        server.execute("DELETE FROM outbox");

        union.done(
            &["rotate", "--leaked", "--in", "0s"],
            &["everyone is signed out", "mails those who have not answered again", "endpoints within 7 days"],
        );
        union.until_used(2).await;
        assert_eq!((union.opens(&confirm).await, union.opens(&decline).await), (404, 200));
        wait_for!(async || server.number("SELECT count(*) FROM secret_generations WHERE done") == 1).await;
        assert_eq!(server.number("SELECT count(*) FROM outbox"), 1, "mailed again");
        // Whoever has the leaked secret can make any such link: it says no, and leads to nothing else.
        let page = server.get(&decline).await.text();
        assert!(page.contains("Withdraw") && !page.contains("/confirm/"), "{page}");
        let fields = format!("do=take-back&seen=0&notice={}", server.rows("SELECT hash FROM notices LIMIT 1")[0][0]);
        let refused = server.send(Request::post(&decline).header("sec-fetch-site", "same-origin"), fields).await;
        assert!(refused.status == 404 || !refused.text().contains("member"), "{refused:?}");
        assert_eq!(server.number("SELECT count(*) FROM sign_ups WHERE state = 'pending'"), 1);
        let later = union.sign_up("later@example.com").await;
        let leaked = Keyring::plain(TEXT).unwrap().secret(Clock::start().now().time);
        let created = server.number(&format!("SELECT created_at FROM sign_ups WHERE id = {later}"));
        let made_up =
            SignUpRef { id: unionhall::domain::sign_up::SignUpId(later), created_at: Timestamp::from_millis(created) };
        let forged = TokenMaker::new(&leaked).token(Purpose::Decline, made_up);
        assert_eq!(union.opens(&format!("/not-me/{forged}")).await, 404, "what came after the leak");
        let newer = union.link("confirm", Purpose::Confirm, waits);
        assert_ne!(newer, confirm);
        assert_eq!(union.opens(&newer).await, 200);
        assert_eq!(server.number("SELECT count(*) FROM webhook_endpoints WHERE rotate_by IS NOT NULL"), 1);
        union.join("zoe@example.com").await;
        assert_eq!(union.code("zoe@example.com").await, zoe, "recognized by what is carried on");
        assert!(server.run(&["audit"]).contains("secret rotate"));
        // Again, and interrupted: nothing is done twice.
        union.done(&["rotate", "--in", "0s"], &["Generation 3"]);
        server.execute("DELETE FROM secret_generations WHERE number = 3");
        union.done(&["status"], &["the records do not know it"]);
        union.refused(&["rotate", "--leaked"], &["was interrupted"]);
        union.done(&["rotate"], &["An earlier rotation was interrupted. It goes on.", "Generation 3"]);
        assert_eq!(union.ring().generations().count(), 3);
        assert_eq!(server.number("SELECT count(*) FROM secret_generations"), 2);
    }
}

/// A generation is kept for as long as something needs it, and status and doctor say what.
#[tokio::test(flavor = "multi_thread")]
async fn a_generation_is_retired_once_nothing_needs_it() {
    needs!(Postgres, Redis);
    for home in homes() {
        let union = Rotated::start(home);
        let server = &union.server;
        server.execute(
            "INSERT INTO webhook_endpoints (partner_id, url, created_at)
             SELECT id, 'https://acme.example/hook', 0 FROM partners WHERE name = 'Acme Assistant'",
        );
        union.join("ana@example.com").await;
        union.join("zoe@example.com").await;
        let (ana, zoe) = (union.code("ana@example.com").await, union.code("zoe@example.com").await);
        union.erase("zoe@example.com");
        let decline = union.link("not-me", Purpose::Decline, union.sign_up("cleo@example.com").await);
        union.rotated_long_ago().await;
        let tombstones = "people who were erased are recognized by it";
        let endpoints = "secrets of webhook endpoints derive from it";
        union
            .refused(&["retire", "1"], &["generation 1 is still needed", tombstones, endpoints, "Nothing was changed"]);
        union.done(&["status"], &[tombstones, endpoints]);
        let [line] = &union.doctor()[..] else { panic!("{:?}", union.doctor()) };
        assert_eq!(line["state"], "ok");
        holds(line["message"].as_str().unwrap(), &["generation 1: ", tombstones, endpoints, "generation 2: it makes"]);
        server.execute("UPDATE webhook_endpoints SET made_with = 2");
        union.refused(&["retire", "1"], &[tombstones]);
        // She comes again, and her tombstone is one of the newest generation.
        union.join("zoe@example.com").await;
        assert_eq!(union.code("zoe@example.com").await, zoe);
        holds(
            union.doctor()[0]["message"].as_str().unwrap(),
            &["generation 1: nothing needs it, so it can be retired"],
        );
        union.done(&["retire", "1"], &["Generation 1 is gone from", "Referral codes stay as they are"]);
        assert!(!std::fs::read_to_string(&union.file).unwrap().contains(TEXT));
        union.done(&["retire", "1"], &["Generation 1 was retired before. Nothing was changed."]);
        wait_for!(async || union.opens(&decline).await == 404).await;
        assert_eq!(union.code("ana@example.com").await, ana);
        assert!(!server.log().contains("lacks a generation"), "{}", server.log());
        union.done(&["rotate", "--in", "0s"], &["Generation 3"]);
        let Rotated { server, file, .. } = union;
        let again = Rotated::serve(server.stopped(), &file);
        assert!(again.run(&["audit"]).contains("secret retire"));
    }
}

/// Records from before a rotation know nothing of it, and what followed from it is undone: it goes on where somebody reads of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_that_restored_records_do_not_know_goes_on() {
    let union = Rotated::start(Home::on_sqlite(tempfile::tempdir().unwrap()));
    let waits = union.sign_up("ben@example.com").await;
    union.server.execute("UPDATE sign_ups SET mailed_at = created_at");
    union.server.execute("DELETE FROM outbox");
    union.server.run(&["backup", "before", "--without-secret"]);
    union.done(&["rotate", "--leaked", "--in", "0s"], &["Generation 2"]);
    union.until_used(2).await;
    assert_eq!(union.doctor()[0]["state"], "ok");
    let Rotated { server, file, key } = union;
    let home = server.stopped();
    std::fs::rename(home.path().join("data"), home.path().join("lost")).unwrap();
    let mut command = unionhall(home.path());
    let restored = command.args(["restore", "before", "--secret-file"]).arg(&file).output().unwrap();
    let said = String::from_utf8([restored.stdout, restored.stderr].concat()).unwrap();
    assert!(restored.status.success(), "{said}");
    holds(&said, &["The secret was rotated since: `unionhall secret rotate` goes on with that"]);
    let union = Rotated { server: Rotated::serve(home, &file), file, key };
    let [line] = &union.doctor()[..] else { panic!("{:?}", union.doctor()) };
    assert_eq!(line["state"], "warn", "{line}");
    holds(line["message"].as_str().unwrap(), &["generation 2: the records do not know it"]);
    holds(line["fix"].as_str().unwrap(), &["`unionhall secret rotate`"]);
    union.done(&["rotate"], &["It goes on.", "Generation 2"]);
    wait_for!(async || union.server.number("SELECT count(*) FROM secret_generations WHERE done") == 1).await;
    assert_eq!(union.server.number("SELECT count(*) FROM outbox"), 1, "mailed again");
    assert_eq!(union.doctor()[0]["state"], "ok");
    assert_eq!(union.opens(&union.link("confirm", Purpose::Confirm, waits)).await, 200);
}

/// The file was written, and the records know nothing of it yet.
#[tokio::test(flavor = "multi_thread")]
async fn a_rotation_that_was_killed_goes_on() {
    needs!(Postgres, Redis);
    for home in homes() {
        let union = Rotated::start(home);
        let ring = union.ring().rotated(&"n".repeat(40), Clock::start().now().time, None).unwrap();
        std::fs::write(&union.file, ring.text().reveal()).unwrap();
        union.until_used(2).await;
        union.done(&["rotate"], &["An earlier rotation was interrupted. It goes on.", "Generation 2"]);
        assert_eq!(union.ring().text(), ring.text());
        // A start with it, and one with the file of before.
        let Rotated { server, file, .. } = union;
        let (_, home) = server.stop();
        let server = Rotated::serve(home, &file);
        std::fs::write(&file, TEXT).unwrap();
        // A running node does not go back: what leaked would read again.
        wait_for!(async || server.log().contains("lacks a generation that this node has")).await;
        assert!(!server.log().contains("generation 1 of the secret makes"));
        let (_, home) = server.stop();
        let mut command = unionhall(home.path());
        command.envs(home.records().settings()).env("UNIONHALL_SECRET", "");
        let refused = command.args(["serve", "--listen", "127.0.0.1:0", "--secret-file"]).arg(&file).output().unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(
            !refused.status.success() && said.contains("generation 2 of it") && said.contains("secret rotate"),
            "{said}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_take_the_new_secret_when_it_is_given_to_them() {
    needs!(Postgres, Redis);
    let union = Rotated::start(Home::on_postgres(tempfile::tempdir().unwrap()));
    let other = Home::sharing(union.server.records());
    let theirs = other.path().join("secret-file");
    std::fs::write(&theirs, TEXT).unwrap();
    let other = Rotated::serve(other, &theirs);
    union.done(&["rotate", "--in", "0s"], &["put", "on every node"]);
    union.until_used(2).await;
    wait_for!(async || other.log().contains("this node lacks generation 2")).await;
    let confirm = union.link("confirm", Purpose::Confirm, union.sign_up("ana@example.com").await);
    assert_eq!(other.get(&confirm).await.status, 404);
    std::fs::copy(&union.file, &theirs).unwrap();
    wait_for!(async || other.log().contains("generation 2 of the secret makes everything new")).await;
    assert_eq!(other.get(&confirm).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_secret_is_replaced_and_its_cost_is_told() {
    needs!(Postgres, Redis);
    for home in homes() {
        let union = Rotated::start(home);
        union.join("ana@example.com").await;
        let ana = union.code("ana@example.com").await;
        let waits = union.sign_up("ben@example.com").await;
        let decline = union.link("not-me", Purpose::Decline, waits);
        union.refused(&["replace", "--lost"], &["so it is not lost"]);
        // What a full disk left of the file is no other secret, and nothing is made in its place unasked.
        let torn = union.ring().rotated(&"n".repeat(40), Timestamp::from_millis(0), None).unwrap().text();
        std::fs::write(&union.file, &torn.reveal()[..200]).unwrap();
        let back = "put back a copy. If no copy is left, move this file away, and say this again. Nothing was changed";
        union.refused(&["replace", "--lost"], &[back, "the generations in it are not as"]);
        union.refused(&["status"], &["the generations in it are not as"]);
        let Rotated { server, file, key } = union;
        let (_, home) = server.stop();
        std::fs::remove_file(&file).unwrap();
        let mut command = unionhall(home.path());
        command.envs(home.records().settings()).env("UNIONHALL_SECRET", "");
        let output = command.args(["secret", "replace", "--lost", "--secret-file"]).arg(&file).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{said}");
        holds(&said, &["have a new secret", "Links mailed before no longer work", "Members keep their codes"]);
        let union = Rotated { server: Rotated::serve(home, &file), file, key };
        union.done(&["status"], &["2     after a loss", "it makes everything new"]);
        assert_eq!(union.opens(&decline).await, 404);
        assert_eq!(union.code("ana@example.com").await, ana);
        let newer = union.link("confirm", Purpose::Confirm, waits);
        assert_eq!(union.opens(&newer).await, 200);
        union.join("cleo@example.com").await;
        union.done(&["rotate", "--in", "0s"], &["Generation 3"]);
    }
}

/// Nobody is told to start a service that would refuse to start, or to make what is only away.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_away_is_told_from_one_that_is_not_made_yet() {
    let home = Home::new();
    let said = |home: &Home, task: &str| {
        let output = unionhall(home.path()).args(["secret", task]).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let issued = unionhall(home.path()).args(["keys", "issue", "Acme Assistant", "--new"]).output().unwrap();
    assert!(issued.status.success(), "{issued:?}");
    for task in ["status", "rotate"] {
        holds(&said(&home, task), &["the records have no secret yet: start the service once, which makes it"]);
    }
    let home = Server::start_in(home, &["--mail", "hold"]).stopped();
    std::fs::remove_file(home.path().join("data/secret")).unwrap();
    for task in ["status", "rotate"] {
        holds(
            &said(&home, task),
            &["belong to a secret that is not there: put it back into data/secret", "replace --lost"],
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_rotations_at_once_one_is_done() {
    let union = Rotated::start(Home::on_sqlite(tempfile::tempdir().unwrap()));
    let said: Vec<_> = std::thread::scope(|scope| {
        let both = [(); 4].map(|()| scope.spawn(|| union.secret(&["rotate", "--in", "0s"])));
        both.into_iter().map(|one| one.join().unwrap()).collect()
    });
    // One that comes after another finds that it has not begun.
    let done = said.iter().filter(|(done, said)| *done && !said.contains("was made before")).count();
    assert!(done >= 1, "{said:?}");
    assert!(said.iter().all(|(done, said)| *done || said.contains("changes the secret right now")), "{said:?}");
    assert_eq!(union.ring().generations().count(), 1 + done);
    union.done(&["status"], &["it makes everything new"]);
    let Rotated { server, file, .. } = union;
    let _again = Rotated::serve(server.stopped(), &file);
}
