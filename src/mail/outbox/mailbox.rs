//! Mailbox records, and the mail that waits for a mailbox.

use crate::domain::mail::policy::{MailboxCandidate, mailbox_queue};
use crate::domain::mail::{MAX_MAILS_PER_DAY, MailId, MailboxRecord};
use crate::domain::time::Timestamp;
use crate::mail::sources::source_name;
use crate::store::sql::{Failure, Row, Sql, values};

/// The columns of a mailbox record, as [`mailbox_record`] reads them.
macro_rules! mailbox_columns {
    () => {
        concat!(
            "sent_1, sent_2, sent_3, sent_4, last_mail_id, ",
            source_name!("source_1"),
            " AS source_name_1, ",
            source_name!("source_2"),
            " AS source_name_2, ",
            source_name!("source_3"),
            " AS source_name_3, ",
            source_name!("source_4"),
            " AS source_name_4"
        )
    };
}
pub(crate) use mailbox_columns;

pub(crate) fn mailbox_record(row: &Row<'_>) -> Result<MailboxRecord, Failure> {
    let mut sent = Vec::with_capacity(MAX_MAILS_PER_DAY);
    for (time, source) in [
        ("sent_1", "source_name_1"),
        ("sent_2", "source_name_2"),
        ("sent_3", "source_name_3"),
        ("sent_4", "source_name_4"),
    ] {
        if let Some(time) = row.get::<Option<Timestamp>>(time)? {
            sent.push((time, row.get(source)?));
        }
    }
    Ok(MailboxRecord { sent, holder: row.get::<Option<i64>>("last_mail_id")?.map(MailId) })
}

/// A mailbox record, locked until the unit ends.
pub(crate) async fn hold_mailbox(sql: &mut dyn Sql, mailbox: &str) -> Result<MailboxRecord, Failure> {
    sql.execute("INSERT INTO mailboxes (mailbox) VALUES ($1) ON CONFLICT DO NOTHING", values![mailbox]).await?;
    let hold = concat!("SELECT ", mailbox_columns!(), " FROM mailboxes WHERE mailbox = $1 FOR UPDATE");
    Ok(sql.row(hold, values![mailbox], mailbox_record).await?.unwrap_or_default())
}

/// How many other spellings of a mailbox's address get their mail put in order. Beyond this, someone is making them up; the
/// mailbox's caps cover those too.
const MOST_TAGGED: u32 = 1000;

/// The mails that wait for a mailbox, in order. Deletes those beyond the limit.
///
/// Few rows, each found by its key no matter what PostgreSQL estimates: a plan made while the tables were empty joined them
/// from the wrong end, and took 180 ms a mail with a thousand waiting.
pub(crate) async fn waiting_for(
    sql: &mut dyn Sql,
    mailbox: &str,
    record: &MailboxRecord,
    now: Timestamp,
) -> Result<Vec<MailboxCandidate>, Failure> {
    let waiting = "
        WITH mine AS MATERIALIZED (
            SELECT id, 1 AS plain FROM people WHERE email_normalized = $1 AND mailbox = $1
            UNION ALL SELECT id, 0 FROM
                (SELECT id FROM people WHERE mailbox = $1 AND mailbox <> email_normalized LIMIT $3) tagged
        )
        SELECT (SELECT o.id FROM outbox o WHERE o.sign_up_id = s.id AND o.given_up_at IS NULL AND o.held_at IS NULL) AS mail,
               coalesce((SELECT named.name FROM partners named WHERE named.id = s.partner_id), '') AS source,
               m.plain = 1 AS to_plain_name, (SELECT o.created_at FROM outbox o WHERE o.sign_up_id = s.id) AS created_at,
               (SELECT o.send_after <= $2 FROM outbox o WHERE o.sign_up_id = s.id) AS is_due
        FROM mine m JOIN sign_ups s ON s.person_id = m.id WHERE s.state = 'pending'";
    let read = |row: &Row<'_>| {
        let Some(mail) = row.get::<Option<i64>>("mail")? else { return Ok(None) };
        Ok(Some(MailboxCandidate {
            mail: MailId(mail),
            source: row.get("source")?,
            to_plain_name: row.get("to_plain_name")?,
            created_at: row.get("created_at")?,
            is_due: row.get("is_due")?,
        }))
    };
    let waiting = sql.rows(waiting, values![mailbox, now, MOST_TAGGED], read).await?;
    let (queue, too_many) = mailbox_queue(record, waiting.into_iter().flatten().collect());
    for dropped in too_many {
        // Skips mail that another node is working on: that node may be waiting for this mailbox.
        let drop = "DELETE FROM outbox WHERE id IN
                        (SELECT id FROM outbox WHERE id = $1 AND leased_until <= $2 FOR UPDATE SKIP LOCKED)";
        sql.execute(drop, values![dropped.mail.0, now]).await?;
    }
    Ok(queue)
}
