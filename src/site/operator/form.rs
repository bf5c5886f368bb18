//! A form of many fields, as data. What was typed becomes JSON for the reader of the same file, so that there is one set of rules; what that
//! reader finds wrong is said in the words of the form, all at once, and everything that was typed is shown again.

use std::collections::BTreeMap;

use askama::Template;
use hyper::StatusCode;
use serde_json::{Map, Value, json};

use super::frame::{OperatorFrame, render};
use super::session::OperatorVisit;
use crate::domain::campaign::{BadFile, LastDay};
use crate::http::response::answer::Answer;

/// What was typed, by the names of the inputs.
#[derive(Debug, Clone, Default)]
pub(in crate::site) struct Typed(BTreeMap<String, String>);

impl Typed {
    /// Browsers send the ends of lines their own way.
    pub(in crate::site) fn of(fields: &[u8]) -> Self {
        let mut typed = Self::default();
        for (name, value) in form_urlencoded::parse(fields) {
            typed.0.entry(name.into_owned()).or_insert_with(|| value.replace("\r\n", "\n"));
        }
        typed
    }

    pub(in crate::site) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub(in crate::site) fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }
}

pub(in crate::site) struct FormPart {
    pub heading: String,
    pub hint: String,
    /// Where the reader finds all of it; empty where it is no part of its own there.
    path: &'static str,
    pub fields: Vec<FormField>,
}

impl FormPart {
    pub(in crate::site) fn new(
        path: &'static str,
        heading: impl Into<String>,
        hint: impl Into<String>,
        fields: Vec<FormField>,
    ) -> Self {
        Self { heading: heading.into(), hint: hint.into(), path, fields }
    }
}

pub(in crate::site) struct FormField {
    /// The name and id of its input.
    pub name: String,
    /// Where the reader finds it: names and, in a list, numbers from 1.
    path: String,
    pub label: String,
    /// What it is of, where the label alone does not say it.
    pub of: String,
    pub hint: &'static str,
    pub input: Input,
    reads: Reads,
    /// What is sent where nothing was typed, but something of its part was.
    empty: Option<Value>,
    /// Whether a new row begins with it.
    pub begins_row: bool,
    /// Whether it has a row of its own.
    pub is_wide: bool,
}

pub(in crate::site) enum Input {
    Line,
    Lines(usize),
    Day,
    /// Values with their labels.
    Choice(Vec<(String, String)>),
    Check,
    /// Cannot be changed: it is shown, a choice by its label.
    Fixed(Vec<(String, String)>),
    /// Goes with the others of its part, unseen.
    Along(Value),
}

/// What becomes of what was typed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::site) enum Reads {
    Text,
    Whole,
    /// Dollars, kept as cents.
    Dollars,
    /// A percentage, kept as hundredths.
    Percent,
    /// Codes with commas or spaces between them.
    Codes,
    /// A text on each line.
    EachLine,
    Flag,
    /// Nothing: another field is read by it.
    Nothing,
}

impl FormField {
    pub(in crate::site) fn new(name: impl Into<String>, label: impl Into<String>, input: Input, reads: Reads) -> Self {
        let name = name.into();
        let (path, label) = (name.clone(), label.into());
        Self {
            name,
            path,
            label,
            of: String::new(),
            hint: "",
            input,
            reads,
            empty: None,
            begins_row: false,
            is_wide: false,
        }
    }

    pub(in crate::site) fn line(name: impl Into<String>, label: impl Into<String>) -> Self {
        Self::new(name, label, Input::Line, Reads::Text)
    }

    pub(in crate::site) fn lines(name: impl Into<String>, label: impl Into<String>, rows: usize) -> Self {
        Self::new(name, label, Input::Lines(rows), Reads::Text).wide()
    }

    pub(in crate::site) fn day(name: impl Into<String>, label: impl Into<String>) -> Self {
        Self::new(name, label, Input::Day, Reads::Text)
    }

    pub(in crate::site) fn number(name: impl Into<String>, label: impl Into<String>, reads: Reads) -> Self {
        Self::new(name, label, Input::Line, reads)
    }

    pub(in crate::site) fn choice(name: impl Into<String>, label: impl Into<String>, of: &[(&str, &str)]) -> Self {
        let of = of.iter().map(|(value, label)| ((*value).to_owned(), (*label).to_owned())).collect();
        Self::new(name, label, Input::Choice(of), Reads::Text)
    }

    pub(in crate::site) fn check(name: impl Into<String>, label: impl Into<String>) -> Self {
        Self::new(name, label, Input::Check, Reads::Flag)
    }

    pub(in crate::site) fn along(path: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::new(path, "", Input::Along(value.into()), Reads::Nothing)
    }

    pub(in crate::site) fn at(self, path: impl Into<String>) -> Self {
        Self { path: path.into(), ..self }
    }

    pub(in crate::site) fn reads(self, reads: Reads) -> Self {
        Self { reads, ..self }
    }

    pub(in crate::site) fn of(self, of: impl Into<String>) -> Self {
        Self { of: of.into(), ..self }
    }

    pub(in crate::site) fn hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    pub(in crate::site) fn empty(self, value: impl Into<Value>) -> Self {
        Self { empty: Some(value.into()), ..self }
    }

    pub(in crate::site) fn wide(self) -> Self {
        Self { is_wide: true, ..self }
    }

    pub(in crate::site) fn first(self) -> Self {
        Self { begins_row: true, ..self }
    }

    pub(in crate::site) fn fixed(self, is_fixed: bool) -> Self {
        let choices = match self.input {
            _ if !is_fixed => return self,
            Input::Choice(choices) => choices,
            _ => Vec::new(),
        };
        Self { input: Input::Fixed(choices), ..self }
    }

    /// What has to be written, unless the reader says it well enough.
    fn wants(&self) -> &'static str {
        match self.reads {
            Reads::Dollars => "an amount in dollars up to 10,000,000, such as 48 or 48.50",
            Reads::Percent => "a percentage up to 100, such as 6.49",
            Reads::Codes => "two-letter codes, such as CA, OR, or leave it empty for all states",
            Reads::Text | Reads::Whole | Reads::EachLine | Reads::Flag | Reads::Nothing => "",
        }
    }

    /// As a sentence calls it.
    fn called(&self) -> String {
        let label = self.label.trim_end_matches(" (optional)");
        if self.of.is_empty() { label.to_owned() } else { format!("{label} ({})", self.of) }
    }

    pub(in crate::site) fn is_number(&self) -> bool {
        matches!(self.reads, Reads::Whole | Reads::Dollars | Reads::Percent)
    }

    pub(in crate::site) fn is_day(&self) -> bool {
        matches!(self.input, Input::Day)
    }

    fn is_typed(&self, typed: &Typed) -> bool {
        !matches!(self.input, Input::Choice(_) | Input::Along(_)) && !typed.get(&self.name).trim().is_empty()
    }

    /// What the reader gets; what cannot be understood as it was typed, for the reader to refuse.
    fn value(&self, typed: &Typed) -> Option<Value> {
        if let Input::Along(value) = &self.input {
            return Some(value.clone());
        }
        let text = typed.get(&self.name).trim();
        if text.is_empty() {
            return self.empty.clone();
        }
        Some(match self.reads {
            Reads::Nothing => return None,
            Reads::Text => json!(text),
            Reads::Flag => json!(true),
            Reads::Whole => {
                text.parse::<u64>().ok().filter(|_| text.len() < 13).map_or_else(|| json!(text), Value::from)
            }
            Reads::Dollars => {
                hundredths(text.strip_prefix('$').unwrap_or(text)).map_or_else(|| json!(text), Value::from)
            }
            Reads::Percent => {
                hundredths(text.strip_suffix('%').unwrap_or(text)).map_or_else(|| json!(text), Value::from)
            }
            Reads::Codes => {
                let codes = text.split([',', ' ', '\n']).filter(|code| !code.is_empty());
                codes.map(|code| json!(code.to_ascii_uppercase())).collect()
            }
            Reads::EachLine => {
                text.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| json!(line)).collect()
            }
        })
    }
}

/// 48 or 48.5 or 1,234.56, in hundredths.
fn hundredths(text: &str) -> Option<u64> {
    let text = text.trim();
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let groups: Vec<_> = whole.split(',').collect();
    let is_grouped = groups.len() == 1
        || groups[0].len() <= 3 && !groups[0].is_empty() && groups[1..].iter().all(|group| group.len() == 3);
    let whole = groups.concat();
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_grouped || !are_digits(&whole) || !are_digits(part) || whole.len() > 12 || part.len() > 2 {
        return None;
    }
    let part = part.parse::<u64>().ok()? * if part.len() == 1 { 10 } else { 1 };
    Some(whole.parse::<u64>().ok()? * 100 + part)
}

/// Hundredths as one types them.
pub(in crate::site) fn typed_hundredths(hundredths: u64) -> String {
    match hundredths % 100 {
        0 => (hundredths / 100).to_string(),
        rest => format!("{}.{rest:02}", hundredths / 100),
    }
}

pub(in crate::site) struct FormMistake {
    pub text: String,
    /// The input that it is about.
    pub input: Option<String>,
}

pub(in crate::site) struct Form {
    pub parts: Vec<FormPart>,
    pub typed: Typed,
    /// A row of a list that is there whatever was typed.
    always: &'static str,
    pub mistakes: Vec<FormMistake>,
}

impl Form {
    pub(in crate::site) fn new(parts: Vec<FormPart>, typed: Typed, always: &'static str) -> Self {
        Self { parts, typed, always, mistakes: Vec::new() }
    }

    fn fields(&self) -> impl Iterator<Item = &FormField> {
        self.parts.iter().flat_map(|part| &part.fields)
    }

    /// The fields that are sent, with the place that each has there: an empty table is left out, and an empty row of a list, too.
    fn placed(&self) -> Vec<(String, &FormField)> {
        let is_there = |group: &str| {
            group == self.always
                || self.fields().any(|field| group_of(&field.path) == Some(group) && field.is_typed(&self.typed))
        };
        let mut rows: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut placed = Vec::new();
        for field in self.fields() {
            let Some(group) = group_of(&field.path) else {
                placed.push((field.path.clone(), field));
                continue;
            };
            if !is_there(group) {
                continue;
            }
            let place = match group.split_once('.') {
                None => field.path.clone(),
                Some((list, row)) => {
                    let rows = rows.entry(list).or_default();
                    if !rows.contains(&row) {
                        rows.push(row);
                    }
                    let number = rows.iter().position(|known| *known == row).unwrap_or(0) + 1;
                    format!("{list}.{number}{}", &field.path[group.len()..])
                }
            };
            placed.push((place, field));
        }
        placed
    }

    /// What was typed, for the reader.
    pub(in crate::site) fn sent(&self) -> Map<String, Value> {
        let mut sent = Map::new();
        for (place, field) in self.placed() {
            if let Some(value) = field.value(&self.typed) {
                put(&mut sent, &place.split('.').collect::<Vec<_>>(), value);
            }
        }
        sent.into_iter().map(|(name, value)| (name, with_lists(value))).collect()
    }

    /// Takes over what the reader found wrong.
    pub(in crate::site) fn mark(&mut self, BadFile(mistakes): BadFile) {
        self.mistakes = mistakes.iter().map(|mistake| self.said(mistake)).collect();
    }

    fn said(&self, mistake: &str) -> FormMistake {
        let (place, why) = mistake.split_once(": ").unwrap_or(("", mistake));
        let placed = self.placed();
        let exact = placed.iter().find(|(at, _)| at == place);
        let begins = |at: &str| at.strip_prefix(place).is_some_and(|rest| rest.starts_with('.'));
        let near = exact.or_else(|| placed.iter().find(|(at, _)| begins(at)));
        let empty = self.fields().find(|field| field.path == place || begins(&field.path));
        let field = near.map(|(_, field)| *field).or(empty);
        let part = self.parts.iter().find(|part| part.path == place && !place.is_empty());
        let called = match (exact, part) {
            (Some((_, field)), _) => field.called(),
            (None, Some(part)) => part.heading.trim_end_matches(" (optional)").to_owned(),
            (None, None) => field.map_or_else(|| place.replace(['.', '_'], " "), FormField::called),
        };
        let mut why = why.to_owned();
        if exact.is_some() && why.starts_with("there is no such field") {
            "it does not go with the others; leave it empty".clone_into(&mut why);
        }
        if let Some((_, field)) = exact
            && !field.wants().is_empty()
            && let Some(at) = why.rfind("write ")
        {
            why = format!("{}write {}", &why[..at], field.wants());
        }
        // Names of a file's fields that a sentence speaks of.
        for other in self.fields() {
            let key = other.path.rsplit('.').next().unwrap_or_default();
            if key.contains('_') && !other.label.is_empty() {
                why = why.replace(key, &format!("“{}”", other.label));
            }
        }
        let text = if called.is_empty() { why } else { format!("{called}: {why}") };
        FormMistake { text, input: field.map(|field| field.name.clone()) }
    }

    pub(in crate::site) fn value(&self, field: &FormField) -> &str {
        self.typed.get(&field.name)
    }

    /// The value of what cannot be changed, as it is read.
    pub(in crate::site) fn shown<'a>(&'a self, field: &'a FormField, choices: &'a [(String, String)]) -> &'a str {
        let value = self.value(field);
        choices.iter().find(|(choice, _)| choice == value).map_or(value, |(_, label)| label)
    }

    pub(in crate::site) fn is_wrong(&self, field: &FormField) -> bool {
        self.mistakes.iter().any(|mistake| mistake.input.as_ref() == Some(&field.name))
    }

    /// A browser shows a day only if it is one.
    pub(in crate::site) fn is_day(&self, field: &FormField) -> bool {
        let value = self.value(field);
        value.is_empty() || value.parse::<LastDay>().is_ok_and(|day| day.to_string() == value)
    }

    /// The inputs that cannot be changed.
    pub(in crate::site) fn fixed(&self) -> impl Iterator<Item = &str> {
        self.fields().filter(|field| matches!(field.input, Input::Fixed(_))).map(|field| field.name.as_str())
    }

    /// Everything that was typed into its inputs, to be sent again.
    pub(in crate::site) fn again(&self) -> Vec<(&str, &str)> {
        let inputs = self.fields().filter(|field| !matches!(field.input, Input::Fixed(_) | Input::Along(_)));
        inputs.map(|field| (field.name.as_str(), self.value(field))).filter(|(_, value)| !value.is_empty()).collect()
    }
}

/// What is there only if something of it was typed: a table, or a row of a list. Texts are always there.
fn group_of(path: &str) -> Option<&str> {
    let (first, rest) = path.split_once('.')?;
    let row = rest.split('.').next().unwrap_or_default();
    match row.parse::<usize>() {
        Ok(_) => Some(&path[..first.len() + 1 + row.len()]),
        Err(_) if first == "text" => None,
        Err(_) => Some(first),
    }
}

fn put(object: &mut Map<String, Value>, place: &[&str], value: Value) {
    match place {
        [] => {}
        [last] => {
            object.insert((*last).to_owned(), value);
        }
        [first, rest @ ..] => {
            let inner = object.entry(*first).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// Tables with numbers for names are lists.
fn with_lists(value: Value) -> Value {
    match value {
        Value::Object(inner) if inner.keys().next().is_some_and(|name| name.parse::<usize>().is_ok()) => {
            inner.into_iter().map(|(_, row)| row).collect()
        }
        other => other,
    }
}

/// A page with a form.
#[derive(Template)]
#[template(path = "operator/form.html")]
pub(in crate::site) struct FormPage<'a> {
    pub frame: OperatorFrame<'a>,
    pub title: &'a str,
    /// Where it leads back to, and what that is called.
    pub back: (&'a str, &'a str),
    pub says: &'a [String],
    pub form: &'a Form,
    pub action: &'a str,
    pub hidden: &'a [(&'a str, &'a str)],
    pub button: &'a str,
}

impl FormPage<'_> {
    pub(in crate::site) fn answer(&self, found: &OperatorVisit<'_>) -> Answer {
        let status = if self.form.mistakes.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
        found.page_with(status, render(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_type_them() {
        for (text, expected) in [
            ("48", Some(4800)),
            ("48.5", Some(4850)),
            ("48.05", Some(4805)),
            ("1,234.50", Some(123_450)),
            ("0", Some(0)),
            ("48,00", None),
            ("1,2345", None),
            (",123", None),
            ("48.005", None),
            ("48.", None),
            (".5", None),
            ("-1", None),
            ("4e3", None),
            ("", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(hundredths(text), expected, "{text}");
        }
        for cents in [0, 5, 50, 4800, 123_456] {
            assert_eq!(hundredths(&typed_hundredths(cents)), Some(cents));
        }
    }

    fn form(typed: &[(&str, &str)]) -> Form {
        let row = |n: usize| {
            let name = FormField::line(format!("fees.{n}.name"), "Name").of(format!("fee {n}"));
            let amount = FormField::number(format!("fees.{n}.cents"), "Amount", Reads::Dollars).of(format!("fee {n}"));
            [name, amount, FormField::choice(format!("fees.{n}.per"), "Due", &[("month", "each month")])]
        };
        let parts = vec![
            FormPart::new(
                "",
                "Bid",
                "",
                vec![
                    FormField::number("most_fee_cents", "Exit fee", Reads::Dollars),
                    FormField::line("states", "States").reads(Reads::Codes),
                ],
            ),
            FormPart::new("fees", "Fees", "", [row(1), row(2), row(3)].into_iter().flatten().collect()),
        ];
        let mut all = Typed::default();
        for (name, value) in typed {
            all.set(*name, *value);
        }
        Form::new(parts, all, "")
    }

    #[test]
    fn rows_that_are_empty_are_left_out_and_mistakes_find_their_row() {
        let typed = [
            ("most_fee_cents", " $9.50 "),
            ("states", "ca, OR"),
            ("fees.1.per", "month"),
            ("fees.3.name", "modem"),
            ("fees.3.cents", "five"),
            ("fees.3.per", "month"),
        ];
        let mut form = form(&typed);
        let expected = json!({
            "most_fee_cents": 950, "states": ["CA", "OR"], "fees": [{ "name": "modem", "cents": "five", "per": "month" }],
        });
        assert_eq!(Value::Object(form.sent()), expected);
        form.mark(BadFile(vec![
            "fees.1.cents: write a whole number from 0 to 1000000000".to_owned(),
            "states: \"XX\" is not the code of a state; write two-letter codes, such as [\"CA\"]".to_owned(),
            "fees: it must not be below most_fee_cents".to_owned(),
            "the campaign is closed".to_owned(),
        ]));
        let said: Vec<_> =
            form.mistakes.iter().map(|mistake| (mistake.text.as_str(), mistake.input.as_deref())).collect();
        let expected = [
            ("Amount (fee 3): write an amount in dollars up to 10,000,000, such as 48 or 48.50", Some("fees.3.cents")),
            (
                "States: \"XX\" is not the code of a state; write two-letter codes, such as CA, OR, or leave it empty for all states",
                Some("states"),
            ),
            ("Fees: it must not be below “Exit fee”", Some("fees.3.name")),
            ("the campaign is closed", None),
        ];
        assert_eq!(said, expected);
    }
}
