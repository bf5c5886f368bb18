//! Pagination of listings: limit, start time and cursor. They come from a query string, so they are strings.

use schemars::json_schema;
use serde::de::{Deserialize, Deserializer, Error};

use crate::domain::json::inline_schema;
use crate::domain::partner::idempotency::IdempotencyKey;
use crate::domain::text;
use crate::domain::time::Timestamp;

/// Makes a parameter of a type that can be read from a text.
macro_rules! parameter {
    ($(#[$doc:meta])* $name:ident($kind:ty), $read:expr, $schema:tt) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $name(pub $kind);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = text::read(deserializer, "a text")?;
                let read: fn(&str) -> Result<$kind, String> = $read;
                read(&text).map(Self).map_err(D::Error::custom)
            }
        }

        inline_schema!($name, json_schema!($schema));
    };
}

parameter!(
    /// How many a page holds.
    PageSize(u32),
    |text| match text.parse() {
        Ok(most @ 1..=PageSize::MOST) => Ok(most),
        _ => Err(format!("a page holds 1 to {}; write the number alone", PageSize::MOST)),
    },
    { "type": "integer", "minimum": 1, "maximum": 100, "default": 50 }
);

parameter!(
    /// From when on.
    Since(Timestamp),
    |text| text.parse().map_err(|error: crate::domain::time::NotADate| error.to_string()),
    { "type": "string", "format": "date-time" }
);

parameter!(
    /// The idempotency key of a request.
    KeyParameter(IdempotencyKey),
    |text| {
        let wrong = "this is no Idempotency-Key: those have 1 to 255 visible ASCII characters, percent-encoded where a path needs it";
        IdempotencyKey::parse(text).map_err(|_| wrong.to_owned())
    },
    { "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" }
);

parameter!(
    /// The id of a mail in the sandbox.
    MailParameter(i64),
    |text| text.parse().map_err(|_| "this is no cursor of this list; send the nextCursor of the page before".to_owned()),
    { "type": "string" }
);

impl PageSize {
    const MOST: u32 = 100;
    pub const DEFAULT: u32 = 50;
}
