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

/// Reads a text of 1 to so many characters.
fn read_note<'de, D: Deserializer<'de>>(deserializer: D, most: usize) -> Result<String, D::Error> {
    let text = text::without_nuls(text::read(deserializer, "a text")?);
    let length = text.trim().chars().count();
    match length {
        0 => Err(D::Error::custom("the text is empty")),
        length if length <= most => Ok(text.trim().to_owned()),
        _ => Err(D::Error::custom(format!("the text has {length} characters; shorten it to {most}"))),
    }
}

/// What a negotiator notes.
#[derive(Clone)]
pub struct NoteText(pub String);

impl<'de> Deserialize<'de> for NoteText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_note(deserializer, NegotiationRound::LONGEST).map(Self)
    }
}

inline_schema!(NoteText, json_schema!({ "type": "string", "minLength": 1, "maxLength": NegotiationRound::LONGEST }));

/// A reason, in a sentence or two.
#[derive(Clone)]
pub(super) struct ReasonText(pub String);

impl ReasonText {
    const LONGEST: usize = 500;
}

impl<'de> Deserialize<'de> for ReasonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_note(deserializer, Self::LONGEST).map(Self)
    }
}

inline_schema!(ReasonText, json_schema!({ "type": "string", "minLength": 1, "maxLength": ReasonText::LONGEST }));
