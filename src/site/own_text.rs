//! What the operator writes on the pages of trust: Markdown, of which only what is harmless becomes HTML.

use pulldown_cmark::{Alignment, CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html};

use crate::domain::language::Language;

/// A page that the program writes from what it does, with the operator's own text around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyPage {
    About,
    Privacy,
    Terms,
}

impl PolicyPage {
    pub const ALL: [Self; 3] = [Self::About, Self::Privacy, Self::Terms];

    pub const fn name(self) -> &'static str {
        match self {
            Self::About => "about",
            Self::Privacy => "privacy",
            Self::Terms => "terms",
        }
    }
}

/// The operator's own texts, as HTML.
#[derive(Debug, Clone, Default)]
pub struct OwnTexts(Vec<(PolicyPage, Language, String)>);

impl OwnTexts {
    /// In characters, or about a hundred pages.
    pub const LARGEST: usize = 256 << 10;

    /// Adds a text, given as Markdown.
    pub fn add(&mut self, page: PolicyPage, language: Language, markdown: &str) {
        self.0.push((page, language, to_html(markdown)));
    }

    /// The pages without any.
    pub fn silent(&self) -> Vec<&'static str> {
        let is_silent = |page: &PolicyPage| self.find(*page, Language::English).is_none();
        PolicyPage::ALL.into_iter().filter(is_silent).map(PolicyPage::name).collect()
    }

    /// The text of a page in a language, or in another if there is none; and the language that it is in.
    pub fn find(&self, page: PolicyPage, language: Language) -> Option<(Language, &str)> {
        let mut of_page = self.0.iter().filter(|(of, _, _)| *of == page);
        let best = of_page.clone().find(|(_, known, _)| *known == language).or_else(|| of_page.next());
        best.map(|(_, language, html)| (*language, html.as_str()))
    }
}

/// Paragraphs, headings below the page's own, lists, emphasis, quotes, code, tables and links to the web, to mail or to this
/// site. HTML is shown as it was written, and pictures by their words: nothing of another host is ever loaded.
fn to_html(markdown: &str) -> String {
    let parser = Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let mut dropped_links = Vec::new();
    let events = parser.filter_map(move |event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        // It would be a style, which the pages' policy forbids.
        Event::Start(Tag::Table(columns)) => Some(Event::Start(Tag::Table(vec![Alignment::None; columns.len()]))),
        Event::Start(Tag::Heading { level, .. }) => {
            // The page has a heading of its own, so theirs begin with the second.
            let level = (level as usize + 1).min(6);
            Some(Event::Html(CowStr::from(format!("<h{level}>"))))
        }
        Event::End(TagEnd::Heading(level)) => {
            let level = (level as usize + 1).min(6);
            Some(Event::Html(CowStr::from(format!("</h{level}>\n"))))
        }
        Event::Start(Tag::Link { link_type, dest_url, id, .. }) => {
            let harmless = link_type == LinkType::Email || is_harmless(&dest_url);
            dropped_links.push(!harmless);
            // Without a title, which would be a text that nobody sees on a phone.
            harmless.then_some(Event::Start(Tag::Link { link_type, dest_url, title: CowStr::Borrowed(""), id }))
        }
        Event::End(TagEnd::Link) => (!dropped_links.pop().unwrap_or(false)).then_some(Event::End(TagEnd::Link)),
        event => Some(event),
    });
    let mut written = String::new();
    html::push_html(&mut written, events);
    written
}

/// Whether a link leads to the web, to a letter or to a page of this site, and nowhere else.
fn is_harmless(link: &str) -> bool {
    let lower = link.to_ascii_lowercase();
    let own = link.starts_with('#') || (link.starts_with('/') && !link.starts_with("//") && !link.starts_with("/\\"));
    own || ["https://", "http://", "mailto:"].iter().any(|scheme| lower.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_plain_html() {
        let html = to_html(
            "# Who we are\n\nWe *bargain*. See [our books](https://union.example/books \"x\"), [terms](/terms).\n\n- a\n- b\n\n| a | b |\n|:--|--:|\n| 1 | 2 |\n\n<kim@union.example>",
        );
        for part in [
            "<h2>Who we are</h2>",
            "<em>bargain</em>",
            "<a href=\"https://union.example/books\">our books</a>",
            "<a href=\"/terms\">terms</a>",
            "<li>a</li>",
            "<a href=\"mailto:kim@union.example\">",
            "<td>2</td>",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
    }

    #[test]
    fn nothing_harmful_becomes_markup() {
        for hostile in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](data:text/html;base64,AAAA)",
            "[x](//evil.example/a)",
            "[x](/\\evil.example)",
            "[x](vbscript:a)",
            "![x](https://evil.example/pixel.png)",
            "[![x](https://evil.example/p.png)](javascript:a)",
            "<javascript:alert(1)>",
            "[x]: javascript:alert(1)\n\n[x]",
            "<div style=\"position:fixed\">",
            "<a href=\"https://x\" onclick=\"a\">x</a>",
        ] {
            let html = to_html(hostile);
            for forbidden in [
                "<script",
                "<img",
                "<div",
                "<a href=\"java",
                "<a href=\"data",
                "<a href=\"//",
                "<a href=\"/\\",
                "<a href=\"vb",
                "<a href=\"https://x\" on",
            ] {
                assert!(!html.to_ascii_lowercase().contains(forbidden), "{hostile} gave {html}");
            }
        }
    }

    #[test]
    fn a_text_in_another_language_is_better_than_none() {
        let mut texts = OwnTexts::default();
        texts.add(PolicyPage::Terms, Language::English, "Terms");
        assert_eq!(texts.find(PolicyPage::Terms, Language::Spanish), Some((Language::English, "<p>Terms</p>\n")));
        texts.add(PolicyPage::Terms, Language::Spanish, "Condiciones");
        assert_eq!(texts.find(PolicyPage::Terms, Language::Spanish), Some((Language::Spanish, "<p>Condiciones</p>\n")));
        assert_eq!(texts.find(PolicyPage::About, Language::English), None);
    }
}
