//! Records after a gap in which nobody knows what happened: they were restored from a copy, and are made fit to be served again;
//! as SQL. The engines move their ids ahead themselves.

use crate::domain::time::Timestamp;
use crate::store::audit;
use crate::store::audit::Act;
use crate::store::sql::{Failure, How, Sql, Unit, expected, values};

#[derive(Debug)]
pub struct Resume {
    /// When the records were copied, as far as is known.
    pub taken_at: Timestamp,
    /// Written to the audit log.
    pub act: Act,
}

impl Resume {
    /// How far ids jump: links and message ids that were made meanwhile came from ids that the records know nothing of, and none
    /// may be given to somebody else. By the time, so that the same copy can be served again twice.
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
        // Sessions that were ended since have come back, and links to sign in that were used.
        sql.execute("UPDATE people SET session = NULL WHERE session IS NOT NULL", values![]).await?;
        sql.execute("DELETE FROM outbox WHERE sign_in_id IS NOT NULL", values![]).await?;
        sql.execute("DELETE FROM sign_ins", values![]).await?;
        sql.execute("DELETE FROM operator_sessions", values![]).await?;
        sql.execute("UPDATE operators SET link_hash = NULL WHERE link_hash IS NOT NULL", values![]).await?;
        sql.execute("UPDATE outbox SET leased_until = 0, leased_by = NULL WHERE leased_until <> 0", values![]).await?;
        sql.execute(
            "UPDATE webhook_deliveries SET leased_until = 0, leased_by = NULL WHERE leased_until <> 0",
            values![],
        )
        .await?;
        // Positions that partners have seen since may be given again, so all events get new ones, and no cursor of before is taken.
        sql.execute("UPDATE partner_events SET position = NULL WHERE position IS NOT NULL", values![]).await?;
        let anew = "UPDATE partners SET events_numbered = events_numbered + $1, events_deleted = events_numbered + $1";
        sql.execute(anew, values![self.id_gap()]).await?;
        // Nobody is mailed twice about a campaign: how far a mailing has come since is not known.
        sql.execute("DELETE FROM outbox WHERE campaign_mail_id IS NOT NULL", values![]).await?;
        let stop = "UPDATE campaign_mailings SET finished_at = $1 WHERE finished_at IS NULL";
        sql.execute(stop, values![self.act.at]).await?;
        // Mail that waited may have gone since, held or not: nothing goes by itself when a suspension is lifted.
        sql.execute("UPDATE outbox SET held_suspended = FALSE WHERE held_suspended", values![]).await?;
        let hold = "UPDATE outbox SET held_at = $1 WHERE held_at IS NULL AND given_up_at IS NULL";
        sql.execute(hold, values![self.act.at]).await?;
        let held = "SELECT count(*) FROM outbox WHERE held_at IS NOT NULL AND given_up_at IS NULL";
        let held: i64 = expected(sql.row(held, values![], |row| row.get(0)).await?)?;
        audit::append(sql, &self.act, &self.act.about).await?;
        Ok(held.unsigned_abs())
    }
}
