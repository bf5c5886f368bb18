//! Checks whether writes work right now.

use crate::store::sql::{Failure, How, Sql, Unit, values};

/// A write that says nothing new and takes the same path as every other.
pub(crate) const CHECK: Check =
    Check { take_room: &[], change: "UPDATE readiness SET checked_at = checked_at + 1 WHERE id = 1" };

/// Takes the same path as every write, and can ask the disk for the space that a sign-up needs.
pub(crate) struct Check {
    /// Statements that take that space and leave no row, run in order.
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
            _ => Err(Failure::Unusable("the tables are empty".to_owned())),
        }
    }
}
