//! Who may use the operator's page: their name, what is kept of them, and how long links and sessions work.

use std::time::Duration;

use serde::Serialize;

use super::time::Timestamp;

/// How long a link to sign in with works.
pub const LINK_FOR: Duration = Duration::from_secs(15 * 60);

/// How long somebody stays signed in.
pub const OPERATOR_SESSION_FOR: Duration = Duration::from_secs(12 * 3600);

/// Browsers in which one operator is signed in at once; the oldest is signed out by the next.
pub const MAX_SESSIONS_PER_OPERATOR: u32 = 5;

/// Operators there may be: the page and its checks stay as fast as with one.
pub const MAX_OPERATORS: u32 = 100;

/// The name of an operator, as it was added; names are compared exactly.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct OperatorName(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an operator's name has 1 to {} letters (a-z, A-Z), digits and . _ - + @, and begins with a letter or a digit, such as ana or \
     ana@union.example",
    OperatorName::LONGEST
)]
pub struct NotAnOperatorName;

impl OperatorName {
    pub const LONGEST: usize = 64;

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Who the audit log says did something on the page: no user of a system has such a name.
    pub fn on_the_page(&self) -> String {
        format!("{} (page)", self.0)
    }
}

impl std::str::FromStr for OperatorName {
    type Err = NotAnOperatorName;

    fn from_str(text: &str) -> Result<Self, NotAnOperatorName> {
        let is_good = (1..=Self::LONGEST).contains(&text.len())
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-+@".contains(c));
        is_good.then(|| Self(text.to_owned())).ok_or(NotAnOperatorName)
    }
}

impl std::fmt::Display for OperatorName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// An operator, as `unionhall operator list` shows them.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorRecord {
    pub name: OperatorName,
    pub created_at: Timestamp,
    pub signed_in_at: Option<Timestamp>,
    /// Until when their newest link works; none if there is none that was not used.
    #[serde(rename = "linkWorksUntil")]
    pub link_until: Option<Timestamp>,
    /// Browsers in which they are signed in.
    pub sessions: u64,
}

/// The newest link of an operator, and whether it still works.
#[derive(Clone, PartialEq, Eq)]
pub struct OperatorLink {
    pub name: OperatorName,
    pub state: LinkState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    Works,
    Used,
    Expired,
}

/// What came of adding an operator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AddedOperator {
    Added,
    /// There is one of that name; nothing was changed.
    Exists,
    /// There are as many as there may be.
    Full,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain_and_no_system_user_signs_like_it() {
        for good in ["ana", "Ana", "a", "0", "ana@union.example", "ana.b-c_d+e", &"x".repeat(64)] {
            let name: OperatorName = good.parse().unwrap();
            assert_eq!(name.as_str(), good);
            assert!(name.on_the_page().ends_with(" (page)"));
        }
        for bad in ["", " ana", "ana ", "-ana", ".ana", "@", "an a", "ana\n", "<b>", "a\"b", "añá", &"x".repeat(65)] {
            assert_eq!(bad.parse::<OperatorName>(), Err(NotAnOperatorName), "{bad}");
        }
    }
}
