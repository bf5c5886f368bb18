//! Whether writes are kept right now.

use crate::store::StoreError;
use crate::store::sql::{Failure, How, Sql, Unit, values};

/// A write that says nothing new, and goes the way of every other.
pub(crate) const CHECK: Check =
    Check { take_room: &[], change: "UPDATE readiness SET checked_at = checked_at + 1 WHERE id = 1" };

/// Goes the way of every write, and may ask the disk for the room that a sign-up needs.
pub(crate) struct Check {
    /// What takes that room and leaves no row, each in turn.
    pub take_room: &'static [&'static str],
    /// Changes the one row.
    pub change: &'static str,
}

impl Unit for Check {
    type Done = ();
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        for statement in self.take_room {
            sql.execute(statement, values![]).await?;
        }
        match sql.execute(self.change, values![]).await? {
            1 => Ok(()),
            _ => Err(Failure::Refused(StoreError::Unavailable("the tables are empty".to_owned()))),
        }
    }
}
