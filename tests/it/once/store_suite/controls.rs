//! What every store does when the operator stops a partner, gives it a mail budget of its own, or ends what a key signed up.

use unionhall::domain::sign_up::{PendingPlace, SignUpsOf};
use unionhall::keys::{Keys, NewKey};
use unionhall::membership::withdraw::{Withdraw, withdraw_sign_ups};
use unionhall::partners::Partners;

use super::*;
use unionhall::mail::outbox::hold::ReleaseSuspended;
use unionhall::partners::records::SetMailsADay;

impl Fixture {
    async fn held(&self) -> usize {
        self.run(ListMail).await.iter().filter(|mail| mail.held_at.is_some()).count()
    }

    async fn resume(&self, now: Timestamp) -> u64 {
        assert!(self.run(ResumePartner(self.partner.id, now)).await);
        self.release_suspended(now).await
    }

    async fn release_suspended(&self, now: Timestamp) -> u64 {
        Partners::new(Store::clone(&self.store)).release_suspended(self.partner.id, now).await.unwrap()
    }
}

/// Whatever the operator does to a key takes effect within two seconds, by the clock that requests are answered by.
pub(super) async fn a_key_is_believed_for_less_than_two_seconds(fixture: &Fixture) {
    let (key, partner) = (ApiKey::from_random(&[9; ApiKey::ENTROPY]), fixture.partner.id);
    let keys = Keys::new(Store::clone(&fixture.store), Mode::Live);
    let new = NewKey { partner: "Acme".parse().unwrap(), per_minute: None, expires_at: None };
    keys.issue(&key, new, NOW).await.unwrap();
    let header = format!("Bearer {}", key.reveal());
    let at = |millis| after(Duration::from_millis(millis));
    let works = async |millis| keys.recognize(Some(header.as_bytes()), at(millis)).await.is_ok();
    assert!(works(0).await && works(999).await);
    fixture.run(SuspendPartner(partner, NOW)).await;
    assert!(works(999).await, "what was read is believed for a second");
    assert!(!works(1000).await && !works(1000).await);
    fixture.run(ResumePartner(partner, NOW)).await;
    assert!(works(2000).await);
    fixture.run(RevokeKey(key.id(), NOW)).await;
    // While somebody reads it anew, others use what is known: until then, even if the first one went away.
    let reading = keys.recognize(Some(header.as_bytes()), at(3000));
    let _went_away = tokio::time::timeout(Duration::ZERO, reading).await;
    assert!(!works(3800).await);
}

pub(super) async fn a_suspended_partner_is_stopped_and_comes_back(fixture: &Fixture) {
    let Partner { id, key: issued, .. } = fixture.partner;
    let status = async |key| fixture.run(FindKey(key)).await.unwrap().status(after(HOUR));
    let revoked = issue(&fixture.store, key(2, "Acme")).await.key;
    let zoe = issue(&fixture.store, key(3, "Zoe")).await;
    fixture.run(RevokeKey(revoked, NOW)).await;
    assert!(!fixture.run(ResumePartner(id, NOW)).await, "it was not suspended");
    assert!(fixture.run(SuspendPartner(id, NOW)).await);
    assert!(!fixture.run(SuspendPartner(id, after(HOUR))).await, "twice is once");
    let listed = fixture.run(ListPartners).await;
    assert_eq!(
        listed.iter().map(|partner| (partner.name.as_str(), partner.suspended_at)).collect::<Vec<_>>(),
        [("Acme", Some(NOW)), ("Zoe", None)]
    );
    assert_eq!((status(issued).await, status(revoked).await), (KeyStatus::Suspended, KeyStatus::Revoked));
    assert_eq!(status(zoe.key).await, KeyStatus::Valid);
    assert_eq!(fixture.run(ListKeys).await[0].0.status(NOW), KeyStatus::Suspended);
    let inboxes = fixture.run(ListInboxPartners(NOW)).await;
    assert_eq!(inboxes.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["Zoe"]);

    for n in 0..3 {
        fixture.sign_up(&format!("user{n}@example.com")).await;
    }
    let of_revoked = Partner { key: revoked, ..fixture.partner.clone() };
    let of_revoked = NewSignUp { partner: Some(of_revoked), ..fixture.new_sign_up("revoked@example.com") };
    fixture.store.sign_up(of_revoked, NOW).await.unwrap();
    let theirs = NewSignUp { partner: Some(zoe), ..fixture.new_sign_up("zoes@example.com") };
    fixture.store.sign_up(theirs, NOW).await.unwrap();
    assert_eq!(fixture.send_due(NOW).await, ["zoes@example.com"]);
    assert_eq!(fixture.held().await, 4);
    for now in [NOW, after(HOUR)] {
        assert_eq!(fixture.run(ReleaseHeld(HeldMail::All, now)).await, 0, "who means all means other mail");
        assert_eq!(fixture.run(DropHeld(HeldMail::All, now)).await, 0);
    }
    let suspended = |status: &SourceStatus| status.source == "Acme" && status.is_suspended && status.held == 4;
    assert!(fixture.run(ListSourceStatuses(NOW)).await.iter().any(suspended));
    // One goes by the operator's decision, the others when the suspension is lifted; a revoked key stays one.
    let first = fixture.run(ListMail).await[0].id;
    assert!(fixture.run(RetryMail(first, after(HOUR))).await);
    assert_eq!(fixture.send_due(after(HOUR)).await, ["user0@example.com"]);
    let late = after(PENDING_FOR - HOUR);
    assert_eq!(fixture.resume(late).await, 3);
    assert_eq!((status(issued).await, status(revoked).await), (KeyStatus::Valid, KeyStatus::Revoked));
    let mut sent = fixture.send_due(late).await;
    sent.sort();
    assert_eq!(sent, ["user1@example.com", "user2@example.com"]);
    assert_eq!(fixture.held().await, 1, "what the revoked key asked for");
    let again = fixture.run(FindSignUp(linked(2), after(2 * PENDING_FOR - 2 * HOUR))).await.unwrap();
    assert_eq!(again.state, SignUpState::Pending, "a week from when it was let go");
    assert_eq!(fixture.release_suspended(late).await, 0, "and once");
}

pub(super) async fn lifting_a_suspension_releases_what_it_held_and_no_more(fixture: &Fixture) {
    let budget = MailBudget { form_a_day: 1, key_a_day: 1 };
    let lease = async |now| fixture.run(Lease { budget: Some(budget), ..lease_of("w", 100, now) }).await;
    fixture.sign_up("first@example.com").await;
    fixture.sign_up("second@example.com").await;
    let leased = lease(NOW).await;
    assert_eq!((leased.mails.len(), leased.held.len(), fixture.held().await), (1, 1, 1), "past the budget");
    fixture.settle(&leased.mails[0], MailOutcome::Sent, NOW).await;
    fixture.run(SuspendPartner(fixture.partner.id, NOW)).await;
    for n in 0..700 {
        fixture.sign_up(&format!("user{n}@example.com")).await;
    }
    while lease(NOW).await.deferred {}
    assert_eq!(fixture.held().await, 701);
    assert!(lease(NOW).await.held.is_empty(), "a suspension is no flood that the log tells of");
    // A worker that had read before may hold one after all were released; the next call finds it.
    assert_eq!(fixture.run(ReleaseSuspended { partner: fixture.partner.id, after: MailId(0), now: NOW }).await.1, 499);
    assert_eq!(fixture.resume(NOW).await, 201);
    assert_eq!(fixture.held().await, 1, "what was past the budget before waits for the operator");
    while lease(NOW).await.deferred {}
    assert_eq!(fixture.held().await, 701, "and the budget of the day holds the rest");
    assert_eq!(fixture.release_suspended(NOW).await, 0, "which no suspension did");
}

pub(super) async fn webhooks_of_a_suspended_partner_wait_and_are_not_disabled_for_it(fixture: &Fixture) {
    let endpoint = fixture.endpoint("Acme").await;
    fixture.sign_up_named("ana@example.com", "one", NOW).await;
    fixture.confirm(1).await;
    let fails = |at| DeliveryOutcome::Retry { at, cause: "it answered 500".to_owned() };
    let one = &fixture.due(endpoint, NOW).await[0];
    assert!(!fixture.settled(endpoint, one, fails(after(HOUR)), NOW).await);
    let has_due = async |now| !fixture.run(ListDueEndpoints(now)).await.is_empty();
    assert!(has_due(after(HOUR)).await);
    fixture.run(SuspendPartner(fixture.partner.id, after(HOUR))).await;
    fixture.sign_up_named("ben@example.com", "two", after(HOUR)).await;
    fixture.confirm_at(linked_at(2, after(HOUR)), after(HOUR)).await;
    assert!(!has_due(after(2 * DISABLED_AFTER)).await);
    let listed = &fixture.run(ListEndpoints(None)).await[0];
    assert_eq!((listed.waiting, listed.endpoint.suspended_at), (2, Some(after(HOUR))), "events wait");

    let lifted = after(HOUR).plus(2 * DISABLED_AFTER);
    fixture.resume(lifted).await;
    assert!(has_due(lifted).await);
    let due = fixture.due(endpoint, lifted).await;
    assert_eq!(due.len(), 2);
    assert!(
        !fixture.settled(endpoint, &due[0], fails(lifted), lifted).await,
        "it failed for an hour, not for ten days"
    );
    let at_last = lifted.plus(DISABLED_AFTER).minus(HOUR);
    let one = &fixture.due(endpoint, at_last).await[0];
    assert!(fixture.settled(endpoint, one, fails(at_last), at_last).await, "five days in which it was tried");
}

pub(super) async fn a_partner_has_a_mail_budget_of_its_own(fixture: &Fixture) {
    let budget = MailBudget { form_a_day: 5, key_a_day: 1 };
    let send = async |now| {
        let mails = fixture.run(Lease { budget: Some(budget), ..lease_of("w", 100, now) }).await.mails;
        for mail in &mails {
            fixture.settle(mail, MailOutcome::Sent, now).await;
        }
        (mails.len(), fixture.held().await)
    };
    fixture.run(SetMailsADay(fixture.partner.id, Some(3))).await;
    assert_eq!(fixture.run(ListPartners).await[0].mails_a_day, Some(3));
    let statuses = fixture.run(ListSourceStatuses(NOW)).await;
    assert_eq!(
        (statuses.len(), statuses[0].source.as_str(), statuses[0].fixed),
        (1, "Acme", Some(3)),
        "before any mail"
    );
    for n in 0..5 {
        fixture.sign_up(&format!("user{n}@example.com")).await;
    }
    assert_eq!(send(NOW).await, (3, 2), "more than the general rule lets it");
    fixture.run(SetMailsADay(fixture.partner.id, Some(0))).await;
    fixture.sign_up_at("none@example.com", after(DAY)).await;
    assert_eq!(send(after(DAY)).await, (0, 3), "0 is no mail");
    fixture.run(SetMailsADay(fixture.partner.id, None)).await;
    assert_eq!(fixture.run(ReleaseHeld(HeldMail::All, after(DAY))).await, 3);
    assert_eq!(send(after(DAY)).await, (3, 0));
    for n in 0..2 {
        fixture.sign_up_at(&format!("later{n}@example.com"), after(2 * DAY)).await;
    }
    assert_eq!(send(after(2 * DAY)).await, (1, 1), "the general rule again");
}

pub(super) async fn the_pending_sign_ups_of_a_key_end_in_steps(fixture: &Fixture) {
    let leaked = issue(&fixture.store, key(2, "Acme")).await;
    let with = |email: &str| NewSignUp { partner: Some(leaked.clone()), ..fixture.new_sign_up(email) };
    fixture.sign_up("other@example.com").await;
    fixture.by_form("form@example.com", NOW).await;
    fixture.store.sign_up(with("joined@example.com"), NOW).await.unwrap();
    assert!(matches!(fixture.confirm(3).await, Confirmation::Joined(_)));
    for n in 0..1100 {
        let now = if n < 100 { NOW } else { after(HOUR) };
        fixture.store.sign_up(with(&format!("user{n}@example.com")), now).await.unwrap();
    }
    // The last key that asked for it is the one that counts.
    fixture.store.sign_up(with("again@example.com"), NOW).await.unwrap();
    fixture.sign_up_at("again@example.com", NOW).await;
    let whose = SignUpsOf::Key(leaked.key);
    let step = async |after| fixture.run(Withdraw { whose, since: NOW, after, now: self::after(HOUR) }).await;
    let (next, ended) = step(PendingPlace::START).await;
    assert!((1..=500).contains(&ended) && next.is_some(), "{ended}");

    let act = Act {
        who: "kim".to_owned(),
        command: "signups withdraw",
        about: format!("key {}", leaked.key),
        at: after(HOUR),
        change: None,
    };
    let audited = fixture.store.audited(act);
    let withdraw = async |since| withdraw_sign_ups(&audited, whose, since, after(HOUR)).await.unwrap();
    assert_eq!(withdraw(after(HOUR)).await, 1000 - ended.saturating_sub(100), "only what was asked for since");
    assert_eq!(withdraw(NOW).await, 100_u64.saturating_sub(ended), "then the rest");
    assert_eq!(withdraw(NOW).await, 0, "and nothing twice");
    let rows =
        fixture.run(ListAuditAfter { after: AuditPlace::start_of(NOW), until: after(DAY), most: 100 }).await.len();
    assert_eq!(rows, 1 + usize::from(ended < 100), "each command that changed something once");

    // The other key's and what the form took stay, whatever a whole partner asked for goes.
    assert_eq!(withdraw_sign_ups(&audited, SignUpsOf::Form, after(DAY), after(HOUR)).await, Ok(0));

    let state = async |id, now| fixture.run(FindSignUp(linked_at(id, now), after(HOUR))).await.unwrap().state;
    assert_eq!((state(1, NOW).await, state(2, NOW).await), (SignUpState::Pending, SignUpState::Pending));
    assert_eq!(state(3, NOW).await, SignUpState::Confirmed);
    assert_eq!((state(4, NOW).await, state(1103, after(HOUR)).await), (SignUpState::Expired, SignUpState::Expired));
    assert_eq!(fixture.confirm(4).await, Confirmation::Expired);
    let mut sent = fixture.send_due(after(HOUR)).await;
    sent.sort();
    assert_eq!(sent, ["again@example.com", "form@example.com", "other@example.com"], "nobody else is mailed");
    let acme = fixture.run(ListSources(0)).await.into_iter().find(|(source, _)| source == "Acme").unwrap().1;
    assert_eq!(acme.lapsed, 1100);
    let all = SignUpsOf::Partner(fixture.partner.id);
    assert_eq!(withdraw_sign_ups(&audited, all, NOW, after(HOUR)).await.unwrap(), 2, "with whichever key");
    assert_eq!((state(1, NOW).await, state(2, NOW).await), (SignUpState::Expired, SignUpState::Pending));
    let file = fixture.file("user7@example.com").await.unwrap();
    assert_eq!(file.sign_ups[0].evidence.decided_how.as_deref(), Some("operator"));
}
