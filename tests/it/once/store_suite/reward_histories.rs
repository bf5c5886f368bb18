//! Random histories of joining, taking part, leaving, being erased, voids, batches and settlements, held to [`Oracle`].
//!
//! Some histories run side by side on one store, as members of one union do: they share its worker and its batches.
//! `UNIONHALL_REWARD_HISTORIES=2000 UNIONHALL_REWARD_SEED=7 ./test.sh rewards_follow` runs more of them. A history that fails is
//! told, and comes again by its seed.

use std::sync::atomic::AtomicU64;

use super::campaigns::{BID, bidding, publication, slug};
use super::reward_oracle::{Line, Oracle, Purse, Terms};
use super::*;
use unionhall::domain::reward::report::RewardTotals;
use unionhall::figures::accounts::FindRewardTotals;
use unionhall::rewards::ended::EndNoted;
use unionhall::rewards::group::StepRewards;
use unionhall::rewards::payout::{CloseBatch, NoteWritten};

/// Histories that run side by side.
const AT_ONCE: u64 = 50;

const PEOPLE: usize = 7;

/// Those by whose links the others join, mostly.
const REFERRERS: usize = 2;

const ROUNDS: usize = 13;

/// One history: what happened, what the oracle makes of it, and what the store calls everybody.
struct History {
    seed: u64,
    random: u64,
    oracle: Oracle,
    told: Vec<String>,
    slugs: Vec<String>,
    emails: Vec<EmailAddress>,
    ids: Vec<i64>,
    sessions: Vec<Option<Nonce>>,
    accounts: BTreeMap<Purse, String>,
    /// Of each payout of the oracle.
    external_ids: Vec<String>,
}

/// What the store keeps of the histories of one round.
struct Kept {
    /// By address: id and account.
    people: BTreeMap<String, (i64, Option<String>)>,
    qualifications: Vec<Vec<String>>,
    groups: Vec<Vec<String>>,
    ledger: Vec<Vec<String>>,
    payouts: Vec<Vec<String>>,
    /// Who ceased to count, and the worker has not looked: campaign and person.
    notes: BTreeSet<(String, i64)>,
}

impl Kept {
    fn read(fixture: &Fixture, after: i64) -> Self {
        let rows = |sql: &str| fixture.records.rows(sql);
        let people = rows(&format!("SELECT email_normalized, id, account FROM people WHERE id > {after}"));
        let named = |row: Vec<String>| {
            (row[0].clone(), (row[1].parse().unwrap(), Some(row[2].clone()).filter(|account| account != "NULL")))
        };
        Self {
            people: people.into_iter().map(named).collect(),
            qualifications: rows(&format!(
                "SELECT c.slug, q.person_id, q.referrer_id, q.qualified_at, q.group_id, CASE WHEN q.voided_at IS NULL THEN 0 ELSE 1 END,
                        CASE WHEN q.ended_on IS NULL THEN 0 ELSE 1 END
                 FROM qualifications q JOIN campaigns c ON c.id = q.campaign_id WHERE q.person_id > {after}"
            )),
            groups: rows(&format!(
                "SELECT g.id, g.referrer_id, c.slug, g.state, CASE WHEN g.payout_id IS NULL THEN 0 ELSE 1 END
                 FROM reward_groups g JOIN campaigns c ON c.id = g.campaign_id WHERE g.referrer_id > {after} ORDER BY g.id"
            )),
            ledger: rows("SELECT l.account, c.slug, l.kind, l.amount_cents FROM reward_ledger l
                          LEFT JOIN campaigns c ON c.id = l.campaign_id"),
            payouts: rows("SELECT o.external_id, o.account, c.slug, o.amount_cents, o.group_count, o.state
                           FROM payouts o JOIN campaigns c ON c.id = o.campaign_id ORDER BY o.id"),
            notes: rows("SELECT c.slug, d.person_id FROM disqualifications d JOIN campaigns c ON c.id = d.campaign_id")
                .into_iter()
                .map(|row| (row[0].clone(), row[1].parse().unwrap()))
                .collect(),
        }
    }
}

pub(super) async fn rewards_follow_a_naive_oracle(fixture: &Fixture) {
    // PostgreSQL takes seven times as long for each: a long run does as many there as on SQLite.
    let usual = if matches!(fixture.records, Records::Sqlite { .. }) { 200 } else { 40 };
    let (histories, first) =
        (number_from("UNIONHALL_REWARD_HISTORIES", usual), number_from("UNIONHALL_REWARD_SEED", 1));
    let mut seen = BTreeSet::new();
    for begin in (first..first + histories).step_by(AT_ONCE as usize) {
        let seeds = begin..(begin + AT_ONCE).min(first + histories);
        // On records of their own: a union has 500 campaigns at the most, and a history that fails comes again by these seeds alone.
        match fixture.records {
            Records::Sqlite { .. } => {
                let folder = tempfile::tempdir().unwrap();
                let own = Fixture::on_sqlite(folder.path()).await;
                seen.extend(run_together(&own, seeds).await);
                own.store.close().await.unwrap();
            }
            Records::Postgres { .. } => {
                let database = Database::migrated().await;
                let own = Fixture::on_postgres(&database).await;
                seen.extend(run_together(&own, seeds).await);
                own.store.close().await.unwrap();
            }
        }
    }
    // What never happens is not tested.
    let common = ["accrued", "capped", "dissolved", "reversed", "waived", "settled", "paid", "failed", "ended"];
    if histories >= 200 {
        assert!(seen.is_superset(&BTreeSet::from(common)), "{seen:?}");
    }
}

/// No more at once than a store has connections: none waits for one until it is refused, however busy the machine is.
async fn few_at_once<F: Future>(mut futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut done = Vec::new();
    loop {
        let few: Vec<_> = futures.by_ref().take(4).collect();
        if few.is_empty() {
            return done;
        }
        done.extend(together(few.into_iter()).await);
    }
}

/// Runs some histories side by side; says which states there were.
async fn run_together(fixture: &Fixture, seeds: std::ops::Range<u64>) -> BTreeSet<&'static str> {
    let mut shared = seeds.start.wrapping_mul(7919) + 17;
    let before = fixture.records.number("SELECT coalesce(max(id), 0) FROM people");
    let mut histories = few_at_once(seeds.map(|seed| History::begin(fixture, seed))).await;
    let kept = Kept::read(fixture, before);
    histories.iter_mut().for_each(|history| history.learn_ids(&kept));
    let mut now = NOW;
    for _ in 0..ROUNDS {
        // Days in whole, so that much is over in the same millisecond.
        now = now.plus([Duration::ZERO, Duration::from_millis(1), DAY, DAY * 2, DAY * 5][pick(&mut shared, 5)]);
        let works = pick(&mut shared, 2) > 0;
        if works {
            while step(fixture, now).await {}
            histories.iter_mut().for_each(|history| history.work(now));
        }
        few_at_once(histories.iter_mut().map(|history| history.act(fixture, now, works))).await;
        match pick(&mut shared, 8) {
            0..=2 => {
                let how = (pick(&mut shared, 3) > 0, pick(&mut shared, 4) > 0);
                make_batch(fixture, &mut histories, now, before, how).await;
            }
            3 => {
                for _ in 0..=pick(&mut shared, 60) {
                    if !step(fixture, now).await {
                        break;
                    }
                }
                let kept = Kept::read(fixture, before);
                histories.iter_mut().for_each(|history| history.observe(&kept, now));
            }
            4 => {
                while step(fixture, now).await {}
                histories.iter_mut().for_each(|history| history.work(now));
                let kept = Kept::read(fixture, before);
                histories.iter_mut().for_each(|history| history.compare(&kept));
            }
            _ => {}
        }
    }
    while step(fixture, now).await {}
    histories.iter_mut().for_each(|history| history.work(now));
    let kept = Kept::read(fixture, before);
    histories.iter_mut().for_each(|history| history.compare(&kept));
    few_at_once(histories.iter().map(|history| history.compare_standings(fixture, now))).await;
    compare_totals(fixture, now).await;
    histories.iter().flat_map(History::states).collect()
}

/// The totals that are kept are the sums of all accounts.
async fn compare_totals(fixture: &Fixture, now: Timestamp) {
    while fixture.run(RollUp { now: now.plus(DAY) }).await {}
    let mut expected = RewardTotals::default();
    for account in fixture.run(ListRewardAccounts(String::new(), 10_000)).await {
        expected.accounts += 1;
        expected.due_cents += account.due_cents.max(0);
        expected.erased_cents += if account.email.is_none() { account.due_cents.max(0) } else { 0 };
        expected.out_cents += account.out_cents;
        expected.paid_cents += account.paid_cents;
        expected.negative_accounts += u64::from(account.due_cents < 0);
        expected.negative_cents += account.due_cents.min(0);
    }
    assert_eq!(fixture.run(FindRewardTotals).await, expected);
}

fn pick(random: &mut u64, most: usize) -> usize {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*random >> 33) as usize % most
}

fn new_account(n: u64) -> AccountId {
    let mut random = [0; AccountId::ENTROPY];
    random[..8].copy_from_slice(&n.to_be_bytes());
    AccountId::from_random(&random)
}

async fn step(fixture: &Fixture, now: Timestamp) -> bool {
    static USED: AtomicU64 = AtomicU64::new(0);
    fixture.run(StepRewards(new_account(USED.fetch_add(1, Ordering::Relaxed)), now)).await
}

/// Records what a supplier says of an order.
pub(super) fn supplier_says(fixture: &Fixture, (person, slug): (i64, &str), status: &str, at: Timestamp) {
    let (at, campaign) = (at.as_millis(), format!("(SELECT id FROM campaigns WHERE slug = '{slug}')"));
    let execute = |sql: String| fixture.records.execute(&sql);
    execute(format!(
        "INSERT INTO acceptances (campaign_id, person_id, reference, notice, handover, offer_number, made_at, accepted_at)
         SELECT campaign_id, person_id, 'test-' || id || '-' || (SELECT count(*) FROM acceptances), '', 'code', 0, accepted_at, accepted_at
         FROM participations part WHERE person_id = {person} AND campaign_id = {campaign}
         AND NOT EXISTS (SELECT 1 FROM acceptances a WHERE a.campaign_id = part.campaign_id AND a.person_id = part.person_id
                         AND a.ended_at IS NULL)"
    ));
    execute(format!(
        "UPDATE acceptances SET status = '{status}', status_on = {at} / 86400000
         WHERE person_id = {person} AND campaign_id = {campaign} AND ended_at IS NULL"
    ));
    // Its date counts where switching does. Before the campaign is active, the hold runs from then.
    let is_counted = format!("{campaign} IN (SELECT id FROM campaigns WHERE counts_on = 'switched')");
    let hold_from = match status {
        "switched" => format!("CASE WHEN {is_counted} AND {at} > accepted_at THEN {at} END"),
        _ => "hold_from".to_owned(),
    };
    execute(format!(
        "UPDATE participations SET hold_checked = FALSE, hold_from = {hold_from} WHERE person_id = {person} AND campaign_id = {campaign}"
    ));
    if matches!(status, "rejected" | "cancelled") {
        execute(format!(
            "INSERT INTO disqualifications (campaign_id, person_id, why) SELECT campaign_id, person_id, '{status}' FROM qualifications
             WHERE person_id = {person} AND campaign_id = {campaign} AND qualified_at IS NOT NULL AND voided_at IS NULL
               AND ended_on IS NULL ON CONFLICT (campaign_id, person_id) DO NOTHING"
        ));
    }
}

/// What passing, leaving and erasing do to what was accepted.
fn end_acceptances(fixture: &Fixture, person: i64, slug: Option<&str>, now: Timestamp) {
    let campaigns = slug.map_or(String::new(), |slug| format!(" WHERE slug = '{slug}'"));
    let which = format!("WHERE person_id = {person} AND campaign_id IN (SELECT id FROM campaigns{campaigns})");
    let now = now.as_millis();
    fixture.records.execute(&format!(
        "UPDATE acceptances SET ended_at = {now}, ended_why = 'passed' {which} AND ended_at IS NULL"
    ));
    fixture.records.execute(&format!("UPDATE participations SET hold_from = NULL {which}"));
}

/// Nobody is paid for who does not take part when the file is written, nor where switching counts for who did not.
fn look_at_file(fixture: &Fixture, batch: i64) {
    let wrong = fixture.records.rows(&format!(
        "SELECT o.external_id, q.person_id, part.state, p.state, a.status
         FROM payouts o JOIN reward_groups g ON g.payout_id = o.id JOIN qualifications q ON q.group_id = g.id
             JOIN campaigns c ON c.id = q.campaign_id JOIN people p ON p.id = q.person_id
             JOIN participations part ON part.campaign_id = q.campaign_id AND part.person_id = q.person_id
             LEFT JOIN acceptances a ON a.campaign_id = c.id AND a.person_id = p.id AND a.ended_at IS NULL
         WHERE o.batch_id = {batch} AND o.state = 'out'
           AND (part.state <> 'accepted' OR p.state <> 'member' OR coalesce(a.status, '') IN ('rejected', 'cancelled')
                OR c.counts_on = 'switched' AND coalesce(a.status, '') <> 'switched')"
    ));
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// A batch of all that is due; one whose file was not written is gone on with. Whoever ceased to count is taken out before.
async fn make_batch(
    fixture: &Fixture,
    histories: &mut [History],
    now: Timestamp,
    before: i64,
    (is_closed, is_written): (bool, bool),
) {
    let store = &fixture.store;
    let payouts = |kept: &Kept| kept.payouts.len();
    end_noted(fixture, histories, now).await;
    let old = Kept::read(fixture, before);
    let Some(batch) = store.run(BeginBatch { who: "op".to_owned(), now }).await.unwrap() else {
        assert!(histories.iter().all(|history| history.is_nothing_due()), "no batch");
        return;
    };
    let filled = format!("SELECT count(*) FROM payout_batches WHERE id = {batch} AND filled_at IS NOT NULL");
    let is_filled = fixture.records.number(&filled) == 1;
    while !store.run(FillBatch { batch, who: "op".to_owned(), now }).await.unwrap() {}
    let kept = Kept::read(fixture, before);
    if is_filled {
        assert_eq!(payouts(&kept), payouts(&old), "a batch that is full takes nothing more");
    } else {
        histories.iter_mut().for_each(|history| history.pay(&kept, payouts(&old), batch));
    }
    if !is_closed {
        return;
    }
    // Its file is written from here on, and perhaps killed before that is noted.
    let begun = format!("SELECT count(*) FROM payout_batches WHERE id = {batch} AND closed_at IS NOT NULL");
    let is_new = fixture.records.number(&begun) == 0;
    assert!(store.run(CloseBatch(batch, now)).await.unwrap(), "nobody waits to be taken out");
    if is_new {
        look_at_file(fixture, batch);
    }
    histories.iter_mut().for_each(|history| history.oracle.close(batch));
    if is_written {
        store.run(NoteWritten(batch, now)).await.unwrap();
    }
}

async fn end_noted(fixture: &Fixture, histories: &mut [History], now: Timestamp) {
    while fixture.run(EndNoted(now)).await {}
    histories.iter_mut().for_each(|history| history.oracle.end_noted());
}

impl History {
    async fn begin(fixture: &Fixture, seed: u64) -> Self {
        let mut random = seed.wrapping_mul(7919) + 4711;
        let campaigns = 2 + pick(&mut random, 2);
        let slugs: Vec<_> = (0..campaigns).map(|n| format!("c{n}-{seed}")).collect();
        for slug in &slugs {
            fixture.make_campaign(slug, "").await;
            fixture.step(slug, CampaignStep::Open, NOW).await;
        }
        let emails: Vec<_> =
            (0..PEOPLE).map(|n| EmailAddress::parse(&format!("p{n}-{seed}@example.com")).unwrap()).collect();
        for email in &emails {
            done(fixture.store.run(CreateCode { person: fixture.person(email.as_typed()), now: NOW })).await.unwrap();
        }
        let mut history = Self {
            seed,
            random,
            oracle: Oracle::new(PEOPLE, campaigns, NOW.as_millis()),
            told: Vec::new(),
            slugs,
            emails,
            ids: Vec::new(),
            sessions: vec![None; PEOPLE],
            accounts: BTreeMap::new(),
            external_ids: Vec::new(),
        };
        for campaign in 0..campaigns {
            history.step(fixture, campaign, NOW).await;
        }
        // Most are there from the start, else too little would happen.
        for who in 0..PEOPLE {
            if history.pick(4) > 0 {
                history.join(fixture, who, NOW).await;
            }
        }
        history
    }

    fn pick(&mut self, most: usize) -> usize {
        pick(&mut self.random, most)
    }

    fn tell(&mut self, now: Timestamp, what: String) {
        self.told.push(format!("{now}: {what}"));
    }

    /// What a failed comparison says.
    fn story(&self) -> String {
        format!("seed {}: {:#?}", self.seed, self.told)
    }

    fn work(&mut self, now: Timestamp) {
        self.tell(now, "the worker".to_owned());
        self.oracle.look(now.as_millis());
        self.oracle.work();
    }

    /// Some things happen to it. Where the worker is up to date the first of them may be that a referrer comes back or is erased: what
    /// is known of their membership before goes with that.
    async fn act(&mut self, fixture: &Fixture, now: Timestamp, is_up_to_date: bool) {
        for n in 0..2 + self.pick(5) {
            self.oracle.look(now.as_millis());
            let who = self.pick(PEOPLE);
            let campaign = self.pick(self.slugs.len());
            let has_referred = self.oracle.people.iter().any(|person| person.referrer == Some(who));
            let may_change = is_up_to_date && n == 0 || !has_referred;
            match self.pick(30) {
                0..=4 if !self.oracle.people[who].is_member && (may_change || !self.oracle.people[who].has_joined) => {
                    self.join(fixture, who, now).await;
                }
                0..=4 => {}
                5..=9 => self.press(fixture, who, campaign, Press::Accept, now).await,
                10 => self.press(fixture, who, campaign, Press::Pass, now).await,
                11 => self.leave(fixture, who, now).await,
                12 | 20..=22 if is_up_to_date && n == 0 => {
                    let referrer = self.pick(REFERRERS);
                    self.erase(fixture, referrer, now).await;
                }
                12 if !has_referred => self.erase(fixture, who, now).await,
                13..=16 => self.step(fixture, campaign, now).await,
                23..=29 => self.says(fixture, who, campaign, now),
                17 | 18 => self.void(fixture, who, campaign, now).await,
                _ => self.settle(fixture, now).await,
            }
        }
    }

    async fn join(&mut self, fixture: &Fixture, who: usize, now: Timestamp) {
        let store = &fixture.store;
        // Mostly by the link of one of two.
        let link = if who >= REFERRERS { Some(self.pick(REFERRERS)) } else { Some(self.pick(PEOPLE)) };
        let link = link.filter(|other| *other != who && self.pick(10) > 0);
        self.tell(now, format!("{who} joins by the link of {link:?}"));
        let email = self.emails[who].clone();
        if self.oracle.people[who].is_erased {
            assert!(
                store.run(Revive { email: email.clone(), marks: marks(email.as_typed()), now }).await.unwrap(),
                "{}",
                self.story()
            );
        }
        let ref_code = link.map(|other| fixture.person(self.emails[other].as_typed()).code);
        let new = NewSignUp { ref_code, ..fixture.new_sign_up(email.as_typed()) };
        store.sign_up(new, now).await.unwrap();
        let file = fixture.file_at(email.normalized(), now).await.unwrap();
        let sign_up = of_entry(file.sign_ups.last().unwrap());
        let done = store.confirm(sign_up, SeenPage::default(), now).await;
        assert!(matches!(done, Ok(Confirmation::Joined(_))), "{}", self.story());
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&self.seed.to_be_bytes());
        nonce[8..].copy_from_slice(&(self.told.len() as u64).to_be_bytes());
        self.sessions[who] = store.run(EnterByJoining(sign_up, Nonce::from_random(&nonce))).await.unwrap();
        self.oracle.join(who, link, now.as_millis());
    }

    async fn press(&mut self, fixture: &Fixture, who: usize, campaign: usize, press: Press, now: Timestamp) {
        let is_open = matches!(self.oracle.campaigns[campaign].state, "offered" | "active");
        let Some(session) = self.sessions[who].clone().filter(|_| is_open && self.oracle.people[who].is_member) else {
            return;
        };
        self.tell(now, format!("{who} presses {} at {campaign}", press.name()));
        let done = fixture.store.run(pressing(&session, &self.slugs[campaign], press, None, now)).await;
        assert!(matches!(done, Ok(Pressed::Done(_))), "{done:?}: {}", self.story());
        if press == Press::Pass {
            end_acceptances(fixture, self.ids[who], Some(&self.slugs[campaign]), now);
        }
        self.oracle.press(who, campaign, press == Press::Accept, now.as_millis());
    }

    /// The supplier says what became of an order.
    fn says(&mut self, fixture: &Fixture, who: usize, campaign: usize, now: Timestamp) {
        let part = self.oracle.people[who].parts[campaign];
        let is_member = self.oracle.people[who].is_member;
        if part.accepted_at.is_none() || !is_member {
            return;
        }
        let (statuses, is_today): (&[&'static str], _) = match part.status {
            None => (&["ordered", "switched", "switched", "rejected"], self.pick(2) == 0),
            Some("ordered") => (&["switched", "rejected"], self.pick(2) == 0),
            Some("switched") => (&["rejected", "cancelled"], true),
            // Where accepting counts there is no other hold.
            Some(_)
                if matches!(
                    self.oracle.campaigns[campaign].active,
                    Some((_, Terms { counts_on: CountsOn::Switched, .. }))
                ) =>
            {
                (&["switched"], true)
            }
            Some(_) => return,
        };
        let status = statuses[self.pick(statuses.len())];
        let at = if is_today { now } else { now.minus(DAY) };
        self.tell(now, format!("the supplier of {campaign} says {status} of {who} since {at}"));
        supplier_says(fixture, (self.ids[who], &self.slugs[campaign]), status, at);
        self.oracle.says(who, campaign, status, at.as_millis());
    }

    async fn leave(&mut self, fixture: &Fixture, who: usize, now: Timestamp) {
        if !self.oracle.people[who].is_member {
            return;
        }
        self.tell(now, format!("{who} leaves"));
        let account = self.account_for(who);
        fixture.run(Leave { email_normalized: self.emails[who].normalized(), account, now }).await;
        end_acceptances(fixture, self.ids[who], None, now);
        self.oracle.leave(who, now.as_millis());
    }

    async fn erase(&mut self, fixture: &Fixture, who: usize, now: Timestamp) {
        let email = self.emails[who].clone();
        let Some(file) = fixture.run(FindPerson(email.normalized(), now)).await else { return };
        if let Some(account) = file.person.account {
            self.accounts.insert(self.oracle.purse(who), account.as_str().to_owned());
        }
        let waives = self.pick(2) == 0;
        self.tell(now, format!("{who} is erased, and waives: {waives}"));
        let (account, waived_by) = (self.account_for(who), waives.then(|| Waiver::of_all("themselves")));
        let erase = || {
            fixture.store.run(Erase {
                email_normalized: email.normalized(),
                marks: marks(email.as_typed()),
                account: account.clone(),
                waiver: waived_by.clone(),
                now,
            })
        };
        let (due, erased) = (self.oracle.due_with_unwritten(self.oracle.purse(who)), erase().await.unwrap().unwrap());
        match self.oracle.erase(who, waives) {
            true => {
                assert!(erased.is_ok_and(|erased| erased.is_whole), "{}", self.story());
                end_acceptances(fixture, self.ids[who], None, now);
            }
            false => assert_eq!(erased.map_err(|refused| refused.cents), Err(due), "{}", self.story()),
        }
    }

    fn account_for(&self, who: usize) -> AccountId {
        new_account((1 << 63) | self.seed << 24 | (self.told.len() as u64) << 8 | who as u64)
    }

    async fn step(&mut self, fixture: &Fixture, campaign: usize, now: Timestamp) {
        let terms = Terms {
            cents: [10_000, 5_000][self.pick(2)],
            size: 1 + self.pick(3) / 2,
            most: 1 + self.pick(5),
            hold: 86_400_000 * [0, 2, 5][self.pick(3)],
            counts_on: CountsOn::ALL[self.pick(3) / 2],
        };
        let (step, to) = match (self.oracle.campaigns[campaign].state, self.pick(6)) {
            ("gathering", _) => {
                fixture.run(bidding(&self.slugs[campaign], BID, now)).await;
                (publication(["2028-12-25", "2028-12-28"]), "offered")
            }
            ("offered", 1..) => (
                TakenStep::Activate(ReferralTerms {
                    reward_per_group: (terms.cents / 100) as u32,
                    group_size: terms.size as u32,
                    max_groups: terms.most as u32,
                    hold_days: (terms.hold / 86_400_000) as u32,
                    counts_on: terms.counts_on,
                }),
                "active",
            ),
            ("active", 1) => (TakenStep::Plain(CampaignStep::Close), "closed"),
            ("active" | "offered", 0) => (TakenStep::Plain(CampaignStep::Cancel), "cancelled"),
            _ => return,
        };
        self.tell(now, format!("{campaign} becomes {to} {terms:?}"));
        let name = slug(&self.slugs[campaign]);
        let done = fixture
            .store
            .run(StepCampaign { slug: name, step, who: "op".to_owned(), note: (String::new(), false), now })
            .await;
        assert!(matches!(done, Ok(Stepped::Done(_))), "{done:?}: {}", self.story());
        let kept = &mut self.oracle.campaigns[campaign];
        kept.state = to;
        match to {
            "active" => kept.active = Some((now.as_millis(), terms)),
            "cancelled" => kept.cancelled_at = Some(now.as_millis()),
            _ => {}
        }
    }

    async fn void(&mut self, fixture: &Fixture, who: usize, campaign: usize, now: Timestamp) {
        // Often somebody whose group is being paid, else too little would be reversed.
        let is_paid = |who: &usize| {
            let part = self.oracle.people[*who].parts[campaign];
            let group = part.group.or(part.before.and_then(|before| before.group));
            group.is_some_and(|group| self.oracle.groups[group].payout.is_some())
        };
        let paid: Vec<_> = (0..PEOPLE).filter(is_paid).collect();
        let who = if paid.is_empty() || self.pick(3) == 0 { who } else { paid[self.pick(paid.len())] };
        self.tell(now, format!("{who} is voided at {campaign}"));
        let marker = AddressMarker::new(&Secret::new(&"s".repeat(32)).unwrap());
        let email = &self.emails[who];
        let address = if self.oracle.people[who].is_erased { marker.tombstone(email) } else { email.normalized() };
        let void = fixture.store.run(voiding(&address, &self.slugs[campaign], now));
        let got = match void.await.unwrap() {
            Voided::Done { group, reversed_cents, .. } => Some((group.map(|state| state.name()), reversed_cents)),
            Voided::Already | Voided::NotReferred => None,
            Voided::NotInCampaign => {
                let part = self.oracle.people[who].parts[campaign];
                assert!(part.accepted_at.is_none() || self.oracle.people[who].is_erased, "{}", self.story());
                return;
            }
            other => panic!("{other:?}: {}", self.story()),
        };
        assert_eq!(got, self.oracle.void(who, campaign), "{}", self.story());
    }

    async fn settle(&mut self, fixture: &Fixture, now: Timestamp) {
        if self.external_ids.is_empty() {
            return;
        }
        let (payout, is_paid) = (self.pick(self.external_ids.len()), self.pick(2) == 0);
        // Nobody has a file that was not written.
        if self.oracle.payouts[payout].is_unwritten() {
            return;
        }
        self.tell(now, format!("payout {payout} is paid: {is_paid}"));
        let settlement = Settlement {
            external_id: self.external_ids[payout].clone(),
            is_paid,
            reference: None,
            paid_at: is_paid.then_some(now),
            reason: None,
        };
        let settled = fixture.run(SettlePayouts { settlements: vec![settlement], who: "op".to_owned(), now }).await;
        assert_eq!(settled.booked == 1, self.oracle.settle(payout, is_paid), "{}", self.story());
    }

    fn is_nothing_due(&self) -> bool {
        (0..PEOPLE).all(|who| self.oracle.due(self.oracle.purse(who)) <= 0)
    }

    /// The accounts of everybody who is there.
    fn learn_accounts(&mut self, kept: &Kept) {
        for (who, email) in self.emails.iter().enumerate() {
            if let Some((_, Some(account))) = kept.people.get(&email.normalized()) {
                self.accounts.insert(self.oracle.purse(who), account.clone());
            }
        }
    }

    fn purse_of(&self, account: &str) -> Option<Purse> {
        self.accounts.iter().find(|(_, kept)| *kept == account).map(|(purse, _)| *purse)
    }

    /// A batch took all that was due: the payouts from that place on.
    fn pay(&mut self, kept: &Kept, from: usize, batch: i64) {
        self.learn_accounts(kept);
        let before = self.oracle.payouts.len();
        self.oracle.pay(batch);
        self.told.push("a batch".to_owned());
        let ours = kept.payouts[from..].iter().filter(|row| self.purse_of(&row[1]).is_some());
        let mut ours: Vec<_> = ours.map(|row| (self.payout_of(row), row[0].clone())).collect();
        for payout in before..self.oracle.payouts.len() {
            let expected = self.expected_payout(payout);
            let place = ours.iter().position(|(of, _)| *of == expected);
            let place = place.unwrap_or_else(|| panic!("{expected:?} is not in {ours:?}: {}", self.story()));
            self.external_ids.push(ours.remove(place).1);
        }
        assert!(ours.is_empty(), "{ours:?} are too many: {}", self.story());
    }

    fn campaign_of(&self, slug: &str) -> Option<usize> {
        self.slugs.iter().position(|of| of == slug)
    }

    fn payout_of(&self, row: &[String]) -> (Option<Purse>, Option<usize>, i64, usize, String) {
        let campaign = self.campaign_of(&row[2]);
        (self.purse_of(&row[1]), campaign, row[3].parse().unwrap(), row[4].parse().unwrap(), row[5].clone())
    }

    fn expected_payout(&self, payout: usize) -> (Option<Purse>, Option<usize>, i64, usize, String) {
        let payout = &self.oracle.payouts[payout];
        (Some(payout.purse), Some(payout.campaign), payout.cents, payout.groups, payout.state.to_owned())
    }

    /// The id of each person: it stays theirs, whatever becomes of the address.
    fn learn_ids(&mut self, kept: &Kept) {
        self.ids = self.emails.iter().map(|email| kept.people[&email.normalized()].0).collect();
    }

    /// The worker did something, who knows how much: what groups there are, are those that come next.
    fn observe(&mut self, kept: &Kept, now: Timestamp) {
        self.tell(now, "the worker for some steps".to_owned());
        self.oracle.look(now.as_millis());
        // It looks at those first who ceased to count, in their order.
        while let Some((who, campaign)) = self.oracle.notes.first().copied()
            && !kept.notes.contains(&(self.slugs[campaign].clone(), self.ids[who]))
        {
            self.oracle.end_next();
        }
        for (who, id) in self.ids.clone().into_iter().enumerate() {
            let there = kept.groups.iter().filter(|row| row[1] == id.to_string()).count();
            while self.oracle.groups.iter().filter(|group| group.referrer == who).count() < there {
                assert!(self.oracle.form_group(who), "{who} has {there} groups: {}", self.story());
            }
        }
    }

    /// Everything that is kept is what the oracle says.
    fn compare(&mut self, kept: &Kept) {
        self.learn_accounts(kept);
        let who = |id: &str| self.ids.iter().position(|of| of.to_string() == id);
        // Groups by their place among their referrer's.
        let (mut places, mut got) = (BTreeMap::new(), vec![Vec::new(); PEOPLE]);
        for row in &kept.groups {
            if let Some(referrer) = who(&row[1]) {
                places.insert(row[0].clone(), (referrer, got[referrer].len()));
                got[referrer].push((self.campaign_of(&row[2]).unwrap(), row[3].as_str(), row[4] == "1"));
            }
        }
        let (mut own_places, mut expected) = (Vec::new(), vec![Vec::new(); PEOPLE]);
        for group in &self.oracle.groups {
            own_places.push((group.referrer, expected[group.referrer].len()));
            expected[group.referrer].push((group.campaign, group.state, group.payout.is_some()));
        }
        assert_eq!(got, expected, "groups: {}", self.story());
        // Who counts since when, and in which group; and who was voided.
        let (mut got, mut voided) = (BTreeSet::new(), BTreeSet::new());
        for row in &kept.qualifications {
            let Some(person) = who(&row[1]) else { continue };
            let campaign = self.campaign_of(&row[0]).unwrap();
            assert_eq!(who(&row[2]), self.oracle.people[person].referrer, "{}", self.story());
            let is_new = if row[5] == "1" {
                voided.insert((campaign, person))
            } else {
                got.insert((
                    campaign,
                    person,
                    row[3].parse::<i64>().unwrap(),
                    places.get(&row[4]).copied(),
                    row[6] == "1",
                ))
            };
            assert!(is_new, "twice: {}", self.story());
        }
        let (mut expected, mut expected_voided) = (BTreeSet::new(), BTreeSet::new());
        for (person, of) in self.oracle.people.iter().enumerate() {
            for (campaign, part) in of.parts.iter().enumerate() {
                if part.is_voided {
                    expected_voided.insert((campaign, person));
                } else if let Some(before) = part.before {
                    let place = before.group.map(|group| own_places[group]);
                    expected.insert((campaign, person, before.qualified_at, place, true));
                } else if let Some(at) = part.qualified_at {
                    expected.insert((campaign, person, at, part.group.map(|group| own_places[group]), false));
                }
            }
        }
        assert_eq!(got, expected, "who counts: {}", self.story());
        assert_eq!(voided, expected_voided, "{}", self.story());
        self.compare_money(kept);
    }

    fn compare_money(&self, kept: &Kept) {
        let line = |row: &Vec<String>| {
            let kinds = ["accrual", "reversal", "payout", "payout_failed"];
            let kind = *kinds.iter().find(|kind| **kind == row[2]).unwrap();
            let purse = self.purse_of(&row[0])?;
            Some(Line { purse, campaign: self.campaign_of(&row[1]), kind, cents: row[3].parse().unwrap() })
        };
        let mut got: Vec<_> = kept.ledger.iter().filter_map(line).collect();
        let mut expected = self.oracle.lines.clone();
        got.sort();
        expected.sort();
        assert_eq!(got, expected, "ledger: {}", self.story());
        let ours = kept.payouts.iter().filter(|row| self.purse_of(&row[1]).is_some());
        let mut got: Vec<_> = ours.map(|row| self.payout_of(row)).collect();
        let mut expected: Vec<_> = (0..self.oracle.payouts.len()).map(|payout| self.expected_payout(payout)).collect();
        got.sort();
        expected.sort();
        assert_eq!(got, expected, "payouts: {}", self.story());
        // The ledger is explained by what is there, whatever led to it.
        let sum: i64 = self.oracle.lines.iter().map(|line| line.cents).sum();
        let lives = self.oracle.groups.iter().filter(|group| matches!(group.state, "accrued" | "settled" | "waived"));
        let earned: i64 = lives.map(|group| self.oracle.campaigns[group.campaign].active.unwrap().1.cents).sum();
        let waived: i64 = self.oracle.lines.iter().filter(|line| line.campaign.is_none()).map(|line| -line.cents).sum();
        let paid = self.oracle.payouts.iter().filter(|payout| matches!(payout.state, "out" | "paid"));
        let paid: i64 = paid.map(|payout| payout.cents).sum();
        assert_eq!(sum, earned - waived - paid, "{}", self.story());
        for who in 0..PEOPLE {
            let rewarded = self.oracle.groups.iter().filter(|group| {
                group.referrer == who && matches!(group.state, "accrued" | "settled" | "waived" | "reversed")
            });
            let most = self.oracle.campaigns.iter().filter_map(|campaign| Some(campaign.active?.1.most)).max();
            assert!(rewarded.count() <= most.unwrap_or(0), "{}", self.story());
        }
    }

    /// What everybody is shown of theirs.
    async fn compare_standings(&self, fixture: &Fixture, now: Timestamp) {
        for (who, email) in self.emails.iter().enumerate() {
            let Some(file) = fixture.run(FindPerson(email.normalized(), now)).await else { continue };
            let (standing, oracle, purse) = (file.rewards, &self.oracle, self.oracle.purse(who));
            let money = (standing.due_cents, standing.out_cents, standing.paid_cents);
            let unwritten = oracle.unwritten(purse);
            let expected =
                (oracle.due(purse) + unwritten, oracle.paid(purse, "out") - unwritten, oracle.paid(purse, "paid"));
            assert_eq!(money, expected, "{who}: {}", self.story());
            for campaign in 0..self.slugs.len() {
                let shown = standing.campaigns.iter().find(|of| of.campaign.as_str() == self.slugs[campaign]);
                let shown = shown.map_or((0, 0, 0, 0), |of| (of.groups, of.capped, of.waiting, of.on_hold));
                let groups = |state: &str| {
                    let is = |group: &&super::reward_oracle::Group| {
                        group.referrer == who && group.campaign == campaign && group.state == state
                    };
                    oracle.groups.iter().filter(is).count() as u32
                };
                let on_hold = |other: &usize| {
                    let person = &oracle.people[*other];
                    let part = person.parts[campaign];
                    let is_open = matches!(oracle.campaigns[campaign].state, "active" | "closed");
                    let ends = oracle.hold_ends(*other, campaign);
                    let counts = part.qualified_at.is_some() || part.is_voided || part.before.is_some();
                    person.referrer == Some(who)
                        && person.is_member
                        && is_open
                        && oracle.takes_part(*other, campaign)
                        && !counts
                        && ends.is_some_and(|ends| ends > now.as_millis())
                };
                let waiting = oracle.waiting(who, campaign).len() as u32;
                let on_hold = (0..PEOPLE).filter(on_hold).count() as u32;
                assert_eq!(shown, (groups("accrued"), groups("capped"), waiting, on_hold), "{who}: {}", self.story());
            }
        }
    }

    /// What there was of groups and payouts.
    fn states(&self) -> BTreeSet<&'static str> {
        let left_over = self.oracle.payouts.iter().any(|payout| payout.groups == 0).then_some("left over");
        let parts = self.oracle.people.iter().flat_map(|person| &person.parts);
        let kept = parts.filter_map(|part| part.before).any(|before| before.is_kept).then_some("ended");
        let groups = self.oracle.groups.iter().map(|group| group.state).chain(kept);
        let payouts = self.oracle.payouts.iter().map(|payout| payout.state).filter(|state| *state != "out");
        groups.chain(payouts).chain(left_over).collect()
    }
}
