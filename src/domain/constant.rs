//! Fields whose value the contract fixes, as types that can have no other; and how answers describe a value of a list that may grow.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

/// The schema of a value in an answer that is one of a list today, and of a longer one some day. Programs that are made of the
/// schema know the list by `title`, and take any other text too.
pub fn open_enumeration(title: &str, known: &Schema) -> Schema {
    let values = known.get("enum");
    json_schema!({ "anyOf": [{ "title": title, "type": "string", "enum": values }, { "type": "string" }] })
}

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

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": $kind, "const": $value })
            }
        }
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
