//! The campaigns of a demonstration: one in every state, each with a part of what an operator and a negotiator meet.

use anyhow::{bail, ensure};
use serde_json::{Value, json};

use super::orders::{first_mobile_answer, groceries_answer, second_mobile_answer, third_mobile_answer};
use super::story::{ANA, Story};
use crate::campaigns::bids::{AddBid, BidAdded};
use crate::campaigns::operator_step::StepNote;
use crate::campaigns::{Made, TakenStep};
use crate::domain::campaign::bid::Bid;
use crate::domain::campaign::draft::CampaignDraft;
use crate::domain::campaign::offer::{Proposal, Publication};
use crate::domain::campaign::{CampaignState, CampaignStep, LastDay};
use crate::domain::time::Timestamp;

/// The campaign that is negotiated.
pub(super) const NEGOTIATED: &str = "home-internet";

pub(super) const MOBILE: &str = "mobile-two-lines";
pub(super) const GROCERIES: &str = "warehouse-groceries";
pub(super) const STREAMING: &str = "streaming-bundle";
pub(super) const CAR_INSURANCE: &str = "car-insurance";
pub(super) const AUTO_LOAN: &str = "auto-loan";
const RESORT: &str = "beach-resort";

/// A campaign's file, as the operator wrote it.
fn file(slug: &str) -> &'static str {
    match slug {
        MOBILE => include_str!("campaigns/mobile-two-lines.toml"),
        GROCERIES => include_str!("campaigns/warehouse-groceries.toml"),
        STREAMING => include_str!("campaigns/streaming-bundle.toml"),
        NEGOTIATED => include_str!("campaigns/home-internet.toml"),
        CAR_INSURANCE => include_str!("campaigns/car-insurance.toml"),
        AUTO_LOAN => include_str!("campaigns/auto-loan.toml"),
        _ => include_str!("campaigns/beach-resort.toml"),
    }
}

impl Story<'_> {
    /// What the operator, suppliers and the negotiator do about campaigns on a day.
    pub(super) async fn steps_on(&mut self, day: i64) -> anyhow::Result<()> {
        use CampaignStep::{Cancel, Close, Open};
        let now = self.at(day, 10 * 60 + 30);
        match day {
            -148 => self.make(MOBILE, now).await,
            -147 => self.step(MOBILE, "campaigns open", Open, "", now).await,
            -126 => {
                let terms = (2900, 12, 1500);
                self.bid(MOBILE, self.flat_bid("Big Tower Wireless", terms, -60, "Two lines for $58."), now).await
            }
            -124 => {
                let terms = (2500, 12, 1500);
                self.bid(MOBILE, self.flat_bid("Prairie Mobile", terms, -70, "$25 a line for all who come."), now).await
            }
            -122 => self.offer(MOBILE, include_str!("campaigns/mobile-two-lines.offer.toml"), now).await,
            -114 => self.make(AUTO_LOAN, now).await,
            -112 => self.step(AUTO_LOAN, "campaigns open", Open, "", now).await,
            -103 => self.activate(MOBILE, now).await,
            -102 | -79 => self.hand_over(MOBILE, now).await,
            -98 => self.make(GROCERIES, now).await,
            -96 => self.step(GROCERIES, "campaigns open", Open, "", now).await,
            -92 => self.settle(MOBILE, first_mobile_answer, now).await,
            -75 => {
                self.step(AUTO_LOAN, "campaigns cancel", Cancel, "No lender answered below the benchmark.", now).await
            }
            -70 => self.bid(GROCERIES, self.warehouse_bid(), now).await,
            -64 => self.offer(GROCERIES, include_str!("campaigns/warehouse-groceries.offer.toml"), now).await,
            -62 => self.make_batch(now).await,
            -58 => self.settle_batch(now).await,
            -57 => self.settle(MOBILE, second_mobile_answer, now).await,
            -56 => self.make(STREAMING, now).await,
            -55 => self.step(STREAMING, "campaigns open", Open, "", now).await,
            -50 => self.settle(MOBILE, third_mobile_answer, now).await,
            -46 => self.make(NEGOTIATED, now).await,
            -45 => self.activate(GROCERIES, now).await,
            -44 => {
                self.hand_over(GROCERIES, now).await?;
                self.step(NEGOTIATED, "campaigns open", Open, "", now).await
            }
            -40 => self.step(MOBILE, "campaigns close", Close, "", now).await,
            -22 => self.make(CAR_INSURANCE, now).await,
            -20 => {
                self.settle(GROCERIES, groceries_answer, now).await?;
                let bid = self.flat_bid_a_year("Marquee Channel", 11_900, "Our best for a group.");
                self.bid(STREAMING, bid, now).await?;
                self.step(CAR_INSURANCE, "campaigns open", Open, "", now).await
            }
            -15 => {
                let mut bid =
                    self.flat_bid_a_year("Lantern Streaming", 9900, "$99 the first year, then the usual $139.");
                bid["steps"] = json!([
                    { "from_month": 1, "price": { "cents": 9900, "per": "year" } },
                    { "from_month": 13, "price": { "cents": 13_900, "per": "year" } },
                ]);
                bid.as_object_mut().and_then(|bid| bid.remove("price"));
                self.bid(STREAMING, bid, now).await
            }
            -9 => {
                self.offer(STREAMING, include_str!("campaigns/streaming-bundle.offer.toml"), now).await?;
                self.negotiate_on(day, now).await
            }
            -5 => self.make(RESORT, now).await,
            -14..0 => self.negotiate_on(day, now).await,
            _ => Ok(()),
        }
    }

    /// A day as files name it.
    pub(super) fn day_named(&self, day: i64) -> String {
        LastDay::of(self.at(day, 0)).to_string()
    }

    /// A file with its days: `{-20}` is twenty days ago.
    fn with_days(&self, file: &str) -> anyhow::Result<String> {
        let mut parts = file.split('{');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            match part.split_once('}').and_then(|(day, after)| Some((day.parse().ok()?, after))) {
                Some((day, after)) => text = text + &self.day_named(day) + after,
                // An inline table.
                None => text = text + "{" + part,
            }
        }
        Ok(text)
    }

    async fn make(&self, slug: &str, now: Timestamp) -> anyhow::Result<()> {
        let text = self.with_days(file(slug))?;
        let draft = CampaignDraft::parse(&text)?;
        draft.check_days(CampaignState::Draft, now)?;
        let made = self.by_ana("campaigns new", slug.to_owned(), now).campaigns().make(draft, text, ANA, now).await?;
        ensure!(made == Made::Done, "the campaign {slug} cannot be made: {made:?}");
        Ok(())
    }

    async fn take(
        &self,
        slug: &str,
        command: &'static str,
        taken: TakenStep,
        note: &str,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        let campaigns = self.by_ana(command, slug.to_owned(), now);
        let note = StepNote { who: ANA, note, mails: true };
        campaigns.campaigns().take_step(&slug.parse()?, taken, note, now).await?.map(|_| ()).map_err(Into::into)
    }

    async fn step(
        &self,
        slug: &str,
        command: &'static str,
        step: CampaignStep,
        note: &str,
        now: Timestamp,
    ) -> anyhow::Result<()> {
        self.take(slug, command, TakenStep::Plain(step), note, now).await
    }

    async fn activate(&self, slug: &str, now: Timestamp) -> anyhow::Result<()> {
        let terms = self.parts.union.catalog.referral;
        self.take(slug, "campaigns activate", TakenStep::Activate(terms), "", now).await
    }

    async fn bid(&self, slug: &str, bid: Value, now: Timestamp) -> anyhow::Result<()> {
        let add = AddBid { slug: slug.parse()?, bid: Bid::parse(&bid.to_string())?, who: ANA.to_owned(), now };
        match self.by_ana("campaigns bid", slug.to_owned(), now).run(add).await? {
            BidAdded::Done(_) => Ok(()),
            other => bail!("a bid of {slug} cannot be recorded: {other:?}"),
        }
    }

    async fn offer(&self, slug: &str, file: &str, now: Timestamp) -> anyhow::Result<()> {
        let proposal = Proposal::parse(&self.with_days(file)?)?;
        let publication = Publication { proposal, outside_mandate: None, figures_checked: None };
        self.take(slug, "campaigns offer", TakenStep::Offer(Box::new(publication)), "", now).await
    }
}
