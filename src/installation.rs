//! What the whole installation shares: whether it takes sign-ups, which secret it belongs to, and when it was backed up.

use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Sql, Unit, expected, values};

/// Switches the agent actions off or on for every node. Returns whether that changed anything.
pub struct PauseSignUps(pub bool);

impl Unit for PauseSignUps {
    type Done = bool;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let pause = "UPDATE installation SET signups_paused = $1 WHERE signups_paused <> $1";
        Ok(sql.execute(pause, values![self.0]).await? == 1)
    }
}

pub struct AreSignUpsPaused;

impl Unit for AreSignUpsPaused {
    type Done = bool;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        is_paused(sql).await
    }
}

/// Ties the records to the installation's secret on the first call; later calls say whether it is the same.
pub struct ClaimSecret(pub String);

impl Unit for ClaimSecret {
    type Done = Claim;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Claim, Failure> {
        let claim = "UPDATE installation SET secret_fingerprint = $1 WHERE secret_fingerprint IS NULL";
        if sql.execute(claim, values![&self.0]).await? == 1 {
            return Ok(Claim::First);
        }
        let same = "SELECT secret_fingerprint = $1 FROM installation WHERE id = 1";
        let same = expected(sql.value(same, values![&self.0]).await?)?;
        Ok(if same { Claim::Same } else { Claim::Another })
    }
}

/// The same without tying anything.
pub struct CompareSecret(pub String);

impl Unit for CompareSecret {
    type Done = Claim;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Claim, Failure> {
        let ask = "SELECT secret_fingerprint IS NULL AS is_free, secret_fingerprint = $1 AS is_same FROM installation WHERE id = 1";
        let asked = sql.row(ask, values![&self.0], |row| Ok((row.get("is_free")?, row.get("is_same")?))).await?;
        Ok(match expected(asked)? {
            (true, _) => Claim::First,
            (false, true) => Claim::Same,
            (false, false) => Claim::Another,
        })
    }
}

/// When the latest sign-up, person or key was written, by the writer's clock; none if there is none.
pub struct FindLatestRecord;

impl Unit for FindLatestRecord {
    type Done = Option<Timestamp>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let latest = "
            SELECT max(at) FROM (
                SELECT (SELECT created_at FROM sign_ups ORDER BY id DESC LIMIT 1) AS at
                UNION ALL SELECT (SELECT created_at FROM people ORDER BY id DESC LIMIT 1)
                UNION ALL SELECT (SELECT max(created_at) FROM api_keys)
            ) AS latest";
        expected(sql.value(latest, values![]).await?)
    }
}

/// Records when a backup was made; an older time changes nothing.
pub struct NoteBackup(pub Timestamp);

impl Unit for NoteBackup {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let note = "UPDATE installation SET backed_up_at = $1 WHERE backed_up_at IS NULL OR backed_up_at < $1";
        sql.execute(note, values![self.0]).await.map(|_| ())
    }
}

/// When the last recorded backup was made.
pub struct FindLastBackup;

impl Unit for FindLastBackup {
    type Done = Option<Timestamp>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        expected(sql.value("SELECT backed_up_at FROM installation WHERE id = 1", values![]).await?)
    }
}

/// Whether the operator paused sign-ups.
pub(crate) async fn is_paused(sql: &mut dyn Sql) -> Result<bool, Failure> {
    expected(sql.value("SELECT signups_paused FROM installation WHERE id = 1", values![]).await?)
}

/// Which secret the records belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// To none until now.
    First,
    /// To this one.
    Same,
    Another,
}
