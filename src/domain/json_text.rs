//! Values that the records and JSON have as a text.

/// Serializes a type as the text that `$text` makes of it.
macro_rules! json_text {
    ($kind:ident, $text:expr) => {
        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text = $text;
                serializer.collect_str(&text(self))
            }
        }

        impl schemars::JsonSchema for $kind {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($kind).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" })
            }
        }
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

        $crate::domain::json_text::json_text!($kind, |value: &$kind| value.name());
    };
}
pub(in crate::domain) use named_enum;
