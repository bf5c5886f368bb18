//! An operation's input and output fields as table rows, from the schemas of the OpenAPI document.

use serde_json::Value;

use super::prose;

/// Which fields are worth a word about it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Remarked {
    /// Those that must be sent.
    Required,
    /// Those that may be missing from an answer.
    NotAlways,
}

/// The properties of an object's schema as a table in Markdown; nothing where it has none.
pub(super) fn table(document: &Value, schema: &Value, remarked: Remarked) -> String {
    let mut rows = Vec::new();
    add_rows(document, schema, remarked, "", &mut rows);
    of_rows(rows)
}

/// What stands in the path and the query, in the same columns.
pub(super) fn parameters(document: &Value, parameters: &Value) -> String {
    let row = |parameter| {
        let parameter = resolve(document, parameter);
        let text = |name: &str| parameter[name].as_str().unwrap_or_default();
        let present = if parameter["required"] == true { " *required*" } else { "" };
        [
            format!("`{}`{present}", text("name")),
            format!("{}, in the {}", kind(document, &parameter["schema"]), text("in")),
            prose::escaped(text("description")),
        ]
    };
    of_rows(parameters.as_array().into_iter().flatten().map(row).collect())
}

fn of_rows(rows: Vec<[String; 3]>) -> String {
    if rows.is_empty() { String::new() } else { prose::table(["Field", "Type", "What it is"], rows) }
}

fn add_rows(document: &Value, schema: &Value, remarked: Remarked, before: &str, rows: &mut Vec<[String; 3]>) {
    let schema = resolve(document, schema);
    let required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name));
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let mark = match (remarked, required(name)) {
            (Remarked::Required, true) => " *required*",
            (Remarked::NotAlways, false) => " *not always*",
            _ => "",
        };
        let description = property["description"].as_str().unwrap_or_default();
        rows.push([format!("`{before}{name}`{mark}"), kind(document, property), prose::escaped(description)]);
        let property = resolve(document, property);
        if property["type"] == "array" {
            add_rows(document, &property["items"], remarked, &format!("{before}{name}[]."), rows);
        }
    }
}

fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema["$ref"].as_str().and_then(|path| document.pointer(path.trim_start_matches('#')));
    target.unwrap_or(schema)
}

/// A schema in a few words.
fn kind(document: &Value, schema: &Value) -> String {
    let schema = resolve(document, schema);
    if let Some(value) = schema.get("const") {
        return format!("`{value}`");
    }
    // A list that may grow is one of what is known, or any other.
    if schema["anyOf"].is_array() {
        return format!("{}; more may come", kind(document, &schema["anyOf"][0]));
    }
    let plain = schema["type"].as_str().unwrap_or_default();
    let bound = schema["maxLength"].as_u64().map(|most| format!(", at most {most} characters")).unwrap_or_default();
    let names = |schema: &Value| -> Vec<String> {
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect()
    };
    match (plain, schema["enum"].as_array(), schema["format"].as_str()) {
        ("array", ..) => {
            let items = resolve(document, &schema["items"]);
            match items["type"].as_str() {
                Some("object") => "array of objects".to_owned(),
                _ => format!("array of {}", kind(document, items)),
            }
        }
        ("object", ..) => format!("object of booleans: {}", names(schema).join(", ")),
        (_, Some(values), _) => {
            let values: Vec<_> = values.iter().filter_map(Value::as_str).map(|value| format!("`{value}`")).collect();
            format!("one of {}", values.join(", "))
        }
        (_, None, Some(format)) => format!("{plain}, {format}{bound}"),
        _ => format!("{plain}{bound}"),
    }
}
