//! `GET /v1/referral-program`

use super::Nothing;
use super::prelude::*;
use crate::domain::catalog::CountsOn;
use crate::domain::figure::dollars;
use crate::domain::json::Usd;
use crate::domain::language::Language;

/// What members earn for bringing others.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReferralProgram {
    /// Always true.
    pub ok: True,
    /// Every amount is in US dollars.
    pub currency: Usd,
    /// Paid for each full group of referred members.
    pub reward_per_group: u32,
    /// How many referred members make a group.
    pub group_size: u32,
    /// The most one person can earn.
    pub max_reward: u32,
    /// The most groups that one person is rewarded for.
    pub max_groups: u32,
    /// The terms in sentences: show them as they are.
    pub rules: Vec<String>,
}

pub struct GetReferralProgram;

impl Operation for GetReferralProgram {
    const SPEC: Spec = Spec {
        id: "getReferralProgram",
        method: Method::Get,
        path: "/v1/referral-program",
        access: Access::Public,
        effects: Effects::None,
        answer: Lifetime::Fixed,
        title: "Get the referral program's terms",
    };

    type Input = Nothing;
    type Output = ReferralProgram;

    fn description(union: &Union) -> String {
        let (terms, words) = (&union.catalog.referral, Language::English.words());
        let group = match terms.group_size {
            1 => "referred person".to_owned(),
            size => format!("full group of {}", words.people(size)),
        };
        let take_part = match (terms.counts_on, terms.hold_days) {
            (CountsOn::Accepted, 0) => "take part in the same active campaign".to_owned(),
            (CountsOn::Switched, 0) => {
                "have each switched in the same active campaign, as its supplier says".to_owned()
            }
            (CountsOn::Switched, _) => format!(
                "have each switched in the same campaign, as its supplier says, and kept the deal for {} since then",
                terms.hold(Language::English)
            ),
            (CountsOn::Accepted, _) => format!(
                "have each taken part in the same campaign for {}, from when it became active or they accepted its offer, the later of the two",
                terms.hold(Language::English)
            ),
        };
        format!(
            "Returns what a member earns for referring others: {} for each {group}, at most {} and {} in all. A group is full once \
             that many referred people {take_part}; signing people up alone earns nothing. The referrer and each of them must be members; the referrer need not take part. \
             `rules` say who counts and who pays, when and how. Use it before telling a user about rewards. Arguments are ignored.",
            dollars(terms.reward_per_group),
            words.groups(terms.max_groups),
            dollars(terms.max_reward()),
        )
    }

    async fn run(app: &App, _: &Caller, _: Nothing) -> Result<ReferralProgram, Error> {
        Ok(terms(&app.union.catalog))
    }

    fn example(catalog: &Catalog) -> Example<ReferralProgram> {
        Example { request: None, answer: terms(catalog) }
    }
}

fn terms(catalog: &Catalog) -> ReferralProgram {
    let terms = &catalog.referral;
    ReferralProgram {
        ok: True,
        currency: Usd,
        reward_per_group: terms.reward_per_group,
        group_size: terms.group_size,
        max_reward: terms.max_reward(),
        max_groups: terms.max_groups,
        rules: catalog.rules(Language::English),
    }
}
