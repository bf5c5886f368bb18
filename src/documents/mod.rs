//! Everything that describes the operations, for programs and for people. It is built once per catalog load, from the
//! table of operations, their types and the facts about the union.
//!
//! This module must never know what an operation does, only how the operation describes itself.

pub mod demand_sheet;
mod descriptor;
pub mod discovery;
pub mod icon;
mod llms;
pub mod openapi;
mod reference;
mod registry_entry;
pub mod schema;

use hyper::header::{CONTENT_SECURITY_POLICY, HeaderValue, LINK};

use self::reference::Reference;
use crate::domain::union::Union;
use crate::http::response::etag::Document;

/// The version of the API, in every document.
pub const API_VERSION: &str = "1.0.0";

/// The policy of the reference, whose script is our own and calls only this service.
const WITH_TRIES: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; img-src 'self'; style-src 'self'; font-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

const MARKDOWN: &str = "text/markdown; charset=utf-8";

pub struct Documents {
    pub descriptor: Document,
    pub openapi: Document,
    pub partner_openapi: Document,
    pub registry_entry: Document,
    pub reference: Document,
    pub reference_markdown: Document,
    pub reference_style: Document,
    pub reference_script: Document,
    pub llms: Document,
    pub api_catalog: Document,
    pub icon_svg: Document,
    pub icon_png: Document,
    pub icon_ico: Document,
    /// Where all of these are, as a `Link` header.
    pub links: Option<HeaderValue>,
}

impl Documents {
    pub fn new(union: &Union) -> Self {
        let openapi = openapi::document(union);
        let partner_openapi = openapi::partner_document(union);
        let reference = Reference::new(union, &openapi, &partner_openapi);
        let links = discovery::links(union);
        let linked = |document: Document| match &links {
            Some(links) => document.with(LINK, links.clone()),
            None => document,
        };
        Self {
            descriptor: linked(Document::new("application/json", descriptor::of(union).to_string())),
            registry_entry: linked(Document::new("application/json", registry_entry::of(union))),
            reference: linked(Document::new("text/html; charset=utf-8", reference.page()))
                .with(CONTENT_SECURITY_POLICY, WITH_TRIES),
            reference_markdown: linked(Document::new(MARKDOWN, reference.markdown())),
            reference_style: Document::new("text/css; charset=utf-8", reference::STYLE),
            reference_script: Document::new("text/javascript; charset=utf-8", reference::SCRIPT),
            llms: linked(Document::new(MARKDOWN, llms::text(union))),
            api_catalog: linked(Document::new(discovery::LINKSET, discovery::api_catalog(union).to_string())),
            openapi: linked(Document::new("application/json", openapi.to_string())),
            partner_openapi: linked(Document::new("application/json", partner_openapi.to_string())),
            icon_svg: Document::new("image/svg+xml", icon::SVG),
            icon_png: Document::new("image/png", icon::PNG),
            icon_ico: Document::new("image/vnd.microsoft.icon", icon::ico()),
            links,
        }
    }
}
