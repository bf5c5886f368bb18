//! Mail about campaigns: who gets it, at which pace, and once.

use unionhall::domain::campaign::CampaignStep::{Activate, Close, Offer, Open};
use unionhall::domain::campaign::mailing::MailingPace;
use unionhall::domain::mail::PersonRef;

use super::campaigns::reached;
use super::*;
use unionhall::campaigns::mailing::{ForgetMails, StepMailing};
use unionhall::campaigns::outbox::LeaseCampaignMail;
use unionhall::campaigns::records::AreMailingsOpen;
use unionhall::people::choices::{ChooseMail, Unsubscribe};

const FAST: MailingPace = MailingPace { an_hour: 1_000_000 };
const SLUG: &str = "internet-2027";

impl Fixture {
    /// The notice that the members of these tests join under names campaign mail.
    async fn keep_notice(&self) {
        let notice = Notice { words: "words".into(), hash: evidence().notice };
        self.run(KeepNotice(notice, NOW)).await;
    }

    /// Members who ticked the bill, by their names.
    async fn members_of<const N: usize>(&self, names: [&str; N]) -> [Nonce; N] {
        let mut sessions = Vec::new();
        for name in names {
            let n = name.bytes().fold(0_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
            sessions.push(self.member(&format!("{name}@example.com"), None, "internet", n).await);
        }
        self.send_due(NOW).await;
        sessions.try_into().unwrap()
    }

    async fn open_campaign(&self) {
        self.make_campaign(SLUG, "").await;
        self.step(SLUG, Open, NOW).await;
    }

    /// Takes the mailings as far as they go; says how many mails were queued.
    async fn mail_all(&self, pace: MailingPace, now: Timestamp) -> u32 {
        let mut queued = 0;
        loop {
            let step = self.run(StepMailing { pace, now }).await;
            queued += step.queued;
            if !step.more {
                return queued;
            }
        }
    }

    async fn lease_campaign(&self, now: Timestamp) -> Vec<DueMail> {
        let mut all = Vec::new();
        loop {
            let leased = self.run(LeaseCampaignMail { worker: "w".to_owned(), most: 100, now }).await;
            let is_done = leased.mails.is_empty() && !leased.deferred;
            all.extend(leased.mails);
            if is_done {
                return all;
            }
        }
    }

    /// Sends what is due; says to whom, by their names.
    async fn send_campaign(&self, now: Timestamp) -> Vec<String> {
        let mut names = Vec::new();
        for mail in self.lease_campaign(now).await {
            self.settle(&mail, MailOutcome::Sent, now).await;
            names.push(mail.recipient.trim_end_matches("@example.com").to_owned());
        }
        names.sort();
        names
    }

    async fn press_all(&self, press: Press, sessions: &[&Nonce]) {
        for session in sessions {
            self.run(pressing(session, SLUG, press, None, NOW)).await;
        }
    }

    async fn person_ref(&self, name: &str) -> PersonRef {
        let person = self.file(&format!("{name}@example.com")).await.unwrap().person;
        PersonRef { id: person.id, created_at: person.created_at }
    }
}

pub(super) async fn a_mailing_reaches_everybody_once_at_its_pace(fixture: &Fixture) {
    fixture.keep_notice().await;
    // More than one step looks at, most of them nobody's to mail.
    for n in 0..310 {
        fixture.by_form(&format!("stranger{n}@example.com"), NOW).await;
    }
    fixture.members_of(["a", "b", "c", "d", "e", "f", "g", "h"]).await;
    fixture.member("other@example.com", None, "", 200).await;
    fixture.open_campaign().await;
    let pace = MailingPace { an_hour: 3 };
    let (mut queued, mut sent) = (Vec::new(), Vec::new());
    for minute in 0..4 * 60 {
        let now = after(MINUTE * minute);
        // Each step is another process: nothing is known but what is stored.
        let count = fixture.mail_all(pace, now).await;
        queued.extend(std::iter::repeat_n(minute, count as usize));
        sent.extend(fixture.send_campaign(now).await);
    }
    assert_eq!(sent.iter().map(String::as_str).collect::<Vec<_>>(), ["a", "b", "c", "d", "e", "f", "g", "h"]);
    for begin in 0..3 * 60 {
        let within = queued.iter().filter(|at| (begin..begin + 60).contains(*at)).count();
        assert!(within <= 3, "{queued:?}");
    }
    assert!(queued.iter().filter(|at| **at < 60).count() >= 2, "{queued:?}");
    assert!(!fixture.run(AreMailingsOpen).await);
    assert_eq!(fixture.run(ForgetMails(after(HOUR * 4))).await, 8, "what kept them from a second mail");
    assert_eq!(fixture.mail_all(FAST, after(HOUR * 5)).await, 0);
}

pub(super) async fn nodes_that_mail_at_once_mail_once(fixture: &Fixture) {
    fixture.keep_notice().await;
    fixture.members_of(["a", "b", "c", "d", "e", "f"]).await;
    fixture.open_campaign().await;
    let mut nodes = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = fixture.store.clone();
        nodes.spawn(async move { store.run(StepMailing { pace: FAST, now: NOW }).await.unwrap().queued });
    }
    let queued: u32 = nodes.join_all().await.into_iter().sum();
    assert_eq!(queued + fixture.mail_all(FAST, NOW).await, 6);
    assert_eq!(fixture.send_campaign(NOW).await, ["a", "b", "c", "d", "e", "f"]);
}

pub(super) async fn whoever_joined_under_an_older_notice_is_mailed_once_they_switch_it_on(fixture: &Fixture) {
    let [ana, _] = fixture.members_of(["ana", "ben"]).await;
    let choices = async |name: &str| {
        let person = fixture.file(&format!("{name}@example.com")).await.unwrap().person;
        person.mail_choices.unwanted().collect::<Vec<_>>()
    };
    assert_eq!(choices("ana").await, ["campaign_opened", "campaign_offer", "campaign_result"]);
    assert!(fixture.run(ChooseMail(ana.clone(), vec![(MailKind::CampaignOpened, true)])).await);
    assert_eq!(choices("ana").await, ["campaign_offer", "campaign_result"]);
    fixture.open_campaign().await;
    assert_eq!(fixture.mail_all(FAST, NOW).await, 1);
    let mails = fixture.lease_campaign(NOW).await;
    assert_eq!((mails[0].kind, mails[0].recipient.as_str()), (MailKind::CampaignOpened, "ana@example.com"));
    let MailAbout::Campaign(news) = &mails[0].about else { panic!("{mails:?}") };
    assert_eq!((news.campaign.slug().as_str(), news.person), (SLUG, fixture.person_ref("ana").await));
    // The link of that mail.
    assert!(fixture.run(Unsubscribe(news.person, MailKind::CampaignOpened)).await);
    assert_eq!(choices("ana").await.len(), 3);
    let of_before = PersonRef { created_at: news.person.created_at.minus(HOUR), ..news.person };
    assert!(!fixture.run(Unsubscribe(of_before, MailKind::CampaignOpened)).await);
}

pub(super) async fn what_concerns_nobody_any_more_is_dropped_before_it_goes(fixture: &Fixture) {
    fixture.keep_notice().await;
    let [ana, ben, ..] = fixture.members_of(["ana", "ben", "cleo", "dan"]).await;
    fixture.open_campaign().await;
    assert_eq!(fixture.mail_all(FAST, NOW).await, 4);
    fixture.press_all(Press::In, &[&ana]).await;
    fixture.run(ChooseMail(ben, vec![(MailKind::CampaignOpened, false)])).await;
    fixture.run(leaving("cleo@example.com", NOW)).await;
    assert_eq!(fixture.send_campaign(NOW).await, ["dan"]);
    assert!(fixture.run(ListMail).await.is_empty());
    // The mailing of an offer that nobody can accept any more ends by itself.
    fixture.step(SLUG, Offer, NOW).await;
    let late = "2027-01-26T10:00:00Z".parse().unwrap();
    assert_eq!(fixture.mail_all(FAST, late).await, 0);
    assert!(!fixture.run(AreMailingsOpen).await);
}

pub(super) async fn an_offer_goes_to_those_who_are_in_and_the_result_to_those_who_took_part(fixture: &Fixture) {
    fixture.keep_notice().await;
    let sessions = fixture.members_of(["a", "b", "c", "d", "e", "f", "g"]).await;
    let [a, b, c, d, e, f, _] = &sessions;
    fixture.open_campaign().await;
    fixture.press_all(Press::In, &[a, b, c, d, e, f]).await;
    fixture.press_all(Press::Out, &[f]).await;
    assert_eq!(fixture.mail_all(FAST, NOW).await, 1);
    assert_eq!(fixture.send_campaign(NOW).await, ["g"], "the others have decided");
    fixture.step(SLUG, Offer, NOW).await;
    assert_eq!(fixture.mail_all(FAST, NOW).await, 5);
    fixture.press_all(Press::Accept, &[a]).await;
    fixture.press_all(Press::Pass, &[b]).await;
    assert_eq!(fixture.send_campaign(NOW).await, ["a", "c", "d", "e"], "and a receipt, first");
    fixture.press_all(Press::Accept, &[b, c, d, e]).await;
    assert_eq!(fixture.send_campaign(NOW).await, ["b", "c", "d", "e"], "receipts");
    fixture.step(SLUG, Activate, NOW).await;
    fixture.step(SLUG, Close, NOW).await;
    assert_eq!(fixture.mail_all(FAST, NOW).await, 0, "it is not counted yet");
    let waits = async || {
        let file = fixture.run(FindCampaign(SLUG.parse().unwrap())).await.unwrap();
        file.mailings.iter().map(|mailing| mailing.waits_for_count).collect::<Vec<_>>()
    };
    assert_eq!(waits().await, [false, false, true]);
    unionhall::campaigns::worker::work(&fixture.store, || NOW).await.unwrap();
    assert_eq!(waits().await, [false; 3]);
    assert_eq!(fixture.mail_all(FAST, NOW).await, 5);
    assert_eq!(fixture.run(FindMailFigures).await.about_campaigns, 5);
    let mails = fixture.lease_campaign(NOW).await;
    let MailAbout::Campaign(news) = &mails[0].about else { panic!("{mails:?}") };
    assert_eq!(reached(&news.campaign), Some((5, 1200)));
    assert_eq!(mails.len(), 5);
}

pub(super) async fn campaign_mail_that_waits_holds_up_the_mailing_and_nothing_else(fixture: &Fixture) {
    fixture.keep_notice().await;
    fixture.members_of(["a", "b", "c", "d"]).await;
    fixture.open_campaign().await;
    let pace = MailingPace { an_hour: 2 };
    let mut queued = 0;
    for hour in 0..8 {
        queued += fixture.mail_all(pace, after(HOUR * hour)).await;
    }
    assert_eq!(queued, 2, "an hour's worth waits through an outage");
    fixture.sign_up_at("new@example.com", after(HOUR * 8)).await;
    assert_eq!(fixture.send_due(after(HOUR * 8)).await, ["new@example.com"], "other mail does not see it");
    let away = |at| MailOutcome::Retry { at, cause: "away".to_owned(), perhaps_sent: false };
    for mail in fixture.lease_campaign(after(HOUR * 8)).await {
        fixture.settle(&mail, away(after(HOUR * 9)), after(HOUR * 8)).await;
    }
    assert_eq!(fixture.send_campaign(after(HOUR * 8)).await, Vec::<String>::new());
    assert_eq!(fixture.send_campaign(after(HOUR * 9)).await.len(), 2);
    assert_eq!(fixture.mail_all(pace, after(HOUR * 9)).await, 1);
    assert_eq!(fixture.mail_all(MailingPace { an_hour: 0 }, after(HOUR * 20)).await, 0, "switched off");
    // One that was given up is the operator's for a week.
    let mails = fixture.lease_campaign(after(HOUR * 10)).await;
    let gone = MailOutcome::GivenUp { cause: "away".to_owned(), perhaps_sent: false };
    fixture.settle(&mails[0], gone, after(HOUR * 10)).await;
    assert_eq!(fixture.run(ForgetMails(after(HOUR * 11))).await, 0);
    assert_eq!(fixture.run(ForgetMails(after(HOUR * 10 + PENDING_FOR))).await, 1);
}

pub(super) async fn reports_of_campaign_mail_are_about_their_person(fixture: &Fixture) {
    fixture.keep_notice().await;
    fixture.members_of(["ana", "ben"]).await;
    let (ana, ben) = (fixture.person_ref("ana").await, fixture.person_ref("ben").await);
    let before = fixture.run(ListSourceStatuses(NOW)).await;
    let report = async |person, kind| {
        let mail = ReportedMail::OfPerson(person);
        fixture.run(NoteReport { report: MailReport { mail, kind, once: None }, now: NOW }).await
    };
    assert_eq!(report(ana, ReportKind::Complaint).await, ReportOutcome::Noted);
    assert_eq!(report(ben, ReportKind::HardBounce).await, ReportOutcome::Noted);
    let unknown = PersonRef { created_at: NOW.minus(HOUR), ..ben };
    assert_eq!(report(unknown, ReportKind::HardBounce).await, ReportOutcome::Unknown);
    assert_eq!(fixture.run(ListSourceStatuses(NOW)).await, before, "no source asked for it");
    fixture.open_campaign().await;
    assert_eq!(fixture.mail_all(FAST, NOW).await, 0);
    // Whoever lifts the complaint is still mailed nothing about campaigns.
    let (email_normalized, account) = (email("ana@example.com").normalized(), account_of("ana@example.com"));
    fixture.run(Unsuppress { email_normalized, account }).await;
    let person = fixture.file("ana@example.com").await.unwrap().person;
    let choices: BTreeMap<_, _> = unionhall::domain::mail::choices::MailChoices::KINDS
        .into_iter()
        .map(|kind| (kind.name(), person.mail_choices.wants(kind)))
        .collect();
    let expected =
        [("already_member", true), ("campaign_offer", false), ("campaign_opened", false), ("campaign_result", false)];
    assert_eq!(choices, BTreeMap::from(expected));
}
