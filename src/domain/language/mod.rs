//! The languages of pages and mail: which there are, which one a reader wants, and how a text of theirs is filled in.
//!
//! All texts stand in `languages/`, a file a language; the API and MCP speak English alone. Another language is a file there
//! and a line in [`Language::ALL`] and the two matches below.

pub mod words;

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

pub use self::words::Words;
use super::figure::grouped;
use super::json_text::json_text;
use super::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    #[default]
    English,
    Spanish,
}

json_text!(Language, |language: &Language| language.code());

impl Language {
    pub const ALL: [Self; 2] = [Self::English, Self::Spanish];

    /// As HTML, browsers and the records write it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Spanish => "es",
        }
    }

    /// As chats that show a card know it: of the country that the union is in.
    pub const fn locale(self) -> &'static str {
        match self {
            Self::English => "en_US",
            Self::Spanish => "es_US",
        }
    }

    const fn file(self) -> &'static str {
        match self {
            Self::English => include_str!("../../../languages/en.toml"),
            Self::Spanish => include_str!("../../../languages/es.toml"),
        }
    }

    pub fn words(self) -> &'static Words {
        static WORDS: LazyLock<Vec<Words>> = LazyLock::new(|| {
            let read = |language: Language| toml::from_str(language.file()).expect("tests hold that each file reads");
            Language::ALL.map(read).into()
        });
        &WORDS[self as usize]
    }

    /// Reads a language as browsers write it; what comes after the language itself (`es-MX`) is its region.
    pub fn from_code(code: &str) -> Option<Self> {
        let code = code.trim().split(['-', '_']).next()?;
        Self::ALL.into_iter().find(|language| language.code().eq_ignore_ascii_case(code))
    }

    /// The one that a browser likes best of those there are, by its `Accept-Language`.
    pub fn accepted(header: &str) -> Option<Self> {
        let mut best = None;
        for range in header.split(',').take(20) {
            let (code, rest) = range.split_once(';').unwrap_or((range, ""));
            let quality = rest.trim().strip_prefix("q=").map_or(Some(1.0_f32), |text| text.trim().parse().ok());
            if let (Some(language), Some(quality)) = (Self::from_code(code), quality)
                && quality > best.map_or(0.0, |(_, known)| known)
            {
                best = Some((language, quality));
            }
        }
        best.map(|(language, _)| language)
    }

    /// The others.
    pub fn others(self) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |language| *language != self)
    }
}

/// A text of the table: HTML of ours, with holes such as `{union}`.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Phrase(String);

impl Phrase {
    pub fn put<'p>(&'p self, hole: &'static str, value: impl fmt::Display) -> Filling<'p> {
        Filling { phrase: &self.0, values: Vec::new() }.put(hole, value)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text whose holes are being filled. Shown, it is HTML in which no value is markup.
#[derive(Debug)]
pub struct Filling<'p> {
    phrase: &'p str,
    values: Vec<(&'static str, String)>,
}

impl Filling<'_> {
    #[must_use]
    pub fn put(mut self, hole: &'static str, value: impl fmt::Display) -> Self {
        self.values.push((hole, value.to_string()));
        self
    }

    /// For where there is no HTML: values as they are.
    pub fn plain(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _written = self.write(&mut text, fmt::Write::write_str);
        text
    }

    /// In one pass: what a value holds is never taken for a hole.
    fn write<W: fmt::Write>(&self, out: &mut W, write: impl Fn(&mut W, &str) -> fmt::Result) -> fmt::Result {
        let mut rest = self.phrase;
        while let Some((before, from)) = rest.split_once('{') {
            out.write_str(before)?;
            let (hole, after) = from.split_once('}').unwrap_or((from, ""));
            match self.values.iter().find(|(name, _)| *name == hole) {
                Some((_, value)) => write(out, value)?,
                None => write!(out, "{{{hole}}}")?,
            }
            rest = after;
        }
        out.write_str(rest)
    }
}

impl fmt::Display for Filling<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, |out, value| {
            value.chars().try_for_each(|c| match c {
                '&' | '<' | '>' | '"' | '\'' => write!(out, "&#{};", u32::from(c)),
                c => fmt::Write::write_char(out, c),
            })
        })
    }
}

// Ours and escaped by ourselves.
impl askama::filters::HtmlSafe for Phrase {}
impl askama::filters::HtmlSafe for Filling<'_> {}

/// Figures and times, as the language writes them.
impl Words {
    /// 14 November 2026.
    pub fn date(&self, time: Timestamp) -> String {
        let text = time.to_string();
        let part = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse::<usize>().ok()).unwrap_or(0);
        let month = self.months.get(part(5, 7).saturating_sub(1)).map_or("", String::as_str);
        self.site.date.put("day", part(8, 10)).put("month", month).put("year", part(0, 4)).plain()
    }

    /// To the minute.
    pub fn moment(&self, time: Timestamp) -> String {
        let text = time.to_string();
        let clock = text.get(11..16).unwrap_or_default();
        self.site.moment.put("date", self.date(time)).put("time", clock).plain()
    }

    /// A span in whole days.
    pub fn days(&self, span: Duration) -> String {
        counted(&self.site.one_day, &self.site.days, span.as_secs() / (24 * 3600))
    }

    pub fn members(&self, count: u64) -> String {
        counted(&self.site.one_member, &self.site.members, count)
    }

    pub fn people(&self, count: u32) -> String {
        counted(&self.site.one_person, &self.site.people, count.into())
    }

    pub fn groups(&self, count: u32) -> String {
        counted(&self.site.one_group, &self.site.groups, count.into())
    }

    /// A span in words; rounded up, so that who waits it out is not refused again.
    pub fn wait(&self, seconds: u32) -> String {
        let (many, count) = match seconds {
            0 | 1 => return self.site.a_second.to_string(),
            2..=90 => (&self.site.seconds, seconds),
            91..=5400 => (&self.site.minutes, seconds.div_ceil(60)),
            _ => (&self.site.hours, seconds.div_ceil(3600)),
        };
        many.put("count", grouped(count.into())).plain()
    }
}

fn counted(one: &Phrase, many: &Phrase, count: u64) -> String {
    match count {
        1 => one.to_string(),
        count => many.put("count", grouped(count)).plain(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::domain::catalog::category::Category;
    use crate::domain::us_state::UsState;

    /// Every text of a language by its name.
    fn texts(language: Language) -> BTreeMap<String, String> {
        let table: toml::Table = toml::from_str(language.file()).unwrap();
        let mut texts = BTreeMap::new();
        for (section, value) in &table {
            if let Some(section_texts) = value.as_table() {
                for (name, text) in section_texts {
                    texts.insert(format!("{section}.{name}"), text.as_str().unwrap().to_owned());
                }
            }
        }
        texts
    }

    /// What stands between two characters, each as often as it does.
    fn between(text: &str, open: char, close: char) -> Vec<String> {
        let mut found: Vec<_> =
            text.split(open).skip(1).map(|rest| rest.split(close).next().unwrap().to_owned()).collect();
        found.sort();
        found
    }

    #[test]
    fn no_language_lacks_a_text_a_hole_or_a_tag() {
        let english = texts(Language::English);
        for language in Language::ALL {
            // Whatever is missing, or nobody asks for, is named here.
            toml::from_str::<Words>(language.file()).unwrap();
            let texts = texts(language);
            for (name, text) in english.iter().filter(|(name, _)| !name.starts_with("state.")) {
                let here = texts.get(name).unwrap_or_else(|| panic!("{}: {name} is missing", language.code()));
                assert!(!here.trim().is_empty(), "{}: {name} is empty", language.code());
                let holes = |text: &str| between(text, '{', '}').into_iter().collect::<BTreeSet<_>>();
                assert_eq!(holes(here), holes(text), "{}: the holes of {name}", language.code());
                assert_eq!(between(here, '<', '>'), between(text, '<', '>'), "{}: the tags of {name}", language.code());
                if language != Language::English && !text.starts_with('{') && text.len() > 20 {
                    assert_ne!(here, text, "{}: {name} is still in English", language.code());
                }
            }
            for category in Category::ALL {
                assert!(texts.contains_key(&format!("category.{}", category.slug())), "{}", category.slug());
            }
            let states = texts.keys().filter_map(|name| name.strip_prefix("state."));
            states.for_each(|code| assert!(UsState::from_code(code).is_some(), "{}: {code}", language.code()));
        }
        let words = Language::English.words();
        assert!(Category::ALL.iter().all(|category| words.category(*category) == category.label()));
    }

    #[test]
    fn no_value_is_markup_and_none_is_a_hole() {
        let phrase = Phrase("<b>{a}</b> and {b}, {c}".to_owned());
        let filling = phrase.put("a", "{b}<i>").put("b", "\"&'");
        assert_eq!(filling.to_string(), "<b>{b}&#60;i&#62;</b> and &#34;&#38;&#39;, {c}");
        assert_eq!(filling.plain(), "<b>{b}<i></b> and \"&', {c}");
        assert_eq!(Phrase("a { b".to_owned()).put("x", 1).plain(), "a { b}", "never in the table, and no panic");
    }

    #[test]
    fn a_reader_gets_the_language_they_like_best() {
        for (header, wanted) in [
            ("es", Some(Language::Spanish)),
            ("es-MX,es;q=0.9,en;q=0.8", Some(Language::Spanish)),
            ("en-US,en;q=0.9,es;q=0.8", Some(Language::English)),
            ("fr, es;q=0.5, en;q=0.7", Some(Language::English)),
            ("de-CH, de", None),
            ("es;q=0", None),
            ("*", None),
            ("", None),
            ("es;q=x, en;q=0.1", Some(Language::English)),
        ] {
            assert_eq!(Language::accepted(header), wanted, "{header}");
        }
        assert_eq!(Language::from_code("ES_us"), Some(Language::Spanish));
    }

    #[test]
    fn figures_and_times_are_written_as_the_language_does() {
        let (english, spanish) = (Language::English.words(), Language::Spanish.words());
        let time = Timestamp::from_millis(1_794_743_200_000);
        assert_eq!(english.moment(time), "15 November 2026, 11:46 UTC");
        assert_eq!(spanish.date(time), "15 de noviembre de 2026");
        assert_eq!(english.date(time), time.day());
        assert_eq!(english.days(Duration::from_secs(365 * 24 * 3600)), "365 days");
        assert_eq!((english.members(1), english.members(1234)), ("1 member".to_owned(), "1,234 members".to_owned()));
        for (seconds, text) in [
            (0, "a second"),
            (1, "a second"),
            (90, "90 seconds"),
            (91, "2 minutes"),
            (3600, "60 minutes"),
            (5401, "2 hours"),
        ] {
            assert_eq!(english.wait(seconds), text);
        }
    }
}
