//! What every store makes of what only a sandbox has: inboxes, mail that spares nobody, and data that does not last.

use unionhall::domain::mail::inbox::{ArrivingMail, INBOX_HOLDS, TEST_DATA_KEPT_FOR};
use unionhall::people::retention::TestDataWalk;
use unionhall::store::postgres::make_sandbox;

use super::*;
use unionhall::membership::count::CountSandboxMembers;
use unionhall::sandbox::inbox::{FindInInbox, ListInbox, PutInInbox};

fn arriving(partner: PartnerId, n: u32) -> ArrivingMail {
    let text = |what: &str| format!("{what} {n}");
    ArrivingMail {
        partner: Some(partner),
        name: format!("{partner}-{n}"),
        to: text("to"),
        from: text("from"),
        subject: text("subject"),
        text: text("text"),
        html: text("html"),
    }
}

pub(super) async fn an_inbox_is_its_partners_newest_first_and_bounded(fixture: &Fixture) {
    let store = &fixture.store;
    let (acme, zoe) = (fixture.partner.id, issue(store, key(2, "Zoe")).await.id);
    for n in 0..5 {
        fixture.run(PutInInbox(arriving(acme, n), after(Duration::from_secs(n.into())))).await;
    }
    fixture.run(PutInInbox(arriving(zoe, 9), NOW)).await;
    // The same mail again is there once, as it was.
    fixture.run(PutInInbox(ArrivingMail { text: "other".to_owned(), ..arriving(acme, 4) }, after(HOUR))).await;
    let texts = async |partner: PartnerId, before| {
        let mails = fixture.run(ListInbox { partner, before, most: 3 }).await;
        mails.into_iter().map(|mail| (mail.id, mail.text)).collect::<Vec<_>>()
    };
    let newest = texts(acme, None).await;
    assert_eq!(newest.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["text 4", "text 3", "text 2"]);
    let older = texts(acme, Some(newest[2].0)).await;
    assert_eq!(older.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["text 1", "text 0"]);
    assert_eq!(texts(acme, Some(older[1].0)).await, []);
    assert_eq!(texts(PartnerId(999), None).await, []);
    let one = fixture.run(FindInInbox(acme, newest[1].0)).await.unwrap();
    assert_eq!((one.to.as_str(), one.from.as_str(), one.subject.as_str()), ("to 3", "from 3", "subject 3"));
    assert_eq!((one.html.as_str(), one.received_at), ("html 3", after(Duration::from_secs(3))));
    assert_eq!(fixture.run(FindInInbox(zoe, newest[1].0)).await, None, "another's");
    let known = [(acme, "Acme".to_owned()), (zoe, "Zoe".to_owned())];
    assert_eq!(fixture.run(ListInboxPartners(NOW)).await, known, "whoever has a key");

    for n in 5..INBOX_HOLDS + 2 {
        fixture.run(PutInInbox(arriving(acme, n), NOW)).await;
    }
    let all = fixture.run(ListInbox { partner: acme, before: None, most: INBOX_HOLDS * 2 }).await;
    assert_eq!((all.len(), all.last().map(|mail| mail.text.as_str())), (INBOX_HOLDS as usize, Some("text 2")));
    assert_eq!(texts(zoe, None).await.len(), 1, "nobody else's make way");
    fixture.run(RevokeKey(fixture.partner.key, NOW)).await;
    assert_eq!(
        fixture.run(ListInboxPartners(NOW)).await,
        known[1..],
        "nobody reads the inbox of a partner without keys"
    );
}

pub(super) async fn mail_of_the_sandbox_has_caps_for_mailboxes_and_none_for_sources(fixture: &Fixture) {
    let lease = async |now| fixture.run(Lease { budget: None, ..lease_of("w", 100, now) }).await.mails;
    for round in 0..6 {
        let now = after(Duration::from_secs(round));
        for address in ["confirm@simulator.test", "confirm+b@simulator.test", "ana@example.com", "ana+b@example.com"] {
            fixture.sign_up_at(address, now).await;
        }
        let mails = lease(now).await;
        let ordinary = mails.iter().filter(|mail| mail.recipient.ends_with("@example.com")).count();
        assert_eq!((mails.len() - ordinary, ordinary), (2, usize::from(round == 0)), "round {round}");
        for mail in &mails {
            fixture.settle(mail, MailOutcome::Sent, now).await;
        }
    }
    assert!(fixture.run(RevokeKey(fixture.partner.key, NOW)).await.is_some());
    fixture.sign_up_at("ben@example.com", NOW).await;
    let to_ben = async |now| {
        let mails = lease(now).await;
        mails.into_iter().filter(|mail| mail.recipient == "ben@example.com").collect::<Vec<_>>()
    };
    let mails = to_ben(after(HOUR)).await;
    assert_eq!(mails.len(), 1, "nor is it held with its key");
    // One that is wanted later waits for its time, and is not in trouble.
    fixture.settle(&mails[0], MailOutcome::Wait { at: after(HOUR * 2) }, after(HOUR)).await;
    let waiting = fixture.run(ListMail).await;
    let waiting = waiting.iter().find(|waiting| waiting.id == mails[0].id).unwrap();
    assert_eq!((waiting.send_after, &waiting.last_error, waiting.given_up_at), (after(HOUR * 2), &None, None));
    assert_eq!(to_ben(after(HOUR * 2).minus(Duration::from_millis(1))).await.len(), 0);
    assert_eq!(to_ben(after(HOUR * 2)).await[0].attempts, 2);
    // What is silenced there is still mailed to an address that acts by itself.
    for (address, others) in [("decline@simulator.test", 1), ("zoe@example.com", 0)] {
        fixture.sign_up_at(address, after(DAY)).await;
        let to_it =
            |mails: Vec<DueMail>| mails.into_iter().filter(|mail| mail.recipient == address).collect::<Vec<_>>();
        let declined = about(&to_it(lease(after(DAY)).await)[0]);
        fixture.run(one_click(declined, after(DAY))).await;
        fixture.sign_up_at(address, after(DAY + HOUR)).await;
        assert_eq!(to_it(lease(after(DAY + HOUR)).await).len(), others, "{address}");
    }
}

async fn forget(fixture: &Fixture, now: Timestamp) {
    let mut walk = TestDataWalk::default();
    for _ in 0..1000 {
        if !walk.step(&fixture.store, now).await.unwrap() {
            return;
        }
    }
    panic!("there is no end to it");
}

pub(super) async fn test_data_is_deleted_for_real_in_time(fixture: &Fixture) {
    let acme = fixture.partner.id;
    let ana = fixture.join("ana@example.com").await;
    fixture.refer("ben@example.com", ana).await;
    let ben = of_entry(&fixture.file("ben@example.com").await.unwrap().sign_ups[0]);
    assert!(matches!(fixture.confirm(ben.id.0).await, Confirmation::Joined(_)));
    fixture.sign_up("declined@example.com").await;
    let declined = of_entry(&fixture.file("declined@example.com").await.unwrap().sign_ups[0]);
    fixture.run(one_click(declined, NOW)).await;
    fixture.run(PutInInbox(arriving(acme, 1), NOW)).await;
    for n in 0..250 {
        fixture.sign_up(&format!("many+{n}@example.com")).await;
    }
    while fixture.run(RollUp { now: NOW }).await {}
    // Somebody who is old and still tried out, and a mail of today.
    let kept = NOW.plus(TEST_DATA_KEPT_FOR);
    fixture.sign_up_at("ben@example.com", kept).await;
    fixture.run(PutInInbox(arriving(acme, 2), kept)).await;
    fixture.sign_up_at("new@example.com", kept).await;
    let inbox = async || fixture.run(ListInbox { partner: acme, before: None, most: 10 }).await.len();
    let known = async |address: &str| fixture.file(address).await.map(|file| file.sign_ups.len());

    forget(fixture, kept).await;
    assert_eq!((fixture.members().await, inbox().await), (2, 2), "not before its time");
    assert_eq!((known("ana@example.com").await, known("ben@example.com").await), (Some(1), Some(2)));

    forget(fixture, kept.plus(Duration::from_millis(1))).await;
    assert_eq!((fixture.members().await, inbox().await), (1, 1));
    assert_eq!(known("ana@example.com").await, None);
    assert_eq!(known("declined@example.com").await, None);
    assert_eq!(known("many+249@example.com").await, None);
    assert_eq!(known("new@example.com").await, Some(1));
    let ben = fixture.file("ben@example.com").await.unwrap();
    assert_eq!((ben.sign_ups.len(), ben.person.referrer), (1, None), "what they did since stays");
    assert!(!fixture.run(IsCodeKnown(ana)).await, "not even a tombstone");
    while fixture.run(RollUp { now: kept }).await {}
    let sum = "SELECT CAST(coalesce(sum(members), 0) AS BIGINT) FROM referrers";
    assert_eq!(fixture.run(CountReferredMembers).await as i64, fixture.records.number(sum));

    forget(fixture, kept.plus(TEST_DATA_KEPT_FOR * 2)).await;
    assert_eq!((fixture.members().await, inbox().await), (0, 0));
    assert_eq!((known("ben@example.com").await, known("new@example.com").await), (None, None));
    assert!(fixture.run(ListMail).await.is_empty());
    // Whoever comes again is new, and is counted again.
    assert_eq!(fixture.join("ana@example.com").await, ana);
    assert_eq!(fixture.members().await, 1);
}

/// The store that serves a sandbox, which is another on PostgreSQL.
async fn sandbox_store(fixture: &Fixture) -> OpenStore {
    match &fixture.records {
        Records::Sqlite { .. } => fixture.store.clone(),
        Records::Postgres { store, .. } => {
            let address = make_sandbox(&Address::parse(store).unwrap()).await.unwrap();
            let store = OpenStore::new(PostgresStore::open(address, Prepare::Upgrade, 256).await.unwrap());
            issue(&store, key(1, "Acme")).await;
            store
        }
    }
}

pub(super) async fn people_of_two_sandboxes_never_meet(fixture: &Fixture) {
    let store = &sandbox_store(fixture).await;
    let (acme, zoe) = (fixture.partner.clone(), issue(store, key(2, "Zoe")).await);
    let new = |partner: &Partner, address: &str, code: Option<ReferralCode>| {
        let email = EmailAddress::parse(address).unwrap().in_sandbox_of(partner.id);
        let person = NamedPerson { code: fixture.codes.code(&email, 0), tombstone: tombstone(&email), email };
        let partner = Some(partner.clone());
        NewSignUp { person, partner, ref_code: code, ..fixture.new_sign_up(address) }
    };
    let sign_up =
        async |partner: &Partner, address: &str, code| store.sign_up(new(partner, address, code), NOW).await.unwrap();
    let confirm = async |id| store.confirm(linked(id), SeenPage::default(), NOW).await.unwrap();
    let counts = async || {
        let of = async |partner: &Partner| store.run(CountSandboxMembers(partner.id)).await.unwrap();
        (of(&acme).await, of(&zoe).await, store.member_count().await.unwrap())
    };
    let ours = sign_up(&acme, "ana@example.com", None).await;
    let theirs = sign_up(&zoe, "ana@example.com", None).await;
    assert_ne!(ours.code, theirs.code);
    assert!(matches!(confirm(1).await, Confirmation::Joined(_)));
    assert_eq!(confirm(1).await, Confirmation::AlreadyMember);
    assert_eq!(counts().await, (1, 0, 1));
    assert!(matches!(confirm(2).await, Confirmation::Joined(_)), "of the same address, and somebody else");
    assert_eq!(counts().await, (1, 1, 2));
    // Codes are known to their own partner alone.
    for (partner, attributed) in [(&acme, true), (&zoe, false)] {
        let ben = sign_up(partner, "ben@example.com", Some(ours.code)).await;
        assert_eq!((ben.attributed, ben.joined_count), (attributed, 1));
    }
    confirm(3).await;
    assert_eq!(counts().await, (2, 1, 3));
    let ben = sign_up(&acme, "cleo@example.com", None).await;
    assert_eq!(ben.joined_count, 2);
    // What is declined, silenced or capped with one is neither with the other.
    let silence =
        Some(SilenceChange { add: Silence { mailbox: true, ..Silence::default() }, lift: Silence::default() });
    store.run(declining(linked(1), silence, NOW)).await.unwrap();
    sign_up(&acme, "ana@example.com", None).await;
    sign_up(&zoe, "ana@example.com", None).await;
    let mails = store.run(Lease { budget: None, ..lease_of("w", 100, NOW) }).await.unwrap().mails;
    let to_ana: Vec<_> = mails.iter().filter(|mail| mail.recipient == "ana@example.com").collect();
    assert_eq!(to_ana.iter().map(|mail| mail.partner_id).collect::<Vec<_>>(), [Some(zoe.id)]);
    assert_eq!(to_ana[0].kind, MailKind::AlreadyMember);
    // Somebody who is forgotten is known again by their own partner alone.
    let times = RetentionTimes { unconfirmed: Duration::ZERO, ..TIMES };
    let later = after(PENDING_FOR * 2);
    while !store.run(Retain { times, now: later }).await.unwrap().is_nothing() {}
    let looked = store.run(ListPeopleToForget { after: 0, times, now: later }).await.unwrap();
    let cleo = looked.forgettable.iter().find(|(_, email)| email.as_typed() == "cleo@example.com");
    assert_eq!(cleo.unwrap().1, EmailAddress::parse("cleo@example.com").unwrap().in_sandbox_of(acme.id));
    // In time all of it is deleted, and counted no more.
    let mut walk = TestDataWalk::default();
    while walk.step(store, NOW.plus(TEST_DATA_KEPT_FOR * 2)).await.unwrap() {}
    assert_eq!(counts().await, (0, 0, 0));
    assert!(!store.run(IsCodeKnown(ours.code)).await.unwrap());
}
