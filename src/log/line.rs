//! A log line, of a request or of an event, as plain text or as JSON.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::domain::api_key::KeyId;
use crate::domain::text::escape;
use crate::domain::time::Timestamp;

/// How much one line matters, as collectors of logs filter by it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    Info,
    Warn,
    Error,
}

/// What is told of one request.
#[derive(Clone, Copy)]
pub struct RequestLine<'a> {
    pub at: Timestamp,
    pub method: &'a str,
    /// The route, not the path as sent: paths may carry tokens.
    pub route: &'static str,
    pub status: u16,
    pub took: Duration,
    pub request_id: &'a str,
    pub key: Option<KeyId>,
    /// What an operation was refused with: the code, and the fields it was about, by names of ours.
    pub refusal: Option<(&'static str, &'a [String])>,
    /// Whether a 5xx is a fault: not where a partner has requests fail on purpose, nor while the operator takes no sign-ups.
    pub is_fault: bool,
}

impl Severity {
    const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }

    /// A refused request is the caller's affair; a failed one is the operator's, unless it was meant to fail.
    const fn of_request(line: &RequestLine<'_>) -> Self {
        if line.status >= 500 && line.is_fault { Self::Error } else { Self::Info }
    }
}

/// An event as one JSON object, without the end of its line.
pub fn json_event(at: Timestamp, severity: Severity, request_id: Option<&str>, message: &str) -> String {
    let id = request_id.map(|id| format!(",\"request_id\":\"{id}\"")).unwrap_or_default();
    let (level, message) = (severity.name(), serde_json::Value::from(message).to_string());
    let message = escape(&message, &[]);
    format!("{{\"time\":\"{at}\",\"level\":\"{level}\"{id},\"message\":{message}}}")
}

pub(super) fn text_event(
    out: &mut String,
    at: Timestamp,
    severity: Severity,
    request_id: Option<&str>,
    message: &str,
) -> fmt::Result {
    let id = request_id.map(|id| format!(" ({id})")).unwrap_or_default();
    // An event is one line, whatever it quotes.
    let message = escape(message, &[]);
    match severity {
        Severity::Info => writeln!(out, "{at} {message}"),
        Severity::Warn => writeln!(out, "{at} WARNING{id}: {message}"),
        Severity::Error => writeln!(out, "{at} ERROR{id}: {message}"),
    }
}

pub(super) fn text(out: &mut String, line: &RequestLine<'_>) -> fmt::Result {
    let RequestLine { at, method, route, status, took, request_id, key, refusal, .. } = line;
    write!(out, "{at} {status} {method} {route} {:.1} ms {request_id}", took.as_secs_f64() * 1e3)?;
    if let Some(key) = key {
        write!(out, " key {key}")?;
    }
    if let Some((code, fields)) = refusal {
        write!(out, " {code}")?;
        fields.iter().try_for_each(|field| write!(out, " {field}"))?;
    }
    writeln!(out)
}

/// By hand: the formatting machinery takes much longer, and this is the largest part of a logged request.
pub(super) fn json(out: &mut String, line: &RequestLine<'_>) -> fmt::Result {
    // Every text here is made of characters that need no escape: routes and methods are ours, ids are checked.
    let RequestLine { at, method, route, status, took, request_id, key, refusal, .. } = line;
    out.push_str("{\"time\":\"");
    push_second(out, *at)?;
    let level = Severity::of_request(line).name();
    for (name, text) in [("\",\"level\":\"", level), ("\",\"method\":\"", *method), ("\",\"route\":\"", *route)] {
        out.push_str(name);
        out.push_str(text);
    }
    out.push_str("\",\"status\":");
    push_number(out, u64::from(*status));
    out.push_str(",\"duration_us\":");
    push_number(out, u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    out.push_str(",\"request_id\":\"");
    out.push_str(request_id);
    if let Some(key) = key {
        out.push_str("\",\"key\":\"");
        out.push_str(key.as_str());
    }
    out.push('"');
    if let Some((code, fields)) = refusal {
        write!(out, ",\"error\":\"{code}\"")?;
        if !fields.is_empty() {
            // Names of ours, which need no escape either.
            write!(out, ",\"fields\":[\"{}\"]", fields.join("\",\""))?;
        }
    }
    out.push_str("}\n");
    Ok(())
}

/// A time as text, worked out once a second for each thread.
fn push_second(out: &mut String, at: Timestamp) -> fmt::Result {
    thread_local! {
        static LAST: RefCell<(i64, String)> = const { RefCell::new((i64::MIN, String::new())) };
    }
    LAST.with_borrow_mut(|(second, text)| {
        let now = at.as_millis() / 1000;
        if now != *second {
            text.clear();
            write!(text, "{at}")?;
            *second = now;
        }
        out.push_str(text);
        Ok(())
    })
}

fn push_number(out: &mut String, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    digits[at..].iter().for_each(|digit| out.push(char::from(*digit)));
}
