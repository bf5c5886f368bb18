//! Requests that name themselves, what their partners may know, and what they are told.

use unionhall::domain::partner::SignUpStatus;
use unionhall::domain::partner::change::{ChangeKind, ClaimedChange};
use unionhall::domain::partner::endpoint::{DueDelivery, ENDPOINTS_OF_ONE, EndpointId, NotAdded};
use unionhall::domain::partner::idempotency::{IdempotencyKey, IdempotentRequest, MOST_KEYS};

use super::*;
use unionhall::installation::AreSignUpsPaused;
use unionhall::membership::code::IdempotentCode;
use unionhall::partners::changes::{ClaimChange, LeaseChanges, NoteMailed, UnclaimChange};
use unionhall::partners::deliveries::{LeaseDeliveries, ReleaseDeliveries};
use unionhall::partners::endpoints::{
    AddEndpoint, EnableEndpoint, FindRemovedEndpoint, LeaseToNotify, NoteNotified, RecoverEvents, RetireEndpoint,
    RotateEndpoint,
};
use unionhall::partners::records::{FindStatus, ListStatuses, SetContact};
use unionhall::people::forget::ForgetPeople;

pub(super) fn name(key: &str, input: &str) -> IdempotentRequest {
    let key = IdempotencyKey::parse(key).unwrap();
    IdempotentRequest { key, input: input.to_owned().into(), join_site: "https://union.example".into(), savings: 300 }
}

impl Fixture {
    fn named(&self, email: &str, key: &str) -> NewSignUp {
        NewSignUp { request: Some(name(key, email)), ..self.new_sign_up(email) }
    }

    pub(super) async fn sign_up_named(&self, email: &str, key: &str, now: Timestamp) -> SignedUp {
        self.store.sign_up(self.named(email, key), now).await.unwrap()
    }

    async fn status(&self, key: &str, now: Timestamp) -> Option<SignUpStatus> {
        let found = self.run(FindStatus { partner: self.partner.id, key: IdempotencyKey::parse(key).unwrap() }).await;
        found.map(|named| named.status(now))
    }

    pub(super) async fn endpoint(&self, partner: &str) -> EndpointId {
        let added = self
            .store
            .run(AddEndpoint {
                partner: partner.to_owned(),
                url: "https://acme.example/hook".to_owned(),
                made_with: 1,
                now: NOW,
            })
            .await;
        added.unwrap().unwrap()
    }

    pub(super) async fn due(&self, endpoint: EndpointId, now: Timestamp) -> Vec<DueDelivery> {
        self.run(LeaseDeliveries { id: endpoint, worker: "w".to_owned(), most: 100, until: now.plus(MINUTE), now })
            .await
    }

    pub(super) async fn settled(
        &self,
        id: EndpointId,
        delivery: &DueDelivery,
        outcome: DeliveryOutcome,
        now: Timestamp,
    ) -> bool {
        self.run(SettleDelivery { id, delivery: delivery.clone(), outcome, status: None, now }).await
    }
}

fn told(due: &[DueDelivery]) -> Vec<(EventKind, &str)> {
    let mut told: Vec<_> = due.iter().map(|delivery| (delivery.kind, delivery.key.as_str())).collect();
    told.sort_by_key(|(_, key)| *key);
    told
}

pub(super) async fn a_named_request_is_done_once_and_answered_as_the_first_time(fixture: &Fixture) {
    fixture.run(PauseSignUps(true)).await;
    let refused = fixture.store.sign_up(fixture.named("ana@example.com", "one"), NOW).await.unwrap_err();
    assert_eq!(refused, NotDone::Refused(Refused::Paused));
    fixture.run(PauseSignUps(false)).await;

    let first = fixture.sign_up_named("ana@example.com", "one", NOW).await;
    assert_eq!(first.replayed, None, "an error was not kept");
    assert_eq!(fixture.send_due(NOW).await.len(), 1);
    fixture.sign_up("ben@example.com").await;
    fixture.confirm(2).await;
    let again = fixture.sign_up_named("ana@example.com", "one", after(DAY)).await;
    let replayed = again.replayed.clone().unwrap();
    assert_eq!((again.code, again.joined_count, again.attributed), (first.code, 0, false), "as it was then");
    assert_eq!((replayed.link, replayed.savings), (first.code.link("https://union.example"), 300));
    assert!(!fixture.send_due(after(DAY)).await.contains(&"ana@example.com".to_owned()), "no second mail");

    fixture.run(PauseSignUps(true)).await;
    assert!(fixture.sign_up_named("ana@example.com", "one", after(DAY)).await.replayed.is_some(), "paused or not");
    let new = fixture.store.sign_up(fixture.named("dan@example.com", "dan"), NOW).await;
    assert_eq!(new.unwrap_err(), NotDone::Refused(Refused::Paused));
    fixture.run(PauseSignUps(false)).await;
    let other = NewSignUp { request: Some(name("one", "another input")), ..fixture.new_sign_up("ana@example.com") };
    assert_eq!(fixture.store.sign_up(other, NOW).await.unwrap_err(), NotDone::Refused(Refused::KeyReused));
    let link = |key: &str, input: &str| {
        done(fixture.store.run(IdempotentCode {
            partner: fixture.partner.id,
            request: name(key, input),
            create: CreateCode { person: fixture.person("ana@example.com"), now: NOW },
        }))
    };
    assert_eq!(
        link("one", "ana@example.com").await.unwrap_err(),
        NotDone::Refused(Refused::KeyReused),
        "another operation"
    );
    let made = link("two", "x").await.unwrap();
    assert_eq!((made.code, made.replayed), (first.code, None));
    assert_eq!(link("two", "x").await.unwrap().replayed.unwrap().link, first.code.link("https://union.example"));
    assert_eq!(link("two", "y").await.unwrap_err(), NotDone::Refused(Refused::KeyReused));
    assert_eq!(fixture.status("two", NOW).await, None, "nobody was signed up");
    // Another partner's names are its own.
    let zoe = issue(&fixture.store, key(2, "Zoe")).await;
    let of_zoe = zoe.id;
    let theirs = NewSignUp { partner: Some(zoe), ..fixture.named("ana@example.com", "one") };
    assert_eq!(fixture.store.sign_up(theirs, NOW).await.unwrap().replayed, None);
    let key = IdempotencyKey::parse("two").unwrap();
    assert_eq!(fixture.run(FindStatus { partner: of_zoe, key }).await, None);
}

pub(super) async fn named_requests_at_once_are_one(fixture: &Fixture) {
    // In batches and alone, the same person and others under the same name.
    let email = |n: usize| if n % 8 == 7 { "ben@example.com" } else { "ana@example.com" };
    let mut asked = Vec::new();
    for n in 0..64 {
        let (store, new) = (fixture.store.clone(), fixture.named(email(n), "one"));
        asked.push(tokio::spawn(async move { store.sign_up(new, NOW).await }));
    }
    let mut answers = Vec::new();
    for task in asked {
        answers.push(task.await.unwrap());
    }
    let firsts = answers.iter().filter(|done| done.as_ref().is_ok_and(|done| done.replayed.is_none())).count();
    assert_eq!(firsts, 1);
    for (n, done) in answers.iter().enumerate() {
        match done {
            Ok(done) => assert_eq!(done.code, answers.iter().flatten().next().unwrap().code),
            Err(refused) => assert_eq!(*refused, NotDone::Refused(Refused::KeyReused), "{n}"),
        }
    }
    assert!(answers.iter().any(Result::is_err), "whoever came second with another address");
    assert_eq!(fixture.lease("w", NOW).await.len(), 1, "one mail");
    let links = (0..16).map(|_| {
        let (store, person, partner) = (fixture.store.clone(), fixture.person("cyd@example.com"), fixture.partner.id);
        tokio::spawn(async move {
            done(store.run(IdempotentCode {
                partner,
                request: name("link", "cyd"),
                create: CreateCode { person, now: NOW },
            }))
            .await
        })
    });
    let mut firsts = 0;
    for task in links.collect::<Vec<_>>() {
        firsts += usize::from(task.await.unwrap().unwrap().replayed.is_none());
    }
    assert_eq!(firsts, 1);
}

pub(super) async fn every_open_name_of_a_sign_up_is_confirmed_and_told(fixture: &Fixture) {
    let endpoint = fixture.endpoint("Acme").await;
    let zoe = fixture.store.run(IssueKey(key(2, "Zoe"))).await;
    zoe.unwrap();
    let others = fixture.endpoint("Zoe").await;
    fixture.sign_up_named("ana@example.com", "early", NOW).await;
    fixture.sign_up_named("ana@example.com", "late", after(5 * DAY)).await;
    fixture.sign_up_named("ben@example.com", "ben", after(DAY)).await;
    for key in ["early", "late", "ben"] {
        assert_eq!(fixture.status(key, after(6 * DAY)).await, Some(SignUpStatus::Pending));
    }
    // The seventh day of the first name passes; the sign-up itself waits on, for it was sent again.
    let eighth = after(7 * DAY);
    assert_eq!(fixture.status("early", eighth).await, Some(SignUpStatus::Closed));
    assert!(matches!(fixture.confirm_at(linked(1), eighth).await, Confirmation::Joined(_)));
    assert_eq!(fixture.status("early", eighth).await, Some(SignUpStatus::Closed), "for good");
    assert_eq!(fixture.status("late", eighth).await, Some(SignUpStatus::Confirmed));
    assert_eq!(told(&fixture.due(endpoint, eighth).await), [(EventKind::Confirmed, "late")]);
    // Declined, lapsed or a member already: all close alike.
    fixture.sign_up_named("ana@example.com", "member", after(DAY)).await;
    fixture.run(declining(linked(2), Some(SilenceChange::default()), after(2 * DAY))).await;
    let before = after(8 * DAY).minus(Duration::from_millis(1));
    fixture.run(CloseSignUps(before)).await;
    for key in ["ben", "member"] {
        assert_eq!(fixture.status(key, before).await, Some(SignUpStatus::Pending));
        assert_eq!(fixture.status(key, after(8 * DAY)).await, Some(SignUpStatus::Closed));
    }
    fixture.run(CloseSignUps(after(8 * DAY))).await;
    let due = fixture.due(endpoint, after(8 * DAY)).await;
    let closed = |key| (EventKind::Closed, key);
    let expected = [closed("ben"), closed("early"), (EventKind::Confirmed, "late"), closed("member")];
    assert_eq!(told(&due), expected, "the lease of the first has ended");
    assert_eq!(due.iter().find(|one| one.key.as_str() == "ben").unwrap().at, after(8 * DAY));
    assert!(fixture.due(others, after(8 * DAY)).await.is_empty(), "another partner hears nothing");
    fixture.run(CloseSignUps(after(9 * DAY))).await;
    assert!(fixture.due(endpoint, after(8 * DAY)).await.is_empty(), "once");
}

pub(super) async fn a_declined_sign_up_that_is_taken_back_is_told(fixture: &Fixture) {
    let endpoint = fixture.endpoint("Acme").await;
    fixture.sign_up_named("ana@example.com", "one", NOW).await;
    fixture.run(declining(linked(1), None, NOW)).await;
    assert_eq!(fixture.status("one", NOW).await, Some(SignUpStatus::Pending), "a decline is not told");
    let taken_back = fixture.run(TakeBack { sign_up: linked(1), seen: SeenPage::default(), now: after(HOUR) }).await;
    assert!(matches!(taken_back, Confirmation::Joined(_)));
    assert_eq!(fixture.status("one", after(HOUR)).await, Some(SignUpStatus::Confirmed));
    assert_eq!(told(&fixture.due(endpoint, after(HOUR)).await), [(EventKind::Confirmed, "one")]);
}

/// As if a node that knows nothing of names had confirmed it.
const BY_AN_OLDER_NODE: &str = "UPDATE sign_ups SET state = 'confirmed', decided_at = 1800000000000";

#[tokio::test(flavor = "multi_thread")]
async fn an_older_nodes_confirmation_is_told_when_the_name_closes() {
    needs!(Postgres);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("unionhall.db");
    let fixture = Fixture::on_sqlite(folder.path()).await;
    confirmed_by_an_older_node(&fixture, async || {
        rusqlite::Connection::open(&path).unwrap().execute_batch(BY_AN_OLDER_NODE).unwrap();
    })
    .await;
    let database = Database::migrated().await;
    let fixture = Fixture::on_postgres(&database).await;
    confirmed_by_an_older_node(&fixture, async || {
        database.client().await.batch_execute(BY_AN_OLDER_NODE).await.unwrap();
    })
    .await;
    fixture.store.close().await.unwrap();
}

async fn confirmed_by_an_older_node(fixture: &Fixture, confirm: impl AsyncFnOnce()) {
    let endpoint = fixture.endpoint("Acme").await;
    fixture.sign_up_named("ana@example.com", "one", NOW).await;
    confirm().await;
    fixture.run(CloseSignUps(after(6 * DAY))).await;
    assert!(fixture.due(endpoint, after(6 * DAY)).await.is_empty());
    fixture.run(CloseSignUps(after(7 * DAY))).await;
    assert_eq!(fixture.status("one", after(8 * DAY)).await, Some(SignUpStatus::Confirmed));
    let due = fixture.due(endpoint, after(8 * DAY)).await;
    assert_eq!((told(&due), due[0].at), (vec![(EventKind::Confirmed, "one")], NOW));
}

pub(super) async fn an_erased_person_leaves_a_name_without_anything_of_theirs(fixture: &Fixture) {
    fixture.sign_up_named("ana@example.com", "one", NOW).await;
    let link = done(fixture.store.run(IdempotentCode {
        partner: fixture.partner.id,
        request: name("two", "x"),
        create: CreateCode { person: fixture.person("ana@example.com"), now: NOW },
    }))
    .await;
    link.unwrap();
    fixture.run(erasing("ana@example.com", None, NOW)).await.unwrap().unwrap();
    let again = fixture.store.sign_up(fixture.named("ana@example.com", "one"), NOW).await;
    assert!(again.unwrap().replayed.is_some(), "a repeat does not tell that they were erased");
    assert_eq!(fixture.status("one", NOW).await, Some(SignUpStatus::Pending), "nothing is told of it");
    assert_eq!(fixture.status("one", after(7 * DAY)).await, Some(SignUpStatus::Closed));
    // Whoever is forgotten in time is answered for like a member: what a repeat gets tells nothing of them.
    fixture.sign_up_named("ben@example.com", "ben", NOW).await;
    let email = email("ben@example.com");
    let times = RetentionTimes { unconfirmed: DAY, ..TIMES };
    fixture.run(Retain { times, now: after(8 * DAY) }).await;
    let id = fixture.run(ListPeopleToForget { after: 0, times, now: after(9 * DAY) }).await.forgettable;
    let marked = id.into_iter().map(|(id, _)| (id, marks("ben@example.com"))).collect();
    assert_eq!(fixture.run(ForgetPeople { people: marked, times, now: after(9 * DAY) }).await.forgotten, 1);
    assert!(fixture.kept_code(email.as_typed()).await.is_none(), "they are forgotten");
    assert!(fixture.sign_up_named("ben@example.com", "ben", after(9 * DAY)).await.replayed.is_some());
}

pub(super) async fn names_are_listed_in_their_order_and_kept_for_thirty_days(fixture: &Fixture) {
    for (n, key) in ["a", "b", "c"].into_iter().enumerate() {
        let now = after(DAY * u32::try_from(n).unwrap());
        fixture.sign_up_named(&format!("{key}@example.com"), key, now).await;
    }
    let list = async |after_id: i64, since: Timestamp, most: u32| {
        let listed = fixture.run(ListStatuses { partner: fixture.partner.id, after: after_id, since, most }).await;
        listed.into_iter().map(|named| (named.id, named.key.as_str().to_owned())).collect::<Vec<_>>()
    };
    let all = list(0, NOW, 10).await;
    let names = |listed: &[(i64, String)]| listed.iter().map(|(_, key)| key.clone()).collect::<Vec<_>>().join("");
    assert_eq!(names(&all), "abc");
    assert_eq!(names(&list(0, NOW, 2).await), "ab");
    assert_eq!(names(&list(all[0].0, NOW, 2).await), "bc");
    assert_eq!(names(&list(0, after(DAY), 10).await), "bc");
    assert!(fixture.run(ListStatuses { partner: PartnerId(999), after: 0, since: NOW, most: 10 }).await.is_empty());
    while !fixture.run(Retain { times: TIMES, now: after(31 * DAY) }).await.is_nothing() {}
    assert_eq!(names(&list(0, NOW, 10).await), "c");
}

pub(super) async fn deliveries_are_leased_tried_again_and_given_up(fixture: &Fixture) {
    let endpoint = fixture.endpoint("Acme").await;
    for n in 1..=3 {
        fixture.sign_up_named(&format!("p{n}@example.com"), &format!("k{n}"), NOW).await;
        fixture.confirm(n).await;
    }
    assert_eq!(fixture.run(ListDueEndpoints(NOW)).await.len(), 1);
    let two = fixture
        .run(LeaseDeliveries { id: endpoint, worker: "w".to_owned(), most: 2, until: after(MINUTE), now: NOW })
        .await;
    let rest = fixture
        .run(LeaseDeliveries { id: endpoint, worker: "x".to_owned(), most: 2, until: after(MINUTE), now: NOW })
        .await;
    assert_eq!((two.len(), rest.len()), (2, 1), "each is one worker's");
    assert!(fixture.run(ListDueEndpoints(NOW)).await.is_empty());
    assert_eq!(fixture.run(ReleaseDeliveries { worker: "w".to_owned() }).await, 2);
    let two = fixture.due(endpoint, NOW).await;
    assert_eq!(two.iter().map(|one| one.attempts).collect::<Vec<_>>(), [2, 2]);
    // What was postponed was not tried.
    for one in &two {
        assert!(!fixture.settled(endpoint, one, DeliveryOutcome::Postponed { at: after(MINUTE) }, NOW).await);
    }
    assert!(fixture.run(ListDueEndpoints(NOW)).await.is_empty());
    let endpoints = fixture.run(ListEndpoints(None)).await;
    assert_eq!((endpoints[0].waiting, endpoints[0].endpoint.failing_since), (3, None));
    let two = fixture.due(endpoint, after(MINUTE)).await[..2].to_vec();
    assert_eq!(two.iter().map(|one| one.attempts).collect::<Vec<_>>(), [2, 2]);

    let later = DeliveryOutcome::Retry { at: after(HOUR), cause: "it answered 500".to_owned() };
    assert!(!fixture.settled(endpoint, &two[0], later.clone(), NOW).await);
    let late = DueDelivery { attempts: 1, ..two[1].clone() };
    fixture.settled(endpoint, &late, DeliveryOutcome::Delivered, NOW).await;
    assert_eq!(fixture.run(ListEndpoints(None)).await[0].waiting, 3, "a late worker changes nothing");
    fixture.settled(endpoint, &two[1], DeliveryOutcome::GivenUp { cause: "it hangs".to_owned() }, NOW).await;
    let listed = &fixture.run(ListEndpoints(None)).await[0];
    assert_eq!((listed.waiting, listed.given_up, listed.endpoint.failing_since), (2, 1, Some(NOW)));
    let again = fixture.due(endpoint, after(HOUR)).await;
    assert_eq!(again.len(), 2, "the lease of the third has ended, too");
    for one in &again {
        fixture.settled(endpoint, one, DeliveryOutcome::Delivered, after(HOUR)).await;
    }
    let listed = &fixture.run(ListEndpoints(None)).await[0];
    assert_eq!((listed.waiting, listed.endpoint.failing_since, &listed.endpoint.last_error), (0, None, &None));
    // Once more, by name and since a time; what is on its way is left alone.
    let resent = IdempotencyKey::parse(two[1].key.as_str()).unwrap();
    assert!(fixture.run(ResendEvent { id: endpoint, key: resent.clone(), now: after(HOUR) }).await);
    assert!(!fixture.run(ResendEvent { id: endpoint, key: IdempotencyKey::parse("none").unwrap(), now: NOW }).await);
    assert_eq!(fixture.due(endpoint, after(HOUR)).await.len(), 1);
    assert!(fixture.run(ResendEvent { id: endpoint, key: resent, now: after(HOUR) }).await, "it is being sent");
    assert!(fixture.due(endpoint, after(HOUR)).await.is_empty(), "and by one worker");
    let (last, all) = fixture.run(RecoverEvents { id: endpoint, since: NOW, after: 0, now: after(2 * HOUR) }).await;
    assert_eq!(all, 3);
    let (at, last) = last.unwrap();
    assert_eq!(fixture.run(RecoverEvents { id: endpoint, since: at, after: last, now: NOW }).await, (None, 0));
    assert_eq!(
        fixture.run(RecoverEvents { id: endpoint, since: after(HOUR), after: 0, now: NOW }).await.1,
        0,
        "nothing since"
    );
    assert_eq!(fixture.due(endpoint, after(2 * HOUR)).await.len(), 3);
    assert!(fixture.run(RemoveEndpoint(endpoint)).await);
    assert!(!fixture.run(RemoveEndpoint(endpoint)).await);
    assert!(fixture.run(ListEndpoints(None)).await.is_empty());
}

pub(super) async fn an_endpoint_is_disabled_in_time_and_its_partner_told(fixture: &Fixture) {
    let endpoint = fixture.endpoint("Acme").await;
    let add = async |partner: &str, url: String| {
        fixture.run(AddEndpoint { partner: partner.to_owned(), url, made_with: 1, now: NOW }).await
    };
    assert_eq!(add("Nobody", "https://x.example/".to_owned()).await, Err(NotAdded::NoPartner));
    assert_eq!(add("Acme", "https://acme.example/hook".to_owned()).await, Err(NotAdded::Known(endpoint)));
    for n in 1..ENDPOINTS_OF_ONE {
        let more = add("Acme", format!("https://acme.example/{n}")).await.unwrap();
        fixture.run(RemoveEndpoint(more)).await;
        add("Acme", format!("https://acme.example/{n}")).await.unwrap();
    }
    assert_eq!(add("Acme", "https://acme.example/more".to_owned()).await, Err(NotAdded::Full));
    for other in fixture.run(ListEndpoints(None)).await.iter().filter(|one| one.endpoint.id != endpoint) {
        fixture.run(RemoveEndpoint(other.endpoint.id)).await;
    }
    fixture.sign_up_named("ana@example.com", "one", NOW).await;
    fixture.confirm(1).await;
    let retry = |at| DeliveryOutcome::Retry { at, cause: "it answered 500".to_owned() };
    let one = &fixture.due(endpoint, NOW).await[0];
    assert!(!fixture.settled(endpoint, one, retry(after(DAY)), NOW).await);
    let almost = NOW.plus(DISABLED_AFTER).minus(Duration::from_millis(1));
    let one = &fixture.due(endpoint, almost).await[0];
    assert!(!fixture.settled(endpoint, one, retry(almost), almost).await);
    let five_days = NOW.plus(DISABLED_AFTER);
    let one = &fixture.due(endpoint, five_days).await[0];
    assert!(fixture.settled(endpoint, one, retry(five_days), five_days).await, "five days of nothing but failure");
    assert!(fixture.run(ListDueEndpoints(after(10 * DAY))).await.is_empty());
    fixture.sign_up_named("ben@example.com", "two", five_days).await;
    fixture.confirm_at(linked_at(2, five_days), five_days).await;
    assert_eq!(fixture.run(ListEndpoints(None)).await[0].waiting, 1, "nothing more is put before it");
    // Whom to tell, once.
    let lease = |now: Timestamp| fixture.store.run(LeaseToNotify { since: NOW, until: now.plus(HOUR), now });
    assert!(lease(five_days).await.unwrap().is_empty(), "nobody is known");
    let contact = email("ops@acme.example");
    assert!(fixture.run(SetContact { name: "Acme".to_owned(), contact: Some(contact) }).await);
    assert!(!fixture.run(SetContact { name: "Nobody".to_owned(), contact: None }).await);
    let told = lease(five_days).await.unwrap();
    assert_eq!((told.len(), told[0].1.as_str()), (1, "ops@acme.example"));
    assert_eq!(told[0].0.disabled_why.as_deref(), Some("it answered 500"));
    assert!(lease(five_days).await.unwrap().is_empty(), "another worker is at it");
    assert_eq!(lease(five_days.plus(HOUR)).await.unwrap().len(), 1, "which did not come back");
    fixture.run(NoteNotified(endpoint, five_days)).await;
    assert!(lease(after(6 * DAY)).await.unwrap().is_empty());

    assert!(fixture.run(EnableEndpoint(endpoint, after(6 * DAY))).await);
    assert_eq!(fixture.run(RecoverEvents { id: endpoint, since: NOW, after: 0, now: after(6 * DAY) }).await.1, 2);
    let due = fixture.due(endpoint, after(6 * DAY)).await;
    assert_eq!(due.len(), 2);
    let gone = || DeliveryOutcome::Gone { cause: "it answered 410".to_owned() };
    // An answer to what was sent before the endpoint was enabled says nothing of it.
    assert!(fixture.run(EnableEndpoint(endpoint, after(6 * DAY))).await);
    assert!(!fixture.settled(endpoint, &due[0], gone(), after(6 * DAY)).await, "late");
    assert_eq!(fixture.run(ListEndpoints(None)).await[0].endpoint.disabled_at, None);
    let due = fixture.due(endpoint, after(6 * DAY)).await;
    assert_eq!(due.len(), 2, "they go again");
    // Nothing goes to a partner whose last key was revoked.
    fixture.run(EnableEndpoint(endpoint, after(6 * DAY))).await;
    let has_due = async || !fixture.run(ListDueEndpoints(after(6 * DAY))).await.is_empty();
    assert!(has_due().await);
    fixture.run(RevokeKey(fixture.partner.key, after(6 * DAY))).await;
    assert!(!has_due().await);
    issue(&fixture.store, key(3, "Acme")).await;
    assert!(has_due().await);
    let due = fixture.due(endpoint, after(6 * DAY)).await;
    assert!(fixture.settled(endpoint, &due[0], gone(), after(6 * DAY)).await, "at once");
    let partners = fixture.run(ListPartners).await;
    assert_eq!((partners.len(), partners[0].name.as_str(), partners[0].endpoints), (1, "Acme", 1));
}

pub(super) async fn a_removed_endpoint_is_gone_before_its_deliveries_are(fixture: &Fixture) {
    let endpoint = fixture.endpoint("Acme").await;
    fixture.sign_up_named("ana@example.com", "one", NOW).await;
    fixture.confirm(1).await;
    assert_eq!(fixture.run(ListEndpoints(Some(fixture.partner.id))).await[0].waiting, 1);
    assert_eq!(fixture.run(FindRemovedEndpoint).await, None);
    assert!(fixture.run(RetireEndpoint(endpoint, NOW)).await);
    assert!(!fixture.run(RetireEndpoint(endpoint, NOW)).await, "once");
    assert!(fixture.run(ListEndpoints(Some(fixture.partner.id))).await.is_empty());
    assert!(fixture.run(ListEndpoints(None)).await.is_empty() && fixture.run(ListDueEndpoints(NOW)).await.is_empty());
    assert_eq!(fixture.run(FindEndpoint(endpoint)).await, None);
    assert_eq!(
        fixture
            .run(RotateEndpoint { id: endpoint, generation: 9, made_with: 1, unless_after: after(DAY), now: NOW })
            .await,
        None
    );
    assert!(!fixture.run(EnableEndpoint(endpoint, NOW)).await);
    // Its address is free, and it is told nothing more.
    assert_ne!(fixture.endpoint("Acme").await, endpoint);
    assert_eq!(fixture.run(FindRemovedEndpoint).await, Some(endpoint));
    assert_eq!(fixture.run(EmptyEndpoint(endpoint, NOW)).await, 1);
    assert!(fixture.run(RemoveEndpoint(endpoint)).await);
    assert_eq!(fixture.run(FindRemovedEndpoint).await, None);
}

pub(super) async fn changes_of_a_partner_are_bounded_and_mailed_once(fixture: &Fixture) {
    let (store, Partner { id, key, .. }) = (&fixture.store, fixture.partner.clone());
    let claim =
        async |now| store.run(ClaimChange { partner: id, key, kind: ChangeKind::KeyRotated, now }).await.unwrap();
    let mut claims = Vec::new();
    for n in 0..ChangeKind::KeyRotated.max_a_day() {
        let ClaimedChange::Counted(change) = claim(after(Duration::from_secs(n.into()))).await else { panic!() };
        claims.push(change);
    }
    let is_counted = |claimed: ClaimedChange| matches!(claimed, ClaimedChange::Counted(_));
    assert_eq!(claim(after(HOUR)).await, ClaimedChange::Full(after(DAY)), "when the first of them is a day old");
    for _ in 0..100 {
        let revoking =
            store.run(ClaimChange { partner: id, key, kind: ChangeKind::KeyRevoked, now: NOW }).await.unwrap();
        assert!(is_counted(revoking), "each kind by itself, and a key can always be revoked");
    }
    assert!(is_counted(claim(after(DAY)).await));
    assert!(!is_counted(claim(after(DAY)).await));
    // What is taken back does not count.
    store.run(UnclaimChange(claims[9])).await.unwrap();
    assert!(is_counted(claim(after(DAY)).await));
    assert!(!is_counted(claim(after(DAY)).await));
    // Mailed is what was done, in the transaction that did it, once there is a contact.
    let act = Act {
        who: "partner Acme".to_owned(),
        command: "keys rotate",
        about: "key x".to_owned(),
        at: NOW,
        change: Some(claims[0]),
    };
    let lease =
        async |now: Timestamp| store.run(LeaseChanges { since: NOW, until: now.plus(HOUR), now }).await.unwrap();
    let contact = email("ops@acme.example");
    store.audited(act).run(SetContact { name: "Acme".to_owned(), contact: Some(contact) }).await.unwrap();
    let leased = lease(NOW).await;
    assert_eq!((leased.len(), leased[0].about.as_str(), leased[0].key), (1, "key x", key));
    assert_eq!((leased[0].contact.as_str(), leased[0].partner.as_str()), ("ops@acme.example", "Acme"));
    assert!(lease(NOW).await.is_empty(), "another worker is at it");
    store.run(UnclaimChange(leased[0].id)).await.unwrap();
    assert_eq!(lease(after(HOUR)).await, leased, "which did not come back; what was done stays");
    store.run(NoteMailed(leased[0].id, NOW)).await.unwrap();
    assert!(lease(after(DAY)).await.is_empty());
}

pub(super) async fn mail_about_changes_is_shared_among_partners(fixture: &Fixture) {
    let (store, acme) = (&fixture.store, fixture.partner.clone());
    store.run(IssueKey(key(2, "Zoe"))).await.unwrap();
    let zoe = store.run(FindKey(key(2, "Zoe").id)).await.unwrap().unwrap();
    for partner in ["Acme", "Zoe"] {
        store.run(SetContact { name: partner.to_owned(), contact: Some(email("ops@acme.example")) }).await.unwrap();
    }
    let change = async |partner, key, kind, at| {
        let ClaimedChange::Counted(change) = store.run(ClaimChange { partner, key, kind, now: at }).await.unwrap()
        else {
            panic!()
        };
        let (who, about) = ("partner".to_owned(), String::new());
        let act = Act { who, command: "webhooks enable", about, at, change: Some(change) };
        store.audited(act).run(PauseSignUps(!store.run(AreSignUpsPaused).await.unwrap())).await.unwrap();
    };
    for n in 0..20 {
        change(acme.id, acme.key, ChangeKind::EndpointAdded, after(Duration::from_secs(n))).await;
    }
    change(zoe.partner_id, zoe.id, ChangeKind::EndpointAdded, after(MINUTE)).await;
    change(acme.id, acme.key, ChangeKind::KeyRotated, after(HOUR)).await;
    let lease = async || {
        let leased = store.run(LeaseChanges { since: NOW, until: after(DAY), now: after(HOUR) }).await.unwrap();
        leased.into_iter().map(|change| (change.partner, change.kind)).collect::<Vec<_>>()
    };
    let added = |partner: &str| (partner.to_owned(), ChangeKind::EndpointAdded);
    let first = [("Acme".to_owned(), ChangeKind::KeyRotated), added("Acme"), added("Acme"), added("Zoe")];
    assert_eq!(lease().await, first);
    for _ in 0..6 {
        assert_eq!(lease().await, vec![added("Acme"); 3]);
    }
    assert!(lease().await.is_empty());
}

pub(super) async fn a_key_that_is_over_changes_nothing(fixture: &Fixture) {
    let (store, Partner { id, key, .. }) = (&fixture.store, fixture.partner.clone());
    let claim =
        async |now| store.run(ClaimChange { partner: id, key, kind: ChangeKind::EndpointAdded, now }).await.unwrap();
    assert!(matches!(claim(NOW).await, ClaimedChange::Counted(_)));
    store.run(SuspendPartner(id, NOW)).await.unwrap();
    assert_eq!(claim(NOW).await, ClaimedChange::Over(KeyStatus::Suspended));
    store.run(ResumePartner(id, NOW)).await.unwrap();
    let successor = super::key(7, "Acme");
    assert_eq!(
        store.run(RotateKey { old: key, end: after(HOUR), successor, by_partner: true }).await,
        Ok(RotatedKey::Done)
    );
    assert!(matches!(claim(NOW).await, ClaimedChange::Counted(_)), "it works until then");
    assert_eq!(claim(after(HOUR)).await, ClaimedChange::Over(KeyStatus::Expired));
    store.run(RevokeKey(key, NOW)).await.unwrap();
    assert_eq!(claim(NOW).await, ClaimedChange::Over(KeyStatus::Revoked));
}

pub(super) async fn a_partner_has_a_hundred_keys_for_an_address(fixture: &Fixture) {
    let endpoint = fixture.endpoint("Acme").await;
    for n in 0..MOST_KEYS {
        fixture.sign_up_named("ana@example.com", &format!("k{n}"), NOW).await;
        // Whatever became of the sign-ups.
        if n == 10 {
            let declined = fixture.run(declining(linked(1), None, NOW)).await;
            assert_eq!(declined, Declining::Declined);
        }
    }
    let another = |key: &str, now| fixture.store.sign_up(fixture.named("ana@example.com", key), now);
    let link = |now| {
        let person = fixture.person("ana@example.com");
        done(fixture.store.run(IdempotentCode {
            partner: fixture.partner.id,
            request: name("link", "x"),
            create: CreateCode { person, now },
        }))
    };
    assert_eq!(another("more", NOW).await.unwrap_err(), NotDone::Refused(Refused::TooManyKeys));
    assert_eq!(link(NOW).await.unwrap_err(), NotDone::Refused(Refused::TooManyKeys));
    // In batches too, beside others.
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let email = if n % 2 == 0 { "ana@example.com".to_owned() } else { format!("p{n}@example.com") };
            let (store, new) = (fixture.store.clone(), fixture.named(&email, &format!("batch{n}")));
            tokio::spawn(async move { (n, store.sign_up(new, NOW).await) })
        })
        .collect();
    for task in tasks {
        let (n, done) = task.await.unwrap();
        assert_eq!(done.is_err(), n % 2 == 0, "{n}: {done:?}");
    }
    assert!(another("k3", NOW).await.unwrap().replayed.is_some(), "a repeat is answered");
    assert!(fixture.store.sign_up(fixture.new_sign_up("ana@example.com"), NOW).await.is_ok(), "without a key");
    assert_eq!(another("later", after(7 * DAY - MINUTE)).await.unwrap_err(), NotDone::Refused(Refused::TooManyKeys));
    another("later", after(7 * DAY)).await.unwrap();
    assert!(link(after(7 * DAY)).await.is_ok());
    // Confirming tells of all that are open in one statement.
    let mut open = fixture.file("ana@example.com").await.unwrap().sign_ups.into_iter();
    let pending = open.rfind(|entry| entry.state == SignUpState::Pending).unwrap();
    fixture.confirm_at(of_entry(&pending), after(7 * DAY)).await;
    assert_eq!(told(&fixture.due(endpoint, after(7 * DAY)).await), [(EventKind::Confirmed, "later")]);
}

pub(super) async fn whoever_has_much_is_erased_in_steps(fixture: &Fixture) {
    // A week apart, so that each is one more sign-up and its key is not one too many.
    for week in 0..450 {
        fixture.sign_up_named("ana@example.com", &format!("w{week}"), after(week * 7 * DAY)).await;
    }
    let end = after(450 * 7 * DAY);
    let file = fixture.file_at("ana@example.com".to_owned(), end).await.unwrap();
    assert_eq!((file.sign_ups.len(), file.requests.len()), (450, 450), "page by page");
    assert!(file.sign_ups.iter().zip(&file.sign_ups[1..]).all(|(one, next)| one.id < next.id));
    let erase = async || fixture.run(erasing("ana@example.com", None, end)).await.unwrap().unwrap();
    let mut steps = Vec::new();
    loop {
        let step = erase().await;
        steps.push(step.sign_ups);
        if step.is_whole {
            break;
        }
        assert!(steps.len() < 10, "{steps:?}");
    }
    assert_eq!(steps, [200, 200, 50]);
    assert!(fixture.kept_code("ana@example.com").await.is_none());
}
