//! Mailboxes folded anew, for a schema step after which more spellings of an address are one mailbox; as SQL.
//!
//! People are read in portions and only those whose mailbox changes are written. What was remembered of two mailboxes that
//! become one is put together: the newest mails of both, and the longer silence. It goes before the step's own
//! SQL, for that would keep everyone from the tables meanwhile.

use super::sql::{Failure, Row, Sql, Unit, values};
use crate::domain::email::EmailAddress;
use crate::domain::mail::MAX_MAILS_PER_DAY;
use crate::domain::time::Timestamp;

/// Rows read at a time.
const PORTION: u32 = 1000;

pub(super) struct Refold;

impl Unit for Refold {
    type Done = ();

    fn is_transaction(&self) -> bool {
        true
    }

    async fn apply<S: Sql>(&self, sql: &mut S) -> Result<(), Failure> {
        people(sql).await?;
        mailboxes(sql).await
    }
}

async fn people(sql: &mut impl Sql) -> Result<(), Failure> {
    let mut after = i64::MIN;
    loop {
        let some = "SELECT id, email, mailbox FROM people WHERE id > $1 ORDER BY id LIMIT $2";
        let person = |row: &Row<'_>| Ok((row.get::<i64>(0)?, row.get::<String>(1)?, row.get::<String>(2)?));
        let portion = sql.rows(some, values![after, PORTION], person).await?;
        let Some((last, ..)) = portion.last() else { return Ok(()) };
        after = *last;
        for (id, email, before) in portion {
            // What cannot be read is no address of ours, and stays.
            if let Some(mailbox) = folded(&email).filter(|mailbox| *mailbox != before) {
                sql.execute("UPDATE people SET mailbox = $2 WHERE id = $1", values![id, &mailbox]).await?;
            }
        }
    }
}

/// What is remembered of a mailbox.
struct Memory {
    sent: Vec<(Timestamp, Option<String>)>,
    holder: Option<i64>,
    suppressed_until: Option<Timestamp>,
}

async fn mailboxes(sql: &mut impl Sql) -> Result<(), Failure> {
    let mut after = String::new();
    loop {
        let some = "SELECT mailbox FROM mailboxes WHERE mailbox > $1 ORDER BY mailbox LIMIT $2";
        let portion = sql.rows(some, values![&after, PORTION], |row| row.get::<String>(0)).await?;
        let Some(last) = portion.last() else { return Ok(()) };
        after = last.clone();
        for before in portion {
            if let Some(mailbox) = folded(&before).filter(|mailbox| *mailbox != before) {
                merge(sql, &before, &mailbox).await?;
            }
        }
    }
}

async fn merge(sql: &mut impl Sql, before: &str, mailbox: &str) -> Result<(), Failure> {
    let Some(old) = memory(sql, before).await? else { return Ok(()) };
    sql.execute("INSERT INTO mailboxes (mailbox) VALUES ($1) ON CONFLICT DO NOTHING", values![mailbox]).await?;
    let Some(new) = memory(sql, mailbox).await? else { return Ok(()) };
    // The holder is the mail that the newest stands for.
    let newest = |memory: &Memory| memory.sent.first().map(|(time, _)| *time);
    let holder = if newest(&old) > newest(&new) { old.holder } else { new.holder };
    let mut sent = [old.sent, new.sent].concat();
    sent.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    let time = |index: usize| sent.get(index).map(|(time, _)| *time);
    let source = |index: usize| sent.get(index).and_then(|(_, source)| source.as_deref());
    let write = "UPDATE mailboxes SET sent_1 = $2, sent_2 = $3, sent_3 = $4, sent_4 = $5, source_1 = $6, source_2 = $7,
                     source_3 = $8, source_4 = $9, holder = $10, suppressed_until = $11
                 WHERE mailbox = $1";
    let silent = old.suppressed_until.max(new.suppressed_until);
    let (times, sources) = ([time(0), time(1), time(2), time(3)], [source(0), source(1), source(2), source(3)]);
    let values = values![
        mailbox, times[0], times[1], times[2], times[3], sources[0], sources[1], sources[2], sources[3], holder,
        silent,
    ];
    sql.execute(write, values).await?;
    sql.execute("DELETE FROM mailboxes WHERE mailbox = $1", values![before]).await.map(|_| ())
}

async fn memory(sql: &mut impl Sql, mailbox: &str) -> Result<Option<Memory>, Failure> {
    let find = "SELECT sent_1, sent_2, sent_3, sent_4, source_1, source_2, source_3, source_4, holder, suppressed_until
                FROM mailboxes WHERE mailbox = $1";
    let read = |row: &Row<'_>| {
        let mut sent = Vec::new();
        for index in 0..MAX_MAILS_PER_DAY {
            if let Some(time) = row.get::<Option<Timestamp>>(index)? {
                sent.push((time, row.get::<Option<String>>(MAX_MAILS_PER_DAY + index)?));
            }
        }
        let rest = MAX_MAILS_PER_DAY * 2;
        let (holder, suppressed_until) = (row.get(rest)?, row.get(rest + 1)?);
        Ok(Memory { sent, holder, suppressed_until })
    };
    sql.row(find, values![mailbox], read).await
}

fn folded(address: &str) -> Option<String> {
    EmailAddress::kept(address).ok().map(|email| email.mailbox())
}
