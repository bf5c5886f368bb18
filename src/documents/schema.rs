//! JSON Schemas of the operations' input and output, simple enough for strict parsers.

use schemars::Schema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::Value;

/// A generator whose schemas stand under the document's components and hold nothing that strict readers stumble over.
pub fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .with_transform(RecursiveTransform(plain))
        .into_generator()
}

/// A schema that refers to nothing outside itself, as plain as those of the document.
pub fn standalone(schema: fn(&mut SchemaGenerator) -> Schema) -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = schema(&mut settings.into_generator());
    RecursiveTransform(plain).transform(&mut schema);
    schema
}

/// The same for a tool, where every word is read by a model at each conversation: without descriptions that say what the tool's own,
/// a name or a constant says.
pub fn of_tool(schema: fn(&mut SchemaGenerator) -> Schema) -> Schema {
    let mut schema = standalone(schema);
    schema.remove("description");
    RecursiveTransform(terse).transform(&mut schema);
    schema
}

fn terse(schema: &mut Schema) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (name, property) in properties.iter_mut().filter_map(|(name, property)| Some((name, property.as_object_mut()?)))
    {
        let letters = |text: &str| text.to_lowercase().replace([' ', '_'], "");
        let says_the_name = |told: &Value| told.as_str().is_some_and(|told| letters(told) == letters(name));
        if property.contains_key("const") || property.get("description").is_some_and(says_the_name) {
            property.remove("description");
        }
    }
}

/// Drops null, because a field without a value is left out; Rust's names for integer sizes, which JSON does not know; and
/// defaults.
fn plain(schema: &mut Schema) {
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_mut_slice() {
            let only = only.take();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if schema
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|format| format.starts_with("uint") || format.starts_with("int") || format == "double")
    {
        schema.remove("format");
    }
    schema.remove("default");
}
