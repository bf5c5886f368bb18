//! The one filter of the operator's pages, over the whole page, so that no template can forget it. Every character that others wrote can be
//! seen, what stands between backticks is code, and times read as people write them.

use std::fmt::Write;

use crate::domain::language::Language;
use crate::domain::operator::Role;
use crate::domain::text::seen;
use crate::domain::time::Timestamp;

/// How a template begins a field that nobody sees: it is sent again as it is. A value holds neither this nor its end: markup in it is
/// escaped.
const HIDDEN_FIELD: &str = "<input type=\"hidden\"";

/// Elements whose text stays as it was written, up to their end: code, what others said, what a field holds, and pictures.
const AS_WRITTEN: [&str; 8] = ["blockquote", "code", "pre", "select", "svg", "textarea", "time", "title"];

/// The page as an operator reads it. Filtered twice it is the same.
pub(super) fn filtered(html: &str) -> String {
    let mut page = String::with_capacity(html.len() + html.len() / 8);
    let mut rest = html;
    while !rest.is_empty() {
        let (text, markup) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
        write_text(&mut page, &seen(text));
        let name = markup.get(1..).unwrap_or_default().split(|c: char| !c.is_ascii_alphanumeric()).next();
        let end = match AS_WRITTEN.iter().find(|element| name == Some(element)) {
            Some(element) => markup.find(&format!("</{element}>")),
            None => markup.find('>').map(|at| at + 1),
        };
        let (markup, after) = markup.split_at(end.unwrap_or(markup.len()));
        if markup.starts_with(HIDDEN_FIELD) {
            page.push_str(markup);
        } else {
            page.push_str(&seen(markup));
        }
        rest = after;
    }
    page
}

/// The page without what its reader may not do: forms that they may not send, and links to pages that they may not see. `needed` is the role
/// that a path takes, to be sent or else to be seen, where they lack it.
pub(super) fn offered(html: &str, needed: impl Fn(&str, bool) -> Option<Role>) -> String {
    let mut page = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find("<form").into_iter().chain(rest.find("<a ")).min() {
        let (before, element) = rest.split_at(at);
        page.push_str(before);
        let is_form = element.starts_with("<form");
        let (place, end) = if is_form { ("action=\"", "</form>") } else { ("href=\"", "</a>") };
        let (tag, _) = element.split_once('>').unwrap_or((element, ""));
        let (whole, after) = element.split_at(element.find(end).map_or(element.len(), |at| at + end.len()));
        let path = tag.split_once(place).and_then(|(_, path)| path.split(['"', '?', '#']).next()).unwrap_or_default();
        let is_sent = is_form && tag.contains("method=\"post\"");
        match needed(path, is_sent) {
            None => page.push_str(whole),
            Some(role) if is_form && whole.contains("class=\"actions\"") => {
                // Writing to a string does not fail.
                let _infallible = write!(page, "<p class=\"quiet\">This takes {}.</p>", role.needed_words());
            }
            Some(_) if is_form || tag.contains("class=\"button") => {}
            Some(_) => page.push_str(whole[tag.len() + 1..].strip_suffix(end).unwrap_or_default()),
        }
        rest = after;
    }
    page + rest
}

/// Text between two tags.
fn write_text(page: &mut String, text: &str) {
    let (mut from, mut last) = (0, ' ');
    for (at, c) in text.char_indices() {
        let begins = at >= from && !last.is_alphanumeric() && !['-', '/', '_'].contains(&last);
        last = c;
        if !begins {
            continue;
        }
        let (before, here) = text.split_at(at);
        let found = match c {
            '`' => code(here),
            '0'..='9' if !is_example(before) => time(here),
            _ => None,
        };
        if let Some((length, html)) = found {
            page.push_str(&text[from..at]);
            page.push_str(&html);
            from = at + length;
        }
    }
    page.push_str(&text[from..]);
}

/// Whether what follows is what somebody types: "write a day, such as 2027-01-31 or …".
fn is_example(before: &str) -> bool {
    let clause = before.rsplit([';', '.']).next().unwrap_or_default();
    ["such as ", "write "].iter().any(|word| clause.contains(word))
}

fn ends(after: &str) -> bool {
    !after.starts_with(|c: char| c.is_alphanumeric() || ['-', '_'].contains(&c))
}

/// A command or a setting between backticks, and its length with them. A backtick alone is what somebody wrote.
fn code(text: &str) -> Option<(usize, String)> {
    let (code, after) = text.get(1..)?.split_once('`')?;
    let is_code = !code.is_empty() && code.trim() == code && !code.contains('\n') && ends(after);
    is_code.then(|| (code.len() + 2, format!("<code>{code}</code>")))
}

/// A time or a day as the commands print it, and its length there.
fn time(text: &str) -> Option<(usize, String)> {
    let words = Language::English.words();
    let read = |length: usize| {
        let written = text.get(..length).filter(|_| text.get(length..).is_some_and(ends))?;
        Some((written, written.parse::<Timestamp>().ok()?))
    };
    if let Some((written, time)) = read(20).filter(|(written, _)| written.ends_with('Z')) {
        return Some((written.len(), words.moment(time).to_string()));
    }
    let (written, day) = read(10)?;
    let mut html = String::new();
    // Writing to a string does not fail.
    let _infallible = write!(html, "<time datetime=\"{written}\">{}</time>", words.date(day));
    Some((written.len(), html))
}

#[cfg(test)]
mod tests {
    use super::{Role, filtered, offered};

    #[test]
    fn what_a_role_may_not_do_is_not_offered() {
        let needed =
            |path: &str, sent: bool| (path == "/operator/no" && (sent || path.len() < 20)).then_some(Role::Money);
        for (html, expected) in [
            ("<p>a</p><form method=\"post\" action=\"/operator/yes\">x</form>b", ""),
            ("<form class=\"row\" method=\"post\" action=\"/operator/no\"><button>x</button></form>b", "b"),
            (
                "<form method=\"post\" action=\"/operator/no\"><p class=\"actions\">x</p></form>b",
                "<p class=\"quiet\">This takes the role money or all.</p>b",
            ),
            ("look at <a href=\"/operator/no?x#y\">the review</a>.", "look at the review."),
            (
                "<a class=\"button small\" href=\"/operator/no\">x</a>b<a href=\"/operator\">c</a>",
                "b<a href=\"/operator\">c</a>",
            ),
            ("<abbr>x</abbr><form", ""),
            ("", ""),
        ] {
            let expected = if expected.is_empty() { html } else { expected };
            assert_eq!(offered(html, needed), expected, "{html}");
        }
    }

    #[test]
    fn a_page_reads_as_people_write() {
        for (html, expected) in [
            (
                "<p>since 2026-11-19T19:48:07Z.</p>",
                "<p>since <time datetime=\"2026-11-19T19:48:07Z\">Nov 19, 2026, 7:48 PM UTC</time>.</p>",
            ),
            (
                "<p>write a day; it ends 2026-01-02</p>",
                "<p>write a day; it ends <time datetime=\"2026-01-02\">Jan 2, 2026</time></p>",
            ),
            ("<td>2026-01-02</td>", "<td><time datetime=\"2026-01-02\">Jan 2, 2026</time></td>"),
            (
                "<p>run `unionhall keys list`; or `--now`</p>",
                "<p>run <code>unionhall keys list</code>; or <code>--now</code></p>",
            ),
        ] {
            assert_eq!(filtered(html), expected);
            assert_eq!(filtered(expected), expected, "filtered twice");
        }
    }

    #[test]
    fn what_somebody_wrote_or_types_stays() {
        for html in [
            "<p>550 `foo' is unknown, and so is `bar'; it`s</p>",
            "<p>``</p><p>a ` b</p><p>`a\nb`</p><p>`a`b</p><p>`</p>",
            "<p>write 2027-01-31, or a time such as 2027-01-31T18:00:00Z or 2027-05-04</p>",
            "<p>internet-2027-01-31 2027-01-31-a 2027-13-01 2027-01-31T18:00:00+01:00 9999 2</p>",
            "<pre><b>`a` 2027-01-31</b></pre><code>2027-01-31</code><title>`a`</title><svg><text>`a`</text></svg>",
            "<blockquote class=\"words\">`a` on 2027-01-31</blockquote><a title=\"`a` 2027-01-31\">x</a>",
            "<input type=\"hidden\" value=\"\u{202e}`a`\">",
            "<p>é2027-01-3é",
            "<",
            "<pre",
            "",
        ] {
            assert_eq!(filtered(html), html);
        }
        assert_eq!(
            filtered("<pre>\u{202e}</pre>\u{202e}<i title=\"\u{202e}\">"),
            "<pre>U+202E</pre>U+202E<i title=\"U+202E\">"
        );
    }
}
