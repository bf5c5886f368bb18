//! Tombstones of an address after a rotation of the secret: they get the marks of the newest generation when the address comes
//! again, so that everything else knows one mark only.

use crate::domain::email::EmailAddress;
use crate::domain::secret::mark::{AddressMarker, AddressMarks, tombstone, tombstones_of};
use crate::domain::time::Timestamp;
use crate::membership::sign_up::no_sooner;
use crate::store::sql::{Failure, How, Sql, Unit, values};
use crate::store::{Store, StoreError};

/// How many people one mailbox's tombstone is changed for in one commit. More spellings of one mailbox are changed by the next requests.
const REMARKED_AT_ONCE: u32 = 200;

/// Brings the tombstones of an address up to date. Asks nothing unless the secret was rotated.
pub async fn remark(store: &Store, marker: &AddressMarker, email: &EmailAddress) -> Result<(), StoreError> {
    for older in marker.other_marks(email) {
        if store.run(AreThereTombstones(older.clone())).await? {
            store.unaudited().run(Remark { older, newest: marker.marks(email) }).await?;
        }
    }
    Ok(())
}

struct AreThereTombstones(AddressMarks);

impl Unit for AreThereTombstones {
    type Done = bool;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let find = "SELECT EXISTS (SELECT 1 FROM people WHERE email_normalized = $1)
                        OR EXISTS (SELECT 1 FROM people WHERE mailbox = $2 AND mailbox <> email_normalized)
                        OR EXISTS (SELECT 1 FROM mailboxes WHERE mailbox = $2)";
        let (address, mailbox) = (tombstone(&self.0.address), tombstone(&self.0.mailbox));
        Ok(sql.value(find, values![&address, &mailbox]).await? == Some(true))
    }
}

struct Remark {
    older: AddressMarks,
    newest: AddressMarks,
}

impl Unit for Remark {
    type Done = ();
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let (address, newest) = (tombstone(&self.older.address), tombstone(&self.newest.address));
        let of_address = "UPDATE people SET email_normalized = $2 WHERE email_normalized = $1";
        sql.execute(of_address, values![&address, &newest]).await?;
        let (mailbox, newest) = (tombstone(&self.older.mailbox), tombstone(&self.newest.mailbox));
        let of_mailbox = "UPDATE people SET mailbox = $2 WHERE id IN
                              (SELECT id FROM people WHERE mailbox = $1 AND mailbox <> email_normalized LIMIT $3)";
        sql.execute(of_mailbox, values![&mailbox, &newest, REMARKED_AT_ONCE]).await?;
        let end = "DELETE FROM mailboxes WHERE mailbox = $1 RETURNING suppressed_until";
        let until: Option<Option<Timestamp>> = sql.row(end, values![&mailbox], |row| row.get(0)).await?;
        let Some(until) = until.flatten() else { return Ok(()) };
        let keep = concat!("INSERT INTO mailboxes (mailbox, suppressed_until) VALUES ($1, $2) ", no_sooner!());
        sql.execute(keep, values![&newest, until]).await.map(|_| ())
    }
}

/// Whether somebody who was erased can only be recognized by that generation of the secret.
pub struct AreThereTombstonesOf(pub u32);

impl Unit for AreThereTombstonesOf {
    type Done = bool;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let (begin, end) = tombstones_of(self.0);
        let find = "SELECT EXISTS (SELECT 1 FROM people WHERE email_normalized >= $1 AND email_normalized < $2)
                        OR EXISTS (SELECT 1 FROM mailboxes WHERE mailbox >= $1 AND mailbox < $2)";
        Ok(sql.value(find, values![&begin, &end]).await? == Some(true))
    }
}
