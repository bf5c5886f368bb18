//! The service descriptor: the service's name, and where everything is.

use serde_json::{Value, json};

use super::API_VERSION;
use crate::domain::union::Union;
use crate::operations::ALL;

pub(super) fn of(union: &Union) -> Value {
    let base_url = &union.base_url;
    let endpoints: Vec<_> = ALL.iter().map(|op| format!("{} {}", op.spec.method.name(), op.spec.path)).collect();
    json!({
        "ok": true,
        "name": union.name,
        "version": API_VERSION,
        "openapi": format!("{base_url}/openapi.json"),
        "docs": format!("{base_url}/docs"),
        "mcp": format!("{base_url}/mcp"),
        "endpoints": endpoints,
    })
}
