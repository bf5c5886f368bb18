//! A request's log line, as plain text or as JSON.

use std::cell::RefCell;
use std::fmt::{self, Write as _};

use super::RequestLine;
use crate::domain::time::Timestamp;

pub(super) fn human(out: &mut String, line: &RequestLine<'_>) -> fmt::Result {
    let RequestLine { at, method, route, status, took, request_id, key, refusal } = line;
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
    let RequestLine { at, method, route, status, took, request_id, key, refusal } = line;
    out.push_str("{\"time\":\"");
    push_second(out, *at)?;
    for (name, text) in [("\",\"method\":\"", *method), ("\",\"route\":\"", *route)] {
        out.push_str(name);
        out.push_str(text);
    }
    out.push_str("\",\"status\":");
    push_number(out, u64::from(*status));
    out.push_str(",\"us\":");
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
