//! Events of partners: one order that no reader sees a gap in, and how long they are kept.

use unionhall::domain::partner::event::{BadCursor, EVENTS_KEPT_FOR, EventCursors, PartnerEvent};
use unionhall::partners::events::{EventPage, Events};

use super::*;
use unionhall::partners::event_log::ForgetEvents;

fn events_of(store: &Store) -> Events {
    let secret = Secret::new(&"s".repeat(32)).unwrap();
    Events::new(store.clone(), &secret, Arc::default(), Mode::Live)
}

fn keys(events: &[PartnerEvent]) -> Vec<&str> {
    events.iter().map(|event| event.key.as_str()).collect()
}

impl Fixture {
    async fn event_page(&self, after: Option<&str>, most: u32) -> Result<EventPage, BadCursor> {
        events_of(&self.store).list(self.partner.id, after, most, Duration::ZERO).await.unwrap()
    }

    /// Deletes what was kept long enough at that time.
    async fn forget_events(&self, now: Timestamp) {
        while self.run(ForgetEvents(now)).await > 0 {}
    }
}

pub(super) async fn events_are_recorded_without_an_endpoint_and_tell_of_deliveries_with_one(fixture: &Fixture) {
    let empty = fixture.event_page(None, 10).await.unwrap();
    assert!(empty.events.is_empty() && !empty.has_more);
    fixture.sign_up_named("ana@example.com", "ana", NOW).await;
    fixture.sign_up_named("ben@example.com", "ben", NOW).await;
    fixture.confirm(1).await;
    let page = fixture.event_page(Some(&empty.cursor), 10).await.unwrap();
    assert_eq!(keys(&page.events), ["ana"], "the cursor of an empty page is a place in the list");
    assert_eq!((page.events[0].kind, page.events[0].at), (EventKind::Confirmed, NOW));
    assert!(page.events[0].deliveries.is_empty());

    let endpoint = fixture.endpoint("Acme").await;
    let closes = after(PENDING_FOR);
    assert_eq!(fixture.run(CloseSignUps(closes.minus(Duration::from_millis(1)))).await, 0);
    assert_eq!(fixture.run(CloseSignUps(closes)).await, 1);
    assert_eq!(fixture.run(CloseSignUps(closes)).await, 0, "once");
    let read = async || fixture.event_page(Some(&page.cursor), 10).await.unwrap().events.pop().unwrap();
    let closed = read().await;
    assert_eq!((closed.key.as_str(), closed.kind, closed.at), ("ben", EventKind::Closed, closes));
    let queued = &closed.deliveries[0];
    assert_eq!((queued.endpoint, queued.last_attempt_at, queued.next_attempt_at), (endpoint, None, Some(closes)));

    let due = fixture.due(endpoint, closes).await;
    assert_eq!((due.len(), due[0].event), (1, closed.id), "what happened before the endpoint is not told there");
    let (failed, retried) = (closes.plus(Duration::from_secs(1)), closes.plus(HOUR));
    let retry = DeliveryOutcome::Retry { at: retried, cause: "it answered 503".to_owned() };
    fixture
        .run(SettleDelivery { id: endpoint, delivery: due[0].clone(), outcome: retry, status: Some(503), now: failed })
        .await;
    let waiting = read().await.deliveries.remove(0);
    assert_eq!((waiting.last_attempt_at, waiting.last_status), (Some(failed), Some(503)));
    assert_eq!((waiting.delivered_at, waiting.next_attempt_at), (None, Some(retried)));
    let due = fixture.due(endpoint, retried).await;
    fixture
        .run(SettleDelivery {
            id: endpoint,
            delivery: due[0].clone(),
            outcome: DeliveryOutcome::Delivered,
            status: Some(204),
            now: retried,
        })
        .await;
    let delivered = read().await.deliveries.remove(0);
    assert_eq!(
        (delivered.last_status, delivered.delivered_at, delivered.next_attempt_at),
        (Some(204), Some(retried), None)
    );
    let listed = &fixture.run(ListEndpoints(None)).await[0];
    assert_eq!((listed.waiting, listed.given_up, listed.endpoint.delivered_at), (0, 0, Some(retried)));
    assert!(fixture.due(endpoint, after(20 * DAY)).await.is_empty(), "a delivered row is not due");
    // The time of the last success is true, however short ago the one before was.
    let again = retried.plus(Duration::from_secs(1));
    assert!(fixture.run(ResendEvent { id: endpoint, key: due[0].key.clone(), now: again }).await);
    let listed = &fixture.run(ListEndpoints(None)).await[0];
    assert_eq!((listed.waiting, listed.endpoint.delivered_at), (1, Some(retried)), "nor does it fall back");
    let due = fixture.due(endpoint, again).await;
    fixture
        .run(SettleDelivery {
            id: endpoint,
            delivery: due[0].clone(),
            outcome: DeliveryOutcome::Delivered,
            status: Some(200),
            now: again,
        })
        .await;
    assert_eq!(fixture.run(ListEndpoints(None)).await[0].endpoint.delivered_at, Some(again));
    let found = fixture.run(FindEndpoint(endpoint)).await.unwrap();
    assert_eq!(found.delivered_at, Some(again));
    // What is erased is the person: the event has nothing of theirs.
    fixture.run(erasing("ben@example.com", None, closes)).await.unwrap().unwrap();
    assert_eq!(read().await.key.as_str(), "ben");
    assert_eq!(fixture.run(EmptyEndpoint(endpoint, again)).await, 1);
    assert_eq!(fixture.run(EmptyEndpoint(endpoint, again)).await, 0);
    assert!(fixture.run(RemoveEndpoint(endpoint)).await);
    assert!(read().await.deliveries.is_empty());
}

pub(super) async fn events_are_deleted_in_time_and_older_cursors_are_told_so(fixture: &Fixture) {
    // One a day; nobody reads the first two before they are deleted.
    for day in 0..6_u32 {
        fixture.sign_up_named(&format!("p{day}@example.com"), &format!("k{day}"), after(DAY * day)).await;
        let sign_up = linked_at(i64::from(day) + 1, after(DAY * day));
        fixture.confirm_at(sign_up, after(DAY * day)).await;
    }
    let old = |days: u32| NOW.plus(EVENTS_KEPT_FOR).plus(DAY * days);
    assert_eq!(fixture.run(ForgetEvents(old(0).minus(Duration::from_millis(1)))).await, 0, "not yet");
    fixture.forget_events(old(1)).await;
    let first = fixture.event_page(None, 1).await.unwrap();
    assert_eq!((keys(&first.events), first.has_more), (vec!["k2"], true));
    let second = fixture.event_page(Some(&first.cursor), 1).await.unwrap();
    assert_eq!((keys(&second.events), second.events[0].position), (vec!["k3"], 4));
    // The last one that was read is gone; nothing after it is.
    fixture.forget_events(old(2)).await;
    assert_eq!(keys(&fixture.event_page(Some(&first.cursor), 9).await.unwrap().events), ["k3", "k4", "k5"]);
    fixture.forget_events(old(3)).await;
    assert_eq!(fixture.event_page(Some(&first.cursor), 9).await, Err(BadCursor::TooOld), "k3 was never read");
    assert_eq!(keys(&fixture.event_page(Some(&second.cursor), 9).await.unwrap().events), ["k4", "k5"]);
    assert_eq!(keys(&fixture.event_page(None, 9).await.unwrap().events), ["k4", "k5"]);
    fixture.forget_events(old(9)).await;
    let end = fixture.event_page(None, 9).await.unwrap();
    assert!(end.events.is_empty() && fixture.event_page(Some(&end.cursor), 9).await.is_ok());
    assert_eq!(fixture.event_page(Some(&second.cursor), 9).await, Err(BadCursor::TooOld));
    // Nobody reads another's, or a place that is not there.
    let zoe = issue(&fixture.store, key(2, "Zoe")).await;
    let theirs = events_of(&fixture.store).list(zoe.id, Some(&end.cursor), 9, Duration::ZERO).await.unwrap();
    assert_eq!(theirs, Err(BadCursor::Unknown));
    let cursors = EventCursors::new(&Secret::new(&"s".repeat(32)).unwrap());
    let ahead = cursors.write(fixture.partner.id, 1000);
    assert_eq!(fixture.event_page(Some(&ahead), 9).await, Err(BadCursor::Unknown));
}

pub(super) async fn many_unread_events_are_numbered_in_steps(fixture: &Fixture) {
    let records = &fixture.records;
    records.execute(&format!(
        "INSERT INTO partner_events (partner_id, idempotency_key, kind, at)
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
         SELECT {}, 'k' || i, 'sign_up.confirmed', 1800000000000 + i FROM n",
        fixture.partner.id.0
    ));
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = fixture.event_page(cursor.as_deref(), 90).await.unwrap();
        seen.extend(keys(&page.events).into_iter().map(str::to_owned));
        cursor = Some(page.cursor);
        if !page.has_more {
            break;
        }
    }
    assert_eq!(seen, (1..=1000).map(|n| format!("k{n}")).collect::<Vec<_>>());
}

/// Rows that commit in another order than their ids were handed out in: a reader that goes by ids skips those that come late.
#[tokio::test(flavor = "multi_thread")]
async fn no_reader_skips_what_commits_late() {
    needs!(Postgres);
    let database = Database::migrated().await;
    let fixture = Fixture::on_postgres(&database).await;
    let other = OpenStore::new(PostgresStore::open(database.address(), Prepare::Upgrade, 256).await.unwrap());
    let nodes = [fixture.store.clone(), other];
    let readers = nodes.each_ref().map(|node| events_of(node));
    let mut writers = Vec::new();
    for _ in 0..8 {
        writers.push(database.client().await);
    }
    let insert = format!(
        "BEGIN; INSERT INTO partner_events (partner_id, idempotency_key, kind, at)
                    SELECT {}, 'k' || nextval('written'), 'sign_up.confirmed', 1800000000000",
        fixture.partner.id.0
    );
    writers[0].batch_execute("CREATE SEQUENCE written").await.unwrap();
    // Each has a cursor of its own, and both read after every commit.
    let mut seen: [(Option<String>, Vec<String>); 2] = Default::default();
    for round in 0..20_usize {
        for writer in &writers {
            writer.batch_execute(&insert).await.unwrap();
        }
        // In the end once more: what one reader numbers while the other reads is in the other's next page.
        for turn in 0..=writers.len() {
            // The last to begin is the first to commit; every other round begins elsewhere.
            let last = writers.len() - 1;
            if let Some(turn) = last.checked_sub(turn) {
                writers[(turn + round) % writers.len()].batch_execute("COMMIT").await.unwrap();
            }
            let reads = readers.iter().zip(&mut seen).map(async |(events, (cursor, seen))| {
                let page = events.list(fixture.partner.id, cursor.as_deref(), 100, Duration::ZERO).await;
                let page = page.unwrap().unwrap();
                seen.extend(keys(&page.events).into_iter().map(str::to_owned));
                *cursor = Some(page.cursor);
            });
            crate::server::together(reads).await;
        }
    }
    let [(_, one), (_, two)] = &seen;
    assert_eq!(one, two, "both saw one order");
    let distinct: std::collections::HashSet<_> = one.iter().collect();
    assert_eq!((one.len(), distinct.len()), (160, 160), "each once");
    for node in nodes {
        node.close().await.unwrap();
    }
    drop(writers);
}
