//! One section per operation: what it does, its input and output, its errors, and how to call it.

use serde_json::Value;

use super::fields::Remarked;
use super::snippets::{self, SnippetCall};
use super::{Endpoint, Section, fields, prose};
use crate::documents::openapi;
use crate::domain::union::Union;
use crate::http::response::error::{ErrorKind, ErrorText};
use crate::operations::partner::list_inbox::ListInbox;
use crate::operations::{Access, Effects, Entry, Operation};

/// The operations of a table that `document` describes.
pub(super) fn sections(
    group: &'static str,
    table: &'static [Entry],
    document: &Value,
    union: &Union,
) -> impl Iterator<Item = Section> {
    table.iter().map(move |operation| section(group, operation, document, union))
}

fn section(group: &'static str, operation: &'static Entry, document: &Value, union: &Union) -> Section {
    let spec = &operation.spec;
    let described = &document["paths"][spec.path][spec.method.name().to_lowercase()];
    let taken = &described["requestBody"]["content"]["application/json"];
    let given = &described["responses"]["200"]["content"]["application/json"];

    let mut body = prose::escaped(&(operation.description)(union));
    let takes = [
        fields::parameters(document, &described["parameters"]),
        fields::table(document, &taken["schema"], Remarked::Required),
    ];
    if takes.iter().any(|table| !table.is_empty()) {
        body.extend(["\n\n### Takes\n\n", &takes.concat()]);
    }
    body.extend(["\n\n### Gives\n\n", &fields::table(document, &given["schema"], Remarked::NotAlways)]);
    body.extend(["\n\n### Errors\n\n", &errors_of(operation, union)]);

    let needs_key = spec.access != Access::Public;
    // What partners ask about their own affairs is no tool, and the inbox is the sandbox's.
    let is_tool = spec.access != Access::Partner;
    let call = SnippetCall {
        base_url: &union.base_url,
        tool: is_tool.then_some(spec.id),
        key: if spec.id == ListInbox::SPEC.id { "UNION_TEST_KEY" } else { "UNION_KEY" },
        method: spec.method.name(),
        path: &filled(spec.path, &described["parameters"]),
        body: taken.get("example"),
        needs_key,
        name: match spec.effects {
            Effects::None | Effects::Changes => None,
            Effects::Adds | Effects::AddsEachTime => Some(snippets::IDEMPOTENCY_KEY_OF_A_LINK),
            Effects::AddsAndMails => Some(snippets::IDEMPOTENCY_KEY),
        },
    };
    let answer = serde_json::to_string_pretty(&given["example"]).unwrap_or_default();
    Section {
        id: spec.id,
        group,
        title: spec.title.to_owned(),
        endpoint: Some(Endpoint {
            method: spec.method.name(),
            path: spec.path,
            needs_key,
            is_tool,
            can_be_tried: !needs_key && !operation.takes_input,
        }),
        body,
        beside: format!("{}\n### Answer\n\n{}", snippets::of(&call), prose::fence("json", "200 OK", &answer)),
    }
}

/// A path with an example for each parameter in it.
fn filled(path: &str, parameters: &Value) -> String {
    parameters.as_array().into_iter().flatten().fold(path.to_owned(), |path, parameter| {
        let name = parameter["name"].as_str().unwrap_or_default();
        let example = parameter["example"].as_str().unwrap_or(snippets::IDEMPOTENCY_KEY);
        path.replace(&format!("{{{name}}}"), example)
    })
}

fn errors_of(operation: &Entry, union: &Union) -> String {
    let rows = openapi::errors(operation, union).map(|error| {
        let ErrorText { name, meaning, .. } = error.kind().text();
        let code = if error.body().code.is_some() { format!("`{name}`") } else { "–".to_owned() };
        [error.status().as_u16().to_string(), code, sentence(meaning)]
    });
    let table = prose::table(["Status", "Code", "When"], rows);
    format!("{table}\n[Errors](#errors) says what to do about each.\n")
}

/// Every error there is, with what to do about it.
pub(super) fn all_errors(union: &Union) -> String {
    let rows = ErrorKind::ALL.iter().map(|kind| {
        let (ErrorText { name, meaning, fix }, example) = (kind.text(), kind.example(union.public_per_minute));
        let code = if example.body().code.is_some() { format!("`{name}`") } else { "–".to_owned() };
        [example.status().as_u16().to_string(), code, sentence(meaning), prose::escaped(fix)]
    });
    prose::table(["Status", "Code", "Meaning", "What to do"], rows)
}

/// Meanings follow a code elsewhere and begin small; in a table they stand alone.
fn sentence(meaning: &str) -> String {
    let mut characters = meaning.chars();
    let first = characters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    prose::escaped(&(first + characters.as_str()))
}
