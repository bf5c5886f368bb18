//! What partners change themselves, as SQL: a bound for each kind in a day, the mail about it to their contact, and their figures by day.

use crate::domain::api_key::KeyId;
use crate::domain::partner::change::{CHANGES_KEPT_FOR, ChangeKind, LIMITS_COUNT_OVER, MadeChange};
use crate::domain::partner::name::PartnerId;
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, Row, Sql, Unit, expected, values};

/// Mails about changes that are taken at once.
const MAILED_AT_ONCE: u32 = 20;

area! {
    /// What partners change themselves.
    ChangeStore {
        /// Counts a change that a partner asks for, before it is made; where the day has had as many as it may, when the next one is.
        write claim_change(partner: PartnerId, key: KeyId, kind: ChangeKind, now: Timestamp) -> Result<i64, Timestamp>
            = ClaimChange { partner, key, kind, now };

        /// Changes since that time whose partner has a contact that was not mailed; until then they are this caller's to mail about.
        write lease_changes(since: Timestamp, until: Timestamp, now: Timestamp) -> Vec<MadeChange> {
            |sql| {
                let lease = "UPDATE partner_changes SET leased_until = $2 WHERE id IN
                                 (SELECT c.id FROM partner_changes c JOIN partners p ON p.id = c.partner_id
                                  WHERE c.at >= $1 AND c.done_at IS NOT NULL AND c.mailed_at IS NULL AND c.leased_until <= $3
                                    AND p.contact IS NOT NULL
                                  ORDER BY c.at LIMIT $4)
                                 AND mailed_at IS NULL AND leased_until <= $3
                             RETURNING id, partner_id, key_id, kind, about, at,
                                 (SELECT p.name FROM partners p WHERE p.id = partner_id) AS partner,
                                 (SELECT p.contact FROM partners p WHERE p.id = partner_id) AS contact";
                sql.rows(lease, values![*since, *until, *now, MAILED_AT_ONCE], made).await
            }
        };

        /// The contact was mailed.
        write note_mailed(change: i64, now: Timestamp) -> () {
            |sql| {
                let mailed = "UPDATE partner_changes SET mailed_at = $2 WHERE id = $1";
                sql.execute(mailed, values![*change, *now]).await.map(|_| ())
            }
        };

        /// A partner's figures for these days, both included; without the days on which there was nothing.
        read usage_of(partner: PartnerId, from: i64, to: i64) -> Vec<UsageDay> {
            |sql| {
                let days = "SELECT day, requests, sign_ups_sent, sign_ups_confirmed FROM source_days
                            WHERE coalesce(partner_id, 0) = $1 AND day >= $2 AND day <= $3 ORDER BY day";
                let read = |row: &Row<'_>| {
                    Ok(UsageDay {
                        day: row.get("day")?,
                        requests: row.get("requests")?,
                        sign_ups: row.get("sign_ups_sent")?,
                        confirmations: row.get("sign_ups_confirmed")?,
                    })
                };
                sql.rows(days, values![*partner, *from, *to], read).await
            }
        };
    }
}

/// What a partner did on a day, without anything that would tell what people did about its mail but confirm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageDay {
    pub day: i64,
    pub requests: u64,
    /// Sign-ups that were taken, repeats included. Rows would tell more: a repeat makes one only if the person declined.
    pub sign_ups: u64,
    pub confirmations: u64,
}

fn made(row: &Row<'_>) -> Result<MadeChange, Failure> {
    Ok(MadeChange {
        id: row.get("id")?,
        partner_id: row.get("partner_id")?,
        partner: row.get("partner")?,
        contact: row.get("contact")?,
        key: row.parsed("key_id", |text| text.parse().ok())?,
        kind: row.parsed("kind", ChangeKind::from_name)?,
        about: row.get("about")?,
        at: row.get("at")?,
    })
}

/// The change that was asked for was made, in this transaction.
pub(in crate::store) async fn note_done(
    sql: &mut dyn Sql,
    change: i64,
    about: &str,
    now: Timestamp,
) -> Result<(), Failure> {
    let done = "UPDATE partner_changes SET done_at = $2, about = $3 WHERE id = $1";
    sql.execute(done, values![change, now, about]).await.map(|_| ())
}

struct ClaimChange {
    partner: PartnerId,
    key: KeyId,
    kind: ChangeKind,
    now: Timestamp,
}

impl Unit for ClaimChange {
    type Done = Result<i64, Timestamp>;

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self { partner, key, kind, now } = self;
        sql.lock(&format!("changes of partner {partner}")).await?;
        // No more than some days' worth, which is bounded.
        let forget = "DELETE FROM partner_changes WHERE partner_id = $1 AND kind = $2 AND at < $3";
        sql.execute(forget, values![*partner, kind.name(), now.minus(CHANGES_KEPT_FOR)]).await?;
        // What a clock wrote that was far ahead does not count.
        let count = "SELECT count(*) AS claimed, min(at) AS oldest FROM
                         (SELECT at FROM partner_changes WHERE partner_id = $1 AND kind = $2 AND at > $3 AND at <= $4
                          ORDER BY at DESC LIMIT $5) latest";
        let counted = |row: &Row<'_>| Ok((row.get::<u32>("claimed")?, row.get::<Option<Timestamp>>("oldest")?));
        let (since, until) = (now.minus(LIMITS_COUNT_OVER), now.plus(LIMITS_COUNT_OVER));
        let values = values![*partner, kind.name(), since, until, kind.max_a_day()];
        let (claimed, oldest) = expected(sql.row(count, values, counted).await?)?;
        if let Some(oldest) = oldest.filter(|_| claimed >= kind.max_a_day()) {
            return Ok(Err(oldest.plus(LIMITS_COUNT_OVER)));
        }
        let claim = "INSERT INTO partner_changes (partner_id, key_id, kind, at) VALUES ($1, $2, $3, $4) RETURNING id";
        let id = sql.insert(claim, values![*partner, key.as_str(), kind.name(), *now]).await?;
        Ok(Ok(id.ok_or(Failure::Overtaken)?))
    }
}
