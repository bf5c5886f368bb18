//! The file of a campaign: what a campaign is about, until when it gathers, its texts, what it is measured by and what may be agreed to.

use std::collections::BTreeMap;

use jiff::Span;
use serde::Serialize;

use super::file::{BadFile, FileReader, text_for};
use super::mandate::Mandate;
use super::price::Price;
use super::reckoning::Household;
use super::{CampaignSlug, CampaignState, LastDay};
use crate::domain::catalog::category::{Category, CategorySet};
use crate::domain::language::Language;
use crate::domain::time::Timestamp;
use crate::domain::us_state::UsState;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignDraft {
    pub slug: CampaignSlug,
    pub category: Category,
    /// Empty: everywhere.
    pub states: Vec<UsState>,
    pub gather_until: LastDay,
    pub household: Household,
    /// What bids are compared with; they need one.
    pub benchmark: Option<Benchmark>,
    pub mandate: Option<Mandate>,
    /// Who looked at it, where the law rules such bills.
    pub reviewed: Option<Review>,
    /// In every language.
    pub texts: Vec<(Language, CampaignText)>,
}

/// What a typical household pays, and where that comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Benchmark {
    pub price: Price,
    pub source: SourceText,
    /// Where anybody can look it up.
    pub url: String,
    pub date: LastDay,
}

/// Whose figure it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum SourceText {
    /// For readers of every language.
    One(String),
    /// By the code of the language.
    Each(BTreeMap<&'static str, String>),
}

/// The program gives no legal advice: somebody signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    pub by: String,
    pub on: LastDay,
    pub note: String,
}

/// What a review has to speak of, each by a word that its note contains.
const REVIEWED: [(&str, &str); 3] = [
    ("commission", "the commission"),
    ("address", "handing over addresses"),
    ("reward", "rewards that depend on buying"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignText {
    pub title: String,
    pub summary: String,
}

impl CampaignDraft {
    pub fn parse(text: &str) -> Result<Self, BadFile> {
        Self::read(FileReader::new(text)?)
    }

    /// Reads what [`Self::parse`] took before, perhaps of another version.
    pub fn kept(text: &str) -> Option<Self> {
        Self::read(FileReader::kept(text).ok()?).ok()
    }

    fn read(mut file: FileReader) -> Result<Self, BadFile> {
        let slug = file.parsed("slug", CampaignSlug::FORM, |slug| slug.parse().ok());
        let category = file.parsed("category", &format!("one of {}", Category::slugs()), Category::from_slug);
        let states = read_states(&mut file);
        let gather_until = file.day("gather_until");
        let units = file.optional_whole("units", 1, 1000);
        let uses_a_year = file.optional_whole("uses_a_year", 1, 1000);
        let benchmark = file.optional_table("benchmark", "price, source, url and date", Benchmark::read);
        let mandate = file.optional_table("mandate", "target_cents, walk_away_cents and limits", Mandate::read);
        let reviewed = file.optional_table("reviewed", "by, on and note", Review::read);
        let texts = file.texts("title and summary", |text| {
            let title = text.text("title", 80, "Home internet, winter 2027");
            let summary = text.text("summary", 600, "One price for all who are in.");
            Some(CampaignText { title: title?, summary: summary? })
        });
        file.finish(|| {
            Some(Self {
                slug: slug?,
                category: category?,
                states,
                gather_until: gather_until?,
                household: Household { units: units.unwrap_or(1), uses_a_year },
                benchmark,
                mandate,
                reviewed,
                texts: texts?,
            })
        })
    }

    /// The texts for a reader.
    pub fn text(&self, language: Language) -> Option<&CampaignText> {
        text_for(&self.texts, language)
    }

    /// What may not change any more once it is this far; all of it at once. People have counted on it.
    pub fn edit_to(&self, new: &Self, state: CampaignState) -> Result<(), BadFile> {
        let mut mistakes = Vec::new();
        if new.slug != self.slug {
            mistakes
                .push(format!("slug: it stays \"{}\"; a campaign with another slug is another campaign", self.slug));
        }
        if state != CampaignState::Draft {
            if new.category != self.category {
                mistakes.push(format!("category: it stays \"{}\" once members were asked", self.category.slug()));
            }
            if new.states != self.states {
                mistakes.push("states: they stay as they are once members were asked".to_owned());
            }
        }
        if new.gather_until != self.gather_until && !matches!(state, CampaignState::Draft | CampaignState::Gathering) {
            mistakes.push(format!("gather_until: it stays {}; gathering is over", self.gather_until));
        }
        if matches!(state, CampaignState::Offered | CampaignState::Active) {
            let measured = |draft: &Self| (draft.household, draft.benchmark.clone());
            if measured(new) != measured(self) {
                mistakes
                    .push("units, uses_a_year and benchmark: they stay as they are once there is an offer".to_owned());
            }
        }
        if matches!(state, CampaignState::Closed | CampaignState::Cancelled) {
            mistakes.push(format!("the campaign is {}, and nothing of it changes anymore", state.name()));
        }
        if mistakes.is_empty() { Ok(()) } else { Err(BadFile(mistakes)) }
    }

    /// Whether its days make sense for a file that is taken now: members can still be asked, and the benchmark is recent.
    pub fn check_days(&self, state: CampaignState, now: Timestamp) -> Result<(), BadFile> {
        let mut mistakes = Vec::new();
        let is_asked = matches!(state, CampaignState::Draft | CampaignState::Gathering);
        if is_asked && self.gather_until.is_over(now) {
            mistakes.push(format!("gather_until: {} is over; write a day that lies ahead", self.gather_until));
        }
        if state == CampaignState::Draft || state.gathers() {
            mistakes.extend(self.benchmark.as_ref().and_then(|benchmark| benchmark.wrong_day(now)));
        }
        let ahead = self.reviewed.as_ref().filter(|reviewed| reviewed.on > LastDay::of(now));
        mistakes.extend(ahead.map(|reviewed| format!("reviewed.on: {} lies ahead", reviewed.on)));
        if mistakes.is_empty() { Ok(()) } else { Err(BadFile(mistakes)) }
    }

    /// What is missing before members may be asked, in a sentence.
    pub fn missing_review(&self) -> Option<String> {
        (self.category.is_regulated() && self.reviewed.is_none()).then(|| {
            let topics = REVIEWED.map(|(_, topic)| topic).join(", ");
            format!(
                "the law rules bills such as {}, and nobody has signed that they looked: `reviewed = {{ by, on, note }}` is missing, with \
                 a note on {topics}",
                self.category.slug()
            )
        })
    }

    /// Whether a member in that state may take part. Where it is for some states, they must have named one.
    pub fn is_for(&self, state: Option<UsState>) -> bool {
        self.states.is_empty() || state.is_some_and(|state| self.states.contains(&state))
    }

    /// Whether it is about a bill that somebody ticked: that very one, or one that is part of the other.
    pub fn is_about(&self, ticked: CategorySet) -> bool {
        let own = self.category;
        ticked.iter().any(|bill| bill == own || bill.part_of() == Some(own) || own.part_of() == Some(bill))
    }
}

impl Benchmark {
    pub(super) fn read(benchmark: &mut FileReader) -> Option<Self> {
        let price = Price::read(benchmark, "price");
        let source = SourceText::read(benchmark);
        let url = benchmark.parsed("url", "a web address that begins with https://", |url| {
            (url.starts_with("https://") && !url.contains(char::is_whitespace)).then(|| url.to_owned())
        });
        let date = benchmark.day("date");
        Some(Self { price: price?, source: source?, url: url?, date: date? })
    }

    /// Why nothing may be compared with it now, if so.
    pub fn wrong_day(&self, now: Timestamp) -> Option<String> {
        let (today, date) = (LastDay::of(now), self.date);
        let old = date.0.checked_add(Span::new().years(1)).map_or(date, LastDay);
        if date > today {
            Some(format!("benchmark.date: {date} lies ahead; write the day on which that price was seen"))
        } else if old < today {
            Some(format!("benchmark.date: {date} is more than a year ago; look for a newer figure"))
        } else {
            None
        }
    }
}

impl SourceText {
    fn read(benchmark: &mut FileReader) -> Option<Self> {
        const EXAMPLE: &str = "FCC urban rate survey";
        if !benchmark.has_table("source") {
            return benchmark.text("source", 200, EXAMPLE).map(Self::One);
        }
        benchmark.table("source", "text in each language", |source| {
            let texts = Language::ALL.map(|language| {
                let code = language.code();
                Some((code, source.text(code, 200, EXAMPLE)?))
            });
            let texts = BTreeMap::from_iter(texts.into_iter().flatten());
            (!texts.is_empty()).then_some(Self::Each(texts))
        })
    }

    pub fn text(&self, language: Language) -> &str {
        match self {
            Self::One(text) => text,
            Self::Each(texts) => texts.get(language.code()).or(texts.values().next()).map_or("", String::as_str),
        }
    }
}

impl Review {
    fn read(review: &mut FileReader) -> Option<Self> {
        let by = review.text("by", 100, "Ada Bell, counsel");
        let on = review.day("on");
        let note = review.text("note", 2000, "Commission: …. Addresses: …. Rewards: ….");
        if let Some(note) = &note {
            let note = note.to_lowercase();
            for (word, topic) in REVIEWED {
                if !note.contains(word) {
                    review.wrong("note", &format!("it says nothing of {topic}; write a sentence with the word {word}"));
                }
            }
        }
        Some(Self { by: by?, on: on?, note: note? })
    }
}

/// States by their codes; none where the field is left out.
pub(super) fn read_states(file: &mut FileReader) -> Vec<UsState> {
    let wants = "two-letter codes, such as [\"CA\", \"OR\"], or leave it out for all states";
    let states = file.list("states", ("the code of a state", wants), UsState::from_code).unwrap_or_default();
    for (n, state) in states.iter().enumerate() {
        if states[..n].contains(state) {
            file.wrong("states", &format!("{} is there twice", state.code()));
        }
    }
    states
}

#[cfg(test)]
mod tests {
    use super::super::tests::DRAFT as EVERYWHERE;
    use super::*;

    #[test]
    fn a_good_file_is_read() {
        let everywhere = CampaignDraft::parse(EVERYWHERE).unwrap();
        assert!(everywhere.states.is_empty() && everywhere.is_for(None));
        let some = EVERYWHERE.replace("gather_until", "states = [\"CA\", \"OR\"]\ngather_until");
        let draft = CampaignDraft::parse(&some).unwrap();
        assert_eq!((draft.slug.as_str(), draft.category), ("internet-2027", Category::Internet));
        assert_eq!(draft.text(Language::Spanish).unwrap().title, "Internet en casa, invierno de 2027");
        assert!(draft.is_for(Some(UsState::CA)) && !draft.is_for(Some(UsState::NY)) && !draft.is_for(None));
        assert!(draft.is_about(CategorySet::from_slugs("travel,internet")) && !draft.is_about(CategorySet::default()));
        let cars = CampaignDraft { category: Category::CarInsurance, ..draft };
        assert!(cars.is_about(CategorySet::from_slugs("insurance")));
        assert!(!cars.is_about(CategorySet::from_slugs("home_insurance")));
    }

    #[test]
    fn a_source_is_one_text_or_one_for_each_language() {
        const ONE: &str = "source = \"FCC urban rate survey\"";
        let each = "source = { en = \"FCC urban rate survey\", es = \"Encuesta de tarifas de la FCC\" }";
        let texts = |source: &str| {
            let benchmark = CampaignDraft::parse(&EVERYWHERE.replace(ONE, source)).unwrap().benchmark.unwrap();
            // As an offer keeps it.
            let kept = format!("{}", serde_json::json!({ "source": benchmark.source }));
            let again = SourceText::read(&mut FileReader::kept(&kept).unwrap()).unwrap();
            assert_eq!(again, benchmark.source);
            Language::ALL.map(|language| again.text(language).to_owned())
        };
        assert_eq!(texts(ONE), ["FCC urban rate survey"; 2]);
        assert_eq!(texts(each), ["FCC urban rate survey", "Encuesta de tarifas de la FCC"]);
        let missing = "source = { en = \"\", fr = \"Enquête\" }";
        let BadFile(mistakes) = CampaignDraft::parse(&EVERYWHERE.replace(ONE, missing)).unwrap_err();
        let wants = "write a text of 1 to 200 characters, such as \"FCC urban rate survey\"";
        assert_eq!(
            mistakes,
            [
                format!("benchmark.source.en: {wants}"),
                format!("benchmark.source.es: it is missing; {wants}"),
                "benchmark.source.fr: there is no such field; there are en, es".to_owned()
            ]
        );
    }

    #[test]
    fn what_members_counted_on_stays() {
        let old = CampaignDraft::parse(EVERYWHERE).unwrap();
        let mut new = old.clone();
        new.texts[0].1.title = "Better".to_owned();
        for state in CampaignState::ALL {
            let is_over = matches!(state, CampaignState::Closed | CampaignState::Cancelled);
            assert_eq!(old.edit_to(&new, state).is_err(), is_over, "{state:?}");
        }
        new.slug = "other".parse().unwrap();
        new.category = Category::Mortgage;
        new.states = vec![UsState::CA];
        new.gather_until = "2027-02-01".parse().unwrap();
        let mistakes = |state| old.edit_to(&new, state).unwrap_err().0.len();
        assert_eq!(
            [CampaignState::Draft, CampaignState::Gathering, CampaignState::Offered, CampaignState::Closed]
                .map(mistakes),
            [1, 3, 4, 5]
        );
    }

    #[test]
    fn all_mistakes_are_told_at_once_each_with_its_place() {
        let bad = r#"
            slug = "Internet 2027"
            categry = "internet"
            states = ["CA", "ca", "CA", 7]
            gather_until = 2027-02-30
            [text.en]
            title = ""
            [text.de]
            title = "Internet"
        "#;
        let BadFile(mistakes) = CampaignDraft::parse(bad).unwrap_err();
        for expected in [
            "slug: write 3 to 60 lower-case letters",
            "category: it is missing; write one of ",
            "states: \"ca\" is not the code of a state; write two-letter codes",
            "states: 7 is not the code of a state; write two-letter codes",
            "states: CA is there twice",
            "gather_until: write a day, such as 2027-01-31",
            "text.en.title: write a text of 1 to 80 characters",
            "text.en.summary: it is missing",
            "text.es: it is missing; write its title and summary",
            "text.de: there is no such field; there are en, es",
            "categry: there is no such field; did you mean category?",
        ] {
            assert!(mistakes.iter().any(|mistake| mistake.starts_with(expected)), "{expected}: {mistakes:#?}");
        }
        assert_eq!(mistakes.len(), 11, "{mistakes:#?}");
        assert_eq!(CampaignDraft::parse("slug = \n").unwrap_err().0.len(), 1);
        let BadFile(none) = CampaignDraft::parse("").unwrap_err();
        assert!(
            none.iter().any(|mistake| mistake == "text.en: it is missing; write its title and summary"),
            "{none:?}"
        );
        assert!(CampaignDraft::parse("a = 1\nslug = \n").unwrap_err().to_string().starts_with("line 2: "));
    }
}
