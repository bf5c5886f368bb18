//! The entry for the MCP registry (`server.json`), which assistants search.

use super::{API_VERSION, icon};
use crate::domain::union::Union;

/// The registry's bound, in characters.
const LONGEST_TITLE: usize = 100;

pub(super) fn of(union: &Union) -> String {
    let host = union.base_url.split("://").nth(1).unwrap_or_default().split(['/', ':']).next().unwrap_or_default();
    // The registry's names begin with a domain, its last part first; an address of this machine is none.
    let is_name = host.parse::<std::net::IpAddr>().is_err() && !host.is_empty() && !host.starts_with('[');
    let domain: Vec<_> = if is_name { host.split('.').rev().collect() } else { vec!["localhost"] };
    let entry = serde_json::json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": format!("{}/unionhall", domain.join(".")),
        "title": union.name.chars().take(LONGEST_TITLE).collect::<String>(),
        "description": "Describe a consumer union truthfully, and help people join it with their consent.",
        "version": API_VERSION,
        "websiteUrl": union.join_site,
        "icons": icon::listed(&union.base_url),
        "remotes": [{
            "type": "streamable-http",
            "url": format!("{}/mcp", union.base_url),
            "headers": [{
                "name": "Authorization",
                "description": "Bearer and a partner's API key; without it the tools that act for a user are not there.",
                "placeholder": "Bearer uh_…",
                "isRequired": false,
                "isSecret": true,
            }],
        }],
    });
    entry.to_string()
}
