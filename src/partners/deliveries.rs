//! Deliveries of webhooks: a worker leases what is due, and records the outcome.

use std::time::Duration;

use crate::domain::partner::endpoint::{DeliveryOutcome, DueDelivery, EndpointId};
use crate::domain::partner::idempotency::IdempotencyKey;
use crate::domain::time::Timestamp;
use crate::domain::webhook::{DISABLED_AFTER, EventKind};
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// How often a success is written to the endpoint's row: writing each one would make deliveries wait for each other.
const SUCCESS_INTERVAL: Duration = Duration::from_secs(60);

/// Leases up to `most` due deliveries of an endpoint to `worker` alone, until `until`.
pub struct LeaseDeliveries {
    pub id: EndpointId,
    pub worker: String,
    pub most: u32,
    pub until: Timestamp,
    pub now: Timestamp,
}

impl Unit for LeaseDeliveries {
    type Done = Vec<DueDelivery>;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let lease = "
            UPDATE webhook_deliveries SET attempts = attempts + 1, leased_until = $3, leased_by = $2 WHERE id IN
                (SELECT id FROM webhook_deliveries
                 WHERE endpoint_id = $1 AND settled_at IS NULL AND send_after <= $4 AND leased_until <= $4
                 ORDER BY send_after, id LIMIT $5 FOR UPDATE SKIP LOCKED)
            RETURNING id, event_id, attempts,
                (SELECT e.kind FROM partner_events e WHERE e.id = event_id) AS kind,
                (SELECT e.at FROM partner_events e WHERE e.id = event_id) AS at,
                (SELECT e.idempotency_key FROM partner_events e WHERE e.id = event_id) AS idempotency_key";
        let due = |row: &Row<'_>| {
            Ok(DueDelivery {
                id: row.get("id")?,
                event: row.get("event_id")?,
                kind: row.parsed("kind", EventKind::from_name)?,
                at: row.get("at")?,
                key: row.parsed("idempotency_key", |text| IdempotencyKey::parse(text).ok())?,
                attempts: row.get("attempts")?,
            })
        };
        sql.rows(lease, values![self.id.0, &self.worker, self.until, self.now, self.most], due).await
    }
}

/// Records the outcome of an attempt, unless the delivery was leased again since. True if this disables the endpoint.
#[derive(Clone)]
pub struct SettleDelivery {
    pub id: EndpointId,
    pub delivery: DueDelivery,
    pub outcome: DeliveryOutcome,
    pub status: Option<u32>,
    pub now: Timestamp,
}

impl Unit for SettleDelivery {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self { id, delivery, outcome, status, now } = self;
        let (cause, next, is_gone) = match outcome {
            DeliveryOutcome::Delivered => {
                let delivered = "UPDATE webhook_deliveries SET delivered_at = $3, settled_at = $3, last_attempt_at = $3, last_status = $4, last_error = NULL,
                                     leased_until = 0, leased_by = NULL WHERE id = $1 AND attempts = $2";
                sql.execute(delivered, values![delivery.id, delivery.attempts, *now, *status]).await?;
                let well = "UPDATE webhook_endpoints SET delivered_at = $2, failing_since = NULL, last_error = NULL
                            WHERE id = $1 AND (failing_since IS NOT NULL OR coalesce(delivered_at, 0) <= $3)";
                sql.execute(well, values![id.0, *now, now.minus(SUCCESS_INTERVAL)]).await?;
                return Ok(false);
            }
            DeliveryOutcome::Postponed { at } => {
                let postpone = "UPDATE webhook_deliveries SET send_after = $3, attempts = attempts - 1, leased_until = 0, leased_by = NULL
                                WHERE id = $1 AND attempts = $2";
                sql.execute(postpone, values![delivery.id, delivery.attempts, *at]).await?;
                return Ok(false);
            }
            DeliveryOutcome::Retry { at, cause } => (cause, Some(*at), false),
            DeliveryOutcome::GivenUp { cause } => (cause, None, false),
            DeliveryOutcome::Gone { cause } => (cause, Some(*now), true),
        };
        // PostgreSQL cannot store a NUL.
        let cause = cause.replace('\0', "");
        let keep =
            "UPDATE webhook_deliveries SET send_after = coalesce($3, send_after), settled_at = $4, last_error = $5,
                        last_attempt_at = $6, last_status = $7, leased_until = 0, leased_by = NULL
             WHERE id = $1 AND attempts = $2";
        let settled_at = next.is_none().then_some(*now);
        // A worker that lost the lease does not change the endpoint either.
        let kept = values![delivery.id, delivery.attempts, next, settled_at, &cause, *now, *status];
        if sql.execute(keep, kept).await? == 0 {
            return Ok(false);
        }
        let fails =
            "UPDATE webhook_endpoints SET failing_since = coalesce(failing_since, $2), last_error = $3 WHERE id = $1";
        sql.execute(fails, values![id.0, *now, &cause]).await?;
        let disable = "UPDATE webhook_endpoints SET disabled_at = $2, disabled_reason = $3
                       WHERE id = $1 AND disabled_at IS NULL AND failing_since <= $4";
        // An endpoint that is gone is disabled at once, not after five days.
        let since = if is_gone { *now } else { now.minus(DISABLED_AFTER) };
        Ok(sql.execute(disable, values![id.0, *now, &cause, since]).await? == 1)
    }
}

/// Gives back what `worker` had leased when it was stopped.
pub struct ReleaseDeliveries {
    pub worker: String,
}

impl Unit for ReleaseDeliveries {
    type Done = u64;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        // Only unsettled deliveries are leased, and an index finds them.
        let release = "UPDATE webhook_deliveries SET leased_until = 0, leased_by = NULL
                       WHERE leased_by = $1 AND settled_at IS NULL";
        sql.execute(release, values![&self.worker]).await
    }
}
