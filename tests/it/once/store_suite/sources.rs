//! What every store makes of sources: how much mail each may cause, what passes its budget, and what is reported of its mail.

use unionhall::domain::mail::Leased;
use unionhall::domain::mail::budget::Reputation;
use unionhall::domain::secret::proof::Proof;
use unionhall::figures::{ListSourceTotals, SourceTotals};
use unionhall::mail::sources::{FindFormReputation, SpendProof, SpentProof};

use super::*;

const BUDGET: MailBudget = MailBudget { form_a_day: 2, key_a_day: 3 };
const WIDE: MailBudget = MailBudget { form_a_day: 4, key_a_day: 3 };
const DAY: Duration = Duration::from_secs(24 * 3600);

impl Fixture {
    /// Sends what may go past the budget; says how many, and of which sources others were held.
    async fn send_throttled(&self, now: Timestamp) -> (usize, Vec<(String, u64)>) {
        let leased = self.store.run(Lease { budget: Some(BUDGET), ..lease_of("w", 100, now) }).await;
        let Leased { mails, held, .. } = leased.unwrap();
        for mail in &mails {
            self.settle(mail, MailOutcome::Sent, now).await;
        }
        (mails.len(), held.into_iter().collect())
    }

    pub(super) async fn by_form(&self, email: &str, now: Timestamp) {
        let new = NewSignUp { partner: None, ..self.new_sign_up(email) };
        self.store.sign_up(new, now).await.unwrap();
    }

    async fn report(&self, mail: ReportedMail, kind: ReportKind, now: Timestamp) -> ReportOutcome {
        self.run(NoteReport { report: MailReport { mail, kind, once: None }, now }).await
    }
}

fn to(address: &str) -> ReportedMail {
    ReportedMail::To(address.to_owned())
}

pub(super) async fn a_source_that_has_had_its_share_is_held(fixture: &Fixture) {
    for n in 0..5 {
        fixture.sign_up(&format!("p{n}@example.com")).await;
        fixture.by_form(&format!("f{n}@example.com"), NOW).await;
    }
    let (sent, held) = fixture.send_throttled(NOW).await;
    assert_eq!((sent, held), (5, vec![(String::new(), 3), ("Acme".to_owned(), 2)]));
    assert_eq!(fixture.send_throttled(NOW).await, (0, vec![]), "each is told once");
    let standing = |source: &str, mailed_today, asked, held| SourceStatus {
        source: source.to_owned(),
        is_suspended: false,
        fixed: None,
        reputation: Reputation { mailed_today, asked, ..Reputation::default() },
        held,
        held_in_part: false,
    };
    assert_eq!(fixture.run(ListSourceStatuses(NOW)).await, [standing("", 2, 2, 3), standing("Acme", 3, 3, 2)]);
    assert_eq!(fixture.run(FindMailFigures).await.held, 5);
    // The operator decides; what is let go passes, and counts.
    assert_eq!(fixture.run(DropHeld(HeldMail::OfTheForm, NOW)).await, 3);
    // What is dropped is over: asking to sign in mails those alone who were mailed before, and counts.
    let mut states = Vec::new();
    for n in 0..5 {
        let address = format!("f{n}@example.com");
        states.push(fixture.file(&address).await.unwrap().sign_ups[0].state);
        let email = EmailAddress::parse(&address).unwrap();
        fixture.run(asking(&email, "b", None, after(HOUR))).await;
    }
    assert_eq!(states.iter().filter(|state| **state == SignUpState::Expired).count(), 3, "{states:?}");
    assert_eq!(fixture.send_throttled(after(HOUR)).await, (2, vec![]), "two reminders");
    assert_eq!(fixture.run(ReleaseHeld(HeldMail::All, after(HOUR))).await, 2);
    assert_eq!(fixture.send_throttled(after(HOUR)).await, (2, vec![]));
    assert_eq!(fixture.run(ListSourceStatuses(NOW)).await, [standing("", 4, 2, 0), standing("Acme", 5, 5, 0)]);
    // Another day is another share.
    fixture.by_form("g@example.com", after(DAY)).await;
    assert_eq!(fixture.send_throttled(after(DAY)).await, (1, vec![]));
    let tomorrow = fixture.run(FindFormReputation(after(DAY))).await.0;
    assert_eq!((tomorrow.asked, tomorrow.asked_before), (3, 2));
    assert_eq!(
        fixture.run(FindFormReputation(after(DAY * 9))).await,
        (Reputation::default(), false),
        "and a week is forgotten"
    );
}

pub(super) async fn a_mail_that_is_tried_again_spends_nothing_of_its_sources_share(fixture: &Fixture) {
    for n in 0..3 {
        fixture.by_form(&format!("f{n}@example.com"), NOW).await;
    }
    let leased = fixture.run(Lease { budget: Some(BUDGET), ..lease_of("w", 100, NOW) }).await;
    for mail in &leased.mails {
        let again = MailOutcome::Retry { at: after(HOUR), cause: "away".to_owned(), perhaps_sent: false };
        fixture.settle(mail, again, NOW).await;
    }
    assert_eq!(fixture.send_throttled(after(HOUR)).await, (2, vec![]));
    assert_eq!(fixture.run(FindFormReputation(NOW)).await.0.mailed_today, 2);
}

/// What waits counts before anybody has looked at it: whoever comes behind a flood is asked, and not left to wait.
pub(super) async fn what_the_form_asked_for_counts_before_it_is_looked_at(fixture: &Fixture) {
    let mailed = async || fixture.run(FindFormReputation(NOW)).await.0.mailed_today;
    for n in 0..3 {
        fixture.by_form(&format!("f{n}@example.com"), NOW).await;
        fixture.sign_up(&format!("p{n}@example.com")).await;
    }
    assert_eq!(mailed().await, 3);
    assert_eq!(fixture.send_throttled(NOW).await.0, 5);
    assert_eq!(mailed().await, 2, "what is held is not mailed");
}

pub(super) async fn good_reputation_earns_more_and_is_counted_where_it_happened(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    fixture.by_form("ben@example.com", NOW).await;
    fixture.by_form("cleo@example.com", NOW).await;
    assert_eq!(fixture.send_throttled(NOW).await.0, 3);
    assert!(matches!(fixture.confirm(1).await, Confirmation::Joined(_)));
    assert_eq!(fixture.confirm(1).await, Confirmation::AlreadyMember, "and counts once");
    assert!(matches!(fixture.confirm(2).await, Confirmation::Joined(_)));
    for _ in 0..2 {
        assert_eq!(fixture.run(declining(linked(3), None, NOW)).await, Declining::Declined);
    }
    let reputation = async |source| {
        let standings = fixture.run(ListSourceStatuses(NOW)).await;
        let found = standings.into_iter().find(|standing| standing.source == source).unwrap();
        (found.reputation.confirmed, found.reputation.unwanted())
    };
    assert_eq!(reputation("Acme").await, (1, 0));
    assert_eq!(reputation(FORM).await, (1, 1));
    // Neither a member who confirms once more nor an address that is thrown away is to anybody's credit.
    fixture.by_form("ana@example.com", after(HOUR)).await;
    assert_eq!(fixture.confirm_at(linked_at(4, after(HOUR)), after(HOUR)).await, Confirmation::AlreadyMember);
    let thrown = NewSignUp { partner: None, disposable: true, ..fixture.new_sign_up("x@mailinator.com") };
    fixture.store.sign_up(thrown, after(HOUR)).await.unwrap();
    assert!(matches!(fixture.confirm_at(linked_at(5, after(HOUR)), after(HOUR)).await, Confirmation::Joined(_)));
    assert_eq!(reputation(FORM).await, (1, 1));

    for n in 0..6 {
        fixture.by_form(&format!("f{n}@example.com"), after(HOUR)).await;
    }
    assert_eq!(
        fixture.send_throttled(after(HOUR)).await,
        (0, vec![(String::new(), 6)]),
        "nothing is earned on the day itself"
    );
    for n in 0..6 {
        fixture.by_form(&format!("g{n}@example.com"), after(DAY)).await;
    }
    assert_eq!(
        fixture.send_throttled(after(DAY)).await,
        (4, vec![(String::new(), 2)]),
        "two more for the one of yesterday"
    );
}

pub(super) async fn a_source_is_judged_by_mail_that_left_and_can_be_confirmed(fixture: &Fixture) {
    let judged = async |now| {
        let standings = fixture.run(ListSourceStatuses(now)).await;
        let acme = standings.into_iter().find(|standing| standing.source == "Acme").unwrap();
        (acme.reputation.asked, acme.reputation.asked_before, acme.reputation.unwanted())
    };
    for email in ["ana@example.com", "ben@example.com", "cleo@example.com"] {
        fixture.sign_up(email).await;
    }
    let mut due = fixture.lease("w", NOW).await;
    due.sort_by_key(|mail| about(mail).id);
    let away = MailOutcome::Retry { at: after(DAY * 3), cause: "away".to_owned(), perhaps_sent: false };
    fixture.settle(&due[0], MailOutcome::Sent, NOW).await;
    fixture.settle(&due[1], away, NOW).await;
    fixture.settle(&due[2], MailOutcome::Rejected, NOW).await;
    assert!(matches!(fixture.confirm(1).await, Confirmation::Joined(_)));
    fixture.sign_up_at("ana@example.com", after(HOUR)).await;
    assert_eq!(fixture.send_due(after(HOUR)).await, ["ana@example.com"], "you are in already");
    assert_eq!(judged(after(DAY)).await, (1, 1, 1), "one left that asks, and one went to nobody");
}

/// An outage kept a day's mail until shortly before midnight: hardly anybody looked for it, and the partner was throttled to a tenth.
pub(super) async fn an_outage_of_the_mail_server_punishes_no_partner(fixture: &Fixture) {
    for n in 0..60 {
        fixture.sign_up(&format!("p{n}@example.com")).await;
    }
    let back = after(HOUR * 2);
    for mail in fixture.lease("w", NOW).await {
        fixture
            .settle(&mail, MailOutcome::Retry { at: back, cause: "away".to_owned(), perhaps_sent: false }, NOW)
            .await;
    }
    assert_eq!(fixture.send_due(back).await.len(), 60);
    let listed = fixture.run(ListSourceStatuses(after(DAY))).await;
    let Reputation { asked, asked_before, .. } = listed[0].reputation;
    assert_eq!((asked, asked_before), (60, 0), "sixty left, and the partner is judged by none of them");
    assert_eq!(BUDGET.quota("Acme", None, &listed[0].reputation), Some(3));
    // What goes at once is what it is judged by.
    for n in 0..60 {
        fixture.sign_up_at(&format!("q{n}@example.com"), after(DAY)).await;
    }
    assert_eq!(fixture.send_due(after(DAY)).await.len(), 60);
    let listed = fixture.run(ListSourceStatuses(after(DAY * 2))).await;
    assert!(listed[0].reputation.asked_before == 60 && listed[0].reputation.is_bad());
}

/// Of a key that is only throttled, mail that waits for its next try is not held.
pub(super) async fn what_waits_of_a_key_that_is_not_revoked_is_not_held(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    let due = fixture.lease("w", NOW).await;
    let away = MailOutcome::Retry { at: after(HOUR), cause: "away".to_owned(), perhaps_sent: false };
    fixture.settle(&due[0], away, NOW).await;
    let of_key = HeldMail::OfKey(fixture.partner.key);
    assert_eq!(fixture.run(DropHeld(of_key, NOW)).await, 0);
    assert_eq!(fixture.run(ReleaseHeld(of_key, NOW)).await, 0);
    assert_eq!(fixture.send_due(after(HOUR)).await, ["ana@example.com"]);
}

/// A mail about a sign-up that lapsed meanwhile had a worker look at it without end.
pub(super) async fn mail_of_a_sign_up_that_lapsed_is_dropped_with_it(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    assert_eq!(fixture.send_due(NOW).await.len(), 1);
    assert!(matches!(fixture.confirm(1).await, Confirmation::Joined(_)));
    fixture.by_form("ana@example.com", after(MINUTE)).await;
    let late = after(PENDING_FOR + HOUR);
    fixture.by_form("ana@example.com", late).await;
    assert_eq!(fixture.run(ListMail).await.len(), 1, "the older one's mail went with it");
    let leased = fixture.run(lease_of("w", 100, late)).await;
    assert_eq!(leased.mails.len(), 1);
    fixture.settle(&leased.mails[0], MailOutcome::Sent, late).await;
    fixture.by_form("ana@example.com", late).await;
    let leased = fixture.run(lease_of("w", 100, late)).await;
    assert!(leased.mails.is_empty() && leased.deferred, "put off");
    let leased = fixture.run(lease_of("w", 100, late)).await;
    assert!(leased.mails.is_empty() && !leased.deferred, "and not looked at again before its time");
}

pub(super) async fn a_proof_of_work_passes_the_budget_once_and_within_bounds(fixture: &Fixture) {
    let spend = async |n: usize, site: &str, now: Timestamp| {
        let proof = Proof { name: format!("{n}"), ends_at: now.plus(HOUR) };
        fixture.store.run(SpendProof { proof, site: site.to_owned(), budget: WIDE, now }).await
    };
    assert_eq!(spend(0, "a", NOW).await, Ok(SpentProof::Good));
    assert_eq!(spend(0, "b", NOW).await, Ok(SpentProof::Used));
    for n in 1..30 {
        assert_eq!(spend(n, "a", NOW).await, Ok(SpentProof::Good));
    }
    assert_eq!(spend(30, "a", NOW).await, Ok(SpentProof::TooMany), "thirty of one site");
    for n in 30..40 {
        assert_eq!(spend(n, "b", NOW).await, Ok(SpentProof::Good));
    }
    assert_eq!(spend(40, "c", NOW).await, Ok(SpentProof::TooMany), "ten times the share of a day");
    assert_eq!(spend(40, "a", after(DAY)).await, Ok(SpentProof::Good));
    fixture.run(Retain { times: TIMES, now: after(DAY) }).await;
    assert_eq!(spend(0, "a", after(DAY)).await, Ok(SpentProof::Good), "forgotten once its time was over");

    for n in 0..4 {
        fixture.by_form(&format!("f{n}@example.com"), NOW).await;
    }
    let proven = NewSignUp { partner: None, proven: true, ..fixture.new_sign_up("ana@example.com") };
    fixture.store.sign_up(proven, NOW).await.unwrap();
    let (sent, held) = fixture.send_throttled(NOW).await;
    assert!(sent == 3 || held == vec![(String::new(), 3)], "{sent} {held:?}");
    let waiting = fixture.run(ListMail).await;
    assert!(waiting.iter().all(|mail| mail.id != MailId(5)), "the one with a proof went");
}

pub(super) async fn the_same_proof_at_once_passes_one(fixture: &Fixture) {
    let mut asks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let store = fixture.store.clone();
        let proof = Proof { name: "one".to_owned(), ends_at: after(HOUR) };
        asks.spawn(async move {
            store.run(SpendProof { proof, site: "a".to_owned(), budget: BUDGET, now: NOW }).await.unwrap()
        });
    }
    let good = asks.join_all().await.into_iter().filter(|spent| *spent == SpentProof::Good).count();
    assert_eq!(good, 1);
}

pub(super) async fn a_hard_bounce_ends_mail_to_that_address_alone(fixture: &Fixture) {
    fixture.sign_up("ana+a@example.com").await;
    fixture.sign_up("ana+b@example.com").await;
    assert_eq!(fixture.report(to("nobody@example.com"), ReportKind::HardBounce, NOW).await, ReportOutcome::Unknown);
    let about = || ReportedMail::OfSignUp(linked(1));
    assert_eq!(fixture.report(about(), ReportKind::HardBounce, NOW).await, ReportOutcome::Noted);
    assert_eq!(fixture.report(about(), ReportKind::HardBounce, NOW).await, ReportOutcome::Repeated);
    assert_eq!(fixture.send_due(after(HOUR)).await, ["ana+b@example.com"]);
    let standing = &fixture.run(ListSourceStatuses(NOW)).await[0];
    assert_eq!((standing.source.as_str(), standing.reputation.bounced), ("Acme", 1), "told once");
    // A token that was kept for a month still speaks for its owner, and no longer against the source.
    let late = after(UNDELIVERABLE_FOR);
    assert_eq!(fixture.report(about(), ReportKind::HardBounce, late).await, ReportOutcome::Noted);
    assert!(fixture.run(ListSourceStatuses(late)).await.iter().all(|standing| standing.reputation.unwanted() == 0));
    let over = late.plus(UNDELIVERABLE_FOR);
    fixture.sign_up_at("ana+a@example.com", over).await;
    assert_eq!(fixture.send_due(over).await, ["ana+a@example.com"]);
}

pub(super) async fn a_complaint_silences_the_mailbox_until_its_owner_confirms(fixture: &Fixture) {
    fixture.sign_up("ana@example.com").await;
    assert_eq!(fixture.send_due(NOW).await.len(), 1);
    assert_eq!(fixture.report(to("ana@example.com"), ReportKind::Complaint, NOW).await, ReportOutcome::Noted);
    assert_eq!(fixture.report(to("ana@example.com"), ReportKind::Complaint, NOW).await, ReportOutcome::Repeated);
    for days in [1, 6, 40, 400] {
        fixture.sign_up_at("ana+x@example.com", after(DAY * days)).await;
        assert_eq!(fixture.send_due(after(DAY * days)).await, Vec::<String>::new(), "{days} days later");
    }
    fixture.sign_up_at("ben@example.com", NOW).await;
    assert_eq!(fixture.send_due(NOW).await, ["ben@example.com"]);
    // The link of the mail that was complained about is in its owner's hands.
    assert!(matches!(fixture.confirm_at(linked(1), after(DAY)).await, Confirmation::Joined(_)));
    fixture.sign_up_at("ana+y@example.com", after(DAY * 401)).await;
    assert_eq!(fixture.send_due(after(DAY * 401)).await, ["ana+y@example.com"]);
}

pub(super) async fn soft_bounces_and_repeats_are_counted_once_each(fixture: &Fixture) {
    fixture.by_form("ana@example.com", NOW).await;
    let report = |id: &str| MailReport {
        mail: to("ana@example.com"),
        kind: ReportKind::SoftBounce,
        once: Some((id.to_owned(), after(HOUR))),
    };
    for (id, outcome) in [("a", ReportOutcome::Noted), ("a", ReportOutcome::Repeated), ("b", ReportOutcome::Noted)] {
        assert_eq!(fixture.run(NoteReport { report: report(id), now: NOW }).await, outcome, "{id}");
    }
    let totals = fixture.run(ListSourceTotals).await;
    let reports = |figure: fn(&SourceTotals) -> u64| totals.iter().map(figure).sum::<u64>();
    assert_eq!((reports(|t| t.soft_bounces), reports(|t| t.hard_bounces), reports(|t| t.complaints)), (2, 0, 0));
    assert_eq!(totals[0].source, "", "the form comes first, be there something of it or not");
    assert_eq!(fixture.run(FindFormReputation(NOW)).await.0.unwanted(), 0, "a full mailbox is nobody's fault");
    assert_eq!(fixture.send_due(NOW).await, ["ana@example.com"]);
}
