//! What partners change themselves: a bound for each kind in a day, the mail about it to their contact, and their figures by day.

use crate::domain::api_key::{KeyId, KeyStatus};
use crate::domain::partner::change::{CHANGES_KEPT_FOR, ChangeKind, ClaimedChange, LIMITS_COUNT_OVER, MadeChange};
use crate::domain::partner::name::PartnerId;
use crate::domain::time::Timestamp;
use crate::keys::records;
use crate::store::sql::{Failure, How, Row, Sql, Unit, expected, values};

/// Mails about changes that are taken at once, and of these about one partner's.
const MAILED_AT_ONCE: u32 = 20;
const MAILED_AT_ONCE_EACH: u32 = 3;

/// What was asked for was refused and does not count.
#[derive(Debug)]
pub struct UnclaimChange(pub i64);

impl Unit for UnclaimChange {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let forget = "DELETE FROM partner_changes WHERE id = $1 AND done_at IS NULL";
        sql.execute(forget, values![self.0]).await.map(|_| ())
    }
}

/// Changes since that time whose partner has a contact that was not mailed; until then they are this caller's to mail about.
/// Those to keys come first, and only a few are one partner's: however much it changes, the others' mail is not late.
#[derive(Debug)]
pub struct LeaseChanges {
    pub since: Timestamp,
    pub until: Timestamp,
    pub now: Timestamp,
}

impl Unit for LeaseChanges {
    type Done = Vec<MadeChange>;
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<MadeChange>, Failure> {
        let lease = "UPDATE partner_changes SET leased_until = $2 WHERE id IN
                         (SELECT waiting.id FROM
                              (SELECT c.id, c.at, c.kind NOT IN ('key rotated', 'key revoked') AS later,
                                   row_number() OVER (PARTITION BY c.partner_id
                                       ORDER BY c.kind NOT IN ('key rotated', 'key revoked'), c.at, c.id) AS place
                               FROM partner_changes c JOIN partners p ON p.id = c.partner_id
                               WHERE c.at >= $1 AND c.done_at IS NOT NULL AND c.mailed_at IS NULL AND c.leased_until <= $3
                                 AND p.contact IS NOT NULL) waiting
                          WHERE waiting.place <= $5 ORDER BY waiting.later, waiting.place, waiting.at LIMIT $4)
                         AND mailed_at IS NULL AND leased_until <= $3
                     RETURNING id, partner_id, key_id, kind, about, at,
                         (SELECT p.name FROM partners p WHERE p.id = partner_id) AS partner,
                         (SELECT p.contact FROM partners p WHERE p.id = partner_id) AS contact";
        let most = values![self.since, self.until, self.now, MAILED_AT_ONCE, MAILED_AT_ONCE_EACH];
        let mut leased = sql.rows(lease, most, made).await?;
        leased.sort_by_key(|change| (!change.kind.is_about_a_key(), change.at, change.id));
        Ok(leased)
    }
}

/// The contact was mailed.
#[derive(Debug)]
pub struct NoteMailed(pub i64, pub Timestamp);

impl Unit for NoteMailed {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let Self(change, now) = self;
        let mailed = "UPDATE partner_changes SET mailed_at = $2 WHERE id = $1";
        sql.execute(mailed, values![*change, *now]).await.map(|_| ())
    }
}

/// A partner's figures for these days, both included; without the days on which there was nothing.
#[derive(Debug)]
pub struct ListUsage {
    pub partner: PartnerId,
    pub from: i64,
    pub to: i64,
}

impl Unit for ListUsage {
    type Done = Vec<UsageDay>;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<UsageDay>, Failure> {
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
        sql.rows(days, values![self.partner, self.from, self.to], read).await
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

/// Counts a change that a partner asks for with a key that works, before it is made.
#[derive(Debug)]
pub struct ClaimChange {
    pub partner: PartnerId,
    pub key: KeyId,
    pub kind: ChangeKind,
    pub now: Timestamp,
}

impl Unit for ClaimChange {
    type Done = ClaimedChange;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self { partner, key, kind, now } = self;
        sql.lock(&format!("changes of partner {partner}")).await?;
        // Requests may trust what was read of a key a moment ago; a change does not.
        match records::find(sql, *key).await?.map_or(KeyStatus::Revoked, |record| record.status(*now)) {
            KeyStatus::Valid => {}
            over => return Ok(ClaimedChange::Over(over)),
        }
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
            return Ok(ClaimedChange::Full(oldest.plus(LIMITS_COUNT_OVER)));
        }
        let claim = "INSERT INTO partner_changes (partner_id, key_id, kind, at) VALUES ($1, $2, $3, $4) RETURNING id";
        let id = sql.insert(claim, values![*partner, key.as_str(), kind.name(), *now]).await?;
        Ok(ClaimedChange::Counted(id.ok_or(Failure::Overtaken)?))
    }
}
