//! The overview of the operator's page: what it costs, and how often it is read.

use std::time::Instant;

use super::*;
use unionhall::clock::Moment;
use unionhall::domain::api_key::Mode;
use unionhall::domain::time::Tick;
use unionhall::operator::Operator;
use unionhall::operator::overview::{KeptOverview, Overview};

/// People, sign-ups and lines of the ledger: a look at each of them takes many times as long as the whole overview.
const ROWS: u32 = 100_000;

impl Fixture {
    async fn overview(&self, kept: &KeptOverview, seconds: u64) -> Arc<Overview> {
        let operator = Operator::new(Arc::clone(&self.store), Mode::Live);
        let now = Moment { time: NOW, tick: Tick::from_micros(seconds * 1_000_000) };
        kept.get(&operator, now).await.unwrap()
    }

    /// How long reading it takes, in seconds: the best of some, which nothing else on the machine delayed.
    #[expect(clippy::disallowed_methods, reason = "how long it takes is what is measured")]
    async fn overview_takes(&self) -> f64 {
        let mut best = f64::MAX;
        for _ in 0..15 {
            let start = Instant::now();
            self.overview(&KeptOverview::default(), 0).await;
            best = best.min(start.elapsed().as_secs_f64());
        }
        best
    }
}

pub(super) async fn an_overview_costs_the_same_at_any_size(fixture: &Fixture) {
    let before = fixture.overview_takes().await;
    let now = NOW.as_millis();
    let numbers = format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})");
    let address = "'p' || i || '@example.com'";
    for rows in [
        format!(
            "INSERT INTO people (email, email_normalized, mailbox, code, state, created_at, joined_at)
             {numbers} SELECT {address}, {address}, {address}, CAST(100000000000 + i AS TEXT), 'member', {now}, {now} FROM n"
        ),
        format!(
            "INSERT INTO sign_ups (person_id, state, consent_version, created_at, updated_at, expires_at, decided_at)
             SELECT id, 'confirmed', 1, {now}, {now}, {now}, {now} FROM people"
        ),
        format!(
            "INSERT INTO reward_ledger (account, kind, amount_cents, at, who, why)
             {numbers} SELECT 'account' || i % 1000, 'accrual', 1, {now}, 'rules', '' FROM n"
        ),
        "INSERT INTO referrers (person_id, members) SELECT id, 1 FROM people".to_owned(),
        "UPDATE rollup SET sign_up_id = (SELECT max(id) FROM sign_ups)".to_owned(),
        "ANALYZE".to_owned(),
    ] {
        fixture.records.execute(&rows);
    }
    let after = fixture.overview_takes().await;
    // A look at every row takes five milliseconds and more.
    assert!(after < before * 2.0 + 0.001, "{before} s before, {after} s after");
}

pub(super) async fn operators_who_ask_at_once_share_one_overview(fixture: &Fixture) {
    let kept = KeptOverview::default();
    let (one, other) = tokio::join!(fixture.overview(&kept, 0), fixture.overview(&kept, 1));
    assert!(Arc::ptr_eq(&one, &other), "one reads, and the other is given the same");
    assert!(Arc::ptr_eq(&one, &fixture.overview(&kept, 29).await));
    assert!(!Arc::ptr_eq(&one, &fixture.overview(&kept, 30).await), "it is read again once it is half a minute old");
}
