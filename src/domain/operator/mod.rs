//! Who may use the operator's page: their name and role, what is kept of them, and how long links and sessions work.

pub mod second_factor;

use std::time::Duration;

use serde::Serialize;

use super::email::EmailAddress;
use super::json::named_enum;
use super::time::Timestamp;

/// How long a link to sign in with works.
pub const LINK_FOR: Duration = Duration::from_secs(15 * 60);

/// How long somebody stays signed in.
pub const OPERATOR_SESSION_FOR: Duration = Duration::from_secs(12 * 3600);

/// Browsers in which one operator is signed in at once; the oldest is signed out by the next.
pub const MAX_SESSIONS_PER_OPERATOR: u32 = 5;

/// The least time between two links that are mailed to one operator. A link works for longer, so whoever asks has one that works in
/// their inbox, however often others ask for it.
pub const MAILED_LINK_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// How long a browser that opened a link may take for the code of the second factor.
pub const SECOND_FACTOR_WITHIN: Duration = Duration::from_secs(10 * 60);

/// Operators there may be: the page and its checks stay as fast as with one.
pub const MAX_OPERATORS: u32 = 100;

named_enum! {
    /// What an operator may do on the page.
    pub enum Role {
        /// See everything but what identifies a member, and change nothing.
        Look = "look",
        /// People, partners with their keys, mail, and pausing sign-ups.
        Support = "support",
        /// Rewards, and what suppliers are told and answer.
        Money = "money",
        All = "all",
    }
}

impl Role {
    /// Which roles may do what takes this one: "the role money or all".
    pub fn needed_words(self) -> String {
        match self {
            Self::Look | Self::All => "the role all".to_owned(),
            role => format!("the role {} or all", role.name()),
        }
    }
}

/// The roles that somebody has: one, or several where a proxy names several groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Roles(u8);

impl Roles {
    #[must_use]
    pub const fn with(self, role: Role) -> Self {
        Self(self.0 | 1 << role as u8)
    }

    /// Whether they may do what takes a role.
    pub fn may(self, needed: Role) -> bool {
        let has = |role: Role| self.0 & (1 << role as u8) != 0;
        self != Self::default() && (needed == Role::Look || has(needed) || has(Role::All))
    }

    /// "support and money".
    pub fn words(self) -> String {
        let has = Role::ALL.iter().filter(|role| self.0 & (1 << **role as u8) != 0);
        Vec::from_iter(has.map(|role| role.name())).join(" and ")
    }
}

impl From<Role> for Roles {
    fn from(role: Role) -> Self {
        Self::default().with(role)
    }
}

/// Which of two people somebody is, where one makes and another releases: a person is the same in a shell and on the page.
pub fn same_person(one: &str, other: &str) -> bool {
    let person = |who: &str| who.strip_suffix(" (page)").unwrap_or(who).to_lowercase();
    person(one) == person(other)
}

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
    pub role: Role,
    /// Where links are mailed to.
    pub email: Option<String>,
    pub second_factor: bool,
    pub created_at: Timestamp,
    pub signed_in_at: Option<Timestamp>,
    /// Until when their newest link works; none if there is none that was not used.
    #[serde(rename = "linkWorksUntil")]
    pub link_until: Option<Timestamp>,
    /// Browsers in which they are signed in.
    pub sessions: u64,
}

/// A link of an operator, and whether it still works.
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

/// Somebody to whom a link may be mailed.
#[derive(Clone)]
pub struct MailedOperator {
    pub name: OperatorName,
    pub email: EmailAddress,
    /// When the last one was mailed.
    pub mailed_at: Option<Timestamp>,
}

impl MailedOperator {
    pub fn may_be_mailed(&self, now: Timestamp) -> bool {
        // A clock that was set back does not count.
        self.mailed_at.is_none_or(|at| at > now || now.since(at) >= MAILED_LINK_INTERVAL)
    }
}

/// What came of adding an operator, or of changing one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AddedOperator {
    Added,
    /// There is one of that name; nothing was changed.
    Exists,
    /// Another operator has that address.
    AddressTaken,
    /// There are as many as there may be.
    Full,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_may_do_what_it_names_and_everybody_may_look() {
        for has in Role::ALL.iter().copied() {
            for needed in Role::ALL.iter().copied() {
                let may = has == needed || has == Role::All || needed == Role::Look;
                assert_eq!(Roles::from(has).may(needed), may, "{} {}", has.name(), needed.name());
            }
        }
        let both = Roles::from(Role::Support).with(Role::Money);
        assert!(both.may(Role::Support) && both.may(Role::Money) && !both.may(Role::All));
        assert_eq!(both.words(), "support and money");
        assert!(!Roles::default().may(Role::Look), "whoever has no role may not even look");
        assert!(MAILED_LINK_INTERVAL < LINK_FOR / 2, "a link that was mailed before still works for a while");
    }

    #[test]
    fn a_person_is_the_same_in_a_shell_and_on_the_page() {
        assert!(same_person("ana (page)", "ana") && same_person("Ana (page)", "ana (page)"));
        assert!(!same_person("ana", "ben") && !same_person("ana", "anabel (page)"));
    }

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
