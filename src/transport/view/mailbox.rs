//! The mailbox of a development installation: the mail it would have sent, to read in the browser.

use askama::Template;

use super::{Union, rendered};
use crate::domain::share::encoded;

/// A line of the mailbox.
#[derive(Debug, Clone)]
pub struct Letter {
    /// Names the letter in its path.
    pub name: String,
    pub to: String,
    pub subject: String,
    pub date: String,
}

impl Letter {
    fn path(&self) -> String {
        format!("/dev/mailbox/{}", encoded(&self.name))
    }
}

#[derive(Template)]
#[template(path = "mailbox.html")]
struct Mailbox<'a> {
    union: &'a Union,
    letters: &'a [Letter],
}

/// The letters in the order given: newest first.
pub fn mailbox(union: &Union, letters: &[Letter]) -> String {
    rendered(&Mailbox { union, letters })
}

#[derive(Debug, Clone, Copy)]
pub struct OpenLetter<'a> {
    pub to: &'a str,
    pub from: &'a str,
    pub subject: &'a str,
    pub date: &'a str,
    /// The text part.
    pub text: &'a str,
    /// Where the HTML part is served, apart: it brings styles of its own.
    pub html_path: &'a str,
}

#[derive(Template)]
#[template(path = "letter.html")]
struct Page<'a> {
    union: &'a Union,
    letter: &'a OpenLetter<'a>,
    pieces: Vec<Piece<'a>>,
}

pub fn letter(union: &Union, letter: &OpenLetter<'_>) -> String {
    rendered(&Page { union, letter, pieces: pieces(letter.text) })
}

#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Link(&'a str),
}

/// Cuts a text at its web addresses. Punctuation at an address's end belongs to the sentence around it.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = ["https://", "http://"].iter().filter_map(|scheme| rest.find(scheme)).min() {
        let (before, from) = rest.split_at(start);
        let stop = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"');
        let whole = &from[..from.find(stop).unwrap_or(from.len())];
        let link = whole.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '\'']);
        pieces.extend([Piece::Text(before), Piece::Link(link)]);
        rest = &from[link.len()..];
    }
    pieces.push(Piece::Text(rest));
    pieces.retain(|piece| *piece != Piece::Text(""));
    pieces
}

#[cfg(test)]
mod tests {
    use super::super::tests::union;
    use super::Piece::{Link, Text};
    use super::*;

    #[test]
    fn addresses_in_a_letter_can_be_clicked_and_nothing_else_can() {
        let text = "See (https://a.example/x?y=1#z). Or\nhttp://b.example\njavascript:alert(1)";
        let expected = [
            Text("See ("),
            Link("https://a.example/x?y=1#z"),
            Text("). Or\n"),
            Link("http://b.example"),
            Text("\njavascript:alert(1)"),
        ];
        assert_eq!(pieces(text), expected);
        assert_eq!(pieces("none"), [Text("none")]);
        assert_eq!(pieces(""), []);
    }

    #[test]
    fn the_mailbox_says_loudly_what_it_is_and_links_by_name() {
        let letter = Letter { name: "a b/../c.eml".into(), to: "x".into(), subject: "y".into(), date: "z".into() };
        let html = mailbox(&union(), &[letter]);
        assert!(html.contains("href=\"/dev/mailbox/a%20b%2F..%2Fc.eml\""));
        assert!(html.contains("For development only"));
        assert!(mailbox(&union(), &[]).contains("No mail yet"));
    }
}
