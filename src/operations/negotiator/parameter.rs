//! What the negotiator's tools take: a campaign's name, and texts of a bounded length.

use schemars::json_schema;
use serde::de::{Deserialize, Deserializer, Error};

use crate::domain::campaign::CampaignSlug;
use crate::domain::campaign::record::NegotiationRound;
use crate::domain::json::inline_schema;
use crate::domain::text;

/// A campaign by its slug.
#[derive(Clone)]
pub struct SlugParameter(pub CampaignSlug);

impl<'de> Deserialize<'de> for SlugParameter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = text::read(deserializer, "a campaign's slug")?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

inline_schema!(SlugParameter, json_schema!({ "type": "string", "minLength": 3, "maxLength": 60 }));

/// What a negotiator notes.
#[derive(Clone)]
pub struct NoteText(pub String);

impl<'de> Deserialize<'de> for NoteText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = text::without_nuls(text::read(deserializer, "a text")?);
        let length = text.trim().chars().count();
        match length {
            1..=NegotiationRound::LONGEST => Ok(Self(text.trim().to_owned())),
            0 => Err(D::Error::custom("the text is empty")),
            _ => Err(D::Error::custom(format!(
                "the text has {length} characters; shorten it to {}",
                NegotiationRound::LONGEST
            ))),
        }
    }
}

inline_schema!(NoteText, json_schema!({ "type": "string", "minLength": 1, "maxLength": NegotiationRound::LONGEST }));
