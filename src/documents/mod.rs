//! Whatever describes the operations, for programs and for people: made once for each reading of the catalog, from the same
//! table, the same types and the same facts.
//!
//! This room must never know what an operation does, only what it says of itself.

pub mod descriptor;
pub mod icon;
pub mod openapi;
mod reference;
mod registry_entry;
pub mod schema;

use crate::domain::union::Union;
use crate::http::response::etag::Document;

/// The version of the API, in every document.
pub const API_VERSION: &str = "1.0.0";

#[derive(Debug)]
pub struct Documents {
    pub descriptor: Document,
    pub openapi: Document,
    pub partner_openapi: Document,
    pub registry_entry: Document,
    pub reference: Document,
    pub icon_svg: Document,
    pub icon_png: Document,
    pub icon_ico: Document,
}

impl Documents {
    pub fn new(union: &Union) -> Self {
        let openapi = openapi::document(union);
        Self {
            descriptor: Document::new("application/json", descriptor::of(union)),
            registry_entry: Document::new("application/json", registry_entry::of(union)),
            reference: Document::new("text/html; charset=utf-8", reference::page(union, &openapi)),
            openapi: Document::new("application/json", openapi.to_string()),
            partner_openapi: Document::new("application/json", openapi::partner_document(union).to_string()),
            icon_svg: Document::new("image/svg+xml", icon::SVG),
            icon_png: Document::new("image/png", icon::PNG),
            icon_ico: Document::new("image/vnd.microsoft.icon", icon::ico()),
        }
    }
}
