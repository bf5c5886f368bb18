//! What every store makes of mail: who may send it, when, and what becomes of it.

use super::*;
use unionhall::mail::outbox::{HealClock, Release, RenewMail};

/// Eight days ahead for a minute: what was pressed, mailed and leased then waits for nothing afterwards.
pub(super) async fn a_clock_that_was_ahead_for_a_while_decides_nothing(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    let ahead = after(PENDING_FOR + HOUR * 24);
    assert_eq!(fixture.confirm_at(linked(1), ahead).await, Confirmation::Expired);
    fixture.sign_up_at("ben@example.com", ahead).await;
    fixture.sign_up_at("cleo@example.com", ahead).await;
    fixture.run(lease_of("w", 1, ahead)).await;
    assert_eq!(fixture.run(HealClock(NOW)).await, 2, "what the wrong clock wrote");
    assert_eq!(fixture.run(HealClock(NOW)).await, 0);
    let mut due: Vec<_> = fixture.lease("w", NOW).await.into_iter().map(|mail| mail.recipient).collect();
    due.sort_unstable();
    assert_eq!(due, ["ana@example.com", "ben@example.com", "cleo@example.com"]);
    assert!(
        matches!(fixture.confirm(1).await, Confirmation::Joined(_)),
        "and whoever was told that it had expired may press again"
    );
}

pub(super) async fn mail_is_leased_to_one_worker_at_a_time(fixture: &Fixture) {
    for n in 0..50 {
        fixture.sign_up(&format!("user{n}@example.com")).await;
    }
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..8 {
        let store = fixture.store.clone();
        workers.spawn(async move { store.run(lease_of(&format!("w{worker}"), 10, NOW)).await.unwrap().mails });
    }
    let leased: Vec<_> = workers.join_all().await.into_iter().flatten().collect();
    let ids: HashSet<_> = leased.iter().map(|mail| mail.id).collect();
    assert_eq!((leased.len(), ids.len()), (50, 50), "each once, and all of them");
    assert!(leased.iter().all(|mail| mail.attempts == 1 && mail.kind == MailKind::Confirm));
    let first = leased.iter().find(|mail| mail.recipient == "user0@example.com").unwrap();
    assert_eq!((first.partner.as_deref(), first.asked_at, first.first_attempt_at), (Some("Acme"), NOW, NOW));
    assert_eq!(Some(first.code), fixture.kept_code("user0@example.com").await);
    assert_eq!(fixture.lease("late", after(MAIL_LEASE - Duration::from_millis(1))).await, []);
    assert_eq!(fixture.lease("late", after(MAIL_LEASE)).await.len(), 50, "a lease ends by itself");
}

pub(super) async fn mail_that_failed_comes_back_at_its_time_and_late_workers_change_nothing(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    let first = fixture.lease("w", NOW).await.remove(0);
    fixture
        .settle(&first, MailOutcome::Retry { at: after(MINUTE), cause: "away".to_owned(), perhaps_sent: false }, NOW)
        .await;
    assert_eq!(fixture.run(ListMail).await[0].last_error.as_deref(), Some("away"));
    assert_eq!(fixture.lease("w", after(MINUTE - Duration::from_millis(1))).await, []);
    let second = fixture.lease("w", after(MINUTE)).await.remove(0);
    assert_eq!((second.attempts, second.first_attempt_at), (2, NOW), "the caps count a mail once");
    fixture.settle(&first, MailOutcome::Sent, after(MINUTE)).await;
    assert_eq!(fixture.run(ListMail).await.len(), 1, "the first worker is late");
    fixture.settle(&second, MailOutcome::Sent, after(MINUTE)).await;
    assert_eq!(fixture.run(ListMail).await, []);
}

pub(super) async fn a_workers_own_leases_are_given_back(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    fixture.sign_up("ben@example.com").await;
    assert_eq!(fixture.run(lease_of("one", 1, NOW)).await.mails.len(), 1);
    assert_eq!(fixture.run(lease_of("two", 1, NOW)).await.mails.len(), 1);
    assert_eq!(fixture.run(Release { worker: "one".to_owned() }).await, 1);
    assert_eq!(fixture.lease("one", NOW).await.len(), 1, "its own, and not the other's");
}

pub(super) async fn a_mailbox_gets_one_mail_in_ten_minutes_and_four_a_day(fixture: &Fixture) {
    let spellings = ["ana@gmail.com", "a.n.a@gmail.com", "ana+x@googlemail.com", "ANA@gmail.com"];
    for email in spellings {
        fixture.sign_up(email).await;
    }
    assert_eq!(fixture.send_due(NOW).await.len(), 1);
    let mut sent = 1;
    for minute in 1..=60 {
        let due = fixture.send_due(after(MINUTE * minute)).await;
        assert_eq!(due.len(), usize::from(minute % 10 == 0 && sent < 3), "minute {minute}");
        sent += due.len();
    }
    assert_eq!(sent, 3, "two spellings are one address, and share their mail");
    fixture.sign_up_at("ana@gmail.com", after(HOUR * 2)).await;
    assert_eq!(
        fixture.send_due(after(HOUR * 2)).await,
        Vec::<String>::new(),
        "the fourth of the day is another source's"
    );
    let alone = NewSignUp { partner: None, ..fixture.new_sign_up("ana@gmail.com") };
    fixture.store.sign_up(alone, after(HOUR * 2)).await.unwrap();
    assert_eq!(fixture.send_due(after(HOUR * 2)).await.len(), 1, "such as the form's");
    fixture.sign_up_at("ana@gmail.com", after(HOUR * 3)).await;
    assert_eq!(fixture.send_due(after(HOUR * 3)).await, Vec::<String>::new());
    assert_eq!(fixture.send_due(after(DAY - MINUTE)).await, Vec::<String>::new());
    assert_eq!(fixture.send_due(after(DAY + MINUTE * 10)).await.len(), 1, "the next day");
    fixture.sign_up("ben@gmail.com").await;
    assert_eq!(fixture.send_due(NOW).await, ["ben@gmail.com"], "others are not touched");
}

pub(super) async fn mail_that_has_become_pointless_is_dropped(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    assert_eq!(fixture.send_due(NOW).await.len(), 1);
    fixture.sign_up("ana@example.com").await;
    assert!(matches!(fixture.confirm(1).await, Confirmation::Joined(_)));
    assert_eq!(fixture.send_due(after(HOUR)).await, Vec::<String>::new(), "she has confirmed");

    fixture.sign_up("ben@example.com").await;
    assert_eq!(fixture.send_due(after(PENDING_FOR)).await, Vec::<String>::new(), "the link would not work");
    fixture.run(Retain { times: TIMES, now: after(PENDING_FOR) }).await;

    fixture.sign_up("ana@example.com").await;
    let due = fixture.lease("w", after(HOUR)).await;
    assert_eq!(due[0].kind, MailKind::AlreadyMember, "a member is told that they are in");
    assert_eq!(fixture.run(ListMail).await.len(), 1);
}

pub(super) async fn a_newer_mail_replaces_the_one_that_waits(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    fixture.store.sign_up(fixture.new_sign_up("ANA@example.com"), after(MINUTE)).await.unwrap();
    let due = fixture.lease("w", after(MINUTE)).await;
    assert_eq!(due.len(), 1);
    assert_eq!((due[0].recipient.as_str(), due[0].asked_at), ("ANA@example.com", after(MINUTE)));
    // While it is on its way, another sign-up changes nothing about it.
    fixture.store.sign_up(fixture.new_sign_up("ana@example.com"), after(MINUTE)).await.unwrap();
    assert_eq!(fixture.lease("w", after(MINUTE)).await, []);
    fixture.settle(&due[0], MailOutcome::Sent, after(MINUTE)).await;
    assert_eq!(fixture.run(ListMail).await, []);
}

pub(super) async fn a_rejected_address_gets_no_mail_for_thirty_days(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    let mail = fixture.lease("w", NOW).await.remove(0);
    fixture.settle(&mail, MailOutcome::Rejected, NOW).await;
    assert_eq!(fixture.run(ListMail).await, []);
    fixture.sign_up_at("ana@example.com", after(DAY)).await;
    assert_eq!(fixture.send_due(after(DAY)).await, Vec::<String>::new());
    fixture.sign_up_at("ana@example.com", after(UNDELIVERABLE_FOR)).await;
    assert_eq!(fixture.send_due(after(UNDELIVERABLE_FOR)).await.len(), 1);
}

pub(super) async fn given_up_mail_waits_for_the_operator(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    let mail = fixture.lease("w", NOW).await.remove(0);
    fixture.settle(&mail, MailOutcome::GivenUp { cause: "a day".to_owned(), perhaps_sent: false }, after(DAY)).await;
    assert_eq!(fixture.lease("w", after(DAY * 2)).await, []);
    let listed = fixture.run(ListMail).await;
    assert_eq!((listed[0].given_up_at, listed[0].attempts), (Some(after(DAY)), 1));
    assert!(fixture.run(RetryMail(listed[0].id, after(DAY * 2))).await);
    assert!(!fixture.run(RetryMail(MailId(99), NOW)).await);
    let again = fixture.lease("w", after(DAY * 2)).await.remove(0);
    assert_eq!(again.first_attempt_at, after(DAY * 2), "it has a day again");
}

/// Four posts of the form made a partner's mail wait for 23 hours and 19 minutes.
pub(super) async fn the_days_last_mail_is_kept_for_another_source(fixture: &Fixture) {
    let alone = || NewSignUp { partner: None, ..fixture.new_sign_up("ana@example.com") };
    let mut sent = 0;
    for n in 0..12 {
        let now = after(MINUTE * 10 * n);
        fixture.store.sign_up(alone(), now).await.unwrap();
        sent += fixture.send_due(now).await.len();
    }
    assert_eq!(sent, 3, "the form's share of a day");
    let now = after(MINUTE * 10 * 12);
    fixture.sign_up_at("ana@example.com", now).await;
    assert_eq!(fixture.send_due(now).await, ["ana@example.com"], "the partner's goes at once");
    fixture.sign_up_at("ana@example.com", now).await;
    assert_eq!(fixture.send_due(after(DAY + MINUTE * 9)).await, Vec::<String>::new());
    assert_eq!(fixture.send_due(after(DAY + MINUTE * 10)).await.len(), 1);
}

/// Thirty tagged spellings delayed the owner's own mail by seven and a half days.
pub(super) async fn the_owners_own_name_goes_before_tagged_ones(fixture: &Fixture) {
    for n in 0..30 {
        fixture.sign_up_at(&format!("ana+{n}@example.com"), NOW).await;
    }
    fixture.sign_up_at("ana@example.com", NOW).await;
    fixture.sign_up_at("ana+last@example.com", after(MINUTE)).await;
    assert_eq!(fixture.send_due(after(MINUTE)).await, ["ana@example.com"]);
    assert_eq!(fixture.run(ListMail).await.len(), 3, "few wait");
    assert_eq!(fixture.send_due(after(MINUTE * 12)).await, ["ana+last@example.com"], "then the newest");
}

/// Fifty mails of fifty went after the key that asked for them had been revoked.
pub(super) async fn what_a_revoked_key_asked_for_is_held(fixture: &Fixture) {
    fixture.sign_up("mailed@example.com").await;
    assert_eq!(fixture.send_due(NOW).await, ["mailed@example.com"]);
    for n in 0..5 {
        fixture.sign_up_at(&format!("user{n}@example.com"), after(MINUTE)).await;
    }
    let alone = NewSignUp { partner: None, ..fixture.new_sign_up("ana@example.com") };
    fixture.store.sign_up(alone, after(MINUTE)).await.unwrap();
    let key = fixture.partner.key;
    fixture.run(RevokeKey(key, after(MINUTE))).await;
    assert_eq!(fixture.send_due(after(MINUTE)).await, ["ana@example.com"], "what others asked for goes");
    let held = async || fixture.run(ListMail).await.iter().filter(|mail| mail.held_at.is_some()).count();
    assert_eq!(held().await, 5);
    assert!(matches!(fixture.confirm(1).await, Confirmation::Joined(_)), "links that were mailed still work");
    assert_eq!(fixture.run(ReleaseHeld(HeldMail::OfTheForm, after(HOUR))).await, 0);
    assert_eq!(fixture.run(DropHeld(HeldMail::OfTheForm, NOW)).await, 0);
    let late = after(PENDING_FOR - MINUTE);
    assert_eq!(fixture.run(ReleaseHeld(HeldMail::OfKey(key), late)).await, 5);
    let sent = fixture.send_due(late).await;
    assert_eq!((sent.len(), held().await), (5, 0));
    let again = fixture.run(FindSignUp(linked_at(3, after(MINUTE)), after(PENDING_FOR * 2 - HOUR))).await.unwrap();
    assert_eq!(again.state, SignUpState::Pending, "a week from when it was let go");
    fixture.run(Retain { times: TIMES, now: after(PENDING_FOR * 3) }).await;

    fixture.sign_up_at("ben@example.com", NOW).await;
    assert_eq!(fixture.run(DropHeld(HeldMail::OfKey(key), NOW)).await, 1, "what nobody has looked at yet too");
    fixture.sign_up_at("cem@example.com", NOW).await;
    assert_eq!(fixture.send_due(NOW).await, Vec::<String>::new());
    fixture.run(Retain { times: TIMES, now: after(PENDING_FOR) }).await;
    assert_eq!(fixture.run(ListMail).await, [], "what is held lapses with its sign-up");
}

/// Each worker holds some of the mails and wants to drop others' of the same mailbox: none may wait for another.
pub(super) async fn a_flood_of_spellings_is_settled_by_many_workers_at_once(fixture: &Fixture) {
    for n in 0..120 {
        fixture.sign_up(&format!("ana+{n}@example.com")).await;
    }
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..8 {
        let store = fixture.store.clone();
        workers.spawn(async move { store.run(lease_of(&format!("w{worker}"), 16, NOW)).await });
    }
    let leased: Vec<_> = workers.join_all().await.into_iter().map(|leased| leased.unwrap().mails).collect();
    assert_eq!(leased.concat().len(), 1, "the mailbox gets one");
    while !fixture.lease("w", NOW).await.is_empty() {}
    assert!(fixture.run(ListMail).await.len() <= 4, "and few wait");
}

pub(super) async fn the_operator_may_send_past_a_mailboxs_share(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    assert_eq!(fixture.send_due(NOW).await.len(), 1);
    fixture.sign_up_at("ana@example.com", after(MINUTE)).await;
    assert_eq!(fixture.send_due(after(MINUTE)).await, Vec::<String>::new());
    let waiting = fixture.run(ListMail).await[0].id;
    assert!(fixture.run(RetryMail(waiting, after(MINUTE))).await);
    assert_eq!(fixture.send_due(after(MINUTE)).await.len(), 1);
}

pub(super) async fn every_lane_has_its_turn_and_none_all_the_places(fixture: &Fixture) {
    let new = |email: &str, source: &[u8]| NewSignUp { lane: Lane::of(source), ..fixture.new_sign_up(email) };
    for n in 0..100 {
        fixture.store.sign_up(new(&format!("flood{n}@example.com"), b"flood"), NOW).await.unwrap();
    }
    fixture.store.sign_up(new("ana@example.com", b"honest"), after(MINUTE)).await.unwrap();
    let due = fixture.run(lease_of("w", 16, after(MINUTE))).await.mails;
    assert_eq!(due.len(), 9, "half of the places for the flood");
    assert!(due.iter().any(|mail| mail.recipient == "ana@example.com"));
    let busy: Vec<_> = due.iter().map(|mail| mail.lane).collect();
    fixture.store.sign_up(new("ben@example.com", b"honest"), after(MINUTE)).await.unwrap();
    let more = fixture.run(Lease { busy, ..lease_of("w", 7, after(MINUTE)) }).await.mails;
    assert_eq!(more.iter().map(|mail| mail.recipient.as_str()).collect::<Vec<_>>(), ["ben@example.com"]);
}

/// Whoever paid with a proof of work waited until the whole flood before them was held.
pub(super) async fn what_somebody_decided_about_goes_before_the_rest_of_its_lane(fixture: &Fixture) {
    let by_form = |email: &str, proven| NewSignUp {
        partner: None,
        lane: Lane::of(b"form"),
        proven,
        ..fixture.new_sign_up(email)
    };
    let flood = (0..1000).map(|n| fixture.store.sign_up(by_form(&format!("flood{n}@example.com"), false), NOW));
    assert!(together(flood).await.iter().all(Result::is_ok));
    for email in ["ana@example.com", "ben@example.com"] {
        fixture.store.sign_up(by_form(email, true), after(MINUTE)).await.unwrap();
    }
    let budget = MailBudget { form_a_day: 1, key_a_day: 1 };
    let leased = fixture.run(Lease { budget: Some(budget), ..lease_of("w", 8, after(MINUTE)) }).await;
    let to: Vec<_> = leased.mails.iter().map(|mail| mail.recipient.as_str()).collect();
    assert_eq!(to, ["ana@example.com", "ben@example.com"]);
    assert!(leased.deferred, "there is more to do");
    assert!(leased.held.get(FORM).is_none_or(|held| *held <= 8), "before they go: {:?}", leased.held);
    // The flood is held a round at a time, and whoever comes next is before the rest again.
    let more = fixture.run(Lease { budget: Some(budget), ..lease_of("w", 8, after(MINUTE)) }).await;
    assert!((2..100).contains(&more.held[FORM]) && more.mails.is_empty() && more.deferred, "{more:?}");
    fixture.store.sign_up(by_form("cleo@example.com", true), after(MINUTE)).await.unwrap();
    let next = fixture.run(Lease { budget: Some(budget), ..lease_of("w", 8, after(MINUTE)) }).await;
    assert_eq!(next.mails.iter().map(|mail| mail.recipient.as_str()).collect::<Vec<_>>(), ["cleo@example.com"]);
    assert!(next.held.get(FORM).is_none_or(|held| *held <= 8), "{:?}", next.held);
}

pub(super) async fn mail_that_may_have_gone_counts_as_gone(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    fixture.sign_up("ana+x@example.com").await;
    let first = fixture.lease("w", NOW).await;
    assert_eq!(first.len(), 1);
    let perhaps = |at| MailOutcome::Retry { at, cause: "broke off".to_owned(), perhaps_sent: true };
    fixture.settle(&first[0], perhaps(after(MINUTE)), NOW).await;
    assert_eq!(fixture.lease("w", after(MINUTE * 9)).await, [], "the mailbox is spared for ten minutes");
    let second = fixture.lease("w", after(MINUTE * 10)).await;
    assert_eq!(second.len(), 1, "one of the two");
    fixture
        .settle(
            &second[0],
            MailOutcome::Retry { at: after(MINUTE * 11), cause: "away".to_owned(), perhaps_sent: false },
            NOW,
        )
        .await;
    let again = fixture.lease("w", after(MINUTE * 11)).await;
    assert_eq!(again.iter().map(|mail| mail.id).collect::<Vec<_>>(), [second[0].id], "what surely has not gone may go");
}

/// Asked five times while the relay refused: the mail that never was had the owner wait for 24 hours.
pub(super) async fn mail_that_cannot_have_gone_spends_nothing(fixture: &Fixture) {
    for n in 0..8 {
        let now = after(MINUTE * n);
        fixture.sign_up_at("ana@example.com", now).await;
        let mail = fixture.lease("w", now).await.remove(0);
        let refused = MailOutcome::Retry { at: after(DAY), cause: "refused".to_owned(), perhaps_sent: false };
        fixture.settle(&mail, refused, now).await;
    }
    fixture.sign_up_at("ana@example.com", after(MINUTE * 8)).await;
    let last = fixture.lease("w", after(MINUTE * 8)).await.remove(0);
    fixture.settle(&last, MailOutcome::Sent, after(MINUTE * 8)).await;
    // From here on the mailbox is spared.
    fixture.sign_up_at("ana@example.com", after(MINUTE * 9)).await;
    assert_eq!(fixture.lease("w", after(MINUTE * 17)).await, []);
    assert_eq!(fixture.lease("w", after(MINUTE * 18)).await.len(), 1);
}

pub(super) async fn a_lease_is_renewed_by_whoever_holds_it(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    let mail = fixture.lease("slow", NOW).await.remove(0);
    let renew = async |attempt, until| fixture.run(RenewMail { mail: mail.id, attempt, until }).await;
    assert!(renew(mail.attempts, after(MAIL_LEASE * 2)).await);
    assert_eq!(fixture.lease("w", after(MAIL_LEASE)).await, [], "it is still being sent");
    let taken = fixture.lease("w", after(MAIL_LEASE * 2)).await.remove(0);
    assert!(!renew(mail.attempts, after(MAIL_LEASE * 3)).await, "another has it");
    fixture.settle(&mail, MailOutcome::Rejected, after(MAIL_LEASE * 2)).await;
    assert!(renew(taken.attempts, after(MAIL_LEASE * 3)).await, "and what the late one says changes nothing");
    fixture.settle(&taken, MailOutcome::Sent, after(MAIL_LEASE * 3)).await;
    assert!(!renew(taken.attempts, after(MAIL_LEASE * 4)).await);
}

pub(super) async fn a_late_worker_does_not_say_what_may_have_gone(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    let first = fixture.lease("late", NOW).await.remove(0);
    let second = fixture.lease("w", after(MAIL_LEASE)).await.remove(0);
    let perhaps = MailOutcome::Retry { at: after(MINUTE), cause: "a\0b \u{1f600}".to_owned(), perhaps_sent: true };
    fixture.settle(&first, perhaps.clone(), after(MAIL_LEASE)).await;
    let surely_not = MailOutcome::Retry { at: after(MINUTE), cause: "a\0b \u{1f600}".to_owned(), perhaps_sent: false };
    fixture.settle(&second, surely_not, after(MAIL_LEASE)).await;
    let listed = fixture.run(ListMail).await;
    assert_eq!(listed[0].last_error.as_deref(), Some("ab \u{1f600}"), "no store keeps a NUL");
    assert_eq!(fixture.lease("w", after(MINUTE)).await.len(), 1, "the mailbox was not written to, as far as is known");
}

pub(super) async fn nobodys_flood_holds_up_somebody_elses_mail(fixture: &Fixture) {
    for n in 0..300 {
        fixture.sign_up(&format!("ana+{n}@example.com")).await;
    }
    fixture.sign_up_at("ben@example.com", after(Duration::from_millis(1))).await;
    let due = fixture.run(lease_of("w", 8, after(MINUTE))).await.mails;
    let to: Vec<_> = due.iter().map(|mail| mail.recipient.as_str()).collect();
    assert_eq!(to.len(), 2, "{to:?}");
    assert!(to.contains(&"ben@example.com"));
    // And when their time comes, again only one of them goes.
    assert_eq!(
        fixture.run(lease_of("w", 8, after(MINUTE * 11))).await.mails.len(),
        2,
        "the two leases that ended; nothing goes before what may be on its way"
    );
}
