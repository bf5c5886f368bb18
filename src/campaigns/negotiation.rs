//! What goes for all notes of a negotiation: when they are accepted, and how many. And what an operator tells the negotiator.

use std::time::Duration;

use crate::campaigns::records::{find, hold};
use crate::domain::campaign::record::{NegotiationRound, OperatorMessage};
use crate::domain::campaign::{CampaignSlug, CampaignState};
use crate::domain::text::is_hidden;
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Sql, Unit, Value, values};

const HOUR: Duration = Duration::from_secs(3600);

/// The outcome of adding a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    /// Its number.
    Done(u32),
    Unknown,
    /// Nothing is negotiated in this state.
    NotNow(CampaignState),
    /// The maximum is reached.
    Full,
    /// Those of one hour are used up.
    Later(NextHour),
}

/// A negotiator has to wait so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHour {
    pub minutes: u64,
}

/// The campaign's id, if notes can be added now. One unit at a time, so that each gets a number of its own.
pub(super) async fn open(sql: &mut dyn Sql, slug: &CampaignSlug) -> Result<Result<i64, Noted>, Failure> {
    sql.lock(&format!("negotiation of {slug}")).await?;
    let Some(campaign) = hold(sql, slug).await? else { return Ok(Err(Noted::Unknown)) };
    // Negotiations run while members are being asked, and again if an offer has to be remade.
    Ok(if campaign.state.gathers() { Ok(campaign.id.0) } else { Err(Noted::NotNow(campaign.state)) })
}

/// How long a negotiator has to wait, if the note that `nth` finds, as many back as are allowed in an hour, is less than an hour old.
pub(super) async fn wait(
    sql: &mut dyn Sql,
    nth: &'static str,
    values: &[Value<'_>],
    now: Timestamp,
) -> Result<Option<NextHour>, Failure> {
    let until = sql.value::<Timestamp>(nth, values).await?.map(|at| at.plus(HOUR));
    Ok(until
        .filter(|until| *until > now)
        .map(|until| NextHour { minutes: until.since(now).as_secs().div_ceil(60).max(1) }))
}

/// What an operator tells the negotiator, on one line or several.
pub fn read_message(text: &str) -> Result<String, String> {
    read_text(text, OperatorMessage::LONGEST)
}

/// A text of a round that an operator records.
pub fn read_round_text(text: &str) -> Result<String, String> {
    read_text(text, NegotiationRound::LONGEST)
}

fn read_text(text: &str, most: usize) -> Result<String, String> {
    let text = text.trim();
    let is_good = (1..=most).contains(&text.chars().count()) && !text.chars().any(|c| is_hidden(c) && c != '\n');
    if is_good { Ok(text.to_owned()) } else { Err(format!("write 1 to {most} characters")) }
}

/// An operator tells the negotiator something. The oldest words make room for the newest.
pub struct Tell {
    pub slug: CampaignSlug,
    pub message: String,
    pub who: String,
    pub now: Timestamp,
}

impl Unit for Tell {
    /// Whether there is such a campaign.
    type Done = bool;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<bool, Failure> {
        sql.lock(&format!("negotiation of {}", self.slug)).await?;
        let Some(campaign) = find(sql, &self.slug).await? else { return Ok(false) };
        let id = campaign.id.0;
        let add = "INSERT INTO campaign_messages (campaign_id, at, who, message) VALUES ($1, $2, $3, $4)";
        sql.execute(add, values![id, self.now, &self.who, &self.message]).await?;
        let trim = "DELETE FROM campaign_messages WHERE campaign_id = $1 AND id <=
                    (SELECT id FROM campaign_messages WHERE campaign_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)";
        sql.execute(trim, values![id, OperatorMessage::MOST]).await?;
        Ok(true)
    }
}

/// What operators told the negotiator of a campaign, oldest first.
pub struct ListMessages(pub CampaignSlug);

impl Unit for ListMessages {
    type Done = Vec<OperatorMessage>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<OperatorMessage>, Failure> {
        let list = "SELECT m.at, m.who, m.message
                    FROM campaign_messages m JOIN campaigns c ON c.id = m.campaign_id WHERE c.slug = $1 ORDER BY m.id";
        sql.rows(list, values![self.0.as_str()], |row| {
            Ok(OperatorMessage { at: row.get("at")?, who: row.get("who")?, message: row.get("message")? })
        })
        .await
    }
}
