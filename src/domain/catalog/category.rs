//! The kinds of household bills that the union negotiates.

use std::fmt;

use schemars::json_schema;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

use crate::domain::json::inline_schema;

macro_rules! categories {
    ($($name:ident $slug:literal $label:literal)*) => {
        /// A kind of bill, known by its slug everywhere and shown to people by its label.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Category { $($name),* }

        impl Category {
            /// All of them, in the contract's order.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            pub const fn slug(self) -> &'static str {
                match self { $(Self::$name => $slug),* }
            }

            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label),* }
            }
        }
    };
}

categories! {
    MobileBills "mobile_bills" "Mobile Plan"
    Internet "internet" "Home Internet"
    CarInsurance "car_insurance" "Car Insurance"
    HomeInsurance "home_insurance" "Home Insurance"
    Insurance "insurance" "Insurance"
    CreditCardDebt "credit_card_debt" "Credit Card Debt"
    Mortgage "mortgage" "Mortgage"
    HawaiiResortStay "hawaii_resort_stay" "Hawaii Resort Stay"
    AlaskaCruise "alaska_cruise" "Alaska Cruise"
    AutoLoan "auto_loan" "Auto Loan"
    Travel "travel" "Travel"
    MedicalCosts "medical_costs" "Medical Costs"
    Subscriptions "subscriptions" "Subscriptions"
    Groceries "groceries" "Groceries"
}

impl Category {
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|category| category.slug() == slug)
    }

    /// The category that a text probably names: by its slug or its label, in any case, whatever stands between the letters.
    fn meant(text: &str) -> Option<Self> {
        fn letters(text: &str) -> impl Iterator<Item = char> + '_ {
            text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
        }
        let is = |named: &str| letters(named).eq(letters(text));
        Self::ALL.iter().copied().find(|category| is(category.slug()) || is(category.label()))
    }

    /// The category that this one is part of: savings on the whole include the part, so the two do not add up.
    pub const fn part_of(self) -> Option<Self> {
        match self {
            Self::CarInsurance | Self::HomeInsurance => Some(Self::Insurance),
            Self::HawaiiResortStay | Self::AlaskaCruise => Some(Self::Travel),
            _ => None,
        }
    }

    /// Whether the law rules who may broker such a bill, and for what.
    pub const fn is_regulated(self) -> bool {
        matches!(
            self,
            Self::CarInsurance
                | Self::HomeInsurance
                | Self::Insurance
                | Self::Mortgage
                | Self::AutoLoan
                | Self::CreditCardDebt
                | Self::MedicalCosts
        )
    }

    /// Every slug, as an error message lists them.
    pub fn slugs() -> String {
        let slugs: Vec<_> = Self::ALL.iter().map(|category| category.slug()).collect();
        slugs.join(", ")
    }
}

impl Serialize for Category {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.slug())
    }
}

impl<'de> Deserialize<'de> for Category {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let slug = crate::domain::text::read(deserializer, "a category slug")?;
        Self::from_slug(&slug).ok_or_else(|| match Self::meant(&slug) {
            Some(meant) => D::Error::custom(format_args!("not a category; did you mean {}?", meant.slug())),
            None => D::Error::custom(format_args!("not a category; use one of {}", Self::slugs())),
        })
    }
}

inline_schema!(Category, {
    let slugs: Vec<_> = Self::ALL.iter().map(|category| category.slug()).collect();
    json_schema!({ "type": "string", "enum": slugs })
});

/// The categories a user cares about.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct CategorySet(u16);

impl fmt::Debug for CategorySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl CategorySet {
    /// The compiler refuses more categories than the set has bits, before anyone loses an answer.
    const FITS: () = assert!(Category::ALL.len() <= u16::BITS as usize, "CategorySet needs a wider number");

    pub fn insert(&mut self, category: Category) {
        self.0 |= Self::bit(category);
    }

    pub fn contains(self, category: Category) -> bool {
        self.0 & Self::bit(category) != 0
    }

    /// In the contract's order.
    pub fn iter(self) -> impl Iterator<Item = Category> {
        Category::ALL.iter().copied().filter(move |category| self.contains(*category))
    }

    /// Reads what [`Display`](fmt::Display) wrote; a slug that is no longer one is left out.
    pub fn from_slugs(slugs: &str) -> Self {
        slugs.split(',').filter_map(Category::from_slug).collect()
    }

    /// What to answer to a choice in another form: the right form, if everything that it names is a category. Callers would send
    /// an incomplete example as it is.
    fn shape(sent: &str, meant: Option<Self>) -> String {
        let right = meant.map_or_else(
            || format!("; use {}", Category::slugs()),
            |meant| {
                let choices: Vec<_> = meant.iter().map(|category| format!("\"{}\": true", category.slug())).collect();
                format!(": {{{}}}", choices.join(", "))
            },
        );
        format!("send an object of category slugs to booleans, not {sent}{right}")
    }

    /// All categories that a text names with anything usual between them; none if any part of it is something else.
    fn named_in(text: &str) -> Option<Self> {
        let text = text.replace(" and ", ",").replace(" & ", ",");
        text.split([',', ';', '\n', '/', '|']).map(Category::meant).collect()
    }

    const fn bit(category: Category) -> u16 {
        let () = Self::FITS;
        1 << category as u16
    }
}

impl FromIterator<Category> for CategorySet {
    fn from_iter<T: IntoIterator<Item = Category>>(categories: T) -> Self {
        let mut set = Self::default();
        categories.into_iter().for_each(|category| set.insert(category));
        set
    }
}

impl fmt::Display for CategorySet {
    /// The slugs with commas between them: how the stores keep a set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, category) in self.iter().enumerate() {
            write!(f, "{}{}", if i == 0 { "" } else { "," }, category.slug())?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for CategorySet {
    /// An object of slug to boolean. Naming a category twice is an error even when both say the same.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choices;

        impl<'de> Visitor<'de> for Choices {
            type Value = CategorySet;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of category slugs to booleans, such as {\"internet\": true}")
            }

            fn visit_str<E: serde::de::Error>(self, slug: &str) -> Result<CategorySet, E> {
                Err(E::custom(CategorySet::shape("a text", CategorySet::named_in(slug))))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<CategorySet, A::Error> {
                let mut meant = Some(CategorySet::default());
                while let Some(item) = list.next_element::<serde_json::Value>()? {
                    meant = meant.zip(item.as_str().and_then(Category::meant)).map(|(mut meant, category)| {
                        meant.insert(category);
                        meant
                    });
                }
                Err(A::Error::custom(CategorySet::shape("a list", meant)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CategorySet, A::Error> {
                let (mut named, mut chosen) = (CategorySet::default(), CategorySet::default());
                while let Some(category) = map.next_key::<Category>()? {
                    if named.contains(category) {
                        return Err(A::Error::custom(format_args!("\"{}\" is named twice", category.slug())));
                    }
                    named.insert(category);
                    if map.next_value::<bool>()? {
                        chosen.insert(category);
                    }
                }
                Ok(chosen)
            }
        }

        // Any, so that another form gets to be named.
        deserializer.deserialize_any(Choices)
    }
}

/// The slugs of those that are chosen.
impl Serialize for CategorySet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

inline_schema!(CategorySet, {
    let properties: serde_json::Map<_, _> = Category::ALL
        .iter()
        .map(|category| {
            let schema = serde_json::json!({ "type": "boolean", "description": category.label() });
            (category.slug().to_owned(), schema)
        })
        .collect();
    json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contracts_fourteen_fit_the_set() {
        assert_eq!(Category::ALL.len(), 14);
        let all: CategorySet = Category::ALL.iter().copied().collect();
        assert_eq!(all.iter().collect::<Vec<_>>(), Category::ALL);
    }

    #[test]
    fn a_set_reads_what_is_true_and_refuses_the_rest() {
        let read = |json: &str| serde_json::from_str::<CategorySet>(json);
        assert_eq!(read("{}").unwrap().to_string(), "");
        let set = read(r#"{"travel": true, "internet": true, "mortgage": false}"#).unwrap();
        assert_eq!(set.to_string(), "internet,travel");
        assert_eq!(CategorySet::from_slugs("internet,travel,pets,"), set);
        for bad in [
            r#"{"pets": true}"#,
            r#"{"travel": 1}"#,
            r#"{"travel": null}"#,
            r#"{"travel": true, "travel": true}"#,
            "[]",
            "null",
            "\"travel\"",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        for (other, right) in [
            (r#"["travel", "Home Internet"]"#, r#"not a list: {"internet": true, "travel": true}"#),
            (r#"["travel", "pets"]"#, "not a list; use mobile_bills, internet, "),
            (r#"["travel", 5, {"a": []}]"#, "not a list; use mobile_bills, "),
            ("[]", "not a list: {}"),
            (r#""travel""#, r#"not a text: {"travel": true}"#),
            (r#""Car insurance & mobile plan""#, r#"{"mobile_bills": true, "car_insurance": true}"#),
            (r#""travel and internet""#, r#"{"internet": true, "travel": true}"#),
            (r#""travel, pets""#, "not a text; use mobile_bills, "),
            (r#""""#, "not a text; use mobile_bills, "),
            (r#"{"Home Internet": true}"#, "not a category; did you mean internet?"),
            (r#"{"pets": true}"#, "not a category; use one of mobile_bills, "),
        ] {
            let message = read(other).unwrap_err().to_string();
            assert!(message.contains(right), "{other}: {message}");
        }
    }
}
