//! Pagination of listings: limit, start time, cursor, status and how long to wait. They come from a query string, so they are strings.

use schemars::json_schema;
use serde::de::{Deserialize, Deserializer, Error};

use crate::domain::json::inline_schema;
use crate::domain::partner::SignUpStatus;
use crate::domain::partner::endpoint::EndpointId;
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
    |text| {
        // A plus that was not percent-encoded arrives as a space.
        let text = match text.rsplit_once(' ') {
            Some((time, offset)) if time.contains(['T', 't']) => format!("{time}+{offset}"),
            _ => text.to_owned(),
        };
        text.parse().map_err(|error: crate::domain::time::NotADate| error.to_string())
    },
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
    /// The id of a webhook endpoint. What is none is as unknown as one that never was.
    EndpointParameter(EndpointId),
    |text| Ok(text.parse().unwrap_or(EndpointId(0))),
    { "type": "string" }
);

parameter!(
    /// A day of UTC.
    DayParameter(Timestamp),
    |text| text.parse().map_err(|error: crate::domain::time::NotADate| error.to_string()),
    { "type": "string", "format": "date" }
);

parameter!(
    /// The id of a mail in the sandbox.
    MailParameter(i64),
    |text| text.parse().map_err(|_| "this is no cursor of this list; send the nextCursor of the page before".to_owned()),
    { "type": "string" }
);

parameter!(
    /// A place in the list of events.
    CursorParameter(String),
    |text| Ok(text.to_owned()),
    { "type": "string" }
);

parameter!(
    /// How many seconds to wait.
    WaitSeconds(u32),
    |text| match text.parse() {
        Ok(seconds @ 0..=WaitSeconds::MOST) => Ok(seconds),
        _ => Err(format!("write a whole number of seconds from 0 to {}", WaitSeconds::MOST)),
    },
    { "type": "integer", "minimum": 0, "maximum": 30, "default": 0 }
);

parameter!(
    /// Which sign-ups are listed.
    StatusParameter(SignUpStatus),
    |text| SignUpStatus::from_name(text).ok_or_else(|| "write pending, confirmed or closed".to_owned()),
    { "$ref": "#/components/schemas/SignUpStatus" }
);

impl WaitSeconds {
    const MOST: u32 = 30;
}

impl PageSize {
    pub const MOST: u32 = 100;
    pub const DEFAULT: u32 = 50;
}
