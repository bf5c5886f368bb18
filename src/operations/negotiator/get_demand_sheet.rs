//! `getDemandSheet`

use super::list_campaigns::{CampaignSummary, example_day};
use super::no_campaign;
use super::parameter::SlugParameter;
use crate::domain::campaign::LastDay;
use crate::domain::campaign::demand::{DemandCell, DemandSheet};
use crate::domain::campaign::offer::Offer;
use crate::domain::campaign::record::{CampaignRecord, NegotiationRound, OfferDraft};
use crate::domain::catalog::category::CategorySet;
use crate::domain::json::Usd;
use crate::domain::time::Timestamp;
use crate::operations::prelude::*;

/// Whose demand is asked for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DemandRequest {
    /// The campaign's slug, from listCampaigns.
    pub slug: SlugParameter,
}

impl ObjectInput for DemandRequest {}

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
    /// What was recorded of the negotiation so far. Operators and negotiators alone may read it: it is no part of the sheet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub negotiation: Option<NegotiationSoFar>,
}

/// Earlier rounds and drafts.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NegotiationSoFar {
    /// How many rounds are recorded.
    pub rounds_recorded: usize,
    /// The last 20 of them, the oldest first.
    pub rounds: Vec<RecordedRound>,
    /// How many drafts of an offer were proposed.
    pub drafts_proposed: usize,
    /// The last 20 of them, the oldest first.
    pub drafts: Vec<ProposedDraft>,
}

/// A round with a supplier, as recordRound took it.
#[derive(Serialize, JsonSchema)]
pub struct RecordedRound {
    pub at: Timestamp,
    pub supplier: String,
    pub asked: String,
    pub answered: String,
}

/// A draft that proposeOffer took.
#[derive(Serialize, JsonSchema)]
pub struct ProposedDraft {
    pub at: Timestamp,
    pub supplier: String,
}

impl NegotiationSoFar {
    /// Rounds, and drafts, that are shown.
    const LAST: usize = 20;

    fn of(rounds: Vec<NegotiationRound>, drafts: Vec<OfferDraft>) -> Self {
        let (rounds_recorded, drafts_proposed) = (rounds.len(), drafts.len());
        let round =
            |NegotiationRound { at, supplier, asked, answered, .. }| RecordedRound { at, supplier, asked, answered };
        let draft = |OfferDraft { at, file, .. }: OfferDraft| {
            let supplier = Offer::kept(&file).map(|offer| offer.supplier().to_owned()).unwrap_or_default();
            ProposedDraft { at, supplier }
        };
        Self {
            rounds_recorded,
            rounds: rounds.into_iter().skip(rounds_recorded.saturating_sub(Self::LAST)).map(round).collect(),
            drafts_proposed,
            drafts: drafts.into_iter().skip(drafts_proposed.saturating_sub(Self::LAST)).map(draft).collect(),
        }
    }
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
            negotiation: None,
        }
    }
}

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
         It is a stored count, taken at each step of the campaign and once a day, after the parts of at least five members differ. Every count is \
         rounded down to a multiple of five: say \"at least\". A state or another bill is named from 20 members. It names no member and has \
         no comment of theirs. Being in is no obligation: nobody has agreed to buy.\n\n\
         `negotiation` has the last rounds and drafts that were recorded, by you or before you; show them to no supplier."
            .to_owned()
    }

    async fn run(app: &App, caller: &Caller, input: DemandRequest) -> Result<DemandReport, Error> {
        let SlugParameter(slug) = input.slug;
        let found = app.negotiator.demand(&slug, caller.now).await.map_err(Error::unread)?;
        let Some(campaign) = found else { return Err(no_campaign(app, caller, &slug).await) };
        let (rounds, drafts) = app.negotiator.notes(&slug).await.map_err(Error::unread)?;
        let report = DemandReport::of(&campaign, &app.union.catalog, caller.now);
        Ok(DemandReport { negotiation: Some(NegotiationSoFar::of(rounds, drafts)), ..report })
    }

    fn example(_: &Catalog) -> Example<DemandReport> {
        let cell = |name: &str, members| DemandCell { name: name.to_owned(), members };
        let demand = DemandSheet {
            members_in: 1230,
            accepted: 0,
            by_state: vec![cell("CA", 980), cell("OR", 245)],
            in_other_states: 0,
            by_category: vec![cell("mobile_bills", 610)],
            in_other_categories: 0,
        };
        Example {
            request: Some(json!({ "slug": "internet-2027" })),
            answer: DemandReport {
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
                negotiation: Some(NegotiationSoFar {
                    rounds_recorded: 1,
                    rounds: vec![RecordedRound {
                        at: Timestamp::from_millis(1_801_450_000_000),
                        supplier: "Example Fiber, regional sales".to_owned(),
                        asked: "$45 a month for at least 1,230 households.".to_owned(),
                        answered: "$48 from 1,000 households on.".to_owned(),
                    }],
                    drafts_proposed: 0,
                    drafts: Vec::new(),
                }),
            },
        }
    }
}
