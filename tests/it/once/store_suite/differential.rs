//! One history, done in four ways: by the unit, one request after the other, on SQLite and on PostgreSQL, and many at once, which
//! share commits on both and on PostgreSQL go through the statements of a batch. Every answer and every row is the same.

use super::partners::name;
use super::*;

/// Histories of a run, and turns of each.
const CASES: u64 = 3;
const TURNS: usize = 40;

/// The tables that sign-ups and confirmations read or change.
const TABLES: [&str; 11] = [
    "people", "sign_ups", "outbox", "mailboxes", "idempotency_keys", "partner_events", "webhook_deliveries",
    "source_days", "installation", "member_changes", "requalifications",
];

/// People: of each two, the second is another spelling of the mailbox.
const PEOPLE: usize = 16;

/// What a column is compared as. Ids differ between the ways, so each stands for what it leads to; none for what is not compared.
fn compared(table: &str, column: &str) -> Option<String> {
    let found = |what: &str, of: &str| Some(format!("(SELECT {what} FROM {of} x WHERE x.id = t.{column})"));
    match (table, column) {
        (_, "id") | ("partner_events", "position") | ("installation", "secret_fingerprint") => None,
        (_, "person_id" | "referrer_id") => found("x.email_normalized", "people"),
        (_, "sign_up_id") => found("x.created_at", "sign_ups"),
        (_, "event_id") => found("x.idempotency_key || x.kind || x.at", "partner_events"),
        (_, "last_mail_id") => Some(format!("t.{column} IS NULL")),
        _ => Some(format!("t.{column}")),
    }
}

/// One question for every row of the tables.
fn everything(columns: impl Fn(&str) -> Vec<String>) -> String {
    let table = |table: &&str| {
        let columns = columns(table).into_iter().filter_map(|column| compared(table, &column));
        let texts = columns.map(|column| format!("coalesce(CAST({column} AS TEXT), '-')"));
        format!("SELECT '{table}|' || {} FROM {table} t", texts.collect::<Vec<_>>().join(" || '|' || "))
    };
    TABLES.iter().map(table).collect::<Vec<_>>().join(" UNION ALL ")
}

/// A store, and whether requests reach it at once.
struct Way {
    name: &'static str,
    fixture: Fixture,
    at_once: bool,
    /// With the key of nobody's: the form.
    partners: [Option<Partner>; 3],
}

impl Way {
    async fn new(name: &'static str, fixture: Fixture, at_once: bool) -> Self {
        let other = issue(&fixture.store, key(2, "Other")).await;
        fixture.endpoint("Acme").await;
        let partners = [None, Some(fixture.partner.clone()), Some(other)];
        Self { name, fixture, at_once, partners }
    }

    /// Every row of every table, as text, in no order of the tables'.
    fn rows(&self, query: &str) -> Vec<String> {
        let rows = self.fixture.records.rows(query).into_iter().flatten();
        // Both engines' words for truth.
        let mut rows: Vec<_> = rows.map(|row| row.replace("|true", "|1").replace("|false", "|0")).collect();
        rows.sort_unstable();
        rows
    }

    fn sign_up_at(&self, created_at: Timestamp) -> SignUpRef {
        let id = self.fixture.records.number(&format!(
            "SELECT coalesce(max(id), 999999) FROM sign_ups WHERE created_at = {}",
            created_at.as_millis()
        ));
        linked_at(id, created_at)
    }

    fn new_sign_up(&self, asked: &Asked) -> NewSignUp {
        let address = address(asked.who);
        let mut person = self.fixture.person(&address);
        if let Some(other) = asked.code_of {
            person.code = self.fixture.person(&self::address(other)).code;
        }
        let partner = self.partners[asked.partner].clone();
        NewSignUp {
            request: asked.name.as_ref().filter(|_| partner.is_some()).map(|(key, input)| name(key, input)),
            ref_code: asked.referrer.map(|other| self.fixture.person(&self::address(other)).code),
            answers: asked.answers.clone(),
            disposable: asked.disposable,
            proven: asked.proven,
            language: asked.language,
            lane: Lane::of(b"all"),
            partner,
            person,
            ..self.fixture.new_sign_up(&address)
        }
    }

    /// Does a turn, and says what each of its requests was answered.
    async fn take(&self, turn: &Turn) -> Vec<String> {
        let store = &self.fixture.store;
        match turn {
            Turn::SignUps(asked) => {
                let asked = asked.iter().map(|asked| store.sign_up(self.new_sign_up(asked), asked.at));
                self.answers(asked).await
            }
            Turn::Confirmations(clicks) => {
                let links: Vec<_> = clicks.iter().map(|click| self.sign_up_at(click.created_at)).collect();
                let asked = clicks.iter().zip(links).map(|(click, link)| {
                    let seen = SeenPage { answers: click.seen, notice: None, language: click.language };
                    store.confirm(link, seen, click.at)
                });
                self.answers(asked).await
            }
            Turn::Decline(created_at, silence, now) => {
                let change = SilenceChange::between(Silence::default(), *silence);
                let how = DecidedHow::Button;
                vec![format!(
                    "{:?}",
                    store
                        .run(Decline { sign_up: self.sign_up_at(*created_at), how, silence: Some(change), now: *now })
                        .await
                )]
            }
            Turn::Leave(who, now) => {
                let address = address(*who);
                vec![format!("{:?}", store.run(leaving(&address, *now)).await)]
            }
            Turn::Erase(who, now) => {
                let address = address(*who);
                let erased = store.run(erasing(&address, None, *now)).await;
                vec![format!("{}", erased.unwrap().is_some())]
            }
            Turn::Pause(paused) => vec![format!("{:?}", store.run(PauseSignUps(*paused)).await)],
            Turn::Mail(now) => {
                let mut to = self.fixture.send_due(*now).await;
                to.sort_unstable();
                to
            }
            Turn::Expire(now) => {
                while !store.run(Retain { times: TIMES, now: *now }).await.unwrap().is_nothing() {}
                Vec::new()
            }
        }
    }

    async fn answers<T: std::fmt::Debug>(&self, asked: impl Iterator<Item = impl Future<Output = T>>) -> Vec<String> {
        let mut answers = Vec::new();
        if self.at_once {
            answers.extend(together(asked).await.iter().map(|answer| format!("{answer:?}")));
        } else {
            for asked in asked {
                answers.push(format!("{:?}", asked.await));
            }
        }
        answers
    }
}

fn address(who: usize) -> String {
    format!("p{}{}@example.com", who / 2, if who.is_multiple_of(2) { "" } else { "+x" })
}

#[derive(Debug)]
struct Asked {
    who: usize,
    partner: usize,
    answers: Answers,
    referrer: Option<usize>,
    /// Whose code is offered for somebody who is new, if not their own.
    code_of: Option<usize>,
    /// An idempotency key, and what was asked with it.
    name: Option<(String, String)>,
    disposable: bool,
    proven: bool,
    language: Option<Language>,
    at: Timestamp,
}

#[derive(Debug)]
struct Click {
    /// By which every way knows the sign-up.
    created_at: Timestamp,
    seen: Option<Timestamp>,
    language: Option<Language>,
    at: Timestamp,
}

#[derive(Debug)]
enum Turn {
    SignUps(Vec<Asked>),
    Confirmations(Vec<Click>),
    Decline(Timestamp, Silence, Timestamp),
    Leave(usize, Timestamp),
    Erase(usize, Timestamp),
    Pause(bool),
    Mail(Timestamp),
    Expire(Timestamp),
}

/// Makes up a history as it goes.
struct Author {
    random: u64,
    now: Timestamp,
    is_paused: bool,
    /// What was asked for so far: when, and by whom.
    asked: Vec<(Timestamp, usize)>,
    /// Who is surely known: those who asked with a code of their own, and were not erased since.
    known: HashSet<usize>,
    /// The mailboxes of people, and of those who referred them.
    referred: HashSet<(usize, usize)>,
    named: u32,
    /// Names that were used in this turn: at once nobody knows who uses one first.
    names: HashSet<String>,
}

impl Author {
    fn pick(&mut self, most: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % most
    }

    fn one_in(&mut self, most: usize) -> bool {
        self.pick(most) == 0
    }

    /// A moment that no other request has.
    fn moment(&mut self) -> Timestamp {
        self.now = self.now.plus(Duration::from_millis(1));
        self.now
    }

    fn language(&mut self) -> Option<Language> {
        [None, Some(Language::English), Some(Language::Spanish)][self.pick(3)]
    }

    /// What comes at once is about other mailboxes each: what comes of the first of a mailbox decides about the next.
    fn mailboxes(&mut self) -> Vec<usize> {
        let mut all: Vec<_> = (0..PEOPLE / 2).collect();
        let most = 1 + self.pick(all.len());
        for place in 0..most {
            let other = place + self.pick(all.len() - place);
            all.swap(place, other);
        }
        all.truncate(most);
        all
    }

    fn turn(&mut self) -> Turn {
        let shortly = [0, 1, 700, 3 * 3600, 26 * 3600][self.pick(5)];
        self.now = self.now.plus(Duration::from_secs(shortly));
        if std::mem::take(&mut self.is_paused) {
            return Turn::Pause(false);
        }
        match self.pick(20) {
            0..=8 => {
                self.names.clear();
                let mailboxes = self.mailboxes();
                // Codes of people who are known before: at once nobody knows whose comes first.
                let asked = self.asked.iter().map(|(_, who)| *who);
                let others =
                    asked.filter(|who| self.known.contains(who) || !mailboxes.contains(&(who / 2))).collect::<Vec<_>>();
                let all: Vec<_> = mailboxes.into_iter().map(|mailbox| self.sign_up(mailbox, &others)).collect();
                self.known.extend(all.iter().filter(|asked| asked.code_of.is_none()).map(|asked| asked.who));
                Turn::SignUps(all)
            }
            9..=13 => {
                let (mut clicks, mut mailboxes) = (Vec::new(), Vec::new());
                for mailbox in self.mailboxes() {
                    // Nor do those come at once of whom one referred the other.
                    let are_apart = |other: &usize| {
                        ![(mailbox, *other), (*other, mailbox)].iter().any(|pair| self.referred.contains(pair))
                    };
                    if !mailboxes.iter().all(are_apart) {
                        continue;
                    }
                    mailboxes.push(mailbox);
                    let theirs: Vec<_> = self.asked.iter().filter(|(_, who)| who / 2 == mailbox).copied().collect();
                    if let Some(newest) = theirs.len().checked_sub(1) {
                        // Mostly one of the newest.
                        let created_at = theirs[newest - self.pick(3).min(newest)].0;
                        let seen = [None, None, Some(created_at), Some(NOW)][self.pick(4)];
                        let (language, at) = (self.language(), self.moment());
                        clicks.push(Click { created_at, seen, language, at });
                    }
                }
                Turn::Confirmations(clicks)
            }
            14 if !self.asked.is_empty() => {
                let place = self.pick(self.asked.len());
                let created_at = self.asked[place].0;
                let silence = Silence { again: self.one_in(3), partner: self.one_in(3), mailbox: self.one_in(3) };
                Turn::Decline(created_at, silence, self.moment())
            }
            15 => Turn::Leave(self.pick(PEOPLE), self.moment()),
            16 => {
                let who = self.pick(PEOPLE);
                self.known.remove(&who);
                Turn::Erase(who, self.moment())
            }
            17 => {
                self.is_paused = true;
                Turn::Pause(true)
            }
            18 => {
                self.now = self.now.plus(PENDING_FOR);
                Turn::Expire(self.moment())
            }
            _ => Turn::Mail(self.moment()),
        }
    }

    fn sign_up(&mut self, mailbox: usize, others: &[usize]) -> Asked {
        let who = mailbox * 2 + usize::from(self.one_in(3));
        let at = self.moment();
        self.asked.push((at, who));
        let sets = [None, Some(""), Some("travel"), Some("internet,groceries")];
        let answers = answers(
            [None, Some(UsState::CA), Some(UsState::NY)][self.pick(3)],
            sets[self.pick(4)].map(CategorySet::from_slugs),
            [None, None, Some(""), Some("one")][self.pick(4)],
        );
        let other = |this: &mut Self| others.get(this.pick(others.len().max(1))).copied();
        let referrer = if self.one_in(2) { other(self) } else { None };
        self.referred.extend(referrer.map(|other| (mailbox, other / 2)));
        let code_of = if self.one_in(8) { other(self) } else { None };
        // Old names come again, for the same and for another input.
        let name = match self.pick(4) {
            0 => {
                self.named += 1;
                Some((format!("name{}", self.named), address(who)))
            }
            1 if self.named > 0 => {
                let old = 1 + self.pick(self.named as usize);
                Some((format!("name{old}"), address(who)))
            }
            _ => None,
        };
        let name = name.filter(|(name, _)| self.names.insert(name.clone()));
        Asked {
            who,
            partner: self.pick(3),
            answers,
            referrer,
            code_of,
            name,
            disposable: self.one_in(6),
            proven: self.one_in(6),
            language: self.language(),
            at,
        }
    }
}

#[test]
fn one_by_one_and_many_at_once_are_answered_and_kept_the_same() {
    needs!(Postgres);
    let cases = std::env::var("UNIONHALL_TEST_CASES").map_or(CASES, |cases| cases.parse().unwrap());
    for case in 0..cases {
        block_on(Box::pin(compare(case)));
    }
}

async fn compare(case: u64) {
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let databases = [Database::migrated().await, Database::migrated().await];
    let on_postgres = async |database: &Database, batch| {
        let store = OpenStore::new(PostgresStore::open(database.address(), Prepare::Upgrade, batch).await.unwrap());
        Fixture::new(store, Records::Postgres { store: database.url(), limits: String::new() }).await
    };
    let ways = [
        Way::new("SQLite, one by one", Fixture::on_sqlite(folders[0].path()).await, false).await,
        Way::new("SQLite, at once", Fixture::on_sqlite(folders[1].path()).await, true).await,
        Way::new("PostgreSQL, one by one", on_postgres(&databases[0], 1).await, false).await,
        Way::new("PostgreSQL, at once", on_postgres(&databases[1], 256).await, true).await,
    ];
    let names = |table: &str| ways[0].fixture.records.rows(&format!("SELECT name FROM pragma_table_info('{table}')"));
    let everything = everything(|table| names(table).into_iter().flatten().collect());
    let mut author = Author {
        random: case * 7919 + 17,
        now: NOW,
        is_paused: false,
        asked: Vec::new(),
        known: HashSet::new(),
        referred: HashSet::new(),
        named: 0,
        names: HashSet::new(),
    };
    let mut told = Vec::new();
    for _ in 0..TURNS {
        let turn = author.turn();
        told.push(format!("{turn:?}"));
        let mut first: Option<(Vec<String>, Vec<String>)> = None;
        for way in &ways {
            let answers = way.take(&turn).await;
            let rows = way.rows(&everything);
            let Some((expected_answers, expected_rows)) = &first else {
                first = Some((answers, rows));
                continue;
            };
            let differ = |here: &[String], there: &[String]| {
                here.iter().filter(|one| !there.contains(one)).cloned().collect::<Vec<_>>()
            };
            assert!(
                answers == *expected_answers && rows == *expected_rows,
                "case {case}, {}: answered {answers:#?} and not {expected_answers:#?}; has {:#?} and not {:#?}; after {}",
                way.name,
                differ(&rows, expected_rows),
                differ(expected_rows, &rows),
                told.join("\n"),
            );
        }
    }
    for way in ways {
        way.fixture.store.close().await.unwrap();
    }
}
