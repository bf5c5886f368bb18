//! Collects every mistake of a submission into one error, each with its path and the fix.
//!
//! serde stops at the first mistake. So each mistake is recorded and its field removed, and the rest is parsed again until
//! nothing is wrong. Only an invalid submission costs this, and the number of mistakes is bounded.

use schemars::{JsonSchema, SchemaGenerator};
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

use crate::domain::catalog::category::Category;

/// The maximum number of mistakes in one answer.
const MOST: usize = 20;

/// Longest text about one of them, in characters: what a caller sent is not repeated at length.
const LONGEST: usize = 400;

/// How many names of one object are read: far more than any input has.
const MOST_NAMES: usize = 100;

/// How deeply the objects of an input are nested.
const LEVELS: usize = 2;

/// Says what is wrong with a JSON object that `T` cannot be read from, and which known fields that is about.
pub(super) fn of<T: DeserializeOwned + JsonSchema>(text: &str) -> (String, Vec<String>) {
    let fields = Fields::of::<T>();
    let mut mistakes = Vec::new();
    let mut sent = Part::Object(match Part::names(text, LEVELS, "", &mut mistakes) {
        Ok(pairs) => pairs,
        Err(error) => {
            let what = format!("A field's name cannot be read: {}.", without_position(&error.to_string()));
            return (what, Vec::new());
        }
    });
    for name in fields.required.iter().filter(|name| !sent.names_it(name)) {
        mistakes.push(format!("{name}: it is missing; every request needs it"));
    }
    while mistakes.len() <= MOST {
        let Err(error) = serde_path_to_error::deserialize::<_, T>(&sent) else { break };
        let keys: Vec<_> = error.path().iter().filter_map(key).collect();
        // Without a path it is about a field that is missing, which was reported above.
        let Some(wrong) = sent.take(&keys) else { break };
        mistakes.push(fields.explain(&keys, &wrong, &error.inner().to_string()));
    }
    let mut named: Vec<_> = mistakes.iter().take(MOST).map(|mistake| fields.known_path(mistake)).collect();
    named.dedup();
    (list(&mistakes), named)
}

/// All of them as one text.
pub(super) fn list(mistakes: &[String]) -> String {
    let sentence = |mistake: &String| match mistake.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &mistake[..end]),
        None if mistake.ends_with('?') => mistake.clone(),
        None => format!("{mistake}."),
    };
    let numbered = || {
        let sentences = mistakes.iter().take(MOST).enumerate();
        sentences.map(|(n, mistake)| format!(" ({}) {}", n + 1, sentence(mistake))).collect::<String>()
    };
    match mistakes {
        [] => "It does not fit the schema.".to_owned(),
        [one] => sentence(one),
        several if several.len() > MOST => format!("More than {MOST} mistakes, of which these first:{}", numbered()),
        several => format!("{} mistakes:{}", several.len(), numbered()),
    }
}

fn key(segment: &Segment) -> Option<String> {
    match segment {
        Segment::Map { key } => Some(key.clone()),
        Segment::Seq { .. } | Segment::Enum { .. } | Segment::Unknown => None,
    }
}

/// The parser's message without its line and column, which count in a piece of what was sent.
fn without_position(message: &str) -> &str {
    message.rsplit_once(" at line ").map_or(message, |(message, _)| message)
}

/// What an input's schema says of its fields.
struct Fields {
    names: Vec<String>,
    required: Vec<String>,
}

impl Fields {
    fn of<T: JsonSchema>() -> Self {
        let schema = SchemaGenerator::default().into_root_schema_for::<T>();
        let names = schema.get("properties").and_then(|properties| properties.as_object());
        let required = schema.get("required").and_then(|names| names.as_array());
        Self {
            names: names.into_iter().flatten().map(|(name, _)| name.clone()).collect(),
            required: required.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect(),
        }
    }

    /// The path that a mistake begins with, as far as its names are known: others may be anything, even an address.
    fn known_path(&self, mistake: &str) -> String {
        let path = mistake.split(": ").next().unwrap_or_default();
        let (name, inner) = path.split_once('.').map_or((path, None), |(name, inner)| (name, Some(inner)));
        match (self.names.iter().find(|known| *known == name), inner) {
            (None, _) => "?".to_owned(),
            (Some(name), None) => name.clone(),
            (Some(name), Some(inner)) => {
                format!("{name}.{}", Category::from_slug(inner).map_or("?", Category::slug))
            }
        }
    }

    /// The field that an unknown name probably means: spelled otherwise, or the one that holds it (`state` for `usState`).
    fn meant(&self, name: &str) -> Option<&String> {
        let wanted: String = letters(name).collect();
        let holds = |known: &&String| wanted.len() > 2 && letters(known).collect::<String>().contains(&wanted);
        let alike = self.names.iter().find(|known| letters(known).eq(wanted.chars()));
        alike.or_else(|| self.names.iter().find(holds))
    }

    fn explain(&self, keys: &[String], wrong: &Part<'_>, message: &str) -> String {
        let (path, message) = (keys.join("."), without_position(message));
        if let (Part::Value("null"), Some(expected)) = (wrong, message.strip_prefix("invalid type: null, expected ")) {
            let or = if self.required.contains(&path) { "" } else { ", or leave it out" };
            return format!("{path}: null is no value; send {expected}{or}");
        }
        match self.meant(&path).filter(|_| message.starts_with("unknown field")) {
            Some(meant) => format!("{path}: unknown field; did you mean {meant}?"),
            None => format!("{path}: {message}"),
        }
    }
}

/// A name without what people spell differently: case, and what stands between words.
fn letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

/// A piece of what was sent.
enum Part<'a> {
    Object(Vec<(String, Part<'a>)>),
    Value(&'a str),
}

impl<'a> Part<'a> {
    /// The names and values of an object. A repeated name is reported and its second value ignored.
    fn names(
        text: &'a str,
        levels: usize,
        path: &str,
        mistakes: &mut Vec<String>,
    ) -> serde_json::Result<Vec<(String, Self)>> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while pairs.len() < MOST_NAMES
                    && let Some(pair) = map.next_entry()?
                {
                    pairs.push(pair);
                }
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(pairs)
            }
        }

        let mut object: Vec<(String, Self)> = Vec::new();
        for (name, value) in serde_json::Deserializer::from_str(text).deserialize_map(Pairs)? {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            if object.iter().any(|(before, _)| *before == name) {
                mistakes.push(format!("{path}: it is named twice; send it once"));
                continue;
            }
            let part = match value.get().starts_with('{') && levels > 1 {
                true => Self::Object(Self::names(value.get(), levels - 1, &path, mistakes)?),
                false => Self::Value(value.get()),
            };
            object.push((name, part));
        }
        Ok(object)
    }

    fn names_it(&self, name: &str) -> bool {
        matches!(self, Self::Object(pairs) if pairs.iter().any(|(known, _)| known == name))
    }

    /// Takes out what stands at the path.
    fn take(&mut self, keys: &[String]) -> Option<Self> {
        let (Self::Object(pairs), [name, rest @ ..]) = (self, keys) else { return None };
        let at = pairs.iter().position(|(known, _)| known == name)?;
        match (&mut pairs[at].1, rest) {
            (inner @ Self::Object(_), [_, ..]) => inner.take(rest),
            _ => Some(pairs.remove(at).1),
        }
    }
}

impl<'de> Deserializer<'de> for &'de Part<'_> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self {
            Part::Object(pairs) => {
                visitor.visit_map(MapDeserializer::new(pairs.iter().map(|(name, part)| (name.as_str(), part))))
            }
            Part::Value(text) => serde_json::Deserializer::from_str(text).deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> serde::de::IntoDeserializer<'de, serde_json::Error> for &'de Part<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::create_referral_link::ReferralLinkRequest;
    use crate::operations::sign_up_user::InviteRequest;

    #[test]
    fn every_mistake_has_its_path_and_its_fix() {
        let (message, fields) = of::<InviteRequest>(
            r#"{"us_state": "CA", "usState": "ca", "categories": {"pets": true, "travel": "yes", "internet": true,
                "mortgage": null, "internet": false}, "otherComments": null, "phone": 1, "refCode": 5, "refCode": 6}"#,
        );
        let places = [
            "11 mistakes: (1) categories.internet: it is named twice",
            "(2) refCode: it is named twice",
            "(3) email: it is missing",
            "(4) us_state: unknown field; did you mean usState?",
            "(5) usState: not a state code; did you mean CA? (6) ",
            "(6) categories.pets: not a category; use one of mobile_bills, ",
            "(7) categories.travel: invalid type: string \"yes\", expected a boolean",
            "(8) categories.mortgage: null is no value; send a boolean, or leave it out",
        ];
        for place in places {
            assert!(message.contains(place), "{place}\n{message}");
        }
        let known = ["categories.internet", "refCode", "email", "?", "usState", "categories.?", "categories.travel"];
        assert_eq!(fields[..7], known, "names that a caller made up are not logged");
        assert_eq!(
            of::<ReferralLinkRequest>(r#"{"Email": null, "e_mail": 1, "email": null}"#).0,
            "3 mistakes: (1) Email: unknown field; did you mean email? (2) e_mail: unknown field; did you mean email? \
             (3) email: null is no value; send an email address in a string."
        );
    }

    #[test]
    fn the_message_is_bounded() {
        let many: String = (0..100_000).map(|n| format!("\"{n}{}\": 1,", "é".repeat(n % 900))).take(1000).collect();
        let (message, fields) = of::<InviteRequest>(&format!("{{{many}\"email\": \"a@example.com\"}}"));
        assert!(message.starts_with("More than 20 mistakes, of which these first: (1) "), "{message}");
        assert!(message.chars().count() < (MOST + 1) * LONGEST + 100, "{}", message.len());
        assert_eq!(fields, ["email", "?"], "what is past the first hundred names is not there");
        // Objects deeper than any input has are one mistake, however deep.
        let deep = format!("{{\"email\": {}{}}}", "{\"a\":".repeat(100), "1".to_owned() + &"}".repeat(100));
        let (message, fields) = of::<ReferralLinkRequest>(&deep);
        assert!(message.starts_with("email: invalid type: map"), "{message}");
        assert_eq!(fields, ["email"]);
    }
}
