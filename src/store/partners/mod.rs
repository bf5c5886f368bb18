//! Partners, as SQL: their records, and what they may know of the sign-ups that they gave names to.

pub mod changes;
mod deliveries;
pub mod events;
pub(in crate::store) mod idempotency;
pub mod webhooks;

use super::outbox::hold;
use super::sql::{Failure, Row, Sql, Unit, expected, values};
use crate::domain::email::EmailAddress;
use crate::domain::mail::MailId;
use crate::domain::partner::idempotency::IdempotencyKey;
use crate::domain::partner::name::PartnerId;
use crate::domain::partner::{NamedSignUp, PartnerRecord};
use crate::domain::time::Timestamp;

/// What a partner may know of a sign-up, as [`named_sign_up`] reads it.
macro_rules! status_columns {
    () => {
        "id, key, created_at, closes_at, confirmed_at"
    };
}

area! {
    /// Partners, and the requests that they gave names to.
    PartnerStore {
        /// All partners, by name.
        read list_partners() -> Vec<PartnerRecord> {
            |sql| {
                let list = "SELECT p.id, p.name, p.contact, p.created_at, p.suspended_at, p.mails_a_day,
                                (SELECT count(*) FROM api_keys k WHERE k.partner_id = p.id) AS keys,
                                (SELECT count(*) FROM webhook_endpoints e WHERE e.partner_id = p.id AND e.removed_at IS NULL) AS endpoints
                            FROM partners p ORDER BY p.name";
                sql.rows(list, values![], partner).await
            }
        };

        /// Whom to write to about a partner from now on; false if there is no such partner.
        write set_contact(name: &str, contact: Option<EmailAddress>) -> bool = SetContact { name: name.to_owned(), contact };

        /// From now on no key of the partner works, and nothing of its mail and webhooks goes; false if it was suspended before.
        write suspend_partner(partner: PartnerId, now: Timestamp) -> bool {
            |sql| {
                let suspend = "UPDATE partners SET suspended_at = $2 WHERE id = $1 AND suspended_at IS NULL";
                Ok(sql.execute(suspend, values![*partner, *now]).await? == 1)
            }
        };

        /// Lifts the suspension; false if there was none. The time of it does not count among the days that an endpoint failed.
        /// Mail that was held for it goes with `release_suspended`.
        transact resume_partner(partner: PartnerId, now: Timestamp) -> bool {
            |sql| {
                let since = "SELECT suspended_at FROM partners WHERE id = $1 AND suspended_at IS NOT NULL FOR UPDATE";
                let since: Option<Timestamp> = sql.row(since, values![*partner], |row| row.get(0)).await?;
                let Some(since) = since else { return Ok(false) };
                let spared = "UPDATE webhook_endpoints SET failing_since = failing_since + $2 - $3
                              WHERE partner_id = $1 AND failing_since IS NOT NULL";
                sql.execute(spared, values![*partner, *now, since]).await?;
                sql.execute("UPDATE partners SET suspended_at = NULL WHERE id = $1", values![*partner]).await?;
                Ok(true)
            }
        };

        /// Lets mail go that was held because the partner was suspended, some after that one; the last one that was looked at, none
        /// at the end, and how many go.
        transact release_suspended(partner: PartnerId, after: MailId, now: Timestamp) -> (Option<MailId>, u64) {
            |sql| hold::release_suspended(sql, *partner, *after, *now).await
        };

        /// The mails a day that the partner may cause; none for the general rule.
        write set_mails_a_day(partner: PartnerId, mails: Option<u32>) -> () {
            |sql| {
                let set = "UPDATE partners SET mails_a_day = $2 WHERE id = $1";
                sql.execute(set, values![*partner, *mails]).await.map(|_| ())
            }
        };

        /// Closes sign-ups that were not confirmed in time, some at once; says how many.
        transact close_sign_ups(now: Timestamp) -> u64 {
            |sql| idempotency::close(sql, *now).await
        };

        /// What came of a sign-up that the partner gave that name to; none where it gave the name to none.
        read sign_up_status(partner: PartnerId, key: IdempotencyKey) -> Option<NamedSignUp> = FindStatus { partner, key };

        /// The partner's own after that place (the id of one), oldest first, from that time on.
        scan named_sign_ups(partner: PartnerId, after: i64, since: Timestamp, most: u32) -> Vec<NamedSignUp>
            = ListStatuses { partner, after, since, most };
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

/// The partner of that name; its record is added where there is none.
pub(in crate::store) async fn find_or_add(sql: &mut dyn Sql, name: &str, now: Timestamp) -> Result<PartnerId, Failure> {
    let add = "INSERT INTO partners (name, created_at) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
    sql.execute(add, values![name, now]).await?;
    expected(sql.row("SELECT id FROM partners WHERE name = $1", values![name], |row| row.get(0)).await?)
}

struct SetContact {
    name: String,
    contact: Option<EmailAddress>,
}

impl Unit for SetContact {
    type Done = bool;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        let set = "UPDATE partners SET contact = $2 WHERE name = $1";
        let contact = self.contact.as_ref().map(EmailAddress::as_typed);
        Ok(sql.execute(set, values![&self.name, contact]).await? == 1)
    }
}

struct FindStatus {
    partner: PartnerId,
    key: IdempotencyKey,
}

impl Unit for FindStatus {
    type Done = Option<NamedSignUp>;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let find = concat!(
            "SELECT ",
            status_columns!(),
            " FROM idempotency_keys WHERE partner_id = $1 AND key = $2 AND closes_at IS NOT NULL"
        );
        sql.row(find, values![self.partner, self.key.as_str()], named_sign_up).await
    }
}

struct ListStatuses {
    partner: PartnerId,
    after: i64,
    since: Timestamp,
    most: u32,
}

impl Unit for ListStatuses {
    type Done = Vec<NamedSignUp>;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let list = concat!(
            "SELECT ",
            status_columns!(),
            " FROM idempotency_keys WHERE partner_id = $1 AND created_at >= $2 AND (created_at > $3 OR id > $4)
                AND closes_at IS NOT NULL ORDER BY created_at, id LIMIT $5"
        );
        let last = time_of(sql, self.after).await?;
        let values = values![self.partner, self.since.max(last), last, self.after, self.most];
        sql.rows(list, values, named_sign_up).await
    }
}

/// When the request at that place was made: lists begin there. The beginning of time where there is none.
pub(in crate::store) async fn time_of(sql: &mut dyn Sql, request: i64) -> Result<Timestamp, Failure> {
    let time = "SELECT created_at FROM idempotency_keys WHERE id = $1";
    Ok(sql.row(time, values![request], |row| row.get(0)).await?.unwrap_or(Timestamp::from_millis(0)))
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
