//! The service's icon: in the browser's tab, in the registry of MCP servers and in the lists of assistants.

use serde_json::{Value, json};

/// The mark at the head of every page; `icon.png` is this, rendered at 256 × 256 for readers who do not draw.
pub const SVG: &str = include_str!("../../templates/icon.svg");
pub const PNG: &[u8] = include_bytes!("../../templates/icon.png");

/// Where it is found, as the Model Context Protocol and its registry both list icons.
pub fn listed(base_url: &str) -> Value {
    json!([
        { "src": format!("{base_url}/icon.png"), "mimeType": "image/png", "sizes": ["256x256"] },
        { "src": format!("{base_url}/icon.svg"), "mimeType": "image/svg+xml", "sizes": ["any"] },
    ])
}
