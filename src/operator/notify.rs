//! Tells the operator what begins to need attention and what no longer does (notifications), by a signed webhook or a mail.
//!
//! The findings are those of the page. What is told stands in the records: any node sees a finding, one node tells it. While the records
//! cannot be used, each node tells that alone, from memory. No personal data is in it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::Operator;
use super::findings::{Finding, Grade};
use super::running::FoundProblems;
use crate::domain::api_key::Mode;
use crate::domain::remedy::WriteRemedy;
use crate::domain::secret::Secret;
use crate::domain::time::Timestamp;
use crate::domain::union::Union;
use crate::domain::webhook::signature::{WebhookSecret, notice_id};
use crate::domain::webhook::url::EndpointUrl;
use crate::mail::compose::Composer;
use crate::mail::sources::use_once;
use crate::mail::{SendError, Transport};
use crate::outbound::GuardedClient;
use crate::partners::webhooks::post_signed;
use crate::store::StoreError;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// How long something is wrong before it is told, and right before its end is: a restart tells nobody.
pub const LASTS: Duration = Duration::from_secs(300);

/// Messages within an hour, over all nodes, and of a node alone. The last one says that there may be more.
pub const MESSAGES_AN_HOUR: usize = 6;
const HOUR: Duration = Duration::from_secs(3600);

/// Findings in one message; the next one has more.
const MOST_TOLD: u32 = 20;

/// How long a node has a finding to itself while it tells it: longer than an attempt takes.
const NOTICE_LEASE: Duration = Duration::from_secs(120);

const ALONE: &str = "this node cannot use its records: sign-ups fail";

/// Where it is told.
pub enum NotifyChannel {
    Webhook { url: EndpointUrl, client: GuardedClient },
    Mail { to: String, composer: Composer, transport: Arc<dyn Transport> },
}

/// What one message tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notice {
    pub began: Vec<TellsOf>,
    pub ended: Vec<TellsOf>,
    /// Whether no other follows within the hour.
    pub is_last: bool,
    pub is_test: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TellsOf {
    /// The finding's [key](Finding::key).
    pub name: String,
    pub message: String,
    pub began_at: Timestamp,
}

/// What a node remembers while the records cannot be used.
#[derive(Default)]
struct ToldAlone {
    since: Option<Timestamp>,
    is_told: bool,
    /// When it told something, in the last hour.
    told_at: Vec<Timestamp>,
}

pub struct Notifier {
    operator: Operator,
    channel: NotifyChannel,
    secret: Secret,
    union: Arc<Union>,
    write: WriteRemedy,
    alone: ToldAlone,
}

impl Notifier {
    pub fn new(
        operator: Operator,
        channel: NotifyChannel,
        secret: Secret,
        union: Arc<Union>,
        write: WriteRemedy,
    ) -> Self {
        Self { operator, channel, secret, union, write, alone: ToldAlone::default() }
    }

    /// Notes what was found, and tells what is due. Call it a few times a minute; fails if something could not be told, which is tried
    /// again.
    pub async fn round(&mut self, found: &FoundProblems, now: Timestamp) -> Result<(), String> {
        match self.take_due(found, now).await {
            Ok(due) => {
                self.tell_alone(now, true).await?;
                let Some(notice) = due else { return Ok(()) };
                self.send(&notice, now).await?;
                let names = |of: Vec<TellsOf>| of.into_iter().map(|one| one.name).collect();
                let settle = SettleNotice { began: names(notice.began), ended: names(notice.ended), now };
                self.operator.run_unaudited(settle).await.map_err(|error| error.to_string())
            }
            // Why is in the log already, by those who need the records more.
            Err(_) => self.tell_alone(now, false).await,
        }
    }

    async fn take_due(&self, found: &FoundProblems, now: Timestamp) -> Result<Option<Notice>, StoreError> {
        let mut seen: BTreeMap<String, String> = BTreeMap::new();
        for finding in &*found.findings {
            let message = self.words(finding);
            seen.entry(finding.key()).and_modify(|all| *all += &format!("; {message}")).or_insert(message);
        }
        let note = NoteFindings { seen: Vec::from_iter(seen), is_whole: found.is_whole, now };
        self.operator.run_unaudited(note).await
    }

    fn words(&self, Finding { check, grade, message, fix, .. }: &Finding) -> String {
        let fix = fix.as_ref().map_or_else(String::new, |fix| format!(" ({})", (self.write)(fix, Mode::Live)));
        let grade = if *grade == Grade::Fail { "fails" } else { "warning" };
        format!("{check}, {grade}: {message}{fix}")
    }

    /// Tells that the records cannot be used, or can be again.
    async fn tell_alone(&mut self, now: Timestamp, are_back: bool) -> Result<(), String> {
        if are_back && !self.alone.is_told {
            self.alone.since = None;
            return Ok(());
        }
        let began_at = *self.alone.since.get_or_insert(now);
        self.alone.told_at.retain(|at| now.since(*at) < HOUR);
        let is_due = are_back || (!self.alone.is_told && now.since(began_at) >= LASTS);
        if !is_due || self.alone.told_at.len() >= MESSAGES_AN_HOUR {
            return Ok(());
        }
        let told = vec![TellsOf { name: "records alone".to_owned(), message: ALONE.to_owned(), began_at }];
        let (began, ended) = if are_back { (Vec::new(), told) } else { (told, Vec::new()) };
        // Counted before it is sent: a receiver that refuses is tried six times an hour.
        self.alone.told_at.push(now);
        let is_last = self.alone.told_at.len() == MESSAGES_AN_HOUR;
        self.send(&Notice { began, ended, is_last, is_test: false }, now).await?;
        self.alone.is_told = !are_back;
        if are_back {
            self.alone.since = None;
        }
        Ok(())
    }

    pub async fn send(&self, notice: &Notice, now: Timestamp) -> Result<(), String> {
        let id = notice_id(&self.secret, &notice.identity());
        match &self.channel {
            NotifyChannel::Webhook { url, client } => {
                let secrets = WebhookSecret::of_notices(&self.secret);
                let body = notice.json(&self.union, now).to_string();
                let sent = post_signed(client, "notify", url, &secrets, id, body, now).await;
                match sent.map_err(|error| error.to_string())?.status {
                    200..=299 => Ok(()),
                    status => Err(format!("{} answered {status}", url.authority())),
                }
            }
            NotifyChannel::Mail { to, composer, transport } => {
                let sent = match composer.plain_text(to, (None, id), notice.letter(&self.union), now) {
                    Ok(mail) => transport.send(mail).await,
                    Err(error) => Err(error),
                };
                sent.map_err(|error| match error {
                    SendError::Rejected => "the mail server knows no such recipient".to_owned(),
                    SendError::Later(cause) | SendError::Unknown(cause) => cause,
                    SendError::NotBefore(at) => format!("mail goes from {at} on"),
                })
            }
        }
    }
}

impl Notice {
    /// The same for a message that is sent again.
    fn identity(&self) -> String {
        let of = |all: &[TellsOf]| all.iter().map(|one| format!("{}@{}", one.name, one.began_at)).collect::<Vec<_>>();
        format!("{:?} {:?} {}", of(&self.began), of(&self.ended), self.is_test)
    }

    fn json(&self, union: &Union, now: Timestamp) -> Value {
        let list = |all: &[TellsOf]| {
            let one = |one: &TellsOf| json!({ "finding": one.name, "message": one.message, "since": one.began_at });
            all.iter().map(one).collect::<Vec<_>>()
        };
        json!({
            "type": if self.is_test { "findings.test" } else { "findings.changed" },
            "timestamp": now,
            "data": {
                "union": union.name,
                "page": page_of(union),
                "began": list(&self.began),
                "ended": list(&self.ended),
                "mayBeMore": self.is_last,
            },
        })
    }

    /// Subject and text.
    fn letter(&self, union: &Union) -> (String, String) {
        let what = match (self.began.as_slice(), self.ended.as_slice()) {
            _ if self.is_test => "a test of --notify".to_owned(),
            ([], ended) => format!("{} no longer needed", attention(ended)),
            (began, _) => format!("{} needed", attention(began)),
        };
        let mut text = String::new();
        if self.is_test {
            text += "This is a test: nothing is wrong. What needs attention will be sent here.\n\n";
        }
        for (heading, all) in [("Needs attention", &self.began), ("No longer needs attention", &self.ended)] {
            if !all.is_empty() {
                text += &format!("{heading}:\n");
                all.iter().for_each(|one| text += &format!("- {} (since {})\n", one.message, one.began_at));
                text.push('\n');
            }
        }
        if self.is_last {
            text += "No other message follows within the hour. There may be more on the page.\n\n";
        }
        text += &format!("All of it, as it is now: {}\n", page_of(union));
        (format!("{}: {what}", union.name), text)
    }
}

fn attention(all: &[TellsOf]) -> String {
    if all.len() == 1 { "attention to 1 thing".to_owned() } else { format!("attention to {} things", all.len()) }
}

fn page_of(union: &Union) -> String {
    format!("{}/operator", union.base_url)
}

/// Notes what a node found, and takes what is due to be told; none if nothing is.
pub struct NoteFindings {
    /// Names and messages.
    pub seen: Vec<(String, String)>,
    /// Whether what is not among them is over.
    pub is_whole: bool,
    pub now: Timestamp,
}

impl Unit for NoteFindings {
    type Done = Option<Notice>;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let Self { seen, is_whole, now } = self;
        let gone = now.minus(LASTS);
        for (name, message) in seen {
            // What was away for long and is back begins anew.
            let note = "INSERT INTO told_findings (name, message, began_at, seen_at) VALUES ($1, $2, $3, $3)
                        ON CONFLICT (name) DO UPDATE SET message = excluded.message, seen_at = excluded.seen_at,
                            began_at = CASE WHEN told_findings.told_at IS NULL AND told_findings.seen_at < $4
                                            THEN excluded.began_at ELSE told_findings.began_at END";
            sql.execute(note, values![name, message, *now, gone]).await?;
        }
        // What this node cannot see may still be there.
        let over = if *is_whole { gone } else { Timestamp::from_millis(0) };
        sql.execute("DELETE FROM told_findings WHERE told_at IS NULL AND seen_at < $1", values![over]).await?;
        let due = "SELECT name, message, began_at, told_at IS NOT NULL AS is_end FROM told_findings
                   WHERE leased_until <= $1
                       AND (told_at IS NULL AND seen_at >= $2 AND seen_at - began_at >= $3 OR told_at IS NOT NULL AND seen_at < $4)
                   ORDER BY name LIMIT $5 FOR UPDATE";
        let read = |row: &Row<'_>| {
            let (name, message) = (row.get("name")?, row.get("message")?);
            Ok((row.get::<bool>("is_end")?, TellsOf { name, message, began_at: row.get("began_at")? }))
        };
        let lasts = i64::try_from(LASTS.as_millis()).unwrap_or(i64::MAX);
        let due = sql.rows(due, values![*now, gone, lasts, over, MOST_TOLD], read).await?;
        if due.is_empty() {
            return Ok(None);
        }
        let Some(number) = take_message(sql, *now).await? else { return Ok(None) };
        let mut notice = Notice { is_last: number + 1 == MESSAGES_AN_HOUR, ..Notice::default() };
        for (is_end, one) in due {
            let lease = "UPDATE told_findings SET leased_until = $2 WHERE name = $1";
            sql.execute(lease, values![&one.name, now.plus(NOTICE_LEASE)]).await?;
            if is_end { notice.ended.push(one) } else { notice.began.push(one) }
        }
        Ok(Some(notice))
    }
}

/// Which message of this hour it is; none if all were sent.
async fn take_message(sql: &mut dyn Sql, now: Timestamp) -> Result<Option<usize>, Failure> {
    let hour = now.as_millis() / 3_600_000;
    for number in 0..MESSAGES_AN_HOUR {
        if use_once(sql, &format!("notice {hour} {number}"), now.plus(HOUR)).await? {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// What was told is settled.
pub struct SettleNotice {
    pub began: Vec<String>,
    pub ended: Vec<String>,
    pub now: Timestamp,
}

impl Unit for SettleNotice {
    type Done = ();
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<(), Failure> {
        for name in &self.began {
            let told = "UPDATE told_findings SET told_at = $2, leased_until = 0 WHERE name = $1";
            sql.execute(told, values![name, self.now]).await?;
        }
        for name in &self.ended {
            sql.execute("DELETE FROM told_findings WHERE name = $1", values![name]).await?;
        }
        Ok(())
    }
}
