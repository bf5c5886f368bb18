//! The fifty states and the District of Columbia, by their postal codes.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error as _};

macro_rules! states {
    ($($code:ident $name:literal)*) => {
        /// One of the 50 US states, or DC, by two-letter code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
        #[schemars(inline)]
        pub enum UsState { $($code),* }

        impl UsState {
            /// All 51, in the contract's order.
            pub const ALL: &'static [Self] = &[$(Self::$code),*];

            pub const fn code(self) -> &'static str {
                match self { $(Self::$code => stringify!($code)),* }
            }

            /// As people call it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$code => $name),* }
            }
        }
    };
}

states! {
    AL "Alabama" AK "Alaska" AZ "Arizona" AR "Arkansas" CA "California" CO "Colorado" CT "Connecticut" DE "Delaware"
    DC "District of Columbia" FL "Florida" GA "Georgia" HI "Hawaii" ID "Idaho" IL "Illinois" IN "Indiana" IA "Iowa"
    KS "Kansas" KY "Kentucky" LA "Louisiana" ME "Maine" MD "Maryland" MA "Massachusetts" MI "Michigan" MN "Minnesota"
    MS "Mississippi" MO "Missouri" MT "Montana" NE "Nebraska" NV "Nevada" NH "New Hampshire" NJ "New Jersey"
    NM "New Mexico" NY "New York" NC "North Carolina" ND "North Dakota" OH "Ohio" OK "Oklahoma" OR "Oregon"
    PA "Pennsylvania" RI "Rhode Island" SC "South Carolina" SD "South Dakota" TN "Tennessee" TX "Texas" UT "Utah"
    VT "Vermont" VA "Virginia" WA "Washington" WV "West Virginia" WI "Wisconsin" WY "Wyoming"
}

impl UsState {
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|state| state.code() == code)
    }

    /// The state that a text probably means: its code or its name in any case, whatever stands between the letters.
    fn meant(text: &str) -> Option<Self> {
        fn letters(text: &str) -> impl Iterator<Item = u8> + '_ {
            text.bytes().filter(u8::is_ascii_alphabetic).map(|letter| letter.to_ascii_lowercase())
        }
        let is = |named: &str| letters(named).eq(letters(text));
        Self::ALL.iter().copied().find(|state| is(state.code()) || is(state.name()))
    }
}

impl<'de> Deserialize<'de> for UsState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = super::text::read(deserializer, "a two-letter state code in a string")?;
        Self::from_code(&text).ok_or_else(|| match Self::meant(&text) {
            Some(meant) => D::Error::custom(format_args!("not a state code; did you mean {}?", meant.code())),
            None => D::Error::custom(format_args!(
                "not a state code; use one of {}, or leave it out for territories and other countries",
                Self::ALL.iter().map(|state| state.code()).collect::<Vec<_>>().join(", ")
            )),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_51_and_only_codes_read_back() {
        assert_eq!(UsState::ALL.len(), 51);
        assert_eq!(UsState::from_code("DC").map(UsState::name), Some("District of Columbia"));
        for (near, code) in [("ca", "CA"), (" CA\n", "CA"), ("California", "CA"), ("new york", "NY"), ("D.C.", "DC")] {
            assert_eq!(UsState::meant(near).map(UsState::code), Some(code), "{near}");
        }
        for far in ["", "é", "PR", "Ontario", "CALI"] {
            assert_eq!(UsState::meant(far), None, "{far}");
        }
        for bad in ["", "ca", "PR", "California", "CA "] {
            assert_eq!(UsState::from_code(bad), None, "{bad}");
        }
    }
}
