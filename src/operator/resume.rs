//! Makes records usable again after a gap in which no one knows what happened, because they were restored from a copy. This is the SQL
//! part; the engines move their ids ahead themselves.

use crate::domain::reward::payout::PayoutGeneration;
use crate::domain::time::Timestamp;
use crate::store::audit;
use crate::store::audit::Act;
use crate::store::sql::{Failure, How, Sql, Unit, expected, values};

pub struct Resume {
    /// When the records were copied, if known.
    pub taken_at: Timestamp,
    /// A new one: the numbers of payouts that were made in the gap are counted again.
    pub generation: PayoutGeneration,
    pub act: Act,
}

impl Resume {
    /// How far ids jump: links and message ids made in the gap came from ids the records do not know, and none may be given to another
    /// person. Depends on the time, so that the same copy can be restored twice.
    pub fn id_gap(&self) -> i64 {
        let millis = i64::try_from(self.act.at.since(self.taken_at).as_millis()).unwrap_or(0);
        millis.saturating_add(1_000_000)
    }
}

impl Unit for Resume {
    /// How many mails are held.
    type Done = u64;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        // Sessions that were ended in the gap came back, and so did sign-in links that were used.
        sql.execute("UPDATE people SET session = NULL WHERE session IS NOT NULL", values![]).await?;
        sql.execute("DELETE FROM outbox WHERE sign_in_id IS NOT NULL", values![]).await?;
        sql.execute("DELETE FROM sign_ins", values![]).await?;
        sql.execute("DELETE FROM operator_sessions", values![]).await?;
        sql.execute("DELETE FROM operator_links", values![]).await?;
        sql.execute("UPDATE outbox SET leased_until = 0, leased_by = NULL WHERE leased_until <> 0", values![]).await?;
        sql.execute(
            "UPDATE webhook_deliveries SET leased_until = 0, leased_by = NULL WHERE leased_until <> 0",
            values![],
        )
        .await?;
        // Positions that partners saw in the gap could be given again, so all events get new ones, and earlier cursors are refused.
        sql.execute("UPDATE partner_events SET position = NULL WHERE position IS NOT NULL", values![]).await?;
        let anew = "UPDATE partners SET events_numbered = events_numbered + $1, events_deleted = events_numbered + $1";
        sql.execute(anew, values![self.id_gap()]).await?;
        let ids = "UPDATE installation SET payout_generation = $1 WHERE id = 1";
        sql.execute(ids, values![self.generation.as_str()]).await?;
        // No one is mailed twice about a campaign: how far a mailing got in the gap is not known.
        sql.execute("DELETE FROM outbox WHERE campaign_mail_id IS NOT NULL", values![]).await?;
        let stop = "UPDATE campaign_mailings SET finished_at = $1 WHERE finished_at IS NULL";
        sql.execute(stop, values![self.act.at]).await?;
        // Waiting mail may have been sent in the gap, held or not, so lifting a suspension must not send any.
        sql.execute("UPDATE outbox SET held_suspended = FALSE WHERE held_suspended", values![]).await?;
        let hold = "UPDATE outbox SET held_at = $1 WHERE held_at IS NULL AND given_up_at IS NULL";
        sql.execute(hold, values![self.act.at]).await?;
        let held = "SELECT count(*) FROM outbox WHERE held_at IS NOT NULL AND given_up_at IS NULL";
        let held: u64 = expected(sql.value(held, values![]).await?)?;
        audit::append(sql, &self.act, &self.act.about).await?;
        Ok(held)
    }
}
