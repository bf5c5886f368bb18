//! Every text of every language, as static data: `build.rs` makes it of `languages/`, with a field for each key of `en.toml`.

use std::fmt;

use super::Phrase;
use crate::domain::catalog::category::Category;
use crate::domain::us_state::UsState;

include!(concat!(env!("OUT_DIR"), "/words.rs"));

/// What runs in the build script, so that its own tests run with the others.
#[cfg(test)]
#[path = "../../../build/texts.rs"]
mod texts;

impl Words {
    pub fn category(&self, category: Category) -> &'static str {
        look_up(self.category, category.slug()).unwrap_or(category.label())
    }

    pub fn state(&self, state: UsState) -> &'static str {
        look_up(self.state, state.code()).unwrap_or(state.name())
    }

    /// By its two digits.
    pub(super) fn month(&self, number: &str) -> &'static str {
        look_up(self.month, number).unwrap_or_default()
    }
}

fn look_up(table: &[(&str, &'static str)], key: &str) -> Option<&'static str> {
    table.iter().find(|(known, _)| *known == key).map(|(_, text)| *text)
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words({})", self.site.language)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::language::Language;

    /// The build script knows neither the categories nor the states.
    #[test]
    fn tables_name_what_there_is_and_nothing_else() {
        for language in Language::ALL {
            let words = language.words();
            let is_category = |slug: &str| Category::ALL.iter().any(|category| category.slug() == slug);
            assert!(words.category.iter().all(|(slug, _)| is_category(slug)), "{words:?}");
            assert_eq!(words.category.len(), Category::ALL.len(), "{words:?}");
            let unknown = words.state.iter().find(|(code, _)| UsState::from_code(code).is_none());
            assert_eq!(unknown, None, "{words:?}");
            assert!((1..=12).all(|month| !words.month(&format!("{month:02}")).is_empty()), "{words:?}");
        }
        let english = Language::English.words();
        assert!(Category::ALL.iter().all(|category| english.category(*category) == category.label()));
    }
}
