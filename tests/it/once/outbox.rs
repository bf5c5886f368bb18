//! The worker's steps, called one by one, with transports that fail on purpose and times that are passed in.

use crate::prelude::*;
use tokio::sync::Notify;
use unionhall::cli::remedy;
use unionhall::config::UnionSettings;
use unionhall::domain::answers::Answers;
use unionhall::domain::api_key::Mode;
use unionhall::domain::health::MailState;
use unionhall::domain::mail::budget::MailBudget;
use unionhall::domain::mail::lane::Lane;
use unionhall::domain::mail::{MAIL_LEASE, MailId, MailOutcome, WaitingMail};
use unionhall::domain::referral::CodeMaker;
use unionhall::domain::secret::{Generation, Generations};
use unionhall::domain::sign_up::{NamedPerson, Partner};
use unionhall::keys::records::FindKey;
use unionhall::keys::{Keys, NewKey};
use unionhall::lease_queue::{self, LeaseQueue};
use unionhall::log::{Format, Level, Log};
use unionhall::mail::compose::Composer;
use unionhall::mail::outbox::{ListMail, RetryFailed, RetryMail};
use unionhall::mail::worker::{MailAlarms, Outbox};
use unionhall::mail::{Delivery, MailNotifier, OutgoingMail, SendError, Transport};
use unionhall::store::sqlite::SqliteStore;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Keeps what it is given, or fails as it is told to.
#[derive(Debug, Default)]
struct Faulty {
    fault: Mutex<Option<SendError>>,
    taken: Mutex<Vec<String>>,
    /// Mail to names that begin so is answered once it is let go.
    holds: Mutex<Option<&'static str>>,
    let_go: Notify,
    /// Addresses at this domain are refused for now, and how often that was.
    refuses: Mutex<Option<&'static str>>,
    refused: AtomicUsize,
}

impl Transport for Faulty {
    fn send(&self, mail: OutgoingMail) -> Reply<'_, Result<(), SendError>> {
        if let Some(fault) = self.fault.lock().unwrap().clone() {
            return Reply::now(Err(fault));
        }
        if self.refuses.lock().unwrap().is_some_and(|domain| mail.readable.to.ends_with(domain)) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Reply::now(Err(SendError::Later("it answered 450 to RCPT".to_owned())));
        }
        let message = String::from_utf8(mail.message.formatted()).unwrap();
        self.taken.lock().unwrap().push(message);
        if !self.holds.lock().unwrap().is_some_and(|name| mail.readable.to.starts_with(name)) {
            return Reply::now(Ok(()));
        }
        Reply::later(async {
            self.let_go.notified().await;
            Ok(())
        })
    }

    fn try_out(&self) -> Reply<'_, Result<(), String>> {
        Reply::now(self.fault.lock().unwrap().as_ref().map_or(Ok(()), |fault| Err(format!("{fault:?}"))))
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Room {
    store: OpenStore,
    records: Records,
    transport: Arc<Faulty>,
    lines: Lines,
    log: Log,
}

/// The same on every store, each with a new room.
fn on_each_store(walk: impl AsyncFn(&Room)) {
    block_on(async {
        let folder = tempfile::tempdir().unwrap();
        walk(&Room::on_sqlite(folder.path())).await;
        let database = Database::migrated().await;
        let records = Records::Postgres { store: database.url(), limits: String::new() };
        let store = OpenStore::new(PostgresStore::open(database.address(), Prepare::Upgrade, 256).await.unwrap());
        let room = Room::with(store, records);
        walk(&room).await;
        room.store.close().await.unwrap();
    });
}

#[derive(Debug, Default, PartialEq, Eq)]
struct OutboxStep {
    sent: usize,
    given_up: usize,
    /// How many were tried in all; none means that nothing is due.
    tried: usize,
}

struct Worker(Arc<Outbox>, tokio::sync::Mutex<MailAlarms>);

impl Worker {
    async fn step(&self, now: Timestamp) -> Result<OutboxStep, StoreError> {
        let mut step = OutboxStep::default();
        for (_, outcome) in lease_queue::step(&self.0, &mut *self.1.lock().await, now).await?.into_iter().flatten() {
            step.tried += 1;
            step.sent += usize::from(outcome == MailOutcome::Sent);
            step.given_up += usize::from(matches!(outcome, MailOutcome::GivenUp { .. }));
        }
        Ok(step)
    }
}

impl Room {
    fn on_sqlite(folder: &Path) -> Self {
        let store = OpenStore::new(SqliteStore::open(&folder.join("unionhall.db")).unwrap());
        Self::with(store, Records::Sqlite { data: folder.to_owned() })
    }

    fn with(store: OpenStore, records: Records) -> Self {
        let lines = Lines::default();
        let log = Log::start(Level::Errors, Format::Text, Clock::start(), remedy::write, lines.clone()).unwrap();
        Self { store, records, transport: Arc::default(), log, lines }
    }

    fn worker(&self, name: &str) -> Worker {
        self.worker_with(name, &secret())
    }

    fn worker_with(&self, name: &str, secret: &Secret) -> Worker {
        let outbox = Outbox {
            lease_campaign_mail: unionhall::campaigns::outbox::lease,
            store: Store::clone(&self.store),
            transport: Arc::clone(&self.transport) as Arc<dyn Transport>,
            composer: Composer {
                union: Arc::new(UnionSettings::sample()),
                catalog: tokio::sync::watch::channel(UnionSettings::sample().catalog).1,
                from: "Consumer Union <hello@union.example>".parse().unwrap(),
                tokens: TokenMaker::new(secret),
                bounces: None,
            },
            notifier: Arc::new(MailNotifier::default()),
            log: self.log.clone(),
            budget: Some(MailBudget::NONE),
            name: name.to_owned(),
            renew_every: Duration::from_millis(20),
        };
        Worker(Arc::new(outbox), Default::default())
    }

    async fn sign_up(&self, address: &str) {
        self.sign_up_for(address, None, NOW).await;
    }

    /// A partner whose sign-ups can be repeated.
    async fn partner(&self) -> Partner {
        let (key, now) = (ApiKey::from_random(&[1; ApiKey::ENTROPY]), Clock::start().now().time);
        let new = NewKey { partner: "Acme".parse().unwrap(), per_minute: None, expires_at: None };
        Keys::new(Store::clone(&self.store), Mode::Live).issue(&key, new, now).await.unwrap();
        let record = self.store.run(FindKey(key.id())).await.unwrap().unwrap();
        Partner { key: record.id, id: record.partner_id, name: record.partner }
    }

    async fn sign_up_for(&self, address: &str, partner: Option<Partner>, now: Timestamp) {
        let email = EmailAddress::parse(address).unwrap();
        let person =
            NamedPerson { code: CodeMaker::new(&secret()).code(&email, 0), tombstone: super::tombstone(&email), email };
        let new = NewSignUp {
            person,
            answers: Answers::default(),
            ref_code: None,
            partner,
            lane: Lane::of(address.as_bytes()),
            proven: false,
            disposable: false,
            language: None,
            request: None,
            evidence: super::evidence(),
        };
        self.store.sign_up(new, now).await.unwrap();
    }

    fn fail(&self, fault: Option<SendError>) {
        *self.transport.fault.lock().unwrap() = fault;
    }
}

fn secret() -> Secret {
    Secret::new(&"s".repeat(32)).unwrap()
}

fn away() -> Option<SendError> {
    Some(SendError::Later("the server is away".to_owned()))
}

#[test]
fn a_mail_is_tried_for_a_day_then_given_up_and_said_so() {
    needs!(Postgres);
    on_each_store(async |room| {
        room.sign_up("ana@example.com").await;
        let worker = room.worker("w");
        room.fail(away());
        let mut tries = 0;
        let mut given_up_after = None;
        for minute in 0..60 * 30 {
            let step = worker.step(NOW.plus(Duration::from_secs(60 * minute))).await.unwrap();
            tries += step.tried;
            if step.given_up > 0 {
                given_up_after = Some(minute / 60);
                break;
            }
        }
        assert_eq!(given_up_after, Some(24));
        assert!((20..60).contains(&tries), "it backs off: {tries}");
        room.fail(None);
        let later = NOW.plus(Duration::from_secs(48 * 3600));
        assert_eq!(worker.step(later).await.unwrap(), OutboxStep::default(), "and is left alone");
        let waiting = room.store.run(ListMail).await.unwrap();
        room.store.run(RetryMail(waiting[0].id, later)).await.unwrap();
        assert_eq!(worker.step(later).await.unwrap().sent, 1, "until the operator says otherwise");
        room.log.close();
        let said = String::from_utf8(room.lines.0.lock().unwrap().clone()).unwrap();
        assert!(
            said.contains("mail 1 was given up after a day: the server is away; `unionhall mail retry 1`"),
            "{said}"
        );
        assert!(!said.contains("ana@"));
    });
}

/// 50 mails waited six minutes more, each for its own next try.
#[test]
fn after_an_hours_outage_all_mail_goes_within_two_minutes_and_not_at_once() {
    needs!(Postgres);
    on_each_store(async |room| {
        for n in 0..50 {
            room.sign_up(&format!("user{n}@example.com")).await;
        }
        let at = |second| NOW.plus(Duration::from_secs(second));
        let worker = room.worker("w");
        room.fail(away());
        for second in (0..3600).step_by(15) {
            while worker.step(at(second)).await.unwrap().tried > 0 {}
        }
        let next = room.store.run(ListMail).await.unwrap().into_iter().map(|mail| mail.send_after).max().unwrap();
        assert!(next > at(3600 + 600), "they wait for long by now");

        room.fail(None);
        let mut sent = Vec::new();
        for second in 3600..3600 + 125 {
            let mut now = 0;
            loop {
                let step = worker.step(at(second)).await.unwrap();
                now += step.sent;
                if step.tried == 0 {
                    break;
                }
            }
            sent.push(now);
        }
        assert_eq!(sent.iter().sum::<usize>(), 50, "{sent:?}");
        assert!(sent.iter().all(|sent| *sent <= 3), "spread over a minute: {sent:?}");
    });
}

/// Each success among the refusals woke all that waited, and everything was tried every minute.
#[test]
fn a_relay_that_refuses_some_mail_is_not_asked_more_often_while_other_mail_goes() {
    needs!(Postgres);
    on_each_store(async |room| {
        const REFUSED: usize = 20;
        *room.transport.refuses.lock().unwrap() = Some("@busy.example");
        for n in 0..REFUSED {
            room.sign_up(&format!("user{n}@busy.example")).await;
        }
        let worker = room.worker("w");
        for minute in 0..180 {
            let now = NOW.plus(Duration::from_secs(60 * minute));
            room.sign_up_for(&format!("good{minute}@example.com"), None, now).await;
            while worker.step(now).await.unwrap().tried > 0 {}
        }
        assert_eq!(room.transport.taken.lock().unwrap().len(), 180);
        let tries = room.transport.refused.load(Ordering::Relaxed) / REFUSED;
        assert!((5..=20).contains(&tries), "each backs off: {tries}");
    });
}

/// Whoever mends a setting starts the service again: nothing tells it that there was an outage.
/// It was `failing` for ever: only a mail that went changed that, and none waited.
#[test]
fn an_outage_ends_with_an_empty_outbox_and_a_store_that_is_away_is_no_outage() {
    on_each_store(async |room| {
        let worker = room.worker("w");
        let state = || Delivery::Sent(Arc::clone(&worker.0.notifier)).state();
        room.sign_up("ana@example.com").await;
        room.fail(away());
        worker.step(NOW).await.unwrap();
        assert_eq!(state(), MailState::Failing);
        room.records.execute("DELETE FROM outbox");
        for minute in 1..10 {
            worker.step(NOW.plus(Duration::from_secs(60 * minute))).await.unwrap();
            assert_eq!(state(), MailState::Failing, "it lets nobody in");
        }
        room.fail(None);
        worker.step(NOW.plus(Duration::from_secs(600))).await.unwrap();
        assert_eq!(state(), MailState::Sent);

        // One mail alone that the server refuses says that mail fails, whether the server lets us in or not.
        let later = NOW.plus(Duration::from_secs(700));
        *room.transport.refuses.lock().unwrap() = Some("example.net");
        room.sign_up_for("ben@example.net", None, later).await;
        for second in [0, 1, 30, 90] {
            worker.step(later.plus(Duration::from_secs(second))).await.unwrap();
            assert_eq!(state(), MailState::Failing, "after {second} s");
        }
        room.records.execute("DELETE FROM outbox");
        worker.step(later.plus(Duration::from_secs(120))).await.unwrap();
        assert_eq!(state(), MailState::Sent);

        let error = StoreError::Unavailable("the database is restarting".to_owned());
        worker.0.account(&mut *worker.1.lock().await, &Err(error), later);
        assert_eq!(state(), MailState::Sent, "that is the store's fault");
    });
}

#[test]
fn the_first_mail_after_a_start_wakes_what_waited() {
    needs!(Postgres);
    on_each_store(async |room| {
        for n in 0..3 {
            room.sign_up(&format!("user{n}@example.com")).await;
        }
        let at = |second| NOW.plus(Duration::from_secs(second));
        room.fail(away());
        let before = room.worker("w");
        for second in (0..3600).step_by(60) {
            while before.step(at(second)).await.unwrap().tried > 0 {}
        }
        room.fail(None);
        let after = room.worker("w");
        room.sign_up_for("new@example.com", None, at(3601)).await;
        let mut sent = 0;
        for second in 3601..3601 + 125 {
            sent += after.step(at(second)).await.unwrap().sent;
        }
        assert_eq!(sent, 4);
    });
}

#[test]
fn the_operator_has_failed_mail_tried_again_all_of_it_or_one_domains() {
    needs!(Postgres);
    on_each_store(async |room| {
        for n in 0..4 {
            room.sign_up(&format!("user{n}@Example.com")).await;
            room.sign_up(&format!("user{n}@not-example.com")).await;
        }
        room.fail(away());
        let (worker, day) = (room.worker("w"), Duration::from_secs(86_400));
        while worker.step(NOW).await.unwrap().tried > 0 {}
        let id = |n: usize, mails: &[WaitingMail]| mails[n].id;
        let mails = room.store.run(ListMail).await.unwrap();
        // One is given up, one is held, one waits without having failed.
        let later = NOW.plus(day + Duration::from_secs(60));
        while worker.step(later).await.unwrap().tried > 0 {}
        assert!(room.store.run(ListMail).await.unwrap().iter().all(|mail| mail.given_up_at.is_some()));
        room.sign_up_for("fresh@example.com", None, later).await;
        let retry = async |domain: Option<&str>| {
            room.store
                .run(RetryFailed { after: MailId(0), domain: domain.map(str::to_owned), now: later })
                .await
                .unwrap()
                .count
        };
        assert_eq!(retry(Some("example.org")).await, 0);
        assert_eq!(retry(Some("_xample.com")).await, 0, "no pattern");
        assert_eq!(retry(Some("EXAMPLE.com")).await, 4);
        let now = room.store.run(ListMail).await.unwrap();
        let waits =
            |mail: &WaitingMail| mail.given_up_at.is_none() && mail.send_after < later.plus(Duration::from_secs(60));
        assert_eq!(now.iter().filter(|mail| waits(mail)).count(), 5, "and the fresh one");
        assert!(waits(&now[0]) && !waits(&now[1]), "{:?}", id(0, &mails));
        assert_eq!(retry(None).await, 8);
        room.fail(None);
        let mut sent = 0;
        for second in 0..70 {
            sent += worker.step(later.plus(Duration::from_secs(second))).await.unwrap().sent;
        }
        assert_eq!(sent, 9);
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_that_is_sent_again_is_the_same_mail() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [one, two] = folders.each_ref().map(|folder| Room::on_sqlite(folder.path()));
    let room = one;
    room.sign_up("ana@example.com").await;
    let worker = room.worker("w");
    assert_eq!(worker.step(NOW).await.unwrap().sent, 1);
    let first = room.transport.taken.lock().unwrap()[0].clone();
    // As after a crash between the sending and the writing down: another room with the same beginnings.
    let again = two;
    again.sign_up("ana@example.com").await;
    again.fail(away());
    assert_eq!(again.worker("w").step(NOW).await.unwrap().tried, 1);
    again.fail(None);
    let later = NOW.plus(Duration::from_secs(60));
    assert_eq!(again.worker("w").step(later).await.unwrap().sent, 1);
    assert_eq!(again.transport.taken.lock().unwrap()[0], first, "to the byte, its message id included");
}

/// An answer after 28 seconds had four copies sent within half an hour.
#[test]
fn a_mail_whose_server_takes_its_time_is_sent_once() {
    needs!(Postgres);
    on_each_store(async |room| {
        room.sign_up("ana@example.com").await;
        *room.transport.holds.lock().unwrap() = Some("ana");
        let (slow, other) = (room.worker("slow"), room.worker("w"));
        let sending = tokio::spawn(async move { slow.step(NOW).await });
        // Without renewal the lease would have ended by then.
        let later = NOW.plus(MAIL_LEASE);
        let renewed = || room.records.number("SELECT max(leased_until) FROM outbox") > later.as_millis();
        wait_for!(async || renewed()).await;
        assert_eq!(other.step(later).await.unwrap(), OutboxStep::default());
        room.transport.let_go.notify_one();
        assert_eq!(in_time("the mail to be sent", sending).await.unwrap().unwrap().sent, 1);
        assert_eq!(other.step(later.plus(MAIL_LEASE)).await.unwrap(), OutboxStep::default());
        assert_eq!(room.transport.taken.lock().unwrap().len(), 1);
    });
}

#[test]
fn several_workers_never_send_the_same_mail() {
    needs!(Postgres);
    on_each_store(async |room| {
        for n in 0..100 {
            room.sign_up(&format!("user{n}@example.com")).await;
        }
        let mut workers = tokio::task::JoinSet::new();
        for n in 0..4 {
            let worker = room.worker(&format!("w{n}"));
            workers.spawn(async move { while worker.step(NOW).await.unwrap().tried > 0 {} });
        }
        workers.join_all().await;
        let mut counts: HashMap<String, usize> = HashMap::new();
        for message in room.transport.taken.lock().unwrap().iter() {
            let to = message.lines().find_map(|line| line.strip_prefix("To: ")).unwrap();
            *counts.entry(to.to_owned()).or_default() += 1;
        }
        assert_eq!(counts.len(), 100);
        assert!(counts.values().all(|count| *count == 1));
    });
}

#[test]
fn lines_are_short_and_plain_whatever_the_address() {
    needs!(Postgres);
    on_each_store(async |room| {
        for email in [
            "ana@example.com",
            "jürgen@bücher.example",
            "!#$%&'*+-/=?^_`{|}~@example.com",
            &format!("{}@{}example.com", "x".repeat(64), "abc.".repeat(61)),
        ] {
            room.sign_up(email).await;
        }
        assert_eq!(room.worker("w").step(NOW).await.unwrap().sent, 4);
        for message in room.transport.taken.lock().unwrap().iter() {
            assert!(message.split("\r\n").all(|line| line.len() <= 998 && !line.contains(['\r', '\n'])), "RFC 5322");
            let (head, _) = message.split_once("\r\n\r\n").unwrap();
            assert_eq!(head.matches("\r\nTo: ").count() + usize::from(head.starts_with("To: ")), 1);
            assert_eq!(head.to_ascii_lowercase().matches("bcc").count(), 0);
        }
    });
}

/// Asked five times while the relay refused, a person waited 24 hours for a mail that never was; one that hung had it given up.
#[test]
fn a_relay_that_is_away_for_hours_costs_nobody_a_mail_and_sends_none_twice() {
    needs!(Postgres);
    for fault in ["it answered 451 to RCPT", "no answer to its greeting in time", "the connection broke, at EHLO"] {
        on_each_store(async |room| {
            let (worker, partner) = (room.worker("w"), room.partner().await);
            room.sign_up("ben@example.com").await;
            room.fail(Some(SendError::Later(fault.to_owned())));
            let mut given_up = 0;
            for minute in (0..5 * 60).step_by(5) {
                let now = NOW.plus(Duration::from_secs(60 * minute));
                if minute % 60 == 0 {
                    room.sign_up_for("ana@example.com", Some(partner.clone()), now).await;
                }
                given_up += worker.step(now).await.unwrap().given_up;
            }
            room.fail(None);
            let mut waited = None;
            for minute in (5 * 60..7 * 60).step_by(5) {
                let sent = worker.step(NOW.plus(Duration::from_secs(60 * minute))).await.unwrap().sent;
                waited = waited.or((sent > 0).then_some(minute - 5 * 60));
            }
            let sent: Vec<_> = room.transport.taken.lock().unwrap().clone();
            let to = |whom: &str| sent.iter().filter(|mail| mail.contains(&format!("To: {whom}@"))).count();
            assert_eq!((to("ana"), to("ben"), given_up), (1, 1, 0), "{fault}: one copy each, none given up");
            assert!(waited.is_some_and(|minutes| minutes <= 75), "{fault}: {waited:?}");
            assert!(room.store.run(ListMail).await.unwrap().is_empty());
        });
    }
}

/// One whose server thinks about it for long holds up nobody else, in whatever order they were asked for.
#[test]
fn a_slow_recipient_holds_up_nobody_else() {
    needs!(Postgres);
    on_each_store(async |room| {
        let clock = Clock::start();
        for n in 0..40 {
            room.sign_up_for(&format!("user{n}@example.com"), None, clock.now().time).await;
        }
        *room.transport.holds.lock().unwrap() = Some("user7@");
        let (stop, stops) = tokio::sync::watch::channel(false);
        let worker = tokio::spawn(lease_queue::run(room.worker("w").0, clock, stops));
        wait_for!(async || room.transport.taken.lock().unwrap().len() == 40).await;
        wait_for!(async || room.store.run(ListMail).await.unwrap().len() == 1).await;
        room.transport.let_go.notify_one();
        wait_for!(async || room.store.run(ListMail).await.unwrap().is_empty()).await;
        stop.send(true).unwrap();
        in_time("the worker's end", worker).await.unwrap();
        assert_eq!(room.transport.taken.lock().unwrap().len(), 40, "each once");
    });
}

#[test]
fn a_node_that_lacks_the_successor_of_a_leaked_secret_mails_nothing_until_it_has_it() {
    needs!(Postgres);
    on_each_store(async |room| {
        let secret = secret();
        let worker = room.worker_with("one", &secret);
        room.sign_up("ana@example.com").await;
        let at = |minutes: u64| NOW.plus(Duration::from_secs(60 * minutes));
        let leaked = (*secret.generations()).clone();
        secret.replace(leaked.clone().replaced());
        for minutes in 0..3 {
            assert_eq!(worker.step(at(minutes)).await.unwrap(), OutboxStep::default(), "its links are dead");
        }
        let mut successor = Generation::new(2, &"t".repeat(32)).unwrap();
        successor.begins_at = Some(NOW);
        let list = leaked.all().iter().cloned().chain([successor]).collect();
        secret.replace(Generations::new(leaked.carried().clone(), list, at(3)).unwrap());
        assert_eq!(worker.step(at(3)).await.unwrap().sent, 1);
        let mail = room.transport.taken.lock().unwrap().pop().unwrap();
        let link = crate::mail::link(&mail, "/confirm/");
        let token = link.rsplit_once('/').unwrap().1;
        let is_of = |secret: &Secret| TokenMaker::new(secret).read(Purpose::Confirm, token).is_some();
        assert!(is_of(&secret) && !is_of(&self::secret()), "{link}");
    });
}
