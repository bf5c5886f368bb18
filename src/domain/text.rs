//! Texts a caller sends: read without fuss, bounded in characters, free of NULs.

use std::borrow::Cow;
use std::fmt::{self, Write};

use schemars::json_schema;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::json::inline_schema;

/// Reads a string, borrowed from the input where it holds no escapes; `what` says what was expected when it is none.
pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D, what: &'static str) -> Result<Cow<'de, str>, D::Error> {
    struct Text(&'static str);

    impl<'de> Visitor<'de> for Text {
        type Value = Cow<'de, str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
            Ok(Cow::Borrowed(text))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Cow::Owned(text.to_owned()))
        }
    }

    deserializer.deserialize_str(Text(what))
}

/// What the TOML parser says is wrong, with the line it is about.
pub(super) fn toml_mistake(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message,
    }
}

/// Drops NUL characters, which not every store can keep.
pub(crate) fn without_nuls(text: Cow<'_, str>) -> String {
    if text.contains('\0') { text.replace('\0', "") } else { text.into_owned() }
}

/// Whether a reader does not see the character, or sees others in another order because of it (bidi controls).
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Quotes text from outside on one line, with invisible characters escaped as in JSON (`\\u001b`): it cannot forge a line of ours.
pub(crate) fn quote(text: &str) -> String {
    format!("\"{}\"", escape_if(text, |c| is_hidden(c) || matches!(c, '\u{2028}' | '\u{2029}')))
}

pub(crate) fn escape_if(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            // None of them is beyond U+FFFF; writing to a string does not fail.
            let _infallible = write!(safe, "\\u{:04x}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// Which of the known names somebody may have meant, as the middle of a sentence; nothing where none is near. `fold` makes
/// spellings alike that people take for one.
pub(crate) fn did_you_mean<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
    fold: impl Fn(&str) -> String,
) -> String {
    let wanted = fold(name);
    let slips = (wanted.chars().count() / 3).clamp(1, 2);
    let is_near = |known: &str| {
        !wanted.is_empty()
            && (known.contains(&wanted) || wanted.contains(known) || strsim::osa_distance(known, &wanted) <= slips)
    };
    let near: Vec<_> = known.filter(|known| is_near(&fold(known))).take(3).collect();
    if near.is_empty() { String::new() } else { format!(" did you mean {}?", near.join(" or ")) }
}

/// What the user wants the union to know, in their own words.
#[derive(Clone, PartialEq, Eq)]
pub struct Comments(String);

impl fmt::Debug for Comments {
    /// People write addresses and worse into free text, and debug prints end up in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Comments(…)")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text is longer than {} characters; shorten it", Comments::LONGEST)]
pub struct CommentsTooLong;

impl Comments {
    /// In characters, counted after NULs are dropped.
    pub const LONGEST: usize = 1000;

    pub fn new(text: Cow<'_, str>) -> Result<Self, CommentsTooLong> {
        let text = without_nuls(text);
        if text.len() > Self::LONGEST && text.chars().count() > Self::LONGEST {
            return Err(CommentsTooLong);
        }
        Ok(Self(text))
    }

    /// As they are stored.
    pub fn kept(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Comments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(read(deserializer, "a string")?).map_err(D::Error::custom)
    }
}

inline_schema!(Comments, json_schema!({ "type": "string", "maxLength": Self::LONGEST }));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_count_characters_after_dropping_nuls() {
        let new = |text: String| Comments::new(text.into()).map(|c| c.as_str().chars().count());
        assert_eq!(new("é".repeat(1000)), Ok(1000));
        assert_eq!(new("é".repeat(1001)), Err(CommentsTooLong));
        assert_eq!(new("x\0".repeat(1000)), Ok(1000));
        assert_eq!(new("\0".repeat(5000)), Ok(0));
    }
}
