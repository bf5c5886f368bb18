//! What the union says of itself in the catalog: a sentence in each language.

use std::collections::BTreeMap;

use super::BadCatalog;
use crate::domain::language::Language;
use crate::domain::text::is_hidden;

/// A text of the operator's, in each language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorText([String; Language::ALL.len()]);

impl OperatorText {
    /// In characters.
    pub const LONGEST: usize = 300;

    /// The texts of the table `[table]`, by the code of their language.
    pub(super) fn read(table: &'static str, mut texts: BTreeMap<String, String>) -> Result<Self, BadCatalog> {
        let mut read = <[String; Language::ALL.len()]>::default();
        for language in Language::ALL {
            let code = language.code();
            let text = texts.remove(code).ok_or(BadCatalog::MissingText { table, code })?;
            let text = text.trim();
            // One line: it stands among sentences of ours.
            if !(1..=Self::LONGEST).contains(&text.chars().count()) || text.chars().any(is_hidden) {
                return Err(BadCatalog::BadText { table, code });
            }
            text.clone_into(&mut read[language as usize]);
        }
        match texts.into_keys().next() {
            Some(unknown) => Err(BadCatalog::UnknownLanguage { table, unknown }),
            None => Ok(Self(read)),
        }
    }

    pub fn in_language(&self, language: Language) -> &str {
        &self.0[language as usize]
    }
}
