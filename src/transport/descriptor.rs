//! The service's own card: what it is called, and where everything is.

use serde::Serialize;

use crate::app::App;
use crate::operations::ALL;
use crate::operations::constant::True;

/// The version of the API, in every document.
pub const API_VERSION: &str = "1.0.0";

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

pub fn of(app: &App) -> Vec<u8> {
    let (name, base_url) = (&app.name, &app.base_url);
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
