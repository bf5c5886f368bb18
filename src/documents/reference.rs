//! The API reference for people: one page, made from the same table and the same schemas as the OpenAPI document.

use askama::Template;
use serde_json::Value;

use super::API_VERSION;
use crate::domain::union::Union;
use crate::http::response::error::{ErrorKind, ErrorText};
use crate::operations::wording::{self, CONSENT_RULE_FOR_ALL};
use crate::operations::{ALL, Access};

#[derive(Template)]
#[template(path = "docs.html")]
struct ReferencePage<'a> {
    union: &'a Union,
    what_it_is: String,
    who_runs_it: String,
    consent: &'static str,
    version: &'static str,
    operations: Vec<OperationSection>,
    errors: Vec<ErrorRow>,
}

struct OperationSection {
    id: &'static str,
    title: &'static str,
    method: &'static str,
    path: &'static str,
    needs_key: bool,
    /// Paragraphs, as HTML.
    description: Vec<String>,
    takes: Vec<Field>,
    gives: Vec<Field>,
    curl: String,
    answer: String,
}

struct Field {
    name: String,
    kind: String,
    required: bool,
    /// As HTML.
    description: String,
}

struct ErrorRow {
    status: u16,
    code: &'static str,
    meaning: String,
    mend: String,
}

/// The page, from the facts and the document that was made of them.
pub(super) fn page(union: &Union, document: &Value) -> String {
    let operations = ALL
        .iter()
        .map(|operation| {
            let spec = &operation.spec;
            let described = &document["paths"][spec.path][spec.method.name().to_lowercase()];
            let taken = &described["requestBody"]["content"]["application/json"];
            let given = &described["responses"]["200"]["content"]["application/json"];
            OperationSection {
                id: spec.id,
                title: spec.title,
                method: spec.method.name(),
                path: spec.path,
                needs_key: spec.access == Access::Agent,
                description: (operation.description)(union).split("\n\n").map(html).collect(),
                takes: fields(document, &taken["schema"]),
                gives: fields(document, &given["schema"]),
                curl: curl(&union.base_url, spec.path, taken.get("example")),
                answer: serde_json::to_string_pretty(&given["example"]).unwrap_or_default(),
            }
        })
        .collect();
    let page = ReferencePage {
        union,
        what_it_is: wording::what_it_is(union),
        who_runs_it: wording::who_runs_it(union),
        consent: CONSENT_RULE_FOR_ALL,
        version: API_VERSION,
        operations,
        errors: errors(union),
    };
    // Writing to a string fails only where a value's own formatting does, and these are texts and numbers.
    page.render().unwrap_or_default()
}

/// A text that names things between backticks, as HTML.
fn html(text: &str) -> String {
    let mut html = String::with_capacity(text.len() + 32);
    for (n, piece) in text.split('`').enumerate() {
        let (before, after) = if n % 2 == 1 { ("<code>", "</code>") } else { ("", "") };
        let piece = piece.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        html.extend([before, &piece, after]);
    }
    html
}

fn curl(base_url: &str, path: &str, body: Option<&Value>) -> String {
    match body {
        None => format!("curl {base_url}{path}"),
        Some(body) => format!(
            "curl {base_url}{path} \\\n  -H \"Authorization: Bearer $KEY\" \\\n  -H \"Content-Type: application/json\" \\\n  \
             -d '{body}'"
        ),
    }
}

/// The properties of an object's schema, behind a reference or not.
fn fields(document: &Value, schema: &Value) -> Vec<Field> {
    let schema = resolve(document, schema);
    let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name));
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, property)| Field {
            name: name.clone(),
            kind: kind(document, property),
            required: required(name),
            description: html(property["description"].as_str().unwrap_or_default()),
        })
        .collect()
}

fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema["$ref"].as_str().and_then(|path| document.pointer(path.trim_start_matches('#')));
    target.unwrap_or(schema)
}

/// A schema in a few words.
fn kind(document: &Value, schema: &Value) -> String {
    let schema = resolve(document, schema);
    if let Some(value) = schema.get("const") {
        return value.to_string();
    }
    // A list that may grow is one of what is known, or any other.
    if schema["anyOf"][0]["enum"].is_array() {
        return format!("{}; more may come", kind(document, &schema["anyOf"][0]));
    }
    let plain = schema["type"].as_str().unwrap_or_default();
    let bound = schema["maxLength"].as_u64().map(|most| format!(", at most {most} characters")).unwrap_or_default();
    match (plain, schema["enum"].as_array(), schema["format"].as_str()) {
        ("array", ..) => {
            let inner = fields(document, &schema["items"]);
            let names: Vec<_> = inner.iter().map(|field| field.name.as_str()).collect();
            if names.is_empty() {
                format!("array of {}", kind(document, &schema["items"]))
            } else {
                format!("array of objects: {}", names.join(", "))
            }
        }
        ("object", ..) => {
            let names: Vec<_> =
                schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            format!("object of booleans: {}", names.join(", "))
        }
        (_, Some(values), _) => {
            let values: Vec<_> = values.iter().filter_map(Value::as_str).collect();
            format!("one of {}", values.join(", "))
        }
        (_, None, Some(format)) => format!("{plain}, {format}{bound}"),
        _ => format!("{plain}{bound}"),
    }
}

fn errors(union: &Union) -> Vec<ErrorRow> {
    let row = |kind: &ErrorKind| {
        let (ErrorText { name, meaning, mend }, example) = (kind.text(), kind.example(union.public_per_minute));
        let code = if example.body().code.is_some() { name } else { "" };
        ErrorRow { status: example.status().as_u16(), code, meaning: html(meaning), mend: html(mend) }
    };
    ErrorKind::ALL.iter().map(row).collect()
}
