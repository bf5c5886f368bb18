//! The operator's figures: what each category saves, and what a referral earns.
//!
//! The file gives figures only. Labels are the contract's, sums and rules are worked out here, so that no two answers
//! of the service can disagree.

pub mod category;

use std::collections::BTreeMap;

use serde::Deserialize;

use self::category::{Category, CategorySet};
use super::figure::dollars;
use super::language::Language;

/// The built-in sample, to be replaced by the operator's own figures.
const SAMPLE: &str = include_str!("../../../catalog.sample.toml");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    /// In the contract's order.
    listed: Vec<(Category, u32)>,
    pub referral: ReferralTerms,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferralTerms {
    pub reward_per_group: u32,
    pub group_size: u32,
    pub max_groups: u32,
    /// Days that somebody takes part in a campaign before they count for their referrer.
    pub hold_days: u32,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BadCatalog {
    #[error("{0}")]
    Syntax(String),
    #[error("[savings]: \"{0}\" is not a category; use one of {slugs}", slugs = Category::slugs())]
    UnknownCategory(String),
    #[error("[savings] lists no category; list at least one, such as internet = 300")]
    Empty,
    #[error("[{table}] {field} = {value}: must be between {least} and {most}")]
    OutOfRange { table: &'static str, field: String, value: i64, least: u32, most: u32 },
}

impl Catalog {
    /// Far above any household bill, and small enough that no sum over the catalog can overflow.
    const MOST_DOLLARS: u32 = 1_000_000;
    const MOST_PEOPLE: u32 = 10_000;
    const MOST_DAYS: u32 = 365;

    /// The built-in sample's figures; tests hold that it reads.
    pub fn sample() -> Self {
        Self::parse(SAMPLE).expect("the built-in sample is a good catalog")
    }

    /// Whether its figures are the sample's, which are made up.
    pub fn is_sample(&self) -> bool {
        *self == Self::sample()
    }

    pub fn parse(text: &str) -> Result<Self, BadCatalog> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            savings: BTreeMap<String, i64>,
            referral: Referral,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Referral {
            reward_per_group: i64,
            group_size: i64,
            max_groups: i64,
            hold_days: Option<i64>,
        }

        let file: File = toml::from_str(text).map_err(|error| BadCatalog::Syntax(locate(text, &error)))?;
        if file.savings.is_empty() {
            return Err(BadCatalog::Empty);
        }
        let mut listed = Vec::with_capacity(file.savings.len());
        for (slug, dollars) in file.savings {
            let category = Category::from_slug(&slug).ok_or_else(|| BadCatalog::UnknownCategory(slug.clone()))?;
            listed.push((category, within("savings", slug, dollars, 0, Self::MOST_DOLLARS)?));
        }
        listed.sort_by_key(|(category, _)| *category as u16);

        let figure = |field: &str, value, most| within("referral", field.to_owned(), value, 1, most);
        let referral = ReferralTerms {
            reward_per_group: figure("reward_per_group", file.referral.reward_per_group, Self::MOST_DOLLARS)?,
            group_size: figure("group_size", file.referral.group_size, Self::MOST_PEOPLE)?,
            max_groups: figure("max_groups", file.referral.max_groups, 1000)?,
            hold_days: match file.referral.hold_days {
                Some(days) => within("referral", "hold_days".to_owned(), days, 0, Self::MOST_DAYS)?,
                None => ReferralTerms::HOLD_DAYS,
            },
        };
        Ok(Self { listed, referral })
    }

    /// The categories that are offered, with their yearly savings in dollars.
    pub fn listed(&self) -> &[(Category, u32)] {
        &self.listed
    }

    /// What the chosen categories save in a year, where one and its parts are not added up: the larger of the two counts. For
    /// people, who read a sum as money; the API's sums are plain ones, as the contract has them.
    pub fn combined_savings(&self, chosen: CategorySet) -> u32 {
        // By what they are part of, or themselves: the whole, and its parts together.
        let mut kinds = BTreeMap::<&str, (u32, u32)>::new();
        for (category, dollars) in self.listed.iter().filter(|(category, _)| chosen.contains(*category)) {
            match category.part_of() {
                Some(whole) => kinds.entry(whole.slug()).or_default().1 += dollars,
                None => kinds.entry(category.slug()).or_default().0 += dollars,
            }
        }
        kinds.into_values().map(|(whole, parts)| whole.max(parts)).sum()
    }

    /// The same of all that is offered.
    pub fn headline_savings(&self) -> u32 {
        self.combined_savings(self.listed.iter().map(|(category, _)| *category).collect())
    }

    pub fn total_savings(&self) -> u32 {
        self.listed.iter().map(|(_, dollars)| dollars).sum()
    }

    /// What the chosen categories save in a year; one that is not offered saves nothing.
    pub fn savings_of(&self, chosen: CategorySet) -> u32 {
        self.listed.iter().filter(|(category, _)| chosen.contains(*category)).map(|(_, dollars)| dollars).sum()
    }
}

impl ReferralTerms {
    /// Where the catalog names none.
    pub const HOLD_DAYS: u32 = 30;

    pub fn max_reward(&self) -> u32 {
        self.reward_per_group * self.max_groups
    }

    /// The terms in sentences, with these figures in them.
    pub fn rules(&self, language: Language) -> Vec<String> {
        let words = language.words();
        let reward = dollars(self.reward_per_group);
        let earned = match self.group_size {
            1 => words.rule.single.put("reward", reward),
            size => words.rule.group.put("reward", reward).put("people", words.people(size)),
        };
        let most = words.rule.most.put("groups", words.groups(self.max_groups));
        vec![
            earned.plain(),
            most.put("most", dollars(self.max_reward())).plain(),
            words.rule.confirmed.to_string(),
            words.rule.oneself.to_string(),
        ]
    }
}

/// The parser's message with the line it is about.
fn locate(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message,
    }
}

fn within(table: &'static str, field: String, value: i64, least: u32, most: u32) -> Result<u32, BadCatalog> {
    u32::try_from(value).ok().filter(|figure| (least..=most).contains(figure)).ok_or(BadCatalog::OutOfRange {
        table,
        field,
        value,
        least,
        most,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERRAL: &str = "[referral]\nreward_per_group = 100\ngroup_size = 5\nmax_groups = 10\n";

    fn parse(savings: &str) -> Result<Catalog, BadCatalog> {
        Catalog::parse(&format!("[savings]\n{savings}\n{REFERRAL}"))
    }

    #[test]
    fn the_sample_lists_every_category() {
        let catalog = Catalog::parse(SAMPLE).unwrap();
        assert_eq!(catalog.listed().len(), Category::ALL.len());
        assert!(catalog.listed().iter().all(|(_, dollars)| *dollars > 0));
    }

    #[test]
    fn sums_and_rules_follow_from_the_figures() {
        let catalog = parse("travel = 400\ninternet = 300").unwrap();
        assert_eq!(catalog.listed(), [(Category::Internet, 300), (Category::Travel, 400)]);
        assert_eq!(catalog.total_savings(), 700);
        let mut chosen = CategorySet::default();
        chosen.insert(Category::Travel);
        chosen.insert(Category::Mortgage);
        assert_eq!(catalog.savings_of(chosen), 400, "an unlisted category adds nothing");
        let whole = parse("insurance = 500\ncar_insurance = 300\ntravel = 400\ninternet = 300").unwrap();
        assert_eq!((whole.total_savings(), whole.headline_savings()), (1500, 1200), "a part is not added to its whole");
        let parts = parse("insurance = 500\ncar_insurance = 400\nhome_insurance = 300").unwrap();
        assert_eq!(parts.headline_savings(), 700, "nor the whole to parts that are worth more");
        let set = CategorySet::from_slugs("car_insurance,internet");
        assert_eq!(whole.combined_savings(set), 600, "but counts where its whole is not chosen");
        let part = parse("car_insurance = 300").unwrap();
        assert_eq!(part.combined_savings(CategorySet::from_slugs("insurance,car_insurance")), 300, "or not offered");
        assert_eq!(catalog.referral.max_reward(), 1000);
        let rules = catalog.referral.rules(Language::English).join("\n");
        for part in ["$100", "group of 5 people", "same campaign", "10 groups", "$1,000"] {
            assert!(rules.contains(part), "{part} in {rules}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let text = |result: Result<Catalog, BadCatalog>| result.unwrap_err().to_string();
        assert!(text(parse("pets = 3")).starts_with("[savings]: \"pets\" is not a category; use one of mobile_bills,"));
        assert_eq!(text(parse("internet = -1")), "[savings] internet = -1: must be between 0 and 1000000");
        assert!(text(parse("")).contains("lists no category"));
        assert!(text(parse("internet = \"300\"")).contains("line 2"), "{}", text(parse("internet = \"300\"")));
        assert!(text(Catalog::parse("[savings]\ninternet = 1\n")).contains("referral"));
        assert!(text(Catalog::parse(&format!("[prices]\n[savings]\ninternet = 1\n{REFERRAL}"))).contains("prices"));
        let zero = REFERRAL.replace("= 5", "= 0");
        assert!(text(Catalog::parse(&format!("[savings]\ninternet = 1\n{zero}"))).contains("group_size = 0"));
    }
}
