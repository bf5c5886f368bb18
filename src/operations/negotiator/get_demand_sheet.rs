//! `getDemandSheet`

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::list_campaigns::CampaignSummary;
use super::parameter::SlugParameter;
use super::{no_campaign, unread};
use crate::app::App;
use crate::domain::campaign::demand::{DemandCell, DemandSheet};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::catalog::Catalog;
use crate::domain::catalog::category::CategorySet;
use crate::domain::json::{True, Usd};
use crate::domain::time::Timestamp;
use crate::domain::union::Union;
use crate::error::Error;
use crate::operations::{Access, Caller, Effects, Example, Input, Lifetime, Method, Operation, Spec, decode};

/// Whose demand is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DemandRequest {
    /// The campaign's slug, from listCampaigns.
    pub slug: SlugParameter,
}

impl Input for DemandRequest {
    const EXPECTED: bool = true;

    fn decode(body: &[u8]) -> Result<Self, Error> {
        decode::json(body)
    }
}

/// What members want of a campaign, as counted last.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DemandReport {
    /// Always true.
    pub ok: True,
    pub campaign: CampaignSummary,
    /// When it was counted; left out before the first count, with every figure 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Timestamp")]
    pub counted_at: Option<Timestamp>,
    pub demand: DemandSheet,
    pub estimate: SavingsEstimate,
}

/// What members may save in a year: the operator's estimate for a typical household, not a promise.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SavingsEstimate {
    /// Every amount is in US dollars.
    pub currency: Usd,
    /// One member; 0 where the catalog has no estimate for the category.
    pub per_member: u32,
    /// All members who are in, by the rounded count.
    pub all_members: u64,
}

impl DemandReport {
    pub fn of(campaign: &CampaignRecord, catalog: &Catalog, now: Timestamp) -> Self {
        let (counted_at, demand) = match &campaign.sheet {
            Some((taken_at, sheet)) => (Some(*taken_at), sheet.clone()),
            None => (None, DemandSheet::default()),
        };
        let mut category = CategorySet::default();
        category.insert(campaign.draft.category);
        let per_member = catalog.savings_of(category);
        let all_members = demand.members_in * u64::from(per_member);
        Self {
            ok: True,
            campaign: CampaignSummary::of(campaign, now),
            counted_at,
            demand,
            estimate: SavingsEstimate { currency: Usd, per_member, all_members },
        }
    }
}

#[derive(Debug)]
pub struct GetDemandSheet;

impl Operation for GetDemandSheet {
    const SPEC: Spec = Spec {
        id: "getDemandSheet",
        method: Method::Get,
        path: "",
        access: Access::Operator,
        effects: Effects::None,
        answer: Lifetime::Live,
        title: "Get a campaign's demand sheet",
    };

    type Input = DemandRequest;
    type Output = DemandReport;

    fn description(_: &Union) -> String {
        "Returns what to take to the table: how many members are in, by state and by the other bills they ticked, and what they may \
         save. Use it before you speak to a supplier, and quote no other figures.\n\n\
         It is a stored count, taken once a day at the most and only after at least five members changed. Every count is rounded \
         down to a multiple of five, and cells below five are merged: say \"at least\". It names no member and has no comment of \
         theirs. Being in is no obligation: nobody has agreed to buy."
            .to_owned()
    }

    async fn run(app: &App, caller: &Caller, input: DemandRequest) -> Result<DemandReport, Error> {
        let SlugParameter(slug) = input.slug;
        let found = app.negotiator.demand(&slug, caller.now).await.map_err(unread)?;
        let campaign = found.ok_or_else(|| no_campaign(&slug))?;
        Ok(DemandReport::of(&campaign, &app.union.catalog, caller.now))
    }

    fn example(_: &Catalog) -> Example<DemandReport> {
        let cell = |name: &str, members| DemandCell { name: name.to_owned(), members };
        let demand = DemandSheet {
            members_in: 1230,
            accepted: 0,
            by_state: vec![cell("CA", 980), cell("OR", 245)],
            in_other_states: 0,
            by_category: vec![cell("mobile_bills", 610)],
            in_other_categories: 15,
        };
        Example {
            request: Some(json!({ "slug": "internet-2027" })),
            answer: DemandReport {
                ok: True,
                campaign: CampaignSummary::example(),
                // 1 February 2027
                counted_at: Some(Timestamp::from_millis(1_801_440_000_000)),
                demand,
                estimate: SavingsEstimate { currency: Usd, per_member: 240, all_members: 295_200 },
            },
        }
    }
}
