//! Histories of accepting, passing, leaving, coming back, being erased, handing over, settling and withdrawing in any order, each step of a
//! hand-over perhaps the last before the process is killed, against a naive model: the supplier is told of nobody who does not accept, of
//! nobody twice, and in the end of everybody.

use super::*;
use unionhall::campaigns::acceptances::EndAcceptances;
use unionhall::campaigns::admin::CampaignAdmin;
use unionhall::campaigns::handover::{BeginHandover, CloseHandover, FillHandover, FindHandover, SettleOrders};
use unionhall::domain::campaign::LastDay;
use unionhall::domain::campaign::acceptance::{OrderStatus, SupplierReport};
use unionhall::domain::campaign::handover::HandoverBatch;
use unionhall::domain::campaign::offer::{Proposal, Publication};

const SLUG: &str = "all";
const PEOPLE: usize = 6;
const HISTORIES: u64 = 24;
const STEPS: u64 = 45;

#[derive(Default)]
struct Person {
    session: Option<Nonce>,
    is_erased: bool,
    /// The reference of what they accept.
    accepts: Option<String>,
}

/// What the supplier read of a reference, and in which file.
#[derive(Default)]
struct Told {
    accepted_in: Option<u32>,
    withdrawn_in: Option<u32>,
    has_status: bool,
}

struct History {
    random: u64,
    people: Vec<Person>,
    told: BTreeMap<String, Told>,
    gives_address: bool,
    log: Vec<String>,
}

fn address(who: usize) -> String {
    format!("p{who}@example.com")
}

impl History {
    fn pick(&mut self, most: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % most
    }

    /// An offer that is the same as before, or hands over something else.
    fn offer(&self) -> TakenStep {
        let handover = if self.gives_address { "address" } else { "code" };
        // Where one complains is no worse for being another place, and no offer is published twice.
        let text = OFFER.replace("help@", &format!("help{}@", self.random));
        let proposal = Proposal::parse(&format!("handover = \"{handover}\"\n{text}")).unwrap();
        TakenStep::Offer(Box::new(Publication { proposal, outside_mandate: None, figures_checked: None }))
    }

    async fn act(&mut self, fixture: &Fixture, now: Timestamp) {
        let who = self.pick(PEOPLE as u64) as usize;
        let what = self.pick(24);
        self.log.push(format!("{what} by {who}"));
        match what {
            0..=6 => self.accept(fixture, who, now).await,
            7 | 8 => self.pass(fixture, who, now).await,
            9 => self.leave(fixture, who, now).await,
            10 => self.erase(fixture, who, now).await,
            11 | 12 => self.join(fixture, who, now).await,
            13..=18 => {
                let killed_after = self.pick(7);
                self.hand_over(fixture, killed_after, now).await;
            }
            19 | 20 => self.settle(fixture, now).await,
            21 => self.publish(fixture, now).await,
            22 => self.withdraw(fixture, now).await,
            _ => while fixture.run(EndAcceptances(now)).await {},
        }
    }

    async fn accept(&mut self, fixture: &Fixture, who: usize, now: Timestamp) {
        let Some(session) = self.people[who].session.clone() else { return };
        let pressed = fixture.run(pressing(&session, SLUG, Press::Accept, None, now)).await;
        if pressed != Pressed::Done(Some(ParticipationState::Accepted)) {
            assert_eq!(pressed, Pressed::Refused(BadPress::NoOffer), "{:?}", self.log);
            return;
        }
        let find = format!(
            "SELECT a.reference, a.handover, n.text FROM acceptances a JOIN people p ON p.id = a.person_id JOIN notices n ON n.hash = a.notice
             WHERE p.email = '{}' AND a.ended_at IS NULL",
            address(who)
        );
        let [row] = &fixture.records.rows(&find)[..] else { panic!("one acceptance: {:?}", self.log) };
        assert_eq!(row[1] == "address", row[2].contains("We send your email address"), "what they were told");
        if let Some(told) = self.told.get(&row[0]) {
            assert!(told.withdrawn_in.is_none(), "a reference that ended is given to nobody again: {:?}", self.log);
            assert!(self.people[who].accepts.is_some() || !told.has_status, "{:?}", self.log);
        }
        self.people[who].accepts = Some(row[0].clone());
    }

    async fn pass(&mut self, fixture: &Fixture, who: usize, now: Timestamp) {
        let Some(session) = self.people[who].session.clone() else { return };
        let pressed = fixture.run(pressing(&session, SLUG, Press::Pass, None, now)).await;
        if pressed != Pressed::Refused(BadPress::NoOffer) {
            self.people[who].accepts = None;
        }
    }

    async fn leave(&mut self, fixture: &Fixture, who: usize, now: Timestamp) {
        if self.people[who].session.take().is_some() {
            fixture.run(leaving(&address(who), now)).await;
            self.people[who].accepts = None;
        }
    }

    async fn erase(&mut self, fixture: &Fixture, who: usize, now: Timestamp) {
        if !self.people[who].is_erased {
            fixture.run(erasing(&address(who), Some(Waiver::of_all("op")), now)).await;
            self.people[who] = Person { is_erased: true, ..Person::default() };
        }
    }

    async fn join(&mut self, fixture: &Fixture, who: usize, now: Timestamp) {
        if self.people[who].session.is_some() {
            return;
        }
        if self.people[who].is_erased {
            let email = email(&address(who));
            let marks = marks(email.as_typed());
            fixture.run(Revive { email, marks, now }).await;
        }
        let session = fixture.join_at(&address(who), now).await;
        self.people[who] = Person { session: Some(session), ..Person::default() };
    }

    /// So many steps of a hand-over, and the process is killed. After all of them the supplier has the file.
    async fn hand_over(&mut self, fixture: &Fixture, steps: u64, now: Timestamp) {
        let slug = || SLUG.parse::<CampaignSlug>().unwrap();
        let begin = BeginHandover { slug: slug(), who: "op".to_owned(), now };
        let Some(id) = fixture.run(begin).await else { return };
        if steps == 0 {
            return;
        }
        while !fixture.run(FillHandover(slug(), id, now)).await {}
        if steps == 1 {
            return;
        }
        fixture.run(CloseHandover(slug(), id, now)).await;
        if steps == 2 {
            return;
        }
        let batch = fixture.run(FindHandover(slug(), None)).await.unwrap();
        let admin = CampaignAdmin::new((*fixture.store).clone());
        let mut file = Vec::new();
        admin.write_handover(&batch, &mut file).await.unwrap().unwrap();
        self.read(fixture, &batch, std::str::from_utf8(&file).unwrap());
        if steps > 3 {
            admin.note_handover(&batch, now).await.unwrap();
        }
    }

    /// What the supplier reads.
    fn read(&mut self, fixture: &Fixture, batch: &HandoverBatch, file: &str) {
        for line in file.lines().skip(1) {
            let cells: Vec<_> = line.split(',').collect();
            let reference = cells[0].to_lowercase();
            let holder = self.people.iter().position(|person| person.accepts.as_ref() == Some(&reference));
            let told = self.told.entry(reference.clone()).or_default();
            let (file, number) =
                (if cells[1] == "accepted" { &mut told.accepted_in } else { &mut told.withdrawn_in }, batch.number);
            assert_eq!(*file.get_or_insert(number), number, "{reference} is in two files: {:?}", self.log);
            if cells[1] == "accepted" {
                let holder = holder.unwrap_or_else(|| panic!("{reference} is nobody's who accepts: {:?}", self.log));
                let agreed =
                    fixture.records.rows(&format!("SELECT handover FROM acceptances WHERE reference = '{reference}'"));
                let email = cells.get(2).copied().unwrap_or_default();
                assert_eq!(email == address(holder), agreed[0][0] == "address", "{line}: {:?}", self.log);
                assert!(email.is_empty() || email == address(holder));
            } else {
                // Perhaps it ended before the file was read in which it was accepted, and was left out there.
                assert!(holder.is_none(), "{reference}: {:?}", self.log);
            }
        }
    }

    async fn settle(&mut self, fixture: &Fixture, now: Timestamp) {
        let known = self.told.iter().filter(|(_, told)| told.accepted_in.is_some());
        let known: Vec<_> = known.map(|(reference, _)| reference.clone()).collect();
        if known.is_empty() {
            return;
        }
        let reference = &known[self.pick(known.len() as u64) as usize];
        let status = OrderStatus::ALL[self.pick(4) as usize];
        let report = SupplierReport { status, on: LastDay::of(now) };
        let reports = vec![(Reference::parse(reference).unwrap(), report)];
        fixture.run(SettleOrders { slug: SLUG.parse().unwrap(), reports, now }).await;
        self.told.get_mut(reference).unwrap().has_status = true;
    }

    /// The offer once more: acceptances stand where nothing of it is worse.
    async fn publish(&mut self, fixture: &Fixture, now: Timestamp) {
        let before = self.gives_address;
        self.gives_address ^= self.pick(2) == 0;
        let had_offer = fixture.campaign(SLUG).await.offer.is_some();
        self.step(fixture, self.offer(), now).await;
        if had_offer && before != self.gives_address {
            self.people.iter_mut().for_each(|person| person.accepts = None);
        }
    }

    async fn withdraw(&mut self, fixture: &Fixture, now: Timestamp) {
        if fixture.campaign(SLUG).await.offer.is_some() {
            let reasons = Language::ALL.map(|language| (language, "why".to_owned()));
            self.step(fixture, TakenStep::WithdrawOffer(reasons.into()), now).await;
            self.people.iter_mut().for_each(|person| person.accepts = None);
        }
    }

    async fn step(&mut self, fixture: &Fixture, step: TakenStep, now: Timestamp) {
        let step =
            StepCampaign { slug: SLUG.parse().unwrap(), step, who: "op".to_owned(), note: (String::new(), true), now };
        let done = fixture.run(step).await;
        assert!(matches!(done, Stepped::Done(_)), "{done:?}: {:?}", self.log);
    }

    /// Everything is handed over: what the supplier has in hand is what members accept.
    async fn finish(&mut self, fixture: &Fixture, now: Timestamp) {
        while fixture.run(EndAcceptances(now)).await {}
        for _ in 0..3 {
            self.hand_over(fixture, 9, now).await;
        }
        let in_hand = self.told.iter().filter(|(_, told)| told.accepted_in.is_some() && told.withdrawn_in.is_none());
        let in_hand: BTreeSet<_> = in_hand.map(|(reference, _)| reference).collect();
        let accepted: BTreeSet<_> = self.people.iter().filter_map(|person| person.accepts.as_ref()).collect();
        assert_eq!(in_hand, accepted, "{:?}", self.log);
    }
}

pub(super) async fn the_supplier_is_told_of_who_accepts_and_of_nobody_else(fixture: &Fixture) {
    let mut now = NOW;
    fixture.make_campaign(SLUG, "").await;
    fixture.step(SLUG, CampaignStep::Open, now).await;
    fixture.run(bidding(SLUG, BID, now)).await;
    let mut history = History {
        random: 7,
        people: (0..PEOPLE).map(|_| Person::default()).collect(),
        told: BTreeMap::new(),
        gives_address: false,
        log: Vec::new(),
    };
    history.step(fixture, history.offer(), now).await;
    for seed in 0..HISTORIES {
        history.random = seed;
        history.log.clear();
        if fixture.campaign(SLUG).await.offer.is_none() {
            history.publish(fixture, now).await;
        }
        for who in 0..PEOPLE {
            history.join(fixture, who, now).await;
        }
        for _ in 0..STEPS {
            now = now.plus(Duration::from_secs(60));
            history.act(fixture, now).await;
        }
        history.finish(fixture, now).await;
    }
    let accepted = history.told.values().filter(|told| told.accepted_in.is_some()).count();
    let withdrawn = history.told.values().filter(|told| told.withdrawn_in.is_some()).count();
    assert!(accepted > 50 && withdrawn > 30, "too little happened: {accepted} and {withdrawn}");
}

/// Acceptances that take three steps to be put into a batch.
const ACCEPTED: u32 = 450;

/// So many steps of a hand-over, each in a transaction of its own; the file that comes of it, if it comes so far.
pub(super) async fn hand_over(store: &Store, steps: usize) -> Option<String> {
    let slug = || SLUG.parse::<CampaignSlug>().unwrap();
    let mut left = steps;
    let mut go_on = || left.checked_sub(1).inspect(|rest| left = *rest);
    let id = store.run(BeginHandover { slug: slug(), who: "op".to_owned(), now: NOW }).await.unwrap()?;
    go_on()?;
    while !store.run(FillHandover(slug(), id, NOW)).await.unwrap() {
        go_on()?;
    }
    go_on()?;
    store.run(CloseHandover(slug(), id, NOW)).await.unwrap();
    go_on()?;
    let batch = store.run(FindHandover(slug(), None)).await.unwrap().unwrap();
    let admin = CampaignAdmin::new(store.clone());
    let mut file = Vec::new();
    admin.write_handover(&batch, &mut file).await.unwrap().unwrap();
    go_on()?;
    admin.note_handover(&batch, NOW).await.unwrap();
    Some(String::from_utf8(file).unwrap())
}

pub(super) async fn a_hand_over_that_is_killed_names_everybody_once(fixture: &Fixture) {
    fixture.make_campaign(SLUG, "").await;
    fixture.step(SLUG, CampaignStep::Open, NOW).await;
    fixture.step(SLUG, CampaignStep::Offer, NOW).await;
    let reference = |n: u32| Reference::from_random(&[&[0][..], &n.to_be_bytes(), &[0]].concat().try_into().unwrap());
    let rows = (1..=ACCEPTED).map(|n| {
        format!(
            "(1, {}, '{}', '', 'code', 9, {}, {})",
            1000 + n,
            reference(n).as_str(),
            NOW.as_millis(),
            NOW.as_millis()
        )
    });
    fixture.records.execute(&format!(
        "INSERT INTO acceptances (campaign_id, person_id, reference, notice, handover, offer_number, made_at, accepted_at) VALUES {}",
        rows.collect::<Vec<_>>().join(", ")
    ));
    for steps in 0..=6 {
        fixture.kill_after("hand over", steps);
    }
    let file = hand_over(&fixture.store, usize::MAX).await.expect("the last one was killed before it was noted");
    let named: BTreeSet<_> = file.lines().skip(1).collect();
    assert_eq!((named.len(), file.lines().count()), (ACCEPTED as usize, ACCEPTED as usize + 1), "each once");
    assert_eq!(hand_over(&fixture.store, usize::MAX).await, None, "nobody is left");
    assert_eq!(fixture.records.number("SELECT count(*) FROM handover_batches"), 1);
}
