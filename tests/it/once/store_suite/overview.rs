//! The overview of the operator's page: how often it is read. What it reads is counted in `growth`.

use super::*;
use unionhall::clock::Moment;
use unionhall::operator::Operator;
use unionhall::operator::overview::{KeptOverview, Overview};

impl Fixture {
    async fn overview(&self, kept: &KeptOverview, seconds: u64) -> Arc<Overview> {
        let operator = Operator::new(Store::clone(&self.store), Mode::Live);
        let now = Moment { time: NOW, tick: Tick::from_micros(seconds * 1_000_000) };
        kept.get(&operator, now).await.unwrap()
    }
}

pub(super) async fn operators_who_ask_at_once_share_one_overview(fixture: &Fixture) {
    let kept = KeptOverview::default();
    let (one, other) = tokio::join!(fixture.overview(&kept, 0), fixture.overview(&kept, 1));
    assert!(Arc::ptr_eq(&one, &other), "one reads, and the other is given the same");
    assert!(Arc::ptr_eq(&one, &fixture.overview(&kept, 29).await));
    assert!(!Arc::ptr_eq(&one, &fixture.overview(&kept, 30).await), "it is read again once it is half a minute old");
}
