//! Events: what partners learn about their sign-ups, in an order in which no reader skips one.
//!
//! An event is a row, written in the transaction that decides it. The request that reads a partner's list later gives the event its
//! position there: PostgreSQL hands out ids before commits, so a row with a lower id may become visible after one with a higher id was
//! read. Only committed events are numbered, one unit at a time, so a reader that sees a position has seen every smaller one.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::domain::partner::endpoint::EndpointId;
use crate::domain::partner::event::{EVENTS_KEPT_FOR, EventDelivery, PartnerEvent};
use crate::domain::partner::idempotency::IdempotencyKey;
use crate::domain::partner::name::PartnerId;
use crate::domain::time::Timestamp;
use crate::domain::webhook::EventKind;
use crate::store::sql::{Failure, How, Row, Sql, Unit, expected, values};

/// Gives the next positions to the partner's events that have none; returns how many.
pub struct NumberEvents(pub PartnerId);

impl Unit for NumberEvents {
    type Done = u64;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        number(sql, self.0).await
    }
}

/// Deletes a batch of events that were kept long enough, each partner's in order of position; returns how many rows it worked on.
pub struct ForgetEvents(pub Timestamp);

impl Unit for ForgetEvents {
    type Done = u64;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        let before = self.0.minus(EVENTS_KEPT_FOR);
        let due = "SELECT p.id FROM partners p
                   WHERE EXISTS (SELECT 1 FROM partner_events e WHERE e.partner_id = p.id AND e.at <= $1) ORDER BY p.id";
        let due: Vec<PartnerId> = sql.rows(due, values![before], |row| row.get(0)).await?;
        let mut worked_on = 0;
        for partner in due {
            // Events that no request has read have no position. They get one first, so that a reader learns that they were deleted.
            worked_on += number(sql, partner).await?;
            let oldest = "SELECT position, at FROM partner_events WHERE partner_id = $1 AND position IS NOT NULL
                          ORDER BY position LIMIT $2";
            let read = |row: &Row<'_>| Ok((row.get::<i64>("position")?, row.get::<Timestamp>("at")?));
            let oldest = sql.rows(oldest, values![partner, EVENT_BATCH], read).await?;
            // In list order, and only up to the first event that stays: the remaining list has no gaps.
            let Some((last, _)) = oldest.into_iter().take_while(|(_, at)| *at <= before).last() else { continue };
            let delete = "DELETE FROM partner_events WHERE partner_id = $1 AND position <= $2";
            worked_on += sql.execute(delete, values![partner, last]).await?;
            sql.execute("UPDATE partners SET events_deleted = $2 WHERE id = $1", values![partner, last]).await?;
            if worked_on >= EVENT_BATCH.into() {
                break;
            }
        }
        Ok(worked_on)
    }
}

/// How many events are numbered, or deleted, in one commit.
const EVENT_BATCH: u32 = 200;

/// Some of a partner's events, and the state of its list.
#[derive(Clone, PartialEq, Eq)]
pub struct EventsRead {
    pub events: Vec<PartnerEvent>,
    /// The last position given to one of the partner's events.
    pub numbered: i64,
    /// The last position whose event was deleted.
    pub deleted: i64,
    /// There are events that have no position yet.
    pub has_unnumbered: bool,
}

/// The partner's events after that position, in their order.
pub struct EventsAfter {
    pub partner: PartnerId,
    pub after: i64,
    pub most: u32,
}

impl Unit for EventsAfter {
    type Done = EventsRead;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<EventsRead, Failure> {
        let list = "SELECT id, position, kind, idempotency_key, at FROM partner_events
                    WHERE partner_id = $1 AND position > $2 ORDER BY position LIMIT $3";
        let mut events = sql.rows(list, values![self.partner, self.after, self.most], event).await?;
        if let Some(last) = events.last().map(|last| last.position) {
            let tried = "SELECT d.event_id, d.endpoint_id, d.last_attempt_at, d.last_status, d.delivered_at,
                             CASE WHEN d.settled_at IS NULL AND w.disabled_at IS NULL
                                 THEN d.send_after END AS next_attempt_at
                         FROM partner_events e JOIN webhook_deliveries d ON d.event_id = e.id
                             JOIN webhook_endpoints w ON w.id = d.endpoint_id
                         WHERE e.partner_id = $1 AND e.position > $2 AND e.position <= $3 ORDER BY d.endpoint_id";
            let mut deliveries = HashMap::<i64, Vec<EventDelivery>>::new();
            for (event, delivery) in sql.rows(tried, values![self.partner, self.after, last], delivery).await? {
                deliveries.entry(event).or_default().push(delivery);
            }
            for event in &mut events {
                event.deliveries = deliveries.remove(&event.id).unwrap_or_default();
            }
        }
        // Read after the events, so that it shows everything that was deleted before they were read.
        let state = "SELECT events_numbered, events_deleted,
                         EXISTS (SELECT 1 FROM partner_events e WHERE e.partner_id = p.id AND e.position IS NULL) AS has_unnumbered
                     FROM partners p WHERE p.id = $1";
        let read =
            |row: &Row<'_>| Ok((row.get("events_numbered")?, row.get("events_deleted")?, row.get("has_unnumbered")?));
        let (numbered, deleted, has_unnumbered) = expected(sql.row(state, values![self.partner], read).await?)?;
        Ok(EventsRead { events, numbered, deleted, has_unnumbered })
    }
}

fn event(row: &Row<'_>) -> Result<PartnerEvent, Failure> {
    Ok(PartnerEvent {
        id: row.get("id")?,
        position: row.get("position")?,
        kind: row.parsed("kind", EventKind::from_name)?,
        key: row.parsed("idempotency_key", |text| IdempotencyKey::parse(text).ok())?,
        at: row.get("at")?,
        deliveries: Vec::new(),
    })
}

/// A delivery, with the id of its event.
fn delivery(row: &Row<'_>) -> Result<(i64, EventDelivery), Failure> {
    let delivery = EventDelivery {
        endpoint: EndpointId(row.get("endpoint_id")?),
        last_attempt_at: row.get("last_attempt_at")?,
        last_status: row.get("last_status")?,
        delivered_at: row.get("delivered_at")?,
        next_attempt_at: row.get("next_attempt_at")?,
    };
    Ok((row.get("event_id")?, delivery))
}

/// A statement that records an event at the time `at` for each request `k` of `requests`, and one that queues its delivery at the
/// time `due` to each endpoint of the partner. Both times and the kind are SQL.
pub(crate) fn record_events(kind: &str, at: &str, due: &str, requests: &str) -> [String; 2] {
    [
        format!(
            "INSERT INTO partner_events (partner_id, idempotency_key, kind, at)
             SELECT k.partner_id, k.key, {kind}, {at} FROM {requests}"
        ),
        // An event is kept longer than its key, which the partner may then use again: the last one is the one just recorded.
        format!(
            "INSERT INTO webhook_deliveries (endpoint_id, event_id, send_after)
             SELECT w.id, e.id, {due} FROM {requests}
                 JOIN partner_events e ON e.id = (SELECT max(id) FROM partner_events
                     WHERE partner_id = k.partner_id AND idempotency_key = k.key AND kind = {kind})
                 JOIN webhook_endpoints w ON w.partner_id = k.partner_id AND w.disabled_at IS NULL"
        ),
    ]
}

/// Records what happened to a request, and queues a message about it to each endpoint of its partner.
pub(crate) async fn record(
    sql: &mut dyn Sql,
    kind: EventKind,
    request: i64,
    at: Timestamp,
    now: Timestamp,
) -> Result<(), Failure> {
    static RECORD: LazyLock<[String; 2]> = LazyLock::new(|| {
        record_events(
            "$2",
            "CAST($3 AS BIGINT)",
            "$3",
            "(SELECT partner_id, key FROM idempotency_keys WHERE id = $1) k",
        )
    });
    let [record, queue] = &*RECORD;
    sql.execute(record, values![request, kind.name(), at]).await?;
    sql.execute(queue, values![request, kind.name(), now]).await.map(|_| ())
}

async fn number(sql: &mut dyn Sql, partner: PartnerId) -> Result<u64, Failure> {
    // Not a lock on the partner's row, which all requests that add a sign-up share.
    sql.lock(&format!("events of partner {}", partner.0)).await?;
    let last = "SELECT events_numbered FROM partners WHERE id = $1";
    let last: i64 = expected(sql.value(last, values![partner]).await?)?;
    let number = "UPDATE partner_events SET position = $2 + placed.place FROM
                      (SELECT id, row_number() OVER (ORDER BY at, id) AS place FROM
                          (SELECT id, at FROM partner_events WHERE partner_id = $1 AND position IS NULL
                           ORDER BY at, id LIMIT $3) batch) placed
                  WHERE partner_events.id = placed.id";
    let numbered = sql.execute(number, values![partner, last, EVENT_BATCH]).await?;
    if numbered > 0 {
        let count = "UPDATE partners SET events_numbered = $2 WHERE id = $1";
        sql.execute(count, values![partner, last.saturating_add_unsigned(numbered)]).await?;
    }
    Ok(numbered)
}
