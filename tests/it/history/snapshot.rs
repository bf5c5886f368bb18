//! The records as they are once nobody writes to them any more.

use crate::prelude::*;

#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    pub people: Vec<Person>,
    pub sign_ups: Vec<SignUpRow>,
    pub outbox: Vec<Mail>,
    /// Mailboxes that want no mail.
    pub suppressed: Vec<String>,
    /// What the records say the number of members is.
    pub member_count: u64,
    /// What the service says it is.
    pub stats: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Person {
    pub id: i64,
    pub email_normalized: String,
    pub mailbox: String,
    pub code: String,
    pub is_member: bool,
    pub referrer: Option<i64>,
}

#[derive(Debug, Clone)]
pub(super) struct SignUpRow {
    pub id: i64,
    pub person: i64,
    pub partner: String,
    pub state: String,
    pub us_state: Option<String>,
    pub categories: Option<String>,
    pub comments: Option<String>,
    pub referrer: Option<i64>,
}

#[derive(Debug, Clone)]
pub(super) struct Mail {
    pub sign_up: i64,
    pub recipient: String,
}

impl Snapshot {
    pub(super) fn read(records: &Records, stats: u64) -> Self {
        let people = "SELECT id, email_normalized, mailbox, code, state, referrer_id FROM people ORDER BY id";
        let people = records.rows(people).into_iter().map(|row| Person {
            id: number(&row[0]),
            email_normalized: row[1].clone(),
            mailbox: row[2].clone(),
            code: row[3].clone(),
            is_member: row[4] == "member",
            referrer: perhaps(&row[5]).map(|id| number(&id)),
        });
        let sign_ups = "SELECT id, person_id, coalesce((SELECT name FROM partners WHERE id = partner_id), ''), state, us_state, categories, comments, referrer_id
                        FROM sign_ups ORDER BY id";
        let sign_ups = records.rows(sign_ups).into_iter().map(|row| SignUpRow {
            id: number(&row[0]),
            person: number(&row[1]),
            partner: row[2].clone(),
            state: row[3].clone(),
            us_state: perhaps(&row[4]),
            categories: perhaps(&row[5]),
            comments: perhaps(&row[6]),
            referrer: perhaps(&row[7]).map(|id| number(&id)),
        });
        let outbox = records.rows("SELECT sign_up_id, recipient FROM outbox ORDER BY id");
        let outbox = outbox.into_iter().map(|row| Mail { sign_up: number(&row[0]), recipient: row[1].clone() });
        let suppressed = records.rows("SELECT mailbox FROM mailboxes WHERE suppressed_until IS NOT NULL");
        let count = records.number("SELECT member_count FROM installation");
        Self {
            people: people.collect(),
            sign_ups: sign_ups.collect(),
            outbox: outbox.collect(),
            suppressed: suppressed.into_iter().flatten().collect(),
            member_count: u64::try_from(count).unwrap(),
            stats,
        }
    }
}

fn number(text: &str) -> i64 {
    text.parse().unwrap()
}

fn perhaps(text: &str) -> Option<String> {
    (text != "NULL").then(|| text.to_owned())
}
