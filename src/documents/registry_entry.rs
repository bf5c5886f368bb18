//! The entry for the registry of MCP servers (`server.json`), which assistants search.

use super::API_VERSION;
use crate::domain::union::Union;

pub(super) fn of(union: &Union) -> String {
    let host = union.base_url.split("://").nth(1).unwrap_or_default().split(['/', ':']).next().unwrap_or_default();
    // The registry's names begin with a domain, its last part first; an address of this machine is none.
    let is_name = host.parse::<std::net::IpAddr>().is_err() && !host.is_empty() && !host.starts_with('[');
    let domain: Vec<_> = if is_name { host.split('.').rev().collect() } else { vec!["localhost"] };
    let entry = serde_json::json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": format!("{}/unionhall", domain.join(".")),
        "title": union.name,
        "description": "Describe a consumer union truthfully, and help people join it with their consent.",
        "version": API_VERSION,
        "websiteUrl": union.join_site,
        "remotes": [{
            "type": "streamable-http",
            "url": format!("{}/mcp", union.base_url),
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
