//! Rewards: who counts for whom, groups, what is due, and payouts.

use super::campaigns::{TERMS, slug};
use super::*;
use unionhall::campaigns::Pressed;
use unionhall::domain::campaign::CampaignStep;
use unionhall::domain::campaign::participation::{ParticipationState, Press};
use unionhall::domain::reward::GroupState;
use unionhall::domain::reward::ledger::RewardStanding;
use unionhall::domain::reward::payout::PayoutState;
use unionhall::domain::secret::session::Nonce;
use unionhall::rewards::{RewardAdmin, Voided, worker};

const CAMPAIGN: &str = "internet-2027";

/// When a campaign becomes active here.
fn active_at() -> Timestamp {
    after(20 * DAY)
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
        let pressed = self.store.press(session.clone(), slug(CAMPAIGN), Press::Accept, None, now).await.unwrap();
        assert_eq!(pressed, Pressed::Done(Some(ParticipationState::Accepted)));
    }

    async fn offer_campaign(&self) {
        self.make_campaign(CAMPAIGN, "").await;
        for step in [CampaignStep::Open, CampaignStep::Offer] {
            self.step(CAMPAIGN, step, after(DAY)).await;
        }
    }

    async fn reward(&self, now: Timestamp) {
        worker::work(&*self.store, || now).await.unwrap();
    }

    async fn rewards_of(&self, address: &str) -> RewardStanding {
        self.file_at(address.to_owned(), NOW).await.unwrap().rewards
    }

    fn reward_admin(&self) -> RewardAdmin {
        RewardAdmin::new(Arc::clone(&self.store) as _)
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
    assert_eq!((standing.due_cents, campaign.groups, campaign.waiting, campaign.missing()), (20_000, 2, 1, 1));
    fixture.reward(after_hold()).await;
    assert_eq!(fixture.rewards_of("ana@example.com").await, standing, "again changes nothing");
    // A batch takes it all, once.
    let admin = fixture.reward_admin();
    let batch = admin.make_batch("op", after_hold()).await.unwrap().unwrap();
    assert_eq!(admin.make_batch("op", after_hold()).await.unwrap(), Some(batch), "its file was never written");
    let page = admin.payouts_of(batch, 0).await.unwrap();
    assert_eq!(
        page.payouts.iter().map(|payout| (payout.amount_cents, payout.groups)).collect::<Vec<_>>(),
        [(20_000, 2)]
    );
    admin.note_written(batch, after_hold()).await.unwrap();
    assert_eq!(admin.make_batch("op", after_hold()).await.unwrap(), None);
    let standing = fixture.rewards_of("ana@example.com").await;
    assert_eq!((standing.due_cents, standing.out_cents), (0, 20_000));
    // One of the paid group is voided: it is reversed, and netted.
    let voided = fixture
        .store
        .void_person(
            "friend1@example.com".to_owned(),
            slug(CAMPAIGN),
            "twins".to_owned(),
            "op".to_owned(),
            after_hold(),
        )
        .await;
    assert_eq!(voided.unwrap(), Voided::Done { group: Some(GroupState::Reversed), reversed_cents: 10_000 });
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
    let history = fixture.store.reward_history(ana.id, ana.account).await.unwrap();
    assert_eq!(
        history.ledger.iter().map(|line| line.amount_cents).collect::<Vec<_>>(),
        [10_000, 10_000, -20_000, -10_000]
    );
    assert_eq!((history.payouts[0].amount_cents, history.payouts[0].state), (20_000, PayoutState::Out));
    let friend = fixture.file_at("friend1@example.com".to_owned(), NOW).await.unwrap().person;
    let history = fixture.store.reward_history(friend.id, friend.account).await.unwrap();
    let counted = &history.counted_in[0];
    assert_eq!((counted.counted_at, counted.voided_at), (Some(after_hold()), Some(after_hold())));
}
