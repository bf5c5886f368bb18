//! Drafts of an offer: a negotiator proposes them, and a person publishes or rejects each.

use crate::campaigns::negotiation::{Noted, open, wait};
use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::offer::Proposal;
use crate::domain::campaign::record::{DraftAnswer, OfferDraft};
use crate::domain::operator::same_person;
use crate::domain::time::Timestamp;
use crate::installation::is_two_people;
use crate::store::sql::{Failure, How, Row, Sql, Unit, values};

/// Adds an offer that a negotiator proposes.
pub struct AddOfferDraft {
    pub slug: CampaignSlug,
    pub client: String,
    pub seat: String,
    pub proposal: Proposal,
    /// Why it is proposed although it misses points of the mandate.
    pub exception: Option<String>,
    pub now: Timestamp,
}

impl Unit for AddOfferDraft {
    type Done = Noted;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Noted, Failure> {
        let campaign = match open(sql, &self.slug).await? {
            Ok(campaign) => campaign,
            Err(refused) => return Ok(refused),
        };
        let count = "SELECT count(*) FROM campaign_offer_drafts WHERE campaign_id = $1";
        let count = sql.value::<u32>(count, values![campaign]).await?.unwrap_or(0);
        if count >= OfferDraft::MOST {
            return Ok(Noted::Full);
        }
        let nth = "SELECT at FROM campaign_offer_drafts WHERE campaign_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2";
        if let Some(wait) = wait(sql, nth, values![campaign, OfferDraft::AN_HOUR - 1], self.now).await? {
            return Ok(Noted::Later(wait));
        }
        let Self { client, seat, proposal, exception, now, .. } = self;
        add(sql, campaign, (seat, client), (proposal, exception.as_deref()), *now).await?;
        // They are never deleted, so their count is the number of the last.
        Ok(Noted::Done(count + 1))
    }
}

/// The offers proposed for a campaign, oldest first, and what became of each.
pub struct ListOfferDrafts(pub CampaignSlug);

impl Unit for ListOfferDrafts {
    type Done = Vec<OfferDraft>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Vec<OfferDraft>, Failure> {
        drafts_of(sql, &self.0).await
    }
}

async fn drafts_of(sql: &mut dyn Sql, slug: &CampaignSlug) -> Result<Vec<OfferDraft>, Failure> {
    let drafts =
        "SELECT d.id, d.at, d.client, d.seat, d.exception, d.offer, a.answer, a.at AS answered_at, a.who, a.reason
                  FROM campaign_offer_drafts d JOIN campaigns c ON c.id = d.campaign_id
                      LEFT JOIN campaign_draft_answers a ON a.draft_id = d.id
                  WHERE c.slug = $1 ORDER BY d.id";
    let mut number = 0;
    let read = |row: &Row<'_>| {
        let answer = match row.get::<Option<&str>>("answer")? {
            None => None,
            Some(answer) => Some(DraftAnswer {
                at: row.get("answered_at")?,
                who: row.get("who")?,
                is_published: answer == PUBLISHED,
                reason: row.get("reason")?,
            }),
        };
        number += 1;
        Ok(OfferDraft {
            id: row.get("id")?,
            number,
            at: row.get("at")?,
            client: row.get("client")?,
            seat: row.get("seat")?,
            exception: row.get("exception")?,
            file: row.get("offer")?,
            answer,
        })
    };
    sql.rows(drafts, values![slug.as_str()], read).await
}

const PUBLISHED: &str = "published";
const REJECTED: &str = "rejected";

/// Rejects a draft, with the reason for the negotiator.
pub struct RejectDraft {
    pub slug: CampaignSlug,
    pub number: u32,
    pub reason: String,
    pub who: String,
    pub now: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rejected {
    Done,
    /// It was published, or rejected before.
    Already(DraftAnswer),
    /// There are so many.
    NoSuchDraft(u32),
    Unknown,
}

impl Unit for RejectDraft {
    type Done = Rejected;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Rejected, Failure> {
        // Not while an offer is being published, which may be made of this draft.
        if !sql.exists("SELECT 1 FROM campaigns WHERE slug = $1 FOR UPDATE", values![self.slug.as_str()]).await? {
            return Ok(Rejected::Unknown);
        }
        let drafts = drafts_of(sql, &self.slug).await?;
        let count = u32::try_from(drafts.len()).unwrap_or(u32::MAX);
        match drafts.into_iter().find(|draft| draft.number == self.number) {
            None => Ok(Rejected::NoSuchDraft(count)),
            Some(OfferDraft { answer: Some(answer), .. }) => Ok(Rejected::Already(answer)),
            Some(draft) => {
                answer(sql, draft.id, REJECTED, (&self.who, &self.reason), self.now).await?;
                Ok(Rejected::Done)
            }
        }
    }
}

/// What becomes of an offer that somebody is about to publish.
pub(super) enum ForAnother {
    Publish,
    /// It is kept as the draft of that number, for another person.
    Drafted(u32),
    /// It waits as this person's own draft of that number.
    Own(u32),
    Full,
}

/// Where one person makes a draft and another publishes it: whether somebody else made one that says the same, word for word. If nobody did,
/// it is kept as a draft.
pub(super) async fn draft_for_another(
    sql: &mut dyn Sql,
    (campaign, slug): (i64, &CampaignSlug),
    proposal: &Proposal,
    (who, signed): (&str, &str),
    now: Timestamp,
) -> Result<ForAnother, Failure> {
    if !is_two_people(sql).await? {
        return Ok(ForAnother::Publish);
    }
    let drafts = drafts_of(sql, slug).await?;
    let says_it = |draft: &&OfferDraft| draft.answer.is_none() && Proposal::parse(&draft.file).as_ref() == Ok(proposal);
    let mut same = drafts.iter().filter(says_it).peekable();
    if let Some(first) = same.peek() {
        let number = first.number;
        return Ok(match same.any(|draft| !same_person(&draft.seat, who)) {
            true => ForAnother::Publish,
            false => ForAnother::Own(number),
        });
    }
    let number = u32::try_from(drafts.len()).unwrap_or(u32::MAX).saturating_add(1);
    if number > OfferDraft::MOST {
        return Ok(ForAnother::Full);
    }
    let exception = (!signed.is_empty()).then_some(signed);
    add(sql, campaign, (who, ""), (proposal, exception), now).await?;
    Ok(ForAnother::Drafted(number))
}

async fn add(
    sql: &mut dyn Sql,
    campaign: i64,
    (seat, client): (&str, &str),
    (proposal, exception): (&Proposal, Option<&str>),
    now: Timestamp,
) -> Result<(), Failure> {
    let add = "INSERT INTO campaign_offer_drafts (campaign_id, at, client, seat, exception, offer) VALUES ($1, $2, $3, $4, $5, $6)";
    sql.execute(add, values![campaign, now, client, seat, exception, &proposal.written()]).await.map(|_| ())
}

/// Marks the drafts that say what is published, word for word.
pub(super) async fn mark_published(
    sql: &mut dyn Sql,
    slug: &CampaignSlug,
    published: &Proposal,
    (who, note): (&str, &str),
    now: Timestamp,
) -> Result<(), Failure> {
    for draft in drafts_of(sql, slug).await? {
        if draft.answer.is_none() && Proposal::parse(&draft.file).as_ref() == Ok(published) {
            answer(sql, draft.id, PUBLISHED, (who, note), now).await?;
        }
    }
    Ok(())
}

async fn answer(
    sql: &mut dyn Sql,
    draft: i64,
    answer: &str,
    (who, reason): (&str, &str),
    now: Timestamp,
) -> Result<(), Failure> {
    let add = "INSERT INTO campaign_draft_answers (draft_id, at, who, answer, reason) VALUES ($1, $2, $3, $4, $5)";
    sql.execute(add, values![draft, now, who, answer, reason]).await.map(|_| ())
}

/// The drafts that wait for a person, of campaigns that can still publish one.
pub struct ListWaitingDrafts;

impl Unit for ListWaitingDrafts {
    /// Each campaign, how many wait there, and since when.
    type Done = Vec<(CampaignSlug, u64, Timestamp)>;
    const HOW: How = How::Scan;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Self::Done, Failure> {
        let list = "SELECT c.slug, count(*) AS drafts, min(d.at) AS since
                    FROM campaigns c JOIN campaign_offer_drafts d ON d.campaign_id = c.id
                    WHERE (c.state IN ('gathering', 'negotiating')
                           OR c.state = 'offered' AND d.client = '' AND (SELECT two_people FROM installation WHERE id = 1))
                        AND NOT EXISTS (SELECT 1 FROM campaign_draft_answers a WHERE a.draft_id = d.id)
                    GROUP BY c.id, c.slug ORDER BY c.id";
        let read =
            |row: &Row<'_>| Ok((row.parsed("slug", |slug| slug.parse().ok())?, row.get("drafts")?, row.get("since")?));
        sql.rows(list, values![], read).await
    }
}
