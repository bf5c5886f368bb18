//! The operator's terminal: questions, printing to a reader who may be gone, and what strangers wrote, made safe to read:
//! control characters move the cursor, ring the bell or color what follows, and bidirectional controls show a text in another
//! order than it has.

pub(in crate::cli) mod progress;

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal};

use serde::Serialize;

use crate::domain::text;
use crate::domain::time::Timestamp;

/// Prints a line, or several of ours, to standard output; a reader who has gone, such as `head`, is no error.
pub(in crate::cli) fn print_line(line: &str) -> anyhow::Result<()> {
    match io::Write::write_fmt(&mut io::stdout().lock(), format_args!("{}\n", escape(line))) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

pub(in crate::cli) fn print_lines(lines: &[impl AsRef<str>]) -> anyhow::Result<()> {
    lines.iter().try_for_each(|line| print_row(line.as_ref()))
}

/// Prints what is one line, whatever stands in it: a stranger's text makes no line of its own.
pub(in crate::cli) fn print_row(line: &str) -> anyhow::Result<()> {
    print_line(&text::escape(line, &['\t']))
}

/// A document for programs.
pub(in crate::cli) fn print_json(document: &impl Serialize) -> anyhow::Result<()> {
    print_line(&serde_json::to_string_pretty(document)?)
}

/// A line for each row below the headings, or a sentence where there is none.
pub(in crate::cli) fn print_table<T>(
    rows: &[T],
    none: &str,
    headings: &str,
    line: impl Fn(&T) -> String,
) -> anyhow::Result<()> {
    if rows.is_empty() {
        return print_line(none);
    }
    print_line(headings)?;
    rows.iter().try_for_each(|row| print_row(&line(row)))
}

/// The same to standard error, beside what a command prints. `eprintln!` would panic where nobody reads it any more.
pub(in crate::cli) fn print_aside(line: &str) {
    print_partial(&format!("{}\n", escape(line)));
}

/// The same without the end of the line.
fn print_partial(text: &str) {
    // Whether anybody reads it or not.
    let _gone = io::Write::write_all(&mut io::stderr().lock(), text.as_bytes());
}

/// A time in a table.
pub(in crate::cli) fn time_or_dash(time: Option<Timestamp>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| time.to_string())
}

/// The text with every such character as JSON writes it (`\\u001b`): the same in prose and inside a JSON string. Lines and
/// tabs stay: they are ours, or `domain::text::quote` has escaped them.
pub(in crate::cli) fn escape(text: &str) -> Cow<'_, str> {
    text::escape(text, &['\n', '\t'])
}

/// Asks the operator and gives the answer in lower case; none where nobody can be asked, as in a script.
pub(in crate::cli) fn ask(question: &str) -> io::Result<Option<String>> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(None);
    }
    print_partial(&format!("{} ", escape(question)));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(Some(answer.trim().to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::text::{is_hidden, quote};

    #[test]
    fn nothing_moves_the_cursor_or_makes_a_line() {
        let written = "a\u{1b}[2J\u{7}b\u{9b}31m\u{202e}c\nState: member\r\u{7f}\u{2028}é";
        assert_eq!(quote(written), r#""a\u001b[2J\u0007b\u009b31m\u202ec\u000aState: member\u000d\u007f\u2028é""#);
        assert_eq!(escape("ours\n\tand\u{1b}theirs"), "ours\n\tand\\u001btheirs");
        assert!(matches!(escape("plain é"), Cow::Borrowed(_)));
        let json = serde_json::json!({ "comments": written }).to_string();
        let safe = escape(&json);
        assert!(!safe.contains(is_hidden));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap()["comments"], written);
    }
}
