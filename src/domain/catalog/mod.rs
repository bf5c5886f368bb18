//! The operator's figures: what each category saves, and what a referral earns.
//!
//! The file gives figures only. Labels are the contract's, sums and rules are worked out here, so that no two answers
//! of the service can disagree.

pub mod category;

use std::collections::BTreeMap;

use serde::Deserialize;

use self::category::{Category, CategorySet};
use super::figure::dollars;

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

    /// The built-in sample's figures; tests hold that it reads.
    pub fn sample() -> Self {
        Self::parse(SAMPLE).expect("the built-in sample is a good catalog")
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
        };
        Ok(Self { listed, referral })
    }

    /// The categories that are offered, with their yearly savings in dollars.
    pub fn listed(&self) -> &[(Category, u32)] {
        &self.listed
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
    pub fn max_reward(&self) -> u32 {
        self.reward_per_group * self.max_groups
    }

    /// The terms in sentences, with these figures in them.
    pub fn rules(&self) -> Vec<String> {
        let Self { reward_per_group, group_size, max_groups } = *self;
        let reward = dollars(reward_per_group);
        let people = if group_size == 1 { "person".to_owned() } else { format!("{group_size} people") };
        let groups = if max_groups == 1 { "one group".to_owned() } else { format!("{max_groups} groups") };
        let mut rules = vec![
            format!(
                "You earn {reward} for every full group of {people} you referred who take part in the same \
                 campaign once that campaign is active; a group with anyone missing earns nothing."
            ),
            format!("At most {groups} are rewarded per person, {} in all.", dollars(self.max_reward())),
            "A referred person counts once they have confirmed their sign-up from the e-mail sent to them.".to_owned(),
            "Referring yourself does not count, nor does a second address of the same mailbox.".to_owned(),
        ];
        if group_size == 1 {
            rules[0] = format!(
                "You earn {reward} for every person you referred who takes part in a campaign once that \
                 campaign is active; a referral that does not take part earns nothing."
            );
        }
        rules
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
        assert_eq!(catalog.referral.max_reward(), 1000);
        let rules = catalog.referral.rules().join("\n");
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
