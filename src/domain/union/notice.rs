//! The notice of consent: the words that a person is shown before they press the button that makes them a member.
//!
//! The form, the mail and the page to confirm on show these words and no others, and each sign-up keeps their hash; the
//! store keeps the words themselves, and never changes them.

use std::sync::Arc;

use crate::domain::base32;
use crate::domain::language::Language;
use crate::domain::language::words::NoticeWords;

/// Five bits a character: 130 bits.
const HASH: usize = 26;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What it is, and below it a line for each point; one paragraph where an earlier version wrote it.
    pub words: Arc<str>,
    pub hash: Arc<str>,
}

impl Notice {
    pub fn of(words: &str) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, words.as_bytes());
        Self { words: words.into(), hash: base32::text::<HASH>(digest.as_ref()).into() }
    }
}

/// The notice of a union, in each language.
#[derive(Clone, PartialEq, Eq)]
pub struct Notices([Notice; Language::ALL.len()]);

impl Notices {
    pub fn of(union: &str, join_site: &str) -> Self {
        Self(Language::ALL.map(|language| {
            let NoticeWords { lead, point_1, point_2, point_3, point_4, point_5 } = &language.words().notice;
            let lines = [lead, point_1, point_2, point_3, point_4, point_5]
                .map(|line| line.put("union", union).put("own_page", format_args!("{join_site}/me")).plain());
            Notice::of(&lines.join("\n"))
        }))
    }

    pub fn in_language(&self, language: Language) -> &Notice {
        &self.0[language as usize]
    }

    /// The one that has this hash; none if it is not shown any more.
    pub fn find(&self, hash: &str) -> Option<&Notice> {
        self.0.iter().find(|notice| *notice.hash == *hash)
    }

    pub fn all(&self) -> &[Notice] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_have_another_hash() {
        let english = |union| Notices::of(union, "https://union.example").in_language(Language::English).clone();
        let notice = english("Consumer Union");
        assert_eq!(notice, english("Consumer Union"));
        assert_ne!(notice.hash, english("Consumer Unions").hash);
        assert_eq!(notice.hash.len(), HASH);
        assert!(notice.words.contains("https://union.example/me"));
        assert_eq!(notice.words.lines().count(), 6, "what it is, and five points");
        let all = Notices::of("Consumer Union", "https://union.example");
        assert_ne!(all.in_language(Language::Spanish).hash, notice.hash);
        assert_eq!(all.find(&notice.hash), Some(&notice));
        assert_eq!(all.find(""), None);
    }
}
