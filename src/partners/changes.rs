//! Changes that partners make themselves: a daily bound for each kind, the mail to the contact, and the partner's daily figures.

use crate::domain::api_key::{KeyId, KeyStatus};
use crate::domain::partner::change::{CHANGES_KEPT_FOR, ChangeKind, ClaimedChange, LIMITS_COUNT_OVER, MadeChange};
use crate::domain::partner::name::PartnerId;
use crate::domain::time::Timestamp;
use crate::keys::records;
use crate::store::sql::{Failure, How, Row, Sql, Unit, expected, values};

/// How many mails about changes are leased at once, and how many of them may be about one partner.
const MAILED_AT_ONCE: u32 = 20;
const MAILED_AT_ONCE_EACH: u32 = 3;

/// Uncounts a change that was refused.
pub struct UnclaimChange(pub i64);

impl Unit for UnclaimChange {
    type Done = ();
    const HOW: How = How::Write;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        let forget = "DELETE FROM partner_changes WHERE id = $1 AND done_at IS NULL";
        sql.execute(forget, values![self.0]).await.map(|_| ())
    }
}

/// Leases changes made since `since` whose partner has a contact that was not mailed yet, to this caller until `until`. Changes to
/// keys come first, and only a few of one partner, so that many changes do not delay the others' mail.
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

/// A partner's figures for these days, both included. Leaves out days on which nothing happened.
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

/// What a partner did on a day. Of what people did about its mail, this reveals only confirmations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageDay {
    pub day: i64,
    pub requests: u64,
    /// Sign-ups that were accepted, repeats included. Counting rows would reveal more: a repeat adds a row only if the person declined.
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

/// Counts a change that a partner requests with a working key, before it is made.
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
        // A request may trust a key that was read a moment ago; a change may not.
        match records::find(sql, *key).await?.map_or(KeyStatus::Revoked, |record| record.status(*now)) {
            KeyStatus::Valid => {}
            over => return Ok(ClaimedChange::Over(over)),
        }
        // At most a few days' worth, which is bounded.
        let forget = "DELETE FROM partner_changes WHERE partner_id = $1 AND kind = $2 AND at < $3";
        sql.execute(forget, values![*partner, kind.name(), now.minus(CHANGES_KEPT_FOR)]).await?;
        // Times that a clock wrote far ahead do not count.
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
