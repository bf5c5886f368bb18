//! What `campaigns new` reads: what a campaign is about, until when it gathers, and its texts.

use super::file::{BadFile, FileReader, text_for};
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
    /// In every language.
    pub texts: Vec<(Language, CampaignText)>,
}

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
        let wants = "two-letter codes, such as [\"CA\", \"OR\"], or leave it out for all states";
        let states = file.list("states", ("the code of a state", wants), UsState::from_code).unwrap_or_default();
        for (n, state) in states.iter().enumerate() {
            if states[..n].contains(state) {
                file.wrong("states", &format!("{} is there twice", state.code()));
            }
        }
        let gather_until = file.day("gather_until");
        let texts = file.texts("title and summary", |text| {
            let title = text.text("title", 80, "Home internet, winter 2027");
            let summary = text.text("summary", 600, "One price for all who are in.");
            Some(CampaignText { title: title?, summary: summary? })
        });
        file.finish(|| {
            Some(Self { slug: slug?, category: category?, states, gather_until: gather_until?, texts: texts? })
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
        if matches!(state, CampaignState::Closed | CampaignState::Cancelled) {
            mistakes.push(format!("the campaign is {}, and nothing of it changes anymore", state.name()));
        }
        if mistakes.is_empty() { Ok(()) } else { Err(BadFile(mistakes)) }
    }

    /// Whether members can still be asked, for a file that is taken now: gathering would end at once.
    pub fn check_days(&self, state: CampaignState, now: Timestamp) -> Result<(), BadFile> {
        let is_asked = matches!(state, CampaignState::Draft | CampaignState::Gathering);
        if is_asked && self.gather_until.is_over(now) {
            let over = format!("gather_until: {} is over; write a day that lies ahead", self.gather_until);
            return Err(BadFile(vec![over]));
        }
        Ok(())
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
