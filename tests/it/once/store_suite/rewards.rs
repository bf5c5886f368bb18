//! Rewards: who counts for whom, groups, what is due, and payouts.

use super::campaigns::{BID, TERMS, bidding, publication, slug};
use super::reward_histories::supplier_says;
use super::*;
use unionhall::domain::campaign::CampaignState;
use unionhall::domain::campaign::acceptance::Ended;
use unionhall::domain::reward::GroupState;
use unionhall::domain::reward::ledger::RewardStanding;
use unionhall::domain::reward::payout::PayoutState;
use unionhall::rewards::payout::{CloseBatch, FindNextBatch, ListPayoutsOut};
use unionhall::rewards::report::ListReviewedReferrers;
use unionhall::rewards::standing::FindRewardHistory;
use unionhall::rewards::{NextBatch, SettledPayouts, form_groups};

const CAMPAIGN: &str = "internet-2027";

/// When a campaign becomes active here.
fn active_at() -> Timestamp {
    after(20 * DAY)
}

/// A moment later, when nothing else happens.
fn paying() -> Timestamp {
    after_hold().plus(Duration::from_secs(90))
}

fn after_hold() -> Timestamp {
    active_at().plus(Duration::from_secs(24 * 3600) * TERMS.hold_days)
}

impl Fixture {
    /// Somebody who joins by that person's link, and accepts the campaign's offer.
    async fn referred(&self, address: &str, n: u8, code: ReferralCode) -> Nonce {
        let session = self.member_by(address, n, Some(code)).await;
        self.accept(&session, after(2 * DAY)).await;
        session
    }

    async fn accept(&self, session: &Nonce, now: Timestamp) {
        let pressed = self.run(pressing(session, CAMPAIGN, Press::Accept, None, now)).await;
        assert_eq!(pressed, Pressed::Done(Some(ParticipationState::Accepted)));
    }

    async fn offer_campaign(&self) {
        self.make_campaign(CAMPAIGN, "").await;
        for step in [CampaignStep::Open, CampaignStep::Offer] {
            self.step(CAMPAIGN, step, after(DAY)).await;
        }
    }

    async fn reward(&self, now: Timestamp) {
        worker::work(&self.store, || now).await.unwrap();
    }

    async fn rewards_of(&self, address: &str) -> RewardStanding {
        self.file_at(address.to_owned(), NOW).await.unwrap().rewards
    }

    fn reward_admin(&self) -> RewardAdmin {
        RewardAdmin::new(Store::clone(&self.store))
    }
}

pub(super) async fn full_groups_are_rewarded_once_the_hold_is_over(fixture: &Fixture) {
    fixture.offer_campaign().await;
    let code = fixture.join("ana@example.com").await;
    for n in 1..=5 {
        fixture.referred(&format!("friend{n}@example.com"), n, code).await;
    }
    fixture.step(CAMPAIGN, CampaignStep::Activate, active_at()).await;
    fixture.reward(active_at()).await;
    let standing = fixture.rewards_of("ana@example.com").await;
    assert_eq!((standing.due_cents, standing.campaigns[0].on_hold, standing.campaigns[0].waiting), (0, 5, 0));
    fixture.reward(after_hold()).await;
    let standing = fixture.rewards_of("ana@example.com").await;
    let campaign = &standing.campaigns[0];
    assert_eq!((standing.due_cents, campaign.groups, campaign.waiting, campaign.in_deal()), (20_000, 2, 1, 1));
    fixture.reward(after_hold()).await;
    assert_eq!(fixture.rewards_of("ana@example.com").await, standing, "again changes nothing");
    // A batch takes it all, once.
    let admin = fixture.reward_admin();
    let batch = admin.make_batch("op", after_hold()).await.unwrap().unwrap();
    assert_eq!(admin.make_batch("op", after_hold()).await.unwrap(), Some(batch), "its file was never written");
    let page = admin.ask(ListPayouts(batch, 0)).await.unwrap();
    assert_eq!(
        page.payouts.iter().map(|payout| (payout.amount_cents, payout.groups)).collect::<Vec<_>>(),
        [(20_000, 2)]
    );
    admin.note_written(batch, after_hold()).await.unwrap();
    assert_eq!(admin.make_batch("op", after_hold()).await.unwrap(), None);
    let standing = fixture.rewards_of("ana@example.com").await;
    assert_eq!((standing.due_cents, standing.out_cents), (0, 20_000));
    // One of the paid group is voided: it is reversed, and netted.
    let voided = fixture.store.run(voiding("friend1@example.com", CAMPAIGN, after_hold())).await;
    let group = Some(GroupState::Reversed);
    assert!(matches!(voided.unwrap(), Voided::Done { group: of, reversed_cents: 10_000, .. } if of == group));
    fixture.reward(after_hold()).await;
    let standing = fixture.rewards_of("ana@example.com").await;
    assert_eq!(
        (standing.due_cents, standing.campaigns[0].capped),
        (-10_000, 1),
        "the place of a paid group stays taken"
    );
    assert!(standing.campaigns[0].has_the_most && standing.rewarded_groups == TERMS.max_groups);
    // What each of them takes along.
    let ana = fixture.file_at("ana@example.com".to_owned(), NOW).await.unwrap().person;
    let history = fixture.run(FindRewardHistory(ana.id, ana.account)).await;
    assert_eq!(
        history.ledger.iter().map(|line| line.amount_cents).collect::<Vec<_>>(),
        [10_000, 10_000, -20_000, -10_000]
    );
    assert_eq!((history.payouts[0].amount_cents, history.payouts[0].state), (20_000, PayoutState::Out));
    let friend = fixture.file_at("friend1@example.com".to_owned(), NOW).await.unwrap().person;
    let history = fixture.run(FindRewardHistory(friend.id, friend.account)).await;
    let counted = &history.counted_in[0];
    assert_eq!((counted.counted_at, counted.voided_at), (Some(after_hold()), Some(after_hold().start_of_day())));
}

impl Fixture {
    /// A referrer of that many groups of two, whose hold is over; three may be rewarded.
    async fn rewarded(&self, groups: u8) {
        self.offer_campaign().await;
        let code = self.join("ana@example.com").await;
        for n in 1..=groups * 2 {
            self.referred(&format!("friend{n}@example.com"), n, code).await;
        }
        let activate = TakenStep::Activate(ReferralTerms { max_groups: 3, ..TERMS });
        let note = (String::new(), false);
        self.run(StepCampaign { slug: slug(CAMPAIGN), step: activate, who: "op".to_owned(), note, now: active_at() })
            .await;
        self.reward(paying()).await;
    }

    async fn void(&self, address: &str) -> Voided {
        self.run(voiding(address, CAMPAIGN, paying())).await
    }

    /// Makes a batch and its file; the payouts in it.
    async fn paid_out(&self) -> Vec<PayoutRecord> {
        let admin = self.reward_admin();
        let Some(batch) = admin.make_batch("op", paying()).await.unwrap() else { return Vec::new() };
        admin.note_written(batch, paying()).await.unwrap();
        admin.ask(ListPayouts(batch, 0)).await.unwrap().payouts
    }

    async fn settle_payout(&self, payout: &PayoutRecord, is_paid: bool) {
        let paid_at = is_paid.then(paying);
        let external_id = payout.external_id.clone();
        let settlement = Settlement { external_id, is_paid, reference: None, paid_at, reason: None };
        assert_eq!(
            self.run(SettlePayouts { settlements: vec![settlement], who: "op".to_owned(), now: paying() }).await.booked,
            1
        );
    }
}

/// Five friends accept, count and pass before the file of payouts is written. Where switching counts, they had switched.
pub(super) async fn whoever_passes_before_the_file_earns_nobody_anything(fixture: &Fixture) {
    let admin = fixture.reward_admin();
    for (n, counts_on) in (0..).zip(CountsOn::ALL) {
        let (name, ana) = (format!("{}-2027", counts_on.name()), format!("ana{n}@example.com"));
        fixture.make_campaign(&name, "").await;
        let note = || (String::new(), false);
        fixture.step(&name, CampaignStep::Open, after(DAY)).await;
        fixture.run(bidding(&name, BID, after(DAY))).await;
        let (step, who) = (publication(["2028-12-25", "2028-12-28"]), "op".to_owned());
        fixture.run(StepCampaign { slug: slug(&name), step, who, note: note(), now: after(DAY) }).await;
        let code = fixture.join(&ana).await;
        let mut friends = Vec::new();
        for friend in 1..=5 {
            let email = format!("friend{friend}-{n}@example.com");
            let session = fixture.member_by(&email, n * 10 + friend, Some(code)).await;
            fixture.run(pressing(&session, &name, Press::Accept, None, after(2 * DAY))).await;
            friends.push((session, fixture.file_at(email, NOW).await.unwrap().person.id));
        }
        let activate = TakenStep::Activate(ReferralTerms { counts_on, ..TERMS });
        let who = "op".to_owned();
        fixture.run(StepCampaign { slug: slug(&name), step: activate, who, note: note(), now: active_at() }).await;
        fixture.reward(after_hold()).await;
        let due = async || fixture.rewards_of(&ana).await.due_cents;
        if counts_on == CountsOn::Switched {
            assert_eq!(due().await, 0, "nobody switched");
            for (_, person) in &friends {
                supplier_says(fixture, (*person, &name), "ordered", active_at());
            }
            fixture.reward(after_hold()).await;
            assert_eq!(due().await, 0, "an order is no switch");
            for (_, person) in &friends {
                supplier_says(fixture, (*person, &name), "switched", active_at());
            }
            fixture.reward(after_hold()).await;
        }
        assert_eq!(due().await, 20_000, "two groups of two");
        for (session, _) in &friends {
            let passed = fixture.run(pressing(session, &name, Press::Pass, None, paying())).await;
            assert_eq!(passed, Pressed::Done(Some(ParticipationState::Passed)));
        }
        assert_eq!(admin.make_batch("op", paying()).await.unwrap(), None, "{counts_on:?}");
        let counting = "SELECT count(*) FROM qualifications";
        let groups = "SELECT count(*) FROM reward_groups WHERE state <> 'dissolved'";
        assert_eq!((due().await, fixture.records.number(counting), fixture.records.number(groups)), (0, 0, 0));
        // They accept again. Only another hold makes them count.
        if counts_on == CountsOn::Accepted {
            for (session, _) in &friends {
                let again = fixture.run(pressing(session, &name, Press::Accept, None, paying())).await;
                assert_eq!(again, Pressed::Done(Some(ParticipationState::Accepted)));
            }
            fixture.reward(paying().plus(DAY * 29)).await;
            assert_eq!(due().await, 0);
            fixture.reward(paying().plus(DAY * 30)).await;
            assert_eq!(due().await, 20_000);
            for (session, _) in &friends {
                fixture.run(pressing(session, &name, Press::Pass, None, paying().plus(DAY * 30))).await;
            }
        }
    }
}

/// As version 1.0.0 kept offers.
const OFFER_AS_TEXTS: &str = r#"supplier = "Example Fiber"
annual_saving = 240
term_months = 12
decide_by = 2027-01-25
complaints = "help@fiber.example"
benchmark = { price = "$68 a month", source = "survey", date = 2023-09-01 }
[text.en]
price = "$48"
exit_fee = "None"
[text.es]
price = "$48"
exit_fee = "Ninguno"
"#;

/// Nobody can say who switched to an offer of version 1.0.0.
pub(super) async fn an_offer_as_texts_counts_whoever_accepts(fixture: &Fixture) {
    let counts_on = async |slug: &str| {
        let activate = TakenStep::Activate(ReferralTerms { counts_on: CountsOn::Switched, ..TERMS });
        let note = (String::new(), false);
        let step =
            StepCampaign { slug: slug.parse().unwrap(), step: activate, who: "op".to_owned(), note, now: active_at() };
        assert_eq!(fixture.run(step).await, Stepped::Done(CampaignState::Active));
        fixture.records.rows(&format!("SELECT counts_on FROM campaigns WHERE slug = '{slug}'"))
    };
    for (slug, offer, expected) in [("now-2027", None, "switched"), ("before-2027", Some(OFFER_AS_TEXTS), "accepted")] {
        fixture.make_campaign(slug, "").await;
        for step in [CampaignStep::Open, CampaignStep::Offer] {
            fixture.step(slug, step, after(DAY)).await;
        }
        if let Some(offer) = offer {
            fixture.records.execute(&format!("UPDATE campaigns SET offer = '{offer}' WHERE slug = '{slug}'"));
        }
        assert_eq!(counts_on(slug).await, [[expected]]);
    }
}

/// Somebody leaves between a batch and its file, and somebody after it.
pub(super) async fn no_file_is_written_while_somebody_waits_to_be_taken_out(fixture: &Fixture) {
    fixture.rewarded(2).await;
    let admin = fixture.reward_admin();
    let leave = async |address: &str| {
        let account = AccountId::from_random(&[address.as_bytes()[6]; AccountId::ENTROPY]);
        fixture.run(Leave { email_normalized: email(address).normalized(), account, now: paying() }).await;
    };
    let due = async || fixture.rewards_of("ana@example.com").await.due_cents;
    let batch = admin.make_batch("op", paying()).await.unwrap().unwrap();
    leave("friend1@example.com").await;
    assert!(!fixture.run(CloseBatch(batch, paying())).await, "friend1 waits to be taken out");
    admin.close_batch(batch, "op", paying()).await.unwrap();
    let left = admin.ask(ListPayouts(batch, 0)).await.unwrap().payouts;
    assert!(left.iter().all(|payout| payout.state == PayoutState::Failed), "its file has nothing");
    assert_eq!(due().await, 10_000, "a group of two is left");
    admin.note_written(batch, paying()).await.unwrap();
    let batch = admin.make_batch("op", paying()).await.unwrap().unwrap();
    admin.close_batch(batch, "op", paying()).await.unwrap();
    // Its file may be out: friend3 is shown in the review, and nothing else changes.
    leave("friend3@example.com").await;
    fixture.reward(paying()).await;
    let state = "SELECT g.state, q.ended_why FROM qualifications q JOIN reward_groups g ON g.id = q.group_id WHERE q.ended_on IS NOT NULL";
    assert_eq!(fixture.records.rows(state), [["accrued", "left"]]);
    let reviewed = admin.ask(ListReviewedReferrers(0)).await.unwrap();
    let ended: Vec<_> = reviewed.iter().flat_map(|referrer| &referrer.ended).collect();
    assert_eq!(ended.len(), 1);
    let day = paying().start_of_day();
    assert_eq!(
        (ended[0].person.email.as_deref(), ended[0].ended, ended[0].batch),
        (Some("friend3@example.com"), Some((day, Ended::Left)), Some(batch))
    );
    let payouts = admin.ask(ListPayouts(batch, 0)).await.unwrap().payouts;
    admin.note_written(batch, paying()).await.unwrap();
    // It fails: what it paid for is looked at again before it is due.
    fixture.settle_payout(&payouts[0], false).await;
    assert_eq!(admin.make_batch("op", paying()).await.unwrap(), None);
    assert_eq!(due().await, 0);
    assert_eq!(admin.ask(ListReviewedReferrers(0)).await.unwrap().len(), 0);
}

/// A payout is out when its group is reversed, others are netted against it, and then it fails: nothing was ever paid too much, and what
/// was kept back is due, though no group is unpaid.
pub(super) async fn what_fails_after_its_group_was_reversed_is_paid(fixture: &Fixture) {
    fixture.rewarded(1).await;
    let shown = |payouts: &[PayoutRecord]| -> Vec<_> {
        payouts.iter().map(|payout| (payout.amount_cents, payout.groups)).collect()
    };
    let first = fixture.paid_out().await;
    assert_eq!(shown(&first), [(10_000, 1)]);
    fixture.void("friend1@example.com").await;
    let code = fixture.person("ana@example.com").code;
    for n in 3..=5 {
        fixture.referred(&format!("friend{n}@example.com"), n, code).await;
    }
    fixture.reward(paying()).await;
    let due = async || fixture.rewards_of("ana@example.com").await.due_cents;
    assert_eq!(due().await, 10_000, "two groups more, and one reversed");
    assert_eq!(shown(&fixture.paid_out().await), [(10_000, 2)], "one is netted");
    fixture.settle_payout(&first[0], false).await;
    assert_eq!(due().await, 10_000);
    assert_eq!(shown(&fixture.paid_out().await), [(10_000, 0)]);
    assert_eq!((due().await, fixture.rewards_of("ana@example.com").await.out_cents), (0, 20_000));
}

/// What a referrer earns next goes to what they were paid too much, and where that takes all of it they are in no batch.
pub(super) async fn what_is_netted_in_full_is_in_no_batch(fixture: &Fixture) {
    fixture.rewarded(1).await;
    let first = fixture.paid_out().await;
    fixture.settle_payout(&first[0], true).await;
    fixture.void("friend1@example.com").await;
    let due = async || fixture.rewards_of("ana@example.com").await.due_cents;
    assert_eq!(due().await, -10_000);
    let (ana, bob) = (fixture.person("ana@example.com").code, fixture.join("bob@example.com").await);
    fixture.referred("friend3@example.com", 3, ana).await;
    fixture.reward(paying()).await;
    assert_eq!(due().await, 0, "what was paid too much, and another group");
    let payouts = || fixture.records.number("SELECT count(*) FROM payouts");
    assert_eq!((fixture.paid_out().await, payouts()), (Vec::new(), 1), "no batch is made for nothing");
    // Nor are they in the batch of others.
    for n in 4..=5 {
        fixture.referred(&format!("friend{n}@example.com"), n, bob).await;
    }
    fixture.reward(paying()).await;
    let others = fixture.paid_out().await;
    assert_eq!(others.iter().map(|payout| payout.email.as_deref()).collect::<Vec<_>>(), [Some("bob@example.com")]);
    assert_eq!((due().await, payouts()), (0, 2));
    for n in 6..=7 {
        fixture.referred(&format!("friend{n}@example.com"), n, ana).await;
    }
    fixture.reward(paying()).await;
    let last = fixture.paid_out().await;
    assert_eq!(last.iter().map(|payout| (payout.amount_cents, payout.groups)).collect::<Vec<_>>(), [(10_000, 2)]);
    assert_eq!(due().await, 0);
}

/// A batch that was killed before its file was written pays nobody: what is in it is due, can be waived, and a void dissolves its groups.
pub(super) async fn a_batch_without_a_file_pays_nobody(fixture: &Fixture) {
    fixture.rewarded(2).await;
    let (admin, mut standing) = (fixture.reward_admin(), fixture.rewards_of("ana@example.com").await);
    let next = async || admin.ask(FindNextBatch).await.unwrap();
    assert_eq!(next().await, NextBatch::New);
    let batch = admin.make_batch("op", paying()).await.unwrap().unwrap();
    assert_eq!(next().await, NextBatch::Unwritten(batch));
    let account = fixture.file_at("ana@example.com".to_owned(), NOW).await.unwrap().person.account.unwrap();
    let out = async || admin.ask(ListPayoutsOut(account.clone())).await.unwrap();
    assert_eq!(out().await, [], "no file may be out");
    assert_eq!(fixture.rewards_of("ana@example.com").await, standing, "all of it is due, and nothing is being paid");
    let voided = fixture.void("friend1@example.com").await;
    assert_eq!(voided, Voided::Done { group: Some(GroupState::Dissolved), reversed_cents: 10_000, payout: None });
    standing = fixture.rewards_of("ana@example.com").await;
    assert_eq!((standing.due_cents, standing.out_cents), (10_000, 0));
    assert!(
        admin
            .ask(ListPayouts(batch, 0))
            .await
            .unwrap()
            .payouts
            .iter()
            .all(|payout| payout.state == PayoutState::Failed)
    );
    let payouts = fixture.paid_out().await;
    assert_eq!(payouts.iter().map(|payout| payout.amount_cents).collect::<Vec<_>>(), [10_000], "the next batch has it");
    let voided = fixture.void("friend3@example.com").await;
    let payout = Some(payouts[0].external_id.clone());
    let reversed = Voided::Done { group: Some(GroupState::Reversed), reversed_cents: 10_000, payout };
    assert_eq!(voided, reversed, "its file is there");
    assert_eq!((out().await, next().await), (payouts.clone(), NextBatch::NothingDue));
    let (open, has_more) = admin.open_batches().await.unwrap();
    let shown: Vec<_> = open.iter().map(|open| (open.id, open.is_written, open.out, open.out_cents)).collect();
    assert_eq!((shown, has_more), (vec![(payouts[0].batch, true, 1, 10_000)], false));
    // It fails, and nothing is due by it.
    let external_id = payouts[0].external_id.clone();
    let failed = Settlement { external_id, is_paid: false, reference: None, paid_at: None, reason: None };
    let settled = admin.settle(std::slice::from_ref(&failed), "op", paying()).await.unwrap();
    assert_eq!(settled, SettledPayouts { booked: 1, not_due: 1, ..SettledPayouts::default() });
    let settled = admin.settle(&[failed], "op", paying()).await.unwrap();
    assert_eq!((settled, out().await), (SettledPayouts::default(), Vec::new()));
    assert_eq!(admin.open_batches().await.unwrap().0, []);
}

/// Somebody earned, was paid, voided, failed and waived, and is erased: neither their account nor a moment of it is found anywhere else.
pub(super) async fn nothing_leads_from_somebody_who_was_erased_to_the_ledger(fixture: &Fixture) {
    fixture.rewarded(4).await;
    let payout = &fixture.paid_out().await[0];
    fixture.settle_payout(payout, true).await;
    fixture.void("friend1@example.com").await;
    fixture.settle_payout(payout, false).await;
    let rows = |sql: &str| fixture.records.rows(sql);
    let account = rows("SELECT DISTINCT account FROM reward_ledger")[0][0].clone();
    let erase = async |waived_by: Option<&str>| {
        fixture.run(erasing("ana@example.com", waived_by.map(Waiver::of_all), paying())).await.unwrap()
    };
    // The place of the group that was never paid went to the fourth.
    assert_eq!(erase(None).await.unwrap_err().cents, 30_000);
    assert!(erase(Some("themselves")).await.unwrap().is_whole);
    // A day is many people's.
    let moments = "SELECT DISTINCT at FROM reward_ledger WHERE at % 86400000 <> 0";
    let moments: HashSet<_> = rows(moments).into_iter().flatten().collect();
    assert!(!moments.is_empty());
    // Those name accounts alone; changes of membership on their way to the figures name nobody.
    let ledger =
        ["reward_ledger", "payouts", "payout_batches", "audit", "member_changes", "account_changes", "account_sums"];
    let mut looked_at = 0;
    for table in unionhall::store::transfer::TABLES.iter().filter(|table| !ledger.contains(&table.name)) {
        for row in rows(&format!("SELECT * FROM {}", table.name)) {
            let leads = row.iter().any(|cell| *cell == account || moments.contains(cell));
            assert!(!leads, "{}: {row:?}", table.name);
            looked_at += 1;
        }
    }
    assert!(looked_at > 20, "{looked_at}");
    assert_eq!(fixture.records.number("SELECT count(*) FROM reward_groups WHERE payout_id IS NOT NULL"), 0);
    assert_eq!(rows(&format!("SELECT sum(amount_cents) FROM reward_ledger WHERE account = '{account}'")), [["0"]]);
}

/// One referrer's groups are formed by themselves, however far the worker is behind with others.
pub(super) async fn the_groups_of_one_referrer_are_formed_alone(fixture: &Fixture) {
    fixture.offer_campaign().await;
    let (ana, bob) = (fixture.join("ana@example.com").await, fixture.join("bob@example.com").await);
    for n in 1..=6 {
        fixture.referred(&format!("friend{n}@example.com"), n, if n < 5 { ana } else { bob }).await;
    }
    fixture.step(CAMPAIGN, CampaignStep::Activate, active_at()).await;
    let due = async |address| fixture.rewards_of(address).await.due_cents;
    let person = fixture.file_at("ana@example.com".to_owned(), NOW).await.unwrap().person.id;
    form_groups(&fixture.store, person, active_at()).await.unwrap();
    assert_eq!(due("ana@example.com").await, 0, "their hold is not over");
    for _ in 0..2 {
        form_groups(&fixture.store, person, after_hold()).await.unwrap();
        assert_eq!((due("ana@example.com").await, due("bob@example.com").await), (20_000, 0));
    }
    fixture.reward(after_hold()).await;
    assert_eq!((due("ana@example.com").await, due("bob@example.com").await), (20_000, 10_000));
}

/// Whoever left a year ago is forgotten, but not while a reward is due to them.
pub(super) async fn whoever_is_due_a_reward_is_not_forgotten(fixture: &Fixture) {
    fixture.rewarded(1).await;
    let ana = email("ana@example.com");
    let unused = AccountId::from_random(&[7; AccountId::ENTROPY]);
    fixture.run(Leave { email_normalized: ana.normalized(), account: unused, now: paying() }).await;
    let later = paying().plus(DAY * 400);
    walk(fixture, later).await;
    assert_eq!(fixture.rewards_of("ana@example.com").await.due_cents, 10_000);
    let payout = &fixture.paid_out().await[0];
    fixture.settle_payout(payout, true).await;
    walk(fixture, later).await;
    assert!(fixture.file_at("ana@example.com".to_owned(), later).await.is_none());
}
