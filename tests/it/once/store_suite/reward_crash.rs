//! A batch whose process is killed between any two steps: nobody is paid twice, and nothing is lost.

use std::os::unix::process::ExitStatusExt;

use super::*;
use unionhall::rewards::ended::EndNoted;

/// What the process that dies is to do: where the records are, which task, and after how many steps.
const TASK: &str = "UNIONHALL_TEST_REWARD_TASK";

/// Payouts that one step settles: fewer than the service takes, so that there are more steps.
const AT_ONCE: usize = 50;

/// Referrers to whom rewards are due, in two campaigns each: more than two steps put into a batch.
const REFERRERS: usize = 120;

/// The provider's answer: every third fails.
fn answers(payouts: &[PayoutRecord]) -> Vec<Settlement> {
    let answer = |(n, payout): (usize, &PayoutRecord)| Settlement {
        external_id: payout.external_id.clone(),
        is_paid: n % 3 > 0,
        reference: None,
        paid_at: (n % 3 > 0).then_some(NOW),
        reason: None,
    };
    payouts.iter().enumerate().map(answer).collect()
}

/// Not a test by itself: what is killed. It does so many steps of its task, as the command does, and is gone.
#[test]
fn the_process_that_is_killed() {
    let Ok(task) = std::env::var(TASK) else { return };
    let [place, what, steps] = task.split('|').collect::<Vec<_>>()[..] else { panic!("{task}") };
    let steps: usize = steps.parse().unwrap();
    block_on(async {
        let store = if place.starts_with("postgres") {
            let address = unionhall::store::postgres::Address::parse(place).unwrap();
            OpenStore::new(PostgresStore::open(address, Prepare::Upgrade, 256).await.unwrap())
        } else {
            OpenStore::new(SqliteStore::open(&Path::new(place).join("unionhall.db")).unwrap())
        };
        if what == "end" {
            for _ in 0..steps {
                store.run(EndNoted(NOW)).await.unwrap();
            }
        } else if what == "make" {
            if what == "hand over" {
                hand_over(&store, steps).await;
                Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status().unwrap();
            }
            let batch = store.run(BeginBatch { who: "op".to_owned(), now: NOW }).await.unwrap();
            for _ in 0..steps {
                store.run(FillBatch { batch: batch.unwrap(), who: "op".to_owned(), now: NOW }).await.unwrap();
            }
        } else {
            let payouts = store.run(ListPayouts(1, 0)).await.unwrap().payouts;
            for some in answers(&payouts).chunks(AT_ONCE).take(steps) {
                store.run(SettlePayouts { settlements: some.to_vec(), who: "op".to_owned(), now: NOW }).await.unwrap();
            }
        }
        Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status().unwrap();
    });
    panic!("it is still there");
}

impl Fixture {
    /// A process does so many steps of a task and is killed.
    pub(super) fn kill_after(&self, what: &str, steps: usize) {
        let place = match &self.records {
            Records::Sqlite { data } => data.to_str().unwrap().to_owned(),
            Records::Postgres { store, .. } => store.clone(),
        };
        let mut process = Command::new(std::env::current_exe().unwrap());
        let test = "once::store_suite::reward_crash::the_process_that_is_killed";
        let done = process.args(["--exact", test]).env(TASK, format!("{place}|{what}|{steps}")).output().unwrap();
        assert_eq!(done.status.signal(), Some(9), "{}", String::from_utf8_lossy(&done.stdout));
    }

    /// Referrers with one group in each of two campaigns. The first was paid too much before, by half a group.
    async fn due_to_many(&self) {
        for slug in ["one-2027", "two-2027"] {
            self.make_campaign(slug, "").await;
            for step in [CampaignStep::Open, CampaignStep::Offer, CampaignStep::Activate] {
                self.step(slug, step, NOW).await;
            }
        }
        let person = |n| {
            format!(
                "('r{n}@example.com', 'r{n}@example.com', 'r{n}@example.com', 'code{n:08}', 'member', 'due{n:04}', 1, 1)"
            )
        };
        let people: Vec<_> = (0..REFERRERS).map(person).collect();
        self.records.execute(&format!(
            "INSERT INTO people (email, email_normalized, mailbox, code, state, account, created_at, joined_at) VALUES {};
             INSERT INTO referrers (person_id, rewarded_groups, rewarded_cents) SELECT id, 2, 20000 FROM people WHERE account LIKE 'due%';
             INSERT INTO reward_groups (referrer_id, campaign_id, state, formed_at)
             SELECT p.id, c.id, 'accrued', 1 FROM people p CROSS JOIN campaigns c WHERE p.account LIKE 'due%';
             INSERT INTO reward_ledger (account, campaign_id, kind, amount_cents, at, who, why)
             SELECT p.account, c.id, 'accrual', 10000, 1, 'rules', 'a group' FROM people p CROSS JOIN campaigns c WHERE p.account LIKE 'due%';
             INSERT INTO reward_ledger (account, campaign_id, kind, amount_cents, at, who, why)
             VALUES ('due0000', 1, 'reversal', -5000, 1, 'op', 'twins')",
            people.join(", ")
        ));
    }
}

pub(super) async fn a_batch_that_is_killed_pays_nobody_twice_and_loses_nothing(fixture: &Fixture) {
    fixture.due_to_many().await;
    let number = |sql: &str| fixture.records.number(sql);
    let due = "SELECT CAST(coalesce(sum(amount_cents), 0) AS BIGINT) FROM reward_ledger";
    let (payouts, earned) = (REFERRERS as i64 * 2, REFERRERS as i64 * 20_000 - 5_000);
    assert_eq!(number(due), earned);
    let admin = RewardAdmin::new(Store::clone(&fixture.store));
    // After it was begun, and after each step; the last of them finds nobody.
    let mut made = Vec::new();
    for steps in [0, 1, 1, 1, 1] {
        fixture.kill_after("make", steps);
        made.push(number("SELECT count(*) FROM payouts"));
    }
    assert_eq!(made, [0, 100, 200, 240, 240], "each step is whole, and none is done twice");
    let batch = admin.make_batch("op", NOW).await.unwrap().unwrap();
    let page = admin.ask(ListPayouts(batch, 0)).await.unwrap();
    assert_eq!((batch, page.payouts.len() as i64, page.next), (1, payouts, None));
    let twice =
        "SELECT count(*) FROM (SELECT account FROM payouts GROUP BY account, campaign_id HAVING count(*) > 1) twice";
    let unpaid = "SELECT count(*) FROM reward_groups WHERE payout_id IS NULL";
    assert_eq!((number(twice), number(unpaid), number(due)), (0, 0, 0));
    assert_eq!(page.payouts.iter().map(|payout| payout.amount_cents).sum::<i64>(), earned);
    // Killed after its file was written and before that was noted: the same file comes again.
    assert_eq!(admin.make_batch("op", NOW).await.unwrap(), Some(batch));
    assert_eq!(admin.ask(ListPayouts(batch, 0)).await.unwrap().payouts, page.payouts);
    admin.note_written(batch, NOW).await.unwrap();
    assert_eq!(admin.make_batch("op", NOW).await.unwrap(), None);
    // The provider's answer, given again after each crash.
    for steps in 0..=4 {
        fixture.kill_after("settle", steps);
        let settled = number("SELECT count(*) FROM payouts WHERE state <> 'out'");
        assert_eq!(settled, (steps * AT_ONCE) as i64);
    }
    let answers = answers(&page.payouts);
    let failed: Vec<_> = page.payouts.iter().step_by(3).collect();
    let failed_cents: i64 = failed.iter().map(|payout| payout.amount_cents).sum();
    assert_eq!(admin.settle(&answers, "op", NOW).await.unwrap().booked, 40);
    assert_eq!(admin.settle(&answers, "op", NOW).await.unwrap().booked, 0);
    let lines = "SELECT count(*) FROM reward_ledger WHERE kind = 'payout_failed'";
    assert_eq!((number(lines), number(due)), (failed.len() as i64, failed_cents), "what failed is due again, once");
    // And goes out again, under other names.
    let batch = admin.make_batch("op", NOW).await.unwrap().unwrap();
    let page = admin.ask(ListPayouts(batch, 0)).await.unwrap();
    assert_eq!(page.payouts.iter().map(|payout| payout.amount_cents).sum::<i64>(), failed_cents);
    let names: HashSet<_> = page.payouts.iter().map(|payout| &payout.external_id).collect();
    assert!(failed.iter().all(|payout| !names.contains(&payout.external_id)));
    assert_eq!((names.len(), number(due)), (failed.len(), 0));
}

/// Members of fifty groups passed. Each is taken out once, and what is left is paid.
pub(super) async fn who_is_taken_out_while_it_is_killed_is_taken_out_once(fixture: &Fixture) {
    fixture.due_to_many().await;
    fixture.records.execute(
        "INSERT INTO qualifications (campaign_id, person_id, referrer_id, qualified_at, group_id)
         SELECT g.campaign_id, 1000000 + g.id, g.referrer_id, 1, g.id FROM reward_groups g WHERE g.campaign_id = 1 ORDER BY g.id LIMIT 50;
         INSERT INTO disqualifications (campaign_id, person_id, why)
         SELECT campaign_id, person_id, 'passed' FROM qualifications ORDER BY id",
    );
    let number = |sql: &str| fixture.records.number(sql);
    let dissolved = "SELECT count(*) FROM reward_groups WHERE state = 'dissolved'";
    let mut left = Vec::new();
    for steps in [0, 1, 1, 1] {
        fixture.kill_after("end", steps);
        left.push((number("SELECT count(*) FROM disqualifications"), number(dissolved)));
    }
    assert_eq!(left, [(50, 0), (30, 20), (10, 40), (0, 50)]);
    let due = "SELECT CAST(coalesce(sum(amount_cents), 0) AS BIGINT) FROM reward_ledger";
    let earned = REFERRERS as i64 * 20_000 - 5_000 - 50 * 10_000;
    assert_eq!((number(due), number("SELECT count(*) FROM qualifications")), (earned, 0));
    let admin = RewardAdmin::new(Store::clone(&fixture.store));
    let batch = admin.make_batch("op", NOW).await.unwrap().unwrap();
    let payouts = admin.ask(ListPayouts(batch, 0)).await.unwrap().payouts;
    assert_eq!((payouts.iter().map(|payout| payout.amount_cents).sum::<i64>(), number(due)), (earned, 0));
}
