//! What a bid comes to, as the negotiator reads it. The price that only people see is never in it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::campaign::bid::{Bid, missed};
use crate::domain::campaign::draft::CampaignDraft;
use crate::domain::campaign::mandate::Measure;
use crate::domain::campaign::wording::BidWords;

/// What a bid costs and saves, reckoned from its figures.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReckonedBid {
    /// For one household, with every fee and step in it, such as "$636 a year".
    pub all_in: String,
    pub all_in_cents: u64,
    /// What is paid when, with each change, such as "$39 a month, $79 a month from month 13".
    pub price: String,
    /// The benchmark, reckoned the same way.
    pub typical: String,
    pub saving: String,
    /// Whether it meets every point of the mandate, the target included; without a mandate, whether it saves anything.
    pub within: bool,
    /// Every point that it misses.
    pub misses: Vec<String>,
}

impl ReckonedBid {
    /// None where the campaign has no benchmark.
    pub fn of(bid: &Bid, campaign: &CampaignDraft) -> Option<Self> {
        let (words, reckoned) = BidWords::of(bid, campaign)?;
        let misses = missed(campaign.mandate.as_ref(), bid, reckoned, Measure::Target);
        Some(Self {
            all_in: words.all_in,
            all_in_cents: reckoned.all_in_cents,
            price: words.price,
            typical: words.typical,
            saving: words.saving,
            within: misses.is_empty(),
            misses,
        })
    }

    pub(super) fn example() -> Self {
        Self {
            all_in: "$636 a year".to_owned(),
            all_in_cents: 63_600,
            price: "$48 a month".to_owned(),
            typical: "$816 a year".to_owned(),
            saving: "about $180 a year".to_owned(),
            within: false,
            misses: vec!["it costs $636 a year with everything, and the target is $576".to_owned()],
        }
    }
}
