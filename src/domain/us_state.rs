//! The fifty states and the District of Columbia, by their postal codes.

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, Error as _};

macro_rules! states {
    ($($code:ident)*) => {
        /// The state the user lives in: the 50 US states and DC, by two-letter code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
        #[schemars(inline)]
        pub enum UsState { $($code),* }

        impl UsState {
            /// All 51, in the contract's order.
            pub const ALL: &'static [Self] = &[$(Self::$code),*];

            pub const fn code(self) -> &'static str {
                match self { $(Self::$code => stringify!($code)),* }
            }
        }
    };
}

states! {
    AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR
    PA RI SC SD TN TX UT VT VA WA WV WI WY
}

impl UsState {
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.code() == code)
    }
}

impl<'de> Deserialize<'de> for UsState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = super::text::read(deserializer, "a two-letter state code in a string")?;
        Self::from_code(&text).ok_or_else(|| {
            let codes: Vec<_> = Self::ALL.iter().map(|state| state.code()).collect();
            D::Error::custom(format_args!("not a state code; use one of {}", codes.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_51_and_each_reads_back() {
        assert_eq!(UsState::ALL.len(), 51);
        for state in UsState::ALL {
            assert_eq!(UsState::from_code(state.code()), Some(*state));
        }
        for bad in ["", "ca", "PR", "California", "CA "] {
            assert_eq!(UsState::from_code(bad), None, "{bad}");
        }
    }
}
