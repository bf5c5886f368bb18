//! The partners' inboxes, which only the sandbox's records have.

use crate::domain::mail::inbox::{ArrivingMail, INBOX_HOLDS, InboxMail};
use crate::domain::partner::name::PartnerId;
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// The columns of a mail, as [`mail`] reads them.
macro_rules! columns {
    () => {
        "id, recipient, sender, subject, text, html, received_at"
    };
}

/// Delivers a mail once; the oldest in a full inbox are deleted.
pub struct PutInInbox(pub ArrivingMail, pub Timestamp);

impl Unit for PutInInbox {
    type Done = ();
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let Self(arriving, now) = self;
        let ArrivingMail { partner, name, to, from, subject, text, html } = arriving;
        let put = "INSERT INTO inbox (partner_id, message_id, recipient, sender, subject, text, html, received_at)
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (message_id) DO NOTHING";
        sql.execute(put, values![*partner, name, to, from, subject, text, html, *now]).await?;
        let make_room = "DELETE FROM inbox WHERE coalesce(partner_id, 0) = coalesce(CAST($1 AS BIGINT), 0) AND id <=
                             (SELECT id FROM inbox WHERE coalesce(partner_id, 0) = coalesce(CAST($1 AS BIGINT), 0)
                              ORDER BY id DESC LIMIT 1 OFFSET $2)";
        sql.execute(make_room, values![*partner, INBOX_HOLDS]).await.map(|_| ())
    }
}

/// A partner's mails older than that id, newest first.
pub struct ListInbox {
    pub partner: PartnerId,
    pub before: Option<i64>,
    pub most: u32,
}

impl Unit for ListInbox {
    type Done = Vec<InboxMail>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<InboxMail>, Failure> {
        let list = concat!(
            "SELECT ",
            columns!(),
            " FROM inbox WHERE coalesce(partner_id, 0) = $1 AND id < $2
             ORDER BY id DESC LIMIT $3"
        );
        sql.rows(list, values![self.partner, self.before.unwrap_or(i64::MAX), self.most], mail).await
    }
}

/// One mail.
pub struct FindInInbox(pub PartnerId, pub i64);

impl Unit for FindInInbox {
    type Done = Option<InboxMail>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self(partner, id) = self;
        let find = concat!("SELECT ", columns!(), " FROM inbox WHERE partner_id = $1 AND id = $2");
        sql.row(find, values![*partner, *id], mail).await
    }
}

/// Partners with an inbox: those that are not suspended and have a working key.
pub struct ListInboxPartners(pub Timestamp);

impl Unit for ListInboxPartners {
    type Done = Vec<(PartnerId, String)>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let partner = |row: &Row<'_>| Ok((row.get("id")?, row.get("name")?));
        let keyed = "SELECT id, name FROM partners p WHERE p.suspended_at IS NULL AND EXISTS
                         (SELECT 1 FROM api_keys k WHERE k.partner_id = p.id AND k.revoked_at IS NULL
                          AND (k.expires_at IS NULL OR k.expires_at > $1)) ORDER BY name";
        sql.rows(keyed, values![self.0], partner).await
    }
}

fn mail(row: &Row<'_>) -> Result<InboxMail, Failure> {
    Ok(InboxMail {
        id: row.get("id")?,
        to: row.get("recipient")?,
        from: row.get("sender")?,
        subject: row.get("subject")?,
        text: row.get("text")?,
        html: row.get("html")?,
        received_at: row.get("received_at")?,
    })
}
