//! The second factor of an operator's sign-in: the code that is asked for, and how one is set up, replaced and turned off.

use super::AuditedOperator;
use super::access::{OperatorAccess, SignedInOperator, new_token};
use super::accounts::{ChangedOperator, forget_old, note_sign_in};
use crate::domain::mail::budget::day_of;
use crate::domain::operator::second_factor::{
    FactorSecret, RECOVERY_CODE, RECOVERY_CODES, RecoveryCode, SECRET, TRIES, WRONG_CODES_A_DAY,
};
use crate::domain::operator::{OPERATOR_SESSION_FOR, OperatorName};
use crate::domain::secret::operator::token_hash;
use crate::domain::time::Timestamp;
use crate::random;
use crate::store::StoreError;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// What a typed code may do next.
pub enum TypedCode {
    /// Of the factor that was set up at that time.
    Right(Timestamp),
    /// Neither the app's nor a recovery code, or one that was used.
    Wrong,
    /// This sign-in has had its tries.
    SignInEnded,
    /// The app's codes have had theirs for today.
    OnlyRecovery,
    /// No kept generation of the installation's secret reads the factor.
    Unreadable,
}

/// What a code proves.
enum Proof {
    /// The app's, of that time step. The secret is sealed anew, with the newest generation.
    Step(i64, String),
    Recovery(RecoveryCode),
}

impl OperatorAccess {
    /// A factor to be set up, sealed for the form that sends it back with a first code.
    pub fn new_factor(
        &self,
        who: &SignedInOperator,
        now: Timestamp,
    ) -> Result<Option<(FactorSecret, String)>, StoreError> {
        let factor = FactorSecret::from_random(random::bytes::<SECRET>()?);
        Ok(factor.map(|factor| {
            let sealed = self.factors.seal(&format!("{} {}", who.name, factor.shown()), now);
            (factor, sealed)
        }))
    }

    /// The factor of such a form, if it is theirs and no older than a sign-in link.
    pub fn factor_of_form(&self, who: &SignedInOperator, sealed: &str, now: Timestamp) -> Option<FactorSecret> {
        let opened = self.factors.open(sealed, now, crate::domain::operator::LINK_FOR)?;
        let (name, secret) = opened.split_once(' ')?;
        (name == who.name.as_str()).then(|| FactorSecret::read(secret))?
    }

    /// Compares a code that somebody typed, once: a right one cannot be used again.
    pub async fn check_code(
        &self,
        who: &SignedInOperator,
        typed: &str,
        now: Timestamp,
    ) -> Result<TypedCode, StoreError> {
        let Some(session) = who.session_hash() else { return Ok(TypedCode::SignInEnded) };
        let recovery = RecoveryCode::from_typed(typed);
        let tried = TryFactor { session_hash: session.clone(), is_recovery: recovery.is_some(), now };
        let Some(TriedFactor { sealed: kept, since, may }) = self.operator.run_unaudited(tried).await? else {
            return Ok(TypedCode::SignInEnded);
        };
        let proof = match recovery {
            Some(code) => Proof::Recovery(code),
            None if !may => return Ok(TypedCode::OnlyRecovery),
            None => {
                let opened = self.factors.open(&kept, now, std::time::Duration::MAX);
                let Some(factor) = opened.as_deref().and_then(FactorSecret::read) else {
                    return Ok(TypedCode::Unreadable);
                };
                let Some(step) = factor.step_of(typed, now) else { return Ok(TypedCode::Wrong) };
                Proof::Step(step, self.factors.seal(&factor.shown(), now))
            }
        };
        let proves = UseCode { session_hash: session, proof, since, now };
        Ok(if self.operator.run_unaudited(proves).await? { TypedCode::Right(since) } else { TypedCode::Wrong })
    }

    /// Signs somebody in whose code was right. Returns the cookie of their session, which is another than the one that waited.
    pub async fn pass(&self, who: &SignedInOperator, now: Timestamp) -> Result<Option<String>, StoreError> {
        let (Some(waiting), session) = (who.session_hash(), new_token()?) else { return Ok(None) };
        let pass = PassFactor { waiting, session_hash: token_hash(&session), now };
        let act = who.act("page sign-in", String::new(), now);
        Ok(self.operator.audited(act).run(pass).await?.then(|| self.cookie(&session)))
    }

    /// Asks for this factor from now on, in place of the one that was proved. Other browsers are signed out. Returns the recovery codes, which
    /// are shown this once; none if the first code is wrong.
    pub async fn set_up(
        &self,
        who: &SignedInOperator,
        proved: Option<Timestamp>,
        (factor, first_code): (&FactorSecret, &str),
        now: Timestamp,
    ) -> Result<Option<Vec<RecoveryCode>>, StoreError> {
        let (Some(session_hash), Some(step)) = (who.session_hash(), factor.step_of(first_code, now)) else {
            return Ok(None);
        };
        let codes = recovery_codes()?;
        let set = SetFactor {
            session_hash,
            proved,
            factor: Some((self.factors.seal(&factor.shown(), now), step)),
            recovery: codes.iter().map(RecoveryCode::hash).collect(),
            now,
        };
        let about = if proved.is_some() { "replaced" } else { "set up" };
        let act = who.act("operator second-factor", about.to_owned(), now);
        Ok(self.operator.audited(act).run(set).await?.then_some(codes))
    }

    pub async fn turn_off(
        &self,
        who: &SignedInOperator,
        proved: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let Some(session_hash) = who.session_hash() else { return Ok(false) };
        let act = who.act("operator second-factor", "turned off".to_owned(), now);
        let off = SetFactor { session_hash, proved: Some(proved), factor: None, recovery: Vec::new(), now };
        self.operator.audited(act).run(off).await
    }

    /// New recovery codes in place of all that are left.
    pub async fn renew_recovery_codes(
        &self,
        who: &SignedInOperator,
        proved: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Vec<RecoveryCode>>, StoreError> {
        let Some(session_hash) = who.session_hash() else { return Ok(None) };
        let codes = recovery_codes()?;
        let act = who.act("operator second-factor", "new recovery codes".to_owned(), now);
        let renew = RenewCodes { session_hash, proved, recovery: codes.iter().map(RecoveryCode::hash).collect(), now };
        Ok(self.operator.audited(act).run(renew).await?.then_some(codes))
    }
}

fn recovery_codes() -> Result<Vec<RecoveryCode>, StoreError> {
    let code = |_| Ok(RecoveryCode::from_random(&random::bytes::<RECOVERY_CODE>()?));
    (0..RECOVERY_CODES).map(code).collect()
}

impl AuditedOperator {
    /// Forgets the second factor of somebody who lost it, and signs them out everywhere.
    pub async fn reset_second_factor(&self, name: &OperatorName) -> Result<ChangedOperator, StoreError> {
        self.run(ResetFactor(name.clone())).await
    }
}

/// A code is about to be compared. Counts the try, which is taken for wrong until it proves right. None if the session has had its tries or
/// its operator has no factor.
struct TryFactor {
    session_hash: String,
    is_recovery: bool,
    now: Timestamp,
}

struct TriedFactor {
    sealed: String,
    since: Timestamp,
    /// Whether the app's codes may still be tried today.
    may: bool,
}

impl Unit for TryFactor {
    type Done = Option<TriedFactor>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self { session_hash, is_recovery, now } = self;
        let count = "UPDATE operator_sessions SET tries = tries + 1
                     WHERE hash = $1 AND expires_at > $2 AND tries < $3 RETURNING operator_id";
        let Some(id) = sql.value::<i64>(count, values![session_hash, *now, TRIES]).await? else { return Ok(None) };
        let kept = "SELECT factor, factor_since, wrong_codes_day < $2 OR wrong_codes < $3 AS may FROM operators
                    WHERE id = $1 AND factor IS NOT NULL AND factor_since IS NOT NULL FOR UPDATE";
        let today = day_of(*now);
        let read = |row: &Row<'_>| {
            Ok(TriedFactor { sealed: row.get("factor")?, since: row.get("factor_since")?, may: row.get("may")? })
        };
        let Some(tried) = sql.row(kept, values![id, today, WRONG_CODES_A_DAY], read).await? else { return Ok(None) };
        if tried.may && !is_recovery {
            let wrong =
                "UPDATE operators SET wrong_codes = CASE WHEN wrong_codes_day < $2 THEN 0 ELSE wrong_codes END + 1,
                     wrong_codes_day = CASE WHEN wrong_codes_day < $2 THEN $2 ELSE wrong_codes_day END WHERE id = $1";
            sql.execute(wrong, values![id, today]).await?;
        }
        Ok(Some(tried))
    }
}

/// Uses a code up; false if it was used before.
struct UseCode {
    session_hash: String,
    proof: Proof,
    /// Of the factor that it is compared with.
    since: Timestamp,
    now: Timestamp,
}

impl Unit for UseCode {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let find = "SELECT operator_id FROM operator_sessions WHERE hash = $1 AND expires_at > $2 FOR UPDATE";
        let Some(id) = sql.value::<i64>(find, values![&self.session_hash, self.now]).await? else { return Ok(false) };
        if !has_factor_of(sql, id, Some(self.since)).await? {
            return Ok(false);
        }
        let is_used = match &self.proof {
            Proof::Step(step, sealed) => {
                let once = "UPDATE operators SET factor_step = $2, factor = $3, wrong_codes = wrong_codes - 1
                            WHERE id = $1 AND factor_step < $2";
                sql.execute(once, values![id, *step, sealed]).await? == 1
            }
            Proof::Recovery(code) => {
                let once = "DELETE FROM operator_recovery_codes WHERE operator_id = $1 AND hash = $2";
                sql.execute(once, values![id, &code.hash()]).await? == 1
            }
        };
        if is_used {
            sql.execute("UPDATE operator_sessions SET tries = 0 WHERE hash = $1", values![&self.session_hash]).await?;
        }
        Ok(is_used)
    }
}

/// Whether an operator's factor is the one that was set up at that time, or there is none.
async fn has_factor_of(sql: &mut dyn Sql, operator: i64, since: Option<Timestamp>) -> Result<bool, Failure> {
    let kept = "SELECT factor_since FROM operators WHERE id = $1 FOR UPDATE";
    Ok(sql.value::<Option<Timestamp>>(kept, values![operator]).await? == Some(since))
}

/// A session that waited becomes one that is signed in, under another name.
struct PassFactor {
    waiting: String,
    session_hash: String,
    now: Timestamp,
}

impl Unit for PassFactor {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let pass = "UPDATE operator_sessions SET hash = $2, expires_at = $4, waits_for_code = FALSE
                    WHERE hash = $1 AND waits_for_code AND expires_at > $3 RETURNING operator_id";
        let values = values![&self.waiting, &self.session_hash, self.now, self.now.plus(OPERATOR_SESSION_FOR)];
        let Some(id) = sql.value::<i64>(pass, values).await? else { return Ok(false) };
        note_sign_in(sql, id, self.now).await?;
        forget_old(sql, id, self.now).await?;
        Ok(true)
    }
}

/// Sets a factor, or turns it off, by somebody who is signed in. Their other browsers are signed out.
struct SetFactor {
    session_hash: String,
    /// When the factor was set up that a code proved; none where there is none.
    proved: Option<Timestamp>,
    /// Sealed, and the step of its first code.
    factor: Option<(String, i64)>,
    recovery: Vec<String>,
    now: Timestamp,
}

impl Unit for SetFactor {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Some(id) = signed_in(sql, &self.session_hash, self.now).await? else { return Ok(false) };
        if !has_factor_of(sql, id, self.proved).await? {
            return Ok(false);
        }
        let (sealed, step) = self.factor.as_ref().map_or((None, 0), |(sealed, step)| (Some(sealed), *step));
        let since = sealed.map(|_| self.now);
        // No code that was used works again, also where the same app is set up again.
        let set = "UPDATE operators SET factor = $2, factor_since = $4,
                       factor_step = CASE WHEN factor_step < $3 THEN $3 ELSE factor_step END WHERE id = $1";
        sql.execute(set, values![id, sealed, step, since]).await?;
        let others = "DELETE FROM operator_sessions WHERE operator_id = $1 AND hash <> $2";
        sql.execute(others, values![id, &self.session_hash]).await?;
        replace_codes(sql, id, &self.recovery).await?;
        Ok(true)
    }
}

struct RenewCodes {
    session_hash: String,
    proved: Timestamp,
    recovery: Vec<String>,
    now: Timestamp,
}

impl Unit for RenewCodes {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Some(id) = signed_in(sql, &self.session_hash, self.now).await? else { return Ok(false) };
        if !has_factor_of(sql, id, Some(self.proved)).await? {
            return Ok(false);
        }
        replace_codes(sql, id, &self.recovery).await?;
        Ok(true)
    }
}

/// Whose session it is, unless it waits for a code.
async fn signed_in(sql: &mut dyn Sql, session_hash: &str, now: Timestamp) -> Result<Option<i64>, Failure> {
    let find = "SELECT operator_id FROM operator_sessions WHERE hash = $1 AND expires_at > $2 AND NOT waits_for_code FOR UPDATE";
    sql.value(find, values![session_hash, now]).await
}

async fn replace_codes(sql: &mut dyn Sql, operator: i64, hashes: &[String]) -> Result<(), Failure> {
    sql.execute("DELETE FROM operator_recovery_codes WHERE operator_id = $1", values![operator]).await?;
    for hash in hashes {
        let add = "INSERT INTO operator_recovery_codes (operator_id, hash) VALUES ($1, $2)";
        sql.execute(add, values![operator, hash]).await?;
    }
    Ok(())
}

/// What an operator has of the second factor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FactorState {
    pub since: Timestamp,
    pub codes_left: u32,
}

/// None while there is no second factor.
pub struct FindFactorState(pub OperatorName);

impl Unit for FindFactorState {
    type Done = Option<FactorState>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let find = "SELECT factor_since, (SELECT count(*) FROM operator_recovery_codes c WHERE c.operator_id = operators.id) AS codes
                    FROM operators WHERE name = $1 AND factor_since IS NOT NULL";
        let read = |row: &Row<'_>| Ok(FactorState { since: row.get("factor_since")?, codes_left: row.get("codes")? });
        sql.row(find, values![self.0.as_str()], read).await
    }
}

struct ResetFactor(OperatorName);

impl Unit for ResetFactor {
    type Done = ChangedOperator;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<ChangedOperator, Failure> {
        let reset = "UPDATE operators SET factor = NULL, factor_since = NULL, factor_step = 0, wrong_codes = 0
                     WHERE name = $1 RETURNING id";
        let Some(id) = sql.value::<i64>(reset, values![self.0.as_str()]).await? else {
            return Ok(ChangedOperator::Unknown);
        };
        for open in [
            "DELETE FROM operator_sessions WHERE operator_id = $1",
            "DELETE FROM operator_links WHERE operator_id = $1",
        ] {
            sql.execute(open, values![id]).await?;
        }
        replace_codes(sql, id, &[]).await?;
        Ok(ChangedOperator::Done)
    }
}
