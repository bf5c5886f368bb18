//! Texts a caller sends: read without fuss, bounded in characters, free of NULs; and how what came from outside is shown, so that a
//! reader sees every character of it.

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

/// What is wrong with a TOML file, and in which line. The parser's own words are about grammar and types.
pub(crate) fn toml_mistake(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count());
    let written = line.and_then(|line| text.lines().nth(line)).unwrap_or_default();
    let name = written.split_once('=').map(|(name, _)| name.trim());
    let name = name.filter(|name| (1..=60).contains(&name.len())).unwrap_or("name");
    let (number, quoted) = (format!("{name} = 100"), format!("{name} = \"text\""));
    let message = error.message().replace(['\n', '`'], " ");
    let (kind, expected) = message.split_once(", expected ").unwrap_or((&message, ""));
    let words = if let Some(unknown) = kind.strip_prefix("unknown field") {
        let known = expected.trim_start_matches("one of").split(',').map(str::trim).collect::<Vec<_>>();
        format!("there is no field {}; there are {}", unknown.trim(), known.join(", "))
    } else if let Some(missing) = kind.strip_prefix("missing field") {
        format!("{} is missing; the sample shows how it is written", missing.trim())
    } else if kind.starts_with("duplicate key") {
        format!("{name} is there twice; keep one of them")
    } else if !kind.starts_with("invalid type") {
        format!("this is not TOML; write a number as {number}, a text as {quoted}, and the name of a table as [{name}]")
    } else if expected == "i64" {
        format!("{name} takes a whole number, such as {number}")
    } else if expected.ends_with("string") {
        format!("{name} takes a text in quotation marks, such as {quoted}")
    } else {
        format!("{name} is a table; write [{name}] on a line of its own, and its fields below")
    };
    line.map_or_else(|| words.clone(), |line| format!("line {}: {words}", line + 1))
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

/// The characters of a text that are shown by their codes, each with its place: those that are hidden, that end a line, or that only
/// programs read. More than [`is_hidden`], which decides what may be stored: what was stored before must be read again.
fn unseen(text: &str) -> impl Iterator<Item = (usize, char)> {
    let is_unseen = |c| {
        is_hidden(c)
            || matches!(c, '\u{180e}' | '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    };
    // Scripts that join their letters, Arabic to Myanmar and Khmer to Mongolian; and pictures.
    let is_joined = move |c: char| {
        matches!(c, '\u{600}'..='\u{109f}' | '\u{1780}'..='\u{18af}' | '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
            && !is_unseen(c)
    };
    text.char_indices().filter(move |&(at, c)| {
        // People write such a joiner, and a reader sees what it does.
        let joins = matches!(c, '\u{200c}' | '\u{200d}')
            && text[..at].chars().next_back().is_some_and(is_joined)
            && text[at + c.len_utf8()..].chars().next().is_some_and(is_joined);
        is_unseen(c) && !joins
    })
}

/// The text with what a reader would not see replaced by what `code` writes of it.
fn replaced<'t>(
    text: &'t str,
    keeps: impl Fn(usize, char) -> bool,
    code: impl Fn(&mut String, char) -> fmt::Result,
) -> Cow<'t, str> {
    let mut hidden = unseen(text).filter(|&(at, c)| !keeps(at, c)).peekable();
    if hidden.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let (mut safe, mut from) = (String::with_capacity(text.len() + 16), 0);
    for (at, c) in hidden {
        safe.push_str(&text[from..at]);
        // Writing to a string does not fail.
        let _infallible = code(&mut safe, c);
        from = at + c.len_utf8();
    }
    safe.push_str(&text[from..]);
    Cow::Owned(safe)
}

/// Text from outside for a terminal or the log: what a reader would not see is escaped as in JSON (`\\u001b`), but for what `keeps`.
/// It is the same in prose and inside a JSON string.
pub(crate) fn escape<'t>(text: &'t str, keeps: &[char]) -> Cow<'t, str> {
    replaced(
        text,
        |_, c| keeps.contains(&c),
        |safe, c| c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(safe, "\\u{unit:04x}")),
    )
}

/// Quotes text from outside on one line as JSON does: it cannot forge a line of ours, or the end of its quotation marks.
pub(crate) fn quote(text: &str) -> String {
    format!("\"{}\"", escape(&text.replace('\\', "\\\\").replace('"', "\\\""), &[]))
}

/// Text from outside for a page: what a reader would not see is shown by its code (`U+202E`). Ends of lines stay.
pub(crate) fn seen(text: &str) -> Cow<'_, str> {
    let is_line = |at: usize, c| matches!(c, '\n' | '\t') || text[at..].starts_with("\r\n");
    replaced(text, is_line, |safe, c| write!(safe, "U+{:04X}", u32::from(c)))
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
    fn what_a_reader_would_not_see_is_shown_by_its_code_and_names_stay() {
        for (text, page, quoted) in [
            ("a\u{202e}b", "aU+202Eb", r#""a\u202eb""#),
            ("\0\u{1b}[2J\u{9b}1m", "U+0000U+001B[2JU+009B1m", r#""\u0000\u001b[2J\u009b1m""#),
            ("a\u{e0041}\u{feff}", "aU+E0041U+FEFF", r#""a\udb40\udc41\ufeff""#),
            ("a\r\nb\n\tc\rd", "a\r\nb\n\tcU+000Dd", r#""a\u000d\u000ab\u000a\u0009c\u000dd""#),
            ("<b>\u{200b}\"&'", "<b>U+200B\"&'", r#""<b>\u200b\"&'""#),
            (r#"", by "ana\u202e"#, r#"", by "ana\u202e"#, r#""\", by \"ana\\u202e""#),
            ("pay\u{200d}pal", "payU+200Dpal", r#""pay\u200dpal""#),
            ("\u{645}\u{200c}", "\u{645}U+200C", "\"\u{645}\\u200c\""),
        ] {
            assert_eq!((seen(text).as_ref(), quote(text).as_str()), (page, quoted), "{text:?}");
        }
        for kind in [
            "e\u{301} José",
            "مريم بنت عمران",
            "שָׁלוֹם",
            "نمی\u{200c}خواهم",
            "क्\u{200d}ष",
            "👩\u{200d}👩\u{200d}👧",
            "🏳\u{fe0f}\u{200d}🌈",
        ] {
            assert_eq!(seen(kind), kind);
            assert_eq!(quote(kind), format!("\"{kind}\""));
        }
    }

    #[test]
    fn comments_count_characters_after_dropping_nuls() {
        let new = |text: String| Comments::new(text.into()).map(|c| c.as_str().chars().count());
        assert_eq!(new("é".repeat(1000)), Ok(1000));
        assert_eq!(new("é".repeat(1001)), Err(CommentsTooLong));
        assert_eq!(new("x\0".repeat(1000)), Ok(1000));
        assert_eq!(new("\0".repeat(5000)), Ok(0));
    }
}
