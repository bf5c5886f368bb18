//! The API reference: one list of sections, from the table of operations, the OpenAPI document, the kinds of errors and
//! our own texts filled with facts. It is rendered as Markdown for programs (`/docs.md`), and from that Markdown as a page
//! for people (`/docs`), so both have the same content.

mod fields;
mod html;
mod operation;
mod prose;
mod snippets;
mod texts;

use askama::Template;
use serde_json::Value;

pub(super) use self::prose::escaped;
use super::API_VERSION;
use crate::domain::union::Union;
use crate::operations::{ALL, partner, wording};

/// The style and the script of the page. The script highlights and copies snippets, calls public operations and keeps the list
/// of contents in step; without it everything can be read all the same.
pub(super) const STYLE: &str = include_str!("../../../templates/docs.css");
pub(super) const SCRIPT: &str = include_str!("../../../templates/docs.js");

/// Something that the reference is about, in Markdown.
struct Section {
    /// What links to it say after `#`.
    id: &'static str,
    /// The heading it stands under in the list of contents.
    group: &'static str,
    title: String,
    endpoint: Option<Endpoint>,
    body: String,
    /// What is shown beside it where there is room: snippets and answers.
    beside: String,
}

/// Where an operation is called.
struct Endpoint {
    method: &'static str,
    path: &'static str,
    needs_key: bool,
    is_tool: bool,
    /// Whether the page can call it for its reader: it reads, takes nothing and needs no key.
    can_be_tried: bool,
}

/// Every section, in the order in which somebody new would read them.
pub(super) struct Reference<'a> {
    union: &'a Union,
    sections: Vec<Section>,
}

impl<'a> Reference<'a> {
    /// From the facts and the OpenAPI documents that were made of them.
    pub(super) fn new(union: &'a Union, document: &Value, partner_document: &Value) -> Self {
        let facts = texts::facts(union);
        let mut sections = texts::before_operations(&facts);
        sections.extend(operation::sections("Operations", ALL, document, union));
        for section in texts::after_operations(&facts) {
            let introduces = section.id == "partner-api";
            sections.push(section);
            if introduces {
                sections.extend(operation::sections("Partner API", partner::ALL, partner_document, union));
            }
        }
        Self { union, sections }
    }

    /// The whole of it as Markdown.
    pub(super) fn markdown(&self) -> String {
        let Union { name, base_url, .. } = self.union;
        let mut text = format!(
            "# {} API reference\n\nVersion {API_VERSION}. Base address `{base_url}`; machine-readable at \
             {base_url}/openapi.json. The same as a page: {base_url}/docs.\n\n{}\n\n{}\n",
            escaped(name),
            escaped(&wording::what_it_is(self.union)),
            escaped(&wording::who_and_where(self.union)),
        );
        for Section { id, title, endpoint, body, beside, .. } in &self.sections {
            text.push_str(&format!("\n<a id=\"{id}\"></a>\n\n## {title}\n\n"));
            if let Some(Endpoint { method, path, needs_key, is_tool, .. }) = endpoint {
                let key = if *needs_key { "needs a key" } else { "no key needed" };
                let tool = if *is_tool { format!("; `{id}` as an MCP tool") } else { String::new() };
                text.push_str(&format!("`{method} {path}` ({key}{tool})\n\n"));
            }
            for part in [body, beside].into_iter().filter(|part| !part.is_empty()) {
                text.extend([part.trim(), "\n\n"]);
            }
            text.pop();
        }
        text
    }

    /// The whole of it as a page.
    pub(super) fn page(&self) -> String {
        let sections: Vec<_> = self.sections.iter().map(ShownSection::of).collect();
        let mut contents: Vec<ContentsGroup<'_>> = Vec::new();
        for Section { group, id, title, .. } in &self.sections {
            if contents.last().is_none_or(|last| last.name != *group) {
                contents.push(ContentsGroup { name: group, links: Vec::new() });
            }
            if let Some(last) = contents.last_mut() {
                last.links.push((id, title));
            }
        }
        let page = ReferencePage {
            union: self.union,
            what_it_is: wording::what_it_is(self.union),
            who_runs_it: html::of(&escaped(&wording::who_and_where(self.union)), "intro"),
            version: API_VERSION,
            contents,
            sections,
        };
        // Writing to a string fails only where a value's own formatting does, and these are texts and numbers.
        page.render().unwrap_or_default()
    }
}

#[derive(Template)]
#[template(path = "docs.html")]
struct ReferencePage<'a> {
    union: &'a Union,
    what_it_is: String,
    /// As HTML.
    who_runs_it: String,
    version: &'static str,
    contents: Vec<ContentsGroup<'a>>,
    sections: Vec<ShownSection<'a>>,
}

struct ContentsGroup<'a> {
    name: &'a str,
    links: Vec<(&'a str, &'a str)>,
}

/// A section as HTML.
struct ShownSection<'a> {
    id: &'a str,
    title: &'a str,
    endpoint: Option<&'a Endpoint>,
    body: String,
    beside: String,
}

impl<'a> ShownSection<'a> {
    fn of(section: &'a Section) -> Self {
        let Section { id, title, endpoint, body, beside, .. } = section;
        Self {
            id,
            title,
            endpoint: endpoint.as_ref(),
            body: html::of(body, id),
            // Apart from the body's, so that no two groups of snippets share a name.
            beside: html::of(beside, &format!("{id}-example")),
        }
    }
}
