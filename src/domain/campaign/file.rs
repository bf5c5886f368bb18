//! A TOML file of the operator's, read field by field: whatever is wrong with it is told at once, each with its place.

use std::collections::BTreeSet;
use std::fmt;

use jiff::civil::Date;
use toml::{Table, Value};

use super::LastDay;
use crate::domain::language::Language;
use crate::domain::text::is_hidden;

/// All that is wrong with a file, one sentence each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadFile(pub Vec<String>);

impl fmt::Display for BadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for BadFile {}

/// A table while it is read. What nobody asked for is a mistake, too.
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
        match text.parse::<Table>() {
            Ok(table) => Ok(Self::of(table, String::new(), false)),
            Err(error) => {
                let line =
                    error.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
                let message = error.message().replace('\n', " ");
                Err(BadFile(vec![line.map_or_else(|| message.clone(), |line| format!("line {line}: {message}"))]))
            }
        }
    }

    /// The same of a file that was taken before: a field that is unknown here, or a language that was not there then, is no mistake.
    pub(super) fn kept(text: &str) -> Result<Self, BadFile> {
        Ok(Self { is_kept: true, ..Self::new(text)? })
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
        let wants = format!("a text of 1 to {most} characters, such as {field} = \"{example}\"");
        self.required(field, &wants, |value| read_text(value, most))
    }

    pub(super) fn optional_text(&mut self, field: &'static str, most: usize) -> Option<String> {
        self.optional(field, &format!("a text of 1 to {most} characters"), |value| read_text(value, most))
    }

    /// A text that is parsed; a mistake is told in its own words.
    pub(super) fn parsed<T, E: fmt::Display>(
        &mut self,
        field: &'static str,
        example: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.text(field, 320, example)?;
        parse(&text).map_err(|error| self.wrong(field, &error.to_string())).ok()
    }

    pub(super) fn whole(&mut self, field: &'static str, least: u32, most: u32) -> Option<u32> {
        self.required(field, &format!("a whole number from {least} to {most}"), |value| {
            u32::try_from(value.as_integer()?).ok().filter(|number| (least..=most).contains(number))
        })
    }

    pub(super) fn day(&mut self, field: &'static str) -> Option<LastDay> {
        self.required(field, "a day, without quotation marks, such as 2027-01-31", read_day)
    }

    pub(super) fn optional_day(&mut self, field: &'static str) -> Option<LastDay> {
        self.optional(field, "a day, without quotation marks, such as 2027-01-31", read_day)
    }

    /// A list of texts, each of which is parsed; nothing where there is none.
    pub(super) fn list<T>(
        &mut self,
        field: &'static str,
        wants: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let values = self.optional(field, wants, |value| match value {
            Value::Array(values) => Some(values),
            _ => None,
        })?;
        let mut read = Vec::with_capacity(values.len());
        for value in &values {
            match value.as_str().and_then(&parse) {
                Some(one) => read.push(one),
                None => {
                    let shown =
                        value.as_str().map_or_else(|| value.type_str().to_owned(), |text| format!("\"{text}\""));
                    self.wrong(field, &format!("{shown} is none; write {wants}"));
                }
            }
        }
        Some(read)
    }

    /// A table inside this one, read by itself.
    pub(super) fn table<T>(&mut self, field: &'static str, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let inner = self.required(field, &format!("a table [{}{field}]", self.place), |value| match value {
            Value::Table(table) => Some(table),
            _ => None,
        })?;
        let mut inner = Self::of(inner, format!("{}{field}.", self.place), self.is_kept);
        let read = read(&mut inner);
        inner.end();
        self.mistakes.append(&mut inner.mistakes);
        read
    }

    /// Texts in every language there is, by the tables `text.en` and its like.
    pub(super) fn texts<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<(Language, T)>> {
        self.table("text", |texts| {
            let all: Vec<_> = Language::ALL
                .into_iter()
                .map(|language| Some((language, texts.table(language.code(), &mut read)?)))
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
            let near = self.asked.iter().find(|known| strsim::osa_distance(known, field) <= 2);
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
    pub(super) fn finish<T>(mut self, read: Option<T>) -> Result<T, BadFile> {
        self.end();
        match read {
            Some(read) if self.is_kept || self.mistakes.is_empty() => Ok(read),
            _ => Err(BadFile(self.mistakes)),
        }
    }
}

fn read_text(value: Value, most: usize) -> Option<String> {
    let Value::String(text) = value else { return None };
    let text = text.trim();
    let is_seen = !text.chars().any(|c| is_hidden(c) && c != '\n');
    ((1..=most).contains(&text.chars().count()) && is_seen).then(|| text.to_owned())
}

fn read_day(value: Value) -> Option<LastDay> {
    let Value::Datetime(found) = value else { return None };
    let (date, None, None) = (found.date?, found.time, found.offset) else { return None };
    Date::new(i16::try_from(date.year).ok()?, i8::try_from(date.month).ok()?, i8::try_from(date.day).ok()?)
        .ok()
        .map(LastDay)
}
