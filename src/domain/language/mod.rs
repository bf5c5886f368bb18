//! The languages of pages and mail: which there are, which one a reader wants, and how a text of theirs is filled in.
//!
//! All texts are in `languages/`, one file for each language; the API and MCP speak English alone. Another language is a file
//! there, and a line in [`Language::ALL`] and in the matches below.

pub mod words;

use std::fmt;
use std::time::Duration;

pub use self::words::Words;
use super::figure::grouped;
use super::json::json_text;
use super::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
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

    pub const fn words(self) -> &'static Words {
        match self {
            Self::English => &words::EN,
            Self::Spanish => &words::ES,
        }
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
pub struct Phrase(&'static str);

impl Phrase {
    pub fn put(&self, hole: &'static str, value: impl fmt::Display) -> Filling {
        Filling { phrase: self.0, values: Vec::new() }.put(hole, value)
    }

    pub const fn as_str(&self) -> &'static str {
        self.0
    }

    /// What is before and after a hole, for a value that is an element.
    pub fn around(&self, hole: &str) -> (&'static str, &'static str) {
        self.0.split_once(&format!("{{{hole}}}")).unwrap_or((self.0, ""))
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A text whose holes are being filled. Shown, it is HTML in which no value is markup.
pub struct Filling {
    phrase: &'static str,
    values: Vec<(&'static str, String)>,
}

impl Filling {
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

impl fmt::Display for Filling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, |out, value| {
            value.chars().try_for_each(|c| match c {
                '&' | '<' | '>' | '"' | '\'' => write!(out, "&#{};", u32::from(c)),
                c => fmt::Write::write_char(out, c),
            })
        })
    }
}

/// A point in time. It is written in UTC, and `templates/times.js` writes it in the reader's own zone.
pub struct WrittenTime {
    exact: Timestamp,
    text: String,
}

impl fmt::Display for WrittenTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<time datetime=\"{}\">{}</time>", self.exact, self.text)
    }
}

// Ours and escaped by ourselves.
impl askama::filters::HtmlSafe for WrittenTime {}
impl askama::filters::HtmlSafe for Phrase {}
impl askama::filters::HtmlSafe for Filling {}

/// Figures and times, as the language writes them.
impl Words {
    /// Nov 14, 2026.
    pub fn date(&self, time: Timestamp) -> String {
        let text = time.to_string();
        let part = |range| text.get(range).unwrap_or_default();
        let (year, month, day) = (part(0..4), self.month(part(5..7)), part(8..10).trim_start_matches('0'));
        self.site.date.put("day", day).put("month", month).put("year", year).plain()
    }

    /// Nov 14: for where there is little room, and the year is plain.
    pub fn short_date(&self, time: Timestamp) -> String {
        let text = time.to_string();
        let part = |range| text.get(range).unwrap_or_default();
        let month: String = self.month(part(5..7)).chars().take(3).collect();
        self.own.short_day.put("day", part(8..10).trim_start_matches('0')).put("month", month).plain()
    }

    /// The day alone, until a script writes the time in the reader's zone.
    pub fn day(&self, time: Timestamp) -> WrittenTime {
        WrittenTime { exact: time, text: self.date(time) }
    }

    /// To the minute.
    pub fn moment(&self, time: Timestamp) -> WrittenTime {
        let text = time.to_string();
        let hour: u8 = text.get(11..13).and_then(|hour| hour.parse().ok()).unwrap_or_default();
        let half = if hour < 12 { &self.site.morning } else { &self.site.afternoon };
        let clock = format!("{}:{}", (hour + 11) % 12 + 1, text.get(14..16).unwrap_or_default());
        let clock = half.put("time", clock).plain();
        WrittenTime { exact: time, text: self.site.moment.put("date", self.date(time)).put("time", clock).plain() }
    }

    /// A span in whole days.
    pub fn days(&self, span: Duration) -> String {
        counted(&self.site.one_day, &self.site.days, span.as_secs() / (24 * 3600))
    }

    /// Names of states in a sentence: "California, Oregon, and Nevada".
    pub fn list(&self, names: &[&str]) -> String {
        let (last, others) = match names {
            [] => return String::new(),
            [one] => return (*one).to_owned(),
            [others @ .., last] => (*last, others),
        };
        // Spanish says "e Idaho"; "Iowa" does not begin with that sound.
        let is_i = last.starts_with('I') && !last.starts_with("Io");
        let and = if is_i { &self.site.and_before_i } else { &self.site.and };
        match others {
            [first] => format!("{first} {and} {last}"),
            _ => self.site.list_more.put("list", others.join(", ")).put("and", and).put("last", last).plain(),
        }
    }

    pub fn members(&self, count: u64) -> String {
        counted(&self.site.one_member, &self.site.members, count)
    }

    pub fn friends(&self, count: u64) -> String {
        counted(&self.reward.one_friend, &self.reward.friends, count)
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
    use super::*;

    #[test]
    fn a_list_of_states_ends_with_and() {
        let lists: [&[&str]; 6] = [
            &[],
            &["Texas"],
            &["Texas", "Ohio"],
            &["Texas", "Ohio", "Utah"],
            &["Texas", "Idaho"],
            &["Texas", "Ohio", "Iowa"],
        ];
        let of = |language: Language| lists.map(|names| language.words().list(names));
        let (texas, ohio) = ("Texas and Ohio", "Texas, Ohio, and Utah");
        assert_eq!(of(Language::English), ["", "Texas", texas, ohio, "Texas and Idaho", "Texas, Ohio, and Iowa"]);
        let (texas, ohio) = ("Texas y Ohio", "Texas, Ohio y Utah");
        assert_eq!(of(Language::Spanish), ["", "Texas", texas, ohio, "Texas e Idaho", "Texas, Ohio y Iowa"]);
    }

    #[test]
    fn no_value_is_markup_and_none_is_a_hole() {
        let phrase = Phrase("<b>{a}</b> and {b}, {c}");
        let filling = phrase.put("a", "{b}<i>").put("b", "\"&'");
        assert_eq!(filling.to_string(), "<b>{b}&#60;i&#62;</b> and &#34;&#38;&#39;, {c}");
        assert_eq!(filling.plain(), "<b>{b}<i></b> and \"&', {c}");
        assert_eq!(Phrase("a { b").put("x", 1).plain(), "a { b}", "never in the table, and no panic");
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
        let element = "<time datetime=\"2026-11-15T11:46:40Z\">Nov 15, 2026, 11:46 AM UTC</time>";
        assert_eq!(english.moment(time).to_string(), element);
        assert_eq!(spanish.moment(Timestamp::from_millis(0)).text, "1 de enero de 1970, 12:00 a. m. UTC");
        assert_eq!(english.moment(Timestamp::from_millis(43_200_000)).text, "Jan 1, 1970, 12:00 PM UTC");
        assert_eq!(spanish.own.pending.around("moment"), ("Sin confirmar; vence el ", ""));
        assert_eq!(spanish.date(time), "15 de noviembre de 2026");
        assert_eq!(english.date(time), time.day());
        assert_eq!((english.short_date(time).as_str(), spanish.short_date(time).as_str()), ("Nov 15", "15 nov"));
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
