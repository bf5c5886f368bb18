//! `listCampaigns`

use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::unread;
use crate::app::App;
use crate::domain::campaign::record::{CampaignRecord, NextDate};
use crate::domain::campaign::{CampaignState, LastDay};
use crate::domain::catalog::Catalog;
use crate::domain::catalog::category::Category;
use crate::domain::json::True;
use crate::domain::language::Language;
use crate::domain::time::Timestamp;
use crate::domain::union::Union;
use crate::domain::us_state::UsState;
use crate::error::Error;
use crate::operations::{Access, Caller, Effects, Example, Input, Lifetime, Method, Operation, Spec, decode};

/// Which campaigns are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CampaignListRequest {
    /// True: also drafts, and campaigns that are closed or cancelled.
    #[serde(default)]
    pub all: bool,
}

impl Input for CampaignListRequest {
    const EXPECTED: bool = true;

    fn decode(body: &[u8]) -> Result<Self, Error> {
        decode::json(body)
    }
}

/// The campaigns, in the order in which they were made.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CampaignSummaries {
    /// Always true.
    pub ok: True,
    pub campaigns: Vec<CampaignSummary>,
}

/// A campaign in a few words.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CampaignSummary {
    /// Names the campaign in the other tools and in commands.
    pub slug: String,
    /// What is negotiated.
    pub category: Category,
    /// draft, gathering, negotiating, offered, active, closed or cancelled.
    pub state: CampaignState,
    /// In English, as members see it.
    pub title: String,
    /// The states that it is for; empty: everywhere.
    pub states: Vec<UsState>,
    /// Members are asked until the end of this day.
    pub gather_until: LastDay,
    /// Members who are in, as counted last: rounded down to a multiple of five, 0 for fewer than five.
    #[serde(rename = "in")]
    pub members_in: u64,
    /// Of these, members who accepted the offer; rounded likewise.
    pub accepted: u64,
    /// What a date does by itself next; left out where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub next: Option<String>,
    /// The supplier of the published offer; left out before there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub supplier: Option<String>,
}

impl CampaignSummary {
    pub fn of(campaign: &CampaignRecord, now: Timestamp) -> Self {
        let CampaignRecord { draft, offer, .. } = campaign;
        Self {
            slug: draft.slug.to_string(),
            category: draft.category,
            state: campaign.state,
            title: title(campaign),
            states: draft.states.clone(),
            gather_until: draft.gather_until,
            members_in: campaign.counted_in(),
            accepted: campaign.sheet.as_ref().map_or(0, |(_, sheet)| sheet.accepted),
            next: campaign.next_date(now).map(next_words),
            supplier: offer.as_ref().map(|offer| offer.supplier.clone()),
        }
    }
}

impl CampaignSummary {
    pub(super) fn example() -> Self {
        Self {
            slug: "internet-2027".to_owned(),
            category: Category::Internet,
            state: CampaignState::Negotiating,
            title: "Home internet, winter 2027".to_owned(),
            states: vec![UsState::CA, UsState::OR],
            gather_until: LastDay(Date::constant(2027, 1, 31)),
            members_in: 1230,
            accepted: 0,
            next: None,
            supplier: None,
        }
    }
}

/// As members read it in English.
pub fn title(campaign: &CampaignRecord) -> String {
    campaign.draft.text(Language::English).map(|text| text.title.clone()).unwrap_or_default()
}

/// What a date does, told beforehand.
fn next_words(next: NextDate) -> String {
    match next {
        NextDate::Negotiating(day) => format!("becomes negotiating after {day}"),
        NextDate::AcceptingEnds(day) => format!("accepting ends after {day}"),
    }
}

#[derive(Debug)]
pub struct ListCampaigns;

impl Operation for ListCampaigns {
    const SPEC: Spec = Spec {
        id: "listCampaigns",
        method: Method::Get,
        path: "",
        access: Access::Operator,
        effects: Effects::None,
        answer: Lifetime::Live,
        title: "List the campaigns",
    };

    type Input = CampaignListRequest;
    type Output = CampaignSummaries;

    fn description(_: &Union) -> String {
        "Lists the campaigns that are under way: what is negotiated, how far it is, how many members are in, and what the next \
         date does by itself. Use it first, to find the slug that every other tool takes.\n\n\
         Work on those whose state is `gathering` or `negotiating`: only they take rounds and proposals."
            .to_owned()
    }

    async fn run(app: &App, caller: &Caller, input: CampaignListRequest) -> Result<CampaignSummaries, Error> {
        let campaigns = app.negotiator.list(caller.now).await.map_err(unread)?;
        let is_under_way = |campaign: &&CampaignRecord| {
            input.all || campaign.state.is_public() && campaign.state != CampaignState::Closed
        };
        let campaigns = campaigns.iter().filter(is_under_way);
        Ok(CampaignSummaries {
            ok: True,
            campaigns: campaigns.map(|campaign| CampaignSummary::of(campaign, caller.now)).collect(),
        })
    }

    fn example(_: &Catalog) -> Example<CampaignSummaries> {
        Example {
            request: Some(json!({})),
            answer: CampaignSummaries { ok: True, campaigns: vec![CampaignSummary::example()] },
        }
    }
}
