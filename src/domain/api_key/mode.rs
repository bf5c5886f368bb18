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

    /// A text for the operator, in which every command that it names works on these records: `unionhall keys list` becomes
    /// `unionhall keys list --test`. Every hint about the sandbox comes through here.
    pub fn in_commands(self, text: &str) -> String {
        let names_other_records = |piece: &str| {
            let mut words = piece.split_whitespace();
            self == Self::Test
                && words.next() == Some("unionhall")
                && words.next().is_some_and(|area| TAKE_TEST.contains(&area))
                && !words.any(|word| word == "--test")
        };
        let named = text.split('`').enumerate().map(|(n, piece)| match n % 2 == 1 && names_other_records(piece) {
            true => format!("{piece} --test"),
            false => piece.to_owned(),
        });
        named.collect::<Vec<_>>().join("`")
    }
}

/// The commands that take `--test`.
const TAKE_TEST: [&str; 4] = ["keys", "partners", "webhooks", "audit"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_named_to_the_operator_work_on_the_same_records() {
        let said =
            "Key 1 ends. `unionhall keys list` shows `them`; `unionhall webhooks test 7 --test`, `unionhall mail list`";
        let there = "Key 1 ends. `unionhall keys list --test` shows `them`; `unionhall webhooks test 7 --test`, `unionhall mail list`";
        assert_eq!(Mode::Test.in_commands(said), there);
        assert_eq!(Mode::Live.in_commands(said), said);
        for unchanged in ["", "`", "`unionhall`", "unionhall keys list", "`unionhall-keys list`", "`unionhall doctor"] {
            assert_eq!(Mode::Test.in_commands(unchanged), unchanged);
        }
    }
}
