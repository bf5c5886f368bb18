//! The service's own cards: what it is called, and where everything is, for callers and for the registry of MCP servers.

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

/// The card for the registry of MCP servers (`server.json`), which assistants search.
pub fn registry_entry(app: &App) -> String {
    let host = app.base_url.split("://").nth(1).unwrap_or_default().split(['/', ':']).next().unwrap_or_default();
    // The registry's names begin with a domain, its last part first; an address of this machine is none.
    let is_name = host.parse::<std::net::IpAddr>().is_err() && !host.is_empty() && !host.starts_with('[');
    let domain: Vec<_> = if is_name { host.split('.').rev().collect() } else { vec!["localhost"] };
    let entry = serde_json::json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": format!("{}/unionhall", domain.join(".")),
        "title": app.name,
        "description": "Describe a consumer union truthfully, and help people join it with their consent.",
        "version": API_VERSION,
        "websiteUrl": app.join_site,
        "remotes": [{
            "type": "streamable-http",
            "url": format!("{}/mcp", app.base_url),
            "headers": [{
                "name": "Authorization",
                "description": "Bearer and a partner's API key; without it the tools that act for a user are not there.",
                "isRequired": false,
                "isSecret": true,
            }],
        }],
    });
    entry.to_string()
}
