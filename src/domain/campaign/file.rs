//! What an operator writes as a file (TOML, or JSON), types into a form, or a negotiator sends: read field by field. Everything wrong with it
//! is reported at once, each with its place.

use std::collections::BTreeSet;
use std::fmt;

use jiff::civil::Date;
use toml::{Table, Value};

use super::LastDay;
use crate::domain::language::Language;
use crate::domain::text::{is_hidden, toml_mistake};

/// What a day looks like.
const A_DAY: &str = "a day, such as 2027-01-31";

/// All that is wrong with a file, one sentence each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadFile(pub Vec<String>);

impl fmt::Display for BadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for BadFile {}

/// A table while it is read. A field that was not asked for is a mistake, too.
pub(super) struct FileReader {
    table: Table,
    /// What stands before a field's name in a sentence.
    place: String,
    asked: BTreeSet<&'static str>,
    pub mistakes: Vec<String>,
    /// It was taken before, perhaps by another version: whatever can be read of it counts.
    is_kept: bool,
}

impl FileReader {
    pub(super) fn new(text: &str) -> Result<Self, BadFile> {
        // No TOML begins like this: what was kept, and what a command printed with `--json`.
        if text.trim_start().starts_with('{') {
            let read = serde_json::from_str(text);
            let sent = read.map_err(|error: serde_json::Error| {
                BadFile(vec![format!(
                    "line {}, column {}: this is not JSON; write {{\"supplier\": \"Example Fiber\", \"term_months\": 12}}, or TOML",
                    error.line(),
                    error.column()
                )])
            })?;
            return Ok(Self::sent(&sent));
        }
        let mut text = text.to_owned();
        loop {
            let error = match text.parse::<Table>() {
                Ok(table) => return Ok(Self::of(table, String::new(), false)),
                Err(error) => error,
            };
            let start = error.span().map(|span| span.start).filter(|start| text.is_char_boundary(*start));
            // Read as a text, so that its field is reported along with all other mistakes.
            let Some(day) = start.and_then(|start| bare_day(&text, start)) else {
                return Err(BadFile(vec![toml_mistake(&text, &error)]));
            };
            text.insert(day.end, '"');
            text.insert(day.start, '"');
        }
    }

    /// The same of a file that was taken before: a field that is unknown here, or a language that was not there then, is no mistake.
    pub(super) fn kept(text: &str) -> Result<Self, BadFile> {
        Ok(Self { is_kept: true, ..Self::new(text)? })
    }

    /// Of JSON. What is null is left out.
    pub(super) fn sent(object: &serde_json::Map<String, serde_json::Value>) -> Self {
        Self::of(table_of(object), String::new(), false)
    }

    fn of(table: Table, place: String, is_kept: bool) -> Self {
        Self { table, place, asked: BTreeSet::new(), mistakes: Vec::new(), is_kept }
    }

    pub(super) fn wrong(&mut self, field: &str, why: &str) {
        self.mistakes.push(format!("{}{field}: {why}", self.place));
    }

    fn take(&mut self, field: &'static str) -> Option<Value> {
        self.asked.insert(field);
        self.table.remove(field)
    }

    /// A field that may be left out.
    fn optional<T>(&mut self, field: &'static str, wants: &str, read: impl FnOnce(Value) -> Option<T>) -> Option<T> {
        let value = self.take(field)?;
        let read = read(value);
        if read.is_none() {
            self.wrong(field, &format!("write {wants}"));
        }
        read
    }

    /// A field that must be there.
    fn required<T>(&mut self, field: &'static str, wants: &str, read: impl FnOnce(Value) -> Option<T>) -> Option<T> {
        if !self.table.contains_key(field) {
            self.asked.insert(field);
            self.wrong(field, &format!("it is missing; write {wants}"));
            return None;
        }
        self.optional(field, wants, read)
    }

    /// Text of the operator's, on one line or several, without what cannot be seen.
    pub(super) fn text(&mut self, field: &'static str, most: usize, example: &str) -> Option<String> {
        let wants = format!("a text of 1 to {most} characters, such as \"{example}\"");
        self.required(field, &wants, |value| read_text(value, most))
    }

    pub(super) fn optional_text(&mut self, field: &'static str, most: usize) -> Option<String> {
        self.optional(field, &format!("a text of 1 to {most} characters"), |value| read_text(value, most))
    }

    /// A text that is parsed.
    pub(super) fn parsed<T>(
        &mut self,
        field: &'static str,
        wants: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        self.required(field, wants, |value| parse(&read_text(value, 320)?))
    }

    pub(super) fn optional_parsed<T>(
        &mut self,
        field: &'static str,
        wants: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        self.optional(field, wants, |value| parse(value.as_str()?))
    }

    pub(super) fn whole(&mut self, field: &'static str, least: u32, most: u32) -> Option<u32> {
        self.required(field, &format!("a whole number from {least} to {most}"), |value| {
            u32::try_from(value.as_integer()?).ok().filter(|number| (least..=most).contains(number))
        })
    }

    /// An amount in cents.
    pub(super) fn cents(&mut self, field: &'static str) -> Option<u64> {
        self.whole(field, 0, MOST_CENTS).map(u64::from)
    }

    pub(super) fn optional_whole(&mut self, field: &'static str, least: u32, most: u32) -> Option<u32> {
        if self.has(field) { self.whole(field, least, most) } else { None }
    }

    /// A field that is false where it is left out.
    pub(super) fn flag(&mut self, field: &'static str) -> bool {
        self.optional(field, "true or false", |value| value.as_bool()).unwrap_or(false)
    }

    pub(super) fn has(&mut self, field: &'static str) -> bool {
        self.asked.insert(field);
        self.table.contains_key(field)
    }

    pub(super) fn has_table(&self, field: &str) -> bool {
        self.table.get(field).is_some_and(Value::is_table)
    }

    /// Leaves a field unread: what is wrong with it was told.
    pub(super) fn skip(&mut self, field: &str) {
        self.table.remove(field);
        self.asked.remove(field);
    }

    /// The same table again, to read other fields of it; mistakes are not told twice.
    pub(super) fn peek(&self) -> Self {
        Self::of(self.table.clone(), self.place.clone(), self.is_kept)
    }

    pub(super) fn day(&mut self, field: &'static str) -> Option<LastDay> {
        self.required(field, A_DAY, read_day)
    }

    pub(super) fn optional_day(&mut self, field: &'static str) -> Option<LastDay> {
        self.optional(field, A_DAY, read_day)
    }

    /// A list of texts, each of which is parsed; nothing where there is none. `one` is what each of them is.
    pub(super) fn list<T>(
        &mut self,
        field: &'static str,
        (one, wants): (&str, &str),
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let values = self.optional(field, wants, |value| value.as_array().cloned())?;
        let mut read = Vec::with_capacity(values.len());
        for value in &values {
            match value.as_str().and_then(&parse) {
                Some(parsed) => read.push(parsed),
                None => {
                    let shown = match value {
                        Value::String(text) => format!("\"{text}\""),
                        Value::Integer(number) => number.to_string(),
                        _ => "one of them".to_owned(),
                    };
                    self.wrong(field, &format!("{shown} is not {one}; write {wants}"));
                }
            }
        }
        Some(read)
    }

    /// A list of at most so many texts of at most so many characters.
    pub(super) fn texts_of(
        &mut self,
        field: &'static str,
        (most, longest): (usize, usize),
        wants: &str,
    ) -> Vec<String> {
        let read = |text: &str| read_text(Value::String(text.to_owned()), longest);
        let texts = self.list(field, ("a text", wants), read).unwrap_or_default();
        if texts.len() > most {
            self.wrong(field, &format!("write {wants}"));
        }
        texts
    }

    /// A table inside this one, read by itself; `fields` are those that it must have, in words.
    pub(super) fn table<T>(
        &mut self,
        field: &'static str,
        fields: &str,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let inner = self.required(field, &format!("its {fields}"), |value| value.as_table().cloned())?;
        let mut inner = Self::of(inner, format!("{}{field}.", self.place), self.is_kept);
        let read = read(&mut inner);
        inner.end();
        self.mistakes.append(&mut inner.mistakes);
        read
    }

    /// The same, for a table that may be left out.
    pub(super) fn optional_table<T>(
        &mut self,
        field: &'static str,
        fields: &str,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        if self.has(field) { self.table(field, fields, read) } else { None }
    }

    /// A list of tables, each read by itself; none where it is left out. Each is named by its number, from 1.
    pub(super) fn tables<T>(
        &mut self,
        field: &'static str,
        (fields, most): (&str, usize),
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Vec<T> {
        let wants = format!("a list of at most {most} tables, each with its {fields}");
        let tables = self.optional(field, &wants, |value| {
            let tables = value.as_array()?.iter().map(|one| one.as_table().cloned()).collect::<Option<Vec<_>>>()?;
            (tables.len() <= most).then_some(tables)
        });
        let mut all = Vec::new();
        for (at, table) in tables.unwrap_or_default().into_iter().enumerate() {
            let mut inner = Self::of(table, format!("{}{field}.{}.", self.place, at + 1), self.is_kept);
            all.extend(read(&mut inner));
            inner.end();
            self.mistakes.append(&mut inner.mistakes);
        }
        all
    }

    /// Texts in every language, by the tables `text.en` and its like.
    pub(super) fn texts<T>(
        &mut self,
        fields: &str,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<(Language, T)>> {
        // Where all are missing, each is reported.
        self.table.entry("text").or_insert_with(|| Value::Table(Table::new()));
        self.table("text", &Language::ALL.map(Language::code).join(" and "), |texts| {
            let all: Vec<_> = Language::ALL
                .into_iter()
                .map(|language| Some((language, texts.table(language.code(), fields, &mut read)?)))
                .collect();
            if texts.is_kept && all.iter().any(Option::is_some) {
                return Some(all.into_iter().flatten().collect());
            }
            all.into_iter().collect()
        })
    }

    /// What is left is no field.
    pub(super) fn end(&mut self) {
        for field in std::mem::take(&mut self.table).keys() {
            // Two slips make any two letters of any others.
            let slips = (field.chars().count() / 3).clamp(1, 2);
            let near = self.asked.iter().find(|known| strsim::osa_distance(known, field) <= slips);
            let why = match near {
                Some(known) => format!("there is no such field; did you mean {known}?"),
                None => format!(
                    "there is no such field; there are {}",
                    self.asked.iter().copied().collect::<Vec<_>>().join(", ")
                ),
            };
            self.wrong(field, &why);
        }
    }

    /// What was read, if nothing was wrong with it.
    pub(super) fn finish<T>(mut self, read: impl FnOnce() -> Option<T>) -> Result<T, BadFile> {
        self.end();
        match read() {
            Some(read) if self.is_kept || self.mistakes.is_empty() => Ok(read),
            _ => Err(BadFile(self.mistakes)),
        }
    }
}

/// Where a day stands that is none, such as 2027-02-30, which TOML reads only inside quotation marks.
fn bare_day(text: &str, at: usize) -> Option<std::ops::Range<usize>> {
    let is_part = |c: char| c.is_ascii_digit() || c == '-';
    let start = text[..at].trim_end_matches(is_part).len();
    let rest = &text[start..];
    let day = &rest[..rest.len() - rest.trim_start_matches(is_part).len()];
    let is_alone = text[..start].ends_with([' ', '=', '\t']) && !rest[day.len()..].starts_with(['"', '\'']);
    let is_day = day.len() >= 6 && day.matches('-').count() == 2;
    (is_alone && is_day).then(|| start..start + day.len())
}

/// The text for a reader: of another language where theirs did not exist when it was written.
pub(super) fn text_for<T>(texts: &[(Language, T)], language: Language) -> Option<&T> {
    texts.iter().find(|(of, _)| *of == language).or(texts.first()).map(|(_, text)| text)
}

/// An amount that no household pays.
const MOST_CENTS: u32 = 1_000_000_000;

fn table_of(object: &serde_json::Map<String, serde_json::Value>) -> Table {
    object.iter().filter_map(|(name, value)| Some((name.clone(), value_of(value)?))).collect()
}

fn value_of(value: &serde_json::Value) -> Option<Value> {
    use serde_json::Value as Json;
    Some(match value {
        Json::Null => return None,
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::Integer(whole),
            #[expect(clippy::cast_possible_truncation, reason = "a whole number below 10^15")]
            (None, Some(number)) if number.fract() == 0.0 && number.abs() < 1e15 => Value::Integer(number as i64),
            (None, number) => Value::Float(number.unwrap_or_default()),
        },
        Json::String(text) => Value::String(text.clone()),
        Json::Array(values) => Value::Array(values.iter().filter_map(value_of).collect()),
        Json::Object(object) => Value::Table(table_of(object)),
    })
}

fn read_text(value: Value, most: usize) -> Option<String> {
    let Value::String(text) = value else { return None };
    let text = text.trim();
    let is_seen = !text.chars().any(|c| is_hidden(c) && c != '\n');
    ((1..=most).contains(&text.chars().count()) && is_seen).then(|| text.to_owned())
}

fn read_day(value: Value) -> Option<LastDay> {
    let found = match value {
        Value::Datetime(found) => found,
        // Of JSON, and of operators who quote it.
        Value::String(text) => return text.parse().ok().filter(|day: &LastDay| day.to_string() == text),
        _ => return None,
    };
    let (date, None, None) = (found.date?, found.time, found.offset) else { return None };
    Date::new(i16::try_from(date.year).ok()?, i8::try_from(date.month).ok()?, i8::try_from(date.day).ok()?)
        .ok()
        .map(LastDay)
}
