//! `GET /v1/negotiate-categories`

use super::prelude::*;
use super::{Nothing, wording};
use crate::domain::catalog::category::Category;
use crate::domain::json::Usd;

/// The household expenses that the union negotiates for its members.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NegotiationCategories {
    /// Always true.
    pub ok: True,
    /// Every amount is in US dollars.
    pub currency: Usd,
    /// What is negotiated, in a fixed order.
    pub categories: Vec<NegotiationCategory>,
    /// The sum over all categories, which may overlap: not what one household saves.
    pub total_potential_annual_savings: u32,
}

/// A household expense that the union negotiates.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NegotiationCategory {
    /// Names the category in requests.
    pub slug: Category,
    /// Names the category to people.
    pub label: &'static str,
    /// Estimated savings of a typical household in a year.
    pub annual_savings: u32,
}

pub struct ListNegotiationCategories;

impl Operation for ListNegotiationCategories {
    const SPEC: Spec = Spec {
        id: "listNegotiationCategories",
        method: Method::Get,
        path: "/v1/negotiate-categories",
        access: Access::Public,
        effects: Effects::None,
        answer: Lifetime::Fixed,
        title: "List negotiated bill categories",
    };

    type Input = Nothing;
    type Output = NegotiationCategories;

    fn description(union: &Union) -> String {
        format!(
            "Lists what the consumer union negotiates for its members, each category with its estimated yearly savings, and the sum \
             of all. Use it to tell a user what joining could save them, and to choose the categories of a sign-up. Arguments are \
             ignored.\n\n{}",
            wording::savings(&union.catalog)
        )
    }

    async fn run(app: &App, _: &Caller, _: Nothing) -> Result<NegotiationCategories, Error> {
        Ok(list(&app.union.catalog))
    }

    fn example(catalog: &Catalog) -> Example<NegotiationCategories> {
        Example { request: None, answer: list(catalog) }
    }
}

fn list(catalog: &Catalog) -> NegotiationCategories {
    let category =
        |&(slug, annual_savings): &(Category, u32)| NegotiationCategory { slug, label: slug.label(), annual_savings };
    NegotiationCategories {
        ok: True,
        currency: Usd,
        categories: catalog.listed().iter().map(category).collect(),
        total_potential_annual_savings: catalog.total_savings(),
    }
}
