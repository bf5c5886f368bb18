//! The calendar of a demonstration, as its records keep it. Live records have none, and nothing gives them one.

use std::convert::Infallible;
use std::time::Duration;

use crate::clock;
use crate::domain::time::DAY;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};
use crate::store::{Store, StoreReply};

/// How far ahead a calendar may be asked to be at once, and in all.
const MOST_AT_ONCE: Duration = DAY.saturating_mul(366);
const MOST: Duration = DAY.saturating_mul(3660);

/// How often a process that runs beside it looks at its calendar.
const FOLLOWS_EVERY: Duration = Duration::from_millis(500);

/// How far a demonstration's calendar is ahead, and how far it is asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemonstrationTime {
    pub ahead: Duration,
    pub until: Duration,
}

impl DemonstrationTime {
    pub fn is_passing(&self) -> bool {
        self.ahead < self.until
    }
}

/// The calendar of the records, as pages see it.
pub struct DemonstrationCalendar(Store);

impl DemonstrationCalendar {
    pub fn new(store: Store) -> Self {
        Self(store)
    }

    /// See [`AskForTime`].
    pub fn ask_for(&self, by: Duration) -> StoreReply<'_, Option<DemonstrationTime>> {
        self.0.run(AskForTime(by))
    }

    pub fn find(&self) -> StoreReply<'_, Option<DemonstrationTime>> {
        self.0.run(FindDemonstration)
    }
}

/// Makes records a demonstration's. False if the service ever started on them, or if they are one already.
pub struct MarkDemonstration;

impl Unit for MarkDemonstration {
    type Done = bool;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let mark = "UPDATE installation SET demonstration_ahead = 0, demonstration_until = 0
                    WHERE demonstration_ahead IS NULL AND secret_fingerprint IS NULL";
        Ok(sql.execute(mark, values![]).await? == 1)
    }
}

/// None if the records are no demonstration's.
pub struct FindDemonstration;

impl Unit for FindDemonstration {
    type Done = Option<DemonstrationTime>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let find = "SELECT demonstration_ahead AS ahead, demonstration_until AS until FROM installation
                    WHERE demonstration_ahead IS NOT NULL AND demonstration_until IS NOT NULL";
        sql.row(find, values![], time).await
    }
}

/// Asks for that much more time. What is asked for passes where the demonstration runs. None if the records are no demonstration's.
pub struct AskForTime(pub Duration);

impl Unit for AskForTime {
    type Done = Option<DemonstrationTime>;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let ask = "UPDATE installation SET demonstration_until = CASE
                       WHEN demonstration_until + $1 > $3 THEN $3
                       WHEN demonstration_until + $1 > demonstration_ahead + $2 THEN demonstration_ahead + $2
                       ELSE demonstration_until + $1 END
                   WHERE demonstration_ahead IS NOT NULL AND demonstration_until IS NOT NULL
                   RETURNING demonstration_ahead AS ahead, demonstration_until AS until";
        sql.row(ask, values![millis(self.0), millis(MOST_AT_ONCE), millis(MOST)], time).await
    }
}

/// Notes how far the calendar is ahead from now on. It never goes back.
pub struct NoteTime(pub Duration);

impl Unit for NoteTime {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let note = "UPDATE installation SET demonstration_ahead = $1 WHERE demonstration_ahead < $1";
        sql.execute(note, values![millis(self.0)]).await.map(|_| ())
    }
}

/// Keeps this process on the calendar of a demonstration that another one serves, for as long as it runs.
pub async fn follow(store: Store) -> Infallible {
    loop {
        // A store that is away for a moment is asked again.
        if let Ok(Some(time)) = store.run(FindDemonstration).await {
            clock::move_ahead(time.ahead);
        }
        tokio::time::sleep(FOLLOWS_EVERY).await;
    }
}

fn time(row: &Row<'_>) -> Result<DemonstrationTime, Failure> {
    let span = |millis: i64| Duration::from_millis(millis.unsigned_abs());
    Ok(DemonstrationTime { ahead: span(row.get("ahead")?), until: span(row.get("until")?) })
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
