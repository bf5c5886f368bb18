//! Mail that would have been sent, to read in the browser: the mailbox of a development installation, and a partner's inbox in the
//! sandbox.

use askama::Template;

use super::{Frame, rendered};
use crate::domain::share::encoded;
use crate::mail::ReadableMail;
use crate::sandbox::ReceivedMail;

#[derive(Template)]
#[template(path = "mailbox.html")]
struct MailboxPage<'a> {
    page: Frame<'a>,
    entries: &'a [(String, ReadableMail)],
}

/// Mails by the names of their paths, in the order given: newest first.
pub fn mailbox(page: Frame<'_>, entries: &[(String, ReadableMail)]) -> String {
    rendered(page, &MailboxPage { page, entries })
}

#[derive(Template)]
#[template(path = "opened_mail.html")]
struct OpenedMailPage<'a> {
    page: Frame<'a>,
    mail: &'a ReadableMail,
    pieces: Vec<Piece<'a>>,
    html_path: &'a str,
}

/// One mail; its HTML part is served apart, at `html_path`: it brings styles of its own.
pub fn opened_mail(page: Frame<'_>, mail: &ReadableMail, html_path: &str) -> String {
    rendered(page, &OpenedMailPage { page, mail, pieces: pieces(&mail.text), html_path })
}

#[derive(Template)]
#[template(path = "inbox.html")]
struct InboxTemplate<'a> {
    page: Frame<'a>,
    partner: &'a str,
    most: u32,
    mails: &'a [ReceivedMail],
    token: &'a str,
}

/// A partner's mails in the order given: newest first, `most` of them. The HTML part of each is at a path with the inbox's `token`.
pub fn inbox(page: Frame<'_>, partner: &str, most: u32, mails: &[ReceivedMail], token: &str) -> String {
    rendered(page, &InboxTemplate { page, partner, most, mails, token })
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
    use super::Piece::{Link, Text};
    use super::*;
    use crate::config::UnionSettings;
    use crate::domain::language::Language;
    use crate::domain::time::Timestamp;

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
        let [to, from, subject, date, text, html] = ["x", "a", "y", "z", "", ""].map(str::to_owned);
        let entry = ("a b/../c.eml".to_owned(), ReadableMail { to, from, subject, date, text, html });
        let union = UnionSettings::sample();
        let page = Frame::new(&union, Language::English, "/dev/mailbox", Timestamp::from_millis(0));
        let html = mailbox(page, &[entry]);
        assert!(html.contains("href=\"/dev/mailbox/a%20b%2F..%2Fc.eml\""));
        assert!(html.contains("For development only"));
        assert!(mailbox(page, &[]).contains("No mail yet"));
    }
}
