//! What members want of a campaign, as a negotiator, `campaigns demand` and a sheet for suppliers say it.

use schemars::JsonSchema;
use serde::Serialize;

use super::list_campaigns::{CampaignSummary, example_day};
use crate::domain::campaign::LastDay;
use crate::domain::campaign::demand::{DemandCell, DemandSheet};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::catalog::Catalog;
use crate::domain::catalog::category::CategorySet;
use crate::domain::json::{True, Usd};
use crate::domain::time::Timestamp;

/// Why there is no count yet.
pub const NOT_COUNTED: &str = "Not counted yet: fewer than 5 members take part.";

/// The same after a step.
pub const BEING_COUNTED: &str = "Members are being counted: ask again in a minute. The running service counts them.";

/// What members want of a campaign, as counted last.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DemandReport {
    /// Always true.
    pub ok: True,
    /// Today's date, in UTC.
    pub today: LastDay,
    pub campaign: CampaignSummary,
    /// When members were counted; left out before the first count, and while they are being counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted_at: Option<Timestamp>,
    /// Why there is no count; left out once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_counted: Option<&'static str>,
    /// What was counted; left out before the first count, and while members are being counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand: Option<DemandSheet>,
    pub estimate: SavingsEstimate,
}

/// What members may save in a year: the operator's estimate for a typical household, not a promise.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SavingsEstimate {
    /// Every amount is in US dollars.
    pub currency: Usd,
    /// One member; 0 where the catalog has no estimate for the category.
    pub per_member: u32,
    /// All members who are in, by the rounded count; left out before the first count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_members: Option<u64>,
    /// True: the operator gave no catalog, and these are figures of the built-in sample, which are made up. Quote none of them.
    pub from_sample: bool,
}

impl DemandReport {
    pub fn of(campaign: &CampaignRecord, catalog: &Catalog, now: Timestamp) -> Self {
        let (counted_at, demand) = campaign.sheet.clone().filter(|_| !campaign.is_counting).unzip();
        let why_not = if campaign.is_counting { BEING_COUNTED } else { NOT_COUNTED };
        let mut category = CategorySet::default();
        category.insert(campaign.draft.category);
        let per_member = catalog.savings_of(category);
        let all_members = demand.as_ref().map(|sheet| sheet.members_in * u64::from(per_member));
        Self {
            ok: True,
            today: LastDay::of(now),
            campaign: CampaignSummary::of(campaign, now),
            counted_at,
            not_counted: demand.is_none().then_some(why_not),
            demand,
            estimate: SavingsEstimate { currency: Usd, per_member, all_members, from_sample: catalog.is_sample() },
        }
    }

    pub(crate) fn example() -> Self {
        let cell = |name: &str, members| DemandCell { name: name.to_owned(), members };
        let demand = DemandSheet {
            members_in: 1230,
            accepted: 0,
            by_state: vec![cell("CA", 980), cell("OR", 245)],
            in_other_states: 0,
            by_category: vec![cell("mobile_bills", 610)],
            in_other_categories: 0,
        };
        Self {
            ok: True,
            today: example_day(),
            campaign: CampaignSummary::example(),
            // Feb 1, 2027
            counted_at: Some(Timestamp::from_millis(1_801_440_000_000)),
            not_counted: None,
            demand: Some(demand),
            estimate: SavingsEstimate {
                currency: Usd,
                per_member: 240,
                all_members: Some(295_200),
                from_sample: false,
            },
        }
    }
}
