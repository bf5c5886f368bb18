//! How values look in JSON: fields whose value the contract fixes, as types that can have no other; values that are a text; and
//! the schema of a list that may grow.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// The schema of a value in an answer that is one of a list today, and of a longer one some day. The list is one type under `name`,
/// wherever it is used; programs that are made of the schema take any other text too.
pub fn open_enumeration(generator: &mut SchemaGenerator, name: &str, values: &serde_json::Value) -> Schema {
    let list = json_schema!({ "type": "string", "enum": values });
    generator.definitions_mut().insert(name.to_owned(), list.to_value());
    let list = format!("#{}/{name}", generator.settings().definitions_path);
    json_schema!({ "anyOf": [{ "$ref": list }, { "type": "string" }] })
}

/// Gives a type the schema that is written down here, at each place that uses the type.
macro_rules! inline_schema {
    ($kind:ident, $schema:expr) => {
        impl schemars::JsonSchema for $kind {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($kind).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
}
pub(crate) use inline_schema;

macro_rules! constant {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $value:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name;

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $value.serialize(serializer)
            }
        }

        inline_schema!($name, json_schema!({ "type": $kind, "const": $value }));
    };
}

constant!(
    /// `ok` of a success.
    True, "boolean", true
);
constant!(
    /// `ok` of an error.
    False, "boolean", false
);
constant!(
    /// The currency of every amount.
    Usd, "string", "USD"
);

/// Serializes a type as the text that `$text` makes of it.
macro_rules! json_text {
    ($kind:ident, $text:expr) => {
        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text = $text;
                serializer.collect_str(&text(self))
            }
        }

        $crate::domain::json::inline_schema!($kind, schemars::json_schema!({ "type": "string" }));
    };
}
pub(in crate::domain) use json_text;

/// An enum whose values have names.
macro_rules! named_enum {
    ($(#[$about:meta])* pub enum $kind:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $kind { $($(#[$doc])* $value),* }

        impl $kind {
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$value),*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$value => $name),* }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }

        $crate::domain::json::json_text!($kind, |value: &$kind| value.name());
    };
}
pub(in crate::domain) use named_enum;
