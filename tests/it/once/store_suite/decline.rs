//! "This wasn't me": what it withdraws, what it silences and what not, and taking it back.

use super::*;

const NONE: Silence = Silence { again: false, partner: false, mailbox: false };
const QUIET: Silence = Silence { mailbox: true, ..NONE };

/// What somebody says who saw nothing ticked.
fn tick(wanted: Silence) -> SilenceChange {
    SilenceChange::between(NONE, wanted)
}

pub(super) async fn declining_withdraws_and_silences_nothing_by_itself(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    for _ in 0..2 {
        let declined = fixture.store.run(declining(linked(1), Some(tick(NONE)), NOW)).await;
        assert_eq!(declined, Ok(Declining::Declined), "twice is once");
    }
    assert_eq!(fixture.confirm(1).await, Confirmation::Declined);
    assert_eq!(fixture.members().await, 0);
    assert_eq!(fixture.send_due(NOW).await, Vec::<String>::new());
    let keys = fixture.run(ListKeys).await;
    let expected = KeyFigures { signed_up: 1, confirmed: 0, declined: 1 };
    assert_eq!(keys[0].1, expected, "counted against the partner");
    fixture.sign_up_at("ana@example.com", after(DAY)).await;
    assert_eq!(fixture.send_due(after(DAY)).await.len(), 1, "whoever declined by mistake and signs up again is mailed");
    let unknown = fixture.store.run(declining(linked(99), None, NOW)).await;
    assert_eq!(unknown, Ok(Declining::Unknown));
    fixture.sign_up("ben@example.com").await;
    let last = about(&fixture.lease("w", NOW).await[0]);
    let late = fixture.store.run(declining(last, None, after(PENDING_FOR))).await;
    assert_eq!(late, Ok(Declining::Expired));
}

pub(super) async fn a_mailbox_that_asks_for_silence_has_it_until_it_is_over_or_taken_back(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    let shown = async |now| fixture.run(FindSignUp(linked(1), now)).await.unwrap();
    fixture.run(declining(linked(1), Some(tick(QUIET)), NOW)).await;
    let until = NOW.plus(SUPPRESSED_FOR);
    assert_eq!((shown(NOW).await.silence, shown(NOW).await.silent_until), (QUIET, Some(until)));
    for email in ["ana@example.com", "ana+x@example.com"] {
        fixture.sign_up_at(email, after(DAY)).await;
    }
    assert_eq!(fixture.send_due(after(DAY)).await, Vec::<String>::new(), "under every spelling");
    assert!(fixture.run(ChooseSilence { sign_up: linked(1), silence: tick(QUIET), now: after(DAY) }).await);
    assert_eq!(shown(after(DAY)).await.silent_until, Some(until), "asking again makes it no longer");
    assert!(
        fixture
            .run(ChooseSilence { sign_up: linked(1), silence: SilenceChange::between(QUIET, NONE), now: after(DAY) })
            .await
    );
    assert_eq!(shown(after(DAY)).await.silent_until, None);
    fixture.sign_up_at("ana@example.com", after(DAY)).await;
    assert_eq!(fixture.send_due(after(DAY)).await, ["ana@example.com"]);
    assert!(!fixture.run(ChooseSilence { sign_up: linked(99), silence: tick(QUIET), now: NOW }).await);
    // A mail program's own button means silence, if nobody there is a member.
    fixture.sign_up("ben@example.com").await;
    let ben = about(&fixture.lease("w", after(DAY)).await[0]);
    fixture.run(one_click(ben, after(DAY))).await;
    fixture.sign_up_at("ben@example.com", after(2 * DAY)).await;
    assert_eq!(fixture.send_due(after(2 * DAY)).await, Vec::<String>::new());
    fixture.sign_up_at("ben@example.com", after(DAY + SUPPRESSED_FOR)).await;
    assert_eq!(fixture.send_due(after(DAY + SUPPRESSED_FOR)).await.len(), 1, "and it is over when it was said to be");
}

pub(super) async fn one_partners_mail_is_stopped_and_no_other(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    let stop = Silence { partner: true, ..NONE };
    fixture.run(declining(linked(1), Some(tick(stop)), NOW)).await;
    assert_eq!(fixture.run(FindSignUp(linked(1), NOW)).await.unwrap().silence, stop);
    fixture.sign_up_at("ana+y@example.com", after(DAY)).await;
    assert_eq!(fixture.send_due(after(DAY)).await, Vec::<String>::new(), "whichever spelling that partner uses");
    fixture.by_form("ana@example.com", after(DAY)).await;
    assert_eq!(fixture.send_due(after(DAY)).await, ["ana@example.com"], "what they ask for themselves comes");
    let file = fixture.file("ana@example.com").await.unwrap();
    assert_eq!(file.mailbox.stopped.iter().map(|stop| stop.partner.as_str()).collect::<Vec<_>>(), ["Acme"]);
    // It is remembered for as long as a complaint is.
    let times = RetentionTimes::DEFAULT;
    fixture.run(Retain { times, now: NOW.plus(times.complaints) }).await;
    assert!(fixture.file("ana@example.com").await.unwrap().mailbox.stopped.is_empty());
    fixture.run(ChooseSilence { sign_up: linked(1), silence: tick(stop), now: NOW }).await;
    let lifted = fixture
        .run(Unsuppress { email_normalized: email("ana@example.com").normalized(), account: AccountId::kept("a") })
        .await
        .unwrap();
    assert!(lifted.partners);
    fixture.run(ChooseSilence { sign_up: linked(1), silence: tick(stop), now: NOW }).await;
    fixture.erase("ana+y@example.com").await.unwrap();
    assert!(!fixture.file("ana@example.com").await.unwrap().mailbox.stopped.is_empty(), "another has the mailbox");
    fixture.erase("ana@example.com").await.unwrap();
    fixture.sign_up_at("ana+z@example.com", after(DAY)).await;
    assert!(fixture.file("ana+z@example.com").await.unwrap().mailbox.stopped.is_empty(), "erased with the rest");
}

pub(super) async fn a_member_withdraws_a_request_and_stays_as_they_are(fixture: &Fixture) {
    let mut categories = CategorySet::default();
    categories.insert(Category::Travel);
    let new = NewSignUp {
        answers: answers(Some(UsState::CA), Some(categories), Some("hello")),
        language: Some(Language::Spanish),
        ..fixture.new_sign_up("Ana@example.com")
    };
    fixture.store.sign_up(new, NOW).await.unwrap();
    let shown_at = async |made_at, id, now| fixture.run(FindSignUp(linked_at(id, made_at), now)).await.unwrap();
    let shown = async |id, now| shown_at(NOW, id, now).await;
    let first = shown(1, NOW).await;
    assert_eq!((first.state, first.email.as_typed()), (SignUpState::Pending, "Ana@example.com"));
    assert_eq!((first.partner.as_deref(), first.answers.us_state), (Some("Acme"), Some(UsState::CA)));
    assert_eq!((first.answers.categories, first.answers.comments.is_some()), (Some(categories), true));
    assert_eq!((first.language, first.is_member), (Some(Language::Spanish), false));
    assert_eq!(shown(1, after(PENDING_FOR)).await.state, SignUpState::Expired);
    assert_eq!(fixture.run(FindSignUp(linked(2), NOW)).await, None);
    fixture.confirm(1).await;
    // The mail of the first sign-up still has its link.
    let declined = fixture.store.run(declining(linked(1), Some(tick(NONE)), NOW)).await;
    assert_eq!(declined, Ok(Declining::Confirmed));
    assert_eq!((fixture.members().await, shown(1, NOW).await.state), (1, SignUpState::Confirmed));
    fixture.sign_up_at("ana@example.com", after(DAY)).await;
    assert_eq!(fixture.send_due(after(DAY)).await.len(), 1, "and nothing is silenced that nobody asked to silence");
    let declined = fixture.store.run(declining(linked_at(2, after(DAY)), Some(tick(NONE)), after(DAY))).await;
    assert_eq!(declined, Ok(Declining::Declined));
    let second = shown_at(after(DAY), 2, after(DAY)).await;
    assert_eq!((second.state, second.is_member, second.silence), (SignUpState::Declined, true, NONE));
    // With the mail program's own button, the kind: the mailbox itself stays open, and with it the way in.
    fixture.sign_up_at("ana@example.com", after(2 * DAY)).await;
    let made_at = after(2 * DAY);
    fixture.run(one_click(linked_at(3, made_at), after(2 * DAY))).await;
    let third = shown_at(made_at, 3, after(2 * DAY)).await;
    assert_eq!((third.silence.again, third.silent_until), (true, None));
    fixture.sign_up_at("ana@example.com", after(3 * DAY)).await;
    assert_eq!(fixture.send_due(after(3 * DAY)).await, Vec::<String>::new());
    assert_eq!(fixture.members().await, 1);
}

pub(super) async fn it_was_me_after_all_confirms_and_lets_mail_through(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    let seen = || SeenPage { notice: Some("words".into()), language: Some(Language::Spanish), ..SeenPage::default() };
    let back = async |id, now| fixture.run(TakeBack { sign_up: linked(id), seen: seen(), now }).await;
    assert_eq!(back(1, NOW).await, Confirmation::Changed, "nothing was declined");
    assert_eq!(fixture.members().await, 0);
    let all = Silence { again: true, partner: true, mailbox: true };
    fixture.run(declining(linked(1), Some(tick(all)), NOW)).await;
    assert!(fixture.run(FindSignUp(linked(1), NOW)).await.unwrap().can_take_back);
    // Meanwhile somebody signs them up once more, in the same place.
    fixture.sign_up_at("ana@example.com", after(MINUTE)).await;
    let Confirmation::Joined(member) = back(1, after(MINUTE)).await else { panic!("they are no member") };
    fixture.check_new_member(linked(1), &member, after(MINUTE)).await;
    assert_eq!(member.language, Some(Language::Spanish));
    assert_eq!(back(1, after(MINUTE)).await, Confirmation::AlreadyMember);
    assert_eq!(fixture.members().await, 1);
    let file = fixture.file("ana@example.com").await.unwrap();
    assert_eq!((file.mailbox.suppressed_until, file.mailbox.stopped.len()), (None, 0));
    assert_eq!(file.person.language, Some(Language::Spanish));
    let kept = &file.sign_ups[0].evidence;
    let notice = kept.notice.as_ref().map(|notice| notice.hash.as_str());
    assert_eq!((kept.decided_how.as_deref(), notice), (Some("taken-back"), Some("words")));
    let standings = fixture.run(ListSourceStatuses(NOW)).await;
    let acme = standings.iter().find(|standing| standing.source == "Acme").unwrap();
    assert_eq!(
        (acme.reputation.confirmed, acme.reputation.unwanted()),
        (1, 0),
        "and it is not held against the partner"
    );
    fixture.send_due(after(HOUR)).await;
    fixture.sign_up_at("ana@example.com", after(DAY)).await;
    assert_eq!(fixture.send_due(after(DAY)).await, ["ana@example.com"]);
    // Too late: the time to confirm is over.
    fixture.sign_up("ben@example.com").await;
    let ben = of_entry(&fixture.file("ben@example.com").await.unwrap().sign_ups[0]);
    fixture.run(declining(ben, None, NOW)).await;
    assert_eq!(
        fixture.run(TakeBack { sign_up: ben, seen: seen(), now: after(PENDING_FOR) }).await,
        Confirmation::Expired
    );
    assert!(!fixture.run(FindSignUp(ben, after(PENDING_FOR))).await.unwrap().can_take_back);
    assert_eq!(fixture.run(TakeBack { sign_up: linked(99), seen: seen(), now: NOW }).await, Confirmation::Unknown);
}

pub(super) async fn a_code_is_known_whatever_became_of_its_owner(fixture: &Fixture) {
    let unknown = ReferralCode::from_canonical("zzzzzzzzzzzz").unwrap();
    let known = async |code| fixture.run(IsCodeKnown(code)).await;
    let code = fixture.join("ana@example.com").await;
    assert_eq!((known(code).await, known(unknown).await), (true, false));
    let new = NewSignUp { ref_code: Some(code), ..fixture.new_sign_up("ben@example.com") };
    fixture.store.sign_up(new, NOW).await.unwrap();
    let ben = of_entry(&fixture.file("ben@example.com").await.unwrap().sign_ups[0]);
    let referrer = async || fixture.run(FindSignUp(ben, NOW)).await.unwrap().referrer.unwrap();
    assert_eq!(referrer().await.email.map(|email| email.masked()).as_deref(), Some("a•••@e•••.com"));
    fixture.leave("ana@example.com").await;
    assert!(known(code).await);
    fixture.erase("ana@example.com").await.unwrap();
    assert!(known(code).await);
    assert_eq!((referrer().await.code, referrer().await.email), (code, None), "of whom no letter is left");
}

/// Two mails open in two windows: what one window asked for is not lifted by the other, which did not show it.
pub(super) async fn a_page_lifts_only_what_it_showed(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    fixture.by_form("ana@example.com", NOW).await;
    fixture.run(declining(linked(1), Some(tick(QUIET)), NOW)).await;
    fixture.run(declining(linked(2), Some(tick(NONE)), NOW)).await;
    let shown = fixture.run(FindSignUp(linked(2), NOW)).await.unwrap();
    assert_eq!((shown.state, shown.silence), (SignUpState::Declined, QUIET));
}

/// What was declined is not confirmed later by whoever is a member, has left since, or can no longer see what it says.
pub(super) async fn not_everything_declined_can_be_taken_back(fixture: &Fixture) {
    let back = async |id, now| fixture.run(TakeBack { sign_up: linked(id), seen: SeenPage::default(), now }).await;
    let can = async |id, now| fixture.run(FindSignUp(linked(id), now)).await.unwrap().can_take_back;
    fixture.join("ana@example.com").await;
    fixture.sign_up("ana@example.com").await;
    let second = fixture.file("ana@example.com").await.unwrap().sign_ups[1].id.0;
    fixture.run(declining(linked(second), None, NOW)).await;
    assert!(!can(second, NOW).await);
    assert_eq!(back(second, NOW).await, Confirmation::AlreadyMember);
    assert_eq!(fixture.file("ana@example.com").await.unwrap().sign_ups[1].state, SignUpState::Declined);
    fixture.leave("ana@example.com").await;
    assert_eq!((can(second, NOW).await, back(second, NOW).await), (false, Confirmation::Expired), "they left since");
    assert_eq!(fixture.members().await, 0);
    fixture.sign_up("ben@example.com").await;
    let ben = of_entry(&fixture.file("ben@example.com").await.unwrap().sign_ups[0]);
    fixture.run(declining(ben, None, NOW)).await;
    let stale = SeenPage { answers: Some(after(MINUTE)), ..SeenPage::default() };
    assert_eq!(
        fixture.run(TakeBack { sign_up: ben, seen: stale, now: NOW }).await,
        Confirmation::Changed,
        "not what they saw"
    );
    let times = RetentionTimes { answers: HOUR, ..RetentionTimes::DEFAULT };
    fixture.run(Retain { times, now: after(HOUR) }).await;
    assert_eq!((can(ben.id.0, after(HOUR)).await, back(ben.id.0, after(HOUR)).await), (false, Confirmation::Expired));
}

/// The mail program's own button, at another spelling of a member's mailbox, does not shut the member out.
pub(super) async fn one_click_at_an_alias_leaves_the_members_mailbox_open(fixture: &Fixture) {
    fixture.join("ana@example.com").await;
    fixture.sign_up("ana+x@example.com").await;
    let alias = of_entry(&fixture.file("ana+x@example.com").await.unwrap().sign_ups[0]);
    fixture.run(one_click(alias, NOW)).await;
    let file = fixture.file("ana@example.com").await.unwrap();
    assert_eq!((file.mailbox.suppressed_until, file.mailbox.stopped.len()), (None, 1));
    fixture.sign_up_at("ana+x@example.com", after(DAY)).await;
    assert!(fixture.send_due(after(DAY)).await.is_empty(), "whoever asked for it is heard no more");
}

/// Somebody of the mailbox was erased; another lifts the silence that came of it, and no stranger brings it back.
pub(super) async fn a_silence_that_was_lifted_stays_so(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    fixture.sign_up("ana+a@example.com").await;
    let alias = of_entry(&fixture.file("ana+a@example.com").await.unwrap().sign_ups[0]);
    fixture.erase("ana@example.com").await.unwrap();
    let silent = async |now| fixture.run(FindSignUp(alias, now)).await.unwrap().silent_until.is_some();
    assert!(silent(after(MINUTE)).await);
    fixture
        .run(ChooseSilence { sign_up: alias, silence: SilenceChange::between(QUIET, NONE), now: after(MINUTE) })
        .await;
    fixture.by_form("ana+a@example.com", after(HOUR)).await;
    assert!(!silent(after(HOUR)).await);
    assert_eq!(fixture.file("ana+a@example.com").await.unwrap().mailbox.suppressed_until, None);
}
