//! Who a partner is: its id in the store, and its name, which people read in their mail.

use std::fmt;

use unicode_normalization::UnicodeNormalization;

use crate::domain::text::is_hidden;

/// A partner inside the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartnerId(pub i64);

impl fmt::Display for PartnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The partner a key was issued to; people read it in the mail that asks them to confirm.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartnerName(String);

/// Why a text is no partner's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPartnerName {
    #[error(
        "a partner's name has 1 to {} characters on one line, no web address and nothing invisible, such as \"Acme Assistant\"",
        PartnerName::LONGEST
    )]
    Form,
    #[error(
        "in lists and metrics that name means the join form, or several partners together; give the partner another name"
    )]
    Reserved,
}

/// What the join form, and several partners together, are called where sources are listed.
const RESERVED: &[&str] = &["form", "theform", "(form)", "(others)"];

impl PartnerName {
    pub const LONGEST: usize = 100;

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether people would take the two for one: they differ in case, spaces or the width of letters at the most.
    pub fn is_like(&self, other: &str) -> bool {
        folded(&self.0) == folded(other)
    }

    /// A name as the store keeps it, which may be from a time with fewer rules.
    pub fn kept(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }
}

/// A name without what people overlook: case, spaces, and compatible spellings of a letter (NFKC).
pub fn folded(name: &str) -> String {
    name.nfkc().flat_map(char::to_lowercase).filter(|c| !c.is_whitespace()).collect()
}

/// People read the name in their mail: it must not lead anywhere, and must read as it is written (no bidi controls).
fn misleads(name: &str) -> bool {
    let lower = name.to_lowercase();
    name.chars().any(is_hidden)
        || lower.contains("//")
        || lower.contains('@')
        || lower.split(|c: char| c.is_whitespace() || "()<>\"'".contains(c)).any(|word| word.starts_with("www."))
        || lower.contains('/') && lower.split('/').next().is_some_and(|host| host.contains('.'))
}

impl std::str::FromStr for PartnerName {
    type Err = BadPartnerName;

    fn from_str(text: &str) -> Result<Self, BadPartnerName> {
        let name = text.trim();
        if name.is_empty() || name.chars().count() > Self::LONGEST || misleads(name) {
            return Err(BadPartnerName::Form);
        }
        if RESERVED.contains(&folded(name).as_str()) {
            return Err(BadPartnerName::Reserved);
        }
        Ok(Self(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_partner_is_called_like_the_form() {
        for bad in ["the form", "The  Form", "form", "FORM", "(form)", "(Others)", "Ｆｏｒｍ", " theform "] {
            assert_eq!(bad.parse::<PartnerName>(), Err(BadPartnerName::Reserved), "{bad}");
        }
        for good in ["Formosa", "The Form Company", "Others & Sons"] {
            assert!(good.parse::<PartnerName>().is_ok(), "{good}");
        }
    }

    #[test]
    fn names_that_people_would_confuse_are_alike() {
        let name: PartnerName = "Acme Assistant".parse().unwrap();
        for alike in ["acme assistant", "AcmeAssistant", "ACME  ASSISTANT", "Ａｃｍｅ Assistant"] {
            assert!(name.is_like(alike), "{alike}");
        }
        assert!(!name.is_like("Acme") && !name.is_like("Acme-Assistant"));
    }

    #[test]
    fn a_partners_name_is_one_short_line_that_leads_nowhere_and_reads_as_it_is_written() {
        for good in ["Acme Assistant", "Zoë's Helper", "Acme.ai", "AT&T / Home", "株式会社", " Acme "] {
            assert_eq!(good.parse::<PartnerName>().unwrap().as_str(), good.trim());
        }
        for bad in [
            "",
            " ",
            "http://acme.example",
            "Acme (https://acme.example)",
            "see www.acme.example",
            "acme.example/win",
            "//acme.example",
            "help@acme.example",
            "Acme\u{202e}tnatsissA",
            "Ac\u{200b}me",
            "two\nlines",
            "a\u{7}b",
            &"x".repeat(101),
        ] {
            assert_eq!(bad.parse::<PartnerName>(), Err(BadPartnerName::Form), "{bad:?}");
            assert!(PartnerName::kept(bad).is_some() || bad.is_empty(), "what was issued before stays");
        }
    }
}
