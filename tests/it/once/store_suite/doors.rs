//! What every store makes of doors: how much mail each may cause, what passes its brake, and what is reported of its mail.

use unionhall::domain::mail::Leased;
use unionhall::domain::mail::brake::{Conduct, DoorStanding, FORM};
use unionhall::domain::mail::report::{MailReport, ReportKind, ReportOutcome, ReportedMail};
use unionhall::store::SpentProof;

use super::*;

const BRAKE: Brake = Brake { form_a_day: 2, key_a_day: 3 };
const DAY: Duration = Duration::from_secs(24 * 3600);

impl House {
    /// Sends what may go past the brake; says how many, and of which doors others were held.
    async fn send_braked(&self, now: Timestamp) -> (usize, Vec<(String, u64)>) {
        let leased = self.store.lease_mail("w", 100, Vec::new(), BRAKE, now).await;
        let Leased { mails, held, .. } = leased.unwrap();
        for mail in &mails {
            self.settle(mail, MailOutcome::Sent, now).await;
        }
        (mails.len(), held.into_iter().collect())
    }

    async fn by_form(&self, email: &str, now: Timestamp) {
        let new = NewSignUp { partner: None, ..self.new_sign_up(email) };
        self.store.sign_up(new, now).await.unwrap();
    }

    async fn report(&self, mail: ReportedMail, kind: ReportKind, now: Timestamp) -> ReportOutcome {
        self.store.note_report(MailReport { mail, kind, once: None }, now).await.unwrap()
    }
}

fn to(address: &str) -> ReportedMail {
    ReportedMail::To(address.to_owned())
}

pub(super) async fn a_door_that_has_had_its_share_is_held(house: &House) {
    for n in 0..5 {
        house.sign_up(&format!("p{n}@example.com")).await;
        house.by_form(&format!("f{n}@example.com"), NOW).await;
    }
    let (sent, held) = house.send_braked(NOW).await;
    assert_eq!((sent, held), (5, vec![(String::new(), 3), ("Acme".to_owned(), 2)]));
    assert_eq!(house.send_braked(NOW).await, (0, vec![]), "each is told once");
    let standing = |door: &str, mailed_today, mailed_before, held| DoorStanding {
        door: door.to_owned(),
        conduct: Conduct { mailed_today, mailed_before, ..Conduct::default() },
        held,
    };
    assert_eq!(house.store.door_standings(NOW).await.unwrap(), [standing("", 2, 0, 3), standing("Acme", 3, 0, 2)]);
    assert_eq!(house.store.mail_figures().await.unwrap().held, 5);

    // The operator decides; what is let go passes, and counts.
    assert_eq!(house.store.drop_held(HeldMail::OfTheForm).await, Ok(3));
    assert_eq!(house.store.release_held(HeldMail::All, after(HOUR)).await, Ok(2));
    assert_eq!(house.send_braked(after(HOUR)).await, (2, vec![]));
    assert_eq!(house.store.door_standings(NOW).await.unwrap(), [standing("", 2, 0, 0), standing("Acme", 5, 0, 0)]);

    // Another day is another share.
    house.by_form("g@example.com", after(DAY)).await;
    assert_eq!(house.send_braked(after(DAY)).await, (1, vec![]));
    assert_eq!(house.store.conduct(FORM, after(DAY)).await.unwrap().mailed_before, 2);
    assert_eq!(house.store.conduct(FORM, after(DAY * 9)).await, Ok(Conduct::default()), "and a week is forgotten");
}

pub(super) async fn a_mail_that_is_tried_again_spends_nothing_of_its_doors_share(house: &House) {
    for n in 0..3 {
        house.by_form(&format!("f{n}@example.com"), NOW).await;
    }
    let leased = house.store.lease_mail("w", 100, Vec::new(), BRAKE, NOW).await.unwrap();
    for mail in &leased.mails {
        let again = MailOutcome::Retry { at: after(HOUR), cause: "away".to_owned(), perhaps_sent: false };
        house.settle(mail, again, NOW).await;
    }
    assert_eq!(house.send_braked(after(HOUR)).await, (2, vec![]));
    assert_eq!(house.store.conduct(FORM, NOW).await.unwrap().mailed_today, 2);
}

pub(super) async fn good_conduct_earns_more_and_is_counted_where_it_happened(house: &House) {
    house.sign_up("ana@example.com").await;
    house.by_form("ben@example.com", NOW).await;
    house.by_form("cleo@example.com", NOW).await;
    assert_eq!(house.send_braked(NOW).await.0, 3);
    assert_eq!(house.confirm(1).await, Confirmation::Joined);
    assert_eq!(house.confirm(1).await, Confirmation::AlreadyMember, "and counts once");
    assert_eq!(house.confirm(2).await, Confirmation::Joined);
    for _ in 0..2 {
        assert_eq!(house.store.decline(SignUpId(3), NOW).await, Ok(Declining::Declined));
    }
    let conduct = async |door| {
        let standings = house.store.door_standings(NOW).await.unwrap();
        let found = standings.into_iter().find(|standing| standing.door == door).unwrap();
        (found.conduct.confirmed, found.conduct.unwanted)
    };
    assert_eq!(conduct("Acme").await, (1, 0));
    assert_eq!(conduct(FORM).await, (1, 1));
    for n in 0..4 {
        house.by_form(&format!("f{n}@example.com"), NOW).await;
    }
    assert_eq!(house.send_braked(NOW).await, (2, vec![(String::new(), 2)]), "two for each that was confirmed");
}

pub(super) async fn a_proof_of_work_passes_the_brake_once_and_within_bounds(house: &House) {
    let spend = async |n: usize, now: Timestamp| {
        house.store.spend_proof(format!("proof {n}"), now.plus(HOUR), BRAKE, now).await
    };
    assert_eq!(spend(0, NOW).await, Ok(SpentProof::Good));
    assert_eq!(spend(0, NOW).await, Ok(SpentProof::Used));
    for n in 1..20 {
        assert_eq!(spend(n, NOW).await, Ok(SpentProof::Good));
    }
    assert_eq!(spend(20, NOW).await, Ok(SpentProof::TooMany), "ten times the share of a day");
    assert_eq!(spend(20, after(DAY)).await, Ok(SpentProof::Good));
    house.store.retain(after(DAY)).await.unwrap();
    assert_eq!(spend(0, after(DAY)).await, Ok(SpentProof::Good), "forgotten once its time was over");

    for n in 0..4 {
        house.by_form(&format!("f{n}@example.com"), NOW).await;
    }
    let proven = NewSignUp { partner: None, proven: true, ..house.new_sign_up("ana@example.com") };
    house.store.sign_up(proven, NOW).await.unwrap();
    let (sent, held) = house.send_braked(NOW).await;
    assert!(sent == 3 || held == vec![(String::new(), 3)], "{sent} {held:?}");
    let waiting = house.store.list_mail().await.unwrap();
    assert!(waiting.iter().all(|mail| mail.id != MailId(5)), "the one with a proof went");
}

pub(super) async fn the_same_proof_at_once_passes_one(house: &House) {
    let mut asks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let store = Arc::clone(&house.store);
        asks.spawn(async move { store.spend_proof("proof".to_owned(), after(HOUR), BRAKE, NOW).await.unwrap() });
    }
    let good = asks.join_all().await.into_iter().filter(|spent| *spent == SpentProof::Good).count();
    assert_eq!(good, 1);
}

pub(super) async fn a_hard_bounce_ends_mail_to_that_address_alone(house: &House) {
    house.sign_up("ana+a@example.com").await;
    house.sign_up("ana+b@example.com").await;
    assert_eq!(house.report(to("nobody@example.com"), ReportKind::HardBounce, NOW).await, ReportOutcome::Unknown);
    let about = || ReportedMail::OfSignUp(SignUpId(1));
    assert_eq!(house.report(about(), ReportKind::HardBounce, NOW).await, ReportOutcome::Noted);
    assert_eq!(house.report(about(), ReportKind::HardBounce, NOW).await, ReportOutcome::Repeated);
    assert_eq!(house.send_due(after(HOUR)).await, ["ana+b@example.com"]);
    let standing = &house.store.door_standings(NOW).await.unwrap()[0];
    assert_eq!((standing.door.as_str(), standing.conduct.unwanted), ("Acme", 1), "told once");
    house.sign_up_at("ana+a@example.com", after(UNDELIVERABLE_FOR + HOUR)).await;
    assert_eq!(house.send_due(after(UNDELIVERABLE_FOR + HOUR)).await, ["ana+a@example.com"]);
}

pub(super) async fn a_complaint_silences_the_mailbox_until_its_owner_confirms(house: &House) {
    house.sign_up("ana@example.com").await;
    assert_eq!(house.send_due(NOW).await.len(), 1);
    assert_eq!(house.report(to("ana@example.com"), ReportKind::Complaint, NOW).await, ReportOutcome::Noted);
    assert_eq!(house.report(to("ana@example.com"), ReportKind::Complaint, NOW).await, ReportOutcome::Repeated);
    for days in [1, 6, 40, 400] {
        house.sign_up_at("ana+x@example.com", after(DAY * days)).await;
        assert_eq!(house.send_due(after(DAY * days)).await, Vec::<String>::new(), "{days} days later");
    }
    house.sign_up_at("ben@example.com", NOW).await;
    assert_eq!(house.send_due(NOW).await, ["ben@example.com"]);

    // The link of the mail that was complained about is in its owner's hands.
    assert_eq!(house.store.confirm(SignUpId(1), None, after(DAY)).await, Ok(Confirmation::Joined));
    house.sign_up_at("ana+y@example.com", after(DAY * 401)).await;
    assert_eq!(house.send_due(after(DAY * 401)).await, ["ana+y@example.com"]);
}

pub(super) async fn soft_bounces_and_repeats_are_counted_once_each(house: &House) {
    house.by_form("ana@example.com", NOW).await;
    let report = |id: &str| MailReport {
        mail: to("ana@example.com"),
        kind: ReportKind::SoftBounce,
        once: Some((id.to_owned(), after(HOUR))),
    };
    for (id, outcome) in [("a", ReportOutcome::Noted), ("a", ReportOutcome::Repeated), ("b", ReportOutcome::Noted)] {
        assert_eq!(house.store.note_report(report(id), NOW).await, Ok(outcome), "{id}");
    }
    let figures = house.store.mail_figures().await.unwrap();
    assert_eq!((figures.soft_bounces, figures.hard_bounces, figures.complaints), (2, 0, 0));
    assert_eq!(house.store.conduct(FORM, NOW).await.unwrap().unwanted, 0, "a full mailbox is nobody's fault");
    assert_eq!(house.send_due(NOW).await, ["ana@example.com"]);
}
