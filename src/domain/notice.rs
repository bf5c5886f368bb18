//! The notice of consent: the words that a person is shown before they press the button that makes them a member.
//!
//! The form, the mail and the page to confirm on show these words and no others, and each sign-up keeps their hash; the
//! store keeps the words themselves, and never changes them.

use std::sync::Arc;

use super::base32;

/// Five bits a character: 130 bits.
const HASH: usize = 26;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// One sentence after the other.
    pub words: Arc<str>,
    pub hash: Arc<str>,
}

impl Notice {
    /// The notice of a union.
    pub fn of(union: &str, join_site: &str) -> Self {
        let words = format!(
            "By confirming you join {union}. Members pool their demand, and an AI negotiates better prices and terms on the \
             household bills they already pay. Joining changes none of your contracts: you take part in a campaign only when \
             you say so. We keep your address and your answers, and how you signed up. At {join_site}/me you see all of \
             it, change it, leave, or have it erased."
        );
        let digest = ring::digest::digest(&ring::digest::SHA256, words.as_bytes());
        let hash: String = base32::encode::<HASH>(digest.as_ref()).into_iter().map(char::from).collect();
        Self { words: words.into(), hash: hash.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_words_have_another_hash() {
        let notice = Notice::of("Consumer Union", "https://union.example");
        assert_eq!(notice, Notice::of("Consumer Union", "https://union.example"));
        assert_ne!(notice.hash, Notice::of("Consumer Unions", "https://union.example").hash);
        assert_eq!(notice.hash.len(), HASH);
        assert!(notice.words.contains("https://union.example/me"));
    }
}
