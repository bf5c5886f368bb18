//! Live or test: which records a key opens, and which a command works on.

use crate::domain::json::named_enum;

named_enum! {
    /// Live or test: which records a key opens. The two have keys of different lengths, so that no text is a key of both.
    pub enum Mode {
        /// Real members.
        Live = "live",
        /// The sandbox: no one in it is real, and nothing in it lasts.
        Test = "test",
    }
}

impl Mode {
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::Live => "uh_",
            Self::Test => "uh_test_",
        }
    }

    /// Which records are asked about what was sent as a key, be it one or not.
    pub fn of_text(text: &str) -> Self {
        if text.starts_with(Self::Test.prefix()) { Self::Test } else { Self::Live }
    }

    /// The records that a command with the flag `--test`, or without it, works on.
    pub const fn of_flag(test: bool) -> Self {
        if test { Self::Test } else { Self::Live }
    }
}
