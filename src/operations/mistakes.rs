//! Collects every mistake of a submission into one error, each with its path and the fix.
//!
//! serde stops at the first mistake and does not say where. So each field is read as if it had been sent alone. Only an invalid
//! submission costs this, and the number of mistakes is bounded.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

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
    let schema = SchemaGenerator::default().into_root_schema_for::<T>();
    // From bytes, as a valid body is read: the compiler then makes no second parser of each input.
    find(text, &Fields::of(&schema), |text| serde_json::from_slice::<T>(text.as_bytes()).err())
}

fn find(text: &str, fields: &Fields, read: fn(&str) -> Option<serde_json::Error>) -> (String, Vec<String>) {
    // That others are missing was reported before.
    let mistake_in = |text: String| {
        let message = read(&text)?.to_string();
        (!message.starts_with("missing field")).then_some(message)
    };
    let mut mistakes = Vec::new();
    let sent = match Part::names(text, LEVELS, "", &mut mistakes) {
        Ok(pairs) => pairs,
        Err(error) => {
            let what = format!("A field's name cannot be read: {}.", without_position(&error.to_string()));
            return (what, Vec::new());
        }
    };
    for name in fields.required.iter().filter(|required| sent.iter().all(|(name, _)| name != *required)) {
        mistakes.push(format!("{name}: it is missing; every request needs it"));
    }
    for (name, part) in &sent {
        if mistakes.len() > MOST {
            break;
        }
        let Some(message) = mistake_in(alone(name, &part.json())) else { continue };
        let before = mistakes.len();
        if let Part::Object(inner) = part
            && mistake_in(alone(name, "{}")).is_none()
        {
            for (inner_name, part) in inner {
                if let Some(message) = mistake_in(alone(name, &alone(inner_name, &part.json()))) {
                    mistakes.push(fields.explain(&format!("{name}.{inner_name}"), part, &message));
                }
            }
        }
        if mistakes.len() == before {
            mistakes.push(fields.explain(name, part, &message));
        }
    }
    let mut named: Vec<_> = mistakes.iter().take(MOST).map(|mistake| fields.known_path(mistake)).collect();
    named.dedup();
    (list(&mistakes), named)
}

/// An object with this field and no other.
fn alone(name: &str, value: &str) -> String {
    format!("{{{}:{value}}}", serde_json::Value::from(name))
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
    fn of(schema: &Schema) -> Self {
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

    fn explain(&self, path: &str, wrong: &Part<'_>, message: &str) -> String {
        let message = without_position(message);
        let of_type = message.strip_prefix("invalid type: ").and_then(|types| types.split_once(", expected "));
        if let (Part::Value("null"), Some((_, expected))) = (wrong, of_type) {
            let or = if self.required.iter().any(|required| required == path) { "" } else { ", or leave it out" };
            return format!("{path}: null is no value; send {expected}{or}");
        }
        if let Some((found, expected)) = of_type {
            let found = match found {
                "map" => "an object".to_owned(),
                "sequence" => "a list".to_owned(),
                found => format!("the {}", found.replace('`', "").replace("floating point", "number")),
            };
            return format!("{path}: send {expected}, not {found}");
        }
        match self.meant(path).filter(|_| message.starts_with("unknown field")) {
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

    fn json(&self) -> String {
        match self {
            Self::Object(pairs) => {
                let pairs =
                    pairs.iter().map(|(name, part)| format!("{}:{}", serde_json::Value::from(&**name), part.json()));
                format!("{{{}}}", pairs.collect::<Vec<_>>().join(","))
            }
            Self::Value(text) => (*text).to_owned(),
        }
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
            "(7) categories.travel: send a boolean, not the string \"yes\"",
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
        assert!(message.starts_with("email: send an email address in a string, not an object"), "{message}");
        assert_eq!(fields, ["email"]);
    }
}
