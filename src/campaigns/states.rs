//! Making a campaign, editing it, and moving it from state to state.

use std::collections::BTreeMap;

use crate::campaigns::bids::bids_of;
use crate::campaigns::drafts::{ForAnother, draft_for_another, mark_published};
use crate::campaigns::records::find;
use crate::domain::campaign::draft::CampaignDraft;
use crate::domain::campaign::offer::{Deal, NotPublished, Offer, Publication};
use crate::domain::campaign::record::{CampaignRecord, HistoryEntry, Withdrawal};
use crate::domain::campaign::{BadFile, BadStep, CampaignMail, CampaignSlug, CampaignState, CampaignStep};
use crate::domain::catalog::{CountsOn, ReferralTerms};
use crate::domain::language::Language;
use crate::domain::mail::budget::day_of;
use crate::domain::time::Timestamp;
use crate::store::sql::{Failure, How, Sql, Unit, values};

/// The name in the history for a step that happened by date.
const BY_DATE: &str = "date";

/// The outcome of making a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    Done,
    /// Another campaign has the slug.
    SlugTaken,
    /// The maximum is reached.
    TooMany,
}

/// The outcome of editing a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edited {
    Done,
    /// The file matches what is stored.
    Unchanged,
    Unknown,
    Refused(BadFile),
}

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stepped {
    Done(CampaignState),
    Unknown,
    Refused(BadStep),
    NotPublished(NotPublished),
    /// It has an offer of version 1.0.0, whose acceptances were not kept one by one.
    OfferAsText,
    /// Its bid needs more members.
    TooFewAccepted {
        needs: u32,
        accepted: u32,
    },
    /// One person makes a draft of an offer, and another publishes it: it is kept as the draft of that number.
    Drafted(u32),
    /// It is this person's own draft of that number, which waits for another person.
    OwnDraft(u32),
    /// There can be no more drafts.
    DraftsFull,
}

/// Makes a draft from the operator's file.
pub struct MakeCampaign {
    pub draft: CampaignDraft,
    pub definition: String,
    pub who: String,
    pub now: Timestamp,
}

impl Unit for MakeCampaign {
    type Done = Made;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Made, Failure> {
        // One at a time, so that the count is right.
        sql.lock("new campaign").await?;
        let slug = self.draft.slug.as_str();
        if sql.exists("SELECT 1 FROM campaigns WHERE slug = $1", values![slug]).await? {
            return Ok(Made::SlugTaken);
        }
        let count = sql.value::<u64>("SELECT count(*) FROM campaigns", values![]).await?;
        if count.unwrap_or(0) >= u64::from(CampaignRecord::MOST) {
            return Ok(Made::TooMany);
        }
        let add = "INSERT INTO campaigns (slug, definition, state, gather_until, created_at)
                   VALUES ($1, $2, 'draft', $3, $4) RETURNING id";
        let until = self.draft.gather_until.number();
        let values = values![slug, &self.definition, until, self.now];
        let id = sql.insert(add, values).await?.ok_or(Failure::Overtaken)?;
        write_history(sql, id, &self.who, (None, CampaignState::Draft), "", self.now).await?;
        Ok(Made::Done)
    }
}

/// Replaces what the operator wrote, where it can still be changed.
pub struct EditCampaign {
    pub draft: CampaignDraft,
    pub definition: String,
    pub who: String,
    pub now: Timestamp,
}

impl Unit for EditCampaign {
    type Done = Edited;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Edited, Failure> {
        let Some(campaign) = hold_alone(sql, &self.draft.slug).await? else { return Ok(Edited::Unknown) };
        if let Err(refused) = campaign.draft.edit_to(&self.draft, campaign.state) {
            return Ok(Edited::Refused(refused));
        }
        if campaign.draft == self.draft {
            return Ok(Edited::Unchanged);
        }
        let change = "UPDATE campaigns SET definition = $2, gather_until = $3 WHERE id = $1";
        let until = self.draft.gather_until.number();
        sql.execute(change, values![campaign.id.0, &self.definition, until]).await?;
        let (id, state) = (campaign.id.0, campaign.state);
        write_history(sql, id, &self.who, (Some(state), state), HistoryEntry::EDITED, self.now).await?;
        Ok(Edited::Done)
    }
}

/// A step with its data.
#[derive(Clone, PartialEq, Eq)]
pub enum TakenStep {
    /// Without an offer or terms.
    Plain(CampaignStep),
    Offer(Box<Publication>),
    /// With the reason in every language.
    WithdrawOffer(BTreeMap<Language, String>),
    /// With the referral terms that are in the catalog now.
    Activate(ReferralTerms),
}

impl TakenStep {
    pub const fn step(&self) -> CampaignStep {
        match self {
            Self::Plain(step) => *step,
            Self::Offer(_) => CampaignStep::Offer,
            Self::WithdrawOffer(_) => CampaignStep::WithdrawOffer,
            Self::Activate(_) => CampaignStep::Activate,
        }
    }
}

/// Moves a campaign one step, with a note, and starts the step's mailing unless the operator wants no mail.
pub struct StepCampaign {
    pub slug: CampaignSlug,
    pub step: TakenStep,
    pub who: String,
    /// The note, and whether to mail the people it concerns.
    pub note: (String, bool),
    pub now: Timestamp,
}

impl Unit for StepCampaign {
    type Done = Stepped;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<Stepped, Failure> {
        let Some(campaign) = hold_alone(sql, &self.slug).await? else { return Ok(Stepped::Unknown) };
        let to = match campaign.state.after(self.step.step()) {
            Ok(to) => to,
            Err(refused) => return Ok(Stepped::Refused(refused)),
        };
        let (id, mut note) = (campaign.id.0, self.note.0.clone());
        let replaced = campaign.offer.as_ref().filter(|_| campaign.state == CampaignState::Offered);
        let asks_anew = matches!(self.step, TakenStep::Offer(_) | TakenStep::WithdrawOffer(_));
        if asks_anew && replaced.is_some_and(|offer| offer.bid().is_none()) {
            return Ok(Stepped::OfferAsText);
        }
        let mut news = to.mailed_about();
        match &self.step {
            TakenStep::Plain(CampaignStep::Cancel) if campaign.state == CampaignState::Offered => {
                // The deal never starts: acceptances end as those of an offer that is withdrawn, and the supplier is told.
                sql.execute("UPDATE campaigns SET offer_number = offer_number + 1 WHERE id = $1", values![id]).await?;
            }
            TakenStep::Plain(_) => {}
            TakenStep::WithdrawOffer(reasons) => {
                let supplier = replaced.map_or("", Offer::supplier).to_owned();
                let withdrawal = Withdrawal { at: self.now, supplier, reasons: reasons.clone() };
                let withdraw = "UPDATE campaigns SET offer = NULL, decide_by = NULL, open_until = NULL, withdrawn = $2,
                                    offer_number = offer_number + 1 WHERE id = $1";
                sql.execute(withdraw, values![id, &withdrawal.written()]).await?;
                news = Some(CampaignMail::Offer);
                let reason = withdrawal.reason(Language::English).to_owned();
                note = joined([note, format!("the offer of {} was withdrawn: {reason}", withdrawal.supplier)]);
            }
            TakenStep::Offer(publication) => {
                let bids = bids_of(sql, &self.slug).await?;
                let (offer, signed) = match publication.offer(&campaign.draft, &bids, self.now) {
                    Ok(published) => published,
                    Err(refused) => return Ok(Stepped::NotPublished(refused)),
                };
                if replaced == Some(&offer) {
                    let same = "it is the offer that is published already; nothing of it was changed".to_owned();
                    return Ok(Stepped::NotPublished(NotPublished::Wrong(BadFile(vec![same]))));
                }
                match draft_for_another(sql, (id, &self.slug), &publication.proposal, (&self.who, &signed), self.now)
                    .await?
                {
                    ForAnother::Publish => {}
                    ForAnother::Drafted(number) => return Ok(Stepped::Drafted(number)),
                    ForAnother::Own(number) => return Ok(Stepped::OwnDraft(number)),
                    ForAnother::Full => return Ok(Stepped::DraftsFull),
                }
                // Who accepted one that is no worse has accepted this one too.
                let stands = replaced.is_some_and(|replaced| offer.worse_than(replaced).is_empty());
                let publish = "UPDATE campaigns SET offer = $2, decide_by = $3, open_until = $4, withdrawn = NULL,
                                   offer_number = offer_number + $5 WHERE id = $1";
                let terms = &offer.terms;
                let (decide_by, open_until) = (terms.decide_by.number(), terms.open_until.map(|day| day.number()));
                let (written, next) = (offer.written(), u32::from(!stands));
                sql.execute(publish, values![id, &written, decide_by, open_until, next]).await?;
                mark_published(sql, &self.slug, &publication.proposal, (&self.who, &note), self.now).await?;
                let improved = replaced.map(|_| match stands {
                    true => "no worse than the one before: acceptances stand",
                    false => "worse than the one before in something: acceptances end, and members are asked anew",
                });
                note = joined([note, signed, improved.unwrap_or_default().to_owned()]);
                // The mailing of the one before goes on, and says what is true of this one.
                news = news.filter(|_| !stands);
            }
            TakenStep::Activate(terms) => {
                if let Some(needs) = campaign.offer.as_ref().and_then(Offer::bid).and_then(|bid| bid.needs_members) {
                    let accepted = accepted_up_to(sql, id, needs).await?;
                    if accepted < needs {
                        return Ok(Stepped::TooFewAccepted { needs, accepted });
                    }
                }
                let copy = "UPDATE campaigns SET reward_cents = $2, group_size = $3, max_groups = $4, hold_days = $5, counts_on = $6
                            WHERE id = $1";
                let ReferralTerms { group_size, max_groups, hold_days, counts_on, .. } = *terms;
                // No supplier was ever told who accepted an offer of 1.0.0, so none can say who switched.
                let is_text = campaign.offer.as_ref().is_some_and(|offer| matches!(offer.deal, Deal::AsText(_)));
                let counts_on = if is_text { CountsOn::Accepted } else { counts_on };
                let values = values![id, terms.reward_cents(), group_size, max_groups, hold_days, counts_on.name()];
                sql.execute(copy, values).await?;
            }
        }
        go_to(sql, &campaign, (to, news), &self.who, (&note, self.note.1), self.now).await?;
        Ok(Stepped::Done(to))
    }
}

/// Takes the steps whose day is over; returns how many.
pub struct StepByDate(pub Timestamp);

impl Unit for StepByDate {
    type Done = u64;
    const HOW: How = How::Transaction;

    async fn apply(&self, sql: &mut dyn Sql) -> Result<u64, Failure> {
        // At most one per unit, because each stays locked until the unit ends. If it is not over by the day, it cannot be over by the hour.
        let gathering =
            "SELECT slug FROM campaigns WHERE state = 'gathering' AND gather_until < $1 ORDER BY gather_until LIMIT 1";
        let gathering = sql
            .rows(gathering, values![day_of(self.0)], |row| row.parsed(0, |slug| slug.parse::<CampaignSlug>().ok()))
            .await?;
        let mut steps = 0;
        for slug in gathering {
            let Some(campaign) = hold_alone(sql, &slug).await? else { continue };
            if campaign.state == CampaignState::Gathering && campaign.draft.gather_until.is_over(self.0) {
                go_to(sql, &campaign, (CampaignState::Negotiating, None), BY_DATE, ("", true), self.0).await?;
                steps += 1;
            }
        }
        Ok(steps)
    }
}

/// Members who accepted, counted no further than that.
async fn accepted_up_to(sql: &mut dyn Sql, campaign: i64, most: u32) -> Result<u32, Failure> {
    let count = "SELECT count(*) FROM
                     (SELECT 1 FROM participations WHERE campaign_id = $1 AND state = 'accepted' LIMIT $2) counted";
    Ok(sql.value(count, values![campaign, most]).await?.unwrap_or(0))
}

/// Sentences of a note.
fn joined<const N: usize>(parts: [String; N]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(". ")
}

async fn go_to(
    sql: &mut dyn Sql,
    campaign: &CampaignRecord,
    (to, news): (CampaignState, Option<CampaignMail>),
    who: &str,
    (note, mails): (&str, bool),
    now: Timestamp,
) -> Result<(), Failure> {
    let id = campaign.id.0;
    let step = write_history(sql, id, who, (Some(campaign.state), to), note, now).await?;
    let go = "UPDATE campaigns SET state = $2, active_at = coalesce($3, active_at), closed_at = $4, count_due = $5 WHERE id = $1";
    let at = |is_it: bool| is_it.then_some(now);
    let is_over = matches!(to, CampaignState::Closed | CampaignState::Cancelled);
    let count_due = step.filter(|_| to.begins_with_count());
    sql.execute(go, values![id, to.name(), at(to == CampaignState::Active), at(is_over), count_due]).await?;
    // No one hears about a cancelled draft.
    if let Some(kind) = news.filter(|_| to == CampaignState::Gathering || campaign.was_public()) {
        // Another offer, or that it was withdrawn, is mailed to those who were mailed before.
        let begin = "INSERT INTO campaign_mailings (campaign_id, kind, started_at, finished_at) VALUES ($1, $2, $3, $4)
                     ON CONFLICT (campaign_id, kind) DO UPDATE SET after_id = 0, queued = 0, started_at = excluded.started_at,
                         finished_at = excluded.finished_at, ended_early = FALSE";
        let finished_at = (!mails).then_some(now);
        sql.execute(begin, values![id, kind.name(), now, finished_at]).await?;
    }
    Ok(())
}

async fn write_history(
    sql: &mut dyn Sql,
    campaign: i64,
    who: &str,
    (from, to): (Option<CampaignState>, CampaignState),
    note: &str,
    now: Timestamp,
) -> Result<Option<i64>, Failure> {
    let add = "INSERT INTO campaign_history (campaign_id, at, who, from_state, to_state, note) VALUES ($1, $2, $3, $4, $5, $6)
               RETURNING id";
    let from = from.map_or("", CampaignState::name);
    sql.insert(add, values![campaign, now, who, from, to.name(), note]).await
}

/// The campaign with a slug, locked for this unit alone until it ends.
pub(crate) async fn hold_alone(sql: &mut dyn Sql, slug: &CampaignSlug) -> Result<Option<CampaignRecord>, Failure> {
    match sql.exists("SELECT 1 FROM campaigns WHERE slug = $1 FOR UPDATE", values![slug.as_str()]).await? {
        true => find(sql, slug).await,
        false => Ok(None),
    }
}
