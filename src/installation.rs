//! What the whole installation shares: whether it takes sign-ups, which secret it belongs to, when it was backed up, and what the service
//! says of itself.

use crate::domain::operator::same_person;
use crate::domain::secret::Secret;
use crate::domain::time::Timestamp;
use crate::domain::union::service::ServiceFacts;
use crate::store::sql::{Failure, How, Row, Sql, Unit, expected, values};

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

/// What a node knows of the secret: the number and fingerprint of each generation, also of those that were retired.
#[derive(Clone, Default)]
pub struct HeldSecret {
    pub first: String,
    pub fingerprints: Vec<(u32, String)>,
}

/// Ties the records to the installation's secret on the first call; later calls say whether it is the same.
pub struct ClaimSecret(pub HeldSecret);

impl Unit for ClaimSecret {
    type Done = Claim;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Claim, Failure> {
        let claim = "UPDATE installation SET secret_fingerprint = $1 WHERE secret_fingerprint IS NULL";
        if sql.execute(claim, values![&self.0.first]).await? == 1 {
            return Ok(Claim::First);
        }
        compare(sql, &self.0).await
    }
}

/// The same without tying anything.
pub struct CompareSecret(pub HeldSecret);

impl Unit for CompareSecret {
    type Done = Claim;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Claim, Failure> {
        let is_free = "SELECT secret_fingerprint IS NULL FROM installation WHERE id = 1";
        match expected(sql.value(is_free, values![]).await?)? {
            true => Ok(Claim::First),
            false => compare(sql, &self.0).await,
        }
    }
}

async fn compare(sql: &mut dyn Sql, held: &HeldSecret) -> Result<Claim, Failure> {
    let first: String =
        expected(sql.value("SELECT secret_fingerprint FROM installation WHERE id = 1", values![]).await?)?;
    if !held.fingerprints.iter().any(|(_, fingerprint)| *fingerprint == first) {
        return Ok(Claim::Another);
    }
    for generation in generations(sql).await? {
        match held.fingerprints.iter().find(|(number, _)| *number == generation.number) {
            Some((_, fingerprint)) if *fingerprint == generation.fingerprint => {}
            Some(_) => return Ok(Claim::Another),
            None => return Ok(Claim::Lacks(generation)),
        }
    }
    Ok(Claim::Same)
}

/// A generation of the secret that a rotation made, as the records know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownGeneration {
    pub number: u32,
    pub fingerprint: String,
    pub begins_at: Timestamp,
    pub leaked: bool,
    /// Whether it began, and everything that the rotation sets off was done.
    pub is_done: bool,
}

/// The time by which generations are judged: one that began stays begun where a clock goes wrong.
pub fn time_of_generations(known: &[KnownGeneration], now: Timestamp) -> Timestamp {
    let begun = known.iter().filter(|generation| generation.is_done).map(|generation| generation.begins_at);
    begun.fold(now, Timestamp::max)
}

/// Every generation after the first, the oldest first.
pub struct ListGenerations;

impl Unit for ListGenerations {
    type Done = Vec<KnownGeneration>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        generations(sql).await
    }
}

async fn generations(sql: &mut dyn Sql) -> Result<Vec<KnownGeneration>, Failure> {
    let list = "SELECT number, fingerprint, begins_at, after_leak, done FROM secret_generations ORDER BY number";
    let read = |row: &Row<'_>| {
        Ok(KnownGeneration {
            number: row.get("number")?,
            fingerprint: row.get("fingerprint")?,
            begins_at: row.get("begins_at")?,
            leaked: row.get("after_leak")?,
            is_done: row.get("done")?,
        })
    };
    sql.rows(list, values![], read).await
}

impl HeldSecret {
    /// Of the sandbox's own secret.
    pub fn of_sandbox(secret: &Secret) -> Self {
        Self::only(secret.generations().current().fingerprint())
    }

    /// Of a secret that is never rotated.
    pub fn only(fingerprint: String) -> Self {
        Self { fingerprints: vec![(1, fingerprint.clone())], first: fingerprint }
    }
}

/// Lets every node know that there is another generation, or that all that it sets off was done. False if another one has its number.
pub struct AddGeneration(pub KnownGeneration);

impl Unit for AddGeneration {
    type Done = bool;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let KnownGeneration { number, fingerprint, begins_at, leaked, is_done } = &self.0;
        let add = "INSERT INTO secret_generations (number, fingerprint, begins_at, after_leak, done) VALUES ($1, $2, $3, $4, $5)
                   ON CONFLICT (number) DO UPDATE SET done = excluded.done OR secret_generations.done
                       WHERE secret_generations.fingerprint = excluded.fingerprint";
        Ok(sql.execute(add, values![*number, fingerprint, *begins_at, *leaked, *is_done]).await? == 1)
    }
}

/// Keeps what a start of the service says of itself, and whether one person makes a batch or an offer and another releases it. Returns what
/// was kept before; none at the first start.
pub struct KeepServiceFacts {
    pub facts: ServiceFacts,
    pub two_people: bool,
}

impl Unit for KeepServiceFacts {
    type Done = Option<ServiceFacts>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        // Of two nodes that start at once, the later finds what the earlier says.
        sql.lock("service facts").await?;
        let before = service_facts(sql).await?;
        if before.as_ref() != Some(&self.facts) {
            let ServiceFacts { name, base_url, join_site, contact_email } = &self.facts;
            let keep = "UPDATE installation SET union_name = $1, base_url = $2, join_site = $3, contact_email = $4 WHERE id = 1";
            sql.execute(keep, values![name, base_url, join_site, contact_email.as_deref()]).await?;
        }
        let two_people = "UPDATE installation SET two_people = $1 WHERE two_people <> $1";
        sql.execute(two_people, values![self.two_people]).await?;
        Ok(before)
    }
}

/// What the last start of the service said of itself; none if there was none.
pub struct FindServiceFacts;

impl Unit for FindServiceFacts {
    type Done = Option<ServiceFacts>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        service_facts(sql).await
    }
}

async fn service_facts(sql: &mut dyn Sql) -> Result<Option<ServiceFacts>, Failure> {
    let find = "SELECT union_name, base_url, join_site, contact_email FROM installation
                WHERE id = 1 AND union_name IS NOT NULL AND base_url IS NOT NULL AND join_site IS NOT NULL";
    let read = |row: &Row<'_>| {
        Ok(ServiceFacts {
            name: row.get("union_name")?,
            base_url: row.get("base_url")?,
            join_site: row.get("join_site")?,
            contact_email: row.get("contact_email")?,
        })
    };
    sql.row(find, values![], read).await
}

/// Whether somebody else than who made a batch has to write its file for the first time. The statement gives who made it while no file was
/// begun.
pub(crate) struct NeedsAnother {
    pub maker: &'static str,
    pub batch: i64,
    pub who: String,
}

impl Unit for NeedsAnother {
    type Done = bool;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let maker = sql.value::<String>(self.maker, values![self.batch]).await?;
        Ok(maker.is_some_and(|maker| same_person(&maker, &self.who)) && is_two_people(sql).await?)
    }
}

/// Whether one person makes a batch or an offer and another releases it.
pub(crate) async fn is_two_people(sql: &mut dyn Sql) -> Result<bool, Failure> {
    expected(sql.value("SELECT two_people FROM installation WHERE id = 1", values![]).await?)
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// To none until now.
    First,
    /// To this one.
    Same,
    Another,
    /// To this one, which was rotated since.
    Lacks(KnownGeneration),
}
