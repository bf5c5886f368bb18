//! How many members there are, and how many people share a mailbox.

use crate::domain::email::scope::SandboxScope;
use crate::domain::partner::name::PartnerId;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Changes the member count. Runs last in its unit, because every confirmation of the union waits for this row.
pub(crate) const COUNT_MEMBERS: &str = "UPDATE installation SET member_count = member_count + $1 WHERE id = 1";

/// Changes the member count by 1 or -1. For a sandbox mailbox, which names its partner, also changes that partner's count.
pub(crate) async fn count_member(sql: &mut dyn Sql, mailbox: &str, change: i64) -> Result<(), Failure> {
    if let Some(SandboxScope(partner)) = SandboxScope::of_compared(mailbox) {
        let own = "UPDATE partners SET sandbox_members = sandbox_members + $2 WHERE id = $1";
        sql.execute(own, values![partner, change]).await?;
    }
    sql.execute(COUNT_MEMBERS, values![change]).await.map(|_| ())
}

/// The count of other people at a mailbox stops here.
const MOST_SHARING: u32 = 1000;

/// How many people get mail at a mailbox, counted up to [`MOST_SHARING`], and whether one of them is a member.
pub(crate) async fn people_of(sql: &mut dyn Sql, mailbox: &str) -> Result<(u64, bool), Failure> {
    // Two lookups, because each has its own index.
    let people = "
        SELECT (SELECT count(*) FROM (SELECT 1 FROM people WHERE email_normalized = $1 AND mailbox = $1
                                      UNION ALL SELECT 1 FROM
                                          (SELECT 1 FROM people WHERE mailbox = $1 AND mailbox <> email_normalized LIMIT $2) tagged) here) AS people,
               EXISTS (SELECT 1 FROM people WHERE email_normalized = $1 AND mailbox = $1 AND state = 'member')
               OR EXISTS (SELECT 1 FROM people WHERE mailbox = $1 AND mailbox <> email_normalized AND state = 'member') AS has_member";
    let read = |row: &Row<'_>| Ok((row.get("people")?, row.get("has_member")?));
    Ok(sql.row(people, values![mailbox, MOST_SHARING], read).await?.unwrap_or_default())
}

/// How many members a partner's sandbox has.
pub struct CountSandboxMembers(pub PartnerId);

impl Unit for CountSandboxMembers {
    type Done = u64;
    const HOW: How = How::Read;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        members(sql, self.0).await
    }
}

/// How many members a partner's sandbox has now.
pub(crate) async fn members(sql: &mut dyn Sql, partner: PartnerId) -> Result<u64, Failure> {
    let count = "SELECT sandbox_members FROM partners WHERE id = $1";
    Ok(sql.row(count, values![partner], |row| row.get(0)).await?.unwrap_or(0))
}
