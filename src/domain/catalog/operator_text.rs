//! What only the union can say of itself in the catalog: sentences in each language.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::BadCatalog;
use crate::domain::language::Language;
use crate::domain::text::is_hidden;

/// A text of the operator's, in each language.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OperatorText([String; Language::ALL.len()]);

impl OperatorText {
    /// In characters.
    const LONGEST: usize = 300;

    /// The texts of the table `[table]`, by the code of their language.
    fn read(table: &'static str, texts: toml::Value) -> Result<Self, BadCatalog> {
        let texts = texts.try_into::<BTreeMap<String, String>>();
        let mut texts = texts.map_err(|_| BadCatalog::NotByLanguage { table })?;
        let mut read = <[String; Language::ALL.len()]>::default();
        for language in Language::ALL {
            let code = language.code();
            let text = texts.remove(code).ok_or(BadCatalog::MissingText { table, code })?;
            let text = text.trim();
            // One line: it stands among sentences of ours.
            if !(1..=Self::LONGEST).contains(&text.chars().count()) || text.chars().any(is_hidden) {
                return Err(BadCatalog::BadText { table, code, most: Self::LONGEST });
            }
            text.clone_into(&mut read[language as usize]);
        }
        match texts.into_keys().next() {
            Some(unknown) => Err(BadCatalog::UnknownLanguage { table, unknown }),
            None => Ok(Self(read)),
        }
    }
}

/// The table `[union]` as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnionTable {
    run_by: Option<toml::Value>,
    cost: Option<toml::Value>,
    funding: Option<toml::Value>,
}

/// What people ask before they join: who runs the union, what it costs, how it earns. None where the union has not said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnionTexts {
    run_by: Option<OperatorText>,
    cost: Option<OperatorText>,
    funding: Option<OperatorText>,
}

impl UnionTexts {
    pub(super) fn read(table: UnionTable) -> Result<Self, BadCatalog> {
        let read = |name, texts: Option<_>| texts.map(|texts| OperatorText::read(name, texts)).transpose();
        Ok(Self {
            run_by: read("union.run_by", table.run_by)?,
            cost: read("union.cost", table.cost)?,
            funding: read("union.funding", table.funding)?,
        })
    }

    /// A sentence for each, in the same order everywhere; one that is missing is not made up.
    pub(super) fn sentences(&self, language: Language) -> [String; 3] {
        let words = &language.words().answer;
        [
            (&self.run_by, &words.run_by, &words.no_run_by),
            (&self.cost, &words.cost, &words.no_cost),
            (&self.funding, &words.funding, &words.no_funding),
        ]
        .map(|(text, told, missing)| match text {
            Some(OperatorText(texts)) => told.put("text", &texts[language as usize]).plain(),
            None => missing.to_string(),
        })
    }

    /// What is asked, and the union's own words, or that it has not said so.
    pub(super) fn asked(&self, language: Language) -> [(&'static str, &str); 3] {
        let words = &language.words().answer;
        [
            (&words.asked_run_by, &self.run_by, &words.no_run_by),
            (&words.asked_cost, &self.cost, &words.no_cost),
            (&words.asked_funding, &self.funding, &words.no_funding),
        ]
        .map(|(asked, text, missing)| {
            (asked.as_str(), text.as_ref().map_or(missing.as_str(), |OperatorText(texts)| &texts[language as usize]))
        })
    }

    /// Those that are missing or another's, by their names in the table.
    pub(super) fn missing_or_of(&self, other: &Self) -> Vec<&'static str> {
        let texts = [
            ("run_by", &self.run_by, &other.run_by),
            ("cost", &self.cost, &other.cost),
            ("funding", &self.funding, &other.funding),
        ];
        let unsaid = texts.into_iter().filter(|(_, text, other)| text.is_none() || text == other);
        unsaid.map(|(name, ..)| name).collect()
    }
}
