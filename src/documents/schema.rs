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

/// Drops Rust's names for integer sizes, which JSON does not know, and defaults of null, which are no default at all.
fn plain(schema: &mut Schema) {
    if schema
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|format| format.starts_with("uint") || format.starts_with("int") || format == "double")
    {
        schema.remove("format");
    }
    schema.remove("default");
}
