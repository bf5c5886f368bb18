//! `unionhall backup` and `unionhall restore`: the drill, and whatever may go wrong with it.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;

use crate::prelude::*;
use age::secrecy::ExposeSecret;
use rusqlite::Connection;
use unionhall::domain::secret::mark::AddressMarker;
use unionhall::people::erasures::ErasureLog;

use crate::once::root_files::walk;

const FLAGS: &[&str] =
    &["--store", "sqlite:", "--mail", "hold", "--key-per-minute", "1000000", "--public-per-minute", "100000"];

fn run(folder: &Path, arguments: &[&str]) -> Output {
    unionhall(folder).args(arguments).output().unwrap()
}

#[track_caller]
fn done(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn refusal(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    told.lines().last().unwrap().to_owned()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn number(database: &Path, sql: &str) -> i64 {
    Connection::open(database).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

/// As a user who is neither root nor the one who made the backup, where the tests may choose.
fn as_another_user(folder: &Path) -> Command {
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        return unionhall(folder);
    }
    // Perhaps the build stands where nobody else can look. A link is the same file, whose owner must stay who it was.
    let (built, linked) = (Path::new(env!("CARGO_BIN_EXE_unionhall")), folder.join("program"));
    for path in names(folder).iter().map(|name| folder.join(name)).filter(|path| *path != linked) {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
    let there = linked.exists() || std::fs::hard_link(built, &linked).is_ok();
    let mut command = Command::new(if there { linked } else { built.to_owned() });
    command.env_clear().current_dir(folder).stdin(Stdio::null()).uid(NOBODY).gid(NOBODY);
    command
}

/// A stopped server's folder with some records in it, and a backup of them, `all`; its secret.
fn backed_up() -> (Home, String) {
    block_on(async {
        let (server, key) = Server::with_key(FLAGS);
        for n in 0..20 {
            server.post("/v1/invite", &key, sign_up(&format!("user{n}@example.com"))).await.good();
        }
        assert_eq!(server.confirm(1).await.status, 200);
        let secret = std::fs::read_to_string(server.data().join("secret")).unwrap().trim().to_owned();
        let (_, home) = server.stop();
        done(&run(home.path(), &["backup", "all"]));
        (home, secret)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_drill() {
    let (server, key) = Server::with_key(FLAGS);
    let invite = async |server: &Server, name: &str| {
        server.post("/v1/invite", &key, sign_up(&format!("{name}@example.com"))).await.good();
        server.number(&format!(
            "SELECT s.id FROM sign_ups s JOIN people p ON p.id = person_id WHERE email = '{name}@example.com'"
        ))
    };
    let mut early = Vec::new();
    for name in ["ana", "bea", "cem", "dora", "ed"] {
        early.push(invite(&server, name).await);
    }
    for id in &early[..3] {
        assert_eq!(server.confirm(*id).await.status, 200);
    }
    // Somebody is signed in, and somebody is about to be.
    let mut bea = Browser::member(&server, 1, "bea@example.com").await;
    bea.post("/me/sign-in", &[("email", "ana@example.com")]).await;
    // A mailing about a campaign is under way; the campaign is made by hand, as this is not about campaigns.
    let definition = "slug = \"all-2099\"\ncategory = \"internet\"\ngather_until = 2099-12-31\n[text.en]\ntitle = \"A\"\n\
                      summary = \"B\"\n[text.es]\ntitle = \"A\"\nsummary = \"B\"\n";
    for sql in [
        &format!(
            "INSERT INTO campaigns (slug, definition, state, gather_until, created_at) VALUES ('all-2099', '{definition}', 'gathering', 47481, 1)"
        ),
        "INSERT INTO campaign_mailings (campaign_id, kind, started_at) VALUES (1, 'campaign_offer', 1)",
        "INSERT INTO campaign_mails (campaign_id, kind, person_id, queued_at) VALUES (1, 'campaign_offer', 1, 1)",
        "INSERT INTO outbox (campaign_mail_id, kind, recipient, created_at, send_after) VALUES (1, 'campaign_offer', 'ana@example.com', 1, 1)",
    ] {
        server.execute(sql);
    }
    // Sign-ups come in and are confirmed while the backup is made.
    let ended = AtomicBool::new(false);
    let load = async |name: &str| {
        let mut n = 0;
        while !ended.load(Ordering::Relaxed) || n < 5 {
            let id = invite(&server, &format!("{name}{n}")).await;
            assert_eq!(server.confirm(id).await.status, 200);
            n += 1;
        }
    };
    let mut command = server.command();
    let backup = async {
        let output = tokio::task::spawn_blocking(move || command.args(["backup", "all"]).output().unwrap()).await;
        ended.store(true, Ordering::Relaxed);
        done(&output.unwrap())
    };
    let ((), (), told) = tokio::join!(load("load"), load("more"), backup);
    assert!(told.contains("protect it like the data folder"), "{told}");
    // And afterwards.
    let mut late = Vec::new();
    for n in 0..10 {
        late.push(invite(&server, &format!("late{n}")).await);
    }
    assert_eq!(server.confirm(late[0]).await.status, 200);
    let (log, clock) = (ErasureLog::beside(&server.data()), Clock::start());
    let marker = AddressMarker::new(&server.records().secret());
    let mark = |text: &str| marker.marks(&EmailAddress::parse(text).unwrap()).address;
    log.append(&mark("ana@example.com"), "a", Timestamp::from_millis(1)).unwrap();
    // In the hour of the backup: perhaps he was erased before, and came again.
    let of_cem = server.number("SELECT created_at FROM people WHERE email = 'cem@example.com'");
    log.append(&mark("CEM@example.com"), "b", Timestamp::from_millis(of_cem).end_of_hour()).unwrap();
    log.append(&mark("late0@example.com"), "b", clock.now().time).unwrap();
    let (_, old) = server.stop();

    let home = Home::new();
    for name in ["all", "data/erasures"] {
        std::fs::copy(old.path().join(name), home.path().join(Path::new(name).file_name().unwrap())).unwrap();
    }
    drop(old);
    let mut command = as_another_user(home.path());
    let told = done(&command.args(["restore", "all", "--erasures", "erasures"]).output().unwrap());
    let erase: Vec<_> = told.lines().filter(|line| line.contains("members erase")).collect();
    assert_eq!(erase, ["  unionhall members erase --waive-rewards cem@example.com"], "{told}");
    assert!(told.contains("may have been sent since"), "{told}");
    assert!(told.contains("Mail about campaigns that was under way is stopped"), "{told}");
    assert!(!told.contains("chown"), "it is the folder's owner who did it: {told}");
    let data = home.path().join("data");
    assert_eq!(names(&data), ["erasures", "secret", "unionhall.db"]);
    assert_eq!(mode(&data), 0o700);
    assert!(names(&data).iter().all(|name| mode(&data.join(name)) == 0o600));
    let database = data.join("unionhall.db");
    let members = number(&database, "SELECT count(*) FROM people WHERE state = 'member'");
    assert_eq!(number(&database, "SELECT member_count FROM installation"), members);
    assert!(members >= 3);
    let last = number(&database, "SELECT max(id) FROM sign_ups");
    assert!(last < late[0], "{last} {late:?}");
    let signed_in = "SELECT (SELECT count(*) FROM people WHERE session IS NOT NULL) + (SELECT count(*) FROM sign_ins)";
    assert_eq!(number(&database, signed_in), 0, "all sessions end, and links to sign in lead nowhere");
    assert_eq!(number(&database, "SELECT count(*) FROM outbox WHERE held_at IS NULL OR leased_by IS NOT NULL"), 0);

    let mailing = "SELECT (SELECT count(*) FROM campaign_mailings WHERE finished_at IS NULL)
                              + (SELECT count(*) FROM outbox WHERE campaign_mail_id IS NOT NULL)";
    assert_eq!(number(&database, mailing), 0, "nobody is mailed twice about a campaign");

    let again: Vec<_> = erase[0].split_whitespace().skip(1).collect();
    done(&as_another_user(home.path()).args(again).output().unwrap());
    let members = members - 1;

    let server = Server::start_as(as_another_user(home.path()), home, FLAGS);
    let count = async || server.get("/v1/stats").await.good()["memberCount"].as_i64().unwrap();
    assert_eq!(count().await, members);
    assert_eq!(server.confirm(early[3]).await.status, 200, "a link that was mailed before");
    assert_eq!(count().await, members + 1);
    let mut new = Vec::new();
    for round in 0..2 {
        for id in &late {
            assert_eq!(server.confirm(*id).await.status, 404, "a link that was mailed after");
            assert_eq!(server.get(&server.confirm_path(*id)).await.status, 404);
        }
        for n in 0..20 {
            new.push(invite(&server, &format!("new{round}x{n}")).await);
        }
    }
    assert!(new.iter().all(|id| *id > last + 1_000_000), "{new:?}");
    assert_eq!(count().await, members + 1);
    assert_eq!(server.confirm(new[0]).await.status, 200);
    assert_eq!(count().await, members + 2);
    assert!(server.run(&["keys", "list"]).contains("Acme Assistant"));
    let held = server.number("SELECT count(*) FROM outbox WHERE held_at IS NOT NULL");
    assert!(held > 0 && server.run(&["mail", "release"]).starts_with(&format!("{held} mail")));
}

/// Whatever is written meanwhile, a backup is of one moment: everything that belongs together is there or is not.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_beside_writers_is_of_one_moment() {
    let (server, key) = Server::with_key(FLAGS);
    let ended = AtomicBool::new(false);
    let load = async |lane: usize| {
        for n in 0.. {
            let before = server.number("SELECT coalesce(max(id), 0) FROM sign_ups");
            server.post("/v1/invite", &key, sign_up(&format!("l{lane}n{n}@example.com"))).await.good();
            server.confirm(before.max(1)).await;
            if ended.load(Ordering::Relaxed) {
                break;
            }
        }
    };
    let backups = async {
        for n in 0..4 {
            let mut command = server.command();
            let name = format!("b{n}");
            let made = tokio::task::spawn_blocking(move || command.args(["backup", &name]).output().unwrap()).await;
            done(&made.unwrap());
        }
        ended.store(true, Ordering::Relaxed);
    };
    tokio::join!(load(0), load(1), load(2), backups);
    let (_, home) = server.stop();
    let mut people = Vec::new();
    for n in 0..4 {
        let data = format!("d{n}");
        done(&run(home.path(), &["restore", &format!("b{n}"), "--data", &data]));
        let database = home.path().join(data).join("unionhall.db");
        let torn = "SELECT (SELECT count(*) FROM pragma_foreign_key_check)
                    + (SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok')
                    + (SELECT count(*) FROM sign_ups s WHERE state = 'pending' AND NOT EXISTS
                       (SELECT 1 FROM outbox WHERE sign_up_id = s.id))
                    + abs((SELECT member_count FROM installation) - (SELECT count(*) FROM people WHERE state = 'member'))";
        assert_eq!(number(&database, torn), 0);
        people.push(number(&database, "SELECT count(*) FROM people"));
    }
    assert!(people.is_sorted() && people[3] > people[0], "they were written meanwhile: {people:?}");
}

#[test]
fn what_is_damaged_is_refused_and_leaves_nothing_behind() {
    let (home, _) = backed_up();
    let whole = std::fs::read(home.path().join("all")).unwrap();
    let text = String::from_utf8_lossy(&whole[..2048]);
    let lines = text.lines().take(7).map(|line| line.len() + 1).sum::<usize>();
    let place = |word: &str| text.find(word).unwrap() + word.len();
    let changed = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let replaced = |from: &str, to: &str| {
        let head = text[..lines].replacen(from, to, 1);
        [head.as_bytes(), &whole[lines..]].concat()
    };
    let newest = unionhall::store::migration::MIGRATIONS.len();
    let header = "its first lines have changed";
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (changed(0), "is not a backup that `unionhall backup` made"),
        (Vec::new(), "is not a backup"),
        (b"SQLite format 3\0".repeat(1000), "is not a backup"),
        (replaced("backup 1", "backup 2"), "a backup of a newer form (2, this unionhall reads 1)"),
        (replaced("backup 1", "backup 01"), header),
        (changed(place("\nmade ")), header),
        (changed(place("\nby ")), header),
        (replaced(&format!("\nschema {newest}"), &format!("\nschema {}", newest + 1)), header),
        (replaced("\ndatabase ", "\ndatabase 9"), header),
        (changed(place("\nsum ")), header),
        (changed(lines - 1), header),
        (changed(lines - 70), header),
        (changed(lines), "the database in it has changed"),
        (changed(lines + 50_000), "the database in it has changed"),
        (changed(whole.len() - 53), "the database in it has changed"),
        (changed(whole.len() - 52), "the secret in it has changed"),
        (changed(whole.len() - 1), "the secret in it has changed"),
        (whole[..20].to_vec(), header),
        (whole[..lines].to_vec(), "it ends after "),
        (whole[..lines + 40_000].to_vec(), "it ends after "),
        (whole[..whole.len() - 1].to_vec(), "it ends after "),
        ([&whole[..], b"\n"].concat(), "something was added to its end, 1 bytes"),
    ];
    let before = names(home.path());
    for (n, (bytes, expected)) in cases.iter().enumerate() {
        let file = home.path().join("damaged");
        std::fs::write(&file, bytes).unwrap();
        let told = refusal(&run(home.path(), &["restore", "damaged", "--data", "new"]));
        assert!(told.contains(expected), "{n}: {told}");
        std::fs::remove_file(&file).unwrap();
        assert_eq!(names(home.path()), before, "{n}");
    }
    // And a folder that was there stays as it was.
    std::fs::create_dir(home.path().join("new")).unwrap();
    std::fs::write(home.path().join("damaged"), changed(lines + 50_000)).unwrap();
    refusal(&run(home.path(), &["restore", "damaged", "--data", "new"]));
    assert_eq!(names(&home.path().join("new")), Vec::<String>::new());
    done(&run(home.path(), &["restore", "all", "--data", "new"]));
}

#[test]
fn records_that_are_not_whole_are_not_backed_up() {
    let (home, _) = backed_up();
    let database = home.path().join("data/unionhall.db");
    let before = names(home.path());
    for (harm, mend, expected) in [
        (
            "UPDATE installation SET member_count = 7", "UPDATE installation SET member_count = 1",
            "7 members are counted, and 1 are there",
        ),
        (
            "PRAGMA foreign_keys = OFF; UPDATE sign_ups SET person_id = person_id + 1000 WHERE id = 2",
            "PRAGMA foreign_keys = OFF; UPDATE sign_ups SET person_id = person_id - 1000 WHERE id = 2",
            "some rows refer to others that are not there",
        ),
        (
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'comments        TEXT', 'comments TEXT NOT NULL') WHERE name = 'sign_ups'",
            "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'comments TEXT NOT NULL', 'comments        TEXT') WHERE name = 'sign_ups'",
            "the file is damaged: NULL value in sign_ups.comments",
        ),
    ] {
        Connection::open(&database).unwrap().execute_batch(harm).unwrap();
        let told = refusal(&run(home.path(), &["backup", "harmed"]));
        assert!(told.contains("are damaged; keep the backups you have") && told.contains(expected), "{told}");
        assert_eq!(names(home.path()), before);
        Connection::open(&database).unwrap().execute_batch(mend).unwrap();
    }
    done(&run(home.path(), &["backup", "mended"]));
}

#[test]
fn the_secret_is_in_it_or_is_asked_for() {
    let (home, secret) = backed_up();
    let (folder, contains) = (home.path(), |name: &str, text: &str| {
        let bytes = std::fs::read(home.path().join(name)).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    });
    assert_eq!(mode(&folder.join("all")), 0o600);
    assert!(contains("all", &secret) && contains("all", "user7@example.com"));
    holds(&done(&run(folder, &["backup", "bare", "--without-secret"])), &["The installation's secret is not in it"]);
    assert!(!contains("bare", &secret) && contains("bare", "user7@example.com"));

    holds(&refusal(&run(folder, &["restore", "bare", "--data", "new"])), &["the backup holds no secret", "new/secret"]);
    let other = "another secret than that of these records";
    let said = refusal(&run(folder, &["restore", "bare", "--data", "new", "--secret", other]));
    assert!(said.contains("the secret that was given is not the one"), "{said}");
    assert!(!folder.join("new").exists());
    let told = done(&run(folder, &["restore", "bare", "--data", "new", "--secret-file", "data/secret"]));
    assert!(told.contains("give it to the service, too"), "{told}");
    assert_eq!(names(&folder.join("new")), ["unionhall.db"]);
    // One that the folder has already.
    std::fs::create_dir(folder.join("kept")).unwrap();
    std::fs::write(folder.join("kept/secret"), other).unwrap();
    for backup in ["bare", "all"] {
        holds(&refusal(&run(folder, &["restore", backup, "--data", "kept"])), &["kept/secret is not the one"]);
        assert_eq!(names(&folder.join("kept")), ["secret"]);
    }
    std::fs::copy(folder.join("data/secret"), folder.join("kept/secret")).unwrap();
    done(&run(folder, &["restore", "bare", "--data", "kept"]));
    // One that was given with a setting goes into the backup as if the folder had it; another is found out now.
    std::fs::rename(folder.join("data/secret"), folder.join("away")).unwrap();
    holds(&refusal(&run(folder, &["backup", "given"])), &["is not in data/secret", "--without-secret"]);
    let told = refusal(&run(folder, &["backup", "given", "--secret", other]));
    assert!(told.contains("not the one that the records were made with"), "{told}");
    assert!(!folder.join("given").exists());
    done(&unionhall(folder).args(["backup", "given"]).env("UNIONHALL_SECRET", &secret).output().unwrap());
    done(&run(folder, &["restore", "given", "--data", "from-given"]));
    assert_eq!(std::fs::read_to_string(folder.join("from-given/secret")).unwrap().trim(), secret);
    done(&run(folder, &["backup", "none-needed", "--without-secret"]));
    let left: Vec<_> = names(folder).into_iter().filter(|name| name.contains(".part")).collect();
    assert_eq!(left, Vec::<String>::new());
}

/// A file as `age-keygen` writes it; its recipient.
fn new_identity(file: &Path) -> String {
    let identity = age::x25519::Identity::generate();
    let recipient = identity.to_public().to_string();
    let text = format!("# created: 2026-11-19\n# public key: {recipient}\n{}\n", identity.to_string().expose_secret());
    std::fs::write(file, text).unwrap();
    recipient
}

/// Every address and code, the partner and its key, the secret, and what begins a database or a plain backup.
fn told_by_the_records(folder: &Path, secret: &str) -> Vec<String> {
    let database = Connection::open(folder.join("data/unionhall.db")).unwrap();
    let all = "SELECT email FROM people UNION SELECT code FROM people UNION SELECT id FROM api_keys UNION SELECT name FROM partners";
    let mut statement = database.prepare(all).unwrap();
    let mut told: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(told.len(), 42);
    told.extend([secret, "SQLite format 3", "unionhall backup", "CREATE TABLE", "@example.com"].map(str::to_owned));
    told
}

fn found_in(bytes: &[u8], texts: &[String]) -> usize {
    let found = |text: &&String| bytes.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text.as_bytes()));
    texts.iter().filter(found).count()
}

/// What tools find that carve a disk: of what they know the pieces that are there, pages of SQLite at any place, and what looks like an
/// address, as `strings` shows it.
#[derive(Debug, PartialEq)]
struct Carved {
    pieces: usize,
    pages: usize,
    addresses: usize,
}

const NOTHING: Carved = Carved { pieces: 0, pages: 0, addresses: 0 };

/// Long enough that no piece is anywhere by chance.
const PIECE: usize = 8;

impl Carved {
    fn of(bytes: &[u8], known: &BTreeSet<Vec<u8>>) -> Self {
        let pieces: BTreeSet<_> = bytes.windows(PIECE).map(<[u8]>::to_ascii_lowercase).collect();
        let is_address = |at: &usize| bytes[*at] == b'@' && is_address(&bytes[..*at], &bytes[at + 1..]);
        Self {
            pieces: known.intersection(&pieces).count(),
            pages: bytes.windows(4096).filter(|page| is_page(page)).count(),
            addresses: (0..bytes.len()).filter(is_address).count(),
        }
    }
}

fn pieces(texts: &[String], keys: &[Vec<u8>]) -> BTreeSet<Vec<u8>> {
    let texts = texts.iter().map(String::as_bytes).chain(keys.iter().map(Vec::as_slice));
    texts.flat_map(|text| text.windows(PIECE)).map(<[u8]>::to_ascii_lowercase).collect()
}

/// A page of a b-tree with some cells, by its header and where its cells are.
fn is_page(page: &[u8]) -> bool {
    let number = |at: usize| usize::from(u16::from_be_bytes([page[at], page[at + 1]]));
    let header = match page[0] {
        2 | 5 => 12,
        10 | 13 => 8,
        _ => return false,
    };
    let (free, cells, content) = (number(1), number(3), number(5));
    let places: BTreeSet<_> = (0..cells.min(500)).map(|cell| number(header + 2 * cell)).collect();
    (4..500).contains(&cells)
        && free < page.len()
        && content >= header + 2 * cells
        && page[7] <= 60
        && places.len() == cells
        && places.iter().all(|place| (content..page.len()).contains(place))
}

fn is_address(before: &[u8], after: &[u8]) -> bool {
    let is_word = |c: &&u8| c.is_ascii_alphanumeric() || b"-_+.".contains(c);
    let domain: Vec<_> = after.iter().take_while(is_word).copied().collect();
    let end = domain.iter().rposition(|c| *c == b'.').unwrap_or_default();
    before.iter().rev().take_while(is_word).count() >= 4
        && end >= 4
        && domain[end..].iter().filter(|c| c.is_ascii_alphabetic()).count() >= 2
}

#[test]
fn an_encrypted_backup_tells_nothing_and_each_recipient_opens_it() {
    let (home, secret) = backed_up();
    let folder = home.path();
    let [one, two, _other] = ["one", "two", "other"].map(|name| new_identity(&folder.join(name)));
    let (before, in_data) = (names(folder), names(&folder.join("data")));
    let made = done(&run(folder, &["backup", "locked", "--recipient", &one, "--recipient", &two]));
    holds(&made, &["The installation's secret is in it. It is encrypted for 2 recipients", "1 member"]);
    assert_eq!(mode(&folder.join("locked")), 0o600);
    let made_there: Vec<_> = names(folder).into_iter().filter(|name| !before.contains(name)).collect();
    assert_eq!((made_there, names(&folder.join("data"))), (vec!["locked".to_owned()], in_data), "nothing beside it");
    let told = told_by_the_records(folder, &secret);
    let (plain, locked) = (std::fs::read(folder.join("all")).unwrap(), std::fs::read(folder.join("locked")).unwrap());
    assert_eq!(found_in(&plain, &told), told.len(), "the search finds them");
    assert_eq!(found_in(&locked, &told), 0);
    let database = Connection::open(folder.join("data/unionhall.db")).unwrap();
    let keys = database.query_row("SELECT hash FROM api_keys", [], |row| row.get(0).map(|hash| vec![hash])).unwrap();
    let known = pieces(&told, &keys);
    let carved = Carved::of(&plain, &known);
    assert!(carved.pieces == known.len() && carved.pages >= 20 && carved.addresses >= 20, "it finds them: {carved:?}");
    assert_eq!(Carved::of(&locked, &known), NOTHING);
    // By the variable, and with what a plain file may not have.
    let both = format!("{one},{two}");
    let mut command = unionhall(folder);
    let command = command.args(["backup", "by-variable", "--secret-only-encrypted"]);
    holds(&done(&command.env("UNIONHALL_BACKUP_RECIPIENT", &both).output().unwrap()), &["encrypted for 2 recipients"]);
    assert_eq!(found_in(&std::fs::read(folder.join("by-variable")).unwrap(), &told), 0);
    for (backup, identity) in [("locked", "one"), ("locked", "two"), ("by-variable", "two")] {
        let data = format!("{backup}-{identity}");
        holds(&done(&run(folder, &["restore", backup, "--identity", identity, "--data", &data])), &["1 member"]);
        assert_eq!(names(&folder.join(&data)), ["secret", "unionhall.db"]);
        assert_eq!(std::fs::read_to_string(folder.join(&data).join("secret")).unwrap().trim(), secret);
        assert_eq!(number(&folder.join(&data).join("unionhall.db"), "SELECT count(*) FROM people"), 20);
    }
    // From standard input.
    let mut command = unionhall(folder);
    command.args(["restore", "locked", "--identity", "-", "--data", "piped"]);
    done(&command.stdin(std::fs::File::open(folder.join("one")).unwrap()).output().unwrap());
    // Inside is the file as it is without, for others who read the format.
    let plain = age::decrypt(&identity_in(&folder.join("two")), &locked).unwrap();
    assert_eq!(found_in(&plain, &told), told.len());
    std::fs::write(folder.join("plain"), plain).unwrap();
    done(&run(folder, &["restore", "plain", "--data", "opened"]));
    assert!(age::decrypt(&identity_in(&folder.join("other")), &locked).is_err());
}

fn identity_in(file: &Path) -> age::x25519::Identity {
    std::fs::read_to_string(file).unwrap().lines().last().unwrap().parse().unwrap()
}

#[test]
fn an_encrypted_backup_that_cannot_be_opened_or_was_changed_is_refused_and_leaves_nothing_behind() {
    let (home, _) = backed_up();
    let folder = home.path();
    let recipient = new_identity(&folder.join("one"));
    new_identity(&folder.join("other"));
    done(&run(folder, &["backup", "locked", "--recipient", &recipient]));
    let whole = std::fs::read(folder.join("locked")).unwrap();
    std::fs::write(folder.join("recipient"), format!("{recipient}\n")).unwrap();
    std::fs::write(folder.join("damaged"), &whole).unwrap();
    let before = names(folder);
    let refused = |file: &str, more: &[&str]| {
        let told = refusal(&run(folder, &[&["restore", file, "--data", "new"], more].concat()));
        assert_eq!(names(folder), before, "{told}");
        told
    };
    holds(
        &refused("locked", &[]),
        &["locked is encrypted: give the file of an identity that opens it with --identity"],
    );
    holds(
        &refused("locked", &["--identity", "other"]),
        &["no identity in other opens locked: it was encrypted for other"],
    );
    holds(
        &refused("locked", &["--identity", "recipient"]),
        &["recipient is not a file of identities", "AGE-SECRET-KEY-1"],
    );
    holds(&refused("locked", &["--identity", "nowhere"]), &["cannot read nowhere"]);
    let changed = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let end = whole.windows(4).position(|window| window == b"\n---").unwrap();
    // After a line with 43 letters and a nonce.
    let payload = end + 65;
    let (changed_inside, header) = ("something in it has changed or is missing", "the lines before what is encrypted");
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (changed(0), "is not a backup that `unionhall backup` made"),
        (changed(end + 10), header),
        (whole[..end].to_vec(), header),
        (whole[..end + 6].to_vec(), header),
        // Within what the recipient needs, and within the nonce.
        (changed(40), "damaged"),
        (whole[..end + 60].to_vec(), header),
        (whole[..end + 1000].to_vec(), changed_inside),
        (whole[..whole.len() / 2].to_vec(), changed_inside),
        // All portions but the last, each whole.
        (whole[..payload + (whole.len() - payload) / 65_552 * 65_552].to_vec(), changed_inside),
        (whole[..whole.len() - 1].to_vec(), changed_inside),
        (changed(end + 1000), changed_inside),
        (changed(whole.len() / 2), changed_inside),
        (changed(whole.len() - 1), changed_inside),
        ([&whole[..], b"\n"].concat(), changed_inside),
        ([&whole[..], &whole[..]].concat(), changed_inside),
        ([b"age-encryption.org/v1\n".as_slice(), &[b'a'; 200_000]].concat(), header),
    ];
    for (n, (bytes, expected)) in cases.iter().enumerate() {
        std::fs::write(folder.join("damaged"), bytes).unwrap();
        let told = refused("damaged", &["--identity", "one"]);
        assert!(told.contains(expected), "{n}: {told}");
    }
    done(&run(folder, &["restore", "locked", "--data", "new", "--identity", "one"]));
}

#[test]
fn a_recipient_that_is_none_is_refused_before_anything_is_written() {
    let (home, secret) = backed_up();
    let folder = home.path();
    let recipient = new_identity(&folder.join("one"));
    let identity = identity_in(&folder.join("one")).to_string();
    let before = names(folder);
    for (given, why) in [
        (identity.expose_secret(), "recipient 1 is an identity, which opens backups and must stay secret"),
        (&*format!("{recipient},"), "recipient 2 is not understood; give one as `age-keygen` prints it"),
        (",", "recipient 1 is not understood"),
        ("ssh-ed25519 AAAA", "recipient 1 is not understood"),
    ] {
        let output = run(folder, &["backup", "locked", "--recipient", given]);
        let told = refusal(&output);
        assert!(told.contains(why) && !told.contains(identity.expose_secret()), "{told}");
        assert_eq!(names(folder), before);
    }
    // What leaves the machine by a job holds the secret only where it is encrypted.
    let told = done(&run(folder, &["backup", "job", "--secret-only-encrypted"]));
    holds(&told, &["keep a copy of data/secret in another place. It is not encrypted"]);
    assert_eq!(found_in(&std::fs::read(folder.join("job")).unwrap(), &[secret]), 0);
}

/// SQLite leaves what is deleted in its pages until they are needed; whoever was erased must not live on in later backups.
#[test]
fn what_was_deleted_before_is_in_no_backup() {
    let (home, _) = backed_up();
    let database = home.path().join("data/unionhall.db");
    let holds = |file: &Path| {
        let bytes = std::fs::read(file).unwrap();
        bytes.windows(20).any(|window| window == b"deleted@some.example")
    };
    let connection = Connection::open(&database).unwrap();
    for sql in [
        "INSERT INTO used_once (name, ends_at) VALUES ('deleted@some.example', 1)",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "DELETE FROM used_once",
        "PRAGMA wal_checkpoint(TRUNCATE)",
    ] {
        connection.execute_batch(sql).unwrap();
    }
    connection.close().unwrap();
    assert!(holds(&database), "the test would prove nothing");
    done(&run(home.path(), &["backup", "later"]));
    assert!(!holds(&home.path().join("later")));
}

#[test]
fn nothing_is_ever_written_over() {
    let (home, _) = backed_up();
    let (folder, database) = (home.path(), home.path().join("data/unionhall.db"));
    let before = std::fs::read(&database).unwrap();
    holds(&refusal(&run(folder, &["restore", "all"])), &["there are records at data/unionhall.db already"]);
    assert_eq!(std::fs::read(&database).unwrap(), before);
    assert_eq!(names(&folder.join("data")), ["secret", "unionhall.db"]);

    holds(&refusal(&run(folder, &["backup", "all"])), &["all already exists"]);
    holds(&refusal(&run(folder, &["backup", "nowhere/all"])), &["cannot write nowhere/all"]);
    let told = refusal(&run(folder, &["backup", "other", "--data", "none"]));
    assert!(told.contains("there are no records at none/unionhall.db"), "{told}");
    assert!(!folder.join("none").exists());
    // What is left of records is no empty place either; an empty file is.
    std::fs::create_dir(folder.join("new")).unwrap();
    for left in ["unionhall.db-wal", "unionhall.db-shm", "unionhall.db-journal"] {
        std::fs::write(folder.join("new").join(left), "left").unwrap();
        let told = refusal(&run(folder, &["restore", "all", "--data", "new"]));
        assert!(told.contains(&format!("new/{left} is left of another database")), "{told}");
        std::fs::remove_file(folder.join("new").join(left)).unwrap();
        assert_eq!(names(&folder.join("new")), Vec::<String>::new());
    }
    std::fs::write(folder.join("new/unionhall.db"), "").unwrap();
    done(&run(folder, &["restore", "all", "--data", "new"]));

    let told = refusal(&run(folder, &["restore", "all", "--store", "postgres://u:hunter2@localhost/d"]));
    assert!(told.contains("unionhall move --from sqlite:") && !told.contains("hunter2"), "{told}");
}

/// Records of a later release are refused, when they are backed up and when they are restored.
#[test]
fn newer_records_are_refused() {
    let (home, _) = backed_up();
    let folder = home.path();
    let newest = number(&folder.join("data/unionhall.db"), "SELECT user_version FROM pragma_user_version");
    let database = Connection::open(folder.join("data/unionhall.db")).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    holds(&refusal(&run(folder, &["backup", "newer"])), &["by a newer unionhall (schema 99"]);
    // One that such a release has made: only its lines tell.
    let whole = std::fs::read(folder.join("all")).unwrap();
    let text = String::from_utf8_lossy(&whole[..2048]).into_owned();
    let lines: Vec<_> = text.lines().take(7).collect();
    let head = lines[..6].join("\n").replacen(&format!("\nschema {newest}\n"), "\nschema 99\n", 1) + "\n";
    let sum: String = ring::digest::digest(&ring::digest::SHA256, head.as_bytes())
        .as_ref()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    let rest = &whole[lines.iter().map(|line| line.len() + 1).sum::<usize>()..];
    std::fs::write(folder.join("newer"), [format!("{head}sum {sum}\n").as_bytes(), rest].concat()).unwrap();
    let told = refusal(&run(folder, &["restore", "newer", "--data", "newer-data"]));
    assert!(told.contains("are of a newer unionhall (schema 99, this one knows"), "{told}");
    assert!(!folder.join("newer-data").exists());
}

/// Ended at any moment, by whatever it may be, there are records as a whole or none, and the next run does it all.
#[test]
fn a_restore_that_was_killed_is_simply_run_again() {
    let (home, secret) = backed_up();
    let folder = home.path();
    Connection::open(folder.join("data/unionhall.db"))
        .unwrap()
        .execute_batch(
            "WITH RECURSIVE n (i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
             INSERT INTO people (id, email, email_normalized, mailbox, code, state, created_at)
             SELECT i, i || '@x.example', i || '@x.example', i || '@x.example', printf('%012d', i), 'invited', 1 FROM n",
        )
        .unwrap();
    done(&run(folder, &["backup", "large"]));
    // Some were erased since.
    let marker = AddressMarker::new(&unionhall::domain::secret::Secret::new(&secret).unwrap());
    let (log, now) = (ErasureLog::at(&folder.join("log")), Clock::start().now().time.end_of_hour());
    for i in 1000..1020 {
        let mark = marker.marks(&EmailAddress::parse(&format!("{i}@x.example")).unwrap()).address;
        log.append(&mark, "id", now).unwrap();
    }
    let here_again = "SELECT count(*) FROM people WHERE erased_at IS NULL AND id BETWEEN 1000 AND 1019";
    let (database, mut interrupted) = (folder.join("new/unionhall.db"), 0);
    let stages = [
        "reading the backup", "checking the records", "preparing them to be served",
        "erasing again who was erased since",
    ];
    for (signal, stage, wait) in ["-KILL", "-TERM"]
        .iter()
        .flat_map(|signal| stages.iter().flat_map(move |stage| [0, 3, 20].map(|wait| (*signal, *stage, wait))))
    {
        let mut command = unionhall(folder);
        command.args(["restore", "large", "--data", "new", "--erasures", "log"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        lines.find(|line| line.as_ref().unwrap() == stage).unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        // It may have ended already.
        let _sent = Command::new("kill").args([signal, &process.id().to_string()]).stderr(Stdio::null()).status();
        let status = process.wait().unwrap();
        if status.success() || database.exists() {
            assert!(number(&database, "SELECT seq FROM sqlite_sequence WHERE name = 'sign_ups'") > 1_000_000);
            assert_eq!(number(&database, here_again), 0, "no records that are half done");
            holds(&done(&run(folder, &["keys", "list", "--data", "new"])), &["Acme Assistant"]);
            std::fs::remove_dir_all(folder.join("new")).unwrap();
            continue;
        }
        interrupted += 1;
        holds(&refusal(&run(folder, &["keys", "list", "--data", "new"])), &["there are no records"]);
        if signal == "-TERM" {
            // The folder was made for it, and may be gone with the rest.
            let left = if folder.join("new").exists() { names(&folder.join("new")) } else { Vec::new() };
            let left: Vec<_> = left.into_iter().filter(|name| name != "secret" && name != "erasures").collect();
            assert_eq!(left, Vec::<String>::new(), "it took its unfinished files away");
        }
    }
    assert!(interrupted >= 6, "{interrupted}");
    if !database.exists() {
        done(&run(folder, &["restore", "large", "--data", "new"]));
    }
    assert_eq!(names(&folder.join("new")), ["erasures", "secret", "unionhall.db"]);
    assert_eq!(number(&database, "SELECT count(*) FROM people WHERE erased_at IS NULL"), 39_001);
    assert_eq!(number(&database, here_again), 0);
}

/// The same backup may be restored twice, with a service in between that mailed links.
#[test]
fn no_id_comes_back_even_from_the_same_backup() {
    let (home, _) = backed_up();
    let folder = home.path();
    done(&run(folder, &["restore", "all", "--data", "one"]));
    let sequence = |data: &str, table: &str| {
        let sql = format!("SELECT seq FROM sqlite_sequence WHERE name = '{table}'");
        number(&folder.join(data).join("unionhall.db"), &sql)
    };
    let first = sequence("one", "sign_ups");
    // As many milliseconds as a lively service needs for some sign-ups.
    let clock = Clock::start();
    let begun = clock.now().time;
    block_on(wait_for!(async || clock.now().time.since(begun) > Duration::from_millis(50)));
    done(&run(folder, &["restore", "all", "--data", "two"]));
    for table in ["people", "sign_ups", "outbox", "source_days"] {
        assert!(sequence("two", table) >= sequence("one", table) + 50, "{table}");
        assert!(sequence("one", table) > 1_000_000, "{table}");
    }
    assert!(first > 1_000_020);
}

#[test]
fn erasures_are_found_in_the_folder_and_in_the_file_that_is_given() {
    let (home, secret) = backed_up();
    let folder = home.path();
    let marker = AddressMarker::new(&unionhall::domain::secret::Secret::new(&secret).unwrap());
    let mark = |text: &str| marker.marks(&EmailAddress::parse(text).unwrap()).address;
    let now = Clock::start().now().time;
    holds(
        &done(&run(folder, &["restore", "all", "--data", "none"])),
        &["NO LOG OF ERASURES WAS FOUND in none/erasures"],
    );

    std::fs::create_dir(folder.join("new")).unwrap();
    let given = ErasureLog::at(&folder.join("saved"));
    ErasureLog::beside(&folder.join("new")).append(&mark("user3@example.com"), "a", now).unwrap();
    given.append(&mark("user4@example.com"), "b", now).unwrap();
    given.append(&mark("user5@example.com"), "c", now.minus(Duration::from_secs(3600))).unwrap();
    let refused = given.append(&mark("user6@example.com"), "d", now).unwrap();
    given.take_back(&refused).unwrap();
    let told = done(&run(folder, &["restore", "all", "--data", "new", "--erasures", "saved"]));
    let erase: Vec<_> = told.lines().filter(|line| line.contains("members erase")).collect();
    let expected = [3, 4].map(|n| format!("  unionhall members erase --data new --waive-rewards user{n}@example.com"));
    assert_eq!(erase, expected, "{told}");
    let log = std::fs::read_to_string(folder.join("new/erasures")).unwrap();
    assert_eq!(log.lines().count(), 5, "{log}");

    std::fs::create_dir(folder.join("quiet")).unwrap();
    ErasureLog::beside(&folder.join("quiet")).append(&mark("nobody@example.com"), "e", now).unwrap();
    let told = done(&run(folder, &["restore", "all", "--data", "quiet"]));
    assert!(told.contains("Nobody in these records was erased since"), "{told}");

    // By a secret that replaced this one, and was lost in its turn.
    let (mark, other) = (mark("user7@example.com"), mark("user8@example.com"));
    given.append(&format!("~002~{mark}"), "f", now).unwrap();
    given.append(&format!("~002~{other}"), "g", now).unwrap();
    given.append(&format!("~003~{mark}"), "h", now.minus(Duration::from_secs(7200))).unwrap();
    let told = done(&run(folder, &["restore", "all", "--data", "later", "--erasures", "saved"]));
    holds(&told, &["THE LOG OF ERASURES NAMES 2 PEOPLE by generation 2 of the secret, which is not here"]);
    assert!(!told.contains("generation 3"), "{told}");

    let missing =
        "there is no log of erasures at not-there; give the right path, or leave out --erasures if no one was";
    for (file, expected) in [("not-there", missing), ("all.log", "is not a log of erasures")] {
        std::fs::write(folder.join("all.log"), "words that name nobody\n").unwrap();
        let told = refusal(&run(folder, &["restore", "all", "--data", "wrong", "--erasures", file]));
        assert!(told.contains(expected), "{told}");
        assert!(!folder.join("wrong").exists());
    }
}

/// Before, an operator had to erase them, and one who forgot had served them again as members.
#[test]
fn who_was_erased_since_is_erased_again_and_revoked_keys_stay_revoked() {
    let (home, _) = backed_up();
    let folder = home.path();
    let database = folder.join("data/unionhall.db");
    Connection::open(&database)
        .unwrap()
        .execute_batch("UPDATE people SET created_at = created_at - 7200000 WHERE email IN ('user0@example.com', 'user3@example.com')")
        .unwrap();
    for name in ["Leaky", "Gone"] {
        done(&run(folder, &["keys", "issue", name]));
    }
    let key = |partner: &str| -> String {
        let sql = "SELECT id FROM api_keys WHERE partner_id = (SELECT id FROM partners WHERE name = ?1)";
        Connection::open(&database).unwrap().query_row(sql, [partner], |row| row.get(0)).unwrap()
    };
    let (leaky, gone) = (key("Leaky"), key("Gone"));
    done(&run(folder, &["keys", "revoke", &gone]));
    done(&run(folder, &["backup", "night"]));
    for email in ["user0@example.com", "user3@example.com"] {
        done(&run(folder, &["members", "erase", email]));
    }
    done(&run(folder, &["keys", "revoke", &leaky]));
    let told = done(&run(folder, &["restore", "night", "--data", "new", "--erasures", "data/erasures"]));
    holds(
        &told,
        &[
            "in new/unionhall.db: 0 members.",
            "2 people were erased since, and were erased again.",
            &format!("These were revoked since, and were revoked again:\n    {leaky} of Leaky\n"),
        ],
    );
    assert!(!told.contains("members erase") && !told.contains("PERHAPS"), "{told}");
    let restored = folder.join("new/unionhall.db");
    let here = "SELECT count(*) FROM people WHERE email IN ('user0@example.com', 'user3@example.com')";
    assert_eq!(number(&restored, here), 0);
    assert_eq!(number(&restored, "SELECT member_count FROM installation"), 0);
    assert_eq!(number(&restored, "SELECT count(*) FROM api_keys WHERE revoked_at IS NULL"), 1);
    holds(&done(&run(folder, &["audit", "--data", "new"])), &["restore", &format!("key {leaky}")]);
    assert!(!std::fs::read_to_string(folder.join("data/erasures")).unwrap().contains('@'));

    // Without the log nobody knows, and it is said.
    let told = done(&run(folder, &["restore", "night", "--data", "blind"]));
    holds(&told, &["NO LOG OF ERASURES WAS FOUND", &format!("    {leaky} of Leaky\n")]);
    assert!(!told.contains("revoked again"), "{told}");
}

/// Who restores is often root, and the folder the service's.
#[test]
fn it_says_whose_the_files_must_be() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (home, _) = backed_up();
    let theirs: PathBuf = home.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(4242), Some(4243)).unwrap();
    for data in ["theirs", "theirs/new"] {
        let told = done(&run(home.path(), &["restore", "all", "--data", data]));
        assert!(told.contains("\nThe files belong to user 4242, as their folder does.\n"), "{told}");
    }
    for entry in walk(&theirs) {
        let found = std::fs::metadata(&entry).unwrap();
        assert_eq!((found.uid(), found.gid()), (4242, 4243), "{}", entry.display());
    }
    assert!(done(&run(home.path(), &["restore", "all", "--data", "roots"])).contains("\n  chown -R USER: roots\n"));
    std::fs::create_dir(home.path().join("open")).unwrap();
    std::fs::set_permissions(home.path().join("open"), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(done(&run(home.path(), &["restore", "all", "--data", "open"])).contains("\n  chmod 700 open\n"));
}
