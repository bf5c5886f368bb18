//! `listCampaigns`

use jiff::civil::Date;

use super::{begin, client_of};
use crate::domain::campaign::record::CampaignRecord;
use crate::domain::campaign::{CampaignState, LastDay};
use crate::domain::catalog::category::Category;
use crate::domain::language::Language;
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;
use crate::operations::prelude::*;

/// Which campaigns are listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CampaignListRequest {
    /// True: also drafts, and campaigns that are closed or cancelled.
    #[serde(default)]
    pub all: bool,
}

impl ObjectInput for CampaignListRequest {}

/// The campaigns, in the order in which they were made.
#[derive(Serialize, JsonSchema)]
pub struct CampaignSummaries {
    /// Always true.
    pub ok: True,
    /// Today's date, in UTC.
    pub today: LastDay,
    pub campaigns: Vec<CampaignSummary>,
}

/// A campaign in a few words.
#[derive(Serialize, JsonSchema)]
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
    /// In English, as members see it.
    pub summary: String,
    /// The US states that the campaign is for, by two-letter code; empty: all of them.
    pub states: Vec<UsState>,
    /// Members are asked until the end of this day.
    pub gather_until: LastDay,
    /// Members who are in, as counted last: rounded down to a multiple of five, 0 for fewer than five. Left out while they are being
    /// counted, and before the first count, which comes once five members take part.
    #[serde(rename = "in")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members_in: Option<u64>,
    /// Of these, members who accepted the offer; rounded, and left out, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<u64>,
    /// What a date does by itself next; left out where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The supplier of the published offer; left out before there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supplier: Option<String>,
    /// True: a person paused its negotiation; leave it alone. Left out otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub paused: bool,
}

impl CampaignSummary {
    pub fn of(campaign: &CampaignRecord, now: Timestamp) -> Self {
        let CampaignRecord { draft, offer, .. } = campaign;
        let text = draft.text(Language::English);
        let is_counted = campaign.sheet.is_some();
        Self {
            slug: draft.slug.to_string(),
            category: draft.category,
            state: campaign.state,
            title: text.map(|text| text.title.clone()).unwrap_or_default(),
            summary: text.map(|text| text.summary.clone()).unwrap_or_default(),
            states: draft.states.clone(),
            gather_until: draft.gather_until,
            members_in: campaign.counted_in().filter(|_| is_counted),
            accepted: campaign.counted_accepted().filter(|_| is_counted),
            next: campaign.next_date(now).map(|next| next.to_string()),
            supplier: offer.as_ref().map(|offer| offer.supplier().to_owned()),
            paused: false,
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
            summary: "Faster for less: one price for all who are in.".to_owned(),
            states: vec![UsState::CA, UsState::OR],
            gather_until: LastDay(Date::constant(2027, 1, 31)),
            members_in: Some(1230),
            accepted: Some(0),
            next: None,
            supplier: None,
            paused: false,
        }
    }
}

/// When the examples are answered.
pub(super) const fn example_day() -> LastDay {
    LastDay(Date::constant(2027, 2, 2))
}

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
         Work on those whose state is `gathering` or `negotiating`: only they take rounds, bids and drafts."
            .to_owned()
    }

    async fn run(app: &App, caller: &Caller, input: CampaignListRequest) -> Result<CampaignSummaries, Error> {
        let pauses = begin(app, None).await?;
        let campaigns = app.negotiator.list(caller.now).await.map_err(Error::unread)?;
        app.negotiator.note_read(None, &client_of(caller), caller.now).await.map_err(Error::unsaved)?;
        let is_under_way = |campaign: &&CampaignRecord| {
            input.all || campaign.state.is_public() && campaign.state != CampaignState::Closed
        };
        let campaigns = campaigns.iter().filter(is_under_way);
        Ok(CampaignSummaries {
            ok: True,
            today: LastDay::of(caller.now),
            campaigns: campaigns
                .map(|campaign| CampaignSummary {
                    paused: pauses.iter().any(|pause| pause.slug.as_ref() == Some(campaign.slug())),
                    ..CampaignSummary::of(campaign, caller.now)
                })
                .collect(),
        })
    }

    fn example(_: &Catalog) -> Example<CampaignSummaries> {
        Example {
            request: Some(json!({})),
            answer: CampaignSummaries { ok: True, today: example_day(), campaigns: vec![CampaignSummary::example()] },
        }
    }
}
