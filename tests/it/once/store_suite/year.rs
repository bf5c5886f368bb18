//! A year of a union, through the store's own units with times that are passed in: people join by links, five campaigns of which three
//! become active, leavers and some who come back, voids, a batch that is paid, one that is out, and a referrer who is erased. In the end
//! every way to the figures tells the same.
//!
//! Each run has it on SQLite with 1,000 people, and a long run on PostgreSQL too; `tests/year` has it with 50,000 and prints the figures.

use super::campaigns::{BID, bidding, publication, slug};
use super::*;
use unionhall::domain::figure::money;
use unionhall::rewards::PAGE;

/// Every so many people one refers the next dozen.
const CIRCLE: usize = 20;

/// Units that are under way at once.
const AT_ONCE: usize = 16;

/// The terms of the campaigns that become active.
const TERMS: [ReferralTerms; 3] = [
    ReferralTerms {
        reward_per_group: 100,
        group_size: 5,
        max_groups: 10,
        hold_days: 30,
        counts_on: CountsOn::Accepted,
    },
    ReferralTerms { reward_per_group: 50, group_size: 3, max_groups: 10, hold_days: 30, counts_on: CountsOn::Accepted },
    ReferralTerms { reward_per_group: 100, group_size: 3, max_groups: 4, hold_days: 14, counts_on: CountsOn::Accepted },
];

/// What is told of everybody's rewards, in cents and groups.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Figures {
    due: i64,
    out: i64,
    paid: i64,
    groups: i64,
    capped: i64,
}

struct Year<'a> {
    fixture: &'a Fixture,
    people: usize,
    sessions: Vec<Option<Nonce>>,
    now: Timestamp,
    /// Campaigns whose offer can be accepted.
    open: Vec<usize>,
}

fn address(n: usize) -> EmailAddress {
    EmailAddress::parse(&format!("m{n}@example.com")).unwrap()
}

fn name(campaign: usize) -> String {
    format!("year-{campaign}")
}

/// Sixteen bytes that are one person's, and differ each time.
fn random_of(n: usize, now: Timestamp) -> [u8; 16] {
    let mut random = [0; 16];
    random[..8].copy_from_slice(&(n as u64 + 1).to_be_bytes());
    random[8..].copy_from_slice(&now.as_millis().to_be_bytes());
    random
}

fn account_of(n: usize, now: Timestamp) -> AccountId {
    let random = random_of(n, now);
    let mut account = [0; AccountId::ENTROPY];
    account[..5].copy_from_slice(&random[3..8]);
    account[5..].copy_from_slice(&random[16 - (AccountId::ENTROPY - 5)..]);
    AccountId::from_random(&account)
}

impl Year<'_> {
    async fn step(&mut self, campaign: usize, step: TakenStep) {
        let to = step.step();
        let note = (String::new(), false);
        let done = self
            .fixture
            .store
            .run(StepCampaign { slug: slug(&name(campaign)), step, who: "op".to_owned(), note, now: self.now })
            .await;
        assert!(matches!(done, Ok(unionhall::campaigns::Stepped::Done(_))), "{campaign}: {done:?}");
        match to {
            CampaignStep::Offer => self.open.push(campaign),
            CampaignStep::Cancel => self.open.retain(|open| *open != campaign),
            _ => {}
        }
    }

    async fn offer(&mut self, campaign: usize) {
        self.fixture.run(bidding(&name(campaign), BID, self.now)).await;
        self.step(campaign, publication(["2027-12-25", "2027-12-28"])).await;
        let members: Vec<_> = (0..self.people).filter(|n| self.sessions[*n].is_some() && n % 5 > 0).collect();
        for some in members.chunks(AT_ONCE) {
            together(some.iter().map(|n| self.accept(*n, campaign))).await;
        }
    }

    async fn accept(&self, n: usize, campaign: usize) {
        let Some(session) = self.sessions[n].clone() else { return };
        self.fixture.run(pressing(&session, &name(campaign), Press::Accept, None, self.now)).await;
    }

    async fn join(&self, n: usize) -> (usize, Option<Nonce>) {
        let (fixture, email) = (self.fixture, address(n));
        // Eight of a circle find the union by themselves.
        let by = (1..=12).contains(&(n % CIRCLE)).then(|| fixture.person(address(n - n % CIRCLE).as_typed()).code);
        let new = NewSignUp { ref_code: by, ..fixture.new_sign_up(email.as_typed()) };
        fixture.store.sign_up(new, self.now).await.unwrap();
        let file = fixture.file_at(email.normalized(), self.now).await.unwrap();
        let sign_up = of_entry(file.sign_ups.last().unwrap());
        let joined = fixture.store.confirm(sign_up, SeenPage::default(), self.now).await;
        assert!(matches!(joined, Ok(Confirmation::Joined(_))), "{n}");
        let session = Nonce::from_random(&random_of(n, self.now));
        (n, fixture.run(EnterByJoining(sign_up, session)).await)
    }

    /// They join and accept what is offered.
    async fn join_all(&mut self, who: Vec<usize>) {
        for some in who.chunks(AT_ONCE) {
            let joined = together(some.iter().map(|n| self.join(*n))).await;
            joined.into_iter().for_each(|(n, session)| self.sessions[n] = session);
            for campaign in self.open.clone() {
                together(some.iter().map(|n| self.accept(*n, campaign))).await;
            }
        }
    }

    async fn leave(&self, n: usize) {
        self.fixture
            .run(Leave { email_normalized: address(n).normalized(), account: account_of(n, self.now), now: self.now })
            .await;
    }

    async fn leave_all(&mut self, who: Vec<usize>) {
        for some in who.chunks(AT_ONCE) {
            together(some.iter().map(|n| self.leave(*n))).await;
            some.iter().for_each(|n| self.sessions[*n] = None);
        }
    }

    async fn work(&self) {
        worker::work(&self.fixture.store, || self.now).await.unwrap();
    }

    fn admin(&self) -> RewardAdmin {
        RewardAdmin::new(Store::clone(&self.fixture.store))
    }

    /// A batch of all that is due, and its payouts.
    async fn batch(&self) -> Vec<PayoutRecord> {
        let admin = self.admin();
        let batch = admin.make_batch("op", self.now).await.unwrap().expect("something is due");
        let (mut payouts, mut after) = (Vec::new(), Some(0));
        while let Some(id) = after {
            let page = admin.ask(ListPayouts(batch, id)).await.unwrap();
            payouts.extend(page.payouts);
            after = page.next;
        }
        admin.note_written(batch, self.now).await.unwrap();
        payouts
    }

    async fn month(&mut self, month: usize) {
        self.now = "2025-10-01T00:00:00Z".parse::<Timestamp>().unwrap().plus(DAY * 30 * month as u32);
        match month {
            1 => self.offer(0).await,
            2 => self.step(0, TakenStep::Activate(TERMS[0])).await,
            3 => self.offer(1).await,
            4 => self.step(1, TakenStep::Activate(TERMS[1])).await,
            5 => {
                self.offer(2).await;
                self.offer(3).await;
            }
            6 => {
                self.step(2, TakenStep::Activate(TERMS[2])).await;
                self.step(3, TakenStep::Plain(CampaignStep::Cancel)).await;
            }
            7 => {
                let leavers = (0..self.people).filter(|n| n % 37 == 5 && self.sessions[*n].is_some()).collect();
                self.leave_all(leavers).await;
            }
            8 => {
                let payouts = self.batch().await;
                let answer = |(n, payout): (usize, PayoutRecord)| Settlement {
                    external_id: payout.external_id,
                    is_paid: n % 10 > 0,
                    reference: None,
                    paid_at: (n % 10 > 0).then_some(self.now),
                    reason: None,
                };
                let answers: Vec<_> = payouts.into_iter().enumerate().map(answer).collect();
                let settled = self.admin().settle(&answers, "op", self.now).await.unwrap();
                assert_eq!(settled.booked, answers.len() as u64);
                // Fraud is found after paying.
                for n in (0..self.people).filter(|n| n % 97 == 3 && n % CIRCLE > 0 && self.sessions[*n].is_some()) {
                    self.fixture.run(voiding(&address(n).normalized(), &name(0), self.now)).await;
                }
                let back = (0..self.people).filter(|n| n % 74 == 5 && self.sessions[*n].is_none());
                self.join_all(back.filter(|n| *n < self.people * 8 / 10).collect()).await;
            }
            9 => {
                self.offer(4).await;
                // One who was paid, and one who gives up what is due since.
                for n in [CIRCLE, self.people * 7 / 10 / CIRCLE * CIRCLE + CIRCLE] {
                    let (email, account) = (address(n), account_of(n, self.now));
                    let (marks, waived_by) = (marks(email.as_typed()), Some(Waiver::of_all("themselves")));
                    let erased = self
                        .fixture
                        .run(Erase {
                            email_normalized: email.normalized(),
                            marks,
                            account,
                            waiver: waived_by,
                            now: self.now,
                        })
                        .await;
                    assert!(erased.unwrap().unwrap().is_whole);
                    self.sessions[n] = None;
                }
            }
            10 => drop(self.batch().await),
            _ => {}
        }
        // A tenth of the people each month, those who refer others first.
        let new = |rest: bool| {
            let these = self.people * month / 10..self.people * (month + 1) / 10;
            these.filter(|n| *n < self.people && (n % CIRCLE > 0) == rest).collect::<Vec<_>>()
        };
        let (first, rest) = (new(false), new(true));
        self.join_all(first).await;
        self.join_all(rest).await;
        self.work().await;
    }
}

async fn replay(fixture: &Fixture, people: usize) {
    let begin: Timestamp = "2025-10-01T00:00:00Z".parse().unwrap();
    let mut year = Year { fixture, people, sessions: vec![None; people], now: begin, open: Vec::new() };
    for campaign in 0..5 {
        let text = super::campaigns::definition(&name(campaign), "").replace("2026-12-01", "2025-10-01");
        let draft = CampaignDraft::parse(&text).unwrap();
        fixture.run(MakeCampaign { draft, definition: text, who: "op".to_owned(), now: begin }).await;
        year.step(campaign, TakenStep::Plain(CampaignStep::Open)).await;
    }
    for month in 0..12 {
        year.month(month).await;
    }
    // What is over by now, so that the service has nothing left to do.
    year.now = Clock::start().now().time;
    year.work().await;
}

/// A plain sum.
fn by_sql(fixture: &Fixture) -> Figures {
    let number = |sql: &str| fixture.records.number(sql);
    let paid = |state: &str| {
        number(&format!("SELECT CAST(coalesce(sum(amount_cents), 0) AS BIGINT) FROM payouts WHERE state = '{state}'"))
    };
    let groups = |state: &str| number(&format!("SELECT count(*) FROM reward_groups WHERE state = '{state}'"));
    Figures {
        due: number("SELECT CAST(coalesce(sum(amount_cents), 0) AS BIGINT) FROM reward_ledger"),
        out: paid("out"),
        paid: paid("paid"),
        groups: groups("accrued"),
        // Nobody lists what a tombstone has.
        capped: number(
            "SELECT count(*) FROM reward_groups g JOIN people p ON p.id = g.referrer_id
                        WHERE g.state = 'capped' AND p.erased_at IS NULL AND p.account IS NOT NULL",
        ),
    }
}

/// What the operator is listed: everybody, and of those whoever was erased.
async fn by_accounts(fixture: &Fixture) -> (Figures, Figures) {
    let admin = RewardAdmin::new(Store::clone(&fixture.store));
    let (mut all, mut erased, mut after) = (Figures::default(), Figures::default(), String::new());
    loop {
        let page = admin.ask(ListRewardAccounts(after.to_owned(), PAGE)).await.unwrap();
        let Some(last) = page.last() else { return (all, erased) };
        after = last.account.as_str().to_owned();
        for account in page {
            for figures in [Some(&mut all), account.email.is_none().then_some(&mut erased)].into_iter().flatten() {
                figures.due += account.due_cents;
                figures.out += account.out_cents;
                figures.paid += account.paid_cents;
                figures.groups += i64::from(account.groups);
                figures.capped += i64::from(account.capped);
            }
        }
    }
}

/// What members are shown of their own.
async fn by_members(fixture: &Fixture, people: usize) -> Figures {
    let mut figures = Figures::default();
    let now = Clock::start().now().time;
    for n in (0..people).step_by(CIRCLE) {
        let Some(file) = fixture.run(FindPerson(address(n).normalized(), now)).await else { continue };
        figures.due += file.rewards.due_cents;
        figures.out += file.rewards.out_cents;
        figures.paid += file.rewards.paid_cents;
        figures.groups += file.rewards.campaigns.iter().map(|of| i64::from(of.groups)).sum::<i64>();
        figures.capped += file.rewards.campaigns.iter().map(|of| i64::from(of.capped)).sum::<i64>();
    }
    figures
}

async fn figures_agree(home: Home) {
    let people = number_from("UNIONHALL_YEAR_PEOPLE", 1000) as usize;
    let flags = ["--mail", "hold"];
    let (_, home) = Server::start_in(home, &flags).stop();
    let fixture = match home.records() {
        Records::Sqlite { data } => Fixture::on_sqlite(data).await,
        Records::Postgres { store, .. } => {
            let address = unionhall::store::postgres::Address::parse(store).unwrap();
            let store = OpenStore::new(PostgresStore::open(address, Prepare::Upgrade, 256).await.unwrap());
            Fixture::new(store, home.records().clone()).await
        }
    };
    replay(&fixture, people).await;
    let (sql, (accounts, erased), members) =
        (by_sql(&fixture), by_accounts(&fixture).await, by_members(&fixture, people).await);
    println!(
        "a plain sum:   {sql:?}\nall accounts:  {accounts:?}\nof the erased: {erased:?}\nall members:   {members:?}"
    );
    let number = |sql: &str| fixture.records.number(sql);
    for state in ["accrued", "capped", "dissolved", "reversed", "waived", "settled"] {
        let groups = number(&format!("SELECT count(*) FROM reward_groups WHERE state = '{state}'"));
        println!("groups {state}: {groups}");
        assert!(groups > 0, "{state}");
    }
    assert_eq!(accounts, sql);
    let known = Figures { out: members.out + erased.out, paid: members.paid + erased.paid, ..members };
    assert_eq!((known.due + erased.due, known.out, known.paid), (sql.due, sql.out, sql.paid));
    assert_eq!((members.groups, members.capped), (sql.groups, sql.capped));
    assert!(sql.due > 0 && sql.out > 0 && sql.paid > 0 && sql.groups > 0 && erased.paid > 0, "{sql:?}");
    // And it is explained: every group that stands, less what was waived and paid.
    let earned = number(
        "SELECT CAST(sum(c.reward_cents) AS BIGINT) FROM reward_groups g JOIN campaigns c ON c.id = g.campaign_id
                         WHERE g.state IN ('accrued', 'settled', 'waived')",
    );
    let waived =
        number("SELECT CAST(coalesce(sum(-amount_cents), 0) AS BIGINT) FROM reward_ledger WHERE why = 'waived'");
    assert_eq!(sql.due, earned - waived - sql.paid - sql.out);
    // The service on these records: it changes none of them, and its commands and pages tell the same.
    let server = Server::start_in(home, &flags);
    assert_eq!(by_list(&server), sql);
    let (campaigns, of_all) = (by_campaigns(&server), "SELECT count(*) FROM reward_groups WHERE state IN");
    assert_eq!(campaigns.groups, number(&format!("{of_all} ('accrued', 'settled')")));
    assert_eq!(campaigns.capped, number(&format!("{of_all} ('capped')")));
    // What was waived is of no campaign.
    assert_eq!((campaigns.due - waived, campaigns.paid), (sql.due, sql.paid + sql.out));
    own_pages_agree(&server, &fixture, people).await;
    assert_eq!(by_sql(&fixture), sql);
    fixture.store.close().await.unwrap();
}

/// What `rewards list` says in all.
fn by_list(server: &Server) -> Figures {
    let listed = server.run(&["rewards", "list", "--json"]);
    let totals: serde_json::Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    println!("rewards list:  {totals}");
    let of = |name: &str| totals["totals"][name].as_i64().unwrap();
    Figures {
        due: of("dueCents") + of("negativeCents"),
        out: of("outCents"),
        paid: of("paidCents"),
        groups: of("groups"),
        capped: of("capped"),
    }
}

/// What `campaigns show` says of each campaign, added up; what is being paid counts as paid there.
fn by_campaigns(server: &Server) -> Figures {
    let mut figures = Figures::default();
    for campaign in 0..5 {
        let shown = server.json(&["campaigns", "show", &name(campaign), "--json"]);
        let rewards = &shown["rewards"];
        println!("campaigns show {}: {rewards}", name(campaign));
        assert_eq!(rewards.is_null(), campaign > 2, "only what became active has rewards");
        let of = |name: &str| rewards[name].as_i64().unwrap_or(0);
        figures.groups += of("groups");
        figures.capped += of("capped");
        figures.paid += of("paidOutCents");
        figures.due += of("accruedCents") + of("reversedCents") - of("paidOutCents");
    }
    figures
}

/// The first five referrers read on their own pages what their files say.
async fn own_pages_agree(server: &Server, fixture: &Fixture, people: usize) {
    let (now, mut read) = (Clock::start().now().time, 0);
    for n in (0..people).step_by(CIRCLE) {
        let Some(file) = fixture.run(FindPerson(address(n).normalized(), now)).await else { continue };
        let rewards = &file.rewards;
        let sums = [rewards.due_cents, rewards.out_cents, rewards.paid_cents].map(|cents| cents.max(0));
        if file.person.state != PersonState::Member || sums == [0; 3] {
            continue;
        }
        read += 1;
        let mut browser = Browser::member(server, read, address(n).as_typed()).await;
        let page = browser.get("/me").await.text();
        for cents in sums.into_iter().filter(|cents| *cents > 0) {
            assert!(page.contains(&money(cents)), "{} of {n} in {page}", money(cents));
        }
        let [due, out, paid] = sums.map(money);
        println!("/me of {}: due {due}, being paid {out}, paid {paid}", address(n).as_typed());
        if read == 5 {
            break;
        }
    }
    assert_eq!(read, 5, "so many earned something");
}

#[test]
fn a_year_of_a_union_on_sqlite() {
    block_on(figures_agree(Home::new()));
}

mod long {
    use super::*;

    #[test]
    fn a_year_of_a_union_on_postgres() {
        needs!(Postgres, Redis);
        block_on(figures_agree(Home::on_postgres(tempfile::tempdir().unwrap())));
    }
}
