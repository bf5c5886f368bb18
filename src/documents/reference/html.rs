//! Sections as HTML, from Markdown: table cells know their column (so that a phone can show a table as rows), adjacent
//! snippets become tabs, and headings get anchors.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, html};

/// One block of code.
struct CodeBlock {
    language: String,
    label: String,
    code: String,
}

/// A section's Markdown as HTML; `id` keeps apart what must have a name of its own on the page.
pub(super) fn of(markdown: &str, id: &str) -> String {
    let mut writer = PageWriter { id, written: String::new(), plain: Vec::new(), blocks: Vec::new(), groups: 0 };
    let mut events = Parser::new_ext(markdown, Options::ENABLE_TABLES);
    while let Some(event) = events.next() {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                writer.end_plain();
                let code = text_until(&mut events, TagEnd::CodeBlock);
                let info = match &kind {
                    CodeBlockKind::Fenced(info) => info.as_ref(),
                    CodeBlockKind::Indented => "",
                };
                let (language, label) = info.split_once(' ').unwrap_or((info, ""));
                writer.blocks.push(CodeBlock { language: language.to_owned(), label: label.to_owned(), code });
            }
            Event::Start(Tag::Table(_)) => {
                writer.end_all();
                writer.table(&mut events);
            }
            Event::Start(Tag::Heading { level, .. }) => {
                writer.end_all();
                let inner: Vec<_> =
                    events.by_ref().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_)))).collect();
                let words: String = inner.iter().filter_map(words_of).collect();
                writer.written.push_str(&format!("<{level} id=\"{id}-{}\">", slug(&words)));
                html::push_html(&mut writer.written, inner.into_iter());
                writer.written.push_str(&format!("</{level}>\n"));
            }
            // Our own texts have no HTML; what looks like it came with a fact and is shown as text.
            Event::Html(text) | Event::InlineHtml(text) => writer.plain(Event::Text(text)),
            event => writer.plain(event),
        }
    }
    writer.end_all();
    writer.written
}

struct PageWriter<'a> {
    id: &'a str,
    written: String,
    /// What is written as any Markdown is.
    plain: Vec<Event<'a>>,
    /// Blocks of code with nothing between them.
    blocks: Vec<CodeBlock>,
    groups: usize,
}

impl<'a> PageWriter<'a> {
    fn plain(&mut self, event: Event<'a>) {
        self.end_blocks();
        self.plain.push(event);
    }

    fn end_plain(&mut self) {
        html::push_html(&mut self.written, self.plain.drain(..));
    }

    fn end_all(&mut self) {
        self.end_plain();
        self.end_blocks();
    }

    fn end_blocks(&mut self) {
        let blocks = std::mem::take(&mut self.blocks);
        match blocks.as_slice() {
            [] => {}
            [block] => {
                self.written.push_str("<div class=\"code\">");
                if !block.label.is_empty() {
                    self.written.push_str(&format!("<p class=\"label\">{}</p>", escaped(&block.label)));
                }
                self.block(block);
                self.written.push_str("</div>\n");
            }
            several => {
                self.groups += 1;
                let name = format!("{}-{}", self.id, self.groups);
                self.written.push_str(
                    "<div class=\"code tabs\"><div class=\"tab-row\" role=\"group\" aria-label=\"Language or client\">",
                );
                for (n, block) in several.iter().enumerate() {
                    let checked = if n == 0 { " checked" } else { "" };
                    let label = escaped(&block.label);
                    self.written
                        .push_str(&format!("<label><input type=\"radio\" name=\"{name}\"{checked}>{label}</label>"));
                }
                self.written.push_str("</div>");
                for block in several {
                    self.written
                        .push_str(&format!("<div class=\"panel\"><p class=\"label\">{}</p>", escaped(&block.label)));
                    self.block(block);
                    self.written.push_str("</div>");
                }
                self.written.push_str("</div>\n");
            }
        }
    }

    fn block(&mut self, block: &CodeBlock) {
        let (language, code) = (&block.language, escaped(block.code.trim_end()));
        self.written.push_str(&format!("<pre tabindex=\"0\"><code class=\"language-{language}\">{code}</code></pre>"));
    }

    /// A table whose cells carry the head of their column.
    fn table(&mut self, events: &mut Parser<'a>) {
        let (mut heads, mut cell, mut column, mut in_head) = (Vec::new(), Vec::new(), 0, false);
        self.written.push_str("<table>");
        for event in events {
            match event {
                Event::End(TagEnd::Table) => break,
                Event::Start(Tag::TableHead) => {
                    in_head = true;
                    self.written.push_str("<thead><tr>");
                }
                Event::End(TagEnd::TableHead) => {
                    in_head = false;
                    self.written.push_str("</tr></thead><tbody>\n");
                }
                Event::Start(Tag::TableRow) => {
                    column = 0;
                    self.written.push_str("<tr>");
                }
                Event::End(TagEnd::TableRow) => self.written.push_str("</tr>\n"),
                Event::Start(Tag::TableCell) => cell.clear(),
                Event::End(TagEnd::TableCell) => {
                    if in_head {
                        let head = escaped(&cell.iter().filter_map(words_of).collect::<String>());
                        self.written.push_str(&format!("<th scope=\"col\">{head}</th>"));
                        heads.push(head);
                    } else {
                        let head = heads.get(column).map(String::as_str).unwrap_or_default();
                        self.written.push_str(&format!("<td data-label=\"{head}\">"));
                        html::push_html(&mut self.written, cell.drain(..));
                        self.written.push_str("</td>");
                        column += 1;
                    }
                }
                Event::Html(text) | Event::InlineHtml(text) => cell.push(Event::Text(text)),
                event => cell.push(event),
            }
        }
        self.written.push_str("</tbody></table>\n");
    }
}

fn text_until(events: &mut Parser<'_>, end: TagEnd) -> String {
    events.take_while(|event| *event != Event::End(end)).filter_map(|event| words_of(&event)).collect()
}

fn words_of(event: &Event<'_>) -> Option<String> {
    match event {
        Event::Text(text) | Event::Code(text) => Some(text.to_string()),
        _ => None,
    }
}

/// The last part of a heading's address.
fn slug(words: &str) -> String {
    let plain: String = words.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    plain.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn cells_know_their_column_and_headings_their_place() {
        let html = of("### What `it` is\n\n| A & b | C |\n|---|---|\n| `1` | <i>x</i> |\n", "here");
        assert!(html.contains("<h3 id=\"here-what-it-is\">What <code>it</code> is</h3>"), "{html}");
        assert!(
            html.contains(
                "<td data-label=\"A &amp; b\"><code>1</code></td><td data-label=\"C\">&lt;i&gt;x&lt;/i&gt;</td>"
            ),
            "{html}"
        );
    }

    #[test]
    fn neighbours_are_tabs_and_others_are_not() {
        let html = of("```bash curl\na\n```\n```python Python\nb\n```\n\nThen\n\n```json\n{}\n```\n", "here");
        assert_eq!(html.matches("type=\"radio\"").count(), 2, "{html}");
        assert_eq!(html.matches("class=\"panel\"").count(), 2);
        assert!(html.contains("<p>Then</p>\n<div class=\"code\"><pre"), "{html}");
    }
}
