//! The operator's figures: what each category saves and what a referral earns; and who runs the union, what it costs, how it earns.
//!
//! The file gives figures, and what only the union can say of itself. Labels are the contract's, sums and rules are worked out
//! here, so that no two answers of the service can disagree.

pub mod category;
mod operator_text;

use crate::domain::time::DAY;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use self::category::{Category, CategorySet};
use self::operator_text::{UnionTable, UnionTexts};
use super::figure::dollars;
use super::json::named_enum;
use super::language::Language;
use super::text::toml_mistake;

/// The built-in sample, to be replaced by the operator's own figures.
/// What is served where no catalog is given.
pub const SAMPLE: &str = include_str!("../../../catalog.sample.toml");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalog {
    /// In the contract's order.
    listed: Vec<(Category, u32)>,
    pub referral: ReferralTerms,
    /// Whether the file says who counts, so that nobody has to ask.
    says_counts_on: bool,
    texts: UnionTexts,
}

named_enum! {
    /// Who counts for their referrer.
    pub enum CountsOn {
        /// Whoever accepted the offer and keeps it.
        Accepted = "accepted",
        /// Of those, whoever the supplier says switched.
        Switched = "switched",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferralTerms {
    pub reward_per_group: u32,
    pub group_size: u32,
    pub max_groups: u32,
    /// Days that somebody takes part in a campaign before they count for their referrer.
    pub hold_days: u32,
    pub counts_on: CountsOn,
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
    #[error(
        "[referral] counts_on = \"{0}\": write \"switched\" (whoever the supplier says switched) or \"accepted\" (whoever accepted)"
    )]
    UnknownCountsOn(String),
    #[error("[{table}] {code}: it is missing; write one for each language")]
    MissingText { table: &'static str, code: &'static str },
    #[error("[union] {name}: write one text for each language: {name} = {{ en = \"…\", es = \"…\" }}", name = table.trim_start_matches("union."))]
    NotByLanguage { table: &'static str },
    #[error("[{table}] {code}: write a text of 1 to {most} characters on one line")]
    BadText { table: &'static str, code: &'static str, most: usize },
    #[error("[{table}] {unknown}: there is no such language; there are {codes}", codes = Language::ALL.map(Language::code).join(" and "))]
    UnknownLanguage { table: &'static str, unknown: String },
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
        static SAMPLE_FIGURES: LazyLock<Catalog> = LazyLock::new(Catalog::sample);
        let sample = &*SAMPLE_FIGURES;
        let referral = ReferralTerms { counts_on: sample.referral.counts_on, ..self.referral };
        self.listed == sample.listed && referral == sample.referral
    }

    /// Whether the file says who counts for their referrer; where it does not, whoever accepted does.
    pub fn says_counts_on(&self) -> bool {
        self.says_counts_on
    }

    /// What people will ask of the union and its own words do not answer, by the names of `[union]`: missing, or the sample's.
    pub fn unanswered(&self) -> Vec<&'static str> {
        self.texts.missing_or_of(&Self::sample().texts)
    }

    pub fn parse(text: &str) -> Result<Self, BadCatalog> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            savings: BTreeMap<String, i64>,
            referral: Referral,
            #[serde(default)]
            union: UnionTable,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Referral {
            reward_per_group: i64,
            group_size: i64,
            max_groups: i64,
            hold_days: Option<i64>,
            counts_on: Option<String>,
        }

        let file: File = toml::from_str(text).map_err(|error| BadCatalog::Syntax(toml_mistake(text, &error)))?;
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
            counts_on: match &file.referral.counts_on {
                Some(name) => CountsOn::from_name(name).ok_or_else(|| BadCatalog::UnknownCountsOn(name.clone()))?,
                None => CountsOn::Accepted,
            },
        };
        let says_counts_on = file.referral.counts_on.is_some();
        Ok(Self { listed, referral, says_counts_on, texts: UnionTexts::read(file.union)? })
    }

    /// What a referral earns, when, and who pays for it: in sentences, with these figures in them.
    pub fn rules(&self, language: Language) -> Vec<String> {
        let [.., funding] = self.answers(language);
        let mut rules = self.referral.rules(language);
        rules.push(funding);
        rules
    }

    /// Who runs the union, what joining costs, how the union earns: a sentence for each, or that the union has not published it.
    pub fn answers(&self, language: Language) -> [String; 3] {
        self.texts.sentences(language)
    }

    /// The same as questions with their answers.
    pub fn asked(&self, language: Language) -> [(&'static str, &str); 3] {
        self.texts.asked(language)
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

    /// What that sum leaves out: parts whose whole is offered, or a whole whose parts save more.
    pub fn left_out(&self) -> Vec<Category> {
        let dollars =
            |wanted| self.listed.iter().find(|(category, _)| *category == wanted).map(|(_, dollars)| *dollars);
        let parts = |whole| {
            let parts = self.listed.iter().filter(|(category, _)| category.part_of() == Some(whole));
            parts.map(|(_, dollars)| dollars).sum::<u32>()
        };
        let is_left_out = |category: Category| match category.part_of() {
            Some(whole) => dollars(whole).is_some_and(|dollars| dollars >= parts(whole)),
            None => dollars(category).is_some_and(|dollars| dollars < parts(category)),
        };
        self.listed.iter().map(|(category, _)| *category).filter(|category| is_left_out(*category)).collect()
    }

    /// One category to tell of first: a bill that most households have, or what is offered instead.
    pub fn example(&self) -> Option<(Category, u32)> {
        let internet = self.listed.iter().find(|(category, _)| *category == Category::Internet);
        internet.or(self.listed.first()).copied()
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

    /// The terms in sentences, with these figures in them. Every page and answer that states a figure of them says these.
    fn rules(&self, language: Language) -> Vec<String> {
        let (words, reward) = (language.words(), dollars(self.reward_per_group));
        let rule = &words.rule;
        let earned = match self.group_size {
            1 => rule.single.put("reward", reward),
            size => rule.group.put("reward", reward).put("people", words.people(size)),
        };
        let (counts, at_once) = match self.counts_on {
            CountsOn::Accepted => (&rule.counts, &rule.counts_at_once),
            CountsOn::Switched => (&rule.switched, &rule.switched_at_once),
        };
        let counts = match self.hold_days {
            0 => at_once.to_string(),
            _ => counts.put("days", self.hold(language)).plain(),
        };
        let once = if self.group_size == 1 { &rule.once_single } else { &rule.once };
        let most = rule.most.put("groups", words.groups(self.max_groups)).put("most", dollars(self.max_reward()));
        let sentences = [&rule.ends, &rule.members, once, &rule.oneself, &rule.fraud, &rule.terms, &rule.paid];
        let [ends, members, once, oneself, fraud, terms, paid] = sentences.map(ToString::to_string);
        vec![earned.plain(), counts, ends, members, once, most.plain(), oneself, fraud, terms, paid]
    }

    /// How long somebody takes part before they count.
    pub fn hold(&self, language: Language) -> String {
        language.words().days(DAY * self.hold_days)
    }
}

fn within(table: &'static str, field: String, value: i64, least: u32, most: u32) -> Result<u32, BadCatalog> {
    let figure = u32::try_from(value).ok().filter(|figure| (least..=most).contains(figure));
    figure.ok_or(BadCatalog::OutOfRange { table, field, value, least, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERRAL: &str = "[referral]\nreward_per_group = 100\ngroup_size = 5\nmax_groups = 10\n";

    fn parse(savings: &str) -> Result<Catalog, BadCatalog> {
        Catalog::parse(&format!("[savings]\n{savings}\n{REFERRAL}"))
    }

    #[test]
    fn the_sample_lists_every_category_and_no_part_above_its_whole() {
        let catalog = Catalog::parse(SAMPLE).unwrap();
        assert_eq!(catalog.listed().len(), Category::ALL.len());
        assert!(catalog.listed().iter().all(|(_, dollars)| *dollars > 0));
        let parts: Vec<_> = Category::ALL.iter().copied().filter(|category| category.part_of().is_some()).collect();
        assert_eq!(catalog.left_out(), parts, "together they save no more than their wholes");
    }

    #[test]
    fn what_the_sum_leaves_out_is_named() {
        let whole = parse("insurance = 500\ncar_insurance = 300\nalaska_cruise = 90\ninternet = 300").unwrap();
        assert_eq!(whole.left_out(), [Category::CarInsurance], "a part alone counts");
        let parts = parse("insurance = 500\ncar_insurance = 400\nhome_insurance = 300").unwrap();
        assert_eq!(parts.left_out(), [Category::Insurance]);
        let counted =
            |catalog: &Catalog| catalog.total_savings() - catalog.savings_of(catalog.left_out().into_iter().collect());
        assert_eq!((counted(&whole), counted(&parts)), (whole.headline_savings(), parts.headline_savings()));
        assert_eq!(whole.example(), Some((Category::Internet, 300)));
        assert_eq!(parts.example(), Some((Category::CarInsurance, 400)));
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
    }

    #[test]
    fn what_people_ask_is_told_in_each_language_or_that_the_union_has_not_published_it() {
        let with = |union: &str| Catalog::parse(&format!("[savings]\ninternet = 1\n{REFERRAL}{union}"));
        let told = with("[union.funding]\nen = \" Suppliers pay. \"\nes = \"Pagan los proveedores.\"").unwrap();
        let funding = "How the union earns and pays rewards: Suppliers pay.";
        assert_eq!(told.rules(Language::English).pop().unwrap(), funding);
        assert!(told.answers(Language::Spanish)[2].ends_with(": Pagan los proveedores."));
        let not_published = ["who runs it", "what joining costs", "how it earns and pays rewards"];
        let not_published = not_published.map(|what| format!("The union has not published {what}."));
        assert_eq!(with("").unwrap().answers(Language::English), not_published);
        assert_eq!(told.answers(Language::English)[..2], not_published[..2]);
        assert_eq!(told.unanswered(), ["run_by", "cost"]);
        assert_eq!(Catalog::sample().unanswered(), ["run_by", "cost", "funding"], "the sample's do not count");
        let own_texts = SAMPLE.replace("Sample text.", "Ours.");
        let own_texts = Catalog::parse(&own_texts).unwrap();
        assert!(own_texts.unanswered().is_empty() && own_texts.is_sample(), "its figures are the sample's");
        let refused = |union: &str| with(union).unwrap_err().to_string();
        let missing = "[union.funding] es: it is missing; write one for each language";
        assert_eq!(refused("[union.funding]\nen = \"We do.\""), missing);
        let text = |english: &str| format!("[union.funding]\nen = \"{english}\"\nes = \"x\"");
        for bad in ["", " ", "two\\nlines", &"x".repeat(301)] {
            let wanted = "[union.funding] en: write a text of 1 to 300 characters on one line";
            assert_eq!(refused(&text(bad)), wanted, "{bad:?}");
        }
        assert!(with(&text(&"ñ".repeat(300))).is_ok());
        let unknown = format!("{}\nfr = \"x\"", text("We do."));
        assert_eq!(refused(&unknown), "[union.funding] fr: there is no such language; there are en and es");
        assert!(refused("[union]\nfounding = 1").contains("founding"));
        let one = refused("[union]\ncost = \"Free\"");
        assert_eq!(one, "[union] cost: write one text for each language: cost = { en = \"…\", es = \"…\" }");
    }

    /// Terms with every figure unlike the others.
    const OTHERS: [(u32, u32, u32, u32); 3] = [(100, 5, 10, 30), (75, 8, 4, 45), (1200, 3, 6, 14)];

    #[test]
    fn every_figure_of_the_terms_is_in_the_rules_in_every_language() {
        for (reward_per_group, group_size, max_groups, hold_days) in OTHERS {
            let terms = ReferralTerms {
                reward_per_group,
                group_size,
                max_groups,
                hold_days,
                counts_on: CountsOn::ALL[hold_days as usize % 2],
            };
            for language in Language::ALL {
                let rules = terms.rules(language).join("\n");
                let figures = [dollars(reward_per_group), dollars(terms.max_reward())];
                let counts = [group_size, max_groups, hold_days].map(|count| format!(" {count} "));
                let missing: Vec<_> =
                    figures.iter().chain(&counts).filter(|figure| !rules.contains(figure.as_str())).collect();
                assert!(missing.is_empty(), "{missing:?} in {rules}");
            }
        }
        for counts_on in CountsOn::ALL {
            let plain = ReferralTerms { reward_per_group: 20, group_size: 1, max_groups: 1, hold_days: 0, counts_on };
            let rules = plain.rules(Language::English).join("\n");
            assert!(rules.contains("for every person you referred"), "{rules}");
            assert!(rules.contains("for at most one group") && !rules.contains("0 days"), "{rules}");
        }
    }

    #[test]
    fn what_taking_part_means_follows_from_who_counts() {
        let told = |line: &str| Catalog::parse(&format!("[savings]\ninternet = 1\n{REFERRAL}{line}"));
        let silent = told("").unwrap();
        assert_eq!((silent.referral.counts_on, silent.says_counts_on()), (CountsOn::Accepted, false));
        for counts_on in CountsOn::ALL {
            let catalog = told(&format!("counts_on = \"{}\"", counts_on.name())).unwrap();
            assert_eq!((catalog.referral.counts_on, catalog.says_counts_on()), (counts_on, true));
            let rules = catalog.rules(Language::English);
            assert!(rules[1].starts_with("Taking part means that "), "{rules:?}");
            assert_eq!(rules[1].contains("the supplier says"), counts_on == CountsOn::Switched, "{rules:?}");
            assert!(rules[2].contains("no longer count"), "{rules:?}");
        }
        assert_eq!(
            told("counts_on = \"paid\"").unwrap_err().to_string(),
            "[referral] counts_on = \"paid\": write \"switched\" (whoever the supplier says switched) or \"accepted\" (whoever accepted)"
        );
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
