//! What a negotiator notes, and what operators do with it.

use super::campaigns::{BID, OFFER, bidding, publication, slug};
use super::*;
use unionhall::campaigns::Noted;
use unionhall::campaigns::bids::{AddBidFromSeat, BidAdded};
use unionhall::campaigns::drafts::{AddOfferDraft, ListOfferDrafts, ListWaitingDrafts, RejectDraft, Rejected};
use unionhall::campaigns::negotiation::{ListMessages, NextHour, Tell};
use unionhall::campaigns::pause::{ListPauses, PauseNegotiation, Paused, ResumeNegotiation, Resumed};
use unionhall::campaigns::rounds::{AddRound, ListRounds, PruneRounds, RedactRound, Redacted};
use unionhall::domain::campaign::CampaignState;
use unionhall::domain::campaign::bid::Bid;
use unionhall::domain::campaign::offer::Proposal;
use unionhall::domain::campaign::record::{
    DraftAnswer, NegotiationRound, OfferDraft, OperatorMessage, Pause, Redaction,
};

fn round(of: &str, n: u32, now: Timestamp) -> AddRound {
    AddRound {
        slug: slug(of),
        client: Some("Helper".to_owned()),
        who: "seat".to_owned(),
        supplier: format!("Supplier {n}"),
        asked: "A better price?".to_owned(),
        answered: "No.".to_owned(),
        now,
    }
}

fn by_hand(round: AddRound) -> AddRound {
    AddRound { client: None, who: "ada".to_owned(), ..round }
}

fn draft(of: &str, offer: &str, now: Timestamp) -> AddOfferDraft {
    AddOfferDraft {
        slug: slug(of),
        client: "Helper".to_owned(),
        seat: "seat".to_owned(),
        proposal: Proposal::parse(offer).unwrap(),
        exception: Some("they hold it for a day".to_owned()),
        now,
    }
}

fn minutes(minutes: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(minutes * 60))
}

pub(super) async fn a_negotiators_notes_are_bounded_and_kept(fixture: &Fixture) {
    fixture.make_campaign("all", "").await;
    fixture.make_campaign("other", "").await;
    assert_eq!(fixture.run(round("all", 0, NOW)).await, Noted::NotNow(CampaignState::Draft));
    assert_eq!(fixture.run(round("none", 0, NOW)).await, Noted::Unknown);
    assert_eq!(fixture.run(draft("none", OFFER, NOW)).await, Noted::Unknown);
    fixture.step("all", CampaignStep::Open, NOW).await;
    fixture.step("other", CampaignStep::Open, NOW).await;

    // By the hour; those of an operator are not held up.
    for n in 1..=30 {
        assert_eq!(fixture.run(round("all", n, minutes(u64::from(n)))).await, Noted::Done(n));
    }
    assert_eq!(fixture.run(round("all", 31, minutes(31))).await, Noted::Later(NextHour { minutes: 30 }));
    assert_eq!(fixture.run(round("other", 1, minutes(31))).await, Noted::Done(1));
    assert_eq!(fixture.run(by_hand(round("all", 31, minutes(31)))).await, Noted::Done(31));
    assert_eq!(fixture.run(round("all", 32, minutes(62))).await, Noted::Done(32));
    for n in 1..=10 {
        assert_eq!(fixture.run(draft("all", OFFER, NOW)).await, Noted::Done(n));
    }
    assert_eq!(fixture.run(draft("all", OFFER, minutes(59))).await, Noted::Later(NextHour { minutes: 1 }));
    for n in 1..=Bid::AN_HOUR {
        assert_eq!(fixture.run(AddBidFromSeat(bidding("all", BID, NOW))).await, Ok(BidAdded::Done(n)));
    }
    let wait = fixture.run(AddBidFromSeat(bidding("all", BID, minutes(1)))).await;
    assert_eq!(wait, Err(NextHour { minutes: 59 }));
    assert_eq!(fixture.run(bidding("all", BID, NOW)).await, BidAdded::Done(Bid::AN_HOUR + 1));

    // In all.
    for n in 33..=NegotiationRound::MOST {
        assert_eq!(fixture.run(by_hand(round("all", n, NOW))).await, Noted::Done(n));
    }
    assert_eq!(fixture.run(by_hand(round("all", 0, NOW))).await, Noted::Full);
    for n in 11..=OfferDraft::MOST {
        let later = minutes(60 * u64::from(n));
        assert_eq!(fixture.run(draft("all", OFFER, later)).await, Noted::Done(n));
    }
    assert_eq!(fixture.run(draft("all", OFFER, minutes(60_000))).await, Noted::Full);

    let rounds = fixture.run(ListRounds(slug("all"))).await;
    assert_eq!(rounds.len(), 500);
    let seventh = NegotiationRound {
        number: 7,
        at: minutes(7),
        client: Some("Helper".to_owned()),
        who: "seat".to_owned(),
        supplier: "Supplier 7".to_owned(),
        asked: "A better price?".to_owned(),
        answered: "No.".to_owned(),
        redacted: None,
    };
    assert_eq!(rounds[6], seventh);
    assert_eq!((rounds[30].client.as_ref(), rounds[30].who.as_str()), (None, "ada"));
    let drafts = fixture.run(ListOfferDrafts(slug("all"))).await;
    let OfferDraft { number, client, seat, exception, file, answer, .. } = &drafts[1];
    assert_eq!((*number, client.as_str(), seat.as_str(), answer), (2, "Helper", "seat", &None));
    assert_eq!(exception.as_deref(), Some("they hold it for a day"));
    assert_eq!(Proposal::parse(file), Proposal::parse(OFFER));
}

pub(super) async fn a_round_is_blanked_once_and_old_rounds_are_pruned(fixture: &Fixture) {
    for of in ["all", "other"] {
        fixture.make_campaign(of, "").await;
        fixture.step(of, CampaignStep::Open, NOW).await;
        for n in 1..=3 {
            fixture.run(round(of, n, NOW)).await;
        }
    }
    let redact = |of: &str, number, reason: &str| RedactRound {
        slug: slug(of),
        number,
        reason: reason.to_owned(),
        who: "ada".to_owned(),
        now: minutes(1),
    };
    assert_eq!(fixture.run(redact("none", 1, "x")).await, Redacted::Unknown);
    assert_eq!(fixture.run(redact("all", 4, "x")).await, Redacted::NoSuchRound);
    assert_eq!(fixture.run(redact("all", 2, "a phone number")).await, Redacted::Done);
    assert_eq!(fixture.run(redact("all", 2, "again")).await, Redacted::Already(minutes(1)));
    let rounds = fixture.run(ListRounds(slug("all"))).await;
    let blank = Redaction { at: minutes(1), who: "ada".to_owned(), why: "a phone number".to_owned() };
    let NegotiationRound { number, supplier, asked, answered, redacted, .. } = &rounds[1];
    assert_eq!((*number, [supplier, asked, answered].map(String::as_str)), (2, ["", "", ""]));
    assert_eq!((redacted, &rounds[0].redacted), (&Some(blank), &None));

    // Blanking is the only change of a row, and it happens once.
    for change in
        ["supplier = 'x'", "redacted_at = 1", "redacted_at = 1, supplier = '', asked = '', answered = '', number = 9"]
    {
        for number in [1, 2] {
            let change = format!("UPDATE campaign_rounds SET {change} WHERE campaign_id = 1 AND number = {number}");
            assert!(fixture.records.try_rows(&change).is_err(), "{change}");
        }
    }
    assert_eq!(fixture.run(ListRounds(slug("all"))).await, rounds);

    let prune = |of: &str, keep| PruneRounds { slug: slug(of), keep };
    assert_eq!(fixture.run(prune("none", 1)).await, None);
    assert_eq!(fixture.run(prune("all", 3)).await, Some(0));
    assert_eq!(fixture.run(prune("all", 2)).await, Some(1));
    assert_eq!(fixture.run(ListRounds(slug("all"))).await, rounds[1..]);
    assert_eq!(fixture.run(prune("all", 0)).await, Some(1), "the last stays");
    assert_eq!(fixture.run(round("all", 4, NOW)).await, Noted::Done(4), "no number comes twice");
    assert_eq!(fixture.run(ListRounds(slug("other"))).await.len(), 3);
}

pub(super) async fn a_draft_waits_until_a_person_answers_it(fixture: &Fixture) {
    fixture.make_campaign("all", "").await;
    fixture.step("all", CampaignStep::Open, NOW).await;
    fixture.run(bidding("all", BID, NOW)).await;
    let later = OFFER.replace("2027-01-25", "2027-01-26");
    for (number, offer) in (1..).zip([OFFER, &later, OFFER, OFFER]) {
        assert_eq!(fixture.run(draft("all", offer, minutes(u64::from(number)))).await, Noted::Done(number));
    }
    let waiting = async || fixture.run(ListWaitingDrafts).await;
    assert_eq!(waiting().await, [(slug("all"), 4, minutes(1))]);
    let reject = |of: &str, number| RejectDraft {
        slug: slug(of),
        number,
        reason: "the fee is missing".to_owned(),
        who: "ada".to_owned(),
        now: minutes(9),
    };
    assert_eq!(fixture.run(reject("none", 1)).await, Rejected::Unknown);
    assert_eq!(fixture.run(reject("all", 5)).await, Rejected::NoSuchDraft(4));
    assert_eq!(fixture.run(reject("all", 1)).await, Rejected::Done);
    let rejected = DraftAnswer {
        at: minutes(9),
        who: "ada".to_owned(),
        is_published: false,
        reason: "the fee is missing".to_owned(),
    };
    assert_eq!(fixture.run(reject("all", 1)).await, Rejected::Already(rejected.clone()));
    assert_eq!(waiting().await, [(slug("all"), 3, minutes(2))]);

    let step = StepCampaign {
        slug: slug("all"),
        step: publication(["2027-01-25", "2027-01-28"]),
        who: "ada".to_owned(),
        note: ("as agreed".to_owned(), true),
        now: minutes(10),
    };
    assert_eq!(fixture.run(step).await, Stepped::Done(CampaignState::Offered));
    let published =
        DraftAnswer { at: minutes(10), who: "ada".to_owned(), is_published: true, reason: "as agreed".to_owned() };
    let answers = fixture.run(ListOfferDrafts(slug("all"))).await.into_iter().map(|draft| draft.answer);
    let expected = [Some(rejected), None, Some(published.clone()), Some(published.clone())];
    assert_eq!(answers.collect::<Vec<_>>(), expected, "those that say what was published");
    assert_eq!(fixture.run(reject("all", 3)).await, Rejected::Already(published));
    assert_eq!(waiting().await, [], "none can be published any more");
}

pub(super) async fn an_operator_pauses_the_negotiator_and_tells_it_something(fixture: &Fixture) {
    fixture.make_campaign("all", "").await;
    fixture.make_campaign("other", "").await;
    let pause = |of: Option<&str>| PauseNegotiation {
        slug: of.map(slug),
        reason: "a complaint".to_owned(),
        who: "ada".to_owned(),
        now: NOW,
    };
    let paused = |of: Option<&str>| Pause {
        slug: of.map(slug),
        at: NOW,
        who: "ada".to_owned(),
        reason: "a complaint".to_owned(),
    };
    assert_eq!(fixture.run(ListPauses).await, []);
    assert_eq!(fixture.run(pause(Some("none"))).await, Paused::Unknown);
    for of in [Some("all"), None] {
        assert_eq!(fixture.run(pause(of)).await, Paused::Done);
        assert_eq!(fixture.run(pause(of)).await, Paused::Already(paused(of)));
    }
    assert_eq!(fixture.run(ListPauses).await, [paused(Some("all")), paused(None)]);
    let resume = |of: Option<&str>| ResumeNegotiation(of.map(slug));
    assert_eq!(fixture.run(resume(Some("none"))).await, Resumed::Unknown);
    assert_eq!(fixture.run(resume(Some("other"))).await, Resumed::NotPaused);
    assert_eq!(fixture.run(resume(None)).await, Resumed::Done);
    assert_eq!(fixture.run(resume(None)).await, Resumed::NotPaused);
    assert_eq!(fixture.run(ListPauses).await, [paused(Some("all"))]);
    assert_eq!(fixture.run(resume(Some("all"))).await, Resumed::Done);

    let tell = |of: &str, n: u32| Tell {
        slug: slug(of),
        message: format!("Words {n}"),
        who: "ada".to_owned(),
        now: minutes(u64::from(n)),
    };
    assert!(!fixture.run(tell("none", 1)).await);
    for n in 1..=OperatorMessage::MOST + 2 {
        assert!(fixture.run(tell("all", n)).await);
    }
    fixture.run(tell("other", 1)).await;
    let told = fixture.run(ListMessages(slug("all"))).await;
    let third = OperatorMessage { at: minutes(3), who: "ada".to_owned(), message: "Words 3".to_owned() };
    assert_eq!((told.len(), &told[0]), (100, &third), "the last ones stay");
    assert_eq!(fixture.run(ListMessages(slug("other"))).await.len(), 1);
}
