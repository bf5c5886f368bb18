//! Partner records: contact, suspension, mail budget; and the status of the sign-ups that partners named.

use crate::domain::email::EmailAddress;
use crate::domain::partner::idempotency::IdempotencyKey;
use crate::domain::partner::name::PartnerId;
use crate::domain::partner::{NamedSignUp, PartnerRecord};
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// The columns that a partner may know about a sign-up, as [`named_sign_up`] reads them.
macro_rules! status_columns {
    () => {
        "id, key, created_at, closes_at, confirmed_at"
    };
}

pub struct ListPartners;

impl Unit for ListPartners {
    type Done = Vec<PartnerRecord>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let list = "SELECT p.id, p.name, p.contact, p.created_at, p.suspended_at, p.mails_a_day,
                        (SELECT count(*) FROM api_keys k WHERE k.partner_id = p.id) AS keys,
                        (SELECT count(*) FROM webhook_endpoints e WHERE e.partner_id = p.id AND e.removed_at IS NULL) AS endpoints
                    FROM partners p ORDER BY p.name";
        sql.rows(list, values![], partner).await
    }
}

/// Stops all of the partner's keys, mail and webhooks; false if it was already suspended.
pub struct SuspendPartner(pub PartnerId, pub Timestamp);

impl Unit for SuspendPartner {
    type Done = bool;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(partner, now) = self;
        let suspend = "UPDATE partners SET suspended_at = $2 WHERE id = $1 AND suspended_at IS NULL";
        Ok(sql.execute(suspend, values![*partner, *now]).await? == 1)
    }
}

/// Lifts the suspension; false if there was none. The suspended time does not count toward the days that an endpoint failed.
/// `release_suspended` sends the mail that was held meanwhile.
pub struct ResumePartner(pub PartnerId, pub Timestamp);

impl Unit for ResumePartner {
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let Self(partner, now) = self;
        let since = "SELECT suspended_at FROM partners WHERE id = $1 AND suspended_at IS NOT NULL FOR UPDATE";
        let Some(since) = sql.value::<Timestamp>(since, values![*partner]).await? else { return Ok(false) };
        let spared = "UPDATE webhook_endpoints SET failing_since = failing_since + $2 - $3
                      WHERE partner_id = $1 AND failing_since IS NOT NULL";
        sql.execute(spared, values![*partner, *now, since]).await?;
        sql.execute("UPDATE partners SET suspended_at = NULL WHERE id = $1", values![*partner]).await?;
        Ok(true)
    }
}

/// How many mails a day the partner may cause; none for the general rule.
pub struct SetMailsADay(pub PartnerId, pub Option<u32>);

impl Unit for SetMailsADay {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let Self(partner, mails) = self;
        let set = "UPDATE partners SET mails_a_day = $2 WHERE id = $1";
        sql.execute(set, values![*partner, *mails]).await.map(|_| ())
    }
}

fn partner(row: &Row<'_>) -> Result<PartnerRecord, Failure> {
    Ok(PartnerRecord {
        id: row.get("id")?,
        name: row.get("name")?,
        contact: row.get::<Option<&str>>("contact")?.and_then(|text| EmailAddress::kept(text).ok()),
        created_at: row.get("created_at")?,
        suspended_at: row.get("suspended_at")?,
        mails_a_day: row.get("mails_a_day")?,
        keys: row.get("keys")?,
        endpoints: row.get("endpoints")?,
    })
}

/// Sets the contact for mail about a partner; false if there is no such partner.
pub struct SetContact {
    pub name: String,
    pub contact: Option<EmailAddress>,
}

impl Unit for SetContact {
    type Done = bool;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let set = "UPDATE partners SET contact = $2 WHERE name = $1";
        let contact = self.contact.as_ref().map(EmailAddress::as_typed);
        Ok(sql.execute(set, values![&self.name, contact]).await? == 1)
    }
}

/// The partner's sign-up with that key, and its outcome; none if there is no such sign-up.
pub struct FindStatus {
    pub partner: PartnerId,
    pub key: IdempotencyKey,
}

impl Unit for FindStatus {
    type Done = Option<NamedSignUp>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let find = concat!(
            "SELECT ",
            status_columns!(),
            " FROM idempotency_keys WHERE partner_id = $1 AND key = $2 AND closes_at IS NOT NULL"
        );
        sql.row(find, values![self.partner, self.key.as_str()], named_sign_up).await
    }
}

/// The partner's named sign-ups after the id `after`, oldest first, from `since` on.
pub struct ListStatuses {
    pub partner: PartnerId,
    pub after: i64,
    pub since: Timestamp,
    pub most: u32,
}

impl Unit for ListStatuses {
    type Done = Vec<NamedSignUp>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let list = concat!(
            "SELECT ",
            status_columns!(),
            " FROM idempotency_keys WHERE partner_id = $1 AND created_at >= $2 AND (created_at > $3 OR id > $4)
                AND closes_at IS NOT NULL ORDER BY created_at, id LIMIT $5"
        );
        // The list begins where the last request was made, or at the beginning of time.
        let last = "SELECT created_at FROM idempotency_keys WHERE id = $1";
        let last = sql.value(last, values![self.after]).await?.unwrap_or(Timestamp::from_millis(0));
        let values = values![self.partner, self.since.max(last), last, self.after, self.most];
        sql.rows(list, values, named_sign_up).await
    }
}

fn named_sign_up(row: &Row<'_>) -> Result<NamedSignUp, Failure> {
    Ok(NamedSignUp {
        id: row.get("id")?,
        key: row.parsed("key", |text| IdempotencyKey::parse(text).ok())?,
        created_at: row.get("created_at")?,
        closes_at: row.get("closes_at")?,
        confirmed_at: row.get("confirmed_at")?,
    })
}
