//! Webhooks: endpoints, and the deliveries on their way to them (a transactional outbox of events).
//!
//! Each message to an endpoint is a row, written in the transaction that decides it and leased like mail. Each endpoint has its
//! own queue: an endpoint that hangs does not hold up another's messages.

use crate::domain::partner::endpoint::{ENDPOINTS_OF_ONE, EndpointId, EndpointRecord, ListedEndpoint, NotAdded};
use crate::domain::partner::idempotency::IdempotencyKey;
use crate::domain::partner::name::PartnerId;
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Row, Sql, Unit, expected, values};

/// The columns of an endpoint, as [`endpoint`] reads them.
macro_rules! columns {
    () => {
        "id, partner_id, (SELECT p.name FROM partners p WHERE p.id = partner_id) AS partner, url, generation,
         coalesce(old_generation, generation - 1) AS old_generation, made_with, old_made_with, rotate_by, rotated_at, created_at,
         delivered_at, failing_since, last_error, disabled_at, disabled_reason,
         (SELECT p.suspended_at FROM partners p WHERE p.id = partner_id) AS suspended_at"
    };
}

/// When the last delivery to an endpoint `e` succeeded, among the deliveries that are still kept.
macro_rules! last_success {
    () => {
        "(SELECT max(d.delivered_at) FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.delivered_at IS NOT NULL)"
    };
}

/// A delivery to an endpoint `w` for each of some events `e` of its partner, due at `$2`. A delivery that already exists is sent again.
macro_rules! deliver_again {
    ($which:literal) => {
        concat!(
            "INSERT INTO webhook_deliveries (endpoint_id, event_id, send_after)
             SELECT w.id, e.id, $2 FROM webhook_endpoints w JOIN partner_events e ON e.partner_id = w.partner_id
             WHERE w.id = $1 AND ",
            $which,
            " ON CONFLICT (endpoint_id, event_id) DO UPDATE
                  SET send_after = excluded.send_after, attempts = 0, delivered_at = NULL, settled_at = NULL
                  WHERE webhook_deliveries.leased_until <= excluded.send_after"
        )
    };
}

/// Endpoints as [`listed_endpoint`] reads them, with what waits and what was given up counted up to `$1`.
macro_rules! listed_endpoints {
    ($which:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            ", ",
            last_success!(),
            " AS last_success,
               (SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.settled_at IS NULL LIMIT $1) w)
                   AS waiting,
               (SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.settled_at IS NOT NULL
                                      AND d.delivered_at IS NULL LIMIT $1) g) AS given_up
             FROM webhook_endpoints e WHERE e.removed_at IS NULL ",
            $which
        )
    };
}

/// The endpoints of one partner, or all. Waiting and given-up deliveries are counted up to a bound, so that a list takes the same
/// time however many there are.
pub struct ListEndpoints(pub Option<PartnerId>);

impl Unit for ListEndpoints {
    type Done = Vec<ListedEndpoint>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Some(partner) = self.0 else {
            return sql.rows(listed_endpoints!("ORDER BY e.id"), values![MAX_COUNTED], listed_endpoint).await;
        };
        let list = listed_endpoints!("AND e.partner_id = $2 ORDER BY e.id");
        sql.rows(list, values![MAX_COUNTED, partner], listed_endpoint).await
    }
}

/// Endpoints that are disabled or fail, those of suspended partners aside.
pub struct ListTroubledEndpoints;

impl Unit for ListTroubledEndpoints {
    type Done = Vec<EndpointRecord>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let troubled = concat!(
            "SELECT ",
            columns!(),
            " FROM webhook_endpoints e
             WHERE e.removed_at IS NULL AND (e.disabled_at IS NOT NULL OR e.failing_since IS NOT NULL)
                 AND NOT EXISTS (SELECT 1 FROM partners p WHERE p.id = e.partner_id AND p.suspended_at IS NOT NULL) ORDER BY e.id"
        );
        sql.rows(troubled, values![], endpoint).await
    }
}

pub struct FindEndpoint(pub EndpointId);

impl Unit for FindEndpoint {
    type Done = Option<EndpointRecord>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let find = concat!(
            "SELECT ",
            columns!(),
            ", ",
            last_success!(),
            " AS last_success FROM webhook_endpoints e
             WHERE e.id = $1 AND e.removed_at IS NULL"
        );
        sql.row(find, values![self.0.0], known_endpoint).await
    }
}

/// Gives an endpoint another secret, unless it got one after `unless_after`; returns the new generation.
pub struct RotateEndpoint {
    pub id: EndpointId,
    /// Random: records that are restored would count to the same number again, and a secret that was given up would come back.
    pub generation: u32,
    /// The generation of the installation's secret that it derives from.
    pub made_with: u32,
    pub unless_after: Timestamp,
    pub now: Timestamp,
}

impl Unit for RotateEndpoint {
    type Done = Option<u32>;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Option<u32>, Failure> {
        let rotate = "UPDATE webhook_endpoints SET old_generation = generation, generation = $4, old_made_with = made_with, made_with = $5,
                          rotated_at = $3, rotate_by = NULL, rotation_asked_at = NULL
                      WHERE id = $1 AND coalesce(rotated_at, 0) <= $2 AND removed_at IS NULL RETURNING generation";
        let values = values![self.id.0, self.unless_after, self.now, self.generation, self.made_with];
        sql.value(rotate, values).await
    }
}

/// Takes an endpoint out of use; false if there is none. Its deliveries are deleted later, and then its row.
pub struct RetireEndpoint(pub EndpointId, pub Timestamp);

impl Unit for RetireEndpoint {
    type Done = bool;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(id, now) = self;
        let retire = "UPDATE webhook_endpoints SET removed_at = $2, disabled_at = $2, disabled_reason = 'it was removed', notified_at = $2
                      WHERE id = $1 AND removed_at IS NULL";
        Ok(sql.execute(retire, values![id.0, *now]).await? == 1)
    }
}

/// A removed endpoint that may still have deliveries.
pub struct FindRemovedEndpoint;

impl Unit for FindRemovedEndpoint {
    type Done = Option<EndpointId>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let removed = "SELECT min(id) FROM webhook_endpoints WHERE removed_at IS NOT NULL";
        Ok(sql.value(removed, values![]).await?.flatten().map(EndpointId))
    }
}

/// Stops an endpoint that is about to be removed, and deletes a batch of its deliveries; returns how many.
pub struct EmptyEndpoint(pub EndpointId, pub Timestamp);

impl Unit for EmptyEndpoint {
    type Done = u64;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        let Self(id, now) = self;
        // The partner's contact gets no mail about this.
        let stop =
            "UPDATE webhook_endpoints SET disabled_at = $2, disabled_reason = 'it is being removed', notified_at = $2
                    WHERE id = $1";
        sql.execute(stop, values![id.0, *now]).await?;
        let delete = "DELETE FROM webhook_deliveries WHERE id IN
                          (SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 LIMIT $2)";
        sql.execute(delete, values![id.0, DELIVERY_BATCH]).await
    }
}

/// Deletes an endpoint and its remaining deliveries; false if there is none.
pub struct RemoveEndpoint(pub EndpointId);

impl Unit for RemoveEndpoint {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        sql.execute("DELETE FROM webhook_deliveries WHERE endpoint_id = $1", values![self.0.0]).await?;
        Ok(sql.execute("DELETE FROM webhook_endpoints WHERE id = $1", values![self.0.0]).await? == 1)
    }
}

/// Sends an endpoint the outcome of a request again; false if there is no outcome yet, or the request is unknown.
pub struct ResendEvent {
    pub id: EndpointId,
    pub key: IdempotencyKey,
    pub now: Timestamp,
}

impl Unit for ResendEvent {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        keep_last_success(sql, self.id).await?;
        let again = deliver_again!("e.idempotency_key = $3");
        if sql.execute(again, values![self.id.0, self.now, self.key.as_str()]).await? > 0 {
            return Ok(true);
        }
        // A delivery that was skipped is being sent right now.
        let being_sent = "SELECT 1 FROM webhook_endpoints w
                              JOIN partner_events e ON e.partner_id = w.partner_id AND e.idempotency_key = $2
                              JOIN webhook_deliveries d ON d.event_id = e.id AND d.endpoint_id = w.id
                          WHERE w.id = $1";
        sql.exists(being_sent, values![self.id.0, self.key.as_str()]).await
    }
}

/// Enables an endpoint, whatever had stopped it, and restarts some of its waiting deliveries. False if there is none.
pub struct EnableEndpoint(pub EndpointId, pub Timestamp);

impl Unit for EnableEndpoint {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(id, now) = self;
        let enable = "UPDATE webhook_endpoints SET disabled_at = NULL, disabled_reason = NULL, failing_since = NULL,
                          last_error = NULL, notified_at = NULL, notify_leased_until = 0 WHERE id = $1 AND removed_at IS NULL";
        let found = sql.execute(enable, values![id.0]).await? == 1;
        if found {
            restart(sql, *id, *now).await?;
        }
        Ok(found)
    }
}

/// Restarts more of an endpoint's waiting deliveries; returns how many.
pub struct RestartDeliveries(pub EndpointId, pub Timestamp);

impl Unit for RestartDeliveries {
    type Done = u64;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        let Self(id, now) = self;
        restart(sql, *id, *now).await
    }
}

/// Sends an endpoint a batch of its partner's events again, from `since` on and, at exactly that time, after the id `after`.
/// Returns where to continue (none at the end) and how many events there were.
pub struct RecoverEvents {
    pub id: EndpointId,
    pub since: Timestamp,
    pub after: i64,
    pub now: Timestamp,
}

impl Unit for RecoverEvents {
    type Done = (Option<(Timestamp, i64)>, u64);
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let next = "SELECT at, id FROM
                        (SELECT e.at, e.id FROM partner_events e
                         WHERE e.partner_id = (SELECT w.partner_id FROM webhook_endpoints w WHERE w.id = $1)
                           AND e.at >= $2 AND (e.at > $2 OR e.id > $3)
                         ORDER BY e.at, e.id LIMIT $4) batch
                    ORDER BY at DESC, id DESC LIMIT 1";
        let read = |row: &Row<'_>| Ok((row.get::<Timestamp>("at")?, row.get::<i64>("id")?));
        let last = sql.row(next, values![self.id.0, self.since, self.after, DELIVERY_BATCH], read).await?;
        let Some((end, last)) = last else { return Ok((None, 0)) };
        keep_last_success(sql, self.id).await?;
        let again =
            deliver_again!("e.at >= $3 AND (e.at > $3 OR e.id > $4) AND e.at <= $5 AND (e.at < $5 OR e.id <= $6)");
        let sent = sql.execute(again, values![self.id.0, self.now, self.since, self.after, end, last]).await?;
        Ok((Some((end, last)), sent))
    }
}

/// Endpoints that have deliveries due, and whether the last attempt there failed. Leaves out partners that are suspended or
/// have no working key.
pub struct ListDueEndpoints(pub Timestamp);

impl Unit for ListDueEndpoints {
    type Done = Vec<(EndpointRecord, bool)>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        // One index lookup per endpoint. For an EXISTS here, PostgreSQL would read everything that is due.
        let due = concat!(
            "SELECT ",
            columns!(),
            " FROM webhook_endpoints e WHERE e.disabled_at IS NULL AND 1 =
                  (SELECT 1 FROM webhook_deliveries d WHERE d.endpoint_id = e.id AND d.settled_at IS NULL
                   AND d.send_after <= $1 AND d.leased_until <= $1 LIMIT 1)
                AND EXISTS (SELECT 1 FROM api_keys k WHERE k.partner_id = e.partner_id AND k.revoked_at IS NULL
                            AND (k.expires_at IS NULL OR k.expires_at > $1))
              ORDER BY e.id"
        );
        let fails = |row: &Row<'_>| Ok((endpoint(row)?, row.get::<Option<Timestamp>>("failing_since")?.is_some()));
        let mut due = sql.rows(due, values![self.0], fails).await?;
        // Not in the statement, which every wake-up runs: its plan stays the one that was measured, and there are few endpoints.
        due.retain(|(endpoint, _)| endpoint.suspended_at.is_none());
        Ok(due)
    }
}

/// Leases endpoints disabled since `since` whose partner was not notified; until `until`, only this caller notifies the
/// partner. Returns each with the partner's contact.
pub struct LeaseToNotify {
    pub since: Timestamp,
    pub until: Timestamp,
    pub now: Timestamp,
}

impl Unit for LeaseToNotify {
    type Done = Vec<(EndpointRecord, String)>;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let lease = concat!(
            "UPDATE webhook_endpoints SET notify_leased_until = $2
             WHERE disabled_at >= $1 AND notified_at IS NULL AND notify_leased_until <= $3
               AND EXISTS (SELECT 1 FROM partners p WHERE p.id = partner_id AND p.contact IS NOT NULL)
             RETURNING (SELECT p.contact FROM partners p WHERE p.id = partner_id) AS contact, ",
            columns!()
        );
        sql.rows(lease, values![self.since, self.until, self.now], |row| Ok((endpoint(row)?, row.get("contact")?)))
            .await
    }
}

pub struct NoteNotified(pub EndpointId, pub Timestamp);

impl Unit for NoteNotified {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let Self(id, now) = self;
        let note = "UPDATE webhook_endpoints SET notified_at = $2 WHERE id = $1 AND disabled_at IS NOT NULL";
        sql.execute(note, values![id.0, *now]).await.map(|_| ())
    }
}

/// How many deliveries are queued again, or deleted, in one commit.
pub const DELIVERY_BATCH: u32 = 500;

/// Up to how many deliveries of an endpoint are counted in its partner's list.
pub const MAX_COUNTED: u32 = 1000;

fn endpoint(row: &Row<'_>) -> Result<EndpointRecord, Failure> {
    Ok(EndpointRecord {
        id: EndpointId(row.get("id")?),
        partner_id: row.get("partner_id")?,
        partner: row.get("partner")?,
        url: row.get("url")?,
        generation: row.get("generation")?,
        old_generation: row.get("old_generation")?,
        made_with: row.get("made_with")?,
        old_made_with: row.get("old_made_with")?,
        rotate_by: row.get("rotate_by")?,
        rotated_at: row.get("rotated_at")?,
        created_at: row.get("created_at")?,
        delivered_at: row.get("delivered_at")?,
        failing_since: row.get("failing_since")?,
        last_error: row.get("last_error")?,
        disabled_at: row.get("disabled_at")?,
        disabled_why: row.get("disabled_reason")?,
        suspended_at: row.get("suspended_at")?,
    })
}

/// The same, with the time of the last success from its deliveries.
fn known_endpoint(row: &Row<'_>) -> Result<EndpointRecord, Failure> {
    let endpoint = endpoint(row)?;
    Ok(EndpointRecord { delivered_at: endpoint.delivered_at.max(row.get("last_success")?), ..endpoint })
}

fn listed_endpoint(row: &Row<'_>) -> Result<ListedEndpoint, Failure> {
    Ok(ListedEndpoint { endpoint: known_endpoint(row)?, waiting: row.get("waiting")?, given_up: row.get("given_up")? })
}

/// Saves the time of the last success before deliveries to an endpoint start over.
async fn keep_last_success(sql: &mut dyn Sql, id: EndpointId) -> Result<(), Failure> {
    let last = concat!("SELECT ", last_success!(), " FROM webhook_endpoints e WHERE e.id = $1");
    if let Some(last) = sql.value::<Option<Timestamp>>(last, values![id.0]).await?.flatten() {
        let keep = "UPDATE webhook_endpoints SET delivered_at = $2 WHERE id = $1 AND coalesce(delivered_at, 0) < $2";
        sql.execute(keep, values![id.0, last]).await?;
    }
    Ok(())
}

/// Makes a batch of an endpoint's waiting deliveries due now, as if never tried; returns how many. Each row is taken once.
async fn restart(sql: &mut dyn Sql, id: EndpointId, now: Timestamp) -> Result<u64, Failure> {
    // A worker that is still sending one loses its lease: the answer it gets is from before the restart.
    let anew = "UPDATE webhook_deliveries SET send_after = $2,
                    attempts = CASE WHEN leased_until <= $2 THEN 0 ELSE attempts + 1 END,
                    leased_until = 0, leased_by = NULL
                WHERE id IN (SELECT id FROM webhook_deliveries WHERE endpoint_id = $1 AND settled_at IS NULL
                             AND (send_after <> $2 OR leased_until > $2) LIMIT $3)";
    sql.execute(anew, values![id.0, now, DELIVERY_BATCH]).await
}

pub struct AddEndpoint {
    pub partner: String,
    pub url: String,
    /// The generation of the installation's secret that its own derives from.
    pub made_with: u32,
    pub now: Timestamp,
}

impl Unit for AddEndpoint {
    type Done = Result<EndpointId, NotAdded>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let find = "SELECT id FROM partners WHERE name = $1";
        let partner = sql.value::<PartnerId>(find, values![&self.partner]).await?;
        let Some(partner) = partner else { return Ok(Err(NotAdded::NoPartner)) };
        // Locked before the count, in a statement of its own: the count would only see what was there before it waited. Not a
        // lock on the partner's row, which all requests that add a sign-up share.
        sql.lock(&format!("endpoints of partner {partner}")).await?;
        let count = "SELECT count(*) AS endpoints, min(CASE WHEN url = $2 THEN id END) AS known FROM webhook_endpoints
                     WHERE partner_id = $1 AND removed_at IS NULL";
        let counted = |row: &Row<'_>| Ok((row.get::<u32>("endpoints")?, row.get::<Option<i64>>("known")?));
        match expected(sql.row(count, values![partner, &self.url], counted).await?)? {
            (_, Some(known)) => return Ok(Err(NotAdded::Known(EndpointId(known)))),
            (ENDPOINTS_OF_ONE.., None) => return Ok(Err(NotAdded::Full)),
            (_, None) => {}
        }
        let add = "INSERT INTO webhook_endpoints (partner_id, url, created_at, made_with) VALUES ($1, $2, $3, $4) RETURNING id";
        let id = sql.insert(add, values![partner, &self.url, self.now, self.made_with]).await?;
        Ok(Ok(EndpointId(id.ok_or(Failure::Overtaken)?)))
    }
}

/// Has the partners of all endpoints rotate their secrets that derive from older generations of the installation's secret; returns how
/// many endpoints have one. Their contacts are mailed once.
pub struct AskToRotate {
    pub before: u32,
    pub by: Timestamp,
}

impl Unit for AskToRotate {
    type Done = u64;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        let ask = "UPDATE webhook_endpoints SET rotate_by = CASE WHEN rotate_by < $2 THEN rotate_by ELSE $2 END
                   WHERE made_with < $1 AND removed_at IS NULL";
        sql.execute(ask, values![self.before, self.by]).await
    }
}

/// Whether secrets of endpoints derive from that generation of the installation's secret.
pub struct AreThereEndpointsOf(pub u32);

impl Unit for AreThereEndpointsOf {
    type Done = bool;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        sql.exists("SELECT 1 FROM webhook_endpoints WHERE made_with = $1 AND removed_at IS NULL", values![self.0]).await
    }
}

/// Leases endpoints whose partners were not mailed yet that they have to rotate the secret. Returns each with the partner's contact.
pub struct LeaseRotationMail {
    pub until: Timestamp,
    pub now: Timestamp,
}

impl Unit for LeaseRotationMail {
    type Done = Vec<(EndpointRecord, String)>;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let lease = concat!(
            "UPDATE webhook_endpoints SET notify_leased_until = $1
             WHERE rotate_by IS NOT NULL AND rotation_asked_at IS NULL AND notify_leased_until <= $2 AND removed_at IS NULL
               AND EXISTS (SELECT 1 FROM partners p WHERE p.id = partner_id AND p.contact IS NOT NULL)
             RETURNING (SELECT p.contact FROM partners p WHERE p.id = partner_id) AS contact, ",
            columns!()
        );
        sql.rows(lease, values![self.until, self.now], |row| Ok((endpoint(row)?, row.get("contact")?))).await
    }
}

pub struct NoteRotationMailed(pub EndpointId, pub Timestamp);

impl Unit for NoteRotationMailed {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let Self(id, now) = self;
        // Another mail about the same endpoint need not wait for the lease.
        let note = "UPDATE webhook_endpoints SET rotation_asked_at = $2, notify_leased_until = 0 WHERE id = $1";
        sql.execute(note, values![id.0, *now]).await.map(|_| ())
    }
}
