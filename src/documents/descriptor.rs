//! The service descriptor: the service's name, and where everything is.

use serde::Serialize;

use super::API_VERSION;
use crate::domain::constant::True;
use crate::domain::union::Union;
use crate::operations::ALL;

#[derive(Debug, Serialize)]
struct Descriptor<'a> {
    ok: True,
    name: &'a str,
    version: &'static str,
    openapi: String,
    docs: String,
    mcp: String,
    endpoints: Vec<String>,
}

pub fn of(union: &Union) -> Vec<u8> {
    let Union { name, base_url, .. } = union;
    let descriptor = Descriptor {
        ok: True,
        name,
        version: API_VERSION,
        openapi: format!("{base_url}/openapi.json"),
        docs: format!("{base_url}/docs"),
        mcp: format!("{base_url}/mcp"),
        endpoints: ALL.iter().map(|op| format!("{} {}", op.spec.method.name(), op.spec.path)).collect(),
    };
    // Texts always have a JSON form.
    serde_json::to_vec(&descriptor).unwrap_or_default()
}
