//! Who a partner is: its id in the store, and its name, which people read in their mail.

use std::fmt;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a partner's name has 1 to {} characters on one line, no web address and nothing invisible, such as \"Acme Assistant\"",
    PartnerName::LONGEST
)]
pub struct BadPartnerName;

impl PartnerName {
    pub const LONGEST: usize = 100;

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A name as the store keeps it, which may be from a time with fewer rules.
    pub fn kept(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }
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
            return Err(BadPartnerName);
        }
        Ok(Self(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partner_names_are_one_short_line() {
        assert_eq!(" Acme Assistant ".parse::<PartnerName>().unwrap().as_str(), "Acme Assistant");
        for bad in ["", "  ", "a\nb", "a\u{7}b", &"x".repeat(101)] {
            assert_eq!(bad.parse::<PartnerName>(), Err(BadPartnerName));
        }
    }

    #[test]
    fn a_partners_name_leads_nowhere_and_reads_as_it_is_written() {
        for good in ["Acme Assistant", "Zoë's Helper", "Acme.ai", "AT&T / Home", "株式会社", " Acme "] {
            assert!(good.parse::<PartnerName>().is_ok(), "{good}");
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
            &"x".repeat(101),
        ] {
            assert_eq!(bad.parse::<PartnerName>(), Err(BadPartnerName), "{bad:?}");
            assert!(PartnerName::kept(bad).is_some() || bad.is_empty(), "what was issued before stays");
        }
    }
}
